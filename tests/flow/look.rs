//! Telegram posts of unknown outcome: the platform is asked about single messages, and people see each
//! answer once.

use serde_json::Value;
use vocative_sandbox::model::ModelReply;
use vocative_sandbox::telegram::{TelegramFault, TelegramWorld};
use vocative_sandbox::wire::WireKind;

use crate::harness::{Flow, FlowBuilder};

const ANN: i64 = TelegramWorld::ANN;
const GROUP: i64 = TelegramWorld::GROUP;
const SUPERGROUP: i64 = TelegramWorld::SUPERGROUP;
const PROBE: &str = "stopMessageLiveLocation";

const QUICK: &str = "[delivery]\nfirst_look_s = 1\nvisibility_delay_s = 1\nlook_back_s = 2\n";

async fn started() -> Flow {
    FlowBuilder::default().config(QUICK).start().await
}

/// Asks in a chat, where the answer meets this fault on its way.
fn ask(flow: &Flow, chat: i64, fault: TelegramFault) -> i64 {
    flow.model.enqueue(ModelReply::text("At three."));
    flow.telegram.faults().next("sendMessage", fault);
    flow.telegram.say(chat, ANN, "@vocative_bot when is it?")
}

async fn asked_about(flow: &Flow) {
    flow.wait_until("the platform is asked", || questions(flow) > 0)
        .await;
}

/// Waits for the second question: with the answer to the first one the platform told its time.
async fn time_told(flow: &Flow) {
    flow.wait_until("the platform told its time", || questions(flow) > 1)
        .await;
}

fn questions(flow: &Flow) -> usize {
    let records = flow.wire.records();
    let asked = records
        .iter()
        .filter(|it| it.name == PROBE && it.kind == WireKind::Request);
    asked.count()
}

