//! Named places at which a process can be made to end, to prove that nothing is lost when it ends there.
//!
//! Without the feature `crash-points` none of this exists: nothing is checked and no variable is read. With it,
//! `VOCATIVE_CRASH_AT=name:n` makes the process kill itself (SIGKILL) when it comes to that point for the n-th time,
//! and `VOCATIVE_SABOTAGE=name` breaks one promise on purpose, to show that `vocative-lab crash` notices. Never in a
//! build that serves people.

/// Every point, in the order in which a message passes them; then those of operators' actions.
pub const POINTS: [&str; 88] = [
    "received",
    "capture.before-commit",
    "capture.after-commit",
    "edit.before-commit",
    "edit.after-commit",
    "delete.before-commit",
    "delete.after-commit",
    "merge.before-commit",
    "merge.after-commit",
    "ack.before",
    "ack.after",
    "catch-up.page-read",
    "catch-up.before-commit",
    "catch-up.after-commit",
    "job.claimed",
    "job.before-finish",
    "job.after-finish",
    "file.fetched",
    "file.before-commit",
    "file.after-commit",
    "run.claimed",
    "model.called",
    "model.answered",
    "placeholder.before-commit",
    "placeholder.after-commit",
    "live.before",
    "live.after",
    "step.recorded",
    "calls.recorded",
    "approval.before-commit",
    "approval.after-commit",
    "park.before-commit",
    "park.after-commit",
    "press.before-commit",
    "press.after-commit",
    "change.before-commit",
    "change.before-asked-anew",
    "firing.before-commit",
    "firing.after-commit",
    "input.before-ask",
    "input.before-go-on",
    "input.after-go-on",
    "tool.called",
    "tool.answered",
    "tools.before-commit",
    "tools.after-commit",
    "decision.before-commit",
    "member.before-commit",
    "member.after-commit",
    "task.before-commit",
    "task.after-commit",
    "reply.before-commit",
    "reply.after-commit",
    "post.claimed",
    "upload.bytes-sent",
    "upload.prepared",
    "send.started",
    "send.bytes-sent",
    "send.response-read",
    "final.before",
    "final.after",
    "echo.before-commit",
    "echo.after-commit",
    "delivery.before-commit",
    "delivery.after-commit",
    "look.before",
    "look.after",
    "memory.extracted",
    "memory.before-commit",
    "memory.after-commit",
    "summary.before-commit",
    "summary.after-commit",
    "cancel.before-commit",
    "cancel.after-commit",
    "import.before-commit",
    "import.after-commit",
    "erase.ledger-written",
    "erase.begun",
    "erase.batch-committed",
    "erase.copies-removed",
    "erase.pages-cleaned",
    "erase.finished",
    "erase.scrubbed",
    "erase.open-batch",
    "shutdown.begun",
    "shutdown.intake-stopped",
    "shutdown.runs-ended",
    "shutdown.posts-drained",
];

/// A promise that can be broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// An event is acknowledged before it is on disk.
    AckBeforeCommit,
    /// A message that is known already is stored as a new one.
    NoDedupe,
    /// A post of unknown outcome is looked for, but the search never finds it.
    NoReadback,
    /// A run's lease is not compared before its answer is written.
    NoLeaseToken,
    /// A post of unknown outcome is sent again without a look or a limit.
    ResendAlways,
    /// The note that bytes are about to leave is written only after they left.
    CommitAfterSend,
    /// The placeholder of an answer stays after the answer was posted.
    LeavePlaceholder,
    /// An answer does not wait for an edit of the question that may follow.
    NoSettling,
    /// The answer to an edited question is posted beside the earlier one.
    NoReplacement,
    /// Prompts include messages from before a fresh start.
    NoFreshStart,
    /// Numbers without a message count as proof that a post did not arrive.
    EmptyIsProof,
    /// The machine's clock is believed whatever the platform's time is, and posts are looked for from the machine's
    /// time of their first attempt on.
    OwnClock,
    /// A run that this process is working on is claimed again when the machine's clock says that its lease has ended.
    ReclaimOwn,
    /// A tool call of unknown outcome is made again, whatever its rule.
    RepeatCalls,
}

impl Sabotage {
    /// All sabotages.
    pub const ALL: [Self; 14] = [
        Self::AckBeforeCommit,
        Self::NoDedupe,
        Self::NoReadback,
        Self::NoLeaseToken,
        Self::ResendAlways,
        Self::CommitAfterSend,
        Self::LeavePlaceholder,
        Self::NoSettling,
        Self::NoReplacement,
        Self::NoFreshStart,
        Self::EmptyIsProof,
        Self::OwnClock,
        Self::ReclaimOwn,
        Self::RepeatCalls,
    ];

