//! A run's steps: what each model call answered, and what it did with tools (calls and results as turns
//! that only the timeline shows).
//!
//! The step as it is to be replayed and its turns are one transaction, so that a step with results
//! has exactly one pair of turns for each call, however often the run is resumed.

use crate::capability::MayReply;
use crate::engine::sql::{Connection, params};

use crate::acts::derived::{note_sources_txn, visible_sources};
use crate::acts::made_from::note_run_sources_txn;
use crate::acts::notices::DAEMON;
use crate::acts::reply::{ReplyRoom, room_of, triggers};
use crate::acts::runs::leased_run;
use crate::contract::{LeaseOutcome, StepOutcome, StepTools, ToolTurn};
use crate::new_id::NewId as _;
use crate::rows::columns::stored_count;
use crate::rows::participants::{HeardSender, upsert_participant_txn};
use crate::rows::run_events::{ToldResult, forget_live_text_txn, tell_result_txn, tell_usage_txn};
use crate::{Reader, Store, StoreError};
use vocative_core::ids::{LeaseToken, ParticipantId, RunId, TurnId};
use vocative_core::run::Usage;
use vocative_core::turn::{ParticipantKind, TokenCount, TurnKind};

impl Reader {
    /// What a run's model calls answered, oldest first.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn steps(&self, run: RunId) -> Result<Vec<String>, StoreError> {
        self.read(move |connection| steps(connection, run)).await
    }
}

impl<C: MayReply> Store<C> {
    /// Records a model call of a run: the provider's own message, opaque, and its usage. The same
    /// number again replaces it. A power cut may undo it until the reply is committed; the model is
    /// then asked again.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn record_step(
        &self,
        run: RunId,
        token: LeaseToken,
        number: u32,
        message: String,
        usage: Usage,
        now_ms: i64,
    ) -> Result<LeaseOutcome, StoreError> {
        let step = Step {
            run,
            token,
            number,
            message,
            usage,
            now_ms,
        };
        self.write_riding(move |connection| record_step_txn(connection, &step))
            .await
    }

    /// Completes a recorded step with what its tools gave.
    ///
    /// # Errors
    /// Storage refuses; then nothing is written.
    pub async fn record_step_tools(&self, step: StepTools) -> Result<StepOutcome, StoreError> {
        self.write(move |connection| record_step_tools_txn(connection, &step))
            .await
    }
}

/// A turn of the timeline to be written.
struct TimelineTurn<'a> {
    kind: TurnKind,
    participant: ParticipantId,
    call_id: &'a str,
    content: &'a str,
    tokens: Option<&'a TokenCount>,
    reply_to_seq: Option<i64>,
}

/// Where the turns of a step go.
struct StepDestination {
    room: ReplyRoom,
    run_row: i64,
    sent_at_ms: i64,
    ordinal: i64,
    now_ms: i64,
}

fn record_step_tools_txn(
    connection: &Connection,
    step: &StepTools,
) -> Result<StepOutcome, StoreError> {
    let Some(leased) = leased_run(connection, step.run, step.token)? else {
        return Ok(StepOutcome::Stale);
    };
    let mut sources = Vec::with_capacity(step.calls.len());
    for call in &step.calls {
        let Some(seqs) = visible_sources(connection, &call.sources)? else {
            return Ok(StepOutcome::SourceGone);
        };
        sources.push(seqs);
    }
    let changed = connection
        .prepare_cached("UPDATE steps SET message = ?3 WHERE run_id = ?1 AND n = ?2")?
        .execute(params![leased.row, step.number, step.message])?;
    if changed == 0 {
        // It was taken out with something that it was made from.
        return Ok(StepOutcome::SourceGone);
    }
    let room = room_of(connection, &leased)?;
    let triggers = triggers(connection, leased.row)?;
    let (sent_at_ms, ordinal) =
        crate::acts::reply::position(connection, &room, &triggers, step.now_ms)?;
    let place = StepDestination {
        room,
        run_row: leased.row,
        sent_at_ms,
        ordinal,
        now_ms: step.now_ms,
    };
    let asked = triggers.last().map(|trigger| trigger.seq.0);
    for (call, sources) in step.calls.iter().zip(sources) {
        write_call_txn(connection, step, &place, call, asked, &sources)?;
    }
    Ok(StepOutcome::Written)
}

