//! What is left of a placeholder in its rows once its run has ended.

use vocative_contract::outbound::{Operation, Part};

use crate::contract::NewPlaceholder;
use crate::scene::{Room, Scene, by_hand, target};
use vocative_core::outbox::OutboxUpdate;

/// What became of a placeholder whose sending has begun.
fn outcomes(room: &Room) -> Vec<OutboxUpdate> {
    let reason = || "so it is".to_owned();
    let replaced = |parts: &[&str]| OutboxUpdate::Replace {
        parts: parts.iter().map(|part| Part::plain(*part)).collect(),
        target: target(room),
        operation: Operation::Post,
        reason: reason(),
    };
    vec![
        OutboxUpdate::Retry {
            not_before_ms: 102,
            reason: reason(),
        },
        OutboxUpdate::Look {
            not_before_ms: 102,
            reason: reason(),
        },
        OutboxUpdate::Dead { reason: reason() },
        replaced(&["zebra"]),
        replaced(&["zebra", "lion …"]),
    ]
}

#[tokio::test]
async fn no_row_keeps_what_a_placeholder_said_or_is_one_any_longer() {
    for n in 0..5 {
        for parts in [Some(&["one", "two"] as &[&str]), Some(&[]), None] {
            let scene = Scene::open().await;
            let room = scene.room("C1").await;
            let outcome = outcomes(&room).remove(n);
            let case = format!("{outcome:?} {parts:?}");
            scene.ask(&room, "when?", 10).await;
            let run = scene.claim(100).await.unwrap();
            let placeholder = NewPlaceholder {
                run: run.run.id,
                token: run.token,
                target: target(&room),
                part: Part::plain("zebra …"),
                now_ms: 100,
            };
            let store = &scene.store;
            store.commit_placeholder(placeholder).await.unwrap();
            let claim = store.claim_posts(scene.request(101), 1).await.unwrap();
            let (id, token) = (claim[0].entry.id, claim[0].token);
            store.mark_send_started(id, token, None, 101).await.unwrap();
            let update = store.update_post(id, token, outcome, 101);
            update.await.unwrap();
            if parts.is_none() {
                let cancelled = store.cancel_run(run.run.id, by_hand("a person"), 101);
                cancelled.await.unwrap();
            }
            let mut reply = scene.answer(&run, &room, "");
            let parts = parts.unwrap_or_default().iter();
            reply.parts = parts.map(|part| Part::plain(*part)).collect();
            let reply_is_silent = reply.parts.is_empty();
            store.commit_reply(reply).await.unwrap();
            // Where it may have been sent, the answer's first post looks for what it said.
            let left = match reply_is_silent {
                true => {
                    "SELECT count(*) FROM outbox WHERE instr(payload, 'zebra') OR placeholder_of IS NOT NULL"
                }
                false => "SELECT count(*) FROM outbox WHERE placeholder_of IS NOT NULL",
            };
            assert_eq!(scene.value::<i64>(left).await, 0, "{case}");
        }
    }
}
