//! A daemon with an example from `config/examples`, as a process of its own that can be killed, with the loopback Slack
//! and scripted models. Only the vendors' servers of the example are replaced by loopback ones.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::process::{Child, Command};
use toml::{Table, Value};
use vocative_sandbox::model::ModelServer;
use vocative_sandbox::slack::{SlackPost, SlackServer, SlackWorld};
use vocative_sandbox::wire::WireLog;

use super::say_line;
use super::stage::{GENERAL, PrivateDirectory};
use crate::admin::operations::AdminOperation;
use crate::admin::socket;
use crate::admin::view::{ConversationDetailView, ConversationView, HappeningView, RunStoryView};
use crate::cli::{CliError, Exit, runs};
use crate::config::CONTROL_SOCKET_NAME;

/// How long a step may take.
pub(super) const STEP_WAIT: Duration = Duration::from_secs(20);
/// The most turns that are read of a thread.
const TURNS_READ: usize = 20;

/// The loopback servers and the daemon's folder.
pub(super) struct Stand {
    pub(super) slack: SlackServer,
    pub(super) model: ModelServer,
    directory: PrivateDirectory,
    config: PathBuf,
}

impl Stand {
    /// Starts the servers and writes the configuration: the example with the loopback servers, further changed by
    /// `change`.
    ///
    /// # Errors
    /// If a server can't be started, or the folder can't be written.
    pub(super) async fn build(
        example: &str,
        change: impl FnOnce(&mut Table),
    ) -> Result<Self, CliError> {
        let wire = WireLog::new();
        let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let slack = SlackServer::start(SlackWorld::acme(), anywhere, wire.clone()).await?;
        let model = ModelServer::start(anywhere, wire).await?;
        let directory = PrivateDirectory::make()?;
        let mut table = on_loopback(example, &slack, &model, &directory);
        change(&mut table);
        let config = directory.path().join("demo.toml");
        std::fs::write(&config, table.to_string())?;
        Ok(Self {
            slack,
            model,
            directory,
            config,
        })
    }

    /// Starts this program as a daemon, and waits until it is connected; it is killed when the handle is dropped.
    ///
    /// # Errors
    /// If the program can't be started.
    pub(super) async fn start(&self) -> Result<Child, CliError> {
        let world = self.slack.world();
        let daemon = Command::new(std::env::current_exe()?)
            .args(["run", "-qq", "--config"])
            .arg(&self.config)
            .current_dir(self.directory.path())
            .env_clear()
            .env("HOME", self.directory.path())
            .env("SLACK_APP_TOKEN", world.app_token)
            .env("SLACK_BOT_TOKEN", world.bot_token)
            .env("DEMO_MODEL_KEY", "loopback-model-key")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        self.slack.wait_for_socket_count(1, STEP_WAIT).await;
        Ok(daemon)
    }

    /// Kills a daemon, and waits until the loopback Slack has noticed.
    ///
    /// # Errors
    /// If it can't be killed.
    pub(super) async fn kill(&self, mut daemon: Child) -> Result<(), CliError> {
        daemon.kill().await?;
        self.slack.wait_for_socket_count(0, STEP_WAIT).await;
        Ok(())
    }

    /// Waits for a post of the bot in the thread of a message.
    ///
    /// # Errors
    /// If it does not come in time.
    pub(super) async fn reply(
        &self,
        asked: &str,
        is_wanted: impl Fn(&SlackPost) -> bool,
    ) -> Result<SlackPost, CliError> {
        let is_it = |post: &SlackPost| {
            post.thread_ts.as_deref() == Some(asked) && post.bot_id.is_some() && is_wanted(post)
        };
        let found = self.slack.wait_for_post(GENERAL, is_it, STEP_WAIT).await;
        found.ok_or_else(|| CliError::failed("an answer is missing", "it was not posted in time"))
    }

