#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::Path;

use secrecy::ExposeSecret as _;

use super::*;
use crate::domain::ids::AgentName;
use crate::domain::options::{AssemblerOptions, Profile};
use crate::domain::place::Scope;

const MINIMAL: &str = r#"
[channels.slack.acme]
app_token = "env:SLACK_APP_TOKEN"
bot_token = "env:SLACK_BOT_TOKEN"
"#;

fn home() -> Environment {
    Environment::from([("HOME", "/home/ada")])
}

fn load_with<const N: usize>(
    text: &str,
    variables: [(&str, &str); N],
) -> Result<(Config, Vec<Warning>), ConfigError> {
    let mut all = vec![("HOME", "/home/ada")];
    all.extend(variables);
    let environment = Environment::from_pairs(all);
    Config::from_text(Some((Path::new("vocative.toml"), text)), &environment)
}

fn load(text: &str) -> Config {
    load_with(text, []).unwrap().0
}

/// Everything said about a configuration that can't be used.
fn refused(text: &str) -> String {
    load_with(text, []).unwrap_err().to_string()
}

fn agent(name: &str) -> AgentName {
    AgentName::new(name).unwrap()
}

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
    assert_eq!((iris.max_attempts, hermes.max_attempts), (7, 1));
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
fn an_unknown_key_is_refused_with_the_nearest_one() {
    insta::assert_snapshot!(refused(r#"
[channels.slack.acme]
app_token = "env:A"
bot_tokn = "xoxb-secret"

[deamon]
max_parallel_runs = 2

[daemon]
max_parallel_runs = 2
bot_token = "env:B"
colour = "red"
"#), @r##"
    4 problems in the configuration

      vocative.toml:4  channels.slack.acme.bot_tokn
          there is no such setting
          did you mean bot_token?

      vocative.toml:6  deamon
          there is no such setting
          did you mean daemon?

      vocative.toml:11  daemon.bot_token
          there is no such setting
          bot_token belongs in [channels.slack.NAME]

      vocative.toml:12  daemon.colour
          there is no such setting
          known here: data_dir, runtime_dir, socket_group, drain_deadline_s, max_parallel_runs, log_format, log_level

    `vocative config example` prints every setting with what it means
    "##);
}

#[test]
fn wrong_types_and_bounds_are_refused_with_their_lines() {
    insta::assert_snapshot!(refused(r#"
daemon.max_parallel_runs = "many"
[store]
readers = 2.5
keep_revisions = "yes"
[channels.slack.acme]
app_token = 5
bot_token = ["env:B"]
sockets = 11
allow_chats = "C1"
admins = [
  "U1",
  true,
]
[channels.slack.other]
app_token = "env:A2"
bot_token = "env:B2"
sockets = 0
[delivery]
on_unknown = "resnd"
[agents]
iris = 1
"#), @r##"
    11 problems in the configuration

      vocative.toml:2  daemon.max_parallel_runs
          must be a whole number from 1 to 1000, is a text

      vocative.toml:4  store.readers
          must be a whole number from 1 to 64, is a number with a fraction

      vocative.toml:5  store.keep_revisions
          must be true or false, is a text

      vocative.toml:7  channels.slack.acme.app_token
          must be a reference to a secret, is a whole number

      vocative.toml:8  channels.slack.acme.bot_token
          must be a reference to a secret, is a list

      vocative.toml:9  channels.slack.acme.sockets
          must be a whole number from 1 to 10, is 11

      vocative.toml:10  channels.slack.acme.allow_chats
          must be a list, is a text

      vocative.toml:13  channels.slack.acme.admins[1]
          must be an id, is true or false

      vocative.toml:18  channels.slack.other.sockets
          must be a whole number from 1 to 10, is 0

      vocative.toml:20  delivery.on_unknown
          must be one of "resend", "hold", is "resnd"
          did you mean "resend"?

      vocative.toml:22  agents.iris
          must be a table, is a whole number

    `vocative config example` prints every setting with what it means
    "##);
}

#[test]
fn mistyped_variables_are_refused_by_name() {
    let error = load_with(
        MINIMAL,
        [
            ("VOCATIVE_DAEMON__MAX_PARALEL_RUNS", "3"),
            ("VOCATIVE_STORE__READERS", "lots"),
            ("VOCATIVE_CHANNELS__SLAK__ACME__SOCKETS", "2"),
            ("VOCATIVE_CHANNELS__SLACK__ACME__BOT_TOKEN", "xoxb-secret"),
            ("VOCATIVE_DAEMON", "is about nothing"),
        ],
    );
    insta::assert_snapshot!(error.unwrap_err(), @r##"
    4 problems in the configuration

      $VOCATIVE_CHANNELS__SLACK__ACME__BOT_TOKEN  channels.slack.acme.bot_token
          must say where the secret is, not what it is; a secret written here may already be in backups or in version control, so replace it (its value is not shown)
          write "env:BOT_TOKEN" for an environment variable, "file:PATH" for a file, or "credential:NAME" for a systemd credential

      $VOCATIVE_CHANNELS__SLAK__ACME__SOCKETS  channels.slak
          there is no such setting
          did you mean VOCATIVE_CHANNELS__SLACK__ACME__SOCKETS?

      $VOCATIVE_DAEMON__MAX_PARALEL_RUNS  daemon.max_paralel_runs
          there is no such setting
          did you mean VOCATIVE_DAEMON__MAX_PARALLEL_RUNS?

      $VOCATIVE_STORE__READERS  store.readers
          must be a whole number from 1 to 64, is a text

    `vocative config example` prints every setting with what it means
    "##);
}

#[test]
fn a_variable_with_one_underscore_is_pointed_out() {
    let (_, warnings) = load_with(MINIMAL, [("VOCATIVE_DAEMON_LOG_LEVEL", "debug")]).unwrap();
    insta::assert_snapshot!(warnings[0], @"$VOCATIVE_DAEMON_LOG_LEVEL is not read: the section ends with two underscores, VOCATIVE_DAEMON__LOG_LEVEL");
}

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
fn bad_toml_is_refused_without_its_text() {
    let said = refused("[channels.telegram.home]\ntoken = \"123:AAsecret\n[x\n");
    assert!(!said.contains("AAsecret"));
    insta::assert_snapshot!(said, @r##"
    2 problems in the configuration

      vocative.toml:2
          no valid TOML at column 22: invalid basic string, expected `"`

      vocative.toml:3
          no valid TOML at column 3: unclosed table, expected `]`

    `vocative config example` prints every setting with what it means
    "##);
}

#[test]
fn references_to_nothing_are_refused() {
    insta::assert_snapshot!(refused(r#"
[models.claude]
provider = "anthropic"
model = "claude-sonnet"
api_key = "env:K"
[agents.iris]
model = "cluade"
channels = ["acmee"]
[agents.hermes]
summary_model = "claud"
[channels.slack.acme]
app_token = "env:A"
bot_token = "env:B"
default_agent = "irsi"
[channels.telegram.home]
token = "env:T"
default_agent = "iris"
"#), @r##"
    6 problems in the configuration

      vocative.toml:7  agents.iris.model
          there is no [models.cluade]
          did you mean "claude"?

      vocative.toml:8  agents.iris.channels
          there is no [channels.acmee]
          did you mean "acme"?

      vocative.toml:9  agents.hermes.model
          there is no [models.default]
          configured: claude

      vocative.toml:10  agents.hermes.summary_model
          there is no [models.claud]
          did you mean "claude"?

      vocative.toml:14  channels.slack.acme.default_agent
          there is no [agents.irsi]
          did you mean "iris"?

      vocative.toml:17  channels.telegram.home.default_agent
          the agent iris does not serve this channel
          add "home" to agents.iris.channels

    `vocative config example` prints every setting with what it means
    "##);
}

#[test]
fn names_that_clash_are_refused() {
    insta::assert_snapshot!(refused(r#"
[agents.iris]
aliases = ["Rainbow", "rainbow", " "]
[agents.hermes]
aliases = ["IRIS"]
display_name = "rainBOW"
[agents.zeus]
channels = []
aliases = ["iris"]
[channels.telegram.acme]
token = "env:T"
default_agent = "iris"
[channels.slack.acme]
app_token = "env:A"
bot_token = "env:A"
default_agent = "iris"
"#), @r##"
    6 problems in the configuration

      vocative.toml:3  agents.iris.aliases
          "Rainbow" also addresses the agent hermes (as "rainBOW"), and both serve the same channels
          give one of them another name, or channels of its own

      vocative.toml:3  agents.iris.aliases
          "rainbow" is there twice (case doesn't count)

      vocative.toml:3  agents.iris.aliases
          an alias is empty, so every message would open with it

      vocative.toml:5  agents.hermes.aliases
          "IRIS" also addresses the agent iris (as "iris"), and both serve the same channels
          give one of them another name, or channels of its own

      vocative.toml:10  channels.telegram.acme
          a Slack channel is called acme, too; channel names are unique over all platforms

      vocative.toml:15  channels.slack.acme.bot_token
          is the same as channels.slack.acme.app_token; two connections with one token take messages from each other

    `vocative config example` prints every setting with what it means
    "##);
}

#[test]
fn bad_names_are_refused_once() {
    insta::assert_snapshot!(refused(r#"
[agents.Support-Bot]
model = "Big Model"
[agents.iris]
model = "Big Model"
channels = ["Acme"]
[models."Big Model"]
provider = "offline"
[channels.slack.Acme]
app_token = "env:A"
bot_token = "env:B"
default_agent = "Support-Bot"
"#), @r##"
    3 problems in the configuration

      vocative.toml:2  agents.Support-Bot
          names of models, agents and channels are made of a-z, 0-9 and _ only, so that environment variables can reach them
          write "support_bot" instead

      vocative.toml:7  models.Big Model
          names of models, agents and channels are made of a-z, 0-9 and _ only, so that environment variables can reach them
          write "big_model" instead

      vocative.toml:9  channels.slack.Acme
          names of models, agents and channels are made of a-z, 0-9 and _ only, so that environment variables can reach them
          write "acme" instead

    `vocative config example` prints every setting with what it means
    "##);
}

#[test]
fn a_post_is_looked_for_longer_than_the_platform_takes_to_show_it() {
    let look_back_ms = |delivery: &str| {
        load(&format!("{MINIMAL}\n[delivery]\n{delivery}"))
            .delivery
            .look_back_ms
    };
    assert_eq!(look_back_ms(""), 45_000);
    assert_eq!(look_back_ms("visibility_delay_s = 1"), 2_000);
    assert_eq!(look_back_ms("visibility_delay_s = 60"), 90_000);
    assert_eq!(look_back_ms("look_back_s = 600"), 600_000);
    insta::assert_snapshot!(refused("[delivery]\nlook_back_s = 30"), @r"
    one problem in the configuration

      vocative.toml:2  delivery.look_back_s
          must be longer than visibility_delay_s (30), is 30

    `vocative config example` prints every setting with what it means
    ");
}

#[test]
fn an_api_that_other_machines_can_reach_needs_a_token() {
    let open = "[api]\nenabled = true\nlisten = \"0.0.0.0:8087\"";
    insta::assert_snapshot!(refused(open), @r#"
    one problem in the configuration

      vocative.toml:3  api.listen
          0.0.0.0:8087 can be reached by other machines, so the API needs a token there
          set api.token (token = "env:VOCATIVE_API_TOKEN"), or listen on 127.0.0.1 or unix:PATH

    `vocative config example` prints every setting with what it means
    "#);
    insta::assert_snapshot!(refused("[api]\nlisten = \"localhost\""), @r"
    one problem in the configuration

      vocative.toml:2  api.listen
          must be an address and a port, like 127.0.0.1:8087, or unix:PATH

    `vocative config example` prints every setting with what it means
    ");
    let listen = |settings: &str| {
        let text = format!("[daemon]\nruntime_dir = \"/r\"\n[api]\n{settings}");
        let config = load(&text);
        (config.api.listen.to_string(), config.api.enabled)
    };
    let here = ("unix:/r/vocative-api.sock".to_owned(), true);
    assert_eq!(listen("enabled = true"), here);
    assert_eq!(listen("listen = \"unix:/run/api\"").0, "unix:/run/api");
    let with_token = "enabled = true\nlisten = \"0.0.0.0:1\"\ntoken = \"env:T\"";
    assert_eq!(listen(with_token), ("0.0.0.0:1".to_owned(), true));
    assert_eq!(listen("enabled = true\nlisten = \"[::1]:1\"").0, "[::1]:1");
}

#[test]
fn values_that_make_no_sense_are_refused() {
    insta::assert_snapshot!(refused(r##"
[daemon]
log_level = "vocative=chatty"
socket_group = ""
[http]
listen = "localhost"
[models.default]
model = "m"
[models.a]
provider = "openai"
base_url = "ftp://x"
context_limit = 1000
[models.b]
provider = "anthropic"
base_url = "https://user:pw@example.org"
[agents.iris]
instructions = "You are {{agnet}}"
[agents.iris.prompt]
profile = "toolpak"
[channels.slack.acme]
api_url = "slack.com"
allow_chats = ["#general"]
admins = ["*"]
[channels.telegram.home]
token = "env:T"
allow_people = ["@ada"]
commands = ["/ask"]
"##), @r##"
    18 problems in the configuration

      vocative.toml:3  daemon.log_level
          is no level and no filter: error parsing level filter: expected one of "off", "error", "warn", "info", "debug", "trace", or a number 0-5

      vocative.toml:4  daemon.socket_group
          is empty; leave it out for no group

      vocative.toml:6  http.listen
          must be an address and a port, like 127.0.0.1:8086

      vocative.toml:7  models.default.provider
          is missing: say who serves the model, like "openai"

      vocative.toml:9  models.a.model
          is missing: the provider's name of the model

      vocative.toml:11  models.a.base_url
          must start with https:// or http://

      vocative.toml:12  models.a.context_limit
          leaves no room for a prompt: 1000, of which max_output_tokens = 1024 are kept for the answer

      vocative.toml:13  models.b.model
          is missing: the provider's name of the model

      vocative.toml:15  models.b.base_url
          has a user or password in it, which would show in logs

      vocative.toml:17  agents.iris.instructions
          there is no value {{agnet}}; there are {{agent}}, {{chat}}, {{date}}, {{participant}}

      vocative.toml:19  agents.iris.prompt.profile
          must be one of "vocative", "toolpack", is "toolpak"
          did you mean "toolpack"?

      vocative.toml:20  channels.slack.acme.app_token
          is missing: say where the app-level token (xapp-...) is
          app_token = "env:APP_TOKEN"

      vocative.toml:20  channels.slack.acme.bot_token
          is missing: say where the bot token (xoxb-...) is
          bot_token = "env:BOT_TOKEN"

      vocative.toml:21  channels.slack.acme.api_url
          must start with https:// or http://

      vocative.toml:22  channels.slack.acme.allow_chats[0]
          "#general" is no id
          Slack ids look like C0123ABCD: names change, ids don't; it is at the bottom of the channel's or person's details

      vocative.toml:23  channels.slack.acme.admins
          can't be everybody; list their ids

      vocative.toml:26  channels.telegram.home.allow_people[0]
          "@ada" is no id
          Telegram ids are numbers: `vocative check` and the log name those of chats that are not served yet

      vocative.toml:27  channels.telegram.home.commands
          "/ask": a command has 1 to 32 of a-z, 0-9 and _, without the slash

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
    let SlackTransport::Socket { app_token } = &slack.transport else {
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
    tokens_per_day = 7                       # $VOCATIVE_LIMITS__TOKENS_PER_DAY
    readers = 4                              # default
    "##);
    let shown: toml::Table = toml::from_str(&shown).unwrap();
    assert_eq!(shown["store"]["readers"].as_integer(), Some(4));
}

#[test]
fn the_example_loads_as_it_is_and_with_every_setting_active() {
    let (config, _) = load_with(&example(), []).unwrap();
    assert_eq!(config.channels.len(), 0);
    let active = example::activated(&example());
    let active = active.replace("instructions_file = \"instructions.txt\"\n", "");
    let (config, _) = load_with(&active, []).unwrap();
    assert_eq!(config.channels.keys().collect::<Vec<_>>(), ["acme", "home"]);
    let table: toml::Table = toml::from_str(&active).unwrap();
    let defaults: toml::Table = toml::from_str(DEFAULT_TOML).unwrap();
    // What is active holds every default with its value.
    for (section, values) in &defaults {
        for (key, value) in values.as_table().unwrap() {
            if !value.is_table() {
                assert_eq!(table[section].get(key), Some(value), "{section}.{key}");
            }
        }
    }
}

#[test]
fn the_defaults_and_the_schema_have_the_same_settings() {
    fn leaves(table: &toml::Table, path: &str, out: &mut BTreeSet<String>) {
        for (key, value) in table {
            let path = join(path, key);
            match value {
                toml::Value::Table(inner) => leaves(inner, &path, out),
                _ => {
                    out.insert(path);
                }
            }
        }
    }
    let active: toml::Table = toml::from_str(&example::activated(DEFAULT_TOML)).unwrap();
    let mut written = BTreeSet::new();
    leaves(&active, "", &mut written);
    let known: BTreeSet<String> = schema::settings(schema()).into_iter().collect();
    assert_eq!(written, known);
}

#[test]
fn the_defaults_are_those_of_the_assembler() {
    assert_eq!(
        load(MINIMAL).agents[&agent("vocative")].prompt,
        AssemblerOptions::default()
    );
}

#[test]
fn every_provider_is_known_by_its_name() {
    let schema = schema();
    let known: Vec<String> = match schema::Node::of(schema, &schema["$defs"]["Provider"]) {
        schema::Node::Words(words) => words.into_iter().map(str::to_owned).collect(),
        other => panic!("{other:?}"),
    };
    assert!(known.len() > 10);
    for name in known {
        let provider: Provider = serde_json::from_value(json!(name)).unwrap();
        assert_eq!(provider.name(), name);
        assert!(
            DEFAULT_TOML.contains(&format!("\"{name}\"")),
            "{name} is not in default.toml"
        );
    }
}

#[test]
fn no_value_of_any_setting_slips_through_the_schema() {
    let odd = [
        "\"\"",
        "\"x\"",
        "\"*\"",
        "-1",
        "0",
        "4294967296",
        "9223372036854775807",
        "0.5",
        "-0.5",
        "inf",
        "nan",
        "true",
        "[]",
        "[1]",
        "[\"\"]",
        "[[]]",
        "{}",
        "{ a = 1 }",
        "1979-05-27",
    ];
    for setting in schema::settings(schema()) {
        for value in odd {
            let text = format!("{setting} = {value}\n{MINIMAL}");
            if let Err(error) = load_with(&text, []) {
                assert!(!error.problems.is_empty(), "{setting} = {value}");
                for problem in &error.problems {
                    // The schema lets nothing through that can't be read or merged afterwards.
                    assert!(
                        !problem.what.contains("merged"),
                        "{setting} = {value}: {problem}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_mistyped_log_level_is_told_instead_of_silencing_the_log() {
    for (level, is_fine) in [
        ("info", true),
        ("info,vocative::delivery=debug", true),
        ("DEBUG", true),
        ("inof", false),
        ("", false),
        ("info,bogus", false),
    ] {
        let variables = [("HOME", "/home/ann"), ("VOCATIVE_DAEMON__LOG_LEVEL", level)];
        let loaded = Config::from_text(None, &Environment::from(variables));
        let told = loaded.err().map(|error| error.to_string());
        assert_eq!(told.is_none(), is_fine, "{level:?}: {told:?}");
    }
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

const EXACT_COUNTS: &str = r#"
[models.default]
provider = "anthropic"
model = "claude-haiku-4-5"
api_key = "env:KEY"
counter = "o200k"
[channels.telegram.home]
token = "env:T"
"#;

#[cfg(not(feature = "tiktoken"))]
#[test]
fn a_counter_that_this_build_lacks_is_refused_with_what_to_do() {
    insta::assert_snapshot!(refused(EXACT_COUNTS), @r#"
    one problem in the configuration

      vocative.toml:6  models.default.counter
          o200k is not in this build
          build with `--features tiktoken`, or write "class"

    `vocative config example` prints every setting with what it means
    "#);
}

#[cfg(feature = "tiktoken")]
#[test]
fn a_vocabulary_of_another_maker_is_warned_of() {
    let (config, warnings) = load_with(EXACT_COUNTS, []).unwrap();
    assert_eq!(config.models["default"].counter, CounterName::O200k);
    let is_warned = |warning: &Warning| warning.to_string().contains("not as those of anthropic");
    assert!(warnings.iter().any(is_warned), "{warnings:?}");
}

/// A configuration with one channel of these settings, after a table's name.
fn with_channel(table: &str, settings: &str) -> Result<(Config, Vec<Warning>), ConfigError> {
    let text = format!("[channels.{table}]\n{settings}\nallow_chats = [\"*\"]\n");
    Config::from_text(Some((Path::new("/etc/vocative.toml"), &text)), &home())
}

#[test]
fn a_transport_says_what_it_lacks_and_what_it_has_no_use_for() {
    const BOT: &str = "bot_token = \"env:B\"";
    const TOKEN: &str = "token = \"env:T\"";
    let slack = |settings: &str| with_channel("slack.acme", &format!("{BOT}\n{settings}"));
    let telegram = |settings: &str| with_channel("telegram.team", &format!("{TOKEN}\n{settings}"));
    let refused = [
        (slack(""), "channels.slack.acme.app_token"),
        (
            slack("transport = \"http\""),
            "channels.slack.acme.signing_secret",
        ),
        (slack("transport = \"webhook\""), "\"socket\", \"http\""),
        (
            telegram("transport = \"webhook\""),
            "channels.telegram.team.public_url",
        ),
        (
            telegram("transport = \"webhook\"\npublic_url = \"http://bot.example.org\""),
            "must start with https://",
        ),
        (
            telegram("transport = \"webhook\"\npublic_url = \"https://bot.example.org:444\""),
            "has port 444; Telegram delivers to 443, 80, 88 and 8443 only",
        ),
        (
            telegram("transport = \"webhook\"\npublic_url = \"https://bot.example.org/?a=b\""),
            "must end before any ?",
        ),
        (telegram("max_connections = 101"), "max_connections"),
        (telegram("live = \"stream\""), "channels.telegram.team.live"),
        (
            slack("app_token = \"env:A\"\n[delivery]\nlive = \"stream\"\n#"),
            "[channels.slack.NAME]",
        ),
        (
            with_channel(
                "slack.acme",
                &format!("{BOT}\n[webhooks]\nlisten = \"here\"\n#"),
            ),
            "like 127.0.0.1:8088",
        ),
    ];
    for (config, wanted) in refused {
        let error = config.expect_err(wanted).to_string();
        assert!(error.contains(wanted), "{wanted}: {error}");
    }
    let unused = [
        (
            slack("app_token = \"env:A\"\nsigning_secret = \"env:S\""),
            "channels.slack.acme.signing_secret",
        ),
        (
            telegram("public_url = \"https://bot.example.org\""),
            "channels.telegram.team.public_url",
        ),
        (
            telegram("webhook_secret = \"env:S\""),
            "channels.telegram.team.webhook_secret",
        ),
    ];
    for (config, wanted) in unused {
        let (_, warnings) = config.unwrap();
        let is_told = warnings.iter().any(|warning| warning.key == wanted);
        assert!(is_told, "{wanted}: {warnings:?}");
    }
}

#[test]
fn a_channel_that_is_called_needs_no_more_than_its_secret_and_address() {
    let http = "transport = \"http\"\nbot_token = \"env:B\"\nsigning_secret = \"env:S\"";
    let (config, _) = with_channel("slack.acme", http).unwrap();
    let environment = Environment::from([("HOME", "/home/ada"), ("B", "b"), ("S", "s")]);
    assert!(config.resolve_secrets(&environment).is_ok());
    // A Bot API server of one's own may call plain addresses.
    for (api_url, public_url) in [
        (
            "https://api.telegram.org",
            "https://bot.example.org:8443/bots/",
        ),
        ("http://127.0.0.1:8081", "http://127.0.0.1:8088"),
    ] {
        let settings = format!(
            "token = \"env:T\"\ntransport = \"webhook\"\napi_url = \"{api_url}\"\npublic_url = \"{public_url}\"\n\
             webhook_secret = \"env:S\""
        );
        let (config, _) = with_channel("telegram.team", &settings).unwrap();
        let PlatformSettings::Telegram(telegram) = &config.channels["team"].platform else {
            panic!("team is a Telegram channel");
        };
        let TelegramTransport::Webhook { public_url, .. } = &telegram.transport else {
            panic!("team is called");
        };
        assert!(!public_url.ends_with('/'));
        for (secret, is_taken) in [("open-sesame", true), ("open sesame", false)] {
            let variables = [("HOME", "/home/ada"), ("T", "t"), ("S", secret)];
            let resolved = config.resolve_secrets(&Environment::from(variables));
            assert_eq!(resolved.is_ok(), is_taken, "{secret}");
            if let Err(error) = resolved {
                assert!(!error.to_string().contains(secret), "{error}");
            }
        }
    }
}
