//! The messages in a room that show the parts of an answer, and how they are changed to show other parts.
//!
//! A message is known by the entry that posts it; an entry that edits it follows that one (`edit_of`), or
//! another edit that does. The newest of such a chain says what the message says or is to say. The order
//! of the messages is that of the entries that post them, whatever the order of their edits.

use std::collections::HashMap;

use crate::engine::sql::{Connection, params};
use vocative_contract::outbound::{Operation, Part, Target};

use crate::StoreError;
use crate::rows::outbox_rows::{NewPosts, append_post_txn, entry_by_row, json};
use vocative_core::ids::{OutboxId, Seq};

/// The newest entry of a message, or of a message that is not posted yet.
struct NewestEntry {
    row: i64,
    id: OutboxId,
    state: String,
    /// Whether no byte of it ever left.
    is_untouched: bool,
    message_id: Option<String>,
    target: Target,
    part: Part,
    is_upload: bool,
    /// The place in the chat of the entry that posts the message.
    posted_at: f64,
}

impl NewestEntry {
    /// Whether it is a file's message, whose content can't be edited.
    fn has_file(&self) -> bool {
        self.is_upload || self.part.file.is_some()
    }
}

/// The newest entries of the parts of a turn, in the order of its messages.
fn standing(connection: &Connection, seq: Seq) -> Result<Vec<NewestEntry>, StoreError> {
    let places = places(connection, seq)?;
    let mut statement = connection.prepare_cached(
        "SELECT id, uuid, operation, state, state = 'pending' AND attempts = 0 AS is_untouched, message_id, target,
                payload
         FROM outbox
         WHERE turn_seq = ?1 AND operation IN ('post', 'edit', 'upload')
           AND state NOT IN ('replaced', 'dead')
           AND id NOT IN (SELECT e.edit_of FROM outbox e
                          WHERE e.turn_seq = ?1 AND e.edit_of IS NOT NULL AND e.state <> 'dead')
         ORDER BY sort_key",
    )?;
    let mut rows = statement.query([seq])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let (id, operation): (i64, String) = (row.get("id")?, row.get("operation")?);
        let (target, payload): (String, String) = (row.get("target")?, row.get("payload")?);
        found.push(NewestEntry {
            row: id,
            id: row.get("uuid")?,
            state: row.get("state")?,
            is_untouched: row.get("is_untouched")?,
            message_id: row.get("message_id")?,
            target: serde_json::from_str(&target)?,
            part: serde_json::from_str(&payload)?,
            is_upload: operation == "upload",
            posted_at: place_of_message(&places, id),
        });
    }
    found.sort_by(|a, b| a.posted_at.total_cmp(&b.posted_at));
    Ok(found)
}

/// For each entry of a turn: its place in the chat, and the entry that it follows.
type PostOrder = HashMap<i64, (f64, Option<i64>)>;

fn places(connection: &Connection, seq: Seq) -> Result<PostOrder, StoreError> {
    let mut statement = connection
        .prepare_cached("SELECT id, sort_key, edit_of FROM outbox WHERE turn_seq = ?1")?;
    let rows = statement.query_map([seq], |row| {
        Ok((row.get("id")?, (row.get("sort_key")?, row.get("edit_of")?)))
    })?;
    Ok(rows.collect::<crate::engine::sql::Result<_>>()?)
}

/// The place of the entry that a chain of edits began with.
fn place_of_message(places: &PostOrder, row: i64) -> f64 {
    let (mut row, mut place) = (row, 0.0);
    // No chain is longer than there are entries.
    for _ in 0..places.len() {
        let Some((at, follows)) = places.get(&row) else {
            break;
        };
        place = *at;
        match follows {
            Some(before) => row = *before,
            None => break,
        }
    }
    place
}

/// Commits the edits that make the messages of an answer say the parts of another one.
pub(crate) fn edit_posts_txn(
    connection: &Connection,
    posts: &NewPosts<'_>,
    seq: Seq,
) -> Result<Vec<OutboxId>, StoreError> {
    let standing = standing(connection, seq)?;
    let nothing = json(&Part::plain(""));
    // An entry that is no longer the answer must not be offered for sending by hand.
    connection
        .prepare_cached(
            "UPDATE outbox SET state = 'replaced', payload = ?2
             WHERE turn_seq = ?1 AND state = 'dead' AND operation IN ('post', 'edit', 'upload')",
        )?
        .execute(params![seq, nothing])?;
    let pairs = standing.iter().zip(posts.parts);
    // Entries behind a file stay behind it.
    let kept = pairs
        .take_while(|(entry, part)| !entry.has_file() && part.file.is_none())
        .count();
    let mut ids = Vec::with_capacity(posts.parts.len());
    for (number, (entry, part)) in (0_u32..).zip(standing.iter().zip(&posts.parts[..kept])) {
        ids.push(edit_post_txn(connection, posts, number, entry, part)?);
    }
    for entry in &standing[kept..] {
        remove_post_txn(connection, posts, entry)?;
    }
    for (number, part) in (0_u32..).zip(posts.parts).skip(kept) {
        ids.push(append_post_txn(connection, posts, number, part)?);
    }
    Ok(ids)
}

