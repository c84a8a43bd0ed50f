//! Which posts go, in which order, and what an outcome does to those behind.

use vocative_contract::outbound::{Delivered, Operation, Part};

use vocative_core::ids::OwnerId;
use vocative_core::outbox::{ClaimedEntry, OutboxState, OutboxUpdate};
use vocative_store::contract::{ClaimRequest, CommittedReply, LeaseOutcome};
use vocative_store::{NewId as _, StoreError};

use crate::said::binding;
use crate::scene::{LEASE_MS, Scene, target};

fn texts(claimed: &[ClaimedEntry]) -> Vec<&str> {
    claimed
        .iter()
        .map(|claim| claim.entry.part.text.as_str())
        .collect()
}

/// Sends all there is, one at a time, and returns the texts in order.
async fn drain(scene: &Scene, mut now_ms: i64) -> Vec<String> {
    let mut sent = Vec::new();
    loop {
        let claimed = scene.claim_posts(now_ms).await;
        if claimed.is_empty() {
            return sent;
        }
        for claim in claimed {
            let message_id = format!("p{}", claim.entry.id);
            scene.send(&claim, &message_id, now_ms).await;
            sent.push(claim.entry.part.text);
        }
        now_ms += 1;
    }
}

async fn two_parts_and_one(scene: &Scene) {
    scene.post("C1", &["one", "two"], 100).await;
    scene.post("C1", &["three"], 200).await;
}

fn retry(not_before_ms: i64) -> OutboxUpdate {
    OutboxUpdate::Retry {
        not_before_ms,
        reason: "429".to_owned(),
    }
}

#[tokio::test]
async fn posts_of_a_chat_go_one_at_a_time_in_order_and_chats_do_not_wait() {
    let scene = Scene::open().await;
    two_parts_and_one(&scene).await;
    scene.post("C2", &["elsewhere"], 300).await;

    let claimed = scene.claim_posts(1_000).await;
    assert_eq!(texts(&claimed), ["one", "elsewhere"]);
    assert_eq!(texts(&scene.claim_posts(1_001).await), Vec::<&str>::new());
    scene.send(&claimed[0], "p1", 1_002).await;
    assert_eq!(texts(&scene.claim_posts(1_003).await), ["two"]);
}

#[tokio::test]
async fn a_rate_limit_parks_the_chat_and_keeps_its_order() {
    let scene = Scene::open().await;
    two_parts_and_one(&scene).await;
    let claimed = scene.claim_posts(1_000).await;
    scene.start(&claimed[0], 1_000).await;
    scene.update(&claimed[0], retry(5_000), 1_001).await;
    assert_eq!(texts(&scene.claim_posts(4_999).await), Vec::<&str>::new());
    assert_eq!(scene.store.next_post_due_ms().await.unwrap(), Some(5_000));

    let again = scene.claim_posts(5_000).await;
    assert!(!again[0].is_unknown);
    assert_eq!(
        (again[0].entry.attempts, again[0].entry.first_attempt_ms),
        (1, Some(1_000))
    );
    scene.send(&again[0], "p1", 5_000).await;
    assert_eq!(drain(&scene, 5_001).await, ["two", "three"]);
}

#[tokio::test]
async fn a_lease_that_ends_after_bytes_left_is_of_unknown_outcome() {
    let scene = Scene::open().await;
    two_parts_and_one(&scene).await;
    let unstarted = scene.claim_posts(1_000).await;
    let started = scene.claim_posts(1_000 + LEASE_MS).await;
    assert!(!started[0].is_unknown);
    let stale = scene
        .store
        .mark_send_started(unstarted[0].entry.id, unstarted[0].token, None, 2_000)
        .await;
    assert_eq!(stale.unwrap(), LeaseOutcome::Stale);

    scene.start(&started[0], 2_000).await;
    let lost = scene.claim_posts(2_000 + LEASE_MS).await;
    assert_eq!(texts(&lost), ["one"]);
    assert!(lost[0].is_unknown);
    let late = scene
        .store
        .update_post(started[0].entry.id, started[0].token, retry(0), 3_001)
        .await;
    assert_eq!(late.unwrap(), LeaseOutcome::Stale);
}

