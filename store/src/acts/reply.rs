//! Commits the end of a run (its answer, its posts and its state) in one transaction, and finds where an
//! answer goes.

use crate::acts::reply_room::{ReplyRoom, Trigger, position, room_of, triggers};
use crate::capability::MayReply;
use crate::engine::sql::{Connection, OptionalExtension};
use crate::rows::leases::{LeasedRun, leased_run};
use vocative_contract::outbound::{Operation, Target};

use crate::acts::delegating::{is_child, report_txn};
use crate::acts::ending::{EndOfRun, end_run_txn};
use crate::acts::made_from::{begin_again_txn, has_lost_source};
use crate::acts::placeholder::insert_answer_txn;
use crate::acts::reanswer::{answer_of, replace_answer_txn, replaced_answer, replaces_for_good};
use crate::contract::{CommittedReply, ReplyCommit, ReplyRoute, RunEnding, SaidBefore};
use crate::rows::columns::{chat_kind_from_name, missing, platform, stored_count};
use crate::rows::delegations::asked_run;
use crate::rows::hook_verdicts::keep_verdicts_txn;
use crate::rows::networks::keep_values_txn;
use crate::rows::outbox_rows::{NewPosts, insert_posts_txn};
use crate::rows::participants::{HeardSender, upsert_participant_txn};
use crate::rows::turns::{NewTurn, insert_turn_txn};
use crate::{Reader, Store, StoreError};
use vocative_core::ids::{AccountId, AgentName, ChatId, ParticipantId, RunId, Seq, TurnId};
use vocative_core::place::Scope;
use vocative_core::turn::{ParticipantKind, TokenCount, TurnKind};

impl Reader {
    /// Where the answer of a run goes.
    ///
    /// # Errors
    /// `NotFound` if there is no such run.
    pub async fn reply_route(&self, run: RunId) -> Result<ReplyRoute, StoreError> {
        self.read(move |connection| reply_route(connection, run))
            .await
    }
}

impl<C: MayReply> Store<C> {
    /// Commits the answer of a run: reply turn, one outbox row per part, end of the run. A run that another run started
    /// posts nothing: its answer goes to that run.
    ///
    /// # Errors
    /// Storage refuses; then nothing is written.
    pub async fn commit_reply(&self, reply: ReplyCommit) -> Result<CommittedReply, StoreError> {
        let (run, now_ms) = (reply.run, reply.now_ms);
        let job = move |connection: &Connection| commit_reply_txn(connection, &reply);
        // The replaced text may have to be removed everywhere, even from the write-ahead log.
        if self.read(move |it| replaces_for_good(it, run)).await? {
            return self.write_and_clean(now_ms, job).await;
        }
        self.write(job).await
    }
}

pub(crate) fn commit_reply_txn(
    connection: &Connection,
    reply: &ReplyCommit,
) -> Result<CommittedReply, StoreError> {
    let Some(leased) = leased_run(connection, reply.run, reply.token)? else {
        return Ok(CommittedReply::Stale);
    };
    if leased.is_cancelled {
        add_usage_txn(connection, leased.row, reply)?;
        end_run_txn(connection, leased.row, EndOfRun::Cancelled, reply.now_ms)?;
        return Ok(CommittedReply::Cancelled);
    }
    if reply.kind == TurnKind::Message && has_lost_source(connection, leased.row)? {
        begin_again_txn(connection, leased.row)?;
        return Ok(CommittedReply::SourceGone);
    }
    if is_child(connection, leased.row)? {
        keep_verdicts_txn(connection, leased.row, &reply.verdicts, reply.now_ms)?;
        report_txn(connection, leased.row, reply)?;
        finish_txn(connection, leased.row, reply)?;
        return Ok(CommittedReply::Reported);
    }
    let room = room_of(connection, &leased)?;
    let triggers = triggers(connection, leased.row)?;
    let mut replaced = replaced_answer(connection, leased.row, reply)?;
    let posts_of = |seq, parts| NewPosts {
        account: room.account,
        chat: room.conversation.chat,
        turn: Some(seq),
        run_row: Some(leased.row),
        target: &reply.target,
        operation: &Operation::Post,
        parts,
        now_ms: reply.now_ms,
    };
    for said in &reply.before {
        let words = SpokenWords::of_other(said);
        let (_, seq) = insert_reply_txn(connection, (reply, &words), &leased, &room, &triggers)?;
        involve_txn(connection, reply, &room, seq, &triggers)?;
        insert_posts_txn(connection, &posts_of(seq, &said.parts))?;
    }
    let (turn, seq) = match &replaced {
        Some(answer) => (answer.id, Seq(answer.seq)),
        None => {
            let words = SpokenWords::of_answer(reply);
            insert_reply_txn(connection, (reply, &words), &leased, &room, &triggers)?
        }
    };
    involve_txn(connection, reply, &room, seq, &triggers)?;
    let posts = posts_of(seq, &reply.parts);
    let posts = match &mut replaced {
        Some(answer) => replace_answer_txn(connection, reply, &posts, answer)?,
        None => insert_answer_txn(connection, &posts, reply.live_settle_ms)?,
    };
    keep_verdicts_txn(connection, leased.row, &reply.verdicts, reply.now_ms)?;
    if let Some(values) = &reply.values {
        // Values that were changed elsewhere meanwhile stay as they are: the caller was told when it read them.
        keep_values_txn(connection, leased.conversation_row, values, reply.now_ms)?;
    }
    finish_txn(connection, leased.row, reply)?;
    Ok(CommittedReply::Written { turn, posts })
}

