//! The stage: the loopback platforms in this process, the daemon in another one.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use vocative_sandbox::model::ModelServer;
use vocative_sandbox::slack::{ChannelKind, SlackConversation, SlackServer, SlackUser, SlackWorld};
use vocative_sandbox::telegram::{
    BotStatus, TelegramChat, TelegramChatKind, TelegramServer, TelegramUser, TelegramWorld,
};
use vocative_sandbox::wire::{WireKind, WireLog, WirePeer, WireRecord};

use crate::Fail;

/// The program that is measured: the one `VOCATIVE_BIN` names, to compare two builds, else the one
/// of the same profile as this bench.
pub(crate) fn program() -> PathBuf {
    let named = std::env::var_os("VOCATIVE_BIN");
    named.map_or_else(|| env!("CARGO_BIN_EXE_vocative").into(), PathBuf::from)
}

/// Nothing that is waited for takes longer.
const PATIENCE: Duration = Duration::from_secs(120);
const FIRST_PERSON: i64 = 70_000;

/// What happened on the wire, as it happens.
pub(crate) type WireRecords = Receiver<WireRecord>;

/// The loopback platforms, with people and rooms, and a folder for the daemon.
pub(crate) struct BenchStage {
    pub(crate) slack: SlackServer,
    pub(crate) telegram: TelegramServer,
    model: ModelServer,
    wire: WireLog,
    folder: TempDir,
}

impl BenchStage {
    /// `people` each have a direct chat on both platforms; `rooms` are channels and groups with Ann.
    pub(crate) async fn build(people: usize, rooms: usize) -> Result<Self, Fail> {
        let wire = WireLog::new();
        let anywhere = ([127, 0, 0, 1], 0).into();
        let slack = SlackServer::start(slack_world(people, rooms), anywhere, wire.clone()).await?;
        let world = telegram_world(people, rooms);
        let telegram = TelegramServer::start(world, anywhere, wire.clone()).await?;
        let model = ModelServer::start(anywhere, wire.clone()).await?;
        let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR"))?;
        let stage = Self {
            slack,
            telegram,
            model,
            wire,
            folder,
        };
        std::fs::write(stage.config_path(), stage.config_text())?;
        Ok(stage)
    }

