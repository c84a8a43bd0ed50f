//! Whether every answer was posted where it belongs, and every step of the approval happened.

use super::approval::ApprovalStepOutcome;
use super::say_line;
use super::scene::{Expected, SceneOutcome};
use vocative_core::counted::counted;

/// Prints one line per expectation; returns whether all are met. Without steps, the approval was not played.
pub(super) fn print(outcomes: &[SceneOutcome], steps: &[ApprovalStepOutcome]) -> bool {
    say_line("");
    say_line("What had to come back:");
    for outcome in outcomes {
        let line = &outcome.line;
        let what = format!(
            "{:<9} \"{}\" -> {}",
            line.place.handle(),
            line.text,
            line.expected.describe()
        );
        print_line(&what, outcome.problem.as_deref());
    }
    for outcome in steps {
        let what = format!("{:<9} {}", "approval", outcome.step.describe());
        print_line(&what, outcome.problem.as_deref());
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
    let is_approved = steps.iter().all(|outcome| outcome.problem.is_none());
    if !is_approved {
        say_line("The approval did not go as it should; what follows in it was not played.");
    } else if !steps.is_empty() {
        say_line("The refund was made once, for who may allow it, through a kill of the daemon.");
    }
    missing.is_empty() && is_approved
}

fn print_line(what: &str, problem: Option<&str>) {
    let mark = if problem.is_none() {
        "ok     "
    } else {
        "MISSING"
    };
    say_line(&format!("  {mark}  {what}"));
    if let Some(problem) = problem {
        say_line(&format!("           {problem}"));
    }
}
