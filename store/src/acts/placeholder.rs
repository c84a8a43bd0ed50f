//! The rows of a run's placeholder: a post that shows the beginning of an answer while it is written.
//! `core/sending/placeholder.rs` decides what becomes of them.
//!
//! A placeholder is an outbox entry like any other, so it survives a kill and is looked for when its
//! outcome is unknown. It is temporary: the commit of the answer makes it the answer's first post, by
//! changing its text while it waits, else by an edit that is queued behind it in the chat. A run that ends
//! without an answer retracts it. Either way the run gives it up in the same transaction.

use crate::acts::reply_room::room_of;
use crate::capability::MayReply;
use crate::engine::sql::{Connection, OptionalExtension};
use crate::rows::leases::leased_run;
use crate::rows::open::open_post;
use vocative_contract::crash::{self, Sabotage};
use vocative_contract::outbound::{Operation, Part, PartStream, Target};

use crate::acts::standing::move_edit_on_txn;
use crate::contract::{NewPlaceholder, Placed, Placeholder};
use crate::rows::messages::{MessageEntry, add_message_txn};
use crate::rows::outbox_rows::{NewPosts, append_post_txn, insert_posts_txn, json};
use crate::rows::places::find_chat;
use crate::rows::quarantine::{Queue, kept_or_set_aside_txn};
use crate::{Reader, Store, StoreError};
use vocative_core::ids::{AccountId, ChatId, LeaseToken, OutboxId, RunId};
use vocative_core::sending::placeholder::{
    Follower, HeldPlaceholder, OnAnswer, OnRetract, OnTurn, PlaceholderLeft, PlaceholderShowing,
    showing,
};

/// Marks the message with platform id ?2 of the entry ?1 as deleted.
const MESSAGE_GONE_SQL: &str = "UPDATE messages SET turn_seq = NULL, text = NULL, gone = 'deleted'
     WHERE account_id = (SELECT account_id FROM outbox WHERE id = ?1)
       AND chat_id IN (SELECT i.identity_id
                       FROM outbox o JOIN chat_ids i ON i.chat_id = o.chat_id WHERE o.id = ?1)
       AND platform_id = ?2
       AND turn_seq = (SELECT turn_seq FROM outbox WHERE id = ?1)";

/// The text of a placeholder that is deleted as soon as it is posted.
const NOTHING: &str = "…";

impl Reader {
    /// Where the placeholder of a run stands; `None` once the run is not worked on under that lease, is
    /// to stop, or has none.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn placeholder(
        &self,
        run: RunId,
        token: LeaseToken,
    ) -> Result<Option<Placeholder>, StoreError> {
        self.read(move |connection| placeholder(connection, run, token))
            .await
    }
}

impl<C: MayReply> Store<C> {
    /// Commits the placeholder of a run, unless it has one.
    ///
    /// # Errors
    /// Storage refuses; then nothing is written.
    pub async fn commit_placeholder(
        &self,
        placeholder: NewPlaceholder,
    ) -> Result<Placed, StoreError> {
        crash::point("placeholder.before-commit");
        let placed = self
            .write(move |connection| place_txn(connection, &placeholder))
            .await?;
        crash::point("placeholder.after-commit");
        Ok(placed)
    }
}

fn place_txn(connection: &Connection, new: &NewPlaceholder) -> Result<Placed, StoreError> {
    let leased = leased_run(connection, new.run, new.token)?.filter(|run| !run.is_cancelled);
    let Some(leased) = leased else {
        return Ok(Placed::Refused);
    };
    if find(connection, leased.row, new.now_ms)?.is_some() {
        return Ok(Placed::Found);
    }
    let room = room_of(connection, &leased)?;
    let posts = NewPosts {
        account: room.account,
        chat: room.conversation.chat,
        turn: None,
        run_row: Some(leased.row),
        target: &new.target,
        operation: &Operation::Post,
        parts: std::slice::from_ref(&new.part),
        now_ms: new.now_ms,
    };
    let id = append_post_txn(connection, &posts, 0, &new.part)?;
    connection
        .prepare_cached("UPDATE outbox SET placeholder_of = ?2 WHERE uuid = ?1")?
        .execute((id, leased.row))?;
    Ok(Placed::Committed)
}

