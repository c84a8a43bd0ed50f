//! What is to start at a time: made in rooms, fired once, and changed by whose it is.

use serde_json::json;
use vocative_sandbox::model::ModelReply;
use vocative_sandbox::telegram::TelegramWorld;

use crate::harness::{Flow, FlowBuilder};

const ANN: i64 = TelegramWorld::ANN;
const BOB: i64 = TelegramWorld::BOB;
const GROUP: i64 = TelegramWorld::SUPERGROUP;
const OPEN: &str = "allow_chats = [\"*\"]\nallow_people = [\"*\"]";

/// Says something in the group and returns what the bot says to it.
async fn order(flow: &Flow, person: i64, text: &str) -> String {
    let said = flow.telegram.say(GROUP, person, text);
    flow.telegram_reply(GROUP, said).await.text
}

fn posts_with(flow: &Flow, text: &str) -> usize {
    let posts = flow.telegram_posts(GROUP).into_iter();
    posts.filter(|post| post.contains(text)).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reminder_is_said_in_the_room_once_whatever_is_killed() {
    let mut flow = FlowBuilder::default().telegram(OPEN).start().await;
    let made = order(&flow, ANN, "/remind in 2h drink tea").await;
    assert!(made.starts_with("#1: I will say it here on "), "{made}");
    let started = order(&flow, ANN, "/remind run 1").await;
    assert_eq!(started, "#1 starts now.");
    flow.wait_until("the reminder is said", || {
        posts_with(&flow, "drink tea") > 0
    })
    .await;
    flow.settle().await;
    let posts = flow.telegram_posts(GROUP);
    let said = posts.iter().find(|post| post.contains("drink tea"));
    assert!(
        said.is_some_and(|it| it.starts_with("Reminder for @Ann")),
        "{posts:?}"
    );
    // No model was asked, and its own time is still to come.
    assert!(flow.model.requests().is_empty());
    flow.kill().await;
    flow.start().await;
    let listed = order(&flow, BOB, "/remind list").await;
    assert!(
        listed.contains("drink tea") && listed.contains("next "),
        "{listed}"
    );
    assert_eq!(posts_with(&flow, "Reminder for"), 1);
    // It is Ann's.
    let refused = order(&flow, BOB, "/remind cancel 1").await;
    assert_eq!(refused, "There is no #1 here that is yours.");
    assert_eq!(
        order(&flow, ANN, "/remind cancel 1").await,
        "#1 is cancelled."
    );
    assert_eq!(
        order(&flow, ANN, "/remind").await,
        "Nothing is planned here."
    );
    let odd = order(&flow, ANN, "/remind me to dance").await;
    assert!(
        odd.starts_with("That can't be: I don't understand when."),
        "{odd}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schedule_asks_its_agent_in_its_owner_s_name() {
    let flow = FlowBuilder::default().telegram(OPEN).start().await;
    let made = order(
        &flow,
        ANN,
        "/schedule weekdays 9:00 Europe/Berlin say what is open",
    )
    .await;
    assert!(made.contains("vocative will do it here on"), "{made}");
    assert!(made.contains("09:00 (Europe/Berlin)"), "{made}");
    let often = order(&flow, ANN, "/schedule cron */5 * * * * say hello").await;
    assert!(often.contains("every 15 minutes at most"), "{often}");
    assert_eq!(order(&flow, ANN, "/schedule run 1").await, "#1 starts now.");
    flow.wait_for_model(1).await;
    flow.settle().await;
    let history = flow.model_history(0);
    let (role, asked) = history.last().expect("the model was asked something");
    assert_eq!(role, "user");
    assert!(
        asked.contains("Scheduled by Ann, #1, due ") && asked.ends_with("say what is open"),
        "{history:?}"
    );
    let posts = flow.telegram_posts(GROUP);
    assert!(posts.len() > 3, "the answer is posted: {posts:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reminder_of_a_slash_command_is_said_in_the_channel() {
    let flow = FlowBuilder::default().slack(OPEN).start().await;
    let order = |text: &str| {
        flow.slack
            .slash_command("#general", "U0ANN", "/vocative", text);
    };
    // What somebody wrote is no markup in an answer.
    order("remind tomorrow 9:00 drink tea, &lt;https://example.com|all&gt;");
    flow.wait_until("Ann is told", || !flow.slack.ephemerals().is_empty())
        .await;
    order("remind");
    flow.wait_until("they are listed", || flow.slack.ephemerals().len() > 1)
        .await;
    let told = flow.slack.ephemerals().remove(1).text;
    let is_link = told.contains("<https://example.com|all>");
    assert!(told.contains("drink tea, &lt;") && !is_link, "{told}");
    order("remind run 1");
    let post = flow.slack_post("#general", |post| post.shown().contains("drink tea"));
    let shown = post.await.shown();
    assert!(shown.starts_with("Reminder for "), "{shown}");
    assert!(shown.contains("U0ANN") || shown.contains("Ann"), "{shown}");
    flow.settle().await;
    assert!(flow.model.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_plans_shows_and_changes() {
    let flow = FlowBuilder::default().telegram(OPEN).start().await;
    order(&flow, ANN, "/remind in 2h tea").await;
    let place = flow.conversation_id(&GROUP.to_string(), None).await;
    let added = flow
        .cli(&["schedules", "add", &place, "in 2h", "drink coffee"])
        .await;
    assert!(added.stdout.contains("#2 (active)"), "{}", added.stdout);
    for (command, state) in [("pause", "paused"), ("resume", "active"), ("run", "active")] {
        let told = flow.cli(&["schedules", command, "2"]).await;
        assert!(
            told.stdout.starts_with(&format!("#2 is {state}")),
            "{}",
            told.stdout
        );
    }
    flow.wait_until("the reminder is said", || {
        posts_with(&flow, "drink coffee") > 0
    })
    .await;
    flow.cli(&["schedules", "cancel", "2"]).await;
    let listed = flow.cli_json(&["schedules", "list"]).await;
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
    assert_eq!(listed[0]["owner_name"], "Ann");
    let shown = flow.cli_json(&["schedules", "show", "2"]).await;
    assert_eq!(shown["state"], "cancelled");
    assert_eq!(shown["firings"][0]["outcome"], "fired", "{shown}");
    let odd = flow.cli(&["schedules", "add", &place, "soon", "tea"]).await;
    assert!(
        odd.stderr.contains("I don't understand when"),
        "{}",
        odd.stderr
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schedule_of_the_configuration_is_there_once_its_chat_was_heard() {
    let schedule = format!(
        "[schedules.tea]\nconversation = \"team/{GROUP}\"\ncron = \"0 9 * * *\"\ntask = \"drink tea\"\n"
    );
    let mut flow = FlowBuilder::default()
        .telegram(OPEN)
        .config(&schedule)
        .start()
        .await;
    order(&flow, ANN, "/remind list").await;
    flow.restart().await;
    let listed = order(&flow, ANN, "/remind list").await;
    assert!(
        listed.contains("operator") && listed.contains("drink tea"),
        "{listed}"
    );
    assert_eq!(
        flow.cli_json(&["schedules", "list"]).await[0]["name"],
        "tea"
    );
    // It is nobody's in the room.
    let refused = order(&flow, ANN, "/remind cancel 1").await;
    assert_eq!(refused, "There is no #1 here that is yours.");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_plans_what_its_asker_agrees_to_and_a_schedule_plans_nothing() {
    let mut flow = FlowBuilder::default()
        .agent("vocative", "tools = [\"schedule\"]")
        .start()
        .await;
    let plan = |when: &str| {
        let arguments = json!({"when": when, "task": "stretch your legs", "is_for_you": true});
        ModelReply::tool_call("call_1", "schedule", arguments)
    };
    flow.model.enqueue(plan("whenever you like"));
    flow.model.enqueue(plan("weekdays 9:00 Europe/Berlin"));
    flow.model.enqueue(ModelReply::text("It is planned."));
    let asked = flow
        .slack
        .say("#general", "ann", "@vocative have us stretch every morning");
    // The first call can't be understood, but what it would do is asked first all the same.
    let first = flow.card(&asked).await;
    flow.press("bob", &first, "Approve");
    flow.press("ann", &first, "Approve");
    flow.outcome(&first, "Approved").await;
    let is_second = |post: &vocative_sandbox::slack::SlackPost| {
        post.ts != first.ts && post.shown().contains("weekdays 9:00 Europe/Berlin")
    };
    let card = flow.slack_post("#general", is_second).await;
    flow.settle().await;
    flow.kill().await;
    flow.start().await;
    flow.press("ann", &card, "Approve");
    flow.slack_post("#general", |post| post.shown().contains("It is planned."))
        .await;
    let told = flow.model.requests()[2].body.to_string();
    assert!(told.contains("I don't understand when"), "{told}");
    assert!(told.contains("#1: vocative will do it here on"), "{told}");
    // All of that run is shown in its order.
    let decided = flow.cli_json(&["approvals", "list", "--all"]).await;
    let run = decided[0]["run"].as_str().unwrap_or_default();
    let story = flow.cli(&["runs", "show", run]).await.stdout;
    let places = [
        "have us stretch every morning",
        "step 1, ",
        "whenever you like",
        "schedule approved by Ann",
        "schedule failed: ",
        "schedule done: #1",
        "It is planned.",
        "end ",
    ];
    let places = places.map(|words| {
        story
            .find(words)
            .unwrap_or_else(|| panic!("{words}: {story}"))
    });
    assert!(places.is_sorted(), "{places:?} {story}");
    let story = flow.cli_json(&["runs", "show", run]).await;
    assert_eq!(
        story["calls"][1]["approval"]["decided_by"], "Ann",
        "{story}"
    );
    let missing = flow.cli(&["runs", "show", "none"]).await;
    assert!(
        missing.stderr.contains("there is no run none"),
        "{}",
        missing.stderr
    );
    let listed = flow.cli(&["schedules", "list"]).await.stdout;
    assert_eq!(listed.matches("stretch your legs").count(), 1, "{listed}");
    // What it starts can plan nothing, whoever agrees.
    flow.model.enqueue(plan("daily 8:00"));
    flow.model.enqueue(ModelReply::text("I can't plan."));
    flow.cli(&["schedules", "run", "1"]).await;
    let is_third = |post: &vocative_sandbox::slack::SlackPost| {
        post.ts != card.ts && post.shown().contains("daily 8:00")
    };
    let third = flow.slack_post("#general", is_third).await;
    flow.settle().await;
    flow.press("ann", &third, "Approve");
    flow.slack_post("#general", |post| post.shown().contains("I can't plan."))
        .await;
    let told = flow.model.requests()[4].body.to_string();
    assert!(told.contains("a schedule starts can't plan"), "{told}");
}