    /// Lets the daemon's next start ask a model at this address instead of the built-in one.
    pub(crate) fn ask_model_at(&self, url: &str) -> Result<(), Fail> {
        let model = format!(
            r#"provider = "openai"
model = "loopback-large"
base_url = "{url}"
api_key = "env:BENCH_MODEL"
max_output_tokens = 32768"#
        );
        let text = self.config_text();
        let text = text.replace(r#"provider = "offline""#, &model);
        Ok(std::fs::write(self.config_path(), text)?)
    }

    /// The same with the scripted model, and further lines of `[delivery]`.
    pub(crate) async fn build_streaming(people: usize, delivery: &str) -> Result<Self, Fail> {
        Self::build_scripted(people, 0, delivery).await
    }

    /// The same with rooms.
    pub(crate) async fn build_scripted(
        people: usize,
        rooms: usize,
        delivery: &str,
    ) -> Result<Self, Fail> {
        let stage = Self::build(people, rooms).await?;
        let scripted = format!(
            "provider = \"openai\"\nmodel = \"loopback-small\"\nbase_url = \"{}\"\n\
             api_key = \"env:BENCH_MODEL\"\n\n[delivery]\n{delivery}\n",
            stage.model.openai_url()
        );
        let text = stage.config_text();
        let text = text.replace("provider = \"offline\"\n", &scripted);
        std::fs::write(stage.config_path(), text)?;
        Ok(stage)
    }

    /// The scripted model.
    pub(crate) fn model(&self) -> &ModelServer {
        &self.model
    }

    fn config_path(&self) -> PathBuf {
        self.folder.path().join("vocative.toml")
    }

    /// Adds tables to the configuration.
    pub(crate) fn configure(&self, tables: &str) -> Result<(), Fail> {
        let text = std::fs::read_to_string(self.config_path())?;
        Ok(std::fs::write(self.config_path(), text + tables)?)
    }

    /// Adds settings of the agent.
    pub(crate) fn configure_agent(&self, settings: &str) -> Result<(), Fail> {
        let text = std::fs::read_to_string(self.config_path())?;
        let agent = format!("[agents.vocative]\n{settings}\n");
        Ok(std::fs::write(
            self.config_path(),
            text.replace("[agents.vocative]\n", &agent),
        )?)
    }

    /// Puts other tables in the place of the agent's.
    pub(crate) fn answer_by(&self, tables: &str) -> Result<(), Fail> {
        let text = std::fs::read_to_string(self.config_path())?;
        Ok(std::fs::write(
            self.config_path(),
            text.replace("[agents.vocative]\n", tables),
        )?)
    }

    /// Lets this number of runs be worked on, and answered by the model, at once.
    pub(crate) fn work_side_by_side(&self, runs: usize) -> Result<(), Fail> {
        let text = std::fs::read_to_string(self.config_path())?;
        let text = text
            .replace(
                "[daemon]\n",
                &format!("[daemon]\nmax_parallel_runs = {runs}\n"),
            )
            .replace(
                "[models.default]\n",
                &format!("[models.default]\nmax_parallel = {runs}\n"),
            );
        Ok(std::fs::write(self.config_path(), text)?)
    }

    /// Where the daemon's database is.
    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// How many turns of people are in the daemon's database.
    pub(crate) fn people_turns(&self) -> Result<i64, Fail> {
        let path = self.folder.path().join("data/vocative.db");
        let connection = rusqlite::Connection::open(path)?;
        let sql = "SELECT count(*) FROM turns WHERE kind = 'message' AND is_inbound = 1";
        Ok(connection.query_row(sql, [], |row| row.get(0))?)
    }

    /// Removes the database, so that the next start makes a new one.
    pub(crate) fn forget(&self) -> Result<(), Fail> {
        std::fs::remove_dir_all(self.folder.path().join("data"))?;
        Ok(())
    }

    /// Defaults but for addresses, access, and the limits that a bench would meet.
    fn config_text(&self) -> String {
        let mut text = String::new();
        let folder = self.folder.path().display();
        let _ = write!(
            text,
            r#"
[daemon]
data_dir = "{folder}/data"
runtime_dir = "{folder}/run"

[limits]
max_runs_per_hour_person = 0
max_runs_per_hour_chat = 0

[models.default]
provider = "offline"

[agents.vocative]

[channels.slack.acme]
app_token = "env:BENCH_SLACK_APP"
bot_token = "env:BENCH_SLACK_BOT"
api_url = "{slack}"

[channels.telegram.team]
token = "env:BENCH_TELEGRAM"
api_url = "{telegram}"
allow_chats = ["*"]
allow_people = ["*"]
"#,
            slack = self.slack.api_url(),
            telegram = self.telegram.api_url(),
        );
        text
    }

    /// Starts `vocative run`; does not wait for anything.
    pub(crate) fn spawn(&self) -> Result<BenchDaemon, Fail> {
        let child = self.command(&["run"]).spawn()?;
        Ok(BenchDaemon { child })
    }

    /// Starts `vocative` with these arguments.
    pub(crate) fn spawn_command(&self, args: &[&str]) -> Result<BenchDaemon, Fail> {
        let child = self.command(args).spawn()?;
        Ok(BenchDaemon { child })
    }

    /// `vocative` with these arguments, to be started.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let world = self.slack.world();
        let mut command = Command::new(program());
        command
            .args(args)
            .arg("--config")
            .arg(self.config_path())
            .env("BENCH_SLACK_APP", &world.app_token)
            .env("BENCH_SLACK_BOT", &world.bot_token)
            .env("BENCH_TELEGRAM", self.telegram.token())
            .env("BENCH_MODEL", "sk-bench")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// Starts it and waits until it hears both platforms.
    pub(crate) async fn spawn_connected(&self) -> Result<BenchDaemon, Fail> {
        let mut wire = self.wire();
        let daemon = self.spawn()?;
        connected(&mut wire, Instant::now()).await?;
        Ok(daemon)
    }

    /// What happens on the wire from now on.
    pub(crate) fn wire(&self) -> WireRecords {
        self.wire.subscribe()
    }
}

/// Waits for the first poll and the first hello; how long after `since` each came.
pub(crate) async fn connected(
    wire: &mut WireRecords,
    since: Instant,
) -> Result<(Duration, Duration), Fail> {
    let (mut poll, mut hello) = (None, None);
    loop {
        if let (Some(poll), Some(hello)) = (poll, hello) {
            return Ok((poll, hello));
        }
        let (record, at) = next(wire).await?;
        if is(&record, WirePeer::Telegram, WireKind::Request, "getUpdates") {
            poll.get_or_insert(at - since);
        }
        if is(&record, WirePeer::Slack, WireKind::FrameOut, "hello") {
            hello.get_or_insert(at - since);
        }
    }
}

/// Waits until the bot posts into a chat; when its request came in.
pub(crate) async fn posted(
    wire: &mut WireRecords,
    peer: WirePeer,
    chat: &str,
) -> Result<Instant, Fail> {
    let (method, key) = match peer {
        WirePeer::Slack => ("chat.postMessage", "channel"),
        _ => ("sendMessage", "chat_id"),
    };
    loop {
        let (record, at) = next(wire).await?;
        let is_post = is(&record, peer, WireKind::Request, method);
        if is_post && record.body[key].to_string().trim_matches('"') == chat {
            return Ok(at);
        }
    }
}

/// Waits for a poll's request.
pub(crate) async fn polled(wire: &mut WireRecords) -> Result<Instant, Fail> {
    loop {
        let (record, at) = next(wire).await?;
        if is(&record, WirePeer::Telegram, WireKind::Request, "getUpdates") {
            return Ok(at);
        }
    }
}

fn is(record: &WireRecord, peer: WirePeer, kind: WireKind, name: &str) -> bool {
    record.peer == peer && record.kind == kind && record.name == name
}

/// Waits for the next thing that happens on the wire.
pub(crate) async fn next(wire: &mut WireRecords) -> Result<(WireRecord, Instant), Fail> {
    let received = tokio::time::timeout(PATIENCE, wire.recv()).await;
    match received {
        Ok(Ok(record)) => Ok((record, Instant::now())),
        Ok(Err(RecvError::Lagged(lost))) => Err(format!("{lost} wire records were missed").into()),
        Ok(Err(RecvError::Closed)) => Err("the loopback platforms ended".into()),
        Err(_) => Err("the daemon did nothing for two minutes".into()),
    }
}

/// A running `vocative`.
pub(crate) struct BenchDaemon {
    child: Child,
}

impl BenchDaemon {
    fn proc_path(&self, name: &str) -> Result<PathBuf, Fail> {
        let id = self.child.id().ok_or("the daemon has ended")?;
        Ok(PathBuf::from(format!("/proc/{id}/{name}")))
    }

