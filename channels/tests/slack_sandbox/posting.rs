//! Posts: sent once, looked for, refused; and what else is asked of the Web API.

use std::time::Duration;

use secrecy::SecretString;
use tokio::sync::Semaphore;
use vocative_channels::slack::{SlackChannel, SlackSettings};
use vocative_contract::channel::{Channel as _, CheckReach, FindingLevel};
use vocative_contract::envelope::{ChatKind, Event};
use vocative_contract::error::ChannelError;
use vocative_contract::outbound::{Post, ReadBack};
use vocative_contract::people::People;
use vocative_sandbox::slack::{CallFault, UserPost};
use vocative_sandbox::wire::{WireKind, WireLog, WireRecord};

use crate::stage::{Seen, Stage, WAIT, ms, post, settings, slack_server, slack_server_with};

#[tokio::test]
async fn a_post_arrives_as_literal_text_and_comes_back_as_our_own() {
    let stage = Stage::new().await;
    let root = stage.slack.say("#general", "ann", "root");
    let outbound = stage.outbound();
    let part = outbound
        .renderer
        .render("<!channel> <@U0BOB> & done", &People::nobody())
        .remove(0);
    let post = Post {
        part,
        ..post("o-1", "C0GENERAL", Some(&root), "")
    };
    let delivered = outbound.poster.deliver(&post).await.unwrap();
    assert_eq!(delivered.chat, "C0GENERAL");
    assert_eq!(delivered.sent_at_ms, ms(&delivered.message_id));
    let posted = stage.slack.posts("#general").pop().unwrap();
    assert_eq!(posted.text, "&lt;!channel&gt; &lt;@U0BOB&gt; &amp; done");
    assert_eq!(posted.thread_ts.as_deref(), Some(root.as_str()));
    let is_echo = |seen: &Seen| {
        let envelopes = seen.envelopes.lock().unwrap();
        envelopes.iter().any(|it| {
            matches!(&it.event, Event::OwnPost { message_id, marker, .. }
                if *message_id == delivered.message_id && marker.as_deref().is_none_or(|it| it == "o-1"))
        })
    };
    stage.seen.until("echo", is_echo).await;
    stage.end().await;
}

#[tokio::test]
async fn a_post_of_unknown_outcome_is_found_or_not() {
    let stage = Stage::new().await;
    let root = stage.slack.say("#general", "ann", "root");
    let outbound = stage.outbound();
    let faults = [
        CallFault::StatusAfterApply(500),
        CallFault::ResetAfter,
        CallFault::LoseResponse,
    ];
    for (n, fault) in faults.into_iter().enumerate() {
        for (place, thread) in [("thread", Some(root.as_str())), ("channel", None)] {
            let post = post(&format!("o-{place}-{n}"), "C0GENERAL", thread, "answer");
            stage.slack.faults().next("chat.postMessage", fault.clone());
            let error = outbound.poster.deliver(&post).await.unwrap_err();
            assert!(
                matches!(error, ChannelError::OutcomeUnknown { .. }),
                "{error:?}"
            );
            let found = outbound.look_ups.read_back(&post, ms(&root)).await.unwrap();
            let ReadBack::Found(delivered) = found else {
                panic!("{place} {n}: {found:?}");
            };
            let posts = stage.slack.posts("#general");
            assert!(posts.iter().any(|it| it.ts == delivered.message_id));
        }
    }
    stage
        .slack
        .faults()
        .next("chat.postMessage", CallFault::Status(503));
    let never = post("o-never", "C0GENERAL", None, "answer");
    outbound.poster.deliver(&never).await.unwrap_err();
    assert_eq!(
        outbound
            .look_ups
            .read_back(&never, ms(&root))
            .await
            .unwrap(),
        ReadBack::NotFound
    );
    stage.end().await;
}

