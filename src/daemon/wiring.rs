//! Turns the configuration into channels, agents and policies. It names a platform only to hand its settings to the
//! file that makes its adapter.

mod chats;
mod hooks;
mod slack;
mod telegram;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use vocative_channels::http::http_tls;
use vocative_contract::channel::{Announced, Announcement, Audience, Channel};
use vocative_contract::error::ChannelError;
use vocative_contract::identity::Identity;

use self::chats::{chat_instructions, chat_options, chat_tools};
use self::hooks::{hooks, hooks_of, intent_models};
use crate::agent::attached::FilesInPrompts;
use crate::agent::registry::{AgentSpec, BackgroundModel, ModelUse, NetworkSpec};
use crate::capture::clock::Clock;
use crate::catchup::bounds::CatchupBounds;
use crate::config::{
    self, Config, PlatformSettings, SecretHeader, SecretVariable, Secrets, ToolKind,
};
use crate::daemon::api_channel::ApiChannel;
use crate::embeddings::Embeddings;
use crate::embeddings::client::EmbeddingClient;
use crate::files::policy::FilesPolicy;
use crate::files::speech::Transcriber;
use crate::knowledge::{Collection, CollectionSettings};
use crate::llm::{self, Model};
use crate::tools::http::HttpToolSettings;
use crate::tools::mcp::{McpConfigured, McpPlace, McpServers};
use crate::tools::program::{Program, ProgramSettings};
use crate::tools::{BuiltIn, CommandTool, Delegate, HttpTool, McpUse, ToolSource, ToolUse};
use vocative_core::command::CommandName;
use vocative_core::file::FileKind;
use vocative_core::ids::{AccountId, AgentName};
use vocative_core::judging::policy::{AgentPolicy, AllowList, ChannelPolicy, Limits};
use vocative_core::place::ChatName;
use vocative_core::prompting::files::FileLimits;
use vocative_core::prompting::{ClassEstimate, TokenCounter, counter_named};
use vocative_core::routing::router::RouterForm;
use vocative_core::sending::after::DeliveryPolicy;
use vocative_core::sending::policy::LivePolicy;
use vocative_store::{Store, StoreError};

/// Why the configuration can't be put to work.
#[derive(Debug, thiserror::Error)]
pub enum WiringError {
    /// A channel's client can't be made.
    #[error("channel {channel} can't be set up")]
    Channel {
        /// The channel.
        channel: String,
        /// Why.
        #[source]
        cause: ChannelError,
    },
    /// The store refuses a write.
    #[error("the embedding model can't be noted")]
    Store {
        /// Why.
        #[source]
        cause: StoreError,
    },
    /// The platform's root certificates can't be read.
    #[error("no root certificates; install the system's (Debian: apt install ca-certificates)")]
    Tls {
        /// Why.
        #[source]
        cause: rustls::Error,
    },
    /// The HTTP client for models can't be made.
    #[error("no HTTP client for models")]
    ModelClient {
        /// Why.
        #[source]
        cause: reqwest::Error,
    },
    /// A model can't be set up.
    #[error("model {model} can't be set up")]
    Model {
        /// The model.
        model: String,
        /// Why.
        #[source]
        cause: llm::BuildError,
    },
}

/// The adapter of a configured channel.
///
/// # Errors
/// [`WiringError::Channel`] if its HTTP client can't be made.
pub fn channel(
    settings: &config::Channel,
    secrets: &Secrets,
) -> Result<Arc<dyn Channel>, WiringError> {
    let made = match &settings.platform {
        PlatformSettings::Slack(own) => slack::channel(settings, own, secrets),
        PlatformSettings::Telegram(own) => telegram::channel(settings, own, secrets),
        PlatformSettings::Api(_) => Ok(Arc::new(ApiChannel) as Arc<dyn Channel>),
    };
    made.map_err(|cause| WiringError::Channel {
        channel: settings.name.clone(),
        cause,
    })
}

/// The error for a platform that this build leaves out; the configuration check reports it earlier.
#[allow(dead_code, reason = "not called where every platform is built in")]
fn left_out(cause: &'static str) -> ChannelError {
    ChannelError::NotSent {
        operation: "set up",
        cause: cause.into(),
    }
}

