//! Keeps one channel going: identifies it, runs its inbound half, starts it again after a failure
//! or panic, and asks whether a refused account is accepted again. A channel never takes another one
//! down: all that an adapter does runs in tasks of its own.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{error, info, warn};
use vocative_channels::backoff::Backoff;
use vocative_contract::channel::{BoxFuture, Channel, ConnectionState, Intake, Reporter};
use vocative_contract::error::ChannelError;
use vocative_contract::identity::Identity;

use crate::admin::health::ChannelHealth;
use crate::catchup::keeper::CatchupKeeper;
use vocative_store::StoreError;

/// Waits between attempts to identify or run a channel.
const RETRY_FIRST_MS: u64 = 500;
const RETRY_MAX_MS: u64 = 60_000;
/// Waits between attempts while the account is refused, in case it was renewed.
const REFUSED_FIRST_MS: u64 = 1_000;
const REFUSED_MAX_MS: u64 = 120_000;
/// A half that ran this long was healthy: its failures are forgotten.
const HEALTHY_AFTER: Duration = Duration::from_secs(60);

/// Why an identified channel can't serve.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The store failed; try again.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The configuration prevents it; a person must act.
    #[error("{what}")]
    Other {
        /// What is wrong, and what to do.
        what: String,
    },
}

/// Called once a channel is identified.
pub type Bind = Arc<dyn Fn(Identity) -> BoxFuture<'static, Result<Bound, BindError>> + Send + Sync>;

/// A channel that is bound to its account.
#[derive(Clone)]
pub struct Bound {
    /// Takes in what it hears.
    pub intake: Arc<dyn Intake>,
    /// Notified when the platform refused the account and posts were held because of it.
    pub refused: Arc<Notify>,
    /// Releases the held posts.
    pub lift: Lift,
    /// Reads back missed messages, if the platform has a history.
    pub keeper: Option<Arc<CatchupKeeper>>,
}

/// Passes the state of a connection on to the health display and to the keeper that reads back.
struct ConnectionReporter {
    health: Arc<ChannelHealth>,
    keeper: Option<Arc<CatchupKeeper>>,
}

impl Reporter for ConnectionReporter {
    fn state(&self, state: ConnectionState) {
        if let Some(keeper) = &self.keeper {
            keeper.note_state(&state);
        }
        self.health.state(state);
    }

    fn heard(&self) {
        self.health.heard();
    }

    fn acknowledged(&self, lag_ms: u64) {
        self.health.acknowledged(lag_ms);
    }

    fn malformed(&self) {
        self.health.malformed();
    }

    fn refused(&self) {
        self.health.refused();
    }

    fn late(&self) {
        self.health.late();
    }

    fn deaf(&self) {
        self.health.deaf();
    }

    fn other_connections(&self, count: u64) {
        self.health.other_connections(count);
    }
}

/// Lifts the hold on an account.
pub type Lift = Arc<dyn Fn() -> BoxFuture<'static, Result<(), StoreError>> + Send + Sync>;

/// Runs a channel until cancelled.
pub async fn supervise(
    name: String,
    channel: Arc<dyn Channel>,
    bind: Bind,
    health: Arc<ChannelHealth>,
    cancel: CancellationToken,
) {
    let Some((identity, bound)) = identify(&name, &channel, &bind, &health, &cancel).await else {
        return;
    };
    tokio::join!(
        keep_hearing(&name, &channel, &identity, &bound, &health, &cancel),
        keep_account(&name, &channel, &bound, &cancel),
        keep_up(&name, &bound, &cancel),
    );
}

/// Reads back missed messages in a task of its own, which contains a panic.
async fn keep_up(name: &str, bound: &Bound, cancel: &CancellationToken) {
    let Some(keeper) = &bound.keeper else {
        return;
    };
    let mut backoff = Backoff::new(RETRY_FIRST_MS, RETRY_MAX_MS);
    while !cancel.is_cancelled() {
        let reading = Arc::clone(keeper).run(cancel.clone());
        if apart(reading).await.is_none() {
            error!(channel.id = %name, "reading history panicked, which is a bug; it is started again");
        }
        pause(backoff.next_ms(), cancel).await;
    }
}

/// Runs the inbound half, again and again.
async fn keep_hearing(
    name: &str,
    channel: &Arc<dyn Channel>,
    identity: &Identity,
    bound: &Bound,
    health: &Arc<ChannelHealth>,
    cancel: &CancellationToken,
) {
    let mut backoff = Backoff::new(RETRY_FIRST_MS, RETRY_MAX_MS);
    let heard: Arc<dyn Reporter> = Arc::new(ConnectionReporter {
        health: Arc::clone(health),
        keeper: bound.keeper.clone(),
    });
    while !cancel.is_cancelled() {
        let started = Instant::now();
        let (channel, identity) = (Arc::clone(channel), identity.clone());
        let reporter = Arc::clone(&heard);
        let (intake, stop) = (Arc::clone(&bound.intake), cancel.child_token());
        let stopped = stop.clone();
        let hearing = apart(async move {
            let mut inbound = channel.inbound(&identity);
            inbound.run(intake, reporter, stopped).await
        });
        let doubted = async {
            doubt(bound).await;
            heard.deaf();
            stop.cancel();
            // The inbound half ends by itself; only then is another one started.
            std::future::pending::<()>().await;
        };
        let ended = tokio::select! {
            biased;
            ended = hearing => ended,
            () = doubted => None,
        };
        let reason = match ended {
            Some(Ok(())) if cancel.is_cancelled() => return,
            Some(Ok(())) if stop.is_cancelled() => "it heard nothing of what was said".to_owned(),
            Some(Ok(())) => "it ended by itself".to_owned(),
            Some(Err(cause)) => cause.reason(),
            None => {
                error!(channel.id = %name, "a channel panicked, which is a bug; it is started again");
                "it panicked".to_owned()
            }
        };
        if started.elapsed() >= HEALTHY_AFTER {
            backoff.reset();
        }
        health.restarted();
        let wait_ms = backoff.next_ms();
        heard.state(ConnectionState::Retrying { reason, wait_ms });
        pause(wait_ms, cancel).await;
    }
}

