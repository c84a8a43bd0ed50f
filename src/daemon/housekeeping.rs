//! What a daemon does now and then: it shows that its timers fire, reports triggers that were too old, and
//! lets go what is kept no longer.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::daemon::shared::Shared;
use crate::daemon::system::Pulse;
use crate::daemon::wiring;
use crate::domain::ids::AccountId;

/// How often old triggers are reported and raw envelopes expired.
const HOUSEKEEPING: Duration = Duration::from_secs(30);

/// The same for the first time: what expired while no daemon ran goes soon, but not before it hears.
const FIRST_HOUSEKEEPING: Duration = Duration::from_secs(2);

/// Beats while timers fire.
pub(super) async fn beat(pulse: Pulse, cancel: CancellationToken) {
    while !cancel.is_cancelled() {
        pulse.beat();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

pub(super) async fn keep_house(shared: Arc<Shared>, raw_kept_ms: i64, cancel: CancellationToken) {
    let mut wait = FIRST_HOUSEKEEPING;
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
        shared.let_old_data_go(&cancel).await;
        let older_than_ms = (shared.clock)() - raw_kept_ms;
        if let Err(cause) = shared.store.expire_raw(older_than_ms).await {
            warn!(error = %cause, "raw envelopes could not be expired; trying again");
        }
    }
}

impl Shared {
    /// Lets go what is older than its channel keeps.
    async fn let_old_data_go(&self, cancel: &CancellationToken) {
        let config = self.config();
        let accounts: Vec<(String, AccountId)> = self
            .intakes()
            .iter()
            .map(|(name, (intake, _))| (name.clone(), intake.policy().account))
            .collect();
        for (name, account) in accounts {
            let Some(settings) = config
                .channels
                .get(&name)
                .filter(|_| !cancel.is_cancelled())
            else {
                continue;
            };
            let now_ms = (self.clock)();
            let bounds = wiring::expiry(settings.retention_days, now_ms);
            match self.store.expire(account, bounds, now_ms).await {
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
