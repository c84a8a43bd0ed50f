//! Platforms that call the daemon: Slack's Events API over HTTP, and Telegram's webhook.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use vocative_sandbox::slack::{EventFault, RequestUrls, RetryPlan, signature};
use vocative_sandbox::telegram::TelegramWorld;
use vocative_sandbox::wire::{WireKind, WirePeer};

use crate::catchup::{acme, wait_until_read};
use crate::harness::{Called, Flow, FlowBuilder, WAIT};

const GROUP: i64 = TelegramWorld::GROUP;
const PRIVATE: i64 = TelegramWorld::ANN;
const BOTH: Called = Called {
    by_slack: true,
    by_telegram: true,
};
const NONE: Called = Called {
    by_slack: false,
    by_telegram: false,
};

/// A daemon that both platforms call, and a Slack that tries again soon.
async fn called() -> Flow {
    let flow = FlowBuilder::default().called(BOTH).start().await;
    try_again_soon(&flow);
    wait_until_read(&flow).await;
    flow
}

fn try_again_soon(flow: &Flow) {
    flow.slack.faults().set_retry_plan(RetryPlan {
        http_after_ms: vec![200; 500],
        ..RetryPlan::default()
    });
}

/// The Telegram channel of a status.
fn team(status: &Value) -> &Value {
    let channels = status["channels"].as_array().unwrap();
    let mut channels = channels.iter();
    channels.find(|channel| channel["name"] == "team").unwrap()
}

/// The texts of people in all conversations, sorted; a text twice is a turn twice.
async fn said(flow: &Flow) -> Vec<String> {
    let mut texts = Vec::new();
    for view in flow.conversations().await {
        for turn in flow.turns(view["id"].as_str().unwrap()).await {
            if turn["kind"] == "message" && turn["speaker_kind"] == "user" {
                texts.push(turn["text"].as_str().unwrap_or_default().to_owned());
            }
        }
    }
    texts.sort();
    texts
}

/// Sends bytes as they are, and reads all of the answer.
async fn sent(addr: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    // A listener that has heard enough may close while there is more to write.
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let read = tokio::time::timeout(WAIT, stream.read_to_end(&mut answer)).await;
    let _ = read.expect("the listener answers or hangs up in time");
    String::from_utf8_lossy(&answer).into_owned()
}

