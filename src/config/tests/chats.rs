//! Prompt options of single chats.

use super::*;

#[test]
fn a_chat_has_prompt_options_of_its_own() {
    let text = r#"
[agents.iris.prompt]
token_budget = 5000
[agents.hermes]
channels = ["home"]
[channels.slack.acme]
app_token = "env:A"
bot_token = "env:B"
[channels.slack.acme.chats.C0123ABCD.prompt]
ambient_turns = 20
scope = "thread"
[channels.telegram.home]
token = "env:T"
default_agent = "iris"
[channels.telegram.home.chats.-1001234567890]
prompt = { addressed_only = false, time_window_minutes = 0.5 }
"#;
    let variable = "VOCATIVE_CHANNELS__SLACK__ACME__CHATS__C0123ABCD__PROMPT__TOKEN_BUDGET";
    let (config, warnings) = load_with(text, [(variable, "7000")]).unwrap();
    let own = &config.agents[&agent("iris")].prompt;
    let there = config.channels["acme"].chats["C0123ABCD"].over(own);
    assert_eq!(
        there,
        AssemblerOptions {
            ambient_turns: 20,
            scope: Some(Scope::Thread),
            token_budget: 7_000,
            ..AssemblerOptions::default()
        }
    );
    let own = &config.agents[&agent("hermes")].prompt;
    let there = config.channels["home"].chats["-1001234567890"].over(own);
    assert_eq!(
        there,
        AssemblerOptions {
            addressed_only: false,
            time_window_minutes: Some(0.5),
            ..AssemblerOptions::default()
        }
    );
    assert!(!warnings.iter().any(|w| w.to_string().contains(".chats.")));
    let shown = config.show();
    let of_chat = shown
        .split("[channels.slack.acme.chats.C0123ABCD.prompt]\n")
        .nth(1);
    let lines: Vec<&str> = of_chat.unwrap().lines().take(3).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    ambient_turns = 20                       # vocative.toml:10
    scope = "thread"                         # vocative.toml:11
    token_budget = 7000                      # $VOCATIVE_CHANNELS__SLACK__ACME__CHATS__C0123ABCD__PROMPT__TOKEN_BUDGET
    "#);
}

#[test]
fn what_is_wrong_with_a_chats_options_is_said_with_its_line() {
    insta::assert_snapshot!(refused(r#"
[channels.slack.acme]
app_token = "env:A"
bot_token = "env:B"
[channels.slack.acme.chats."general".prompt]
ambient_turns = 1
[channels.slack.acme.chats.C1.prompt]
token_buget = 5
max_turns_to_load = 0
[channels.slack.acme.chats.C2]
promt = {}
[channels.slack.acme.chats."*".prompt]
ambient_turns = 1
[channels.telegram.home]
token = "env:T"
chats.C3.prompt.profile = "toolpack"
"#), @r##"
    7 problems in the configuration

      vocative.toml:5  channels.slack.acme.chats.general
          "general" is no id of a chat
          Slack ids look like C0123ABCD: names change, ids don't; it is at the bottom of the channel's or person's details

      vocative.toml:8  channels.slack.acme.chats.C1.prompt.token_buget
          there is no such setting
          did you mean token_budget?

      vocative.toml:9  channels.slack.acme.chats.C1.prompt.max_turns_to_load
          must be a whole number from 1 to 10000, is 0

      vocative.toml:11  channels.slack.acme.chats.C2.promt
          there is no such setting
          did you mean prompt?

      vocative.toml:12  channels.slack.acme.chats.*
          "*" is no id of a chat
          what holds in all chats is set in [agents.NAME.prompt]

      vocative.toml:16  channels.telegram.home.chats.C3
          "C3" is no id of a chat
          Telegram ids are numbers: `vocative check` and the log name those of chats that are not served yet

      vocative.toml:16  channels.telegram.home.chats.C3.prompt.profile
          there is no such setting
          profile belongs in [agents.NAME.prompt]

    `vocative config example` prints every setting with what it means
    "##);
}

#[test]
fn a_chat_can_set_whatever_an_agent_can() {
    let settings = |name: &str| {
        let table = &schema()["$defs"][name]["properties"];
        let names = table.as_object().unwrap().keys().cloned();
        names.collect::<BTreeSet<String>>()
    };
    let mut of_agents = settings("PromptShape");
    assert!(of_agents.remove("profile"));
    assert_eq!(settings("ChatPromptShape"), of_agents);
    let bounds = |name: &str, setting: &str| {
        let place = &schema()["$defs"][name]["properties"][setting];
        (place["minimum"].clone(), place["maximum"].clone())
    };
    for setting in &of_agents {
        let of_chats = bounds("ChatPromptShape", setting);
        assert_eq!(of_chats, bounds("PromptShape", setting), "{setting}");
    }
}

#[test]
fn a_chats_options_that_leave_no_room_are_warned_of() {
    let text = r#"
[channels.slack.acme]
app_token = "env:A"
bot_token = "env:B"
[channels.slack.acme.chats.C1.prompt]
token_budget = 500
"#;
    let (_, warnings) = load_with(text, []).unwrap();
    let said: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert!(
        said.iter().any(|w| w.contains(
            "channels.slack.acme.chats.C1.prompt: leaves vocative trigger_max_tokens = 2000 over token_budget = 500"
        )),
        "{said:?}"
    );
}
