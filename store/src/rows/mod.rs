//! What the tables hold, a file per family: how rows are found, written and read back.

pub(crate) mod accounts;
pub(crate) mod acted_on;
pub(crate) mod album;
pub(crate) mod approvals;
pub mod audit;
pub(crate) mod columns;
pub(crate) mod contents;
pub(crate) mod context_limits;
pub(crate) mod conversations;
pub mod costs;
pub(crate) mod delegations;
pub(crate) mod feedback;
pub(crate) mod files;
pub(crate) mod fresh_starts;
pub(crate) mod hook_verdicts;
pub(crate) mod indexed;
pub(crate) mod inquiries;
pub(crate) mod jobs;
pub(crate) mod knowledge;
pub(crate) mod leases;
pub(crate) mod links;
pub(crate) mod mcp_tools;
pub(crate) mod memories;
pub(crate) mod memory_marks;
pub(crate) mod messages;
pub(crate) mod model_rests;
pub(crate) mod names;
pub(crate) mod networks;
pub(crate) mod open;
pub mod origins;
pub(crate) mod outbox_rows;
pub(crate) mod pairings;
pub(crate) mod participants;
pub(crate) mod places;
pub mod quarantine;
pub(crate) mod questions;
pub(crate) mod raw;
pub(crate) mod reach;
pub(crate) mod reactions;
pub(crate) mod run_events;
pub(crate) mod run_requests;
pub(crate) mod run_rows;
pub(crate) mod run_taints;
pub(crate) mod schedules;
pub(crate) mod search_text;
pub(crate) mod sent_prompts;
pub(crate) mod sent_turns;
pub(crate) mod skills;
pub mod spending;
pub(crate) mod stem_index;
pub(crate) mod steps;
pub(crate) mod summaries;
pub(crate) mod tellings;
pub(crate) mod titles;
pub(crate) mod token_counts;
pub(crate) mod token_ratios;
pub(crate) mod tool_calls;
pub(crate) mod tool_days;
pub(crate) mod turn_rows;
pub(crate) mod turn_sources;
pub(crate) mod turns;
pub mod vectors;

use std::sync::LazyLock;

use crate::StoreError;
use crate::engine::sql::Connection;
use crate::registry::{RowLinks, StoreTable};

/// Every table of the schema with its answers, by name.
pub(crate) fn tables() -> Vec<&'static StoreTable> {
    let nouns = [
        accounts::TABLES,
        acted_on::TABLES,
        approvals::TABLES,
        audit::TABLES,
        contents::TABLES,
        context_limits::TABLES,
        conversations::TABLES,
        costs::TABLES,
        delegations::TABLES,
        feedback::TABLES,
        files::TABLES,
        fresh_starts::TABLES,
        hook_verdicts::TABLES,
        inquiries::TABLES,
        jobs::TABLES,
        knowledge::TABLES,
        links::TABLES,
        mcp_tools::TABLES,
        memories::TABLES,
        memory_marks::TABLES,
        messages::TABLES,
        model_rests::TABLES,
        networks::TABLES,
        outbox_rows::TABLES,
        pairings::TABLES,
        participants::TABLES,
        places::TABLES,
        quarantine::TABLES,
        questions::TABLES,
        raw::TABLES,
        reach::TABLES,
        run_events::TABLES,
        run_requests::TABLES,
        run_rows::TABLES,
        run_taints::TABLES,
        schedules::TABLES,
        search_text::TABLES,
        sent_prompts::TABLES,
        skills::TABLES,
        spending::TABLES,
        stem_index::TABLES,
        steps::TABLES,
        summaries::TABLES,
        tellings::TABLES,
        token_ratios::TABLES,
        tool_calls::TABLES,
        tool_days::TABLES,
        turn_sources::TABLES,
        turns::TABLES,
        vectors::TABLES,
    ];
    let mut tables: Vec<_> = nouns.into_iter().flatten().collect();
    tables.sort_by_key(|table| table.name);
    tables
}

/// The tables with links of a kind, and the columns of these.
pub(crate) fn linked<C: IntoIterator<Item = &'static str>>(
    columns: impl Fn(&RowLinks) -> C,
) -> Vec<(&'static str, &'static str)> {
    let of_table = |table: &'static StoreTable| {
        let columns = columns(&table.links).into_iter();
        columns
            .map(|column| (table.name, column))
            .collect::<Vec<_>>()
    };
    tables().into_iter().flat_map(of_table).collect()
}

/// Deletes the rows that belong to a turn and nothing else: the turn is erased, deleted or expires.
pub(crate) fn delete_rows_of_turn_txn(connection: &Connection, seq: i64) -> Result<(), StoreError> {
    static DELETES: LazyLock<Vec<String>> = LazyLock::new(|| {
        let links = linked(|links| links.owner_turn).into_iter();
        let delete = |(table, column)| format!("DELETE FROM {table} WHERE {column} = ?1");
        links.map(delete).collect()
    });
    for sql in DELETES.iter() {
        connection.prepare_cached(sql)?.execute([seq])?;
    }
    Ok(())
}

/// Deletes the rows that belong to people who are erased. `people` is a JSON array of their ids.
pub(crate) fn delete_rows_of_people_txn(
    connection: &Connection,
    people: &str,
) -> Result<(), StoreError> {
    for (table, column) in linked(|links| links.owner_person) {
        let sql =
            format!("DELETE FROM {table} WHERE {column} IN (SELECT value FROM json_each(?1))");
        connection.prepare_cached(&sql)?.execute([people])?;
    }
    Ok(())
}
