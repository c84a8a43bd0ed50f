//! Fetching files from the loopback platforms: who gets which bytes, and what every refusal means.

#![cfg(all(feature = "slack", feature = "telegram"))]
#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use vocative_channels::slack::{SlackChannel, SlackSettings};
use vocative_channels::telegram::{TelegramChannel, TelegramSettings};
use vocative_contract::channel::Channel;
use vocative_contract::file::{FileError, FileSource};
use vocative_sandbox::slack::{CallFault, SlackFile, SlackServer, SlackWorld};
use vocative_sandbox::telegram::{TelegramFault, TelegramServer, TelegramWorld};
use vocative_sandbox::wire::WireLog;

const BYTES_MAX: u64 = 1_000;

fn anywhere() -> SocketAddr {
    let _ = rustls::crypto::ring::default_provider().install_default();
    ([127, 0, 0, 1], 0).into()
}

async fn slack() -> (SlackServer, Arc<dyn FileSource>) {
    let server = SlackServer::start(SlackWorld::acme(), anywhere(), WireLog::new())
        .await
        .unwrap();
    let world = server.world();
    let settings = SlackSettings {
        api_url: server.api_url(),
        ..SlackSettings::new("acme", world.app_token.into(), world.bot_token.into())
    };
    let channel = SlackChannel::new(settings).unwrap();
    let identity = channel.identify().await.unwrap();
    (server, channel.files(&identity).unwrap())
}

async fn telegram() -> (TelegramServer, Arc<dyn FileSource>) {
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
    (server, channel.files(&identity).unwrap())
}

fn notes() -> SlackFile {
    SlackFile {
        name: "notes.md".to_owned(),
        mime_type: "text/markdown".to_owned(),
        bytes: b"# Notes".to_vec(),
    }
}

fn slack_file(server: &SlackServer, file: SlackFile) -> String {
    server.add_file(file)["id"].as_str().unwrap().to_owned()
}

async fn fetched(files: &dyn FileSource, id: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let fetched = files.fetch(id, BYTES_MAX, &mut bytes).await;
    let said = |error: FileError| match error {
        FileError::TooLarge { size_bytes } => format!("too large {size_bytes:?}"),
        FileError::Gone { .. } => "gone".to_owned(),
        FileError::Refused { reason } => format!("refused: {reason}"),
        FileError::RetryAfter { wait_ms } => format!("wait {wait_ms}"),
        FileError::Failed { reason } => format!("failed: {reason}"),
        FileError::Sink(error) => format!("sink: {error}"),
    };
    fetched.map(|()| bytes).map_err(said)
}

#[tokio::test]
async fn a_slack_file_comes_with_the_token_and_every_refusal_is_understood() {
    let (server, files) = slack().await;
    let id = slack_file(&server, notes());
    assert_eq!(fetched(&*files, &id).await, Ok(b"# Notes".to_vec()));
    assert_eq!(fetched(&*files, "F0NOBODY").await, Err("gone".to_owned()));
    let large = slack_file(
        &server,
        SlackFile {
            bytes: vec![7; 1_001],
            ..notes()
        },
    );
    assert_eq!(
        fetched(&*files, &large).await,
        Err("too large Some(1001)".to_owned())
    );
    let table = [
        (CallFault::RateLimited(7), "wait 7000"),
        (CallFault::Status(503), "failed: HTTP 503"),
        (CallFault::Status(404), "gone"),
        (CallFault::Status(403), "refused: HTTP 403"),
        (CallFault::ResetBefore, "failed: the connection broke"),
    ];
    for (fault, expected) in table {
        server.faults().next("files-pri", fault.clone());
        assert_eq!(
            fetched(&*files, &id).await,
            Err(expected.to_owned()),
            "{fault:?}"
        );
    }
    server
        .faults()
        .next("files.info", CallFault::RateLimited(9));
    assert_eq!(fetched(&*files, &id).await, Err("wait 9000".to_owned()));
}

#[tokio::test]
async fn a_sign_in_page_is_a_refusal_and_never_a_file() {
    let (server, files) = slack().await;
    let id = slack_file(&server, notes());
    server.faults().next("files-pri", CallFault::Html);
    let refused = fetched(&*files, &id).await.unwrap_err();
    assert!(refused.contains("files:read"), "{refused}");
    // With a page meant, the size tells.
    let page = SlackFile {
        mime_type: "text/html".to_owned(),
        bytes: b"<p>".to_vec(),
        ..notes()
    };
    let page = slack_file(&server, page);
    assert_eq!(fetched(&*files, &page).await, Ok(b"<p>".to_vec()));
    server.faults().next("files-pri", CallFault::Html);
    let failed = fetched(&*files, &page).await.unwrap_err();
    assert!(
        failed.starts_with("failed: ") && failed.ends_with(" of 3"),
        "{failed}"
    );
    // The page may be a redirect away.
    server
        .faults()
        .next("files-pri", CallFault::Redirect("/signin".to_owned()));
    let refused = fetched(&*files, &id).await.unwrap_err();
    assert!(refused.contains("files:read"), "{refused}");
    // Without the scope, files.info says so already.
    server.change_world(|world| world.scopes.retain(|scope| scope != "files:read"));
    let refused = fetched(&*files, &id).await.unwrap_err();
    assert!(refused.contains("add the scope files:read"), "{refused}");
}

