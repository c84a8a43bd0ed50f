//! All of one run: what was asked, what its model answered step by step, what it called, who was asked about that, and
//! what it said.

use crate::engine::sql::Connection;

use crate::contract::{RunStory, StoryCall, StoryLine, StoryStep};
use crate::rows::approvals::approval_of;
use crate::rows::columns::count_from;
use crate::rows::delegations::{task_of_run, tasks_by_run};
use crate::rows::feedback::thumbs_of_run;
use crate::rows::networks::course_of;
use crate::rows::questions::question_of;
use crate::rows::run_rows::run_by_id;
use crate::rows::tool_calls::calls_of_run;
use crate::{Reader, StoreError};
use vocative_core::ids::{ApprovalId, QuestionId, RunId, ToolCallId};

/// The most lines shown of what was asked, and of what was said.
const LINES_MAX: i64 = 100;

impl Reader {
    /// All of one run, as far as it is kept.
    ///
    /// # Errors
    /// `NotFound` if there is no such run.
    pub async fn run_story(&self, id: RunId) -> Result<RunStory, StoreError> {
        self.read(move |connection| run_story(connection, id)).await
    }
}

fn run_story(connection: &Connection, id: RunId) -> Result<RunStory, StoreError> {
    let run = run_by_id(connection, id)?;
    let (account, chat, finished_at_ms) = connection
        .prepare_cached(
            "SELECT c.account_id, c.platform_id, r.finished_at_ms
             FROM runs r JOIN chats c ON c.id = r.chat_id WHERE r.uuid = ?1",
        )?
        .query_row([id], |row| {
            Ok((
                row.get("account_id")?,
                row.get("platform_id")?,
                row.get("finished_at_ms")?,
            ))
        })?;
    let calls = calls_of_run(connection, id)?.into_iter();
    let calls = calls.map(|call| {
        Ok(StoryCall {
            approval: approval_of_call(connection, call.id)?
                .map(|id| approval_of(connection, id))
                .transpose()?
                .flatten()
                .map(|row| row.approval),
            question: question_of_call(connection, call.id)?
                .map(|id| question_of(connection, id))
                .transpose()?
                .flatten()
                .map(|row| row.question),
            call,
        })
    });
    Ok(RunStory {
        account,
        chat,
        finished_at_ms,
        asked: lines(connection, ASKED_SQL, id)?,
        steps: steps(connection, id)?,
        calls: calls.collect::<Result<_, StoreError>>()?,
        said: lines(connection, SAID_SQL, id)?,
        thumbs: thumbs_of_run(connection, id)?,
        course: course_of(connection, id)?.0,
        task: task_of_run(connection, id)?,
        tasks: tasks_by_run(connection, id)?,
        run,
    })
}

const ASKED_SQL: &str = "SELECT t.uuid, t.sent_at_ms, t.content,
            coalesce(p.display_name, p.username, p.platform_id) AS name
     FROM run_triggers g JOIN turns t ON t.seq = g.turn_seq JOIN participants p ON p.id = t.participant_id
     WHERE g.run_id = (SELECT id FROM runs WHERE uuid = ?1)
     ORDER BY t.sent_at_ms, t.ordinal, t.seq LIMIT ?2";

/// An answer stands at its run's time in the room; what counts here is when it was committed.
const SAID_SQL: &str = "SELECT t.uuid, t.captured_at_ms AS sent_at_ms, t.content,
            coalesce(p.display_name, p.username, p.platform_id) AS name
     FROM turns t JOIN participants p ON p.id = t.participant_id
     WHERE t.run_id = (SELECT id FROM runs WHERE uuid = ?1) AND t.kind IN ('message', 'notice')
     ORDER BY t.sent_at_ms, t.ordinal, t.seq LIMIT ?2";

fn lines(connection: &Connection, sql: &str, run: RunId) -> Result<Vec<StoryLine>, StoreError> {
    let mut statement = connection.prepare_cached(sql)?;
    let lines = statement.query_map((run, LINES_MAX), |row| {
        Ok(StoryLine {
            turn: row.get("uuid")?,
            by: row.get("name")?,
            text: row.get("content")?,
            at_ms: row.get("sent_at_ms")?,
        })
    })?;
    Ok(lines.collect::<crate::engine::sql::Result<_>>()?)
}

fn steps(connection: &Connection, run: RunId) -> Result<Vec<StoryStep>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT n, at_ms, prompt_tokens, completion_tokens, cache_read_tokens,
                iif(json_valid(message), json_extract(message, '$.model'), NULL) AS model
         FROM steps WHERE run_id = (SELECT id FROM runs WHERE uuid = ?1) ORDER BY n",
    )?;
    let steps = statement.query_map([run], |row| {
        Ok(StoryStep {
            number: row.get("n")?,
            at_ms: row.get("at_ms")?,
            model: row.get("model")?,
            prompt_tokens: count_from(row.get("prompt_tokens")?),
            completion_tokens: count_from(row.get("completion_tokens")?),
            cache_read_tokens: count_from(row.get("cache_read_tokens")?),
        })
    })?;
    Ok(steps.collect::<crate::engine::sql::Result<_>>()?)
}

/// The newest approval of a call.
fn approval_of_call(
    connection: &Connection,
    call: ToolCallId,
) -> Result<Option<ApprovalId>, StoreError> {
    newest_of_call(
        connection,
        "SELECT a.uuid FROM approvals a JOIN tool_calls t ON t.id = a.call_id
         WHERE t.uuid = ?1 ORDER BY a.id DESC LIMIT 1",
        call,
    )
}

/// The newest question of a call.
fn question_of_call(
    connection: &Connection,
    call: ToolCallId,
) -> Result<Option<QuestionId>, StoreError> {
    newest_of_call(
        connection,
        "SELECT q.uuid FROM questions q JOIN tool_calls t ON t.id = q.call_id
         WHERE t.uuid = ?1 ORDER BY q.id DESC LIMIT 1",
        call,
    )
}

fn newest_of_call<T: crate::engine::sql::FromSql>(
    connection: &Connection,
    sql: &str,
    call: ToolCallId,
) -> Result<Option<T>, StoreError> {
    use crate::engine::sql::OptionalExtension as _;
    Ok(connection
        .prepare_cached(sql)?
        .query_row([call], |row| row.get("uuid"))
        .optional()?)
}
