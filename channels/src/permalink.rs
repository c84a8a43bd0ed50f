//! Addresses at which people open a message. Pure.

use vocative_contract::identity::Platform;

/// The address of a message; `None` where the platform has none for its kind of chat.
///
/// `account`, `chat`, `thread` and `message` are the platform's ids. *Sources:* the addresses that Slack's web client
/// shows for a message and its thread; Telegram's message links (`t.me/c/...`), which supergroups and channels have,
/// and direct chats and basic groups don't.
#[must_use]
pub fn permalink(
    platform: Platform,
    account: &str,
    chat: &str,
    thread: Option<&str>,
    message: &str,
) -> Option<String> {
    let is_id =
        |id: &str| !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '.');
    let all = [
        account,
        chat.trim_start_matches('-'),
        thread.unwrap_or("0"),
        message,
    ];
    if !all.into_iter().all(is_id) {
        return None;
    }
    match platform {
        Platform::Slack => {
            let root = thread.unwrap_or(message);
            Some(format!(
                "https://app.slack.com/client/{account}/{chat}/thread/{chat}-{root}"
            ))
        }
        Platform::Telegram => {
            let group = chat.strip_prefix("-100")?;
            let topic = thread.map_or_else(String::new, |topic| format!("{topic}/"));
            Some(format!("https://t.me/c/{group}/{topic}{message}"))
        }
        Platform::Api => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_the_address_that_its_platform_gives_it() {
        use Platform::{Slack, Telegram};
        let ts = "1700000000.000200";
        let cases = [
            (
                (Slack, "T1", "C1", None, ts),
                Some("https://app.slack.com/client/T1/C1/thread/C1-1700000000.000200"),
            ),
            (
                (Slack, "T1", "C1", Some("1690000000.000100"), ts),
                Some("https://app.slack.com/client/T1/C1/thread/C1-1690000000.000100"),
            ),
            (
                (Telegram, "42", "-1001234567890", None, "77"),
                Some("https://t.me/c/1234567890/77"),
            ),
            (
                (Telegram, "42", "-1001234567890", Some("5"), "77"),
                Some("https://t.me/c/1234567890/5/77"),
            ),
            ((Telegram, "42", "-4711", None, "77"), None),
            ((Telegram, "42", "4711", None, "77"), None),
            ((Slack, "T1", "C1/../x", None, ts), None),
            ((Slack, "T1", "C1", None, ""), None),
        ];
        for ((platform, account, chat, thread, message), expected) in cases {
            let found = permalink(platform, account, chat, thread, message);
            assert_eq!(found.as_deref(), expected, "{platform:?} {chat} {message}");
        }
    }
}
