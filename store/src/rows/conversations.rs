//! Conversations and their turns, listed; and how a person names a conversation.

use crate::engine::sql::{Connection, OptionalExtension, Row};

use crate::contract::{ConversationFilter, TurnDetail, TurnFilter};
use crate::registry::{
    Class, ErasureRule, ExpiryRule, ExportRule, Fate, MergeRule, STATE, StoreTable, account, text,
};
use crate::rows::columns::limit_of;
use crate::rows::columns::{chat_kind_from_name, count_from, missing, select_turns, turn_from_row};
use crate::rows::outbox_rows::posts_of_turn;
use crate::rows::run_rows::runs_of_turn;
use crate::{Reader, StoreError};
use vocative_core::ids::{ConversationId, Seq, TurnId};
use vocative_core::place::{Conversation, ConversationKey, Scope};
use vocative_core::turn::Turn;

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[
    account(
        "conversation_merges",
        text(&[], &[], &[]),
        Fate {
            merge: MergeRule::Joined,
            ..STATE
        },
    ),
    account(
        "conversations",
        text(&[], &["title", "own_title"], &["thread", "own_title_from"]),
        Fate {
            person: ErasureRule::Emptied,
            chat: ErasureRule::Emptied,
            // Only a title that a model made of what was said goes; what people call the room stays.
            message: ErasureRule::Emptied,
            merge: MergeRule::Joined,
            expiry: ExpiryRule::Emptied(Class::Text),
            export: ExportRule::Exported,
            ..STATE
        },
    )
    .follows(&["root_turn_seq"]),
];

/// Conversations listed where no limit is given.
const CONVERSATIONS_DEFAULT: usize = 50;
/// The shortest prefix that may name a conversation's id, in characters.
const ID_PREFIX_MIN_CHARS: usize = 4;
/// The most near misses that an error names.
const NEAR_MISSES_MAX: usize = 5;

macro_rules! select_conversations {
    ($tail:literal) => {
        concat!(
            "SELECT c.uuid, h.account_id, h.id AS chat_id, h.platform_id, h.kind, c.thread, c.is_topic, c.is_fork,
                    (SELECT p.uuid FROM conversations p WHERE p.id = c.parent_id) AS parent,
                    (SELECT t.uuid FROM turns t WHERE t.seq = c.root_turn_seq) AS root,
                    coalesce(nullif(c.title, ''), nullif(h.title, ''), h.platform_id) AS shown_title,
                    c.turn_count, c.last_seq, c.last_activity_ms
             FROM conversations c JOIN chats h ON h.id = c.chat_id ",
            $tail
        )
    };
}

pub(crate) const CONVERSATION_SQL: &str = select_conversations!("WHERE c.uuid = ?1");
const TURNS_SQL: &str = select_turns!(
    "WHERE t.conversation_id = ?1 AND t.sent_at_ms >= ?2
       AND (?3 IS NULL OR t.scope = ?3)
       AND (?4 IS NULL OR p.platform_id IN (SELECT value FROM json_each(?4)))
       AND (?5 OR t.visibility = 'room')
     ORDER BY t.sent_at_ms DESC, t.ordinal DESC, t.seq DESC LIMIT ?6"
);