async fn held(flow: &Flow) -> Value {
    flow.wait_for_status("it is held", |status| status["posts"]["held"] == 1)
        .await;
    flow.status().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_13_what_arrived_is_found_in_every_kind_of_room() {
    let flow = started().await;
    let topic = TelegramWorld::TOPIC_INCIDENT;
    for chat in [ANN, GROUP, SUPERGROUP] {
        ask(&flow, chat, TelegramFault::ResetAfter);
        flow.wait_until("it arrives", || !flow.telegram_posts(chat).is_empty())
            .await;
    }
    flow.model.enqueue(ModelReply::text("At three."));
    let faults = flow.telegram.faults();
    faults.next("sendMessage", TelegramFault::GatewayAfter { code: 502 });
    flow.telegram
        .say_in_topic(TelegramWorld::FORUM, topic, ANN, "@vocative_bot when?");
    flow.wait_until("it arrives", || {
        !flow.telegram_posts(TelegramWorld::FORUM).is_empty()
    })
    .await;
    flow.settle().await;
    for chat in [ANN, GROUP, SUPERGROUP, TelegramWorld::FORUM] {
        assert_eq!(flow.telegram_posts(chat), ["At three."], "{chat}");
    }
    let status = flow.status().await;
    assert_eq!(status["posts"]["held"], 0, "{status}");
    // What was found is a message of its turn: a reply to it asks again.
    flow.model.enqueue(ModelReply::text("In the hall."));
    let found = flow.telegram.bot_posts(SUPERGROUP)[0].message_id;
    let next = flow.telegram.reply(SUPERGROUP, ANN, found, "and where?");
    flow.telegram_reply(SUPERGROUP, next).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_13_a_telegram_post_in_flight_at_a_kill_is_found_and_not_sent_again() {
    let mut flow = started().await;
    ask(&flow, ANN, TelegramFault::StallAfter);
    flow.wait_until("it arrives", || !flow.telegram_posts(ANN).is_empty())
        .await;
    flow.kill().await;
    flow.start().await;
    asked_about(&flow).await;
    // Killed once more while it is looked for.
    flow.kill().await;
    flow.start().await;
    flow.settle().await;
    assert_eq!(flow.telegram_posts(ANN), ["At three."]);
    assert_eq!(flow.status().await["posts"]["held"], 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_did_not_arrive_is_sent_again_once_something_said_later_proves_it() {
    let flow = started().await;
    ask(&flow, GROUP, TelegramFault::ResetBefore);
    time_told(&flow).await;
    flow.telegram.advance_clock(60);
    // Another room, but numbered with this one.
    flow.telegram.say(GROUP, TelegramWorld::BOB, "by the way");
    flow.wait_until("it is sent again", || {
        !flow.telegram_posts(GROUP).is_empty()
    })
    .await;
    flow.settle().await;
    assert_eq!(flow.telegram_posts(GROUP), ["At three."]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_server_has_not_heard_of_is_not_taken_for_absent() {
    let flow = started().await;
    flow.telegram.lag_behind(true);
    ask(&flow, SUPERGROUP, TelegramFault::ResetAfter);
    flow.wait_until("it was looked for in vain", || questions(&flow) >= 6)
        .await;
    assert_eq!(flow.telegram_posts(SUPERGROUP).len(), 1);
    flow.telegram.advance_clock(60);
    flow.telegram.say(SUPERGROUP, TelegramWorld::BOB, "well?");
    flow.settle().await;
    assert_eq!(flow.telegram_posts(SUPERGROUP), ["At three."]);
    assert_eq!(flow.status().await["posts"]["held"], 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_program_with_the_same_token_leaves_it_undecided_and_a_person_decides() {
    let flow = started().await;
    ask(&flow, SUPERGROUP, TelegramFault::ResetAfter);
    flow.wait_until("it arrives", || !flow.telegram_posts(SUPERGROUP).is_empty())
        .await;
    flow.telegram
        .post_by_another_program(SUPERGROUP, "Somebody else's.");
    let status = held(&flow).await;
    assert_eq!(status["posts"]["undecided"], 1, "{status}");
    let listed = flow.cli(&["held", "list", "--format", "json"]).await;
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed[0]["undecided"], true, "{listed}");
    let id = listed[0]["id"].as_str().unwrap();
    let dropped = flow.cli(&["held", "drop", id]).await;
    assert_eq!(dropped.status, Some(0), "{dropped:?}");
    flow.settle().await;
    assert_eq!(flow.status().await["posts"]["undecided"], 0);
    let posts = flow.telegram_posts(SUPERGROUP);
    assert_eq!(posts, ["At three.", "Somebody else's."]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_poller_or_a_strangers_post_in_an_update_leaves_it_undecided() {
    let flow = started().await;
    let conflict = TelegramFault::Conflict;
    flow.telegram.faults().next("getUpdates", conflict);
    flow.telegram.say(SUPERGROUP, ANN, "hello");
    flow.wait_until_heard().await;
    ask(&flow, SUPERGROUP, TelegramFault::ResetAfter);
    held(&flow).await;
    assert_eq!(flow.telegram_posts(SUPERGROUP).len(), 1);

    let flow = started().await;
    let theirs = flow
        .telegram
        .post_by_another_program(SUPERGROUP, "Somebody else's.");
    flow.telegram.reply(SUPERGROUP, ANN, theirs, "thanks");
    flow.wait_until_heard().await;
    flow.settle().await;
    let before = flow.telegram_posts(GROUP).len();
    ask(&flow, GROUP, TelegramFault::ResetAfter);
    held(&flow).await;
    assert_eq!(flow.telegram_posts(GROUP).len(), before + 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_that_is_upgraded_meanwhile_leaves_it_undecided() {
    let flow = started().await;
    ask(&flow, GROUP, TelegramFault::ResetBefore);
    asked_about(&flow).await;
    let new = flow.telegram.migrate_to_supergroup(GROUP);
    held(&flow).await;
    assert_eq!(flow.telegram_posts(new).len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_a_late_answer_is_worse_than_two_an_undecided_post_is_sent_again() {
    let flow = FlowBuilder::default()
        .config(QUICK)
        .telegram("on_undecided = \"resend\"\nallow_chats = [\"*\"]\nallow_people = [\"*\"]")
        .start()
        .await;
    // Nobody says anything afterwards.
    ask(&flow, ANN, TelegramFault::ResetBefore);
    flow.wait_until("it is sent again", || !flow.telegram_posts(ANN).is_empty())
        .await;
    flow.settle().await;
    assert_eq!(flow.telegram_posts(ANN), ["At three."]);
    let status = flow.status().await;
    assert_eq!(status["posts"]["resent_undecided"], 1, "{status}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_of_unknown_outcome_is_looked_for_like_any_post() {
    let flow = FlowBuilder::default()
        .config(&format!("{QUICK}max_parts = 2\n"))
        .start()
        .await;
    flow.telegram
        .faults()
        .next("sendDocument", TelegramFault::ResetAfter);
    let long = "one two three four five six seven eight\n\n".repeat(400);
    flow.model.enqueue(ModelReply::text(&long));
    flow.telegram.say(GROUP, ANN, "@vocative_bot tell me all");
    asked_about(&flow).await;
    flow.settle().await;
    let posts = flow.telegram.bot_posts(GROUP);
    let documents = posts.iter().filter(|it| it.wire.get("document").is_some());
    assert_eq!(documents.count(), 1);
    assert_eq!(flow.status().await["posts"]["held"], 0);
}