    /// How many messages the bot has posted in the channel and its threads.
    pub(super) fn posts(&self) -> usize {
        let posts = self.slack.posts(GENERAL);
        posts.iter().filter(|post| post.bot_id.is_some()).count()
    }

    /// The first run of the first thread that has one, as `vocative runs show` prints it.
    ///
    /// # Errors
    /// If the daemon does not answer, or no thread has a run.
    pub(super) async fn story(&self) -> Result<String, CliError> {
        let listed = AdminOperation::Conversations {
            channel: None,
            limit: 0,
            all: true,
            before: None,
        };
        let listed = self.read::<Vec<ConversationView>>(listed).await?;
        let threads = listed.iter().filter(|it| it.scope == "thread");
        for thread in threads {
            let shown = AdminOperation::Conversation {
                name: thread.id.clone(),
                limit: TURNS_READ,
                timeline: true,
                before: None,
            };
            let shown = self.read::<ConversationDetailView>(shown).await?;
            let run = shown
                .timeline
                .into_iter()
                .find_map(|entry| match entry.what {
                    HappeningView::Run(run) => Some(run.id),
                    _ => None,
                });
            if let Some(id) = run {
                let story = self.read::<RunStoryView>(AdminOperation::Run { id });
                return Ok(runs::shown(&story.await?));
            }
        }
        Err(CliError::failed("there is no run", "no thread has one"))
    }

    /// Runs one operation in the daemon.
    ///
    /// # Errors
    /// If it does not answer, or not as expected.
    pub(super) async fn read<T: DeserializeOwned>(
        &self,
        operation: AdminOperation,
    ) -> Result<T, CliError> {
        let path = self.directory.path().join(CONTROL_SOCKET_NAME);
        let answer = socket::ask(&path, &operation).await?.ok_or_else(|| {
            CliError::failed("the daemon does not answer", "nobody listens on its socket")
        })?;
        T::deserialize(answer)
            .map_err(|cause| CliError::failed("the daemon's answer is not understood", cause))
    }

    /// Prints the story and the verdict, and stops the servers.
    ///
    /// # Errors
    /// What kept the scene from being played.
    pub(super) async fn judge(
        self,
        story: Result<String, CliError>,
        is_fine: bool,
        [fine, wrong]: [&str; 2],
    ) -> Result<ExitCode, CliError> {
        let is_fine = is_fine && story.is_ok();
        match story {
            Ok(story) => say_line(&story),
            Err(CliError::Failed { .. }) => {}
            Err(other) => return Err(other),
        }
        say_line(if is_fine { fine } else { wrong });
        self.slack.stop().await;
        self.model.stop().await;
        Ok(if is_fine { Exit::Ok } else { Exit::Failed }.into())
    }
}

/// The example's configuration with the loopback servers in the place of the vendors'.
fn on_loopback(
    example: &str,
    slack: &SlackServer,
    model: &ModelServer,
    directory: &PrivateDirectory,
) -> Table {
    let mut config: Table = example.parse().expect("the example is valid TOML");
    let texts = |pairs: &[(&str, String)]| -> Value {
        let pairs = pairs
            .iter()
            .map(|(key, text)| ((*key).to_owned(), Value::String(text.clone())));
        Value::Table(pairs.collect())
    };
    let directory = directory.path().display().to_string();
    config.insert(
        "daemon".to_owned(),
        texts(&[("data_dir", directory.clone()), ("runtime_dir", directory)]),
    );
    if let Some(Value::Table(models)) = config.get_mut("models") {
        for (_, settings) in models.iter_mut() {
            *settings = texts(&[
                ("provider", "openai".to_owned()),
                ("model", "loopback-small".to_owned()),
                ("base_url", model.openai_url()),
                ("api_key", "env:DEMO_MODEL_KEY".to_owned()),
            ]);
        }
    }
    let channel = config["channels"]["slack"]["acme"].as_table_mut();
    let channel = channel.expect("the example has a channel");
    channel.insert("api_url".to_owned(), Value::String(slack.api_url()));
    config
}
