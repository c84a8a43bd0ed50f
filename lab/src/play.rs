//! One piece of a row: a scene is played, the daemon is killed in the middle of it again and again, then it may
//! finish, and what the rooms show is counted.

use std::time::Duration;

use tokio::time::Instant;
use vocative_contract::crash::Sabotage;

use super::firing;
use super::memory;
use super::network;
use super::noting;
use super::piece::RowPiece;
use super::plan::{DeathWay, Mode, PlanRow, Play};
use super::process::{LOOK, Process, WAIT, late};
use super::scene::AskedScene;
use super::stage::LabStage;
use super::tally::{ProcessEnd, Tally};
use crate::args::CrashArgs;
use vocative::admin::operations::AdminOperation;
use vocative::admin::view::{PostView, QueuedRunView, ReleasedView, StatusView};
use vocative::cli::CliError;

/// How long the last process may take for all remaining work. Only an overloaded machine needs this long.
const SETTLE_WAIT: Duration = Duration::from_secs(180);
/// By then every shortened lease has ended.
const LEASES_ENDED: Duration = Duration::from_secs(4);
/// How long a point may take to be reached.
const REACH_WAIT: Duration = Duration::from_secs(30);
/// How often people say something while a point is waited for.
const CHATTER: Duration = Duration::from_millis(40);
/// How often people say something while a post is looked for.
const TALK_EVERY: Duration = Duration::from_secs(3);
/// The time within which a random kill comes, in milliseconds.
const RANDOM_KILL_MS: u64 = 700;
/// The daemon ends at the first, second or third pass of a point.
const PASSES: u64 = 3;

/// Plays a piece of a row.
///
/// # Errors
/// If a server or the daemon can't be started, or the daemon does not connect.
pub(super) async fn piece(
    piece: &RowPiece,
    args: &CrashArgs,
    sabotage: Option<Sabotage>,
) -> Result<Tally, CliError> {
    let row = &piece.row;
    let mut random = random(piece.seed(args));
    let mut tally = Tally::default();
    let mut left = row.kills;
    while left > 0 {
        let kills = left.min(row.kills_of_scene_max());
        let is_first = piece.number == 1 && left == row.kills;
        let delay_ms = visibility_delay_ms(row, args.faults, is_first, &mut random);
        let stage = LabStage::build(row, args.faults, delay_ms, sabotage).await?;
        let played = match row.play() {
            Play::Rooms => scene(row, &stage, kills, args.faults, &mut random).await?,
            Play::Import => memory::import(row, &stage, &mut random).await?,
            Play::Erasure => memory::erasure(row, &stage, &mut random).await?,
            Play::Firing => firing::firing(row, &stage, &mut random).await?,
            Play::Network => network::network(row, &stage, &mut random).await?,
            Play::Learning => noting::learning(row, &stage, &mut random).await?,
        };
        stage.strike().await;
        tally.add(played);
        left -= kills;
    }
    Ok(tally)
}

/// How long Slack takes to show a post. With faults it takes as long as Slack ever does, where that matters.
fn visibility_delay_ms(
    row: &PlanRow,
    has_faults: bool,
    is_first: bool,
    random: &mut impl FnMut(u64) -> u64,
) -> u64 {
    match (has_faults, row.mode) {
        (true, Mode::Slack) if is_first && row.name() == "send.response-read" => 20_000,
        (true, Mode::Slack) => [0, 1_000, 3_000][usize::try_from(random(3)).unwrap_or(0)],
        _ => 0,
    }
}

