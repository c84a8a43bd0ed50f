//! What a network can come to, and which rules never match.

use super::*;

fn number_key() -> KeySchema {
    KeySchema {
        kind: StateKind::One(SimpleKind::Number),
        one_of: Vec::new(),
        default: None,
        max_items: 20,
        merge: ValueMerge::Replace,
    }
}

/// The network of the other tests, with a kind and a score, which "sort" sets. It looks things up, too.
fn with_values(rules: Vec<RoutingRule>) -> Network {
    let mut network = network(rules);
    let kind = KeySchema {
        kind: StateKind::One(SimpleKind::String),
        one_of: vec![json!("bug"), json!("refund")],
        default: Some(json!("bug")),
        ..number_key()
    };
    let (whole, list) = (SimpleKind::Integer, StateKind::List(SimpleKind::String));
    let count = KeySchema {
        kind: StateKind::One(whole),
        merge: ValueMerge::Max,
        ..number_key()
    };
    let notes = KeySchema {
        kind: list,
        merge: ValueMerge::Append,
        ..number_key()
    };
    let keys = [
        ("kind", kind),
        ("score", number_key()),
        ("count", count),
        ("notes", notes),
    ];
    let keys = keys.map(|(key, schema)| (key.to_owned(), schema));
    network.state.0.extend(keys);
    let all = ["kind", "score", "count", "notes"].map(str::to_owned);
    network.writes.insert(agent("sort"), all.to_vec());
    network
}

/// Only "look" has the tool "search".
fn around() -> Around<'static> {
    Around {
        has_tool: &|agent, tool| agent.as_str() == "look" && tool == "search",
        ..anywhere()
    }
}

fn dead(network: &Network, around: &Around<'_>) -> Vec<String> {
    let dead = reach(network, around).dead.into_iter();
    dead.map(|it| format!("{}: {}", it.rule, it.why)).collect()
}

fn without(mut rule: RoutingRule, not: Vec<RuleTerm>) -> RoutingRule {
    rule.when.not = not;
    rule
}

fn setting(mut rule: RoutingRule, key: &str, value: Value) -> RoutingRule {
    rule.set.push((key.to_owned(), value));
    rule
}

fn range(key: &str, ge: Option<f64>, le: Option<f64>) -> RuleTerm {
    let test = StateTest {
        ge,
        le,
        ..StateTest::default()
    };
    RuleTerm::State(key.to_owned(), test)
}

fn is_set(key: &str, is: bool) -> RuleTerm {
    let test = StateTest {
        is_set: Some(is),
        ..StateTest::default()
    };
    RuleTerm::State(key.to_owned(), test)
}

fn contains(word: &str) -> TextTest {
    TextTest {
        contains: vec![word.to_owned()],
        ..TextTest::default()
    }
}

fn blank(is: bool) -> TextTest {
    TextTest {
        is_empty: Some(is),
        ..TextTest::default()
    }
}

fn stop() -> RuleAction {
    RuleAction::Stop { reason: None }
}

