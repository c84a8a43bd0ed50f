//! What the prompts of runs were made from, and reading it again.
//!
//! A record holds ids, revisions and settings, and one hash of the whole: no text of a room. Names that
//! people and agents have no longer are kept beside it (`former_names`), as long as a record may need them: until
//! the records go by age, or their bearer is erased.

use std::collections::HashMap;

use crate::capability::MayReply;
use crate::engine::sql::{Connection, OptionalExtension, Row, params};
use crate::rows::leases::leased_run;
use crate::rows::names::mentioned;
use crate::rows::turn_sources::note_run_sources_txn;
use sha2::{Digest as _, Sha256};

use crate::registry::{ErasureRule, Fate, OF_RUN, STATE, StoreTable, account, nobody, text};
use crate::rows::columns::{conversation_row_id, position_at, select_turns, turn_from_row};
use crate::rows::conversations::conversation;
use crate::rows::sent_turns::{
    packed_answers, packed_turns, recalled_turns, unpacked_answers, unpacked_turns,
};
use crate::rows::summaries::THROUGH;
use crate::{Reader, Store, StoreError};
use vocative_core::history::{History, HistoryRole, HistoryTurn, ReadCost, SummaryView};
use vocative_core::ids::{AccountId, AgentName, LeaseToken, RunId, SummaryId, TurnId};
use vocative_core::sent::{RecordedPrompt, SentChange, SentHistory, SentPrompt};
use vocative_core::turn::{Participant, Visibility};

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[
    nobody(
        "prompt_texts",
        "instructions and tools are the operator's",
        text(&[], &[], &["text"]),
        STATE,
    ),
    account(
        "sent_prompts",
        text(&[], &["recipe"], &[]),
        Fate {
            person: ErasureRule::Nothing("it holds ids of turns and hashes of texts"),
            message: ErasureRule::Nothing("it holds ids of turns and hashes of texts"),
            ..OF_RUN
        },
    ),
];

const RECORD_SQL: &str =
    "SELECT s.id, c.uuid AS conversation, r.agent, s.recipe, i.text AS instructions, t.text AS tools, s.summary_id, s.turns,
        s.thread_answers
     FROM runs r CROSS JOIN sent_prompts s ON s.run_id = r.id
     JOIN conversations c ON c.id = r.conversation_id
     JOIN prompt_texts i ON i.hash = s.instructions JOIN prompt_texts t ON t.hash = s.tools
     WHERE r.uuid = ?1";
const TURN_SQL: &str = select_turns!("WHERE t.uuid = ?1 AND c.chat_id = ?2");
const FORMER_SQL: &str = "SELECT display_name, username FROM former_names
     WHERE participant_id = ?1 AND until_prompt >= ?2 ORDER BY until_prompt LIMIT 1";

/// Somebody's display name and username.
type PersonNames = (Option<String>, Option<String>);

impl Reader {
    /// The record of a run's prompt, if there is one.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn recorded_prompt(&self, run: RunId) -> Result<Option<RecordedPrompt>, StoreError> {
        self.read(move |connection| {
            let found = connection
                .prepare_cached(RECORD_SQL)?
                .query_row([run], |row| recorded(row, run))
                .optional()?;
            Ok(found)
        })
        .await
    }

    /// What was found without being asked for, for a run's prompt; `None` if nothing is recorded of it.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn recalled_for_run(&self, run: RunId) -> Result<Option<Vec<TurnId>>, StoreError> {
        self.read(move |connection| {
            let found: Option<Vec<u8>> = connection
                .prepare_cached(
                    "SELECT s.turns FROM runs r CROSS JOIN sent_prompts s ON s.run_id = r.id
                     WHERE r.uuid = ?1",
                )?
                .query_row([run], |row| row.get("turns"))
                .optional()?;
            Ok(found.map(|packed| recalled_turns(&packed)))
        })
        .await
    }

    /// What was found for the newest prompt of an agent's runs that answer a turn; `None` if nothing is recorded of
    /// one.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn recalled_for_turn(
        &self,
        turn: TurnId,
        agent: AgentName,
    ) -> Result<Option<Vec<TurnId>>, StoreError> {
        self.read(move |connection| {
            let found: Option<Vec<u8>> = connection
                .prepare_cached(
                    "SELECT s.turns FROM turns t CROSS JOIN run_triggers g ON g.turn_seq = t.seq
                     CROSS JOIN sent_prompts s ON s.run_id = g.run_id
                     WHERE t.uuid = ?1 AND g.agent = ?2 ORDER BY s.id DESC LIMIT 1",
                )?
                .query_row(params![turn, agent], |row| row.get("turns"))
                .optional()?;
            Ok(found.map(|packed| recalled_turns(&packed)))
        })
        .await
    }

    /// What a recorded prompt was made from, as it is now, with the names of then.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn sent_history(&self, recorded: RecordedPrompt) -> Result<SentHistory, StoreError> {
        self.read(move |connection| sent_history(connection, &recorded))
            .await
    }
}

