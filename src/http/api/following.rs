//! One run, followed to its end by the daemon itself on behalf of a request that waits for the answer.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast::{self, error::RecvError};

use super::hub::Passed;
use super::stream::StreamSource;
use vocative_core::ids::{EventId, RunId};
use vocative_core::run_event::{Ending, Happening};
use vocative_store::StoreError;
use vocative_store::contract::EventScope;

/// What there is to tell of a run.
#[derive(Debug)]
pub(super) enum RunNews {
    /// The next piece of what is said. Where it is not the first and nothing joins it to what was said before, a gap
    /// is told first.
    Text(String),
    /// What is said from here on is another text: a step or an attempt has begun.
    Gap,
    /// Nothing for a while.
    Silence,
    /// It has ended.
    Ended(Ending),
    /// The daemon stops. The run goes on with its next start.
    Stopping,
}

/// A run that is followed.
pub(super) struct Following {
    source: StreamSource,
    run: RunId,
    live: broadcast::Receiver<Arc<Passed>>,
    through: EventId,
    /// What is told next, from a snapshot of the run.
    ready: Vec<RunNews>,
    step: u32,
    /// The part of the step's text that was told.
    told: String,
}

impl Following {
    /// Follows a run from its present state.
    pub(super) async fn of(source: StreamSource, run: RunId) -> Result<Self, StoreError> {
        let live = source.hub.follow(EventScope::Run(run)).await?;
        let mut following = Self {
            source,
            run,
            live,
            through: EventId(0),
            ready: Vec::new(),
            step: 0,
            told: String::new(),
        };
        following.look().await?;
        Ok(following)
    }

    /// What happens next; silence after `silence`.
    ///
    /// # Errors
    /// If the store fails.
    pub(super) async fn next(&mut self, silence: Duration) -> Result<RunNews, StoreError> {
        loop {
            if !self.ready.is_empty() {
                return Ok(self.ready.remove(0));
            }
            let heard = tokio::select! {
                () = self.source.cancel.cancelled() => return Ok(RunNews::Stopping),
                heard = self.live.recv() => heard,
                () = tokio::time::sleep(silence) => return Ok(RunNews::Silence),
            };
            match heard {
                Ok(passed) if passed.id <= self.through => {}
                Ok(passed) => {
                    self.through = passed.id;
                    self.take(&passed.event.what);
                }
                // Too far behind: a snapshot says all that counts.
                Err(RecvError::Lagged(_) | RecvError::Closed) => {
                    self.live = self.source.hub.follow(EventScope::Run(self.run)).await?;
                    self.look().await?;
                }
            }
        }
    }

    async fn look(&mut self) -> Result<(), StoreError> {
        let (snapshot, newest) = self.source.store.run_snapshot(self.run).await?;
        self.through = newest;
        match snapshot.end.map(|end| end.what) {
            Some(Happening::Ended(ending)) => self.end(ending),
            _ if snapshot.text.is_empty() => {}
            _ => self.say_all(snapshot.step, &snapshot.text),
        }
        Ok(())
    }

    fn take(&mut self, what: &Happening) {
        match what {
            Happening::Text { step, text } => {
                if *step != self.step {
                    self.begin(*step);
                }
                self.told.push_str(text);
                self.ready.push(RunNews::Text(text.clone()));
            }
            Happening::Restarted => self.begin(0),
            Happening::Ended(ending) => self.end(ending.clone()),
            Happening::Started
            | Happening::ToolCall { .. }
            | Happening::ToolProgress { .. }
            | Happening::ToolResult { .. }
            | Happening::Usage { .. } => {}
        }
    }

    /// Another text begins.
    fn begin(&mut self, step: u32) {
        self.step = step;
        if !self.told.is_empty() {
            self.told.clear();
            self.ready.push(RunNews::Gap);
        }
    }

    /// Tells the part of a whole text that was not told yet.
    fn say_all(&mut self, step: u32, text: &str) {
        let rest = match text.strip_prefix(self.told.as_str()) {
            Some(rest) => rest.to_owned(),
            None => {
                self.begin(step);
                text.to_owned()
            }
        };
        self.step = step;
        text.clone_into(&mut self.told);
        if !rest.is_empty() {
            self.ready.push(RunNews::Text(rest));
        }
    }

    fn end(&mut self, ending: Ending) {
        if !ending.text.is_empty() {
            let (step, text) = (self.step, ending.text.clone());
            self.say_all(step, &text);
        }
        self.ready.push(RunNews::Ended(ending));
    }
}
