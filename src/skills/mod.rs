//! Skills of the operator, read from their folders each time they are needed.
//!
//! It knows no agents and no models, and approves nothing: a skill is identified by its hash, and the approval of
//! that hash is a row of the store. Reading order: this page, `readings` (how many readings may be under way),
//! `folder` (one skill's files).

mod folder;
mod readings;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::warn;
use vocative_core::skills::{Skill, check_name};
use vocative_store::{Reader, StoreError};

use readings::Readings;

/// The most skills of a folder that are read.
const SKILLS_OF_FOLDER_MAX: usize = 256;
/// The time limit for the disk; after it no skill is offered for now.
const LOOK_LIMIT: Duration = Duration::from_secs(10);
/// The message if the folders do not answer.
pub const NO_ANSWER: &str = "the folders did not answer in time: look at their disk";

/// The configured folders of skills.
#[derive(Clone, Debug, Default)]
pub struct Shelf {
    folders: Arc<[PathBuf]>,
    readings: Arc<Readings>,
}

/// A folder with the name of a skill.
#[derive(Clone, Debug)]
pub struct FoundSkill {
    /// The name.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// The skill, or why it is invalid.
    pub skill: Result<Arc<Skill>, String>,
}

impl Shelf {
    /// The skills of these folders. If two have the same name, that of the earlier folder counts.
    #[must_use]
    pub fn new(folders: &[PathBuf]) -> Self {
        Self {
            folders: folders.into(),
            readings: Arc::default(),
        }
    }

    /// All skills, by name; and the errors from reading the folders.
    pub async fn look(&self) -> (Vec<FoundSkill>, Vec<String>) {
        self.look_within(LOOK_LIMIT).await
    }

    /// The same with a shorter time limit.
    pub async fn look_within(&self, limit: Duration) -> (Vec<FoundSkill>, Vec<String>) {
        let folders = Arc::clone(&self.folders);
        let found = self.read(limit, move || look(&folders)).await;
        found.unwrap_or_else(|| (Vec::new(), vec![NO_ANSWER.to_owned()]))
    }

    /// Some skills, by name; missing ones are left out. `None`: the folders do not answer.
    pub async fn named_within(&self, names: &[String], limit: Duration) -> Option<Vec<FoundSkill>> {
        let names: BTreeSet<String> = names.iter().cloned().collect();
        if names.is_empty() {
            return Some(Vec::new());
        }
        let folders = Arc::clone(&self.folders);
        let found = move || {
            let named = names.iter().filter_map(|name| found(&folders, name));
            named.collect()
        };
        self.read(limit, found).await
    }

    /// The same with the full time limit; if the folders do not answer, the result is empty.
    pub async fn named(&self, names: &[String]) -> Vec<FoundSkill> {
        let found = self.named_within(names, LOOK_LIMIT).await;
        found.unwrap_or_default()
    }

    /// Those of some skills whose current content is approved, by name.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn approved(
        &self,
        names: &[String],
        store: &Reader,
    ) -> Result<Vec<Arc<Skill>>, StoreError> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let approvals = store.skill_approvals().await?;
        let found = self.named(names).await.into_iter();
        let skills = found.filter_map(|found| found.skill.ok());
        let is_approved = |skill: &Arc<Skill>| {
            let mut approvals = approvals.iter();
            approvals.any(|it| it.skill == skill.name && it.digest == skill.digest)
        };
        Ok(skills.filter(is_approved).collect())
    }

    /// Reads, unless too many readings are under way that the disk does not answer.
    async fn read<T: Send + 'static>(
        &self,
        limit: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let reading = self.readings.begin(Instant::now())?;
        let reading = tokio::task::spawn_blocking(move || {
            let found = work();
            // The reading counts until here, even if its caller is gone.
            drop(reading);
            found
        });
        match tokio::time::timeout(limit, reading).await {
            Ok(Ok(found)) => Some(found),
            Ok(Err(error)) => {
                warn!(%error, "reading skills ended badly");
                None
            }
            Err(_) => {
                warn!("the folders of skills did not answer in time; no skill is offered for now");
                None
            }
        }
    }
}

fn look(folders: &[PathBuf]) -> (Vec<FoundSkill>, Vec<String>) {
    let (mut names, mut problems) = (BTreeSet::new(), Vec::new());
    for folder in folders {
        match folder::skills_of(folder, SKILLS_OF_FOLDER_MAX) {
            Ok((found, is_all)) => {
                names.extend(found);
                if !is_all {
                    let what = format!(
                        "{} has more than {SKILLS_OF_FOLDER_MAX} folders; the others are left out",
                        folder.display()
                    );
                    problems.push(what);
                }
            }
            Err(error) => problems.push(format!("{}: {error}", folder.display())),
        }
    }
    let found = names.iter().filter_map(|name| found(folders, name));
    (found.collect(), problems)
}

/// The skill of that name, of the first folder that has one.
fn found(folders: &[PathBuf], name: &str) -> Option<FoundSkill> {
    let parent = folders
        .iter()
        .find(|parent| parent.join(name).symlink_metadata().is_ok())?;
    let folder = parent.join(name);
    let skill = check_name(name)
        .map_err(|why| format!("the folder's name {why}"))
        .and_then(|()| folder::files(&folder))
        .and_then(|files| Skill::read(name, files));
    Some(FoundSkill {
        name: name.to_owned(),
        folder,
        skill: skill.map(Arc::new),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn a_disk_that_does_not_answer_is_waited_for_no_longer_than_is_said() {
        let shelf = Shelf::default();
        let (let_go, waits) = mpsc::channel::<()>();
        let short = Duration::from_millis(1);
        let read = shelf.read(short, move || waits.recv().is_ok()).await;
        assert_eq!(read, None);
        // The reading is still under way, and ends when the disk answers.
        assert_eq!(shelf.readings.under_way(), 1);
        let other = shelf.read(LOOK_LIMIT, || 1).await;
        assert_eq!(other, Some(1));
        let_go.send(()).unwrap();
        let ended = async {
            while shelf.readings.under_way() > 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(LOOK_LIMIT, ended).await.unwrap();
    }
}
