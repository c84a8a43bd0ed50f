//! What is looked up about an agent in a room, and told later.

use crate::command::{AskedCommand, CommandVerdict, Effect, Inquiry};
use crate::words::texts;

pub(super) fn status(asked: &AskedCommand<'_>) -> CommandVerdict {
    inquire(asked, Inquiry::Status)
}

pub(super) fn summary(asked: &AskedCommand<'_>) -> CommandVerdict {
    inquire(asked, Inquiry::Summary)
}

/// A prompt is shown where only its person reads it.
pub(super) fn context(asked: &AskedCommand<'_>) -> CommandVerdict {
    match asked.is_private || asked.is_direct || asked.is_admin {
        true => inquire(asked, Inquiry::Context),
        false => asked.told(asked.room.language.context_is_private()),
    }
}

fn inquire(asked: &AskedCommand<'_>, inquiry: Inquiry) -> CommandVerdict {
    let agent = asked.agent.as_ref().unwrap_or(asked.room.default_agent);
    asked.told_later(Effect::Inquire {
        inquiry,
        agent: agent.clone(),
    })
}

texts! {
    context_is_private();
    agent_gone(agent);
    no_prompt(cause);
    status_answers[count](agent);
    status_now(working, waiting, posts);
    status_working[count]();
    status_posts[count]();
    status_kept[count]();
    status_afresh(at);
    context_nothing(agent);
    context_head(agent, tokens, budget, instructions);
    context_older[count]();
    context_left_out[count]();
    summary_head(agent);
    no_summary[count](agent);
}
