//! Texts of one person planted wherever the daemon keeps or says anything, and how many of them a scan of every
//! byte finds after they were erased. `cargo test --test flow erased_everywhere -- --nocapture` prints the table.

use std::path::Path;

use serde_json::{Map, json};
use vocative_sandbox::model::ModelReply;
use vocative_sandbox::telegram::{TelegramWorld, UserMessage};

use crate::files::{show_on_slack, slack_file};
use crate::harness::{Flow, FlowBuilder};

const ANN: i64 = TelegramWorld::ANN;
const BOB: i64 = TelegramWorld::BOB;
const GROUP: i64 = TelegramWorld::SUPERGROUP;

/// Where a text is planted, and the text: each is in one place only, or is repeated by others from there.
const PLANTED: [(&str, &str); 15] = [
    ("a message", "qx-message-11a7"),
    ("the text before an edit", "qx-before-22b8"),
    ("the text after it", "qx-after-33c9"),
    ("a message that others quote", "qx-quoted-44d1"),
    ("a passage quoted on Telegram", "qx-passage-55e2"),
    ("the text of a file", "qx-filetext-66f3"),
    ("the name of a file", "qx-filename-77a4"),
    ("a file that an answer to others repeats", "qx-lent-88b5"),
    ("a voice note, written down", "qx-spoken-99c6"),
    ("notes that are summarised", "qx-noted-10d7"),
    ("a question that its answer repeats", "qx-asked-21e8"),
    ("what a tool found for others", "qx-found-32f9"),
    ("a caption", "qx-caption-43a1"),
    ("a link", "https://qx-link-54b2.example/x"),
    ("what an agent noted of it", "qx-memory-65c3"),
];

/// How often each text is in the files of a folder and in their names, whatever its case.
fn counted<const N: usize>(folder: &Path, texts: &[&str; N], into: &mut [usize; N]) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        for (count, text) in into.iter_mut().zip(texts) {
            *count += found(name.as_bytes(), text);
        }
        if path.is_dir() {
            counted(&path, texts, into);
            continue;
        }
        // A file of SQLite may go at any time.
        let bytes = std::fs::read(&path).unwrap_or_default();
        for (count, text) in into.iter_mut().zip(texts) {
            *count += found(&bytes, text);
        }
    }
}

/// How often a text is in the files of a folder, whatever its case.
pub(crate) fn count_in_folder(folder: &Path, text: &str) -> usize {
    let mut count = [0];
    counted(folder, &[text], &mut count);
    count[0]
}

fn found(bytes: &[u8], text: &str) -> usize {
    let is_it = |part: &&[u8]| part.eq_ignore_ascii_case(text.as_bytes());
    bytes.windows(text.len()).filter(is_it).count()
}

fn in_folder(folder: &Path) -> [usize; PLANTED.len()] {
    let mut counts = [0; PLANTED.len()];
    counted(folder, &PLANTED.map(|(_, text)| text), &mut counts);
    counts
}

fn in_text(text: &str) -> [usize; PLANTED.len()] {
    PLANTED.map(|(_, planted)| found(text.as_bytes(), planted))
}

/// A daemon that hears voice notes, summarises soon and keeps what it received.
async fn listening() -> Flow {
    let mut flow = FlowBuilder::default()
        .agent(
            "vocative",
            "memory = \"tools\"\nsummary_model = \"offline\"\n[agents.vocative.prompt]\nrolling_summary_threshold = 6\n\
             preserve_recent_turns = 1",
        )
        .config("[store]\ndebug_raw_hours = 1")
        .prepare()
        .await;
    let ear = format!(
        "\n[transcription]\nbase_url = \"{}\"\nmodel = \"ear\"\napi_key = \"env:FLOW_MODEL_KEY\"\n",
        flow.model.openai_url()
    );
    let text = std::fs::read_to_string(flow.config_path()).unwrap();
    std::fs::write(flow.config_path(), text + &ear).unwrap();
    flow.start().await;
    flow
}

async fn answered(flow: &Flow, person: &str, text: &str, answer: &[ModelReply]) {
    for reply in answer {
        flow.model.enqueue(reply.clone());
    }
    let question = flow.slack.say("#general", person, text);
    flow.slack_reply("#general", &question).await;
    flow.settle().await;
}

async fn plant(flow: &Flow) {
    let slack = &flow.slack;
    slack.say("#general", "ann", "the door is qx-message-11a7");
    let edited = slack.say("#general", "ann", "it was qx-before-22b8");
    flow.wait_until_heard().await;
    slack.edit("#general", &edited, "it is qx-after-33c9");
    slack.say("#general", "ann", "I said qx-quoted-44d1 once");
    slack.say("#general", "ann", "see https://qx-link-54b2.example/x");
    slack.say(
        "#general",
        "bob",
        "> I said qx-quoted-44d1 once\nthanks, QX-MESSAGE-11A7 works",
    );
    slack.say(
        "#general",
        "bob",
        "<https://qx-link-54b2.example/x|the page> is good",
    );
    answered(
        flow,
        "ann",
        "@vocative remember qx-asked-21e8",
        &[ModelReply::text("I keep qx-asked-21e8 in mind.")],
    )
    .await;
    let notes = json!({"notes": [{"text": "The safe opens with qx-memory-65c3"}]});
    answered(
        flow,
        "ann",
        "@vocative remember how the safe opens",
        &[
            ModelReply::tool_call("call_1", "remember", notes),
            ModelReply::text("I keep that in mind."),
        ],
    )
    .await;
    slack.say("#general", "ann", "the cellar is qx-found-32f9");
    let search = json!({"query": "cellar"});
    answered(
        flow,
        "bob",
        "@vocative where is the cellar?",
        &[
            ModelReply::tool_call("call_1", "conversation_search", search),
            ModelReply::text("Ann says it is qx-found-32f9."),
        ],
    )
    .await;
    let file = slack_file(
        "qx-filename-77a4.txt",
        "text/plain",
        b"It says qx-filetext-66f3 here.",
    );
    show_on_slack(flow, file, "what is in it?");
    flow.settle().await;
    lent_file(flow).await;
    for _ in 0..6 {
        flow.slack.say("D0ANN", "ann", "a note: qx-noted-10d7");
        flow.settle().await;
    }
    flow.wait_for_status("older turns are summarised", |status| {
        status["summaries"]["current"].as_u64() > Some(0)
    })
    .await;
    on_telegram(flow).await;
}

