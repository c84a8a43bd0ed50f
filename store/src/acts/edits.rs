//! An edit of a known message: a new revision of its turn, and its effects on waiting runs.

use std::cmp::Ordering;

use crate::acts::arrival::{Arrival, captured};
use crate::engine::sql::{Connection, params};
use crate::rows::summaries::void_summaries_of_quote_txn;
use crate::rows::turn_rows::TurnRow;

use crate::StoreError;
use crate::acts::addressing::follow_ups::note_follow_up_txn;
use crate::acts::files::with_known_facts;
use crate::acts::reanswer::answer_again_txn;
use crate::acts::triggers::{refresh_triggers_txn, unaddress_txn};
use crate::contract::{Captured, NewMessage};
use crate::rows::album;
use crate::rows::columns::stored_attachments;
use crate::rows::files::{queue_files_txn, with_transcripts};
use crate::rows::messages::KnownMessage;
use crate::rows::raw::keep_envelope_txn;
use crate::rows::turns::{Replacement, revise_turn_txn};
use vocative_core::addressing::RunVerdict;
use vocative_core::ids::{AgentName, RunId};

/// Whether a message changes nothing because the stored one is of a later edit.
pub(crate) fn is_outdated(message: &NewMessage, known: &KnownMessage) -> bool {
    compare(message, known) == Ordering::Less
}

/// Whether a message is an edit of the known one that is not stored yet.
///
/// Telegram's markers count whole seconds, and other bots edit faster than that: of two edits with the same
/// marker the room shows the one received last, because a chat's updates come in order.
pub(crate) fn is_newer(message: &NewMessage, known: &KnownMessage, turn: &TurnRow) -> bool {
    let marker = message.edit_marker.as_deref();
    let may_be_of_another = marker.is_some_and(|marker| !marker.contains('.'));
    let is_equal = compare(message, known) == Ordering::Equal;
    is_later(message, known, turn)
        || (is_equal
            && may_be_of_another
            && message.is_edit
            && has_another_text(message, known, turn))
}

/// Whether a message is of a later edit than the stored one. Without a marker on either side only the text
/// can show it.
pub(crate) fn is_later(message: &NewMessage, known: &KnownMessage, turn: &TurnRow) -> bool {
    match compare(message, known) {
        Ordering::Greater => true,
        Ordering::Less => false,
        Ordering::Equal => {
            let has_no_marker = message.edit_marker.is_none();
            message.is_edit && has_no_marker && has_another_text(message, known, turn)
        }
    }
}

fn has_another_text(message: &NewMessage, known: &KnownMessage, turn: &TurnRow) -> bool {
    message.text != *known.text.as_ref().unwrap_or(&turn.content)
}

fn compare(message: &NewMessage, known: &KnownMessage) -> Ordering {
    match (&message.edit_marker, &known.edit_marker) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Less,
        (Some(_), None) => Ordering::Greater,
        (Some(event), Some(stored)) => compare_decimals(event, stored),
    }
}

/// Compares two non-negative decimal numbers of any length.
fn compare_decimals(a: &str, b: &str) -> Ordering {
    let parts = |text: &str| {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let whole = whole.trim_start_matches('0').to_owned();
        (
            whole.len(),
            whole,
            fraction.trim_end_matches('0').to_owned(),
        )
    };
    parts(a).cmp(&parts(b))
}

