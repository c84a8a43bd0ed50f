//! What a failed call means for the caller. Pure; knows no client library.
//!
//! Bodies of failures may repeat the prompt or pieces of the key, so only their short error codes
//! are taken over.

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::ModelError;

mod overflow;

/// The longest text that is accepted as an error code, in bytes.
const CODE_MAX_BYTES: usize = 64;

/// An HTTP answer whose status is no success.
pub(super) struct FailedStatus<'a> {
    pub(super) status: u16,
    /// `retry-after`: seconds or a date.
    pub(super) retry_after: Option<&'a str>,
    /// `retry-after-ms`, which some providers send in addition.
    pub(super) retry_after_ms: Option<&'a str>,
    pub(super) body: &'a str,
}

/// The failure for a response whose status is no success. `now` is for a `Retry-After` that is a date.
pub(super) fn of_status(failed: &FailedStatus<'_>, now: DateTime<Utc>) -> ModelError {
    let body: Value = serde_json::from_str(failed.body).unwrap_or_default();
    let error = error_in(&body);
    let codes = codes(error);
    let status = failed.status;
    let shown = if codes.is_empty() {
        format!("HTTP {status}")
    } else {
        format!("HTTP {status} ({})", codes.join(", "))
    };
    if let Some(advice) = account_advice(status, error, &codes) {
        return ModelError::AccountRefused {
            reason: shown + advice,
        };
    }
    // Cerebras sends such a 400 for a long prompt; another 413 limits bytes, and a prompt of fewer tokens has fewer
    // bytes, too.
    let is_bare = status == 413 || status == 400 && failed.body.trim().is_empty();
    if matches!(status, 400 | 413 | 422 | 500) {
        let bare = is_bare.then_some(ModelError::ContextTooLong {
            limit: None,
            asked: None,
        });
        if let Some(too_long) = overflow::of_error(error).or(bare) {
            return too_long;
        }
    }
    let is_passing = matches!(status, 408 | 409 | 425 | 429 | 500..=599);
    if !is_passing {
        return ModelError::Refused {
            reason: shown + advice(status),
        };
    }
    let wait_ms = wait_ms(failed, now);
    if status == 429 || wait_ms.is_some() {
        return ModelError::RetryAfter { wait_ms };
    }
    ModelError::Unavailable { cause: shown }
}

/// If a failed response says that the account itself is refused, and so every request of it: the reason.
#[must_use]
pub fn account_refusal(status: u16, body: &str) -> Option<String> {
    let failed = FailedStatus {
        status,
        retry_after: None,
        retry_after_ms: None,
        body,
    };
    match of_status(&failed, DateTime::UNIX_EPOCH) {
        ModelError::AccountRefused { reason } => Some(reason),
        _ => None,
    }
}

/// The error of a body: in `error`, in the first item of a list, or the body itself.
pub(super) fn error_in(body: &Value) -> &Value {
    let body = body.get(0).unwrap_or(body);
    match body.get("error") {
        Some(error) if !error.is_null() => error,
        _ => body,
    }
}

/// Error codes that are about the account, whatever the status is. A used-up quota has status 429 like a rate limit,
/// but waiting does not help.
const ACCOUNT_CODES: [(&str, &str); 11] = [
    ("insufficient_quota", "; the account's quota is used up"),
    (
        "billing_hard_limit_reached",
        "; the account's quota is used up",
    ),
    ("billing_not_active", "; the account must be topped up"),
    ("billing_error", "; the account must be topped up"),
    ("invalid_api_key", "; check the model's `api_key`"),
    ("authentication_error", "; check the model's `api_key`"),
    ("permission_error", "; the key may not use this model"),
    ("account_deactivated", "; the account is closed"),
    ("access_terminated", "; the account is closed"),
    (
        "model_not_found",
        "; check the model's `model` and `base_url`",
    ),
    (
        "not_found_error",
        "; check the model's `model` and `base_url`",
    ),
];

/// Texts that are about the account although status and code are about the request.
const ACCOUNT_SAYINGS: [(&str, &str); 6] = [
    (
        "credit balance is too low",
        "; the account must be topped up",
    ),
    ("insufficient balance", "; the account must be topped up"),
    ("usage limits", "; the account's quota is used up"),
    ("api key not valid", "; check the model's `api_key`"),
    ("incorrect api key", "; check the model's `api_key`"),
    ("invalid api key", "; check the model's `api_key`"),
];

/// What to check if the provider refuses every request, not only this one.
fn account_advice(status: u16, error: &Value, codes: &[String]) -> Option<&'static str> {
    // Routers refuse a flagged text with the status that they also use for keys; the next text may be accepted.
    let flagged = &error["metadata"];
    if status == 403 && (flagged["flagged_input"].is_string() || flagged["reasons"].is_array()) {
        return None;
    }
    let known = ACCOUNT_CODES
        .iter()
        .find(|(code, _)| codes.iter().any(|it| it == code));
    if let Some((_, advice)) = known {
        return Some(advice);
    }
    if matches!(status, 401..=403) {
        return Some(advice(status));
    }
    if !matches!(status, 400 | 404 | 429) {
        return None;
    }
    let message = error["message"].as_str().or(error.as_str())?.to_lowercase();
    if status == 404 {
        let is_model = message.contains("model")
            && ["not found", "not exist"]
                .iter()
                .any(|it| message.contains(it));
        return is_model.then(|| advice(404));
    }
    let said = ACCOUNT_SAYINGS
        .iter()
        .find(|(words, _)| message.contains(words));
    said.map(|(_, advice)| *advice)
}

