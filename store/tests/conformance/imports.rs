//! Importing: one message is one turn whichever way it comes first, and nothing is addressed.

use vocative_contract::identity::{Identity, Platform};
use vocative_store::contract::{
    Captured, ImportBatch, ImportCounts, ImportMessage, ImportProgress, TurnFilter,
};

use crate::said::{NOW_MS, Said, agent, said, turn_of};
use crate::scene::Scene;

fn progress(things: u64, is_finished: bool) -> ImportProgress {
    ImportProgress {
        fingerprint: "f".to_owned(),
        things,
        is_finished,
    }
}

/// Something said, as an export has it.
fn exported(scene: &Scene, said: Said) -> ImportMessage {
    ImportMessage {
        message: said.message(
            scene.account,
            Box::new(|_| panic!("an import asks no judge")),
        ),
        own_box: None,
        is_own: false,
    }
}

/// The same with an id that counts in somebody's own box; `occurrence` equals were before it.
fn boxed(scene: &Scene, said: Said, occurrence: u32) -> ImportMessage {
    ImportMessage {
        own_box: Some(occurrence),
        ..exported(scene, said)
    }
}

fn batch(scene: &Scene, messages: Vec<ImportMessage>) -> ImportBatch {
    ImportBatch {
        account: scene.account,
        messages,
        people: Vec::new(),
        progress: progress(1, false),
        now_ms: NOW_MS + 500_000,
    }
}

async fn import(scene: &Scene, messages: Vec<ImportMessage>) -> ImportCounts {
    let batch = batch(scene, messages);
    scene.store.import(batch).await.unwrap()
}

async fn preview(scene: &Scene, messages: Vec<ImportMessage>) -> ImportCounts {
    let batch = batch(scene, messages);
    scene.store.preview_import(batch).await.unwrap()
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
    let scene = Scene::open().await;
    let (first, second) = (said("1", "one"), said("2", "two"));
    assert_eq!(
        import(&scene, vec![exported(&scene, first.clone())]).await,
        imported(1)
    );
    assert_eq!(
        import(&scene, vec![exported(&scene, first.clone())]).await,
        known(1)
    );
    assert!(matches!(scene.hear(first).await, Captured::Duplicate(_)));
    scene.hear(second.clone()).await;
    assert_eq!(
        preview(&scene, vec![exported(&scene, second.clone())]).await,
        known(1)
    );
    assert_eq!(
        import(&scene, vec![exported(&scene, second)]).await,
        known(1)
    );
    assert_eq!(scene.contents().await, ["one", "two"]);
}

#[tokio::test]
async fn an_import_addresses_nobody_and_makes_no_run() {
    let scene = Scene::open().await;
    let asked = said("1", "helper, are you there?");
    import(&scene, vec![exported(&scene, asked.clone())]).await;
    assert_eq!(scene.runs().await, [""; 0]);
    let turn = scene.only_turn().await;
    assert!(turn.addressed_to.is_empty());
    assert_eq!(
        scene.found(turn.conversation, "there").await,
        [turn.content]
    );
}

#[tokio::test]
async fn an_edit_that_was_not_heard_is_taken_and_addresses_as_before() {
    let scene = Scene::open().await;
    scene
        .hear_for(&["helper"], said("1", "helper, ship it"))
        .await;
    let edited = Said {
        edit_marker: Some("9"),
        ..said("1", "helper, ship it not")
    };
    let counts = import(&scene, vec![exported(&scene, edited.clone())]).await;
    let expected = ImportCounts {
        revised: 1,
        ..ImportCounts::default()
    };
    assert_eq!(counts, expected);
    let turn = scene.only_turn().await;
    assert_eq!(turn.content, "helper, ship it not");
    assert_eq!(turn.addressed_to, [agent("helper")]);
    assert_eq!(scene.runs().await, ["helper queued 1"]);
    // What was heard live stays, and the older text does not come back.
    assert_eq!(
        import(&scene, vec![exported(&scene, edited)]).await,
        known(1)
    );
    let first = exported(&scene, said("1", "helper, ship it"));
    assert_eq!(import(&scene, vec![first]).await, known(1));
    assert_eq!(scene.contents().await, ["helper, ship it not"]);
}