/// A rule behind "sort is called first", and what is said of it; empty: it may match.
#[allow(clippy::too_many_lines, reason = "one table")]
fn after_sort() -> Vec<(RoutingRule, &'static str)> {
    let pen = |terms| rule(terms, call(&["pen"]), 1);
    let alias = |name: &str| RuleTerm::Alias(vec![name.to_owned()]);
    let tool = |name: &str| RuleTerm::LastTool(vec![name.to_owned()]);
    let calls_from = |ge, le| RuleTerm::Calls(CountRange { ge, le });
    let text = |test| RuleTerm::Text(test);
    vec![
        // What values can be.
        (pen(vec![is("kind", json!("refund"))]), ""),
        (
            pen(vec![calls(0), is("kind", json!("refund"))]),
            "all that it wants is never so at once",
        ),
        (
            pen(vec![is("kind", json!("x"))]),
            "no value of kind is like that",
        ),
        (pen(vec![is("score", json!(3))]), ""),
        (
            pen(vec![is("score", json!("3"))]),
            "no value of score is like that",
        ),
        (
            pen(vec![range("score", Some(5.0), Some(3.0))]),
            "no value of score is like that",
        ),
        (pen(vec![range("score", Some(5.0), Some(5.0))]), ""),
        (
            pen(vec![range("count", Some(4.2), Some(4.8))]),
            "no value of count is like that",
        ),
        (pen(vec![range("score", Some(4.2), Some(4.8))]), ""),
        (
            pen(vec![range("kind", Some(1.0), None)]),
            "no value of kind is like that",
        ),
        (pen(vec![is_set("kind", false)]), "kind always has a value"),
        (pen(vec![is_set("score", false)]), ""),
        (pen(vec![is("notes", json!(["a"]))]), ""),
        (
            pen(vec![is("notes", json!("a"))]),
            "no value of notes is like that",
        ),
        (
            pen(vec![is("found", json!(true))]),
            "nothing sets found to that",
        ),
        (
            pen(vec![is("gone", json!(true))]),
            "no value of gone is like that",
        ),
        // What the question can be.
        (pen(vec![alias("Help")]), ""),
        (pen(vec![alias("hulp")]), "the network has no such name"),
        (
            without(
                pen(vec![RuleTerm::Scope(vec![Scope::Dm])]),
                vec![RuleTerm::Scope(vec![Scope::Dm, Scope::Thread])],
            ),
            "its `not` holds whenever the rest of it does",
        ),
        (
            without(
                pen(vec![]),
                vec![RuleTerm::Sender(vec![AskerKind::Bot, AskerKind::Person])],
            ),
            "its `not` holds whenever the rest of it does",
        ),
        (
            without(
                pen(vec![RuleTerm::Sender(vec![AskerKind::Person])]),
                vec![RuleTerm::Sender(vec![AskerKind::Admin])],
            ),
            "",
        ),
        (
            pen(vec![text(contains("refund")), text(blank(true))]),
            "no text passes all that it asks of it",
        ),
        (
            without(
                pen(vec![text(contains("refunds"))]),
                vec![text(contains("Refund"))],
            ),
            "its `not` holds whenever the rest of it does",
        ),
        (
            without(
                pen(vec![text(contains("refund"))]),
                vec![text(contains("refunds"))],
            ),
            "",
        ),
        // What the newest call can be.
        (pen(vec![last("sort")]), ""),
        (pen(vec![last("nobody")]), "nothing calls nobody"),
        (
            without(pen(vec![last("sort")]), vec![last("sort")]),
            "its `not` holds whenever the rest of it does",
        ),
        (
            without(
                pen(vec![last("sort")]),
                vec![last("sort"), RuleTerm::LastFailed(true)],
            ),
            "",
        ),
        (
            pen(vec![tool("search")]),
            "no agent that may have been called last has search",
        ),
        (
            pen(vec![
                RuleTerm::LastFailed(true),
                RuleTerm::LastText(contains("no")),
            ]),
            "no agent call is all that it asks of it",
        ),
        (
            pen(vec![
                RuleTerm::LastFailed(true),
                RuleTerm::LastText(blank(true)),
            ]),
            "",
        ),
        (
            pen(vec![calls(0), last("sort")]),
            "nobody was called before the first call",
        ),
        // How many calls there can be, and who waits.
        (pen(vec![calls(1)]), ""),
        (
            pen(vec![calls(4)]),
            "it wants 4 calls before it, and there are never more than 1",
        ),
        (
            pen(vec![calls(9)]),
            "it wants 9 calls before it, and max_calls = 8 ends the run there",
        ),
        (
            pen(vec![calls_from(Some(2), Some(1))]),
            "calls can't be at least 2 and at most 1",
        ),
        (
            pen(vec![RuleTerm::StackEmpty(false)]),
            "nobody ever waits to be called",
        ),
        (
            pen(vec![calls(0), last("sort"), RuleTerm::StackEmpty(false)]),
            "nobody ever waits to be called",
        ),
        // What comes before it.
        (
            pen(vec![calls(0)]),
            "rule 1 before it matches whenever it would, and has uses left",
        ),
        (
            pen(vec![calls(0), alias("help")]),
            "rule 1 before it matches whenever it would, and has uses left",
        ),
        (pen(vec![calls_from(Some(0), Some(1))]), ""),
    ]
}

