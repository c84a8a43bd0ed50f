//! Approvals and grants as rows: how they are found and read back.

use crate::engine::sql::{Connection, OptionalExtension, Row};

use crate::contract::{ApprovalCount, ApprovalFilter};
use crate::registry::{
    ErasureRule, Fate, MergeRule, OF_RUN, Restore, STATE, StoreTable, account, text,
};
use crate::rows::columns::{conversation_row_id, limit_of, missing};
use crate::rows::delegations::asked_run;
use crate::rows::run_taints::taints_before;
use crate::{Reader, StoreError};
use vocative_core::approving::{
    ApprovalDeadline, ApprovalState, Approvers, Changer, Consent, DecidedBy, Requester,
    StoredApproval, StoredGrant, Taint,
};
use vocative_core::ids::{AccountId, ApprovalId, ChatId, RunId, ToolCallId};

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[
    account(
        "approval_grants",
        text(&[], &[], &["agent", "tool", "operator", "revoked_by"]),
        Fate {
            merge: MergeRule::Moves,
            ..STATE
        },
    )
    .moves_with_chat("chat_id"),
    account(
        "approvals",
        text(
            &["note", "outcomes"],
            &[],
            &[
                "tool",
                "target",
                "asking",
                "approvers",
                "state",
                "operator",
                "via",
                "parameters",
                "operator_people",
            ],
        ),
        Fate {
            person: ErasureRule::Emptied,
            chat: ErasureRule::Emptied,
            message: ErasureRule::Emptied,
            restore: Restore::Held,
            ..OF_RUN
        },
    ),
];

macro_rules! select_approvals {
    ($tail:literal) => {
        concat!(
            "SELECT a.id, a.uuid, r.uuid AS run, c.account_id, i.platform_id AS chat, r.agent, a.run_id, a.tool, a.target,
                    coalesce(t.arguments, '') AS arguments, a.digest, a.approvers, a.is_whole, a.state,
                    a.asked_at_ms, a.expires_at_ms, a.decided_at_ms, a.via, a.note,
                    coalesce(a.operator, d.display_name, d.username, d.platform_id) AS decided_by
             FROM approvals a JOIN runs r ON r.id = a.run_id
             JOIN chats c ON c.id = r.chat_id JOIN chat_ids i ON i.identity_id = (
                 SELECT max(n.identity_id) FROM chat_ids n WHERE n.chat_id = c.id)
             LEFT JOIN tool_calls t ON t.id = a.call_id
             LEFT JOIN participants d ON d.id = a.decided_by ",
            $tail
        )
    };
}

const OPEN_SQL: &str = select_approvals!(
    "WHERE a.state = 'open' AND (?1 IS NULL OR r.conversation_id = ?1)
               AND (?3 IS NULL OR a.id < (SELECT id FROM approvals WHERE uuid = ?3))
             ORDER BY a.id DESC LIMIT ?2"
);
const ALL_SQL: &str = select_approvals!(
    "WHERE (?1 IS NULL OR r.conversation_id = ?1)
               AND (?3 IS NULL OR a.id < (SELECT id FROM approvals WHERE uuid = ?3))
             ORDER BY a.id DESC LIMIT ?2"
);

impl Reader {
    /// Approvals, newest first.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation.
    pub async fn approvals(
        &self,
        filter: ApprovalFilter,
        limit: usize,
    ) -> Result<Vec<StoredApproval>, StoreError> {
        self.read(move |connection| {
            let place = filter.conversation;
            let place = place.map(|id| conversation_row_id(connection, id));
            let sql = if filter.is_open { OPEN_SQL } else { ALL_SQL };
            let mut statement = connection.prepare_cached(sql)?;
            let asked = (place.transpose()?, limit_of(limit), filter.before);
            let rows = statement.query_map(asked, approval_row)?;
            let rows: Vec<ApprovalRow> = rows.collect::<crate::engine::sql::Result<_>>()?;
            rows.into_iter()
                .map(|row| row.with_requesters(connection))
                .collect()
        })
        .await
    }

