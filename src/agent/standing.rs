//! Whether a model may be asked, and by how many runs at once, as its answers and failures show. Pure; times in
//! milliseconds by a clock that never steps.

use crate::llm::ModelError;
use vocative_core::ids::RunId;

/// The first rest of a model that is down, or that is over its limit and gives no waiting time, in milliseconds; it
/// doubles from there.
const REST_FIRST_MS: i64 = 2_000;
const REST_MAX_MS: i64 = 60_000;
/// The longest rest that is accepted from a provider, in milliseconds.
const REST_ASKED_MAX_MS: i64 = 24 * 3_600_000;
/// The first wait before a model whose account was refused is tried again, in milliseconds; it doubles from
/// there.
const PROBE_FIRST_MS: i64 = 60_000;
const PROBE_MAX_MS: i64 = 300_000;

/// The state of one model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ModelStanding {
    /// Why it is not asked, if it rests.
    rest: Option<Rest>,
    /// Runs at once: one after a rest, twice as many with each answer.
    width: usize,
    /// Counts the rests: an answer to a question from before a rest says nothing about that rest.
    epoch: u64,
    /// The last run that it left without an answer, if it has answered no other since.
    unanswered: Option<RunId>,
}

/// Why a model is not asked, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rest {
    /// Its account is refused.
    pub(super) is_held: bool,
    /// What the provider said.
    pub(super) error: ModelError,
    /// At this time one question tries it.
    pub(super) until_ms: i64,
    /// The start of the rest, in milliseconds since the Unix epoch, for people.
    pub(super) since_wall_ms: i64,
    /// Questions that tried it and failed.
    tries: u32,
    is_tried: bool,
}

impl Rest {
    /// What the provider said, in words.
    pub(super) fn reason(&self) -> String {
        match &self.error {
            ModelError::AccountRefused { reason } => reason.clone(),
            ModelError::Unavailable { cause } => cause.clone(),
            ModelError::RetryAfter { .. } => "it is over its limit".to_owned(),
            other => other.to_string(),
        }
    }
}

/// A question to a model: which run's, and in which epoch it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ModelQuestion {
    pub(super) run: Option<RunId>,
    pub(super) epoch: u64,
    pub(super) is_try: bool,
}

/// The time by two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BothClocks {
    /// By the clock that never steps.
    pub(super) steady_ms: i64,
    /// Since the Unix epoch, for people.
    pub(super) wall_ms: i64,
}

/// What an answer or a failure changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Nothing changed that must be stored.
    None,
    /// It rests, or goes on resting.
    Rests(Rest),
    /// It may be asked again.
    Ended,
}

impl Default for ModelStanding {
    fn default() -> Self {
        Self {
            rest: None,
            width: usize::MAX,
            epoch: 0,
            unanswered: None,
        }
    }
}

impl ModelStanding {
    /// A model that rested before a restart.
    pub(super) fn resting(
        is_held: bool,
        error: ModelError,
        until_ms: i64,
        since_wall_ms: i64,
    ) -> Self {
        let rest = Rest {
            is_held,
            error,
            until_ms,
            since_wall_ms,
            tries: 0,
            is_tried: false,
        };
        Self {
            rest: Some(rest),
            width: 1,
            ..Self::default()
        }
    }

    /// Why it is not asked, if it is not.
    pub(super) fn rest(&self) -> Option<&Rest> {
        self.rest.as_ref()
    }

    /// Whether one more run may begin.
    pub(super) fn is_open(&self, at_work: usize, max_parallel: usize, steady_ms: i64) -> bool {
        match &self.rest {
            Some(rest) => rest.until_ms <= steady_ms && !rest.is_tried,
            None => at_work < max_parallel.min(self.width),
        }
    }

    /// Whether it rests and may not be tried now: another model is asked in its place.
    pub(super) fn is_refused(&self, steady_ms: i64) -> bool {
        let rest = self.rest.as_ref();
        rest.is_some_and(|rest| rest.until_ms > steady_ms || rest.is_tried)
    }

