//! A row that can't be decoded stops no queue, is shown, and comes back once it was mended.

use super::jobs::only_claimed;
use super::*;
use crate::rows::quarantine::{Quarantined, Queue};
use crate::scene::Scene;
use vocative_core::ids::FileId;
use vocative_core::job::Job;

const NOW: i64 = 1_000;

async fn execute(scene: &Scene, sql: &'static str) {
    scene
        .write(move |connection| Ok(connection.execute_batch(sql)?))
        .await;
}

async fn set_aside(scene: &Scene) -> Vec<Quarantined> {
    let listed = scene.store.quarantined().await.unwrap();
    let status = scene.store.status(NOW).await.unwrap();
    assert_eq!(status.quarantined, listed.len() as u64);
    listed
}

/// Shows the one row that is set aside, which says nothing of what the row says.
async fn only(scene: &Scene, queue: Queue, case: &str) -> Quarantined {
    let listed = set_aside(scene).await;
    assert_eq!(listed.len(), 1, "{case}: {listed:?}");
    let only = listed.into_iter().next().unwrap();
    assert_eq!(only.queue, queue, "{case}");
    assert!(!only.reason.contains("secret"), "{case}: {}", only.reason);
    only
}

async fn claim_texts(scene: &Scene, now_ms: i64) -> Vec<String> {
    let claimed = scene.store.claim_posts(scene.request(now_ms), 10).await;
    let texts = claimed.unwrap().into_iter();
    texts.map(|claim| claim.entry.part.text).collect()
}

#[tokio::test]
async fn a_post_that_cannot_be_decoded_stops_no_other_and_is_sent_once_it_was_mended() {
    let broken = [
        "UPDATE outbox SET payload = '{secret' WHERE id = 1",
        "UPDATE outbox SET payload = '{\"text\": [\"secret\"]}' WHERE id = 1",
        "UPDATE outbox SET payload = '\"secret\"' WHERE id = 1",
        "UPDATE outbox SET operation = 'secret' WHERE id = 1",
        "UPDATE outbox SET target = '' WHERE id = 1",
        "UPDATE outbox SET target = '[]' WHERE id = 1",
        "UPDATE outbox SET uuid = x'00' WHERE id = 1",
        "UPDATE outbox SET attempts = -1 WHERE id = 1",
    ];
    for break_it in broken {
        let scene = Scene::open().await;
        let (room, other) = (scene.room("C1").await, scene.room("C2").await);
        scene.post(&room, &["one", "its second part"], 100).await;
        scene.post(&room, &["two"], 200).await;
        scene.post(&other, &["elsewhere"], 300).await;
        execute(
            &scene,
            "CREATE TEMP TABLE kept AS SELECT * FROM outbox WHERE id = 1",
        )
        .await;
        execute(&scene, break_it).await;
        let mut claimed = claim_texts(&scene, NOW).await;
        claimed.extend(claim_texts(&scene, NOW).await);
        claimed.sort();
        assert_eq!(claimed, ["elsewhere", "two"], "{break_it}");
        let row = only(&scene, Queue::Posts, break_it).await;

        // Still broken: it is set aside again.
        let release = |again| {
            let store = &scene.store;
            store.release_quarantined(Queue::Posts, row.row, again, NOW)
        };
        release(true).await.unwrap();
        assert_eq!(set_aside(&scene).await, []);
        execute(
            &scene,
            "UPDATE outbox SET state = 'sent' WHERE id <> 1 AND part = 0",
        )
        .await;
        assert_eq!(claim_texts(&scene, NOW).await, [""; 0], "{break_it}");
        only(&scene, Queue::Posts, break_it).await;
        execute(
            &scene,
            "UPDATE outbox SET (payload, operation, target, uuid, attempts)
                 = (SELECT payload, operation, target, uuid, attempts FROM kept) WHERE id = 1",
        )
        .await;
        release(true).await.unwrap();
        assert_eq!(claim_texts(&scene, NOW).await, ["one"], "{break_it}");
        assert!(release(true).await.is_err(), "{break_it}");
    }
}

#[tokio::test]
async fn a_question_that_cannot_be_decoded_stops_no_other_of_its_conversation() {
    for break_it in [
        "UPDATE runs SET uuid = x'00' WHERE id = 1",
        "UPDATE runs SET attempt = -7 WHERE id = 1",
        "UPDATE turns SET uuid = x'00' WHERE seq = 1",
    ] {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        scene.ask(&room, "one", 10).await;
        let (_, second) = scene.ask(&room, "two", 20).await;
        execute(&scene, break_it).await;
        let claimed = scene.claim(100).await.unwrap();
        assert_eq!(claimed.run.id, second, "{break_it}");
        let row = only(&scene, Queue::Questions, break_it).await;
        let queued = scene.store.queued_runs(9, 100).await.unwrap();
        assert_eq!(queued.len(), 1, "{break_it}");

        let mend = "UPDATE runs SET uuid = randomblob(16), attempt = 0 WHERE id = 1;
                    UPDATE turns SET uuid = randomblob(16) WHERE seq = 1;";
        execute(&scene, mend).await;
        let answer = scene.answer(&claimed, &room, "two");
        scene.store.commit_reply(answer).await.unwrap();
        let store = &scene.store;
        let released = store.release_quarantined(Queue::Questions, row.row, true, 200);
        released.await.unwrap();
        let again = scene.claim(200).await.unwrap();
        assert_eq!(again.run.created_at_ms, 10, "{break_it}");
        assert_eq!(set_aside(&scene).await, []);
    }
}

