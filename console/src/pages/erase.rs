//! Erasing a person or a room: first a plan, then the name typed once more, then progress and the search of the files.

use axum::extract::{Form, State};
use maud::{Markup, html};
use serde::Deserialize;

use super::{PageResult, nothing};
use crate::desk::{Ask, Deed, EraseChoice, Trace};
use crate::page::{Page, PageRefusal, part};
use crate::show;
use crate::state::{ConsoleState, Who};
use crate::views::{Erased, Erasing, Plan, Verification};

/// The form, and the erasures that were begun.
pub(crate) async fn form(State(console): State<ConsoleState>, who: Who) -> PageResult {
    let under_way: Vec<Erasing> = console.ask(Ask::Erasures).await?;
    let list = html! {
        @if under_way.is_empty() { (nothing("None since the daemon started.")) }
        @for it in &under_way { (erasing(it)) }
    };
    let body = html! {
        p { "First a plan is made; it changes nothing." }
        form method="post" action="/erase/plan" {
            label for="kind" { "What" }
            select #kind name="kind" {
                option value="person" { "a person: everything of theirs" }
                option value="room" { "a room, with its threads" }
            }
            label for="name" { "Id or name, like acme/U1, @ann or acme/#general" }
            input #name name="name" dir="auto" required maxlength="200" autocomplete="off";
            button.primary type="submit" { "Make a plan" }
        }
        h2 { "Erasures" }
        (part("erasures", &list))
    };
    let page = Page {
        title: "Erasure",
        at: "/erase",
        body,
    };
    page.shown(&console, &who).await
}

fn erasing(it: &Erasing) -> Markup {
    html! {
        article.card {
            p.by { b { (show::word(&it.what)) } " " (show::state(&it.state)) " · begun " (show::time(it.began_at_ms)) }
            @if let Some(error) = &it.error { p.note.bad { (show::word(error)) } }
            @if let Some(done) = &it.done { (erased(done)) }
            @else if it.error.is_none() { p { "It goes through the database beside the daily work. If the daemon ends, the next start goes on." } }
        }
    }
}

fn erased(done: &Erased) -> Markup {
    html! {
        ul {
            li { (show::grouped(done.turns)) " turns blanked" }
            li { (show::grouped(done.answers)) " answers, notices and results made of them blanked" }
            li { (show::grouped(done.repeats)) " messages of others cut that repeated them" }
            li { (show::grouped(done.details)) " other rows cleared" }
            @for copy in &done.removed_copies { li { "copy removed: " (show::word(copy)) } }
        }
        @if let Some(found) = &done.verification { (verification(found)) }
    }
}

fn verification(found: &Verification) -> Markup {
    let is_clean = found.hits.is_empty() && found.columns.is_empty();
    html! {
        @if is_clean {
            p.note.good {
                "Verified: none of " (show::grouped(found.texts)) " erased texts is in " (show::grouped(found.files)) " files ("
                (show::bytes(found.bytes)) ")."
            }
        } @else {
            div.note.bad {
                p { "Something was found:" }
                ul {
                    @for (name, count) in found.hits.iter().chain(&found.columns) { li { (show::word(name)) ": " (count) } }
                }
            }
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct TargetForm {
    kind: String,
    name: String,
    /// The name, typed once more.
    #[serde(default)]
    again: String,
}

impl TargetForm {
    fn target(&self) -> Result<EraseChoice, PageRefusal> {
        match self.kind.as_str() {
            "person" => Ok(EraseChoice::Person(self.name.clone())),
            "room" => Ok(EraseChoice::Room(self.name.clone())),
            _ => Err(PageRefusal::wrong("only a person or a room can be erased")),
        }
    }
}

/// What would be deleted.
pub(crate) async fn plan(
    State(console): State<ConsoleState>,
    who: Who,
    Form(form): Form<TargetForm>,
) -> PageResult {
    let plan: Plan = console.ask(Ask::ErasePlan(form.target()?)).await?;
    console.desk.note(&who.person, Trace::Planned).await?;
    let body = html! {
        div.verdict.warn {
            p { "This would be blanked of " b { (show::word(&plan.what)) } ":" }
            ul {
                li { (show::grouped(plan.turns)) " turns in " (show::grouped(plan.conversations)) " rooms" }
                li { "the answers of " (show::grouped(plan.runs)) " runs that they asked for" }
                li { "what others repeated of them, summaries, memories, files and search, as docs/DATA.md says" }
            }
            p { "Backups that were made before are not changed; a restore of one erases again." }
        }
        form method="post" action="/erase/begin" data-sure="Erase? Nobody can bring it back." {
            input type="hidden" name="kind" value=(form.kind);
            input type="hidden" name="name" value=(form.name);
            label for="again" { "Type " b { (show::word(&form.name)) } " to go on" }
            input #again name="again" dir="auto" required autocomplete="off";
            button.danger type="submit" { "Erase" }
        }
        p { a href="/erase" { "Leave it as it is" } }
    };
    let page = Page {
        title: "Plan of an erasure",
        at: "/erase",
        body,
    };
    page.shown(&console, &who).await
}

/// Begins to erase.
pub(crate) async fn begin(
    State(console): State<ConsoleState>,
    who: Who,
    Form(form): Form<TargetForm>,
) -> PageResult {
    if form.again.trim() != form.name.trim() {
        return Err(PageRefusal::wrong("the name that was typed is another one"));
    }
    let deed = Deed::Erase(form.target()?);
    console.act(&who, deed, "/erase").await
}
