//! One seed: the daemon lives, ends and lives again while the script goes on; its last life may finish.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use tokio::time::Instant;
use vocative_channels::chance;
use vocative_contract::crash::{self, Sabotage};

use super::channel::{ACCOUNT, ACCOUNT_NAME, NAME, SimChannel, platform};
use super::clocks::WallClock;
use super::life::{Life, locked};
use super::model::SimModel;
use super::networks::{self, ModelRole, Team};
use super::plans::{Plans, SimSchedule};
use super::script::{BEGINNING_MS, LifeEnd, LiveSetting, SimScript};
use super::verdict::{SimTally, StoredEnd, judge};
use super::world::{SimMessage, World};
use crate::dice::{SeededDice, WORLD};
use crate::plan::Mode;
use vocative::admin::health::Health;
use vocative::agent::registry::{AgentSpec, BackgroundModel, NetworkSpec};
use vocative::cli::CliError;
use vocative::config::{Config, Environment};
use vocative::daemon::core::{Core, Ground};
use vocative::daemon::time::Timekeeper;
use vocative::daemon::wiring;
use vocative::llm::Model;
use vocative::tools::mcp::McpServers;
use vocative_core::outbox::OutboxState;
use vocative_core::routing::router::RouterForm;
use vocative_core::scheduling::{FiringOutcome, ScheduleState};
use vocative_store::contract::{
    AccountBinding, ConversationFilter, ScheduleFilter, StoreStatus, TurnFilter,
};
use vocative_store::{AccessGate, Store, StoreError, StoreOptions};

/// Once nothing goes wrong any more, all must be done within this.
const FINISH_MS: i64 = 7_200_000;
/// How often it is looked whether all is done.
const LOOK_MS: i64 = 2_000;
/// How long after the last fault a person decides about a held post.
const DECIDE_MS: i64 = 8_000;
/// How often people say something while a post is looked for, in rooms where they talk on.
const TALK_EVERY_MS: i64 = 20_000;
/// How often people press their cards that still wait, once nothing goes wrong any more.
const PRESS_EVERY_MS: i64 = 30_000;
/// A message counts as older than an attempt only if it is this much older: the platform's times are whole seconds, and
/// its clock and the daemon's up to a second apart.
const CLOCKS_APART_MS: i64 = 2_000;
/// The most configurations, and the most sets of agents, that are kept.
const KEPT_MAX: usize = 64;
/// A limit above the length of any list in a simulation.
const LISTED_MAX: usize = 10_000;

/// The settings of a played seed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    pub(super) mode: Mode,
    pub(super) steps: usize,
    pub(super) sabotage: Option<Sabotage>,
    /// Whether people plan reminders.
    pub(super) plans: bool,
    /// The shape of the network that answers; `None`: a single agent does.
    pub(super) network: Option<u64>,
}

/// The result of a seed.
pub(super) struct SeedOutcome {
    pub(super) tally: SimTally,
    pub(super) trace: String,
}

/// Plays a seed; the same seed and setting give the same outcome.
///
/// # Errors
/// If the database can't be made, or a life can't begin.
pub(super) fn play(seed: u64, setting: Setting, is_traced: bool) -> Result<SeedOutcome, CliError> {
    chance::fix(Some(seed));
    let is_simulated = setting.sabotage == Some(Sabotage::AckBeforeCommit);
    crash::sabotage_thread(setting.sabotage.filter(|_| !is_simulated));
    let played = play_lives(seed, setting, is_traced);
    crash::sabotage_thread(None);
    chance::fix(None);
    played
}

