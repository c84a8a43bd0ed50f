//! `vocative conversations`.

use std::fmt::Write as _;
use std::process::ExitCode;
use vocative_contract::work::looked_at;

use super::args::{ArchiveArgs, ListArgs, SearchArgs, ShowArgs, TableFormat, TitleArgs};
use super::asking::ask;
use super::context::CliContext;
use super::error::{CliError, Exit};
use super::table::{instant, of_cache, one_line, table};
use crate::admin::operations::AdminOperation;
use crate::admin::view::{
    BesideView, ConversationDetailView, ConversationView, EntryView, HappeningView,
    ParticipantsView, SearchFilterView, SearchView, TurnView,
};
use vocative_core::counted::counted;
use vocative_core::price::shown_amount;

/// Characters of a tool's call or result in the table; `--format json` has all.
const TOOL_TEXT_CHARS: usize = 400;

/// Characters of a title in the list.
const TITLE_CHARS: usize = 40;

/// The fewest characters of an id in the list; more are shown where ids begin alike.
const ID_CHARS_MIN: usize = 18;

/// Lists conversations, the most recently active first.
pub(super) async fn list(args: &ListArgs, context: &CliContext) -> Result<ExitCode, CliError> {
    let operation = AdminOperation::Conversations {
        channel: args.channel.clone(),
        limit: args.limit.get(),
        all: args.all,
        before: None,
    };
    let views: Vec<ConversationView> = ask(context, operation).await?;
    let text = match args.format {
        TableFormat::Json => super::json_text(&views)?,
        TableFormat::Table if views.is_empty() => "There are no conversations yet.\n".to_owned(),
        TableFormat::Table => {
            let ids: Vec<&str> = views.iter().map(|view| view.id.as_str()).collect();
            let id_chars = telling_chars(&ids);
            let rows: Vec<Vec<String>> = views.iter().map(|view| row(view, id_chars)).collect();
            table(
                &[
                    "id",
                    "name",
                    "title",
                    "scope",
                    "turns",
                    "last activity (UTC)",
                    "",
                ],
                &rows,
            )
        }
    };
    context.print(&text)?;
    Ok(Exit::Ok.into())
}

/// How many characters tell all these ids apart; ids from one import begin alike.
fn telling_chars(ids: &[&str]) -> usize {
    let mut sorted = ids.to_vec();
    sorted.sort_unstable();
    let shared = |pair: &[&str]| {
        let both = pair[0].chars().zip(pair[1].chars());
        both.take_while(|(one, other)| one == other).count()
    };
    let longest = sorted.windows(2).map(shared).max().unwrap_or(0);
    ID_CHARS_MIN.max(longest + 1)
}

fn row(view: &ConversationView, id_chars: usize) -> Vec<String> {
    vec![
        view.id.chars().take(id_chars).collect(),
        view.name.clone(),
        one_line(&view.title, TITLE_CHARS),
        view.scope.clone(),
        view.turns.to_string(),
        instant(Some(view.last_activity_ms)),
        standing(view),
    ]
}

/// The run in progress in a conversation, and whether the conversation is archived.
fn standing(view: &ConversationView) -> String {
    let run = view
        .active_run
        .as_ref()
        .map(|run| format!("{}: {}", run.agent, run.state));
    let archived = view.archived_at_ms.map(|_| "archived".to_owned());
    let both: Vec<String> = run.into_iter().chain(archived).collect();
    both.join("; ")
}

/// Gives a conversation a title, or removes its own.
pub(super) async fn title(args: &TitleArgs, context: &CliContext) -> Result<ExitCode, CliError> {
    let operation = AdminOperation::TitleConversation {
        name: args.conversation.clone(),
        title: args.title.clone(),
    };
    let view: ConversationView = ask(context, operation).await?;
    context.print(&format!("{} is now called {}\n", view.name, view.title))?;
    Ok(Exit::Ok.into())
}

/// Archives a conversation, or takes it out of the archive.
pub(super) async fn archive(
    args: &ArchiveArgs,
    archived: bool,
    context: &CliContext,
) -> Result<ExitCode, CliError> {
    let operation = AdminOperation::ArchiveConversation {
        name: args.conversation.clone(),
        archived,
    };
    let view: ConversationView = ask(context, operation).await?;
    let text = if archived {
        format!(
            "{} is archived: `conversations list` leaves it out until something new is said there.\n",
            view.name
        )
    } else {
        format!("{} is not archived.\n", view.name)
    };
    context.print(&text)?;
    Ok(Exit::Ok.into())
}

