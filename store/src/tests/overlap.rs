use super::*;
use crate::contract::{ClaimRequest, RunLease};
use crate::new_id::NewId as _;
use vocative_core::addressing::{Overlap, RunVerdict};
use vocative_core::ids::OwnerId;
use vocative_core::run::{ClaimedRun, RunState};
use vocative_core::running::overlap::TRIGGERS_MAX;

/// Every run: its agent, its state, and the turns it answers.
const RUNS: &str = "SELECT format('%s %s %s', r.agent, r.state,
                           coalesce((SELECT group_concat(turn_seq, '+' ORDER BY turn_seq)
                                     FROM run_triggers g WHERE g.run_id = r.id), '-'))
                    FROM runs r ORDER BY r.id";

fn asks(overlap: Overlap) -> impl FnOnce(&MessageFacts) -> Verdict {
    move |_| Verdict {
        overlaps: [(agent("helper"), overlap)].into(),
        ..admitted(&["helper"])
    }
}

fn by(person: &'static str, id: &'static str) -> Said {
    Said {
        by: person,
        ..said(id, "what is it?")
    }
}

impl Fixture {
    async fn ask(&self, overlap: Overlap, said: Said) -> CapturedTurn {
        turn_of(self.judge(said, asks(overlap)).await)
    }

    async fn ask_all(&self, overlap: Overlap, asked: &[(&'static str, &'static str)]) {
        for (person, id) in asked {
            self.ask(overlap, by(person, id)).await;
        }
    }

    async fn stop(&self, of_everybody: bool, said: Said) -> CapturedTurn {
        let stop = move |_: &MessageFacts| Verdict {
            runs: RunVerdict::Stop { of_everybody },
            ..admitted(&["helper"])
        };
        turn_of(self.judge(said, stop).await)
    }

    async fn claim(&self) -> ClaimedRun {
        let request = ClaimRequest {
            owner: OwnerId::generate(),
            lease_ms: 1_000,
            now_ms: NOW_MS + 600_000,
            accounts: vec![self.account],
        };
        self.store
            .claim_run(request, Default::default())
            .await
            .unwrap()
            .unwrap()
    }

    async fn lease_of(&self, claimed: &ClaimedRun) -> RunLease {
        let until_ms = NOW_MS + 700_000;
        self.store
            .extend_run(claimed.run.id, claimed.token, until_ms)
            .await
            .unwrap()
    }

    async fn runs(&self) -> Vec<String> {
        self.column(RUNS).await
    }
}

#[tokio::test]
async fn what_one_person_asks_while_they_wait_is_one_run_and_other_people_have_their_own() {
    let fixture = Fixture::new().await;
    fixture.ask(Overlap::Auto, by("U1", "1")).await;
    fixture.claim().await;
    let asked = [("U1", "2"), ("U2", "3"), ("U1", "4")];
    fixture.ask_all(Overlap::Auto, &asked).await;
    let runs = fixture.runs().await;
    assert_eq!(
        runs,
        ["helper leased 1", "helper queued 2+4", "helper queued 3"]
    );
}

#[tokio::test]
async fn each_setting_does_what_it_says_with_what_comes_while_a_run_works() {
    let table: [(Overlap, &[&str]); 3] = [
        (
            Overlap::Queue,
            &[
                "helper leased 1",
                "helper queued 2",
                "helper queued 3",
                "helper queued 4",
            ],
        ),
        (
            Overlap::Collect,
            &["helper leased 1", "helper queued 2+3+4"],
        ),
        (
            Overlap::Interrupt,
            &["helper leased -", "helper queued 1+2+3+4"],
        ),
    ];
    for (overlap, expected) in table {
        let fixture = Fixture::new().await;
        fixture.ask(overlap, by("U1", "1")).await;
        fixture.claim().await;
        let asked = [("U1", "2"), ("U2", "3"), ("U1", "4")];
        fixture.ask_all(overlap, &asked).await;
        assert_eq!(fixture.runs().await, expected, "{overlap:?}");
    }
}

#[tokio::test]
async fn a_run_that_was_claimed_gets_no_other_trigger_also_while_it_waits_for_another_attempt() {
    let fixture = Fixture::new().await;
    fixture.ask(Overlap::Collect, by("U1", "1")).await;
    let claimed = fixture.claim().await;
    let (run, token) = (claimed.run.id, claimed.token);
    let given_back =
        fixture
            .store
            .requeue_run(run, token, NOW_MS + 900_000, "the model is busy", NOW_MS);
    given_back.await.unwrap();
    fixture.ask(Overlap::Collect, by("U1", "2")).await;
    let runs = fixture.runs().await;
    assert_eq!(runs, ["helper queued 1", "helper queued 2"]);
}

