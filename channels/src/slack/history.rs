//! Reads what Slack keeps of a room: `conversations.history`, `.replies` and `users.conversations`.
//!
//! History shows thread roots and broadcasts, newest first; replies show a thread, its root first and
//! then the oldest first. A message becomes the envelope that its event would have become: it is put
//! into the event that it lacks, and goes through the same translation.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::rate::Pace;
use vocative_contract::channel::BoxFuture;
use vocative_contract::envelope::{ChatKind, Envelope, Event, Place};
use vocative_contract::error::ChannelError;
use vocative_contract::history::{HistoryPage, HistoryReader, HistoryRequest, PastMessage};
use vocative_contract::identity::Identity;

use super::api::{SlackApi, Token};
use super::look_ups::place_of;
use super::outbound::ts_of;
use super::translate::{SlackDelivery, time_of, translate};
use super::wire::{HistoryAnswer, ResponseMetadata};

/// Between two calls of one method, in milliseconds: 40 a minute, which with the burst stays within
/// the 50 of tier 3 and leaves room for looks after lost posts. Source: Slack's rate limit page.
const EVERY_MS: u64 = 1_500;
/// The least time between two calls while Slack refuses none, in milliseconds: tiers are what Slack always grants, and
/// with thousands of chats to read a faster pace is tried.
const EVERY_AT_LEAST_MS: u64 = 20;
/// Calls of one method that may go at once.
const BURST: u32 = 10;
/// Lists the chats of a kind that the bot is in. `conversations.list` would list all of the workspace.
const LIST: &str = "users.conversations";
/// Chats on one page of the list. Slack allows 999.
const LIST_PAGE: usize = 999;
/// Pages of the list that are read for one kind of chat.
const LIST_PAGES_MAX: usize = 100;
/// The largest page of `conversations.history`.
const PAGE_MAX: usize = 999;
/// The kinds of chats, each of which has a scope of its own.
const KINDS: [&str; 4] = ["public_channel", "private_channel", "mpim", "im"];

/// The history half.
#[derive(Debug)]
pub(super) struct SlackHistory {
    channel: String,
    identity: Identity,
    api: Arc<SlackApi>,
    history: Pace,
    replies: Pace,
    list: Pace,
}

impl SlackHistory {
    pub(super) fn new(channel: String, identity: Identity, api: Arc<SlackApi>) -> Self {
        Self {
            channel,
            identity,
            api,
            history: Pace::new(BURST, EVERY_MS).quickening(EVERY_AT_LEAST_MS),
            replies: Pace::new(BURST, EVERY_MS).quickening(EVERY_AT_LEAST_MS),
            list: Pace::new(BURST, EVERY_MS),
        }
    }

    async fn list_all(&self) -> Result<Vec<Place>, ChannelError> {
        let mut chats = Vec::new();
        for kind in KINDS {
            match self.list_kind(kind, &mut chats).await {
                Err(ChannelError::ChatRefused { reason, .. }) => {
                    tracing::warn!(
                        channel.id = %self.channel, kind, reason,
                        "chats of this kind can't be listed; those that were heard before are read"
                    );
                }
                listed => listed?,
            }
        }
        Ok(chats)
    }

    async fn list_kind(&self, kind: &str, chats: &mut Vec<Place>) -> Result<(), ChannelError> {
        let mut cursor = None;
        for _ in 0..LIST_PAGES_MAX {
            let mut arguments = vec![
                ("types", kind.to_owned()),
                ("exclude_archived", "true".to_owned()),
                ("limit", LIST_PAGE.to_string()),
            ];
            arguments.extend(cursor.take().map(|cursor| ("cursor", cursor)));
            let answer = self.list_page(&arguments).await?;
            let listed = answer.channels.iter();
            chats.extend(listed.filter_map(|chat| Some(place_of(chat.id.as_deref()?, chat))));
            cursor = next_cursor(&answer);
            if cursor.is_none() {
                return Ok(());
            }
        }
        tracing::warn!(channel.id = %self.channel, kind, "there are more chats than are listed");
        Ok(())
    }

    /// A page of the list, requested until Slack gives it, so that earlier pages are not lost. A refusal costs only the
    /// wait it names. The list is short and read once at a start, which waits for it, so no pace is learnt.
    async fn list_page(&self, arguments: &[(&str, String)]) -> Result<HistoryAnswer, ChannelError> {
        loop {
            self.list.wait_turn().await;
            match self.call(LIST, arguments).await {
                Err(ChannelError::RetryAfter { wait_ms, .. }) => {
                    tracing::debug!(channel.id = %self.channel, wait_ms, "Slack asks to list chats more slowly");
                    self.list
                        .rest(Instant::now(), Duration::from_millis(wait_ms));
                }
                answer => return answer,
            }
        }
    }

