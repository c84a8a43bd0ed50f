//! Chats of any size become one: each step moves a bounded number of rows, and between two of them
//! everything that readers are promised holds.

use crate::engine::sql::{Connection, params};

use super::*;
use crate::contract::DeadFilter;

use crate::acts::erasure::ErasureTarget;
use crate::contract::{ExportQuery, SearchMode, SearchQuery};
use crate::rows::linked;
use crate::rows::search_text::index_turn_txn;

/// Turns of the two chats: more than the first commit and two steps move, of the smaller one.
const OLD_TURNS: i64 = 1_400;
const NEW_TURNS: i64 = 1_200;

/// The most rows that may change for a turn that moves: the turn, its message, what concerns an agent, the list
/// of what moves, and the index.
const ROWS_A_TURN: i64 = 16;

fn in_chat(chat: &'static str, id: &'static str, text: &'static str, at_ms: i64) -> Said {
    Said {
        chat,
        kind: Some(ChatKind::Private),
        at_ms,
        ..said(id, text)
    }
}

/// Turns of a chat in every second from `from_s`, as capture leaves them; every hundredth concerns an agent.
async fn fill(fixture: &Fixture, chat: &'static str, from_s: i64, turns: i64) {
    fixture
        .hear(in_chat(chat, "0", "the first", NOW_MS + from_s * 1_000))
        .await;
    let fill = move |connection: &Connection| -> Result<(), StoreError> {
        let (room, identity): (i64, i64) = connection.query_row(
            "SELECT c.id, c.chat_id FROM conversations c JOIN chats h ON h.id = c.chat_id
             WHERE h.platform_id = ?1",
            [chat],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        for i in 1..turns {
            connection.execute(
                "INSERT INTO turns (uuid, conversation_id, sent_at_ms, ordinal, kind, scope,
                                    participant_id, content, captured_at_ms, is_inbound)
                 VALUES (randomblob(16), ?1, ?2, ?3, 'message', 'channel',
                         (SELECT min(id) FROM participants), ?4, ?2, 1)",
                // Every ten of them are of one place, as of an import without exact times.
                params![
                    room,
                    NOW_MS + (from_s + i / 10 * 20) * 1_000,
                    i / 10,
                    format!("{chat} {i:04}")
                ],
            )?;
            let seq = connection.last_insert_rowid();
            index_turn_txn(connection, seq)?;
            connection.execute(
                "INSERT INTO messages (account_id, chat_id, platform_id, turn_seq, sent_at_ms)
                 VALUES (1, ?1, ?2, ?3, ?4)",
                params![identity, i.to_string(), seq, NOW_MS],
            )?;
            connection.execute(
                "INSERT INTO involvements (conversation_id, agent, sent_at_ms, ordinal, seq, how)
                 SELECT conversation_id, 'helper', sent_at_ms, ordinal, seq, 'addressed'
                 FROM turns WHERE seq = ?1 AND ?2 % 100 = 0",
                (seq, i),
            )?;
        }
        connection.execute(
            "UPDATE conversations SET turn_count = ?2, last_seq = (SELECT max(seq) FROM turns)
             WHERE id = ?1",
            (room, turns),
        )?;
        Ok(())
    };
    fixture.store.write(fill).await.unwrap();
}

/// Two chats whose turns interleave in time; the old one is the larger one.
async fn two_chats(fixture: &Fixture) {
    fill(fixture, "old", 0, OLD_TURNS).await;
    fill(fixture, "new", 10, NEW_TURNS).await;
}

async fn begin(fixture: &Fixture) {
    let merged = fixture
        .store
        .merge_chats(fixture.account, "old", "new", NOW_MS);
    merged.await.unwrap();
}

async fn finish(fixture: &Fixture) -> usize {
    let mut steps = 0;
    while fixture.store.continue_merges().await.unwrap() {
        steps += 1;
        assert!(steps < 100, "a merge has an end");
    }
    steps
}

/// All texts in the order of the room, whichever conversation they are in.
async fn all_texts(fixture: &Fixture) -> Vec<String> {
    fixture
        .column("SELECT content FROM turns ORDER BY sent_at_ms, ordinal, content, seq")
        .await
}

