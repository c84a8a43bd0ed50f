//! What one run may use, and whether it may ask its model once more.

use crate::price::shown_amount;
use crate::words::Language;

/// How many attempts of a run that ended with a kill of the process do not count. Further ones count as any other, so
/// that a run that kills its process each time comes to an end.
pub const INTERRUPTIONS_FREE: u32 = 20;

/// What one run may use, all its attempts together. 0 means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunBudget {
    /// Tokens of all calls of models, prompts and answers together.
    pub tokens: u64,
    /// What they may cost, in millionths of the currency of the prices.
    pub cost_micros: u64,
    /// How long it may be worked on, in milliseconds: under a lease, waits for people and for models that rest not
    /// counted.
    pub worked_ms: u64,
}

/// What a run has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunUse {
    /// Tokens.
    pub tokens: u64,
    /// What they cost, in millionths of the currency of the prices.
    pub cost_micros: u64,
    /// How long it was worked on, in milliseconds.
    pub worked_ms: u64,
}

impl RunUse {
    /// What both have used.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            cost_micros: self.cost_micros.saturating_add(other.cost_micros),
            worked_ms: self.worked_ms.saturating_add(other.worked_ms),
        }
    }
}

/// What the next call of a model may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NextRequest {
    /// Tokens of its prompt, estimated.
    pub prompt_tokens: u64,
    /// The most tokens of its answer.
    pub answer_max_tokens: u64,
    /// The most that it may cost, in millionths of the currency of the prices.
    pub most_micros: u64,
}

/// Which part of its budget a run has used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunUsedUp {
    /// Its tokens: there is no room for one more prompt.
    Tokens {
        /// What it may use.
        max: u64,
    },
    /// Its money: one more call could cost more than what is left.
    Cost {
        /// What it may cost, in millionths of the currency of the prices.
        max_micros: u64,
    },
    /// Its time.
    Time {
        /// How long it may be worked on, in milliseconds.
        max_ms: u64,
    },
}

impl RunBudget {
    /// The most tokens that the answer to the next call may have, or what is used up, so that the call is not made.
    ///
    /// # Errors
    /// [`RunUsedUp`], the first of time, money and tokens.
    pub fn next(&self, used: RunUse, next: NextRequest) -> Result<u64, RunUsedUp> {
        if self.worked_ms > 0 && used.worked_ms >= self.worked_ms {
            return Err(RunUsedUp::Time {
                max_ms: self.worked_ms,
            });
        }
        let cost = used.cost_micros.saturating_add(next.most_micros);
        if self.cost_micros > 0 && next.most_micros > 0 && cost > self.cost_micros {
            return Err(RunUsedUp::Cost {
                max_micros: self.cost_micros,
            });
        }
        if self.tokens == 0 {
            return Ok(next.answer_max_tokens);
        }
        let left = self.tokens.saturating_sub(used.tokens);
        match left.saturating_sub(next.prompt_tokens) {
            0 => Err(RunUsedUp::Tokens { max: self.tokens }),
            left => Ok(left.min(next.answer_max_tokens)),
        }
    }

    /// What is left of the budget for a run itself once the runs that it started have used something.
    #[must_use]
    pub fn without(self, used: RunUse) -> Self {
        let left = |limit: u64, used: u64| match limit {
            0 => 0,
            // 0 would mean no limit.
            limit => limit.saturating_sub(used).max(1),
        };
        Self {
            tokens: left(self.tokens, used.tokens),
            cost_micros: left(self.cost_micros, used.cost_micros),
            worked_ms: left(self.worked_ms, used.worked_ms),
        }
    }

    /// The narrower of two.
    #[must_use]
    pub fn within(self, other: Self) -> Self {
        let narrower = |one: u64, other: u64| match (one, other) {
            (0, limit) | (limit, 0) => limit,
            (one, other) => one.min(other),
        };
        Self {
            tokens: narrower(self.tokens, other.tokens),
            cost_micros: narrower(self.cost_micros, other.cost_micros),
            worked_ms: narrower(self.worked_ms, other.worked_ms),
        }
    }