#[tokio::test]
async fn a_copied_marker_is_not_our_post() {
    let stage = Stage::new().await;
    let metadata =
        serde_json::json!({"event_type": "vocative_reply", "event_payload": {"outbox_id": "o-1"}});
    let ts = stage.slack.post_with(UserPost {
        channel: "#general".to_owned(),
        user: "otherbot".to_owned(),
        text: "mine".to_owned(),
        metadata: Some(metadata),
        ..UserPost::default()
    });
    let found = stage
        .outbound()
        .look_ups
        .read_back(&post("o-1", "C0GENERAL", None, "x"), ms(&ts))
        .await;
    assert_eq!(found.unwrap(), ReadBack::NotFound);
    stage.end().await;
}

#[tokio::test]
async fn many_pages_are_read_back() {
    // Large pages of a loopback platform on a busy machine take their time.
    let patient = |settings: &mut SlackSettings| settings.http.read_ms = 20_000;
    let stage = Stage::with(patient, Semaphore::MAX_PERMITS / 2).await;
    let first = post("o-first", "C0GENERAL", None, "answer");
    let delivered = stage.outbound().poster.deliver(&first).await.unwrap();
    for n in 0..450 {
        stage.slack.say("#general", "ann", &format!("line {n}"));
    }
    let found = stage
        .outbound()
        .look_ups
        .read_back(&first, delivered.sent_at_ms)
        .await
        .unwrap();
    assert_eq!(found, ReadBack::Found(delivered));
    stage.end().await;
}

#[tokio::test]
async fn a_delivery_that_fails_is_one_request() {
    let stage = Stage::new().await;
    let outbound = stage.outbound();
    let hello = post("o-1", "C0GENERAL", None, "hello");
    // A connection that is kept for what follows.
    outbound.poster.deliver(&hello).await.unwrap();
    // The fault, and whether the post is there all the same. Only one request meets it: a second one,
    // made underneath, would be answered and be there, too.
    for (fault, posts) in [
        (CallFault::ResetBefore, 0),
        (CallFault::ResetAfter, 1),
        (CallFault::Status(503), 0),
        (CallFault::StatusAfterApply(500), 1),
        (CallFault::ErrorAfterApply("internal_error".to_owned()), 1),
        (CallFault::RateLimited(7), 0),
        (CallFault::Html, 0),
    ] {
        let before = stage.slack.posts("#general").len();
        stage.slack.faults().next("chat.postMessage", fault.clone());
        outbound.poster.deliver(&hello).await.unwrap_err();
        let after = stage.slack.posts("#general").len();
        assert_eq!(after - before, posts, "{fault:?}");
    }
    stage.end().await;
}

#[tokio::test]
async fn refusals_say_what_to_do_next() {
    let stage = Stage::new().await;
    let outbound = stage.outbound();
    let hello = post("o-1", "C0GENERAL", None, "hello");
    stage
        .slack
        .faults()
        .next("chat.postMessage", CallFault::RateLimited(7));
    let error = outbound.poster.deliver(&hello).await.unwrap_err();
    assert!(
        matches!(error, ChannelError::RetryAfter { wait_ms: 7_000, .. }),
        "{error:?}"
    );
    stage
        .slack
        .faults()
        .next("chat.postMessage", CallFault::ResetBefore);
    let error = outbound.poster.deliver(&hello).await.unwrap_err();
    assert!(
        matches!(error, ChannelError::OutcomeUnknown { .. }),
        "{error:?}"
    );
    for chat in ["C0ELSEWHERE", "C0ATTIC", "C0NOWHERE"] {
        let error = outbound
            .poster
            .deliver(&post("o-2", chat, None, "hello"))
            .await
            .unwrap_err();
        assert!(
            matches!(error, ChannelError::ChatRefused { .. }),
            "{error:?}"
        );
    }
    stage
        .slack
        .faults()
        .set_account_error(Some("token_revoked"));
    let error = outbound.poster.deliver(&hello).await.unwrap_err();
    assert!(
        matches!(error, ChannelError::Unauthorized { .. }),
        "{error:?}"
    );
    stage.cancel.cancel();
}