fn placeholder(
    connection: &Connection,
    run: RunId,
    token: LeaseToken,
) -> Result<Option<Placeholder>, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT o.state,
                    CASE WHEN json_valid(o.target) THEN json_extract(o.target, '$.chat') ELSE '' END AS chat,
                    o.message_id
             FROM runs r JOIN outbox o ON o.placeholder_of = r.id
             WHERE r.uuid = ?1 AND r.token = ?2 AND r.state = 'leased'
               AND r.stop_cause IS NULL",
        )?
        .query_row((run, token), |row| {
            let message_id: Option<String> = row.get("message_id")?;
            Ok(match showing(row.get("state")?, message_id.is_some()) {
                PlaceholderShowing::Waits => Placeholder::Waiting,
                PlaceholderShowing::Shows => Placeholder::Shown {
                    chat: row.get("chat")?,
                    message_id: message_id.unwrap_or_default(),
                },
                PlaceholderShowing::Over => Placeholder::Over,
            })
        })
        .optional()?)
}

/// The placeholder that a run holds, as a row.
struct HeldRow {
    row: i64,
    id: OutboxId,
    account: AccountId,
    chat: ChatId,
    target: Target,
    message_id: Option<String>,
    /// What it says, as far as it can be read.
    text: Option<String>,
    held: HeldPlaceholder,
}

fn find(connection: &Connection, run_row: i64, now_ms: i64) -> Result<Option<HeldRow>, StoreError> {
    let found = connection
        .prepare_cached(
            "SELECT id, uuid, account_id, chat_id, state, dead_cause, attempts, target, message_id,
                    CASE WHEN json_valid(payload) THEN json_extract(payload, '$.text') END AS text,
                    CASE WHEN json_valid(payload) THEN json_extract(payload, '$.stream') END IS NOT NULL AS is_streamed
             FROM outbox WHERE placeholder_of = ?1",
        )?
        .query_row([run_row], |row| {
            Ok((
                HeldRow {
                    row: row.get("id")?,
                    id: row.get("uuid")?,
                    account: row.get("account_id")?,
                    chat: row.get("chat_id")?,
                    target: Target {
                        chat: String::new(),
                        thread: None,
                        topic: None,
                        reply_to: None,
                    },
                    message_id: row.get("message_id")?,
                    text: row.get("text")?,
                    held: HeldPlaceholder {
                        stage: row.get("state")?,
                        dead_cause: row.get("dead_cause")?,
                        attempts: row.get("attempts")?,
                        is_streamed: row.get("is_streamed")?,
                    },
                },
                row.get::<_, String>("target")?,
            ))
        })
        .optional()?;
    let Some((held, target)) = found else {
        return Ok(None);
    };
    let at = (Queue::Posts, held.row);
    let decoded = serde_json::from_str(&target).map_err(StoreError::from);
    // If it can't be decoded, the run goes on without a placeholder.
    let target = kept_or_set_aside_txn(connection, at, decoded, now_ms)?;
    Ok(target.map(|target| HeldRow { target, ..held }))
}

