//! Skills of agents, and how each stands. Skills are not approved here: an approver must read all texts of a skill,
//! which the command line shows.

use axum::extract::State;
use maud::{Markup, html};

use super::{PageResult, nothing};
use crate::desk::Ask;
use crate::page::{Page, part};
use crate::show;
use crate::state::{ConsoleState, Who};
use crate::views::{Skill, Skills};

/// All skills.
pub(crate) async fn skills(State(console): State<ConsoleState>, who: Who) -> PageResult {
    let found: Skills = console.ask(Ask::Skills).await?;
    let list = html! {
        @for problem in &found.problems { p.note.warn { "Folders of skills: " (show::word(problem)) } }
        @if found.skills.is_empty() && found.problems.is_empty() {
            (nothing("There are no skills in skills.folders."))
        }
        @for skill in &found.skills { (card(skill)) }
    };
    let body = html! {
        p.quiet { "An agent is told of a skill once somebody has approved it as it is, and until a file of it changes." }
        (part("skills", &list))
    };
    let page = Page {
        title: "Skills",
        at: "/skills",
        body,
    };
    page.shown(&console, &who).await
}

fn card(skill: &Skill) -> Markup {
    let waits = matches!(skill.state.as_str(), "new" | "changed");
    html! {
        article.card {
            p.by {
                b { (show::word(&skill.name)) } " " (show::state(&skill.state)) " · "
                @if skill.agents.is_empty() { "no agent names it" } @else { "for " (skill.agents.join(", ")) }
            }
            @if let Some(cause) = &skill.cause { p.note.warn { (show::word(cause)) } }
            @if !skill.description.is_empty() { (show::said(&skill.description)) }
            p.quiet {
                @if let Some(by) = &skill.approved_by {
                    "Approved by " (show::word(by))
                    @if let Some(at_ms) = skill.approved_at_ms { ", " (show::time(at_ms)) }
                    @if skill.state != "approved" { ", as it was then" }
                    ". "
                }
                @if let Some(folder) = &skill.folder { "In " (show::word(folder)) "." }
            }
            @if waits { (show::code(&format!("vocative skills show {}", skill.name))) }
        }
    }
}