#[tokio::test]
async fn a_run_ends_also_where_its_placeholder_cannot_be_decoded() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    scene.ask(&room, "one", 10).await;
    let claimed = scene.claim(100).await.unwrap();
    let placeholder = crate::contract::NewPlaceholder {
        run: claimed.run.id,
        token: claimed.token,
        target: crate::scene::target(&room),
        part: vocative_contract::outbound::Part::plain("o …"),
        now_ms: 100,
    };
    scene.store.commit_placeholder(placeholder).await.unwrap();
    execute(
        &scene,
        "UPDATE outbox SET target = '{secret', payload = '{secret'",
    )
    .await;
    let answer = scene.answer(&claimed, &room, "one");
    scene.store.commit_reply(answer).await.unwrap();
    only(&scene, Queue::Posts, "a placeholder").await;
    assert_eq!(claim_texts(&scene, NOW).await, ["one"]);
}

#[tokio::test]
async fn a_job_that_cannot_be_decoded_stops_no_other_and_is_tried_again_or_dropped() {
    let fixture = Fixture::new().await;
    for id in ["1", "2"] {
        let note = Said {
            file: Some("note.oga"),
            ..said(id, "listen")
        };
        fixture.hear(note).await;
    }
    let (store, accounts, now_ms) = (&fixture.store, [fixture.account], NOW_MS + 900_000);
    fixture
        .execute("UPDATE jobs SET payload = '{secret' WHERE id = 1")
        .await;
    let claimed = only_claimed(store, &accounts, now_ms).await;
    assert_eq!(claimed.job, Job::FetchFile { file: FileId(2) });
    let listed = store.quarantined().await.unwrap();
    let [aside] = &listed[..] else {
        panic!("{listed:?}");
    };
    assert_eq!((aside.queue, aside.row), (Queue::Jobs, 1));
    assert!(!aside.reason.contains("secret"), "{}", aside.reason);
    // Its noun's row may be what can't be decoded.
    fixture
        .execute("UPDATE turns SET attachments = '{secret' WHERE seq = 2")
        .await;
    let undecodable = store.file_to_fetch(FileId(2)).await.unwrap_err();
    let what = undecodable.to_string();
    let aside = store.set_job_aside(claimed.id, claimed.token, what, now_ms);
    aside.await.unwrap();
    assert_eq!(store.quarantined().await.unwrap().len(), 2);
    // Mended, it is done; the other is dropped.
    fixture
        .execute("UPDATE jobs SET payload = '{\"file\":1}' WHERE id = 1")
        .await;
    let release = |row, again| store.release_quarantined(Queue::Jobs, row, again, now_ms);
    release(1, true).await.unwrap();
    release(2, false).await.unwrap();
    assert_eq!(store.quarantined().await.unwrap(), []);
    let claimed = only_claimed(store, &accounts, now_ms).await;
    assert_eq!(claimed.job, Job::FetchFile { file: FileId(1) });
    assert_eq!(fixture.value::<i64>("SELECT count(*) FROM jobs").await, 1);
}

#[tokio::test]
async fn another_version_of_the_program_tries_again_what_one_could_not_decode() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite");
    let scene = Scene::open_at(Some(path.clone())).await;
    let room = scene.room("C1").await;
    scene.post(&room, &["one"], 100).await;
    execute(&scene, "UPDATE outbox SET operation = 'shout'").await;
    assert_eq!(claim_texts(&scene, NOW).await, [""; 0]);
    only(&scene, Queue::Posts, "of this version").await;
    scene.store.close().await.unwrap();
    drop(scene);

    let scene = Scene::open_at(Some(path.clone())).await;
    only(&scene, Queue::Posts, "the same version").await;
    // What another version knows.
    let mend = "UPDATE outbox SET operation = 'post'; UPDATE quarantine SET version = '0.0.1'";
    execute(&scene, mend).await;
    scene.store.close().await.unwrap();
    drop(scene);

    let scene = Scene::open_at(Some(path)).await;
    assert_eq!(set_aside(&scene).await, []);
    assert_eq!(claim_texts(&scene, NOW).await, ["one"]);
}

#[tokio::test]
async fn a_run_and_a_post_in_a_state_that_is_none_are_not_taken_for_given_up() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let (_, run) = scene.ask(&room, "one", 10).await;
    execute(&scene, "UPDATE runs SET state = 'asleep'").await;
    let read = scene.store.run(run).await;
    assert!(
        matches!(read, Err(StoreError::Undecodable { .. })),
        "{read:?}"
    );
}
