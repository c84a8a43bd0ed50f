//! What becomes of an edit, and of a delete that comes first.

use vocative_core::addressing::{Overlap, Verdict};
use vocative_core::run::{RunState, Usage};
use vocative_store::contract::{Captured, Deleted, LeaseOutcome, RecordedStep};

use crate::said::{NOW_MS, Said, admitted, agent, said, turn_of};
use crate::scene::Scene;

fn edit(id: &'static str, text: &'static str, marker: &'static str) -> Said {
    Said {
        edit_marker: Some(marker),
        ..said(id, text)
    }
}

#[tokio::test]
async fn an_edit_that_is_not_newer_is_a_duplicate() {
    let scene = Scene::open().await;
    scene.hear(said("1", "one")).await;
    scene.hear(edit("1", "three", "100.5")).await;
    for late in [
        edit("1", "two", "99"),
        edit("1", "two", "100"),
        edit("1", "two", "100.5"),
        said("1", "one"),
    ] {
        let captured = scene.hear_for(&[], late).await;
        assert!(matches!(captured, Captured::Duplicate(_)), "{captured:?}");
    }
    assert_eq!(scene.only_turn().await.content, "three");
    // The text before the edit addressed somebody; it is heard too late to matter.
    let late = scene.hear_for(&["helper"], said("1", "one")).await;
    assert_eq!(turn_of(late).new_runs, []);
}

#[tokio::test]
async fn of_two_edits_in_one_second_the_one_that_is_told_last_counts() {
    let scene = Scene::open().await;
    scene.hear(said("1", "one")).await;
    scene.hear(edit("1", "two", "100")).await;
    let last = scene.hear(edit("1", "three", "100")).await;
    assert!(matches!(last, Captured::Revised(_)), "{last:?}");
    let again = scene.hear(edit("1", "three", "100")).await;
    assert!(matches!(again, Captured::Duplicate(_)), "{again:?}");
    assert_eq!(scene.only_turn().await.content, "three");
    let before = scene.hear(edit("1", "two", "99")).await;
    assert!(matches!(before, Captured::Duplicate(_)), "{before:?}");
}

#[tokio::test]
async fn an_edit_of_an_unknown_message_is_captured_as_new() {
    let scene = Scene::open().await;
    let captured = scene.hear(edit("1", "two", "10")).await;
    assert!(matches!(captured, Captured::New(_)));
    let late = scene.hear(said("1", "one")).await;
    assert!(matches!(late, Captured::Duplicate(_)));
    assert_eq!(scene.contents().await, ["two"]);
}

#[tokio::test]
async fn an_edit_that_adds_a_mention_addresses() {
    let scene = Scene::open().await;
    scene.hear(said("1", "hello")).await;
    let edited = turn_of(
        scene
            .hear_for(&["helper"], edit("1", "hello helper", "10"))
            .await,
    );
    assert_eq!(edited.new_runs.len(), 1);
}

#[tokio::test]
async fn an_edit_that_takes_a_mention_away_cancels_the_waiting_run_until_it_comes_back() {
    let scene = Scene::open().await;
    let run = turn_of(scene.hear_for(&["helper"], said("1", "helper?")).await).new_runs;
    let edited = turn_of(scene.hear(edit("1", "never mind", "10")).await);
    assert_eq!(edited.cancelled_runs, run);
    assert_eq!(scene.only_turn().await.addressed_to, []);
    let state = async || scene.store.run(run[0]).await.unwrap().state;
    assert_eq!(state().await, RunState::Cancelled);
    let back = turn_of(
        scene
            .hear_for(&["helper"], edit("1", "helper!", "11"))
            .await,
    );
    assert_eq!(back.new_runs, run);
    assert!(matches!(state().await, RunState::Queued { .. }));
}

