//! Whether a post of unknown outcome arrived, where the platform can only be asked about single numbers
//! ([`vocative_contract::probe`]). Pure.
//!
//! Questions go in passes: a control, the numbers that the post may have got, the control once more. The
//! control is a message of which the right answer is known. A pass finds the post, or not; that it is *not*
//! there follows only from a pass up to the number of a message that was sent long after the request: the
//! server may not have heard of higher numbers yet. See `docs/adr/0033-probing.md`.

use std::collections::BTreeSet;

use vocative_contract::probe::{ProbeAnswer, Probed};

use crate::probing::{ProbeFacts, ProbeStage, Probing};

/// The most questions that are asked about one post.
pub const PROBES_MAX: u32 = 64;
/// How many numbers a pass asks about behind the newest message that is known.
const AHEAD: i64 = 4;
/// When further passes come while no message settles the question, in multiples of `look_back_ms` that the
/// post was waited for. The first pass comes at once.
const SILENT_PASSES: [i64; 2] = [1, 4];
/// Waits between passes, in milliseconds; the last one is repeated.
const RESTS_MS: [i64; 3] = [6_000, 12_000, 20_000];
/// How long a pass waits at a time for other posts on their way into the same chat, in milliseconds.
const BUSY_MS: i64 = 1_000;
/// How long a second sender is expected after it was seen, in milliseconds.
const OTHER_SENDER_MS: i64 = 86_400_000;

/// The limits a probe decides with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Messages that the post makes.
    pub wanted: usize,
    /// The longest time after which the platform may still apply a request, in milliseconds.
    pub look_back_ms: i64,
    /// A post stays undecided after this wait without a message that settles it, in milliseconds.
    pub give_up_ms: i64,
    /// For the test of the tests: numbers without a message count as proof that the post is not there.
    pub takes_empty_for_proof: bool,
}

/// What is done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeStep {
    /// Ask about that number.
    Ask(i64),
    /// Look again after this many milliseconds.
    Wait(i64),
    /// It arrived, as these messages.
    Sent(Vec<i64>),
    /// It did not arrive, and will not.
    Absent,
    /// It stays unknown whether the post arrived, and why.
    Undecided(&'static str),
}

/// What is done next, given what was learnt.
#[must_use]
pub fn step(probing: &mut Probing, facts: &ProbeFacts, terms: &Terms) -> ProbeStep {
    if let Some(reason) = obstacle(probing, facts, terms) {
        return ProbeStep::Undecided(reason);
    }
    if facts.is_busy {
        return ProbeStep::Wait(BUSY_MS);
    }
    if probing.stage == ProbeStage::Resting {
        if !is_pass_due(probing, facts, terms) {
            return rest(probing, terms);
        }
        begin_pass(probing, facts, terms);
    }
    let number = match probing.stage {
        ProbeStage::Numbers => next_number(probing, facts),
        ProbeStage::Resting | ProbeStage::Opening | ProbeStage::Closing => None,
    };
    if probing.stage == ProbeStage::Numbers && number.is_none() {
        probing.stage = ProbeStage::Closing;
    }
    let Some(number) = number.or(control(facts).map(|(number, _)| number)) else {
        return ProbeStep::Undecided(NO_CONTROL);
    };
    if probing.asked >= PROBES_MAX {
        return ProbeStep::Undecided("too many messages came meanwhile to ask about each");
    }
    ProbeStep::Ask(number)
}

