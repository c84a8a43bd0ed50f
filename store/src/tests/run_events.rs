use super::super::scene::{Room, Scene};
use crate::Store;
use crate::contract::{EventScope, LeaseOutcome, NewRunEvent};
use crate::rows::run_events::PROBED_SQL;
use crate::scene::by_hand;
use crate::views::run_events::PLANNED_SQL;
use vocative_core::ids::{EventId, RunId};
use vocative_core::run::ClaimedRun;
use vocative_core::run_event::RunEvent;

fn text(step: u32, text: &str) -> NewRunEvent {
    NewRunEvent::Text {
        step,
        text: text.to_owned(),
    }
}

fn call() -> NewRunEvent {
    NewRunEvent::ToolCall {
        step: 1,
        call_id: "call_1".to_owned(),
        tool: "conversation_search".to_owned(),
        arguments: "conversation_search {\"query\":\"zebra\"}".to_owned(),
    }
}

async fn tell(store: &Store, run: &ClaimedRun, events: Vec<NewRunEvent>) -> LeaseOutcome {
    let told = store.record_run_events(run.run.id, run.token, events, run.as_of_ms + 1);
    told.await.unwrap()
}

async fn events(store: &Store, run: RunId) -> Vec<RunEvent> {
    let all = store.run_events_after(EventScope::Run(run), EventId(0), 1_000);
    all.await.unwrap()
}

async fn names(store: &Store, run: RunId) -> Vec<&'static str> {
    let events = events(store, run).await;
    events.iter().map(|event| event.what.name()).collect()
}

/// A run that is worked on and has said something, in a room.
async fn speaking(scene: &Scene) -> (Room, ClaimedRun) {
    let room = scene.room("C1").await;
    scene.ask(&room, "where is it?", 10).await;
    let run = scene.claim(100).await.unwrap();
    let told = tell(
        &scene.store,
        &run,
        vec![text(1, "zebra "), text(1, "park"), call()],
    )
    .await;
    assert_eq!(told, LeaseOutcome::Written);
    (room, run)
}

async fn texts_left(scene: &Scene) -> i64 {
    scene
        .value("SELECT count(*) FROM run_events WHERE text IS NOT NULL")
        .await
}

#[tokio::test]
async fn events_wait_for_no_disk_and_cost_the_same_however_many_there_are() {
    let folder = tempfile::tempdir().unwrap();
    let scene = Scene::open_at(Some(folder.path().join("store.sqlite"))).await;
    let (_, run) = speaking(&scene).await;
    let syncs = scene.store.work().syncs;
    for n in 0..20 {
        tell(&scene.store, &run, vec![text(1, &n.to_string())]).await;
    }
    assert_eq!(scene.store.work().syncs, syncs);
    for sql in PROBED_SQL {
        let plan = scene.plan(sql).await;
        let reads_events = plan.iter().any(|step| step.contains("run_events"));
        assert!(!reads_events, "{sql}: {plan:#?}");
    }
    for sql in PLANNED_SQL {
        let plan = scene.plan(sql).await;
        assert!(
            !plan.iter().any(|step| step.starts_with("SCAN")),
            "{plan:#?}"
        );
        assert!(
            !plan.iter().any(|step| step.contains("TEMP B-TREE")),
            "{plan:#?}"
        );
    }
}

#[tokio::test]
async fn ids_go_on_above_every_one_that_was_told_and_old_events_keep_theirs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite");
    let scene = Scene::open_at(Some(path.clone())).await;
    let (_, run) = speaking(&scene).await;
    let id = run.run.id;
    let before = events(&scene.store, id).await;
    scene.store.close().await.unwrap();
    drop(scene);

    // As after a power cut that took the last ones back: the next start is later.
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection
        .execute_batch(
            "DELETE FROM run_events WHERE kind = 'tool_call';
             UPDATE sqlite_sequence SET seq = seq - 1 WHERE name = 'run_events'",
        )
        .unwrap();
    drop(connection);
    let options = crate::StoreOptions {
        path: Some(path),
        readers: 1,
        page_cache_kib: 1_024,
    };
    let (store, _) = Store::open(&options, 5_000).unwrap();
    let (snapshot, through) = store.run_snapshot(id).await.unwrap();
    assert_eq!((snapshot.state, snapshot.text.as_str()), ("queued", ""));
    assert_eq!(events(&store, id).await, before[..1]);
    assert!(through < before[3].id.unwrap(), "the reader begins anew");
    store
        .cancel_run(id, by_hand("by hand"), 5_000)
        .await
        .unwrap();
    let newest = store.newest_event().await.unwrap();
    assert_eq!(newest, EventId(5_000 * 1_024));
    let told = events(&store, id).await;
    assert_eq!((told.len(), told[1].id), (2, Some(newest)));
}

/// A run that read what others repeat of somebody who is erased meanwhile.
#[tokio::test]
async fn a_sweep_meets_texts_of_runs_that_nobody_stopped() {
    let scene = Scene::open().await;
    let (_, run) = speaking(&scene).await;
    let forgotten = scene.write(crate::rows::run_events::forget_texts_txn).await;
    assert_eq!((forgotten, texts_left(&scene).await), (3, 0));
    assert_eq!(
        names(&scene.store, run.run.id).await,
        ["started", "tool_call"]
    );
}
