//! How domain values are stored in columns, and how a turn is read back.

use crate::engine::sql::{Connection, Row};
use crate::engine::sql::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use vocative_contract::envelope::{Attachment, ChatKind};
use vocative_contract::identity::Platform;

use crate::StoreError;
use vocative_core::approving::{ApprovalState, DecidedVia};
use vocative_core::file::FileState;
use vocative_core::ids::{
    AccountId, AgentName, ApprovalId, ChatId, ConversationId, ErasureId, EventId, FileId, GrantId,
    InquiryId, JobId, LeaseToken, OutboxId, OwnerId, ParticipantId, QuestionId, RunId, Seq,
    SummaryId, TellingId, ToolCallId, TurnId,
};
use vocative_core::job::JobState;
use vocative_core::outbox::{DeadCause, PostStage};
use vocative_core::place::Scope;
use vocative_core::questioning::QuestionState;
use vocative_core::remembering::{MemoryId, MemoryKind, MemoryOrigin, MemoryScope};
use vocative_core::run::{RunStage, StopCause};
use vocative_core::run_event::EventKind;
use vocative_core::scheduling::{FiringOutcome, Missed, ScheduleState};
use vocative_core::summary::SummaryState;
use vocative_core::tool_call::{CallRule, CallState, Refusal};
use vocative_core::turn::{
    Participant, ParticipantKind, Position, TokenCount, Turn, TurnKind, Visibility,
};

/// A position before every turn.
pub(crate) const FIRST: Position = Position {
    sent_at_ms: i64::MIN,
    ordinal: i64::MIN,
    seq: Seq(i64::MIN),
};

/// A position after every turn.
pub(crate) const LAST: Position = Position {
    sent_at_ms: i64::MAX,
    ordinal: i64::MAX,
    seq: Seq(i64::MAX),
};

/// The columns of a turn's position.
pub(crate) const AT: [&str; 3] = ["sent_at_ms", "ordinal", "seq"];

macro_rules! uuid_column {
    ($($id:ident),*) => {$(
        impl ToSql for $id {
            fn to_sql(&self) -> crate::engine::sql::Result<ToSqlOutput<'_>> {
                Ok(ToSqlOutput::Borrowed(ValueRef::Blob(self.0.as_bytes())))
            }
        }

        impl FromSql for $id {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                <[u8; 16]>::column_result(value).map(|bytes| Self(Uuid::from_bytes(bytes)))
            }
        }
    )*};
}

uuid_column!(
    ConversationId,
    TurnId,
    RunId,
    OutboxId,
    OwnerId,
    LeaseToken,
    ErasureId,
    ToolCallId,
    ApprovalId,
    QuestionId,
    GrantId,
    TellingId
);

macro_rules! row_id_column {
    ($($id:ident),*) => {$(
        impl ToSql for $id {
            fn to_sql(&self) -> crate::engine::sql::Result<ToSqlOutput<'_>> {
                self.0.to_sql()
            }
        }

        impl FromSql for $id {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                i64::column_result(value).map(Self)
            }
        }
    )*};
}

row_id_column!(
    AccountId,
    ChatId,
    EventId,
    FileId,
    InquiryId,
    JobId,
    MemoryId,
    ParticipantId,
    Seq,
    SummaryId
);

macro_rules! name_column {
    ($($name:ident),*) => {$(
        impl ToSql for $name {
            fn to_sql(&self) -> crate::engine::sql::Result<ToSqlOutput<'_>> {
                self.name().to_sql()
            }
        }

        impl FromSql for $name {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                let name = value.as_str()?;
                Self::from_name(name).ok_or_else(|| unknown_name(stringify!($name), name))
            }
        }
    )*};
}

name_column!(
    ApprovalState,
    QuestionState,
    DecidedVia,
    CallRule,
    CallState,
    Refusal,
    DeadCause,
    EventKind,
    FileState,
    JobState,
    MemoryKind,
    MemoryOrigin,
    Scope,
    ParticipantKind,
    PostStage,
    RunStage,
    TurnKind,
    Visibility,
    StopCause,
    MemoryScope,
    SummaryState,
    ScheduleState,
    FiringOutcome,
    Missed
);

fn unknown_name(kind: &str, name: &str) -> FromSqlError {
    FromSqlError::Other(format!("{name:?} is no {kind} that this build knows").into())
}

/// The error for a state that is not in its closed list: written by another build, or by hand.
pub(crate) fn unknown_state(of: &str, state: &str) -> crate::engine::sql::Error {
    let unknown = format!("{state:?} is no state of a {of} that this build knows");
    crate::engine::sql::Error::FromSqlConversionFailure(
        0,
        crate::engine::sql::Type::Text,
        unknown.into(),
    )
}

