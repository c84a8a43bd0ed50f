//! The prompt X-ray: what a model was or would be sent, part by part, and what was left out, each with why and with the
//! setting that changes it.

use std::collections::BTreeMap;

use axum::extract::{Path, Query, State};
use maud::{Markup, html};
use serde::Deserialize;

use super::PageResult;
use super::rooms::look_form;
use crate::desk::Ask;
use crate::page::Page;
use crate::show;
use crate::state::{ConsoleState, Who};
use crate::views::{AsSent, Message, MessageCost, Omitted, Prompt, RoomLine, Story};

/// Longer texts are collapsed.
const OPEN_MAX_CHARS: usize = 600;
/// The width of the bar, in its own units.
const BAR_WIDTH: u64 = 1_000;

#[derive(Deserialize)]
pub(crate) struct PromptQuery {
    agent: Option<String>,
    at: Option<String>,
}

/// The prompt that an agent would be sent in a room now, or after an earlier turn.
pub(crate) async fn next_prompt(
    State(console): State<ConsoleState>,
    who: Who,
    Path(id): Path<String>,
    Query(query): Query<PromptQuery>,
) -> PageResult {
    let head: RoomLine = console.ask(Ask::RoomHead(id)).await?;
    let room = head.room();
    let path = format!("/rooms/{}/prompt", room.id);
    let (agent, at) = (query.agent.filter(|it| !it.is_empty()), query.at);
    let shown = if console.shows(&who, &room) {
        let asked = Ask::Prompt {
            room: room.id.clone(),
            agent: agent.clone(),
            at: at.as_deref().and_then(|at| at.trim().parse().ok()),
        };
        match console.desk.ask(asked).await {
            Ok(view) => {
                let prompt: Prompt = serde_json::from_value(view).unwrap_or_default();
                html! {
                    p.verdict.info {
                        "This would be sent to " b { (prompt.agent) } " if somebody asked now. "
                        @if let Some(run) = &prompt.answered_run {
                            a.xray href={ "/runs/" (run) "/prompt" } { "What was sent for its newest answer?" }
                        }
                    }
                    (xray(&prompt))
                }
            }
            Err(cause) => html! { p.note.warn { (show::word(cause.what())) } },
        }
    } else {
        look_form(&who, &room, &path)
    };
    let body = html! {
        p { a href={ "/rooms/" (room.id) } { (show::word(&room.name)) } }
        form.tools method="get" action=(path) {
            label for="agent" { "Agent" }
            input #agent name="agent" value=(agent.unwrap_or_default()) placeholder="who spoke last" size="16";
            label for="at" { "As of turn" }
            input #at name="at" value=(at.unwrap_or_default()) placeholder="newest" size="8" inputmode="numeric";
            button type="submit" { "Show" }
        }
        (shown)
    };
    let page = Page {
        title: "Prompt X-ray",
        at: "/rooms",
        body,
    };
    page.shown(&console, &who).await
}

/// What a run's model was sent.
pub(crate) async fn sent_prompt(
    State(console): State<ConsoleState>,
    who: Who,
    Path(id): Path<String>,
) -> PageResult {
    let story: Story = console.ask(Ask::Run(id)).await?;
    let path = format!("/runs/{}/prompt", story.id);
    let shown = if console.shows(&who, &story.room) {
        let prompt: Prompt = console.ask(Ask::SentPrompt(story.id.clone())).await?;
        html! {
            @if let Some(sent) = &prompt.as_sent { (as_sent(sent)) }
            @if let Some(asked) = story.asked.last() {
                div.exchange {
                    div.question { p.by { b { (show::word(&asked.by)) } " asked" } (show::said(&asked.text)) }
                    @if let Some(said) = story.said.last() {
                        div.reply { p.by { b { (story.agent) } " answered" } (show::said(&said.text)) }
                    }
                }
            }
            (xray(&prompt))
        }
    } else {
        look_form(&who, &story.room, &path)
    };
    let body = html! {
        p { (show::room(&story.room)) " · run " (show::run(&story.id)) " of " b { (story.agent) } " " (show::state(&story.state)) }
        (shown)
    };
    let page = Page {
        title: "Prompt X-ray",
        at: "/runs",
        body,
    };
    page.shown(&console, &who).await
}

