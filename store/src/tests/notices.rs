use vocative_contract::outbound::{Part, Target};

use super::*;
use vocative_core::addressing::{Notice, NoticeKind, RunVerdict};

fn notice(kind: NoticeKind) -> Option<Notice> {
    Some(Notice {
        kind,
        text: "a line".to_owned(),
        is_private: false,
    })
}

async fn posts(fixture: &Fixture) -> Vec<(Target, Part)> {
    let targets: Vec<String> = fixture
        .column("SELECT target FROM outbox ORDER BY id")
        .await;
    let parts: Vec<String> = fixture
        .column("SELECT payload FROM outbox WHERE state = 'pending' AND sort_key = id ORDER BY id")
        .await;
    let posts = targets.iter().zip(&parts).map(|(target, part)| {
        (
            serde_json::from_str(target).unwrap(),
            serde_json::from_str(part).unwrap(),
        )
    });
    posts.collect()
}

#[tokio::test]
async fn of_a_message_outside_access_nothing_is_stored() {
    let fixture = Fixture::new().await;
    let captured = fixture
        .judge(said("1", "secret"), |_| Verdict::default())
        .await;
    assert_eq!(captured, Captured::NotAdmitted { has_notice: false });
    let rows: i64 = fixture
        .value(
            "SELECT (SELECT count(*) FROM chats) + (SELECT count(*) FROM participants)
                  + (SELECT count(*) FROM messages) + (SELECT count(*) FROM turns)",
        )
        .await;
    assert_eq!(rows, 0);
}

#[tokio::test]
async fn a_chat_that_is_not_served_is_told_with_its_ids_only() {
    let fixture = Fixture::new().await;
    let message = Said {
        title: Some("secret"),
        thread: Some("7"),
        ..said("1", "secret")
    };
    let captured = fixture
        .judge(message.clone(), |_| Verdict {
            notice: notice(NoticeKind::NotServed),
            ..Verdict::default()
        })
        .await;
    assert_eq!(captured, Captured::NotAdmitted { has_notice: true });
    let target = Target {
        chat: "C1".to_owned(),
        thread: Some("7".to_owned()),
        topic: None,
        reply_to: None,
    };
    assert_eq!(posts(&fixture).await, [(target, Part::plain("a line"))]);
    let stored: i64 = fixture
        .value(
            "SELECT count(*) FROM chats c WHERE title IS NULL AND kind IS NULL
             AND NOT EXISTS (SELECT 1 FROM turns) AND NOT EXISTS (SELECT 1 FROM participants)",
        )
        .await;
    assert_eq!(stored, 1);
    let facts = fixture.facts(message).await;
    assert_eq!(facts.refused_notice_at_ms, Some(NOW_MS + 500_000));
}

#[tokio::test]
async fn a_limit_is_told_where_the_answer_would_have_been() {
    let fixture = Fixture::new().await;
    let limited = |_: &MessageFacts| Verdict {
        runs: RunVerdict::LimitMet,
        opens_thread: true,
        notice: notice(NoticeKind::LimitMet),
        ..admitted(&["helper"])
    };
    let captured = turn_of(fixture.judge(said("1", "question"), limited).await);
    assert_eq!(captured.new_runs, []);
    // The same message again tells it no second time.
    fixture.judge(said("1", "question"), limited).await;
    let target = Target {
        chat: "C1".to_owned(),
        thread: Some("1".to_owned()),
        topic: None,
        reply_to: Some("1".to_owned()),
    };
    assert_eq!(posts(&fixture).await, [(target, Part::plain("a line"))]);
    let turn: String = fixture
        .value(
            "SELECT format('%s %s %s %s', t.kind, p.kind, t.scope, t.content)
             FROM outbox o JOIN turns t ON t.seq = o.turn_seq
             JOIN participants p ON p.id = t.participant_id
             JOIN conversations c ON c.id = t.conversation_id AND c.thread = '1'",
        )
        .await;
    assert_eq!(turn, "notice system thread a line");
    let facts = fixture.facts(said("2", "more")).await;
    assert_eq!(facts.limit_notice_at_ms, Some(NOW_MS + 500_000));
}