/// The failure for an error that comes in the middle of a stream, where no status can report it. Some servers put the
/// status into its `code`.
pub(super) fn of_event(error: &Value) -> ModelError {
    of_error(error, "an error in its stream")
}

/// The failure for an error that comes with a success status in place of an answer.
pub(super) fn of_answer(error: &Value) -> ModelError {
    of_error(error, "an error in place of an answer")
}

fn of_error(error: &Value, what: &str) -> ModelError {
    let codes = codes(error);
    let status = error["code"].as_u64().and_then(|n| u16::try_from(n).ok());
    let kind = codes
        .iter()
        .find_map(|code| STATUS_OF_CODE.iter().find(|(name, _)| code == name));
    if let Some(status) = kind.map(|(_, status)| *status).or(status) {
        let body = serde_json::json!({"error": error}).to_string();
        let failed = FailedStatus {
            status,
            retry_after: None,
            retry_after_ms: None,
            body: &body,
        };
        match of_status(&failed, DateTime::UNIX_EPOCH) {
            ModelError::Unavailable { .. } => {}
            failure => return failure,
        }
    } else if let Some(too_long) = overflow::of_error(error) {
        return too_long;
    }
    let shown = match codes.is_empty() {
        true => String::new(),
        false => format!(" ({})", codes.join(", ")),
    };
    ModelError::Unavailable {
        cause: format!("{what}{shown}"),
    }
}

/// The status that an error in a stream would have had as a response. An error with no such code and no status is
/// transient.
const STATUS_OF_CODE: [(&str, u16); 13] = [
    ("insufficient_quota", 429),
    ("rate_limit_error", 429),
    ("rate_limit_exceeded", 429),
    ("requests", 429),
    ("tokens", 429),
    ("context_length_exceeded", 400),
    ("invalid_request_error", 400),
    ("invalid_prompt", 400),
    ("authentication_error", 401),
    ("billing_error", 402),
    ("permission_error", 403),
    ("not_found_error", 404),
    ("request_too_large", 413),
];

/// Whether a provider refuses to stream, but may answer without a stream. Looks at the whole body, and keeps nothing of
/// it.
pub(super) fn refuses_streams(status: u16, body: &str) -> bool {
    matches!(status, 400 | 404 | 405 | 415 | 422 | 501)
        && body.to_ascii_lowercase().contains("stream")
}

fn advice(status: u16) -> &'static str {
    match status {
        401 => "; check the model's `api_key`",
        402 => "; the account must be topped up",
        403 => "; the key may not use this model",
        404 => "; check the model's `model` and `base_url`",
        _ => "",
    }
}

fn wait_ms(failed: &FailedStatus<'_>, now: DateTime<Utc>) -> Option<u64> {
    let from_ms = failed.retry_after_ms.and_then(|ms| ms.trim().parse().ok());
    from_ms.or_else(|| {
        let value = failed.retry_after?.trim();
        seconds_as_ms(value).or_else(|| {
            let at = DateTime::parse_from_rfc2822(value).ok()?;
            let wait_ms = at.signed_duration_since(now).num_milliseconds();
            Some(u64::try_from(wait_ms).unwrap_or(0))
        })
    })
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the value is finite and not negative, and the cast saturates"
)]
fn seconds_as_ms(value: &str) -> Option<u64> {
    let seconds: f64 = value.parse().ok()?;
    let is_fit = seconds.is_finite() && seconds >= 0.0;
    is_fit.then(|| (seconds * 1_000.0).ceil() as u64)
}

/// `type` and `code` of an error, if they look like codes.
fn codes(error: &Value) -> Vec<String> {
    let mut codes: Vec<String> = ["type", "code"]
        .iter()
        .filter_map(|name| error.get(name)?.as_str())
        .filter(|code| is_code(code))
        .map(str::to_owned)
        .collect();
    codes.dedup();
    codes
}

