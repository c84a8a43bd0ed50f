//! A recorded transcript, run through the real store and assembler.
//!
//! The JSON has the field names of the system the transcript was recorded from; a case of its
//! golden vectors is such a transcript. Nothing is sorted, filtered or counted here: messages are
//! captured in the order given into a store in memory, and the history is read back. A participant
//! has one name: where messages of one participant disagree, the last name given counts for all.

use std::collections::HashMap;

use chrono::DateTime;
use serde_json::Value;
use vocative_contract::envelope::{Attachment, Place, Sender, SenderKind};
use vocative_contract::identity::Platform;

use vocative_core::addressing::{RunVerdict, Verdict};
use vocative_core::ids::{AccountId, AgentName, ConversationId};
use vocative_core::options::{AssemblerOptions, Profile};
use vocative_core::place::Scope;
use vocative_core::prompting::{
    AgentView, ClassEstimate, Prompt, RunView, TokenCounter, Utf16Div4, assemble_with_summary,
    history_query,
};
use vocative_core::turn::ParticipantKind;
use vocative_store::contract::{AccountBinding, Captured, NewMessage};
use vocative_store::{Store, StoreError, StoreOptions};

/// Why a transcript can't be run.
#[derive(Debug, thiserror::Error)]
pub enum TranscriptError {
    /// It is no JSON.
    #[error("the transcript is not JSON: {what}")]
    NotJson {
        /// What the parser says.
        what: String,
    },
    /// A field is missing or has the wrong shape.
    #[error("{path}: {what}")]
    Field {
        /// Where, like `messages[3].timestamp`.
        path: String,
        /// What is wrong and what is expected.
        what: String,
    },
    /// The store refused.
    #[error("the store failed while the transcript was captured")]
    Store(#[from] StoreError),
}

/// A parsed transcript.
#[derive(Clone, Debug, PartialEq)]
pub struct Transcript {
    /// The conversation the prompt is for; messages of others are captured, and stay out.
    pub conversation: String,
    /// The agent the prompt is for.
    pub agent: AgentView,
    /// The options; those left out have the profile's defaults.
    pub options: AssemblerOptions,
    /// The time of the run, in milliseconds since the Unix epoch.
    pub now_ms: Option<i64>,
    /// What a summariser says about the older turns.
    pub summariser_output: Option<String>,
    /// The messages, in the order they were captured.
    pub messages: Vec<StoredMessage>,
}

/// One message of a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredMessage {
    /// Its id: one more message with it in the same conversation is ignored.
    pub id: String,
    /// The conversation it is in.
    pub conversation: String,
    /// What its author is.
    pub kind: ParticipantKind,
    /// Its author's id.
    pub participant: String,
    /// Its author's name, which may be empty.
    pub display_name: Option<String>,
    /// The text.
    pub content: String,
    /// When, in milliseconds since the Unix epoch.
    pub sent_at_ms: i64,
    /// Microseconds within that millisecond.
    pub sent_at_us: i64,
    /// What kind of place it was said in.
    pub scope: Scope,
    /// The agents its metadata mentions.
    pub mentions: Vec<String>,
    /// What an export carries further.
    pub further: Further,
}

/// What a message of an export carries besides; a message of a recorded case has nothing of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Further {
    /// The platform's order within its instant; else the microseconds of the timestamp.
    pub ordinal: Option<i64>,
    /// Its author's username.
    pub username: Option<String>,
    /// The message it replies to.
    pub reply_to: Option<String>,
    /// The passage of it that is quoted.
    pub quote: Option<String>,
    /// What was attached.
    pub attachments: Vec<Attachment>,
    /// The conversation a thread hangs on, and the message in it.
    pub thread: Option<(String, String)>,
    /// Names for its mention tokens: id and name.
    pub names: Vec<(String, String)>,
    /// Those of its mention tokens that are of the bot itself.
    pub bot_ids: Vec<String>,
    /// Whether it was deleted; it is not captured then.
    pub is_deleted: bool,
}

/// Runs a transcript through a store in memory and the assembler.
///
/// # Errors
/// [`TranscriptError`] for a transcript that is malformed, naming the field, or a store that fails.
pub async fn run_transcript(text: &str) -> Result<Prompt, TranscriptError> {
    let transcript = parse(text)?;
    let counter = counter_of(transcript.options.profile);
    let store = open_store()?;
    let prompt = prompt_of(&store, transcript, counter).await;
    store.close().await?;
    prompt
}

