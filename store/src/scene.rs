//! Rooms, turns and runs for the store's own tests, written as capture writes them.

#![allow(clippy::unwrap_used)]

use crate::engine::sql::Connection;
use vocative_contract::identity::Platform;
use vocative_contract::outbound::{Part, Target};

use super::contract::{AccountBinding, ClaimRequest, CommittedReply, ReplyCommit, RunEnding};
use super::{Store, StoreError, StoreOptions};
use crate::new_id::NewId as _;
use crate::rows::participants::{HeardSender, upsert_participant_txn};
use crate::rows::places::{
    ConversationSeat, ensure_chat_txn, ensure_conversation_txn, note_turn_txn, set_root_txn,
};
use crate::rows::run_rows::{NewRun, queue_run_txn};
use crate::rows::search_text::index_turn_txn;
use vocative_core::ids::{
    AccountId, AgentName, ChatId, ConversationId, OwnerId, RunId, Seq, TurnId,
};
use vocative_core::run::{ClaimedRun, StopCause, Stopping, Usage};
use vocative_core::tool_call::CallLimits;
use vocative_core::turn::{ParticipantKind, TurnKind};

/// How long a lease lasts in these tests.
pub(super) const LEASE_MS: i64 = 1_000;

/// A store with one account.
pub(super) struct Scene {
    pub(super) store: Store,
    pub(super) account: AccountId,
}

/// A conversation.
#[derive(Clone, Debug)]
pub(super) struct Room {
    pub(super) id: ConversationId,
    pub(super) row: i64,
    pub(super) chat: ChatId,
    pub(super) platform_chat: String,
}

/// Something said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) turn: TurnId,
    pub(super) seq: Seq,
}

/// A stop of a run by an operator.
pub(super) fn by_hand(detail: &str) -> Stopping {
    Stopping {
        cause: StopCause::Operator,
        detail: detail.to_owned(),
    }
}

pub(super) fn agent() -> AgentName {
    AgentName::trusted("helper")
}

impl Scene {
    pub(super) async fn open() -> Self {
        Self::open_at(None).await
    }

    pub(super) async fn open_at(path: Option<std::path::PathBuf>) -> Self {
        let options = StoreOptions {
            path,
            readers: 2,
            page_cache_kib: 1_024,
        };
        let (store, _) = Store::open(&options, 0).unwrap();
        let binding = AccountBinding {
            channel: "acme".to_owned(),
            platform: Platform::Slack,
            account: "T1".to_owned(),
            name: "Acme".to_owned(),
        };
        let account = store.bind_account(binding, 0).await.unwrap();
        Self { store, account }
    }

    pub(super) async fn room(&self, chat: &str) -> Room {
        let account = self.account;
        let name = chat.to_owned();
        self.write(move |connection| {
            let chat = ensure_chat_txn(connection, account, &name)?;
            connection.execute(
                "UPDATE chats SET title = lower(?2), kind = 'public' WHERE id = ?1",
                (chat.id, &name),
            )?;
            let made = ensure_conversation_txn(connection, chat.id, ConversationSeat::Chat, 0)?;
            Ok(Room {
                id: made.id,
                row: made.row,
                chat: chat.id,
                platform_chat: name,
            })
        })
        .await
    }

    pub(super) async fn thread(&self, parent: &Room, root: Said) -> Room {
        let parent = parent.clone();
        self.write(move |connection| {
            let key = format!("ts{}", root.seq);
            let made = ensure_conversation_txn(
                connection,
                parent.chat,
                ConversationSeat::Thread(&key),
                0,
            )?;
            set_root_txn(connection, made.row, root.seq.0)?;
            Ok(Room {
                id: made.id,
                row: made.row,
                ..parent
            })
        })
        .await
    }

    /// A turn that addresses nobody.
    pub(super) async fn say(&self, room: &Room, text: &str, at_ms: i64) -> Said {
        let (room, text, account) = (room.clone(), text.to_owned(), self.account);
        self.write(move |connection| {
            let spoken = Spoken {
                text: &text,
                at_ms,
                reply_to: None,
            };
            say_txn(connection, account, &room, &spoken)
        })
        .await
    }

    pub(super) async fn say_in_reply(&self, room: &Room, text: &str, at_ms: i64, to: Said) -> Said {
        let (room, text, account) = (room.clone(), text.to_owned(), self.account);
        self.write(move |connection| {
            let spoken = Spoken {
                text: &text,
                at_ms,
                reply_to: Some(to.seq),
            };
            say_txn(connection, account, &room, &spoken)
        })
        .await
    }

    /// Makes a turn addressed, but without a run, as if it were too old or a limit were met.
    pub(super) async fn address(&self, room: &Room, said: Said) {
        let row = room.row;
        self.write(move |connection| address_txn(connection, row, said.seq))
            .await;
    }

    /// Queues a run for a turn, in a conversation.
    pub(super) async fn queue(&self, answer_in: &Room, trigger: Said, at_ms: i64) -> RunId {
        let room = answer_in.clone();
        self.write(move |connection| {
            let new = NewRun {
                conversation: room.row,
                chat: room.chat,
                agent: &agent(),
                not_before_ms: at_ms,
                person: None,
                now_ms: at_ms,
            };
            let (row, id) = queue_run_txn(connection, &new)?;
            connection.execute(
                "INSERT INTO run_triggers (run_id, turn_seq, agent, revision)
                 VALUES (?1, ?2, ?3, 1)",
                (row, trigger.seq, agent()),
            )?;
            Ok(id)
        })
        .await
    }

