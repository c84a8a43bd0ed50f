//! Whether the rooms and the store show what is promised. Pure.

use std::collections::BTreeMap;

use super::networks::{NetworkCalls, count};
use super::plans::{SimSchedule, is_of_plans, judge_plans};
use super::script::{BEGINNING_MS, DIRECT_ROOM};
use super::words::{FRESH_START, SimWord, answered_lines, said, words};
use super::world::{SimArrival, SimMessage, SimQuestion, World, is_unfinished};
use crate::plan::Mode;
use vocative_core::turn::{ParticipantKind, Turn, TurnKind, Visibility};
use vocative_store::contract::StoreStatus;

/// The longest time from the answer of a post to the end of the process that counts as "on its way": one
/// commit.
const WINDOW_MAX_MS: i64 = 1_000;

/// What is in the store at the end.
pub(super) struct StoredEnd {
    pub(super) status: StoreStatus,
    /// The turns of each conversation, in the room's order.
    pub(super) conversations: Vec<Vec<Turn>>,
    /// What people planned.
    pub(super) planned: Vec<SimSchedule>,
}

/// The result of one or many seeds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SimTally {
    pub(super) seeds: usize,
    pub(super) messages: usize,
    pub(super) questions: usize,
    pub(super) answered: usize,
    pub(super) lost: usize,
    pub(super) doubled: usize,
    /// Answers posted twice without an excuse.
    pub(super) doubled_outside: usize,
    /// Posts whose text was to be replaced, and that should be gone.
    pub(super) left: usize,
    pub(super) held: usize,
    pub(super) kills: usize,
    pub(super) stops: usize,
    pub(super) faults: usize,
    pub(super) virtual_ms: i64,
    /// Reminders that were asked for, and those that were said.
    pub(super) reminders: usize,
    pub(super) reminded: usize,
    /// What networks did.
    pub(super) calls: NetworkCalls,
    /// What is wrong, in words.
    pub(super) wrong: Vec<String>,
}

impl SimTally {
    pub(super) fn add(&mut self, other: &Self) {
        self.seeds += other.seeds;
        self.messages += other.messages;
        self.questions += other.questions;
        self.answered += other.answered;
        self.lost += other.lost;
        self.doubled += other.doubled;
        self.doubled_outside += other.doubled_outside;
        self.left += other.left;
        self.held += other.held;
        self.kills += other.kills;
        self.stops += other.stops;
        self.faults += other.faults;
        self.virtual_ms += other.virtual_ms;
        self.reminders += other.reminders;
        self.reminded += other.reminded;
        self.calls.add(other.calls);
        self.wrong.extend(other.wrong.iter().cloned());
    }
}

/// Judges a seed.
pub(super) fn judge(world: &mut World, stored: &StoredEnd) -> SimTally {
    let mut tally = SimTally {
        seeds: 1,
        questions: world.questions.len(),
        held: world.held,
        kills: world.kills_ms.len(),
        stops: world.stops,
        faults: world.faults,
        virtual_ms: world.now_ms - BEGINNING_MS,
        wrong: std::mem::take(&mut world.wrong),
        ..SimTally::default()
    };
    for question in &world.questions {
        judge_answer(world, question, &mut tally);
    }
    for (room, messages) in world.rooms.iter().enumerate() {
        judge_posts(room, messages, &mut tally);
        judge_left(world, messages, &mut tally);
    }
    judge_notices(world, &mut tally);
    judge_capture(world, stored, &mut tally);
    judge_replies(world, stored, &mut tally);
    judge_plans(world, &stored.planned, &mut tally);
    count(world, &mut tally);
    judge_rest(&stored.status, world.calls.failed_tasks, &mut tally);
    for wrong in tally.wrong.clone() {
        world.note(format_args!("WRONG  {wrong}"));
    }
    tally
}

