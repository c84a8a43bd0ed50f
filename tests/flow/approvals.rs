//! Calls that wait for a person: the card, who may decide, what follows, and what a kill changes of it.

use std::net::{Ipv4Addr, SocketAddr};

use serde_json::{Value, json};
use vocative_sandbox::model::ModelReply;
use vocative_sandbox::orders::OrderServer;
use vocative_sandbox::slack::{BlockAction, SlackPost};
use vocative_sandbox::telegram::{TelegramPost, TelegramWorld};

use crate::harness::{Called, Flow, FlowBuilder, WAIT};

const GENERAL: &str = "#general";
const GROUP: i64 = TelegramWorld::GROUP;
const ANN: i64 = TelegramWorld::ANN;
const BOB: i64 = TelegramWorld::BOB;

/// A flow whose agent may refund something if somebody allows it.
pub(crate) async fn with_refunds(approval: &str, called: Option<Called>) -> (Flow, OrderServer) {
    let builder = match called {
        Some(called) => FlowBuilder::default().called(called),
        None => FlowBuilder::default(),
    };
    refunding(builder, approval).await
}

/// The same with further settings.
pub(crate) async fn refunding(builder: FlowBuilder, approval: &str) -> (Flow, OrderServer) {
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let shop = OrderServer::start(anywhere).await.unwrap();
    let settings = refund_tool(&shop, approval);
    let builder = builder
        .agent("vocative", "tools = [\"refund\"]")
        .config(&settings);
    (builder.start().await, shop)
}

/// The tool `refund` of a shop, with settings of its approval (TOML lines).
pub(crate) fn refund_tool(shop: &OrderServer, approval: &str) -> String {
    let host = shop.addr();
    format!(
        "[tools.refund]\nkind = \"http\"\ndescription = \"Refunds something.\"\nmethod = \"POST\"\n\
         url = \"http://{host}/orders\"\nallow_private = [\"{host}\"]\n{approval}\n\
         parameters = '{{\"type\": \"object\", \"required\": [\"what\"], \"properties\": {{\"what\": {{\"type\": \"string\"}}, \
         \"amount\": {{\"type\": \"number\"}}}}}}'\n"
    )
}

pub(crate) fn refund(what: &str, amount: u32) -> ModelReply {
    ModelReply::tool_call("call_1", "refund", json!({"what": what, "amount": amount}))
}

pub(crate) fn made(shop: &OrderServer) -> Vec<Value> {
    shop.orders().into_iter().map(|order| order.body).collect()
}

/// The words on the buttons of a Slack post, each with its action id.
fn buttons(post: &SlackPost) -> Vec<(String, String)> {
    let blocks = post.blocks.as_ref().and_then(Value::as_array);
    let elements = blocks
        .into_iter()
        .flatten()
        .filter_map(|block| block["elements"].as_array());
    elements
        .flatten()
        .filter(|element| element["type"] == "button")
        .map(|button| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            (text(&button["text"]["text"]), text(&button["action_id"]))
        })
        .collect()
}

impl Flow {
    /// Waits for the card of a call in the thread of a Slack message.
    pub(crate) async fn card(&self, root_ts: &str) -> SlackPost {
        let card = self.slack_post(GENERAL, |post| {
            post.is_reply_in(root_ts) && !buttons(post).is_empty()
        });
        let card = card.await;
        // A press counts once it is known which message the card is.
        self.settle().await;
        card
    }

    pub(crate) fn press(&self, who: &str, card: &SlackPost, words: &str) {
        let buttons = buttons(card);
        let button = buttons.iter().find(|(text, _)| text == words);
        let action = BlockAction {
            channel: GENERAL.to_owned(),
            user: who.to_owned(),
            message_ts: card.ts.clone(),
            action_id: button.unwrap_or_else(|| panic!("{buttons:?}")).1.clone(),
            ..BlockAction::default()
        };
        self.slack.block_action(&action);
    }

