//! Skills: how each stands, and what people decide about it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tracing::info;

use super::{OperationError, Operations, Operator, json};
use crate::admin::view::{
    SkillCountsView, SkillFileView, SkillTextView, SkillView, SkillsView, StatusView,
    WaitingSkillView,
};
use crate::skills::{FoundSkill, NO_ANSWER};
use vocative_core::skills::{Skill, SkillFile};
use vocative_store::contract::SkillApproval;

/// What is asked or decided about skills.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "skills", rename_all = "snake_case")]
pub enum SkillsOperation {
    /// All of them, and how each stands.
    List,
    /// One with its texts.
    Show {
        /// Its name.
        name: String,
    },
    /// Approves one as it is.
    Approve {
        /// Its name.
        name: String,
        /// The digest of the skill that the operator saw; refused if it has changed. Absent: not checked.
        #[serde(default)]
        digest: Option<String>,
        /// Who approves.
        by: String,
    },
    /// Revokes the approval of a skill.
    Revoke {
        /// Its name.
        name: String,
        /// Who revokes it.
        by: String,
    },
}

/// The shortest beginning of a digest by which a skill is approved.
const DIGEST_MIN_CHARS: usize = 32;
/// How long the status waits for the folders. Short, because people and monitoring ask for the status often.
const STATUS_WAIT: Duration = Duration::from_secs(2);
/// How long a request for one skill waits.
const SHOW_WAIT: Duration = Duration::from_secs(10);

impl Operations {
    pub(super) async fn skills_operation(
        &self,
        operation: SkillsOperation,
    ) -> Result<Value, OperationError> {
        Ok(match operation {
            SkillsOperation::List => json(&self.skills().await?),
            SkillsOperation::Show { name } => json(&self.skill(&name).await?),
            SkillsOperation::Approve { name, digest, by } => {
                let by = Operator::by_cli(&by)?;
                json(&self.approve_skill(&name, digest.as_deref(), &by).await?)
            }
            SkillsOperation::Revoke { name, by } => {
                let by = Operator::by_cli(&by)?;
                self.revoke_skill(&name, &by).await?;
                Value::Bool(true)
            }
        })
    }

    /// All skills of the folders, and those that agents name but no folder has.
    async fn skills(&self) -> Result<Vec<SkillView>, OperationError> {
        let seen = self.skills.look().await;
        let SkillsView { skills, problems } = self.skills_seen(seen).await?;
        if skills.is_empty() && !problems.is_empty() {
            return Err(OperationError::Wrong(problems.join("; ")));
        }
        Ok(skills)
    }