fn is_code(code: &str) -> bool {
    let is_code_byte = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    !code.is_empty() && code.len() <= CODE_MAX_BYTES && code.bytes().all(is_code_byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(status: u16, retry_after: Option<&str>, body: &str) -> ModelError {
        let failed = FailedStatus {
            status,
            retry_after,
            retry_after_ms: None,
            body,
        };
        let now = DateTime::from_timestamp(1_445_412_470, 0).expect("a valid instant");
        of_status(&failed, now)
    }

    fn account(reason: &str) -> ModelError {
        ModelError::AccountRefused {
            reason: reason.to_owned(),
        }
    }

    #[test]
    fn statuses_say_whether_to_ask_again() {
        let wait = |wait_ms| ModelError::RetryAfter { wait_ms };
        let down = |cause: &str| ModelError::Unavailable {
            cause: cause.to_owned(),
        };
        let too_long = |limit| ModelError::ContextTooLong { limit, asked: None };
        let overloaded = r#"{"type":"error","error":{"type":"overloaded_error","message":"x"}}"#;
        let cases = [
            (failed(429, None, ""), wait(None)),
            (failed(429, Some("2"), ""), wait(Some(2_000))),
            (failed(429, Some("0.25"), ""), wait(Some(250))),
            (
                failed(503, Some("Wed, 21 Oct 2015 07:28:00 GMT"), ""),
                wait(Some(10_000)),
            ),
            (
                failed(503, Some("Wed, 21 Oct 2015 07:27:00 GMT"), ""),
                wait(Some(0)),
            ),
            (failed(500, Some("soon"), "<html>"), down("HTTP 500")),
            (
                failed(529, None, overloaded),
                down("HTTP 529 (overloaded_error)"),
            ),
            (
                failed(401, Some("2"), r#"{"error":{"code":"invalid_api_key"}}"#),
                account("HTTP 401 (invalid_api_key); check the model's `api_key`"),
            ),
            (
                failed(
                    429,
                    Some("2"),
                    r#"{"error":{"type":"insufficient_quota","code":"insufficient_quota"}}"#,
                ),
                account("HTTP 429 (insufficient_quota); the account's quota is used up"),
            ),
            (
                failed(400, None, r#"{"error":{"code":"context_length_exceeded"}}"#),
                too_long(None),
            ),
        ];
        for (found, expected) in cases {
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn what_refuses_every_request_is_told_from_what_refuses_one() {
        let is_account = |status, body: &str| match failed(status, None, body) {
            ModelError::AccountRefused { .. } => true,
            ModelError::Refused { .. } => false,
            other => panic!("{status} {body}: {other:?}"),
        };
        let account = [
            (401, ""),
            (402, "<html>"),
            (403, ""),
            (404, r#"{"error":{"code":"model_not_found","message":"x"}}"#),
            (
                404,
                r#"{"type":"error","error":{"type":"not_found_error","message":"model: x"}}"#,
            ),
            (
                404,
                r#"{"error":{"message":"model 'x' not found","type":"api_error"}}"#,
            ),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the API."}}"#,
            ),
            (
                400,
                r#"[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]"#,
            ),
            (
                429,
                r#"{"error":{"code":"1113","message":"Insufficient balance or no resource package."}}"#,
            ),
        ];
        for (status, body) in account {
            assert!(is_account(status, body), "{status} {body}");
        }
        let request = [
            (
                400,
                r#"{"error":{"code":"invalid_prompt","message":"flagged"}}"#,
            ),
            (
                403,
                r#"{"error":{"code":403,"message":"flagged","metadata":{"reasons":["violence"],"flagged_input":"x"}}}"#,
            ),
            (
                404,
                r#"{"error":{"code":404,"message":"No endpoints found that support image input"}}"#,
            ),
            (422, "{}"),
        ];
        for (status, body) in request {
            assert!(!is_account(status, body), "{status} {body}");
        }
    }

    #[test]
    fn a_prompt_that_is_too_long_is_told_by_status_code_or_text() {
        let too_long = |limit| ModelError::ContextTooLong { limit, asked: None };
        let text = r#"{"error":{"message":"maximum context length is 8192 tokens"}}"#;
        assert_eq!(failed(400, None, text), too_long(Some(8_192)));
        assert_eq!(failed(500, None, text), too_long(Some(8_192)));
        assert_eq!(failed(413, None, "<html>"), too_long(None));
        assert_eq!(failed(400, None, ""), too_long(None));
        let vllm =
            r#"{"object":"error","message":"maximum context length is 8192 tokens","code":400}"#;
        assert_eq!(failed(400, None, vllm), too_long(Some(8_192)));
        let rate = r#"{"error":{"message":"Rate limit: too many tokens"}}"#;
        assert_eq!(
            failed(429, None, rate),
            ModelError::RetryAfter { wait_ms: None }
        );
        let event = serde_json::json!({"code": "context_length_exceeded", "message": "x"});
        assert_eq!(of_event(&event), too_long(None));
    }

    #[test]
    fn nothing_of_a_body_but_codes_is_taken_over() {
        let body = r#"{"error":{"type":"Key sk-123 is wrong","code":401,"message":"sk-123"}}"#;
        assert_eq!(
            failed(401, None, body),
            account("HTTP 401; check the model's `api_key`")
        );
    }

    #[test]
    fn milliseconds_win_over_seconds() {
        let failed = FailedStatus {
            status: 429,
            retry_after: Some("2"),
            retry_after_ms: Some("1500"),
            body: "",
        };
        let found = of_status(&failed, Utc::now());
        assert_eq!(
            found,
            ModelError::RetryAfter {
                wait_ms: Some(1_500)
            }
        );
    }
}
