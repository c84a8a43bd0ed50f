//! Commands of a person about the memories of a chat: to list, forget or correct them, in the transaction that captures
//! the command. `core/remembering` decides who sees and changes what.

use crate::StoreError;
use crate::acts::command_giver::CommandGiver;
use crate::engine::sql::Connection;
use crate::rows::memories::{
    change_text_txn, count_about_elsewhere, delete_memories_txn, memories_in, said_elsewhere,
    share_txn,
};
use vocative_core::remembering::{
    AskedRoom, MemoryChange, MemoryCommand, MemoryId, MemoryKind, MemoryOrder, MemoryScope,
    MemorySeen, StoredMemory, checked_text, judge_change, judge_room, refusal_text, room_use,
    share_refusal,
};

/// Carries out what a person asks for in a chat about what is remembered. Returns what they are told.
pub(crate) fn order_memory_txn(
    connection: &Connection,
    asker: &CommandGiver<'_>,
    command: &MemoryCommand,
) -> Result<String, StoreError> {
    let asking = AskedRoom {
        account: asker.account,
        chat: asker.chat,
    };
    let mut here = Vec::new();
    for agent in &command.agents {
        here.extend(memories_in(connection, asking, agent, false, None)?);
    }
    here.sort_by_key(|entry| std::cmp::Reverse(entry.at.id));
    let (mut elsewhere, mut about) = (Vec::new(), 0);
    if command.is_direct {
        elsewhere = said_elsewhere(connection, asking, asker.person)?;
        about = count_about_elsewhere(connection, asking, asker.person)?;
    }
    let all = here.clone();
    let seen = MemorySeen::of(here, elsewhere, about, asker.person);
    let order = MemoryRequest {
        asker,
        command,
        seen: &seen,
        all: &all,
    };
    match &command.order {
        MemoryOrder::List => Ok(seen.text(asker.platform_chat, command.language)),
        MemoryOrder::Other => Ok(command.language.memory_help()),
        MemoryOrder::Forget { entries } => order.forget_txn(connection, entries),
        MemoryOrder::Change { entry, text } => order.change_txn(connection, *entry, text),
        MemoryOrder::Share { entry, is_shared } => order.share_txn(connection, *entry, *is_shared),
    }
}

struct MemoryRequest<'a> {
    asker: &'a CommandGiver<'a>,
    command: &'a MemoryCommand,
    /// The entries that the person is shown.
    seen: &'a MemorySeen,
    /// All entries that may be shown there; an admin may forget any of them.
    all: &'a [StoredMemory],
}

impl MemoryRequest<'_> {
    fn found(&self, id: MemoryId) -> Result<&StoredMemory, String> {
        let of_admin = || {
            let mut all = self.all.iter();
            all.find(|it| self.command.is_admin && it.at.id == id)
        };
        let found = self.seen.entry(id).or_else(of_admin);
        found.ok_or_else(|| self.command.language.memory_no_entry(id))
    }

    /// Forgets all the named entries, or none.
    fn forget_txn(
        &self,
        connection: &Connection,
        entries: &[MemoryId],
    ) -> Result<String, StoreError> {
        for id in entries {
            let entry = match self.found(*id) {
                Ok(entry) => entry,
                Err(refused) => return Ok(refused),
            };
            let askers = [self.asker.person];
            let facts = entry.change_facts(entry.at, self.asker.chat, &askers);
            match judge_change(MemoryChange::Forget, &facts) {
                Ok(()) => {}
                Err(_) if self.command.is_admin => {}
                Err(refusal) => {
                    return Ok(sentence(&refusal_text(&refusal, self.command.language)));
                }
            }
        }
        delete_memories_txn(connection, entries)?;
        Ok(match entries {
            [entry] => self.command.language.memory_forgotten(entry),
            _ => self
                .command
                .language
                .memory_forgotten_several(entries.len()),
        })
    }

    /// Corrects an entry; only the person who said it may do that.
    fn change_txn(
        &self,
        connection: &Connection,
        id: MemoryId,
        text: &str,
    ) -> Result<String, StoreError> {
        let language = self.command.language;
        let entry = match self.found(id) {
            Ok(entry) => entry,
            Err(refused) => return Ok(refused),
        };
        if entry.teller.row != self.asker.person {
            return Ok(language.memory_only_teller(&entry.teller.name, id));
        }
        let text = match checked_text(text, language) {
            Ok(text) => text,
            Err(what) => return Ok(sentence(&what)),
        };
        let others: Vec<StoredMemory> = self
            .all
            .iter()
            .filter(|it| it.at.id != id && it.agent == entry.agent)
            .cloned()
            .collect();
        let used = room_use(&others, entry.chat(), 0);
        if entry.kind == MemoryKind::Core
            && let Err(refusal) = judge_room(used, entry.kind, text.chars().count())
        {
            return Ok(sentence(&refusal_text(&refusal, self.command.language)));
        }
        change_text_txn(connection, id, &text, entry.origin, self.asker.now_ms)?;
        Ok(language.memory_changed(id, text))
    }

    fn share_txn(
        &self,
        connection: &Connection,
        id: MemoryId,
        is_shared: bool,
    ) -> Result<String, StoreError> {
        let language = self.command.language;
        if !self.command.is_admin {
            return Ok(language.memory_only_admins_share());
        }
        let entry = match self.found(id) {
            Ok(entry) => entry,
            Err(refused) => return Ok(refused),
        };
        if is_shared && let Some(why) = share_refusal(&entry.learnt, language) {
            return Ok(sentence(&why));
        }
        let share = if is_shared {
            MemoryScope::Team
        } else {
            MemoryScope::Room
        };
        share_txn(connection, id, share, self.asker.now_ms)?;
        Ok(match is_shared {
            true => language.memory_shared(id),
            false => language.memory_unshared(id),
        })
    }
}

/// A refusal as a sentence.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), letters.as_str())
}
