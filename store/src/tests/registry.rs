//! The registry of tables against the schema, and against what erasures, merges, expiry, exports and restores do.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};

use super::*;
use crate::acts::erasure::{LedgerEntry, LedgerKind, OrderReach};
use crate::contract::ExportQuery;
use crate::new_id::NewId as _;
use crate::registry::{
    BackupRule, Class, ErasureRule, ExpiryRule, ExportRule, FULL_TEXT, MergeRule, Restore,
    StoreTable,
};
use crate::rows::{linked, tables};
use crate::{ExpiryBounds, restore};
use vocative_core::ids::ErasureId;

/// A word of what was said in every row of [`HOUSE`].
const MARK: &str = "zebra-7f3a9c";

/// One row or more in every table, of one person and what was made from their message.
const HOUSE: &str = include_str!("neighbour.sql");

/// Gives the mark to what the rows of another account need not have.
const MARKED: &str = "UPDATE participants SET display_name = 'zebra-7f3a9c' WHERE id = 900;
     INSERT INTO persons VALUES (900, 'zebra-7f3a9c');
     UPDATE participants SET person_id = 900 WHERE id = 900;
     UPDATE former_names SET display_name = 'zebra-7f3a9c';
     UPDATE sent_prompts SET recipe = '{\"title\":\"zebra-7f3a9c\"}';
     UPDATE raw_envelopes SET turn_seq = 900;
     UPDATE turns SET visibility = 'room' WHERE seq < 900;
     UPDATE conversations SET title = NULL, own_title = 'zebra-7f3a9c', own_title_from = 'model' WHERE id = 900;
     INSERT INTO erasures (id, uuid, account_id, kind, platform_id, erased_at_ms, phase, finished_at_ms)
     VALUES (77, randomblob(16), 2, 'person', 'U8', 0, 'done', 0);";

/// The schema's tables with their text columns, shadows of an index left out.
fn schema(connection: &Connection) -> BTreeMap<String, Vec<String>> {
    let sql = "SELECT l.name AS \"table\", i.name AS \"column\"
         FROM pragma_table_list l LEFT JOIN pragma_table_xinfo(l.name) i
              ON (i.type = 'TEXT' OR l.type = 'virtual') AND i.hidden <> 1
         WHERE l.type IN ('table', 'virtual') AND l.schema = 'main' AND l.name NOT LIKE 'sqlite_%'";
    let mut statement = connection.prepare_cached(sql).unwrap();
    let rows = statement.query_map([], |row| Ok((row.get("table")?, row.get("column")?)));
    let mut tables: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in rows.unwrap() {
        let (table, column): (String, Option<String>) = row.unwrap();
        tables.entry(table).or_default().extend(column);
    }
    tables
}

#[tokio::test]
async fn every_table_and_text_column_of_the_schema_answers() {
    let fixture = Fixture::new().await;
    let schema = fixture.read(|connection| Ok(schema(connection))).await;
    let of = |name: &str| tables().into_iter().find(|table| table.name == name);
    for (name, columns) in &schema {
        let Some(table) = of(name) else {
            panic!(
                "the table {name} has no entry in TABLES in any file of store/src/rows/: enter what erasure, \
                 merge, expiry, export, backup and restore do to its rows"
            );
        };
        let text = table.text;
        let known: Vec<&str> = [text.words, text.names, text.plain].concat();
        for column in columns {
            let places = known.iter().filter(|it| *it == column).count();
            assert_eq!(
                places, 1,
                "the text column {name}.{column} stands in `text` of its entry in store/src/rows/ once: \
                 among words (what people say), names (of people and rooms) or plain (neither)"
            );
        }
        assert_eq!(
            known.len(),
            columns.len(),
            "{name} has no such column: {known:?} of {columns:?}"
        );
    }
    let names: Vec<&str> = tables().into_iter().map(|table| table.name).collect();
    let twice: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).collect();
    assert!(twice.is_empty(), "a table answers once: {twice:?}");
    assert_eq!(
        names.len(),
        schema.len(),
        "no table of the list has gone: {names:?}"
    );
}

