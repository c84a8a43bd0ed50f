//! Erasures, planned and carried out.

use serde::{Deserialize, Serialize};

use vocative_store::erasure::{CarriedOut, ErasureCounts, ErasurePlan};

/// What erasing would take away.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ErasePlanView {
    /// Who or what it is.
    pub what: String,
    /// Turns that are blanked.
    pub turns: u64,
    /// Conversations they are in.
    pub conversations: u64,
    /// Runs they triggered, whose answers are blanked.
    pub runs: u64,
}

impl ErasePlanView {
    /// The view of a plan.
    #[must_use]
    pub fn of(plan: &ErasurePlan) -> Self {
        Self {
            what: plan.label.clone(),
            turns: plan.turns,
            conversations: plan.conversations,
            runs: plan.runs,
        }
    }
}

/// What an erasure did.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EraseView {
    /// Who or what it was.
    pub what: String,
    /// Turns blanked.
    pub turns: u64,
    /// Answers, notices and tool results made from them, blanked.
    pub answers: u64,
    /// Messages of others that repeated them, cut.
    pub repeats: u64,
    /// Other rows cleared: revisions, quotes, steps, posts, summaries, raw events.
    pub details: u64,
    /// Copies from before a migration that were removed.
    pub removed_copies: Vec<String>,
    /// The search of the files, if it was asked for.
    pub verification: Option<VerificationView>,
}

/// What a search of the files for erased texts found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VerificationView {
    /// Texts looked for.
    pub texts: u64,
    /// Files searched.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files that hold one, and how many.
    pub hits: Vec<(String, u64)>,
    /// Columns of the database that hold one, and in how many rows.
    #[serde(default)]
    pub columns: Vec<(String, u64)>,
}

impl EraseView {
    /// The view of what was done.
    #[must_use]
    pub fn of(what: &str, done: &CarriedOut, counts: ErasureCounts) -> Self {
        let shown = |path: &std::path::PathBuf| path.display().to_string();
        let verification = done.verification.as_ref().map(|found| VerificationView {
            texts: found.texts,
            files: found.files,
            bytes: found.bytes,
            hits: found
                .hits
                .iter()
                .map(|hit| (shown(&hit.path), hit.count))
                .collect(),
            columns: found
                .columns
                .iter()
                .map(|hit| (format!("{}.{}", hit.table, hit.column), hit.rows))
                .collect(),
        });
        Self {
            what: what.to_owned(),
            turns: counts.turns,
            answers: counts.answers,
            repeats: counts.repeats,
            details: counts.details,
            removed_copies: done.removed_copies.iter().map(shown).collect(),
            verification,
        }
    }
}
