//! The configuration: built-in defaults < file < environment, checked as a whole.
//!
//! It knows no store, no running channel and no model. Files are read here and in `secret`, `control_socket`,
//! `instructions` and `answer_form`; the environment is an argument. Reading order: `settings` (what the daemon reads),
//! `shape` (what people write), then the way from one to the other: `locate`, `layer`, `check` against `schema`, the
//! merge below, `resolve` with `agents`, `channels` and `platforms` (a file for each).

mod agents;
mod answer_form;
mod api;
mod approvals;
mod channels;
mod check;
mod console;
mod control_socket;
mod delegates;
mod environment;
mod example;
mod hooks;
mod instructions;
mod knowledge;
mod layer;
mod locate;
mod manners;
mod mcp;
mod networks;
mod origin;
pub mod platforms;
mod presence;
mod problem;
mod programs;
mod reload;
mod resolve;
mod schedules;
mod schema;
mod secret;
mod settings;
mod shape;
mod show;
mod skills;
mod suggest;
mod template;
mod tools;
mod units;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use secrecy::ExposeSecret as _;
use serde_json::{Map, Value, json};

use self::check::Findings;
use self::layer::Layer;
use self::locate::Located;
use self::origin::{Origins, WrittenAt};
use self::platforms::{PLATFORMS, PlatformFacts};
use self::resolve::{Review, resolve};
use self::shape::Shape;

pub use self::answer_form::AnswerForm;
pub use self::api::{ApiAsking, ApiOverride, ApiScope, ApiToken};
pub use self::console::{Console, ConsolePerson, ConsoleRole};
pub use self::control_socket::control_socket_despite_mistakes;
pub use self::environment::Environment;
pub use self::example::example;
pub use self::platforms::{API_CHANNEL, PlatformSettings, channel_tables};
pub use self::problem::{ConfigError, Problem, Warning};
pub use self::resolve::CONTROL_SOCKET_NAME;
pub use self::schema::schema;
pub use self::secret::{CREDENTIALS_FOLDER, SecretRef, Secrets};
pub use self::settings::{
    Access, Agent, AgentSettings, AgentView, Api, ApiAddress, Capture, Channel, ChannelChoice,
    Config, ConfiguredSchedule, CounterName, Daemon, Delivery, EmbeddingServer, FileKindName,
    Files, FirstTool, Hook, HookKind, Http, Landlock, Limits, Live, LogFormat, McpServer, Model,
    ModelConfig, Network, OnUndecided, OnUnknown, ReplyPrefix, RetentionDays, SecretHeader,
    SecretVariable, Store, ThreadPolicy, Tool, ToolKind, Transcription, Webhooks,
};
pub use self::show::ShownSetting;
pub use self::template::{Template, TemplateValue};
pub use self::units::Seconds;

/// Every setting with its default; `config/default.toml`.
pub const DEFAULT_TOML: &str = include_str!("../../config/default.toml");

impl Config {
    /// Loads the configuration: the file asked for, otherwise `$VOCATIVE_CONFIG`, otherwise the first of
    /// `./vocative.toml`, `$XDG_CONFIG_HOME/vocative/vocative.toml` and `/etc/vocative/vocative.toml`; without a file,
    /// defaults and environment only.
    ///
    /// # Errors
    /// Everything that is wrong, at once.
    pub fn load(
        asked: Option<&Path>,
        environment: &Environment,
    ) -> Result<(Self, Vec<Warning>), ConfigError> {
        match locate::locate(asked, environment)? {
            Located::File(path) => {
                let text = std::fs::read_to_string(&path).map_err(|error| {
                    Problem::new("", format!("{} can't be read: {error}", path.display()))
                })?;
                Self::from_text(Some((&path, &text)), environment)
            }
            Located::Nowhere(places) => {
                let (config, mut warnings) = Self::from_text(None, environment)?;
                let places: Vec<String> = places
                    .iter()
                    .map(|place| place.display().to_string())
                    .collect();
                let what = format!(
                    "no configuration file was found; looked for {}",
                    places.join(", ")
                );
                warnings.insert(0, Warning::new("", what));
                Ok((config, warnings))
            }
        }
    }

