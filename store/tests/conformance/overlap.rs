//! What becomes of what is asked while something else still waits for its answer.

use vocative_core::addressing::{MessageFacts, Overlap, RunVerdict, Verdict};
use vocative_core::command::{CommandVerdict, Effect};
use vocative_core::run::{ClaimedRun, RunState};
use vocative_core::running::overlap::TRIGGERS_MAX;
use vocative_store::contract::{CapturedTurn, RunLease};

use crate::said::{NOW_MS, Said, admitted, agent, said, turn_of};
use crate::scene::{Scene, by_hand};

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

async fn ask(scene: &Scene, overlap: Overlap, said: Said) -> CapturedTurn {
    turn_of(scene.judge(said, asks(overlap)).await)
}

async fn ask_all(scene: &Scene, overlap: Overlap, asked: &[(&'static str, &'static str)]) {
    for (person, id) in asked {
        ask(scene, overlap, by(person, id)).await;
    }
}

async fn stop(scene: &Scene, of_everybody: bool, said: Said) -> CapturedTurn {
    let stop = move |_: &MessageFacts| Verdict {
        runs: RunVerdict::Stop { of_everybody },
        ..admitted(&["helper"])
    };
    turn_of(scene.judge(said, stop).await)
}

async fn claim(scene: &Scene) -> ClaimedRun {
    scene.claim(NOW_MS + 600_000).await.unwrap()
}

async fn lease_of(scene: &Scene, claimed: &ClaimedRun) -> RunLease {
    let until_ms = NOW_MS + 700_000;
    let lease = (scene.store).extend_run(claimed.run.id, claimed.token, until_ms);
    lease.await.unwrap()
}

#[tokio::test]
async fn what_one_person_asks_while_they_wait_is_one_run_and_other_people_have_their_own() {
    let scene = Scene::open().await;
    ask(&scene, Overlap::Auto, by("U1", "1")).await;
    claim(&scene).await;
    let asked = [("U1", "2"), ("U2", "3"), ("U1", "4")];
    ask_all(&scene, Overlap::Auto, &asked).await;
    let runs = scene.runs().await;
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
        let scene = Scene::open().await;
        ask(&scene, overlap, by("U1", "1")).await;
        claim(&scene).await;
        let asked = [("U1", "2"), ("U2", "3"), ("U1", "4")];
        ask_all(&scene, overlap, &asked).await;
        assert_eq!(scene.runs().await, expected, "{overlap:?}");
    }
}

#[tokio::test]
async fn a_run_that_was_claimed_gets_no_other_trigger_also_while_it_waits_for_another_attempt() {
    let scene = Scene::open().await;
    ask(&scene, Overlap::Collect, by("U1", "1")).await;
    let claimed = claim(&scene).await;
    let (run, token) = (claimed.run.id, claimed.token);
    let given_back =
        scene
            .store
            .requeue_run(run, token, NOW_MS + 900_000, "the model is busy", NOW_MS);
    given_back.await.unwrap();
    ask(&scene, Overlap::Collect, by("U1", "2")).await;
    let runs = scene.runs().await;
    assert_eq!(runs, ["helper queued 1", "helper queued 2"]);
}

#[tokio::test]
async fn an_interrupted_run_is_asked_to_stop_and_its_successor_answers_everything() {
    let scene = Scene::open().await;
    let first = ask(&scene, Overlap::Interrupt, by("U1", "1")).await;
    let claimed = claim(&scene).await;
    let second = ask(&scene, Overlap::Interrupt, by("U1", "2")).await;
    assert_eq!(second.cancelled_runs, first.new_runs);
    assert_eq!(lease_of(&scene, &claimed).await, RunLease::CancelRequested);
    let (run, token) = (claimed.run.id, claimed.token);
    let given_back = scene.store.requeue_run(run, token, 0, "stopped", NOW_MS);
    given_back.await.unwrap();
    let next = claim(&scene).await;
    assert_eq!(next.run.id, second.new_runs[0]);
    assert_eq!(next.run.triggers, [first.turn, second.turn]);
    let ended = scene.store.run(run).await.unwrap();
    assert_eq!(ended.state, RunState::Cancelled);
}

