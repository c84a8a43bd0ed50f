//! The help desk of `config/examples/help-desk.toml`, as it is, with scripted models.

use serde_json::json;
use toml::{Table, Value};
use vocative_sandbox::model::ModelReply;

use crate::harness::{Flow, FlowBuilder};

const GENERAL: &str = "#general";

/// The example beside the flow's own daemon and channels; its models are the scripted one.
async fn help_desk() -> Flow {
    let mut flow = FlowBuilder::default().prepare().await;
    let text = std::fs::read_to_string(flow.config_path()).unwrap();
    let mut config: Table = text.parse().unwrap();
    let example = std::fs::read_to_string("config/examples/help-desk.toml").unwrap();
    let mut example: Table = example.parse().unwrap();
    let scripted = config["models"]["scripted"].clone();
    let models = config["models"].as_table_mut().unwrap();
    for name in example["models"].as_table().unwrap().keys() {
        models.insert(name.clone(), scripted.clone());
    }
    for table in ["agents", "networks"] {
        config.insert(table.to_owned(), example.remove(table).unwrap());
    }
    config["defaults"]["agent"]["model"] = Value::String("good".to_owned());
    std::fs::write(flow.config_path(), config.to_string()).unwrap();
    flow.start().await;
    flow
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_help_desk_sorts_looks_up_writes_checks_and_writes_again() {
    let mut flow = help_desk().await;
    let sets = |id: &str, values| ModelReply::tool_call(id, "set_state", values);
    let replies = [
        sets("c1", json!({"kind": "complaint"})),
        ModelReply::text("Ann misses order 4711."),
        ModelReply::text("It was sent on Tuesday."),
        ModelReply::text("It arrives tomorrow, promised!"),
        sets("c2", json!({"fine": false})),
        ModelReply::text("It promises too much."),
        ModelReply::text("It was sent on Tuesday and should arrive soon."),
        sets("c3", json!({"fine": true})),
        ModelReply::text("Fine."),
    ];
    for reply in replies {
        flow.model.enqueue(reply);
    }
    flow.model.hold();
    let asked = flow
        .slack
        .say(GENERAL, "ann", "@vocative where is my order 4711?");
    for answered in 1..=2 {
        flow.wait_for_model(answered).await;
        flow.model.release_one();
    }
    flow.wait_for_model(3).await;
    flow.kill().await;
    flow.model.release();
    flow.start().await;
    let answer = flow.slack_reply(GENERAL, &asked).await.text;
    assert_eq!(answer, "It was sent on Tuesday and should arrive soon.");
    flow.settle().await;
    assert_eq!(flow.slack_posts(GENERAL).len(), 1);
    assert_eq!(flow.model.requests().len(), 10);
    // Small talk is answered without looking anything up.
    flow.model.enqueue(sets("c1", json!({"kind": "chat"})));
    flow.model.enqueue(ModelReply::text("Ann says hello."));
    flow.model.enqueue(ModelReply::text("Hello, Ann!"));
    let asked = flow.slack.say(GENERAL, "ann", "@vocative hello!");
    assert_eq!(flow.slack_reply(GENERAL, &asked).await.text, "Hello, Ann!");
    flow.settle().await;
    assert_eq!(flow.model.requests().len(), 13);
}
