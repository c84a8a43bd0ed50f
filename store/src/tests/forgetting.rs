//! What goes with a message that is deleted or forgotten, also when an older copy is put back; and what a
//! run read of it.

use std::path::Path;

use super::*;
use crate::acts::commands::NewCommand;
use crate::acts::erasure::ErasureTarget;
use crate::contract::{CommittedReply, NonMessage};
use crate::scene::{Room, Said as Spoken, Scene};
use crate::tests::files::fetch_all;
use vocative_core::command::{CommandVerdict, Effect};
use vocative_core::run::ClaimedRun;
use vocative_core::sent::SentPrompt;

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
async fn a_forgotten_chat_is_forgotten_in_every_topic_that_is_known_or_not() {
    let fixture = Fixture::new().await;
    let in_topic = |id, topic| Said {
        topic,
        ..said(id, "zebra")
    };
    for (id, topic) in [("1", None), ("2", Some("7")), ("3", Some("8"))] {
        fixture.hear(in_topic(id, topic)).await;
    }
    fixture
        .hear(Said {
            chat: "C2",
            ..said("4", "stays")
        })
        .await;
    give(&fixture.store, fixture.account, Effect::ForgetChat).await;
    assert_eq!(fixture.contents().await, ["", "", "", "stays"]);
    for (id, topic) in [("11", None), ("12", Some("7")), ("13", Some("9"))] {
        let earlier = fixture.hear(in_topic(id, topic)).await;
        assert_eq!(earlier, Captured::Tombstone, "{topic:?}");
    }
    let later = Said {
        at_ms: LATER_MS + 1,
        received_at_ms: LATER_MS + 2,
        ..in_topic("14", Some("9"))
    };
    assert!(matches!(fixture.hear(later).await, Captured::New(_)));
}

fn sent() -> SentPrompt {
    SentPrompt {
        recipe: "{}".to_owned(),
        instructions: String::new(),
        tools: "[]".to_owned(),
        summary: None,
        turns: Vec::new(),
        thread_answers: Vec::new(),
    }
}

#[tokio::test]
async fn an_answer_goes_with_the_file_that_it_was_made_from_and_is_not_given_once_that_is_gone() {
    let scene = Scene::open().await;
    let room = scene.room("C1").await;
    let mut files = Vec::new();
    let mut runs = Vec::new();
    for n in 0..2 {
        files.push(scene.say(&room, "my file", n * 10).await);
        scene.ask(&room, "what is in the file?", n * 10 + 5).await;
        let run = scene.claim(NOW_MS).await.unwrap();
        let read = vec![files[files.len() - 1].turn];
        let recorded = scene
            .store
            .record_prompt(run.run.id, run.token, sent(), read);
        recorded.await.unwrap();
        if n == 0 {
            let given = answer(&scene, &room, &run, "It says zebra.").await;
            assert!(matches!(given, CommittedReply::Written { .. }));
            // It is in the room: what is still on its way to somebody else is given.
            let sent = "UPDATE outbox SET state = 'sent'";
            scene
                .write(move |connection| Ok(connection.execute_batch(sent)?))
                .await;
        }
        runs.push(run);
    }
    for file in &files {
        let id = format!("m{}", file.seq);
        let deleted = scene
            .store
            .capture_delete(scene.account, "C1", &id, LATER_MS);
        deleted.await.unwrap();
    }
    let late = answer(&scene, &room, &runs[1], "It says zebra.").await;
    assert_eq!(late, CommittedReply::SourceGone);
    let said: i64 = scene
        .value("SELECT count(*) FROM turns WHERE content LIKE '%zebra%'")
        .await;
    let posts: i64 = scene
        .value("SELECT count(*) FROM outbox WHERE payload LIKE '%zebra%'")
        .await;
    assert_eq!((said, posts), (0, 0));
    // The next attempt reads anew, and may answer.
    let next = answer(&scene, &room, &runs[1], "There is no file.").await;
    assert!(matches!(next, CommittedReply::Written { .. }));
}

#[tokio::test]
async fn what_a_file_of_an_erased_person_says_is_looked_for_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions {
        path: Some(folder.path().join("vocative.db")),
        readers: 1,
        page_cache_kib: 1_024,
    };
    let fixture = Fixture::with(Store::open(&options, NOW_MS).unwrap().0).await;
    fixture
        .hear(Said {
            file: Some("notes.md"),
            ..said("1", "see this")
        })
        .await;
    fetch_all(
        &fixture,
        b"The plan\nannex 4711-0815-x\nthe launch is on Monday at noon\n",
    )
    .await;
    let by_bob = |id, text| Said {
        by: "U2",
        name: Some("Bob"),
        ..said(id, text)
    };
    fixture.hear(by_bob("2", "so 4711-0815-X it is")).await;
    fixture
        .hear(by_bob("3", "The launch is on Monday at noon, fine"))
        .await;
    let target = ErasureTarget::Person("U1".to_owned());
    let plan = fixture.store.plan_erasure(target, LATER_MS).await.unwrap();
    let ids: Vec<_> = plan.entries.iter().map(|entry| entry.id).collect();
    fixture.store.begin_erasure(plan.entries).await.unwrap();
    let clock = || LATER_MS;
    let done = fixture
        .store
        .carry_out_all(&ids, true, clock)
        .await
        .unwrap();
    let verification = done.verification.unwrap();
    assert!(verification.texts >= 3, "{verification:?}");
    assert_eq!(verification.hits, []);
    let expected = ["", "so [erased] it is", "[erased], fine"];
    assert_eq!(fixture.contents().await, expected);
}

#[tokio::test]
async fn a_command_and_our_names_stay_in_what_others_say() {
    let fixture = Fixture::new().await;
    fixture
        .execute(
            "UPDATE accounts SET bot = '{\"version\":1,\"username\":\"kael_the_bot\",\"display_name\":\"Kael\"}'",
        )
        .await;
    let texts = [
        "/forget@kael_the_bot",
        "ask kael_the_bot or @somebody_else1",
    ];
    fixture.hear(said("1", texts[0])).await;
    fixture.hear(said("2", texts[1])).await;
    for (id, text) in [("3", texts[0]), ("4", texts[1])] {
        let by_bob = Said {
            by: "U2",
            name: Some("Bob"),
            ..said(id, text)
        };
        fixture.hear(by_bob).await;
    }
    let target = ErasureTarget::Person("U1".to_owned());
    let plan = fixture.store.plan_erasure(target, LATER_MS).await.unwrap();
    let ids: Vec<_> = plan.entries.iter().map(|entry| entry.id).collect();
    fixture.store.begin_erasure(plan.entries).await.unwrap();
    let clock = || LATER_MS;
    fixture
        .store
        .carry_out_all(&ids, false, clock)
        .await
        .unwrap();
    assert_eq!(fixture.contents().await, ["", "", texts[0], texts[1]]);
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
