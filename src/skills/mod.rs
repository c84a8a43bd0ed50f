//! Skills of the operator: which there are, read from their folders whenever they are asked for.
//!
//! It knows no agents and no models, and approves nothing: a skill is given by its hash, and who approved that hash is
//! a row of the store. Reading order: this page, `folder` (one skill's files).

mod folder;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tracing::warn;
use vocative_core::skills::{Skill, check_name};
use vocative_store::{Reader, StoreError};

/// The most skills of a folder that are looked at.
const SKILLS_OF_FOLDER_MAX: usize = 256;
/// How long the disk may take; then no skill is offered for now.
const LOOK_LIMIT: Duration = Duration::from_secs(10);

/// The configured folders of skills.
#[derive(Clone, Debug, Default)]
pub struct Shelf {
    folders: Arc<[PathBuf]>,
}

/// What is in a folder under the name of a skill.
#[derive(Clone, Debug)]
pub struct Found {
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
        }
    }

    /// All skills, by name; and what of the folders can't be read.
    pub async fn look(&self) -> (Vec<Found>, Vec<String>) {
        let folders = Arc::clone(&self.folders);
        self.read(move || look(&folders)).await.unwrap_or_else(|| {
            let why = format!(
                "the folders did not answer within {} s",
                LOOK_LIMIT.as_secs()
            );
            (Vec::new(), vec![why])
        })
    }

    /// Some skills, by name; those that are not there are left out.
    pub async fn named(&self, names: &[String]) -> Vec<Found> {
        let names: BTreeSet<String> = names.iter().cloned().collect();
        if names.is_empty() {
            return Vec::new();
        }
        let folders = Arc::clone(&self.folders);
        let found = self.read(move || {
            let named = names.iter().filter_map(|name| found(&folders, name));
            named.collect()
        });
        found.await.unwrap_or_default()
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

    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let reading = tokio::task::spawn_blocking(work);
        match tokio::time::timeout(LOOK_LIMIT, reading).await {
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

fn look(folders: &[PathBuf]) -> (Vec<Found>, Vec<String>) {
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
fn found(folders: &[PathBuf], name: &str) -> Option<Found> {
    let parent = folders
        .iter()
        .find(|parent| parent.join(name).symlink_metadata().is_ok())?;
    let folder = parent.join(name);
    let skill = check_name(name)
        .map_err(|why| format!("the folder's name {why}"))
        .and_then(|()| folder::files(&folder))
        .and_then(|files| Skill::read(name, files));
    Some(Found {
        name: name.to_owned(),
        folder,
        skill: skill.map(Arc::new),
    })
}
