//! What Slack sends, as far as it is read.
//!
//! Slack leaves fields out, sets them to null and changes their types between surfaces. A field that
//! cannot be read is absent, never an error: only JSON that is no JSON fails.

use std::collections::HashMap;
use std::ops::Deref;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// A field that is absent when it is missing, null or of another type.
#[derive(Debug)]
pub(super) struct Maybe<T>(pub(super) Option<T>);

impl<T> Default for Maybe<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Deref for Maybe<T> {
    type Target = Option<T>;

    fn deref(&self) -> &Option<T> {
        &self.0
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Maybe<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(read(Value::deserialize(deserializer)?)))
    }
}

/// A value of that type. A derived struct would also be read from a list of its fields, which Slack
/// never sends: a list is of another type.
fn read<T: DeserializeOwned>(value: Value) -> Option<T> {
    let value = Some(value).filter(|value| !value.is_array())?;
    serde_json::from_value(value).ok()
}

/// An id or a `ts`: absent when it is missing, blank or no string.
#[derive(Debug, Default)]
pub(super) struct Id(pub(super) Option<String>);

impl Deref for Id {
    type Target = Option<String>;

    fn deref(&self) -> &Option<String> {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Maybe(id) = Maybe::<String>::deserialize(deserializer)?;
        Ok(Self(id.filter(|id| !is_blank(id))))
    }
}

fn is_blank(id: &str) -> bool {
    id.trim().is_empty()
}

/// A list without the elements that cannot be read; empty when it is no list.
#[derive(Debug)]
pub(super) struct List<T>(pub(super) Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Deref for List<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Value::Array(values) = Value::deserialize(deserializer)? else {
            return Ok(Self::default());
        };
        Ok(Self(values.into_iter().filter_map(read).collect()))
    }
}

/// One text frame of a socket.
#[derive(Debug, Deserialize)]
pub(super) struct Frame<'a> {
    /// `hello`, `disconnect`, `events_api`, `slash_commands`, `interactive`, ...
    #[serde(default, rename = "type")]
    pub(super) kind: Maybe<String>,
    /// What an acknowledgement names.
    #[serde(default)]
    pub(super) envelope_id: Maybe<String>,
    /// Whether an acknowledgement may say more than that it was taken.
    #[serde(default)]
    pub(super) accepts_response_payload: Maybe<bool>,
    /// The payload, unread.
    #[serde(default, borrow)]
    pub(super) payload: Option<&'a RawValue>,
    /// Why the server disconnects.
    #[serde(default)]
    pub(super) reason: Maybe<String>,
    /// Open sockets of the app, in `hello`.
    #[serde(default)]
    pub(super) num_connections: Maybe<u64>,
    /// Details of `hello`.
    #[serde(default)]
    pub(super) debug_info: Maybe<DebugInfo>,
}

/// Details of `hello`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct DebugInfo {
    /// Seconds until Slack refreshes the connection.
    pub(super) approximate_connection_time: Maybe<f64>,
}

/// The payload of an `events_api` envelope (also the body of an Events API request).
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct EventPayload {
    /// `event_callback`, `app_rate_limited`, ...
    #[serde(rename = "type")]
    pub(super) kind: Maybe<String>,
    /// The installations that the event is sent to, ours among them.
    pub(super) authorizations: List<Authorization>,
    /// Whether the event happened in a Slack Connect channel.
    pub(super) is_ext_shared_channel: Maybe<bool>,
    /// The event.
    pub(super) event: Maybe<SlackEvent>,
}

/// An installation of the app.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Authorization {
    pub(super) team_id: Id,
    pub(super) enterprise_id: Id,
    /// The user that the app acts as there.
    pub(super) user_id: Id,
}

