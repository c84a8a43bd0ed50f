//! Two tenants of one daemon: what Ann of a Slack workspace has forgotten is gone there, with the answer that
//! was made from her file, and nothing changes in Bob's Telegram chat, though it holds the same words.

use rusqlite::{Connection, OpenFlags};
use vocative_sandbox::model::ModelReply;
use vocative_sandbox::slack::UserPost;
use vocative_sandbox::telegram::TelegramWorld;

use crate::files::{slack_file, stored};
use crate::harness::Flow;

const BOB: i64 = TelegramWorld::BOB;
const GROUP: i64 = TelegramWorld::SUPERGROUP;

/// What the store holds of a platform's account, in turns, posts and steps.
fn held(flow: &Flow, platform: &str) -> Vec<String> {
    let path = flow.directory().join("data").join("vocative.db");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let connection = Connection::open_with_flags(path, flags).unwrap();
    let sql = "WITH rooms (id) AS (SELECT h.id FROM chats h JOIN accounts a ON a.id = h.account_id
                                    WHERE a.platform = ?1)
         SELECT t.seq || t.content || t.visibility || t.revision || coalesce(t.quote, '') FROM turns t
         WHERE t.conversation_id IN (SELECT id FROM conversations WHERE chat_id IN rooms)
         UNION ALL
         SELECT id || payload || state FROM outbox WHERE chat_id IN rooms
         UNION ALL
         SELECT run_id || message FROM steps
         WHERE run_id IN (SELECT id FROM runs WHERE chat_id IN rooms)";
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([platform], |row| row.get(0)).unwrap();
    rows.collect::<rusqlite::Result<_>>().unwrap()
}

fn says_zebra(rows: &[String]) -> bool {
    rows.iter().any(|row| row.contains("zebra-7f3a9c"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_tenant_has_forgotten_is_gone_there_and_changes_nothing_of_another() {
    let flow = Flow::start_default().await;
    // Ann shows a file, Bob asks about it and is answered from it.
    let notes = slack_file(
        "notes.md",
        "text/markdown",
        b"the door code is zebra-7f3a9c",
    );
    let file = flow.slack.add_file(notes);
    let shown = flow.slack.post_with(UserPost {
        channel: "C0GENERAL".to_owned(),
        user: "ann".to_owned(),
        text: "my notes".to_owned(),
        files: vec![file],
        ..UserPost::default()
    });
    flow.settle().await;
    flow.model.enqueue(ModelReply::text("It is zebra-7f3a9c."));
    let question = "@vocative what do the notes say?";
    flow.slack.say_in("C0GENERAL", "bob", &shown, question);
    flow.slack_reply("#general", &shown).await;
    flow.settle().await;
    assert_eq!(stored(&flow).len(), 1);
    // The neighbour says the same words, later.
    flow.model.enqueue(ModelReply::text("Yes: zebra-7f3a9c."));
    let theirs = "@vocative_bot the door code is zebra-7f3a9c?";
    let theirs = flow.telegram.say(GROUP, BOB, theirs);
    flow.telegram_reply(GROUP, theirs).await;
    flow.settle().await;
    let before = held(&flow, "telegram");
    assert!(says_zebra(&before) && says_zebra(&held(&flow, "slack")));

    // The first word only says what would happen.
    flow.slack.say("#general", "ann", "@vocative forget me");
    flow.settle().await;
    assert!(says_zebra(&held(&flow, "slack")));
    flow.slack.say("#general", "ann", "@vocative forget me yes");
    flow.wait_until("what Ann said is gone", || {
        !says_zebra(&held(&flow, "slack")) && stored(&flow).is_empty()
    })
    .await;
    flow.settle().await;
    let left = held(&flow, "slack");
    assert!(
        left.iter()
            .any(|row| row.contains("what do the notes say?"))
    );
    assert_eq!(held(&flow, "telegram"), before);
}
