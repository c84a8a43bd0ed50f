//! Whether data may be deleted by age: only while the time is reliable, and only a share of it at once. Data that was
//! deleted because of a wrong clock can't be recovered.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

/// The time is doubtful if the newest message is older than this, in milliseconds.
const FAR_MS: i64 = 7 * 86_400_000;
/// Clocks that have agreed for this long are believed, however old the newest message is.
const PROVEN: Duration = Duration::from_secs(86_400);
/// One pass removes at most one turn in this many ...
const SHARE: u64 = 20;
/// ... or this many turns, if that is more.
const SHARE_LEAST: u64 = 100;

/// Whether the clocks agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// No platform has told its time yet.
    Untold,
    /// The machine and all platforms that told their time agree.
    Agreed,
    /// They disagree: by whose clock, and how far the machine's is ahead of it, in milliseconds.
    Disputed {
        /// The channel.
        channel: String,
        /// How far the machine's clock is ahead; negative: behind.
        ahead_ms: i64,
    },
}

/// Why the clock can't be trusted, if it can't; retention writes it, status reads it.
#[derive(Clone, Debug, Default)]
pub struct TimeDoubt(Arc<Mutex<Option<String>>>);

impl TimeDoubt {
    /// Stores the doubt; returns whether a doubt has appeared or gone.
    pub fn set(&self, doubt: Option<String>) -> bool {
        let mut known = self.0.lock().expect("no holder of this lock panics");
        let is_news = known.is_some() != doubt.is_some();
        *known = doubt;
        is_news
    }

    /// The reason for the doubt, in plain words; `None` if the clock is trusted.
    #[must_use]
    pub fn get(&self) -> Option<String> {
        self.0
            .lock()
            .expect("no holder of this lock panics")
            .clone()
    }
}

/// The facts known about the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Evidence {
    /// The time, in milliseconds since the Unix epoch.
    pub(super) now_ms: i64,
    /// The platform's time of the newest message.
    pub(super) newest_ms: Option<i64>,
    /// Whether the machine and the platforms agree.
    pub(super) agreement: Agreement,
    /// For how long they have agreed.
    pub(super) agreed_for: Duration,
}

/// Why no data may be deleted by age; `None` = the time is plausible. Pure.
pub(super) fn doubt(evidence: &Evidence) -> Option<String> {
    if let Agreement::Disputed { channel, ahead_ms } = &evidence.agreement {
        let way = if *ahead_ms > 0 { "ahead of" } else { "behind" };
        let minutes = ahead_ms.abs() / 60_000;
        return Some(format!(
            "the machine's clock is {minutes} minutes {way} the platform of {channel}: set it right"
        ));
    }
    let newest_ms = evidence.newest_ms?;
    let is_far = evidence.now_ms - newest_ms > FAR_MS;
    if is_far && evidence.agreed_for < PROVEN {
        let days = (evidence.now_ms - newest_ms) / 86_400_000;
        return Some(format!(
            "the newest message is {days} days old: either nobody said anything for so long, or the \
             machine's clock is wrong. Nothing goes until a message comes or the clock has agreed with the \
             platforms for a day"
        ));
    }
    None
}

/// How many rows of a class may be deleted in one pass, given the number of turns.
pub(super) fn share_of(turns: u64) -> u64 {
    (turns / SHARE).max(SHARE_LEAST)
}

/// Since when the clocks have agreed.
#[derive(Debug, Default)]
pub(super) struct AgreedSince(Option<Instant>);

impl AgreedSince {
    /// Notes whether the clocks agree; returns for how long they have agreed.
    pub(super) fn note(&mut self, agreement: &Agreement, now: Instant) -> Duration {
        if *agreement != Agreement::Agreed {
            self.0 = None;
            return Duration::ZERO;
        }
        now.duration_since(*self.0.get_or_insert(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: i64 = 86_400_000;
    const NOW_MS: i64 = 1_795_248_000_000;

    fn is_doubted(newest_days_ago: i64, agreement: Agreement, agreed_for: Duration) -> bool {
        let evidence = Evidence {
            now_ms: NOW_MS,
            newest_ms: Some(NOW_MS - newest_days_ago * DAY_MS),
            agreement,
            agreed_for,
        };
        doubt(&evidence).is_some()
    }

    #[test]
    fn nothing_goes_while_the_time_is_implausible() {
        let ahead = || Agreement::Disputed {
            channel: "acme".to_owned(),
            ahead_ms: 400 * DAY_MS,
        };
        let day = Duration::from_secs(86_400);
        let table = [
            (0, Agreement::Untold, Duration::ZERO, false),
            (6, Agreement::Agreed, Duration::ZERO, false),
            (400, Agreement::Untold, Duration::ZERO, true),
            (400, Agreement::Agreed, Duration::ZERO, true),
            (400, Agreement::Agreed, day - Duration::from_secs(1), true),
            // In a workspace without any new messages, nothing is kept longer than configured.
            (400, Agreement::Agreed, day, false),
            (0, ahead(), day, true),
        ];
        for (days, agreement, agreed_for, expected) in table {
            let doubted = is_doubted(days, agreement.clone(), agreed_for);
            assert_eq!(doubted, expected, "{days} {agreement:?} {agreed_for:?}");
        }
    }

    #[test]
    fn a_dispute_names_the_channel_and_which_way() {
        let doubted = |ahead_ms| {
            let evidence = Evidence {
                now_ms: NOW_MS,
                newest_ms: None,
                agreement: Agreement::Disputed {
                    channel: "acme".to_owned(),
                    ahead_ms,
                },
                agreed_for: Duration::ZERO,
            };
            doubt(&evidence).unwrap_or_default()
        };
        assert!(doubted(7_200_000).contains("120 minutes ahead of the platform of acme"));
        assert!(doubted(-7_200_000).contains("120 minutes behind the platform of acme"));
    }

    #[test]
    fn agreement_counts_from_its_beginning() {
        let mut agreed = AgreedSince::default();
        let (start, minute) = (Instant::now(), Duration::from_secs(60));
        assert_eq!(agreed.note(&Agreement::Agreed, start), Duration::ZERO);
        assert_eq!(agreed.note(&Agreement::Agreed, start + minute), minute);
        let lost = agreed.note(&Agreement::Untold, start + 2 * minute);
        assert_eq!(lost, Duration::ZERO);
        let again = agreed.note(&Agreement::Agreed, start + 3 * minute);
        assert_eq!(again, Duration::ZERO);
    }

    #[test]
    fn a_share_is_a_twentieth_and_never_next_to_nothing() {
        assert_eq!(
            [share_of(0), share_of(2_000), share_of(40_000)],
            [100, 100, 2_000]
        );
    }
}