/// The configured agents with their models. `secrets` is `None` where no model will be asked.
///
/// # Errors
/// [`WiringError::Model`] if a model's client can't be made.
pub fn agents(
    config: &Config,
    secrets: Option<&Secrets>,
    servers: &McpServers,
) -> Result<Vec<AgentSpec>, WiringError> {
    let http = model_client()?;
    let mut models: BTreeMap<&str, Arc<dyn Model>> = BTreeMap::new();
    for settings in config.models.values() {
        models.insert(&settings.name, model(settings, secrets, &http)?);
    }
    let tools = tools(config, secrets);
    let hooks = hooks(config, secrets);
    let prefixed = prefixed_channels(config);
    let speaking = speaking_channels(config);
    let background = |settings: &config::Model| {
        let model = Arc::clone(&models[settings.name.as_str()]);
        background_model(model, settings, config)
    };
    let with_model = |agent: &config::Agent, settings: &config::Model| AgentSpec {
        chat_instructions: chat_instructions(config, agent),
        chat_options: chat_options(config, agent),
        chat_tools: chat_tools(config),
        model_key: model_key(settings),
        counter: counter(settings.settings.counter),
        summary_model: config.summary_model_of(agent).map(background),
        memory_model: config.memory_model_of(agent).map(background),
        files: files_in_prompts(&config.files, settings),
        prefixed_channels: prefixed.clone(),
        speaking_channels: speaking.clone(),
        tools: tools_of(agent, config, &tools, servers),
        hooks: hooks_of(agent, &hooks),
        intent_models: intent_models(config, agent)
            .map(|(name, settings)| (name.to_owned(), background(settings)))
            .collect(),
        delegates: delegates(config, agent),
        knowledge: knowledge_of(config, agent),
        network: agent
            .network
            .as_ref()
            .map(|of| network_spec(agent, of, background(router_model(config, of, settings)))),
        ..AgentSpec::new(Arc::new(agent.clone()), background(settings))
    };
    let spec = |agent| with_choices(config, agent, &with_model);
    Ok(config.agents.values().map(spec).collect())
}

/// An agent with its model, and with the models that questions may ask for; each with its fallbacks.
fn with_choices(
    config: &Config,
    agent: &config::Agent,
    with_model: &dyn Fn(&config::Agent, &config::Model) -> AgentSpec,
) -> AgentSpec {
    let with_chain = |model: &config::Model| {
        let fallbacks = model.settings.fallback.iter();
        let fallbacks = fallbacks.filter_map(|name| config.models.get(name));
        AgentSpec {
            fallbacks: fallbacks
                .map(|fallback| Arc::new(with_model(agent, fallback)))
                .collect(),
            ..with_model(agent, model)
        }
    };
    let choices = agent.settings.models.iter();
    let choices = choices.filter_map(|name| config.models.get(name));
    AgentSpec {
        choices: choices
            .map(|choice| (choice.name.clone(), Arc::new(with_chain(choice))))
            .collect(),
        ..with_chain(config.model_of(agent))
    }
}

fn tools_of(
    agent: &config::Agent,
    config: &Config,
    known: &BTreeMap<&str, ToolUse>,
    servers: &McpServers,
) -> Vec<ToolUse> {
    let tool = |name: &String| {
        let tool = known.get(name.as_str()).cloned();
        tool.or_else(|| server_tools(config, servers, name))
    };
    agent.tools.iter().filter_map(tool).collect()
}

fn background_model(model: Arc<dyn Model>, of: &config::Model, config: &Config) -> BackgroundModel {
    BackgroundModel {
        model,
        model_use: model_use(of, config),
        context_limit: of.settings.context_limit.map(|limit| limit as usize),
        answer_reserve: of.max_output_tokens as usize,
    }
}

/// The model of a network's routing agent: its own, or the default agent's.
fn router_model<'a>(
    config: &'a Config,
    of: &config::Network,
    own: &'a config::Model,
) -> &'a config::Model {
    let named = of.router_model.as_ref();
    named
        .and_then(|name| config.models.get(name))
        .unwrap_or(own)
}

fn network_spec(
    face: &config::Agent,
    of: &config::Network,
    router: BackgroundModel,
) -> Arc<NetworkSpec> {
    Arc::new(NetworkSpec {
        network: of.network.clone(),
        router,
        descriptions: of.descriptions.clone(),
        names: face.names().into_iter().map(str::to_owned).collect(),
        asking: Mutex::new(RouterForm::Schema),
    })
}

