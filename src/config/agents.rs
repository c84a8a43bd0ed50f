//! Checks of `[agents]`: names must not clash, and models, tools and channels must exist.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::answer_form::resolve_form;
use super::approvals::{Shapes, resolve_approval};
use super::instructions::resolve_instructions;
use super::platforms::PLATFORMS;
use super::presence::resolve_presence;
use super::resolve::Review;
use super::settings::{
    Agent, AgentSettings, Channel, ChannelChoice, FirstTool, Model, OFFLINE_SUMMARIES,
};
use super::shape::PromptShape;
use super::skills::check_skills;
use super::template::Template;
use super::tools::is_known_tool;
use crate::llm::Provider;
use crate::tools::{
    ASK_AGENT, ASK_HUMAN, ApprovalSettings, BuiltIn, KNOWLEDGE_SEARCH, READ_SKILL, names,
};
use vocative_core::ids::AgentName;
use vocative_core::options::{AssemblerOptions, HistoryShare, MemoryMode, Profile, RecallMode};
use vocative_core::prompting::{Example, TokenCounter as _, Utf16Div4};

/// The names that agents may refer to.
#[derive(Clone, Copy)]
pub(super) struct Names<'a> {
    /// Channels.
    pub channels: &'a [&'a str],
    /// Tools.
    pub tools: &'a [&'a str],
    /// Collections of documents.
    pub collections: &'a [&'a str],
    /// Folders of skills.
    pub skill_folders: &'a [PathBuf],
}

/// Checks all agents. The result is to be used only if no problem was found.
pub(super) fn resolve_agents(
    shapes: BTreeMap<String, AgentSettings>,
    models: &BTreeMap<String, Model>,
    names: Names<'_>,
    review: &mut Review<'_>,
) -> BTreeMap<AgentName, Agent> {
    let Names {
        channels,
        tools,
        collections,
        skill_folders,
    } = names;
    check_likenesses(&shapes, review);
    shapes
        .into_iter()
        .map(|(name, shape)| {
            let agent = resolve_agent(&name, shape, channels, review);
            check_model(&agent, models, review);
            check_size(&agent, models, review);
            check_channels(&agent, channels, review);
            check_own_names(&agent, "agents", review);
            check_tools(&agent, tools, review);
            check_knowledge(&agent, collections, review);
            check_skills(&agent, skill_folders, review);
            (agent.name.clone(), agent)
        })
        .collect()
}

/// Checks `like`: it must name another agent that exists and has no `like` itself.
fn check_likenesses(shapes: &BTreeMap<String, AgentSettings>, review: &mut Review<'_>) {
    for (name, shape) in shapes {
        let Some(like) = &shape.like else { continue };
        let key = format!("agents.{name}.like");
        match shapes.get(like) {
            None => {
                let known: Vec<&str> = shapes.keys().map(String::as_str).collect();
                review.dangling(&key, "agents", like, &known);
            }
            Some(_) if like == name => review.problem(&key, "is the agent itself"),
            Some(model) if model.like.is_some() => {
                let what = format!("\"{like}\" is itself like another agent; name that one");
                review.problem(&key, what);
            }
            Some(_) => {}
        }
    }
}

fn resolve_agent(
    name: &str,
    mut settings: AgentSettings,
    channels: &[&str],
    review: &mut Review<'_>,
) -> Agent {
    for list in [
        &mut settings.models,
        &mut settings.tools,
        &mut settings.stop_after_tools,
        &mut settings.stop_after_failed_tools,
        &mut settings.hooks,
        &mut settings.knowledge,
        &mut settings.skills,
        &mut settings.delegates,
    ] {
        keep_each_once(list);
    }
    settings.purpose = settings.purpose.trim().to_owned();
    check_examples(name, &settings.examples, review);
    let answer_form = resolve_form(name, &settings, review);
    let situation = Template::parse(&settings.situation).unwrap_or_else(|what| {
        review.problem(&format!("agents.{name}.situation"), what);
        Template::default()
    });
    let memory = memory(&settings);
    let delegates = settings.delegates.iter();
    Agent {
        // The schema check has already refused invalid names.
        name: AgentName::trusted(name),
        display_name: settings
            .display_name
            .clone()
            .unwrap_or_else(|| spoken(name)),
        instructions: resolve_instructions(name, &settings, answer_form.as_ref(), review),
        situation,
        channels: match settings.channels.iter().any(|channel| channel == "*") {
            true => ChannelChoice::All,
            false => ChannelChoice::Named(settings.channels.clone()),
        },
        tools: tools_of(&settings, memory),
        first_tool: first_tool(&settings.tool_choice),
        answer_form,
        presence: resolve_presence(name, &settings.enabled, channels, review),
        experts: experts(name, &settings.experts, review),
        delegates: delegates.map(AgentName::trusted).collect(),
        approval: approval(name, &settings, channels, review),
        prompt: AssemblerOptions {
            recall: recall(&settings),
            recall_max_tokens: settings.recall_max_tokens,
            memory,
            history: history(name, &settings, review),
            ..prompt_options(name, &settings.prompt, review)
        },
        network: None,
        settings,
    }
}

