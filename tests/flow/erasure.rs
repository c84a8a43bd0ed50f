//! Erasing people: nothing of them is left in any file, whatever is killed or put back.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use vocative_sandbox::model::ModelReply;
use vocative_sandbox::telegram::{TelegramWorld, UserMessage};

use crate::harness::{Flow, FlowBuilder};

const ANN: i64 = TelegramWorld::ANN;
const BOB: i64 = TelegramWorld::BOB;
const GROUP: i64 = TelegramWorld::SUPERGROUP;
const MARKER: &str = "zebra-7f3a9c";

fn database(flow: &Flow) -> PathBuf {
    flow.directory().join("data").join("vocative.db")
}

fn read_only(path: &Path) -> Connection {
    Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap()
}

fn number(path: &Path, sql: &str) -> i64 {
    let connection = read_only(path);
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

/// Every file of the data folder that holds a text, whatever its case.
fn files_with(folder: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        // A file of SQLite may go at any time.
        let Ok(bytes) = std::fs::read(entry.path()) else {
            continue;
        };
        let holds = bytes
            .windows(text.len())
            .any(|part| part.eq_ignore_ascii_case(text.as_bytes()));
        if holds {
            found.push(entry.path());
        }
    }
    found
}

/// Waits for the walk through the file that a start has queued which finished an erasure.
async fn walked_through(flow: &Flow) {
    flow.wait_for_status("the unused bytes of the file are clean", |status| {
        let jobs = status["jobs"].as_array().unwrap();
        jobs.iter().all(|job| job["kind"] != "clean-pages")
    })
    .await;
}

/// A copy as an online backup makes it.
fn back_up(flow: &Flow, name: &str) -> PathBuf {
    let copy = flow.directory().join(name);
    read_only(&database(flow))
        .execute("VACUUM INTO ?1", [copy.to_str().unwrap()])
        .unwrap();
    copy
}

/// Puts a copy in the database's place, as a person does by hand.
fn put_back(flow: &Flow, copy: &Path) {
    for suffix in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", database(flow).display()));
    }
    std::fs::copy(copy, database(flow)).unwrap();
}

/// The store is whole, its index too. Only while no daemon runs.
fn check_store(path: &Path) {
    let connection = Connection::open(path).unwrap();
    let whole: String = connection
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(whole, "ok");
    connection
        .execute_batch("INSERT INTO turn_text (turn_text) VALUES ('integrity-check')")
        .unwrap();
    let broken = connection.prepare("PRAGMA foreign_key_check").unwrap();
    let mut broken = broken;
    assert!(broken.query([]).unwrap().next().unwrap().is_none());
}

/// A daemon in whose rooms Ann's marker is in her messages, in answers to her and to Bob, in a tool's
/// result, a summary, a quote, and in what Bob says.
async fn marked() -> Flow {
    let flow = FlowBuilder::default()
        .agent(
            "vocative",
            "summary_model = \"offline\"\n[agents.vocative.prompt]\nrolling_summary_threshold = 6\n\
             preserve_recent_turns = 1",
        )
        .config("[store]\ndebug_raw_hours = 1")
        .start()
        .await;
    let answered = async |person: &str, text: &str| {
        let question = flow.slack.say("#general", person, text);
        flow.slack_reply("#general", &question).await;
        flow.settle().await;
    };
    flow.slack
        .say("#general", "ann", "my door code is zebra-7f3a9c, keep it");
    answered("ann", "@vocative remember zebra-7f3a9c").await;
    let search = serde_json::json!({"query": "door code"});
    flow.model.enqueue(ModelReply::tool_call(
        "call_1",
        "conversation_search",
        search,
    ));
    flow.model
        .enqueue(ModelReply::text("Ann's door code is zebra-7f3a9c."));
    answered("bob", "@vocative what is the door code?").await;
    flow.slack.say(
        "#general",
        "bob",
        "> my door code is zebra-7f3a9c, keep it\nthanks!",
    );
    let bobs = flow.slack.say("#general", "bob", "so ZEBRA-7F3A9C it is");
    flow.slack.edit("#general", &bobs, "so zebra-7f3a9c works");
    let direct = async |text: &str| {
        flow.slack.say("D0ANN", "ann", text);
        flow.settle().await;
    };
    for n in 0..6 {
        direct(&format!("zebra-7f3a9c, note {n}")).await;
    }
    flow.wait_for_status("older turns are summarised", |status| {
        status["summaries"]["current"].as_u64() > Some(0)
    })
    .await;
    let said = flow
        .telegram
        .say(GROUP, ANN, "the Zebra is number 4711-0815-x");
    flow.telegram.send_with(UserMessage {
        chat: GROUP,
        user: BOB,
        text: "agreed".to_owned(),
        reply_to: Some(said),
        quote: Some("4711-0815-x".to_owned()),
        ..UserMessage::default()
    });
    flow.settle().await;
    assert!(!files_with(&flow.directory().join("data"), MARKER).is_empty());
    let (path, places) = (
        database(&flow),
        "SELECT (SELECT min(1, count(*)) FROM summaries WHERE instr(text, 'zebra-7f3a9c'))
              + (SELECT min(1, count(*)) FROM steps WHERE instr(message, 'zebra-7f3a9c'))
              + (SELECT min(1, count(*)) FROM turns
                 WHERE kind = 'tool_result' AND instr(content, 'zebra-7f3a9c'))
              + (SELECT min(1, count(*)) FROM outbox WHERE instr(payload, 'zebra-7f3a9c'))
              + (SELECT min(1, count(*)) FROM revisions WHERE instr(content, 'ZEBRA-7F3A9C'))
              + (SELECT min(1, count(*)) FROM raw_envelopes WHERE instr(raw, 'zebra-7f3a9c'))
              + (SELECT min(1, count(*)) FROM turns WHERE quote = '4711-0815-x')",
    );
    assert_eq!(number(&path, places), 7, "the marker is everywhere");
    flow
}

