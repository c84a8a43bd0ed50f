//! How long nobody is served after a kill, and how soon an answer that a kill cut off is there.

use std::time::{Duration, Instant};

use vocative_sandbox::slack::RetryPlan;
use vocative_sandbox::telegram::TelegramWorld;
use vocative_sandbox::wire::{WireKind, WirePeer, WireRecord};

use crate::Fail;
use crate::stage::{self, BenchStage, WireRecords};
use crate::stats::Sample;

const ROUNDS: usize = 20;
const ROOMS: usize = 20;
/// Between two things that people say.
const TALK: Duration = Duration::from_millis(20);

pub(crate) async fn measure() -> Result<(), Fail> {
    for peer in [WirePeer::Slack, WirePeer::Telegram] {
        let (mut silences, mut resumed) = (Sample::default(), Sample::default());
        let stage = BenchStage::build(0, ROOMS).await?;
        // What a kill left unacknowledged is soon out of the way of the next round.
        stage.slack.faults().set_retry_plan(RetryPlan {
            after_ms: vec![500; 1_000],
            ..RetryPlan::default()
        });
        for round in 0..ROUNDS {
            silences.push(silence(&stage, peer).await?);
            if let Some(took) = resume(&stage, peer, round).await? {
                resumed.push(took);
            }
        }
        println!(
            "gaps, {peer:?}, kill to the first event acknowledged: {}",
            silences.spread()
        );
        println!(
            "gaps, {peer:?}, restart to the answer of a question that was captured before the kill: {}",
            resumed.spread()
        );
    }
    Ok(())
}

/// From the kill, while people talk, to the first event that the next process acknowledges.
async fn silence(stage: &BenchStage, peer: WirePeer) -> Result<Duration, Fail> {
    let daemon = stage.spawn_connected().await?;
    let mut wire = stage.wire();
    talk_until(stage, peer, &mut wire).await?;
    let killed = Instant::now();
    daemon.kill().await?;
    let daemon = stage.spawn()?;
    let mut wire = stage.wire();
    let acknowledged = talk_until(stage, peer, &mut wire).await?;
    daemon.kill().await?;
    Ok(acknowledged - killed)
}

/// People talk until something is acknowledged; when that was.
async fn talk_until(
    stage: &BenchStage,
    peer: WirePeer,
    wire: &mut WireRecords,
) -> Result<Instant, Fail> {
    let mut ticks = tokio::time::interval(TALK);
    loop {
        tokio::select! {
            _ = ticks.tick() => say(stage, peer, 0, "by the way"),
            next = stage::next(wire) => {
                let (record, at) = next?;
                if is_acknowledgement(&record, peer) {
                    return Ok(at);
                }
            }
        }
    }
}

/// From the start of the next process to the answer; `None` if it came before the kill.
async fn resume(
    stage: &BenchStage,
    peer: WirePeer,
    round: usize,
) -> Result<Option<Duration>, Fail> {
    let room = round % ROOMS;
    let daemon = stage.spawn_connected().await?;
    while stage.slack.unacked() > 0 || stage.telegram.pending_updates() > 0 {
        tokio::time::sleep(TALK).await;
    }
    let mut wire = stage.wire();
    let text = match peer {
        WirePeer::Slack => format!("@vocative question {round}: is it up?"),
        _ => format!("@vocative_bot question {round}: is it up?"),
    };
    say(stage, peer, room, &text);
    loop {
        let (record, _) = stage::next(&mut wire).await?;
        if is_acknowledgement(&record, peer) {
            break;
        }
    }
    daemon.kill().await?;
    if answers(stage, peer, room) > 0 {
        return Ok(None);
    }
    let (mut wire, started) = (stage.wire(), Instant::now());
    let daemon = stage.spawn()?;
    let chat = match peer {
        WirePeer::Slack => stage::slack_room(room),
        _ => stage::telegram_room(room).to_string(),
    };
    let answered = stage::posted(&mut wire, peer, &chat).await?;
    daemon.stop().await?;
    Ok(Some(answered - started))
}

fn say(stage: &BenchStage, peer: WirePeer, room: usize, text: &str) {
    match peer {
        WirePeer::Slack => {
            stage.slack.say(&stage::slack_room(room), "U0ANN", text);
        }
        _ => {
            let room = stage::telegram_room(room);
            stage.telegram.say(room, TelegramWorld::ANN, text);
        }
    }
}

fn answers(stage: &BenchStage, peer: WirePeer, room: usize) -> usize {
    match peer {
        WirePeer::Slack => {
            let posts = stage.slack.posts(&stage::slack_room(room));
            let is_ours = |user: Option<&str>| user == Some("U0VOCATIVE");
            posts
                .iter()
                .filter(|post| is_ours(post.user.as_deref()))
                .count()
        }
        _ => stage.telegram.bot_posts(stage::telegram_room(room)).len(),
    }
}

/// A Slack acknowledgement, or a poll that confirms.
fn is_acknowledgement(record: &WireRecord, peer: WirePeer) -> bool {
    let is_it = match peer {
        WirePeer::Slack => record.kind == WireKind::FrameIn && record.name == "ack",
        _ => {
            let is_poll = record.kind == WireKind::Request && record.name == "getUpdates";
            is_poll && !record.body["offset"].is_null()
        }
    };
    record.peer == peer && is_it
}
