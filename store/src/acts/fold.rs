//! Folding turns into a summary: what can be folded (`views/foldable`), and storing the result.
//!
//! There is no lease. A summary is made from a snapshot, and stored only if the turns it was made
//! from, and the summary before them, are unchanged; so two workers that make the same summary, or a
//! change meanwhile, cost one model call and do no harm.

use crate::capability::MayFold;
use crate::engine::sql::{Connection, OptionalExtension, params};
use sha2::{Digest as _, Sha256};

use crate::acts::cleaning::want_clean_pages_txn;
use crate::rows::columns::{LAST, conversation_row_id, limit_of};
use crate::rows::fresh_starts::floor;
use crate::rows::summaries::{SummaryBound, current_summary, keep_name};
use crate::views::foldable::{FoldableTurns, KeptTurn};
use crate::views::history::HistoryReading;
use crate::{Reader, Store, StoreError};
use vocative_core::coverage::Coverage;
use vocative_core::history::{History, HistoryQuery, HistoryRole};
use vocative_core::ids::{AgentName, ConversationId, SummaryId, TurnId};
use vocative_core::place::ChatName;
use vocative_core::summary::{
    FoldBase, FoldOver, FoldQuery, FoldRule, FoldSource, NewSummary, Refold, SummaryOutcome,
};
use vocative_core::turn::Position;

impl Reader {
    /// Reads what can be folded into the next summary; `None` if no summary is needed.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation.
    pub async fn fold_source(&self, query: FoldQuery) -> Result<Option<FoldSource>, StoreError> {
        self.read(move |connection| fold_source(connection, &query))
            .await
    }

    /// The conversations in which an agent has more kept turns outside any summary than its threshold, with
    /// that agent; of a limited number of conversations, newest activity first.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn conversations_to_fold(
        &self,
        rules: Vec<FoldRule>,
        newest: usize,
    ) -> Result<Vec<(ConversationId, AgentName)>, StoreError> {
        self.read(move |connection| {
            let mut due = Vec::new();
            for (row, id, chat) in newest_places(connection, newest)? {
                for rule in &rules {
                    let agent = &rule.agent;
                    if let Some(FoldOver {
                        coverage,
                        threshold,
                    }) = rule.of(&chat)
                        && is_over(connection, row, agent, coverage, *threshold)?
                    {
                        due.push((id, agent.clone()));
                    }
                }
            }
            Ok(due)
        })
        .await
    }

    /// Whether everything that a summary is to be made from is unchanged since it was read. A deleted or edited
    /// turn must not go to the model that summarises.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation.
    pub async fn is_fold_base(&self, base: FoldBase) -> Result<bool, StoreError> {
        self.read(move |connection| {
            let row = conversation_row_id(connection, base.conversation)?;
            Ok(unchanged_base(connection, row, &base)?.is_some())
        })
        .await
    }
}

impl<C: MayFold> Store<C> {
    /// Notes that summaries of a conversation were found set aside.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation.
    pub async fn note_refold(
        &self,
        conversation: ConversationId,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        self.write(move |connection| {
            let row = conversation_row_id(connection, conversation)?;
            connection
                .prepare_cached(
                    "UPDATE refolds SET seen_changes = changes, seen_at_ms = ?2,
                            since_ms = min(coalesce(since_ms, ?2), ?2)
                     WHERE conversation_id = ?1",
                )?
                .execute(params![row, now_ms])?;
            Ok(())
        })
        .await
    }

    /// Stores a summary, and removes the unusable ones that it replaces.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation.
    pub async fn add_summary(&self, summary: NewSummary) -> Result<SummaryOutcome, StoreError> {
        self.write_and_scrub(move |connection| add_summary_txn(connection, &summary))
            .await
    }
}

/// The newest conversations by activity, with their chats.
fn newest_places(
    connection: &Connection,
    newest: usize,
) -> Result<Vec<(i64, ConversationId, ChatName)>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT c.id, c.uuid, h.platform_id,
                coalesce((SELECT n.name FROM channels n WHERE n.account_id = h.account_id
                          ORDER BY n.bound_at_ms DESC LIMIT 1), '') AS channel
         FROM conversations c JOIN chats h ON h.id = c.chat_id
         WHERE NOT EXISTS (SELECT 1 FROM conversation_merges m
                           WHERE c.id IN (m.source_id, m.target_id))
         ORDER BY c.last_activity_ms DESC LIMIT ?1",
    )?;
    let rows = statement.query_map([limit_of(newest)], |row| {
        let chat = ChatName {
            chat: row.get("platform_id")?,
            channel: row.get("channel")?,
        };
        Ok((row.get("id")?, row.get("uuid")?, chat))
    })?;
    Ok(rows.collect::<crate::engine::sql::Result<_>>()?)
}

