//! What is read of conversations.

use vocative_contract::identity::Platform;

use vocative_core::ids::{ConversationId, Seq, TurnId};
use vocative_core::outbox::OutboxEntry;
use vocative_core::place::Scope;
use vocative_core::run::Run;
use vocative_core::search::SearchReach;
use vocative_core::search::bar::Wording;
use vocative_core::summary::Summary;
use vocative_core::turn::{Participant, Turn};
use vocative_core::vector::Vector;

/// The most turns behind the index that are looked at, over all conversations: the newest by capture.
pub(crate) const TAIL_MAX: usize = 20_000;

/// How a listing of conversations is bounded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConversationFilter {
    /// Only those of this channel.
    pub channel: Option<String>,
    /// Only those in chats whose platform id begins with this.
    pub chats_of: Option<String>,
    /// The most conversations that are listed, newest activity first; 0 = the default of 50.
    pub limit: usize,
    /// Whether archived conversations are listed, too.
    pub with_archived: bool,
    /// Only those that come after this one in the list: when it was last active, and its id.
    pub before: Option<(i64, ConversationId)>,
}

/// What people are told of a conversation besides its turns.
#[derive(Clone, Debug, PartialEq)]
pub struct ConversationOverview {
    /// What to call it: what a person called it, a topic's name, the chat's title, its first words.
    pub title: String,
    /// What a person called it.
    pub own_title: Option<String>,
    /// The configured channel it came through.
    pub channel: String,
    /// The platform.
    pub platform: Platform,
    /// The chat's title.
    pub chat_title: Option<String>,
    /// The name of the kind of chat, once learnt.
    pub chat_kind: Option<&'static str>,
    /// Since when it is archived, in milliseconds since the Unix epoch.
    pub archived_at_ms: Option<i64>,
    /// Up to which turn the person of a program's conversation has read it, if that was told.
    pub last_read: Option<Seq>,
    /// The run at work in it, or next.
    pub active_run: Option<Run>,
}

/// Who speaks in a conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Speakers {
    /// Those who say most.
    pub shown: Vec<Speaker>,
    /// How many there are in all.
    pub total: u64,
}

/// Somebody who speaks in a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Speaker {
    /// Who.
    pub participant: Participant,
    /// How many turns are theirs; tool calls and deleted turns count, too.
    pub turns: u64,
}

/// Which turns to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnFilter {
    /// Only this scope.
    pub scope: Option<Scope>,
    /// Only turns sent at or after this, in milliseconds since the Unix epoch.
    pub since_ms: Option<i64>,
    /// Only turns of these participants, by platform id; empty = all.
    pub participants: Vec<String>,
    /// How many of the newest turns by position are read; `None` = all.
    pub limit: Option<usize>,
    /// Whether hidden (deleted) turns, and those only the timeline shows, are read, too.
    pub with_hidden: bool,
}

/// A search from one conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchQuery {
    /// The conversation.
    pub conversation: ConversationId,
    /// Which others of its chat are searched with it.
    pub reach: SearchReach,
    /// What is looked for, in one wording or several; at most [`crate::WORDINGS_MAX`] are read. Words are wished or, as
    /// [`SearchMode`] says, required; `"phrases"`, beginnings of words (`dep*`) and words with a plus before them are
    /// always required. Without any word everything is found.
    pub queries: Vec<String>,
    /// Vectors of the queries by the current embedding model, where there is one: what means nearly the same is
    /// found besides. Only [`SearchMode::Forgiving`] uses them, and not with a filter for files.
    pub vectors: Vec<Vector>,
    /// Further conditions on hits.
    pub filter: SearchFilter,
    /// The most hits.
    pub limit: usize,
    /// The most tokens of all texts together, neighbours included (by `utf16_div4`). The first hit is always given;
    /// the list ends before the first other hit that would pass this.
    pub token_cap: usize,
    /// The length to which a hit's text is cut around its first match, in characters.
    pub text_max_chars: usize,
    /// Lines that are given before and after each hit; with any, also the one that it replies to and the one that
    /// answered it.
    pub neighbours: usize,
    /// Turns that are no hits, like the one that asks.
    pub exclude: Vec<TurnId>,
    /// Only what was captured up to there; `None` = everything. Only [`SearchMode::Forgiving`] with words heeds it.
    pub as_of_seq: Option<Seq>,
    /// The most turns behind the index that are read, the newest; in older ones words are found only as they are
    /// written. At most 20,000.
    pub tail_max: usize,
    /// Whether only what people said is found: nothing of agents, other bots and the platform. Only
    /// [`SearchMode::Forgiving`] with words heeds it.
    pub is_by_people: bool,
    /// What is a hit, and which come first.
    pub mode: SearchMode,
}

impl SearchQuery {
    /// A search for one wording as a model or a person makes it: ranked, five hits with two neighbours each.
    #[must_use]
    pub fn new(conversation: ConversationId, text: impl Into<String>) -> Self {
        Self {
            conversation,
            reach: SearchReach::Conversation,
            queries: vec![text.into()],
            vectors: Vec::new(),
            filter: SearchFilter::default(),
            limit: 5,
            token_cap: 2_000,
            text_max_chars: 1_200,
            neighbours: 2,
            exclude: Vec::new(),
            as_of_seq: None,
            tail_max: TAIL_MAX,
            is_by_people: false,
            mode: SearchMode::Forgiving,
        }
    }
}