/// What one speaker says.
struct SpokenWords<'a> {
    speaker: &'a AgentName,
    display_name: &'a str,
    text: &'a str,
    tokens: Option<&'a TokenCount>,
}

impl<'a> SpokenWords<'a> {
    fn of_answer(reply: &'a ReplyCommit) -> Self {
        Self {
            speaker: &reply.speaker,
            display_name: &reply.speaker_display_name,
            text: &reply.text,
            tokens: reply.tokens.as_ref(),
        }
    }

    fn of_other(said: &'a SaidBefore) -> Self {
        Self {
            speaker: &said.speaker,
            display_name: &said.speaker_display_name,
            text: &said.text,
            tokens: said.tokens.as_ref(),
        }
    }
}

fn insert_reply_txn(
    connection: &Connection,
    (reply, words): (&ReplyCommit, &SpokenWords<'_>),
    leased: &LeasedRun,
    room: &ReplyRoom,
    triggers: &[Trigger],
) -> Result<(TurnId, Seq), StoreError> {
    let participant = speaker_txn(connection, (reply, words), room.account)?;
    let (sent_at_ms, ordinal) = position(connection, room, triggers, reply.now_ms)?;
    let turn = insert_turn_txn(
        connection,
        &NewTurn {
            conversation: &room.conversation,
            sent_at_ms,
            ordinal,
            kind: reply.kind,
            scope: room.conversation.scope(room.kind),
            participant,
            content: words.text,
            attachments: None,
            reply_to_seq: triggers.last().map(|trigger| trigger.seq.0),
            reply_to_message: None,
            quote: None,
            album: None,
            tokens: words.tokens,
            is_inbound: false,
            captured_at_ms: reply.now_ms,
        },
    )?;
    connection
        .prepare_cached("UPDATE turns SET run_id = ?2 WHERE seq = ?1")?
        .execute((turn.seq, leased.row))?;
    Ok((turn.id, Seq(turn.seq)))
}

/// The speaker of a reply: the agent itself, or the daemon for a notice.
fn speaker_txn(
    connection: &Connection,
    (reply, words): (&ReplyCommit, &SpokenWords<'_>),
    account: AccountId,
) -> Result<ParticipantId, StoreError> {
    let speaker = HeardSender {
        kind: if reply.kind == TurnKind::Notice {
            ParticipantKind::System
        } else {
            ParticipantKind::Agent
        },
        platform_id: words.speaker.as_str(),
        display_name: Some(words.display_name),
        username: None,
        is_bot: None,
    };
    upsert_participant_txn(connection, account, speaker, reply.now_ms)
}

/// Involves the agent in the reply, and marks its triggers as answered.
fn involve_txn(
    connection: &Connection,
    reply: &ReplyCommit,
    room: &ReplyRoom,
    seq: Seq,
    triggers: &[Trigger],
) -> Result<(), StoreError> {
    let mut involve = connection.prepare_cached(
        "INSERT INTO involvements (conversation_id, agent, sent_at_ms, ordinal, seq, how)
         SELECT ?1, ?2, sent_at_ms, ordinal, seq, ?4 FROM turns WHERE seq = ?3
         ON CONFLICT DO UPDATE SET how = excluded.how",
    )?;
    involve.execute((room.conversation.row, &reply.agent, seq, "authored"))?;
    for trigger in triggers {
        involve.execute((
            trigger.conversation_row,
            &reply.agent,
            trigger.seq,
            "answered",
        ))?;
    }
    Ok(())
}

fn add_usage_txn(
    connection: &Connection,
    run_row: i64,
    reply: &ReplyCommit,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE runs SET prompt_tokens = prompt_tokens + ?2,
                    cache_read_tokens = cache_read_tokens + ?3,
                    cache_write_tokens = cache_write_tokens + ?4,
                    completion_tokens = completion_tokens + ?5
             WHERE id = ?1",
        )?
        .execute((
            run_row,
            stored_count(reply.usage.prompt_tokens),
            stored_count(reply.usage.cache_read_tokens),
            stored_count(reply.usage.cache_write_tokens),
            stored_count(reply.usage.completion_tokens),
        ))?;
    Ok(())
}

fn finish_txn(
    connection: &Connection,
    run_row: i64,
    reply: &ReplyCommit,
) -> Result<(), StoreError> {
    add_usage_txn(connection, run_row, reply)?;
    let ending = match &reply.ending {
        RunEnding::Done => EndOfRun::Done,
        RunEnding::Dead { reason } => EndOfRun::Dead { reason },
        RunEnding::Cancelled => EndOfRun::Cancelled,
    };
    end_run_txn(connection, run_row, ending, reply.now_ms)
}

fn reply_route(connection: &Connection, run: RunId) -> Result<ReplyRoute, StoreError> {
    let not_found = |error| missing(error, || format!("run {run}"));
    let (run_row, chat, mut route): (i64, ChatId, ReplyRoute) = connection
        .prepare_cached(
            "SELECT r.id, h.id AS chat, h.account_id, a.platform, h.platform_id, h.kind, c.thread,
                    c.is_topic,
                    coalesce((SELECT n.name FROM channels n WHERE n.account_id = a.id
                              ORDER BY n.bound_at_ms DESC, n.name LIMIT 1), '') AS channel
             FROM runs r JOIN conversations c ON c.id = r.conversation_id
             JOIN chats h ON h.id = c.chat_id JOIN accounts a ON a.id = h.account_id
             WHERE r.uuid = ?1",
        )?
        .query_row([run], |row| {
            let kind: Option<String> = row.get("kind")?;
            let chat_kind = kind.as_deref().and_then(chat_kind_from_name);
            let thread: Option<String> =
                Some(row.get("thread")?).filter(|t: &String| !t.is_empty());
            let is_topic: bool = row.get("is_topic")?;
            let scope = Scope::of(chat_kind, thread.is_some() && !is_topic);
            let (topic, thread) = if is_topic {
                (thread, None)
            } else {
                (None, thread)
            };
            let route = ReplyRoute {
                account: row.get("account_id")?,
                channel: row.get("channel")?,
                platform: platform(row)?,
                chat: row.get("chat")?,
                target: Target {
                    chat: row.get("platform_id")?,
                    thread,
                    topic,
                    reply_to: None,
                },
                scope,
                chat_kind,
                replaces_answer: false,
                person: None,
            };
            Ok((row.get("id")?, row.get("chat")?, route))
        })
        .map_err(not_found)?;
    let asked = asked_run(connection, run_row)?;
    route.target.reply_to = trigger_message(connection, asked, chat)?;
    route.replaces_answer = answer_of(connection, run_row)?.is_some();
    route.person = trigger_person(connection, asked)?;
    Ok(route)
}

/// The platform's id of the newest trigger, if it is one under the chat's present id.
fn trigger_message(
    connection: &Connection,
    run_row: i64,
    chat: ChatId,
) -> Result<Option<String>, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT m.platform_id FROM run_triggers g JOIN turns t ON t.seq = g.turn_seq
             JOIN messages m ON m.turn_seq = t.seq
             WHERE g.run_id = ?1
               AND m.chat_id = (SELECT i.identity_id FROM chats h
                                JOIN chat_ids i ON i.account_id = h.account_id
                                               AND i.platform_id = h.platform_id
                                WHERE h.id = ?2)
             ORDER BY t.sent_at_ms DESC, t.ordinal DESC, t.seq DESC, m.part LIMIT 1",
        )?
        .query_row((run_row, chat), |row| row.get("platform_id"))
        .optional()?)
}

