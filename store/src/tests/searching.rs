//! Searches that forgive, against rooms with facts that were said once, in passing.

use crate::contract::{SearchHits, SearchQuery};
use crate::scene::{Room, Scene};

async fn index_all(scene: &Scene) {
    while scene.store.index_turns().await.unwrap() {}
}

async fn search(scene: &Scene, query: SearchQuery) -> SearchHits {
    scene.store.search(query).await.unwrap()
}

async fn texts(scene: &Scene, room: &Room, query: &str) -> Vec<String> {
    let found = search(scene, SearchQuery::new(room.id, query)).await;
    found.hits.into_iter().map(|hit| hit.text).collect()
}

#[tokio::test]
async fn what_changed_or_went_is_found_as_it_is() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let said = scene.say(&room, "the zebraword is in the cellar", 1).await;
    let other = scene.say(&room, "the zebraword is old", 2).await;
    index_all(&scene).await;
    let vocabulary = "SELECT count(*) FROM vocabulary WHERE stem = 'zebraword'";
    assert_eq!(scene.value::<i64>(vocabulary).await, 1);
    let revise = |seq: i64, text: &'static str| {
        move |connection: &crate::engine::sql::Connection| {
            let mut turn = crate::rows::turn_rows::turn_at(connection, seq)?;
            let replacement = crate::rows::turns::Replacement {
                content: text.to_owned(),
                attachments: None,
                tokens: None,
                keep_revision: false,
                now_ms: 3,
            };
            crate::rows::turns::revise_turn_txn(connection, &mut turn, replacement)?;
            Ok(())
        }
    };
    scene
        .write(revise(said.seq.0, "the lionword is in the cellar"))
        .await;
    assert_eq!(
        texts(&scene, &room, "lionwords").await,
        ["the lionword is in the cellar"]
    );
    assert_eq!(
        texts(&scene, &room, "zebraword").await,
        ["the zebraword is old"]
    );
    scene.write(revise(other.seq.0, "all new")).await;
    assert_eq!(scene.value::<i64>(vocabulary).await, 0);
    let blocks = "SELECT count(*) FROM turn_stems_data
                  WHERE instr(block, CAST('zebraword' AS BLOB)) > 0";
    assert_eq!(scene.value::<i64>(blocks).await, 0);
    let whole = "INSERT INTO turn_stems (turn_stems) VALUES ('integrity-check')";
    scene
        .write(move |connection| Ok(connection.execute_batch(whole)?))
        .await;
}
