//! `vocative check --live` and `--probe`, as a separate process against the loopback platforms: what
//! it says and what it exits with.
#![allow(clippy::unwrap_used)]

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Output;
use std::time::Duration;

use vocative_sandbox::model::ModelServer;
use vocative_sandbox::slack::{SlackServer, SlackWorld};
use vocative_sandbox::telegram::{TelegramServer, TelegramWorld};
use vocative_sandbox::wire::{WireKind, WireLog};

/// Nothing on loopback takes longer.
const WAIT: Duration = Duration::from_secs(20);

/// Both platforms, and a folder with a configuration for them.
struct Stage {
    slack: SlackServer,
    telegram: TelegramServer,
    model: ModelServer,
    wire: WireLog,
    directory: tempfile::TempDir,
}

impl Stage {
    async fn build() -> Self {
        let wire = WireLog::new();
        let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let slack = SlackServer::start(SlackWorld::acme(), anywhere, wire.clone());
        let telegram = TelegramServer::start(TelegramWorld::team(), anywhere, wire.clone());
        let stage = Self {
            slack: slack.await.unwrap(),
            telegram: telegram.await.unwrap(),
            model: ModelServer::start(anywhere, wire.clone()).await.unwrap(),
            wire,
            directory: tempfile::tempdir().unwrap(),
        };
        stage.configure(&stage.slack.api_url(), &stage.telegram.api_url());
        stage
    }

    fn configure(&self, slack_url: &str, telegram_url: &str) {
        let text = format!(
            r#"
[models.gpt]
provider = "openai"
model = "loopback-small"
api_key = "env:MODEL_KEY"
base_url = "{model_url}"
[agents.vocative]
model = "gpt"
[channels.slack.acme]
app_token = "env:APP"
bot_token = "env:BOT"
api_url = "{slack_url}"
[channels.telegram.team]
token = "env:TELEGRAM"
api_url = "{telegram_url}"
allow_chats = ["*"]
[daemon]
data_dir = "{directory}/data"
runtime_dir = "{directory}/run"
"#,
            directory = self.directory.path().display(),
            model_url = self.model.openai_url()
        );
        std::fs::write(self.directory.path().join("vocative.toml"), text).unwrap();
    }

    fn command(&self, args: &[&str]) -> tokio::process::Command {
        let world = self.slack.world();
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_vocative"));
        command
            .args(args)
            .current_dir(self.directory.path())
            .env_clear()
            .env("HOME", self.directory.path())
            .env("APP", &world.app_token)
            .env("BOT", &world.bot_token)
            .env("TELEGRAM", self.telegram.token())
            .env("MODEL_KEY", "sk-loopback-key")
            .kill_on_drop(true);
        command
    }

    /// The exit code, and what was found (without the part about the configuration).
    async fn check(&self, probe: Option<&str>) -> (Option<i32>, String) {
        let mut args = vec!["check", "--live"];
        args.extend(probe.iter().flat_map(|chat| ["--probe", *chat]));
        let output = tokio::time::timeout(3 * WAIT, self.command(&args).output());
        let output: Output = output.await.unwrap().unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        let world = self.slack.world();
        for token in [&world.app_token, &world.bot_token, &self.telegram.token()] {
            assert!(!format!("{stdout}{stderr}").contains(token.as_str()));
        }
        let found = stdout
            .split_once("every secret is there.\n")
            .or_else(|| stdout.split_once("see the warnings.\n"));
        let found = found.map_or("", |(_, found)| found);
        (output.status.code(), format!("{found}{stderr}"))
    }

    fn polls(&self) -> usize {
        let is_poll =
            |kind: WireKind, name: &str| kind == WireKind::Request && name == "getUpdates";
        let records = self.wire.records();
        let polls = records.iter().filter(|it| is_poll(it.kind, &it.name));
        polls.count()
    }
}

fn lines_of<'a>(found: &'a str, level: &str) -> Vec<&'a str> {
    let lines = found.lines().map(str::trim);
    lines.filter(|line| line.starts_with(level)).collect()
}