async fn assert_sound(fixture: &Fixture, texts: &[String]) {
    assert_eq!(all_texts(fixture).await, texts);
    let none: [String; 0] = [];
    for wrong in [
        "SELECT \"table\" FROM pragma_foreign_key_check",
        "SELECT format('conversation %s counts %s', id, turn_count) FROM conversations
         WHERE turn_count <> (SELECT count(*) FROM turns WHERE conversation_id = conversations.id)",
        "SELECT 'an involvement of elsewhere' FROM involvements i JOIN turns t ON t.seq = i.seq
         WHERE t.conversation_id <> i.conversation_id",
        // Within a place, the order of capture.
        "SELECT a.content FROM turns a JOIN turns b ON b.conversation_id = a.conversation_id
            AND b.sent_at_ms = a.sent_at_ms AND b.ordinal = a.ordinal AND b.seq > a.seq
         WHERE a.content > b.content AND substr(a.content, 1, 3) = substr(b.content, 1, 3)
           AND a.content NOT LIKE 'the %' AND b.content NOT LIKE 'the %'",
        // What has moved is the newest, but for what concerns an agent.
        "SELECT t.content FROM turns t WHERE t.content LIKE 'new %'
           AND t.conversation_id NOT IN (SELECT source_id FROM conversation_merges)
           AND (t.sent_at_ms, t.ordinal) < (
               SELECT s.sent_at_ms, s.ordinal FROM turns s
               WHERE s.conversation_id IN (SELECT source_id FROM conversation_merges)
               ORDER BY s.sent_at_ms DESC, s.ordinal DESC LIMIT 1)
           AND NOT EXISTS (SELECT 1 FROM involvements i WHERE i.seq = t.seq)",
    ] {
        assert_eq!(fixture.column::<String>(wrong).await, none, "{wrong}");
    }
}

async fn search(fixture: &Fixture, text: &str) -> usize {
    let room = turn_of(fixture.hear(in_chat("old", "0", "the first", NOW_MS)).await);
    let query = SearchQuery {
        limit: 9,
        token_cap: 999,
        text_max_chars: usize::MAX,
        neighbours: 0,
        mode: SearchMode::StrictNewest,
        ..SearchQuery::new(room.conversation, text)
    };
    fixture.store.search(query).await.unwrap().matches
}

#[tokio::test]
async fn each_commit_of_a_merge_moves_a_bounded_number_of_rows() {
    let fixture = Fixture::new().await;
    two_chats(&fixture).await;
    let changes = |connection: &Connection| Ok(connection.raw().total_changes() as i64);
    let left = "SELECT coalesce((SELECT turn_count FROM conversations
                                 WHERE id IN (SELECT source_id FROM conversation_merges)), 0)";
    let texts = all_texts(&fixture).await;
    let mut before = fixture.store.write(changes).await.unwrap();
    begin(&fixture).await;
    let (mut most, mut turns_left) = (500 + 12, NEW_TURNS);
    let mut commits = 0;
    loop {
        let after = fixture.store.write(changes).await.unwrap();
        let rows_max = most * ROWS_A_TURN + 200;
        assert!(after - before <= rows_max, "{} rows", after - before);
        let now_left: i64 = fixture.value(left).await;
        assert!(turns_left - now_left <= most, "{turns_left} {now_left}");
        assert_sound(&fixture, &texts).await;
        turns_left = now_left;
        before = fixture.store.write(changes).await.unwrap();
        most = 250;
        commits += 1;
        if !fixture.store.continue_merges().await.unwrap() {
            break;
        }
    }
    assert!(commits >= 4, "{commits}");
    let rooms: String = fixture
        .value("SELECT format('%s %s %s', count(*), thread, turn_count) FROM conversations")
        .await;
    assert_eq!(rooms, format!("1  {}", OLD_TURNS + NEW_TURNS));
    let merges: i64 = fixture
        .value("SELECT (SELECT count(*) FROM chat_merges) + (SELECT count(*) FROM conversation_merges)")
        .await;
    assert_eq!(merges, 0);
}