#[tokio::test]
async fn an_edit_without_a_marker_is_one_where_its_text_differs() {
    let scene = Scene::open().await;
    scene.hear(said("1", "one")).await;
    let same = scene.hear(edit("1", "one", "")).await;
    assert!(matches!(same, Captured::Duplicate(_)), "{same:?}");
    for text in ["two", "three"] {
        let edited = scene.hear(edit("1", text, "")).await;
        assert!(matches!(edited, Captured::Revised(_)), "{edited:?}");
        assert_eq!(scene.only_turn().await.content, text);
    }
    // A marked edit is newer than any without, whichever is heard first.
    scene.hear(edit("1", "four", "10")).await;
    let late = scene.hear(edit("1", "three", "")).await;
    assert!(matches!(late, Captured::Duplicate(_)), "{late:?}");
    assert_eq!(scene.only_turn().await.content, "four");
}

#[tokio::test]
async fn what_was_answered_stays_addressed_after_an_edit() {
    let scene = Scene::open().await;
    scene.hear_for(&["helper"], said("1", "helper?")).await;
    let run = scene.claim(NOW_MS + 600_000).await.unwrap();
    let answer = scene.answer(&run, "yes").await;
    scene.store.commit_reply(answer).await.unwrap();
    let edited = turn_of(scene.hear(edit("1", "never mind", "10")).await);
    assert_eq!(edited.cancelled_runs, []);
    let turn = scene.store.turn(edited.turn).await.unwrap();
    assert_eq!(turn.content, "never mind");
    assert_eq!(turn.addressed_to, [agent("helper")]);
}

#[tokio::test]
async fn an_answer_to_what_was_said_before_an_edit_is_not_replayed() {
    let scene = Scene::open().await;
    scene.hear_for(&["helper"], said("1", "one")).await;
    let now_ms = NOW_MS + 600_000;
    let run = scene.claim(now_ms).await.unwrap();
    let (store, id) = (&scene.store, run.run.id);
    let step = "to one".to_owned();
    let recorded = store.record_step(
        id,
        run.token,
        RecordedStep {
            number: 1,
            message: step,
            usage: Usage::default(),
            verdicts: Vec::new(),
        },
        now_ms,
    );
    assert_eq!(recorded.await.unwrap(), LeaseOutcome::Written);
    let returned = store.requeue_run(id, run.token, 0, "busy", now_ms).await;
    assert_eq!(returned.unwrap(), LeaseOutcome::Written);
    scene.hear_for(&["helper"], edit("1", "one", "9")).await;
    let kept = store.steps(id).await.unwrap();
    assert_eq!(kept, ["to one"], "nothing changed");
    scene.hear_for(&["helper"], edit("1", "two", "10")).await;
    assert_eq!(store.steps(id).await.unwrap(), [""; 0]);
}

#[tokio::test]
async fn a_delete_that_comes_first_keeps_the_message_out() {
    let scene = Scene::open().await;
    let deleted = scene.store.capture_delete(scene.account, "C1", "1", NOW_MS);
    assert_eq!(deleted.await.unwrap(), Deleted::Remembered);
    assert_eq!(scene.hear(said("1", "hello")).await, Captured::Tombstone);
    assert_eq!(scene.turns().await, []);
}

#[tokio::test]
async fn an_edit_that_takes_a_mention_away_takes_one_of_several_triggers_away() {
    let scene = Scene::open().await;
    // Somebody asks, while other questions of theirs may wait.
    let ask = async |said: Said| {
        let together = Verdict {
            overlaps: [(agent("helper"), Overlap::Auto)].into(),
            ..admitted(&["helper"])
        };
        turn_of(scene.judge(said, |_| together).await)
    };
    for id in ["1", "2"] {
        ask(said(id, "what is it?")).await;
    }
    let gone = turn_of(scene.hear(edit("1", "never mind", "10")).await);
    assert_eq!(gone.cancelled_runs, []);
    assert_eq!(scene.runs().await, ["helper queued 2"]);
    ask(edit("1", "never mind", "11")).await;
    assert_eq!(scene.runs().await, ["helper queued 1+2"]);
}