#[tokio::test]
async fn a_healthy_set_up_is_told_line_by_line() {
    let stage = Stage::build().await;
    let (code, found) = stage.check(None).await;
    assert_eq!(code, Some(0), "{found}");
    insta::assert_snapshot!(found, @r##"

    acme
      ok           signed in to workspace Acme as vocative
      ok           all needed scopes are granted
      ok           a socket opens and says hello
      ok           which events the app is subscribed to cannot be read with these tokens; compare them with `vocative config slack-manifest`, or post a line with --probe and see whether it is heard

    team
      ok           the token is that of @vocative_bot
      ok           privacy mode is off: the bot hears its groups
      ok           0 updates wait to be fetched

    models
      ok           gpt (loopback-small of openai): the key is accepted, and the model is there

    Everything that was asked is fine.
    "##);
    assert!(stage.slack.wait_for_socket_count(0, WAIT).await);
    assert_eq!(stage.polls(), 0, "a poll would take the daemon's place");
    assert_eq!(stage.slack.violations(), Vec::<String>::new());
    assert_eq!(stage.model.requests(), [], "an answer costs");
}

#[tokio::test]
async fn a_model_that_refuses_the_key_or_is_not_there_is_told() {
    let stage = Stage::build().await;
    let path = stage.directory.path().join("vocative.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    // The loopback server refuses only those who bring no key.
    std::fs::write(&path, text.replace("api_key = \"env:MODEL_KEY\"\n", "")).unwrap();
    let (code, found) = stage.check(None).await;
    assert_eq!(code, Some(77), "{found}");
    let refused = lines_of(&found, "refused");
    assert!(refused[0].contains("refuses the key (HTTP 401)"), "{found}");

    let url = stage.model.openai_url();
    std::fs::write(&path, text.replace(&url, "http://127.0.0.1:1/v1/")).unwrap();
    let (code, found) = stage.check(None).await;
    assert_eq!(code, Some(69), "{found}");
    assert!(
        found.contains("the provider can't be reached: no connection"),
        "{found}"
    );
}

#[tokio::test]
async fn a_missing_scope_is_named() {
    let stage = Stage::build().await;
    stage.slack.change_world(|world| {
        world.scopes.retain(|scope| scope != "channels:history");
    });
    let (code, found) = stage.check(None).await;
    assert_eq!(code, Some(1));
    insta::assert_snapshot!(lines_of(&found, "problem").join("\n"), @"problem      these scopes are missing: channels:history; add them under OAuth & Permissions and reinstall the app");
}

#[tokio::test]
async fn a_revoked_token_exits_with_77() {
    let stage = Stage::build().await;
    stage.telegram.revoke_token();
    stage
        .slack
        .faults()
        .set_account_error(Some("token_revoked"));
    let (code, found) = stage.check(None).await;
    assert_eq!(code, Some(77));
    insta::assert_snapshot!(lines_of(&found, "refused").join("\n"), @r##"
    refused      Slack refuses bot_token: token_revoked; copy it again from the app's settings
    refused      Slack refuses app_token: token_revoked; copy it again from the app's settings
    refused      Telegram refuses the token: Unauthorized; copy it again from @BotFather, and if api_url is set, check that too
    "##);
}

#[tokio::test]
async fn privacy_mode_is_explained() {
    let stage = Stage::build().await;
    stage.telegram.set_hears_everything(false);
    let (code, found) = stage.check(None).await;
    assert_eq!(code, Some(1));
    insta::assert_snapshot!(lines_of(&found, "warning").join("\n"), @"warning      privacy mode is on: mentions of the bot in groups will not be delivered, only replies to it and commands like /ask@bot. To hear mentions: in @BotFather send /setprivacy, choose the bot, choose Disable, then remove the bot from each group and add it again; or make the bot an administrator of the group");
}

#[tokio::test]
async fn a_webhook_of_another_program_is_told_and_kept() {
    let stage = Stage::build().await;
    let url = format!(
        "{}/bot{}/setWebhook",
        stage.telegram.api_url(),
        stage.telegram.token()
    );
    let form = [("url", "https://bot.example.org/hook")];
    let client = client();
    client.post(&url).form(&form).send().await.unwrap();
    for _ in 0..2 {
        let (code, found) = stage.check(None).await;
        assert_eq!(code, Some(1));
        let warnings = lines_of(&found, "warning");
        assert_eq!(warnings.len(), 1, "{found}");
        assert!(warnings[0].contains("a webhook is set"), "{found}");
    }
}

fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .timeout(WAIT)
        .retry(reqwest::retry::never())
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_platform_that_is_not_there_exits_with_69() {
    let stage = Stage::build().await;
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let nobody = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    stage.configure(&format!("{nobody}/api"), &stage.telegram.api_url());
    let (code, found) = stage.check(None).await;
    assert_eq!(code, Some(69), "{found}");
    let told = lines_of(&found, "unreachable");
    assert_eq!(told.len(), 2, "{found}");
    assert!(told[0].contains("check the network and api_url"), "{found}");
    // The other platform was asked all the same.
    assert!(found.contains("the token is that of @vocative_bot"));
}

#[tokio::test]
async fn a_probe_on_slack_comes_back() {
    let stage = Stage::build().await;
    let (code, found) = stage.check(Some("acme/C0GENERAL")).await;
    assert_eq!(code, Some(0), "{found}");
    let posts = stage.slack.posts("C0GENERAL");
    assert_eq!(posts.len(), 1);
    assert_eq!(
        posts[0].text,
        "vocative check: this line tests that posts arrive; you can delete it."
    );
    assert!(
        found.contains("and it came back: this chat's events arrive"),
        "{found}"
    );
    assert!(stage.slack.wait_for_socket_count(0, WAIT).await);
}

#[tokio::test]
async fn a_probe_that_is_not_heard_points_at_the_subscriptions() {
    let stage = Stage::build().await;
    stage.slack.change_world(|world| {
        world.events.retain(|event| event != "message.channels");
    });
    let (code, found) = stage.check(Some("acme/C0GENERAL")).await;
    assert_eq!(code, Some(1), "{found}");
    let problems = lines_of(&found, "problem");
    assert_eq!(problems.len(), 1, "{found}");
    assert!(
        problems[0].contains("event subscriptions with `vocative config slack-manifest`"),
        "{found}"
    );
}

#[tokio::test]
async fn a_probe_takes_nothing_from_a_daemon_that_starts_later() {
    let stage = Stage::build().await;
    let waiting = stage
        .slack
        .say("C0GENERAL", "U0ANN", "said before the check");
    let (code, _) = stage.check(Some("acme/C0GENERAL")).await;
    assert_eq!(code, Some(0));
    let acked = stage.slack.acked_envelopes();
    let of_ann = |payload: &serde_json::Value| payload["event"]["ts"] == waiting.as_str();
    assert!(
        !acked.iter().any(|envelope| of_ann(&envelope.payload)),
        "what a check hears and does not store is not acknowledged"
    );
}

#[tokio::test]
async fn a_probe_on_telegram_is_proven_by_the_answer() {
    let stage = Stage::build().await;
    let probe = format!("team/{}", TelegramWorld::SUPERGROUP);
    let (code, found) = stage.check(Some(&probe)).await;
    assert_eq!(code, Some(0), "{found}");
    let posts = stage.telegram.bot_posts(TelegramWorld::SUPERGROUP);
    assert_eq!(posts.len(), 1);
    assert!(found.contains("its answer is the proof"), "{found}");
    assert_eq!(stage.polls(), 0);
}

#[tokio::test]
async fn a_probe_where_the_bot_is_not_says_how_to_get_in() {
    let stage = Stage::build().await;
    for probe in ["acme/C0ELSEWHERE", "team/-1009999999999"] {
        let (code, found) = stage.check(Some(probe)).await;
        assert_eq!(code, Some(1), "{found}");
        let problems = lines_of(&found, "problem");
        assert_eq!(problems.len(), 1, "{found}");
        assert!(problems[0].contains("add the bot to the chat"), "{found}");
    }
}

#[tokio::test]
async fn a_probe_of_nothing_is_a_wrong_command_line() {
    let stage = Stage::build().await;
    for (probe, words) in [
        (
            "home/C0GENERAL",
            "there is no channel \"home\"; there are: acme, team",
        ),
        ("acme", "name the chat by its id"),
        ("acme/#general", "name the chat by its id"),
    ] {
        let (code, found) = stage.check(Some(probe)).await;
        assert_eq!(code, Some(2), "{found}");
        assert!(found.contains(words), "{found}");
    }
}

#[tokio::test]
async fn beside_a_running_daemon_no_second_socket_is_opened() {
    let stage = Stage::build().await;
    let mut daemon = stage
        .command(&["run"])
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    assert!(stage.slack.wait_for_socket(1, WAIT).await);
    let opened = || {
        let records = stage.wire.records();
        let is_open = |name: &str| name == "apps.connections.open";
        records
            .iter()
            .filter(|it| it.kind == WireKind::Request && is_open(&it.name))
            .count()
    };
    let (code, found) = stage.check(Some("acme/C0GENERAL")).await;
    assert_eq!(code, Some(0), "{found}");
    assert!(found.contains("no second socket is opened"), "{found}");
    assert!(found.contains("hears the line in place of"), "{found}");
    assert_eq!(opened(), 1);
    assert_eq!(stage.slack.posts("C0GENERAL").len(), 1);
    daemon.kill().await.unwrap();
}

/// The exit code, and what was said.
async fn ran(command: &mut tokio::process::Command) -> (Option<i32>, String) {
    let output = tokio::time::timeout(3 * WAIT, command.output());
    let output = output.await.unwrap().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let told = text(&output.stdout) + &text(&output.stderr);
    (output.status.code(), told)
}

#[tokio::test]
async fn the_doctor_says_of_a_running_daemon_that_nothing_is_to_be_put_right() {
    let stage = Stage::build().await;
    let (code, told) = ran(&mut stage.command(&["status", "--alive"])).await;
    assert_eq!(code, Some(69), "{told}");
    let mut daemon = stage
        .command(&["run"])
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    assert!(stage.slack.wait_for_socket(1, WAIT).await);
    let (code, told) = ran(&mut stage.command(&["status", "--alive"])).await;
    assert_eq!(code, Some(0), "{told}");
    assert!(told.starts_with("serves for "), "{told}");
    let (code, told) = ran(&mut stage.command(&["doctor", "--format", "json"])).await;
    let report: serde_json::Value = serde_json::from_str(&told).unwrap();
    let found = report["findings"].as_array().unwrap();
    let to_fix: Vec<_> = found.iter().filter(|it| it["level"] == "fix").collect();
    assert!(to_fix.is_empty(), "{to_fix:?}");
    assert_eq!(code, Some(0), "{told}");
    let subjects: std::collections::BTreeSet<_> = found
        .iter()
        .filter_map(|it| it["subject"].as_str())
        .collect();
    for subject in [
        "acme",
        "team",
        "models",
        "clock",
        "configuration",
        "daemon",
        "disk",
        "backups",
    ] {
        assert!(subjects.contains(subject), "{subject}: {subjects:?}");
    }
    let world = stage.slack.world();
    for token in [&world.app_token, &world.bot_token, &stage.telegram.token()] {
        assert!(!told.contains(token.as_str()));
    }
    daemon.kill().await.unwrap();
}

#[tokio::test]
async fn the_doctor_names_what_is_broken_and_what_to_type() {
    let stage = Stage::build().await;
    stage.slack.change_world(|world| {
        world.scopes.retain(|scope| scope != "channels:history");
    });
    let (code, told) = ran(&mut stage.command(&["doctor"])).await;
    assert_eq!(code, Some(1), "{told}");
    assert!(
        told.contains("these scopes are missing: channels:history"),
        "{told}"
    );
    assert!(told.contains("type: systemctl start vocative"), "{told}");
    assert!(told.contains("no daemon runs"), "{told}");

    let path = stage.directory.path().join("vocative.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("allow_chats", "alow_chats")).unwrap();
    let (code, told) = ran(&mut stage.command(&["doctor", "--offline"])).await;
    assert_eq!(code, Some(78), "{told}");
    assert!(told.contains("allow_chats"), "{told}");
}

#[tokio::test]
async fn the_doctor_takes_the_rights_of_others_from_secrets_and_nothing_else() {
    use std::os::unix::fs::PermissionsExt as _;
    let stage = Stage::build().await;
    let folder = stage.directory.path().join("credentials");
    std::fs::create_dir(&folder).unwrap();
    let secret = folder.join("telegram");
    std::fs::write(&secret, stage.telegram.token()).unwrap();
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o644)).unwrap();
    let path = stage.directory.path().join("vocative.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    // Outside of a unit a credential is the file that the unit takes it from.
    let text = text.replace("env:TELEGRAM", "credential:secret_telegram");
    std::fs::write(&path, &text).unwrap();
    let (code, told) = ran(&mut stage.command(&["doctor", "--offline"])).await;
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("type: chmod go= "), "{told}");
    let (_, told) = ran(&mut stage.command(&["doctor", "--offline", "--fix"])).await;
    assert!(
        told.contains("put right: only its owner can read "),
        "{told}"
    );
    let mode = std::fs::metadata(&secret).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    let (_, told) = ran(&mut stage.command(&["doctor", "--offline"])).await;
    assert!(!told.contains("chmod"), "{told}");
}

#[test]
fn a_daemon_without_a_channel_is_refused_with_78() {
    let directory = tempfile::tempdir().unwrap();
    let run = |directory: &Path| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_vocative"))
            .arg("run")
            .current_dir(directory)
            .env_clear()
            .env("HOME", directory)
            .output()
            .unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (code, told) = run(directory.path());
    assert_eq!(code, Some(78));
    insta::assert_snapshot!(told, @r##"
    error: there is nothing to serve: no configuration file was found
    add a [channels.slack.NAME] or [channels.telegram.NAME]; `vocative config example` shows how, and `vocative demo` works without
    "##);
    std::fs::write(
        directory.path().join("vocative.toml"),
        "[agents.vocative]\n",
    )
    .unwrap();
    let (code, told) = run(directory.path());
    assert_eq!(code, Some(78));
    assert!(told.contains("vocative.toml has no channel"), "{told}");
}