/// Conditions on hits besides what they say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchFilter {
    /// Said by a participant of what is searched: a shown name, a username or a platform's id.
    pub from: Option<String>,
    /// Sent at or after, in milliseconds since the Unix epoch.
    pub after_ms: Option<i64>,
    /// Sent before, in milliseconds since the Unix epoch.
    pub before_ms: Option<i64>,
    /// With a file whose name has this in it; empty = with any file.
    pub files: Option<String>,
}

/// What is a hit, and which come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchMode {
    /// What has any of the words in any form, the best answers first; near-identical lines are one hit.
    Forgiving,
    /// What has all words as they are written, the best match by BM25 first and the newest of equal ones. Only the
    /// first wording counts, and no filter.
    Strict,
    /// What has all words as they are written, the newest by position first. Only the first wording counts, and no
    /// filter.
    StrictNewest,
}

/// What a search found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchHits {
    /// The hits, in the order asked for.
    pub hits: Vec<SearchHit>,
    /// Turns that match, as far as they were looked at; with `is_bounded` there are more, older
    /// ones. Without a word in the query, as many as there are hits.
    pub matches: usize,
    /// Whether only the newest matches were looked at.
    pub is_bounded: bool,
    /// Whether a query was cut to its limit.
    pub is_query_cut: bool,
    /// Whether the room has older threads that were not searched.
    pub has_more_threads: bool,
    /// Whether the filter names somebody who is no participant of what is searched: then nothing is found.
    pub is_speaker_unknown: bool,
    /// Words that are in no line, each with those that were looked for in its place.
    pub taken_for: Vec<(String, Vec<String>)>,
    /// The wordings, with how their words are spread. Only of [`SearchMode::Forgiving`].
    pub wordings: Vec<Wording>,
    /// The median likeness between the query's vector and the nearest ones; `None` where too few were compared.
    pub near_usually: Option<f32>,
    /// What the search cost.
    pub effort: SearchEffort,
}

/// What a search cost: all of it is bounded, whatever a room holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchEffort {
    /// Entries of the index that were read.
    pub postings: usize,
    /// Texts that were read and scored.
    pub texts: usize,
    /// Vectors that were compared.
    pub vectors: usize,
}

/// A turn that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchHit {
    /// The turn.
    pub turn: Turn,
    /// What it says around the match, mentions as names.
    pub text: String,
    /// How well it answers the wording that it answers best: 0 to 1. 0 in the strict modes and without words.
    pub score: f64,
    /// How alike its vector and a query's are; 0 where no vector found it.
    pub nearness: f32,
    /// Lines that say nearly the same and are not given.
    pub same: usize,
    /// Its message, for a link to it.
    pub message: Option<MessagePlace>,
    /// The lines before it, oldest first.
    pub before: Vec<Neighbour>,
    /// The lines after it, oldest first.
    pub after: Vec<Neighbour>,
    /// The line that it replies to, unless that is given already.
    pub replied_to: Option<Neighbour>,
    /// The first line that replies to it, unless that is given already.
    pub answered_by: Option<Neighbour>,
}

/// A line beside a hit.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbour {
    /// The turn.
    pub turn: Turn,
    /// What it says, cut short, mentions as names.
    pub text: String,
}

/// Where a message is on its platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessagePlace {
    /// The platform.
    pub platform: Platform,
    /// The platform's id of the account.
    pub account: String,
    /// The platform's id of the chat.
    pub chat: String,
    /// Slack thread root or Telegram topic; `None` = the chat itself.
    pub thread: Option<String>,
    /// The platform's id of the message.
    pub message: String,
}

/// A turn and where its answer went, for `conversations show` and the demo.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnDetail {
    /// The turn.
    pub turn: Turn,
    /// Its platform message ids.
    pub message_ids: Vec<String>,
    /// The runs it triggered.
    pub runs: Vec<Run>,
    /// The posts it caused.
    pub posts: Vec<OutboxEntry>,
}

/// Which page of a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageQuery {
    /// The most turns of a page.
    pub limit: usize,
    /// Only what stands before the turn with this seq; `None` = the newest.
    pub before: Option<Seq>,
    /// Whether the page also has what is not in the room (tool calls and results, deleted turns), and runs and
    /// summaries.
    pub is_timeline: bool,
}

/// A page of a conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConversationPage {
    /// Of a thread: the turn it hangs on, if that is in the room and of another conversation.
    pub root: Option<TurnDetail>,
    /// Turns, ascending by position.
    pub turns: Vec<TurnDetail>,
    /// In the timeline: runs that came to be in it, oldest first.
    pub runs: Vec<Run>,
    /// In the timeline: summaries that were made in it, oldest first.
    pub summaries: Vec<Summary>,
    /// Whether there is an older page.
    pub has_older: bool,
}

/// What a turn replies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepliedTo {
    /// Who said it.
    pub speaker: String,
    /// How it begins, mentions as names.
    pub text: String,
}
