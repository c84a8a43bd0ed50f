//! What a provider's cache reads and writes, by the rules of each provider.
//!
//! Pure: the time is an argument. A prompt is a row of blocks (tools, system, messages); a cache keeps exact beginnings
//! of that row for a time. *Source:* OpenAI's prompt caching guide and Anthropic's prompt caching page, November 2026.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::{Value, json};

use super::reply::counted;
use super::rules::gpt;

/// Anthropic looks this many blocks back from a mark.
const LOOK_BACK_BLOCKS: usize = 20;
const ANTHROPIC_LIFE_MS: i64 = 5 * 60_000;
/// Without breakpoints OpenAI's cache forgets within five to ten minutes; the shorter time is used here.
const AUTOMATIC_LIFE_MS: i64 = 5 * 60_000;
const BREAKPOINT_LIFE_MS: i64 = 30 * 60_000;
const OPENAI_MIN_TOKENS: u32 = 1_024;
/// Tokens read from OpenAI's automatic cache are a multiple of this.
const AUTOMATIC_STEP_TOKENS: u32 = 128;

/// What the cache did with a prompt, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CacheUse {
    pub(super) prompt: u32,
    pub(super) read: u32,
    pub(super) written: u32,
}

/// Beginnings that are kept, and until when, in milliseconds since the Unix epoch.
#[derive(Debug, Default)]
pub(super) struct PromptCache {
    until_ms: HashMap<u64, i64>,
}

/// The beginning of a prompt up to a block.
struct PromptBeginning {
    hash: u64,
    tokens: u32,
    is_marked: bool,
    /// Whether its last block is of a person or a tool.
    is_heard: bool,
}

struct PromptBlock {
    what: Value,
    is_marked: bool,
    is_heard: bool,
}

impl PromptCache {
    /// Looks up a prompt of Anthropic's Messages, and keeps the beginnings that it marks.
    pub(super) fn messages(&mut self, body: &Value, now_ms: i64) -> CacheUse {
        let beginnings = beginnings(body, &messages_blocks(body));
        let min_tokens = anthropic_min_tokens(body["model"].as_str().unwrap_or_default());
        let marked: Vec<usize> = (0..beginnings.len())
            .filter(|n| beginnings[*n].is_marked && beginnings[*n].tokens >= min_tokens)
            .collect();
        let looked_at = marked
            .iter()
            .flat_map(|n| (n.saturating_sub(LOOK_BACK_BLOCKS)..=*n).rev());
        let read = looked_at
            .filter(|n| self.keeps(&beginnings[*n], now_ms))
            .map(|n| beginnings[n].tokens)
            .max()
            .unwrap_or(0);
        for n in &marked {
            self.keep(&beginnings[*n], now_ms + ANTHROPIC_LIFE_MS);
        }
        let end = marked.last().map_or(0, |n| beginnings[*n].tokens);
        used(&beginnings, read, end)
    }

    /// Looks up a prompt of OpenAI's models, and keeps the beginnings that they keep.
    pub(super) fn openai(&mut self, body: &Value, said: &Value, now_ms: i64) -> CacheUse {
        let beginnings = beginnings(body, &openai_blocks(body, said));
        if gpt(body["model"].as_str().unwrap_or_default()) >= Some((5, 6)) {
            return self.at_breakpoints(body, &beginnings, now_ms);
        }
        let kept = beginnings.iter().rev().find(|it| self.keeps(it, now_ms));
        let read = kept.map_or(0, |it| {
            it.tokens / AUTOMATIC_STEP_TOKENS * AUTOMATIC_STEP_TOKENS
        });
        for beginning in &beginnings {
            self.keep(beginning, now_ms + AUTOMATIC_LIFE_MS);
        }
        let read = if read >= OPENAI_MIN_TOKENS { read } else { 0 };
        used(&beginnings, read, 0)
    }

