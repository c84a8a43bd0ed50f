//! A conversation as JSON lines, one message each: what `conversations export` writes, and the
//! prompt made from it.
//!
//! A line is a message of a transcript (see `transcript`) and contains everything that a prompt is made of; the
//! caller gives the rest of a transcript: for which agent, with which options. Reading goes line by line, so memory
//! does not grow with the length.

use std::collections::BTreeMap;
use std::io::BufRead;

use chrono::{DateTime, SecondsFormat, Utc};
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use vocative_contract::envelope::Attachment;

use super::transcript::{
    StoredMessage, TranscriptError, TranscriptField, TranscriptScene, bind, counter_of, message,
    new_message, open_store,
};
use vocative_core::file::TurnFile;
use vocative_core::ids::{AccountId, AgentName, ConversationId};
use vocative_core::options::AssemblerOptions;
use vocative_core::prompting::{AgentView, Prompt};
use vocative_core::turn::{ParticipantKind, TurnKind, Visibility};
use vocative_store::Store;
use vocative_store::contract::{Captured, ExportTurn};

/// Messages captured at a time: they share a commit.
const BATCH: usize = 256;

/// One message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageLine {
    /// The turn's id.
    pub id: String,
    /// Its conversation's id.
    pub conversation_id: String,
    /// Of a turn in a thread: what the thread hangs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<ThreadLine>,
    /// Who said it.
    pub participant: ParticipantLine,
    /// When, in UTC.
    pub timestamp: String,
    /// Of an answer: the time at which it stands in the room's order, that of the turn before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordered_at: Option<String>,
    /// The platform's order within that instant.
    pub ordinal: i64,
    /// What was said; a mention is `U+FFF9 id U+FFFB`, named under `metadata.names`.
    pub content: String,
    /// `channel`, `thread` or `dm`.
    pub scope: String,
    /// `notice` for what the daemon told the room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The turn it replies to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// The passage of it that is quoted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<String>,
    /// The attachments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<AttachmentLine>,
    /// Whether it was edited.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
    /// Whether it was deleted; it says nothing then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
    /// The people and agents it concerns.
    pub metadata: MetadataLine,
}

/// What a thread hangs on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThreadLine {
    /// The conversation of its root.
    pub conversation_id: String,
    /// Its root.
    pub root: String,
}

/// Who said something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ParticipantLine {
    /// `user`, `agent` or `system`.
    pub kind: String,
    /// The platform id; an agent's name.
    pub id: String,
    /// The name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// The username without `@`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
}

/// Something attached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttachmentLine {
    /// The kind of attachment, like `photo`.
    pub kind: String,
    /// The platform's file id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_id: Option<String>,
    /// File name or title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// MIME type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// The state of its content: `fetched`, or why it is only named (`pending`, `refused`, `too_large`, `gone`,
    /// `failed`); absent where the platform gives no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The hash of its bytes, if they are stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The path of the bytes: below the data folder, or in the folder that the export was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

impl AttachmentLine {
    fn of(attachment: &Attachment, files: &[TurnFile]) -> Self {
        let id = attachment.file_id.as_deref();
        let file = files
            .iter()
            .find(|file| Some(file.platform_id.as_str()) == id);
        let content = file.and_then(|file| file.content).map(|(id, _)| id);
        Self {
            kind: attachment.kind.clone(),
            file_id: attachment.file_id.clone(),
            name: attachment.name.clone(),
            mime_type: attachment.mime_type.clone(),
            size_bytes: attachment.size_bytes,
            state: file.map(|file| file.state.name().to_owned()),
            sha256: content.map(|id| id.to_string()),
            path: content.map(|id| id.path()),
        }
    }
}

/// Whom a message concerns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MetadataLine {
    /// The agents it addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mentions: Vec<String>,
    /// Names of the people whom its text mentions, by id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub names: BTreeMap<String, String>,
    /// The ids in its text that are the bot's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bot_ids: Vec<String>,
}

impl MessageLine {
    /// The line of a turn. `parent`: what its conversation hangs on.
    #[must_use]
    pub fn of(exported: &ExportTurn, parent: Option<&ThreadLine>) -> Self {
        let turn = &exported.turn;
        let participant = &turn.participant;
        let attachments = turn.attachments.iter();
        Self {
            id: turn.id.to_string(),
            conversation_id: turn.conversation.to_string(),
            thread: parent.cloned(),
            participant: ParticipantLine {
                kind: participant.kind.name().to_owned(),
                id: participant.platform_id.clone(),
                display_name: participant.display_name.clone(),
                username: participant.username.clone(),
            },
            timestamp: rfc3339(turn.said_at_ms),
            ordered_at: (turn.said_at_ms != turn.position.sent_at_ms)
                .then(|| rfc3339(turn.position.sent_at_ms)),
            ordinal: turn.position.ordinal,
            content: turn.content.clone(),
            scope: turn.scope.name().to_owned(),
            kind: (turn.kind == TurnKind::Notice).then(|| turn.kind.name().to_owned()),
            reply_to: turn.reply_to.map(|id| id.to_string()),
            quote: turn.quote.clone(),
            attachments: attachments
                .map(|attachment| AttachmentLine::of(attachment, &exported.files))
                .collect(),
            edited: turn.revision > 1 && turn.visibility != Visibility::Hidden,
            deleted: turn.visibility == Visibility::Hidden,
            metadata: MetadataLine {
                mentions: turn.addressed_to.iter().map(ToString::to_string).collect(),
                names: exported.names.iter().cloned().collect(),
                bot_ids: exported.bot_ids.clone(),
            },
        }
    }
}