    /// All skills, read within `limit`, with what can't be read.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn skills_within(&self, limit: Duration) -> Result<SkillsView, OperationError> {
        let seen = self.skills.look_within(limit).await;
        self.skills_seen(seen).await
    }

    async fn skills_seen(
        &self,
        (found, problems): (Vec<FoundSkill>, Vec<String>),
    ) -> Result<SkillsView, OperationError> {
        // If no folder could be read, it is unknown which skills are missing.
        if found.is_empty() && !problems.is_empty() {
            let skills = Vec::new();
            return Ok(SkillsView { skills, problems });
        }
        let users = self.skill_users();
        let mut skills = self.skill_views(&found, &users).await?;
        for (name, agents) in &users {
            if !skills.iter().any(|view| view.name == *name) {
                skills.push(missing(name, agents));
            }
        }
        skills.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(SkillsView { skills, problems })
    }

    async fn skill(&self, name: &str) -> Result<SkillTextView, OperationError> {
        let (skill, found) = self.found_skill(name).await?;
        let files = found.skill.iter().flat_map(|skill| &skill.files);
        let file = |(path, file): (&String, &SkillFile)| SkillFileView {
            path: path.clone(),
            bytes: file.bytes(),
            text: match file {
                SkillFile::Text(text) => Some(text.clone()),
                SkillFile::Binary(_) => None,
            },
        };
        Ok(SkillTextView {
            skill,
            files: files.map(file).collect(),
        })
    }

    async fn approve_skill(
        &self,
        name: &str,
        digest: Option<&str>,
        by: &Operator,
    ) -> Result<SkillView, OperationError> {
        let (_, found) = self.found_skill(name).await?;
        let skill = found.skill.map_err(|why| {
            OperationError::Wrong(format!(
                "{name} can't be approved, as it is no skill: {why}"
            ))
        })?;
        if let Some(digest) = digest {
            agrees(&skill, digest)?;
        }
        let approval = SkillApproval {
            skill: skill.name.clone(),
            digest: skill.digest.clone(),
            approved_by: by.name().to_owned(),
            approved_at_ms: (self.clock)(),
        };
        self.store.approve_skill(approval).await?;
        info!(skill = name, by = by.name(), "a skill was approved");
        Ok(self.found_skill(name).await?.0)
    }

    async fn revoke_skill(&self, name: &str, by: &Operator) -> Result<(), OperationError> {
        if !self.store.revoke_skill(name).await? {
            return Err(OperationError::Missing(format!(
                "no approval of {name} is there; `vocative skills list` shows what is"
            )));
        }
        info!(
            skill = name,
            by = by.name(),
            "the approval of a skill was taken back"
        );
        Ok(())
    }

    /// Adds the states of the skills that agents name. If the disk does not answer soon, the status goes without them.
    pub(super) async fn add_skills(&self, view: &mut StatusView) -> Result<(), OperationError> {
        let users = self.skill_users();
        let names: Vec<String> = users.keys().cloned().collect();
        let Some(found) = self.skills.named_within(&names, STATUS_WAIT).await else {
            let what = format!("agents have no skills for now: {NO_ANSWER}");
            view.needs_person.push(what);
            return Ok(());
        };
        let mut views = self.skill_views(&found, &users).await?;
        let is_there = |name: &str| found.iter().any(|found| found.name == name);
        let gone = users.iter().filter(|(name, _)| !is_there(name));
        views.extend(gone.map(|(name, agents)| missing(name, agents)));
        view.skill_counts = Some(SkillCountsView::of(&views));
        let unused = views.into_iter().filter(|view| view.state != "approved");
        view.skills = unused
            .map(|view| WaitingSkillView {
                name: view.name,
                state: view.state,
                cause: view.cause,
            })
            .collect();
        view.skills.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(())
    }

    async fn found_skill(&self, name: &str) -> Result<(SkillView, FoundSkill), OperationError> {
        let names = [name.to_owned()];
        let Some(mut found) = self.skills.named_within(&names, SHOW_WAIT).await else {
            return Err(OperationError::Wrong(NO_ANSWER.to_owned()));
        };
        let Some(found) = found.pop() else {
            return Err(OperationError::Missing(format!(
                "there is no skill {name} in skills.folders; `vocative skills list` shows which there are"
            )));
        };
        let views = self
            .skill_views(std::slice::from_ref(&found), &self.skill_users())
            .await?;
        let view = views.into_iter().next().expect("one was found");
        Ok((view, found))
    }

    async fn skill_views(
        &self,
        found: &[FoundSkill],
        users: &BTreeMap<String, BTreeSet<String>>,
    ) -> Result<Vec<SkillView>, OperationError> {
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let approvals = self.store.skill_approvals().await?;
        let view = |found: &FoundSkill| {
            let approval = approvals.iter().find(|it| it.skill == found.name);
            view(found, approval, users.get(&found.name))
        };
        Ok(found.iter().map(view).collect())
    }

    /// The skills that agents name, with those agents.
    fn skill_users(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut users: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for agent in self.registry.names() {
            let Some(spec) = self.registry.get(&agent) else {
                continue;
            };
            for skill in &spec.settings().skills {
                users
                    .entry(skill.clone())
                    .or_default()
                    .insert(agent.to_string());
            }
        }
        users
    }
}

fn view(
    found: &FoundSkill,
    approval: Option<&SkillApproval>,
    agents: Option<&BTreeSet<String>>,
) -> SkillView {
    let skill = found.skill.as_ref().ok();
    let state = match (skill, approval) {
        (None, _) => "broken",
        (Some(_), None) => "new",
        (Some(skill), Some(approval)) if skill.digest == approval.digest => "approved",
        (Some(_), Some(_)) => "changed",
    };
    SkillView {
        name: found.name.clone(),
        state: state.to_owned(),
        digest: skill.map(|skill| skill.digest.clone()),
        description: skill
            .map(|skill| skill.description.clone())
            .unwrap_or_default(),
        folder: Some(found.folder.display().to_string()),
        agents: agents.into_iter().flatten().cloned().collect(),
        cause: found.skill.as_ref().err().cloned(),
        approved_by: approval.map(|it| it.approved_by.clone()),
        approved_at_ms: approval.map(|it| it.approved_at_ms),
    }
}

fn missing(name: &str, agents: &BTreeSet<String>) -> SkillView {
    SkillView {
        name: name.to_owned(),
        state: "missing".to_owned(),
        digest: None,
        description: String::new(),
        folder: None,
        agents: agents.iter().cloned().collect(),
        cause: Some("no folder of that name is in skills.folders".to_owned()),
        approved_by: None,
        approved_at_ms: None,
    }
}

fn agrees(skill: &Skill, digest: &str) -> Result<(), OperationError> {
    if digest.len() < DIGEST_MIN_CHARS {
        return Err(OperationError::Wrong(format!(
            "a digest has at least {DIGEST_MIN_CHARS} characters; `vocative skills show {}` shows it",
            skill.name
        )));
    }
    match skill.digest.starts_with(digest) {
        true => Ok(()),
        false => Err(OperationError::Over(format!(
            "{} is another one meanwhile; look at it again",
            skill.name
        ))),
    }
}