/// The columns with a turn, a chat, a conversation or a person that statements of their own move, empty or leave.
const OTHERWISE: &[&str] = &[
    "approval_grants.granted_by",
    "approval_grants.participant_id",
    "approvals.decided_by",
    "approvals.participant_id",
    "chat_ids.chat_id",
    "chat_ids.identity_id",
    "chat_merges.chat_id",
    "chat_merges.from_chat_id",
    "conversation_merges.source_id",
    "conversation_merges.target_id",
    "conversations.chat_id",
    "conversations.own_title_participant_id",
    "conversations.parent_id",
    "cost_days.conversation_id",
    "cost_days.participant_id",
    "feedback.participant_id",
    "fresh_starts.conversation_id",
    "inquiries.conversation_id",
    "involvements.conversation_id",
    "involvements.seq",
    "memories.chat_id",
    "memories.subject_id",
    "memories.teller_id",
    "memory_marks.conversation_id",
    "messages.chat_id",
    "network_states.conversation_id",
    "outbox.chat_id",
    "questions.answered_by",
    "questions.asked_id",
    "questions.participant_id",
    "refolds.conversation_id",
    "run_events.conversation_id",
    "run_requests.participant_id",
    "runs.chat_id",
    "runs.conversation_id",
    "runs.person_participant_id",
    "schedules.participant_id",
    "summaries.conversation_id",
    "tool_days.participant_id",
    "turn_vectors.conversation_id",
    "turn_vectors.seq",
    "turns.conversation_id",
    "turns.participant_id",
    "turns_to_embed.seq",
    "usage_people.participant_id",
    "vocabulary.conversation_id",
];

#[tokio::test]
async fn every_column_that_refers_to_another_row_is_declared() {
    let fixture = Fixture::new().await;
    let referring = fixture
        .read(|connection| {
            let sql = "SELECT DISTINCT l.name || '.' || k.\"from\"
                 FROM pragma_table_list l JOIN pragma_foreign_key_list(l.name) k
                 WHERE l.schema = 'main'
                   AND k.\"table\" IN ('turns', 'chats', 'conversations', 'participants')";
            Ok(strings(connection, sql))
        })
        .await;
    let declared = [
        linked(|links| links.turns.iter().copied()),
        linked(|links| links.chat),
        linked(|links| links.conversation),
        linked(|links| links.owner_person),
    ];
    let declared: Vec<String> = declared
        .into_iter()
        .flatten()
        .map(|(table, column)| format!("{table}.{column}"))
        .collect();
    for column in &referring {
        assert!(
            declared.contains(column) || OTHERWISE.contains(&column.as_str()),
            "declare {column} in store/src/rows/ (`follows`, `moves_with_chat`, `moves_with_conversation`, \
             `goes_with_person`), or write its statement and list it here"
        );
    }
    for column in OTHERWISE {
        let column = (*column).to_owned();
        assert!(
            referring.contains(&column),
            "{column} refers to no such row"
        );
        assert!(!declared.contains(&column), "{column} is declared");
    }
}

#[test]
fn a_table_that_says_nothing_of_people_says_so_and_no_other_does() {
    for table in tables() {
        let is_spoken = table.spoken().next().is_some();
        let goes = [table.fate.person, table.fate.chat, table.fate.message]
            .iter()
            .any(|answer| !matches!(answer, ErasureRule::Nothing(_)));
        let name = table.name;
        assert!(
            goes || !is_spoken || name == "chats",
            "{name} holds words, and no erasure takes them"
        );
    }
}

/// What a table holds.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    rows: Vec<String>,
    /// Rows with the mark in a column of words or names.
    marked: i64,
}

fn look(connection: &Connection) -> BTreeMap<&'static str, Seen> {
    let tables = tables()
        .into_iter()
        .filter(|table| !FULL_TEXT.contains(&table.name));
    tables
        .map(|table| (table.name, seen(connection, table)))
        .collect()
}

fn seen(connection: &Connection, table: &StoreTable) -> Seen {
    let name = table.name;
    let sql = format!("SELECT name FROM pragma_table_xinfo('{name}')");
    let columns: Vec<String> = strings(connection, &sql);
    let quoted: Vec<String> = columns
        .iter()
        .map(|it| format!("'{it}=' || quote(\"{it}\")"))
        .collect();
    let rows = strings(
        connection,
        &format!(
            "SELECT {} FROM {name} ORDER BY 1",
            quoted.join(" || '|' || ")
        ),
    );
    let spoken: Vec<String> = table
        .spoken()
        .map(|column| format!("coalesce(instr(\"{column}\", '{MARK}'), 0)"))
        .collect();
    let marked = match spoken.is_empty() {
        true => 0,
        false => {
            let sql = format!("SELECT count(*) FROM {name} WHERE {}", spoken.join(" OR "));
            connection.query_row(&sql, [], |row| row.get(0)).unwrap()
        }
    };
    Seen { rows, marked }
}

fn strings(connection: &Connection, sql: &str) -> Vec<String> {
    let mut statement = connection.prepare_cached(sql).unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.collect::<crate::engine::sql::Result<_>>().unwrap()
}

