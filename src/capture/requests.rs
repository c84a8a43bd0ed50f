//! Requests of programs through the API, captured like people's messages: one commit, and only then an answer.

use std::sync::{Arc, OnceLock};

use vocative_contract::crash;
use vocative_contract::envelope::{ChatKind, InboundMessage, Place, Sender, SenderKind};
use vocative_contract::markup::neutral_text;

use crate::capture::inbound::{ChannelIntake, cut_text, sender_kind};
use vocative_core::addressing::{Judge, MessageFacts};
use vocative_core::ids::{AgentName, ConversationId, Seq};
use vocative_core::judging::policy::ChannelPolicy;
use vocative_core::judging::request::{RequestVerdict, judge_note, judge_request};
use vocative_store::StoreError;
use vocative_store::contract::{
    AskedRun, Captured, CapturedRequest, CapturedTurn, Forking, NewMessage, NewRequest,
};

/// A message of a program.
#[derive(Clone, Debug)]
pub struct ProgramMessage {
    /// The person who says it, by the name in the settings of the token.
    pub person: String,
    /// The chat, whose id begins with the person.
    pub chat: String,
    /// The fork of the chat's conversation to which the message belongs; `None` = the conversation itself.
    pub fork: Option<String>,
    /// The message's id in the chat.
    pub message_id: String,
    /// The text.
    pub text: String,
}

/// What became of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuestionTaken {
    /// It is captured, and its run is queued.
    Asked(AskedRun),
    /// It was asked before, under the same name.
    Known(AskedRun),
    /// The same name was used before for another question.
    OtherBody,
    /// It was erased, or deleted.
    Gone,
    /// This person may not ask the agent.
    NotServed,
    /// A limit is met; the text tells which.
    LimitMet(String),
    /// The agent can't be asked with the model that was named; the text tells why.
    NoSuchModel(String),
}

/// What became of a message that a program sent without asking for an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotedMessage {
    /// It is kept.
    Kept(CapturedTurn),
    /// It was kept before, under the same id.
    Known(CapturedTurn),
    /// The same id was used before for another text.
    OtherWords,
    /// It was erased, or deleted.
    Gone,
    /// The person may not send messages to this agent.
    NotServed,
}

impl ChannelIntake {
    /// Captures a message of a program to an agent, without asking for an answer.
    ///
    /// # Errors
    /// [`StoreError`] if storage failed; nothing was made durable.
    pub async fn take_note(
        &self,
        note: &ProgramMessage,
        agent: AgentName,
        now_ms: i64,
    ) -> Result<NotedMessage, StoreError> {
        let policy = self.policy();
        let message = inbound(note, policy.limits.inbound_text_max_bytes, now_ms);
        let person = message.sender.id.clone();
        let judging = Arc::clone(&policy);
        let judge = Box::new(move |_: &MessageFacts| judge_note(&person, &judging, &agent));
        let new = self.message_of_program(&policy, message, judge);
        let text = new.text.clone();
        crash::point("capture.before-commit");
        let captured = self.store().capture_message(new).await?;
        crash::point("capture.after-commit");
        Ok(match captured {
            Captured::New(turn) | Captured::Revised(turn) => NotedMessage::Kept(turn),
            Captured::Duplicate(known) => {
                match self.store().turn(known.turn).await?.content == text {
                    true => NotedMessage::Known(known),
                    false => NotedMessage::OtherWords,
                }
            }
            Captured::Tombstone => NotedMessage::Gone,
            Captured::NotAdmitted { .. } => NotedMessage::NotServed,
        })
    }

    /// Begins a conversation that continues another one after a message; with the same key, only once.
    ///
    /// # Errors
    /// `NotFound` if there is no such message in it; [`StoreError`] else if storage failed.
    pub async fn fork(
        &self,
        of: ConversationId,
        at: Seq,
        key: String,
        now_ms: i64,
    ) -> Result<Forking, StoreError> {
        self.store().fork_conversation(of, at, key, now_ms).await
    }