fn as_sent(sent: &AsSent) -> Markup {
    html! {
        @if sent.is_same {
            p.verdict.good { "Byte for byte what " b { (sent.model) } " was sent." }
        } @else {
            section.verdict.warn aria-label="What differs from what was sent" {
                p { "Made again from what is stored; it is not what " b { (sent.model) } " was sent:" }
                ul { @for change in &sent.changes { li { (show::word(change)) } } }
            }
        }
        @if !sent.tools.is_empty() {
            p.quiet { "It might call " (sent.tools.join(", ")) "." }
        }
    }
}

/// A part of a prompt: its stored name, its words, why it is there, and the name of its color.
struct XrayPart {
    name: &'static str,
    words: &'static str,
    why: &'static str,
}

const fn kind(name: &'static str, words: &'static str, why: &'static str) -> XrayPart {
    XrayPart { name, words, why }
}

const PARTS: &[XrayPart] = &[
    kind(
        "instructions",
        "Instructions",
        "the agent's own (agents.NAME.instructions), outside of the budget",
    ),
    kind(
        "memory",
        "Memory",
        "what the agent keeps in mind in this room",
    ),
    kind(
        "summary",
        "Summary",
        "stands for older turns (rolling_summary_threshold)",
    ),
    kind(
        "parent",
        "Room before the thread",
        "turns of the room before the thread began (parent_turns)",
    ),
    kind(
        "thread_answer",
        "Answer in a thread",
        "what was answered to a question of the room, in its thread",
    ),
    kind(
        "root",
        "The thread's first message",
        "every thread is read with what it hangs on",
    ),
    kind("replied_to", "Replied to", "a kept turn replies to it"),
    kind("history", "History", "said to the agent or by it"),
    kind(
        "ambient",
        "Overheard",
        "not said to the agent (ambient_turns)",
    ),
    kind(
        "recalled",
        "Found",
        "found for the question (recall), outside of the budget",
    ),
    kind(
        "trigger",
        "The question",
        "what is to be answered: it always stays",
    ),
];
const OTHER: XrayPart = kind("other", "Other", "another part");

fn part_of(name: &str) -> &'static XrayPart {
    PARTS
        .iter()
        .find(|part| part.name == name)
        .unwrap_or(&OTHER)
}

/// All of a prompt: the budget, then everything in the order in which the room has it.
fn xray(prompt: &Prompt) -> Markup {
    html! {
        (budget(prompt))
        h2 { "What is in it, and what is not" }
        ol.rays {
            (before(prompt))
            @for ray in rays(prompt) {
                @match ray {
                    Ray::Sent { message, cost } => (sent(message, cost, prompt)),
                    Ray::Left(omitted) => (left(omitted)),
                }
            }
        }
        h2 { "The exact messages" }
        details.more {
            summary { "Everything, as one text to copy" }
            (show::code(&exact(prompt)))
            button.scripted type="button" data-copy="" { "Copy" }
        }
        p.quiet {
            "Tokens counted by " (prompt.counter) ". " (show::grouped(prompt.turns_loaded)) " turns were read for it ("
            (show::grouped(prompt.rows_read)) " rows), of " (show::grouped(prompt.turns_of_conversation)) " of the room."
            @if prompt.has_chat_options { " The chat has prompt settings of its own." }
        }
    }
}

/// Tokens of each part that is there, in the order of the prompt.
fn shares(prompt: &Prompt) -> Vec<(&'static XrayPart, u64, usize)> {
    let mut of: BTreeMap<usize, (u64, usize)> = BTreeMap::new();
    for cost in &prompt.costs {
        let at = PARTS.iter().position(|part| part.name == cost.part);
        let share = of.entry(at.unwrap_or(PARTS.len())).or_default();
        share.0 += cost.tokens;
        share.1 += 1;
    }
    let part = |at: usize| PARTS.get(at).unwrap_or(&OTHER);
    of.into_iter()
        .map(|(at, (tokens, messages))| (part(at), tokens, messages))
        .collect()
}

