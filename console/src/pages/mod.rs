//! The pages, a file per subject, and which role each needs.

mod approvals;
mod audit;
mod costs;
mod erase;
mod mcp;
mod memory;
mod overview;
mod questions;
mod rooms;
mod runs;
mod schedules;
mod search;
mod settings;
mod skills;
mod waiting;
mod xray;

use axum::Router;
use axum::response::Response;
use axum::routing::{get, post};
use maud::{Markup, html};

use crate::page::PageRefusal;
use crate::state::ConsoleState;

/// The result of a handler.
pub(crate) type PageResult = Result<Response, PageRefusal>;

/// The pages that every role sees.
pub(crate) fn of_viewers() -> Router<ConsoleState> {
    Router::new()
        .route("/", get(overview::overview))
        .route("/rooms", get(rooms::rooms))
        .route("/rooms/{id}", get(rooms::room))
        .route("/rooms/{id}/prompt", get(xray::next_prompt))
        .route("/rooms/{id}/summaries", get(rooms::summaries))
        .route("/runs", get(runs::runs))
        .route("/runs/{id}", get(runs::run))
        .route("/runs/{id}/prompt", get(xray::sent_prompt))
        .route("/approvals", get(approvals::list))
        .route("/approvals/{id}", get(approvals::one))
        .route("/questions", get(questions::list))
        .route("/questions/{id}", get(questions::one))
        .route("/queue", get(waiting::queue))
        .route("/held", get(waiting::held))
        .route("/dead", get(waiting::dead))
        .route("/schedules", get(schedules::list))
        .route("/schedules/{id}", get(schedules::one))
        .route("/search", get(search::form).post(search::found))
        .route("/costs", get(costs::costs))
        .route("/mcp", get(mcp::mcp))
        .route("/skills", get(skills::skills))
}

/// The further pages and acts of operators.
pub(crate) fn of_operators() -> Router<ConsoleState> {
    Router::new()
        .route("/rooms/{id}/look", post(rooms::look))
        .route("/rooms/{id}/title", post(rooms::title))
        .route("/rooms/{id}/archive", post(rooms::archive))
        .route("/rooms/{id}/rebuild", post(rooms::rebuild))
        .route("/runs/{id}/stop", post(runs::stop))
        .route("/approvals/{id}/approve", post(approvals::approve))
        .route("/approvals/{id}/deny", post(approvals::deny))
        .route("/grants/{id}/revoke", post(approvals::revoke))
        .route("/questions/{id}/answer", post(questions::answer))
        .route("/questions/{id}/cancel", post(questions::cancel))
        .route("/held/{id}/{decision}", post(waiting::release))
        .route("/dead/{id}/{decision}", post(waiting::decide_dead))
        .route("/schedules/{id}/{change}", post(schedules::change))
        .route("/memory", get(memory::list))
        .route("/memory/{id}/forget", post(memory::forget))
        .route("/settings", get(settings::settings))
        .route("/audit", get(audit::audit))
}

/// The further acts of admins.
pub(crate) fn of_admins() -> Router<ConsoleState> {
    Router::new()
        .route("/reload", post(settings::reload))
        .route("/mcp/{server}/{tool}/approve", post(mcp::approve))
        .route("/erase", get(erase::form))
        .route("/erase/plan", post(erase::plan))
        .route("/erase/begin", post(erase::begin))
}

/// A form with one button. Where scripts run, an act that can't be undone asks for confirmation.
fn button(path: &str, words: &str, kind: &str, sure: Option<&str>) -> Markup {
    html! {
        form.inline method="post" action=(path) data-sure=[sure] {
            button class=(kind) type="submit" { (words) }
        }
    }
}

/// The text in place of an empty list.
fn nothing(words: &str) -> Markup {
    html! { p.empty { (words) } }
}

/// A link to older entries.
fn older(href: Option<String>) -> Markup {
    html! {
        @if let Some(href) = href { p.pager { a href=(href) { "Older" } } }
    }
}
