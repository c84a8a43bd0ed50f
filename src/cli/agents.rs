//! `vocative agents`: the agents, their models, and whether these are asked or held.

use std::process::ExitCode;

use super::args::{AgentsArgs, AgentsCommand, TableFormat};
use super::asking::ask;
use super::context::CliContext;
use super::error::{CliError, Exit};
use super::table::{ago, span, table};
use crate::admin::operations::AdminOperation;
use crate::admin::view::{AgentView, ReleasedModelView};
use crate::daemon::start::wall_clock;

/// Lists agents, or has the model of one asked again.
pub(super) async fn run(args: &AgentsArgs, context: &CliContext) -> Result<ExitCode, CliError> {
    let format = match &args.command {
        Some(AgentsCommand::Release { name }) => {
            let operation = AdminOperation::ReleaseAgent { name: name.clone() };
            let released: ReleasedModelView = ask(context, operation).await?;
            context.print(&release_report(&released))?;
            return Ok(Exit::Ok.into());
        }
        Some(AgentsCommand::List(list)) => list.format,
        None => args.format,
    };
    let agents: Vec<AgentView> = ask(context, AdminOperation::Agents).await?;
    let text = match format {
        TableFormat::Json => super::json_text(&agents)?,
        TableFormat::Table => report(&agents, (wall_clock())()),
    };
    context.print(&text)?;
    Ok(Exit::Ok.into())
}

fn release_report(released: &ReleasedModelView) -> String {
    let model = &released.model;
    if released.was_resting {
        format!("The model {model} is asked again, by one question at first.\n")
    } else {
        format!("The model {model} was not held; nothing was changed.\n")
    }
}

fn report(agents: &[AgentView], now_ms: i64) -> String {
    let rows: Vec<Vec<String>> = agents
        .iter()
        .map(|agent| {
            let (state, since, next, reason) = match &agent.rest {
                Some(rest) => (
                    rest.state.clone(),
                    ago(Some(rest.since_ms), now_ms),
                    format!("in {}", span((rest.until_ms - now_ms).max(0))),
                    rest.reason.clone(),
                ),
                None => (
                    "asked".to_owned(),
                    String::new(),
                    String::new(),
                    String::new(),
                ),
            };
            vec![
                agent.name.clone(),
                agent.model.clone(),
                state,
                since,
                next,
                agent.queued.to_string(),
                agent.thumbs.to_string(),
                reason,
            ]
        })
        .collect();
    let header = [
        "agent", "model", "state", "since", "next try", "waiting", "thumbs", "why",
    ];
    let mut out = table(&header, &rows);
    if agents.iter().any(|agent| agent.rest.is_some()) {
        out.push_str("\n`vocative agents release NAME` has a model asked again at once.\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::view::{ModelRestView, ThumbsView};

    #[test]
    fn agents_are_shown_with_what_keeps_their_models() {
        let agent = |name: &str, rest| AgentView {
            name: name.to_owned(),
            model: "default".to_owned(),
            queued: 3,
            thumbs: ThumbsView { up: 4, down: 1 },
            rest,
        };
        let rest = ModelRestView {
            model: "default".to_owned(),
            state: "held".to_owned(),
            reason: "HTTP 401; check the model's `api_key`".to_owned(),
            since_ms: 0,
            until_ms: 150_000,
            agents: Vec::new(),
            queued: 3,
        };
        let shown = report(&[agent("iris", Some(rest)), agent("kael", None)], 120_000);
        insta::assert_snapshot!(shown, @r"
        agent  model    state  since      next try  waiting  thumbs        why
        iris   default  held   2 min ago  in 30 s   3        4 up, 1 down  HTTP 401; check the model's `api_key`
        kael   default  asked                       3        4 up, 1 down

        `vocative agents release NAME` has a model asked again at once.
        ");
    }
}
