//! The turns of a sent prompt as its row holds them: packed, because a prompt has hundreds.

use uuid::Uuid;

use vocative_core::history::HistoryRole;
use vocative_core::ids::TurnId;
use vocative_core::sent::SentTurn;

/// The roles by their stored number; a new one is added at the end.
const ROLES: [HistoryRole; 8] = [
    HistoryRole::Kept,
    HistoryRole::RepliedTo,
    HistoryRole::Root,
    HistoryRole::Parent,
    HistoryRole::Ambient,
    HistoryRole::Trigger,
    HistoryRole::ThreadAnswer,
    HistoryRole::Recalled,
];
/// A turn's id, the number of its role, its revision.
const TURN_BYTES: usize = 16 + 1 + 4;
/// A question's id and its answer's; zeros for none.
const ANSWER_BYTES: usize = 16 + 16;

/// The turns of a prompt as they are stored.
pub(crate) fn packed_turns(turns: &[SentTurn]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(turns.len() * TURN_BYTES);
    for sent in turns {
        let role = ROLES.iter().position(|role| *role == sent.role);
        let role = role.and_then(|role| u8::try_from(role).ok());
        packed.extend(sent.turn.0.as_bytes());
        packed.push(role.expect("every role has a number"));
        packed.extend(sent.revision.to_be_bytes());
    }
    packed
}

/// The turns of a record.
pub(crate) fn recorded_turns(packed: &[u8]) -> Vec<TurnId> {
    unpacked_turns(packed).map(|sent| sent.turn).collect()
}

/// The turns of a record that were found without being asked for, in its order.
pub(crate) fn recalled_turns(packed: &[u8]) -> Vec<TurnId> {
    let recalled = unpacked_turns(packed).filter(|sent| sent.role == HistoryRole::Recalled);
    recalled.map(|sent| sent.turn).collect()
}

/// The turns in packed form, unpacked. An incomplete one at the end is left out.
pub(crate) fn unpacked_turns(packed: &[u8]) -> impl Iterator<Item = SentTurn> {
    packed.chunks_exact(TURN_BYTES).filter_map(unpacked_turn)
}

fn unpacked_turn(packed: &[u8]) -> Option<SentTurn> {
    let (id, rest) = packed.split_at_checked(16)?;
    let (role, revision) = rest.split_first()?;
    Some(SentTurn {
        turn: TurnId(Uuid::from_slice(id).ok()?),
        role: *ROLES.get(usize::from(*role))?,
        revision: u32::from_be_bytes(revision.try_into().ok()?),
    })
}

/// Questions and their answers as they are stored.
pub(crate) fn packed_answers(answers: &[(TurnId, Option<TurnId>)]) -> Vec<u8> {
    let of = |(question, answer): &(TurnId, Option<TurnId>)| {
        let answer = answer.map_or(Uuid::nil(), |answer| answer.0);
        [question.0.into_bytes(), answer.into_bytes()].concat()
    };
    answers.iter().flat_map(of).collect()
}

/// Questions and their answers, unpacked.
pub(crate) fn unpacked_answers(packed: &[u8]) -> impl Iterator<Item = (TurnId, Option<TurnId>)> {
    packed
        .chunks_exact(ANSWER_BYTES)
        .filter_map(unpacked_answer)
}

fn unpacked_answer(packed: &[u8]) -> Option<(TurnId, Option<TurnId>)> {
    let (question, answer) = packed.split_at_checked(16)?;
    let answer = Uuid::from_slice(answer).ok()?;
    let question = TurnId(Uuid::from_slice(question).ok()?);
    Some((question, (!answer.is_nil()).then_some(TurnId(answer))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::new_id::NewId as _;

    #[test]
    fn roles_keep_their_numbers() {
        let turns: Vec<SentTurn> = ROLES
            .into_iter()
            .map(|role| SentTurn {
                turn: TurnId::generate(),
                role,
                revision: 7,
            })
            .collect();
        let packed = packed_turns(&turns);
        assert_eq!(packed.len(), turns.len() * TURN_BYTES);
        let again: Vec<_> = unpacked_turns(&packed).collect();
        assert_eq!(again, turns);
    }
}