#[tokio::test]
async fn a_run_has_room_for_so_many_triggers_and_then_interrupts_no_longer() {
    let scene = Scene::open().await;
    ask(&scene, Overlap::Interrupt, by("U1", "1")).await;
    let ids: Vec<&'static str> = (2..=TRIGGERS_MAX + 2)
        .map(|id| &*id.to_string().leak())
        .collect();
    for id in ids {
        ask(&scene, Overlap::Interrupt, by("U1", id)).await;
    }
    let mut runs = scene.store.all_runs_before(None, 9).await.unwrap();
    runs.reverse();
    let sizes: Vec<usize> = runs.iter().map(|run| run.triggers.len()).collect();
    assert_eq!(sizes, [TRIGGERS_MAX as usize, 2]);
    assert!(runs.iter().all(|run| run.state != RunState::Cancelled));
}

#[tokio::test]
async fn a_message_that_comes_again_is_in_one_run_only() {
    let scene = Scene::open().await;
    for overlap in [Overlap::Auto, Overlap::Collect, Overlap::Interrupt] {
        for id in ["1", "2", "1", "2"] {
            ask(&scene, overlap, by("U1", id)).await;
        }
    }
    assert_eq!(scene.runs().await, ["helper queued 1+2"]);
}

#[tokio::test]
async fn a_deleted_trigger_leaves_and_what_was_working_on_it_is_done_again_without_it() {
    let scene = Scene::open().await;
    let asked = [("U1", "1"), ("U1", "2"), ("U1", "3")];
    ask_all(&scene, Overlap::Auto, &asked).await;
    let delete = |id: &'static str| scene.store.capture_delete(scene.account, "C1", id, NOW_MS);
    delete("1").await.unwrap();
    assert_eq!(scene.runs().await, ["helper queued 2+3"]);

    let claimed = claim(&scene).await;
    delete("3").await.unwrap();
    assert_eq!(lease_of(&scene, &claimed).await, RunLease::CancelRequested);
    assert_eq!(scene.runs().await, ["helper leased -", "helper queued 2"]);
    delete("2").await.unwrap();
    assert_eq!(
        scene.runs().await,
        ["helper leased -", "helper cancelled 2"]
    );
}

#[tokio::test]
async fn stop_ends_what_the_person_asked_before_it_and_an_admins_stop_ends_all() {
    let scene = Scene::open().await;
    ask(&scene, Overlap::Auto, by("U1", "1")).await;
    let claimed = claim(&scene).await;
    let asked = [("U2", "2"), ("U1", "3"), ("U1", "9")];
    ask_all(&scene, Overlap::Queue, &asked).await;
    let stopped = stop(&scene, false, by("U1", "5")).await;
    assert_eq!(stopped.cancelled_runs.len(), 2);
    assert_eq!(stopped.new_runs, []);
    assert_eq!(lease_of(&scene, &claimed).await, RunLease::CancelRequested);
    let after = [
        "helper leased 1",
        "helper queued 2",
        "helper cancelled 3",
        "helper queued 4",
    ];
    assert_eq!(scene.runs().await, after);
    // The same message again stops nothing more.
    ask(&scene, Overlap::Queue, by("U1", "4")).await;
    assert_eq!(stop(&scene, false, by("U1", "5")).await.cancelled_runs, []);
    let all = stop(&scene, true, by("U3", "10")).await;
    assert_eq!(all.cancelled_runs.len(), 3);
}

