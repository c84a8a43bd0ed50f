//! Searches for which all words have to be there as they are written.
//!
//! Matches are looked at newest first by capture order, which is the order of the index, and at most
//! [`MATCHES_MAX`] of them: a word that is everywhere costs as much in a long room as in a short
//! one. Among those the best come first. Only room-visible turns are in the index.

use super::terms::{SearchTerms, scores};
use super::{MATCHES_MAX, Match, RANKED_MAX_CHARS, Ranked, SearchRange, newest};
use crate::StoreError;
use crate::contract::{SearchFilter, SearchHits, SearchMode, SearchQuery};
use crate::engine::sql::Connection;
use crate::rows::columns::limit_of;
use vocative_core::ids::Seq;

const MATCHING_SQL: &str = "SELECT t.seq, t.sent_at_ms, t.ordinal, substr(t.content, 1, ?3) AS text
     FROM (SELECT rowid AS seq FROM turn_text WHERE turn_text MATCH ?1
           ORDER BY rowid DESC LIMIT ?2) m
     CROSS JOIN turns t ON t.seq = m.seq
     WHERE t.visibility = 'room'";

/// The best matches, in the order asked for.
pub(super) fn strict(
    connection: &Connection,
    query: &SearchQuery,
    range: &SearchRange,
    excluded: &[Seq],
    found: &mut SearchHits,
) -> Result<Vec<Ranked>, StoreError> {
    let terms = SearchTerms::parse(query.queries.first().map_or("", String::as_str));
    found.is_query_cut = terms.is_cut;
    if terms.is_empty() {
        let newest = newest(
            connection,
            range,
            &SearchFilter::default(),
            &[],
            query.limit,
            excluded,
        )?;
        found.matches = newest.len();
        return Ok(newest);
    }
    let expression = terms.expression(&range.rows);
    let mut matches = matching(connection, &expression, &terms, query.mode, excluded)?;
    found.is_bounded = matches.len() > MATCHES_MAX;
    matches.truncate(MATCHES_MAX);
    found.matches = matches.len();
    found.effort.texts = matches.len();
    matches.sort_by(|(a, a_score), (b, b_score)| b_score.total_cmp(a_score).then_with(|| b.cmp(a)));
    Ok(matches
        .into_iter()
        .map(|(found, _)| Ranked::of(found))
        .collect())
}

/// The newest matches, one more than are looked at if there are more, with their scores.
fn matching(
    connection: &Connection,
    expression: &str,
    terms: &SearchTerms,
    mode: SearchMode,
    excluded: &[Seq],
) -> Result<Vec<(Match, f64)>, StoreError> {
    let limit = limit_of(MATCHES_MAX + 1 + excluded.len());
    let is_ranked = mode == SearchMode::Strict;
    let read_chars = if is_ranked { RANKED_MAX_CHARS } else { 0 };
    let mut statement = connection.prepare_cached(MATCHING_SQL)?;
    let mut rows = statement.query((expression, limit, read_chars))?;
    let (mut matches, mut counts, mut folded) = (Vec::new(), Vec::new(), String::new());
    while let Some(row) = rows.next()? {
        let found = super::match_from_row(&row)?;
        if excluded.contains(&found.seq) {
            continue;
        }
        matches.push(found);
        if is_ranked {
            let text = row.get_ref("text")?.as_str().unwrap_or_default();
            counts.push(terms.counts(text, &mut folded));
        }
    }
    if !is_ranked {
        return Ok(matches.into_iter().map(|found| (found, 0.0)).collect());
    }
    Ok(matches.into_iter().zip(scores(&counts)).collect())
}
