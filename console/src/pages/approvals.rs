//! Calls that wait for a person, and standing consents. A user of the console can allow a call only where the tool's
//! settings name them; forbidding is open to every operator.

use axum::extract::{Form, Path, Query, State};
use maud::{Markup, html};
use serde::Deserialize;

use super::rooms::look_form;
use super::{PageResult, button, nothing, older};
use crate::desk::{Ask, Deed};
use crate::page::{Page, part};
use crate::person::UserRole;
use crate::sessions::Visitor;
use crate::show;
use crate::state::{ConsoleState, Who};
use crate::views::{Approval, Grant};

/// The most approvals on one page.
pub(crate) const LISTED: usize = 50;

#[derive(Deserialize)]
pub(crate) struct ListQuery {
    pub(super) before: Option<String>,
    #[serde(default)]
    pub(super) all: bool,
}

/// Calls that wait, and consents that hold.
pub(crate) async fn list(
    State(console): State<ConsoleState>,
    who: Who,
    Query(query): Query<ListQuery>,
) -> PageResult {
    let asked = Ask::Approvals {
        all: query.all,
        before: query.before,
    };
    let found: Vec<Approval> = console.ask(asked).await?;
    let grants: Vec<Grant> = console.ask(Ask::Grants).await?;
    let next = found.last().filter(|_| found.len() == LISTED);
    let next = next.map(|last| format!("/approvals?before={}&all={}", last.id, query.all));
    let body = html! {
        p.tools {
            @if query.all { a href="/approvals" { "Only those that wait" } }
            @else { a href="/approvals?all=true" { "With those that were decided" } }
        }
        (part("approvals", &table(&found)))
        (older(next))
        h2 { "Standing consents" }
        (part("grants", &grant_table(&grants, &who)))
    };
    let page = Page {
        title: "Approvals",
        at: "/approvals",
        body,
    };
    page.shown(&console, &who).await
}

fn table(found: &[Approval]) -> Markup {
    html! {
        @if found.is_empty() { (nothing("No call waits for a person.")) }
        @else {
            table {
                caption.unseen { "Calls, the newest first" }
                thead { tr {
                    th scope="col" { "Call" } th scope="col" { "State" } th scope="col" { "Room" }
                    th scope="col" { "Asked by" } th scope="col" { "Until" }
                } }
                tbody { @for it in found {
                    tr {
                        th scope="row" data-label="Call" {
                            a href={ "/approvals/" (it.id) } { (it.tool) } small { "for " (it.agent) }
                        }
                        td data-label="State" {
                            (show::state(&it.state))
                            @if let Some(by) = &it.decided_by { small { "by " (show::word(by)) } }
                        }
                        td data-label="Room" { (show::room(&it.room)) }
                        td data-label="Asked by" { (show::word(&it.asked_by.join(", "))) }
                        td data-label="Until" {
                            @match it.expires_at_ms { Some(at_ms) => (show::time(at_ms)), None => "no end" }
                        }
                    }
                } }
            }
        }
    }
}

fn grant_table(grants: &[Grant], who: &Visitor) -> Markup {
    html! {
        @if grants.is_empty() { (nothing("Nobody has given one.")) }
        @else {
            table {
                caption.unseen { "Standing consents" }
                thead { tr {
                    th scope="col" { "Tool" } th scope="col" { "For" } th scope="col" { "Given by" }
                    th scope="col" { "Until" } th.number scope="col" { "Used" } th scope="col" { span.unseen { "Take it back" } }
                } }
                tbody { @for it in grants {
                    tr {
                        th scope="row" data-label="Tool" {
                            (it.tool) small { @if it.is_exact { "this very call" } @else { "every call" } " of " (it.agent) }
                        }
                        td data-label="For" {
                            (show::word(&it.person)) small { (it.channel.as_deref().unwrap_or("?")) "/" (show::word(&it.chat)) }
                        }
                        td data-label="Given by" {
                            (show::word(it.granted_by.as_deref().unwrap_or("?"))) small { (show::time(it.granted_at_ms)) }
                        }
                        td data-label="Until" {
                            @match it.until_ms { Some(at_ms) => (show::time(at_ms)), None => "taken back" }
                        }
                        td.number data-label="Used" { (it.uses) }
                        td {
                            @if who.person.role >= UserRole::Operator {
                                (button(&format!("/grants/{}/revoke", it.id), "Take it back", "", None))
                            }
                        }
                    }
                } }
            }
        }
    }
}

