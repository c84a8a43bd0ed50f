//! `vocative prompt`: the exact prompt that the model would be sent.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read as _};
use std::path::Path;
use std::process::ExitCode;

use super::args::{PromptArgs, TextFormat};
use super::asking::ask;
use super::context::CliContext;
use super::error::{CliError, Exit};
use crate::admin::operations::AdminOperation;
use crate::admin::view::{AsSentView, PromptView};
use crate::agent::prompting::agent_view;
use crate::daemon::start::wall_clock;
use crate::daemon::wiring;
use crate::tools::mcp::McpServers;
use crate::transcripts::lines::{self, LinesRequest};
use crate::transcripts::transcript;
use vocative_core::counted::counted;
use vocative_core::prompting::{PromptPart, view};

/// Shows the prompt of a conversation, of a run, or of a transcript.
pub(super) async fn run(args: &PromptArgs, context: &CliContext) -> Result<ExitCode, CliError> {
    let text = match (&args.transcript, &args.conversation) {
        (Some(path), _) => of_transcript(path, args.agent.as_deref(), context).await?,
        (None, name) => {
            let operation = match &args.run {
                Some(run) => AdminOperation::SentPrompt { run: run.clone() },
                None => AdminOperation::Prompt {
                    name: name.clone().unwrap_or_default(),
                    agent: args.agent.clone(),
                    at: args.at,
                },
            };
            let view: PromptView = ask(context, operation).await?;
            match args.format {
                TextFormat::Json => super::json_text(&view)?,
                TextFormat::Text => report(&view, args.stats),
            }
        }
    };
    context.print(&text)?;
    Ok(Exit::Ok.into())
}

async fn of_transcript(
    path: &Path,
    agent: Option<&str>,
    context: &CliContext,
) -> Result<String, CliError> {
    let unread = |cause| CliError::failed(format!("{} can't be read", path.display()), cause);
    let mut reader: Box<dyn BufRead> = if path.as_os_str() == "-" {
        Box::new(BufReader::new(std::io::stdin()))
    } else {
        Box::new(BufReader::new(File::open(path).map_err(unread)?))
    };
    let mut first = String::new();
    reader.read_line(&mut first).map_err(unread)?;
    let prompt = if lines::is_message_line(&first) {
        let reader = Cursor::new(first).chain(reader);
        lines::run_lines(reader, request(agent, context)?).await
    } else if agent.is_some() {
        return Err(CliError::Usage(
            "this transcript names its agent; --agent is for what `conversations export` wrote"
                .to_owned(),
        ));
    } else {
        reader.read_to_string(&mut first).map_err(unread)?;
        transcript::run_transcript(&first).await
    };
    let prompt = prompt
        .map_err(|cause| CliError::failed(format!("{} can't be used", path.display()), cause))?;
    super::json_text(&view::PromptView::from(&prompt))
}

/// The request for the prompt of an export, with the agents of the configuration if there is one.
fn request(agent: Option<&str>, context: &CliContext) -> Result<LinesRequest, CliError> {
    let config = match context.load_config() {
        Ok((config, _)) => Some(config),
        Err(cause) if context.global.config.is_some() => return Err(cause),
        Err(_) => None,
    };
    let specs = match &config {
        Some(config) => wiring::agents(config, None, &McpServers::default())?,
        None => Vec::new(),
    };
    let agents = specs.into_iter().map(|spec| {
        let view = agent_view(&spec, None);
        (spec.name.to_string(), (view, spec.options))
    });
    Ok(LinesRequest {
        agent: agent.map(str::to_owned),
        agents: agents.collect(),
        now_ms: (wall_clock())(),
    })
}