    async fn read_page(&self, request: &HistoryRequest) -> Result<HistoryPage, ChannelError> {
        let arguments = arguments(request);
        let answer = if request.thread.is_some() {
            self.read("conversations.replies", &arguments, &self.replies)
                .await
        } else {
            self.read("conversations.history", &arguments, &self.history)
                .await
        };
        let answer = match answer {
            // The thread's root and all replies are gone.
            Err(ChannelError::Rejected { reason, .. }) if reason == "thread_not_found" => {
                return Ok(HistoryPage::default());
            }
            answer => answer?,
        };
        let next_cursor = next_cursor(&answer);
        let received_at_ms = self.api.clock().now_ms();
        let past = |message| {
            past_message(
                &self.channel,
                &request.place,
                message,
                &self.identity,
                received_at_ms,
            )
        };
        Ok(HistoryPage {
            messages: answer.messages.0.into_iter().filter_map(past).collect(),
            next_cursor,
        })
    }

    /// One call, in its turn.
    async fn read(
        &self,
        method: &'static str,
        arguments: &[(&str, String)],
        pace: &Pace,
    ) -> Result<HistoryAnswer, ChannelError> {
        pace.wait_turn().await;
        // Other parts call the method, too: a wait that they were told holds here.
        self.api.rest_left(method)?;
        let answer = self.call(method, arguments).await;
        if let Err(ChannelError::RetryAfter { wait_ms, .. }) = &answer {
            pace.refuse(Instant::now(), Duration::from_millis(*wait_ms));
        }
        answer
    }

    /// One call. A missing scope concerns one kind of chat, so it counts as a refusal of that chat.
    async fn call(
        &self,
        method: &'static str,
        arguments: &[(&str, String)],
    ) -> Result<HistoryAnswer, ChannelError> {
        match self.api.read(method, Token::Bot, arguments).await {
            Err(ChannelError::Unauthorized { operation, reason })
                if reason.starts_with("missing_scope") =>
            {
                Err(ChannelError::ChatRefused { operation, reason })
            }
            answer => answer,
        }
    }
}

impl HistoryReader for SlackHistory {
    fn chats(&self) -> BoxFuture<'_, Result<Vec<Place>, ChannelError>> {
        Box::pin(self.list_all())
    }

    fn page<'a>(
        &'a self,
        request: &'a HistoryRequest,
    ) -> BoxFuture<'a, Result<HistoryPage, ChannelError>> {
        Box::pin(self.read_page(request))
    }
}

fn arguments(request: &HistoryRequest) -> Vec<(&'static str, String)> {
    let mut arguments = vec![
        ("channel", request.place.chat.clone()),
        ("oldest", ts_of(request.from_ms)),
        // A bound in milliseconds includes all microseconds of that millisecond.
        ("latest", ts_of(request.until_ms.saturating_add(1))),
        ("inclusive", "true".to_owned()),
        // Our own posts are recognised by the marker in their metadata.
        ("include_all_metadata", "true".to_owned()),
        ("limit", request.limit.clamp(1, PAGE_MAX).to_string()),
    ];
    arguments.extend(request.thread.clone().map(|root| ("ts", root)));
    arguments.extend(request.cursor.clone().map(|cursor| ("cursor", cursor)));
    arguments
}

fn next_cursor(answer: &HistoryAnswer) -> Option<String> {
    let ResponseMetadata { next_cursor } = answer.response_metadata.as_ref()?;
    next_cursor.0.clone().filter(|cursor| !cursor.is_empty())
}

/// A message of a history as the envelope of its event. Pure. `None` for messages that nobody wrote.
pub(super) fn past_message(
    channel: &str,
    place: &Place,
    mut message: Map<String, Value>,
    identity: &Identity,
    received_at_ms: i64,
) -> Option<PastMessage> {
    let message_id = message.get("ts")?.as_str()?.to_owned();
    let (sent_at_ms, _) = time_of(&message_id)?;
    let time = |value: Option<&Value>| Some(time_of(value?.as_str()?)?.0);
    let edited_at_ms = time(message.get("edited").and_then(|edited| edited.get("ts")));
    let replied_at_ms = time(message.get("latest_reply"));
    message.insert("channel".to_owned(), json!(place.chat));
    if let Some(kind) = place.kind.and_then(channel_type) {
        message.insert("channel_type".to_owned(), json!(kind));
    }
    let payload = json!({
        "type": "event_callback",
        "is_ext_shared_channel": place.is_shared,
        "event": message,
    });
    let delivery = SlackDelivery {
        channel,
        kind: "events_api",
        envelope_id: &format!("history-{message_id}"),
        payload: &payload.to_string(),
        received_at_ms,
    };
    let envelope = translate(&delivery, identity);
    let event = match envelope.event {
        // A message edited since has an edit marker: if it was captured before, this is an edit of it.
        Event::Posted(message) if message.edit_marker.is_some() => Event::Edited(message),
        event @ (Event::Posted(_)
        | Event::Edited(_)
        | Event::Deleted { .. }
        | Event::OwnPost { .. }) => event,
        // Joins and renames of long ago say nothing about today.
        _ => return None,
    };
    Some(PastMessage {
        message_id,
        sent_at_ms,
        edited_at_ms,
        replied_at_ms,
        envelope: Envelope { event, ..envelope },
    })
}

