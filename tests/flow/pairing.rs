//! People who are let in to direct chats by a code, and accounts that are joined by one.

use serde_json::Value;
use vocative_core::code::Code;
use vocative_sandbox::telegram::TelegramWorld;

use crate::harness::{Flow, FlowBuilder};

const ANN: i64 = TelegramWorld::ANN;

/// The code in what somebody was told.
fn code_in(told: &str) -> String {
    let mut codes = told
        .split([' ', '"', '\n', '\u{201c}'])
        .filter_map(Code::read);
    codes
        .next()
        .unwrap_or_else(|| panic!("no code is in {told}"))
        .shown()
}

/// The line that says a code in a private chat.
async fn offered(flow: &Flow, chat: i64) -> String {
    let is_offer = |text: &String| text.contains("do not know you");
    flow.wait_until("a code is told", || {
        flow.telegram_posts(chat).iter().any(is_offer)
    })
    .await;
    let posts = flow.telegram_posts(chat);
    posts.into_iter().find(is_offer).unwrap()
}

async fn listed(flow: &Flow) -> Vec<(String, bool)> {
    let people = flow.cli_json(&["pairing", "list"]).await;
    let people = people.as_array().unwrap().iter();
    let entry = |it: &Value| {
        let person = it["person"].as_str().unwrap().to_owned();
        (person, it["approved_at_ms"].is_i64())
    };
    people.map(entry).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stranger_on_telegram_is_let_in_by_their_code_and_stays_so() {
    let mut flow = FlowBuilder::default()
        .telegram("pairing = true\nallow_chats = [\"*\"]")
        .offline()
        .start()
        .await;
    flow.telegram.say(ANN, ANN, "granite");
    let code = code_in(&offered(&flow, ANN).await);
    flow.telegram.say(ANN, ANN, "granite, again");
    flow.settle().await;
    assert_eq!(flow.telegram_posts(ANN).len(), 1, "one line, not one each");
    assert_eq!(listed(&flow).await, [("5001".to_owned(), false)]);
    let kept = flow.rows("SELECT count(*) FROM turns");
    assert_eq!(kept, 0, "nothing is stored of somebody who is not served");

    let refused = flow
        .cli(&["pairing", "approve", "team", "AAAA-AAAA", "--by", "ops"])
        .await;
    assert!(
        refused.stderr.contains("told nobody that code"),
        "{refused:?}"
    );
    let elsewhere = flow
        .cli(&["pairing", "approve", "acme", &code, "--by", "ops"])
        .await;
    assert!(
        elsewhere.stderr.contains("told nobody that code"),
        "{elsewhere:?}"
    );
    let let_in = flow
        .cli(&["pairing", "approve", "team", &code, "--by", "ops"])
        .await;
    assert!(
        let_in.stdout.starts_with("team/5001 is let in"),
        "{let_in:?}"
    );
    flow.wait_until("Ann is told", || {
        flow.telegram_posts(ANN)
            .iter()
            .any(|text| text.contains("You were let in"))
    })
    .await;
    let question = flow.telegram.say(ANN, ANN, "zebra?");
    let answer = flow.telegram_reply(ANN, question).await;
    assert!(answer.text.contains("zebra"), "{}", answer.text);
    // It is known after a kill and after a reload.
    flow.kill().await;
    flow.start().await;
    flow.reload().await;
    let question = flow.telegram.say(ANN, ANN, "yak?");
    flow.telegram_reply(ANN, question).await;

    let revoke = ["pairing", "revoke", "team/5001", "--by", "ops"];
    let revoked = flow.cli(&revoke).await;
    assert_eq!(revoked.status, Some(0), "{revoked:?}");
    let before = flow.telegram_posts(ANN).len();
    flow.telegram.say(ANN, ANN, "ibex?");
    flow.settle().await;
    assert_eq!(flow.telegram_posts(ANN).len(), before);
    let ibex = "SELECT count(*) FROM turns WHERE content LIKE '%ibex%'";
    assert_eq!(flow.rows(ibex), 0);
    // Without a daemon, too.
    assert_eq!(flow.stop().await, Some(0));
    assert_eq!(listed(&flow).await, []);
    let again = flow.cli(&revoke).await;
    assert!(again.stderr.contains("was not let in"), "{again:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_slack_only_whoever_was_let_in_is_answered_directly_and_all_are_in_channels() {
    let flow = FlowBuilder::default()
        .slack("pairing = true\nallow_people = []")
        .offline()
        .start()
        .await;
    let root = flow.slack.say("#general", "ann", "@vocative zebra?");
    flow.slack_reply("#general", &root).await;
    flow.slack.say("D0ANN", "ann", "yak?");
    let told = flow.slack_post("D0ANN", |post| post.shown().contains("do not know you"));
    let code = code_in(&told.await.shown());
    let let_in = flow
        .cli(&["pairing", "approve", "acme", &code, "--by", "ops"])
        .await;
    assert_eq!(let_in.status, Some(0), "{let_in:?}");
    flow.slack.say("D0ANN", "ann", "ibex?");
    flow.slack_post("D0ANN", |post| post.shown().contains("ibex"))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pairing_where_everybody_is_let_in_is_refused() {
    let flow = FlowBuilder::default()
        .slack("pairing = true")
        .prepare()
        .await;
    let checked = flow.cli(&["check"]).await;
    assert_ne!(checked.status, Some(0));
    assert!(
        checked.stderr.contains("channels.slack.acme.pairing"),
        "{checked:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn somebody_joins_their_account_on_telegram_to_that_on_slack() {
    let flow = FlowBuilder::default().offline().start().await;
    flow.slack
        .slash_command("#general", "U0ANN", "/vocative", "link");
    flow.told_privately("U0ANN", "in a direct chat").await;
    flow.slack
        .slash_command("D0ANN", "U0ANN", "/vocative", "link");
    let told = flow.told_privately("U0ANN", "join your account").await;
    let said = flow
        .telegram
        .say(ANN, ANN, &format!("/link {}", code_in(&told)));
    let answer = flow.telegram_reply(ANN, said).await;
    assert!(answer.text.contains("one person's now"), "{}", answer.text);
    flow.told_privately("U0ANN", "was said by team/").await;
    flow.telegram.duplicate_update();
    flow.settle().await;
    assert_eq!(flow.telegram_posts(ANN).len(), 1);
    let joined = "SELECT count(*) FROM participants WHERE person_id IS NOT NULL";
    assert_eq!(flow.rows(joined), 2);
    // What one account has forgotten, the other keeps; they are joined no more.
    let kept = flow.telegram.say(ANN, ANN, "zebra?");
    flow.telegram_reply(ANN, kept).await;
    flow.slack
        .slash_command("D0ANN", "U0ANN", "/vocative", "forget me yes");
    flow.wait_until("it is forgotten", || flow.rows(joined) == 0)
        .await;
    assert_eq!(
        flow.rows("SELECT count(*) FROM turns WHERE content = 'zebra?'"),
        1
    );
    let left = flow.telegram.say(ANN, ANN, "/link -");
    assert!(
        flow.telegram_reply(ANN, left)
            .await
            .text
            .contains("joined to no other")
    );
}
