//! A flood: rooms that say more than can be stored at once. Nothing is dropped, memory stays as it is,
//! and who asks meanwhile is answered meanwhile. The large one is `cargo bench --bench figures -- flood`.

use std::collections::BTreeSet;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::Value;
use vocative_sandbox::slack::{ChannelKind, RetryPlan, SlackConversation};
use vocative_sandbox::telegram::TelegramWorld;
use vocative_sandbox::wire::{WireKind, WirePeer, WireRecord};

use crate::harness::{Flow, FlowBuilder};

/// What people say on each platform, of which so many ask.
const MESSAGES: usize = 3_500;
const MENTIONS: usize = 14;
const ROOMS: usize = 5;
/// What is said before memory is compared, questions too: caches and connections are warm then.
const WARM_UP: usize = 1_000;
/// Together the texts of the flood are more than memory may grow by.
const TEXT_BYTES: usize = 3_500;
const GROWTH_MAX_KIB: u64 = 16 * 1024;
const WAIT: Duration = Duration::from_secs(120);

fn slack_room(n: usize) -> String {
    format!("C0FLOOD{}", n % ROOMS)
}

fn telegram_room(n: usize) -> i64 {
    let rooms = [
        TelegramWorld::SUPERGROUP,
        TelegramWorld::GROUP,
        TelegramWorld::FORUM,
    ];
    rooms[n % rooms.len()]
}

async fn flooded() -> Flow {
    // The page caches fill with the first searches, up to what is configured: small, so that what else grows is seen.
    let limits = "[limits]\nmax_runs_per_hour_person = 0\nmax_runs_per_hour_chat = 0\ntokens_per_day = 0\ntokens_per_day_person = 0\n[store]\npage_cache_kib = 1024";
    let mut flow = FlowBuilder::default()
        .offline()
        .config(limits)
        .prepare()
        .await;
    flow.slack.change_world(|world| {
        for n in 0..ROOMS {
            let (id, name) = (slack_room(n), format!("flood{n}"));
            let room = SlackConversation::new(&id, &name, ChannelKind::Public, &["U0ANN"]);
            world.channels.push(room);
        }
    });
    // A slow machine must not see events twice for that alone.
    flow.slack.faults().set_retry_plan(RetryPlan {
        after_ms: vec![600_000],
        ..RetryPlan::default()
    });
    flow.telegram.set_hears_everything(true);
    flow.start().await;
    flow
}

/// The texts from `from` on; every so many of them ask.
fn texts(from: usize, to: usize) -> impl Iterator<Item = (usize, String, bool)> {
    let filling = "the build of the release branch is green ".repeat(TEXT_BYTES / 41);
    (from..to).map(move |n| {
        let asks = n % (MESSAGES / MENTIONS) == 7;
        (n, format!("message {n}: {filling}"), asks)
    })
}

async fn say(flow: &Flow, from: usize, to: usize) {
    for (n, text, asks) in texts(from, to) {
        let (slack, telegram) = match asks {
            true => (
                format!("@vocative question {n}?"),
                format!("@vocative_bot question {n}?"),
            ),
            false => (text.clone(), text),
        };
        flow.slack.say(&slack_room(n), "U0ANN", &slack);
        flow.telegram
            .say(telegram_room(n), TelegramWorld::ANN, &telegram);
        if n % 32 == 0 {
            tokio::task::yield_now().await;
        }
    }
}

/// The most memory that the daemon is seen to hold until everything said is acknowledged.
async fn watch(flow: &Flow) -> u64 {
    let deadline = tokio::time::Instant::now() + WAIT;
    let mut peak_kib = 0;
    while flow.slack.unacked() > 0 || flow.telegram.pending_updates() > 0 {
        peak_kib = peak_kib.max(flow.memory_kib("VmRSS"));
        let is_late = tokio::time::Instant::now() > deadline;
        assert!(!is_late, "the flood was not captured in time");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    peak_kib
}

/// How many posts went out before the last message was acknowledged.
fn posts_before_the_end(flow: &Flow, peer: WirePeer) -> usize {
    let (post, end): (&str, fn(&WireRecord) -> bool) = match peer {
        WirePeer::Slack => ("chat.postMessage", |record| {
            record.kind == WireKind::FrameOut && record.body.to_string().contains("question")
        }),
        _ => ("sendMessage", |record| {
            record.kind == WireKind::Response && record.body.to_string().contains("question")
        }),
    };
    let records = flow.wire.records();
    let records = || records.iter().filter(|record| record.peer == peer);
    // The last question stands near the end of the flood, and was not stored when it was sent.
    let last = records()
        .filter(|record| end(record))
        .map(|record| record.n)
        .max();
    let is_post = |record: &&WireRecord| record.kind == WireKind::Request && record.name == post;
    records()
        .filter(is_post)
        .filter(|record| Some(record.n) < last)
        .count()
}

/// What people said, by the store; a text twice is a turn twice.
fn stored(flow: &Flow) -> Vec<String> {
    let path = flow.directory().join("data").join("vocative.db");
    let connection = Connection::open(path).unwrap();
    let sql = "SELECT content FROM turns WHERE kind = 'message' AND is_inbound = 1";
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.map(|row| row.unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_flood_nothing_is_dropped_memory_is_flat_and_who_asks_is_answered_meanwhile() {
    let flow = flooded().await;
    say(&flow, 0, WARM_UP).await;
    let warm_kib = watch(&flow).await.max(flow.memory_kib("VmRSS"));

    say(&flow, WARM_UP, MESSAGES).await;
    let peak_kib = watch(&flow).await;
    let grown_kib = peak_kib.saturating_sub(warm_kib);
    assert!(
        grown_kib <= GROWTH_MAX_KIB,
        "{warm_kib} KiB before, {peak_kib} in the flood"
    );

    let asked_until = |to: usize| texts(0, to).filter(|(_, _, asks)| *asks).count();
    let (asked_before, asked) = (asked_until(WARM_UP), asked_until(MESSAGES));
    let early = [WirePeer::Slack, WirePeer::Telegram].map(|peer| posts_before_the_end(&flow, peer));
    assert!(
        early.iter().all(|early| *early > asked_before),
        "{early:?} of {asked}"
    );

    flow.settle().await;
    let stored = stored(&flow);
    assert_eq!(stored.len(), 2 * MESSAGES);
    let numbers = stored.iter().map(|text| {
        let words = text.split([' ', ':', '?']);
        words
            .into_iter()
            .find_map(|word| word.parse::<usize>().ok())
    });
    let numbers: BTreeSet<usize> = numbers.map(Option::unwrap).collect();
    assert_eq!(numbers.len(), MESSAGES, "each of them");
    let slack: usize = (0..ROOMS)
        .map(|n| flow.slack_posts(&slack_room(n)).len())
        .sum();
    let telegram: usize = (0..3)
        .map(|n| flow.telegram_posts(telegram_room(n)).len())
        .sum();
    assert_eq!([slack, telegram], [asked; 2]);
    assert_eq!(flow.slack.violations(), Vec::<String>::new());
    let status = flow.status().await;
    assert_eq!(status["needs_person"], Value::Array(vec![]), "{status}");
}
