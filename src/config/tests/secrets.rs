//! Secrets: where they are read from, and that none is shown.

use super::*;

#[test]
fn a_literal_secret_is_refused_and_never_shown() {
    let text = r#"
[channels.telegram.home]
token = "123456:AAsecret"
[models.default]
provider = "openai"
model = "m"
api_key = "sk-secret"
"#;
    let said = refused(text);
    assert!(!said.contains("secret\"") && !said.contains("AAsecret") && !said.contains("sk-"));
    insta::assert_snapshot!(said, @r##"
    2 problems in the configuration

      vocative.toml:3  channels.telegram.home.token
          must say where the secret is, not what it is; a secret written here may already be in backups or in version control, so replace it (its value is not shown)
          write "env:TOKEN" for an environment variable, "file:PATH" for a file, or "credential:NAME" for a systemd credential

      vocative.toml:7  models.default.api_key
          must say where the secret is, not what it is; a secret written here may already be in backups or in version control, so replace it (its value is not shown)
          write "env:API_KEY" for an environment variable, "file:PATH" for a file, or "credential:NAME" for a systemd credential

    `vocative config example` prints every setting with what it means
    "##);
}

#[test]
fn missing_secrets_are_reported_at_once() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("empty"), "\n").unwrap();
    let config = load(&format!(
        r#"
[models.default]
provider = "openai"
model = "m"
api_key = "file:{0}/absent"
[channels.slack.acme]
app_token = "env:NOT_SET"
bot_token = "credential:bot"
[channels.telegram.home]
token = "file:{0}/empty"
"#,
        dir.path().display()
    ));
    let said = config.resolve_secrets(&home()).unwrap_err().to_string();
    insta::assert_snapshot!(said.replace(dir.path().to_str().unwrap(), "DIR"), @r##"
    4 problems in the configuration

      vocative.toml:5  models.default.api_key
          the file DIR/absent can't be read: No such file or directory (os error 2)

      vocative.toml:7  channels.slack.acme.app_token
          the environment variable NOT_SET is not set

      vocative.toml:8  channels.slack.acme.bot_token
          there is no credential bot: $CREDENTIALS_DIRECTORY is not set, so this was not started by systemd with LoadCredential=bot:FILE

      vocative.toml:10  channels.telegram.home.token
          the file DIR/empty is empty

    `vocative config example` prints every setting with what it means
    "##);
}

#[test]
fn secrets_are_read_from_all_three_places() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    for name in ["open", "bot"] {
        let path = dir.path().join(name);
        std::fs::write(&path, format!("1:{name}-value\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    }
    let path = dir.path().join("vocative.toml");
    let text = "[channels.slack.acme]\napp_token = \"env:APP\"\nbot_token = \"credential:bot\"\n\
                [channels.telegram.home]\ntoken = \"file:open\"\n";
    std::fs::write(&path, text).unwrap();
    let environment = Environment::from([
        ("HOME", "/home/ada"),
        ("APP", "app-value"),
        ("CREDENTIALS_DIRECTORY", dir.path().to_str().unwrap()),
    ]);
    let (config, _) = Config::load(Some(&path), &environment).unwrap();
    let (secrets, warnings) = config.resolve_secrets(&environment).unwrap();
    let PlatformSettings::Slack(slack) = &config.channels["acme"].platform else {
        panic!("acme is a Slack channel");
    };
    let PlatformSettings::Telegram(telegram) = &config.channels["home"].platform else {
        panic!("home is a Telegram channel");
    };
    let platforms::SlackTransport::Socket { app_token } = &slack.transport else {
        panic!("acme has sockets");
    };
    let read = [app_token, &slack.bot_token, &telegram.token]
        .map(|reference| secrets.get(reference).expose_secret());
    assert_eq!(read, ["app-value", "1:bot-value", "1:open-value"]);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert_eq!(warnings[0].key, "channels.telegram.home.token");
    assert!(!format!("{secrets:?} {environment:?}").contains("-value"));
}

#[test]
fn secrets_that_are_not_there_are_told_with_all_other_mistakes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vocative.toml");
    let text = r#"
[daemon]
max_parallel_runs = "two"
[models.default]
provider = "anthropic"
model = "m"
api_key = "env:NO_KEY"
[api]
enabled = false
token = "env:NOT_READ"
[transcription]
api_key = "env:NOT_READ_EITHER"
[channels.slack.acme]
app_token = "env:NO_APP_TOKEN"
bot_token = 5
signing_secret = "env:ONLY_WITH_HTTP"
[channels.telegram.team]
token = "file:no-such-file"
"#;
    std::fs::write(&path, text).unwrap();
    let said = Config::load_with_secrets(Some(&path), &home()).unwrap_err();
    let keys: Vec<&str> = said.problems.iter().map(|it| it.key.as_str()).collect();
    assert_eq!(
        keys,
        [
            "daemon.max_parallel_runs",
            "models.default.api_key",
            "channels.slack.acme.app_token",
            "channels.slack.acme.bot_token",
            "channels.telegram.team.token",
        ],
        "{said}"
    );
    let lines: Vec<Option<usize>> = said.problems.iter().map(|it| it.line).collect();
    assert_eq!(lines, [3, 7, 14, 15, 18].map(Some));
    assert!(
        said.to_string()
            .contains("the environment variable NO_KEY is not set")
    );
    // Without other mistakes, the same secrets are reported.
    let sound = text
        .replace("\"two\"", "2")
        .replace("bot_token = 5", "bot_token = \"env:B\"");
    std::fs::write(&path, sound.replace("signing_secret", "#")).unwrap();
    let said = Config::load_with_secrets(Some(&path), &home()).unwrap_err();
    assert_eq!(said.problems.len(), 4, "{said}");
}
