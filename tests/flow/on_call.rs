//! The on-call rota of `config/examples/on-call.toml` in both sandboxes, with scripted models: who is on call, the
//! folder of the runbooks and where services are restarted are the flow's.

use std::net::{Ipv4Addr, SocketAddr};

use serde_json::json;
use toml::{Table, Value};
use vocative_sandbox::model::ModelReply;
use vocative_sandbox::orders::OrderServer;
use vocative_sandbox::telegram::TelegramWorld;

use crate::approvals::data;
use crate::harness::{Flow, FlowBuilder};

const GENERAL: &str = "#general";
const GROUP: i64 = TelegramWorld::SUPERGROUP;
const BOB: i64 = TelegramWorld::BOB;
const RUNBOOK: &str =
    "# Checkout\n\n## It answers 500\nRestart checkout once, and tell the shop.\n";
const NOTE: &str = "Checkout answered 500 and was restarted; Bob allowed it. Tell the shop.";

/// The example beside the flow's own daemon and channels. Bob is on call.
async fn on_call(shop: &OrderServer) -> Flow {
    let open = "allow_chats = [\"*\"]\nallow_people = [\"*\"]\n";
    let mut flow = FlowBuilder::default().telegram(open).prepare().await;
    let text = std::fs::read_to_string(flow.config_path()).unwrap();
    let mut config: Table = text.parse().unwrap();
    let example = std::fs::read_to_string("config/examples/on-call.toml").unwrap();
    let mut example: Table = example.parse().unwrap();
    let scripted = config["models"]["scripted"].clone();
    let models = config["models"].as_table_mut().unwrap();
    for name in example["models"].as_table().unwrap().keys() {
        models.insert(name.clone(), scripted.clone());
    }
    let host = shop.addr().to_string();
    let restart = example["tools"]["restart"].as_table_mut().unwrap();
    restart.remove("bearer");
    restart.insert("url".to_owned(), format!("http://{host}/orders").into());
    restart.insert("allow_private".to_owned(), vec![Value::from(host)].into());
    let bob = ["acme/U0BOB".to_owned(), format!("team/{BOB}")];
    let bob = bob.map(Value::from).to_vec();
    restart.insert("approvers".to_owned(), bob.into());
    example["knowledge"]["runbooks"]["paths"] = vec![Value::from("runbooks")].into();
    example["schedules"]["morning"]["conversation"] = "acme/C0GENERAL".into();
    for table in ["agents", "networks", "tools", "knowledge", "schedules"] {
        config.insert(table.to_owned(), example.remove(table).unwrap());
    }
    config["defaults"]["agent"]["model"] = "good".into();
    std::fs::write(flow.config_path(), config.to_string()).unwrap();
    let folder = flow.directory().join("runbooks");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("checkout.md"), RUNBOOK).unwrap();
    flow.start().await;
    let is_read = |status: &serde_json::Value| status["knowledge"][0]["documents"] == 1;
    flow.wait_for_status("the runbooks are read", is_read).await;
    flow
}

async fn shop() -> OrderServer {
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    OrderServer::start(anywhere).await.unwrap()
}

fn sorted(severity: &str) -> ModelReply {
    ModelReply::tool_call("c1", "set_state", json!({"severity": severity}))
}

/// What the agents say to an alert that pages, up to the call that waits.
fn script_page(flow: &Flow) {
    let search = json!({"queries": ["checkout answers 500"]});
    let restart = json!({"service": "checkout", "why": "it answers 500"});
    for reply in [
        sorted("page"),
        ModelReply::text("Checkout, since 03:10."),
        ModelReply::tool_call("c2", "knowledge_search", search),
        ModelReply::text("checkout.md: restart it once."),
        ModelReply::tool_call("c3", "restart", restart),
    ] {
        flow.model.enqueue(reply);
    }
}

fn script_end(flow: &Flow) {
    flow.model
        .enqueue(ModelReply::text("Checkout is restarted."));
    flow.model.enqueue(ModelReply::text(NOTE));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alert_is_sorted_looked_up_and_acted_upon_once_who_is_on_call_allows_it() {
    let shop = shop().await;
    let mut flow = on_call(&shop).await;
    script_page(&flow);
    let alert = "@vocative ALERT checkout: 500 since 03:10";
    let asked = flow.slack.say(GENERAL, "ann", alert);
    let card = flow.card(&asked).await;
    // What the runbook says was found, and nothing is done before Bob allows it, through a kill.
    let found = flow.model.requests()[3].body["messages"].to_string();
    assert!(found.contains("Restart checkout once"), "{found}");
    flow.press("ann", &card, "Approve");
    flow.told_privately("U0ANN", "can't decide").await;
    flow.kill().await;
    flow.start().await;
    assert!(shop.orders().is_empty());
    script_end(&flow);
    flow.press("bob", &card, "Approve");
    flow.outcome(&card, "Approved").await;
    flow.slack_post(GENERAL, |post| {
        post.is_reply_in(&asked) && post.text == NOTE
    })
    .await;
    flow.settle().await;
    let restarts = shop.orders();
    assert_eq!(restarts.len(), 1);
    assert_eq!(restarts[0].body["service"], "checkout");
    // The card and the note; every model was asked once.
    assert_eq!(flow.slack_posts(GENERAL).len(), 2);
    assert_eq!(flow.model.requests().len(), 7);

    // Noise ends with a note.
    flow.model.enqueue(sorted("noise"));
    flow.model.enqueue(ModelReply::text("A test of the pager."));
    flow.model.enqueue(ModelReply::text("Nothing to do."));
    let asked = flow.slack.say(GENERAL, "ann", "@vocative ALERT test");
    let told = flow.slack_reply(GENERAL, &asked).await;
    assert_eq!(told.text, "Nothing to do.");

    // In the morning the night is summed up, by one agent.
    let listed = flow.cli_json(&["schedules", "list"]).await;
    let id = listed[0]["id"].to_string();
    flow.model
        .enqueue(ModelReply::text("One restart; tell the shop."));
    flow.cli(&["schedules", "run", &id]).await;
    flow.slack_post(GENERAL, |post| post.text == "One restart; tell the shop.")
        .await;
    flow.settle().await;
    assert_eq!(flow.model.requests().len(), 11);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alert_in_telegram_waits_for_the_same_person() {
    let shop = shop().await;
    let flow = on_call(&shop).await;
    script_page(&flow);
    let alert = "@vocative_bot ALERT checkout: 500 since 03:10";
    flow.telegram.say(GROUP, TelegramWorld::ANN, alert);
    let card = flow.telegram_card(GROUP).await;
    script_end(&flow);
    let approve = data(&card, "Approve");
    flow.telegram
        .callback(GROUP, BOB, card.message_id, &approve);
    flow.telegram_outcome(GROUP, &card, "Approved").await;
    let is_told = || flow.telegram_posts(GROUP).iter().any(|text| text == NOTE);
    flow.wait_until("the note is there", is_told).await;
    flow.settle().await;
    assert_eq!(shop.orders().len(), 1);
    assert_eq!(flow.model.requests().len(), 7);
}
