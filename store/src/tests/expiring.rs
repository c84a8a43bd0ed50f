use super::*;
use crate::{Expired, ExpiryBounds};

const LATER_MS: i64 = NOW_MS + 600_000;

async fn expire(fixture: &Fixture, bounds: ExpiryBounds) -> Expired {
    let store = &fixture.store;
    store
        .expire(fixture.account, bounds, u64::MAX, LATER_MS)
        .await
        .unwrap()
}

fn text_before(before_ms: i64) -> ExpiryBounds {
    ExpiryBounds {
        text_before_ms: Some(before_ms),
        ..ExpiryBounds::default()
    }
}

#[tokio::test]
async fn old_text_goes_and_neither_a_redelivery_nor_an_edit_brings_it_back() {
    let fixture = Fixture::new().await;
    fixture.hear(said("1", "zebra")).await;
    let edited = Said {
        edit_marker: Some("5"),
        file: Some("zebra.png"),
        ..said("1", "zebras two")
    };
    fixture.hear(edited.clone()).await;
    fixture.hear(said("2", "still here")).await;
    let expired = expire(&fixture, text_before(NOW_MS + 2_000)).await;
    assert_eq!(expired.text, 1);
    assert!(fixture.is_nowhere("zebra").await);
    assert_eq!(fixture.contents().await, ["", "still here"]);
    let gone: String = fixture
        .value("SELECT gone FROM messages WHERE gone IS NOT NULL")
        .await;
    assert_eq!(gone, "expired");
    for late in [said("1", "zebra"), edited] {
        assert_eq!(fixture.hear(late).await, Captured::Tombstone);
    }
    let again = expire(&fixture, text_before(NOW_MS + 2_000)).await;
    assert!(again.is_nothing());

    // One that comes late is older than what went before it.
    fixture.hear(said("0", "late zebra")).await;
    let late = expire(&fixture, text_before(NOW_MS + 2_000)).await;
    assert_eq!(late.text, 1);
    assert!(fixture.is_nowhere("zebra").await);
    let status = fixture.store.status(LATER_MS).await.unwrap();
    assert_eq!(
        (status.expired.text, status.expired_last_ms),
        (2, Some(LATER_MS))
    );
}

#[tokio::test]
async fn more_than_a_batch_goes_in_several() {
    let fixture = Fixture::new().await;
    fixture.hear(said("1", "first")).await;
    fixture
        .execute(
            "INSERT INTO turns (uuid, conversation_id, sent_at_ms, ordinal, kind, scope,
                    participant_id, content, captured_at_ms, is_inbound)
             SELECT randomblob(16), 1, 1700000002000, value, 'message', 'channel', 1, 'zebra', 0, 1
             FROM (WITH RECURSIVE n (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n
                                                WHERE value < 350) SELECT value FROM n);
             INSERT INTO turn_text (rowid, conversation, content)
             SELECT seq, 'c1', content FROM turns WHERE content = 'zebra'",
        )
        .await;
    assert_eq!(expire(&fixture, text_before(LATER_MS)).await.text, 351);
    assert!(fixture.is_nowhere("zebra").await);
}

