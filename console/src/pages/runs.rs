//! Runs of all rooms, and all of one: what was asked, what its model did step by step, and what it said.

use axum::extract::{Path, Query, State};
use maud::{Markup, html};
use serde::Deserialize;

use super::overview::run_table;
use super::rooms::look_form;
use super::{PageResult, button, older};
use crate::desk::{Ask, Deed};
use crate::page::{Page, part};
use crate::person::UserRole;
use crate::sessions::Visitor;
use crate::show;
use crate::state::{ConsoleState, Who};
use crate::views::{AgentCall, Call, Line, RunLine, SaidSoFar, Step, Story, Task};

/// The most runs on one page.
const RUNS: usize = 50;

#[derive(Deserialize)]
pub(crate) struct RunsQuery {
    before: Option<String>,
}

/// Runs of all rooms, the newest first.
pub(crate) async fn runs(
    State(console): State<ConsoleState>,
    who: Who,
    Query(query): Query<RunsQuery>,
) -> PageResult {
    let asked = Ask::Runs {
        before: query.before,
        limit: RUNS,
    };
    let runs: Vec<RunLine> = console.ask(asked).await?;
    let next = runs.last().filter(|_| runs.len() == RUNS);
    let next = next.map(|last| format!("/runs?before={}", last.run.id));
    let body = html! {
        (part("runs", &run_table(&runs)))
        (older(next))
    };
    let page = Page {
        title: "Runs",
        at: "/runs",
        body,
    };
    page.shown(&console, &who).await
}

/// All of one run.
pub(crate) async fn run(
    State(console): State<ConsoleState>,
    who: Who,
    Path(id): Path<String>,
) -> PageResult {
    let story: Story = console.ask(Ask::Run(id)).await?;
    let is_open = is_open(&story);
    let shown = if console.shows(&who, &story.room) {
        let so_far: SaidSoFar = match is_open {
            true => console.ask(Ask::RunText(story.id.clone())).await?,
            false => SaidSoFar::default(),
        };
        part("story", &told(&story, &so_far))
    } else {
        look_form(&who, &story.room, &format!("/runs/{}", story.id))
    };
    let body = html! {
        (part("head", &head(&story, &who)))
        (shown)
    };
    let title = format!("Run {}", show::short(&story.id));
    let page = Page {
        title: &title,
        at: "/runs",
        body,
    };
    page.shown(&console, &who).await
}

fn is_open(story: &Story) -> bool {
    matches!(story.state.as_str(), "queued" | "leased" | "waiting")
}

fn head(story: &Story, who: &Visitor) -> Markup {
    let took = story
        .finished_at_ms
        .map(|at_ms| at_ms - story.created_at_ms);
    html! {
        p.facts {
            (show::state(&story.state)) " " b { (story.agent) } " in " (show::room(&story.room))
            " · asked " (show::time(story.created_at_ms))
            @if let Some(took) = took { " · took " (show::span(took)) }
            " · " (show::grouped(story.prompt_tokens)) " tokens in, " (show::grouped(story.completion_tokens)) " out"
            @if story.cache_read_tokens > 0 { ", " (show::grouped(story.cache_read_tokens)) " of them from the cache" }
            @if story.cost_micros > 0 { " · " (show::money(story.cost_micros)) }
            @if story.attempt > 1 { " · attempt " (story.attempt) }
            @if !story.models.is_empty() { " · answered by " (story.models.join(", ")) }
        }
        @if let Some(reason) = &story.reason { p.note.warn { (show::word(reason)) } }
        @if !story.read.is_empty() {
            p.note.warn { "It has read what those who asked did not write: " (show::word(&story.read.join(", "))) "." }
        }
        @for said in &story.hooks { p.note.info { (show::word(said)) } }
        p.tools {
            a.primary href={ "/runs/" (story.id) "/prompt" } { "What was it sent?" }
            @if is_open(story) && who.person.role >= UserRole::Operator {
                (button(&format!("/runs/{}/stop", story.id), "Stop it", "danger", Some("Stop this run? What it does now is given up.")))
            }
        }
        // Screen readers announce the state when it changes, not with each word.
        span.unseen data-announce="" { "The run is " (story.state) }
    }
}

