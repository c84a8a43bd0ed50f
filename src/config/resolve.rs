//! Makes checked settings of the merged shape: default folders, units, references between tables, and other checks that
//! need more than one setting.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::agents::{Names, check_clashes, check_experts, resolve_agents};
use super::api::resolve_api;
use super::approvals::{check_approvals, check_server_approvals};
use super::channels::resolve_channels;
use super::console::resolve_console;
use super::delegates::{Written, check_delegates};
use super::environment::Environment;
use super::hooks::{check_hooks, resolve_hooks};
use super::knowledge::resolve_knowledge;
use super::mcp::resolve_servers;
use super::networks::{Known, members_of, resolve_networks};
use super::origin::Origins;
use super::platforms::add_api_channel;
use super::platforms::with_streams;
use super::problem::{Problem, Warning};
use super::schedules::resolve_schedules;
use super::settings::{
    Channel, Config, CounterName, Daemon, Delivery, EmbeddingServer, Http, Limits, Model,
    ModelConfig, Transcription, Webhooks,
};
use super::shape::{
    DaemonShape, DeliveryShape, EmbeddingsShape, HttpShape, LimitsShape, Shape, TranscriptionShape,
    WebhooksShape,
};
use super::skills::resolve_skills;
use super::suggest::nearest;
use super::tools::{known_tools, resolve_tools};
use crate::llm::Provider;
use vocative_core::price::Prices;
use vocative_core::sending::policy::{Live, OnUndecided, OnUnknown};

/// What the checks need to know, and where they report what they find.
pub(super) struct Review<'a> {
    /// Where settings are written.
    pub origins: &'a Origins,
    /// Settings that are already known to be wrong.
    pub faulty: &'a BTreeSet<String>,
    /// The environment.
    pub environment: &'a Environment,
    /// The folder that relative paths count from.
    pub base_dir: &'a Path,
    /// All problems.
    pub problems: Vec<Problem>,
    /// All warnings.
    pub warnings: Vec<Warning>,
}

impl Review<'_> {
    /// Reports a problem with a setting, unless the setting is already known to be wrong.
    pub(super) fn problem(&mut self, key: &str, what: impl Into<String>) {
        self.advise(key, what, None);
    }

    /// Reports a problem with a setting, and what to do.
    pub(super) fn advise(
        &mut self,
        key: &str,
        what: impl Into<String>,
        suggestion: Option<String>,
    ) {
        if self.faulty.contains(key) {
            return;
        }
        let mut problem = Problem::new(key, what).at(self.origins.nearest(key));
        problem.suggestion = suggestion;
        self.problems.push(problem);
    }

    /// Reports a warning.
    pub(super) fn warn(&mut self, key: &str, what: impl Into<String>) {
        self.warnings.push(Warning::new(key, what));
    }

    /// Reports a reference to something that does not exist.
    pub(super) fn dangling(&mut self, key: &str, table: &str, name: &str, known: &[&str]) {
        if self.faulty.contains(&format!("{table}.{name}")) {
            return;
        }
        let suggestion = match nearest(name, known.iter().copied()) {
            Some(meant) => format!("did you mean \"{meant}\"?"),
            None if known.is_empty() => format!("no [{table}.NAME] is configured"),
            None => format!("configured: {}", known.join(", ")),
        };
        self.advise(
            key,
            format!("there is no [{table}.{name}]"),
            Some(suggestion),
        );
    }

    /// Checks the address of an API, and removes the slash at its end.
    pub(super) fn url(&mut self, key: &str, url: &str) -> String {
        let Some((scheme, rest)) = url.split_once("://") else {
            self.problem(key, "must start with https:// or http://");
            return url.to_owned();
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
        let host = authority
            .rsplit_once(':')
            .map_or(authority, |(host, _)| host);
        let is_here = host == "localhost" || host.starts_with("127.") || host == "[::1]";
        if scheme != "https" && scheme != "http" {
            self.problem(key, "must start with https:// or http://");
        } else if authority.is_empty() {
            self.problem(key, "names no host");
        } else if authority.contains('@') {
            self.problem(
                key,
                "has a user or password in it, which would show in logs",
            );
        } else if scheme == "http" && !is_here {
            self.warn(
                key,
                format!("{host} is reached without encryption; tokens can be read on the way"),
            );
        }
        url.trim_end_matches('/').to_owned()
    }
}

