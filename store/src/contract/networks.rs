//! Runs of networks.

use vocative_core::ids::AgentName;

/// What a run is asked, as decisions look at it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AskedInRun {
    /// What was said, oldest first.
    pub texts: Vec<String>,
    /// Whether files came with it.
    pub has_files: bool,
    /// Whether a bot said some of it.
    pub is_bot: bool,
    /// The platform's ids of those who said it.
    pub people: Vec<String>,
    /// When the newest of it was said, by the platform's time, in milliseconds since the Unix epoch.
    pub sent_at_ms: i64,
}

/// Values that a network keeps in a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptValues {
    /// The version, from 1; each change adds one.
    pub version: i64,
    /// The values, as JSON.
    pub values: String,
    /// When they were kept, in milliseconds since the Unix epoch.
    pub at_ms: i64,
}

/// Values that are to outlive their run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValuesToKeep {
    /// Whose they are.
    pub network: AgentName,
    /// The version that they were made from; 0: there were none. They are kept only if that is still the newest.
    pub read_version: i64,
    /// The values, as JSON.
    pub values: String,
}
