//! Answers that grow by Slack's own streaming: they show in a thread while they are written, and are
//! there in the end, once, whatever became of the stream.

use std::time::Duration;

use vocative_sandbox::model::ModelReply;
use vocative_sandbox::slack::{CallFault, SlackPost};
use vocative_sandbox::wire::WireKind;

use crate::harness::{Flow, FlowBuilder};

const ANSWER: &str =
    "The deploy is tomorrow at nine, in the usual room, and **everybody** is welcome.";

fn written() -> ModelReply {
    ModelReply::text(ANSWER).paced(25, Duration::from_millis(100))
}

fn streaming() -> FlowBuilder {
    FlowBuilder::default()
        .slack("allow_chats = [\"*\"]\nallow_people = [\"*\"]\nlive = \"stream\"")
        .config(
            "[delivery]\nlive_delay_ms = 0\nlive_interval_ms = 50\nfirst_look_s = 1\n\
             visibility_delay_s = 1\nlook_back_s = 2",
        )
}

/// What the bot has said in a thread, as it stands.
fn said(flow: &Flow, root: &str) -> Vec<SlackPost> {
    let posts = flow.slack.posts("#general").into_iter();
    posts
        .filter(|it| it.user.as_deref() == Some("U0VOCATIVE") && !it.deleted)
        .filter(|it| it.thread_ts.as_deref() == Some(root))
        .collect()
}

/// The answer is there, once: a message that still takes words at its end can't be edited to it.
fn assert_answered(flow: &Flow, root: &str) {
    let texts: Vec<String> = said(flow, root).iter().map(SlackPost::shown).collect();
    assert_eq!(texts, [ANSWER]);
}

fn calls(flow: &Flow, method: &str) -> usize {
    let records = flow.wire.records().into_iter();
    let is_call = |it: &_| matches!(it, vocative_sandbox::wire::WireRecord { kind: WireKind::Request, name, .. } if name == method);
    records.filter(is_call).count()
}

