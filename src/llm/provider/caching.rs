//! What a provider's cache is told, by wire and model.
//!
//! Pure. A cache is used for a request that begins exactly like an earlier one. Without marks, OpenAI's models from
//! GPT-5.6 on and Anthropic's never find a conversation's history in their cache, because each request has another
//! question behind it. Writing to the cache costs a quarter more, also if nothing is read from it later. So marks are
//! set only if the stable part is long enough to be kept and the next question usually comes in time.
//!
//! *Source:* OpenAI's prompt caching guide and Anthropic's prompt caching page, November 2026.

use super::habits::gpt;
use crate::llm::Request;
use crate::llm::base_url::Wire;
use vocative_core::prompting::{ClassEstimate, PromptRole, TokenCounter};

/// How long Anthropic keeps an entry, in milliseconds; each read starts that time again.
const ANTHROPIC_LIFE_MS: i64 = 5 * 60_000;
/// How long OpenAI's models from GPT-5.6 on keep an entry at least, in milliseconds.
const OPENAI_LIFE_MS: i64 = 30 * 60_000;
/// The shortest beginning that OpenAI's models keep, in tokens.
const OPENAI_MIN_TOKENS: usize = 1_024;

/// How a provider's cache is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CacheHabit {
    /// The request says nothing about the cache; the provider caches by itself, or not at all.
    Unsaid,
    /// Requests with the same beginning carry the same key.
    Key,
    /// A key, and a breakpoint behind the stable part.
    Breakpoints,
    /// Blocks are marked; the provider keeps at least `min_tokens`.
    Marks { min_tokens: usize },
}

impl CacheHabit {
    /// The first habit for a model.
    pub(super) fn of(model: &str, wire: Wire, is_openai: bool) -> Self {
        match wire {
            Wire::Messages => Self::Marks {
                min_tokens: anthropic_min_tokens(model),
            },
            Wire::Responses if is_openai && gpt(model) >= Some((5, 6)) => Self::Breakpoints,
            Wire::Responses | Wire::Chat if is_openai => Self::Key,
            Wire::Responses | Wire::Chat => Self::Unsaid,
        }
    }
}

/// The shortest beginning that Anthropic's models keep, in tokens. Shorter ones are ignored without an error.
fn anthropic_min_tokens(model: &str) -> usize {
    let of = |names: &[&str]| names.iter().any(|name| model.contains(name));
    if of(&["opus-4-5", "opus-4-6", "haiku-4-5"]) {
        4_096
    } else if of(&["opus-4-7", "3-5-haiku", "haiku-3-5"]) {
        2_048
    } else if of(&["opus-5", "fable-5", "mythos-5"]) {
        512
    } else {
        1_024
    }
}

/// The parts of a request that are marked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CachePoints {
    /// The end of the instructions.
    pub(super) system: bool,
    /// The message with which the stable part ends, as an index into the request's messages.
    pub(super) history: Option<usize>,
    /// The last results of tools.
    pub(super) results: bool,
}

/// The parts of a request that are marked for a cache with this habit.
pub(super) fn points(habit: CacheHabit, request: &Request<'_>) -> CachePoints {
    let (min_tokens, life_ms, may_end) = match habit {
        CacheHabit::Unsaid | CacheHabit::Key => return CachePoints::default(),
        // A breakpoint can't be on an assistant's message.
        CacheHabit::Breakpoints => (OPENAI_MIN_TOKENS, OPENAI_LIFE_MS, PromptRole::User),
        CacheHabit::Marks { min_tokens } => (min_tokens, ANTHROPIC_LIFE_MS, PromptRole::Assistant),
    };
    let stable = &request.messages[..request.caching.stable_messages.min(request.messages.len())];
    let tools: usize = request
        .tools
        .iter()
        .map(|tool| {
            let schema = tool.schema.to_string();
            ClassEstimate.cost(&tool.description) + ClassEstimate.cost(&schema)
        })
        .sum();
    let cost = |is_counted: fn(PromptRole) -> bool| -> usize {
        let messages = stable.iter().filter(|message| is_counted(message.role));
        messages
            .map(|message| ClassEstimate.cost(&message.content))
            .sum()
    };
    let system = tools + cost(|role| role == PromptRole::System);
    let whole = tools + cost(|_| true);
    let comes_in_time = request
        .caching
        .gap_ms
        .is_none_or(|gap_ms| gap_ms <= life_ms);
    let has_results = !request.exchanges.is_empty();
    let history = stable.iter().rposition(|message| {
        let may_be = message.role == PromptRole::User || message.role == may_end;
        may_be && !message.content.is_empty()
    });
    CachePoints {
        system: system >= min_tokens,
        // The next step of the same run always comes in time.
        history: history.filter(|_| whole >= min_tokens && (comes_in_time || has_results)),
        results: has_results && whole >= min_tokens,
    }
}

