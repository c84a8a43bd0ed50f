//! What waits in a chat, for one person: what they may decide about and what they asked for, and forbidding all of it
//! at once. Pure.

use sha2::{Digest as _, Sha256};

use crate::approving::{
    ApprovalState, Decider, StoredApproval, decided_line, may_decide, utc, visible_line,
};
use crate::words::Language;

/// The most calls that are listed.
const LISTED_MAX: usize = 20;
/// Characters of the arguments that stand in the list: all of them stand on the card.
const ARGUMENTS_CHARS: usize = 80;
/// Characters of the code of a list.
const CODE_CHARS: usize = 8;

/// What a person writes behind the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalsOrder {
    /// What waits is listed.
    List,
    /// All that was listed under that code is forbidden.
    DenyAll {
        /// The code of the list that was looked at; `None` = none was named.
        code: Option<String>,
    },
    /// Something else.
    Other,
}

impl ApprovalsOrder {
    /// What that text asks for.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            [] | ["list"] => Self::List,
            ["deny", "all"] => Self::DenyAll { code: None },
            ["deny", "all", code] => Self::DenyAll {
                code: Some(code.to_owned()),
            },
            _ => Self::Other,
        }
    }
}

/// What somebody asks for about calls that wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalsCommand {
    /// What they ask for.
    pub order: ApprovalsOrder,
    /// The channel.
    pub channel: String,
    /// Whether its person administers the bot.
    pub is_admin: bool,
    /// In which language they are answered.
    pub language: Language,
}

/// The open calls of a chat, as one person may see them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApprovalsSeen<'a> {
    /// Those that the person may decide about.
    pub theirs: Vec<&'a StoredApproval>,
    /// Those that the person asked for and others decide about.
    pub asked: Vec<&'a StoredApproval>,
}

impl<'a> ApprovalsSeen<'a> {
    /// The open calls that a person who is served in the chat may see. Those whose time is over are left out.
    #[must_use]
    pub fn of(
        open: &'a [StoredApproval],
        command: &ApprovalsCommand,
        person: &str,
        now_ms: i64,
    ) -> Self {
        let mut seen = Self::default();
        for approval in open {
            if approval.state != ApprovalState::Open || approval.expiry.is_over(now_ms) {
                continue;
            }
            let is_requester = approval.requesters.iter().any(|one| one.id == person);
            let decider = Decider {
                channel: &command.channel,
                id: person,
                is_requester,
                is_admin: command.is_admin,
                is_served: true,
                // The command is given in the chat, so its person is a member.
                is_member: true,
            };
            if may_decide(&approval.approvers, &decider) {
                seen.theirs.push(approval);
            } else if is_requester {
                seen.asked.push(approval);
            }
        }
        seen.theirs.truncate(LISTED_MAX);
        seen.asked.truncate(LISTED_MAX);
        seen
    }

    /// A code for the calls that the person may decide about, made of their ids and digests: another list has another
    /// code.
    #[must_use]
    pub fn code(&self) -> String {
        let mut hash = Sha256::new();
        for approval in &self.theirs {
            hash.update(approval.id.0.as_bytes());
            hash.update(approval.digest);
        }
        let hex: String = hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
        hex[..CODE_CHARS].to_owned()
    }

    /// The calls that an order to forbid all covers: those that were listed, none that came since. `None` = the list
    /// has changed since, or none was named.
    #[must_use]
    pub fn covered(&self, code: Option<&str>) -> Option<&[&'a StoredApproval]> {
        let is_listed = code == Some(self.code().as_str()) && !self.theirs.is_empty();
        is_listed.then_some(self.theirs.as_slice())
    }

    /// The list, for its person.
    #[must_use]
    pub fn text(&self, language: Language) -> String {
        if self.theirs.is_empty() && self.asked.is_empty() {
            return language.approvals_none();
        }
        let mut lines = Vec::new();
        if !self.theirs.is_empty() {
            lines.push(language.approvals_theirs());
            lines.extend(self.theirs.iter().map(|it| line(it, language)));
            lines.push(language.approvals_deny_all(self.code()));
        }
        if !self.asked.is_empty() {
            lines.push(language.approvals_asked());
            let asked = self.asked.iter();
            lines.extend(asked.map(|it| {
                let deciders = it.approvers.words(language);
                format!("{}; {deciders}", line(it, language))
            }));
        }
        lines.join("\n")
    }
}

fn line(approval: &StoredApproval, language: Language) -> String {
    let arguments = visible_line(&approval.arguments);
    let mut shown: String = arguments.chars().take(ARGUMENTS_CHARS).collect();
    if shown.len() < arguments.len() {
        shown.push('…');
    }
    let (tool, by) = (
        visible_line(&approval.tool),
        visible_line(&approval.asked_by()),
    );
    let line = match approval.expiry.expires_at_ms {
        Some(at_ms) => language.approvals_line_until(tool, shown, by, utc(at_ms)),
        None => language.approvals_line(tool, shown, by),
    };
    format!("- {line}")
}

/// The reply if the list that a person named is no longer the list of what waits.
#[must_use]
pub fn other_list(seen: &ApprovalsSeen<'_>, language: Language) -> String {
    format!(
        "{}\n{}",
        language.approvals_other_list(),
        seen.text(language)
    )
}

