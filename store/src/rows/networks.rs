//! Runs of networks: decisions, agent calls that ended, and values that outlive a run.
//!
//! A decision and the end of a call are written once and never change: a resumed run reads them here. They go with the
//! steps of their run. Values of a conversation go with what was said in it, as they may repeat it.

use crate::capability::MayReply;
use crate::engine::sql::{Connection, OptionalExtension, params};
use crate::rows::leases::leased_run;

use crate::contract::{AskedInRun, KeptValues, LeaseOutcome, ValuesToKeep};
use crate::registry::{
    Class, ErasureRule, ExpiryRule, ExportRule, Fate, MergeRule, OF_RUN, OF_TURN, StoreTable,
    account, text,
};
use crate::rows::columns::{conversation_row_id, count_from, stored_count};
use crate::rows::delegations::asked_run;
use crate::{Reader, Store, StoreError};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use vocative_core::ids::{AccountId, AgentName, ConversationId, LeaseToken, RunId};
use vocative_core::routing::{
    CallOutcome, Course, MemberCall, RoutedBy, StopReason, StoredDecision,
};
use vocative_core::run::Usage;

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[
    account(
        "network_calls",
        text(
            &["text", "state"],
            &[],
            &["agent", "outcome", "note", "reason", "told", "tools"],
        ),
        OF_RUN,
    ),
    account(
        "network_decisions",
        text(
            &["state", "words"],
            &[],
            &["agent", "decided_by", "stack", "refused"],
        ),
        OF_RUN,
    ),
    account(
        "network_states",
        text(&["state"], &[], &["network", "since"]),
        // Its version stays: no run keeps what it made of values that are gone.
        Fate {
            person: ErasureRule::Emptied,
            chat: ErasureRule::Emptied,
            message: ErasureRule::Emptied,
            expiry: ExpiryRule::Emptied(Class::Text),
            merge: MergeRule::Joined,
            export: ExportRule::Nothing("agents made it of what is exported"),
            ..OF_TURN
        },
    ),
];

impl Reader {
    /// What was decided and done in a run of a network so far.
    ///
    /// # Errors
    /// Storage refuses, or `Undecodable`: another build wrote some of it, and going on without that would ask agents
    /// again.
    pub async fn network_course(&self, run: RunId) -> Result<Course, StoreError> {
        self.read(move |connection| {
            let (course, is_whole) = course_of(connection, run)?;
            is_whole
                .then_some(course)
                .ok_or_else(|| StoreError::Undecodable {
                    what: format!("a decision or agent call of the run {run}"),
                })
        })
        .await
    }

    /// What a run is asked, as decisions look at it; of one that another run started, what that one's people asked.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn asked_in_run(&self, run: RunId) -> Result<AskedInRun, StoreError> {
        self.read(move |connection| asked_in_run(connection, run))
            .await
    }

    /// The version of a conversation's values that a run began with; `None` = it began with none.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn run_state_version(&self, run: RunId) -> Result<Option<i64>, StoreError> {
        self.read(move |connection| {
            let version = connection
                .prepare_cached(
                    "SELECT d.state_version FROM runs r JOIN network_decisions d ON d.run_id = r.id
                     WHERE r.uuid = ?1 AND d.calls = 0",
                )?
                .query_row([run], |row| row.get("state_version"))
                .optional()?;
            Ok(version.flatten())
        })
        .await
    }

    /// The values that a network keeps in a conversation; `None` = nothing is kept yet.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation.
    pub async fn network_state(
        &self,
        conversation: ConversationId,
        network: AgentName,
    ) -> Result<Option<KeptValues>, StoreError> {
        self.read(move |connection| {
            let row = conversation_row_id(connection, conversation)?;
            kept_values(connection, row, &network)
        })
        .await
    }
}

impl<C: MayReply> Store<C> {
    /// Keeps a decision of a leased run. The first one at a place holds. `state_version`: for the run's first decision,
    /// the version of the conversation's values that the run begins with; 0: there are none yet.
    ///
    /// # Errors
    /// Storage refuses; then nobody is to be called.
    pub async fn keep_decision(
        &self,
        run: RunId,
        token: LeaseToken,
        decision: StoredDecision,
        state_version: Option<i64>,
    ) -> Result<LeaseOutcome, StoreError> {
        self.write_riding(move |connection| {
            let Some(leased) = leased_run(connection, run, token)? else {
                return Ok(LeaseOutcome::Stale);
            };
            keep_decision_txn(connection, leased.row, &decision, state_version)?;
            Ok(LeaseOutcome::Written)
        })
        .await
    }