#[tokio::test]
async fn an_unknown_outcome_holds_the_chat_until_it_is_looked_for() {
    let scene = Scene::open().await;
    two_parts_and_one(&scene).await;
    let claimed = scene.claim_posts(1_000).await;
    scene.start(&claimed[0], 1_000).await;
    let look = |not_before_ms| OutboxUpdate::Look {
        not_before_ms,
        reason: "reset".to_owned(),
    };
    scene.update(&claimed[0], look(2_000), 1_001).await;
    assert!(scene.claim_posts(1_999).await.is_empty());
    let looking = scene.claim_posts(2_000).await;
    assert!(looking[0].is_unknown);
    assert_eq!(looking[0].entry.looks, 1);

    // The look itself is refused: the outcome of the attempt stays unknown.
    let held = OutboxUpdate::HoldAccount {
        reason: "token_revoked".to_owned(),
    };
    scene.update(&looking[0], held, 2_001).await;
    assert!(scene.claim_posts(9_000).await.is_empty());
    assert_eq!(scene.store.next_post_due_ms().await.unwrap(), None);
    // A token that works again binds the account anew.
    let bound = scene.store.bind_account(binding("acme"), 9_000).await;
    assert_eq!(bound.unwrap(), scene.account);
    let looking = scene.claim_posts(9_000).await;
    assert!(looking[0].is_unknown);
    let reason = "not there".to_owned();
    scene
        .update(&looking[0], OutboxUpdate::Resend { reason }, 9_001)
        .await;
    let again = scene.claim_posts(9_001).await;
    assert!(!again[0].is_unknown);
    assert_eq!(again[0].entry.resends, 1);
    scene.send(&again[0], "p1", 9_002).await;
    assert_eq!(drain(&scene, 9_003).await, ["two", "three"]);
}

#[tokio::test]
async fn a_post_that_is_sent_again_later_waits_until_then_and_is_counted() {
    let scene = Scene::open().await;
    two_parts_and_one(&scene).await;
    for (resends, at_ms) in [(1, 2_000), (2, 6_000)] {
        let claimed = scene.claim_posts(at_ms - 1_000).await;
        scene.start(&claimed[0], at_ms - 1_000).await;
        let later = OutboxUpdate::ResendLater {
            not_before_ms: at_ms,
            reason: "HTTP 502".to_owned(),
        };
        scene.update(&claimed[0], later, at_ms - 900).await;
        let early = scene.claim_posts(at_ms - 1).await;
        assert!(
            early.iter().all(|post| post.entry.part_number != 0),
            "{early:?}"
        );
        let again = scene.claim_posts(at_ms).await;
        assert!(!again[0].is_unknown);
        assert_eq!(again[0].entry.resends, resends);
        // It is claimed again below: give it back untouched.
        let back = OutboxUpdate::Retry {
            not_before_ms: at_ms,
            reason: "not yet".to_owned(),
        };
        scene.update(&again[0], back, at_ms).await;
    }
}

#[tokio::test]
async fn a_held_part_holds_back_only_later_parts_of_its_turn() {
    let scene = Scene::open().await;
    two_parts_and_one(&scene).await;
    let claimed = scene.claim_posts(1_000).await;
    scene.start(&claimed[0], 1_000).await;
    let reason = "may be out".to_owned();
    scene
        .update(&claimed[0], OutboxUpdate::Hold { reason }, 1_001)
        .await;
    assert_eq!(drain(&scene, 1_002).await, ["three"]);

    let stuck = scene.store.stuck_posts(5).await.unwrap();
    assert_eq!(stuck.len(), 1);
    assert_eq!(stuck[0].id, claimed[0].entry.id);
    scene
        .store
        .release_post(stuck[0].id, true, 2_000)
        .await
        .unwrap();
    assert_eq!(drain(&scene, 2_000).await, ["one", "two"]);
    let again = scene.store.release_post(stuck[0].id, true, 2_100).await;
    assert!(matches!(again, Err(StoreError::NotFound { .. })));
}