/// Checks that every line of an answer is there once, in order, in its place.
fn judge_answer(world: &World, question: &SimQuestion, tally: &mut SimTally) {
    let word = question.word;
    let room = &world.rooms[word.room];
    let mut places = Vec::new();
    let (mut is_doubled, mut is_outside) = (false, false);
    for line in 1..=question.lines() {
        let has_line = |message: &SimMessage| {
            let mut lines = said(&message.text).filter(|it| it.line == Some(line));
            is_of_the_bot(message) && lines.any(|it| it.word == word && it.edits == question.edits)
        };
        let posts: Vec<&SimMessage> = room.iter().filter(|message| has_line(message)).collect();
        // A post that the daemon could not know of could not be changed, so it does not count.
        let is_counted = |message: &&SimMessage| !stays_unknown(world, message);
        let counted: Vec<&SimMessage> = posts.iter().copied().filter(is_counted).collect();
        if counted.is_empty() {
            if went_before_an_edit(world, question) {
                return;
            }
            tally.lost += 1;
            tally.wrong.push(format!("{word}.{line} is not answered"));
            return;
        }
        let is_here = |message: &SimMessage| counted.iter().any(|it| it.id == message.id);
        let here = room.iter().enumerate().filter(|(_, it)| is_here(it));
        places.push(here.map(|(place, _)| place).collect());
        if posts.iter().any(|post| post.thread != question.thread) {
            tally
                .wrong
                .push(format!("{word}.{line} is answered in another thread"));
        }
        if posts.len() > 1 {
            is_doubled = true;
            let is_anew = were_to_change(world, &counted);
            if counted.len() > 1 && !is_excused(world, &posts) && !is_anew {
                is_outside = true;
                tally
                    .wrong
                    .push(format!("{word}.{line} is answered {} times", posts.len()));
            }
        }
    }
    tally.answered += 1;
    tally.doubled += usize::from(is_doubled);
    tally.doubled_outside += usize::from(is_outside);
    if !is_in_order(&places) && !is_decided(world, word) {
        tally
            .wrong
            .push(format!("the parts of {word} are out of order"));
    }
}

/// Whether the lines stand below each other, given the places in which each of them stands. Of a line that was posted
/// twice any copy will do: whether it may be there twice is judged separately.
fn is_in_order(places: &[Vec<usize>]) -> bool {
    let mut last = 0;
    places.iter().all(|places| {
        let next = places.iter().find(|place| **place >= last);
        next.inspect(|place| last = **place).is_some()
    })
}

/// Whether a person decided about a post of this answer: a post that they send again comes after the posts that
/// followed it.
fn is_decided(world: &World, word: SimWord) -> bool {
    let mut decided = world.decided.iter().flat_map(|(text, _)| words(text));
    decided.any(|found| found == word)
}

/// On Telegram the same post may be sent once more if it had arrived but that could not be written down; that includes
/// the text of a placeholder.
fn is_excused(world: &World, posts: &[&SimMessage]) -> bool {
    let mut markers: BTreeMap<Option<&String>, usize> = BTreeMap::new();
    for post in posts {
        *markers.entry(post.marker.as_ref()).or_default() += 1;
    }
    let known = posts.iter().filter(|post| !is_unknown(world, post));
    let is_once_more = markers.values().all(|copies| *copies <= 2);
    world.mode == Mode::TelegramResend && is_once_more && known.count() <= 1
}

/// Whether a life ended between a post's arrival and the time by which the daemon must have written that down: one
/// commit after it was told, or after the stall during that.
fn was_on_its_way(arrival: &SimArrival, world: &World) -> bool {
    let Some(told_at_ms) = arrival.told_at_ms else {
        return true;
    };
    let stalls = world.stalls_ms.iter();
    let written_by_ms = stalls.fold(told_at_ms + WINDOW_MAX_MS, |by_ms, (from_ms, to_ms)| {
        if (told_at_ms..=by_ms).contains(from_ms) {
            by_ms.max(to_ms + WINDOW_MAX_MS)
        } else {
            by_ms
        }
    });
    let mut ends_ms = world.kills_ms.iter().chain(&world.stopped_ms);
    ends_ms.any(|end_ms| (told_at_ms..=written_by_ms).contains(end_ms))
}

fn is_of_the_bot(message: &SimMessage) -> bool {
    message.person.is_none() && !message.is_deleted
}

/// Checks that nothing is left of an unfinished or a replaced answer. On Telegram a post may stay whose arrival the
/// daemon could not know: only known posts can be edited.
fn judge_left(world: &World, messages: &[SimMessage], tally: &mut SimTally) {
    for post in messages.iter().filter(|message| is_of_the_bot(message)) {
        let what = match leftover(world, post) {
            Some(what) if !stays_unknown(world, post) => what,
            _ => continue,
        };
        tally.left += 1;
        let first: String = post.text.chars().take(20).collect();
        tally
            .wrong
            .push(format!("{what} is left in the room: {first}"));
    }
}

/// Which replaced or unfinished text a post still shows, if any.
fn leftover(world: &World, post: &SimMessage) -> Option<&'static str> {
    let is_newest = |word: SimWord, edits: usize| {
        let question = world.questions.iter().find(|it| it.word == word);
        question.is_none_or(|question| question.edits == edits)
    };
    if is_unfinished(&post.text) || post.is_streamed {
        return Some("the beginning of an answer");
    }
    let is_left =
        |word: SimWord, edits: usize| !is_newest(word, edits) && !is_gone(world, word, edits);
    let is_old = said(&post.text).any(|it| it.line.is_some() && is_left(it.word, it.edits));
    is_old.then_some("an answer to an earlier text of its question")
}