    /// An approval.
    ///
    /// # Errors
    /// `NotFound` if there is no such approval.
    pub async fn approval(&self, id: ApprovalId) -> Result<StoredApproval, StoreError> {
        self.read(move |connection| {
            let found = approval_of(connection, id)?;
            Ok(found.ok_or_else(|| not_found(id))?.approval)
        })
        .await
    }

    /// The JSON schema that other arguments of a call would be held against; `None` = they can't be changed.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn approval_parameters(&self, id: ApprovalId) -> Result<Option<String>, StoreError> {
        self.read(move |connection| {
            let found: Option<Option<String>> = connection
                .prepare_cached("SELECT parameters FROM approvals WHERE uuid = ?1")?
                .query_row([id], |row| row.get("parameters"))
                .optional()?;
            Ok(found.flatten())
        })
        .await
    }

    /// Who changed a call's arguments while it waited, once for each change.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn changers_of_call(&self, call: ToolCallId) -> Result<Vec<Changer>, StoreError> {
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT coalesce(b.operator, p.platform_id, '') AS id, p.display_name, p.username, b.operator, b.operator_people
                 FROM tool_calls t JOIN approvals b ON b.call_id = t.id AND b.state = 'changed'
                 LEFT JOIN participants p ON p.id = b.decided_by
                 WHERE t.uuid = ?1 ORDER BY b.id",
            )?;
            let people = statement.query_map([call], changer)?;
            Ok(people.collect::<crate::engine::sql::Result<_>>()?)
        })
        .await
    }

    /// Everybody who asked for a run.
    ///
    /// # Errors
    /// `NotFound` if there is no such run.
    pub async fn run_requesters(&self, run: RunId) -> Result<Vec<Requester>, StoreError> {
        self.read(move |connection| {
            let row = connection
                .prepare_cached("SELECT id FROM runs WHERE uuid = ?1")?
                .query_row([run], |row| row.get("id"))
                .map_err(|error| missing(error, || format!("run {run}")))?;
            requesters(connection, row)
        })
        .await
    }

    /// When the next open approval or question expires, in milliseconds since the Unix epoch; `None` if none does.
    /// May lie in the past. One that was asked for in the future was asked for under another clock, and is due.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn next_expiry_ms(&self, now_ms: i64) -> Result<Option<i64>, StoreError> {
        self.read(move |connection| {
            let due = connection
                .prepare_cached(
                    "SELECT min(due_ms) AS due_ms FROM (
                         SELECT min(iif(asked_at_ms > ?1, ?1, expires_at_ms)) AS due_ms FROM approvals
                         WHERE state = 'open' AND expires_at_ms IS NOT NULL
                         UNION ALL
                         SELECT min(iif(asked_at_ms > ?1, ?1, expires_at_ms)) FROM questions WHERE state = 'open')",
                )?
                .query_row([now_ms], |row| row.get("due_ms"))?;
            Ok(due)
        })
        .await
    }

    /// Standing consents that hold, newest first.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn grants(&self, now_ms: i64, limit: usize) -> Result<Vec<StoredGrant>, StoreError> {
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT g.uuid, c.account_id, i.platform_id AS chat, g.agent, g.tool, g.digest IS NOT NULL AS is_exact,
                        coalesce(p.display_name, p.username, p.platform_id) AS person,
                        coalesce(g.operator, b.display_name, b.username, b.platform_id) AS granted_by,
                        g.granted_at_ms, g.until_ms, g.uses
                 FROM approval_grants g JOIN chats c ON c.id = g.chat_id
                 JOIN chat_ids i ON i.identity_id = (
                     SELECT max(n.identity_id) FROM chat_ids n WHERE n.chat_id = c.id)
                 JOIN participants p ON p.id = g.participant_id
                 LEFT JOIN participants b ON b.id = g.granted_by
                 WHERE g.revoked_at_ms IS NULL AND (g.until_ms IS NULL OR g.until_ms > ?1)
                 ORDER BY g.id DESC LIMIT ?2",
            )?;
            let grants = statement.query_map((now_ms, limit_of(limit)), |row| {
                Ok(StoredGrant {
                    id: row.get("uuid")?,
                    account: row.get("account_id")?,
                    chat: row.get("chat")?,
                    agent: row.get("agent")?,
                    tool: row.get("tool")?,
                    is_exact: row.get("is_exact")?,
                    person: row.get("person")?,
                    granted_by: row.get("granted_by")?,
                    granted_at_ms: row.get("granted_at_ms")?,
                    until_ms: row.get("until_ms")?,
                    uses: row.get("uses")?,
                })
            })?;
            Ok(grants.collect::<crate::engine::sql::Result<_>>()?)
        })
        .await
    }
}