    /// Commits the end of an agent call, with the values after it. It is on disk when this returns: the agent is not
    /// asked again.
    ///
    /// # Errors
    /// Storage refuses; then nothing is written.
    pub async fn end_network_call(
        &self,
        run: RunId,
        token: LeaseToken,
        call: MemberCall,
    ) -> Result<LeaseOutcome, StoreError> {
        self.write(move |connection| {
            let Some(leased) = leased_run(connection, run, token)? else {
                return Ok(LeaseOutcome::Stale);
            };
            end_call_txn(connection, leased.row, &call)?;
            Ok(LeaseOutcome::Written)
        })
        .await
    }
}

impl Store {
    /// Sets the values that a network keeps in a conversation, for an operator. Returns whether the version that they
    /// were made from was the newest.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation.
    pub async fn set_network_state(
        &self,
        conversation: ConversationId,
        values: ValuesToKeep,
        now_ms: i64,
    ) -> Result<bool, StoreError> {
        self.write(move |connection| {
            let row = conversation_row_id(connection, conversation)?;
            keep_values_txn(connection, row, &values, now_ms)
        })
        .await
    }
}

fn asked_in_run(connection: &Connection, run: RunId) -> Result<AskedInRun, StoreError> {
    let mut asked = AskedInRun::default();
    let run_row = connection
        .prepare_cached("SELECT coalesce((SELECT id FROM runs WHERE uuid = ?1), -1) AS id")?
        .query_row([run], |row| row.get("id"))?;
    let run_row = asked_run(connection, run_row)?;
    let mut statement = connection.prepare_cached(
        "SELECT t.content, coalesce(t.attachments, '[]') <> '[]' AS has_files, p.platform_id, p.is_bot, t.sent_at_ms
         FROM run_triggers g JOIN turns t ON t.seq = g.turn_seq JOIN participants p ON p.id = t.participant_id
         WHERE g.run_id = ?1 ORDER BY t.sent_at_ms, t.ordinal, t.seq",
    )?;
    let mut rows = statement.query([run_row])?;
    while let Some(row) = rows.next()? {
        asked.texts.push(row.get("content")?);
        asked.has_files |= row.get::<_, bool>("has_files")?;
        asked.is_bot |= row.get::<_, bool>("is_bot")?;
        asked.people.push(row.get("platform_id")?);
        asked.sent_at_ms = row.get("sent_at_ms")?;
    }
    Ok(asked)
}

fn keep_decision_txn(
    connection: &Connection,
    run_row: i64,
    decision: &StoredDecision,
    state_version: Option<i64>,
) -> Result<(), StoreError> {
    let (agent, by) = match &decision.next {
        Ok((agent, by)) => (Some(agent), by.name()),
        Err(reason) => (None, reason.name()),
    };
    let words = match &decision.next {
        Err(StopReason::Rule(Some(reason))) => reason,
        _ => &decision.words,
    };
    connection
        .prepare_cached(
            "INSERT INTO network_decisions
                 (run_id, calls, agent, decided_by, rule, stack, state, refused, words, steps, state_version, at_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) ON CONFLICT DO NOTHING",
        )?
        .execute(params![
            run_row,
            decision.calls,
            agent,
            by,
            decision.rule,
            names_text(&decision.stack),
            decision.state,
            names_text(&decision.refused),
            words,
            decision.steps,
            state_version,
            decision.at_ms,
        ])?;
    Ok(())
}

fn end_call_txn(
    connection: &Connection,
    run_row: i64,
    call: &MemberCall,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "INSERT INTO network_calls
                 (run_id, n, agent, outcome, text, note, reason, told, tools, state, steps, prompt_tokens,
                  cache_read_tokens, cache_write_tokens, completion_tokens, at_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16) ON CONFLICT DO NOTHING",
        )?
        .execute(params![
            run_row,
            call.n,
            call.agent,
            call.outcome.name(),
            call.text,
            call.note,
            call.reason,
            call.told,
            serde_json::to_string(&call.tools)?,
            call.state,
            call.steps,
            stored_count(call.usage.prompt_tokens),
            stored_count(call.usage.cache_read_tokens),
            stored_count(call.usage.cache_write_tokens),
            stored_count(call.usage.completion_tokens),
            call.at_ms,
        ])?;
    // Each agent call has attempts of its own.
    connection
        .prepare_cached("UPDATE runs SET put_offs = max(put_offs, attempt - 1) WHERE id = ?1")?
        .execute([run_row])?;
    Ok(())
}

