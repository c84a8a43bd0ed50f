//! The scene of the help desk: several agents behind one name answer one question, through a kill of the daemon. The
//! configuration is `config/examples/help-desk.toml`; only its models and its channel are the loopback ones.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::process::{Child, Command};
use toml::{Table, Value};
use vocative_sandbox::model::{ModelReply, ModelServer};
use vocative_sandbox::slack::{SlackPost, SlackServer, SlackWorld};
use vocative_sandbox::wire::WireLog;

use super::say_line;
use super::stage::{GENERAL, PrivateDirectory};
use crate::admin::operations::AdminOperation;
use crate::admin::socket;
use crate::admin::view::{ConversationDetailView, ConversationView, HappeningView, RunStoryView};
use crate::cli::{CliError, Exit, runs};
use crate::config::CONTROL_SOCKET_NAME;

/// The configuration of the scene.
pub(crate) const HELP_DESK: &str = include_str!("../../../config/examples/help-desk.toml");
/// How long a step may take.
const STEP_WAIT: Duration = Duration::from_secs(20);
const QUESTION: &str = "@vocative where is my order 4711? You said Tuesday.";
const ANSWER: &str = "I am sorry, Ann: order 4711 left on Tuesday and arrives on Thursday.";
/// How many answers of models there are in the scene.
const REPLIES: usize = 9;
/// The most turns that are read.
const TURNS_READ: usize = 20;

/// Plays the scene.
///
/// # Errors
/// If the platform, the models or the daemon can't be started.
pub(super) async fn run() -> Result<ExitCode, CliError> {
    let wire = WireLog::new();
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let slack = SlackServer::start(SlackWorld::acme(), anywhere, wire.clone()).await?;
    let model = ModelServer::start(anywhere, wire).await?;
    let directory = PrivateDirectory::make()?;
    let config = directory.path().join("help-desk.toml");
    std::fs::write(&config, config_text(&slack, &model, directory.path()))?;
    script(&model);
    let desk = HelpDesk {
        slack,
        model,
        directory,
    };
    let said = desk.play(&config).await;
    // Once for each answer, and once more for the one that the kill cut off.
    let was_asked_once = desk.model.requests().len() == REPLIES + 1;
    let is_fine = said.is_ok() && was_asked_once && desk.posts() == 1;
    match said {
        Ok(story) => say_line(&story),
        Err(CliError::Failed { .. }) => {}
        Err(other) => return Err(other),
    }
    let verdict = match is_fine {
        true => {
            "As it should: one answer, posted once; only the agent that the kill cut off was asked again."
        }
        false => {
            "Not as it should: the answer is missing, or there twice, or agents were asked again."
        }
    };
    say_line(verdict);
    desk.slack.stop().await;
    desk.model.stop().await;
    Ok(if is_fine { Exit::Ok } else { Exit::Failed }.into())
}

struct HelpDesk {
    slack: SlackServer,
    model: ModelServer,
    directory: PrivateDirectory,
}

impl HelpDesk {
    /// How often the bot said something.
    fn posts(&self) -> usize {
        let posts = self.slack.posts(GENERAL);
        posts.iter().filter(|post| post.bot_id.is_some()).count()
    }

    async fn play(&self, config: &Path) -> Result<String, CliError> {
        let mut daemon = self.start(config)?;
        self.slack.wait_for_socket(1, STEP_WAIT).await;
        say_line(&format!("Ann: {QUESTION}"));
        self.model.hold();
        let asked = self.slack.say(GENERAL, "U0ANN", QUESTION);
        // Sorted, and what was sorted is set: the next one looks it up, and is cut off.
        for answered in 1..=2 {
            self.model.wait_for_requests(answered, STEP_WAIT).await;
            self.model.release_one();
        }
        self.model.wait_for_requests(3, STEP_WAIT).await;
        daemon.kill().await?;
        say_line("(the daemon is killed while an agent looks it up, and started again)");
        daemon = self.start(config)?;
        self.model.release();
        let is_answer = |post: &SlackPost| {
            post.thread_ts.as_deref() == Some(asked.as_str()) && post.bot_id.is_some()
        };
        let answer = self
            .slack
            .wait_for_post(GENERAL, is_answer, STEP_WAIT)
            .await;
        let Some(answer) = answer.filter(|post| post.text.contains(ANSWER)) else {
            daemon.kill().await?;
            return Err(CliError::failed(
                "the answer is missing",
                "it was not posted in time",
            ));
        };
        say_line(&answer.text);
        say_line("");
        let story = self.story().await;
        daemon.kill().await?;
        story
    }

