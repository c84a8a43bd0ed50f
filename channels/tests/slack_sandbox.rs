//! The Slack adapter against the loopback Slack, over real sockets.
#![cfg(feature = "slack")]
#![allow(clippy::unwrap_used)]

use std::collections::HashSet;
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use secrecy::SecretString;
use serde_json::json;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use vocative_channels::channel::{
    BoxFuture, Channel, CheckReach, ConnectionState, FindingLevel, Intake, IntakeError, Outbound,
    Reporter,
};
use vocative_channels::envelope::{ChatKind, Envelope, Event, InboundMessage};
use vocative_channels::error::{ChannelError, Fallback};
use vocative_channels::http::HttpTimeouts;
use vocative_channels::identity::Identity;
use vocative_channels::live::{LiveForm, LivePost};
use vocative_channels::outbound::{Operation, Part, PartStream, Post, ReadBack, Target};
use vocative_channels::render::People;
use vocative_channels::slack::{
    IN_FLIGHT_BYTES_MAX, IN_FLIGHT_MAX, SlackChannel, SlackSettings, SocketTimings,
};
use vocative_sandbox::slack::{EventFault, Fault, RetryPlan, SlackServer, SlackWorld, UserPost};
use vocative_sandbox::wire::{WireKind, WireLog, WireRecord};

/// Nothing on loopback takes longer.
const WAIT: Duration = Duration::from_secs(20);

/// Back-offs short enough for tests; watchdogs as they are.
fn quick() -> SocketTimings {
    SocketTimings {
        backoff_first_ms: 20,
        backoff_max_ms: 100,
        too_many_ms: 50,
        alarm_ms: 100,
        stagger_ms: 1,
        ..SocketTimings::default()
    }
}

/// What the daemon would have seen (`storing`: envelopes being stored, and the most there were); waits for states, not for time.
struct Seen {
    envelopes: Mutex<Vec<Envelope>>,
    states: Mutex<Vec<ConnectionState>>,
    acked: Mutex<usize>,
    malformed: Mutex<usize>,
    failing: Mutex<bool>,
    storing: Mutex<(usize, usize)>,
    gate: Semaphore,
    changed: watch::Sender<u64>,
}

impl Seen {
    fn new(gate: usize) -> Arc<Self> {
        Arc::new(Self {
            envelopes: Mutex::default(),
            states: Mutex::default(),
            acked: Mutex::default(),
            malformed: Mutex::default(),
            failing: Mutex::default(),
            storing: Mutex::default(),
            gate: Semaphore::new(gate),
            changed: watch::Sender::new(0),
        })
    }

    fn change<T>(&self, what: &Mutex<T>, change: impl FnOnce(&mut T)) {
        change(&mut what.lock().unwrap());
        self.changed.send_modify(|n| *n += 1);
    }

    async fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let mut changes = self.changed.subscribe();
        let wait = async {
            while !is_so(self) {
                changes.changed().await.unwrap();
            }
        };
        let states = || self.states.lock().unwrap().clone();
        tokio::time::timeout(WAIT, wait)
            .await
            .unwrap_or_else(|_| panic!("in vain: {what}; {:?}; {:?}", states(), self.texts()));
    }

    async fn until_heard(&self, count: usize) {
        self.until("envelopes", |seen| {
            seen.envelopes.lock().unwrap().len() >= count
        })
        .await;
    }

    fn posts(&self) -> Vec<InboundMessage> {
        let envelopes = self.envelopes.lock().unwrap();
        let posts = envelopes
            .iter()
            .filter_map(|envelope| match &envelope.event {
                Event::Posted(message) => Some(message.clone()),
                _ => None,
            });
        posts.collect()
    }

    fn texts(&self) -> Vec<String> {
        self.posts().into_iter().map(|post| post.text).collect()
    }

    /// How often a connection was missing.
    fn losses(&self) -> usize {
        let states = self.states.lock().unwrap();
        let is_loss = |state: &&ConnectionState| matches!(state, ConnectionState::Retrying { .. });
        states.iter().filter(is_loss).count()
    }

    fn is_connected(&self, connections: usize) -> bool {
        let states = self.states.lock().unwrap();
        states.last() == Some(&ConnectionState::Connected { connections })
    }
}