/// The settings of the whole daemon that channels inherit.
#[derive(Clone, Copy)]
pub(super) struct Inherited {
    pub limits: Limits,
    pub on_unknown: OnUnknown,
    pub on_undecided: OnUndecided,
    pub live: Live,
    pub live_interval_ms: u64,
    pub max_trigger_age_minutes: u64,
}

/// Checks the merged shape. The result is to be used only if no problem was found; the caller adds the file and the
/// values that were read.
pub(super) fn resolve(shape: Shape, review: &mut Review<'_>) -> Config {
    let inherited = Inherited {
        limits: limits(&shape.limits),
        on_unknown: shape.delivery.on_unknown,
        on_undecided: shape.delivery.on_undecided,
        live: shape.delivery.live,
        live_interval_ms: shape.delivery.live_interval_ms,
        max_trigger_age_minutes: shape.capture.max_trigger_age_minutes,
    };
    let models = resolve_models(shape.models, review);
    check_fallbacks(&models, review);
    let drafts = shape.channels.drafts();
    let channel_names: Vec<&str> = drafts.iter().map(|(_, it)| it.name.as_str()).collect();
    let tools = resolve_tools(shape.tools, &channel_names, review);
    let hooks = resolve_hooks(shape.hooks, review);
    let mcp = resolve_servers(shape.mcp, &channel_names, review);
    let known = known_tools(&tools, &mcp);
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let knowledge = resolve_knowledge(shape.knowledge, &channel_names, review);
    let collections: Vec<&str> = knowledge.keys().map(String::as_str).collect();
    let skill_folders = resolve_skills(&shape.skills, review);
    let names = Names {
        channels: &channel_names,
        tools: &known,
        collections: &collections,
        skill_folders: &skill_folders,
    };
    let mut agents = resolve_agents(shape.agents, &models, names, review);
    let known_by_networks = Known {
        agents: &agents,
        models: &models,
        tools: &known,
        channels: &channel_names,
    };
    let written = Written {
        networks: shape.networks.keys().cloned().collect(),
        members: members_of(&shape.networks),
    };
    let networks = resolve_networks(shape.networks, known_by_networks, review);
    agents.extend(networks.into_iter().map(|face| (face.name.clone(), face)));
    check_delegates(&agents, &written, review);
    check_clashes(&agents, review);
    let schedules = resolve_schedules(shape.schedules, &agents, &channel_names, review);
    let daemon = resolve_daemon(shape.daemon, review);
    let api = resolve_api(shape.api, &daemon, &channel_names, &agents, review);
    let console = resolve_console(shape.console, &channel_names, review);
    let mut channels = resolve_channels(drafts, &agents, &known, inherited, review);
    add_api_channel(&mut channels, &api, inherited, review);
    check_hooks(&hooks, &agents, &models, review);
    check_experts(&agents, &channels, review);
    let all_agents: Vec<_> = agents.values().collect();
    check_approvals(&tools, &all_agents, review);
    check_server_approvals(&mcp, &all_agents, review);
    warn_of_silence(&channels, review);
    Config {
        api,
        console,
        daemon,
        store: shape.store,
        capture: shape.capture,
        delivery: resolve_delivery(&shape.delivery, review),
        files: shape.files,
        transcription: resolve_transcription(shape.transcription, review),
        currency: shape.limits.currency.clone(),
        embeddings: resolve_embeddings(shape.embeddings, review),
        http: resolve_http(&shape.http, review),
        webhooks: resolve_webhooks(&shape.webhooks, review),
        models,
        agents,
        tools,
        hooks,
        mcp,
        knowledge,
        skill_folders,
        schedules,
        channels,
        file: None,
        base_dir: review.base_dir.to_owned(),
        effective: serde_json::Value::Null,
        origins: Origins::default(),
    }
}

fn warn_of_silence(channels: &BTreeMap<String, Channel>, review: &mut Review<'_>) {
    if channels.is_empty() && review.problems.is_empty() && review.faulty.is_empty() {
        let what = "no channel is configured, so there is nothing to hear or to answer";
        review.warn("channels", what);
    }
}