#[test]
fn rules_that_never_match_are_named_and_no_others() {
    for (second, expected) in after_sort() {
        let first = rule(vec![calls(0)], call(&["sort"]), 1);
        let network = with_values(vec![first, second]);
        let expected: Vec<String> = Some(expected)
            .filter(|why| !why.is_empty())
            .map(|why| format!("2: {why}"))
            .into_iter()
            .collect();
        let found = dead(&network, &around());
        assert_eq!(found, expected, "{:?}", network.rules[1].when);
    }
}

#[test]
#[allow(clippy::too_many_lines, reason = "one table")]
fn a_rule_is_behind_another_as_long_as_that_has_uses_left() {
    let desk = |terms, at_most| rule(terms, call(&["desk"]), at_most);
    let table: [(Vec<RoutingRule>, &[&str]); 10] = [
        // The first is used up at the second decision.
        (vec![desk(vec![], 1), desk(vec![], 1)], &[]),
        (
            vec![desk(vec![], 8), desk(vec![], 1), desk(vec![calls(3)], 1)],
            &[
                "2: rule 1 before it matches whenever it would, and has uses left",
                "3: rule 1 before it matches whenever it would, and has uses left",
            ],
        ),
        // "sort" is called once, so the second of them is not reached.
        (
            vec![
                rule(vec![calls(0)], call(&["sort"]), 1),
                desk(vec![last("sort")], 1),
                desk(vec![last("sort"), RuleTerm::HasFiles(true)], 1),
            ],
            &["3: rule 2 before it matches whenever it would, and has uses left"],
        ),
        // It may be called again, and the first is used up by then.
        (
            vec![
                rule(vec![], call(&["sort"]), 2),
                desk(vec![last("sort")], 1),
            ],
            &[],
        ),
        // The condition before it is weaker by its `not`, or is not.
        (
            vec![
                without(desk(vec![], 8), vec![calls(0), RuleTerm::HasFiles(true)]),
                without(desk(vec![], 8), vec![calls(0)]),
            ],
            &["2: rule 1 before it matches whenever it would, and has uses left"],
        ),
        (
            vec![
                without(desk(vec![], 8), vec![calls(0)]),
                without(desk(vec![], 8), vec![calls(0), RuleTerm::HasFiles(true)]),
            ],
            &[],
        ),
        (
            vec![
                rule(vec![RuleTerm::Text(contains("bill"))], stop(), 1),
                desk(vec![RuleTerm::Text(contains("billing"))], 1),
                desk(vec![RuleTerm::Text(contains("ill"))], 1),
            ],
            &["2: rule 1 before it matches whenever it would, and has uses left"],
        ),
        (
            vec![
                rule(vec![calls(1)], stop(), 1),
                rule(vec![], stop(), 1),
                desk(vec![], 1),
            ],
            &[
                "1: it wants 1 calls before it, and there are never more than 0",
                "3: rule 2 before it matches whenever it would, and has uses left",
            ],
        ),
        // Two before it share what it would match.
        (
            vec![
                rule(vec![calls(0)], call(&["look"]), 1),
                rule(vec![calls(1)], call(&["pen"]), 1),
                desk(
                    vec![RuleTerm::Calls(CountRange {
                        ge: None,
                        le: Some(1),
                    })],
                    1,
                ),
            ],
            &["3: one of the rules 1, 2 before it matches whenever it would, and has uses left"],
        ),
        // The routing agent is asked whichever agents are there.
        (
            vec![
                rule(vec![calls(0)], RuleAction::AskRouter, 1),
                desk(vec![calls(0)], 1),
            ],
            &["2: rule 1 before it matches whenever it would, and has uses left"],
        ),
    ];
    for (rules, expected) in table {
        let network = with_values(rules);
        assert_eq!(dead(&network, &around()), expected, "{:?}", network.rules);
    }
    // Where its agents may be disabled, the next rule is tried.
    let network = with_values(vec![desk(vec![calls(0)], 1), desk(vec![calls(0)], 1)]);
    let sometimes = Around {
        is_always_there: &|_| false,
        ..around()
    };
    assert_eq!(dead(&network, &around()).len(), 1);
    assert_eq!(dead(&network, &sometimes), [""; 0]);
}