/// The intake keeps only what it says it keeps.
struct TestIntake(Arc<Seen>);

impl Intake for TestIntake {
    fn accept(&self, envelope: Envelope) -> BoxFuture<'_, Result<(), IntakeError>> {
        Box::pin(async move {
            let seen = &self.0;
            seen.change(&seen.storing, |(count, most)| {
                *count += 1;
                *most = (*most).max(*count);
            });
            drop(seen.gate.acquire().await.unwrap());
            seen.change(&seen.storing, |(count, _)| *count -= 1);
            if *self.0.failing.lock().unwrap() {
                self.0.changed.send_modify(|n| *n += 1);
                return Err(IntakeError("disk full".into()));
            }
            self.0
                .change(&self.0.envelopes, |envelopes| envelopes.push(envelope));
            Ok(())
        })
    }
}

struct TestReporter(Arc<Seen>);

impl Reporter for TestReporter {
    fn state(&self, state: ConnectionState) {
        self.0.change(&self.0.states, |states| states.push(state));
    }

    fn heard(&self) {}

    fn acknowledged(&self, _lag_ms: u64) {
        self.0.change(&self.0.acked, |acked| *acked += 1);
    }

    fn malformed(&self) {
        self.0
            .change(&self.0.malformed, |malformed| *malformed += 1);
    }
}

/// A Slack, and an adapter that listens to it.
struct Stage {
    slack: SlackServer,
    channel: SlackChannel,
    identity: Identity,
    seen: Arc<Seen>,
    cancel: CancellationToken,
    running: JoinHandle<Result<(), ChannelError>>,
}

async fn slack_server() -> SlackServer {
    slack_server_with(WireLog::new()).await
}

async fn slack_server_with(wire: WireLog) -> SlackServer {
    static CRYPTO: Once = Once::new();
    CRYPTO.call_once(|| {
        let provider = rustls::crypto::ring::default_provider();
        provider.install_default().unwrap();
    });
    let any_port = ([127, 0, 0, 1], 0).into();
    SlackServer::start(SlackWorld::acme(), any_port, wire)
        .await
        .unwrap()
}

fn settings(slack: &SlackServer) -> SlackSettings {
    let world = SlackWorld::acme();
    SlackSettings {
        api_url: slack.api_url(),
        timings: quick(),
        http: HttpTimeouts {
            read_ms: 500,
            ..HttpTimeouts::default()
        },
        ..SlackSettings::new(
            "slack_acme",
            SecretString::from(world.app_token),
            SecretString::from(world.bot_token),
        )
    }
}

impl Stage {
    async fn new() -> Self {
        Self::with(|_| {}, Semaphore::MAX_PERMITS / 2).await
    }

    async fn with(change: impl FnOnce(&mut SlackSettings), gate: usize) -> Self {
        let slack = slack_server().await;
        let mut settings = settings(&slack);
        change(&mut settings);
        let sockets = settings.sockets;
        let channel = SlackChannel::new(settings).unwrap();
        let identity = channel.identify().await.unwrap();
        let (seen, cancel) = (Seen::new(gate), CancellationToken::new());
        let mut inbound = channel.inbound(&identity);
        let (intake, reporter) = (
            TestIntake(Arc::clone(&seen)),
            TestReporter(Arc::clone(&seen)),
        );
        let stop = cancel.clone();
        let running = tokio::spawn(async move {
            inbound
                .run(Arc::new(intake), Arc::new(reporter), stop)
                .await
        });
        let stage = Self {
            slack,
            channel,
            identity,
            seen,
            cancel,
            running,
        };
        stage.until_connected(sockets).await;
        stage
    }

    async fn until_connected(&self, sockets: usize) {
        self.seen
            .until("connected", |seen| seen.is_connected(sockets))
            .await;
    }

    async fn until_all_acked(&self) {
        assert!(
            self.slack.wait_until_all_acked(WAIT).await,
            "{} unacked",
            self.slack.unacked()
        );
    }

    fn outbound(&self) -> Arc<dyn Outbound> {
        self.channel.outbound(&self.identity)
    }