fn report(view: &PromptView, with_stats: bool) -> String {
    let mut out = String::new();
    for message in &view.messages {
        let _ = writeln!(out, "--- {}\n{}", message.role, message.content);
    }
    let recalled = match view.recalled_tokens {
        0 => String::new(),
        tokens => format!(", {tokens} of found lines"),
    };
    let _ = writeln!(
        out,
        "\n{} for {}: {} tokens and {} of instructions{recalled} (by {}); {} of {} left",
        view.conversation,
        view.agent,
        view.tokens,
        view.instruction_tokens,
        view.counter,
        view.tokens_left,
        view.token_budget
    );
    if let Some(sent) = &view.as_sent {
        as_sent(sent, &mut out);
    } else if let Some(run) = &view.answered_run {
        let _ = writeln!(
            out,
            "{} has spoken last here; what it was sent: vocative prompt --run {run}",
            view.agent
        );
    } else if let Some(seq) = view.answered_seq {
        let _ = writeln!(
            out,
            "{} has spoken last here; what it was sent for the message before: --at {seq}",
            view.agent
        );
    }
    if view.has_chat_options {
        out.push_str(
            "this chat has prompt options of its own; `vocative config show` lists them\n",
        );
    }
    left_out(view, &mut out);
    if !view.has_identity {
        out.push_str("the bot was not connected here yet, so its own mentions stand as its id\n");
    }
    if with_stats {
        stats(view, &mut out);
    }
    out
}

/// Says whether the prompt is what the run was sent, and what differs.
fn as_sent(sent: &AsSentView, out: &mut String) {
    let tools = match sent.tools.as_slice() {
        [] => "no tools".to_owned(),
        tools => format!("the tools {}", tools.join(", ")),
    };
    let (run, model) = (&sent.run, &sent.model);
    if sent.is_same {
        let _ = writeln!(out, "as it was sent: run {run}, {model}, with {tools}");
        return;
    }
    let _ = writeln!(
        out,
        "not as it was sent: run {run}, {model}, with {tools}; what differs now:"
    );
    for change in &sent.changes {
        let _ = writeln!(out, "  {change}");
    }
}

/// Says what is not in the prompt, and why.
fn left_out(view: &PromptView, out: &mut String) {
    let cut = view.omitted.iter().filter(|o| o.tokens_left_out.is_some());
    let cut = cut.count();
    let _ = writeln!(
        out,
        "loaded: {}, of them {} whole in the prompt, {cut} cut, {} left out",
        counted(view.turns_loaded, "turn", "turns"),
        view.turns_in_prompt.saturating_sub(cut),
        view.omitted.len().saturating_sub(cut)
    );
    for omitted in &view.omitted {
        let tokens = omitted.tokens_left_out;
        let tokens = tokens.map_or_else(String::new, |tokens| format!(", {tokens} tokens"));
        let _ = writeln!(
            out,
            "left out: seq {} by {}: {}{tokens} ({})",
            omitted.seq, omitted.speaker, omitted.why, omitted.meaning
        );
    }
    if view.turns_summarized > 0 {
        let place = if view.has_summary {
            "stands"
        } else {
            "has no room here, and stood"
        };
        let _ = writeln!(
            out,
            "summarised: the summary {place} for {}",
            counted(view.turns_summarized, "turn", "turns")
        );
    }
    if view.turns_not_read > 0 {
        let _ = writeln!(
            out,
            "not read: {} of {} here, which {}",
            view.turns_not_read,
            counted(view.turns_of_conversation, "turn", "turns"),
            view.not_read_because.join(", or ")
        );
    }
}

