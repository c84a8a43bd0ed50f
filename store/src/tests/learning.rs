use super::*;
use crate::contract::{NonMessage, RawStub};

fn place(chat: &str) -> Place {
    Place {
        chat: chat.to_owned(),
        ..Place::default()
    }
}

#[tokio::test]
async fn a_renamed_channel_keeps_its_account_and_binding_lifts_a_hold() {
    let fixture = Fixture::new().await;
    fixture
        .execute("UPDATE accounts SET held_reason = 'token_revoked'")
        .await;
    let again = fixture
        .store
        .bind_account(binding("renamed"), NOW_MS)
        .await
        .unwrap();
    assert_eq!(again, fixture.account);
    let channels: Vec<String> = fixture
        .column(
            "SELECT c.name FROM channels c JOIN accounts a ON a.id = c.account_id
             WHERE a.held_reason IS NULL ORDER BY c.name",
        )
        .await;
    assert_eq!(channels, ["acme", "renamed"]);
}

#[tokio::test]
async fn titles_kinds_and_topic_names_are_learnt_of_known_chats_only() {
    let fixture = Fixture::new().await;
    let learnt = |chat: &str| Place {
        kind: Some(ChatKind::Private),
        title: Some("general".to_owned()),
        topic: Some("7".to_owned()),
        topic_title: Some("releases".to_owned()),
        ..place(chat)
    };
    fixture.hear(said("1", "hello")).await;
    for chat in ["C1", "C9"] {
        let store = &fixture.store;
        store
            .learn_place(fixture.account, learnt(chat), NOW_MS)
            .await
            .unwrap();
    }
    let chats: Vec<String> = fixture
        .column("SELECT platform_id || ' ' || kind || ' ' || title FROM chats")
        .await;
    assert_eq!(chats, ["C1 private general"]);
    let topics: Vec<String> = fixture
        .column("SELECT thread || ' ' || title FROM conversations WHERE is_topic = 1")
        .await;
    assert_eq!(topics, ["7 releases"]);
}

#[tokio::test]
async fn a_message_names_a_topic_without_a_name_and_renames_none() {
    let fixture = Fixture::new().await;
    let called = |title: &str| Place {
        topic: Some("7".to_owned()),
        topic_title: Some(title.to_owned()),
        ..place("C1")
    };
    let hear = async |id, title: Option<&str>| {
        let judge = Box::new(|_: &MessageFacts| admitted(&[]));
        let mut message = said(id, "hello").message(fixture.account, judge);
        message.place = Place {
            topic_title: title.map(str::to_owned),
            ..called("")
        };
        let captured = fixture.store.capture_message(message).await.unwrap();
        assert!(matches!(captured, Captured::New(_)), "{captured:?}");
    };
    let name = "SELECT title FROM conversations WHERE is_topic = 1";
    hear("1", None).await;
    hear("2", Some("Incident")).await;
    assert_eq!(fixture.value::<String>(name).await, "Incident");
    let renamed = called("Incident (solved)");
    let learnt = fixture.store.learn_place(fixture.account, renamed, NOW_MS);
    learnt.await.unwrap();
    hear("3", Some("Incident")).await;
    assert_eq!(fixture.value::<String>(name).await, "Incident (solved)");
}

#[tokio::test]
async fn joining_lifts_a_parked_chat_and_leaving_does_not() {
    let fixture = Fixture::new().await;
    fixture.hear(said("1", "hello")).await;
    fixture
        .execute("UPDATE chats SET parked_until_ms = 9, parked_reason = 'kicked'")
        .await;
    let sql = "SELECT is_present || ' ' || coalesce(parked_reason, '-') FROM chats";
    for (is_present, expected) in [(false, "0 kicked"), (true, "1 -")] {
        let store = &fixture.store;
        store
            .record_membership(fixture.account, place("C1"), is_present, None, NOW_MS)
            .await
            .unwrap();
        assert_eq!(fixture.value::<String>(sql).await, expected);
    }
}

