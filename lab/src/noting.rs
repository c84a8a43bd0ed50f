//! The rows about memory: a person says something and corrects it, and the daemon is killed while it reads the room.
//! The correct statement is remembered once, the corrected one is kept with the time of its end, and nothing is left
//! once the person is erased.

use serde_json::json;
use vocative_sandbox::model::ModelReply;
use vocative_sandbox::telegram::TelegramWorld;

use super::memory::{SLACK_ROOM, erased_person, expect_success, listening, note_kill};
use super::plan::{Mode, PlanRow};
use super::process::{LOOK, Process, WAIT};
use super::stage::LabStage;
use super::tally::Tally;
use tokio::time::Instant;
use vocative::admin::operations::{AdminOperation, MemoriesAsked};
use vocative::admin::view::MemoryView;
use vocative::cli::CliError;

/// What is said, and then said instead. Numbers, so that neither line contains the other.
const WORDS: [&str; 2] = ["n71001-noted", "n71002-noted"];
/// Answers of the model: more than a kill can make it ask for.
const ANSWERS: usize = 8;

/// A line is learnt from and corrected, the reading is killed, and each is remembered once; then the person is erased.
///
/// # Errors
/// If a server or the daemon can't be started, or the daemon does not connect.
pub(super) async fn learning(
    row: &PlanRow,
    stage: &LabStage,
    random: &mut impl FnMut(u64) -> u64,
) -> Result<Tally, CliError> {
    let mut tally = Tally::default();
    let config = std::fs::read_to_string(stage.config_path())?;
    let learning = "memory = \"auto\"\nmemory_after_quiet_s = 1\ntools = ";
    std::fs::write(
        stage.config_path(),
        config.replacen("tools = ", learning, 1),
    )?;
    for _ in 0..ANSWERS {
        stage.model.enqueue(ModelReply::text(&answer()));
    }
    let mut process = listening(stage, Some((row.name(), 1 + random(2)))).await?;
    for (n, word) in WORDS.iter().enumerate() {
        say(stage, word);
        if !has_noted(&mut process, n + 1).await {
            note_kill(&mut tally, process.was_killed());
            process.kill(stage).await?;
            process = listening(stage, None).await?;
            if !has_noted(&mut process, n + 1).await {
                tally.lost += 1;
                tally.wrong.push(format!("{word} was not remembered"));
            }
        }
    }
    let noted = noted(&process).await.unwrap_or_default();
    let holds = |entry: &&MemoryView| entry.until_ms.is_none();
    let held: Vec<&MemoryView> = noted.iter().filter(holds).collect();
    if noted.len() != WORDS.len() || held.len() != 1 || !held[0].text.contains(WORDS[1]) {
        tally.doubled += 1;
        let texts: Vec<&str> = noted.iter().map(|it| it.text.as_str()).collect();
        tally.wrong.push(format!("remembered: {texts:?}"));
    }
    // At the point behind the last commit it is killed when all is written.
    if process.has_ended() {
        note_kill(&mut tally, process.was_killed());
    }
    process.kill(stage).await?;
    let person = format!("{}/{}", stage.channel(), erased_person(stage));
    let args = ["erase", "--person", &person, "--yes", "--verify"];
    let code = Process::start_command(stage, &args, None)?.code().await;
    expect_success(&mut tally, "the erasure", code);
    let words: Vec<String> = WORDS.iter().map(|word| (*word).to_owned()).collect();
    tally.count_left(stage.directory(), &words)?;
    Ok(tally)
}

/// The model's answer, whichever line it reads: the entry for the other line is refused.
fn answer() -> String {
    let entry = |word: &str| format!("the code of the locker is {word}");
    json!({"entries": [
        {"text": entry(WORDS[0]), "lines": [1]},
        {"text": entry(WORDS[1]), "lines": [1], "replaces": 1},
    ]})
    .to_string()
}

fn say(stage: &LabStage, word: &str) {
    let text = format!("the code of the locker is {word}");
    match stage.mode {
        Mode::Slack => {
            let person = erased_person(stage);
            stage.slack.say(SLACK_ROOM, &person, &text);
        }
        _ => {
            let (chat, person) = (TelegramWorld::SUPERGROUP, TelegramWorld::BOB);
            stage.telegram.say(chat, person, &text);
        }
    }
}

async fn noted(process: &Process) -> Option<Vec<MemoryView>> {
    let asked = MemoriesAsked {
        all: true,
        limit: 100,
        ..MemoriesAsked::default()
    };
    process.ask(&AdminOperation::Memories(asked)).await
}

/// Waits until `count` entries are remembered; false if the daemon ends before, or nothing comes.
async fn has_noted(process: &mut Process, count: usize) -> bool {
    let deadline = Instant::now() + WAIT;
    while Instant::now() < deadline && !process.has_ended() {
        if noted(process)
            .await
            .is_some_and(|noted| noted.len() >= count)
        {
            return true;
        }
        tokio::time::sleep(LOOK).await;
    }
    false
}
