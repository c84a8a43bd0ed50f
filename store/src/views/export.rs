//! A conversation read from its first turn to its last, a bounded page at a time.
//!
//! Pages go by position and hold nothing captured after the first of them was read, so that they
//! make one consistent whole however long it takes and whatever is captured meanwhile. What is
//! edited meanwhile is read as it is then; what is deleted is gone from pages not read yet.

use crate::engine::sql::{Connection, OptionalExtension, params};
use vocative_contract::markup::mentioned_ids;

use crate::contract::{ExportPage, ExportQuery, ExportTurn, RepliedTo};
use crate::rows::columns::{FIRST, limit_of};
use crate::rows::columns::{conversation_row_id, select_turns, turn_from_row};
use crate::rows::conversations::conversation;
use crate::rows::files::files_of;
use crate::rows::names::NameLookup;
use crate::{Reader, StoreError};
use vocative_core::ids::{ConversationId, Seq, TurnId};
use vocative_core::turn::Turn;

/// Turns of a page.
const PAGE_TURNS: usize = 500;
/// A page of an export ends with the turn at which its texts exceed this, in bytes.
const PAGE_BYTES: usize = 1 << 20;

const PAGE_SQL: &str = select_turns!(
    "WHERE t.conversation_id = ?1 AND t.sent_at_ms >= ?2
       AND (t.sent_at_ms, t.ordinal, t.seq) > (?2, ?3, ?4) AND t.seq <= ?5
       AND t.visibility IN ('room', 'hidden') AND t.kind IN ('message', 'notice')
     ORDER BY t.sent_at_ms, t.ordinal, t.seq LIMIT ?6"
);

impl Reader {
    /// The next page of a conversation, ascending by position. A thread begins with the turn it
    /// hangs on, which is one of another conversation.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation.
    pub async fn export_page(
        &self,
        conversation: ConversationId,
        query: ExportQuery,
    ) -> Result<ExportPage, StoreError> {
        self.read(move |connection| export_page(connection, conversation, &query))
            .await
    }
}

fn export_page(
    connection: &Connection,
    id: ConversationId,
    query: &ExportQuery,
) -> Result<ExportPage, StoreError> {
    let row = conversation_row_id(connection, id)?;
    let account = conversation(connection, id)?.account;
    let as_of = match query.as_of {
        Some(as_of) => as_of,
        None => connection.query_row(
            "SELECT coalesce(max(seq), 0) AS value FROM turns",
            [],
            |row| row.get("value"),
        )?,
    };
    refuse_merging(connection, row, as_of)?;
    let mut names = NameLookup::new(connection, account);
    let mut page = ExportPage {
        turns: Vec::new(),
        as_of,
        next: None,
    };
    if query.after.is_none() {
        let root = root(connection, row)?;
        let root = root.map(|root| exported(connection, &mut names, root));
        page.turns.extend(root.transpose()?);
    }
    let after = query.after.unwrap_or(FIRST);
    let mut statement = connection.prepare_cached(PAGE_SQL)?;
    let mut rows = statement.query(params![
        row,
        after.sent_at_ms,
        after.ordinal,
        after.seq,
        as_of,
        limit_of(PAGE_TURNS),
    ])?;
    let (mut turns, mut bytes) = (0, 0);
    while let Some(found) = rows.next()? {
        let turn = turn_from_row(&found)?;
        bytes += turn.content.len();
        turns += 1;
        let position = turn.position;
        page.turns.push(exported(connection, &mut names, turn)?);
        if turns == PAGE_TURNS || bytes > PAGE_BYTES {
            page.next = Some(position);
            break;
        }
    }
    Ok(page)
}

/// Turns that move from one conversation to another between two pages may be on neither.
fn refuse_merging(connection: &Connection, row: i64, as_of: Seq) -> Result<(), StoreError> {
    let is_merging: bool = connection
        .prepare_cached(
            "SELECT coalesce(merged_seq > ?2, 0)
                    OR EXISTS (SELECT 1 FROM conversation_merges WHERE ?1 IN (source_id, target_id)) AS is_merging
             FROM conversations WHERE id = ?1",
        )?
        .query_row(params![row, as_of], |row| row.get("is_merging"))?;
    match is_merging {
        true => Err(StoreError::Merging),
        false => Ok(()),
    }
}

/// The turn a thread hangs on, where it is of another conversation.
pub(crate) fn root(connection: &Connection, row: i64) -> Result<Option<Turn>, StoreError> {
    Ok(connection
        .prepare_cached(select_turns!(
            "WHERE t.seq = (SELECT root_turn_seq FROM conversations WHERE id = ?1)
               AND t.conversation_id <> ?1 AND t.visibility = 'room'"
        ))?
        .query_row([row], turn_from_row)
        .optional()?)
}

fn exported(
    connection: &Connection,
    names: &mut NameLookup<'_>,
    turn: Turn,
) -> Result<ExportTurn, StoreError> {
    let mut mentions = mentioned_ids(&turn.content);
    mentions.extend(turn.quote.as_deref().map(mentioned_ids).unwrap_or_default());
    mentions.sort_unstable();
    mentions.dedup();
    let (mut known, mut bot_ids) = (Vec::new(), Vec::new());
    for id in mentions {
        if names.is_bot(&id)? {
            bot_ids.push(id);
        } else if let Some(name) = names.name(&id)? {
            known.push((id, name));
        }
    }
    let replied_to = match turn.reply_to {
        Some(target) => replied_to(connection, names, target)?,
        None => None,
    };
    let files = match turn.attachments.is_empty() {
        true => Vec::new(),
        false => files_of(connection, turn.id)?,
    };
    Ok(ExportTurn {
        files,
        text: names.named(&turn.content)?,
        quote: turn
            .quote
            .as_deref()
            .map(|quote| names.named(quote))
            .transpose()?,
        replied_to,
        names: known,
        bot_ids,
        turn,
    })
}

fn replied_to(
    connection: &Connection,
    names: &mut NameLookup<'_>,
    target: TurnId,
) -> Result<Option<RepliedTo>, StoreError> {
    /// How much of a quoted message is exported, in characters: enough for a reader to know it again.
    const SHOWN_CHARS: i64 = 300;
    let found: Option<(String, String)> = connection
        .prepare_cached(
            "SELECT coalesce(p.display_name, p.platform_id) AS name, substr(t.content, 1, ?2) AS said
             FROM turns t JOIN participants p ON p.id = t.participant_id
             WHERE t.uuid = ?1 AND t.visibility = 'room'",
        )?
        .query_row(params![target, SHOWN_CHARS], |row| {
            Ok((row.get("name")?, row.get("said")?))
        })
        .optional()?;
    found
        .map(|(speaker, text)| {
            Ok(RepliedTo {
                speaker,
                text: names.named(&text)?,
            })
        })
        .transpose()
}