pub(crate) fn not_found(id: ApprovalId) -> StoreError {
    missing(crate::engine::sql::Error::QueryReturnedNoRows, || {
        format!("approval {id}")
    })
}

/// An approval with where its row is.
pub(crate) struct ApprovalRow {
    pub(crate) row: i64,
    pub(crate) run_row: i64,
    pub(crate) approval: StoredApproval,
}

impl ApprovalRow {
    fn with_requesters(mut self, connection: &Connection) -> Result<StoredApproval, StoreError> {
        self.approval.requesters = requesters(connection, self.run_row)?;
        self.approval.changed_by = changers(connection, self.row)?;
        self.approval.read = read_before(connection, &self)?;
        Ok(self.approval)
    }
}

/// An approval by its identity.
pub(crate) fn approval_of(
    connection: &Connection,
    id: ApprovalId,
) -> Result<Option<ApprovalRow>, StoreError> {
    let found = connection
        .prepare_cached(select_approvals!("WHERE a.uuid = ?1"))?
        .query_row([id], approval_row)
        .optional()?;
    let Some(mut row) = found else {
        return Ok(None);
    };
    row.approval.requesters = requesters(connection, row.run_row)?;
    row.approval.changed_by = changers(connection, row.row)?;
    row.approval.read = read_before(connection, &row)?;
    Ok(Some(row))
}

/// The open approvals of runs that answer in a chat, oldest first.
pub(crate) fn open_in_chat(
    connection: &Connection,
    chat: ChatId,
    limit: usize,
) -> Result<Vec<ApprovalRow>, StoreError> {
    let mut statement = connection.prepare_cached(select_approvals!(
        "WHERE a.state = 'open' AND r.chat_id = ?1 ORDER BY a.id LIMIT ?2"
    ))?;
    let rows = statement.query_map((chat, limit_of(limit)), approval_row)?;
    let mut found: Vec<ApprovalRow> = rows.collect::<crate::engine::sql::Result<_>>()?;
    for row in &mut found {
        row.approval.requesters = requesters(connection, row.run_row)?;
    }
    Ok(found)
}

/// What the run had read when it asked for the call; nothing once the call was forgotten.
fn read_before(connection: &Connection, row: &ApprovalRow) -> Result<Vec<Taint>, StoreError> {
    let step: Option<u32> = connection
        .prepare_cached(
            "SELECT (SELECT t.step FROM tool_calls t WHERE t.id = a.call_id) AS step
             FROM approvals a WHERE a.id = ?1",
        )?
        .query_row([row.row], |found| found.get("step"))?;
    taints_before(connection, row.run_row, step.unwrap_or(0))
}

