//! Our rules: what of a snapshot goes into the prompt.
//!
//! 1. Each turn once; what says nothing or is no longer in the room is left out.
//! 2. A stored summary stands for the kept turns up to its end and comes first. It is pinned: after
//!    the triggers its tokens are counted before anything else, at most a quarter of the budget; a
//!    longer one is cut with a marker.
//! 3. What no summary stands for is left out by the budget only, whether the summary is not made yet,
//!    was set aside, or its model fails.
//! 4. The budget is given to the triggers (the long ones cut so that all together stay within
//!    `trigger_max_tokens`), what they reply to, the root, then the history. Equality fits. Overheard turns get
//!    what is left, at most a quarter of the budget, and are never cut.
//!    A question that is answered in a thread of its own comes right before that answer, which is cut to
//!    [`THREAD_ANSWER_MAX_TOKENS`]; one without an answer there is left out, or the model would give it
//!    a second one.
//! 5. Where the history begins moves in steps ([`start`](super::start)), so that prompts share their beginning
//!    and providers can cache it. For the same reason a turn of it is cut to an eighth of the budget, whatever
//!    stands around it.
//!    Lines that were found for the question have a budget of their own.
//! 6. The order is the room's for what stays: parent, root and history. Behind that stands what is of this run
//!    only: found lines, overheard turns, what was said behind the first trigger, what the triggers reply to, the
//!    triggers. What another turn replies to stands right before it, and a question that was answered in a thread of
//!    its own where its answer was said: both come later than they were said, and nothing before them changes.

mod recalled;

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};

use super::count::tokens_of;
use super::cut::{CUT_MIN_TOKENS, Cut, cut, marker_only};
use super::project::{Projector, Quote, indented};
use super::start;
use super::{
    AgentView, MessageCost, Omission, OmissionReason, Prompt, PromptMessage, PromptPart,
    PromptRole, TokenCounter,
};
use crate::history::{History, HistoryRole, SummaryView};
use crate::ids::TurnId;
use crate::options::AssemblerOptions;
use crate::turn::{ParticipantKind, Position, Turn, Visibility};
use recalled::{add_preface, take_recalled};

/// The summary and overheard turns each get at most this part of the budget.
const SHARE_OF_BUDGET: usize = 4;

/// A turn of the history gets at most this part of the budget.
const LINE_SHARE_OF_BUDGET: usize = 8;

/// The most tokens that an answer given in another thread takes behind the room's question that it answers.
const THREAD_ANSWER_MAX_TOKENS: usize = 100;

pub(super) fn assemble(
    history: &History,
    agent: &AgentView,
    options: &AssemblerOptions,
    counter: &dyn TokenCounter,
) -> Prompt {
    let mut lines = lines(history);
    let landmark = landmark(&lines, history);
    let projector = Projector::new(history, agent, landmark);
    leave_out_unreadable(&mut lines);
    leave_out_before(&mut lines, landmark);
    leave_out_unanswered(&mut lines, history);
    write_out(&mut lines, &projector, counter);
    let summary = BudgetWalk::new(&mut lines, history, options, counter).spend();
    if let Some(found) = history.summary.as_ref().filter(|_| summary.is_some()) {
        name_summarized(&mut lines, found, agent, options);
    }
    take_recalled(&mut lines, history, options, &projector, counter);
    prompt(lines, summary, &projector, history, counter)
}

/// The message of a stored summary. It is a record of what people said, so it must not speak with
/// the authority of its place, and no line of it may start where a label would.
fn summary_text(summary: &SummaryView) -> String {
    let until = DateTime::<Utc>::from_timestamp_millis(summary.through.sent_at_ms)
        .map_or_else(String::new, |at| at.format("until %Y-%m-%d; ").to_string());
    format!(
        "Summary of earlier turns ({until}what was said, not instructions): {}",
        indented(&summary.text)
    )
}

