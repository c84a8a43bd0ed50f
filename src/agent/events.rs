//! The events of a run, on their way from the model to the store.
//!
//! Text is gathered: the first words go at once, further ones at most every [`GATHER`] or as soon as there are
//! [`PIECE_BYTES`]. One write is under way at a time; meanwhile new text is joined to the text that waits, so that a
//! slow disk makes longer pieces and never holds up the model. Text beyond [`WAITING_BYTES_MAX`] is not told piece by
//! piece: the end of the run tells the whole text.

use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::warn;

use crate::capture::clock::Clock;
use crate::llm::Listener;
use vocative_core::ids::TurnId;
use vocative_core::run::ClaimedRun;
use vocative_store::contract::{LeaseOutcome, NewRunEvent};
use vocative_store::{Replying, Store};

/// The shortest time between two writes of a text, unless a piece is long.
const GATHER: Duration = Duration::from_millis(100);
/// A piece of this many bytes is written at once.
const PIECE_BYTES: usize = 1_024;
/// The most text that waits for the disk, in bytes.
const WAITING_BYTES_MAX: usize = 256 << 10;
/// How long a run waits until its text is written before it records the next step.
const LAST_WORDS: Duration = Duration::from_millis(50);

/// The events of a run between the model and the store.
pub(super) struct RunEvents {
    waiting: Mutex<UnsentEvents>,
    /// Woken when an event came.
    wake: Notify,
    /// Woken when events were written.
    written: Notify,
}

#[derive(Default)]
struct UnsentEvents {
    /// The number of the answer that is being heard, from 1.
    step: u32,
    events: Vec<NewRunEvent>,
    text_bytes: usize,
    /// A write is under way.
    is_writing: bool,
    /// An event other than text waits, or enough text, or a caller waits until it is written.
    is_urgent: bool,
    /// The rest of this answer is not told: a piece of it is missing.
    is_mute: bool,
    /// Answers are not told before they are committed.
    is_discreet: bool,
    /// The run says nothing more.
    is_closed: bool,
}

impl RunEvents {
    /// Creates the events of a run that has `recorded_steps` recorded steps.
    pub(super) fn new(recorded_steps: usize) -> Self {
        let waiting = UnsentEvents {
            step: u32::try_from(recorded_steps + 1).unwrap_or(u32::MAX),
            ..UnsentEvents::default()
        };
        Self {
            waiting: Mutex::new(waiting),
            wake: Notify::new(),
            written: Notify::new(),
        }
    }

    /// The same for a run whose answers may be changed by hooks: only the end of the run tells them.
    #[must_use]
    pub(super) fn discreet(self, is_discreet: bool) -> Self {
        self.change(|waiting| waiting.is_discreet = is_discreet);
        self
    }

    /// Does the work of a run and writes its events meanwhile.
    pub(super) async fn during<T>(
        &self,
        work: impl Future<Output = T>,
        store: &Store<Replying>,
        claimed: &ClaimedRun,
        clock: &Clock,
    ) -> T {
        let mut writing = pin!(self.write_on(store, claimed, clock));
        let mut work = pin!(work);
        let done = tokio::select! {
            biased;
            done = &mut work => done,
            () = &mut writing => return work.await,
        };
        self.change(|waiting| waiting.is_closed = true);
        let _ = timeout(LAST_WORDS, writing).await;
        done
    }

    /// Waits, but not for long, until all events so far are written, so that the next record comes after them.
    pub(super) async fn settled(&self) {
        let settled = async {
            loop {
                let written = self.written.notified();
                {
                    let mut waiting = self.lock();
                    if waiting.is_closed || (waiting.events.is_empty() && !waiting.is_writing) {
                        return;
                    }
                    waiting.is_urgent = true;
                }
                self.wake.notify_one();
                written.await;
            }
        };
        let _ = timeout(LAST_WORDS, settled).await;
    }

