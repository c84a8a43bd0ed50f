//! Schedules: made in rooms, fired once, and what a stop, a wrong clock, a backup and an erasure do to them.

#![allow(clippy::unwrap_used)]

use vocative_contract::outbound::Part;
use vocative_core::ids::AgentName;
use vocative_core::scheduling::{FiringOutcome, Missed, NewSchedule, StoredSchedule, Timing};

use crate::contract::{Fired, NewFiring, OperatorSchedule, Reminder, ScheduleFilter};
use crate::scene::{Room, Scene};

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

async fn add(scene: &Scene, room: &Room, what: NewSchedule) -> i64 {
    let new = OperatorSchedule {
        name: None,
        conversation: room.id,
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
async fn a_restored_schedule_makes_up_for_nothing() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let id = add(&scene, &room, daily(None)).await;
    // What a restore does; the registry's test holds it to that.
    scene
        .write(|connection| {
            connection.execute("UPDATE schedules SET set_at_ms = NULL", [])?;
            Ok(())
        })
        .await;
    let later_ms = NINE_MS + HOUR_MS;
    assert_eq!(due(&scene, later_ms).await, [id]);
    assert_eq!(fire(&scene, id, later_ms).await, Fired::Renewed);
    let after = schedule(&scene, id).await;
    assert_eq!((after.fired, after.at_ms), (0, Some(NINE_MS + DAY_MS)));
}

#[tokio::test]
async fn a_row_that_cant_be_decoded_stops_no_other() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let broken = add(&scene, &room, daily(None)).await;
    let id = add(&scene, &room, daily(None)).await;
    scene
        .write(move |connection| {
            let sql = "UPDATE schedules SET timing = 'whenever' WHERE id = ?1";
            connection.prepare_cached(sql)?.execute([broken])?;
            Ok(())
        })
        .await;
    let found = scene.store.due_schedules(vec![scene.account], NINE_MS, 10);
    let found = found.await.unwrap();
    assert_eq!(found.broken, [broken]);
    assert_eq!(found.due.len(), 1);
    scene.store.pause_broken_schedule(broken).await.unwrap();
    assert!(is_fired(fire(&scene, id, NINE_MS).await));
    let listed = scene.store.schedules(ScheduleFilter::All, 9).await.unwrap();
    assert_eq!(listed.len(), 1);
}

#[tokio::test]
async fn what_is_due_is_found_by_an_index() {
    let scene = Scene::open().await;
    use crate::rows::schedules::{DOUBTFUL_SQL, DUE_SQL, NEXT_SQL, UNSET_SQL};
    for (sql, index) in [
        (DUE_SQL, "s USING INDEX schedules_due"),
        (DOUBTFUL_SQL, "s USING INDEX schedules_set"),
        (UNSET_SQL, "s USING INDEX schedules_set"),
        (NEXT_SQL, "schedules USING COVERING INDEX schedules_due"),
    ] {
        let plan = scene.plan(sql).await;
        assert!(plan.iter().any(|step| step.contains(index)), "{plan:#?}");
    }
}
