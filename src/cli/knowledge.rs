//! `vocative knowledge`: collections of documents.

use std::fmt::Write as _;
use std::process::ExitCode;

use super::args::{KnowledgeCommand, SearchKnowledgeArgs, TableFormat};
use super::asking::ask;
use super::context::CliContext;
use super::error::{CliError, Exit};
use super::table::{instant, one_line, table};
use crate::admin::operations::AdminOperation;
use crate::admin::view::{CollectionView, DocumentView, KnowledgeView};
use vocative_core::approving::visible_line;

/// Characters of a path or title in the list.
const NAME_CHARS: usize = 60;

/// Lists collections or documents, searches, or has collections read again.
pub(super) async fn run(
    command: &KnowledgeCommand,
    context: &CliContext,
) -> Result<ExitCode, CliError> {
    match command {
        KnowledgeCommand::List { collection, format } => {
            list(collection.as_deref(), *format, context).await?;
        }
        KnowledgeCommand::Search(args) => search(args, context).await?,
        KnowledgeCommand::Refresh { collection } => {
            let operation = AdminOperation::RefreshKnowledge {
                collection: collection.clone(),
            };
            let asked: Vec<String> = ask(context, operation).await?;
            context.print(&match asked.is_empty() {
                true => "No collection was read yet.\n".to_owned(),
                false => format!("To be read again: {}.\n", asked.join(", ")),
            })?;
        }
    }
    Ok(Exit::Ok.into())
}

async fn list(
    collection: Option<&str>,
    format: TableFormat,
    context: &CliContext,
) -> Result<(), CliError> {
    let text = match collection {
        None => {
            let found: Vec<CollectionView> = ask(context, AdminOperation::Collections).await?;
            match format {
                TableFormat::Json => super::json_text(&found)?,
                TableFormat::Table => collections(&found),
            }
        }
        Some(name) => {
            let collection = name.to_owned();
            let operation = AdminOperation::Documents { collection };
            let found: Vec<DocumentView> = ask(context, operation).await?;
            match format {
                TableFormat::Json => super::json_text(&found)?,
                TableFormat::Table => documents(&found),
            }
        }
    };
    context.print(&text)
}

fn collections(found: &[CollectionView]) -> String {
    if found.is_empty() {
        return "There are no collections: [knowledge.NAME] makes one.\n".to_owned();
    }
    let cells: Vec<Vec<String>> = found
        .iter()
        .map(|it| {
            vec![
                it.name.clone(),
                it.documents.to_string(),
                it.chunks.to_string(),
                (it.bytes / 1_024).to_string(),
                it.cut.to_string(),
                it.refused.to_string(),
                instant(it.read_at_ms),
                if it.is_asked { "to be read again" } else { "" }.to_owned(),
            ]
        })
        .collect();
    let header = [
        "collection",
        "documents",
        "pieces",
        "KiB",
        "cut",
        "left out",
        "read",
        "",
    ];
    let mut out = table(&header, &cells);
    for collection in found {
        for problem in &collection.problems {
            let problem = visible_line(problem);
            let _ = writeln!(out, "\n{}: {problem}", collection.name);
        }
    }
    out + "\n`vocative knowledge list COLLECTION` shows its files.\n"
}

fn documents(found: &[DocumentView]) -> String {
    if found.is_empty() {
        return "No file was read yet.\n".to_owned();
    }
    let cells: Vec<Vec<String>> = found
        .iter()
        .map(|it| {
            let told = match &it.refused {
                Some(why) => format!("left out: {why}"),
                None if it.is_cut => "only its beginning is kept".to_owned(),
                None => String::new(),
            };
            vec![
                one_line(&visible_line(&it.path), NAME_CHARS),
                one_line(&visible_line(&it.title), NAME_CHARS),
                it.chunks.to_string(),
                it.bytes.to_string(),
                instant(Some(it.read_at_ms)),
                visible_line(&told),
            ]
        })
        .collect();
    table(&["file", "title", "pieces", "bytes", "read", ""], &cells)
}

async fn search(args: &SearchKnowledgeArgs, context: &CliContext) -> Result<(), CliError> {
    let mut queries = vec![args.query.join(" ")];
    queries.extend(args.wordings.iter().cloned());
    let operation = AdminOperation::SearchKnowledge {
        queries,
        collection: args.collection.clone(),
        limit: args.limit.get(),
    };
    let view: KnowledgeView = ask(context, operation).await?;
    context.print(&match args.format {
        TableFormat::Json => super::json_text(&view)?,
        TableFormat::Table => found(&view),
    })
}

fn found(view: &KnowledgeView) -> String {
    let mut out = String::new();
    for hit in &view.hits {
        let _ = write!(out, "{}", visible_line(&hit.source));
        if !hit.headings.is_empty() {
            let _ = write!(out, "  {}", visible_line(&hit.headings.join(" > ")));
        }
        let _ = match hit.similar {
            0 => writeln!(out),
            count => writeln!(out, "  (and {count} like it)"),
        };
        for line in hit.text.lines() {
            let _ = writeln!(out, "    {}", visible_line(line));
        }
        out.push('\n');
    }
    for note in &view.notes {
        let _ = writeln!(out, "{note}");
    }
    let or_more = if view.is_bounded { " or more" } else { "" };
    let _ = match (view.hits.len(), view.matches) {
        (0, _) => writeln!(out, "Nothing was found."),
        (shown, matches) if shown < matches => {
            writeln!(out, "{shown} of {matches}{or_more} pieces are shown.")
        }
        _ => Ok(()),
    };
    out
}