fn budget(prompt: &Prompt) -> Markup {
    let shares = shares(prompt);
    let used: u64 = shares.iter().map(|(_, tokens, _)| tokens).sum();
    let mut at = 0;
    let mut rects = Vec::new();
    for (part, tokens, _) in &shares {
        let width = tokens * BAR_WIDTH / used.max(1);
        rects.push((part.name, at, width));
        at += width;
    }
    let told: Vec<String> = shares
        .iter()
        .map(|(part, tokens, _)| format!("{} {tokens}", part.words))
        .collect();
    let taken = prompt.tokens * BAR_WIDTH / prompt.token_budget.max(1);
    html! {
        figure.budget {
            figcaption { b { (show::grouped(used)) " tokens" } " were sent, of which" }
            svg.bar viewBox={ "0 0 " (BAR_WIDTH) " 24" } preserveAspectRatio="none" role="img" aria-label=(told.join(", ")) {
                rect.part-left x="0" y="0" width=(BAR_WIDTH) height="24" {}
                @for (name, x, width) in &rects {
                    rect class={ "part-" (name) } x=(x) y="0" width=(width) height="24" {}
                }
            }
            ul.legend {
                @for (part, tokens, messages) in &shares {
                    li {
                        svg.key viewBox="0 0 10 10" aria-hidden="true" { rect class={ "part-" (part.name) } width="10" height="10" rx="2" {} }
                        (part.words) " " b { (show::grouped(*tokens)) }
                        @if *messages > 1 { " " span.quiet { "in " (messages) } }
                    }
                }
            }
            p.left {
                "Summary, history and question take " (show::grouped(prompt.tokens)) " of " (show::grouped(prompt.token_budget))
                " tokens (" code { "token_budget" } "); " (show::grouped(prompt.tokens_left)) " are left."
                svg.meter viewBox={ "0 0 " (BAR_WIDTH) " 8" } preserveAspectRatio="none" aria-hidden="true" {
                    rect.part-left width=(BAR_WIDTH) height="8" {}
                    rect.part-history width=(taken.min(BAR_WIDTH)) height="8" {}
                }
            }
        }
    }
}

/// What comes before everything that was read.
fn before(prompt: &Prompt) -> Markup {
    html! {
        @if prompt.turns_not_read > 0 {
            li.ray.out {
                p.head { span.chip.plain { "not read" } " " b { (show::grouped(prompt.turns_not_read)) " turns" } }
                p.why { "They " (prompt.not_read_because.join(", or ")) "." }
            }
        }
        @if prompt.turns_summarized > 0 {
            li.ray.out {
                p.head { span.chip.plain { "in the summary" } " " b { (show::grouped(prompt.turns_summarized)) " turns" } }
                p.why { "The summary below stands for them (rolling_summary_threshold, preserve_recent_turns)." }
            }
        }
    }
}

enum Ray<'a> {
    Sent {
        message: &'a Message,
        cost: Option<&'a MessageCost>,
    },
    Left(&'a Omitted),
}

/// The messages as they are sent, with omitted ones at their place in the room.
fn rays(prompt: &Prompt) -> Vec<Ray<'_>> {
    let mut left: Vec<&Omitted> = prompt.omitted.iter().collect();
    left.retain(|omitted| omitted.tokens_left_out.is_none());
    left.sort_by_key(|omitted| std::cmp::Reverse(omitted.seq));
    let mut rays = Vec::new();
    for (at, message) in prompt.messages.iter().enumerate() {
        let cost = prompt.costs.get(at);
        if let Some(seq) = cost.and_then(|cost| cost.seq) {
            while left.last().is_some_and(|omitted| omitted.seq < seq) {
                rays.extend(left.pop().map(Ray::Left));
            }
        }
        rays.push(Ray::Sent { message, cost });
    }
    while let Some(omitted) = left.pop() {
        rays.push(Ray::Left(omitted));
    }
    rays
}

