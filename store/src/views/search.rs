//! Full-text search from one conversation, and the others of its chat that it may reach.
//!
//! Matches are looked at newest first by capture order, which is the order of the index, and at most
//! [`MATCHES_MAX`] of them: a word that is everywhere costs as much in a long room as in a short
//! one. Among those the best come first. Only room-visible turns are in the index.

use crate::engine::sql::{Connection, OptionalExtension};

use crate::contract::{SearchHit, SearchHits, SearchOrder, SearchQuery};
use crate::rows::columns::limit_of;
use crate::rows::columns::{select_turns, turn_from_row};
use crate::rows::conversations::conversation_row;
use crate::rows::names::NameLookup;
use crate::views::search_terms::{SearchTerms, excerpt, scores};
use crate::{Store, StoreError};
use vocative_core::ids::{AccountId, Seq};
use vocative_core::search::SearchReach;

/// The most matches that are ranked, the newest.
pub const MATCHES_MAX: usize = 2_000;
/// The most threads of a room that are searched with it, the newest.
pub const THREADS_MAX: usize = 200;
/// How much of a text counts for its rank, in characters.
const RANKED_MAX_CHARS: u32 = 2_000;

const MATCHING_SQL: &str = "SELECT t.seq, t.sent_at_ms, t.ordinal, substr(t.content, 1, ?3)
     FROM (SELECT rowid AS seq FROM turn_text WHERE turn_text MATCH ?1
           ORDER BY rowid DESC LIMIT ?2) m
     CROSS JOIN turns t ON t.seq = m.seq
     WHERE t.visibility = 'room'";

const NEWEST_SQL: &str = "SELECT seq, sent_at_ms, ordinal FROM turns
     WHERE conversation_id = ?1 AND visibility = 'room'
     ORDER BY sent_at_ms DESC, ordinal DESC, seq DESC LIMIT ?2";

const BY_SEQ_SQL: &str = select_turns!("WHERE t.seq = ?1");

const THREADS_SQL: &str = "SELECT id FROM conversations WHERE parent_id = ?1
     ORDER BY id DESC LIMIT ?2";

impl Store {
    /// The turns that a query finds; empty for a conversation that is not known.
    ///
    /// # Errors
    /// Storage refuses; never because of what the query says.
    pub async fn search(&self, query: SearchQuery) -> Result<SearchHits, StoreError> {
        self.read(move |connection| search(connection, &query))
            .await
    }
}

/// What is searched.
struct Range {
    rows: Vec<i64>,
    account: AccountId,
    has_more_threads: bool,
}

/// A turn that matches, and where it stands: sorts by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Match {
    sent_at_ms: i64,
    ordinal: i64,
    seq: Seq,
}

fn search(connection: &Connection, query: &SearchQuery) -> Result<SearchHits, StoreError> {
    let Some(range) = range(connection, query)? else {
        return Ok(SearchHits::default());
    };
    let terms = SearchTerms::parse(&query.text);
    let excluded = excluded(connection, query)?;
    let mut found = SearchHits {
        is_query_cut: terms.is_cut,
        has_more_threads: range.has_more_threads,
        ..SearchHits::default()
    };
    let best = if terms.is_empty() {
        let newest = newest(connection, &range, query.limit, &excluded)?;
        found.matches = newest.len();
        newest
    } else {
        let expression = terms.expression(&range.rows);
        let mut matches = matching(connection, &expression, &terms, query.order, &excluded)?;
        found.is_bounded = matches.len() > MATCHES_MAX;
        matches.truncate(MATCHES_MAX);
        found.matches = matches.len();
        matches.sort_by(|(a, a_score), (b, b_score)| {
            b_score.total_cmp(a_score).then_with(|| b.cmp(a))
        });
        matches.into_iter().map(|(found, _)| found).collect()
    };
    read_hits(connection, query, &range, &terms, &best, &mut found)?;
    Ok(found)
}

