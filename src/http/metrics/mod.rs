//! The status as OpenMetrics text: seconds, bytes, and counters that only grow until the process ends. Labels are names
//! of the configuration and words of this program, never rooms or people.
//!
//! Here: work and the store. `channels`: platforms and listeners. `timings`: histograms.

mod channels;
mod timings;

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode as encode_text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use self::timings::seconds;
use crate::admin::view::{StatusView, StoreWorkView};
use crate::counters::CounterReading;

/// The content type of OpenMetrics text.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByChannel {
    channel: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByState {
    state: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByModel {
    model: String,
    counter: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByRest {
    model: String,
    state: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByKindAndState {
    kind: String,
    state: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByToolAndOutcome {
    tool: String,
    outcome: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByHookAndVerdict {
    hook: String,
    verdict: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByCollection {
    collection: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByVersion {
    version: String,
}

/// A gauge that is no whole number: seconds.
type SecondsGauge = Gauge<f64, AtomicU64>;

/// Encodes a status and what was counted. Ages that do not apply are left out.
pub(super) fn encode(
    view: &StatusView,
    counted: &[CounterReading],
) -> Result<String, std::fmt::Error> {
    let mut registry = Registry::with_prefix("vocative");
    add_process(&mut registry, view);
    channels::add(&mut registry, view);
    timings::add(&mut registry, view);
    add_work(&mut registry, view);
    add_store(&mut registry, view);
    add_models(&mut registry, view);
    add_jobs(&mut registry, view);
    add_tools(&mut registry, view);
    add_hooks(&mut registry, view);
    add_skills(&mut registry, view);
    add_knowledge(&mut registry, view);
    add_embeddings(&mut registry, view);
    add_files(&mut registry, view);
    add_summaries(&mut registry, view);
    add_token_ratios(&mut registry, view);
    add_retention(&mut registry, view);
    for it in counted {
        add_counter(&mut registry, it.metric, it.help, it.count);
    }
    let mut text = String::new();
    encode_text(&mut text, &registry)?;
    Ok(text)
}

/// What the store has done since the start.
fn add_store_work(registry: &mut Registry, work: &StoreWorkView) {
    let counters = [
        ("store_reads", "Reads of the store", work.reads),
        ("store_writes", "Writes to the store", work.writes),
        ("store_statements", "Statements of both", work.statements),
        (
            "store_rows_written",
            "Rows inserted, changed or deleted",
            work.rows,
        ),
        ("store_commits", "Transactions committed", work.commits),
        (
            "store_syncs",
            "Commits that waited for the disk",
            work.syncs,
        ),
    ];
    for (name, help, count) in counters {
        add_counter(registry, name, help, count);
    }
}

fn add_counter(registry: &mut Registry, name: &str, help: &str, count: u64) {
    let counter: Counter = Counter::default();
    counter.inc_by(count);
    registry.register(name, help, counter);
}

/// Models that are not asked for now.
fn add_models(registry: &mut Registry, view: &StatusView) {
    let since: Family<ByRest, SecondsGauge> = Family::default();
    registry.register(
        "model_rest_since_timestamp_seconds",
        "Since when the model is not asked: its account is refused (held), or it is over its limit or down (resting)",
        since.clone(),
    );
    let queued: Family<ByRest, Gauge> = Family::default();
    registry.register(
        "model_rest_runs",
        "Runs that wait for the model",
        queued.clone(),
    );
    for model in &view.models {
        let label = ByRest {
            model: model.model.clone(),
            state: model.state.clone(),
        };
        since.get_or_create(&label).set(instant(model.since_ms));
        queued.get_or_create(&label).set(signed(model.queued));
    }
}

fn add_work(registry: &mut Registry, view: &StatusView) {
    let runs: Family<ByState, Gauge> = Family::default();
    registry.register(
        "runs",
        "Runs that are not finished, and those given up",
        runs.clone(),
    );
    let posts: Family<ByState, Gauge> = Family::default();
    registry.register(
        "posts",
        "Posts that are not on their platform",
        posts.clone(),
    );
    let counts = [
        (&runs, "queued", view.runs.queued),
        (&runs, "leased", view.runs.leased),
        (&runs, "waiting", view.runs.waiting),
        (&runs, "held", view.runs.held),
        (&runs, "dead", view.runs.dead),
        (&posts, "pending", view.posts.pending),
        (&posts, "unknown", view.posts.unknown),
        (&posts, "held", view.posts.held),
        (&posts, "dead", view.posts.dead),
    ];
    for (family, state, count) in counts {
        family.get_or_create(&ByState { state }).set(signed(count));
    }
    let ages = [
        (
            "oldest_waiting_run_seconds",
            "Age of the oldest waiting run",
            view.runs.oldest_waiting_ms,
        ),
        (
            "oldest_waiting_post_seconds",
            "Age of the oldest waiting post",
            view.posts.oldest_waiting_ms,
        ),
    ];
    for (name, help, age_ms) in ages {
        add_seconds(registry, name, help, age_ms);
    }
    let needs: Gauge = Gauge::default();
    needs.set(signed(view.needs_person.len() as u64));
    registry.register("needs_person", "Findings that need a person", needs);
}

fn add_store(registry: &mut Registry, view: &StatusView) {
    let store = &view.store;
    let gauges = [
        ("turns", "Turns in the store", Some(store.turns)),
        ("store_bytes", "Bytes of the database", Some(store.bytes)),
        (
            "disk_free_bytes",
            "Bytes that the database's disk has left",
            store.disk_free_bytes,
        ),
        (
            "raw_stubs",
            "Events that did not translate",
            Some(store.raw_stubs),
        ),
        (
            "quarantined",
            "Rows of queues that can't be decoded and are set aside",
            Some(store.quarantined),
        ),
        (
            "erasures_open",
            "Erasures that are not finished",
            Some(store.erasures_open),
        ),
    ];
    for (name, help, count) in gauges {
        let Some(count) = count else { continue };
        let gauge: Gauge = Gauge::default();
        gauge.set(signed(count));
        registry.register(name, help, gauge);
    }
    if let Some(work) = &store.work {
        add_store_work(registry, work);
    }
    add_seconds(
        registry,
        "backup_last_timestamp_seconds",
        "When a backup was last made and verified",
        store.backup_last_ms,
    );
    add_seconds(
        registry,
        "expired_last_timestamp_seconds",
        "When retention last let something go",
        store.expired_last_ms,
    );
}

/// Which program this is, and since when it runs.
fn add_process(registry: &mut Registry, view: &StatusView) {
    let build: Family<ByVersion, Gauge> = Family::default();
    let label = ByVersion {
        version: view.version.clone(),
    };
    build.get_or_create(&label).set(1);
    registry.register("build_info", "1, with the program's version", build);
    add_seconds(
        registry,
        "start_timestamp_seconds",
        "When the daemon started",
        view.started_at_ms,
    );
}

/// A point in time or an age, where there is one.
fn add_seconds(registry: &mut Registry, name: &str, help: &str, ms: Option<i64>) {
    if let Some(ms) = ms {
        let gauge = SecondsGauge::default();
        gauge.set(instant(ms));
        registry.register(name, help, gauge);
    }
}

fn add_jobs(registry: &mut Registry, view: &StatusView) {
    let jobs: Family<ByKindAndState, Gauge> = Family::default();
    registry.register("jobs", "Background work that is not done", jobs.clone());
    for count in &view.jobs {
        let label = ByKindAndState {
            kind: count.kind.clone(),
            state: count.state.clone(),
        };
        jobs.get_or_create(&label).set(signed(count.count));
    }
}

fn add_tools(registry: &mut Registry, view: &StatusView) {
    let open: Gauge = Gauge::default();
    open.set(signed(view.runs.approvals_open));
    registry.register("approvals_open", "Tool calls that wait for a person", open);
    let questions: Gauge = Gauge::default();
    questions.set(signed(view.runs.questions_open));
    let help = "Questions of agents that wait for a person";
    registry.register("questions_open", help, questions);
    let calls: Family<ByToolAndOutcome, Gauge> = Family::default();
    registry.register(
        "tool_calls_today",
        "Tool calls that are over, since the start of the UTC day",
        calls.clone(),
    );
    for counts in &view.tools {
        let outcomes = [
            ("done", counts.done),
            ("failed", counts.failed),
            ("unknown", counts.unknown),
            ("denied", counts.denied),
        ];
        for (outcome, count) in outcomes {
            let label = ByToolAndOutcome {
                tool: counts.tool.clone(),
                outcome: outcome.to_owned(),
            };
            calls.get_or_create(&label).set(signed(count));
        }
    }
}

fn add_hooks(registry: &mut Registry, view: &StatusView) {
    let verdicts: Family<ByHookAndVerdict, Counter> = Family::default();
    registry.register("hook_verdicts", "What hooks said", verdicts.clone());
    for count in &view.hooks {
        let label = ByHookAndVerdict {
            hook: count.hook.clone(),
            verdict: count.verdict.clone(),
        };
        verdicts.get_or_create(&label).inc_by(count.times);
    }
}

/// Skills that agents name, by state; nothing while their folders do not answer.
fn add_skills(registry: &mut Registry, view: &StatusView) {
    let Some(counts) = &view.skill_counts else {
        return;
    };
    let skills: Family<ByState, Gauge> = Family::default();
    registry.register("skills", "Skills that agents name", skills.clone());
    for (state, count) in [
        ("approved", counts.approved),
        ("new", counts.new),
        ("changed", counts.changed),
        ("broken", counts.broken),
        ("missing", counts.missing),
    ] {
        skills.get_or_create(&ByState { state }).set(signed(count));
    }
}

fn add_knowledge(registry: &mut Registry, view: &StatusView) {
    type CollectionGauge = Family<ByCollection, Gauge>;
    let mut add = |name: &str, help: &str| {
        let family = CollectionGauge::default();
        registry.register(name, help, family.clone());
        family
    };
    let documents = add("knowledge_documents", "Documents that are kept");
    let refused = add(
        "knowledge_refused",
        "Files of collections of which nothing is kept",
    );
    let chunks = add("knowledge_chunks", "Pieces of documents");
    let problems = add(
        "knowledge_problems",
        "What the last reading of a collection could not do",
    );
    let read: Family<ByCollection, SecondsGauge> = Family::default();
    registry.register(
        "knowledge_read_timestamp_seconds",
        "When a collection was last read through",
        read.clone(),
    );
    for collection in &view.knowledge {
        let label = ByCollection {
            collection: collection.name.clone(),
        };
        let set = |gauge: &CollectionGauge, value: i64| gauge.get_or_create(&label).set(value);
        set(&documents, signed(collection.documents));
        set(&refused, signed(collection.refused));
        set(&chunks, signed(collection.chunks));
        set(&problems, signed(collection.problems.len() as u64));
        if let Some(at_ms) = collection.read_at_ms {
            read.get_or_create(&label).set(instant(at_ms));
        }
    }
}

fn add_embeddings(registry: &mut Registry, view: &StatusView) {
    let Some(embeddings) = &view.embeddings else {
        return;
    };
    let gauges = [
        ("embedded_turns", "Turns with a vector", embeddings.embedded),
        (
            "embedding_turns_left",
            "The most turns that may still need a vector",
            embeddings.remaining_max,
        ),
        (
            "embedding_tokens_today",
            "Tokens spent on vectors today (UTC)",
            embeddings.tokens_today,
        ),
    ];
    for (name, help, value) in gauges {
        let gauge: Gauge = Gauge::default();
        gauge.set(signed(value));
        registry.register(name, help, gauge);
    }
}

fn add_files(registry: &mut Registry, view: &StatusView) {
    let files = &view.files;
    let gauges = [
        (
            "files_stored",
            "Attached files that are stored, the same bytes once",
            files.stored,
        ),
        ("files_bytes", "Their bytes", files.bytes),
        (
            "files_waiting",
            "Attached files to be fetched",
            files.waiting,
        ),
        (
            "voice_notes_waiting",
            "Voice notes to be written down",
            files.to_be_heard,
        ),
    ];
    for (name, help, count) in gauges {
        let gauge: Gauge = Gauge::default();
        gauge.set(signed(count));
        registry.register(name, help, gauge);
    }
}

fn add_summaries(registry: &mut Registry, view: &StatusView) {
    let stored: Family<ByState, Gauge> = Family::default();
    registry.register("summaries", "Summaries of older turns", stored.clone());
    let summaries = &view.summaries;
    for (state, count) in [
        ("current", summaries.current),
        ("stale", summaries.stale),
        ("void", summaries.void),
    ] {
        stored.get_or_create(&ByState { state }).set(signed(count));
    }
}

fn add_token_ratios(registry: &mut Registry, view: &StatusView) {
    let ratios: Family<ByModel, Gauge<f64, AtomicU64>> = Family::default();
    let help = "Reported over counted tokens";
    registry.register("token_ratio", help, ratios.clone());
    let ignored: Family<ByModel, Counter<u64, AtomicU64>> = Family::default();
    let help = "Reports of prompt tokens that were too far off to be believed";
    registry.register("token_reports_ignored", help, ignored.clone());
    for learnt in &view.token_ratios {
        let label = ByModel {
            model: learnt.model.clone(),
            counter: learnt.counter.clone(),
        };
        ratios.get_or_create(&label).set(learnt.ratio);
        ignored.get_or_create(&label).inc_by(learnt.ignored);
    }
}

fn add_retention(registry: &mut Registry, view: &StatusView) {
    let store = &view.store;
    for (name, help, count) in [
        (
            "expired_turns",
            "Turns that retention let go",
            store.expired_turns,
        ),
        (
            "expired_raw",
            "Raw events that retention let go",
            store.expired_raw,
        ),
        (
            "expired_runs",
            "Runs whose details retention let go",
            store.expired_runs,
        ),
    ] {
        add_counter(registry, name, help, count);
    }
}

/// A time in milliseconds as seconds.
fn instant(ms: i64) -> f64 {
    seconds(u64::try_from(ms).unwrap_or(0))
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
