//! The daemon's time: the platforms' time if the machine's clock disagrees with them, and whether it is reliable
//! enough to delete data by age. See `docs/adr/0034-time.md`.

use std::sync::{Arc, PoisonError, RwLock};

use vocative_contract::clock::{PlatformClock, Wall};

use crate::capture::clock::Clock;
use crate::retention::aging::Agreement;

/// If clocks are further apart than this, in milliseconds, no data is deleted by age.
const DISPUTED_MS: i64 = 600_000;

/// A channel's name, and the time of its platform.
type PlatformTime = (String, Arc<PlatformClock>);

/// The daemon's time.
#[derive(Clone)]
pub struct Timekeeper {
    wall: Wall,
    platforms: Arc<RwLock<Vec<PlatformTime>>>,
}

impl Timekeeper {
    /// The machine's time, until platforms tell theirs.
    #[must_use]
    pub fn new(wall: Wall) -> Self {
        Self {
            wall,
            platforms: Arc::default(),
        }
    }

    /// Also takes the time of a channel's platform into account.
    pub fn listen_to(&self, channel: &str, platform: Arc<PlatformClock>) {
        let mut platforms = self
            .platforms
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        platforms.push((channel.to_owned(), platform));
    }

    /// The daemon's time, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        let platforms = self.platforms();
        let told = platforms
            .iter()
            .filter(|(_, platform)| platform.told_now_ms().is_some());
        time_of(
            (self.wall)(),
            told.map(|(_, platform)| platform.now_ms()).collect(),
        )
    }

    /// A clock that tells the daemon's time.
    #[must_use]
    pub fn clock(&self) -> Clock {
        let time = self.clone();
        Arc::new(move || time.now_ms())
    }

    /// A clock that tells the time of a channel's platform; the daemon's time while the platform has told none.
    #[must_use]
    pub fn clock_of(&self, channel: &str) -> Clock {
        let (time, channel) = (self.clone(), channel.to_owned());
        Arc::new(move || {
            let platforms = time.platforms();
            let own = platforms.iter().find(|(name, _)| *name == channel);
            let told = own.filter(|(_, platform)| platform.told_now_ms().is_some());
            match told {
                Some((_, platform)) => platform.now_ms(),
                None => {
                    drop(platforms);
                    time.now_ms()
                }
            }
        })
    }

    /// Whether the clocks agree.
    #[must_use]
    pub fn agreement(&self) -> Agreement {
        let wall_ms = (self.wall)();
        let platforms = self.platforms();
        let told = platforms.iter().filter_map(|(channel, platform)| {
            let told_ms = platform.told_now_ms()?;
            Some((channel.as_str(), told_ms))
        });
        agreement_of(wall_ms, told)
    }

    fn platforms(&self) -> std::sync::RwLockReadGuard<'_, Vec<PlatformTime>> {
        self.platforms
            .read()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time from the machine's and the platforms' clocks. Of platforms that disagree the middle one counts, of two
/// the earlier: a time that is too early deletes nothing.
fn time_of(wall_ms: i64, mut told: Vec<i64>) -> i64 {
    told.sort_unstable();
    let middle = told.len().saturating_sub(1) / 2;
    told.get(middle).copied().unwrap_or(wall_ms)
}

fn agreement_of<'a>(wall_ms: i64, told: impl Iterator<Item = (&'a str, i64)>) -> Agreement {
    let mut agreement = Agreement::Untold;
    for (channel, told_ms) in told {
        let ahead_ms = wall_ms - told_ms;
        if ahead_ms.abs() > DISPUTED_MS {
            return Agreement::Disputed {
                channel: channel.to_owned(),
                ahead_ms,
            };
        }
        agreement = Agreement::Agreed;
    }
    agreement
}

#[cfg(test)]
mod tests {
    use super::*;

    const YEAR_MS: i64 = 365 * 86_400_000;

    #[test]
    fn platforms_outvote_the_machine() {
        let table = [
            (vec![], 500),
            (vec![7], 7),
            (vec![9, 7], 7),
            (vec![9, YEAR_MS, 7], 9),
            (vec![9, 9, -YEAR_MS], 9),
        ];
        for (told, expected) in table {
            assert_eq!(time_of(500, told.clone()), expected, "{told:?}");
        }
    }

    #[test]
    fn a_clock_that_is_far_away_is_named() {
        let told = [("acme", 1_000_000), ("club", 1_000_000 - YEAR_MS)];
        assert_eq!(agreement_of(5, [].into_iter()), Agreement::Untold);
        assert_eq!(
            agreement_of(1_600_000, told[..1].iter().copied()),
            Agreement::Agreed
        );
        let disputed = Agreement::Disputed {
            channel: "club".to_owned(),
            ahead_ms: YEAR_MS + 5,
        };
        assert_eq!(agreement_of(1_000_005, told.into_iter()), disputed);
    }

    #[tokio::test(start_paused = true)]
    async fn a_channel_has_the_time_of_its_own_platform() {
        let wall: Wall = Arc::new(|| 9_000_000);
        let time = Timekeeper::new(Arc::clone(&wall));
        let platform = Arc::new(PlatformClock::new(wall));
        time.listen_to("acme", Arc::clone(&platform));
        assert_eq!(
            (time.now_ms(), time.clock_of("acme")()),
            (9_000_000, 9_000_000)
        );
        platform.note_between(1_000, 1_000);
        assert_eq!((time.clock()(), time.clock_of("acme")()), (1_000, 1_000));
        assert_eq!(time.clock_of("other")(), 1_000);
    }
}