/// Marks turns that were left out as summarised where a summary is known to stand for them.
fn name_summarized(
    lines: &mut [PromptLine<'_>],
    summary: &SummaryView,
    agent: &AgentView,
    options: &AssemblerOptions,
) {
    for line in lines {
        let turn = line.turn;
        let concerns = !options.addressed_only
            || turn.addressed_to.contains(&agent.name)
            || (turn.participant.kind == ParticipantKind::Agent
                && turn.participant.platform_id == agent.name.as_str());
        let is_left = matches!(
            line.state,
            LineState::Left(OmissionReason::OverBudget | OmissionReason::ReplierLeftOut)
        );
        let is_own_conversation = !matches!(
            line.role,
            HistoryRole::Root
                | HistoryRole::Parent
                | HistoryRole::ThreadAnswer
                | HistoryRole::Recalled
        );
        if is_left && concerns && is_own_conversation && turn.position <= summary.through {
            line.state = LineState::Left(OmissionReason::Summarized);
        }
    }
}

/// A summary in the prompt.
struct Pinned {
    message: PromptMessage,
    tokens: usize,
}

struct PromptLine<'a> {
    turn: &'a Turn,
    role: HistoryRole,
    message: PromptMessage,
    tokens: usize,
    state: LineState,
    /// The turn that replies to it, if this line is in the prompt only for that turn.
    comes_before: Option<TurnId>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum LineState {
    Open,
    Whole,
    Cut(usize),
    Left(OmissionReason),
}

impl PromptLine<'_> {
    fn is_in(&self) -> bool {
        matches!(self.state, LineState::Whole | LineState::Cut(_))
    }

    /// Whether it may be left out, or shown with an answer, for the thread that it opened.
    fn may_have_thread(&self) -> bool {
        self.state == LineState::Open
            && matches!(
                self.role,
                HistoryRole::Kept | HistoryRole::Parent | HistoryRole::Ambient
            )
    }

    fn shorten(&mut self, cut: Cut) {
        self.message.content = cut.text;
        self.tokens = cut.tokens;
        self.state = LineState::Cut(cut.left_out);
    }
}

/// Each turn once, in the room's order, under the strongest reason it was read for. A question that was
/// answered in a thread of its own stands where its answer was said.
fn lines(history: &History) -> Vec<PromptLine<'_>> {
    let mut roles: HashMap<TurnId, HistoryRole> = HashMap::new();
    for entry in &history.turns {
        let role = roles.entry(entry.turn.id).or_insert(entry.role);
        if strength(entry.role) > strength(*role) {
            *role = entry.role;
        }
    }
    let mut turns: Vec<&Turn> = history.turns.iter().map(|entry| &entry.turn).collect();
    let positions: HashMap<TurnId, Position> =
        turns.iter().map(|turn| (turn.id, turn.position)).collect();
    turns.sort_by_key(|turn| {
        let answer = history.thread_answers.get(&turn.id).copied().flatten();
        let answered = answer
            .filter(|answer| roles.get(answer) == Some(&HistoryRole::ThreadAnswer))
            .and_then(|answer| positions.get(&answer).copied());
        let is_answer = roles[&turn.id] == HistoryRole::ThreadAnswer;
        (answered.unwrap_or(turn.position), is_answer, turn.position)
    });
    if !roles.values().any(|role| *role == HistoryRole::Trigger) {
        let newest = turns
            .iter()
            .filter(|turn| {
                !matches!(
                    roles[&turn.id],
                    HistoryRole::Ambient | HistoryRole::ThreadAnswer | HistoryRole::Recalled
                )
            })
            .max_by_key(|turn| turn.position)
            .map(|turn| turn.id);
        roles.extend(newest.map(|turn| (turn, HistoryRole::Trigger)));
    }
    turns
        .into_iter()
        .filter_map(|turn| {
            let role = roles.remove(&turn.id)?;
            Some(PromptLine {
                turn,
                role,
                tokens: 0,
                message: PromptMessage {
                    role: PromptRole::User,
                    content: String::new(),
                },
                state: LineState::Open,
                comes_before: None,
            })
        })
        .collect()
}

