//! Where the history of a prompt begins.
//!
//! Providers cache the exact beginning of a prompt. A history that loses its oldest turn whenever a new one
//! comes has no beginning in common with the one before; so its start moves in steps. Both rules are pure
//! functions of the turns themselves: nothing is stored, and a restart gives the same bytes.

use sha2::{Digest as _, Sha256};

use crate::ids::TurnId;

/// After a step the history takes at most this part of the room there is, so that the next ones fit behind it.
const FILL_NUMERATOR: usize = 3;
const FILL_DENOMINATOR: usize = 4;

/// Shorter histories begin at their oldest turn.
const LANDMARK_MIN_TURNS: usize = 16;

/// The first turn to keep, by the costs of all turns since the last fixed point (a summary, or where the
/// conversation began) and what the question costs.
///
/// The turns are walked as they came: once they and what is asked need more than `capacity`, the oldest go
/// until three quarters of it are taken. As a later walk begins with the same turns, it makes the same steps.
pub(super) fn start(costs: &[usize], asked: usize, capacity: usize) -> usize {
    let goal = capacity / FILL_DENOMINATOR * FILL_NUMERATOR;
    let (mut start, mut taken) = (0, 0_usize);
    let came = costs.iter().copied().chain([asked]);
    for (n, cost) in came.enumerate() {
        taken = taken.saturating_add(cost);
        if taken <= capacity {
            continue;
        }
        while start < n && taken > goal {
            taken -= costs[start];
            start += 1;
        }
    }
    start
}

/// The turn from which on a history is looked at; `None` = from its oldest turn.
///
/// Where older turns were not read, the oldest that was read is another each time. Then it is the turn of the
/// older half whose id has the least hash, which seldom changes.
pub(super) fn landmark(turns: &[TurnId], has_older: bool) -> Option<usize> {
    if !has_older || turns.len() < LANDMARK_MIN_TURNS {
        return None;
    }
    let older = turns[..turns.len() / 2].iter().enumerate();
    older
        .min_by_key(|(_, turn)| Sha256::digest(turn.0.as_bytes()))
        .map(|(n, _)| n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_stays_until_the_room_is_full_and_then_leaves_a_quarter() {
        let starts: Vec<usize> = (0..=16)
            .map(|turns| start(&vec![10; turns], 10, 100))
            .collect();
        assert_eq!(starts, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8]);
    }

    #[test]
    fn equality_fits_and_the_question_always_stays() {
        assert_eq!(start(&[40, 50], 10, 100), 0);
        assert_eq!(start(&[40, 50], 11, 100), 1);
        assert_eq!(start(&[40, 50], 200, 100), 2);
        assert_eq!(start(&[], 200, 100), 0);
    }

    #[test]
    fn a_window_that_slides_keeps_its_landmark_for_many_turns() {
        let id = |n: u128| TurnId(uuid::Uuid::from_u128(n));
        let all: Vec<_> = (0..400).map(id).collect();
        let starts: Vec<_> = (0..300)
            .filter_map(|at| landmark(&all[at..at + 100], true).map(|n| all[at + n]))
            .collect();
        let moves = starts.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!((5..=20).contains(&moves), "{moves} moves");
        assert_eq!(landmark(&all[..100], false), None);
        assert_eq!(landmark(&all[..8], true), None);
    }
}
