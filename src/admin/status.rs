//! Puts the status together from the store, the channels' health and the counters.

use vocative_contract::channel::ConnectionState;

use crate::admin::health::HealthReading;
use crate::admin::view::{
    ChannelView, EmbeddingsView, FileCountsView, HookCountView, IntakeCounts, MemoryCountsView,
    PostCounts, RunCounts, StatusView, StoreView, SummaryCountsView, TimingView,
};
use crate::config::Config;
use crate::counters::{CountedEvent, Counters};
use crate::files::given_up::GivenUpFiles;
use crate::hooks::HookCount;
use vocative_core::counted::counted;
use vocative_store::contract::{AccountStatus, FileCounts, StoreStatus};

/// A run that waits longer than this for its turn needs a look, in milliseconds.
const WAITING_TOO_LONG_MS: i64 = 600_000;

/// What a running daemon has counted since its start.
#[derive(Clone, Copy)]
pub struct StatusCounters<'a> {
    /// The counters.
    pub counters: &'a Counters,
    /// Files that were given up.
    pub given_up: &'a GivenUpFiles,
}

/// Makes the status. `readings` is empty without a daemon.
#[must_use]
pub fn status_view(
    store: &StoreStatus,
    readings: &[HealthReading],
    counters: Option<StatusCounters<'_>>,
    started_at_ms: Option<i64>,
) -> StatusView {
    let of = |counter| counters.map_or(0, |it| it.counters.of(counter));
    let mut view = StatusView {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at_ms,
        landlock: None,
        channels: channels(store, readings, started_at_ms.is_some()),
        listeners: Vec::new(),
        runs: RunCounts {
            queued: store.runs_queued,
            leased: store.runs_leased,
            dead: store.runs_dead,
            held: store.runs_held,
            waiting: store.runs_waiting,
            approvals_open: store.approvals_open,
            questions_open: store.questions_open,
            oldest_waiting_ms: store.oldest_waiting_run_ms,
        },
        posts: PostCounts {
            pending: store.posts_pending,
            unknown: store.posts_unknown,
            held: store.posts_held,
            undecided: store.posts_undecided,
            resent_undecided: store.posts_resent_undecided,
            dead: store.posts_dead,
            oldest_waiting_ms: store.oldest_waiting_post_ms,
        },
        store: StoreView {
            turns: store.turns,
            conversations: store.conversations,
            bytes: store.database_bytes,
            disk_free_bytes: store.disk_free_bytes,
            backup_last_ms: store.backup_last_ms,
            raw_stubs: store.raw_stubs,
            quarantined: store.quarantined,
            expired_turns: store.expired.text,
            expired_raw: store.expired.raw,
            expired_runs: store.expired.runs,
            expired_last_ms: store.expired_last_ms,
            erasures_open: store.erasures_open,
            work: started_at_ms.map(|_| store.work.into()),
        },
        jobs: store.jobs.iter().map(Into::into).collect(),
        tools: store.tools.iter().map(Into::into).collect(),
        hooks: hooks(),
        mcp: Vec::new(),
        skills: Vec::new(),
        skill_counts: None,
        knowledge: store.knowledge.iter().map(Into::into).collect(),
        embeddings: store.embeddings.as_ref().map(|it| EmbeddingsView {
            model: it.model.clone(),
            embedded: it.embedded,
            remaining_max: it.remaining_max,
            tokens_today: it.tokens_today,
        }),
        files: file_counts(store.files, counters),
        summaries: SummaryCountsView {
            current: store.summaries.current,
            stale: store.summaries.stale,
            void: store.summaries.void,
            made: of(CountedEvent::SummariesMade),
            failed: of(CountedEvent::SummariesFailed),
            asked_again: of(CountedEvent::SummariesAskedAgain),
        },
        memory: memory_counts(counters),
        models: Vec::new(),
        timings: Vec::new(),
        token_ratios: store.token_ratios.iter().map(Into::into).collect(),
        intake: intake_counts(counters),
        needs_person: Vec::new(),
    };
    view.needs_person = needs_person(&view, store);
    view
}