impl<C: MayReply> Store<C> {
    /// Records what the prompt of a claimed run was made from, in the place of an earlier attempt's, and the
    /// turns whose files it holds: the run's answer goes when one of them goes. A power cut may undo it.
    /// Does nothing if the lease is lost.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn record_prompt(
        &self,
        run: RunId,
        token: LeaseToken,
        sent: SentPrompt,
        files_of: Vec<TurnId>,
    ) -> Result<(), StoreError> {
        self.write_riding(move |connection| {
            record_prompt_txn(connection, run, token, &sent, &files_of)
        })
        .await
    }
}

fn record_prompt_txn(
    connection: &Connection,
    run: RunId,
    token: LeaseToken,
    sent: &SentPrompt,
    files_of: &[TurnId],
) -> Result<(), StoreError> {
    let Some(leased) = leased_run(connection, run, token)? else {
        return Ok(());
    };
    connection
        .prepare_cached("DELETE FROM run_sources WHERE run_id = ?1")?
        .execute([leased.row])?;
    let mut seq_of = connection.prepare_cached("SELECT seq FROM turns WHERE uuid = ?1")?;
    let mut sources = Vec::with_capacity(files_of.len());
    for turn in files_of {
        sources.extend(
            seq_of
                .query_row([turn], |row| row.get::<_, i64>("seq"))
                .optional()?,
        );
    }
    note_run_sources_txn(connection, leased.row, &sources)?;
    let keep_text = |text: &str| -> Result<Vec<u8>, StoreError> {
        let hash = Sha256::digest(text).to_vec();
        connection
            .prepare_cached("INSERT OR IGNORE INTO prompt_texts (hash, text) VALUES (?1, ?2)")?
            .execute((&hash, text))?;
        Ok(hash)
    };
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO sent_prompts
                 (run_id, recipe, instructions, tools, summary_id, turns, thread_answers)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            leased.row,
            sent.recipe,
            keep_text(&sent.instructions)?,
            keep_text(&sent.tools)?,
            sent.summary,
            packed_turns(&sent.turns),
            packed_answers(&sent.thread_answers)
        ])?;
    Ok(())
}

fn recorded(row: &Row<'_>, run: RunId) -> crate::engine::sql::Result<RecordedPrompt> {
    let (turns, answers): (Vec<u8>, Vec<u8>) = (row.get("turns")?, row.get("thread_answers")?);
    Ok(RecordedPrompt {
        number: row.get("id")?,
        run,
        conversation: row.get("conversation")?,
        agent: row.get("agent")?,
        sent: SentPrompt {
            recipe: row.get("recipe")?,
            instructions: row.get("instructions")?,
            tools: row.get("tools")?,
            summary: row.get("summary_id")?,
            turns: unpacked_turns(&turns).collect(),
            thread_answers: unpacked_answers(&answers).collect(),
        },
    })
}

fn sent_history(
    connection: &Connection,
    recorded: &RecordedPrompt,
) -> Result<SentHistory, StoreError> {
    let conversation = conversation(connection, recorded.conversation)?;
    let mut changes = Vec::new();
    let mut turns: Vec<HistoryTurn> = Vec::with_capacity(recorded.sent.turns.len());
    let mut recalled = Vec::new();
    for sent in &recorded.sent.turns {
        if sent.role == HistoryRole::Recalled {
            recalled.push(sent.turn);
            // The turn was also read in another role.
            if recorded
                .sent
                .turns
                .iter()
                .any(|it| it.turn == sent.turn && it.role != sent.role)
            {
                continue;
            }
        }
        let found = connection
            .prepare_cached(TURN_SQL)?
            .query_row((sent.turn, conversation.key.chat), turn_from_row)
            .optional()?;
        let Some(mut turn) = found
            .clone()
            .filter(|it| it.visibility != Visibility::Hidden)
        else {
            let seq = found.map(|turn| turn.seq());
            changes.push(SentChange::Gone { seq });
            continue;
        };
        if turn.revision != sent.revision {
            changes.push(SentChange::Edited { seq: turn.seq() });
        }
        name_as_then(connection, &mut turn.participant, recorded.number)?;
        turns.push(HistoryTurn {
            turn,
            role: sent.role,
        });
    }
    let summary = summary_of(connection, recorded)?;
    if recorded.sent.summary.is_some() && summary.is_none() {
        changes.push(SentChange::SummaryGone);
    }
    let mut names = HashMap::new();
    for id in mentioned(&turns) {
        if let Some(name) = name_then(connection, conversation.account, &id, recorded.number)? {
            names.insert(id, name);
        }
    }
    turns.sort_by_key(|read| read.turn.position);
    let history = History {
        conversation,
        turns,
        thread_answers: recorded.sent.thread_answers.iter().copied().collect(),
        recalled,
        names,
        summary,
        began_afresh: false,
        has_older: false,
        cost: ReadCost::default(),
    };
    Ok(SentHistory { history, changes })
}