#[test]
fn at_the_cap_a_stop_counts_and_a_call_does_not() {
    let mut network = with_values(vec![
        rule(vec![calls(2)], stop(), 1),
        rule(vec![calls(2)], call(&["pen"]), 1),
        rule(vec![], call(&["desk"]), 2),
    ]);
    network.max_calls = 2;
    assert_eq!(
        dead(&network, &around()),
        ["2: rule 1 before it matches whenever it would, and has uses left"]
    );
    let mut play = Play::of(&network);
    let mut words = ["one", "two"].into_iter();
    assert_eq!(
        play.run(|_| says(words.next().unwrap())),
        "R0 desk R1 desk R2 ■ rule"
    );
    network.rules.remove(0);
    assert_eq!(
        dead(&network, &around()),
        ["1: it wants 2 calls before it, and max_calls = 2 ends the run there"]
    );
}

#[test]
fn values_are_known_as_far_as_anything_sets_them() {
    let first = || rule(vec![calls(0)], call(&["look"]), 1);
    let wants = |value: Value| rule(vec![is("kind", value)], call(&["pen"]), 1);
    let refund = json!("refund");
    // No agent that is called sets the value; a rule does; or it is kept from question to question.
    let nobody = with_values(vec![first(), wants(refund.clone())]);
    assert_eq!(dead(&nobody, &around()), ["2: nothing sets kind to that"]);
    let by_rule = with_values(vec![
        setting(first(), "kind", refund.clone()),
        wants(refund.clone()),
    ]);
    assert_eq!(dead(&by_rule, &around()), [""; 0]);
    let kept = Network {
        persist: true,
        ..nobody.clone()
    };
    assert_eq!(dead(&kept, &around()), [""; 0]);
    // Who has one step gets no tool for it.
    let mut written = nobody;
    written
        .writes
        .insert(agent("look"), vec!["kind".to_owned()]);
    assert_eq!(dead(&written, &around()), [""; 0]);
    let in_vain = Around {
        sets_values: &|_| false,
        ..around()
    };
    assert_eq!(dead(&written, &in_vain), ["2: nothing sets kind to that"]);
    // Numbers are what they are, however they are written.
    for (set, wanted, is_met) in [
        (json!(1), json!(1.0), true),
        (json!(1.0), json!(1), true),
        (json!(1.5), json!(1), false),
        (
            json!(9_007_199_254_740_993_i64),
            json!(9_007_199_254_740_992.0),
            false,
        ),
    ] {
        let network = with_values(vec![
            setting(first(), "score", set.clone()),
            rule(vec![is("score", wanted.clone())], call(&["pen"]), 1),
        ]);
        let found = dead(&network, &around());
        assert_eq!(found.is_empty(), is_met, "{set} {wanted} {found:?}");
    }
    // A thousand constants are more than are followed: each is taken for possible.
    let many: Vec<Value> = (0..1_000).map(Value::from).collect();
    let test = StateTest {
        one_of: many,
        ..StateTest::default()
    };
    let many = RuleTerm::State("score".to_owned(), test);
    let network = with_values(vec![
        rule(vec![many.clone()], call(&["pen"]), 1),
        without(rule(vec![many.clone()], call(&["pen"]), 1), vec![many]),
    ]);
    assert_eq!(
        dead(&network, &around()),
        ["2: its `not` holds whenever the rest of it does"]
    );
}

