//! `vocative check`: whether the configuration will work, and what to fix.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use super::args::CheckArgs;
use super::backup::lost;
use super::context::CliContext;
use super::error::{CliError, Exit};
use super::{folders, live, programs, skills, spending};
use crate::config::{Agent, Channel, Config, Warning, channel_tables};
use crate::daemon::confinement::{self, Confinement};
use crate::daemon::start::DATABASE_NAME;
use vocative_core::counted::counted;
use vocative_core::delegating::{Below, WorkBounds, worst_below};
use vocative_core::ids::AgentName;
use vocative_core::options::RecallMode;
use vocative_core::routing::bounds::{longest_path, worst_cost};
use vocative_store::{CheckReport, StoreError};

/// Checks the configuration and its secrets; with `--live` also the platforms, with `--database` only the database.
pub(super) async fn run(args: &CheckArgs, context: &CliContext) -> Result<ExitCode, CliError> {
    if args.database {
        let (config, _) = context.load_config()?;
        return database(&config, context).await;
    }
    let (config, secrets, warnings) = context.load_with_secrets()?;
    let warnings: Vec<String> = warnings.iter().map(Warning::to_string).collect();
    let folders = folders::look(&config)?;
    let landlock = confinement::planned(&config, &context.environment);
    let programs = programs::told(&config)?;
    let skills = skills::warnings(&config, context).await;
    let warnings = [warnings, folders, skills].concat();
    context.print(&report(&config, &landlock, &programs, &warnings))?;
    let exit = if config.channels.is_empty() {
        // `vocative run` ends with the same exit code.
        Exit::Config
    } else if args.live {
        live::run(&config, &secrets, args.probe.as_deref(), context).await?
    } else {
        context.print("The platforms were not asked; `vocative check --live` does.\n")?;
        Exit::Ok
    };
    Ok(exit.into())
}

/// Checks the whole database and all stored files.
async fn database(config: &Config, context: &CliContext) -> Result<ExitCode, CliError> {
    let path = config.daemon.data_dir.join(DATABASE_NAME);
    if !path.exists() {
        return Err(CliError::Unavailable {
            what: format!("there is no database at {}", path.display()),
            advice: "point --config at the daemon's configuration".to_owned(),
            cause: None,
        });
    }
    let looked = path.clone();
    let looking = tokio::task::spawn_blocking(move || vocative_store::check_database(&looked));
    let report = looking
        .await
        .map_err(|cause| CliError::failed("the check ended badly", cause))??;
    context.print(&about_database(&path, &report))?;
    if !report.findings.is_empty() {
        return Err(StoreError::Damaged {
            database: Some(path),
            what: "see above".to_owned(),
        }
        .into());
    }
    match report.lost_files.len() {
        0 => Ok(Exit::Ok.into()),
        count => Err(lost(count)),
    }
}

fn about_database(path: &Path, report: &CheckReport) -> String {
    let mut out = format!(
        "{}: {}, {} KiB, ",
        path.display(),
        counted(report.turns, "turn", "turns"),
        report.bytes.div_ceil(1_024)
    );
    if report.findings.is_empty() {
        out.push_str("every page, index, reference and the full text are whole.\n");
        for finding in &report.lost_files {
            let _ = writeln!(out, "  {finding}");
        }
        return out;
    }
    out.push_str("damaged:\n");
    for finding in &report.findings {
        let _ = writeln!(out, "  {finding}");
    }
    out
}

fn report(
    config: &Config,
    landlock: &Confinement,
    programs: &[String],
    warnings: &[String],
) -> String {
    let mut out = String::new();
    let file = config.file.as_ref().map_or_else(
        || "none (defaults and variables only)".to_owned(),
        |file| file.display().to_string(),
    );
    let _ = writeln!(out, "configuration  {file}");
    let _ = writeln!(out, "database       {}", config.daemon.data_dir.display());
    let _ = writeln!(out, "landlock       {landlock}");
    for channel in config.channels.values() {
        let _ = writeln!(out, "channel        {}", channel_line(config, channel));
    }
    for agent in config.agents.values() {
        let _ = writeln!(out, "agent          {}", agent_line(config, agent));
    }
    for agent in config.agents.values() {
        if let Some(told) = network_line(config, agent) {
            let _ = writeln!(out, "network        {told}");
        }
    }
    let askings = askings(config);
    for agent in config.agents.values() {
        if let Some(told) = asking_line(&askings, agent) {
            let _ = writeln!(out, "asks           {told}");
        }
    }
    for agent in config.agents.values() {
        if let Some(told) = recall_line(config, agent) {
            let _ = writeln!(out, "recall         {told}");
        }
    }
    for program in programs {
        let _ = writeln!(out, "program        {program}");
    }
    if let Some(server) = &config.embeddings {
        let _ = writeln!(
            out,
            "embeddings     the text of every stored message is sent to {}",
            server.base_url
        );
    }
    let mut warnings = warnings.to_vec();
    for channel in config.channels.values() {
        if let Some(told) = spending::told(config, channel) {
            let _ = writeln!(out, "tokens         {}", told.line);
            warnings.extend(told.warnings);
        }
    }
    for warning in &warnings {
        let _ = writeln!(out, "warning        {warning}");
    }
    let verdict = match (config.channels.is_empty(), warnings.len()) {
        (true, _) => format!(
            "The configuration is valid, but has no channel yet: add a {}.",
            channel_tables()
        ),
        (_, 0) => "The configuration is fine, and every secret is there.".to_owned(),
        _ => "The configuration works, and every secret is there; see the warnings.".to_owned(),
    };
    let _ = writeln!(out, "\n{verdict}");
    out
}