async fn erase(flow: &Flow, person: &str) -> serde_json::Value {
    let args = ["erase", "--person", person, "--verify", "--yes"];
    let done = flow.cli_json(&args).await;
    assert_eq!(
        done["verification"]["hits"],
        serde_json::json!([]),
        "{done}"
    );
    assert!(done["verification"]["texts"].as_u64() > Some(0), "{done}");
    done
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_15_an_erased_person_is_in_no_file_no_later_backup_and_no_restored_older_one() {
    let mut flow = marked().await;
    let data = flow.directory().join("data");
    let older = back_up(&flow, "older.db");
    // Beside the running daemon, which goes on hearing.
    let planned = flow
        .cli(&["erase", "--person", "acme/Ann", "--dry-run"])
        .await;
    assert!(planned.stdout.contains("acme/U0ANN (Ann"), "{planned:?}");
    assert!(!files_with(&data, MARKER).is_empty());
    let done = erase(&flow, "acme/Ann").await;
    assert!(done["answers"].as_u64() >= Some(3), "{done}");
    assert!(done["repeats"].as_u64() >= Some(2), "{done}");
    assert_eq!(files_with(&data, MARKER), Vec::<PathBuf>::new());
    let later = back_up(&flow, "later.db");
    assert!(!files_with(flow.directory(), MARKER).contains(&later));

    // Without a daemon.
    assert_eq!(flow.stop().await, Some(0));
    erase(&flow, &ANN.to_string()).await;
    assert_eq!(files_with(&data, "4711-0815-x"), Vec::<PathBuf>::new());
    check_store(&database(&flow));
    put_back(&flow, &older);
    assert!(!files_with(&data, MARKER).is_empty());
    flow.start().await;
    walked_through(&flow).await;
    for text in [MARKER, "4711-0815-x", "door code is"] {
        assert_eq!(files_with(&data, text), Vec::<PathBuf>::new(), "{text}");
    }

    // Who says something anew is heard; a redelivery brings nothing back.
    let question = flow.slack.say("#general", "ann", "@vocative hello again");
    flow.slack_reply("#general", &question).await;
    flow.settle().await;
    let turns = flow.turns("acme/#general").await;
    let texts: Vec<&str> = turns
        .iter()
        .map(|turn| turn["text"].as_str().unwrap())
        .collect();
    let expected = [
        "@vocative what is the door code?",
        "> [erased]\nthanks!",
        "so [erased] works",
        "@vocative hello again",
    ];
    assert_eq!(texts, expected);
    assert_eq!(flow.stop().await, Some(0));
    check_store(&database(&flow));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_15_an_erasure_that_was_killed_is_finished_by_the_next_start() {
    const MESSAGES: usize = 3_000;
    let mut flow = FlowBuilder::default().start().await;
    for n in 0..MESSAGES {
        let person = if n % 10 == 9 { "bob" } else { "ann" };
        flow.slack.say(
            "#general",
            person,
            &format!("{person} writes note-{n:05}-zebra"),
        );
    }
    flow.settle().await;
    let path = database(&flow);
    assert_eq!(number(&path, "SELECT count(*) FROM turns"), MESSAGES as i64);
    let erasing = flow.cli(&["erase", "--person", "U0ANN", "--yes"]);
    let killing = async {
        flow.wait_until("a part is erased", || {
            number(&path, "SELECT coalesce(max(turns), 0) FROM erasures") > 200
        })
        .await;
        flow.signal("KILL").await;
    };
    let (told, ()) = tokio::join!(erasing, killing);
    assert_ne!(told.status, Some(0), "{told:?}");
    let left = "SELECT count(*) FROM turns t JOIN participants p ON p.id = t.participant_id
                WHERE p.platform_id = 'U0ANN' AND t.content <> ''";
    assert!(number(&path, left) > 0, "it was killed in the middle");
    flow.kill().await;
    flow.start().await;

    assert_eq!(number(&path, left), 0);
    assert_eq!(
        number(
            &path,
            "SELECT count(*) FROM erasures WHERE finished_at_ms IS NULL"
        ),
        0
    );
    walked_through(&flow).await;
    let data = flow.directory().join("data");
    assert_eq!(files_with(&data, "ann writes"), Vec::<PathBuf>::new());
    let bobs = "SELECT count(*) FROM turns WHERE content LIKE 'bob writes note-_____-zebra'";
    assert_eq!(number(&path, bobs), (MESSAGES / 10) as i64);
    assert_eq!(flow.stop().await, Some(0));
    check_store(&path);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_to_be_erased_must_be_clear_and_confirmed() {
    let flow = Flow::start_default().await;
    flow.slack.say("#general", "ann", "hello");
    flow.telegram.say(GROUP, ANN, "hello");
    flow.settle().await;
    flow.wait_for_status("names are learnt", |_| {
        number(
            &database(&flow),
            "SELECT count(*) FROM participants WHERE display_name LIKE 'ann%'",
        ) == 2
    })
    .await;
    let cases = [
        (
            &["erase", "--person", "ann", "--yes"][..],
            1,
            "could be any of these",
        ),
        (
            &["erase", "--person", "nobody", "--yes"],
            1,
            "does not exist",
        ),
        (&["erase", "--person", "U0ANN"], 2, "add --yes"),
        (&["erase", "--yes"], 2, "--person"),
    ];
    for (args, code, words) in cases {
        let told = flow.cli(args).await;
        assert_eq!(told.status, Some(code), "{told:?}");
        assert!(told.stderr.contains(words), "{told:?}");
    }
    assert_eq!(
        number(
            &database(&flow),
            "SELECT count(*) FROM turns WHERE content = 'hello'"
        ),
        2
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_revisions_the_text_before_an_edit_is_in_no_file() {
    for (keeps, is_left) in [(true, true), (false, false)] {
        let mut flow = FlowBuilder::default()
            .config(&format!("[store]\nkeep_revisions = {keeps}"))
            .start()
            .await;
        let message = flow.slack.say("#general", "ann", "my code is zebra-7f3a9c");
        flow.wait_until_heard().await;
        flow.slack.edit("#general", &message, "never mind");
        flow.settle().await;
        let data = flow.directory().join("data");
        if !is_left {
            flow.wait_until("the text is gone beside the running daemon", || {
                files_with(&data, MARKER).is_empty()
            })
            .await;
        }
        assert_eq!(flow.stop().await, Some(0));
        assert_eq!(!files_with(&data, MARKER).is_empty(), is_left, "{keeps}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erased_conversation_is_in_no_file_and_the_others_stay() {
    let mut flow = Flow::start_default().await;
    let data = flow.directory().join("data");
    let answered = async |room: &str, text: &str| {
        let root = flow.slack.say(room, "ann", text);
        flow.slack_reply(room, &root).await;
        flow.settle().await;
    };
    answered("#general", "@vocative what is zebra-7f3a9c?").await;
    flow.slack.say("#general", "bob", "zebra-7f3a9c is a code");
    answered("#ops", "@vocative and the okapi?").await;
    let older = back_up(&flow, "older.db");
    assert!(!files_with(&data, MARKER).is_empty());

    let args = [
        "erase",
        "--conversation",
        "acme/#general",
        "--verify",
        "--yes",
    ];
    let done = flow.cli_json(&args).await;
    let hits = &done["verification"]["hits"];
    assert_eq!(*hits, serde_json::json!([]), "{done}");
    assert_eq!(files_with(&data, MARKER), Vec::<PathBuf>::new());
    assert!(!files_with(&data, "okapi").is_empty());

    // A copy from before does not bring it back, and the room goes on.
    assert_eq!(flow.stop().await, Some(0));
    check_store(&database(&flow));
    put_back(&flow, &older);
    flow.start().await;
    assert_eq!(files_with(&data, MARKER), Vec::<PathBuf>::new());
    let root = flow.slack.say("#general", "ann", "@vocative still here?");
    flow.slack_reply("#general", &root).await;
    flow.settle().await;
    let turns = flow.turns("acme/#general").await;
    assert_eq!(turns.len(), 1, "{turns:?}");
}
