//! `vocative erase`: erases a person or a conversation for good.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use super::args::{EraseArgs, TableFormat};
use super::asking::ask;
use super::context::CliContext;
use super::error::{CliError, Exit};
use crate::admin::operations::{AdminOperation, EraseTarget};
use crate::admin::view::{ErasePlanView, EraseView, VerificationView};
use vocative_core::counted::counted;

/// The word to type as confirmation.
const CONFIRMATION: &str = "erase";

/// Shows what would be erased, asks for confirmation, erases, and reports.
pub(super) async fn run(args: &EraseArgs, context: &CliContext) -> Result<ExitCode, CliError> {
    let target = target(args);
    let operation = AdminOperation::ErasePlan {
        target: target.clone(),
    };
    let plan: ErasePlanView = ask(context, operation).await?;
    if args.dry_run {
        let text = match args.format {
            TableFormat::Json => super::json_text(&plan)?,
            TableFormat::Table => planned(&plan),
        };
        context.print(&text)?;
        return Ok(Exit::Ok.into());
    }
    if !args.yes && !is_confirmed(&plan)? {
        context.print("Nothing was erased.\n")?;
        return Ok(Exit::Failed.into());
    }
    let operation = AdminOperation::Erase {
        target,
        verify: args.verify,
    };
    let view: EraseView = ask(context, operation).await?;
    let text = match args.format {
        TableFormat::Json => super::json_text(&view)?,
        TableFormat::Table => report(&view),
    };
    context.print(&text)?;
    let has_hits = view
        .verification
        .is_some_and(|found| !found.hits.is_empty());
    Ok(if has_hits { Exit::Failed } else { Exit::Ok }.into())
}

fn target(args: &EraseArgs) -> EraseTarget {
    match (&args.person, &args.conversation) {
        (Some(person), _) => EraseTarget::Person(person.clone()),
        (None, conversation) => EraseTarget::Conversation(
            conversation
                .clone()
                .expect("the command line takes one of the two"),
        ),
    }
}

/// Asks the person at the terminal for confirmation.
fn is_confirmed(plan: &ErasePlanView) -> Result<bool, CliError> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(CliError::Usage(
            "nobody is there to ask; add --yes to erase without asking, or --dry-run to see what would go".to_owned(),
        ));
    }
    let cannot = |cause| CliError::failed("the terminal can't be asked", cause);
    let mut stderr = std::io::stderr();
    write!(
        stderr,
        "{}This can't be undone. Type {CONFIRMATION} to go on: ",
        planned(plan)
    )
    .and_then(|()| stderr.flush())
    .map_err(cannot)?;
    let mut line = String::new();
    stdin.read_line(&mut line).map_err(cannot)?;
    Ok(line.trim() == CONFIRMATION)
}

fn planned(plan: &ErasePlanView) -> String {
    format!(
        "{} would be erased: {} in {}, and the answers of {}, with all that was made from them.\n",
        plan.what,
        counted(plan.turns, "turn", "turns"),
        counted(plan.conversations, "conversation", "conversations"),
        counted(plan.runs, "run", "runs")
    )
}

fn report(view: &EraseView) -> String {
    let mut out = format!(
        "Erased {}: {}. Also {} made from them, {} that repeated them, {}.\n",
        view.what,
        counted(view.turns, "turn", "turns"),
        counted(
            view.answers,
            "answer or tool result",
            "answers and tool results"
        ),
        counted(view.repeats, "message of others", "messages of others"),
        counted(view.details, "further row", "further rows")
    );
    for copy in &view.removed_copies {
        let _ = writeln!(out, "Removed {copy}: it was made before.");
    }
    if let Some(found) = &view.verification {
        verified(&mut out, found);
    }
    out
}

fn verified(out: &mut String, found: &VerificationView) {
    let VerificationView {
        texts,
        files,
        bytes,
        hits,
        columns,
    } = found;
    let _ = writeln!(
        out,
        "Searched {} ({bytes} bytes) for {}: {}.",
        counted(*files, "file", "files"),
        counted(*texts, "erased text", "erased texts"),
        if hits.is_empty() {
            "none is there"
        } else {
            "some are still there"
        }
    );
    for (path, count) in hits {
        let _ = writeln!(out, "  {path}: {count}");
    }
    for (column, rows) in columns {
        let _ = writeln!(
            out,
            "  the column {column} of the database: {}",
            counted(*rows, "row", "rows")
        );
    }
    if !hits.is_empty() {
        out.push_str("Remove copies and backups made before; anything else is a bug to report.\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(hits: Vec<(String, u64)>) -> EraseView {
        EraseView {
            what: "acme/U1 (Ada)".to_owned(),
            turns: 12,
            answers: 3,
            repeats: 1,
            details: 5,
            removed_copies: vec!["/data/vocative.db.before-0002".to_owned()],
            verification: Some(VerificationView {
                texts: 9,
                files: 4,
                bytes: 4_096,
                columns: hits
                    .iter()
                    .map(|_| ("steps.message".to_owned(), 2))
                    .collect(),
                hits,
            }),
        }
    }

    #[test]
    fn the_report_says_what_went_and_where_something_is_left() {
        let found = report(&view(vec![("/data/old.db".to_owned(), 2)]));
        insta::assert_snapshot!(found, @r"
        Erased acme/U1 (Ada): 12 turns. Also 3 answers and tool results made from them, 1 message of others that repeated them, 5 further rows.
        Removed /data/vocative.db.before-0002: it was made before.
        Searched 4 files (4096 bytes) for 9 erased texts: some are still there.
          /data/old.db: 2
          the column steps.message of the database: 2 rows
        Remove copies and backups made before; anything else is a bug to report.
        ");
        assert!(report(&view(Vec::new())).ends_with("none is there.\n"));
    }
}