fn approval(
    name: &str,
    settings: &AgentSettings,
    channels: &[&str],
    review: &mut Review<'_>,
) -> ApprovalSettings {
    let shapes = Shapes {
        approval: settings.approval.as_ref(),
        approvers: settings.approvers.as_ref(),
        expires_s: settings.approval_expires_s.as_ref(),
        after_untrusted: settings.after_untrusted,
    };
    resolve_approval(&format!("agents.{name}"), &shapes, channels, review)
}

/// The most examples of an agent.
const EXAMPLES_MAX: usize = 8;

fn check_examples(name: &str, examples: &[Example], review: &mut Review<'_>) {
    let key = format!("agents.{name}.examples");
    if examples.len() > EXAMPLES_MAX {
        let what = format!(
            "has {} examples; {EXAMPLES_MAX} is the most",
            examples.len()
        );
        review.problem(&key, what);
    }
    let lacks_some = |it: &Example| it.question.trim().is_empty() || it.answer.trim().is_empty();
    if let Some(n) = examples.iter().position(lacks_some) {
        let what = format!("has no question or no answer in its entry {}", n + 1);
        review.problem(&key, what);
    }
}

fn first_tool(choice: &str) -> FirstTool {
    match choice {
        "auto" => FirstTool::Free,
        "required" => FirstTool::Any,
        "none" => FirstTool::Never,
        _ => FirstTool::Named(choice.to_owned()),
    }
}

fn history(name: &str, settings: &AgentSettings, review: &mut Review<'_>) -> HistoryShare {
    HistoryShare::parse(&settings.history).unwrap_or_else(|what| {
        review.problem(&format!("agents.{name}.history"), what);
        HistoryShare::default()
    })
}

/// How the agent recalls. With the `toolpack` profile, nothing is recalled automatically.
fn recall(settings: &AgentSettings) -> RecallMode {
    match (settings.recall, settings.prompt.profile) {
        (RecallMode::Auto, Profile::Toolpack) => RecallMode::Tool,
        (mode, _) => mode,
    }
}

/// How the agent remembers. With the `toolpack` profile it does not.
fn memory(settings: &AgentSettings) -> MemoryMode {
    match settings.prompt.profile {
        Profile::Toolpack => MemoryMode::Off,
        Profile::Vocative => settings.memory,
    }
}

/// The rooms of experts: one for each channel.
fn experts(name: &str, rooms: &[String], review: &mut Review<'_>) -> BTreeMap<String, String> {
    let key = format!("agents.{name}.experts");
    let mut experts = BTreeMap::new();
    for room in rooms {
        match room.split_once('/') {
            Some((channel, chat)) if !channel.is_empty() && !chat.is_empty() => {
                if experts
                    .insert(channel.to_owned(), chat.to_owned())
                    .is_some()
                {
                    review.problem(&key, format!("names two rooms of channel \"{channel}\""));
                }
            }
            _ => review.problem(&key, format!("\"{room}\" is no room as CHANNEL/CHAT")),
        }
    }
    experts
}

/// Checks rooms of experts: the agent must serve the account, messages in the room must be allowed, and an agent with
/// `ask_human` must have a room.
pub(super) fn check_experts(
    agents: &BTreeMap<AgentName, Agent>,
    channels: &BTreeMap<String, Channel>,
    review: &mut Review<'_>,
) {
    for agent in agents.values() {
        let key = format!("agents.{}.experts", agent.name);
        for (name, chat) in &agent.experts {
            let served = channels.get(name).filter(|_| agent.channels.has(name));
            let Some(channel) = served else {
                let what = format!(
                    "\"{name}/{chat}\" is a room of an account that {} does not serve: a question is asked in the \
                     account that it came from",
                    agent.name
                );
                review.problem(&key, what);
                continue;
            };
            let allowed = &channel.access.allow_chats;
            if !allowed.iter().any(|it| it == "*" || it == chat) {
                let what = format!(
                    "\"{name}/{chat}\" is not in that channel's allow_chats, so no answer there would be heard"
                );
                review.problem(&key, what);
            }
        }
        let may_ask = agent.tools.iter().any(|tool| tool == ASK_HUMAN);
        if may_ask && agent.experts.is_empty() {
            review.problem(&key, "is not set, and the tool ask_human asks there");
        }
    }
}