#[tokio::test]
async fn a_kill_between_any_two_steps_loses_nothing_and_the_next_start_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions {
        path: Some(folder.path().join("vocative.db")),
        readers: 1,
        page_cache_kib: 1_024,
    };
    let open = || async { Fixture::with(Store::open(&options, NOW_MS).unwrap().0).await };
    let mut fixture = open().await;
    two_chats(&fixture).await;
    let texts = all_texts(&fixture).await;
    begin(&fixture).await;
    let mut starts = 0;
    loop {
        // Both chats are one for whoever looks, however far it is.
        assert_eq!(search(&fixture, "old 0003").await, 1);
        assert_eq!(search(&fixture, "new 0003").await, 1);
        assert_sound(&fixture, &texts).await;
        fixture.store.close().await.unwrap();
        drop(fixture);
        fixture = open().await;
        starts += 1;
        if !fixture.store.continue_merges().await.unwrap() {
            break;
        }
    }
    assert!(starts > 3, "{starts}");
    let turns: i64 = fixture.value("SELECT turn_count FROM conversations").await;
    assert_eq!(turns, OLD_TURNS + NEW_TURNS);
}

#[tokio::test]
async fn what_is_captured_edited_and_asked_meanwhile_comes_to_the_one_chat() {
    let fixture = Fixture::new().await;
    two_chats(&fixture).await;
    let asked = turn_of(
        fixture
            .hear_for(
                &["helper"],
                in_chat("new", "9000", "early question", NOW_MS + 30_000),
            )
            .await,
    );
    begin(&fixture).await;
    let one = turn_of(
        fixture
            .hear_for(
                &["helper"],
                in_chat("old", "9001", "late", NOW_MS + 9_000_000),
            )
            .await,
    );
    let other = turn_of(
        fixture
            .hear_for(
                &["helper"],
                in_chat("new", "9002", "later", NOW_MS + 9_001_000),
            )
            .await,
    );
    assert_eq!(one.conversation, other.conversation);
    // A question that has not moved is edited: its run works in the one chat.
    let edited = Said {
        edit_marker: Some("5"),
        text: "early question, edited",
        ..in_chat("new", "9000", "", NOW_MS + 30_000)
    };
    let edited = turn_of(fixture.hear_for(&["helper"], edited).await);
    assert_eq!(edited.turn, asked.turn);
    let elsewhere = "SELECT count(*) FROM runs WHERE conversation_id <> (
                         SELECT min(target_id) FROM conversation_merges)";
    assert_eq!(fixture.value::<i64>(elsewhere).await, 0);
    // One that ended there and comes back, too.
    fixture
        .execute(
            "UPDATE runs SET state = 'dead', conversation_id = (SELECT min(source_id) FROM conversation_merges)
             WHERE id = 1",
        )
        .await;
    let every = DeadFilter::default();
    let revived = fixture.store.revive_runs(every, 9, NOW_MS).await;
    assert_eq!(revived.unwrap(), 1);
    assert_eq!(fixture.value::<i64>(elsewhere).await, 0);
    finish(&fixture).await;
    let rooms: i64 = fixture.value("SELECT count(*) FROM conversations").await;
    assert_eq!(rooms, 1);
    let counted: i64 = fixture.value("SELECT turn_count FROM conversations").await;
    assert_eq!(counted, OLD_TURNS + NEW_TURNS + 3);
}

#[tokio::test]
async fn an_erasure_in_the_middle_reaches_what_has_not_moved() {
    let fixture = Fixture::new().await;
    two_chats(&fixture).await;
    begin(&fixture).await;
    let room = turn_of(fixture.hear(in_chat("old", "0", "the first", NOW_MS)).await);
    let target = ErasureTarget::Conversation(room.conversation.to_string());
    let at_ms = NOW_MS + 90_000_000;
    let plan = fixture.store.plan_erasure(target, at_ms).await.unwrap();
    let ids: Vec<_> = plan.entries.iter().map(|entry| entry.id).collect();
    fixture.store.begin_erasure(plan.entries).await.unwrap();
    let done = fixture.store.carry_out_all(&ids, false, || at_ms);
    done.await.unwrap();
    let shown = "SELECT count(*) FROM turns WHERE visibility <> 'hidden' OR content <> ''";
    assert_eq!(fixture.value::<i64>(shown).await, 0);
    finish(&fixture).await;
    assert_eq!(fixture.value::<i64>(shown).await, 0);
}

