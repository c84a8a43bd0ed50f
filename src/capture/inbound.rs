//! The intake: every envelope becomes one store write, and only then is it acknowledged.

use std::sync::{Arc, Mutex};

use tracing::{error, info, trace, warn};
use vocative_contract::channel::{Accepted, BoxFuture, Intake, IntakeError};
use vocative_contract::crash;
use vocative_contract::envelope::{
    Belonging, ChatKind, Command, Envelope, Event, InboundMessage, Place, Sender, SenderKind,
    Standing,
};
use vocative_contract::handles::{Forms, Renderer};
use vocative_contract::markup::neutral_text;

use crate::capture::changes::ChangeWish;
use crate::capture::forms::FormDesk;
use crate::capture::gate::{Gate, Haste};
use crate::capture::name_hints::unnamed;
use crate::capture::noting::{LoggedNotes, NotedVerdict, judge_again, kind_of};
use crate::capture::wake::Wake;
use crate::counters::{CountedEvent, Counters};
use vocative_core::addressing::{Access, MessageFacts, NoticeKind, Verdict, edited_at_ms};
use vocative_core::command::CommandFacts;
use vocative_core::judging::access::{PlaceAccess, access, person_access};
use vocative_core::judging::commands::read_command;
use vocative_core::judging::judge::judge;
use vocative_core::judging::origin::CaptureOrigin;
use vocative_core::judging::policy::ChannelPolicy;
use vocative_core::turn::{ParticipantKind, TokenCount};
use vocative_store::commands::NewCommand;
use vocative_store::contract::{Deleted, NewMessage, NonMessage, OwnPost, RawStub};
use vocative_store::{Capturing, Store, StoreError};

/// The length at which a raw stub is cut, in bytes. A platform's own limit is far below.
const RAW_MAX_BYTES: usize = 1_048_576;

/// How capture stores texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keeping {
    /// Whether an edit keeps the text it replaces.
    pub keeps_revisions: bool,
    /// Whether every envelope's JSON is kept for a while.
    pub keeps_raw: bool,
}

/// Counts a text's tokens at capture.
pub type Counter = Arc<dyn Fn(&str) -> TokenCount + Send + Sync>;

/// The intake of one channel.
pub struct ChannelIntake {
    store: Store<Capturing>,
    pub(super) gate: Arc<Gate>,
    keeping: Keeping,
    counter: Counter,
    /// Makes posts of cards, where the channel can.
    pub(super) cards: Option<Arc<dyn Renderer>>,
    /// Opens forms, where the channel can.
    pub(super) forms: Option<Arc<FormDesk>>,
    pub(super) wake: Wake,
    pub(super) counters: Arc<Counters>,
    pub(super) seen: Mutex<LoggedNotes>,
}

impl ChannelIntake {
    /// The intake of a channel with that policy, whose platform has no directory.
    #[must_use]
    pub fn new(
        store: Store<Capturing>,
        policy: ChannelPolicy,
        keeping: Keeping,
        counter: Counter,
        wake: Wake,
        counters: Arc<Counters>,
    ) -> Self {
        let gate = Arc::new(Gate::new(policy));
        Self::behind(gate, store, keeping, counter, wake, counters)
    }

    /// The intake of a channel with a gate.
    #[must_use]
    pub fn behind(
        gate: Arc<Gate>,
        store: Store<Capturing>,
        keeping: Keeping,
        counter: Counter,
        wake: Wake,
        counters: Arc<Counters>,
    ) -> Self {
        Self {
            store,
            gate,
            keeping,
            counter,
            cards: None,
            forms: None,
            wake,
            counters,
            seen: Mutex::default(),
        }
    }

    /// The same intake, which replaces decided cards with their outcome.
    #[must_use]
    pub fn with_cards(self, renderer: Arc<dyn Renderer>) -> Self {
        Self {
            cards: Some(renderer),
            ..self
        }
    }

    /// The same intake, which asks for other arguments with forms.
    #[must_use]
    pub fn with_forms(self, forms: Option<Arc<dyn Forms>>) -> Self {
        let forms = forms.map(|forms| Arc::new(FormDesk::new(forms)));
        Self { forms, ..self }
    }

    pub(super) fn store(&self) -> &Store<Capturing> {
        &self.store
    }