/// The platform's id of the newest trigger's author; of a firing, of the schedule's owner.
fn trigger_person(connection: &Connection, run_row: i64) -> Result<Option<String>, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT p.platform_id FROM run_triggers g JOIN turns t ON t.seq = g.turn_seq
             JOIN participants p ON p.id = t.participant_id
             WHERE g.run_id = ?1 AND p.kind = 'user'
             ORDER BY t.sent_at_ms DESC, t.ordinal DESC, t.seq DESC LIMIT 1",
        )?
        .query_row([run_row], |row| row.get("platform_id"))
        .optional()?
        .map_or_else(|| owner_of_firing(connection, run_row), |id| Ok(Some(id)))?)
}

/// The platform's id of the owner of the schedule that started a run.
fn owner_of_firing(
    connection: &Connection,
    run_row: i64,
) -> crate::engine::sql::Result<Option<String>> {
    connection
        .prepare_cached(
            "SELECT p.platform_id FROM firings f JOIN schedules s ON s.id = f.schedule_id
             JOIN participants p ON p.id = s.participant_id WHERE f.run_id = ?1",
        )?
        .query_row([run_row], |row| row.get("platform_id"))
        .optional()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use vocative_contract::outbound::Part;

    use super::*;
    use crate::contract::TurnFilter;
    use crate::new_id::NewId as _;
    use crate::scene::{Scene, agent};
    use vocative_contract::envelope::ChatKind;
    use vocative_core::ids::LeaseToken;
    use vocative_core::run::StopCause;
    use vocative_core::run::{RunState, Usage};

    #[tokio::test]
    async fn a_reply_its_posts_and_the_end_of_its_run_are_committed_together() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        let (asked, run) = scene.ask(&room, "one?", 10).await;
        let overheard = scene.say(&room, "by the way", 40).await;
        let claimed = scene.claim(100).await.unwrap();
        let mut answer = scene.answer(&claimed, &room, "one. two.");
        answer.parts = vec![Part::plain("one."), Part::plain("two.")];
        let written = scene.store.commit_reply(answer).await.unwrap();
        let CommittedReply::Written { turn, posts } = written else {
            panic!("{written:?}");
        };

        let turns = scene
            .store
            .turns(room.id, TurnFilter::default())
            .await
            .unwrap();
        let reply = turns.last().unwrap();
        assert_eq!((reply.id, reply.reply_to), (turn, Some(asked.turn)));
        // The reply has the position of the room's newest turn, and comes after it by its own seq.
        assert_eq!((reply.position.sent_at_ms, reply.position.ordinal), (40, 0));
        assert!(reply.seq() > overheard.seq);
        assert_eq!(reply.participant.shown_name(), "Helper");
        assert_eq!(reply.run, Some(run));
        assert_eq!(turns[0].addressed_to, [agent()]);

        let ended = scene.store.run(run).await.unwrap();
        assert_eq!(ended.state, RunState::Done);
        let usage = Usage {
            prompt_tokens: 7,
            completion_tokens: 3,
            ..Usage::default()
        };
        assert_eq!(ended.usage, usage);
        let details = scene.store.turn_details(room.id, 9).await.unwrap();
        let posted: Vec<_> = details[2].posts.iter().map(|post| post.id).collect();
        assert_eq!(posted, posts);
        assert_eq!(details[0].runs, [ended]);
        assert_eq!(details[0].message_ids, ["m1"]);
        let answered = "SELECT count(*) FROM involvements WHERE how = 'answered' AND seq = 1";
        assert_eq!(scene.value::<i64>(answered).await, 1);
    }

    #[tokio::test]
    async fn a_stale_token_commits_no_reply() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        scene.ask(&room, "one?", 10).await;
        let claimed = scene.claim(100).await.unwrap();
        let mut answer = scene.answer(&claimed, &room, "late");
        answer.token = LeaseToken::generate();
        let outcome = scene.store.commit_reply(answer).await.unwrap();
        assert_eq!(outcome, CommittedReply::Stale);
        assert_eq!(scene.value::<i64>("SELECT count(*) FROM turns").await, 1);
        assert_eq!(scene.value::<i64>("SELECT count(*) FROM outbox").await, 0);
    }

    #[tokio::test]
    async fn a_run_that_was_asked_to_stop_ends_without_an_answer() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        let (_, run) = scene.ask(&room, "one?", 10).await;
        let claimed = scene.claim(100).await.unwrap();
        scene
            .store
            .cancel_run(run, StopCause::Deleted.into(), 101)
            .await
            .unwrap();
        let answer = scene.answer(&claimed, &room, "too late");
        let outcome = scene.store.commit_reply(answer).await.unwrap();
        assert_eq!(outcome, CommittedReply::Cancelled);
        assert_eq!(
            scene.store.run(run).await.unwrap().state,
            RunState::Cancelled
        );
        assert_eq!(scene.value::<i64>("SELECT count(*) FROM turns").await, 1);
    }

    #[tokio::test]
    async fn a_run_that_was_asked_to_stop_and_fails_makes_no_excuses() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        let (_, run) = scene.ask(&room, "one?", 10).await;
        let claimed = scene.claim(100).await.unwrap();
        scene
            .store
            .cancel_run(run, StopCause::Deleted.into(), 101)
            .await
            .unwrap();
        let mut notice = scene.answer(&claimed, &room, "I could not answer.");
        notice.kind = TurnKind::Notice;
        notice.ending = RunEnding::Dead {
            reason: "model refused".to_owned(),
        };
        let outcome = scene.store.commit_reply(notice).await.unwrap();
        assert_eq!(outcome, CommittedReply::Cancelled);
        assert_eq!(
            scene.store.run(run).await.unwrap().state,
            RunState::Cancelled
        );
        assert_eq!(scene.value::<i64>("SELECT count(*) FROM outbox").await, 0);
    }

    #[tokio::test]
    async fn a_run_given_up_tells_the_room_as_the_system() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        let (_, run) = scene.ask(&room, "one?", 10).await;
        let claimed = scene.claim(100).await.unwrap();
        let mut notice = scene.answer(&claimed, &room, "I could not answer.");
        notice.kind = TurnKind::Notice;
        notice.ending = RunEnding::Dead {
            reason: "model refused".to_owned(),
        };
        notice.parts.clear();
        scene.store.commit_reply(notice).await.unwrap();
        let state = scene.store.run(run).await.unwrap().state;
        let reason = "model refused".to_owned();
        assert_eq!(state, RunState::Dead { reason });
        let turns = scene
            .store
            .turns(room.id, TurnFilter::default())
            .await
            .unwrap();
        assert_eq!(turns[1].participant.kind, ParticipantKind::System);
        assert_eq!(scene.value::<i64>("SELECT count(*) FROM outbox").await, 0);
    }

    #[tokio::test]
    async fn the_first_reply_of_a_thread_stands_behind_its_root() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        let root = scene.say(&room, "a question", 10).await;
        scene.say(&room, "other talk", 90).await;
        let thread = scene.thread(&room, root).await;
        scene.address(&room, root).await;
        let run = scene.queue(&thread, root, 10).await;

        let route = scene.store.reply_route(run).await.unwrap();
        assert_eq!(route.target.thread.as_deref(), Some("ts1"));
        assert_eq!(route.target.reply_to.as_deref(), Some("m1"));
        assert_eq!(
            (route.channel.as_str(), route.scope),
            ("acme", Scope::Thread)
        );
        assert_eq!(route.chat_kind, Some(ChatKind::Public));

        let claimed = scene.claim(100).await.unwrap();
        let answer = scene.answer(&claimed, &thread, "an answer");
        scene.store.commit_reply(answer).await.unwrap();
        let turns = scene
            .store
            .turns(thread.id, TurnFilter::default())
            .await
            .unwrap();
        assert_eq!(
            (turns[0].position.sent_at_ms, turns[0].position.ordinal),
            (10, 0)
        );
        assert_eq!(turns[0].scope, Scope::Thread);
        assert!(turns[0].seq() > Seq(2));
    }
}
