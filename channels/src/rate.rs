//! Keeping within a platform's rate: a bucket of calls that fills again with time, and goes slower where
//! the platform says that it was too fast.
//!
//! Nothing here outlives the process: whatever must wait long is deferred on disk by the caller, for the time it was
//! told. Reading order: [`Pace`] (one place), [`Paces`] (many), [`Everywhere`] (all of them together), [`Rests`]
//! (methods that are asked rarely).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// After a refusal calls go this much further apart: half as much again.
const SLOWER: (u32, u32) = (3, 2);
/// A probe takes back one refusal.
const FASTER: (u32, u32) = (2, 3);
/// The shortest time without a refusal after which a faster pace is probed; never sooner than one call takes at the
/// present pace.
const PROBE_AFTER: Duration = Duration::from_secs(45);
/// A refusal within this time after a probe says that the probe was too fast: platforms count by the minute. A probe
/// without a refusal for this long has worked.
const PROBE_LASTS: Duration = Duration::from_secs(120);
/// Each probe that fails doubles the time until the next one, up to this: a limit that was learnt is tried
/// again rarely.
const PROBE_AFTER_MAX: Duration = Duration::from_secs(600);
/// After this long without a call everything that was learnt is dropped: no platform counts calls that old.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(300);
/// A call that came later than this multiple of the present distance after the one before it was not too fast: its
/// refusal says nothing about the pace here. Else a busy hour's refusals for other reasons would add up
/// until a chat waits longer than people ask.
const LEISURELY: u32 = 2;
/// How many calls must wait in a row before a quickening pace becomes quicker.
const QUICKER_AFTER: u32 = 3;
/// Calls never go further apart than this, in milliseconds, unless they began further apart.
const EVERY_MAX_MS: u64 = 120_000;

/// Lets calls through at a steady rate, a few of them at once. Where the platform refuses one it goes
/// slower, one by one, and probes its way back to the rate it began with: within minutes where the refusals had
/// a passing reason, rarely where each probe is refused.
#[derive(Debug)]
pub struct Pace {
    burst: u32,
    every: Duration,
    /// The least time between two calls that is tried while none is refused; the first `every` unless the pace
    /// quickens.
    at_least: Duration,
    bucket: Mutex<Bucket>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// The time between two calls; longer than at first after a refusal.
    every: Duration,
    /// When the bucket is full again; a call moves it on by `every`.
    full_at: Option<Instant>,
    /// Until when the platform wants no calls.
    rests_until: Option<Instant>,
    /// When `every` last changed, while it differs from the first pace; after a refusal, when the rest ends.
    learnt_at: Option<Instant>,
    /// Whether the last change of `every` was a probe.
    is_probing: bool,
    /// Probes in a row that were refused.
    failed_probes: u32,
    /// The last call, and the one before it.
    calls: [Option<Instant>; 2],
    /// Calls that waited for another since `every` last became shorter.
    waited: u32,
    /// Whether a call was refused that came sooner than the first pace allows.
    is_limit_met: bool,
}

impl Pace {
    /// One call every `every_ms` milliseconds, and `burst` at once after a rest.
    #[must_use]
    pub fn new(burst: u32, every_ms: u64) -> Self {
        let every = Duration::from_millis(every_ms);
        Self {
            burst: burst.max(1),
            every,
            at_least: every,
            bucket: Mutex::new(Bucket {
                every,
                waited: 0,
                is_limit_met: false,
                full_at: None,
                rests_until: None,
                learnt_at: None,
                is_probing: false,
                failed_probes: 0,
                calls: [None; 2],
            }),
        }
    }

    /// Calls that wait for each other come closer while none is refused, down to one every `at_least_ms`. A
    /// refusal brings the first pace back until the pace has rested.
    #[must_use]
    pub fn quickening(mut self, at_least_ms: u64) -> Self {
        self.at_least = Duration::from_millis(at_least_ms).min(self.every);
        self
    }

