//! Steady traffic on both platforms with all that goes wrong on an ordinary day, for as long as one
//! likes: whether memory, open files or the database grow, and whether anything is left behind.

use std::time::{Duration, Instant};

use vocative_sandbox::slack::CallFault;
use vocative_sandbox::telegram::{TelegramFault, TelegramWorld};

use crate::Fail;
use crate::stage::{self, BenchDaemon, BenchStage};

const ROOMS: usize = 10;
const TICK: Duration = Duration::from_millis(100);
/// In ticks.
const SECOND: u64 = 10;
const MINUTE: u64 = 60 * SECOND;
/// Samples of the first minutes say how caches fill, not what leaks.
const WARM_UP: Duration = Duration::from_secs(120);
const PATIENCE: Duration = Duration::from_secs(90);

/// One look at the daemon.
#[derive(Clone, Copy)]
struct Look {
    at: Duration,
    resident_kib: u64,
    open_files: usize,
    database_bytes: u64,
}

/// What was done to it.
#[derive(Default)]
struct SoakDone {
    said: u64,
    asked: u64,
    edits: u64,
    refreshes: u64,
    aborts: u64,
    refusals: u64,
    /// How long Slack had no socket of ours because of refreshes, and because of aborts.
    silent_refreshed: Duration,
    silent_aborted: Duration,
    last_slack: Option<(String, String)>,
    last_telegram: Option<(i64, i64)>,
}

pub(crate) async fn measure(minutes: u64) -> Result<(), Fail> {
    let stage = BenchStage::build(0, ROOMS).await?;
    let daemon = stage.spawn_connected().await?;
    let (started, mut done) = (Instant::now(), SoakDone::default());
    let mut looks = Vec::new();
    let mut ticks = tokio::time::interval(TICK);
    for tick in 0..minutes * MINUTE {
        ticks.tick().await;
        done.talk(&stage, tick);
        done.disturb(&stage, tick);
        if tick % (5 * SECOND) == 0 {
            looks.push(look(&stage, &daemon, started)?);
        }
    }
    let answered = settle(&stage, &done).await?;
    looks.push(look(&stage, &daemon, started)?);
    print(&stage, minutes, &done, answered, &looks)?;
    daemon.stop().await
}

impl SoakDone {
    /// Ten messages a second on each platform; a question every five seconds, an edit every ten.
    fn talk(&mut self, stage: &BenchStage, tick: u64) {
        let room = usize::try_from(tick).unwrap_or(0) % ROOMS;
        let (slack_room, telegram_room) = (stage::slack_room(room), stage::telegram_room(room));
        let asks = tick % (5 * SECOND) == 27;
        // Questions walk through the rooms; so does everything else, ten times as fast.
        let (slack_name, telegram_name) = match asks {
            true => ("@vocative ", "@vocative_bot "),
            false => ("", ""),
        };
        let (slack_room, telegram_room) = match asks {
            true => {
                let room = usize::try_from(tick / (5 * SECOND)).unwrap_or(0) % ROOMS;
                (stage::slack_room(room), stage::telegram_room(room))
            }
            false => (slack_room, telegram_room),
        };
        let text = format!("message {tick}: is the build of the release branch green?");
        let ts = stage
            .slack
            .say(&slack_room, "U0ANN", &format!("{slack_name}{text}"));
        let ann = TelegramWorld::ANN;
        let id = stage
            .telegram
            .say(telegram_room, ann, &format!("{telegram_name}{text}"));
        self.said += 2;
        self.asked += 2 * u64::from(asks);
        if tick % (10 * SECOND) == 50 {
            if let Some((room, ts)) = &self.last_slack {
                stage.slack.edit(room, ts, &format!("edited {tick}"));
            }
            if let Some((room, id)) = self.last_telegram {
                stage.telegram.edit(room, id, &format!("edited {tick}"));
            }
            self.edits += 2;
        }
        if !asks {
            self.last_slack = Some((slack_room, ts));
            self.last_telegram = Some((telegram_room, id));
        }
    }

    /// Every minute and a bit Slack refreshes the socket; every third time it breaks instead. In between
    /// both platforms refuse, fail and answer late.
    fn disturb(&mut self, stage: &BenchStage, tick: u64) {
        let (slack, telegram) = (stage.slack.faults(), stage.telegram.faults());
        let round = tick / (70 * SECOND);
        match tick % (70 * SECOND) {
            0 if tick > 0 => {
                let silent = stage.slack.silent();
                let before = self.silent_refreshed + self.silent_aborted;
                // What the round before brought.
                match (round - 1) % 3 {
                    2 => self.silent_aborted += silent.saturating_sub(before),
                    _ => self.silent_refreshed += silent.saturating_sub(before),
                }
            }
            100 if round % 3 == 2 => {
                stage.slack.abort_sockets();
                self.aborts += 1;
            }
            100 => {
                stage.slack.disconnect("warning");
                self.refreshes += 1;
            }
            200 => slack.next("chat.postMessage", CallFault::RateLimited(2)),
            250 => telegram.next(
                "sendMessage",
                TelegramFault::RateLimited { retry_after_s: 2 },
            ),
            300 => slack.next("chat.postMessage", CallFault::StatusAfterApply(500)),
            350 => telegram.next("getUpdates", TelegramFault::Gateway { code: 502 }),
            400 => telegram.next("getUpdates", TelegramFault::IgnoreOffset),
            450 => slack.next("chat.postMessage", CallFault::Latency(500)),
            _ => return,
        }
        self.refusals += u64::from((200..500).contains(&(tick % (70 * SECOND))));
    }
}