#[tokio::test]
async fn stop_in_a_channel_reaches_the_threads_that_were_opened_there() {
    let scene = Scene::open().await;
    let opening = |_: &MessageFacts| Verdict {
        opens_thread: true,
        ..admitted(&["helper"])
    };
    scene.judge(by("U1", "1"), opening).await;
    let in_thread = Said {
        thread: Some("1"),
        ..by("U1", "2")
    };
    ask(&scene, Overlap::Auto, in_thread.clone()).await;
    assert_eq!(scene.runs().await, ["helper queued 1+2"]);
    let elsewhere = Said {
        chat: "C2",
        ..by("U1", "3")
    };
    ask(&scene, Overlap::Auto, elsewhere).await;
    assert_eq!(
        stop(&scene, false, by("U1", "4"))
            .await
            .cancelled_runs
            .len(),
        1
    );
    let runs = scene.runs().await;
    assert_eq!(runs, ["helper cancelled 1+2", "helper queued 3"]);
}

#[tokio::test]
async fn what_was_asked_before_a_fresh_start_is_answered_by_itself() {
    for overlap in [Overlap::Auto, Overlap::Collect, Overlap::Interrupt] {
        let scene = Scene::open().await;
        ask(&scene, overlap, by("U1", "1")).await;
        let afresh = CommandVerdict {
            effect: Effect::BeginAfresh {
                agents: vec![agent("helper")],
            },
            ..CommandVerdict::told("done")
        };
        scene.command("t1", NOW_MS + 600_000, afresh).await;
        ask(&scene, overlap, by("U1", "2")).await;
        ask(&scene, overlap, by("U1", "3")).await;
        let runs = scene.runs().await;
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
        let scene = Scene::open().await;
        let at_the_top = move |_: &MessageFacts| Verdict {
            opens_thread: true,
            ..asks(overlap)(&MessageFacts::default())
        };
        scene.judge(by("U1", "1"), at_the_top).await;
        claim(&scene).await;
        scene.judge(by("U1", "2"), at_the_top).await;
        scene.judge(by("U1", "3"), at_the_top).await;
        let runs = scene.runs().await;
        let apart = ["helper leased 1", "helper queued 2", "helper queued 3"];
        assert_eq!(runs, apart, "{overlap:?}");

        let in_thread = |id| Said {
            thread: Some("1"),
            ..by("U1", id)
        };
        ask(&scene, overlap, in_thread("4")).await;
        ask(&scene, overlap, in_thread("5")).await;
        let expected: &[&str] = match overlap {
            Overlap::Auto | Overlap::Collect => &["helper leased 1", "helper queued 4+5"],
            Overlap::Queue => &["helper leased 1", "helper queued 4", "helper queued 5"],
            Overlap::Interrupt => &["helper leased -", "helper queued 1+4+5"],
            Overlap::Drop => &["helper leased 1"],
        };
        let mut of_thread = scene.runs().await;
        of_thread.retain(|run| run != "helper queued 2" && run != "helper queued 3");
        assert_eq!(of_thread, expected, "{overlap:?}");
    }
}

#[tokio::test]
async fn what_was_dropped_is_asked_by_an_edit_and_not_by_its_event_again() {
    let scene = Scene::open().await;
    ask(&scene, Overlap::Drop, by("U1", "1")).await;
    ask(&scene, Overlap::Drop, by("U2", "2")).await;
    let claimed = claim(&scene).await;
    let stopping = by_hand("enough");
    let store = &scene.store;
    store
        .cancel_run(claimed.run.id, stopping, NOW_MS)
        .await
        .unwrap();
    let returned = store.return_run(claimed.run.id, claimed.token, "", NOW_MS);
    returned.await.unwrap();
    ask(&scene, Overlap::Drop, by("U2", "2")).await;
    assert_eq!(scene.runs().await, ["helper cancelled 1"]);
    let edited = Said {
        edit_marker: Some("e1"),
        text: "what was it?",
        ..by("U2", "2")
    };
    ask(&scene, Overlap::Drop, edited).await;
    let runs = scene.runs().await;
    assert_eq!(runs, ["helper cancelled 1", "helper queued 2"]);
}