/// Notes an answer, and says what follows from it where the pass ends with it.
#[must_use]
pub fn learn(
    probing: &mut Probing,
    facts: &ProbeFacts,
    terms: &Terms,
    number: i64,
    probed: &Probed,
) -> Option<ProbeStep> {
    probing.ended_by_ms = probing.ended_by_ms.or(probed.answered_by_ms);
    if probed.answer == ProbeAnswer::Unclear {
        return Some(ProbeStep::Undecided(
            "an answer says nothing of the message",
        ));
    }
    let expected = control(facts).map(|(_, expected)| expected);
    match probing.stage {
        ProbeStage::Resting => None,
        ProbeStage::Opening | ProbeStage::Closing if Some(probed.answer) != expected => Some(
            ProbeStep::Undecided("of a message that is known the answer is wrong"),
        ),
        ProbeStage::Opening => {
            probing.stage = ProbeStage::Numbers;
            None
        }
        ProbeStage::Numbers => {
            note(probing, facts, number, probed.answer);
            None
        }
        ProbeStage::Closing => {
            probing.stage = ProbeStage::Resting;
            probing.passes += 1;
            outcome(probing, facts, terms)
        }
    }
}

const NO_CONTROL: &str = "there is no message in the chat of which the answer is known";

/// The reason why the question can't be answered at all, if there is one.
fn obstacle(probing: &Probing, facts: &ProbeFacts, terms: &Terms) -> Option<&'static str> {
    let acts_now = |seen_ms: i64| {
        let ended_by_ms = probing.ended_by_ms?;
        (seen_ms.saturating_add(OTHER_SENDER_MS) > ended_by_ms).then_some(())
    };
    if facts.other_sender_ms.and_then(acts_now).is_some() {
        return Some("another program posts as this bot");
    }
    if facts.has_rival {
        return Some("another post of unknown outcome is open in the chat");
    }
    if unclaimed(probing, facts).len() > terms.wanted {
        return Some("more posts of the bot are there than it made");
    }
    control(facts).is_none().then_some(NO_CONTROL)
}

/// Our posts that have no row: one that has a row by now belongs to another entry.
fn unclaimed(probing: &Probing, facts: &ProbeFacts) -> Vec<i64> {
    probing.ours.difference(&facts.known).copied().collect()
}

/// A message of which the right answer is known, and the answer.
fn control(facts: &ProbeFacts) -> Option<(i64, ProbeAnswer)> {
    let own = facts.own.map(|number| (number, ProbeAnswer::Ours));
    own.or(facts.answered.map(|number| (number, ProbeAnswer::NotOurs)))
}

/// The number up to which nothing can be applied any more, if such a message was heard.
fn horizon(probing: &Probing, facts: &ProbeFacts, terms: &Terms) -> Option<i64> {
    let (number, sent_at_ms) = facts.heard?;
    let over_ms = probing.ended_by_ms?.saturating_add(terms.look_back_ms);
    (sent_at_ms >= over_ms).then_some(number)
}

fn is_pass_due(probing: &Probing, facts: &ProbeFacts, terms: &Terms) -> bool {
    let silent = |pass: u32| SILENT_PASSES.get(pass.saturating_sub(1) as usize);
    probing.passes == 0
        || horizon(probing, facts, terms).is_some()
        || silent(probing.passes)
            .is_some_and(|times| probing.waited_ms >= terms.look_back_ms.saturating_mul(*times))
}

fn rest(probing: &mut Probing, terms: &Terms) -> ProbeStep {
    if probing.waited_ms >= terms.give_up_ms {
        return ProbeStep::Undecided(
            "nothing newer was heard in the chats that are numbered with this one",
        );
    }
    let waited = RESTS_MS.iter().scan(0, |sum, rest_ms| {
        *sum += rest_ms;
        Some(*sum)
    });
    let number = waited.filter(|sum| *sum <= probing.waited_ms).count();
    let wait_ms = RESTS_MS[number.min(RESTS_MS.len() - 1)];
    probing.waited_ms = probing.waited_ms.saturating_add(wait_ms);
    ProbeStep::Wait(wait_ms)
}

fn begin_pass(probing: &mut Probing, facts: &ProbeFacts, terms: &Terms) {
    probing.stage = ProbeStage::Opening;
    probing.missed.clear();
    probing.horizon = horizon(probing, facts, terms);
    let known = facts.known.last().copied().unwrap_or(facts.above);
    let heard = facts.heard.map_or(facts.above, |(number, _)| number);
    probing.top = known.max(heard).max(facts.above);
}

