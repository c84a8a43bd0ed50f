//! Questions that agents ask people.

use axum::extract::{Form, Path, Query, State};
use maud::{Markup, html};
use serde::Deserialize;

use super::approvals::{LISTED, ListQuery};
use super::rooms::look_form;
use super::{PageResult, button, nothing, older};
use crate::desk::{Ask, Deed};
use crate::page::{Page, part};
use crate::person::UserRole;
use crate::sessions::Visitor;
use crate::show;
use crate::state::{ConsoleState, Who};
use crate::views::Question;

/// Questions that wait.
pub(crate) async fn list(
    State(console): State<ConsoleState>,
    who: Who,
    Query(query): Query<ListQuery>,
) -> PageResult {
    let asked = Ask::Questions {
        all: query.all,
        before: query.before,
    };
    let found: Vec<Question> = console.ask(asked).await?;
    let next = found.last().filter(|_| found.len() == LISTED);
    let next = next.map(|last| format!("/questions?before={}&all={}", last.id, query.all));
    let rows = html! {
        @if found.is_empty() { (nothing("No question waits for a person.")) }
        @for it in &found {
            article.card {
                p.by { a href={ "/questions/" (it.id) } { "Question" } " of " b { (it.agent) } " " (show::state(&it.state)) " in " (show::room(&it.room)) " · " (show::time(it.asked_at_ms)) }
                @if console.shows(&who, &it.room) { (show::said(&it.question)) } @else { (show::hidden(&it.room)) }
            }
        }
    };
    let body = html! {
        p.tools {
            @if query.all { a href="/questions" { "Only those that wait" } }
            @else { a href="/questions?all=true" { "With those that are over" } }
        }
        (part("questions", &rows))
        (older(next))
    };
    let page = Page {
        title: "Questions",
        at: "/questions",
        body,
    };
    page.shown(&console, &who).await
}

/// One question.
pub(crate) async fn one(
    State(console): State<ConsoleState>,
    who: Who,
    Path(id): Path<String>,
) -> PageResult {
    let found: Question = console.ask(Ask::Question(id)).await?;
    let shown = if console.shows(&who, &found.room) {
        html! {
            (show::said(&found.question))
            @if !found.options.is_empty() {
                ul { @for option in &found.options { li { (show::word(option)) } } }
            }
            @if let Some(answer) = &found.answer {
                h2 { "Answered" @if let Some(by) = &found.answered_by { " by " (show::word(by)) } }
                (show::said(answer))
            }
            @if found.state == "open" && who.person.role >= UserRole::Operator { (decide(&found, &who)) }
        }
    } else {
        look_form(&who, &found.room, &format!("/questions/{}", found.id))
    };
    let body = html! {
        p.facts {
            (show::state(&found.state)) " " b { (found.agent) } " asks " (show::word(&found.asked.join(", ")))
            " in " (show::room(&found.room)) " · run " (show::run(&found.run)) " · " (show::time(found.asked_at_ms))
            @if let Some(at_ms) = found.expires_at_ms { ", until " (show::time(at_ms)) }
        }
        (shown)
    };
    let page = Page {
        title: "Question",
        at: "/questions",
        body,
    };
    page.shown(&console, &who).await
}

fn decide(found: &Question, who: &Visitor) -> Markup {
    html! {
        section.decide {
            h2 { "Answer in their place" }
            form method="post" action={ "/questions/" (found.id) "/answer" } {
                label for="text" { "Your answer; the room sees it with your name, " (who.person.name) }
                textarea #text name="text" dir="auto" rows="3" required {}
                button.primary type="submit" { "Answer" }
            }
            (button(&format!("/questions/{}/cancel", found.id), "Take it back", "danger",
                Some("Take the question back? The run goes on without an answer.")))
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct AnswerQuestionForm {
    text: String,
}

/// Answers a question.
pub(crate) async fn answer(
    State(console): State<ConsoleState>,
    who: Who,
    Path(id): Path<String>,
    Form(form): Form<AnswerQuestionForm>,
) -> PageResult {
    let back = format!("/questions/{id}");
    let deed = Deed::AnswerQuestion {
        id,
        text: form.text,
    };
    console.act(&who, deed, &back).await
}

/// Takes a question back.
pub(crate) async fn cancel(
    State(console): State<ConsoleState>,
    who: Who,
    Path(id): Path<String>,
) -> PageResult {
    let back = format!("/questions/{id}");
    console.act(&who, Deed::CancelQuestion(id), &back).await
}
