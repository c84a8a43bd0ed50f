//! What is remembered of a person in a room.

use crate::command::{AskedCommand, CommandVerdict, Effect};
use crate::remembering::{MemoryCommand, MemoryOrder};
use crate::wall_clock::Zone;

pub(super) fn is_order(rest: &str, _zone: Zone) -> bool {
    MemoryOrder::read(rest) != MemoryOrder::Other
}

pub(super) fn decide(asked: &AskedCommand<'_>) -> CommandVerdict {
    asked.told_later(Effect::Memory(MemoryCommand {
        order: MemoryOrder::read(asked.rest),
        agents: asked.room.agents.clone(),
        is_admin: asked.is_admin,
        is_direct: asked.is_direct,
        language: asked.room.language,
    }))
}
