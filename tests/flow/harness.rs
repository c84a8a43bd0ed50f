//! The daemon as a separate process, against loopback platforms and a scripted model in this one.
//!
//! A [`Flow`] is one daemon with its platforms, its configuration and its data in a folder of its
//! own. Tests act as people through `slack`, `telegram` and `model`, wait for states with a bound,
//! and ask the program as an operator would. The daemon's log is printed when a test fails; process
//! and folder go when the [`Flow`] is dropped. Knows nothing of the daemon's inside.
#![allow(dead_code, reason = "each subject needs a part of it")]

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use vocative_sandbox::model::ModelServer;
use vocative_sandbox::slack::{RequestUrls, SlackPost, SlackServer, SlackWorld};
use vocative_sandbox::telegram::{TelegramPost, TelegramServer, TelegramWorld};
use vocative_sandbox::wire::WireLog;

/// How long a state may take to come. Generous: a busy machine must not fail a test.
pub(crate) const WAIT: Duration = Duration::from_secs(30);
/// Between two looks at a state that can't wake the test.
const LOOK: Duration = Duration::from_millis(20);
/// The key that the scripted model is given.
const MODEL_KEY: &str = "sk-flow-0123456789abcdef";

/// What a daemon is configured with. The default is one agent, `vocative`, with the scripted model.
pub(crate) struct FlowBuilder {
    agents: String,
    slack: String,
    telegram: String,
    further: String,
    default_model: &'static str,
    verbosity: &'static str,
    program: PathBuf,
    called: Option<Called>,
}

/// Which platforms call the daemon, of a flow in which that can be switched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Called {
    /// Slack over HTTP, not over sockets.
    pub(crate) by_slack: bool,
    /// Telegram by webhook, not by polling.
    pub(crate) by_telegram: bool,
}

impl Called {
    fn is_any(self) -> bool {
        self.by_slack || self.by_telegram
    }

    /// The lines of the configuration that say so.
    fn transports(self) -> [&'static str; 2] {
        let pick = |is_called, called, connects| if is_called { called } else { connects };
        [
            pick(
                self.by_slack,
                "transport = \"http\" # slack",
                "transport = \"socket\" # slack",
            ),
            pick(
                self.by_telegram,
                "transport = \"webhook\" # telegram",
                "transport = \"poll\" # telegram",
            ),
        ]
    }
}

impl Default for FlowBuilder {
    fn default() -> Self {
        Self {
            agents: String::new(),
            slack: String::new(),
            telegram: String::new(),
            further: String::new(),
            default_model: "scripted",
            verbosity: "-v",
            program: env!("CARGO_BIN_EXE_vocative").into(),
            called: None,
        }
    }
}

impl FlowBuilder {
    /// Adds an agent with these settings (TOML lines).
    pub(crate) fn agent(mut self, name: &str, settings: &str) -> Self {
        let _ = write!(self.agents, "\n[agents.{name}]\n{settings}\n");
        self
    }

    /// Adds settings of the Slack channel `acme` (TOML lines).
    pub(crate) fn slack(mut self, settings: &str) -> Self {
        let _ = writeln!(self.slack, "{settings}");
        self
    }

    /// Adds settings of the Telegram channel `team` (TOML lines), in place of its open access list.
    pub(crate) fn telegram(mut self, settings: &str) -> Self {
        let _ = writeln!(self.telegram, "{settings}");
        self
    }

    /// Adds whole tables to the configuration.
    pub(crate) fn config(mut self, tables: &str) -> Self {
        let _ = writeln!(self.further, "{tables}");
        self
    }

    /// Lets agents without a model of their own use the built-in one.
    pub(crate) fn offline(mut self) -> Self {
        self.default_model = "offline";
        self
    }

    /// Runs another build of the program.
    pub(crate) fn program(mut self, program: PathBuf) -> Self {
        self.program = program;
        self
    }

    /// Lets platforms call the daemon, or be able to after [`Flow::switch`].
    pub(crate) fn called(mut self, called: Called) -> Self {
        self.called = Some(called);
        self
    }

    /// Logs as much as there is.
    pub(crate) fn trace(mut self) -> Self {
        self.verbosity = "-vv";
        self
    }

