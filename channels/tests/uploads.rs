//! Uploading files to the loopback platforms, step by step, with every step failing once.

#![cfg(all(feature = "slack", feature = "telegram"))]
#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;

use vocative_channels::slack::{SlackChannel, SlackSettings};
use vocative_channels::telegram::{TelegramChannel, TelegramSettings};
use vocative_contract::channel::Channel;
use vocative_contract::error::{ChannelError, Fallback};
use vocative_contract::handles::Outbound;
use vocative_contract::outbound::{Delivered, Operation, Part, PartFile, Post, ReadBack, Target};
use vocative_sandbox::slack::{CallFault, SlackServer, SlackWorld};
use vocative_sandbox::telegram::{TelegramFault, TelegramServer, TelegramWorld};
use vocative_sandbox::wire::WireLog;

const CONTENT: &str = "# Answer\n\nzebra";

fn anywhere() -> SocketAddr {
    let _ = rustls::crypto::ring::default_provider().install_default();
    ([127, 0, 0, 1], 0).into()
}

async fn slack() -> (SlackServer, Outbound) {
    let server = SlackServer::start(SlackWorld::acme(), anywhere(), WireLog::new());
    let server = server.await.unwrap();
    let world = server.world();
    let settings = SlackSettings {
        api_url: server.api_url(),
        ..SlackSettings::new("acme", world.app_token.into(), world.bot_token.into())
    };
    let channel = SlackChannel::new(settings).unwrap();
    let identity = channel.identify().await.unwrap();
    (server, channel.outbound(&identity))
}

fn upload(chat: &str, thread: Option<String>) -> Post {
    Post {
        marker: "m1".to_owned(),
        target: Target {
            chat: chat.to_owned(),
            thread,
            topic: None,
            reply_to: None,
        },
        operation: Operation::Upload,
        part: Part::upload(
            "here it is",
            PartFile {
                name: "answer.md".to_owned(),
                mime_type: "text/markdown".to_owned(),
                content: CONTENT.to_owned(),
                stored: None,
                loaded: None,
                progress: None,
                rest: None,
            },
        ),
    }
}

fn note(post: &mut Post, progress: String) {
    let file = post.part.file.as_mut().unwrap();
    file.progress = Some(progress).filter(|progress| !progress.is_empty());
}

/// Makes every call before the share; how many there were.
async fn prepare(outbound: &Outbound, post: &mut Post) -> usize {
    for calls in 0..9 {
        match outbound.poster.prepare(post).await.unwrap() {
            None => return calls,
            Some(progress) => note(post, progress),
        }
    }
    panic!("it is never prepared");
}

fn shared(server: &SlackServer) -> Vec<(Option<String>, String, String)> {
    let posts = server.posts("C0GENERAL").into_iter();
    let files = posts.filter(|post| !post.files.is_empty());
    let shown = |post: vocative_sandbox::slack::SlackPost| {
        let id = post.files[0]["id"].as_str().unwrap().to_owned();
        let bytes = server.file_bytes(&id).unwrap();
        (
            post.thread_ts.clone(),
            post.text.clone(),
            String::from_utf8(bytes).unwrap(),
        )
    };
    files.map(shown).collect()
}

#[tokio::test]
async fn a_file_is_shared_once_in_its_thread_and_its_message_is_known() {
    let (server, outbound) = slack().await;
    let root = server.say("#general", "ann", "hello");
    let mut post = upload("C0GENERAL", Some(root.clone()));
    assert_eq!(prepare(&outbound, &mut post).await, 2);
    let look = outbound.look_ups.read_back(&post, 0).await.unwrap();
    assert_eq!(look, ReadBack::NotFound);
    let delivered = outbound.poster.deliver(&post).await.unwrap();
    let expected = (Some(root), "here it is".to_owned(), CONTENT.to_owned());
    assert_eq!(shared(&server), [expected]);
    let ts = server.posts("C0GENERAL").last().unwrap().ts.clone();
    assert_eq!(delivered.message_id, ts);
    let look = outbound.look_ups.read_back(&post, 0).await.unwrap();
    assert_eq!(look, ReadBack::Found(delivered));
}

#[tokio::test]
async fn an_address_that_is_not_taken_any_more_is_asked_for_again() {
    let (server, outbound) = slack().await;
    let mut post = upload("C0GENERAL", None);
    server.faults().next("upload", CallFault::Status(400));
    assert_eq!(prepare(&outbound, &mut post).await, 4);
    outbound.poster.deliver(&post).await.unwrap();
    assert_eq!(shared(&server).len(), 1);
    // Steps that fail otherwise are to be made again.
    let mut post = upload("C0GENERAL", None);
    server
        .faults()
        .next("files.getUploadURLExternal", CallFault::ResetBefore);
    assert!(outbound.poster.prepare(&post).await.is_err());
    let progress = outbound.poster.prepare(&post).await.unwrap().unwrap();
    note(&mut post, progress);
    for fault in [
        CallFault::Status(503),
        CallFault::ResetAfter,
        CallFault::RateLimited(3),
    ] {
        server.faults().next("upload", fault);
        assert!(outbound.poster.prepare(&post).await.is_err());
    }
    assert_eq!(prepare(&outbound, &mut post).await, 1);
}