impl ToSql for AgentName {
    fn to_sql(&self) -> crate::engine::sql::Result<ToSqlOutput<'_>> {
        self.as_str().to_sql()
    }
}

impl FromSql for AgentName {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_str().map(Self::trusted)
    }
}

/// The stored name of a kind of chat.
pub(crate) fn chat_kind_name(kind: ChatKind) -> &'static str {
    match kind {
        ChatKind::Direct => "direct",
        ChatKind::GroupDirect => "group_direct",
        ChatKind::Private => "private",
        ChatKind::Public => "public",
        ChatKind::Broadcast => "broadcast",
    }
}

/// The kind of chat of a stored name.
pub(crate) fn chat_kind_from_name(name: &str) -> Option<ChatKind> {
    [
        ChatKind::Direct,
        ChatKind::GroupDirect,
        ChatKind::Private,
        ChatKind::Public,
        ChatKind::Broadcast,
    ]
    .into_iter()
    .find(|kind| chat_kind_name(*kind) == name)
}

/// The start of the UTC day of an instant.
pub(crate) fn day_start_ms(at_ms: i64) -> i64 {
    const DAY_MS: i64 = 86_400_000;
    at_ms - at_ms.rem_euclid(DAY_MS)
}

/// A non-negative count as it is stored; beyond `i64` it stays at the top.
pub(crate) fn stored_count(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A stored count.
pub(crate) fn count_from(stored: i64) -> u64 {
    u64::try_from(stored).unwrap_or(0)
}

const ATTACHMENTS_VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct StoredAttachments {
    version: u32,
    items: Vec<StoredAttachment>,
}

#[derive(Serialize, Deserialize)]
struct StoredAttachment {
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mime_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size_bytes: Option<u64>,
}

/// Attachments as they are stored; none is `NULL`.
pub(crate) fn stored_attachments(attachments: &[Attachment]) -> Option<String> {
    if attachments.is_empty() {
        return None;
    }
    let stored = StoredAttachments {
        version: ATTACHMENTS_VERSION,
        items: attachments
            .iter()
            .cloned()
            .map(|attachment| StoredAttachment {
                kind: attachment.kind,
                file_id: attachment.file_id,
                name: attachment.name,
                mime_type: attachment.mime_type,
                size_bytes: attachment.size_bytes,
            })
            .collect(),
    };
    Some(serde_json::to_string(&stored).expect("strings and numbers are always JSON"))
}

/// Attachments read back.
pub(crate) fn attachments_from(stored: Option<&str>) -> Result<Vec<Attachment>, serde_json::Error> {
    let Some(stored) = stored else {
        return Ok(Vec::new());
    };
    let stored: StoredAttachments = serde_json::from_str(stored)?;
    Ok(stored
        .items
        .into_iter()
        .map(|item| Attachment {
            kind: item.kind,
            file_id: item.file_id,
            name: item.name,
            mime_type: item.mime_type,
            size_bytes: item.size_bytes,
        })
        .collect())
}

/// `SELECT` of whole turns for [`turn_from_row`], with a tail (`WHERE`, `ORDER BY`, more `JOIN`s).
/// Names: `t` the turn, `c` its conversation, `p` its participant.
///
/// A turn that was answered was addressed: `answered` replaces `addressed` in `involvements`.
macro_rules! select_turns {
    ($tail:literal) => {
        concat!(
            "SELECT ",
            $crate::rows::columns::turn_columns!(),
            " FROM turns t
             JOIN conversations c ON c.id = t.conversation_id
             JOIN participants p ON p.id = t.participant_id ",
            $tail
        )
    };
}
pub(crate) use select_turns;

/// Whether a participant is a person: no agent of ours, no other bot, not the platform. Whoever writes as a chat
/// counts as a person.
macro_rules! is_person {
    ($participant:literal) => {
        concat!(
            "((",
            $participant,
            ".kind = 'user' AND NOT ",
            $participant,
            ".is_bot) OR (",
            $participant,
            ".kind = 'system' AND ",
            $participant,
            ".platform_id GLOB 'chat:*'))"
        )
    };
}
pub(crate) use is_person;

/// The columns of [`turn_from_row`], of the turn `t` with its conversation `c` and participant `p`.
macro_rules! turn_columns {
    () => {
        "t.uuid AS turn, c.uuid AS conversation, t.sent_at_ms, t.ordinal, t.seq, t.scope, t.kind,
         p.id AS participant, p.kind AS participant_kind, p.platform_id, p.display_name, p.username,
         t.content, t.attachments,
         (SELECT group_concat(i.agent, ' ') FROM involvements i
          WHERE i.seq = t.seq AND i.how IN ('addressed', 'answered')) AS addressed,
         (SELECT r.uuid FROM turns r WHERE r.seq = t.reply_to_seq) AS reply_to,
         t.quote, t.call_id, t.visibility,
         (SELECT n.uuid FROM runs n WHERE n.id = t.run_id) AS run,
         t.revision, t.tokens, t.counter,
         CASE WHEN t.is_inbound THEN t.sent_at_ms ELSE max(t.sent_at_ms, t.captured_at_ms) END AS said_at_ms"
    };
}
pub(crate) use turn_columns;

/// A turn from a row of [`select_turns`].
pub(crate) fn turn_from_row(row: &Row<'_>) -> crate::engine::sql::Result<Turn> {
    let attachments: Option<String> = row.get("attachments")?;
    let addressed: Option<String> = row.get("addressed")?;
    let tokens: Option<u32> = row.get("tokens")?;
    let counter: Option<String> = row.get("counter")?;
    Ok(Turn {
        id: row.get("turn")?,
        conversation: row.get("conversation")?,
        position: Position {
            sent_at_ms: row.get("sent_at_ms")?,
            ordinal: row.get("ordinal")?,
            seq: row.get("seq")?,
        },
        said_at_ms: row.get("said_at_ms")?,
        scope: row.get("scope")?,
        kind: row.get("kind")?,
        participant: Participant {
            id: row.get("participant")?,
            kind: row.get("participant_kind")?,
            platform_id: row.get("platform_id")?,
            display_name: row.get("display_name")?,
            username: row.get("username")?,
        },
        content: row.get("content")?,
        attachments: attachments_from(attachments.as_deref())
            .map_err(|error| row.undecodable("attachments", error))?,
        addressed_to: agents_from(addressed.as_deref()),
        reply_to: row.get("reply_to")?,
        quote: row.get("quote")?,
        call_id: row.get("call_id")?,
        visibility: row.get("visibility")?,
        run: row.get("run")?,
        revision: row.get("revision")?,
        tokens: tokens
            .zip(counter)
            .map(|(tokens, counter)| TokenCount { tokens, counter }),
    })
}

/// Agents as `group_concat` gives them, by name: a name holds no space.
fn agents_from(names: Option<&str>) -> Vec<AgentName> {
    let mut names: Vec<&str> = names.unwrap_or_default().split_terminator(' ').collect();
    names.sort_unstable();
    names.into_iter().map(AgentName::trusted).collect()
}

pub(crate) const CONVERSATION_ROW_SQL: &str = "SELECT id FROM conversations WHERE uuid = ?1";

/// The row id of a conversation.
///
/// # Errors
/// `NotFound` names it.
pub(crate) fn conversation_row_id(
    connection: &Connection,
    id: ConversationId,
) -> Result<i64, StoreError> {
    let row = connection
        .prepare_cached(CONVERSATION_ROW_SQL)?
        .query_row([id], |row| row.get("id"));
    row.map_err(|error| missing(error, || format!("conversation {id}")))
}

/// Names what was not found.
pub(crate) fn missing(
    error: crate::engine::sql::Error,
    what: impl FnOnce() -> String,
) -> StoreError {
    match error {
        crate::engine::sql::Error::QueryReturnedNoRows => StoreError::NotFound { what: what() },
        other => other.into(),
    }
}

/// Accounts as a JSON array, for `json_each`.
pub(crate) fn account_list(accounts: &[AccountId]) -> String {
    let ids: Vec<i64> = accounts.iter().map(|account| account.0).collect();
    serde_json::to_string(&ids).expect("numbers are always JSON")
}

/// A limit for `LIMIT`.
pub(crate) fn limit_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// The platform of the column `platform`.
pub(crate) fn platform(row: &Row<'_>) -> crate::engine::sql::Result<Platform> {
    let name: String = row.get("platform")?;
    Platform::from_name(&name).ok_or_else(|| {
        crate::engine::sql::Error::FromSqlConversionFailure(
            0,
            crate::engine::sql::Type::Text,
            format!("{name:?} is no platform that this build knows").into(),
        )
    })
}

/// The position of three columns in a row.
pub(crate) fn position_at(
    row: &Row<'_>,
    [sent_at_ms, ordinal, seq]: [&str; 3],
) -> crate::engine::sql::Result<Position> {
    Ok(Position {
        sent_at_ms: row.get(sent_at_ms)?,
        ordinal: row.get(ordinal)?,
        seq: row.get(seq)?,
    })
}
