//! What a running daemon counts, for `status` and metrics: since its start, and never less.

use std::sync::atomic::{AtomicU64, Ordering};

/// Declares what is counted. Each line is a variant, its metric (`vocative_<metric>_total`) and what that says to
/// people; metrics need nothing else.
macro_rules! counted {
    ($($name:ident = $metric:literal, $help:literal;)+) => {
        /// Something that is counted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum CountedEvent {
            $(#[doc = $help] $name,)+
        }

        impl CountedEvent {
            /// All, in the order of their numbers.
            const ALL: &[Self] = &[$(Self::$name,)+];

            /// Its metric, and what that says to people.
            const fn metric(self) -> (&'static str, &'static str) {
                match self {
                    $(Self::$name => ($metric, $help),)+
                }
            }
        }
    };
}

counted! {
    Captured = "intake_captured", "New turns";
    Duplicates = "intake_duplicates", "Messages that were known";
    RunsQueued = "intake_runs_queued", "Runs queued";
    NotAdmitted = "intake_not_admitted", "Messages outside access";
    TooOld = "intake_too_old", "Triggers too old to answer";
    Limited = "intake_limited", "Triggers over a limit";
    Untranslated = "intake_untranslated", "Events kept raw";
    Ignored = "intake_ignored", "Events without room content";
    EnvelopesRefused = "intake_refused", "Envelopes that could not be stored; the platform sends them again";
    FilesFetched = "files_fetched", "Attached files fetched";
    FilesRefused = "files_refused", "Attached files that are only named: not wanted, too large, refused or gone";
    FilesFailed = "files_failed", "Attached files given up after many attempts";
    FileBytesEvicted = "files_evicted_bytes", "Bytes of attached files that made room for newer ones";
    VoiceNotesHeard = "voice_notes_heard", "Voice notes written down";
    VoiceNotesUnheard = "voice_notes_unheard", "Voice notes that never will be written down";
    SummariesMade = "summaries_made", "Summaries stored";
    SummariesFailed = "summaries_failed", "Attempts at a summary that failed; the one before each stands";
    SummariesOutdated = "summaries_outdated", "Summaries thrown away because a turn changed meanwhile";
    SummariesAskedAgain = "summaries_asked_again", "Summaries asked for once more, as the first answer lost more details than it kept";
    MemoryLearnt = "memory_learnt", "Entries learnt from settled conversations";
    MemoryRefused = "memory_refused", "Entries of models that were refused";
    MemoryUnreadable = "memory_unreadable", "Readings of which nothing was learnt";
}

/// A counter as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterReading {
    /// Its metric, without prefix and suffix.
    pub metric: &'static str,
    /// What it says to people.
    pub help: &'static str,
    /// How often since the start.
    pub count: u64,
}

/// The counters of a process.
#[derive(Debug, Default)]
pub struct Counters([AtomicU64; CountedEvent::ALL.len()]);

impl Counters {
    /// Counts one more.
    pub fn count(&self, counter: CountedEvent) {
        self.add(counter, 1);
    }

    /// Counts as many more.
    pub fn add(&self, counter: CountedEvent, count: u64) {
        self.0[counter as usize].fetch_add(count, Ordering::Relaxed);
    }

    /// How often until now.
    #[must_use]
    pub fn of(&self, counter: CountedEvent) -> u64 {
        self.0[counter as usize].load(Ordering::Relaxed)
    }

    /// All of them.
    #[must_use]
    pub fn readings(&self) -> Vec<CounterReading> {
        let reading = |counter: &CountedEvent| {
            let (metric, help) = counter.metric();
            CounterReading {
                metric,
                help,
                count: self.of(*counter),
            }
        };
        CountedEvent::ALL.iter().map(reading).collect()
    }
}
