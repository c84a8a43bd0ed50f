//! Two accounts in one store: whatever people of one ask for themselves, every row of the other stays as it
//! is, byte for byte.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::*;
use crate::acts::commands::NewCommand;
use crate::acts::erasure::has_forgotten_lately;
use crate::contract::NonMessage;
use crate::registry::RowOwner;

use crate::scene::{Room, Scene};
use vocative_contract::envelope::{ChatKind, Command};
use vocative_core::command::{CommandFacts, CommandName, CommandVerdict, Effect};
use vocative_core::history::HistoryRole;
use vocative_core::ids::{RunId, TurnId};
use vocative_core::judging::commands::read_command;
use vocative_core::judging::policy::ChannelPolicy;
use vocative_core::judging::testing;
use vocative_core::sent::{SentPrompt, SentTurn};

/// What Ann of the first account was the first to say, and everybody repeats.
const PHRASE: &str = "the code is zebra-7f3a9c, sesame";

/// Every row of an account by table, each column as SQL writes it.
async fn rows_of(store: &Store, account: AccountId) -> BTreeMap<String, Vec<String>> {
    let read = store.read(move |connection| {
        let mut rows = BTreeMap::new();
        for table in tables(connection) {
            if let Some(owner) = owner(connection, &table, "t", 0) {
                let columns: Vec<String> = column_names(connection, &table)
                    .iter()
                    .map(|name| format!("quote(t.\"{name}\")"))
                    .collect();
                let sql = format!(
                    "SELECT {} FROM {table} t WHERE {owner} = ?1 ORDER BY 1",
                    columns.join(" || '|' || ")
                );
                let mut statement = connection.prepare_cached(&sql)?;
                let found = statement.query_map([account], |row| row.get(0))?;
                rows.insert(table, found.collect::<crate::engine::sql::Result<_>>()?);
            } else {
                let entry = crate::rows::tables()
                    .into_iter()
                    .find(|it| it.name == table);
                let whose = entry.map(|it| it.owner);
                assert!(
                    matches!(whose, Some(RowOwner::Nobody(_))),
                    "whose is {table}?"
                );
            }
        }
        Ok(rows)
    });
    read.await.unwrap()
}

fn tables(connection: &Connection) -> Vec<String> {
    let sql = "SELECT name FROM pragma_table_list WHERE type = 'table' AND schema = 'main'
                 AND name NOT LIKE 'sqlite_%' ORDER BY name";
    let mut statement = connection.prepare_cached(sql).unwrap();
    let names = statement.query_map([], |row| row.get(0)).unwrap();
    names.collect::<crate::engine::sql::Result<_>>().unwrap()
}

fn column_names(connection: &Connection, table: &str) -> Vec<String> {
    let sql = "SELECT name FROM pragma_table_xinfo(?1)";
    let mut statement = connection.prepare_cached(sql).unwrap();
    let names = statement.query_map([table], |row| row.get(0)).unwrap();
    names.collect::<crate::engine::sql::Result<_>>().unwrap()
}