#[tokio::test]
async fn a_room_that_was_refused_rests_alone_and_several_are_the_workspace() {
    let slack = slack_server().await;
    let channel = SlackChannel::new(settings(&slack)).unwrap();
    let identity = channel.identify().await.unwrap();
    let outbound = channel.outbound(&identity);
    let target = |chat: &str| post("o-1", chat, None, "hello").target;
    let refuse = async |chat: &str| {
        slack
            .faults()
            .next("chat.postMessage", CallFault::RateLimited(600));
        let refused = outbound
            .poster
            .deliver(&post("o-1", chat, None, "hello"))
            .await;
        let wait_ms = match refused {
            Err(ChannelError::RetryAfter { wait_ms, .. }) => wait_ms,
            other => panic!("{other:?}"),
        };
        assert_eq!(wait_ms, 600_000);
    };
    refuse("C0GENERAL").await;
    let wait = outbound.poster.wait_before(&target("C0GENERAL"));
    assert!(wait > Duration::from_secs(590), "{wait:?}");
    assert_eq!(
        outbound.poster.wait_before(&target("C0OPS")),
        Duration::ZERO
    );
    refuse("C0OPS").await;
    assert_eq!(
        outbound.poster.wait_before(&target("D0ANN")),
        Duration::ZERO
    );
    refuse("D0ANN").await;
    let wait = outbound.poster.wait_before(&target("C0SECRET"));
    assert!((20..=30).contains(&wait.as_secs()), "{wait:?}");
}

#[tokio::test]
async fn a_method_that_was_refused_is_not_called_before_its_time() {
    let wire = WireLog::new();
    let slack = slack_server_with(wire.clone()).await;
    let channel = SlackChannel::new(settings(&slack)).unwrap();
    let identity = channel.identify().await.unwrap();
    let outbound = channel.outbound(&identity);
    let calls = |method: &str| {
        let is_call =
            |record: &&WireRecord| record.kind == WireKind::Request && record.name == method;
        wire.records().iter().filter(is_call).count()
    };
    for method in ["users.info", "conversations.history"] {
        slack.faults().next(method, CallFault::RateLimited(600));
    }
    for _ in 0..20 {
        let refused = [
            outbound.look_ups.person_name("U0ANN").await.map(|_| ()),
            outbound
                .look_ups
                .read_back(&post("o-1", "C0GENERAL", None, "hello"), 0)
                .await
                .map(|_| ()),
        ];
        for refused in refused {
            let Err(ChannelError::RetryAfter { wait_ms, .. }) = refused else {
                panic!("{refused:?}");
            };
            assert!(wait_ms > 590_000, "{wait_ms}");
        }
    }
    assert_eq!(
        [calls("users.info"), calls("conversations.history")],
        [1, 1]
    );
    // Other methods go on.
    outbound.look_ups.chat_facts("C0GENERAL").await.unwrap();
    outbound
        .poster
        .deliver(&post("o-2", "C0GENERAL", None, "hello"))
        .await
        .unwrap();
}