/// Commits the posts of a run's answer, the first one in the place of its placeholder if it has one.
/// An edit of the placeholder may still be on its way for `settle_ms`; the answer comes behind it.
pub(crate) fn insert_answer_txn(
    connection: &Connection,
    posts: &NewPosts<'_>,
    settle_ms: i64,
) -> Result<Vec<OutboxId>, StoreError> {
    let run_row = posts.run_row.unwrap_or_default();
    let is_left = crash::is_sabotaged(Sabotage::LeavePlaceholder);
    let Some(held) = find(connection, run_row, posts.now_ms)?.filter(|_| !is_left) else {
        return insert_posts_txn(connection, posts);
    };
    let Some((first, rest)) = posts.parts.split_first() else {
        retract_txn(connection, run_row, posts.now_ms)?;
        return Ok(Vec::new());
    };
    let on_answer = held.held.on_answer(held.text.as_ref() == Some(&first.text));
    let rewritten = match on_answer {
        OnAnswer::LetGo => {
            let_go_txn(connection, &held)?;
            return insert_posts_txn(connection, posts);
        }
        OnAnswer::Rewrite => Some(json(first)),
        OnAnswer::Edit { .. } | OnAnswer::Stand => None,
    };
    connection
        .prepare_cached(
            "UPDATE outbox SET turn_seq = ?2, placeholder_of = NULL, payload = coalesce(?3, payload)
             WHERE id = ?1",
        )?
        .execute((held.row, posts.turn, rewritten))?;
    let mut ids = vec![match on_answer {
        OnAnswer::Edit { is_shown } => {
            let settle_ms = if is_shown { settle_ms } else { 0 };
            edit_txn(connection, posts, &held, first, (is_shown, settle_ms))?
        }
        OnAnswer::Rewrite | OnAnswer::LetGo | OnAnswer::Stand => held.id,
    }];
    for (number, part) in (1_u32..).zip(rest) {
        ids.push(append_post_txn(connection, posts, number, part)?);
    }
    Ok(ids)
}

/// Commits the edit that makes a placeholder the answer's first post. From here on a reply to it is a reply
/// to the answer.
fn edit_txn(
    connection: &Connection,
    posts: &NewPosts<'_>,
    held: &HeldRow,
    first: &Part,
    (is_shown, settle_ms): (bool, i64),
) -> Result<OutboxId, StoreError> {
    let message_id = held.message_id.clone().unwrap_or_default();
    if is_shown {
        let identity = match find_chat(connection, held.account, &held.target.chat)? {
            Some(chat) => chat.identity,
            None => held.chat,
        };
        add_message_txn(
            connection,
            MessageEntry {
                account: held.account,
                identity,
                message_id: &message_id,
                turn_seq: posts.turn.map(|turn| turn.0),
                conversation: None,
                part: 0,
                text: None,
                edit_marker: None,
                sent_at_ms: None,
            },
        )?;
    }
    let edit = NewPosts {
        target: &held.target,
        operation: &Operation::Edit { message_id },
        ..*posts
    };
    let id = append_post_txn(connection, &edit, 0, first)?;
    let is_hurried = crash::is_sabotaged(Sabotage::NoSettling);
    let settle_ms = if is_hurried { 0 } else { settle_ms };
    connection
        .prepare_cached("UPDATE outbox SET edit_of = ?2, not_before_ms = ?3 WHERE uuid = ?1")?
        .execute((id, held.row, posts.now_ms + settle_ms))?;
    Ok(id)
}

/// Retracts the placeholder of a run that ends without an answer.
pub(crate) fn retract_txn(
    connection: &Connection,
    run_row: i64,
    now_ms: i64,
) -> Result<(), StoreError> {
    let is_left = crash::is_sabotaged(Sabotage::LeavePlaceholder);
    let Some(held) = find(connection, run_row, now_ms)?.filter(|_| !is_left) else {
        return Ok(());
    };
    let left = match held.held.on_retract() {
        OnRetract::LetGo => return let_go_txn(connection, &held),
        OnRetract::Delete { left } => left,
    };
    let left = match left {
        PlaceholderLeft::Nothing => Part::plain(""),
        PlaceholderLeft::Mark => Part::plain(NOTHING),
        PlaceholderLeft::StreamedMark => Part::plain(NOTHING).streamed(PartStream {
            text: String::new(),
            person: None,
        }),
    };
    connection
        .prepare_cached("UPDATE outbox SET placeholder_of = NULL, payload = ?2 WHERE id = ?1")?
        .execute((held.row, json(&left)))?;
    let message_id = held.message_id.clone().unwrap_or_default();
    let part = Part::plain("");
    let deletion = NewPosts {
        account: held.account,
        chat: held.chat,
        turn: None,
        run_row: Some(run_row),
        target: &held.target,
        operation: &Operation::Delete { message_id },
        parts: std::slice::from_ref(&part),
        now_ms,
    };
    let id = append_post_txn(connection, &deletion, 0, &part)?;
    connection
        .prepare_cached("UPDATE outbox SET edit_of = ?2 WHERE uuid = ?1")?
        .execute((id, held.row))?;
    Ok(())
}

