//! Numbers of messages: what is known of them when a post of unknown outcome is looked for.

use std::collections::BTreeSet;

use vocative_contract::envelope::ChatKind;
use vocative_contract::outbound::Delivered;
use vocative_contract::probe::{Numbered, OwnNumber, Sequence};
use vocative_core::outbox::{ClaimedEntry, OutboxUpdate};
use vocative_core::probing::{ProbeFacts, ProbeStage, Probing};
use vocative_store::contract::{LeaseOutcome, StoreStatus};

use crate::said::admitted;
use crate::scene::Scene;

const GROUP: &str = "-1001";

fn sequence() -> Sequence {
    Sequence {
        name: GROUP.to_owned(),
        is_of_one_chat: true,
    }
}

fn heard(number: i64, sent_at_ms: i64) -> Numbered {
    Numbered {
        sequence: sequence(),
        chat: GROUP.to_owned(),
        number: Some(number),
        sent_at_ms,
        own: Vec::new(),
    }
}

async fn hear(scene: &Scene, numbered: Numbered) {
    let heard = scene.store.hear_number(scene.account, numbered).await;
    heard.unwrap();
}

/// A post of an answer, claimed, whose bytes are on their way.
async fn sending(scene: &Scene, text: &str, now_ms: i64) -> ClaimedEntry {
    scene.post(GROUP, &[text], now_ms).await;
    start(scene, now_ms).await
}

async fn start(scene: &Scene, now_ms: i64) -> ClaimedEntry {
    let claimed = scene.claim_posts(now_ms).await.pop().unwrap();
    let (id, token) = (claimed.entry.id, claimed.token);
    let started = scene
        .store
        .mark_send_started(id, token, Some(sequence()), now_ms);
    assert_eq!(started.await.unwrap(), LeaseOutcome::Written);
    claimed
}

async fn look(scene: &Scene, claim: &ClaimedEntry, now_ms: i64) {
    let reason = "reset".to_owned();
    let look = OutboxUpdate::Look {
        not_before_ms: now_ms,
        reason,
    };
    scene.update(claim, look, now_ms).await;
}

fn sent(message_id: &str) -> OutboxUpdate {
    OutboxUpdate::Sent(Delivered {
        chat: GROUP.to_owned(),
        message_id: message_id.to_owned(),
        sent_at_ms: 0,
        shown: None,
    })
}

async fn facts(scene: &Scene, claim: &ClaimedEntry) -> Option<ProbeFacts> {
    let found = scene.store.probing(claim.entry.id).await.unwrap();
    found.map(|(_, facts)| facts)
}

#[tokio::test]
async fn a_send_begins_above_the_newest_number_and_knows_what_is_heard_since() {
    let scene = Scene::open().await;
    hear(&scene, heard(7, 1_000)).await;
    hear(&scene, heard(5, 900)).await;
    let first = sending(&scene, "one", 10).await;
    scene.update(&first, sent("8"), 11).await;
    hear(&scene, heard(9, 2_000)).await;
    let second = sending(&scene, "two", 20).await;
    hear(&scene, heard(12, 3_000)).await;
    look(&scene, &second, 30).await;
    let found = facts(&scene, &second).await.unwrap();
    let expected = ProbeFacts {
        sequence: GROUP.to_owned(),
        above: 9,
        heard: Some((12, 3_000)),
        known: BTreeSet::from([12]),
        own: Some(8),
        answered: None,
        has_rival: false,
        is_busy: false,
        other_sender_ms: None,
    };
    assert_eq!(found, expected);
}

#[tokio::test]
async fn where_numbers_tell_nothing_nothing_is_asked() {
    for (kind, is_asked) in [
        (Some(ChatKind::Private), true),
        (Some(ChatKind::Broadcast), false),
        (None, false),
    ] {
        let scene = Scene::open().await;
        hear(&scene, heard(7, 1_000)).await;
        let mut asked = scene.next_message(GROUP, "please", 10, admitted(&["helper"]));
        asked.place.kind = kind;
        scene.store.capture_message(asked).await.unwrap();
        let run = scene.claim(10).await.unwrap();
        let answer = scene.answer(&run, "one").await;
        scene.store.commit_reply(answer).await.unwrap();
        let claim = start(&scene, 20).await;
        assert_eq!(facts(&scene, &claim).await.is_some(), is_asked, "{kind:?}");
    }
    // No number is known.
    let scene = Scene::open().await;
    let claim = sending(&scene, "one", 10).await;
    assert_eq!(facts(&scene, &claim).await, None);
}

