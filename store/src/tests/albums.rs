use super::*;

fn item(id: &'static str, text: &'static str) -> Said {
    Said {
        album: Some("A"),
        file: Some(id),
        ..said(id, text)
    }
}

fn waiting(agents: &'static [&'static str], ms: i64) -> impl FnOnce(&MessageFacts) -> Verdict {
    move |_| Verdict {
        not_before_ms: ms,
        ..admitted(agents)
    }
}

#[tokio::test]
async fn the_items_of_an_album_are_one_turn_in_message_order() {
    let fixture = Fixture::new().await;
    let first = turn_of(fixture.hear(item("10", "ten")).await);
    let second = fixture.hear(item("9", "nine")).await;
    fixture.hear(item("11", "ten")).await;
    assert_eq!(second, Captured::Revised(first));
    let turn = fixture.only_turn().await;
    assert_eq!(turn.content, "nine\nten");
    let names: Vec<_> = turn
        .attachments
        .iter()
        .map(|a| a.name.clone().unwrap())
        .collect();
    assert_eq!(names, ["10", "9", "11"]);
    let again = fixture.hear(item("9", "nine")).await;
    assert!(matches!(again, Captured::Duplicate(_)));
    assert_eq!(fixture.only_turn().await, turn);
}

#[tokio::test]
async fn each_item_lets_the_albums_run_wait_for_the_next() {
    let fixture = Fixture::new().await;
    fixture.judge(item("1", ""), waiting(&[], 50)).await;
    let addressed = fixture
        .judge(item("2", "helper?"), waiting(&["helper"], 70))
        .await;
    assert_eq!(turn_of(addressed).new_runs.len(), 1);
    let last = fixture.judge(item("3", ""), waiting(&["helper"], 60)).await;
    assert_eq!(turn_of(last).new_runs, []);
    fixture.judge(item("4", "more"), waiting(&[], 90)).await;
    let run: String = fixture
        .value("SELECT r.not_before_ms || ' ' || g.revision FROM runs r, run_triggers g")
        .await;
    assert_eq!(run, "90 4");
    assert_eq!(fixture.only_turn().await.content, "helper?\nmore");
}

#[tokio::test]
async fn an_edited_item_changes_its_own_text_only() {
    let fixture = Fixture::new().await;
    fixture.hear_for(&["helper"], item("1", "helper?")).await;
    fixture.hear(item("2", "two")).await;
    let edited = Said {
        edit_marker: Some("5"),
        ..item("2", "TWO")
    };
    let edited = fixture.hear(edited).await;
    assert!(matches!(&edited, Captured::Revised(turn) if turn.cancelled_runs.is_empty()));
    let turn = fixture.only_turn().await;
    assert_eq!(turn.content, "helper?\nTWO");
    assert_eq!(turn.attachments.len(), 2);
    assert_eq!(turn.addressed_to, [agent("helper")]);
}

#[tokio::test]
async fn albums_of_two_topics_are_two_turns() {
    let fixture = Fixture::new().await;
    fixture.hear(item("1", "one")).await;
    fixture
        .hear(Said {
            topic: Some("7"),
            ..item("2", "two")
        })
        .await;
    assert_eq!(fixture.contents().await, ["one", "two"]);
}

#[tokio::test]
async fn a_deleted_item_leaves_the_others() {
    let fixture = Fixture::new().await;
    fixture.hear_for(&["helper"], item("1", "zebra")).await;
    fixture.hear(item("2", "lion")).await;
    let delete = |id| {
        fixture
            .store
            .capture_delete(fixture.account, "C1", id, NOW_MS)
    };
    delete("1").await.unwrap();
    assert_eq!(fixture.only_turn().await.content, "lion");
    assert!(fixture.is_nowhere("zebra").await);
    assert_eq!(fixture.hear(item("1", "zebra")).await, Captured::Tombstone);
    assert_eq!(
        fixture.value::<String>("SELECT state FROM runs").await,
        "queued"
    );
    delete("2").await.unwrap();
    assert!(fixture.is_nowhere("lion").await);
    assert_eq!(
        fixture.value::<String>("SELECT state FROM runs").await,
        "cancelled"
    );
}

#[tokio::test]
async fn a_deleted_item_takes_its_own_file_along_and_an_edit_knows_its_own_after_that() {
    let fixture = Fixture::new().await;
    for id in ["1", "2", "3"] {
        fixture.hear(item(id, id)).await;
    }
    let files = || async {
        let turn = fixture.only_turn().await;
        let named = turn.attachments.iter().map(|it| it.name.clone().unwrap());
        let mut due: Vec<String> = files::due(&fixture)
            .await
            .into_iter()
            .map(|file| file.platform_id)
            .collect();
        due.sort_unstable();
        (turn.content, named.collect::<Vec<_>>(), due)
    };
    let expected = |text: &str, names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let ids = names.iter().map(|name| format!("file-{name}")).collect();
        (text.to_owned(), names, ids)
    };
    let deleted = fixture
        .store
        .capture_delete(fixture.account, "C1", "2", NOW_MS);
    deleted.await.unwrap();
    assert_eq!(files().await, expected("1\n3", &["1", "3"]));
    let edited = Said {
        edit_marker: Some("9"),
        file: Some("4"),
        ..item("3", "three")
    };
    fixture.hear(edited).await;
    assert_eq!(files().await, expected("1\nthree", &["1", "4"]));
}