    pub(super) fn count(&self, text: &str) -> TokenCount {
        (self.counter)(text)
    }

    /// Puts another policy in force for messages from now on.
    pub fn set_policy(&self, policy: ChannelPolicy) {
        self.gate.set_policy(policy);
    }

    /// The policy in force.
    #[must_use]
    pub fn policy(&self) -> Arc<ChannelPolicy> {
        self.gate.policy()
    }

    /// The gate of the channel.
    #[must_use]
    pub fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// Whether messages of a chat may be stored. In a direct chat that depends on the person.
    #[must_use]
    pub fn serves(&self, place: &Place) -> bool {
        self.gate.may_serve(&place.chat, place.kind)
    }

    /// Takes in messages that were read back: like [`Intake::accept`], except for whom they may address.
    ///
    /// # Errors
    /// [`StoreError`] if storage failed; nothing was made durable.
    pub async fn take_back(
        &self,
        envelope: Envelope,
        origin: CaptureOrigin,
    ) -> Result<(), StoreError> {
        self.take_in(envelope, origin).await.map(drop)
    }

    async fn take_in(
        &self,
        mut envelope: Envelope,
        origin: CaptureOrigin,
    ) -> Result<Accepted, StoreError> {
        let policy = self.policy();
        let numbered = envelope.numbered.take().filter(|numbered| {
            // Of a chat that is not served nothing is stored, not even its newest number.
            !numbered.sequence.is_of_one_chat || self.gate.is_open(&numbered.chat, None)
        });
        let Some(numbered) = numbered else {
            return self.take_event(envelope, origin, &policy).await;
        };
        let account = policy.account;
        let heard = self.store.hear_number(account, numbered);
        // Both share one commit.
        let taken = self.take_event(envelope, origin, &policy);
        let (heard, taken) = futures_util::future::join(heard, taken).await;
        heard.and(taken)
    }

    async fn take_event(
        &self,
        envelope: Envelope,
        origin: CaptureOrigin,
        policy: &Arc<ChannelPolicy>,
    ) -> Result<Accepted, StoreError> {
        let now_ms = envelope.received_at_ms;
        let account = policy.account;
        let is_edit = matches!(envelope.event, Event::Edited(_));
        trace!(channel.id = %policy.channel, kind = kind_of(&envelope.event), ?origin, "an event came in");
        let done = match envelope.event {
            Event::Posted(message) | Event::Edited(message) => {
                let arrived = Arrived {
                    is_edit,
                    raw: envelope.raw,
                    now_ms,
                    origin,
                };
                self.take_message(message, arrived, policy).await
            }
            Event::Deleted { place, message_id } => {
                self.take_delete(&place, &message_id, now_ms, policy).await
            }
            Event::OwnPost {
                place,
                message_id,
                marker,
            } => {
                let post = OwnPost {
                    account,
                    judge_follow_up: Some(judge_again(policy, origin, now_ms)),
                    place,
                    message_id,
                    marker,
                    now_ms,
                };
                self.take_own_post(post).await
            }
            Event::ChatMoved { .. } | Event::ChatChanged { .. } | Event::Membership { .. } => {
                self.take_room_change(envelope.event, now_ms, policy).await
            }
            Event::PersonChanged { sender } => self.store.learn_person(account, sender).await,
            Event::Command(command) => self.take_command(command, now_ms, policy).await,
            Event::Interaction(interaction) => {
                return self.take_interaction(interaction, now_ms, policy).await;
            }
            Event::Thumb(change) => self.take_thumb(change, now_ms, policy).await,
            Event::Untranslated { reason } => {
                self.counters.count(CountedEvent::Untranslated);
                warn!(channel.id = %policy.channel, reason, "an event did not translate; it is kept raw");
                self.keep_raw(reason, &envelope.raw, now_ms, policy).await
            }
            Event::Ignored { .. } | Event::Opened { .. } => {
                self.counters.count(CountedEvent::Ignored);
                Ok(())
            }
            Event::OtherSender { seen_at_ms } => {
                warn!(channel.id = %policy.channel, "another program uses this bot's token");
                self.store.note_other_sender(account, seen_at_ms).await
            }
            Event::AccountLost { reason } => {
                error!(channel.id = %policy.channel, reason, "the platform has withdrawn the bot's access; renew its token");
                self.keep_raw(reason, &envelope.raw, now_ms, policy).await
            }
        };
        done.map(|()| Accepted::default())
    }