    /// Starts platforms, model and daemon, and waits until the daemon hears both platforms.
    pub(crate) async fn start(self) -> Flow {
        let is_called_by_slack = self.called.is_some_and(|called| called.by_slack);
        let mut flow = self.prepare().await;
        flow.start().await;
        if is_called_by_slack {
            let verified = flow.slack.set_request_urls(flow.request_urls()).await;
            verified.unwrap();
        }
        flow
    }

    /// Starts platforms and model, and writes the configuration.
    pub(crate) async fn prepare(self) -> Flow {
        let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let wire = WireLog::new();
        let slack = SlackServer::start(SlackWorld::acme(), anywhere, wire.clone());
        let telegram = TelegramServer::start(TelegramWorld::team(), anywhere, wire.clone());
        let model = ModelServer::start(anywhere, wire.clone());
        let flow = Flow {
            slack: slack.await.unwrap(),
            telegram: telegram.await.unwrap(),
            model: model.await.unwrap(),
            wire,
            directory: tempfile::tempdir().unwrap(),
            verbosity: self.verbosity,
            program: self.program.clone(),
            variables: Vec::new(),
            daemon: None,
            called: self.called,
            webhooks: free_address(),
        };
        flow.telegram.faults().take_loopback_webhooks(true);
        flow.telegram.faults().set_webhook_second_ms(50);
        std::fs::write(flow.config_path(), self.config_text(&flow)).unwrap();
        flow
    }

    fn config_text(&self, flow: &Flow) -> String {
        let agents = match self.agents.as_str() {
            "" => "[agents.vocative]\n",
            agents => agents,
        };
        let telegram = match self.telegram.as_str() {
            "" => "allow_chats = [\"*\"]\nallow_people = [\"*\"]\n",
            telegram => telegram,
        };
        let (slack_called, telegram_called, webhooks) = self.called_text(flow);
        format!(
            "\
[daemon]
data_dir = \"{data}\"
runtime_dir = \"{data}\"

[defaults.agent]
model = \"{model}\"
situation = \"\"

[models.offline]
provider = \"offline\"

[models.scripted]
provider = \"openai\"
model = \"loopback-small\"
base_url = \"{model_url}\"
api_key = \"env:FLOW_MODEL_KEY\"

{agents}
[channels.slack.acme]
app_token = \"env:FLOW_SLACK_APP_TOKEN\"
bot_token = \"env:FLOW_SLACK_BOT_TOKEN\"
api_url = \"{slack_url}\"
{slack_called}{slack}
[channels.telegram.team]
token = \"env:FLOW_TELEGRAM_TOKEN\"
api_url = \"{telegram_url}\"
{telegram_called}{telegram}
{webhooks}{further}",
            data = flow.directory.path().join("data").display(),
            model = self.default_model,
            model_url = flow.model.openai_url(),
            slack_url = flow.slack.api_url(),
            slack = self.slack,
            telegram_url = flow.telegram.api_url(),
            further = self.further,
        )
    }
}

impl FlowBuilder {
    /// What is added to the two channels and to the configuration where platforms may call.
    fn called_text(&self, flow: &Flow) -> (String, String, String) {
        let Some(called) = self.called else {
            return Default::default();
        };
        let [slack, telegram] = called.transports();
        (
            format!("{slack}\nsigning_secret = \"env:FLOW_SLACK_SIGNING_SECRET\"\n"),
            format!("{telegram}\npublic_url = \"http://{}\"\n", flow.webhooks),
            format!("[webhooks]\nlisten = \"{}\"\n", flow.webhooks),
        )
    }
}

/// An address on which nobody listens.
fn free_address() -> SocketAddr {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap()
}

/// What a command of the program said.
#[derive(Debug)]
pub(crate) struct Told {
    /// Its exit code; `None` when a signal ended it.
    pub(crate) status: Option<i32>,
    /// Its results.
    pub(crate) stdout: String,
    /// Its log and errors.
    pub(crate) stderr: String,
}

