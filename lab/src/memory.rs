//! The rows about what is remembered: an export is imported, a person is erased, and the process that does it is killed
//! and started again. Judged by what `vocative conversations export` shows and, for erased messages, by the bytes of
//! the files.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};
use vocative_sandbox::telegram::TelegramWorld;

use super::plan::{DeathWay, Mode, PlanRow};
use super::play::{settle, wait_until};
use super::process::{Process, WAIT};
use super::scene::{AnswerPlace, AnswersDue, AskedScene, SceneQuestion};
use super::stage::{LabStage, SLACK_PERSON};
use super::tally::Tally;
use vocative::admin::operations::AdminOperation;
use vocative::admin::view::{ConversationView, ExportPageView};
use vocative::cli::CliError;

/// Messages of an export: three transactions.
const EXPORTED: usize = 600;
/// One message in this number is in a thread, where there are threads.
const THREAD_EVERY: usize = 50;
/// Messages that were heard live, too.
const HEARD: usize = 3;
/// How many messages the erased person writes.
const ERASED: usize = 5;
/// Conversations that are read.
const CONVERSATIONS_MAX: usize = 1_000;
/// When the first exported message was said, in seconds since the Unix epoch.
const FIRST_S: i64 = 1_736_400_000;
/// The Slack room of all this.
pub(super) const SLACK_ROOM: &str = "C0GENERAL";
/// The person who is erased.
const SLACK_ERASED: &str = "U0BOB";

/// An import is killed and begun again; no message of the export is missing or stored twice, nor are those that were
/// also heard live, whichever came first.
pub(super) async fn import(
    row: &PlanRow,
    stage: &LabStage,
    random: &mut impl FnMut(u64) -> u64,
) -> Result<Tally, CliError> {
    let mut tally = Tally::default();
    let mut process = listening(stage, None).await?;
    let heard = say_live(stage);
    wait_until(WAIT, || stage.is_acknowledged()).await;
    let words: Vec<String> = (0..EXPORTED).map(|n| format!("m{n:05}-import")).collect();
    let path = write_export(stage, &words, &heard)?;
    let args = ["import", "--channel", stage.channel(), &path];
    let at = Some((row.name(), 1 + random(3)));

    let is_beside = random(2) == 0;
    process.kill(stage).await?;
    let is_killed = if is_beside {
        process = listening(stage, at).await?;
        Process::start_command(stage, &args, None)?.code().await;
        end_of(process, stage).await?
    } else {
        let mut importing = Process::start_command(stage, &args, at)?;
        importing.code().await;
        importing.was_killed()
    };
    note_kill(&mut tally, is_killed);
    for _ in 0..2 {
        let code = Process::start_command(stage, &args, None)?.code().await;
        expect_success(&mut tally, "the import", code);
    }
    process = listening(stage, None).await?;
    say_again(stage, &words[1], FIRST_S + 1);
    settle(stage, &mut process, |_| {}).await?;
    let memory = remembered(&process).await;
    process.kill(stage).await?;
    tally.count_memory(&words, &memory);
    let heard: Vec<String> = heard.into_iter().map(|(_, word)| word).collect();
    tally.count_memory(&heard, &memory);
    if !memory.iter().all(|texts| is_in_order(texts, &words)) {
        tally
            .wrong
            .push("what was imported is out of order".to_owned());
        tally.lost += 1;
    }
    Ok(tally)
}

/// An erasure is killed and ordered again; nothing of the person is left in any file, everything of the others is
/// there, and they are answered.
pub(super) async fn erasure(
    row: &PlanRow,
    stage: &LabStage,
    random: &mut impl FnMut(u64) -> u64,
) -> Result<Tally, CliError> {
    let mut tally = Tally::default();
    let mut scene = AskedScene::default();
    let mut process = listening(stage, None).await?;
    let kept: Vec<String> = (0..ERASED).map(|n| format!("k{n:05}-kept")).collect();
    let erased: Vec<String> = (0..ERASED).map(|n| format!("e{n:05}-erased")).collect();
    let mut first_s = 0;
    for (n, (kept, erased)) in kept.iter().zip(&erased).enumerate() {
        let said_s = say_both(stage, kept, erased);
        if n == 1 {
            first_s = said_s;
        }
    }
    ask(stage, &mut scene, "q00000-before");
    settle(stage, &mut process, |_| {}).await?;
    process.kill(stage).await?;

    let person = format!("{}/{}", stage.channel(), erased_person(stage));
    let args = ["erase", "--person", &person, "--yes", "--verify"];
    let is_killed = if row.way == DeathWay::Point("erase.open-batch") {
        let mut erasing = Process::start_command(stage, &args, Some(("erase.begun", 1)))?;
        erasing.code().await;
        let mut opening =
            Process::start_command(stage, &["run"], Some((row.name(), 1 + random(3))))?;
        opening.ended_within(WAIT).await;
        erasing.was_killed() && end_of(opening, stage).await?
    } else {
        let is_batch = row.name() == "erase.batch-committed";
        let at = Some((row.name(), 1 + if is_batch { random(8) } else { 0 }));
        if random(2) == 0 {
            process = listening(stage, at).await?;
            Process::start_command(stage, &args, None)?.code().await;
            end_of(process, stage).await?
        } else {
            let mut erasing = Process::start_command(stage, &args, at)?;
            erasing.code().await;
            erasing.was_killed()
        }
    };
    note_kill(&mut tally, is_killed);
    process = listening(stage, None).await?;
    // The order was on disk: a start alone carries it out.
    tally.count_left(stage.directory(), &erased)?;
    let code = Process::start_command(stage, &args, None)?.code().await;
    expect_success(&mut tally, "the erasure", code);
    say_again(stage, &erased[1], first_s);
    ask(stage, &mut scene, "q00001-after");
    settle(stage, &mut process, |_| {}).await?;
    let memory = remembered(&process).await;
    process.kill(stage).await?;
    tally.count_memory(&kept, &memory);
    tally.count(stage, &scene, &[]);
    tally.count_left(stage.directory(), &erased)?;
    Ok(tally)
}

