//! Where an entry may appear. The store reads the entries of a room, and of the others those that are [`ELSEWHERE`]'s
//! (`store/src/rows/memories.rs`); what it read is asked here.

use vocative_contract::envelope::ChatKind;

use crate::ids::{AccountId, ChatId};
use crate::words::Language;

/// Whether an entry may appear outside the room where it was learnt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemoryScope {
    /// Only there.
    Room,
    /// In other rooms of the account, too: an operator said so.
    Team,
}

impl MemoryScope {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Room, Self::Team];

    /// The stored and shown name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Room => "room",
            Self::Team => "team",
        }
    }

    /// The setting of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|share| share.name() == name)
    }
}

/// Where an entry was learnt, and how it was shared since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LearntIn {
    /// The account.
    pub account: AccountId,
    /// The room; a thread or topic belongs to its room.
    pub chat: ChatId,
    /// What kind of room that was; `None` = not learnt.
    pub kind_then: Option<ChatKind>,
    /// What kind it is.
    pub kind_now: Option<ChatKind>,
    /// How it was shared since.
    pub share: MemoryScope,
    /// Whether somebody said it of themselves, or of nobody.
    pub is_own_words: bool,
}

/// Where an agent is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskedRoom {
    /// The account.
    pub account: AccountId,
    /// The room.
    pub chat: ChatId,
}

/// What an entry must be to appear in other rooms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// How it was shared.
    pub share: MemoryScope,
    /// The kind of its room, when it was learnt and since.
    pub kind: ChatKind,
}

/// What an entry must be for other rooms of its account; besides, it must be somebody's own words.
pub const ELSEWHERE: Elsewhere = Elsewhere {
    share: MemoryScope::Team,
    kind: ChatKind::Public,
};

/// Whether an entry may appear where an agent is asked.
///
/// *Invariant:* what was learnt in a direct or private room, or in one whose kind is not known, appears in no other
/// room; what somebody said about somebody else appears only where they said it; nothing leaves its account.
#[must_use]
pub fn may_appear(learnt: &LearntIn, asking: AskedRoom) -> bool {
    if learnt.account != asking.account {
        return false;
    }
    if learnt.chat == asking.chat {
        return true;
    }
    let is_open = |kind| kind == Some(ELSEWHERE.kind);
    learnt.share == ELSEWHERE.share
        && learnt.is_own_words
        && is_open(learnt.kind_then)
        && is_open(learnt.kind_now)
}

/// Why an entry can't be shared with other rooms; `None` = it can.
#[must_use]
pub fn share_refusal(learnt: &LearntIn, language: Language) -> Option<String> {
    if !learnt.is_own_words {
        return Some(language.memory_not_own_words());
    }
    let is_open = |kind| kind == Some(ELSEWHERE.kind);
    match is_open(learnt.kind_then) && is_open(learnt.kind_now) {
        true => None,
        false => Some(language.memory_not_public()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [Option<ChatKind>; 6] = [
        None,
        Some(ChatKind::Direct),
        Some(ChatKind::GroupDirect),
        Some(ChatKind::Private),
        Some(ChatKind::Public),
        Some(ChatKind::Broadcast),
    ];

    /// Every combination there is.
    fn all() -> Vec<(LearntIn, AskedRoom)> {
        let mut all = Vec::new();
        for kind_then in KINDS {
            for kind_now in KINDS {
                for share in MemoryScope::ALL {
                    for n in 0..8 {
                        let learnt = LearntIn {
                            account: AccountId(1),
                            chat: ChatId(1),
                            kind_then,
                            kind_now,
                            share,
                            is_own_words: n & 1 == 0,
                        };
                        let asking = AskedRoom {
                            account: AccountId(1 + i64::from(n & 2 != 0)),
                            chat: ChatId(1 + i64::from(n & 4 != 0)),
                        };
                        all.push((learnt, asking));
                    }
                }
            }
        }
        all
    }

    #[test]
    fn nothing_learnt_in_a_direct_or_private_room_appears_in_another_room() {
        let is_open = |kind| kind == Some(ChatKind::Public);
        for (learnt, asking) in all() {
            let is_there = (learnt.account, learnt.chat) == (asking.account, asking.chat);
            let expected = is_there
                || (learnt.account == asking.account
                    && is_open(learnt.kind_then)
                    && is_open(learnt.kind_now)
                    && learnt.share == MemoryScope::Team
                    && learnt.is_own_words);
            assert_eq!(
                may_appear(&learnt, asking),
                expected,
                "{learnt:?} {asking:?}"
            );
            // An entry that can't be shared appears nowhere else, even if its row says so.
            if share_refusal(&learnt, Language::English).is_some() {
                assert_eq!(expected, is_there, "{learnt:?}");
            }
        }
    }
}
