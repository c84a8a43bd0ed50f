//! What follows from an attempt without an answer. Pure.

use crate::llm::ModelError;
use vocative_core::run::Usage;
use vocative_core::words::Language;

/// A run that failed waits this long before its second attempt, then twice as long each time.
const RETRY_FIRST_MS: i64 = 2_000;
const RETRY_MAX_MS: i64 = 300_000;
/// While its model can't answer, a run waits half as long as it is old, within these bounds.
const PUT_OFF_FIRST_MS: i64 = 2_000;
const PUT_OFF_MAX_MS: i64 = 60_000;

/// Why an attempt gave no answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum AttemptFailure {
    /// The model gave no answer.
    Model(ModelError),
    /// Another failure; the next attempt may succeed.
    Passing(String),
    /// Another failure, which another attempt would not change.
    Final(String),
}

/// The answers of a run, none of which has the required form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Misshapen {
    /// The number of answers.
    pub(super) answers: u32,
    /// Tokens of all steps.
    pub(super) usage: Usage,
}

impl AttemptFailure {
    /// Why, for operators.
    pub(super) fn reason(&self) -> String {
        match self {
            Self::Model(error) => error.to_string(),
            Self::Passing(reason) | Self::Final(reason) => reason.clone(),
        }
    }
}

impl AttemptFailure {
    /// Whether a fallback is asked in place of the model that failed: the model can't answer for now, or answers no
    /// question. A question that a model refuses, or that is too long for it, is not given to a fallback.
    pub(super) fn falls_back(&self) -> bool {
        match self {
            Self::Model(
                ModelError::RetryAfter { .. }
                | ModelError::Unavailable { .. }
                | ModelError::AccountRefused { .. }
                | ModelError::Malformed { .. },
            ) => true,
            Self::Model(
                ModelError::Refused { .. }
                | ModelError::ContextTooLong { .. }
                | ModelError::Truncated
                | ModelError::Empty,
            )
            | Self::Passing(_)
            | Self::Final(_) => false,
        }
    }

    /// Of the failures of two models of a chain, the one that decides when the run is tried again: the one that may
    /// end first. A fallback's problem with the question decides nothing while the first model has not seen the
    /// question.
    pub(super) fn sooner(self, fallback: Self) -> Self {
        match fallback.falls_back() && fallback.wait_ms() < self.wait_ms() {
            true => fallback,
            false => self,
        }
    }

    /// How long the failure lasts at least, as far as known, in milliseconds.
    fn wait_ms(&self) -> u64 {
        match self {
            Self::Model(ModelError::RetryAfter { wait_ms }) => wait_ms.unwrap_or(0),
            Self::Model(ModelError::AccountRefused { .. } | ModelError::Malformed { .. }) => {
                u64::MAX
            }
            Self::Model(_) | Self::Passing(_) | Self::Final(_) => 0,
        }
    }
}

/// How often and how long a run was tried, and how often and how long it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tried {
    /// Attempts that count, the present one included.
    pub(super) attempts: u32,
    pub(super) max_attempts: u32,
    /// The age of the question, by the run clock.
    pub(super) age_ms: i64,
    pub(super) answer_within_ms: i64,
}

/// What follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AfterFailure {
    /// Another attempt.
    Again(Again),
    /// The room is told.
    GiveUp(GiveUpNotice),
}

/// Another attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Again {
    pub(super) wait_ms: i64,
    /// Whether the attempt that failed counts.
    pub(super) counts: bool,
}

/// What the room is told of a run that is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GiveUpNotice {
    /// It failed.
    Failed,
    /// Its model was over its limit for that long, in milliseconds.
    Limited { for_ms: i64 },
    /// Its model could not be reached for that long.
    Unavailable { for_ms: i64 },
    /// Its model refused our account for that long.
    AccountRefused { for_ms: i64 },
}

/// What follows from an attempt without an answer: while the provider is down or over its limit, the age of the
/// question limits the retries; if the question is the cause, the number of attempts does.
pub(super) fn after(failure: &AttemptFailure, tried: Tried) -> AfterFailure {
    let for_ms = tried.age_ms;
    match failure {
        AttemptFailure::Model(ModelError::RetryAfter { wait_ms }) => {
            let asked_ms = i64::try_from(wait_ms.unwrap_or(0)).unwrap_or(i64::MAX);
            put_off(asked_ms, tried, GiveUpNotice::Limited { for_ms })
        }
        AttemptFailure::Model(ModelError::Unavailable { .. }) => {
            put_off(0, tried, GiveUpNotice::Unavailable { for_ms })
        }
        AttemptFailure::Model(ModelError::AccountRefused { .. }) => {
            put_off(0, tried, GiveUpNotice::AccountRefused { for_ms })
        }
        AttemptFailure::Model(ModelError::Refused { .. } | ModelError::ContextTooLong { .. })
        | AttemptFailure::Final(_) => AfterFailure::GiveUp(GiveUpNotice::Failed),
        AttemptFailure::Model(_) | AttemptFailure::Passing(_)
            if tried.attempts < tried.max_attempts =>
        {
            AfterFailure::Again(Again::counted(tried.attempts))
        }
        AttemptFailure::Model(_) | AttemptFailure::Passing(_) => {
            AfterFailure::GiveUp(GiveUpNotice::Failed)
        }
    }
}