    /// A line of `/proc/PID/status`, such as `VmRSS`, as a number.
    pub(crate) fn status(&self, field: &str) -> Result<u64, Fail> {
        let text = std::fs::read_to_string(self.proc_path("status")?)?;
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        let number = line.and_then(|line| line.split_whitespace().next());
        Ok(number.ok_or("no such line in /proc/PID/status")?.parse()?)
    }

    /// How many files, sockets and the like it has open.
    pub(crate) fn open_files(&self) -> Result<usize, Fail> {
        Ok(std::fs::read_dir(self.proc_path("fd")?)?.count())
    }

    /// How often its threads that live gave up their processor to wait.
    pub(crate) fn wake_ups(&self) -> Result<u64, Fail> {
        let mut sum = 0;
        for task in std::fs::read_dir(self.proc_path("task")?)? {
            // A thread may have ended meanwhile.
            let text = std::fs::read_to_string(task?.path().join("status")).unwrap_or_default();
            let count = text
                .lines()
                .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            sum += count.map_or(Ok(0), |count| count.trim().parse::<u64>())?;
        }
        Ok(sum)
    }

    /// Bytes that it caused to be written to the disk.
    pub(crate) fn bytes_written(&self) -> Result<u64, Fail> {
        let text = std::fs::read_to_string(self.proc_path("io")?)?;
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("write_bytes:"));
        Ok(line
            .ok_or("no write_bytes in /proc/PID/io")?
            .trim()
            .parse()?)
    }

    /// Kills it (SIGKILL).
    pub(crate) async fn kill(mut self) -> Result<(), Fail> {
        Ok(self.child.kill().await?)
    }

