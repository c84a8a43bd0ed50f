//! Whether every answer was posted where it belongs.

use super::say_line;
use super::scene::{Expected, Outcome};
use vocative_core::counted::counted;

/// Prints one line per expectation; returns whether all hold.
pub(super) fn print(outcomes: &[Outcome]) -> bool {
    say_line("");
    say_line("What had to come back:");
    for outcome in outcomes {
        let line = &outcome.line;
        let mark = if outcome.problem.is_none() {
            "ok     "
        } else {
            "MISSING"
        };
        say_line(&format!(
            "  {mark}  {:<9} \"{}\" -> {}",
            line.place.handle(),
            line.text,
            line.expected.describe()
        ));
        if let Some(problem) = &outcome.problem {
            say_line(&format!("           {problem}"));
        }
    }
    let expected = outcomes
        .iter()
        .filter(|outcome| outcome.line.expected != Expected::Nothing)
        .count();
    let missing: Vec<&str> = outcomes
        .iter()
        .filter_map(|outcome| outcome.problem.as_deref())
        .collect();
    if missing.is_empty() {
        say_line(&format!(
            "All {expected} answers are where they belong, and nothing else was answered."
        ));
    } else {
        say_line(&format!(
            "{} of {} did not go as they should.",
            missing.len(),
            counted(outcomes.len(), "line", "lines")
        ));
    }
    missing.is_empty()
}