fn told(story: &Story, so_far: &SaidSoFar) -> Markup {
    html! {
        h2 { "Asked" }
        (lines(&story.asked))
        @if let Some(task) = &story.task {
            p { "It works on what " b { (task.asked_by) } " gave it in " a href={ "/runs/" (task.parent) } { "another run" } ":" }
            (show::said(&task.task))
        }
        @if !story.decisions.is_empty() { (network(story)) }
        h2 { "Steps" }
        @if story.steps.is_empty() { p.empty { "No model has answered yet." } }
        ol.steps {
            @for it in &story.steps {
                (step(it, story))
            }
        }
        // Calls of a step that is not recorded yet.
        @for it in story.calls.iter().filter(|it| !story.steps.iter().any(|step| step.number == it.step)) { (call(it)) }
        @if !story.tasks.is_empty() {
            h2 { "Given to other agents" }
            @for it in &story.tasks { (given(it)) }
        }
        @if is_open(story) && !so_far.text.is_empty() {
            h2 { "Being said" }
            div aria-live="off" { (show::said(&so_far.text)) }
        }
        h2 { "Said" }
        @if story.said.is_empty() { p.empty { "Nothing so far." } }
        (lines(&story.said))
    }
}

/// The decisions of a network about whom to call, with the answers of its agents.
fn network(story: &Story) -> Markup {
    html! {
        h2 { "Who was called, and why" }
        ol.steps {
            @for it in &story.decisions {
                li.step {
                    p.by {
                        @match &it.agent {
                            Some(agent) => { b { (agent) } " is next" }
                            None => b { "The end" }
                        }
                        " · by " (it.by.replace('_', " "))
                        @if let Some(rule) = it.rule { " " (rule) }
                        " · " (show::time(it.at_ms))
                    }
                    @if !it.waiting.is_empty() { p { "Behind it: " (it.waiting.join(", ")) } }
                    @if !it.refused.is_empty() { p { "Not to be had: " (it.refused.join(", ")) } }
                    @if !it.words.is_empty() { p { (show::word(&it.words)) } }
                    @for call in story.agent_calls.iter().filter(|call| call.n == it.calls + 1) { (agent_call(call)) }
                }
            }
        }
    }
}

fn agent_call(call: &AgentCall) -> Markup {
    let has_state = call.state.as_object().is_some_and(|it| !it.is_empty());
    html! {
        article.card {
            p.by { b { (call.agent) } " " (show::state(&call.outcome)) " · " (show::time(call.at_ms)) }
            @if let Some(reason) = &call.reason { p.note.warn { (show::word(reason)) } }
            (show::said(&call.text))
            @if has_state { details { summary { "Values behind it" } (show::code(&call.state.to_string())) } }
        }
    }
}

fn given(task: &Task) -> Markup {
    html! {
        article.card {
            p.by { b { (task.agent) } " " (show::state(&task.state)) " · " a href={ "/runs/" (task.child) } { "its run" } }
            (show::said(&task.task))
            @if !task.result.is_empty() { (show::said(&task.result)) }
        }
    }
}

fn lines(lines: &[Line]) -> Markup {
    html! {
        @for line in lines {
            article.card {
                p.by { b { (show::word(&line.by)) } " " (show::time(line.at_ms)) }
                (show::said(&line.text))
            }
        }
    }
}

fn step(step: &Step, story: &Story) -> Markup {
    let calls = story.calls.iter().filter(|it| it.step == step.number);
    html! {
        li.step {
            p.by {
                b { "Step " (step.number) }
                @if let Some(model) = &step.model { " · " (model) }
                " · " (show::grouped(step.prompt_tokens)) " tokens in, " (show::grouped(step.completion_tokens)) " out · "
                (show::time(step.at_ms))
            }
            @for it in calls { (call(it)) }
        }
    }
}

fn call(call: &Call) -> Markup {
    let took = call.started_at_ms.zip(call.finished_at_ms);
    html! {
        article.card.call {
            p.by {
                "Calls " b { (call.tool) } " " (show::state(&call.state))
                @if let Some((from, to)) = took { " · " (show::span(to - from)) }
                @if call.attempts > 1 { " · begun " (call.attempts) " times" }
            }
            (show::code(&call.arguments))
            @if let Some(approval) = &call.approval {
                p { a href={ "/approvals/" (approval.id) } { "Put before people" } " " (show::state(&approval.state))
                    @if let Some(by) = &approval.decided_by { " by " (show::word(by)) } }
            }
            @if let Some(question) = &call.question {
                p { a href={ "/questions/" (question.id) } { "Asked people" } " " (show::state(&question.state)) }
            }
            @if let Some(result) = &call.result {
                details id={ "result-" (call.id) } {
                    summary { "Result: " (show::word(&show::beginning(result, 80))) }
                    (show::code(result))
                }
            }
        }
    }
}

/// Stops a run.
pub(crate) async fn stop(
    State(console): State<ConsoleState>,
    who: Who,
    Path(id): Path<String>,
) -> PageResult {
    let back = format!("/runs/{id}");
    console.act(&who, Deed::StopRun(id), &back).await
}