    /// Notes that a run begins to use it.
    pub(super) fn begin(&mut self, run: Option<RunId>) -> ModelQuestion {
        let epoch = self.epoch;
        let is_try = self.rest.is_some();
        if let Some(rest) = &mut self.rest {
            rest.is_tried = true;
        }
        ModelQuestion { run, epoch, is_try }
    }

    /// Notes that a run was claimed that may not ask it.
    pub(super) fn pass(&self, run: Option<RunId>) -> ModelQuestion {
        ModelQuestion {
            run,
            epoch: self.epoch,
            is_try: false,
        }
    }

    /// Ends a trial that gave neither an answer nor a failure.
    pub(super) fn end_try(&mut self, asked: ModelQuestion) {
        if asked.is_try
            && asked.epoch == self.epoch
            && let Some(rest) = &mut self.rest
        {
            rest.is_tried = false;
        }
    }

    /// The rest that began since a run began to use the model, if any.
    pub(super) fn rests_since(&self, asked: ModelQuestion) -> Option<&Rest> {
        self.rest().filter(|_| asked.epoch != self.epoch)
    }

    /// Notes an answer.
    pub(super) fn answered(&mut self, asked: ModelQuestion) -> Change {
        if asked.epoch != self.epoch {
            return Change::None;
        }
        self.unanswered = None;
        self.width = self.width.saturating_mul(2);
        match self.rest.take() {
            Some(_) => {
                self.epoch += 1;
                self.width = 2;
                Change::Ended
            }
            None => Change::None,
        }
    }

    /// Notes a failure.
    pub(super) fn failed(
        &mut self,
        asked: ModelQuestion,
        error: &ModelError,
        now: BothClocks,
    ) -> Change {
        match error {
            ModelError::AccountRefused { .. } => self.hold(asked, error, now),
            ModelError::RetryAfter { wait_ms } => {
                let wait_ms = wait_ms.map(|ms| i64::try_from(ms).unwrap_or(i64::MAX));
                self.put_to_rest(asked, error, wait_ms.unwrap_or(0), now)
            }
            ModelError::Unavailable { .. } => {
                // A single question that breaks a server is no outage.
                let is_first = self.unanswered.is_none() || self.unanswered == asked.run;
                self.unanswered = asked.run;
                if is_first && self.rest.is_none() {
                    return Change::None;
                }
                self.put_to_rest(asked, error, 0, now)
            }
            // The answer may come from a proxy between us and the provider.
            ModelError::Malformed { .. } if self.rest.is_none() => Change::None,
            ModelError::Malformed { .. } => self.put_to_rest(asked, error, 0, now),
            // The model was reached, and accepted our account.
            ModelError::Refused { .. }
            | ModelError::ContextTooLong { .. }
            | ModelError::Truncated
            | ModelError::Empty => self.answered(asked),
        }
    }

    /// Ends the waiting time of its rest, so that the next question tries it. Returns whether it rested.
    pub(super) fn try_now(&mut self, steady_ms: i64) -> bool {
        let Some(rest) = &mut self.rest else {
            return false;
        };
        rest.until_ms = rest.until_ms.min(steady_ms);
        true
    }

    /// Ends its rest because a person decided so. Returns whether it rested.
    pub(super) fn release(&mut self) -> bool {
        let was_resting = self.rest.take().is_some();
        if was_resting {
            self.epoch += 1;
            self.width = 1;
        }
        was_resting
    }

    fn hold(&mut self, asked: ModelQuestion, error: &ModelError, now: BothClocks) -> Change {
        let held = self.rest.as_ref().filter(|rest| rest.is_held);
        if held.is_some() && asked.epoch != self.epoch {
            return Change::None;
        }
        let tries = held.map_or(0, |rest| rest.tries + 1);
        let wait_ms = doubled(PROBE_FIRST_MS, tries).min(PROBE_MAX_MS);
        let rest = Rest {
            is_held: true,
            error: error.clone(),
            until_ms: now.steady_ms + wait_ms,
            since_wall_ms: held.map_or(now.wall_ms, |rest| rest.since_wall_ms),
            tries,
            is_tried: false,
        };
        self.rest_from(rest)
    }