/// Checks that the agent's tools exist.
fn check_tools(agent: &Agent, known: &[&str], review: &mut Review<'_>) {
    let key = format!("agents.{}.tools", agent.name);
    for tool in &agent.tools {
        if !is_known_tool(tool, known) {
            review.dangling(&key, "tools", tool, known);
        }
        let is_of_memory = BuiltIn::OF_MEMORY.iter().any(|it| it.name() == tool);
        if is_of_memory && agent.prompt.memory == MemoryMode::Off {
            review.problem(
                &key,
                format!("{tool} is there with memory = \"tools\" or \"auto\" only"),
            );
        }
    }
    check_stops(agent, review);
    check_first_tool(agent, review);
}

/// Checks that the tool to call first exists, and that a step is left for the answer.
fn check_first_tool(agent: &Agent, review: &mut Review<'_>) {
    let key = format!("agents.{}.tool_choice", agent.name);
    let tools = &agent.tools;
    match &agent.first_tool {
        FirstTool::Free | FirstTool::Never => {}
        FirstTool::Named(tool) if !tools.iter().any(|it| names(it, tool)) => {
            let what = format!(
                "\"{tool}\" is neither \"auto\", \"required\" or \"none\" nor among the agent's tools"
            );
            review.problem(&key, what);
        }
        FirstTool::Any if tools.is_empty() => {
            review.problem(&key, "asks for a tool, and the agent has none");
        }
        FirstTool::Any | FirstTool::Named(_) if agent.settings.max_steps == 1 => {
            review.problem(
                &key,
                "needs max_steps of 2 or more: the last step is for the answer",
            );
        }
        FirstTool::Any | FirstTool::Named(_) => {}
    }
}

/// Checks that tools whose calls end a run are among the agent's tools.
fn check_stops(agent: &Agent, review: &mut Review<'_>) {
    let has = |stop: &str| agent.tools.iter().any(|tool| names(tool, stop));
    for (setting, stops) in [
        ("stop_after_tools", &agent.settings.stop_after_tools),
        (
            "stop_after_failed_tools",
            &agent.settings.stop_after_failed_tools,
        ),
    ] {
        let key = format!("agents.{}.{setting}", agent.name);
        for stop in stops.iter().filter(|stop| !has(stop)) {
            let what = format!(
                "\"{stop}\" is not among the agent's tools, so no call of it would end a run"
            );
            review.problem(&key, what);
        }
    }
}

/// Checks that the agent's collections exist, and that an agent that can search documents has a collection.
fn check_knowledge(agent: &Agent, known: &[&str], review: &mut Review<'_>) {
    let key = format!("agents.{}.knowledge", agent.name);
    for name in agent
        .settings
        .knowledge
        .iter()
        .filter(|name| !known.contains(&name.as_str()))
    {
        review.dangling(&key, "knowledge", name, known);
    }
    if agent.settings.knowledge.is_empty()
        && agent.tools.iter().any(|tool| tool == KNOWLEDGE_SEARCH)
    {
        review.problem(&key, "is empty, and the tool knowledge_search searches it");
    }
}

/// The agent's tools, including those that follow from other settings: `knowledge`, `skills`, `delegates` and `memory`.
fn tools_of(settings: &AgentSettings, memory: MemoryMode) -> Vec<String> {
    let mut tools = settings.tools.clone();
    for (uses, tool) in [
        (!settings.knowledge.is_empty(), KNOWLEDGE_SEARCH),
        (!settings.skills.is_empty(), READ_SKILL),
        (!settings.delegates.is_empty(), ASK_AGENT),
    ] {
        tools.extend(uses.then(|| tool.to_owned()));
    }
    if memory != MemoryMode::Off {
        tools.extend(BuiltIn::OF_MEMORY.map(|tool| tool.name().to_owned()));
    }
    keep_each_once(&mut tools);
    tools
}

fn keep_each_once(list: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    list.retain(|it| seen.insert(it.clone()));
}