#[tokio::test]
async fn an_interrupted_run_is_asked_to_stop_and_its_successor_answers_everything() {
    let fixture = Fixture::new().await;
    let first = fixture.ask(Overlap::Interrupt, by("U1", "1")).await;
    let claimed = fixture.claim().await;
    let second = fixture.ask(Overlap::Interrupt, by("U1", "2")).await;
    assert_eq!(second.cancelled_runs, first.new_runs);
    assert_eq!(fixture.lease_of(&claimed).await, RunLease::CancelRequested);
    let (run, token) = (claimed.run.id, claimed.token);
    let given_back = fixture.store.requeue_run(run, token, 0, "stopped", NOW_MS);
    given_back.await.unwrap();
    let next = fixture.claim().await;
    assert_eq!(next.run.id, second.new_runs[0]);
    assert_eq!(next.run.triggers, [first.turn, second.turn]);
    let ended = fixture.store.run(run).await.unwrap();
    assert_eq!(ended.state, RunState::Cancelled);
}

#[tokio::test]
async fn a_run_has_room_for_so_many_triggers_and_then_interrupts_no_longer() {
    let fixture = Fixture::new().await;
    fixture.ask(Overlap::Interrupt, by("U1", "1")).await;
    let ids: Vec<&'static str> = (2..=TRIGGERS_MAX + 2)
        .map(|id| &*id.to_string().leak())
        .collect();
    for id in ids {
        fixture.ask(Overlap::Interrupt, by("U1", id)).await;
    }
    let sizes: Vec<i64> = fixture
        .column("SELECT count(*) FROM run_triggers GROUP BY run_id ORDER BY run_id")
        .await;
    assert_eq!(sizes, [i64::from(TRIGGERS_MAX), 2]);
    let cancelled: i64 = fixture
        .value("SELECT count(*) FROM runs WHERE state = 'cancelled'")
        .await;
    assert_eq!(cancelled, 0);
}

#[tokio::test]
async fn a_message_that_comes_again_is_in_one_run_only() {
    let fixture = Fixture::new().await;
    for overlap in [Overlap::Auto, Overlap::Collect, Overlap::Interrupt] {
        for id in ["1", "2", "1", "2"] {
            fixture.ask(overlap, by("U1", id)).await;
        }
    }
    assert_eq!(fixture.runs().await, ["helper queued 1+2"]);
}

#[tokio::test]
async fn an_edit_that_takes_a_mention_away_takes_one_of_several_triggers_away() {
    let fixture = Fixture::new().await;
    fixture
        .ask_all(Overlap::Auto, &[("U1", "1"), ("U1", "2")])
        .await;
    let edited = |marker| Said {
        edit_marker: Some(marker),
        ..said("1", "never mind")
    };
    let gone = turn_of(fixture.hear(edited("10")).await);
    assert_eq!(gone.cancelled_runs, []);
    assert_eq!(fixture.runs().await, ["helper queued 2"]);
    fixture.ask(Overlap::Auto, edited("11")).await;
    assert_eq!(fixture.runs().await, ["helper queued 1+2"]);
    let revisions: Vec<i64> = fixture
        .column("SELECT revision FROM run_triggers ORDER BY turn_seq")
        .await;
    assert_eq!(revisions, [2, 1]);
}

#[tokio::test]
async fn a_deleted_trigger_leaves_and_what_was_working_on_it_is_done_again_without_it() {
    let fixture = Fixture::new().await;
    let asked = [("U1", "1"), ("U1", "2"), ("U1", "3")];
    fixture.ask_all(Overlap::Auto, &asked).await;
    let delete = |id: &'static str| {
        fixture
            .store
            .capture_delete(fixture.account, "C1", id, NOW_MS)
    };
    delete("1").await.unwrap();
    assert_eq!(fixture.runs().await, ["helper queued 2+3"]);

    let claimed = fixture.claim().await;
    delete("3").await.unwrap();
    assert_eq!(fixture.lease_of(&claimed).await, RunLease::CancelRequested);
    assert_eq!(fixture.runs().await, ["helper leased -", "helper queued 2"]);
    delete("2").await.unwrap();
    assert_eq!(
        fixture.runs().await,
        ["helper leased -", "helper cancelled 2"]
    );
}

#[tokio::test]
async fn stop_ends_what_the_person_asked_before_it_and_an_admins_stop_ends_all() {
    let fixture = Fixture::new().await;
    fixture.ask(Overlap::Auto, by("U1", "1")).await;
    let claimed = fixture.claim().await;
    let asked = [("U2", "2"), ("U1", "3"), ("U1", "9")];
    fixture.ask_all(Overlap::Queue, &asked).await;
    let stopped = fixture.stop(false, by("U1", "5")).await;
    assert_eq!(stopped.cancelled_runs.len(), 2);
    assert_eq!(stopped.new_runs, []);
    assert_eq!(fixture.lease_of(&claimed).await, RunLease::CancelRequested);
    let after = [
        "helper leased 1",
        "helper queued 2",
        "helper cancelled 3",
        "helper queued 4",
    ];
    assert_eq!(fixture.runs().await, after);
    // The same message again stops nothing more.
    fixture.ask(Overlap::Queue, by("U1", "4")).await;
    assert_eq!(fixture.stop(false, by("U1", "5")).await.cancelled_runs, []);
    let all = fixture.stop(true, by("U3", "10")).await;
    assert_eq!(all.cancelled_runs.len(), 3);
}

