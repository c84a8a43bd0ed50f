//! `vocative costs`: what calls of models cost.

use std::process::ExitCode;

use super::args::{CostsArgs, TableFormat};
use super::asking::ask;
use super::context::CliContext;
use super::error::{CliError, Exit};
use super::since::since_ms;
use super::table::table;
use crate::admin::operations::AdminOperation;
use crate::admin::view::CostView;
use vocative_core::price::shown_amount;

/// Lists the costs, added up by day, channel, room, person, agent or model.
pub(super) async fn run(args: &CostsArgs, context: &CliContext) -> Result<ExitCode, CliError> {
    let now_ms = chrono::Utc::now().timestamp_millis();
    let since_ms = since_ms(&args.since, now_ms).map_err(CliError::Usage)?;
    let (config, _) = context.load_config()?;
    let by = args.by;
    let costs: Vec<CostView> = ask(context, AdminOperation::Costs { by, since_ms }).await?;
    context.print(&match args.format {
        TableFormat::Json => super::json_text(&costs)?,
        TableFormat::Table => report(&costs, by.name(), &config.currency),
    })?;
    Ok(Exit::Ok.into())
}

fn report(costs: &[CostView], by: &str, currency: &str) -> String {
    if costs.is_empty() {
        return "No model was asked in that time.\n".to_owned();
    }
    let cells = costs.iter().map(|cost| {
        vec![
            if cost.of.is_empty() {
                "(nobody)".to_owned()
            } else {
                cost.of.clone()
            },
            cost.calls.to_string(),
            cost.prompt_tokens.to_string(),
            cost.cache_read_tokens.to_string(),
            cost.cache_write_tokens.to_string(),
            cost.completion_tokens.to_string(),
            shown_amount(cost.cost_micros),
        ]
    });
    let header = [
        by,
        "calls",
        "prompt tokens",
        "from cache",
        "to cache",
        "answer tokens",
        currency,
    ];
    let mut out = table(&header, &cells.collect::<Vec<_>>());
    let sum: u64 = costs.iter().map(|cost| cost.cost_micros).sum();
    if sum == 0 {
        out.push_str(
            "\nNo model that was asked has a price: set price_input and its kin in [models].\n",
        );
    } else {
        out.push_str(&format!("\n{} {currency} together\n", shown_amount(sum)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_shown_with_their_sum_or_with_what_is_missing() {
        let cost = |of: &str, cost_micros| CostView {
            of: of.to_owned(),
            calls: 2,
            prompt_tokens: 1_000,
            cache_read_tokens: 800,
            cache_write_tokens: 0,
            completion_tokens: 50,
            cost_micros,
        };
        let shown = report(&[cost("Ada", 1_500_000), cost("", 10_000)], "person", "EUR");
        assert!(
            shown.contains("Ada") && shown.contains("(nobody)"),
            "{shown}"
        );
        assert!(shown.ends_with("\n1.51 EUR together\n"), "{shown}");
        let unpriced = report(&[cost("Ada", 0)], "person", "EUR");
        assert!(unpriced.contains("set price_input"), "{unpriced}");
        assert_eq!(
            report(&[], "day", "EUR"),
            "No model was asked in that time.\n"
        );
    }
}
