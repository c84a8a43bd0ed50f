//! Telegram: updates, answers, texts.

use serde_json::Value;
use vocative_channels::telegram::{TEXT_MAX_UTF16, fuzzing, translate};
use vocative_contract::capability::LengthUnit;
use vocative_contract::error::{ChannelError, Fallback};

use super::speech::{NOW_MS, check_envelope, check_error, check_text, telegram_bot};
use super::texts::{has_all_of, is_smaller};
use super::{answered, says_ok};

/// The token that must never show.
const TOKEN: &str = "777:SECRET-token";
/// What of it is not the bot's id, which everybody may see.
const SECRET: &str = "SECRET-token";

pub(super) fn update(input: &[u8]) {
    let raw = String::from_utf8_lossy(input);
    let envelope = translate("home", &telegram_bot(), &raw, NOW_MS);
    check_envelope(&envelope, &raw);
    let again = translate("home", &telegram_bot(), &raw, NOW_MS);
    assert_eq!(envelope, again, "another answer the second time");
}

pub(super) fn answer(input: &[u8]) {
    let (status, retry_after, body) = answered(input);
    let wait_ms = retry_after.and_then(|seconds| seconds.parse::<u64>().ok());
    let wait_ms = wait_ms.unwrap_or(0).saturating_mul(1_000).max(1_000);
    match fuzzing::answer(status, wait_ms, body, TOKEN) {
        Ok(result) => {
            assert!(says_ok(body), "nobody said ok");
            for (_, raw) in fuzzing::batch(&result).unwrap_or_default() {
                assert!(result.contains(&raw), "an update as it did not come");
                let envelope = translate("home", &telegram_bot(), &raw, NOW_MS);
                check_envelope(&envelope, &raw);
            }
        }
        Err(error) => {
            check_error(&error);
            assert!(!format!("{error:?}").contains(SECRET), "the token shows");
            if let ChannelError::ChatMoved { to_chat, .. } = &error {
                assert!(to_chat.parse::<i64>().is_ok());
            }
        }
    }
}

pub(super) fn text(input: &[u8]) {
    let json = serde_json::from_slice::<Value>(input).unwrap_or_default();
    let text = match json["text"].as_str() {
        Some(text) => text.to_owned(),
        None => String::from_utf8_lossy(input).into_owned(),
    };
    let (neutral, mentions) = fuzzing::neutral(&text, &json["entities"], &telegram_bot());
    check_text(&neutral, input.len());
    for id in &mentions {
        assert!(
            !id.is_empty() && !id.contains(char::is_whitespace),
            "{id:?}"
        );
    }
    check_posts(&neutral);
}

fn check_posts(text: &str) {
    let parts = fuzzing::render(text);
    assert_eq!(
        parts.is_empty(),
        text.trim().is_empty(),
        "what is not blank is posted"
    );
    for part in &parts {
        assert!(
            LengthUnit::Utf16.len(&part.text) <= TEXT_MAX_UTF16,
            "a post over the limit"
        );
        assert!(!part.text.trim().is_empty(), "an empty post");
        let length = LengthUnit::Utf16.len(&part.text) as u64;
        for entity in part.entities.iter().filter_map(Value::as_array).flatten() {
            let of = |name: &str| entity[name].as_u64().unwrap_or(u64::MAX);
            let is_inside = of("offset").saturating_add(of("length")) <= length;
            assert!(is_inside && of("length") > 0, "{entity} of {length}");
        }
        let smaller = fuzzing::render_fallback(part, Fallback::Resplit);
        assert!(is_smaller(&smaller, part), "a split that splits nothing");
        // A piece of which people see nothing is no post.
        let shown: String = smaller
            .iter()
            .map(|it| fuzzing::visible(&it.text))
            .collect();
        assert!(
            smaller.is_empty() || has_all_of(&shown, &fuzzing::visible(&part.text)),
            "a split lost words"
        );
    }
}
