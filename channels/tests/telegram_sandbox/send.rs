//! The outbound half.

use std::time::Duration;

use serde_json::json;
use vocative_channels::telegram::TelegramChannel;
use vocative_contract::channel::{Channel as _, CheckReach};
use vocative_contract::envelope::{ChatKind, Place};
use vocative_contract::error::{ChannelError, Fallback};
use vocative_contract::handles::Outbound;
use vocative_contract::live::{LiveForm, LivePost};
use vocative_contract::outbound::{Delivered, Operation, Part, Post, ReadBack, Target};
use vocative_contract::people::People;
use vocative_sandbox::telegram::{TelegramFault, TelegramServer, TelegramWorld};

use crate::recorder::{BOUND, channel, settings, telegram};

const ANN: i64 = TelegramWorld::ANN;
const SUPERGROUP: i64 = TelegramWorld::SUPERGROUP;
const FORUM: i64 = TelegramWorld::FORUM;

fn target(chat: i64) -> Target {
    Target {
        chat: chat.to_string(),
        thread: None,
        topic: None,
        reply_to: None,
    }
}

fn post(target: Target, text: &str) -> Post {
    Post {
        marker: "01J".to_owned(),
        target,
        operation: Operation::Post,
        part: Part::plain(text),
    }
}

async fn outbound(server: &TelegramServer) -> Outbound {
    let channel = channel(server);
    let identity = channel.identify().await.unwrap();
    channel.outbound(&identity)
}

#[tokio::test]
async fn a_post_is_delivered_as_a_reply_with_its_entities() {
    let server = telegram().await;
    let outbound = outbound(&server).await;
    let asked = server.say(SUPERGROUP, ANN, "what broke?");
    let mut answer = post(
        Target {
            reply_to: Some(asked.to_string()),
            ..target(SUPERGROUP)
        },
        "Build 42 failed, see main.rs",
    );
    answer.part.entities = Some(json!([{"type": "bold", "offset": 0, "length": 8}]));
    let delivered = outbound.poster.deliver(&answer).await.unwrap();
    let seen = server.bot_posts(SUPERGROUP).pop().unwrap();
    assert_eq!(seen.text, "Build 42 failed, see main.rs");
    assert_eq!(seen.reply_to, Some(asked));
    assert_eq!(seen.entities[0]["type"], json!("bold"));
    let date = seen.wire["date"].as_i64().unwrap();
    assert_eq!(
        delivered,
        Delivered {
            chat: SUPERGROUP.to_string(),
            message_id: seen.message_id.to_string(),
            sent_at_ms: date * 1_000,
            shown: None,
        }
    );
}

#[tokio::test]
async fn what_the_platform_makes_of_a_text_is_told() {
    let server = telegram().await;
    let outbound = outbound(&server).await;
    let padded = post(target(SUPERGROUP), "  two words \n");
    let delivered = outbound.poster.deliver(&padded).await.unwrap();
    let seen = server.bot_posts(SUPERGROUP).pop().unwrap();
    assert_eq!(seen.text, "two words");
    assert_eq!(delivered.shown.unwrap().text, seen.text);
    let link = post(target(SUPERGROUP), "see https://example.org");
    assert_eq!(outbound.poster.deliver(&link).await.unwrap().shown, None);
}

#[tokio::test]
async fn an_answer_to_a_deleted_message_is_still_sent() {
    let server = telegram().await;
    let outbound = outbound(&server).await;
    let asked = server.say(SUPERGROUP, ANN, "never mind");
    assert!(server.delete(SUPERGROUP, asked));
    let to = Target {
        reply_to: Some(asked.to_string()),
        ..target(SUPERGROUP)
    };
    outbound
        .poster
        .deliver(&post(to, "here it is"))
        .await
        .unwrap();
    let seen = server.bot_posts(SUPERGROUP).pop().unwrap();
    assert_eq!((seen.text.as_str(), seen.reply_to), ("here it is", None));
}

