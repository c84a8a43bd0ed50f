//! What people did in the console.

use vocative_store::audit::{AuditOutcome, NewAudit};

use crate::scene::Scene;

fn new(act: &'static str, at_ms: i64) -> NewAudit {
    NewAudit {
        who: "ann".to_owned(),
        via: "link",
        act,
        target: "0198c5de-1234-7abc-8def-0123456789ab".to_owned(),
        at_ms,
    }
}

#[tokio::test]
async fn a_row_says_what_was_begun_and_then_what_became_of_it() {
    let scene = Scene::open().await;
    let store = &scene.store;
    let look = store.begin_audit(new("look", 10)).await.unwrap();
    let deny = store.begin_audit(new("deny", 20)).await.unwrap();
    let stop = store.begin_audit(new("stop", 30)).await.unwrap();
    store.end_audit(look, AuditOutcome::Done).await.unwrap();
    store.end_audit(deny, AuditOutcome::Refused).await.unwrap();
    store.end_audit(deny, AuditOutcome::Done).await.unwrap();
    let rows = store.audit(None, 10).await.unwrap();
    let told: Vec<_> = rows
        .iter()
        .map(|row| (row.act.as_str(), row.outcome.as_str(), row.at_ms))
        .collect();
    let expected = [
        ("stop", "begun", 30),
        ("deny", "refused", 20),
        ("look", "done", 10),
    ];
    assert_eq!(told, expected);
    let page = store.audit(Some(stop), 1).await.unwrap();
    assert_eq!(page[0].id, deny);
}