fn range(connection: &Connection, query: &SearchQuery) -> Result<Option<Range>, StoreError> {
    let Some(row) = conversation_row(connection, query.conversation)? else {
        return Ok(None);
    };
    let (account, parent): (AccountId, Option<i64>) = connection
        .prepare_cached(
            "SELECT h.account_id, c.parent_id FROM conversations c
             JOIN chats h ON h.id = c.chat_id WHERE c.id = ?1",
        )?
        .query_row([row], |row| {
            Ok((row.get("account_id")?, row.get("parent_id")?))
        })?;
    let mut range = Range {
        rows: vec![row],
        account,
        has_more_threads: false,
    };
    if query.reach != SearchReach::Conversation {
        range.rows.extend(parent);
    }
    if query.reach == SearchReach::Threads {
        let room = parent.unwrap_or(row);
        let mut statement = connection.prepare_cached(THREADS_SQL)?;
        let threads =
            statement.query_map((room, limit_of(THREADS_MAX + 1)), |row| row.get("id"))?;
        let threads: Vec<i64> = threads.collect::<crate::engine::sql::Result<_>>()?;
        range.has_more_threads = threads.len() > THREADS_MAX;
        let others = threads.into_iter().take(THREADS_MAX);
        range.rows.extend(others.filter(|thread| *thread != row));
    }
    // Where turns are still on their way into one of these.
    for row in range.rows.clone() {
        let mut leaving = connection
            .prepare_cached("SELECT source_id FROM conversation_merges WHERE target_id = ?1")?;
        for source in leaving.query_map([row], |row| row.get("source_id"))? {
            range.rows.push(source?);
        }
    }
    Ok(Some(range))
}

fn excluded(connection: &Connection, query: &SearchQuery) -> Result<Vec<Seq>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT seq FROM turns WHERE uuid = ?1")?;
    let mut excluded = Vec::with_capacity(query.exclude.len());
    for turn in &query.exclude {
        let seq: Option<Seq> = statement
            .query_row([turn], |row| row.get("seq"))
            .optional()?;
        excluded.extend(seq);
    }
    Ok(excluded)
}

/// The newest matches, one more than are looked at if there are more, with their scores.
fn matching(
    connection: &Connection,
    expression: &str,
    terms: &SearchTerms,
    order: SearchOrder,
    excluded: &[Seq],
) -> Result<Vec<(Match, f64)>, StoreError> {
    let limit = limit_of(MATCHES_MAX + 1 + excluded.len());
    let is_ranked = order == SearchOrder::Ranked;
    let read_chars = if is_ranked { RANKED_MAX_CHARS } else { 0 };
    let mut statement = connection.prepare_cached(MATCHING_SQL)?;
    let mut rows = statement.query((expression, limit, read_chars))?;
    let (mut matches, mut counts, mut folded) = (Vec::new(), Vec::new(), String::new());
    while let Some(row) = rows.next()? {
        let found = match_from_row(&row)?;
        if excluded.contains(&found.seq) {
            continue;
        }
        matches.push(found);
        if is_ranked {
            let text = row.get_ref(3)?.as_str().unwrap_or_default();
            counts.push(terms.counts(text, &mut folded));
        }
    }
    if !is_ranked {
        return Ok(matches.into_iter().map(|found| (found, 0.0)).collect());
    }
    Ok(matches.into_iter().zip(scores(&counts)).collect())
}

/// The newest turns of all conversations together.
fn newest(
    connection: &Connection,
    range: &Range,
    limit: usize,
    excluded: &[Seq],
) -> Result<Vec<Match>, StoreError> {
    let each = limit_of(limit.saturating_add(excluded.len()));
    let mut statement = connection.prepare_cached(NEWEST_SQL)?;
    let mut newest = Vec::new();
    for row in &range.rows {
        for found in statement.query_map((row, each), match_from_row)? {
            newest.push(found?);
        }
    }
    newest.retain(|found| !excluded.contains(&found.seq));
    newest.sort_by(|a, b| b.cmp(a));
    newest.truncate(limit);
    Ok(newest)
}

fn match_from_row(row: &crate::engine::sql::Row<'_>) -> crate::engine::sql::Result<Match> {
    Ok(Match {
        seq: row.get(0)?,
        sent_at_ms: row.get(1)?,
        ordinal: row.get(2)?,
    })
}

/// Reads the best matches, up to limit and token cap.
fn read_hits(
    connection: &Connection,
    query: &SearchQuery,
    range: &Range,
    terms: &SearchTerms,
    best: &[Match],
    found: &mut SearchHits,
) -> Result<(), StoreError> {
    let mut tokens = 0_usize;
    for hit in best.iter().take(query.limit) {
        let turn = connection
            .prepare_cached(BY_SEQ_SQL)?
            .query_row([hit.seq], turn_from_row)?;
        let content = with_names(connection, range.account, &turn.content)?;
        let text = if terms.is_empty() {
            excerpt(&content, 0, query.text_max_chars)
        } else {
            excerpt(&content, terms.first_match(&content), query.text_max_chars)
        };
        tokens = tokens.saturating_add(utf16_div4(&text));
        if !found.hits.is_empty() && tokens > query.token_cap {
            break;
        }
        found.hits.push(SearchHit { turn, text });
    }
    Ok(())
}