#[tokio::test]
async fn what_was_learnt_outlives_a_restart_and_not_a_new_send() {
    let folder = tempfile::tempdir().unwrap();
    let path = Some(folder.path().join("store.sqlite"));
    let scene = Scene::open_at(path.clone()).await;
    hear(&scene, heard(7, 1_000)).await;
    let claim = sending(&scene, "one", 10).await;
    let learnt = Probing {
        ended_by_ms: Some(5_000),
        asked: 63,
        waited_ms: 1,
        passes: 2,
        stage: ProbeStage::Closing,
        top: 9,
        horizon: Some(12),
        ours: BTreeSet::from([8]),
        settled: BTreeSet::from([9]),
        missed: BTreeSet::from([10]),
    };
    let (id, token) = (claim.entry.id, claim.token);
    let kept = scene.store.keep_probing(id, token, learnt.clone()).await;
    assert_eq!(kept.unwrap(), LeaseOutcome::Written);
    scene.store.close().await.unwrap();
    drop(scene);
    let scene = Scene::open_at(path).await;
    let found = scene.store.probing(id).await.unwrap();
    assert_eq!(found.map(|(probing, _)| probing), Some(learnt.clone()));
    let stale = scene.store.keep_probing(id, token, learnt).await;
    assert_eq!(stale.unwrap(), LeaseOutcome::Stale);

    let claims = scene.claim_posts(30).await;
    let reason = "not there".to_owned();
    scene
        .update(&claims[0], OutboxUpdate::Resend { reason }, 31)
        .await;
    let claims = scene.claim_posts(40).await;
    let (id, token) = (claims[0].entry.id, claims[0].token);
    let started = scene
        .store
        .mark_send_started(id, token, Some(sequence()), 40);
    started.await.unwrap();
    let found = scene.store.probing(id).await.unwrap();
    assert_eq!(found.map(|(probing, _)| probing), Some(Probing::default()));
}

#[tokio::test]
async fn an_undecided_post_is_counted_apart_and_a_rival_until_something_much_newer_is_heard() {
    let scene = Scene::open().await;
    hear(&scene, heard(7, 1_000)).await;
    let first = sending(&scene, "one", 10).await;
    let undecided = |resend| OutboxUpdate::Undecided {
        resend,
        reason: "nobody can say".to_owned(),
    };
    scene.update(&first, undecided(false), 11).await;
    let counts = |status: StoreStatus| {
        (
            status.posts_held,
            status.posts_undecided,
            status.posts_resent_undecided,
        )
    };
    assert_eq!(counts(scene.store.status(12).await.unwrap()), (1, 1, 0));
    let second = sending(&scene, "two", 20).await;
    look(&scene, &second, 21).await;
    assert!(facts(&scene, &second).await.unwrap().has_rival);
    let dropped = scene.store.release_post(first.entry.id, false, 22).await;
    dropped.unwrap();
    // What the first one left may still be above what the second one was sent above.
    assert!(facts(&scene, &second).await.unwrap().has_rival);
    let again = scene.claim_posts(30).await;
    scene.update(&again[0], undecided(true), 31).await;
    assert_eq!(counts(scene.store.status(32).await.unwrap()), (0, 0, 1));
    // A message that was sent before the first one arrived may be heard afterwards.
    const DAY_MS: i64 = 86_400_000;
    for (number, sent_at_ms, has_rival) in [(20, 9_000, true), (30, 2 * DAY_MS, false)] {
        hear(&scene, heard(number, sent_at_ms)).await;
        let at_ms = 10 * number;
        let again = scene.claim_posts(at_ms).await;
        let (id, token) = (again[0].entry.id, again[0].token);
        let started = scene
            .store
            .mark_send_started(id, token, Some(sequence()), at_ms);
        started.await.unwrap();
        let found = facts(&scene, &again[0]).await.unwrap();
        assert_eq!((found.has_rival, found.above), (has_rival, number));
        scene.update(&again[0], undecided(true), at_ms).await;
    }
}

#[tokio::test]
async fn what_was_given_up_before_any_number_was_known_is_a_rival_all_the_same() {
    let scene = Scene::open().await;
    let first = sending(&scene, "one", 10).await;
    look(&scene, &first, 11).await;
    let reason = "nobody can say".to_owned();
    let claims = scene.claim_posts(12).await;
    scene
        .update(&claims[0], OutboxUpdate::Hold { reason }, 13)
        .await;
    let dropped = scene.store.release_post(first.entry.id, false, 14).await;
    dropped.unwrap();
    hear(&scene, heard(1, 1_000)).await;
    let second = sending(&scene, "two", 20).await;
    look(&scene, &second, 21).await;
    let found = facts(&scene, &second).await.unwrap();
    assert_eq!((found.has_rival, found.above), (true, 1));
}

#[tokio::test]
async fn a_message_of_the_bot_that_no_row_explains_is_another_programs() {
    let scene = Scene::open().await;
    hear(&scene, heard(7, 1_000)).await;
    let shows = |number: i64, sent_at_ms: i64| Numbered {
        number: None,
        own: vec![OwnNumber { number, sent_at_ms }],
        ..heard(0, 0)
    };
    let claim = sending(&scene, "one", 10).await;
    // It may be the one that is on its way.
    hear(&scene, shows(8, 2_000)).await;
    assert_eq!(facts(&scene, &claim).await.unwrap().other_sender_ms, None);
    hear(&scene, shows(3, 500)).await;
    let found = facts(&scene, &claim).await.unwrap();
    assert_eq!(found.other_sender_ms, Some(500));
    scene.update(&claim, sent("8"), 11).await;
    hear(&scene, shows(8, 2_000)).await;
    let found = facts(&scene, &claim).await.unwrap();
    assert_eq!(found.other_sender_ms, Some(500));
    hear(&scene, shows(9, 2_100)).await;
    let found = facts(&scene, &claim).await.unwrap();
    assert_eq!(found.other_sender_ms, Some(2_100));
    scene
        .store
        .note_other_sender(scene.account, 1_000)
        .await
        .unwrap();
    let found = facts(&scene, &claim).await.unwrap();
    assert_eq!(found.other_sender_ms, Some(2_100));
}