impl Reader {
    /// Conversations, newest activity first.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn conversations(
        &self,
        filter: ConversationFilter,
    ) -> Result<Vec<Conversation>, StoreError> {
        self.read(move |connection| conversations(connection, &filter))
            .await
    }

    /// The conversation a person names: by an id's first characters (at least four), or like
    /// `channel/#title`, `channel/title` or `channel/platform-chat-id`, with `/thread-or-topic`
    /// behind it for one of the chat's threads or topics.
    ///
    /// # Errors
    /// `NotFound` says what is near, `Ambiguous` what the name could all mean.
    pub async fn find_conversation(&self, name: &str) -> Result<Conversation, StoreError> {
        let name = name.trim().to_owned();
        self.read(move |connection| match name.split_once('/') {
            Some((channel, place)) => find_by_place(connection, channel, place),
            None => find_by_id(connection, &name),
        })
        .await
    }

    /// A conversation.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation.
    pub async fn conversation(&self, id: ConversationId) -> Result<Conversation, StoreError> {
        self.read(move |connection| conversation(connection, id))
            .await
    }

    /// A turn.
    ///
    /// # Errors
    /// `NotFound` if there is no such turn.
    pub async fn turn(&self, id: TurnId) -> Result<Turn, StoreError> {
        self.read(move |connection| {
            connection
                .prepare_cached(select_turns!("WHERE t.uuid = ?1"))?
                .query_row([id], turn_from_row)
                .map_err(|error| missing(error, || format!("turn {id}")))
        })
        .await
    }

    /// When the newest turn up to a capture order was captured, in milliseconds since the Unix epoch.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn captured_by(&self, seq: Seq) -> Result<Option<i64>, StoreError> {
        self.read(move |connection| {
            let found = connection
                .prepare_cached(
                    "SELECT captured_at_ms FROM turns WHERE seq <= ?1 ORDER BY seq DESC LIMIT 1",
                )?
                .query_row([seq], |row| row.get("captured_at_ms"))
                .optional()?;
            Ok(found)
        })
        .await
    }

    /// Turns of a conversation, ascending by position. A conversation that is not known has none.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn turns(
        &self,
        conversation: ConversationId,
        filter: TurnFilter,
    ) -> Result<Vec<Turn>, StoreError> {
        self.read(move |connection| turns(connection, conversation, &filter))
            .await
    }
}

/// The row id of a conversation, if it is known.
pub(crate) fn conversation_row(
    connection: &Connection,
    id: ConversationId,
) -> Result<Option<i64>, StoreError> {
    Ok(connection
        .prepare_cached("SELECT id FROM conversations WHERE uuid = ?1")?
        .query_row([id], |row| row.get("id"))
        .optional()?)
}

/// A conversation.
///
/// # Errors
/// `NotFound` if there is no such conversation.
pub(crate) fn conversation(
    connection: &Connection,
    id: ConversationId,
) -> Result<Conversation, StoreError> {
    connection
        .prepare_cached(CONVERSATION_SQL)?
        .query_row([id], conversation_from_row)
        .map_err(|error| missing(error, || format!("conversation {id}")))
}

fn conversation_from_row(row: &Row<'_>) -> crate::engine::sql::Result<Conversation> {
    let kind: Option<String> = row.get("kind")?;
    let chat_kind = kind.as_deref().and_then(chat_kind_from_name);
    let thread: Option<String> =
        Some(row.get("thread")?).filter(|thread: &String| !thread.is_empty());
    let is_topic: bool = row.get("is_topic")?;
    Ok(Conversation {
        id: row.get("uuid")?,
        account: row.get("account_id")?,
        scope: Scope::of(chat_kind, thread.is_some() && !is_topic),
        key: ConversationKey {
            chat: row.get("chat_id")?,
            thread_or_topic: thread,
        },
        platform_chat: row.get("platform_id")?,
        is_topic,
        chat_kind,
        parent: row.get("parent")?,
        root: row.get("root")?,
        is_fork: row.get("is_fork")?,
        title: row.get("shown_title")?,
        turns: count_from(row.get("turn_count")?),
        last_seq: row.get("last_seq")?,
        last_activity_ms: row.get("last_activity_ms")?,
    })
}

fn conversations(
    connection: &Connection,
    filter: &ConversationFilter,
) -> Result<Vec<Conversation>, StoreError> {
    let limit = match filter.limit {
        0 => CONVERSATIONS_DEFAULT,
        limit => limit,
    };
    let mut statement = connection.prepare_cached(select_conversations!(
        "WHERE (?1 IS NULL OR h.account_id = (SELECT account_id FROM channels WHERE name = ?1))
           AND (?3 OR c.archived_at_ms IS NULL)
           AND (?6 IS NULL OR substr(h.platform_id, 1, length(?6)) = ?6)
           AND (c.last_activity_ms, c.id)
             < (?4, coalesce((SELECT b.id FROM conversations b WHERE b.uuid = ?5), 9223372036854775807))
         ORDER BY c.last_activity_ms DESC, c.id DESC LIMIT ?2"
    ))?;
    let rows = statement.query_map(
        (
            &filter.channel,
            limit_of(limit),
            filter.with_archived,
            filter.before.map_or(i64::MAX, |(at_ms, _)| at_ms),
            filter.before.map(|(_, id)| id),
            &filter.chats_of,
        ),
        conversation_from_row,
    )?;
    Ok(rows.collect::<crate::engine::sql::Result<_>>()?)
}