pub(super) async fn listening(
    stage: &LabStage,
    at: Option<(&str, u64)>,
) -> Result<Process, CliError> {
    let mut process = Process::start_command(stage, &["run"], at)?;
    process.listens(stage).await?;
    Ok(process)
}

/// Waits for a daemon's end and until its platform has noticed it; returns whether it was killed.
pub(super) async fn end_of(mut process: Process, stage: &LabStage) -> Result<bool, CliError> {
    process.ended_within(WAIT).await;
    let is_killed = process.was_killed();
    process.kill(stage).await?;
    Ok(is_killed)
}

pub(super) fn note_kill(tally: &mut Tally, is_killed: bool) {
    tally.kills += usize::from(is_killed);
    tally.unreached += usize::from(!is_killed);
}

pub(super) fn expect_success(tally: &mut Tally, what: &str, code: Option<i32>) {
    if code != Some(0) {
        tally.lost += 1;
        tally.wrong.push(format!("{what} ended with {code:?}"));
    }
}

/// What people say while the daemon listens: ids by which the platform knows it, and the words.
fn say_live(stage: &LabStage) -> Vec<(String, String)> {
    let said = (0..HEARD).map(|n| {
        let word = format!("l{n:05}-live");
        let id = match stage.mode {
            Mode::Slack => stage.slack.say(SLACK_ROOM, SLACK_PERSON, &word),
            _ => {
                let (chat, person) = (TelegramWorld::SUPERGROUP, TelegramWorld::ANN);
                stage.telegram.say(chat, person, &word).to_string()
            }
        };
        (id, word)
    });
    said.collect()
}

/// One person says one word, another person the other; returns when, in seconds since the Unix epoch.
fn say_both(stage: &LabStage, kept: &str, erased: &str) -> i64 {
    match stage.mode {
        Mode::Slack => {
            stage.slack.say(SLACK_ROOM, SLACK_PERSON, kept);
            stage.slack.say(SLACK_ROOM, SLACK_ERASED, erased);
        }
        _ => {
            let chat = TelegramWorld::SUPERGROUP;
            stage.telegram.say(chat, TelegramWorld::ANN, kept);
            stage.telegram.say(chat, TelegramWorld::BOB, erased);
        }
    }
    chrono::Utc::now().timestamp()
}

/// The platform delivers an old message of the person once more, with another delivery id.
fn say_again(stage: &LabStage, text: &str, at_s: i64) {
    match stage.mode {
        Mode::Slack => stage.slack.raw_event(json!({
            "type": "message", "channel": SLACK_ROOM, "channel_type": "channel", "team": "T0ACME",
            "user": SLACK_ERASED, "text": text, "ts": ts(at_s), "event_ts": ts(at_s),
        })),
        _ => {
            stage.telegram.raw_update(json!({"message": {
                "message_id": telegram_id(1), "date": at_s, "text": text,
                "chat": {"id": TelegramWorld::SUPERGROUP, "type": "supergroup", "title": "Platform team"},
                "from": {"id": TelegramWorld::BOB, "is_bot": false, "first_name": "Bob"},
            }}));
        }
    }
}

/// Asks a question that must be answered once.
pub(super) fn ask(stage: &LabStage, scene: &mut AskedScene, word: &str) {
    let place = match stage.mode {
        Mode::Slack => {
            let text = format!("@vocative {word} when is it?");
            let thread = Some(stage.slack.say(SLACK_ROOM, SLACK_PERSON, &text));
            AnswerPlace::Slack {
                chat: SLACK_ROOM.to_owned(),
                thread,
            }
        }
        _ => {
            let (chat, person) = (TelegramWorld::SUPERGROUP, TelegramWorld::ANN);
            let text = format!("@vocative_bot {word} when is it?");
            stage.telegram.say(chat, person, &text);
            AnswerPlace::Telegram(chat)
        }
    };
    scene.questions.push(SceneQuestion {
        words: vec![word.to_owned()],
        place,
        due: AnswersDue::Once,
    });
}

pub(super) fn erased_person(stage: &LabStage) -> String {
    match stage.mode {
        Mode::Slack => SLACK_ERASED.to_owned(),
        _ => TelegramWorld::BOB.to_string(),
    }
}

