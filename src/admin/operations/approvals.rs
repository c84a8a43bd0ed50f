//! Calls that wait for a person, what operators decide about them, and standing consents.

use serde::{Deserialize, Serialize};

use super::{Answer, OperationError, Operations, json};
use crate::admin::view::{ApprovalView, GrantView};
use crate::capture::presses::outcome_part;
use vocative_core::approving::{StoredApproval, Via};
use vocative_core::ids::{AccountId, ApprovalId, GrantId};
use vocative_store::StoreError;
use vocative_store::contract::{ApprovalFilter, OperatorDecided, OperatorDecision};

/// The most approvals, and the most grants, that are listed.
const LISTED_MAX: usize = 500;
/// The longest name of an operator, in characters.
const NAME_MAX_CHARS: usize = 64;
/// The longest note, in characters.
const NOTE_MAX_CHARS: usize = 500;

/// A decision of an operator about a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DecidedApproval {
    /// The id of the approval.
    pub id: String,
    /// Whether the call may be made.
    pub approve: bool,
    /// Whether the same call may be made for a day without asking.
    #[serde(default)]
    pub grant: bool,
    /// Who decides.
    pub by: String,
    /// What the model and the room are told with it.
    #[serde(default)]
    pub note: Option<String>,
}

impl Operations {
    pub(super) async fn approvals(&self, all: bool) -> Answer {
        let filter = ApprovalFilter {
            is_open: !all,
            conversation: None,
        };
        let found = self.store.approvals(filter, LISTED_MAX).await?;
        let mut views = Vec::new();
        for approval in &found {
            let channel = self.channel_of(approval.account).await?;
            views.push(ApprovalView::of(approval, channel));
        }
        Ok(json(&views))
    }

    pub(super) async fn approval(&self, id: &str) -> Answer {
        let approval = self.stored_approval(id).await?;
        let channel = self.channel_of(approval.account).await?;
        Ok(json(&ApprovalView::of(&approval, channel)))
    }

    pub(super) async fn decide_approval(&self, decided: DecidedApproval) -> Answer {
        let by = operator(&decided.by)?;
        let note = decided.note.filter(|note| !note.trim().is_empty());
        if let Some(note) = &note
            && note.chars().count() > NOTE_MAX_CHARS
        {
            let what = format!("the note has more than {NOTE_MAX_CHARS} characters");
            return Err(OperationError::Wrong(what));
        }
        let approval = self.stored_approval(&decided.id).await?;
        let renderer = self
            .rooms
            .get(approval.account)
            .map(|room| room.renderer.clone());
        let via = Via::Cli;
        let decision = OperatorDecision {
            approval: approval.id,
            is_approved: decided.approve,
            has_grant: decided.grant,
            operator: by,
            via,
            note,
            outcome: Box::new(move |approval, by| {
                outcome_part(renderer.as_deref(), approval, approval.state, via, by)
            }),
            now_ms: (self.clock)(),
        };
        let outcome = self.store.decide_approval(decision).await?;
        if let Some(running) = &self.running {
            running.wake.runs.notify_one();
            running.wake.posts.notify_one();
        }
        match outcome {
            OperatorDecided::Done(approval) => {
                let channel = self.channel_of(approval.account).await?;
                Ok(json(&ApprovalView::of(&approval, channel)))
            }
            OperatorDecided::Over(approval) => Err(OperationError::Wrong(format!(
                "{} is not open any more: it is {}",
                approval.id,
                approval.state.name()
            ))),
            OperatorDecided::IsRequester(approval) => Err(OperationError::Wrong(format!(
                "{} is to be decided by another person than {}, who asked",
                approval.id,
                approval.asked_by()
            ))),
        }
    }

    pub(super) async fn grants(&self) -> Answer {
        let found = self.store.grants((self.clock)(), LISTED_MAX).await?;
        let mut views = Vec::new();
        for grant in found {
            let channel = self.channel_of(grant.account).await?;
            views.push(GrantView::of(grant, channel));
        }
        Ok(json(&views))
    }

    pub(super) async fn revoke_grant(&self, id: &str, by: &str) -> Answer {
        let by = operator(by)?;
        let none = || OperationError::Wrong(format!("there is no grant {id} that holds"));
        let grant: GrantId = id.parse().map_err(|_| none())?;
        match self.store.revoke_grant(grant, by, (self.clock)()).await? {
            true => Ok(serde_json::Value::Bool(true)),
            false => Err(none()),
        }
    }

    async fn stored_approval(&self, id: &str) -> Result<StoredApproval, OperationError> {
        let none = || OperationError::Wrong(format!("there is no approval {id}"));
        let approval: ApprovalId = id.parse().map_err(|_| none())?;
        match self.store.approval(approval).await {
            Ok(approval) => Ok(approval),
            Err(StoreError::NotFound { .. }) => Err(none()),
            Err(other) => Err(other.into()),
        }
    }

    pub(super) async fn channel_of(
        &self,
        account: AccountId,
    ) -> Result<Option<String>, StoreError> {
        let bindings = self.store.bindings().await?;
        let binding = bindings.into_iter().find(|it| it.account == account);
        Ok(binding.map(|binding| binding.channel))
    }
}

/// The name of an operator: letters, digits and a little more, so that it stands in every room as it is.
fn operator(name: &str) -> Result<String, OperationError> {
    let name = name.trim();
    let is_fit = |c: char| c.is_alphanumeric() || " ._-".contains(c);
    let is_empty = name.is_empty() || name.chars().count() > NAME_MAX_CHARS;
    if is_empty || !name.chars().all(is_fit) {
        let what = format!(
            "{name:?} is no name of a person: 1 to {NAME_MAX_CHARS} letters, digits, spaces, dots, - and _"
        );
        return Err(OperationError::Wrong(what));
    }
    Ok(name.to_owned())
}
