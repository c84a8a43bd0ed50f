//! Importing the memory of a room: beside the running daemon and without one, on both platforms.

use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use vocative_core::prompting::{ClassEstimate, content_count};
use vocative_sandbox::telegram::TelegramWorld;

use crate::harness::{Flow, FlowBuilder, WAIT};

/// A Slack export of two days in `#general`, with a thread and a join.
fn slack_export(flow: &Flow, live: &str) -> PathBuf {
    let root = flow.directory().join("slack-export");
    let write = |name: &str, value: &Value| {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, value.to_string()).unwrap();
    };
    write(
        "channels.json",
        &json!([{"id": "C0GENERAL", "name": "general", "members": ["U0ANN", "U0VOCATIVE"]}]),
    );
    write(
        "users.json",
        &json!([
            {"id": "U0ANN", "team_id": "T0ACME", "name": "ann", "profile": {"display_name": "Ann"}},
            {"id": "U0BOB", "team_id": "T0ACME", "name": "bob", "profile": {"display_name": "Bob"}},
        ]),
    );
    let said = |user: &str, ts: &str, text: &str| json!({"type": "message", "user": user, "ts": ts, "text": text, "team": "T0ACME"});
    let mut reply = said("U0BOB", "1736578700.000100", "I rotated the *keys*");
    reply["thread_ts"] = json!("1736478630.905399");
    write(
        "general/2025-01-10.json",
        &json!([
            said("U0ANN", "1736478630.905399", "<@U0VOCATIVE> who rotates the certificates?"),
            {"type": "message", "subtype": "channel_join", "user": "U0BOB", "ts": "1736478640.000000", "text": "joined"},
        ]),
    );
    write(
        "general/2025-01-11.json",
        &json!([
            reply,
            said("U0BOB", "1736578800.000000", "Kubernetes is down")
        ]),
    );
    write(
        "general/2026-01-01.json",
        &json!([said("U0ANN", live, "heard live")]),
    );
    root
}

fn contents(turns: &[Value]) -> Vec<&str> {
    turns
        .iter()
        .map(|turn| turn["text"].as_str().unwrap())
        .collect()
}

