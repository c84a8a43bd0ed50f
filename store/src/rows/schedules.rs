//! Schedules and firings as rows: how they are found and read back. What they do: `acts/schedules`.

use crate::engine::sql::{Connection, OptionalExtension, Row};

use crate::contract::{DueSchedules, ScheduleFilter};
use crate::registry::{
    BY_PARENT, ErasureRule, ExpiryRule, Fate, MergeRule, Restore, STATE, StoreTable, account, text,
};
use crate::rows::columns::{account_list, count_from, limit_of, unknown_state};
use crate::rows::delegations::asked_run;
use crate::rows::open::open_run;
use crate::{Reader, StoreError};
use vocative_core::ids::{AccountId, ChatId, RunId};
use vocative_core::scheduling::{
    NewSchedule, Owned, StoredFiring, StoredSchedule, Timing, is_doubtful,
};

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[
    account(
        "firings",
        text(&[], &[], &["outcome"]),
        Fate {
            person: ErasureRule::Deleted,
            chat: ErasureRule::Deleted,
            message: ErasureRule::Deleted,
            merge: MergeRule::Nothing(BY_PARENT),
            ..STATE
        },
    ),
    account(
        "schedules",
        text(
            &["task"],
            &[],
            &[
                "name",
                "made_by_message",
                "agent",
                "timing",
                "zone",
                "missed_rule",
                "state",
                "reason",
            ],
        ),
        Fate {
            person: ErasureRule::Deleted,
            chat: ErasureRule::Deleted,
            message: ErasureRule::Deleted,
            merge: MergeRule::Moves,
            expiry: ExpiryRule::Nothing(
                "it is to be done yet; of those that are over a chat keeps a few",
            ),
            restore: Restore::Held,
            ..STATE
        },
    )
    .moves_with_chat("chat_id")
    .moves_with_conversation("conversation_id"),
];

macro_rules! select_schedules {
    ($tail:expr) => {
        concat!(
            "SELECT s.id, s.name, h.account_id, s.chat_id, h.platform_id AS platform_chat, c.uuid AS conversation,
                    s.participant_id, p.platform_id AS person,
                    coalesce(p.display_name, p.username, p.platform_id) AS person_name,
                    s.agent, s.timing, s.zone, s.jitter_ms, s.missed_rule, s.task, s.state, s.reason, s.at_ms,
                    s.set_at_ms, s.fired, s.missed, s.created_at_ms,
                    EXISTS (SELECT 1 FROM runs r WHERE r.id = s.last_run_id AND r.",
            open_run!(),
            ") AS is_last_open
             FROM schedules s JOIN chats h ON h.id = s.chat_id JOIN conversations c ON c.id = s.conversation_id
             LEFT JOIN participants p ON p.id = s.participant_id ",
            $tail
        )
    };
}

pub(crate) const DUE_SQL: &str = select_schedules!(
    "WHERE s.state = 'active' AND s.due_ms <= ?1
               AND h.account_id IN (SELECT value FROM json_each(?3)) ORDER BY s.due_ms LIMIT ?2"
);
/// Schedules whose time was worked out under another clock, as `set_at_ms` lies in the future. `UNSET_SQL` finds
/// those without one, in a database that a backup has replaced.
pub(crate) const DOUBTFUL_SQL: &str = select_schedules!(
    "WHERE s.state = 'active' AND s.set_at_ms > ?1
               AND h.account_id IN (SELECT value FROM json_each(?3)) ORDER BY s.set_at_ms LIMIT ?2"
);
pub(crate) const UNSET_SQL: &str = select_schedules!(
    "WHERE s.state = 'active' AND s.set_at_ms IS NULL AND ?1 IS NOT NULL
               AND h.account_id IN (SELECT value FROM json_each(?3)) LIMIT ?2"
);
pub(crate) const NEXT_SQL: &str =
    "SELECT min(due_ms) AS due_ms FROM schedules WHERE state = 'active'";
const OF_CHAT_SQL: &str = select_schedules!(
    "WHERE s.chat_id = ?1 AND s.state IN ('active', 'paused') ORDER BY s.id LIMIT ?2"
);
const OPEN_SQL: &str =
    select_schedules!("WHERE s.state IN ('active', 'paused') ORDER BY s.id LIMIT ?1");
const ALL_SQL: &str = select_schedules!("ORDER BY s.id DESC LIMIT ?1");
const ONE_SQL: &str = select_schedules!("WHERE s.id = ?1");

impl Reader {
    /// Schedules of these accounts whose time has come, or was worked out under another clock, up to a limit.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn due_schedules(
        &self,
        accounts: Vec<AccountId>,
        now_ms: i64,
        limit: usize,
    ) -> Result<DueSchedules, StoreError> {
        self.read(move |connection| due_schedules(connection, &accounts, now_ms, limit))
            .await
    }

    /// When the next schedule is due, in milliseconds since the Unix epoch.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn next_schedule_due_ms(&self) -> Result<Option<i64>, StoreError> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(NEXT_SQL)?;
            Ok(statement.query_row([], |row| row.get("due_ms"))?)
        })
        .await
    }

    /// Schedules, by their numbers; rows that can't be decoded are left out.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn schedules(
        &self,
        filter: ScheduleFilter,
        limit: usize,
    ) -> Result<Vec<StoredSchedule>, StoreError> {
        self.read(move |connection| {
            let sql = match filter {
                ScheduleFilter::Open => OPEN_SQL,
                ScheduleFilter::All => ALL_SQL,
            };
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map([limit_of(limit)], schedule_row)?;
            Ok(rows.filter_map(Result::ok).collect())
        })
        .await
    }

    /// A schedule; `None` if there is no such one.
    ///
    /// # Errors
    /// Storage refuses, or its row can't be decoded.
    pub async fn schedule(&self, id: i64) -> Result<Option<StoredSchedule>, StoreError> {
        self.read(move |connection| schedule_of(connection, id))
            .await
    }

    /// What became of the times of a schedule, newest first.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn firings(&self, id: i64, limit: usize) -> Result<Vec<StoredFiring>, StoreError> {
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT f.at_ms, f.decided_at_ms, f.outcome, f.missed_before, r.uuid AS run
                 FROM firings f LEFT JOIN runs r ON r.id = f.run_id
                 WHERE f.schedule_id = ?1 ORDER BY f.at_ms DESC LIMIT ?2",
            )?;
            let rows = statement.query_map((id, limit_of(limit)), |row| {
                Ok(StoredFiring {
                    at_ms: row.get("at_ms")?,
                    decided_at_ms: row.get("decided_at_ms")?,
                    outcome: row.get("outcome")?,
                    missed_before: row.get("missed_before")?,
                    run: row.get("run")?,
                })
            })?;
            Ok(rows.collect::<crate::engine::sql::Result<_>>()?)
        })
        .await
    }

    /// Whether a schedule started a run, or the one that people asked for above it.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn is_scheduled(&self, run: RunId) -> Result<bool, StoreError> {
        self.read(move |connection| {
            let row: i64 = connection
                .prepare_cached("SELECT coalesce((SELECT id FROM runs WHERE uuid = ?1), -1) AS id")?
                .query_row([run], |row| row.get("id"))?;
            Ok(connection
                .prepare_cached("SELECT EXISTS (SELECT 1 FROM firings WHERE run_id = ?1) AS is_so")?
                .query_row([asked_run(connection, row)?], |row| row.get("is_so"))?)
        })
        .await
    }
}

