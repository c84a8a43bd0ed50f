//! What platforms are connected, what they cost today, and who calls the listeners.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::{ByChannel, SecondsGauge, instant, signed};
use crate::admin::view::{ChannelView, ListenerView, StatusView};

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByListener {
    listener: String,
}

/// A metric's name, its help text and its value; a value of `None` is left out.
type MetricSpec<V, T> = (&'static str, &'static str, fn(&V) -> Option<T>);

pub(super) fn add(registry: &mut Registry, view: &StatusView) {
    add_gauges(registry, view);
    add_instants(registry, view);
    add_counters(registry, view);
    add_listeners(registry, view);
}

fn label(channel: &ChannelView) -> ByChannel {
    ByChannel {
        channel: channel.name.clone(),
    }
}

fn add_gauges(registry: &mut Registry, view: &StatusView) {
    let gauges: [MetricSpec<ChannelView, u64>; 11] = [
        (
            "channel_connected",
            "1 while the channel hears its platform",
            // A channel that is only in the store was taken out of the configuration, so it has no value.
            |it| (it.state != "stopped").then(|| u64::from(it.state == "connected")),
        ),
        (
            "channel_tokens_today",
            "Tokens used since the start of the UTC day",
            |it| Some(it.tokens_today),
        ),
        (
            "channel_tokens_today_max",
            "Tokens that may be used in a UTC day",
            |it| it.tokens_today_max,
        ),
        (
            "channel_prompt_tokens_today",
            "Tokens of prompts since the start of the UTC day",
            |it| Some(it.prompt_tokens_today),
        ),
        (
            "channel_cache_read_tokens_today",
            "Tokens of prompts that a provider's cache gave, since the start of the UTC day",
            |it| Some(it.cache_read_tokens_today),
        ),
        (
            "channel_cache_write_tokens_today",
            "Tokens of prompts that a provider's cache took, since the start of the UTC day",
            |it| Some(it.cache_write_tokens_today),
        ),
        (
            "channel_completion_tokens_today",
            "Tokens of answers and summaries since the start of the UTC day",
            |it| Some(it.completion_tokens_today),
        ),
        (
            "channel_cost_micros_today",
            "What answers and summaries cost since the start of the UTC day, in millionths of limits.currency",
            |it| Some(it.cost_micros_today),
        ),
        (
            "channel_cost_micros_today_max",
            "What they may cost in a UTC day, in millionths of limits.currency",
            |it| it.cost_micros_today_max,
        ),
        (
            "channel_history_gaps",
            "Chats in which messages are missing",
            |it| Some(it.history_gaps),
        ),
        (
            "channel_other_connections",
            "Connections of the same app that are not ours",
            |it| Some(it.other_connections),
        ),
    ];
    for (name, help, of) in gauges {
        let family: Family<ByChannel, Gauge> = Family::default();
        registry.register(name, help, family.clone());
        for channel in &view.channels {
            if let Some(value) = of(channel) {
                family.get_or_create(&label(channel)).set(signed(value));
            }
        }
    }
}

fn add_instants(registry: &mut Registry, view: &StatusView) {
    let instants: [MetricSpec<ChannelView, i64>; 3] = [
        (
            "channel_last_heard_timestamp_seconds",
            "When anything was last heard",
            |it| it.last_heard_ms,
        ),
        (
            "channel_last_captured_timestamp_seconds",
            "When a message was last captured",
            |it| it.last_captured_ms,
        ),
        (
            "channel_unread_since_timestamp_seconds",
            "Messages since then may be missing and are being read back",
            |it| it.unread_from_ms,
        ),
    ];
    for (name, help, of) in instants {
        let family: Family<ByChannel, SecondsGauge> = Family::default();
        registry.register(name, help, family.clone());
        for channel in &view.channels {
            if let Some(at_ms) = of(channel) {
                family.get_or_create(&label(channel)).set(instant(at_ms));
            }
        }
    }
}

fn add_counters(registry: &mut Registry, view: &StatusView) {
    let counters: [MetricSpec<ChannelView, u64>; 5] = [
        (
            "channel_malformed",
            "Frames or updates that could not be read",
            |it| Some(it.malformed),
        ),
        ("channel_restarts", "Starts after a failure", |it| {
            Some(it.restarts)
        }),
        (
            "channel_deaf",
            "Connections that were there and heard nothing",
            |it| Some(it.deaf),
        ),
        (
            "channel_requests_refused",
            "Webhook requests that did not come from the platform, or not whole",
            |it| Some(it.refused),
        ),
        (
            "channel_requests_late",
            "Webhook requests that were not committed in the time the platform waits",
            |it| Some(it.late),
        ),
    ];
    for (name, help, of) in counters {
        let family: Family<ByChannel, Counter<u64, AtomicU64>> = Family::default();
        registry.register(name, help, family.clone());
        for channel in &view.channels {
            let counter = family.get_or_create(&label(channel));
            counter.inc_by(of(channel).unwrap_or(0));
        }
    }
}

/// Who is connected to the listeners, and who was not let in.
fn add_listeners(registry: &mut Registry, view: &StatusView) {
    let label = |listener: &ListenerView| ByListener {
        listener: listener.name.clone(),
    };
    let gauges: [MetricSpec<ListenerView, u64>; 3] = [
        ("listener_connections", "Connections that are open", |it| {
            Some(it.connections)
        }),
        (
            "listener_connections_max",
            "Connections that may be open",
            |it| Some(it.connections_max),
        ),
        (
            "listener_streams",
            "Event streams that somebody reads",
            |it| Some(it.streams),
        ),
    ];
    for (name, help, of) in gauges {
        let family: Family<ByListener, Gauge> = Family::default();
        registry.register(name, help, family.clone());
        for listener in &view.listeners {
            let value = of(listener).unwrap_or(0);
            family.get_or_create(&label(listener)).set(signed(value));
        }
    }
    let counters: [MetricSpec<ListenerView, u64>; 2] = [
        (
            "listener_refused",
            "Requests that were answered with a refusal (4xx)",
            |it| Some(it.refused),
        ),
        (
            "listener_sent_away",
            "Connections that asked for nothing while others waited",
            |it| Some(it.sent_away),
        ),
    ];
    for (name, help, of) in counters {
        let family: Family<ByListener, Counter<u64, AtomicU64>> = Family::default();
        registry.register(name, help, family.clone());
        for listener in &view.listeners {
            let counter = family.get_or_create(&label(listener));
            counter.inc_by(of(listener).unwrap_or(0));
        }
    }
}