fn approval_row(row: &Row<'_>) -> crate::engine::sql::Result<ApprovalRow> {
    let approvers: String = row.get("approvers")?;
    Ok(ApprovalRow {
        row: row.get("id")?,
        run_row: row.get("run_id")?,
        approval: StoredApproval {
            id: row.get("uuid")?,
            run: row.get("run")?,
            account: row.get::<_, AccountId>("account_id")?,
            chat: row.get("chat")?,
            agent: row.get("agent")?,
            tool: row.get("tool")?,
            target: row.get("target")?,
            arguments: row.get("arguments")?,
            digest: row.get("digest")?,
            // Approvers that can't be read admit nobody.
            approvers: Approvers::from_text(&approvers).unwrap_or_default(),
            is_whole: row.get("is_whole")?,
            state: row.get("state")?,
            expiry: ApprovalDeadline {
                asked_at_ms: row.get("asked_at_ms")?,
                expires_at_ms: row.get("expires_at_ms")?,
            },
            requesters: Vec::new(),
            changed_by: Vec::new(),
            decided: DecidedBy {
                name: row.get("decided_by")?,
                at_ms: row
                    .get::<_, Option<i64>>("decided_at_ms")?
                    .unwrap_or_default(),
                note: row.get("note")?,
            },
            via: row.get("via")?,
            read: Vec::new(),
        },
    })
}

impl Reader {
    /// What became of calls that were asked about from a time on, by tool.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn approval_counts(&self, since_ms: i64) -> Result<Vec<ApprovalCount>, StoreError> {
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "WITH waits AS (
                     SELECT tool, decided_at_ms - asked_at_ms AS wait_ms,
                            row_number() OVER (PARTITION BY tool ORDER BY decided_at_ms - asked_at_ms) AS n,
                            count(*) OVER (PARTITION BY tool) AS of_tool
                     FROM approvals
                     WHERE asked_at_ms >= ?1 AND state IN ('approved', 'denied') AND decided_at_ms IS NOT NULL)
                 SELECT a.tool, count(*) AS asked,
                        count(*) FILTER (WHERE state = 'open') AS open,
                        count(*) FILTER (WHERE state = 'approved') AS approved,
                        count(*) FILTER (WHERE state = 'denied') AS denied,
                        count(*) FILTER (WHERE state = 'expired') AS expired,
                        count(*) FILTER (WHERE state = 'cancelled') AS cancelled,
                        count(*) FILTER (WHERE state = 'changed') AS changed,
                        (SELECT w.wait_ms FROM waits w WHERE w.tool = a.tool AND w.n = (w.of_tool + 1) / 2)
                            AS median_wait_ms
                 FROM approvals a WHERE a.asked_at_ms >= ?1 GROUP BY a.tool ORDER BY asked DESC, a.tool",
            )?;
            let counts = statement.query_map([since_ms], |row| {
                Ok(ApprovalCount {
                    tool: row.get("tool")?,
                    asked: row.get("asked")?,
                    open: row.get("open")?,
                    approved: row.get("approved")?,
                    denied: row.get("denied")?,
                    expired: row.get("expired")?,
                    cancelled: row.get("cancelled")?,
                    changed: row.get("changed")?,
                    median_wait_ms: row.get("median_wait_ms")?,
                })
            })?;
            Ok(counts.collect::<crate::engine::sql::Result<_>>()?)
        })
        .await
    }
}

/// The JSON schema that the arguments of an approval's call are held against; `None` = they can't be changed.
pub(crate) fn parameters_of(
    connection: &Connection,
    approval_row: i64,
) -> Result<Option<String>, StoreError> {
    let found = connection
        .prepare_cached("SELECT parameters FROM approvals WHERE id = ?1")?
        .query_row([approval_row], |row| row.get("parameters"))?;
    Ok(found)
}

/// Everybody whose messages a run answers; of one that another run started, those of the run that people asked for.
pub(crate) fn requesters(
    connection: &Connection,
    run_row: i64,
) -> Result<Vec<Requester>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT p.platform_id, p.display_name, p.username FROM participants p
         WHERE p.id IN (SELECT t.participant_id FROM run_triggers g JOIN turns t ON t.seq = g.turn_seq
                        WHERE g.run_id = ?1
                        UNION SELECT person_participant_id FROM runs WHERE id = ?1)
           AND p.kind = 'user'
         ORDER BY p.platform_id",
    )?;
    let people = statement.query_map([asked_run(connection, run_row)?], |row| {
        Ok(Requester {
            id: row.get("platform_id")?,
            display_name: row.get("display_name")?,
            username: row.get("username")?,
        })
    })?;
    Ok(people.collect::<crate::engine::sql::Result<_>>()?)
}

