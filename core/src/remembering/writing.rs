//! What may be written, and by whom.

use crate::ids::{ChatId, ParticipantId};
use crate::remembering::{
    CORE_NOTES_MAX, CORE_NOTES_MAX_CHARS, ENTRIES_MAX_ROOM, ENTRY_MAX_CHARS, MemoryKind, MemoryRef,
    StoredMemory,
};
use crate::words::Language;

/// Why nothing of a call was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryRefusal {
    /// No person who is served said it: the question is a schedule's, another bot's, or only passes something on.
    NobodySaidIt,
    /// Nobody who is served said these words here.
    WordsNotFound {
        /// The words that were not found.
        words: String,
    },
    /// There is no such entry here.
    NoSuchEntry {
        /// As it was named.
        entry: MemoryRef,
    },
    /// It was changed since it was read.
    Changed {
        /// As it was named.
        entry: MemoryRef,
    },
    /// It was replaced by a newer one already.
    Replaced {
        /// As it was named.
        entry: MemoryRef,
    },
    /// It is somebody else's.
    NotTheirs {
        /// As it was named.
        entry: MemoryRef,
        /// Who said it.
        teller: String,
    },
    /// The room has as many core notes as it may.
    CoreFull,
    /// The room has as many entries as it may.
    RoomFull,
}

/// What is done to an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryChange {
    /// A newer one takes its place; it is kept, with the time at which it ended.
    Replace,
    /// It is removed.
    Forget,
}

/// What is known of an entry that is to be changed, where it may appear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryChangeFacts<'a> {
    /// As it was named.
    pub named: MemoryRef,
    /// Its version; `None` = there is none that may appear here.
    pub version: Option<u32>,
    /// Whether something newer took its place.
    pub is_over: bool,
    /// Who said it.
    pub teller: ParticipantId,
    /// Their name.
    pub teller_name: &'a str,
    /// Whom it is about; `None` = the room.
    pub subject: Option<ParticipantId>,
    /// Whether it was learnt in the room where the change is asked for.
    pub is_of_room: bool,
    /// Everybody who asks for the change.
    pub askers: &'a [ParticipantId],
}

/// Whether an entry is changed for those who ask: it is theirs if they said it, or if it is about them. What is said of
/// a room may be replaced by anybody there.
///
/// # Errors
/// Why it is not.
pub fn judge_change(
    change: MemoryChange,
    facts: &MemoryChangeFacts<'_>,
) -> Result<(), MemoryRefusal> {
    let entry = facts.named;
    let Some(version) = facts.version else {
        return Err(MemoryRefusal::NoSuchEntry { entry });
    };
    if version != entry.version {
        return Err(MemoryRefusal::Changed { entry });
    }
    if change == MemoryChange::Replace && facts.is_over {
        return Err(MemoryRefusal::Replaced { entry });
    }
    let is_theirs = |asker: &ParticipantId| *asker == facts.teller || facts.subject == Some(*asker);
    let of_room = facts.subject.is_none() && facts.is_of_room;
    let may = match change {
        MemoryChange::Replace if of_room => true,
        MemoryChange::Replace | MemoryChange::Forget => facts.askers.iter().all(is_theirs),
    };
    if may && !facts.askers.is_empty() {
        return Ok(());
    }
    Err(MemoryRefusal::NotTheirs {
        entry,
        teller: facts.teller_name.to_owned(),
    })
}

/// How much one agent has stored in a room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoomUse {
    /// Entries, those that were replaced included.
    pub entries: usize,
    /// Core notes that hold.
    pub core_notes: usize,
    /// Their characters.
    pub core_chars: usize,
}

/// How much of these entries is in a room, with `further` ones that are no core notes.
#[must_use]
pub fn room_use(entries: &[StoredMemory], room: ChatId, further: usize) -> RoomUse {
    let of_room = || entries.iter().filter(|it| it.chat() == room);
    let is_core = |it: &&StoredMemory| it.kind == MemoryKind::Core && it.until_ms.is_none();
    RoomUse {
        entries: of_room().count() + further,
        core_notes: of_room().filter(is_core).count(),
        core_chars: of_room()
            .filter(is_core)
            .map(|it| it.text.chars().count())
            .sum(),
    }
}

/// Whether a room has room for one entry more.
///
/// # Errors
/// Why it has not.
pub fn judge_room(room: RoomUse, kind: MemoryKind, chars: usize) -> Result<(), MemoryRefusal> {
    if room.entries >= ENTRIES_MAX_ROOM {
        return Err(MemoryRefusal::RoomFull);
    }
    let is_full =
        room.core_notes >= CORE_NOTES_MAX || room.core_chars + chars > CORE_NOTES_MAX_CHARS;
    match kind {
        MemoryKind::Core if is_full => Err(MemoryRefusal::CoreFull),
        MemoryKind::Core | MemoryKind::Fact | MemoryKind::Preference => Ok(()),
    }
}

