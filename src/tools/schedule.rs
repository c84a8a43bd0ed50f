//! `schedule`: plans a reminder or a task for later, in the name of the person who asks. That person agrees to it
//! first, unless the settings say otherwise.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::search::schema;
use super::{BuiltIn, CallContext, Tool, ToolError, ToolOutput};
use vocative_core::ids::AgentName;
use vocative_core::scheduling::{Missed, NewSchedule, read_timing};
use vocative_core::tool_call::CallRule;
use vocative_core::wall_clock::Zone;
use vocative_store::contract::{PlanOfCall, Planned};
use vocative_store::{Replying, Store};

/// The tool's name.
pub const SCHEDULE: &str = "schedule";

/// Plans for a run.
#[derive(Clone)]
pub struct Planner {
    /// Where schedules are stored.
    pub store: Store<Replying>,
    /// The time zone of times that name none.
    pub zone: Zone,
    /// The agent that does what is planned.
    pub agent: AgentName,
    /// The time, in milliseconds since the Unix epoch.
    pub clock: Arc<dyn Fn() -> i64 + Send + Sync>,
}

/// The tool that plans something for later.
pub struct Schedule(pub(super) Option<Planner>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ScheduleArguments {
    /// When: "in 20m", "17:30", "tomorrow 9:00", "2026-12-01 9:00", "daily 9:00", "weekdays 9:00", "monday 9:00",
    /// "cron 0 9 1 * *"; a place behind it names the clocks: "weekdays 9:00 Europe/Berlin".
    when: String,
    /// What is said then, or what you are to do then. It has to make sense without this conversation.
    task: String,
    /// Whether you are to do it. False: it is said as it stands, as a reminder.
    #[serde(default)]
    is_for_you: bool,
}

impl Tool for Schedule {
    fn name(&self) -> &str {
        SCHEDULE
    }

    fn description(&self) -> &str {
        "Plans a reminder, or a task of yours, for a time or for again and again (every 15 minutes at most), in this \
         conversation. Use it only when somebody asks you to. What comes back is its number and its next times: say them. \
         The person can end it with \"/remind cancel NUMBER\"."
    }

    fn schema(&self) -> Value {
        schema::<ScheduleArguments>()
    }

    fn rule(&self) -> CallRule {
        BuiltIn::Schedule.rule()
    }

    fn is_outside(&self) -> bool {
        false
    }

    fn call(
        &self,
        arguments: Value,
        context: CallContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let planner = self.0.clone();
        Box::pin(async move {
            match planner {
                Some(planner) => plan(&planner, arguments, context).await,
                None => Err(ToolError::Failed("nothing can be planned here".to_owned())),
            }
        })
    }
}

async fn plan(
    planner: &Planner,
    arguments: Value,
    context: CallContext,
) -> Result<ToolOutput, ToolError> {
    let arguments: ScheduleArguments = serde_json::from_value(arguments)
        .map_err(|cause| ToolError::Arguments(cause.to_string()))?;
    let now_ms = (planner.clock)();
    let timing = read_timing(&arguments.when, now_ms, planner.zone)
        .map_err(|problem| ToolError::Arguments(format!("`when`: {problem}")))?;
    let plan = PlanOfCall {
        call: context.call,
        what: NewSchedule {
            timing,
            jitter_ms: 0,
            missed: Missed::Once,
            agent: arguments.is_for_you.then(|| planner.agent.clone()),
            task: arguments.task,
        },
        now_ms,
    };
    // After any error of the store, a repeated call finds what it made before.
    let planned = planner.store.plan_by_call(plan).await;
    match planned.map_err(|cause| ToolError::Unknown(cause.to_string()))? {
        Planned::Made(content) => Ok(ToolOutput {
            content,
            sources: Vec::new(),
            files: Vec::new(),
        }),
        Planned::Refused(why) => Err(ToolError::Failed(why)),
    }
}