fn play_lives(seed: u64, setting: Setting, is_traced: bool) -> Result<SeedOutcome, CliError> {
    let mut dice = SeededDice::of(seed, WORLD);
    let script = SimScript::new(setting.mode, setting.steps, &mut dice.fork());
    let ends = script.ends.clone();
    let wall = WallClock::new(script.faults_until_ms, &mut SeededDice::of(seed, "clock"));
    let mut world = World::new(script, dice, wall, setting.sabotage, is_traced);
    world.numbers_dice = SeededDice::of(seed, "numbers");
    world.talks_on = world.numbers_dice.hits(700);
    world.plans = Plans::new(setting.plans.then(|| SeededDice::of(seed, "plans")));
    let world = Arc::new(Mutex::new(world));
    let folder = Folder::make()?;
    bind_before(&folder, setting.mode)?;
    for (end, down_ms) in ends {
        live(&world, &folder, setting, Some(end))?;
        let mut world = locked(&world);
        world.wire.close_socket();
        let up_ms = world.now_ms + down_ms;
        world.advance(up_ms);
        world.note(format_args!("a new life begins"));
    }
    let stored = live(&world, &folder, setting, None)?;
    let mut world = locked(&world);
    let tally = match stored {
        Some(stored) => judge(&mut world, &stored),
        None => SimTally {
            wrong: std::mem::take(&mut world.wrong),
            ..SimTally::default()
        },
    };
    Ok(SeedOutcome {
        tally,
        trace: world.take_trace(),
    })
}

/// The daemon was connected once before the world begins: a bot that never was connected can't be addressed.
fn bind_before(folder: &Folder, mode: Mode) -> Result<(), CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(async {
        let open: AccessGate = Arc::new(|_| Box::pin(async { Ok(()) }));
        let (store, _) = Store::open_inline(&folder.options(), BEGINNING_MS, open)?;
        let binding = AccountBinding {
            channel: NAME.to_owned(),
            platform: platform(mode),
            account: ACCOUNT.to_owned(),
            name: ACCOUNT_NAME.to_owned(),
        };
        let account = store.bind_account(binding, BEGINNING_MS).await?;
        store.open_reach(account, 0, BEGINNING_MS).await?;
        Ok(store.close().await?)
    })
}

/// Plays one life. The last one is not ended, and returns what is stored when all is done.
fn live(
    world: &Arc<Mutex<World>>,
    folder: &Folder,
    setting: Setting,
    end: Option<LifeEnd>,
) -> Result<Option<StoredEnd>, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()?;
    runtime.block_on(async {
        let kill_at = match end {
            Some(LifeEnd::Kill { step }) => Some(step),
            _ => None,
        };
        let life = Life::begin(Arc::clone(world), kill_at);
        let lived = tokio::select! {
            biased;
            () = life.died.notified() => Ok(None),
            () = drive(&life) => Ok(None),
            lived = work(&life, folder, setting, end) => lived,
        };
        // Brings the world up to this life's time, which the next life begins with.
        life.world(|_| ());
        Ok(lived?)
    })
}

/// Lets the world go on.
async fn drive(life: &Life) {
    loop {
        let next_ms = life.world(|world| {
            world.advance(world.now_ms);
            world.due_ms()
        });
        life.heard.notify_one();
        let Some(next_ms) = next_ms else {
            life.changed.notified().await;
            continue;
        };
        let wait_ms = (next_ms - life.now_ms()).max(1).unsigned_abs();
        let due = Instant::now() + Duration::from_millis(wait_ms);
        tokio::select! {
            biased;
            () = life.changed.notified() => {}
            () = tokio::time::sleep_until(due) => {}
        }
    }
}

