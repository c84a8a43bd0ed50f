//! What uses the space, and what the disk can do.

use serde::{Deserialize, Serialize};

use vocative_store::contract::{Capacity, TableSpace};

/// Messages that may share one commit. *Source:* the writer's batches.
const MESSAGES_PER_COMMIT: u64 = 512;
/// With fewer turns the bytes of one are mostly those of an empty database.
const TURNS_MIN: u64 = 1_000;

/// What uses the space, and what the disk can do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapacityView {
    /// Turns stored.
    pub turns: u64,
    /// Turns captured within the last seven days, imports included.
    pub turns_last_week: u64,
    /// The database's bytes, without its write-ahead log.
    pub database_bytes: u64,
    /// The write-ahead log's bytes.
    pub log_bytes: u64,
    /// Bytes of stored files that people attached.
    pub files_bytes: u64,
    /// What each table takes with its indexes, largest first.
    pub tables: Vec<TableSpaceView>,
    /// What the disk has left; absent where it can't be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_bytes: Option<u64>,
    /// Bytes that a turn takes, all tables and files counted; absent below a thousand turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_turn: Option<u64>,
    /// Turns that the free room holds; absent where one of the two is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns_left: Option<u64>,
    /// Days until the disk is full if every week is like the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub days_left: Option<u64>,
    /// How long the disk takes to make 4 KiB durable: the median, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_median_us: Option<u64>,
    /// The longest of the measured writes, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_max_us: Option<u64>,
    /// Messages a second if each waits for the disk alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages_per_s_alone: Option<u64>,
    /// The bound that the disk sets to messages a second when as many as possible share a commit. The
    /// processor may set a lower one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages_per_s_shared: Option<u64>,
}

/// What one table takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableSpaceView {
    /// Its name.
    pub name: String,
    /// Its bytes, with its indexes.
    pub bytes: u64,
}

impl From<&TableSpace> for TableSpaceView {
    fn from(table: &TableSpace) -> Self {
        Self {
            name: table.name.clone(),
            bytes: table.bytes,
        }
    }
}

impl From<&Capacity> for CapacityView {
    fn from(capacity: &Capacity) -> Self {
        let all_bytes = capacity.database_bytes + capacity.files_bytes;
        let bytes_per_turn =
            (capacity.turns >= TURNS_MIN).then(|| (all_bytes / capacity.turns).max(1));
        let turns_left = capacity
            .free_bytes
            .zip(bytes_per_turn)
            .map(|(free, per_turn)| free / per_turn);
        let days_left = turns_left
            .filter(|_| capacity.turns_last_week > 0)
            .map(|turns| turns.saturating_mul(7) / capacity.turns_last_week);
        let sync_median_us = capacity.sync_us.get(capacity.sync_us.len() / 2).copied();
        let alone = sync_median_us.map(|median_us| 1_000_000 / median_us.max(1));
        Self {
            turns: capacity.turns,
            turns_last_week: capacity.turns_last_week,
            database_bytes: capacity.database_bytes,
            log_bytes: capacity.log_bytes,
            files_bytes: capacity.files_bytes,
            tables: capacity.tables.iter().map(Into::into).collect(),
            free_bytes: capacity.free_bytes,
            bytes_per_turn,
            turns_left,
            days_left,
            sync_median_us,
            sync_max_us: capacity.sync_us.last().copied(),
            messages_per_s_alone: alone,
            messages_per_s_shared: alone.map(|alone| alone.saturating_mul(MESSAGES_PER_COMMIT)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_follows_from_what_was_measured() {
        let capacity = Capacity {
            turns: 2_000,
            turns_last_week: 700,
            database_bytes: 1_500_000,
            files_bytes: 500_000,
            free_bytes: Some(10_000_000),
            sync_us: vec![400, 500, 9_000],
            ..Capacity::default()
        };
        let view = CapacityView::from(&capacity);
        assert_eq!(view.bytes_per_turn, Some(1_000));
        assert_eq!((view.turns_left, view.days_left), (Some(10_000), Some(100)));
        assert_eq!(view.sync_median_us, Some(500));
        assert_eq!(view.messages_per_s_alone, Some(2_000));
        let few = Capacity {
            turns: 999,
            ..capacity
        };
        let view = CapacityView::from(&few);
        assert_eq!((view.bytes_per_turn, view.days_left), (None, None));
    }
}
