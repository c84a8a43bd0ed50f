//! `[networks]`: what is taken, what is refused with words, and what is warned of.

use super::*;
use vocative_core::routing::{Action, AnswerFrom};

/// A model is named, so that nothing is said about the built-in one.
const AGENTS: &str = "[models.default]\nprovider = \"offline\"\n[agents.sort]\nchannels = []\n[agents.desk]\nchannels = []\n";

fn with_network(settings: &str) -> String {
    format!("{MINIMAL}\n{AGENTS}[networks.support]\nagents = [\"sort\", \"desk\"]\n{settings}")
}

const RULE: &str = "[[networks.support.rules]]\ncall = \"desk\"\n";

#[test]
fn a_network_is_addressed_as_an_agent_is() {
    let text = with_network(&format!(
        "aliases = [\"help\"]\nsilent = [\"sort\"]\n{RULE}at_most = 3\n"
    ));
    let (config, warnings) = load_with(&text, []).unwrap();
    assert_eq!(
        warnings.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [""; 0]
    );
    let face = &config.agents[&agent("support")];
    assert_eq!(face.names(), ["support", "help"]);
    let network = &face.network.as_ref().unwrap().network;
    assert_eq!(network.default_agent, agent("sort"));
    assert_eq!(
        (network.max_calls, &network.answer_from),
        (8, &AnswerFrom::Last)
    );
    assert_eq!(network.rules[0].action, Action::Call(vec![agent("desk")]));
    assert_eq!(network.rules[0].at_most, 3);
    // It alone serves the channel, so it answers there.
    let channel = &config.channels["acme"];
    assert_eq!(channel.default_agent, Some(agent("support")));
}

#[test]
#[allow(clippy::too_many_lines, reason = "one table")]
fn what_would_not_do_what_it_seems_to_is_refused_where_it_is_written() {
    let state = "[networks.support.state]\nkind = { type = \"string\", enum = [\"refund\", \"bug\"] }\n\
                 notes = { type = \"array\", items = \"string\", merge = \"append\" }\n";
    let rule = |lines: &str| format!("{state}[[networks.support.rules]]\n{lines}\n");
    let cases = [
        (
            rule("call = \"dask\""),
            "there is no [agents.dask] did you mean \"desk\"?",
        ),
        (
            rule("ask_router = true\nstop = true"),
            "a rule has one of call, ask_router = true and stop = true",
        ),
        (
            rule("call = \"desk\"\nwhen = { last_agents = \"desk\" }"),
            "did you mean",
        ),
        (
            rule("call = \"desk\"\nwhen = { state = { kinds = \"bug\" } }"),
            "there is no value \"kinds\"",
        ),
        (
            rule("call = \"desk\"\nwhen = { state = { kind = \"x\" } }"),
            "kind must be one of \"refund\", \"bug\", is \"x\"",
        ),
        (
            rule("call = \"desk\"\nset = { kind = 3 }"),
            "kind must be one of \"refund\", \"bug\"",
        ),
        (
            rule("call = \"desk\"\nwhen = { text = { matches = \"(\" } }"),
            "its pattern is no pattern",
        ),
        (
            rule("call = \"desk\"\nwhen = { scope = \"thred\" }"),
            "did you mean \"thread\"?",
        ),
        (
            rule("call = \"desk\"\nwhen = { not = { not = { calls = 1 } } }"),
            "one level is all there is",
        ),
        (
            rule("call = \"desk\"\nwhen = { calls = \"two\" }"),
            "must be a number, or { ge = 1, le = 3 }",
        ),
        (
            rule("call = \"desk\"\nwhen = { chat = \"general\" }"),
            "is no chat as CHANNEL/CHAT",
        ),
        (
            rule("call = \"desk\"\nat_most = 0"),
            "must be a whole number from 1 to 16, is 0",
        ),
        (
            format!("max_calls = 17\n{RULE}"),
            "must be a whole number from 1 to 16, is 17",
        ),
        (
            format!("answer_from = \"sort\"\nsilent = [\"sort\"]\n{RULE}"),
            "is silent, so nothing would be posted",
        ),
        (
            format!("persist = true\n{RULE}"),
            "there are no values to keep",
        ),
        (
            format!("router_model = \"none\"\n{RULE}"),
            "there is no [models.none]",
        ),
        (String::new(), "there is none, so nobody would be called"),
        (
            format!(
                "[networks.support.writes]\nsort = [\"kimd\"]\n{}",
                rule("call = \"desk\"")
            ),
            "did you mean \"kind\"?",
        ),
        (
            format!(
                "[networks.sort]\nagents = [\"desk\"]\n[[networks.sort.rules]]\ncall = \"desk\"\n{RULE}"
            ),
            "an agent is called sort, too",
        ),
    ];
    for (settings, expected) in cases {
        let text = with_network(&settings);
        let said = refused(&text);
        let words: Vec<&str> = said.split_whitespace().collect();
        assert!(words.join(" ").contains(expected), "{expected}: {said}");
    }
    // The line is named.
    let text = with_network(&rule("call = \"desk\"\nset = { kind = 3 }"));
    let said = refused(&text);
    let line = text
        .lines()
        .position(|line| line.starts_with("[[networks"))
        .unwrap()
        + 1;
    assert!(said.contains(&format!("vocative.toml:{line}")), "{said}");
}

#[test]
fn rules_that_never_match_are_warned_of() {
    let more = "[[networks.support.rules]]\nwhen = { calls = 9 }\ncall = \"sort\"\n";
    let (_, warnings) = load_with(&with_network(&format!("{RULE}{more}")), []).unwrap();
    let told: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(told.join("\n"), @"networks.support.rules[1]: it never matches: it wants 9 calls before it, and max_calls = 8 ends the run there");
}

#[test]
fn numbers_of_values_are_what_they_are_however_they_are_written() {
    let state = "[networks.support.state]\nscore = { type = \"number\", enum = [1, 2], default = 1.0 }\n\
                 count = { type = \"integer\", default = 3.0 }\n";
    let (config, _) = load_with(&with_network(&format!("{state}{RULE}")), []).unwrap();
    let face = &config.agents[&agent("support")];
    let values = face.network.as_ref().unwrap().network.state.defaults();
    assert_eq!(values.to_json(), r#"{"count":3,"score":1.0}"#);
}

#[test]
fn the_examples_are_configurations_that_load() {
    let help_desk = include_str!("../../../config/examples/help-desk.toml");
    let on_call = include_str!("../../../config/examples/on-call.toml");
    for (text, network) in [(help_desk, "desk"), (on_call, "oncall")] {
        let (config, warnings) = load_with(text, []).unwrap();
        let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        assert_eq!(warnings, [""; 0], "{network}");
        assert_eq!(config.channels["acme"].default_agent, Some(agent(network)));
    }
}
