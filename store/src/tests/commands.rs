use super::*;
use crate::acts::commands::{CommandOutcome, NewCommand};
use crate::contract::{LeaseOutcome, NonMessage};
use crate::scene::{self, Room, Scene};
use vocative_core::command::{CommandVerdict, Effect};
use vocative_core::history::{HistoryQuery, Keep};
use vocative_core::outbox::OutboxUpdate;
use vocative_core::run::ClaimedRun;

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

fn query(room: &Room, run: Option<&ClaimedRun>) -> HistoryQuery {
    HistoryQuery {
        conversation: room.id,
        agent: scene::agent(),
        as_of_seq: run.map(|run| run.as_of_seq),
        run: run.map(|run| run.run.id),
        triggers: run.map_or_else(Vec::new, |run| run.run.triggers.clone()),
        keep: Keep::Involved,
        max_turns: 100,
        since_ms: None,
        scope: None,
        parent_turns: 10,
        ambient_turns: 5,
        summaries: None,
        thread_answers: true,
        made_by_ms: None,
    }
}

async fn read(scene: &Scene, room: &Room, run: Option<&ClaimedRun>) -> Vec<String> {
    let history = scene.store.history(query(room, run)).await.unwrap();
    let texts = history.turns.into_iter().map(|read| read.turn.content);
    texts.collect()
}

#[tokio::test]
async fn a_fresh_start_that_is_heard_of_late_gives_back_nothing_of_what_a_newer_one_put_away() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let between = scene.say(&room, "between", 20).await;
    scene.address(&room, between).await;
    // The one that was said at 30 is heard of before that of 10.
    for (at_ms, said_at_ms) in [(100, 30), (200, 10)] {
        let begin = move |connection: &Connection| {
            let sql = "INSERT INTO fresh_starts SELECT id, ?1, ?2, ?3, 0, 0 FROM conversations";
            Ok(connection.execute(sql, (scene::agent(), at_ms, said_at_ms))?)
        };
        assert_eq!(scene.write(begin).await, 1);
    }
    let after = scene.say(&room, "after", 40).await;
    scene.address(&room, after).await;
    assert_eq!(read(&scene, &room, None).await, ["after"]);
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
    scene.store.mark_send_started(id, token, 200).await.unwrap();
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

#[tokio::test]
async fn an_answer_to_what_was_asked_before_a_fresh_start_is_not_read_after_it() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    scene.ask(&room, "old question", 10).await;
    let run = scene.claim(100).await.unwrap();
    // The command is a message of the room, as on Telegram.
    let command = scene.say(&room, "/new", 30).await;
    let row = room.row;
    scene
        .write(move |connection| {
            let start = "INSERT INTO fresh_starts
                         SELECT ?1, ?2, 150, sent_at_ms, ordinal, seq FROM turns WHERE seq = ?3";
            connection.execute(start, (row, scene::agent(), command.seq))?;
            let hide = "UPDATE turns SET visibility = 'timeline' WHERE seq = ?1";
            Ok(connection.execute(hide, [command.seq])?)
        })
        .await;
    let reply = scene.answer(&run, &room, "old answer");
    scene.store.commit_reply(reply).await.unwrap();
    let (_, _) = scene.ask(&room, "new question", 40).await;
    let next = scene.claim(200).await.unwrap();
    assert_eq!(read(&scene, &room, Some(&next)).await, ["new question"]);
    let reply = scene.answer(&next, &room, "new answer");
    scene.store.commit_reply(reply).await.unwrap();
    let texts = read(&scene, &room, None).await;
    assert_eq!(texts, ["new question", "new answer"]);
}