fn find_by_id(connection: &Connection, prefix: &str) -> Result<Conversation, StoreError> {
    let digits: String = prefix
        .chars()
        .filter(|c| *c != '-')
        .map(|c| c.to_ascii_lowercase())
        .collect();
    let is_prefix = (ID_PREFIX_MIN_CHARS..=32).contains(&digits.len())
        && digits.chars().all(|c| c.is_ascii_hexdigit());
    if !is_prefix {
        return Err(StoreError::NotFound {
            what: format!(
                "a conversation named {prefix:?} (give at least {ID_PREFIX_MIN_CHARS} characters of its id, or channel/#title)"
            ),
        });
    }
    let mut statement = connection.prepare_cached(select_conversations!(
        "WHERE c.uuid BETWEEN ?1 AND ?2 ORDER BY c.uuid LIMIT ?3"
    ))?;
    let bound = |fill: &str| {
        let full = format!("{digits}{}", fill.repeat(32 - digits.len()));
        full.parse::<ConversationId>().expect("32 hex digits")
    };
    let found = statement
        .query_map(
            (bound("0"), bound("f"), limit_of(NEAR_MISSES_MAX)),
            conversation_from_row,
        )?
        .collect::<crate::engine::sql::Result<Vec<_>>>()?;
    only_one(found, || {
        format!("a conversation whose id starts with {prefix}")
    })
}

/// The one conversation found; the error for several names them.
fn only_one(
    mut found: Vec<Conversation>,
    what: impl FnOnce() -> String,
) -> Result<Conversation, StoreError> {
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(StoreError::NotFound { what: what() }),
        _ => Err(StoreError::Ambiguous {
            what: what(),
            meanings: found
                .iter()
                .map(|one| format!("{} ({})", one.id, one.title))
                .collect(),
            advice: "name one by its id",
        }),
    }
}

fn find_by_place(
    connection: &Connection,
    channel: &str,
    place: &str,
) -> Result<Conversation, StoreError> {
    let account: Option<i64> = connection
        .prepare_cached("SELECT account_id FROM channels WHERE name = ?1")?
        .query_row([channel], |row| row.get("account_id"))
        .optional()?;
    let Some(account) = account else {
        let known = names(connection, "SELECT name FROM channels ORDER BY name")?;
        return Err(not_near(format!("a channel named {channel:?}"), &known));
    };
    let named = || format!("a conversation {channel}/{place}");
    let whole = in_chat(connection, account, place, "")?;
    if !whole.is_empty() {
        return only_one(whole, named);
    }
    if let Some((chat, part)) = place.rsplit_once('/') {
        let part = in_chat(connection, account, chat, part)?;
        if !part.is_empty() {
            return only_one(part, named);
        }
    }
    let near = near_titles(connection, account, place)?;
    Err(not_near(
        format!("a conversation {place:?} in {channel}"),
        &near,
    ))
}

fn not_near(what: String, near: &[String]) -> StoreError {
    let what = if near.is_empty() {
        what
    } else {
        format!("{what} (near: {})", near.join(", "))
    };
    StoreError::NotFound { what }
}

/// Conversations of the chats that have this title or id (also one they had before); `thread` is the
/// platform's id or the name of a thread or topic, empty for the chat itself.
fn in_chat(
    connection: &Connection,
    account: i64,
    chat: &str,
    thread: &str,
) -> Result<Vec<Conversation>, StoreError> {
    let title = chat.strip_prefix('#').unwrap_or(chat);
    let mut statement = connection.prepare_cached(select_conversations!(
        "WHERE h.account_id = ?1
           AND (h.title = ?2 COLLATE NOCASE OR h.title = '#' || ?2 COLLATE NOCASE
                OR h.id IN (SELECT i.chat_id FROM chat_ids i
                            WHERE i.account_id = ?1 AND i.platform_id = ?3))
           AND (c.thread = ?4
                OR (?4 <> '' AND c.thread <> '' AND c.title = ?4 COLLATE NOCASE))
         ORDER BY c.last_activity_ms DESC LIMIT ?5"
    ))?;
    let found = statement.query_map(
        (account, title, chat, thread, limit_of(NEAR_MISSES_MAX)),
        conversation_from_row,
    )?;
    Ok(found.collect::<crate::engine::sql::Result<_>>()?)
}