    /// Waits until a card says what became of it.
    pub(crate) async fn outcome(&self, card: &SlackPost, word: &str) -> String {
        let post = self
            .slack_post(GENERAL, |post| {
                post.ts == card.ts && buttons(post).is_empty() && post.text.contains(word)
            })
            .await;
        format!("{} {}", post.text, post.blocks.unwrap_or_default())
    }

    /// Waits until somebody is told that privately; returns all of it.
    pub(crate) async fn told_privately(&self, who: &str, words: &str) -> String {
        let is_told = || {
            let all = self.slack.ephemerals();
            all.iter()
                .any(|told| told.user == who && told.text.contains(words))
        };
        self.wait_until(&format!("{who} is told {words:?}"), is_told)
            .await;
        let all = self.slack.ephemerals();
        let mut told = all.into_iter().rev();
        let told = told.find(|told| told.user == who && told.text.contains(words));
        told.map(|told| told.text).unwrap_or_default()
    }

    /// Waits for the card of a call in a Telegram chat.
    pub(crate) async fn telegram_card(&self, chat: i64) -> TelegramPost {
        let is_card = |post: &TelegramPost| post.by_bot && post.keyboard.is_some();
        let found = self.telegram.wait_for_post(chat, is_card, WAIT).await;
        let card = found.unwrap_or_else(|| panic!("no card: {:#?}", self.telegram.bot_posts(chat)));
        self.settle().await;
        card
    }

    pub(crate) async fn telegram_outcome(
        &self,
        chat: i64,
        card: &TelegramPost,
        word: &str,
    ) -> String {
        let is_over = |post: &TelegramPost| {
            post.message_id == card.message_id
                && post.keyboard.is_none()
                && post.text.contains(word)
        };
        let found = self.telegram.wait_for_post(chat, is_over, WAIT).await;
        let found =
            found.unwrap_or_else(|| panic!("not {word}: {:#?}", self.telegram.bot_posts(chat)));
        found.text
    }
}

