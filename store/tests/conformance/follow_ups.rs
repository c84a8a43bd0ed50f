//! What was said in a thread before it was known to be an agent's.

use std::collections::HashMap;
use std::sync::Arc;

use vocative_contract::envelope::Place;
use vocative_core::addressing::{FollowUpJudge, MessageFacts, Overlap, RunVerdict, Verdict};
use vocative_core::ids::TurnId;
use vocative_store::contract::{CapturedTurn, OwnPost};

use crate::said::{NOW_MS, Said, admitted, agent, said, turn_of};
use crate::scene::Scene;

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

/// Everybody says their message's id.
fn below_1(by: &'static str, id: &'static str) -> Said {
    Said {
        by,
        thread: Some("1"),
        ..said(id, id)
    }
}

impl Scene {
    /// Captures something said in a thread.
    async fn follow(&self, said: Said) -> CapturedTurn {
        let judge = |facts: &MessageFacts| follows(facts, Overlap::Auto, RunVerdict::Run);
        turn_of(self.judge(said, judge).await)
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
        let judge = again(overlap, RunVerdict::Run);
        self.ask_below(said("1", "1"), &["helper"], judge).await
    }

    /// Every run: its state, and what it answers, in the room's order.
    async fn answers(&self) -> Vec<String> {
        let turns = self.turns().await.into_iter();
        let said: HashMap<TurnId, String> = turns.map(|it| (it.id, it.content)).collect();
        let mut runs = self.store.all_runs_before(None, 99).await.unwrap();
        runs.reverse();
        let told = runs.iter().map(|run| {
            let triggers: Vec<&str> = run.triggers.iter().map(|it| said[it].as_str()).collect();
            format!("{} {}", run.state.name(), triggers.join("+"))
        });
        told.collect()
    }

    /// What addresses the agent, in the room's order.
    async fn addressed(&self) -> Vec<String> {
        let mut turns = self.turns().await;
        turns.retain(|turn| turn.addressed_to == [agent("helper")]);
        turns.sort_by_key(|turn| turn.position);
        turns.into_iter().map(|turn| turn.content).collect()
    }
}

#[tokio::test]
async fn what_was_said_in_a_thread_before_its_root_came_is_judged_again_once() {
    let scene = Scene::open().await;
    for (by, id) in [("U1", "4"), ("U2", "3"), ("U1", "2")] {
        assert_eq!(scene.follow(below_1(by, id)).await.new_runs, []);
    }
    let root = scene.ask_root(Overlap::Auto).await;
    assert_eq!(root.new_runs.len(), 2);
    assert_eq!(root.follow_ups, [RunVerdict::Run; 3]);
    // In the room's order: what one person asked is answered together, another's apart.
    let expected = ["queued 1+2+4", "queued 3"];
    assert_eq!(scene.answers().await, expected);
    let thread = scene.conversation("C1/1").await;
    let runs = scene.store.all_runs_before(None, 99).await.unwrap();
    assert!(runs.iter().all(|run| run.conversation == thread));

    // Told again, whatever the order: nothing more comes of it.
    for (by, id) in [("U1", "2"), ("U2", "3")] {
        assert_eq!(scene.follow(below_1(by, id)).await.new_runs, []);
    }
    let root = scene.ask_root(Overlap::Auto).await;
    assert_eq!((root.new_runs, root.follow_ups), (vec![], vec![]));
    assert_eq!(scene.answers().await, expected);
    assert_eq!(scene.addressed().await, ["1", "2", "3", "4"]);
    // Nor when the root turns to another agent, too, before they were said.
    let edited = Said {
        edit_marker: Some("1700000001.500000"),
        ..said("1", "you, too")
    };
    let judge = again(Overlap::Auto, RunVerdict::Run);
    let both = &["helper", "other"];
    let root = scene.ask_below(edited, both, judge).await;
    assert_eq!(root.follow_ups, []);
}

#[tokio::test]
async fn what_is_judged_again_overlaps_as_if_it_came_then() {
    let table: [(Overlap, &[&str]); 3] = [
        (Overlap::Queue, &["queued 1", "queued 2", "queued 3"]),
        (Overlap::Collect, &["queued 1+2+3"]),
        (Overlap::Interrupt, &["queued 1+2+3"]),
    ];
    for (overlap, expected) in table {
        let scene = Scene::open().await;
        scene.follow(below_1("U1", "2")).await;
        scene.follow(below_1("U2", "3")).await;
        scene.ask_root(overlap).await;
        assert_eq!(scene.answers().await, expected, "{overlap:?}");
    }
}

