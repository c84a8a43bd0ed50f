//! What was said about a question stands in its prompt without being asked for, on both platforms; and what is deleted
//! stands nowhere any more.

use rusqlite::Connection;
use serde_json::{Value, json};
use vocative_sandbox::model::ModelReply;
use vocative_sandbox::slack::UserPost;
use vocative_sandbox::telegram::TelegramWorld;

use crate::harness::{Flow, FlowBuilder};

const GENERAL: &str = "#general";
const DEPLOY: &str = "The deploy of build 42 is planned for 15:00.";

/// What a model was shown as found, of the prompt with that number.
fn found(flow: &Flow, number: usize) -> Vec<String> {
    let prompt = flow.model_prompt(number).into_iter();
    let texts = prompt.map(|(_, text)| text);
    texts.filter(|text| text.starts_with("(found 2")).collect()
}

fn database(flow: &Flow) -> Connection {
    Connection::open(flow.directory().join("data/vocative.db")).unwrap()
}

fn count(connection: &Connection, sql: &str) -> i64 {
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

fn run_ids(connection: &Connection) -> Vec<String> {
    let mut statement = connection
        .prepare("SELECT lower(hex(uuid)) FROM runs ORDER BY id")
        .unwrap();
    let ids = statement
        .query_map([], |row| row.get::<_, String>(0))
        .unwrap();
    let dashed = |id: String| [&id[..8], &id[8..12], &id[12..16], &id[16..20], &id[20..]].join("-");
    ids.map(|id| dashed(id.unwrap())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_on_slack_is_answered_from_what_was_overheard() {
    let flow = Flow::start_default().await;
    let said = flow.slack.say(GENERAL, "ann", DEPLOY);
    flow.slack.post_with(UserPost {
        channel: GENERAL.to_owned(),
        user: "U0OTHERBOT".to_owned(),
        text: "The deploy of build 42 is green.".to_owned(),
        bot_id: Some("B0OTHER".to_owned()),
        ..UserPost::default()
    });
    flow.slack.say(GENERAL, "ann", "when was the last deploy?");
    flow.wait_until_heard().await;
    flow.model.enqueue(ModelReply::text("At 15:00."));
    let asked = flow
        .slack
        .say(GENERAL, "bob", "@vocative when is the deploy?");
    flow.slack_reply(GENERAL, &asked).await;
    flow.settle().await;
    let shown = found(&flow, 0);
    assert_eq!(shown.len(), 1, "{shown:?}");
    assert!(shown[0].ends_with(&format!(") Ann: {DEPLOY}")), "{shown:?}");

    // What the run was sent is shown again, and what it cost.
    let connection = database(&flow);
    let run = run_ids(&connection).remove(0);
    let view = flow.cli_json(&["prompt", "--run", &run]).await;
    assert_eq!(view["as_sent"]["is_same"], true, "{view:#}");
    assert!(view["recalled_tokens"].as_u64() > Some(0), "{view:#}");
    let told = flow.cli(&["prompt", "--run", &run, "--stats"]).await;
    assert!(told.stdout.contains("cost: recalled "), "{told:?}");

    // Deleted, it is gone from the answer that was made from it, and the record says so.
    flow.slack.delete(GENERAL, &said);
    flow.wait_until("the answer is gone", || {
        count(
            &connection,
            "SELECT count(*) FROM turns WHERE instr(content, '15:00')",
        ) == 0
    })
    .await;
    let view = flow.cli_json(&["prompt", "--run", &run]).await;
    let changes = view["as_sent"]["changes"].to_string();
    assert!(changes.contains("deleted or erased"), "{changes}");
    let steps = "SELECT count(*) FROM steps WHERE instr(message, '15:00')";
    assert_eq!(count(&connection, steps), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_on_telegram_is_answered_from_what_was_overheard() {
    let flow = Flow::start_default().await;
    let group = TelegramWorld::GROUP;
    flow.telegram.say(group, TelegramWorld::ANN, DEPLOY);
    flow.telegram.say(
        TelegramWorld::ANN,
        TelegramWorld::ANN,
        "the deploy is a secret",
    );
    flow.wait_until_heard().await;
    flow.settle().await;
    let asked = flow.telegram.say(
        group,
        TelegramWorld::BOB,
        "@vocative_bot when is the deploy?",
    );
    flow.telegram_reply(group, asked).await;
    let last = flow.model.requests().len() - 1;
    let shown = found(&flow, last);
    assert_eq!(shown.len(), 1, "{shown:?}");
    assert!(shown[0].contains(DEPLOY), "{shown:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_looked_up_is_a_setting_and_follows_the_lists_in_force() {
    let flow = FlowBuilder::default()
        .agent("vocative", "recall = \"auto\"")
        .slack("allow_people = [\"U0ANN\", \"U0BOB\"]")
        .start()
        .await;
    flow.slack.say(GENERAL, "ann", DEPLOY);
    flow.wait_until_heard().await;
    let ask = async |number: usize| {
        let asked = flow
            .slack
            .say(GENERAL, "bob", "@vocative when is the deploy?");
        flow.slack_reply(GENERAL, &asked).await;
        flow.settle().await;
        let tools = flow.model.requests()[number].body["tools"].clone();
        (found(&flow, number).len(), tools != Value::Null)
    };
    assert_eq!(ask(0).await, (1, true));
    flow.reconfigure("[\"U0ANN\", \"U0BOB\"]", "[\"U0BOB\"]");
    flow.reload().await;
    assert_eq!(ask(1).await, (0, true), "Ann is not served any more");
    flow.reconfigure("[\"U0BOB\"]", "[\"*\"]");
    flow.reconfigure("recall = \"auto\"", "recall = \"tool\"");
    flow.reload().await;
    assert_eq!(ask(2).await, (0, true));
    flow.reconfigure("recall = \"tool\"", "recall = \"off\"");
    flow.reload().await;
    assert_eq!(ask(3).await, (0, false), "there is no tool for it either");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_keeps_what_it_found_over_a_restart() {
    let mut flow = Flow::start_default().await;
    flow.slack.say(GENERAL, "ann", DEPLOY);
    flow.wait_until_heard().await;
    flow.model.hold();
    let asked = flow
        .slack
        .say(GENERAL, "bob", "@vocative when is the deploy?");
    flow.wait_for_model(1).await;
    assert_eq!(found(&flow, 0).len(), 1);
    flow.kill().await;
    // A search would not find it by these words.
    let edited = "UPDATE turns SET content = 'The rollout is at 16:00.', revision = 2
                  WHERE instr(content, 'planned')";
    assert_eq!(database(&flow).execute(edited, []).unwrap(), 1);
    flow.model.release();
    flow.start().await;
    flow.slack_reply(GENERAL, &asked).await;
    let shown = found(&flow, flow.model.requests().len() - 1);
    assert_eq!(shown.len(), 1, "{shown:?}");
    assert!(
        shown[0].ends_with("Ann: The rollout is at 16:00."),
        "{shown:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_deleted_between_two_steps_is_in_no_later_one_and_in_no_record() {
    let flow = Flow::start_default().await;
    let said = flow.slack.say(GENERAL, "ann", DEPLOY);
    flow.wait_until_heard().await;
    flow.model.hold();
    let search = json!({"queries": ["weather"]});
    flow.model.enqueue(ModelReply::tool_call(
        "call_1",
        "conversation_search",
        search,
    ));
    let asked = flow
        .slack
        .say(GENERAL, "bob", "@vocative when is the deploy?");
    flow.wait_for_model(1).await;
    assert_eq!(found(&flow, 0).len(), 1);
    flow.slack.delete(GENERAL, &said);
    flow.wait_until_heard().await;
    flow.model.release();
    flow.slack_reply(GENERAL, &asked).await;
    flow.settle().await;
    let requests = flow.model.requests();
    assert!(requests.len() > 1);
    for request in &requests[1..] {
        assert!(
            !request.body.to_string().contains("15:00"),
            "{}",
            request.body
        );
    }
    let connection = database(&flow);
    for sql in [
        "SELECT count(*) FROM steps WHERE instr(message, '15:00')",
        "SELECT count(*) FROM turns WHERE instr(content, '15:00')",
        "SELECT count(*) FROM sent_prompts WHERE instr(recipe, '15:00')",
        "SELECT count(*) FROM run_events WHERE instr(text, '15:00')",
    ] {
        assert_eq!(count(&connection, sql), 0, "{sql}");
    }
}
