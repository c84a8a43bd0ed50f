//! How far a search in a conversation reaches.

/// Which conversations are searched from one of them; never one of another chat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SearchReach {
    /// The conversation alone.
    Conversation,
    /// It and, for a thread, the room that the thread is in.
    #[default]
    Parent,
    /// It, the room, and the room's threads.
    Threads,
}
