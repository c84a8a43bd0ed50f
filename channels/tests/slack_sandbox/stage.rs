//! A loopback Slack with a channel before it, and what a daemon would have seen.

use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use secrecy::SecretString;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use vocative_channels::http::HttpTimeouts;
use vocative_channels::slack::{SlackChannel, SlackSettings, SocketTimings};
use vocative_contract::channel::{
    Accepted, BoxFuture, Channel as _, ConnectionState, Intake, IntakeError, Reporter,
};
use vocative_contract::envelope::{Envelope, Event, InboundMessage};
use vocative_contract::error::ChannelError;
use vocative_contract::handles::Outbound;
use vocative_contract::identity::Identity;
use vocative_contract::outbound::{Operation, Part, Post, Target};
use vocative_sandbox::slack::{SlackServer, SlackWorld};
use vocative_sandbox::wire::WireLog;

/// Nothing on loopback takes longer.
pub(super) const WAIT: Duration = Duration::from_secs(20);

/// Back-offs short enough for tests; watchdogs as they are.
fn quick() -> SocketTimings {
    SocketTimings {
        backoff_first_ms: 20,
        backoff_max_ms: 100,
        too_many_ms: 50,
        alarm_ms: 100,
        stagger_ms: 1,
        reopen_every_ms: 20,
        ..SocketTimings::default()
    }
}

/// What the daemon would have seen (`storing`: envelopes being stored, and the most there were); waits for states, not
/// for time.
pub(super) struct Seen {
    pub(super) envelopes: Mutex<Vec<Envelope>>,
    pub(super) states: Mutex<Vec<ConnectionState>>,
    pub(super) acked: Mutex<usize>,
    pub(super) malformed: Mutex<usize>,
    pub(super) failing: Mutex<bool>,
    pub(super) storing: Mutex<(usize, usize)>,
    pub(super) gate: Semaphore,
    pub(super) changed: watch::Sender<u64>,
}

impl Seen {
    pub(super) fn new(gate: usize) -> Arc<Self> {
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

    pub(super) fn change<T>(&self, what: &Mutex<T>, change: impl FnOnce(&mut T)) {
        change(&mut what.lock().unwrap());
        self.changed.send_modify(|n| *n += 1);
    }

    pub(super) async fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
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

    pub(super) async fn until_heard(&self, count: usize) {
        self.until("envelopes", |seen| {
            seen.envelopes.lock().unwrap().len() >= count
        })
        .await;
    }

    pub(super) fn posts(&self) -> Vec<InboundMessage> {
        let envelopes = self.envelopes.lock().unwrap();
        let posts = envelopes
            .iter()
            .filter_map(|envelope| match &envelope.event {
                Event::Posted(message) => Some(message.clone()),
                _ => None,
            });
        posts.collect()
    }

    pub(super) fn texts(&self) -> Vec<String> {
        self.posts().into_iter().map(|post| post.text).collect()
    }

    /// How often a connection was missing.
    pub(super) fn losses(&self) -> usize {
        let states = self.states.lock().unwrap();
        let is_loss = |state: &&ConnectionState| matches!(state, ConnectionState::Retrying { .. });
        states.iter().filter(is_loss).count()
    }

    pub(super) fn is_connected(&self, connections: usize) -> bool {
        let states = self.states.lock().unwrap();
        states.last() == Some(&ConnectionState::Connected { connections })
    }
}

/// The intake keeps only what it says it keeps.
pub(super) struct TestIntake(pub(super) Arc<Seen>);

impl Intake for TestIntake {
    fn accept(&self, envelope: Envelope) -> BoxFuture<'_, Result<Accepted, IntakeError>> {
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
            Ok(Accepted::default())
        })
    }
}

pub(super) struct TestReporter(pub(super) Arc<Seen>);

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
pub(super) struct Stage {
    pub(super) slack: SlackServer,
    pub(super) channel: SlackChannel,
    pub(super) identity: Identity,
    pub(super) seen: Arc<Seen>,
    pub(super) cancel: CancellationToken,
    pub(super) running: JoinHandle<Result<(), ChannelError>>,
}

pub(super) async fn slack_server() -> SlackServer {
    slack_server_with(WireLog::new()).await
}

pub(super) async fn slack_server_with(wire: WireLog) -> SlackServer {
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

pub(super) fn settings(slack: &SlackServer) -> SlackSettings {
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
    pub(super) async fn new() -> Self {
        Self::with(|_| {}, Semaphore::MAX_PERMITS / 2).await
    }

    pub(super) async fn with(change: impl FnOnce(&mut SlackSettings), gate: usize) -> Self {
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

    pub(super) async fn until_connected(&self, sockets: usize) {
        self.seen
            .until("connected", |seen| seen.is_connected(sockets))
            .await;
    }

    pub(super) async fn until_all_acked(&self) {
        assert!(
            self.slack.wait_until_all_acked(WAIT).await,
            "{} unacked",
            self.slack.unacked()
        );
    }

    pub(super) fn outbound(&self) -> Outbound {
        self.channel.outbound(&self.identity)
    }

    /// Stops the adapter, and finds nothing wrong with how it behaved.
    pub(super) async fn end(self) {
        self.cancel.cancel();
        let ended = tokio::time::timeout(WAIT, self.running).await;
        ended.unwrap().unwrap().unwrap();
        assert!(self.slack.wait_for_socket_count(0, WAIT).await);
        assert_eq!(self.slack.violations(), Vec::<String>::new());
    }
}

pub(super) fn post(marker: &str, chat: &str, thread: Option<&str>, text: &str) -> Post {
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
pub(super) fn ms(ts: &str) -> i64 {
    let (seconds, micros) = ts.split_once('.').unwrap();
    seconds.parse::<i64>().unwrap() * 1_000 + micros.parse::<i64>().unwrap() / 1_000
}

/// An outbound half without a socket.
pub(super) async fn outbound_of(slack: &SlackServer) -> Outbound {
    let channel = SlackChannel::new(settings(slack)).unwrap();
    let identity = channel.identify().await.unwrap();
    channel.outbound(&identity)
}
