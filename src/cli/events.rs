//! `vocative events`: what happened in a run or a conversation, and with `--follow` what happens from now on.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use super::args::{EventsArgs, TextFormat};
use super::asking::Answerer;
use super::context::{CliContext, reader_gone};
use super::error::{CliError, Exit};
use super::table::{instant, of_cache, one_line};
use crate::admin::operations::AdminOperation;
use crate::admin::told::{EventView, EventsView};

/// The pause between two looks for new events.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Characters of a text in a line for people; `--format json` has all.
const TEXT_CHARS: usize = 400;

/// Prints events, and goes on until the run has ended if asked to follow.
pub(super) async fn run(args: &EventsArgs, context: &CliContext) -> Result<ExitCode, CliError> {
    let mut answerer = Answerer::new(context)?;
    let followed = tokio::select! {
        followed = follow(args, context, &mut answerer) => followed,
        // Ends the command once nobody reads its output any more, even while nothing happens.
        () = reader_gone() => Ok(()),
    };
    answerer.close().await?;
    followed?;
    Ok(Exit::Ok.into())
}

async fn follow(
    args: &EventsArgs,
    context: &CliContext,
    answerer: &mut Answerer,
) -> Result<(), CliError> {
    let mut after = args.after;
    let mut is_first = true;
    loop {
        let view = page(args, answerer, after).await?;
        // Following a conversation starts with what comes next, because all of it would be long. A run, and anything
        // that is not followed, is told from its beginning.
        let is_whole = !(args.follow && view.is_conversation);
        if is_first && args.after.is_none() && is_whole {
            (is_first, after) = (false, Some(0));
            continue;
        }
        is_first = false;
        after = Some(view.next_after);
        let mut text = String::new();
        for event in &view.events {
            text.push_str(&line(event, args.format)?);
        }
        let is_read = context.print_on(&text)?;
        if !is_read {
            return Ok(());
        }
        if view.is_newest {
            if view.is_over || !args.follow {
                return Ok(());
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}

async fn page(
    args: &EventsArgs,
    answerer: &mut Answerer,
    after: Option<i64>,
) -> Result<EventsView, CliError> {
    let operation = AdminOperation::Events {
        target: args.target.clone(),
        after,
    };
    answerer.ask(operation).await
}

fn line(event: &EventView, format: TextFormat) -> Result<String, CliError> {
    match format {
        TextFormat::Text => Ok(shown(event)),
        TextFormat::Json => serde_json::to_string(event)
            .map(|text| text + "\n")
            .map_err(|cause| CliError::failed("an event can't be written as JSON", cause)),
    }
}

/// An event as a line for people.
fn shown(event: &EventView) -> String {
    let data = &event.data;
    let word = |name: &str| data[name].as_str().unwrap_or_default();
    let text = || one_line(word("text"), TEXT_CHARS);
    let step = data["step"].as_u64().unwrap_or(0);
    let said = match event.event.as_str() {
        "text" => format!("{step}: {}", text()),
        "tool_call" => {
            let asked = data["arguments"].as_str().unwrap_or(word("tool"));
            format!("{step}: {}", one_line(asked, TEXT_CHARS))
        }
        "tool_progress" => format!("{step}: {} ... {}", word("tool"), text()),
        "tool_result" => format!("{step}: {} -> {}", word("tool"), text()),
        "usage" => format!(
            "{step}: {} tokens read{}, {} written",
            data["prompt_tokens"],
            of_cache(
                data["cache_read_tokens"].as_u64().unwrap_or(0),
                data["cache_write_tokens"].as_u64().unwrap_or(0)
            ),
            data["completion_tokens"]
        ),
        "snapshot" => format!("{} {}: {}", word("run"), word("state"), text()),
        _ => {
            let reason = data["reason"].as_str();
            let reason = reason.map_or_else(String::new, |why| format!(": {why}"));
            format!("{} by {}{reason}", word("run"), word("agent"))
        }
    };
    let mut line = format!(
        "{:<19}  {:<11}  ",
        data["at_ms"]
            .as_i64()
            .map_or_else(String::new, |at_ms| instant(Some(at_ms))),
        event.event
    );
    let _ = writeln!(line, "{said}");
    line
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn events_are_lines_that_people_read() {
        let event = |name: &str, mut data: Value| {
            data["run"] = json!("0199-run");
            data["agent"] = json!("vocative");
            if name != "snapshot" {
                data["at_ms"] = json!(1_763_801_234_567_i64);
            }
            shown(&EventView {
                id: Some(7),
                event: name.to_owned(),
                data,
            })
        };
        let lines = [
            event("started", json!({})),
            event("text", json!({"step": 1, "text": "The deploy\nis "})),
            event(
                "tool_call",
                json!({"step": 1, "tool": "search", "arguments": "search {\"query\":\"x\"}"}),
            ),
            event(
                "tool_call",
                json!({"step": 1, "tool": "search", "arguments": null}),
            ),
            event(
                "tool_result",
                json!({"step": 1, "tool": "search", "text": "at three"}),
            ),
            event(
                "usage",
                json!({"step": 2, "prompt_tokens": 11, "cache_read_tokens": 8, "cache_write_tokens": 2,
                       "completion_tokens": 3}),
            ),
            event(
                "snapshot",
                json!({"state": "finished", "text": "At three."}),
            ),
            event("failed", json!({"reason": "the model gave no answer"})),
        ];
        insta::assert_snapshot!(lines.concat(), @r#"
        2025-11-22 08:47:14  started      0199-run by vocative
        2025-11-22 08:47:14  text         1: The deploy is
        2025-11-22 08:47:14  tool_call    1: search {"query":"x"}
        2025-11-22 08:47:14  tool_call    1: search
        2025-11-22 08:47:14  tool_result  1: search -> at three
        2025-11-22 08:47:14  usage        2: 11 tokens read (8 from the cache, 2 to it), 3 written
                             snapshot     0199-run finished: At three.
        2025-11-22 08:47:14  failed       0199-run by vocative: the model gave no answer
        "#);
    }
}
