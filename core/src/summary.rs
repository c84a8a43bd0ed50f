//! Summaries: derived text that stands for the older kept turns of an agent in a conversation.
//!
//! They form a chain of checkpoints. Each is made from the one before it and the turns since, and
//! stands for every kept turn up to its end. Originals stay: without any summary a prompt costs
//! more or holds less, and nothing else changes.

use std::collections::BTreeMap;

use crate::coverage::Coverage;
use crate::history::History;
use crate::ids::{AgentName, ConversationId, SummaryId, TurnId};
use crate::options::AssemblerOptions;
use crate::place::ChatName;
use crate::turn::Position;

/// Whether a summary may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SummaryState {
    /// It says what its turns say.
    Current,
    /// A turn it stands for was edited or came late: it waits to be made again.
    Stale,
    /// A turn it stands for was deleted: its text is gone, and it is never sent.
    Void,
}

impl SummaryState {
    /// The stored and shown name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Stale => "stale",
            Self::Void => "void",
        }
    }

    /// The state of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Current, Self::Stale, Self::Void]
            .into_iter()
            .find(|state| state.name() == name)
    }
}

/// A stored summary, for people.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Which.
    pub id: SummaryId,
    /// Whose.
    pub agent: AgentName,
    /// The one it was made from.
    pub previous: Option<SummaryId>,
    /// The first turn folded into it that the one before it does not stand for.
    pub from: Position,
    /// It stands for every kept turn up to here.
    pub through: Position,
    /// How many turns were folded into it, without those of the one before it.
    pub turns: u64,
    /// What it says; empty once void.
    pub text: String,
    /// The tokens of the text.
    pub tokens: u64,
    /// Who made it.
    pub model: String,
    /// Whether it may be used.
    pub state: SummaryState,
    /// When, in milliseconds since the Unix epoch.
    pub created_at_ms: i64,
}

/// When an agent's turns are folded, in the chats where it is so and everywhere else.
#[derive(Clone, Debug, PartialEq)]
pub struct FoldRule {
    /// The agent.
    pub agent: AgentName,
    /// In chats without a rule of their own; `None` = never.
    pub elsewhere: Option<FoldOver>,
    /// In these chats; `None` = never.
    pub in_chats: BTreeMap<ChatName, Option<FoldOver>>,
}

impl FoldRule {
    /// What holds in a chat.
    #[must_use]
    pub fn of(&self, chat: &ChatName) -> Option<&FoldOver> {
        let own = self.in_chats.get(chat);
        own.unwrap_or(&self.elsewhere).as_ref()
    }
}

/// Over how many kept turns in no summary they are folded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoldOver {
    /// What counts as kept.
    pub coverage: Coverage,
    /// The number of kept turns that must be exceeded.
    pub threshold: usize,
}

impl FoldOver {
    /// When turns are folded under these options; `None` = never.
    #[must_use]
    pub fn of(options: &AssemblerOptions) -> Option<Self> {
        Some(Self {
            coverage: Coverage::of(options)?,
            // A turn that prompts no longer read must be in a summary.
            threshold: options
                .rolling_summary_threshold
                .min(options.max_turns_to_load),
        })
    }
}

/// Where to look for turns that can be folded.
#[derive(Clone, Debug, PartialEq)]
pub struct FoldQuery {
    /// The conversation.
    pub conversation: ConversationId,
    /// The agent.
    pub agent: AgentName,
    /// What its summaries stand for.
    pub coverage: Coverage,
    /// The number of kept turns in no summary above which turns are folded.
    pub threshold: usize,
    /// How many of the newest turns of people are not folded, nor the turns after them.
    pub preserve_recent: usize,
    /// The bound on `preserve_recent`, in turns of anybody. If the preserved turns would begin before the newest
    /// turns of this number, or there are fewer turns of people, the newer half of this number is preserved.
    pub hold_turns: usize,
    /// The most turns that are read, oldest first.
    pub max_turns: usize,
}

/// What can be folded next: a snapshot.
#[derive(Clone, Debug, PartialEq)]
pub struct FoldSource {
    /// The oldest kept turns that no usable summary stands for, the summary before them, and names.
    pub history: History,
    /// Turns from here on stay as they are: the newest of people, or one that still waits for its
    /// answer.
    pub fold_before: Position,
    /// Whether these turns were folded before, and what is known of that.
    pub refold: Option<Refold>,
}

/// What a summary is made from. It may be asked for, and stored, only while all of it is as it was
/// read.
#[derive(Clone, Debug, PartialEq)]
pub struct FoldBase {
    /// The conversation.
    pub conversation: ConversationId,
    /// The agent.
    pub agent: AgentName,
    /// What it stands for.
    pub coverage: Coverage,
    /// The summary before it.
    pub previous: Option<SummaryId>,
    /// The turns folded into it, by position, with the revision that was read. Never empty.
    pub sources: Vec<(TurnId, u32)>,
    /// Where the last of them stands.
    pub through: Position,
}