/// Runs the daemon until its end, or until all is done.
async fn work(
    life: &Arc<Life>,
    folder: &Folder,
    setting: Setting,
    end: Option<LifeEnd>,
) -> Result<Option<StoredEnd>, StoreError> {
    let (store, _) = Store::open_inline(&folder.options(), life.wall_ms(), life.gate())?;
    let config = config_of(Configured {
        mode: setting.mode,
        live: life.world(|world| world.script.live),
        plans: setting.plans,
        network: setting.network,
    });
    let agents = agents_of(&config, setting, life, &store);
    let ground = Ground {
        store: store.clone(),
        time: Timekeeper::new(life.clock()),
        agents,
        transcriber: None,
        embeddings: None,
        servers: McpServers::default(),
    };
    let mut core = Core::start(&config, ground);
    let health = Health::new(life.clock());
    let channel = Arc::new(SimChannel(Arc::clone(life)));
    core.listen(vec![(NAME.to_owned(), channel)], &health);
    match end {
        Some(LifeEnd::Kill { .. }) => std::future::pending().await,
        Some(LifeEnd::Stop { after_ms }) => {
            life.sleep(after_ms).await;
            life.world(|world| {
                world.stops += 1;
                world.note(format_args!("it is told to stop"));
            });
            core.stop().await;
            life.world(|world| {
                world.stopped_ms.push(world.now_ms);
                world.note(format_args!("it has stopped"));
            });
            Ok(None)
        }
        None => settle(life, &store).await.map(Some),
    }
}

/// Waits until nothing is left to do, deciding about held posts as a person would who looks into the
/// room.
async fn settle(life: &Life, store: &Store) -> Result<StoredEnd, StoreError> {
    let faults_until_ms = life.world(|world| world.script.faults_until_ms);
    life.sleep(faults_until_ms - life.now_ms()).await;
    life.world(|world| {
        if !world.script.is_patient {
            world.wire.hurry(world.now_ms);
        }
    });
    let mut quiet = 0;
    let mut talk_at_ms = life.now_ms();
    let mut press_at_ms = life.now_ms();
    // It must be quiet at two looks: between the first one's acknowledgement and its status a message may have come.
    while quiet < 2 && life.now_ms() < faults_until_ms + FINISH_MS {
        life.sleep(LOOK_MS).await;
        let status = store.status(life.now_ms()).await?;
        if status.posts_held > 0 && life.now_ms() > faults_until_ms + DECIDE_MS {
            decide(life, store).await?;
        }
        if status.posts_unknown > 0 && life.now_ms() >= talk_at_ms {
            talk_at_ms = life.now_ms() + TALK_EVERY_MS;
            life.world(|world| {
                if world.talks_on && world.is_numbered() {
                    world.talk_on();
                }
            });
        }
        if status.approvals_open > 0 && life.now_ms() >= press_at_ms {
            press_at_ms = life.now_ms() + PRESS_EVERY_MS;
            life.world(World::press_open);
        }
        let is_planned = !store.schedules(ScheduleFilter::Open, 1).await?.is_empty();
        let is_quiet = life.world(|world| world.is_quiet());
        quiet = if is_quiet && is_idle(&status) && !is_planned {
            quiet + 1
        } else {
            0
        };
    }
    let mut conversations = Vec::new();
    let filter = ConversationFilter {
        limit: LISTED_MAX,
        ..ConversationFilter::default()
    };
    for conversation in store.conversations(filter).await? {
        let turns = store.turns(conversation.id, TurnFilter::default()).await?;
        conversations.push(turns);
    }
    let mut planned = Vec::new();
    for schedule in store.schedules(ScheduleFilter::All, LISTED_MAX).await? {
        let firings = store.firings(schedule.id, LISTED_MAX).await?;
        let fired = firings
            .iter()
            .filter(|it| it.outcome == FiringOutcome::Fired)
            .count();
        planned.push(SimSchedule {
            task: schedule.what.task,
            fired,
            missed: firings.len() - fired,
            is_open: matches!(schedule.state, ScheduleState::Active),
        });
    }
    Ok(StoredEnd {
        status: store.status(life.now_ms()).await?,
        conversations,
        planned,
    })
}

fn is_idle(status: &StoreStatus) -> bool {
    let runs = status.runs_queued + status.runs_leased + status.runs_waiting;
    let posts = status.posts_pending + status.posts_unknown + status.posts_held;
    let unread = status.accounts.iter().any(|it| it.unread_from_ms.is_some());
    runs + posts + status.approvals_open == 0 && !unread
}