fn write_call_txn(
    connection: &Connection,
    step: &StepTools,
    place: &StepDestination,
    call: &ToolTurn,
    asked: Option<i64>,
    sources: &[i64],
) -> Result<(), StoreError> {
    let agent: String = connection
        .prepare_cached("SELECT agent FROM runs WHERE id = ?1")?
        .query_row([place.run_row], |row| row.get("agent"))?;
    let speaker = |kind, id: &str, name: Option<&str>| {
        let heard = HeardSender {
            kind,
            platform_id: id,
            display_name: name,
            username: None,
        };
        upsert_participant_txn(connection, place.room.account, heard, step.now_ms)
    };
    let called = TimelineTurn {
        kind: TurnKind::ToolCall,
        participant: speaker(
            ParticipantKind::Agent,
            &agent,
            Some(&step.agent_display_name),
        )?,
        call_id: &call.call_id,
        content: &call.call,
        tokens: call.call_tokens.as_ref(),
        reply_to_seq: asked,
    };
    let (called_seq, _) = insert_timeline_turn_txn(connection, place, &called)?;
    let result = TimelineTurn {
        kind: TurnKind::ToolResult,
        participant: if call.is_known {
            speaker(ParticipantKind::System, &call.tool, Some(&call.tool))?
        } else {
            // A tool that does not exist is answered by the daemon: a name that a model made up must not become
            // a speaker.
            speaker(ParticipantKind::System, DAEMON, None)?
        },
        call_id: &call.call_id,
        content: &call.result,
        tokens: call.result_tokens.as_ref(),
        reply_to_seq: Some(called_seq),
    };
    let (result_seq, turn) = insert_timeline_turn_txn(connection, place, &result)?;
    let told = ToldResult {
        step: step.number,
        call_id: &call.call_id,
        tool: &call.tool,
        turn,
    };
    let owner = (place.run_row, place.room.conversation.row);
    tell_result_txn(connection, owner, &told, step.now_ms)?;
    note_run_sources_txn(connection, place.run_row, sources)?;
    note_sources_txn(connection, result_seq, sources)
}

/// Inserts a turn that only the timeline shows: not in the index, not counted among the room's.
fn insert_timeline_turn_txn(
    connection: &Connection,
    place: &StepDestination,
    turn: &TimelineTurn<'_>,
) -> Result<(i64, TurnId), StoreError> {
    let id = TurnId::generate();
    connection
        .prepare_cached(
            "INSERT INTO turns (uuid, conversation_id, sent_at_ms, ordinal, kind, scope, visibility,
                    participant_id, content, reply_to_seq, call_id, run_id, tokens, counter,
                    captured_at_ms, is_inbound)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'timeline', ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, 0)",
        )?
        .execute(params![
            id,
            place.room.conversation.row,
            place.sent_at_ms,
            place.ordinal,
            turn.kind,
            place.room.conversation.scope(place.room.kind),
            turn.participant,
            turn.content,
            turn.reply_to_seq,
            turn.call_id,
            place.run_row,
            turn.tokens.map(|count| count.tokens),
            turn.tokens.map(|count| count.counter.as_str()),
            place.now_ms,
        ])?;
    Ok((connection.last_insert_rowid(), id))
}

struct Step {
    run: RunId,
    token: LeaseToken,
    number: u32,
    message: String,
    usage: Usage,
    now_ms: i64,
}

fn steps(connection: &Connection, run: RunId) -> Result<Vec<String>, StoreError> {
    let found = connection
        .prepare_cached(
            "SELECT s.message FROM steps s JOIN runs r ON r.id = s.run_id
             WHERE r.uuid = ?1 ORDER BY s.n",
        )?
        .query_map([run], |row| row.get("message"))?
        .collect::<crate::engine::sql::Result<_>>()?;
    Ok(found)
}

