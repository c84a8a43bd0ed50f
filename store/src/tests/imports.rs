//! Importing: one message is one turn whichever way it comes first, and nothing is addressed.

use super::*;
use crate::contract::{ImportBatch, ImportCounts, ImportMessage, ImportProgress};

fn progress(things: u64, is_finished: bool) -> ImportProgress {
    ImportProgress {
        fingerprint: "f".to_owned(),
        things,
        is_finished,
    }
}

/// Something said, as an export has it.
fn exported(fixture: &Fixture, said: Said) -> ImportMessage {
    ImportMessage {
        message: said.message(
            fixture.account,
            Box::new(|_| panic!("an import asks no judge")),
        ),
        own_box: None,
        is_own: false,
    }
}

fn batch(fixture: &Fixture, messages: Vec<ImportMessage>) -> ImportBatch {
    ImportBatch {
        account: fixture.account,
        messages,
        people: Vec::new(),
        progress: progress(1, false),
        now_ms: NOW_MS + 500_000,
    }
}

async fn import(fixture: &Fixture, messages: Vec<ImportMessage>) -> ImportCounts {
    let batch = batch(fixture, messages);
    fixture.store.import(batch).await.unwrap()
}

fn imported(imported: u64) -> ImportCounts {
    ImportCounts {
        imported,
        ..ImportCounts::default()
    }
}

#[tokio::test]
async fn what_was_deleted_or_erased_does_not_come_back() {
    let fixture = Fixture::new().await;
    fixture
        .store
        .capture_delete(fixture.account, "C1", "1", NOW_MS)
        .await
        .unwrap();
    fixture
        .execute(
            "INSERT INTO erased_identities (account_id, kind, platform_id, chat, erased_at_ms) VALUES
                 (1, 'person', 'U7', '', 1700000005000), (1, 'conversation', '', 'C7', 1800000000000),
                 (1, 'message', '6', 'C1', 1800000000000)",
        )
        .await;
    let by = |id, by| Said {
        by,
        ..said(id, "gone")
    };
    let elsewhere = Said {
        chat: "C7",
        ..said("8", "gone")
    };
    let messages = [
        by("1", "U1"),
        by("5", "U7"),
        by("6", "U1"),
        elsewhere,
        by("7", "U7"),
    ];
    let messages = messages.map(|said| exported(&fixture, said));
    let counts = import(&fixture, messages.into()).await;
    // Somebody who came back after the erasure is heard again.
    let expected = ImportCounts {
        gone: 4,
        ..imported(1)
    };
    assert_eq!(counts, expected);
    assert_eq!(fixture.turns().await.len(), 1);
}

#[tokio::test]
async fn what_is_known_about_the_present_stays() {
    let fixture = Fixture::new().await;
    let live = Said {
        title: Some("#new-name"),
        ..said("9", "live")
    };
    fixture.hear(live).await;
    fixture
        .execute("UPDATE chats SET parked_until_ms = 5, is_present = 0, last_heard_ms = 7")
        .await;
    let old = Said {
        title: Some("#old-name"),
        name: Some("Old Ada"),
        ..said("1", "old")
    };
    import(&fixture, vec![exported(&fixture, old)]).await;
    let chats: Vec<String> = fixture
        .column("SELECT title || parked_until_ms || is_present || last_heard_ms FROM chats")
        .await;
    assert_eq!(chats, ["#new-name507"]);
    let names: Vec<String> = fixture
        .column("SELECT display_name FROM participants")
        .await;
    assert_eq!(names, ["Ada"]);
}
