//! The status as OpenMetrics text.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode as encode_text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::admin::view::{ChannelView, ListenerView, StatusView};

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
struct ByListener {
    listener: String,
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

type ChannelGauge = Family<ByChannel, Gauge>;

/// Encodes a status. Ages that do not apply are left out.
pub(super) fn encode(view: &StatusView) -> Result<String, std::fmt::Error> {
    let mut registry = Registry::with_prefix("vocative");
    add_channels(&mut registry, view);
    add_usage(&mut registry, view);
    add_requests(&mut registry, view);
    add_listeners(&mut registry, view);
    add_work(&mut registry, view);
    add_models(&mut registry, view);
    add_jobs(&mut registry, view);
    add_tools(&mut registry, view);
    add_hooks(&mut registry, view);
    add_knowledge(&mut registry, view);
    add_embeddings(&mut registry, view);
    add_files(&mut registry, view);
    add_summaries(&mut registry, view);
    add_memory(&mut registry, view);
    add_token_ratios(&mut registry, view);
    add_retention(&mut registry, view);
    add_intake(&mut registry, view);
    let mut text = String::new();
    encode_text(&mut text, &registry)?;
    Ok(text)
}

fn add_channels(registry: &mut Registry, view: &StatusView) {
    let mut add = |name: &str, help: &str| {
        let family = ChannelGauge::default();
        registry.register(name, help, family.clone());
        family
    };
    let connected = add(
        "channel_connected",
        "1 while the channel hears its platform",
    );
    let heard = add(
        "channel_last_heard_timestamp_ms",
        "When anything was last heard",
    );
    let captured = add(
        "channel_last_captured_timestamp_ms",
        "When a message was last captured",
    );
    let lag = add(
        "channel_ack_lag_ms",
        "From received to acknowledged, for the last event",
    );
    let malformed = add(
        "channel_malformed",
        "Frames or updates that could not be read",
    );
    let restarts = add("channel_restarts", "Starts after a failure");
    let tokens = add(
        "channel_tokens_today",
        "Tokens used since the start of the UTC day",
    );
    let unread = add(
        "channel_unread_since_timestamp_ms",
        "Messages since then may be missing and are being read back",
    );
    let gaps = add(
        "channel_history_gaps",
        "Chats in which messages are missing",
    );
    let deaf = add(
        "channel_deaf",
        "Connections that were there and heard nothing",
    );
    let others = add(
        "channel_other_connections",
        "Connections of the same app that are not ours",
    );
    for channel in &view.channels {
        let label = ByChannel {
            channel: channel.name.clone(),
        };
        connected
            .get_or_create(&label)
            .set(i64::from(channel.state == "connected"));
        if let Some(at_ms) = channel.last_heard_ms {
            heard.get_or_create(&label).set(at_ms);
        }
        if let Some(at_ms) = channel.last_captured_ms {
            captured.get_or_create(&label).set(at_ms);
        }
        lag.get_or_create(&label).set(signed(channel.lag_ms));
        malformed
            .get_or_create(&label)
            .set(signed(channel.malformed));
        restarts.get_or_create(&label).set(signed(channel.restarts));
        tokens
            .get_or_create(&label)
            .set(signed(channel.tokens_today));
        if let Some(at_ms) = channel.unread_from_ms {
            unread.get_or_create(&label).set(at_ms);
        }
        deaf.get_or_create(&label).set(signed(channel.deaf));
        others
            .get_or_create(&label)
            .set(signed(channel.other_connections));
        gaps.get_or_create(&label).set(signed(channel.history_gaps));
    }
}

/// What platforms that call asked in vain or too early.
/// What prompts and answers of the day took, by what the providers' caches did with it.
fn add_usage(registry: &mut Registry, view: &StatusView) {
    type Count = fn(&ChannelView) -> u64;
    let counts: [(&str, &str, Count); 5] = [
        (
            "channel_prompt_tokens_today",
            "Tokens of prompts since the start of the UTC day",
            |channel| channel.prompt_tokens_today,
        ),
        (
            "channel_cache_read_tokens_today",
            "Tokens of prompts that a provider's cache gave, since the start of the UTC day",
            |channel| channel.cache_read_tokens_today,
        ),
        (
            "channel_cache_write_tokens_today",
            "Tokens of prompts that a provider's cache took, since the start of the UTC day",
            |channel| channel.cache_write_tokens_today,
        ),
        (
            "channel_completion_tokens_today",
            "Tokens of answers and summaries since the start of the UTC day",
            |channel| channel.completion_tokens_today,
        ),
        (
            "channel_cost_micros_today",
            "What answers and summaries cost since the start of the UTC day, in millionths of limits.currency",
            |channel| channel.cost_micros_today,
        ),
    ];
    for (name, help, count) in counts {
        let family = ChannelGauge::default();
        registry.register(name, help, family.clone());
        for channel in &view.channels {
            let label = ByChannel {
                channel: channel.name.clone(),
            };
            family.get_or_create(&label).set(signed(count(channel)));
        }
    }
}

fn add_requests(registry: &mut Registry, view: &StatusView) {
    let (refused, late) = (ChannelGauge::default(), ChannelGauge::default());
    registry.register(
        "channel_requests_refused",
        "Webhook requests that did not come from the platform, or not whole",
        refused.clone(),
    );
    registry.register(
        "channel_requests_late",
        "Webhook requests that were not committed in the time the platform waits",
        late.clone(),
    );
    for channel in &view.channels {
        let label = ByChannel {
            channel: channel.name.clone(),
        };
        refused.get_or_create(&label).set(signed(channel.refused));
        late.get_or_create(&label).set(signed(channel.late));
    }
}

/// Who is connected to the listeners, and who was not let in.
fn add_listeners(registry: &mut Registry, view: &StatusView) {
    let mut add = |name: &str, help: &str, of: fn(&ListenerView) -> u64| {
        let family: Family<ByListener, Gauge> = Family::default();
        registry.register(name, help, family.clone());
        for listener in &view.listeners {
            let label = ByListener {
                listener: listener.name.clone(),
            };
            family.get_or_create(&label).set(signed(of(listener)));
        }
    };
    add(
        "listener_connections",
        "Connections that are open",
        |listener| listener.connections,
    );
    add(
        "listener_connections_max",
        "Connections that may be open",
        |listener| listener.connections_max,
    );
    add(
        "listener_streams",
        "Event streams that somebody reads",
        |listener| listener.streams,
    );
    add(
        "listener_refused",
        "Requests since the start that were answered with a refusal (4xx)",
        |listener| listener.refused,
    );
    add(
        "listener_sent_away",
        "Connections since the start that asked for nothing while others waited",
        |listener| listener.sent_away,
    );
}

/// Models that are not asked for now.
fn add_models(registry: &mut Registry, view: &StatusView) {
    let mut add = |name: &str, help: &str| {
        let family: Family<ByRest, Gauge> = Family::default();
        registry.register(name, help, family.clone());
        family
    };
    let since = add(
        "model_rest_since_timestamp_ms",
        "Since when the model is not asked: its account is refused (held), or it is over its limit or down (resting)",
    );
    let queued = add("model_rest_runs", "Runs that wait for the model");
    for model in &view.models {
        let label = ByRest {
            model: model.model.clone(),
            state: model.state.clone(),
        };
        since.get_or_create(&label).set(model.since_ms);
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
        (&runs, "dead", view.runs.dead),
        (&posts, "pending", view.posts.pending),
        (&posts, "unknown", view.posts.unknown),
        (&posts, "held", view.posts.held),
        (&posts, "dead", view.posts.dead),
    ];
    for (family, state, count) in counts {
        family.get_or_create(&ByState { state }).set(signed(count));
    }
    let mut add = |name: &str, help: &str, value: Option<i64>| {
        if let Some(value) = value {
            let gauge: Gauge = Gauge::default();
            gauge.set(value);
            registry.register(name, help, gauge);
        }
    };
    add(
        "oldest_waiting_run_ms",
        "Age of the oldest waiting run",
        view.runs.oldest_waiting_ms,
    );
    add(
        "oldest_waiting_post_ms",
        "Age of the oldest waiting post",
        view.posts.oldest_waiting_ms,
    );
    add(
        "turns",
        "Turns in the store",
        Some(signed(view.store.turns)),
    );
    add(
        "store_bytes",
        "Bytes of the database",
        Some(signed(view.store.bytes)),
    );
    add(
        "raw_stubs",
        "Events that did not translate",
        Some(signed(view.store.raw_stubs)),
    );
    add(
        "expired_last_timestamp_ms",
        "When retention last let something go",
        view.store.expired_last_ms,
    );
    add(
        "erasures_open",
        "Erasures that are not finished",
        Some(signed(view.store.erasures_open)),
    );
    add(
        "needs_person",
        "Findings that need a person",
        i64::try_from(view.needs_person.len()).ok(),
    );
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
    let read = add(
        "knowledge_read_timestamp_ms",
        "When a collection was last read through",
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
            set(&read, at_ms);
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
    let counters = [
        ("files_fetched", "Attached files fetched", files.fetched),
        (
            "files_refused",
            "Attached files that are only named: not wanted, too large, refused or gone",
            files.refused,
        ),
        (
            "files_failed",
            "Attached files given up after many attempts",
            files.failed,
        ),
        (
            "files_evicted_bytes",
            "Bytes of attached files that made room for newer ones",
            files.evicted_bytes,
        ),
        ("voice_notes_heard", "Voice notes written down", files.heard),
        (
            "voice_notes_unheard",
            "Voice notes that never will be written down",
            files.unheard,
        ),
    ];
    for (name, help, count) in counters {
        let counter: Counter<u64, AtomicU64> = Counter::default();
        counter.inc_by(count);
        registry.register(name, help, counter);
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
    let failed: Counter<u64, AtomicU64> = Counter::default();
    failed.inc_by(summaries.failed);
    let help = "Attempts at a summary that failed; the one before each stands";
    registry.register("summaries_failed", help, failed);
    let again: Counter<u64, AtomicU64> = Counter::default();
    again.inc_by(summaries.asked_again);
    let help = "Summaries asked for once more, as the first answer lost more details than it kept";
    registry.register("summaries_asked_again", help, again);
}

fn add_memory(registry: &mut Registry, view: &StatusView) {
    let memory = &view.memory;
    let counters = [
        (
            "memory_learnt",
            "Entries learnt from settled conversations",
            memory.written,
        ),
        (
            "memory_refused",
            "Entries of models that were refused",
            memory.refused,
        ),
        (
            "memory_unreadable",
            "Readings of which nothing was learnt",
            memory.unreadable,
        ),
    ];
    for (name, help, count) in counters {
        let counter: Counter<u64, AtomicU64> = Counter::default();
        counter.inc_by(count);
        registry.register(name, help, counter);
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
        let counter: Counter<u64, AtomicU64> = Counter::default();
        counter.inc_by(count);
        registry.register(name, help, counter);
    }
}

fn add_intake(registry: &mut Registry, view: &StatusView) {
    let intake = &view.intake;
    let counts = [
        ("captured", "New turns", intake.captured),
        ("duplicates", "Messages that were known", intake.duplicates),
        ("runs_queued", "Runs queued", intake.runs_queued),
        (
            "not_admitted",
            "Messages outside access",
            intake.not_admitted,
        ),
        ("too_old", "Triggers too old to answer", intake.too_old),
        ("limited", "Triggers over a limit", intake.limited),
        ("untranslated", "Events kept raw", intake.untranslated),
        ("ignored", "Events without room content", intake.ignored),
        (
            "refused",
            "Envelopes that could not be stored",
            intake.refused,
        ),
    ];
    for (name, help, count) in counts {
        let counter: Counter<u64, AtomicU64> = Counter::default();
        counter.inc_by(count);
        registry.register(format!("intake_{name}"), help, counter);
    }
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::view::{ChannelView, TokenRatioView};

    #[test]
    fn the_status_becomes_openmetrics() {
        let mut view = StatusView::default();
        view.channels.push(ChannelView {
            name: "acme".into(),
            state: "connected".into(),
            last_heard_ms: Some(7),
            ..ChannelView::default()
        });
        view.listeners.push(ListenerView {
            name: "webhooks".to_owned(),
            connections: 5,
            refused: 7,
            ..ListenerView::default()
        });
        view.runs.queued = 3;
        view.token_ratios.push(TokenRatioView {
            model: "default (offline)".to_owned(),
            counter: "class_v2".to_owned(),
            ratio: 1.25,
            reports: 9,
            ignored: 2,
        });
        view.intake.captured = 12;
        view.files.bytes = 34;
        view.files.failed = 2;
        let text = encode(&view).unwrap();
        for line in [
            "vocative_channel_connected{channel=\"acme\"} 1",
            "vocative_channel_last_heard_timestamp_ms{channel=\"acme\"} 7",
            "vocative_token_ratio{model=\"default (offline)\",counter=\"class_v2\"} 1.25",
            "vocative_token_reports_ignored_total{model=\"default (offline)\",counter=\"class_v2\"} 2",
            "vocative_listener_connections{listener=\"webhooks\"} 5",
            "vocative_listener_refused{listener=\"webhooks\"} 7",
            "vocative_runs{state=\"queued\"} 3",
            "vocative_intake_captured_total 12",
            "vocative_files_bytes 34",
            "vocative_files_failed_total 2",
        ] {
            assert!(text.contains(line), "{line} is missing in\n{text}");
        }
        assert!(!text.contains("oldest_waiting_run_ms"), "{text}");
    }
}
