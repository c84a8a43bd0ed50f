//! `delegates`: what is taken, and what is refused with words.

use super::*;
use crate::tools::ASK_AGENT;

const TEAM: &str = "[agents.vocative]\ndelegates = [\"look\"]\n[agents.look]\nchannels = []\n";

#[test]
fn an_agent_that_may_ask_others_has_what_asks_them() {
    let text = format!("{MINIMAL}\n{TEAM}purpose = \" finds things \"");
    let (config, warnings) = load_with(&text, []).unwrap();
    let desk = &config.agents[&agent("vocative")];
    assert_eq!(desk.tools, ["conversation_search", ASK_AGENT]);
    assert_eq!(desk.delegates, [agent("look")]);
    assert!(!desk.delegates_see_room);
    assert_eq!(config.agents[&agent("look")].purpose, "finds things");
    let warnings = format!("{warnings:?}");
    assert!(!warnings.contains("serves no channel"), "{warnings}");
}

#[test]
fn who_could_not_be_meant_is_refused() {
    let long = format!("{TEAM}purpose = \"{}\"", "x".repeat(301));
    let cases = [
        (
            "[agents.vocative]\ndelegates = [\"lok\"]\n[agents.look]",
            "did you mean \"look\"?",
        ),
        (
            "[agents.vocative]\ndelegates = [\"vocative\"]",
            "can't wait for itself",
        ),
        (
            "[agents.vocative]\ntools = [\"ask_agent\"]",
            "is empty, and the tool ask_agent asks those",
        ),
        (
            "[agents.vocative]\ndelegates = [\"look\"]\nmax_steps = 1\n[agents.look]",
            "the first step must be the answer",
        ),
        (long.as_str(), "is longer than 300 characters"),
    ];
    for (settings, expected) in cases {
        let told = refused(&format!("{MINIMAL}\n{settings}"));
        assert!(told.contains(expected), "{settings}: {told}");
    }
}