/// One call, with everything that a person needs to see before deciding.
pub(crate) async fn one(
    State(console): State<ConsoleState>,
    who: Who,
    Path(id): Path<String>,
) -> PageResult {
    let asked = Ask::Approval {
        id,
        by: who.person.name.clone(),
    };
    let found: Approval = console.ask(asked).await?;
    let shown = if console.shows(&who, &found.room) {
        html! {
            h2 { "What will be done, byte for byte" }
            (show::whole_code(&found.arguments))
            p.quiet { "To " (show::word(&found.target)) " · digest " code { (found.digest) } }
            @if found.state == "open" { (decide(&found, &who)) }
        }
    } else {
        look_form(&who, &found.room, &format!("/approvals/{}", found.id))
    };
    let title = format!("Call of {}", found.tool);
    let page = Page {
        title: &title,
        at: "/approvals",
        body: html! { (facts(&found)) (shown) },
    };
    page.shown(&console, &who).await
}

fn facts(found: &Approval) -> Markup {
    let lists: Vec<String> = found.approvers.iter().map(|list| list.join(", ")).collect();
    html! {
        dl.facts {
            dt { "State" }
            dd {
                (show::state(&found.state))
                @if let Some(by) = &found.decided_by { " by " (show::word(by)) }
                @if let Some(via) = &found.via { " (" (via) ")" }
                @if let Some(at_ms) = found.decided_at_ms { " " (show::time(at_ms)) }
                @if let Some(note) = &found.note { " “" (show::word(note)) "”" }
            }
            dt { "Asked by" } dd { (show::word(&found.asked_by.join(", "))) " in " (show::room(&found.room)) " " (show::time(found.asked_at_ms)) }
            @if !found.changed_by.is_empty() {
                dt { "Changed by" } dd { (show::word(&found.changed_by.join(", "))) }
            }
            dt { "Agent" } dd { (found.agent) ", run " (show::run(&found.run)) }
            dt { "Who may allow it" } dd { (show::word(&lists.join("; of these only "))) }
            @if let Some(at_ms) = found.expires_at_ms { dt { "Until" } dd { (show::time(at_ms)) } }
        }
        @if !found.read.is_empty() {
            p.note.warn {
                "Before it asked, the run read what those who asked did not write: " (show::word(&found.read.join(", ")))
                ". Somebody else's words may be behind this call."
            }
        }
    }
}

fn decide(found: &Approval, who: &Visitor) -> Markup {
    let path = |what: &str| format!("/approvals/{}/{what}", found.id);
    html! {
        @if who.person.role < UserRole::Operator { p.note.info { "Deciding needs the role operator." } }
        @else {
            section.decide {
                h2 { "Decide" }
                @if found.may_approve {
                    form method="post" action=(path("approve")) data-sure="Allow exactly this call?" {
                        input type="hidden" name="digest" value=(found.digest);
                        label for="note-yes" { "A word for the room (may stay empty)" }
                        input #note-yes name="note" dir="auto" maxlength="500";
                        label.check { input type="checkbox" name="grant" value="true"; " the same call may be made for a day without asking" }
                        button.primary type="submit" { "Allow it" }
                    }
                } @else {
                    p.note.info {
                        "You may forbid it, and not allow it: the settings name others. Allow it in the room, or have somebody do it who is named."
                    }
                }
                form method="post" action=(path("deny")) {
                    label for="note-no" { "Why not (may stay empty)" }
                    input #note-no name="note" dir="auto" maxlength="500";
                    button.danger type="submit" { "Forbid it" }
                }
            }
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct ApproveCallForm {
    digest: String,
    #[serde(default)]
    grant: bool,
    #[serde(default)]
    note: String,
}

/// Allows a call.
pub(crate) async fn approve(
    State(console): State<ConsoleState>,
    who: Who,
    Path(id): Path<String>,
    Form(form): Form<ApproveCallForm>,
) -> PageResult {
    let back = format!("/approvals/{id}");
    let deed = Deed::Approve {
        id,
        digest: form.digest,
        grant: form.grant,
        note: note(form.note),
    };
    console.act(&who, deed, &back).await
}

#[derive(Deserialize)]
pub(crate) struct DenyForm {
    #[serde(default)]
    note: String,
}

/// Forbids a call.
pub(crate) async fn deny(
    State(console): State<ConsoleState>,
    who: Who,
    Path(id): Path<String>,
    Form(form): Form<DenyForm>,
) -> PageResult {
    let back = format!("/approvals/{id}");
    let deed = Deed::Deny {
        id,
        note: note(form.note),
    };
    console.act(&who, deed, &back).await
}

fn note(note: String) -> Option<String> {
    Some(note).filter(|note| !note.trim().is_empty())
}

/// Takes a standing consent back.
pub(crate) async fn revoke(
    State(console): State<ConsoleState>,
    who: Who,
    Path(id): Path<String>,
) -> PageResult {
    console.act(&who, Deed::RevokeGrant(id), "/approvals").await
}
