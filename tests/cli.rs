//! The program as people and scripts meet it: exit codes, stdout and stderr.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

const CONFIG: &str = r#"
[models.gpt]
provider = "openai"
model = "gpt-5-mini"
api_key = "env:KEY"
[agents.iris]
aliases = ["rainbow"]
model = "gpt"
[agents.hermes]
model = "gpt"
channels = ["acme"]
[channels.slack.acme]
app_token = "env:APP"
bot_token = "env:BOT"
default_agent = "iris"
[channels.telegram.home]
token = "env:TELEGRAM"
allow_people = ["5001"]
[daemon]
data_dir = "data"
landlock = "off"
"#;

const SECRETS: [(&str, &str); 4] = [
    ("KEY", "sk-value"),
    ("APP", "xapp-value"),
    ("BOT", "xoxb-value"),
    ("TELEGRAM", "12:value"),
];

/// Runs the program in an empty folder, with nothing in its environment but `variables`.
fn vocative(dir: &Path, args: &[&str], variables: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_vocative"))
        .args(args)
        .current_dir(dir)
        .env_clear()
        .env("HOME", dir)
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}

fn told(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[test]
fn check_says_who_answers_where() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("vocative.toml"), CONFIG).unwrap();
    let (code, stdout, stderr) = told(&vocative(dir.path(), &["check"], &SECRETS));
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let stdout = stdout.replace(&*dir.path().to_string_lossy(), "/srv");
    insta::assert_snapshot!(stdout, @r##"
    configuration  vocative.toml
    database       /srv/data
    landlock       off (daemon.landlock)
    channel        acme (Slack): iris answers, hermes when named
    channel        home (Telegram): iris answers
    agent          hermes: goes by hermes; model gpt (gpt-5-mini of openai)
    agent          iris: goes by iris, rainbow; model gpt (gpt-5-mini of openai)
    recall         hermes: overheard lines that answer a question are sent to the model gpt (recall = "auto")
    recall         iris: overheard lines that answer a question are sent to the model gpt (recall = "auto")
    tokens         acme: a day, a member may spend 1,000,000 tokens, a stranger nothing, all together 5,000,000 tokens
    tokens         home: a day, whoever is served may spend 1,000,000 tokens, all together 5,000,000 tokens

    The configuration is fine, and every secret is there.
    The platforms were not asked; `vocative check --live` does.
    "##);
    let (code, _, stderr) = told(&vocative(dir.path(), &["check"], &SECRETS[..2]));
    assert_eq!(code, Some(78));
    insta::assert_snapshot!(stderr, @r##"
    error: 2 problems in the configuration

      vocative.toml:14  channels.slack.acme.bot_token
          the environment variable BOT is not set

      vocative.toml:17  channels.telegram.home.token
          the environment variable TELEGRAM is not set

    `vocative config example` prints every setting with what it means
    "##);
}

#[test]
fn check_says_what_agents_that_are_asked_come_to() {
    let dir = tempfile::tempdir().unwrap();
    let asks = "[agents.look]\nmodel = \"gpt\"\nchannels = []\nmax_steps = 3\ndelegates = [\"pen\"]\n\
                [agents.pen]\nmodel = \"gpt\"\nchannels = []\nmax_steps = 2\n\
                [networks.team]\nchannels = [\"acme\"]\nagents = [\"look\"]\n\
                [[networks.team.rules]]\nwhen = { calls = 0 }\ncall = \"look\"\n";
    let config = CONFIG.replacen(
        "[agents.hermes]\n",
        "[agents.hermes]\ndelegates = [\"look\"]\n",
        1,
    );
    std::fs::write(
        dir.path().join("vocative.toml"),
        format!("{config}\n{asks}"),
    )
    .unwrap();
    let (code, stdout, stderr) = told(&vocative(dir.path(), &["check"], &SECRETS));
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let asks: Vec<&str> = stdout
        .lines()
        .filter(|line| line.starts_with("asks "))
        .collect();
    insta::assert_snapshot!(asks.join("\n"), @r"
    asks           hermes: agents that it asks add at most 20 runs to a question, with 44 calls of models
    asks           look: agents that it asks add at most 4 runs to a question, with 8 calls of models
    asks           team: agents that it asks add at most 4 runs to a question, with 8 calls of models
    ");
}

#[test]
fn check_says_what_a_network_that_is_asked_comes_to() {
    let dir = tempfile::tempdir().unwrap();
    // pen is none of the network's agents, and a rule calls it.
    let asks = "[agents.look]\nmodel = \"gpt\"\nchannels = []\nmax_steps = 3\n\
                [agents.pen]\nmodel = \"gpt\"\nchannels = []\nmax_steps = 2\ndelegates = [\"check\"]\n\
                [agents.check]\nmodel = \"gpt\"\nchannels = []\nmax_steps = 5\n\
                [networks.team]\nchannels = []\nagents = [\"look\"]\n\
                [[networks.team.rules]]\nwhen = { calls = 0 }\ncall = [\"look\", \"pen\"]\n";
    let config = CONFIG.replacen(
        "[agents.hermes]\n",
        "[agents.hermes]\ndelegates = [\"team\"]\n",
        1,
    );
    std::fs::write(
        dir.path().join("vocative.toml"),
        format!("{config}\n{asks}"),
    )
    .unwrap();
    let (code, stdout, stderr) = told(&vocative(dir.path(), &["check"], &SECRETS));
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let asks: Vec<&str> = stdout
        .lines()
        .filter(|line| line.starts_with("asks ") || line.starts_with("network "))
        .collect();
    insta::assert_snapshot!(asks.join("\n"), @r"
    network        team: a question takes at most 2 agent calls (look, pen), with 5 calls of models, and 0 calls of the routing agent's
    asks           hermes: agents that it asks add at most 20 runs to a question, with 100 calls of models
    asks           pen: agents that it asks add at most 4 runs to a question, with 20 calls of models
    asks           team: agents that it asks add at most 4 runs to a question, with 20 calls of models
    ");
}

#[test]
fn no_secret_is_ever_printed() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("vocative.toml"), CONFIG).unwrap();
    for args in [&["check"][..], &["config", "show"], &["-vv", "check"]] {
        let (_, stdout, stderr) = told(&vocative(dir.path(), args, &SECRETS));
        assert!(!stdout.is_empty(), "{args:?}");
        assert!(!format!("{stdout}{stderr}").contains("value"), "{args:?}");
    }
}

#[test]
fn a_wrong_configuration_exits_with_78() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mine.toml");
    std::fs::write(&path, "[deamon]\n").unwrap();
    for args in [
        &["check", "--config", "mine.toml"][..],
        &["config", "show", "-c", "mine.toml"],
    ] {
        let (code, stdout, stderr) = told(&vocative(dir.path(), args, &[]));
        assert_eq!((code, stdout.as_str()), (Some(78), ""));
        assert!(stderr.contains("mine.toml:1  deamon"), "{stderr}");
    }
}

