//! Addresses of Slack's messages. Pure.

use crate::permalink::MessageIds;

/// The address of a message and its thread. *Source:* the addresses that Slack's web client shows.
pub(super) fn permalink(ids: &MessageIds<'_>) -> Option<String> {
    let (account, chat) = (ids.account, ids.chat);
    let root = ids.thread.unwrap_or(ids.message);
    Some(format!(
        "https://app.slack.com/client/{account}/{chat}/thread/{chat}-{root}"
    ))
}

#[cfg(test)]
mod tests {
    use vocative_contract::identity::Platform;

    use crate::permalink::{MessageIds, permalink};

    #[test]
    fn a_message_has_the_address_of_its_thread() {
        let ts = "1700000000.000200";
        let cases = [
            (
                ("C1", None, ts),
                Some("https://app.slack.com/client/T1/C1/thread/C1-1700000000.000200"),
            ),
            (
                ("C1", Some("1690000000.000100"), ts),
                Some("https://app.slack.com/client/T1/C1/thread/C1-1690000000.000100"),
            ),
            (("C1/../x", None, ts), None),
            (("C1", None, ""), None),
        ];
        for ((chat, thread, message), expected) in cases {
            let ids = MessageIds {
                account: "T1",
                chat,
                thread,
                message,
            };
            let found = permalink(Platform::Slack, &ids);
            assert_eq!(found.as_deref(), expected, "{ids:?}");
        }
    }
}