#[tokio::test]
async fn what_slack_keeps_elsewhere_or_hides_is_not_fetched_and_not_tried_again() {
    let (server, files) = slack().await;
    let table = [
        ("snippet", Ok(b"# Notes".to_vec())),
        ("a_mode_of_tomorrow", Ok(b"# Notes".to_vec())),
        (
            "post",
            Err("refused: it is a document of Slack's own, which has no file"),
        ),
        ("external", Err("refused: it is kept outside Slack")),
        (
            "hidden_by_limit",
            Err("refused: the workspace's plan hides it"),
        ),
        ("tombstone", Err("gone")),
    ];
    for (mode, expected) in table {
        let id = slack_file(&server, notes());
        server.set_file_mode(&id, mode);
        let expected = expected.map_err(str::to_owned);
        assert_eq!(fetched(&*files, &id).await, expected, "{mode}");
    }
    let empty = SlackFile {
        bytes: Vec::new(),
        ..notes()
    };
    let empty = slack_file(&server, empty);
    assert_eq!(fetched(&*files, &empty).await, Ok(Vec::new()));
}

#[tokio::test]
async fn a_redirect_to_another_host_is_followed_without_the_token() {
    let (server, files) = slack().await;
    let id = slack_file(&server, notes());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let elsewhere = format!("http://{}/x", listener.local_addr().unwrap());
    let heard = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            assert!(stream.read_buf(&mut request).await.unwrap() > 0);
        }
        let answer =
            "HTTP/1.1 200 OK\r\ncontent-type: text/markdown\r\ncontent-length: 7\r\n\r\n# Notes";
        stream.write_all(answer.as_bytes()).await.unwrap();
        String::from_utf8(request).unwrap().to_lowercase()
    });
    server
        .faults()
        .next("files-pri", CallFault::Redirect(elsewhere));
    assert_eq!(fetched(&*files, &id).await, Ok(b"# Notes".to_vec()));
    let request = heard.await.unwrap();
    assert!(
        !request.contains("authorization") && !request.contains("xoxb"),
        "{request}"
    );
}

#[tokio::test]
async fn a_telegram_file_comes_and_every_refusal_is_understood() {
    let (server, files) = telegram().await;
    let id = |file: serde_json::Value| file["file_id"].as_str().unwrap().to_owned();
    let notes = id(server.add_file("notes.md", "text/markdown", b"# Notes".to_vec()));
    assert_eq!(fetched(&*files, &notes).await, Ok(b"# Notes".to_vec()));
    assert_eq!(fetched(&*files, "nobody").await, Err("gone".to_owned()));
    let large = id(server.add_file("l.bin", "application/octet-stream", vec![7; 1_001]));
    assert_eq!(
        fetched(&*files, &large).await,
        Err("too large Some(1001)".to_owned())
    );
    let huge = id(server.add_file("h.bin", "application/octet-stream", vec![7; (20 << 20) + 1]));
    assert_eq!(
        fetched(&*files, &huge).await,
        Err("too large None".to_owned())
    );
    let table = [
        (TelegramFault::Gateway { code: 502 }, "failed: HTTP 502"),
        (TelegramFault::ResetBefore, "failed: the connection broke"),
        (
            TelegramFault::Refused {
                code: 404,
                description: "Not Found".to_owned(),
            },
            "failed: HTTP 404",
        ),
    ];
    for (fault, expected) in table {
        server.faults().next("file", fault.clone());
        assert_eq!(
            fetched(&*files, &notes).await,
            Err(expected.to_owned()),
            "{fault:?}"
        );
    }
    let unclear = "Bad Request: wrong file_id or the file is temporarily unavailable";
    let unclear = TelegramFault::Refused {
        code: 400,
        description: unclear.to_owned(),
    };
    server.faults().next("getFile", unclear);
    let failed = fetched(&*files, &notes).await.unwrap_err();
    assert!(failed.starts_with("failed: "), "{failed}");
    server
        .faults()
        .next("getFile", TelegramFault::RateLimited { retry_after_s: 4 });
    assert_eq!(fetched(&*files, &notes).await, Err("wait 4000".to_owned()));
}

#[tokio::test]
async fn a_stub_is_asked_about_and_a_refused_account_is_no_refused_file() {
    let (server, files) = slack().await;
    let id = slack_file(&server, notes());
    let told = files.describe(&id).await.unwrap().unwrap();
    assert_eq!(told.kind, "file");
    assert_eq!(told.name.as_deref(), Some("notes.md"));
    assert_eq!(told.mime_type.as_deref(), Some("text/markdown"));
    assert_eq!(told.size_bytes, Some(7));
    // Somebody puts the token right, and the file is there as before.
    for reason in ["token_revoked", "account_inactive", "invalid_auth"] {
        server
            .faults()
            .next("files.info", CallFault::Error(reason.to_owned()));
        let failed = fetched(&*files, &id).await.unwrap_err();
        assert!(failed.starts_with("failed: "), "{failed}");
    }
    assert_eq!(fetched(&*files, &id).await, Ok(b"# Notes".to_vec()));
}
