//! Answers that are seen while they are written: how soon the first words are there, and what an answer
//! costs in edits and drafts.
//!
//! The scripted model writes at a steady pace: one wait before each event. Its first one only says who
//! speaks, so the first words leave two waits after the request came in, and there the time begins.

use std::time::{Duration, Instant};

use vocative_sandbox::model::ModelReply;
use vocative_sandbox::wire::{WireKind, WirePeer, WireRecord};

use crate::Fail;
use crate::stage::{self, BenchStage, WireRecords};
use crate::stats::{Sample, ms};

/// Chats that are asked in turn, so that no pace of one chat waits.
const CHATS: usize = 100;
/// Before each piece of an answer of which only the beginning counts.
const EVERY: Duration = Duration::from_millis(50);
const PIECES: usize = 4;
/// The event with the first words is the second.
const EVENTS_TO_WORDS: u32 = 2;
/// A model that writes twenty words a second.
const WORD_EVERY: Duration = Duration::from_millis(50);

pub(crate) async fn measure() -> Result<(), Fail> {
    let at_once = BenchStage::build_streaming(CHATS, "live_delay_ms = 0").await?;
    let daemon = at_once.spawn_connected().await?;
    for peer in [WirePeer::Slack, WirePeer::Telegram] {
        let mut first = Sample::default();
        let mut wire = at_once.wire();
        for person in 0..CHATS {
            first.push(first_words(&at_once, &mut wire, peer, person).await?);
            settled(&mut wire, peer).await?;
        }
        println!(
            "live, {peer:?}: first words after the model's first: p50 {}, p99 {}, n = {}",
            ms(first.median()),
            ms(first.percentile(99)),
            first.len()
        );
    }
    daemon.stop().await?;
    for words in [60, 300] {
        shown(words).await?;
    }
    Ok(())
}

/// From the model's first words to the request that shows them.
async fn first_words(
    stage: &BenchStage,
    wire: &mut WireRecords,
    peer: WirePeer,
    person: usize,
) -> Result<Duration, Fail> {
    let answer = "word ".repeat(PIECES);
    let reply = ModelReply::text(answer.trim_end()).paced(PIECES, EVERY);
    stage.model().enqueue(reply);
    ask(stage, peer, person);
    let asked = until(wire, |it| it.peer == WirePeer::Model).await?;
    let shows = shown_by(peer);
    let seen = until(wire, |it| it.peer == peer && it.name == shows).await?;
    Ok(seen.saturating_duration_since(asked + EVERY * EVENTS_TO_WORDS))
}

/// Waits until the answer is there whole.
async fn settled(wire: &mut WireRecords, peer: WirePeer) -> Result<(), Fail> {
    let last = match peer {
        WirePeer::Slack => "chat.update",
        _ => "sendMessage",
    };
    let is_whole = |it: &WireRecord| {
        let text = it.body["text"].as_str().unwrap_or_default();
        it.peer == peer && it.name == last && !text.ends_with('…')
    };
    until(wire, is_whole).await.map(|_| ())
}

/// What an answer of this number of words costs at the paces that are set by default.
async fn shown(words: usize) -> Result<(), Fail> {
    let stage = BenchStage::build_streaming(2, "").await?;
    let daemon = stage.spawn_connected().await?;
    for peer in [WirePeer::Slack, WirePeer::Telegram] {
        let answer = "word ".repeat(words);
        let reply = ModelReply::text(answer.trim_end()).paced(words, WORD_EVERY);
        stage.model().enqueue(reply);
        let mut wire = stage.wire();
        ask(&stage, peer, 0);
        let mut calls = 0;
        loop {
            let (record, _) = stage::next(&mut wire).await?;
            let is_call = record.peer == peer && record.kind == WireKind::Request;
            let counted = ["chat.update", "sendMessageDraft"];
            let text = record.body["text"].as_str().unwrap_or_default();
            calls += usize::from(is_call && counted.contains(&record.name.as_str()));
            if is_call && !text.is_empty() && !text.ends_with('…') {
                break;
            }
        }
        let what = if peer == WirePeer::Slack {
            "edits, the last one included"
        } else {
            "drafts"
        };
        let took_s = WORD_EVERY.as_secs_f64() * words as f64;
        println!("live, {peer:?}: {calls} {what}, in an answer of {words} words in {took_s:.0} s");
    }
    daemon.stop().await
}

fn shown_by(peer: WirePeer) -> &'static str {
    match peer {
        WirePeer::Slack => "chat.postMessage",
        _ => "sendMessageDraft",
    }
}

fn ask(stage: &BenchStage, peer: WirePeer, person: usize) {
    if peer == WirePeer::Slack {
        let (chat, user) = (stage::slack_direct(person), stage::slack_person(person));
        stage.slack.say(&chat, &user, "is it up?");
    } else {
        let chat = stage::telegram_person(person);
        stage.telegram.say(chat, chat, "is it up?");
    }
}

/// Waits for a request; when it came in.
async fn until(
    wire: &mut WireRecords,
    is_it: impl Fn(&WireRecord) -> bool,
) -> Result<Instant, Fail> {
    loop {
        let (record, at) = stage::next(wire).await?;
        if record.kind == WireKind::Request && is_it(&record) {
            return Ok(at);
        }
    }
}