/// The data of a button of a Telegram post.
pub(crate) fn data(card: &TelegramPost, words: &str) -> String {
    let keyboard = card.keyboard.clone().unwrap_or_default();
    let rows = keyboard["inline_keyboard"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let buttons = rows.iter().filter_map(Value::as_array).flatten();
    let mut found = buttons.filter(|button| button["text"] == words);
    let button = found
        .next()
        .unwrap_or_else(|| panic!("no {words} in {keyboard}"));
    button["callback_data"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

const REQUESTER: &str = "approvers = \"requester\"";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_waits_through_a_kill_and_is_made_once_for_who_may_allow_it() {
    let (mut flow, shop) = with_refunds(REQUESTER, None).await;
    flow.model.enqueue(refund("tea", 120));
    let asked = flow
        .slack
        .say(GENERAL, "ann", "@vocative refund 120 for the tea");
    let card = flow.card(&asked).await;
    let shown = card.blocks.clone().unwrap_or_default().to_string();
    for words in ["refund", "120", "tea", "Ann", "/orders"] {
        assert!(shown.contains(words), "{words} in {shown}");
    }
    assert!(made(&shop).is_empty());

    // The room goes on, and Bob is told that it is not his to decide.
    flow.press("bob", &card, "Approve");
    flow.told_privately("U0BOB", "You can't decide this").await;
    flow.model.enqueue(ModelReply::text("At four."));
    let meanwhile = flow.slack.say(GENERAL, "bob", "@vocative when is tea?");
    assert_eq!(flow.slack_reply(GENERAL, &meanwhile).await.text, "At four.");
    let queue = flow.cli_json(&["queue"]).await;
    assert!(queue.to_string().contains("a person to decide"), "{queue}");

    flow.kill().await;
    flow.reconfigure(
        "tools = [\"refund\"]",
        "tools = [\"refund\", \"conversation_search\"]",
    );
    flow.start().await;
    assert!(made(&shop).is_empty());
    flow.model.enqueue(ModelReply::text("It is refunded."));
    flow.press("ann", &card, "Approve");
    let outcome = flow.outcome(&card, "Approved").await;
    assert!(
        outcome.contains("by Ann") && outcome.contains("UTC"),
        "{outcome}"
    );
    let answer = flow
        .slack_post(GENERAL, |post| {
            post.is_reply_in(&asked) && post.text == "It is refunded."
        })
        .await;
    assert_eq!(answer.text, "It is refunded.");
    assert_eq!(made(&shop), [json!({"what": "tea", "amount": 120})]);

    // The run went on with the prompt and the tools of its first request.
    let requests = flow.model.requests();
    let (first, last) = (&requests[0].body, &requests[requests.len() - 1].body);
    assert_eq!(first["tools"], last["tools"]);
    let messages = |body: &Value| body["messages"].as_array().cloned().unwrap_or_default();
    let (before, after) = (messages(first), messages(last));
    assert_eq!(before, after[..before.len()]);

    // What is over stays so.
    flow.press_gone("ann", &card, &data_of(&card, "Deny"));
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_for_a_person_is_not_asked_for_again_by_what_is_said_meanwhile() {
    let (flow, shop) = with_refunds(REQUESTER, None).await;
    flow.model.enqueue(refund("tea", 120));
    let asked = flow
        .slack
        .say(GENERAL, "ann", "@vocative refund 120 for the tea");
    let card = flow.card(&asked).await;

    let in_thread = |text: &str| flow.slack.say_in(GENERAL, "ann", &asked, text);
    let answered = async |text: &'static str| {
        let is_it = |post: &SlackPost| post.is_reply_in(&asked) && post.text == text;
        flow.slack_post(GENERAL, is_it).await
    };
    flow.model.enqueue(ModelReply::text("At four."));
    in_thread("@vocative and when is tea?");
    answered("At four.").await;
    let read = flow.model_history(1);
    assert!(!format!("{read:?}").contains("refund 120"), "{read:?}");

    flow.model.enqueue(ModelReply::text("It is refunded."));
    flow.press("ann", &card, "Approve");
    answered("It is refunded.").await;
    assert_eq!(made(&shop).len(), 1);
    // Answered, it is part of the talk.
    flow.model.enqueue(ModelReply::text("You are welcome."));
    in_thread("@vocative thank you");
    answered("You are welcome.").await;
    let read = format!("{:?}", flow.model_history(3));
    for words in ["refund 120", "At four.", "It is refunded."] {
        assert!(read.contains(words), "{words} in {read}");
    }
}

/// The value of a button of a Slack post.
fn data_of(card: &SlackPost, words: &str) -> String {
    let (_, action) = buttons(card)
        .into_iter()
        .find(|(text, _)| text == words)
        .unwrap();
    action
}

impl Flow {
    /// A press of a button that is not there any more sends nothing.
    fn press_gone(&self, who: &str, card: &SlackPost, action: &str) {
        let action = BlockAction {
            channel: GENERAL.to_owned(),
            user: who.to_owned(),
            message_ts: card.ts.clone(),
            action_id: action.to_owned(),
            ..BlockAction::default()
        };
        assert!(self.slack.try_block_action(&action).is_err());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_fifty_presses_one_decides() {
    let (mut flow, shop) = with_refunds("approvers = \"anyone_in_chat\"", None).await;
    flow.model.enqueue(refund("milk", 3));
    flow.model.enqueue(ModelReply::text("Done."));
    flow.telegram
        .say(GROUP, ANN, "@vocative_bot refund the milk");
    let card = flow.telegram_card(GROUP).await;
    assert!(card.text.contains("milk"), "{}", card.text);
    let (approve, deny) = (data(&card, "Approve"), data(&card, "Deny"));
    let presses: Vec<String> = (0..50)
        .map(|n| {
            let who = if n % 2 == 0 { ANN } else { BOB };
            let data = if n % 5 == 4 { &deny } else { &approve };
            flow.telegram.callback(GROUP, who, card.message_id, data)
        })
        .collect();
    // Presses of two people at once are taken in any order: the first decides, whichever it is.
    let outcome = flow.telegram_outcome(GROUP, &card, "UTC").await;
    flow.settle().await;
    let expected = match outcome.starts_with("Approved") {
        true => vec![json!({"what": "milk", "amount": 3})],
        false => Vec::new(),
    };
    assert_eq!(made(&shop), expected, "{outcome}");
    assert_eq!(
        flow.telegram_posts(GROUP).last().map(String::as_str),
        Some("Done.")
    );
    // Each is answered, so that no button keeps spinning.
    let is_answered = || {
        presses
            .iter()
            .all(|id| flow.telegram.callback_answer(id).is_some())
    };
    flow.wait_until("every press is answered", is_answered)
        .await;
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_is_told_to_the_model_with_who_it_was() {
    let called = Called {
        by_slack: true,
        by_telegram: true,
    };
    let (mut flow, shop) = with_refunds("approvers = \"four_eyes\"", Some(called)).await;
    flow.model.enqueue(refund("jam", 7));
    flow.telegram
        .say(GROUP, ANN, "@vocative_bot refund the jam");
    let card = flow.telegram_card(GROUP).await;
    let pressed = flow
        .telegram
        .callback(GROUP, ANN, card.message_id, &data(&card, "Approve"));
    let is_told = || {
        let answer = flow.telegram.callback_answer(&pressed);
        answer.is_some_and(|answer| answer.to_string().contains("You can't decide this"))
    };
    flow.wait_until("Ann is told that she asked herself", is_told)
        .await;
    flow.model.enqueue(ModelReply::text("Bob said no."));
    flow.telegram
        .callback(GROUP, BOB, card.message_id, &data(&card, "Deny"));
    flow.telegram_outcome(GROUP, &card, "Denied").await;
    flow.settle().await;
    assert!(made(&shop).is_empty());
    let told = flow.model.requests().pop().unwrap().body.to_string();
    assert!(told.contains("Bob did not allow it"), "{told}");
    assert_eq!(
        flow.telegram_posts(GROUP).last().map(String::as_str),
        Some("Bob said no.")
    );
    let status = flow.status().await;
    assert_eq!(status["tools"][0]["denied"], 1, "{status}");
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_decides_expires_and_is_answered() {
    let settings = format!("{REQUESTER}\napproval_expires_s = 1");
    let (mut flow, shop) = with_refunds(&settings, None).await;
    flow.model.enqueue(refund("tea", 120));
    flow.model
        .enqueue(ModelReply::text("Nobody allowed it in time."));
    let asked = flow.slack.say(GENERAL, "ann", "@vocative refund the tea");
    let answer = flow
        .slack_post(GENERAL, |post| {
            post.is_reply_in(&asked) && post.text == "Nobody allowed it in time."
        })
        .await;
    assert_eq!(answer.thread_ts.as_deref(), Some(asked.as_str()));
    let card = flow
        .slack_post(GENERAL, |post| post.text.contains("Expired"))
        .await;
    assert!(buttons(&card).is_empty(), "{card:?}");
    assert!(made(&shop).is_empty());
    let told = flow.model.requests().pop().unwrap().body.to_string();
    assert!(told.contains("nobody decided about it in time"), "{told}");
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_cancels_what_waits() {
    let called = Called {
        by_slack: true,
        by_telegram: false,
    };
    let (mut flow, shop) = with_refunds(REQUESTER, Some(called)).await;
    flow.model.enqueue(refund("tea", 120));
    let asked = flow.slack.say(GENERAL, "ann", "@vocative refund the tea");
    let card = flow.card(&asked).await;
    flow.slack.reply(GENERAL, "ann", &asked, "stop");
    flow.outcome(&card, "Cancelled").await;
    flow.settle().await;
    assert!(made(&shop).is_empty());
    assert_eq!(flow.model.requests().len(), 1);
    assert_eq!(flow.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_decide_by_name_and_a_grant_is_used_until_it_is_revoked() {
    let (mut flow, shop) = with_refunds("approvers = \"four_eyes\"", None).await;
    let asks = async |flow: &Flow| {
        flow.model.enqueue(refund("tea", 120));
        flow.slack.say(GENERAL, "ann", "@vocative refund the tea")
    };
    let asked = asks(&flow).await;
    let card = flow.card(&asked).await;
    let listed = flow.cli_json(&["approvals", "list"]).await;
    let id = listed[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(listed[0]["arguments"], r#"{"what":"tea","amount":120}"#);
    assert_eq!(listed[0]["asked_by"], json!(["Ann"]));
    assert_eq!(flow.status().await["runs"]["approvals_open"], 1);
    let shown = flow.cli(&["approvals", "show", &id]).await;
    assert!(shown.stdout.contains("amount:\n120"), "{shown:?}");

    // Who asked is not a second pair of eyes, whatever the command is called with.
    let own = flow
        .cli(&["approvals", "approve", &id, "--by", "ann"])
        .await;
    assert_eq!(own.status, Some(1), "{own:?}");
    assert!(own.stderr.contains("another person than Ann"), "{own:?}");
    let strange = flow
        .cli(&["approvals", "approve", &id, "--by", "<!here>"])
        .await;
    assert_eq!(strange.status, Some(1), "{strange:?}");
    flow.model.enqueue(ModelReply::text("It is refunded."));
    let carl = ["approvals", "approve", &id, "--by", "carl", "--for-a-day"];
    assert_eq!(flow.cli(&carl).await.status, Some(0));
    assert_eq!(flow.cli(&carl).await.status, Some(1), "it is decided");
    let outcome = flow.outcome(&card, "Approved").await;
    assert!(outcome.contains("by carl, who runs me"), "{outcome}");
    flow.settle().await;
    assert_eq!(made(&shop).len(), 1);

    // The same call needs nobody for a day, until somebody takes that back.
    flow.model.enqueue(refund("tea", 120));
    flow.model.enqueue(ModelReply::text("Once more."));
    let again = flow.slack.say(GENERAL, "ann", "@vocative refund the tea");
    assert_eq!(flow.slack_reply(GENERAL, &again).await.text, "Once more.");
    assert_eq!(made(&shop).len(), 2);
    let grants = flow.cli_json(&["approvals", "grants"]).await;
    assert_eq!(grants[0]["uses"], 1, "{grants}");
    let grant = grants[0]["id"].as_str().unwrap();
    let revoked = flow
        .cli(&["approvals", "revoke", grant, "--by", "carl"])
        .await;
    assert_eq!(revoked.status, Some(0), "{revoked:?}");

    let asked = asks(&flow).await;
    let card = flow.card(&asked).await;
    let listed = flow.cli_json(&["approvals", "list"]).await;
    let id = listed[0]["id"].as_str().unwrap().to_owned();
    flow.model.enqueue(ModelReply::text("Not this time."));
    let deny = [
        "approvals",
        "deny",
        &id,
        "--by",
        "carl",
        "--note",
        "ask Dora",
    ];
    assert_eq!(flow.cli(&deny).await.status, Some(0));
    flow.outcome(&card, "Denied").await;
    flow.settle().await;
    let told = flow.model.requests().pop().unwrap().body.to_string();
    assert!(
        told.contains("carl did not allow it, and said: ask Dora"),
        "{told}"
    );
    assert_eq!(made(&shop).len(), 2);
    let all = flow.cli_json(&["approvals", "list", "--all"]).await;
    assert_eq!(all[0]["state"], "denied", "{all}");
    assert_eq!(flow.stop().await, Some(0));
}
