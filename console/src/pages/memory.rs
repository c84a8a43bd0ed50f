//! What agents remember, whose words it comes from, and where it may appear.

use axum::extract::{Path, Query, State};
use maud::{Markup, html};
use serde::Deserialize;

use super::{PageResult, button, nothing, older};
use crate::desk::{Ask, Deed};
use crate::page::{Page, part};
use crate::show;
use crate::state::{ConsoleState, Who};
use crate::views::Memory;

/// The most entries of memory on one page.
const LISTED: usize = 50;

#[derive(Deserialize)]
pub(crate) struct MemoryPageQuery {
    before: Option<i64>,
}

/// Everything that is remembered, the newest first. Entries from a direct chat are listed without their text.
pub(crate) async fn list(
    State(console): State<ConsoleState>,
    who: Who,
    Query(query): Query<MemoryPageQuery>,
) -> PageResult {
    let found: Vec<Memory> = console
        .ask(Ask::Memories {
            before: query.before,
        })
        .await?;
    let next = found.last().filter(|_| found.len() == LISTED);
    let next = next.map(|last| format!("/memory?before={}", last.id));
    let rows = html! {
        @if found.is_empty() { (nothing("Nothing is remembered. An agent remembers with memory = \"tools\".")) }
        @for it in &found { (card(it)) }
    };
    let body = html! {
        (part("memories", &rows))
        (older(next))
    };
    let page = Page {
        title: "Memory",
        at: "/memory",
        body,
    };
    page.shown(&console, &who).await
}

fn card(it: &Memory) -> Markup {
    html! {
        article.card {
            p.by {
                span.chip.plain { (it.kind) } " " b { (it.agent) } " remembers"
                @if let Some(subject) = &it.subject { " of " (show::word(subject)) }
                " · said by " (show::word(&it.teller)) " in " (show::word(&it.room)) " · " (show::time(it.written_at_ms))
                " · of " (it.sources) " messages"
            }
            @if it.is_direct { p.quiet { "Said in a direct chat." } } @else { (show::said(&it.text)) }
            (button(&format!("/memory/{}/forget", it.id), "Forget it", "danger", Some("Forget it? Nobody can bring it back.")))
        }
    }
}

/// Forgets one entry of memory.
pub(crate) async fn forget(
    State(console): State<ConsoleState>,
    who: Who,
    Path(id): Path<i64>,
) -> PageResult {
    console.act(&who, Deed::ForgetMemory(id), "/memory").await
}
