//! What is said, or done by an agent, at a time.

use crate::command::{AskedCommand, CommandVerdict, Effect, ScheduleCommand};
use crate::ids::AgentName;
use crate::scheduling::{WordingProblem, read_order};
use crate::wall_clock::Zone;

/// A text that names no time is a question to a model: `@Vocative remind me of what Bob said`.
pub(super) fn is_order(rest: &str, zone: Zone) -> bool {
    read_order(rest, 0, zone) != Err(WordingProblem::When)
}

pub(super) fn remind(asked: &AskedCommand<'_>) -> CommandVerdict {
    plan(asked, None)
}

pub(super) fn schedule(asked: &AskedCommand<'_>) -> CommandVerdict {
    plan(asked, Some(asked.room.default_agent.clone()))
}

fn plan(asked: &AskedCommand<'_>, agent: Option<AgentName>) -> CommandVerdict {
    asked.told_later(Effect::Schedule(ScheduleCommand {
        agent,
        text: asked.rest.to_owned(),
        zone: asked.room.zone,
        is_admin: asked.is_admin,
        language: asked.room.language,
    }))
}
