//! The costs of model calls.

use axum::extract::{Query, State};
use maud::{Markup, html};
use serde::Deserialize;

use super::{PageResult, nothing};
use crate::desk::Ask;
use crate::page::{Page, PageRefusal, part};
use crate::show;
use crate::state::{ConsoleState, Who};
use crate::views::Cost;

const DAY_MS: i64 = 86_400_000;
/// The choices: by what costs are summed, and over how many days.
const BY: [&str; 6] = ["day", "agent", "model", "channel", "room", "person"];
const DAYS: [i64; 4] = [1, 7, 30, 365];

#[derive(Deserialize)]
pub(crate) struct CostsQuery {
    by: Option<String>,
    days: Option<i64>,
}

/// Tokens and money, by the chosen grouping.
pub(crate) async fn costs(
    State(console): State<ConsoleState>,
    who: Who,
    Query(query): Query<CostsQuery>,
) -> PageResult {
    let by = query.by.unwrap_or_else(|| BY[0].to_owned());
    let days = query.days.unwrap_or(30);
    if !BY.contains(&by.as_str()) || !DAYS.contains(&days) {
        return Err(PageRefusal::no_page());
    }
    let asked = Ask::Costs {
        by: by.clone(),
        since_ms: console.desk.now_ms() - days * DAY_MS,
    };
    let costs: Vec<Cost> = console.ask(asked).await?;
    let body = html! {
        form.tools method="get" action="/costs" {
            label for="by" { "By" }
            select #by name="by" { @for it in BY { option value=(it) selected[it == by] { (it) } } }
            label for="days" { "Days" }
            select #days name="days" { @for it in DAYS { option value=(it) selected[it == days] { (it) } } }
            button type="submit" { "Show" }
        }
        (part("costs", &table(&costs, &by)))
    };
    let page = Page {
        title: "Costs",
        at: "/costs",
        body,
    };
    page.shown(&console, &who).await
}

fn table(costs: &[Cost], by: &str) -> Markup {
    let has_prices = costs.iter().any(|cost| cost.cost_micros > 0);
    let tokens = |cost: &Cost| cost.prompt_tokens + cost.completion_tokens;
    let most = costs.iter().map(tokens).max().unwrap_or(1).max(1);
    html! {
        @if costs.is_empty() { (nothing("No model was asked in this time.")) }
        @else {
            @if !has_prices { p.note.info { "No price is set, so only tokens are told: models.NAME has settings for prices." } }
            table {
                caption.unseen { "Costs by " (by) }
                thead { tr {
                    th scope="col" { (by) } th.number scope="col" { "Calls" } th.number scope="col" { "Tokens in" }
                    th.number scope="col" { "From cache" } th.number scope="col" { "Tokens out" }
                    @if has_prices { th.number scope="col" { "Cost" } }
                    th scope="col" { span.unseen { "Share" } }
                } }
                tbody { @for cost in costs {
                    tr {
                        th scope="row" data-label=(by) { @if cost.of.is_empty() { "summaries" } @else { (show::word(&cost.of)) } }
                        td.number data-label="Calls" { (show::grouped(cost.calls)) }
                        td.number data-label="Tokens in" { (show::grouped(cost.prompt_tokens)) }
                        td.number data-label="From cache" { (show::grouped(cost.cache_read_tokens)) }
                        td.number data-label="Tokens out" { (show::grouped(cost.completion_tokens)) }
                        @if has_prices { td.number data-label="Cost" { (show::money(cost.cost_micros)) } }
                        td.share {
                            svg.meter viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" {
                                rect.part-left width="100" height="8" {}
                                rect.part-history width=(tokens(cost) * 100 / most) height="8" {}
                            }
                        }
                    }
                } }
            }
        }
    }
}
