//! Histograms, in seconds.

use std::fmt::{Debug, Error};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use super::ByChannel;
use crate::admin::view::{HistogramView, StatusView};

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByModelAndOutcome {
    model: String,
    outcome: String,
}

/// One histogram for each set of labels.
#[derive(Debug)]
struct Took<L> {
    name: &'static str,
    help: &'static str,
    by: Vec<(L, HistogramView)>,
}

impl<L: EncodeLabelSet + Debug + Send + Sync + 'static> Collector for Took<L> {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), Error> {
        let mut metric =
            encoder.encode_descriptor(self.name, self.help, None, MetricType::Histogram)?;
        for (labels, took) in &self.by {
            let bounds = took
                .bounds_ms
                .iter()
                .copied()
                .map(seconds)
                .chain([f64::INFINITY]);
            let buckets: Vec<(f64, u64)> = bounds.zip(took.counts.iter().copied()).collect();
            let count = took.counts.iter().sum();
            metric
                .encode_family(labels)?
                .encode_histogram::<NoLabelSet>(seconds(took.sum_ms), count, &buckets, None)?;
        }
        Ok(())
    }
}

/// How long acknowledging, models and answers took since the start.
pub(super) fn add(registry: &mut Registry, view: &StatusView) {
    let acknowledged = view.channels.iter().filter_map(|channel| {
        let label = ByChannel {
            channel: channel.name.clone(),
        };
        Some((label, channel.lags.clone()?))
    });
    registry.register_collector(Box::new(Took {
        name: "channel_ack_seconds",
        help: "From an event's arrival to its acknowledgement",
        by: acknowledged.collect(),
    }));
    let of = |what: &'static str| {
        view.timings
            .iter()
            .filter(move |timing| timing.what == what)
    };
    let answered = of("answer").map(|timing| {
        let label = ByChannel {
            channel: timing.name.clone(),
        };
        (label, timing.took.clone())
    });
    registry.register_collector(Box::new(Took {
        name: "answer_seconds",
        help: "From a question, by its platform's time, to the first part of its answer in the room",
        by: answered.collect(),
    }));
    let asked = of("model").map(|timing| {
        let label = ByModelAndOutcome {
            model: timing.name.clone(),
            outcome: timing.outcome.clone(),
        };
        (label, timing.took.clone())
    });
    registry.register_collector(Box::new(Took {
        name: "model_request_seconds",
        help: "What each attempt at a model took",
        by: asked.collect(),
    }));
}

/// Milliseconds as seconds.
#[allow(clippy::cast_precision_loss, reason = "exact below 285,000 years")]
pub(super) fn seconds(ms: u64) -> f64 {
    ms as f64 / 1_000.0
}
