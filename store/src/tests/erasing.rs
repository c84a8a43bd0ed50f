use std::path::Path;

use super::*;
use crate::OpenReport;
use crate::acts::erasure::{ColumnHit, ErasureCounts, ErasureId, ErasureTarget, Verification};

const MARKER: &str = "zebra-7f3a9c";

fn options(path: &Path) -> StoreOptions {
    StoreOptions {
        path: Some(path.to_owned()),
        readers: 1,
        page_cache_kib: 1_024,
    }
}

async fn open(path: &Path) -> (Fixture, OpenReport) {
    let (store, report) = Store::open(&options(path), NOW_MS + 900_000).unwrap();
    (Fixture::with(store).await, report)
}

/// Whether a file of a folder holds a word, but for the ledger's own words.
fn holds(folder: &Path, word: &str) -> bool {
    let files = std::fs::read_dir(folder).unwrap();
    let mut bytes = files.map(|file| std::fs::read(file.unwrap().path()).unwrap());
    bytes.any(|bytes| {
        bytes
            .windows(word.len())
            .any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
    })
}

/// A copy as a backup makes it, beside a running daemon.
fn copy(from: &Path, to: &Path) {
    let connection = rusqlite::Connection::open(from).unwrap();
    connection
        .execute("VACUUM INTO ?1", [to.to_str().unwrap()])
        .unwrap();
}

async fn plan(fixture: &Fixture, target: ErasureTarget) -> Vec<ErasureId> {
    let at_ms = NOW_MS + 600_000;
    let plan = fixture.store.plan_erasure(target, at_ms).await.unwrap();
    let ids = plan.entries.iter().map(|entry| entry.id).collect();
    fixture.store.begin_erasure(plan.entries).await.unwrap();
    ids
}

async fn erase(fixture: &Fixture, target: ErasureTarget) -> (ErasureCounts, Verification) {
    let ids = plan(fixture, target).await;
    let done = fixture
        .store
        .carry_out_all(&ids, true, || NOW_MS + 600_001)
        .await
        .unwrap();
    let state = fixture.store.erasure(ids[0]).await.unwrap();
    assert!(state.finished_at_ms.is_some());
    (state.counts, done.verification.unwrap())
}

fn person(name: &str) -> ErasureTarget {
    ErasureTarget::Person(name.to_owned())
}

fn by(who: &'static str, id: &'static str, text: &'static str) -> Said {
    Said {
        by: who,
        name: Some(if who == "U1" { "Ada" } else { "Bob" }),
        ..said(id, text)
    }
}

