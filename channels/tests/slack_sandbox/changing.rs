//! Messages that change after they were posted: edits, deletes, streams, and the status of a thread.

use std::time::Duration;

use serde_json::json;
use vocative_contract::error::{ChannelError, Fallback};
use vocative_contract::live::{LiveForm, LivePost};
use vocative_contract::outbound::{Operation, Part, PartStream, Post, PostSpeaker, ReadBack};
use vocative_contract::people::People;
use vocative_sandbox::slack::CallFault;
use vocative_sandbox::wire::{WireKind, WireLog, WireRecord};

use crate::stage::{ms, outbound_of, post, slack_server, slack_server_with};

#[tokio::test]
async fn a_message_is_edited_and_deleted_and_keeps_its_marker() {
    let slack = slack_server().await;
    let outbound = outbound_of(&slack).await;
    let first = post("o-1", "D0ANN", None, "first");
    let message_id = outbound.poster.deliver(&first).await.unwrap().message_id;
    let done = |operation: Operation, part: Part| Post {
        operation,
        part,
        ..post("o-2", "D0ANN", None, "")
    };
    let edit = Operation::Edit {
        message_id: message_id.clone(),
    };
    let marked = outbound
        .renderer
        .render("**second**", &People::nobody())
        .remove(0);
    let edited = outbound
        .poster
        .deliver(&done(edit.clone(), marked))
        .await
        .unwrap();
    assert_eq!(edited.message_id, message_id);
    assert_eq!(slack.posts("D0ANN")[0].shown(), "**second**");
    // The blocks go with the text that they stood for.
    outbound
        .poster
        .deliver(&done(edit.clone(), Part::plain("third &lt;!here&gt;")))
        .await
        .unwrap();
    let seen = slack.posts("D0ANN").remove(0);
    assert_eq!(
        (seen.shown().as_str(), seen.blocks),
        ("third <!here>", None)
    );
    let marker = &seen.metadata.unwrap()["event_payload"]["outbox_id"];
    assert_eq!(*marker, json!("o-1"));

    let delete = Operation::Delete { message_id };
    for _ in 0..2 {
        let part = Part::plain("");
        outbound
            .poster
            .deliver(&done(delete.clone(), part))
            .await
            .unwrap();
    }
    assert!(slack.posts("D0ANN")[0].deleted);
    let late = outbound
        .poster
        .deliver(&done(edit, Part::plain("fourth")))
        .await;
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

/// A post in a thread that is to begin as a stream.
fn begun(marker: &str, thread: &str, text: &str) -> Post {
    let mut begun = post(marker, "C0GENERAL", Some(thread), &format!("{text} …"));
    begun.part = begun.part.streamed(PartStream {
        text: text.to_owned(),
        person: Some("U0ANN".to_owned()),
    });
    begun
}

#[tokio::test]
async fn a_stream_takes_words_and_is_stopped_before_it_is_edited_or_deleted() {
    let wire = WireLog::new();
    let slack = slack_server_with(wire.clone()).await;
    let outbound = outbound_of(&slack).await;
    let root = slack.say("#general", "ann", "when?");
    let first = begun("o-1", &root, "Tomorrow <!here>");
    let delivered = outbound.poster.deliver(&first).await.unwrap();
    let live = |added: &str| LivePost {
        target: first.target.clone(),
        form: LiveForm::Stream {
            message_id: delivered.message_id.clone(),
            added: added.to_owned(),
        },
        part: Part::plain(""),
    };
    outbound.signs.show_live(&live(" at")).await.unwrap();
    let seen = slack.posts("#general").pop().unwrap();
    assert_eq!(
        seen.text.replace('\u{2060}', ""),
        "Tomorrow &lt;!here&gt; at"
    );
    let stream = seen.stream.unwrap();
    assert_eq!(
        (stream.recipient.as_deref(), stream.is_stopped),
        (Some("U0ANN"), false)
    );

    // In another process, which knows nothing of streams.
    let other = outbound_of(&slack).await;
    let done = |operation: Operation, text: &str| Post {
        operation,
        ..post("o-2", "C0GENERAL", Some(&root), text)
    };
    let message_id = delivered.message_id.clone();
    let edit = done(Operation::Edit { message_id }, "Tomorrow at nine.");
    // Nobody knows whether it was stopped: the edit is made again.
    slack
        .faults()
        .next("chat.stopStream", CallFault::ResetAfter);
    let lost = other.poster.deliver(&edit).await;
    assert!(
        matches!(lost, Err(ChannelError::OutcomeUnknown { .. })),
        "{lost:?}"
    );
    other.poster.deliver(&edit).await.unwrap();
    assert_eq!(
        slack.posts("#general").pop().unwrap().text,
        "Tomorrow at nine."
    );
    let late = outbound.signs.show_live(&live(" and late")).await;
    assert!(
        matches!(late, Err(ChannelError::Rejected { .. })),
        "{late:?}"
    );
    assert_eq!(
        slack.posts("#general").pop().unwrap().text,
        "Tomorrow at nine."
    );

    let again = outbound
        .poster
        .deliver(&begun("o-3", &root, "And"))
        .await
        .unwrap();
    let message_id = again.message_id;
    other
        .poster
        .deliver(&done(Operation::Delete { message_id }, ""))
        .await
        .unwrap();
    assert!(slack.posts("#general").pop().unwrap().deleted);
    let is_post = |it: &WireRecord| it.kind == WireKind::Request && it.name == "chat.postMessage";
    assert_eq!(wire.records().into_iter().filter(is_post).count(), 0);
}

#[tokio::test]
async fn a_start_of_unknown_outcome_is_found_and_no_other_message_is_taken_for_it() {
    let slack = slack_server().await;
    let outbound = outbound_of(&slack).await;
    let root = slack.say("#general", "ann", "when?");
    let plain = post("o-0", "C0GENERAL", Some(&root), "Tomorrow at …");
    outbound.poster.deliver(&plain).await.unwrap();
    let first = begun("o-1", &root, "**Tomorrow** at");
    assert_eq!(
        outbound
            .look_ups
            .read_back(&first, ms(&root))
            .await
            .unwrap(),
        ReadBack::NotFound
    );
    slack
        .faults()
        .next("chat.startStream", CallFault::ResetAfter);
    let lost = outbound.poster.deliver(&first).await;
    assert!(
        matches!(lost, Err(ChannelError::OutcomeUnknown { .. })),
        "{lost:?}"
    );
    let started = slack.posts("#general").pop().unwrap();
    let found = outbound
        .look_ups
        .read_back(&first, ms(&root))
        .await
        .unwrap();
    let ReadBack::Found(delivered) = found else {
        panic!("{found:?}");
    };
    assert_eq!(delivered.message_id, started.ts);
    // An answer of which it was the beginning is not looked for any more.
    let edit = Post {
        operation: Operation::Edit {
            message_id: started.ts,
        },
        ..post("o-2", "C0GENERAL", Some(&root), "Tomorrow at nine.")
    };
    outbound.poster.deliver(&edit).await.unwrap();
    let next = begun("o-3", &root, "And");
    assert_eq!(
        outbound.look_ups.read_back(&next, ms(&root)).await.unwrap(),
        ReadBack::NotFound
    );
}

#[tokio::test]
async fn where_no_stream_starts_an_ordinary_post_is_made() {
    let wire = WireLog::new();
    let slack = slack_server_with(wire.clone()).await;
    let outbound = outbound_of(&slack).await;
    let root = slack.say("#general", "ann", "when?");
    let starts = || {
        let is_start =
            |it: &WireRecord| it.kind == WireKind::Request && it.name == "chat.startStream";
        wire.records().into_iter().filter(is_start).count()
    };
    let refusals = [
        CallFault::Error("channel_type_not_supported".to_owned()),
        CallFault::Error("feature_not_enabled".to_owned()),
    ];
    for (n, fault) in refusals.into_iter().enumerate() {
        slack.faults().next("chat.startStream", fault);
        outbound
            .poster
            .deliver(&begun("o-1", &root, "Tomorrow"))
            .await
            .unwrap();
        let posted = slack.posts("#general").pop().unwrap();
        assert_eq!((posted.text.as_str(), posted.stream), ("Tomorrow …", None));
        assert!(posted.metadata.is_some());
        assert_eq!(starts(), n + 1);
    }
    // An app that has none is not asked again; nobody to stream to, and no thread, neither.
    outbound
        .poster
        .deliver(&begun("o-2", &root, "Tomorrow"))
        .await
        .unwrap();
    let other = outbound_of(&slack).await;
    let mut at_top = begun("o-3", &root, "Tomorrow");
    at_top.target.thread = None;
    other.poster.deliver(&at_top).await.unwrap();
    assert_eq!(starts(), 2);
    // In a direct chat nobody is named.
    let asked = slack.say("D0ANN", "ann", "when?");
    let mut direct = begun("o-4", &asked, "Tomorrow");
    direct.target.chat = "D0ANN".to_owned();
    other.poster.deliver(&direct).await.unwrap();
    assert!(slack.posts("D0ANN").pop().unwrap().stream.is_some());
    // A rate limit costs the stream, not the post.
    slack
        .faults()
        .next("chat.startStream", CallFault::RateLimited(30));
    other
        .poster
        .deliver(&begun("o-5", &root, "Tomorrow"))
        .await
        .unwrap();
    assert_eq!(slack.posts("#general").pop().unwrap().stream, None);
}

#[tokio::test]
async fn edits_of_what_is_being_written_give_way_to_final_ones() {
    let slack = slack_server().await;
    let outbound = outbound_of(&slack).await;
    let first = post("o-1", "D0ANN", None, "first");
    let message_id = outbound.poster.deliver(&first).await.unwrap().message_id;
    let live = |text: &str| LivePost {
        target: first.target.clone(),
        form: LiveForm::Post {
            message_id: message_id.clone(),
        },
        part: outbound.renderer.render_live(text).unwrap(),
    };
    outbound
        .signs
        .show_live(&live("Tomorrow at ni"))
        .await
        .unwrap();
    assert_eq!(slack.posts("D0ANN")[0].text, "Tomorrow at …");
    slack
        .faults()
        .next("chat.update", CallFault::RateLimited(2));
    for _ in 0..2 {
        let refused = outbound.signs.show_live(&live("Tomorrow at nine")).await;
        assert!(
            matches!(refused, Err(ChannelError::RetryAfter { wait_ms, .. }) if wait_ms >= 1_000),
            "{refused:?}"
        );
    }
    let edit = Post {
        operation: Operation::Edit {
            message_id: message_id.clone(),
        },
        ..post("o-2", "D0ANN", None, "Tomorrow at nine.")
    };
    // The final one goes as soon as Slack takes edits again; posts need not wait at all.
    assert_eq!(outbound.poster.wait_before(&edit.target), Duration::ZERO);
    while let Err(error) = outbound.poster.deliver(&edit).await {
        let ChannelError::RetryAfter { wait_ms, .. } = error else {
            panic!("{error:?}");
        };
        tokio::time::sleep(Duration::from_millis(wait_ms)).await;
    }
    let late = outbound.signs.show_live(&live("Tomorrow at nine")).await;
    assert!(
        matches!(late, Err(ChannelError::RetryAfter { .. })),
        "{late:?}"
    );
    assert_eq!(slack.posts("D0ANN")[0].text, "Tomorrow at nine.");
}

#[tokio::test]
async fn a_status_shows_in_threads_and_an_app_without_one_is_not_asked_again() {
    let wire = WireLog::new();
    let slack = slack_server_with(wire.clone()).await;
    let outbound = outbound_of(&slack).await;
    let root = slack.say("#general", "ann", "when?");
    let in_thread = post("o-1", "C0GENERAL", Some(&root), "").target;
    let at_top = post("o-1", "C0GENERAL", None, "").target;
    outbound.signs.show_working(&at_top).await;
    outbound.signs.show_working(&in_thread).await;
    outbound.signs.show_idle(&in_thread).await;
    let statuses: Vec<String> = slack.statuses().into_iter().map(|it| it.status).collect();
    assert_eq!(statuses, ["is thinking…", ""]);

    let refusal = CallFault::Error("missing_scope".to_owned());
    slack.faults().next("assistant.threads.setStatus", refusal);
    outbound.signs.show_working(&in_thread).await;
    outbound.signs.show_working(&in_thread).await;
    let is_call = |record: &WireRecord| {
        record.kind == WireKind::Request && record.name == "assistant.threads.setStatus"
    };
    assert_eq!(wire.records().into_iter().filter(is_call).count(), 3);
}

/// Without the scope for names only posts under a name are refused: they say it in their text, and other streams start.
#[tokio::test]
async fn a_name_that_the_app_may_not_use_stands_in_the_text_and_ends_no_stream() {
    let slack = slack_server().await;
    let outbound = outbound_of(&slack).await;
    let root = slack.say("#general", "ann", "when?");
    let named = |post: Post| Post {
        part: post.part.clone().spoken_by(PostSpeaker {
            name: "Look".to_owned(),
            icon: None,
        }),
        ..post
    };
    let first = named(begun("o-1", &root, "Tomorrow"));
    let posted = outbound.poster.deliver(&first).await.unwrap();
    let shown = |message_id: &str| {
        let mut posts = slack.posts("#general").into_iter();
        posts.find(|it| it.ts == message_id).unwrap()
    };
    let seen = shown(&posted.message_id);
    assert_eq!(
        (seen.text.as_str(), seen.username, seen.stream),
        ("Look: Tomorrow …", None, None)
    );
    let change = Post {
        operation: Operation::Edit {
            message_id: posted.message_id.clone(),
        },
        ..named(post("o-2", "C0GENERAL", Some(&root), "Tomorrow at nine."))
    };
    outbound.poster.deliver(&change).await.unwrap();
    let seen = shown(&posted.message_id);
    assert_eq!(seen.text, "Look: Tomorrow at nine.");
    let other = begun("o-3", &root, "Today");
    let streamed = outbound.poster.deliver(&other).await.unwrap();
    assert!(shown(&streamed.message_id).stream.is_some());

    let scope = "chat:write.customize".to_owned();
    slack.change_world(|world| world.scopes.push(scope));
    let later = named(begun("o-4", &root, "Later"));
    let streamed = outbound.poster.deliver(&later).await.unwrap();
    let seen = shown(&streamed.message_id);
    assert_eq!(seen.username.as_deref(), Some("Look"));
    assert!(seen.stream.is_some());
}
