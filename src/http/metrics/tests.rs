use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::*;
use crate::admin::view::{
    ChannelView, EmbeddingsView, HistogramView, ListenerView, TimingView, TokenRatioView,
};
use crate::admin::view::{
    CollectionView, HookCountView, JobCountView, ModelRestView, SkillCountsView, ToolCountsView,
};
use crate::counters::{CountedEvent, Counters};

#[test]
fn the_status_becomes_openmetrics() {
    let mut view = StatusView::default();
    view.channels.push(ChannelView {
        name: "acme".into(),
        state: "connected".into(),
        last_heard_ms: Some(7_250),
        restarts: 4,
        tokens_today_max: Some(9),
        lags: Some(HistogramView {
            bounds_ms: vec![5, 3_000],
            counts: vec![2, 1, 1],
            sum_ms: 4_500,
        }),
        ..ChannelView::default()
    });
    view.listeners.push(ListenerView {
        name: "webhooks".to_owned(),
        connections: 5,
        refused: 7,
        ..ListenerView::default()
    });
    view.timings.push(TimingView {
        what: "model".to_owned(),
        name: "default".to_owned(),
        outcome: "failed".to_owned(),
        took: HistogramView {
            bounds_ms: vec![250],
            counts: vec![1, 0],
            sum_ms: 5,
        },
    });
    view.runs.queued = 3;
    view.token_ratios.push(TokenRatioView {
        model: "default (offline)".to_owned(),
        counter: "class_v2".to_owned(),
        ratio: 1.25,
        reports: 9,
        ignored: 2,
    });
    let counters = Counters::default();
    counters.add(CountedEvent::Captured, 12);
    counters.add(CountedEvent::FilesFailed, 2);
    view.files.bytes = 34;
    let text = encode(&view, &counters.readings()).unwrap();
    for line in [
        "vocative_channel_connected{channel=\"acme\"} 1",
        "vocative_channel_last_heard_timestamp_seconds{channel=\"acme\"} 7.25",
        "vocative_channel_restarts_total{channel=\"acme\"} 4",
        "vocative_channel_tokens_today_max{channel=\"acme\"} 9",
        "# TYPE vocative_channel_ack_seconds histogram",
        "vocative_channel_ack_seconds_bucket{le=\"0.005\",channel=\"acme\"} 2",
        "vocative_channel_ack_seconds_bucket{le=\"3.0\",channel=\"acme\"} 3",
        "vocative_channel_ack_seconds_bucket{le=\"+Inf\",channel=\"acme\"} 4",
        "vocative_channel_ack_seconds_sum{channel=\"acme\"} 4.5",
        "vocative_channel_ack_seconds_count{channel=\"acme\"} 4",
        "vocative_model_request_seconds_count{model=\"default\",outcome=\"failed\"} 1",
        "vocative_token_ratio{model=\"default (offline)\",counter=\"class_v2\"} 1.25",
        "vocative_token_reports_ignored_total{model=\"default (offline)\",counter=\"class_v2\"} 2",
        "vocative_listener_connections{listener=\"webhooks\"} 5",
        "vocative_listener_refused_total{listener=\"webhooks\"} 7",
        "vocative_runs{state=\"queued\"} 3",
        "vocative_intake_captured_total 12",
        "vocative_files_bytes 34",
        "vocative_files_failed_total 2",
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
    assert!(!text.contains("oldest_waiting_run_seconds"), "{text}");
}

#[test]
fn skills_are_counted_by_how_they_stand_and_left_out_while_nobody_knows() {
    let mut view = StatusView::default();
    let skills = |view: &StatusView| {
        let text = encode(view, &[]).unwrap();
        let lines = text
            .lines()
            .filter(|line| line.starts_with("vocative_skills"));
        let mut lines: Vec<String> = lines.map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(skills(&view), [""; 0]);
    view.skill_counts = Some(SkillCountsView {
        approved: 3,
        changed: 1,
        ..SkillCountsView::default()
    });
    assert_eq!(
        skills(&view),
        [
            "vocative_skills{state=\"approved\"} 3",
            "vocative_skills{state=\"broken\"} 0",
            "vocative_skills{state=\"changed\"} 1",
            "vocative_skills{state=\"missing\"} 0",
            "vocative_skills{state=\"new\"} 0",
        ]
    );
}

/// Names in a text that begin with the prefix, without it.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|it: char| !(it.is_ascii_alphanumeric() || it == '_'));
    let names = words.filter_map(|word| word.strip_prefix("vocative_"));
    names.map(str::to_owned).collect()
}

fn took() -> HistogramView {
    HistogramView {
        bounds_ms: vec![5],
        counts: vec![1, 0],
        sum_ms: 1,
    }
}

/// A status in which everything that may be left out is there.
fn full() -> StatusView {
    let mut view = StatusView {
        started_at_ms: Some(1),
        embeddings: Some(EmbeddingsView {
            model: "small".to_owned(),
            embedded: 1,
            remaining_max: 1,
            tokens_today: 1,
        }),
        ..StatusView::default()
    };
    view.runs.oldest_waiting_ms = Some(1);
    view.posts.oldest_waiting_ms = Some(1);
    view.skill_counts = Some(SkillCountsView::default());
    view.store.disk_free_bytes = Some(1);
    view.store.backup_last_ms = Some(1);
    view.store.expired_last_ms = Some(1);
    view.store.work = Some(StoreWorkView::default());
    let took = took();
    view.channels.push(ChannelView {
        state: "connected".to_owned(),
        last_heard_ms: Some(1),
        last_captured_ms: Some(1),
        unread_from_ms: Some(1),
        tokens_today_max: Some(1),
        cost_micros_today_max: Some(1),
        lags: Some(took.clone()),
        ..ChannelView::default()
    });
    view.listeners.push(ListenerView::default());
    for what in ["model", "answer"] {
        view.timings.push(TimingView {
            what: what.to_owned(),
            name: "one".to_owned(),
            outcome: "answered".to_owned(),
            took: took.clone(),
        });
    }
    view.token_ratios.push(TokenRatioView {
        model: "one".to_owned(),
        counter: "class".to_owned(),
        ratio: 1.0,
        reports: 1,
        ignored: 0,
    });
    view.models.push(ModelRestView {
        model: "one".to_owned(),
        state: "held".to_owned(),
        reason: String::new(),
        since_ms: 1,
        until_ms: 1,
        agents: Vec::new(),
        queued: 0,
    });
    view.jobs.push(JobCountView {
        kind: "summary".to_owned(),
        state: "waiting".to_owned(),
        count: 1,
    });
    view.tools.push(ToolCountsView {
        tool: "look".to_owned(),
        begun: 1,
        done: 1,
        failed: 0,
        unknown: 0,
        denied: 0,
    });
    view.hooks.push(HookCountView {
        hook: "guard".to_owned(),
        verdict: "pass".to_owned(),
        times: 1,
    });
    view.knowledge.push(CollectionView {
        name: "handbook".to_owned(),
        read_at_ms: Some(1),
        ..CollectionView::default()
    });
    view
}

/// The families and their types, as the exposition names them.
fn families(text: &str) -> BTreeMap<String, String> {
    let types = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE vocative_"));
    let pairs = types.filter_map(|line| line.split_once(' '));
    pairs
        .map(|(name, kind)| (name.to_owned(), kind.to_owned()))
        .collect()
}

/// The names under which a family's samples are asked for.
fn samples(families: &BTreeMap<String, String>) -> BTreeSet<String> {
    let of = |(name, kind): (&String, &String)| match kind.as_str() {
        "counter" => vec![format!("{name}_total")],
        "histogram" => ["bucket", "sum", "count"]
            .map(|end| format!("{name}_{end}"))
            .to_vec(),
        _ => vec![name.clone()],
    };
    families.iter().flat_map(of).collect()
}

#[test]
fn rules_and_dashboard_ask_for_metrics_that_there_are() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let there = samples(&families(
        &encode(&full(), &Counters::default().readings()).unwrap(),
    ));
    for file in [
        "packaging/monitoring/vocative.rules.yml",
        "packaging/monitoring/dashboard.json",
        "tests/monitoring/rules.test.yml",
    ] {
        let asked = named(&std::fs::read_to_string(root.join(file)).unwrap());
        assert!(asked.len() > 10, "{file}: {asked:?}");
        let missing: Vec<_> = asked.difference(&there).collect();
        assert!(missing.is_empty(), "{file} asks for {missing:?}");
    }
}

