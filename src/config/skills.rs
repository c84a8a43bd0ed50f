//! Skills: their folders, and the skills that an agent has.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use super::resolve::Review;
use super::settings::Agent;
use crate::tools::READ_SKILL;
use vocative_core::skills::{SKILLS_MAX, check_name};

/// The most folders of skills.
const FOLDERS_MAX: usize = 16;

/// Skills of agents, in the Agent Skills format.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SkillsShape {
    /// Folders whose folders are skills: each has a file SKILL.md. Of two with one name that of the earlier folder counts.
    pub folders: Vec<PathBuf>,
}

/// Checks the folders. The result is to be used only if no problem was found.
pub(super) fn resolve_skills(shape: &SkillsShape, review: &mut Review<'_>) -> Vec<PathBuf> {
    const KEY: &str = "skills.folders";
    if shape.folders.len() > FOLDERS_MAX {
        review.problem(KEY, format!("has more than {FOLDERS_MAX} folders"));
    }
    let mut folders: Vec<PathBuf> = Vec::new();
    for folder in &shape.folders {
        let folder = review.base_dir.join(folder);
        if folders.contains(&folder) {
            review.problem(KEY, format!("{} is in it twice", folder.display()));
        }
        folders.push(folder);
    }
    folders
}

/// Checks that the names of the agent's skills are valid, that there are folders with skills, and that an agent that
/// can read skills has one.
pub(super) fn check_skills(agent: &Agent, folders: &[PathBuf], review: &mut Review<'_>) {
    let key = format!("agents.{}.skills", agent.name);
    for name in &agent.settings.skills {
        if let Err(why) = check_name(name) {
            review.problem(&key, format!("\"{name}\" is no name of a skill: it {why}"));
        }
    }
    if agent.settings.skills.len() > SKILLS_MAX {
        review.problem(&key, format!("has more than {SKILLS_MAX} skills"));
    }
    if !agent.settings.skills.is_empty() && folders.is_empty() {
        let what = "names skills, and there is no folder of skills: set skills.folders = [\"/srv/skills\"]";
        review.problem(&key, what);
    }
    if agent.settings.skills.is_empty() && agent.tools.iter().any(|tool| tool == READ_SKILL) {
        review.problem(
            &key,
            format!("is empty, and the tool {READ_SKILL} reads it"),
        );
    }
}
