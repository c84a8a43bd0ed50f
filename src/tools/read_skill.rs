//! `read_skill`: the text of a skill that the agent's instructions list, or of another file of that skill.
//!
//! The tool holds the skills that it was made with, as they were read and approved: a model can name one of them and a
//! file of it, and no path leads anywhere else. A withdrawn approval takes effect at once.

use std::fmt::Write as _;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::search::schema;
use super::{BoundTo, BuiltIn, CallContext, Tool, ToolError, ToolOutput};
use vocative_core::skills::{SKILL_FILE, Skill, SkillFile};
use vocative_core::tool_call::CallRule;
use vocative_store::Reader;

/// The tool's name.
pub const READ_SKILL: &str = "read_skill";
/// The most characters of a text that one call returns; the next call goes on behind them.
const TEXT_MAX_CHARS: usize = 12_000;
/// The most files that are listed with a skill's text.
const NAMED_MAX: usize = 60;

/// The tool that reads some skills.
pub struct ReadSkill {
    store: Reader,
    skills: Vec<Arc<Skill>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReadSkillArguments {
    /// Its name, as it is listed.
    name: String,
    /// A file of it, as the skill names it; not given: its instructions.
    #[serde(default)]
    file: Option<String>,
    /// Where to go on in a long text: the number that the call before gave; not given: at its beginning.
    #[serde(default)]
    from: Option<usize>,
}

impl ReadSkill {
    /// Makes the tool for a run.
    #[must_use]
    pub fn new(to: &BoundTo) -> Self {
        Self {
            store: to.store.clone(),
            skills: to.skills.clone(),
        }
    }
}

impl Tool for ReadSkill {
    fn name(&self) -> &str {
        READ_SKILL
    }

    fn description(&self) -> &str {
        "Reads one of your skills: instructions for a kind of task, or a file that they name. Programs of a skill are \
         not run; use the tools that you have."
    }

    fn schema(&self) -> Value {
        let mut schema = schema::<ReadSkillArguments>();
        let names: Vec<&str> = self
            .skills
            .iter()
            .map(|skill| skill.name.as_str())
            .collect();
        schema["properties"]["name"]["enum"] = json!(names);
        schema
    }

    fn rule(&self) -> CallRule {
        BuiltIn::ReadSkill.rule()
    }

    /// An operator has approved every byte of a skill: it belongs to the agent's instructions.
    fn is_outside(&self) -> bool {
        false
    }

