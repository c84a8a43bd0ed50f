//! Which run is claimed, in which order, and what a lease is worth.

use vocative_store::NewId as _;
use vocative_store::contract::{ClaimRequest, LeaseOutcome, RecordedStep, RunLease, WaitingFor};

use crate::scene::{LEASE_MS, Scene, by_hand};
use vocative_core::ids::OwnerId;
use vocative_core::run::{RunState, Usage};
use vocative_core::slots::{PLACE_KEPT_MS_MAX, Slots};

#[tokio::test]
async fn runs_of_a_conversation_go_one_at_a_time_oldest_first() {
    let scene = Scene::open().await;
    let (_, first) = scene.ask("C1", "one", 10).await;
    let (_, second) = scene.ask("C1", "two", 20).await;

    let claimed = scene.claim(100).await.unwrap();
    assert_eq!(claimed.run.id, first);
    assert_eq!(scene.claim(100).await, None);

    let answer = scene.answer(&claimed, "done").await;
    scene.store.commit_reply(answer).await.unwrap();
    assert_eq!(scene.claim(200).await.unwrap().run.id, second);
}

#[tokio::test]
async fn a_later_run_waits_for_an_earlier_one_that_waits_for_a_time() {
    let scene = Scene::open().await;
    scene.ask("C1", "one", 10).await;
    scene.ask("C1", "two", 20).await;
    let claimed = scene.claim(100).await.unwrap();
    let given_back = scene
        .store
        .requeue_run(claimed.run.id, claimed.token, 5_000, "model is busy", 100)
        .await;
    assert_eq!(given_back.unwrap(), LeaseOutcome::Written);

    assert_eq!(scene.claim(4_999).await, None);
    assert_eq!(
        scene.store.next_run_due_ms(4_999).await.unwrap(),
        Some(5_000)
    );
    let again = scene.claim(5_000).await.unwrap();
    assert_eq!((again.run.id, again.run.attempt), (claimed.run.id, 2));
}

/// A run of tomorrow was asked first.
#[tokio::test]
async fn a_run_that_is_due_later_holds_up_nothing_in_its_conversation_until_its_time() {
    let scene = Scene::open().await;
    let due_ms = 10 + PLACE_KEPT_MS_MAX + 1;
    let tomorrow = scene.ask_for("C1", "tomorrow", 10, due_ms).await;
    let store = &scene.store;
    assert_eq!(store.next_run_due_ms(20).await.unwrap(), Some(due_ms));
    let (_, now) = scene.ask("C1", "now", 20).await;
    let shown = store.queued_runs(9, 30).await.unwrap();
    let waits: Vec<WaitingFor> = shown.into_iter().map(|it| it.waiting_for).collect();
    assert_eq!(
        waits,
        [WaitingFor::Time { at_ms: due_ms }, WaitingFor::Worker]
    );
    let first = scene.claim(30).await.unwrap();
    assert_eq!(first.run.id, now);
    let answer = scene.answer(&first, "here").await;
    store.commit_reply(answer).await.unwrap();
    assert_eq!(scene.claim(due_ms - 1).await, None);
    // Its time has come: what was asked after it waits its turn again.
    scene.ask("C1", "after", due_ms).await;
    assert_eq!(scene.claim(due_ms).await.unwrap().run.id, tomorrow);
    assert_eq!(scene.claim(due_ms).await, None);
}

#[tokio::test]
async fn a_run_that_waits_for_the_rest_of_its_message_keeps_its_place() {
    let scene = Scene::open().await;
    let due_ms = 10 + PLACE_KEPT_MS_MAX;
    let album = scene.ask_for("C1", "an album", 10, due_ms).await;
    scene.ask("C1", "next", 20).await;
    assert_eq!(scene.claim(30).await, None);
    assert_eq!(scene.claim(due_ms).await.unwrap().run.id, album);
}

#[tokio::test]
async fn a_run_returned_at_a_stop_has_not_been_attempted() {
    let scene = Scene::open().await;
    scene.ask("C1", "one", 10).await;
    let claimed = scene.claim(100).await.unwrap();
    let returned = scene
        .store
        .return_run(claimed.run.id, claimed.token, "shutdown", 100)
        .await;
    assert_eq!(returned.unwrap(), LeaseOutcome::Written);
    let again = scene.claim(100).await.unwrap();
    assert_eq!((again.run.id, again.run.attempt), (claimed.run.id, 1));
    assert_eq!(again.as_of_seq, claimed.as_of_seq);
}

