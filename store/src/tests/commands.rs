use super::*;
use crate::acts::commands::{CommandOutcome, NewCommand};
use crate::contract::{LeaseOutcome, NonMessage};
use crate::scene::Scene;
use vocative_core::command::{CommandVerdict, Effect};
use vocative_core::outbox::OutboxUpdate;

fn command(id: &str, at_ms: i64, account: AccountId, effect: Effect) -> NewCommand {
    let verdict = CommandVerdict {
        effect,
        ..CommandVerdict::told("done")
    };
    NewCommand {
        event: NonMessage {
            account,
            id: id.to_owned(),
            kind: "command",
            sender_id: "U1".to_owned(),
            chat: Some("C1".to_owned()),
            text: "/vocative".to_owned(),
            received_at_ms: at_ms,
        },
        place: Place {
            chat: "C1".to_owned(),
            ..Place::default()
        },
        sender: Sender {
            id: "U1".to_owned(),
            display_name: None,
            username: None,
            kind: SenderKind::Person,
            is_stranger: false,
        },
        judge: Box::new(move |_| Some(verdict)),
    }
}

async fn give(scene: &Scene, id: &str, at_ms: i64, effect: Effect) -> CommandOutcome {
    let command = command(id, at_ms, scene.account, effect);
    scene.store.capture_command(command).await.unwrap()
}

#[tokio::test]
async fn what_was_told_to_one_person_is_not_kept_once_it_was_told() {
    let scene = Scene::open().await;
    scene.room("C1").await;
    give(&scene, "t1", 100, Effect::Nothing).await;
    let request = scene.request(200);
    let claimed = scene
        .store
        .claim_posts(request, 10)
        .await
        .unwrap()
        .remove(0);
    let (id, token) = (claimed.entry.id, claimed.token);
    scene
        .store
        .mark_send_started(id, token, None, 200)
        .await
        .unwrap();
    let delivered = vocative_contract::outbound::Delivered {
        chat: "C1".to_owned(),
        message_id: "1.2".to_owned(),
        sent_at_ms: 200,
        shown: None,
    };
    let sent = OutboxUpdate::Sent(delivered);
    let written = scene.store.update_post(id, token, sent, 200).await.unwrap();
    assert_eq!(written, LeaseOutcome::Written);
    let held: i64 = scene
        .value(
            "SELECT (SELECT count(*) FROM outbox WHERE instr(payload, 'done'))
                     + (SELECT count(*) FROM messages)",
        )
        .await;
    assert_eq!(held, 0);
}
