//! Calls that wait, or waited, for a person.

use serde::{Deserialize, Serialize};

use vocative_core::approving::{ApprovalState, DecidedVia, StoredApproval, StoredGrant};
use vocative_core::words::Language;
use vocative_store::contract::ApprovalCount;

/// A call that waits, or waited, for a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalView {
    /// Its id.
    pub id: String,
    /// How it stands: `open`, `approved`, `denied`, `expired`, `cancelled`, `changed`.
    pub state: String,
    /// The channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The platform's id of the chat.
    pub chat: String,
    /// The run that it belongs to.
    pub run: String,
    /// The agent.
    pub agent: String,
    /// The tool.
    pub tool: String,
    /// Where the call goes.
    pub target: String,
    /// The arguments, byte for byte as they are made; empty once they were forgotten.
    pub arguments: String,
    /// What the call does, as a hash in hexadecimal.
    pub digest: String,
    /// Who asked.
    pub asked_by: Vec<String>,
    /// Who changed the arguments of this call before, once for each change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed_by: Vec<String>,
    /// Who may decide, as settings say it.
    pub approvers: Vec<Vec<String>>,
    /// Whether its card shows all of it, so that it can be approved in the room.
    pub is_whole: bool,
    /// When it was asked for, in milliseconds since the Unix epoch.
    pub asked_at_ms: i64,
    /// When it expires; absent: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at_ms: Option<i64>,
    /// When it was decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_at_ms: Option<i64>,
    /// Who decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// How: `card`, `cli`, `api`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// What they said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Where its run had read content that the people who asked did not write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
}

impl ApprovalView {
    /// The view of an approval in a channel.
    #[must_use]
    pub fn of(approval: &StoredApproval, channel: Option<String>) -> Self {
        let decided = (approval.state != ApprovalState::Open).then_some(&approval.decided);
        let list = |list: &Vec<_>| {
            list.iter()
                .map(vocative_core::approving::Approver::name)
                .collect()
        };
        Self {
            id: approval.id.to_string(),
            state: approval.state.name().to_owned(),
            channel,
            chat: approval.chat.clone(),
            run: approval.run.to_string(),
            agent: approval.agent.to_string(),
            tool: approval.tool.clone(),
            target: approval.target.clone(),
            arguments: approval.arguments.clone(),
            digest: approval
                .digest
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect(),
            asked_by: approval
                .requesters
                .iter()
                .map(|person| person.name().to_owned())
                .collect(),
            changed_by: approval
                .changed_by
                .iter()
                .map(|changer| changer.who.name().to_owned())
                .collect(),
            approvers: approval.approvers.0.iter().map(list).collect(),
            is_whole: approval.is_whole,
            asked_at_ms: approval.expiry.asked_at_ms,
            expires_at_ms: approval.expiry.expires_at_ms,
            decided_at_ms: decided.map(|decided| decided.at_ms),
            decided_by: decided.and_then(|decided| decided.name.clone()),
            via: approval.via.map(DecidedVia::name).map(str::to_owned),
            note: approval.decided.note.clone(),
            read: approval
                .read
                .iter()
                .map(|it| it.words(Language::English))
                .collect(),
        }
    }
}

/// What became of the calls of a tool that people were asked about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalCountView {
    /// The tool.
    pub tool: String,
    /// How many were asked about.
    pub asked: u32,
    /// How many wait.
    pub open: u32,
    /// How many were allowed.
    pub approved: u32,
    /// How many were forbidden.
    pub denied: u32,
    /// How many expired without a decision.
    pub expired: u32,
    /// How many ended with their runs.
    pub cancelled: u32,
    /// How many ended because their arguments were changed: they were asked about anew.
    #[serde(default)]
    pub changed: u32,
    /// The median wait of those that a person decided about, in milliseconds; absent: there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_wait_ms: Option<i64>,
}

impl From<ApprovalCount> for ApprovalCountView {
    fn from(count: ApprovalCount) -> Self {
        Self {
            tool: count.tool,
            asked: count.asked,
            open: count.open,
            approved: count.approved,
            denied: count.denied,
            expired: count.expired,
            cancelled: count.cancelled,
            changed: count.changed,
            median_wait_ms: count.median_wait_ms,
        }
    }
}

/// A standing consent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantView {
    /// Its id.
    pub id: String,
    /// The channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The platform's id of the chat.
    pub chat: String,
    /// The agent.
    pub agent: String,
    /// The tool.
    pub tool: String,
    /// Whether it covers one call with its very arguments; else every call of the tool.
    pub is_exact: bool,
    /// Whose questions it covers.
    pub person: String,
    /// Who gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub granted_by: Option<String>,
    /// When, in milliseconds since the Unix epoch.
    pub granted_at_ms: i64,
    /// When it ends; absent: when it is revoked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<i64>,
    /// How often it was used.
    pub uses: u32,
}

impl GrantView {
    /// The view of a grant in a channel.
    #[must_use]
    pub fn of(grant: StoredGrant, channel: Option<String>) -> Self {
        Self {
            id: grant.id.to_string(),
            channel,
            chat: grant.chat,
            agent: grant.agent.to_string(),
            tool: grant.tool,
            is_exact: grant.is_exact,
            person: grant.person,
            granted_by: grant.granted_by,
            granted_at_ms: grant.granted_at_ms,
            until_ms: grant.until_ms,
            uses: grant.uses,
        }
    }
}
