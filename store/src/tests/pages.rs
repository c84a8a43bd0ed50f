use crate::contract::{ConversationPage, PageQuery};
use crate::scene::{Room, Scene};
use vocative_core::ids::Seq;

async fn page(
    scene: &Scene,
    room: &Room,
    before: Option<Seq>,
    is_timeline: bool,
) -> ConversationPage {
    let query = PageQuery {
        limit: 2,
        before,
        is_timeline,
    };
    scene.store.page(room.id, query).await.unwrap()
}

/// Five turns, of which one came late, one is a tool's and one is deleted.
async fn room_of_five(scene: &Scene) -> Room {
    let room = scene.room("C1").await;
    for (text, at_ms) in [("b", 20), ("tool", 30), ("gone", 40), ("c", 50), ("a", 10)] {
        scene.say(&room, text, at_ms).await;
    }
    scene
        .write(|connection| {
            connection.execute_batch(
                "UPDATE turns SET visibility = 'timeline', kind = 'tool_call' WHERE seq = 2;
                 UPDATE turns SET visibility = 'hidden' WHERE seq = 3",
            )?;
            Ok(())
        })
        .await;
    room
}

#[tokio::test]
async fn pages_of_the_timeline_have_everything_exactly_once() {
    let scene = Scene::open().await;
    let room = room_of_five(&scene).await;
    for at_ms in [5, 20, 35, 50, 99] {
        let said = scene.say(&room, "?", at_ms).await;
        scene.queue(&room, said, at_ms + 1).await;
        let row = room.row;
        scene
            .write(move |connection| {
                connection.execute(
                    "INSERT INTO summaries (conversation_id, agent, fingerprint, covers,
                            from_sent_at_ms, from_ordinal, from_seq, through_sent_at_ms,
                            through_ordinal, through_seq, newest_seq, turn_count, source_hash, text,
                            tokens, counter, model, state, created_at_ms)
                     VALUES (?1, 'helper', 'f', 'all', 0, 0, 0, 0, 0, 0, 0, 1, x'00', 's', 1, 'c',
                             'm', 'current', ?2)",
                    (row, at_ms),
                )?;
                Ok(())
            })
            .await;
    }
    let (mut turns, mut runs, mut summaries) = (Vec::new(), Vec::new(), Vec::new());
    let mut before = None;
    loop {
        let page = page(&scene, &room, before, true).await;
        turns.splice(0..0, page.turns.iter().map(|one| one.turn.seq()));
        runs.splice(0..0, page.runs.iter().map(|run| run.created_at_ms));
        summaries.splice(0..0, page.summaries.iter().map(|one| one.created_at_ms));
        before = page.turns.first().map(|first| first.turn.seq());
        if !page.has_older {
            break;
        }
    }
    assert_eq!(turns.len(), 10);
    turns.sort_unstable();
    turns.dedup();
    assert_eq!(turns.len(), 10);
    assert_eq!(runs, [6, 21, 36, 51, 100]);
    assert_eq!(summaries, [5, 20, 35, 50, 99]);
    let flat = page(&scene, &room, None, false).await;
    assert_eq!((flat.runs, flat.summaries), (vec![], vec![]));
}
