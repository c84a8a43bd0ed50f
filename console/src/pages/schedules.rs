//! What is planned to start at a certain time.

use axum::extract::{Path, Query, State};
use maud::{Markup, html};
use serde::Deserialize;

use super::{PageResult, button, nothing};
use crate::desk::{Ask, Deed};
use crate::page::{Page, PageRefusal, part};
use crate::person::UserRole;
use crate::sessions::Visitor;
use crate::show;
use crate::state::{ConsoleState, Who};
use crate::views::Schedule;

#[derive(Deserialize)]
pub(crate) struct SchedulesQuery {
    #[serde(default)]
    all: bool,
}

/// All that is planned.
pub(crate) async fn list(
    State(console): State<ConsoleState>,
    who: Who,
    Query(query): Query<SchedulesQuery>,
) -> PageResult {
    let found: Vec<Schedule> = console.ask(Ask::Schedules { all: query.all }).await?;
    let rows = html! {
        @if found.is_empty() { (nothing("Nothing is planned.")) }
        @for it in &found { (card(&console, &who, it)) }
    };
    let body = html! {
        p.tools {
            @if query.all { a href="/schedules" { "Only what is open" } }
            @else { a href="/schedules?all=true" { "With what is over" } }
        }
        (part("schedules", &rows))
    };
    let page = Page {
        title: "Schedules",
        at: "/schedules",
        body,
    };
    page.shown(&console, &who).await
}

fn card(console: &ConsoleState, who: &Visitor, it: &Schedule) -> Markup {
    html! {
        article.card {
            p.by {
                a href={ "/schedules/" (it.id) } { "#" (it.id) @if let Some(name) = &it.name { " " (name) } } " " (show::state(&it.state))
                " " b { (show::word(&it.when)) } " in " (show::room(&it.room))
                " · for " (show::word(it.owner_name.as_deref().unwrap_or("the operator")))
                " · " (it.agent.as_deref().unwrap_or("said as it is"))
            }
            @if let Some(reason) = &it.reason { p.note.warn { (show::word(reason)) } }
            @if console.shows(who, &it.room) { (show::said(&it.task)) } @else { (show::hidden(&it.room)) }
            p.quiet {
                @if let Some(at_ms) = it.next_at_ms { "Next " (show::time(at_ms)) " · " }
                "started " (it.fired) " times, " (it.missed) " missed"
            }
        }
    }
}

/// One schedule, with the results of its latest times.
pub(crate) async fn one(
    State(console): State<ConsoleState>,
    who: Who,
    Path(id): Path<i64>,
) -> PageResult {
    let found: Schedule = console.ask(Ask::Schedule(id)).await?;
    let is_open = matches!(found.state.as_str(), "active" | "paused");
    let body = html! {
        (part("schedule", &card(&console, &who, &found)))
        @if is_open && who.person.role >= UserRole::Operator { (changes(&found)) }
        h2 { "Its newest times" }
        (part("firings", &firings(&found)))
    };
    let title = format!("Schedule #{id}");
    let page = Page {
        title: &title,
        at: "/schedules",
        body,
    };
    page.shown(&console, &who).await
}

fn changes(found: &Schedule) -> Markup {
    let path = |change: &str| format!("/schedules/{}/{change}", found.id);
    html! {
        p.tools {
            (button(&path("run"), "Start it now", "primary", None))
            @if found.state == "paused" { (button(&path("resume"), "Go on", "", None)) }
            @else { (button(&path("pause"), "Pause it", "", None)) }
            (button(&path("cancel"), "End it", "danger", Some("End this schedule? It can't be taken back.")))
        }
    }
}

fn firings(found: &Schedule) -> Markup {
    html! {
        @if found.firings.is_empty() { (nothing("It has not started yet.")) }
        @else {
            table {
                caption.unseen { "What became of its newest times" }
                thead { tr { th scope="col" { "Time" } th scope="col" { "Outcome" } th.number scope="col" { "Missed before" } th scope="col" { "Run" } } }
                tbody { @for it in &found.firings {
                    tr {
                        td data-label="Time" { (show::time(it.at_ms)) }
                        td data-label="Outcome" { (show::state(&it.outcome)) " " (show::time(it.decided_at_ms)) }
                        td.number data-label="Missed before" { (it.missed_before) }
                        td data-label="Run" { @if let Some(run) = &it.run { (show::run(run)) } }
                    }
                } }
            }
        }
    }
}

/// Changes a schedule.
pub(crate) async fn change(
    State(console): State<ConsoleState>,
    who: Who,
    Path((id, change)): Path<(i64, String)>,
) -> PageResult {
    if !["run", "pause", "resume", "cancel"].contains(&change.as_str()) {
        return Err(PageRefusal::no_page());
    }
    let back = format!("/schedules/{id}");
    let deed = Deed::ChangeSchedule { id, change };
    console.act(&who, deed, &back).await
}