#[cfg(test)]
mod tests {
    use super::points as points_of;
    use super::*;
    use crate::llm::{Caching, Exchange};
    use vocative_core::prompting::PromptMessage;

    fn said(role: PromptRole, words: usize) -> PromptMessage {
        PromptMessage {
            role,
            content: "word ".repeat(words),
        }
    }

    #[test]
    fn what_is_said_to_a_cache_follows_wire_host_and_model() {
        let cases = [
            ("gpt-5.6", Wire::Responses, true, CacheHabit::Breakpoints),
            ("gpt-5.5", Wire::Responses, true, CacheHabit::Key),
            ("gpt-6", Wire::Chat, true, CacheHabit::Key),
            // Compatible servers refuse fields that they don't know.
            ("gpt-5.6", Wire::Responses, false, CacheHabit::Unsaid),
            ("gpt-5.6", Wire::Chat, false, CacheHabit::Unsaid),
            (
                "claude-haiku-4-5",
                Wire::Messages,
                false,
                CacheHabit::Marks { min_tokens: 4_096 },
            ),
            (
                "claude-opus-4-7",
                Wire::Messages,
                false,
                CacheHabit::Marks { min_tokens: 2_048 },
            ),
            (
                "claude-opus-5",
                Wire::Messages,
                false,
                CacheHabit::Marks { min_tokens: 512 },
            ),
            (
                "claude-sonnet-5",
                Wire::Messages,
                false,
                CacheHabit::Marks { min_tokens: 1_024 },
            ),
        ];
        for (model, wire, is_openai, expected) in cases {
            assert_eq!(CacheHabit::of(model, wire, is_openai), expected, "{model}");
        }
    }

    #[test]
    fn only_what_is_long_enough_and_read_in_time_is_marked() {
        let messages = [
            said(PromptRole::System, 200),
            said(PromptRole::User, 1_000),
            said(PromptRole::Assistant, 1_000),
            said(PromptRole::User, 20),
        ];
        let exchanges = [Exchange::default()];
        let marks = CacheHabit::Marks { min_tokens: 1_024 };
        let points = |habit, stable_messages, gap_ms, exchanges| {
            let request = Request {
                exchanges,
                caching: Caching {
                    stable_messages,
                    key: None,
                    gap_ms,
                },
                ..Request::of(&messages)
            };
            points_of(habit, &request)
        };
        let history = |history| CachePoints {
            history,
            ..CachePoints::default()
        };
        assert_eq!(points(marks, 3, None, &[]), history(Some(2)));
        assert_eq!(
            points(marks, 3, Some(ANTHROPIC_LIFE_MS), &[]),
            history(Some(2))
        );
        assert_eq!(
            points(marks, 3, Some(ANTHROPIC_LIFE_MS + 1), &[]),
            history(None)
        );
        let both = CachePoints {
            results: true,
            ..history(Some(2))
        };
        assert_eq!(
            points(marks, 3, Some(ANTHROPIC_LIFE_MS + 1), &exchanges),
            both
        );
        assert_eq!(points(marks, 1, None, &exchanges), history(None));
        assert_eq!(
            points(CacheHabit::Breakpoints, 3, None, &[]),
            history(Some(1))
        );
        assert_eq!(points(CacheHabit::Key, 3, None, &[]), history(None));
        let short = CacheHabit::Marks { min_tokens: 128 };
        assert!(points(short, 3, None, &[]).system);
    }
}