    /// Loads the configuration like [`Self::load`] and reads every secret it refers to.
    ///
    /// # Errors
    /// Everything that is wrong, at once; this includes missing secrets, even if the configuration itself has mistakes.
    /// It never contains a secret.
    pub fn load_with_secrets(
        asked: Option<&Path>,
        environment: &Environment,
    ) -> Result<(Self, Secrets, Vec<Warning>), ConfigError> {
        let (config, mut warnings) = match Self::load(asked, environment) {
            Ok(loaded) => loaded,
            Err(error) => return Err(with_missing_secrets(error, asked, environment)),
        };
        let (secrets, about_secrets) = config.resolve_secrets(environment)?;
        warnings.extend(about_secrets);
        Ok((config, secrets, warnings))
    }

    /// Builds the configuration from a file's path and text, without reading the file.
    ///
    /// # Errors
    /// Everything that is wrong, at once.
    pub fn from_text(
        file: Option<(&Path, &str)>,
        environment: &Environment,
    ) -> Result<(Self, Vec<Warning>), ConfigError> {
        let schema = schema();
        let mut findings = Findings::default();
        let file_layer = match file {
            Some((path, text)) => check::check(schema, Layer::of_file(path, text)?, &mut findings),
            None => Layer::default(),
        };
        let variables = Layer::of_environment(environment, schema);
        let variables = check::check(schema, variables, &mut findings);
        let mut origins = Origins::default();
        origins.extend(&file_layer.places);
        origins.extend(&variables.places);

        let mut tree = merge(file_layer, variables)?;
        let base_dir = base_dir(file.map(|(path, _)| path));
        let mut review = Review {
            origins: &origins,
            faulty: &findings.faulty,
            environment,
            base_dir: &base_dir,
            problems: findings.problems,
            warnings: Vec::new(),
        };
        add_built_in(&mut tree, &mut review);
        expand_defaults(&mut tree);
        let shape: Shape = serde_json::from_value(tree.clone()).map_err(|error| {
            Problem::new(
                "",
                format!("the merged configuration can't be read: {error}"),
            )
        })?;
        let resolved = resolve(shape, &mut review);
        let Review {
            problems, warnings, ..
        } = review;
        ConfigError::check(problems)?;
        tree["daemon"]["data_dir"] = json!(resolved.daemon.data_dir);
        tree["daemon"]["runtime_dir"] = json!(resolved.daemon.runtime_dir);
        let config = Self {
            file: file.map(|(path, _)| path.to_owned()),
            effective: tree,
            origins,
            ..resolved
        };
        ConfigError::check(config.reaching_programs(environment))?;
        let mut about_variables = layer::near_misses(environment, schema);
        about_variables.retain(|(name, _)| !config.reads_variable(name));
        let about_variables = about_variables.into_iter().map(|(_, warning)| warning);
        Ok((config, about_variables.chain(warnings).collect()))
    }

    /// Whether a secret is to be read from this variable.
    fn reads_variable(&self, name: &str) -> bool {
        let references = self.secret_references();
        let is_it = |reference: &SecretRef| matches!(reference, SecretRef::Env(it) if it == name);
        references.iter().any(|(_, reference)| is_it(reference))
    }