/// One daemon, its platforms, its model and its folder.
pub(crate) struct Flow {
    pub(crate) slack: SlackServer,
    pub(crate) telegram: TelegramServer,
    pub(crate) model: ModelServer,
    /// Everything that platforms and model were sent and sent.
    pub(crate) wire: WireLog,
    directory: TempDir,
    verbosity: &'static str,
    program: PathBuf,
    variables: Vec<(&'static str, PathBuf)>,
    daemon: Option<Child>,
    called: Option<Called>,
    /// Where the daemon is called, if it is.
    pub(crate) webhooks: SocketAddr,
}

impl Drop for Flow {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("---- the daemon's log ----\n{}", self.log());
        }
        // The child is killed by its own drop.
    }
}

/// The process.
impl Flow {
    /// One agent, `vocative`, with the scripted model.
    pub(crate) async fn start_default() -> Self {
        FlowBuilder::default().start().await
    }

    /// Starts the daemon and waits until it hears both platforms.
    pub(crate) async fn start(&mut self) {
        self.spawn();
        self.wait_until_connected().await;
    }

    /// Starts the daemon without waiting.
    pub(crate) fn spawn(&mut self) {
        assert!(self.daemon.is_none(), "the daemon runs already");
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.log_path())
            .unwrap();
        let daemon = self
            .command(&["run", self.verbosity])
            .envs(self.variables.iter().cloned())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        self.daemon = Some(daemon);
    }

    /// Sets a variable of the daemon's environment from its next start on.
    pub(crate) fn set_variable(&mut self, name: &'static str, value: PathBuf) {
        self.variables.push((name, value));
    }

    /// Waits until the daemon hears both platforms.
    pub(crate) async fn wait_until_connected(&mut self) {
        let deadline = tokio::time::Instant::now() + WAIT;
        while !self.is_heard().await {
            let daemon = self.daemon.as_mut().expect("the daemon was started");
            let ended = daemon.try_wait().unwrap();
            assert!(ended.is_none(), "the daemon ended: {ended:?}");
            let is_late = tokio::time::Instant::now() > deadline;
            assert!(!is_late, "the daemon did not connect in time");
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Whether the daemon hears both platforms, however.
    async fn is_heard(&self) -> bool {
        let Some(called) = self.called else {
            return self.slack.open_sockets() > 0 && self.telegram.polls_waiting() > 0;
        };
        let is_connected = |status: &Value| {
            let channels = status["channels"].as_array();
            channels.is_some_and(|all| all.iter().all(|channel| channel["state"] == "connected"))
        };
        (called.by_slack || self.slack.open_sockets() > 0)
            && (called.by_telegram || self.telegram.polls_waiting() > 0)
            && (!called.is_any() || tokio::net::TcpStream::connect(self.webhooks).await.is_ok())
            && is_connected(&self.status().await)
    }

    /// The addresses that Slack is given.
    pub(crate) fn request_urls(&self) -> RequestUrls {
        RequestUrls::under(&format!("http://{}/slack/acme", self.webhooks))
    }

    /// Lets the stopped daemon be reached in another way from its next start on. Slack's app settings
    /// go with it.
    pub(crate) fn switch(&mut self, to: Called) {
        let from = self.called.replace(to).expect("platforms may call");
        for (was, is) in from.transports().into_iter().zip(to.transports()) {
            self.reconfigure(was, is);
        }
        if to.by_slack {
            self.slack.use_request_urls(self.request_urls());
        } else {
            self.slack.use_sockets();
        }
    }

    /// Asks the daemon to stop (SIGTERM), waits until it has ended, and gives its exit code.
    pub(crate) async fn stop(&mut self) -> Option<i32> {
        self.signal("TERM").await;
        self.ended().await
    }

    /// Waits until the daemon, told to stop, has ended, and gives its exit code.
    pub(crate) async fn ended(&mut self) -> Option<i32> {
        let mut daemon = self.daemon.take().expect("the daemon runs");
        let ended = tokio::time::timeout(WAIT, daemon.wait()).await;
        let status = ended.expect("the daemon ends in time").unwrap();
        self.wait_until_disconnected().await;
        status.code()
    }

    /// Kills the daemon (SIGKILL).
    pub(crate) async fn kill(&mut self) {
        let mut daemon = self.daemon.take().expect("the daemon runs");
        daemon.kill().await.unwrap();
        self.wait_until_disconnected().await;
    }

    /// Stops the daemon and starts it again.
    pub(crate) async fn restart(&mut self) {
        assert_eq!(self.stop().await, Some(0), "a stop that was asked for");
        self.start().await;
    }

    /// Sends the daemon a signal, for example `HUP`.
    pub(crate) async fn signal(&self, name: &str) {
        signal(self.daemon.as_ref().expect("the daemon runs"), name).await;
    }

    /// The daemon's process.
    pub(crate) fn process(&self) -> u32 {
        let daemon = self.daemon.as_ref().expect("the daemon runs");
        daemon.id().expect("the daemon runs")
    }

    /// A line of the daemon's `/proc/PID/status` in KiB, for example `VmRSS`.
    #[cfg(target_os = "linux")]
    pub(crate) fn memory_kib(&self, field: &str) -> u64 {
        let daemon = self.daemon.as_ref().expect("the daemon runs");
        let path = format!("/proc/{}/status", daemon.id().expect("the daemon runs"));
        let text = std::fs::read_to_string(path).unwrap();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        let number = line.and_then(|line| line.split_whitespace().next());
        number.unwrap().parse().unwrap()
    }

    async fn wait_until_disconnected(&self) {
        self.wait_until("the platforms notice that the daemon is gone", || {
            self.slack.open_sockets() == 0 && self.telegram.polls_waiting() == 0
        })
        .await;
    }

    /// The configuration file.
    pub(crate) fn config_path(&self) -> PathBuf {
        self.directory.path().join("vocative.toml")
    }

    /// The socket of the API.
    pub(crate) fn api_socket(&self) -> PathBuf {
        self.directory.path().join("data/vocative-api.sock")
    }

    /// A folder that goes with the test; the daemon's data is in `data`.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Puts something else in the place of a passage of the configuration. It is in force after a
    /// restart or, for agents and access, a reload.
    ///
    /// # Panics
    /// If the configuration has no such passage.
    pub(crate) fn reconfigure(&self, passage: &str, with: &str) {
        let text = std::fs::read_to_string(self.config_path()).unwrap();
        assert!(text.contains(passage), "{passage:?} is in {text}");
        let text = text.replacen(passage, with, 1);
        std::fs::write(self.config_path(), text).unwrap();
    }

    /// Lets the daemon read its configuration again (SIGHUP) and waits until it has.
    pub(crate) async fn reload(&self) {
        let reloads = || self.log().matches("reloaded: ").count();
        let before = reloads();
        self.signal("HUP").await;
        self.wait_until("the daemon reloads", || reloads() > before)
            .await;
    }

    fn log_path(&self) -> PathBuf {
        self.directory.path().join("daemon.log")
    }

    /// The log of every daemon of this test so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// Every secret that the daemon was given.
    pub(crate) fn secrets(&self) -> [(&'static str, String); 5] {
        let world = self.slack.world();
        [
            ("FLOW_SLACK_APP_TOKEN", world.app_token),
            ("FLOW_SLACK_BOT_TOKEN", world.bot_token),
            ("FLOW_SLACK_SIGNING_SECRET", world.signing_secret),
            ("FLOW_TELEGRAM_TOKEN", self.telegram.token()),
            ("FLOW_MODEL_KEY", MODEL_KEY.to_owned()),
        ]
    }

    /// Another command of the program against the same configuration.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(args)
            .arg("--config")
            .arg(self.config_path())
            .current_dir(self.directory.path())
            .env_clear()
            .env("HOME", self.directory.path())
            .envs(self.secrets())
            .kill_on_drop(true);
        command
    }
}

async fn signal(daemon: &Child, name: &str) {
    let id = daemon.id().expect("the daemon runs").to_string();
    let sent = Command::new("kill").args(["-s", name, &id]).status().await;
    assert!(sent.unwrap().success(), "signal {name} was sent");
}

/// Asking as an operator.
impl Flow {
    /// Runs another command of the program against the same configuration.
    pub(crate) async fn cli(&self, args: &[&str]) -> Told {
        let output = tokio::time::timeout(WAIT, self.command(args).output()).await;
        let output = output.expect("the command ends in time").unwrap();
        Told {
            status: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Starts another command of the program without waiting for its end.
    pub(crate) fn start_cli(&self, args: &[&str]) -> Child {
        self.command(args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    pub(crate) async fn cli_json(&self, args: &[&str]) -> Value {
        let told = self.cli(&[args, &["--format", "json"]].concat()).await;
        serde_json::from_str(&told.stdout)
            .unwrap_or_else(|cause| panic!("{args:?} answers no JSON ({cause}): {told:?}"))
    }

    /// `vocative status`.
    pub(crate) async fn status(&self) -> Value {
        self.cli_json(&["status"]).await
    }

    /// `vocative conversations list`.
    pub(crate) async fn conversations(&self) -> Vec<Value> {
        let listed = self
            .cli_json(&["conversations", "list", "--limit", "1000"])
            .await;
        listed.as_array().unwrap().clone()
    }

    /// The turns of a conversation, in the room's order.
    pub(crate) async fn turns(&self, conversation: &str) -> Vec<Value> {
        let args = ["conversations", "show", conversation, "--limit", "1000"];
        let shown = self.cli_json(&args).await;
        shown["turns"].as_array().unwrap().clone()
    }

    /// The id of the conversation of a chat (top level), or of its thread or topic.
    pub(crate) async fn conversation_id(
        &self,
        chat: &str,
        thread_or_topic: Option<&str>,
    ) -> String {
        let listed = self.conversations().await;
        let found = listed.iter().find(|view| {
            view["chat"] == chat && view["thread_or_topic"].as_str() == thread_or_topic
        });
        let found = found.unwrap_or_else(|| {
            panic!("no conversation of {chat} {thread_or_topic:?} in {listed:?}")
        });
        found["id"].as_str().unwrap().to_owned()
    }

    /// What `vocative prompt` shows: roles and texts.
    pub(crate) async fn prompt(&self, args: &[&str]) -> Vec<(String, String)> {
        let view = self.cli_json(&[&["prompt"], args].concat()).await;
        roles_and_texts(&view["messages"])
    }

    /// What the model was sent, by the number of the request from 0: roles and texts.
    pub(crate) fn model_prompt(&self, number: usize) -> Vec<(String, String)> {
        let requests = self.model.requests();
        let request = requests.get(number);
        let request = request.unwrap_or_else(|| panic!("only {} requests", requests.len()));
        roles_and_texts(&request.body["messages"])
    }

    /// The same without the instructions.
    pub(crate) fn model_history(&self, number: usize) -> Vec<(String, String)> {
        let mut messages = self.model_prompt(number);
        messages.retain(|(role, _)| role != "system");
        messages
    }
}

fn roles_and_texts(messages: &Value) -> Vec<(String, String)> {
    let text = |message: &Value, name: &str| message[name].as_str().unwrap().to_owned();
    let messages = messages.as_array().unwrap().iter();
    messages
        .map(|message| (text(message, "role"), text(message, "content")))
        .collect()
}

/// Waiting and watching.
impl Flow {
    /// Waits until something is true.
    ///
    /// # Panics
    /// If it does not come true in time.
    pub(crate) async fn wait_until(&self, what: &str, is_so: impl Fn() -> bool) {
        let deadline = tokio::time::Instant::now() + WAIT;
        while !is_so() {
            let is_late = tokio::time::Instant::now() > deadline;
            assert!(!is_late, "it did not come true in time that {what}");
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until a reading of `vocative status` is as wanted, and gives it.
    ///
    /// # Panics
    /// If no reading is in time.
    pub(crate) async fn wait_for_status(
        &self,
        what: &str,
        is_wanted: impl Fn(&Value) -> bool,
    ) -> Value {
        let deadline = tokio::time::Instant::now() + WAIT;
        loop {
            let status = self.status().await;
            if is_wanted(&status) {
                return status;
            }
            let is_late = tokio::time::Instant::now() > deadline;
            assert!(
                !is_late,
                "it did not come true in time that {what}: {status}"
            );
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until a job was not done for a reason with these words in it, and gives it.
    ///
    /// # Panics
    /// If there is none in time.
    pub(crate) async fn wait_for_job(&self, cause: &str) -> Value {
        let deadline = tokio::time::Instant::now() + WAIT;
        loop {
            let jobs = self.cli_json(&["jobs"]).await;
            let found = jobs.as_array().into_iter().flatten().find(|job| {
                let its = job["cause"].as_str();
                its.is_some_and(|its| its.contains(cause))
            });
            if let Some(found) = found {
                return found.clone();
            }
            let is_late = tokio::time::Instant::now() > deadline;
            assert!(
                !is_late,
                "no job was refused with {cause:?} in time: {jobs}"
            );
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until nothing is to be done in the background.
    ///
    /// # Panics
    /// If something is left for too long.
    pub(crate) async fn wait_for_no_job(&self) {
        let deadline = tokio::time::Instant::now() + WAIT;
        loop {
            let jobs = self.cli_json(&["jobs"]).await;
            if jobs == Value::Array(vec![]) {
                return;
            }
            let is_late = tokio::time::Instant::now() > deadline;
            assert!(!is_late, "there are jobs still: {jobs}");
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until everything said was captured and acknowledged.
    pub(crate) async fn wait_until_heard(&self) {
        let is_heard = self.slack.wait_until_all_acked(WAIT).await
            && self.telegram.wait_until_confirmed(WAIT).await;
        assert!(
            is_heard,
            "the daemon did not acknowledge everything in time"
        );
    }

    /// Waits until everything said was captured, and nothing is left to answer or to post.
    pub(crate) async fn settle(&self) {
        self.wait_until_heard().await;
        self.wait_for_status("nothing is left to do", |status| {
            let left = [
                "/runs/queued",
                "/runs/leased",
                "/posts/pending",
                "/posts/unknown",
            ];
            left.iter()
                .all(|path| status.pointer(path).and_then(Value::as_u64) == Some(0))
        })
        .await;
        // Our own posts come back as events.
        self.wait_until_heard().await;
    }

    /// Waits for the bot's post in the thread of a Slack message.
    pub(crate) async fn slack_reply(&self, channel: &str, root_ts: &str) -> SlackPost {
        self.slack_post(channel, |post| post.is_reply_in(root_ts))
            .await
    }

    /// Waits for a post of the bot in a Slack channel.
    pub(crate) async fn slack_post(
        &self,
        channel: &str,
        is_wanted: impl Fn(&SlackPost) -> bool,
    ) -> SlackPost {
        let found =
            self.slack
                .wait_for_post(channel, |post| is_ours(post) && is_wanted(post), WAIT);
        found.await.unwrap_or_else(|| {
            panic!(
                "no such post in {channel}: {:#?}",
                self.slack_posts(channel)
            )
        })
    }

    /// The posts of the bot in a Slack channel: thread and text.
    pub(crate) fn slack_posts(&self, channel: &str) -> Vec<(Option<String>, String)> {
        let posts = self.slack.posts(channel).into_iter().filter(is_ours);
        let shown = |post: SlackPost| (post.thread_ts.clone(), post.shown());
        posts.map(shown).collect()
    }

    /// Waits for the bot's reply to a Telegram message.
    pub(crate) async fn telegram_reply(&self, chat: i64, message: i64) -> TelegramPost {
        let is_wanted = |post: &TelegramPost| post.by_bot && post.reply_to == Some(message);
        let found = self.telegram.wait_for_post(chat, is_wanted, WAIT);
        let mut found = found.await.unwrap_or_else(|| {
            let posts = self.telegram.bot_posts(chat);
            panic!("no reply to {message} in {chat}: {posts:#?}")
        });
        found.text = as_read(&found.text);
        found
    }

    /// The texts of the bot's posts in a Telegram chat.
    pub(crate) fn telegram_posts(&self, chat: i64) -> Vec<String> {
        let posts = self.telegram.bot_posts(chat).into_iter();
        posts.map(|post| as_read(&post.text)).collect()
    }

    /// Waits until the model had so many requests.
    pub(crate) async fn wait_for_model(&self, count: usize) {
        let is_asked = self.model.wait_for_requests(count, WAIT).await;
        assert!(is_asked, "the model was not asked {count} times in time");
    }
}

/// A text as people read it: what keeps a name from being a mention shows nothing.
fn as_read(text: &str) -> String {
    text.replace('\u{2060}', "")
}

/// A message of a prompt: role and text.
pub(crate) fn said(role: &str, text: &str) -> (String, String) {
    (role.to_owned(), text.to_owned())
}

fn is_ours(post: &SlackPost) -> bool {
    post.bot_id.as_deref() == Some("B0VOCATIVE")
}