/// Forgets a placeholder that is not visible, or whose visibility will stay unknown.
fn let_go_txn(connection: &Connection, held: &HeldRow) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE outbox SET state = 'replaced', placeholder_of = NULL, payload = ?2,
                    finished_at_ms = coalesce(finished_at_ms, created_at_ms)
             WHERE id = ?1",
        )?
        .execute((held.row, json(&Part::plain(""))))?;
    Ok(())
}

/// Drops a post that would be deleted as soon as it was posted, unless bytes of it may be out. Returns whether
/// it is such a post.
fn drop_unwanted_txn(connection: &Connection, row: i64, now_ms: i64) -> Result<bool, StoreError> {
    let nothing = json(&Part::plain(""));
    let dropped = connection
        .prepare_cached(concat!(
            "UPDATE outbox SET state = 'replaced', payload = ?2, finished_at_ms = ?3,
                    owner = NULL, token = NULL, lease_until_ms = NULL
             WHERE id = ?1 AND operation IN ('post', 'upload') AND NOT send_started
               AND EXISTS (SELECT 1 FROM outbox d
                           WHERE d.chat_id = outbox.chat_id AND d.edit_of = outbox.id
                             AND ",
            open_post!("d"),
            "
                             AND d.operation = 'delete')"
        ))?
        .execute((row, nothing, now_ms))?;
    if dropped == 0 {
        return Ok(false);
    }
    connection
        .prepare_cached(concat!(
            "UPDATE outbox SET state = 'replaced', finished_at_ms = ?2
             WHERE chat_id = (SELECT chat_id FROM outbox WHERE id = ?1) AND edit_of = ?1
               AND ",
            open_post!(),
            " AND operation = 'delete'"
        ))?
        .execute((row, now_ms))?;
    Ok(true)
}

/// Finds the message that an entry edits or deletes, which had to wait for its post to be sent. Returns
/// whether there is still something to do.
pub(crate) fn resolve_txn(
    connection: &Connection,
    row: i64,
    now_ms: i64,
) -> Result<bool, StoreError> {
    if drop_unwanted_txn(connection, row, now_ms)? {
        return Ok(false);
    }
    let Some(waited) = follower(connection, row)? else {
        return Ok(true);
    };
    let before = waited.post_row;
    match waited.follower.on_turn() {
        OnTurn::Do => {
            let message_id = waited.message_id.unwrap_or_default();
            let deleted = waited.follower.is_deletion.then_some(message_id.as_str());
            replace_said_txn(connection, before, deleted)?;
            connection
                .prepare_cached(
                    "UPDATE outbox SET target = json_set(target, '$.message', ?2) WHERE id = ?1",
                )?
                .execute((row, message_id))?;
            Ok(true)
        }
        OnTurn::Drop => {
            finish_txn(connection, row, now_ms)?;
            Ok(false)
        }
        OnTurn::Forget => {
            finish_txn(connection, before, now_ms)?;
            finish_txn(connection, row, now_ms)?;
            Ok(false)
        }
        OnTurn::SayElsewhere => {
            finish_txn(connection, before, now_ms)?;
            if move_edit_on_txn(connection, row, now_ms)? {
                finish_txn(connection, row, now_ms)?;
                return Ok(false);
            }
            connection
                .prepare_cached(
                    "UPDATE outbox SET operation = 'post', edit_of = NULL,
                            target = json_remove(target, '$.message')
                     WHERE id = ?1",
                )?
                .execute([row])?;
            Ok(true)
        }
    }
}

/// An entry that waited for another one to be sent.
struct FollowerRow {
    post_row: i64,
    message_id: Option<String>,
    follower: Follower,
}

