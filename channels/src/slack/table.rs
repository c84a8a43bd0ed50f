//! Slack's native tables. Pure.

use serde_json::{Value, json};

use crate::render::{Align, StyledRun, Table, has_own_address};

use super::markdown::{harmless, is_person};

/// Rows of a table, the head among them. Source: the reference of the `table` block.
const ROWS_MAX: usize = 100;
/// Columns of a table.
const COLUMNS_MAX: usize = 20;
/// Characters over all cells of a post's tables. Slack says 10,000; the margin covers what they count
/// differently.
const CELLS_MAX_CHARS: usize = 9_500;

/// The characters of all cells; an empty one counts, too.
pub(super) fn cells_length(table: &Table) -> usize {
    let rows = std::iter::once(&table.head).chain(&table.rows);
    let columns = columns(table);
    rows.map(|row| {
        let cells: usize = row.iter().map(|cell| cell_length(cell)).sum();
        cells + columns.saturating_sub(row.len())
    })
    .sum()
}

fn cell_length(cell: &[StyledRun]) -> usize {
    let runs = cell.iter().map(|run| {
        let link = run.link.as_ref().map_or(0, |url| url.chars().count());
        run.text.chars().count() + link + 1
    });
    runs.sum::<usize>().max(1)
}

fn columns(table: &Table) -> usize {
    let rows = std::iter::once(&table.head).chain(&table.rows);
    rows.map(Vec::len).max().unwrap_or(0)
}

/// The table as a block; `None` if Slack does not take such a table.
pub(super) fn block(table: &Table) -> Option<Value> {
    let columns = columns(table);
    let fits = (1..=COLUMNS_MAX).contains(&columns)
        && table.rows.len() < ROWS_MAX
        && cells_length(table) <= CELLS_MAX_CHARS;
    if !fits {
        return None;
    }
    let rows: Vec<Value> = std::iter::once(&table.head)
        .chain(&table.rows)
        .map(|row| {
            let cells = row.iter().map(|cell| cell_of(cell));
            let missing = std::iter::repeat_with(|| raw(" ")).take(columns - row.len());
            cells.chain(missing).collect()
        })
        .collect();
    let settings: Vec<Value> = (0..columns)
        .map(|n| {
            let align = match table.aligns.get(n).copied().unwrap_or_default() {
                Align::Left => "left",
                Align::Center => "center",
                Align::Right => "right",
            };
            json!({"align": align, "is_wrapped": true})
        })
        .collect();
    Some(json!({"type": "table", "rows": rows, "column_settings": settings}))
}

fn raw(text: &str) -> Value {
    json!({"type": "raw_text", "text": text})
}

fn cell_of(cell: &[StyledRun]) -> Value {
    let is_plain = cell
        .iter()
        .all(|run| run.count_marks() == 0 && !run.is_code && run.mention.is_none());
    let text: String = cell.iter().map(|run| run.text.as_str()).collect();
    if text.trim().is_empty() {
        return raw(" ");
    }
    if is_plain {
        return raw(&harmless(&text));
    }
    let elements: Vec<Value> = cell
        .iter()
        .filter(|run| !run.text.is_empty())
        .map(element)
        .collect();
    let section = json!({"type": "rich_text_section", "elements": elements});
    json!({"type": "rich_text", "elements": [section]})
}

fn element(run: &StyledRun) -> Value {
    if let Some(id) = run.mention.as_deref().filter(|id| is_person(id)) {
        return json!({"type": "user", "user_id": id});
    }
    let mut element = match &run.link {
        Some(url) if has_own_address(run) => json!({"type": "link", "url": url.as_ref()}),
        Some(url) => json!({"type": "link", "url": url.as_ref(), "text": harmless(&run.text)}),
        None => json!({"type": "text", "text": harmless(&run.text)}),
    };
    let styles = run.shown_styles();
    let wanted = [
        (styles.bold, "bold"),
        (styles.italic, "italic"),
        (styles.strike, "strike"),
        (run.is_code, "code"),
    ];
    for (_, name) in wanted.into_iter().filter(|(is_on, _)| *is_on) {
        element["style"][name] = json!(true);
    }
    element
}
