//! The progress of finding out whether a post of unknown outcome arrived, where a platform can only be asked about
//! single message numbers. What follows from it is decided in `sending::probe`.

use std::collections::BTreeSet;

/// What was learnt of one post.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probing {
    /// The end of its last request by the platform's time, at the latest, in milliseconds since the Unix
    /// epoch; `None` until the platform told its time.
    pub ended_by_ms: Option<i64>,
    /// Questions so far.
    pub asked: u32,
    /// Time waited between passes, in milliseconds.
    pub waited_ms: i64,
    /// Passes that ended.
    pub passes: u32,
    /// Where the pass is.
    pub stage: ProbeStage,
    /// The newest number that was known when the pass began.
    pub top: i64,
    /// The number of a message that was sent so long after the request that the request can't be applied any more, once
    /// one was heard: the post, if it arrived, has a lower number.
    pub horizon: Option<i64>,
    /// Numbers of our posts that have no row.
    pub ours: BTreeSet<i64>,
    /// Numbers that are settled: their messages are not ours.
    pub settled: BTreeSet<i64>,
    /// Numbers that had no message when they were asked about in this pass.
    pub missed: BTreeSet<i64>,
}

/// Where a pass is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProbeStage {
    /// No pass is under way.
    #[default]
    Resting,
    /// Before the numbers, a control question tests whether answers can be relied on.
    Opening,
    /// Numbers are asked about.
    Numbers,
    /// After the numbers, the control question is asked once more.
    Closing,
}

impl ProbeStage {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Resting, Self::Opening, Self::Numbers, Self::Closing];

    /// The stored name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Resting => "resting",
            Self::Opening => "opening",
            Self::Numbers => "numbers",
            Self::Closing => "closing",
        }
    }
}

/// What else is known of the post and its chat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeFacts {
    /// The sequence by which its chat was numbered when it was sent.
    pub sequence: String,
    /// The newest number known then.
    pub above: i64,
    /// The newest number of the sequence that an event told of, and the platform's time of that message in
    /// milliseconds since the Unix epoch.
    pub heard: Option<(i64, i64)>,
    /// Numbers above `above` whose messages are known.
    pub known: BTreeSet<i64>,
    /// The newest post of ours in the chat.
    pub own: Option<i64>,
    /// The message of somebody else that it answers.
    pub answered: Option<i64>,
    /// Whether another post of unknown outcome is open in the chat, or was given up while nothing newer was
    /// heard.
    pub has_rival: bool,
    /// Whether another post of the chat is on its way: its number is known soon.
    pub is_busy: bool,
    /// When another program was last seen to act as the bot, by the platform's time, in milliseconds since
    /// the Unix epoch.
    pub other_sender_ms: Option<i64>,
}
