//! Tools of servers, as they are pinned.

/// A tool of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedTool {
    /// The server.
    pub server: String,
    /// The server's name for it.
    pub tool: String,
    /// All that was approved of it; `None` = nothing.
    pub approved: Option<String>,
    /// All that the server says of it now, if that waits for a person.
    pub waiting: Option<String>,
    /// Whether the server's last list had it.
    pub is_listed: bool,
}
