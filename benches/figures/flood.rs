//! A flood of messages that address nobody, and a few questions in it: what it does to memory, and how
//! long who asks has to wait.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::time::{Duration, Instant};

use vocative_sandbox::slack::RetryPlan;
use vocative_sandbox::telegram::TelegramWorld;
use vocative_sandbox::wire::{WireKind, WirePeer, WireRecord};

use crate::Fail;
use crate::stage::{self, BenchDaemon, BenchStage, WireRecords};
use crate::stats::{Sample, ms};

const ROOMS: usize = 20;
/// One message in this number is a question.
const ASKS_EVERY: usize = 1_000;
/// The most messages on their way at once: a platform sends on while the daemon is behind.
const WINDOW: usize = 1_000;
const LOOK: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(60);

/// What goes on, as those who feed, watch and listen see it.
#[derive(Default)]
struct FloodScene {
    /// When each question was said, by the id of its message.
    asked: RefCell<HashMap<String, Instant>>,
    waits: RefCell<Sample>,
    answered_meanwhile: Cell<usize>,
    is_warm: Cell<bool>,
    is_over: Cell<bool>,
}

/// What the daemon held, in KiB.
#[derive(Clone, Copy, Default)]
struct DaemonMemory {
    before: u64,
    /// When a tenth of the flood was said.
    warm: u64,
    peak: u64,
    after: u64,
}

/// Sends each platform's channel this number of messages.
pub(crate) async fn measure(messages: usize) -> Result<(), Fail> {
    for peer in [WirePeer::Slack, WirePeer::Telegram] {
        flood(peer, messages).await?;
    }
    Ok(())
}

async fn flood(peer: WirePeer, messages: usize) -> Result<(), Fail> {
    let stage = BenchStage::build(0, ROOMS).await?;
    // Nothing is sent twice while the flood waits for its turn.
    stage.slack.faults().set_retry_plan(RetryPlan {
        after_ms: vec![600_000],
        ..RetryPlan::default()
    });
    let daemon = stage.spawn_connected().await?;
    let (scene, wire) = (FloodScene::default(), stage.wire());
    let (took, memory, answered) = tokio::join!(
        feed(&stage, peer, messages, &scene),
        watch(&daemon, &scene),
        listen(wire, peer, messages / ASKS_EVERY, &scene),
    );
    let (took, memory) = (took?, memory?);
    answered?;
    daemon.stop().await?;
    let mib = |kib: u64| kib as f64 / 1_024.0;
    println!(
        "flood, {peer:?}: {} of {messages} messages stored, {:.0} a second; resident {:.1} MiB before, \
         {:.1} after a tenth, {:.1} at most, {:.1} after",
        stage.people_turns()?,
        messages as f64 / took.as_secs_f64(),
        mib(memory.before),
        mib(memory.warm),
        mib(memory.peak),
        mib(memory.after),
    );
    let waits = scene.waits.borrow();
    println!(
        "flood, {peer:?}: {} questions answered, {} while it went on; from the question to its answer \
         p50 {}, p99 {}, at most {}",
        waits.len(),
        scene.answered_meanwhile.get(),
        ms(waits.median()),
        ms(waits.percentile(99)),
        ms(waits.percentile(100)),
    );
    Ok(())
}

/// Says everything and waits until it is acknowledged.
async fn feed(
    stage: &BenchStage,
    peer: WirePeer,
    messages: usize,
    scene: &FloodScene,
) -> Result<Duration, Fail> {
    let started = Instant::now();
    for n in 0..messages {
        while waiting(stage, peer) >= WINDOW {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        say(stage, peer, n, scene);
        scene.is_warm.set(n >= messages / 10);
        if n % 16 == 0 {
            tokio::task::yield_now().await;
        }
    }
    while waiting(stage, peer) > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    scene.is_over.set(true);
    Ok(started.elapsed())
}

fn waiting(stage: &BenchStage, peer: WirePeer) -> usize {
    match peer {
        WirePeer::Slack => stage.slack.unacked(),
        _ => stage.telegram.pending_updates(),
    }
}

fn say(stage: &BenchStage, peer: WirePeer, n: usize, scene: &FloodScene) {
    let asks = n % ASKS_EVERY == ASKS_EVERY / 2;
    // Questions take turns in the rooms, so that none meets its room's own pace.
    let room = if asks { n / ASKS_EVERY } else { n } % ROOMS;
    let text = match (asks, peer) {
        (false, _) => format!("message {n}: the build of the release branch is green again"),
        (true, WirePeer::Slack) => format!("@vocative question {n}: is it up?"),
        (true, _) => format!("@vocative_bot question {n}: is it up?"),
    };
    let said = Instant::now();
    let id = match peer {
        WirePeer::Slack => stage.slack.say(&stage::slack_room(room), "U0ANN", &text),
        _ => {
            let room = stage::telegram_room(room);
            let id = stage.telegram.say(room, TelegramWorld::ANN, &text);
            format!("{room} {id}")
        }
    };
    if asks {
        scene.asked.borrow_mut().insert(id, said);
    }
}

async fn watch(daemon: &BenchDaemon, scene: &FloodScene) -> Result<DaemonMemory, Fail> {
    let before = daemon.status("VmRSS")?;
    let mut memory = DaemonMemory {
        before,
        ..DaemonMemory::default()
    };
    loop {
        let now = daemon.status("VmRSS")?;
        memory.peak = memory.peak.max(now);
        if scene.is_warm.get() && memory.warm == 0 {
            memory.warm = now;
        }
        if scene.is_over.get() {
            memory.after = now;
            return Ok(memory);
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Listens until every question is answered.
async fn listen(
    mut wire: WireRecords,
    peer: WirePeer,
    count: usize,
    scene: &FloodScene,
) -> Result<(), Fail> {
    let mut answered = 0;
    while answered < count {
        let (record, at) = stage::next(&mut wire).await?;
        let Some(question) = answer_to(&record, peer) else {
            let is_late = scene.is_over.get()
                && scene
                    .asked
                    .borrow()
                    .values()
                    .all(|said| said.elapsed() > PATIENCE);
            if is_late {
                return Err(format!("only {answered} of {count} questions were answered").into());
            }
            continue;
        };
        if let Some(said) = scene.asked.borrow_mut().remove(&question) {
            answered += 1;
            scene.waits.borrow_mut().push(at - said);
            let meanwhile = usize::from(!scene.is_over.get());
            scene
                .answered_meanwhile
                .set(scene.answered_meanwhile.get() + meanwhile);
        }
    }
    Ok(())
}

/// The id of the message that a post answers.
fn answer_to(record: &WireRecord, peer: WirePeer) -> Option<String> {
    if record.peer != peer || record.kind != WireKind::Request {
        return None;
    }
    match record.name.as_str() {
        "chat.postMessage" => record.body["thread_ts"].as_str().map(str::to_owned),
        "sendMessage" => {
            let reply = &record.body["reply_parameters"]["message_id"];
            Some(format!("{} {reply}", record.body["chat_id"]))
        }
        _ => None,
    }
}
