//! Figures of a conversation and its threads.

use crate::scene::Scene;

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
