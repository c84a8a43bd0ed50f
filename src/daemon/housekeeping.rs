//! Periodic work of a daemon: it shows that its timers fire, and reports triggers that were too old.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::daemon::shared::Shared;
use crate::daemon::system::Pulse;

/// How often old triggers are reported.
const HOUSEKEEPING: Duration = Duration::from_secs(30);

/// The wait before the first report after a start, so that the channels connect first.
const FIRST_HOUSEKEEPING: Duration = Duration::from_secs(2);

/// Beats as long as timers fire.
pub(super) async fn beat(pulse: Pulse, cancel: CancellationToken) {
    while !cancel.is_cancelled() {
        pulse.beat();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

pub(super) async fn keep_house(shared: Arc<Shared>, cancel: CancellationToken) {
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
    }
}
