//! An intake and reporter that remember, and a poller that runs beside the test.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use secrecy::SecretString;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use vocative_channels::telegram::{PollTimings, TelegramChannel, TelegramSettings};
use vocative_contract::channel::{
    Accepted, BoxFuture, Channel as _, ConnectionState, Intake, IntakeError, Reporter,
};
use vocative_contract::envelope::{Envelope, Event, InboundMessage};
use vocative_contract::error::ChannelError;
use vocative_sandbox::telegram::{TelegramServer, TelegramWorld};
use vocative_sandbox::wire::WireLog;

/// Nothing that is waited for takes longer.
pub(crate) const BOUND: Duration = Duration::from_secs(10);

/// Starts the small team's Telegram.
pub(crate) async fn telegram() -> TelegramServer {
    let addr = "127.0.0.1:0".parse().unwrap();
    TelegramServer::start(TelegramWorld::team(), addr, WireLog::new())
        .await
        .unwrap()
}

/// Settings with short waits.
pub(crate) fn settings(api_url: &str, token: &str) -> TelegramSettings {
    // The program's `main` does this once; the first test wins.
    let _ = rustls::crypto::ring::default_provider().install_default();
    TelegramSettings {
        api_url: api_url.to_owned(),
        poll_timeout_s: 1,
        timings: PollTimings {
            request_margin_ms: 500,
            backoff_first_ms: 20,
            backoff_max_ms: 100,
            refused_wait_ms: 50,
            empty_pause_ms: 20,
            ..PollTimings::default()
        },
        ..TelegramSettings::new("tg", SecretString::from(token))
    }
}

/// A channel to a server.
pub(crate) fn channel(server: &TelegramServer) -> TelegramChannel {
    TelegramChannel::new(settings(&server.api_url(), &server.token()))
}

/// What was heard.
#[derive(Default)]
pub(crate) struct Heard {
    /// Completed round trips: one for the webhook look-up, then one per poll.
    pub(crate) rounds: usize,
    pub(crate) offered: usize,
    pub(crate) accepted: Vec<Envelope>,
    pub(crate) refused: usize,
    pub(crate) states: Vec<ConnectionState>,
    pub(crate) acknowledged: usize,
    pub(crate) malformed: usize,
    pub(crate) deaf: usize,
}

type Storage = Box<dyn Fn(&Envelope) -> bool + Send>;

/// Takes envelopes and remembers everything. `storage` says whether one can be stored.
pub(crate) struct Recorder {
    heard: Mutex<Heard>,
    storage: Mutex<Storage>,
    open: watch::Sender<bool>,
    changed: watch::Sender<()>,
}

impl Recorder {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            heard: Mutex::default(),
            storage: Mutex::new(Box::new(|_| true)),
            open: watch::Sender::new(true),
            changed: watch::Sender::new(()),
        })
    }

    /// Decides from now on what can be stored.
    pub(crate) fn store_if(&self, storage: impl Fn(&Envelope) -> bool + Send + 'static) {
        *self.storage.lock().unwrap() = Box::new(storage);
    }

    /// Holds every commit back, or lets them through.
    pub(crate) fn let_commit(&self, open: bool) {
        self.open.send_replace(open);
    }

    pub(crate) fn look<R>(&self, look: impl FnOnce(&Heard) -> R) -> R {
        look(&self.heard.lock().unwrap())
    }

    fn note(&self, note: impl FnOnce(&mut Heard)) {
        note(&mut self.heard.lock().unwrap());
        self.changed.send_replace(());
    }

    /// Waits until something was heard.
    pub(crate) async fn until<R>(&self, mut look: impl FnMut(&Heard) -> Option<R>) -> R {
        let mut changed = self.changed.subscribe();
        let found = async {
            loop {
                if let Some(found) = self.look(&mut look) {
                    return found;
                }
                changed.changed().await.unwrap();
            }
        };
        tokio::time::timeout(BOUND, found)
            .await
            .expect("it is heard in time")
    }

    /// Waits for `count` completed polls.
    pub(crate) async fn polls(&self, count: usize) {
        self.until(|heard| (heard.rounds > count).then_some(()))
            .await;
    }

    /// Waits for a state.
    pub(crate) async fn until_state(&self, wanted: impl Fn(&ConnectionState) -> bool) {
        self.until(|heard| heard.states.iter().any(&wanted).then_some(()))
            .await;
    }

    /// Waits for a message with this text.
    pub(crate) async fn message(&self, text: &str) -> InboundMessage {
        self.until(|heard| posted(heard).into_iter().find(|it| it.text == text))
            .await
    }
}

/// The messages that were accepted, in order.
pub(crate) fn posted(heard: &Heard) -> Vec<InboundMessage> {
    let events = heard.accepted.iter().map(|envelope| &envelope.event);
    events
        .filter_map(|event| match event {
            Event::Posted(message) => Some(message.clone()),
            _ => None,
        })
        .collect()
}

impl Intake for Recorder {
    fn accept(&self, envelope: Envelope) -> BoxFuture<'_, Result<Accepted, IntakeError>> {
        Box::pin(async move {
            self.note(|heard| heard.offered += 1);
            self.open.subscribe().wait_for(|open| *open).await.unwrap();
            if (self.storage.lock().unwrap())(&envelope) {
                self.note(|heard| heard.accepted.push(envelope));
                Ok(Accepted::default())
            } else {
                self.note(|heard| heard.refused += 1);
                Err(IntakeError("disk full".into()))
            }
        })
    }
}

impl Reporter for Recorder {
    fn state(&self, state: ConnectionState) {
        self.note(|heard| heard.states.push(state));
    }

    fn heard(&self) {
        self.note(|heard| heard.rounds += 1);
    }

    fn acknowledged(&self, _lag_ms: u64) {
        self.note(|heard| heard.acknowledged += 1);
    }

    fn deaf(&self) {
        self.note(|heard| heard.deaf += 1);
    }

    fn malformed(&self) {
        self.note(|heard| heard.malformed += 1);
    }
}

/// An inbound half that runs.
pub(crate) struct Running {
    pub(crate) recorder: Arc<Recorder>,
    cancel: CancellationToken,
    task: JoinHandle<Result<(), ChannelError>>,
}

impl Running {
    /// Starts the inbound half of a channel, which must be able to identify itself.
    pub(crate) async fn start(channel: &TelegramChannel) -> Self {
        let identity = channel.identify().await.unwrap();
        Self::start_as(channel, &identity)
    }

    /// Starts the inbound half with an identity learnt earlier.
    pub(crate) fn start_as(
        channel: &TelegramChannel,
        identity: &vocative_contract::identity::Identity,
    ) -> Self {
        let mut inbound = channel.inbound(identity);
        let recorder = Recorder::new();
        let cancel = CancellationToken::new();
        let (intake, reporter) = (Arc::clone(&recorder), Arc::clone(&recorder));
        let token = cancel.clone();
        let task = tokio::spawn(async move { inbound.run(intake, reporter, token).await });
        Self {
            recorder,
            cancel,
            task,
        }
    }

    /// Asks it to stop, without waiting.
    pub(crate) fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Whether it still runs.
    pub(crate) fn is_running(&self) -> bool {
        !self.task.is_finished()
    }

    /// Stops it and gives back what was heard.
    pub(crate) async fn stop(self) -> Arc<Recorder> {
        self.cancel.cancel();
        let ended = tokio::time::timeout(BOUND, self.task).await;
        ended
            .expect("it stops in time")
            .expect("it does not panic")
            .expect("it stops without an error");
        self.recorder
    }
}