/// Shows the turns of one conversation, in the room's order.
pub(super) async fn show(args: &ShowArgs, context: &CliContext) -> Result<ExitCode, CliError> {
    let operation = AdminOperation::Conversation {
        name: args.conversation.clone(),
        limit: args.limit.get(),
        timeline: args.timeline,
        before: args.before,
    };
    let view: ConversationDetailView = ask(context, operation).await?;
    let text = match args.format {
        TableFormat::Json => super::json_text(&view)?,
        TableFormat::Table => report(&view),
    };
    context.print(&text)?;
    Ok(Exit::Ok.into())
}

/// Searches in a conversation.
pub(super) async fn search(args: &SearchArgs, context: &CliContext) -> Result<ExitCode, CliError> {
    let operation = AdminOperation::Search {
        name: args.conversation.clone(),
        query: args.query.join(" "),
        wordings: args.wordings.clone(),
        filter: SearchFilterView {
            from: args.from.clone(),
            after_ms: args.after,
            before_ms: args.before,
            files: args.files.clone(),
        },
        limit: args.limit.get(),
        threads: args.threads,
    };
    let view: SearchView = ask(context, operation).await?;
    let text = match args.format {
        TableFormat::Json => super::json_text(&view)?,
        TableFormat::Table => found(&view),
    };
    context.print(&text)?;
    Ok(Exit::Ok.into())
}

fn found(view: &SearchView) -> String {
    let mut out = String::new();
    for hit in &view.hits {
        for it in hit.replies_to.iter().chain(&hit.before) {
            beside(&mut out, it);
        }
        let text = hit.text.replace('\n', "\n        ");
        let at = instant(Some(hit.sent_at_ms));
        let _ = write!(out, "{:>6}  {at}  {}: {text}", hit.seq, hit.speaker);
        let _ = match hit.similar {
            0 => writeln!(out),
            count => writeln!(out, "  (and {count} like it)"),
        };
        for it in hit.after.iter().chain(&hit.answered_by) {
            beside(&mut out, it);
        }
        if let Some(link) = &hit.link {
            let _ = writeln!(out, "        {link}");
        }
    }
    let or_more = if view.is_bounded { " or more" } else { "" };
    let _ = match (view.hits.len(), view.matches) {
        (0, _) => writeln!(out, "Nothing was found."),
        (shown, matches) if shown < matches => {
            writeln!(out, "{shown} of {matches}{or_more} matches are shown.")
        }
        _ => Ok(()),
    };
    for note in &view.notes {
        let _ = writeln!(out, "{note}");
    }
    out
}

/// A message next to a hit; the dot behind its number tells it from a hit.
fn beside(out: &mut String, it: &BesideView) {
    let text = it.text.replace('\n', " ");
    let at = instant(Some(it.sent_at_ms));
    let _ = writeln!(out, "{:>6}. {at}  {}: {text}", it.seq, it.speaker);
}

fn report(view: &ConversationDetailView) -> String {
    let mut out = String::new();
    let head = &view.conversation;
    let _ = writeln!(
        out,
        "{}  {}  ({}, {})",
        head.id,
        head.name,
        head.scope,
        counted(head.turns, "turn", "turns")
    );
    out.push_str(&head_lines(head, &view.participants));
    out.push('\n');
    if let Some(root) = &view.root {
        turn_lines(&mut out, root);
        work_lines(&mut out, root);
        out.push_str("        (in the room; the thread below hangs on it)\n");
    }
    if view.timeline.is_empty() {
        for turn in &view.turns {
            turn_lines(&mut out, turn);
            work_lines(&mut out, turn);
        }
    }
    for entry in &view.timeline {
        entry_lines(&mut out, entry, &view.turns);
    }
    if let Some(seq) = view.older_before {
        let _ = writeln!(out, "\nThere are older ones: --before {seq}");
    }
    out
}

/// The cost of a run; empty where its models have no prices.
fn costing(cost_micros: u64) -> String {
    match cost_micros {
        0 => String::new(),
        _ => format!(", cost {}", shown_amount(cost_micros)),
    }
}

/// The models that answered a run's steps.
fn by_models(models: &[String]) -> String {
    match models {
        [] => String::new(),
        models => format!(", by {}", models.join(" and ")),
    }
}

/// The calls by which a run has read content that its askers did not write.
fn having_read(read: &[String]) -> String {
    match read {
        [] => String::new(),
        read => format!(", read what others wrote: {}", read.join(", ")),
    }
}

/// What hooks said about a run.
fn judged(hooks: &[String]) -> String {
    match hooks {
        [] => String::new(),
        hooks => format!(", hooks: {}", hooks.join("; ")),
    }
}

