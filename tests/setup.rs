//! `vocative setup` as a person meets it: in a pseudo-terminal, against the loopback platforms.
#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use vocative_sandbox::model::ModelServer;
use vocative_sandbox::slack::{SlackServer, SlackWorld};
use vocative_sandbox::telegram::{TelegramServer, TelegramWorld};
use vocative_sandbox::wire::WireLog;

/// Nothing on loopback takes longer.
const WAIT: Duration = Duration::from_secs(90);

/// A terminal with a program in it.
struct Terminal {
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    shown: String,
    /// How much of it was waited for already.
    seen: usize,
    child: Child,
}

impl Terminal {
    fn run(mut command: Command) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let open = || -> OwnedFd {
            let path = Path::new(name.to_str().unwrap());
            File::options()
                .read(true)
                .write(true)
                .open(path)
                .unwrap()
                .into()
        };
        command
            .stdin(Stdio::from(open()))
            .stdout(Stdio::from(open()))
            .stderr(Stdio::from(open()));
        let child = command.spawn().unwrap();
        // The parent's ends of the other side are in the command.
        drop(command);
        let keyboard = File::from(master);
        let mut reader = keyboard.try_clone().unwrap();
        let (sender, screen) = sync_channel(1_024);
        std::thread::spawn(move || {
            let mut bytes = [0; 4_096];
            // A terminal whose program has ended can't be read.
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                if sender.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self {
            keyboard,
            screen,
            shown: String::new(),
            seen: 0,
            child,
        }
    }

    /// Waits until the screen shows this after what was waited for before.
    fn wait_for(&mut self, text: &str) {
        let until = Instant::now() + WAIT;
        loop {
            if let Some(at) = self.shown[self.seen..].find(text) {
                self.seen += at + text.len();
                return;
            }
            let left = until.saturating_duration_since(Instant::now());
            match self.screen.recv_timeout(left) {
                Ok(bytes) => self.shown.push_str(&String::from_utf8_lossy(&bytes)),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("\"{text}\" is not shown:\n{}", self.shown)
                }
            }
        }
    }

    /// What stands behind a text on its line, which is whole.
    fn word_after(&mut self, text: &str) -> String {
        self.wait_for(text);
        let from = self.seen;
        self.wait_for("\n");
        self.shown[from..self.seen].trim().to_owned()
    }

    fn type_line(&mut self, line: &str) {
        self.keyboard
            .write_all(format!("{line}\n").as_bytes())
            .unwrap();
    }

    /// Waits for the end; its exit code and all that was shown.
    fn end(mut self) -> (Option<i32>, String) {
        while let Ok(bytes) = self.screen.recv_timeout(WAIT) {
            self.shown.push_str(&String::from_utf8_lossy(&bytes));
        }
        let status = self.child.wait().unwrap();
        (status.code(), self.shown)
    }
}

struct Stage {
    slack: SlackServer,
    telegram: TelegramServer,
    model: ModelServer,
    directory: tempfile::TempDir,
}

impl Stage {
    async fn build() -> Self {
        let wire = WireLog::new();
        let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let slack = SlackServer::start(SlackWorld::acme(), anywhere, wire.clone());
        let telegram = TelegramServer::start(TelegramWorld::team(), anywhere, wire.clone());
        Self {
            slack: slack.await.unwrap(),
            telegram: telegram.await.unwrap(),
            model: ModelServer::start(anywhere, wire).await.unwrap(),
            directory: tempfile::tempdir().unwrap(),
        }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vocative"));
        command
            .arg("setup")
            .args(["--slack-api-url", &self.slack.api_url()])
            .args(["--telegram-api-url", &self.telegram.api_url()])
            .args(args)
            .current_dir(self.directory.path())
            .env_clear()
            .env("HOME", self.directory.path());
        command
    }

    fn secrets(&self) -> [String; 3] {
        let world = self.slack.world();
        [world.app_token, world.bot_token, self.telegram.token()]
    }

    fn mode(&self, path: &str) -> u32 {
        let found = std::fs::metadata(self.directory.path().join(path)).unwrap();
        found.permissions().mode() & 0o777
    }
}

