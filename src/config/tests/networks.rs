//! `[networks]`: what is accepted, what is refused with which words, and what is warned of.

use super::*;
use vocative_core::routing::{AnswerFrom, RuleAction};

/// A model is configured, so that there is no warning about the built-in one.
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
    assert_eq!(
        network.rules[0].action,
        RuleAction::Call(vec![agent("desk")])
    );
    assert_eq!(network.rules[0].at_most, 3);
    // Only the network serves the channel, so it answers there.
    let channel = &config.channels["acme"];
    assert_eq!(channel.default_agent, Some(agent("support")));
}

#[test]
#[allow(clippy::too_many_lines, reason = "one table")]
fn what_would_not_do_what_it_seems_to_is_refused_where_it_is_written() {
    let state = "[networks.support.state]\nkind = { type = \"string\", enum = [\"refund\", \"bug\"] }\n\
                 notes = { type = \"array\", items = \"string\", merge = \"append\" }\n";
    let rule = |lines: &str| format!("{state}[[networks.support.rules]]\n{lines}\n");
    let long = "x".repeat(4_000);
    let longs = (0..5).map(|n| format!("k{n} = {{ type = \"string\", default = \"{long}\" }}\n"));
    let longs: String = longs.collect();
    let cases = [
        (
            format!("[networks.support.state]\n{longs}{RULE}"),
            "has defaults of more than 16384 bytes together",
        ),
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
    // The message names the line.
    let text = with_network(&rule("call = \"desk\"\nset = { kind = 3 }"));
    let said = refused(&text);
    let line = text
        .lines()
        .position(|line| line.starts_with("[[networks"))
        .unwrap()
        + 1;
    assert!(said.contains(&format!("vocative.toml:{line}")), "{said}");
}

/// The warnings about the network, one on each line, for agents with these further settings and this network.
fn warned(agents: &str, settings: &str) -> String {
    let text = format!(
        "{MINIMAL}\n{AGENTS}{agents}[networks.support]\nagents = [\"sort\", \"desk\"]\n{settings}"
    );
    let (_, warnings) = load_with(&text, []).unwrap();
    let told = warnings.iter().map(ToString::to_string);
    let of_network: Vec<String> = told.filter(|it| it.starts_with("networks.")).collect();
    of_network.join("\n")
}

const STATE: &str = "[networks.support.state]\nkind = { type = \"string\", enum = [\"refund\", \"bug\"], default = \"bug\" }\n\
                     score = { type = \"number\", enum = [1, 2], default = 1.0 }\n";

fn rules(lines: &[&str]) -> String {
    let each = lines.iter();
    each.map(|line| format!("[[networks.support.rules]]\n{line}\n"))
        .collect()
}

#[test]
fn rules_that_never_match_are_warned_of() {
    let far = rules(&["call = \"desk\"", "when = { calls = 9 }\ncall = \"sort\""]);
    insta::assert_snapshot!(warned("", &far), @"networks.support.rules[1]: rule 2 never matches: it wants 9 calls before it, and max_calls = 8 ends the run there");
    let many = rules(&[
        "when = { calls = 0 }\ncall = \"sort\"",
        "when = { calls = 0 }\ncall = \"desk\"",
        "when = { alias = \"hulp\" }\ncall = \"desk\"",
        "when = { last_tool = \"knowledge_search\" }\ncall = \"desk\"",
        "when = { last_tool = \"set_state\" }\ncall = \"desk\"",
        "when = { state = { kind = \"refund\" } }\ncall = \"desk\"",
        "when = { state = { score = { ge = 5, le = 3 } } }\ncall = \"desk\"",
        "when = { state = { score = 1 }, last_agent = \"sort\" }\ncall = \"desk\"",
        "when = { last_agent = \"sort\", not = { last_agent = \"sort\" } }\ncall = \"desk\"",
    ]);
    insta::assert_snapshot!(warned("", &format!("{STATE}{many}")), @"
    networks.support.rules[1]: rule 2 never matches: rule 1 before it matches whenever it would, and has uses left
    networks.support.rules[2]: rule 3 never matches: the network has no such name
    networks.support.rules[3]: rule 4 never matches: no agent that may have been called last has knowledge_search
    networks.support.rules[4]: rule 5 never matches: no agent that may have been called last has set_state
    networks.support.rules[5]: rule 6 never matches: nothing sets kind to that
    networks.support.rules[6]: rule 7 never matches: no value of score is like that
    networks.support.rules[8]: rule 9 never matches: its `not` holds whenever the rest of it does
    ");
    // If an agent may be disabled, the next rule can match; if an agent writes a value, the value can occur; if an
    // agent has a tool, it may have called it.
    let agents = "[agents.look]\nchannels = []\ntools = [\"conversation_search\"]\n\
                  [agents.late]\nchannels = []\nenabled = { days = [\"sat\", \"sun\"] }\n";
    let few = rules(&[
        "when = { calls = 0 }\ncall = \"late\"",
        "when = { calls = 0 }\ncall = \"look\"",
        "when = { last_tool = \"conversation_search\", state = { kind = \"refund\" } }\ncall = \"desk\"",
        "when = { last_tool = \"set_state\" }\ncall = \"sort\"",
    ]);
    let writes = "[networks.support.writes]\nlook = [\"kind\"]\n";
    assert_eq!(warned(agents, &format!("{STATE}{writes}{few}")), "");
}

#[test]
fn networks_that_say_nothing_or_set_nothing_are_warned_of() {
    let one_step = "[agents.short]\nchannels = []\nmax_steps = 1\n";
    let writes = "[networks.support.writes]\nshort = [\"kind\"]\nsort = [\"kind\"]\n";
    let short = rules(&["call = \"short\""]);
    let cases = [
        (
            format!("{STATE}{writes}{short}"),
            "networks.support.writes: short has max_steps = 1, so it never gets set_state\n\
             networks.support.writes: nothing calls sort",
        ),
        (
            format!("answer_from = \"sort\"\n{RULE}"),
            "networks.support.answer_from: nothing calls sort, so nothing is ever posted",
        ),
        (
            format!("answer_from = \"desk\"\nsilent = [\"sort\"]\n{RULE}"),
            "",
        ),
        (
            format!("silent = [\"sort\", \"desk\"]\n{RULE}"),
            "networks.support.silent: has every agent that is ever called, so nothing is ever posted",
        ),
        (
            format!("answer_from = \"each\"\nsilent = [\"desk\"]\n{RULE}"),
            "networks.support.silent: has every agent that is ever called, so nothing is ever posted",
        ),
        (
            format!(
                "silent = [\"desk\"]\n{}",
                rules(&["call = [\"desk\", \"sort\"]"])
            ),
            "",
        ),
    ];
    for (settings, expected) in cases {
        assert_eq!(warned(one_step, &settings), expected, "{settings}");
    }
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
