//! What is answered and what is only kept: aliases, floods, edits, deletes, duplicates, access.

use std::path::Path;

use vocative_sandbox::model::ModelReply;
use vocative_sandbox::slack::{EventFault, UserPost};
use vocative_sandbox::telegram::{TelegramWorld, UserMessage};

use crate::harness::{Flow, FlowBuilder, said};

const ANN: i64 = TelegramWorld::ANN;
const BOB: i64 = TelegramWorld::BOB;
const GROUP: i64 = TelegramWorld::SUPERGROUP;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alias_picks_one_of_two_agents_and_the_answer_says_which() {
    let flow = FlowBuilder::default()
        .agent("iris", "aliases = [\"rainbow\"]")
        .agent("hermes", "channels = [\"acme\"]")
        .slack("default_agent = \"iris\"")
        .start()
        .await;
    let cases = [
        (
            "rainbow: who are you?",
            "Iris: echo: Ann: rainbow: who are you?",
        ),
        (
            "hermes, who are you?",
            "Hermes: echo: Ann: hermes, who are you?",
        ),
        (
            "@vocative who are you?",
            "Iris: echo: Ann: @Iris who are you?",
        ),
    ];
    for (question, expected) in cases {
        let root = flow.slack.say("#general", "ann", question);
        assert_eq!(flow.slack_reply("#general", &root).await.text, expected);
    }
    flow.slack
        .say("#general", "ann", "a rainbow over hermes street");
    flow.settle().await;
    assert_eq!(flow.slack_posts("#general").len(), cases.len());
    // The prompt of a conversation is the one of the agent that its newest turns concern.
    let view = flow.cli_json(&["prompt", "acme/#general"]).await;
    assert_eq!(view["agent"], "iris");
    // One agent alone needs no name.
    let question = flow.telegram.say(GROUP, ANN, "rainbow: and here?");
    let answer = flow.telegram_reply(GROUP, question).await;
    assert_eq!(answer.text, "echo: Ann: rainbow: and here?");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_an_unaddressed_flood_a_prompt_has_only_what_concerns_the_agent() {
    let flow = Flow::start_default().await;
    let first = flow.telegram.say(GROUP, ANN, "@vocative_bot one?");
    flow.telegram_reply(GROUP, first).await;
    flow.settle().await;
    for n in 0..300 {
        flow.telegram.say(GROUP, BOB, &format!("chatter {n}"));
    }
    let second = flow.telegram.say(GROUP, ANN, "@vocative_bot two?");
    flow.telegram_reply(GROUP, second).await;
    flow.settle().await;
    assert_eq!(
        flow.model_history(1),
        [
            said("user", "Ann: @Vocative one?"),
            said("assistant", "echo: Ann: @Vocative one?"),
            said("user", "Ann: @Vocative two?"),
        ]
    );
    let conversation = flow.conversation_id(&GROUP.to_string(), None).await;
    let turns = flow.turns(&conversation).await;
    let texts: Vec<&str> = turns
        .iter()
        .filter_map(|turn| turn["text"].as_str())
        .collect();
    let chatter: Vec<String> = (0..300).map(|n| format!("chatter {n}")).collect();
    assert_eq!(texts[2..302], chatter);
    assert_eq!(texts.len(), 2 + 300 + 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_that_adds_a_mention_is_answered() {
    let flow = Flow::start_default().await;
    let on_slack = flow.slack.say("#general", "ann", "when is it?");
    let on_telegram = flow.telegram.say(GROUP, ANN, "who is it?");
    flow.settle().await;
    assert_eq!(flow.model.requests().len(), 0);
    let mentioning = flow.slack.typed("@vocative when is it?");
    flow.slack.edit("#general", &on_slack, &mentioning);
    flow.slack_reply("#general", &on_slack).await;
    flow.telegram
        .edit(GROUP, on_telegram, "@vocative_bot who is it?");
    flow.telegram_reply(GROUP, on_telegram).await;
    flow.settle().await;
    // A further edit of an answered question is no question.
    flow.slack.edit(
        "#general",
        &on_slack,
        &flow.slack.typed("@vocative when was it?"),
    );
    flow.settle().await;
    assert_eq!(flow.slack_posts("#general").len(), 1);
    assert_eq!(flow.telegram_posts(GROUP).len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_of_a_waiting_question_changes_what_is_answered() {
    let flow = Flow::start_default().await;
    flow.model.hold();
    flow.slack.say("D0ANN", "ann", "one?");
    flow.wait_for_model(1).await;
    let second = flow.slack.say("D0ANN", "ann", "tow?");
    flow.wait_until_heard().await;
    flow.slack.edit("D0ANN", &second, "two?");
    flow.wait_until_heard().await;
    flow.model.release();
    flow.slack_post("D0ANN", |post| post.text.contains("two?"))
        .await;
    flow.settle().await;
    let texts = ["echo: Ann: one?", "echo: Ann: two?"];
    assert_eq!(
        flow.slack_posts("D0ANN"),
        texts.map(|text| (None, text.to_owned()))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_of_a_waiting_telegram_question_changes_what_is_answered() {
    let flow = Flow::start_default().await;
    flow.model.hold();
    flow.telegram.say(ANN, ANN, "one?");
    flow.wait_for_model(1).await;
    let second = flow.telegram.say(ANN, ANN, "tow?");
    flow.wait_until_heard().await;
    flow.telegram.edit(ANN, second, "two?");
    flow.wait_until_heard().await;
    flow.model.release();
    flow.telegram_reply(ANN, second).await;
    flow.settle().await;
    let texts = ["echo: Ann: one?", "echo: Ann: two?"];
    assert_eq!(flow.telegram_posts(ANN), texts);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_edited_while_the_model_works_is_answered_once_and_kept_as_edited() {
    let flow = Flow::start_default().await;
    flow.model.hold();
    let question = flow.slack.say("D0ANN", "ann", "tow?");
    flow.wait_for_model(1).await;
    flow.slack.edit("D0ANN", &question, "two?");
    flow.wait_until_heard().await;
    flow.model.release();
    flow.settle().await;
    assert_eq!(flow.slack_posts("D0ANN").len(), 1);
    flow.slack.say("D0ANN", "ann", "three?");
    flow.wait_for_model(2).await;
    assert_eq!(
        flow.model_history(1),
        [
            said("user", "Ann: two?"),
            said("assistant", "echo: Ann: tow?"),
            said("user", "Ann: three?"),
        ]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_question_is_not_answered() {
    let flow = Flow::start_default().await;
    flow.model.hold();
    let at_the_model = flow.slack.say("D0ANN", "ann", "one?");
    flow.wait_for_model(1).await;
    let waiting = flow.slack.say("D0ANN", "ann", "two?");
    flow.wait_until_heard().await;
    flow.slack.delete("D0ANN", &waiting);
    flow.slack.delete("D0ANN", &at_the_model);
    flow.wait_until_heard().await;
    flow.model.release();
    flow.settle().await;
    flow.slack.say("D0ANN", "ann", "three?");
    flow.slack_post("D0ANN", |_| true).await;
    flow.settle().await;
    assert_eq!(
        flow.slack_posts("D0ANN"),
        [(None, "echo: Ann: three?".to_owned())]
    );
    let prompts = flow.model.requests().len();
    assert_eq!(
        flow.model_history(prompts - 1),
        [said("user", "Ann: three?")]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_delivered_five_times_is_one_turn_one_run_and_one_answer() {
    let flow = Flow::start_default().await;
    // A mention is two events, `message` and `app_mention`.
    flow.slack
        .faults()
        .next_event(EventFault::DuplicateEvent(4));
    flow.slack.faults().next_event(EventFault::Duplicate(4));
    let question = flow.slack.say("#general", "ann", "@vocative once?");
    let on_telegram = flow.telegram.say(GROUP, ANN, "@vocative_bot once?");
    flow.slack_reply("#general", &question).await;
    flow.telegram_reply(GROUP, on_telegram).await;
    for _ in 0..4 {
        let update = flow
            .telegram
            .posts(GROUP)
            .into_iter()
            .find(|post| post.message_id == on_telegram);
        flow.telegram
            .raw_update(serde_json::json!({"message": update.unwrap().wire}));
    }
    flow.settle().await;
    let thread = flow.conversation_id("C0GENERAL", Some(&question)).await;
    let status = flow.status().await;
    assert_eq!(status["store"]["turns"], 4, "{status}");
    assert_eq!(status["intake"]["runs_queued"], 2, "{status}");
    assert_eq!(
        flow.turns(&thread).await.len(),
        1,
        "the answer lives in the thread"
    );
    assert_eq!(flow.slack_posts("#general").len(), 1);
    assert_eq!(flow.telegram_posts(GROUP).len(), 1);
    assert_eq!(flow.model.requests().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_telegram_chat_is_told_once_and_nothing_of_it_is_stored() {
    let flow = FlowBuilder::default()
        .telegram(&format!("allow_chats = [\"{GROUP}\"]"))
        .start()
        .await;
    let unknown = TelegramWorld::GROUP;
    flow.telegram.say(unknown, ANN, "chatter about quartzite");
    flow.telegram.say(unknown, ANN, "@vocative_bot quartzite?");
    flow.telegram
        .say(unknown, BOB, "@vocative_bot quartzite again?");
    flow.settle().await;
    flow.wait_until("one polite line is posted", || {
        !flow.telegram_posts(unknown).is_empty()
    })
    .await;
    // The allowed chat is served meanwhile, and later than all of the above.
    let question = flow.telegram.say(GROUP, ANN, "@vocative_bot served?");
    flow.telegram_reply(GROUP, question).await;
    flow.settle().await;
    assert_eq!(flow.telegram_posts(unknown).len(), 1);
    assert_eq!(flow.model.requests().len(), 1);
    let line = flow
        .log()
        .lines()
        .find(|line| line.contains("allow_chats"))
        .map(str::to_owned);
    let line = line.expect("the log names the setting");
    assert!(line.contains(&unknown.to_string()), "{line}");
    for path in files(&flow.directory().join("data")) {
        let bytes = std::fs::read(&path).unwrap();
        let is_there = bytes.windows(9).any(|window| window == b"quartzite");
        assert!(!is_there, "{} has text of the unknown chat", path.display());
    }
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.is_file()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_bot_is_heard_and_not_answered() {
    let flow = Flow::start_default().await;
    flow.slack.post_with(UserPost {
        channel: "#general".to_owned(),
        user: "U0OTHERBOT".to_owned(),
        bot_id: Some("B0OTHER".to_owned()),
        text: flow.slack.typed("@vocative are you a bot?"),
        ..UserPost::default()
    });
    flow.settle().await;
    let conversation = flow.conversation_id("C0GENERAL", None).await;
    assert_eq!(flow.turns(&conversation).await.len(), 1);
    assert_eq!(flow.slack_posts("#general").len(), 0);
    assert_eq!(flow.model.requests().len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_question_is_stored_and_not_answered() {
    let flow = Flow::start_default().await;
    flow.telegram.send_with(UserMessage {
        chat: GROUP,
        user: ANN,
        text: "@vocative_bot still there?".to_owned(),
        date_s: Some(chrono::Utc::now().timestamp() - 2 * 3_600),
        ..UserMessage::default()
    });
    flow.settle().await;
    let status = flow.status().await;
    assert_eq!(status["intake"]["too_old"], 1, "{status}");
    assert_eq!(flow.model.requests().len(), 0);
    let conversation = flow.conversation_id(&GROUP.to_string(), None).await;
    assert_eq!(flow.turns(&conversation).await.len(), 1);
    // It is part of the room all the same.
    flow.model.enqueue(ModelReply::text("Yes."));
    let question = flow.telegram.say(GROUP, ANN, "@vocative_bot now?");
    flow.telegram_reply(GROUP, question).await;
    assert_eq!(
        flow.model_history(0),
        [
            said("user", "Ann: @Vocative still there?"),
            said("user", "Ann: @Vocative now?"),
        ]
    );
}