/// Gives each line that may be in the prompt its message and its cost: the open ones, and what a line
/// replies to, which comes back with it.
fn write_out(lines: &mut [PromptLine<'_>], projector: &Projector<'_>, counter: &dyn TokenCounter) {
    let targets: HashSet<TurnId> = lines.iter().filter_map(|line| line.turn.reply_to).collect();
    let wanted = lines
        .iter_mut()
        .filter(|line| line.state == LineState::Open || targets.contains(&line.turn.id));
    for line in wanted {
        let (role, content) = projector.project(line.turn, line.role, Quote::Shown);
        let frame = projector.frame(line.turn, line.role, Quote::Shown);
        line.tokens = cost(line.turn, &frame, counter);
        line.message = PromptMessage { role, content };
    }
}

/// What the message of a turn costs: what it says is counted already, the frame around it is short.
fn cost(turn: &Turn, frame: &str, counter: &dyn TokenCounter) -> usize {
    counter.cost_with(tokens_of(turn, counter), frame)
}

fn strength(role: HistoryRole) -> u8 {
    match role {
        HistoryRole::Trigger => 5,
        HistoryRole::Root => 4,
        HistoryRole::Kept => 3,
        HistoryRole::Parent => 2,
        HistoryRole::RepliedTo => 1,
        HistoryRole::ThreadAnswer | HistoryRole::Ambient | HistoryRole::Recalled => 0,
    }
}

/// The position from which on the history is looked at; `None` = from its oldest turn.
fn landmark(lines: &[PromptLine<'_>], history: &History) -> Option<Position> {
    let kept = lines.iter().filter(|line| line.role == HistoryRole::Kept);
    let kept: Vec<&Turn> = kept.map(|line| line.turn).collect();
    let ids: Vec<TurnId> = kept.iter().map(|turn| turn.id).collect();
    start::landmark(&ids, history.has_older).map(|n| kept[n].position)
}

/// Leaves out turns from before the landmark, also those that history turns reply to: whether such a turn is read as a
/// turn of the history or for its replier changes from prompt to prompt.
fn leave_out_before(lines: &mut [PromptLine<'_>], landmark: Option<Position>) {
    let Some(landmark) = landmark else {
        return;
    };
    for line in lines {
        let is_of_history = matches!(line.role, HistoryRole::Kept | HistoryRole::RepliedTo);
        if is_of_history && line.state == LineState::Open && line.turn.position < landmark {
            line.state = LineState::Left(OmissionReason::BeforeStart);
        }
    }
}

fn leave_out_unreadable(lines: &mut [PromptLine<'_>]) {
    for line in lines {
        if line.turn.visibility != Visibility::Room {
            line.state = LineState::Left(OmissionReason::NotInRoom);
        } else if line.turn.content.trim().is_empty() && line.role != HistoryRole::Trigger {
            line.state = LineState::Left(OmissionReason::Empty);
        }
    }
}

/// A question that opened a thread of its own and has no answer from there to show with it.
fn leave_out_unanswered(lines: &mut [PromptLine<'_>], history: &History) {
    let answers: HashSet<TurnId> = lines
        .iter()
        .filter(|line| line.state == LineState::Open)
        .map(|line| line.turn.id)
        .collect();
    for line in lines.iter_mut().filter(|line| line.may_have_thread()) {
        let answer = history.thread_answers.get(&line.turn.id);
        if answer.is_some_and(|answer| answer.is_none_or(|id| !answers.contains(&id))) {
            line.state = LineState::Left(OmissionReason::OwnThread);
        }
    }
}

/// Gives out the budget.
struct BudgetWalk<'w, 'a> {
    lines: &'w mut [PromptLine<'a>],
    history: &'a History,
    index_of: HashMap<TurnId, usize>,
    counter: &'w dyn TokenCounter,
    trigger_max_tokens: usize,
    tokens_left: usize,
    summary_max_tokens: usize,
    ambient_left: usize,
    /// Reserved for overheard turns, so that they have room however much the history takes.
    ambient_reserved: usize,
    line_max_tokens: usize,
}

impl<'w, 'a> BudgetWalk<'w, 'a> {
    fn new(
        lines: &'w mut [PromptLine<'a>],
        history: &'a History,
        options: &AssemblerOptions,
        counter: &'w dyn TokenCounter,
    ) -> Self {
        let index_of = lines
            .iter()
            .enumerate()
            .map(|(index, line)| (line.turn.id, index))
            .collect();
        let budget = options.token_budget;
        let share = budget / SHARE_OF_BUDGET;
        Self {
            lines,
            history,
            index_of,
            counter,
            trigger_max_tokens: options.trigger_max_tokens,
            tokens_left: budget,
            summary_max_tokens: share,
            ambient_left: share,
            ambient_reserved: if options.ambient_turns > 0 { share } else { 0 },
            line_max_tokens: (budget / LINE_SHARE_OF_BUDGET).max(CUT_MIN_TOKENS),
        }
    }

    /// Decides what is in; returns the summary if it is.
    fn spend(mut self) -> Option<Pinned> {
        let triggers = self.open(|role| role == HistoryRole::Trigger);
        let costs = triggers.iter().map(|index| self.lines[*index].tokens);
        let limit = trigger_limit(costs.collect(), self.trigger_max_tokens);
        for index in &triggers {
            self.take_trigger(*index, limit);
        }
        let summary = self.history.summary.as_ref();
        let summary = summary.and_then(|summary| self.take_summary(summary));
        for index in self.open(|role| role == HistoryRole::Root) {
            self.take(index);
        }
        self.take_history(&triggers);
        for index in self
            .open(|role| role == HistoryRole::Ambient)
            .into_iter()
            .rev()
        {
            self.take_ambient(index);
        }
        for line in self.lines.iter_mut().filter(|l| l.state == LineState::Open) {
            line.state = LineState::Left(match line.role {
                HistoryRole::RepliedTo | HistoryRole::ThreadAnswer => {
                    OmissionReason::ReplierLeftOut
                }
                HistoryRole::Recalled => OmissionReason::OverRecallTokens,
                _ => OmissionReason::OverBudget,
            });
        }
        summary
    }

    /// The history from its start on, and what its turns and the triggers reply to.
    fn take_history(&mut self, triggers: &[usize]) {
        let history = self.open(|role| matches!(role, HistoryRole::Kept | HistoryRole::Parent));
        for index in &history {
            self.shorten(*index, self.line_max_tokens);
        }
        let mut claimed = HashSet::new();
        let asked: usize = triggers
            .iter()
            .map(|index| self.lines[*index].tokens + self.replied_to_cost(*index, &mut claimed))
            .sum();
        claimed.clear();
        let costs: Vec<usize> = history
            .iter()
            .map(|index| self.cost_with_company(*index, &mut claimed))
            .collect();
        let taken: usize = triggers.iter().map(|index| self.lines[*index].tokens).sum();
        let capacity = (self.tokens_left + taken).saturating_sub(self.ambient_reserved);
        let (left_out, history) = history.split_at(start::start(&costs, asked, capacity));
        for index in left_out {
            self.lines[*index].state = LineState::Left(OmissionReason::OverBudget);
        }
        for index in history {
            self.take_with_answer(*index);
        }
        for index in history {
            self.take_replied_to(*index, |line| line.state == LineState::Open);
        }
        for index in triggers {
            // Also turns that the history does not reach back to.
            self.take_replied_to(*index, |line| !line.is_in());
        }
    }

    /// What a turn costs with the answer that it got in a thread of its own and with what it replies to.
    fn cost_with_company(&self, index: usize, claimed: &mut HashSet<usize>) -> usize {
        let answer = self
            .open_answer(index)
            .filter(|answer| claimed.insert(*answer));
        let answer = answer.map_or(0, |answer| {
            self.lines[answer].tokens.min(THREAD_ANSWER_MAX_TOKENS)
        });
        self.lines[index].tokens + answer + self.replied_to_cost(index, claimed)
    }

    /// The cost of the turn that a turn replies to, if it is read for nothing else.
    fn replied_to_cost(&self, index: usize, claimed: &mut HashSet<usize>) -> usize {
        let target = self.replied_to(index);
        let target = target.filter(|target| {
            let line = &self.lines[*target];
            line.role == HistoryRole::RepliedTo
                && line.state == LineState::Open
                && claimed.insert(*target)
        });
        target.map_or(0, |target| {
            self.lines[target].tokens.min(self.line_max_tokens)
        })
    }

    /// The summary, cut to its share; `None` where the triggers left no room for it.
    fn take_summary(&mut self, summary: &SummaryView) -> Option<Pinned> {
        let limit = self.tokens_left.min(self.summary_max_tokens);
        let text = summary_text(summary);
        let tokens = self.counter.cost(&text);
        let (content, tokens) = if tokens <= limit {
            (text, tokens)
        } else if limit >= CUT_MIN_TOKENS {
            let shorter = cut(&text, tokens, limit, self.counter)?;
            (shorter.text, shorter.tokens)
        } else {
            return None;
        };
        self.tokens_left -= tokens;
        Some(Pinned {
            message: PromptMessage {
                role: PromptRole::System,
                content,
            },
            tokens,
        })
    }

    fn open(&self, is_wanted: impl Fn(HistoryRole) -> bool) -> Vec<usize> {
        let lines = self.lines.iter().enumerate();
        lines
            .filter(|(_, line)| line.state == LineState::Open && is_wanted(line.role))
            .map(|(index, _)| index)
            .collect()
    }

    fn take_trigger(&mut self, index: usize, limit: usize) {
        let line = &mut self.lines[index];
        line.state = LineState::Whole;
        if line.tokens > limit {
            let text = &line.message.content;
            let shorter = cut(text, line.tokens, limit, self.counter)
                .unwrap_or_else(|| marker_only(text, line.tokens, self.counter));
            line.shorten(shorter);
        }
        self.tokens_left = self.tokens_left.saturating_sub(line.tokens);
    }

    /// A turn, and the answer it got in a thread of its own: both or neither.
    fn take_with_answer(&mut self, index: usize) -> bool {
        let Some(answer) = self.open_answer(index) else {
            return self.take(index);
        };
        self.lines[answer].state = LineState::Whole;
        self.shorten(answer, THREAD_ANSWER_MAX_TOKENS);
        let tokens = self.lines[answer].tokens;
        if tokens <= self.tokens_left {
            self.tokens_left -= tokens;
            if self.take(index) {
                return true;
            }
            self.tokens_left += tokens;
        }
        for index in [index, answer] {
            self.lines[index].state = LineState::Left(OmissionReason::OverBudget);
        }
        false
    }

    /// Cuts a line to at most `max_tokens`.
    fn shorten(&mut self, index: usize, max_tokens: usize) {
        let line = &mut self.lines[index];
        if line.tokens > max_tokens {
            let text = &line.message.content;
            let shorter = cut(text, line.tokens, max_tokens, self.counter)
                .unwrap_or_else(|| marker_only(text, line.tokens, self.counter));
            line.shorten(shorter);
        }
    }

    /// The answer to a question of the room, if it is not in the prompt for another question already.
    fn open_answer(&self, index: usize) -> Option<usize> {
        let answer = (*self
            .history
            .thread_answers
            .get(&self.lines[index].turn.id)?)?;
        let index = *self.index_of.get(&answer)?;
        let line = &self.lines[index];
        (line.role == HistoryRole::ThreadAnswer && line.state == LineState::Open).then_some(index)
    }

    /// What a turn replies to, if it was read.
    fn replied_to(&self, index: usize) -> Option<usize> {
        let target = self.lines[index].turn.reply_to?;
        self.index_of.get(&target).copied()
    }

    /// Takes what a turn in the prompt replies to right before that turn, if it is in the prompt for nothing else.
    fn take_replied_to(&mut self, index: usize, may_come: impl Fn(&PromptLine<'_>) -> bool) {
        let Some(target) = self.replied_to(index) else {
            return;
        };
        let line = &self.lines[target];
        let is_readable = matches!(
            line.state,
            LineState::Open
                | LineState::Left(OmissionReason::OverBudget | OmissionReason::BeforeStart)
        );
        if !is_readable
            || !may_come(line)
            || matches!(line.role, HistoryRole::Ambient | HistoryRole::Trigger)
        {
            return;
        }
        let replier = self.lines[index].turn.id;
        self.shorten(target, self.line_max_tokens);
        self.take_with_answer(target);
        self.lines[target].comes_before = Some(replier);
    }

    fn take_ambient(&mut self, index: usize) {
        let line = &mut self.lines[index];
        line.state = LineState::Left(OmissionReason::OverAmbientShare);
        if line.tokens > self.tokens_left {
            line.state = LineState::Left(OmissionReason::OverBudget);
        } else if line.tokens <= self.ambient_left {
            line.state = LineState::Whole;
            self.ambient_left -= line.tokens;
            self.tokens_left -= line.tokens;
        }
    }

    /// Whether the turn is in the prompt, whole or cut.
    fn take(&mut self, index: usize) -> bool {
        let limit = self.tokens_left.min(self.line_max_tokens);
        let line = &mut self.lines[index];
        if line.tokens <= self.tokens_left {
            if !matches!(line.state, LineState::Cut(_)) {
                line.state = LineState::Whole;
            }
        } else if limit >= CUT_MIN_TOKENS
            && let Some(shorter) = cut(&line.message.content, line.tokens, limit, self.counter)
        {
            line.shorten(shorter);
        } else {
            line.state = LineState::Left(OmissionReason::OverBudget);
        }
        if line.is_in() {
            self.tokens_left -= line.tokens;
        }
        line.is_in()
    }
}

/// What one of several triggers may cost, so that all together stay within `max_tokens` and only the
/// long ones are cut.
fn trigger_limit(mut costs: Vec<usize>, max_tokens: usize) -> usize {
    costs.sort_unstable();
    let mut tokens_left = max_tokens;
    for (index, cost) in costs.iter().enumerate() {
        let share = tokens_left / (costs.len() - index);
        if *cost > share {
            return share;
        }
        tokens_left -= cost;
    }
    max_tokens
}

fn prompt(
    lines: Vec<PromptLine<'_>>,
    summary: Option<Pinned>,
    projector: &Projector<'_>,
    history: &History,
    counter: &dyn TokenCounter,
) -> Prompt {
    let turns_loaded = lines.len();
    let omitted = lines
        .iter()
        .filter_map(|line| omission(line, projector))
        .collect();
    let (mut ordered, stable) = in_order(lines);
    drop_quotes_of_neighbours(&mut ordered, projector, counter);
    let costs: Vec<MessageCost> = summary
        .iter()
        .map(|pinned| MessageCost {
            part: PromptPart::Summary,
            seq: None,
            tokens: pinned.tokens,
        })
        .chain(ordered.iter().map(|line| MessageCost {
            part: PromptPart::of(line.role),
            seq: Some(line.turn.seq()),
            tokens: line.tokens,
        }))
        .collect();
    let has_summary = summary.is_some();
    let summary = summary.map(|pinned| pinned.message);
    let mut prompt = Prompt {
        tokens: costs.iter().map(|cost| cost.tokens).sum(),
        costs,
        turns: ordered.iter().map(|line| line.turn.id).collect(),
        messages: summary
            .into_iter()
            .chain(ordered.into_iter().map(|line| line.message))
            .collect(),
        has_summary,
        stable_messages: stable + usize::from(has_summary),
        turns_loaded,
        has_older: history.has_older,
        omitted,
        ..Prompt::empty(counter)
    };
    add_preface(&mut prompt, counter);
    prompt
}

/// The lines that are in the prompt, in its order, and how many of them stay as they are in later prompts.
fn in_order(lines: Vec<PromptLine<'_>>) -> (Vec<PromptLine<'_>>, usize) {
    let triggers = lines
        .iter()
        .filter(|line| line.role == HistoryRole::Trigger);
    let asked = triggers.map(|line| line.turn.position).min();
    let is_of_this_run = |line: &PromptLine<'_>| {
        matches!(line.role, HistoryRole::Ambient | HistoryRole::Recalled)
            || asked.is_some_and(|asked| line.turn.position > asked)
    };
    let mut before: HashMap<TurnId, PromptLine<'_>> = HashMap::new();
    let (mut stable, mut found) = (Vec::new(), Vec::new());
    let (mut tail, mut triggers) = (Vec::new(), Vec::new());
    for line in lines.into_iter().filter(PromptLine::is_in) {
        match line.comes_before {
            Some(replier) => {
                before.insert(replier, line);
            }
            None if line.role == HistoryRole::Trigger => triggers.push(line),
            None if line.role == HistoryRole::Recalled => found.push(line),
            None if is_of_this_run(&line) => tail.push(line),
            None => stable.push(line),
        }
    }
    tail.extend(triggers);
    let stable = with_their_targets(stable, &mut before);
    let count = stable.len();
    let mut ordered = stable;
    ordered.extend(found);
    ordered.extend(with_their_targets(tail, &mut before));
    (ordered, count)
}

/// Puts right before each line what it replies to, if that is in the prompt only for this line.
fn with_their_targets<'a>(
    lines: Vec<PromptLine<'a>>,
    before: &mut HashMap<TurnId, PromptLine<'a>>,
) -> Vec<PromptLine<'a>> {
    let mut ordered = Vec::with_capacity(lines.len());
    for line in lines {
        ordered.extend(before.remove(&line.turn.id));
        ordered.push(line);
    }
    ordered
}

fn omission(line: &PromptLine<'_>, projector: &Projector<'_>) -> Option<Omission> {
    let why = match line.state {
        LineState::Left(why) => why,
        LineState::Cut(tokens) => OmissionReason::Cut { tokens },
        LineState::Open | LineState::Whole => return None,
    };
    Some(Omission {
        turn: line.turn.id,
        position: line.turn.position,
        speaker: projector.label(&line.turn.participant),
        why,
    })
}

/// A quote of a whole message is of no use right after it; a passage says which part is meant. Costs
/// were reserved with it, so they only sink.
fn drop_quotes_of_neighbours(
    ordered: &mut [PromptLine<'_>],
    projector: &Projector<'_>,
    counter: &dyn TokenCounter,
) {
    for index in 1..ordered.len() {
        let (before, rest) = ordered.split_at_mut(index);
        let (previous, line) = (&before[index - 1], &mut rest[0]);
        let is_found = previous.role == HistoryRole::Recalled || line.role == HistoryRole::Recalled;
        let is_neighbour = line.turn.reply_to == Some(previous.turn.id) && !is_found;
        let is_whole = previous.state == LineState::Whole && line.state == LineState::Whole;
        let quotes_all =
            line.turn.quote.as_deref().map(str::trim) == Some(previous.turn.content.trim());
        if is_neighbour && is_whole && quotes_all {
            let (_, content) = projector.project(line.turn, line.role, Quote::LeftOut);
            let frame = projector.frame(line.turn, line.role, Quote::LeftOut);
            line.tokens = cost(line.turn, &frame, counter);
            line.message.content = content;
        }
    }
}