#[tokio::test]
async fn a_topic_is_named_only_when_it_is_one() {
    let server = telegram().await;
    let outbound = outbound(&server).await;
    let to = |topic: Option<&str>| Target {
        topic: topic.map(str::to_owned),
        ..target(FORUM)
    };
    for (topic, thread) in [(Some("163"), Some(163)), (None, None), (Some("1"), None)] {
        outbound
            .poster
            .deliver(&post(to(topic), "news"))
            .await
            .unwrap();
        assert_eq!(server.bot_posts(FORUM).pop().unwrap().thread, thread);
    }
    let error = outbound
        .poster
        .deliver(&post(to(Some("999")), "news"))
        .await;
    assert!(matches!(
        error,
        Err(ChannelError::Rejected {
            fallback: Fallback::WithoutThread,
            ..
        })
    ));
    server.close_topic(FORUM, ANN, TelegramWorld::TOPIC_DEPLOYS);
    // Of one topic, not of its chat: the others' posts go on.
    let error = outbound
        .poster
        .deliver(&post(to(Some("170")), "news"))
        .await;
    assert!(
        matches!(
            error,
            Err(ChannelError::Rejected {
                fallback: Fallback::None,
                ..
            })
        ),
        "{error:?}"
    );
}

/// The class of a delivery's failure.
fn class(result: Result<Delivered, ChannelError>) -> String {
    let error = result.unwrap_err();
    let shown = format!("{error:?} {error} {}", error.reason());
    assert!(!shown.contains("loopback-telegram-token"), "{shown}");
    assert!(!shown.contains("/bot"), "{shown}");
    match error {
        ChannelError::NotSent { .. } => "not sent".to_owned(),
        ChannelError::RetryAfter { wait_ms, .. } => format!("wait {wait_ms}"),
        ChannelError::Unauthorized { .. } => "account".to_owned(),
        ChannelError::ChatRefused { .. } => "chat".to_owned(),
        ChannelError::ChatMoved { to_chat, .. } => format!("moved {to_chat}"),
        ChannelError::Rejected { fallback, .. } => format!("rejected {fallback:?}"),
        ChannelError::OutcomeUnknown { .. } => "unknown".to_owned(),
    }
}

#[tokio::test]
async fn a_failed_delivery_says_what_is_known() {
    let restart = TelegramFault::Refused {
        code: 500,
        description: "Internal Server Error: restart".to_owned(),
    };
    // The fault, the class, and whether the post is there all the same.
    for (fault, expected, is_there) in [
        (TelegramFault::ResetAfter, "unknown", true),
        (TelegramFault::ResetBefore, "unknown", false),
        (TelegramFault::GatewayAfter { code: 502 }, "unknown", true),
        (TelegramFault::Gateway { code: 504 }, "unknown", false),
        (TelegramFault::Garbage, "unknown", false),
        (restart, "unknown", false),
        (TelegramFault::Gateway { code: 403 }, "not sent", false),
        (
            TelegramFault::RateLimited { retry_after_s: 17 },
            "wait 17000",
            false,
        ),
    ] {
        let server = telegram().await;
        let outbound = outbound(&server).await;
        server.faults().next("sendMessage", fault.clone());
        let result = outbound
            .poster
            .deliver(&post(target(SUPERGROUP), "hello"))
            .await;
        assert_eq!(class(result), expected, "{fault:?}");
        assert_eq!(
            server.bot_posts(SUPERGROUP).len(),
            usize::from(is_there),
            "{fault:?}"
        );
        // One delivery is one request: nothing was tried again underneath.
        assert_eq!(server.faults().applied(), 1, "{fault:?}");
    }
}

#[tokio::test]
async fn a_refused_connection_is_not_sent() {
    let server = telegram().await;
    let outbound = outbound(&server).await;
    server.stop().await;
    let result = outbound
        .poster
        .deliver(&post(target(SUPERGROUP), "hello"))
        .await;
    assert_eq!(class(result), "not sent");
}

