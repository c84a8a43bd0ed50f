//! Search in what was said. The query comes in a form's body, so that no proxy logs it.

use axum::extract::{Form, Query, State};
use maud::{Markup, html};
use serde::Deserialize;

use super::rooms::look_form;
use super::{PageResult, nothing};
use crate::desk::Ask;
use crate::page::{Page, PageRefusal};
use crate::show;
use crate::state::{ConsoleState, Who};
use crate::views::{Found, Hit, RoomLine};

#[derive(Deserialize)]
pub(crate) struct SearchPageQuery {
    #[serde(default)]
    room: String,
}

/// The form.
pub(crate) async fn form(
    State(console): State<ConsoleState>,
    who: Who,
    Query(query): Query<SearchPageQuery>,
) -> PageResult {
    let page = Page {
        title: "Search",
        at: "/search",
        body: fields(&console, &query.room, "").await?,
    };
    page.shown(&console, &who).await
}

async fn fields(console: &ConsoleState, room: &str, words: &str) -> Result<Markup, PageRefusal> {
    let asked = Ask::Rooms {
        before: None,
        all: true,
    };
    let rooms: Vec<RoomLine> = console.ask(asked).await?;
    let is_listed = rooms.iter().any(|it| it.id == room);
    Ok(html! {
        form.search method="post" action="/search" role="search" {
            label for="room" { "Room" }
            select #room name="room" required {
                @if !is_listed && !room.is_empty() { option value=(room) selected { (room) } }
                @for it in &rooms { option value=(it.id) selected[it.id == room] { (it.name) } }
            }
            label for="words" { "Words" }
            input #words name="words" type="search" dir="auto" required maxlength="300" value=(words);
            label.check { input type="checkbox" name="threads" value="true" checked; " also in threads" }
            button.primary type="submit" { "Search" }
        }
    })
}

#[derive(Deserialize)]
pub(crate) struct SearchForm {
    room: String,
    words: String,
    #[serde(default)]
    threads: bool,
}

/// The results.
pub(crate) async fn found(
    State(console): State<ConsoleState>,
    who: Who,
    Form(form): Form<SearchForm>,
) -> PageResult {
    if !console.doors.may_search(&who.key) {
        return Err(PageRefusal::too_often());
    }
    let head: RoomLine = console.ask(Ask::RoomHead(form.room)).await?;
    let room = head.room();
    let shown = if console.shows(&who, &room) {
        let asked = Ask::Search {
            room: room.id.clone(),
            query: form.words.clone(),
            threads: form.threads,
        };
        let found: Found = console.ask(asked).await?;
        html! {
            h2 { (show::grouped(found.matches)) " found in " (show::word(&room.name)) }
            @for note in &found.notes { p.note.info { (show::word(note)) } }
            @if found.hits.is_empty() { (nothing("Nothing was said with these words.")) }
            @for it in &found.hits { (hit(it)) }
        }
    } else {
        look_form(&who, &room, &format!("/search?room={}", room.id))
    };
    let body = html! {
        (fields(&console, &room.id, &form.words).await?)
        (shown)
    };
    let page = Page {
        title: "Search",
        at: "/search",
        body,
    };
    page.shown(&console, &who).await
}

fn hit(hit: &Hit) -> Markup {
    html! {
        article.card {
            @for beside in &hit.before { p.beside { b { (show::word(&beside.speaker)) } ": " (show::word(&beside.text)) } }
            p.by {
                b { (show::word(&hit.speaker)) } " " (show::time(hit.sent_at_ms)) " "
                a.seq href={ "/rooms/" (hit.conversation) "?before=" (hit.seq + 1) "#t" (hit.seq) } { "#" (hit.seq) }
            }
            (show::said(&hit.text))
            @for beside in &hit.after { p.beside { b { (show::word(&beside.speaker)) } ": " (show::word(&beside.text)) } }
        }
    }
}