#[tokio::test]
async fn a_share_of_unknown_outcome_is_found_by_its_file() {
    let (server, outbound) = slack().await;
    let mut post = upload("C0GENERAL", None);
    prepare(&outbound, &mut post).await;
    server
        .faults()
        .next("files.completeUploadExternal", CallFault::ResetAfter);
    let error = outbound.poster.deliver(&post).await.unwrap_err();
    assert!(
        matches!(error, ChannelError::OutcomeUnknown { .. }),
        "{error:?}"
    );
    let look = outbound.look_ups.read_back(&post, 0).await.unwrap();
    assert!(
        matches!(look, ReadBack::Found(Delivered { .. })),
        "{look:?}"
    );
    server
        .faults()
        .next("files.completeUploadExternal", CallFault::ResetBefore);
    let mut post = upload("C0GENERAL", None);
    prepare(&outbound, &mut post).await;
    outbound.poster.deliver(&post).await.unwrap_err();
    assert_eq!(
        outbound.look_ups.read_back(&post, 0).await.unwrap(),
        ReadBack::NotFound
    );
    // Slack tells a share late: it is there for certain, under its file's id.
    server
        .faults()
        .set_knobs(|knobs| knobs.shares_delay_ms = 60_000);
    let delivered = outbound.poster.deliver(&post).await.unwrap();
    assert!(delivered.message_id.starts_with("F0FILE"), "{delivered:?}");
    assert_eq!(shared(&server).len(), 2);
}

#[tokio::test]
async fn who_may_not_upload_posts_instead_and_holds_nothing_up() {
    let (server, outbound) = slack().await;
    server.change_world(|world| world.scopes.retain(|scope| scope != "files:write"));
    let post = upload("C0GENERAL", None);
    let error = outbound.poster.prepare(&post).await.unwrap_err();
    let is_refused = matches!(
        &error,
        ChannelError::Rejected { fallback: Fallback::Plain, reason, .. } if reason.contains("files:write")
    );
    assert!(is_refused, "{error:?}");
    let parts = outbound
        .renderer
        .render_fallback(&post.part, Fallback::Plain);
    assert!(parts.len() == 1 && parts[0].file.is_none(), "{parts:?}");
    assert!(parts[0].text.contains("zebra"), "{parts:?}");
    // A token that was taken back is another matter.
    server.faults().set_account_error(Some("token_revoked"));
    let error = outbound.poster.prepare(&post).await.unwrap_err();
    assert!(
        matches!(error, ChannelError::Unauthorized { .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn telegram_takes_a_file_in_one_call() {
    let world = TelegramWorld::team();
    let server = TelegramServer::start(world, anywhere(), WireLog::new())
        .await
        .unwrap();
    let settings = TelegramSettings {
        api_url: server.api_url(),
        ..TelegramSettings::new("team", server.token().into())
    };
    let channel = TelegramChannel::new(settings);
    let identity = channel.identify().await.unwrap();
    let outbound = channel.outbound(&identity);
    let chat = TelegramWorld::SUPERGROUP;
    let asked = server.say(chat, TelegramWorld::ANN, "hello");
    let mut post = upload(&chat.to_string(), None);
    post.target.reply_to = Some(asked.to_string());
    assert_eq!(prepare(&outbound, &mut post).await, 0);
    let delivered = outbound.poster.deliver(&post).await.unwrap();
    let posts = server.bot_posts(chat);
    assert_eq!(posts.len(), 1);
    assert_eq!(delivered.message_id, posts[0].message_id.to_string());
    assert_eq!(
        (posts[0].text.as_str(), posts[0].reply_to),
        ("here it is", Some(asked))
    );
    let document = &posts[0].wire["document"];
    assert_eq!(document["file_name"], "answer.md");
    assert_eq!(document["mime_type"], "text/markdown");
    let bytes = server
        .file_bytes(document["file_id"].as_str().unwrap())
        .unwrap();
    assert_eq!(bytes, CONTENT.as_bytes());
    let refused = |description: &str| TelegramFault::Refused {
        code: 400,
        description: format!("Bad Request: {description}"),
    };
    let table = [
        (
            "not enough rights to send documents to the chat",
            "rejected",
        ),
        ("chat not found", "chat"),
    ];
    for (description, expected) in table {
        server.faults().next("sendDocument", refused(description));
        let meaning = match outbound.poster.deliver(&post).await.unwrap_err() {
            ChannelError::Rejected {
                fallback: Fallback::Plain,
                ..
            } => "rejected",
            ChannelError::ChatRefused { .. } => "chat",
            other => panic!("{other:?}"),
        };
        assert_eq!(meaning, expected, "{description}");
    }
    server
        .faults()
        .next("sendDocument", TelegramFault::ResetAfter);
    let error = outbound.poster.deliver(&post).await.unwrap_err();
    assert!(
        matches!(error, ChannelError::OutcomeUnknown { .. }),
        "{error:?}"
    );
    let look = outbound.look_ups.read_back(&post, 0).await.unwrap();
    assert_eq!(look, ReadBack::Unsupported);
}
