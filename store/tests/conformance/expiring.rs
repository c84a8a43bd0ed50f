//! What goes for its age.

use vocative_store::{Expired, ExpiryBounds};

use crate::said::{NOW_MS, said};
use crate::scene::Scene;

const LATER_MS: i64 = NOW_MS + 600_000;

async fn expire(scene: &Scene) -> Expired {
    let bounds = ExpiryBounds {
        text_before_ms: Some(LATER_MS),
        ..ExpiryBounds::default()
    };
    let expired = scene
        .store
        .expire(scene.account, bounds, u64::MAX, LATER_MS);
    expired.await.unwrap()
}

#[tokio::test]
async fn nothing_goes_under_an_open_run_or_post() {
    let scene = Scene::open().await;
    scene.hear(said("1", "context")).await;
    scene.hear_for(&["helper"], said("2", "a question")).await;
    assert!(expire(&scene).await.is_nothing());
    let run = scene.claim(LATER_MS).await.unwrap();
    let reply = scene.answer(&run, "an answer").await;
    scene.store.commit_reply(reply).await.unwrap();
    assert!(expire(&scene).await.is_nothing());
    let contents = scene.contents().await;
    assert_eq!(contents, ["context", "a question", "an answer"]);
    scene.send_one("90", LATER_MS + 2).await;
    assert_eq!(expire(&scene).await.text, 3);
}