async fn prompt_of(
    store: &Store,
    transcript: Transcript,
    counter: &dyn TokenCounter,
) -> Result<Prompt, TranscriptError> {
    let account = bind(store).await?;
    let mut conversations: HashMap<String, ConversationId> = HashMap::new();
    for message in transcript.messages {
        let name = message.conversation.clone();
        let captured = store.capture_message(new_message(account, message)).await?;
        if let Captured::New(turn) = captured {
            conversations.insert(name, turn.conversation);
        }
    }
    let Some(conversation) = conversations.get(&transcript.conversation) else {
        return Ok(Prompt::empty(counter));
    };
    let scene = TranscriptScene {
        store,
        conversation: *conversation,
        agent: &transcript.agent,
        options: &transcript.options,
        now_ms: transcript.now_ms.unwrap_or_default(),
    };
    scene
        .assemble(counter, transcript.summariser_output.as_deref())
        .await
}

/// A captured transcript.
pub(super) struct TranscriptScene<'a> {
    pub(super) store: &'a Store,
    pub(super) conversation: ConversationId,
    pub(super) agent: &'a AgentView,
    pub(super) options: &'a AssemblerOptions,
    pub(super) now_ms: i64,
}

impl TranscriptScene<'_> {
    /// Reads it back and assembles.
    pub(super) async fn assemble(
        &self,
        counter: &dyn TokenCounter,
        summariser_output: Option<&str>,
    ) -> Result<Prompt, TranscriptError> {
        let query = history_query(
            self.conversation,
            RunView::default(),
            &self.agent.name,
            self.options,
            self.now_ms,
        );
        let history = self.store.history(query).await?;
        Ok(assemble_with_summary(
            &history,
            self.agent,
            self.options,
            counter,
            summariser_output,
        ))
    }
}

/// The account that transcripts are captured under.
pub(super) async fn bind(store: &Store) -> Result<AccountId, StoreError> {
    let binding = AccountBinding {
        channel: "transcript".to_owned(),
        platform: Platform::Slack,
        account: "transcript".to_owned(),
        name: "transcript".to_owned(),
    };
    store.bind_account(binding, 0).await
}

/// A store that is gone with its handle.
pub(super) fn open_store() -> Result<Store, StoreError> {
    let options = StoreOptions {
        path: None,
        readers: 1,
        page_cache_kib: 1_024,
    };
    Ok(Store::open(&options, 0)?.0)
}

/// Who counts the tokens of a profile.
pub(super) fn counter_of(profile: Profile) -> &'static dyn TokenCounter {
    match profile {
        Profile::Vocative => &ClassEstimate,
        Profile::Toolpack => &Utf16Div4,
    }
}

pub(super) fn new_message(account: AccountId, message: StoredMessage) -> NewMessage {
    let further = message.further;
    let (chat, thread) = match further.thread {
        Some((parent, root)) => (parent, Some(root)),
        None => (message.conversation, None),
    };
    let mentions = message.mentions.into_iter().map(AgentName::trusted);
    let verdict = Verdict {
        is_admitted: true,
        addressed_to: mentions.collect(),
        runs: RunVerdict::TooOld,
        ..Verdict::default()
    };
    NewMessage {
        account,
        place: Place {
            chat,
            thread,
            ..Place::default()
        },
        scope_override: Some(message.scope),
        message_id: message.id,
        sender: Sender {
            id: message.participant,
            display_name: message.display_name,
            username: further.username,
            kind: match message.kind {
                ParticipantKind::User => SenderKind::Person,
                ParticipantKind::Agent => SenderKind::Bot,
                ParticipantKind::System => SenderKind::System,
            },
            is_stranger: false,
        },
        sender_kind: message.kind,
        text: message.content,
        attachments: further.attachments,
        reply_to: further.reply_to,
        quote: further.quote,
        album: None,
        sent_at_ms: message.sent_at_ms,
        ordinal: further.ordinal.unwrap_or(message.sent_at_us),
        is_edit: false,
        edit_marker: None,
        received_at_ms: message.sent_at_ms,
        tokens: None,
        keep_revisions: false,
        raw: None,
        judge_follow_up: None,
        judge: Box::new(move |_| verdict),
    }
}