#[tokio::test]
async fn stop_in_a_channel_reaches_the_threads_that_were_opened_there() {
    let fixture = Fixture::new().await;
    let opening = |_: &MessageFacts| Verdict {
        opens_thread: true,
        ..admitted(&["helper"])
    };
    fixture.judge(by("U1", "1"), opening).await;
    let in_thread = Said {
        thread: Some("1"),
        ..by("U1", "2")
    };
    fixture.ask(Overlap::Auto, in_thread.clone()).await;
    assert_eq!(fixture.runs().await, ["helper queued 1+2"]);
    let elsewhere = Said {
        chat: "C2",
        ..by("U1", "3")
    };
    fixture.ask(Overlap::Auto, elsewhere).await;
    assert_eq!(
        fixture
            .stop(false, by("U1", "4"))
            .await
            .cancelled_runs
            .len(),
        1
    );
    let runs = fixture.runs().await;
    assert_eq!(runs, ["helper cancelled 1+2", "helper queued 3"]);
}

#[tokio::test]
async fn what_was_asked_before_a_fresh_start_is_answered_by_itself() {
    for overlap in [Overlap::Auto, Overlap::Collect, Overlap::Interrupt] {
        let fixture = Fixture::new().await;
        fixture.ask(overlap, by("U1", "1")).await;
        fixture
            .store
            .write(|connection| {
                let sql = "INSERT INTO fresh_starts
                           SELECT conversation_id, 'helper', 1, sent_at_ms, ordinal, seq FROM turns";
                Ok(connection.execute(sql, [])?)
            })
            .await
            .unwrap();
        fixture.ask(overlap, by("U1", "2")).await;
        fixture.ask(overlap, by("U1", "3")).await;
        let runs = fixture.runs().await;
        let together = ["helper queued 1", "helper queued 2+3"];
        assert_eq!(runs, together, "{overlap:?}");
    }
}

/// Each opens a thread; what follows in a thread is a conversation's.
#[tokio::test]
async fn questions_at_the_top_of_a_channel_are_conversations_of_their_own() {
    for overlap in [
        Overlap::Auto,
        Overlap::Queue,
        Overlap::Collect,
        Overlap::Interrupt,
    ] {
        let fixture = Fixture::new().await;
        let at_the_top = move |_: &MessageFacts| Verdict {
            opens_thread: true,
            ..asks(overlap)(&MessageFacts::default())
        };
        fixture.judge(by("U1", "1"), at_the_top).await;
        fixture.claim().await;
        fixture.judge(by("U1", "2"), at_the_top).await;
        fixture.judge(by("U1", "3"), at_the_top).await;
        let runs = fixture.runs().await;
        let apart = ["helper leased 1", "helper queued 2", "helper queued 3"];
        assert_eq!(runs, apart, "{overlap:?}");

        let in_thread = |id| Said {
            thread: Some("1"),
            ..by("U1", id)
        };
        fixture.ask(overlap, in_thread("4")).await;
        fixture.ask(overlap, in_thread("5")).await;
        let expected: &[&str] = match overlap {
            Overlap::Auto | Overlap::Collect => &["helper leased 1", "helper queued 4+5"],
            Overlap::Queue => &["helper leased 1", "helper queued 4", "helper queued 5"],
            Overlap::Interrupt => &["helper leased -", "helper queued 1+4+5"],
            Overlap::Drop => &["helper leased 1"],
        };
        let mut of_thread = fixture.runs().await;
        of_thread.retain(|run| run != "helper queued 2" && run != "helper queued 3");
        assert_eq!(of_thread, expected, "{overlap:?}");
    }
}

#[tokio::test]
async fn what_was_dropped_is_asked_by_an_edit_and_not_by_its_event_again() {
    let fixture = Fixture::new().await;
    fixture.ask(Overlap::Drop, by("U1", "1")).await;
    fixture.ask(Overlap::Drop, by("U2", "2")).await;
    let claimed = fixture.claim().await;
    let stopping = crate::scene::by_hand("enough");
    let store = &fixture.store;
    store
        .cancel_run(claimed.run.id, stopping, NOW_MS)
        .await
        .unwrap();
    let returned = store.return_run(claimed.run.id, claimed.token, "", NOW_MS);
    returned.await.unwrap();
    fixture.ask(Overlap::Drop, by("U2", "2")).await;
    assert_eq!(fixture.runs().await, ["helper cancelled 1"]);
    let edited = Said {
        edit_marker: Some("e1"),
        text: "what was it?",
        ..by("U2", "2")
    };
    fixture.ask(Overlap::Drop, edited).await;
    let runs = fixture.runs().await;
    assert_eq!(runs, ["helper cancelled 1", "helper queued 2"]);
}