/// A request on a connection of its own; gives the status.
async fn asked(addr: SocketAddr, line: &str, headers: &[(&str, &str)], body: &[u8]) -> String {
    let mut head = format!(
        "{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    let answer = sent(addr, &[head.as_bytes(), body].concat()).await;
    answer.split(' ').nth(1).unwrap_or("nothing").to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_that_platforms_call_with_are_answered_once() {
    let flow = called().await;
    let in_slack = flow.slack.say("#general", "ann", "@vocative one?");
    let in_telegram = flow.telegram.say(PRIVATE, PRIVATE, "two?");
    flow.slack_reply("#general", &in_slack).await;
    flow.telegram_reply(PRIVATE, in_telegram).await;
    flow.slack
        .slash_command("#general", "ann", "/agent", "status & more");
    flow.settle().await;
    assert_eq!(flow.slack_posts("#general").len(), 1);
    assert_eq!(flow.telegram_posts(PRIVATE).len(), 1);
    assert_eq!(flow.slack.open_sockets(), 0);
    assert_eq!(flow.telegram.polls_answered(), 0);
    assert_eq!(flow.slack.lost_payloads(), Vec::<Value>::new());
    let status = flow.status().await;
    for channel in [acme(&status), team(&status)] {
        assert_eq!(channel["state"], "connected", "{channel}");
        assert_eq!(channel["connections"], 1, "{channel}");
        assert_eq!(channel["refused"], 0, "{channel}");
    }
    // Every request carried what the platform proves itself with, and was answered only once stored.
    let log = flow.log();
    assert!(log.contains("Slack verified the request URL"), "{log}");
    let webhook = flow.telegram.webhook_url();
    let wanted = format!("http://{}/telegram/team?v=", flow.webhooks);
    assert!(webhook.starts_with(&wanted), "{webhook}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_comes_six_times_at_once_is_one_message() {
    let flow = called().await;
    flow.slack.faults().next_event(EventFault::Duplicate(5));
    flow.slack.faults().next_event(EventFault::Duplicate(5));
    let question = flow.slack.say("#general", "ann", "@vocative once?");
    flow.slack_reply("#general", &question).await;
    flow.settle().await;
    assert_eq!(flow.slack_posts("#general").len(), 1);
    assert_eq!(said(&flow).await.len(), 1);
    assert_eq!(flow.model.requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_killed_while_requests_arrive_loses_and_doubles_nothing() {
    let mut flow = called().await;
    let mut wanted = Vec::new();
    for n in 0..10 {
        // Stopped, it has taken connections and read nothing of them when it is killed.
        if n == 5 {
            flow.signal("STOP").await;
        }
        flow.slack.post("#general", "bob", &format!("remark {n}"));
        flow.telegram
            .say(PRIVATE, PRIVATE, &format!("question {n}?"));
        wanted.extend([format!("remark {n}"), format!("question {n}?")]);
    }
    let question = flow.slack.say("#general", "ann", "@vocative still there?");
    flow.kill().await;
    flow.start().await;
    flow.slack_reply("#general", &question).await;
    flow.settle().await;
    wait_until_read(&flow).await;
    wanted.push("@vocative still there?".to_owned());
    wanted.sort();
    assert_eq!(said(&flow).await, wanted);
    assert_eq!(flow.slack_posts("#general").len(), 1);
    assert_eq!(flow.slack.lost_payloads(), Vec::<Value>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_chats_updates_are_captured_in_order_and_chats_do_not_wait_for_each_other() {
    let flow = called().await;
    for n in 0..20 {
        for chat in [GROUP, TelegramWorld::SUPERGROUP] {
            flow.telegram
                .say(chat, TelegramWorld::BOB, &format!("{chat} says {n:02}"));
        }
    }
    flow.settle().await;
    for chat in [GROUP, TelegramWorld::SUPERGROUP] {
        let id = flow.conversation_id(&chat.to_string(), None).await;
        let turns = flow.turns(&id).await;
        let mut by_seq: Vec<(i64, String)> = turns
            .iter()
            .map(|turn| {
                let text = turn["text"].as_str().unwrap().to_owned();
                (turn["seq"].as_i64().unwrap(), text)
            })
            .collect();
        by_seq.sort();
        let texts: Vec<String> = by_seq.into_iter().map(|(_, text)| text).collect();
        let wanted: Vec<String> = (0..20).map(|n| format!("{chat} says {n:02}")).collect();
        assert_eq!(texts, wanted);
    }
}

/// A Slack event with the given text, as a body.
fn slack_event(text: &str) -> Vec<u8> {
    let event = serde_json::json!({
        "type": "event_callback", "team_id": "T0ACME", "event_id": "Ev0FORGED",
        "event": {"type": "message", "user": "U0ANN", "text": text, "ts": "1763712000.000100",
                  "channel": "C0GENERAL", "channel_type": "channel"},
    });
    event.to_string().into_bytes()
}

/// Other paths are nobody's, and a look is no message.
async fn only_its_paths_are_served(addr: SocketAddr) {
    for line in [
        "POST /",
        "POST /slack/other/events",
        "GET /metrics",
        "POST /telegram/team/x",
    ] {
        assert_eq!(asked(addr, line, &[], b"").await, "404", "{line}");
    }
    assert_eq!(asked(addr, "GET /telegram/team", &[], b"").await, "405");
    // Slack looks at the certificate of a command's address.
    let look = "GET /slack/acme/commands?ssl_check=1&token=x";
    assert_eq!(asked(addr, look, &[], b"").await, "200");
    assert_eq!(
        asked(addr, "GET /slack/acme/commands", &[], b"").await,
        "405"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_come_from_the_platform_is_refused_and_counted() {
    let flow = called().await;
    let (addr, secret) = (flow.webhooks, flow.slack.world().signing_secret);
    let body = slack_event("a forged word: xyzzy");
    let now_s = chrono::Utc::now().timestamp();
    let signed = |secret: &str, at_s: i64, body: &[u8]| {
        let at_s = at_s.to_string();
        let signature = signature(secret, &at_s, body);
        (at_s, signature)
    };
    let events = "POST /slack/acme/events";
    let mut refused = 0;
    for (at_s, signature) in [
        signed("another secret", now_s, &body),
        signed(&secret, now_s - 301, &body),
        // A minute more than the 300 s that are taken: this test takes some of it.
        signed(&secret, now_s + 361, &body),
        signed(&secret, now_s, b"another body"),
        (now_s.to_string(), String::new()),
        (String::new(), signed(&secret, now_s, &body).1),
    ] {
        let headers = [
            ("X-Slack-Request-Timestamp", at_s.as_str()),
            ("X-Slack-Signature", &signature),
        ];
        assert_eq!(asked(addr, events, &headers, &body).await, "401");
        refused += 1;
    }
    // What was sent before, sent once more after its time.
    let old = signed(&secret, now_s - 301, &body);
    let headers = [
        ("X-Slack-Request-Timestamp", old.0.as_str()),
        ("X-Slack-Signature", &old.1),
    ];
    assert_eq!(asked(addr, events, &headers, &body).await, "401");
    // What could be Slack's by its head is read as far as it may be.
    let at_s = now_s.to_string();
    let head = [
        ("X-Slack-Request-Timestamp", at_s.as_str()),
        ("X-Slack-Signature", "v0=00"),
    ];
    let [time, hash] = head.map(|(name, value)| format!("{name}: {value}\r\n"));
    let head_text = format!("{events} HTTP/1.1\r\nHost: x\r\n{time}{hash}");
    let large = vec![b'x'; 1024 * 1024 + 1];
    assert_eq!(asked(addr, events, &head, &large).await, "413");
    let mut chunked = format!("{head_text}Transfer-Encoding: chunked\r\n\r\n");
    chunked.push_str(&format!("{:x}\r\n", large.len()));
    let chunked = [chunked.as_bytes(), &large, b"\r\n0\r\n\r\n"].concat();
    assert!(sent(addr, &chunked).await.starts_with("HTTP/1.1 413"));
    // A body of which the half never comes.
    let slow = format!("{head_text}Content-Length: 9\r\n\r\nhalf");
    assert!(
        sent(addr, slow.as_bytes())
            .await
            .starts_with("HTTP/1.1 408")
    );
    // What is a stranger's by its head is answered without waiting for its body.
    let unsigned = format!("{events} HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n");
    let twice = format!("{head_text}{hash}Content-Length: 9\r\n\r\n");
    for stranger in [unsigned, twice] {
        let answer = sent(addr, stranger.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    }
    refused += 6;
    let update = br#"{"update_id":1,"message":{"message_id":1,"date":1,"chat":{"id":5001,"type":"private"},"from":{"id":5001,"is_bot":false,"first_name":"A"},"text":"forged xyzzy"}}"#;
    let webhook = "POST /telegram/team?v=0";
    for secret in ["", "wrong", &flow.telegram.token()] {
        let headers = [("X-Telegram-Bot-Api-Secret-Token", secret)];
        assert_eq!(asked(addr, webhook, &headers, update).await, "401");
    }
    assert_eq!(asked(addr, webhook, &[], update).await, "401");
    only_its_paths_are_served(addr).await;

    let status = flow.status().await;
    assert_eq!(acme(&status)["refused"], refused, "{status}");
    assert_eq!(team(&status)["refused"], 4, "{status}");
    assert_eq!(said(&flow).await, Vec::<String>::new());
    let log = flow.log();
    assert!(log.contains("a webhook request was refused"), "{log}");
    assert!(!log.contains("xyzzy"), "nothing of what was sent is logged");
    // And it goes on.
    let question = flow.slack.say("#general", "ann", "@vocative all well?");
    flow.slack_reply("#general", &question).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_say_nothing_keep_no_platform_out() {
    let flow = called().await;
    let mut silent = Vec::new();
    for n in 0..300 {
        let mut stream = TcpStream::connect(flow.webhooks).await.unwrap();
        if n % 2 == 0 {
            let _ = stream.write_all(b"POST /slack/acme/events HTTP").await;
        }
        silent.push(stream);
    }
    let (secret, now_s) = (
        flow.slack.world().signing_secret,
        chrono::Utc::now().timestamp().to_string(),
    );
    let body = br#"{"type":"url_verification","challenge":"still there"}"#;
    let headers = [
        ("X-Slack-Request-Timestamp", now_s.as_str()),
        ("X-Slack-Signature", &signature(&secret, &now_s, body)),
    ];
    let asking = asked(flow.webhooks, "POST /slack/acme/events", &headers, body);
    let answered = tokio::time::timeout(Duration::from_secs(3), asking).await;
    assert_eq!(answered.as_deref(), Ok("200"), "Slack waits 3 s");
    let status = flow.status().await;
    let listener = &status["listeners"][0];
    assert_eq!(listener["name"], "webhooks", "{status}");
    assert!(listener["connections"].as_u64() <= Some(256), "{status}");
    assert!(listener["sent_away"].as_u64() > Some(0), "{status}");
    drop(silent);
    let question = flow.slack.say("#general", "ann", "@vocative all well?");
    flow.slack_reply("#general", &question).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_that_come_slowly_keep_no_signed_request_out() {
    let flow = called().await;
    let now_s = chrono::Utc::now().timestamp().to_string();
    let head = format!(
        "POST /slack/acme/events HTTP/1.1\r\nHost: x\r\nX-Slack-Request-Timestamp: {now_s}\r\n\
         X-Slack-Signature: v0=00\r\nContent-Length: 100000\r\n\r\n"
    );
    // So many that each place and each waiting one is somebody's who never comes to an end.
    let mut slow = Vec::new();
    for _ in 0..120 {
        let (head, address) = (head.clone(), flow.webhooks);
        slow.push(tokio::spawn(async move {
            // Whoever is sent away comes back.
            loop {
                let mut stream = TcpStream::connect(address).await.unwrap();
                let _ = stream.write_all(head.as_bytes()).await;
                while stream.write_all(b"x").await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }));
    }
    let secret = flow.slack.world().signing_secret;
    let body = br#"{"type":"url_verification","challenge":"still there"}"#;
    let headers = [
        ("X-Slack-Request-Timestamp", now_s.as_str()),
        ("X-Slack-Signature", &signature(&secret, &now_s, body)),
    ];
    for _ in 0..10 {
        let asking = asked(flow.webhooks, "POST /slack/acme/events", &headers, body);
        let answered = tokio::time::timeout(Duration::from_secs(3), asking).await;
        assert_eq!(answered.as_deref(), Ok("200"), "Slack waits 3 s");
    }
    let question = flow.slack.say("#general", "ann", "@vocative all well?");
    flow.slack_reply("#general", &question).await;
    for slow in slow {
        slow.abort();
    }
}

/// Says and asks something on both platforms; gives what is to be answered.
fn ask(flow: &Flow, n: usize) -> (String, i64) {
    flow.slack.post("#ops", "bob", &format!("remark {n}"));
    let slack = flow
        .slack
        .say("#general", "ann", &format!("@vocative question {n}?"));
    let telegram = flow
        .telegram
        .say(PRIVATE, PRIVATE, &format!("private question {n}?"));
    (slack, telegram)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn switching_the_transport_loses_nothing_and_doubles_nothing() {
    // What one person asks meanwhile is answered apart, too, so that each can be counted.
    let builder = FlowBuilder::default().agent("vocative", "overlap = \"queue\"");
    let mut flow = builder.called(NONE).start().await;
    try_again_soon(&flow);
    wait_until_read(&flow).await;
    let mut asked = Vec::new();
    for (n, to) in [BOTH, NONE, BOTH].into_iter().enumerate() {
        asked.push(ask(&flow, 3 * n));
        assert_eq!(flow.stop().await, Some(0));
        asked.push(ask(&flow, 3 * n + 1));
        flow.switch(to);
        asked.push(ask(&flow, 3 * n + 2));
        flow.start().await;
        assert_eq!(flow.telegram.webhook_url().is_empty(), !to.by_telegram);
    }
    for (slack, telegram) in &asked {
        flow.slack_reply("#general", slack).await;
        flow.telegram_reply(PRIVATE, *telegram).await;
    }
    // What was tried over the one transport comes again over the other.
    flow.slack.redeliver_unacked_now();
    flow.settle().await;
    wait_until_read(&flow).await;
    assert_eq!(flow.slack_posts("#general").len(), asked.len());
    assert_eq!(flow.telegram_posts(PRIVATE).len(), asked.len());
    let texts = said(&flow).await;
    assert_eq!(texts.len(), 3 * asked.len(), "{texts:#?}");
    assert_eq!(flow.telegram.pending_updates(), 0);
    let drops = flow.wire.records().into_iter().filter(|record| {
        record.peer == WirePeer::Telegram
            && record.kind == WireKind::Request
            && !record.body["drop_pending_updates"].is_null()
    });
    assert_eq!(drops.count(), 0, "waiting updates are never dropped");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_is_set_once_and_stays_over_restarts() {
    let mut flow = called().await;
    let sets = |flow: &Flow| {
        let records = flow.wire.records().into_iter();
        let calls = records.filter(|record| record.kind == WireKind::Request);
        let names = calls.map(|record| record.name);
        names
            .filter(|name| name == "setWebhook" || name == "deleteWebhook")
            .collect::<Vec<String>>()
    };
    assert_eq!(sets(&flow), ["setWebhook"]);
    assert_eq!(flow.stop().await, Some(0));
    let question = flow.telegram.say(PRIVATE, PRIVATE, "meanwhile?");
    flow.start().await;
    flow.telegram_reply(PRIVATE, question).await;
    flow.settle().await;
    assert_eq!(sets(&flow), ["setWebhook"]);
    assert_eq!(flow.telegram_posts(PRIVATE).len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_slack_gave_up_while_the_daemon_was_down_is_read_back() {
    let mut flow = called().await;
    let heard = flow.slack.say("#general", "ann", "@vocative before?");
    flow.slack_reply("#general", &heard).await;
    flow.settle().await;
    assert_eq!(flow.stop().await, Some(0));
    flow.slack.faults().set_retry_plan(RetryPlan {
        http_after_ms: Vec::new(),
        ..RetryPlan::default()
    });
    let question = flow.slack.say("#general", "ann", "@vocative meanwhile?");
    let is_lost = || !flow.slack.lost_payloads().is_empty() && flow.slack.unacked() == 0;
    flow.wait_until("Slack gives it up", is_lost).await;
    flow.start().await;
    flow.slack_reply("#general", &question).await;
    wait_until_read(&flow).await;
    flow.settle().await;
    assert_eq!(flow.slack_posts("#general").len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_urls_that_lead_elsewhere_are_found_out_and_what_was_missed_is_read() {
    let builder = FlowBuilder::default()
        .called(BOTH)
        .config("[capture]\ndeaf_after_s = 1");
    let flow = builder.start().await;
    wait_until_read(&flow).await;
    flow.slack.post("#general", "ann", "the room is known");
    flow.settle().await;
    flow.slack.faults().set_retry_plan(RetryPlan {
        http_after_ms: Vec::new(),
        ..RetryPlan::default()
    });
    flow.slack
        .use_request_urls(RequestUrls::under("http://127.0.0.1:1"));
    let question = flow.slack.say("#general", "ann", "@vocative do you hear?");
    // A message that is said later than a request needs to tell of it gives it away.
    let deadline = tokio::time::Instant::now() + WAIT;
    while acme(&flow.status().await)["deaf"] == 0 {
        assert!(tokio::time::Instant::now() < deadline, "it stays deaf");
        flow.slack.post("#general", "bob", "a remark");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    flow.slack_reply("#general", &question).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_taken_port_is_told_at_the_start() {
    let mut flow = FlowBuilder::default().called(BOTH).prepare().await;
    let _taken = tokio::net::TcpListener::bind(flow.webhooks).await.unwrap();
    flow.spawn();
    let code = tokio::time::timeout(Duration::from_secs(30), flow.ended()).await;
    assert_ne!(code.expect("it ends by itself"), Some(0));
    let log = flow.log();
    assert!(log.contains("choose another webhooks.listen"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_check_knows_the_transports() {
    let flow = FlowBuilder::default().called(BOTH).prepare().await;
    let told = flow.cli(&["check", "--live"]).await.stdout;
    for wanted in [
        "Socket Mode is on in the app's settings",
        "/slack/acme/events, /slack/acme/interactivity and",
        "no webhook is set yet; the daemon sets it when it starts",
    ] {
        assert!(told.contains(wanted), "{wanted}: {told}");
    }
    flow.slack.use_request_urls(flow.request_urls());
    let told = flow.cli(&["check", "--live"]).await.stdout;
    assert!(!told.contains("Socket Mode is on"), "{told}");
}