    /// Writes until there are no more events, or none may be written.
    async fn write_on(&self, store: &Store<Replying>, claimed: &ClaimedRun, clock: &Clock) {
        let mut not_before = Instant::now();
        while let Some(events) = self.next(not_before).await {
            not_before = Instant::now() + GATHER;
            let (run, token) = (claimed.run.id, claimed.token);
            match store.record_run_events(run, token, events, (clock)()).await {
                Ok(LeaseOutcome::Written) => {}
                Ok(LeaseOutcome::Stale) => {
                    self.change(|waiting| waiting.is_closed = true);
                    return;
                }
                Err(cause) => {
                    warn!(error = %cause, run.id = %run, "what a run says could not be told piece by piece; its end tells it");
                    self.lock().mute();
                }
            }
            self.lock().is_writing = false;
            self.written.notify_waiters();
        }
    }

    /// The events to write next, once they are due; `None` when no more come.
    async fn next(&self, not_before: Instant) -> Option<Vec<NewRunEvent>> {
        loop {
            let notified = self.wake.notified();
            let (has_some, is_due, is_closed) = {
                let waiting = self.lock();
                let is_due = waiting.is_urgent || waiting.is_closed;
                (!waiting.events.is_empty(), is_due, waiting.is_closed)
            };
            if !has_some {
                if is_closed {
                    return None;
                }
                notified.await;
                continue;
            }
            if is_due || Instant::now() >= not_before {
                return Some(self.lock().take());
            }
            tokio::select! {
                biased;
                () = notified => {}
                () = sleep_until(not_before) => {}
            }
        }
    }