/// The names that somebody had when a prompt was made, if these are others now.
fn former_names(
    connection: &Connection,
    participant: i64,
    prompt: i64,
) -> Result<Option<PersonNames>, StoreError> {
    let former = connection
        .prepare_cached(FORMER_SQL)?
        .query_row((participant, prompt), |row| {
            Ok((row.get("display_name")?, row.get("username")?))
        })
        .optional()?;
    Ok(former)
}

fn name_as_then(
    connection: &Connection,
    participant: &mut Participant,
    prompt: i64,
) -> Result<(), StoreError> {
    if let Some((display_name, username)) = former_names(connection, participant.id.0, prompt)? {
        participant.display_name = display_name;
        participant.username = username;
    }
    Ok(())
}

/// What somebody who is mentioned was called.
fn name_then(
    connection: &Connection,
    account: AccountId,
    id: &str,
    prompt: i64,
) -> Result<Option<String>, StoreError> {
    let (sql, key) = match id.strip_prefix('@') {
        Some(username) => (
            "SELECT id, display_name, username FROM participants
             WHERE account_id = ?1 AND username = ?2 AND username IS NOT NULL AND kind = 'user'
             LIMIT 1",
            username,
        ),
        None => (
            "SELECT id, display_name, username FROM participants
             WHERE account_id = ?1 AND kind = 'user' AND platform_id = ?2",
            id,
        ),
    };
    type Named = (i64, Option<String>, Option<String>);
    let found: Option<Named> = connection
        .prepare_cached(sql)?
        .query_row((account, key), |row| {
            Ok((
                row.get("id")?,
                row.get("display_name")?,
                row.get("username")?,
            ))
        })
        .optional()?;
    let Some((participant, display_name, username)) = found else {
        return Ok(None);
    };
    let former = former_names(connection, participant, prompt)?;
    let (display_name, username) = former.unwrap_or((display_name, username));
    Ok(display_name.or(username))
}

/// The summary of the prompt, whether it may still be used or not.
fn summary_of(
    connection: &Connection,
    recorded: &RecordedPrompt,
) -> Result<Option<SummaryView>, StoreError> {
    let Some(SummaryId(id)) = recorded.sent.summary else {
        return Ok(None);
    };
    let row = conversation_row_id(connection, recorded.conversation)?;
    let found = connection
        .prepare_cached(
            "SELECT id, text, through_sent_at_ms, through_ordinal, through_seq FROM summaries
             WHERE id = ?1 AND conversation_id = ?2 AND agent = ?3 AND state <> 'void'",
        )?
        .query_row((id, row, &recorded.agent), |row| {
            Ok(SummaryView {
                id: row.get("id")?,
                text: row.get("text")?,
                through: position_at(row, THROUGH)?,
            })
        })
        .optional()?;
    Ok(found)
}