/// The consent that a call has by its own approval, and who decided; `None` if nobody was asked.
pub(crate) fn consent_of_call(
    connection: &Connection,
    call_row: i64,
) -> Result<Option<(Consent, DecidedBy)>, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT a.state, a.decided_at_ms, a.note, a.digest = t.digest AS is_same,
                    coalesce(a.operator, d.display_name, d.username, d.platform_id) AS decided_by
             FROM approvals a JOIN tool_calls t ON t.id = a.call_id
             LEFT JOIN participants d ON d.id = a.decided_by
             WHERE a.call_id = ?1 AND a.state <> 'changed' ORDER BY a.id DESC LIMIT 1",
        )?
        .query_row([call_row], |row| {
            let state: ApprovalState = row.get("state")?;
            let consent = match state {
                ApprovalState::Open => Consent::Open,
                ApprovalState::Approved if row.get("is_same")? => Consent::Given,
                ApprovalState::Approved => Consent::Refused(ApprovalState::Cancelled),
                ended => Consent::Refused(ended),
            };
            let by = DecidedBy {
                name: row.get("decided_by")?,
                at_ms: row
                    .get::<_, Option<i64>>("decided_at_ms")?
                    .unwrap_or_default(),
                note: row.get("note")?,
            };
            Ok((consent, by))
        })
        .optional()?)
}

/// Whether people changed the arguments of a call that waited.
pub(crate) fn was_changed(connection: &Connection, call_row: i64) -> Result<bool, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM approvals WHERE call_id = ?1 AND state = 'changed') AS is_so",
        )?
        .query_row([call_row], |row| row.get("is_so"))?)
}

/// Who changed the call of an approval before the approval was asked for, once for each change.
fn changers(connection: &Connection, approval_row: i64) -> Result<Vec<Changer>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT coalesce(b.operator, p.platform_id, '') AS id, p.display_name, p.username, b.operator, b.operator_people
         FROM approvals a JOIN approvals b ON b.call_id = a.call_id AND b.id < a.id AND b.state = 'changed'
         LEFT JOIN participants p ON p.id = b.decided_by
         WHERE a.id = ?1 ORDER BY b.id",
    )?;
    let people = statement.query_map([approval_row], changer)?;
    Ok(people.collect::<crate::engine::sql::Result<_>>()?)
}

fn changer(row: &Row<'_>) -> crate::engine::sql::Result<Changer> {
    let operator: Option<String> = row.get("operator")?;
    let people: Option<String> = row.get("operator_people")?;
    let people = people.and_then(|people| serde_json::from_str(&people).ok());
    Ok(Changer {
        who: Requester {
            id: row.get("id")?,
            display_name: row.get("display_name")?,
            username: row.get("username")?,
        },
        operator_people: operator.map(|_| people.unwrap_or_default()),
    })
}

/// Where the posts of an approval are.
pub(crate) struct CardRow {
    pub(crate) account: AccountId,
    pub(crate) chat: ChatId,
    pub(crate) post_row: i64,
    pub(crate) message_id: Option<String>,
    /// Whether sending it has not begun.
    pub(crate) is_unsent: bool,
}

impl CardRow {
    pub(crate) fn read(row: &Row<'_>) -> crate::engine::sql::Result<Self> {
        Ok(Self {
            account: row.get("account_id")?,
            chat: row.get("chat_id")?,
            post_row: row.get("id")?,
            message_id: row.get("message_id")?,
            is_unsent: row.get("is_unsent")?,
        })
    }
}

/// The entry of the outbox that shows an approval's card, while it is kept.
pub(crate) fn card_of(
    connection: &Connection,
    approval_row: i64,
) -> Result<Option<CardRow>, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT o.id, o.account_id, o.chat_id, o.message_id,
                    o.state = 'pending' AND NOT o.send_started AS is_unsent
             FROM approvals a JOIN outbox o ON o.id = a.card_post WHERE a.id = ?1",
        )?
        .query_row([approval_row], CardRow::read)
        .optional()?)
}
