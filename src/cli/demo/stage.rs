//! The stage: the loopback platforms and a daemon connected to them over real sockets.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize as _;
use vocative_sandbox::slack::{CallFault as SlackFault, SlackPost, SlackServer, SlackWorld};
use vocative_sandbox::telegram::{TelegramFault, TelegramPost, TelegramServer, TelegramWorld};
use vocative_sandbox::wire::WireLog;

use super::scene::{Expected, SceneChat, SceneLine, SceneSpeaker};
use crate::admin::operations::AdminOperation;
use crate::admin::view::StatusView;
use crate::cli::CliError;
use crate::cli::args::Fault;
use crate::config::{Config, Environment};
use crate::daemon::confinement::Confinement;
use crate::daemon::start::Daemon;
use vocative_store::OpenWatch;

/// The Slack channel of the scenes.
pub(super) const GENERAL: &str = "C0GENERAL";
const SLACK_DM: &str = "D0ANN";
/// How long the daemon may take to connect to both platforms.
const CONNECT_WAIT: Duration = Duration::from_secs(10);
/// How long the last answers may take once the input has ended.
const ANSWERS_WAIT: Duration = Duration::from_secs(30);
/// The pause between two looks at the daemon's state or the posts.
pub(super) const POLL: Duration = Duration::from_millis(20);

/// The loopback platforms and the daemon.
pub(super) struct DemoStage {
    pub(super) slack: SlackServer,
    pub(super) telegram: TelegramServer,
    pub(super) wire: WireLog,
    pub(super) daemon: Daemon,
    directory: PrivateDirectory,
}

impl DemoStage {
    /// Starts everything and waits until both platforms are connected (unless a fault prevents it).
    pub(super) async fn build(fault: Option<Fault>) -> Result<Self, CliError> {
        let wire = WireLog::new();
        let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let slack = SlackServer::start(SlackWorld::acme(), anywhere, wire.clone()).await?;
        let telegram = TelegramServer::start(TelegramWorld::team(), anywhere, wire.clone()).await?;
        if let Some(fault) = fault {
            super::say_line(&format!("With a fault: {}.", fault.describe()));
            set_fault(fault, &slack, &telegram);
        }
        let directory = PrivateDirectory::make()?;
        let environment = environment(&slack, &telegram);
        let text = config_text(&slack, &telegram, directory.path(), fault);
        let (config, _) = Config::from_text(
            Some((&directory.path().join("demo.toml"), &text)),
            &environment,
        )?;
        let (secrets, _) = config.resolve_secrets(&environment)?;
        let no_reload = Arc::new(|| Err("the demo has no configuration to read again".to_owned()));
        let daemon = Daemon::start(
            config,
            &secrets,
            no_reload,
            &OpenWatch::default(),
            &Confinement::Off,
        )
        .await?;
        let stage = Self {
            slack,
            telegram,
            wire,
            daemon,
            directory,
        };
        stage.slack.wait_for_socket(1, CONNECT_WAIT).await;
        if fault != Some(Fault::MuteTelegram) {
            stage.wait_for_poll().await;
        }
        Ok(stage)
    }

    async fn wait_for_poll(&self) {
        let polled = async {
            while self.telegram.polls_waiting() == 0 {
                tokio::time::sleep(POLL).await;
            }
        };
        let _ = tokio::time::timeout(CONNECT_WAIT, polled).await;
    }

    /// Says a line as a person; returns its platform message id.
    pub(super) fn say(&self, place: SceneChat, person: SceneSpeaker, text: &str) -> String {
        let (slack_user, telegram_user) = match person {
            SceneSpeaker::Ann => ("U0ANN", TelegramWorld::ANN),
            SceneSpeaker::Bob => ("U0BOB", TelegramWorld::BOB),
        };
        match place {
            SceneChat::General => self.slack.say(GENERAL, slack_user, text),
            SceneChat::SlackDm => self.slack.say(SLACK_DM, "U0ANN", text),
            SceneChat::Group => self
                .telegram
                .say(TelegramWorld::SUPERGROUP, telegram_user, text)
                .to_string(),
            SceneChat::Private => self
                .telegram
                .say(TelegramWorld::ANN, TelegramWorld::ANN, text)
                .to_string(),
        }
    }