#[test]
fn who_waits_is_known_in_order() {
    let network = with_values(vec![
        rule(vec![calls(0)], call(&["look", "pen", "check"]), 1),
        rule(
            vec![last("look"), RuleTerm::StackEmpty(true)],
            call(&["desk"]),
            1,
        ),
        rule(vec![calls(1), last("pen")], call(&["desk"]), 1),
        rule(vec![last("check"), RuleTerm::StackEmpty(false)], stop(), 1),
        rule(
            vec![calls(1), RuleTerm::LastTool(vec!["search".to_owned()])],
            stop(),
            1,
        ),
        rule(
            vec![calls(2), RuleTerm::LastTool(vec!["search".to_owned()])],
            stop(),
            1,
        ),
    ]);
    let never = "all that it wants is never so at once";
    assert_eq!(
        dead(&network, &around()),
        [
            format!("2: {never}"),
            format!("3: {never}"),
            format!("4: {never}"),
            format!("6: {never}"),
        ]
    );
    let reach = reach(&network, &around());
    let called: Vec<String> = reach.called.iter().map(ToString::to_string).collect();
    assert_eq!(
        (reach.most_calls, called.join(" ").as_str()),
        (3, "check look pen")
    );
    // Any of them may be disabled.
    let sometimes = Around {
        is_always_there: &|_| false,
        ..around()
    };
    assert_eq!(dead(&network, &sometimes), [format!("6: {never}")]);
}

/// All rules may match at all places, and where who waits differs by what matched before.
#[test]
fn what_is_looked_at_is_bounded() {
    let names: Vec<String> = (0..RULES_MAX).map(|n| format!("a{n:02}")).collect();
    let rules = (0..RULES_MAX).map(|n| {
        let of = |k: usize| names[(n * 7 + k * 3) % RULES_MAX].as_str();
        let agents: Vec<&str> = (0..MEMBERS_MAX).map(of).collect();
        rule(vec![RuleTerm::Text(contains(&names[n]))], call(&agents), 16)
    });
    let mut network = with_values(rules.collect());
    network.max_calls = CALLS_MAX;
    for is_always_there in [true, false] {
        let reach = reach(
            &network,
            &Around {
                is_always_there: &|_| is_always_there,
                ..around()
            },
        );
        assert!(reach.looked_at <= bounds::LOOKED_AT_MAX, "{reach:?}");
        assert!(is_always_there == (reach.looked_at > 500_000), "{reach:?}");
        assert_eq!(reach.most_calls, CALLS_MAX);
    }
}

const NAMES: [&str; 4] = ["look", "pen", "desk", "check"];
const WORDS: [&str; 4] = ["", "one", "one two", "THREE"];

/// Terms of every kind, of few words and numbers, so that they meet.
fn any_term() -> impl Strategy<Value = RuleTerm> {
    let words = || proptest::sample::subsequence(vec!["one", "ONE two", "", "three"], 0..3);
    let test = || {
        (words(), proptest::option::of(any::<bool>()), 0_usize..4).prop_map(
            |(words, is_empty, n)| {
                let pattern = ["two", "^$"].get(n);
                TextTest {
                    contains: words.into_iter().map(str::to_owned).collect(),
                    matches: pattern.map(|it| TextTest::pattern(it).unwrap()),
                    is_empty,
                }
            },
        )
    };
    let some = |all: Vec<&'static str>| {
        let most = all.len();
        proptest::sample::subsequence(all, 1..=most)
            .prop_map(|them| them.into_iter().map(str::to_owned).collect::<Vec<String>>())
    };
    let scopes =
        proptest::sample::subsequence(vec![Scope::Channel, Scope::Thread, Scope::Dm], 1..3);
    let senders = proptest::sample::subsequence(AskerKind::ALL.to_vec(), 1..3);
    prop_oneof![
        3 => (0_u32..5).prop_map(calls),
        1 => (0_u32..4, 0_u32..6).prop_map(|(ge, le)| RuleTerm::Calls(CountRange { ge: Some(ge), le: Some(le) })),
        3 => some(NAMES.to_vec()).prop_map(|names| RuleTerm::LastAgent(names.into_iter().map(AgentName::trusted).collect())),
        2 => any::<bool>().prop_map(RuleTerm::StackEmpty),
        1 => any::<bool>().prop_map(RuleTerm::LastFailed),
        1 => some(vec!["search", "write", "other"]).prop_map(RuleTerm::LastTool),
        2 => any_state_term(),
        1 => some(vec!["Support", "help", "none"]).prop_map(RuleTerm::Alias),
        1 => scopes.prop_map(RuleTerm::Scope),
        1 => some(vec!["acme/C1", "acme/C2"]).prop_map(RuleTerm::Chat),
        1 => senders.prop_map(RuleTerm::Sender),
        1 => any::<bool>().prop_map(RuleTerm::HasFiles),
        1 => test().prop_map(RuleTerm::Text),
        1 => test().prop_map(RuleTerm::LastText),
    ]
}

