//! What programs asked through the API: the name of each request, and what was given for its prompt alone.
//!
//! The row is written in the transaction that captures the question; what was given goes when the run ends.

use serde::{Deserialize, Serialize};

use crate::contract::{AskedRun, CapturedRequest, NewMessage, NewRequest, Sha256Digest};
use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::registry::{OF_RUN, StoreTable, account, text};
use crate::{Reader, StoreError};
use vocative_core::given::{Given, GivenLine, GivenSpeaker};
use vocative_core::ids::RunId;

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] =
    &[account("run_requests", text(&["given"], &[], &[]), OF_RUN)];

/// The version of what is written as JSON.
const VERSION: u32 = 1;

/// What was given, as JSON.
#[derive(Serialize, Deserialize)]
struct GivenRow {
    version: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    earlier: Vec<LineRow>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    context: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<String>>,
}

#[derive(Serialize, Deserialize)]
struct LineRow {
    speaker: String,
    text: String,
}

impl Reader {
    /// What was given for a run's prompt, as long as the run is open; nothing for a run that no program asked for.
    ///
    /// # Errors
    /// Storage refuses, or the row is of a later version.
    pub async fn given(&self, run: RunId) -> Result<Given, StoreError> {
        self.read(move |connection| {
            let text: Option<Option<String>> = connection
                .prepare_cached(
                    "SELECT q.given FROM run_requests q JOIN runs r ON r.id = q.run_id WHERE r.uuid = ?1",
                )?
                .query_row([run], |row| row.get("given"))
                .optional()?;
            text.flatten().map_or(Ok(Given::default()), |text| read_given(&text))
        })
        .await
    }
}

/// What the same person asked before under that name.
pub(crate) fn known_request(
    connection: &Connection,
    message: &NewMessage,
    request: &NewRequest,
) -> Result<Option<CapturedRequest>, StoreError> {
    let Some(key) = request.key else {
        return Ok(None);
    };
    let found: Option<(AskedRun, Vec<u8>)> = connection
        .prepare_cached(
            "SELECT r.uuid AS run, c.uuid AS conversation, t.uuid AS turn, q.body
             FROM participants p
             JOIN run_requests q ON q.participant_id = p.id AND q.key = ?3
             JOIN runs r ON r.id = q.run_id
             JOIN conversations c ON c.id = r.conversation_id
             JOIN run_triggers g ON g.run_id = r.id
             JOIN turns t ON t.seq = g.turn_seq
             WHERE p.account_id = ?1 AND p.kind = 'user' AND p.platform_id = ?2 LIMIT 1",
        )?
        .query_row(params![message.account, message.sender.id, key], |row| {
            let asked = AskedRun {
                run: row.get("run")?,
                conversation: row.get("conversation")?,
                turn: row.get("turn")?,
            };
            Ok((asked, row.get("body")?))
        })
        .optional()?;
    Ok(found.map(|(asked, body)| match body == request.body {
        true => CapturedRequest::Known(asked),
        false => CapturedRequest::OtherBody,
    }))
}

/// Keeps a request with the run that it asked for.
pub(crate) fn keep_request_txn(
    connection: &Connection,
    run: RunId,
    request: &NewRequest,
) -> Result<(), StoreError> {
    let given = (!request.given.is_empty()).then(|| written_given(&request.given));
    let (key, body): (Option<Sha256Digest>, Sha256Digest) = (request.key, request.body);
    connection
        .prepare_cached(
            "INSERT INTO run_requests (run_id, participant_id, key, body, given)
             SELECT id, person_participant_id, ?2, ?3, ?4 FROM runs WHERE uuid = ?1",
        )?
        .execute(params![run, key, body, given])?;
    Ok(())
}

/// Forgets what was given for a run that ends.
pub(crate) fn forget_given_txn(connection: &Connection, run_row: i64) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE run_requests SET given = NULL WHERE run_id = ?1 AND given IS NOT NULL",
        )?
        .execute([run_row])?;
    Ok(())
}

fn written_given(given: &Given) -> String {
    let line = |line: &GivenLine| LineRow {
        speaker: line.speaker.name().to_owned(),
        text: line.text.clone(),
    };
    let row = GivenRow {
        version: VERSION,
        earlier: given.earlier.iter().map(line).collect(),
        context: given.context.clone(),
        user: given.user.clone(),
        instructions: given.instructions.clone(),
        tools: given.tools.clone(),
    };
    serde_json::to_string(&row).expect("plain data with string keys")
}

fn read_given(text: &str) -> Result<Given, StoreError> {
    let wrong = |what: String| StoreError::Undecodable {
        what: format!("what a program gave for a run ({what})"),
    };
    let row: GivenRow = serde_json::from_str(text).map_err(|cause| wrong(cause.to_string()))?;
    if row.version != VERSION {
        return Err(wrong(format!("it is of version {}", row.version)));
    }
    let line = |line: LineRow| {
        Some(GivenLine {
            speaker: GivenSpeaker::from_name(&line.speaker)?,
            text: line.text,
        })
    };
    Ok(Given {
        earlier: row.earlier.into_iter().filter_map(line).collect(),
        context: row.context,
        user: row.user,
        instructions: row.instructions,
        tools: row.tools,
    })
}
