//! Answers that people see while they are written: what shows meanwhile, and that in the end the answer
//! is there, once, whatever became of what showed.

use std::time::Duration;

use serde_json::Value;
use vocative_sandbox::model::{ModelAct, ModelReply};
use vocative_sandbox::slack::{CallFault, SlackPost};
use vocative_sandbox::telegram::{TelegramFault, TelegramPost, TelegramWorld};
use vocative_sandbox::wire::{WireKind, WirePeer};

use crate::harness::{Flow, FlowBuilder};

/// Ann's direct chat in the loopback Slack.
const DM: &str = "D0ANN";
const ANN: i64 = TelegramWorld::ANN;
const GROUP: i64 = TelegramWorld::SUPERGROUP;

const ANSWER: &str =
    "The deploy is tomorrow at nine, in the usual room, and **everybody** is welcome.";
/// The pieces in which it is written, and the time between two: two and a half seconds in all.
const PIECES: usize = 25;
const EVERY: Duration = Duration::from_millis(100);

/// Answers show at once and as often as the platforms' own paces allow.
const QUICK: &str = "[delivery]\nlive_delay_ms = 0\nlive_interval_ms = 50";

fn written() -> ModelReply {
    ModelReply::text(ANSWER).paced(PIECES, EVERY)
}

fn quick() -> FlowBuilder {
    FlowBuilder::default().config(QUICK)
}

/// What people see of the bot in a Slack chat.
fn seen(flow: &Flow, chat: &str) -> Vec<String> {
    let posts = flow.slack.posts(chat).into_iter();
    let is_ours = |post: &SlackPost| post.user.as_deref() == Some("U0VOCATIVE") && !post.deleted;
    posts.filter(is_ours).map(|post| post.shown()).collect()
}

/// The same in a Telegram chat.
fn seen_there(flow: &Flow, chat: i64) -> Vec<String> {
    let posts = flow.telegram.bot_posts(chat).into_iter();
    posts
        .filter(|post| !post.deleted)
        .map(|post| post.text)
        .collect()
}

/// How often a method was called.
fn calls(flow: &Flow, method: &str) -> usize {
    let records = flow.wire.records();
    let is_call = |record: &&_| matches!(record, vocative_sandbox::wire::WireRecord { kind: WireKind::Request, name, .. } if name == method);
    records.iter().filter(is_call).count()
}

/// The texts that a method was called with.
fn texts(flow: &Flow, peer: WirePeer, method: &str) -> Vec<String> {
    let records = flow.wire.records().into_iter();
    records
        .filter(|it| it.peer == peer && it.kind == WireKind::Request && it.name == method)
        .filter_map(|it| it.body["text"].as_str().map(str::to_owned))
        .collect()
}

