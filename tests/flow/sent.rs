//! What a model is sent: answers of other threads, and what a run was sent, shown later.

use rusqlite::Connection;
use serde_json::Value;
use vocative_sandbox::model::ModelReply;

use crate::harness::{Flow, FlowBuilder, said};

/// Asks in the channel and waits until the answer is out.
async fn ask(flow: &Flow, text: &str, answer: &str) -> String {
    flow.model.enqueue(ModelReply::text(answer));
    let asked = flow.slack.say("#general", "ann", text);
    flow.slack_reply("#general", &asked).await;
    flow.settle().await;
    asked
}

/// Ann calls herself Annabel from now on, and Slack tells of it.
async fn rename_ann(flow: &Flow) {
    flow.slack.change_world(|world| {
        let ann = world.users.iter_mut().find(|user| user.id == "U0ANN");
        ann.unwrap().display_name = "Annabel".to_owned();
    });
    flow.slack.raw_event(serde_json::json!({
        "type": "user_change", "event_ts": "1763712700.000900",
        "user": {"id": "U0ANN", "team_id": "T0ACME", "name": "ann", "real_name": "Ann Example",
                 "profile": {"display_name": "Annabel", "real_name": "Ann Example"}},
    }));
    flow.wait_until_heard().await;
}

/// The run that answered a question of the channel.
async fn run_of(flow: &Flow, question: &str) -> String {
    let connection = Connection::open(flow.directory().join("data/vocative.db")).unwrap();
    let sql = "SELECT lower(hex(r.uuid)) FROM runs r JOIN run_triggers g ON g.run_id = r.id
               JOIN turns t ON t.seq = g.turn_seq WHERE instr(t.content, ?1)";
    let id: String = connection
        .query_row(sql, [question], |row| row.get(0))
        .unwrap();
    let parts = [&id[..8], &id[8..12], &id[12..16], &id[16..20], &id[20..]];
    parts.join("-")
}

async fn sent(flow: &Flow, run: &str) -> Value {
    flow.cli_json(&["prompt", "--run", run]).await
}

