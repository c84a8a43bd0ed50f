//! Skills, as they were approved.

/// An operator's approval of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillApproval {
    /// Its name.
    pub skill: String,
    /// The hash of its files then, in hexadecimal.
    pub digest: String,
    /// The operator's name.
    pub approved_by: String,
    /// When, in milliseconds since the Unix epoch.
    pub approved_at_ms: i64,
}