/// Moves parts of an answer on to its later messages: the first of `parts` is said by the message that
/// comes behind that of `row`, what that one said by the next, and what is left is posted behind them.
///
/// Returns false, and does nothing, where no later message comes before a post at the place of `row`:
/// then the parts may be posted there.
pub(crate) fn move_on_txn(
    connection: &Connection,
    posts: &NewPosts<'_>,
    row: i64,
) -> Result<bool, StoreError> {
    let Some(seq) = posts.turn else {
        return Ok(false);
    };
    let places = places(connection, seq)?;
    let own = place_of_message(&places, row);
    let posted_at = places.get(&row).map_or(own, |(at, _)| *at);
    let mut later = standing(connection, seq)?;
    later.retain(|entry| entry.posted_at > own);
    if later
        .first()
        .is_none_or(|first| first.posted_at > posted_at)
    {
        return Ok(false);
    }
    // A file's message can't be edited to say them, one in another room is not of this order, and the text of
    // an emptied one is not known any more.
    let is_fixed = |entry: &NewestEntry| {
        let is_elsewhere = entry.target.chat != posts.target.chat;
        entry.has_file() || is_elsewhere || entry.part.text.is_empty()
    };
    if later.iter().any(is_fixed) {
        return Ok(false);
    }
    let said = later.iter().map(|entry| &entry.part);
    let parts: Vec<Part> = posts.parts.iter().chain(said).cloned().collect();
    let highest: u32 = connection
        .prepare_cached("SELECT coalesce(max(part), 0) AS highest FROM outbox WHERE turn_seq = ?1")?
        .query_row([seq], |row| row.get("highest"))?;
    let numbered: Vec<(u32, &Part)> = (highest + 1..).zip(&parts).collect();
    for (entry, (number, part)) in later.iter().zip(&numbered) {
        edit_post_txn(connection, posts, *number, entry, part)?;
    }
    for (number, part) in &numbered[later.len()..] {
        append_post_txn(connection, posts, *number, part)?;
    }
    Ok(true)
}

/// Like `move_on_txn`, for an edit whose message was never posted, so that it would come after the later parts.
pub(crate) fn move_edit_on_txn(
    connection: &Connection,
    row: i64,
    now_ms: i64,
) -> Result<bool, StoreError> {
    let (turn, run_row) = connection
        .prepare_cached("SELECT turn_seq, run_id FROM outbox WHERE id = ?1")?
        .query_row([row], |row| Ok((row.get("turn_seq")?, row.get("run_id")?)))?;
    let (entry, _) = entry_by_row(connection, row)?;
    let posts = NewPosts {
        account: entry.account,
        chat: entry.chat,
        turn,
        run_row,
        target: &entry.target,
        operation: &Operation::Post,
        parts: std::slice::from_ref(&entry.part),
        now_ms,
    };
    move_on_txn(connection, &posts, row)
}

/// Changes the text of a message: an unsent post goes out with the new text; any other gets an edit behind it.
fn edit_post_txn(
    connection: &Connection,
    posts: &NewPosts<'_>,
    number: u32,
    entry: &NewestEntry,
    part: &Part,
) -> Result<OutboxId, StoreError> {
    if entry.is_untouched {
        connection
            .prepare_cached("UPDATE outbox SET payload = ?2 WHERE id = ?1")?
            .execute((entry.row, json(part)))?;
        return Ok(entry.id);
    }
    let message_id = entry.message_id.clone().unwrap_or_default();
    let edit = Operation::Edit { message_id };
    follow_txn(connection, posts, number, entry, &edit, part)
}

/// Removes a message: an unsent post is never sent; any other message is deleted.
fn remove_post_txn(
    connection: &Connection,
    posts: &NewPosts<'_>,
    entry: &NewestEntry,
) -> Result<(), StoreError> {
    let nothing = Part::plain("");
    if !entry.is_untouched {
        let message_id = entry.message_id.clone().unwrap_or_default();
        let deletion = Operation::Delete { message_id };
        follow_txn(connection, posts, 0, entry, &deletion, &nothing)?;
        return Ok(());
    }
    // An unsent edit belongs to a message that exists and must still be deleted.
    connection
        .prepare_cached(
            "UPDATE outbox SET payload = ?2,
                    state = CASE operation WHEN 'edit' THEN state ELSE 'replaced' END,
                    finished_at_ms = CASE operation WHEN 'edit' THEN NULL ELSE ?3 END,
                    operation = CASE operation WHEN 'edit' THEN 'delete' ELSE operation END
             WHERE id = ?1",
        )?
        .execute(params![entry.row, json(&nothing), posts.now_ms])?;
    Ok(())
}

/// Commits what is done to the message of another entry once that is there.
fn follow_txn(
    connection: &Connection,
    posts: &NewPosts<'_>,
    number: u32,
    entry: &NewestEntry,
    operation: &Operation,
    part: &Part,
) -> Result<OutboxId, StoreError> {
    let posts = NewPosts {
        target: &entry.target,
        operation,
        ..*posts
    };
    let id = append_post_txn(connection, &posts, number, part)?;
    connection
        .prepare_cached("UPDATE outbox SET edit_of = ?2 WHERE uuid = ?1")?
        .execute((id, entry.row))?;
    if entry.state == "sent" {
        connection
            .prepare_cached("UPDATE outbox SET payload = ?2 WHERE id = ?1")?
            .execute((entry.row, json(&Part::plain(""))))?;
    }
    Ok(id)
}