#[tokio::test]
async fn raw_events_and_run_details_have_terms_of_their_own() {
    let fixture = Fixture::new().await;
    fixture.hear_for(&["helper"], said("1", "a question")).await;
    fixture
        .execute(
            r#"UPDATE runs SET state = 'done', finished_at_ms = 1700000100000;
               INSERT INTO steps (run_id, n, message, prompt_tokens, completion_tokens, at_ms) VALUES (1, 0, 'zebra', 1, 1, 0);
               INSERT INTO tool_calls (uuid, run_id, step, n, call_id, tool, arguments, digest, rule, state, attempts,
                                       result, created_at_ms)
               VALUES (randomblob(16), 1, 0, 0, 'c1', 'refund', 'zebra', x'01', 'once', 'done', 1, 'zebra', 0);
               INSERT INTO turns (uuid, conversation_id, sent_at_ms, ordinal, kind, scope,
                       visibility, participant_id, content, run_id, captured_at_ms, is_inbound)
               VALUES (randomblob(16), 1, 1700000001000, 0, 'tool_result', 'channel', 'timeline', 1, 'zebra',
                       1, 0, 0),
                      (randomblob(16), 1, 1700000001000, 0, 'message', 'channel', 'room', 1, 'an answer',
                       1, 0, 0);
               INSERT INTO outbox (uuid, account_id, chat_id, turn_seq, part, sort_key, target,
                                   payload, state, not_before_ms, created_at_ms)
               VALUES (randomblob(16), 1, 1, 3, 0, 1, '{}', '{"version":1,"text":"zebra"}', 'sent', 0, 0);
               INSERT INTO outbox_attempts VALUES (1, 1, 0, 1, 'ok');
               INSERT INTO non_messages VALUES (1, 'command', 'n1', 'U1', 'C1', 'zebra', 5);
               INSERT INTO revisions (turn_seq, revision, content, replaced_at_ms, account_id)
               VALUES (1, 1, 'zebra', 5, 1);
               INSERT INTO raw_envelopes (account_id, reason, raw, received_at_ms)
               VALUES (1, 'odd', 'zebra', 5)"#,
        )
        .await;
    let bounds = ExpiryBounds {
        raw_before_ms: Some(10),
        ..ExpiryBounds::default()
    };
    let expected = Expired {
        raw: 3,
        ..Expired::default()
    };
    assert_eq!(expire(&fixture, bounds).await, expected);
    let bounds = ExpiryBounds {
        runs_before_ms: Some(LATER_MS),
        ..ExpiryBounds::default()
    };
    let expected = Expired {
        runs: 1,
        ..Expired::default()
    };
    assert_eq!(expire(&fixture, bounds).await, expected);
    assert!(fixture.is_nowhere("zebra").await);
    assert_eq!(fixture.contents().await, ["a question", "", "an answer"]);
    assert!(expire(&fixture, bounds).await.is_nothing());
}

/// An account with few runs does not look at those of others again and again, and its mark is at the end of a run: a run
/// that ends later, even before the bound of an earlier pass, goes in its time.
#[tokio::test]
async fn runs_of_others_are_passed_over_once() {
    let fixture = Fixture::new().await;
    fixture.hear_for(&["helper"], said("1", "a question")).await;
    fixture
        .execute("UPDATE runs SET state = 'done', finished_at_ms = 1700000000500")
        .await;
    let store = &fixture.store;
    let quiet = AccountBinding {
        channel: "quiet".to_owned(),
        account: "T9".to_owned(),
        ..binding("quiet")
    };
    let quiet = store.bind_account(quiet, NOW_MS).await.unwrap();
    let before = |before_ms| ExpiryBounds {
        runs_before_ms: Some(before_ms),
        ..ExpiryBounds::default()
    };
    let is_old = |account, before_ms| store.is_anything_old(account, before(before_ms), LATER_MS);
    for account in [quiet, fixture.account] {
        assert!(is_old(account, LATER_MS).await.unwrap());
        let expired = store.expire(account, before(LATER_MS), 1_000, LATER_MS);
        assert_eq!(expired.await.unwrap().runs, u64::from(account != quiet));
        assert!(!is_old(account, LATER_MS).await.unwrap());
    }
    fixture
        .execute("UPDATE runs SET finished_at_ms = 1700000599999")
        .await;
    assert!(is_old(fixture.account, LATER_MS).await.unwrap());
    assert_eq!(expire(&fixture, before(LATER_MS)).await.runs, 1);
}

#[tokio::test]
async fn what_is_old_is_seen_before_it_goes_and_not_after() {
    let fixture = Fixture::new().await;
    fixture.hear(said("1", "zebra")).await;
    fixture
        .execute(
            "INSERT INTO raw_envelopes (account_id, reason, raw, received_at_ms) VALUES (1, 'odd', '{}', 5), (1, NULL, '{}', 5)",
        )
        .await;
    let raw = ExpiryBounds {
        raw_before_ms: Some(10),
        ..ExpiryBounds::default()
    };
    let store = &fixture.store;
    assert!(store.is_raw_old(6).await.unwrap() && !store.is_raw_old(5).await.unwrap());
    for bounds in [raw, text_before(NOW_MS + 2_000)] {
        let is_old = || store.is_anything_old(fixture.account, bounds, LATER_MS);
        assert!(is_old().await.unwrap(), "{bounds:?}");
        expire(&fixture, bounds).await;
        assert!(!is_old().await.unwrap(), "{bounds:?}");
    }
    let nothing = ExpiryBounds::default();
    let is_old = store.is_anything_old(fixture.account, nothing, LATER_MS);
    assert!(!is_old.await.unwrap());
}