#[tokio::test]
async fn a_dropped_post_lets_the_rest_of_its_turn_go() {
    let scene = Scene::open().await;
    two_parts_and_one(&scene).await;
    let claimed = scene.claim_posts(1_000).await;
    let reason = "may be out".to_owned();
    scene
        .update(&claimed[0], OutboxUpdate::Hold { reason }, 1_001)
        .await;
    let id = claimed[0].entry.id;
    scene.store.release_post(id, false, 1_002).await.unwrap();
    assert_eq!(drain(&scene, 1_003).await, ["two", "three"]);
    assert_eq!(scene.store.stuck_posts(5).await.unwrap(), []);
}

#[tokio::test]
async fn parts_that_replace_another_go_in_its_place_also_when_replaced_again() {
    let scene = Scene::open().await;
    two_parts_and_one(&scene).await;
    let split = |parts: &[&str]| OutboxUpdate::Replace {
        parts: parts.iter().map(|part| Part::plain(*part)).collect(),
        target: target("C1"),
        operation: Operation::Post,
        reason: "too long".to_owned(),
    };
    let claimed = scene.claim_posts(1_000).await;
    scene.update(&claimed[0], split(&["o", "ne"]), 1_001).await;
    let claimed = scene.claim_posts(1_002).await;
    assert_eq!(texts(&claimed), ["o"]);
    scene.update(&claimed[0], split(&["o1", "o2"]), 1_003).await;
    assert_eq!(
        drain(&scene, 1_004).await,
        ["o1", "o2", "ne", "two", "three"]
    );
}

#[tokio::test]
async fn a_chat_that_refuses_is_parked_until_something_is_heard() {
    let scene = Scene::open().await;
    two_parts_and_one(&scene).await;
    let claimed = scene.claim_posts(1_000).await;
    scene.start(&claimed[0], 1_000).await;
    let parked = OutboxUpdate::ParkChat {
        not_before_ms: 60_000,
        keep_ms: 86_400_000,
        reason: "not_in_channel".to_owned(),
    };
    scene.update(&claimed[0], parked, 1_001).await;
    assert!(scene.claim_posts(59_999).await.is_empty());
    assert_eq!(scene.store.next_post_due_ms().await.unwrap(), Some(60_000));
    scene.say("C1", "welcome back", 1_500).await;
    let again = scene.claim_posts(2_000).await;
    assert_eq!(texts(&again), ["one"]);
    assert!(!again[0].is_unknown);
}

#[tokio::test]
async fn a_sent_post_is_known_by_its_message_id() {
    let scene = Scene::open().await;
    let written = scene.post("C1", &["one"], 100).await;
    let CommittedReply::Written { turn, posts } = written else {
        panic!("{written:?}");
    };
    let claimed = scene.claim_posts(1_000).await;
    assert_eq!(claimed[0].entry.id, posts[0]);
    assert_eq!(claimed[0].entry.turn, Some(turn));
    scene.send(&claimed[0], "p1", 1_001).await;
    let room = scene.conversation("C1").await;
    let details = scene.store.turn_details(room, 1).await.unwrap();
    assert_eq!(details[0].message_ids, ["p1"]);
    let message_id = "p1".to_owned();
    assert_eq!(details[0].posts[0].state, OutboxState::Sent { message_id });
}

#[tokio::test]
async fn what_the_room_shows_is_kept_where_it_is_something_else() {
    let scene = Scene::open().await;
    scene.post("C1", &["one "], 100).await;
    let claimed = scene.claim_posts(1_000).await;
    scene.start(&claimed[0], 1_000).await;
    let delivered = Delivered {
        chat: "C1".to_owned(),
        message_id: "p1".to_owned(),
        sent_at_ms: 1_001,
        shown: Some(Box::new(Part::plain("one"))),
    };
    scene
        .update(&claimed[0], OutboxUpdate::Sent(delivered), 1_001)
        .await;
    let room = scene.conversation("C1").await;
    let details = scene.store.turn_details(room, 1).await.unwrap();
    assert_eq!(details[0].posts[0].part, Part::plain("one"));
}

