//! How much of what was read is shown, where an agent is to see less than all.

use std::cmp::Reverse;
use std::collections::HashSet;

use crate::history::{History, HistoryRole};
use crate::ids::TurnId;
use crate::options::HistoryShare;
use crate::turn::Turn;

/// Reduces a history to what an agent with this share is shown: the questions (without a run the newest turn), what
/// they reply to, and the newest of the other turns, each with its answer from a thread.
pub fn leave_share(history: &mut History, share: HistoryShare) {
    let count = match share {
        HistoryShare::Full => return,
        HistoryShare::Last(count) => count as usize,
        HistoryShare::None => 0,
    };
    let of = |is_wanted: fn(HistoryRole) -> bool| {
        let turns = history.turns.iter();
        turns
            .filter(move |read| is_wanted(read.role))
            .map(|read| &read.turn)
    };
    let mut questions: Vec<&Turn> = of(|role| role == HistoryRole::Trigger).collect();
    if questions.is_empty() {
        let is_said = |role| {
            !matches!(
                role,
                HistoryRole::Ambient | HistoryRole::ThreadAnswer | HistoryRole::Recalled
            )
        };
        questions.extend(of(is_said).max_by_key(|turn| turn.position));
    }
    let mut kept: HashSet<TurnId> = questions
        .iter()
        .flat_map(|turn| [Some(turn.id), turn.reply_to])
        .flatten()
        .collect();
    let is_earlier = |role| {
        matches!(
            role,
            HistoryRole::Kept | HistoryRole::Root | HistoryRole::Parent | HistoryRole::Ambient
        )
    };
    let mut earlier: Vec<&Turn> = of(is_earlier)
        .filter(|turn| !kept.contains(&turn.id))
        .collect();
    earlier.sort_by_key(|turn| Reverse(turn.position));
    earlier.dedup_by_key(|turn| turn.id);
    let newest: Vec<TurnId> = earlier.iter().take(count).map(|turn| turn.id).collect();
    kept.extend(&newest);
    let answers = newest
        .iter()
        .filter_map(|turn| history.thread_answers.get(turn));
    kept.extend(answers.flatten());
    history.turns.retain(|read| kept.contains(&read.turn.id));
    history.recalled.clear();
    history.summary = None;
    history.has_older = false;
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;
    use crate::prompting::testing::{history, said, turn_id};

    fn left(mut read: History, share: HistoryShare) -> Vec<TurnId> {
        leave_share(&mut read, share);
        read.turns.iter().map(|read| read.turn.id).collect()
    }

    #[test]
    fn a_share_is_the_question_what_it_replies_to_and_the_newest_turns_with_their_answers() {
        let mut question = said(6, HistoryRole::Trigger, "alice", "and that?");
        question.turn.reply_to = Some(turn_id(1));
        let mut read = history(vec![
            said(1, HistoryRole::RepliedTo, "bob", "the plan"),
            said(2, HistoryRole::Kept, "alice", "what was it?"),
            said(3, HistoryRole::Kept, "kael", "this"),
            said(4, HistoryRole::Kept, "alice", "in a thread?"),
            said(5, HistoryRole::ThreadAnswer, "kael", "there"),
            question,
        ]);
        read.thread_answers.insert(turn_id(4), Some(turn_id(5)));
        let ids = |numbers: &[u32]| numbers.iter().map(|n| turn_id(*n)).collect::<Vec<_>>();
        for (share, expected) in [
            (HistoryShare::Full, ids(&[1, 2, 3, 4, 5, 6])),
            (HistoryShare::Last(9), ids(&[1, 2, 3, 4, 5, 6])),
            (HistoryShare::Last(2), ids(&[1, 3, 4, 5, 6])),
            (HistoryShare::Last(1), ids(&[1, 4, 5, 6])),
            (HistoryShare::None, ids(&[1, 6])),
        ] {
            assert_eq!(left(read.clone(), share), expected, "{share:?}");
        }
        read.turns.pop();
        assert_eq!(left(read, HistoryShare::None), ids(&[4]), "without a run");
    }

    #[test]
    fn a_share_is_read_from_words() {
        for (text, share) in [
            ("full", HistoryShare::Full),
            ("none", HistoryShare::None),
            (" last  20 ", HistoryShare::Last(20)),
            ("last 1000", HistoryShare::Last(1_000)),
        ] {
            assert_eq!(HistoryShare::parse(text), Ok(share));
        }
        for text in [
            "",
            "last",
            "last 0",
            "last 1001",
            "last -1",
            "20",
            "Full",
            "last 2 3",
        ] {
            assert!(
                HistoryShare::parse(text).unwrap_err().contains("last N"),
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_share_is_larger_than_it_says(
            roles in prop::collection::vec(0_usize..6, 0..40),
            count in 1_u32..50,
        ) {
            let all = [HistoryRole::Kept, HistoryRole::Root, HistoryRole::Parent, HistoryRole::Ambient, HistoryRole::RepliedTo, HistoryRole::Trigger];
            let turns = roles.iter().zip(1..).map(|(role, n)| said(n, all[*role], "alice", "hm"));
            let read = history(turns.collect());
            let questions = roles.iter().filter(|role| **role == 5).count().max(1);
            let left = left(read, HistoryShare::Last(count)).len();
            prop_assert!(left <= questions + count as usize);
            prop_assert!(left > 0 || roles.iter().all(|role| *role == 3));
        }
    }
}
