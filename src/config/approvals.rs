//! Checks of `approval`, `approvers` and `approval_expires_s`, of tools and of agents.

use serde_json::Value;

use super::resolve::Review;
use super::settings::{Agent, McpServer, Tool};
use crate::tools::{ApprovalExpiry, ApprovalSettings};
use vocative_core::approving::AfterUntrusted;
use vocative_core::approving::{ApprovalPolicy, Approver, ArgumentRule, ArgumentTest};
use vocative_core::tool_call::CallRule;

/// The shortest time for which a call may wait, in seconds.
const EXPIRES_MIN_S: u64 = 1;
/// The longest time for which a call may wait, in seconds: 30 days.
const EXPIRES_MAX_S: u64 = 2_592_000;
/// The values of `approvers`.
const APPROVERS: &str =
    "\"requester\", \"admins\", \"anyone_in_chat\", \"four_eyes\" or people as CHANNEL/ID";

/// The three settings of a table.
pub(super) struct Shapes<'a> {
    pub(super) approval: Option<&'a Value>,
    pub(super) approvers: Option<&'a Value>,
    pub(super) expires_s: Option<&'a Value>,
    pub(super) after_untrusted: Option<AfterUntrusted>,
}

/// Reads the settings of a table, and reports what is wrong with them.
pub(super) fn resolve_approval(
    table: &str,
    shapes: &Shapes<'_>,
    channels: &[&str],
    review: &mut Review<'_>,
) -> ApprovalSettings {
    let mut note =
        |setting: &str, what: String| review.problem(&format!("{table}.{setting}"), what);
    let mut settings = ApprovalSettings::default();
    match shapes.approval.map(policy).transpose() {
        Ok(policy) => settings.policy = policy,
        Err(what) => note("approval", what),
    }
    match shapes
        .approvers
        .map(|value| approvers(value, channels))
        .transpose()
    {
        Ok(approvers) => settings.approvers = approvers,
        Err(what) => note("approvers", what),
    }
    settings.after_untrusted = shapes.after_untrusted;
    match shapes.expires_s.map(expiry).transpose() {
        Ok(expiry) => settings.expiry = expiry,
        Err(what) => note("approval_expires_s", what),
    }
    settings
}

/// Checks that every tool whose calls wait has approvers, with every agent that has the tool.
pub(super) fn check_approvals<'a>(
    tools: impl IntoIterator<Item = (&'a String, &'a Tool)>,
    agents: &[&Agent],
    review: &mut Review<'_>,
) {
    for (name, tool) in tools {
        let having = agents.iter().filter(|agent| agent.tools.contains(name));
        check_approval(
            &format!("tools.{name}"),
            &tool.approval,
            tool.rule(),
            having.map(|agent| &agent.approval),
            review,
        );
    }
}

/// The same check for tools of MCP servers: each may act, whatever its server says.
pub(super) fn check_server_approvals<'a>(
    servers: impl IntoIterator<Item = (&'a String, &'a McpServer)>,
    agents: &[&Agent],
    review: &mut Review<'_>,
) {
    for (name, server) in servers {
        let of_it = format!("{name}__");
        let has = |agent: &&&Agent| agent.tools.iter().any(|tool| tool.starts_with(&of_it));
        check_approval(
            &format!("mcp.{name}"),
            &server.approval,
            CallRule::Once,
            agents.iter().filter(has).map(|agent| &agent.approval),
            review,
        );
    }
}

/// Checks that a table's tools have approvers, together with each of these agents; if there are none, without an agent.
fn check_approval<'a>(
    table: &str,
    approval: &ApprovalSettings,
    rule: CallRule,
    agents: impl Iterator<Item = &'a ApprovalSettings>,
    review: &mut Review<'_>,
) {
    let asks_nobody = |agent: &ApprovalSettings| approval.with(agent, rule).asks_nobody();
    let mut agents = agents.peekable();
    let is_unused = agents.peek().is_none();
    if agents.any(asks_nobody) || (is_unused && asks_nobody(&ApprovalSettings::default())) {
        review.problem(
            &format!("{table}.approvers"),
            format!(
                "must say who may allow its calls: {APPROVERS}. If calls that act need nobody's consent, \
                 say approval = \"never\""
            ),
        );
    }
}

fn policy(value: &Value) -> Result<ApprovalPolicy, String> {
    let unknown = || {
        "must be \"never\", \"always\", \"first\" or { when = [{ at = \"/amount\", gt = 100 }] }"
            .to_owned()
    };
    match value {
        Value::String(word) => match word.as_str() {
            "never" => Ok(ApprovalPolicy::Never),
            "always" => Ok(ApprovalPolicy::Always),
            "first" => Ok(ApprovalPolicy::First),
            _ => Err(unknown()),
        },
        Value::Object(table) => {
            let rules = table.get("when").and_then(Value::as_array);
            let rules = rules.filter(|rules| !rules.is_empty() && table.len() == 1);
            let rules = rules.ok_or_else(unknown)?;
            let rules: Result<_, _> = rules.iter().map(rule).collect();
            Ok(ApprovalPolicy::When(rules?))
        }
        _ => Err(unknown()),
    }
}

