//! `vocative queue` and `vocative dead`: questions that wait, and questions and posts that were given up.

use std::fmt::Write as _;
use std::process::ExitCode;

use super::args::{DeadCommand, QueueArgs, QueueCommand, RetryArgs, TableFormat};
use super::asking::ask;
use super::context::CliContext;
use super::error::{CliError, Exit};
use super::since::since_ms;
use super::table::{one_line, span, table};
use crate::admin::operations::AdminOperation;
use crate::admin::view::{DeadView, PostView, QueuedRunView, ReleasedView, RetriedView};
use crate::daemon::start::wall_clock;
use vocative_core::counted::counted;

/// Characters of a question's or a post's text in a list.
const TEXT_CHARS: usize = 40;

/// Lists the questions that wait, or cancels one.
pub(super) async fn queue(args: &QueueArgs, context: &CliContext) -> Result<ExitCode, CliError> {
    let format = match &args.command {
        Some(QueueCommand::List(list)) => list.format,
        _ => args.format,
    };
    match &args.command {
        None | Some(QueueCommand::List(_)) => {
            let runs: Vec<QueuedRunView> = ask(context, AdminOperation::Queue).await?;
            let text = match format {
                TableFormat::Json => super::json_text(&runs)?,
                TableFormat::Table => queue_report(&runs),
            };
            context.print(&text)?;
        }
        Some(QueueCommand::Cancel { id }) => {
            let operation = AdminOperation::CancelRun { id: id.clone() };
            let is_cancelled: bool = ask(context, operation).await?;
            context.print(if is_cancelled {
                "It is cancelled; nothing is said in the room.\n"
            } else {
                "It is at its end already; nothing was changed.\n"
            })?;
        }
    }
    Ok(Exit::Ok.into())
}

/// Lists what was given up, shows one entry, has it tried again, or drops it.
pub(super) async fn dead(
    command: &DeadCommand,
    context: &CliContext,
) -> Result<ExitCode, CliError> {
    match command {
        DeadCommand::List(args) => {
            let view: DeadView = ask(context, AdminOperation::Dead { id: None }).await?;
            let text = match args.format {
                TableFormat::Json => super::json_text(&view)?,
                TableFormat::Table => dead_report(&view),
            };
            context.print(&text)?;
        }
        DeadCommand::Show { id, args } => {
            let operation = AdminOperation::Dead {
                id: Some(id.clone()),
            };
            let view: DeadView = ask(context, operation).await?;
            let text = match args.format {
                TableFormat::Json => super::json_text(&view)?,
                TableFormat::Table => whole(&view),
            };
            context.print(&text)?;
        }
        DeadCommand::Retry(args) => retry(context, args).await?,
        DeadCommand::Drop { id } => decide(context, id, false).await?,
    }
    Ok(Exit::Ok.into())
}

async fn retry(context: &CliContext, args: &RetryArgs) -> Result<(), CliError> {
    if let Some(id) = &args.id {
        return decide(context, id, true).await;
    }
    let now_ms = (wall_clock())();
    let since = args.since.as_ref().map(|text| since_ms(text, now_ms));
    let operation = AdminOperation::RetryDead {
        agent: args.agent.clone(),
        since_ms: since.transpose().map_err(CliError::Usage)?,
    };
    let retried: RetriedView = ask(context, operation).await?;
    context.print(&retry_report(retried))
}

fn retry_report(retried: RetriedView) -> String {
    let mut out = match retried.runs {
        0 => "No such question was given up; nothing was changed.\n".to_owned(),
        runs => format!(
            "{} queued again, with all attempts.\n",
            counted(runs, "question is", "questions are")
        ),
    };
    if retried.posts_left > 0 {
        let posts = counted(retried.posts_left, "post", "posts");
        let _ = writeln!(
            out,
            "{posts} refused for good: `vocative dead retry ID` sends one again."
        );
    }
    out
}

async fn decide(context: &CliContext, id: &str, retry: bool) -> Result<(), CliError> {
    let operation = AdminOperation::DecideDead {
        id: id.to_owned(),
        retry,
    };
    let decided: ReleasedView = ask(context, operation).await?;
    context.print(match (retry, decided.is_run) {
        (true, true) => "It is queued again, with all its attempts.\n",
        (true, false) => "It will be sent, with all its attempts.\n",
        (false, _) => "It is dropped.\n",
    })
}

fn queue_report(runs: &[QueuedRunView]) -> String {
    if runs.is_empty() {
        return "Nothing waits for an answer.\n".to_owned();
    }
    let rows: Vec<Vec<String>> = runs
        .iter()
        .map(|queued| {
            vec![
                queued.run.id.clone(),
                queued.conversation.clone(),
                queued.person.clone().unwrap_or_default(),
                one_line(&queued.texts.join(" / "), TEXT_CHARS),
                span(queued.age_ms),
                queued.run.state.clone(),
                queued.run.attempt.to_string(),
                queued.why.clone(),
            ]
        })
        .collect();
    let header = [
        "id",
        "conversation",
        "who",
        "question",
        "age",
        "state",
        "attempt",
        "waits for",
    ];
    table(&header, &rows) + "\n`vocative queue cancel ID` ends one without a word in the room.\n"
}

fn dead_report(view: &DeadView) -> String {
    if view.runs.is_empty() && view.posts.is_empty() {
        return "Nothing was given up.\n".to_owned();
    }
    let runs = view.runs.iter().map(|dead| {
        vec![
            dead.run.id.clone(),
            "question".to_owned(),
            dead.conversation.clone(),
            one_line(&dead.text, TEXT_CHARS),
            dead.run.reason.clone().unwrap_or_default(),
        ]
    });
    let posts = view.posts.iter().map(|post| {
        vec![
            post.id.clone(),
            "post".to_owned(),
            post.chat.clone(),
            one_line(&post.text, TEXT_CHARS),
            post.reason.clone().unwrap_or_default(),
        ]
    });
    let rows: Vec<Vec<String>> = runs.chain(posts).collect();
    let advice = "\n`vocative dead show ID` shows all of one; `vocative dead retry ID` has it tried again (--all: every question), `vocative dead drop ID` forgets it.\n";
    table(&["id", "what", "where", "text", "why"], &rows) + advice
}

/// One given-up question or post in full.
fn whole(view: &DeadView) -> String {
    let run = view.runs.iter().map(|dead| {
        format!(
            "question {}\nagent     {}\nwhere     {}\nattempts  {}\nwhy       {}\n\n{}\n",
            dead.run.id,
            dead.run.agent,
            dead.conversation,
            dead.run.attempt,
            dead.run.reason.as_deref().unwrap_or("unknown"),
            dead.text
        )
    });
    run.chain(view.posts.iter().map(whole_post)).collect()
}

fn whole_post(post: &PostView) -> String {
    format!(
        "post      {}\nchat      {}\npart      {}\nattempts  {}\nwhy       {}\n\n{}\n",
        post.id,
        post.chat,
        post.part,
        post.attempts,
        post.reason.as_deref().unwrap_or("unknown"),
        post.text
    )
}