fn any_value() -> impl Strategy<Value = Value> {
    let all = [
        json!("bug"),
        json!("refund"),
        json!(true),
        json!(0),
        json!(1),
        json!(1.0),
        json!(1.5),
        json!(2),
        json!(9_007_199_254_740_992.0),
        json!(9_007_199_254_740_993_i64),
        json!(["a"]),
    ];
    (0..all.len()).prop_map(move |n| all[n].clone())
}

const KEYS: [&str; 5] = ["kind", "score", "count", "notes", "found"];

fn any_state_term() -> impl Strategy<Value = RuleTerm> {
    let limit = || {
        let limits = [0.5, 1.0, 1.5, 2.0, 9_007_199_254_740_992.0];
        proptest::option::weighted(0.3, (0..limits.len()).prop_map(move |n| limits[n]))
    };
    let one_of = proptest::collection::vec(any_value(), 0..3);
    let is_set = proptest::option::weighted(0.2, any::<bool>());
    (0..KEYS.len(), one_of, limit(), limit(), is_set).prop_map(|(key, one_of, ge, le, is_set)| {
        let test = StateTest {
            one_of,
            ge,
            le,
            is_set,
        };
        RuleTerm::State(KEYS[key].to_owned(), test)
    })
}

fn any_rule_of_all() -> impl Strategy<Value = RoutingRule> {
    let names = || proptest::collection::vec((0..NAMES.len()).prop_map(|n| NAMES[n]), 1..4);
    let action = prop_oneof![
        6 => names().prop_map(|names| call(&names)),
        2 => Just(RuleAction::AskRouter),
        1 => Just(RuleAction::Stop { reason: None }),
    ];
    let terms = proptest::collection::vec(any_term(), 0..3);
    let not = prop_oneof![
        2 => Just(Vec::new()),
        1 => proptest::collection::vec(any_term(), 1..3),
    ];
    let set = proptest::option::weighted(0.3, (0..KEYS.len(), any_value()));
    (terms, not, action, 1_u32..4, set).prop_map(|(terms, not, action, at_most, set)| {
        let rule = without(rule(terms, action, at_most), not);
        match set {
            Some((key, value)) => setting(rule, KEYS[key], value),
            None => rule,
        }
    })
}

/// What happens in one agent call: the words, whether it fails, the tools, and what is tried to be set.
type Act = (usize, bool, usize, Vec<(usize, Value)>);

#[derive(Clone, Debug)]
struct Chance {
    asked: Asked,
    acts: Vec<Act>,
    picks: Vec<usize>,
    off: Option<usize>,
}

fn any_chance() -> impl Strategy<Value = Chance> {
    let act = (
        0..WORDS.len(),
        proptest::bool::weighted(0.3),
        0_usize..4,
        proptest::collection::vec((0..KEYS.len(), any_value()), 0..3),
    );
    let asked = (
        0_usize..3,
        0_usize..3,
        any::<bool>(),
        0_usize..4,
        0..WORDS.len(),
    )
        .prop_map(|(alias, scope, has_files, senders, text)| Asked {
            alias: [None, Some("support"), Some("HELP")][alias],
            scope: [Scope::Channel, Scope::Thread, Scope::Dm][scope],
            chat: ["acme/C1", "acme/C3"][scope % 2],
            senders: [
                vec![AskerKind::Person],
                vec![AskerKind::Bot],
                vec![AskerKind::Person, AskerKind::Admin],
                vec![AskerKind::Bot, AskerKind::Admin],
            ][senders]
                .clone(),
            has_files,
            text: WORDS[text],
        });
    let most = CALLS_MAX as usize;
    (
        asked,
        proptest::collection::vec(act, most),
        proptest::collection::vec(0_usize..5, most),
        proptest::option::of(0..NAMES.len()),
    )
        .prop_map(|(asked, acts, picks, off)| Chance {
            asked,
            acts,
            picks,
            off,
        })
}

