//! One row: a scene is played, the daemon is killed in the middle of it again and again, then it may
//! finish, and what the rooms show is counted.

use std::time::Duration;

use tokio::time::Instant;
use vocative_channels::crash::Sabotage;

use super::plan::{Mode, Row, Way};
use super::process::{LOOK, Process, WAIT, late};
use super::scene::Scene;
use super::stage::Stage;
use super::tally::Tally;
use crate::admin::operations::Operation;
use crate::admin::view::{PostView, ReleasedView, StatusView};
use crate::cli::CliError;
use crate::cli::args::CrashArgs;

/// How long a point may take to be reached.
const REACH_WAIT: Duration = Duration::from_secs(15);
/// Something is said so often while a point is waited for.
const CHATTER: Duration = Duration::from_millis(40);
/// A random kill comes within so many milliseconds.
const RANDOM_KILL_MS: u64 = 700;
/// A point is reached for the first, second or third time.
const PASSES: u64 = 3;

/// Plays a row.
///
/// # Errors
/// If a server or the daemon can't be started, or the daemon does not connect.
pub(super) async fn row(
    row: &Row,
    args: &CrashArgs,
    sabotage: Option<Sabotage>,
) -> Result<Tally, CliError> {
    let mut random = random(args.seed ^ name_number(row));
    let mut tally = Tally::default();
    let mut left = row.kills;
    while left > 0 {
        let kills = left.min(row.kills_of_scene_max());
        let stage = Stage::build(row, args.faults, sabotage).await?;
        let played = scene(row, &stage, kills, args.faults, &mut random).await?;
        stage.strike().await;
        tally.add(played);
        left -= kills;
    }
    Ok(tally)
}

async fn scene(
    row: &Row,
    stage: &Stage,
    kills: usize,
    has_faults: bool,
    random: &mut impl FnMut(u64) -> u64,
) -> Result<Tally, CliError> {
    let mut scene = Scene::default();
    let mut tally = Tally::default();
    let mut kills_ms = Vec::new();
    for step in 0..kills {
        scene.say_early(stage, step);
        if has_faults {
            stage.queue_faults(random);
        }
        prepare(row, stage);
        let posts_before = stage.posts_count();
        let mut process = Process::start(stage, Some(row.way), passes(row, random))?;
        let is_killed = if process.listens(stage).await? {
            scene.say(stage, step);
            end(row, stage, &mut scene, &mut process, posts_before, random).await?
        } else {
            process.was_killed()
        };
        tally.kills += usize::from(is_killed);
        tally.unreached += usize::from(!is_killed && row.way != Way::LeaseEnds);
        kills_ms.push(process.kill(stage).await?);
    }
    let before = stage.posts_count();
    let started = Instant::now();
    let mut process = Process::start(stage, None, 0)?;
    process.listens(stage).await?;
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
    tally.count(stage, &scene, &kills_ms);
    Ok(tally)
}

/// Which pass of the point ends it. What happens once in a scene ends at its first.
fn passes(row: &Row, random: &mut impl FnMut(u64) -> u64) -> u64 {
    let is_rare = ["edit.", "merge.", "look.", "summary.", "shutdown."]
        .iter()
        .any(|prefix| row.name().starts_with(prefix));
    if is_rare { 1 } else { 1 + random(PASSES) }
}

fn prepare(row: &Row, stage: &Stage) {
    match row.way {
        Way::Unanswered => stage.lose_next_answer(),
        Way::LeaseEnds => stage.model.hold(),
        Way::Point(point) if point.starts_with("look.") => {
            let reset = vocative_sandbox::slack::Fault::ResetAfter;
            stage.slack.faults().next("chat.postMessage", reset);
        }
        _ => {}
    }
}

/// Waits for the daemon's end, or brings it about; whether it was killed as the row says.
async fn end(
    row: &Row,
    stage: &Stage,
    scene: &mut Scene,
    process: &mut Process,
    posts_before: usize,
    random: &mut impl FnMut(u64) -> u64,
) -> Result<bool, CliError> {
    match row.way {
        Way::Random => {
            let kill_at = Instant::now() + Duration::from_millis(random(RANDOM_KILL_MS));
            chatter_until(stage, || Instant::now() >= kill_at).await;
            Ok(true)
        }
        Way::Unanswered => Ok(wait_until(REACH_WAIT, || stage.posts_count() > posts_before).await),
        Way::LeaseEnds => {
            let asked = 2 * scene.questions.len();
            wait_until(REACH_WAIT, || stage.model.requests().len() >= asked).await;
            stage.model.release();
            settle(stage, process, |_| {}).await?;
            Ok(false)
        }
        Way::Point(point) => {
            if point.starts_with("shutdown.") {
                process.ask_to_stop().await?;
            }
            let deadline = Instant::now() + REACH_WAIT;
            while !process.has_ended() && Instant::now() < deadline {
                if point.starts_with("summary.") && scene.is_last_answered(stage) {
                    scene.ask_directly(stage);
                }
                stage.chatter(scene.questions.len());
                process.ended_within(CHATTER).await;
            }
            Ok(process.was_killed())
        }
    }
}

async fn chatter_until(stage: &Stage, is_over: impl Fn() -> bool) {
    let mut n = 0;
    while !is_over() {
        stage.chatter(n);
        n += 1;
        wait_until(CHATTER, &is_over).await;
    }
}

/// Waits until it is so; false when the time is over.
async fn wait_until(wait: Duration, is_so: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + wait;
    while !is_so() {
        if Instant::now() >= deadline {
            return false;
        }
        tokio::time::sleep(LOOK).await;
    }
    true
}

/// Waits until nothing is left to do, deciding about held posts as a person would who looks into the
/// room: `vocative held drop` where it is there, `vocative held release` where it is not. Gives what
/// was held.
async fn settle(
    stage: &Stage,
    process: &mut Process,
    mut seen: impl FnMut(usize),
) -> Result<Vec<PostView>, CliError> {
    let mut held = Vec::new();
    let mut quiet = 0;
    let deadline = Instant::now() + WAIT;
    // Two looks: between the first one's acknowledgement and its status something may have come.
    while quiet < 2 {
        seen(stage.posts_count());
        if process.has_ended() {
            return Err(late(
                "the daemon ended on its own and did not finish",
                stage.directory(),
            ));
        }
        if Instant::now() > deadline {
            return Ok(held);
        }
        let status: Option<StatusView> = process.ask(&Operation::Status).await;
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
    runs.queued + runs.leased + posts.pending + posts.unknown + posts.held == 0
}

async fn decide(stage: &Stage, process: &Process) -> Vec<PostView> {
    let posts: Option<Vec<PostView>> = process.ask(&Operation::Held).await;
    let mut decided = Vec::new();
    for post in posts.unwrap_or_default() {
        if post.state != "held" {
            continue;
        }
        let texts = stage.texts_in(&post.chat);
        let is_there = texts.iter().any(|text| text.trim() == post.text.trim());
        let release = Operation::Release {
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

/// A number for a row, so that rows differ and each is the same whichever others are played.
fn name_number(row: &Row) -> u64 {
    let mode = match row.mode {
        Mode::Slack => "s",
        Mode::TelegramResend => "r",
        Mode::TelegramHold => "h",
    };
    let bytes = mode.bytes().chain(row.name().bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
