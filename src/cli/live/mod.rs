//! The online part of `vocative check`: asks the platforms and models, and posts a test line if wanted.
//!
//! Reading order: this file (what is asked and reported), `probe` (a line posted and heard again), `first_words` (for
//! `vocative setup`: waits for a person's first message).

mod first_words;
mod probe;

pub(super) use self::first_words::{ChannelEar, FirstWords};

use std::fmt::Write as _;

use futures_util::future::join_all;
use vocative_contract::channel::{CheckReach, Finding, FindingLevel};

use super::CliError;
use super::context::CliContext;
use super::error::Exit;
use crate::admin::socket;
use crate::config::{Config, Model, Secrets};
use crate::daemon::start::wall_clock;
use crate::daemon::wiring;
use crate::llm::ProviderReach;

/// The findings about one channel, about the probe, or about the models.
pub(super) struct Section {
    /// The heading: the channel's name, the probe, or `models`.
    pub(super) title: String,
    /// The findings, one line each.
    pub(super) findings: Vec<Finding>,
    /// How far the machine's clock is ahead of the platform's, in milliseconds; `None` where it told none.
    pub(super) ahead_ms: Option<i64>,
}

/// Asks every platform and the models, and prints the findings.
///
/// # Errors
/// If a channel can't be set up, or the probe names none.
pub(super) async fn run(
    config: &Config,
    secrets: &Secrets,
    probe: Option<&str>,
    context: &CliContext,
) -> Result<Exit, CliError> {
    let probed = probe.map(|name| probe::Probe::parse(name, config));
    let probed = probed.transpose()?;
    let is_served = socket::is_taken(&config.daemon.control_socket).await;
    let mut sections = ask_all(config, secrets, is_served).await?;
    if let Some(probe) = probed {
        let channel = wiring::channel(&config.channels[&probe.channel], secrets)?;
        sections.push(Section {
            title: format!("probe of {} in {}", probe.chat, probe.channel),
            findings: probe.run(&*channel, is_served).await,
            ahead_ms: None,
        });
    }
    sections.push(models(config, secrets).await?);
    context.print(&report(&sections))?;
    Ok(exit(&sections))
}

/// Asks all platforms at the same time.
///
/// # Errors
/// If a channel can't be set up.
pub(super) async fn ask_all(
    config: &Config,
    secrets: &Secrets,
    is_served: bool,
) -> Result<Vec<Section>, CliError> {
    let mut asked = Vec::new();
    for settings in config.channels.values() {
        let channel = wiring::channel(settings, secrets)?;
        asked.push(async move {
            let mut findings = Vec::new();
            let opens_connection =
                channel.capabilities().echoes_posts && channel.receiver().is_none();
            let reach = if is_served && opens_connection {
                findings.push(fine(
                    "a daemon runs on this configuration, so no second socket is opened: it would get \
                     part of the messages. `vocative status` says whether the daemon is connected",
                ));
                CheckReach::Calls
            } else {
                CheckReach::Connection
            };
            findings.splice(0..0, channel.check(reach).await);
            let told_ms = channel.clock().and_then(|clock| clock.told_now_ms());
            Section {
                title: settings.name.to_string(),
                findings,
                ahead_ms: told_ms.map(|told_ms| (wall_clock())() - told_ms),
            }
        });
    }
    Ok(join_all(asked).await)
}

/// Checks the models by the list that their provider has; none is asked for an answer, since even one token costs.
///
/// # Errors
/// If a client can't be made.
pub(super) async fn models(config: &Config, secrets: &Secrets) -> Result<Section, CliError> {
    let mut findings = Vec::new();
    for model in config.models.values() {
        let name = &model.name;
        if model.settings.api_key.is_none()
            && model.settings.base_url.is_none()
            && model.model.is_empty()
        {
            findings.push(fine(format!("{name} is built in")));
            continue;
        }
        let reach = wiring::model_reach(model, secrets).await?;
        let (level, what) = about_model(model, &reach);
        let text = format!(
            "{name} ({} of {}): {what}",
            model.model,
            model.provider.name()
        );
        findings.push(Finding { level, text });
    }
    Ok(Section {
        title: "models".to_owned(),
        findings,
        ahead_ms: None,
    })
}