/// An inner event, or a message inside one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SlackEvent {
    #[serde(rename = "type")]
    pub(super) kind: Maybe<String>,
    pub(super) subtype: Maybe<String>,
    pub(super) channel: Maybe<IdOr<ChannelObject>>,
    pub(super) channel_type: Maybe<String>,
    pub(super) user: Maybe<IdOr<UserObject>>,
    pub(super) bot_id: Id,
    pub(super) bot_profile: Maybe<BotProfile>,
    pub(super) username: Maybe<String>,
    pub(super) user_profile: Maybe<UserProfile>,
    pub(super) team: Id,
    pub(super) user_team: Id,
    pub(super) source_team: Id,
    pub(super) text: Maybe<String>,
    pub(super) blocks: List<LayoutBlock>,
    pub(super) attachments: List<LegacyAttachment>,
    pub(super) files: List<File>,
    pub(super) ts: Id,
    pub(super) thread_ts: Id,
    pub(super) event_ts: Id,
    pub(super) deleted_ts: Id,
    pub(super) edited: Maybe<Edited>,
    pub(super) metadata: Maybe<Metadata>,
    /// Of a message that takes words at its end, also afterwards.
    pub(super) streaming_state: Maybe<String>,
    pub(super) message: Maybe<Box<SlackEvent>>,
    pub(super) previous_message: Maybe<Box<SlackEvent>>,
    pub(super) name: Maybe<String>,
    pub(super) old_channel_id: Id,
    pub(super) new_channel_id: Id,
    pub(super) tokens: Maybe<RevokedTokens>,
    pub(super) tab: Maybe<String>,
    /// Of a reaction: its name without colons.
    pub(super) reaction: Maybe<String>,
    /// What a reaction is to.
    pub(super) item: Maybe<ReactionItem>,
    pub(super) assistant_thread: Maybe<AssistantThread>,
}

/// What a reaction is to: a message, or a file.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ReactionItem {
    pub(super) channel: Id,
    pub(super) ts: Id,
}

/// The thread that a person opened with an app's agent view.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AssistantThread {
    pub(super) channel_id: Id,
    pub(super) thread_ts: Id,
    pub(super) user_id: Id,
}

/// A plain id, or the whole object (Slack sends both under one name).
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum IdOr<T> {
    Id(String),
    Object(T),
}

/// A channel inside an event, and the answer of `conversations.info`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ChannelObject {
    pub(super) id: Id,
    pub(super) name: Maybe<String>,
    pub(super) is_im: Maybe<bool>,
    pub(super) is_mpim: Maybe<bool>,
    pub(super) is_private: Maybe<bool>,
    pub(super) is_group: Maybe<bool>,
    pub(super) is_ext_shared: Maybe<bool>,
    pub(super) is_member: Maybe<bool>,
}

/// A user inside an event, and the answer of `users.info`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct UserObject {
    pub(super) id: Id,
    pub(super) team_id: Id,
    pub(super) name: Maybe<String>,
    pub(super) username: Maybe<String>,
    pub(super) real_name: Maybe<String>,
    pub(super) is_bot: Maybe<bool>,
    pub(super) is_restricted: Maybe<bool>,
    pub(super) is_ultra_restricted: Maybe<bool>,
    pub(super) is_stranger: Maybe<bool>,
    pub(super) enterprise_user: Maybe<EnterpriseUser>,
    pub(super) profile: Maybe<UserProfile>,
}

/// The person behind a user of an Enterprise organisation.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct EnterpriseUser {
    pub(super) enterprise_id: Id,
    pub(super) teams: List<String>,
}

/// The profile beside a message or inside a user.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct UserProfile {
    pub(super) display_name: Maybe<String>,
    pub(super) real_name: Maybe<String>,
    pub(super) name: Maybe<String>,
    pub(super) team: Maybe<String>,
}

/// Who a bot is.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct BotProfile {
    pub(super) name: Maybe<String>,
    pub(super) team_id: Id,
}

/// The mark of an edit.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Edited {
    pub(super) ts: Id,
}

/// Message metadata as its poster set it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Metadata {
    pub(super) event_type: Maybe<String>,
    pub(super) event_payload: Maybe<MetadataPayload>,
}

/// The part of the metadata that is ours.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MetadataPayload {
    pub(super) outbox_id: Id,
}