#[tokio::test]
async fn names_are_looked_up_once() {
    let stage = Stage::new().await;
    let outbound = stage.outbound();
    assert_eq!(
        outbound
            .look_ups
            .person_name("U0ANN")
            .await
            .unwrap()
            .as_deref(),
        Some("Ann")
    );
    assert_eq!(
        outbound.look_ups.person_name("U0NOBODY").await.unwrap(),
        None
    );
    let place = outbound.look_ups.chat_facts("C0SECRET").await.unwrap();
    assert_eq!(
        (place.kind, place.title.as_deref()),
        (Some(ChatKind::Private), Some("#secret"))
    );
    assert_eq!(
        outbound.look_ups.chat_facts("D0ANN").await.unwrap().kind,
        Some(ChatKind::Direct)
    );
    assert_eq!(
        outbound.look_ups.chat_facts("G0GROUP").await.unwrap().kind,
        Some(ChatKind::GroupDirect)
    );
    assert!(
        outbound
            .look_ups
            .chat_facts("C0PARTNERS")
            .await
            .unwrap()
            .is_shared
    );
    stage.slack.faults().next("*", CallFault::Status(500));
    assert_eq!(
        outbound
            .look_ups
            .person_name("U0ANN")
            .await
            .unwrap()
            .as_deref(),
        Some("Ann")
    );
    assert_eq!(
        outbound.look_ups.person_name("U0NOBODY").await.unwrap(),
        None
    );
    outbound.look_ups.chat_facts("C0SECRET").await.unwrap();
    // The queued failure is still there: nothing was asked again.
    outbound.look_ups.chat_facts("C0OPS").await.unwrap_err();
    stage.slack.rename_channel("#secret", "open-secret");
    stage.seen.until_heard(1).await;
    let place = outbound.look_ups.chat_facts("C0SECRET").await.unwrap();
    assert_eq!(place.title.as_deref(), Some("#open-secret"));
    stage.end().await;
}

#[tokio::test]
async fn a_live_check_says_what_is_fine_and_what_to_fix() {
    let slack = slack_server().await;
    let fine = SlackChannel::new(settings(&slack))
        .unwrap()
        .check(CheckReach::Connection)
        .await;
    let worst = fine.iter().map(|finding| finding.level).max();
    assert_eq!(worst, Some(FindingLevel::Fine), "{fine:?}");
    let texts: Vec<_> = fine.iter().map(|finding| finding.text.as_str()).collect();
    assert_eq!(
        texts[..3],
        [
            "signed in to workspace Acme as vocative",
            "all needed scopes are granted",
            "a socket opens and says hello",
        ]
    );
    assert!(slack.wait_for_socket_count(0, WAIT).await);
    let calls = SlackChannel::new(settings(&slack)).unwrap();
    let calls = calls.check(CheckReach::Calls).await;
    assert!(!calls.iter().any(|it| it.text.contains("socket")));

    let mut swapped = settings(&slack);
    std::mem::swap(&mut swapped.app_token, &mut swapped.bot_token);
    let findings = SlackChannel::new(swapped)
        .unwrap()
        .check(CheckReach::Connection)
        .await;
    let problems = findings
        .iter()
        .filter(|it| it.level == FindingLevel::Refused);
    assert_eq!(problems.count(), 2, "{findings:?}");
}

#[tokio::test]
async fn no_token_shows_in_any_error_or_debug_form() {
    let slack = slack_server().await;
    let settings = SlackSettings {
        app_token: SecretString::from("xapp-SECRET".to_owned()),
        bot_token: SecretString::from("xoxb-SECRET".to_owned()),
        ..settings(&slack)
    };
    let channel = SlackChannel::new(settings.clone()).unwrap();
    let mut shown = format!("{settings:?} {channel:?}");
    for fault in [
        None,
        Some(CallFault::ResetBefore),
        Some(CallFault::Html),
        Some(CallFault::Status(500)),
    ] {
        if let Some(fault) = fault {
            slack.faults().next("auth.test", fault);
        }
        let error = channel.identify().await.unwrap_err();
        shown += &format!("{error:?} {error} {}", error.reason());
    }
    shown += &format!("{:?}", channel.check(CheckReach::Connection).await);
    let closed = SlackSettings {
        api_url: "http://127.0.0.1:1/api/".to_owned(),
        ..settings
    };
    let error = SlackChannel::new(closed)
        .unwrap()
        .identify()
        .await
        .unwrap_err();
    assert!(matches!(error, ChannelError::NotSent { .. }), "{error:?}");
    shown += &format!("{error:?} {}", error.reason());
    assert!(!shown.contains("SECRET"), "{shown}");
}