/// The course of a run, empty where it is not a network's; and whether all of it could be read.
pub(crate) fn course_of(connection: &Connection, run: RunId) -> Result<(Course, bool), StoreError> {
    let row: Option<i64> = connection
        .prepare_cached("SELECT id FROM runs WHERE uuid = ?1")?
        .query_row([run], |row| row.get("id"))
        .optional()?;
    match row {
        Some(row) => course_of_row(connection, row),
        None => Ok((Course::default(), true)),
    }
}

/// The course of the run of a row, up to the first row of it that another version wrote; and whether there is none.
fn course_of_row(connection: &Connection, run_row: i64) -> Result<(Course, bool), StoreError> {
    let decisions: Vec<Option<StoredDecision>> = connection
        .prepare_cached(
            "SELECT calls, agent, decided_by, rule, stack, state, refused, words, steps, at_ms
             FROM network_decisions WHERE run_id = ?1 ORDER BY calls",
        )?
        .query_map([run_row], |row| {
            let (agent, by, words): (Option<AgentName>, String, String) =
                (row.get("agent")?, row.get("decided_by")?, row.get("words")?);
            let next = match agent {
                Some(agent) => RoutedBy::from_name(&by).map(|by| Ok((agent, by))),
                None => {
                    let reason = Some(words.clone()).filter(|words| !words.is_empty());
                    StopReason::from_name(&by, reason).map(Err)
                }
            };
            let Some(next) = next else {
                return Ok(None);
            };
            let (stack, refused): (String, String) = (row.get("stack")?, row.get("refused")?);
            Ok(Some(StoredDecision {
                calls: row.get("calls")?,
                next,
                rule: row.get("rule")?,
                stack: names_from(&stack),
                state: row.get("state")?,
                refused: names_from(&refused),
                words,
                steps: row.get("steps")?,
                at_ms: row.get("at_ms")?,
            }))
        })?
        .collect::<crate::engine::sql::Result<_>>()?;
    let calls: Vec<Option<MemberCall>> = connection
        .prepare_cached(
            "SELECT n, agent, outcome, text, note, reason, told, tools, state, steps, prompt_tokens,
                    cache_read_tokens, cache_write_tokens, completion_tokens, at_ms
             FROM network_calls WHERE run_id = ?1 ORDER BY n",
        )?
        .query_map([run_row], |row| {
            let (outcome, tools): (String, String) = (row.get("outcome")?, row.get("tools")?);
            let Some(outcome) = CallOutcome::from_name(&outcome) else {
                return Ok(None);
            };
            Ok(Some(MemberCall {
                n: row.get("n")?,
                agent: row.get("agent")?,
                outcome,
                text: row.get("text")?,
                note: row.get("note")?,
                reason: row.get("reason")?,
                told: row.get("told")?,
                tools: serde_json::from_str(&tools).unwrap_or_default(),
                state: row.get("state")?,
                steps: row.get("steps")?,
                usage: Usage {
                    prompt_tokens: count_from(row.get("prompt_tokens")?),
                    cache_read_tokens: count_from(row.get("cache_read_tokens")?),
                    cache_write_tokens: count_from(row.get("cache_write_tokens")?),
                    completion_tokens: count_from(row.get("completion_tokens")?),
                },
                at_ms: row.get("at_ms")?,
            }))
        })?
        .collect::<crate::engine::sql::Result<_>>()?;
    let is_whole = decisions.iter().all(Option::is_some) && calls.iter().all(Option::is_some);
    let course = Course {
        decisions: decisions.into_iter().map_while(|it| it).collect(),
        calls: calls.into_iter().map_while(|it| it).collect(),
    };
    Ok((course, is_whole))
}

fn names_text(names: &[AgentName]) -> String {
    let names: Vec<&str> = names.iter().map(AgentName::as_str).collect();
    serde_json::to_string(&names).expect("a list of texts")
}

fn names_from(text: &str) -> Vec<AgentName> {
    let names: Vec<String> = serde_json::from_str(text).unwrap_or_default();
    names.into_iter().map(AgentName::trusted).collect()
}

fn kept_values(
    connection: &Connection,
    conversation_row: i64,
    network: &AgentName,
) -> Result<Option<KeptValues>, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT version, state, at_ms FROM network_states WHERE conversation_id = ?1 AND network = ?2",
        )?
        .query_row(params![conversation_row, network], |row| {
            Ok(KeptValues {
                version: row.get("version")?,
                values: row.get("state")?,
                at_ms: row.get("at_ms")?,
            })
        })
        .optional()?)
}