    /// Stores an envelope as it came, with the reason.
    async fn keep_raw(
        &self,
        reason: String,
        raw: &str,
        received_at_ms: i64,
        policy: &ChannelPolicy,
    ) -> Result<(), StoreError> {
        let stub = RawStub {
            account: policy.account,
            reason,
            raw: cut_text(raw, RAW_MAX_BYTES),
            received_at_ms,
        };
        self.store.keep_raw(stub).await
    }

    async fn take_own_post(&self, post: OwnPost) -> Result<(), StoreError> {
        let chat = post.place.chat.clone();
        crash::point("echo.before-commit");
        let changes = self.store.confirm_own_post(post).await?;
        crash::point("echo.after-commit");
        self.note_follow_ups(&chat, &changes.follow_ups);
        self.note_runs(&changes.new_runs, &changes.cancelled_runs);
        // The next part of the same chat may be sent now.
        self.wake.posts.notify_one();
        Ok(())
    }

    async fn take_delete(
        &self,
        place: &Place,
        message_id: &str,
        now_ms: i64,
        policy: &ChannelPolicy,
    ) -> Result<(), StoreError> {
        let (account, chat) = (policy.account, place.chat.as_str());
        if !self.serves(place) {
            // A message is deleted if it was stored while the chat was served; of other messages nothing is stored.
            let known = self
                .store
                .is_captured(account, chat.to_owned(), message_id.to_owned());
            if !known.await? {
                return Ok(());
            }
        }
        crash::point("delete.before-commit");
        let deleted = self
            .store
            .capture_delete(account, chat, message_id, now_ms)
            .await?;
        crash::point("delete.after-commit");
        if let Deleted::Blanked { cancelled_runs, .. } = deleted {
            self.ask_to_stop(&cancelled_runs);
        }
        self.wake.runs.notify_one();
        Ok(())
    }

