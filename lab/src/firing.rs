//! The rows about schedules: a reminder and a task of an agent are due, and the daemon is killed while it starts them.
//! Each must be in the room once.

use vocative_sandbox::telegram::TelegramWorld;

use super::memory::{SLACK_ROOM, ask, listening, note_kill};
use super::plan::{Mode, PlanRow};
use super::play::settle;
use super::process::{LOOK, Process, WAIT};
use super::scene::{AnswerPlace, AnswersDue, AskedScene, SceneQuestion};
use super::stage::LabStage;
use super::tally::{ProcessEnd, Tally};
use tokio::time::Instant;
use vocative::admin::operations::{AddedSchedule, AdminOperation, ChangedSchedule};
use vocative::admin::view::ScheduleView;
use vocative::cli::CliError;

/// What is planned: its word, and the agent that does it, if any.
const PLANNED: [(&str, Option<&str>); 2] =
    [("q00001-reminder", None), ("q00002-task", Some("vocative"))];

/// Two schedules are due, the daemon is killed while it starts them, and they are in the room once after the next start
/// of the daemon.
///
/// # Errors
/// If a server or the daemon can't be started, or the daemon does not connect.
pub(super) async fn firing(
    row: &PlanRow,
    stage: &LabStage,
    random: &mut impl FnMut(u64) -> u64,
) -> Result<Tally, CliError> {
    let mut tally = Tally::default();
    let mut scene = AskedScene::default();
    let mut process = listening(stage, None).await?;
    ask(stage, &mut scene, "q00000-before");
    settle(stage, &mut process, |_| {}).await?;
    let mut planned = Vec::new();
    for (word, agent) in PLANNED {
        planned.extend(plan(stage, &process, word, agent).await);
    }
    process.kill(stage).await?;
    let pass = 1 + random(PLANNED.len() as u64);
    process = listening(stage, Some((row.name(), pass))).await?;
    let mut begun = Vec::new();
    for schedule in &planned {
        let id = schedule.id;
        let change = ChangedSchedule::Run;
        let run = AdminOperation::ChangeSchedule { id, change };
        // The first schedule's firing may end the daemon before it reads the second command.
        let is_told = process.ask::<ScheduleView>(&run).await.is_some();
        begun.extend(is_told.then_some(id));
        scene.questions.push(SceneQuestion {
            words: vec![schedule.task.clone()],
            place: place(stage),
            due: match is_told {
                true => AnswersDue::Once,
                false => AnswersDue::AtMostOnce,
            },
        });
    }
    process.ended_within(WAIT).await;
    note_kill(&mut tally, process.was_killed());
    // The first schedule's post may be in flight when the second one's firing ends the daemon.
    let at_ms = process.kill(stage).await?;
    let end = ProcessEnd {
        at_ms,
        next_ms: chrono::Utc::now().timestamp_millis(),
    };
    process = listening(stage, None).await?;
    if !have_fired(&process, &begun).await {
        tally
            .wrong
            .push("a schedule that was due did not start".to_owned());
        tally.lost += 1;
    }
    settle(stage, &mut process, |_| {}).await?;
    process.kill(stage).await?;
    tally.count(stage, &scene, &[end]);
    Ok(tally)
}

/// Plans a schedule for later.
async fn plan(
    stage: &LabStage,
    process: &Process,
    word: &str,
    agent: Option<&str>,
) -> Option<ScheduleView> {
    let chat = match stage.mode {
        Mode::Slack => SLACK_ROOM.to_owned(),
        _ => TelegramWorld::SUPERGROUP.to_string(),
    };
    let added = AddedSchedule {
        conversation: format!("{}/{chat}", stage.channel()),
        when: "in 2h".to_owned(),
        zone: "UTC".to_owned(),
        agent: agent.map(str::to_owned),
        task: word.to_owned(),
        missed: "once".to_owned(),
        jitter_s: 0,
    };
    process.ask(&AdminOperation::AddSchedule(added)).await
}

/// Where the schedules' posts appear.
fn place(stage: &LabStage) -> AnswerPlace {
    match stage.mode {
        Mode::Slack => AnswerPlace::Slack {
            chat: SLACK_ROOM.to_owned(),
            thread: None,
        },
        _ => AnswerPlace::Telegram(TelegramWorld::SUPERGROUP),
    }
}

/// Waits until each of these has started.
async fn have_fired(process: &Process, ids: &[i64]) -> bool {
    let deadline = Instant::now() + WAIT;
    while Instant::now() < deadline {
        let all: Option<Vec<ScheduleView>> =
            process.ask(&AdminOperation::Schedules { all: true }).await;
        let all = all.unwrap_or_default();
        let has_fired = |id: &i64| all.iter().any(|it| it.id == *id && it.fired > 0);
        if ids.iter().all(has_fired) {
            return true;
        }
        tokio::time::sleep(LOOK).await;
    }
    false
}