/// A text with names for its mentions; the id where none is known.
fn with_names(
    connection: &Connection,
    account: AccountId,
    content: &str,
) -> Result<String, StoreError> {
    NameLookup::new(connection, account).named(content)
}

fn utf16_div4(text: &str) -> usize {
    text.encode_utf16().count().div_ceil(4)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use vocative_contract::markup::mention_token;

    use super::*;
    use crate::new_id::NewId as _;
    use crate::scene::{Room, Scene};
    use vocative_core::ids::ConversationId;

    fn query(room: &Room, text: &str) -> SearchQuery {
        SearchQuery {
            conversation: room.id,
            reach: SearchReach::Conversation,
            text: text.to_owned(),
            limit: 9,
            token_cap: 999,
            text_max_chars: usize::MAX,
            exclude: Vec::new(),
            order: SearchOrder::Newest,
        }
    }

    async fn texts(scene: &Scene, query: SearchQuery) -> Vec<String> {
        let found = scene.store.search(query).await.unwrap();
        found.hits.into_iter().map(|hit| hit.text).collect()
    }

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
        let cases: [(&str, usize, usize, &[&str]); 25] = [
            ("DEPLOY", 9, 999, &[said[0].1, said[1].1]),
            ("deploy", 1, 999, &[said[0].1]),
            ("deploy", 0, 999, &[]),
            ("deploy failed", 9, 999, &[said[0].1]),
            ("failed deploy", 9, 999, &[said[0].1]),
            ("depl", 9, 999, &[]),
            ("depl*", 9, 999, &[said[0].1, said[1].1]),
            ("\"deploy at\"", 9, 999, &[said[1].1]),
            ("\"at deploy\"", 9, 999, &[]),
            ("\"deploy at", 9, 999, &[said[1].1]),
            ("cafe", 9, 999, &[said[2].1]),
            ("京", 9, 999, &[said[2].1]),
            ("東京", 9, 999, &[said[2].1]),
            ("京東", 9, 999, &[]),
            ("don't", 9, 999, &[said[2].1]),
            ("NEAR(", 9, 999, &[all[0]]),
            ("\"deploy\" * ^", 9, 999, &[said[0].1, said[1].1]),
            ("c1 OR", 9, 999, &[]),
            ("conversation:c1", 9, 999, &[]),
            ("'); DROP TABLE turns; --", 9, 999, &[]),
            ("Ⓐ deploy", 9, 999, &[]),
            ("  %", 9, 999, &all),
            ("", 2, 999, &all[..2]),
            // 24 UTF-16 units are 6 tokens, 17 are 5.
            ("deploy", 9, 11, &[said[0].1, said[1].1]),
            ("deploy", 9, 10, &[said[0].1]),
        ];
        for (text, limit, token_cap, expected) in cases {
            let query = SearchQuery {
                limit,
                token_cap,
                ..query(&room, text)
            };
            assert_eq!(texts(&scene, query).await, expected, "{text:?}");
        }
        let nowhere = SearchQuery {
            conversation: ConversationId::generate(),
            ..query(&room, "deploy")
        };
        let found = scene.store.search(nowhere).await.unwrap();
        assert_eq!(found, SearchHits::default());
    }

    #[tokio::test]
    async fn the_best_match_comes_first_and_the_newest_of_equal_ones() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        let said = [
            "deploy deploy deploy",
            "we deploy at nine",
            "we deploy at nine, they said, but nobody could tell me which nine, or whose",
            "we deploy at nine",
        ];
        for (at_ms, text) in (1..).zip(said) {
            scene.say(&room, text, at_ms).await;
        }
        let ranked = SearchQuery {
            order: SearchOrder::Ranked,
            ..query(&room, "deploy")
        };
        let found = scene.store.search(ranked).await.unwrap();
        let times: Vec<i64> = found
            .hits
            .iter()
            .map(|hit| hit.turn.position.sent_at_ms)
            .collect();
        assert_eq!(times, [1, 4, 2, 3]);
        assert_eq!((found.matches, found.is_bounded), (4, false));
    }

    #[tokio::test]
    async fn a_thread_reaches_its_room_and_its_room_its_threads_as_allowed() {
        let scene = Scene::open().await;
        let (room, dm) = (scene.room("C1").await, scene.room("D1").await);
        let root = scene.say(&room, "the plan", 1).await;
        let later = scene.say(&room, "another plan", 2).await;
        let (thread, other) = (
            scene.thread(&room, root).await,
            scene.thread(&room, later).await,
        );
        scene.say(&thread, "plan in a thread", 3).await;
        scene.say(&other, "plan in another", 4).await;
        scene.say(&dm, "a secret plan", 5).await;
        let (own, room_said, other_said) = (
            "plan in a thread",
            ["another plan", "the plan"],
            "plan in another",
        );
        use SearchReach::{Conversation, Parent, Threads};
        let cases: [(&Room, SearchReach, Vec<&str>); 7] = [
            (&thread, Conversation, vec![own]),
            (&thread, Parent, vec![own, room_said[0], room_said[1]]),
            (
                &thread,
                Threads,
                vec![other_said, own, room_said[0], room_said[1]],
            ),
            (&room, Conversation, room_said.to_vec()),
            (&room, Parent, room_said.to_vec()),
            (
                &room,
                Threads,
                vec![other_said, own, room_said[0], room_said[1]],
            ),
            (&dm, Threads, vec!["a secret plan"]),
        ];
        for (from, reach, expected) in cases {
            for text in ["plan", ""] {
                let query = SearchQuery {
                    reach,
                    ..query(from, text)
                };
                assert_eq!(texts(&scene, query).await, expected, "{reach:?} {text:?}");
            }
        }
    }

    #[tokio::test]
    async fn what_asks_and_what_is_hidden_is_no_hit() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        scene.say(&room, "deploy one", 1).await;
        let asking = scene.say(&room, "find deploy", 2).await;
        for text in ["deploy", ""] {
            let query = SearchQuery {
                exclude: vec![asking.turn],
                limit: 1,
                ..query(&room, text)
            };
            assert_eq!(texts(&scene, query).await, ["deploy one"]);
        }
        scene
            .write(move |connection| {
                connection.execute("UPDATE turns SET visibility = 'hidden'", [])?;
                Ok(())
            })
            .await;
        for text in ["deploy", ""] {
            assert!(texts(&scene, query(&room, text)).await.is_empty());
        }
    }

    #[tokio::test]
    async fn a_long_text_is_cut_around_its_match_and_mentions_become_names() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        let text = format!(
            "{}{} broke it {}",
            "x ".repeat(99),
            mention_token("U1"),
            "y ".repeat(99)
        );
        scene.say(&room, &text, 1).await;
        let cut = SearchQuery {
            text_max_chars: 20,
            ..query(&room, "broke")
        };
        assert_eq!(texts(&scene, cut).await, ["…@Ada broke it y y y…"]);
    }

    #[tokio::test]
    async fn more_matches_than_are_looked_at_are_told() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        let row = room.row;
        scene.say(&room, "the first word", 1).await;
        let first = scene.value::<i64>("SELECT participant_id FROM turns").await;
        let fill = move |count: i64| {
            move |connection: &Connection| {
                for n in 0..count {
                    connection.prepare_cached(
                        "INSERT INTO turns (uuid, conversation_id, sent_at_ms, ordinal, kind, scope,
                                participant_id, content, captured_at_ms, is_inbound)
                         VALUES (randomblob(16), ?1, ?2, 0, 'message', 'channel', ?3, 'word', 0, 1)",
                    )?
                    .execute((row, n + 2, first))?;
                    let seq = connection.last_insert_rowid();
                    crate::rows::search_text::index_turn_txn(connection, seq)?;
                }
                Ok(())
            }
        };
        scene.write(fill(1_999)).await;
        let found = scene.store.search(query(&room, "word")).await.unwrap();
        assert_eq!((found.matches, found.is_bounded), (2_000, false));
        scene.write(fill(1)).await;
        let found = scene.store.search(query(&room, "word")).await.unwrap();
        assert_eq!((found.matches, found.is_bounded), (2_000, true));
        let first = scene
            .store
            .search(query(&room, "first word"))
            .await
            .unwrap();
        assert_eq!((first.matches, first.is_bounded), (1, false));
    }
}