#[tokio::test]
async fn the_unnamed_are_listed_newest_first_until_they_are_named() {
    let fixture = Fixture::new().await;
    for (id, chat, by) in [("1", "C1", "U1"), ("2", "C2", "U2")] {
        let at = NOW_MS + 500_000 + id.parse::<i64>().unwrap();
        let message = Said {
            chat,
            by,
            name: None,
            received_at_ms: at,
            ..said(id, "hello")
        };
        fixture.hear(message).await;
    }
    let direct = Said {
        chat: "D1",
        kind: Some(ChatKind::Direct),
        by: "U1",
        name: None,
        ..said("3", "hi")
    };
    fixture.hear(direct).await;
    let unnamed = || fixture.store.unnamed(fixture.account, 5);
    let (people, chats) = unnamed().await.unwrap();
    assert_eq!(people, ["U2", "U1"]);
    assert_eq!(chats, ["C2", "C1"]);
    let sender = Sender {
        id: "U2".to_owned(),
        display_name: Some("Grace".to_owned()),
        username: Some("grace".to_owned()),
        kind: SenderKind::Person,
        is_stranger: false,
    };
    fixture
        .store
        .learn_person(fixture.account, sender)
        .await
        .unwrap();
    assert_eq!(unnamed().await.unwrap().0, ["U1"]);
}

#[tokio::test]
async fn raw_envelopes_expire_and_untranslated_events_stay() {
    let fixture = Fixture::new().await;
    fixture.hear(said("1", "hello")).await;
    let stub = RawStub {
        account: fixture.account,
        reason: "no ts".to_owned(),
        raw: "{}".to_owned(),
        received_at_ms: NOW_MS,
    };
    fixture.store.keep_raw(stub).await.unwrap();
    assert_eq!(
        fixture.store.expire_raw(NOW_MS + 500_000, 9).await.unwrap(),
        0
    );
    assert_eq!(
        fixture.store.expire_raw(NOW_MS + 500_001, 0).await.unwrap(),
        0
    );
    assert_eq!(
        fixture.store.expire_raw(NOW_MS + 500_001, 9).await.unwrap(),
        1
    );
    let left: Vec<String> = fixture.column("SELECT reason FROM raw_envelopes").await;
    assert_eq!(left, ["no ts"]);
}

#[tokio::test]
async fn a_command_is_kept_once() {
    let fixture = Fixture::new().await;
    let command = |kind| NonMessage {
        account: fixture.account,
        id: "trigger-1".to_owned(),
        kind,
        sender_id: "U1".to_owned(),
        chat: None,
        text: "/ask".to_owned(),
        received_at_ms: NOW_MS,
    };
    let keep = |kind| fixture.store.keep_non_message(command(kind));
    assert!(keep("command").await.unwrap());
    assert!(!keep("command").await.unwrap());
    assert!(keep("interaction").await.unwrap());
}
#[tokio::test]
async fn hearing_a_chat_lifts_its_park_and_counts_its_turns() {
    let fixture = Fixture::new().await;
    fixture.hear(said("1", "one")).await;
    fixture
        .execute("UPDATE chats SET parked_until_ms = 9, parked_reason = 'kicked'")
        .await;
    fixture.hear(said("2", "two")).await;
    let row: String = fixture
        .value(
            "SELECT format('%s %s %s %s %s', c.turn_count, c.last_seq, c.last_activity_ms,
                           h.last_heard_ms, a.last_captured_ms)
             FROM conversations c JOIN chats h ON h.id = c.chat_id
             JOIN accounts a ON a.id = h.account_id
             WHERE h.parked_until_ms IS NULL AND h.parked_reason IS NULL",
        )
        .await;
    let heard_ms = NOW_MS + 500_000;
    assert_eq!(row, format!("2 2 {} {heard_ms} {heard_ms}", NOW_MS + 2_000));
}
