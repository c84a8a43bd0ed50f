//! What people and the model are told of a decision.

use chrono::DateTime;

use crate::approving::{ApprovalState, Approvers, NoDecision};
use crate::words::Language;

/// How somebody decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DecidedVia {
    /// By a button of the card.
    Card,
    /// By a command in the chat.
    Command,
    /// By the command line, on the machine of the daemon.
    Cli,
    /// By the API.
    Api,
    /// In the console: by a person whom the tool's settings name, or to forbid the call.
    Console,
}

impl DecidedVia {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Card,
        Self::Command,
        Self::Cli,
        Self::Api,
        Self::Console,
    ];

    /// The stored and shown name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Card => "card",
            Self::Command => "command",
            Self::Cli => "cli",
            Self::Api => "api",
            Self::Console => "console",
        }
    }

    /// The way of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|via| via.name() == name)
    }
}

/// Who decided, when, and what they said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecidedBy {
    /// Their name; `None` where nobody did.
    pub name: Option<String>,
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// What they said.
    pub note: Option<String>,
}

/// A time as people read it.
#[must_use]
pub fn utc(at_ms: i64) -> String {
    DateTime::from_timestamp_millis(at_ms).map_or_else(
        || "?".to_owned(),
        |at| at.format("%Y-%m-%d %H:%M UTC").to_string(),
    )
}

/// Who decided and when, or why nobody did, for people.
#[must_use]
pub fn decided_line(
    state: ApprovalState,
    via: Option<DecidedVia>,
    by: &DecidedBy,
    language: Language,
) -> String {
    match (&by.name, via) {
        (Some(name), Some(DecidedVia::Cli | DecidedVia::Api | DecidedVia::Console)) => {
            language.decided_by_operator(name, utc(by.at_ms))
        }
        (Some(name), _) => language.decided_by(name, utc(by.at_ms)),
        (None, _) if state == ApprovalState::Expired => language.nobody_decided(),
        (None, _) => language.not_answered_any_more(),
    }
}

/// Why a call is not made, for the model.
#[must_use]
pub fn denied_text(state: ApprovalState, by: &DecidedBy) -> String {
    let why = match (state, &by.name) {
        (ApprovalState::Denied, Some(name)) => format!("{name} did not allow it"),
        (ApprovalState::Denied, None) => "it was not allowed".to_owned(),
        (ApprovalState::Expired, _) => "nobody decided about it in time".to_owned(),
        (ApprovalState::Cancelled, _) => "asking for it was broken off".to_owned(),
        (ApprovalState::Open | ApprovalState::Approved | ApprovalState::Changed, _) => {
            "it waits for a person".to_owned()
        }
    };
    let note = by.note.as_deref().map(str::trim);
    let note = note.filter(|note| !note.is_empty());
    let said = note.map_or_else(String::new, |note| format!(", and said: {note}"));
    format!("not called: {why}{said}. Say so; do not ask for it again unless a person wants you to")
}

/// What a person is told whose press decides nothing.
#[must_use]
pub fn told_text(
    told: NoDecision,
    approvers: &Approvers,
    by: &DecidedBy,
    language: Language,
) -> String {
    let at = utc(by.at_ms);
    match told {
        NoDecision::NotTheirs => language.not_yours_to_decide(approvers.words(language)),
        NoDecision::Over(ApprovalState::Approved) => match &by.name {
            Some(name) => language.was_approved_by(name, at),
            None => language.was_approved(at),
        },
        NoDecision::Over(ApprovalState::Denied) => match &by.name {
            Some(name) => language.was_denied_by(name, at),
            None => language.was_denied(at),
        },
        NoDecision::Over(ApprovalState::Changed) => match &by.name {
            Some(name) => language.was_changed_by(name, at),
            None => language.was_changed(at),
        },
        NoDecision::Over(ApprovalState::Expired) => language.call_expired(),
        NoDecision::Over(ApprovalState::Cancelled) => language.call_cancelled(),
        NoDecision::OwnChange => language.own_change(),
        NoDecision::ChangedTooOften => language.changed_too_often(),
        NoDecision::Unchangeable => language.call_unchangeable(),
        NoDecision::Over(ApprovalState::Open) | NoDecision::NotThisCard => {
            language.button_not_valid()
        }
        NoDecision::NotYet => language.card_being_posted(),
        NoDecision::NotWhole => language.card_shows_not_all(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ann(note: Option<&str>) -> DecidedBy {
        DecidedBy {
            name: Some("Ann".to_owned()),
            at_ms: 1_700_000_000_000,
            note: note.map(str::to_owned),
        }
    }

    #[test]
    fn the_model_is_told_who_did_not_allow_it_and_why() {
        use ApprovalState::{Cancelled, Denied, Expired};
        let rest = ". Say so; do not ask for it again unless a person wants you to";
        let table = [
            (Denied, ann(None), "not called: Ann did not allow it"),
            (
                Denied,
                ann(Some(" ask Carl first ")),
                "not called: Ann did not allow it, and said: ask Carl first",
            ),
            (
                Expired,
                DecidedBy::default(),
                "not called: nobody decided about it in time",
            ),
            (
                Cancelled,
                DecidedBy::default(),
                "not called: asking for it was broken off",
            ),
        ];
        for (state, by, expected) in table {
            assert_eq!(denied_text(state, &by), format!("{expected}{rest}"));
        }
    }

    #[test]
    fn a_person_is_told_why_nothing_was_decided() {
        let approvers = Approvers::from_text("requester").unwrap_or_default();
        let table = [
            (
                NoDecision::NotTheirs,
                "You can't decide this. Who can: the person who asked.",
            ),
            (
                NoDecision::Over(ApprovalState::Approved),
                "It was approved by Ann at 2023-11-14 22:13 UTC.",
            ),
            (
                NoDecision::Over(ApprovalState::Expired),
                "Its time is over: it was not made.",
            ),
            (NoDecision::NotThisCard, "This button is not valid here."),
        ];
        for (told, expected) in table {
            let said = told_text(told, &approvers, &ann(None), Language::English);
            assert_eq!(said, expected);
        }
    }

    #[test]
    fn ways_are_read_back() {
        for via in DecidedVia::ALL {
            assert_eq!(DecidedVia::from_name(via.name()), Some(via));
        }
    }
}
