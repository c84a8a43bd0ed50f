//! What was configured about posts of a channel.

use schemars::JsonSchema;
use serde::Deserialize;

/// What happens to a post that may or may not have arrived, where the platform shows bots no history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnUnknown {
    /// Ask the platform about single messages: people see it once.
    Look,
    /// Post it once more: people may see it twice.
    Resend,
    /// Wait for a person: people may not see it until then.
    Hold,
}

/// What happens to a post if it stays unknown whether it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnUndecided {
    /// Post it once more: people may see it twice.
    Resend,
    /// Wait for a person: people may not see it until then.
    Hold,
}

/// Whether people see an answer while it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Live {
    /// In direct chats only; elsewhere an answer is one post, because an edit notifies nobody.
    #[default]
    Auto,
    /// Everywhere.
    On,
    /// Nowhere.
    Off,
    /// Everywhere, and by a post that is edited also where the platform has previews.
    Edit,
    /// In Slack's threads by its streaming, and by a post that is edited in other chats with one person.
    Stream,
}

/// What is shown of answers that are being written, in one channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LivePolicy {
    /// Where.
    pub live: Live,
    /// How long after its first words an answer begins to show.
    pub delay_ms: u64,
    /// The shortest time between two states that show; 0 = the platform's own.
    pub interval_ms: u64,
}

impl Default for LivePolicy {
    fn default() -> Self {
        Self {
            live: Live::Off,
            delay_ms: 500,
            interval_ms: 0,
        }
    }
}