fn record_step_txn(connection: &Connection, step: &Step) -> Result<LeaseOutcome, StoreError> {
    let Some(leased) = leased_run(connection, step.run, step.token)? else {
        return Ok(LeaseOutcome::Stale);
    };
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO steps
                 (run_id, n, message, prompt_tokens, cache_read_tokens, cache_write_tokens,
                  completion_tokens, at_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute((
            leased.row,
            step.number,
            &step.message,
            stored_count(step.usage.prompt_tokens),
            stored_count(step.usage.cache_read_tokens),
            stored_count(step.usage.cache_write_tokens),
            stored_count(step.usage.completion_tokens),
            step.now_ms,
        ))?;
    let owner = (leased.row, leased.conversation_row);
    tell_usage_txn(connection, owner, step.number, step.usage, step.now_ms)?;
    Ok(LeaseOutcome::Written)
}

/// Takes the steps of some runs away, and what was told of them meanwhile. Returns how many.
///
/// `of` says which runs, as a comparison with `?1`.
pub(crate) fn delete_steps_txn(
    connection: &Connection,
    of: &'static str,
    value: i64,
) -> Result<usize, StoreError> {
    let mut runs: Vec<i64> = connection
        .prepare_cached(&format!(
            "DELETE FROM steps WHERE run_id {of} RETURNING run_id"
        ))?
        .query_map([value], |row| row.get("run_id"))?
        .collect::<crate::engine::sql::Result<_>>()?;
    let deleted = runs.len();
    runs.dedup();
    for run in runs {
        forget_live_text_txn(connection, run)?;
    }
    Ok(deleted)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::contract::{Deleted, LeaseOutcome, TurnFilter};
    use crate::scene::{LEASE_MS, Room, Said, Scene};
    use vocative_core::run::{ClaimedRun, Usage};
    use vocative_core::turn::{Turn, Visibility};

    fn step(run: &ClaimedRun, found: &Said) -> StepTools {
        StepTools {
            run: run.run.id,
            token: run.token,
            number: 1,
            message: "complete".to_owned(),
            agent_display_name: "Helper".to_owned(),
            calls: vec![ToolTurn {
                call_id: "call_1".to_owned(),
                tool: "conversation_search".to_owned(),
                is_known: true,
                call: "conversation_search {\"query\":\"deploy\"}".to_owned(),
                call_tokens: None,
                result: "zebraword was found".to_owned(),
                result_tokens: Some(TokenCount {
                    tokens: 4,
                    counter: "class_v2".to_owned(),
                }),
                sources: vec![found.turn],
            }],
            now_ms: 150,
        }
    }

    async fn begin(scene: &Scene, run: &ClaimedRun) {
        let recorded = scene.store.record_step(
            run.run.id,
            run.token,
            1,
            "asked".to_owned(),
            Usage::default(),
            140,
        );
        assert_eq!(recorded.await.unwrap(), LeaseOutcome::Written);
    }

    async fn timeline(scene: &Scene, room: &Room) -> Vec<Turn> {
        let filter = TurnFilter {
            with_hidden: true,
            ..TurnFilter::default()
        };
        let turns = scene.store.turns(room.id, filter).await.unwrap();
        let is_tool = |turn: &Turn| turn.visibility == Visibility::Timeline;
        turns.into_iter().filter(is_tool).collect()
    }

    #[tokio::test]
    async fn a_call_and_its_result_are_in_the_timeline_and_nowhere_else() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        let found = scene.say(&room, "zebraword", 5).await;
        scene.ask(&room, "find it", 10).await;
        let run = scene.claim(100).await.unwrap();
        begin(&scene, &run).await;
        let written = scene.store.record_step_tools(step(&run, &found)).await;
        assert_eq!(written.unwrap(), StepOutcome::Written);
        assert_eq!(
            scene.store.steps(run.run.id).await.unwrap(),
            ["complete".to_owned()]
        );
        let turns = timeline(&scene, &room).await;
        let shown: Vec<(TurnKind, &str, &str, Option<&str>)> = turns
            .iter()
            .map(|turn| {
                (
                    turn.kind,
                    turn.participant.shown_name(),
                    turn.content.as_str(),
                    turn.call_id.as_deref(),
                )
            })
            .collect();
        let call = "conversation_search {\"query\":\"deploy\"}";
        let expected = [
            (TurnKind::ToolCall, "Helper", call, Some("call_1")),
            (
                TurnKind::ToolResult,
                "conversation_search",
                "zebraword was found",
                Some("call_1"),
            ),
        ];
        assert_eq!(shown, expected);
        assert_eq!(turns[0].run, Some(run.run.id));
        assert_eq!(turns[1].reply_to, Some(turns[0].id));

        let reply = scene.answer(&run, &room, "here it is");
        scene.store.commit_reply(reply).await.unwrap();
        let turns = scene.store.turns(room.id, TurnFilter::default()).await;
        let room_said: Vec<String> = turns.unwrap().into_iter().map(|t| t.content).collect();
        assert_eq!(room_said, ["zebraword", "find it", "here it is"]);
        let indexed = "SELECT count(*) FROM turn_text WHERE turn_text MATCH 'found'";
        assert_eq!(scene.value::<i64>(indexed).await, 0);
        let counted = "SELECT turn_count FROM conversations";
        assert_eq!(scene.value::<i64>(counted).await, 3);
    }

    #[tokio::test]
    async fn a_tool_that_a_model_made_up_is_nobody() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        let (asked, _) = scene.ask(&room, "find it", 10).await;
        let run = scene.claim(100).await.unwrap();
        begin(&scene, &run).await;
        let mut made_up = step(&run, &asked);
        made_up.calls[0].tool = "launch_rockets".to_owned();
        made_up.calls[0].is_known = false;
        scene.store.record_step_tools(made_up).await.unwrap();
        let turns = timeline(&scene, &room).await;
        assert_eq!(turns[1].participant.platform_id, DAEMON);
        assert_eq!(turns[1].content, "zebraword was found");
        let rockets = "SELECT count(*) FROM participants WHERE platform_id LIKE '%rockets%'";
        assert_eq!(scene.value::<i64>(rockets).await, 0);
    }

    #[tokio::test]
    async fn a_stale_lease_writes_no_tool_turn() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        let (asked, _) = scene.ask(&room, "find it", 10).await;
        let lost = scene.claim(100).await.unwrap();
        begin(&scene, &lost).await;
        scene.claim(100 + LEASE_MS).await.unwrap();
        let written = scene.store.record_step_tools(step(&lost, &asked)).await;
        assert_eq!(written.unwrap(), StepOutcome::Stale);
        assert_eq!(timeline(&scene, &room).await, []);
    }

    #[tokio::test]
    async fn what_was_found_and_then_deleted_is_gone_from_results_and_steps() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        let found = scene.say(&room, "zebraword", 5).await;
        scene.ask(&room, "find it", 10).await;
        let run = scene.claim(100).await.unwrap();
        begin(&scene, &run).await;
        scene
            .store
            .record_step_tools(step(&run, &found))
            .await
            .unwrap();
        let message = format!("m{}", found.seq);
        let deleted = scene
            .store
            .capture_delete(scene.account, "C1", &message, 200)
            .await
            .unwrap();
        assert!(matches!(deleted, Deleted::Blanked { .. }));
        assert_eq!(timeline(&scene, &room).await, []);
        assert_eq!(scene.value::<i64>("SELECT count(*) FROM steps").await, 0);

        // What is found before the delete and written after it is not written at all.
        begin(&scene, &run).await;
        let late = scene.store.record_step_tools(step(&run, &found)).await;
        assert_eq!(late.unwrap(), StepOutcome::SourceGone);
        assert_eq!(timeline(&scene, &room).await, []);
    }
}