/// Which agent may do what in the plays: "desk" is never disabled, "look" searches, "pen" sets values.
fn of_plays() -> Around<'static> {
    Around {
        names: &["support", "help"],
        has_tool: &|agent, tool| {
            matches!(
                (agent.as_str(), tool),
                ("look", "search" | "write") | ("pen", "write")
            )
        },
        sets_values: &|agent| agent.as_str() == "pen",
        is_always_there: &|agent| agent.as_str() == "desk",
    }
}

/// Plays a network, and says which rules it used: of those behind the last call only what ends the run.
fn used_in_play(network: &Network, chance: Chance) -> (BTreeSet<u32>, u32, BTreeSet<AgentName>) {
    let mut play = Play::of(network);
    play.asked = chance.asked;
    let routed = chance.picks.iter().map(|n| match n {
        0 => Routed::Done,
        1 => Routed::NoAnswer,
        n => Routed::Agent(agent(NAMES[n - 2])),
    });
    play.routed = routed.collect();
    let off = chance.off.map(|n| NAMES[n]).filter(|name| *name != "desk");
    play.disabled.extend(off.map(agent));
    let mut acts = chance.acts.into_iter();
    let around = of_plays();
    let mut kept = network.state.defaults();
    play.run(|agent| {
        let (words, fails, tools, sets) = acts.next().expect("max_calls bounds the calls");
        let tools = ["search", "write", "other"].into_iter().take(tools);
        let tools = tools.filter(|tool| (around.has_tool)(agent, tool));
        // What does not fit is refused to the model.
        let sets = sets.into_iter().map(|(key, value)| (KEYS[key], value));
        let mut all_fit =
            |key: &str, value: &Value| network.state.set(&mut kept, key, value).is_ok();
        let sets = sets.filter(|(key, value)| (around.sets_values)(agent) && all_fit(key, value));
        Does {
            says: WORDS[words],
            sets: sets.filter(|(key, _)| *key != "notes").collect(),
            fails,
            tools: tools.map(str::to_owned).collect(),
        }
    });
    let decisions = play.course.decisions.iter();
    let counts = decisions
        .filter(|it| it.calls < network.max_calls || matches!(it.next, Err(StopReason::Rule(_))));
    let called = play.course.calls.iter().map(|it| it.agent.clone());
    (
        counts.filter_map(|it| it.rule).collect(),
        play.course.count(),
        called.collect(),
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, ..ProptestConfig::default() })]

    /// What is said never to be is in no play.
    #[test]
    fn a_rule_that_a_play_uses_is_never_said_to_be_dead(
        rules in proptest::collection::vec(any_rule_of_all(), 1..7),
        max_calls in 1_u32..7,
        chances in proptest::collection::vec(any_chance(), 6),
    ) {
        let mut network = Network { max_calls, ..with_values(rules) };
        network.writes = [(agent("pen"), KEYS.map(str::to_owned).to_vec())].into();
        let NetworkReach { dead, called, most_calls, .. } = reach(&network, &of_plays());
        for chance in chances {
            let (used, count, who) = used_in_play(&network, chance);
            prop_assert!(count <= most_calls);
            prop_assert!(who.is_subset(&called), "{who:?} {called:?}");
            for dead in &dead {
                prop_assert!(!used.contains(&dead.rule), "rule {} was used: {}", dead.rule, dead.why);
            }
        }
    }
}