/// The marker in every place it may get to: Ada's message and its earlier text, a quote, another
/// person's message and its earlier text, an answer to her, one to somebody else, a tool's result, a
/// step, posts, a summary, a command, raw events.
async fn spread(fixture: &Fixture) {
    fixture.hear(by("U2", "1", "good morning everybody")).await;
    fixture
        .hear_for(&["helper"], by("U1", "2", "the code is zebra-7f3a9c ok?"))
        .await;
    fixture
        .hear(Said {
            edit_marker: Some("5"),
            ..by("U1", "2", "the code is zebra-7f3a9c, sesame open")
        })
        .await;
    fixture.hear(by("U1", "3", "good morning everybody")).await;
    fixture
        .hear(Said {
            reply_to: Some("2"),
            ..by("U2", "4", "thanks a lot")
        })
        .await;
    fixture
        .hear_for(&["helper"], by("U2", "5", "so \"Zebra-7F3A9C\" it is?"))
        .await;
    fixture
        .hear(Said {
            edit_marker: Some("6"),
            ..by("U2", "5", "so it is?")
        })
        .await;
    fixture.hear(by("U2", "6", "zebra-7f3a9c works")).await;
    fixture
        .execute(
            r#"UPDATE turns SET quote = 'is zebra-7f3a9c' WHERE seq = 4;
               INSERT INTO participants (account_id, kind, platform_id) VALUES
                   (1, 'agent', 'helper'), (1, 'system', 'tool');
               INSERT INTO turns (uuid, conversation_id, sent_at_ms, ordinal, kind, scope,
                       visibility, participant_id, content, run_id, captured_at_ms, is_inbound)
               SELECT randomblob(16), 1, 1700000050000, 0, x.kind, 'channel', x.visibility, p.id,
                      x.content, x.run, 1700000050000, 0
               FROM (SELECT 'message' AS kind, 'room' AS visibility, 'agent' AS who,
                            'I will remember it.' AS content, 1 AS run
                     UNION ALL SELECT 'message', 'room', 'agent', 'Ada said sesame.', 2
                     UNION ALL SELECT 'tool_result', 'timeline', 'system',
                                      'found: zebra-7f3a9c', 2
                     UNION ALL SELECT 'message', 'room', 'agent', 'Nothing to add.', NULL) x
               JOIN participants p ON p.kind = x.who;
               INSERT INTO turn_text (rowid, conversation, content)
               SELECT seq, 'c1', content FROM turns WHERE run_id IS NOT NULL AND visibility = 'room'
                   OR content = 'Nothing to add.';
               INSERT INTO steps (run_id, n, message, prompt_tokens, completion_tokens, at_ms) VALUES (2, 0, '{"text":"zebra-7f3a9c"}', 1, 1, 0);
               INSERT INTO tool_calls (uuid, run_id, step, n, call_id, tool, arguments, digest, rule, state, attempts,
                                       result, created_at_ms)
               VALUES (randomblob(16), 2, 0, 0, 'c1', 'find', '{"q":"zebra-7f3a9c"}', x'00', 'repeatable', 'done', 1,
                       'zebra-7f3a9c', 0),
                      (randomblob(16), 2, 0, 1, 'c2', 'refund', '{"q":"zebra-7f3a9c"}', x'01', 'once', 'running', 1,
                       NULL, 0);
               INSERT INTO feedback SELECT 1, id, 'up', 1, 0, 0 FROM participants WHERE platform_id = 'U1';
               INSERT INTO feedback SELECT 2, id, 'down', 1, 0, 0 FROM participants WHERE platform_id = 'U1';
               INSERT INTO messages (account_id, chat_id, platform_id, turn_seq)
               SELECT 1, 1, 'r' || seq, seq FROM turns WHERE kind = 'message' AND is_inbound = 0;
               INSERT INTO outbox (uuid, account_id, chat_id, turn_seq, part, sort_key, target,
                                   payload, state, not_before_ms, created_at_ms)
               SELECT uuid, 1, 1, seq, 0, seq, '{}', '{"version":1,"text":"zebra-7f3a9c"}',
                      CASE run_id WHEN 1 THEN 'sent' ELSE 'pending' END, 0, 0
               FROM turns WHERE is_inbound = 0 AND run_id IS NOT NULL AND visibility = 'room';
               INSERT INTO summaries (conversation_id, agent, fingerprint, covers, from_sent_at_ms,
                       from_ordinal, from_seq, through_sent_at_ms, through_ordinal, through_seq,
                       newest_seq, turn_count, source_hash, text, tokens, counter, model, state,
                       created_at_ms)
               VALUES (1, 'helper', 'f', 'all', 0, 0, 1, 1700000002000, 2, 2, 2, 2, x'00',
                       'Ada''s code is zebra-7f3a9c.', 5, 'c', 'm', 'current', 0);
               INSERT INTO non_messages VALUES
                   (1, 'command', 'n1', 'U1', 'C1', 'remember this', 1700000000000),
                   (1, 'command', 'n2', 'U2', 'C1', 'find zebra-7f3a9c', 1700000000000),
                   (1, 'command', 'n3', 'U2', 'C1', 'help', 1700000000000);
               INSERT INTO raw_envelopes (account_id, reason, raw, received_at_ms) VALUES
                   (1, 'odd', '{"user":"U1","what":"something"}', 0),
                   (1, 'odd', '{"user":"U12"}', 0)"#,
        )
        .await;
}