/// The next number to ask about: up to the message that settles it, else a few more than are known to be
/// there.
fn next_number(probing: &Probing, facts: &ProbeFacts) -> Option<i64> {
    let newest = |numbers: &BTreeSet<i64>| numbers.last().copied();
    let there = newest(&probing.ours).max(newest(&probing.settled));
    let last = match probing.horizon {
        Some(horizon) => horizon,
        None => probing.top.max(there.unwrap_or(0)).saturating_add(AHEAD),
    };
    let is_open = |number: &i64| {
        !facts.known.contains(number)
            && !probing.ours.contains(number)
            && !probing.settled.contains(number)
            && !probing.missed.contains(number)
    };
    (facts.above.saturating_add(1)..=last).find(is_open)
}

fn note(probing: &mut Probing, facts: &ProbeFacts, number: i64, answer: ProbeAnswer) {
    // The server knows every number below that of a message that it handed on.
    let is_heard_of = facts.heard.is_some_and(|(heard, _)| number < heard);
    match answer {
        ProbeAnswer::Ours => probing.ours.insert(number),
        ProbeAnswer::NotOurs => probing.settled.insert(number),
        ProbeAnswer::NotThere if is_heard_of => probing.settled.insert(number),
        ProbeAnswer::NotThere | ProbeAnswer::Unclear => probing.missed.insert(number),
    };
}