/// What each turn says, with the count that is stored for it.
fn stored_counts(flow: &Flow) -> Vec<(String, u32, String)> {
    let path = flow.directory().join("data").join("vocative.db");
    let database = rusqlite::Connection::open(path).unwrap();
    let mut statement = database
        .prepare("SELECT content, tokens, counter FROM turns WHERE content <> ''")
        .unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    rows.unwrap().collect::<Result<_, _>>().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slack_export_is_imported_beside_the_running_daemon_once() {
    let flow = Flow::start_default().await;
    let live = flow.slack.say("#general", "ann", "heard live");
    flow.settle().await;
    let path = slack_export(&flow, &live).display().to_string();
    let args = ["import", "--channel", "acme", path.as_str()];
    let preview = flow.cli(&[&args[..], &["--dry-run"]].concat()).await;
    assert_eq!(preview.status, Some(0), "{preview:?}");
    assert!(
        preview
            .stdout
            .starts_with("3 messages of 1 chat would be imported into acme."),
        "{preview:?}"
    );
    assert_eq!(flow.turns("acme/C0GENERAL").await.len(), 1);
    for (imported, known) in [(3, 1), (0, 4)] {
        let told = flow.cli(&args).await;
        assert_eq!(told.status, Some(0), "{told:?}");
        assert!(told.stderr.contains("the daemon runs"), "{told:?}");
        let lines = [
            format!("Imported {imported} messages of 1 chat into acme.\n"),
            format!("{known}  there already\n"),
            "1  passed over: joins and other service messages\n".to_owned(),
        ];
        assert!(
            lines.iter().all(|line| told.stdout.contains(line)),
            "{told:?}"
        );
    }
    let turns = flow.turns("acme/#general").await;
    assert_eq!(
        contents(&turns),
        [
            "@vocative who rotates the certificates?",
            "Kubernetes is down",
            "heard live"
        ]
    );
    for (said, tokens, counter) in stored_counts(&flow) {
        let count = content_count(&said, &ClassEstimate);
        assert_eq!((tokens, counter), (count.tokens, count.counter), "{said}");
    }
    assert!(
        turns
            .iter()
            .all(|turn| turn["runs"].as_array().unwrap().is_empty())
    );
    let thread = flow
        .conversation_id("C0GENERAL", Some("1736478630.905399"))
        .await;
    assert_eq!(
        contents(&flow.turns(&thread).await),
        ["I rotated the **keys**"]
    );
    flow.settle().await;
    assert!(flow.slack_posts("#general").is_empty() && flow.model.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_imported_is_found_searched_and_prompted() {
    let agent = "[defaults.agent.prompt]\naddressed_only = false";
    let flow = FlowBuilder::default().config(agent).start().await;
    let path = slack_export(&flow, "1736578900.000000")
        .display()
        .to_string();
    let told = flow.cli(&["import", "--channel", "acme", &path]).await;
    assert_eq!(told.status, Some(0), "{told:?}");
    let found = flow
        .cli_json(&["conversations", "search", "acme/#general", "kubernetes"])
        .await;
    assert_eq!(found["hits"][0]["text"], "Kubernetes is down");
    assert_eq!(found["hits"][0]["speaker"], "Bob");
    flow.slack.say("#general", "ann", "@vocative what is down?");
    flow.wait_for_model(1).await;
    let history = flow.model_history(0);
    let texts: Vec<&str> = history.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "Ann: @Vocative who rotates the certificates?",
            "Bob: Kubernetes is down",
            "Ann: heard live",
            "Ann: @Vocative what is down?",
        ]
    );
    let prompt = flow.prompt(&["acme/#general", "--agent", "vocative"]).await;
    assert!(
        prompt
            .iter()
            .any(|(_, text)| text.contains("Kubernetes is down"))
    );
}

fn telegram_export(flow: &Flow, chat: &Value) -> String {
    let path = flow.directory().join("result.json");
    let text = format!(
        r#"{{"name": "Room", "type": {}, "id": {}, "messages": {}}}"#,
        chat["type"], chat["id"], chat["messages"]
    );
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn telegram_said(id: i64, from: i64, at: i64, text: &str) -> Value {
    json!({"id": id, "type": "message", "date_unixtime": at.to_string(), "from": "Ann", "from_id": format!("user{from}"),
        "text": text, "text_entities": [{"type": "plain", "text": text}]})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_telegram_supergroup_is_imported_and_heard_again_as_one() {
    let flow = Flow::start_default().await;
    let group = TelegramWorld::SUPERGROUP;
    let live = flow.telegram.say(group, TelegramWorld::ANN, "heard live");
    flow.settle().await;
    let at = flow.turns(&format!("team/{group}")).await[0]["sent_at_ms"]
        .as_i64()
        .unwrap()
        / 1_000;
    let mut edited = telegram_said(live + 101, 5002, 1_700_000_100, "edited since");
    edited["edited_unixtime"] = json!("1700000200");
    let messages = json!([
        telegram_said(
            live + 100,
            5001,
            1_700_000_000,
            "@vocative_bot are you there?"
        ),
        edited,
        telegram_said(live, TelegramWorld::ANN, at, "heard live"),
    ]);
    let bare = -1_000_000_000_000 - group;
    let path = telegram_export(
        &flow,
        &json!({"type": "private_supergroup", "id": bare, "messages": messages}),
    );
    for (imported, known) in [(2, 1), (0, 3)] {
        let told = flow.cli(&["import", "--channel", "team", &path]).await;
        assert_eq!(told.status, Some(0), "{told:?}");
        let head = format!("Imported {imported} messages of 1 chat into team.\n");
        assert!(told.stdout.starts_with(&head), "{told:?}");
        assert!(
            told.stdout.contains(&format!("{known}  there already")),
            "{told:?}"
        );
    }
    flow.settle().await;
    let turns = flow.turns(&format!("team/{group}")).await;
    assert_eq!(
        contents(&turns),
        ["@vocative_bot are you there?", "edited since", "heard live"]
    );
    assert!(flow.model.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_basic_group_what_is_older_than_the_first_live_turn_is_imported() {
    let flow = Flow::start_default().await;
    let group = TelegramWorld::GROUP;
    flow.telegram.say(group, TelegramWorld::ANN, "heard live");
    flow.settle().await;
    let at = flow.turns(&format!("team/{group}")).await[0]["sent_at_ms"]
        .as_i64()
        .unwrap()
        / 1_000;
    let messages = json!([
        telegram_said(901, 5001, 1_700_000_000, "from before"),
        telegram_said(902, TelegramWorld::ANN, at, "heard live"),
        telegram_said(903, TelegramWorld::ANN, at + 1, "never heard"),
    ]);
    let path = telegram_export(
        &flow,
        &json!({"type": "private_group", "id": -group, "messages": messages}),
    );
    let told = flow.cli(&["import", "--channel", "team", &path]).await;
    assert_eq!(told.status, Some(0), "{told:?}");
    let lines = [
        "Imported 1 message of 1 chat into team.\n",
        "1  not older than the first message heard live, and found there\n",
        "1  not older than the first message heard live, and not found there: not imported\n",
    ];
    assert!(
        lines.iter().all(|line| told.stdout.contains(line)),
        "{told:?}"
    );
    let turns = flow.turns(&format!("team/{group}")).await;
    assert_eq!(contents(&turns), ["from before", "heard live"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_that_is_killed_goes_on_where_it_was() {
    const MESSAGES: i64 = 6_000;
    let mut flow = Flow::start_default().await;
    flow.stop().await;
    let group = TelegramWorld::SUPERGROUP;
    let said: Vec<Value> = (1..=MESSAGES)
        .map(|id| telegram_said(id, 5001, 1_700_000_000 + id, &format!("line {id}")))
        .collect();
    let bare = -1_000_000_000_000 - group;
    let path = telegram_export(
        &flow,
        &json!({"type": "private_supergroup", "id": bare, "messages": said}),
    );
    let args = ["import", "--channel", "team", path.as_str()];
    let mut import = flow.command(&args).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(import.stderr.take().unwrap()).lines();
    let first = tokio::time::timeout(WAIT, lines.next_line())
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert!(first.contains(" imported, 0 there already"), "{first}");
    let imported: i64 = first.split_whitespace().nth(2).unwrap().parse().unwrap();
    assert!(imported > 0 && imported < MESSAGES, "{first}");
    import.kill().await.unwrap();

    let told = flow.cli(&args).await;
    assert_eq!(told.status, Some(0), "{told:?}");
    assert!(told.stderr.contains("going on where"), "{told:?}");
    assert!(!told.stdout.contains("there already"), "{told:?}");
    let shown = flow
        .cli_json(&[
            "conversations",
            "show",
            &format!("team/{group}"),
            "--limit",
            "9999",
        ])
        .await;
    let turns = shown["turns"].as_array().unwrap();
    let expected: Vec<String> = (1..=MESSAGES).map(|id| format!("line {id}")).collect();
    assert_eq!(contents(turns), expected);
    let again = flow.cli(&args).await;
    assert!(
        again.stdout.contains(&format!("{MESSAGES}  there already")),
        "{again:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_outlives_the_daemon_that_stored_it() {
    const MESSAGES: i64 = 6_000;
    let mut flow = Flow::start_default().await;
    let group = TelegramWorld::SUPERGROUP;
    let said: Vec<Value> = (1..=MESSAGES)
        .map(|id| telegram_said(id, 5001, 1_700_000_000 + id, &format!("line {id}")))
        .collect();
    let bare = -1_000_000_000_000 - group;
    let chat = json!({"type": "private_supergroup", "id": bare, "messages": said});
    let path = telegram_export(&flow, &chat);
    let args = ["import", "--channel", "team", path.as_str()];
    let mut command = flow.command(&args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut import = command.spawn().unwrap();
    let mut lines = BufReader::new(import.stderr.take().unwrap()).lines();
    let mut said = Vec::new();
    loop {
        let line = tokio::time::timeout(WAIT, lines.next_line()).await;
        said.push(line.unwrap().unwrap().unwrap());
        if said.last().unwrap().contains(" imported, ") {
            break;
        }
    }
    flow.kill().await;
    while let Some(line) = lines.next_line().await.unwrap() {
        said.push(line);
    }
    let ended = tokio::time::timeout(WAIT, import.wait()).await.unwrap();
    assert!(!ended.unwrap().success(), "{said:?}");
    let advice = "run the same command again; it goes on where it was";
    assert_eq!(said.last().unwrap(), advice, "{said:?}");

    flow.start().await;
    let told = flow.cli(&args).await;
    assert_eq!(told.status, Some(0), "{told:?}");
    assert!(told.stderr.contains("going on where"), "{told:?}");
    let args = [
        "conversations",
        "show",
        &format!("team/{group}"),
        "--limit",
        "9999",
    ];
    let shown = flow.cli_json(&args).await;
    let expected: Vec<String> = (1..=MESSAGES).map(|id| format!("line {id}")).collect();
    assert_eq!(contents(shown["turns"].as_array().unwrap()), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_that_can_not_be_says_what_to_do() {
    let flow = FlowBuilder::default()
        .telegram("allow_chats = [\"-7\"]")
        .start()
        .await;
    let messages = json!([telegram_said(1, 5001, 1_700_000_000, "hello")]);
    let path = telegram_export(
        &flow,
        &json!({"type": "private_group", "id": 55, "messages": messages}),
    );
    let told = flow.cli(&["import", "--channel", "team", &path]).await;
    assert!(
        told.stdout
            .contains("add them to allow_chats of channel team:\n    -55  Room"),
        "{told:?}"
    );
    let told = flow.cli(&["import", "--channel", "nobody", &path]).await;
    assert_eq!(told.status, Some(2));
    assert!(told.stderr.contains("there are: acme, team"), "{told:?}");
    let told = flow.cli(&["import", "--channel", "acme", &path]).await;
    assert_eq!(told.status, Some(1));
    assert!(told.stderr.contains("is no readable zip"), "{told:?}");
    let told = flow
        .cli(&["import", "--channel", "team", &path, "--chat", "Attic"])
        .await;
    assert_eq!(told.status, Some(1));
    assert!(
        told.stderr.contains("the export has no chat \"Attic\""),
        "{told:?}"
    );
    std::fs::write(
        &path,
        r#"{"name": "Room", "type": "private_group", "id": 7, "messages": [{"id": 1"#,
    )
    .unwrap();
    let told = flow.cli(&["import", "--channel", "team", &path]).await;
    assert_eq!(told.status, Some(1));
    assert!(
        told.stdout
            .contains("result.json line 1: it ends in the middle"),
        "{told:?}"
    );
}

/// What is old waits for the chat's open question, as a job that operators see and that a restart keeps.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_text_of_a_chat_at_work_waits_as_a_job() {
    let mut flow = FlowBuilder::default()
        .slack("[channels.slack.acme.retention_days]\ntext = 30")
        .start()
        .await;
    let root = flow.slack.say("#general", "ann", "@vocative hello");
    flow.slack_reply("#general", &root).await;
    let export = slack_export(&flow, &root).display().to_string();
    flow.model.hold();
    let asked = flow.slack.say("#general", "ann", "@vocative and now?");
    flow.wait_for_model(2).await;
    flow.kill().await;
    let told = flow.cli(&["import", "--channel", "acme", &export]).await;
    assert_eq!(told.status, Some(0), "{told:?}");

    flow.start().await;
    let waiting = flow.wait_for_job("open runs or posts").await;
    assert_eq!(
        [&waiting["kind"], &waiting["state"], &waiting["channel"]],
        ["expire-data", "pending", "acme"]
    );
    let search = ["conversations", "search", "acme/#general", "Kubernetes"];
    let kept = flow.cli(&search).await;
    assert!(kept.stdout.contains("Kubernetes is down"), "{kept:?}");
    flow.kill().await;
    flow.start().await;
    assert_eq!(flow.wait_for_job("open runs or posts").await, waiting);
    flow.model.release();
    flow.slack_reply("#general", &asked).await;
    flow.settle().await;

    // The first seconds after a start belong to the channels, so it may be put off once.
    let id = waiting["id"].to_string();
    let deadline = tokio::time::Instant::now() + WAIT;
    while !flow.log().contains("old data was let go") {
        assert!(tokio::time::Instant::now() < deadline, "{}", flow.log());
        flow.cli(&["jobs", "retry", id.trim_matches('"')]).await;
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    let gone = flow.cli(&search).await;
    assert!(!gone.stdout.contains("Kubernetes is down"), "{gone:?}");
    flow.wait_for_no_job().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_older_than_its_channel_keeps_goes_and_the_rest_stays() {
    let mut flow = FlowBuilder::default()
        .slack("[channels.slack.acme.retention_days]\ntext = 30")
        .start()
        .await;
    let root = flow.slack.say("#general", "ann", "@vocative hello");
    flow.slack_reply("#general", &root).await;
    flow.settle().await;
    assert_eq!(flow.stop().await, Some(0));
    let export = slack_export(&flow, &root);
    let export = export.display().to_string();
    let told = flow.cli(&["import", "--channel", "acme", &export]).await;
    assert_eq!(told.status, Some(0), "{told:?}");
    let search = ["conversations", "search", "acme/#general"];
    let before = flow.cli(&[&search[..], &["Kubernetes"]].concat()).await;
    assert!(before.stdout.contains("Kubernetes is down"), "{before:?}");

    flow.start().await;
    let log = "old data was let go";
    flow.wait_until("old turns go", || flow.log().contains(log))
        .await;
    let after = flow.cli(&[&search[..], &["Kubernetes"]].concat()).await;
    assert!(!after.stdout.contains("Kubernetes is down"), "{after:?}");
    let turns = flow.turns("acme/#general").await;
    assert_eq!(contents(&turns), ["@vocative hello"]);
}