/// Waits until a beginning of the answer can be seen in Ann's direct chat.
async fn until_it_shows(flow: &Flow) {
    flow.slack_post(DM, |post| post.shown().ends_with('…'))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_direct_message_is_answered_by_one_message_that_grows() {
    let flow = quick().start().await;
    flow.model.enqueue(written());
    flow.slack.say(DM, "ann", "when is the deploy?");
    until_it_shows(&flow).await;
    flow.settle().await;
    assert_eq!(seen(&flow, DM), [ANSWER]);
    assert_eq!(calls(&flow, "chat.postMessage"), 1);
    let updates = texts(&flow, WirePeer::Slack, "chat.update");
    let (last, before) = updates.split_last().unwrap();
    assert!(before.len() >= 2, "{updates:?}");
    // Each shows more than the one before, and all but the last say that more comes.
    assert!(before.is_sorted_by_key(String::len), "{updates:?}");
    assert!(before.iter().all(|text| text.ends_with('…')), "{updates:?}");
    assert!(!last.ends_with('…'));

    // What people see is what is remembered, and a reply in its thread is a reply to it.
    let conversation = flow.conversation_id(DM, None).await;
    let turns = flow.turns(&conversation).await;
    assert_eq!(turns.len(), 2, "{turns:#?}");
    assert_eq!(turns[1]["text"], ANSWER);
    let ts = flow.slack.posts(DM).pop().unwrap().ts;
    flow.slack.say_in(DM, "ann", &ts, "thank you");
    flow.settle().await;
    let thread = flow.conversation_id(DM, Some(&ts)).await;
    let history = flow.model_history(flow.model.requests().len() - 1);
    assert!(
        history.iter().any(|(_, text)| text.contains("tomorrow")),
        "{thread}: {history:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_gets_one_post_and_no_edit() {
    let flow = quick().start().await;
    flow.model.enqueue(written());
    let root = flow.slack.say("#general", "ann", "@vocative when?");
    let reply = flow.slack_reply("#general", &root).await;
    assert_eq!(reply.shown(), ANSWER);
    flow.model.enqueue(written());
    let asked = flow.telegram.say(GROUP, ANN, "@vocative_bot when?");
    flow.telegram_reply(GROUP, asked).await;
    flow.settle().await;
    let edits = ["chat.update", "editMessageText", "sendMessageDraft"].map(|it| calls(&flow, it));
    assert_eq!(edits, [0; 3]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_is_written_at_once_is_one_post() {
    let flow = FlowBuilder::default().start().await;
    flow.model.enqueue(ModelReply::text(ANSWER));
    flow.slack.say(DM, "ann", "when is the deploy?");
    flow.slack_post(DM, |post| post.shown() == ANSWER).await;
    flow.settle().await;
    assert_eq!(calls(&flow, "chat.update"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_every_edit_is_refused_the_answer_takes_the_place_of_what_showed() {
    let flow = quick().start().await;
    for _ in 0..20 {
        let refusal = CallFault::Error("cant_update_message".to_owned());
        flow.slack.faults().next("chat.update", refusal);
    }
    flow.model.enqueue(written());
    flow.slack.say(DM, "ann", "when is the deploy?");
    until_it_shows(&flow).await;
    flow.settle().await;
    assert_eq!(seen(&flow, DM), [ANSWER]);
    // One live edit, the final one, and nobody insists.
    assert_eq!(calls(&flow, "chat.update"), 2);
    let conversation = flow.conversation_id(DM, None).await;
    let turns = flow.turns(&conversation).await;
    assert_eq!(turns.last().unwrap()["text"], ANSWER);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rate_limit_on_edits_is_kept_to_and_loses_nothing() {
    let flow = quick().start().await;
    flow.slack
        .faults()
        .next("chat.update", CallFault::RateLimited(3));
    flow.model.enqueue(written());
    flow.slack.say(DM, "ann", "when is the deploy?");
    until_it_shows(&flow).await;
    flow.settle().await;
    assert_eq!(seen(&flow, DM), [ANSWER]);
    // The one that was refused, and the final one.
    assert_eq!(calls(&flow, "chat.update"), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_killed_while_it_writes_goes_on_in_the_same_message() {
    let mut flow = quick().start().await;
    flow.model.enqueue(written());
    flow.slack.say(DM, "ann", "when is the deploy?");
    until_it_shows(&flow).await;
    flow.kill().await;
    assert!(seen(&flow, DM)[0].ends_with('…'));
    flow.model.enqueue(written());
    flow.start().await;
    flow.settle().await;
    assert_eq!(seen(&flow, DM), [ANSWER]);
    assert_eq!(calls(&flow, "chat.postMessage"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_showed_of_an_answer_that_is_stopped_is_taken_back() {
    let flow = quick().start().await;
    flow.model
        .enqueue(ModelReply::text(ANSWER).paced(PIECES, Duration::from_secs(1)));
    flow.slack.say(DM, "ann", "when is the deploy?");
    until_it_shows(&flow).await;
    let queue = flow.cli_json(&["queue"]).await;
    let run = queue[0]["run"]["id"].as_str().unwrap_or_else(|| {
        panic!("no run is worked on: {queue}");
    });
    let told = flow.cli(&["queue", "cancel", run]).await;
    assert_eq!(told.status, Some(0), "{told:?}");
    flow.settle().await;
    assert_eq!(seen(&flow, DM), [""; 0]);
    assert_eq!(calls(&flow, "chat.delete"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_whose_message_somebody_deletes_is_posted_anew() {
    let flow = quick()
        .telegram("allow_chats = [\"*\"]\nallow_people = [\"*\"]\nlive = \"on\"")
        .start()
        .await;
    flow.model.enqueue(written());
    flow.slack.say(DM, "ann", "when is the deploy?");
    until_it_shows(&flow).await;
    let begun = flow.slack.posts(DM).pop().unwrap().ts;
    flow.slack.delete(DM, &begun);
    flow.settle().await;
    assert_eq!(seen(&flow, DM), [ANSWER]);
    let conversation = flow.conversation_id(DM, None).await;
    let turns = flow.turns(&conversation).await;
    assert_eq!(turns.last().unwrap()["text"], ANSWER, "{turns:#?}");

    flow.model.enqueue(written());
    let asked = flow.telegram.say(GROUP, ANN, "@vocative_bot when?");
    let is_beginning = |post: &TelegramPost| post.by_bot && post.text.ends_with('…');
    let begun = flow
        .telegram
        .wait_for_post(GROUP, is_beginning, crate::harness::WAIT)
        .await
        .expect("a beginning");
    assert!(flow.telegram.delete(GROUP, begun.message_id));
    flow.settle().await;
    let posts = flow.telegram.bot_posts(GROUP);
    let left: Vec<_> = posts.iter().filter(|post| !post.deleted).collect();
    assert_eq!(left.len(), 1, "{posts:#?}");
    assert!(left[0].text.ends_with("everybody is welcome."));
    assert_eq!(left[0].reply_to, Some(asked));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_of_several_posts_begins_in_the_one_that_grew() {
    let flow = quick().start().await;
    let answer = "**Tell** more of it. ".repeat(900);
    let reply = ModelReply::text(answer.trim_end()).paced(PIECES, EVERY);
    flow.model.enqueue(reply);
    flow.slack.say(DM, "ann", "tell me all");
    until_it_shows(&flow).await;
    let begun = flow.slack.posts(DM).pop().unwrap().ts;
    flow.settle().await;
    let texts = seen(&flow, DM);
    assert_eq!(texts.len(), 2);
    assert_eq!(texts.join(" "), answer.trim_end());
    let first = flow.slack.posts(DM).into_iter().find(|it| it.ts == begun);
    assert_eq!(first.unwrap().shown(), texts[0]);
}

/// What showed of an attempt that broke is replaced: by a shorter answer, and by the notice that there is
/// none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_of_what_an_attempt_that_broke_has_shown() {
    let flow = quick().start().await;
    let broken = || {
        let text = ANSWER.to_owned();
        ModelReply::new(ModelAct::Truncated { text }).paced(PIECES, EVERY)
    };
    flow.model.enqueue(broken());
    flow.model.enqueue(ModelReply::text("Tomorrow."));
    flow.slack.say(DM, "ann", "when is the deploy?");
    until_it_shows(&flow).await;
    flow.settle().await;
    assert_eq!(seen(&flow, DM), ["Tomorrow."]);

    flow.model.enqueue(broken());
    flow.model.enqueue(ModelReply::status(400));
    flow.slack.say(DM, "ann", "and where?");
    until_it_shows(&flow).await;
    flow.settle().await;
    let texts = seen(&flow, DM);
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(texts[1].starts_with("Sorry, I could not"), "{texts:?}");
    assert_eq!(calls(&flow, "chat.postMessage"), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn telegram_shows_drafts_and_then_one_message() {
    let flow = FlowBuilder::default()
        .config("[delivery]\nlive_delay_ms = 0\nlive_interval_ms = 200")
        .start()
        .await;
    flow.model.enqueue(written());
    let asked = flow.telegram.say(ANN, ANN, "when is the deploy?");
    let reply = flow.telegram_reply(ANN, asked).await;
    assert!(reply.text.starts_with("The deploy is tomorrow at nine"));
    flow.settle().await;
    assert_eq!(seen_there(&flow, ANN).len(), 1);
    assert_eq!(flow.telegram.shown_draft(ANN), None);
    let drafts = flow.telegram.drafts(ANN);
    assert!(drafts.len() >= 2, "{drafts:?}");
    assert!(drafts.iter().all(|draft| draft.id == drafts[0].id));
    assert!(drafts.is_sorted_by_key(|draft| draft.text.len()));
    assert_eq!(calls(&flow, "editMessageText"), 0);

    // Where drafts are refused, typing goes on and the answer comes.
    let refusal = TelegramFault::Refused {
        code: 400,
        description: "Bad Request: TEXTDRAFT_PEER_INVALID".to_owned(),
    };
    flow.telegram.faults().always("sendMessageDraft", refusal);
    flow.model.enqueue(written());
    let asked = flow.telegram.say(ANN, ANN, "and where?");
    flow.telegram_reply(ANN, asked).await;
    flow.settle().await;
    assert_eq!(flow.telegram.drafts(ANN).len(), drafts.len());
    assert_eq!(seen_there(&flow, ANN).len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_it_is_set_a_group_sees_a_message_that_is_edited() {
    let flow = quick()
        .telegram("allow_chats = [\"*\"]\nallow_people = [\"*\"]\nlive = \"on\"")
        .start()
        .await;
    flow.model.enqueue(written());
    let asked = flow.telegram.say(GROUP, ANN, "@vocative_bot when?");
    let is_beginning = |post: &TelegramPost| post.by_bot && post.text.ends_with('…');
    let begun = flow
        .telegram
        .wait_for_post(GROUP, is_beginning, crate::harness::WAIT)
        .await
        .expect("a beginning");
    assert_eq!(begun.reply_to, Some(asked));
    flow.settle().await;
    let posts = flow.telegram.bot_posts(GROUP);
    assert_eq!(posts.len(), 1, "{posts:#?}");
    let answer = &posts[0];
    assert_eq!(answer.message_id, begun.message_id);
    assert!(answer.text.ends_with("everybody is welcome."));
    assert_eq!(answer.entities[0]["type"], Value::from("bold"));
}

/// The question goes while its run waits for its next attempt, and the daemon is killed right then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_showed_of_a_question_that_went_is_taken_back_after_a_kill() {
    let mut flow = quick().slack("live = \"on\"").prepare().await;
    let named = "model = \"loopback-small\"";
    flow.reconfigure(named, &format!("{named}\nretries = 0"));
    flow.start().await;
    let text = ANSWER.to_owned();
    let broken = ModelReply::new(ModelAct::Truncated { text }).paced(PIECES, EVERY);
    flow.model.enqueue(broken);
    let asked = flow.slack.say("#general", "ann", "@vocative when?");
    let begins = flow.slack_reply("#general", &asked).await;
    assert!(begins.shown().ends_with('…'), "{begins:?}");
    // Should the next attempt begin before the question went, it does not end.
    flow.model.hold();
    flow.wait_for_status("the attempt broke", |status| status["runs"]["queued"] == 1)
        .await;
    flow.slack.delete("#general", &asked);
    flow.wait_until_heard().await;
    flow.kill().await;
    flow.model.release();
    flow.start().await;
    flow.settle().await;
    assert_eq!(seen(&flow, "#general"), [""; 0]);
}