fn look(stage: &BenchStage, daemon: &BenchDaemon, started: Instant) -> Result<Look, Fail> {
    let data = stage.folder().join("data");
    let bytes = ["vocative.db", "vocative.db-wal"]
        .into_iter()
        .filter_map(|name| std::fs::metadata(data.join(name)).ok())
        .map(|file| file.len())
        .sum();
    Ok(Look {
        at: started.elapsed(),
        resident_kib: daemon.status("VmRSS")?,
        open_files: daemon.open_files()?,
        database_bytes: bytes,
    })
}

/// Waits until all is heard and answered; how many answers there are.
async fn settle(stage: &BenchStage, done: &SoakDone) -> Result<u64, Fail> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let rooms = 0..ROOMS;
        let answers: usize = rooms
            .map(|room| {
                let slack = stage.slack.posts(&stage::slack_room(room));
                let ours = slack
                    .iter()
                    .filter(|post| post.user.as_deref() == Some("U0VOCATIVE"));
                ours.count() + stage.telegram.bot_posts(stage::telegram_room(room)).len()
            })
            .sum();
        let is_heard = stage.slack.unacked() == 0 && stage.telegram.pending_updates() == 0;
        let is_done = is_heard && answers as u64 >= done.asked;
        if is_done || Instant::now() > deadline {
            return Ok(answers as u64);
        }
        tokio::time::sleep(TICK).await;
    }
}

fn print(
    stage: &BenchStage,
    minutes: u64,
    done: &SoakDone,
    answered: u64,
    looks: &[Look],
) -> Result<(), Fail> {
    println!(
        "soak, {minutes} minutes: {} messages said, {} stored; {} asked, {answered} answers; {} edits, {} \
         faults, {} refreshes, {} broken sockets",
        done.said,
        stage.people_turns()?,
        done.asked,
        done.edits,
        done.refusals,
        done.refreshes,
        done.aborts
    );
    let acked = stage.slack.acked_envelopes();
    let again = acked.iter().filter(|acked| acked.attempts > 1).count();
    println!(
        "soak: Slack had no socket for {:.1} ms in refreshes and {:.1} ms after breaks; {again} events were \
         delivered again, {} never",
        done.silent_refreshed.as_secs_f64() * 1e3,
        done.silent_aborted.as_secs_f64() * 1e3,
        stage.slack.lost_payloads().len()
    );
    let warm: Vec<&Look> = looks.iter().filter(|look| look.at >= WARM_UP).collect();
    let (Some(first), Some(last)) = (warm.first(), warm.last()) else {
        return Err("a soak takes more than two minutes".into());
    };
    let peak = warm.iter().map(|look| look.resident_kib).max().unwrap_or(0);
    let hours = |look: &Look| look.at.as_secs_f64() / 3_600.0;
    let points = warm
        .iter()
        .map(|look| (hours(look), look.resident_kib as f64));
    let half = warm[warm.len() / 2..].iter();
    let half = half.map(|look| (hours(look), look.resident_kib as f64));
    println!(
        "soak: resident {} KiB at the start, {} after two minutes, {peak} at most, {} in the end; slope {:+.0} \
         KiB an hour, of the second half {:+.0}",
        looks.first().map_or(0, |look| look.resident_kib),
        first.resident_kib,
        last.resident_kib,
        slope(points),
        slope(half)
    );
    let most = warm.iter().map(|look| look.open_files).max().unwrap_or(0);
    println!(
        "soak: {} open files after two minutes, {most} at most, {} in the end; database {:.1} MiB, {} bytes a \
         message",
        first.open_files,
        last.open_files,
        last.database_bytes as f64 / f64::from(1 << 20),
        last.database_bytes / done.said.max(1)
    );
    Ok(())
}

/// The slope of the line that fits best, by least squares.
fn slope(points: impl Iterator<Item = (f64, f64)>) -> f64 {
    let points: Vec<(f64, f64)> = points.collect();
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (mean_x, mean_y) = (mean(|point| point.0), mean(|point| point.1));
    let (mut above, mut below) = (0.0, 0.0);
    for (x, y) in &points {
        above += (x - mean_x) * (y - mean_y);
        below += (x - mean_x).powi(2);
    }
    above / below
}