/// Keeps values if the version that they were made from is the newest. Returns whether it was.
pub(crate) fn keep_values_txn(
    connection: &Connection,
    conversation_row: i64,
    new: &ValuesToKeep,
    now_ms: i64,
) -> Result<bool, StoreError> {
    let newest = kept_values(connection, conversation_row, &new.network)?;
    let version = newest.map_or(0, |kept| kept.version);
    if version != new.read_version {
        return Ok(false);
    }
    let ages = Ages::of_change(
        ages_of(connection, conversation_row, &new.network)?.as_ref(),
        &new.values,
        now_ms,
    );
    connection
        .prepare_cached(
            "INSERT INTO network_states (conversation_id, network, version, state, at_ms, since, oldest_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT DO UPDATE SET version = excluded.version, state = excluded.state, at_ms = excluded.at_ms,
                since = excluded.since, oldest_ms = excluded.oldest_ms",
        )?
        .execute(params![
            conversation_row,
            new.network,
            version + 1,
            new.values,
            now_ms,
            ages.since_text(),
            ages.oldest_ms(now_ms),
        ])?;
    Ok(true)
}

/// The values of a conversation, and since when each of them is there.
struct Ages {
    values: Map<String, Value>,
    /// In milliseconds since the Unix epoch, by the daemon's clock.
    since: BTreeMap<String, i64>,
}

impl Ages {
    /// The ages in a row. A value whose age can't be read is as old as the row.
    fn of_row(state: &str, since: &str, at_ms: i64) -> Self {
        let values: Map<String, Value> = serde_json::from_str(state).unwrap_or_default();
        let known: BTreeMap<String, i64> = serde_json::from_str(since).unwrap_or_default();
        let since = values.keys().map(|key| {
            let since_ms = known.get(key).copied().unwrap_or(at_ms);
            (key.clone(), since_ms)
        });
        Self {
            since: since.collect(),
            values,
        }
    }

    /// The ages after a change. A value that stays, or a list that keeps some of what it had, is as old as before.
    fn of_change(before: Option<&Self>, state: &str, now_ms: i64) -> Self {
        let values: Map<String, Value> = serde_json::from_str(state).unwrap_or_default();
        let since = values.iter().map(|(key, value)| {
            let was_there = before.and_then(|it| {
                let old = it.values.get(key)?;
                let has_some_left = match (old, value) {
                    (Value::Array(old), Value::Array(new)) => old.iter().any(|it| new.contains(it)),
                    _ => false,
                };
                (old == value || has_some_left).then(|| it.since.get(key).copied())?
            });
            (key.clone(), was_there.unwrap_or(now_ms).min(now_ms))
        });
        Self {
            since: since.collect(),
            values,
        }
    }

    /// Removes values older than a time. Returns whether there were any.
    fn let_go(&mut self, before_ms: i64, now_ms: i64) -> bool {
        // A clock that was ahead must not keep a value for longer.
        for since_ms in self.since.values_mut() {
            *since_ms = (*since_ms).min(now_ms);
        }
        let count = self.since.len();
        self.since.retain(|_, since_ms| *since_ms >= before_ms);
        self.values.retain(|key, _| self.since.contains_key(key));
        self.since.len() < count
    }

    fn state_text(&self) -> String {
        Value::Object(self.values.clone()).to_string()
    }

    fn since_text(&self) -> String {
        serde_json::to_string(&self.since).expect("texts and numbers")
    }

    fn oldest_ms(&self, now_ms: i64) -> i64 {
        self.since.values().min().copied().unwrap_or(now_ms)
    }
}

fn ages_of(
    connection: &Connection,
    conversation_row: i64,
    network: &AgentName,
) -> Result<Option<Ages>, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT state, since, at_ms FROM network_states WHERE conversation_id = ?1 AND network = ?2",
        )?
        .query_row(params![conversation_row, network], |row| {
            let (state, since): (String, String) = (row.get("state")?, row.get("since")?);
            Ok(Ages::of_row(&state, &since, row.get("at_ms")?))
        })
        .optional()?)
}

/// Takes the decisions and agent calls of some runs away, with their steps.
///
/// `of` says which runs, as a comparison with `?1`.
pub(crate) fn delete_courses_txn(
    connection: &Connection,
    of: &'static str,
    value: i64,
) -> Result<(), StoreError> {
    for table in ["network_decisions", "network_calls"] {
        connection
            .prepare_cached(&format!("DELETE FROM {table} WHERE run_id {of}"))?
            .execute([value])?;
    }
    Ok(())
}

