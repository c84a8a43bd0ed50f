//! What a captured message and an answer cost in work, which no noise of the machine changes: statements, rows,
//! commits, syncs, what is handed to the store's threads, wake-ups of threads, and what is written to the disk.
//!
//! Messages and questions come one at a time. What an idle daemon does in the same time is measured before, and taken
//! off.

use std::time::{Duration, Instant};

use serde_json::Value;
use vocative_sandbox::wire::WirePeer;

use crate::Fail;
use crate::stage::{self, BenchDaemon, BenchStage};

/// Measured of each kind, on each platform.
const TIMES: usize = 50;
/// How long the idle daemon is looked at.
const IDLE: Duration = Duration::from_secs(10);
/// After an answer's request, until its outcome is recorded and the pace of the platform lets the next one through.
const PAUSE: Duration = Duration::from_millis(400);
/// How often it is looked whether a message was captured.
const LOOK: Duration = Duration::from_millis(2);
/// No message takes longer.
const PATIENCE: Duration = Duration::from_secs(60);

const COUNTERS: [&str; 6] = ["statements", "rows", "commits", "syncs", "reads", "writes"];
/// Those of the store, wake-ups, and bytes written.
type Work = [f64; COUNTERS.len() + 2];

pub(crate) async fn measure() -> Result<(), Fail> {
    let stage = BenchStage::build(TIMES, 1).await?;
    let daemon = stage.spawn_connected().await?;
    for peer in [WirePeer::Slack, WirePeer::Telegram] {
        say(&stage, peer, "the first line").await?;
        for person in 0..TIMES {
            ask(&stage, peer, person).await?;
        }
    }
    let looking = per_second(&stage, &daemon, Duration::ZERO).await?;
    let idle = per_second(&stage, &daemon, IDLE).await?;
    let idle: Work = std::array::from_fn(|at| (idle[at] - looking[at]) / IDLE.as_secs_f64());
    for peer in [WirePeer::Slack, WirePeer::Telegram] {
        let (before, began) = (work(&stage, &daemon).await?, Instant::now());
        for number in 0..TIMES {
            say(&stage, peer, &format!("line {number} of what people say")).await?;
        }
        let after = work(&stage, &daemon).await?;
        print(
            peer,
            "a captured message",
            after,
            before,
            looking,
            idle,
            began,
        );
        let (before, began) = (work(&stage, &daemon).await?, Instant::now());
        for person in 0..TIMES {
            ask(&stage, peer, person).await?;
        }
        let after = work(&stage, &daemon).await?;
        print(peer, "an answer", after, before, looking, idle, began);
    }
    daemon.stop().await
}

/// What was done between two looks that are so far apart.
async fn per_second(
    stage: &BenchStage,
    daemon: &BenchDaemon,
    apart: Duration,
) -> Result<Work, Fail> {
    let before = work(stage, daemon).await?;
    tokio::time::sleep(apart).await;
    let after = work(stage, daemon).await?;
    Ok(std::array::from_fn(|at| after[at] - before[at]))
}

/// Says a line in a room, to nobody, and waits until it is captured.
async fn say(stage: &BenchStage, peer: WirePeer, text: &str) -> Result<(), Fail> {
    let before = stage.people_turns()?;
    match peer {
        WirePeer::Slack => drop(stage.slack.say(&stage::slack_room(0), "U0ANN", text)),
        _ => drop(
            stage
                .telegram
                .say(stage::telegram_room(0), stage::telegram_person(0), text),
        ),
    }
    let began = Instant::now();
    while stage.people_turns()? == before {
        if began.elapsed() > PATIENCE {
            return Err("a message was not captured within a minute".into());
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

/// Asks in a direct chat, and waits for the answer.
async fn ask(stage: &BenchStage, peer: WirePeer, person: usize) -> Result<(), Fail> {
    let mut wire = stage.wire();
    let chat = match peer {
        WirePeer::Slack => {
            let chat = stage::slack_direct(person);
            stage
                .slack
                .say(&chat, &stage::slack_person(person), "is it up?");
            chat
        }
        _ => {
            let chat = stage::telegram_person(person);
            stage.telegram.say(chat, chat, "is it up?");
            chat.to_string()
        }
    };
    stage::posted(&mut wire, peer, &chat).await?;
    tokio::time::sleep(PAUSE).await;
    Ok(())
}

async fn work(stage: &BenchStage, daemon: &BenchDaemon) -> Result<Work, Fail> {
    let told = stage.command(&["status", "--format", "json"]);
    let told = { told }
        .stdout(std::process::Stdio::piped())
        .output()
        .await?;
    let told: Value = serde_json::from_slice(&told.stdout)?;
    let mut work = Work::default();
    for (at, name) in COUNTERS.iter().enumerate() {
        let count = told["store"]["work"][name].as_f64();
        work[at] = count.ok_or_else(|| format!("the status has no {name}"))?;
    }
    work[COUNTERS.len()] = daemon.wake_ups()? as f64;
    work[COUNTERS.len() + 1] = daemon.bytes_written()? as f64;
    Ok(work)
}

fn print(
    peer: WirePeer,
    what: &str,
    after: Work,
    before: Work,
    looking: Work,
    idle: Work,
    began: Instant,
) {
    let seconds = began.elapsed().as_secs_f64();
    let each: Work = std::array::from_fn(|at| {
        (after[at] - before[at] - looking[at] - idle[at] * seconds).max(0.0) / TIMES as f64
    });
    let counters: Vec<String> = COUNTERS
        .iter()
        .zip(each)
        .map(|(name, count)| format!("{count:.1} {name}"))
        .collect();
    println!(
        "profile, {peer:?}, {what}: {}, {:.1} wake-ups, {:.1} KiB written, n = {TIMES}",
        counters.join(", "),
        each[COUNTERS.len()],
        each[COUNTERS.len() + 1] / 1_024.0
    );
}
