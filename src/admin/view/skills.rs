//! Skills of agents.

use serde::{Deserialize, Serialize};

/// A skill at a glance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillView {
    /// Its name.
    pub name: String,
    /// In a word: approved, new, changed, broken, missing.
    pub state: String,
    /// The hash of all its files, in hexadecimal; absent if it is broken or missing.
    pub digest: Option<String>,
    /// What it says it is for.
    pub description: String,
    /// Where it is.
    pub folder: Option<String>,
    /// The agents that have it.
    pub agents: Vec<String>,
    /// Why it is not a valid skill.
    pub cause: Option<String>,
    /// Who approved it; if it has changed since, who approved it as it was before.
    pub approved_by: Option<String>,
    /// When that was.
    pub approved_at_ms: Option<i64>,
}

impl SkillView {
    /// Whether it waits for a person.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        ["new", "changed"].contains(&self.state.as_str())
    }
}

/// A skill with its texts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillTextView {
    /// The skill.
    pub skill: SkillView,
    /// Its files.
    pub files: Vec<SkillFileView>,
}

/// A file of a skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillFileView {
    /// Its path below the skill's folder.
    pub path: String,
    /// Its size.
    pub bytes: usize,
    /// Its text; absent if it is not text, in which case a model is shown nothing of it.
    pub text: Option<String>,
}

/// A skill that an agent names and that is not used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingSkillView {
    /// Its name.
    pub name: String,
    /// In a word: new, changed, broken, missing.
    pub state: String,
    /// The cause, unless only an approval is missing.
    pub cause: Option<String>,
}

/// All skills, as far as the folders could be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillsView {
    /// The skills, by name; none if their folders do not answer.
    pub skills: Vec<SkillView>,
    /// What in the folders can't be read.
    pub problems: Vec<String>,
}

/// How many of the skills that agents name are in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillCountsView {
    /// Skills that agents have.
    pub approved: u64,
    /// Skills that were never approved.
    pub new: u64,
    /// Skills that have changed since they were approved.
    pub changed: u64,
    /// Folders that are no skills.
    pub broken: u64,
    /// Skills that are not there.
    pub missing: u64,
}

impl SkillCountsView {
    /// The counts of some skills.
    #[must_use]
    pub fn of(skills: &[SkillView]) -> Self {
        let count = |state: &str| skills.iter().filter(|it| it.state == state).count() as u64;
        Self {
            approved: count("approved"),
            new: count("new"),
            changed: count("changed"),
            broken: count("broken"),
            missing: count("missing"),
        }
    }
}