fn put_off(asked_ms: i64, tried: Tried, notice: GiveUpNotice) -> AfterFailure {
    let left_ms = tried.answer_within_ms - tried.age_ms;
    if left_ms <= 0 {
        return AfterFailure::GiveUp(notice);
    }
    let own_ms = (tried.age_ms / 2).clamp(PUT_OFF_FIRST_MS, PUT_OFF_MAX_MS);
    AfterFailure::Again(Again {
        wait_ms: asked_ms.max(own_ms).min(left_ms),
        counts: false,
    })
}

impl Again {
    /// The next attempt, after `attempts` attempts that count.
    pub(super) fn counted(attempts: u32) -> Self {
        Self {
            wait_ms: retry_wait_ms(attempts),
            counts: true,
        }
    }
}

/// How long a run waits for its next attempt, after `attempts` failed ones.
pub(super) fn retry_wait_ms(attempts: u32) -> i64 {
    (RETRY_FIRST_MS << attempts.saturating_sub(1).min(16)).min(RETRY_MAX_MS)
}

impl GiveUpNotice {
    /// In words for the room.
    pub(super) fn text(self, language: Language) -> String {
        match self {
            Self::Failed => language.run_failed(),
            Self::Limited { for_ms } => language.model_took_no_more(whole_time(for_ms, language)),
            Self::Unavailable { for_ms } => {
                language.model_unreachable(whole_time(for_ms, language))
            }
            Self::AccountRefused { for_ms } => {
                language.model_refused_account(whole_time(for_ms, language))
            }
        }
    }
}

/// A time in whole seconds, minutes or hours.
fn whole_time(ms: i64, language: Language) -> String {
    match u64::try_from(ms / 1_000).unwrap_or(0) {
        seconds @ ..=119 => language.seconds(seconds.max(1)),
        seconds @ 120..=7_199 => language.minutes(seconds / 60),
        seconds => language.hours(seconds / 3_600),
    }
}

