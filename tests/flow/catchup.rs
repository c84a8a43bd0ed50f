//! What was said while nobody listened: read back, captured once, and answered while it is young.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::Connection;
use serde_json::Value;
use vocative_sandbox::model::ModelReply;
use vocative_sandbox::slack::{CallFault, ChannelKind, EventFault, SlackConversation};
use vocative_sandbox::wire::WireKind;

use crate::harness::{Flow, FlowBuilder};

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 86_400_000;

/// The Slack channel of a status.
pub(crate) fn acme(status: &Value) -> &Value {
    let channels = status["channels"].as_array().unwrap();
    channels
        .iter()
        .find(|channel| channel["name"] == "acme")
        .unwrap()
}

/// Waits until nothing is left to read back.
///
/// After a refusal history is asked for more slowly, so it may take longer than other states.
pub(crate) async fn wait_until_read(flow: &Flow) -> Value {
    let deadline = tokio::time::Instant::now() + 4 * crate::harness::WAIT;
    loop {
        let status = flow.status().await;
        let view = acme(&status);
        if view["unread_from_ms"].is_null() && view["backfills"] == 0 {
            return status;
        }
        let is_late = tokio::time::Instant::now() > deadline;
        assert!(!is_late, "not everything is read back in time: {status}");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

/// Starts a daemon that has read what there is.
pub(crate) async fn started(builder: FlowBuilder) -> Flow {
    let flow = builder.start().await;
    wait_until_read(&flow).await;
    flow
}

/// Lets the stopped daemon have been heard last so long ago.
fn let_time_pass(flow: &Flow, passed_ms: i64) {
    let path = flow.directory().join("data").join("vocative.db");
    let connection = Connection::open(path).unwrap();
    let changed = connection
        .execute(
            "UPDATE account_reach SET heard_until_ms = heard_until_ms - ?1",
            [passed_ms],
        )
        .unwrap();
    assert_eq!(changed, 1);
}

/// The texts of people in all conversations of a chat, sorted; a text twice is a turn twice.
async fn said_in(flow: &Flow, chat: &str) -> Vec<String> {
    let mut texts = Vec::new();
    for view in flow.conversations().await {
        if view["chat"] != chat {
            continue;
        }
        for turn in flow.turns(view["id"].as_str().unwrap()).await {
            if turn["kind"] == "message" && turn["speaker_kind"] == "user" {
                texts.push(turn["text"].as_str().unwrap_or_default().to_owned());
            }
        }
    }
    texts.sort();
    texts
}

/// While the platform puts reading off, the job says so, and a kill leaves it to the next start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reading_back_is_a_job_that_operators_see() {
    let mut flow = started(FlowBuilder::default()).await;
    let root = flow.slack.say("#general", "ann", "@vocative hello");
    flow.slack_reply("#general", &root).await;
    flow.wait_for_no_job().await;
    flow.stop().await;
    let_time_pass(&flow, 30 * MINUTE_MS);
    flow.slack.say("#general", "bob", "while you slept");
    for _ in 0..2 {
        let faults = flow.slack.faults();
        faults.next("users.conversations", CallFault::RateLimited(3));
        flow.start().await;
        let jobs = wait_for_read_back(&flow).await;
        assert_eq!(jobs.len(), 1, "{jobs:?}");
        assert_eq!(
            (&jobs[0]["channel"], &jobs[0]["state"]),
            (&"acme".into(), &"leased".into())
        );
        flow.kill().await;
    }
    flow.start().await;
    wait_until_read(&flow).await;
    flow.settle().await;
    let said = said_in(&flow, "C0GENERAL").await;
    assert_eq!(
        said.iter()
            .filter(|text| *text == "while you slept")
            .count(),
        1
    );
}

async fn wait_for_read_back(flow: &Flow) -> Vec<Value> {
    let deadline = tokio::time::Instant::now() + crate::harness::WAIT;
    loop {
        let jobs = flow.cli_json(&["jobs"]).await;
        let jobs: Vec<Value> = jobs.as_array().unwrap().clone();
        if jobs.iter().any(|job| job["kind"] == "read-back") {
            return jobs;
        }
        assert!(
            tokio::time::Instant::now() < deadline,
            "nothing is read back: {jobs:?}"
        );
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// Fifty messages over thirty minutes: 46 remarks, 2 mentions in the room, and in an old thread a
/// mention and a remark.
fn thirty_minutes(flow: &Flow, thread: &str) -> Vec<String> {
    let mut said = Vec::new();
    for n in 0..50_i64 {
        flow.slack.set_clock_offset_ms(-30 * MINUTE_MS + n * 36_000);
        let text = match n {
            10 | 40 => format!("<@U0VOCATIVE> question {n}"),
            20 => format!("<@U0VOCATIVE> question {n} in the thread"),
            _ => format!("remark {n}"),
        };
        match n {
            20 | 21 => flow.slack.reply("#ops", "ann", thread, &text),
            _ => flow.slack.post("#ops", "bob", &text),
        };
        said.push(text);
    }
    said
}

fn answers(flow: &Flow) -> usize {
    flow.slack_posts("#ops").len()
}

async fn assert_caught_up(flow: &Flow, said: &[String]) {
    wait_until_read(flow).await;
    flow.slack.redeliver_unacked_now();
    flow.settle().await;
    assert_eq!(answers(flow), 3, "{:?}", flow.slack_posts("#ops"));
    let captured = said_in(flow, "C0OPS").await;
    assert_eq!(captured.len(), said.len() + 1, "{captured:#?}");
    let once: BTreeSet<&String> = captured.iter().collect();
    assert_eq!(once.len(), captured.len(), "no text twice");
    assert_eq!(flow.slack.violations(), Vec::<String>::new());
}

/// A daemon that heard the root of a thread an hour ago, and is stopped.
async fn stopped_with_a_thread(builder: FlowBuilder) -> (Flow, String) {
    let mut flow = started(builder).await;
    flow.slack.set_clock_offset_ms(-60 * MINUTE_MS);
    let root = flow.slack.post("#ops", "ann", "an old matter");
    flow.settle().await;
    assert_eq!(flow.stop().await, Some(0));
    let_time_pass(&flow, 31 * MINUTE_MS);
    (flow, root)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_half_an_hour_down_fifty_messages_are_captured_and_three_mentions_answered_once() {
    let (mut flow, root) = stopped_with_a_thread(FlowBuilder::default()).await;
    let said = thirty_minutes(&flow, &root);
    flow.slack
        .faults()
        .next("users.conversations", CallFault::Status(500));
    for method in ["conversations.history", "conversations.replies"] {
        flow.slack.faults().next(method, CallFault::RateLimited(1));
        flow.slack.faults().next(method, CallFault::Status(500));
    }
    flow.start().await;
    assert_caught_up(&flow, &said).await;
    let thread = flow.slack_reply("#ops", &root).await;
    assert_eq!(thread.thread_ts.as_deref(), Some(root.as_str()));
    // In the room's order, whatever the order of capture.
    let room = flow.conversation_id("C0OPS", None).await;
    let times: Vec<i64> = flow
        .turns(&room)
        .await
        .iter()
        .map(|turn| turn["sent_at_ms"].as_i64().unwrap())
        .collect();
    assert!(times.is_sorted(), "{times:?}");
    // And once more: nothing is read twice into the store, nothing is answered again.
    flow.restart().await;
    assert_caught_up(&flow, &said).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_while_it_catches_up_the_next_start_goes_on_and_answers_once() {
    // An answer may be on its way at the kill; then it is looked for.
    let looks = "[delivery]\nfirst_look_s = 1\nvisibility_delay_s = 1";
    let (mut flow, root) = stopped_with_a_thread(FlowBuilder::default().config(looks)).await;
    let said = thirty_minutes(&flow, &root);
    flow.slack
        .faults()
        .next("conversations.replies", CallFault::LoseResponse);
    flow.spawn();
    flow.wait_until("the catch-up hangs in the thread", || {
        flow.wire
            .records()
            .iter()
            .any(|entry| entry.name == "conversations.replies")
    })
    .await;
    // What is heard live meanwhile must not make the hole look closed.
    flow.wait_until_connected().await;
    flow.slack.set_clock_offset_ms(0);
    let live = flow.slack.post("#ops", "bob", "remark while it reads");
    flow.wait_until("the live remark is acknowledged", || {
        let acked = flow.slack.acked_envelopes();
        acked
            .iter()
            .any(|envelope| envelope.payload["event"]["ts"] == live.as_str())
    })
    .await;
    flow.kill().await;
    flow.start().await;
    let said = [said, vec!["remark while it reads".to_owned()]].concat();
    assert_caught_up(&flow, &said).await;
}

/// How often history was asked for, and how often that was too often.
fn readings(flow: &Flow) -> (usize, usize) {
    let readings = ["conversations.history", "conversations.replies"];
    let records = flow.wire.records();
    let read = records
        .iter()
        .filter(|record| readings.contains(&record.name.as_str()))
        .filter(|record| record.kind == WireKind::Response);
    let (mut asked, mut refused) = (0, 0);
    for record in read {
        asked += 1;
        refused += usize::from(record.status == Some(429));
    }
    (asked, refused)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_history_may_be_read_a_small_page_at_a_time_it_is_read_whole_and_without_hurry() {
    let only_ops = FlowBuilder::default().slack("allow_chats = [\"C0OPS\"]");
    let (mut flow, root) = stopped_with_a_thread(only_ops).await;
    let said = thirty_minutes(&flow, &root);
    // An app that is distributed gets a minute where this one gets a second.
    flow.slack.faults().set_knobs(|knobs| {
        knobs.history_gap_ms = 1_000;
        knobs.history_page_max = 15;
    });
    let before = readings(&flow);
    flow.start().await;
    flow.wait_until("the catch-up is made to wait for its second page", || {
        readings(&flow).1 > before.1
    })
    .await;
    // What is asked meanwhile does not wait for it; a kill costs what was read of this chat.
    flow.slack.set_clock_offset_ms(0);
    let question = flow.slack.say("#ops", "bob", "@vocative are you back?");
    flow.slack_reply("#ops", &question).await;
    flow.kill().await;
    flow.start().await;
    wait_until_read(&flow).await;
    flow.slack.redeliver_unacked_now();
    flow.settle().await;
    assert_eq!(answers(&flow), 4, "{:?}", flow.slack_posts("#ops"));
    let captured = said_in(&flow, "C0OPS").await;
    let once: BTreeSet<&String> = captured.iter().collect();
    assert_eq!(
        (captured.len(), once.len()),
        (said.len() + 2, said.len() + 2)
    );
    // Each page was asked for at most twice: once too early, and once when it was time.
    let (asked, refused) = readings(&flow);
    let read = asked - refused;
    assert!(refused <= read, "{asked} calls, {refused} refused");
    assert_eq!(flow.slack.violations(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_day_off_old_questions_are_captured_and_not_answered_with_one_line_per_chat() {
    let mut flow = started(FlowBuilder::default()).await;
    flow.slack.set_clock_offset_ms(-26 * 60 * MINUTE_MS);
    flow.slack.post("#ops", "bob", "before the day off");
    flow.settle().await;
    assert_eq!(flow.stop().await, Some(0));
    let_time_pass(&flow, DAY_MS);
    flow.slack.set_clock_offset_ms(-20 * 60 * MINUTE_MS);
    for chat in ["#ops", "#general"] {
        flow.slack.say(chat, "ann", "@vocative first question");
        flow.slack.say(chat, "ann", "@vocative second question");
    }
    flow.slack.set_clock_offset_ms(-5 * MINUTE_MS);
    let young = flow.slack.say("#ops", "ann", "@vocative are you back?");
    flow.start().await;
    wait_until_read(&flow).await;
    flow.settle().await;

    flow.slack_reply("#ops", &young).await;
    assert_eq!(answers(&flow), 1);
    assert_eq!(flow.slack_posts("#general"), []);
    assert_eq!(said_in(&flow, "C0OPS").await.len(), 4);
    assert_eq!(said_in(&flow, "C0GENERAL").await.len(), 2);
    let log = flow.log();
    let lines: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("older than max_trigger_age"))
        .collect();
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(
        lines.iter().all(|line| line.contains("count=2")),
        "{lines:#?}"
    );
}

/// The notices in a conversation's timeline that nothing else shows.
async fn notices(flow: &Flow, conversation: &str) -> Vec<String> {
    let args = ["conversations", "show", conversation, "--timeline"];
    let shown = flow.cli_json(&args).await;
    let turns = shown["turns"].as_array().unwrap().iter();
    turns
        .filter(|turn| turn["kind"] == "notice" && turn["visibility"] == "timeline")
        .map(|turn| turn["text"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_not_be_read_is_a_notice_until_it_may_be_read() {
    let mut flow = started(FlowBuilder::default()).await;
    flow.slack.post("#secret", "ann", "heard");
    flow.settle().await;
    assert_eq!(flow.stop().await, Some(0));
    let without = |world: &mut vocative_sandbox::slack::SlackWorld| {
        world.scopes.retain(|scope| scope != "groups:history");
    };
    flow.slack.change_world(without);
    flow.slack.post("#secret", "ann", "missed");
    flow.start().await;
    let status = wait_until_read(&flow).await;
    assert_eq!(acme(&status)["history_gaps"], 1, "{status}");
    let gap = acme(&status)["history_gap"].as_str().unwrap();
    assert!(gap.contains("C0SECRET: missing_scope"), "{gap}");
    assert!(gap.contains("groups:history"), "{gap}");
    let told = flow.cli(&["status"]).await;
    assert!(
        told.stdout.contains("messages are missing in 1 chat"),
        "{told:?}"
    );
    let room = flow.conversation_id("C0SECRET", None).await;
    let seen = notices(&flow, &room).await;
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert!(seen[0].contains("may be missing here"), "{seen:?}");
    // It is no speech: the room's turns do not have it.
    assert_eq!(flow.turns(&room).await.len(), 1);

    // Not read again and again: the notice moves on.
    flow.restart().await;
    wait_until_read(&flow).await;
    assert_eq!(notices(&flow, &room).await.len(), 1);

    assert_eq!(flow.stop().await, Some(0));
    flow.slack
        .change_world(|world| world.scopes.push("groups:history".to_owned()));
    flow.start().await;
    let status = wait_until_read(&flow).await;
    assert_eq!(acme(&status)["history_gaps"], 0, "{status}");
    assert_eq!(said_in(&flow, "C0SECRET").await, ["heard", "missed"]);
    assert_eq!(notices(&flow, &room).await, Vec::<String>::new());
}

/// Says 250 messages in a channel without the bot: 48 in the channel, one of them a question to the
/// bot, and two threads of a root and a hundred replies.
fn before_the_bot(flow: &Flow) -> BTreeSet<String> {
    let mut said = BTreeSet::new();
    let mut roots = Vec::new();
    for n in 0..250_i64 {
        flow.slack
            .set_clock_offset_ms(-300 * MINUTE_MS + n * MINUTE_MS);
        let text = match n {
            30 => "<@U0VOCATIVE> are you here?".to_owned(),
            _ => format!("remark {n}"),
        };
        match n {
            0 | 1 => roots.push(flow.slack.post("#elsewhere", "ann", &text)),
            2..50 => {
                flow.slack.post("#elsewhere", "bob", &text);
            }
            _ => {
                let root = &roots[usize::try_from(n).unwrap() % 2];
                flow.slack.reply("#elsewhere", "bob", root, &text);
            }
        }
        said.insert(text);
    }
    said
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_that_the_bot_joins_is_read_once_in_order_and_answered_never() {
    let flow = started(FlowBuilder::default()).await;
    let said = before_the_bot(&flow);
    flow.slack.set_clock_offset_ms(0);
    flow.slack.invite_bot("#elsewhere", "ann");
    flow.wait_until_heard().await;
    wait_until_read(&flow).await;
    flow.settle().await;
    let captured = said_in(&flow, "C0ELSEWHERE").await;
    assert_eq!(captured.len(), 250);
    let once: BTreeSet<&str> = captured.iter().map(|text| text.trim()).collect();
    assert_eq!(once.len(), said.len());
    assert_eq!(flow.slack_posts("#elsewhere"), []);
    assert_eq!(flow.model.requests().len(), 0);
    for view in flow.conversations().await {
        let turns = flow.turns(view["id"].as_str().unwrap()).await;
        let times: Vec<i64> = turns
            .iter()
            .map(|turn| turn["sent_at_ms"].as_i64().unwrap())
            .collect();
        assert!(times.is_sorted(), "{times:?}");
    }
    // What is asked from now on is answered, and nothing else.
    let question = flow.slack.say("#elsewhere", "ann", "@vocative and now?");
    flow.slack_reply("#elsewhere", &question).await;
    flow.settle().await;
    assert_eq!(flow.slack_posts("#elsewhere").len(), 1);
    assert_eq!(flow.model.requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_channel_that_the_bot_joins_no_more_is_read_than_is_set_and_the_timeline_says_so() {
    let builder = FlowBuilder::default().config("[capture]\nbackfill_messages_max = 5");
    let flow = started(builder).await;
    flow.slack.set_clock_offset_ms(-60 * MINUTE_MS);
    for n in 0..8 {
        flow.slack.post("#elsewhere", "ann", &format!("remark {n}"));
    }
    flow.slack.set_clock_offset_ms(0);
    flow.slack.invite_bot("#elsewhere", "ann");
    flow.wait_until_heard().await;
    wait_until_read(&flow).await;
    let captured = said_in(&flow, "C0ELSEWHERE").await;
    let newest: Vec<String> = (3..8).map(|n| format!("remark {n}")).collect();
    assert_eq!(captured, newest);
    let room = flow.conversation_id("C0ELSEWHERE", None).await;
    let seen = notices(&flow, &room).await;
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert!(seen[0].contains("backfill_messages_max"), "{seen:?}");
}

/// Lets the next so many events never arrive.
fn drop_events(flow: &Flow, count: usize) {
    for _ in 0..count {
        flow.slack.faults().next_event(EventFault::Drop);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_lost_with_a_socket_is_read_when_there_is_another_one() {
    let flow = started(FlowBuilder::default()).await;
    let edited = flow.slack.post("#ops", "ann", "at three");
    flow.settle().await;
    // The question comes as two events, the edit as one.
    drop_events(&flow, 3);
    let question = flow.slack.say("#ops", "ann", "@vocative when is it?");
    flow.slack.edit("#ops", &edited, "at four");
    flow.slack.close_sockets();
    flow.slack_reply("#ops", &question).await;
    wait_until_read(&flow).await;
    flow.settle().await;
    assert_eq!(answers(&flow), 1);
    let captured = said_in(&flow, "C0OPS").await;
    assert_eq!(captured.len(), 2, "{captured:?}");
    assert!(captured.contains(&"at four".to_owned()), "{captured:?}");
    assert_eq!(acme(&flow.status().await)["deaf"], 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_in_a_thread_that_was_edited_unheard_is_answered_again() {
    let manners = "[channels.slack.acme.manners]\nedit_answer_within_s = 600\n";
    let flow = started(FlowBuilder::default().config(manners)).await;
    // Older than what was read at the start, so that only the edit is younger.
    flow.slack.set_clock_offset_ms(-5 * MINUTE_MS);
    flow.model.enqueue(ModelReply::text("At nine."));
    let root = flow.slack.say("#ops", "ann", "@vocative when?");
    flow.slack_reply("#ops", &root).await;
    flow.model.enqueue(ModelReply::text("For two hours."));
    let asked = flow
        .slack
        .say_in("#ops", "ann", &root, "@vocative how long?");
    let answer = |text: &'static str| flow.slack_post("#ops", move |post| post.shown() == text);
    answer("For two hours.").await;
    flow.settle().await;
    flow.slack.set_clock_offset_ms(0);
    drop_events(&flow, 1);
    flow.model.enqueue(ModelReply::text("In the hall."));
    flow.slack.edit("#ops", &asked, "<@U0VOCATIVE> where?");
    flow.slack.close_sockets();
    answer("In the hall.").await;
    wait_until_read(&flow).await;
    flow.settle().await;
    let posts = flow.slack_posts("#ops");
    let shown: Vec<&str> = posts.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(shown, ["At nine.", "In the hall."]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_is_there_and_hears_nothing_is_made_anew_and_what_was_said_is_read() {
    let builder = FlowBuilder::default().config("[capture]\ndeaf_after_s = 1");
    let flow = started(builder).await;
    flow.slack.post("#ops", "ann", "heard");
    flow.settle().await;
    let socket = flow.slack.acked_envelopes().len();
    drop_events(&flow, 1_000);
    let question = flow.slack.say("#ops", "ann", "@vocative when is it?");
    // A message that is said later than a connection needs to tell of it gives it away.
    let deadline = tokio::time::Instant::now() + crate::harness::WAIT;
    let mut said = 1;
    while acme(&flow.status().await)["deaf"] == 0 {
        assert!(tokio::time::Instant::now() < deadline, "it stays deaf");
        flow.slack.post("#ops", "bob", &format!("remark {said}"));
        said += 1;
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    flow.slack_reply("#ops", &question).await;
    assert_eq!(flow.slack.acked_envelopes().len(), socket, "no event came");
    let deaf = "hears nothing of what is said";
    assert!(flow.log().contains(deaf), "the log says so");
    flow.slack.faults().clear();
    wait_until_read(&flow).await;
    flow.settle().await;
    assert_eq!(answers(&flow), 1);
    assert_eq!(said_in(&flow, "C0OPS").await.len(), said + 1);
}

/// A channel of many.
fn busy_room(n: usize) -> String {
    format!("C0BUSY{n:02}")
}

/// What was said in it long ago: 1,100 messages in the first one, some in the others.
fn said_long_ago(flow: &Flow, rooms: usize) -> (String, String) {
    flow.slack.set_clock_offset_ms(-2 * DAY_MS);
    let behind_a_page = flow.slack.post("#busy0", "ann", "an old matter");
    let on_the_page = flow.slack.post("#busy1", "ann", "another old matter");
    for n in 0..rooms {
        let messages = if n == 0 { 1_100 } else { 3 };
        for said in 0..messages {
            flow.slack
                .post(&format!("#busy{n}"), "bob", &format!("remark {said}"));
        }
    }
    flow.slack.set_clock_offset_ms(0);
    (behind_a_page, on_the_page)
}

/// `VOCATIVE_ROOMS=50 cargo test --test flow a_moment -- --nocapture` prints what fifty channels cost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_moment_that_was_missed_costs_a_page_of_each_channel_and_the_threads_that_are_alive() {
    let rooms = std::env::var("VOCATIVE_ROOMS").map_or(20, |rooms| rooms.parse().unwrap());
    let builder = FlowBuilder::default().config("[capture]\nbackfill_days = 0");
    let mut flow = builder.prepare().await;
    flow.slack.change_world(|world| {
        for n in 0..rooms {
            let (id, name) = (busy_room(n), format!("busy{n}"));
            let room = SlackConversation::new(&id, &name, ChannelKind::Public, &["U0ANN", "U0BOB"]);
            world.channels.push(room);
        }
    });
    let (behind_a_page, on_the_page) = said_long_ago(&flow, rooms);
    flow.start().await;
    wait_until_read(&flow).await;
    // The store knows one of the two threads.
    flow.slack
        .reply("#busy0", "ann", &behind_a_page, "is it settled?");
    flow.settle().await;
    assert_eq!(flow.stop().await, Some(0));

    drop_events(&flow, rooms + 2);
    flow.slack.reply("#busy0", "bob", &behind_a_page, "not yet");
    flow.slack.reply("#busy1", "bob", &on_the_page, "and this?");
    for n in 0..rooms {
        flow.slack
            .post(&format!("#busy{n}"), "bob", "while it was away");
    }
    let (before, began) = (calls(&flow), std::time::Instant::now());
    flow.start().await;
    wait_until_read(&flow).await;
    let took = began.elapsed();
    flow.settle().await;
    let after = calls(&flow);
    let made = |method: &str| after.get(method).unwrap_or(&0) - before.get(method).unwrap_or(&0);
    // Beside the busy ones there are the channels of every test.
    let listed = flow
        .slack
        .world()
        .channels
        .iter()
        .filter(|it| it.bot_is_member)
        .count();
    let (pages, threads) = (made("conversations.history"), made("conversations.replies"));
    println!(
        "{listed} channels: {pages} pages and {threads} threads read in {took:.1?}, the start counted"
    );
    assert!(pages <= listed, "{after:?}");
    assert_eq!(threads, 2, "{after:?}");
    for n in 0..rooms {
        let said = said_in(&flow, &busy_room(n)).await;
        assert!(
            said.contains(&"while it was away".to_owned()),
            "{n}: {said:?}"
        );
    }
    assert!(
        said_in(&flow, &busy_room(0))
            .await
            .contains(&"not yet".to_owned())
    );
    assert!(
        said_in(&flow, &busy_room(1))
            .await
            .contains(&"and this?".to_owned())
    );
}

/// Calls that were answered, by method.
fn calls(flow: &Flow) -> BTreeMap<String, usize> {
    let mut calls = BTreeMap::new();
    for record in flow.wire.records() {
        if record.kind == WireKind::Response {
            *calls.entry(record.name).or_default() += 1;
        }
    }
    calls
}
