//! `[skills]`: what is accepted, and what is refused with which words.

use super::*;
use crate::tools::READ_SKILL;

fn shelf(settings: &str) -> String {
    format!("{MINIMAL}\n[skills]\nfolders = [\"/srv/skills\", \"mine\"]\n{settings}")
}

#[test]
fn an_agent_with_skills_has_what_reads_them() {
    let config = load(&shelf(
        "[agents.vocative]\nskills = [\"b-1\", \"a\", \"a\"]",
    ));
    let agent = &config.agents[&agent("vocative")];
    assert_eq!(agent.tools, ["conversation_search", READ_SKILL]);
    assert_eq!(agent.settings.skills, ["b-1", "a"]);
    assert_eq!(config.skill_folders.len(), 2);
    assert!(
        config
            .skill_folders
            .iter()
            .all(|folder| folder.is_absolute())
    );
}

#[test]
fn skills_that_could_not_be_meant_are_refused() {
    let cases = [
        (
            shelf("[agents.vocative]\nskills = [\"../a\"]"),
            "\"../a\" is no name of a skill",
        ),
        (
            shelf("[agents.vocative]\ntools = [\"read_skill\"]"),
            "is empty, and the tool read_skill reads it",
        ),
        (
            format!("{MINIMAL}\n[agents.vocative]\nskills = [\"a\"]"),
            "there is no folder of skills",
        ),
        (
            format!("{MINIMAL}\n[skills]\nfolders = [\"a\", \"a\"]"),
            "is in it twice",
        ),
        (
            shelf("[daemon]\ndata_dir = \"/srv/skills/data\""),
            "which skills must not",
        ),
    ];
    for (settings, expected) in cases {
        let told = refused(&settings);
        assert!(told.contains(expected), "{settings}: {told}");
    }
}