    /// Waits until the next call may go. Calls go in the order in which they asked.
    pub async fn wait_turn(&self) {
        let wait = self.take(Instant::now());
        if !wait.is_zero() {
            sleep(wait).await;
        }
    }

    /// Takes a place if a call may go now; otherwise takes none.
    ///
    /// # Errors
    /// How long until a call may go.
    pub fn try_turn(&self, now: Instant) -> Result<(), Duration> {
        let mut bucket = self.bucket(now);
        let (wait, full) = self.next(&bucket, now);
        if wait.is_zero() {
            bucket.note_call(now, full);
            return Ok(());
        }
        Err(wait)
    }

    /// How long until a call may go. Takes nothing.
    #[must_use]
    pub fn wait(&self, now: Instant) -> Duration {
        self.next(&self.bucket(now), now).0
    }

    /// The platform refused a call and said to wait so long: until then no call goes, and then they go
    /// further apart than before, unless the call had come at leisure.
    pub fn refuse(&self, now: Instant, wait: Duration) {
        let mut bucket = self.bucket(now);
        // Several calls were on their way: they are refused together.
        let is_refused_with_others = bucket.is_limit_met && bucket.rests_until > Some(now);
        if bucket.every < self.every || is_refused_with_others {
            bucket.forget(self.every);
            bucket.is_limit_met = true;
            // What went sooner than it should have counts: nothing goes at once after the rest.
            bucket.full_at = Some(now + wait + self.every * self.burst);
            return bucket.rest(now, wait);
        }
        if bucket.is_leisurely() {
            return bucket.rest(now, wait);
        }
        if bucket.is_probing {
            bucket.failed_probes = bucket.failed_probes.saturating_add(1);
        }
        let most = self.every.max(Duration::from_millis(EVERY_MAX_MS));
        bucket.every = (bucket.every * SLOWER.0 / SLOWER.1).min(most);
        bucket.learnt_at = Some(now + wait);
        bucket.is_probing = false;
        bucket.rest(now, wait);
    }

    /// No call goes until `wait` is over; nothing is learnt from it.
    pub fn rest(&self, now: Instant, wait: Duration) {
        self.bucket(now).rest(now, wait);
    }

    /// Whether the platform wants no calls now.
    #[must_use]
    pub fn is_resting(&self, now: Instant) -> bool {
        self.bucket(now).rests_until.is_some_and(|at| at > now)
    }

    /// Whether the bucket is as if no call had ever gone.
    fn is_new(&self, now: Instant) -> bool {
        let bucket = self.bucket(now);
        bucket.every == self.every && bucket.free_at(now) <= now
    }

    /// Takes a place and says how long the wait for it is.
    pub(crate) fn take(&self, now: Instant) -> Duration {
        let mut bucket = self.bucket(now);
        let (wait, full) = self.next(&bucket, now);
        bucket.note_call(now + wait, full);
        if !wait.is_zero() && !bucket.is_limit_met && bucket.every <= self.every {
            bucket.quicken(self.at_least);
        }
        wait
    }

    /// How long the next place is away, and when the bucket is full again if it is taken. After a refusal there is no
    /// burst.
    fn next(&self, bucket: &Bucket, now: Instant) -> (Duration, Instant) {
        let burst = if bucket.every > self.every {
            1
        } else {
            self.burst
        };
        let full = bucket.free_at(now).max(now) + bucket.every;
        let from_calls = (full - now).saturating_sub(bucket.every * burst);
        let rest = bucket
            .rests_until
            .map_or(Duration::ZERO, |at| at.saturating_duration_since(now));
        (from_calls.max(rest), full)
    }

    /// The bucket, brought up to date with the time that has passed.
    fn bucket(&self, now: Instant) -> MutexGuard<'_, Bucket> {
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        if bucket.is_forgotten(now) {
            bucket.forget(self.every);
            bucket.is_limit_met = false;
        }
        while let Some(learnt_at) = bucket.learnt_at
            && now.saturating_duration_since(learnt_at) >= bucket.next_step_after(self.every)
        {
            let at = learnt_at + bucket.next_step_after(self.every);
            bucket.step(at, self.every);
        }
        bucket
    }
}

