//! Calls that wait for a person, what operators decide about them, and standing consents.

use serde::{Deserialize, Serialize};

use super::{LISTED_MAX, OperationError, Operations};
use crate::admin::view::{ApprovalCountView, ApprovalView, GrantView};
use crate::capture::presses::outcome_part;
use crate::delivery::rooms::Room;
use crate::tools::{PersonName, other_arguments};
use vocative_core::approving::{
    ApprovalState, CHANGES_MAX, DecidedVia, Decider, StoredApproval, may_decide,
};
use vocative_core::ids::{AccountId, ApprovalId, GrantId};
use vocative_core::words::Language;
use vocative_store::StoreError;
use vocative_store::contract::{ApprovalFilter, OperatorDecided, OperatorDecision};

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
    /// Arguments to replace those of the call: all of them as a JSON object, or lines `name = value`. The call is then
    /// asked for anew.
    #[serde(default)]
    pub arguments: Option<String>,
    /// A note to the model and the room about the decision.
    #[serde(default)]
    pub note: Option<String>,
    /// The digest of the call that the operator saw, in hexadecimal; refused if the call has another one. Absent: not
    /// checked.
    #[serde(default)]
    pub digest: Option<String>,
}

/// Who decides outside the rooms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operator {
    name: String,
    via: DecidedVia,
    people: Vec<PersonName>,
}

impl Operator {
    /// An operator at the command line.
    ///
    /// # Errors
    /// If the name has characters that some room would not show unchanged.
    pub fn by_cli(name: &str) -> Result<Self, OperationError> {
        Ok(Self {
            name: operator_name(name)?,
            via: DecidedVia::Cli,
            people: Vec::new(),
        })
    }

    /// The holder of an API token, under the token's name in the configuration.
    #[must_use]
    pub fn by_api(name: &str, people: &[PersonName]) -> Self {
        Self {
            name: name.to_owned(),
            via: DecidedVia::Api,
            people: people.to_vec(),
        }
    }

    /// A user of the console, under their name in the configuration. They may allow a call only where the settings of
    /// its tool name them.
    #[must_use]
    pub fn by_console(name: &str, people: &[PersonName]) -> Self {
        Self {
            name: name.to_owned(),
            via: DecidedVia::Console,
            people: people.to_vec(),
        }
    }

    /// The name under which the operator's decisions are recorded.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The platform's ids of the operator's people, in a channel.
    fn ids_in(&self, channel: Option<&str>) -> Vec<String> {
        let people = self.people.iter();
        people
            .filter(|person| Some(person.channel.as_str()) == channel)
            .map(|person| person.id.clone())
            .collect()
    }
}