/// A name in a form for people: `support_bot` becomes "Support bot".
pub(super) fn spoken(name: &str) -> String {
    let mut letters = name.chars().map(|c| if c == '_' { ' ' } else { c });
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}

fn prompt_options(name: &str, shape: &PromptShape, review: &mut Review<'_>) -> AssemblerOptions {
    let key = |setting: &str| format!("agents.{name}.prompt.{setting}");
    let written = AssemblerOptions {
        addressed_only: shape.addressed_only,
        max_turns_to_load: shape.max_turns_to_load,
        time_window_minutes: shape.time_window_minutes,
        scope: shape.scope,
        rolling_summary_threshold: shape.rolling_summary_threshold,
        preserve_recent_turns: shape.preserve_recent_turns,
        token_budget: shape.token_budget,
        trigger_max_tokens: shape.trigger_max_tokens,
        parent_turns: shape.parent_turns,
        ambient_turns: shape.ambient_turns,
        profile: Profile::Vocative,
        ..AssemblerOptions::default()
    };
    match shape.profile {
        Profile::Vocative => {
            if shape.trigger_max_tokens > shape.token_budget {
                review.warn(
                    &key("trigger_max_tokens"),
                    format!(
                        "{} is over token_budget = {}, so a long message leaves no room for history",
                        shape.trigger_max_tokens, shape.token_budget
                    ),
                );
            }
            written
        }
        Profile::Toolpack => {
            // A setting that is written overrides the profile's value.
            let profile = AssemblerOptions::toolpack();
            let is_written = |setting: &str| review.origins.of(&key(setting)).is_some();
            let pick =
                |setting, own, of_profile| if is_written(setting) { own } else { of_profile };
            AssemblerOptions {
                preserve_recent_turns: pick(
                    "preserve_recent_turns",
                    written.preserve_recent_turns,
                    profile.preserve_recent_turns,
                ),
                trigger_max_tokens: pick(
                    "trigger_max_tokens",
                    written.trigger_max_tokens,
                    profile.trigger_max_tokens,
                ),
                token_budget: pick("token_budget", written.token_budget, profile.token_budget),
                parent_turns: pick("parent_turns", written.parent_turns, profile.parent_turns),
                profile: profile.profile,
                ..written
            }
        }
    }
}

fn check_model(agent: &Agent, models: &BTreeMap<String, Model>, review: &mut Review<'_>) {
    let own = ("model", std::slice::from_ref(&agent.settings.model));
    for (setting, names) in [own, ("models", &agent.settings.models)] {
        let key = format!("agents.{}.{setting}", agent.name);
        for name in names.iter().filter(|name| !models.contains_key(*name)) {
            let known: Vec<&str> = models.keys().map(String::as_str).collect();
            review.dangling(&key, "models", name, &known);
        }
    }
    if let Some(name) = &agent.settings.summary_model
        && name != OFFLINE_SUMMARIES
        && !models.contains_key(name)
    {
        let key = format!("agents.{}.summary_model", agent.name);
        let mut known: Vec<&str> = models.keys().map(String::as_str).collect();
        known.push(OFFLINE_SUMMARIES);
        review.dangling(&key, "models", name, &known);
    }
    check_memory_model(agent, models, review);
}

/// Checks that an agent's instructions and examples leave room for a question in the contexts of its models, where
/// these are known. Tokens are estimated: a few tokens more or less do not matter here.
fn check_size(agent: &Agent, models: &BTreeMap<String, Model>, review: &mut Review<'_>) {
    let examples = agent.settings.examples.iter();
    let examples: usize = examples.map(|it| it.tokens(&Utf16Div4)).sum();
    let needed = examples + Utf16Div4.count(&agent.instructions.source()) as usize;
    for model in std::iter::once(&agent.settings.model).chain(&agent.settings.models) {
        let limits = models
            .get(model)
            .and_then(|model| Some((model.settings.context_limit?, model.max_output_tokens)));
        let Some((limit, output)) = limits else {
            continue;
        };
        let room = limit.saturating_sub(output) as usize;
        if needed >= room {
            let setting = match examples * 2 > needed {
                true => "examples",
                false => "instructions",
            };
            let what = format!(
                "instructions and examples have about {needed} tokens, and the context of \"{model}\" has room for \
                 {room} beside its answer"
            );
            review.problem(&format!("agents.{}.{setting}", agent.name), what);
        }
    }
}