/// How long models and answers took since the start of this process.
pub(super) fn timings() -> Vec<TimingView> {
    let all = [
        ("model", crate::llm::ASKED.read()),
        ("answer", crate::delivery::worker::ANSWERED.read()),
    ];
    let views = all.into_iter().flat_map(|(what, timings)| {
        timings
            .into_iter()
            .map(move |(name, outcome, took)| TimingView {
                what: what.to_owned(),
                name,
                outcome: outcome.to_owned(),
                took: (&took).into(),
            })
    });
    views.collect()
}

/// Adds the daily limits of the channels from the configuration in force; 0 is no limit.
pub(super) fn add_limits(view: &mut StatusView, config: &Config) {
    let is_set = |limit: u64| Some(limit).filter(|limit| *limit > 0);
    for channel in &mut view.channels {
        if let Some(settings) = config.channels.get(&channel.name) {
            channel.tokens_today_max = is_set(settings.limits.tokens_per_day);
            channel.cost_micros_today_max = is_set(settings.limits.cost_micros_per_day);
        }
    }
}

/// What hooks said since the start of this process.
fn hooks() -> Vec<HookCountView> {
    let counts = crate::hooks::counts().into_iter();
    let view = |count: HookCount| HookCountView {
        hook: count.hook,
        verdict: count.verdict.to_owned(),
        times: count.times,
    };
    counts.map(view).collect()
}

/// What a running daemon says of a channel that it has no settings of.
const REMOVED: &str =
    "it is not configured; what is stored of it stays, whatever its age, until it is erased";

fn channels(store: &StoreStatus, readings: &[HealthReading], has_daemon: bool) -> Vec<ChannelView> {
    let mut views: Vec<ChannelView> = readings.iter().map(channel_view).collect();
    for account in &store.accounts {
        let known = views.iter().position(|view| view.name == account.channel);
        let at = known.unwrap_or_else(|| {
            let name = account.channel.clone();
            views.push(ChannelView {
                name,
                state: "stopped".to_owned(),
                reason: has_daemon.then(|| REMOVED.to_owned()),
                ..ChannelView::default()
            });
            views.len() - 1
        });
        add_account(&mut views[at], account);
    }
    views
}

fn channel_view(reading: &HealthReading) -> ChannelView {
    let (state, reason, connections) = match &reading.state {
        ConnectionState::Connecting => ("connecting", None, 0),
        ConnectionState::Connected { connections } => ("connected", None, *connections),
        ConnectionState::Retrying { reason, .. } => ("retrying", Some(reason.clone()), 0),
        ConnectionState::Alarm { reason } => ("alarm", Some(reason.clone()), 0),
    };
    ChannelView {
        name: reading.channel.clone(),
        state: state.to_owned(),
        reason,
        connections,
        last_heard_ms: reading.last_heard_ms,
        lag_ms: reading.last_lag_ms,
        lags: Some((&reading.lags).into()),
        malformed: reading.malformed,
        refused: reading.refused,
        late: reading.late,
        restarts: reading.restarts,
        deaf: reading.deaf,
        other_connections: reading.other_connections,
        warnings: reading.warnings.clone(),
        ..ChannelView::default()
    }
}

fn add_account(view: &mut ChannelView, account: &AccountStatus) {
    view.platform = Some(account.platform.name().to_owned());
    view.account = Some(account.name.clone());
    view.last_captured_ms = account.last_captured_ms;
    view.parked_chats = account.parked_chats;
    view.tokens_today = account.tokens_today;
    view.prompt_tokens_today = account.usage_today.prompt_tokens;
    view.cache_read_tokens_today = account.usage_today.cache_read_tokens;
    view.cache_write_tokens_today = account.usage_today.cache_write_tokens;
    view.completion_tokens_today = account.usage_today.completion_tokens;
    view.cost_micros_today = account.cost_micros_today;
    view.unread_from_ms = account.unread_from_ms;
    view.backfills = account.backfills;
    view.history_gaps = account.history_gaps;
    view.history_gap.clone_from(&account.history_gap);
    if let Some(held) = &account.held {
        view.reason = Some(held.clone());
    }
}

