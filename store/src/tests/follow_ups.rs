use std::sync::Arc;

use super::*;
use crate::contract::OwnPost;
use crate::new_id::NewId as _;
use vocative_core::addressing::{FollowUpJudge, Overlap, RunVerdict};
use vocative_core::ids::OutboxId;

/// Every run: its state, and the messages it answers, in the room's order.
const RUNS: &str = "SELECT format('%s %s', r.state,
                           (SELECT group_concat(m.platform_id, '+' ORDER BY t.sent_at_ms)
                            FROM run_triggers g JOIN turns t ON t.seq = g.turn_seq
                            JOIN messages m ON m.turn_seq = t.seq WHERE g.run_id = r.id))
                    FROM runs r ORDER BY r.id";

/// The messages that address the agent, in the room's order.
const ADDRESSED: &str =
    "SELECT m.platform_id FROM involvements i JOIN messages m ON m.turn_seq = i.seq
                         WHERE i.how = 'addressed' ORDER BY i.sent_at_ms";

/// What the judge says of a follow-up: it addresses whom its root addressed.
fn follows(facts: &MessageFacts, overlap: Overlap, runs: RunVerdict) -> Verdict {
    let rooted = facts.thread.clone().unwrap_or_default().root_addressed;
    Verdict {
        is_admitted: true,
        would_follow_up: rooted.is_empty(),
        overlaps: rooted.iter().map(|it| (it.clone(), overlap)).collect(),
        addressed_to: rooted,
        runs,
        ..Verdict::default()
    }
}

fn again(overlap: Overlap, runs: RunVerdict) -> FollowUpJudge {
    Arc::new(move |_, facts| follows(facts, overlap, runs))
}

fn below_1(by: &'static str, id: &'static str) -> Said {
    Said {
        by,
        thread: Some("1"),
        ..said(id, "and then?")
    }
}

impl Fixture {
    /// Captures something said in a thread.
    async fn follow(&self, said: Said) -> CapturedTurn {
        turn_of(
            self.judge(said, |facts| follows(facts, Overlap::Auto, RunVerdict::Run))
                .await,
        )
    }

    /// Captures the message that others may already have followed up.
    async fn ask_below(
        &self,
        said: Said,
        agents: &'static [&'static str],
        judge: FollowUpJudge,
    ) -> CapturedTurn {
        let verdict = Verdict {
            opens_thread: true,
            overlaps: [(agent("helper"), Overlap::Auto)].into(),
            ..admitted(agents)
        };
        let mut message = said.message(self.account, Box::new(move |_| verdict));
        message.judge_follow_up = Some(judge);
        turn_of(self.store.capture_message(message).await.unwrap())
    }

    async fn ask_root(&self, overlap: Overlap) -> CapturedTurn {
        self.ask_below(
            said("1", "question"),
            &["helper"],
            again(overlap, RunVerdict::Run),
        )
        .await
    }

    async fn waiting(&self) -> i64 {
        self.value("SELECT count(*) FROM turns WHERE follows_up = 1")
            .await
    }
}

#[tokio::test]
async fn what_was_said_in_a_thread_before_its_root_came_is_judged_again_once() {
    let fixture = Fixture::new().await;
    for (by, id) in [("U1", "4"), ("U2", "3"), ("U1", "2")] {
        assert_eq!(fixture.follow(below_1(by, id)).await.new_runs, []);
    }
    assert_eq!(fixture.waiting().await, 3);
    let root = fixture.ask_root(Overlap::Auto).await;
    assert_eq!(root.new_runs.len(), 2);
    assert_eq!(root.follow_ups, [RunVerdict::Run; 3]);
    // In the room's order: what one person asked is answered together, another's apart.
    let expected = ["queued 1+2+4", "queued 3"];
    assert_eq!(fixture.column::<String>(RUNS).await, expected);
    assert_eq!(fixture.waiting().await, 0);
    let threads: Vec<String> = fixture
        .column("SELECT c.thread FROM runs r JOIN conversations c ON c.id = r.conversation_id")
        .await;
    assert_eq!(threads, ["1", "1"]);

    // Told again, whatever the order: nothing more comes of it.
    for (by, id) in [("U1", "2"), ("U2", "3")] {
        assert_eq!(fixture.follow(below_1(by, id)).await.new_runs, []);
    }
    assert_eq!(fixture.ask_root(Overlap::Auto).await.new_runs, []);
    assert_eq!(fixture.column::<String>(RUNS).await, expected);
    assert_eq!(
        fixture.column::<String>(ADDRESSED).await,
        ["1", "2", "3", "4"]
    );
}

#[tokio::test]
async fn what_is_judged_again_overlaps_as_if_it_came_then() {
    let table: [(Overlap, &[&str]); 3] = [
        (Overlap::Queue, &["queued 1", "queued 2", "queued 3"]),
        (Overlap::Collect, &["queued 1+2+3"]),
        (Overlap::Interrupt, &["queued 1+2+3"]),
    ];
    for (overlap, expected) in table {
        let fixture = Fixture::new().await;
        fixture.follow(below_1("U1", "2")).await;
        fixture.follow(below_1("U2", "3")).await;
        fixture.ask_root(overlap).await;
        assert_eq!(
            fixture.column::<String>(RUNS).await,
            expected,
            "{overlap:?}"
        );
    }
}

