//! The timeline's texts about missing messages. Pure.

use super::bounds::CatchupBounds;
use vocative_core::counted::counted;

/// A time, formatted for people.
fn time(at_ms: i64) -> String {
    chrono::DateTime::from_timestamp_millis(at_ms).map_or_else(
        || at_ms.to_string(),
        |at| at.format("%Y-%m-%d %H:%M UTC").to_string(),
    )
}

/// The text for a missed span that could not be read.
pub(super) fn unread(from_ms: i64, until_ms: i64, reason: &str) -> String {
    format!(
        "Messages from {} to {} may be missing here, because they could not be read: {reason}.",
        time(from_ms),
        time(until_ms)
    )
}

/// The text for a missed span that is too old to be read.
pub(super) fn too_old(from_ms: i64, until_ms: i64, bounds: &CatchupBounds) -> String {
    format!(
        "Messages from {} to {} are missing here: what was missed is read back for {} \
         (catch_up_days).",
        time(from_ms),
        time(until_ms),
        counted(bounds.catch_up_days, "day", "days")
    )
}

/// The text for a gap because more was missed than is read.
pub(super) fn too_many(from_ms: i64, until_ms: i64, bounds: &CatchupBounds) -> String {
    format!(
        "Messages from {} to {} are missing here: of what was missed, the newest {} are read back \
         (catch_up_messages_max).",
        time(from_ms),
        time(until_ms),
        bounds.catch_up_messages_max
    )
}

/// The text if messages from before the bot joined could not be read.
pub(super) fn before_unread(joined_ms: i64, reason: &str) -> String {
    format!(
        "What was said before {} is missing here, because it could not be read: {reason}.",
        time(joined_ms)
    )
}

/// The text for a gap because more was said before the bot joined than is read.
pub(super) fn before_cut(at_ms: i64, bounds: &CatchupBounds) -> String {
    format!(
        "What was said before {} is missing here: of the time before the bot joined, at most {} \
         of {} are read (backfill_messages_max, backfill_days).",
        time(at_ms),
        counted(bounds.backfill_messages_max, "message", "messages"),
        counted(bounds.backfill_days, "day", "days")
    )
}