/// Waits until so many characters of a stream can be seen.
async fn until_it_grows(flow: &Flow, chars: usize) {
    flow.slack_post("#general", |post| {
        post.stream.is_some() && post.text.chars().count() >= chars
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_grows_in_its_thread_and_is_the_answer_in_the_end() {
    let flow = streaming().start().await;
    flow.model.enqueue(written());
    let root = flow
        .slack
        .say("#general", "ann", "@vocative when is the deploy?");
    until_it_grows(&flow, 20).await;
    flow.settle().await;
    assert_answered(&flow, &root);
    let post = said(&flow, &root).remove(0);
    let stream = post.stream.unwrap();
    assert_eq!(stream.recipient.as_deref(), Some("U0ANN"));
    assert!(calls(&flow, "chat.appendStream") >= 2);
    let others = ["chat.postMessage", "chat.startStream", "chat.stopStream"];
    assert_eq!(others.map(|it| calls(&flow, it)), [0, 1, 1]);

    // What people see is what is remembered.
    let conversation = flow.conversation_id("C0GENERAL", Some(&root)).await;
    let turns = flow.turns(&conversation).await;
    assert_eq!(turns.last().unwrap()["text"], ANSWER);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_no_stream_may_start_a_post_is_edited() {
    let flow = streaming().start().await;
    let refusal = CallFault::Error("channel_type_not_supported".to_owned());
    flow.slack.faults().next("chat.startStream", refusal);
    flow.model.enqueue(written());
    let root = flow.slack.say("#general", "ann", "@vocative when?");
    flow.slack_post("#general", |post| post.shown().ends_with('…'))
        .await;
    flow.settle().await;
    assert_answered(&flow, &root);
    assert_eq!(calls(&flow, "chat.postMessage"), 1);
    assert!(calls(&flow, "chat.update") >= 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_slack_ends_is_edited_on() {
    let flow = streaming().start().await;
    flow.slack
        .faults()
        .set_knobs(|knobs| knobs.stream_life_ms = 700);
    flow.model.enqueue(written());
    let root = flow.slack.say("#general", "ann", "@vocative when?");
    flow.slack_post("#general", |post| {
        post.stream.is_some() && post.shown().ends_with('…')
    })
    .await;
    flow.settle().await;
    assert_answered(&flow, &root);
    assert_eq!(calls(&flow, "chat.postMessage"), 0);
}

/// The person who pressed "stop" is not shown more of it by edits; the answer is made all the same, unless
/// Slack tells of the stop (`agent_session_stopped`).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_a_person_stops_grows_no_more() {
    let flow = streaming().start().await;
    let stopped = CallFault::Error("stopped_by_user".to_owned());
    flow.slack.faults().next("chat.appendStream", stopped);
    flow.model.enqueue(written());
    let root = flow.slack.say("#general", "ann", "@vocative when?");
    flow.settle().await;
    assert_answered(&flow, &root);
    assert_eq!(calls(&flow, "chat.appendStream"), 1);
    // The answer: refused as long as the stream is open, then made.
    assert_eq!(calls(&flow, "chat.update"), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn words_of_which_nobody_knows_whether_they_came_are_not_added_twice() {
    let flow = streaming().start().await;
    flow.slack
        .faults()
        .next("chat.appendStream", CallFault::ResetAfter);
    flow.model.enqueue(written());
    let root = flow.slack.say("#general", "ann", "@vocative when?");
    flow.slack_post("#general", |post| {
        post.stream.is_some() && post.shown().ends_with('…')
    })
    .await;
    flow.settle().await;
    assert_answered(&flow, &root);
    assert_eq!(calls(&flow, "chat.appendStream"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_killed_in_mid_stream_goes_on_in_the_same_message() {
    let mut flow = streaming().start().await;
    flow.model.enqueue(written());
    let root = flow.slack.say("#general", "ann", "@vocative when?");
    until_it_grows(&flow, 20).await;
    flow.kill().await;
    let stream = said(&flow, &root).remove(0).stream.unwrap();
    assert!(!stream.is_stopped);
    flow.model.enqueue(written());
    flow.start().await;
    flow.settle().await;
    assert_answered(&flow, &root);
    assert_eq!(calls(&flow, "chat.startStream"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_killed_before_it_knows_of_its_stream_finds_it() {
    let mut flow = streaming().start().await;
    flow.slack
        .faults()
        .next("chat.startStream", CallFault::LoseResponse);
    flow.model.enqueue(written());
    let root = flow.slack.say("#general", "ann", "@vocative when?");
    flow.slack_post("#general", |post| post.stream.is_some())
        .await;
    flow.kill().await;
    flow.model.enqueue(written());
    flow.start().await;
    flow.settle().await;
    assert_answered(&flow, &root);
    assert_eq!(calls(&flow, "chat.startStream"), 1);
    assert_eq!(calls(&flow, "chat.postMessage"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_streamed_of_an_answer_that_is_stopped_is_taken_back() {
    let flow = streaming().start().await;
    flow.model
        .enqueue(ModelReply::text(ANSWER).paced(25, Duration::from_secs(1)));
    let root = flow.slack.say("#general", "ann", "@vocative when?");
    until_it_grows(&flow, 3).await;
    let queue = flow.cli_json(&["queue"]).await;
    let run = queue[0]["run"]["id"].as_str().unwrap();
    let told = flow.cli(&["queue", "cancel", run]).await;
    assert_eq!(told.status, Some(0), "{told:?}");
    flow.settle().await;
    assert_eq!(said(&flow, &root), []);
}

/// The person of a stream presses the button beside it.
fn press_stop(flow: &Flow, root: &str) {
    let stream = said(flow, root).remove(0);
    flow.slack.press_stop("C0GENERAL", "U0ANN", &stream.ts);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stop_button_beside_a_stream_ends_the_answer_and_takes_it_back() {
    let flow = streaming().start().await;
    let stopped = "agent_session_stopped".to_owned();
    flow.slack.change_world(|world| world.events.push(stopped));
    flow.model
        .enqueue(ModelReply::text(ANSWER).paced(25, Duration::from_secs(1)));
    let root = flow.slack.say("#general", "ann", "@vocative when?");
    until_it_grows(&flow, 3).await;
    press_stop(&flow, &root);
    flow.settle().await;
    assert_eq!(said(&flow, &root), []);

    // The thread goes on: the next question is answered as any other.
    flow.model.enqueue(written());
    flow.slack.say_in("#general", "ann", &root, "and now?");
    flow.slack_post("#general", |post| post.shown() == ANSWER)
        .await;
    flow.settle().await;
    assert_answered(&flow, &root);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_whose_stop_nobody_tells_of_still_ends_with_the_whole_answer() {
    let flow = streaming().start().await;
    flow.model.enqueue(written());
    let root = flow.slack.say("#general", "ann", "@vocative when?");
    until_it_grows(&flow, 3).await;
    press_stop(&flow, &root);
    flow.settle().await;
    assert_answered(&flow, &root);
    assert_eq!(calls(&flow, "chat.postMessage"), 0);
}
