//! Calls that wait for a person and get other arguments: asked for anew, and made only with what somebody then allows.

use serde_json::{Value, json};
use vocative_sandbox::model::ModelReply;
use vocative_sandbox::slack::{CallFault, SlackPost};
use vocative_sandbox::telegram::{TelegramPost, TelegramWorld};
use vocative_sandbox::wire::{WireKind, WireRecord};

use crate::approvals::{data, made, refund, with_refunds};
use crate::harness::{Called, Flow, WAIT};

const GENERAL: &str = "#general";
const GROUP: i64 = TelegramWorld::GROUP;
const ANN: i64 = TelegramWorld::ANN;
const BOB: i64 = TelegramWorld::BOB;

impl Flow {
    /// The only call that waits, once there is one.
    async fn open_approval(&self) -> String {
        let is_open = |status: &Value| status["runs"]["waiting"] == 1;
        self.wait_for_status("a call waits for a person", is_open)
            .await;
        let listed = self.cli_json(&["approvals", "list"]).await;
        listed[0]["id"].as_str().unwrap().to_owned()
    }

    /// The card in a Telegram chat that has these words.
    async fn telegram_card_with(&self, chat: i64, words: &str) -> TelegramPost {
        let is_card = |post: &TelegramPost| {
            post.by_bot && post.keyboard.is_some() && post.text.contains(words)
        };
        let found = self.telegram.wait_for_post(chat, is_card, WAIT).await;
        let card = found.unwrap_or_else(|| panic!("no card: {:#?}", self.telegram.bot_posts(chat)));
        self.settle().await;
        card
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_changes_a_call_and_it_is_made_only_once_that_is_allowed() {
    let (mut flow, shop) = with_refunds("approvers = \"requester\"", None).await;
    flow.model.enqueue(refund("tea", 120));
    let asked = flow.slack.say(GENERAL, "ann", "@vocative refund the tea");
    let old = flow.card(&asked).await;
    let id = flow.open_approval().await;
    let change = async |flow: &Flow, arguments: &str| {
        let change = [
            "approvals",
            "approve",
            &id,
            "--by",
            "carl",
            "--arguments",
            arguments,
        ];
        flow.cli(&change).await
    };
    for (arguments, words) in [
        ("amount = much", "`amount` must be number"),
        ("{\"amount\": 5}", "what"),
        ("amuont = 5", "there is no argument amuont"),
        ("{\"what\": \"tea\", \"what\": \"jam\"}", "left as it is"),
        ("amount = 120", "its arguments already"),
        ("/nowhere/arguments.json", "can't be read"),
    ] {
        let refused = change(&flow, arguments).await;
        assert_ne!(refused.status, Some(0), "{arguments}");
        assert!(refused.stderr.contains(words), "{arguments}: {refused:?}");
    }
    let changed = change(&flow, "amount = 50").await;
    assert_eq!(changed.status, Some(0), "{changed:?}");
    flow.kill().await;
    flow.start().await;
    let said = flow.outcome(&old, "Changed").await;
    assert!(
        said.contains("carl") && said.contains("see the card below"),
        "{said}"
    );
    let new = flow
        .slack_post(GENERAL, |post| {
            post.is_reply_in(&asked) && post.ts != old.ts && post.text.contains("Changed by")
        })
        .await;
    flow.settle().await;
    let shown = format!("{} {}", new.text, new.blocks.clone().unwrap_or_default());
    assert!(shown.contains("50") && shown.contains("carl"), "{shown}");
    assert!(made(&shop).is_empty());
    let told = flow
        .cli(&["approvals", "show", &flow.open_approval().await])
        .await;
    assert!(told.stdout.contains("changed by  carl"), "{told:?}");
    // What was changed can't be changed again by its old id.
    let late = change(&flow, "amount = 60").await;
    assert_ne!(late.status, Some(0), "{late:?}");
    flow.model.enqueue(ModelReply::text("Fifty are refunded."));
    flow.press("ann", &new, "Approve");
    flow.outcome(&new, "Approved").await;
    flow.settle().await;
    assert_eq!(made(&shop), [json!({"what": "tea", "amount": 50})]);
    let told = flow.model.requests().pop().unwrap().body.to_string();
    assert!(
        told.contains(
            "people changed the arguments of this call before it was decided about (carl)"
        ),
        "{told}"
    );
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_to_the_card_changes_a_call_and_who_changed_it_is_no_second_pair_of_eyes() {
    let (mut flow, shop) = with_refunds("approvers = \"four_eyes\"", None).await;
    flow.model.enqueue(refund("jam", 7));
    flow.telegram
        .say(GROUP, ANN, "@vocative_bot refund the jam");
    let old = flow.telegram_card_with(GROUP, "7").await;
    let said = async |flow: &Flow, words: &str| {
        let is_said = |post: &TelegramPost| post.by_bot && post.text.contains(words);
        let found = flow.telegram.wait_for_post(GROUP, is_said, WAIT).await;
        found.unwrap_or_else(|| panic!("{words}: {:#?}", flow.telegram.bot_posts(GROUP)))
    };
    flow.telegram
        .reply(GROUP, ANN, old.message_id, "amount = 700");
    said(&flow, "You can't decide this").await;
    flow.telegram
        .reply(GROUP, BOB, old.message_id, "amount = much");
    said(&flow, "The call is left as it is: ").await;
    let asked = flow.model.requests().len();
    flow.telegram
        .reply(GROUP, BOB, old.message_id, "amount = 5\nwhat = red jam");
    let new = flow.telegram_card_with(GROUP, "red jam").await;
    assert!(
        new.text.contains("Changed by") && new.text.contains("Bob"),
        "{new:?}"
    );
    flow.telegram_outcome(GROUP, &old, "Changed").await;
    // Neither the old button nor who changed it allows it, nor is any reply a question to the model.
    for (who, data) in [
        (BOB, data(&old, "Approve")),
        (BOB, data(&new, "Approve")),
        (ANN, data(&new, "Approve")),
    ] {
        let pressed = flow.telegram.callback(GROUP, who, new.message_id, &data);
        let is_told = || {
            let answer = flow.telegram.callback_answer(&pressed);
            answer.is_some_and(|answer| !answer["text"].as_str().unwrap_or_default().is_empty())
        };
        flow.wait_until("who presses is told that it does not count", is_told)
            .await;
    }
    flow.settle().await;
    assert!(made(&shop).is_empty());
    assert_eq!(flow.model.requests().len(), asked);
    let id = flow.open_approval().await;
    let own = flow
        .cli(&["approvals", "approve", &id, "--by", "bob"])
        .await;
    assert_eq!(own.status, Some(1), "{own:?}");
    assert!(
        own.stderr
            .contains("another person than those who changed it"),
        "{own:?}"
    );
    flow.model.enqueue(ModelReply::text("Five are refunded."));
    let carl = flow
        .cli(&["approvals", "approve", &id, "--by", "carl"])
        .await;
    assert_eq!(carl.status, Some(0), "{carl:?}");
    said(&flow, "Five are refunded.").await;
    assert_eq!(made(&shop), [json!({"what": "red jam", "amount": 5})]);
    assert_eq!(flow.stop().await, Some(0));
}

impl Flow {
    /// The text of the form that a person has open, once it is.
    async fn form(&self) -> Value {
        self.wait_until("a form is open", || self.slack.views().len() == 1)
            .await;
        self.slack.views().remove(0)
    }

    /// Sends the form that a person has open.
    fn write(&self, who: &str, text: &str) {
        let values = json!({"written": text});
        self.slack.submit_view(who, &values).unwrap();
    }
}

/// The card of a changed call is another one, with buttons of its own.
async fn changed_card(flow: &Flow, asked: &str, old: &SlackPost, words: &str) -> SlackPost {
    let is_it = |post: &SlackPost| {
        let shown = format!("{} {}", post.text, post.blocks.clone().unwrap_or_default());
        post.is_reply_in(asked) && post.ts != old.ts && shown.contains(words)
    };
    let card = flow.slack_post(GENERAL, is_it).await;
    flow.settle().await;
    card
}

async fn a_form_changes_a_call(called: Option<Called>) {
    let (mut flow, shop) = with_refunds("approvers = \"requester\"", called).await;
    flow.model.enqueue(refund("tea", 120));
    let asked = flow.slack.say(GENERAL, "ann", "@vocative refund the tea");
    let old = flow.card(&asked).await;
    flow.press("bob", &old, "Change");
    flow.told_privately("U0BOB", "You can't decide this").await;
    assert!(flow.slack.views().is_empty());
    flow.press("ann", &old, "Change");
    let form = flow.form().await.to_string();
    assert!(
        form.contains("Arguments of refund") && form.contains("\\\"amount\\\": 120"),
        "{form}"
    );
    // What is wrong is said in the form, which stays open.
    for (text, words) in [
        ("{\"amount\": 5}", "what"),
        (
            "{\"what\": \"tea\", \"amount\": \"much\"}",
            "must be number",
        ),
        ("I changed my mind", "write a JSON object"),
        ("amount = 120", "its arguments already"),
    ] {
        flow.write("ann", text);
        let is_told = || {
            let views = flow.slack.views();
            let errors = views.first().map(|view| view["errors"].to_string());
            errors.is_some_and(|errors| errors.contains(words))
        };
        flow.wait_until("the form says what is wrong", is_told)
            .await;
    }
    flow.write("ann", "{\"what\": \"tea\", \"amount\": 50}");
    flow.wait_until("the form is closed", || flow.slack.views().is_empty())
        .await;
    flow.kill().await;
    flow.start().await;
    let said = flow.outcome(&old, "Changed").await;
    assert!(said.contains("see the card below"), "{said}");
    let new = changed_card(&flow, &asked, &old, "50").await;
    assert!(made(&shop).is_empty());
    // A form of a call that was decided meanwhile changes nothing.
    flow.press("ann", &new, "Change");
    flow.form().await;
    flow.model.enqueue(ModelReply::text("Fifty are refunded."));
    flow.press("ann", &new, "Approve");
    flow.outcome(&new, "Approved").await;
    flow.write("ann", "amount = 60");
    let is_told = || {
        flow.slack.views()[0]["errors"]
            .to_string()
            .contains("approved")
    };
    flow.wait_until("the form says that it is over", is_told)
        .await;
    flow.settle().await;
    assert_eq!(made(&shop), [json!({"what": "tea", "amount": 50})]);
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_form_in_slack_changes_a_call() {
    a_form_changes_a_call(None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_form_in_slack_changes_a_call_over_http() {
    let called = Called {
        by_slack: true,
        by_telegram: false,
    };
    a_form_changes_a_call(Some(called)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn telegram_says_how_to_change_a_call_and_arguments_that_fit_no_form_are_changed_outside() {
    let (flow, _shop) = with_refunds("approvers = \"anyone_in_chat\"", None).await;
    flow.model.enqueue(refund("jam", 7));
    flow.telegram
        .say(GROUP, ANN, "@vocative_bot refund the jam");
    let card = flow.telegram_card_with(GROUP, "7").await;
    let change = data(&card, "Change");
    let pressed = flow.telegram.callback(GROUP, BOB, card.message_id, &change);
    let told = || flow.telegram.callback_answer(&pressed);
    flow.wait_until("he is told how", || told().is_some()).await;
    let told = told().unwrap()["text"].as_str().unwrap().to_owned();
    assert!(told.starts_with("Reply to this card"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_press_is_acknowledged_before_its_form_is_open() {
    let (flow, _shop) = with_refunds("approvers = \"requester\"", None).await;
    flow.model.enqueue(refund("tea", 120));
    let asked = flow.slack.say(GENERAL, "ann", "@vocative refund the tea");
    let card = flow.card(&asked).await;
    let slow = CallFault::Latency(2_000);
    flow.slack.faults().next("views.open", slow);
    flow.press("ann", &card, "Change");
    flow.wait_until("the press is acknowledged", || flow.slack.unacked() == 0)
        .await;
    let is_answer =
        |record: &WireRecord| record.kind == WireKind::Response && record.name == "views.open";
    assert!(!flow.wire.records().iter().any(is_answer));
}
