//! Schedules in the configuration: their settings as people write them, and the checks.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::resolve::Review;
use super::settings::{Agent, ConfiguredSchedule};
use vocative_core::ids::AgentName;
use vocative_core::scheduling::{Missed, NewSchedule, ScheduleCounts, Timing, may_add};

/// Something that starts again and again.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ScheduleShape {
    /// Where, as CHANNEL/CHAT, the chat by the platform's id: "acme/C012AB3CD".
    pub conversation: String,
    /// When, as an expression of cron: minute, hour, day of the month, month, day of the week.
    pub cron: String,
    /// Whose clocks: a place like "Europe/Berlin", "UTC", or a distance from it; not set: UTC.
    pub zone: Option<String>,
    /// The agent that does it; not set: the task is posted as it is, without a model.
    pub agent: Option<String>,
    /// What is to be done or said.
    pub task: String,
    /// What becomes of what was missed while the daemon was down; not set: the last time is made up for.
    pub missed: Option<MissedShape>,
    /// It is put off by up to this number of seconds, always by the same, so that not all is due at once.
    #[serde(default)]
    #[schemars(range(min = 0, max = 60))]
    pub jitter_s: u32,
}

/// What becomes of what was missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum MissedShape {
    /// The last time is made up for, if it is not too long ago.
    Once,
    /// Nothing is.
    Skip,
}

/// Checks all schedules. The result is to be used only if no problem was found.
pub(super) fn resolve_schedules(
    shapes: BTreeMap<String, ScheduleShape>,
    agents: &BTreeMap<AgentName, Agent>,
    channels: &[&str],
    review: &mut Review<'_>,
) -> Vec<ConfiguredSchedule> {
    let each = shapes.into_iter();
    each.filter_map(|(name, shape)| schedule(name, shape, agents, channels, review))
        .collect()
}

fn schedule(
    name: String,
    shape: ScheduleShape,
    agents: &BTreeMap<AgentName, Agent>,
    channels: &[&str],
    review: &mut Review<'_>,
) -> Option<ConfiguredSchedule> {
    let table = format!("schedules.{name}");
    let channel = shape.conversation.split_once('/');
    if !channel.is_some_and(|(channel, chat)| channels.contains(&channel) && !chat.is_empty()) {
        review.problem(
            &format!("{table}.conversation"),
            "is not a channel and a chat of it: write \"acme/C012AB3CD\"",
        );
    }
    let agent = shape.agent.map(AgentName::new).transpose();
    let is_known = |agent: &AgentName| agents.contains_key(agent);
    if !agent
        .as_ref()
        .is_ok_and(|agent| agent.as_ref().is_none_or(is_known))
    {
        review.problem(&format!("{table}.agent"), "there is no agent of that name");
    }
    let zone = shape.zone.as_deref().unwrap_or("UTC");
    let timing = Timing::cron(&shape.cron, zone);
    let timing =
        timing.map_err(|problem| review.problem(&format!("{table}.cron"), problem.to_string()));
    let what = NewSchedule {
        timing: timing.ok()?,
        jitter_ms: i64::from(shape.jitter_s) * 1_000,
        missed: match shape.missed {
            Some(MissedShape::Skip) => Missed::Skip,
            Some(MissedShape::Once) | None => Missed::Once,
        },
        agent: agent.ok()?,
        task: shape.task,
    };
    if let Err(refused) = may_add(&what, ScheduleCounts::default()) {
        review.problem(&format!("{table}.task"), refused.to_string());
    }
    Some(ConfiguredSchedule {
        name,
        conversation: shape.conversation,
        what,
    })
}