    fn start(&self, config: &Path) -> Result<Child, CliError> {
        let world = self.slack.world();
        let daemon = Command::new(std::env::current_exe()?)
            .args(["run", "-qq", "--config"])
            .arg(config)
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
        Ok(daemon)
    }

    /// All of the run, as `vocative runs show` has it.
    async fn story(&self) -> Result<String, CliError> {
        let listed = AdminOperation::Conversations {
            channel: None,
            limit: 0,
            all: true,
            before: None,
        };
        let listed = read::<Vec<ConversationView>>(self.ask(listed).await?)?;
        let threads = listed.iter().filter(|it| it.scope == "thread");
        for thread in threads {
            let shown = AdminOperation::Conversation {
                name: thread.id.clone(),
                limit: TURNS_READ,
                timeline: true,
                before: None,
            };
            let shown = read::<ConversationDetailView>(self.ask(shown).await?)?;
            let run = shown
                .timeline
                .into_iter()
                .find_map(|entry| match entry.what {
                    HappeningView::Run(run) => Some(run.id),
                    _ => None,
                });
            if let Some(id) = run {
                let story = read::<RunStoryView>(self.ask(AdminOperation::Run { id }).await?)?;
                return Ok(runs::shown(&story));
            }
        }
        Err(CliError::failed("there is no run", "no thread has one"))
    }

    async fn ask(&self, operation: AdminOperation) -> Result<serde_json::Value, CliError> {
        let path = self.directory.path().join(CONTROL_SOCKET_NAME);
        let answer = socket::ask(&path, &operation).await?;
        answer.ok_or_else(|| {
            CliError::failed("the daemon does not answer", "nobody listens on its socket")
        })
    }
}

fn read<T: DeserializeOwned>(answer: serde_json::Value) -> Result<T, CliError> {
    let read = T::deserialize(answer);
    read.map_err(|cause| CliError::failed("the daemon's answer is not understood", cause))
}

/// What the agents say, in their order.
fn script(model: &ModelServer) {
    let sets = |id: &str, values| ModelReply::tool_call(id, "set_state", values);
    let replies: [ModelReply; REPLIES] = [
        sets("call_1", json!({"kind": "complaint"})),
        ModelReply::text("Ann misses order 4711, which was promised for Tuesday."),
        ModelReply::text("Order 4711 was sent on Tuesday; two days by post."),
        ModelReply::text("Order 4711 arrives tomorrow, promised!"),
        sets("call_2", json!({"fine": false})),
        ModelReply::text("It promises what nobody found: say Thursday, and be sorry."),
        ModelReply::text(ANSWER),
        sets("call_3", json!({"fine": true})),
        ModelReply::text("Fine."),
    ];
    for reply in replies {
        model.enqueue(reply);
    }
}

/// The example with the loopback servers in the place of the vendors'.
fn config_text(slack: &SlackServer, model: &ModelServer, directory: &Path) -> String {
    let mut config: Table = HELP_DESK.parse().expect("the example is valid TOML");
    let texts = |pairs: &[(&str, String)]| -> Value {
        let pairs = pairs
            .iter()
            .map(|(key, text)| ((*key).to_owned(), Value::String(text.clone())));
        Value::Table(pairs.collect())
    };
    let directory = directory.display().to_string();
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
    config.to_string()
}
