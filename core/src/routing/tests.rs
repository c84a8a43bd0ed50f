//! The twelve worked orders, tables of single decisions, and what holds for every network. What rules never match:
//! `reach`.

#![allow(clippy::unwrap_used)]

mod reaching;

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::bounds::{Around, LongestPath, NetworkReach, longest_path, reach, worst_cost};
use super::router::{Routed, RouterChoice, RouterForm, messages, read};
use super::*;
use crate::ids::AgentName;
use crate::place::Scope;
use crate::run::Usage;
use state::{KeySchema, SimpleKind, StateKind, StateSchema, StateValues, ValueMerge};

fn agent(name: &str) -> AgentName {
    AgentName::trusted(name)
}

fn agents(names: &[&str]) -> Vec<AgentName> {
    names.iter().copied().map(agent).collect()
}

fn network(rules: Vec<RoutingRule>) -> Network {
    let boolean = KeySchema {
        kind: StateKind::One(SimpleKind::Boolean),
        one_of: Vec::new(),
        default: None,
        max_items: 20,
        merge: ValueMerge::Replace,
    };
    let keys = ["found", "ok"].map(|key| (key.to_owned(), boolean.clone()));
    Network {
        name: agent("support"),
        members: agents(&["look", "pen", "desk"]),
        default_agent: agent("desk"),
        max_calls: CALLS_DEFAULT,
        answer_from: AnswerFrom::Last,
        silent: BTreeSet::new(),
        rules,
        state: StateSchema(keys.into_iter().collect()),
        persist: false,
        reads: BTreeMap::new(),
        writes: BTreeMap::new(),
    }
}

fn rule(terms: Vec<RuleTerm>, action: RuleAction, at_most: u32) -> RoutingRule {
    RoutingRule {
        when: When {
            terms,
            not: Vec::new(),
        },
        set: Vec::new(),
        action,
        at_most,
    }
}

fn calls(n: u32) -> RuleTerm {
    RuleTerm::Calls(CountRange::exactly(n))
}

fn last(name: &str) -> RuleTerm {
    RuleTerm::LastAgent(agents(&[name]))
}

fn is(key: &str, value: Value) -> RuleTerm {
    let test = StateTest {
        one_of: vec![value],
        ..StateTest::default()
    };
    RuleTerm::State(key.to_owned(), test)
}

fn call(names: &[&str]) -> RuleAction {
    RuleAction::Call(agents(names))
}

/// Agents with every tool, that are never disabled.
fn anywhere() -> Around<'static> {
    Around {
        names: &["support", "help"],
        has_tool: &|_, _| true,
        sets_values: &|_| true,
        is_always_there: &|_| true,
    }
}

/// What an agent does when it is called.
#[derive(Clone, Default)]
struct Does {
    says: &'static str,
    sets: Vec<(&'static str, Value)>,
    fails: bool,
    tools: Vec<String>,
}

/// What is asked, where and by whom.
#[derive(Clone, Debug)]
struct Asked {
    alias: Option<&'static str>,
    scope: Scope,
    chat: &'static str,
    senders: Vec<AskerKind>,
    has_files: bool,
    text: &'static str,
}

impl Default for Asked {
    fn default() -> Self {
        Self {
            alias: None,
            scope: Scope::Channel,
            chat: "acme/C1",
            senders: vec![AskerKind::Person],
            has_files: false,
            text: "a question",
        }
    }
}

fn says(text: &'static str) -> Does {
    Does {
        says: text,
        ..Does::default()
    }
}

/// A run without a store: the same loop over decisions and calls.
struct Play<'a> {
    network: &'a Network,
    asked: Asked,
    disabled: BTreeSet<AgentName>,
    routed: Vec<Routed>,
    course: Course,
    order: Vec<String>,
}

impl<'a> Play<'a> {
    fn of(network: &'a Network) -> Self {
        Self {
            network,
            asked: Asked::default(),
            disabled: BTreeSet::new(),
            routed: Vec::new(),
            course: Course::default(),
            order: Vec::new(),
        }
    }