    /// Processor time so far, user and kernel.
    pub(crate) fn cpu(&self) -> Result<Duration, Fail> {
        // Fields 14 and 15 after the name in parentheses, in ticks of 10 ms. Source: proc_pid_stat(5).
        const TICK_MS: u64 = 10;
        let text = std::fs::read_to_string(self.proc_path("stat")?)?;
        let fields = text.rsplit(')').next().unwrap_or_default();
        let ticks = fields
            .split_whitespace()
            .skip(11)
            .take(2)
            .map(str::parse::<u64>)
            .sum::<Result<u64, _>>()?;
        Ok(Duration::from_millis(ticks * TICK_MS))
    }

    /// Waits for its end, whenever that is; the most memory it was seen to have held, in KiB.
    pub(crate) async fn watch(mut self) -> Result<u64, Fail> {
        const LOOK: Duration = Duration::from_millis(50);
        let mut peak_kib = 0;
        loop {
            // The kernel keeps the peak itself; it only must be read before the end.
            peak_kib = self.status("VmHWM").unwrap_or(0).max(peak_kib);
            match tokio::time::timeout(LOOK, self.child.wait()).await {
                Err(_) => {}
                Ok(ended) if ended.as_ref().is_ok_and(|status| status.success()) => {
                    return Ok(peak_kib);
                }
                Ok(ended) => return Err(format!("it failed: {ended:?}").into()),
            }
        }
    }

    /// Stops it in order and waits for its end.
    pub(crate) async fn stop(mut self) -> Result<(), Fail> {
        let id = self.child.id().ok_or("the daemon has ended")?;
        let told = Command::new("kill").arg(id.to_string()).status().await?;
        if !told.success() {
            return Err("the daemon could not be told to stop".into());
        }
        tokio::time::timeout(PATIENCE, self.child.wait()).await??;
        Ok(())
    }
}

/// The id of a person's direct chat on Slack.
pub(crate) fn slack_direct(person: usize) -> String {
    format!("D{person:06}")
}

/// The id of a person on Slack.
pub(crate) fn slack_person(person: usize) -> String {
    format!("U{person:06}")
}

/// The id of a room on Slack.
pub(crate) fn slack_room(room: usize) -> String {
    format!("C{room:06}")
}

/// The id of a person on Telegram, and of the private chat with them.
pub(crate) fn telegram_person(person: usize) -> i64 {
    FIRST_PERSON + i64::try_from(person).unwrap_or(0)
}

/// The id of a group on Telegram.
pub(crate) fn telegram_room(room: usize) -> i64 {
    -1_002_000_000_000 - i64::try_from(room).unwrap_or(0)
}

fn slack_world(people: usize, rooms: usize) -> SlackWorld {
    let mut world = SlackWorld::acme();
    for person in 0..people {
        let user = slack_person(person);
        let name = format!("person{person}");
        world.users.push(SlackUser {
            id: user.clone(),
            name: name.clone(),
            real_name: name.clone(),
            display_name: name,
            team_id: world.team_id.clone(),
            bot: None,
            deleted: false,
        });
        let kind = ChannelKind::Im { user: user.clone() };
        world.channels.push(SlackConversation::new(
            &slack_direct(person),
            "",
            kind,
            &[&user],
        ));
    }
    for room in 0..rooms {
        let (id, name) = (slack_room(room), format!("room{room}"));
        let kind = ChannelKind::Public;
        world
            .channels
            .push(SlackConversation::new(&id, &name, kind, &["U0ANN"]));
    }
    world
}

fn telegram_world(people: usize, rooms: usize) -> TelegramWorld {
    let mut world = TelegramWorld::team();
    let chat = |id, kind, title: String, member| TelegramChat {
        id,
        kind,
        title,
        username: None,
        is_forum: false,
        topics: Vec::new(),
        members: vec![member],
        bot_status: BotStatus::Member,
    };
    for person in 0..people {
        let id = telegram_person(person);
        world.users.push(TelegramUser {
            id,
            first_name: format!("Person {person}"),
            username: None,
            is_bot: false,
        });
        world
            .chats
            .push(chat(id, TelegramChatKind::Private, String::new(), id));
    }
    for room in 0..rooms {
        let (id, title) = (telegram_room(room), format!("Room {room}"));
        world.chats.push(chat(
            id,
            TelegramChatKind::Supergroup,
            title,
            TelegramWorld::ANN,
        ));
    }
    world
}