/// Whether a post shows a replaced text, and the daemon could not know that it is there.
fn stays_unknown(world: &World, post: &SimMessage) -> bool {
    world.mode != Mode::Slack && leftover(world, post).is_some() && is_unknown(world, post)
}

/// Whether a person confirmed all of these posts but one as posted, and the answer was to be changed, be it in other
/// posts, or one of them is its beginning: their message ids are unknown, so their text is posted anew.
fn were_to_change(world: &World, posts: &[&SimMessage]) -> bool {
    let is_found = |post: &&&SimMessage| {
        let mut found = world.decided.iter().filter(|(_, is_there)| *is_there);
        is_unknown(world, post) && found.any(|(text, _)| *text == post.text)
    };
    let is_here = |post: &&SimMessage, question: &SimQuestion| {
        words(&post.text).any(|word| word.room == question.word.room)
    };
    let mut changed = world.questions.iter().filter(|question| question.edits > 0);
    let is_changed = changed.any(|question| posts.iter().any(|post| is_here(post, question)));
    let mut begun = world.refused_beginnings.iter();
    let is_begun = begun.any(|text| posts.iter().any(|post| text.starts_with(&post.text)));
    (is_changed || is_begun) && posts.iter().filter(is_found).count() + 1 >= posts.len()
}

/// Checks that every fresh start is confirmed once. On Telegram a person decides about posts of unknown outcome by
/// their text, and these all have the same one.
fn judge_notices(world: &World, tally: &mut SimTally) {
    let room = world.rooms[DIRECT_ROOM].iter();
    let notices = room.filter(|it| is_of_the_bot(it) && it.text.starts_with(FRESH_START));
    let mut markers: BTreeMap<Option<&String>, Vec<&SimMessage>> = BTreeMap::new();
    for notice in notices {
        let copies = markers.entry(notice.marker.as_ref()).or_default();
        copies.push(notice);
    }
    let (told, due) = (markers.len(), world.fresh_starts.len());
    let is_enough = told == due || world.mode != Mode::Slack && told < due;
    let is_excused = |copies: &Vec<&SimMessage>| copies.len() == 1 || is_excused(world, copies);
    if !is_enough || !markers.values().all(is_excused) {
        let what = format!("{due} fresh starts were told of {told} times, or one of them twice");
        tally.wrong.push(what);
    }
}

/// Whether the daemon could not know that a post is in its room.
pub(super) fn is_unknown(world: &World, post: &SimMessage) -> bool {
    let arrivals = world.arrivals.iter();
    let mut of_post = arrivals.filter(|arrival| Some(&arrival.marker) == post.marker.as_ref());
    of_post.any(|arrival| was_on_its_way(arrival, world))
}

/// Checks that the bot posts only answers, and none about another room.
fn judge_posts(room: usize, messages: &[SimMessage], tally: &mut SimTally) {
    for post in messages.iter().filter(|message| is_of_the_bot(message)) {
        if let Some(stranger) = words(&post.text).find(|word| word.room != room) {
            tally
                .wrong
                .push(format!("{stranger} was said in room {room}"));
        }
        let is_notice = post.text.starts_with(FRESH_START) || is_of_plans(post);
        if answered_lines(&post.text).next().is_none() && !is_notice {
            tally
                .wrong
                .push(format!("room {room} was told: {}", post.text));
        }
    }
    tally.messages += messages.iter().filter(|it| it.person.is_some()).count();
}

/// Checks that everything people said is one turn with its newest text, in the platform's order.
fn judge_capture(world: &World, stored: &StoredEnd, tally: &mut SimTally) {
    let mut turns: BTreeMap<SimWord, Vec<&Turn>> = BTreeMap::new();
    let mut positions: BTreeMap<SimWord, (i64, i64)> = BTreeMap::new();
    for message in world.rooms.iter().flatten() {
        positions.extend(
            message
                .word
                .map(|word| (word, (message.at_ms, message.ordinal))),
        );
    }
    for conversation in &stored.conversations {
        let mut before = None;
        for turn in conversation.iter().filter(|turn| is_said(turn)) {
            let Some(word) = words(&turn.content).next() else {
                continue;
            };
            turns.entry(word).or_default().push(turn);
            let position = positions.get(&word).copied();
            if position < before {
                tally.wrong.push(format!("{word} is captured out of order"));
            }
            before = position;
        }
    }
    for message in world.rooms.iter().flatten() {
        let Some(word) = message.word else { continue };
        let captured = turns.get(&word).map_or(0, Vec::len);
        let expected = usize::from(!message.is_deleted);
        if captured != expected {
            tally.lost += usize::from(captured < expected);
            tally
                .wrong
                .push(format!("{word} is captured {captured} times"));
        }
        let is_newest = |turn: &&Turn| turn.content == message.text;
        if !turns.get(&word).into_iter().flatten().all(is_newest) {
            tally
                .wrong
                .push(format!("{word} is not captured as it was edited"));
        }
    }
}