/// A text as it is kept: without spaces around it and invisible characters.
///
/// # Errors
/// In words, what is wrong with it.
pub fn checked_text(text: &str, language: Language) -> Result<String, String> {
    let kept: String = text
        .trim()
        .chars()
        .filter(|c| *c == '\n' || !c.is_control())
        .collect();
    match kept.chars().count() {
        0 => Err(language.memory_text_empty()),
        n if n > ENTRY_MAX_CHARS => Err(language.memory_text_too_long(ENTRY_MAX_CHARS)),
        _ => Ok(kept),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remembering::MemoryId;

    const ANN: ParticipantId = ParticipantId(1);
    const BOB: ParticipantId = ParticipantId(2);
    const EVE: ParticipantId = ParticipantId(3);
    const NAMED: MemoryRef = MemoryRef {
        id: MemoryId(4),
        version: 1,
    };

    fn facts(askers: &[ParticipantId]) -> MemoryChangeFacts<'_> {
        MemoryChangeFacts {
            named: NAMED,
            version: Some(1),
            is_over: false,
            teller: BOB,
            teller_name: "Bob",
            subject: Some(ANN),
            is_of_room: true,
            askers,
        }
    }

    #[test]
    fn an_entry_is_changed_for_who_said_it_or_whom_it_is_about() {
        use MemoryChange::{Forget, Replace};
        let not_theirs = Err(MemoryRefusal::NotTheirs {
            entry: NAMED,
            teller: "Bob".to_owned(),
        });
        for change in [Forget, Replace] {
            for askers in [&[ANN][..], &[BOB], &[ANN, BOB]] {
                assert_eq!(judge_change(change, &facts(askers)), Ok(()), "{askers:?}");
            }
            for askers in [&[EVE][..], &[ANN, EVE], &[]] {
                assert_eq!(
                    judge_change(change, &facts(askers)),
                    not_theirs,
                    "{askers:?}"
                );
            }
            let gone = MemoryChangeFacts {
                version: None,
                ..facts(&[ANN])
            };
            let entry = NAMED;
            let no_such = MemoryRefusal::NoSuchEntry { entry };
            assert_eq!(judge_change(change, &gone), Err(no_such));
            let changed = MemoryChangeFacts {
                version: Some(2),
                ..facts(&[ANN])
            };
            assert_eq!(
                judge_change(change, &changed),
                Err(MemoryRefusal::Changed { entry })
            );
        }
        let of_room = |is_of_room| MemoryChangeFacts {
            subject: None,
            is_of_room,
            ..facts(&[EVE])
        };
        assert_eq!(judge_change(Replace, &of_room(true)), Ok(()));
        assert_eq!(judge_change(Forget, &of_room(true)), not_theirs);
        assert_eq!(judge_change(Replace, &of_room(false)), not_theirs);
        let over = MemoryChangeFacts {
            is_over: true,
            ..facts(&[ANN])
        };
        let replaced = MemoryRefusal::Replaced { entry: NAMED };
        assert_eq!(judge_change(Replace, &over), Err(replaced));
        assert_eq!(judge_change(Forget, &over), Ok(()));
    }

    #[test]
    fn a_room_holds_so_much() {
        let core = |core_notes, core_chars| RoomUse {
            entries: core_notes,
            core_notes,
            core_chars,
        };
        assert_eq!(judge_room(core(19, 3_900), MemoryKind::Core, 100), Ok(()));
        let full = Err(MemoryRefusal::CoreFull);
        assert_eq!(judge_room(core(20, 10), MemoryKind::Core, 1), full);
        assert_eq!(judge_room(core(1, 3_901), MemoryKind::Core, 100), full);
        assert_eq!(judge_room(core(20, 4_000), MemoryKind::Fact, 8_000), Ok(()));
        let many = RoomUse {
            entries: 1_000,
            ..RoomUse::default()
        };
        let refused = judge_room(many, MemoryKind::Fact, 1);
        assert_eq!(refused, Err(MemoryRefusal::RoomFull));
    }

    #[test]
    fn a_text_is_kept_without_what_nobody_sees() {
        let checked = |text: &str| checked_text(text, Language::English);
        assert_eq!(checked(" a\u{7}b\n c "), Ok("ab\n c".to_owned()));
        assert!(checked(" \u{0} ").is_err());
        assert!(checked(&"x".repeat(8_001)).is_err());
    }
}