    fn call(
        &self,
        arguments: Value,
        _: CallContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let (store, skills) = (self.store.clone(), self.skills.clone());
        Box::pin(async move {
            let arguments: ReadSkillArguments = serde_json::from_value(arguments)
                .map_err(|cause| ToolError::Arguments(cause.to_string()))?;
            let skill = skills.iter().find(|skill| skill.name == arguments.name);
            let Some(skill) = skill else {
                let names: Vec<&str> = skills.iter().map(|skill| skill.name.as_str()).collect();
                let what = format!("there is no such skill; there are: {}", names.join(", "));
                return Err(ToolError::Arguments(what));
            };
            let approvals = store.skill_approvals().await;
            let approvals = approvals.map_err(|cause| ToolError::Failed(cause.to_string()))?;
            let is_approved = approvals
                .iter()
                .any(|it| it.skill == skill.name && it.digest == skill.digest);
            if !is_approved {
                let what = "an operator took this skill back; go on without it";
                return Err(ToolError::Failed(what.to_owned()));
            }
            Ok(ToolOutput {
                content: text_of(skill, &arguments).map_err(ToolError::Arguments)?,
                sources: Vec::new(),
                files: Vec::new(),
            })
        })
    }
}

fn text_of(skill: &Skill, arguments: &ReadSkillArguments) -> Result<String, String> {
    let asked = arguments.file.as_deref().map(str::trim);
    let asked = asked.filter(|file| !file.is_empty());
    let path = asked.map_or(SKILL_FILE, |file| file.trim_start_matches("./"));
    let text = match skill.files.get(path) {
        Some(SkillFile::Text(text)) => text,
        Some(SkillFile::Binary(bytes)) => {
            return Err(format!("{path} is no text, but {bytes} bytes"));
        }
        None => return Err(format!("the skill has no file {path:?}; {}", named(skill))),
    };
    let from = arguments.from.unwrap_or(0);
    let mut chars = text.chars().skip(from);
    let mut part: String = chars.by_ref().take(TEXT_MAX_CHARS).collect();
    let left = chars.count();
    if part.is_empty() && from > 0 {
        return Err(format!("the text ends before {from}"));
    }
    if left > 0 {
        let next = from + TEXT_MAX_CHARS;
        let _ = write!(
            part,
            "\n[{left} more characters: read on with \"from\": {next}]"
        );
    }
    let is_first = path == SKILL_FILE && from == 0;
    if is_first && skill.files.len() > 1 {
        let _ = write!(part, "\n[{}]", named(skill));
    }
    Ok(part)
}

/// The files of a skill besides its instructions.
fn named(skill: &Skill) -> String {
    let others = skill.files.keys().filter(|path| *path != SKILL_FILE);
    let others: Vec<&str> = others.map(String::as_str).collect();
    if others.is_empty() {
        return "it has no other files".to_owned();
    }
    let shown = others[..others.len().min(NAMED_MAX)].join(", ");
    match others.len() - others.len().min(NAMED_MAX) {
        0 => format!("its other files: {shown}"),
        more => format!("its other files: {shown}, and {more} more"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn skill(body: &str) -> Skill {
        let text = format!("---\nname: pdf-forms\ndescription: x\n---\n{body}");
        let files = [
            (SKILL_FILE, text.into_bytes()),
            ("references/a.md", b"more".to_vec()),
            ("assets/a.png", b"\x89\xff".to_vec()),
        ];
        let files = files
            .into_iter()
            .map(|(path, bytes)| (path.to_owned(), bytes));
        Skill::read("pdf-forms", files.collect()).unwrap()
    }

    fn of(skill: &Skill, file: Option<&str>, from: Option<usize>) -> Result<String, String> {
        let arguments = ReadSkillArguments {
            name: String::new(),
            file: file.map(str::to_owned),
            from,
        };
        text_of(skill, &arguments)
    }

    #[test]
    fn a_file_is_one_of_the_skill_or_none() {
        let skill = skill("Do this.");
        let told = of(&skill, None, None).unwrap();
        let others = "its other files: assets/a.png, references/a.md";
        assert!(told.ends_with(&format!("Do this.\n[{others}]")), "{told}");
        assert_eq!(of(&skill, Some("./references/a.md"), None).unwrap(), "more");
        let binary = of(&skill, Some("assets/a.png"), None).unwrap_err();
        assert_eq!(binary, "assets/a.png is no text, but 2 bytes");
        for path in [
            "../SKILL.md",
            "/etc/passwd",
            "references",
            "references/../SKILL.md",
        ] {
            let none = of(&skill, Some(path), None).unwrap_err();
            assert!(none.ends_with(others), "{path}: {none}");
        }
    }

    #[test]
    fn a_long_text_is_read_in_parts() {
        let skill = skill(&"ä".repeat(400_000));
        let SkillFile::Text(whole) = &skill.files[SKILL_FILE] else {
            panic!("a text")
        };
        let (mut read, mut from) = (String::new(), 0);
        while from < whole.chars().count() {
            let part = of(&skill, None, Some(from)).unwrap();
            assert!(part.chars().count() < super::super::RESULT_MAX_CHARS);
            let text = part.split("\n[").next().unwrap();
            read.push_str(text);
            from += TEXT_MAX_CHARS;
        }
        assert_eq!(&read, whole);
        assert!(
            of(&skill, None, Some(from))
                .unwrap_err()
                .contains("ends before")
        );
    }
}
