//! The rules of a network, which decide which agent is next, term by term.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::shape::{RuleShape, WhenShape};
use super::{NetworkChecks, one_or_more};
use crate::config::schema::quoted;
use crate::config::suggest::nearest;
use crate::config::tools::is_known_tool;
use vocative_core::ids::AgentName;
use vocative_core::place::Scope;
use vocative_core::routing::state::{StateKind, StateSchema};
use vocative_core::routing::{
    AskerKind, CountRange, MEMBERS_MAX, RULES_MAX, RoutingRule, RuleAction, RuleTerm, StateTest,
    TextTest, When,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RangeForm {
    ge: Option<u32>,
    le: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TextForm {
    contains: Option<Value>,
    matches: Option<String>,
    is_empty: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StateForm {
    r#in: Option<Vec<Value>>,
    ge: Option<f64>,
    le: Option<f64>,
    is_set: Option<bool>,
}

impl NetworkChecks<'_, '_> {
    /// The rules without those that have mistakes.
    pub(super) fn rules(
        &mut self,
        shapes: Vec<RuleShape>,
        state: &StateSchema,
    ) -> Vec<RoutingRule> {
        if shapes.is_empty() {
            self.problem(
                "rules",
                "there is none, so nobody would be called: add [[networks.NAME.rules]]",
            );
        }
        if shapes.len() > RULES_MAX {
            self.problem("rules", format!("has more than {RULES_MAX} rules"));
        }
        let each = shapes.into_iter().enumerate();
        each.filter_map(|(n, shape)| self.rule(&format!("rules[{n}]"), shape, state))
            .collect()
    }

    fn rule(&mut self, place: &str, shape: RuleShape, state: &StateSchema) -> Option<RoutingRule> {
        let actions = [shape.call.is_some(), shape.ask_router, shape.stop];
        if actions.iter().filter(|is| **is).count() != 1 {
            self.problem(
                place,
                "a rule has one of call, ask_router = true and stop = true",
            );
            return None;
        }
        if shape.reason.is_some() && !shape.stop {
            self.problem(&format!("{place}.reason"), "is for rules with stop = true");
        }
        let action = match shape.call {
            Some(called) => {
                let setting = format!("{place}.call");
                let names = self.texts(&setting, &called)?;
                if names.is_empty() || names.len() > MEMBERS_MAX {
                    self.problem(&setting, format!("names from 1 to {MEMBERS_MAX} agents"));
                }
                let agents: Vec<Option<AgentName>> = names
                    .iter()
                    .map(|name| self.agent(&setting, name))
                    .collect();
                RuleAction::Call(agents.into_iter().collect::<Option<_>>()?)
            }
            None if shape.ask_router => RuleAction::AskRouter,
            None => RuleAction::Stop {
                reason: shape.reason,
            },
        };
        let set = self.set(&format!("{place}.set"), shape.set, state)?;
        let when = self.when(
            &format!("{place}.when"),
            shape.when.unwrap_or_default(),
            state,
        )?;
        Some(RoutingRule {
            when,
            set,
            action,
            at_most: shape.at_most.unwrap_or(1),
        })
    }

    fn set(
        &mut self,
        setting: &str,
        set: Option<Value>,
        state: &StateSchema,
    ) -> Option<Vec<(String, Value)>> {
        let Some(set) = set else {
            return Some(Vec::new());
        };
        let Value::Object(set) = set else {
            self.problem(setting, "is a table of values, like { found = true }");
            return None;
        };
        let mut values = Vec::new();
        for (key, value) in set {
            self.check_key(setting, &key, state)?;
            let mut tried = state.defaults();
            if let Err(wrong) = state.set(&mut tried, &key, &value) {
                self.problem(setting, wrong.to_string());
                return None;
            }
            values.push((key, value));
        }
        Some(values)
    }

    fn when(&mut self, place: &str, shape: WhenShape, state: &StateSchema) -> Option<When> {
        let not = match shape.not.clone() {
            None => Vec::new(),
            Some(not) => {
                let setting = format!("{place}.not");
                let shape: WhenShape = self.form(
                    &setting,
                    not,
                    "a table like `when`, without a `not` of its own",
                )?;
                if shape.not.is_some() {
                    self.problem(
                        &setting,
                        "has a `not` of its own; one level is all there is",
                    );
                    return None;
                }
                let terms = self.terms(&setting, shape, state)?;
                if terms.is_empty() {
                    self.problem(&setting, "is empty, so the rule would never match");
                }
                terms
            }
        };
        let terms = self.terms(place, shape, state)?;
        Some(When { terms, not })
    }

    fn terms(
        &mut self,
        place: &str,
        shape: WhenShape,
        state: &StateSchema,
    ) -> Option<Vec<RuleTerm>> {
        let at = |name: &str| format!("{place}.{name}");
        let mut terms = Vec::new();
        if let Some(calls) = &shape.calls {
            terms.push(RuleTerm::Calls(self.range(&at("calls"), calls)?));
        }
        if let Some(agents) = &shape.last_agent {
            let names = self.texts(&at("last_agent"), agents)?;
            let agents: Vec<Option<AgentName>> = names
                .iter()
                .map(|name| self.agent(&at("last_agent"), name))
                .collect();
            terms.push(RuleTerm::LastAgent(
                agents.into_iter().collect::<Option<_>>()?,
            ));
        }
        if let Some(text) = shape.last_text {
            terms.push(RuleTerm::LastText(self.text(&at("last_text"), text)?));
        }
        if let Some(tools) = &shape.last_tool {
            let tools = self.texts(&at("last_tool"), tools)?;
            for tool in &tools {
                self.check_tool(&at("last_tool"), tool);
            }
            terms.push(RuleTerm::LastTool(tools));
        }
        terms.extend(shape.last_failed.map(RuleTerm::LastFailed));
        terms.extend(shape.stack_empty.map(RuleTerm::StackEmpty));
        if let Some(values) = shape.state {
            terms.extend(self.state_terms(&at("state"), values, state)?);
        }
        if let Some(alias) = &shape.alias {
            terms.push(RuleTerm::Alias(self.texts(&at("alias"), alias)?));
        }
        if let Some(scopes) = &shape.scope {
            let wanted = [Scope::Channel, Scope::Thread, Scope::Dm].map(Scope::name);
            terms.push(RuleTerm::Scope(self.words(
                &at("scope"),
                scopes,
                &wanted,
                Scope::from_name,
            )?));
        }
        if let Some(chats) = &shape.chat {
            let chats = self.texts(&at("chat"), chats)?;
            if let Some(chat) = chats.iter().find(|chat| !self.is_chat(chat)) {
                self.problem(
                    &at("chat"),
                    format!("\"{chat}\" is no chat as CHANNEL/CHAT"),
                );
            }
            terms.push(RuleTerm::Chat(chats));
        }
        if let Some(senders) = &shape.sender {
            let wanted = AskerKind::ALL.map(AskerKind::name);
            terms.push(RuleTerm::Sender(self.words(
                &at("sender"),
                senders,
                &wanted,
                AskerKind::from_name,
            )?));
        }
        terms.extend(shape.has_files.map(RuleTerm::HasFiles));
        if let Some(text) = shape.text {
            terms.push(RuleTerm::Text(self.text(&at("text"), text)?));
        }
        Some(terms)
    }

    fn is_chat(&self, chat: &str) -> bool {
        let parts = chat.split_once('/');
        parts.is_some_and(|(channel, chat)| {
            self.known.channels.contains(&channel) && !chat.is_empty()
        })
    }

    /// Checks that a tool exists, or is the one that sets values.
    fn check_tool(&mut self, setting: &str, tool: &str) {
        let known = self.known.tools;
        if tool != crate::tools::SET_STATE && !is_known_tool(tool, known) {
            let key = format!("{}.{setting}", self.table);
            self.review.dangling(&key, "tools", tool, known);
        }
    }

    fn state_terms(
        &mut self,
        setting: &str,
        values: Value,
        state: &StateSchema,
    ) -> Option<Vec<RuleTerm>> {
        let Value::Object(values) = values else {
            self.problem(setting, "is a table of values, like { kind = \"refund\" }");
            return None;
        };
        let mut terms = Vec::new();
        for (key, wanted) in values {
            let schema = self.check_key(setting, &key, state)?;
            let is_list = matches!(schema.kind, StateKind::List(_));
            let test = match wanted {
                Value::Object(_) => {
                    let what =
                        "a value, a list of values, or { in = […], ge = …, le = …, is_set = … }";
                    let form: StateForm = self.form(setting, wanted, what)?;
                    StateTest {
                        one_of: form.r#in.unwrap_or_default(),
                        ge: form.ge,
                        le: form.le,
                        is_set: form.is_set,
                    }
                }
                Value::Array(several) if !is_list => StateTest {
                    one_of: several,
                    ..StateTest::default()
                },
                one => StateTest {
                    one_of: vec![one],
                    ..StateTest::default()
                },
            };
            let mut values = test.one_of.iter();
            if let Some(value) = values.find(|value| !is_list && !schema.allows(value)) {
                self.problem(
                    setting,
                    format!("{key} must be {}, is {value}", schema.wanted()),
                );
                return None;
            }
            terms.push(RuleTerm::State(key, test));
        }
        Some(terms)
    }

    fn range(&mut self, setting: &str, value: &Value) -> Option<CountRange> {
        if let Some(n) = value.as_u64().and_then(|n| u32::try_from(n).ok()) {
            return Some(CountRange::exactly(n));
        }
        let form: RangeForm =
            self.form(setting, value.clone(), "a number, or { ge = 1, le = 3 }")?;
        Some(CountRange {
            ge: form.ge,
            le: form.le,
        })
    }

    fn text(&mut self, setting: &str, value: Value) -> Option<TextTest> {
        let what = "{ contains = \"…\" }, { matches = \"…\" } or { is_empty = true }";
        let form: TextForm = self.form(setting, value, what)?;
        let matches = match form.matches.as_deref().map(TextTest::pattern).transpose() {
            Ok(matches) => matches,
            Err(wrong) => {
                self.problem(setting, format!("its pattern {wrong}"));
                return None;
            }
        };
        let contains = match &form.contains {
            Some(words) => self.texts(setting, words)?,
            None => Vec::new(),
        };
        if contains.is_empty() && matches.is_none() && form.is_empty.is_none() {
            self.problem(setting, format!("says nothing: {what}"));
        }
        Some(TextTest {
            contains,
            matches,
            is_empty: form.is_empty,
        })
    }

    /// One text or several.
    fn texts(&mut self, setting: &str, value: &Value) -> Option<Vec<String>> {
        let texts: Option<Vec<String>> = one_or_more(value)
            .map(|it| it.as_str().map(str::to_owned))
            .collect();
        match texts {
            Some(texts) if !texts.is_empty() => Some(texts),
            _ => {
                self.problem(setting, "is a text, or a list of texts");
                None
            }
        }
    }

    fn words<T>(
        &mut self,
        setting: &str,
        value: &Value,
        wanted: &[&str],
        read: impl Fn(&str) -> Option<T>,
    ) -> Option<Vec<T>> {
        let mut found = Vec::new();
        for text in self.texts(setting, value)? {
            match read(&text) {
                Some(word) => found.push(word),
                None => {
                    let key = format!("{}.{setting}", self.table);
                    let meant = nearest(&text, wanted.iter().copied());
                    let suggestion = meant.map(|meant| format!("did you mean \"{meant}\"?"));
                    let what = format!("must be one of {}, is \"{text}\"", quoted(wanted));
                    self.review.advise(&key, what, suggestion);
                    return None;
                }
            }
        }
        Some(found)
    }

    fn form<T: DeserializeOwned>(&mut self, setting: &str, value: Value, what: &str) -> Option<T> {
        match serde_json::from_value(value) {
            Ok(form) => Some(form),
            Err(cause) => {
                self.problem(setting, format!("must be {what}: {cause}"));
                None
            }
        }
    }
}
