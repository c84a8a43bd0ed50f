//! One life of the simulated daemon: its clock, its steps, and its death.
//!
//! A step is an access to the store, the network or the model. Before each, chance may let other tasks go first or time
//! pass; at one of them the life may end, as if the process was killed there: any task that reaches a step afterwards
//! waits for ever, so nothing more gets out, and then everything is dropped.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task;
use tokio::time::Instant;
use vocative_contract::clock::{PlatformClock, Wall};

use super::clocks::WallClock;
use super::world::World;
use vocative::capture::clock::Clock;
use vocative_store::{AccessGate, Moment, StoreError};

/// How long a stalled step takes: longer than the lease of a run, but shorter than that of a post, even with the
/// longest wait for a platform's answer: a daemon that sleeps for longer may post twice.
const STALL_MS: (i64, i64) = (61_000, 85_000);
/// More steps than a healthy daemon takes while no time passes: it spins, and simulated time would wait for it for
/// ever.
const STEPS_AT_ONCE_MAX: u32 = 20_000;
/// The least time between two stalls.
const STALLS_APART_MS: i64 = 300_000;
/// How often in a thousand a worker that has the model's answer is paused, in worlds with pauses.
const PAUSED_PER_MILLE: u64 = 250;
/// A paused worker first passes fewer writes than this.
const WRITES_BEFORE_PAUSE: u64 = 2;

/// A worker that is paused: as when its machine, or its thread, gets no time. Its heartbeat stops, too, so its lease
/// expires and another worker takes the run; then it continues.
#[derive(Clone, Copy)]
struct Pause {
    worker: task::Id,
    writes_left: u64,
    until: Option<Instant>,
}

/// A life.
pub(super) struct Life {
    world: Arc<Mutex<World>>,
    base_ms: i64,
    began: Instant,
    wall: WallClock,
    /// The platform's time, as its answers tell it.
    pub(super) platform: Arc<PlatformClock>,
    kill_at: Option<u64>,
    steps: AtomicU64,
    /// The newest step's time, and how many steps there were at it.
    at_once: Mutex<(i64, u32)>,
    is_dead: AtomicBool,
    pause: Mutex<Option<Pause>>,
    /// Notified when the daemon was killed.
    pub(super) died: Notify,
    /// Notified when something will happen earlier than was planned.
    pub(super) changed: Notify,
    /// Notified when something may have come in.
    pub(super) heard: Notify,
}

impl Life {
    /// Begins a life now, to be killed at the given step.
    pub(super) fn begin(world: Arc<Mutex<World>>, kill_at: Option<u64>) -> Arc<Self> {
        let (base_ms, wall) = {
            let world = locked(&world);
            (world.now_ms, world.wall.clone())
        };
        let began = Instant::now();
        let shown = wall.clone();
        let shows_ms: Wall = Arc::new(move || shown.shows_ms(base_ms + passed_ms(began)));
        Arc::new(Self {
            world,
            base_ms,
            began,
            wall,
            platform: Arc::new(PlatformClock::new(shows_ms)),
            kill_at,
            steps: AtomicU64::new(0),
            at_once: Mutex::new((0, 0)),
            is_dead: AtomicBool::new(false),
            pause: Mutex::new(None),
            died: Notify::new(),
            changed: Notify::new(),
            heard: Notify::new(),
        })
    }

    /// The virtual time, which the platform knows, in milliseconds since the Unix epoch.
    pub(super) fn now_ms(&self) -> i64 {
        self.base_ms + passed_ms(self.began)
    }

    /// What the machine's clock shows.
    pub(super) fn wall_ms(&self) -> i64 {
        self.wall.shows_ms(self.now_ms())
    }

    /// The machine's clock.
    pub(super) fn clock(self: &Arc<Self>) -> Clock {
        let life = Arc::clone(self);
        Arc::new(move || life.wall_ms())
    }

    /// Notes the date of a platform's answer.
    pub(super) fn hear_date(&self) {
        let date_ms = self.now_ms() / 1_000 * 1_000;
        self.platform.note_between(date_ms, date_ms + 999);
    }

    /// Looks at the world, or changes it, as it is now.
    pub(super) fn world<T>(&self, act: impl FnOnce(&mut World) -> T) -> T {
        let mut world = locked(&self.world);
        world.now_ms = world.now_ms.max(self.now_ms());
        let due_ms = world.due_ms();
        let result = act(&mut world);
        if world.due_ms() != due_ms {
            self.changed.notify_one();
        }
        result
    }

    pub(super) async fn sleep(&self, wait_ms: i64) {
        let wait = Duration::from_millis(wait_ms.max(0).unsigned_abs());
        tokio::time::sleep(wait).await;
        self.survive().await;
    }

    /// Sleeps a time between two bounds.
    pub(super) async fn linger(&self, from_ms: i64, to_ms: i64) {
        let wait_ms = self.world(|world| world.dice.ms(from_ms, to_ms));
        self.sleep(wait_ms).await;
    }

    /// A step.
    pub(super) async fn step(&self, what: &'static str) {
        self.sit_out().await;
        self.survive().await;
        let step = self.steps.fetch_add(1, Ordering::SeqCst) + 1;
        if self.kill_at == Some(step) {
            self.is_dead.store(true, Ordering::SeqCst);
            self.world(|world| {
                world.kills_ms.push(world.now_ms);
                world.note(format_args!("KILLED at step {step}: {what}"));
            });
            self.died.notify_one();
        }
        self.notice_spinning(what);
        self.survive().await;
        match self.world(noise) {
            Noise::None => {}
            Noise::Turns(turns) => {
                for _ in 0..turns {
                    task::yield_now().await;
                }
            }
            Noise::Time(wait_ms) => self.sleep(wait_ms).await,
        }
        self.survive().await;
    }

