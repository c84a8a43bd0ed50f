//! Waits for the first person to write to the bot, before there is a daemon, to learn the room and the person. Nothing
//! is acknowledged, so the daemon receives the message, too, and answers it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use vocative_contract::channel::{Channel, Finding, FindingLevel};
use vocative_contract::envelope::{ChatKind, InboundMessage, SenderKind};
use vocative_contract::identity::Identity;

use super::fine;
use super::probe::{Probe, ProbeListener};
use crate::cli::CliError;
use crate::config::{Config, Secrets};
use crate::daemon::wiring;

/// How long somebody may take to write.
const PERSON_WAIT: Duration = Duration::from_secs(600);
/// What the bot answers to the first message.
const GREETING: &str = "I am being set up, and I hear you. The answer follows once I run.";

/// The first message of a person to the bot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) struct FirstWords {
    /// The platform's id of the chat.
    pub chat: String,
    /// The title of the chat, where it has one.
    pub title: Option<String>,
    /// Whether it is a direct chat.
    pub is_direct: bool,
    /// The platform's id of who wrote.
    pub person: String,
    /// Their shown name.
    pub name: Option<String>,
}

impl FirstWords {
    /// Takes a message that contains the code, if a person wrote it. Only who sees the screen knows the code.
    pub(super) fn of(message: &InboundMessage, code: &str) -> Option<Self> {
        let is_told = message.text.split_whitespace().any(|word| word == code);
        let is_person = message.sender.kind == SenderKind::Person;
        (is_told && is_person).then(|| Self {
            chat: message.place.chat.clone(),
            title: message.place.title.clone(),
            is_direct: message.place.kind == Some(ChatKind::Direct),
            person: message.sender.id.clone(),
            name: message.sender.display_name.clone(),
        })
    }

    /// The person, for people to read.
    pub(in crate::cli) fn person_shown(&self) -> String {
        match &self.name {
            Some(name) => format!("{name} ({})", self.person),
            None => self.person.clone(),
        }
    }

    /// The chat, for people to read.
    pub(in crate::cli) fn chat_shown(&self) -> String {
        match (&self.title, self.is_direct) {
            (_, true) => "a direct chat".to_owned(),
            (Some(title), false) => format!("{title} ({})", self.chat),
            (None, false) => self.chat.clone(),
        }
    }
}

/// Listens to one channel while no daemon runs.
pub(in crate::cli) struct ChannelEar {
    channel: Arc<dyn Channel>,
    identity: Identity,
    listener: ProbeListener,
    name: String,
    code: String,
}

impl ChannelEar {
    /// Listens with the channel's tokens. No daemon may listen at the same time: it would receive part of the messages.
    ///
    /// # Errors
    /// If the platform does not say who the bot is.
    pub(in crate::cli) async fn open(
        config: &Config,
        secrets: &Secrets,
        name: &str,
    ) -> Result<Self, CliError> {
        let channel = wiring::channel(&config.channels[name], secrets)?;
        let identity = channel
            .identify()
            .await
            .map_err(|cause| CliError::Unavailable {
                what: format!("{name} does not say who the bot is"),
                advice: "try again; `vocative check --live` says more".to_owned(),
                cause: Some(Box::new(cause)),
            })?;
        // Six digits are too many to guess in one chat within ten minutes.
        let code = format!("{:06}", uuid::Uuid::new_v4().as_u128() % 1_000_000);
        let listener = ProbeListener::for_words(&*channel, &identity, &code);
        Ok(Self {
            channel,
            identity,
            listener,
            name: name.to_owned(),
            code,
        })
    }

    /// The code that the first message must contain.
    pub(in crate::cli) fn code(&self) -> String {
        self.code.clone()
    }

    /// The name by which the bot is mentioned.
    pub(in crate::cli) fn name(&self) -> String {
        let identity = &self.identity;
        let username = identity.username.clone();
        username.unwrap_or_else(|| identity.display_name.clone())
    }

    /// Waits for the first message with the code; `None` if none comes within ten minutes.
    pub(in crate::cli) async fn hear(&self) -> Option<FirstWords> {
        let mut words = self.listener.words();
        let heard = timeout(PERSON_WAIT, words.wait_for(Option::is_some)).await;
        heard.ok()?.ok()?.clone()
    }

    /// Answers in the chat, and says whether the post arrived and, where the platform sends posts back, came back.
    pub(in crate::cli) async fn greet(&self, words: &FirstWords) -> Vec<Finding> {
        let probe = Probe {
            channel: self.name.clone(),
            chat: words.chat.clone(),
        };
        let marker = uuid::Uuid::now_v7().to_string();
        let post = match probe
            .say(&*self.channel, &self.identity, GREETING, &marker)
            .await
        {
            Ok(post) => post,
            Err(finding) => return vec![finding],
        };
        let mut findings = vec![fine("a line is posted there")];
        if !self.channel.capabilities().echoes_posts {
            return findings;
        }
        findings.push(
            match self.listener.has_heard(&marker, &post.message_id).await {
                true => fine("and it came back"),
                false => Finding {
                    level: FindingLevel::Warning,
                    text:
                        "and it did not come back: are the events of this kind of chat subscribed?"
                            .to_owned(),
                },
            },
        );
        findings
    }

    /// Stops listening.
    pub(in crate::cli) async fn close(self) {
        self.listener.stop().await;
    }
}
