//! `vocative doctor`: everything that can be wrong, with one verdict, and the command to type for each problem.
//!
//! Reading order: `finding` (what is reported), `judging` (pure: from what was seen to findings), `unit` (the same for
//! the systemd unit), `looking` (what is seen of the machine), `standing` (what the daemon or its store reports),
//! `mending` (what `--fix` does).

mod finding;
mod judging;
mod looking;
mod mending;
mod standing;
#[cfg(test)]
mod tests;
mod unit;

use std::process::ExitCode;

use vocative_contract::channel::FindingLevel;

use self::finding::{DoctorFinding, Level, Report};
use super::args::{DoctorArgs, TextFormat};
use super::context::CliContext;
use super::error::{CliError, Exit};
use super::service::Service;
use super::{folders, live, programs};
use crate::config::{Config, ConfigError, Secrets};
use crate::daemon::start::{DATABASE_NAME, wall_clock};

/// Looks at everything and prints the report; exit code 1 where something must be put right.
pub(super) async fn run(args: &DoctorArgs, context: &CliContext) -> Result<ExitCode, CliError> {
    let report = examine(args, context).await?;
    let text = match args.format {
        TextFormat::Json => super::json_text(&report)?,
        TextFormat::Text => report.text(),
    };
    context.print(&text)?;
    Ok(exit(&report).into())
}

/// All findings, after `--fix` has put right what it can.
///
/// # Errors
/// If a client for the platforms can't be made.
pub(super) async fn examine(args: &DoctorArgs, context: &CliContext) -> Result<Report, CliError> {
    let mut report = Report::new();
    let loaded = context.load_with_secrets();
    let mended = match (&loaded, args.fix) {
        (Ok((config, ..)), true) => mending::secrets(config, &context.environment),
        _ => Vec::new(),
    };
    let config = match &loaded {
        Ok((config, _, warnings)) => {
            report.extend(configured(
                config,
                &warnings.iter().map(ToString::to_string),
            ));
            Some(config)
        }
        Err(CliError::Config(error)) => {
            report.extend(wrong(error));
            None
        }
        Err(error) => {
            report.push(DoctorFinding::fix(
                "configuration",
                error.report(),
                "vocative check",
            ));
            None
        }
    };
    report.extend(standing::of(context).await);
    let service = Service::of(context.global.config.as_deref());
    let mut unit = looking::unit(&service);
    if args.fix
        && let Some(told) = mending::unit(&unit)
    {
        report.mended.push(told);
        unit = looking::unit(&service);
    }
    report.extend(unit::judged(&unit, &service));
    if let Some(config) = config {
        report.mended.extend(mended);
        report.extend(looking::modes(config, &context.environment));
        report.extend(kept(config, args, &service).await);
    }
    if let (Ok((config, secrets, _)), false) = (&loaded, args.offline) {
        report.extend(asked(config, secrets).await?);
    }
    report.spell(|command| service.spelled(command));
    Ok(report)
}

/// Findings about a configuration that works: its warnings, the folders, the programs of tools.
fn configured(
    config: &Config,
    warnings: &(impl Iterator<Item = String> + Clone),
) -> Vec<DoctorFinding> {
    const SUBJECT: &str = "configuration";
    let mut findings = Vec::new();
    let file = config.file.as_ref().map(|file| file.display().to_string());
    match (&file, config.channels.is_empty()) {
        (_, true) => findings.push(DoctorFinding::fix(
            SUBJECT,
            "no channel is configured, so there is nothing to serve",
            "vocative setup",
        )),
        (file, false) => findings.push(DoctorFinding::fine(
            SUBJECT,
            format!(
                "{} is valid, and every secret is there",
                file.as_deref().unwrap_or("what the environment says")
            ),
        )),
    }
    findings.extend(
        warnings
            .clone()
            .map(|what| DoctorFinding::warn(SUBJECT, what, "")),
    );
    match folders::look(config) {
        Ok(warnings) => findings.extend(
            warnings
                .into_iter()
                .map(|what| DoctorFinding::warn("folders", what, "")),
        ),
        Err(error) => findings.push(DoctorFinding::fix("folders", error.report(), "")),
    }
    if let Err(error) = programs::told(config) {
        findings.push(DoctorFinding::fix("programs", error.report(), ""));
    }
    findings
}

/// A finding for everything that is wrong with a configuration.
fn wrong(error: &ConfigError) -> Vec<DoctorFinding> {
    let problems = error.problems.iter();
    let findings = problems.map(|problem| DoctorFinding {
        is_configuration: true,
        ..DoctorFinding::fix("configuration", problem.to_string(), "vocative check")
    });
    findings.collect()
}

/// Findings about the disk and the backups.
async fn kept(config: &Config, args: &DoctorArgs, service: &Service) -> Vec<DoctorFinding> {
    let now_ms = (wall_clock())();
    let database = config.daemon.data_dir.join(DATABASE_NAME);
    let mut findings = vec![judging::disk(&looking::disk(&database))];
    let folder = args.backups.clone().unwrap_or_else(|| service.backups());
    let backups = looking::backups(&folder);
    let has_database = looking::length(&database).is_some();
    findings.push(judging::backups(&folder, &backups, has_database, now_ms));
    let newest = backups.ok().and_then(|found| found.newest);
    if let Some(newest) = newest.filter(|_| args.verify) {
        let path = folder.join(newest.name);
        let looked = path.clone();
        let read = tokio::task::spawn_blocking(move || vocative_store::check_database(&looked));
        let read = match read.await {
            Ok(read) => read.map_err(|cause| cause.to_string()),
            Err(cause) => Err(cause.to_string()),
        };
        findings.push(judging::verified(&path, read));
    }
    findings
}

/// Findings about platforms, models and, by the platforms' time, the machine's clock.
async fn asked(config: &Config, secrets: &Secrets) -> Result<Vec<DoctorFinding>, CliError> {
    let is_served = crate::admin::socket::is_taken(&config.daemon.control_socket).await;
    let mut sections = live::ask_all(config, secrets, is_served).await?;
    let ahead = sections.iter();
    let ahead = ahead.filter_map(|section| Some((section.title.clone(), section.ahead_ms?)));
    let clock = judging::clock(&ahead.collect::<Vec<_>>());
    sections.push(live::models(config, secrets).await?);
    let mut findings = Vec::new();
    for section in sections {
        let title = &section.title;
        findings.extend(section.findings.into_iter().map(|found| {
            let level = match found.level {
                FindingLevel::Fine => Level::Ok,
                FindingLevel::Warning => Level::Warn,
                FindingLevel::Problem | FindingLevel::Unreachable | FindingLevel::Refused => {
                    Level::Fix
                }
            };
            DoctorFinding::of(title, level, found.text)
        }));
    }
    findings.extend(clock);
    Ok(findings)
}

/// A mistake of the configuration decides the exit code before everything else.
fn exit(report: &Report) -> Exit {
    match report.verdict() {
        _ if report.is_misconfigured() => Exit::Config,
        Level::Fix => Exit::Failed,
        Level::Warn | Level::Ok => Exit::Ok,
    }
}
