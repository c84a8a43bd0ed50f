//! The answers of refused calls, in the platform's words.
//!
//! Owns the wording rule (prefix, lower-cased first letter) and the optional `parameters`.

use serde_json::{Value, json};

/// A refusal: HTTP status and `error_code` are the same number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ApiFailure {
    pub(super) code: u16,
    pub(super) description: String,
    pub(super) retry_after_s: Option<u32>,
    pub(super) migrate_to_chat_id: Option<i64>,
}

impl ApiFailure {
    /// A 400 with the server's wording rule applied to `message`.
    pub(super) fn bad(message: &str) -> Self {
        Self::worded(400, message)
    }

    /// A 403 with the wording rule applied.
    pub(super) fn forbidden(message: &str) -> Self {
        Self::worded(403, message)
    }

    /// A failure whose description is `<prefix of the code>: <message>`.
    pub(super) fn worded(code: u16, message: &str) -> Self {
        let prefix = match code {
            400 => "Bad Request",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "Not Found",
            409 => "Conflict",
            413 => "Request Entity Too Large",
            429 => "Too Many Requests",
            500 => "Internal Server Error",
            _ => "Bad Gateway",
        };
        Self::plain(code, format!("{prefix}: {}", lower_first(message)))
    }

    /// A failure with exactly this description.
    pub(super) fn plain(code: u16, description: impl Into<String>) -> Self {
        Self {
            code,
            description: description.into(),
            retry_after_s: None,
            migrate_to_chat_id: None,
        }
    }

    /// An edit that changes nothing.
    pub(super) fn not_modified() -> Self {
        Self::bad(
            "message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message",
        )
    }

    /// A 429 that says when to come back.
    pub(super) fn flood(retry_after_s: u32) -> Self {
        Self {
            retry_after_s: Some(retry_after_s),
            ..Self::plain(
                429,
                format!("Too Many Requests: retry after {retry_after_s}"),
            )
        }
    }

    /// The answer of a chat that became a supergroup.
    pub(super) fn migrated(new_id: i64) -> Self {
        Self {
            migrate_to_chat_id: Some(new_id),
            ..Self::bad("group chat was upgraded to a supergroup chat")
        }
    }

    /// The answer's body.
    pub(super) fn body(&self) -> Value {
        let mut body =
            json!({"ok": false, "error_code": self.code, "description": self.description});
        if let Some(seconds) = self.retry_after_s {
            body["parameters"] = json!({"retry_after": seconds});
        }
        if let Some(chat) = self.migrate_to_chat_id {
            body["parameters"] = json!({"migrate_to_chat_id": chat});
        }
        body
    }
}

/// Lower-cases the first letter unless the second is `_` or upper-case, so that codes such as
/// `TOPIC_CLOSED` stay as they are.
fn lower_first(message: &str) -> String {
    let mut chars = message.chars();
    let (Some(first), second) = (chars.next(), chars.next()) else {
        return String::new();
    };
    if second.is_some_and(|second| second == '_' || second.is_ascii_uppercase()) {
        return message.to_owned();
    }
    format!(
        "{}{}",
        first.to_ascii_lowercase(),
        &message[first.len_utf8()..]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_keep_their_capitals_and_sentences_lose_theirs() {
        let cases = [
            ("Chat not found", "Bad Request: chat not found"),
            ("TOPIC_CLOSED", "Bad Request: TOPIC_CLOSED"),
            (
                "message text is empty",
                "Bad Request: message text is empty",
            ),
        ];
        for (message, description) in cases {
            assert_eq!(ApiFailure::bad(message).description, description);
        }
    }
}
