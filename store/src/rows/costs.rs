//! What calls of models cost, a row for each day, conversation, person, agent and model: numbers only.

use crate::engine::sql::{Connection, params};

use crate::contract::Spending;
use crate::registry::{Fate, MergeRule, STATE, StoreTable, account, text};
use crate::rows::columns::{count_from, day_start_ms, stored_count};
use crate::{Reader, StoreError};
use vocative_core::run::Usage;

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[account(
    "cost_days",
    text(&[], &[], &["agent", "model"]),
    Fate {
        merge: MergeRule::Joined,
        ..STATE
    },
)];

/// By what costs are added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostsBy {
    /// The UTC day.
    Day,
    /// The channel.
    Channel,
    /// The conversation.
    Conversation,
    /// Who asked.
    Person,
    /// The agent.
    Agent,
    /// The model.
    Model,
}

/// What something cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Of what: a day (`2026-11-23`), or a name; by person, empty for what nobody asked (summaries).
    pub of: String,
    /// Calls of models.
    pub calls: u64,
    /// Their tokens.
    pub usage: Usage,
    /// What they cost, in millionths of the currency of the prices.
    pub cost_micros: u64,
}

impl CostsBy {
    /// What names a row of `cost_days d`.
    fn name_sql(self) -> &'static str {
        match self {
            Self::Day => "date(d.day_start_ms / 1000, 'unixepoch')",
            Self::Channel => {
                "coalesce((SELECT min(n.name) FROM channels n WHERE n.account_id = d.account_id),
                          (SELECT a.name FROM accounts a WHERE a.id = d.account_id))"
            },
            Self::Conversation => {
                "(SELECT coalesce(c.title, h.title, h.platform_id) || ' ' || hex(c.uuid)
                  FROM conversations c JOIN chats h ON h.id = c.chat_id WHERE c.id = d.conversation_id)"
            }
            Self::Person => {
                "coalesce((SELECT coalesce(p.display_name, p.username, p.platform_id)
                           FROM participants p WHERE p.id = d.participant_id), '')"
            }
            Self::Agent => "d.agent",
            Self::Model => "d.model",
        }
    }

    /// The column that costs are grouped by.
    fn key_sql(self) -> &'static str {
        match self {
            Self::Day => "d.day_start_ms",
            Self::Channel => "d.account_id",
            Self::Conversation => "d.conversation_id",
            Self::Person => "coalesce(d.participant_id, 0)",
            Self::Agent => "d.agent",
            Self::Model => "d.model",
        }
    }
}

impl Reader {
    /// What calls cost from a time on, added up; the dearest first, days newest first.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn costs(
        &self,
        by: CostsBy,
        since_ms: i64,
        limit: u32,
    ) -> Result<Vec<Cost>, StoreError> {
        self.read(move |connection| {
            let order = match by {
                CostsBy::Day => "d.day_start_ms DESC",
                _ => "cost_micros DESC, total DESC, name",
            };
            let mut statement = connection.prepare_cached(&format!(
                "SELECT {name} AS name, sum(d.calls) AS calls, sum(d.prompt_tokens) AS prompt,
                        sum(d.cache_read_tokens) AS reads, sum(d.cache_write_tokens) AS writes,
                        sum(d.completion_tokens) AS completion, sum(d.cost_micros) AS cost_micros,
                        sum(d.prompt_tokens + d.completion_tokens) AS total
                 FROM cost_days d WHERE d.day_start_ms >= ?1
                 GROUP BY {key} ORDER BY {order} LIMIT ?2",
                name = by.name_sql(),
                key = by.key_sql(),
            ))?;
            let rows = statement.query_map((day_start_ms(since_ms), limit), |row| {
                let count = |name| row.get(name).map(count_from);
                Ok(Cost {
                    of: row.get("name")?,
                    calls: count("calls")?,
                    usage: Usage {
                        prompt_tokens: count("prompt")?,
                        cache_read_tokens: count("reads")?,
                        cache_write_tokens: count("writes")?,
                        completion_tokens: count("completion")?,
                    },
                    cost_micros: count("cost_micros")?,
                })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }
}

/// Adds a call to its day. A voice note is no call of a model that has an agent.
pub(crate) fn add_cost_txn(connection: &Connection, spending: &Spending) -> Result<(), StoreError> {
    let Some(call) = &spending.call else {
        return Ok(());
    };
    let usage = spending.usage;
    connection
        .prepare_cached(
            "INSERT INTO cost_days (account_id, day_start_ms, conversation_id, participant_id, agent, model, calls,
                 prompt_tokens, cache_read_tokens, cache_write_tokens, completion_tokens, cost_micros)
             SELECT ?1, ?2, c.id, (SELECT id FROM participants WHERE id = ?4), ?5, ?6, 1, ?7, ?8, ?9, ?10, ?11
             FROM conversations c WHERE c.uuid = ?3
             ON CONFLICT DO UPDATE SET calls = calls + 1,
                 prompt_tokens = prompt_tokens + excluded.prompt_tokens,
                 cache_read_tokens = cache_read_tokens + excluded.cache_read_tokens,
                 cache_write_tokens = cache_write_tokens + excluded.cache_write_tokens,
                 completion_tokens = completion_tokens + excluded.completion_tokens,
                 cost_micros = cost_micros + excluded.cost_micros",
        )?
        .execute(params![
            spending.account,
            day_start_ms(spending.now_ms),
            call.conversation,
            spending.person,
            call.agent,
            call.model,
            stored_count(usage.prompt_tokens),
            stored_count(usage.cache_read_tokens),
            stored_count(usage.cache_write_tokens),
            stored_count(usage.completion_tokens),
            stored_count(spending.cost_micros),
        ])?;
    if let Some(run) = call.run {
        connection
            .prepare_cached(
                "UPDATE runs SET cost_micros = cost_micros + ?2, spent_tokens = spent_tokens + ?3 WHERE uuid = ?1",
            )?
            .execute(params![
                run,
                stored_count(spending.cost_micros),
                stored_count(usage.total())
            ])?;
    }
    Ok(())
}

/// Moves the costs of one conversation to another, as when chats become one.
pub(crate) fn move_costs_txn(
    connection: &Connection,
    source: i64,
    target: i64,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "INSERT INTO cost_days (account_id, day_start_ms, conversation_id, participant_id, agent, model, calls,
                 prompt_tokens, cache_read_tokens, cache_write_tokens, completion_tokens, cost_micros)
             SELECT account_id, day_start_ms, ?2, participant_id, agent, model, calls,
                 prompt_tokens, cache_read_tokens, cache_write_tokens, completion_tokens, cost_micros
             FROM cost_days WHERE conversation_id = ?1
             ON CONFLICT DO UPDATE SET calls = calls + excluded.calls,
                 prompt_tokens = prompt_tokens + excluded.prompt_tokens,
                 cache_read_tokens = cache_read_tokens + excluded.cache_read_tokens,
                 cache_write_tokens = cache_write_tokens + excluded.cache_write_tokens,
                 completion_tokens = completion_tokens + excluded.completion_tokens,
                 cost_micros = cost_micros + excluded.cost_micros",
        )?
        .execute((source, target))?;
    connection
        .prepare_cached("DELETE FROM cost_days WHERE conversation_id = ?1")?
        .execute([source])?;
    Ok(())
}