    /// From GPT-5.6 on a beginning is found at a breakpoint only: a set one, or behind the last block of a person or a
    /// tool.
    fn at_breakpoints(
        &mut self,
        body: &Value,
        beginnings: &[PromptBeginning],
        now_ms: i64,
    ) -> CacheUse {
        let is_explicit = body["prompt_cache_options"]["mode"] == "explicit";
        let implicit = beginnings.iter().rposition(|it| it.is_heard);
        let points: Vec<&PromptBeginning> = beginnings
            .iter()
            .enumerate()
            .filter(|(n, it)| it.is_marked || !is_explicit && Some(*n) == implicit)
            .map(|(_, it)| it)
            .filter(|it| it.tokens >= OPENAI_MIN_TOKENS)
            .collect();
        let kept = points.iter().filter(|it| self.keeps(it, now_ms));
        let read = kept.map(|it| it.tokens).max().unwrap_or(0);
        for point in &points {
            self.keep(point, now_ms + BREAKPOINT_LIFE_MS);
        }
        used(beginnings, read, points.last().map_or(0, |it| it.tokens))
    }

    fn keeps(&self, beginning: &PromptBeginning, now_ms: i64) -> bool {
        self.until_ms
            .get(&beginning.hash)
            .is_some_and(|until_ms| now_ms < *until_ms)
    }

    fn keep(&mut self, beginning: &PromptBeginning, until_ms: i64) {
        self.until_ms.insert(beginning.hash, until_ms);
    }
}

fn used(beginnings: &[PromptBeginning], read: u32, end: u32) -> CacheUse {
    CacheUse {
        prompt: beginnings.last().map_or(0, |it| it.tokens),
        read,
        written: end.saturating_sub(read),
    }
}

fn beginnings(body: &Value, blocks: &[PromptBlock]) -> Vec<PromptBeginning> {
    let mut hasher = DefaultHasher::new();
    body["model"].to_string().hash(&mut hasher);
    let mut tokens = 0_u32;
    let mut beginnings = Vec::with_capacity(blocks.len());
    for block in blocks {
        let text = block.what.to_string();
        text.hash(&mut hasher);
        tokens = tokens.saturating_add(counted(&text));
        beginnings.push(PromptBeginning {
            hash: hasher.finish(),
            tokens,
            is_marked: block.is_marked,
            is_heard: block.is_heard,
        });
    }
    beginnings
}

/// The blocks of a prompt: tools, system, then the messages; a text stands for its one block.
fn messages_blocks(body: &Value) -> Vec<PromptBlock> {
    let texts = |value: &Value| match value {
        Value::String(text) => vec![json!({"type": "text", "text": text})],
        Value::Array(blocks) => blocks.clone(),
        _ => Vec::new(),
    };
    let mut blocks = Vec::new();
    let mut push = |owner: &Value, mut what: Value| {
        let mark = what
            .as_object_mut()
            .and_then(|it| it.remove("cache_control"));
        blocks.push(PromptBlock {
            what: json!([owner, what]),
            is_marked: mark.is_some(),
            is_heard: owner == "user",
        });
    };
    for tool in texts(&body["tools"]) {
        push(&json!("tool"), tool);
    }
    for block in texts(&body["system"]) {
        push(&json!("system"), block);
    }
    // Another choice of tools or another way to think makes another conversation.
    push(
        &json!("settings"),
        json!([body["tool_choice"], body["thinking"]]),
    );
    for message in body["messages"].as_array().into_iter().flatten() {
        for block in texts(&message["content"]) {
            push(&message["role"], block);
        }
    }
    blocks
}

/// The blocks of a prompt: tools, then the messages (`input` or `messages`).
fn openai_blocks(body: &Value, said: &Value) -> Vec<PromptBlock> {
    let tools = body["tools"].as_array().into_iter().flatten();
    let tools = tools.map(|tool| PromptBlock {
        what: tool.clone(),
        is_marked: false,
        is_heard: false,
    });
    let items = said.as_array().into_iter().flatten().map(|item| {
        let mut what = item.clone();
        if let Value::String(text) = &item["content"] {
            what["content"] = json!([{"type": "input_text", "text": text}]);
        }
        let mut is_marked = false;
        for part in what["content"].as_array_mut().into_iter().flatten() {
            let mark = part
                .as_object_mut()
                .and_then(|part| part.remove("prompt_cache_breakpoint"));
            is_marked |= mark.is_some();
        }
        let is_heard = item["role"] == "user" || item["type"] == "function_call_output";
        PromptBlock {
            what,
            is_marked,
            is_heard,
        }
    });
    tools.chain(items).collect()
}

