//! A reply to the card of a waiting call that contains other arguments: checked against the tool's schema and judged
//! in the transaction that captures it, by the lists and the directory as they are now.

use std::sync::Arc;

use vocative_contract::envelope::{ChatKind, InboundMessage, SenderKind};
use vocative_contract::handles::Renderer;

use crate::capture::inbound::ChannelIntake;
use crate::capture::presses::outcome_part;
use crate::tools::other_arguments;
use vocative_core::addressing::{ChangedCall, Notice, NoticeKind, Verdict, WaitingCall};
use vocative_core::approving::{
    ApprovalState, CallChangeFacts, DecidedBy, DecidedVia, Decider, change_refused,
    reads_as_change, told_text,
};
use vocative_core::judging::policy::ChannelPolicy;

/// Other arguments that a person wrote, with the facts to judge them by.
pub(super) struct ChangeWish {
    pub(super) text: String,
    pub(super) sender: String,
    pub(super) sender_name: Option<String>,
    pub(super) is_member: bool,
    pub(super) policy: Arc<ChannelPolicy>,
    pub(super) renderer: Option<Arc<dyn Renderer>>,
    pub(super) now_ms: i64,
}

impl ChannelIntake {
    /// The change that a message may ask for: a person's own text, in the form of arguments, in reply to a message of
    /// ours.
    pub(super) async fn change_wish(
        &self,
        message: &InboundMessage,
        is_edit: bool,
        policy: &Arc<ChannelPolicy>,
        now_ms: i64,
    ) -> Option<ChangeWish> {
        let reply = message.reply_to.as_ref()?;
        let is_own_word = message.sender.kind == SenderKind::Person && !reply.is_passed_on;
        if is_edit || !reply.is_own || !is_own_word || !reads_as_change(&message.text) {
            return None;
        }
        let sender = &message.sender;
        Some(ChangeWish {
            text: message.text.clone(),
            sender: sender.id.clone(),
            sender_name: sender.display_name.clone().or(sender.username.clone()),
            is_member: self.gate.is_member(&message.place, &sender.id).await,
            policy: Arc::clone(policy),
            renderer: self.cards.clone(),
            now_ms,
        })
    }
}

impl ChangeWish {
    /// The verdict on the message of a person who is served: it changes the call, or its sender is told why not,
    /// privately where the platform can. In neither case is the message a question.
    pub(super) fn verdict(self, of: &WaitingCall, kind: Option<ChatKind>) -> Verdict {
        let quiet = Verdict {
            is_admitted: true,
            ..Verdict::default()
        };
        let is_private = self.policy.tells_privately && kind != Some(ChatKind::Direct);
        match self.changed(of) {
            Ok(changed) => Verdict {
                changes: Some(changed),
                ..quiet
            },
            Err(text) => Verdict {
                notice: Some(Notice {
                    kind: NoticeKind::NotCounted,
                    text,
                    is_private,
                }),
                ..quiet
            },
        }
    }

    /// The change; `Err`: why it is not made, worded for the person who wants it.
    pub(super) fn changed(self, of: &WaitingCall) -> Result<ChangedCall, String> {
        let (approval, language) = (&of.approval, self.policy.manners.language);
        let facts = CallChangeFacts {
            state: approval.state,
            expiry: approval.expiry,
            approvers: &approval.approvers,
            decider: Decider {
                channel: self.policy.channel.as_str(),
                id: &self.sender,
                is_requester: of.is_requester,
                is_admin: self.policy.admins.contains(&self.sender),
                is_served: true,
                is_member: self.is_member,
            },
            changes: approval.changed_by.len(),
            now_ms: self.now_ms,
        };
        if let Some(told) = change_refused(&facts) {
            return Err(told_text(
                told,
                &approval.approvers,
                &approval.decided,
                language,
            ));
        }
        let arguments = other_arguments(&self.text, &approval.arguments, &of.parameters, language)
            .map_err(|wrong| language.call_left_as_it_is(wrong))?;
        let name = of.sender_name.clone().or(self.sender_name);
        let by = DecidedBy {
            name: Some(name.unwrap_or(self.sender)),
            at_ms: self.now_ms,
            note: None,
        };
        let card = (self.renderer.as_deref(), language);
        Ok(ChangedCall {
            approval: approval.id,
            arguments,
            outcome: outcome_part(
                card,
                approval,
                ApprovalState::Changed,
                DecidedVia::Card,
                &by,
            ),
        })
    }
}