/// The conversations whose values may repeat a turn: its own, those below it, and those of runs that it asked or that
/// read it for certain.
const REPEATING: &str = "SELECT conversation_id FROM turns WHERE seq = ?1
     UNION SELECT id FROM conversations WHERE root_turn_seq = ?1
     UNION SELECT r.conversation_id FROM run_triggers g JOIN runs r ON r.id = g.run_id WHERE g.turn_seq = ?1
     UNION SELECT r.conversation_id FROM run_sources s JOIN runs r ON r.id = s.run_id WHERE s.source_seq = ?1";

/// Empties the values. Their version goes on, so that no run that read the forgotten values keeps what it made of
/// them.
const FORGET_STATES: &str =
    "UPDATE network_states SET state = '{}', version = version + 1 WHERE state <> '{}' AND";

/// Forgets the values that may repeat a turn which is deleted or changed.
pub(crate) fn forget_states_of_turn_txn(
    connection: &Connection,
    seq: i64,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(&format!("{FORGET_STATES} conversation_id IN ({REPEATING})"))?
        .execute([seq])?;
    Ok(())
}

/// Rows with values that are too old, or whose time lies in the future.
const EXPIRING_SQL: &str = "SELECT s.conversation_id, s.network, s.state, s.since, s.at_ms
     FROM (SELECT * FROM network_states WHERE state <> '{}' AND oldest_ms < ?2
           UNION ALL SELECT * FROM network_states WHERE state <> '{}' AND oldest_ms > ?3) s
          CROSS JOIN conversations c ON c.id = s.conversation_id CROSS JOIN chats h ON h.id = c.chat_id
     WHERE h.account_id = ?1 LIMIT ?4";

/// Whether an account's conversations have values that [`expire_states_txn`] would delete.
pub(crate) fn has_old_states(
    connection: &Connection,
    account: AccountId,
    before_ms: i64,
    now_ms: i64,
) -> Result<bool, StoreError> {
    let mut statement = connection.prepare_cached(EXPIRING_SQL)?;
    let mut rows = statement.query(params![account, before_ms, now_ms, 1])?;
    Ok(rows.next()?.is_some())
}

/// Deletes those values of an account's conversations that are older than a time. Returns how many rows were changed.
pub(crate) fn expire_states_txn(
    connection: &Connection,
    account: AccountId,
    before_ms: i64,
    now_ms: i64,
    max: i64,
) -> Result<i64, StoreError> {
    type Row = (i64, AgentName, Ages);
    let rows: Vec<Row> = connection
        .prepare_cached(EXPIRING_SQL)?
        .query_map(params![account, before_ms, now_ms, max], |row| {
            let (state, since): (String, String) = (row.get("state")?, row.get("since")?);
            let ages = Ages::of_row(&state, &since, row.get("at_ms")?);
            Ok((row.get("conversation_id")?, row.get("network")?, ages))
        })?
        .collect::<crate::engine::sql::Result<_>>()?;
    let count = i64::try_from(rows.len()).unwrap_or(max);
    for (conversation_row, network, mut ages) in rows {
        let has_gone = ages.let_go(before_ms, now_ms);
        connection
            .prepare_cached(
                "UPDATE network_states SET state = ?3, since = ?4, oldest_ms = ?5, version = version + ?6
                 WHERE conversation_id = ?1 AND network = ?2",
            )?
            .execute(params![
                conversation_row,
                network,
                ages.state_text(),
                ages.since_text(),
                ages.oldest_ms(now_ms),
                has_gone,
            ])?;
    }
    Ok(count)
}

/// Merges the values of two conversations: where both have some, those of the one that stays hold.
pub(crate) fn move_states_txn(
    connection: &Connection,
    from: i64,
    target: i64,
) -> Result<(), StoreError> {
    for sql in [
        "UPDATE OR IGNORE network_states SET conversation_id = ?2 WHERE conversation_id = ?1",
        "DELETE FROM network_states WHERE conversation_id = ?1 AND ?2 > 0",
    ] {
        connection.prepare_cached(sql)?.execute([from, target])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::EXPIRING_SQL;
    use crate::scene::Scene;

    #[tokio::test]
    async fn old_values_are_found_by_their_age() {
        let plan = Scene::open().await.plan(EXPIRING_SQL).await;
        let by_age = plan
            .iter()
            .filter(|step| step.contains("network_states_by_age"));
        assert_eq!(by_age.count(), 2, "{plan:#?}");
    }
}