#[tokio::test]
async fn late_turns_stand_where_they_belong_and_threads_hang_on_their_root() {
    let scene = Scene::open().await;
    scene.hear(said("9", "newest")).await;
    let in_thread = |id, text| Said {
        thread: Some("3"),
        ..said(id, text)
    };
    let root = Said {
        thread: Some("3"),
        ..said("3", "root")
    };
    let messages = [in_thread("5", "reply"), said("4", "later"), root];
    let messages = messages.map(|said| exported(&scene, said));
    assert_eq!(import(&scene, messages.into()).await, imported(3));
    let room = scene.conversation("C1").await;
    let turns = scene.store.turns(room, TurnFilter::default());
    let turns = turns.await.unwrap();
    let order: Vec<&str> = turns.iter().map(|turn| turn.content.as_str()).collect();
    assert_eq!(order, ["root", "later", "newest"]);
    let thread = scene.conversation("C1/3").await;
    let thread = scene.store.conversation(thread).await.unwrap();
    assert_eq!(
        (thread.parent, thread.root),
        (Some(room), Some(turns[0].id))
    );
}

#[tokio::test]
async fn an_own_box_is_recognised_by_sender_second_and_text() {
    let scene = Scene::open().await;
    let at = |id, text: &'static str, second: i64| Said {
        at_ms: NOW_MS + second * 1_000,
        ..said(id, text)
    };
    let anns = || {
        vec![
            boxed(&scene, at("import:a:1", "ok", 1), 0),
            boxed(&scene, at("import:a:2", "ok", 1), 1),
            boxed(&scene, at("import:a:3", "fine", 2), 0),
        ]
    };
    assert_eq!(import(&scene, anns()).await, imported(3));
    assert_eq!(import(&scene, anns()).await, known(3));
    // The same messages as another account numbered them, and one that the first had lost.
    let bobs = || {
        vec![
            boxed(&scene, at("import:b:71", "ok", 1), 0),
            boxed(&scene, at("import:b:72", "ok", 1), 1),
            boxed(&scene, at("import:b:73", "lost", 3), 0),
        ]
    };
    let expected = ImportCounts {
        known: 2,
        ..imported(1)
    };
    assert_eq!(preview(&scene, bobs()).await, expected);
    assert_eq!(import(&scene, bobs()).await, expected);
    assert_eq!(import(&scene, bobs()).await, known(3));
    assert_eq!(scene.turns().await.len(), 4);
}

#[tokio::test]
async fn of_an_own_box_only_what_is_older_than_the_first_live_turn_is_taken() {
    let scene = Scene::open().await;
    scene.hear(said("5", "live")).await;
    let at = |id, text: &'static str, second: i64| Said {
        at_ms: NOW_MS + second * 1_000,
        ..said(id, text)
    };
    let messages = || {
        vec![
            boxed(&scene, at("import:a:1", "old", 4), 0),
            boxed(&scene, at("import:a:2", "live", 5), 0),
            boxed(&scene, at("import:a:3", "missed", 6), 0),
        ]
    };
    let overlap = |counts: ImportCounts| ImportCounts {
        overlap_found: 1,
        overlap_missing: 1,
        ..counts
    };
    assert_eq!(import(&scene, messages()).await, overlap(imported(1)));
    assert_eq!(import(&scene, messages()).await, overlap(known(1)));
    assert_eq!(scene.contents().await, ["live", "old"]);
}

#[tokio::test]
async fn what_an_own_box_brought_first_is_heard_later_as_the_same_turn() {
    let scene = Scene::open().await;
    let at = |id, second: i64| Said {
        at_ms: NOW_MS + second * 1_000,
        ..said(id, "helper, ok?")
    };
    let messages = vec![
        boxed(&scene, at("import:a:1", 5), 0),
        boxed(&scene, at("import:a:2", 5), 1),
    ];
    assert_eq!(import(&scene, messages).await, imported(2));
    // A third one was said after the export was made.
    let mut seqs = Vec::new();
    for id in ["71", "72", "73"] {
        seqs.push(turn_of(scene.hear_for(&["helper"], at(id, 5)).await).seq.0);
        assert!(matches!(
            scene.hear(at(id, 5)).await,
            Captured::Duplicate(_)
        ));
    }
    assert_eq!(seqs, [1, 2, 3]);
    assert_eq!(scene.turns().await.len(), 3);
    // What was heard is answered, wherever its turn came from.
    assert_eq!(scene.runs().await.len(), 3);
}

