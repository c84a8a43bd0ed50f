//! Recognises the providers' errors that mean that a prompt is longer than a model's context.
//!
//! Pure. Of a provider's text only two numbers are taken over.

use serde_json::Value;

use crate::llm::ModelError;

/// The smallest number in an error that is accepted as the size of a context, in tokens.
const LIMIT_MIN_TOKENS: u64 = 512;

/// Error codes that mean that the context is too small.
const CODES: [&str; 6] = [
    "context_length_exceeded",
    "exceed_context_size_error",
    "max_tokens_exceeded",
    "model_context_window_exceeded",
    "request_too_large",
    "string_above_max_length",
];

/// Texts that mean that the context is too small; the parts of each must appear in this order. *Source:* the errors of
/// OpenAI, Anthropic, Bedrock, Gemini, xAI, Groq, Mistral, Together, Copilot, Kimi, MiniMax, Poolside, vLLM, LiteLLM,
/// llama.cpp, LM Studio and Ollama.
const SAYINGS: [&[&str]; 21] = [
    &["prompt is too long"],
    &["input is too long for requested model"],
    &["exceed", "context window"],
    &["exceed", "maximum context length"],
    &["exceed context limit"],
    &["input token count", "exceeds the maximum"],
    &["maximum prompt length is"],
    &["reduce the length of the messages"],
    &["maximum context length is"],
    &["maximum allowed input length"],
    &["longer than the model", "context length"],
    &["exceeds the limit of", "token"],
    &["token count", "exceeds the limit of"],
    &["exceeds the available context size"],
    &["greater than the context length"],
    &["context window exceeds limit"],
    &["exceeded model token limit"],
    &["too large for model with", "context length"],
    &["prompt too long"],
    &[
        "requested",
        "output tokens",
        "prompt contains",
        "input tokens",
    ],
    &["too many tokens"],
];

/// Texts that look like an overflow of the context but are about a rate limit.
const LOOK_ALIKES: [&str; 5] = [
    "rate limit",
    "too many requests",
    "tokens per minute",
    "throttling",
    "please wait",
];

/// The failure, if this error says that the prompt is too long.
pub(super) fn of_error(error: &Value) -> Option<ModelError> {
    let text = text_of(error).to_lowercase();
    if LOOK_ALIKES.iter().any(|look| text.contains(look)) {
        return None;
    }
    let is_coded = ["type", "code"]
        .iter()
        .filter_map(|name| error.get(name)?.as_str())
        .any(|code| CODES.contains(&code));
    if !is_coded && !SAYINGS.iter().any(|parts| says(&text, parts)) {
        return None;
    }
    let field = |name: &str| error.get(name).and_then(Value::as_u64);
    let (limit, asked) = match (field("n_ctx"), field("n_prompt_tokens")) {
        (None, None) => numbers(&text),
        told => told,
    };
    let limit = limit.filter(|limit| *limit >= LIMIT_MIN_TOKENS);
    Some(ModelError::ContextTooLong {
        limit,
        asked: asked.filter(|asked| limit.is_some_and(|limit| *asked > limit)),
    })
}

/// The text of an error: itself, its `message`, or its `detail`.
fn text_of(error: &Value) -> &str {
    let texts = [Some(error), error.get("message"), error.get("detail")];
    let mut texts = texts.into_iter().flatten().filter_map(Value::as_str);
    texts.next().unwrap_or_default()
}

/// Whether a text contains all of these, one behind the other.
fn says(text: &str, parts: &[&str]) -> bool {
    let behind =
        |rest: &str, part: &&str| -> Option<usize> { Some(rest.find(*part)? + part.len()) };
    let mut rest = text;
    parts.iter().all(|part| match behind(rest, part) {
        Some(at) => {
            rest = &rest[at..];
            true
        }
        None => false,
    })
}

/// Words in front of a limit, the clearest first; then words behind a limit.
const BEFORE_LIMIT: [&str; 9] = [
    "context length is",
    "prompt length is",
    "input length of",
    "the limit of",
    "token limit:",
    "maximum number of tokens",
    "maximum context length",
    "context length",
    "context window",
];
const BEHIND_LIMIT: [&str; 2] = [" maximum context length", " maximum"];

/// How far behind these words a number may be, in bytes.
const NEAR_BYTES: usize = 24;

/// The limit and the requested number of tokens, if a text in lower case names them.
fn numbers(text: &str) -> (Option<u64>, Option<u64>) {
    let found = integers(text);
    let largest = found.iter().map(|(_, number)| *number).max();
    let behind = |words: &&str| {
        let from = text.find(words)? + words.len();
        let near = |at: usize| (from..=from + NEAR_BYTES).contains(&at);
        found.iter().find(|(at, _)| near(*at))
    };
    if let Some((_, limit)) = BEFORE_LIMIT.iter().find_map(behind) {
        return (Some(*limit), largest);
    }
    let before = |words: &&str| {
        let to = text.find(words)?;
        found.iter().rev().find(|(at, _)| *at < to)
    };
    if let Some((sum, _)) = text.split_once(" > ") {
        let asked = found.iter().filter(|(at, _)| *at < sum.len());
        let asked = asked.fold(0_u64, |sum, (_, number)| sum.saturating_add(*number));
        let limit = found.iter().find(|(at, _)| *at > sum.len());
        return (limit.map(|(_, limit)| *limit), Some(asked));
    }
    let limit = BEHIND_LIMIT.iter().find_map(before);
    (limit.map(|(_, limit)| *limit), largest)
}