    /// Says a line in a thread of the Slack channel; returns its platform message id.
    pub(super) fn say_in_thread(&self, person: SceneSpeaker, root: &str, text: &str) -> String {
        let user = if person == SceneSpeaker::Ann {
            "U0ANN"
        } else {
            "U0BOB"
        };
        self.slack.say_in(GENERAL, user, root, text)
    }

    /// Waits for the bot's answer to a line in the right place; `root` is the first message of the thread in which a
    /// line in the channel is answered.
    ///
    /// # Errors
    /// What is missing or where the answer went instead, in words.
    pub(super) async fn wait_for_answer(
        &self,
        line: &SceneLine,
        root: &str,
        message_id: &str,
        wait: Duration,
    ) -> Result<String, String> {
        let found = match line.place {
            SceneChat::General | SceneChat::SlackDm => {
                let channel = if line.place == SceneChat::General {
                    GENERAL
                } else {
                    SLACK_DM
                };
                let belongs =
                    |post: &SlackPost| slack_belongs(post, line.expected, root, message_id);
                self.slack
                    .wait_for_post(channel, belongs, wait)
                    .await
                    .map(|post| post.text)
            }
            SceneChat::Group | SceneChat::Private => {
                let belongs = |post: &TelegramPost| telegram_belongs(post, message_id);
                self.telegram
                    .wait_for_post(telegram_chat(line.place), belongs, wait)
                    .await
                    .map(|post| post.text)
            }
        };
        found.ok_or_else(|| {
            let missing = format!(
                "{} is missing in {}",
                line.expected.describe(),
                line.place.handle()
            );
            match self.stray(line.place, message_id) {
                Some(stray) => format!("{missing}; instead, outside the thread: \"{stray}\""),
                None => missing,
            }
        })
    }

    /// An answer of the bot after a message that is in the channel itself instead of in the thread.
    fn stray(&self, place: SceneChat, message_id: &str) -> Option<String> {
        if place != SceneChat::General {
            return None;
        }
        let is_stray = |post: &SlackPost| {
            post.bot_id.is_some() && post.thread_ts.is_none() && post.ts.as_str() > message_id
        };
        self.slack
            .posts(GENERAL)
            .into_iter()
            .find(is_stray)
            .map(|post| post.text)
    }

    /// Whether the bot has answered a message.
    pub(super) fn has_answer_to(&self, place: SceneChat, message_id: &str) -> bool {
        match place {
            SceneChat::General | SceneChat::SlackDm => {
                let channel = if place == SceneChat::General {
                    GENERAL
                } else {
                    SLACK_DM
                };
                let posts = self.slack.posts(channel);
                posts.iter().any(|post| {
                    post.bot_id.is_some() && post.thread_ts.as_deref() == Some(message_id)
                })
            }
            SceneChat::Group | SceneChat::Private => {
                let posts = self.telegram.bot_posts(telegram_chat(place));
                posts.iter().any(|post| telegram_belongs(post, message_id))
            }
        }
    }

    /// Waits until everything said is received and nothing is left to answer or to post, at most `ANSWERS_WAIT`.
    pub(super) async fn wait_until_answered(&self) {
        let answered = async {
            loop {
                let is_heard = self.slack.wait_until_all_acked(ANSWERS_WAIT).await
                    && self.telegram.wait_until_confirmed(ANSWERS_WAIT).await;
                if is_heard && self.is_idle().await {
                    return;
                }
                tokio::time::sleep(POLL).await;
            }
        };
        let _ = tokio::time::timeout(ANSWERS_WAIT, answered).await;
    }

    async fn is_idle(&self) -> bool {
        let status = self
            .daemon
            .operations()
            .execute(AdminOperation::Status)
            .await;
        let view = status.ok().and_then(|it| StatusView::deserialize(it).ok());
        view.is_some_and(|view| is_idle(&view))
    }

