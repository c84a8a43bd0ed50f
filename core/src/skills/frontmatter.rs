//! The head of `SKILL.md`: `key: value` lines of YAML between two lines `---`.
//!
//! Of YAML this reads what such heads have: plain, quoted and block texts. Lists and tables below a key are passed
//! over, as nothing in them is used. One pass, no stack.

use std::collections::BTreeMap;

/// The most lines of a head.
const LINES_MAX: usize = 500;

/// The values of a head by their keys, as text.
///
/// # Errors
/// What can't be read, with its line.
pub(super) fn read(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut values = BTreeMap::new();
    let head = head(text)?;
    let mut at = 0;
    while at < head.len() {
        let (line, number) = (head[at], at + 2);
        at += 1;
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let (key, first) = line
            .split_once(':')
            .filter(|(key, value)| {
                is_key(key) && (value.is_empty() || value.starts_with([' ', '\t']))
            })
            .ok_or_else(|| format!("line {number} is not `key: value`"))?;
        let begun = at;
        while at < head.len() && is_below(head[at]) {
            at += 1;
        }
        let below = &head[begun..at];
        // Other keys are not used, whatever form they have.
        let is_wanted = ["name", "description"].contains(&key);
        let value = match is_wanted {
            true => value(first.trim(), below)
                .map_err(|why| format!("line {number}, `{key}`: {why}"))?,
            false => String::new(),
        };
        if values.insert(key.to_owned(), value).is_some() {
            return Err(format!("line {number}: `{key}` stands there twice"));
        }
    }
    Ok(values)
}

/// The lines between the two lines `---`.
fn head(text: &str) -> Result<Vec<&str>, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.lines();
    let is_mark = |line: &str| line.trim_end() == "---";
    if !lines.next().is_some_and(is_mark) {
        return Err(
            "it must begin with a line --- and `name` and `description` below it".to_owned(),
        );
    }
    let mut head = Vec::new();
    for line in lines {
        if is_mark(line) {
            return Ok(head);
        }
        if head.len() >= LINES_MAX {
            break;
        }
        head.push(line);
    }
    Err(format!(
        "no second line --- ends its head within {LINES_MAX} lines"
    ))
}

fn is_key(key: &str) -> bool {
    !key.is_empty()
        && key
            .chars()
            .all(|c| c.is_alphanumeric() || "-_.".contains(c))
}

/// Whether a line belongs to the key above it.
fn is_below(line: &str) -> bool {
    line.starts_with([' ', '\t']) || line.trim().is_empty() || line.starts_with("- ")
}

fn value(first: &str, below: &[&str]) -> Result<String, String> {
    let joined = || {
        let rest = below.iter().map(|line| line.trim());
        let all = std::iter::once(first).chain(rest);
        all.filter(|line| !line.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    };
    match first.chars().next() {
        Some('|' | '>') => Ok(below
            .iter()
            .map(|line| line.trim())
            .collect::<Vec<_>>()
            .join("\n")),
        Some('"') => double_quoted(&joined()),
        Some('\'') => single_quoted(&joined()),
        Some('[' | '{' | '&' | '*' | '!' | '%' | '@' | '`') => {
            Err("must be a text; put it in \"quotes\"".to_owned())
        }
        _ if below.iter().any(|line| line.trim_start().starts_with("- ")) && first.is_empty() => {
            Err("must be a text, not a list".to_owned())
        }
        _ => Ok(without_comment(&joined()).to_owned()),
    }
}

fn double_quoted(text: &str) -> Result<String, String> {
    let mut value = String::new();
    let mut chars = text.chars().skip(1);
    while let Some(c) = chars.next() {
        match c {
            '"' => return ended(value, &chars.collect::<String>()),
            '\\' => match chars.next() {
                Some('n' | 't' | 'r' | ' ') => value.push(' '),
                Some(c @ ('"' | '\\' | '/')) => value.push(c),
                _ => return Err("has a \\ that this reader does not know".to_owned()),
            },
            c => value.push(c),
        }
    }
    Err("its \" is never closed".to_owned())
}

fn single_quoted(text: &str) -> Result<String, String> {
    let mut value = String::new();
    let mut rest = &text[1..];
    while let Some((before, after)) = rest.split_once('\'') {
        value.push_str(before);
        match after.strip_prefix('\'') {
            Some(further) => {
                value.push('\'');
                rest = further;
            }
            None => return ended(value, after),
        }
    }
    Err("its ' is never closed".to_owned())
}

/// What stands behind a closing quote is a comment or nothing.
fn ended(value: String, rest: &str) -> Result<String, String> {
    match rest.trim().is_empty() || rest.trim_start().starts_with('#') {
        true => Ok(value),
        false => Err("has something behind its closing quote".to_owned()),
    }
}

fn without_comment(text: &str) -> &str {
    let end = text.find(" #").unwrap_or(text.len());
    let text = text[..end].trim();
    if text.starts_with('#') { "" } else { text }
}