/// An error and its sources, joined.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let errors = std::iter::successors(Some(error), |cause| cause.source());
    errors
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: i64 = 3_600_000;

    fn tried(attempts: u32, age_ms: i64) -> Tried {
        Tried {
            attempts,
            max_attempts: 3,
            age_ms,
            answer_within_ms: HOUR_MS,
        }
    }

    fn limited(wait_ms: Option<u64>) -> AttemptFailure {
        AttemptFailure::Model(ModelError::RetryAfter { wait_ms })
    }

    fn down() -> AttemptFailure {
        AttemptFailure::Model(ModelError::Unavailable {
            cause: "503".to_owned(),
        })
    }

    fn unpaid() -> AttemptFailure {
        AttemptFailure::Model(ModelError::AccountRefused {
            reason: "402".to_owned(),
        })
    }

    fn refused() -> AttemptFailure {
        AttemptFailure::Model(ModelError::Refused {
            reason: "400".to_owned(),
        })
    }

    #[test]
    fn an_outage_uses_up_age_and_everything_else_attempts() {
        let again = |wait_ms, counts| AfterFailure::Again(Again { wait_ms, counts });
        let put_off = |wait_ms| again(wait_ms, false);
        let give_up = AfterFailure::GiveUp;
        let for_ms = HOUR_MS;
        let empty = || AttemptFailure::Model(ModelError::Empty);
        let passing = || AttemptFailure::Passing("it panicked".to_owned());
        let cases = [
            (limited(Some(300_000)), tried(99, 0), put_off(300_000)),
            (limited(None), tried(99, 10_000), put_off(5_000)),
            (limited(Some(1)), tried(1, 0), put_off(2_000)),
            // A wait past the deadline is cut to it; at the deadline the room is told.
            (
                limited(Some(u64::MAX)),
                tried(1, 600_000),
                put_off(3_000_000),
            ),
            (
                limited(Some(1)),
                tried(1, HOUR_MS),
                give_up(GiveUpNotice::Limited { for_ms }),
            ),
            (down(), tried(99, 0), put_off(2_000)),
            (down(), tried(99, HOUR_MS - 1), put_off(1)),
            (
                down(),
                tried(1, HOUR_MS),
                give_up(GiveUpNotice::Unavailable { for_ms }),
            ),
            (unpaid(), tried(99, 0), put_off(2_000)),
            (
                unpaid(),
                tried(1, HOUR_MS),
                give_up(GiveUpNotice::AccountRefused { for_ms }),
            ),
            (refused(), tried(1, 0), give_up(GiveUpNotice::Failed)),
            (
                AttemptFailure::Final("gone".to_owned()),
                tried(1, 0),
                give_up(GiveUpNotice::Failed),
            ),
            (empty(), tried(2, HOUR_MS), again(4_000, true)),
            (empty(), tried(3, 0), give_up(GiveUpNotice::Failed)),
            (passing(), tried(1, 0), again(2_000, true)),
            (passing(), tried(3, 0), give_up(GiveUpNotice::Failed)),
        ];
        for (failure, tried, expected) in cases {
            assert_eq!(after(&failure, tried), expected, "{failure:?} {tried:?}");
        }
    }

    #[test]
    fn only_what_is_no_fault_of_the_question_falls_back() {
        let malformed = || {
            AttemptFailure::Model(ModelError::Malformed {
                what: "x".to_owned(),
            })
        };
        let too_long = || {
            AttemptFailure::Model(ModelError::ContextTooLong {
                limit: None,
                asked: None,
            })
        };
        let table = [
            (limited(Some(1)), true),
            (down(), true),
            (unpaid(), true),
            (malformed(), true),
            (refused(), false),
            (too_long(), false),
            (AttemptFailure::Model(ModelError::Empty), false),
            (AttemptFailure::Model(ModelError::Truncated), false),
            (AttemptFailure::Passing("it panicked".to_owned()), false),
            (AttemptFailure::Final("gone".to_owned()), false),
        ];
        for (failure, expected) in table {
            assert_eq!(failure.falls_back(), expected, "{failure:?}");
        }
        let hour = || limited(Some(3_600_000));
        let table = [
            (hour(), down(), down()),
            (down(), hour(), down()),
            (hour(), limited(Some(5)), limited(Some(5))),
            (unpaid(), down(), down()),
            (unpaid(), hour(), hour()),
            // What a fallback says about the question does not end the run.
            (hour(), refused(), hour()),
            (unpaid(), too_long(), unpaid()),
        ];
        for (first, fallback, expected) in table {
            let told = format!("{first:?} {fallback:?}");
            assert_eq!(first.sooner(fallback), expected, "{told}");
        }
    }

    /// Simulates an outage with the waits that are chosen: the ages at which a run is tried.
    #[test]
    fn an_hour_of_outage_is_some_seventy_attempts_and_one_notice() {
        let mut ages_ms = vec![0];
        let end = loop {
            let age_ms = *ages_ms.last().unwrap();
            match after(&down(), tried(1, age_ms)) {
                AfterFailure::Again(again) => ages_ms.push(age_ms + again.wait_ms),
                end => break end,
            }
        };
        assert_eq!(
            ages_ms[..7],
            [0, 2_000, 4_000, 6_000, 9_000, 13_500, 20_250]
        );
        assert!(
            ages_ms.is_sorted() && (60..=80).contains(&ages_ms.len()),
            "{}",
            ages_ms.len()
        );
        assert_eq!(
            end,
            AfterFailure::GiveUp(GiveUpNotice::Unavailable { for_ms: HOUR_MS })
        );
        assert_eq!(ages_ms.last(), Some(&HOUR_MS));
    }

    #[test]
    fn waits_between_attempts_grow_to_a_maximum() {
        let waits: Vec<i64> = [1, 2, 3, 9, 60].into_iter().map(retry_wait_ms).collect();
        assert_eq!(waits, [2_000, 4_000, 8_000, 300_000, 300_000]);
    }

    #[test]
    fn the_room_is_told_what_it_was_and_for_how_long() {
        let for_ms = HOUR_MS;
        let notices = [
            GiveUpNotice::Limited { for_ms: 1_000 },
            GiveUpNotice::Unavailable { for_ms },
            GiveUpNotice::AccountRefused { for_ms: 3 * for_ms },
        ];
        let texts = |language| notices.map(|notice| notice.text(language)).join("\n");
        insta::assert_snapshot!(texts(Language::German), @r"
        Das ließ sich leider nicht beantworten: Mein Modell nimmt seit 1 Sekunde keine Fragen mehr an. Ich versuche es nicht weiter; bitte später noch einmal fragen.
        Das ließ sich leider nicht beantworten: Mein Modell ist seit 60 Minuten nicht erreichbar. Ich versuche es nicht weiter; bitte später noch einmal fragen.
        Das ließ sich leider nicht beantworten: Mein Modell lehnt mein Konto seit 3 Stunden ab. Ich versuche es nicht weiter; bitte später noch einmal fragen.
        ");
        insta::assert_snapshot!(texts(Language::English), @r"
        Sorry, I could not answer this: for 1 second the model I use took no more questions. I have stopped trying; please ask again later.
        Sorry, I could not answer this: for 60 minutes the model I use could not be reached. I have stopped trying; please ask again later.
        Sorry, I could not answer this: for 3 hours the model I use did not accept my account. I have stopped trying; please ask again later.
        ");
    }
}