fn ts(at_s: i64) -> String {
    format!("{at_s}.000100")
}

/// An id far above those of live messages.
fn telegram_id(n: usize) -> i64 {
    100_000 + i64::try_from(n).unwrap_or(0)
}

/// An export of the room with these words, one a second, and with what was heard.
fn write_export(
    stage: &LabStage,
    words: &[String],
    heard: &[(String, String)],
) -> Result<String, CliError> {
    let said: Vec<(i64, &str)> = (FIRST_S..).zip(words.iter().map(String::as_str)).collect();
    match stage.mode {
        Mode::Slack => write_slack_export(&stage.directory().join("export"), &said, heard),
        _ => write_telegram_export(&stage.directory().join("result.json"), &said, heard),
    }
}

fn write_slack_export(
    root: &Path,
    said: &[(i64, &str)],
    heard: &[(String, String)],
) -> Result<String, CliError> {
    std::fs::create_dir_all(root.join("general"))?;
    let message = |user: &str, ts: &str, text: &str| json!({"type": "message", "user": user, "ts": ts, "text": text, "team": "T0ACME"});
    let mut messages: Vec<Value> = Vec::new();
    for (n, (at_s, word)) in said.iter().enumerate() {
        let mut said = message(SLACK_ERASED, &ts(*at_s), word);
        if n % THREAD_EVERY == THREAD_EVERY - 1 {
            said["thread_ts"] = json!(ts(*at_s - 1));
        }
        messages.push(said);
    }
    messages.extend(heard.iter().map(|(id, word)| message("U0ANN", id, word)));
    let channels =
        json!([{"id": SLACK_ROOM, "name": "general", "members": ["U0ANN", "U0BOB", "U0VOCATIVE"]}]);
    let users = json!([{"id": "U0ANN", "team_id": "T0ACME", "name": "ann"}, {"id": "U0BOB", "team_id": "T0ACME", "name": "bob"}]);
    std::fs::write(root.join("channels.json"), channels.to_string())?;
    std::fs::write(root.join("users.json"), users.to_string())?;
    let day = root.join("general").join("2025-01-09.json");
    std::fs::write(day, Value::from(messages).to_string())?;
    Ok(root.display().to_string())
}

fn write_telegram_export(
    path: &Path,
    said: &[(i64, &str)],
    heard: &[(String, String)],
) -> Result<String, CliError> {
    let message = |id: i64, from: i64, at_s: i64, text: &str| {
        json!({"id": id, "type": "message", "date_unixtime": at_s.to_string(), "from": "Somebody",
            "from_id": format!("user{from}"), "text": text, "text_entities": [{"type": "plain", "text": text}]})
    };
    let now_s = chrono::Utc::now().timestamp();
    let old = said.iter().enumerate();
    let old = old.map(|(n, (at_s, word))| message(telegram_id(n), TelegramWorld::BOB, *at_s, word));
    let live = heard.iter().map(|(id, word)| {
        let id = id.parse().unwrap_or(0);
        message(id, TelegramWorld::ANN, now_s, word)
    });
    let messages: Vec<Value> = old.chain(live).collect();
    let bare = -1_000_000_000_000 - TelegramWorld::SUPERGROUP;
    // In this order, as Telegram writes them.
    let mut text = String::new();
    let _ = write!(
        text,
        r#"{{"name": "Room", "type": "private_supergroup", "id": {bare}, "messages": {}}}"#,
        Value::from(messages)
    );
    std::fs::write(path, text)?;
    Ok(path.display().to_string())
}

/// What the memory holds, a list for each conversation, in its order.
async fn remembered(process: &Process) -> Vec<Vec<String>> {
    let listed = process.ask(&AdminOperation::Conversations {
        channel: None,
        limit: CONVERSATIONS_MAX,
        all: true,
        before: None,
    });
    let listed: Option<Vec<ConversationView>> = listed.await;
    let mut memory = Vec::new();
    // A thread also shows its root, which belongs to another conversation.
    let mut seen = HashSet::new();
    for conversation in listed.unwrap_or_default() {
        memory.push(texts_of(process, &conversation.id, &mut seen).await);
    }
    memory
}

async fn texts_of(
    process: &Process,
    conversation: &str,
    seen: &mut HashSet<String>,
) -> Vec<String> {
    let (mut texts, mut after, mut as_of) = (Vec::new(), None, None);
    loop {
        let operation = AdminOperation::Export {
            name: conversation.to_owned(),
            after,
            as_of,
            shown: true,
        };
        let Some(page) = process.ask::<ExportPageView>(&operation).await else {
            return texts;
        };
        let new = page.messages.into_iter();
        let new = new.filter(|message| seen.insert(message.line.id.clone()));
        texts.extend(new.map(|message| message.text));
        (after, as_of) = (page.next, Some(page.as_of));
        if after.is_none() {
            return texts;
        }
    }
}

fn is_in_order(texts: &[String], words: &[String]) -> bool {
    let place = |text: &String| words.iter().position(|word| text.contains(word.as_str()));
    let places: Vec<usize> = texts.iter().filter_map(place).collect();
    places.is_sorted()
}
