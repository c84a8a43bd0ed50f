//! Keeps one channel going: identifies it, runs its inbound half, starts it again after a failure
//! or panic. A channel never takes another one down.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};
use vocative_channels::backoff::Backoff;
use vocative_channels::channel::{Channel, ConnectionState, Intake, Reporter};
use vocative_channels::error::ChannelError;
use vocative_channels::identity::Identity;

use crate::admin::health::ChannelHealth;
use crate::store::StoreError;

/// Waits between attempts to identify or run a channel.
const RETRY_FIRST_MS: u64 = 500;
const RETRY_MAX_MS: u64 = 60_000;
/// An account that is refused is tried again this often, in case somebody renewed it.
const REFUSED_RETRY: Duration = Duration::from_secs(120);
/// A half that ran this long was healthy: its failures are forgotten.
const HEALTHY_AFTER: Duration = Duration::from_secs(60);

/// Called once a channel knows who it is: binds it and returns its intake.
pub type Bind = Arc<
    dyn Fn(
            Identity,
        )
            -> vocative_channels::channel::BoxFuture<'static, Result<Arc<dyn Intake>, StoreError>>
        + Send
        + Sync,
>;

/// Runs a channel until cancelled.
pub async fn supervise(
    name: String,
    channel: Arc<dyn Channel>,
    bind: Bind,
    health: Arc<ChannelHealth>,
    cancel: CancellationToken,
) {
    let Some((identity, intake)) = identify(&name, &*channel, &bind, &health, &cancel).await else {
        return;
    };
    let mut backoff = Backoff::new(RETRY_FIRST_MS, RETRY_MAX_MS);
    while !cancel.is_cancelled() {
        let started = Instant::now();
        let mut inbound = channel.inbound(&identity);
        let reporter: Arc<dyn Reporter> = Arc::clone(&health) as _;
        let (intake, stop) = (Arc::clone(&intake), cancel.clone());
        // A task of its own: a panic in an adapter ends here.
        let ended = tokio::spawn(async move { inbound.run(intake, reporter, stop).await }).await;
        let reason = match ended {
            Ok(Ok(())) if cancel.is_cancelled() => return,
            Ok(Ok(())) => "it ended by itself".to_owned(),
            Ok(Err(cause)) => cause.reason(),
            Err(panicked) => {
                error!(channel.id = %name, error = %panicked, "a channel panicked; it is started again");
                "it panicked".to_owned()
            }
        };
        if started.elapsed() >= HEALTHY_AFTER {
            backoff.reset();
        }
        health.restarted();
        let wait_ms = backoff.next_ms();
        health.state(ConnectionState::Retrying { reason, wait_ms });
        pause(Duration::from_millis(wait_ms), &cancel).await;
    }
}

/// Asks the platform who we are until it says; `None` if cancelled before.
async fn identify(
    name: &str,
    channel: &dyn Channel,
    bind: &Bind,
    health: &ChannelHealth,
    cancel: &CancellationToken,
) -> Option<(Identity, Arc<dyn Intake>)> {
    let mut backoff = Backoff::new(RETRY_FIRST_MS, RETRY_MAX_MS);
    loop {
        let answer = tokio::select! {
            answer = channel.identify() => answer,
            () = cancel.cancelled() => return None,
        };
        let wait = match answer {
            Ok(identity) => match bind(identity.clone()).await {
                Ok(intake) => {
                    announce(name, &identity, health);
                    return Some((identity, intake));
                }
                Err(cause) => {
                    error!(channel.id = %name, error = %cause, "the channel could not be bound; trying again");
                    Duration::from_millis(backoff.next_ms())
                }
            },
            Err(ChannelError::Unauthorized { reason, .. }) => {
                let reason = format!("the platform refuses the token ({reason}); renew it");
                health.state(ConnectionState::Alarm { reason });
                REFUSED_RETRY
            }
            Err(cause) => {
                let wait_ms = match cause {
                    ChannelError::RetryAfter { wait_ms, .. } => wait_ms,
                    _ => backoff.next_ms(),
                };
                health.state(ConnectionState::Retrying {
                    reason: cause.reason(),
                    wait_ms,
                });
                Duration::from_millis(wait_ms)
            }
        };
        pause(wait, cancel).await;
        if cancel.is_cancelled() {
            return None;
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

async fn pause(wait: Duration, cancel: &CancellationToken) {
    tokio::select! {
        () = tokio::time::sleep(wait) => {}
        () = cancel.cancelled() => {}
    }
}