fn needs_person(view: &StatusView, store: &StoreStatus) -> Vec<String> {
    let mut needs = Vec::new();
    for channel in view
        .channels
        .iter()
        .filter(|channel| channel.state == "alarm")
    {
        let reason = channel.reason.as_deref().unwrap_or("no reason given");
        needs.push(format!("channel {}: {reason}", channel.name));
    }
    for account in store
        .accounts
        .iter()
        .filter(|account| account.held.is_some())
    {
        let reason = account.held.as_deref().unwrap_or_default();
        needs.push(format!(
            "channel {}: posts wait because {reason}",
            account.channel
        ));
    }
    if store.posts_held > 0 {
        needs.push(format!(
            "{} may or may not have arrived: see `vocative held list`",
            counted(store.posts_held, "post", "posts")
        ));
    }
    if store.runs_held > 0 {
        needs.push(format!(
            "{} open in the backup that was restored: see `vocative held list`",
            counted(store.runs_held, "question was", "questions were")
        ));
    }
    if store.quarantined > 0 {
        needs.push(format!(
            "{} can't be decoded: see `vocative quarantine list`",
            counted(store.quarantined, "stored row", "stored rows")
        ));
    }
    for collection in &store.knowledge {
        for problem in &collection.problems {
            needs.push(format!("documents of {}: {problem}", collection.name));
        }
    }
    if !store.copies_to_remove.is_empty() {
        let copies = store.copies_to_remove.iter();
        let copies: Vec<String> = copies.map(|path| path.display().to_string()).collect();
        needs.push(format!(
            "people had what they said forgotten, and older copies of the database still hold it; \
             remove what you don't need: {}",
            copies.join(", ")
        ));
    }
    if store.posts_dead > 0 {
        needs.push(format!(
            "{} refused for good: see `vocative dead list`",
            counted(store.posts_dead, "post was", "posts were")
        ));
    }
    if store.runs_dead_last_day > 0 {
        needs.push(format!(
            "{} given up in the last 24 hours: `vocative dead list` says why",
            counted(store.runs_dead_last_day, "question was", "questions were")
        ));
    }
    if store
        .oldest_waiting_run_ms
        .is_some_and(|age| age > WAITING_TOO_LONG_MS)
    {
        needs.push(
            "a question has been waiting for more than 10 minutes: `vocative queue` says for what"
                .to_owned(),
        );
    }
    needs
}

fn file_counts(stored: FileCounts, counters: Option<StatusCounters<'_>>) -> FileCountsView {
    let of = |counter| counters.map_or(0, |it| it.counters.of(counter));
    FileCountsView {
        stored: stored.stored,
        bytes: stored.bytes,
        waiting: stored.waiting,
        to_be_heard: stored.to_be_heard,
        fetched: of(CountedEvent::FilesFetched),
        refused: of(CountedEvent::FilesRefused),
        failed: of(CountedEvent::FilesFailed),
        evicted_bytes: of(CountedEvent::FileBytesEvicted),
        heard: of(CountedEvent::VoiceNotesHeard),
        unheard: of(CountedEvent::VoiceNotesUnheard),
        last_reason: counters.and_then(|it| it.given_up.last_reason()),
    }
}

fn memory_counts(counters: Option<StatusCounters<'_>>) -> MemoryCountsView {
    let of = |counter| counters.map_or(0, |it| it.counters.of(counter));
    MemoryCountsView {
        written: of(CountedEvent::MemoryLearnt),
        refused: of(CountedEvent::MemoryRefused),
        unreadable: of(CountedEvent::MemoryUnreadable),
    }
}

fn intake_counts(counters: Option<StatusCounters<'_>>) -> IntakeCounts {
    let of = |counter| counters.map_or(0, |it| it.counters.of(counter));
    IntakeCounts {
        captured: of(CountedEvent::Captured),
        duplicates: of(CountedEvent::Duplicates),
        runs_queued: of(CountedEvent::RunsQueued),
        not_admitted: of(CountedEvent::NotAdmitted),
        too_old: of(CountedEvent::TooOld),
        limited: of(CountedEvent::Limited),
        untranslated: of(CountedEvent::Untranslated),
        ignored: of(CountedEvent::Ignored),
        refused: of(CountedEvent::EnvelopesRefused),
    }
}