/// The `channel_type` that an event of that kind of chat has.
fn channel_type(kind: ChatKind) -> Option<&'static str> {
    match kind {
        ChatKind::Direct => Some("im"),
        ChatKind::GroupDirect => Some("mpim"),
        ChatKind::Private => Some("group"),
        ChatKind::Public => Some("channel"),
        ChatKind::Broadcast => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use vocative_contract::identity::Platform;

    fn identity() -> Identity {
        Identity {
            platform: Platform::Slack,
            account: "T1".to_owned(),
            account_name: "Acme".to_owned(),
            user_id: "UBOT".to_owned(),
            other_ids: vec!["BBOT".to_owned()],
            username: None,
            display_name: "Bot".to_owned(),
            warnings: vec![],
            organisation: None,
        }
    }

    fn past(message: &Value) -> Option<PastMessage> {
        let place = Place {
            chat: "C1".to_owned(),
            kind: Some(ChatKind::Private),
            ..Place::default()
        };
        let message = message.as_object().unwrap().clone();
        past_message("acme", &place, message, &identity(), 9)
    }

    #[test]
    fn a_message_of_a_history_is_what_its_event_would_have_been() {
        let said = json!({"type": "message", "user": "U1", "text": "hi", "ts": "1763712000.000100",
            "thread_ts": "1763712000.000100", "latest_reply": "1763712009.000100", "reply_count": 1});
        let past = past(&said).unwrap();
        let live = json!({"type": "event_callback", "is_ext_shared_channel": false, "event": {
            "type": "message", "user": "U1", "text": "hi", "ts": "1763712000.000100",
            "thread_ts": "1763712000.000100", "channel": "C1", "channel_type": "group"}});
        let delivery = SlackDelivery {
            channel: "acme",
            kind: "events_api",
            envelope_id: "e1",
            payload: &live.to_string(),
            received_at_ms: 9,
        };
        assert_eq!(past.envelope.event, translate(&delivery, &identity()).event);
        assert_eq!(past.sent_at_ms, 1_763_712_000_000);
        assert_eq!(past.replied_at_ms, Some(1_763_712_009_000));
    }

    #[test]
    fn an_edited_one_is_an_edit_and_ours_confirms_itself() {
        let edited = json!({"type": "message", "user": "U1", "text": "hi", "ts": "1763712000.000100",
            "edited": {"user": "U1", "ts": "1763712005.000000"}});
        let edited = past(&edited).unwrap();
        assert!(matches!(edited.envelope.event, Event::Edited(_)));
        assert_eq!(edited.edited_at_ms, Some(1_763_712_005_000));
        let ours = json!({"type": "message", "user": "UBOT", "text": "hi", "ts": "1763712000.000100",
            "metadata": {"event_type": "vocative_reply", "event_payload": {"outbox_id": "o1"}}});
        let Event::OwnPost { marker, .. } = past(&ours).unwrap().envelope.event else {
            panic!("it is ours");
        };
        assert_eq!(marker.as_deref(), Some("o1"));
    }

    #[test]
    fn what_nobody_said_is_left_out_and_a_placeholder_is_a_delete() {
        let join = json!({"type": "message", "subtype": "channel_join", "user": "UBOT",
            "text": "joined", "ts": "1763712000.000100"});
        assert_eq!(past(&join), None);
        assert_eq!(past(&json!({"type": "message", "text": "no ts"})), None);
        let gone = json!({"type": "message", "subtype": "tombstone", "user": "USLACKBOT",
            "text": "gone", "ts": "1763712000.000100", "thread_ts": "1763712000.000100"});
        let event = past(&gone).unwrap().envelope.event;
        assert!(matches!(event, Event::Deleted { .. }), "{event:?}");
    }
}
