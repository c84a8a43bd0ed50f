//! Calls that wait, as a person sees them in the room, and who counts as one of a room.

use vocative_sandbox::model::ModelReply;
use vocative_sandbox::slack::CallFault;
use vocative_sandbox::telegram::TelegramWorld;

use crate::approvals::{data, made, refund, with_refunds};
use crate::harness::Called;

const GENERAL: &str = "#general";
const GROUP: i64 = TelegramWorld::GROUP;
const ANN: i64 = TelegramWorld::ANN;
const BOB: i64 = TelegramWorld::BOB;

/// What stands behind `deny all` in a list.
fn code(list: &str) -> String {
    let (_, rest) = list.split_once("deny all ").expect("a code");
    rest.split('"').next().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_shows_its_person_what_is_theirs_and_forbids_what_it_showed() {
    let called = Called {
        by_slack: true,
        by_telegram: false,
    };
    let (mut flow, shop) = with_refunds("approvers = \"requester\"", Some(called)).await;
    flow.model.enqueue(refund("tea", 120));
    let asked = flow.slack.say(GENERAL, "ann", "@vocative refund the tea");
    let card = flow.card(&asked).await;
    let list = |who: &'static str, text: &'static str| {
        flow.slack.slash_command(GENERAL, who, "/vocative", text);
    };
    list("U0BOB", "approvals");
    flow.told_privately("U0BOB", "Nothing waits here").await;
    // Another room shows nothing of this one.
    flow.slack
        .slash_command("#ops", "U0ANN", "/vocative", "approvals");
    flow.told_privately("U0ANN", "Nothing waits here").await;
    list("U0ANN", "approvals");
    let shown = flow.told_privately("U0ANN", "refund").await;
    assert!(shown.contains("tea") && shown.contains("Ann"), "{shown}");
    let code = code(&shown);

    // One more has come since: nothing is forbidden, and the list is shown anew.
    flow.model.enqueue(refund("milk", 3));
    let more = flow.slack.say(GENERAL, "ann", "@vocative refund the milk");
    let other = flow.card(&more).await;
    let deny = format!("approvals deny all {code}");
    flow.slack
        .slash_command(GENERAL, "U0ANN", "/vocative", &deny);
    let shown = flow.told_privately("U0ANN", "Nothing was forbidden").await;
    assert!(shown.contains("milk"), "{shown}");
    let code = self::code(&shown);

    // Bob's order with the same code is about his own list.
    let deny = format!("approvals deny all {code}");
    flow.slack
        .slash_command(GENERAL, "U0BOB", "/vocative", &deny);
    flow.told_privately("U0BOB", "Nothing was forbidden").await;
    for _ in 0..2 {
        flow.model.enqueue(ModelReply::text("Then not."));
    }
    flow.slack
        .slash_command(GENERAL, "U0ANN", "/vocative", &deny);
    flow.told_privately("U0ANN", "2 calls are forbidden").await;
    for card in [&card, &other] {
        let outcome = flow.outcome(card, "Denied").await;
        assert!(outcome.contains("by Ann"), "{outcome}");
    }
    for root in [&asked, &more] {
        let is_answer = |post: &vocative_sandbox::slack::SlackPost| {
            post.is_reply_in(root) && post.text == "Then not."
        };
        flow.slack_post(GENERAL, is_answer).await;
    }
    assert!(made(&shop).is_empty());
    let report = flow.cli_json(&["approvals", "report"]).await;
    assert_eq!(report[0]["tool"], "refund");
    assert_eq!(
        (
            &report[0]["asked"],
            &report[0]["denied"],
            &report[0]["open"]
        ),
        (&2.into(), &2.into(), &0.into())
    );
    assert!(report[0]["median_wait_ms"].is_i64(), "{report}");
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_not_in_the_room_any_more_decides_nothing_there() {
    let (mut flow, shop) = with_refunds("approvers = \"anyone_in_chat\"", None).await;
    flow.model.enqueue(refund("jam", 7));
    flow.telegram
        .say(GROUP, ANN, "@vocative_bot refund the jam");
    let card = flow.telegram_card(GROUP).await;
    let asked = flow.telegram.say(GROUP, ANN, "/approvals");
    let list = flow.telegram_reply(GROUP, asked).await.text;
    assert!(list.contains("jam") && list.contains("deny all"), "{list}");
    flow.telegram.leave(GROUP, BOB);
    let approve = data(&card, "Approve");
    let pressed = flow
        .telegram
        .callback(GROUP, BOB, card.message_id, &approve);
    let is_told = || {
        let answer = flow.telegram.callback_answer(&pressed);
        answer.is_some_and(|answer| answer.to_string().contains("You can't decide this"))
    };
    flow.wait_until("Bob is told that he can't decide", is_told)
        .await;
    assert!(made(&shop).is_empty());
    flow.model.enqueue(ModelReply::text("Done."));
    flow.telegram.join(GROUP, BOB);
    flow.telegram
        .callback(GROUP, BOB, card.message_id, &approve);
    flow.telegram_outcome(GROUP, &card, "Approved").await;
    flow.settle().await;
    assert_eq!(made(&shop).len(), 1);
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_it_is_not_known_who_is_in_a_room_nobody_decides_as_one_of_it() {
    let (mut flow, shop) = with_refunds("approvers = \"anyone_in_chat\"", None).await;
    flow.model.enqueue(refund("tea", 2));
    let asked = flow.slack.say(GENERAL, "ann", "@vocative refund the tea");
    let card = flow.card(&asked).await;
    let error = CallFault::Error("internal_error".to_owned());
    flow.slack.faults().next("conversations.members", error);
    flow.press("bob", &card, "Approve");
    flow.told_privately("U0BOB", "You can't decide this").await;
    assert!(made(&shop).is_empty());
    flow.model.enqueue(ModelReply::text("Done."));
    flow.press("bob", &card, "Approve");
    // Bob has never said a word here; he is named as the room shows him, not by his account.
    let outcome = flow.outcome(&card, "Approved").await;
    assert!(
        outcome.contains("by Bob") && !outcome.contains("by bob"),
        "{outcome}"
    );
    flow.settle().await;
    assert_eq!(made(&shop).len(), 1);
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_in_a_file_is_decided_about_as_it_stands_there() {
    let (mut flow, shop) = with_refunds("approvers = \"requester\"", None).await;
    let mut roots = Vec::new();
    for what in ["tea", "milk"] {
        flow.model.enqueue(refund(what, 2));
        let words = format!("@vocative refund the {what}");
        roots.push(flow.slack.say(GENERAL, "ann", &words));
        flow.card(&roots[roots.len() - 1]).await;
    }
    let listed = flow.cli_json(&["approvals", "list"]).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("listed.json");
    std::fs::write(&file, listed.to_string()).unwrap();
    for _ in 0..2 {
        flow.model.enqueue(ModelReply::text("So it is."));
    }
    // The newest stands first.
    let tea = listed[1]["id"].as_str().unwrap();
    let one = flow
        .cli(&["approvals", "approve", tea, "--by", "carl"])
        .await;
    assert_eq!(one.status, Some(0), "{one:?}");
    let file = file.to_str().unwrap();
    let all = flow
        .cli(&["approvals", "deny", "--listed", file, "--by", "carl"])
        .await;
    assert_eq!(all.status, Some(1), "{all:?}");
    assert!(
        all.stdout.contains("left as it is") && all.stdout.contains("refund is denied"),
        "{all:?}"
    );
    for root in &roots {
        let is_answer = |post: &vocative_sandbox::slack::SlackPost| {
            post.is_reply_in(root) && post.text == "So it is."
        };
        flow.slack_post(GENERAL, is_answer).await;
    }
    assert_eq!(made(&shop).len(), 1);
    assert_eq!(flow.stop().await, Some(0));
}