#[tokio::test]
async fn a_follow_up_that_came_again_before_it_was_judged_again_has_one_run() {
    let scene = Scene::open().await;
    scene.follow(below_1("U1", "2")).await;
    scene.hear_for(&["helper"], said("1", "1")).await;
    // Redelivered, it finds its root; the other event of the root's post finds it answered for.
    assert_eq!(scene.follow(below_1("U1", "2")).await.new_runs.len(), 1);
    assert_eq!(scene.ask_root(Overlap::Auto).await.new_runs, []);
    assert_eq!(scene.answers().await, ["queued 1", "queued 2"]);
}

#[tokio::test]
async fn one_that_is_too_old_addresses_and_does_not_run() {
    let scene = Scene::open().await;
    scene.follow(below_1("U1", "2")).await;
    let judge = again(Overlap::Auto, RunVerdict::TooOld);
    scene.ask_below(said("1", "1"), &["helper"], judge).await;
    assert_eq!(scene.answers().await, ["queued 1"]);
    assert_eq!(scene.addressed().await, ["1", "2"]);
}

#[tokio::test]
async fn a_root_that_becomes_a_question_by_an_edit_asks_with_what_was_said_since() {
    let scene = Scene::open().await;
    let judge = || again(Overlap::Queue, RunVerdict::Run);
    scene.ask_below(said("1", "chatter"), &[], judge()).await;
    scene.follow(below_1("U1", "2")).await;
    scene.follow(below_1("U1", "4")).await;
    // It was edited between the two: in the third second.
    let edited = Said {
        edit_marker: Some("1700000003.000100"),
        ..said("1", "1")
    };
    let root = scene.ask_below(edited, &["helper"], judge()).await;
    assert_eq!(root.follow_ups, [RunVerdict::Run]);
    assert_eq!(scene.answers().await, ["queued 1", "queued 4"]);
}

#[tokio::test]
async fn what_was_deleted_or_turned_to_somebody_else_meanwhile_is_no_follow_up() {
    let scene = Scene::open().await;
    scene.follow(below_1("U1", "2")).await;
    scene.follow(below_1("U1", "3")).await;
    let elsewhere = Said {
        edit_marker: Some("9"),
        text: "and you, Bob?",
        ..below_1("U1", "2")
    };
    scene.hear(elsewhere).await;
    let deleted = scene.store.capture_delete(scene.account, "C1", "3", NOW_MS);
    deleted.await.unwrap();
    scene.ask_root(Overlap::Auto).await;
    assert_eq!(scene.answers().await, ["queued 1"]);
}

#[tokio::test]
async fn what_was_said_below_a_post_of_ours_before_we_knew_its_id_is_judged_again() {
    for is_known in [false, true] {
        let scene = Scene::open().await;
        scene.hear_for(&["helper"], said("5", "5")).await;
        let now_ms = NOW_MS + 600_000;
        let run = scene.claim(now_ms).await.unwrap();
        let answer = scene.answer(&run, "answer").await;
        scene.store.commit_reply(answer).await.unwrap();
        let claim = scene.claim_posts(now_ms + 2).await.remove(0);
        scene.start(&claim, now_ms + 2).await;
        assert_eq!(scene.follow(below_1("U1", "2")).await.new_runs, []);
        if is_known {
            scene.send(&claim, "1", now_ms + 3).await;
        }
        for expected in [1, 0] {
            let post = OwnPost {
                account: scene.account,
                place: Place {
                    chat: "C1".to_owned(),
                    ..Place::default()
                },
                message_id: "1".to_owned(),
                marker: Some(claim.entry.id.to_string()),
                now_ms: now_ms + 4,
                judge_follow_up: Some(again(Overlap::Auto, RunVerdict::Run)),
            };
            let changes = scene.store.confirm_own_post(post).await.unwrap();
            let judged = (changes.new_runs.len(), changes.follow_ups.len());
            assert_eq!(judged, (expected, expected), "{is_known}");
        }
        assert_eq!(scene.answers().await, ["done 5", "queued 2"], "{is_known}");
    }
}