    fn put_to_rest(
        &mut self,
        asked: ModelQuestion,
        error: &ModelError,
        wait_ms: i64,
        now: BothClocks,
    ) -> Change {
        let asked_ms = wait_ms.clamp(0, REST_ASKED_MAX_MS);
        let Some(before) = &mut self.rest else {
            let until_ms = now.steady_ms + asked_ms.max(REST_FIRST_MS);
            return self.rest_from(Rest {
                is_held: false,
                error: error.clone(),
                until_ms,
                since_wall_ms: now.wall_ms,
                tries: 0,
                is_tried: false,
            });
        };
        let is_late = asked.epoch != self.epoch;
        if is_late {
            // The question was sent before the rest began: only a longer wait changes something.
            let until_ms = now.steady_ms + asked_ms;
            if until_ms <= before.until_ms || before.is_held {
                return Change::None;
            }
            before.until_ms = until_ms;
            return Change::Rests(before.clone());
        }
        let tries = before.tries + 1;
        let (first_ms, most_ms) = match before.is_held {
            true => (PROBE_FIRST_MS, PROBE_MAX_MS),
            false => (REST_FIRST_MS, REST_MAX_MS),
        };
        let wait_ms = asked_ms.max(doubled(first_ms, tries).min(most_ms));
        let rest = Rest {
            until_ms: now.steady_ms + wait_ms,
            error: if before.is_held {
                before.error.clone()
            } else {
                error.clone()
            },
            tries,
            is_tried: false,
            ..before.clone()
        };
        self.rest_from(rest)
    }

    fn rest_from(&mut self, rest: Rest) -> Change {
        self.rest = Some(rest.clone());
        self.width = 1;
        self.epoch += 1;
        Change::Rests(rest)
    }
}

