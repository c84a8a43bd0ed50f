//! The API as a channel, as the daemon's workers see it: it hears nothing by itself, and everything said on it is in
//! the store, where programs read it. So an answer has no posts; a notice or a card is "posted" by being committed.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use vocative_contract::capability::{Capabilities, LengthUnit};
use vocative_contract::card::{Card, CardMisfit};
use vocative_contract::channel::{
    BoxFuture, Channel, CheckReach, ConnectionState, Finding, Inbound, Intake, Reporter,
};
use vocative_contract::envelope::{ChatKind, Place};
use vocative_contract::error::{ChannelError, Fallback};
use vocative_contract::handles::{LookUps, Outbound, Poster, Renderer, Signs};
use vocative_contract::identity::{Identity, Platform};
use vocative_contract::outbound::{Delivered, Operation, Part, Post, Target};
use vocative_contract::people::People;

/// The one account of the API.
const ACCOUNT: &str = "api";

/// The API as a channel.
pub(super) struct ApiChannel;

impl Channel for ApiChannel {
    fn identify(&self) -> BoxFuture<'_, Result<Identity, ChannelError>> {
        Box::pin(std::future::ready(Ok(Identity {
            platform: Platform::Api,
            account: ACCOUNT.to_owned(),
            account_name: "API".to_owned(),
            user_id: "vocative".to_owned(),
            other_ids: Vec::new(),
            username: None,
            display_name: "Vocative".to_owned(),
            warnings: Vec::new(),
            organisation: None,
        })))
    }

    fn inbound(&self, _identity: &Identity) -> Box<dyn Inbound> {
        Box::new(Silent)
    }

    fn outbound(&self, _identity: &Identity) -> Outbound {
        Outbound::of(&Arc::new(CommittedOnly))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            text_max: usize::MAX,
            text_unit: LengthUnit::Chars,
            has_threads: false,
            has_replies: false,
            can_read_back: false,
            can_read_history: false,
            uploads_files: false,
            echoes_posts: false,
            working_sign_ms: 0,
            chat_interval_ms: 0,
            live_edit_ms: 0,
            live_preview_ms: 0,
            live_stream_ms: 0,
        }
    }

    fn check(&self, _reach: CheckReach) -> BoxFuture<'_, Vec<Finding>> {
        Box::pin(std::future::ready(Vec::new()))
    }
}

/// Hears nothing: requests are taken in by the code that answers them.
struct Silent;

impl Inbound for Silent {
    fn run<'a>(
        &'a mut self,
        _intake: Arc<dyn Intake>,
        reporter: Arc<dyn Reporter>,
        cancel: CancellationToken,
    ) -> BoxFuture<'a, Result<(), ChannelError>> {
        Box::pin(async move {
            reporter.state(ConnectionState::Connected { connections: 1 });
            cancel.cancelled().await;
            Ok(())
        })
    }
}

/// Posts nothing: the text stays where it was committed.
struct CommittedOnly;

impl Renderer for CommittedOnly {
    /// An answer has no posts: programs read its turn.
    fn render(&self, _text: &str, _people: &People) -> Vec<Part> {
        Vec::new()
    }

    fn render_fallback(&self, _part: &Part, _fallback: Fallback) -> Vec<Part> {
        Vec::new()
    }

    /// The text of a card. Its buttons are paths of the API.
    fn render_card(&self, card: &Card) -> Result<Part, CardMisfit> {
        let mut lines = vec![card.heading.clone()];
        let facts = card.facts.iter();
        lines.extend(facts.map(|fact| format!("{}: {}", fact.label, fact.value)));
        let texts = card.texts.iter();
        lines.extend(texts.map(|text| format!("{}:\n{}", text.title, text.text)));
        Ok(Part::plain(lines.join("\n")))
    }
}

impl Signs for CommittedOnly {
    fn show_working<'a>(&'a self, _target: &'a Target) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }
}

impl LookUps for CommittedOnly {
    fn person_name<'a>(
        &'a self,
        _id: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, ChannelError>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// A chat begins with its person.
    fn is_member<'a>(
        &'a self,
        chat: &'a str,
        person: &'a str,
    ) -> BoxFuture<'a, Result<Option<bool>, ChannelError>> {
        let is_theirs = chat.split_once('/').is_some_and(|(of, _)| of == person);
        Box::pin(std::future::ready(Ok(Some(is_theirs))))
    }

    fn chat_facts<'a>(&'a self, chat: &'a str) -> BoxFuture<'a, Result<Place, ChannelError>> {
        Box::pin(std::future::ready(Ok(Place {
            chat: chat.to_owned(),
            kind: Some(ChatKind::Direct),
            ..Place::default()
        })))
    }
}

impl Poster for CommittedOnly {
    fn deliver<'a>(&'a self, post: &'a Post) -> BoxFuture<'a, Result<Delivered, ChannelError>> {
        let message_id = match &post.operation {
            Operation::Edit { message_id }
            | Operation::Delete { message_id }
            | Operation::React { message_id }
            | Operation::Unreact { message_id } => message_id.clone(),
            Operation::Post
            | Operation::Ephemeral { .. }
            | Operation::Answer { .. }
            | Operation::Upload => post.marker.clone(),
        };
        Box::pin(std::future::ready(Ok(Delivered {
            chat: post.target.chat.clone(),
            message_id,
            sent_at_ms: chrono::Utc::now().timestamp_millis(),
            shown: None,
        })))
    }
}
