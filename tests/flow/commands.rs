//! Commands and buttons where they are easily taken for something else: in threads, in what was passed
//! on, in rooms that the bot is not in.

use serde_json::json;
use vocative_sandbox::slack::SlackPost;
use vocative_sandbox::telegram::{TelegramForward, TelegramWorld, UserMessage};

use crate::harness::{Flow, FlowBuilder, said};

const ANN: i64 = TelegramWorld::ANN;
const GROUP: i64 = TelegramWorld::SUPERGROUP;
const OPEN: &str = "allow_chats = [\"*\"]\nallow_people = [\"*\"]";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_slack_thread_a_command_stands_behind_a_mention() {
    let flow = Flow::start_default().await;
    let root = flow.slack.say("#general", "ann", "@vocative zebra?");
    flow.slack_reply("#general", &root).await;
    flow.settle().await;
    flow.slack.say_in("#general", "ann", &root, "@vocative new");
    flow.slack_post("#general", |post| post.shown().contains("A fresh start"))
        .await;
    let more = flow
        .slack
        .say_in("#general", "ann", &root, "@vocative new ideas?");
    flow.wait_for_model(2).await;
    flow.settle().await;
    let read = flow.model_history(1);
    assert_eq!(read, [said("user", "Ann: @Vocative new ideas?")], "{more}");
    flow.slack
        .say_in("#general", "ann", &root, "@vocative context");
    flow.wait_until("the context is shown", || {
        !flow.slack.ephemerals().is_empty()
    })
    .await;
    flow.settle().await;
    // It is shown in the thread, to whoever asked.
    let shown = flow.slack.ephemerals().remove(0);
    assert_eq!(
        (shown.user.as_str(), shown.thread_ts.as_deref()),
        ("U0ANN", Some(root.as_str()))
    );
    let text = format!("{}{:?}", shown.text, shown.blocks);
    assert!(
        text.contains("new ideas?") && !text.contains("zebra"),
        "{text}"
    );
    assert_eq!(flow.model.requests().len(), 2);
    let posts = flow.slack_posts("#general");
    assert!(
        posts
            .iter()
            .all(|(thread, _)| thread.as_ref() == Some(&root)),
        "{posts:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stop_button_of_the_agent_surface_ends_what_its_person_asked_in_its_thread() {
    let flow = FlowBuilder::default()
        .slack("agent_view = true\nlive = \"off\"")
        .start()
        .await;
    flow.model.hold();
    let one = flow.slack.say("D0ANN", "ann", "one?");
    let two = flow.slack.say("D0ANN", "ann", "two?");
    flow.wait_for_model(2).await;
    let press = |at: &str| {
        flow.slack.raw_event(json!({
            "type": "agent_session_stopped", "channel": "D0ANN", "user": "U0ANN",
            "thread_ts": one, "event_ts": at,
        }));
    };
    press("1763712810.001300");
    press("1763712810.001300");
    let cancelled = || async { flow.status().await["runs"]["leased"] == 1 };
    for _ in 0..600 {
        if cancelled().await {
            break;
        }
    }
    flow.model.release();
    let answered = |post: &SlackPost| post.thread_ts.as_ref() == Some(&two);
    flow.slack_post("D0ANN", answered).await;
    flow.settle().await;
    let posts = flow.slack_posts("D0ANN");
    assert_eq!(posts, [(Some(two), "echo: Ann: two?".to_owned())]);
    assert_eq!(flow.slack.ephemerals(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_room_that_the_bot_is_not_in_nothing_waits_to_be_said() {
    let flow = Flow::start_default().await;
    for text in ["new", "stop"] {
        flow.slack
            .slash_command("#elsewhere", "U0ANN", "/vocative", text);
    }
    for text in ["A fresh start", "Stopped."] {
        flow.slack_post("D0ANN", |post| post.shown().contains(text))
            .await;
    }
    flow.settle().await;
    flow.slack.invite_bot("#elsewhere", "U0ANN");
    flow.settle().await;
    assert_eq!(flow.slack_posts("#elsewhere"), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_passed_on_or_edited_gives_no_command() {
    let flow = FlowBuilder::default().telegram(OPEN).start().await;
    let typed = |text: &str| UserMessage {
        chat: GROUP,
        user: ANN,
        text: text.to_owned(),
        ..UserMessage::default()
    };
    flow.telegram.send_with(UserMessage {
        forward: Some(TelegramForward::User(TelegramWorld::BOB)),
        ..typed("/forget me yes")
    });
    flow.telegram.send_with(UserMessage {
        via_bot: Some(TelegramWorld::OTHER_BOT),
        ..typed("/new")
    });
    flow.telegram.send_with(UserMessage {
        entities: Some(json!([
            {"type": "blockquote", "offset": 0, "length": 4},
            {"type": "bot_command", "offset": 0, "length": 4}
        ])),
        ..typed("/new it said")
    });
    let hello = flow.telegram.say(GROUP, ANN, "hello");
    flow.wait_until_heard().await;
    flow.telegram.edit(GROUP, hello, "/forget me yes");
    flow.telegram.say(GROUP, ANN, "/help@other_bot");
    flow.settle().await;
    assert_eq!(flow.telegram_posts(GROUP), [""; 0]);
    let id = flow.conversation_id(&GROUP.to_string(), None).await;
    assert_eq!(flow.turns(&id).await.len(), 5);
    // Told twice, and written large, one is one.
    let new = flow.telegram.say(GROUP, ANN, "/NEW@vocative_bot");
    flow.telegram_reply(GROUP, new).await;
    flow.telegram.duplicate_update();
    flow.settle().await;
    assert_eq!(flow.telegram_posts(GROUP).len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promotion_is_no_joining_and_a_channel_of_readers_no_room() {
    let hello = "manners.introduction = \"Hello.\"";
    let flow = FlowBuilder::default()
        .telegram(&format!("{OPEN}\n{hello}"))
        .start()
        .await;
    flow.telegram.promote_bot(GROUP, ANN);
    flow.telegram.remove_bot(TelegramWorld::CHANNEL, ANN);
    flow.wait_until_heard().await;
    flow.telegram.promote_bot(TelegramWorld::CHANNEL, ANN);
    flow.settle().await;
    assert_eq!(flow.telegram_posts(GROUP), [""; 0]);
    assert_eq!(flow.telegram_posts(TelegramWorld::CHANNEL), [""; 0]);
}
