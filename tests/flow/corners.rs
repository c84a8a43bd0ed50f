//! Corners of the platforms: discussion groups, people behind a chat, topics and threads that close or
//! go away, other bots.

use vocative_sandbox::slack::UserPost;
use vocative_sandbox::telegram::{TelegramFault, TelegramForward, TelegramWorld, UserMessage};

use crate::harness::{Flow, FlowBuilder, said};

const ANN: i64 = TelegramWorld::ANN;
const BOB: i64 = TelegramWorld::BOB;
const GROUP: i64 = TelegramWorld::SUPERGROUP;
const FORUM: i64 = TelegramWorld::FORUM;
const OPEN: &str = "allow_chats = [\"*\"]\nallow_people = [\"*\"]";

async fn start() -> Flow {
    FlowBuilder::default().telegram(OPEN).start().await
}

fn in_group(text: &str) -> UserMessage {
    UserMessage {
        chat: GROUP,
        user: ANN,
        text: text.to_owned(),
        ..UserMessage::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_discussion_group_a_comment_is_answered_and_the_post_above_it_is_not() {
    let flow = start().await;
    let post = flow.telegram.send_with(UserMessage {
        automatic_forward_of: Some(TelegramWorld::CHANNEL),
        ..in_group("@vocative_bot vocative, what is new? /new")
    });
    flow.telegram.send_with(UserMessage {
        automatic_forward_of: Some(TelegramWorld::CHANNEL),
        ..in_group("/new@vocative_bot")
    });
    flow.settle().await;
    assert_eq!(flow.telegram_posts(GROUP), [""; 0]);
    // A comment lies in a thread that is no topic.
    let mut comment = UserMessage {
        reply_to: Some(post),
        ..in_group("@vocative_bot is that so?")
    };
    comment
        .extra
        .insert("message_thread_id".to_owned(), post.into());
    let comment = flow.telegram.send_with(comment);
    let answer = flow.telegram_reply(GROUP, comment).await;
    assert_eq!((answer.thread, answer.reply_to), (None, Some(comment)));
    flow.settle().await;
    assert_eq!(flow.telegram_posts(GROUP).len(), 1);
    let id = flow.conversation_id(&GROUP.to_string(), None).await;
    assert_eq!(flow.turns(&id).await.len(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_writes_as_the_group_or_a_channel_is_answered_and_may_stop() {
    let flow = start().await;
    let asked = [
        UserMessage {
            anonymous_admin: true,
            ..in_group("@vocative_bot one?")
        },
        UserMessage {
            sender_chat: Some(TelegramWorld::CHANNEL),
            ..in_group("@vocative_bot two?")
        },
    ];
    for message in asked {
        let id = flow.telegram.send_with(message);
        flow.telegram_reply(GROUP, id).await;
    }
    flow.settle().await;
    flow.model.hold();
    let anonymous = |text: &str| UserMessage {
        anonymous_admin: true,
        ..in_group(text)
    };
    flow.telegram.send_with(anonymous("@vocative_bot three?"));
    flow.wait_for_model(3).await;
    let stop = flow.telegram.send_with(anonymous("/stop"));
    let told = flow.telegram_reply(GROUP, stop).await;
    assert!(told.text.starts_with("Stopped."), "{}", told.text);
    flow.model.release();
    let forget = flow.telegram.send_with(anonymous("/forget me"));
    let told = flow.telegram_reply(GROUP, forget).await;
    assert!(told.text.contains("Write as yourself"), "{}", told.text);
    flow.settle().await;
    assert_eq!(flow.telegram_posts(GROUP).len(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_that_is_closed_meanwhile_keeps_no_other_topic_waiting() {
    let flow = start().await;
    let (closed, other) = (TelegramWorld::TOPIC_INCIDENT, TelegramWorld::TOPIC_DEPLOYS);
    flow.model.hold();
    flow.telegram
        .say_in_topic(FORUM, closed, ANN, "@vocative_bot one?");
    flow.wait_for_model(1).await;
    flow.telegram.close_topic(FORUM, ANN, closed);
    flow.model.release();
    flow.wait_for_status("the answer is given up", |status| {
        status["posts"]["dead"] == 1
    })
    .await;
    let asked = flow
        .telegram
        .say_in_topic(FORUM, other, BOB, "@vocative_bot two?");
    let answer = flow.telegram_reply(FORUM, asked).await;
    assert_eq!(answer.thread, Some(other));
    let general = flow.telegram.say(FORUM, BOB, "@vocative_bot three?");
    let answer = flow.telegram_reply(FORUM, general).await;
    assert_eq!(answer.thread, None);
    flow.settle().await;
    assert_eq!(flow.telegram_posts(FORUM).len(), 2);
    // The lost answer is there to be seen, and to be sent once the topic is open again.
    let dead = flow.cli_json(&["dead", "list"]).await;
    assert!(dead.to_string().contains("TOPIC_CLOSED"), "{dead}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_to_a_topic_that_is_gone_comes_into_the_general_one_once() {
    let flow = start().await;
    let gone = ["message thread not found", "TOPIC_DELETED"];
    for (n, why) in gone.into_iter().enumerate() {
        flow.model.hold();
        let topic = TelegramWorld::TOPIC_INCIDENT;
        flow.telegram
            .say_in_topic(FORUM, topic, ANN, "@vocative_bot one?");
        flow.wait_for_model(n + 1).await;
        let refusal = TelegramFault::Refused {
            code: 400,
            description: format!("Bad Request: {why}"),
        };
        flow.telegram.faults().next("sendMessage", refusal);
        flow.model.release();
        flow.settle().await;
        let posts = flow.telegram.bot_posts(FORUM);
        assert_eq!(posts.len(), n + 1, "{why}: {posts:?}");
        assert_eq!(posts[n].thread, None, "{why}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_that_also_shows_in_the_channel_is_one_turn_of_its_thread() {
    let flow = start().await;
    let root = flow.slack.say("#general", "ann", "@vocative one?");
    flow.slack_reply("#general", &root).await;
    flow.settle().await;
    flow.slack.post_with(UserPost {
        channel: "#general".to_owned(),
        user: "ann".to_owned(),
        text: "and two?".to_owned(),
        thread_ts: Some(root.clone()),
        broadcast: true,
        ..UserPost::default()
    });
    flow.wait_for_model(2).await;
    flow.settle().await;
    let posts = flow.slack_posts("#general");
    assert_eq!(posts.len(), 2, "{posts:?}");
    let in_thread = posts
        .iter()
        .all(|(thread, _)| thread.as_ref() == Some(&root));
    assert!(in_thread, "{posts:?}");
    // Ours never shows in the channel, too.
    let ours = flow.slack.posts("#general");
    let is_broadcast = |it: &&vocative_sandbox::slack::SlackPost| it.subtype.is_some();
    let of_bot = ours
        .iter()
        .filter(|it| it.user.as_deref() == Some("U0VOCATIVE"));
    assert_eq!(of_bot.filter(is_broadcast).count(), 0);
    let room = flow.conversation_id("C0GENERAL", None).await;
    assert_eq!(flow.turns(&room).await.len(), 1);
    let thread = flow.conversation_id("C0GENERAL", Some(&root)).await;
    assert_eq!(flow.turns(&thread).await.len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_thread_whose_first_message_is_gone_the_talk_goes_on() {
    let flow = start().await;
    let root = flow.slack.say("#general", "ann", "@vocative zebra?");
    flow.slack_reply("#general", &root).await;
    flow.settle().await;
    flow.slack.delete("#general", &root);
    flow.settle().await;
    flow.slack
        .say_in("#general", "ann", &root, "@vocative and now?");
    flow.wait_for_model(2).await;
    flow.settle().await;
    let posts = flow.slack_posts("#general");
    assert_eq!(posts.len(), 2, "{posts:?}");
    assert_eq!(posts[1].0.as_ref(), Some(&root), "{posts:?}");
    let read = flow.model_history(1);
    let gone = said("user", "Ann: @Vocative zebra?");
    assert!(!read.contains(&gone), "{read:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_asked_before_a_channel_is_archived_is_answered_when_it_is_back() {
    let flow = start().await;
    flow.model.hold();
    let root = flow.slack.say("#general", "ann", "@vocative one?");
    flow.wait_for_model(1).await;
    flow.slack.archive_channel("#general", "ann", true);
    flow.wait_until_heard().await;
    flow.model.release();
    let direct = flow.slack.say("D0ANN", "ann", "two?");
    flow.slack_post("D0ANN", |post| post.shown().contains("two?"))
        .await;
    assert_eq!(flow.slack_posts("#general"), [], "{direct}");
    flow.slack.archive_channel("#general", "ann", false);
    flow.slack_reply("#general", &root).await;
    flow.settle().await;
    assert_eq!(flow.slack_posts("#general").len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_bots_in_a_telegram_group_come_to_rest() {
    let other = TelegramWorld::OTHER_BOT;
    let settings = format!("{OPEN}\nallow_bots = [\"{other}\"]\nmanners.bot_exchanges_max = 2");
    let flow = FlowBuilder::default().telegram(&settings).start().await;
    let bot_says = |n: u32| {
        flow.telegram.raw_update(serde_json::json!({"message": {
            "message_id": 90_000 + n, "date": now_s(),
            "from": {"id": other, "is_bot": true, "first_name": "Other", "username": "other_bot"},
            "chat": {"id": GROUP, "title": "Platform team", "type": "supergroup"},
            "text": format!("@vocative_bot {n}?"),
            "entities": [{"type": "mention", "offset": 0, "length": 13}],
        }}))
    };
    for n in 0..5 {
        bot_says(n);
        flow.settle().await;
    }
    let posts = flow.telegram_posts(GROUP);
    let resting = |posts: &[String]| posts.iter().filter(|it| it.contains("in a row")).count();
    assert_eq!((posts.len(), resting(&posts)), (3, 1), "{posts:?}");
    flow.telegram.say(GROUP, ANN, "go on");
    bot_says(9);
    flow.settle().await;
    let posts = flow.telegram_posts(GROUP);
    assert_eq!((posts.len(), resting(&posts)), (4, 1), "{posts:?}");
}

fn now_s() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_are_read_however_they_are_typed() {
    let flow = start().await;
    let told = |count: usize| {
        let ephemerals = flow.slack.ephemerals();
        (ephemerals.len() >= count).then(|| {
            let newest = &ephemerals[count - 1];
            format!("{} {:?}", newest.text, newest.blocks)
        })
    };
    let table = [
        ("  HELP  ", "I understand"),
        ("/help", "I understand"),
        ("Status!", "of this chat are kept"),
        ("help\u{a0}me", "I understand"),
        ("🙂", "no such command"),
        ("помощь", "no such command"),
        ("новое", "no such command"),
        ("context nobody", "Nobody here has that name"),
    ];
    for (n, (typed, expected)) in table.into_iter().enumerate() {
        flow.slack
            .slash_command("#general", "U0ANN", "/vocative", typed);
        flow.wait_until(typed, || told(n + 1).is_some()).await;
        let text = told(n + 1).unwrap();
        assert!(text.contains(expected), "{typed}: {text}");
    }
    // A caption gives a command, too; one for another bot, or one that is passed on, does not.
    let photo = || UserMessage {
        media: Some(vocative_sandbox::telegram::TelegramMedia::Photo),
        ..in_group("/new@vocative_bot")
    };
    let captioned = flow.telegram.send_with(photo());
    let answer = flow.telegram_reply(GROUP, captioned).await;
    assert!(answer.text.starts_with("A fresh start"), "{}", answer.text);
    flow.telegram.send_with(UserMessage {
        forward: Some(TelegramForward::User(BOB)),
        ..photo()
    });
    flow.telegram.say(GROUP, ANN, "/new@other_bot");
    let stop = flow.telegram.say(GROUP, ANN, "/stop@vocative_bot please");
    let answer = flow.telegram_reply(GROUP, stop).await;
    assert!(answer.text.starts_with("Stopped."), "{}", answer.text);
    flow.settle().await;
    assert_eq!(flow.telegram_posts(GROUP).len(), 2);
    assert_eq!(flow.model.requests().len(), 0);
}
