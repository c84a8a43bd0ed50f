//! Which job is next, and what follows an attempt. Pure.

use std::collections::HashMap;

use crate::ids::{AccountId, JobId};
use crate::job::{JobKind, WaitsFor};

/// What an attempt came to, as its handler says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is done: its row is removed.
    Done,
    /// It failed: it is tried again after its kind's wait, and dead after its kind's attempts.
    Failed {
        /// Why.
        why: String,
        /// The wait in milliseconds that the other side asked for, in place of the kind's.
        asked_wait_ms: Option<u64>,
    },
    /// It is to be done later; the attempt does not count.
    Later {
        /// Not before, in milliseconds since the Unix epoch.
        not_before_ms: i64,
        /// Why.
        why: String,
    },
    /// It waits for something that happens; the attempt does not count.
    Wait {
        /// What.
        waits_for: WaitsFor,
    },
    /// It is given up for good.
    Dead {
        /// Why.
        why: String,
    },
}

impl Outcome {
    /// A failure after which the kind's own wait follows.
    #[must_use]
    pub fn failed(why: impl Into<String>) -> Self {
        Self::Failed {
            why: why.into(),
            asked_wait_ms: None,
        }
    }
}

/// What becomes of a job's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobChange {
    /// It is removed.
    Gone,
    /// It is to be done, not before that time.
    Pending {
        /// In milliseconds since the Unix epoch.
        not_before_ms: i64,
        /// Attempts that count.
        attempts: u32,
        /// Why it was not done this time.
        cause: String,
    },
    /// It waits.
    Waiting {
        /// For what.
        waits_for: WaitsFor,
        /// Attempts that count.
        attempts: u32,
    },
    /// It is dead.
    Dead {
        /// Why.
        cause: String,
    },
}

/// What follows an attempt; `attempts` were made, with this one.
#[must_use]
pub fn after(kind: JobKind, attempts: u32, outcome: Outcome, now_ms: i64) -> JobChange {
    let limits = kind.limits();
    let before = attempts.saturating_sub(1);
    match outcome {
        Outcome::Done => JobChange::Gone,
        Outcome::Failed { why, .. } if limits.attempts_max.is_some_and(|max| attempts >= max) => {
            JobChange::Dead { cause: why }
        }
        Outcome::Failed { why, asked_wait_ms } => {
            let asked_wait_ms = asked_wait_ms.map(|wait_ms| {
                i64::try_from(wait_ms)
                    .unwrap_or(i64::MAX)
                    .min(limits.later_max_ms)
            });
            let wait_ms = asked_wait_ms.unwrap_or_else(|| back_off_ms(kind, attempts));
            JobChange::Pending {
                not_before_ms: now_ms.saturating_add(wait_ms),
                attempts,
                cause: why,
            }
        }
        Outcome::Later { not_before_ms, why } => JobChange::Pending {
            not_before_ms: not_before_ms.min(now_ms.saturating_add(limits.later_max_ms)),
            attempts: before,
            cause: why,
        },
        Outcome::Wait { waits_for } => JobChange::Waiting {
            waits_for,
            attempts: before,
        },
        Outcome::Dead { why } => JobChange::Dead { cause: why },
    }
}

/// How long a job waits after a number of failed attempts, in milliseconds: its kind's first wait, doubled with
/// each further attempt, up to its kind's longest.
#[must_use]
pub fn back_off_ms(kind: JobKind, attempts: u32) -> i64 {
    let limits = kind.limits();
    let doubled = limits.wait_first_ms << attempts.saturating_sub(1).min(20);
    doubled.min(limits.wait_max_ms)
}

/// Whether a job that was asked for at a time is of no use any more. A time in the future was written under
/// another clock.
#[must_use]
pub fn has_lapsed(kind: JobKind, asked_at_ms: i64, now_ms: i64) -> bool {
    let age_max_ms = kind.limits().age_max_ms;
    age_max_ms.is_some_and(|age_max_ms| now_ms.saturating_sub(asked_at_ms) > age_max_ms)
}

/// Why a job that is claimed again is dead before it begins: an attempt that failed is counted by [`after`], so what
/// began all of its kind's attempts ended the process in the last one.
#[must_use]
pub fn worn_out(kind: JobKind, attempts_begun: u32) -> Option<&'static str> {
    let attempts_max = kind.limits().attempts_max;
    let is_over = attempts_max.is_some_and(|max| attempts_begun >= max);
    is_over.then_some("the process ended during each of its attempts")
}

/// The first job of an account that is due, of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The job.
    pub id: JobId,
    /// For which account.
    pub account: Option<AccountId>,
    /// Since when it may be done, in milliseconds since the Unix epoch.
    pub not_before_ms: i64,
}

type ShareKey = (JobKind, Option<AccountId>);

/// Who has how many slots, and whose turn it is. An account with ten thousand jobs delays another's one by a
/// turn.
#[derive(Clone, Debug, Default)]
pub struct Shares {
    at_work: HashMap<ShareKey, usize>,
    /// When each was served last, by a counter.
    served: HashMap<ShareKey, u64>,
    turn: u64,
}

impl Shares {
    /// A job of an account takes a slot.
    pub fn begin(&mut self, kind: JobKind, account: Option<AccountId>) {
        self.turn += 1;
        self.served.insert((kind, account), self.turn);
        *self.at_work.entry((kind, account)).or_default() += 1;
    }

    /// It gives the slot back.
    pub fn end(&mut self, kind: JobKind, account: Option<AccountId>) {
        if let Some(count) = self.at_work.get_mut(&(kind, account)) {
            *count = count.saturating_sub(1);
        }
    }