    /// A turn that addresses the agent, and its run.
    pub(super) async fn ask(&self, room: &Room, text: &str, at_ms: i64) -> (Said, RunId) {
        let said = self.say(room, text, at_ms).await;
        self.address(room, said).await;
        let run = self.queue(room, said, at_ms).await;
        (said, run)
    }

    /// A claim with a new owner each time, so that any expired lease is another process's.
    pub(super) fn request(&self, now_ms: i64) -> ClaimRequest {
        ClaimRequest {
            owner: OwnerId::generate(),
            lease_ms: LEASE_MS,
            now_ms,
            accounts: (1..100).map(AccountId).collect(),
        }
    }

    pub(super) async fn claim(&self, now_ms: i64) -> Option<ClaimedRun> {
        self.store
            .claim_run(self.request(now_ms), Default::default())
            .await
            .unwrap()
    }

    pub(super) fn answer(&self, run: &ClaimedRun, room: &Room, text: &str) -> ReplyCommit {
        ReplyCommit {
            verdicts: Vec::new(),
            run: run.run.id,
            token: run.token,
            agent: agent(),
            speaker: agent(),
            speaker_display_name: "Helper".to_owned(),
            before: Vec::new(),
            values: None,
            text: text.to_owned(),
            kind: TurnKind::Message,
            ending: RunEnding::Done,
            parts: vec![Part::plain(text)],
            target: target(room),
            live_settle_ms: 0,
            tokens: None,
            usage: Usage {
                prompt_tokens: 7,
                completion_tokens: 3,
                ..Usage::default()
            },
            now_ms: run.as_of_ms + 1,
        }
    }

    /// Claims the next run and answers it with parts.
    pub(super) async fn post(&self, room: &Room, parts: &[&str], now_ms: i64) -> CommittedReply {
        self.ask(room, "please", now_ms).await;
        let run = self.claim(now_ms).await.unwrap();
        let mut reply = self.answer(&run, room, &parts.concat());
        reply.parts = parts.iter().map(|part| Part::plain(*part)).collect();
        reply.now_ms = now_ms;
        self.store.commit_reply(reply).await.unwrap()
    }

    pub(super) async fn write<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> T {
        self.store.write(job).await.unwrap()
    }

    /// The query plan of a statement.
    pub(super) async fn plan(&self, sql: &'static str) -> Vec<String> {
        let read = self.store.read(move |connection| {
            let mut statement = connection
                .raw()
                .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
            let mut rows = statement.raw_query();
            let mut steps = Vec::new();
            while let Some(row) = rows.next()? {
                steps.push(row.get(3)?);
            }
            Ok(steps)
        });
        read.await.unwrap()
    }

    /// A number or text read from the database.
    pub(super) async fn value<T: crate::engine::sql::FromSql + Send + 'static>(
        &self,
        sql: &'static str,
    ) -> T {
        self.store
            .read(move |connection| Ok(connection.query_row(sql, [], |row| row.get(0))?))
            .await
            .unwrap()
    }
}

pub(super) fn target(room: &Room) -> Target {
    Target {
        chat: room.platform_chat.clone(),
        thread: None,
        topic: None,
        reply_to: None,
    }
}

struct Spoken<'a> {
    text: &'a str,
    at_ms: i64,
    reply_to: Option<Seq>,
}

fn say_txn(
    connection: &Connection,
    account: AccountId,
    room: &Room,
    spoken: &Spoken<'_>,
) -> Result<Said, StoreError> {
    let speaker = HeardSender {
        kind: ParticipantKind::User,
        platform_id: "U1",
        display_name: Some("Ada"),
        username: Some("ada"),
        is_bot: None,
    };
    let participant = upsert_participant_txn(connection, account, speaker, spoken.at_ms)?;
    let turn = TurnId::generate();
    connection
        .prepare_cached(
            "INSERT INTO turns (uuid, conversation_id, sent_at_ms, ordinal, kind, scope,
                                participant_id, content, reply_to_seq, captured_at_ms, is_inbound)
             VALUES (?1, ?2, ?3, 0, 'message', 'channel', ?4, ?5, ?6, ?3, 1)",
        )?
        .execute((
            turn,
            room.row,
            spoken.at_ms,
            participant,
            spoken.text,
            spoken.reply_to,
        ))?;
    let seq = connection.last_insert_rowid();
    index_turn_txn(connection, seq)?;
    note_turn_txn(connection, room.row, seq, spoken.at_ms)?;
    connection
        .prepare_cached(
            "INSERT INTO messages (account_id, chat_id, platform_id, turn_seq)
             VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute((account, room.chat, format!("m{seq}"), seq))?;
    Ok(Said {
        turn,
        seq: Seq(seq),
    })
}

fn address_txn(connection: &Connection, row: i64, seq: Seq) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "INSERT INTO involvements (conversation_id, agent, sent_at_ms, ordinal, seq, how)
             SELECT ?1, ?2, sent_at_ms, ordinal, seq, 'addressed' FROM turns WHERE seq = ?3",
        )?
        .execute((row, agent(), seq))?;
    Ok(())
}

/// A call without limits.
pub(super) const UNLIMITED: CallLimits = CallLimits {
    run_calls_max: u32::MAX,
    run_tool_calls_max: None,
    day_tool_calls_max: None,
};
