//! Requests to a platform's history, repeated until they are answered.

use std::future::Future;
use std::time::Duration;

use tracing::{debug, warn};
use vocative_channels::backoff::Backoff;
use vocative_contract::error::ChannelError;

/// Waits between attempts.
const RETRY_FIRST_MS: u64 = 1_000;
const RETRY_MAX_MS: u64 = 120_000;
/// A page is given up after this many answers of unknown outcome, so that it does not block other pages.
const UNKNOWN_MAX: u32 = 8;

/// Why a part of the history may not be read, in the platform's words.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HistoryRefused(pub(super) String);

/// Asks until there is an answer. Reading changes nothing, so any failure may be tried again.
pub(super) async fn ask<T, F>(channel: &str, question: impl Fn() -> F) -> Result<T, HistoryRefused>
where
    F: Future<Output = Result<T, ChannelError>>,
{
    let mut backoff = Backoff::new(RETRY_FIRST_MS, RETRY_MAX_MS);
    let mut unknown = 0;
    loop {
        let wait_ms = match question().await {
            Ok(answer) => return Ok(answer),
            Err(ChannelError::RetryAfter { wait_ms, operation }) => {
                debug!(channel.id = %channel, operation, wait_ms, "the platform asks to read more slowly");
                wait_ms
            }
            Err(
                ChannelError::ChatRefused { reason, .. } | ChannelError::Rejected { reason, .. },
            ) => return Err(HistoryRefused(reason)),
            Err(ChannelError::ChatMoved { .. }) => {
                return Err(HistoryRefused("it has another id".to_owned()));
            }
            Err(cause @ ChannelError::OutcomeUnknown { .. }) if unknown == UNKNOWN_MAX => {
                return Err(HistoryRefused(cause.reason()));
            }
            Err(cause) => {
                unknown += u32::from(matches!(cause, ChannelError::OutcomeUnknown { .. }));
                let wait_ms = backoff.next_ms();
                warn!(channel.id = %channel, error = %cause.reason(), wait_ms, "history can't be read; trying again");
                wait_ms
            }
        };
        tokio::time::sleep(Duration::from_millis(wait_ms)).await;
    }
}
