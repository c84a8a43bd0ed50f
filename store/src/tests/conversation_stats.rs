//! Figures of a conversation and its threads.

use crate::contract::{AnswerTimes, ConversationStats, ThumbCounts};
use crate::scene::Scene;

#[tokio::test]
async fn a_room_is_counted_with_its_threads_since_a_time_and_no_other_room() {
    let scene = Scene::open().await;
    let (room, other) = (scene.room("C1").await, scene.room("C2").await);
    scene.say(&room, "before", 10).await;
    scene.ask(&other, "elsewhere?", 120).await;
    let (root, _) = scene.ask(&room, "in the room?", 100).await;
    let thread = scene.thread(&room, root).await;
    scene.ask(&thread, "in the thread?", 110).await;
    let mut answered = Vec::new();
    while let Some(run) = scene.claim(1_000).await {
        let is_here = run.run.conversation != other.id;
        let place = if run.run.conversation == thread.id {
            &thread
        } else {
            &room
        };
        let place = if is_here { place } else { &other };
        scene
            .store
            .commit_reply(scene.answer(&run, place, "yes"))
            .await
            .unwrap();
        answered.push(run.run.id);
    }
    assert_eq!(answered.len(), 3);
    scene
        .write(|connection| {
            // The scene's people say what comes in, as in a room.
            connection.execute_batch(
                "UPDATE turns SET is_inbound = run_id IS NULL;
                 UPDATE runs SET created_at_ms = 0, finished_at_ms = 5, cost_micros = 7;
                 UPDATE runs SET created_at_ms = 200, finished_at_ms = 200 + 10 * id;
                 INSERT INTO steps (run_id, n, message, prompt_tokens, completion_tokens, at_ms)
                 SELECT id, 0, '{}', 100, 20, 0 FROM runs;
                 INSERT INTO feedback SELECT id, (SELECT min(id) FROM participants), 'up', 1, 0, 0 FROM runs;",
            )?;
            Ok(())
        })
        .await;
    let stats = scene.store.conversation_stats(room.id, 50).await.unwrap();
    let expected = ConversationStats {
        messages_of_people: 2,
        speakers: 1,
        messages_of_agents: 2,
        runs: 2,
        runs_answered: 2,
        runs_dead: 0,
        answer_times: stats.answer_times,
        prompt_tokens: 200,
        completion_tokens: 40,
        cost_micros: 14,
        thumbs: ThumbCounts { up: 2, down: 0 },
        is_cut: false,
    };
    assert_eq!(stats, expected);
    assert!(
        stats
            .answer_times
            .is_some_and(|AnswerTimes { p50_ms, p95_ms }| p50_ms <= p95_ms)
    );
    let later = scene
        .store
        .conversation_stats(room.id, 10_000)
        .await
        .unwrap();
    assert_eq!(later, ConversationStats::default());
}

#[tokio::test]
async fn its_figures_are_read_along_indexes() {
    let scene = Scene::open().await;
    for sql in crate::views::conversation_stats::STATEMENTS {
        for step in scene.plan(sql).await {
            assert!(
                !step.contains("SCAN t") && !step.contains("SCAN r"),
                "{step}: {sql}"
            );
        }
    }
}