/// An expression for the account that a row of a table belongs to: its own column, or that of what it
/// refers to.
fn owner(connection: &Connection, table: &str, alias: &str, depth: usize) -> Option<String> {
    if column_names(connection, table)
        .iter()
        .any(|name| name == "account_id")
    {
        return Some(format!("{alias}.account_id"));
    }
    if table == "accounts" {
        return Some(format!("{alias}.id"));
    }
    let sql =
        "SELECT \"table\", \"from\", \"to\" FROM pragma_foreign_key_list(?1) ORDER BY seq, id";
    let mut statement = connection.prepare_cached(sql).unwrap();
    let keys = statement
        .query_map([table], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .unwrap();
    let keys: Vec<(String, String, String)> =
        keys.collect::<crate::engine::sql::Result<_>>().unwrap();
    let mut owners = Vec::new();
    let parents = keys
        .iter()
        .filter(|(parent, ..)| parent != table && depth < 5);
    for (parent, from, to) in parents {
        let inner = format!("p{depth}");
        if let Some(owner) = owner(connection, parent, &inner, depth + 1) {
            owners.push(format!(
                "(SELECT {owner} FROM {parent} {inner} WHERE {inner}.{to} = {alias}.{from})"
            ));
        }
    }
    (!owners.is_empty()).then(|| format!("coalesce({}, NULL)", owners.join(", ")))
}

/// Two accounts in a file; Ann speaks in the first, and everything of the second repeats her.
struct Houses {
    folder: tempfile::TempDir,
    ann: Fixture,
    scene: Scene,
    neighbour: AccountId,
    room: Room,
}

impl Houses {
    fn path(&self) -> PathBuf {
        self.folder.path().join("vocative.db")
    }

    async fn build() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = StoreOptions {
            path: Some(folder.path().join("vocative.db")),
            readers: 2,
            page_cache_kib: 1_024,
        };
        let (store, _) = Store::open(&options, NOW_MS).unwrap();
        let ann = Fixture::with(store.clone()).await;
        let scene = Scene {
            store: store.clone(),
            account: ann.account,
        };
        let neighbour = AccountBinding {
            channel: "globex".to_owned(),
            platform: Platform::Telegram,
            account: "42".to_owned(),
            name: "Globex".to_owned(),
        };
        let neighbour = store.bind_account(neighbour, NOW_MS).await.unwrap();
        ann.hear(said("1", PHRASE)).await;
        ann.hear_for(&["helper"], said("2", "what is zebra-7f3a9c?"))
            .await;
        ann.hear(Said {
            by: "U2",
            name: Some("Bob"),
            reply_to: Some("1"),
            ..said("3", "good")
        })
        .await;
        ann.execute(NEIGHBOUR).await;
        let room = scene.room("C1").await;
        Self {
            folder,
            ann,
            scene,
            neighbour,
            room,
        }
    }

    fn command(&self, id: &str, effect: Effect) -> NewCommand {
        let now_ms = NOW_MS + 600_000;
        let verdict = CommandVerdict {
            effect,
            ..CommandVerdict::told("done")
        };
        NewCommand {
            event: NonMessage {
                account: self.ann.account,
                id: id.to_owned(),
                kind: "command",
                sender_id: "U1".to_owned(),
                chat: Some("C1".to_owned()),
                text: format!("/vocative {PHRASE}"),
                received_at_ms: now_ms,
            },
            place: Place {
                chat: "C1".to_owned(),
                ..Place::default()
            },
            sender: Sender {
                id: "U1".to_owned(),
                display_name: Some("Ada".to_owned()),
                username: None,
                kind: SenderKind::Person,
                is_stranger: false,
            },
            judge: Box::new(move |_| Some(verdict)),
        }
    }

    /// Gives a command of Ann's and does all that it orders.
    async fn give(&self, id: &str, effect: Effect) -> crate::acts::erasure::CarriedOut {
        let command = self.command(id, effect);
        let done = self.ann.store.capture_command(command).await.unwrap();
        let store = &self.ann.store;
        // A run at work that has not said what it read is waited for so long.
        let clock = std::sync::atomic::AtomicI64::new(NOW_MS + 600_001);
        let later = || clock.fetch_add(10_000, std::sync::atomic::Ordering::Relaxed);
        store
            .carry_out_all(&done.erasures, false, later)
            .await
            .unwrap()
    }

    /// A run of the first account that is being worked on, and what it is recorded to have read.
    async fn work(&self, read: Option<TurnId>) -> RunId {
        self.scene.ask(&self.room, "please", NOW_MS + 590_000).await;
        let run = self.scene.claim(NOW_MS + 600_000).await.unwrap();
        let sent = SentPrompt {
            recipe: "{}".to_owned(),
            instructions: String::new(),
            tools: "[]".to_owned(),
            summary: None,
            turns: read
                .map(|turn| SentTurn {
                    turn,
                    role: HistoryRole::Kept,
                    revision: 1,
                })
                .into_iter()
                .collect(),
            thread_answers: Vec::new(),
        };
        let recorded = self
            .scene
            .store
            .record_prompt(run.run.id, run.token, sent, Vec::new());
        recorded.await.unwrap();
        run.run.id
    }
}

/// One row or more of the second account in every table, all with what Ann said first.
const NEIGHBOUR: &str = include_str!("neighbour.sql");

