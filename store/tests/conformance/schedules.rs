//! Schedules: made in rooms, fired once, and what a stop, a wrong clock, a backup and an erasure do to them.

use vocative_contract::outbound::Part;
use vocative_core::ids::AgentName;
use vocative_core::scheduling::{
    FiringOutcome, Missed, NewSchedule, ScheduleState, StoredSchedule, Timing,
};
use vocative_core::turn::{ParticipantKind, TurnKind};
use vocative_store::contract::{
    Fired, NewFiring, OperatorSchedule, Reminder, ScheduleChange, ScheduleFilter, TurnFilter,
};

use crate::said::agent;
use crate::scene::Scene;

const HOUR_MS: i64 = 3_600_000;
/// 2026-11-23 08:30 UTC.
const MADE_MS: i64 = 1_795_422_600_000;
/// Nine o'clock on that day.
const NINE_MS: i64 = MADE_MS + HOUR_MS / 2;
const DAY_MS: i64 = 24 * HOUR_MS;

fn daily(agent: Option<AgentName>) -> NewSchedule {
    NewSchedule {
        timing: Timing::cron("0 9 * * *", "UTC").unwrap(),
        jitter_ms: 0,
        missed: Missed::Once,
        agent,
        task: "tell what is open".to_owned(),
    }
}

async fn add(scene: &Scene, what: NewSchedule) -> i64 {
    let new = OperatorSchedule {
        name: None,
        conversation: scene.conversation("C1").await,
        what,
        now_ms: MADE_MS,
    };
    scene.store.add_schedule(new).await.unwrap()
}

async fn schedule(scene: &Scene, id: i64) -> StoredSchedule {
    scene.store.schedule(id).await.unwrap().unwrap()
}

/// What is due at a time, by number.
async fn due(scene: &Scene, now_ms: i64) -> Vec<i64> {
    let found = scene.store.due_schedules(vec![scene.account], now_ms, 10);
    found.await.unwrap().due.iter().map(|it| it.id).collect()
}

async fn fire(scene: &Scene, id: i64, now_ms: i64) -> Fired {
    let seen = schedule(scene, id).await;
    fire_as_seen(scene, &seen, now_ms).await
}

async fn fire_as_seen(scene: &Scene, seen: &StoredSchedule, now_ms: i64) -> Fired {
    let firing = NewFiring {
        id: seen.id,
        at_ms: seen.at_ms,
        is_allowed: true,
        reminder: Some(Reminder {
            text: "Reminder: tea".to_owned(),
            parts: vec![Part::plain("Reminder: tea")],
        }),
        now_ms,
    };
    scene.store.fire_schedule(firing).await.unwrap()
}

fn is_fired(fired: Fired) -> bool {
    matches!(fired, Fired::Decided(FiringOutcome::Fired, _))
}

#[tokio::test]
async fn a_firing_makes_a_turn_of_the_system_and_a_run_once() {
    let scene = Scene::open().await;
    scene.say("C1", "hello", 10).await;
    let id = add(&scene, daily(Some(agent("helper")))).await;
    assert_eq!(schedule(&scene, id).await.at_ms, Some(NINE_MS));
    assert_eq!(due(&scene, NINE_MS - 1).await, [0; 0]);
    assert_eq!(due(&scene, NINE_MS).await, [id]);
    let seen = schedule(&scene, id).await;
    assert!(is_fired(fire_as_seen(&scene, &seen, NINE_MS + 5).await));
    // Whoever saw it before comes too late.
    assert_eq!(fire_as_seen(&scene, &seen, NINE_MS + 6).await, Fired::Stale);
    let after = schedule(&scene, id).await;
    assert_eq!((after.fired, after.missed), (1, 0));
    assert_eq!(after.at_ms, Some(NINE_MS + DAY_MS));
    assert!(after.is_last_open);
    let room = scene.conversation("C1").await;
    let turns = scene.store.turns(room, TurnFilter::default()).await;
    let turns = turns.unwrap().split_off(1);
    assert_eq!(turns.len(), 1);
    assert_eq!(turns[0].kind, TurnKind::Message);
    assert_eq!(turns[0].participant.kind, ParticipantKind::System);
    assert!(
        turns[0].content.ends_with("tell what is open"),
        "{:?}",
        turns[0]
    );
    let run = scene.claim(NINE_MS + 10).await.unwrap();
    assert_eq!(run.run.triggers, [turns[0].id]);
    assert!(scene.store.is_scheduled(run.run.id).await.unwrap());
    let firings = scene.store.firings(id, 9).await.unwrap();
    assert_eq!(firings[0].run, Some(run.run.id));
    // What it started is not over a day later.
    let again = fire(&scene, id, NINE_MS + DAY_MS).await;
    assert_eq!(again, Fired::Decided(FiringOutcome::Overlapped, None));
    let answer = scene.answer(&run, "nothing").await;
    scene.store.commit_reply(answer).await.unwrap();
    assert!(is_fired(fire(&scene, id, NINE_MS + 2 * DAY_MS).await));
    assert_eq!(schedule(&scene, id).await.missed, 1);
}

