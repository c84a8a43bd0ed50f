//! Limits how often a recurring complaint is logged.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How often the same complaint is logged.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// Lets one complaint through every ten seconds, and says how many it held back.
#[derive(Debug, Default)]
pub(crate) struct LogGate(Mutex<(Option<Instant>, u64)>);

impl LogGate {
    /// The number of complaints held back since the last one that passed; `None` if this one is
    /// held back too.
    pub(crate) fn pass(&self) -> Option<u64> {
        let mut gate = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if gate.0.is_some_and(|last| now < last + LOG_EVERY) {
            gate.1 += 1;
            return None;
        }
        gate.0 = Some(now);
        Some(std::mem::take(&mut gate.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_are_counted_while_they_are_held_back() {
        let gate = LogGate::default();
        assert_eq!(gate.pass(), Some(0));
        assert_eq!(gate.pass(), None);
        assert_eq!(gate.pass(), None);
        assert_eq!(gate.0.lock().expect("no holder panics").1, 2);
    }
}