/// All turns that exist by now after the newest fresh start.
fn now_behind(floor: Position) -> SummaryBound {
    SummaryBound {
        as_of_seq: LAST.seq,
        made_by_ms: i64::MAX,
        floor,
    }
}

fn is_over(
    connection: &Connection,
    conversation_row: i64,
    agent: &AgentName,
    coverage: &Coverage,
    threshold: usize,
) -> Result<bool, StoreError> {
    let kept = FoldableTurns {
        connection,
        conversation_row,
        agent,
        coverage,
    };
    let floor = floor(connection, conversation_row, agent, i64::MAX)?;
    let bound = now_behind(floor);
    let summary = current_summary(connection, conversation_row, agent, coverage, bound)?;
    let after = summary.map_or(floor, |summary| summary.through);
    let found = kept.between(after, LAST, threshold.saturating_add(1))?;
    Ok(found.len() > threshold)
}

fn fold_source(
    connection: &Connection,
    query: &FoldQuery,
) -> Result<Option<FoldSource>, StoreError> {
    let kept = FoldableTurns {
        connection,
        conversation_row: conversation_row_id(connection, query.conversation)?,
        agent: &query.agent,
        coverage: &query.coverage,
    };
    if !is_over(
        connection,
        kept.conversation_row,
        &query.agent,
        &query.coverage,
        query.threshold,
    )? {
        return Ok(None);
    }
    let reading_query = reading_query(query);
    let mut reading = HistoryReading::start(connection, &reading_query)?;
    let after = reading.start_of_kept();
    let Some(preserved) = kept.preserved_from(after, query)? else {
        return Ok(None);
    };
    let found = kept.between(after, LAST, query.max_turns.saturating_add(1))?;
    for turn in found.iter().take(query.max_turns) {
        reading.keep_seq(turn.seq, HistoryRole::Kept)?;
    }
    let history: History = reading.finish(found.len() > query.max_turns)?;
    let first = history.turns.first().map(|read| read.turn.position);
    Ok(Some(FoldSource {
        fold_before: preserved.min(kept.oldest_waiting()?),
        refold: refold_of(connection, kept.conversation_row, first)?,
        history,
    }))
}

fn reading_query(query: &FoldQuery) -> HistoryQuery {
    HistoryQuery {
        conversation: query.conversation,
        agent: query.agent.clone(),
        as_of_seq: None,
        run: None,
        triggers: Vec::new(),
        keep: query.coverage.keep,
        max_turns: query.max_turns,
        since_ms: None,
        scope: query.coverage.scope,
        parent_turns: 0,
        ambient_turns: 0,
        summaries: Some(query.coverage.clone()),
        thread_answers: false,
        made_by_ms: None,
    }
}

fn add_summary_txn(
    connection: &Connection,
    summary: &NewSummary,
) -> Result<SummaryOutcome, StoreError> {
    let row = conversation_row_id(connection, summary.base.conversation)?;
    let Some(base) = unchanged_base(connection, row, &summary.base)? else {
        return Ok(SummaryOutcome::Outdated);
    };
    if remove_replaced_txn(connection, row, &summary.base, base.after)? > 0 {
        want_clean_pages_txn(connection, summary.now_ms)?;
    }
    let id = insert_txn(connection, row, summary, &base.turns)?;
    note_turns_txn(connection, id, &base.turns)?;
    count_refold_txn(connection, row, summary, base.after)?;
    Ok(SummaryOutcome::Written(id))
}

/// What a summary is made from, as it is stored.
struct StoredBase {
    /// The end of the summary before it.
    after: Position,
    turns: Vec<KeptTurn>,
}

/// The stored base of a summary; `None` if it has changed since it was read.
fn unchanged_base(
    connection: &Connection,
    conversation_row: i64,
    base: &FoldBase,
) -> Result<Option<StoredBase>, StoreError> {
    let floor = floor(connection, conversation_row, &base.agent, i64::MAX)?;
    let bound = now_behind(floor);
    let (agent, coverage) = (&base.agent, &base.coverage);
    let previous = current_summary(connection, conversation_row, agent, coverage, bound)?;
    if previous.as_ref().map(|found| found.id) != base.previous {
        return Ok(None);
    }
    let after = previous.map_or(floor, |found| found.through);
    let kept = FoldableTurns {
        connection,
        conversation_row,
        agent,
        coverage,
    };
    let limit = base.sources.len().saturating_add(1);
    let turns = kept.between(after, base.through, limit)?;
    let sources = turns.iter().map(|turn| turn.source);
    let is_unchanged = !turns.is_empty() && sources.eq(base.sources.iter().copied());
    Ok(is_unchanged.then_some(StoredBase { after, turns }))
}

