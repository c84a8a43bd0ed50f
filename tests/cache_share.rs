//! How much of what models read comes from their provider's cache, over 100 turns of three kinds of rooms:
//! prompts as the assembler makes them by default, sent by our own wires, counted by the sandbox by the rules
//! of each provider. With `--nocapture` it prints the table of docs/adr/0040-prompts-that-caches-like.md.

#![allow(clippy::unwrap_used)]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use vocative::llm::{Caching, Model, ModelSettings, Provider, Request, ToolSpec, build};
use vocative_core::history::{HistoryRole, HistoryTurn, SummaryView};
use vocative_core::ids::SummaryId;
use vocative_core::options::AssemblerOptions;
use vocative_core::prompting::testing::{history, kael, said};
use vocative_core::prompting::{ClassEstimate, Prompt, assemble};
use vocative_sandbox::model::{ModelReply, ModelServer};
use vocative_sandbox::wire::WireLog;

const TURNS: u32 = 100;
/// From one question to the next.
const GAP: Duration = Duration::from_secs(60);
const INSTRUCTIONS: &str = "You are Kael, a member of the chat \"#general\". Several people talk in this \
    chat; each line says who wrote it. Answer briefly and to the point, in the language you are asked in. \
    Say so when you don't know.";

/// A kind of room: who asks, in turn, and how many words a question and an answer have.
struct Kind {
    name: &'static str,
    askers: &'static [&'static str],
    words: (usize, usize),
}

const KINDS: [Kind; 3] = [
    Kind {
        name: "a direct chat",
        askers: &["alice"],
        words: (25, 60),
    },
    Kind {
        name: "a busy thread",
        askers: &["alice", "bob", "alice"],
        words: (15, 40),
    },
    Kind {
        name: "a channel, five askers",
        askers: &["alice", "bob", "dana", "eve", "frank"],
        words: (15, 40),
    },
];

impl Kind {
    fn turns(&self) -> Vec<HistoryTurn> {
        let words = |n: u32, count: usize| {
            let words =
                (0..count).map(|word| format!("word{} ", (n as usize * 31 + word * 7) % 97));
            words.collect::<String>()
        };
        let turn = |n: u32| match n % 2 {
            1 => {
                let asker = self.askers[(n / 2) as usize % self.askers.len()];
                said(
                    n,
                    HistoryRole::Kept,
                    asker,
                    &words(n, self.words.0 + n as usize % 9),
                )
            }
            _ => said(
                n,
                HistoryRole::Kept,
                "kael",
                &words(n, self.words.1 + n as usize % 13),
            ),
        };
        (1..=TURNS).map(turn).collect()
    }
}

/// The prompt for the question at a place, with the summary that stands for what is older: folded as the
/// daemon folds, from 40 turns on up to the newest ten questions.
fn prompt(turns: &[HistoryTurn], at: usize, options: &AssemblerOptions, is_old: bool) -> Prompt {
    let recent = 2 * options.preserve_recent_turns;
    let folded = (0..=at).fold(0, |folded, n| {
        match n - folded >= options.rolling_summary_threshold {
            true => n - recent,
            false => folded,
        }
    });
    let mut read = turns[folded..=at].to_vec();
    read.last_mut().unwrap().role = HistoryRole::Trigger;
    let asker = read
        .last()
        .unwrap()
        .turn
        .participant
        .shown_name()
        .to_owned();
    let through = folded.checked_sub(1).map(|n| turns[n].turn.position);
    let mut history = history(read);
    history.summary = through.map(|through| SummaryView {
        id: SummaryId(1),
        text: format!("Up to {}: {}", through.seq.0, "word ".repeat(150)),
        through,
    });
    let prompt = assemble(&history, &kael(), options, &ClassEstimate);
    let situation = format!("Today is Monday, 2026-11-23 (UTC). You are answering {asker}.");
    if is_old {
        let instructions = format!("{INSTRUCTIONS} {situation}");
        return prompt.with_instructions(&instructions, &ClassEstimate);
    }
    prompt
        .with_instructions(INSTRUCTIONS, &ClassEstimate)
        .with_situation(&situation, &ClassEstimate)
}

fn model(name: &str, provider: Provider, server: &ModelServer) -> Arc<dyn Model> {
    let settings = ModelSettings {
        provider,
        api: None,
        model: name.to_owned(),
        base_url: Some(server.openai_url()),
        api_key: Some("sk-test-key-1234567890".to_owned().into()),
        timeout_ms: 10_000,
        max_output_tokens: 256,
        temperature: None,
        reasoning_effort: None,
        context_limit: None,
        retries: 0,
        stream: false,
    };
    build(&settings, reqwest::Client::new()).unwrap()
}

/// The share of the prompts' tokens that the cache gave, in percent.
async fn share(kind: &Kind, name: &str, provider: Provider, is_old: bool) -> u64 {
    let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = ModelServer::start(addr, WireLog::new()).await.unwrap();
    server.count_cache();
    let model = model(name, provider, &server);
    let (turns, options) = (kind.turns(), AssemblerOptions::default());
    let tools = [ToolSpec {
        name: "conversation_search".to_owned(),
        description: "Finds what was said in this conversation. ".repeat(8),
        schema: json!({"type": "object", "properties": {"query": {"type": "string"}}}),
    }];
    let (mut read, mut all) = (0, 0);
    for at in (0..turns.len()).step_by(2) {
        let prompt = prompt(&turns, at, &options, is_old);
        server.enqueue(ModelReply::text("ok"));
        let request = Request {
            tools: &tools,
            caching: Caching {
                stable_messages: if is_old { 0 } else { prompt.stable_messages },
                key: Some("0123456789abcdef"),
                gap_ms: Some(60_000),
            },
            ..Request::of(&prompt.messages)
        };
        let usage = model.complete(&request).await.unwrap().usage;
        read += usage.cache_read_tokens;
        all += usage.prompt_tokens;
        server.pass_time(GAP);
    }
    server.stop().await;
    read * 100 / all
}

#[tokio::test]
async fn a_direct_chat_is_read_from_the_cache_at_80_percent() {
    rustls::crypto::ring::default_provider()
        .install_default()
        .unwrap();
    for kind in &KINDS {
        let anthropic = share(kind, "claude-opus-5", Provider::Anthropic, false).await;
        let sonnet = share(kind, "claude-sonnet-5", Provider::Anthropic, false).await;
        let openai = share(kind, "gpt-5.5", Provider::OpenAi, false).await;
        let unmarked = share(kind, "claude-opus-5", Provider::Anthropic, true).await;
        eprintln!(
            "{}: minimum 512 {anthropic} %, 1,024 {sonnet} %, automatic {openai} %; unmarked {unmarked} %",
            kind.name
        );
        assert_eq!(unmarked, 0, "{}", kind.name);
        assert!(anthropic >= 80, "{}: {anthropic} %", kind.name);
        if kind.askers.len() == 1 {
            assert!(sonnet >= 80 && openai >= 80, "{sonnet} % {openai} %");
        }
    }
}
