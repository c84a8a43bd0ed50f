//! Which calls of a step are made at the same time.

use std::ops::Range;

use crate::tool_call::CallRule;

/// The most calls of a step that are made at the same time.
pub const AT_ONCE_MAX: usize = 4;

/// The calls of a step in waves: one begins when all calls of the one before it are over. Neighbours that are
/// repeatable are made side by side; a call that acts has a wave of its own, so that what is read before it and
/// after it is what the model's order says.
#[must_use]
pub fn waves(rules: &[CallRule]) -> Vec<Range<usize>> {
    let mut waves: Vec<Range<usize>> = Vec::new();
    for (n, rule) in rules.iter().enumerate() {
        let joins = |wave: &&mut Range<usize>| {
            *rule == CallRule::Repeatable
                && rules[wave.start] == CallRule::Repeatable
                && wave.len() < AT_ONCE_MAX
        };
        match waves.last_mut().filter(joins) {
            Some(wave) => wave.end = n + 1,
            None => waves.push(n..n + 1),
        }
    }
    waves
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_is_made_alone_and_in_order() {
        use CallRule::{Keyed, Once, Repeatable};
        type Case = (&'static [CallRule], &'static [(usize, usize)]);
        let cases: [Case; 6] = [
            (&[], &[]),
            (&[Once], &[(0, 1)]),
            (&[Repeatable; 3], &[(0, 3)]),
            (&[Repeatable; 9], &[(0, 4), (4, 8), (8, 9)]),
            (
                &[Repeatable, Repeatable, Once, Repeatable],
                &[(0, 2), (2, 3), (3, 4)],
            ),
            (&[Once, Keyed, Keyed], &[(0, 1), (1, 2), (2, 3)]),
        ];
        for (rules, expected) in cases {
            let waves: Vec<(usize, usize)> = waves(rules)
                .into_iter()
                .map(|wave| (wave.start, wave.end))
                .collect();
            assert_eq!(waves, expected, "{rules:?}");
        }
    }
}