    /// Reads every secret that the configuration refers to.
    ///
    /// # Errors
    /// All that are missing or empty, at once. It never contains a secret.
    pub fn resolve_secrets(
        &self,
        environment: &Environment,
    ) -> Result<(Secrets, Vec<Warning>), ConfigError> {
        let mut secrets = Secrets::default();
        let mut problems = Vec::new();
        let mut warnings = Vec::new();
        for (key, reference) in self.secret_references() {
            match reference.read(environment, &self.base_dir) {
                Ok(found) => {
                    let secret = found.secret.expose_secret();
                    let of_platform = PlatformFacts::of_key(&key);
                    if let Some((platform, setting)) = of_platform
                        && let Some(what) = (platform.refused_secret)(setting, secret)
                    {
                        problems.push(Problem::new(&key, what).at(self.origins.nearest(&key)));
                        continue;
                    }
                    let strange = of_platform.and_then(|(platform, setting)| {
                        (platform.strange_secret)(setting, secret.trim())
                    });
                    let whats = found.warning.into_iter().chain(strange);
                    warnings.extend(whats.map(|what| Warning::new(&key, what)));
                    secrets.0.insert(reference.clone(), found.secret);
                }
                Err(what) => {
                    problems.push(Problem::new(&key, what).at(self.origins.nearest(&key)));
                }
            }
        }
        ConfigError::check(problems)?;
        Ok((secrets, warnings))
    }

    /// The files that a reload reads again: the configuration and its secrets.
    #[must_use]
    pub fn files_read(&self, environment: &Environment) -> Vec<PathBuf> {
        let secrets = self.secret_files(environment);
        self.file.iter().cloned().chain(secrets).collect()
    }

    /// The files that hold secrets.
    #[must_use]
    pub fn secret_files(&self, environment: &Environment) -> Vec<PathBuf> {
        let secrets = self.secret_references();
        let secrets = secrets.iter();
        let files = secrets.filter_map(|(_, secret)| secret.file(environment, &self.base_dir));
        files.collect()
    }

    /// Every setting that refers to a secret, with its reference.
    fn secret_references(&self) -> Vec<(String, &SecretRef)> {
        let models = self.models.values().filter_map(|model| {
            Some((
                format!("models.{}.api_key", model.name),
                model.settings.api_key.as_ref()?,
            ))
        });
        let channels = self
            .channels
            .values()
            .flat_map(|channel| channel.platform.secrets(&channel.name));
        let transcription = self.transcription.as_ref();
        let hearing = transcription
            .and_then(|it| Some(("transcription.api_key".to_owned(), it.api_key.as_ref()?)));
        let embeddings = self.embeddings.as_ref();
        let embedding =
            embeddings.and_then(|it| Some(("embeddings.api_key".to_owned(), it.api_key.as_ref()?)));
        let api = self.api.token.as_ref();
        let api = api.map(|token| ("api.token".to_owned(), token));
        let named = self.api.tokens.iter();
        let named = named.map(|it| (format!("api.tokens.{}.token", it.name), &it.token));
        let api = api.into_iter().chain(named).filter(|_| self.api.enabled);
        let tools = self.tools.iter().flat_map(|(name, tool)| match &tool.kind {
            ToolKind::Http { secret_headers, .. } => secret_headers
                .iter()
                .map(|header| (format!("tools.{name}.{}", header.setting), &header.secret))
                .collect(),
            ToolKind::Command { secrets, .. } => secrets
                .iter()
                .map(|variable| (format!("tools.{name}.secrets"), &variable.secret))
                .collect(),
            ToolKind::BuiltIn(_) => Vec::new(),
        });
        let hooks = self.hooks.iter().flat_map(|(name, hook)| match &hook.kind {
            HookKind::Http { secret_headers, .. } => secret_headers
                .iter()
                .map(|header| (format!("hooks.{name}.{}", header.setting), &header.secret))
                .collect(),
            HookKind::Redact(_) | HookKind::Intent { .. } => Vec::new(),
        });
        let servers = self.mcp.iter().flat_map(|(name, server)| {
            let bearer = server.bearer.iter().map(|it| ("bearer", it));
            let secrets = server.secrets.iter().map(|it| ("secrets", &it.secret));
            let all = bearer.chain(secrets);
            all.map(move |(setting, secret)| (format!("mcp.{name}.{setting}"), secret))
        });
        let all = models
            .chain(channels)
            .chain(tools)
            .chain(hooks)
            .chain(servers)
            .chain(api)
            .chain(hearing);
        all.chain(embedding).collect()
    }
}