/// Checks that the model that reads conversations for memory exists, and is not the offline model.
fn check_memory_model(agent: &Agent, models: &BTreeMap<String, Model>, review: &mut Review<'_>) {
    let key = format!("agents.{}.memory_model", agent.name);
    let named = agent.settings.memory_model.as_ref();
    if let Some(name) = named.filter(|name| !models.contains_key(*name)) {
        let known: Vec<&str> = models.keys().map(String::as_str).collect();
        return review.dangling(&key, "models", name, &known);
    }
    let summaries = agent.settings.summary_model.as_ref();
    let summaries = summaries.filter(|name| *name != OFFLINE_SUMMARIES);
    let name = named.or(summaries).unwrap_or(&agent.settings.model);
    let is_offline = |model: &Model| model.provider == Provider::Offline;
    if agent.prompt.memory == MemoryMode::Auto && models.get(name).is_some_and(is_offline) {
        let what =
            format!("memory = \"auto\" needs a model that can read, and \"{name}\" only repeats");
        review.problem(&key, what);
    }
}

fn check_channels(agent: &Agent, channels: &[&str], review: &mut Review<'_>) {
    let key = format!("agents.{}.channels", agent.name);
    let ChannelChoice::Named(names) = &agent.channels else {
        return;
    };
    for name in names
        .iter()
        .filter(|name| !channels.contains(&name.as_str()))
    {
        let mut tables = PLATFORMS.iter().map(|platform| platform.table(name));
        let is_faulty = tables.any(|table| review.faulty.contains(&table));
        if !is_faulty {
            review.dangling(&key, "channels", name, channels);
        }
    }
}

/// Checks that the names of an agent or network are not empty or repeated. `table`: the table they are written in.
pub(super) fn check_own_names(agent: &Agent, table: &str, review: &mut Review<'_>) {
    if agent.display_name.trim().is_empty() {
        review.problem(&format!("{table}.{}.display_name", agent.name), "is empty");
    }
    let key = format!("{table}.{}.aliases", agent.name);
    let mut seen = BTreeSet::new();
    for alias in &agent.settings.aliases {
        if alias.trim().is_empty() {
            review.problem(
                &key,
                "an alias is empty, so every message would open with it",
            );
        } else if !seen.insert(alias.to_lowercase()) {
            review.problem(
                &key,
                format!("\"{alias}\" is there twice (case doesn't count)"),
            );
        }
    }
}

/// Checks that agents that serve the same channel have different names.
pub(super) fn check_clashes(agents: &BTreeMap<AgentName, Agent>, review: &mut Review<'_>) {
    let all: Vec<&Agent> = agents.values().collect();
    for (n, later) in all.iter().enumerate() {
        for earlier in all.iter().take(n).filter(|e| share_a_channel(e, later)) {
            for name in later.names() {
                let folded = name.to_lowercase();
                if let Some(same) = earlier
                    .names()
                    .into_iter()
                    .find(|n| n.to_lowercase() == folded)
                {
                    report_clash((later, name), (earlier, same), review);
                }
            }
        }
    }
}

/// Reports a clash at the setting that can be changed: an agent's key in its table can't.
fn report_clash(later: (&Agent, &str), earlier: (&Agent, &str), review: &mut Review<'_>) {
    let setting = |(agent, name): (&Agent, &str)| {
        let is_alias = agent.settings.aliases.iter().any(|alias| alias == name);
        let is_display_name = agent.display_name == name;
        let setting = if is_alias { Some("aliases") } else { None };
        setting.or(is_display_name.then_some("display_name"))
    };
    let (here, there) = match setting(later) {
        Some(_) => (later, earlier),
        None => (earlier, later),
    };
    let (agent, name) = here;
    let table = if agent.network.is_some() {
        "networks"
    } else {
        "agents"
    };
    review.advise(
        &format!(
            "{table}.{}.{}",
            agent.name,
            setting(here).unwrap_or("display_name")
        ),
        format!(
            "\"{name}\" also addresses the agent {} (as \"{}\"), and both serve the same channels",
            there.0.name, there.1
        ),
        Some("give one of them another name, or channels of its own".to_owned()),
    );
}

fn share_a_channel(a: &Agent, b: &Agent) -> bool {
    match (&a.channels, &b.channels) {
        (ChannelChoice::Named(names), other) | (other, ChannelChoice::Named(names)) => {
            names.iter().any(|name| other.has(name))
        }
        (ChannelChoice::All, ChannelChoice::All) => true,
    }
}
