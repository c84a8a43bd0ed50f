//! Erasures that the console began: one at a time, and the newest with what became of them. They live as long as the
//! daemon; an erasure that it did not finish is finished by the next start.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::Value;

/// The most erasures that are remembered.
const REMEMBERED: usize = 20;

/// Erasures that were begun. Cloning shares them.
#[derive(Clone, Default)]
pub(super) struct Erasures(Arc<Mutex<BegunErasures>>);

#[derive(Default)]
struct BegunErasures {
    next: u64,
    newest_first: VecDeque<ErasingView>,
}

#[derive(Serialize)]
struct ErasingView {
    number: u64,
    what: String,
    began_at_ms: i64,
    state: &'static str,
    error: Option<String>,
    done: Option<Value>,
}

impl Erasures {
    /// Begins an erasure and returns its number; none while another one is under way.
    pub(super) fn begin(&self, what: String, now_ms: i64) -> Option<u64> {
        let mut begun = self.begun();
        if begun.newest_first.iter().any(|it| it.state == "running") {
            return None;
        }
        begun.next += 1;
        let number = begun.next;
        begun.newest_first.push_front(ErasingView {
            number,
            what,
            began_at_ms: now_ms,
            state: "running",
            error: None,
            done: None,
        });
        begun.newest_first.truncate(REMEMBERED);
        Some(number)
    }

    /// Records what became of an erasure.
    pub(super) fn end(&self, number: u64, outcome: Result<Value, String>) {
        let mut begun = self.begun();
        let found = begun.newest_first.iter_mut().find(|it| it.number == number);
        let Some(erasing) = found else { return };
        // The name of who was erased must not stay here.
        erasing.what = "(erased)".to_owned();
        match outcome {
            Ok(done) => {
                erasing.state = "done";
                erasing.done = Some(done);
            }
            Err(cause) => {
                erasing.state = "failed";
                erasing.error = Some(cause);
            }
        }
    }

    /// All of them, the newest first.
    pub(super) fn shown(&self) -> Value {
        super::json(&self.begun().newest_first)
    }

    fn begun(&self) -> MutexGuard<'_, BegunErasures> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn one_erasure_is_under_way_at_a_time_and_its_name_goes() {
        let erasures = Erasures::default();
        let first = erasures.begin("Ann".to_owned(), 1).unwrap();
        assert_eq!(erasures.begin("Bob".to_owned(), 2), None);
        erasures.end(first, Ok(json!({ "turns": 3 })));
        let second = erasures.begin("Bob".to_owned(), 3).unwrap();
        erasures.end(second, Err("no".to_owned()));
        let shown = erasures.shown();
        assert_eq!(shown[0]["state"], "failed");
        assert_eq!(shown[1]["done"]["turns"], 3);
        assert!(!shown.to_string().contains("Ann"));
        for n in 0..30 {
            let number = erasures.begin(String::new(), n).unwrap();
            erasures.end(number, Ok(Value::Null));
        }
        assert_eq!(entries(&erasures), REMEMBERED);
    }

    fn entries(erasures: &Erasures) -> usize {
        erasures.shown().as_array().unwrap().len()
    }
}
