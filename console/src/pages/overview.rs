//! The overview: what needs a person first, then how everything is.

use axum::extract::State;
use maud::{Markup, html};

use super::{PageResult, nothing};
use crate::desk::Ask;
use crate::page::{Page, part};
use crate::show;
use crate::state::{ConsoleState, Who};
use crate::views::{Channel, RunLine, Status};

/// The most runs that the overview shows.
const RUNS: usize = 10;

/// The daemon at a glance. Reads what `status` reads and ten runs, however many there are.
pub(crate) async fn overview(State(console): State<ConsoleState>, who: Who) -> PageResult {
    let status = console.status().await?;
    let asked = Ask::Runs {
        before: None,
        limit: RUNS,
    };
    let runs: Vec<RunLine> = console.ask(asked).await?;
    let now_ms = console.desk.now_ms();
    let body = html! {
        (part("needs", &needs(&status)))
        (part("figures", &figures(&status, now_ms)))
        h2 { "Channels" }
        (part("channels", &channels(&status, now_ms)))
        h2 { "Newest runs" }
        (part("newest", &run_table(&runs)))
    };
    let page = Page {
        title: "Overview",
        at: "/",
        body,
    };
    page.shown(&console, &who).await
}

fn needs(status: &Status) -> Markup {
    let waiting = [
        (
            status.runs.approvals_open,
            "/approvals",
            ["call of a tool waits", "calls of tools wait"],
        ),
        (
            status.runs.questions_open,
            "/questions",
            ["question waits", "questions wait"],
        ),
    ];
    let waiting: Vec<_> = waiting
        .into_iter()
        .filter(|(count, ..)| *count > 0)
        .collect();
    html! {
        @if status.needs_person.is_empty() && waiting.is_empty() {
            p.verdict.good { "Nothing needs a person." }
        } @else {
            section.verdict.warn aria-label="What needs a person" {
                ul {
                    @for (count, path, words) in waiting { li { a href=(path) { (show::grouped(count)) " " (words[usize::from(count > 1)]) " for a person" } } }
                    @for line in &status.needs_person { li { (show::word(line)) } }
                }
            }
        }
    }
}

fn figure(href: &str, words: &str, count: u64, about: &str) -> Markup {
    html! {
        a class={ "figure" @if count == 0 { " none" } } href=(href) {
            strong { (show::grouped(count)) }
            span { (words) }
            small { (about) }
        }
    }
}

fn figures(status: &Status, now_ms: i64) -> Markup {
    let (runs, posts, store) = (&status.runs, &status.posts, &status.store);
    let oldest = |ms: Option<i64>| match ms {
        Some(ms) => format!("the oldest for {}", show::span(ms)),
        None => String::new(),
    };
    let since = status.started_at_ms.map(|at_ms| show::span(now_ms - at_ms));
    html! {
        div.figures {
            (figure("/approvals", "calls wait for a person", runs.approvals_open, ""))
            (figure("/questions", "questions wait", runs.questions_open, ""))
            (figure("/queue", "runs queued", runs.queued, &oldest(runs.oldest_waiting_ms)))
            (figure("/queue", "runs at work", runs.leased, ""))
            (figure("/held", "held", runs.held + posts.held, ""))
            (figure("/dead", "given up", runs.dead + posts.dead, ""))
            (figure("/queue", "posts to be sent", posts.pending + posts.unknown, &oldest(posts.oldest_waiting_ms)))
            (figure("/rooms", "turns", store.turns, &format!("in {} rooms, {}", show::grouped(store.conversations), show::bytes(store.bytes))))
        }
        p.quiet {
            "Version " (status.version)
            @if let Some(since) = since { ", running for " (since) }
            @if let Some(landlock) = &status.landlock { ". Confined: " (landlock) }
            "."
        }
    }
}

fn channels(status: &Status, now_ms: i64) -> Markup {
    html! {
        @if status.channels.is_empty() { (nothing("No channel is configured.")) }
        @else {
            table {
                caption.unseen { "Channels" }
                thead { tr {
                    th scope="col" { "Channel" } th scope="col" { "State" } th scope="col" { "Last heard" }
                    th.number scope="col" { "Lag" } th.number scope="col" { "Tokens today" }
                } }
                tbody { @for channel in &status.channels { (channel_row(channel, now_ms)) } }
            }
        }
        @for rest in &status.models {
            p.note.warn {
                "Model " b { (rest.model) } " is " (rest.state) ": " (show::word(&rest.reason)) ". "
                (show::grouped(rest.queued)) " questions wait for it."
            }
        }
    }
}

fn channel_row(channel: &Channel, now_ms: i64) -> Markup {
    html! {
        tr {
            th scope="row" data-label="Channel" {
                (channel.name)
                small { (channel.platform.as_deref().unwrap_or("not bound yet"))
                    @if let Some(account) = &channel.account { " · " (show::word(account)) } }
            }
            td data-label="State" {
                (show::state(&channel.state))
                @if let Some(reason) = &channel.reason { small { (show::word(reason)) } }
                @for warning in &channel.warnings { small { (show::word(warning)) } }
                @if channel.history_gaps > 0 { small { "history is missing in " (channel.history_gaps) " chats" } }
            }
            td data-label="Last heard" {
                @match channel.last_heard_ms {
                    Some(at_ms) => { (show::span(now_ms - at_ms)) " ago" },
                    None => "never",
                }
            }
            td.number data-label="Lag" { (channel.lag_ms) " ms" }
            td.number data-label="Tokens today" {
                (show::grouped(channel.tokens_today))
                @if channel.cost_micros_today > 0 { small { (show::money(channel.cost_micros_today)) } }
            }
        }
    }
}

/// Runs as a table, for this page and that of all runs.
pub(super) fn run_table(runs: &[RunLine]) -> Markup {
    html! {
        @if runs.is_empty() { (nothing("No agent was asked anything yet.")) }
        @else {
            table {
                caption.unseen { "Runs, newest first" }
                thead { tr {
                    th scope="col" { "Run" } th scope="col" { "Agent" } th scope="col" { "Room" }
                    th scope="col" { "State" } th.number scope="col" { "Tokens" } th scope="col" { "Asked" }
                } }
                tbody { @for line in runs { (run_row(line)) } }
            }
        }
    }
}

fn run_row(line: &RunLine) -> Markup {
    let run = &line.run;
    html! {
        tr {
            td data-label="Run" { (show::run(&run.id)) }
            td data-label="Agent" { (run.agent) }
            td data-label="Room" { (show::room(&line.room)) }
            td data-label="State" {
                (show::state(&run.state))
                @if let Some(reason) = &run.reason { small { (show::word(reason)) } }
            }
            td.number data-label="Tokens" { (show::grouped(run.prompt_tokens + run.completion_tokens)) }
            td data-label="Asked" { (show::time(line.created_at_ms)) }
        }
    }
}
