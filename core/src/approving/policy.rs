//! Whether a call asks a person first: the strictest of what is set for its tool and for its agent.

use serde_json::Value;

/// When calls of a tool wait for a person.
#[derive(Clone, Debug, PartialEq)]
pub enum ApprovalPolicy {
    /// No call does.
    Never,
    /// Calls do whose arguments match one of the rules, or can't be compared with it.
    When(Vec<ArgumentRule>),
    /// A person's first call in a chat does; its consent covers the later ones.
    First,
    /// Every call does.
    Always,
}

/// A rule over one argument.
#[derive(Clone, Debug, PartialEq)]
pub struct ArgumentRule {
    /// Where the value is, as a JSON pointer: `/amount`.
    pub at: String,
    /// Which values make the call wait.
    pub test: ArgumentTest,
}

/// What an argument is held to.
#[derive(Clone, Debug, PartialEq)]
pub enum ArgumentTest {
    /// It is that value.
    Eq(Value),
    /// It is another value.
    Ne(Value),
    /// It is greater.
    Gt(f64),
    /// It is at least that.
    Ge(f64),
    /// It is less.
    Lt(f64),
    /// It is at most that.
    Le(f64),
    /// It is one of these.
    In(Vec<Value>),
    /// It is none of these.
    NotIn(Vec<Value>),
    /// It is a text that begins so.
    StartsWith(String),
    /// It is a text that ends so.
    EndsWith(String),
    /// It is a text with that in it.
    Contains(String),
    /// It is given, or is not.
    Exists(bool),
}

/// Whether a call needs a person, from the least strict on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ApprovalRule {
    /// It is made without asking.
    Free,
    /// One consent covers the person's later calls of the tool in the chat.
    First,
    /// It asks, unless a grant covers exactly this call.
    Always,
}

impl ApprovalRule {
    /// The stored name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::First => "first",
            Self::Always => "always",
        }
    }
}

/// What the strictest of the policies says of a call.
#[must_use]
pub fn ask<'a>(
    policies: impl IntoIterator<Item = &'a ApprovalPolicy>,
    arguments: &Value,
) -> ApprovalRule {
    let each = policies.into_iter().map(|policy| match policy {
        ApprovalPolicy::Never => ApprovalRule::Free,
        ApprovalPolicy::First => ApprovalRule::First,
        ApprovalPolicy::Always => ApprovalRule::Always,
        ApprovalPolicy::When(rules) if is_named(rules, arguments) => ApprovalRule::Always,
        ApprovalPolicy::When(_) => ApprovalRule::Free,
    });
    each.max().unwrap_or(ApprovalRule::Always)
}

fn is_named(rules: &[ArgumentRule], arguments: &Value) -> bool {
    !arguments.is_object() || rules.iter().any(|rule| rule.asks(arguments))
}

impl ArgumentRule {
    /// Whether these arguments ask. A value that is missing, or of another type than the rule is about, asks.
    fn asks(&self, arguments: &Value) -> bool {
        let found = arguments.pointer(&self.at);
        if let ArgumentTest::Exists(wanted) = self.test {
            return found.is_some() == wanted;
        }
        found.is_none_or(|found| self.test.holds(found).unwrap_or(true))
    }
}

impl ArgumentTest {
    /// Whether it holds; `None` if the value is of another type than the test is about.
    fn holds(&self, found: &Value) -> Option<bool> {
        Some(match self {
            Self::Eq(value) => is_same(found, value)?,
            Self::Ne(value) => !is_same(found, value)?,
            Self::Gt(limit) => found.as_f64()? > *limit,
            Self::Ge(limit) => found.as_f64()? >= *limit,
            Self::Lt(limit) => found.as_f64()? < *limit,
            Self::Le(limit) => found.as_f64()? <= *limit,
            Self::In(values) => is_among(found, values)?,
            Self::NotIn(values) => !is_among(found, values)?,
            Self::StartsWith(text) => found.as_str()?.starts_with(text.as_str()),
            Self::EndsWith(text) => found.as_str()?.ends_with(text.as_str()),
            Self::Contains(text) => found.as_str()?.contains(text.as_str()),
            Self::Exists(_) => true,
        })
    }
}

