//! The verdicts of hooks since the daemon started: for `status` and the metrics. A reload keeps the counts.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use vocative_core::hooking::HookDecision;

static COUNTS: Mutex<BTreeMap<(String, &'static str), u64>> = Mutex::new(BTreeMap::new());

/// How often a hook gave a verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookCount {
    /// The hook.
    pub hook: String,
    /// The verdict; `told` = the hook was told about an event.
    pub verdict: &'static str,
    /// How often.
    pub times: u64,
}

pub(super) fn note(hook: &str, verdict: &HookDecision) {
    let mut counts = COUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    *counts.entry((hook.to_owned(), verdict.name())).or_default() += 1;
}

/// Counts that a hook was told about an event.
pub(super) fn note_told(hook: &str) {
    let mut counts = COUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    *counts.entry((hook.to_owned(), "told")).or_default() += 1;
}

/// The verdicts that the hooks of this process gave so far, by name.
#[must_use]
pub fn counts() -> Vec<HookCount> {
    let counts = COUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    let each = counts.iter().map(|((hook, verdict), times)| HookCount {
        hook: hook.clone(),
        verdict,
        times: *times,
    });
    each.collect()
}