/// Chats whose title shares its start with the name, or holds it; else those last heard.
fn near_titles(
    connection: &Connection,
    account: i64,
    place: &str,
) -> Result<Vec<String>, StoreError> {
    const NEAR_START_CHARS: usize = 3;
    let name = place.strip_prefix('#').unwrap_or(place);
    let start: String = name.chars().take(NEAR_START_CHARS).collect();
    let mut statement = connection.prepare_cached(
        "SELECT coalesce(nullif(title, ''), platform_id) AS name FROM chats WHERE account_id = ?1
         ORDER BY instr(lower(coalesce(title, '')), lower(?2)) > 0 DESC, last_heard_ms DESC LIMIT ?3",
    )?;
    let near = statement.query_map((account, start, limit_of(NEAR_MISSES_MAX)), |row| {
        row.get("name")
    })?;
    Ok(near.collect::<crate::engine::sql::Result<_>>()?)
}

fn names(connection: &Connection, sql: &str) -> Result<Vec<String>, StoreError> {
    let mut statement = connection.prepare_cached(sql)?;
    let names = statement.query_map([], |row| row.get("name"))?;
    Ok(names.collect::<crate::engine::sql::Result<_>>()?)
}

fn turns(
    connection: &Connection,
    conversation: ConversationId,
    filter: &TurnFilter,
) -> Result<Vec<Turn>, StoreError> {
    let Some(row) = conversation_row(connection, conversation)? else {
        return Ok(Vec::new());
    };
    let participants = (!filter.participants.is_empty())
        .then(|| serde_json::to_string(&filter.participants).expect("strings are always JSON"));
    let mut statement = connection.prepare_cached(TURNS_SQL)?;
    let rows = statement.query_map(
        (
            row,
            filter.since_ms.unwrap_or(i64::MIN),
            filter.scope,
            participants,
            filter.with_hidden,
            filter.limit.map_or(-1, limit_of),
        ),
        turn_from_row,
    )?;
    let mut turns = rows.collect::<crate::engine::sql::Result<Vec<_>>>()?;
    turns.reverse();
    Ok(turns)
}

/// A turn with what became of it.
pub(crate) fn detail(connection: &Connection, turn: Turn) -> Result<TurnDetail, StoreError> {
    Ok(TurnDetail {
        message_ids: message_ids(connection, turn.seq())?,
        runs: runs_of_turn(connection, turn.seq())?,
        posts: posts_of_turn(connection, turn.seq())?,
        turn,
    })
}

