//! A chat that is not on `allow_chats`, while `allow_people` lets everybody in: people are let in where they
//! are, and no chat is opened by them. Nothing of it is stored and nothing is said there on our own account.

use serde_json::json;
use vocative_sandbox::telegram::{TelegramWorld, UserMessage};

use crate::files::slack_file;
use crate::harness::{Flow, FlowBuilder};

const GROUP: i64 = TelegramWorld::SUPERGROUP;
const CLOSED: i64 = TelegramWorld::GROUP;
const ANN: i64 = TelegramWorld::ANN;

/// The closed chats of which anything is in the database.
fn closed_chats_kept(flow: &Flow) -> Vec<String> {
    let path = flow.directory().join("data").join("vocative.db");
    let connection = rusqlite::Connection::open(path).unwrap();
    let mut statement = connection
        .prepare(
            "SELECT platform_id FROM chat_ids UNION SELECT chat FROM chat_reach
             EXCEPT SELECT value FROM json_each('[\"C0OPS\",\"D0ANN\"]') ORDER BY 1",
        )
        .unwrap();
    let found = statement.query_map([], |row| row.get(0)).unwrap();
    found.collect::<Result<_, _>>().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_open_no_chats() {
    let hello = "manners.introduction = \"Hello, I am {{agent}}.\"";
    let mut flow = FlowBuilder::default()
        .slack(&format!(
            "allow_chats = [\"C0OPS\"]\nallow_people = [\"*\"]\n{hello}"
        ))
        .telegram(&format!(
            "allow_chats = [\"{GROUP}\"]\nallow_people = [\"*\"]\n{hello}"
        ))
        .prepare()
        .await;
    // What was said before is not read back.
    flow.slack.post("#general", "ann", "granite of yesterday");
    flow.start().await;

    // The bot is added: no introduction.
    flow.slack.invite_bot("#elsewhere", "U0ANN");
    flow.telegram.remove_bot(CLOSED, ANN);
    flow.telegram.add_bot(CLOSED, ANN);
    // The chat is renamed, a message deleted, something said, a file shown.
    flow.slack.rename_channel("#general", "granite-room");
    let said = flow.slack.post("#granite-room", "ann", "granite of today");
    flow.slack.delete("#granite-room", &said);
    let file = flow
        .slack
        .add_file(slack_file("granite.txt", "text/plain", b"granite"));
    flow.slack.post_with(vocative_sandbox::slack::UserPost {
        channel: "#granite-room".to_owned(),
        user: "ann".to_owned(),
        text: "granite in a file".to_owned(),
        files: vec![file],
        ..Default::default()
    });
    flow.telegram.send_with(UserMessage {
        chat: CLOSED,
        user: ANN,
        text: "granite".to_owned(),
        ..UserMessage::default()
    });
    // A press of a button, of which only the chat is known.
    flow.slack.raw_event(
        json!({"type": "agent_session_stopped", "channel": "C0GENERAL",
        "user": "U0ANN", "thread_ts": "1763712800.001000", "event_ts": "1763712810.001300"}),
    );
    flow.settle().await;
    assert_eq!(flow.slack_posts("#elsewhere"), []);
    assert_eq!(flow.telegram_posts(CLOSED), [""; 0]);
    assert_eq!(closed_chats_kept(&flow), [""; 0]);

    // Who asks there is told, and nothing else happens.
    flow.slack.say("#granite-room", "ann", "@vocative granite?");
    flow.telegram.say(CLOSED, ANN, "@vocative_bot granite?");
    flow.wait_until("one line is said", || {
        !flow.telegram_posts(CLOSED).is_empty()
    })
    .await;
    flow.settle().await;
    assert_eq!(flow.model.requests().len(), 0);

    // The listed chats and everybody's private chats are served.
    let asked = flow.slack.say("#ops", "ann", "@vocative there?");
    flow.slack_reply("#ops", &asked).await;
    let asked = flow.slack.say("D0ANN", "ann", "and here?");
    flow.slack_post("D0ANN", |post| post.ts > asked).await;
    let asked = flow.telegram.say(GROUP, ANN, "@vocative_bot there?");
    flow.telegram_reply(GROUP, asked).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_in_a_chat_that_is_closed_is_not_answered() {
    let flow = FlowBuilder::default().slack("live = \"off\"").start().await;
    flow.model.hold();
    // Of two questions of a conversation one is at work, the other waits.
    let root = flow.slack.say("#general", "ann", "@vocative first?");
    flow.wait_for_model(1).await;
    flow.slack
        .say_in("#general", "bob", &root, "@vocative second?");
    flow.wait_until_heard().await;
    flow.reconfigure(
        "[channels.slack.acme]",
        "[channels.slack.acme]\nallow_chats = [\"C0OPS\"]",
    );
    flow.reload().await;
    flow.model.release();
    flow.settle().await;
    assert_eq!(
        flow.model.requests().len(),
        1,
        "the second question went to no model"
    );
    assert_eq!(flow.slack_posts("#general").len(), 1);
}
