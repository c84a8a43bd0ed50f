use super::*;
use crate::contract::OwnPost;
use crate::new_id::NewId as _;
use vocative_core::ids::OutboxId;

/// A post of turn 1 in a state.
async fn with_post(state: &'static str) -> (Fixture, OutboxId) {
    let fixture = Fixture::new().await;
    fixture.hear(said("1", "hello")).await;
    let id = OutboxId::generate();
    fixture
        .store
        .write(move |connection| {
            connection.execute(
                "INSERT INTO outbox (uuid, account_id, chat_id, turn_seq, part, sort_key, target,
                                     payload, state, not_before_ms, created_at_ms, send_started)
                 VALUES (?1, 1, 1, 1, 2, 1, '{}', '{}', ?2, 0, 0, 0)",
                (id, state),
            )?;
            Ok(())
        })
        .await
        .unwrap();
    (fixture, id)
}

/// A post of ours in the chat C1.
pub(super) fn own_post(fixture: &Fixture, message_id: &str, marker: Option<&str>) -> OwnPost {
    OwnPost {
        account: fixture.account,
        place: Place {
            chat: "C1".to_owned(),
            ..Place::default()
        },
        message_id: message_id.to_owned(),
        marker: marker.map(str::to_owned),
        now_ms: NOW_MS,
        judge_follow_up: None,
    }
}

async fn see(fixture: &Fixture, message_id: &str, marker: Option<&str>) {
    let post = own_post(fixture, message_id, marker);
    fixture.store.confirm_own_post(post).await.unwrap();
}

const ROW: &str = "SELECT format('%s %s %s', o.state, o.message_id, m.part)
                   FROM outbox o LEFT JOIN messages m ON m.platform_id = o.message_id";

#[tokio::test]
async fn a_post_whose_outcome_is_open_is_sent_once_it_is_seen() {
    // A pending one was tried before: a marker gets nowhere but by a post.
    for state in ["pending", "leased", "unknown", "held"] {
        let (fixture, id) = with_post(state).await;
        for _ in 0..2 {
            see(&fixture, "90", Some(&id.to_string())).await;
        }
        assert_eq!(fixture.value::<String>(ROW).await, "sent 90 2");
    }
}

#[tokio::test]
async fn a_post_that_is_settled_or_not_ours_changes_nothing() {
    for state in ["dead", "sent"] {
        let (fixture, id) = with_post(state).await;
        see(&fixture, "90", Some(&id.to_string())).await;
        let messages: i64 = fixture.value("SELECT count(*) FROM messages").await;
        assert_eq!(messages, 1);
        assert_eq!(
            fixture.value::<String>("SELECT state FROM outbox").await,
            state
        );
    }
    let (fixture, id) = with_post("unknown").await;
    let other = OutboxId::generate().to_string();
    for marker in [None, Some("no uuid"), Some(&*other)] {
        see(&fixture, "90", marker).await;
    }
    // A message that is known already is not the lost one.
    see(&fixture, "1", Some(&id.to_string())).await;
    assert_eq!(
        fixture.value::<String>("SELECT state FROM outbox").await,
        "unknown"
    );
}

#[tokio::test]
async fn a_reply_to_a_post_is_linked_once_the_post_is_seen() {
    let (fixture, id) = with_post("unknown").await;
    fixture
        .hear(Said {
            reply_to: Some("90"),
            ..said("2", "thanks")
        })
        .await;
    see(&fixture, "90", Some(&id.to_string())).await;
    let turns = fixture.turns().await;
    assert_eq!(turns[1].reply_to, Some(turns[0].id));
}
