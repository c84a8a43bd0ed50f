//! `vocative memory`: what agents remember, shown to and corrected by the operator.

use std::process::ExitCode;

use super::args::{MemorySubcommand, TableFormat};
use super::asking::ask;
use super::context::CliContext;
use super::error::{CliError, Exit};
use super::table::{instant, one_line, table};
use crate::admin::operations::{AdminOperation, ChangedMemory, MemoriesAsked};
use crate::admin::view::MemoryView;
use vocative_core::approving::visible_line;

/// Characters of an entry's text in the list.
const TEXT_CHARS: usize = 60;

/// Lists, shows and changes entries.
pub(super) async fn run(
    command: &MemorySubcommand,
    context: &CliContext,
) -> Result<ExitCode, CliError> {
    match command {
        MemorySubcommand::List(args) => {
            let asked = MemoriesAsked {
                channel: args.channel.clone(),
                agent: args.agent.clone(),
                person: args.person.clone(),
                all: args.all,
                before: args.before,
                limit: args.limit.get(),
            };
            let found: Vec<MemoryView> = ask(context, AdminOperation::Memories(asked)).await?;
            print(context, args.format, &found, || report(&found))?;
        }
        MemorySubcommand::Show { id, format } => {
            let found: MemoryView = ask(context, AdminOperation::Memory { id: *id }).await?;
            print(context, *format, &found, || shown(&found))?;
        }
        MemorySubcommand::Edit { id, text } => {
            let text = text.clone();
            let edit = ChangedMemory::Edit {
                text,
                version: None,
            };
            let changed = change(context, *id, edit).await?;
            context.print(&shown(&changed))?;
        }
        MemorySubcommand::Forget { id } => {
            change(context, *id, ChangedMemory::Forget).await?;
            context.print(&format!("{id} is forgotten.\n"))?;
        }
        MemorySubcommand::Share { id } => {
            change(context, *id, ChangedMemory::Share).await?;
            context.print(&format!("{id} may appear in the account's other rooms.\n"))?;
        }
        MemorySubcommand::Unshare { id } => {
            change(context, *id, ChangedMemory::Unshare).await?;
            context.print(&format!("{id} appears in its room only.\n"))?;
        }
    }
    Ok(Exit::Ok.into())
}

async fn change(
    context: &CliContext,
    id: i64,
    change: ChangedMemory,
) -> Result<MemoryView, CliError> {
    ask(context, AdminOperation::ChangeMemory { id, change }).await
}

fn print(
    context: &CliContext,
    format: TableFormat,
    found: &impl serde::Serialize,
    text: impl FnOnce() -> String,
) -> Result<(), CliError> {
    context.print(&match format {
        TableFormat::Json => super::json_text(found)?,
        TableFormat::Table => text(),
    })
}

fn about(entry: &MemoryView) -> String {
    match &entry.subject {
        None => "the room".to_owned(),
        Some(subject) => visible_line(&subject.name),
    }
}

fn place(entry: &MemoryView) -> String {
    let channel = entry.channel.as_deref().unwrap_or("?");
    format!("{channel}/{}", visible_line(&entry.chat_title))
}

fn report(entries: &[MemoryView]) -> String {
    if entries.is_empty() {
        return "Nothing is remembered.\n".to_owned();
    }
    let cells: Vec<Vec<String>> = entries
        .iter()
        .map(|entry| {
            vec![
                entry.id.to_string(),
                entry.agent.clone(),
                entry.kind.clone(),
                place(entry),
                visible_line(&entry.teller.name),
                about(entry),
                instant(Some(entry.since_ms)),
                instant(entry.until_ms),
                entry.share.clone(),
                one_line(&visible_line(&entry.text), TEXT_CHARS),
            ]
        })
        .collect();
    let header = [
        "id", "agent", "kind", "room", "said by", "about", "since", "until", "share", "text",
    ];
    table(&header, &cells) + "\n`vocative memory show ID` shows all of one.\n"
}

/// One entry in full, with the messages that say it.
fn shown(entry: &MemoryView) -> String {
    let mut lines = vec![
        format!("#{} of {} ({})", entry.id, entry.agent, entry.kind),
        format!("  room        {} ({})", place(entry), entry.chat),
        format!(
            "  said by     {} ({})",
            visible_line(&entry.teller.name),
            entry.teller.id
        ),
        format!("  about       {}", about(entry)),
        format!("  since       {}", instant(Some(entry.since_ms))),
    ];
    if let Some(until_ms) = entry.until_ms {
        let by = entry
            .replaced_by
            .map_or_else(String::new, |id| format!(", replaced by {id}"));
        lines.push(format!("  until       {}{by}", instant(Some(until_ms))));
    }
    lines.push(format!(
        "  appears     {}",
        match entry.share.as_str() {
            "team" => "in all rooms of the account",
            _ => "in its room",
        }
    ));
    lines.push(format!(
        "  came by     {}",
        match entry.origin.as_str() {
            "conversation" => "reading the conversation",
            "operator" => "an operator's words",
            _ => "a call of its tool",
        }
    ));
    lines.push(format!("  messages    {}", entry.sources.join(" ")));
    lines.push(format!("  text        {}", visible_line(&entry.text)));
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::view::MemoryPersonView;

    #[test]
    fn an_entry_is_shown_with_who_said_it_and_where_it_appears() {
        let ann = MemoryPersonView {
            id: "U0ANN".to_owned(),
            name: "Ann".to_owned(),
        };
        let entry = MemoryView {
            id: 12,
            version: 2,
            agent: "helper".to_owned(),
            kind: "fact".to_owned(),
            channel: Some("acme".to_owned()),
            chat: "C1".to_owned(),
            chat_title: "#general".to_owned(),
            teller: ann.clone(),
            subject: Some(ann),
            text: "is away\nin June".to_owned(),
            since_ms: 1_700_000_000_000,
            until_ms: Some(1_700_100_000_000),
            replaced_by: Some(13),
            sources: vec!["0198c5de-1234-7abc-8def-0123456789ab".to_owned()],
            share: "room".to_owned(),
            origin: "conversation".to_owned(),
            written_at_ms: 1_700_000_000_000,
        };
        let text = shown(&entry);
        for line in [
            "#12 of helper (fact)",
            "  room        acme/#general (C1)",
            "  said by     Ann (U0ANN)",
            "  until       2023-11-16 02:00:00, replaced by 13",
            "  appears     in its room",
            "  came by     reading the conversation",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} in {text}");
        }
        let listed = report(&[entry]);
        assert!(
            listed.contains("12  helper  fact  acme/#general  Ann"),
            "{listed}"
        );
        assert_eq!(report(&[]), "Nothing is remembered.\n");
    }
}