    /// How long it may be worked on still, in milliseconds; `None` = as long as it takes.
    #[must_use]
    pub fn left_ms(&self, worked_ms: u64) -> Option<u64> {
        (self.worked_ms > 0).then(|| self.worked_ms.saturating_sub(worked_ms))
    }
}

impl RunUsedUp {
    /// The words with which people are told; `currency` = `limits.currency`.
    #[must_use]
    pub fn text(self, currency: &str, language: Language) -> String {
        match self {
            Self::Tokens { max } => language.run_tokens_used_up(max),
            Self::Cost { max_micros } => {
                language.run_cost_used_up(shown_amount(max_micros), currency)
            }
            Self::Time { max_ms } => language.run_time_used_up(max_ms.div_ceil(1_000)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: RunBudget = RunBudget {
        tokens: 10_000,
        cost_micros: 500_000,
        worked_ms: 60_000,
    };
    const NEXT: NextRequest = NextRequest {
        prompt_tokens: 2_000,
        answer_max_tokens: 1_000,
        most_micros: 100_000,
    };

    #[test]
    fn a_call_is_made_as_long_as_all_of_the_budget_has_room_for_it() {
        let (tokens, cost, time) = (
            Err(RunUsedUp::Tokens { max: 10_000 }),
            Err(RunUsedUp::Cost {
                max_micros: 500_000,
            }),
            Err(RunUsedUp::Time { max_ms: 60_000 }),
        );
        let table = [
            ((0, 0, 0), Ok(1_000)),
            ((7_000, 400_000, 59_999), Ok(1_000)),
            // The answer is limited to what is left.
            ((7_500, 0, 0), Ok(500)),
            ((8_000, 0, 0), tokens),
            ((u64::MAX, 0, 0), tokens),
            ((0, 400_001, 0), cost),
            ((0, u64::MAX, 0), cost),
            ((0, 0, 60_000), time),
            ((u64::MAX, u64::MAX, u64::MAX), time),
        ];
        for ((tokens, cost_micros, worked_ms), expected) in table {
            let used = RunUse {
                tokens,
                cost_micros,
                worked_ms,
            };
            assert_eq!(BUDGET.next(used, NEXT), expected, "{used:?}");
            assert_eq!(RunBudget::default().next(used, NEXT), Ok(1_000), "{used:?}");
        }
        // A call that costs nothing is not refused for its cost.
        let spent = RunUse {
            cost_micros: 500_000,
            ..RunUse::default()
        };
        let free = NextRequest {
            most_micros: 0,
            ..NEXT
        };
        assert_eq!(BUDGET.next(spent, free), Ok(1_000));
        assert_eq!(BUDGET.left_ms(59_000), Some(1_000));
        assert_eq!(BUDGET.left_ms(61_000), Some(0));
        assert_eq!(RunBudget::default().left_ms(1), None);
    }

    #[test]
    fn what_others_used_is_gone_and_the_narrower_limit_holds() {
        let used = RunUse {
            tokens: 9_000,
            cost_micros: 600_000,
            worked_ms: 1,
        };
        let left = RunBudget {
            tokens: 1_000,
            cost_micros: 1,
            worked_ms: 59_999,
        };
        assert_eq!(BUDGET.without(used), left);
        assert_eq!(RunBudget::default().without(used), RunBudget::default());
        assert_eq!(BUDGET.within(left), left);
        assert_eq!(RunBudget::default().within(left), left);
        assert_eq!(left.within(RunBudget::default()), left);
    }

    #[test]
    fn people_are_told_what_is_used_up() {
        let used_up = [
            RunUsedUp::Tokens { max: 10_000 },
            RunUsedUp::Cost {
                max_micros: 500_000,
            },
            RunUsedUp::Time { max_ms: 60_000 },
        ];
        let texts: Vec<String> = used_up
            .iter()
            .map(|it| it.text("USD", Language::English))
            .collect();
        insta::assert_snapshot!(texts.join("\n"), @r"
        I stopped before I had an answer: the 10000 tokens that I may use on one question are used up. Please ask again, perhaps for less at once.
        I stopped before I had an answer: the 0.50 USD that I may spend on one question are used up. Please ask again, perhaps for less at once.
        I stopped before I had an answer: the 60 seconds that I may work on one question are used up. Please ask again, perhaps for less at once.
        ");
    }
}