fn rfc3339(at_ms: i64) -> String {
    // Beyond chrono's years nothing was ever said; a time that can't be told is shown as the epoch.
    DateTime::<Utc>::from_timestamp_millis(at_ms)
        .unwrap_or_default()
        .to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// The options for the prompt that is made from an export.
#[derive(Clone, Debug)]
pub struct LinesRequest {
    /// The agent; `None` = the agent that the newest message addresses, or that wrote it.
    pub agent: Option<String>,
    /// The agents that are known, by name; of any other, the defaults are taken.
    pub agents: BTreeMap<String, (AgentView, AssemblerOptions)>,
    /// The time of the run, in milliseconds since the Unix epoch.
    pub now_ms: i64,
}

/// Whether a first line begins an export: an object with a message's text in it.
#[must_use]
pub fn is_message_line(line: &str) -> bool {
    serde_json::from_str::<Value>(line)
        .is_ok_and(|value| value.get("content").is_some() && value.get("messages").is_none())
}

/// Who is concerned by the newest message that concerns anybody.
#[derive(Default)]
struct NewestConcern {
    conversation: Option<ConversationId>,
    concerned: Option<String>,
    bot_ids: Vec<String>,
}

/// Captures an export line by line into a store of its own, and assembles the prompt.
///
/// # Errors
/// [`TranscriptError`] for a line that is malformed, naming line and field, or a store that fails.
pub async fn run_lines(
    lines: impl BufRead,
    request: LinesRequest,
) -> Result<Prompt, TranscriptError> {
    let store = open_store()?;
    let prompt = prompt_of(&store, lines, request).await;
    store.close().await?;
    prompt
}

async fn prompt_of(
    store: &Store,
    lines: impl BufRead,
    request: LinesRequest,
) -> Result<Prompt, TranscriptError> {
    let account = bind(store).await?;
    let mut read = NewestConcern::default();
    let mut batch = Vec::with_capacity(BATCH);
    for (number, line) in (1_u64..).zip(lines.lines()) {
        let line = line.map_err(|error| TranscriptError::NotJson {
            what: format!("line {number}: {error}"),
        })?;
        if line.trim().is_empty() {
            continue;
        }
        let found = parse_line(&line, number)?;
        if !found.further.is_deleted {
            batch.push(found);
        }
        if batch.len() == BATCH {
            capture(store, account, std::mem::take(&mut batch), &mut read).await?;
        }
    }
    capture(store, account, batch, &mut read).await?;
    let (agent, options) = agent_of(request.agents, request.agent, &read);
    let counter = counter_of(options.profile);
    let Some(conversation) = read.conversation else {
        return Ok(Prompt::empty(counter));
    };
    let scene = TranscriptScene {
        store,
        conversation,
        agent: &agent,
        options: &options,
        now_ms: request.now_ms,
    };
    scene.assemble(counter, None).await
}

fn agent_of(
    mut agents: BTreeMap<String, (AgentView, AssemblerOptions)>,
    asked: Option<String>,
    read: &NewestConcern,
) -> (AgentView, AssemblerOptions) {
    let name = asked.or_else(|| read.concerned.clone()).unwrap_or_default();
    let (mut agent, options) = agents.remove(&name).unwrap_or_else(|| {
        let unknown = AgentView {
            name: AgentName::trusted(name.clone()),
            display_name: name,
            platform_ids: Vec::new(),
        };
        (unknown, AssemblerOptions::default())
    });
    agent.platform_ids.extend(read.bot_ids.iter().cloned());
    (agent, options)
}

fn parse_line(line: &str, number: u64) -> Result<StoredMessage, TranscriptError> {
    let json: Value = serde_json::from_str(line).map_err(|error| TranscriptError::NotJson {
        what: format!("line {number}: {error}"),
    })?;
    let mut found = message(&TranscriptField::at(format!("line {number}"), &json))?;
    // What an agent says concerns it.
    if found.kind == ParticipantKind::Agent && !found.mentions.contains(&found.participant) {
        found.mentions.push(found.participant.clone());
    }
    Ok(found)
}

/// Captures messages in their order, in few commits.
async fn capture(
    store: &Store,
    account: AccountId,
    batch: Vec<StoredMessage>,
    read: &mut NewestConcern,
) -> Result<(), TranscriptError> {
    let mut names = Vec::new();
    for message in &batch {
        names.extend(message.further.names.iter().cloned());
        for id in &message.further.bot_ids {
            if !read.bot_ids.contains(id) {
                read.bot_ids.push(id.clone());
            }
        }
        if let Some(agent) = message.mentions.first() {
            read.concerned = Some(agent.clone());
        }
    }
    names.sort_unstable();
    names.dedup();
    if !names.is_empty() {
        store.name_people(account, names).await?;
    }
    let captures = batch
        .into_iter()
        .map(|message| store.capture_message(new_message(account, message)));
    for captured in join_all(captures).await {
        if let Captured::New(turn) = captured? {
            read.conversation = Some(turn.conversation);
        }
    }
    Ok(())
}
