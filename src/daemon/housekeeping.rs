//! Periodic work of a daemon: it shows that its timers fire, reports triggers that were too old, and deletes data
//! whose retention has ended.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::daemon::aging::{self, Aging, Evidence, share_of};
use crate::daemon::shared::Shared;
use crate::daemon::system::Pulse;
use crate::daemon::time::Agreement;
use crate::daemon::wiring;
use vocative_core::ids::AccountId;
use vocative_store::{ChannelBinding, ExpiryBounds, StoreError};

/// How often old triggers are reported and raw envelopes expired.
const HOUSEKEEPING: Duration = Duration::from_secs(30);

/// The wait before the first housekeeping after a start, so that the channels connect first.
const FIRST_HOUSEKEEPING: Duration = Duration::from_secs(2);

/// Beats as long as timers fire.
pub(super) async fn beat(pulse: Pulse, cancel: CancellationToken) {
    while !cancel.is_cancelled() {
        pulse.beat();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

pub(super) async fn keep_house(shared: Arc<Shared>, raw_kept_ms: i64, cancel: CancellationToken) {
    let mut wait = FIRST_HOUSEKEEPING;
    let mut aging = Aging::default();
    loop {
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = cancel.cancelled() => return,
        }
        wait = HOUSEKEEPING;
        let intakes: Vec<_> = shared
            .intakes()
            .values()
            .map(|(intake, _)| Arc::clone(intake))
            .collect();
        for intake in intakes {
            intake.report_old_triggers();
        }
        let share = match shared.share_that_may_go(&mut aging).await {
            Ok(Some(share)) => share,
            Ok(None) => continue,
            Err(cause) => {
                warn!(error = %cause, "old data could not be let go; trying again");
                continue;
            }
        };
        shared.let_old_data_go(&mut aging, share, &cancel).await;
        let older_than_ms = (shared.clock)() - raw_kept_ms;
        if let Err(cause) = shared.store.expire_raw(older_than_ms, share).await {
            warn!(error = %cause, "raw envelopes could not be expired; trying again");
        }
    }
}

impl Shared {
    /// Whether any data is deleted by age, as configured.
    fn lets_go(&self) -> bool {
        let config = self.config();
        let mut kept = config
            .channels
            .values()
            .map(|channel| channel.retention_days);
        config.store.debug_raw_hours > 0
            || kept.any(|days| wiring::expiry(days, 0) != ExpiryBounds::default())
    }

    /// How many rows of a class may be deleted by age in this pass; `None` while the time is doubtful, which `status`
    /// and the log report.
    async fn share_that_may_go(&self, aging: &mut Aging) -> Result<Option<u64>, StoreError> {
        let agreement = self.time.agreement();
        let kept = self.store.kept_turns().await?;
        let evidence = Evidence {
            now_ms: (self.clock)(),
            newest_ms: kept.newest_ms,
            agreed_for: aging.agreed_for(&agreement, Instant::now()),
            agreement,
        };
        let doubt = aging::doubt(&evidence);
        let is_disputed = matches!(evidence.agreement, Agreement::Disputed { .. });
        let told = doubt.clone().filter(|_| is_disputed || self.lets_go());
        match &told {
            Some(why) if self.time_doubt.set(told.clone()) => {
                error!(why, "the time is doubtful: nothing is deleted for its age");
            }
            None if self.time_doubt.set(None) => {
                info!("the time is plausible again: old data goes as configured");
            }
            _ => {}
        }
        Ok(doubt.is_none().then(|| share_of(kept.turns)))
    }

    /// Deletes data that is older than its channel keeps, at most a share of each class; also data of a channel that
    /// has not signed in since the start.
    async fn let_old_data_go(&self, aging: &mut Aging, share: u64, cancel: &CancellationToken) {
        let config = self.config();
        let bindings = match self.store.bindings().await {
            Ok(bindings) => bindings,
            Err(cause) => {
                warn!(error = %cause, "old data could not be let go; trying again");
                return;
            }
        };
        for (name, account) in kept_by(&bindings, |name| config.channels.contains_key(name)) {
            let Some(settings) = config
                .channels
                .get(&name)
                .filter(|_| !cancel.is_cancelled())
            else {
                continue;
            };
            if aging.rests(account, Instant::now()) {
                continue;
            }
            let now_ms = (self.clock)();
            let bounds = wiring::expiry(settings.retention_days, now_ms);
            let gone = self.store.expire(account, bounds, share, now_ms).await;
            if gone.as_ref().is_ok_and(|gone| gone.is_whole_share(share)) {
                aging.rest(account, Instant::now());
                info!(channel.id = %name, share, "more is old than may go at once; the rest goes later");
            }
            match gone {
                Ok(expired) if !expired.is_nothing() => info!(
                    channel.id = %name,
                    turns = expired.text,
                    raw = expired.raw,
                    runs = expired.runs,
                    "old data was let go"
                ),
                Ok(_) => {}
                Err(cause) => {
                    warn!(channel.id = %name, error = %cause, "old data could not be let go; trying again");
                }
            }
        }
    }
}

/// The channel whose settings say how long an account's data is kept: of the configured ones, the channel that signed
/// in last. Data of removed channels stays until a person decides; `status` names it.
fn kept_by(
    bindings: &[ChannelBinding],
    is_configured: impl Fn(&str) -> bool,
) -> Vec<(String, AccountId)> {
    let mut kept: Vec<(String, AccountId)> = Vec::new();
    for binding in bindings {
        let is_known = kept.iter().any(|(_, account)| *account == binding.account);
        if !is_known && is_configured(&binding.channel) {
            kept.push((binding.channel.clone(), binding.account));
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_kept_by_the_configured_channel_that_signed_in_last() {
        let binding = |channel: &str, account| ChannelBinding {
            channel: channel.to_owned(),
            account: AccountId(account),
            account_name: String::new(),
        };
        let bindings = [
            binding("renamed", 1),
            binding("old", 1),
            binding("removed", 2),
            binding("removed-too", 3),
            binding("other", 3),
        ];
        let kept = kept_by(&bindings, |name| !name.starts_with("removed"));
        let expected = [("renamed", 1), ("other", 3)];
        let expected = expected.map(|(name, account)| (name.to_owned(), AccountId(account)));
        assert_eq!(kept, expected);
    }
}
