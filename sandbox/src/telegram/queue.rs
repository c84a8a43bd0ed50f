//! The update queue: numbering, confirming, expiry.
//!
//! Owns the updates that are not confirmed yet. Pure: time comes in as an argument, in Unix seconds.
//! Knows nothing of what is inside an update.

use std::collections::VecDeque;

use serde_json::Value;

/// An `offset` this far above the tail is taken for one from before a reset, and ignored.
const OFFSET_AHEAD_MAX: i64 = 10;
/// An `offset` this far below the head is ignored; it is also the most a queue holds.
const QUEUE_LEN_MAX: i64 = 100_000;
/// One answer is cut at about this many bytes.
const ANSWER_BYTES_MAX: usize = 4 << 20;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pending {
    pub(super) id: i64,
    pub(super) body: Value,
    expires_at_s: i64,
}

#[derive(Debug)]
pub(super) struct UpdateQueue {
    pending: VecDeque<Pending>,
    next_id: i64,
    /// No pending update expires before this.
    first_expiry_s: i64,
}

impl UpdateQueue {
    /// Makes an empty queue whose first update gets `first_id`.
    pub(super) fn new(first_id: i64) -> Self {
        Self {
            pending: VecDeque::new(),
            next_id: first_id,
            first_expiry_s: i64::MAX,
        }
    }

    /// Numbers an update and queues it; `None` when the queue is full and the update is dropped.
    pub(super) fn push(&mut self, mut body: Value, expires_at_s: i64) -> Option<i64> {
        if self.pending.len() as i64 >= QUEUE_LEN_MAX {
            return None;
        }
        let id = self.next_id;
        self.next_id += 1;
        body["update_id"] = id.into();
        self.first_expiry_s = self.first_expiry_s.min(expires_at_s);
        self.pending.push_back(Pending {
            id,
            body,
            expires_at_s,
        });
        Some(id)
    }

    /// Removes expired updates.
    pub(super) fn expire(&mut self, now_s: i64) {
        if now_s < self.first_expiry_s {
            return;
        }
        self.pending.retain(|update| update.expires_at_s > now_s);
        let left = self.pending.iter().map(|update| update.expires_at_s);
        self.first_expiry_s = left.min().unwrap_or(i64::MAX);
    }

    /// Applies the `offset` of a poll: everything below it is confirmed and forgotten.
    pub(super) fn confirm(&mut self, offset: i64) {
        let head = self
            .pending
            .front()
            .map_or(self.next_id, |update| update.id);
        let from = match offset {
            0 => return,
            _ if offset < 0 => (self.next_id + offset).max(head),
            _ if offset > self.next_id + OFFSET_AHEAD_MAX => return,
            _ if offset < head - QUEUE_LEN_MAX => return,
            _ => offset,
        };
        while self.pending.front().is_some_and(|update| update.id < from) {
            self.pending.pop_front();
        }
    }

    /// The oldest updates, at most `limit` and about 4 MiB.
    pub(super) fn batch(&self, limit: usize) -> Vec<Value> {
        let mut bytes = 0;
        self.pending
            .iter()
            .take(limit)
            .map(|update| update.body.clone())
            .take_while(|body| {
                let first = bytes == 0;
                bytes += body.to_string().len();
                first || bytes <= ANSWER_BYTES_MAX
            })
            .collect()
    }

    /// Every update, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (i64, &Value)> {
        self.pending.iter().map(|update| (update.id, &update.body))
    }

    /// Removes one update, which a webhook took.
    pub(super) fn remove(&mut self, id: i64) {
        self.pending.retain(|update| update.id != id);
    }

    pub(super) fn len(&self) -> usize {
        self.pending.len()
    }

    pub(super) fn clear(&mut self) {
        self.pending.clear();
    }

    /// The newest update that is not confirmed, without its number.
    pub(super) fn newest(&self) -> Option<Value> {
        let mut body = self.pending.back()?.body.clone();
        body.as_object_mut()?.remove("update_id");
        Some(body)
    }

    /// Goes on numbering from `first_id`, as after a week of silence; earlier updates are dropped.
    pub(super) fn renumber_from(&mut self, first_id: i64) {
        self.pending.clear();
        self.next_id = first_id;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn queue_of(count: i64) -> UpdateQueue {
        let mut queue = UpdateQueue::new(1_000);
        for n in 0..count {
            queue.push(json!({"n": n}), 100);
        }
        queue
    }

    fn ids(queue: &UpdateQueue) -> Vec<i64> {
        let batch = queue.batch(100);
        batch
            .iter()
            .map(|update| update["update_id"].as_i64().unwrap())
            .collect()
    }

    #[test]
    fn offsets_confirm_as_the_platform_does() {
        let cases: [(i64, &[i64]); 8] = [
            (0, &[1000, 1001, 1002, 1003]),
            (1000, &[1000, 1001, 1002, 1003]),
            (1002, &[1002, 1003]),
            (1004, &[]),
            (1014, &[]),
            (1015, &[1000, 1001, 1002, 1003]),
            (-1, &[1003]),
            (-99, &[1000, 1001, 1002, 1003]),
        ];
        for (offset, left) in cases {
            let mut queue = queue_of(4);
            queue.confirm(offset);
            assert_eq!(ids(&queue), left, "offset {offset}");
        }
    }

    #[test]
    fn expired_updates_vanish_and_leave_a_gap() {
        let mut queue = queue_of(1);
        queue.push(json!({}), 50);
        queue.push(json!({}), 200);
        queue.expire(99);
        assert_eq!(ids(&queue), [1000, 1002]);
        queue.expire(100);
        assert_eq!(ids(&queue), [1002]);
    }
}
