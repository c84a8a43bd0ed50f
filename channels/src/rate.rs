//! Keeping within a platform's rate: a bucket of calls that fills again with time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Lets calls through at a steady rate, a few of them at once.
#[derive(Debug)]
pub struct Pace {
    burst: u32,
    every: Duration,
    /// When the bucket is full again; a call moves it on by `every`.
    full_at: Mutex<Option<Instant>>,
}

impl Pace {
    /// One call every `every_ms` milliseconds, and `burst` at once after a rest.
    #[must_use]
    pub fn new(burst: u32, every_ms: u64) -> Self {
        Self {
            burst: burst.max(1),
            every: Duration::from_millis(every_ms),
            full_at: Mutex::default(),
        }
    }

    /// Waits until the next call may go. Calls go in the order in which they asked.
    pub async fn wait_turn(&self) {
        let wait = self.take(Instant::now());
        if !wait.is_zero() {
            sleep(wait).await;
        }
    }

    /// Takes a place if a call may go now. Else none is taken, and it says how long that is away.
    ///
    /// # Errors
    /// How long until a call may go.
    pub fn try_turn(&self, now: Instant) -> Result<(), Duration> {
        let mut full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let full = full_at.map_or(now, |at| at.max(now)) + self.every;
        let wait = (full - now).saturating_sub(self.every * self.burst);
        if wait.is_zero() {
            *full_at = Some(full);
            return Ok(());
        }
        Err(wait)
    }

    /// The platform said to wait so long: until then no call goes, and then one by one.
    pub fn rest(&self, now: Instant, wait: Duration) {
        let mut full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let rested = now + wait + self.every * self.burst.saturating_sub(1);
        *full_at = Some(full_at.map_or(rested, |at| at.max(rested)));
    }

    /// Whether it is as if no call had ever gone.
    fn is_full(&self, now: Instant) -> bool {
        let full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        full_at.is_none_or(|at| at <= now)
    }

    /// Takes a place and says how long it is away.
    fn take(&self, now: Instant) -> Duration {
        let mut full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let full = full_at.map_or(now, |at| at.max(now)) + self.every;
        *full_at = Some(full);
        (full - now).saturating_sub(self.every * self.burst)
    }
}

/// A bucket for each of many places (chats), made when it is first asked for.
#[derive(Debug)]
pub struct Paces {
    burst: u32,
    every_ms: u64,
    places: Mutex<HashMap<String, Arc<Pace>>>,
}

impl Paces {
    /// Full buckets are forgotten once so many are remembered.
    const PLACES_MAX: usize = 4_096;

    /// Buckets like [`Pace::new`].
    #[must_use]
    pub fn new(burst: u32, every_ms: u64) -> Self {
        Self {
            burst,
            every_ms,
            places: Mutex::default(),
        }
    }

    /// The bucket of a place.
    #[must_use]
    pub fn of(&self, place: &str) -> Arc<Pace> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if places.len() >= Self::PLACES_MAX {
            let now = Instant::now();
            places.retain(|_, pace| !pace.is_full(now));
        }
        let made = || Arc::new(Pace::new(self.burst, self.every_ms));
        Arc::clone(places.entry(place.to_owned()).or_insert_with(made))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_taken_only_when_it_is_there_and_a_rest_is_kept() {
        let pace = Pace::new(2, 1_000);
        let start = Instant::now();
        assert_eq!([pace.try_turn(start), pace.try_turn(start)], [Ok(()); 2]);
        for _ in 0..3 {
            assert_eq!(pace.try_turn(start), Err(Duration::from_secs(1)));
        }
        let then = start + Duration::from_secs(1);
        assert_eq!(pace.try_turn(then), Ok(()));
        pace.rest(then, Duration::from_secs(30));
        assert_eq!(pace.try_turn(then), Err(Duration::from_secs(30)));
        let rested = then + Duration::from_secs(30);
        assert_eq!(pace.try_turn(rested), Ok(()));
        assert_eq!(pace.try_turn(rested), Err(Duration::from_secs(1)));
    }

    #[test]
    fn each_place_has_a_bucket_of_its_own() {
        let paces = Paces::new(1, 1_000);
        let now = Instant::now();
        assert_eq!(paces.of("a").try_turn(now), Ok(()));
        assert_eq!(paces.of("b").try_turn(now), Ok(()));
        assert!(paces.of("a").try_turn(now).is_err());
    }

    #[test]
    fn a_burst_goes_at_once_and_the_rest_one_by_one() {
        let pace = Pace::new(3, 1_000);
        let start = Instant::now();
        let waits: Vec<u64> = (0..5).map(|_| pace.take(start).as_secs()).collect();
        assert_eq!(waits, [0, 0, 0, 1, 2]);
        let later = start + Duration::from_secs(60);
        let waits: Vec<u64> = (0..4).map(|_| pace.take(later).as_secs()).collect();
        assert_eq!(waits, [0, 0, 0, 1]);
    }
}