/// The plain text that replaces the card of a call that was forbidden by command.
#[must_use]
pub fn denied_outcome(approval: &StoredApproval, language: Language) -> String {
    let state = ApprovalState::Denied;
    format!(
        "{}: {}\n{}",
        state.label(language),
        visible_line(&approval.tool),
        decided_line(state, approval.via, &approval.decided, language)
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::approving::{ApprovalDeadline, Approvers, DecidedBy, Requester};
    use crate::ids::{AccountId, AgentName};

    fn approval(n: u8, approvers: &str, by: &str) -> StoredApproval {
        let id = format!("0198c5de-1234-7abc-8def-0123456789{n:02x}");
        StoredApproval {
            id: id.parse().unwrap(),
            run: id.parse().unwrap(),
            account: AccountId(1),
            chat: "C1".to_owned(),
            agent: AgentName::trusted("helper"),
            tool: format!("tool{n}"),
            target: String::new(),
            arguments: "{\"a\":1}".to_owned(),
            digest: [n; 32],
            approvers: Approvers::from_text(approvers).unwrap(),
            is_whole: true,
            state: ApprovalState::Open,
            expiry: ApprovalDeadline {
                asked_at_ms: 0,
                expires_at_ms: Some(1_700_000_000_000),
            },
            requesters: vec![Requester {
                id: by.to_owned(),
                display_name: None,
                username: None,
            }],
            changed_by: Vec::new(),
            decided: DecidedBy::default(),
            via: None,
            read: Vec::new(),
        }
    }

    fn command(is_admin: bool) -> ApprovalsCommand {
        ApprovalsCommand {
            order: ApprovalsOrder::List,
            channel: "acme".to_owned(),
            is_admin,
            language: Language::English,
        }
    }

    #[test]
    fn a_person_sees_what_is_theirs_to_decide_and_what_they_asked_for() {
        let open = [
            approval(1, "requester", "U1"),
            approval(2, "admins", "U1"),
            approval(3, "requester", "U2"),
            approval(4, "four_eyes", "U2"),
        ];
        let tools = |list: &[&StoredApproval]| -> Vec<String> {
            list.iter().map(|it| it.tool.clone()).collect()
        };
        let seen = |person, is_admin| ApprovalsSeen::of(&open, &command(is_admin), person, 1);
        let ann = seen("U1", false);
        assert_eq!(tools(&ann.theirs), ["tool1", "tool4"]);
        assert_eq!(tools(&ann.asked), ["tool2"]);
        let bob = seen("U2", false);
        assert_eq!(tools(&bob.theirs), ["tool3"]);
        assert_eq!(tools(&bob.asked), ["tool4"]);
        assert_eq!(tools(&seen("U3", true).theirs), ["tool2", "tool4"]);
        // A call whose time is over is not listed.
        let late = ApprovalsSeen::of(&open, &command(true), "U1", 1_700_000_000_000);
        assert_eq!(late, ApprovalsSeen::default());
        insta::assert_snapshot!(ann.text(Language::English).replace(&ann.code(), "CODE"), @r#"
        You can decide about these, by the buttons of their cards:
        - tool1 {"a":1}, asked for by U1, until 2023-11-14 22:13 UTC
        - tool4 {"a":1}, asked for by U2, until 2023-11-14 22:13 UTC
        "deny all CODE" behind the same command forbids all that you can decide about here.
        You asked for these, and others decide:
        - tool2 {"a":1}, asked for by U1, until 2023-11-14 22:13 UTC; those who administer me
        "#);
    }

    #[test]
    fn an_order_covers_what_was_listed_and_nothing_else() {
        let mut open = vec![
            approval(1, "requester", "U1"),
            approval(2, "requester", "U1"),
        ];
        let command = command(false);
        let seen = ApprovalsSeen::of(&open, &command, "U1", 1);
        let code = seen.code();
        assert_eq!(seen.covered(Some(&code)).map(<[_]>::len), Some(2));
        assert_eq!(seen.covered(None), None);
        let changed: Vec<StoredApproval> = open
            .iter()
            .map(|it| StoredApproval {
                digest: [9; 32],
                ..it.clone()
            })
            .collect();
        let other = ApprovalsSeen::of(&changed, &command, "U1", 1);
        assert_eq!(other.covered(Some(&code)), None, "another call");
        open.push(approval(3, "requester", "U1"));
        let more = ApprovalsSeen::of(&open, &command, "U1", 1);
        assert_eq!(more.covered(Some(&code)), None, "one more");
        let nothing = ApprovalsSeen::default();
        assert_eq!(nothing.covered(Some(&nothing.code())), None);
    }

    #[test]
    fn orders_are_read() {
        let table = [
            ("", ApprovalsOrder::List),
            (" LIST ", ApprovalsOrder::List),
            ("deny all", ApprovalsOrder::DenyAll { code: None }),
            (
                "Deny ALL 12AB34cd",
                ApprovalsOrder::DenyAll {
                    code: Some("12ab34cd".to_owned()),
                },
            ),
            ("approve all", ApprovalsOrder::Other),
            ("of the budget", ApprovalsOrder::Other),
        ];
        for (text, expected) in table {
            assert_eq!(ApprovalsOrder::read(text), expected, "{text}");
        }
    }
}