/// Parses a transcript.
///
/// # Errors
/// [`TranscriptError::NotJson`], or [`TranscriptError::Field`] naming message and field.
pub fn parse(text: &str) -> Result<Transcript, TranscriptError> {
    let json: Value = serde_json::from_str(text).map_err(|error| TranscriptError::NotJson {
        what: error.to_string(),
    })?;
    let root = TranscriptField::root(&json);
    root.object()?;
    let agent_id = root.required("agentId")?.text()?;
    let options = options(&root)?;
    let now = root.optional("now").map(|now| now.instant()).transpose()?;
    if now.is_none() && options.time_window_minutes.is_some() {
        return Err(root
            .child("now", &Value::Null)
            .error("a time window needs the time of the run, like 2026-06-15T12:00:00Z"));
    }
    let messages = root.required("messages")?.items()?;
    let summariser_output = root
        .optional("summarizer")
        .and_then(|summarizer| summarizer.optional("output"))
        .map(|output| output.text())
        .transpose()?;
    Ok(Transcript {
        conversation: root.required("conversationId")?.text()?,
        agent: AgentView {
            display_name: root
                .optional("agentName")
                .map_or_else(|| Ok(agent_id.clone()), |name| name.text())?,
            name: AgentName::trusted(agent_id),
            platform_ids: options.agent_aliases.clone(),
        },
        options,
        now_ms: now.map(|(ms, _)| ms),
        summariser_output,
        messages: messages.iter().map(message).collect::<Result<_, _>>()?,
    })
}

/// The options that a transcript may set.
const OPTIONS: [&str; 8] = [
    "profile",
    "scope",
    "addressedOnlyMode",
    "timeWindowMinutes",
    "tokenBudget",
    "rollingSummaryThreshold",
    "maxTurnsToLoad",
    "agentAliases",
];

fn options(root: &TranscriptField<'_>) -> Result<AssemblerOptions, TranscriptError> {
    let Some(field) = root.optional("options") else {
        return Ok(AssemblerOptions::toolpack());
    };
    field.object()?;
    field.only(&OPTIONS)?;
    let profile = field
        .optional("profile")
        .map(|profile| match profile.text()?.as_str() {
            "toolpack" => Ok(AssemblerOptions::toolpack()),
            "vocative" => Ok(AssemblerOptions::default()),
            _ => Err(profile.error("expected \"toolpack\" or \"vocative\"")),
        });
    let mut options = profile.unwrap_or_else(|| Ok(AssemblerOptions::toolpack()))?;
    if let Some(scope) = field.optional("scope") {
        options.scope = Some(scope.scope()?);
    }
    if let Some(is_on) = field.optional("addressedOnlyMode") {
        options.addressed_only = is_on
            .value
            .as_bool()
            .ok_or_else(|| is_on.error("expected true or false"))?;
    }
    if let Some(minutes) = field.optional("timeWindowMinutes") {
        let is_fit = |minutes: &f64| minutes.is_finite() && *minutes >= 0.0;
        let minutes = minutes
            .value
            .as_f64()
            .filter(is_fit)
            .ok_or_else(|| minutes.error("expected minutes, 0 or more"))?;
        options.time_window_minutes = Some(minutes);
    }
    for (name, option) in [
        ("tokenBudget", &mut options.token_budget),
        (
            "rollingSummaryThreshold",
            &mut options.rolling_summary_threshold,
        ),
        ("maxTurnsToLoad", &mut options.max_turns_to_load),
    ] {
        if let Some(number) = field.optional(name) {
            *option = number.count()?;
        }
    }
    if let Some(aliases) = field.optional("agentAliases") {
        options.agent_aliases = aliases.texts()?;
    }
    Ok(options)
}

/// One message.
pub(super) fn message(field: &TranscriptField<'_>) -> Result<StoredMessage, TranscriptError> {
    field.object()?;
    let participant = field.required("participant")?;
    participant.object()?;
    let kind = participant.required("kind")?;
    let said_at = field.required("timestamp")?.instant()?;
    let ordered_at = field.optional("orderedAt").map(|at| at.instant());
    let (sent_at_ms, sent_at_us) = ordered_at.transpose()?.unwrap_or(said_at);
    Ok(StoredMessage {
        id: field.required("id")?.text()?,
        conversation: field.required("conversationId")?.text()?,
        kind: ParticipantKind::from_name(&kind.text()?)
            .ok_or_else(|| kind.error("expected \"user\", \"agent\" or \"system\""))?,
        participant: participant.required("id")?.text()?,
        display_name: participant
            .optional("displayName")
            .map(|name| name.text())
            .transpose()?,
        content: field.required("content")?.text()?,
        sent_at_ms,
        sent_at_us,
        scope: field.required("scope")?.scope()?,
        mentions: field
            .optional("metadata")
            .and_then(|metadata| metadata.optional("mentions"))
            .map_or_else(|| Ok(Vec::new()), |mentions| mentions.texts())?,
        further: further(field, &participant)?,
    })
}