    fn facts<'b>(&'b self, state: &'b StateValues, used: &'b [u32]) -> Facts<'b> {
        Facts {
            calls: self.course.count(),
            last: self.course.last(),
            stack: self.course.stack(),
            state,
            used,
            disabled: &self.disabled,
            is_circling: self.course.is_circling(),
            alias: self.asked.alias,
            scope: self.asked.scope,
            chat: self.asked.chat,
            senders: &self.asked.senders,
            has_files: self.asked.has_files,
            text: self.asked.text,
        }
    }

    /// Goes on until it ends; says in which order, with the reason of its end.
    fn run(&mut self, mut does: impl FnMut(&AgentName) -> Does) -> String {
        loop {
            let state = self
                .course
                .state(self.network)
                .unwrap_or_else(|| self.network.state.defaults());
            let used = self.course.used(self.network);
            let n = self.course.count();
            self.order.push(format!("R{n}"));
            let mut decided = decide(self.network, &self.facts(&state, &used));
            if decided.decision == RoutingDecision::AskRouter {
                self.order.push("RA".to_owned());
                let routed = if self.routed.is_empty() {
                    Routed::Done
                } else {
                    self.routed.remove(0)
                };
                decided = on_routed(self.network, &self.facts(&state, &used), decided, &routed);
            }
            let next = match decided.decision {
                RoutingDecision::Call { agent, by } => Ok((agent, by)),
                RoutingDecision::Stop(reason) => Err(reason),
                RoutingDecision::AskRouter => unreachable!("it was answered"),
            };
            self.course.decisions.push(StoredDecision {
                calls: n,
                next: next.clone(),
                rule: decided.rule,
                stack: decided.stack,
                state: decided.state.to_json(),
                refused: decided.refused,
                words: String::new(),
                steps: 0,
                at_ms: 0,
            });
            let Ok((agent, _)) = next else {
                let reason = next.unwrap_err();
                self.order.push(format!("■ {}", reason.name()));
                return self.order.join(" ");
            };
            self.order.push(agent.to_string());
            let done = does(&agent);
            let mut state = decided.state;
            for (key, value) in &done.sets {
                self.network.state.set(&mut state, key, value).unwrap();
            }
            self.course.calls.push(MemberCall {
                n: n + 1,
                agent,
                outcome: if done.fails {
                    CallOutcome::Failed
                } else {
                    CallOutcome::Done
                },
                text: if done.fails {
                    String::new()
                } else {
                    done.says.to_owned()
                },
                note: None,
                reason: done.fails.then(|| "the model refused".to_owned()),
                told: None,
                tools: done.tools,
                state: state.to_json(),
                steps: 0,
                usage: Usage::default(),
                at_ms: 0,
            });
        }
    }

    fn said(&self) -> String {
        match conclude(self.network, &self.course) {
            Conclusion::Said(said) => {
                let said: Vec<String> = said
                    .iter()
                    .map(|it| format!("{}: {}", it.agent, it.call.text))
                    .collect();
                said.join(" | ")
            }
            Conclusion::NoAnswer => "no_answer".to_owned(),
            Conclusion::NoAgent => "no_agent".to_owned(),
            Conclusion::Failed(call) => format!("{} failed", call.agent),
        }
    }
}

#[test]
fn two_rules_and_nothing_else() {
    let network = network(vec![
        rule(vec![calls(0)], call(&["look"]), 1),
        rule(vec![calls(1)], call(&["pen"]), 1),
    ]);
    let mut play = Play::of(&network);
    let order = play.run(|agent| {
        says(if agent.as_str() == "look" {
            "facts"
        } else {
            "letter"
        })
    });
    assert_eq!(
        (order.as_str(), play.said().as_str()),
        ("R0 look R1 pen R2 ■ no_rule", "pen: letter")
    );
}

#[test]
fn a_silent_sorter_alone_is_no_answer() {
    let invoice = TextTest {
        contains: vec!["invoice".to_owned()],
        ..TextTest::default()
    };
    let mut network = network(vec![
        rule(vec![calls(0)], call(&["sort"]), 1),
        rule(
            vec![last("sort"), RuleTerm::LastText(invoice)],
            call(&["desk"]),
            1,
        ),
    ]);
    network.silent.insert(agent("sort"));
    let table = [
        ("small talk", "R0 sort R1 ■ no_rule", "no_answer"),
        ("An INVOICE", "R0 sort R1 desk R2 ■ no_rule", "desk: paid"),
    ];
    for (sorted, order, said) in table {
        let mut play = Play::of(&network);
        let played = play.run(|agent| {
            says(if agent.as_str() == "sort" {
                sorted
            } else {
                "paid"
            })
        });
        assert_eq!((played.as_str(), play.said().as_str()), (order, said));
    }
}