/// The channels where a reply starts with the agent's name.
fn prefixed_channels(config: &Config) -> BTreeSet<String> {
    let channels = config.channels.values();
    let prefixed = channels.filter(|channel| config.prefixes_replies(channel));
    prefixed.map(|channel| channel.name.clone()).collect()
}

/// The channels where posts stand under their agents' names.
fn speaking_channels(config: &Config) -> BTreeSet<String> {
    let channels = config.channels.values();
    let speaking = channels.filter(|channel| channel.custom_names);
    speaking.map(|channel| channel.name.clone()).collect()
}

/// The agents and networks that an agent may ask.
fn delegates(config: &Config, agent: &config::Agent) -> Vec<Delegate> {
    let named = agent.delegates.iter();
    let known = named.filter_map(|name| config.agents.get(name));
    let delegate = |it: &config::Agent| Delegate {
        name: it.name.clone(),
        purpose: it.settings.purpose.clone(),
        members: it.callable().into_iter().cloned().collect(),
    };
    known.map(delegate).collect()
}

/// Every tool that agents may have, by name.
#[must_use]
pub fn tools<'a>(config: &'a Config, secrets: Option<&Secrets>) -> BTreeMap<&'a str, ToolUse> {
    let mut tools: BTreeMap<&str, ToolUse> = BTreeMap::new();
    for tool in BuiltIn::ALL {
        tools.insert(tool.name(), ToolUse::built_in(tool));
    }
    for (name, settings) in &config.tools {
        tools.insert(name, tool(config, settings, secrets));
    }
    tools
}

/// A tool with its secrets.
fn tool(config: &Config, settings: &config::Tool, secrets: Option<&Secrets>) -> ToolUse {
    let source = match &settings.kind {
        ToolKind::BuiltIn(tool) => ToolSource::BuiltIn(*tool),
        ToolKind::Http {
            settings,
            secret_headers,
        } => ToolSource::Http(request(settings, secret_headers, secrets)),
        ToolKind::Command {
            settings,
            secrets: variables,
        } => ToolSource::Command(Arc::new(CommandTool {
            settings: (**settings).clone(),
            program: program(config, &settings.program, variables, secrets),
        })),
    };
    ToolUse {
        source,
        limits: settings.limits,
        allow_people: settings.allow_people.clone(),
        approval: settings.approval.clone(),
    }
}

/// A request with its secrets.
fn request(
    settings: &HttpToolSettings,
    secret_headers: &[SecretHeader],
    secrets: Option<&Secrets>,
) -> Arc<HttpTool> {
    let header = |header: &SecretHeader| {
        let secret = secrets?.get(&header.secret).expose_secret();
        let value = SecretString::from(format!("{}{secret}", header.prefix));
        Some((header.name.clone(), value))
    };
    Arc::new(HttpTool {
        settings: settings.clone(),
        secret_headers: secret_headers.iter().filter_map(header).collect(),
    })
}

/// The tools of a server that an agent names: `files__*`, or `files__read`.
fn server_tools(config: &Config, servers: &McpServers, name: &str) -> Option<ToolUse> {
    let (server, _) = name.split_once("__")?;
    let settings = config.mcp.get(server)?;
    Some(ToolUse {
        source: ToolSource::Mcp(McpUse {
            server: servers.get(server)?,
            name: name.to_owned(),
        }),
        limits: settings.limits,
        allow_people: settings.allow_people.clone(),
        approval: settings.approval.clone(),
    })
}

/// The servers of tools with their secrets.
#[must_use]
pub fn servers(config: &Config, secrets: Option<&Secrets>) -> Vec<McpConfigured> {
    let configured = |server: &config::McpServer| McpConfigured {
        settings: server.settings.clone(),
        program: match &server.settings.place {
            McpPlace::Program(settings) => {
                Some(program(config, settings, &server.secrets, secrets))
            }
            McpPlace::Socket(_) | McpPlace::Http { .. } => None,
        },
        bearer: server.bearer.as_ref().and_then(|bearer| {
            let secret = secrets?.get(bearer).expose_secret();
            Some(SecretString::from(secret))
        }),
    };
    config.mcp.values().map(configured).collect()
}

/// The folder in which programs get empty folders of their own.
#[must_use]
pub fn program_folders(config: &Config) -> PathBuf {
    config.daemon.data_dir.join("tools")
}