/// Six prompts, from nothing to an answer on both platforms.
#[tokio::test(flavor = "multi_thread")]
async fn a_person_gets_from_nothing_to_answers_on_both_platforms_in_six_prompts() {
    let stage = Stage::build().await;
    let [app, bot, token] = stage.secrets();
    let mut terminal = Terminal::run(stage.command(&[]));
    terminal.wait_for("Where is the bot to be?");
    terminal.wait_for("Which [slack]: ");
    terminal.type_line("both");
    terminal.wait_for("https://api.slack.com/apps?new_app=1&manifest_yaml=");
    terminal.wait_for("(not shown): ");
    // In each other's place first, as happens.
    terminal.type_line(&bot);
    terminal.wait_for("begins with xapp-, and this one with xoxb-");
    terminal.wait_for("(not shown): ");
    terminal.type_line(&app);
    terminal.wait_for("(not shown): ");
    terminal.type_line(&bot);
    terminal.wait_for("signed in to workspace Acme as vocative");
    terminal.wait_for("t.me/BotFather");
    terminal.wait_for("(not shown): ");
    terminal.type_line(&token);
    terminal.wait_for("the token is that of @vocative_bot");
    terminal.wait_for("Which model answers?");
    terminal.wait_for("]: ");
    terminal.type_line("1");
    terminal.wait_for("Who is to start it?");
    terminal.wait_for("]: ");
    terminal.type_line("files");
    let code = terminal.word_after("    @vocative_bot hello ");
    let ann = TelegramWorld::ANN;
    let group = TelegramWorld::SUPERGROUP;
    // Who has not seen the screen is not taken for its reader.
    stage
        .telegram
        .say(group, TelegramWorld::BOB, "@vocative_bot hello 1");
    stage
        .telegram
        .say(group, ann, &format!("@vocative_bot hello {code}"));
    terminal.wait_for(&format!("({ann}) in "));
    let code = terminal.word_after("    @vocative hello ");
    stage
        .slack
        .say("C0GENERAL", "U0ANN", &format!("@vocative hello {code}"));
    terminal.wait_for("U0ANN");
    terminal.wait_for("and it came back");
    terminal.wait_for("Starting it");
    // The platform would do so by itself, in a minute.
    assert!(stage.slack.wait_for_socket(1, WAIT).await);
    stage.slack.redeliver_unacked_now();
    terminal.wait_for("It answered");
    let (exit, shown) = terminal.end();
    assert_eq!(exit, Some(0), "{shown}");
    for secret in [&app, &bot, &token] {
        assert!(
            !shown.contains(secret.as_str()),
            "a secret is on the screen"
        );
    }
    let answers = stage.slack.posts("C0GENERAL");
    let answered = answers.iter().filter(|post| post.text.contains("hello"));
    assert!(answered.count() >= 1, "{answers:?}");
    let answers = stage.telegram.bot_posts(TelegramWorld::SUPERGROUP);
    assert!(answers.len() >= 2, "{answers:?}");
    for path in ["slack_app", "slack_bot", "telegram"] {
        assert_eq!(stage.mode(&format!("credentials/{path}")), 0o600);
    }
    let text = std::fs::read_to_string(stage.directory.path().join("vocative.toml")).unwrap();
    assert!(
        text.contains(&format!(
            "allow_chats = [\"{}\"]",
            TelegramWorld::SUPERGROUP
        )),
        "{text}"
    );
    assert!(text.contains("admins = [\"U0ANN\"]"), "{text}");
    assert!(!text.contains(token.as_str()));
}

/// The exit code, and what was said.
fn ran(mut command: Command) -> (Option<i32>, String) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (
        output.status.code(),
        text(&output.stdout) + &text(&output.stderr),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn without_anybody_to_ask_options_are_the_answers_and_a_second_run_changes_nothing() {
    let stage = Stage::build().await;
    let (code, told) = ran(stage.command(&["--non-interactive"]));
    assert_eq!(code, Some(2), "{told}");
    for missing in ["--platform", "--model", "--place"] {
        assert!(told.contains(missing), "{told}");
    }
    let [app, bot, token] = stage.secrets();
    for (name, secret) in [("app", &app), ("bot", &bot), ("token", &token)] {
        std::fs::write(stage.directory.path().join(name), format!("{secret}\n")).unwrap();
    }
    let chat = TelegramWorld::SUPERGROUP.to_string();
    let url = stage.model.openai_url();
    let answers = |name: &str| -> Command {
        let mut command = stage.command(&[
            "--non-interactive",
            "--platform=both",
            "--slack-app-token-file=app",
            "--slack-bot-token-file=bot",
            "--telegram-token-file=token",
            "--telegram-chat",
            &chat,
            "--model=openai",
            "--place=files",
            "--folder=here",
        ]);
        command.args(["--model-url", &url, "--model-name", name]);
        command.env("OPENAI_API_KEY", "sk-loopback-key");
        command
    };
    let (code, told) = ran(answers("loopback-small"));
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("It serves"), "{told}");
    assert_eq!(stage.mode("here/credentials/model_key"), 0o600);
    let path = stage.directory.path().join("here/vocative.toml");
    let first = std::fs::read_to_string(&path).unwrap();
    let (code, told) = ran(answers("loopback-small"));
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("is as it should be"), "{told}");

    let (code, told) = ran(answers("loopback-large"));
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("+model = \"loopback-large\""), "{told}");
    assert!(told.contains("--replace"), "{told}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), first);
    let mut replacing = answers("loopback-large");
    replacing.args(["--replace", "--no-start"]);
    let (code, told) = ran(replacing);
    assert_eq!(code, Some(0), "{told}");
    let kept = path.with_extension("toml.before-setup");
    assert_eq!(std::fs::read_to_string(kept).unwrap(), first);
    for secret in [&app, &bot, &token] {
        assert!(!told.contains(secret.as_str()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_that_are_refused_end_it_before_anything_is_written() {
    let stage = Stage::build().await;
    let mut command = stage.command(&[
        "--non-interactive",
        "--platform=telegram",
        "--telegram-person=5001",
        "--model=offline",
        "--place=files",
    ]);
    command.env("TELEGRAM_TOKEN", "1:revoked");
    let (code, told) = ran(command);
    assert_eq!(code, Some(77), "{told}");
    assert!(told.contains("nothing was written"), "{told}");
    assert!(!told.contains("1:revoked"), "{told}");
    assert!(!stage.directory.path().join("vocative.toml").exists());
    assert!(!stage.directory.path().join("credentials").exists());
}
