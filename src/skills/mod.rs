//! Skills of the operator: which there are, read from their folders whenever they are asked for.
//!
//! It knows no agents and no models, and approves nothing: a skill is given by its hash, and who approved that hash is
//! a row of the store. Reading order: this page, `readings` (how many readings may be under way), `folder` (one skill's
//! files).

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

/// The most skills of a folder that are looked at.
const SKILLS_OF_FOLDER_MAX: usize = 256;
/// How long the disk may take; then no skill is offered for now.
const LOOK_LIMIT: Duration = Duration::from_secs(10);
/// What is told where the folders do not answer.
pub const NO_ANSWER: &str = "the folders did not answer in time: look at their disk";

/// The configured folders of skills.
#[derive(Clone, Debug, Default)]
pub struct Shelf {
    folders: Arc<[PathBuf]>,
    readings: Arc<Readings>,
}

/// What is in a folder under the name of a skill.
#[derive(Clone, Debug)]
pub struct FoundSkill {
    /// The name.
    pub name: String,
    /// Where it is.
    pub folder: PathBuf,
    /// The skill, or why it is none.
    pub skill: Result<Arc<Skill>, String>,
}

impl Shelf {
    /// Skills of these folders. Of two with one name that of the earlier folder counts.
    #[must_use]
    pub fn new(folders: &[PathBuf]) -> Self {
        Self {
            folders: folders.into(),
            readings: Arc::default(),
        }
    }

    /// All skills, by name; and what of the folders can't be read.
    pub async fn look(&self) -> (Vec<FoundSkill>, Vec<String>) {
        self.look_within(LOOK_LIMIT).await
    }

    /// The same for who can't wait so long.
    pub async fn look_within(&self, limit: Duration) -> (Vec<FoundSkill>, Vec<String>) {
        let folders = Arc::clone(&self.folders);
        let found = self.read(limit, move || look(&folders)).await;
        found.unwrap_or_else(|| (Vec::new(), vec![NO_ANSWER.to_owned()]))
    }

    /// Some skills, by name; those that are not there are left out. `None`: the folders do not answer.
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

    /// The same for who can wait, and goes on without them.
    pub async fn named(&self, names: &[String]) -> Vec<FoundSkill> {
        let found = self.named_within(names, LOOK_LIMIT).await;
        found.unwrap_or_default()
    }

    /// Those of some skills that are approved as they are now, by name.
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

    /// Reads, unless too much of that is under way that the disk does not answer.
    async fn read<T: Send + 'static>(
        &self,
        limit: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let reading = self.readings.begin(Instant::now())?;
        let reading = tokio::task::spawn_blocking(move || {
            let found = work();
            // It counts until here, also when nobody waits for it any more.
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
        // It is under way still, and ends when the disk answers.
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