/// A file of a message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct File {
    pub(super) id: Id,
    pub(super) name: Maybe<String>,
    pub(super) title: Maybe<String>,
    pub(super) mimetype: Maybe<String>,
    pub(super) subtype: Maybe<String>,
    pub(super) mode: Maybe<String>,
    pub(super) size: Maybe<u64>,
    pub(super) duration_ms: Maybe<u64>,
}

impl File {
    /// The id of a file that is still there; a deleted one stays listed in the message.
    pub(super) fn live_id(&self) -> Option<&str> {
        let is_gone = self.mode.as_deref() == Some("tombstone");
        self.id.as_deref().filter(|_| !is_gone)
    }
}

/// An attachment of the older kind: what bots post, what people share, and link previews.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct LegacyAttachment {
    pub(super) is_share: Maybe<bool>,
    pub(super) from_url: Maybe<String>,
    pub(super) original_url: Maybe<String>,
    pub(super) author_name: Maybe<String>,
    pub(super) pretext: Maybe<String>,
    pub(super) title: Maybe<String>,
    pub(super) text: Maybe<String>,
    pub(super) fallback: Maybe<String>,
}

/// A layout block.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct LayoutBlock {
    #[serde(rename = "type")]
    pub(super) kind: Maybe<String>,
    pub(super) text: Maybe<IdOr<TextObject>>,
    pub(super) fields: List<TextObject>,
    pub(super) elements: List<Element>,
}

/// Text of a section, a header or a context.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TextObject {
    #[serde(rename = "type")]
    pub(super) kind: Maybe<String>,
    pub(super) text: Maybe<String>,
}

/// A container or a leaf of a rich text.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Element {
    #[serde(rename = "type")]
    pub(super) kind: Maybe<String>,
    pub(super) elements: List<Element>,
    pub(super) style: Maybe<IdOr<Style>>,
    pub(super) indent: Maybe<u64>,
    pub(super) offset: Maybe<u64>,
    pub(super) text: Maybe<String>,
    pub(super) url: Maybe<String>,
    pub(super) user_id: Id,
    pub(super) usergroup_id: Id,
    pub(super) channel_id: Id,
    pub(super) team_id: Id,
    pub(super) range: Maybe<String>,
    pub(super) name: Maybe<String>,
    pub(super) unicode: Maybe<String>,
    pub(super) value: Maybe<String>,
    pub(super) timestamp: Maybe<i64>,
    pub(super) fallback: Maybe<String>,
}

/// How a leaf looks.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Style {
    pub(super) bold: bool,
    pub(super) italic: bool,
    pub(super) strike: bool,
    pub(super) code: bool,
}

/// `tokens_revoked`: the users whose tokens were revoked.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RevokedTokens {
    pub(super) bot: List<String>,
}

/// The payload of a `slash_commands` envelope.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SlashPayload {
    pub(super) team_id: Id,
    pub(super) enterprise_id: Id,
    pub(super) channel_id: Id,
    pub(super) channel_name: Maybe<String>,
    pub(super) user_id: Id,
    pub(super) user_name: Maybe<String>,
    pub(super) command: Id,
    pub(super) text: Maybe<String>,
    pub(super) trigger_id: Id,
}

/// The payload of an `interactive` envelope.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct InteractivePayload {
    #[serde(rename = "type")]
    pub(super) kind: Maybe<String>,
    pub(super) trigger_id: Id,
    pub(super) user: Maybe<UserObject>,
    pub(super) channel: Maybe<ChannelObject>,
    pub(super) container: Maybe<ButtonContainer>,
    pub(super) message: Maybe<ClickedMessage>,
    pub(super) actions: List<ButtonAction>,
    pub(super) callback_id: Maybe<String>,
    pub(super) view: Maybe<View>,
}

/// Where a pressed button was.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ButtonContainer {
    #[serde(rename = "type")]
    pub(super) kind: Maybe<String>,
    pub(super) channel_id: Id,
    pub(super) message_ts: Id,
    pub(super) thread_ts: Id,
    pub(super) is_ephemeral: Maybe<bool>,
}

/// The author of the message with the button. Absent for a message that only one person sees.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ClickedMessage {
    pub(super) user: Id,
    pub(super) bot_id: Id,
}

