//! Importing: one message is one turn whichever way it comes first, and nothing is addressed.

use vocative_contract::identity::Identity;

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

/// The same with an id that counts in somebody's own box; `occurrence` equals were before it.
fn boxed(fixture: &Fixture, said: Said, occurrence: u32) -> ImportMessage {
    ImportMessage {
        own_box: Some(occurrence),
        ..exported(fixture, said)
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

async fn preview(fixture: &Fixture, messages: Vec<ImportMessage>) -> ImportCounts {
    let batch = batch(fixture, messages);
    fixture.store.preview_import(batch).await.unwrap()
}

fn imported(imported: u64) -> ImportCounts {
    ImportCounts {
        imported,
        ..ImportCounts::default()
    }
}

fn known(known: u64) -> ImportCounts {
    ImportCounts {
        known,
        ..ImportCounts::default()
    }
}

#[tokio::test]
async fn whichever_way_a_message_comes_first_it_is_one_turn() {
    let fixture = Fixture::new().await;
    let (first, second) = (said("1", "one"), said("2", "two"));
    assert_eq!(
        import(&fixture, vec![exported(&fixture, first.clone())]).await,
        imported(1)
    );
    assert_eq!(
        import(&fixture, vec![exported(&fixture, first.clone())]).await,
        known(1)
    );
    assert!(matches!(fixture.hear(first).await, Captured::Duplicate(_)));
    fixture.hear(second.clone()).await;
    assert_eq!(
        preview(&fixture, vec![exported(&fixture, second.clone())]).await,
        known(1)
    );
    assert_eq!(
        import(&fixture, vec![exported(&fixture, second)]).await,
        known(1)
    );
    assert_eq!(fixture.contents().await, ["one", "two"]);
}

#[tokio::test]
async fn an_import_addresses_nobody_and_makes_no_run() {
    let fixture = Fixture::new().await;
    let asked = said("1", "helper, are you there?");
    import(&fixture, vec![exported(&fixture, asked.clone())]).await;
    assert_eq!(fixture.value::<i64>("SELECT count(*) FROM runs").await, 0);
    assert_eq!(
        fixture
            .value::<i64>("SELECT count(*) FROM involvements")
            .await,
        0
    );
    let turn = fixture.only_turn().await;
    assert!(turn.addressed_to.is_empty());
    assert_eq!(
        fixture.found("conversation:c1 AND content:there").await,
        [turn.position.seq.0]
    );
}

#[tokio::test]
async fn an_edit_that_was_not_heard_is_taken_and_addresses_as_before() {
    let fixture = Fixture::new().await;
    fixture
        .hear_for(&["helper"], said("1", "helper, ship it"))
        .await;
    let edited = Said {
        edit_marker: Some("9"),
        ..said("1", "helper, ship it not")
    };
    let counts = import(&fixture, vec![exported(&fixture, edited.clone())]).await;
    let expected = ImportCounts {
        revised: 1,
        ..ImportCounts::default()
    };
    assert_eq!(counts, expected);
    let turn = fixture.only_turn().await;
    assert_eq!(turn.content, "helper, ship it not");
    assert_eq!(turn.addressed_to, [agent("helper")]);
    assert_eq!(
        fixture.column::<String>("SELECT state FROM runs").await,
        ["queued"]
    );
    // What was heard live stays, and the older text does not come back.
    assert_eq!(
        import(&fixture, vec![exported(&fixture, edited)]).await,
        known(1)
    );
    let first = exported(&fixture, said("1", "helper, ship it"));
    assert_eq!(import(&fixture, vec![first]).await, known(1));
    assert_eq!(fixture.contents().await, ["helper, ship it not"]);
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
async fn late_turns_stand_where_they_belong_and_threads_hang_on_their_root() {
    let fixture = Fixture::new().await;
    fixture.hear(said("9", "newest")).await;
    let in_thread = |id, text| Said {
        thread: Some("3"),
        ..said(id, text)
    };
    let root = Said {
        thread: Some("3"),
        ..said("3", "root")
    };
    let messages = [in_thread("5", "reply"), said("4", "later"), root];
    let messages = messages.map(|said| exported(&fixture, said));
    assert_eq!(import(&fixture, messages.into()).await, imported(3));
    let order: Vec<String> = fixture
        .column(
            "SELECT content FROM turns WHERE conversation_id = 1 ORDER BY sent_at_ms, ordinal, seq",
        )
        .await;
    assert_eq!(order, ["root", "later", "newest"]);
    let roots: i64 = fixture
        .value(
            "SELECT count(*) FROM conversations c JOIN turns t ON t.seq = c.root_turn_seq
             WHERE c.thread = '3' AND c.parent_id = 1 AND t.content = 'root'",
        )
        .await;
    assert_eq!(roots, 1);
}

#[tokio::test]
async fn an_own_box_is_recognised_by_sender_second_and_text() {
    let fixture = Fixture::new().await;
    let at = |id, text: &'static str, second: i64| Said {
        at_ms: NOW_MS + second * 1_000,
        ..said(id, text)
    };
    let anns = || {
        vec![
            boxed(&fixture, at("import:a:1", "ok", 1), 0),
            boxed(&fixture, at("import:a:2", "ok", 1), 1),
            boxed(&fixture, at("import:a:3", "fine", 2), 0),
        ]
    };
    assert_eq!(import(&fixture, anns()).await, imported(3));
    assert_eq!(import(&fixture, anns()).await, known(3));
    // The same messages as another account numbered them, and one that the first had lost.
    let bobs = || {
        vec![
            boxed(&fixture, at("import:b:71", "ok", 1), 0),
            boxed(&fixture, at("import:b:72", "ok", 1), 1),
            boxed(&fixture, at("import:b:73", "lost", 3), 0),
        ]
    };
    let expected = ImportCounts {
        known: 2,
        ..imported(1)
    };
    assert_eq!(preview(&fixture, bobs()).await, expected);
    assert_eq!(import(&fixture, bobs()).await, expected);
    assert_eq!(import(&fixture, bobs()).await, known(3));
    assert_eq!(fixture.turns().await.len(), 4);
}

#[tokio::test]
async fn of_an_own_box_only_what_is_older_than_the_first_live_turn_is_taken() {
    let fixture = Fixture::new().await;
    fixture.hear(said("5", "live")).await;
    let at = |id, text: &'static str, second: i64| Said {
        at_ms: NOW_MS + second * 1_000,
        ..said(id, text)
    };
    let messages = || {
        vec![
            boxed(&fixture, at("import:a:1", "old", 4), 0),
            boxed(&fixture, at("import:a:2", "live", 5), 0),
            boxed(&fixture, at("import:a:3", "missed", 6), 0),
        ]
    };
    let overlap = |counts: ImportCounts| ImportCounts {
        overlap_found: 1,
        overlap_missing: 1,
        ..counts
    };
    assert_eq!(import(&fixture, messages()).await, overlap(imported(1)));
    assert_eq!(import(&fixture, messages()).await, overlap(known(1)));
    assert_eq!(fixture.contents().await, ["live", "old"]);
}

#[tokio::test]
async fn what_an_own_box_brought_first_is_heard_later_as_the_same_turn() {
    let fixture = Fixture::new().await;
    let at = |id, second: i64| Said {
        at_ms: NOW_MS + second * 1_000,
        ..said(id, "helper, ok?")
    };
    let messages = vec![
        boxed(&fixture, at("import:a:1", 5), 0),
        boxed(&fixture, at("import:a:2", 5), 1),
    ];
    assert_eq!(import(&fixture, messages).await, imported(2));
    // A third one was said after the export was made.
    let mut seqs = Vec::new();
    for id in ["71", "72", "73"] {
        seqs.push(
            turn_of(fixture.hear_for(&["helper"], at(id, 5)).await)
                .seq
                .0,
        );
        assert!(matches!(
            fixture.hear(at(id, 5)).await,
            Captured::Duplicate(_)
        ));
    }
    assert_eq!(seqs, [1, 2, 3]);
    assert_eq!(fixture.turns().await.len(), 3);
    // What was heard is answered, wherever its turn came from.
    assert_eq!(fixture.value::<i64>("SELECT count(*) FROM runs").await, 3);
}

#[tokio::test]
async fn another_message_under_a_known_id_is_told_and_not_taken() {
    let fixture = Fixture::new().await;
    let twice = Said {
        at_ms: NOW_MS + 9_000,
        ..said("1", "another")
    };
    let messages = vec![
        exported(&fixture, said("1", "one")),
        exported(&fixture, said("1", "one")),
        exported(&fixture, twice),
    ];
    let expected = ImportCounts {
        imported: 1,
        known: 1,
        conflicts: 1,
        ..ImportCounts::default()
    };
    assert_eq!(import(&fixture, messages).await, expected);
    assert_eq!(fixture.contents().await, ["one"]);
}

#[tokio::test]
async fn absurd_times_are_stored_and_recognised() {
    let fixture = Fixture::new().await;
    let at = |id, at_ms| Said {
        at_ms,
        ..said(id, id)
    };
    let messages = || {
        let said = [at("1", i64::MAX), at("2", i64::MIN), at("3", 0)];
        said.map(|said| exported(&fixture, said)).into()
    };
    assert_eq!(import(&fixture, messages()).await, imported(3));
    assert_eq!(import(&fixture, messages()).await, known(3));
    let newest: i64 = fixture.value("SELECT max(sent_at_ms) FROM turns").await;
    assert_eq!(newest, NOW_MS + 500_000);
}

#[tokio::test]
async fn posts_of_ours_are_taken_only_from_before_this_store() {
    let fixture = Fixture::new().await;
    let own = |said| ImportMessage {
        is_own: true,
        ..exported(&fixture, said)
    };
    assert_eq!(
        import(&fixture, vec![own(said("1", "I was here"))]).await,
        imported(1)
    );
    fixture
        .execute(
            "INSERT INTO outbox (uuid, account_id, chat_id, part, sort_key, target, payload, state,
                                 not_before_ms, created_at_ms)
             VALUES (x'01', 1, 1, 0, 1.0, '{}', '{}', 'unknown', 0, 1700000004000)",
        )
        .await;
    let messages = vec![own(said("3", "before")), own(said("5", "in flight"))];
    let expected = ImportCounts {
        own: 1,
        ..imported(1)
    };
    assert_eq!(import(&fixture, messages).await, expected);
    assert_eq!(fixture.contents().await, ["I was here", "before"]);
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

#[tokio::test]
async fn an_import_goes_on_where_it_was_until_it_is_finished() {
    let fixture = Fixture::new().await;
    let done = async || {
        fixture
            .store
            .import_progress(fixture.account, "f")
            .await
            .unwrap()
    };
    assert_eq!(done().await, 0);
    let at = |things, is_finished| ImportBatch {
        progress: progress(things, is_finished),
        ..batch(&fixture, Vec::new())
    };
    fixture.store.import(at(40, false)).await.unwrap();
    assert_eq!(done().await, 40);
    fixture.store.preview_import(at(50, true)).await.unwrap();
    assert_eq!(done().await, 40);
    fixture.store.import(at(60, true)).await.unwrap();
    assert_eq!(done().await, 0);
    let other = fixture
        .store
        .import_progress(fixture.account, "g")
        .await
        .unwrap();
    assert_eq!(other, 0);
}

#[tokio::test]
async fn the_account_of_a_channel_is_known_with_its_own_ids() {
    let fixture = Fixture::new().await;
    assert_eq!(fixture.store.import_account("other").await.unwrap(), None);
    for (user_id, other_ids) in [("OLD", vec!["X", "Y"]), ("UBOT", vec!["BBOT"])] {
        let bot = Identity {
            platform: Platform::Slack,
            account: "T1".to_owned(),
            account_name: "Acme".to_owned(),
            user_id: user_id.to_owned(),
            other_ids: other_ids.into_iter().map(str::to_owned).collect(),
            username: None,
            display_name: "Helper".to_owned(),
            warnings: Vec::new(),
            organisation: None,
        };
        let learnt = fixture.store.learn_bot(fixture.account, &bot);
        learnt.await.unwrap();
    }
    let account = fixture.store.import_account("acme").await.unwrap().unwrap();
    assert_eq!(account.account, fixture.account);
    assert_eq!(account.platform_id, "T1");
    assert_eq!(account.own_ids, ["UBOT", "BBOT"]);
}
