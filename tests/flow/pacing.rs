//! What the platforms take: a wait of theirs outlives a kill, is kept by the room that was told and by
//! no other, and nothing asks before its time.

use rusqlite::{Connection, OpenFlags};
use vocative_sandbox::slack::CallFault;
use vocative_sandbox::telegram::{TelegramFault, TelegramWorld};
use vocative_sandbox::wire::{WireKind, WirePeer, WireRecord};

use crate::harness::{Flow, FlowBuilder};

const PRIVATE: i64 = TelegramWorld::ANN;
const GROUP: i64 = TelegramWorld::SUPERGROUP;
/// How long the platforms say to wait: long enough for a kill and a start of the daemon.
const WAIT_S: u32 = 6;

/// When posts into a room were asked for, in milliseconds.
fn attempts_ms(flow: &Flow, peer: WirePeer, room: &str) -> Vec<i64> {
    let (method, key) = match peer {
        WirePeer::Slack => ("chat.postMessage", "channel"),
        _ => ("sendMessage", "chat_id"),
    };
    let is_attempt = |record: &&WireRecord| {
        let is_post = record.kind == WireKind::Request && record.name == method;
        is_post && record.body[key].to_string().trim_matches('"') == room
    };
    let records = flow.wire.records();
    let records = records.iter().filter(|record| record.peer == peer);
    records
        .filter(is_attempt)
        .map(|record| record.at_ms)
        .collect()
}

/// How many chats are stored to take no post before a time to come.
fn chats_at_rest(flow: &Flow) -> i64 {
    let path = flow.directory().join("data").join("vocative.db");
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let sql = "SELECT count(DISTINCT c.id) FROM chats c JOIN outbox o ON o.chat_id = c.id
               WHERE o.state = 'pending' AND c.rests_until_ms > o.created_at_ms + 1000";
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

/// Every request and frame that the daemon made so far.
fn requests(flow: &Flow) -> usize {
    let is_request =
        |record: &&WireRecord| matches!(record.kind, WireKind::Request | WireKind::FrameIn);
    flow.wire.records().iter().filter(is_request).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_that_a_platform_asks_for_outlives_a_kill_and_stays_in_its_room() {
    let mut flow = FlowBuilder::default().offline().start().await;
    let slack_fault = CallFault::RateLimited(u64::from(WAIT_S));
    flow.slack.faults().next("chat.postMessage", slack_fault);
    let telegram_fault = TelegramFault::RateLimited {
        retry_after_s: WAIT_S,
    };
    flow.telegram.faults().next("sendMessage", telegram_fault);
    let in_slack = flow.slack.say("#general", "ann", "@vocative busy?");
    let in_telegram = flow.telegram.say(GROUP, PRIVATE, "@vocative_bot busy?");
    let slack_ms = |flow: &Flow| attempts_ms(flow, WirePeer::Slack, "C0GENERAL");
    let telegram_ms = |flow: &Flow| attempts_ms(flow, WirePeer::Telegram, &GROUP.to_string());
    flow.wait_until("what they were told is on disk", || {
        chats_at_rest(&flow) == 2
    })
    .await;
    flow.kill().await;
    flow.start().await;
    let before = requests(&flow);

    // Other rooms are answered meanwhile.
    let elsewhere = flow.slack.say("#ops", "ann", "@vocative and here?");
    let alone = flow.telegram.say(PRIVATE, PRIVATE, "and here?");
    flow.slack_reply("#ops", &elsewhere).await;
    flow.telegram_reply(PRIVATE, alone).await;
    assert_eq!([slack_ms(&flow).len(), telegram_ms(&flow).len()], [1; 2]);

    flow.slack_reply("#general", &in_slack).await;
    flow.telegram_reply(GROUP, in_telegram).await;
    for attempts in [slack_ms(&flow), telegram_ms(&flow)] {
        assert_eq!(attempts.len(), 2, "{attempts:?}");
        let waited_ms = attempts[1] - attempts[0];
        assert!(waited_ms >= i64::from(WAIT_S) * 1_000, "{waited_ms}");
    }
    // Four answers, what they are made of, pings and polls: nobody asked again and again.
    let made = requests(&flow) - before;
    assert!(made < 60, "{made} requests while two rooms waited");
    flow.settle().await;
    assert_eq!(flow.slack_posts("#general").len(), 1);
    assert_eq!(flow.telegram_posts(GROUP).len(), 1);
}
