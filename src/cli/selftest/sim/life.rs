//! One life of the simulated daemon: its clock, its steps, and its death.
//!
//! A step is an access to the store, the network or the model. Before each, chance may let other tasks
//! go first or time pass; at one of them the life may end, as if the process was killed there: whoever
//! comes to a step afterwards waits for ever, so nothing more gets out, and then everything is dropped.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::world::World;
use crate::delivery::worker::Clock;
use crate::store::{Gate, Moment, StoreError};

/// A step that takes so long that the lease of a run is over. Not that of a post, the longest wait for a
/// platform's answer included: a daemon that sleeps for longer is no longer promised to say things once.
const STALL_MS: (i64, i64) = (61_000, 85_000);
/// Two of them are so far apart.
const STALLS_APART_MS: i64 = 300_000;

/// A life.
pub(super) struct Life {
    world: Arc<Mutex<World>>,
    base_ms: i64,
    began: Instant,
    kill_at: Option<u64>,
    steps: AtomicU64,
    is_dead: AtomicBool,
    /// It was killed.
    pub(super) died: Notify,
    /// Something happens earlier than was thought.
    pub(super) changed: Notify,
    /// Something may have come in.
    pub(super) heard: Notify,
}

impl Life {
    /// Begins now; killed at that step.
    pub(super) fn begin(world: Arc<Mutex<World>>, kill_at: Option<u64>) -> Arc<Self> {
        let base_ms = locked(&world).now_ms;
        Arc::new(Self {
            world,
            base_ms,
            began: Instant::now(),
            kill_at,
            steps: AtomicU64::new(0),
            is_dead: AtomicBool::new(false),
            died: Notify::new(),
            changed: Notify::new(),
            heard: Notify::new(),
        })
    }

    /// The virtual time, in milliseconds since the Unix epoch.
    pub(super) fn now_ms(&self) -> i64 {
        let passed_ms = self.began.elapsed().as_millis();
        self.base_ms + i64::try_from(passed_ms).unwrap_or(i64::MAX / 2)
    }

    pub(super) fn clock(self: &Arc<Self>) -> Clock {
        let life = Arc::clone(self);
        Arc::new(move || life.now_ms())
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
        self.survive().await;
        match self.world(noise) {
            Noise::None => {}
            Noise::Turns(turns) => {
                for _ in 0..turns {
                    tokio::task::yield_now().await;
                }
            }
            Noise::Time(wait_ms) => self.sleep(wait_ms).await,
        }
        self.survive().await;
    }

    /// The dead wait for ever.
    async fn survive(&self) {
        if self.is_dead.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
    }

    /// What the store passes at every access.
    pub(super) fn gate(self: &Arc<Self>) -> Gate {
        let life = Arc::clone(self);
        Arc::new(move |moment| {
            let life = Arc::clone(&life);
            Box::pin(async move {
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
        300..302 if world.now_ms - world.stalled_at_ms > STALLS_APART_MS => {
            world.stalled_at_ms = world.now_ms;
            let stall_ms = world.dice.ms(STALL_MS.0, STALL_MS.1);
            let from_ms = world.now_ms;
            world.stalls_ms.push((from_ms, from_ms + stall_ms));
            world.note(format_args!("a step stalls for {stall_ms} ms"));
            Noise::Time(stall_ms)
        }
        _ => Noise::None,
    }
}

/// The world, whoever panicked with it.
pub(super) fn locked(world: &Mutex<World>) -> std::sync::MutexGuard<'_, World> {
    world.lock().unwrap_or_else(PoisonError::into_inner)
}