fn message_ids(connection: &Connection, turn: Seq) -> Result<Vec<String>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT platform_id FROM messages WHERE turn_seq = ?1 ORDER BY part, platform_id",
    )?;
    let ids = statement.query_map([turn], |row| row.get("platform_id"))?;
    Ok(ids.collect::<crate::engine::sql::Result<_>>()?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::scene::Scene;

    #[tokio::test]
    async fn a_conversation_is_found_by_id_title_or_platform_id() {
        let scene = Scene::open().await;
        let (general, ops) = (scene.room("General").await, scene.room("ops/eu").await);
        let eng = scene.room("#eng").await;
        let root = scene.say(&general, "root", 10).await;
        let thread = scene.thread(&general, root).await;
        let id = general.id.to_string();
        let cases = [
            (id.as_str(), general.id),
            (&id[..id.len() - 3], general.id),
            (" acme/#general ", general.id),
            ("acme/GENERAL", general.id),
            ("acme/#ops/eu", ops.id),
            ("acme/General/ts1", thread.id),
            ("acme/eng", eng.id),
            ("acme/#eng", eng.id),
        ];
        for (name, expected) in cases {
            let found = scene.store.find_conversation(name).await.unwrap();
            assert_eq!(found.id, expected, "{name}");
        }
        let found = scene.store.conversation(thread.id).await.unwrap();
        assert_eq!(
            (found.parent, found.root),
            (Some(general.id), Some(root.turn))
        );
        assert_eq!(
            (found.scope, found.title.as_str()),
            (Scope::Thread, "general")
        );
    }

    #[tokio::test]
    async fn a_name_that_does_not_fit_says_what_is_near() {
        let scene = Scene::open().await;
        scene.room("general").await;
        let twin = scene.room("twin").await;
        let other = scene.room("twin2").await;
        scene
            .write(move |connection| {
                connection.execute(
                    "UPDATE chats SET title = 'twin' WHERE id = ?1",
                    [other.chat],
                )?;
                Ok(())
            })
            .await;
        let cases = [
            ("acme/#genral", "near: general"),
            ("other/#general", "near: acme"),
            (
                "acme/#twin",
                "a conversation acme/#twin could be any of these: ",
            ),
            ("acme/#twin", &twin.id.to_string()),
            ("abc", "at least 4"),
            ("zzzz", "at least 4"),
            ("ffffffff", "starts with ffffffff"),
        ];
        for (name, expected) in cases {
            let error = scene.store.find_conversation(name).await.unwrap_err();
            let is_ambiguous = matches!(error, StoreError::Ambiguous { .. });
            assert_eq!(is_ambiguous, name == "acme/#twin", "{error}");
            assert!(error.to_string().contains(expected), "{name}: {error}");
        }
    }

    #[tokio::test]
    async fn turns_are_filtered_before_they_are_limited() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        for (text, at_ms) in [("c", 30), ("a", 10), ("b", 20), ("gone", 40)] {
            scene.say(&room, text, at_ms).await;
        }
        scene
            .write(|connection| {
                connection.execute("UPDATE turns SET visibility = 'hidden' WHERE seq = 4", [])?;
                Ok(())
            })
            .await;
        let listed = |filter: TurnFilter| async {
            let turns = scene.store.turns(room.id, filter).await.unwrap();
            turns
                .iter()
                .map(|turn| turn.content.clone())
                .collect::<Vec<_>>()
        };
        let all = TurnFilter::default;
        let limited = |limit| TurnFilter {
            limit: Some(limit),
            ..all()
        };
        assert_eq!(listed(all()).await, ["a", "b", "c"]);
        assert_eq!(listed(limited(2)).await, ["b", "c"]);
        assert_eq!(listed(limited(0)).await, Vec::<String>::new());
        let since = TurnFilter {
            since_ms: Some(20),
            with_hidden: true,
            ..all()
        };
        assert_eq!(listed(since).await, ["b", "c", "gone"]);
        let strangers = TurnFilter {
            participants: vec!["U9".to_owned()],
            ..all()
        };
        assert_eq!(listed(strangers).await, Vec::<String>::new());
        let dm = TurnFilter {
            scope: Some(Scope::Dm),
            ..all()
        };
        assert_eq!(listed(dm).await, Vec::<String>::new());
    }

    #[tokio::test]
    async fn pages_of_conversations_laid_end_to_end_have_each_once() {
        let scene = Scene::open().await;
        for n in 0..7 {
            let room = scene.room(&format!("C{n}")).await;
            // Some were active in the same millisecond.
            scene.say(&room, "hello", 10 + n / 3).await;
        }
        let whole = scene.store.conversations(ConversationFilter::default());
        let whole = whole.await.unwrap();
        let (mut pages, mut before) = (Vec::new(), None);
        loop {
            let filter = ConversationFilter {
                limit: 2,
                before,
                ..ConversationFilter::default()
            };
            let page = scene.store.conversations(filter).await.unwrap();
            let Some(last) = page.last() else { break };
            before = Some((last.last_activity_ms, last.id));
            pages.extend(page);
        }
        assert_eq!((pages.len(), &pages), (7, &whole));
    }

    #[tokio::test]
    async fn conversations_are_listed_by_activity_and_channel() {
        let scene = Scene::open().await;
        let (one, two) = (scene.room("C1").await, scene.room("C2").await);
        scene.say(&one, "hello", 20).await;
        scene.say(&two, "hello", 10).await;
        let listed = |channel: Option<&str>, limit| {
            let filter = ConversationFilter {
                channel: channel.map(str::to_owned),
                limit,
                ..ConversationFilter::default()
            };
            scene.store.conversations(filter)
        };
        let ids = |found: Vec<Conversation>| found.iter().map(|one| one.id).collect::<Vec<_>>();
        assert_eq!(ids(listed(None, 0).await.unwrap()), [one.id, two.id]);
        assert_eq!(ids(listed(Some("acme"), 1).await.unwrap()), [one.id]);
        assert_eq!(ids(listed(Some("other"), 0).await.unwrap()), []);
    }
}
