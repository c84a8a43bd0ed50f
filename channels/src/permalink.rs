//! Addresses at which people open a message. Pure; each adapter has a module like it.

use vocative_contract::identity::Platform;

/// The platform's ids of a message.
#[derive(Clone, Copy, Debug)]
pub struct MessageIds<'a> {
    /// The account's.
    pub account: &'a str,
    /// The chat's.
    pub chat: &'a str,
    /// The thread's, if the message is in one.
    pub thread: Option<&'a str>,
    /// The message's own.
    pub message: &'a str,
}

impl MessageIds<'_> {
    /// Whether all of them can stand in an address as they are.
    fn are_plain(&self) -> bool {
        let is_id =
            |id: &str| !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '.');
        let all = [
            self.account,
            self.chat.trim_start_matches('-'),
            self.thread.unwrap_or("0"),
            self.message,
        ];
        all.into_iter().all(is_id)
    }
}

/// The address of a message; `None` where the platform has none for its kind of chat, or this build leaves its adapter
/// out.
#[must_use]
pub fn permalink(platform: Platform, ids: &MessageIds<'_>) -> Option<String> {
    let offline = crate::offline_half(platform).filter(|_| ids.are_plain())?;
    (offline.permalink)(ids)
}