fn further(
    field: &TranscriptField<'_>,
    participant: &TranscriptField<'_>,
) -> Result<Further, TranscriptError> {
    let text =
        |of: &TranscriptField<'_>, name: &str| of.optional(name).map(|it| it.text()).transpose();
    let metadata = field.optional("metadata");
    let of_metadata = |name: &str| metadata.as_ref().and_then(|it| it.optional(name));
    let thread = match field.optional("thread") {
        Some(thread) => Some((
            thread.required("conversationId")?.text()?,
            thread.required("root")?.text()?,
        )),
        None => None,
    };
    let attachments = match field.optional("attachments") {
        Some(attachments) => attachments
            .items()?
            .iter()
            .map(attachment)
            .collect::<Result<_, _>>()?,
        None => Vec::new(),
    };
    let ordinal = field.optional("ordinal").map(|ordinal| {
        let number = ordinal.value.as_i64();
        number.ok_or_else(|| ordinal.error("expected a whole number"))
    });
    let is_deleted = field.optional("deleted").map(|deleted| {
        let is_so = deleted.value.as_bool();
        is_so.ok_or_else(|| deleted.error("expected true or false"))
    });
    Ok(Further {
        ordinal: ordinal.transpose()?,
        username: text(participant, "username")?,
        reply_to: text(field, "replyTo")?,
        quote: text(field, "quote")?,
        attachments,
        thread,
        names: of_metadata("names").map_or_else(|| Ok(Vec::new()), |names| names.pairs())?,
        bot_ids: of_metadata("botIds").map_or_else(|| Ok(Vec::new()), |ids| ids.texts())?,
        is_deleted: is_deleted.transpose()?.unwrap_or_default(),
    })
}

fn attachment(field: &TranscriptField<'_>) -> Result<Attachment, TranscriptError> {
    let text = |name: &str| field.optional(name).map(|it| it.text()).transpose();
    let bytes = field.optional("sizeBytes").map(|size| size.count());
    Ok(Attachment {
        kind: field.required("kind")?.text()?,
        file_id: text("fileId")?,
        name: text("name")?,
        mime_type: text("mimeType")?,
        size_bytes: bytes.transpose()?.map(|bytes| bytes as u64),
    })
}

/// A value of the transcript, with the path that leads to it.
pub(super) struct TranscriptField<'a> {
    path: String,
    value: &'a Value,
}

impl<'a> TranscriptField<'a> {
    fn root(value: &'a Value) -> Self {
        Self::at(String::new(), value)
    }

    /// A value that errors name by this path.
    pub(super) fn at(path: String, value: &'a Value) -> Self {
        Self { path, value }
    }

    fn child(&self, name: &str, value: &'a Value) -> Self {
        let dot = if self.path.is_empty() { "" } else { "." };
        Self {
            path: format!("{}{dot}{name}", self.path),
            value,
        }
    }

    /// A member that is there and not null.
    fn optional(&self, name: &str) -> Option<Self> {
        let value = self.value.get(name).filter(|value| !value.is_null())?;
        Some(self.child(name, value))
    }

    fn required(&self, name: &str) -> Result<Self, TranscriptError> {
        self.optional(name)
            .ok_or_else(|| self.child(name, self.value).error("missing"))
    }

    fn object(&self) -> Result<(), TranscriptError> {
        if self.value.is_object() {
            return Ok(());
        }
        Err(self.error("expected an object"))
    }

    /// A name that is not known would be passed over without a word, and be a typing error.
    fn only(&self, known: &[&str]) -> Result<(), TranscriptError> {
        let mut names = self
            .value
            .as_object()
            .into_iter()
            .flat_map(|object| object.keys());
        match names.find(|name| !known.contains(&name.as_str())) {
            Some(name) => Err(self.child(name, self.value).error(&format!(
                "there is no such option; there are {}",
                known.join(", ")
            ))),
            None => Ok(()),
        }
    }