    /// Stops the adapter, and finds nothing wrong with how it behaved.
    async fn end(self) {
        self.cancel.cancel();
        let ended = tokio::time::timeout(WAIT, self.running).await;
        ended.unwrap().unwrap().unwrap();
        assert!(self.slack.wait_for_socket_count(0, WAIT).await);
        assert_eq!(self.slack.violations(), Vec::<String>::new());
    }
}

fn post(marker: &str, chat: &str, thread: Option<&str>, text: &str) -> Post {
    Post {
        marker: marker.to_owned(),
        target: Target {
            chat: chat.to_owned(),
            thread: thread.map(str::to_owned),
            topic: None,
            reply_to: None,
        },
        operation: Operation::Post,
        part: Part::plain(text),
    }
}

/// Slack's time of a ts, in milliseconds.
fn ms(ts: &str) -> i64 {
    let (seconds, micros) = ts.split_once('.').unwrap();
    seconds.parse::<i64>().unwrap() * 1_000 + micros.parse::<i64>().unwrap() / 1_000
}

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
        vocative_channels::envelope::SenderKind::Bot
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

#[tokio::test]
async fn a_refresh_leaves_no_gap() {
    let stage = Stage::new().await;
    stage
        .slack
        .faults()
        .set_knobs(|knobs| knobs.disconnect_grace_ms = 60_000);
    stage.slack.disconnect("refresh_requested");
    // Two sockets: the old one stays until the new one has said hello.
    stage.until_connected(2).await;
    assert!(stage.slack.wait_for_socket(2, WAIT).await);
    let states = stage.seen.states.lock().unwrap().clone();
    let has_gap = states
        .iter()
        .any(|state| matches!(state, ConnectionState::Retrying { .. }));
    assert!(!has_gap, "{states:?}");
    for n in 0..20 {
        stage.slack.say("#general", "ann", &format!("line {n}"));
    }
    stage.seen.until_heard(20).await;
    stage.until_all_acked().await;
    assert!(
        stage
            .slack
            .acked_envelopes()
            .iter()
            .all(|acked| acked.attempts == 1)
    );
    stage.end().await;
}

#[tokio::test]
async fn in_refresh_after_refresh_there_is_never_a_moment_without_a_socket() {
    let quick_refresh = |settings: &mut SlackSettings| {
        settings.timings.linger_ms = 100;
        settings.timings.healthy_ms = 0;
    };
    let stage = Stage::with(quick_refresh, Semaphore::MAX_PERMITS / 2).await;
    let mut said = 0;
    for reason in ["warning", "refresh_requested"].into_iter().cycle().take(6) {
        stage.slack.disconnect(reason);
        // People talk while sockets change.
        let is_replaced = || stage.slack.open_sockets() > 1;
        while !is_replaced() {
            stage.slack.say("#general", "ann", &format!("line {said}"));
            said += 1;
            tokio::task::yield_now().await;
        }
        stage.until_connected(1).await;
        assert!(stage.slack.wait_for_socket_count(1, WAIT).await);
    }
    stage.seen.until_heard(said).await;
    stage.until_all_acked().await;
    assert_eq!(stage.slack.silent(), Duration::ZERO);
    let acked = stage.slack.acked_envelopes();
    assert!(acked.iter().all(|acked| acked.attempts == 1));
    assert_eq!(stage.seen.losses(), 0);
    stage.end().await;
}

#[tokio::test]
async fn an_acknowledgement_is_written_on_the_new_socket_when_its_own_is_gone() {
    let stage = Stage::with(|_| {}, 0).await;
    stage.slack.faults().set_retry_plan(RetryPlan {
        after_ms: vec![60_000],
        ..RetryPlan::default()
    });
    stage.slack.say("#general", "ann", "slow to store");
    // A second frame that needs no storage proves that the first was read.
    stage.slack.raw_frame("not json");
    let is_read = |seen: &Seen| *seen.malformed.lock().unwrap() == 1;
    stage.seen.until("read", is_read).await;
    stage.slack.abort_sockets();
    stage.seen.until("lost", |seen| seen.losses() > 0).await;
    stage.until_connected(1).await;
    stage.seen.gate.add_permits(1);
    stage.until_all_acked().await;
    let acked = stage.slack.acked_envelopes();
    assert_eq!(
        (acked.len(), acked[0].attempts, acked[0].on_same_socket),
        (1, 1, false)
    );
    stage.end().await;
}