#[tokio::test]
async fn refusals_name_who_refuses() {
    let server = telegram().await;
    let outbound = outbound(&server).await;
    let deliver = |chat: i64, part: Part| {
        let outbound = &outbound;
        async move {
            let post = Post {
                part,
                ..post(target(chat), "")
            };
            class(outbound.poster.deliver(&post).await)
        }
    };
    let bad = Part {
        entities: Some(json!([{"type": "bold", "offset": 0, "length": 99}])),
        ..Part::plain("hello")
    };
    assert_eq!(deliver(SUPERGROUP, bad).await, "rejected Plain");
    let long = Part::plain("x".repeat(5_000));
    assert_eq!(deliver(SUPERGROUP, long).await, "rejected Resplit");
    assert_eq!(deliver(SUPERGROUP, Part::plain(" ")).await, "rejected None");
    assert_eq!(
        deliver(TelegramWorld::BOB, Part::plain("hello")).await,
        "chat"
    );
    assert_eq!(deliver(-42, Part::plain("hello")).await, "chat");
    server.kick_bot(SUPERGROUP, ANN);
    assert_eq!(deliver(SUPERGROUP, Part::plain("hello")).await, "chat");
    let new_id = server.migrate_to_supergroup(TelegramWorld::GROUP);
    assert_eq!(
        deliver(TelegramWorld::GROUP, Part::plain("hello")).await,
        format!("moved {new_id}")
    );
    server.revoke_token();
    assert_eq!(deliver(new_id, Part::plain("hello")).await, "account");
}

#[tokio::test]
async fn what_render_makes_is_taken_and_kept_unchanged() {
    let server = telegram().await;
    let outbound = outbound(&server).await;
    let line = "👍 *not bold*, <b>no tag</b> & a\ttab, see main.rs\r\n";
    let parts = outbound
        .renderer
        .render(&line.repeat(120), &People::nobody());
    assert!(parts.len() > 1);
    for part in parts {
        let post = Post {
            part: part.clone(),
            ..post(target(SUPERGROUP), "")
        };
        outbound.poster.deliver(&post).await.unwrap();
        assert_eq!(server.bot_posts(SUPERGROUP).pop().unwrap().text, part.text);
    }
}

#[tokio::test]
async fn typing_is_shown_and_its_failure_does_not_matter() {
    let server = telegram().await;
    let outbound = outbound(&server).await;
    let failed = TelegramFault::Gateway { code: 502 };
    server.faults().next("sendChatAction", failed);
    outbound.signs.show_working(&target(SUPERGROUP)).await;
    outbound.signs.show_working(&target(SUPERGROUP)).await;
    assert!(server.wait_for_action(SUPERGROUP, "typing", BOUND).await);
    // Once it is too much for the platform it is not asked again, in that chat.
    let refused = TelegramFault::RateLimited { retry_after_s: 30 };
    server.faults().next("sendChatAction", refused);
    for _ in 0..3 {
        outbound.signs.show_working(&target(SUPERGROUP)).await;
    }
    assert_eq!(server.faults().applied(), 2);
    let bad = TelegramFault::Gateway { code: 502 };
    server.faults().next("sendChatAction", bad);
    outbound.signs.show_working(&target(SUPERGROUP)).await;
    assert_eq!(server.faults().applied(), 2, "it was asked again");
    outbound.signs.show_working(&target(FORUM)).await;
    assert_eq!(server.faults().applied(), 3);
}