/// The whole numbers of a text with their places; groups of digits may have commas. Numbers that don't
/// fit are left out.
fn integers(text: &str) -> Vec<(usize, u64)> {
    let mut found = Vec::new();
    let mut digits = (0, String::new());
    for (at, mark) in text.char_indices().chain([(text.len(), ' ')]) {
        match mark {
            '0'..='9' => {
                if digits.1.is_empty() {
                    digits.0 = at;
                }
                digits.1.push(mark);
            }
            ',' if text[at + 1..].starts_with(|next: char| next.is_ascii_digit()) => {}
            _ => {
                if let Ok(number) = digits.1.parse() {
                    found.push((digits.0, number));
                }
                digits.1.clear();
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(error: &Value) -> Option<(Option<u64>, Option<u64>)> {
        match of_error(error)? {
            ModelError::ContextTooLong { limit, asked } => Some((limit, asked)),
            other => panic!("{other:?}"),
        }
    }

    const TEXTS: [(&str, Option<u64>, Option<u64>); 24] = [
        (
            "prompt is too long: 213462 tokens > 200000 maximum",
            Some(200_000),
            Some(213_462),
        ),
        (
            "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length",
            Some(200_000),
            Some(209_573),
        ),
        (
            "Request exceeds the maximum size: prompt is too long",
            None,
            None,
        ),
        (
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
            None,
            None,
        ),
        (
            "This model's maximum context length is 8192 tokens. However, you requested 10000 tokens (9000 in the messages, 1000 in the completion).",
            Some(8_192),
            Some(10_000),
        ),
        (
            "Requested token count exceeds the model's maximum context length of 131072 tokens",
            Some(131_072),
            None,
        ),
        (
            "Input length (265330) exceeds model's maximum context length (262144).",
            Some(262_144),
            Some(265_330),
        ),
        (
            "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
            Some(1_048_575),
            Some(1_196_265),
        ),
        (
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
            Some(131_072),
            Some(537_812),
        ),
        (
            "Please reduce the length of the messages or completion.",
            None,
            None,
        ),
        (
            "Input length 5,000 exceeds the maximum allowed input length of 4,096 tokens.",
            Some(4_096),
            Some(5_000),
        ),
        (
            "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
            Some(8_192),
            Some(9_000),
        ),
        (
            "the request exceeds the available context size, try increasing it",
            None,
            None,
        ),
        (
            "The number of tokens to keep from the initial prompt is greater than the context length.",
            None,
            None,
        ),
        (
            "prompt token count of 130001 exceeds the limit of 128000",
            Some(128_000),
            Some(130_001),
        ),
        ("invalid params, context window exceeds limit", None, None),
        (
            "Your request exceeded model token limit: 262144 (requested: 300000)",
            Some(262_144),
            Some(300_000),
        ),
        (
            "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
            Some(32_768),
            Some(40_000),
        ),
        (
            "prompt too long; exceeded max context length by 12 tokens",
            None,
            None,
        ),
        (
            "This model's maximum context length is 4096 tokens. However, you requested 4096 output tokens and your prompt contains at least 300 input tokens, for a total of at least 4396 tokens.",
            Some(4_096),
            Some(4_396),
        ),
        ("Input is too long for requested model.", None, None),
        ("Input validation error: too many tokens", None, None),
        // Numbers that are too small to be a limit are ignored.
        (
            "This model's maximum context length is 3 tokens",
            None,
            None,
        ),
        (
            "maximum context length is 99999999999999999999999999 tokens",
            None,
            None,
        ),
    ];

    #[test]
    fn every_providers_overflow_is_known_with_its_numbers() {
        for (message, limit, asked) in TEXTS {
            let told = told(&json!({"message": message}));
            assert_eq!(told, Some((limit, asked)), "{message}");
        }
    }

    #[test]
    fn codes_and_fields_mean_it_without_words() {
        let coded = |name: &str| json!({"type": "invalid_request_error", "code": name});
        for code in CODES {
            assert_eq!(told(&coded(code)), Some((None, None)), "{code}");
        }
        let llama = json!({"code": 400, "type": "exceed_context_size_error", "n_ctx": 4096,
                           "n_prompt_tokens": 5000, "message": "the request exceeds ..."});
        assert_eq!(told(&llama), Some((Some(4_096), Some(5_000))));
        let vllm = json!("This model's maximum context length is 4096 tokens");
        assert_eq!(told(&vllm), Some((Some(4_096), None)));
    }

    #[test]
    fn what_speaks_of_a_rate_or_of_something_else_is_not_meant() {
        for message in [
            "Too many tokens, please wait before trying again.",
            "Rate limit reached: too many tokens per minute",
            "ThrottlingException: Too many tokens",
            "Unsupported parameter: 'max_tokens' is not supported with this model.",
            "max_tokens: 99999 > 8192, which is the maximum allowed number of output tokens",
            "",
        ] {
            assert_eq!(of_error(&json!({"message": message})), None, "{message}");
        }
    }
}
