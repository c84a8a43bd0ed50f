//! A table as aligned text, for a place where letters have one width.

use unicode_segmentation::UnicodeSegmentation as _;

use vocative_contract::work::looked_at;

use super::tree::{Align, StyledRun, Table, push_addressed};

/// A wider cell does not widen its column: it sticks out.
const WIDTH_MAX: usize = 40;
/// How many times longer than unaligned a table may become by aligning; beyond that its cells are not padded.
const GROWTH_MAX: usize = 4;
/// What stands between two cells.
const BETWEEN: &str = " | ";

/// The width of a column.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Width {
    /// Cells of the screen that it shows.
    shown: usize,
    /// By how much its longest cell's UTF-16 length exceeds the cells of the screen.
    excess: usize,
}

/// Widens columns to hold a row, too.
pub(super) fn widths_add(widths: &mut Vec<Width>, row: &[Vec<StyledRun>]) {
    for (n, cell) in row.iter().enumerate() {
        if widths.len() <= n {
            widths.push(Width::default());
        }
        let text = cell_text(cell);
        let shown = shown_width(&text).min(WIDTH_MAX);
        let length: usize = text.chars().map(char::len_utf16).sum();
        widths[n].shown = widths[n].shown.max(shown);
        widths[n].excess = widths[n].excess.max(length.saturating_sub(shown));
    }
}

/// The most that a row of these widths takes, in UTF-16 units, with its line end.
pub(super) fn row_length(widths: &[Width]) -> usize {
    let columns = widths.iter();
    let length: usize = columns
        .map(|width| width.shown + width.excess + BETWEEN.len())
        .sum();
    length + 1
}

/// The table as lines; `None` if it is surely longer than `room` characters.
pub(crate) fn aligned(table: &Table, room: usize) -> Option<String> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut widths: Vec<usize> = Vec::new();
    let mut bare = 0_usize;
    for row in std::iter::once(&table.head).chain(&table.rows) {
        let cells: Vec<String> = row.iter().map(|cell| cell_text(cell)).collect();
        for (n, cell) in cells.iter().enumerate() {
            if widths.len() <= n {
                widths.push(0);
            }
            widths[n] = widths[n].max(shown_width(cell).min(WIDTH_MAX));
            bare += cell.chars().count() + BETWEEN.len();
        }
        bare += 1;
        // The separator is three characters too many for each row: its last cell has none behind it.
        if bare > room.saturating_add(BETWEEN.len() * (rows.len() + 1)) {
            return None;
        }
        rows.push(cells);
    }
    let row_width = widths.iter().sum::<usize>() + BETWEEN.len() * widths.len() + 1;
    let is_padded = row_width * (rows.len() + 1) <= bare.saturating_mul(GROWTH_MAX);
    let mut out = String::new();
    for (n, row) in rows.iter().enumerate() {
        push_row(&mut out, row, &widths, &table.aligns, is_padded);
        if n == 0 {
            let width = |width: &usize| if is_padded { *width } else { 3 };
            let rules: Vec<String> = widths
                .iter()
                .map(|it| "-".repeat(width(it).max(1)))
                .collect();
            out.push_str(&rules.join("-|-"));
            out.push('\n');
        }
    }
    out.truncate(out.trim_end().len());
    Some(out)
}