#[test]
fn what_a_rule_adds_comes_behind_those_who_wait() {
    let network = network(vec![
        rule(vec![calls(0)], call(&["look", "pen", "check"]), 1),
        rule(vec![last("look")], call(&["desk"]), 1),
    ]);
    let mut play = Play::of(&network);
    let order = play.run(|_| says("x"));
    assert_eq!(order, "R0 look R1 pen R2 check R3 desk R4 ■ no_rule");
    let by: Vec<_> = play
        .course
        .decisions
        .iter()
        .filter_map(|it| Some(it.next.as_ref().ok()?.1))
        .collect();
    assert_eq!(
        by,
        [
            RoutedBy::Rule,
            RoutedBy::Stack,
            RoutedBy::Stack,
            RoutedBy::Stack
        ]
    );
}

#[test]
fn the_decision_behind_the_last_call_is_made_and_leads_to_nothing() {
    let mut network = network(vec![rule(Vec::new(), call(&["desk"]), 9)]);
    network.max_calls = 2;
    let mut play = Play::of(&network);
    let mut n = 0;
    let order = play.run(|_| {
        n += 1;
        says(["one", "two"][n - 1])
    });
    assert_eq!(order, "R0 desk R1 desk R2 ■ max_calls");
    assert_eq!(play.said(), "desk: two");
    assert_eq!(play.course.used(&network), [3]);
}

#[test]
fn a_value_that_a_tool_set_is_seen_by_the_next_decision() {
    let network = network(vec![
        rule(vec![calls(0)], call(&["look"]), 1),
        rule(vec![is("found", json!(true))], call(&["pen"]), 1),
    ]);
    for (found, order) in [
        (true, "R0 look R1 pen R2 ■ no_rule"),
        (false, "R0 look R1 ■ no_rule"),
    ] {
        let played = Play::of(&network).run(|_| Does {
            says: "x",
            sets: vec![("found", json!(found))],
            ..Does::default()
        });
        assert_eq!(played, order);
    }
}

#[test]
fn a_draft_goes_round_until_its_rules_are_used_up() {
    let mut network = network(vec![
        rule(vec![calls(0)], call(&["pen"]), 1),
        rule(vec![last("pen")], call(&["check"]), 3),
        rule(
            vec![last("check"), is("ok", json!(false))],
            call(&["pen"]),
            2,
        ),
    ]);
    network.answer_from = AnswerFrom::Agent(agent("pen"));
    let mut play = Play::of(&network);
    let mut drafts = ["third", "second", "first"].into_iter().rev();
    let mut verdicts = ["still no", "no", "nah"].into_iter();
    let order = play.run(|agent| match agent.as_str() {
        "pen" => says(drafts.next().unwrap()),
        _ => Does {
            says: verdicts.next().unwrap(),
            sets: vec![("ok", json!(false))],
            ..Does::default()
        },
    });
    assert_eq!(
        order,
        "R0 pen R1 check R2 pen R3 check R4 pen R5 check R6 ■ no_rule"
    );
    assert_eq!(play.said(), "pen: third");
}

#[test]
fn the_routing_agent_picks_until_it_is_done() {
    let network = network(vec![rule(Vec::new(), RuleAction::AskRouter, 5)]);
    let mut play = Play::of(&network);
    play.routed = vec![
        Routed::Agent(agent("look")),
        Routed::Agent(agent("pen")),
        Routed::Done,
    ];
    assert_eq!(play.run(|_| says("x")), "R0 RA look R1 RA pen R2 RA ■ done");
    let mut play = Play::of(&network);
    play.routed = vec![Routed::NoAnswer, Routed::Done];
    assert_eq!(play.run(|_| says("x")), "R0 RA desk R1 RA ■ done");
    // Somebody asked: it is not done before anybody worked.
    let mut play = Play::of(&network);
    assert_eq!(play.run(|_| says("x")), "R0 RA desk R1 RA ■ done");
}

#[test]
fn a_failure_is_a_fact_that_rules_may_take_up() {
    let mut rules = vec![
        rule(vec![calls(0)], call(&["look"]), 1),
        rule(vec![calls(1)], call(&["pen"]), 1),
    ];
    let does = |agent: &AgentName| Does {
        fails: agent.as_str() == "pen",
        ..says("x")
    };
    let plain = network(rules.clone());
    let mut play = Play::of(&plain);
    assert_eq!(play.run(does), "R0 look R1 pen R2 ■ no_rule");
    assert_eq!(play.said(), "pen failed");
    rules.push(rule(vec![RuleTerm::LastFailed(true)], call(&["desk"]), 1));
    let caught = network(rules);
    let mut play = Play::of(&caught);
    assert_eq!(play.run(does), "R0 look R1 pen R2 desk R3 ■ no_rule");
    assert_eq!(play.said(), "desk: x");
}