/// A button that was pressed.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ButtonAction {
    #[serde(rename = "type")]
    pub(super) kind: Maybe<String>,
    pub(super) action_id: Maybe<String>,
    pub(super) value: Maybe<String>,
}

/// A modal or the Home tab.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct View {
    pub(super) callback_id: Maybe<String>,
    pub(super) private_metadata: Maybe<String>,
    pub(super) state: Maybe<ViewState>,
}

/// What a person entered into a modal.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ViewState {
    pub(super) values: Maybe<Value>,
}

impl ViewState {
    /// The text of an input; empty where nothing was entered. `None` = there is no such input.
    pub(super) fn text_of(&self, block: &str, action: &str) -> Option<String> {
        let input = self.values.as_ref()?.get(block)?.get(action)?;
        Some(input["value"].as_str().unwrap_or_default().to_owned())
    }
}

/// The parts of Web API answers that are read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SlackAnswer {
    pub(super) ok: Maybe<bool>,
    pub(super) error: Maybe<String>,
    pub(super) needed: Maybe<String>,
    pub(super) warning: Maybe<String>,
    pub(super) url: Maybe<String>,
    pub(super) team: Maybe<String>,
    pub(super) team_id: Id,
    pub(super) enterprise_id: Id,
    pub(super) user: Maybe<IdOr<UserObject>>,
    pub(super) user_id: Id,
    pub(super) bot_id: Id,
    pub(super) bot: Maybe<BotProfile>,
    pub(super) channel: Maybe<IdOr<ChannelObject>>,
    pub(super) ts: Id,
    pub(super) message_ts: Id,
    pub(super) messages: List<SlackEvent>,
    pub(super) members: List<String>,
    pub(super) response_metadata: Maybe<ResponseMetadata>,
}

/// The answer of `files.info`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct FileInfoAnswer {
    pub(super) file: Maybe<FileInfo>,
}

/// A file as `files.info` describes it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct FileInfo {
    pub(super) mode: Maybe<String>,
    pub(super) is_external: Maybe<bool>,
    pub(super) name: Maybe<String>,
    pub(super) title: Maybe<String>,
    pub(super) subtype: Maybe<String>,
    pub(super) mimetype: Maybe<String>,
    pub(super) size: Maybe<u64>,
    pub(super) url_private: Maybe<String>,
    pub(super) url_private_download: Maybe<String>,
    pub(super) shares: Maybe<FileShares>,
}

/// The messages that show a file, by channel.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct FileShares {
    pub(super) public: HashMap<String, Vec<FileShare>>,
    pub(super) private: HashMap<String, Vec<FileShare>>,
}

/// A message that shows a file.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct FileShare {
    pub(super) ts: Id,
}

/// The answer of `files.getUploadURLExternal`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct UploadAnswer {
    pub(super) file_id: Id,
    pub(super) upload_url: Maybe<String>,
}

/// The answer of a method that reads or lists rooms; messages stay as they were sent.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct HistoryAnswer {
    pub(super) messages: List<serde_json::Map<String, Value>>,
    pub(super) channels: List<ChannelObject>,
    pub(super) response_metadata: Maybe<ResponseMetadata>,
}

/// Where the next page is.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ResponseMetadata {
    pub(super) next_cursor: Maybe<String>,
}

impl SlackEvent {
    /// The plain id of the channel, however it was sent.
    pub(super) fn channel_id(&self) -> Option<&str> {
        match self.channel.as_ref()? {
            IdOr::Id(id) => Some(id.as_str()),
            IdOr::Object(channel) => channel.id.as_deref(),
        }
        .filter(|id| !is_blank(id))
    }

    /// The plain id of the user, however it was sent.
    pub(super) fn user_id(&self) -> Option<&str> {
        match self.user.as_ref()? {
            IdOr::Id(id) => Some(id.as_str()),
            IdOr::Object(user) => user.id.as_deref(),
        }
        .filter(|id| !is_blank(id))
    }