#[tokio::test]
async fn names_and_chats_are_looked_up() {
    let server = telegram().await;
    let outbound = outbound(&server).await;
    let name = outbound
        .look_ups
        .person_name(&ANN.to_string())
        .await
        .unwrap();
    assert_eq!(name.as_deref(), Some("Ann"));
    assert_eq!(outbound.look_ups.person_name("77").await.unwrap(), None);
    let chat = format!("chat:{}", TelegramWorld::CHANNEL);
    let name = outbound.look_ups.person_name(&chat).await.unwrap();
    assert_eq!(name.as_deref(), Some("Announcements"));
    assert_eq!(
        outbound
            .look_ups
            .chat_facts(&SUPERGROUP.to_string())
            .await
            .unwrap(),
        Place {
            chat: SUPERGROUP.to_string(),
            kind: Some(ChatKind::Private),
            title: Some("Platform team".to_owned()),
            ..Place::default()
        }
    );
    let nothing = outbound
        .look_ups
        .read_back(&post(target(SUPERGROUP), "x"), 0)
        .await;
    assert_eq!(nothing.unwrap(), ReadBack::Unsupported);
}

#[tokio::test]
async fn an_answer_that_never_comes_leaves_the_outcome_unknown() {
    let server = telegram().await;
    let mut settings = settings(&server.api_url(), &server.token());
    settings.call_timeout_ms = 200;
    let channel = TelegramChannel::new(settings);
    let identity = channel.identify().await.unwrap();
    let outbound = channel.outbound(&identity);
    let late = TelegramFault::StallAfter;
    server.faults().next("sendMessage", late);
    let result = outbound
        .poster
        .deliver(&post(target(SUPERGROUP), "hello"))
        .await;
    assert_eq!(class(result), "unknown");
    assert_eq!(server.bot_posts(SUPERGROUP).len(), 1);
}

#[tokio::test]
async fn no_debug_output_shows_the_token() {
    let server = telegram().await;
    let settings = settings(&server.api_url(), &server.token());
    let shown = format!("{settings:?}");
    let channel = TelegramChannel::new(settings);
    let shown = format!("{shown} {channel:?}");
    assert!(!shown.contains("loopback-telegram-token"), "{shown}");
    let findings = format!("{:?}", channel.check(CheckReach::Connection).await);
    assert!(!findings.contains("loopback-telegram-token"), "{findings}");
}

#[tokio::test]
async fn a_group_gets_posts_no_faster_than_the_platform_takes_and_a_429_is_kept_to() {
    let server = telegram().await;
    server.faults().limit_sends_per_minute(Some(20));
    let outbound = outbound(&server).await;
    let wait = |chat: i64| outbound.poster.wait_before(&target(chat));
    for _ in 0..5 {
        assert_eq!(wait(SUPERGROUP), Duration::ZERO);
        let text = post(target(SUPERGROUP), "again");
        outbound.poster.deliver(&text).await.unwrap();
    }
    let next = wait(SUPERGROUP);
    assert!(next > Duration::from_secs(2), "{next:?}");
    // A busy group holds up nobody else.
    assert_eq!([wait(FORUM), wait(ANN)], [Duration::ZERO; 2]);

    let flood = TelegramFault::RateLimited { retry_after_s: 30 };
    server.faults().next("sendMessage", flood);
    let refused = outbound
        .poster
        .deliver(&post(target(FORUM), "too much"))
        .await;
    assert!(matches!(refused, Err(ChannelError::RetryAfter { .. })));
    let next = wait(FORUM);
    assert!(next > Duration::from_secs(28), "{next:?}");
}

/// A message of ours, and what is done with it.
fn done(chat: i64, operation: Operation, text: &str) -> Post {
    Post {
        operation,
        ..post(target(chat), text)
    }
}