async fn scene(
    row: &PlanRow,
    stage: &LabStage,
    kills: usize,
    has_faults: bool,
    random: &mut impl FnMut(u64) -> u64,
) -> Result<Tally, CliError> {
    let mut scene = AskedScene::default();
    let mut tally = Tally::default();
    let mut ends: Vec<ProcessEnd> = Vec::new();
    if row.name().starts_with("catch-up.") {
        // Only messages of rooms that were heard before are caught up on.
        let mut process = Process::start(stage, None, 0)?;
        process.listens(stage).await?;
        stage.chatter(0);
        wait_until(WAIT, || stage.is_acknowledged()).await;
        process.kill(stage).await?;
    }
    for step in 0..kills {
        scene.say_early(stage, step);
        if has_faults {
            stage.queue_faults(random);
        }
        prepare(row, stage);
        let posts_before = stage.posts_count();
        note_start(&mut ends);
        let mut process = Process::start(stage, Some(row.way), passes(row, random))?;
        let is_killed = if process.listens(stage).await? {
            tally.note_gap(ends.last());
            scene.say(stage, step);
            end(row, stage, &mut scene, &mut process, posts_before, random).await?
        } else {
            process.was_killed()
        };
        tally.kills += usize::from(is_killed);
        tally.unreached += usize::from(!is_killed && row.way != DeathWay::LeaseEnds);
        let at_ms = process.kill(stage).await?;
        ends.push(ProcessEnd {
            at_ms,
            next_ms: at_ms,
        });
    }
    let before = stage.posts_count();
    let started = Instant::now();
    note_start(&mut ends);
    let mut process = Process::start(stage, None, 0)?;
    process.listens(stage).await?;
    tally.note_gap(ends.last());
    let held = settle(stage, &mut process, |posts| {
        if posts > before && tally.resumed_ms.is_empty() {
            let elapsed = started.elapsed().as_millis();
            tally
                .resumed_ms
                .push(u64::try_from(elapsed).unwrap_or(u64::MAX));
        }
    })
    .await?;
    process.kill(stage).await?;
    tally.held += held.len();
    scene.hear_of_commands(stage);
    tally.count(stage, &scene, &ends);
    Ok(tally)
}

fn note_start(ends: &mut [ProcessEnd]) {
    if let Some(end) = ends.last_mut() {
        end.next_ms = chrono::Utc::now().timestamp_millis();
    }
}

/// At which pass of the point the daemon ends. What happens once in a scene ends at its first.
fn passes(row: &PlanRow, random: &mut impl FnMut(u64) -> u64) -> u64 {
    let rare = [
        "edit.",
        "file.",
        "job.",
        "upload.",
        "delete.",
        "merge.",
        "look.",
        "summary.",
        "cancel.",
        "tool.",
        "tools.",
        "calls.",
        "approval.",
        "park.",
        "press.",
        "change.",
        "input.",
        "shutdown.",
    ];
    let is_rare = rare.iter().any(|prefix| row.name().starts_with(prefix));
    if is_rare { 1 } else { 1 + random(PASSES) }
}

fn prepare(row: &PlanRow, stage: &LabStage) {
    match row.way {
        DeathWay::Unanswered => stage.lose_next_answer(),
        DeathWay::LeaseEnds => stage.model.hold(),
        DeathWay::Point(point) if point.starts_with("cancel.") => stage.model.hold(),
        DeathWay::Point(point) if point.starts_with("look.") => {
            stage.reset_next_answer();
        }
        _ => {}
    }
}

/// Waits for the daemon's end, or brings it about; returns whether it was killed as the row says.
async fn end(
    row: &PlanRow,
    stage: &LabStage,
    scene: &mut AskedScene,
    process: &mut Process,
    posts_before: usize,
    random: &mut impl FnMut(u64) -> u64,
) -> Result<bool, CliError> {
    match row.way {
        DeathWay::Random => {
            let kill_at = Instant::now() + Duration::from_millis(random(RANDOM_KILL_MS));
            chatter_until(stage, || Instant::now() >= kill_at).await;
            Ok(true)
        }
        DeathWay::Unanswered => {
            Ok(wait_until(REACH_WAIT, || stage.posts_count() > posts_before).await)
        }
        DeathWay::LeaseEnds => {
            let asked = 2 * scene.questions.len();
            // Only with a broken promise are they asked again.
            wait_until(LEASES_ENDED, || stage.model.requests().len() >= asked).await;
            stage.model.release();
            settle(stage, process, |_| {}).await?;
            Ok(false)
        }
        DeathWay::Point(point) => {
            if point.starts_with("shutdown.") {
                process.ask_to_stop().await?;
            }
            if point.starts_with("cancel.") {
                cancel_one(scene, process, point == "cancel.after-commit").await;
                stage.model.release();
            }
            let deadline = Instant::now() + REACH_WAIT;
            while !process.has_ended() && Instant::now() < deadline {
                if point.starts_with("summary.") && scene.is_last_answered(stage) {
                    scene.ask_directly(stage);
                }
                stage.chatter(scene.questions.len());
                stage.press_cards();
                process.ended_within(CHATTER).await;
            }
            Ok(process.was_killed())
        }
    }
}