    /// The marker that a post of ours carries.
    pub(super) fn marker(&self) -> Option<&str> {
        let metadata = self.metadata.as_ref()?;
        let is_ours = metadata.event_type.as_deref() == Some(super::METADATA_EVENT_TYPE);
        let payload = metadata.event_payload.as_ref().filter(|_| is_ours)?;
        payload.outbox_id.as_deref()
    }
}

impl UserObject {
    /// The name people see.
    pub(super) fn display_name(&self) -> Option<String> {
        let profile = self.profile.as_ref();
        profile
            .and_then(UserProfile::display_name)
            .or_else(|| super::text::name(self.real_name.as_deref()))
            .or_else(|| super::text::name(self.name.as_deref()))
            .or_else(|| super::text::name(self.username.as_deref()))
    }
}

impl UserProfile {
    /// The name people see.
    pub(super) fn display_name(&self) -> Option<String> {
        [&self.display_name, &self.real_name, &self.name]
            .into_iter()
            .find_map(|name| super::text::name(name.as_deref()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn nulls_unknown_fields_and_other_types_are_absent() {
        let json = r#"{"type":"message","user":null,"text":7,"blocks":"none","files":[1,{"id":"F1","size":"big"}],
            "channel":{"id":"C1","name":"ops"},"edited":"no","surprise":{"a":1},"previous_message":"x"}"#;
        let event: SlackEvent = serde_json::from_str(json).unwrap();
        assert_eq!(event.user_id(), None);
        assert_eq!(event.channel_id(), Some("C1"));
        assert_eq!(*event.text, None);
        assert!(event.blocks.is_empty() && event.edited.is_none());
        assert_eq!(event.files.len(), 1);
        assert_eq!(event.files[0].id.as_deref(), Some("F1"));
    }

    #[test]
    fn a_user_or_a_channel_is_an_id_or_an_object() {
        let read = |json: &str| serde_json::from_str::<SlackEvent>(json).unwrap();
        assert_eq!(read(r#"{"user":"U1"}"#).user_id(), Some("U1"));
        assert_eq!(read(r#"{"user":{"id":"U1"}}"#).user_id(), Some("U1"));
        assert_eq!(read(r#"{"user":""}"#).user_id(), None);
        assert_eq!(read(r#"{"channel":"C1"}"#).channel_id(), Some("C1"));
        assert_eq!(read(r#"{"channel":{"id":" "}}"#).channel_id(), None);
    }

    #[test]
    fn a_blank_id_is_none_and_a_list_is_no_object() {
        let command: SlashPayload =
            serde_json::from_str(r#"{"channel_id":"","user_id":" ","trigger_id":7}"#).unwrap();
        let ids = [command.channel_id, command.user_id, command.trigger_id];
        assert!(ids.iter().all(|id| id.is_none()), "{ids:?}");
        let event: SlackEvent =
            serde_json::from_str(r#"{"edited":["1.2"],"files":[["F1"],{"id":"F2"}]}"#).unwrap();
        assert!(event.edited.is_none());
        assert_eq!(event.files.len(), 1);
    }

    #[test]
    fn a_marker_counts_only_under_our_event_type() {
        let marker = |kind: &str| {
            let json = format!(
                r#"{{"metadata":{{"event_type":"{kind}","event_payload":{{"outbox_id":"o1"}}}}}}"#
            );
            let event: SlackEvent = serde_json::from_str(&json).unwrap();
            event.marker().map(str::to_owned)
        };
        assert_eq!(marker("vocative_reply").as_deref(), Some("o1"));
        assert_eq!(marker("other_app"), None);
    }

    #[test]
    fn a_hello_is_read_in_both_number_forms() {
        for time in ["18060", "18060.0"] {
            let json = format!(
                r#"{{"type":"hello","num_connections":2,"debug_info":{{"approximate_connection_time":{time}}}}}"#
            );
            let frame: Frame<'_> = serde_json::from_str(&json).unwrap();
            assert_eq!(*frame.num_connections, Some(2));
            let info = frame.debug_info.0.unwrap();
            assert_eq!(*info.approximate_connection_time, Some(18_060.0));
        }
    }
}
