//! What is heard: translated, accepted, and only then acknowledged.

use serde_json::json;
use vocative_channels::slack::{IN_FLIGHT_BYTES_MAX, IN_FLIGHT_MAX};
use vocative_contract::channel::Channel as _;
use vocative_contract::envelope::{ChatKind, Event};
use vocative_sandbox::slack::{EventFault, RetryPlan, UserPost};

use crate::stage::{Seen, Stage, WAIT};

#[tokio::test]
async fn the_adapter_learns_who_it_is() {
    let stage = Stage::new().await;
    let identity = &stage.identity;
    assert_eq!(
        (identity.account.as_str(), identity.account_name.as_str()),
        ("T0ACME", "Acme")
    );
    assert_eq!(identity.user_id, "U0VOCATIVE");
    assert_eq!(identity.other_ids, ["B0VOCATIVE"]);
    assert_eq!(identity.warnings, Vec::<String>::new());
    stage.end().await;
}

#[tokio::test]
async fn a_post_is_accepted_and_then_acknowledged() {
    let stage = Stage::new().await;
    let ts = stage
        .slack
        .say("#general", "ann", "hello & <welcome> @vocative");
    stage.seen.until_heard(2).await;
    stage.until_all_acked().await;
    let posts = stage.seen.posts();
    assert_eq!(posts.len(), 2, "message and app_mention");
    for post in &posts {
        assert_eq!(
            (post.place.chat.as_str(), post.message_id.as_str()),
            ("C0GENERAL", ts.as_str())
        );
        assert_eq!(post.text, "hello & <welcome> \u{FFF9}U0VOCATIVE\u{FFFB}");
        assert!(post.mentions_bot);
        assert_eq!(post.sender.id, "U0ANN");
    }
    let kinds: Vec<_> = posts.iter().map(|post| post.place.kind).collect();
    assert!(kinds.contains(&Some(ChatKind::Public)) && kinds.contains(&None));
    assert_eq!(stage.slack.acked_envelopes().len(), 2);
    stage.end().await;
}

#[tokio::test]
async fn places_and_people_are_what_they_are() {
    let stage = Stage::new().await;
    stage.slack.say("D0ANN", "ann", "direct");
    stage.slack.say("G0GROUP", "bob", "group");
    stage.slack.say("#secret", "ann", "private");
    stage.slack.say("#partners", "sue", "stranger");
    stage.slack.post_with(UserPost {
        channel: "#general".to_owned(),
        user: "otherbot".to_owned(),
        text: "beep".to_owned(),
        ..UserPost::default()
    });
    stage.seen.until_heard(5).await;
    let posts = stage.seen.posts();
    let find = |text: &str| posts.iter().find(|post| post.text == text).unwrap();
    assert_eq!(find("direct").place.kind, Some(ChatKind::Direct));
    assert_eq!(find("group").place.kind, Some(ChatKind::GroupDirect));
    assert_eq!(find("private").place.kind, Some(ChatKind::Private));
    let stranger = find("stranger");
    assert!(stranger.sender.is_stranger && stranger.place.is_shared);
    assert!(!find("direct").sender.is_stranger);
    assert_eq!(
        find("beep").sender.kind,
        vocative_contract::envelope::SenderKind::Bot
    );
    stage.end().await;
}

#[tokio::test]
async fn edits_and_deletes_are_heard_and_unfurls_are_not() {
    let stage = Stage::new().await;
    let ts = stage.slack.say("#general", "ann", "fixd https://x.y");
    stage.slack.unfurl(
        "#general",
        &ts,
        serde_json::json!([{"from_url": "https://x.y", "title": "X"}]),
    );
    stage.slack.edit("#general", &ts, "fixed");
    stage.slack.count_replies("#general", &ts);
    stage.slack.delete("#general", &ts);
    stage.seen.until_heard(5).await;
    stage.until_all_acked().await;
    let envelopes = stage.seen.envelopes.lock().unwrap().clone();
    let events: Vec<_> = envelopes
        .into_iter()
        .map(|envelope| envelope.event)
        .collect();
    let count = |is: fn(&Event) -> bool| events.iter().filter(|event| is(event)).count();
    assert_eq!(count(|event| matches!(event, Event::Posted(_))), 1);
    assert_eq!(
        count(|event| matches!(event, Event::Edited(it) if it.text == "fixed")),
        1
    );
    assert_eq!(count(|event| matches!(event, Event::Edited(_))), 1);
    assert_eq!(count(|event| matches!(event, Event::Deleted { .. })), 1);
    stage.end().await;
}

#[tokio::test]
async fn duplicates_are_accepted_and_acknowledged() {
    let stage = Stage::new().await;
    stage.slack.faults().next_event(EventFault::Duplicate(2));
    let ts = stage.slack.say("#general", "ann", "thrice");
    stage.seen.until_heard(3).await;
    stage.until_all_acked().await;
    let posts = stage.seen.posts();
    assert!(posts.iter().all(|post| post.message_id == ts));
    stage.end().await;
}