#[tokio::test]
async fn a_reminder_is_posted_without_a_run() {
    let scene = Scene::open().await;
    scene.say("C1", "hello", 10).await;
    let what = NewSchedule {
        timing: Timing::from_text(&format!("once {NINE_MS}"), "UTC").unwrap(),
        ..daily(None)
    };
    let id = add(&scene, what).await;
    assert!(is_fired(fire(&scene, id, NINE_MS).await));
    assert!(scene.claim(NINE_MS).await.is_none());
    let posts = scene.posts().await;
    let texts: Vec<&str> = posts.iter().map(|post| post.part.text.as_str()).collect();
    assert_eq!(texts, ["Reminder: tea"]);
    let after = schedule(&scene, id).await;
    assert_eq!((after.state, after.at_ms), (ScheduleState::Done, None));
    assert_eq!(due(&scene, NINE_MS + 9 * DAY_MS).await, [0; 0]);
}

#[tokio::test]
async fn what_was_missed_is_made_up_for_once() {
    let scene = Scene::open().await;
    scene.say("C1", "hello", 10).await;
    let id = add(&scene, daily(None)).await;
    let late_ms = NINE_MS + 4 * DAY_MS + HOUR_MS;
    assert!(is_fired(fire(&scene, id, late_ms).await));
    assert_eq!(due(&scene, late_ms).await, [0; 0]);
    let after = schedule(&scene, id).await;
    assert_eq!((after.fired, after.missed), (1, 4));
    assert_eq!(after.at_ms, Some(NINE_MS + 5 * DAY_MS));
}

#[tokio::test]
async fn a_clock_that_jumps_fires_nothing_twice_and_leaves_nothing_silent() {
    let scene = Scene::open().await;
    scene.say("C1", "hello", 10).await;
    let id = add(&scene, daily(None)).await;
    assert!(is_fired(fire(&scene, id, NINE_MS).await));
    // Half an hour back: nine o'clock comes again.
    let back_ms = NINE_MS - HOUR_MS / 2;
    assert_eq!(due(&scene, back_ms).await, [id]);
    assert_eq!(fire(&scene, id, back_ms).await, Fired::Renewed);
    assert_eq!(due(&scene, back_ms).await, [0; 0]);
    assert_eq!(schedule(&scene, id).await.at_ms, Some(NINE_MS));
    assert_eq!(fire(&scene, id, NINE_MS).await, Fired::Stale);
    assert_eq!(schedule(&scene, id).await.at_ms, Some(NINE_MS + DAY_MS));
    // A year ahead: one firing at most, and once the clock is right again, tomorrow's comes as ever.
    let ahead_ms = NINE_MS + 365 * DAY_MS;
    assert!(is_fired(fire(&scene, id, ahead_ms).await));
    assert_eq!(due(&scene, back_ms + HOUR_MS).await, [id]);
    assert_eq!(fire(&scene, id, back_ms + HOUR_MS).await, Fired::Renewed);
    assert_eq!(schedule(&scene, id).await.at_ms, Some(NINE_MS + DAY_MS));
    assert_eq!(schedule(&scene, id).await.fired, 2);
}

#[tokio::test]
async fn who_is_not_served_any_more_pauses_a_schedule() {
    let scene = Scene::open().await;
    scene.say("C1", "hello", 10).await;
    let id = add(&scene, daily(Some(agent("helper")))).await;
    let seen = schedule(&scene, id).await;
    let firing = NewFiring {
        id,
        at_ms: seen.at_ms,
        is_allowed: false,
        reminder: None,
        now_ms: NINE_MS,
    };
    let fired = scene.store.fire_schedule(firing).await.unwrap();
    assert_eq!(fired, Fired::Decided(FiringOutcome::Refused, None));
    assert_eq!(schedule(&scene, id).await.state, ScheduleState::Paused);
    assert_eq!(due(&scene, NINE_MS + DAY_MS).await, [0; 0]);
    // Resumed, it makes up for nothing.
    let change = scene
        .store
        .change_schedule(id, ScheduleChange::Resume, NINE_MS + 2 * DAY_MS + 1);
    let resumed = change.await.unwrap().unwrap();
    assert_eq!(resumed.state, ScheduleState::Active);
    assert_eq!(resumed.at_ms, Some(NINE_MS + 3 * DAY_MS));
    // Run now, it starts besides its times.
    let now_ms = NINE_MS + 2 * DAY_MS + 2;
    let change = scene.store.change_schedule(id, ScheduleChange::Run, now_ms);
    change.await.unwrap();
    assert!(is_fired(fire(&scene, id, now_ms).await));
    assert_eq!(schedule(&scene, id).await.at_ms, Some(NINE_MS + 3 * DAY_MS));
}

#[tokio::test]
async fn the_configuration_s_schedules_follow_it() {
    let scene = Scene::open().await;
    scene.say("C1", "hello", 10).await;
    let room = scene.conversation("C1").await;
    let new = |what| OperatorSchedule {
        name: Some("standup".to_owned()),
        conversation: room,
        what,
        now_ms: MADE_MS,
    };
    let store = &scene.store;
    assert!(store.configure_schedule(new(daily(None))).await.unwrap());
    assert!(!store.configure_schedule(new(daily(None))).await.unwrap());
    let changed = NewSchedule {
        timing: Timing::cron("0 10 * * *", "UTC").unwrap(),
        ..daily(None)
    };
    assert!(store.configure_schedule(new(changed)).await.unwrap());
    let listed = store.schedules(ScheduleFilter::Open, 9).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].at_ms, Some(NINE_MS + HOUR_MS));
    let kept = store.end_unconfigured_schedules(vec!["standup".to_owned()]);
    assert_eq!(kept.await.unwrap(), 0);
    assert_eq!(
        store.end_unconfigured_schedules(Vec::new()).await.unwrap(),
        1
    );
    assert!(
        store
            .schedules(ScheduleFilter::Open, 9)
            .await
            .unwrap()
            .is_empty()
    );
}