/// What people say to commands: each word by itself, and what does more behind one.
fn said_to_commands() -> Vec<String> {
    let words = CommandName::ALL.iter().map(|name| name.name().to_owned());
    let more = [
        "new helper",
        "remind in 20m the code is zebra-7f3a9c",
        "remind cancel 900",
        "schedule weekdays 9:00 read out the code",
        "schedule run 900",
        "approvals deny all",
        "memory forget 900",
        "memory change 900 the code is known",
        "memory share 900",
        "title zebra-7f3a9c",
        "title -",
        "link -",
        "forget chat yes",
        "forget me yes",
    ];
    words.chain(more.map(str::to_owned)).collect()
}

/// What a text behind the app's command does, said in a direct chat by an administrator: they may do the most.
fn effect_of(text: &str) -> Effect {
    let helper = testing::agent("helper");
    let mut policy = ChannelPolicy {
        admins: vec!["U1".to_owned()],
        default_agent: helper.clone(),
        ..testing::policy()
    };
    // The other account has an agent of that name, too.
    policy.agents[0].aliases = vec![helper.to_string()];
    policy.agents[0].name = helper;
    let said = testing::message("x");
    let command = Command {
        id: "1".to_owned(),
        place: said.place,
        sender: Sender {
            id: "U1".to_owned(),
            ..said.sender
        },
        name: "/vocative".to_owned(),
        text: text.to_owned(),
    };
    let facts = CommandFacts {
        is_in_room: true,
        ..CommandFacts::default()
    };
    let kind = Some(ChatKind::Direct);
    let verdict = read_command(&command, CommandFacts { kind, ..facts }, &policy);
    verdict.unwrap().effect
}

#[tokio::test]
async fn every_row_of_another_account_stays_as_it_is_whatever_a_person_asks_for() {
    let houses = Houses::build().await;
    let store = &houses.ann.store;
    let copy = houses.folder.path().join("vocative.db.before-0002");
    std::fs::write(&copy, PHRASE).unwrap();
    let before = rows_of(store, houses.neighbour).await;
    let empty: Vec<&String> = before
        .iter()
        .filter(|(_, rows)| rows.is_empty())
        .map(|it| it.0)
        .collect();
    let expected = ["erasure_traces", "retention"];
    assert_eq!(empty, expected, "every other table has a row to be kept");
    let unchanged = async |what: &str| {
        for (table, rows) in rows_of(store, houses.neighbour).await {
            assert_eq!(rows, before[&table], "{what} changed {table}");
        }
        let found = houses.ann.found("content : \"zebra 7f3a9c sesame\"").await;
        assert!(found.contains(&900), "{what} changed the index");
    };
    unchanged("nothing").await;
    houses
        .ann
        .hear(Said {
            edit_marker: Some("9"),
            ..said("1", "an edit of zebra-7f3a9c")
        })
        .await;
    unchanged("an edit").await;
    houses
        .ann
        .store
        .capture_delete(houses.ann.account, "C1", "3", NOW_MS)
        .await
        .unwrap();
    unchanged("a delete").await;
    let said_to_commands = said_to_commands().into_iter();
    let message = Effect::ForgetMessage {
        message_id: "2".to_owned(),
    };
    let asked = said_to_commands.map(|text| (effect_of(&text), text));
    let asked = [(message, "a reply".to_owned())].into_iter().chain(asked);
    for (n, (effect, what)) in asked.enumerate() {
        houses.ann.hear(said("7", PHRASE)).await;
        let done = houses.give(&format!("t{n}"), effect).await;
        assert_eq!(done.removed_copies, [] as [PathBuf; 0], "{what}");
        unchanged(&what).await;
    }
    assert_eq!(std::fs::read_to_string(&copy).unwrap(), PHRASE);
    assert!(!houses.ann.contents().await[0].contains("zebra"));
}

