//! What hooks are told: a row for each telling, written with what it tells of, and kept until the hook was told.
//!
//! The hooks to tell are in a table of their own, written from the settings at each start and reload, because a run or
//! an approval also ends where the settings are not at hand. A row holds ids, times and words of closed lists, never a
//! text.

use crate::capability::MayWork;
use crate::contract::{Telling, TellingHook};
use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::registry::{
    BY_PARENT, Class, ExpiryRule, Fate, MergeRule, STATE, StoreTable, account, nobody, text,
};
use crate::{Reader, Store, StoreError};
use vocative_core::hooking::HookPoint;
use vocative_core::ids::TellingId;

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[
    nobody(
        "telling_hooks",
        "which hooks are told is the operator's setting",
        text(&[], &[], &["agent", "point", "hook"]),
        STATE,
    ),
    account(
        "tellings",
        text(&[], &[], &["hook", "point", "outcome"]),
        Fate {
            merge: MergeRule::Nothing(BY_PARENT),
            expiry: ExpiryRule::Deleted(Class::Runs),
            ..STATE
        },
    ),
];

impl Reader {
    /// What is to be told; `None` = it was, or is no longer wanted.
    ///
    /// # Errors
    /// Storage refuses, or `Undecodable`: another build wrote it.
    pub async fn telling(&self, id: TellingId) -> Result<Option<Telling>, StoreError> {
        self.read(move |connection| telling_of(connection, id))
            .await
    }
}

impl<C: MayWork> Store<C> {
    /// Sets which hooks are told of what; what ended before is still told as it was to be.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn set_telling_hooks(&self, hooks: Vec<TellingHook>) -> Result<(), StoreError> {
        self.write(move |connection| {
            connection.execute("DELETE FROM telling_hooks", [])?;
            let mut insert = connection.prepare_cached(
                "INSERT OR IGNORE INTO telling_hooks (agent, point, hook) VALUES (?1, ?2, ?3)",
            )?;
            for TellingHook { agent, point, hook } in hooks {
                insert.execute(params![agent, point.name(), hook])?;
            }
            Ok(())
        })
        .await
    }

    /// Notes that a hook was told.
    ///
    /// # Errors
    /// Storage refuses; then it is told again, with the same id.
    pub async fn forget_telling(&self, id: TellingId) -> Result<(), StoreError> {
        self.write_riding(move |connection| forget_telling_txn(connection, id))
            .await
    }
}

/// Deletes the row of something that was told, or is not to be told any more.
pub(crate) fn forget_telling_txn(connection: &Connection, id: TellingId) -> Result<(), StoreError> {
    connection
        .prepare_cached("DELETE FROM tellings WHERE uuid = ?1")?
        .execute([id])?;
    Ok(())
}

fn telling_of(connection: &Connection, id: TellingId) -> Result<Option<Telling>, StoreError> {
    let found = connection
        .prepare_cached(
            "SELECT w.hook, w.point, w.outcome, w.at_ms, r.uuid AS run, r.agent, v.uuid AS conversation,
                    coalesce((SELECT n.name FROM channels n WHERE n.account_id = c.account_id
                              ORDER BY n.bound_at_ms DESC LIMIT 1), x.name) AS channel,
                    c.platform_id AS chat, p.platform_id AS person,
                    a.uuid AS approval, a.tool, a.via, a.operator, d.platform_id AS decided_by
             FROM tellings w
             JOIN runs r ON r.id = w.run_id
             JOIN conversations v ON v.id = r.conversation_id
             JOIN chats c ON c.id = r.chat_id
             JOIN accounts x ON x.id = c.account_id
             LEFT JOIN participants p ON p.id = r.person_participant_id
             LEFT JOIN approvals a ON a.id = w.approval_id
             LEFT JOIN participants d ON d.id = a.decided_by
             WHERE w.uuid = ?1",
        )?
        .query_row([id], |row| {
            let point: String = row.get("point")?;
            let telling = Telling {
                id,
                hook: row.get("hook")?,
                point: HookPoint::RunEnded,
                outcome: row.get("outcome")?,
                at_ms: row.get("at_ms")?,
                run: row.get("run")?,
                agent: row.get("agent")?,
                conversation: row.get("conversation")?,
                channel: row.get("channel")?,
                chat: row.get("chat")?,
                person: row.get("person")?,
                approval: row.get("approval")?,
                tool: row.get("tool")?,
                via: row.get("via")?,
                operator: row.get("operator")?,
                decided_by: row.get("decided_by")?,
            };
            Ok((telling, point))
        })
        .optional()?;
    let Some((telling, point)) = found else {
        return Ok(None);
    };
    let point = HookPoint::from_name(&point).ok_or_else(|| StoreError::Undecodable {
        what: "a hook is to be told of a point that this build does not know".to_owned(),
    })?;
    Ok(Some(Telling { point, ..telling }))
}