#[tokio::test]
async fn a_lost_socket_is_opened_again_and_nothing_is_missed() {
    let stage = Stage::new().await;
    stage.slack.faults().set_retry_plan(RetryPlan {
        after_ms: vec![200; 20],
        ..RetryPlan::default()
    });
    for lose in [SlackServer::close_sockets, SlackServer::abort_sockets] {
        let losses = stage.seen.losses();
        lose(&stage.slack);
        stage
            .seen
            .until("lost", |seen| seen.losses() > losses)
            .await;
        stage.slack.say("#general", "ann", "said into the gap");
        stage.until_connected(1).await;
    }
    stage.until_all_acked().await;
    let heard: HashSet<_> = stage
        .seen
        .posts()
        .into_iter()
        .map(|post| post.message_id)
        .collect();
    assert_eq!(heard.len(), 2);
    // An acknowledgement that crosses a retry counts as late here, so `end` would be too strict.
    stage.cancel.cancel();
    stage.running.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_silent_socket_is_noticed_and_replaced() {
    let impatient = |settings: &mut SlackSettings| {
        settings.timings.ping_every_ms = 50;
        settings.timings.pong_wait_ms = 200;
        settings.timings.ack_wait_ms = 50;
    };
    let stage = Stage::with(impatient, Semaphore::MAX_PERMITS / 2).await;
    stage.slack.stall_sockets();
    let is_lost = |seen: &Seen| {
        let states = seen.states.lock().unwrap();
        states.iter().any(|state| {
            matches!(state, ConnectionState::Retrying { reason, .. } if reason.contains("ping"))
        })
    };
    stage.seen.until("noticed", is_lost).await;
    stage.until_connected(1).await;
    stage.cancel.cancel();
}

#[tokio::test]
async fn failed_attempts_to_connect_are_repeated_with_patience() {
    let stage = Stage::new().await;
    let faults = stage.slack.faults();
    faults.next("apps.connections.open", Fault::Status(500));
    faults.next("apps.connections.open", Fault::Html);
    faults.next(
        "apps.connections.open",
        Fault::Error("internal_error".to_owned()),
    );
    faults.next_upgrade(408);
    faults.next_upgrade(409);
    stage.slack.abort_sockets();
    stage
        .seen
        .until("six failures", |seen| seen.losses() >= 6)
        .await;
    stage.until_connected(1).await;
    stage.end().await;
}

#[tokio::test]
async fn a_rate_limit_of_the_opening_is_honoured() {
    let stage = Stage::new().await;
    stage
        .slack
        .faults()
        .next("apps.connections.open", Fault::RateLimited(1));
    stage.slack.abort_sockets();
    let is_waiting = |seen: &Seen| {
        let states = seen.states.lock().unwrap();
        states.iter().any(
            |state| matches!(state, ConnectionState::Retrying { wait_ms, .. } if *wait_ms >= 1_000),
        )
    };
    stage.seen.until("waits", is_waiting).await;
    stage.until_connected(1).await;
    stage.end().await;
}

#[tokio::test]
async fn a_refused_account_raises_an_alarm_and_is_tried_again_slowly() {
    let stage = Stage::new().await;
    stage
        .slack
        .faults()
        .set_account_error(Some("account_inactive"));
    stage.slack.abort_sockets();
    let alarm = |word: &'static str| {
        move |seen: &Seen| {
            let states = seen.states.lock().unwrap();
            states.iter().any(
                |state| matches!(state, ConnectionState::Alarm { reason } if reason.contains(word)),
            )
        }
    };
    stage.seen.until("alarm", alarm("account_inactive")).await;
    stage.slack.faults().set_account_error(None);
    stage.until_connected(1).await;
    stage.slack.disconnect("link_disabled");
    stage.seen.until("alarm", alarm("switched off")).await;
    stage.until_connected(1).await;
    stage.end().await;
}

#[tokio::test]
async fn several_sockets_are_held_open() {
    let stage = Stage::with(|settings| settings.sockets = 3, Semaphore::MAX_PERMITS / 2).await;
    assert!(stage.slack.wait_for_socket_count(3, WAIT).await);
    for n in 0..30 {
        stage.slack.say("#general", "ann", &format!("line {n}"));
    }
    stage.seen.until_heard(30).await;
    stage.until_all_acked().await;
    stage.end().await;
}

