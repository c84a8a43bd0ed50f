//! Skills: folders of instructions in the Agent Skills format, and what an agent is told of a skill.
//!
//! Pure: who reads the folder gives its files as bytes. Reading order: this page, `frontmatter` (the head of
//! `SKILL.md`).

mod frontmatter;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};
use vocative_contract::work::looked_at;

/// The file that every skill has.
pub const SKILL_FILE: &str = "SKILL.md";
/// The longest name of a skill, in characters. Source: the Agent Skills format.
pub const NAME_MAX_CHARS: usize = 64;
/// The longest description, in characters. Source: the Agent Skills format.
pub const DESCRIPTION_MAX_CHARS: usize = 1_024;
/// The most skills of one agent.
pub const SKILLS_MAX: usize = 32;
/// The most characters that an agent's skills take in its instructions. Beyond it each description is cut alike.
pub const LISTED_MAX_CHARS: usize = 12_000;
/// Characters of a description that are always listed.
const DESCRIPTION_MIN_CHARS: usize = 120;
/// Is part of every digest, so that a changed way to make digests gives other ones.
const VERSION: &str = "vocative skill 1";

/// A skill as it was read once: its texts are those that its digest was made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// Its name, which is its folder's.
    pub name: String,
    /// What it is for, in one line.
    pub description: String,
    /// The hash of all its files, names and bytes, in hexadecimal.
    pub digest: String,
    /// Its files by their paths below its folder.
    pub files: BTreeMap<String, SkillFile>,
}

/// A file of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkillFile {
    /// A text.
    Text(String),
    /// Something else, with its length in bytes: it is part of the digest, and is never shown.
    Binary(usize),
}

impl SkillFile {
    /// Its size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Binary(bytes) => *bytes,
        }
    }
}

impl Skill {
    /// Reads a skill out of the files of a folder.
    ///
    /// # Errors
    /// What is wrong with it, in words for who keeps the folder.
    pub fn read(folder: &str, files: BTreeMap<String, Vec<u8>>) -> Result<Self, String> {
        looked_at(files.values().map(Vec::len).sum());
        check_name(folder).map_err(|why| format!("the folder's name {why}"))?;
        let digest = digest(&files);
        let files: BTreeMap<String, SkillFile> = files
            .into_iter()
            .map(|(path, bytes)| (path, file(bytes)))
            .collect();
        let text = match files.get(SKILL_FILE) {
            Some(SkillFile::Text(text)) => text,
            Some(SkillFile::Binary(_)) => return Err(format!("{SKILL_FILE} is not UTF-8")),
            None => return Err(format!("it has no {SKILL_FILE}")),
        };
        let head = frontmatter::read(text).map_err(|why| format!("{SKILL_FILE}: {why}"))?;
        let wanted = |key: &str| {
            let value = head.get(key).map(|it| one_line(it)).unwrap_or_default();
            match value.is_empty() {
                true => Err(format!(
                    "{SKILL_FILE}: `{key}` is missing between the lines ---"
                )),
                false => Ok(value),
            }
        };
        let (name, description) = (wanted("name")?, wanted("description")?);
        if name != folder {
            return Err(format!(
                "{SKILL_FILE}: `name` is {name:?}, and its folder {folder:?}: they must be the same"
            ));
        }
        let chars = description.chars().count();
        if chars > DESCRIPTION_MAX_CHARS {
            return Err(format!(
                "{SKILL_FILE}: `description` has {chars} characters, more than {DESCRIPTION_MAX_CHARS}"
            ));
        }
        Ok(Self {
            name,
            description,
            digest,
            files,
        })
    }
}

/// Whether a skill may have that name.
///
/// # Errors
/// What it must be, as the end of a sentence.
pub fn check_name(name: &str) -> Result<(), String> {
    let is_fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_named = !name.is_empty() && name.len() <= NAME_MAX_CHARS && name.chars().all(is_fit);
    let has_ends = name.starts_with('-') || name.ends_with('-') || name.contains("--");
    match is_named && !has_ends {
        true => Ok(()),
        false => Err(format!(
            "must be 1 to {NAME_MAX_CHARS} of a-z, 0-9 and single hyphens between them"
        )),
    }
}

/// What an agent's instructions say of its skills; empty without any. The same skills give the same text.
#[must_use]
pub fn listed<'a>(skills: impl IntoIterator<Item = &'a Skill>, tool: &str) -> String {
    let mut skills: Vec<&Skill> = skills.into_iter().collect();
    skills.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    if skills.is_empty() {
        return String::new();
    }
    let share = (LISTED_MAX_CHARS / skills.len()).saturating_sub(NAME_MAX_CHARS);
    let share = share.clamp(DESCRIPTION_MIN_CHARS, DESCRIPTION_MAX_CHARS);
    let mut text = format!(
        "Skills, each with what it is for. When one fits what you are asked, read it with the tool {tool} before you \
         begin, and do as it says:"
    );
    for skill in skills {
        let mut description: String = skill.description.chars().take(share).collect();
        if description.len() < skill.description.len() {
            description.push('…');
        }
        // Instructions name values in double braces.
        while description.contains("{{") {
            description = description.replace("{{", "{ {");
        }
        let _ = write!(text, "\n- {}: {description}", skill.name);
    }
    text
}

fn file(bytes: Vec<u8>) -> SkillFile {
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => SkillFile::Text(text),
        Ok(text) => SkillFile::Binary(text.len()),
        Err(error) => SkillFile::Binary(error.as_bytes().len()),
    }
}

fn digest(files: &BTreeMap<String, Vec<u8>>) -> String {
    let mut hash = Sha256::new_with_prefix(VERSION);
    for (path, bytes) in files {
        for part in [path.as_bytes(), bytes] {
            // The length before each part keeps one part from reaching into the next.
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
    }
    let hash = hash.finalize();
    hash.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A text in one line, without what steers a terminal.
fn one_line(text: &str) -> String {
    let visible = text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty());
    visible.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
