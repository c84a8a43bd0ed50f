//! Search from one conversation, and the others of its chat that it may reach.
//!
//! `strict` requires all words as they are written; `forgiving` ranks what has any of them in any form, from the
//! `candidates` that the index gives and the `tail` that it does not have yet. `hits` reads what is given, with its
//! neighbours. Work is bounded in all of them, and counted. Only room-visible turns are found.

mod candidates;
mod forgiving;
mod hits;
mod strict;
mod tail;
pub(crate) mod terms;

pub(crate) use hits::utf16_div4;

use crate::engine::sql::{Connection, OptionalExtension};

use crate::contract::{SearchFilter, SearchHits, SearchMode, SearchQuery};
use crate::rows::columns::limit_of;
use crate::rows::conversations::conversation_row;
use crate::{Reader, StoreError};
use vocative_core::ids::{AccountId, ParticipantId, Seq};
use vocative_core::search::SearchReach;

/// The most matches that are ranked where all words are required, the newest.
pub const MATCHES_MAX: usize = 2_000;
/// The most threads of a room that are searched with it, the newest.
pub const THREADS_MAX: usize = 200;
/// The most wordings of one search that are read.
pub const WORDINGS_MAX: usize = 5;
/// How much of a text counts for its rank, in characters.
const RANKED_MAX_CHARS: u32 = 2_000;

const NEWEST_SQL: &str = "SELECT seq, sent_at_ms, ordinal FROM turns
     WHERE conversation_id = ?1 AND visibility = 'room' AND sent_at_ms >= ?2 AND sent_at_ms < ?3
     ORDER BY sent_at_ms DESC, ordinal DESC, seq DESC LIMIT ?4";
const NEWEST_OF_SPEAKER_SQL: &str = "SELECT seq, sent_at_ms, ordinal FROM turns
     WHERE conversation_id = ?1 AND visibility = 'room' AND sent_at_ms >= ?2 AND sent_at_ms < ?3
       AND participant_id = ?5
     ORDER BY sent_at_ms DESC LIMIT ?4";

const THREADS_SQL: &str = "SELECT id FROM conversations WHERE parent_id = ?1 AND NOT is_fork
     ORDER BY id DESC LIMIT ?2";

impl Reader {
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
struct SearchRange {
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

/// A turn that is to be given.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ranked {
    found: Match,
    score: f64,
    nearness: f32,
    same: usize,
}

impl Ranked {
    fn of(found: Match) -> Self {
        Self {
            found,
            score: 0.0,
            nearness: 0.0,
            same: 0,
        }
    }
}

fn search(connection: &Connection, query: &SearchQuery) -> Result<SearchHits, StoreError> {
    let Some(range) = range(connection, query)? else {
        return Ok(SearchHits::default());
    };
    let excluded = excluded(connection, query)?;
    let mut found = SearchHits {
        has_more_threads: range.has_more_threads,
        ..SearchHits::default()
    };
    let best = match query.mode {
        SearchMode::Forgiving => {
            forgiving::forgiving(connection, query, &range, &excluded, &mut found)?
        }
        SearchMode::Strict | SearchMode::StrictNewest => {
            strict::strict(connection, query, &range, &excluded, &mut found)?
        }
    };
    hits::read_hits(connection, query, &range, &best, &excluded, &mut found)?;
    Ok(found)
}

fn range(connection: &Connection, query: &SearchQuery) -> Result<Option<SearchRange>, StoreError> {
    let Some(row) = conversation_row(connection, query.conversation)? else {
        return Ok(None);
    };
    // A fork sees nothing that was said in another course.
    let (account, parent, is_fork): (AccountId, Option<i64>, bool) = connection
        .prepare_cached(
            "SELECT h.account_id, iif(c.is_fork, NULL, c.parent_id) AS parent_id, c.is_fork FROM conversations c
             JOIN chats h ON h.id = c.chat_id WHERE c.id = ?1",
        )?
        .query_row([row], |row| {
            Ok((
                row.get("account_id")?,
                row.get("parent_id")?,
                row.get("is_fork")?,
            ))
        })?;
    let mut range = SearchRange {
        rows: vec![row],
        account,
        has_more_threads: false,
    };
    if query.reach != SearchReach::Conversation {
        range.rows.extend(parent);
    }
    if query.reach == SearchReach::Threads && !is_fork {
        let room = parent.unwrap_or(row);
        let mut statement = connection.prepare_cached(THREADS_SQL)?;
        let threads =
            statement.query_map((room, limit_of(THREADS_MAX + 1)), |row| row.get("id"))?;
        let threads: Vec<i64> = threads.collect::<crate::engine::sql::Result<_>>()?;
        range.has_more_threads = threads.len() > THREADS_MAX;
        let others = threads.into_iter().take(THREADS_MAX);
        range.rows.extend(others.filter(|thread| *thread != row));
    }
    // Also conversations whose turns are still being merged into one of these.
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

/// The newest turns of all conversations together.
fn newest(
    connection: &Connection,
    range: &SearchRange,
    filter: &SearchFilter,
    speakers: &[ParticipantId],
    limit: usize,
    excluded: &[Seq],
) -> Result<Vec<Ranked>, StoreError> {
    let each = limit_of(limit.saturating_add(excluded.len()));
    let from_ms = filter.after_ms.unwrap_or(i64::MIN);
    let until_ms = filter.before_ms.unwrap_or(i64::MAX);
    let mut newest: Vec<Match> = Vec::new();
    for row in &range.rows {
        if filter.from.is_none() {
            let mut statement = connection.prepare_cached(NEWEST_SQL)?;
            for found in statement.query_map((row, from_ms, until_ms, each), match_from_row)? {
                newest.push(found?);
            }
        }
        for speaker in speakers {
            let mut statement = connection.prepare_cached(NEWEST_OF_SPEAKER_SQL)?;
            let asked = (row, from_ms, until_ms, each, speaker);
            for found in statement.query_map(asked, match_from_row)? {
                newest.push(found?);
            }
        }
    }
    newest.retain(|found| !excluded.contains(&found.seq));
    newest.sort_by(|a, b| b.cmp(a));
    newest.truncate(limit);
    Ok(newest.into_iter().map(Ranked::of).collect())
}

fn match_from_row(row: &crate::engine::sql::Row<'_>) -> crate::engine::sql::Result<Match> {
    Ok(Match {
        seq: row.get("seq")?,
        sent_at_ms: row.get("sent_at_ms")?,
        ordinal: row.get("ordinal")?,
    })
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
            limit: 9,
            token_cap: 999,
            text_max_chars: usize::MAX,
            neighbours: 0,
            mode: SearchMode::StrictNewest,
            ..SearchQuery::new(room.id, text)
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
            mode: SearchMode::Strict,
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