/// What follows from a whole pass.
fn outcome(probing: &Probing, facts: &ProbeFacts, terms: &Terms) -> Option<ProbeStep> {
    let ours = unclaimed(probing, facts);
    if let Some(reason) = obstacle(probing, facts, terms) {
        return Some(ProbeStep::Undecided(reason));
    }
    if ours.len() == terms.wanted {
        return Some(ProbeStep::Sent(ours));
    }
    let is_settled = probing.horizon.is_some();
    match ours.len() {
        0 if is_settled || terms.takes_empty_for_proof => Some(ProbeStep::Absent),
        0 => None,
        _ if is_settled => Some(ProbeStep::Undecided("only a part of it is there")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_MS: i64 = 1_000;
    /// When the request ended.
    const END_MS: i64 = 1_000_000;

    fn terms() -> Terms {
        Terms {
            wanted: 1,
            look_back_ms: 45 * SECOND_MS,
            give_up_ms: 3_600 * SECOND_MS,
            takes_empty_for_proof: false,
        }
    }

    fn facts() -> ProbeFacts {
        ProbeFacts {
            sequence: "account".to_owned(),
            above: 100,
            heard: Some((100, END_MS - 5 * SECOND_MS)),
            known: BTreeSet::new(),
            own: Some(90),
            answered: Some(100),
            has_rival: false,
            is_busy: false,
            other_sender_ms: None,
        }
    }

    /// What a room holds: which of the numbers are ours, which are others', and up to which the server has
    /// heard. Everything else is not there.
    struct Room {
        ours: Vec<i64>,
        others: Vec<i64>,
        heard_up_to: i64,
    }

    impl Room {
        fn of(ours: &[i64], others: &[i64]) -> Self {
            Self {
                ours: [&[90], ours].concat(),
                others: [&[100], others].concat(),
                heard_up_to: i64::MAX,
            }
        }

        fn answer(&self, number: i64) -> Probed {
            let answer = match number {
                _ if number > self.heard_up_to => ProbeAnswer::NotThere,
                _ if self.ours.contains(&number) => ProbeAnswer::Ours,
                _ if self.others.contains(&number) => ProbeAnswer::NotOurs,
                _ => ProbeAnswer::NotThere,
            };
            Probed {
                answer,
                answered_by_ms: Some(END_MS),
            }
        }
    }

    /// Asks until something else is to be done; what, and which numbers were asked about.
    fn ask(
        probing: &mut Probing,
        facts: &ProbeFacts,
        terms: &Terms,
        room: &Room,
    ) -> (ProbeStep, Vec<i64>) {
        let mut asked = Vec::new();
        loop {
            let number = match step(probing, facts, terms) {
                ProbeStep::Ask(number) => number,
                other => return (other, asked),
            };
            probing.asked += 1;
            asked.push(number);
            if let Some(end) = learn(probing, facts, terms, number, &room.answer(number)) {
                return (end, asked);
            }
        }
    }

    fn first_pass(facts: &ProbeFacts, room: &Room) -> (ProbeStep, Vec<i64>) {
        ask(&mut Probing::default(), facts, &terms(), room)
    }

    /// A message of `after_s` seconds after the request's end was heard.
    fn heard(number: i64, after_s: i64) -> ProbeFacts {
        ProbeFacts {
            heard: Some((number, END_MS + after_s * SECOND_MS)),
            known: BTreeSet::from([number]),
            ..facts()
        }
    }

    #[test]
    fn one_post_of_ours_in_no_row_is_the_one_that_was_looked_for() {
        let (step, asked) = first_pass(&facts(), &Room::of(&[101], &[]));
        assert_eq!(step, ProbeStep::Sent(vec![101]));
        assert_eq!(asked, [90, 101, 102, 103, 104, 105, 90]);
        // Others spoke first, in a room that the bot does not hear all of.
        let (step, _) = first_pass(&facts(), &Room::of(&[104], &[101, 102, 103]));
        assert_eq!(step, ProbeStep::Sent(vec![104]));
        // A post that has a row is not asked about, and is not the post in question.
        let known = ProbeFacts {
            known: BTreeSet::from([101, 102]),
            ..facts()
        };
        let (step, asked) = first_pass(&known, &Room::of(&[101, 103], &[102]));
        assert_eq!(step, ProbeStep::Sent(vec![103]));
        assert!(!asked.contains(&101) && !asked.contains(&102), "{asked:?}");
    }

    #[test]
    fn a_post_of_several_messages_is_all_of_them() {
        let album = Terms {
            wanted: 3,
            ..terms()
        };
        let first = |facts: &ProbeFacts, ours: &[i64]| {
            let room = Room::of(ours, &[200]);
            ask(&mut Probing::default(), facts, &album, &room).0
        };
        assert_eq!(
            first(&facts(), &[101, 102, 103]),
            ProbeStep::Sent(vec![101, 102, 103])
        );
        // Two of three parts were found: the third may still come; long afterwards it does not.
        assert!(matches!(first(&facts(), &[101, 102]), ProbeStep::Wait(_)));
        let late = heard(120, 60);
        let room = Room::of(&[101, 102], &[120]);
        let (step, _) = ask(&mut Probing::default(), &late, &album, &room);
        assert_eq!(step, ProbeStep::Undecided("only a part of it is there"));
    }

    #[test]
    fn more_posts_than_it_made_are_somebody_elses_too() {
        let (step, _) = first_pass(&facts(), &Room::of(&[101, 103], &[102]));
        assert_eq!(
            step,
            ProbeStep::Undecided("more posts of the bot are there than it made")
        );
        // One of the messages turns out to belong to another entry.
        let claimed = ProbeFacts {
            known: BTreeSet::from([101]),
            ..facts()
        };
        let mut probing = Probing {
            ours: BTreeSet::from([101, 103]),
            ..Probing::default()
        };
        let room = Room::of(&[101, 103], &[102]);
        let (step, _) = ask(&mut probing, &claimed, &terms(), &room);
        assert_eq!(step, ProbeStep::Sent(vec![103]));
    }

    #[test]
    fn empty_numbers_are_no_proof_whoever_many() {
        // It is there, and the server has not heard of it.
        let lagging = Room {
            heard_up_to: 100,
            ..Room::of(&[101], &[])
        };
        let mut probing = Probing::default();
        let mut waited_ms = 0;
        let undecided = loop {
            let (step, _) = ask(&mut probing, &facts(), &terms(), &lagging);
            match step {
                ProbeStep::Wait(wait_ms) => waited_ms += wait_ms,
                other => break other,
            }
        };
        assert!(
            matches!(undecided, ProbeStep::Undecided(_)),
            "{undecided:?}"
        );
        assert!(
            (3_600..3_700).contains(&(waited_ms / SECOND_MS)),
            "{waited_ms}"
        );
        assert_eq!((probing.passes, probing.asked), (3, 18));
        let sabotaged = Terms {
            takes_empty_for_proof: true,
            ..terms()
        };
        let (step, _) = ask(&mut Probing::default(), &facts(), &sabotaged, &lagging);
        assert_eq!(step, ProbeStep::Absent);
    }

    #[test]
    fn only_a_message_of_long_after_the_request_proves_that_it_is_absent() {
        // Seconds after the request's end at which a message was sent that was heard; whether that settles it.
        let table = [
            (-5, false),
            (1, false),
            (44, false),
            (45, true),
            (600, true),
        ];
        for (after_s, is_settled) in table {
            let facts = heard(120, after_s);
            let room = Room::of(&[], &[103, 120]);
            let mut probing = Probing::default();
            let (first, asked) = ask(&mut probing, &facts, &terms(), &room);
            // Its end by the platform's time is known from the first answer on.
            assert!(
                matches!(first, ProbeStep::Wait(_)) || is_settled,
                "{after_s}: {first:?}"
            );
            let (step, again) = ask(&mut probing, &facts, &terms(), &room);
            assert_eq!(
                step == ProbeStep::Absent || first == ProbeStep::Absent,
                is_settled,
                "{after_s}: {step:?}"
            );
            // Each number up to it was asked about once.
            let asked: Vec<i64> = asked
                .into_iter()
                .chain(again)
                .filter(|it| *it != 90)
                .collect();
            assert_eq!(asked[..19], (101..120).collect::<Vec<i64>>());
        }
    }

    #[test]
    fn what_arrives_late_is_found_before_it_is_taken_for_absent() {
        let mut probing = Probing::default();
        let (step, _) = ask(&mut probing, &facts(), &terms(), &Room::of(&[], &[]));
        assert!(matches!(step, ProbeStep::Wait(_)));
        let room = Room::of(&[103], &[101, 102, 104]);
        let facts = ProbeFacts {
            known: BTreeSet::from([101, 102, 104]),
            ..heard(104, 50)
        };
        let (step, asked) = ask(&mut probing, &facts, &terms(), &room);
        assert_eq!(step, ProbeStep::Sent(vec![103]));
        assert_eq!(asked, [90, 103, 90]);
    }

    #[test]
    fn an_answer_that_is_wrong_about_a_known_message_makes_all_worthless() {
        let wrong = "of a message that is known the answer is wrong";
        // The newest post of ours was deleted; or the platform answers anything at all.
        let room = Room {
            ours: vec![101],
            ..Room::of(&[], &[])
        };
        assert_eq!(first_pass(&facts(), &room).0, ProbeStep::Undecided(wrong));
        let none = ProbeFacts {
            own: None,
            ..facts()
        };
        let (step, asked) = first_pass(&none, &Room::of(&[101], &[]));
        assert_eq!((step, asked[0]), (ProbeStep::Sent(vec![101]), 100));
        let everything_is_ours = Room::of(&[100, 101], &[]);
        assert_eq!(
            first_pass(&none, &everything_is_ours).0,
            ProbeStep::Undecided(wrong)
        );
        let nothing = ProbeFacts {
            answered: None,
            ..none
        };
        assert_eq!(
            first_pass(&nothing, &Room::of(&[101], &[])).0,
            ProbeStep::Undecided(NO_CONTROL)
        );
        // The control after the numbers fails, too.
        let mut probing = Probing::default();
        for _ in 0..6 {
            let ProbeStep::Ask(number) = step_of(&mut probing) else {
                panic!("{probing:?}");
            };
            let answer = Room::of(&[101], &[]).answer(number);
            assert_eq!(
                learn(&mut probing, &facts(), &terms(), number, &answer),
                None
            );
        }
        let gone = Probed {
            answer: ProbeAnswer::NotThere,
            answered_by_ms: None,
        };
        let ProbeStep::Ask(number) = step_of(&mut probing) else {
            panic!("{probing:?}");
        };
        let end = learn(&mut probing, &facts(), &terms(), number, &gone);
        assert_eq!(end, Some(ProbeStep::Undecided(wrong)));
    }

    fn step_of(probing: &mut Probing) -> ProbeStep {
        step(probing, &facts(), &terms())
    }

    #[test]
    fn rivals_other_senders_and_unclear_answers_leave_it_undecided() {
        let room = Room::of(&[101], &[]);
        let busy = ProbeFacts {
            is_busy: true,
            ..facts()
        };
        assert_eq!(first_pass(&busy, &room), (ProbeStep::Wait(BUSY_MS), vec![]));
        let rival = ProbeFacts {
            has_rival: true,
            ..facts()
        };
        assert!(matches!(
            first_pass(&rival, &room).0,
            ProbeStep::Undecided(_)
        ));
        for (seen_ms, is_undecided) in [
            (END_MS - 86_400_000, false),
            (END_MS - 86_399_999, true),
            (END_MS + 60_000, true),
        ] {
            let facts = ProbeFacts {
                other_sender_ms: Some(seen_ms),
                ..facts()
            };
            let step = first_pass(&facts, &room).0;
            assert_eq!(
                matches!(step, ProbeStep::Undecided(_)),
                is_undecided,
                "{seen_ms}"
            );
        }
        let unclear = Probed {
            answer: ProbeAnswer::Unclear,
            answered_by_ms: None,
        };
        for stage in ProbeStage::ALL {
            let mut probing = Probing {
                stage,
                ..Probing::default()
            };
            let end = learn(&mut probing, &facts(), &terms(), 101, &unclear);
            assert!(matches!(end, Some(ProbeStep::Undecided(_))), "{stage:?}");
        }
    }

    #[test]
    fn a_post_has_so_many_questions_and_no_more() {
        let busy = heard(100 + i64::from(PROBES_MAX) * 2, 60);
        let mut probing = Probing::default();
        let (step, asked) = ask(&mut probing, &busy, &terms(), &Room::of(&[], &[]));
        assert!(matches!(step, ProbeStep::Undecided(_)), "{step:?}");
        assert_eq!(asked.len(), PROBES_MAX as usize);
    }

    #[test]
    fn without_the_platforms_time_it_is_found_and_never_taken_for_absent() {
        let untimed = |room: &Room, number| Probed {
            answered_by_ms: None,
            ..room.answer(number)
        };
        for (ours, is_found) in [(&[101][..], true), (&[][..], false)] {
            let (room, facts) = (Room::of(ours, &[120]), heard(120, 3_000));
            let mut probing = Probing::default();
            let end = loop {
                match step(&mut probing, &facts, &terms()) {
                    ProbeStep::Ask(number) => {
                        probing.asked += 1;
                        let answer = untimed(&room, number);
                        if let Some(end) = learn(&mut probing, &facts, &terms(), number, &answer) {
                            break end;
                        }
                    }
                    ProbeStep::Wait(_) => {}
                    other => break other,
                }
            };
            assert_eq!(end == ProbeStep::Sent(vec![101]), is_found, "{end:?}");
            assert_ne!(end, ProbeStep::Absent);
        }
    }
}