#[test]
fn a_folder_that_nobody_could_use_is_told_before_the_start() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("vocative.toml"), CONFIG).unwrap();
    std::fs::write(dir.path().join("data"), "a file").unwrap();
    let (code, _, stderr) = told(&vocative(dir.path(), &["check"], &SECRETS));
    assert_eq!(code, Some(74), "{stderr}");
    assert!(stderr.contains("daemon.data_dir can't be used"), "{stderr}");
    assert_eq!(told(&vocative(dir.path(), &["run"], &SECRETS)).0, Some(74));
}

#[test]
fn a_backup_into_no_folder_says_so() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("vocative.toml"), CONFIG).unwrap();
    std::fs::create_dir(dir.path().join("data")).unwrap();
    std::fs::write(dir.path().join("data/vocative.db"), "").unwrap();
    for target in ["missing/", "missing/one.db"] {
        let (code, _, stderr) = told(&vocative(dir.path(), &["backup", target], &[]));
        assert_eq!(code, Some(1));
        assert!(stderr.contains("there is no folder missing"), "{stderr}");
    }
}

#[test]
fn a_variable_that_holds_a_secret_is_no_setting_misspelt() {
    let dir = tempfile::tempdir().unwrap();
    let api = "[api]\nenabled = true\ntoken = \"env:VOCATIVE_API_TOKEN\"\n";
    std::fs::write(dir.path().join("vocative.toml"), format!("{CONFIG}{api}")).unwrap();
    let token = ("VOCATIVE_API_TOKEN", "value");
    let mut variables = SECRETS.to_vec();
    variables.push(token);
    let (_, stdout, _) = told(&vocative(dir.path(), &["check"], &variables));
    assert!(!stdout.contains("warning"), "{stdout}");
    std::fs::write(dir.path().join("vocative.toml"), CONFIG).unwrap();
    let (_, stdout, _) = told(&vocative(dir.path(), &["check"], &variables));
    assert!(
        stdout.contains("$VOCATIVE_API_TOKEN is not read"),
        "{stdout}"
    );
}