/// Removes unusable summaries that end after the last usable one, because each was made on top of the one before.
/// Returns how many.
fn remove_replaced_txn(
    connection: &Connection,
    conversation_row: i64,
    base: &FoldBase,
    after: Position,
) -> Result<usize, StoreError> {
    let removed = connection
        .prepare_cached(
            "DELETE FROM summaries
             WHERE conversation_id = ?1 AND agent = ?2 AND fingerprint = ?3
               AND state <> 'current' AND through_sent_at_ms >= ?4
               AND (through_sent_at_ms, through_ordinal, through_seq) > (?4, ?5, ?6)",
        )?
        .execute(params![
            conversation_row,
            base.agent,
            base.coverage.fingerprint(),
            after.sent_at_ms,
            after.ordinal,
            after.seq
        ])?;
    Ok(removed)
}

fn insert_txn(
    connection: &Connection,
    conversation_row: i64,
    summary: &NewSummary,
    sources: &[KeptTurn],
) -> Result<SummaryId, StoreError> {
    let base = &summary.base;
    let newest_seq = sources.iter().map(|turn| turn.seq).max();
    connection
        .prepare_cached(
            "INSERT INTO summaries (conversation_id, agent, fingerprint, covers,
                    from_sent_at_ms, from_ordinal, from_seq,
                    through_sent_at_ms, through_ordinal, through_seq,
                    newest_seq, turn_count, previous_id, source_hash, text, tokens, counter, model,
                    state, created_at_ms, is_traced)
             SELECT ?1, ?2, ?3, ?4, t.sent_at_ms, t.ordinal, t.seq, ?5, ?6, ?7,
                    max(?8, coalesce((SELECT newest_seq FROM summaries WHERE id = ?10), 0)),
                    ?9, ?10, ?11, ?12, ?13, ?14, ?15, 'current', ?16, 1
             FROM turns t WHERE t.seq = ?17",
        )?
        .execute(params![
            conversation_row,
            base.agent,
            base.coverage.fingerprint(),
            keep_name(base.coverage.keep),
            base.through.sent_at_ms,
            base.through.ordinal,
            base.through.seq,
            newest_seq,
            limit_of(sources.len()),
            base.previous,
            source_hash(&base.sources),
            summary.text,
            summary.tokens,
            summary.counter,
            summary.model,
            summary.now_ms,
            sources.first().map(|turn| turn.seq),
        ])?;
    Ok(SummaryId(connection.last_insert_rowid()))
}

/// Notes which turns a summary holds.
fn note_turns_txn(
    connection: &Connection,
    summary: SummaryId,
    turns: &[KeptTurn],
) -> Result<(), StoreError> {
    let mut statement = connection
        .prepare_cached("INSERT INTO summary_turns (turn_seq, summary_id) VALUES (?1, ?2)")?;
    for turn in turns {
        statement.execute(params![turn.seq, summary])?;
    }
    Ok(())
}

/// What is known of summaries that were set aside, if one of them held turns after a position.
fn refold_of(
    connection: &Connection,
    conversation_row: i64,
    first: Option<Position>,
) -> Result<Option<Refold>, StoreError> {
    let found = connection
        .prepare_cached(
            "SELECT changes > seen_changes AS has_unseen, seen_at_ms, since_ms, day_from_ms, requests
             FROM refolds WHERE conversation_id = ?1 AND until_sent_at_ms >= ?2",
        )?
        .query_row(
            params![conversation_row, first.unwrap_or(LAST).sent_at_ms],
            |row| {
                Ok(Refold {
                    has_unseen: row.get("has_unseen")?,
                    seen_at_ms: row.get("seen_at_ms")?,
                    since_ms: row.get("since_ms")?,
                    day_from_ms: row.get("day_from_ms")?,
                    requests: row.get("requests")?,
                })
            },
        )
        .optional()?;
    Ok(found)
}

/// Counts the requests for a summary of turns that were folded before.
fn count_refold_txn(
    connection: &Connection,
    conversation_row: i64,
    summary: &NewSummary,
    after: Position,
) -> Result<(), StoreError> {
    let Some(refold) = refold_of(connection, conversation_row, Some(after))? else {
        return Ok(());
    };
    let (day_from_ms, requests) = refold.counted(summary.requests, summary.now_ms);
    connection
        .prepare_cached(
            "UPDATE refolds SET since_ms = NULL, seen_changes = changes, seen_at_ms = 0,
                    day_from_ms = ?2, requests = ?3
             WHERE conversation_id = ?1",
        )?
        .execute(params![conversation_row, day_from_ms, requests])?;
    Ok(())
}

fn source_hash(sources: &[(TurnId, u32)]) -> Vec<u8> {
    let mut hash = Sha256::new();
    for (turn, revision) in sources {
        hash.update(turn.0.as_bytes());
        hash.update(revision.to_be_bytes());
    }
    hash.finalize().to_vec()
}