#[tokio::test]
async fn a_chat_that_moves_again_meanwhile_takes_all_along() {
    let fixture = Fixture::new().await;
    two_chats(&fixture).await;
    begin(&fixture).await;
    fill(&fixture, "newest", 5, 900).await;
    let store = &fixture.store;
    store
        .merge_chats(fixture.account, "new", "newest", NOW_MS)
        .await
        .unwrap();
    finish(&fixture).await;
    let rooms: Vec<String> = fixture
        .column(
            "SELECT format('%s %s %s', h.platform_id, c.thread, c.turn_count)
             FROM conversations c JOIN chats h ON h.id = c.chat_id",
        )
        .await;
    assert_eq!(rooms, [format!("newest  {}", OLD_TURNS + NEW_TURNS + 900)]);
}

#[tokio::test]
async fn an_export_in_the_middle_is_refused_and_whole_afterwards() {
    let fixture = Fixture::new().await;
    two_chats(&fixture).await;
    let room = turn_of(fixture.hear(in_chat("old", "0", "the first", NOW_MS)).await);
    let page = |query| fixture.store.export_page(room.conversation, query);
    let first = page(ExportQuery::default()).await.unwrap();
    let next = || ExportQuery {
        as_of: Some(first.as_of),
        after: first.next,
    };
    begin(&fixture).await;
    for query in [next(), ExportQuery::default()] {
        assert!(matches!(page(query).await, Err(StoreError::Merging)));
    }
    finish(&fixture).await;
    assert!(matches!(page(next()).await, Err(StoreError::Merging)));
    let (mut turns, mut query) = (0, ExportQuery::default());
    loop {
        let read = page(query).await.unwrap();
        turns += read.turns.len() as i64;
        if read.next.is_none() {
            break;
        }
        query = ExportQuery {
            as_of: Some(read.as_of),
            after: read.next,
        };
    }
    assert_eq!(turns, OLD_TURNS + NEW_TURNS);
}

#[tokio::test]
async fn a_post_that_cannot_be_decoded_stops_no_merge() {
    let fixture = Fixture::new().await;
    fixture.hear(in_chat("old", "1", "one", NOW_MS)).await;
    fixture.hear(in_chat("new", "1", "two", NOW_MS + 1)).await;
    fixture
        .execute(
            "INSERT INTO outbox (uuid, account_id, chat_id, turn_seq, part, sort_key, target,
                                 payload, state, not_before_ms, created_at_ms)
             VALUES (x'01', 1, 1, 1, 0, 1, 'no JSON', '{}', 'pending', 0, 0)",
        )
        .await;
    begin(&fixture).await;
    let post: String = fixture.value("SELECT chat_id || target FROM outbox").await;
    assert_eq!(post, "2no JSON");
}

#[tokio::test]
async fn what_hangs_on_a_turn_is_found_by_an_index() {
    let fixture = Fixture::new().await;
    fixture
        .execute("CREATE TEMP TABLE moved (old INTEGER PRIMARY KEY, new INTEGER)")
        .await;
    let links = linked(|links| links.turns.iter().copied()).into_iter();
    // It has a row for each chat, so a scan is short.
    for (table, column) in links.filter(|(table, _)| *table != "chat_reach") {
        let plan = move |connection: &Connection| {
            let mut statement = connection.prepare_cached(&format!(
                "EXPLAIN QUERY PLAN UPDATE {table} SET {column} = 1
                 WHERE {column} IN (SELECT old FROM moved)"
            ))?;
            let steps = statement.query_map([], |row| row.get(3))?;
            Ok(steps.collect::<crate::engine::sql::Result<Vec<String>>>()?)
        };
        let plan = fixture.store.write(plan).await.unwrap();
        let by_index = format!("SEARCH {table} USING");
        assert!(
            plan.iter().any(|step| step.starts_with(&by_index)),
            "{plan:?}"
        );
    }
}
