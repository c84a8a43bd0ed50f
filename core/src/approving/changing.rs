//! Other arguments for a call that waits: how a person writes them, and whether theirs count.

use serde_json::{Map, Value};

use crate::approving::{
    ApprovalDeadline, ApprovalState, Approvers, Decider, NoDecision, may_decide,
};
use crate::words::Language;

/// How often the arguments of one call may be changed.
pub const CHANGES_MAX: usize = 10;
/// The longest text of changed arguments, in bytes.
pub const CHANGE_MAX_BYTES: usize = 65_536;

/// What is known of a change when it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallChangeFacts<'a> {
    /// How the approval stands.
    pub state: ApprovalState,
    /// How long it is open.
    pub expiry: ApprovalDeadline,
    /// Who may decide.
    pub approvers: &'a Approvers,
    /// Who changes.
    pub decider: Decider<'a>,
    /// How often the call's arguments were changed before.
    pub changes: usize,
    /// The time, in milliseconds since the Unix epoch.
    pub now_ms: i64,
}

/// Why a person may not change a call's arguments; `None` = they may. Only those who may decide may change.
#[must_use]
pub fn change_refused(facts: &CallChangeFacts<'_>) -> Option<NoDecision> {
    if !may_decide(facts.approvers, &facts.decider) {
        return Some(NoDecision::NotTheirs);
    }
    if facts.state != ApprovalState::Open {
        return Some(NoDecision::Over(facts.state));
    }
    if facts.expiry.is_over(facts.now_ms) {
        return Some(NoDecision::Over(ApprovalState::Expired));
    }
    (facts.changes >= CHANGES_MAX).then_some(NoDecision::ChangedTooOften)
}

/// Whether a reply to a card reads as other arguments: a JSON object, or nothing but lines `name = value`.
#[must_use]
pub fn reads_as_change(text: &str) -> bool {
    let text = text.trim();
    if text.starts_with('{') {
        return true;
    }
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    !text.is_empty() && lines.all(|line| named(line).is_some())
}

/// The arguments as a form shows them: JSON, on several lines where that helps.
#[must_use]
pub fn arguments_to_change(arguments: &str) -> String {
    let read: Result<Value, _> = serde_json::from_str(arguments);
    read.ok()
        .and_then(|read| serde_json::to_string_pretty(&read).ok())
        .unwrap_or_else(|| arguments.to_owned())
}

/// A line `name = value`.
fn named(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let name = name.trim();
    let is_name = |c: char| c.is_alphanumeric() || "_-.$".contains(c);
    (!name.is_empty() && name.chars().all(is_name)).then_some((name, value.trim()))
}

/// The arguments that a person wrote: all of them as a JSON object, or only the changed ones as lines `name = value`,
/// where a value is JSON or else plain text. `read` reads JSON.
///
/// # Errors
/// What is wrong with it, for the person.
pub fn changed_arguments(
    text: &str,
    arguments: &Value,
    schema: &Value,
    read: impl Fn(&str) -> Result<Value, String>,
    language: Language,
) -> Result<Value, String> {
    let text = text.trim();
    if text.len() > CHANGE_MAX_BYTES {
        return Err(language.change_too_long(CHANGE_MAX_BYTES));
    }
    if text.starts_with('{') {
        let read = read(text)?;
        return match read.is_object() {
            true => Ok(read),
            false => Err(language.change_no_object()),
        };
    }
    let mut changed = arguments.as_object().cloned().unwrap_or_default();
    let mut seen = Map::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let Some((name, value)) = named(line) else {
            return Err(language.change_no_line(format_args!("{line:?}")));
        };
        let property = schema["properties"].get(name);
        if property.is_none() && !changed.contains_key(name) {
            return Err(language.change_no_argument(name));
        }
        if seen.insert(name.to_owned(), Value::Null).is_some() {
            return Err(language.change_twice(name));
        }
        let is_text = property.is_some_and(|property| property["type"] == "string");
        let as_json = read(value).ok();
        let value = match as_json {
            Some(Value::String(text)) => Value::String(text),
            Some(other) if !is_text => other,
            _ => Value::String(value.to_owned()),
        };
        changed.insert(name.to_owned(), value);
    }
    match seen.is_empty() {
        true => Err(language.change_empty()),
        false => Ok(Value::Object(changed)),
    }
}