fn resolve_delivery(shape: &DeliveryShape, review: &mut Review<'_>) -> Delivery {
    let delay_s = shape.visibility_delay_s;
    let look_back_s = shape.look_back_s.unwrap_or((delay_s * 3).div_ceil(2));
    if look_back_s <= delay_s {
        review.problem(
            "delivery.look_back_s",
            format!("must be longer than visibility_delay_s ({delay_s}), is {look_back_s}"),
        );
    }
    if shape.live == Live::Stream {
        review.problem(
            "delivery.live",
            format!(
                "\"stream\" is {}'s alone: set it in a channel's table, [channels.{}.NAME]",
                with_streams().title,
                with_streams().name
            ),
        );
    }
    Delivery {
        max_parts: shape.max_parts,
        first_look_ms: shape.first_look_s * 1_000,
        look_back_ms: look_back_s * 1_000,
        park_keep_ms: shape.parked_posts_keep_hours * 3_600_000,
        live_delay_ms: shape.live_delay_ms,
        live_interval_ms: shape.live_interval_ms,
    }
}

fn resolve_transcription(
    shape: TranscriptionShape,
    review: &mut Review<'_>,
) -> Option<Transcription> {
    let base_url = shape.base_url?;
    let base_url = review.url("transcription.base_url", &base_url);
    if shape.model.trim().is_empty() {
        review.problem(
            "transcription.model",
            "is empty: the provider's name of the model",
        );
    }
    Some(Transcription {
        base_url,
        model: shape.model,
        api_key: shape.api_key,
        timeout_ms: shape.timeout_s * 1_000,
    })
}

fn resolve_embeddings(shape: EmbeddingsShape, review: &mut Review<'_>) -> Option<EmbeddingServer> {
    let base_url = shape.base_url?;
    let base_url = review.url("embeddings.base_url", &base_url);
    if shape.model.trim().is_empty() {
        review.problem(
            "embeddings.model",
            "is empty: the provider's name of the model",
        );
    }
    let is_possible = |it: &u32| (1..=4_096).contains(it);
    if shape.dimensions.is_some_and(|it| !is_possible(&it)) {
        review.problem("embeddings.dimensions", "must be between 1 and 4096");
    }
    Some(EmbeddingServer {
        base_url,
        model: shape.model,
        dimensions: shape.dimensions,
        api_key: shape.api_key,
        tokens_per_day: shape.tokens_per_day,
    })
}

/// The first directive that is neither a level nor `target=level`: the log filter would take it for a target, and
/// silence everything else.
fn unknown_level(levels: &str) -> Option<&str> {
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    levels
        .split(',')
        .map(str::trim)
        .filter(|directive| !directive.contains(['=', '[']))
        .find(|directive| !LEVELS.contains(&directive.to_ascii_lowercase().as_str()))
}

fn limits(shape: &LimitsShape) -> Limits {
    Limits {
        max_runs_per_hour_person: shape.max_runs_per_hour_person,
        max_runs_per_hour_chat: shape.max_runs_per_hour_chat,
        tokens_per_day: shape.tokens_per_day,
        tokens_per_day_person: shape.tokens_per_day_person,
        cost_micros_per_day: micros(shape.cost_per_day),
        cost_micros_per_day_person: micros(shape.cost_per_day_person),
    }
}

/// An amount in millionths; 0 for negative amounts and for what is no number.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub(super) fn micros(amount: f64) -> u64 {
    (amount * 1e6).round() as u64
}

/// The prices of a model. Prices that are not set are the input's price; if that is not set, they are 0.
fn prices(shape: &ModelConfig, name: &str, review: &mut Review<'_>) -> Prices {
    let others = [shape.price_cached, shape.price_written, shape.price_output];
    if shape.price_input.is_none() && others.iter().any(Option::is_some) {
        review.problem(
            &format!("models.{name}.price_input"),
            "must be set beside the other prices",
        );
    }
    let input = shape.price_input.unwrap_or(0.0);
    Prices {
        input,
        cached: shape.price_cached.unwrap_or(input),
        written: shape.price_written.unwrap_or(input),
        output: shape.price_output.unwrap_or(input),
    }
}