/// Adds the missing secrets to the problems of a configuration.
fn with_missing_secrets(
    error: ConfigError,
    asked: Option<&Path>,
    environment: &Environment,
) -> ConfigError {
    let mut problems = error.problems;
    let known: Vec<String> = problems.iter().map(|problem| problem.key.clone()).collect();
    for (key, place, reference) in written_secrets(asked, environment).unwrap_or_default() {
        if !known.contains(&key)
            && let Err(what) = reference.read(environment, &base_dir(place.0.as_deref()))
        {
            problems.push(Problem::new(&key, what).at(place.1.as_ref()));
        }
    }
    ConfigError::check(problems).err().unwrap_or(ConfigError {
        problems: Vec::new(),
    })
}

/// A reference to a secret as it is written: its setting, the file that relative paths count from, the place where it
/// is written, and the reference.
type WrittenSecret = (String, (Option<PathBuf>, Option<WrittenAt>), SecretRef);

/// The references to secrets in the layers, as far as these can be read. References under wrong names are left out.
fn written_secrets(asked: Option<&Path>, environment: &Environment) -> Option<Vec<WrittenSecret>> {
    let schema = schema();
    let mut ignored = Findings::default();
    let (path, file_layer) = match locate::locate(asked, environment).ok()? {
        Located::File(path) => {
            let text = std::fs::read_to_string(&path).ok()?;
            let layer = Layer::of_file(&path, &text).ok()?;
            (Some(path), check::check(schema, layer, &mut ignored))
        }
        Located::Nowhere(_) => (None, Layer::default()),
    };
    let variables = Layer::of_environment(environment, schema);
    let variables = check::check(schema, variables, &mut ignored);
    let mut origins = Origins::default();
    origins.extend(&file_layer.places);
    origins.extend(&variables.places);
    let mut tree = merge(file_layer, variables).ok()?;
    expand_defaults(&mut tree);
    let mut found = Vec::new();
    schema::secrets_of(schema, &tree, &mut |key, reference| {
        if let Some(reference) = SecretRef::parse(reference).filter(|_| is_read(key, &tree)) {
            let place = origins.nearest(key).cloned();
            found.push((key.to_owned(), (path.clone(), place), reference));
        }
    });
    Some(found)
}

/// Whether the daemon would read a secret that is written.
fn is_read(key: &str, tree: &Value) -> bool {
    let beside = |setting: &str| {
        let table = key.rsplit_once('.').map_or("", |(table, _)| table);
        let pointer = format!("/{}/{setting}", table.replace('.', "/"));
        tree.pointer(&pointer)
    };
    let is = |setting: &str, word: &str| beside(setting).and_then(Value::as_str) == Some(word);
    match key.rsplit_once('.') {
        _ if key.starts_with("defaults.") => false,
        Some((table, _)) if table == "api" || table.starts_with("api.tokens.") => {
            tree.pointer("/api/enabled") == Some(&Value::Bool(true))
        }
        Some(("transcription" | "embeddings", _)) => {
            beside("base_url").is_some_and(Value::is_string)
        }
        Some((_, "signing_secret")) => is("transport", "http"),
        Some((_, "webhook_secret")) => is("transport", "webhook"),
        _ => true,
    }
}

fn under<'a>(
    table: &str,
    secrets: Vec<(&'static str, &'a SecretRef)>,
) -> Vec<(String, &'a SecretRef)> {
    let key = |(setting, secret)| (format!("{table}.{setting}"), secret);
    secrets.into_iter().map(key).collect()
}

fn merge(file: Layer, variables: Layer) -> Result<Value, ConfigError> {
    let defaults = config::File::from_str(DEFAULT_TOML, config::FileFormat::Toml);
    config::Config::builder()
        .add_source(defaults)
        .add_source(file)
        .add_source(variables)
        .build()
        .and_then(config::Config::try_deserialize)
        .map_err(|error| Problem::new("", format!("the layers can't be merged: {error}")).into())
}