impl Operations {
    /// Calls that wait or waited for a person, newest first.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn approvals(
        &self,
        (filter, limit): (ApprovalFilter, usize),
    ) -> Result<Vec<ApprovalView>, OperationError> {
        let found = self.store.approvals(filter, limit).await?;
        let mut views = Vec::new();
        for approval in &found {
            let channel = self.channel_of(approval.account).await?;
            views.push(ApprovalView::of(approval, channel));
        }
        Ok(views)
    }

    /// What became of the calls that people were asked about since a time, by tool.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn approvals_report(
        &self,
        since_ms: i64,
    ) -> Result<Vec<ApprovalCountView>, OperationError> {
        let counts = self.store.approval_counts(since_ms).await?;
        Ok(counts.into_iter().map(ApprovalCountView::from).collect())
    }

    /// One approval.
    ///
    /// # Errors
    /// If it is not there, or the store fails.
    pub async fn approval(&self, id: &str) -> Result<ApprovalView, OperationError> {
        let approval = self.stored_approval(id).await?;
        let channel = self.channel_of(approval.account).await?;
        Ok(ApprovalView::of(&approval, channel))
    }

    /// Decides about an approval.
    ///
    /// # Errors
    /// If it does not exist, is no longer open, has another digest than the one given, or is for others to decide.
    pub async fn decide_approval(
        &self,
        decided: DecidedApproval,
        by: &Operator,
    ) -> Result<ApprovalView, OperationError> {
        let note = decided.note.filter(|note| !note.trim().is_empty());
        if let Some(note) = &note
            && note.chars().count() > NOTE_MAX_CHARS
        {
            let what = format!("the note has more than {NOTE_MAX_CHARS} characters");
            return Err(OperationError::Wrong(what));
        }
        let approval = self.stored_approval(&decided.id).await?;
        let channel = self.channel_of(approval.account).await?;
        if decided.approve && !self.may_allow(&approval, channel.as_deref(), by) {
            return Err(OperationError::NotTheirs(format!(
                "{} may forbid {}, and not allow it: the settings of {} name others",
                by.name, approval.id, approval.tool
            )));
        }
        let changed = match &decided.arguments {
            Some(text) => {
                let is_plain = decided.approve && !decided.grant;
                Some(self.other_arguments(&approval, text, is_plain).await?)
            }
            None => None,
        };
        let room = self.rooms.get(approval.account);
        let language = room.as_ref().map_or_else(Language::default, Room::language);
        let renderer = room.map(|room| room.renderer);
        let via = by.via;
        let decision = OperatorDecision {
            approval: approval.id,
            digest: decided.digest.map(|digest| digest.trim().to_lowercase()),
            is_approved: decided.approve,
            changed,
            has_grant: decided.grant,
            operator: by.name.clone(),
            people: by.ids_in(channel.as_deref()),
            via,
            note,
            outcome: Box::new(move |approval, by| {
                let card = (renderer.as_deref(), language);
                outcome_part(card, approval, approval.state, via, by)
            }),
            now_ms: (self.clock)(),
        };
        let outcome = self.store.decide_approval(decision).await?;
        self.wake_work();
        match outcome {
            OperatorDecided::Done(approval) => Ok(ApprovalView::of(&approval, channel)),
            OperatorDecided::Over(approval) => Err(OperationError::Over(format!(
                "{} is not open any more: it is {}",
                approval.id,
                approval.state.name()
            ))),
            OperatorDecided::OtherCall(approval) => Err(OperationError::Over(format!(
                "{} does something else than what has this digest; look at it again",
                approval.id
            ))),
            OperatorDecided::IsChanger(approval) => Err(OperationError::NotTheirs(format!(
                "{} is to be decided by another person than those who changed it",
                approval.id
            ))),
            OperatorDecided::IsRequester(approval) => Err(OperationError::NotTheirs(format!(
                "{} is to be decided by another person than {}, who asked",
                approval.id,
                approval.asked_by()
            ))),
        }
    }

    /// Checks an operator's replacement for a call's arguments against the tool.
    async fn other_arguments(
        &self,
        approval: &StoredApproval,
        text: &str,
        is_plain: bool,
    ) -> Result<String, OperationError> {
        let wrong = |what: &str| Err(OperationError::Wrong(what.to_owned()));
        if !is_plain {
            return wrong(
                "changed arguments are asked for anew: neither forbid the call nor allow it for a day",
            );
        }
        if approval.state == ApprovalState::Open && approval.changed_by.len() >= CHANGES_MAX {
            return wrong("it was changed as often as it may be; approve it as it is, or deny it");
        }
        let Some(parameters) = self.store.approval_parameters(approval.id).await? else {
            return wrong(
                "it was asked for by an older version, so its arguments can't be changed",
            );
        };
        other_arguments(text, &approval.arguments, &parameters, Language::English)
            .map_err(|what| OperationError::Wrong(format!("the call is left as it is: {what}")))
    }

    /// One approval, and whether an operator may allow it.
    ///
    /// # Errors
    /// If it is not there, or the store fails.
    pub async fn approval_for(
        &self,
        id: &str,
        by: &Operator,
    ) -> Result<(ApprovalView, bool), OperationError> {
        let approval = self.stored_approval(id).await?;
        let channel = self.channel_of(approval.account).await?;
        let may_allow = self.may_allow(&approval, channel.as_deref(), by);
        Ok((ApprovalView::of(&approval, channel), may_allow))
    }

    /// Whether an operator may allow a call. At the command line and with a token they may allow every call; in the
    /// console only those for which a tool's settings name one of the operator's people. Membership of the chat does
    /// not count there: a browser session does not show it.
    fn may_allow(&self, approval: &StoredApproval, channel: Option<&str>, by: &Operator) -> bool {
        if by.via != DecidedVia::Console {
            return true;
        }
        let Some(channel) = channel else { return false };
        let admins = self.running.as_ref().map(|running| (running.in_force)());
        let admins = admins
            .as_ref()
            .and_then(|config| config.channels.get(channel));
        by.ids_in(Some(channel)).iter().any(|id| {
            let decider = Decider {
                channel,
                id,
                is_requester: approval.requesters.iter().any(|person| person.id == *id),
                is_admin: admins.is_some_and(|of| of.access.admins.contains(id)),
                is_served: true,
                is_member: false,
            };
            may_decide(&approval.approvers, &decider)
        })
    }

    /// Standing consents that hold, newest first.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn grants(&self) -> Result<Vec<GrantView>, OperationError> {
        let found = self.store.grants((self.clock)(), LISTED_MAX).await?;
        let mut views = Vec::new();
        for grant in found {
            let channel = self.channel_of(grant.account).await?;
            views.push(GrantView::of(grant, channel));
        }
        Ok(views)
    }

    /// Takes a standing consent back.
    ///
    /// # Errors
    /// If none of that id holds.
    pub async fn revoke_grant(&self, id: &str, by: &Operator) -> Result<bool, OperationError> {
        let none = || OperationError::Missing(format!("there is no grant {id} that holds"));
        let grant: GrantId = id.parse().map_err(|_| none())?;
        let name = by.name.clone();
        match self.store.revoke_grant(grant, name, (self.clock)()).await? {
            true => Ok(true),
            false => Err(none()),
        }
    }

    async fn stored_approval(&self, id: &str) -> Result<StoredApproval, OperationError> {
        let none = || OperationError::Missing(format!("there is no approval {id}"));
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

    /// Wakes the work on runs and posts.
    pub(super) fn wake_work(&self) {
        if let Some(running) = &self.running {
            running.wake.runs.notify_one();
            running.wake.posts.notify_one();
        }
    }
}

/// The filter and the limit of a list of approvals.
pub(super) fn listed(all: bool) -> (ApprovalFilter, usize) {
    let filter = ApprovalFilter {
        is_open: !all,
        ..ApprovalFilter::default()
    };
    (filter, LISTED_MAX)
}

/// Checks an operator's name: letters, digits and a few signs, so that every room shows it unchanged.
fn operator_name(name: &str) -> Result<String, OperationError> {
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