    /// Takes in a change of a chat itself.
    async fn take_room_change(
        &self,
        event: Event,
        now_ms: i64,
        policy: &ChannelPolicy,
    ) -> Result<(), StoreError> {
        let account = policy.account;
        match event {
            Event::ChatMoved { from_chat, to_chat } => {
                let is_served = [&from_chat, &to_chat]
                    .into_iter()
                    .any(|chat| self.gate.may_serve(chat, None));
                let known = self.store.knows_chat(account, from_chat.clone());
                if !is_served && !known.await? {
                    return Ok(());
                }
                info!(channel.id = %policy.channel, from = %from_chat, to = %to_chat, "a chat has another id");
                crash::point("merge.before-commit");
                let merged = self
                    .store
                    .merge_chats(account, &from_chat, &to_chat, now_ms);
                merged.await?;
                crash::point("merge.after-commit");
                Ok(())
            }
            Event::ChatChanged { place } => {
                if !self.gate.is_open(&place.chat, place.kind) {
                    return Ok(());
                }
                self.store.learn_place(account, place, now_ms).await
            }
            Event::Membership { place, standing } => {
                self.note_membership(&place, standing, policy);
                if !self.gate.is_open(&place.chat, place.kind) {
                    return Ok(());
                }
                let present = standing.is_present();
                let introduction = introduction(policy).filter(|_| standing == Standing::Joined);
                self.store
                    .record_membership(account, place, present, introduction, now_ms)
                    .await?;
                self.wake.posts.notify_one();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    async fn take_message(
        &self,
        message: InboundMessage,
        arrived: Arrived,
        policy: &Arc<ChannelPolicy>,
    ) -> Result<(), StoreError> {
        let chat = message.place.chat.clone();
        let unnamed = unnamed(&message);
        let (is_edit, origin) = (arrived.is_edit, arrived.origin);
        let judge_follow_up = judge_again(policy, origin, arrived.now_ms);
        let haste = match origin {
            CaptureOrigin::Live => Haste::Live,
            CaptureOrigin::CatchUp { .. } | CaptureOrigin::Backfill => Haste::ReadBack,
        };
        let known = self.gate.belonging(&message.place, &message.sender, haste);
        let known = known.await;
        let wish = self.change_wish(&message, is_edit, policy, arrived.now_ms);
        let wish = wish.await;
        let mut new = self.new_message(message, arrived, (known, wish), policy);
        new.judge_follow_up = Some(judge_follow_up);
        crash::point(if is_edit {
            "edit.before-commit"
        } else {
            "capture.before-commit"
        });
        let has_files = !new.attachments.is_empty();
        let judged = self.store.capture_judged(new).await?;
        if has_files {
            self.wake.jobs.notify_one();
        }
        crash::point(if is_edit {
            "edit.after-commit"
        } else {
            "capture.after-commit"
        });
        self.wake.names.note(policy.account, unnamed);
        let verdict = judged.verdict.as_ref();
        if verdict.is_some_and(is_about_question) {
            self.wake.runs.notify_one();
            self.wake.posts.notify_one();
        }
        let noted = verdict.map(|verdict| NotedVerdict::of(verdict, origin));
        self.note(&chat, &judged.captured, noted, policy);
        Ok(())
    }

    fn new_message(
        &self,
        mut message: InboundMessage,
        arrived: Arrived,
        (belonging, wish): (Option<Belonging>, Option<ChangeWish>),
        policy: &Arc<ChannelPolicy>,
    ) -> NewMessage {
        let Arrived {
            is_edit,
            raw,
            now_ms,
            origin,
        } = arrived;
        message.text = cut_text(&message.text, policy.limits.inbound_text_max_bytes);
        let said_at_ms = said_at_ms(&message, is_edit);
        let judged = message.clone();
        let judging = Arc::clone(policy);
        NewMessage {
            account: policy.account,
            scope_override: None,
            message_id: message.message_id,
            sender_kind: sender_kind(message.sender.kind),
            tokens: Some((self.counter)(&message.text)),
            text: message.text,
            attachments: message.attachments,
            reply_to: message
                .reply_to
                .as_ref()
                .map(|reply| reply.message_id.clone()),
            quote: message.reply_to.and_then(|reply| reply.quote),
            album: message.album,
            sent_at_ms: message.sent_at_ms,
            ordinal: message.ordinal,
            is_edit,
            edit_marker: message.edit_marker.filter(|_| is_edit),
            received_at_ms: now_ms,
            keep_revisions: self.keeping.keeps_revisions,
            raw: self.keeping.keeps_raw.then_some(raw),
            place: message.place,
            sender: message.sender,
            judge: Box::new(move |facts| {
                let facts = &MessageFacts {
                    belonging,
                    ..facts.clone()
                };
                let counted_ms = origin.counted_from_ms(said_at_ms, now_ms);
                let mut verdict = judge(&judged, facts, &judging, counted_ms, now_ms);
                if let (Some(wish), Some(of)) = (wish, &facts.waiting_call)
                    && verdict.is_admitted
                    && verdict.access == Access::Served
                {
                    verdict = wish.verdict(of, judged.place.kind.or(facts.chat_kind));
                }
                let mut verdict = origin.bounded(verdict, facts, &judged);
                if is_edit {
                    // The person did not type the edited text as a command.
                    verdict.command = None;
                }
                verdict
            }),
            judge_follow_up: None,
        }
    }

    async fn take_command(
        &self,
        command: Command,
        now_ms: i64,
        policy: &Arc<ChannelPolicy>,
    ) -> Result<(), StoreError> {
        let text = format!("{} {}", command.name, command.text);
        let event = NonMessage {
            account: policy.account,
            id: command.id.clone(),
            kind: "command",
            sender_id: command.sender.id.clone(),
            chat: Some(command.place.chat.clone()),
            text: cut_text(&neutral_text(&text), policy.limits.inbound_text_max_bytes),
            received_at_ms: now_ms,
        };
        let is_button = command.place.thread.is_some();
        if !policy.manners.commands && !is_button {
            let (place, sender) = (Some(&command.place), &command.sender);
            return self.keep_non_message(event, place, sender, policy).await;
        }
        let belonging = self
            .gate
            .belonging(&command.place, &command.sender, Haste::Live)
            .await;
        let judging = Arc::clone(policy);
        let new = NewCommand {
            event,
            place: command.place.clone(),
            sender: command.sender.clone(),
            judge: Box::new(move |facts| {
                let facts = CommandFacts { belonging, ..facts };
                read_command(&command, facts, &judging)
            }),
        };
        let outcome = self.store.capture_command(new).await?;
        self.ask_to_stop(&outcome.cancelled_runs);
        self.wake.runs.notify_one();
        self.wake.jobs.notify_one();
        self.wake.posts.notify_one();
        Ok(())
    }

    /// Stores an event that is no message, if its chat and person are served.
    pub(super) async fn keep_non_message(
        &self,
        event: NonMessage,
        place: Option<&Place>,
        sender: &Sender,
        policy: &ChannelPolicy,
    ) -> Result<(), StoreError> {
        // An event without a chat counts as one of a direct chat with its person.
        let nowhere = Place {
            kind: Some(ChatKind::Direct),
            ..Place::default()
        };
        let asked = place.unwrap_or(&nowhere);
        let belonging = self.gate.belonging(asked, sender, Haste::Live).await;
        let access = match place {
            Some(place) => access(place, place.kind, sender, belonging, policy),
            None => person_access(PlaceAccess::ByPerson, sender, belonging, policy),
        };
        if access != Access::Served {
            return Ok(());
        }
        self.store.keep_non_message(event).await.map(drop)
    }
}

impl Intake for ChannelIntake {
    fn accept(&self, envelope: Envelope) -> BoxFuture<'_, Result<Accepted, IntakeError>> {
        Box::pin(async move {
            crash::point("received");
            let taken = self.take_in(envelope, CaptureOrigin::Live).await;
            taken.map_err(|cause| {
                self.counters.count(CountedEvent::EnvelopesRefused);
                IntakeError(Box::new(cause))
            })
        })
    }
}

/// The bot's introduction in a room to which it was added.
fn introduction(policy: &ChannelPolicy) -> Option<String> {
    let text = &policy.manners.introduction;
    let agent = policy.agent(&policy.default_agent);
    let name = agent.map_or("", |agent| agent.display_name.as_str());
    (!text.is_empty()).then(|| text.replace("{{agent}}", name))
}

/// Whether a message answered a question of ours or changed a waiting call, or its person is told that it did not.
fn is_about_question(verdict: &Verdict) -> bool {
    let notice = verdict.notice.as_ref();
    let is_about = verdict.answers.is_some() || verdict.changes.is_some();
    is_about || notice.is_some_and(|notice| notice.kind == NoticeKind::NotCounted)
}

/// How a message came in.
struct Arrived {
    is_edit: bool,
    raw: String,
    now_ms: i64,
    origin: CaptureOrigin,
}

/// When a message was sent or, for an edit, changed: its age counts from this time.
pub(super) fn said_at_ms(message: &InboundMessage, is_edit: bool) -> i64 {
    let edited_ms = message
        .edit_marker
        .as_deref()
        .filter(|_| is_edit)
        .and_then(edited_at_ms);
    edited_ms.map_or(message.sent_at_ms, |edited_ms| {
        edited_ms.max(message.sent_at_ms)
    })
}

/// The kind of participant of a sender.
pub(super) fn sender_kind(kind: SenderKind) -> ParticipantKind {
    match kind {
        SenderKind::Person | SenderKind::Bot => ParticipantKind::User,
        SenderKind::System => ParticipantKind::System,
    }
}

/// The text within `max_bytes`, with a marker that says how much was cut.
pub(super) fn cut_text(text: &str, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    let marker_room = 48;
    let mut end = max_bytes.saturating_sub(marker_room);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut kept = &text[..end];
    // A mention token is not split.
    if let Some(open) = kept.rfind(vocative_contract::markup::MENTION_OPEN)
        && !kept[open..].contains(vocative_contract::markup::MENTION_CLOSE)
    {
        kept = &kept[..open];
    }
    format!("{kept} [cut: {} bytes left out]", text.len() - kept.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_with_a_marker_at_a_character() {
        assert_eq!(cut_text("short", 100), "short");
        let long = "é".repeat(100);
        let cut = cut_text(&long, 100);
        assert!(cut.len() <= 100, "{}", cut.len());
        assert_eq!(cut, format!("{} [cut: 148 bytes left out]", "é".repeat(26)));
        let token = format!(
            "{}{}",
            "a".repeat(50),
            vocative_contract::markup::mention_token(&"U".repeat(60))
        );
        assert!(!cut_text(&token, 100).contains(vocative_contract::markup::MENTION_OPEN));
    }
}