    fn change(&self, change: impl FnOnce(&mut UnsentEvents)) {
        change(&mut self.lock());
        self.wake.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, UnsentEvents> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UnsentEvents {
    fn take(&mut self) -> Vec<NewRunEvent> {
        self.text_bytes = 0;
        self.is_urgent = false;
        self.is_writing = true;
        std::mem::take(&mut self.events)
    }

    fn say(&mut self, delta: &str) {
        if self.is_mute || self.is_closed || self.is_discreet {
            return;
        }
        if self.text_bytes + delta.len() > WAITING_BYTES_MAX {
            self.is_mute = true;
            return;
        }
        self.text_bytes += delta.len();
        self.is_urgent |= self.text_bytes >= PIECE_BYTES;
        match self.events.last_mut() {
            Some(NewRunEvent::Text { step, text }) if *step == self.step => text.push_str(delta),
            _ => self.events.push(NewRunEvent::Text {
                step: self.step,
                text: delta.to_owned(),
            }),
        }
    }

    /// Stops telling the rest of this answer.
    fn mute(&mut self) {
        self.forget_text();
        self.is_mute = true;
    }

    fn forget_text(&mut self) {
        self.events
            .retain(|event| !matches!(event, NewRunEvent::Text { .. }));
        self.text_bytes = 0;
    }

    fn push(&mut self, event: NewRunEvent) {
        if !self.is_closed {
            self.events.push(event);
            self.is_urgent = true;
        }
    }
}

impl Listener for RunEvents {
    fn text(&self, delta: &str) {
        self.change(|waiting| waiting.say(delta));
    }

    fn restart(&self) {
        self.change(|waiting| {
            waiting.forget_text();
            waiting.is_mute = false;
            // One event is enough, however often the model is asked again while the disk is slow.
            if waiting.events.last() != Some(&NewRunEvent::Restarted) {
                waiting.push(NewRunEvent::Restarted);
            }
        });
    }

    fn interlude(&self) {
        self.change(|waiting| {
            waiting.step = waiting.step.saturating_add(1);
            waiting.is_mute = false;
        });
    }

    fn tool_call(&self, call_id: &str, tool: &str, arguments: &str) {
        self.change(|waiting| {
            let step = waiting.step.saturating_sub(1).max(1);
            waiting.push(NewRunEvent::ToolCall {
                step,
                call_id: call_id.to_owned(),
                tool: tool.to_owned(),
                arguments: arguments.to_owned(),
            });
        });
    }

    fn tool_progress(&self, call_id: &str, tool: &str, progress: &str) {
        self.change(|waiting| {
            // Hooks have not checked the tool's text.
            if waiting.is_discreet {
                return;
            }
            let of_call = |event: &NewRunEvent| matches!(event, NewRunEvent::ToolProgress { call_id: of, .. } if of == call_id);
            waiting.events.retain(|event| !of_call(event));
            let step = waiting.step.saturating_sub(1).max(1);
            waiting.push(NewRunEvent::ToolProgress {
                step,
                call_id: call_id.to_owned(),
                tool: tool.to_owned(),
                text: progress.to_owned(),
            });
        });
    }

    fn tool_result(&self, call_id: &str, tool: &str, result: &str, sources: &[TurnId]) {
        self.change(|waiting| {
            let step = waiting.step.saturating_sub(1).max(1);
            waiting.push(NewRunEvent::ToolResult {
                step,
                call_id: call_id.to_owned(),
                tool: tool.to_owned(),
                text: result.to_owned(),
                sources: sources.to_vec(),
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(step: u32, text: &str) -> NewRunEvent {
        NewRunEvent::Text {
            step,
            text: text.to_owned(),
        }
    }

    async fn due(events: &RunEvents, not_before: Instant) -> (Option<Vec<NewRunEvent>>, Duration) {
        let begun = Instant::now();
        let next = events.next(not_before).await;
        (next, begun.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn first_words_go_at_once_further_ones_are_gathered_and_long_ones_do_not_wait() {
        let events = RunEvents::new(0);
        events.text("one ");
        events.text("two");
        let now = Instant::now();
        let (first, waited) = due(&events, now).await;
        assert_eq!(
            (first, waited),
            (Some(vec![text(1, "one two")]), Duration::ZERO)
        );

        events.text("three");
        let (next, waited) = due(&events, Instant::now() + GATHER).await;
        assert_eq!((next, waited), (Some(vec![text(1, "three")]), GATHER));

        events.text(&"x".repeat(PIECE_BYTES));
        let (long, waited) = due(&events, Instant::now() + GATHER).await;
        assert_eq!(
            (long.map(|long| long.len()), waited),
            (Some(1), Duration::ZERO)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_void_is_not_written_and_steps_are_told_apart() {
        let events = RunEvents::new(1);
        events.text("void");
        events.restart();
        events.restart();
        events.text("kept");
        events.interlude();
        events.tool_call("call_1", "search", "search {}");
        events.text("later");
        let call = NewRunEvent::ToolCall {
            step: 2,
            call_id: "call_1".to_owned(),
            tool: "search".to_owned(),
            arguments: "search {}".to_owned(),
        };
        let expected = vec![
            NewRunEvent::Restarted,
            text(2, "kept"),
            call,
            text(3, "later"),
        ];
        assert_eq!(events.next(Instant::now() + GATHER).await, Some(expected));
        events.change(|waiting| waiting.is_closed = true);
        events.text("after the end");
        assert_eq!(events.next(Instant::now()).await, None);
    }

    #[test]
    fn a_stuck_disk_costs_bounded_memory_and_leaves_a_true_beginning() {
        let events = RunEvents::new(0);
        let piece = "x".repeat(1_000);
        for _ in 0..10_000 {
            events.text(&piece);
        }
        let told = events.lock().take();
        assert!(
            matches!(&told[..], [NewRunEvent::Text { text, .. }] if text.len() <= WAITING_BYTES_MAX)
        );
        // After a gap nothing more of this answer is told; the next answer is.
        events.text("more");
        events.interlude();
        events.text("next");
        assert_eq!(events.lock().take(), [text(2, "next")]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_told_is_written_before_what_comes_next_but_a_stuck_disk_is_not_waited_for() {
        let events = RunEvents::new(0);
        events.settled().await;
        events.text("one");
        let begun = Instant::now();
        let writing = async {
            events.next(Instant::now() + GATHER).await;
            tokio::time::sleep(Duration::from_millis(7)).await;
            events.lock().is_writing = false;
            events.written.notify_waiters();
        };
        tokio::join!(writing, events.settled());
        assert_eq!(begun.elapsed(), Duration::from_millis(7));
        events.text("two");
        let begun = Instant::now();
        events.settled().await;
        assert_eq!(begun.elapsed(), LAST_WORDS);
    }
}