#[tokio::test]
async fn a_busy_room_takes_turns_with_a_quiet_one() {
    let scene = Scene::open().await;
    let (busy, quiet) = ("C1", "C2");
    for at_ms in [10, 11, 12] {
        scene.ask(busy, "again", at_ms).await;
    }
    let (_, lone) = scene.ask(quiet, "hello", 50).await;

    let first = scene.claim(100).await.unwrap();
    assert_eq!(first.run.conversation, scene.conversation(busy).await);
    let answer = scene.answer(&first, "yes").await;
    scene.store.commit_reply(answer).await.unwrap();
    assert_eq!(scene.claim(102).await.unwrap().run.id, lone);
}

#[tokio::test]
async fn an_expired_lease_is_claimed_again_and_its_token_writes_nothing() {
    let scene = Scene::open().await;
    scene.ask("C1", "one", 10).await;
    let lost = scene.claim(100).await.unwrap();
    assert_eq!(
        scene.store.next_run_due_ms(100).await.unwrap(),
        Some(100 + LEASE_MS)
    );
    let held = scene.claim(100 + LEASE_MS).await.unwrap();
    assert_eq!((held.run.id, held.run.attempt), (lost.run.id, 2));

    let before = scene.store.run(lost.run.id).await.unwrap();
    let (run, token) = (lost.run.id, lost.token);
    let store = &scene.store;
    let requeued = store
        .requeue_run(run, token, 0, "late", 2_000)
        .await
        .unwrap();
    let step = store
        .record_step(
            run,
            token,
            RecordedStep {
                number: 0,
                message: "{}".to_owned(),
                usage: Usage::default(),
                verdicts: Vec::new(),
            },
            2_000,
        )
        .await
        .unwrap();
    assert_eq!((requeued, step), (LeaseOutcome::Stale, LeaseOutcome::Stale));
    let extended = store.extend_run(run, token, 9_000).await.unwrap();
    assert_eq!(extended, RunLease::Lost);
    assert_eq!(store.run(run).await.unwrap(), before);
    assert!(store.steps(run).await.unwrap().is_empty());
}

#[tokio::test]
async fn the_read_bound_is_written_at_the_first_claim_and_stays() {
    let scene = Scene::open().await;
    let (asked, _) = scene.ask("C1", "one", 10).await;
    let first = scene.claim(100).await.unwrap();
    assert_eq!((first.as_of_seq, first.as_of_ms), (asked.seq, 100));

    scene.say("C1", "meanwhile", 150).await;
    let second = scene.claim(100 + LEASE_MS).await.unwrap();
    assert_eq!((second.as_of_seq, second.as_of_ms), (asked.seq, 100));
}

#[tokio::test]
async fn a_queued_run_is_cancelled_at_once_and_a_leased_one_is_asked_to_stop() {
    let scene = Scene::open().await;
    let (_, first) = scene.ask("C1", "one", 10).await;
    let (_, second) = scene.ask("C1", "two", 20).await;
    let leased = scene.claim(100).await.unwrap();
    let store = &scene.store;
    assert!(
        store
            .cancel_run(second, by_hand("by hand"), 101)
            .await
            .unwrap()
    );
    assert!(
        store
            .cancel_run(first, by_hand("by hand"), 101)
            .await
            .unwrap()
    );
    assert_eq!(store.run(second).await.unwrap().state, RunState::Cancelled);

    let extended = store.extend_run(first, leased.token, 5_000).await.unwrap();
    assert_eq!(extended, RunLease::CancelRequested);
    let given_back = store
        .requeue_run(first, leased.token, 0, "stopped", 102)
        .await;
    assert_eq!(given_back.unwrap(), LeaseOutcome::Written);
    assert_eq!(store.run(first).await.unwrap().state, RunState::Cancelled);
    assert!(
        !store
            .cancel_run(first, by_hand("again"), 103)
            .await
            .unwrap()
    );
    assert_eq!(scene.claim(9_999).await, None);
}

