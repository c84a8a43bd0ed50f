//! Yesterday's databases: one of every schema that was on the main branch, as the program of its time
//! wrote it and a kill left it, is migrated, answered from, read and verified.
//!
//! They lie in `tests/fixtures/databases` as SQL, with the migrations' checksums as they were. A new
//! one is made by the program whose schema it has: [`HOW_TO_MAKE`].

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::types::FromSql;
use serde_json::{Value, json};
use vocative_sandbox::model::ModelReply;
use vocative_sandbox::slack::CallFault;
use vocative_sandbox::telegram::TelegramWorld;

use crate::harness::{Flow, FlowBuilder};

const PRIVATE: i64 = TelegramWorld::ANN;
/// Ann's direct chat with the bot on Slack.
const DIRECT: &str = "D0ANN";

/// Schemas that came to the main branch together with the next one: no program ever left them behind.
const NEVER_ALONE: [u32; 25] = [
    3, 4, 5, 6, 9, 10, 11, 13, 17, 18, 19, 20, 22, 23, 24, 26, 27, 28, 29, 31, 32, 33, 34, 35, 37,
];

const HOW_TO_MAKE: &str = "build the last commit that has this schema (git worktree add /tmp/before \
    COMMIT; cargo build in there), then in this folder: VOCATIVE_BLESS=1 \
    VOCATIVE_BLESS_PROGRAM=/tmp/before/target/debug/vocative cargo test --test flow databases; \
    without VOCATIVE_BLESS_PROGRAM the program of this folder makes the one of its own schema";

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn fixture(schema: u32) -> PathBuf {
    folder("tests/fixtures/databases").join(format!("schema-{schema}.sql"))
}

fn newest_schema() -> u32 {
    let migrations = std::fs::read_dir(folder("store/src/migrations")).unwrap();
    u32::try_from(migrations.count()).unwrap()
}