/// Cancels a question on which the model works, as `vocative queue cancel` does. It is one that nobody follows up in
/// the same place: the next answer there would repeat it.
async fn cancel_one(scene: &mut AskedScene, process: &mut Process, is_committed: bool) {
    let deadline = Instant::now() + REACH_WAIT;
    while Instant::now() < deadline {
        let queue: Option<Vec<QueuedRunView>> = process.ask(&AdminOperation::Queue).await;
        let mut at_work = queue.unwrap_or_default().into_iter();
        let found = at_work.find(|it| it.run.state == "leased" && scene.is_alone(&it.texts));
        let Some(queued) = found else {
            tokio::time::sleep(LOOK).await;
            continue;
        };
        let id = queued.run.id.clone();
        // The daemon is killed before it answers.
        let _: Option<bool> = process.ask(&AdminOperation::CancelRun { id }).await;
        process.ended_within(REACH_WAIT).await;
        if is_committed && process.was_killed() {
            scene.cancel(&queued.texts);
        }
        return;
    }
}

async fn chatter_until(stage: &LabStage, is_over: impl Fn() -> bool) {
    let mut n = 0;
    while !is_over() {
        stage.chatter(n);
        stage.press_cards();
        n += 1;
        wait_until(CHATTER, &is_over).await;
    }
}

/// Waits until `is_so` holds; false when the time is over.
pub(super) async fn wait_until(wait: Duration, is_so: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + wait;
    while !is_so() {
        if Instant::now() >= deadline {
            return false;
        }
        tokio::time::sleep(LOOK).await;
    }
    true
}

/// Waits until nothing is left to do, deciding about held posts as a person would who looks into the room: `vocative
/// held drop` where it is there, `vocative held release` where it is not. Returns the held posts.
pub(super) async fn settle(
    stage: &LabStage,
    process: &mut Process,
    mut seen: impl FnMut(usize),
) -> Result<Vec<PostView>, CliError> {
    let mut held = Vec::new();
    let mut quiet = 0;
    let mut talk_at = Instant::now() + stage.silence();
    let deadline = Instant::now() + SETTLE_WAIT + stage.look_back() + stage.silence();
    // It must be quiet at two looks: between the first one's acknowledgement and its status a message may have come.
    while quiet < 2 {
        seen(stage.posts_count());
        stage.press_cards();
        if process.has_ended() {
            return Err(late(
                "the daemon ended on its own and did not finish",
                stage.directory(),
            ));
        }
        let status: Option<StatusView> = process.ask(&AdminOperation::Status).await;
        if Instant::now() > deadline {
            let left = status.map(|it| (it.runs, it.posts));
            eprintln!("after {SETTLE_WAIT:?} there was still something to do: {left:?}");
            return Ok(held);
        }
        let is_looked_for = status.as_ref().is_some_and(|it| it.posts.unknown > 0);
        if is_looked_for && Instant::now() >= talk_at {
            talk_at = Instant::now() + TALK_EVERY;
            stage.talk_on();
        }
        let is_quiet = status.as_ref().is_some_and(is_idle) && stage.is_acknowledged();
        quiet = if is_quiet { quiet + 1 } else { 0 };
        if status.is_some_and(|status| status.posts.held > 0) {
            held.extend(decide(stage, process).await);
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(held)
}

fn is_idle(status: &StatusView) -> bool {
    let (runs, posts) = (&status.runs, &status.posts);
    runs.queued + runs.leased + runs.waiting + posts.pending + posts.unknown + posts.held == 0
}

async fn decide(stage: &LabStage, process: &Process) -> Vec<PostView> {
    let posts: Option<Vec<PostView>> = process.ask(&AdminOperation::Held).await;
    let mut decided = Vec::new();
    for post in posts.unwrap_or_default() {
        if post.state != "held" {
            continue;
        }
        let texts = stage.texts_in(&post.chat);
        // The rooms' texts are as people see them, with the invisible joiners that break mentions removed.
        let text = post.text.replace('\u{2060}', "");
        let is_there = texts.iter().any(|there| there.trim() == text.trim());
        let release = AdminOperation::Release {
            id: post.id.clone(),
            send: !is_there,
        };
        if process.ask::<ReleasedView>(&release).await.is_some() {
            decided.push(post);
        }
    }
    decided
}

/// Numbers below a bound, from a seed (splitmix64).
fn random(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |below| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below.max(1)
    }
}