/// Waits until the connection is found to hear nothing; forever if that can't be found out.
async fn doubt(bound: &Bound) {
    match &bound.keeper {
        Some(keeper) => keeper.is_deaf().await,
        None => std::future::pending().await,
    }
}

/// Runs adapter code in a task of its own, which contains a panic; `None` if it panicked.
async fn apart<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> Option<T> {
    AbortOnDropHandle::new(tokio::spawn(work)).await.ok()
}

/// Asks the platform who we are until it says; `None` if cancelled before.
async fn identify(
    name: &str,
    channel: &Arc<dyn Channel>,
    bind: &Bind,
    health: &ChannelHealth,
    cancel: &CancellationToken,
) -> Option<(Identity, Bound)> {
    let mut backoff = Backoff::new(RETRY_FIRST_MS, RETRY_MAX_MS);
    let mut refused_backoff = Backoff::new(REFUSED_FIRST_MS, REFUSED_MAX_MS);
    loop {
        let answer = tokio::select! {
            biased;
            answer = ask_identity(channel) => answer,
            () = cancel.cancelled() => return None,
        };
        let wait_ms = match answer {
            Some(Ok(identity)) => match apart(bind(identity.clone())).await {
                Some(Ok(bound)) => {
                    announce(name, &identity, health);
                    return Some((identity, bound));
                }
                Some(Err(BindError::Other { what })) => {
                    health.state(ConnectionState::Alarm { reason: what });
                    refused_backoff.next_ms()
                }
                failed => {
                    let cause = failed.and_then(Result::err);
                    error!(channel.id = %name, error = cause.map(tracing::field::display), "the channel could not be bound; trying again");
                    backoff.next_ms()
                }
            },
            Some(Err(ChannelError::Unauthorized { reason, .. })) => {
                let reason = format!("the platform refuses the token ({reason}); renew it");
                health.state(ConnectionState::Alarm { reason });
                refused_backoff.next_ms()
            }
            Some(Err(ChannelError::RetryAfter { wait_ms, .. })) => {
                retry(health, "the platform asks to wait".to_owned(), wait_ms)
            }
            Some(Err(cause)) => retry(health, cause.reason(), backoff.next_ms()),
            None => retry(health, "it panicked".to_owned(), backoff.next_ms()),
        };
        pause(wait_ms, cancel).await;
        if cancel.is_cancelled() {
            return None;
        }
    }
}

fn retry(health: &ChannelHealth, reason: String, wait_ms: u64) -> u64 {
    health.state(ConnectionState::Retrying { reason, wait_ms });
    wait_ms
}

/// Asks the platform who we are; `None` if the adapter panicked.
async fn ask_identity(channel: &Arc<dyn Channel>) -> Option<Result<Identity, ChannelError>> {
    let channel = Arc::clone(channel);
    apart(async move { channel.identify().await }).await
}

/// After the account is refused, asks until the platform accepts it, and releases the held posts. The waits also grow
/// while the platform accepts the account and still refuses the posts.
async fn keep_account(
    name: &str,
    channel: &Arc<dyn Channel>,
    bound: &Bound,
    cancel: &CancellationToken,
) {
    let mut backoff = Backoff::new(REFUSED_FIRST_MS, REFUSED_MAX_MS);
    let mut lifted_at = Instant::now();
    loop {
        tokio::select! {
            biased;
            () = bound.refused.notified() => {}
            () = cancel.cancelled() => return,
        }
        if lifted_at.elapsed() > Duration::from_millis(REFUSED_MAX_MS) {
            backoff.reset();
        }
        loop {
            pause(backoff.next_ms(), cancel).await;
            let answer = tokio::select! {
                biased;
                answer = ask_identity(channel) => answer,
                () = cancel.cancelled() => return,
            };
            if matches!(answer, Some(Ok(_))) && lift(name, bound).await {
                lifted_at = Instant::now();
                break;
            }
        }
    }
}

async fn lift(name: &str, bound: &Bound) -> bool {
    match (bound.lift)().await {
        Ok(()) => {
            info!(channel.id = %name, "the platform accepts the account again; held posts go on");
            true
        }
        Err(cause) => {
            warn!(channel.id = %name, error = %cause, "held posts could not be let go; trying again");
            false
        }
    }
}

fn announce(name: &str, identity: &Identity, health: &ChannelHealth) {
    info!(
        channel.id = %name, platform = identity.platform.name(), account.id = %identity.account,
        bot.id = %identity.user_id, "the channel knows who it is"
    );
    for warning in &identity.warnings {
        warn!(channel.id = %name, "{warning}");
    }
    health.set_warnings(identity.warnings.clone());
}

async fn pause(wait_ms: u64, cancel: &CancellationToken) {
    tokio::select! {
        biased;
        () = tokio::time::sleep(Duration::from_millis(wait_ms)) => {}
        () = cancel.cancelled() => {}
    }
}