#[tokio::test]
async fn a_slash_command_is_acknowledged() {
    let stage = Stage::new().await;
    stage
        .slack
        .slash_command("#general", "ann", "/agent", "status");
    stage.seen.until_heard(1).await;
    stage.until_all_acked().await;
    let envelopes = stage.seen.envelopes.lock().unwrap().clone();
    let Event::Command(command) = &envelopes[0].event else {
        panic!("{envelopes:?}");
    };
    assert_eq!(
        (command.name.as_str(), command.text.as_str()),
        ("/agent", "status")
    );
    assert_eq!(command.place.chat, "C0GENERAL");
    stage.end().await;
}

#[tokio::test]
async fn nothing_is_acknowledged_while_storage_fails_and_slack_sends_again() {
    let stage = Stage::new().await;
    stage.slack.faults().set_retry_plan(RetryPlan {
        after_ms: vec![50, 50, 50, 50, 60_000],
        ..RetryPlan::default()
    });
    *stage.seen.failing.lock().unwrap() = true;
    let mut refused = stage.seen.changed.subscribe();
    stage.slack.say("#general", "ann", "kept by Slack");
    for _ in 0..2 {
        tokio::time::timeout(WAIT, refused.changed())
            .await
            .unwrap()
            .unwrap();
    }
    assert_eq!(stage.slack.acked_envelopes(), []);
    assert_eq!(stage.seen.texts(), Vec::<String>::new());
    *stage.seen.failing.lock().unwrap() = false;
    stage.seen.until_heard(1).await;
    stage.until_all_acked().await;
    assert!(stage.slack.acked_envelopes()[0].attempts > 1);
    stage.end().await;
}

#[tokio::test]
async fn many_envelopes_are_in_flight_and_a_full_hand_stops_the_reading() {
    let stage = Stage::with(|_| {}, 0).await;
    let count = IN_FLIGHT_MAX + 44;
    for n in 0..count {
        stage.slack.say("#general", "ann", &format!("line {n}"));
    }
    // The gate holds every commit back.
    let storing = |seen: &Seen| *seen.storing.lock().unwrap();
    stage
        .seen
        .until("a full hand", |seen| storing(seen).0 == IN_FLIGHT_MAX)
        .await;
    // Round trips on the same thread give a reader that does not stop all the time it needs.
    for _ in 0..20 {
        stage.channel.identify().await.unwrap();
    }
    assert_eq!(stage.slack.acked_envelopes(), []);
    stage.seen.gate.add_permits(1);
    stage.seen.until_heard(count).await;
    stage.until_all_acked().await;
    let texts = stage.seen.texts();
    let expected: Vec<_> = (0..count).map(|n| format!("line {n}")).collect();
    assert_eq!(texts, expected, "one socket keeps the order");
    assert_eq!(storing(&stage.seen), (0, IN_FLIGHT_MAX));
    stage.end().await;
}

#[tokio::test]
async fn a_few_large_envelopes_are_a_full_hand_too() {
    const LARGE: usize = 4 << 20;
    let stage = Stage::with(|_| {}, 0).await;
    let count = IN_FLIGHT_BYTES_MAX / LARGE + 2;
    for n in 0..count {
        let blocks = "x".repeat(LARGE);
        stage.slack.raw_event(
            json!({"type": "message", "user": "U0ANN", "text": "hi", "blocks": blocks,
            "channel": "C0GENERAL", "channel_type": "channel", "ts": format!("1763712000.{n:06}")}),
        );
    }
    let full = IN_FLIGHT_BYTES_MAX / LARGE;
    let storing = |seen: &Seen| *seen.storing.lock().unwrap();
    stage
        .seen
        .until("a full hand", |seen| storing(seen).0 == full)
        .await;
    for _ in 0..20 {
        stage.channel.identify().await.unwrap();
    }
    stage.seen.gate.add_permits(1);
    stage.seen.until_heard(count).await;
    stage.until_all_acked().await;
    assert_eq!(storing(&stage.seen), (0, full));
    stage.end().await;
}

#[tokio::test]
async fn what_cannot_be_read_is_acknowledged_or_counted() {
    let stage = Stage::new().await;
    let malformed = |seen: &Seen| *seen.malformed.lock().unwrap();
    stage.slack.raw_frame("not json");
    stage.slack.raw_frame(r#"{"type":"dream"}"#);
    stage
        .seen
        .until("malformed", |seen| malformed(seen) == 2)
        .await;
    stage.slack.raw_payload(
        serde_json::json!({"type": "event_callback", "event": {"type": "message", "channel": 7}}),
    );
    stage.slack.raw_payload(serde_json::json!("text"));
    stage
        .slack
        .raw_payload(serde_json::json!({"type": "app_rate_limited", "minute_rate_limited": 1}));
    stage.seen.until_heard(3).await;
    stage.until_all_acked().await;
    let envelopes = stage.seen.envelopes.lock().unwrap().clone();
    let untranslated = envelopes
        .iter()
        .filter(|it| matches!(it.event, Event::Untranslated { .. }));
    assert_eq!(untranslated.count(), 2);
    stage.slack.say("#general", "ann", "still here");
    stage.seen.until_heard(4).await;
    stage.end().await;
}