/// A summary to store.
#[derive(Clone, Debug, PartialEq)]
pub struct NewSummary {
    /// What it was made from.
    pub base: FoldBase,
    /// How many requests it took.
    pub requests: u32,
    /// What it says.
    pub text: String,
    /// The tokens of the text.
    pub tokens: u32,
    /// The name of the token counter.
    pub counter: String,
    /// Who made it.
    pub model: String,
    /// The time, in milliseconds since the Unix epoch.
    pub now_ms: i64,
}

/// What became of a summary to store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SummaryOutcome {
    /// It is stored.
    Written(SummaryId),
    /// What it was made from has changed since: nothing was written.
    Outdated,
}

/// What setting summaries aside did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetAside {
    /// To be made again.
    pub set_aside: u64,
    /// Left in use, because turns that they stand for were removed by age.
    pub stay: u64,
}

/// Summaries that were set aside are made again once no more of them were set aside for this long.
const REFOLD_QUIET_MS: i64 = 10 * 60_000;
/// Summaries that were set aside are made again after this time even if changes go on.
const REFOLD_WAIT_MS_MAX: i64 = 60 * 60_000;
/// The most requests a day that make summaries of one conversation again.
const REFOLD_REQUESTS_PER_DAY: u32 = 100;
const DAY_MS: i64 = 24 * 60 * 60_000;

/// What is known of a conversation whose summaries were set aside by changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refold {
    /// Whether something changed since the last look.
    pub has_unseen: bool,
    /// When a look found the last change, in milliseconds since the Unix epoch.
    pub seen_at_ms: i64,
    /// When a look found the first change since anything was made again.
    pub since_ms: Option<i64>,
    /// The beginning of the day that `requests` counts.
    pub day_from_ms: i64,
    /// Requests that made summaries again in that day.
    pub requests: u32,
}

/// What is done about summaries that were set aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefoldStep {
    /// The change is noted; the quiet time begins.
    Note,
    /// They wait.
    Wait,
    /// They are made again, with at most this many requests.
    Fold(u32),
}

impl Refold {
    /// What is done about it at a time, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn step(&self, now_ms: i64) -> RefoldStep {
        // After a clock was set back, a time may lie ahead.
        let is_over = |from_ms: i64, wait_ms: i64| !(0..wait_ms).contains(&(now_ms - from_ms));
        let is_overdue = self
            .since_ms
            .is_some_and(|since_ms| now_ms - since_ms >= REFOLD_WAIT_MS_MAX);
        if !is_overdue && (self.has_unseen || now_ms < self.seen_at_ms) {
            return RefoldStep::Note;
        }
        if !is_overdue && !is_over(self.seen_at_ms, REFOLD_QUIET_MS) {
            return RefoldStep::Wait;
        }
        let used = if is_over(self.day_from_ms, DAY_MS) {
            0
        } else {
            self.requests
        };
        match REFOLD_REQUESTS_PER_DAY.saturating_sub(used) {
            0 => RefoldStep::Wait,
            left => RefoldStep::Fold(left),
        }
    }

    /// The day and the requests in it after some more.
    #[must_use]
    pub fn counted(&self, requests: u32, now_ms: i64) -> (i64, u32) {
        if (0..DAY_MS).contains(&(now_ms - self.day_from_ms)) {
            (self.day_from_ms, self.requests.saturating_add(requests))
        } else {
            (now_ms, requests)
        }
    }
}

/// How many summaries there are, by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SummaryCounts {
    /// Usable.
    pub current: u64,
    /// To be made again.
    pub stale: u64,
    /// Void by a delete.
    pub void: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: i64 = 1_700_000_000_000;
    const MINUTE_MS: i64 = 60_000;

    #[test]
    fn what_was_set_aside_is_made_again_after_a_quiet_time_and_within_a_budget() {
        let refold = |has_unseen, seen_min: i64, since_min: Option<i64>, requests| Refold {
            has_unseen,
            seen_at_ms: NOW_MS - seen_min * MINUTE_MS,
            since_ms: since_min.map(|min| NOW_MS - min * MINUTE_MS),
            day_from_ms: NOW_MS - 60 * MINUTE_MS,
            requests,
        };
        let cases = [
            (refold(true, 30, None, 0), RefoldStep::Note),
            (refold(true, 0, Some(59), 0), RefoldStep::Note),
            // Somebody edits every minute: an hour is enough.
            (refold(true, 0, Some(60), 0), RefoldStep::Fold(100)),
            (refold(false, 9, Some(9), 0), RefoldStep::Wait),
            (refold(false, 10, Some(10), 0), RefoldStep::Fold(100)),
            (refold(false, 10, None, 99), RefoldStep::Fold(1)),
            (refold(false, 10, None, 100), RefoldStep::Wait),
            // The clock was set back by an hour.
            (refold(false, -60, Some(-60), 0), RefoldStep::Note),
        ];
        for (refold, expected) in cases {
            assert_eq!(refold.step(NOW_MS), expected, "{refold:?}");
        }
        let spent = refold(false, 10, None, 100);
        assert_eq!(spent.step(NOW_MS + DAY_MS), RefoldStep::Fold(100));
        assert_eq!(spent.counted(2, NOW_MS).1, 102);
        assert_eq!(spent.counted(2, NOW_MS + DAY_MS), (NOW_MS + DAY_MS, 2));
    }
}
