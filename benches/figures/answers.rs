//! Time added per answer: from the event leaving the platform to the answer's request coming in,
//! with the built-in model, which takes no time.
//!
//! One question at a time, each in a direct chat that was asked before, round robin over enough
//! chats, and far enough apart, that the pace of a platform (one post a second and chat; in all the chats
//! of a Slack workspace three or four a second, on Telegram 20) never waits.

use std::time::{Duration, Instant};

use vocative_sandbox::wire::WirePeer;

use crate::Fail;
use crate::disk::AppendedFile;
use crate::stage::{self, BenchStage, WireRecords};
use crate::stats::{Sample, ms};

/// Chats that questions are asked in, where nothing else is said.
pub(crate) const CHATS_MAX: usize = 100;
/// Measured questions per chat; one more, before them, is not measured.
const QUESTIONS: usize = 4;
/// Between an answer and the next question. The outcome of the post is recorded meanwhile, and the
/// pace of all chats together has let the next post through.
const SLACK_PAUSE: Duration = Duration::from_millis(300);
const TELEGRAM_PAUSE: Duration = Duration::from_millis(50);

pub(crate) async fn measure(rounds: usize, chats: usize) -> Result<(), Fail> {
    for round in 0..rounds {
        let stage = BenchStage::build(chats, 0).await?;
        let daemon = stage.spawn_connected().await?;
        for peer in [WirePeer::Slack, WirePeer::Telegram] {
            let (answers, disk) = ask_everybody(&stage, peer, chats).await?;
            print(round, peer, &answers, &disk);
        }
        daemon.stop().await?;
    }
    Ok(())
}

async fn ask_everybody(
    stage: &BenchStage,
    peer: WirePeer,
    chats: usize,
) -> Result<(Sample, Sample), Fail> {
    let (mut answers, mut syncs) = (Sample::default(), Sample::default());
    let pause = match peer {
        WirePeer::Slack => SLACK_PAUSE,
        _ => TELEGRAM_PAUSE,
    };
    let mut disk = AppendedFile::at(stage.folder())?;
    let mut wire = stage.wire();
    for question in 0..=QUESTIONS {
        for person in 0..chats {
            let took = ask(stage, &mut wire, peer, person, question).await?;
            tokio::time::sleep(pause).await;
            let sync = disk.probe()?;
            if question > 0 {
                answers.push(took);
                syncs.push(sync);
            }
        }
    }
    Ok((answers, syncs))
}

async fn ask(
    stage: &BenchStage,
    wire: &mut WireRecords,
    peer: WirePeer,
    person: usize,
    question: usize,
) -> Result<Duration, Fail> {
    let text = format!("question {question}: is it up?");
    let started = Instant::now();
    let chat = if peer == WirePeer::Slack {
        let chat = stage::slack_direct(person);
        stage.slack.say(&chat, &stage::slack_person(person), &text);
        chat
    } else {
        let chat = stage::telegram_person(person);
        stage.telegram.say(chat, chat, &text);
        chat.to_string()
    };
    let posted = stage::posted(wire, peer, &chat).await?;
    Ok(posted - started)
}

fn print(round: usize, peer: WirePeer, answers: &Sample, disk: &Sample) {
    let ratio = answers.median().as_secs_f64() / disk.median().as_secs_f64();
    println!(
        "answers, {peer:?}, round {round}: p50 {}, p99 {}, n = {}; fdatasync of 4 KiB beside it: \
         p50 {}, p99 {}; p50 ratio {ratio:.1}",
        ms(answers.median()),
        ms(answers.percentile(99)),
        answers.len(),
        ms(disk.median()),
        ms(disk.percentile(99)),
    );
}