#[tokio::test]
async fn what_an_erased_person_said_is_in_no_file_and_in_no_later_or_older_copy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vocative.db");
    let (fixture, _) = open(&path).await;
    spread(&fixture).await;
    let elsewhere = tempfile::tempdir().unwrap();
    let older = elsewhere.path().join("older.db");
    copy(&path, &older);
    std::fs::write(folder.path().join("vocative.db.before-0002"), MARKER).unwrap();
    assert!(holds(folder.path(), MARKER) && holds(elsewhere.path(), MARKER));

    let (counts, verification) = erase(&fixture, person("acme/Ada")).await;
    assert_eq!((counts.turns, counts.answers, counts.repeats), (2, 3, 1));
    assert_eq!(verification.hits, []);
    assert!(verification.texts >= 2 && verification.bytes > 0);
    for word in [MARKER, "sesame", "I will remember it"] {
        assert!(!holds(folder.path(), word), "{word}");
    }
    let left = fixture.contents().await;
    let expected = [
        "good morning everybody",
        "",
        "",
        "thanks a lot",
        "so it is?",
        "[erased] works",
        "",
        "",
        "",
        "Nothing to add.",
    ];
    assert_eq!(left, expected);
    let names: Vec<Option<String>> = fixture
        .column("SELECT display_name FROM participants WHERE kind = 'user' ORDER BY id")
        .await;
    assert_eq!(names, [Some("Bob".to_owned()), None]);
    let posts: Vec<String> = fixture.column("SELECT state FROM outbox ORDER BY id").await;
    assert_eq!(posts, ["sent", "dead"]);
    let commands: Vec<String> = fixture.column("SELECT platform_id FROM non_messages").await;
    assert_eq!(commands, ["n3"]);
    assert_eq!(
        fixture
            .value::<i64>("SELECT count(*) FROM erasure_traces")
            .await,
        0
    );
    check(&fixture).await;

    let later = elsewhere.path().join("later.db");
    copy(&path, &later);
    assert!(!String::from_utf8_lossy(&std::fs::read(&later).unwrap()).contains(MARKER));

    // The older copy is put back; the ledger and what was there before lie beside it.
    fixture.store.close().await.unwrap();
    drop(fixture);
    let replaced = folder.path().join("vocative.db.before-restore-2");
    std::fs::rename(&path, &replaced).unwrap();
    let open_still = folder.path().join("vocative.db.before-restore-1");
    std::fs::copy(&older, &open_still).unwrap();
    std::fs::copy(&older, &path).unwrap();
    assert!(holds(folder.path(), MARKER));
    let (fixture, report) = open(&path).await;
    assert!(
        report.erasures[0].contains("1 of them known only to the ledger"),
        "{report:?}"
    );
    // What was replaced had carried out the erasure itself: it is the only copy of the time since.
    assert!(replaced.exists() && !open_still.exists(), "{report:?}");
    assert_eq!(fixture.found("content : (erased works)").await, [6]);
    for word in [MARKER, "sesame", "I will remember it"] {
        assert!(!holds(folder.path(), word), "{word}");
    }
    check(&fixture).await;
    let (_again, report) = {
        fixture.store.close().await.unwrap();
        drop(fixture);
        open(&path).await
    };
    assert_eq!(report, OpenReport::default());
}

async fn check(fixture: &Fixture) {
    let whole: String = fixture.value("PRAGMA integrity_check").await;
    assert_eq!(whole, "ok");
    fixture
        .execute("INSERT INTO turn_text (turn_text) VALUES ('integrity-check')")
        .await;
    let broken: Vec<String> = fixture.column("PRAGMA foreign_key_check").await;
    assert_eq!(broken, Vec::<String>::new());
}

#[tokio::test]
async fn a_verification_names_the_column_that_still_holds_something() {
    let folder = tempfile::tempdir().unwrap();
    let (fixture, _) = open(&folder.path().join("vocative.db")).await;
    spread(&fixture).await;
    // A room's title is not what anybody said, and stays.
    fixture
        .execute("UPDATE chats SET title = 'zebra-7f3a9c'")
        .await;
    let (_, found) = erase(&fixture, person("acme/U1")).await;
    let title = ColumnHit {
        table: "chats",
        column: "title",
        rows: 1,
    };
    assert_eq!(found.columns, [title]);
}