    /// Ends a life that takes step after step while no time passes.
    fn notice_spinning(&self, what: &str) {
        let now_ms = self.now_ms();
        let mut at_once = locked(&self.at_once);
        let before = if at_once.0 == now_ms { at_once.1 } else { 0 };
        *at_once = (now_ms, before + 1);
        if at_once.1 == STEPS_AT_ONCE_MAX {
            self.is_dead.store(true, Ordering::SeqCst);
            self.world(|world| world.wrong.push(format!("the daemon spins: {what}")));
            self.died.notify_one();
        }
    }

    /// May choose the worker that calls this to be paused at one of its next writes; once in a life.
    pub(super) fn tire(&self) {
        let Some(worker) = task::try_id().filter(|_| locked(&self.pause).is_none()) else {
            return;
        };
        let writes_left = self.world(|world| {
            let is_due = world.script.pauses_workers && may_stall(world);
            let is_chosen = is_due && world.dice.hits(PAUSED_PER_MILLE);
            is_chosen.then(|| world.dice.below(WRITES_BEFORE_PAUSE))
        });
        if let Some(writes_left) = writes_left {
            *locked(&self.pause) = Some(Pause {
                worker,
                writes_left,
                until: None,
            });
        }
    }

    /// Notes that a write begins; the chosen worker may be paused from here on.
    fn count_write(&self) {
        let mut pause = locked(&self.pause);
        let Some(pause) = pause
            .as_mut()
            .filter(|it| Some(it.worker) == task::try_id())
        else {
            return;
        };
        if pause.until.is_some() {
            return;
        }
        if pause.writes_left > 0 {
            pause.writes_left -= 1;
            return;
        }
        let stall_ms = self.world(|world| begin_stall(world, "the worker of a run is paused"));
        pause.until = Some(Instant::now() + Duration::from_millis(stall_ms.unsigned_abs()));
    }

    /// Waits while the calling worker is paused.
    async fn sit_out(&self) {
        let pause = *locked(&self.pause);
        let own = pause.filter(|it| Some(it.worker) == task::try_id());
        if let Some(until) = own.and_then(|pause| pause.until) {
            tokio::time::sleep_until(until).await;
        }
    }

    /// Waits for ever if the daemon was killed.
    async fn survive(&self) {
        if self.is_dead.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
    }

    /// The gate that the store passes at every access.
    pub(super) fn gate(self: &Arc<Self>) -> AccessGate {
        let life = Arc::clone(self);
        Arc::new(move |moment| {
            let life = Arc::clone(&life);
            Box::pin(async move {
                if moment == Moment::BeforeWrite {
                    life.count_write();
                }
                life.step(match moment {
                    Moment::Read => "before a read",
                    Moment::BeforeWrite => "before a write",
                    Moment::AfterWrite => "after a commit",
                })
                .await;
                let refuses = moment == Moment::BeforeWrite
                    && life.world(|world| world.script.disk_fails && world.fails(15));
                if refuses {
                    life.world(|world| world.note(format_args!("the disk refuses a write")));
                    let what = "the simulated disk is full".to_owned();
                    return Err(StoreError::Unavailable { what });
                }
                Ok(())
            })
        })
    }
}

fn passed_ms(began: Instant) -> i64 {
    i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX / 2)
}

enum Noise {
    None,
    Turns(u64),
    Time(i64),
}

fn noise(world: &mut World) -> Noise {
    if !world.has_faults() {
        return Noise::None;
    }
    match world.dice.below(1_000) {
        0..200 => Noise::Turns(1 + world.dice.below(4)),
        200..300 => Noise::Time(world.dice.ms(1, 15)),
        300..302 if !world.script.pauses_workers && may_stall(world) => {
            Noise::Time(begin_stall(world, "a step stalls"))
        }
        _ => Noise::None,
    }
}

fn may_stall(world: &World) -> bool {
    world.has_faults() && world.now_ms - world.stalled_at_ms > STALLS_APART_MS
}

/// Notes a stall that begins now; returns how long it takes.
fn begin_stall(world: &mut World, what: &str) -> i64 {
    let (from_ms, stall_ms) = (world.now_ms, world.dice.ms(STALL_MS.0, STALL_MS.1));
    world.stalled_at_ms = from_ms;
    world.stalls_ms.push((from_ms, from_ms + stall_ms));
    world.note(format_args!("{what} for {stall_ms} ms"));
    stall_ms
}

/// Locks a value, even if a thread panicked while it held the lock.
pub(super) fn locked<T>(it: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::SeededDice;
    use crate::plan::Mode;
    use crate::sim::script::SimScript;

    #[tokio::test(start_paused = true)]
    async fn a_daemon_that_spins_is_ended_and_told() {
        let mut dice = SeededDice::of(1, "spinning");
        let script = SimScript::new(Mode::Slack, 1, &mut dice.fork());
        let faults_until_ms = script.faults_until_ms;
        let mut world = World::new(script, dice, WallClock::default(), None, false);
        world.now_ms = faults_until_ms + 1;
        let life = Life::begin(Arc::new(Mutex::new(world)), None);
        for _ in 1..STEPS_AT_ONCE_MAX {
            life.step("before a read").await;
        }
        // Time that passes begins the count anew.
        life.sleep(1).await;
        for _ in 1..STEPS_AT_ONCE_MAX {
            life.step("before a read").await;
        }
        assert_eq!(life.world(|world| world.wrong.clone()), [""; 0]);
        tokio::select! {
            biased;
            () = life.step("before a read") => panic!("the dead go on"),
            () = life.died.notified() => {}
        }
        let wrong = life.world(|world| world.wrong.clone());
        assert_eq!(wrong, ["the daemon spins: before a read"]);
    }
}
