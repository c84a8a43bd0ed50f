//! A conversation page by page, newest first: its messages, or the full timeline.
//!
//! A page has a limited number of turns. In the timeline it also has what happened between its first turn and the
//! first of the page after it, so that pages laid end to end have everything exactly once.

use crate::engine::sql::{Connection, params};

use crate::contract::{ConversationPage, PageQuery, TurnDetail};
use crate::rows::columns::{LAST, limit_of};
use crate::rows::columns::{conversation_row_id, missing, select_turns, turn_from_row};
use crate::rows::conversations::detail;
use crate::rows::run_rows::runs_created;
use crate::rows::summaries::summaries_created;
use crate::views::export::root;
use crate::{Reader, StoreError};
use vocative_core::ids::{ConversationId, Seq};
use vocative_core::turn::Position;

const PAGE_SQL: &str = select_turns!(
    "WHERE t.conversation_id = ?1 AND t.sent_at_ms <= ?2
       AND (t.sent_at_ms, t.ordinal, t.seq) < (?2, ?3, ?4)
       AND (?5 OR t.visibility = 'room')
     ORDER BY t.sent_at_ms DESC, t.ordinal DESC, t.seq DESC LIMIT ?6"
);

impl Reader {
    /// One page of a conversation, ascending by position.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation, or the page is to end before a turn that is not
    /// in it.
    pub async fn page(
        &self,
        conversation: ConversationId,
        query: PageQuery,
    ) -> Result<ConversationPage, StoreError> {
        self.read(move |connection| page(connection, conversation, &query))
            .await
    }

    /// The newest room-visible turns of a conversation, ascending by position, with their platform
    /// messages, the runs they triggered and the posts they caused.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation.
    pub async fn turn_details(
        &self,
        conversation: ConversationId,
        limit: usize,
    ) -> Result<Vec<TurnDetail>, StoreError> {
        let query = PageQuery {
            limit,
            ..PageQuery::default()
        };
        Ok(self.page(conversation, query).await?.turns)
    }
}

fn page(
    connection: &Connection,
    id: ConversationId,
    query: &PageQuery,
) -> Result<ConversationPage, StoreError> {
    let conversation = conversation_row_id(connection, id)?;
    let before = match query.before {
        Some(seq) => position_in(connection, conversation, seq)?,
        None => LAST,
    };
    let mut turns = connection
        .prepare_cached(PAGE_SQL)?
        .query_map(
            params![
                conversation,
                before.sent_at_ms,
                before.ordinal,
                before.seq,
                query.is_timeline,
                limit_of(query.limit.saturating_add(1)),
            ],
            turn_from_row,
        )?
        .collect::<crate::engine::sql::Result<Vec<_>>>()?;
    let has_older = turns.len() > query.limit;
    turns.truncate(query.limit);
    turns.reverse();
    let root = root(connection, conversation)?;
    let mut page = ConversationPage {
        root: root.map(|root| detail(connection, root)).transpose()?,
        has_older,
        ..ConversationPage::default()
    };
    if query.is_timeline {
        let first = turns.first().filter(|_| has_older);
        let from_ms = first.map_or(i64::MIN, |turn| turn.position.sent_at_ms);
        let between = (from_ms, before.sent_at_ms);
        page.runs = runs_created(connection, conversation, between)?;
        page.summaries = summaries_created(connection, conversation, between)?;
    }
    page.turns = turns
        .into_iter()
        .map(|turn| detail(connection, turn))
        .collect::<Result<_, _>>()?;
    Ok(page)
}

fn position_in(
    connection: &Connection,
    conversation: i64,
    seq: Seq,
) -> Result<Position, StoreError> {
    connection
        .prepare_cached(
            "SELECT sent_at_ms, ordinal FROM turns WHERE seq = ?1 AND conversation_id = ?2",
        )?
        .query_row(params![seq, conversation], |row| {
            Ok(Position {
                sent_at_ms: row.get("sent_at_ms")?,
                ordinal: row.get("ordinal")?,
                seq,
            })
        })
        .map_err(|error| missing(error, || format!("a turn with seq {seq} in it")))
}