/// The finding for a provider's answer. A list that lacks the model is a warning only if it is OpenAI's own: other
/// servers' lists leave out models that they serve under a short name.
fn about_model(model: &Model, reach: &ProviderReach) -> (FindingLevel, String) {
    let is_own_list = model.settings.base_url.is_none() && model.provider.name() == "openai";
    let taken = if model.settings.api_key.is_some() {
        "the key is accepted"
    } else {
        "the server answers"
    };
    match reach {
        ProviderReach::Taken {
            names_model: Some(true),
        } => (
            FindingLevel::Fine,
            format!("{taken}, and the model is there"),
        ),
        ProviderReach::Taken {
            names_model: Some(false),
        } if is_own_list => (
            FindingLevel::Warning,
            format!("{taken}, but there is no model of that name; look for a misspelling"),
        ),
        ProviderReach::Taken {
            names_model: Some(false),
        } => (
            FindingLevel::Fine,
            format!("{taken}; its list does not name the model, which may be there all the same"),
        ),
        ProviderReach::Taken { names_model: None } => (FindingLevel::Fine, taken.to_owned()),
        ProviderReach::Refused { status } => (
            FindingLevel::Refused,
            format!("the provider refuses the key (HTTP {status}); renew what api_key points to"),
        ),
        ProviderReach::NoList { status } => (
            FindingLevel::Fine,
            format!("the server has no list of models (HTTP {status}), so the key is not tried"),
        ),
        ProviderReach::Unreachable { what } => (
            FindingLevel::Unreachable,
            format!("the provider can't be reached: {what}; check base_url and the network"),
        ),
        ProviderReach::NotAsked => (
            FindingLevel::Fine,
            "not asked, because an answer costs".to_owned(),
        ),
    }
}

pub(super) fn fine(text: impl Into<String>) -> Finding {
    Finding {
        level: FindingLevel::Fine,
        text: text.into(),
    }
}

fn report(sections: &[Section]) -> String {
    let mut out = String::new();
    for section in sections {
        let _ = writeln!(out, "\n{}", section.title);
        for finding in &section.findings {
            let _ = writeln!(out, "  {:<11}  {}", word(finding.level), finding.text);
        }
    }
    let open = open_count(sections);
    let verdict = match open {
        0 => "Everything that was asked is fine.".to_owned(),
        1 => "1 finding needs a person.".to_owned(),
        _ => format!("{open} findings need a person."),
    };
    let _ = writeln!(out, "\n{verdict}");
    out
}

pub(super) fn word(level: FindingLevel) -> &'static str {
    match level {
        FindingLevel::Fine => "ok",
        FindingLevel::Warning => "warning",
        FindingLevel::Problem => "problem",
        FindingLevel::Unreachable => "unreachable",
        FindingLevel::Refused => "refused",
    }
}

fn levels(sections: &[Section]) -> impl Iterator<Item = FindingLevel> {
    sections
        .iter()
        .flat_map(|section| &section.findings)
        .map(|finding| finding.level)
}

fn open_count(sections: &[Section]) -> usize {
    levels(sections)
        .filter(|level| *level != FindingLevel::Fine)
        .count()
}

/// The worst finding decides the exit code.
fn exit(sections: &[Section]) -> Exit {
    match levels(sections).max() {
        None | Some(FindingLevel::Fine) => Exit::Ok,
        Some(FindingLevel::Warning | FindingLevel::Problem) => Exit::Failed,
        Some(FindingLevel::Unreachable) => Exit::Unavailable,
        Some(FindingLevel::Refused) => Exit::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gravest_finding_decides_the_exit_code() {
        let section = |levels: &[FindingLevel]| Section {
            title: "acme".to_owned(),
            findings: levels
                .iter()
                .map(|level| Finding {
                    level: *level,
                    text: "words".to_owned(),
                })
                .collect(),
            ahead_ms: None,
        };
        use FindingLevel::{Fine, Problem, Refused, Unreachable, Warning};
        let cases = [
            (vec![section(&[])], Exit::Ok),
            (vec![section(&[Fine, Fine])], Exit::Ok),
            (vec![section(&[Fine]), section(&[Warning])], Exit::Failed),
            (vec![section(&[Problem, Unreachable])], Exit::Unavailable),
            (
                vec![section(&[Refused]), section(&[Unreachable])],
                Exit::Refused,
            ),
        ];
        for (sections, expected) in cases {
            assert_eq!(exit(&sections), expected);
        }
        assert_eq!(
            report(&[section(&[Fine, Refused])]),
            "\nacme\n  ok           words\n  refused      words\n\n1 finding needs a person.\n"
        );
    }
}