fn rule(value: &Value) -> Result<ArgumentRule, String> {
    let wrong = |what: &str| Err(format!("the rule {value}: {what}"));
    let Some(table) = value.as_object() else {
        return wrong("is no table");
    };
    let Some(at) = table.get("at").and_then(Value::as_str) else {
        return wrong("must say where the argument is: at = \"/amount\"");
    };
    if !at.starts_with('/') {
        return wrong("at must be a JSON pointer, as /amount");
    }
    let mut tests = table.iter().filter(|(key, _)| *key != "at");
    let (Some((name, held_to)), None) = (tests.next(), tests.next()) else {
        return wrong("must have one test beside at");
    };
    match test(name, held_to) {
        Some(test) => Ok(ArgumentRule {
            at: at.to_owned(),
            test,
        }),
        None => wrong(
            "its test must be eq, ne (a value), gt, ge, lt, le (a number), in, not_in (a list), starts_with, \
             ends_with, contains (a text) or exists (true or false)",
        ),
    }
}

fn test(name: &str, value: &Value) -> Option<ArgumentTest> {
    let text = || value.as_str().map(str::to_owned);
    Some(match name {
        "eq" => ArgumentTest::Eq(value.clone()),
        "ne" => ArgumentTest::Ne(value.clone()),
        "gt" => ArgumentTest::Gt(value.as_f64()?),
        "ge" => ArgumentTest::Ge(value.as_f64()?),
        "lt" => ArgumentTest::Lt(value.as_f64()?),
        "le" => ArgumentTest::Le(value.as_f64()?),
        "in" => ArgumentTest::In(value.as_array()?.clone()),
        "not_in" => ArgumentTest::NotIn(value.as_array()?.clone()),
        "starts_with" => ArgumentTest::StartsWith(text()?),
        "ends_with" => ArgumentTest::EndsWith(text()?),
        "contains" => ArgumentTest::Contains(text()?),
        "exists" => ArgumentTest::Exists(value.as_bool()?),
        _ => return None,
    })
}

fn approvers(value: &Value, channels: &[&str]) -> Result<Vec<Approver>, String> {
    let names: Vec<&Value> = match value {
        Value::Array(names) => names.iter().collect(),
        one => vec![one],
    };
    if names.is_empty() {
        return Err(format!("names nobody: {APPROVERS}"));
    }
    let one = |name: &Value| {
        let approver = name.as_str().and_then(Approver::from_name);
        match approver {
            Some(Approver::Person { channel, .. }) if !channels.contains(&channel.as_str()) => {
                Err(format!("there is no channel \"{channel}\""))
            }
            Some(approver) => Ok(approver),
            None => Err(format!("{name} is none of {APPROVERS}")),
        }
    };
    let mut approvers: Vec<Approver> = names.into_iter().map(one).collect::<Result<_, _>>()?;
    approvers.sort();
    approvers.dedup();
    Ok(approvers)
}

fn expiry(value: &Value) -> Result<ApprovalExpiry, String> {
    if value == "never" {
        return Ok(ApprovalExpiry::Never);
    }
    let seconds = value.as_u64();
    let seconds = seconds.filter(|seconds| (EXPIRES_MIN_S..=EXPIRES_MAX_S).contains(seconds));
    match seconds.and_then(|seconds| i64::try_from(seconds).ok()) {
        Some(seconds) => Ok(ApprovalExpiry::After {
            ms: seconds * 1_000,
        }),
        None => Err(format!(
            "must be between {EXPIRES_MIN_S} and {EXPIRES_MAX_S}, or \"never\""
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_are_read_or_refused_with_what_they_may_be() {
        assert_eq!(policy(&json!("first")), Ok(ApprovalPolicy::First));
        let rules = json!({"when": [{"at": "/amount", "gt": 100}, {"at": "/to", "ends_with": "@x.example"}]});
        let rule = |at: &str, test| ArgumentRule {
            at: at.to_owned(),
            test,
        };
        assert_eq!(
            policy(&rules),
            Ok(ApprovalPolicy::When(vec![
                rule("/amount", ArgumentTest::Gt(100.0)),
                rule("/to", ArgumentTest::EndsWith("@x.example".to_owned())),
            ]))
        );
        for wrong in [
            json!("sometimes"),
            json!(true),
            json!({"when": []}),
            json!({"when": [{"at": "/a", "eq": 1}], "else": 1}),
            json!({"when": [{"at": "a", "eq": 1}]}),
            json!({"when": [{"eq": 1}]}),
            json!({"when": [{"at": "/a"}]}),
            json!({"when": [{"at": "/a", "eq": 1, "ne": 2}]}),
            json!({"when": [{"at": "/a", "gt": "1"}]}),
            json!({"when": [{"at": "/a", "matches": "x"}]}),
        ] {
            assert!(policy(&wrong).is_err(), "{wrong}");
        }
        let channels = ["acme"];
        let read = |value| approvers(&value, &channels);
        assert_eq!(read(json!("admins")), Ok(vec![Approver::Admins]));
        let ann = Approver::from_name("acme/U1").into_iter();
        let both: Vec<Approver> = [Approver::FourEyes].into_iter().chain(ann).collect();
        assert_eq!(read(json!(["acme/U1", "four_eyes", "acme/U1"])), Ok(both));
        for wrong in [
            json!([]),
            json!("nobody"),
            json!(["other/U1"]),
            json!(7),
            json!(["acme/"]),
        ] {
            assert!(read(wrong.clone()).is_err(), "{wrong}");
        }
        assert_eq!(expiry(&json!("never")), Ok(ApprovalExpiry::Never));
        assert_eq!(
            expiry(&json!(300)),
            Ok(ApprovalExpiry::After { ms: 300_000 })
        );
        for wrong in [json!(0), json!(2_592_001), json!("always"), json!(-1)] {
            assert!(expiry(&wrong).is_err(), "{wrong}");
        }
    }
}