#[test]
fn a_disabled_agent_is_refused_and_the_next_rule_tried() {
    let network = network(vec![
        rule(vec![calls(0)], call(&["pen"]), 1),
        rule(vec![calls(0)], call(&["desk"]), 1),
    ]);
    assert_eq!(Play::of(&network).run(|_| says("x")), "R0 pen R1 ■ no_rule");
    let mut play = Play::of(&network);
    play.disabled.insert(agent("pen"));
    assert_eq!(play.run(|_| says("x")), "R0 desk R1 ■ no_rule");
    assert_eq!(play.course.decisions[0].refused, agents(&["pen"]));
    assert_eq!(play.course.decisions[0].rule, Some(2));
    let mut play = Play::of(&network);
    play.disabled = agents(&["pen", "desk"]).into_iter().collect();
    assert_eq!(
        (play.run(|_| says("x")).as_str(), play.said().as_str()),
        ("R0 ■ no_rule", "no_agent")
    );
}

#[test]
fn saying_the_same_three_times_ends_it() {
    let network = network(vec![rule(Vec::new(), call(&["desk"]), 9)]);
    assert_eq!(
        Play::of(&network).run(|_| says("same ")),
        "R0 desk R1 desk R2 desk R3 ■ no_progress"
    );
}

#[test]
fn each_agent_that_is_heard_has_one_post() {
    let mut network = network(vec![rule(
        vec![calls(0)],
        call(&["sort", "look", "pen", "look"]),
        1,
    )]);
    network.answer_from = AnswerFrom::Each;
    network.silent.insert(agent("sort"));
    let mut play = Play::of(&network);
    let mut n = 0;
    play.run(|_| {
        n += 1;
        says(["sorted", "one", "two", "three"][n - 1])
    });
    assert_eq!(play.said(), "pen: two | look: three");
}

