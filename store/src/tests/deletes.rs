use super::*;
use crate::contract::Deleted;
use vocative_core::turn::Visibility;

async fn delete(fixture: &Fixture, id: &str) -> Deleted {
    let store = &fixture.store;
    store
        .capture_delete(fixture.account, "C1", id, NOW_MS)
        .await
        .unwrap()
}

#[tokio::test]
async fn what_was_deleted_is_gone_from_everywhere_and_never_comes_back() {
    let fixture = Fixture::new().await;
    fixture.hear(said("1", "zebra")).await;
    let edited = Said {
        edit_marker: Some("5"),
        file: Some("zebra.png"),
        ..said("1", "zebras two")
    };
    let turn = turn_of(fixture.hear_for(&["helper"], edited).await).turn;
    fixture.hear(said("2", "still here")).await;
    fixture.hear(said("3", "still here")).await;
    fixture.execute(edits::SUMMARIES).await;
    fixture
        .execute(
            "UPDATE summaries SET text = 'a zebra' WHERE id = 1;
             INSERT INTO steps (run_id, n, message, prompt_tokens, completion_tokens, at_ms) VALUES (1, 0, 'zebra', 1, 1, 0);
             INSERT INTO tool_calls (uuid, run_id, step, n, call_id, tool, arguments, digest, rule, state, attempts,
                                     result, created_at_ms)
             VALUES (randomblob(16), 1, 0, 0, 'c1', 'refund', 'zebra', x'01', 'once', 'done', 1, 'zebra', 0)",
        )
        .await;
    assert!(!fixture.is_nowhere("zebra").await);
    let deleted = delete(&fixture, "1").await;

    assert!(
        matches!(&deleted, Deleted::Blanked { turn: gone, cancelled_runs }
        if *gone == turn && cancelled_runs.len() == 1)
    );
    assert!(fixture.is_nowhere("zebra").await);
    let hidden = &fixture.turns().await[0];
    assert_eq!(
        (hidden.content.as_str(), hidden.visibility),
        ("", Visibility::Hidden)
    );
    assert_eq!(
        (&hidden.attachments[..], &hidden.addressed_to[..]),
        (&[][..], &[][..])
    );
    let summaries: Vec<String> = fixture
        .column("SELECT state FROM summaries ORDER BY id")
        .await;
    assert_eq!(summaries, ["void", "void", "void"]);
    let run: String = fixture
        .value("SELECT state || ' ' || reason FROM runs")
        .await;
    assert_eq!(run, "cancelled deleted");
    for late in [
        said("1", "zebra"),
        Said {
            edit_marker: Some("9"),
            ..said("1", "zebra")
        },
    ] {
        assert_eq!(
            fixture.hear_for(&["helper"], late).await,
            Captured::Tombstone
        );
    }
    assert_eq!(delete(&fixture, "1").await, Deleted::Remembered);
}

#[tokio::test]
async fn a_deleted_part_of_an_answer_leaves_the_other_parts() {
    let fixture = Fixture::new().await;
    fixture.hear(said("1", "zebra lion")).await;
    fixture
        .execute(
            r#"UPDATE turns SET is_inbound = 0;
               DELETE FROM messages; DELETE FROM raw_envelopes;
               INSERT INTO messages (account_id, chat_id, platform_id, turn_seq, part)
               VALUES (1, 1, '8', 1, 0), (1, 1, '9', 1, 1);
               INSERT INTO outbox (uuid, account_id, chat_id, turn_seq, part, sort_key, target,
                                   payload, state, not_before_ms, created_at_ms, message_id)
               VALUES (x'01', 1, 1, 1, 0, 1, '{}', '{"version":1,"text":"zebra"}', 'sent', 0, 0, '8'),
                      (x'02', 1, 1, 1, 1, 2, '{}', '{"version":1,"text":"lion"}', 'sent', 0, 0, '9')"#,
        )
        .await;
    delete(&fixture, "8").await;
    assert_eq!(fixture.only_turn().await.content, "lion");
    assert!(fixture.is_nowhere("zebra").await);
    delete(&fixture, "9").await;
    assert!(fixture.is_nowhere("lion").await);
    assert_eq!(fixture.only_turn().await.visibility, Visibility::Hidden);
}

#[tokio::test]
async fn what_was_deleted_is_gone_from_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions {
        path: Some(folder.path().join("vocative.sqlite")),
        readers: 1,
        page_cache_kib: 1_024,
    };
    let fixture = Fixture::with(Store::open(&options, NOW_MS).unwrap().0).await;
    fixture.hear(said("1", "zebraword")).await;
    fixture.hear(said("2", "lionword")).await;
    let holds = |word: &str| {
        let files = std::fs::read_dir(folder.path()).unwrap();
        let mut bytes = files.map(|file| std::fs::read(file.unwrap().path()).unwrap());
        bytes.any(|bytes| {
            bytes
                .windows(word.len())
                .any(|part| part == word.as_bytes())
        })
    };
    assert!(holds("zebraword"));
    delete(&fixture, "1").await;
    // The writer scrubs before it takes the next job.
    fixture.store.write(|_| Ok(())).await.unwrap();
    assert!(!holds("zebraword"));
    assert!(holds("lionword"));
}
