//! Counts the readings of the folders that are under way. A reading that the disk does not answer holds a thread, and
//! can't be ended: while there is one, no others are begun, except one a minute to test the disk.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The most readings that are under way at once.
const READINGS_MAX: usize = 64;
/// How long a reading may take before the disk counts as not answering.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
/// How long such a disk is left alone.
const AGAIN_AFTER: Duration = Duration::from_secs(60);

/// The readings that are under way.
#[derive(Debug, Default)]
pub(super) struct Readings {
    begun: Mutex<BegunReadings>,
}

#[derive(Debug, Default)]
struct BegunReadings {
    /// When each reading under way began.
    at: BTreeMap<u64, Instant>,
    /// When the newest reading began.
    last: Option<Instant>,
    count: u64,
}

/// A reading that is under way, until it is dropped.
#[derive(Debug)]
pub(super) struct SkillReading {
    of: Arc<Readings>,
    number: u64,
}

impl Readings {
    /// Begins a reading, unless the disk does not answer.
    pub(super) fn begin(self: &Arc<Self>, now: Instant) -> Option<SkillReading> {
        let mut begun = self.begun();
        let oldest = begun.at.values().next();
        let is_late = |at: &Instant| now.saturating_duration_since(*at) > ANSWERS_WITHIN;
        let is_left_alone = begun
            .last
            .is_some_and(|last| now.saturating_duration_since(last) < AGAIN_AFTER);
        let is_stuck = oldest.is_some_and(is_late) && is_left_alone;
        if is_stuck || begun.at.len() >= READINGS_MAX {
            return None;
        }
        begun.count += 1;
        let number = begun.count;
        begun.at.insert(number, now);
        begun.last = Some(now);
        Some(SkillReading {
            of: Arc::clone(self),
            number,
        })
    }

    /// How many are under way.
    #[cfg(test)]
    pub(super) fn under_way(&self) -> usize {
        self.begun().at.len()
    }

    fn begun(&self) -> MutexGuard<'_, BegunReadings> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SkillReading {
    fn drop(&mut self) {
        self.of.begun().at.remove(&self.number);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_does_not_answer_is_tried_once_a_minute() {
        let readings = Arc::new(Readings::default());
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let stuck = readings.begin(at(0)).unwrap();
        // The disk may only be slow.
        drop(readings.begin(at(10)).unwrap());
        assert!(readings.begin(at(11)).is_none());
        assert!(readings.begin(at(69)).is_none());
        let again = readings.begin(at(70)).unwrap();
        assert!(readings.begin(at(71)).is_none());
        assert_eq!(readings.under_way(), 2);
        // The disk answers.
        drop((stuck, again));
        assert_eq!(readings.under_way(), 0);
        drop(readings.begin(at(72)).unwrap());
    }

    #[test]
    fn however_many_want_to_read_only_so_many_do() {
        let readings = Arc::new(Readings::default());
        let now = Instant::now();
        let held: Vec<SkillReading> = (0..READINGS_MAX)
            .map(|_| readings.begin(now).unwrap())
            .collect();
        assert!(readings.begin(now).is_none());
        drop(held);
        assert!(readings.begin(now).is_some());
    }
}
