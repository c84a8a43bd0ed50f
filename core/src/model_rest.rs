//! A model that is not asked for now.

/// A model that is not asked for now, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelRest {
    /// Its configured name.
    pub model: String,
    /// Whether its account is refused, so that an operator must act; otherwise it is over its limit or down.
    pub is_held: bool,
    /// What the provider said, for operators.
    pub reason: String,
    /// Since when, in milliseconds since the Unix epoch.
    pub since_ms: i64,
    /// When this was noted, in milliseconds since the Unix epoch.
    pub noted_at_ms: i64,
    /// When one question tries it again, in milliseconds since the Unix epoch.
    pub until_ms: i64,
}
