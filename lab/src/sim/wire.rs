//! How the platform delivers events: late, twice, out of order or not at all. Pure except for its dice.
//!
//! Slack delivers over a socket and again until the event is acknowledged; without a socket it gives up after three
//! retries, and the event is only in the history. Telegram keeps updates in a row until a later offset confirms them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::dice::SeededDice;

/// Slack's waits before it delivers an event again that no socket took, in milliseconds. Source: Events API.
const RETRY_MS: [i64; 3] = [1_000, 60_000, 300_000];
/// The wait before it delivers an event again that was taken but not acknowledged.
const UNACKNOWLEDGED_MS: i64 = 60_000;

/// An event to deliver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SimEvent {
    pub(super) room: usize,
    /// Which message of the room.
    pub(super) message: usize,
    pub(super) what: What,
}

/// What happened to a message. Texts are those of the time of the event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    Posted {
        text: String,
        /// Whether the event contains the kind of room.
        has_kind: bool,
    },
    Edited {
        text: String,
        marker: String,
    },
    Deleted,
    Own,
    /// A button below it was pressed.
    Pressed {
        /// Which press: its identity.
        number: usize,
        person: usize,
        data: String,
    },
}

/// The number of a delivered event, by which it is acknowledged.
pub(super) type EventNumber = usize;

#[derive(Debug)]
struct TellAttempt {
    event: EventNumber,
    tries: usize,
}

/// Events in flight to the daemon.
#[derive(Debug, Default)]
pub(super) struct SimWire {
    events: Vec<SimEvent>,
    acknowledged: BTreeSet<EventNumber>,
    /// Events given up; they are only in the history.
    gone: BTreeSet<EventNumber>,
    attempts: BTreeMap<(i64, u64), TellAttempt>,
    attempts_made: u64,
    socket: Option<VecDeque<EventNumber>>,
    /// Counts sockets: an event taken from one can't be acknowledged on the next.
    pub(super) socket_number: u64,
    /// Telegram's queue; ids are given on arrival.
    updates: VecDeque<(i64, EventNumber)>,
    next_update: i64,
    is_polled: bool,
}

/// The outcome of a delivery attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TellOutcome {
    Offered,
    Known,
    Missed,
    GivenUp,
}

impl SimWire {
    pub(super) fn new(is_polled: bool) -> Self {
        Self {
            is_polled,
            next_update: 1_000,
            ..Self::default()
        }
    }

    /// Delivers an event: at once, late, or twice.
    pub(super) fn tell(
        &mut self,
        event: SimEvent,
        now_ms: i64,
        has_faults: bool,
        dice: &mut SeededDice,
    ) {
        let number = self.events.len();
        self.events.push(event);
        let is_late = has_faults && dice.hits(100);
        let wait_ms = if is_late {
            dice.ms(1_000, 30_000)
        } else {
            dice.ms(5, 200)
        };
        self.plan(number, now_ms + wait_ms, 0);
        if has_faults && dice.hits(80) {
            self.plan(number, now_ms + dice.ms(5, 20_000), 0);
        }
    }

    fn plan(&mut self, event: EventNumber, at_ms: i64, tries: usize) {
        self.attempts_made += 1;
        let attempt = TellAttempt { event, tries };
        self.attempts.insert((at_ms, self.attempts_made), attempt);
    }

    /// Makes all events in flight arrive soon.
    pub(super) fn hurry(&mut self, now_ms: i64) {
        let attempts = std::mem::take(&mut self.attempts);
        for ((at_ms, n), attempt) in attempts {
            self.attempts
                .insert((at_ms.min(now_ms + 1_000), n), attempt);
        }
    }

    /// When the next attempt is due.
    pub(super) fn due_ms(&self) -> Option<i64> {
        self.attempts.keys().next().map(|(at_ms, _)| *at_ms)
    }

    /// Makes the attempt that is due at that time.
    pub(super) fn attempt(&mut self, now_ms: i64) -> Option<(EventNumber, TellOutcome)> {
        let (_, attempt) = self.attempts.pop_first()?;
        let TellAttempt { event, tries } = attempt;
        let told = if self.is_polled {
            self.updates.push_back((self.next_update, event));
            self.next_update += 1;
            TellOutcome::Offered
        } else if self.acknowledged.contains(&event) && tries > 0 {
            TellOutcome::Known
        } else if let Some(inbox) = &mut self.socket {
            inbox.push_back(event);
            if !self.is_press(event) {
                self.plan(event, now_ms + UNACKNOWLEDGED_MS, tries.max(1));
            }
            TellOutcome::Offered
        } else if self.is_press(event) || tries == RETRY_MS.len() && self.may_be_lost(event) {
            self.gone.insert(event);
            TellOutcome::GivenUp
        } else {
            let wait_ms = RETRY_MS[tries.min(RETRY_MS.len() - 1)];
            let tries = (tries + 1).min(RETRY_MS.len());
            self.plan(event, now_ms + wait_ms, tries);
            TellOutcome::Missed
        };
        Some((event, told))
    }

