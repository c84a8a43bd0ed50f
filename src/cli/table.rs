//! Plain tables and times for people.

use chrono::{DateTime, Utc};

/// Rows under a header, each column as wide as its widest cell.
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows
            .iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count());
        cells
            .chain([header[column].chars().count()])
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |cells: &[String]| {
        let padded: Vec<String> = cells
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        padded.join("  ").trim_end().to_owned() + "\n"
    };
    let header: Vec<String> = header.iter().map(|name| (*name).to_owned()).collect();
    std::iter::once(line(&header))
        .chain(rows.iter().map(|row| line(row)))
        .collect()
}

/// A time as people read it, in UTC; `-` for none.
pub fn instant(at_ms: Option<i64>) -> String {
    at_ms
        .and_then(DateTime::<Utc>::from_timestamp_millis)
        .map_or_else(
            || "-".to_owned(),
            |at| at.format("%Y-%m-%d %H:%M:%S").to_string(),
        )
}

/// How long ago a time was; `never` for none.
pub fn ago(at_ms: Option<i64>, now_ms: i64) -> String {
    at_ms.map_or_else(
        || "never".to_owned(),
        |at_ms| format!("{} ago", span(now_ms.saturating_sub(at_ms))),
    )
}

/// A time span in its largest unit.
pub fn span(span_ms: i64) -> String {
    let seconds = span_ms.max(0) / 1_000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// One line of text, cut to a number of characters.
pub fn one_line(text: &str, max_chars: usize) -> String {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if flat.chars().count() <= max_chars {
        return flat;
    }
    flat.chars()
        .take(max_chars.saturating_sub(1))
        .collect::<String>()
        + "…"
}

/// How many of a prompt's tokens came from the provider's cache and went into it, in brackets; empty for none.
pub(super) fn of_cache(read: u64, written: u64) -> String {
    match (read, written) {
        (0, 0) => String::new(),
        (read, 0) => format!(" ({read} from the cache)"),
        (read, written) => format!(" ({read} from the cache, {written} to it)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_spans_take_their_largest_unit() {
        let rows = vec![
            vec!["a".into(), "long cell".into()],
            vec!["bbb".into(), "x".into()],
        ];
        assert_eq!(
            table(&["id", "what"], &rows),
            "id   what\na    long cell\nbbb  x\n"
        );
        let spans: Vec<String> = [999, 59_999, 60_000, 7_200_000, 90_000_000]
            .map(span)
            .to_vec();
        assert_eq!(spans, ["0 s", "59 s", "1 min", "2 h", "1 d"]);
        assert_eq!(one_line("a\n b  cdef", 5), "a b …");
        assert_eq!(instant(Some(0)), "1970-01-01 00:00:00");
    }
}