/// The folder that relative paths count from: the file's folder, otherwise the working directory.
fn base_dir(file: Option<&Path>) -> PathBuf {
    let dir = file
        .and_then(Path::parent)
        .map(Path::to_owned)
        .unwrap_or_default();
    std::path::absolute(if dir.as_os_str().is_empty() {
        Path::new(".")
    } else {
        &dir
    })
    .unwrap_or(dir)
}

/// Adds the built-in agent or model if none is configured.
fn add_built_in(tree: &mut Value, review: &mut Review<'_>) {
    let is_empty = |tree: &Value, section: &str| {
        let prefix = format!("{section}.");
        tree[section].as_object().is_none_or(Map::is_empty)
            && !review.faulty.iter().any(|key| key.starts_with(&prefix))
    };
    let (no_agent, no_model) = (is_empty(tree, "agents"), is_empty(tree, "models"));
    if no_agent {
        tree["agents"] = json!({ "vocative": {} });
        review.warn(
            "agents",
            "no agent is configured; the built-in agent \"vocative\" serves every channel",
        );
    }
    if no_model {
        tree["models"] = json!({ "default": { "provider": "offline" } });
        review.warn(
            "models",
            "no model is configured; the built-in offline model answers, which only says what it was asked",
        );
    }
}

/// Gives every model, agent and channel the defaults of its kind for settings that it does not have.
fn expand_defaults(tree: &mut Value) {
    expand_likenesses(tree);
    let defaults = tree["defaults"].clone();
    let kinds = [("model", "/models"), ("agent", "/agents")];
    let kinds = kinds.map(|(kind, pointer)| (kind, pointer.to_owned()));
    let platforms = PLATFORMS.map(|it| (it.name, format!("/channels/{}", it.name)));
    for (kind, pointer) in kinds.into_iter().chain(platforms) {
        if let Some(Value::Object(tables)) = tree.pointer_mut(&pointer) {
            for table in tables.values_mut() {
                fill(table, &defaults[kind]);
            }
        }
    }
}

/// Settings that an agent does not take over from the agent that it is like.
const OWN: [&str; 3] = ["aliases", "display_name", "like"];
/// Pairs of settings of which an agent has only one: an agent with either takes over neither.
const EITHER: [[&str; 2]; 2] = [
    ["instructions", "instructions_file"],
    ["answer_schema", "answer_schema_file"],
];

/// Gives agents with `like` the settings of the other agent for settings that they do not have.
fn expand_likenesses(tree: &mut Value) {
    let Some(Value::Object(agents)) = tree.get_mut("agents") else {
        return;
    };
    let written = agents.clone();
    for agent in agents.values_mut() {
        let model = agent["like"].as_str().and_then(|name| written.get(name));
        let Some(mut model) = model.cloned() else {
            continue;
        };
        if let Value::Object(model) = &mut model {
            model.retain(|key, _| !OWN.contains(&key.as_str()));
            for pair in EITHER {
                let is_own = pair.iter().any(|key| agent.get(key).is_some());
                model.retain(|key, _| !is_own || !pair.contains(&key.as_str()));
            }
        }
        fill(agent, &model);
    }
}

/// Adds the settings that `table` does not have.
fn fill(table: &mut Value, defaults: &Value) {
    if let (Value::Object(table), Value::Object(defaults)) = (table, defaults) {
        for (key, value) in defaults {
            match table.get_mut(key) {
                Some(own) => fill(own, value),
                None => {
                    table.insert(key.clone(), value.clone());
                }
            }
        }
    }
}

/// A dotted path with one more key; either may be empty.
fn join(path: &str, key: &str) -> String {
    match (path, key) {
        ("", only) | (only, "") => only.to_owned(),
        _ => format!("{path}.{key}"),
    }
}