#[tokio::test]
async fn another_message_under_a_known_id_is_told_and_not_taken() {
    let scene = Scene::open().await;
    let twice = Said {
        at_ms: NOW_MS + 9_000,
        ..said("1", "another")
    };
    let messages = vec![
        exported(&scene, said("1", "one")),
        exported(&scene, said("1", "one")),
        exported(&scene, twice),
    ];
    let expected = ImportCounts {
        imported: 1,
        known: 1,
        conflicts: 1,
        ..ImportCounts::default()
    };
    assert_eq!(import(&scene, messages).await, expected);
    assert_eq!(scene.contents().await, ["one"]);
}

#[tokio::test]
async fn absurd_times_are_stored_and_recognised() {
    let scene = Scene::open().await;
    let at = |id, at_ms| Said {
        at_ms,
        ..said(id, id)
    };
    let messages = || {
        let said = [at("1", i64::MAX), at("2", i64::MIN), at("3", 0)];
        said.map(|said| exported(&scene, said)).into()
    };
    assert_eq!(import(&scene, messages()).await, imported(3));
    assert_eq!(import(&scene, messages()).await, known(3));
    let turns = scene.turns().await;
    let newest = turns.iter().map(|turn| turn.position.sent_at_ms).max();
    assert_eq!(newest, Some(NOW_MS + 500_000));
}

#[tokio::test]
async fn an_import_goes_on_where_it_was_until_it_is_finished() {
    let scene = Scene::open().await;
    let done = async || {
        scene
            .store
            .import_progress(scene.account, "f")
            .await
            .unwrap()
    };
    assert_eq!(done().await, 0);
    let at = |things, is_finished| ImportBatch {
        progress: progress(things, is_finished),
        ..batch(&scene, Vec::new())
    };
    scene.store.import(at(40, false)).await.unwrap();
    assert_eq!(done().await, 40);
    scene.store.preview_import(at(50, true)).await.unwrap();
    assert_eq!(done().await, 40);
    scene.store.import(at(60, true)).await.unwrap();
    assert_eq!(done().await, 0);
    let other = scene
        .store
        .import_progress(scene.account, "g")
        .await
        .unwrap();
    assert_eq!(other, 0);
}

#[tokio::test]
async fn the_account_of_a_channel_is_known_with_its_own_ids() {
    let scene = Scene::open().await;
    assert_eq!(scene.store.import_account("other").await.unwrap(), None);
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
        scene.learn_bot(&bot).await;
    }
    let account = scene.store.import_account("acme").await.unwrap().unwrap();
    assert_eq!(account.account, scene.account);
    assert_eq!(account.platform_id, "T1");
    assert_eq!(account.own_ids, ["UBOT", "BBOT"]);
}

#[tokio::test]
async fn posts_of_ours_are_taken_only_from_before_this_store() {
    let scene = Scene::open().await;
    let own = |said| ImportMessage {
        is_own: true,
        ..exported(&scene, said)
    };
    let first = import(&scene, vec![own(said("1", "I was here"))]).await;
    assert_eq!(first, imported(1));
    // Its own first post is of the fourth second.
    scene.hear_for(&["helper"], said("2", "a question")).await;
    let run = scene.claim(NOW_MS + 3_999).await.unwrap();
    let reply = scene.answer(&run, "in flight").await;
    scene.store.commit_reply(reply).await.unwrap();
    let messages = vec![own(said("3", "before")), own(said("5", "in flight"))];
    let expected = ImportCounts {
        own: 1,
        ..imported(1)
    };
    assert_eq!(import(&scene, messages).await, expected);
    let contents = scene.contents().await;
    let expected = ["I was here", "a question", "in flight", "before"];
    assert_eq!(contents, expected);
}