impl Bucket {
    fn note_call(&mut self, at: Instant, full: Instant) {
        self.full_at = Some(full);
        self.calls = [Some(at), self.calls[0]];
    }

    /// Whether the last call, and the rest that followed it, are so long ago that nothing counts.
    fn is_forgotten(&self, now: Instant) -> bool {
        let last = self.calls[0].max(self.rests_until);
        last.is_some_and(|last| now.saturating_duration_since(last) >= FORGOTTEN_AFTER)
    }

    /// How long the present pace is kept without a refusal.
    fn next_step_after(&self, at_first: Duration) -> Duration {
        let is_settling = self.is_probing && (self.failed_probes > 0 || self.every <= at_first);
        if is_settling {
            return PROBE_LASTS;
        }
        let doubled = PROBE_AFTER.saturating_mul(1 << self.failed_probes.min(8));
        doubled.min(PROBE_AFTER_MAX).max(self.every)
    }

    /// The pace was kept without a refusal: a faster one is probed. At the first pace there is nothing left
    /// to learn.
    fn step(&mut self, at: Instant, at_first: Duration) {
        if self.is_probing {
            self.failed_probes = 0;
        }
        if self.every <= at_first {
            return self.forget(at_first);
        }
        self.every = (self.every * FASTER.0 / FASTER.1).max(at_first);
        (self.learnt_at, self.is_probing) = (Some(at), true);
    }

    /// Notes a call that waits for others, which shows that there are many; after several the pace quickens.
    fn quicken(&mut self, at_least: Duration) {
        self.waited += 1;
        if self.waited >= QUICKER_AFTER {
            self.waited = 0;
            self.every = (self.every * FASTER.0 / FASTER.1).max(at_least);
        }
    }

    fn forget(&mut self, at_first: Duration) {
        self.every = at_first;
        self.waited = 0;
        (self.learnt_at, self.is_probing, self.failed_probes) = (None, false, 0);
    }

    /// Whether the last call came long after the one before it.
    fn is_leisurely(&self) -> bool {
        let [Some(last), Some(before)] = self.calls else {
            return false;
        };
        last.saturating_duration_since(before) > self.every * LEISURELY
    }

    fn rest(&mut self, now: Instant, wait: Duration) {
        let until = now + wait;
        self.rests_until = Some(self.rests_until.map_or(until, |at| at.max(until)));
    }

    /// From when on the bucket is as if no call had gone, except for its learnt pace.
    fn free_at(&self, now: Instant) -> Instant {
        let at = self.full_at.unwrap_or(now);
        self.rests_until.map_or(at, |until| at.max(until))
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
    /// The most buckets that are remembered. Beyond it, those that have learnt nothing are forgotten and, if
    /// that is not enough, the one that was used longest ago.
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
        if let Some(pace) = places.get(place) {
            return Arc::clone(pace);
        }
        if places.len() >= Self::PLACES_MAX {
            let now = Instant::now();
            places.retain(|_, pace| !pace.is_new(now));
            if places.len() >= Self::PLACES_MAX {
                let free_at = |pace: &Arc<Pace>| pace.bucket(now).free_at(now);
                let least = places.iter().min_by_key(|(_, pace)| free_at(pace));
                let least = least.map(|(place, _)| place.clone());
                least.and_then(|least| places.remove(&least));
            }
        }
        let pace = Arc::new(Pace::new(self.burst, self.every_ms));
        places.insert(place.to_owned(), Arc::clone(&pace));
        pace
    }
}

/// How many places must be refused at a time for the account as a whole to count as too fast.
const REFUSED_AT_ONCE: usize = 3;
/// A rest of the whole account that is only guessed lasts no longer than this.
const GUESSED_REST_MAX: Duration = Duration::from_secs(30);

/// The pace of an account over all its places.
#[derive(Debug)]
pub struct Everywhere {
    all: Pace,
    /// Places that were refused, and until when; no more than [`REFUSED_AT_ONCE`].
    refused: Mutex<Vec<(String, Instant)>>,
}

