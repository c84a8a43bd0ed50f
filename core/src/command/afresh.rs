//! A fresh start. Everybody there sees the reply, because what they are answered changes.

use crate::command::{AskedCommand, CommandVerdict, Effect};
use crate::ids::AgentName;
use crate::words::texts;

pub(super) fn decide(asked: &AskedCommand<'_>) -> CommandVerdict {
    let all = || asked.room.agents.clone();
    let agents: Vec<AgentName> = asked.agent.clone().map_or_else(all, |agent| vec![agent]);
    let language = asked.room.language;
    let names: Vec<&str> = agents.iter().map(AgentName::as_str).collect();
    let text = match asked.room.agents.len() {
        1 => language.fresh_start(),
        _ => language.fresh_start_of(names.join(", ")),
    };
    asked.told_to_all(Effect::BeginAfresh { agents }, text)
}

texts! {
    fresh_start();
    fresh_start_of(agents);
}
