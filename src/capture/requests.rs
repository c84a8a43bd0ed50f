//! What programs ask through the API, captured like what people say: one commit, and only then an answer.

use std::sync::{Arc, OnceLock};

use vocative_contract::crash;
use vocative_contract::envelope::{ChatKind, InboundMessage, Place, Sender, SenderKind};
use vocative_contract::markup::neutral_text;

use crate::capture::inbound::{ChannelIntake, cut_text, sender_kind};
use vocative_core::judging::request::{RequestVerdict, judge_request};
use vocative_store::StoreError;
use vocative_store::contract::{AskedRun, CapturedRequest, NewMessage, NewRequest};

/// A question of a program.
#[derive(Clone, Debug)]
pub struct Question {
    /// Who asks, by the name in the settings of the token.
    pub person: String,
    /// The chat, which begins with who asks.
    pub chat: String,
    /// The message's id in it.
    pub message_id: String,
    /// What is asked.
    pub text: String,
    /// Whom, under which name, and with what besides.
    pub request: NewRequest,
}

/// What became of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is captured, and its run is queued.
    Asked(AskedRun),
    /// It was asked before, under the same name.
    Known(AskedRun),
    /// Something else was asked under its name.
    OtherBody,
    /// It was erased, or deleted.
    Gone,
    /// The agent is not to be asked by this person.
    NotServed,
    /// A limit is met; what to tell.
    LimitMet(String),
}

impl ChannelIntake {
    /// Captures a question of a program.
    ///
    /// # Errors
    /// [`StoreError`] if storage failed; nothing was made durable.
    pub async fn take_question(
        &self,
        question: Question,
        now_ms: i64,
    ) -> Result<Taken, StoreError> {
        let policy = self.policy();
        let refused = Arc::new(OnceLock::new());
        let message = inbound(&question, policy.limits.inbound_text_max_bytes, now_ms);
        let (asked, agent) = (message.clone(), question.request.agent.clone());
        let (judging, noted) = (Arc::clone(&policy), Arc::clone(&refused));
        let new = NewMessage {
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
            sent_at_ms: now_ms,
            ordinal: 0,
            is_edit: false,
            edit_marker: None,
            received_at_ms: now_ms,
            keep_revisions: false,
            raw: None,
            place: message.place,
            sender: message.sender,
            judge: Box::new(move |facts| {
                let decided = judge_request(&asked, facts, &judging, &agent);
                if !matches!(decided, RequestVerdict::Ask(_)) {
                    let _ = noted.set(decided.clone());
                }
                decided.verdict()
            }),
            judge_follow_up: None,
        };
        crash::point("capture.before-commit");
        let captured = self.store().capture_request(new, question.request).await?;
        crash::point("capture.after-commit");
        Ok(match captured {
            CapturedRequest::Asked(asked) => {
                self.note_runs(&[asked.run], &[]);
                Taken::Asked(asked)
            }
            CapturedRequest::Known(asked) => Taken::Known(asked),
            CapturedRequest::OtherBody => Taken::OtherBody,
            CapturedRequest::Gone => Taken::Gone,
            CapturedRequest::NotAdmitted => match refused.get() {
                Some(RequestVerdict::LimitMet(text)) => Taken::LimitMet(text.clone()),
                _ => Taken::NotServed,
            },
        })
    }
}

fn inbound(question: &Question, text_max_bytes: usize, now_ms: i64) -> InboundMessage {
    InboundMessage {
        place: Place {
            chat: question.chat.clone(),
            kind: Some(ChatKind::Direct),
            ..Place::default()
        },
        message_id: question.message_id.clone(),
        sender: Sender {
            id: question.person.clone(),
            display_name: Some(question.person.clone()),
            username: None,
            kind: SenderKind::Person,
            is_stranger: false,
        },
        text: cut_text(&neutral_text(&question.text), text_max_bytes),
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
