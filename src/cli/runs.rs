//! `vocative runs`: everything that happened in one run, in order.

use std::process::ExitCode;

use super::args::{RunsCommand, TableFormat};
use super::asking::ask;
use super::context::CliContext;
use super::error::{CliError, Exit};
use super::table::{instant, of_cache, one_line, span, table};
use crate::admin::operations::AdminOperation;
use crate::admin::view::{
    AgentCallView, DecisionView, RunStoryView, StoryCallView, StoryLineView, TaskView,
};
use vocative_core::approving::visible_line;
use vocative_core::price::shown_amount;

/// Characters of a text in the table; `--format json` has all.
const TEXT_CHARS: usize = 300;

/// Shows one run.
pub(super) async fn run(command: &RunsCommand, context: &CliContext) -> Result<ExitCode, CliError> {
    let RunsCommand::Show { id, format } = command;
    let id = id.clone();
    let story: RunStoryView = ask(context, AdminOperation::Run { id }).await?;
    context.print(&match format {
        TableFormat::Json => super::json_text(&story)?,
        TableFormat::Table => shown(&story),
    })?;
    Ok(Exit::Ok.into())
}

/// A run in full, as text.
pub(super) fn shown(story: &RunStoryView) -> String {
    let place = [story.channel.as_deref().unwrap_or("?"), &story.chat].join("/");
    let run = &story.run;
    let head = format!("{} ({}), {} in {place}\n\n", run.id, run.state, run.agent);
    let mut events = Vec::new();
    events.extend(said("asked", &story.asked));
    if let Some(task) = &story.task {
        let what = format!("{} (agent): {}", task.asked_by, task.task);
        events.push((task.asked_at_ms, "task", what));
    }
    for step in &story.steps {
        let model = step.model.as_deref().unwrap_or("a model");
        let cache = of_cache(step.cache_read_tokens, 0);
        let (read, wrote) = (step.prompt_tokens, step.completion_tokens);
        let what = format!(
            "step {}, {model}: {read}{cache} + {wrote} tokens",
            step.number
        );
        events.push((step.at_ms, "model", what));
    }
    for call in &story.calls {
        events.extend(called(call, story));
    }
    events.extend(story.decisions.iter().map(decided));
    events.extend(story.agent_calls.iter().map(agent_call));
    for task in &story.tasks {
        events.extend(given(task));
    }
    events.extend(said("said", &story.said));
    if let Some(finished_at_ms) = story.finished_at_ms {
        events.push((finished_at_ms, "end", run.state.clone()));
    }
    events.sort_by_key(|event| event.0);
    let rows = events.into_iter().map(|(at_ms, what, text)| {
        let text = one_line(&visible_line(&text), TEXT_CHARS);
        vec![instant(Some(at_ms)), what.to_owned(), text]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let mut tail = String::new();
    if let Some(reason) = &run.reason {
        tail += &format!("reason: {}\n", visible_line(reason));
    }
    if !run.read.is_empty() {
        tail += &format!(
            "read what its askers did not write: {}\n",
            run.read.join(", ")
        );
    }
    if !story.thumbs.is_none() {
        tail += &format!("thumbs: {}\n", story.thumbs);
    }
    if run.cost_micros > 0 {
        tail += &format!("cost: {}\n", shown_amount(run.cost_micros));
    }
    let hint = match &story.task {
        Some(task) => format!("It works for run {}, which has its answer.\n", task.parent),
        None => format!(
            "`vocative prompt --run {}` shows what its model was sent.\n",
            run.id
        ),
    };
    head + &table(&["at (UTC)", "what", ""], &rows) + "\n" + &tail + &hint
}

type TimelineEvent = (i64, &'static str, String);

/// What another agent was asked, and its result.
fn given(task: &TaskView) -> Vec<TimelineEvent> {
    let what = format!("{} in run {}: {}", task.agent, task.child, task.task);
    let mut events = vec![(task.asked_at_ms, "agent", what)];
    if let Some(at_ms) = task.ended_at_ms {
        let what = format!("{} {}: {}", task.agent, task.state, task.result);
        events.push((at_ms, "agent", what));
    }
    events
}

fn said(what: &'static str, lines: &[StoryLineView]) -> Vec<TimelineEvent> {
    let event = |line: &StoryLineView| (line.at_ms, what, format!("{}: {}", line.by, line.text));
    lines.iter().map(event).collect()
}

/// A decision in a network: who is next, and what decided it.
fn decided(decision: &DecisionView) -> TimelineEvent {
    let by = match (decision.by.as_str(), decision.rule) {
        ("rule", Some(rule)) => format!("rule {rule}"),
        (by, Some(rule)) => format!("{by}, rule {rule}"),
        (by, None) => by.to_owned(),
    };
    let mut what = match &decision.agent {
        Some(agent) => format!("{agent} is next ({by})"),
        None => format!("the end ({by})"),
    };
    for (words, names) in [
        ("waiting", &decision.waiting),
        ("not to be had", &decision.refused),
    ] {
        if !names.is_empty() {
            what += &format!("; {words}: {}", names.join(", "));
        }
    }
    if !decision.words.is_empty() {
        what += &format!("; {}", decision.words);
    }
    (decision.at_ms, "decision", what)
}

/// One agent call in a network, with its result.
fn agent_call(call: &AgentCallView) -> TimelineEvent {
    let said = call.reason.as_deref().unwrap_or(&call.text);
    let has_state = call
        .state
        .as_object()
        .is_some_and(|values| !values.is_empty());
    let state = if has_state {
        format!("; state {}", call.state)
    } else {
        String::new()
    };
    let what = format!("{} {}: {said}{state}", call.agent, call.outcome);
    (call.at_ms, "agent", what)
}

/// A tool call with its approval, its question and its result.
fn called(call: &StoryCallView, story: &RunStoryView) -> Vec<TimelineEvent> {
    let of_step = story.steps.iter().find(|step| step.number == call.step);
    let asked_at_ms = of_step.map_or(story.created_at_ms, |step| step.at_ms);
    let mut events = vec![(
        asked_at_ms,
        "call",
        format!("{} {}", call.tool, call.arguments),
    )];
    if let Some(approval) = &call.approval {
        let by = approval.decided_by.as_deref().unwrap_or("nobody");
        let via = approval.via.as_deref();
        let via = via.map_or_else(String::new, |via| format!(" ({via})"));
        events.push(match approval.decided_at_ms {
            Some(at_ms) => (
                at_ms,
                "decided",
                format!("{} {} by {by}{via}", call.tool, approval.state),
            ),
            None => {
                let until = instant(approval.expires_at_ms);
                let what = format!("{} waits for a person, until {until}", call.tool);
                (approval.asked_at_ms, "waits", what)
            }
        });
    }
    if let Some(question) = &call.question {
        let asked = question.asked.join(", ");
        let what = format!("{asked}: {}", question.question);
        events.push((question.asked_at_ms, "question", what));
        if let Some(at_ms) = question.ended_at_ms {
            let by = question.answered_by.as_deref().unwrap_or("nobody");
            let answer = question.answer.as_deref().unwrap_or_default();
            let what = format!("{} by {by}: {answer}", question.state);
            events.push((at_ms, "answer", what));
        }
    }
    if let Some(at_ms) = call.finished_at_ms {
        let took = call.started_at_ms.map(|it| at_ms.saturating_sub(it));
        let took = took.filter(|ms| *ms >= 1_000).map(span);
        let took = took.map_or_else(String::new, |took| format!(" after {took}"));
        let result = call.result.as_deref().unwrap_or("(it is gone)");
        let what = format!("{} {}{took}: {result}", call.tool, call.state);
        events.push((at_ms, "result", what));
    }
    events
}
