//! `getUpdates`: the long poll, its offset, and conflicts between pollers.
//!
//! Owns which poll waits. The queue's own rules are in `queue`.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::failure::ApiFailure;
use super::params::MethodParams;
use super::rooms::UPDATE_KINDS;
use super::server::SharedTelegram;

/// The longest wait of one poll, in seconds.
const TIMEOUT_S_MAX: i64 = 50;
/// A second conflict within this time is answered only after it.
const CONFLICT_PACE: Duration = Duration::from_secs(3);

/// The poll that waits, and when the last conflict and poll were.
#[derive(Debug, Default)]
pub(super) struct Polls {
    waiting: Option<oneshot::Sender<ApiFailure>>,
    conflict_at: Option<Instant>,
    last: Option<(i64, Instant)>,
    /// Polls that were answered.
    pub(super) answered: u64,
}

impl Polls {
    /// Whether a poll waits whose client is still there.
    pub(super) fn is_waiting(&self) -> bool {
        self.waiting
            .as_ref()
            .is_some_and(|waiting| !waiting.is_closed())
    }

    /// Ends the waiting poll, if there is one, with a refusal.
    pub(super) fn end_waiting(&mut self, why: ApiFailure) {
        if let Some(waiting) = self.waiting.take() {
            // A client that went away needs no answer.
            let _ = waiting.send(why);
        }
    }
}

/// The 409 of a poll that another one replaced.
pub(super) fn other_poll() -> ApiFailure {
    ApiFailure::plain(
        409,
        "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running",
    )
}

/// The 409 of a poll that a webhook replaced.
pub(super) fn by_webhook() -> ApiFailure {
    ApiFailure::plain(409, "Conflict: terminated by setWebhook request")
}

struct PollWait {
    limit: usize,
    wait: Duration,
}

/// Answers one poll: at once when something is queued, else when something comes, the time is over,
/// or another poll takes its place.
pub(super) async fn get_updates(
    shared: &SharedTelegram,
    params: &MethodParams,
    ignore_offset: bool,
) -> Result<Value, ApiFailure> {
    let poll = begin(shared, params, ignore_offset)?;
    let mut changes = shared.changes();
    if let Some(batch) = batch(shared, &poll).or_else(|| poll.wait.is_zero().then(Vec::new)) {
        return Ok(Value::Array(batch));
    }
    let mut replaced = shared.polls(|polls| {
        polls.end_waiting(other_poll());
        let (tell, told) = oneshot::channel();
        polls.waiting = Some(tell);
        told
    });
    let deadline = Instant::now() + poll.wait;
    loop {
        tokio::select! {
            why = &mut replaced => return Err(refused(shared, why).await),
            () = tokio::time::sleep_until(deadline) => return Ok(Value::Array(Vec::new())),
            _ = changes.changed() => {
                if let Some(batch) = batch(shared, &poll) {
                    return Ok(Value::Array(batch));
                }
            }
        }
    }
}

async fn refused(
    shared: &SharedTelegram,
    why: Result<ApiFailure, oneshot::error::RecvError>,
) -> ApiFailure {
    let earlier = shared.polls(|polls| polls.conflict_at.replace(Instant::now()));
    if let Some(earlier) = earlier.filter(|earlier| earlier.elapsed() < CONFLICT_PACE) {
        tokio::time::sleep_until(earlier + CONFLICT_PACE).await;
    }
    why.unwrap_or_else(|_| other_poll())
}

/// Applies the parameters: allowed kinds, confirmation, limits.
fn begin(
    shared: &SharedTelegram,
    params: &MethodParams,
    ignore_offset: bool,
) -> Result<PollWait, ApiFailure> {
    let offset = params.integer("offset");
    let mut limit = match params.integer("limit") {
        limit if (1..=100).contains(&limit) => limit,
        _ => 100,
    };
    let mut wait_s = params.integer("timeout").clamp(0, TIMEOUT_S_MAX);
    if shared.faults().guards_short_polls() {
        let last = shared.polls(|polls| polls.last.replace((offset, Instant::now())));
        let since = last
            .filter(|&(last, _)| last == offset && wait_s < 3)
            .map(|(_, at)| at.elapsed());
        if since.is_some_and(|since| since < Duration::from_millis(500)) {
            limit = 1;
        }
        if since.is_some_and(|since| since < Duration::from_secs(3)) {
            wait_s = 3;
        }
    }
    shared.peek(|rooms| {
        if rooms.webhook.is_set() {
            return Err(ApiFailure::plain(
                409,
                "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first",
            ));
        }
        if let Some(kinds) = allowed_kinds(params.text("allowed_updates")) {
            rooms.allowed = kinds;
        }
        let now_s = rooms.now_s();
        rooms.queue.expire(now_s);
        if !ignore_offset {
            rooms.queue.confirm(offset);
        }
        Ok(())
    })?;
    shared.announce_confirmed();
    Ok(PollWait {
        limit: usize::try_from(limit).unwrap_or(100),
        wait: Duration::from_secs(wait_s.unsigned_abs()),
    })
}

fn batch(shared: &SharedTelegram, poll: &PollWait) -> Option<Vec<Value>> {
    let batch = shared.peek(|rooms| {
        let now_s = rooms.now_s();
        rooms.queue.expire(now_s);
        rooms.queue.batch(poll.limit)
    });
    (!batch.is_empty()).then_some(batch)
}

/// What `allowed_updates` asks for: `None` leaves it as it is, `Some(None)` is the default set.
pub(super) fn allowed_kinds(raw: &str) -> Option<Option<Vec<String>>> {
    let value: Value = serde_json::from_str(raw).ok()?;
    let names = value.as_array()?;
    let known: Vec<String> = names
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_ascii_lowercase)
        .filter(|name| UPDATE_KINDS.contains(&name.as_str()))
        .collect();
    Some((!known.is_empty()).then_some(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allowed_kinds_are_kept_set_or_reset() {
        let kind = |name: &str| Some(Some(vec![name.to_owned()]));
        let cases = [
            ("", None),
            ("null", None),
            ("nonsense", None),
            ("[]", Some(None)),
            (r#"["nonsense"]"#, Some(None)),
            (r#"["message","nonsense"]"#, kind("message")),
        ];
        for (raw, wanted) in cases {
            assert_eq!(allowed_kinds(raw), wanted, "{raw}");
        }
    }
}
