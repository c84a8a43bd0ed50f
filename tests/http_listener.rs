//! Health and metrics over HTTP, asked of a daemon in a process of its own.
#![allow(clippy::unwrap_used)]

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use vocative_sandbox::telegram::{TelegramFault, TelegramServer, TelegramWorld};
use vocative_sandbox::wire::WireLog;

/// Nothing on loopback takes longer.
const WAIT: Duration = Duration::from_secs(30);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(50);

fn daemon(directory: &std::path::Path, telegram: &TelegramServer, address: SocketAddr) -> Command {
    let text = format!(
        r#"
[channels.telegram.team]
token = "env:TELEGRAM"
api_url = "{url}"
allow_chats = ["*"]
[http]
enabled = true
listen = "{address}"
[daemon]
data_dir = "{directory}/data"
runtime_dir = "{directory}/run"
"#,
        url = telegram.api_url(),
        directory = directory.display()
    );
    std::fs::write(directory.join("vocative.toml"), text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_vocative"));
    command
        .arg("run")
        .current_dir(directory)
        .env_clear()
        .env("HOME", directory)
        .env("TELEGRAM", telegram.token())
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

async fn telegram() -> TelegramServer {
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    TelegramServer::start(TelegramWorld::team(), anywhere, WireLog::new())
        .await
        .unwrap()
}

fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .timeout(WAIT)
        .retry(reqwest::retry::never())
        .build()
        .unwrap()
}

/// What a path answers: status, content type, body. `None` while nobody listens.
async fn get(address: SocketAddr, path: &str) -> Option<(u16, String, String)> {
    let url = format!("http://{address}{path}");
    let answer = client().get(url).send().await.ok()?;
    let status = answer.status().as_u16();
    let kind = answer.headers().get("content-type")?.to_str().ok()?;
    let kind = kind.to_owned();
    Some((status, kind, answer.text().await.ok()?))
}

/// Waits until a path answers with this status; returns its body.
async fn until(address: SocketAddr, path: &str, status: u16) -> String {
    let answered = async {
        loop {
            match get(address, path).await {
                Some((is, _, body)) if is == status => return body,
                _ => tokio::time::sleep(LOOK).await,
            }
        }
    };
    tokio::time::timeout(WAIT, answered).await.unwrap()
}

#[tokio::test]
async fn health_readiness_and_metrics_say_how_the_daemon_is() {
    let telegram = telegram().await;
    let directory = tempfile::tempdir().unwrap();
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let broken = TelegramFault::Gateway { code: 502 };
    telegram.faults().always("getUpdates", broken);
    let mut running = daemon(directory.path(), &telegram, address)
        .spawn()
        .unwrap();

    assert_eq!(until(address, "/healthz", 200).await, "ok\n");
    let body = until(address, "/readyz", 503).await;
    assert!(
        body.starts_with(r#"{"not_connected":["team: "#),
        "{body} names the channel"
    );
    telegram.faults().clear();
    assert_eq!(
        until(address, "/readyz", 200).await,
        r#"{"not_connected":[]}"#
    );
    let (status, kind, metrics) = get(address, "/metrics").await.unwrap();
    assert_eq!(status, 200);
    assert_eq!(
        kind,
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    );
    assert_openmetrics(&metrics);
    assert!(metrics.contains("vocative_channel_connected{channel=\"team\"} 1\n"));
    assert!(metrics.contains("vocative_channel_tokens_today_max{channel=\"team\"} 5000000\n"));
    assert!(metrics.contains("\nvocative_disk_free_bytes "));
    let timed = [
        "vocative_answer_seconds_bucket{le=\"+Inf\",channel=\"team\"} 1\n",
        "vocative_channel_ack_seconds_bucket{le=\"+Inf\",channel=\"team\"} 1\n",
        "\nvocative_intake_captured_total 1\n",
    ];
    telegram.say(
        TelegramWorld::GROUP,
        TelegramWorld::ANN,
        "@vocative_bot hello?",
    );
    let answered = async {
        loop {
            let metrics = until(address, "/metrics", 200).await;
            if timed.iter().all(|line| metrics.contains(line)) {
                return metrics;
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    assert_openmetrics(&tokio::time::timeout(WAIT, answered).await.unwrap());
    let root = client().get(format!("http://{address}/"));
    let elsewhere = root.send().await.unwrap();
    assert_eq!(elsewhere.status().as_u16(), 404);

    running.kill().await.unwrap();
}

/// Every line is a description, a sample with a number, or the end.
fn assert_openmetrics(text: &str) {
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.last(), Some(&"# EOF"));
    for line in &lines[..lines.len() - 1] {
        if let Some(words) = line.strip_prefix("# ") {
            assert!(
                words.starts_with("HELP vocative_") || words.starts_with("TYPE vocative_"),
                "{line}"
            );
            continue;
        }
        let (name, value) = line.rsplit_once(' ').unwrap();
        let bare = name.split('{').next().unwrap();
        let is_word = |c: char| c.is_ascii_lowercase() || c == '_';
        assert!(
            bare.starts_with("vocative_") && bare.chars().all(is_word),
            "{line}"
        );
        assert_eq!(name.contains('{'), name.ends_with("\"}"), "{line}");
        value.parse::<f64>().unwrap();
    }
    assert!(lines.len() > 40, "{text}");
}

#[tokio::test]
async fn a_taken_port_is_told_before_anything_runs() {
    let telegram = telegram().await;
    let directory = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = taken.local_addr().unwrap();
    let ended = daemon(directory.path(), &telegram, address).output();
    let ended = tokio::time::timeout(WAIT, ended).await.unwrap().unwrap();
    let told = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(69), "{told}");
    let expected = format!(
        "error: health and metrics can't be served at {address}\n  \
         because: Address already in use (os error 98)\n\
         end what has it, or choose another http.listen, or set http.enabled = false\n"
    );
    assert!(told.ends_with(&expected), "{told}");
    assert_eq!(telegram.polls_answered(), 0);
}