fn sent(message: &Message, cost: Option<&MessageCost>, prompt: &Prompt) -> Markup {
    let part = cost.map_or(&OTHER, |cost| part_of(&cost.part));
    let seq = cost.and_then(|cost| cost.seq);
    let cut = prompt.omitted.iter().find(|it| Some(it.seq) == seq);
    let cut = cut.and_then(|it| Some((it.tokens_left_out?, &it.meaning)));
    let is_long = message.content.chars().nth(OPEN_MAX_CHARS).is_some();
    html! {
        li class={ "ray sent edge-" (part.name) } {
            p.head {
                @if cut.is_some() { span.chip.warn { "cut" } } @else { span.chip.good { "sent" } }
                " " b { (part.words) } " " span.quiet { "as " (message.role) }
                @if let Some(seq) = seq { " " span.seq { "#" (seq) } }
                @if let Some(cost) = cost { span.tokens { (show::grouped(cost.tokens)) " tokens" } }
            }
            p.why {
                (part.why) "."
                @if let Some((tokens, meaning)) = cut { " " (show::grouped(tokens)) " tokens are missing: " (meaning) "." }
            }
            @if is_long {
                details {
                    summary { (show::word(&show::beginning(&message.content, 100))) }
                    (show::said(&message.content))
                }
            } @else { (show::said(&message.content)) }
        }
    }
}

fn left(omitted: &Omitted) -> Markup {
    html! {
        li.ray.out {
            p.head {
                span.chip.plain { "left out" } " " b { (show::word(&omitted.speaker)) } " "
                span.seq { "#" (omitted.seq) }
            }
            p.why { (omitted.meaning) "." }
        }
    }
}

/// The messages as one text.
fn exact(prompt: &Prompt) -> String {
    let message = |message: &Message| format!("--- {}\n{}\n", message.role, message.content);
    prompt.messages.iter().map(message).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt() -> Prompt {
        let message = |role: &str, content: &str| Message {
            role: role.to_owned(),
            content: content.to_owned(),
        };
        let cost = |part: &str, seq, tokens| MessageCost {
            part: part.to_owned(),
            seq,
            tokens,
        };
        let omitted = |seq, tokens_left_out| Omitted {
            seq,
            speaker: "Bob".to_owned(),
            why: "not_addressed".to_owned(),
            meaning: "it does not concern the agent (addressed_only)".to_owned(),
            tokens_left_out,
        };
        Prompt {
            messages: vec![
                message("system", "Be kind."),
                message("user", "Ann: <b>hello</b>"),
                message("user", "Ann: when?"),
            ],
            costs: vec![
                cost("instructions", None, 4),
                cost("history", Some(3), 10),
                cost("trigger", Some(9), 6),
            ],
            omitted: vec![omitted(9, Some(40)), omitted(12, None), omitted(5, None)],
            tokens: 16,
            token_budget: 100,
            tokens_left: 84,
            ..Prompt::default()
        }
    }

    #[test]
    fn what_was_left_out_stands_where_the_room_has_it() {
        let prompt = prompt();
        let order: Vec<String> = rays(&prompt)
            .iter()
            .map(|ray| match ray {
                Ray::Sent { cost, .. } => cost.map(|cost| cost.part.clone()).unwrap_or_default(),
                Ray::Left(omitted) => omitted.seq.to_string(),
            })
            .collect();
        assert_eq!(order, ["instructions", "history", "5", "trigger", "12"]);
    }

    #[test]
    fn each_part_says_why_it_is_there_and_what_it_costs() {
        let shown = xray(&prompt()).into_string();
        for words in [
            "Ann: &lt;b&gt;hello&lt;/b&gt;",
            "said to the agent or by it.",
            "40 tokens are missing",
            "it does not concern the agent (addressed_only).",
            "take 16 of 100",
            "rect class=\"part-trigger\"",
        ] {
            assert!(shown.contains(words), "{words}");
        }
        assert!(!shown.contains("style="), "the policy lets no style in");
    }

    /// Every part has a color of its own in the style.
    #[test]
    fn every_part_has_a_color() {
        let style = include_str!("../../assets/console.css");
        for part in PARTS {
            let class = format!(".part-{}", part.name);
            assert!(style.contains(&class), "{class}");
        }
    }
}
