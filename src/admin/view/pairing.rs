//! People who are let in by a code.

use serde::{Deserialize, Serialize};

/// Somebody who was told a code, or was let in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairingView {
    /// The configured channel.
    pub channel: String,
    /// The platform's id of the person.
    pub person: String,
    /// How they are called there, if they said something since they were let in.
    pub name: Option<String>,
    /// When they were told the code, in milliseconds since the Unix epoch.
    pub offered_at_ms: i64,
    /// When they were let in, in the same; absent while they wait.
    pub approved_at_ms: Option<i64>,
    /// Who let them in.
    pub approved_by: Option<String>,
}