/// A program with its secrets.
fn program(
    config: &Config,
    settings: &ProgramSettings,
    variables: &[SecretVariable],
    secrets: Option<&Secrets>,
) -> Program {
    let secret = |variable: &SecretVariable| {
        let secret = secrets?.get(&variable.secret).expose_secret();
        Some((variable.name.clone(), SecretString::from(secret)))
    };
    Program {
        settings: settings.clone(),
        secrets: variables.iter().filter_map(secret).collect(),
        folders: program_folders(config),
    }
}

/// The collections that an agent may search, each with the chats where it may.
fn knowledge_of(
    config: &Config,
    agent: &config::Agent,
) -> BTreeMap<String, Option<BTreeSet<ChatName>>> {
    let named = agent.settings.knowledge.iter();
    let configured = named.filter_map(|name| config.knowledge.get(name));
    configured
        .map(|it| (it.name.clone(), it.chats.clone()))
        .collect()
}

/// The collections of documents, with the programs that read them.
#[must_use]
pub fn collections(config: &Config) -> Vec<Collection> {
    let collection = |settings: &CollectionSettings| Collection {
        settings: settings.clone(),
        pdf: settings
            .pdf
            .as_ref()
            .map(|settings| program(config, settings, &[], None)),
    };
    config.knowledge.values().map(collection).collect()
}

fn model_use(model: &config::Model, config: &Config) -> ModelUse {
    ModelUse {
        currency: config.currency.clone(),
        max_output_tokens: model.max_output_tokens,
        name: model.name.clone(),
        max_parallel: model.settings.max_parallel,
        prices: model.prices,
    }
}

/// The key of reports of tokens that belong together: the model behind a name may be changed, and two names may stand
/// for one model at two servers.
fn model_key(settings: &config::Model) -> String {
    let (name, provider) = (&settings.name, settings.provider.name());
    if settings.model.is_empty() {
        format!("{name} ({provider})")
    } else {
        format!("{name} ({provider}/{})", settings.model)
    }
}

/// The counter of that name; the configuration check refuses names that this build lacks.
fn counter(name: config::CounterName) -> &'static dyn TokenCounter {
    counter_named(name.name()).unwrap_or(&ClassEstimate)
}

fn model(
    settings: &config::Model,
    secrets: Option<&Secrets>,
    http: &reqwest::Client,
) -> Result<Arc<dyn Model>, WiringError> {
    llm::build(&model_settings(settings, secrets), http.clone()).map_err(|cause| {
        WiringError::Model {
            model: settings.name.clone(),
            cause,
        }
    })
}

/// Whether the provider of a model can be reached and accepts its key. Costs nothing.
///
/// # Errors
/// The setting to change.
pub async fn model_reach(
    settings: &config::Model,
    secrets: &Secrets,
) -> Result<llm::ProviderReach, WiringError> {
    let http = model_client()?;
    let reach = llm::reach(&model_settings(settings, Some(secrets)), &http).await;
    reach.map_err(|cause| WiringError::Model {
        model: settings.name.clone(),
        cause,
    })
}

/// The same, and the names of the models that the provider lists.
///
/// # Errors
/// As for [`model_reach`].
pub async fn model_names(
    settings: &config::Model,
    secrets: &Secrets,
) -> Result<(llm::ProviderReach, Vec<String>), WiringError> {
    let http = model_client()?;
    let settings_of = model_settings(settings, Some(secrets));
    let reach = llm::reach_and_names(&settings_of, &http).await;
    reach.map_err(|cause| WiringError::Model {
        model: settings.name.clone(),
        cause,
    })
}

fn model_settings(model: &config::Model, secrets: Option<&Secrets>) -> llm::ModelSettings {
    // Without secrets no provider is asked: a model that needs none takes its place.
    let provider = match secrets {
        Some(_) => model.provider,
        None => llm::Provider::Offline,
    };
    let settings = &model.settings;
    let key = settings.api_key.as_ref().zip(secrets);
    llm::ModelSettings {
        provider,
        api: settings.api,
        model: model.model.clone(),
        base_url: settings.base_url.clone(),
        api_key: key.map(|(key, secrets)| secrets.get(key).clone()),
        timeout_ms: settings.timeout_s.0.saturating_mul(1_000),
        max_output_tokens: model.max_output_tokens,
        temperature: settings.temperature,
        reasoning_effort: settings.reasoning_effort,
        context_limit: settings.context_limit.map(|limit| limit as usize),
        retries: settings.retries,
        stream: settings.stream,
    }
}