#[test]
fn every_metric_is_on_the_page_for_operators_and_none_is_that_is_not_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/OPERATIONS.md")).unwrap();
    let (_, page) = page.split_once("\n### Metrics\n").unwrap();
    let (page, _) = page.split_once("\n### ").unwrap();
    let cells = page.lines().filter(|line| line.starts_with("| "));
    let cells = cells.filter_map(|line| line.split('|').nth(2));
    let told: BTreeSet<String> = cells
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .map(str::to_owned)
        .collect();
    let families = families(&encode(&full(), &Counters::default().readings()).unwrap());
    for (name, kind) in &families {
        let name = match kind.as_str() {
            "counter" => format!("{name}_total"),
            _ => name.clone(),
        };
        assert!(told.contains(&name), "{name} is not in docs/OPERATIONS.md");
    }
    let words = [
        "version", "answered", "failed", "held", "resting", "approved", "new", "changed", "broken",
        "missing",
    ];
    for name in &told {
        let is_family = families.contains_key(name.strip_suffix("_total").unwrap_or(name));
        let is_word = words.contains(&name.as_str()) || name.contains(['.', ' ']);
        assert!(is_family || is_word, "there is no metric {name}");
    }
}

#[test]
fn times_are_in_seconds_and_what_counts_is_a_counter() {
    for (name, kind) in families(&encode(&full(), &Counters::default().readings()).unwrap()) {
        assert!(!name.ends_with("_ms"), "{name} is not in seconds");
        assert!(
            !name.ends_with("_total"),
            "{name}: the end is the encoder's"
        );
        if name.ends_with("_timestamp_seconds") {
            assert_eq!(kind, "gauge", "{name}");
        }
    }
}

#[test]
fn a_channel_that_is_no_longer_configured_is_not_missed() {
    let mut view = StatusView::default();
    view.channels.push(ChannelView {
        name: "old".to_owned(),
        state: "stopped".to_owned(),
        ..ChannelView::default()
    });
    let text = encode(&view, &[]).unwrap();
    assert!(!text.contains("vocative_channel_connected{"), "{text}");
}