/// Does `vocative held drop` for posts that are in their room, `vocative held release` for the others.
async fn decide(life: &Life, store: &Store) -> Result<(), StoreError> {
    for post in store.stuck_posts(LISTED_MAX).await? {
        if !matches!(post.state, OutboxState::Held { .. }) {
            continue;
        }
        let is_there = life.world(|world| {
            // Where the clock is right, an earlier answer with these words is told apart by its time.
            let tried_ms = post.first_attempt_ms.filter(|_| world.wall.is_right());
            let mut messages = world.rooms.iter().flatten();
            let is_it = |said: &SimMessage| {
                said.person.is_none()
                    && said.text == post.part.text
                    && tried_ms.is_none_or(|tried_ms| said.at_ms + CLOCKS_APART_MS >= tried_ms)
            };
            let is_there = messages.any(|said| is_it(said) && !said.is_deleted);
            world.held += 1;
            world.note(format_args!("a held post is in its room: {is_there}"));
            world.decided.push((post.part.text.clone(), is_there));
            is_there
        });
        store
            .release_post(post.id, !is_there, life.now_ms())
            .await?;
    }
    Ok(())
}

/// What a configuration depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Configured {
    mode: Mode,
    live: LiveSetting,
    plans: bool,
    network: Option<u64>,
}

/// The configuration of a world, read as a file's is, and kept for its other lives and for worlds like it.
fn config_of(of: Configured) -> Arc<Config> {
    static CONFIGS: Mutex<BTreeMap<Configured, Arc<Config>>> = Mutex::new(BTreeMap::new());
    let mut configs = with_room(&CONFIGS);
    let config = configs.entry(of).or_insert_with(|| {
        let environment = Environment::from_pairs([("ONE", "one-token"), ("TWO", "another-token")]);
        let text = config_text(of);
        let path = Path::new("simulated.toml");
        let (config, _) = Config::from_text(Some((path, &text)), &environment)
            .expect("the simulation's configuration is right");
        Arc::new(config)
    });
    Arc::clone(config)
}

/// The kept values, with room for another: each network has a configuration of its own.
fn with_room<K: Ord, V>(kept: &Mutex<BTreeMap<K, V>>) -> MutexGuard<'_, BTreeMap<K, V>> {
    let mut kept = locked(kept);
    if kept.len() >= KEPT_MAX {
        kept.clear();
    }
    kept
}

fn config_text(of: Configured) -> String {
    let Configured { mode, live, .. } = of;
    let channel = match mode {
        Mode::Slack => {
            format!("[channels.slack.{NAME}]\napp_token = \"env:ONE\"\nbot_token = \"env:TWO\"\n")
        }
        Mode::TelegramLook | Mode::TelegramResend | Mode::TelegramHold => format!(
            "[channels.telegram.{NAME}]\ntoken = \"env:ONE\"\nallow_chats = [\"*\"]\n\
             allow_people = [\"*\"]\non_unknown = \"{}\"\n",
            match mode {
                Mode::TelegramHold => "hold",
                Mode::TelegramResend => "resend",
                Mode::Slack | Mode::TelegramLook => "look",
            }
        ),
    };
    let platform = match mode {
        Mode::Slack => "slack",
        Mode::TelegramLook | Mode::TelegramResend | Mode::TelegramHold => "telegram",
    };
    let live = live.name(mode);
    let tools = match of.plans {
        true => "tools = [\"conversation_search\", \"schedule\"]\n",
        false => "",
    };
    let agents = match of.network {
        Some(number) => networks::shape(number),
        None => format!(
            "[agents.vocative]\nmodel = \"simulated\"\nmax_attempts = 100\n{tools}\n\
             [agents.vocative.prompt]\nrolling_summary_threshold = 12\npreserve_recent_turns = 4\n"
        ),
    };
    let manners = format!("[channels.{platform}.{NAME}.manners]\nedit_answer_within_s = 86400\n");
    format!(
        "\
[daemon]
data_dir = \"/simulated\"
runtime_dir = \"/simulated\"

[capture]
backfill_days = 0
max_trigger_age_minutes = 1440

[limits]
max_runs_per_hour_person = 0
max_runs_per_hour_chat = 0
tokens_per_day = 0
tokens_per_day_person = 0

[delivery]
max_parts = 100
live_delay_ms = 200

[models.simulated]
provider = \"offline\"

{agents}
{channel}live = \"{live}\"
{manners}"
    )
}