#[test]
fn every_schema_but_the_newest_has_a_database() {
    for schema in (1..newest_schema()).filter(|schema| !NEVER_ALONE.contains(schema)) {
        let path = fixture(schema);
        assert!(
            path.exists(),
            "a migration was added, and {} is not there, so nothing shows that databases of schema \
             {schema} can be migrated. To make it, {HOW_TO_MAKE}",
            path.display()
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn yesterdays_databases_are_migrated_and_answered_from() {
    if std::env::var_os("VOCATIVE_BLESS").is_some_and(|value| value == "1") {
        make().await;
    }
    let schemas: Vec<u32> = (1..=newest_schema())
        .filter(|schema| fixture(*schema).exists())
        .collect();
    assert!(!schemas.is_empty());
    for schema in schemas {
        eprintln!("schema {schema}");
        answer_from(schema).await;
    }
}

fn database(flow: &Flow) -> PathBuf {
    flow.directory().join("data").join("vocative.db")
}

fn value<T: FromSql>(database: &Path, sql: &str) -> T {
    let connection = Connection::open(database).unwrap();
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

fn builder() -> FlowBuilder {
    let settings = "tools = [\"conversation_search\"]\nsummary_model = \"offline\"\n[agents.vocative.prompt]\n\
                    rolling_summary_threshold = 4\npreserve_recent_turns = 1";
    FlowBuilder::default().agent("vocative", settings)
}

/// Lets the present program go on where the program of a schema was killed.
async fn answer_from(schema: u32) {
    let mut flow = builder().prepare().await;
    let database = database(&flow);
    load(schema, &database);
    let turns_before: u32 = value(&database, "SELECT count(*) FROM turns");
    let open: (u32, u32) = (
        value(
            &database,
            "SELECT count(*) FROM runs WHERE state = 'leased'",
        ),
        value(
            &database,
            "SELECT count(*) FROM outbox WHERE state = 'pending'",
        ),
    );
    assert_eq!(open, (1, 1), "what the program left open");
    // The platform counts on from where the old one was.
    for number in 0..60 {
        let text = format!("lunch {number}");
        flow.telegram.say(TelegramWorld::GROUP, PRIVATE, &text);
    }
    flow.model.enqueue(ModelReply::text("I am."));
    flow.start().await;
    flow.settle().await;
    assert_eq!(flow.telegram_posts(PRIVATE), ["I am."]);
    let posts = flow.slack_posts(DIRECT);
    assert_eq!(posts, [(None, "In here, too.".to_owned())]);

    copy_is_kept(schema, &database, turns_before);
    old_turns_are_read(&flow).await;
    flow.model.enqueue(ModelReply::text("At four."));
    let question = flow.slack.say("#general", "bob", "@vocative and tomorrow?");
    let answer = flow.slack_reply("#general", &question).await;
    assert_eq!(answer.text, "At four.");
    flow.settle().await;

    // A backup verifies every page, index, reference and the full text.
    let backup = flow.directory().join("backup.db");
    let told = flow.cli(&["backup", backup.to_str().unwrap()]).await;
    assert_eq!(told.status, Some(0), "{told:?}");
    assert!(told.stdout.contains("verified"), "{told:?}");
    assert_eq!(flow.stop().await, Some(0));
}

/// The upgrade kept one copy of the database as it was.
fn copy_is_kept(schema: u32, database: &Path, turns: u32) {
    let copy = |next: u32| database.with_extension(format!("db.before-{next:04}"));
    let copies: Vec<u32> = (1..=newest_schema())
        .filter(|next| copy(*next).exists())
        .collect();
    let expected: Vec<u32> = (schema + 1..=newest_schema()).take(1).collect();
    assert_eq!(copies, expected);
    for next in copies {
        let copy = copy(next);
        assert_eq!(value::<u32>(&copy, "PRAGMA user_version"), schema);
        assert_eq!(value::<u32>(&copy, "SELECT count(*) FROM turns"), turns);
    }
    let found: u32 = value(database, "PRAGMA user_version");
    assert_eq!(found, newest_schema());
}

async fn old_turns_are_read(flow: &Flow) {
    let texts = |turns: &[Value]| -> Vec<String> {
        let texts = turns.iter().map(|turn| turn["text"].as_str().unwrap());
        texts.map(str::to_owned).collect()
    };
    let room = texts(&flow.turns("acme/#general").await);
    let said = ["good morning", "when is the deploy?", "two lines"];
    for text in said {
        assert!(
            room.iter().any(|line| line.contains(text)),
            "{text}: {room:?}"
        );
    }
    assert!(!room.iter().any(|line| line.contains("forget")), "{room:?}");
    let id = flow.conversation_id(&PRIVATE.to_string(), None).await;
    let private = texts(&flow.turns(&id).await);
    let said = ["when is the deploy?", "Yes 3.", "are you there?", "I am."];
    for text in said {
        assert!(
            private.iter().any(|line| line == text),
            "{text}: {private:?}"
        );
    }
    let prompt = flow.prompt(&[&id]).await;
    let is_summed_up = prompt.iter().any(|(_, text)| text.contains("sure 0?"));
    assert!(is_summed_up, "the old summary is used: {prompt:?}");
    let found = flow.model_history(0);
    let last = &found.last().unwrap().1;
    assert!(last.contains("are you there?"), "{found:?}");
}

/// Writes the database that a program leaves behind when it is killed at work.
async fn make() {
    let builder = match std::env::var_os("VOCATIVE_BLESS_PROGRAM") {
        Some(program) => builder().program(program.into()),
        None => builder(),
    };
    let mut flow = builder.start().await;
    talk_in_a_channel(&flow).await;
    talk_in_private(&flow).await;
    // A post that waits, and a question at the model.
    flow.slack
        .faults()
        .next("chat.postMessage", CallFault::RateLimited(15));
    flow.model.enqueue(ModelReply::text("In here, too."));
    flow.slack.say(DIRECT, "ann", "and in here?");
    let file = database(&flow);
    let waits = "SELECT count(*) FROM outbox o JOIN chats c ON c.id = o.chat_id
                 WHERE o.state = 'pending' AND c.rests_until_ms > o.created_at_ms + 10000";
    flow.wait_until("the post waits", || value::<u32>(&file, waits) == 1)
        .await;
    flow.model.hold();
    let asked = flow.model.requests().len();
    flow.telegram.say(PRIVATE, PRIVATE, "are you there?");
    flow.wait_for_model(asked + 1).await;
    flow.wait_until_heard().await;
    flow.kill().await;
    let (schema, text) = dump(&file);
    std::fs::write(fixture(schema), text).unwrap();
}

async fn talk_in_a_channel(flow: &Flow) {
    flow.slack.say("#general", "ann", "good morning");
    flow.model.enqueue(ModelReply::text("At three."));
    let question = flow
        .slack
        .say("#general", "ann", "@vocative when is the deploy?");
    flow.slack_reply("#general", &question).await;
    let edited = flow.slack.say("#general", "bob", "tow lines");
    let deleted = flow.slack.say("#general", "bob", "forget this");
    flow.wait_until_heard().await;
    flow.slack.edit("#general", &edited, "two lines");
    flow.slack.delete("#general", &deleted);
    flow.settle().await;
}

/// With a tool that was called, and older turns that were folded.
async fn talk_in_private(flow: &Flow) {
    let search = json!({"query": "deploy"});
    let call = ModelReply::tool_call("call_1", "conversation_search", search);
    flow.model.enqueue(call);
    flow.model.enqueue(ModelReply::text("At three."));
    let message = flow.telegram.say(PRIVATE, PRIVATE, "when is the deploy?");
    flow.telegram_reply(PRIVATE, message).await;
    for number in 0..4 {
        let answer = format!("Yes {number}.");
        flow.model.enqueue(ModelReply::text(&answer));
        let question = format!("sure {number}?");
        let message = flow.telegram.say(PRIVATE, PRIVATE, &question);
        flow.telegram_reply(PRIVATE, message).await;
    }
    flow.settle().await;
    flow.wait_for_status("older turns are folded", |status| {
        status["summaries"]["current"].as_u64() > Some(0)
    })
    .await;
}

fn load(schema: u32, database: &Path) {
    let text = std::fs::read_to_string(fixture(schema)).unwrap();
    std::fs::create_dir_all(database.parent().unwrap()).unwrap();
    let connection = Connection::open(database).unwrap();
    connection.execute_batch(&text).unwrap();
    connection.close().unwrap();
    assert_eq!(value::<u32>(database, "PRAGMA user_version"), schema);
}

/// A whole database as SQL, and its schema. The full text is written as the tables that keep it.
fn dump(database: &Path) -> (u32, String) {
    let connection = Connection::open(database).unwrap();
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, u32>(0));
    let schema = number("PRAGMA user_version").unwrap();
    let application = number("PRAGMA application_id").unwrap();
    let mut text = format!(
        "-- What a program with schema {schema} left behind. Made by tests/flow/databases.rs.\n\
         PRAGMA foreign_keys = OFF;\nPRAGMA application_id = {application};\n\
         PRAGMA user_version = {schema};\nBEGIN;\n"
    );
    let mut statement = connection
        .prepare(
            "SELECT name, type, sql, name LIKE 'turn\\_text\\_%' ESCAPE '\\'
                    OR name LIKE 'turn\\_stems\\_%' ESCAPE '\\'
                    OR name LIKE 'knowledge\\_stems\\_%' ESCAPE '\\' FROM sqlite_schema
             WHERE sql IS NOT NULL ORDER BY rowid",
        )
        .unwrap();
    let things: Vec<(String, String, String, bool)> = statement
        .query_map([], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })
        .unwrap()
        .collect::<rusqlite::Result<_>>()
        .unwrap();
    for (name, _, sql, keeps_text) in &things {
        if !keeps_text && name != "sqlite_sequence" {
            writeln!(text, "{sql};").unwrap();
        }
    }
    for (name, kind, sql, keeps_text) in &things {
        if *keeps_text || name == "sqlite_sequence" {
            writeln!(text, "DELETE FROM {name};").unwrap();
        }
        if kind == "table" && !sql.starts_with("CREATE VIRTUAL") {
            dump_rows(&connection, name, &mut text);
        }
    }
    text.push_str("COMMIT;\n");
    (schema, text)
}

fn dump_rows(connection: &Connection, table: &str, text: &mut String) {
    // Without generated columns, which take no value.
    let mut columns = connection
        .prepare("SELECT name FROM pragma_table_info(?1)")
        .unwrap();
    let quoted: Vec<String> = columns
        .query_map([table], |row| row.get::<_, String>(0))
        .unwrap()
        .map(|name| format!("quote(\"{}\")", name.unwrap()))
        .collect();
    let sql = format!("SELECT {} FROM {table}", quoted.join(" || ', ' || "));
    let mut statement = connection.prepare(&sql).unwrap();
    let mut rows = statement.query([]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        let values: String = row.get(0).unwrap();
        writeln!(text, "INSERT INTO {table} VALUES ({values});").unwrap();
    }
}