/// What the model is told with the result of a call whose arguments people changed.
#[must_use]
pub fn changed_text(by: &[&str], arguments: &str) -> String {
    format!(
        "Note: people changed the arguments of this call before it was decided about ({}). What follows is of the \
         call with these arguments: {arguments}\n\n",
        by.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(text: &str) -> Result<Value, String> {
        serde_json::from_str(text).map_err(|_| "no JSON".to_owned())
    }

    #[test]
    fn a_reply_is_a_change_only_if_it_is_written_as_one() {
        for text in [
            "{\"a\": 1}",
            " amount = 5",
            "amount=5\n\nto = Ann Bell",
            "{",
        ] {
            assert!(reads_as_change(text), "{text}");
        }
        for text in [
            "",
            "why?",
            "why is a = b?",
            "amount = 5\nplease",
            "= 5",
            "yes",
        ] {
            assert!(!reads_as_change(text), "{text}");
        }
    }

    #[test]
    fn what_is_written_becomes_the_arguments_or_is_refused_with_words() {
        let schema = json!({"properties": {"amount": {"type": "number"}, "to": {"type": "string"},
            "tags": {"type": "array"}}});
        let now = json!({"amount": 120, "to": "Ann"});
        let table = [
            ("{\"amount\": 5}", Ok(json!({"amount": 5}))),
            ("amount = 5", Ok(json!({"amount": 5, "to": "Ann"}))),
            ("to = 7", Ok(json!({"amount": 120, "to": "7"}))),
            (
                "to = \"Bo\"\ntags = [1]",
                Ok(json!({"amount": 120, "to": "Bo", "tags": [1]})),
            ),
            ("amount = much", Ok(json!({"amount": "much", "to": "Ann"}))),
            ("amuont = 5", Err("there is no argument amuont")),
            ("to = a\nto = b", Err("to is there twice")),
            ("{\"amount\": ", Err("no JSON")),
            ("\n", Err("there is nothing in it")),
        ];
        for (text, expected) in table {
            let found = changed_arguments(text, &now, &schema, read, Language::English);
            assert_eq!(found, expected.map_err(str::to_owned), "{text}");
        }
        let long = format!("to = {}", "x".repeat(400_000));
        assert!(changed_arguments(&long, &now, &schema, read, Language::English).is_err());
    }

    #[test]
    fn who_may_not_decide_may_not_change() {
        let approvers = Approvers::from_text("requester").unwrap_or_default();
        let decider = |is_requester| Decider {
            channel: "acme",
            id: "U1",
            is_requester,
            is_admin: false,
            is_served: true,
            is_member: true,
        };
        let facts = |is_requester, state, changes, now_ms| CallChangeFacts {
            state,
            expiry: ApprovalDeadline {
                asked_at_ms: 0,
                expires_at_ms: Some(1_000),
            },
            approvers: &approvers,
            decider: decider(is_requester),
            changes,
            now_ms,
        };
        use ApprovalState::{Changed, Expired, Open};
        let table = [
            (facts(true, Open, 0, 10), None),
            (facts(false, Open, 0, 10), Some(NoDecision::NotTheirs)),
            (facts(true, Changed, 1, 10), Some(NoDecision::Over(Changed))),
            (facts(true, Open, 0, 1_000), Some(NoDecision::Over(Expired))),
            (
                facts(true, Open, CHANGES_MAX, 10),
                Some(NoDecision::ChangedTooOften),
            ),
        ];
        for (facts, expected) in table {
            assert_eq!(change_refused(&facts), expected, "{facts:?}");
        }
    }
}
