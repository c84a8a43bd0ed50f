//! Addresses of Telegram's messages. Pure.

use crate::permalink::MessageIds;

/// The address of a message. *Source:* Telegram's message links (`t.me/c/...`), which supergroups and channels have, and
/// direct chats and basic groups don't.
pub(super) fn permalink(ids: &MessageIds<'_>) -> Option<String> {
    let group = ids.chat.strip_prefix("-100")?;
    let topic = ids
        .thread
        .map_or_else(String::new, |topic| format!("{topic}/"));
    let message = ids.message;
    Some(format!("https://t.me/c/{group}/{topic}{message}"))
}

#[cfg(test)]
mod tests {
    use vocative_contract::identity::Platform;

    use crate::permalink::{MessageIds, permalink};

    #[test]
    fn a_message_of_a_supergroup_has_an_address() {
        let cases = [
            (
                ("-1001234567890", None),
                Some("https://t.me/c/1234567890/77"),
            ),
            (
                ("-1001234567890", Some("5")),
                Some("https://t.me/c/1234567890/5/77"),
            ),
            (("-4711", None), None),
            (("4711", None), None),
        ];
        for ((chat, thread), expected) in cases {
            let ids = MessageIds {
                account: "42",
                chat,
                thread,
                message: "77",
            };
            let found = permalink(Platform::Telegram, &ids);
            assert_eq!(found.as_deref(), expected, "{ids:?}");
        }
    }
}