/// The HTTP client for models. Time-outs are set per model; nothing is retried below.
fn model_client() -> Result<reqwest::Client, WiringError> {
    let tls = http_tls().map_err(|cause| WiringError::Tls { cause })?;
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .connect_timeout(Duration::from_secs(10))
        .retry(reqwest::retry::never())
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("vocative/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|cause| WiringError::ModelClient {
            cause: cause.without_url(),
        })
}

/// The policy of an identified channel.
#[must_use]
pub fn policy(
    config: &Config,
    channel: &config::Channel,
    account: AccountId,
    identity: Identity,
) -> ChannelPolicy {
    let serving = config.agents_for_channel(channel);
    let default_agent = default_agent(channel, &serving);
    let agents = serving
        .iter()
        .map(|agent| agent_policy(agent, agent.name == default_agent, &identity))
        .collect();
    let access = &channel.access;
    let platform = channel.platform.facts();
    ChannelPolicy {
        channel: channel.name.clone(),
        account,
        identity,
        agents,
        default_agent,
        allow_chats: AllowList::new(access.allow_chats.clone()),
        allow_people: AllowList::new(access.allow_people.clone()),
        admins: access.admins.clone(),
        has_pairing: access.has_pairing,
        paired: Default::default(),
        serves_strangers: access.serves_strangers,
        serves_guests: access.serves_guests,
        allow_bots: AllowList::new(access.allow_bots.clone()),
        thread_policy: channel.thread_policy,
        answers_in_threads: channel.answers_in_threads,
        commands: channel.commands.clone(),
        chat_overlaps: channel.chat_overlaps.clone(),
        manners: channel.manners.clone(),
        has_agent_view: channel.agent_view.is_some(),
        tells_privately: platform.tells_privately,
        has_mentioned_commands: platform.has_mentioned_commands,
        limits: Limits {
            runs_per_hour_person: channel.limits.max_runs_per_hour_person,
            runs_per_hour_chat: channel.limits.max_runs_per_hour_chat,
            tokens_per_day: channel.limits.tokens_per_day,
            tokens_per_day_person: channel.limits.tokens_per_day_person,
            cost_micros_per_day: channel.limits.cost_micros_per_day,
            cost_micros_per_day_person: channel.limits.cost_micros_per_day_person,
            max_trigger_age_ms: millis(channel.max_trigger_age_ms),
            album_wait_ms: millis(config.capture.album_wait_ms),
            inbound_text_max_bytes: config.capture.inbound_text_max_bytes,
        },
    }
}

/// The commands that people of a channel are told about.
#[must_use]
pub fn announcement(config: &Config, channel: &str) -> Announcement {
    let Some(channel) = config.channels.get(channel) else {
        return Announcement::default();
    };
    let asking = channel.commands.iter().map(|name| Announced {
        name: name.clone(),
        description: channel.manners.language.command_ask(),
        audience: Audience::Everybody,
    });
    let mut commands: Vec<Announced> = asking.collect();
    if channel.manners.commands {
        let own = CommandName::ALL.iter();
        commands.extend(own.map(|&name| Announced {
            name: name.name().to_owned(),
            description: name.description(channel.manners.language),
            audience: audience(name, channel),
        }));
    }
    Announcement {
        commands,
        admins: channel.access.admins.clone(),
    }
}

/// The people to whom a command is announced; `judging::commands` in the core refuses it to others.
fn audience(name: CommandName, channel: &config::Channel) -> Audience {
    match channel.manners.admins_only.contains(&name) {
        true => Audience::Admins,
        false => name.audience(),
    }
}

/// The configured default, else the first agent that serves the channel.
fn default_agent(channel: &config::Channel, serving: &[&config::Agent]) -> AgentName {
    channel
        .default_agent
        .clone()
        .or_else(|| serving.first().map(|agent| agent.name.clone()))
        .expect("a checked channel is served by an agent")
}

/// Platform identities learnt at start join the default agent's configured names.
fn agent_policy(agent: &config::Agent, is_default: bool, identity: &Identity) -> AgentPolicy {
    let mut aliases: Vec<String> = agent.names().into_iter().map(str::to_owned).collect();
    if is_default {
        aliases.push(identity.display_name.clone());
        aliases.extend(identity.username.clone());
    }
    AgentPolicy {
        name: agent.name.clone(),
        display_name: agent.display_name.clone(),
        aliases,
        overlap: agent.settings.overlap,
        presence: agent.presence.clone(),
        models: agent.settings.models.clone(),
    }
}