fn follower(connection: &Connection, row: i64) -> Result<Option<FollowerRow>, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT p.id, p.state, p.dead_cause, p.message_id, o.operation = 'delete' AS is_deletion,
                    coalesce(CASE WHEN p.state = 'dead' AND json_valid(p.payload) AND json_valid(o.payload)
                             THEN json_extract(p.payload, '$.text') = json_extract(o.payload, '$.text')
                             END, FALSE) AS says_the_same
             FROM outbox o JOIN outbox p ON p.id = o.edit_of WHERE o.id = ?1",
        )?
        .query_row([row], |row| {
            let message_id: Option<String> = row.get("message_id")?;
            Ok(FollowerRow {
                post_row: row.get("id")?,
                follower: Follower {
                    is_deletion: row.get("is_deletion")?,
                    says_the_same: row.get("says_the_same")?,
                    post: row.get("state")?,
                    post_dead_cause: row.get("dead_cause")?,
                    has_message: message_id.is_some(),
                },
                message_id,
            })
        })
        .optional()?)
}

/// Ends an entry that is no longer wanted, or that another one replaces.
fn finish_txn(connection: &Connection, row: i64, now_ms: i64) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE outbox SET state = 'replaced', finished_at_ms = coalesce(finished_at_ms, ?2)
             WHERE id = ?1",
        )?
        .execute((row, now_ms))?;
    Ok(())
}

/// Empties an entry whose message says something else from here on. A deleted message is also removed from its
/// turn, so that the platform's event about the deletion changes nothing.
fn replace_said_txn(
    connection: &Connection,
    before: i64,
    deleted: Option<&str>,
) -> Result<(), StoreError> {
    connection
        .prepare_cached("UPDATE outbox SET payload = ?2 WHERE id = ?1")?
        .execute((before, json(&Part::plain(""))))?;
    if let Some(message_id) = deleted {
        connection
            .prepare_cached(MESSAGE_GONE_SQL)?
            .execute((before, message_id))?;
    }
    Ok(())
}

/// Whether the text of an entry will be replaced: it is a placeholder, or an edit or deletion of its message
/// waits.
pub(crate) fn gives_place(connection: &Connection, row: i64) -> Result<bool, StoreError> {
    Ok(connection
        .prepare_cached(concat!(
            "SELECT placeholder_of IS NOT NULL
                 OR EXISTS (SELECT 1 FROM outbox e
                            WHERE e.chat_id = o.chat_id AND e.edit_of = o.id
                              AND ",
            open_post!("e"),
            ") AS gives_place
             FROM outbox o WHERE o.id = ?1"
        ))?
        .query_row([row], |row| row.get("gives_place"))?)
}

/// Moves the references to an entry to the entry that replaces it: the run that holds it and the edit that waits.
pub(crate) fn move_txn(
    connection: &Connection,
    from: i64,
    chat: ChatId,
    to: OutboxId,
) -> Result<(), StoreError> {
    let run_row: Option<i64> = connection
        .prepare_cached("SELECT placeholder_of FROM outbox WHERE id = ?1")?
        .query_row([from], |row| row.get("placeholder_of"))?;
    if run_row.is_some() {
        connection
            .prepare_cached("UPDATE outbox SET placeholder_of = NULL, payload = ?2 WHERE id = ?1")?
            .execute((from, json(&Part::plain(""))))?;
        connection
            .prepare_cached("UPDATE outbox SET placeholder_of = ?2 WHERE uuid = ?1")?
            .execute((to, run_row))?;
    }
    connection
        .prepare_cached(concat!(
            "UPDATE outbox SET edit_of = (SELECT id FROM outbox WHERE uuid = ?3)
             WHERE chat_id = ?1 AND ",
            open_post!(),
            " AND edit_of = ?2"
        ))?
        .execute((chat, from, to))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::Scene;

    #[tokio::test]
    async fn taking_a_placeholder_back_looks_at_one_message() {
        let plan = Scene::open().await.plan(MESSAGE_GONE_SQL).await;
        let mut messages = plan.iter().filter(|step| step.contains(" messages "));
        let is_by_id = |step: &String| step.starts_with("SEARCH") && step.contains("platform_id=?");
        assert!(messages.next().is_some_and(is_by_id), "{plan:?}");
        assert!(
            plan.iter().all(|step| !step.starts_with("SCAN")),
            "{plan:?}"
        );
    }
}