fn is_said(turn: &Turn) -> bool {
    turn.kind == TurnKind::Message
        && turn.participant.kind == ParticipantKind::User
        && turn.visibility == Visibility::Room
}

/// Whether the answer to a question after that many edits was made from a message that was deleted: it was deleted with
/// it, and the text of its posts is not known any more. A message that a search found and that was deleted before the
/// model saw it counts as well.
fn is_gone(world: &World, question: SimWord, edits: usize) -> bool {
    let gone = world.rooms.iter().flatten().filter(|it| it.is_deleted);
    gone.filter_map(|it| it.word).any(|word| {
        let may_be_found =
            word.room == question.room && world.searched.contains(&(question, edits));
        may_be_found || world.found.contains(&(question, edits, word))
    })
}

/// Whether an answer to an earlier text of a question is gone, so that there is none to replace.
fn went_before_an_edit(world: &World, question: &SimQuestion) -> bool {
    (0..question.edits).any(|edits| is_gone(world, question.word, edits))
}

/// Checks that each question is in one reply.
fn judge_replies(world: &World, stored: &StoredEnd, tally: &mut SimTally) {
    let mut replies: BTreeMap<(SimWord, usize), usize> = BTreeMap::new();
    let turns = stored.conversations.iter().flatten();
    for turn in turns.filter(|turn| turn.participant.kind == ParticipantKind::Agent) {
        for it in said(&turn.content).filter(|it| it.line == Some(1)) {
            let count = replies.entry((it.word, it.edits)).or_default();
            *count += usize::from(turn.kind == TurnKind::Message);
        }
    }
    for question in &world.questions {
        let word = question.word;
        let counts = (0..=question.edits).map(|edits| replies.get(&(word, edits)).copied());
        let counts: Vec<usize> = counts.map(Option::unwrap_or_default).collect();
        // An answer made from a deleted message is deleted with it.
        let is_any_gone = (0..=question.edits).any(|edits| is_gone(world, word, edits));
        if counts.iter().sum::<usize>() == 0 && is_any_gone {
            continue;
        }
        // The newest text of the question has one reply, the earlier ones have none.
        if counts.last() != Some(&1) || counts.iter().sum::<usize>() != 1 {
            tally.wrong.push(format!("{word} has {counts:?} replies"));
        }
    }
}

/// Checks that nothing is left half done, and nothing is given up except tasks that failed for good.
fn judge_rest(status: &StoreStatus, failed_tasks: usize, tally: &mut SimTally) {
    let given_up = usize::try_from(status.runs_dead).unwrap_or(usize::MAX);
    let left = [
        ("runs queued", status.runs_queued),
        ("runs leased", status.runs_leased),
        ("runs held", status.runs_held),
        ("runs waiting", status.runs_waiting),
        ("approvals open", status.approvals_open),
        ("posts pending", status.posts_pending),
        ("posts unknown", status.posts_unknown),
        ("posts held", status.posts_held),
        ("events untranslated", status.raw_stubs),
    ];
    for (what, count) in left.into_iter().filter(|(_, count)| *count > 0) {
        tally.wrong.push(format!("{count} {what} are left"));
    }
    if given_up > failed_tasks {
        let what = format!("{given_up} runs are dead, {failed_tasks} tasks failed for good");
        tally.wrong.push(what);
    }
    for account in &status.accounts {
        if account.unread_from_ms.is_some() {
            tally.wrong.push("something is still unread".to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_in_order_if_some_copies_of_them_are() {
        let in_order = |places: &[&[usize]]| {
            let places: Vec<Vec<usize>> = places.iter().map(|it| it.to_vec()).collect();
            is_in_order(&places)
        };
        assert!(in_order(&[&[0], &[0], &[2]]));
        assert!(in_order(&[&[3], &[1, 4], &[2, 5]]));
        assert!(!in_order(&[&[3], &[1], &[5]]));
        assert!(!in_order(&[&[0], &[1, 4], &[2], &[1]]));
    }
}
