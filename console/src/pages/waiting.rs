//! What waits, what is held and what was given up.

use axum::extract::{Path, State};
use maud::{Markup, html};

use super::{PageResult, button, nothing};
use crate::desk::{Ask, Deed};
use crate::page::{Page, PageRefusal, part};
use crate::person::UserRole;
use crate::sessions::Visitor;
use crate::show;
use crate::state::{ConsoleState, Who};
use crate::views::{Post, Queued, Stuck, Waiting};

/// Runs that wait, and for what.
pub(crate) async fn queue(State(console): State<ConsoleState>, who: Who) -> PageResult {
    let found: Vec<Queued> = console.ask(Ask::Queue).await?;
    let rows = html! {
        @if found.is_empty() { (nothing("Nothing waits.")) }
        @for it in &found {
            article.card {
                p.by {
                    (show::state(&it.run.state)) " " (show::run(&it.run.id)) " of " b { (it.run.agent) } " in " (show::room(&it.room))
                    " · for " (show::span(it.age_ms))
                    @if let Some(person) = &it.person { " · asked by " (show::word(person)) }
                }
                p { "It waits for " (show::word(&it.why)) "." }
                @if console.shows(&who, &it.room) {
                    @for text in &it.texts { (show::said(&show::beginning(text, 600))) }
                } @else { (show::hidden(&it.room)) }
                @if who.person.role >= UserRole::Operator {
                    (button(&format!("/runs/{}/stop", it.run.id), "Stop it", "danger", Some("Stop this run?")))
                }
            }
        }
    };
    let page = Page {
        title: "Queue",
        at: "/queue",
        body: part("queue", &rows),
    };
    page.shown(&console, &who).await
}

/// Two ways to decide about one thing: path, words, and the confirmation for the second.
struct Decisions {
    at: &'static str,
    yes: (&'static str, &'static str),
    no: (&'static str, &'static str),
    sure: &'static str,
}

const HELD: Decisions = Decisions {
    at: "/held",
    yes: ("send", "Send it"),
    no: ("drop", "Drop it"),
    sure: "Drop it? It is never sent.",
};
const DEAD: Decisions = Decisions {
    at: "/dead",
    yes: ("retry", "Try it again"),
    no: ("drop", "Drop it"),
    sure: "Drop it? It is never tried again.",
};

/// Posts and runs that wait for a person, who should first look into the room whether a post is there.
pub(crate) async fn held(State(console): State<ConsoleState>, who: Who) -> PageResult {
    let found: Stuck = console.ask(Ask::Held).await?;
    let body = html! {
        p.quiet { "Of a held post it is not known whether it arrived, or its room does not take it. Look into the room before you send it again." }
        (part("held", &stuck(&console, &who, &found, &HELD)))
    };
    let page = Page {
        title: "Held",
        at: "/held",
        body,
    };
    page.shown(&console, &who).await
}

/// What was given up.
pub(crate) async fn dead(State(console): State<ConsoleState>, who: Who) -> PageResult {
    let found: Stuck = console.ask(Ask::Dead).await?;
    let page = Page {
        title: "Given up",
        at: "/dead",
        body: part("dead", &stuck(&console, &who, &found, &DEAD)),
    };
    page.shown(&console, &who).await
}

fn stuck(console: &ConsoleState, who: &Visitor, found: &Stuck, of: &Decisions) -> Markup {
    html! {
        @if found.runs.is_empty() && found.posts.is_empty() { (nothing("There is nothing.")) }
        @for it in &found.runs { (run(console, who, it, of)) }
        @for it in &found.posts { (post(console, who, it, of)) }
    }
}

fn run(console: &ConsoleState, who: &Visitor, it: &Waiting, of: &Decisions) -> Markup {
    html! {
        article.card {
            p.by { (show::state(&it.run.state)) " Question, run " (show::run(&it.run.id)) " of " b { (it.run.agent) } " in " (show::room(&it.room)) }
            @if let Some(reason) = &it.run.reason { p.note.warn { (show::word(reason)) } }
            @if console.shows(who, &it.room) { (show::said(&show::beginning(&it.text, 600))) } @else { (show::hidden(&it.room)) }
            (decide(who, &it.run.id, of))
        }
    }
}

fn post(console: &ConsoleState, who: &Visitor, it: &Post, of: &Decisions) -> Markup {
    // If the room of this post is gone, its text is not shown.
    let is_shown = it
        .room
        .as_ref()
        .is_some_and(|room| console.shows(who, room));
    html! {
        article.card {
            p.by {
                (show::state(&it.state)) " Post "
                @match &it.room { Some(room) => { "in " (show::room(room)) }, None => { "to " (show::word(&it.chat)) } }
                " · " (it.attempts) " attempts"
                @if it.undecided { " " span.chip.warn { "the platform doesn't say whether it arrived" } }
            }
            @if let Some(reason) = &it.reason { p.note.warn { (show::word(reason)) } }
            @if is_shown { (show::said(&show::beginning(&it.text, 600))) }
            @else if let Some(room) = &it.room { (show::hidden(room)) }
            (decide(who, &it.id, of))
        }
    }
}

fn decide(who: &Visitor, id: &str, of: &Decisions) -> Markup {
    let path = |word: &str| format!("{}/{id}/{word}", of.at);
    html! {
        @if who.person.role >= UserRole::Operator {
            p.tools {
                (button(&path(of.yes.0), of.yes.1, "primary", None))
                (button(&path(of.no.0), of.no.1, "danger", Some(of.sure)))
            }
        }
    }
}

/// Decides about a held post or run.
pub(crate) async fn release(
    State(console): State<ConsoleState>,
    who: Who,
    Path((id, decision)): Path<(String, String)>,
) -> PageResult {
    let send = read(&decision, HELD.yes.0, HELD.no.0)?;
    console.act(&who, Deed::Release { id, send }, HELD.at).await
}

/// Decides about what was given up.
pub(crate) async fn decide_dead(
    State(console): State<ConsoleState>,
    who: Who,
    Path((id, decision)): Path<(String, String)>,
) -> PageResult {
    let retry = read(&decision, DEAD.yes.0, DEAD.no.0)?;
    let deed = Deed::DecideDead { id, retry };
    console.act(&who, deed, DEAD.at).await
}

fn read(decision: &str, yes: &str, no: &str) -> Result<bool, PageRefusal> {
    match decision {
        it if it == yes => Ok(true),
        it if it == no => Ok(false),
        _ => Err(PageRefusal::no_page()),
    }
}
