//! The request journal over HTTP: what one loopback server saw and sent, as it was on the wire.
//!
//! Owns the query of `GET /control/journal`. The records themselves are in `wire`.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::wire::{WireLog, WirePeer};

/// Most records of one answer.
const RECORDS_MAX: usize = 1_000;

/// Which records are asked for.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct JournalQuery {
    /// Only records with a higher number.
    after: u64,
    /// The most records to return, up to 1,000.
    limit: Option<usize>,
    /// Only of this method or frame type.
    name: Option<String>,
    /// Only of this kind: `request`, `response`, `frame_in`, `frame_out`.
    kind: Option<String>,
}

/// The oldest records that fit, and the number to ask `after` next time.
pub(crate) fn page(wire: &WireLog, peer: WirePeer, query: &JournalQuery) -> Value {
    let wanted = |record: &Value| {
        let is = |field: &str, value: &Option<String>| {
            value.as_ref().is_none_or(|value| record[field] == **value)
        };
        is("name", &query.name) && is("kind", &query.kind)
    };
    let all = wire.records_after(query.after);
    let last = all.last().map_or(query.after, |record| record.n);
    let own = all.into_iter().filter(|record| record.peer == peer);
    let limit = query.limit.unwrap_or(RECORDS_MAX).clamp(1, RECORDS_MAX);
    let mut records: Vec<Value> = own.map(|record| json!(record)).filter(wanted).collect();
    let is_cut = records.len() > limit;
    records.truncate(limit);
    let last_shown = records.last().map(|record| record["n"].clone());
    let next = match last_shown {
        Some(shown) if is_cut => shown,
        _ => json!(last),
    };
    json!({"records": records, "next_after": next, "has_more": is_cut})
}