fn entry_lines(out: &mut String, entry: &EntryView, turns: &[TurnView]) {
    let at = instant(Some(entry.at_ms));
    let because = |reason: &Option<String>| {
        reason
            .as_deref()
            .map_or_else(String::new, |reason| format!(" ({reason})"))
    };
    let _ = match &entry.what {
        HappeningView::Turn(seq) => {
            if let Some(turn) = turns.iter().find(|turn| turn.seq == *seq) {
                turn_lines(out, turn);
            }
            Ok(())
        }
        HappeningView::Run(run) => writeln!(
            out,
            "   run  {at}  {} {}: {}{}, attempt {}, {}{} + {} tokens{}{}{}{}",
            run.id,
            run.agent,
            run.state,
            because(&run.reason),
            run.attempt,
            run.prompt_tokens,
            of_cache(run.cache_read_tokens, run.cache_write_tokens),
            run.completion_tokens,
            costing(run.cost_micros),
            by_models(&run.models),
            having_read(&run.read),
            judged(&run.hooks)
        ),
        HappeningView::Post(post) => writeln!(
            out,
            "  post  {at}  part {}: {}{}{}, attempts {}",
            post.part,
            post.state,
            post.message_id
                .as_deref()
                .map_or_else(String::new, |id| format!(" as {id}")),
            because(&post.reason),
            post.attempts
        ),
        HappeningView::Summary(summary) => writeln!(
            out,
            "folded  {at}  {}: summary {} of {}, {}",
            summary.agent,
            summary.id,
            counted(summary.turns, "turn", "turns"),
            summary.state
        ),
    };
}

fn head_lines(head: &ConversationView, participants: &ParticipantsView) -> String {
    let source = &head.source;
    let kind = source.kind.as_deref().unwrap_or("kind not known yet");
    let mut out = format!(
        "title         {}\nsource        {} ({}), {} {kind}\n",
        head.title,
        source.channel,
        source.platform,
        source.chat_title.as_deref().unwrap_or(&head.chat)
    );
    let mut names: Vec<String> = participants
        .shown
        .iter()
        .map(|one| format!("{} ({})", one.name, one.turns))
        .collect();
    if participants.more > 0 {
        names.push(format!("and {} more", participants.more));
    }
    if !names.is_empty() {
        let _ = writeln!(out, "participants  {}", names.join(", "));
    }
    let _ = writeln!(
        out,
        "last activity {}",
        instant(Some(head.last_activity_ms))
    );
    let standing = standing(head);
    if !standing.is_empty() {
        let _ = writeln!(out, "now           {standing}");
    }
    out
}

fn turn_lines(out: &mut String, turn: &TurnView) {
    let mut marks = Vec::new();
    if !turn.addressed_to.is_empty() {
        marks.push(format!("to {}", turn.addressed_to.join(", ")));
    }
    if turn.revision > 1 {
        marks.push("edited".to_owned());
    }
    if turn.visibility != "room" {
        marks.push(turn.visibility.clone());
    }
    let marks = if marks.is_empty() {
        String::new()
    } else {
        format!("  [{}]", marks.join("; "))
    };
    let is_tool = turn.kind.starts_with("tool_");
    let verb = match turn.kind.as_str() {
        "tool_call" => " calls",
        "tool_result" => " answers",
        _ => "",
    };
    let text = if is_tool {
        shortened(&turn.text)
    } else {
        turn.text.clone()
    };
    let text = indented(&text);
    let _ = writeln!(
        out,
        "{:>6}  {}  {}{verb}: {text}{marks}",
        turn.seq,
        instant(Some(turn.sent_at_ms)),
        turn.speaker
    );
}

/// Indents all lines after the first.
pub(super) fn indented(text: &str) -> String {
    looked_at(text.len());
    text.replace('\n', "\n        ")
}

/// Runs that are not done, and posts that are not sent.
fn work_lines(out: &mut String, turn: &TurnView) {
    for run in turn.runs.iter().filter(|run| run.state != "done") {
        let reason = run.reason.as_deref().unwrap_or_default();
        let _ = writeln!(out, "        run of {}: {} {reason}", run.agent, run.state);
    }
    for post in turn.posts.iter().filter(|post| post.state != "sent") {
        let reason = post.reason.as_deref().unwrap_or_default();
        let _ = writeln!(out, "        post {}: {} {reason}", post.part, post.state);
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(TOOL_TEXT_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_ids_tell_their_conversations_apart() {
        let (first, second) = (
            "01a20164-517f-7708-b1db-e7c8cc154f1b",
            "01a20164-517f-7708-b1db-e7ca19e594d8",
        );
        assert_eq!(telling_chars(&[]), 18);
        assert_eq!(telling_chars(&[first]), 18);
        let shown = telling_chars(&[second, "01a20165", first]);
        assert_ne!(first[..shown], second[..shown]);
        assert_eq!(first[..shown - 1], second[..shown - 1]);
    }
}