impl Everywhere {
    /// A pace over all places, of which each has one of its own.
    #[must_use]
    pub fn new(all: Pace) -> Self {
        Self {
            all,
            refused: Mutex::default(),
        }
    }

    /// How long a call to a place has to wait. If it is zero, the call's turn is taken, for the place and the account;
    /// otherwise none is taken.
    #[must_use]
    pub fn take_or_wait(&self, place: &Pace, now: Instant) -> Duration {
        let wait = self.wait(place, now);
        if !wait.is_zero() {
            return wait;
        }
        let taken = place.try_turn(now).and_then(|()| self.all.try_turn(now));
        taken.err().unwrap_or_default()
    }

    /// As [`Self::take_or_wait`], but takes no turn.
    #[must_use]
    pub fn wait(&self, place: &Pace, now: Instant) -> Duration {
        place.wait(now).max(self.all.wait(now))
    }

    /// A call to a place was refused. The place rests; if enough others rest as well, so does the account.
    pub fn refuse(&self, name: &str, place: &Pace, now: Instant, wait: Duration) {
        place.refuse(now, wait);
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.retain(|(it, until)| *until > now && it != name);
        refused.push((name.to_owned(), now + wait));
        if refused.len() >= REFUSED_AT_ONCE {
            refused.clear();
            self.all.rest(now, wait.min(GUESSED_REST_MAX));
        }
    }
}

/// Until when a platform wants no more calls of a method; calling it anyway would only prolong that.
#[derive(Debug, Default)]
pub struct Rests(Mutex<HashMap<String, Instant>>);

impl Rests {
    /// The most calls whose rests are kept; beyond it, the rest that ends first is forgotten.
    const CALLS_MAX: usize = 1_024;

    /// How long calls of that name must still rest.
    #[must_use]
    pub fn left(&self, call: &str, now: Instant) -> Option<Duration> {
        let until = *self.lock().get(call)?;
        (until > now).then(|| until - now)
    }

    /// Makes calls of that name rest for `wait`.
    pub fn note(&self, call: &str, now: Instant, wait: Duration) {
        let mut rests = self.lock();
        rests.retain(|_, until| *until > now);
        if rests.len() >= Self::CALLS_MAX
            && let Some(first) = rests.iter().min_by_key(|(_, until)| **until)
        {
            let first = first.0.clone();
            rests.remove(&first);
        }
        rests.insert(call.to_owned(), now + wait);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::VecDeque;

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
        assert!(pace.is_resting(then));
        assert_eq!(pace.try_turn(then), Err(Duration::from_secs(30)));
        let rested = then + Duration::from_secs(30);
        assert!(!pace.is_resting(rested));
        assert_eq!([pace.try_turn(rested), pace.try_turn(rested)], [Ok(()); 2]);
        assert_eq!(pace.try_turn(rested), Err(Duration::from_secs(1)));
    }

    #[test]
    fn refusals_of_calls_that_come_at_leisure_do_not_add_up() {
        let pace = Pace::new(5, 4_000);
        let mut now = Instant::now();
        for n in 1..=100 {
            now += Duration::from_secs(50);
            assert_eq!(pace.try_turn(now), Ok(()), "call {n}");
            if n % 7 == 0 {
                pace.refuse(now, Duration::from_secs(2));
                assert_eq!(pace.wait(now), Duration::from_secs(2));
            }
        }
        // Calls that follow each other closely do slow the pace.
        assert_eq!(pace.try_turn(now + Duration::from_secs(1)), Ok(()));
        pace.refuse(now + Duration::from_secs(1), Duration::from_secs(2));
        assert!(pace.bucket(now).every > pace.every);
    }

    /// How many calls a limit of `per_minute_max` refuses in each ten minutes, with calls that always
    /// want to go.
    fn refusals(pace: &Pace, per_minute_max: usize, ten_minutes: usize) -> Vec<usize> {
        refusals_of(pace, per_minute_max, ten_minutes, |pace, now| {
            let mut waited = Duration::ZERO;
            while let Err(wait) = pace.try_turn(now + waited) {
                waited += wait;
            }
            waited
        })
    }