#[test]
fn a_wrong_command_line_exits_with_2() {
    let dir = tempfile::tempdir().unwrap();
    for args in [&["chekc"][..], &["check", "--lvie"], &["prompt"]] {
        let (code, stdout, stderr) = told(&vocative(dir.path(), args, &[]));
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{stderr}");
    }
}

#[test]
fn the_example_is_a_valid_configuration() {
    let dir = tempfile::tempdir().unwrap();
    let (code, example, _) = told(&vocative(dir.path(), &["config", "example"], &[]));
    assert_eq!(code, Some(0));
    std::fs::write(dir.path().join("vocative.toml"), example).unwrap();
    let (code, stdout, stderr) = told(&vocative(dir.path(), &["check"], &[]));
    // It is valid, and there is nothing to serve with it: `vocative run` ends with the same code.
    assert_eq!((code, stderr.as_str()), (Some(78), ""));
    assert!(stdout.contains("has no channel yet"), "{stdout}");
    assert_eq!(told(&vocative(dir.path(), &["run"], &[])).0, Some(78));
}

#[test]
fn the_sandbox_says_where_it_is_in_one_line_of_json() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_vocative"))
        .args(["sandbox", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let told: serde_json::Value = serde_json::from_str(&line).unwrap();
    for platform in ["slack", "telegram", "model"] {
        let control = told[platform]["control_url"].as_str().unwrap();
        assert!(control.ends_with("/control/"), "{line}");
    }
    assert!(
        told["slack"]["bot_token"]
            .as_str()
            .unwrap()
            .starts_with("xoxb-")
    );
}

#[test]
fn the_schema_is_json() {
    let dir = tempfile::tempdir().unwrap();
    let (code, schema, _) = told(&vocative(dir.path(), &["config", "schema"], &[]));
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    assert_eq!((code, &schema["title"]), (Some(0), &"Vocative".into()));
}

#[test]
fn a_transcript_is_read_from_stdin_and_a_closed_stderr_keeps_the_exit_code() {
    let dir = tempfile::tempdir().unwrap();
    let transcript = r#"{"conversationId": "C1", "agentId": "kael", "agentName": "Kael", "options": null,
        "now": "2026-06-15T12:00:00.000Z", "messages": []}"#;
    std::fs::write(dir.path().join("t.json"), transcript).unwrap();
    let shell = |line: &str| {
        let output = Command::new("/bin/sh")
            .args(["-c", line])
            .current_dir(dir.path())
            .env_clear()
            .env("HOME", dir.path())
            .env("VOCATIVE", env!("CARGO_BIN_EXE_vocative"))
            .output()
            .unwrap();
        told(&output)
    };
    let (code, stdout, stderr) = shell("$VOCATIVE prompt --transcript - < t.json");
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(stdout.contains("\"estimatedTokens\": 0"), "{stdout}");
    let (code, ..) = shell("$VOCATIVE check -c nowhere.toml 2>&-");
    assert_eq!(code, Some(78));
}
