//! What tokens cost. Amounts are counted in millionths of the currency that prices are given in.

use crate::run::Usage;

/// Prices of a model, in a currency's units for a million tokens; 0 = nothing, or not known.
///
/// A price for a million tokens in units is a price for one token in millionths of a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Prices {
    /// Prompt tokens that are neither read from nor written to the provider's cache.
    pub input: f64,
    /// Prompt tokens that are read from the provider's cache.
    pub cached: f64,
    /// Prompt tokens that are written to the provider's cache.
    pub written: f64,
    /// Answer tokens.
    pub output: f64,
}

impl Prices {
    /// What these tokens cost, in millionths, rounded up.
    #[must_use]
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast to an integer stays within its bounds"
    )]
    pub fn cost_micros(&self, usage: Usage) -> u64 {
        let cost = usage.uncached_tokens() as f64 * self.input
            + usage.cache_read_tokens as f64 * self.cached
            + usage.cache_write_tokens as f64 * self.written
            + usage.completion_tokens as f64 * self.output;
        cost.ceil() as u64
    }
}

/// What was spent since the start of the UTC day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Tokens.
    pub tokens: u64,
    /// What they cost, in millionths of the currency of the prices.
    pub cost_micros: u64,
}

/// An amount in millionths, as people read it: two decimals, four for amounts below 0.01.
#[must_use]
pub fn shown_amount(micros: u64) -> String {
    let (units, rest) = (micros / 1_000_000, micros % 1_000_000);
    match micros {
        0 => "0.00".to_owned(),
        1..10_000 => format!("{units}.{:04}", rest.div_ceil(100)),
        _ => {
            let cents = rest / 10_000;
            format!("{units}.{cents:02}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_tokens_has_its_price() {
        let prices = Prices {
            input: 3.0,
            cached: 0.3,
            written: 3.75,
            output: 15.0,
        };
        let usage =
            |prompt_tokens, cache_read_tokens, cache_write_tokens, completion_tokens| Usage {
                prompt_tokens,
                cache_read_tokens,
                cache_write_tokens,
                completion_tokens,
            };
        let table = [
            (usage(1_000_000, 0, 0, 0), 3_000_000),
            (usage(1_000_000, 1_000_000, 0, 0), 300_000),
            (usage(1_000_000, 600_000, 400_000, 0), 1_680_000),
            (usage(0, 0, 0, 1_000), 15_000),
            (usage(0, 0, 0, 0), 0),
            // A provider that reports more tokens from its cache than the prompt has.
            (usage(10, 1_000_000, 0, 0), 300_000),
            (usage(u64::MAX, 0, 0, u64::MAX), u64::MAX),
        ];
        for (usage, expected) in table {
            assert_eq!(prices.cost_micros(usage), expected, "{usage:?}");
        }
        assert_eq!(Prices::default().cost_micros(usage(9, 0, 0, 9)), 0);
    }

    #[test]
    fn amounts_read_as_money() {
        let table = [
            (0, "0.00"),
            (1, "0.0001"),
            (1_234, "0.0013"),
            (12_345, "0.01"),
            (1_999_999, "1.99"),
            (12_000_000, "12.00"),
        ];
        for (micros, expected) in table {
            assert_eq!(shown_amount(micros), expected);
        }
    }
}