/// The configured agents, asking the simulated model.
fn agents_of(config: &Config, setting: Setting, life: &Arc<Life>, store: &Store) -> Vec<AgentSpec> {
    // Agents that plan have another tool; those of a network are others.
    type Kind = (bool, Option<u64>);
    static AGENTS: Mutex<BTreeMap<Kind, Vec<AgentSpec>>> = Mutex::new(BTreeMap::new());
    let make = || {
        wiring::agents(config, None, &McpServers::default())
            .expect("models that are not asked can be made")
    };
    let mut all = with_room(&AGENTS);
    let agents = all.entry((setting.plans, setting.network));
    let agents = agents.or_insert_with(make);
    let team = Team::among(agents);
    let model = |role| -> Arc<dyn Model> {
        Arc::new(SimModel {
            life: Arc::clone(life),
            store: store.clone(),
            role,
        })
    };
    let simulated = agents.iter().cloned().map(|agent| {
        let (role, router) = match &team {
            None => (ModelRole::Alone, ModelRole::Alone),
            Some(team) => (
                ModelRole::Member(agent.name.clone(), Arc::clone(team)),
                ModelRole::Router(Arc::clone(team)),
            ),
        };
        // What one life learns about its routing agent's model must not reach another life.
        let network = agent.network.as_deref().map(|of| {
            Arc::new(NetworkSpec {
                network: of.network.clone(),
                router: BackgroundModel {
                    model: model(router),
                    ..of.router.clone()
                },
                descriptions: of.descriptions.clone(),
                names: of.names.clone(),
                asking: Mutex::new(RouterForm::Schema),
            })
        });
        AgentSpec {
            model: model(role),
            network,
            ..agent
        }
    });
    simulated.collect()
}

/// The folder with a seed's database; in memory where the system has such a file system.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Folder {
    fn make() -> Result<Self, CliError> {
        let folder = Self::new()?;
        let empty = empty_database()?;
        std::fs::write(folder.database(), empty)?;
        Ok(folder)
    }

    fn new() -> std::io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt as _;
        let memory = Path::new("/dev/shm");
        let base = if memory.is_dir() {
            memory.to_owned()
        } else {
            std::env::temp_dir()
        };
        let name = format!("vocative-sim-{}", uuid::Uuid::new_v4().simple());
        let path = base.join(name);
        std::fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    fn database(&self) -> PathBuf {
        self.0.join("store.sqlite")
    }

    fn options(&self) -> StoreOptions {
        StoreOptions {
            path: Some(self.database()),
            readers: 1,
            page_cache_kib: 2_048,
        }
    }
}

/// An empty database, made once.
fn empty_database() -> Result<&'static [u8], CliError> {
    static EMPTY: OnceLock<Vec<u8>> = OnceLock::new();
    if let Some(empty) = EMPTY.get() {
        return Ok(empty);
    }
    let folder = Folder::new()?;
    let open_gate = Arc::new(|_| Box::pin(std::future::ready(Ok(()))) as _);
    let (store, _) = Store::open_inline(&folder.options(), BEGINNING_MS, open_gate)?;
    futures_util::future::FutureExt::now_or_never(store.close())
        .expect("a store without threads is closed at once")?;
    let bytes = std::fs::read(folder.database())?;
    Ok(EMPTY.get_or_init(|| bytes))
}
