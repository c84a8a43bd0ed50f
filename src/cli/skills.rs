//! `vocative skills`: the skills, their texts, and who approved them.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::process::ExitCode;

use serde::de::DeserializeOwned;

use super::args::{SkillsCommand, TableFormat};
use super::asking::ask;
use super::context::CliContext;
use super::error::{CliError, Exit};
use super::table::{instant, one_line, table};
use crate::admin::operations::{AdminOperation, SkillsOperation};
use crate::admin::view::{SkillTextView, SkillView};
use crate::config::Config;
use crate::skills::Shelf;
use vocative_core::approving::visible_line;

/// Characters of a description or a cause in a list.
const TOLD_CHARS: usize = 60;
/// Characters of a digest that are shown: enough that no other skill can be made with the same.
const DIGEST_CHARS: usize = 32;

/// Lists skills, shows one, approves one, or revokes an approval.
pub(super) async fn run(
    command: &SkillsCommand,
    context: &CliContext,
) -> Result<ExitCode, CliError> {
    match command {
        SkillsCommand::List { format } => {
            let skills: Vec<SkillView> = asked(context, SkillsOperation::List).await?;
            let text = match format {
                TableFormat::Json => super::json_text(&skills)?,
                TableFormat::Table => report(&skills),
            };
            context.print(&text)?;
        }
        SkillsCommand::Show { name, format } => {
            let name = name.clone();
            let shown: SkillTextView = asked(context, SkillsOperation::Show { name }).await?;
            let text = match format {
                TableFormat::Json => super::json_text(&shown)?,
                TableFormat::Table => whole(&shown),
            };
            context.print(&text)?;
        }
        SkillsCommand::Approve { name, digest, by } => {
            let operation = SkillsOperation::Approve {
                name: name.clone(),
                digest: digest.clone(),
                by: by.clone(),
            };
            let skill: SkillView = asked(context, operation).await?;
            context.print(&approved(&skill))?;
        }
        SkillsCommand::Revoke { name, by } => {
            let operation = SkillsOperation::Revoke {
                name: name.clone(),
                by: by.clone(),
            };
            let _: bool = asked(context, operation).await?;
            context.print(&format!("{name} is not used any more.\n"))?;
        }
    }
    Ok(Exit::Ok.into())
}

async fn asked<T: DeserializeOwned>(
    context: &CliContext,
    operation: SkillsOperation,
) -> Result<T, CliError> {
    ask(context, AdminOperation::Skills(operation)).await
}

/// Warnings about agents' skills that will not be used, for `vocative check`.
pub(super) async fn warnings(config: &Config, context: &CliContext) -> Vec<String> {
    let named = config
        .agents
        .values()
        .flat_map(|agent| &agent.settings.skills);
    let names: BTreeSet<&String> = named.collect();
    if names.is_empty() {
        return Vec::new();
    }
    let names: Vec<String> = names.into_iter().cloned().collect();
    let shelf = Shelf::new(&config.skill_folders);
    let found = shelf.named(&names).await;
    // Without a database, no skill is approved yet.
    let known: Vec<SkillView> = asked(context, SkillsOperation::List)
        .await
        .unwrap_or_default();
    let told = |name: &String| {
        let Some(found) = found.iter().find(|found| found.name == *name) else {
            return Some(format!(
                "skill {name}: no folder of that name is in skills.folders"
            ));
        };
        let skill = match &found.skill {
            Ok(skill) => skill,
            Err(why) => return Some(format!("skill {name} can't be used: {}", visible_line(why))),
        };
        let is_approved = known
            .iter()
            .any(|view| view.state == "approved" && view.digest.as_ref() == Some(&skill.digest));
        (!is_approved).then(|| {
            format!("skill {name} waits for approval: `vocative skills show {name}` says how")
        })
    };
    names.iter().filter_map(told).collect()
}

fn report(skills: &[SkillView]) -> String {
    if skills.is_empty() {
        return "There are no skills in skills.folders.\n".to_owned();
    }
    let cells = |skill: &SkillView| {
        let told = skill.cause.as_ref().unwrap_or(&skill.description);
        vec![
            visible_line(&skill.name),
            skill.state.clone(),
            skill.agents.join(", "),
            skill
                .approved_by
                .as_deref()
                .map(visible_line)
                .unwrap_or_default(),
            instant(skill.approved_at_ms),
            one_line(&visible_line(told), TOLD_CHARS),
        ]
    };
    let cells: Vec<Vec<String>> = skills.iter().map(cells).collect();
    let header = [
        "skill",
        "state",
        "agents",
        "approved by",
        "at",
        "what it says of itself",
    ];
    let waits = skills.iter().any(SkillView::is_waiting);
    let advice =
        "\n`vocative skills show NAME` shows one that is new or changed, and how to approve it.\n";
    table(&header, &cells) + if waits { advice } else { "" }
}

fn whole(shown: &SkillTextView) -> String {
    let skill = &shown.skill;
    let mut out = format!("{}: {}\n", visible_line(&skill.name), skill.state);
    for (word, text) in [
        ("is for", Some(&skill.description)),
        ("is in", skill.folder.as_ref()),
        ("is broken", skill.cause.as_ref()),
        ("approved by", skill.approved_by.as_ref()),
    ] {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            let _ = writeln!(out, "  {word:<12} {}", visible_line(text));
        }
    }
    for file in &shown.files {
        let path = visible_line(&file.path);
        match &file.text {
            Some(text) => {
                let _ = writeln!(out, "\n--- {path}");
                for line in text.lines() {
                    let _ = writeln!(out, "{}", visible_line(line));
                }
            }
            None => {
                let _ = writeln!(out, "\n--- {path}: {} bytes, no text", file.bytes);
            }
        }
    }
    if let (Some(digest), true) = (&skill.digest, skill.is_waiting()) {
        let _ = writeln!(
            out,
            "\nTo let agents have it as it is here:\n  vocative skills approve {} --digest {} --by NAME",
            skill.name,
            short(digest)
        );
    }
    out
}

fn approved(skill: &SkillView) -> String {
    match skill.agents.as_slice() {
        [] => format!(
            "{} is approved. No agent has it yet: name it in `skills` of one.\n",
            skill.name
        ),
        agents => format!("{} is approved, for {}.\n", skill.name, agents.join(", ")),
    }
}

fn short(digest: &str) -> &str {
    digest.get(..DIGEST_CHARS).unwrap_or(digest)
}
