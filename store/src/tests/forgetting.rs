//! What goes with a message that is deleted or forgotten, also when an older copy is put back; and what a
//! run read of it.

use std::path::Path;

use super::*;
use crate::acts::commands::NewCommand;
use crate::contract::{CommittedReply, NonMessage};
use crate::scene::{Room, Said as Spoken, Scene};
use vocative_core::command::{CommandVerdict, Effect};
use vocative_core::run::ClaimedRun;

const MARKER: &str = "zebra-7f3a9c";
const LATER_MS: i64 = NOW_MS + 900_000;

fn command(account: AccountId, effect: Effect) -> NewCommand {
    let verdict = CommandVerdict {
        effect,
        ..CommandVerdict::told("done")
    };
    NewCommand {
        event: NonMessage {
            account,
            id: "t1".to_owned(),
            kind: "command",
            sender_id: "U1".to_owned(),
            chat: Some("C1".to_owned()),
            text: "/vocative".to_owned(),
            received_at_ms: LATER_MS,
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

async fn give(store: &Store, account: AccountId, effect: Effect) {
    let given = store
        .capture_command(command(account, effect))
        .await
        .unwrap();
    let clock = || LATER_MS + 1;
    store
        .carry_out_all(&given.erasures, false, clock)
        .await
        .unwrap();
}

async fn answer(scene: &Scene, room: &Room, run: &ClaimedRun, text: &str) -> CommittedReply {
    let reply = scene.answer(run, room, text);
    scene.store.commit_reply(reply).await.unwrap()
}

/// A question with the marker, its answer, a reply that quotes the question and one that quotes the answer.
async fn quoted(path: &Path) -> (Fixture, Spoken) {
    let scene = Scene::open_at(Some(path.to_owned())).await;
    let room = scene.room("C1").await;
    let (asked, _) = scene.ask(&room, "what is zebra-7f3a9c?", 10).await;
    let run = scene.claim(100).await.unwrap();
    answer(&scene, &room, &run, "It is zebra-7f3a9c.").await;
    scene.say_in_reply(&room, "ah", 20, asked).await;
    let fixture = Fixture {
        store: scene.store,
        account: scene.account,
    };
    fixture.execute(
        "UPDATE turns SET quote = 'zebra-7f3a9c' WHERE content = 'ah';
         UPDATE outbox SET state = 'sent';
         INSERT INTO turns (uuid, conversation_id, sent_at_ms, ordinal, kind, scope, participant_id, content,
                            quote, reply_to_seq, captured_at_ms, is_inbound)
         SELECT randomblob(16), conversation_id, 30, 0, 'message', 'channel',
                (SELECT participant_id FROM turns WHERE content = 'ah'), 'thanks', 'is zebra-7f3a9c', seq, 30, 1
         FROM turns WHERE content LIKE 'It is%'",
    )
    .await;
    assert!(!fixture.is_nowhere(MARKER).await);
    (fixture, asked)
}

async fn is_gone(fixture: &Fixture) {
    let quotes: i64 = fixture.value("SELECT count(quote) FROM turns").await;
    assert_eq!(quotes, 0);
    assert_eq!(fixture.contents().await, ["", "", "ah", "thanks"]);
    assert!(fixture.is_nowhere(MARKER).await);
    fixture
        .execute("INSERT INTO turn_text (turn_text) VALUES ('integrity-check')")
        .await;
}

#[tokio::test]
async fn with_a_message_go_its_quotes_and_what_was_made_from_it_whoever_takes_it_away() {
    for by_command in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vocative.db");
        let (fixture, asked) = quoted(&path).await;
        let older = folder.path().join("older");
        let connection = rusqlite::Connection::open(&path).unwrap();
        let copy = older.to_str().unwrap();
        connection.execute("VACUUM INTO ?1", [copy]).unwrap();
        let message_id = format!("m{}", asked.seq);
        let (store, account) = (&fixture.store, fixture.account);
        if by_command {
            give(store, account, Effect::ForgetMessage { message_id }).await;
        } else {
            let deleted = store.capture_delete(account, "C1", &message_id, LATER_MS);
            deleted.await.unwrap();
        }
        is_gone(&fixture).await;

        // An older copy is put back: the ledger takes it away again, to the same extent.
        store.close().await.unwrap();
        drop(fixture);
        std::fs::rename(&older, &path).unwrap();
        let scene = Scene::open_at(Some(path)).await;
        let Scene { store, account } = scene;
        is_gone(&Fixture { store, account }).await;
    }
}

#[tokio::test]
async fn deleting_a_command_leaves_the_index_whole() {
    let fixture = Fixture::new().await;
    fixture
        .judge(said("1", "/new zebra"), |_| Verdict {
            command: Some(CommandVerdict::told("done")),
            ..admitted(&[])
        })
        .await;
    let deleted = fixture
        .store
        .capture_delete(fixture.account, "C1", "1", LATER_MS);
    deleted.await.unwrap();
    fixture
        .execute("INSERT INTO turn_text (turn_text) VALUES ('integrity-check')")
        .await;
    assert!(fixture.is_nowhere("zebra").await);
}

/// Blanking walks along the indexes of a person's and of a room's turns: no statement of it reads what it
/// does not blank.
#[tokio::test]
async fn forgetting_reads_along_indexes() {
    use crate::acts::erasure::STATEMENTS_OF_OWN;
    let scene = Scene::open().await;
    for sql in STATEMENTS_OF_OWN {
        let steps = scene.plan(sql).await;
        let scans: Vec<&String> = steps
            .iter()
            .filter(|step| {
                step.starts_with("SCAN") && !step.contains("CONSTANT") && *step != "SCAN b"
            })
            .collect();
        assert!(scans.is_empty(), "{sql}: {steps:?}");
    }
}