#[tokio::test]
async fn a_follow_up_that_came_again_before_it_was_judged_again_has_one_run() {
    let fixture = Fixture::new().await;
    fixture.follow(below_1("U1", "2")).await;
    fixture.hear_for(&["helper"], said("1", "question")).await;
    // Redelivered, it finds its root; the other event of the root's post finds it answered for.
    assert_eq!(fixture.follow(below_1("U1", "2")).await.new_runs.len(), 1);
    assert_eq!(fixture.ask_root(Overlap::Auto).await.new_runs, []);
    assert_eq!(
        fixture.column::<String>(RUNS).await,
        ["queued 1", "queued 2"]
    );
}

#[tokio::test]
async fn one_that_is_too_old_addresses_and_does_not_run() {
    let fixture = Fixture::new().await;
    fixture.follow(below_1("U1", "2")).await;
    let judge = again(Overlap::Auto, RunVerdict::TooOld);
    fixture
        .ask_below(said("1", "question"), &["helper"], judge)
        .await;
    assert_eq!(fixture.column::<String>(RUNS).await, ["queued 1"]);
    assert_eq!(fixture.column::<String>(ADDRESSED).await, ["1", "2"]);
}

#[tokio::test]
async fn a_root_that_becomes_a_question_by_an_edit_asks_with_what_was_said_since() {
    let fixture = Fixture::new().await;
    let judge = || again(Overlap::Queue, RunVerdict::Run);
    fixture.ask_below(said("1", "chatter"), &[], judge()).await;
    fixture.follow(below_1("U1", "2")).await;
    fixture.follow(below_1("U1", "4")).await;
    // It was edited between the two: in the third second.
    let edited = Said {
        edit_marker: Some("1700000003.000100"),
        ..said("1", "question")
    };
    fixture.ask_below(edited, &["helper"], judge()).await;
    assert_eq!(
        fixture.column::<String>(RUNS).await,
        ["queued 1", "queued 4"]
    );
    assert_eq!(fixture.waiting().await, 1);
}

#[tokio::test]
async fn what_was_deleted_or_turned_to_somebody_else_meanwhile_is_no_follow_up() {
    let fixture = Fixture::new().await;
    fixture.follow(below_1("U1", "2")).await;
    fixture.follow(below_1("U1", "3")).await;
    let elsewhere = Said {
        edit_marker: Some("9"),
        text: "and you, Bob?",
        ..below_1("U1", "2")
    };
    fixture.judge(elsewhere, |_| admitted(&[])).await;
    let deleted = fixture
        .store
        .capture_delete(fixture.account, "C1", "3", NOW_MS);
    deleted.await.unwrap();
    fixture.ask_root(Overlap::Auto).await;
    assert_eq!(fixture.column::<String>(RUNS).await, ["queued 1"]);
}

fn own_post(fixture: &Fixture, message_id: &str, marker: Option<&str>) -> OwnPost {
    OwnPost {
        account: fixture.account,
        place: Place {
            chat: "C1".to_owned(),
            ..Place::default()
        },
        message_id: message_id.to_owned(),
        marker: marker.map(str::to_owned),
        now_ms: NOW_MS,
        judge_follow_up: None,
    }
}

/// A post of ours in the chat's own conversation that is on its way, or known already.
async fn with_own_post(is_known: bool) -> (Fixture, OutboxId) {
    let fixture = Fixture::new().await;
    fixture.hear(said("5", "hello")).await;
    let marker = OutboxId::generate();
    fixture
        .store
        .write(move |connection| {
            connection.execute_batch(
                "INSERT INTO participants (account_id, kind, platform_id) VALUES (1, 'agent', 'helper');
                 INSERT INTO turns (seq, uuid, conversation_id, sent_at_ms, ordinal, kind, scope,
                                    participant_id, content, captured_at_ms, is_inbound)
                 SELECT 50, x'00112233445566778899aabbccddeeff', 1, 1, 1, 'message', 'channel',
                        max(id), 'answer', 1, 0 FROM participants;
                 INSERT INTO involvements VALUES (1, 'helper', 1, 1, 50, 'authored');",
            )?;
            let state = if is_known { "sent" } else { "leased" };
            connection.execute(
                "INSERT INTO outbox (uuid, account_id, chat_id, turn_seq, part, sort_key, target,
                                     payload, state, not_before_ms, created_at_ms, send_started)
                 VALUES (?1, 1, 1, 50, 0, 1, '{}', '{}', ?2, 0, 0, 0)",
                (marker, state),
            )?;
            if is_known {
                connection.execute_batch(
                    "INSERT INTO messages (account_id, chat_id, platform_id, turn_seq)
                     VALUES (1, 1, '1', 50)",
                )?;
            }
            Ok(())
        })
        .await
        .unwrap();
    (fixture, marker)
}

#[tokio::test]
async fn what_was_said_below_a_post_of_ours_before_we_knew_its_id_is_judged_again() {
    for is_known in [false, true] {
        let (fixture, marker) = with_own_post(is_known).await;
        // As if it had been captured before the platform's answer to the post was.
        let heard = |_: &MessageFacts| Verdict {
            would_follow_up: true,
            ..admitted(&[])
        };
        fixture.judge(below_1("U1", "2"), heard).await;
        let mut runs = Vec::new();
        for _ in 0..2 {
            let mut post = own_post(&fixture, "1", Some(&marker.to_string()));
            post.judge_follow_up = Some(again(Overlap::Auto, RunVerdict::Run));
            runs.push(
                fixture
                    .store
                    .confirm_own_post(post)
                    .await
                    .unwrap()
                    .new_runs
                    .len(),
            );
        }
        assert_eq!(runs, [1, 0], "{is_known}");
        assert_eq!(
            fixture.column::<String>(RUNS).await,
            ["queued 2"],
            "{is_known}"
        );
    }
}