/// Ann shows a file to the room; Bob asks what it says, and the answer repeats it.
async fn lent_file(flow: &Flow) {
    let file = flow.slack.add_file(slack_file(
        "plan.txt",
        "text/plain",
        b"The plan is qx-lent-88b5.",
    ));
    flow.slack.post_with(vocative_sandbox::slack::UserPost {
        channel: "#general".to_owned(),
        user: "ann".to_owned(),
        text: "@vocative keep this plan".to_owned(),
        files: vec![file],
        ..Default::default()
    });
    flow.settle().await;
    answered(
        flow,
        "bob",
        "@vocative what does the plan say?",
        &[ModelReply::text("It says qx-lent-88b5, no more.")],
    )
    .await;
}

async fn on_telegram(flow: &Flow) {
    let said = flow.telegram.say(GROUP, ANN, "it is qx-passage-55e2 today");
    flow.telegram.send_with(UserMessage {
        chat: GROUP,
        user: BOB,
        text: "agreed".to_owned(),
        reply_to: Some(said),
        quote: Some("qx-passage-55e2".to_owned()),
        ..UserMessage::default()
    });
    flow.model
        .enqueue_transcript(Ok("I spoke of qx-spoken-99c6"));
    let mut note = flow
        .telegram
        .add_file("v.oga", "audio/ogg", b"OggS".to_vec());
    note["duration"] = json!(3);
    let photo = flow
        .telegram
        .add_file("p.txt", "text/plain", b"nothing".to_vec());
    for (field, file, caption) in [
        ("voice", note, None),
        ("document", photo, Some("it shows qx-caption-43a1")),
    ] {
        let mut extra = Map::new();
        extra.insert(field.to_owned(), file);
        extra.extend(caption.map(|text| ("caption".to_owned(), json!(text))));
        flow.telegram.send_with(UserMessage {
            chat: ANN,
            user: ANN,
            extra,
            ..UserMessage::default()
        });
        flow.settle().await;
    }
}

/// What commands tell of all conversations.
async fn told(flow: &Flow) -> String {
    let mut told = flow.log();
    for conversation in flow.conversations().await {
        let id = conversation["id"].as_str().unwrap().to_owned();
        for args in [
            &["conversations", "show", &id][..],
            &["conversations", "export", &id, "--format", "markdown"],
            &["conversations", "export", &id, "--format", "jsonl"],
        ] {
            let output = flow.cli(args).await;
            assert_eq!(output.status, Some(0), "{output:?}");
            told += &output.stdout;
        }
    }
    for args in [["conversations", "list"], ["memory", "list"]] {
        let output = flow.cli(&args).await;
        assert_eq!(output.status, Some(0), "{output:?}");
        told += &output.stdout;
    }
    told
}

async fn erase(flow: &Flow, person: &str) {
    let args = ["erase", "--person", person, "--verify", "--yes"];
    let done = flow.cli_json(&args).await;
    assert_eq!(done["verification"]["hits"], json!([]), "{done}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_15_what_an_erased_person_said_is_found_nowhere() {
    let mut flow = listening().await;
    plant(&flow).await;
    let data = flow.directory().join("data");
    let folder = tempfile::tempdir().unwrap();
    let copy = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let older = copy("older.db");
    assert_eq!(flow.cli(&["backup", &older]).await.status, Some(0));
    let mut columns = vec![
        ("data", in_folder(&data)),
        ("told", in_text(&told(&flow).await)),
    ];

    erase(&flow, "acme/Ann").await;
    erase(&flow, &ANN.to_string()).await;
    columns.push(("data, erased", in_folder(&data)));
    columns.push(("told, erased", in_text(&told(&flow).await)));
    let later = tempfile::tempdir().unwrap();
    let backup = later.path().join("later.db").to_string_lossy().into_owned();
    assert_eq!(flow.cli(&["backup", &backup]).await.status, Some(0));
    columns.push(("a later backup", in_folder(later.path())));

    assert_eq!(flow.stop().await, Some(0));
    assert_eq!(flow.cli(&["restore", &older]).await.status, Some(0));
    flow.start().await;
    flow.settle().await;
    // What the restore set aside is the operator's, and named to them.
    columns.push(("restored", in_folder(&data)));
    columns.push(("told, restored", in_text(&told(&flow).await)));

    print_table(&columns);
    let (before, after) = columns.split_at(2);
    for (n, (place, text)) in PLANTED.iter().enumerate() {
        assert!(before[0].1[n] > 0, "{place}: {text} was not planted");
        for (name, counts) in after {
            assert_eq!(counts[n], 0, "{place}: {text} is in: {name}");
        }
    }
}

fn print_table(columns: &[(&str, [usize; PLANTED.len()])]) {
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    println!("| planted | {} |", names.join(" | "));
    println!("|---|{}", "--:|".repeat(names.len()));
    for (n, (place, _)) in PLANTED.iter().enumerate() {
        let cells = columns.iter().map(|(_, counts)| counts[n].to_string());
        println!("| {place} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
}
