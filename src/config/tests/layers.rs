//! Which values apply: defaults, the file, variables, and the defaults of a kind.

use super::*;
use crate::llm::Provider;

#[test]
fn one_channel_table_is_enough() {
    let (config, warnings) = load_with(MINIMAL, []).unwrap();
    let channel = &config.channels["acme"];
    assert_eq!(channel.default_agent, Some(agent("vocative")));
    assert_eq!(channel.max_trigger_age_ms, 3_600_000);
    assert_eq!(
        (&channel.access.allow_chats[..], &channel.access.admins[..]),
        (&["*".to_owned()][..], &[][..])
    );
    let vocative = &config.agents[&agent("vocative")];
    assert_eq!(vocative.display_name, "Vocative");
    assert_eq!(vocative.prompt, AssemblerOptions::default());
    assert_eq!(config.model_of(vocative).provider, Provider::Offline);
    assert_eq!(
        config.daemon.data_dir,
        Path::new("/home/ada/.local/state/vocative")
    );
    assert_eq!(config.agents_for_channel(channel), [vocative]);
    assert!(!config.prefixes_replies(channel));
    let said: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(said.join("\n"), @r##"
    agents: no agent is configured; the built-in agent "vocative" serves every channel
    models: no model is configured; the built-in offline model answers, which only says what it was asked
    "##);
}

#[test]
fn variables_win_over_the_file_and_the_file_over_defaults() {
    let text = format!("{MINIMAL}\n[daemon]\ndrain_deadline_s = 5\nmax_parallel_runs = 2\n");
    let (config, _) = load_with(
        &text,
        [
            ("VOCATIVE_DAEMON__MAX_PARALLEL_RUNS", "3"),
            ("VOCATIVE_HTTP__ENABLED", "true"),
            ("VOCATIVE_AGENTS__IRIS__ALIASES", "rainbow, Goddess"),
            ("VOCATIVE_AGENTS__IRIS__PROMPT__TIME_WINDOW_MINUTES", "1.5"),
            ("VOCATIVE_CHANNELS__SLACK__ACME__ALLOW_CHATS", ""),
            (
                "VOCATIVE_CHANNELS__TELEGRAM__HOME__TOKEN",
                "credential:telegram",
            ),
            ("VOCATIVE_CHANNELS__TELEGRAM__HOME__ALLOW_PEOPLE", "12,34"),
        ],
    )
    .unwrap();
    assert_eq!(config.daemon.drain_deadline_ms, 5_000);
    assert_eq!(config.daemon.max_parallel_runs, 3);
    assert!(config.http.enabled);
    let iris = &config.agents[&agent("iris")];
    assert_eq!(iris.names(), ["iris", "rainbow", "Goddess"]);
    assert_eq!(iris.prompt.time_window_minutes, Some(1.5));
    assert!(config.channels["acme"].access.allow_chats.is_empty());
    let home = &config.channels["home"].access;
    assert_eq!(home.allow_people, ["12", "34"]);
    assert!(home.allow_chats.is_empty());
    assert_eq!(config.agents.len(), 1);
}

#[test]
fn defaults_of_a_kind_reach_every_table_of_it() {
    let config = load(
        r#"
[capture]
max_trigger_age_minutes = 5
[limits]
tokens_per_day = 9
[defaults.agent]
max_attempts = 7
[defaults.agent.prompt]
token_budget = 5000
[agents.iris]
aliases = ["rainbow"]
[agents.iris.prompt]
ambient_turns = 4
[agents.hermes]
max_attempts = 1
channels = ["home"]
[channels.telegram.home]
token = "env:T"
default_agent = "hermes"
allow_chats = [-1001234567890]
max_trigger_age_minutes = 2
on_unknown = "hold"
"#,
    );
    let (iris, hermes) = (
        &config.agents[&agent("iris")],
        &config.agents[&agent("hermes")],
    );
    assert_eq!(
        (iris.settings.max_attempts, hermes.settings.max_attempts),
        (7, 1)
    );
    assert_eq!(
        (iris.prompt.token_budget, iris.prompt.ambient_turns),
        (5_000, 4)
    );
    let channel = &config.channels["home"];
    assert_eq!(config.agents_for_channel(channel), [hermes, iris]);
    assert!(config.prefixes_replies(channel));
    assert_eq!(channel.max_trigger_age_ms, 120_000);
    assert_eq!(channel.on_unknown, OnUnknown::Hold);
    assert_eq!(channel.limits.tokens_per_day, 9);
    assert_eq!(channel.access.allow_chats, ["-1001234567890"]);
    assert_eq!(channel.commands, ["ask"]);
}

#[test]
fn the_toolpack_profile_changes_only_what_nobody_wrote() {
    let text = format!("{MINIMAL}\n[agents.a.prompt]\nprofile = \"toolpack\"\nparent_turns = 3\n");
    let want = AssemblerOptions {
        parent_turns: 3,
        ..AssemblerOptions::toolpack()
    };
    assert_eq!(load(&text).agents[&agent("a")].prompt, want);
    assert_eq!(want.profile, Profile::Toolpack);
}

#[test]
fn a_file_asked_for_must_exist_and_the_usual_places_need_not() {
    let error = Config::load(Some(Path::new("/nonexistent/v.toml")), &home()).unwrap_err();
    insta::assert_snapshot!(error, @r##"
    one problem in the configuration

      --config names /nonexistent/v.toml, which is not there
      `vocative config example > vocative.toml` makes one to start from

    `vocative config example` prints every setting with what it means
    "##);
    let dir = tempfile::tempdir().unwrap();
    let environment = Environment::from([("HOME", dir.path().to_str().unwrap())]);
    let (_, warnings) = Config::load(None, &environment).unwrap();
    assert!(
        warnings[0]
            .what
            .starts_with("no configuration file was found"),
        "{warnings:?}"
    );
    let path = dir.path().join(".config/vocative/vocative.toml");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, MINIMAL).unwrap();
    let (config, _) = Config::load(None, &environment).unwrap();
    assert_eq!(config.channels.len(), 1);
}

#[test]
fn show_says_where_each_value_came_from() {
    let text = format!("{MINIMAL}\n[defaults.slack]\nsockets = 2\n");
    let (config, _) = load_with(&text, [("VOCATIVE_LIMITS__TOKENS_PER_DAY", "7")]).unwrap();
    let shown = config.show();
    let wanted: Vec<&str> = shown
        .lines()
        .filter(|line| {
            [
                "bot_token",
                "sockets",
                "tokens_per_day",
                "readers",
                "[channels",
            ]
            .iter()
            .any(|start| line.starts_with(start))
        })
        .collect();
    insta::assert_snapshot!(wanted.join("\n"), @r##"
    [channels.slack.acme]
    bot_token = "env:SLACK_BOT_TOKEN"        # vocative.toml:4
    sockets = 2                              # vocative.toml:7
    [channels.slack.acme.manners]
    [channels.slack.acme.retention_days]
    tokens_per_day = 5000000                 # default
    tokens_per_day = 7                       # $VOCATIVE_LIMITS__TOKENS_PER_DAY
    tokens_per_day_person = 1000000          # default
    readers = 4                              # default
    "##);
    let shown: toml::Table = toml::from_str(&shown).unwrap();
    assert_eq!(shown["store"]["readers"].as_integer(), Some(4));
}

#[test]
fn a_system_configuration_read_from_a_shell_means_the_units_folders() {
    let dirs = |file: &str, variables: &[(&str, &str)]| {
        let environment = Environment::from_pairs(variables.iter().copied());
        let (config, _) = Config::from_text(Some((Path::new(file), "")), &environment).unwrap();
        let shown = |path: &Path| path.display().to_string();
        [
            shown(&config.daemon.data_dir),
            shown(&config.daemon.runtime_dir),
        ]
    };
    let shell = [("HOME", "/root"), ("XDG_RUNTIME_DIR", "/run/user/0")];
    assert_eq!(
        dirs("/etc/vocative/vocative.toml", &shell),
        ["/var/lib/vocative", "/run/vocative"]
    );
    assert_eq!(
        dirs("/etc/vocative/cells/acme/vocative.toml", &shell),
        ["/var/lib/vocative-cells/acme", "/run/vocative-cells/acme"]
    );
    assert_eq!(
        dirs("/etc/vocative/old/vocative.toml", &shell),
        ["/root/.local/state/vocative", "/run/user/0/vocative"]
    );
    assert_eq!(
        dirs("/root/vocative.toml", &shell),
        ["/root/.local/state/vocative", "/run/user/0/vocative"]
    );
    let unit = [
        ("STATE_DIRECTORY", "/var/lib/other"),
        ("RUNTIME_DIRECTORY", "/run/other"),
    ];
    assert_eq!(
        dirs("/etc/vocative/vocative.toml", &unit),
        ["/var/lib/other", "/run/other"]
    );
}

#[test]
fn an_agent_like_another_one_has_its_settings_but_for_names() {
    let text = format!(
        "{MINIMAL}\ndefault_agent = \"desk\"\n[models.default]\nprovider = \"offline\"\n[models.deep]\nprovider = \"offline\"\n\
         [agents.desk]\ndisplay_name = \"Desk\"\naliases = [\"help\"]\ninstructions = \"Be kind.\"\n\
         max_steps = 4\ntools = []\nprompt.token_budget = 900\n\
         [agents.deep]\nlike = \"desk\"\nmodel = \"deep\"\naliases = [\"think\"]\nmax_steps = 5\n"
    );
    let config = load(&text);
    let (desk, deep) = (
        &config.agents[&agent("desk")],
        &config.agents[&agent("deep")],
    );
    assert_eq!(deep.settings.model, "deep");
    assert_eq!(
        (deep.display_name.as_str(), &deep.settings.aliases[..]),
        ("Deep", &["think".to_owned()][..])
    );
    assert_eq!((desk.settings.max_steps, deep.settings.max_steps), (4, 5));
    assert_eq!(deep.instructions, desk.instructions);
    assert_eq!((deep.tools.len(), deep.prompt.token_budget), (0, 900));
}