/// How delivery treats the posts of a channel.
#[must_use]
pub fn delivery(config: &Config, channel: &config::Channel) -> DeliveryPolicy {
    DeliveryPolicy {
        on_unknown: channel.on_unknown,
        on_undecided: channel.on_undecided,
        look_first_ms: millis(config.delivery.first_look_ms),
        look_back_ms: millis(config.delivery.look_back_ms),
        park_keep_ms: millis(config.delivery.park_keep_ms),
        max_parts: config.delivery.max_parts,
        mention_people: channel.mention_people,
        language: channel.manners.language,
        live: LivePolicy {
            live: channel.live,
            delay_ms: config.delivery.live_delay_ms,
            interval_ms: config.delivery.live_interval_ms,
        },
        ..DeliveryPolicy::default()
    }
}

/// How prompts for a model show files.
fn files_in_prompts(files: &config::Files, model: &config::Model) -> FilesInPrompts {
    FilesInPrompts {
        takes_images: model.settings.images,
        limits: FileLimits {
            text_max_tokens: files.text_max_tokens,
            images_max: files.images_max,
            earlier_max: usize::MAX,
        },
        recent_turns: files.recent_turns,
        image_bytes_max: files.image_max_bytes,
        wait_ms: files.wait_s * 1_000,
    }
}

/// The transcriber of voice notes, if configured.
///
/// # Errors
/// [`WiringError`] if its HTTP client can't be made.
pub fn transcriber(config: &Config, secrets: &Secrets) -> Result<Option<Transcriber>, WiringError> {
    let Some(settings) = &config.transcription else {
        return Ok(None);
    };
    let key = settings.api_key.as_ref();
    Ok(Some(Transcriber {
        http: model_client()?,
        base_url: settings.base_url.clone(),
        model: settings.model.clone(),
        api_key: key.map(|key| secrets.get(key).clone()),
        timeout: Duration::from_millis(settings.timeout_ms),
    }))
}

/// The client that makes vectors of messages, if configured.
///
/// # Errors
/// [`WiringError`] if its HTTP client can't be made, or storage refuses.
pub async fn embeddings(
    config: &Config,
    secrets: &Secrets,
    store: &Store,
    clock: &Clock,
) -> Result<Option<Arc<Embeddings>>, WiringError> {
    let Some(settings) = &config.embeddings else {
        return Ok(None);
    };
    let name = match settings.dimensions {
        Some(dimensions) => format!("{}, {dimensions} dimensions", settings.model),
        None => settings.model.clone(),
    };
    let model = store.choose_embedding_model(name).await;
    let key = settings.api_key.as_ref();
    Ok(Some(Arc::new(Embeddings {
        client: EmbeddingClient {
            http: model_client()?,
            base_url: settings.base_url.clone(),
            model: settings.model.clone(),
            dimensions: settings.dimensions,
            api_key: key.map(|key| secrets.get(key).clone()),
        },
        store: store.only(),
        model: model.map_err(|cause| WiringError::Store { cause })?,
        tokens_per_day: settings.tokens_per_day,
        clock: Arc::clone(clock),
    })))
}

/// Which files are fetched.
#[must_use]
pub fn files_policy(config: &Config) -> FilesPolicy {
    let files = &config.files;
    let kind = |name: &config::FileKindName| match name {
        config::FileKindName::Text => FileKind::Text,
        config::FileKindName::Image => FileKind::Image,
        config::FileKindName::Voice => FileKind::Voice,
        config::FileKindName::Other => FileKind::Other,
    };
    FilesPolicy {
        is_on: files.fetch,
        kinds: files.kinds.iter().map(kind).collect(),
        bytes_max: files.max_bytes,
        total_bytes_max: files.max_total_mib << 20,
    }
}

/// The limits of reading back.
#[must_use]
pub fn bounds(config: &Config) -> CatchupBounds {
    let capture = &config.capture;
    CatchupBounds {
        catch_up_days: capture.catch_up_days,
        catch_up_messages_max: capture.catch_up_messages_max,
        backfill_days: capture.backfill_days,
        backfill_messages_max: capture.backfill_messages_max,
        deaf_after_ms: i64::from(capture.deaf_after_s) * 1_000,
    }
}

fn millis(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX / 4)
}
