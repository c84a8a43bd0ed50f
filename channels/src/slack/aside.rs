//! What is not a message to a whole room: a notice to one person, and reactions.

use vocative_contract::error::{ChannelError, Fallback};
use vocative_contract::outbound::{Delivered, Post};

use super::api::{POST_MESSAGE, SlackApi, Token};
use super::card::blocks_of;
use super::outbound::delivered;
use super::translate::time_of;

/// Slack's words for a room that the bot or the person is not in.
const NOT_THERE: [&str; 3] = ["not_in_channel", "channel_not_found", "user_not_in_channel"];

/// What is done with a reaction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reacting {
    Adds,
    Removes,
}

/// Shows something to one person; where the bot is not in the room, it writes to them directly.
pub(super) async fn tell(
    api: &SlackApi,
    post: &Post,
    person: &str,
) -> Result<Delivered, ChannelError> {
    let method = "chat.postEphemeral";
    let mut arguments = vec![
        ("channel", post.target.chat.clone()),
        ("user", person.to_owned()),
        ("text", post.part.text.clone()),
    ];
    let blocks = blocks_of(&post.part);
    arguments.extend(blocks.map(|blocks| ("blocks", blocks.to_string())));
    let thread = post.target.thread.clone();
    arguments.extend(thread.map(|thread| ("thread_ts", thread)));
    let id = match api.call(method, Token::Bot, &arguments).await {
        Ok(granted) => granted.answer.message_ts.0.clone(),
        Err(error) if NOT_THERE.contains(&error_word(&error)) => {
            arguments.retain(|(name, _)| matches!(*name, "text" | "blocks"));
            arguments.push(("channel", person.to_owned()));
            let granted = api.call(POST_MESSAGE, Token::Bot, &arguments).await?;
            granted.answer.ts.0.clone()
        }
        Err(error) => return Err(error),
    };
    // Such a notice can be neither edited nor found again, so nothing depends on its id.
    let id = id.unwrap_or_default();
    let chat = post.target.chat.clone();
    Ok(delivered(chat.clone(), id.clone()).unwrap_or(Delivered {
        chat,
        message_id: id,
        sent_at_ms: 0,
        shown: None,
    }))
}

/// Answers a press. Slack's client waits only for the acknowledgement, so an empty answer sends nothing.
pub(super) async fn answer(
    api: &SlackApi,
    post: &Post,
    person: &str,
) -> Result<Delivered, ChannelError> {
    if !post.part.text.is_empty() {
        return tell(api, post, person).await;
    }
    Ok(Delivered {
        chat: post.target.chat.clone(),
        message_id: String::new(),
        sent_at_ms: 0,
        shown: None,
    })
}

/// Slack's word for a refusal.
fn error_word(error: &ChannelError) -> &str {
    match error {
        ChannelError::Rejected { reason, .. } | ChannelError::ChatRefused { reason, .. } => reason,
        _ => "",
    }
}

/// Puts a reaction of ours on a message or takes it away. If it is there already, or is gone already, that is a
/// success.
pub(super) async fn react(
    api: &SlackApi,
    post: &Post,
    message_id: &str,
    reacting: Reacting,
) -> Result<Delivered, ChannelError> {
    let (method, settled) = match reacting {
        Reacting::Adds => ("reactions.add", "already_reacted"),
        Reacting::Removes => ("reactions.remove", "no_reaction"),
    };
    let name = post.part.text.trim_matches(':').to_owned();
    let done = Delivered {
        chat: post.target.chat.clone(),
        message_id: message_id.to_owned(),
        sent_at_ms: time_of(message_id).map_or(0, |(sent_at_ms, _)| sent_at_ms),
        shown: None,
    };
    // The message that named the reaction was erased meanwhile.
    if name.is_empty() {
        return Ok(done);
    }
    let arguments = [
        ("channel", post.target.chat.clone()),
        ("timestamp", message_id.to_owned()),
        ("name", name),
    ];
    match api.call(method, Token::Bot, &arguments).await {
        Ok(_) => Ok(done),
        Err(ChannelError::Rejected { reason, .. }) if reason == settled => Ok(done),
        Err(error) => Err(without_scope(error)),
    }
}

/// A missing scope that only reactions need does not put the account in question: everything else works.
fn without_scope(error: ChannelError) -> ChannelError {
    match error {
        ChannelError::Unauthorized { operation, reason } if reason.starts_with("missing_scope") => {
            ChannelError::Rejected {
                operation,
                reason,
                fallback: Fallback::None,
            }
        }
        error => error,
    }
}