#[tokio::test]
async fn an_expired_run_that_was_asked_to_stop_is_not_started_again() {
    let scene = Scene::open().await;
    let (_, first) = scene.ask("C1", "one", 10).await;
    let (_, second) = scene.ask("C1", "two", 20).await;
    scene.claim(100).await.unwrap();
    scene
        .store
        .cancel_run(first, by_hand("by hand"), 101)
        .await
        .unwrap();
    let next = scene.claim(100 + LEASE_MS).await.unwrap();
    assert_eq!(next.run.id, second);
    let state = scene.store.run(first).await.unwrap().state;
    assert_eq!(state, RunState::Cancelled);
}

#[tokio::test]
async fn a_start_takes_over_what_its_predecessor_had_leased() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite");
    let scene = Scene::open_at(Some(path.clone())).await;
    let (_, run) = scene.ask("C1", "one", 10).await;
    scene.claim(100).await.unwrap();
    scene.store.close().await.unwrap();
    drop(scene);

    let scene = Scene::open_at(Some(path)).await;
    let claimed = scene.claim(150).await.unwrap();
    assert_eq!((claimed.run.id, claimed.run.attempt), (run, 2));
    assert_eq!(claimed.as_of_ms, 100);
}

const YEAR_MS: i64 = 365 * 86_400_000;

#[tokio::test]
async fn what_a_process_works_on_it_never_claims_again_whatever_the_clock_says() {
    let scene = Scene::open().await;
    scene.ask("C1", "one", 10).await;
    let owner = OwnerId::generate();
    let claim = async |now_ms| {
        let request = ClaimRequest {
            owner,
            ..scene.request(now_ms)
        };
        scene
            .store
            .claim_run(request, Slots::default())
            .await
            .unwrap()
    };
    let working = claim(YEAR_MS).await.unwrap();
    for now_ms in [YEAR_MS + 200_000, 2 * YEAR_MS, 0] {
        assert_eq!(claim(now_ms).await, None);
    }
    let (run, token) = (working.run.id, working.token);
    let put_off = scene.store.requeue_run(run, token, 2 * YEAR_MS, "busy", 0);
    put_off.await.unwrap();
    // A clock that was a year ahead wrote when it is due.
    assert_eq!(claim(2 * YEAR_MS - 1).await, None);
    assert_eq!(claim(1_000).await.unwrap().run.id, run);
}

#[tokio::test]
async fn a_question_waits_though_the_clock_that_heard_it_is_a_little_ahead() {
    let scene = Scene::open().await;
    let (heard_ms, due_ms) = (1_000_000, 4_600_000);
    let run = scene.ask_for("C1", "one", heard_ms, due_ms).await;
    // Whoever claims has the clock of another platform.
    for now_ms in [heard_ms - 1, heard_ms - 60_000] {
        assert_eq!(scene.claim(now_ms).await, None, "{now_ms}");
    }
    // What is due so much later holds up nobody.
    let (_, next) = scene.ask("C1", "two", heard_ms).await;
    assert_eq!(scene.claim(heard_ms - 1).await.unwrap().run.id, next);
    let other = scene.ask_for("C2", "three", heard_ms, due_ms).await;
    let by_another_clock = scene.claim(heard_ms - 60_001).await.unwrap();
    assert!([run, other].contains(&by_another_clock.run.id));
}

#[tokio::test]
async fn a_run_that_came_back_by_a_clock_that_was_ahead_is_due_once_the_clock_is_right() {
    let scene = Scene::open().await;
    scene.ask("C1", "one", 10).await;
    let claim = async |now_ms| {
        let request = scene.request(now_ms);
        let claimed = scene.store.claim_run(request, Slots::default()).await;
        claimed.unwrap()
    };
    let working = claim(20).await.unwrap();
    // Less ahead than a wait may be long.
    let back = scene
        .store
        .return_run(working.run.id, working.token, "shutdown", 7_200_000);
    back.await.unwrap();
    assert_eq!(claim(30).await.unwrap().run.id, working.run.id);
}

#[tokio::test]
async fn a_question_outlives_many_kills_and_a_run_that_ends_its_process_each_time_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = Some(folder.path().join("store.db"));
    Scene::open_at(path.clone())
        .await
        .ask("C1", "one", 10)
        .await;
    let mut used = Vec::new();
    for _ in 0..24 {
        let scene = Scene::open_at(path.clone()).await;
        let claimed = scene.claim(100).await.unwrap();
        used.push(claimed.attempts_used());
        scene.store.close().await.unwrap();
    }
    let free = [1; 21];
    assert_eq!(used, [&free[..], &[2, 3, 4]].concat());
}
