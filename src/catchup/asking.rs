//! Requests to a platform's history, repeated until they are answered.

use std::future::Future;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};
use vocative_channels::backoff::Backoff;
use vocative_contract::error::ChannelError;

/// Waits between attempts.
const RETRY_FIRST_MS: u64 = 1_000;
const RETRY_MAX_MS: u64 = 120_000;
/// A page is given up after this many answers of unknown outcome, so that it does not block other pages.
const UNKNOWN_MAX: u32 = 8;

/// Why a part of the history was not read.
#[derive(Debug)]
pub(super) enum UnreadHistory {
    /// It may not be read, in the platform's words.
    Refused(String),
    /// The daemon stops.
    Stopped,
}

/// Asks until there is an answer. Reading changes nothing, so any failure may be tried again.
pub(super) async fn ask<T, F>(
    channel: &str,
    cancel: &CancellationToken,
    question: impl Fn() -> F,
) -> Result<T, UnreadHistory>
where
    F: Future<Output = Result<T, ChannelError>>,
{
    let mut backoff = Backoff::new(RETRY_FIRST_MS, RETRY_MAX_MS);
    let mut unknown = 0;
    loop {
        let answer = cancel.run_until_cancelled(question()).await;
        let wait_ms = match answer.ok_or(UnreadHistory::Stopped)? {
            Ok(answer) => return Ok(answer),
            Err(ChannelError::RetryAfter { wait_ms, operation }) => {
                debug!(channel.id = %channel, operation, wait_ms, "the platform asks to read more slowly");
                wait_ms
            }
            Err(
                ChannelError::ChatRefused { reason, .. } | ChannelError::Rejected { reason, .. },
            ) => return Err(UnreadHistory::Refused(reason)),
            Err(ChannelError::ChatMoved { .. }) => {
                return Err(UnreadHistory::Refused("it has another id".to_owned()));
            }
            Err(cause @ ChannelError::OutcomeUnknown { .. }) if unknown == UNKNOWN_MAX => {
                return Err(UnreadHistory::Refused(cause.reason()));
            }
            Err(cause) => {
                unknown += u32::from(matches!(cause, ChannelError::OutcomeUnknown { .. }));
                let wait_ms = backoff.next_ms();
                warn!(channel.id = %channel, error = %cause.reason(), wait_ms, "history can't be read; trying again");
                wait_ms
            }
        };
        pause(wait_ms, cancel).await?;
    }
}

/// Waits, unless the daemon stops.
pub(super) async fn pause(wait_ms: u64, cancel: &CancellationToken) -> Result<(), UnreadHistory> {
    let sleep = tokio::time::sleep(Duration::from_millis(wait_ms));
    cancel
        .run_until_cancelled(sleep)
        .await
        .ok_or(UnreadHistory::Stopped)
}