#[tokio::test]
async fn ten_sockets_are_refreshed_one_for_one_and_an_eleventh_waits_for_its_turn() {
    let stage = Stage::with(|settings| settings.sockets = 10, Semaphore::MAX_PERMITS / 2).await;
    let told = |seen: &Seen| seen.states.lock().unwrap().len();
    let before = told(&stage.seen);
    stage.slack.disconnect("refresh_requested");
    // Ten go and ten come, each told.
    let is_refreshed = |seen: &Seen| told(seen) == before + 20 && seen.is_connected(10);
    stage.seen.until("refreshed", is_refreshed).await;

    let channel = SlackChannel::new(settings(&stage.slack)).unwrap();
    let (seen, cancel) = (Seen::new(1), CancellationToken::new());
    let mut inbound = channel.inbound(&stage.identity);
    let (intake, reporter) = (
        TestIntake(Arc::clone(&seen)),
        TestReporter(Arc::clone(&seen)),
    );
    let stop = cancel.clone();
    let eleventh = tokio::spawn(async move {
        inbound
            .run(Arc::new(intake), Arc::new(reporter), stop)
            .await
    });
    let is_told = |seen: &Seen| {
        let states = seen.states.lock().unwrap();
        states.iter().any(|state| {
            matches!(state, ConnectionState::Retrying { reason, .. } if reason.contains("too many"))
        })
    };
    seen.until("too many", is_told).await;
    stage.cancel.cancel();
    stage.running.await.unwrap().unwrap();
    seen.until("its turn", |seen| seen.is_connected(1)).await;
    cancel.cancel();
    eleventh.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_stop_waits_for_what_is_being_stored_and_acknowledges_it() {
    let stage = Stage::with(|_| {}, 0).await;
    stage.slack.say("#general", "ann", "last words");
    stage.slack.raw_frame("not json");
    stage
        .seen
        .until("read", |seen| *seen.malformed.lock().unwrap() == 1)
        .await;
    stage.cancel.cancel();
    stage.seen.gate.add_permits(1);
    stage.until_all_acked().await;
    stage.end().await;
}

#[tokio::test]
async fn a_post_arrives_as_literal_text_and_comes_back_as_our_own() {
    let stage = Stage::new().await;
    let root = stage.slack.say("#general", "ann", "root");
    let outbound = stage.outbound();
    let part = outbound
        .render("<!channel> <@U0BOB> & done", &People::nobody())
        .remove(0);
    let post = Post {
        part,
        ..post("o-1", "C0GENERAL", Some(&root), "")
    };
    let delivered = outbound.deliver(&post).await.unwrap();
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
        Fault::StatusAfterApply(500),
        Fault::ResetAfter,
        Fault::LoseResponse,
    ];
    for (n, fault) in faults.into_iter().enumerate() {
        for (place, thread) in [("thread", Some(root.as_str())), ("channel", None)] {
            let post = post(&format!("o-{place}-{n}"), "C0GENERAL", thread, "answer");
            stage.slack.faults().next("chat.postMessage", fault.clone());
            let error = outbound.deliver(&post).await.unwrap_err();
            assert!(
                matches!(error, ChannelError::OutcomeUnknown { .. }),
                "{error:?}"
            );
            let found = outbound.read_back(&post, ms(&root)).await.unwrap();
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
        .next("chat.postMessage", Fault::Status(503));
    let never = post("o-never", "C0GENERAL", None, "answer");
    outbound.deliver(&never).await.unwrap_err();
    assert_eq!(
        outbound.read_back(&never, ms(&root)).await.unwrap(),
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
    let delivered = stage.outbound().deliver(&first).await.unwrap();
    for n in 0..450 {
        stage.slack.say("#general", "ann", &format!("line {n}"));
    }
    let found = stage
        .outbound()
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
    outbound.deliver(&hello).await.unwrap();
    // The fault, and whether the post is there all the same. Only one request meets it: a second one,
    // made underneath, would be answered and be there, too.
    for (fault, posts) in [
        (Fault::ResetBefore, 0),
        (Fault::ResetAfter, 1),
        (Fault::Status(503), 0),
        (Fault::StatusAfterApply(500), 1),
        (Fault::ErrorAfterApply("internal_error".to_owned()), 1),
        (Fault::RateLimited(7), 0),
        (Fault::Html, 0),
    ] {
        let before = stage.slack.posts("#general").len();
        stage.slack.faults().next("chat.postMessage", fault.clone());
        outbound.deliver(&hello).await.unwrap_err();
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
        .next("chat.postMessage", Fault::RateLimited(7));
    let error = outbound.deliver(&hello).await.unwrap_err();
    assert!(
        matches!(error, ChannelError::RetryAfter { wait_ms: 7_000, .. }),
        "{error:?}"
    );
    stage
        .slack
        .faults()
        .next("chat.postMessage", Fault::ResetBefore);
    let error = outbound.deliver(&hello).await.unwrap_err();
    assert!(
        matches!(error, ChannelError::OutcomeUnknown { .. }),
        "{error:?}"
    );
    for chat in ["C0ELSEWHERE", "C0ATTIC", "C0NOWHERE"] {
        let error = outbound
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
    let error = outbound.deliver(&hello).await.unwrap_err();
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
            .next("chat.postMessage", Fault::RateLimited(600));
        let refused = outbound.deliver(&post("o-1", chat, None, "hello")).await;
        let wait_ms = match refused {
            Err(ChannelError::RetryAfter { wait_ms, .. }) => wait_ms,
            other => panic!("{other:?}"),
        };
        assert_eq!(wait_ms, 600_000);
    };
    refuse("C0GENERAL").await;
    let wait = outbound.wait_before(&target("C0GENERAL"));
    assert!(wait > Duration::from_secs(590), "{wait:?}");
    assert_eq!(outbound.wait_before(&target("C0OPS")), Duration::ZERO);
    refuse("C0OPS").await;
    assert_eq!(outbound.wait_before(&target("D0ANN")), Duration::ZERO);
    refuse("D0ANN").await;
    let wait = outbound.wait_before(&target("C0SECRET"));
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
        slack.faults().next(method, Fault::RateLimited(600));
    }
    for _ in 0..20 {
        let refused = [
            outbound.person_name("U0ANN").await.map(|_| ()),
            outbound
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
    outbound.chat_facts("C0GENERAL").await.unwrap();
    outbound
        .deliver(&post("o-2", "C0GENERAL", None, "hello"))
        .await
        .unwrap();
}

#[tokio::test]
async fn names_are_looked_up_once() {
    let stage = Stage::new().await;
    let outbound = stage.outbound();
    assert_eq!(
        outbound.person_name("U0ANN").await.unwrap().as_deref(),
        Some("Ann")
    );
    assert_eq!(outbound.person_name("U0NOBODY").await.unwrap(), None);
    let place = outbound.chat_facts("C0SECRET").await.unwrap();
    assert_eq!(
        (place.kind, place.title.as_deref()),
        (Some(ChatKind::Private), Some("#secret"))
    );
    assert_eq!(
        outbound.chat_facts("D0ANN").await.unwrap().kind,
        Some(ChatKind::Direct)
    );
    assert_eq!(
        outbound.chat_facts("G0GROUP").await.unwrap().kind,
        Some(ChatKind::GroupDirect)
    );
    assert!(outbound.chat_facts("C0PARTNERS").await.unwrap().is_shared);
    stage.slack.faults().next("*", Fault::Status(500));
    assert_eq!(
        outbound.person_name("U0ANN").await.unwrap().as_deref(),
        Some("Ann")
    );
    assert_eq!(outbound.person_name("U0NOBODY").await.unwrap(), None);
    outbound.chat_facts("C0SECRET").await.unwrap();
    // The queued failure is still there: nothing was asked again.
    outbound.chat_facts("C0OPS").await.unwrap_err();
    stage.slack.rename_channel("#secret", "open-secret");
    stage.seen.until_heard(1).await;
    let place = outbound.chat_facts("C0SECRET").await.unwrap();
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

/// DESIGN §5, promise 12.
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
        Some(Fault::ResetBefore),
        Some(Fault::Html),
        Some(Fault::Status(500)),
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

/// An outbound half without a socket.
async fn outbound_of(slack: &SlackServer) -> Arc<dyn Outbound> {
    let channel = SlackChannel::new(settings(slack)).unwrap();
    let identity = channel.identify().await.unwrap();
    channel.outbound(&identity)
}

#[tokio::test]
async fn a_message_is_edited_and_deleted_and_keeps_its_marker() {
    let slack = slack_server().await;
    let outbound = outbound_of(&slack).await;
    let first = post("o-1", "D0ANN", None, "first");
    let message_id = outbound.deliver(&first).await.unwrap().message_id;
    let done = |operation: Operation, part: Part| Post {
        operation,
        part,
        ..post("o-2", "D0ANN", None, "")
    };
    let edit = Operation::Edit {
        message_id: message_id.clone(),
    };
    let marked = outbound.render("**second**", &People::nobody()).remove(0);
    let edited = outbound.deliver(&done(edit.clone(), marked)).await.unwrap();
    assert_eq!(edited.message_id, message_id);
    assert_eq!(slack.posts("D0ANN")[0].shown(), "**second**");
    // The blocks go with the text that they stood for.
    outbound
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
        outbound.deliver(&done(delete.clone(), part)).await.unwrap();
    }
    assert!(slack.posts("D0ANN")[0].deleted);
    let late = outbound.deliver(&done(edit, Part::plain("fourth"))).await;
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
    let delivered = outbound.deliver(&first).await.unwrap();
    let live = |added: &str| LivePost {
        target: first.target.clone(),
        form: LiveForm::Stream {
            message_id: delivered.message_id.clone(),
            added: added.to_owned(),
        },
        part: Part::plain(""),
    };
    outbound.show_live(&live(" at")).await.unwrap();
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
    slack.faults().next("chat.stopStream", Fault::ResetAfter);
    let lost = other.deliver(&edit).await;
    assert!(
        matches!(lost, Err(ChannelError::OutcomeUnknown { .. })),
        "{lost:?}"
    );
    other.deliver(&edit).await.unwrap();
    assert_eq!(
        slack.posts("#general").pop().unwrap().text,
        "Tomorrow at nine."
    );
    let late = outbound.show_live(&live(" and late")).await;
    assert!(
        matches!(late, Err(ChannelError::Rejected { .. })),
        "{late:?}"
    );
    assert_eq!(
        slack.posts("#general").pop().unwrap().text,
        "Tomorrow at nine."
    );

    let again = outbound.deliver(&begun("o-3", &root, "And")).await.unwrap();
    let message_id = again.message_id;
    other
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
    outbound.deliver(&plain).await.unwrap();
    let first = begun("o-1", &root, "**Tomorrow** at");
    assert_eq!(
        outbound.read_back(&first, ms(&root)).await.unwrap(),
        ReadBack::NotFound
    );
    slack.faults().next("chat.startStream", Fault::ResetAfter);
    let lost = outbound.deliver(&first).await;
    assert!(
        matches!(lost, Err(ChannelError::OutcomeUnknown { .. })),
        "{lost:?}"
    );
    let started = slack.posts("#general").pop().unwrap();
    let found = outbound.read_back(&first, ms(&root)).await.unwrap();
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
    outbound.deliver(&edit).await.unwrap();
    let next = begun("o-3", &root, "And");
    assert_eq!(
        outbound.read_back(&next, ms(&root)).await.unwrap(),
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
        Fault::Error("channel_type_not_supported".to_owned()),
        Fault::Error("feature_not_enabled".to_owned()),
    ];
    for (n, fault) in refusals.into_iter().enumerate() {
        slack.faults().next("chat.startStream", fault);
        outbound
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
        .deliver(&begun("o-2", &root, "Tomorrow"))
        .await
        .unwrap();
    let other = outbound_of(&slack).await;
    let mut at_top = begun("o-3", &root, "Tomorrow");
    at_top.target.thread = None;
    other.deliver(&at_top).await.unwrap();
    assert_eq!(starts(), 2);
    // In a direct chat nobody is named.
    let asked = slack.say("D0ANN", "ann", "when?");
    let mut direct = begun("o-4", &asked, "Tomorrow");
    direct.target.chat = "D0ANN".to_owned();
    other.deliver(&direct).await.unwrap();
    assert!(slack.posts("D0ANN").pop().unwrap().stream.is_some());
    // A rate limit costs the stream, not the post.
    slack
        .faults()
        .next("chat.startStream", Fault::RateLimited(30));
    other
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
    let message_id = outbound.deliver(&first).await.unwrap().message_id;
    let live = |text: &str| LivePost {
        target: first.target.clone(),
        form: LiveForm::Post {
            message_id: message_id.clone(),
        },
        part: outbound.render_live(text).unwrap(),
    };
    outbound.show_live(&live("Tomorrow at ni")).await.unwrap();
    assert_eq!(slack.posts("D0ANN")[0].text, "Tomorrow at …");
    slack.faults().next("chat.update", Fault::RateLimited(2));
    for _ in 0..2 {
        let refused = outbound.show_live(&live("Tomorrow at nine")).await;
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
    assert_eq!(outbound.wait_before(&edit.target), Duration::ZERO);
    while let Err(error) = outbound.deliver(&edit).await {
        let ChannelError::RetryAfter { wait_ms, .. } = error else {
            panic!("{error:?}");
        };
        tokio::time::sleep(Duration::from_millis(wait_ms)).await;
    }
    let late = outbound.show_live(&live("Tomorrow at nine")).await;
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
    outbound.show_working(&at_top).await;
    outbound.show_working(&in_thread).await;
    outbound.show_idle(&in_thread).await;
    let statuses: Vec<String> = slack.statuses().into_iter().map(|it| it.status).collect();
    assert_eq!(statuses, ["is thinking…", ""]);

    let refusal = Fault::Error("missing_scope".to_owned());
    slack.faults().next("assistant.threads.setStatus", refusal);
    outbound.show_working(&in_thread).await;
    outbound.show_working(&in_thread).await;
    let is_call = |record: &WireRecord| {
        record.kind == WireKind::Request && record.name == "assistant.threads.setStatus"
    };
    assert_eq!(wire.records().into_iter().filter(is_call).count(), 3);
}

fn aside(operation: Operation, text: &str) -> Post {
    Post {
        operation,
        ..post("o1", "C0GENERAL", None, text)
    }
}

#[tokio::test]
async fn a_reaction_is_put_and_taken_away_however_often() {
    let stage = Stage::new().await;
    let outbound = stage.outbound();
    let ts = stage.slack.say("#general", "ann", "hello");
    let react = Operation::React {
        message_id: ts.clone(),
    };
    let unreact = Operation::Unreact {
        message_id: ts.clone(),
    };
    let signs = || stage.slack.posts("#general")[0].reactions.clone();
    for _ in 0..2 {
        let done = outbound.deliver(&aside(react.clone(), ":eyes:")).await;
        assert_eq!(done.unwrap().message_id, ts);
    }
    assert_eq!(signs().keys().collect::<Vec<_>>(), ["eyes"]);
    for _ in 0..2 {
        let done = outbound.deliver(&aside(unreact.clone(), "eyes")).await;
        assert_eq!(done.unwrap().message_id, ts);
    }
    assert!(signs().values().all(Vec::is_empty));
    // A missing scope for signs takes nothing from the account.
    stage.slack.change_world(|world| {
        world.scopes.retain(|scope| scope != "reactions:write");
    });
    let refused = outbound.deliver(&aside(react, "eyes")).await.unwrap_err();
    assert!(
        matches!(refused, ChannelError::Rejected { .. }),
        "{refused:?}"
    );
}

#[tokio::test]
async fn one_person_is_told_where_they_are_or_else_directly() {
    let stage = Stage::new().await;
    let outbound = stage.outbound();
    let tell = Operation::Ephemeral {
        person: "U0ANN".to_owned(),
    };
    let mut post = aside(tell, "only you");
    outbound.deliver(&post).await.unwrap();
    let told = stage.slack.ephemerals();
    assert_eq!((told.len(), told[0].user.as_str()), (1, "U0ANN"));
    post.target.chat = "C0ELSEWHERE".to_owned();
    outbound.deliver(&post).await.unwrap();
    assert_eq!(stage.slack.ephemerals().len(), 1);
    let direct = stage.slack.posts("D0ANN");
    assert_eq!(direct[0].text, "only you");
}