fn resolve_daemon(shape: DaemonShape, review: &mut Review<'_>) -> Daemon {
    let data_dir = match shape.data_dir {
        Some(dir) => review.base_dir.join(dir),
        None => default_data_dir(review.environment, review.base_dir).unwrap_or_else(|| {
            review.problem(
                "daemon.data_dir",
                "must be set, because neither $STATE_DIRECTORY, $XDG_STATE_HOME nor $HOME is",
            );
            PathBuf::new()
        }),
    };
    let runtime_dir = shape
        .runtime_dir
        .map(|dir| review.base_dir.join(dir))
        .or_else(|| default_runtime_dir(review.environment, review.base_dir))
        .unwrap_or_else(|| data_dir.join("run"));
    if let Err(error) = tracing_subscriber::EnvFilter::builder().parse(&shape.log_level) {
        review.problem(
            "daemon.log_level",
            format!("is no level and no filter: {error}"),
        );
    }
    if let Some(word) = unknown_level(&shape.log_level) {
        review.problem(
            "daemon.log_level",
            format!(
                "names {word:?}, which is no level; levels are off, error, warn, info, debug, trace"
            ),
        );
    }
    check_group("daemon.socket_group", shape.socket_group.as_deref(), review);
    let control_socket = match shape.control_socket {
        Some(path) => review.base_dir.join(path),
        None => runtime_dir.join(CONTROL_SOCKET_NAME),
    };
    Daemon {
        control_socket,
        data_dir,
        runtime_dir,
        socket_group: shape.socket_group,
        drain_deadline_ms: shape.drain_deadline_s * 1_000,
        max_parallel_runs: shape.max_parallel_runs,
        log_format: shape.log_format,
        log_level: shape.log_level,
        landlock: shape.landlock,
    }
}

/// The folders of a systemd unit. A command that reads the unit's configuration from a shell does not have the unit's
/// variables, and uses these folders.
const SYSTEM_CONFIG_DIR: &str = "/etc/vocative";
const SYSTEM_STATE_DIR: &str = "/var/lib/vocative";
const SYSTEM_RUNTIME_DIR: &str = "/run/vocative";

/// The folder of the unit to which a configuration's folder belongs: `/etc/vocative`, or that of a cell,
/// `/etc/vocative/cells/NAME`.
fn system_dir(base_dir: &Path, dir: &str) -> Option<PathBuf> {
    let below = base_dir.strip_prefix(SYSTEM_CONFIG_DIR).ok()?;
    let names: Vec<_> = below.iter().collect();
    match names.as_slice() {
        [] => Some(PathBuf::from(dir)),
        [cells, cell] if *cells == "cells" => Some(Path::new(&format!("{dir}-cells")).join(cell)),
        _ => None,
    }
}

fn default_data_dir(environment: &Environment, base_dir: &Path) -> Option<PathBuf> {
    let own = |name| environment.get_filled(name);
    // systemd separates state directories by colons; the first one is ours.
    own("STATE_DIRECTORY")
        .and_then(|dirs| dirs.split(':').next())
        .map(PathBuf::from)
        .or_else(|| system_dir(base_dir, SYSTEM_STATE_DIR))
        .or_else(|| Some(Path::new(own("XDG_STATE_HOME")?).join("vocative")))
        .or_else(|| Some(Path::new(own("HOME")?).join(".local/state/vocative")))
}

fn default_runtime_dir(environment: &Environment, base_dir: &Path) -> Option<PathBuf> {
    let own = |name| environment.get_filled(name);
    own("RUNTIME_DIRECTORY")
        .and_then(|dirs| dirs.split(':').next())
        .map(PathBuf::from)
        .or_else(|| system_dir(base_dir, SYSTEM_RUNTIME_DIR))
        .or_else(|| Some(Path::new(own("XDG_RUNTIME_DIR")?).join("vocative")))
}

fn resolve_http(shape: &HttpShape, review: &mut Review<'_>) -> Http {
    let listen = address("http.listen", &shape.listen, "127.0.0.1:8086", review);
    if shape.enabled && !listen.ip().is_loopback() {
        review.warn(
            "http.listen",
            format!("{listen} can be reached by other machines, and there is no password"),
        );
    }
    Http {
        enabled: shape.enabled,
        listen,
    }
}

pub(super) fn check_group(key: &str, group: Option<&str>, review: &mut Review<'_>) {
    if group.is_some_and(|group| group.trim().is_empty()) {
        review.problem(key, "is empty; leave it out for no group");
    }
}

