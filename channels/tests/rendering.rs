//! Answers of the kind models give, as both platforms are sent them.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;
use vocative_channels::{slack, telegram};
use vocative_contract::outbound::Part;
use vocative_contract::people::People;
use vocative_sandbox::slack::check_blocks;
use vocative_sandbox::telegram::stored_text;

/// The fixtures' names and texts, in order.
fn answers() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/answers");
    let mut answers: Vec<(String, String)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect();
    answers.sort();
    answers
}

/// The middle of a long part says nothing new.
fn shortened(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() <= 14 {
        let cut: Vec<String> = lines.iter().map(|line| shortened_line(line)).collect();
        return cut.join("\n");
    }
    let ends = [lines[..4].join("\n"), lines[lines.len() - 4..].join("\n")];
    let left_out = format!("\n({} lines)\n", lines.len() - 8);
    shortened_line(&ends.join(&left_out))
}

fn shortened_line(line: &str) -> String {
    let chars: Vec<char> = line.chars().collect();
    if chars.len() <= 600 {
        return line.to_owned();
    }
    let ends = |part: &[char]| part.iter().collect::<String>();
    let (first, last) = (ends(&chars[..150]), ends(&chars[chars.len() - 150..]));
    format!("{first}({} characters){last}", chars.len() - 300)
}

/// Parts as a person can judge them; what shows nothing is named.
fn written(parts: &[Part]) -> String {
    let mut out = String::new();
    for (n, part) in parts.iter().enumerate() {
        let _ = writeln!(out, "--- {} ---\n{}", n + 1, shortened(&part.text));
        for entity in part
            .entities
            .iter()
            .flat_map(|it| it.as_array().unwrap())
            .take(12)
        {
            let mut entity = entity.clone();
            let kind = entity["type"].take();
            let (offset, length) = (entity["offset"].take(), entity["length"].take());
            let more = entity["url"].as_str().or(entity["language"].as_str());
            let more = more.map(|it| format!(" {it}")).unwrap_or_default();
            let _ = writeln!(out, "[{} {offset}+{length}{more}]", kind.as_str().unwrap());
        }
        for block in part.blocks.iter().flat_map(|it| it.as_array().unwrap()) {
            let shown = match block["text"].as_str() {
                Some(text) => shortened(text),
                None => shortened_line(&sorted(block)),
            };
            let _ = writeln!(out, "[{}]\n{shown}", block["type"].as_str().unwrap());
        }
    }
    out.replace('\u{2060}', "{joiner}")
}

/// JSON in one order of keys, whatever other crates of the build want of maps.
fn sorted(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields: BTreeMap<_, _> = fields.iter().collect();
            let fields = fields
                .iter()
                .map(|(name, value)| format!("{name:?}:{}", sorted(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(sorted).collect();
            format!("[{}]", items.join(","))
        }
        other => other.to_string(),
    }
}

#[test]
fn answers_are_rendered_for_slack() {
    let mut out = String::new();
    for (name, text) in answers() {
        let parts = slack::render(&text, &People::nobody());
        for part in &parts {
            let blocks = part.blocks.clone().unwrap_or_else(|| serde_json::json!([]));
            assert_eq!(check_blocks(&blocks), Ok(()), "{name}");
        }
        let _ = writeln!(out, "===== {name} =====\n{}", written(&parts));
    }
    insta::assert_snapshot!("slack", out);
}

#[test]
fn answers_are_rendered_for_telegram() {
    let mut out = String::new();
    for (name, text) in answers() {
        let parts = telegram::render(&text, &People::nobody());
        for part in &parts {
            let (stored, _) = stored_text(&part.text, part.entities.as_ref()).unwrap();
            assert_eq!(stored, part.text, "{name}");
        }
        let _ = writeln!(out, "===== {name} =====\n{}", written(&parts));
    }
    insta::assert_snapshot!("telegram", out);
}

#[test]
fn there_are_forty_answers() {
    assert_eq!(answers().len(), 40);
}

/// A table of 25 columns and two rows, whose cells are numbered.
fn wide_table() -> String {
    let row = |cell: &dyn Fn(usize) -> String| {
        let cells: Vec<String> = (1..=25).map(cell).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let head = row(&|column| format!("head{column}"));
    let line = row(&|_| "---".to_owned());
    head + &line + &row(&|column| format!("a{column}")) + &row(&|column| format!("b{column}"))
}

#[test]
fn a_table_of_25_columns_is_a_list_of_its_rows_with_each_cell_behind_its_head() {
    let (text, nobody) = (wide_table(), People::nobody());
    for parts in [
        slack::render(&text, &nobody),
        telegram::render(&text, &nobody),
    ] {
        let shown: String = parts.iter().map(|part| part.text.as_str()).collect();
        // The first cell of a row names it.
        let mut places = Vec::new();
        for (row, column) in ["a", "b"]
            .iter()
            .flat_map(|row| (2..=25).map(move |it| (row, it)))
        {
            let behind = format!("head{column}: {row}{column}");
            places.push(
                shown
                    .find(&behind)
                    .unwrap_or_else(|| panic!("{behind} in {shown}")),
            );
        }
        assert!(places.is_sorted(), "{shown}");
        assert!(parts.iter().all(|part| !has_table(part)), "{shown}");
    }
}

fn has_table(part: &Part) -> bool {
    let blocks = part.blocks.iter().filter_map(Value::as_array).flatten();
    blocks.into_iter().any(|block| block["type"] == "table")
}

#[test]
fn a_spoiler_is_covered_where_the_platform_can_and_its_bars_are_no_text_elsewhere() {
    let (text, nobody) = (
        "The murderer is ||the gardener||, of course.",
        People::nobody(),
    );
    let telegram = telegram::render(text, &nobody);
    assert_eq!(telegram[0].text, "The murderer is the gardener, of course.");
    let entities = telegram[0].entities.clone().unwrap();
    assert_eq!(entities[0]["type"], "spoiler");
    assert_eq!(entities[0]["offset"], 16);
    assert_eq!(entities[0]["length"], 12);
    let slack = slack::render(text, &nobody);
    assert!(slack[0].text.contains("the gardener"), "{}", slack[0].text);
}
