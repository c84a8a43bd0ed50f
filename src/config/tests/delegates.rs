//! `delegates`: what is accepted, and what is refused with which words.

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
    assert!(!desk.settings.delegates_see_room());
    assert_eq!(
        config.agents[&agent("look")].settings.purpose,
        "finds things"
    );
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

const NETWORK: &str = "[agents.look]\nchannels = []\n[agents.pen]\nchannels = []\n\
     [networks.support]\nchannels = []\npurpose = \" answers customers \"\nagents = [\"look\"]\n\
     [[networks.support.rules]]\ncall = [\"look\", \"pen\"]\n";

#[test]
fn a_network_may_be_asked_and_says_what_it_is_for() {
    let text = format!("{MINIMAL}\n[agents.vocative]\ndelegates = [\"support\"]\n{NETWORK}");
    let (config, warnings) = load_with(&text, []).unwrap();
    assert_eq!(
        config.agents[&agent("vocative")].delegates,
        [agent("support")]
    );
    let face = &config.agents[&agent("support")];
    assert_eq!(face.settings.purpose, "answers customers");
    let called: Vec<_> = face.callable().into_iter().cloned().collect();
    assert_eq!(called, [agent("look"), agent("pen")]);
    let warnings = format!("{warnings:?}");
    assert!(!warnings.contains("serves no channel"), "{warnings}");
}

#[test]
fn a_network_that_would_wait_for_who_asks_it_is_refused() {
    // The agent is not listed in `agents`, but a rule calls it.
    let own = format!(
        "{MINIMAL}\n{}",
        NETWORK.replace(
            "[agents.pen]\n",
            "[agents.pen]\ndelegates = [\"support\"]\n"
        )
    );
    let told = refused(&own);
    let expected = "names the network \"support\", which calls this agent";
    assert!(told.contains(expected), "{told}");
    let misspelt = format!("{MINIMAL}\n[agents.vocative]\ndelegates = [\"suport\"]\n{NETWORK}");
    let told = refused(&misspelt);
    assert!(told.contains("did you mean \"support\"?"), "{told}");
    // A mistake in a network is reported once, where it is written.
    let faulty = NETWORK.replace("purpose =", "purposes =");
    let text = format!("{MINIMAL}\n[agents.vocative]\ndelegates = [\"support\"]\n{faulty}");
    let told = refused(&text);
    assert!(!told.contains("there is no [agents.support]"), "{told}");
    let long = NETWORK.replace("answers customers", &"x".repeat(301));
    let told = refused(&format!("{MINIMAL}\n{long}"));
    assert!(
        told.contains("networks.support.purpose") && told.contains("is longer than 300"),
        "{told}"
    );
}

#[test]
fn a_network_that_nobody_can_ask_is_warned_of() {
    let (_, warnings) = load_with(&format!("{MINIMAL}\n[agents.vocative]\n{NETWORK}"), []).unwrap();
    let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    let told = warnings.iter().filter(|it| it.contains("no agent may ask"));
    let told: Vec<&String> = told.collect();
    assert_eq!(told.len(), 1, "{warnings:?}");
    assert!(told[0].contains("networks.support.channels"), "{told:?}");
}
