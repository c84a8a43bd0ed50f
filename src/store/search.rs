//! Full-text search in one conversation.
//!
//! Matches whole words; all must be found. Whatever else a query holds (quotes, operators, stars)
//! separates words and means nothing. Only room-visible turns are in the index.

use rusqlite::Connection;

use super::contract::SearchQuery;
use super::conversations::conversation_row;
use super::rows::{select_turns, turn_from_row};
use super::runs::limit_of;
use super::search_text::{conversation_term, searchable};
use super::{Store, StoreError};
use crate::domain::turn::Turn;

/// Of a common word there are many hits: only their positions are read and sorted, and what they
/// say is read of the newest alone.
const MATCHING_SQL: &str = select_turns!(
    "WHERE t.seq IN (SELECT n.seq FROM turn_text CROSS JOIN turns n ON n.seq = turn_text.rowid
                     WHERE turn_text MATCH ?1 AND n.visibility = 'room'
                     ORDER BY n.sent_at_ms DESC, n.ordinal DESC, n.seq DESC LIMIT ?2)
     ORDER BY t.sent_at_ms DESC, t.ordinal DESC, t.seq DESC"
);

const NEWEST_SQL: &str = select_turns!(
    "WHERE t.conversation_id = ?1 AND t.visibility = 'room'
     ORDER BY t.sent_at_ms DESC, t.ordinal DESC, t.seq DESC LIMIT ?2"
);

impl Store {
    /// Turns of a conversation that hold all words, newest first. A conversation that is not known
    /// has none.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn search(&self, query: SearchQuery) -> Result<Vec<Turn>, StoreError> {
        self.read(move |connection| search(connection, &query))
            .await
    }
}

fn search(connection: &Connection, query: &SearchQuery) -> Result<Vec<Turn>, StoreError> {
    let Some(row) = conversation_row(connection, query.conversation)? else {
        return Ok(Vec::new());
    };
    let limit = limit_of(query.limit);
    let (sql, key): (_, rusqlite::types::Value) = match match_expression(row, &query.text) {
        Some(expression) => (MATCHING_SQL, expression.into()),
        None => (NEWEST_SQL, row.into()),
    };
    let mut statement = connection.prepare_cached(sql)?;
    let mut hits = Vec::new();
    let mut tokens = 0_usize;
    for turn in statement.query_map((key, limit), turn_from_row)? {
        let turn = turn?;
        tokens = tokens.saturating_add(utf16_div4(&turn.content));
        if !hits.is_empty() && tokens > query.token_cap {
            break;
        }
        hits.push(turn);
    }
    Ok(hits)
}

fn utf16_div4(text: &str) -> usize {
    text.encode_utf16().count().div_ceil(4)
}

/// What the index is asked for: every word as a quoted phrase; `None` if there is no word.
fn match_expression(conversation_row: i64, text: &str) -> Option<String> {
    let words: Vec<String> = text
        .split(|c: char| c.is_whitespace() || c == '"' || c == '\0')
        .filter(|word| word.chars().any(char::is_alphanumeric))
        .map(|word| format!("\"{}\"", searchable(word)))
        .collect();
    (!words.is_empty()).then(|| {
        format!(
            "conversation : {} AND content : ({})",
            conversation_term(conversation_row),
            words.join(" AND ")
        )
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::domain::ids::ConversationId;
    use crate::store::scene::Scene;

    #[tokio::test]
    async fn words_are_found_in_their_conversation_newest_first() {
        let scene = Scene::open().await;
        let (room, other) = (scene.room("C1").await, scene.room("C2").await);
        let said = [
            (30, "Deploy of the API failed"),
            (10, "we deploy at nine"),
            (20, "Café 東京 \u{1f389} don't"),
            (40, "a NEAR miss"),
        ];
        for (at_ms, text) in said {
            scene.say(&room, text, at_ms).await;
        }
        scene.say(&other, "deploy elsewhere", 50).await;
        let all = ["a NEAR miss", said[0].1, said[2].1, said[1].1];
        let cases: [(&str, usize, usize, &[&str]); 16] = [
            ("DEPLOY", 9, 999, &[said[0].1, said[1].1]),
            ("deploy", 1, 999, &[said[0].1]),
            ("deploy", 0, 999, &[]),
            ("deploy failed", 9, 999, &[said[0].1]),
            ("failed deploy", 9, 999, &[said[0].1]),
            ("depl", 9, 999, &[]),
            ("cafe", 9, 999, &[said[2].1]),
            ("京", 9, 999, &[said[2].1]),
            ("don't", 9, 999, &[said[2].1]),
            ("NEAR(", 9, 999, &[all[0]]),
            ("\"deploy\" * ^", 9, 999, &[said[0].1, said[1].1]),
            ("c1 OR", 9, 999, &[]),
            ("  %", 9, 999, &all),
            ("", 2, 999, &all[..2]),
            // 24 UTF-16 units are 6 tokens, 17 are 5.
            ("deploy", 9, 11, &[said[0].1, said[1].1]),
            ("deploy", 9, 10, &[said[0].1]),
        ];
        for (text, limit, token_cap, expected) in cases {
            let query = SearchQuery {
                conversation: room.id,
                text: text.to_owned(),
                limit,
                token_cap,
            };
            let found = scene.store.search(query).await.unwrap();
            let found: Vec<&str> = found.iter().map(|turn| turn.content.as_str()).collect();
            assert_eq!(found, expected, "{text:?}");
        }
        let nowhere = SearchQuery {
            conversation: ConversationId::generate(),
            text: "deploy".to_owned(),
            limit: 9,
            token_cap: 999,
        };
        assert_eq!(scene.store.search(nowhere).await.unwrap(), []);
    }

    #[test]
    fn every_word_is_quoted_and_operators_mean_nothing() {
        let asked = |text| match_expression(7, text);
        let all = |words: &str| Some(format!("conversation : c7 AND content : ({words})"));
        let cases = [
            ("", None),
            ("  % \"\" * \u{1f389}", None),
            ("deploy", all("\"deploy\"")),
            (
                "deploy NOT failed",
                all("\"deploy\" AND \"NOT\" AND \"failed\""),
            ),
            ("say \"hi there\"", all("\"say\" AND \"hi\" AND \"there\"")),
            ("content:x* a\0b", all("\"content:x*\" AND \"a\" AND \"b\"")),
            ("東京", all("\" 東  京 \"")),
        ];
        for (text, expected) in cases {
            assert_eq!(asked(text), expected, "{text:?}");
        }
    }
}
