//! Slack's own way to show a text while it is written: a message that takes words at its end.
//!
//! Such a message carries no metadata until it is stopped and can't be edited or deleted before; it ends by itself
//! after some minutes. So it is started only where a post of ours waits for its words, is recognised by its author, its
//! time and its text while it carries no marker, and is stopped by the first edit or deletion, in whatever process.
//! Words are never added twice: after a request of unknown outcome none are added.

use vocative_contract::error::ChannelError;
use vocative_contract::identity::Identity;
use vocative_contract::outbound::{PartStream, Post};

use super::METADATA_EVENT_TYPE;
use super::api::{Granted, SlackApi, Token};
use super::posting;
use super::wire::SlackEvent;

const START: &str = "chat.startStream";
const APPEND: &str = "chat.appendStream";
const STOP: &str = "chat.stopStream";
/// Slack's error for words appended after a person pressed "stop".
const STOPPED_BY_PERSON: &str = "stopped_by_user";
/// Slack's limit is 12,000 characters in one call.
const ADDED_MAX_CHARS: usize = 11_400;
/// An invisible character that breaks a reference, so that it notifies nobody.
const JOINER: char = '\u{2060}';

/// Starts a message with a post's first words; `None` where the post can't be one.
pub(super) async fn start(
    api: &SlackApi,
    identity: &Identity,
    post: &Post,
) -> Option<Result<Granted, ChannelError>> {
    let stream = post.part.stream.as_deref()?;
    let arguments = start_arguments(identity, post, stream)?;
    Some(api.call(START, Token::Bot, &arguments).await)
}

/// The arguments of a start. Streams exist only in threads; outside of direct chats they need the one person on whose
/// screen they grow.
fn start_arguments(
    identity: &Identity,
    post: &Post,
    stream: &PartStream,
) -> Option<Vec<(&'static str, String)>> {
    let thread = post.target.thread.clone()?;
    if stream.text.trim().is_empty() {
        return None;
    }
    let mut arguments = vec![
        ("channel", post.target.chat.clone()),
        ("thread_ts", thread),
        ("chunks", chunks(&stream.text)),
    ];
    arguments.extend(posting::speaker(&post.part));
    // A direct chat has one person anyway, and Slack wants none named there.
    if !post.target.chat.starts_with('D') {
        arguments.push(("recipient_user_id", stream.person.clone()?));
        arguments.push(("recipient_team_id", identity.account.clone()));
    }
    Some(arguments)
}

/// Adds words. A person may have pressed "stop".
pub(super) async fn append(
    api: &SlackApi,
    chat: &str,
    message_id: &str,
    added: &str,
) -> Result<(), ChannelError> {
    let arguments = [
        ("channel", chat.to_owned()),
        ("ts", message_id.to_owned()),
        ("chunks", chunks(added)),
    ];
    match api.call(APPEND, Token::Bot, &arguments).await {
        Ok(_) => Ok(()),
        Err(ChannelError::Rejected {
            operation, reason, ..
        }) if reason == STOPPED_BY_PERSON => Err(ChannelError::ChatRefused { operation, reason }),
        Err(error) => Err(error),
    }
}