/// Lets the former names go that no recorded prompt needs any more.
pub(crate) fn forget_former_names_txn(connection: &Connection) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "DELETE FROM former_names
             WHERE until_prompt < coalesce((SELECT min(id) FROM sent_prompts), 9223372036854775807)",
        )?
        .execute([])?;
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::new_id::NewId as _;
    use crate::scene::{self, Room, Scene};
    use vocative_contract::envelope::{Sender, SenderKind};
    use vocative_core::coverage::Keep;
    use vocative_core::history::HistoryQuery;
    use vocative_core::run::ClaimedRun;
    use vocative_core::sent::SentTurn;

    async fn history_of(scene: &Scene, run: &ClaimedRun, room: &Room) -> History {
        let query = HistoryQuery {
            conversation: room.id,
            agent: scene::agent(),
            as_of_seq: Some(run.as_of_seq),
            run: Some(run.run.id),
            triggers: run.run.triggers.clone(),
            keep: Keep::Involved,
            max_turns: 100,
            since_ms: None,
            scope: None,
            parent_turns: 10,
            ambient_turns: 0,
            summaries: None,
            thread_answers: true,
            made_by_ms: None,
        };
        scene.store.history(query).await.unwrap()
    }

    fn sent(history: &History) -> SentPrompt {
        let turns = history.turns.iter().map(|read| SentTurn {
            turn: read.turn.id,
            role: read.role,
            revision: read.turn.revision,
        });
        SentPrompt {
            recipe: "{}".to_owned(),
            instructions: "You are {{agent}}.".to_owned(),
            tools: "[]".to_owned(),
            summary: None,
            turns: turns.collect(),
            thread_answers: vec![(history.turns[0].turn.id, None)],
        }
    }

    async fn rename(scene: &Scene, name: &str) {
        let platform_id: Option<String> = scene
            .value("SELECT min(platform_id) FROM participants WHERE kind = 'user'")
            .await;
        let sender = Sender {
            id: platform_id.unwrap_or_default(),
            display_name: Some(name.to_owned()),
            username: None,
            kind: SenderKind::Person,
            is_stranger: false,
        };
        scene
            .store
            .learn_person(scene.account, sender)
            .await
            .unwrap();
    }

    async fn recorded(scene: &Scene, run: &ClaimedRun) -> Option<RecordedPrompt> {
        scene.store.recorded_prompt(run.run.id).await.unwrap()
    }

    fn name(read: &SentHistory) -> Option<&str> {
        read.history.turns[0]
            .turn
            .participant
            .display_name
            .as_deref()
    }

    #[tokio::test]
    async fn a_record_gives_the_turns_back_with_the_names_of_then() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        scene.ask(&room, "first", 10).await;
        let run = scene.claim(100).await.unwrap();
        let history = history_of(&scene, &run, &room).await;
        let prompt = sent(&history);
        let record = |prompt| {
            scene
                .store
                .record_prompt(run.run.id, run.token, prompt, Vec::new())
        };
        record(prompt.clone()).await.unwrap();
        let known = recorded(&scene, &run).await.unwrap();
        assert_eq!(known.sent, prompt);
        assert_eq!(
            (&known.agent, known.conversation),
            (&scene::agent(), room.id)
        );

        // Two changes of a name between two prompts keep the name of the first.
        rename(&scene, "Ada the Second").await;
        rename(&scene, "Ada the Third").await;
        let again = scene.store.sent_history(known.clone()).await.unwrap();
        assert_eq!(again.changes, []);
        assert_eq!(again.history.turns, history.turns);
        // Another attempt takes the record's place, with the names of its own time.
        record(prompt).await.unwrap();
        let newer = recorded(&scene, &run).await.unwrap();
        assert!(newer.number > known.number);
        let again = scene.store.sent_history(newer).await.unwrap();
        assert_eq!(name(&again), Some("Ada the Third"));
        // A lost lease records nothing.
        let lost = scene.store.record_prompt(
            run.run.id,
            LeaseToken::generate(),
            sent(&history),
            Vec::new(),
        );
        lost.await.unwrap();
        let count: i64 = scene.value("SELECT count(*) FROM sent_prompts").await;
        assert_eq!(count, 1);
    }

    #[tokio::test]
    async fn what_was_edited_or_is_gone_is_named() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        let old = scene.say(&room, "old", 5).await;
        scene.address(&room, old).await;
        let (asked, _) = scene.ask(&room, "first", 10).await;
        let run = scene.claim(100).await.unwrap();
        let mut prompt = sent(&history_of(&scene, &run, &room).await);
        prompt.summary = Some(SummaryId(77));
        scene
            .store
            .record_prompt(run.run.id, run.token, prompt, Vec::new())
            .await
            .unwrap();
        scene
            .write(move |connection| {
                let edit = "UPDATE turns SET content = 'new', revision = 2 WHERE seq = ?1";
                connection.execute(edit, [asked.seq])?;
                let hide = "UPDATE turns SET content = '', visibility = 'hidden' WHERE seq = ?1";
                connection.execute(hide, [old.seq])?;
                Ok(())
            })
            .await;
        let known = recorded(&scene, &run).await.unwrap();
        let again = scene.store.sent_history(known).await.unwrap();
        let expected = [
            SentChange::Gone { seq: Some(old.seq) },
            SentChange::Edited { seq: asked.seq },
            SentChange::SummaryGone,
        ];
        assert_eq!(again.changes, expected);
        assert_eq!(again.history.turns.len(), 1);
    }

    #[tokio::test]
    async fn former_names_go_with_the_records_that_need_them() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        rename(&scene, "nobody needs this").await;
        scene.ask(&room, "first", 10).await;
        let run = scene.claim(100).await.unwrap();
        let prompt = sent(&history_of(&scene, &run, &room).await);
        let former = "SELECT count(*) FROM former_names";
        assert_eq!(scene.value::<i64>(former).await, 0);
        scene
            .store
            .record_prompt(run.run.id, run.token, prompt, Vec::new())
            .await
            .unwrap();
        rename(&scene, "Ada the Second").await;
        assert_eq!(scene.value::<i64>(former).await, 1);
        scene.write(forget_former_names_txn).await;
        assert_eq!(scene.value::<i64>(former).await, 1);
        scene
            .write(|connection| {
                connection.execute("DELETE FROM sent_prompts", [])?;
                forget_former_names_txn(connection)
            })
            .await;
        assert_eq!(scene.value::<i64>(former).await, 0);
        assert_eq!(recorded(&scene, &run).await, None);
    }
}
