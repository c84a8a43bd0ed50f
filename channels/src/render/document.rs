//! A very long answer as a file.

use super::people::People;
use super::{parse, tree};

/// How much of the answer stands beside the file, in characters.
const OPENING_MAX_CHARS: usize = 600;

/// An answer too long for posts: a short text, and a file that holds all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// What is posted: how the answer begins, as CommonMark.
    pub text: String,
    /// The file's name.
    pub file_name: String,
    /// The file: the whole answer as it was said.
    pub content: String,
}

/// The answer as a file; `None` if it fits `parts_max` parts.
#[must_use]
pub fn as_document(text: &str, parts: usize, parts_max: usize) -> Option<Document> {
    if parts <= parts_max.max(1) {
        return None;
    }
    let blocks = parse::parsed(text, &People::nobody());
    let title = blocks.iter().find_map(|block| match block {
        tree::Block::Heading { .. } => Some(tree::plain_text([block])),
        _ => None,
    });
    Some(Document {
        text: opening(text),
        file_name: format!("{}.md", slug(title.as_deref().unwrap_or_default())),
        content: text.to_owned(),
    })
}

/// The first paragraphs that are short enough.
fn opening(text: &str) -> String {
    let mut opening = String::new();
    for paragraph in text.split("\n\n").take(3) {
        let length = opening.chars().count() + paragraph.chars().take(OPENING_MAX_CHARS).count();
        if length >= OPENING_MAX_CHARS || paragraph.contains("```") {
            break;
        }
        opening.push_str(paragraph);
        opening.push_str("\n\n");
    }
    format!("{opening}The whole answer is in the file.")
        .trim_start()
        .to_owned()
}

/// A name for a file: letters, digits and dashes.
fn slug(title: &str) -> String {
    let spaced: String = title
        .chars()
        .take(48)
        .map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_lowercase()
            } else {
                ' '
            }
        })
        .collect();
    let words: Vec<&str> = spaced.split_whitespace().collect();
    if words.is_empty() {
        "answer".to_owned()
    } else {
        words.join("-")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn an_answer_of_too_many_parts_is_a_file_with_an_opening() {
        assert_eq!(as_document("short", 3, 3), None);
        let text = format!(
            "Here it is.\n\n# The Plan: part 1\n\n{}",
            "word ".repeat(9_000)
        );
        let document = as_document(&text, 12, 3).unwrap();
        assert_eq!(document.file_name, "the-plan-part-1.md");
        assert_eq!(document.content, text);
        assert_eq!(
            document.text,
            "Here it is.\n\n# The Plan: part 1\n\nThe whole answer is in the file."
        );
        let long = as_document(&"x".repeat(50_000), 12, 3).unwrap();
        assert_eq!(
            (long.file_name.as_str(), long.text.as_str()),
            ("answer.md", "The whole answer is in the file.")
        );
    }
}