/// Replaces the text of a turn and settles whom it addresses from here on.
pub(crate) fn edit_txn(
    connection: &Connection,
    arrival: &Arrival<'_>,
    mut turn: TurnRow,
    known: &KnownMessage,
) -> Result<Captured, StoreError> {
    let message = arrival.message;
    note_edit_txn(connection, message, known)?;
    keep_envelope_txn(connection, message, turn.seq)?;
    let is_album = turn.album.is_some();
    let content = if is_album {
        album::joined_text(connection, turn.seq)?
    } else {
        message.text.clone()
    };
    let content = with_transcripts(connection, turn.seq, content)?;
    let says_otherwise = content != turn.content;
    let is_quoting: bool = connection
        .prepare_cached("SELECT quote IS NOT NULL AS is_quoting FROM turns WHERE seq = ?1")?
        .query_row([turn.seq], |row| row.get("is_quoting"))?;
    let replacement = Replacement {
        tokens: message.tokens.as_ref().filter(|_| content == message.text),
        attachments: if is_album {
            album::with_item_replaced(connection, &turn, known, message)?
        } else {
            let told = with_known_facts(&message.attachments, turn.attachments.as_deref())?;
            stored_attachments(&told)
        },
        content,
        keep_revision: message.keep_revisions,
        now_ms: message.received_at_ms,
    };
    let is_revised = revise_turn_txn(connection, &mut turn, replacement)?;
    if is_revised {
        let now_ms = message.received_at_ms;
        queue_files_txn(connection, turn.seq, &message.attachments, now_ms)?;
    }
    connection
        .prepare_cached("UPDATE turns SET quote = ?2 WHERE seq = ?1")?
        .execute(params![turn.seq, message.quote])?;
    if message.quote.is_none() && is_quoting {
        void_summaries_of_quote_txn(connection, turn.seq)?;
    }
    note_follow_up_txn(connection, turn.seq, arrival.verdict.would_follow_up)?;
    let cancelled_runs = settle_addressing_txn(connection, arrival, &turn, known)?;
    let mut report = captured(&turn, arrival.address_txn(connection, &turn, true)?);
    if arrival.addresses_anew() {
        arrival.count_exchange_txn(connection)?;
    }
    let is_stop = matches!(arrival.verdict.runs, RunVerdict::Stop { .. });
    if says_otherwise && is_stop && !arrival.addresses_anew() {
        let stopped = arrival.stop_and_tell_txn(connection, &turn)?;
        report.cancelled_runs.extend(stopped);
    }
    if says_otherwise {
        let again = answer_again_txn(connection, arrival, &turn)?;
        report.new_runs.extend(again.new_runs);
        report.cancelled_runs.extend(again.cancelled_runs);
    }
    // This includes the trigger of a run that this edit brought back.
    if is_revised || !report.new_runs.is_empty() {
        refresh_triggers_txn(connection, &turn)?;
    }
    report.cancelled_runs.extend(cancelled_runs);
    Ok(if is_revised {
        Captured::Revised(report)
    } else {
        Captured::Duplicate(report)
    })
}

fn note_edit_txn(
    connection: &Connection,
    message: &NewMessage,
    known: &KnownMessage,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE messages
             SET edit_marker = ?4, text = CASE WHEN text IS NULL THEN NULL ELSE ?5 END
             WHERE account_id = ?1 AND chat_id = ?2 AND platform_id = ?3",
        )?
        .execute(params![
            message.account,
            known.identity,
            message.message_id,
            message.edit_marker,
            message.text
        ])?;
    Ok(())
}

/// Takes back the addressing of agents that the edited text no longer addresses. In an album another item may
/// still address them, so nothing is taken back while another item has text.
fn settle_addressing_txn(
    connection: &Connection,
    arrival: &Arrival<'_>,
    turn: &TurnRow,
    known: &KnownMessage,
) -> Result<Vec<RunId>, StoreError> {
    let message = arrival.message;
    if turn.album.is_some()
        && album::others_say_something(connection, turn.seq, known, &message.message_id)?
    {
        return Ok(Vec::new());
    }
    let addressed = &arrival.verdict.addressed_to;
    let gone: Vec<AgentName> = arrival
        .facts
        .addressed_before
        .iter()
        .filter(|agent| !addressed.contains(agent))
        .cloned()
        .collect();
    unaddress_txn(connection, turn, &gone, message.received_at_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_markers_compare_as_numbers() {
        let cases = [
            ("9", "10", Ordering::Less),
            ("1700000000.000200", "1700000000.0002", Ordering::Equal),
            ("1700000000.000200", "1700000000.000199", Ordering::Greater),
            ("1700000000", "1700000000.000001", Ordering::Less),
            ("007", "7", Ordering::Equal),
        ];
        for (a, b, expected) in cases {
            assert_eq!(compare_decimals(a, b), expected, "{a} and {b}");
            assert_eq!(compare_decimals(b, a), expected.reverse(), "{b} and {a}");
        }
    }
}