    fn text(&self) -> Result<String, TranscriptError> {
        let text = self.value.as_str().map(str::to_owned);
        text.ok_or_else(|| self.error("expected a string"))
    }

    fn count(&self) -> Result<usize, TranscriptError> {
        let count = self.value.as_u64().and_then(|n| usize::try_from(n).ok());
        count.ok_or_else(|| self.error("expected a whole number, 0 or more"))
    }

    fn scope(&self) -> Result<Scope, TranscriptError> {
        Scope::from_name(&self.text()?)
            .ok_or_else(|| self.error("expected \"channel\", \"thread\" or \"dm\""))
    }

    fn items(&self) -> Result<Vec<Self>, TranscriptError> {
        let items = self.value.as_array();
        let items = items.ok_or_else(|| self.error("expected a list"))?;
        let items = items.iter().enumerate();
        Ok(items
            .map(|(index, value)| Self {
                path: format!("{}[{index}]", self.path),
                value,
            })
            .collect())
    }

    /// The members of an object of strings.
    fn pairs(&self) -> Result<Vec<(String, String)>, TranscriptError> {
        let members = self.value.as_object();
        let members = members.ok_or_else(|| self.error("expected an object"))?;
        let pair =
            |(name, value): (&String, &Value)| Ok((name.clone(), self.child(name, value).text()?));
        members.iter().map(pair).collect()
    }

    fn texts(&self) -> Result<Vec<String>, TranscriptError> {
        self.items()?.iter().map(Self::text).collect()
    }

    /// Milliseconds since the Unix epoch, and the microseconds within the last one.
    fn instant(&self) -> Result<(i64, i64), TranscriptError> {
        let text = self.text()?;
        let instant = DateTime::parse_from_rfc3339(&text).map_err(|_| {
            self.error("expected an ISO 8601 time with offset, like 2026-06-15T12:00:00.000Z")
        })?;
        let us = i64::from(instant.timestamp_subsec_micros() % 1_000);
        Ok((instant.timestamp_millis(), us))
    }