#[tokio::test]
async fn a_start_that_finishes_what_was_asked_for_leaves_the_neighbour_alone() {
    let houses = Houses::build().await;
    let store = &houses.ann.store;
    let copy = houses.folder.path().join("vocative.db.before-0002");
    std::fs::write(&copy, PHRASE).unwrap();
    let before = rows_of(store, houses.neighbour).await;
    let command = houses.command("t99", Effect::ForgetPerson);
    let path = houses.path();
    store.capture_command(command).await.unwrap();
    store.close().await.unwrap();
    let Houses {
        folder, neighbour, ..
    } = houses;
    let options = StoreOptions {
        path: Some(path),
        readers: 1,
        page_cache_kib: 1_024,
    };
    let (store, _) = Store::open(&options, NOW_MS + 700_000).unwrap();
    let after = rows_of(&store, neighbour).await;
    // A start takes back the leases of its predecessor, of everybody.
    let taken_back = ["runs", "run_events"];
    for (table, rows) in before {
        if !taken_back.contains(&table.as_str()) {
            assert_eq!(after[&table], rows, "{table}");
        }
    }
    let status = store.status(NOW_MS).await.unwrap();
    assert!(copy.exists() && status.erasures_open == 0, "{folder:?}");
}

#[tokio::test]
async fn only_runs_that_read_what_a_person_said_are_stopped() {
    let houses = Houses::build().await;
    let first: TurnId = houses
        .ann
        .value("SELECT uuid FROM turns WHERE seq = 1")
        .await;
    let others: TurnId = houses
        .ann
        .value("SELECT uuid FROM turns WHERE seq = 3")
        .await;
    houses
        .ann
        .execute("UPDATE runs SET state = 'done' WHERE id < 900")
        .await;
    houses
        .ann
        .execute("UPDATE participants SET platform_id = 'U9' WHERE platform_id = 'U2'")
        .await;
    let reader = houses.work(Some(first)).await;
    houses.ann.execute("UPDATE turns SET participant_id = (SELECT id FROM participants WHERE platform_id = 'U9') WHERE content = 'please'").await;
    let thread = houses.scene.room("C2").await;
    let in_thread = Houses {
        room: thread,
        ..houses
    };
    let other = in_thread.work(Some(others)).await;
    in_thread.ann.execute("UPDATE turns SET participant_id = (SELECT id FROM participants WHERE platform_id = 'U9') WHERE content = 'please'").await;
    in_thread.give("t1", Effect::ForgetPerson).await;
    let asked = |run: RunId| {
        let store = in_thread.ann.store.clone();
        async move {
            let sql = "SELECT stop_cause FROM runs WHERE uuid = ?1";
            let read = store.read(move |it| Ok(it.query_row(sql, [run], |row| row.get(0))?));
            read.await.unwrap()
        }
    };
    let (reader, other): (Option<String>, Option<String>) =
        (asked(reader).await, asked(other).await);
    assert_eq!(
        (reader.as_deref(), other.as_deref()),
        (Some("erased"), None)
    );
}

#[tokio::test]
async fn an_operator_is_told_of_copies_that_hold_what_was_forgotten() {
    let houses = Houses::build().await;
    let copy = houses.folder.path().join("vocative.db.before-0002");
    std::fs::write(&copy, PHRASE).unwrap();
    let now_ms = wall_clock_ms();
    let mut command = houses.command("t1", Effect::ForgetPerson);
    command.event.received_at_ms = now_ms + 1_000;
    let done = houses.ann.store.capture_command(command).await.unwrap();
    let store = &houses.ann.store;
    let done = store
        .carry_out_all(&done.erasures, false, || now_ms + 1_000)
        .await
        .unwrap();
    assert_eq!(done.kept_copies, std::slice::from_ref(&copy));
    assert_eq!(store.status(now_ms).await.unwrap().copies_to_remove, [copy]);
}

fn wall_clock_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    i64::try_from(since.unwrap().as_millis()).unwrap()
}

#[tokio::test]
async fn a_person_has_everything_forgotten_once_a_day() {
    let houses = Houses::build().await;
    let facts = async |at_ms| {
        let account = houses.ann.account;
        let read = houses
            .ann
            .store
            .read(move |it| has_forgotten_lately(it, account, "U1", at_ms));
        read.await.unwrap()
    };
    assert!(!facts(NOW_MS).await);
    houses.give("t1", Effect::ForgetPerson).await;
    let asked_ms = NOW_MS + 600_000;
    assert!(facts(asked_ms + 86_000_000).await);
    assert!(!facts(asked_ms + 86_400_000).await);
    // A clock that is set back keeps nobody waiting for longer than a day.
    assert!(!facts(asked_ms - 90_000_000).await);
}