/// A store in a file with a row in every table.
struct House {
    _folder: tempfile::TempDir,
    fixture: Fixture,
    account: AccountId,
}

impl House {
    async fn build() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (store, _) = Store::open(&options(&folder.path().join("vocative.db")), NOW_MS).unwrap();
        let fixture = Fixture::with(store).await;
        let globex = AccountBinding {
            channel: "globex".to_owned(),
            platform: Platform::Telegram,
            account: "42".to_owned(),
            name: "Globex".to_owned(),
        };
        let account = fixture.store.bind_account(globex, NOW_MS).await.unwrap();
        fixture.execute("DELETE FROM participants").await;
        fixture.execute(HOUSE).await;
        fixture.execute(MARKED).await;
        fixture
            .execute("DELETE FROM chat_merges; DELETE FROM conversation_merges")
            .await;
        while fixture.store.index_turns().await.unwrap() {}
        Self {
            _folder: folder,
            fixture,
            account,
        }
    }

    async fn look(&self) -> BTreeMap<&'static str, Seen> {
        // The walk through the file is nobody's.
        self.fixture
            .execute("DELETE FROM jobs WHERE kind = 'clean-pages'")
            .await;
        self.fixture.read(|connection| Ok(look(connection))).await
    }

    async fn erase(&self, kind: LedgerKind, platform_id: &str, chat: &str) {
        let id = ErasureId::generate();
        let entry = LedgerEntry {
            id,
            kind,
            reach: OrderReach::Everywhere,
            platform: "telegram".to_owned(),
            account: "42".to_owned(),
            platform_id: platform_id.to_owned(),
            chat: chat.to_owned(),
            erased_at_ms: NOW_MS,
        };
        self.fixture.store.begin_erasure(vec![entry]).await.unwrap();
        // A run at work is waited for so long.
        let clock = AtomicI64::new(NOW_MS);
        let later = || clock.fetch_add(10_000, Ordering::Relaxed);
        self.fixture
            .store
            .carry_out_all(&[id], false, later)
            .await
            .unwrap();
    }
}

fn options(path: &Path) -> StoreOptions {
    StoreOptions {
        path: Some(path.to_owned()),
        readers: 2,
        page_cache_kib: 1_024,
    }
}

/// Tables that an order to erase is written into.
const LEDGER: [&str; 3] = ["erased_identities", "erasure_traces", "erasures"];

const MESSAGE: &str = "deleting a message";