fn stats(view: &PromptView, out: &mut String) {
    let _ = writeln!(
        out,
        "read: {}, {} ({} by full scans, {}, {} of SQLite)",
        counted(view.turns_loaded, "turn", "turns"),
        counted(view.rows_read, "row", "rows"),
        view.scan_steps,
        counted(view.sorts, "sort", "sorts"),
        counted(view.vm_steps, "instruction", "instructions")
    );
    for part in PromptPart::ALL.map(PromptPart::name) {
        let costs: Vec<_> = view.costs.iter().filter(|cost| cost.part == part).collect();
        if costs.is_empty() {
            continue;
        }
        let tokens: usize = costs.iter().map(|cost| cost.tokens).sum();
        let each: Vec<String> = costs
            .iter()
            .filter_map(|cost| Some(format!("seq {}: {}", cost.seq?, cost.tokens)))
            .collect();
        let each = if each.is_empty() {
            String::new()
        } else {
            format!(" ({})", each.join(", "))
        };
        let _ = writeln!(out, "cost: {part} {tokens}{each}");
    }
    let _ = writeln!(
        out,
        "cost: of all that, overhead {} ({} a message)",
        view.overhead_per_message * view.messages.len(),
        view.overhead_per_message
    );
    let _ = writeln!(
        out,
        "left: {} of {} tokens (token_budget, within the model's context)",
        view.tokens_left, view.token_budget
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::view::{MessageCostView, OmittedView, PromptMessageView};

    fn view() -> PromptView {
        let message = |role: &str, content: &str| PromptMessageView {
            role: role.to_owned(),
            content: content.to_owned(),
        };
        let cost = |part: &str, seq, tokens| MessageCostView {
            part: part.to_owned(),
            seq,
            tokens,
        };
        PromptView {
            conversation: "acme/#general".to_owned(),
            agent: "kael".to_owned(),
            answered_seq: Some(99),
            messages: vec![
                message("system", "Summary of earlier turns: pears."),
                message("user", "Ann: and … [cut: 70 tokens left out]"),
                message("user", "Bob: yes?"),
            ],
            tokens: 90,
            instruction_tokens: 0,
            recalled_tokens: 31,
            token_budget: 100,
            tokens_left: 10,
            has_chat_options: true,
            costs: vec![
                cost("summary", None, 20),
                cost("history", Some(98), 60),
                cost("recalled", None, 12),
                cost("recalled", Some(7), 19),
                cost("trigger", Some(99), 10),
            ],
            overhead_per_message: 4,
            turns_loaded: 3,
            turns_in_prompt: 2,
            turns_of_conversation: 100_000,
            turns_summarized: 40,
            turns_not_read: 99_957,
            not_read_because: vec!["do not concern kael (addressed_only)".to_owned()],
            rows_read: 12,
            scan_steps: 0,
            sorts: 0,
            vm_steps: 700,
            has_summary: true,
            has_older: false,
            counter: "class_v1".to_owned(),
            has_identity: true,
            answered_run: None,
            as_sent: None,
            omitted: vec![
                OmittedView {
                    seq: 97,
                    speaker: "Ann".to_owned(),
                    why: "over_budget".to_owned(),
                    meaning: "newer turns used token_budget".to_owned(),
                    tokens_left_out: None,
                },
                OmittedView {
                    seq: 98,
                    speaker: "Ann".to_owned(),
                    why: "cut".to_owned(),
                    meaning: "it is too long".to_owned(),
                    tokens_left_out: Some(70),
                },
            ],
        }
    }

    #[test]
    fn every_omission_and_every_cost_is_in_the_report() {
        insta::assert_snapshot!(report(&view(), true), @r"
        --- system
        Summary of earlier turns: pears.
        --- user
        Ann: and … [cut: 70 tokens left out]
        --- user
        Bob: yes?

        acme/#general for kael: 90 tokens and 0 of instructions, 31 of found lines (by class_v1); 10 of 100 left
        kael has spoken last here; what it was sent for the message before: --at 99
        this chat has prompt options of its own; `vocative config show` lists them
        loaded: 3 turns, of them 1 whole in the prompt, 1 cut, 1 left out
        left out: seq 97 by Ann: over_budget (newer turns used token_budget)
        left out: seq 98 by Ann: cut, 70 tokens (it is too long)
        summarised: the summary stands for 40 turns
        not read: 99957 of 100000 turns here, which do not concern kael (addressed_only)
        read: 3 turns, 12 rows (0 by full scans, 0 sorts, 700 instructions of SQLite)
        cost: summary 20
        cost: history 60 (seq 98: 60)
        cost: recalled 31 (seq 7: 19)
        cost: trigger 10 (seq 99: 10)
        cost: of all that, overhead 12 (4 a message)
        left: 10 of 100 tokens (token_budget, within the model's context)
        ");
    }
}