/// Roles and texts, as the sandbox's model heard them.
fn messages(view: &Value) -> Vec<(String, String)> {
    let text = |message: &Value, name: &str| message[name].as_str().unwrap().to_owned();
    let messages = view["messages"].as_array().unwrap().iter();
    messages
        .map(|message| (text(message, "role"), text(message, "content")))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn earlier_questions_of_a_channel_come_with_the_answers_of_their_threads() {
    let flow = Flow::start_default().await;
    let first = ask(&flow, "@vocative when is the deploy?", "On Friday.").await;
    flow.model.enqueue(ModelReply::text("At three."));
    flow.slack
        .say_in("#general", "ann", &first, "at what time?");
    flow.wait_for_model(2).await;
    flow.settle().await;
    // One whose answer is still being made.
    flow.model.hold();
    flow.slack
        .say("#general", "bob", "@vocative who is on call?");
    flow.wait_for_model(3).await;
    let third = flow.slack.say("#general", "ann", "@vocative and the log?");
    flow.wait_for_model(4).await;
    assert_eq!(
        flow.model_history(3),
        [
            said("user", "Ann: @Vocative when is the deploy?"),
            said("assistant", "On Friday."),
            said("user", "Ann: @Vocative and the log?"),
        ]
    );
    // In its own thread the question is there once, as its root.
    assert_eq!(
        flow.model_history(1),
        [
            said("user", "Ann: @Vocative when is the deploy?"),
            said("assistant", "On Friday."),
            said("user", "Ann: at what time?"),
        ]
    );
    flow.model.release();
    flow.slack_reply("#general", &third).await;
    flow.settle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_run_was_sent_is_shown_as_it_was_until_a_message_of_it_changes() {
    let flow = FlowBuilder::default()
        .agent(
            "vocative",
            "tools = [\"conversation_search\"]\n\
             instructions = \"You are {{agent}} in {{chat}} on {{date}} for {{participant}}.\"",
        )
        .start()
        .await;
    ask(&flow, "@vocative when is the deploy?", "On Friday.").await;
    let asked = ask(&flow, "@vocative and what of the log?", "It is long.").await;
    ask(&flow, "@vocative thanks", "Sure.").await;
    let run = run_of(&flow, "what of the log").await;
    let as_sent = flow.model_prompt(1);

    // New names, instructions and options don't change what was sent.
    let connection = Connection::open(flow.directory().join("data/vocative.db")).unwrap();
    rename_ann(&flow).await;
    flow.reconfigure("You are {{agent}}", "token_budget aside, you are {{agent}}");
    flow.reload().await;
    let view = sent(&flow, &run).await;
    assert_eq!(view["as_sent"]["is_same"], true, "{view:#}");
    assert_eq!(messages(&view), as_sent);
    assert_eq!(view["as_sent"]["tools"][0], "conversation_search");
    let told = flow.cli(&["prompt", "--run", &run]).await;
    assert!(told.stdout.contains("\nas it was sent: run "), "{told:?}");
    // `prompt` of the conversation leads there.
    let thread = flow.conversation_id("C0GENERAL", Some(&asked)).await;
    let told = flow.cli(&["prompt", &thread]).await;
    assert!(told.stdout.contains(&format!("--run {run}")), "{told:?}");
    // Nothing waits: the person who asked is answered, not the agent.
    assert!(told.stdout.contains("for Annabel."), "{told:?}");

    // An edit is named, and so is a delete.
    let edited = "UPDATE turns SET content = 'x', revision = 2 WHERE instr(content, 'the deploy')";
    assert_eq!(connection.execute(edited, []).unwrap(), 1);
    let view = sent(&flow, &run).await;
    assert_eq!(view["as_sent"]["is_same"], false);
    let changes = view["as_sent"]["changes"].to_string();
    assert!(changes.contains("it was edited since"), "{changes}");
    let hidden = "UPDATE turns SET content = '', visibility = 'hidden' WHERE content = 'x'";
    assert_eq!(connection.execute(hidden, []).unwrap(), 1);
    let told = flow.cli(&["prompt", "--run", &run]).await;
    assert_eq!(told.status, Some(0));
    assert!(told.stdout.contains("not as it was sent: run "), "{told:?}");
    assert!(told.stdout.contains("deleted or erased"), "{told:?}");

    let unknown = flow
        .cli(&["prompt", "--run", "00000000-0000-0000-0000-000000000000"])
        .await;
    assert_eq!(unknown.status, Some(1), "{unknown:?}");
    assert!(unknown.stderr.contains("not recorded"), "{unknown:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erasure_leaves_no_name_and_no_record_behind() {
    let flow = Flow::start_default().await;
    ask(&flow, "@vocative zebra?", "Yes.").await;
    let connection = Connection::open(flow.directory().join("data/vocative.db")).unwrap();
    let count = |sql: &str| -> i64 { connection.query_row(sql, [], |row| row.get(0)).unwrap() };
    rename_ann(&flow).await;
    assert_eq!(count("SELECT count(*) FROM former_names"), 1);
    let told = flow
        .cli(&["erase", "--person", "acme/U0ANN", "--yes"])
        .await;
    assert_eq!(told.status, Some(0), "{told:?}");
    assert_eq!(count("SELECT count(*) FROM former_names"), 0);
    let run = run_of_any(&connection);
    let view = sent(&flow, &run).await;
    assert!(
        view["as_sent"]["changes"].to_string().contains("erased"),
        "{view:#}"
    );
    let told = flow
        .cli(&["erase", "--conversation", "acme/#general", "--yes"])
        .await;
    assert_eq!(told.status, Some(0), "{told:?}");
    assert_eq!(count("SELECT count(*) FROM sent_prompts"), 0);
}

fn run_of_any(connection: &Connection) -> String {
    let sql = "SELECT lower(hex(uuid)) FROM runs LIMIT 1";
    let id: String = connection.query_row(sql, [], |row| row.get(0)).unwrap();
    let parts = [&id[..8], &id[8..12], &id[12..16], &id[16..20], &id[20..]];
    parts.join("-")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_has_its_own_time_and_a_thread_its_question() {
    let flow = Flow::start_default().await;
    let asked = ask(&flow, "@vocative when?", "At nine.").await;
    let thread = flow.conversation_id("C0GENERAL", Some(&asked)).await;
    let shown = flow.cli_json(&["conversations", "show", &thread]).await;
    assert_eq!(shown["root"]["text"], "@vocative when?", "{shown:#}");
    let answer = &shown["turns"][0];
    assert!(answer["sent_at_ms"].as_i64() > shown["root"]["sent_at_ms"].as_i64());
    let told = flow.cli(&["conversations", "show", &thread]).await;
    assert!(told.stdout.contains("Ann: @vocative when?"), "{told:?}");

    let told = flow.cli(&["conversations", "export", &thread]).await;
    let lines: Vec<Value> = told
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let time = |line: &Value, name: &str| line[name].as_str().map(ToOwned::to_owned);
    assert!(time(&lines[1], "timestamp") > time(&lines[0], "timestamp"));
    // Its place in the room's order is the question's.
    assert_eq!(time(&lines[1], "orderedAt"), time(&lines[0], "timestamp"));
    assert_eq!(time(&lines[0], "orderedAt"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_that_a_model_makes_up_is_no_participant() {
    let flow = FlowBuilder::default()
        .agent("vocative", "tools = [\"conversation_search\"]")
        .start()
        .await;
    flow.model.enqueue(ModelReply::tool_call(
        "call_1",
        "launch_rockets",
        serde_json::json!({}),
    ));
    ask(&flow, "@vocative fire!", "I can't.").await;
    let connection = Connection::open(flow.directory().join("data/vocative.db")).unwrap();
    let sql = "SELECT count(*) FROM participants WHERE instr(platform_id, 'rockets')";
    let count: i64 = connection.query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(count, 0);
}