fn push_row(out: &mut String, row: &[String], widths: &[usize], aligns: &[Align], is_padded: bool) {
    let mut line = String::new();
    for (n, cell) in row.iter().enumerate() {
        line.push_str(if n == 0 { "" } else { BETWEEN });
        let pad = if is_padded {
            widths[n].saturating_sub(shown_width(cell))
        } else {
            0
        };
        let before = match aligns.get(n).copied().unwrap_or_default() {
            Align::Left => 0,
            Align::Center => pad / 2,
            Align::Right => pad,
        };
        line.push_str(&" ".repeat(before));
        line.push_str(cell);
        line.push_str(&" ".repeat(pad - before));
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

/// The words of a cell on one line; an address stands behind its label.
fn cell_text(cell: &[StyledRun]) -> String {
    let mut text = String::new();
    push_addressed(&mut text, cell);
    looked_at(text.len() + 1);
    text.replace(['\n', '\r', '\t'], " ").trim().to_owned()
}

/// About how many cells of the screen a text takes.
fn shown_width(text: &str) -> usize {
    looked_at(text.len());
    text.graphemes(true).map(grapheme_width).sum()
}

/// The width of one grapheme; an emoji is two wide, however many characters it is made of.
fn grapheme_width(grapheme: &str) -> usize {
    let is_picture = |c: char| matches!(c, '\u{200D}' | '\u{20E3}' | '\u{FE0F}');
    let is_flag = |c: char| matches!(c, '\u{1F1E6}'..='\u{1F1FF}');
    let sum: usize = grapheme.chars().map(char_width).sum();
    let is_made = grapheme.contains(is_picture) && grapheme.chars().count() > 1;
    match () {
        () if grapheme.starts_with(is_flag) => 2,
        () if is_made && sum > 0 && !grapheme.starts_with(char::is_alphabetic) => 2,
        () => sum,
    }
}

fn char_width(c: char) -> usize {
    match c {
        '\u{0300}'..='\u{036F}'
        | '\u{0483}'..='\u{0489}'
        | '\u{0591}'..='\u{05BD}'
        | '\u{064B}'..='\u{065F}'
        | '\u{0E31}'
        | '\u{0E34}'..='\u{0E3A}'
        | '\u{0E47}'..='\u{0E4E}'
        | '\u{200B}'..='\u{200F}'
        | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{2064}'
        | '\u{20D0}'..='\u{20FF}'
        | '\u{FE00}'..='\u{FE0F}'
        | '\u{FEFF}'
        | '\u{1F3FB}'..='\u{1F3FF}'
        | '\u{E0000}'..='\u{E01EF}' => 0,
        '\u{1100}'..='\u{115F}'
        | '\u{2E80}'..='\u{A4CF}'
        | '\u{AC00}'..='\u{D7A3}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{FE30}'..='\u{FE6F}'
        | '\u{FF00}'..='\u{FF60}'
        | '\u{FFE0}'..='\u{FFE6}'
        | '\u{1F300}'..='\u{1F64F}'
        | '\u{1F680}'..='\u{1F6FF}'
        | '\u{1F7E0}'..='\u{1F7EB}'
        | '\u{1F900}'..='\u{1FAFF}'
        | '\u{20000}'..='\u{3FFFD}' => 2,
        c if WIDE_SIGNS.contains(c) => 2,
        _ => 1,
    }
}

/// Signs that are shown as emoji without a variation selector.
const WIDE_SIGNS: &str = "⌚⌛⏩⏪⏫⏬⏰⏳◽◾☔☕♈♉♊♋♌♍♎♏♐♑♒♓♿⚓⚡⚪⚫⚽⚾⛄⛅⛎⛔⛪⛲⛳⛵⛺⛽✅✊✋✨❌❎❓❔❕❗➕➖➗➰➿⬛⬜⭐⭕🃏🆎🆑🆒🆓🆔🆕🆖🆗🆘🆙🆚🈁";

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::tree::Block;
    use super::*;
    use vocative_contract::people::People;

    fn table(text: &str) -> Table {
        match super::super::parse::parsed(text, &People::nobody()).remove(0) {
            Block::Table(table) => table,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn columns_are_aligned_by_what_they_show() {
        let text =
            "| a | **number** | mid |\n|---|--:|:-:|\n| 日本 | 7 | `x` |\n| long one | 1234 |\n";
        assert_eq!(
            aligned(&table(text), 1_000).unwrap(),
            "a        | number | mid\n---------|--------|----\n日本     |      7 |  x\nlong one |   1234"
        );
        assert_eq!(aligned(&table(text), 20), None);
    }

    #[test]
    fn pictures_are_two_wide_however_they_are_made() {
        for (text, width) in [
            ("🟢", 2),
            ("⚠️", 2),
            ("1️⃣", 2),
            ("👨‍👩‍👧", 2),
            ("👍🏽", 2),
            ("🇩🇪", 2),
            ("⭐ x", 4),
            ("ก็", 1),
            ("e\u{301}", 1),
            ("\u{200B}", 0),
            ("日本", 4),
        ] {
            assert_eq!(shown_width(text), width, "{text}");
        }
    }

    #[test]
    fn an_address_stands_behind_its_label() {
        let text = "|a|b|\n|-|-|\n|[docs **here**](https://e.org)|https://e.org/x|\n";
        assert_eq!(
            aligned(&table(text), 1_000).unwrap(),
            "a                         | b\n--------------------------|----------------\n\
             docs here (https://e.org) | https://e.org/x"
        );
    }

    #[test]
    fn alignment_does_not_blow_a_table_up() {
        let wide = "x".repeat(40);
        let text = format!("|a|b|\n|-|-|\n|{wide}|\n{}", "|y|z|\n".repeat(1_000));
        let lines = aligned(&table(&text), 100_000).unwrap();
        assert!(lines.len() < 4 * text.len() * 2, "{}", lines.len());
        assert!(lines.ends_with("\ny | z"));
    }
}