#[test]
#[allow(clippy::too_many_lines, reason = "one table")]
fn terms_hold_as_their_names_say() {
    let state = {
        let network = network(Vec::new());
        let mut state = network.state.defaults();
        network
            .state
            .set(&mut state, "found", &json!(true))
            .unwrap();
        // As a model writes them.
        let stored = state
            .to_json()
            .replace('}', r#","score":1.0,"scores":[1.0,2]}"#);
        StateValues::as_stored(&stored)
    };
    let (desk, disabled) = (agent("desk"), BTreeSet::new());
    let tools = ["refund".to_owned()];
    let stack = agents(&["pen"]);
    let facts = Facts {
        calls: 2,
        last: Some(LastCall {
            agent: &desk,
            text: "I need MORE context.",
            tools: &tools,
            has_failed: false,
        }),
        stack: &stack,
        state: &state,
        used: &[],
        disabled: &disabled,
        is_circling: false,
        alias: Some("Help"),
        scope: Scope::Thread,
        chat: "acme/C1",
        senders: &[AskerKind::Person, AskerKind::Admin],
        has_files: true,
        text: "help, refund me",
    };
    let text = |contains: &str| TextTest {
        contains: vec![contains.to_owned()],
        ..TextTest::default()
    };
    let pattern = |pattern: &str| TextTest {
        matches: Some(TextTest::pattern(pattern).unwrap()),
        ..TextTest::default()
    };
    let set = |is_set| StateTest {
        is_set: Some(is_set),
        ..StateTest::default()
    };
    let range = |ge, le| RuleTerm::Calls(CountRange { ge, le });
    let table = [
        (calls(2), true),
        (range(Some(1), None), true),
        (range(None, Some(1)), false),
        (last("desk"), true),
        (last("pen"), false),
        (RuleTerm::LastText(text("more context")), true),
        (
            RuleTerm::LastText(pattern(r"(?i)\bneed more context\b")),
            true,
        ),
        (RuleTerm::LastText(pattern("need more context")), false),
        (
            RuleTerm::LastText(TextTest {
                is_empty: Some(true),
                ..TextTest::default()
            }),
            false,
        ),
        (RuleTerm::LastTool(vec!["refund".to_owned()]), true),
        (RuleTerm::LastTool(vec!["look".to_owned()]), false),
        (RuleTerm::LastFailed(false), true),
        (RuleTerm::StackEmpty(true), false),
        (is("found", json!(true)), true),
        (is("ok", json!(true)), false),
        (is("score", json!(1)), true),
        (is("score", json!(1.5)), false),
        (is("scores", json!([1, 2.0])), true),
        (RuleTerm::State("ok".to_owned(), set(false)), true),
        (RuleTerm::State("found".to_owned(), set(false)), false),
        (RuleTerm::Alias(vec!["help".to_owned()]), true),
        (RuleTerm::Scope(vec![Scope::Dm, Scope::Thread]), true),
        (RuleTerm::Chat(vec!["acme/C2".to_owned()]), false),
        (RuleTerm::Sender(vec![AskerKind::Admin]), true),
        (RuleTerm::Sender(vec![AskerKind::Bot]), false),
        (RuleTerm::HasFiles(true), true),
        (RuleTerm::Text(text("refund")), true),
    ];
    for (term, expected) in table {
        assert_eq!(term.holds(&facts), expected, "{term:?}");
        let not = When {
            terms: Vec::new(),
            not: vec![term.clone()],
        };
        assert_eq!(not.holds(&facts), !expected, "not {term:?}");
    }
    // Nothing was called: no term about the last call holds, whatever it says of it.
    let first = Facts {
        last: None,
        ..facts
    };
    for term in [
        RuleTerm::LastFailed(false),
        RuleTerm::LastText(TextTest::default()),
        last("desk"),
    ] {
        assert!(!term.holds(&first), "{term:?}");
    }
    // Only the beginning of a text is looked at, however long it is.
    let long = format!("{}refund", "é".repeat(SUBJECT_MAX_BYTES));
    let far = Facts {
        text: &long,
        ..first
    };
    assert!(!RuleTerm::Text(text("refund")).holds(&far));
    // Whether it says anything is asked of all of it.
    let blank = format!("{}refund", " ".repeat(SUBJECT_MAX_BYTES));
    let says = |is_empty| {
        let test = TextTest {
            is_empty: Some(is_empty),
            ..TextTest::default()
        };
        let facts = Facts {
            text: &blank,
            ..far.clone()
        };
        RuleTerm::Text(test).holds(&facts)
    };
    assert_eq!((says(false), says(true)), (true, false));
    assert!(TextTest::pattern(&"x".repeat(PATTERN_MAX_CHARS + 1)).is_err());
    assert!(
        TextTest::pattern("(")
            .unwrap_err()
            .starts_with("is no pattern")
    );
}

#[test]
fn the_longest_path_and_its_worst_cost_are_known_before() {
    let steps: BTreeMap<AgentName, u32> = [("look", 4), ("pen", 2), ("check", 1), ("desk", 8)]
        .map(|(name, n)| (agent(name), n))
        .into();
    let round = network(vec![
        rule(vec![calls(0)], call(&["pen"]), 1),
        rule(vec![last("pen")], call(&["check"]), 3),
        rule(vec![last("check")], call(&["pen"]), 2),
    ]);
    let path = longest_path(&round);
    assert_eq!(
        path.agents,
        agents(&["pen", "check", "pen", "check", "pen", "check"])
    );
    let cost = worst_cost(&round, &steps);
    assert_eq!(
        (cost.agent_calls, cost.model_calls, cost.routing_calls),
        (6, 9, 0)
    );
    let routed = network(vec![rule(Vec::new(), RuleAction::AskRouter, 5)]);
    let cost = worst_cost(&routed, &steps);
    assert_eq!(
        (cost.agent_calls, cost.model_calls, cost.routing_calls),
        (5, 40, 10)
    );
    let none = network(Vec::new());
    let empty = LongestPath {
        calls: 0,
        agents: Vec::new(),
    };
    assert_eq!(longest_path(&none), empty);
}

#[test]
#[allow(clippy::too_many_lines, reason = "one table")]
fn answers_of_the_routing_agent_count_or_are_told_to_be_wrong() {
    let choices = ["look", "pen"].map(|name| RouterChoice {
        name: agent(name),
        description: format!("It does {name}."),
    });
    let pick = |name: &str| Ok(Routed::Agent(agent(name)));
    let wrong = |name: &str| Err(name.to_owned());
    let table = [
        (
            r#"{"agent": "look", "done": false, "reason": "first"}"#,
            pick("look"),
        ),
        (
            "Sure:\n```json\n{\"agent\": \"pen\", \"done\": false}\n```",
            pick("pen"),
        ),
        (
            r#"{"agent": null, "done": true, "reason": ""}"#,
            Ok(Routed::Done),
        ),
        (r#"{"agent": "lookup", "done": false}"#, wrong("lookup")),
        (r#"{"agent": null, "done": false}"#, wrong("")),
        ("I would take look.", pick("look")),
        ("look, look!", pick("look")),
        ("Look", pick("look")),
        ("I would take **LOOK**.", pick("look")),
        ("Look, then look again", pick("look")),
        ("Look or pen?", wrong("several names")),
        ("look\npen", wrong("several names")),
        (r#"{"agent": "Pen", "done": false}"#, pick("pen")),
        ("done", Ok(Routed::Done)),
        ("**Done.**", Ok(Routed::Done)),
        ("It is answered.\n- Done!\n", Ok(Routed::Done)),
        ("done done", wrong("done done")),
        ("Nothing is done yet", wrong("Nothing is done yet")),
        ("well-done", wrong("well-done")),
        ("undone", wrong("undone")),
        ("还没done", wrong("还没done")),
        ("我选择Look。", pick("look")),
        ("Done with look", pick("look")),
        ("done\nlook", pick("look")),
        ("look or pen", wrong("several names")),
        ("lookup", wrong("lookup")),
        ("", wrong("")),
    ];
    for (text, expected) in table {
        assert_eq!(read(&choices, text, None).pick, expected, "{text:?}");
    }
    let calls = [
        (
            "select_agent",
            json!({"name": "pen", "reason": "it writes"}),
            pick("pen"),
        ),
        ("select_agent", json!({"name": " Pen"}), pick("pen")),
        ("select_agent", json!({"name": "lookup"}), wrong("lookup")),
        ("select_agent", json!("pen"), wrong("")),
        ("done", json!({"summary": "all said"}), Ok(Routed::Done)),
        ("refund", json!({}), wrong("refund")),
    ];
    for (tool, arguments, expected) in calls {
        assert_eq!(
            read(&choices, "look", Some((tool, &arguments))).pick,
            expected,
            "{tool}"
        );
    }
    // Of two that differ in their case only, each is named as it is written.
    let twins = ["desk", "Desk"].map(|name| RouterChoice {
        name: agent(name),
        description: String::new(),
    });
    for (text, expected) in [
        ("Desk", pick("Desk")),
        ("desk!", pick("desk")),
        ("DESK", wrong("DESK")),
    ] {
        assert_eq!(read(&twins, text, None).pick, expected, "{text:?}");
    }
    // However long an answer is, and whatever it is made of: what is told of it is short.
    for mark in ["\u{301}", "{", "a ", " ", "\n", "done "] {
        let text = mark.repeat(400_000 / mark.len());
        let named = read(&choices, &text, None).pick.unwrap_err();
        let told = router::wrong_answer(&choices, &named);
        assert!(told.len() < 1_000, "{mark:?}: {} bytes", told.len());
    }
    // What was asked and said stays on its line.
    let asked = "hi\nWho is next? {\"agent\": \"pen\"}";
    let messages = messages(
        &choices,
        &Course::default(),
        Some("found = true"),
        asked,
        RouterForm::Text,
        None,
    );
    insta::assert_snapshot!(messages[1].content, @r#"
    The request: hi Who is next? {"agent": "pen"}
    What is known: found = true
    Nobody has worked on it yet.
    Who is next?
    "#);
}

fn any_rule() -> impl Strategy<Value = RoutingRule> {
    let names = ["look", "pen", "desk", "check"];
    let name = move || (0..names.len()).prop_map(move |n| names[n]);
    let term = prop_oneof![
        (0_u32..6).prop_map(calls),
        (0_u32..4, 0_u32..8).prop_map(|(ge, le)| RuleTerm::Calls(CountRange {
            ge: Some(ge),
            le: Some(le)
        })),
        name().prop_map(last),
        any::<bool>().prop_map(RuleTerm::StackEmpty),
        any::<bool>().prop_map(RuleTerm::LastFailed),
        any::<bool>().prop_map(|value| is("found", json!(value))),
        Just(RuleTerm::LastText(TextTest {
            contains: vec!["ONE".to_owned()],
            ..TextTest::default()
        })),
    ];
    let action = prop_oneof![
        6 => proptest::collection::vec(name(), 1..4).prop_map(|names| call(&names)),
        2 => Just(RuleAction::AskRouter),
        1 => Just(RuleAction::Stop { reason: None }),
    ];
    let terms = proptest::collection::vec(term, 0..3);
    (terms, proptest::bool::ANY, action, 1_u32..10).prop_map(|(terms, is_not, action, at_most)| {
        let mut rule = rule(terms, action, at_most);
        if is_not {
            std::mem::swap(&mut rule.when.terms, &mut rule.when.not);
        }
        rule
    })
}

#[test]
fn a_text_of_one_mark_is_looked_at_up_to_its_limits() {
    let marks = "\u{301}".repeat(200_000);
    let test = |contains: &str| TextTest {
        contains: vec![contains.to_owned()],
        matches: Some(TextTest::pattern("(\u{301}*)*$").unwrap()),
        is_empty: Some(false),
    };
    assert!(test("\u{301}").holds(&marks));
    assert!(!test("e").holds(&marks));
    let choices = [RouterChoice {
        name: agent("look"),
        description: String::new(),
    }];
    let asked = messages(
        &choices,
        &Course::default(),
        None,
        &marks,
        RouterForm::Text,
        None,
    );
    assert!(asked[1].content.len() < 5_000);
}

#[test]
fn a_disabled_agent_of_a_list_may_make_a_path_longer() {
    let mut again = rule(vec![], call(&["look", "pen"]), 2);
    again.when.not = vec![last("look")];
    let mut network = network(vec![
        again,
        rule(vec![], RuleAction::Stop { reason: None }, 1),
    ]);
    network.max_calls = 4;
    // Without "look" the rule matches again behind "pen".
    assert_eq!(longest_path(&network).calls, 2);
}

/// What chance decides about a run: what each agent call does (whether it sets `found`, whether it fails, which words
/// it says), what the routing agent says, and who is disabled.
type Chances = (Vec<(bool, bool, usize)>, Vec<usize>, Option<usize>);

fn any_chances() -> impl Strategy<Value = Chances> {
    let most = CALLS_MAX as usize;
    (
        proptest::collection::vec((any::<bool>(), any::<bool>(), 0_usize..3), most),
        proptest::collection::vec(0_usize..5, most),
        proptest::option::of(0_usize..4),
    )
}

/// Plays a network to its end, and checks that it stayed within what `check` prints of it.
fn ends_within_its_bounds(
    network: &Network,
    (acts, picks, off): Chances,
) -> Result<(), TestCaseError> {
    let names = ["look", "pen", "desk", "check"];
    let steps: BTreeMap<AgentName, u32> = [("look", 4), ("pen", 2), ("check", 1), ("desk", 8)]
        .map(|(name, n)| (agent(name), n))
        .into();
    let worst = worst_cost(network, &steps);
    let mut play = Play::of(network);
    let routed = picks.iter().map(|n| match n {
        0 => Routed::Done,
        1 => Routed::NoAnswer,
        n => Routed::Agent(agent(names[n - 2])),
    });
    play.routed = routed.collect();
    play.disabled.extend(off.map(|n| agent(names[n])));
    let mut acts = acts.into_iter();
    let mut model_calls = 0_u64;
    let order = play.run(|agent| {
        model_calls += u64::from(steps[agent]);
        let (found, fails, words) = acts.next().expect("max_calls bounds the calls");
        Does {
            says: ["one", "two", ""][words],
            sets: vec![("found", json!(found))],
            fails,
            ..Does::default()
        }
    });
    let asked = u32::try_from(order.matches("RA").count()).unwrap() * router::ASKED_MAX;
    let called = play.course.count();
    prop_assert!(called <= network.max_calls);
    prop_assert!(
        called <= worst.agent_calls && asked <= worst.routing_calls,
        "{called} calls, {asked} of the routing agent, {worst:?}: {order}"
    );
    prop_assert!(
        model_calls <= worst.model_calls,
        "{model_calls} model calls, {worst:?}: {order}"
    );
    prop_assert_eq!(play.course.decisions.len(), called as usize + 1);
    // What is decided behind the last call leads to nothing.
    let decisions = play.course.decisions.iter();
    let within = decisions.filter(|it| it.calls < network.max_calls);
    let used: BTreeSet<u32> = within.filter_map(|it| it.rule).collect();
    let mut writing = network.clone();
    writing.writes = names
        .map(|name| (agent(name), vec!["found".to_owned()]))
        .into();
    let reach = reach(
        &writing,
        &Around {
            is_always_there: &|agent| !play.disabled.contains(agent),
            ..anywhere()
        },
    );
    prop_assert!(called <= reach.most_calls, "{order}, {reach:?}");
    for dead in reach.dead {
        prop_assert!(
            !used.contains(&dead.rule),
            "rule {} was used: {}",
            dead.rule,
            dead.why
        );
    }
    let is_silent = matches!(conclude(network, &play.course), Conclusion::NoAgent);
    prop_assert_eq!(is_silent, called == 0);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Whatever the rules, whatever agents do and the routing agent says: it ends within what `check` printed.
    #[test]
    fn every_network_ends_within_what_was_known_before(
        rules in proptest::collection::vec(any_rule(), 0..7),
        max_calls in 1_u32..=CALLS_MAX,
        chances in any_chances(),
    ) {
        let network = Network { max_calls, ..network(rules) };
        ends_within_its_bounds(&network, chances)?;
    }

    /// What several calls set side by side comes to the same in any order, as far as it is joined: a list has as many
    /// items, the largest number is the same, and what is replaced is one of theirs.
    #[test]
    fn values_that_are_set_side_by_side_come_to_the_same(
        (set, otherwise) in proptest::collection::vec((0_usize..3, -9_i64..9), 0..16)
            .prop_flat_map(|set| (Just(set.clone()), Just(set).prop_shuffle())),
    ) {
        let key = |merge, kind| KeySchema { kind, one_of: Vec::new(), default: None, max_items: 4, merge };
        let integer = SimpleKind::Integer;
        let keys = ["all", "any", "most"];
        let schema = StateSchema([
            ("all", key(ValueMerge::Append, StateKind::List(integer))),
            ("any", key(ValueMerge::Replace, StateKind::One(integer))),
            ("most", key(ValueMerge::Max, StateKind::One(integer))),
        ].map(|(key, schema)| (key.to_owned(), schema)).into());
        let of = |set: &[(usize, i64)]| {
            let mut values = schema.defaults();
            for (key, value) in set {
                let before = values.clone();
                let taken = schema.set(&mut values, keys[*key], &json!(value));
                assert!(taken.is_ok() || values == before);
                // A daemon that is killed here goes on with what is stored.
                values = schema.read(&values.to_json());
            }
            values
        };
        let (values, others) = (of(&set), of(&otherwise));
        let given = |key: usize| set.iter().filter(move |(of, _)| *of == key).map(|(_, value)| *value);
        let items = |values: &StateValues| {
            let items = values.get("all").and_then(Value::as_array).cloned().unwrap_or_default();
            let mut items: Vec<i64> = items.iter().filter_map(Value::as_i64).collect();
            items.sort_unstable();
            items
        };
        let (items, other_items) = (items(&values), items(&others));
        prop_assert_eq!(items.len(), given(0).count().min(4));
        prop_assert_eq!(items.len(), other_items.len());
        prop_assert!(given(0).count() > 4 || items == other_items);
        for values in [&values, &others] {
            let any = values.get("any").and_then(Value::as_i64);
            prop_assert!(any.map_or(given(1).count() == 0, |any| given(1).any(|it| it == any)));
            prop_assert_eq!(values.get("most").and_then(Value::as_i64), given(2).max());
        }
    }

    /// Values never pass their limits, whatever is set.
    #[test]
    fn values_stay_within_their_limits(set in proptest::collection::vec((0_usize..3, 0_usize..6_000), 0..40)) {
        let list = KeySchema {
            kind: StateKind::List(SimpleKind::String),
            one_of: Vec::new(),
            default: None,
            max_items: 5,
            merge: ValueMerge::Append,
        };
        let schema = StateSchema(["a", "b", "c"].map(|key| (key.to_owned(), list.clone())).into());
        let mut values = schema.defaults();
        for (key, length) in set {
            let _ = schema.set(&mut values, ["a", "b", "c"][key], &json!("x".repeat(length)));
            prop_assert!(values.to_json().len() <= state::STATE_MAX_BYTES);
            prop_assert_eq!(&schema.read(&values.to_json()), &values);
        }
    }
}

proptest! {
    // The longest path of many rules takes a while to find.
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// The same of networks with as many rules as there may be, whose longest path is searched only up to a limit.
    #[test]
    fn networks_of_many_rules_end_within_what_was_known_before(
        rules in proptest::collection::vec(any_rule(), RULES_MAX / 2..=RULES_MAX),
        max_calls in 1_u32..=CALLS_MAX,
        chances in any_chances(),
    ) {
        let network = Network { max_calls, ..network(rules) };
        ends_within_its_bounds(&network, chances)?;
    }
}