    /// Its name, as on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::AckBeforeCommit => "ack-before-commit",
            Self::NoDedupe => "no-dedupe",
            Self::NoReadback => "no-readback",
            Self::NoLeaseToken => "no-lease-token",
            Self::ResendAlways => "resend-always",
            Self::CommitAfterSend => "commit-after-send",
            Self::LeavePlaceholder => "leave-placeholder",
            Self::NoSettling => "no-settling",
            Self::NoReplacement => "no-replacement",
            Self::NoFreshStart => "no-fresh-start",
            Self::EmptyIsProof => "empty-is-proof",
            Self::OwnClock => "own-clock",
            Self::ReclaimOwn => "reclaim-own",
            Self::RepeatCalls => "repeat-calls",
        }
    }
}

/// The variable that names where to end: `name:n`.
pub const CRASH_AT: &str = "VOCATIVE_CRASH_AT";
/// The variable that names the promise to break.
pub const SABOTAGE: &str = "VOCATIVE_SABOTAGE";
/// The variable that shortens the lease of a run, in milliseconds.
pub const LEASE_MS: &str = "VOCATIVE_CRASH_LEASE_MS";

/// Whether this build has crash points.
#[must_use]
pub const fn is_built_in() -> bool {
    cfg!(feature = "crash-points")
}

#[cfg(not(feature = "crash-points"))]
mod points {
    use super::Sabotage;

    /// Nothing: this build has no crash points.
    #[inline(always)]
    pub fn point(_name: &'static str) {}

    /// Nothing: this build has no crash points.
    #[inline(always)]
    pub fn bytes_sent(_method: &'static str) {}

    /// `false`: this build keeps every promise.
    #[must_use]
    #[inline(always)]
    pub const fn is_sabotaged(_promise: Sabotage) -> bool {
        false
    }

    /// Nothing: this build keeps every promise.
    #[inline(always)]
    pub fn sabotage_thread(_promise: Option<Sabotage>) {}

    /// The lease, unchanged.
    #[must_use]
    #[inline(always)]
    pub const fn lease_ms(lease_ms: i64) -> i64 {
        lease_ms
    }
}

#[cfg(feature = "crash-points")]
mod points {
    use std::cell::Cell;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::{CRASH_AT, LEASE_MS, POINTS, SABOTAGE, Sabotage};

    thread_local! {
        static BROKEN_HERE: Cell<Option<Sabotage>> = const { Cell::new(None) };
    }

    /// Breaks one promise in this thread only.
    pub fn sabotage_thread(promise: Option<Sabotage>) {
        BROKEN_HERE.set(promise);
    }

    /// The point at which to end, and how often it is passed before.
    struct CrashTarget {
        name: String,
        left: AtomicU64,
    }

    fn target() -> Option<&'static CrashTarget> {
        static TARGET: OnceLock<Option<CrashTarget>> = OnceLock::new();
        let read = || {
            let text = std::env::var(CRASH_AT).ok()?;
            let (name, count) = text.split_once(':').unwrap_or((&text, "1"));
            let left = AtomicU64::new(count.parse().unwrap_or(1));
            let name = name.to_owned();
            Some(CrashTarget { name, left })
        };
        TARGET.get_or_init(read).as_ref()
    }

    /// Ends the process here if it was asked to.
    pub fn point(name: &'static str) {
        debug_assert!(POINTS.contains(&name), "{name} is in the list of points");
        let Some(target) = target().filter(|target| target.name == name) else {
            return;
        };
        if target.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            die();
        }
    }

    /// The point "send.bytes-sent", for methods that post.
    pub fn bytes_sent(method: &'static str) {
        if matches!(
            method,
            "chat.postMessage"
                | "chat.startStream"
                | "sendMessage"
                | "files.completeUploadExternal"
                | "sendDocument"
        ) {
            point("send.bytes-sent");
        }
    }

    /// As a power switch would: no destructor runs, nothing is flushed.
    fn die() -> ! {
        let _ =
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        loop {
            std::thread::park();
        }
    }

    /// Whether that promise is to be broken.
    #[must_use]
    pub fn is_sabotaged(promise: Sabotage) -> bool {
        if BROKEN_HERE.get() == Some(promise) {
            return true;
        }
        static BROKEN: OnceLock<Option<String>> = OnceLock::new();
        let broken = BROKEN.get_or_init(|| std::env::var(SABOTAGE).ok());
        broken.as_deref() == Some(promise.name())
    }

    /// The lease, or a shorter one, so that a test can see it expire.
    #[must_use]
    pub fn lease_ms(lease_ms: i64) -> i64 {
        static SHORT: OnceLock<Option<i64>> = OnceLock::new();
        let short = SHORT.get_or_init(|| std::env::var(LEASE_MS).ok()?.parse().ok());
        short.unwrap_or(lease_ms)
    }
}

pub use points::{bytes_sent, is_sabotaged, lease_ms, point, sabotage_thread};