/// Ends a message, so that it can be edited and deleted. If it has ended already, that is a success. From here on it
/// carries a marker, so that it is not taken for a lost post.
pub(super) async fn stop(api: &SlackApi, chat: &str, message_id: &str) -> Result<(), ChannelError> {
    let metadata = serde_json::json!({
        "event_type": METADATA_EVENT_TYPE,
        "event_payload": { "outbox_id": "stopped" },
    });
    let arguments = [
        ("channel", chat.to_owned()),
        ("ts", message_id.to_owned()),
        ("metadata", metadata.to_string()),
    ];
    match api.call(STOP, Token::Bot, &arguments).await {
        Ok(_) => Ok(()),
        // Whether it can be edited now shows when it is edited.
        Err(ChannelError::Rejected { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether a change of a message has to wait until its stream is stopped.
pub(super) fn is_open(error: &ChannelError) -> bool {
    const OPEN: [&str; 2] = ["streaming_state_conflict", "cant_delete_message"];
    matches!(error, ChannelError::Rejected { reason, .. } if OPEN.contains(&reason.as_str()))
}

/// What a refused start means for the post: `Some` ends the attempt, `None` = nothing is in the room and
/// it may be an ordinary message.
pub(super) fn ends_attempt(error: &ChannelError) -> bool {
    matches!(
        error,
        ChannelError::OutcomeUnknown { .. }
            | ChannelError::NotSent { .. }
            | ChannelError::ChatRefused { .. }
    )
}

/// Whether an error says that an app like this one can start no stream at all.
pub(super) fn is_for_others(error: &ChannelError) -> bool {
    const NEVER: [&str; 3] = ["unknown_method", "feature_not_enabled", "method_deprecated"];
    match error {
        ChannelError::Unauthorized { .. } => true,
        ChannelError::Rejected { reason, .. } => NEVER.contains(&reason.as_str()),
        _ => false,
    }
}

/// Whether a message of ours may be a stream that was started for a post and whose answer was lost. All other messages
/// of ours carry a marker or a file; posts of a chat are made one after the other.
pub(super) fn is_unclaimed(message: &SlackEvent, stream: &PartStream) -> bool {
    let is_bare = message.metadata.is_none() && message.files.0.is_empty();
    let said = words(message.text.as_deref().unwrap_or_default());
    let is_said = !said.is_empty() && said == words(&stream.text);
    is_bare && (message.streaming_state.is_some() || is_said)
}

/// The words of a text, whatever became of its marks.
fn words(text: &str) -> String {
    let text = text.replace("&lt;", "").replace("&gt;", "");
    let text = text.replace("&amp;", "");
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

/// Words as Slack takes them. All calls for one message must use the same form.
fn chunks(text: &str) -> String {
    let text: String = neutral(text).chars().take(ADDED_MAX_CHARS).collect();
    serde_json::json!([{ "type": "markdown_text", "text": text }]).to_string()
}

/// A text whose `<!channel>`, `<@U1>` and `@here` notify nobody, wherever it is cut.
fn neutral(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        out.push(c);
        if matches!(c, '<' | '@') {
            out.push(JOINER);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn what_is_added_tells_nobody() {
        let sent = chunks("hi <!channel> @here `<@U1>`").replace(JOINER, "{joiner}");
        let shown: serde_json::Value = serde_json::from_str(&sent).unwrap();
        assert_eq!(
            shown[0]["text"],
            "hi <{joiner}!channel> @{joiner}here `<{joiner}@{joiner}U1>`"
        );
        // Wherever the text is cut, each piece is safe by itself.
        assert_eq!(neutral("<") + &neutral("!here>"), neutral("<!here>"));
    }

    #[test]
    fn a_message_is_the_one_that_is_looked_for_only_without_a_marker() {
        let stream = PartStream {
            text: "**Tom** & I".to_owned(),
            person: None,
        };
        let table = [
            (r#"{"text":"*Tom* &amp; I"}"#, true),
            (r#"{"text":"","streaming_state":"in_progress"}"#, true),
            (r#"{"text":"Tom and I"}"#, false),
            (r#"{"text":"Tom &amp; I","files":[{"id":"F1"}]}"#, false),
            (
                r#"{"text":"Tom &amp; I","streaming_state":"completed",
                    "metadata":{"event_type":"vocative_reply","event_payload":{"outbox_id":"stopped"}}}"#,
                false,
            ),
        ];
        for (json, expected) in table {
            let message: SlackEvent = serde_json::from_str(json).unwrap();
            assert_eq!(is_unclaimed(&message, &stream), expected, "{json}");
        }
    }
}