fn doubled(first_ms: i64, times: u32) -> i64 {
    first_ms << times.min(16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocative_store::NewId as _;

    fn at(steady_ms: i64) -> BothClocks {
        BothClocks {
            steady_ms,
            wall_ms: 1_000_000 + steady_ms,
        }
    }

    fn limited(wait_ms: Option<u64>) -> ModelError {
        ModelError::RetryAfter { wait_ms }
    }

    fn down() -> ModelError {
        ModelError::Unavailable {
            cause: "HTTP 503".to_owned(),
        }
    }

    fn unpaid() -> ModelError {
        ModelError::AccountRefused {
            reason: "HTTP 402".to_owned(),
        }
    }

    fn until(change: &Change) -> i64 {
        match change {
            Change::Rests(rest) => rest.until_ms,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_limited_model_rests_as_a_whole_as_long_as_it_says() {
        let mut model = ModelStanding::default();
        let asked: Vec<ModelQuestion> = (0..6).map(|_| model.begin(None)).collect();
        let change = model.failed(asked[0], &limited(Some(300_000)), at(0));
        assert_eq!(until(&change), 300_000);
        // A question from before the rest is told the same; only a longer wait changes something.
        let told = |model: &mut ModelStanding, n: usize, wait_ms, now_ms| {
            model.failed(asked[n], &limited(Some(wait_ms)), at(now_ms))
        };
        assert_eq!(told(&mut model, 1, 299_000, 500), Change::None);
        assert_eq!(until(&told(&mut model, 2, 301_000, 500)), 301_500);
        // An answer to a question from before the rest does not end it.
        assert_eq!(model.answered(asked[3]), Change::None);
        assert!(model.rests_since(asked[4]).is_some());
        assert!(!model.is_open(0, 6, 301_499) && model.is_open(5, 6, 301_500));
    }

    #[test]
    fn after_a_rest_one_question_tries_and_others_follow_by_and_by() {
        let mut model = ModelStanding::default();
        let asked = model.begin(None);
        model.failed(asked, &limited(None), at(0));
        assert!(!model.is_open(0, 6, 1_999) && model.is_open(0, 6, 2_000));
        let tries = model.begin(None);
        assert!(!model.is_open(1, 6, 9_000), "one at a time");
        let change = model.failed(tries, &down(), at(2_000));
        assert_eq!(until(&change), 6_000, "twice as long");
        let tries = model.begin(None);
        assert_eq!(model.answered(tries), Change::Ended);
        let room = |model: &ModelStanding| (0..9).filter(|n| model.is_open(*n, 6, 6_000)).count();
        assert_eq!(room(&model), 2);
        let asked = model.begin(None);
        assert_eq!((model.answered(asked), room(&model)), (Change::None, 4));
        assert_eq!((model.answered(asked), room(&model)), (Change::None, 6));
    }

    #[test]
    fn a_try_that_is_broken_off_leaves_the_next_one_its_turn() {
        let mut model = ModelStanding::resting(true, unpaid(), 0, 0);
        let tries = model.begin(None);
        assert!(!model.is_open(0, 6, 0));
        model.end_try(tries);
        assert!(model.is_open(0, 6, 0));
    }

    #[test]
    fn waits_grow_to_a_maximum() {
        let mut model = ModelStanding::default();
        let asked = model.begin(None);
        let mut now_ms = until(&model.failed(asked, &limited(None), at(0)));
        let mut waits = Vec::new();
        for _ in 0..7 {
            let asked = model.begin(None);
            let next_ms = until(&model.failed(asked, &limited(None), at(now_ms)));
            waits.push(next_ms - now_ms);
            now_ms = next_ms;
        }
        assert_eq!(
            waits,
            [4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]
        );
        let asked = model.begin(None);
        let for_ever = model.failed(asked, &limited(Some(u64::MAX)), at(0));
        assert_eq!(until(&for_ever), REST_ASKED_MAX_MS);
    }

    #[test]
    fn one_question_that_breaks_a_server_is_no_outage() {
        let (poison, other) = (Some(RunId::generate()), Some(RunId::generate()));
        let mut model = ModelStanding::default();
        for _ in 0..5 {
            let asked = model.begin(poison);
            assert_eq!(model.failed(asked, &down(), at(0)), Change::None);
        }
        let asked = model.begin(other);
        assert_eq!(model.answered(asked), Change::None);
        let asked = model.begin(poison);
        assert_eq!(model.failed(asked, &down(), at(0)), Change::None);
        let asked = model.begin(other);
        assert_eq!(until(&model.failed(asked, &down(), at(0))), 2_000);
    }

    #[test]
    fn a_refused_account_is_held_until_a_try_succeeds_or_a_person_says_so() {
        let mut model = ModelStanding::default();
        let (asked, other) = (model.begin(None), model.begin(None));
        assert_eq!(until(&model.failed(asked, &unpaid(), at(0))), 60_000);
        assert_eq!(model.failed(other, &unpaid(), at(10)), Change::None);
        let mut now_ms = 60_000;
        let mut waits = Vec::new();
        for error in [unpaid(), down(), limited(Some(1)), unpaid()] {
            let tries = model.begin(None);
            let next_ms = until(&model.failed(tries, &error, at(now_ms)));
            waits.push(next_ms - now_ms);
            now_ms = next_ms;
        }
        assert_eq!(waits, [120_000, 240_000, 300_000, 300_000]);
        let rest = model.rest().unwrap();
        assert_eq!((rest.is_held, &rest.error), (true, &unpaid()));
        assert_eq!(rest.since_wall_ms, 1_000_000, "since the first refusal");
        let mut released = model.clone();
        assert!(released.release() && released.is_open(0, 6, 0) && !released.is_open(1, 6, 0));
        let tries = model.begin(None);
        let bad_question = ModelError::Refused {
            reason: "HTTP 400".to_owned(),
        };
        // The account is accepted: only this question is refused.
        assert_eq!(
            model.failed(tries, &bad_question, at(now_ms)),
            Change::Ended
        );
    }
}
