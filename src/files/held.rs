//! Whether the transcription server is asked at all: if it refuses the account, every voice note is held, as
//! questions are by a model, until a try succeeds or a person releases it.
//!
//! The hold is a row among the models that rest, so `status` shows it and `agents release` ends it.

use tracing::{error, info, warn};

use crate::files::fetching::Fetcher;
use vocative_core::job::JobKind;
use vocative_core::model_rest::ModelRest;
use vocative_store::StoreError;

/// The transcription server's name among the models that rest. Models' names have no hyphen, so none is the same.
pub const VOICE_NOTES: &str = "voice-notes";

/// The first wait before one note tries a server that refused its account, in milliseconds; it doubles from
/// there.
const TRY_FIRST_MS: i64 = 60_000;
const TRY_MAX_MS: i64 = 300_000;

/// How many notes may be at the server: one while its account is refused, and that only now and then. If the time is
/// before the row's, a clock was set back: then a note is tried at once.
fn slots(rest: Option<&ModelRest>, now_ms: i64) -> usize {
    match rest {
        None => JobKind::TranscribeFile.limits().slots,
        Some(rest) if (rest.noted_at_ms..rest.until_ms).contains(&now_ms) => 0,
        Some(_) => 1,
    }
}

/// The row after the account was refused, again or for the first time.
fn refused_again(before: Option<ModelRest>, reason: String, now_ms: i64) -> ModelRest {
    let waited_ms = before
        .as_ref()
        .map_or(0, |rest| rest.until_ms.saturating_sub(rest.noted_at_ms));
    let wait_ms = waited_ms.saturating_mul(2).clamp(TRY_FIRST_MS, TRY_MAX_MS);
    ModelRest {
        model: VOICE_NOTES.to_owned(),
        is_held: true,
        reason,
        since_ms: before.map_or(now_ms, |rest| rest.since_ms),
        noted_at_ms: now_ms,
        until_ms: now_ms.saturating_add(wait_ms),
    }
}

impl Fetcher {
    /// How many notes may be at the server now.
    pub async fn speech_slots(&self, now_ms: i64) -> usize {
        match self.store.model_rest(VOICE_NOTES).await {
            Ok(rest) => slots(rest.as_ref(), now_ms),
            Err(cause) => {
                warn!(error = %cause, "whether voice notes are held could not be read");
                0
            }
        }
    }

    /// Allows a try after a start, which may have fixed why the account was refused.
    pub(super) async fn try_hearing(&self) {
        let tried = async {
            if let Some(rest) = self.store.model_rest(VOICE_NOTES).await? {
                let until_ms = rest.noted_at_ms;
                self.store
                    .note_model_rest(ModelRest { until_ms, ..rest })
                    .await?;
            }
            Ok::<(), StoreError>(())
        };
        if let Err(cause) = tried.await {
            warn!(error = %cause, "voice notes that are held are tried later");
        }
    }

    /// Holds voice notes because the account was refused.
    pub(super) async fn hold_hearing(&self, reason: &str) -> Result<(), StoreError> {
        let before = self.store.model_rest(VOICE_NOTES).await?;
        if before.is_none() {
            error!(
                reason,
                "voice notes wait: the transcription server refuses the account; one tries again now and then"
            );
        }
        let rest = refused_again(before, reason.to_owned(), (self.clock)());
        self.store.note_model_rest(rest).await
    }

    /// Ends the hold: the server took a note, or refused only that one.
    pub(super) async fn resume_hearing(&self) -> Result<(), StoreError> {
        if self.store.model_rest(VOICE_NOTES).await?.is_some() {
            self.store.end_model_rest(VOICE_NOTES).await?;
            info!("the transcription server takes the account again");
            self.wake.jobs.notify_one();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_account_is_tried_by_one_note_now_and_then() {
        let first = refused_again(None, "HTTP 401".to_owned(), 1_000);
        assert_eq!((first.since_ms, first.until_ms), (1_000, 61_000));
        let second = refused_again(Some(first.clone()), "HTTP 401".to_owned(), 70_000);
        assert_eq!((second.since_ms, second.until_ms), (1_000, 190_000));
        let mut last = second;
        for _ in 0..90 {
            last = refused_again(Some(last), String::new(), 200_000);
        }
        assert_eq!(last.until_ms, 500_000);
        let table = [
            (1_000, 0),
            (60_999, 0),
            (61_000, 1),
            (999, 1),
            (i64::MIN, 1),
        ];
        for (now_ms, expected) in table {
            assert_eq!(slots(Some(&first), now_ms), expected, "{now_ms}");
        }
        assert_eq!(slots(None, 5), 2);
    }
}