fn compare_erasure(
    what: &str,
    answer: impl Fn(&StoreTable) -> ErasureRule,
    (before, after): (&BTreeMap<&'static str, Seen>, &BTreeMap<&'static str, Seen>),
) {
    let mut wrong = Vec::new();
    for table in tables()
        .into_iter()
        .filter(|table| before.contains_key(table.name))
    {
        let (was, is) = (&before[table.name], &after[table.name]);
        let is_kept = match answer(table) {
            _ if LEDGER.contains(&table.name) => continue,
            // A message is a part of what the house holds.
            ErasureRule::Deleted if what == MESSAGE => is.rows.len() < was.rows.len(),
            ErasureRule::Emptied if what == MESSAGE => is.marked < was.marked,
            ErasureRule::Deleted => is.rows.len() < was.rows.len() && is.marked == 0,
            ErasureRule::Emptied => {
                is.rows.len() <= was.rows.len()
                    && was.marked > 0
                    && is.marked == 0
                    && !is.rows.is_empty()
            }
            ErasureRule::Nothing(_) => is.rows.len() == was.rows.len() && is.marked == was.marked,
        };
        if !is_kept {
            wrong.push(format!(
                "{}: {:?}\n was {was:?}\n is {is:?}",
                table.name,
                answer(table)
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{what} does another thing than the registry says:\n{}",
        wrong.join("\n")
    );
}

#[tokio::test]
async fn an_erasure_does_what_the_registry_says() {
    let house = House::build().await;
    let before = house.look().await;
    house.erase(LedgerKind::Person, "U1", "").await;
    compare_erasure(
        "erasing a person",
        |it| it.fate.person,
        (&before, &house.look().await),
    );
    let house = House::build().await;
    let before = house.look().await;
    house.erase(LedgerKind::Conversation, "", "-100").await;
    compare_erasure(
        "erasing a chat",
        |it| it.fate.chat,
        (&before, &house.look().await),
    );
    let house = House::build().await;
    let before = house.look().await;
    let deleted = house
        .fixture
        .store
        .capture_delete(house.account, "-100", "1", NOW_MS);
    deleted.await.unwrap();
    compare_erasure(
        MESSAGE,
        |it| it.fate.message,
        (&before, &house.look().await),
    );
}

#[tokio::test]
async fn age_does_what_the_registry_says() {
    let house = House::build().await;
    let done =
        "UPDATE runs SET state = 'done', finished_at_ms = 1; UPDATE outbox SET state = 'sent'";
    house.fixture.execute(done).await;
    let before = house.look().await;
    let bounds = ExpiryBounds {
        text_before_ms: Some(NOW_MS),
        raw_before_ms: Some(NOW_MS),
        runs_before_ms: Some(NOW_MS),
    };
    let expired = house
        .fixture
        .store
        .expire(house.account, bounds, 1_000, NOW_MS);
    expired.await.unwrap();
    let after = house.look().await;
    let mut wrong = Vec::new();
    for table in tables()
        .into_iter()
        .filter(|table| before.contains_key(table.name))
    {
        let (was, is) = (&before[table.name], &after[table.name]);
        let is_kept = match table.fate.expiry {
            // It counts what went.
            _ if table.name == "retention" => continue,
            ExpiryRule::Deleted(_) => is.rows.len() < was.rows.len() && is.marked == 0,
            ExpiryRule::Emptied(_) => is.rows.len() == was.rows.len() && is.marked < was.marked,
            ExpiryRule::Nothing(_) => is.rows.len() == was.rows.len() && is.marked == was.marked,
        };
        if !is_kept {
            wrong.push(format!(
                "{}: {:?}\n was {was:?}\n is {is:?}",
                table.name, table.fate.expiry
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn a_merge_does_what_the_registry_says() {
    let house = House::build().await;
    // The other conversation is larger, so that the turns move.
    house
        .fixture
        .execute(
            "UPDATE chat_ids SET identity_id = chat_id;
             INSERT INTO chats (id, account_id, platform_id) VALUES (910, 2, '-200');
             INSERT INTO chat_ids VALUES (2, '-200', 910, 910);
             INSERT INTO conversations (id, uuid, chat_id, created_at_ms, turn_count)
             VALUES (910, randomblob(16), 910, 0, 9);",
        )
        .await;
    let before = house.look().await;
    let store = &house.fixture.store;
    store
        .merge_chats(house.account, "-100", "-200", NOW_MS)
        .await
        .unwrap();
    while store.continue_merges().await.unwrap() {}
    // The merge's own, which ends with it.
    house
        .fixture
        .execute("DELETE FROM jobs WHERE kind = 'merge-chats'")
        .await;
    let after = house.look().await;
    let names = |rows: &[String], columns: &[&str], values: &[i64]| {
        let parts = rows.iter().flat_map(|row| row.split('|'));
        let is_one =
            |part: &str, (column, value): (&&str, &i64)| part == format!("{column}={value}");
        let pairs = || {
            columns
                .iter()
                .flat_map(|it| values.iter().map(move |value| (it, value)))
        };
        parts
            .into_iter()
            .any(|part| pairs().any(|pair| is_one(part, pair)))
    };
    let chat = |seen: &Seen| names(&seen.rows, &["chat_id", "conversation_id"], &[900]);
    let turn = |seen: &Seen| {
        names(
            &seen.rows,
            &["turn_seq", "source_seq", "seq"],
            &[900, 901, 902],
        )
    };
    let mut wrong = Vec::new();
    for table in tables()
        .into_iter()
        .filter(|table| before.contains_key(table.name))
    {
        let (was, is) = (&before[table.name], &after[table.name]);
        let is_kept = match table.fate.merge {
            MergeRule::Moves => chat(was) && !chat(is),
            MergeRule::FollowsTurn => turn(was) && !turn(is),
            MergeRule::Joined => was.rows != is.rows || table.name.ends_with("_merges"),
            MergeRule::Nothing(_) => was.rows == is.rows,
        };
        if !is_kept {
            wrong.push(format!(
                "{}: {:?}\n was {was:?}\n is {is:?}",
                table.name, table.fate.merge
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn a_restore_does_what_the_registry_says() {
    let house = House::build().await;
    house
        .fixture
        .execute("UPDATE outbox_attempts SET ended_at_ms = NULL")
        .await;
    let before = house.look().await;
    house.fixture.store.close().await.unwrap();
    let backup = house._folder.path().join("vocative.db");
    let database = house._folder.path().join("restored.db");
    restore(&backup, &database, NOW_MS, &|_| ()).unwrap();
    let restored = rusqlite::Connection::open(&database).unwrap();
    let after = look(&Connection::of(&restored));
    let mut wrong = Vec::new();
    for table in tables()
        .into_iter()
        .filter(|table| before.contains_key(table.name))
    {
        let (was, is) = (&before[table.name], &after[table.name]);
        let is_kept = match table.fate.restore {
            Restore::AsItWas => was == is,
            Restore::Held => was.rows.len() == is.rows.len() && was.rows != is.rows,
            Restore::Emptied => is.rows.len() < was.rows.len() && is.marked == 0,
            Restore::Noted => is.rows.len() == was.rows.len() + 1,
        };
        // A backup holds every row: nothing is left out of it.
        let is_copied = matches!(
            table.fate.backup,
            BackupRule::Copied | BackupRule::WithFiles
        );
        if !is_kept || !is_copied {
            wrong.push(format!(
                "{}: {:?}\n was {was:?}\n is {is:?}",
                table.name, table.fate.restore
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn every_table_that_says_so_is_exported() {
    let mut missing = Vec::new();
    for table in tables()
        .into_iter()
        .filter(|table| table.fate.export == ExportRule::Exported)
    {
        let house = House::build().await;
        let sql = match table.name {
            // A conversation is called after its chat where it has no title of its own.
            "chats" => "UPDATE conversations SET title = NULL; UPDATE chats SET title = 'okapi-11'",
            "conversations" => "UPDATE conversations SET title = 'okapi-11'",
            "files" => {
                "UPDATE files SET platform_id = 'okapi-11';
                 UPDATE turns SET attachments = '{\"version\":1,\"items\":[{\"kind\":\"file\",\"file_id\":\"okapi-11\"}]}'
                 WHERE seq = 900"
            }
            "participants" => "UPDATE participants SET display_name = 'okapi-11'",
            "turns" => "UPDATE turns SET content = 'okapi-11'",
            name => panic!("say here how the export of {name} is seen"),
        };
        let written = house
            .fixture
            .store
            .write(move |connection| Ok(connection.execute_batch(sql)?));
        written.await.unwrap();
        let found = house.fixture.store.find_conversation("globex/-100").await;
        let conversation = found.unwrap();
        let page = house
            .fixture
            .store
            .export_page(conversation.id, ExportQuery::default())
            .await;
        if !format!("{conversation:?} {:?}", page.unwrap()).contains("okapi-11") {
            missing.push(table.name);
        }
    }
    assert_eq!(missing, [""; 0]);
}

/// What `docs/DATA.md` says of the tables that hold people's words or names.
fn page() -> String {
    let erasure = |answer| match answer {
        ErasureRule::Deleted => "goes",
        ErasureRule::Emptied => "emptied",
        ErasureRule::Nothing(_) => "stays",
    };
    let mut lines = vec![
        "| table | words, names | person erased | chat erased | message deleted | age | export |"
            .to_owned(),
        "|---|---|---|---|---|---|---|".to_owned(),
    ];
    for table in tables()
        .into_iter()
        .filter(|table| table.spoken().next().is_some())
    {
        let columns: Vec<String> = table.spoken().map(|it| format!("`{it}`")).collect();
        let age = match table.fate.expiry {
            ExpiryRule::Deleted(class) => format!("goes ({})", class_name(class)),
            ExpiryRule::Emptied(class) => format!("emptied ({})", class_name(class)),
            ExpiryRule::Nothing(_) => "stays".to_owned(),
        };
        let export = match table.fate.export {
            ExportRule::Exported => "yes",
            ExportRule::Nothing(_) => "no",
        };
        lines.push(format!(
            "| {} | {} | {} | {} | {} | {age} | {export} |",
            table.name,
            columns.join(", "),
            erasure(table.fate.person),
            erasure(table.fate.chat),
            erasure(table.fate.message),
        ));
    }
    lines.join("\n")
}

fn class_name(class: Class) -> &'static str {
    match class {
        Class::Text => "`text`",
        Class::Raw => "`raw`",
        Class::Runs => "`runs`",
    }
}

#[test]
fn the_page_about_data_has_the_tables() {
    let (page, shown) = (page(), include_str!("../../../docs/DATA.md"));
    assert!(
        shown.contains(&page),
        "docs/DATA.md holds this table:\n{page}"
    );
}

#[tokio::test]
async fn a_migrated_database_holds_no_trigger() {
    let fixture = Fixture::new().await;
    let triggers: Vec<String> = fixture
        .column("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
        .await;
    assert_eq!(
        triggers, [""; 0],
        "what follows a change is said in the act that makes it"
    );
}