fn anthropic_min_tokens(model: &str) -> u32 {
    let is_one_of = |names: &[&str]| names.iter().any(|name| model.contains(name));
    match () {
        () if is_one_of(&["opus-4-5", "opus-4-6", "haiku-4-5"]) => 4_096,
        () if is_one_of(&["opus-4-7", "haiku-3-5"]) => 2_048,
        () if is_one_of(&["opus-5", "fable-5", "mythos-5"]) => 512,
        () => 1_024,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anthropic(texts: &[(&str, &str, bool)]) -> Value {
        let messages = texts.iter().map(|(role, text, is_marked)| {
            let mut block = json!({"type": "text", "text": text});
            if *is_marked {
                block["cache_control"] = json!({"type": "ephemeral"});
            }
            json!({"role": role, "content": [block]})
        });
        json!({"model": "claude-sonnet-5", "messages": messages.collect::<Value>()})
    }

    #[test]
    fn anthropic_gives_what_was_marked_exactly_and_in_time() {
        let long = "word ".repeat(2_000);
        let asked = |tail: &str| {
            anthropic(&[
                ("user", &long, true),
                ("assistant", "ok", false),
                ("user", tail, false),
            ])
        };
        let mut cache = PromptCache::default();
        let first = cache.messages(&asked("a"), 0);
        assert!(first.read == 0 && first.written > 2_000 && first.written < first.prompt);
        let again = cache.messages(&asked("b"), ANTHROPIC_LIFE_MS - 1);
        assert_eq!((again.read, again.written), (first.written, 0));
        // A read restarts the time; without one the entry expires.
        let late = cache.messages(&asked("c"), 2 * ANTHROPIC_LIFE_MS - 2);
        assert_eq!(late.read, first.written);
        assert_eq!(cache.messages(&asked("d"), 4 * ANTHROPIC_LIFE_MS).read, 0);
        // One more byte at the beginning makes another prompt, and a short prompt is never kept.
        let other = anthropic(&[("user", &format!("x{long}"), true), ("user", "e", false)]);
        assert_eq!(cache.messages(&other, 4 * ANTHROPIC_LIFE_MS + 1).read, 0);
        let short = anthropic(&[("user", "hello", true)]);
        assert_eq!(cache.messages(&short, 0).written, 0);
        assert_eq!(cache.messages(&short, 1).read, 0);
    }

    #[test]
    fn openai_finds_steps_of_128_before_5_6_and_breakpoints_from_then_on() {
        let long = "word ".repeat(2_000);
        let asked = |model: &str, tail: &str, is_marked: bool| {
            let mut part = json!({"type": "input_text", "text": long});
            if is_marked {
                part["prompt_cache_breakpoint"] = json!({"mode": "explicit"});
            }
            json!({"model": model, "input": [
                {"role": "user", "content": [part]},
                {"role": "user", "content": tail},
            ]})
        };
        let mut cache = PromptCache::default();
        let mut ask = |body: &Value, at| cache.openai(body, &body["input"], at);
        assert_eq!(ask(&asked("gpt-5.5", "a", false), 0).read, 0);
        let again = ask(&asked("gpt-5.5", "b", false), 1);
        assert!(again.read >= 2_048 && again.read % 128 == 0 && again.written == 0);
        // Without marks the breakpoint is behind the question, and no two questions are the same.
        let paid = ask(&asked("gpt-5.6", "a", false), 0);
        assert_eq!((paid.read, paid.written), (0, paid.prompt));
        assert_eq!(ask(&asked("gpt-5.6", "b", false), 1).read, 0);
        ask(&asked("gpt-5.6", "c", true), 2);
        let found = ask(&asked("gpt-5.6", "d", true), 3);
        assert!(found.read > 2_000 && found.read + found.written == found.prompt);
    }
}