    /// As `refusals`, for calls that go after the wait that `turn` returns.
    fn refusals_of(
        pace: &Pace,
        per_minute_max: usize,
        ten_minutes: usize,
        turn: impl Fn(&Pace, Instant) -> Duration,
    ) -> Vec<usize> {
        const MINUTE: Duration = Duration::from_secs(60);
        let start = Instant::now();
        let (mut now, mut went) = (start, VecDeque::new());
        let mut refused = vec![0; ten_minutes];
        loop {
            now += turn(pace, now);
            let Some(count) = refused.get_mut((now - start).as_secs() as usize / 600) else {
                return refused;
            };
            while went.front().is_some_and(|at| now - *at >= MINUTE) {
                went.pop_front();
            }
            if went.len() < per_minute_max {
                went.push_back(now);
            } else {
                *count += 1;
                let oldest: Instant = went[0];
                pace.refuse(now, oldest + MINUTE - now);
            }
        }
    }

    #[test]
    fn a_quickening_pace_lets_thousands_of_calls_go_in_minutes_and_meets_a_limit_once() {
        let (start, mut now) = (Instant::now(), Instant::now());
        let pace = Pace::new(10, 1_500).quickening(20);
        for _ in 0..5_000 {
            now += pace.take(now);
        }
        let seconds = (now - start).as_secs();
        assert!((100..180).contains(&seconds), "{seconds} s");

        // Fifty a minute are granted; a call in ten minutes is refused, if any.
        let pace = Pace::new(10, 1_500).quickening(20);
        let refused = refusals_of(&pace, 50, 6, |pace, now| pace.take(now));
        assert_eq!(refused[0], 1, "{refused:?}");
        assert!(refused[1..].iter().all(|count| *count == 0), "{refused:?}");
    }

    #[test]
    fn a_pace_that_is_refused_learns_and_is_refused_rarely() {
        for per_minute_max in [12, 8, 3, 1] {
            let pace = Pace::new(5, 4_000);
            let refused = refusals(&pace, per_minute_max, 36);
            let first: usize = refused[..1].iter().sum();
            let later: usize = refused[1..].iter().sum();
            // Six hours: a probe in ten minutes is refused, and hardly anything else.
            assert!(first <= 10, "{per_minute_max}: {refused:?}");
            assert!(later <= 40, "{per_minute_max}: {refused:?}");
            assert!(refused[1..].iter().all(|count| *count <= 3), "{refused:?}");
        }
        let pace = Pace::new(5, 4_000);
        assert_eq!(refusals(&pace, 20, 6), [0; 6]);
    }

    /// When the distance of calls changes, in seconds after `start`, and what it becomes, in milliseconds: with
    /// calls that always want to go and are not refused.
    fn recovery(pace: &Pace, start: Instant, seconds: u64) -> Vec<(u64, u128)> {
        let mut steps = Vec::new();
        let mut before = Duration::ZERO;
        for second in 0..=seconds {
            let now = start + Duration::from_secs(second);
            let _ = pace.try_turn(now);
            let every = pace.bucket(now).every;
            if every != before {
                steps.push((second, every.as_millis()));
            }
            before = every;
        }
        steps
    }

    /// After how many seconds of calls that always want to go a faster pace is probed.
    fn probed_after(pace: &Pace, start: Instant) -> u64 {
        let every = pace.bucket(start).every;
        let is_faster = |second: &u64| {
            let now = start + Duration::from_secs(*second);
            let _ = pace.try_turn(now);
            pace.bucket(now).every < every
        };
        (0..3_600).find(is_faster).unwrap()
    }