#[tokio::test]
async fn after_a_crash_a_post_that_was_being_sent_is_looked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite");
    let scene = Scene::open_at(Some(path.clone())).await;
    two_parts_and_one(&scene).await;
    scene.post("C2", &["elsewhere"], 300).await;
    let claimed = scene.claim_posts(1_000).await;
    scene.start(&claimed[0], 1_000).await;
    scene.store.close().await.unwrap();
    drop(scene);

    let scene = Scene::open_at(Some(path)).await;
    let claimed = scene.claim_posts(1_001).await;
    assert_eq!(texts(&claimed), ["one", "elsewhere"]);
    let unknown: Vec<bool> = claimed.iter().map(|claim| claim.is_unknown).collect();
    assert_eq!(unknown, [true, false]);
}

const YEAR_MS: i64 = 365 * 86_400_000;

#[tokio::test]
async fn what_a_process_sends_it_never_claims_again_whatever_the_clock_says() {
    let scene = Scene::open().await;
    two_parts_and_one(&scene).await;
    let owner = OwnerId::generate();
    let claim = async |now_ms| {
        let request = ClaimRequest {
            owner,
            ..scene.request(now_ms)
        };
        scene.store.claim_posts(request, 10).await.unwrap()
    };
    let sending = claim(YEAR_MS).await;
    scene.start(&sending[0], YEAR_MS).await;
    for now_ms in [YEAR_MS + 200_000, 2 * YEAR_MS, 0] {
        assert_eq!(claim(now_ms).await, []);
    }
    // Its handling ended without a word: only then it is of unknown outcome.
    let (id, token) = (sending[0].entry.id, sending[0].token);
    scene.store.abandon_post(id, token, 5).await.unwrap();
    let found = claim(5).await;
    assert_eq!((texts(&found), found[0].is_unknown), (vec!["one"], true));
    scene.store.abandon_post(id, token, 6).await.unwrap();
    assert_eq!(claim(6).await, []);
}

#[tokio::test]
async fn a_post_put_off_by_a_clock_that_was_wrong_goes_when_it_is_right() {
    let scene = Scene::open().await;
    two_parts_and_one(&scene).await;
    let claimed = scene.claim_posts(YEAR_MS).await;
    scene
        .update(&claimed[0], retry(YEAR_MS + 60_000), YEAR_MS)
        .await;
    assert_eq!(scene.claim_posts(YEAR_MS).await, []);
    assert_eq!(texts(&scene.claim_posts(1_000).await), ["one"]);
}

#[tokio::test]
async fn what_waits_by_a_clock_that_was_ahead_is_due_once_the_clock_is_right() {
    const AHEAD_MS: i64 = 7_200_000;
    let scene = Scene::open().await;
    // Committed ahead, and claimed with the right time.
    scene.post("C1", &["one"], AHEAD_MS).await;
    let claimed = scene.claim_posts(1_000).await;
    assert_eq!(texts(&claimed), ["one"]);
    let retry = |not_before_ms| OutboxUpdate::Retry {
        not_before_ms,
        reason: "refused".to_owned(),
    };
    // What was put off with the right time waits for it.
    scene.update(&claimed[0], retry(2_000), 1_000).await;
    assert_eq!(scene.claim_posts(1_999).await, []);
    // Attempted ahead.
    let claimed = scene.claim_posts(2_000).await;
    let (id, token) = (claimed[0].entry.id, claimed[0].token);
    let started = scene
        .store
        .mark_send_started(id, token, None, AHEAD_MS)
        .await;
    assert_eq!(started.unwrap(), LeaseOutcome::Written);
    scene
        .update(&claimed[0], retry(AHEAD_MS + 30_000), AHEAD_MS)
        .await;
    let claimed = scene.claim_posts(3_000).await;
    assert_eq!(texts(&claimed), ["one"]);
    // However far ahead it was once attempted.
    scene.update(&claimed[0], retry(4_000), 3_000).await;
    assert_eq!(scene.claim_posts(3_999).await, []);
    assert_eq!(texts(&scene.claim_posts(4_000).await), ["one"]);
}