fn due_schedules(
    connection: &Connection,
    accounts: &[AccountId],
    now_ms: i64,
    limit: usize,
) -> Result<DueSchedules, StoreError> {
    let mut found = DueSchedules::default();
    let accounts = account_list(accounts);
    for sql in [UNSET_SQL, DOUBTFUL_SQL, DUE_SQL] {
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query((now_ms, limit_of(limit), &accounts))?;
        while let Some(row) = rows.next()? {
            match schedule_row(&row) {
                // A schedule may be both due and doubtful. A time that is only a little ahead is not doubtful.
                Ok(schedule) => {
                    let is_due = schedule.at_ms.is_some_and(|at_ms| at_ms <= now_ms);
                    let is_known = found.due.iter().any(|it| it.id == schedule.id);
                    if !is_known && (is_due || is_doubtful(schedule.set_at_ms, now_ms)) {
                        found.due.push(schedule);
                    }
                }
                Err(_) => found.broken.push(row.get("id")?),
            }
        }
    }
    found.broken.sort_unstable();
    found.broken.dedup();
    Ok(found)
}

/// The schedules of a chat that are not over.
pub(crate) fn schedules_of_chat(
    connection: &Connection,
    chat: ChatId,
    limit: usize,
) -> Result<Vec<StoredSchedule>, StoreError> {
    let mut statement = connection.prepare_cached(OF_CHAT_SQL)?;
    let rows = statement.query_map((chat, limit_of(limit)), schedule_row)?;
    Ok(rows.filter_map(Result::ok).collect())
}

/// A schedule, if there is one.
pub(crate) fn schedule_of(
    connection: &Connection,
    id: i64,
) -> Result<Option<StoredSchedule>, StoreError> {
    Ok(connection
        .prepare_cached(ONE_SQL)?
        .query_row([id], schedule_row)
        .optional()?)
}

fn schedule_row(row: &Row<'_>) -> crate::engine::sql::Result<StoredSchedule> {
    let (timing, zone): (String, String) = (row.get("timing")?, row.get("zone")?);
    let timing = Timing::from_text(&timing, &zone)
        .ok_or_else(|| unknown_state("schedule's time", &format!("{timing} {zone}")))?;
    let participant: Option<_> = row.get("participant_id")?;
    let owner = match participant {
        None => None,
        Some(participant) => Some(Owned {
            participant,
            id: row.get("person")?,
            name: row.get("person_name")?,
        }),
    };
    Ok(StoredSchedule {
        id: row.get("id")?,
        name: row.get("name")?,
        account: row.get("account_id")?,
        chat: row.get("chat_id")?,
        platform_chat: row.get("platform_chat")?,
        conversation: row.get("conversation")?,
        owner,
        what: NewSchedule {
            timing,
            jitter_ms: row.get("jitter_ms")?,
            missed: row.get("missed_rule")?,
            agent: row.get("agent")?,
            task: row.get("task")?,
        },
        state: row.get("state")?,
        reason: row.get("reason")?,
        at_ms: row.get("at_ms")?,
        set_at_ms: row.get("set_at_ms")?,
        fired: count_from(row.get("fired")?),
        missed: count_from(row.get("missed")?),
        is_last_open: row.get("is_last_open")?,
        created_at_ms: row.get("created_at_ms")?,
    })
}