/// The control socket's name in the runtime directory.
pub const CONTROL_SOCKET_NAME: &str = "vocative.sock";
/// An address that others can reach needs no warning: callers are authenticated by a signature or secret, and the
/// operator decides where TLS ends.
fn resolve_webhooks(shape: &WebhooksShape, review: &mut Review<'_>) -> Webhooks {
    let key = "webhooks.listen";
    Webhooks {
        listen: address(key, &shape.listen, "127.0.0.1:8088", review),
    }
}

fn address(key: &str, text: &str, sample: &str, review: &mut Review<'_>) -> SocketAddr {
    text.parse().unwrap_or_else(|_| {
        review.problem(key, format!("must be an address and a port, like {sample}"));
        SocketAddr::from(([127, 0, 0, 1], 0))
    })
}

fn resolve_models(
    shapes: BTreeMap<String, ModelConfig>,
    review: &mut Review<'_>,
) -> BTreeMap<String, Model> {
    shapes
        .into_iter()
        .map(|(name, shape)| {
            let model = resolve_model(&name, shape, review);
            (name, model)
        })
        .collect()
}

/// Checks that the fallback models of a model exist, and that each is another model.
fn check_fallbacks(models: &BTreeMap<String, Model>, review: &mut Review<'_>) {
    let known: Vec<&str> = models.keys().map(String::as_str).collect();
    for (name, model) in models {
        let key = format!("models.{name}.fallback");
        for (n, fallback) in model.settings.fallback.iter().enumerate() {
            if fallback == name || model.settings.fallback[..n].contains(fallback) {
                review.problem(&key, format!("names \"{fallback}\" which is asked already"));
            } else if !models.contains_key(fallback) {
                review.dangling(&key, "models", fallback, &known);
            }
        }
    }
}

fn resolve_model(name: &str, shape: ModelConfig, review: &mut Review<'_>) -> Model {
    let key = |setting: &str| format!("models.{name}.{setting}");
    let provider = shape.provider.unwrap_or_else(|| {
        review.problem(
            &key("provider"),
            "is missing: say who serves the model, like \"openai\"",
        );
        Provider::Offline
    });
    let is_known = shape.provider.is_some();
    let prices = prices(&shape, name, review);
    let model = shape.model.clone().unwrap_or_default();
    if model.is_empty() && is_known && provider != Provider::Offline {
        review.problem(
            &key("model"),
            "is missing: the provider's name of the model",
        );
    }
    if provider != Provider::Offline && shape.api_key.is_none() && shape.base_url.is_none() {
        review.advise(
            &key("api_key"),
            format!("is missing: {} answers only with a key", provider.name()),
            Some("write \"env:NAME\", \"file:PATH\" or \"credential:NAME\"".to_owned()),
        );
    }
    if shape.api.is_some() && provider != Provider::OpenAi && is_known {
        review.warn(
            &key("api"),
            format!("counts for openai only, not for {}", provider.name()),
        );
    }
    if let Some(url) = &shape.base_url {
        review.url(&key("base_url"), url);
    }
    let max_output_tokens = match shape.context_limit {
        Some(limit) if limit <= shape.max_output_tokens => {
            review.warn(
                &key("context_limit"),
                format!(
                    "leaves no room for a prompt beside max_output_tokens = {}: answers get half of it",
                    shape.max_output_tokens
                ),
            );
            limit / 2
        }
        _ => shape.max_output_tokens,
    };
    check_counter(&key("counter"), shape.counter, provider, review);
    Model {
        name: name.to_owned(),
        provider,
        model,
        max_output_tokens,
        prices,
        settings: shape,
    }
}

fn check_counter(key: &str, counter: CounterName, provider: Provider, review: &mut Review<'_>) {
    if !counter.is_built_in() {
        review.advise(
            key,
            format!("{} is not in this build", counter.name()),
            Some("build with `--features tiktoken`, or write \"class\"".to_owned()),
        );
    } else if counter == CounterName::O200k && provider != Provider::OpenAi {
        review.warn(
            key,
            format!(
                "o200k counts as OpenAI's models do, not as those of {}; \"class\" learns how they count",
                provider.name()
            ),
        );
    }
}
