//! A row that can't be decoded stops no queue, is shown, and comes back once it was mended.

use super::*;
use crate::rows::quarantine::{Quarantined, Queue};
use crate::scene::Scene;
use vocative_core::command::Inquiry;

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
async fn a_file_and_a_voice_note_that_cannot_be_decoded_stop_no_other() {
    for (queue, pend) in [
        (Queue::Files, "UPDATE files SET state = 'pending'"),
        (
            Queue::VoiceNotes,
            "UPDATE files SET state = 'fetched', speech = 'pending'",
        ),
    ] {
        let fixture = Fixture::new().await;
        for id in ["1", "2"] {
            let note = Said {
                file: Some("note.oga"),
                ..said(id, "listen")
            };
            fixture.hear(note).await;
        }
        fixture.execute(pend).await;
        fixture
            .execute("UPDATE turns SET attachments = '{secret' WHERE seq = 1")
            .await;
        let (accounts, now_ms) = ([fixture.account], NOW_MS + 900_000);
        let store = &fixture.store;
        for _ in 0..2 {
            let due = match queue {
                Queue::Files => store.due_files(&accounts, now_ms, 10).await,
                _ => store.due_speech(&accounts, now_ms, 10).await,
            };
            assert_eq!(due.unwrap().len(), 1, "{queue:?}");
        }
        let listed = store.quarantined().await.unwrap();
        assert_eq!(listed.len(), 1, "{listed:?}");
        assert_eq!((listed[0].queue, listed[0].row), (queue, 1));
        let dropped = store.release_quarantined(queue, 1, false, now_ms).await;
        dropped.unwrap();
        assert_eq!(store.quarantined().await.unwrap(), []);
    }
}

#[tokio::test]
async fn an_inquiry_that_cannot_be_decoded_stops_no_other() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let row = room.row;
    scene
        .write(move |connection| {
            for target in ["{secret", "{\"chat\":\"C1\"}"] {
                connection.execute(
                    "INSERT INTO inquiries (kind, agent, conversation_id, target, person, asked_at_ms)
                     VALUES ('context', 'helper', ?1, ?2, 'U1', 5)",
                    (row, target),
                )?;
            }
            Ok(())
        })
        .await;
    let next = scene.store.next_inquiry(vec![scene.account], 0).await;
    assert_eq!(next.unwrap().unwrap().inquiry, Inquiry::Context);
    let row = only(&scene, Queue::Inquiries, "an inquiry").await;
    assert_eq!(row.at_ms, 5);
    execute(&scene, "DELETE FROM inquiries").await;
    assert_eq!(set_aside(&scene).await, []);
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
