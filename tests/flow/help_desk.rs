//! Networks of `config/examples`, as they are, with scripted models.

use serde_json::json;
use toml::{Table, Value};
use vocative_sandbox::model::ModelReply;

use crate::harness::{Flow, FlowBuilder};

const GENERAL: &str = "#general";

/// The example beside the flow's own daemon and channels; its models are the scripted one.
async fn example(name: &str) -> Flow {
    let mut flow = FlowBuilder::default().prepare().await;
    let text = std::fs::read_to_string(flow.config_path()).unwrap();
    let mut config: Table = text.parse().unwrap();
    let example = std::fs::read_to_string(format!("config/examples/{name}.toml")).unwrap();
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
    let mut flow = example("help-desk").await;
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

/// The blocks of a language in the section about a help desk.
fn blocks(language: &str) -> Vec<String> {
    let page = std::fs::read_to_string("docs/HOWTO.md").unwrap();
    let section = page.split("\n## ").find(|it| it.starts_with("A help desk"));
    let mut parts = section.expect("the page has a help desk").split("```");
    let mut blocks = Vec::new();
    while let Some(block) = parts.nth(1) {
        let (of, code) = block.split_once('\n').unwrap();
        blocks.extend((of == language).then(|| code.to_owned()));
    }
    blocks
}

/// Puts the settings of one table into another.
fn merge(into: &mut Table, from: Table) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(Value::Table(into)), Value::Table(from)) => merge(into, from),
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}

/// Runs the commands of a block as they stand there, `ID` being a run's.
async fn run_block(flow: &mut Flow, block: &str, run: &str) -> Vec<String> {
    let mut told = Vec::new();
    for line in block.lines() {
        // A remark stands behind two spaces; a room has the sign, too.
        let command = line.split("  ").next().unwrap_or(line).replace("RUN", run);
        let words: Vec<&str> = command.split_whitespace().collect();
        if words == ["systemctl", "restart", "vocative"] {
            flow.restart().await;
            told.push(String::new());
            continue;
        }
        assert_eq!(words[0], "vocative", "{line}");
        let said = flow.cli(&words[1..]).await;
        assert_eq!(said.status, Some(0), "{line}: {said:?}");
        told.push(said.stdout);
    }
    told
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_follows_the_page_has_a_help_desk_that_answers_once_through_a_kill() {
    let commands = blocks("sh");
    let lines: usize = commands.iter().map(|block| block.lines().count()).sum();
    assert!(
        lines <= 10,
        "{lines} commands are more than the page promises"
    );
    let [demo, set_up, look] = commands.as_slice() else {
        panic!("{commands:#?} are not three blocks");
    };
    let mut flow = example("help-desk").await;
    let told = run_block(&mut flow, demo, "").await;
    assert!(told[0].contains("desk"), "{}", told[0]);

    let handbook = flow.directory().join("handbook");
    std::fs::create_dir(&handbook).unwrap();
    std::fs::write(
        handbook.join("returns.md"),
        "# Returns\n\nParcels go back by post.\n",
    )
    .unwrap();
    let text = std::fs::read_to_string(flow.config_path()).unwrap();
    let mut config: Table = text.parse().unwrap();
    for block in blocks("toml") {
        let block = block.replace("/srv/handbook", handbook.to_str().unwrap());
        merge(&mut config, block.parse().unwrap());
    }
    std::fs::write(flow.config_path(), config.to_string()).unwrap();
    let told = run_block(&mut flow, set_up, "").await;
    assert!(told[2].contains("handbook"), "{}", told[2]);

    for reply in [
        ModelReply::tool_call("c1", "set_state", json!({"kind": "question"})),
        ModelReply::text("Ann asks how to return a parcel."),
        ModelReply::text("By post."),
        ModelReply::text("Send it back by post."),
        ModelReply::tool_call("c2", "set_state", json!({"fine": true})),
        ModelReply::text("Fine."),
    ] {
        flow.model.enqueue(reply);
    }
    flow.model.hold();
    let asked = flow
        .slack
        .say(GENERAL, "ann", "@vocative desk, how do I return a parcel?");
    flow.wait_for_model(1).await;
    flow.model.release_one();
    flow.wait_for_model(2).await;
    flow.kill().await;
    flow.model.release();
    flow.start().await;
    let answer = flow.slack_reply(GENERAL, &asked).await.text;
    assert_eq!(answer, "Send it back by post.");
    flow.settle().await;
    assert_eq!(flow.slack_posts(GENERAL).len(), 1);
    let [list, show, story] = look.lines().collect::<Vec<_>>()[..] else {
        panic!("{look} is not three commands");
    };
    let told = run_block(&mut flow, list, "").await.concat();
    let thread = told.lines().find(|line| line.contains(" thread "));
    let id = thread.unwrap_or_else(|| panic!("no thread is in {told}"));
    let id = id.split_whitespace().next().unwrap();
    let told = run_block(&mut flow, &show.replace("THREAD", id), "")
        .await
        .concat();
    let runs = told
        .lines()
        .filter(|line| line.trim_start().starts_with("run "));
    let mut ids = runs.flat_map(str::split_whitespace);
    let run = ids.find(|word| uuid::Uuid::parse_str(word).is_ok());
    let run = run
        .unwrap_or_else(|| panic!("no run is named in {told}"))
        .to_owned();
    let told = run_block(&mut flow, story, &run).await.concat();
    let places = ["sort", "look", "write", "check"].map(|agent| told.find(agent));
    assert!(
        places.iter().all(Option::is_some) && places.is_sorted(),
        "{told}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_network_notes_after_one_answer_it_knows_before_the_next() {
    let flow = example("memory").await;
    let note = json!({"notes": [{"text": "Ann drinks tea."}]});
    for reply in [
        ModelReply::tool_call("c1", "recall", json!({"queries": ["Ann drinks"]})),
        ModelReply::text("I know nothing of Ann."),
        ModelReply::text("Tea it is."),
        ModelReply::tool_call("c2", "remember", note),
        ModelReply::text("Noted."),
        ModelReply::tool_call("c3", "recall", json!({"queries": ["Ann drinks"]})),
        ModelReply::text("Ann drinks tea."),
        ModelReply::text("Tea, as ever."),
        ModelReply::text("Nothing is new."),
    ] {
        flow.model.enqueue(reply);
    }
    let asked = flow
        .slack
        .say(GENERAL, "ann", "@vocative I drink tea, always.");
    assert_eq!(flow.slack_reply(GENERAL, &asked).await.text, "Tea it is.");
    flow.settle().await;
    let asked = flow
        .slack
        .say(GENERAL, "ann", "@vocative what shall I drink?");
    assert_eq!(
        flow.slack_reply(GENERAL, &asked).await.text,
        "Tea, as ever."
    );
    flow.settle().await;
    assert_eq!(flow.slack_posts(GENERAL).len(), 2);
    let requests = flow.model.requests();
    assert_eq!(requests.len(), 9);
    let recalled = requests[6].body.to_string();
    assert!(recalled.contains("Ann drinks tea."), "{recalled}");
}
