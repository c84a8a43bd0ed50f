//! An approval and a grant as they stand.

use crate::approving::{ApprovalDeadline, ApprovalState, Approvers, DecidedBy, DecidedVia, Taint};
use crate::ids::{AccountId, AgentName, ApprovalId, GrantId, RunId};
use crate::tool_call::CallDigest;

/// An approval as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredApproval {
    /// Its identity.
    pub id: ApprovalId,
    /// The run that waits.
    pub run: RunId,
    /// The account through which it was asked.
    pub account: AccountId,
    /// The platform's id of the chat.
    pub chat: String,
    /// The agent.
    pub agent: AgentName,
    /// The tool, as the model names it.
    pub tool: String,
    /// Where its calls go, for people.
    pub target: String,
    /// The arguments, byte for byte as they are made; empty once they were forgotten.
    pub arguments: String,
    /// What the call does.
    pub digest: CallDigest,
    /// Who may decide.
    pub approvers: Approvers,
    /// Whether its card shows all of the call.
    pub is_whole: bool,
    /// How it stands.
    pub state: ApprovalState,
    /// How long it is open.
    pub expiry: ApprovalDeadline,
    /// Everybody who asked for the run.
    pub requesters: Vec<Requester>,
    /// Who changed the call's arguments before, once for each change.
    pub changed_by: Vec<Changer>,
    /// Who decided, when, and what they said.
    pub decided: DecidedBy,
    /// How they decided.
    pub via: Option<DecidedVia>,
    /// What its run had read that its askers did not write, when it asked for the call.
    pub read: Vec<Taint>,
}

/// Somebody who asked for a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requester {
    /// The platform's id.
    pub id: String,
    /// The name that people see, if one is known.
    pub display_name: Option<String>,
    /// The username, where the platform has one.
    pub username: Option<String>,
}

impl Requester {
    /// The best name there is.
    #[must_use]
    pub fn name(&self) -> &str {
        let names = self.display_name.as_ref().or(self.username.as_ref());
        names.unwrap_or(&self.id)
    }

    /// Whether this may be the person of that name.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        let name = name.trim().trim_start_matches('@');
        let own = [
            Some(&self.id),
            self.display_name.as_ref(),
            self.username.as_ref(),
        ];
        own.into_iter()
            .flatten()
            .any(|own| own.to_lowercase() == name.to_lowercase())
    }
}

/// Somebody who changed the arguments of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changer {
    /// A person; an operator by their name alone.
    pub who: Requester,
    /// The platform's ids of the people who are that operator; `None` = it was a person of the room.
    pub operator_people: Option<Vec<String>>,
}

impl Changer {
    /// Whether the changer may have been a person of the room with that id and one of these names. An operator of whom
    /// no ids are known may be anybody of that name.
    #[must_use]
    pub fn may_be(&self, id: &str, names: &[&str]) -> bool {
        match &self.operator_people {
            None => self.who.id == id,
            Some(people) if people.is_empty() => {
                self.who.is_called(id) || names.iter().any(|name| self.who.is_called(name))
            }
            Some(people) => people.iter().any(|person| person == id),
        }
    }

    /// Whether the changer may have been the operator of that name, whose ids on the platform are `people`.
    #[must_use]
    pub fn may_be_operator(&self, name: &str, people: &[String]) -> bool {
        let mut own = self.operator_people.iter().flatten().chain([&self.who.id]);
        self.who.is_called(name) || own.any(|person| people.contains(person))
    }
}

impl StoredApproval {
    /// The names of those who asked, as people read them.
    #[must_use]
    pub fn asked_by(&self) -> String {
        let names: Vec<&str> = self.requesters.iter().map(Requester::name).collect();
        names.join(", ")
    }
}

/// A standing consent as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredGrant {
    /// Its identity.
    pub id: GrantId,
    /// The account.
    pub account: AccountId,
    /// The platform's id of the chat.
    pub chat: String,
    /// The agent.
    pub agent: AgentName,
    /// The tool.
    pub tool: String,
    /// Whether it covers only calls with exactly the same arguments; else every call of the tool.
    pub is_exact: bool,
    /// Whose questions it covers, by the best name there is.
    pub person: String,
    /// Who gave it.
    pub granted_by: Option<String>,
    /// When, in milliseconds since the Unix epoch.
    pub granted_at_ms: i64,
    /// When it ends, in milliseconds since the Unix epoch; `None` = when it is revoked.
    pub until_ms: Option<i64>,
    /// How often it was used.
    pub uses: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_known_by_each_of_their_names() {
        let ann = Requester {
            id: "U0ANN".to_owned(),
            display_name: Some("Ann Bell".to_owned()),
            username: Some("ann".to_owned()),
        };
        for name in ["u0ann", "Ann Bell", " ann bell ", "@Ann"] {
            assert!(ann.is_called(name), "{name}");
        }
        assert!(!ann.is_called("bob"));
        assert_eq!(ann.name(), "Ann Bell");
    }
}