    /// Whether an event is a press: Slack delivers it once, and tells the person if nobody took it.
    fn is_press(&self, event: EventNumber) -> bool {
        matches!(self.events[event].what, What::Pressed { .. })
    }

    /// Whether an event may be lost: not that of a deletion, because the history does not show it.
    fn may_be_lost(&self, event: EventNumber) -> bool {
        self.events[event].what != What::Deleted
    }

    pub(super) fn event(&self, event: EventNumber) -> &SimEvent {
        &self.events[event]
    }

    /// Whether there is a socket.
    pub(super) fn is_listened_to(&self) -> bool {
        self.socket.is_some()
    }

    /// Opens a socket, which replaces another one.
    pub(super) fn open_socket(&mut self) -> u64 {
        self.socket = Some(VecDeque::new());
        self.socket_number += 1;
        self.socket_number
    }

    /// Closes the socket; the events that it held are lost with it.
    pub(super) fn close_socket(&mut self) {
        self.socket = None;
    }

    pub(super) fn has_socket(&self, number: u64) -> bool {
        self.socket.is_some() && self.socket_number == number
    }

    /// The next event of that socket.
    pub(super) fn take(&mut self) -> Option<EventNumber> {
        self.socket.as_mut()?.pop_front()
    }

    pub(super) fn acknowledge(&mut self, event: EventNumber) {
        self.acknowledged.insert(event);
    }

    /// Updates from that offset on; earlier ones are confirmed and dropped.
    pub(super) fn updates(&mut self, offset: i64) -> Vec<(i64, EventNumber)> {
        self.confirm(offset);
        self.updates.iter().copied().take(100).collect()
    }

    pub(super) fn confirm(&mut self, offset: i64) {
        while self.updates.front().is_some_and(|(id, _)| *id < offset) {
            if let Some((_, event)) = self.updates.pop_front() {
                self.acknowledged.insert(event);
            }
        }
    }

    /// Whether the daemon has acknowledged a message's event.
    pub(super) fn is_heard_of(&self, room: usize, message: usize) -> bool {
        let is_it = |event: &EventNumber| {
            let told = &self.events[*event];
            (told.room, told.message) == (room, message)
        };
        self.acknowledged.iter().any(is_it)
    }

    /// Whether no event is in flight and none waits to be confirmed.
    pub(super) fn is_quiet(&self) -> bool {
        let is_open =
            |event: &EventNumber| !self.acknowledged.contains(event) && !self.gone.contains(event);
        let is_waiting = self
            .attempts
            .values()
            .any(|attempt| is_open(&attempt.event));
        !is_waiting
            && self.updates.is_empty()
            && self.socket.as_ref().is_none_or(VecDeque::is_empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> SimEvent {
        SimEvent {
            room: 0,
            message: 0,
            what: What::Own,
        }
    }

    #[test]
    fn slack_tells_again_until_it_is_acknowledged_and_gives_up_without_a_socket() {
        let mut wire = SimWire::new(false);
        let mut dice = SeededDice::new(1);
        wire.tell(own(), 0, false, &mut dice);
        let mut told = Vec::new();
        while let Some(due_ms) = wire.due_ms() {
            told.extend(wire.attempt(due_ms).map(|(_, told)| told));
        }
        assert_eq!(
            told,
            [
                TellOutcome::Missed,
                TellOutcome::Missed,
                TellOutcome::Missed,
                TellOutcome::GivenUp
            ]
        );
        wire.tell(own(), 1_000_000, false, &mut dice);
        wire.open_socket();
        for _ in 0..2 {
            let due_ms = wire.due_ms().unwrap_or_default();
            assert_eq!(wire.attempt(due_ms), Some((1, TellOutcome::Offered)));
            assert_eq!(wire.take(), Some(1));
        }
        wire.acknowledge(1);
        assert!(wire.is_quiet());
    }

    #[test]
    fn telegram_keeps_updates_until_an_offset_confirms_them() {
        let mut wire = SimWire::new(true);
        wire.tell(own(), 0, false, &mut SeededDice::new(1));
        wire.attempt(1_000);
        assert_eq!(wire.updates(0), [(1_000, 0)]);
        assert_eq!(wire.updates(0), [(1_000, 0)]);
        assert_eq!(wire.updates(1_001), []);
        assert!(wire.is_quiet());
    }
}
