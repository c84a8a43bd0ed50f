//! What `vocative status --capacity` prints.

use std::fmt::Write as _;

use super::table::table;
use crate::admin::view::CapacityView;

/// How many tables are listed by name; the others share one line.
const TABLES_SHOWN: usize = 8;
const MIB: u64 = 1 << 20;

/// What uses the space and how much is left, as text.
pub(super) fn report(view: &CapacityView) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "stored    {} turns, {} of them in the last seven days",
        view.turns, view.turns_last_week
    );
    let _ = writeln!(
        out,
        "space     database {} MiB, its log {} MiB, attached files {} MiB",
        view.database_bytes / MIB,
        view.log_bytes / MIB,
        view.files_bytes / MIB
    );
    match (view.free_bytes, view.turns_left, view.days_left) {
        (Some(free), Some(turns), days) => {
            let days = days.map_or_else(
                || "none came in the last seven days".to_owned(),
                |days| format!("{days} days like the last seven"),
            );
            let _ = writeln!(
                out,
                "left      {} MiB: room for {turns} turns of {} bytes, {days}",
                free / MIB,
                view.bytes_per_turn.unwrap_or_default()
            );
        }
        (Some(free), None, _) => {
            let _ = writeln!(
                out,
                "left      {} MiB; too few turns to say how many it holds",
                free / MIB
            );
        }
        (None, ..) => out.push_str("left      the disk can't be asked\n"),
    }
    match (view.sync_median_us, view.sync_max_us) {
        (Some(median), Some(max)) => {
            let _ = writeln!(
                out,
                "disk      4 KiB durable in {median} µs (median of 100, longest {max} µs): {} messages a second one by one, \
                 at most {} where they share commits",
                view.messages_per_s_alone.unwrap_or_default(),
                view.messages_per_s_shared.unwrap_or_default()
            );
        }
        _ => out.push_str("disk      not measured: nothing may be written beside the database\n"),
    }
    out.push('\n');
    out.push_str(&tables(view));
    out
}

fn tables(view: &CapacityView) -> String {
    let all: u64 = view.tables.iter().map(|table| table.bytes).sum();
    let row = |name: &str, bytes: u64| {
        let percent = bytes * 100 / all.max(1);
        vec![
            name.to_owned(),
            format!("{}", bytes / 1_024),
            format!("{percent} %"),
        ]
    };
    let (shown, rest) = view.tables.split_at(view.tables.len().min(TABLES_SHOWN));
    let mut rows: Vec<Vec<String>> = shown.iter().map(|t| row(&t.name, t.bytes)).collect();
    if !rest.is_empty() {
        rows.push(row("others", rest.iter().map(|t| t.bytes).sum()));
    }
    table(&["TABLE", "KIB", "SHARE"], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::view::TableSpaceView;

    #[test]
    fn space_and_what_is_left_are_shown() {
        let view = CapacityView {
            turns: 2_000,
            turns_last_week: 700,
            database_bytes: 3 * MIB,
            free_bytes: Some(100 * MIB),
            bytes_per_turn: Some(1_572),
            turns_left: Some(66_703),
            days_left: Some(667),
            sync_median_us: Some(500),
            sync_max_us: Some(9_000),
            messages_per_s_alone: Some(2_000),
            messages_per_s_shared: Some(1_024_000),
            tables: (0..10)
                .map(|n| TableSpaceView {
                    name: format!("table{n}"),
                    bytes: (10 - n) * 10_240,
                })
                .collect(),
            ..CapacityView::default()
        };
        insta::assert_snapshot!(report(&view), @r"
        stored    2000 turns, 700 of them in the last seven days
        space     database 3 MiB, its log 0 MiB, attached files 0 MiB
        left      100 MiB: room for 66703 turns of 1572 bytes, 667 days like the last seven
        disk      4 KiB durable in 500 µs (median of 100, longest 9000 µs): 2000 messages a second one by one, at most 1024000 where they share commits

        TABLE   KIB  SHARE
        table0  100  18 %
        table1  90   16 %
        table2  80   14 %
        table3  70   12 %
        table4  60   10 %
        table5  50   9 %
        table6  40   7 %
        table7  30   5 %
        others  30   5 %
        ");
    }
}