    /// Stops the daemon and the platforms, and removes what they wrote.
    pub(super) async fn strike(self) {
        self.daemon.stop().await;
        self.slack.stop().await;
        self.telegram.stop().await;
        drop(self.directory);
    }
}

/// Whether nothing is left to be answered or posted.
pub(super) fn is_idle(view: &StatusView) -> bool {
    let (runs, posts) = (&view.runs, &view.posts);
    runs.queued + runs.leased + posts.pending + posts.unknown == 0
}

/// Whether a post has buttons.
pub(super) fn has_buttons(post: &SlackPost) -> bool {
    let blocks = post.blocks.as_ref().and_then(|blocks| blocks.as_array());
    blocks.is_some_and(|blocks| blocks.iter().any(|block| block["type"] == "actions"))
}

fn telegram_chat(place: SceneChat) -> i64 {
    if place == SceneChat::Private {
        TelegramWorld::ANN
    } else {
        TelegramWorld::SUPERGROUP
    }
}

fn slack_belongs(post: &SlackPost, expected: Expected, root: &str, message_id: &str) -> bool {
    let is_ours = post.bot_id.is_some() && post.ts.as_str() > message_id;
    match expected {
        Expected::InItsThread => is_ours && post.thread_ts.as_deref() == Some(root),
        _ => is_ours && post.thread_ts.is_none(),
    }
}

fn telegram_belongs(post: &TelegramPost, message_id: &str) -> bool {
    post.by_bot && post.reply_to.is_some_and(|id| id.to_string() == message_id)
}

fn set_fault(fault: Fault, slack: &SlackServer, telegram: &TelegramServer) {
    match fault {
        Fault::DropAnswer => {
            // An error about this one message; one about the account would hold all posts. Two, because the post is
            // tried again as plain text.
            for _ in 0..2 {
                let refused = SlackFault::Error("invalid_arguments".to_owned());
                slack.faults().next("chat.postMessage", refused);
            }
        }
        Fault::MuteTelegram => {
            telegram
                .faults()
                .always("getUpdates", TelegramFault::Gateway { code: 502 });
        }
        Fault::WrongThread | Fault::OpenApproval => {}
    }
}

/// A directory of this demo only, removed at its end.
pub(super) struct PrivateDirectory(PathBuf);

impl PrivateDirectory {
    pub(super) fn make() -> std::io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt as _;
        let name = format!("vocative-demo-{}", uuid::Uuid::new_v4().simple());
        let path = std::env::temp_dir().join(name);
        std::fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn environment(slack: &SlackServer, telegram: &TelegramServer) -> Environment {
    let world = slack.world();
    let token = telegram.token();
    Environment::from_pairs([
        ("DEMO_SLACK_APP_TOKEN", world.app_token.as_str()),
        ("DEMO_SLACK_BOT_TOKEN", world.bot_token.as_str()),
        ("DEMO_TELEGRAM_TOKEN", token.as_str()),
    ])
}

fn config_text(
    slack: &SlackServer,
    telegram: &TelegramServer,
    directory: &Path,
    fault: Option<Fault>,
) -> String {
    format!(
        r#"
[daemon]
data_dir = "{directory}"
runtime_dir = "{directory}"

[agents.vocative]
display_name = "Vocative"
instructions = "You are {{{{agent}}}}, a helpful colleague in {{{{chat}}}}."

[channels.slack.acme]
app_token = "env:DEMO_SLACK_APP_TOKEN"
bot_token = "env:DEMO_SLACK_BOT_TOKEN"
api_url = "{slack}"
thread_replies = {thread_replies}

[channels.telegram.team]
token = "env:DEMO_TELEGRAM_TOKEN"
api_url = "{telegram}"
allow_chats = ["{group}"]
allow_people = ["{ann}", "{bob}"]
"#,
        directory = directory.display(),
        slack = slack.api_url(),
        telegram = telegram.api_url(),
        thread_replies = fault != Some(Fault::WrongThread),
        group = TelegramWorld::SUPERGROUP,
        ann = TelegramWorld::ANN,
        bob = TelegramWorld::BOB,
    )
}