#[tokio::test]
async fn a_message_is_edited_and_deleted_also_when_that_was_done_before() {
    let server = telegram().await;
    let outbound = outbound(&server).await;
    let sent = outbound
        .poster
        .deliver(&post(target(ANN), "first"))
        .await
        .unwrap();
    let message_id = sent.message_id.clone();
    let edit = Operation::Edit {
        message_id: message_id.clone(),
    };
    for _ in 0..2 {
        // The second time it is not modified, which is what was wanted.
        let edited = outbound
            .poster
            .deliver(&done(ANN, edit.clone(), "second"))
            .await;
        assert_eq!(edited.unwrap().message_id, message_id);
    }
    let seen = server.bot_posts(ANN).pop().unwrap();
    assert_eq!((seen.text.as_str(), seen.edited), ("second", true));

    let delete = Operation::Delete { message_id };
    for _ in 0..2 {
        outbound
            .poster
            .deliver(&done(ANN, delete.clone(), ""))
            .await
            .unwrap();
    }
    assert!(server.bot_posts(ANN).pop().unwrap().deleted);
    let late = outbound.poster.deliver(&done(ANN, edit, "third")).await;
    assert!(
        matches!(
            late,
            Err(ChannelError::Rejected {
                fallback: Fallback::NewPost,
                ..
            })
        ),
        "{late:?}"
    );
}

#[tokio::test]
async fn a_text_that_is_written_shows_as_a_draft_until_it_is_sent() {
    let server = telegram().await;
    let outbound = outbound(&server).await;
    let live = |chat: i64, text: &str| LivePost {
        target: target(chat),
        form: LiveForm::Preview { id: 7 },
        part: outbound.renderer.render_live(text).unwrap(),
    };
    outbound
        .signs
        .show_live(&live(ANN, "**Tomorrow** at ni"))
        .await
        .unwrap();
    let draft = server.shown_draft(ANN).unwrap();
    assert_eq!((draft.id, draft.text.as_str()), (7, "Tomorrow at …"));
    outbound
        .poster
        .deliver(&post(target(ANN), "Tomorrow at nine."))
        .await
        .unwrap();
    assert_eq!(server.shown_draft(ANN), None);

    // Groups have none; a refusal for the rate keeps the next ones from being asked.
    let in_group = outbound.signs.show_live(&live(SUPERGROUP, "x y")).await;
    assert!(matches!(in_group, Err(ChannelError::Rejected { .. })));
    let flood = TelegramFault::RateLimited { retry_after_s: 9 };
    server.faults().next("sendMessageDraft", flood);
    for _ in 0..2 {
        let refused = outbound.signs.show_live(&live(ANN, "again and")).await;
        assert!(
            matches!(refused, Err(ChannelError::RetryAfter { wait_ms, .. }) if wait_ms > 8_000),
            "{refused:?}"
        );
    }
    assert_eq!(server.drafts(ANN).len(), 1);
}

#[tokio::test]
async fn a_reaction_is_put_and_taken_away_and_a_word_to_one_person_is_a_reply() {
    let server = telegram().await;
    let outbound = outbound(&server).await;
    let asked = server.say(SUPERGROUP, ANN, "what broke?");
    let message_id = asked.to_string();
    let of = |operation, text: &str| Post {
        operation,
        ..post(target(SUPERGROUP), text)
    };
    let react = Operation::React {
        message_id: message_id.clone(),
    };
    outbound
        .poster
        .deliver(&of(react.clone(), "👀"))
        .await
        .unwrap();
    let sign = server.bot_reaction(SUPERGROUP, asked).unwrap();
    assert_eq!(sign[0]["emoji"], "👀");
    let unreact = Operation::Unreact { message_id };
    outbound.poster.deliver(&of(unreact, "👀")).await.unwrap();
    let sign = server.bot_reaction(SUPERGROUP, asked).unwrap();
    assert_eq!(sign, serde_json::json!([]));
    let refused = outbound.poster.deliver(&of(react, "no emoji")).await;
    assert!(refused.is_err());
    let tell = Operation::Ephemeral {
        person: ANN.to_string(),
    };
    outbound
        .poster
        .deliver(&of(tell, "only you"))
        .await
        .unwrap();
    assert_eq!(server.bot_posts(SUPERGROUP)[0].text, "only you");
}
