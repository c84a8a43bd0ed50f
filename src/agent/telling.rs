//! Who hears a run's answer while the model writes it.
//!
//! A run builds its [`ListenerGroup`] from the listeners that want to hear it; the stepping hands it to the model
//! with every request. Listeners only display the answer; the recorded step is authoritative.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use tracing::debug;

use crate::agent::events::RunEvents;
use crate::llm::Listener;
use vocative_core::ids::{RunId, TurnId};

/// Passes every event to several listeners, in their order.
#[derive(Clone, Default)]
pub(super) struct ListenerGroup {
    listeners: Vec<Arc<dyn Listener>>,
    events: Option<Arc<RunEvents>>,
}

impl ListenerGroup {
    /// Adds a listener.
    #[must_use]
    pub(super) fn and(mut self, listener: Arc<dyn Listener>) -> Self {
        self.listeners.push(listener);
        self
    }

    /// Adds the run's events as a listener.
    #[must_use]
    pub(super) fn and_events(mut self, events: Arc<RunEvents>) -> Self {
        self.events = Some(Arc::clone(&events));
        self.and(events)
    }

    /// Waits, but not for long, until everybody can see what was told.
    pub(super) async fn settled(&self) {
        if let Some(events) = &self.events {
            events.settled().await;
        }
    }

    /// Tells the listeners to discard what they heard, if it came from a model that failed.
    pub(super) fn void(&self, is_of_failed: bool) {
        if let Some(listener) = self.listener().filter(|_| is_of_failed) {
            listener.restart();
        }
    }

    /// The listener of a request; `None` if nobody follows the run, so that nothing is streamed in vain.
    pub(super) fn listener(&self) -> Option<&dyn Listener> {
        (!self.listeners.is_empty()).then_some(self)
    }
}

impl Listener for ListenerGroup {
    fn text(&self, delta: &str) {
        for listener in &self.listeners {
            listener.text(delta);
        }
    }

    fn restart(&self) {
        for listener in &self.listeners {
            listener.restart();
        }
    }

    fn interlude(&self) {
        for listener in &self.listeners {
            listener.interlude();
        }
    }

    fn tool_call(&self, call_id: &str, tool: &str, arguments: &str) {
        for listener in &self.listeners {
            listener.tool_call(call_id, tool, arguments);
        }
    }

    fn tool_progress(&self, call_id: &str, tool: &str, progress: &str) {
        for listener in &self.listeners {
            listener.tool_progress(call_id, tool, progress);
        }
    }

    fn tool_result(&self, call_id: &str, tool: &str, result: &str, sources: &[TurnId]) {
        for listener in &self.listeners {
            listener.tool_result(call_id, tool, result, sources);
        }
    }
}

/// Logs how long people waited for the first words of each answer of a run.
pub(super) struct FirstWordsTimer {
    run: RunId,
    since: Instant,
    has_begun: AtomicBool,
}

impl FirstWordsTimer {
    pub(super) fn new(run: RunId) -> Self {
        Self {
            run,
            since: Instant::now(),
            has_begun: AtomicBool::new(false),
        }
    }

    /// Whether the model is writing.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }
}

impl Listener for FirstWordsTimer {
    fn text(&self, _delta: &str) {
        if !self.has_begun.swap(true, Ordering::Relaxed) {
            let wait_ms = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
            debug!(run.id = %self.run, wait_ms, "the model began to write");
        }
    }

    fn restart(&self) {
        self.has_begun.store(false, Ordering::Relaxed);
    }

    fn interlude(&self) {
        self.restart();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    struct Heard(Mutex<Vec<String>>);

    impl Listener for Heard {
        fn text(&self, delta: &str) {
            self.0.lock().unwrap().push(delta.to_owned());
        }

        fn restart(&self) {
            self.0.lock().unwrap().push("(restart)".to_owned());
        }

        fn interlude(&self) {
            self.0.lock().unwrap().push("(interlude)".to_owned());
        }
    }

    #[test]
    fn every_listener_hears_everything_in_order() {
        let heard = [Arc::new(Heard::default()), Arc::new(Heard::default())];
        let telling = heard
            .iter()
            .fold(ListenerGroup::default(), |telling, heard| {
                telling.and(Arc::clone(heard) as Arc<dyn Listener>)
            });
        let listener = telling.listener().unwrap();
        listener.text("a");
        listener.restart();
        listener.text("b");
        listener.interlude();
        for heard in heard {
            let expected = ["a", "(restart)", "b", "(interlude)"];
            assert_eq!(*heard.0.lock().unwrap(), expected);
        }
    }

    #[test]
    fn nobody_listening_is_no_listener() {
        assert!(ListenerGroup::default().listener().is_none());
    }
}