    /// Notes that a conversation was read up to a turn; returns how far it is read.
    ///
    /// # Errors
    /// `NotFound` if there is no such turn in it; [`StoreError`] else if storage failed.
    pub async fn mark_read(
        &self,
        conversation: ConversationId,
        up_to: Seq,
    ) -> Result<Seq, StoreError> {
        self.store().mark_read(conversation, up_to).await
    }

    /// Captures a question of a program. The request says whom it asks, under which name, and with which additions.
    ///
    /// # Errors
    /// [`StoreError`] if storage failed; nothing was made durable.
    pub async fn take_question(
        &self,
        question: &ProgramMessage,
        request: NewRequest,
        now_ms: i64,
    ) -> Result<QuestionTaken, StoreError> {
        let policy = self.policy();
        let refused = Arc::new(OnceLock::new());
        let message = inbound(question, policy.limits.inbound_text_max_bytes, now_ms);
        let (asked, agent) = (message.clone(), request.agent.clone());
        let model = request.model.clone();
        let (judging, noted) = (Arc::clone(&policy), Arc::clone(&refused));
        let judge = Box::new(move |facts: &MessageFacts| {
            let decided = judge_request(&asked, facts, &judging, (&agent, model.as_deref()));
            if !matches!(decided, RequestVerdict::Ask(_)) {
                let _ = noted.set(decided.clone());
            }
            decided.verdict()
        });
        let new = self.message_of_program(&policy, message, judge);
        crash::point("capture.before-commit");
        let captured = self.store().capture_request(new, request).await?;
        crash::point("capture.after-commit");
        Ok(match captured {
            CapturedRequest::Asked(asked) => {
                self.note_runs(&[asked.run], &[]);
                QuestionTaken::Asked(asked)
            }
            CapturedRequest::Known(asked) => QuestionTaken::Known(asked),
            CapturedRequest::OtherBody => QuestionTaken::OtherBody,
            CapturedRequest::Gone => QuestionTaken::Gone,
            CapturedRequest::NotAdmitted => match refused.get() {
                Some(RequestVerdict::LimitMet(text)) => QuestionTaken::LimitMet(text.clone()),
                Some(RequestVerdict::NoSuchModel(text)) => QuestionTaken::NoSuchModel(text.clone()),
                _ => QuestionTaken::NotServed,
            },
        })
    }

    fn message_of_program(
        &self,
        policy: &ChannelPolicy,
        message: InboundMessage,
        judge: Judge,
    ) -> NewMessage {
        NewMessage {
            account: policy.account,
            scope_override: None,
            message_id: message.message_id,
            sender_kind: sender_kind(SenderKind::Person),
            tokens: Some(self.count(&message.text)),
            text: message.text,
            attachments: Vec::new(),
            reply_to: None,
            quote: None,
            album: None,
            sent_at_ms: message.sent_at_ms,
            ordinal: 0,
            is_edit: false,
            edit_marker: None,
            received_at_ms: message.sent_at_ms,
            keep_revisions: false,
            raw: None,
            place: message.place,
            sender: message.sender,
            judge,
            judge_follow_up: None,
        }
    }
}

fn inbound(said: &ProgramMessage, text_max_bytes: usize, now_ms: i64) -> InboundMessage {
    InboundMessage {
        place: Place {
            chat: said.chat.clone(),
            thread: said.fork.clone(),
            kind: Some(ChatKind::Direct),
            ..Place::default()
        },
        message_id: said.message_id.clone(),
        sender: Sender {
            id: said.person.clone(),
            display_name: Some(said.person.clone()),
            username: None,
            kind: SenderKind::Person,
            is_stranger: false,
        },
        text: cut_text(&neutral_text(&said.text), text_max_bytes),
        mentions: Vec::new(),
        mentions_bot: false,
        command: None,
        reply_to: None,
        attachments: Vec::new(),
        album: None,
        sent_at_ms: now_ms,
        ordinal: 0,
        edit_marker: None,
    }
}