    fn error(&self, what: &str) -> TranscriptError {
        let found = match self.value {
            Value::Null | Value::Object(_) => String::new(),
            Value::Array(_) => ", found a list".to_owned(),
            Value::String(text) => {
                let shown: String = text.chars().take(40).collect();
                format!(", found {shown:?}")
            }
            other => format!(", found {other}"),
        };
        TranscriptError::Field {
            path: if self.path.is_empty() {
                "the transcript".to_owned()
            } else {
                self.path.clone()
            },
            what: format!("{what}{found}"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const MINIMAL: &str = r#"{
        "conversationId": "C1", "agentId": "kael", "options": null, "future": {"a": 1},
        "messages": [{
            "id": "m1", "conversationId": "C1", "content": "hi", "scope": "dm",
            "participant": {"kind": "user", "id": "u1", "displayName": "", "agentType": "x"},
            "timestamp": "2026-06-15T13:00:00.123456+01:00", "metadata": {"mentions": ["kael"]}
        }]
    }"#;

    #[test]
    fn a_minimal_transcript_has_the_toolpack_defaults() {
        assert_eq!(
            parse(MINIMAL).unwrap(),
            Transcript {
                conversation: "C1".to_owned(),
                agent: AgentView {
                    name: AgentName::trusted("kael"),
                    display_name: "kael".to_owned(),
                    platform_ids: Vec::new(),
                },
                options: AssemblerOptions::toolpack(),
                now_ms: None,
                summariser_output: None,
                messages: vec![StoredMessage {
                    id: "m1".to_owned(),
                    conversation: "C1".to_owned(),
                    kind: ParticipantKind::User,
                    participant: "u1".to_owned(),
                    display_name: Some(String::new()),
                    content: "hi".to_owned(),
                    sent_at_ms: 1_781_524_800_123,
                    sent_at_us: 456,
                    scope: Scope::Dm,
                    mentions: vec!["kael".to_owned()],
                    further: Further::default(),
                }],
            }
        );
    }

    #[tokio::test]
    async fn a_transcript_runs_under_either_profile() {
        let vocative = MINIMAL.replace("null", "{\"profile\": \"vocative\"}");
        for (text, expected, counter) in [
            (MINIMAL, ": hi", "utf16_div4"),
            (vocative.as_str(), "u1: hi", "class_v2"),
        ] {
            let prompt = run_transcript(text).await.unwrap();
            assert_eq!(prompt.messages.len(), 1);
            assert_eq!(prompt.messages[0].content, expected);
            assert_eq!(prompt.counter, counter);
        }
        let elsewhere = MINIMAL.replacen("\"C1\"", "\"C2\"", 1);
        assert_eq!(
            run_transcript(&elsewhere).await.unwrap(),
            Prompt::empty(&Utf16Div4)
        );
    }

    #[test]
    fn options_override_the_profile_they_name() {
        let text = MINIMAL.replace(
            "null",
            r#"{"profile": "vocative", "scope": "thread", "tokenBudget": 7,
               "addressedOnlyMode": false, "rollingSummaryThreshold": 3,
               "timeWindowMinutes": 0.5, "maxTurnsToLoad": 9, "agentAliases": ["U1"]}"#,
        );
        let text = text.replace(
            "\"future\"",
            "\"now\": \"2026-06-15T12:00:00Z\", \"future\"",
        );
        assert_eq!(
            parse(&text).unwrap().options,
            AssemblerOptions {
                addressed_only: false,
                scope: Some(Scope::Thread),
                token_budget: 7,
                rolling_summary_threshold: 3,
                time_window_minutes: Some(0.5),
                max_turns_to_load: 9,
                agent_aliases: vec!["U1".to_owned()],
                ..AssemblerOptions::default()
            }
        );
    }

    #[test]
    fn errors_say_which_message_and_field() {
        let options = |options: &str| MINIMAL.replace("null", options);
        let cases = [
            (
                "[]".to_owned(),
                "the transcript: expected an object, found a list",
            ),
            (
                MINIMAL.replace("\"agentId\"", "\"agent\""),
                "agentId: missing",
            ),
            (
                MINIMAL.replace("\"id\": \"m1\"", "\"id\": 42"),
                "messages[0].id: expected a string, found 42",
            ),
            (
                MINIMAL.replace("2026-06-15T13:00:00.123456+01:00", "yesterday"),
                "messages[0].timestamp: expected an ISO 8601 time with offset, like \
                 2026-06-15T12:00:00.000Z, found \"yesterday\"",
            ),
            (
                MINIMAL.replace("\"kind\": \"user\"", "\"kind\": \"bot\""),
                "messages[0].participant.kind: expected \"user\", \"agent\" or \"system\", \
                 found \"bot\"",
            ),
            (
                MINIMAL.replace("\"participant\":", "\"author\":"),
                "messages[0].participant: missing",
            ),
            (
                MINIMAL.replace("[\"kael\"]", "[\"kael\", null]"),
                "messages[0].metadata.mentions[1]: expected a string",
            ),
            (
                MINIMAL.replace("\"dm\"", "\"room\""),
                "messages[0].scope: expected \"channel\", \"thread\" or \"dm\", found \"room\"",
            ),
            (
                options("{\"tokenBudget\": -1}"),
                "options.tokenBudget: expected a whole number, 0 or more, found -1",
            ),
            (
                options("{\"timeWindowMinutes\": 5}"),
                "now: a time window needs the time of the run, like 2026-06-15T12:00:00Z",
            ),
            (
                options("{\"profile\": \"best\"}"),
                "options.profile: expected \"toolpack\" or \"vocative\", found \"best\"",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(&text).unwrap_err().to_string(), expected);
        }
        let error = parse("{").unwrap_err().to_string();
        assert!(error.starts_with("the transcript is not JSON"), "{error}");
    }

    #[test]
    fn an_option_that_is_not_known_is_named() {
        let told = |options: &str| {
            let text = format!(
                r#"{{"conversationId": "C1", "agentId": "kael", "messages": [], "options": {options}}}"#
            );
            parse(&text).map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!(told(r#"{"tokenBudget": 5, "scope": null}"#), Ok(()));
        for options in [
            r#"{"tokenbudget": 5}"#,
            r#"{"tokenbudget": null, "scope": "dm"}"#,
        ] {
            let error = told(options).unwrap_err();
            let expected =
                "options.tokenbudget: there is no such option; there are profile, scope,";
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
