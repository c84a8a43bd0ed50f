//! The audit: who looked at what, and who did what.

use axum::extract::{Query, State};
use maud::{Markup, html};
use serde::Deserialize;

use super::{PageResult, nothing, older};
use crate::desk::Ask;
use crate::page::{Page, part};
use crate::show;
use crate::state::{ConsoleState, Who};
use crate::views::AuditLine;

/// The most rows of the audit on one page.
const ROWS: usize = 100;

#[derive(Deserialize)]
pub(crate) struct AuditQuery {
    before: Option<i64>,
}

/// The rows, the newest first.
pub(crate) async fn audit(
    State(console): State<ConsoleState>,
    who: Who,
    Query(query): Query<AuditQuery>,
) -> PageResult {
    let rows: Vec<AuditLine> = console
        .ask(Ask::Audit {
            before: query.before,
        })
        .await?;
    let next = rows.last().filter(|_| rows.len() == ROWS);
    let next = next.map(|last| format!("/audit?before={}", last.id));
    let body = html! {
        p.quiet {
            "Each login, each look into a direct chat and each action in the console, written before it happens. "
            code { "vocative console audit" } " shows the same."
        }
        (part("audit", &table(&rows)))
        (older(next))
    };
    let page = Page {
        title: "Audit",
        at: "/audit",
        body,
    };
    page.shown(&console, &who).await
}

fn table(rows: &[AuditLine]) -> Markup {
    html! {
        @if rows.is_empty() { (nothing("Nobody was here yet.")) }
        @else {
            table {
                caption.unseen { "The audit, the newest first" }
                thead { tr {
                    th scope="col" { "Time" } th scope="col" { "Who" } th scope="col" { "What" }
                    th scope="col" { "Of what" } th scope="col" { "Outcome" }
                } }
                tbody { @for row in rows {
                    tr {
                        td data-label="Time" { (show::time(row.at_ms)) }
                        td data-label="Who" { (show::word(&row.who)) small { "by " (row.via) } }
                        td data-label="What" { (row.act) }
                        td data-label="Of what" { (target(row)) }
                        td data-label="Outcome" { (show::state(&row.outcome)) }
                    }
                } }
            }
        }
    }
}

/// The subject of a row: a link where there is a page for it.
fn target(row: &AuditLine) -> Markup {
    let at = match row.act.as_str() {
        "look" | "title" | "archive" | "rebuild" => Some("/rooms/"),
        "stop" => Some("/runs/"),
        "approve" | "deny" => Some("/approvals/"),
        "answer" | "take_back" => Some("/questions/"),
        "schedule" => Some("/schedules/"),
        _ => None,
    };
    html! {
        @match at {
            Some(at) => a.id href={ (at) (row.target) } { (show::word(show::short(&row.target))) },
            None => (show::word(&row.target)),
        }
    }
}
