//! What may be spent in a day: by one person, by all, on answers and on voice notes. Tokens count when they are
//! spent, and who has none left is told.

use serde_json::{Map, Value, json};
use vocative_sandbox::model::ModelReply;
use vocative_sandbox::telegram::{TelegramWorld, UserMessage};

use crate::catchup::acme;
use crate::harness::{Flow, FlowBuilder};

const ANN: i64 = TelegramWorld::ANN;

fn tokens_today(status: &Value, channel: &str) -> u64 {
    let channels = status["channels"].as_array().unwrap();
    let channel = channels.iter().find(|it| it["name"] == channel).unwrap();
    channel["tokens_today"].as_u64().unwrap()
}

fn answer(text: &str) -> ModelReply {
    ModelReply::text(text).usage(500, 100)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_spent_the_tokens_of_a_day_is_told_and_others_are_answered() {
    let mut flow = FlowBuilder::default()
        .slack("tokens_per_day_person = 600\ntokens_per_day = 1300")
        .start()
        .await;
    flow.model.enqueue(answer("first"));
    let asked = flow.slack.say("#general", "ann", "@vocative one?");
    flow.slack_reply("#general", &asked).await;
    flow.settle().await;
    assert_eq!(tokens_today(&flow.status().await, "acme"), 600);
    // A restart forgets nothing, and asking to be forgotten buys nothing.
    flow.restart().await;
    flow.slack.say("#general", "ann", "@vocative two?");
    flow.wait_until("Ann alone is told", || flow.slack.ephemerals().len() == 1)
        .await;
    let told = flow.slack.ephemerals().remove(0);
    assert_eq!(told.user, "U0ANN");
    assert!(told.text.contains("one person in a day"), "{}", told.text);
    // Bob has his own; what he spends ends everybody's.
    for (text, is_answered) in [("three?", true), ("four?", false)] {
        flow.model.enqueue(answer("second").usage(700, 0));
        let asked = flow.slack.say("#ops", "bob", &format!("@vocative {text}"));
        if is_answered {
            flow.slack_reply("#ops", &asked).await;
        }
        flow.settle().await;
    }
    let status = flow.status().await;
    assert_eq!(acme(&status)["tokens_today"], 1_300);
    assert_eq!(flow.model.requests().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_asked_at_once_is_not_all_answered_when_the_first_uses_the_tokens_up() {
    let flow = FlowBuilder::default()
        .slack("tokens_per_day_person = 600\nlive = \"off\"")
        .config("[defaults.model]\nmax_parallel = 1\n")
        .start()
        .await;
    flow.model.hold();
    flow.model.enqueue(answer("first"));
    flow.slack.say("#general", "ann", "@vocative one?");
    flow.wait_for_model(1).await;
    flow.slack.say("#ops", "ann", "@vocative two?");
    flow.wait_until_heard().await;
    flow.model.release();
    flow.settle().await;
    assert_eq!(flow.model.requests().len(), 1);
    let said = flow.slack_posts("#ops");
    assert!(said[0].1.contains("one person in a day"), "{said:?}");
}

/// A configuration in which the scripted model's server writes voice notes down, too.
async fn hearing(limits: &str) -> Flow {
    let mut flow = FlowBuilder::default().prepare().await;
    let text = std::fs::read_to_string(flow.config_path()).unwrap();
    let url = flow.model.openai_url();
    let further = format!(
        "[transcription]\nbase_url = \"{url}\"\nmodel = \"loopback-ear\"\napi_key = \"env:FLOW_MODEL_KEY\"\n{limits}\n"
    );
    std::fs::write(flow.config_path(), format!("{text}\n{further}")).unwrap();
    flow.start().await;
    flow
}

fn speak(flow: &Flow, bytes: usize) {
    let note = flow
        .telegram
        .add_file("v.oga", "audio/ogg", vec![b'O'; bytes]);
    let mut extra = Map::new();
    let mut note = note;
    note["duration"] = json!(3);
    extra.insert("voice".to_owned(), note);
    flow.telegram.send_with(UserMessage {
        chat: ANN,
        user: ANN,
        extra,
        ..UserMessage::default()
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writing_a_voice_note_down_is_counted_for_who_said_it() {
    let flow = hearing("[limits]\ntokens_per_day_person = 1000").await;
    flow.model.enqueue_transcript(Ok("hello"));
    flow.model.enqueue(answer("heard"));
    // 20,000 bytes are ten seconds of 17 tokens, and the words two more.
    speak(&flow, 20_000);
    flow.wait_for_model(1).await;
    flow.settle().await;
    assert_eq!(tokens_today(&flow.status().await, "team"), 172 + 600);
    // The next note and its answer use the rest up; the one after that is not written down today.
    for bytes in [60_000, 60_001] {
        flow.model.enqueue_transcript(Ok("hello"));
        speak(&flow, bytes);
        flow.settle().await;
    }
    flow.wait_until("the second note is heard", || {
        flow.model.voice_notes().len() == 2
    })
    .await;
    assert_eq!(flow.model.voice_notes().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_uses_the_tokens_up_between_its_steps_is_ended_and_not_begun_again() {
    let mut flow = FlowBuilder::default()
        .slack("tokens_per_day_person = 600\nlive = \"off\"")
        .start()
        .await;
    let search = serde_json::json!({"query": "deploy"});
    let call = ModelReply::tool_call("call_1", "conversation_search", search);
    flow.model.enqueue(call.usage(600, 50));
    flow.model.enqueue(answer("never asked for"));
    let asked = flow.slack.say("#general", "ann", "@vocative when?");
    let said = flow.slack_reply("#general", &asked).await;
    assert!(said.text.contains("one person in a day"), "{}", said.text);
    flow.settle().await;
    flow.restart().await;
    flow.settle().await;
    assert_eq!(flow.model.requests().len(), 1);
    assert_eq!(tokens_today(&flow.status().await, "acme"), 650);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn money_is_counted_by_person_and_room_and_ends_as_tokens_do() {
    let mut flow = FlowBuilder::default()
        .slack("cost_per_day_person = 3.0\nlive = \"off\"")
        .config(
            "[defaults.model]\nprice_input = 1000.0\nprice_cached = 100.0\nprice_output = 2000.0\n\
             max_output_tokens = 1000\n",
        )
        .start()
        .await;
    flow.model.enqueue(answer("first"));
    let asked = flow.slack.say("#general", "ann", "@vocative one?");
    flow.slack_reply("#general", &asked).await;
    flow.settle().await;
    let status = flow.status().await;
    assert_eq!(acme(&status)["cost_micros_today"], 700_000, "{status}");
    let thread = format!("acme/#general/{asked}");
    let show = ["conversations", "show", &thread, "--timeline"];
    let shown = flow.cli(&show).await.stdout;
    assert!(shown.contains(" tokens, cost 0.70"), "{shown}");
    flow.restart().await;
    // What it may cost is said before it is asked: 2.00 for the answer and more than 0.60 for the question.
    let question = format!("@vocative {}?", "a long question ".repeat(200));
    let asked = flow.slack.say("#general", "ann", &question);
    let said = flow.slack_reply("#general", &asked).await;
    assert!(
        said.text.contains("Answering this may cost up to 2."),
        "{said:?}"
    );
    assert!(said.text.contains("2.30 USD are left"), "{said:?}");
    assert_eq!(flow.model.requests().len(), 1);
    for (by, of) in [
        ("person", "Ann"),
        ("agent", "vocative"),
        ("channel", "acme"),
    ] {
        let costs = flow.cli_json(&["costs", "--by", by]).await;
        let expected = json!([{
            "of": of,
            "calls": 1,
            "prompt_tokens": 500,
            "cache_read_tokens": 0,
            "cache_write_tokens": 0,
            "completion_tokens": 100,
            "cost_micros": 700_000,
        }]);
        assert_eq!(costs, expected, "{by}");
    }
    let told = flow.cli(&["costs", "--by", "room"]).await;
    assert!(told.stdout.contains("0.70 USD together"), "{told:?}");
}