    #[test]
    fn a_few_refusals_are_taken_back_step_by_step_within_minutes() {
        let pace = Pace::new(5, 4_000);
        let start = Instant::now();
        for _ in 0..6 {
            pace.refuse(start, Duration::ZERO);
        }
        let steps = [
            (0, 45_562),
            (46, 30_375),
            (91, 20_250),
            (136, 13_500),
            (181, 9_000),
            (226, 6_000),
            (271, 4_000),
        ];
        assert_eq!(recovery(&pace, start, 600), steps);
        // No matter how often it was refused.
        for _ in 0..100 {
            pace.refuse(start + Duration::from_secs(600), Duration::ZERO);
        }
        let steps = recovery(&pace, start + Duration::from_secs(600), 3_600);
        assert_eq!(steps.first(), Some(&(0, u128::from(EVERY_MAX_MS))));
        assert!(matches!(steps.last(), Some((..=600, 4_000))), "{steps:?}");
    }

    #[test]
    fn each_probe_that_is_refused_is_waited_for_twice_as_long_and_one_that_works_not() {
        let pace = Pace::new(1, 4_000);
        let mut now = Instant::now();
        pace.refuse(now, Duration::ZERO);
        let mut waits = Vec::new();
        for _ in 0..7 {
            let seconds = probed_after(&pace, now);
            waits.push(seconds);
            now += Duration::from_secs(seconds);
            pace.refuse(now, Duration::ZERO);
        }
        assert_eq!(waits, [45, 90, 180, 360, 600, 600, 600]);
        // A probe that is not refused has worked: the next one comes as soon as at first.
        now += Duration::from_secs(probed_after(&pace, now));
        for _ in 0..PROBE_LASTS.as_secs() {
            let _ = pace.try_turn(now);
            now += Duration::from_secs(1);
        }
        pace.refuse(now, Duration::ZERO);
        assert_eq!(probed_after(&pace, now), 45);
    }

    #[test]
    fn what_was_learnt_is_forgotten_in_the_end() {
        let pace = Pace::new(5, 4_000);
        let start = Instant::now();
        for _ in 0..20 {
            pace.refuse(start, Duration::from_secs(30));
        }
        assert!(!pace.is_new(start + Duration::from_secs(329)));
        let later = start + Duration::from_secs(330);
        assert!(pace.is_new(later));
        let at_once = (0..10).filter(|_| pace.try_turn(later).is_ok()).count();
        assert_eq!(at_once, 5);
    }

    #[test]
    fn one_place_that_is_refused_rests_alone_and_three_are_the_account() {
        let places = Paces::new(1, 1_000);
        let everywhere = Everywhere::new(Pace::new(10, 50));
        let now = Instant::now();
        let wait = |place: &str, now| everywhere.take_or_wait(&places.of(place), now);
        let refuse = |place: &str, seconds| {
            let rest = Duration::from_secs(seconds);
            everywhere.refuse(place, &places.of(place), now, rest);
        };
        for _ in 0..5 {
            refuse("a", 300);
        }
        refuse("b", 300);
        assert_eq!(wait("c", now), Duration::ZERO);
        assert_eq!(wait("a", now), Duration::from_secs(300));
        refuse("c", 300);
        assert_eq!(wait("d", now), GUESSED_REST_MAX);
        assert_eq!(wait("d", now + GUESSED_REST_MAX), Duration::ZERO);
    }

    #[test]
    fn what_is_remembered_is_bounded_and_what_rests_is_kept() {
        let paces = Paces::new(1, 1_000);
        let now = Instant::now();
        paces.of("slow").refuse(now, Duration::from_secs(300));
        for n in 0..Paces::PLACES_MAX + 10 {
            let _ = paces.of(&n.to_string()).try_turn(now);
        }
        assert_eq!(paces.places.lock().unwrap().len(), Paces::PLACES_MAX);
        assert!(paces.of("slow").is_resting(now));

        let rests = Rests::default();
        rests.note("slow", now, Duration::from_secs(300));
        for n in 0..Rests::CALLS_MAX + 10 {
            rests.note(&n.to_string(), now, Duration::from_secs(1));
        }
        assert_eq!(rests.lock().len(), Rests::CALLS_MAX);
        assert_eq!(rests.left("slow", now), Some(Duration::from_secs(300)));
        assert_eq!(rests.left("slow", now + Duration::from_secs(300)), None);
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
