//! Makes the hooks of agents from the configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::request;
use crate::config::{self, Config, Secrets};
use crate::hooks::{Hook, HookKind, Hooks};

/// The models that an agent's hooks ask whether a message was meant for the agent.
pub(super) fn intent_models<'a>(
    config: &'a Config,
    agent: &'a config::Agent,
) -> impl Iterator<Item = (&'a str, &'a config::Model)> {
    agent.settings.hooks.iter().filter_map(|name| {
        let config::HookKind::Intent { model, .. } = &config.hooks.get(name)?.kind else {
            return None;
        };
        Some((name.as_str(), config.models.get(model)?))
    })
}

/// Every hook that agents may name, with its secrets.
pub(super) fn hooks<'a>(
    config: &'a Config,
    secrets: Option<&Secrets>,
) -> BTreeMap<&'a str, Arc<Hook>> {
    let hook = |(name, settings): (&'a String, &config::Hook)| {
        let kind = match &settings.kind {
            config::HookKind::Redact(redactor) => HookKind::Redact(redactor.clone()),
            config::HookKind::Http {
                settings,
                secret_headers,
                has_content,
            } => HookKind::Http {
                request: request(settings, secret_headers, secrets),
                has_content: *has_content,
            },
            config::HookKind::Intent { timeout_ms, .. } => HookKind::Intent {
                timeout_ms: *timeout_ms,
            },
        };
        let hook = Hook {
            name: name.clone(),
            points: settings.points.clone(),
            kind,
        };
        (name.as_str(), Arc::new(hook))
    };
    config.hooks.iter().map(hook).collect()
}

/// An agent's hooks, in the order in which they are asked.
pub(super) fn hooks_of(agent: &config::Agent, hooks: &BTreeMap<&str, Arc<Hook>>) -> Hooks {
    let named = agent.settings.hooks.iter();
    let named = named.filter_map(|name| hooks.get(name.as_str()).cloned());
    Hooks::new(named.collect())
}