    /// How many of the `slots` of a kind are free.
    #[must_use]
    pub fn free(&self, kind: JobKind, slots: usize) -> usize {
        let shares = self.at_work.iter().filter(|((of, _), _)| *of == kind);
        slots.saturating_sub(shares.map(|(_, count)| count).sum())
    }

    /// Which of the accounts' first jobs gets the next slot: of those accounts that have a slot left, the one
    /// with the fewest at work, then the one that was served longest ago, then the oldest job.
    #[must_use]
    pub fn next(&self, kind: JobKind, heads: &[Head]) -> Option<Head> {
        let at_work = |head: &Head| self.at_work.get(&(kind, head.account)).map_or(0, |it| *it);
        let served = |head: &Head| self.served.get(&(kind, head.account)).map_or(0, |it| *it);
        let slots_of_account = kind.limits().slots_of_account;
        let free = heads.iter().filter(|head| at_work(head) < slots_of_account);
        free.min_by_key(|head| (at_work(head), served(head), head.not_before_ms, head.id))
            .copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FETCH: JobKind = JobKind::FetchFile;

    fn pending(not_before_ms: i64, attempts: u32, cause: &str) -> JobChange {
        JobChange::Pending {
            not_before_ms,
            attempts,
            cause: cause.to_owned(),
        }
    }

    #[test]
    fn a_job_that_ends_the_process_each_time_is_dead_and_one_that_must_be_done_never_is() {
        let attempts_max = FETCH.limits().attempts_max.unwrap_or_default();
        assert_eq!(worn_out(FETCH, attempts_max - 1), None);
        assert!(worn_out(FETCH, attempts_max).is_some());
        assert_eq!(worn_out(JobKind::Erase, u32::MAX), None);
    }

    #[test]
    fn what_follows_an_attempt() {
        let failed = || Outcome::failed("503");
        let asked = |wait_ms| Outcome::Failed {
            why: "503".to_owned(),
            asked_wait_ms: Some(wait_ms),
        };
        let later = |not_before_ms| Outcome::Later {
            not_before_ms,
            why: "429".to_owned(),
        };
        let waits_for = WaitsFor::Transcription;
        let dead = || JobChange::Dead {
            cause: "503".to_owned(),
        };
        let table = [
            (FETCH, 1, Outcome::Done, JobChange::Gone),
            (FETCH, 1, failed(), pending(3_000, 1, "503")),
            (FETCH, 4, failed(), pending(17_000, 4, "503")),
            (FETCH, 9, failed(), pending(513_000, 9, "503")),
            (FETCH, 10, failed(), dead()),
            (FETCH, 9, asked(9_000), pending(10_000, 9, "503")),
            (FETCH, 9, asked(u64::MAX), pending(21_601_000, 9, "503")),
            (FETCH, 10, asked(9_000), dead()),
            // A job that has to be done is never given up, and its waits stop growing.
            (
                JobKind::Erase,
                u32::MAX,
                failed(),
                pending(301_000, u32::MAX, "503"),
            ),
            (FETCH, 3, later(9_000), pending(9_000, 2, "429")),
            // A wait of years is a mistake.
            (FETCH, 3, later(i64::MAX), pending(21_601_000, 2, "429")),
            (
                FETCH,
                3,
                Outcome::Wait { waits_for },
                JobChange::Waiting {
                    waits_for,
                    attempts: 2,
                },
            ),
            (
                FETCH,
                1,
                Outcome::Dead {
                    why: "503".to_owned(),
                },
                dead(),
            ),
        ];
        for (kind, attempts, outcome, expected) in table {
            let told = format!("{kind:?} {attempts} {outcome:?}");
            assert_eq!(after(kind, attempts, outcome, 1_000), expected, "{told}");
        }
    }

    #[test]
    fn a_file_is_given_up_after_more_than_a_quarter_of_an_hour_of_waits() {
        let total: i64 = (1..10).map(|attempts| back_off_ms(FETCH, attempts)).sum();
        assert!((900_000..10_000_000).contains(&total), "{total}");
    }

    #[test]
    fn an_inquiry_lapses_and_nothing_else_does() {
        let inquiry = JobKind::AnswerInquiry;
        let table = [
            (inquiry, 0, 900_000, false),
            (inquiry, 0, 900_001, true),
            // The clock was ahead when it was asked.
            (inquiry, i64::MAX, 0, false),
            (FETCH, 0, i64::MAX, false),
        ];
        for (kind, asked_at_ms, now_ms, expected) in table {
            assert_eq!(has_lapsed(kind, asked_at_ms, now_ms), expected);
        }
    }

    #[test]
    fn an_account_with_many_jobs_delays_another_by_one_turn() {
        let head = |account, not_before_ms| Head {
            id: JobId(not_before_ms),
            account: Some(AccountId(account)),
            not_before_ms,
        };
        let (busy, quiet) = (head(1, 10), head(2, 99));
        let mut shares = Shares::default();
        let served = |shares: &mut Shares, kind, heads: &[Head]| {
            let next = shares.next(kind, heads);
            if let Some(next) = next {
                shares.begin(kind, next.account);
            }
            next
        };
        // With one slot they take turns.
        let kind = JobKind::Erase;
        for expected in [busy, quiet, busy] {
            assert_eq!(served(&mut shares, kind, &[busy, quiet]), Some(expected));
            assert_eq!(shares.free(kind, 1), 0);
            shares.end(kind, expected.account);
        }
        // With several, each has its own.
        for _ in 0..FETCH.limits().slots_of_account {
            assert_eq!(served(&mut shares, FETCH, &[busy]), Some(busy));
        }
        assert_eq!(served(&mut shares, FETCH, &[busy]), None);
        assert_eq!(served(&mut shares, FETCH, &[busy, quiet]), Some(quiet));
        assert_eq!(shares.free(FETCH, 64), 59);
    }
}
