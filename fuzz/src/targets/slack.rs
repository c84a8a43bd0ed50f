//! Slack: frames, payloads, histories, answers, texts.

use serde_json::{Map, Value};
use vocative_channels::slack::{SlackDelivery, TEXT_MAX_CHARS, fuzzing, translate};
use vocative_contract::envelope::{ChatKind, Place};
use vocative_contract::error::{ChannelError, Fallback};
use vocative_contract::markup::mentioned_ids;
use vocative_contract::outbound::Part;

use super::speech::{NOW_MS, check_envelope, check_error, check_text, slack_bot};
use super::texts::{has_all_of, is_smaller};
use super::{answered, says_ok};

pub(super) fn frame(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let Some(envelope) = fuzzing::frame(&text, &slack_bot(), NOW_MS) else {
        return;
    };
    assert!(
        text.contains(&envelope.raw),
        "the payload is a piece of the frame"
    );
    check_envelope(&envelope, &envelope.raw);
}

pub(super) fn event(input: &[u8]) {
    let payload = String::from_utf8_lossy(input);
    for kind in [
        "events_api",
        "slash_commands",
        "interactive",
        "something_new",
    ] {
        let delivery = SlackDelivery {
            channel: "acme",
            kind,
            envelope_id: "e1",
            payload: &payload,
            received_at_ms: NOW_MS,
        };
        let envelope = translate(&delivery, &slack_bot());
        check_envelope(&envelope, &payload);
        assert_eq!(
            envelope,
            translate(&delivery, &slack_bot()),
            "another answer the second time"
        );
    }
}

pub(super) fn history(input: &[u8]) {
    let Ok(message) = serde_json::from_slice::<Map<String, Value>>(input) else {
        return;
    };
    let place = Place {
        chat: "C1".to_owned(),
        kind: Some(ChatKind::Private),
        ..Place::default()
    };
    let Some(past) = fuzzing::past_message(&place, message, &slack_bot(), NOW_MS) else {
        return;
    };
    assert!(!past.message_id.is_empty());
    check_envelope(&past.envelope, &past.envelope.raw);
}

pub(super) fn answer(input: &[u8]) {
    let (status, retry_after, body) = answered(input);
    match fuzzing::answer(status, retry_after.as_deref(), body) {
        Ok(()) => {
            assert!((200..300).contains(&status), "HTTP {status} is no success");
            assert!(says_ok(body), "nobody said ok");
        }
        Err(error) => {
            let is_unknown = matches!(error, ChannelError::OutcomeUnknown { .. });
            assert!(
                status < 500 || is_unknown,
                "HTTP {status} leaves the outcome unknown"
            );
            check_error(&error);
        }
    }
}

pub(super) fn text(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (marked, unmarked) = fuzzing::neutral(&text);
    for neutral in [&marked, &unmarked] {
        check_text(neutral, text.len());
        let has_marks = text.contains(['\u{fff9}', '\u{fffb}', '\0']);
        for id in mentioned_ids(neutral) {
            let is_there = text.contains(&format!("<@{id}"));
            assert!(is_there || has_marks, "{id:?} was mentioned by nobody");
        }
    }
    let parts = fuzzing::render(&text);
    assert_eq!(
        parts.is_empty(),
        text.trim().is_empty(),
        "what is not blank is posted"
    );
    parts.iter().for_each(check_part);
    // That no word is lost is shown with texts of known words: channels/tests/rendering.rs.
    for part in parts.iter().filter(|part| part.blocks.is_none()) {
        let smaller = fuzzing::render_fallback(part, Fallback::Resplit);
        assert!(is_smaller(&smaller, part), "a split that splits nothing");
        let shown: String = smaller.iter().map(fuzzing::shown).collect();
        assert!(
            has_all_of(&shown, &fuzzing::shown(part)),
            "a split lost words"
        );
    }
}

fn check_part(part: &Part) {
    assert!(
        part.text.chars().count() <= TEXT_MAX_CHARS,
        "a post over the limit"
    );
    assert!(
        !part.text.contains(['<', '>']),
        "a post with control characters"
    );
    assert!(!part.text.trim().is_empty(), "an empty post");
}