/// The longest path of a network for one question, and its cost at most.
fn network_line(config: &Config, agent: &Agent) -> Option<String> {
    let network = &agent.network.as_ref()?.network;
    let (path, worst) = (longest_path(network), worst_cost(network, &steps(config)));
    let names: Vec<&str> = path.agents.iter().map(|it| it.as_str()).collect();
    let names = match names.is_empty() {
        true => String::new(),
        false => format!(" ({})", names.join(", ")),
    };
    let agent_calls = counted(worst.agent_calls, "agent call", "agent calls");
    Some(format!(
        "{}: a question takes at most {agent_calls}{names}, with {} of models, and {} of the routing agent's",
        network.name,
        counted(worst.model_calls, "call", "calls"),
        counted(worst.routing_calls, "call", "calls"),
    ))
}

/// The most work that the agents that `agent` may ask, directly or through others, add to one question.
fn asking_line(all: &BTreeMap<AgentName, WorkBounds>, agent: &Agent) -> Option<String> {
    let below = worst_below(all, &agent.name);
    (below != Below::default()).then(|| {
        format!(
            "{}: agents that it asks add at most {} to a question, with {} of models",
            agent.name,
            counted(below.runs, "run", "runs"),
            counted(below.model_calls, "call", "calls"),
        )
    })
}

/// The limits of one run of each agent and network.
fn askings(config: &Config) -> BTreeMap<AgentName, WorkBounds> {
    let steps = steps(config);
    let model_calls = |agent: &Agent| match &agent.network {
        Some(it) => {
            let worst = worst_cost(&it.network, &steps);
            worst.model_calls + u64::from(worst.routing_calls)
        }
        None => agent.settings.max_steps.into(),
    };
    let asking = |agent: &Agent| WorkBounds {
        model_calls: model_calls(agent),
        delegates: agent.delegates.clone(),
        members: agent.callable().into_iter().cloned().collect(),
    };
    let agents = config.agents.values();
    agents.map(|it| (it.name.clone(), asking(it))).collect()
}

/// The most model calls in one run of each agent.
fn steps(config: &Config) -> BTreeMap<AgentName, u32> {
    let agents = config.agents.values();
    agents
        .map(|it| (it.name.clone(), it.settings.max_steps))
        .collect()
}

/// Says that overheard lines, which were not said to the agent, reach its model.
fn recall_line(config: &Config, agent: &Agent) -> Option<String> {
    let prompt = &agent.prompt;
    let is_wanted = prompt.recall == RecallMode::Auto && prompt.recall_max_tokens > 0;
    is_wanted.then(|| {
        format!(
            "{}: overheard lines that answer a question are sent to the model {} (recall = \"auto\")",
            agent.name,
            config.model_of(agent).name
        )
    })
}

fn channel_line(config: &Config, channel: &Channel) -> String {
    let platform = channel.platform.facts().title;
    let agents: Vec<&str> = config
        .agents_for_channel(channel)
        .iter()
        .map(|agent| agent.name.as_str())
        .collect();
    let agents = match agents.as_slice() {
        [] => "nobody answers".to_owned(),
        [only] => format!("{only} answers"),
        [default, others @ ..] => {
            format!("{default} answers, {} when named", others.join(", "))
        }
    };
    format!("{} ({platform}): {agents}", channel.name)
}

fn agent_line(config: &Config, agent: &Agent) -> String {
    let model = config.model_of(agent);
    let served_by = if model.model.is_empty() {
        model.provider.name().to_owned()
    } else {
        format!("{} of {}", model.model, model.provider.name())
    };
    format!(
        "{}: goes by {}; model {} ({served_by})",
        agent.name,
        agent.names().join(", "),
        model.name
    )
}