/// Whether two values are the same; `None` if they are of different types. `120` equals `120.0`.
fn is_same(one: &Value, other: &Value) -> Option<bool> {
    if let (Some(one), Some(other)) = (one.as_f64(), other.as_f64()) {
        return Some(one.total_cmp(&other).is_eq());
    }
    let is_one_type = std::mem::discriminant(one) == std::mem::discriminant(other);
    is_one_type.then(|| one == other)
}

/// Whether a value is in a list; `None` if the list has none of its type.
fn is_among(found: &Value, values: &[Value]) -> Option<bool> {
    let comparable: Vec<bool> = values
        .iter()
        .filter_map(|value| is_same(found, value))
        .collect();
    (!comparable.is_empty()).then(|| comparable.contains(&true))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(at: &str, test: ArgumentTest) -> ApprovalPolicy {
        let at = at.to_owned();
        ApprovalPolicy::When(vec![ArgumentRule { at, test }])
    }

    #[test]
    fn the_strictest_policy_wins_and_none_at_all_asks() {
        use ApprovalPolicy::{Always, First, Never};
        let arguments = json!({});
        let table: [(&[ApprovalPolicy], ApprovalRule); 7] = [
            (&[], ApprovalRule::Always),
            (&[Never], ApprovalRule::Free),
            (&[First], ApprovalRule::First),
            (&[Never, First], ApprovalRule::First),
            (&[First, Always], ApprovalRule::Always),
            (&[Always, Never], ApprovalRule::Always),
            (
                &[ApprovalPolicy::When(Vec::new()), Never],
                ApprovalRule::Free,
            ),
        ];
        for (policies, expected) in table {
            assert_eq!(ask(policies, &arguments), expected, "{policies:?}");
        }
    }

    #[test]
    fn a_rule_asks_where_it_holds_and_where_it_cannot_be_read() {
        use ArgumentTest::{
            Contains, EndsWith, Eq, Exists, Ge, Gt, In, Le, Lt, Ne, NotIn, StartsWith,
        };
        let arguments = json!({
            "amount": 100, "to": "ann@example.com", "dry": true, "lines": [{"n": 7}], "nothing": null
        });
        let table = [
            ("/amount", Gt(100.0), false),
            ("/amount", Gt(99.5), true),
            ("/amount", Ge(100.0), true),
            ("/amount", Lt(100.0), false),
            ("/amount", Le(100.0), true),
            ("/amount", Eq(json!(100.0)), true),
            ("/amount", Eq(json!(101)), false),
            ("/amount", Ne(json!(100)), false),
            ("/dry", Eq(json!(true)), true),
            ("/dry", Ne(json!(true)), false),
            ("/to", In(vec![json!("bob@example.com")]), false),
            ("/to", In(vec![json!("ann@example.com")]), true),
            ("/to", NotIn(vec![json!("ann@example.com")]), false),
            ("/to", EndsWith("@example.com".to_owned()), true),
            ("/to", StartsWith("bob".to_owned()), false),
            ("/to", Contains("nn@".to_owned()), true),
            ("/lines/0/n", Gt(6.0), true),
            ("/lines/0/n", Gt(7.0), false),
            ("/dry", Exists(true), true),
            ("/dry", Exists(false), false),
            ("/wet", Exists(true), false),
            ("/wet", Exists(false), true),
            // A value that is missing or of another type asks.
            ("/missing", Gt(5.0), true),
            ("/to", Gt(5.0), true),
            ("/amount", StartsWith("1".to_owned()), true),
            ("/amount", Eq(json!("100")), true),
            ("/amount", Ne(json!("100")), true),
            ("/amount", NotIn(vec![json!("100")]), true),
            ("/nothing", Gt(5.0), true),
            ("/amount", NotIn(Vec::new()), true),
        ];
        for (at, test, asks) in table {
            let expected = if asks {
                ApprovalRule::Always
            } else {
                ApprovalRule::Free
            };
            let policy = rule(at, test);
            assert_eq!(ask([&policy], &arguments), expected, "{policy:?}");
            assert_eq!(
                ask([&policy], &json!("{broken")),
                ApprovalRule::Always,
                "{policy:?}"
            );
        }
    }
}
