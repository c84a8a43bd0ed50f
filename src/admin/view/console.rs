//! The way into the console, and its audit.

use serde::{Deserialize, Serialize};

/// A link that lets somebody into the console once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConsoleLinkView {
    /// The link; its code follows the `#`, a part that browsers send to no server.
    pub url: String,
    /// Whom it lets in.
    pub name: String,
    /// What they may do: `viewer`, `operator`, `admin`.
    pub role: String,
    /// How long it lets them in, in seconds.
    pub expires_in_s: u64,
    /// The port of the console on the daemon's machine.
    pub port: u16,
    /// Whether the console is reached on the daemon's machine only.
    pub is_local: bool,
}

/// What somebody looked at or did in the console.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditView {
    /// Its number.
    pub id: i64,
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// Who: the name in `console.people`.
    pub who: String,
    /// How they came in: `link`, `proxy`.
    pub via: String,
    /// What it was, in a word: `login`, `look`, `approve`, `erase`, ...
    pub act: String,
    /// The id of what it was about; empty if it was about nothing in particular.
    pub target: String,
    /// What became of it: `begun` (it may have happened or not), `done`, `refused`.
    pub outcome: String,
}
