//! What people and rooms are called, where no event says it.

use rusqlite::{Connection, OpenFlags};
use vocative_sandbox::slack::Fault;
use vocative_sandbox::telegram::TelegramWorld;
use vocative_sandbox::wire::WireKind;

use crate::harness::Flow;

fn count(flow: &Flow, sql: &str) -> i64 {
    let path = flow.directory().join("data").join("vocative.db");
    let read_only = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let connection = Connection::open_with_flags(path, read_only).unwrap();
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

fn requests(flow: &Flow, method: &str) -> usize {
    let records = flow.wire.records().into_iter();
    records
        .filter(|it| it.kind == WireKind::Request && it.name == method)
        .count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_in_which_nobody_asked_has_its_name_although_people_have_none() {
    let flow = Flow::start_default().await;
    // Tokens of earlier manifests may lack the scope for people.
    for _ in 0..100 {
        let refused = Fault::Error("missing_scope".to_owned());
        flow.slack.faults().next("users.info", refused);
    }
    flow.slack.say("#general", "ann", "the build is green");
    flow.slack.say("#ops", "bob", "lunch?");
    let group = TelegramWorld::SUPERGROUP;
    flow.telegram.say(group, TelegramWorld::ANN, "hello");
    flow.settle().await;
    flow.wait_for_status("all rooms have names", |_| {
        count(&flow, "SELECT count(*) FROM chats WHERE title IS NOT NULL") == 3
    })
    .await;
    let told = flow.cli(&["conversations", "list"]).await;
    for title in ["#general", "#ops", "Platform team"] {
        assert!(told.stdout.contains(title), "{title}: {told:?}");
    }
    assert!(!told.stdout.contains("C0GENERAL"), "{told:?}");
    // Each room once; people are not asked for again while the platform refuses it.
    assert!(requests(&flow, "conversations.info") <= 2);
    assert!(requests(&flow, "users.info") <= 1);
    assert_eq!(flow.model.requests().len(), 0);
}
