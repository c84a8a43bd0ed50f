//! Skills, as they were approved.

/// That an operator approved a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillApproval {
    /// Its name.
    pub skill: String,
    /// The hash of its files then, in hexadecimal.
    pub digest: String,
    /// The operator's name.
    pub approved_by: String,
    /// When.
    pub approved_at_ms: i64,
}
