//! Checks of `[channels]`: tokens, who is served, and which agent answers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::manners::MannersShape;
use super::platforms::{PLATFORMS, PlatformDraft, with_streams};
use super::resolve::micros;
use super::resolve::{Inherited, Review};
use super::secret::SecretRef;
use super::settings::{
    Access, Agent, AgentView, Channel, Limits, PlatformId, ReplyPrefix, RetentionDays,
};
use super::shape::{CHAT_PATTERN, ChatPromptShape, ChatShape};
use super::template::Template;
use super::tools::is_known_tool;
use vocative_core::ids::AgentName;
use vocative_core::judging::policy::ThreadPolicy;
use vocative_core::options::{OptionOverrides, Profile};
use vocative_core::sending::policy::{Live, OnUndecided, OnUnknown};
use vocative_core::wall_clock::QuietHours;
use vocative_core::words::Language;

/// Checks all channels, given with their tables. The result is to be used only if no problem was found.
pub(super) fn resolve_channels(
    drafts: Vec<(String, ChannelDraft)>,
    agents: &BTreeMap<AgentName, Agent>,
    tools: &[&str],
    inherited: Inherited,
    review: &mut Review<'_>,
) -> BTreeMap<String, Channel> {
    check_names(&drafts, review);
    check_shared_tokens(&drafts, review);
    for (table, draft) in &drafts {
        if draft.serves_nobody() {
            review.warn(
                table,
                "nobody is served yet: list groups in allow_chats and people in allow_people",
            );
        }
    }
    for (table, draft) in &drafts {
        check_chat_tools(table, draft, tools, review);
    }
    drafts
        .into_iter()
        .filter_map(|(table, draft)| {
            let channel = draft.resolve(&table, agents, inherited, review)?;
            Some((channel.name.clone(), channel))
        })
        .collect()
}

/// Checks that the tools of single chats exist.
fn check_chat_tools(table: &str, draft: &ChannelDraft, known: &[&str], review: &mut Review<'_>) {
    for (chat, shape) in &draft.shape.chats {
        for tool in shape.tools.iter().flatten() {
            if !is_known_tool(tool, known) {
                review.dangling(&format!("{table}.chats.{chat}.tools"), "tools", tool, known);
            }
        }
    }
}

/// Checks that no two channels have the same name, and that this program has their adapters.
fn check_names(drafts: &[(String, ChannelDraft)], review: &mut Review<'_>) {
    let names = PLATFORMS.map(|platform| {
        let drafts = drafts.iter().map(|(_, draft)| draft);
        let own = drafts.filter(|draft| draft.platform.facts().name == platform.name);
        own.map(|draft| draft.name.as_str()).collect::<Vec<_>>()
    });
    for (index, platform) in PLATFORMS.into_iter().enumerate() {
        for (earlier, other) in PLATFORMS.into_iter().enumerate().take(index) {
            for name in names[earlier]
                .iter()
                .filter(|name| names[index].contains(name))
            {
                review.problem(
                    &platform.table(name),
                    format!(
                        "a {} channel is called {name}, too; channel names are unique over all platforms",
                        other.title
                    ),
                );
            }
        }
    }
    for (platform, names) in PLATFORMS.into_iter().zip(&names) {
        if !platform.is_built && !names.is_empty() {
            review.problem(
                &format!("channels.{}", platform.name),
                format!(
                    "this program was built without the feature {}",
                    platform.name
                ),
            );
        }
    }
}

/// What channels of every platform have, as it is written. A platform's shape has it beside its own settings.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ChannelShape {
    /// The agent that answers when no alias picks one.
    pub default_agent: Option<String>,
    /// Chats that are served, by id, or `*`.
    pub allow_chats: Vec<PlatformId>,
    /// People who are served, by id, or `*`.
    pub allow_people: Vec<PlatformId>,
    /// Whether whoever is not listed is told a code in a direct chat, with which an operator lets them in there.
    pub pairing: bool,
    /// People who may use admin commands, by id.
    pub admins: Vec<PlatformId>,
    /// Other bots that may address an agent, by id, or `*`.
    pub allow_bots: Vec<PlatformId>,
    /// What counts as a follow-up in a thread.
    pub thread_policy: ThreadPolicy,
    /// Whether an answer starts with its agent's name.
    pub reply_prefix: ReplyPrefix,
    /// Whether `@Name` in an answer tells somebody who spoke in the conversation.
    pub mention_people: bool,
    /// The language of notices, answers to commands and cards. Agents answer in the language that they are asked in.
    pub language: Language,
    /// As in `[capture]`, for this channel.
    #[schemars(range(min = 1, max = 5_256_000))]
    pub max_trigger_age_minutes: Option<u64>,
    /// As in `[delivery]`, for this channel.
    pub on_unknown: Option<OnUnknown>,
    /// As in `[delivery]`, for this channel.
    pub live: Option<Live>,
    /// As in `[limits]`, for this channel.
    pub max_runs_per_hour_person: Option<u32>,
    /// As in `[limits]`, for this channel.
    pub max_runs_per_hour_chat: Option<u32>,
    /// As in `[limits]`, for this channel.
    pub tokens_per_day: Option<u64>,
    /// As in `[limits]`, for this channel.
    pub tokens_per_day_person: Option<u64>,
    /// As in `[limits]`, for this channel.
    #[schemars(range(min = 0.0))]
    pub cost_per_day: Option<f64>,
    /// As in `[limits]`, for this channel.
    #[schemars(range(min = 0.0))]
    pub cost_per_day_person: Option<f64>,
    /// Settings of single chats, by the platform's id of the chat.
    #[serde(default)]
    #[schemars(extend("propertyNames" = { "pattern": CHAT_PATTERN }))]
    pub chats: BTreeMap<String, ChatShape>,
    /// Days for which its data is kept.
    pub retention_days: RetentionDays,
    /// How the bot behaves there.
    pub manners: MannersShape,
}

/// A channel of any platform, as it is written.
pub(super) struct ChannelDraft {
    pub name: String,
    pub shape: ChannelShape,
    pub serves_strangers: bool,
    pub serves_guests: bool,
    pub custom_names: bool,
    pub answers_in_threads: bool,
    pub commands: Vec<String>,
    pub on_undecided: Option<OnUndecided>,
    pub agent_view: Option<AgentView>,
    pub platform: Box<dyn PlatformDraft>,
}

impl ChannelDraft {
    /// Whether no chat, person or admin is listed, and pairing is off.
    fn serves_nobody(&self) -> bool {
        let shape = &self.shape;
        let mut lists = [&shape.allow_chats, &shape.allow_people, &shape.admins].into_iter();
        !shape.pairing && lists.all(Vec::is_empty)
    }

    fn check_live(&self, table: &str, inherited: Inherited, review: &mut Review<'_>) {
        if self.shape.live == Some(Live::Stream) && !self.platform.facts().has_streams {
            review.problem(
                &format!("{table}.live"),
                format!(
                    "\"stream\" is {}'s alone; \"edit\" edits a post, \"auto\" and \"on\" show drafts in \
                     private chats",
                    with_streams().title
                ),
            );
        }
        let live = self.shape.live.unwrap_or(inherited.live);
        let set_ms = inherited.live_interval_ms;
        if let Some((what, least_ms)) = self.platform.live_pace(live)
            && (1..least_ms).contains(&set_ms)
        {
            review.warn(
                "delivery.live_interval_ms",
                format!(
                    "is {set_ms}, which is too fast for {table}: {what} at most every {least_ms} ms. \
                     What comes faster is refused for its rate, and the finished answer waits for \
                     that, too; 0 = each platform's own pace"
                ),
            );
        }
    }

    fn resolve(
        self,
        table: &str,
        agents: &BTreeMap<AgentName, Agent>,
        inherited: Inherited,
        review: &mut Review<'_>,
    ) -> Option<Channel> {
        let default_agent = self.default_agent(table, agents, review);
        let access = self.access(table, review);
        check_commands(table, &self.commands, review);
        let mut manners = self
            .shape
            .manners
            .resolve(table, self.shape.language, review);
        manners.quiet_in = self.quiet_in(table, review);
        let chat_instructions = self.chat_instructions(table, review);
        self.check_live(table, inherited, review);
        self.check_chats(table, agents, review);
        let platform = self.platform.resolve(table, review)?;
        let minutes = self
            .shape
            .max_trigger_age_minutes
            .unwrap_or(inherited.max_trigger_age_minutes);
        Some(Channel {
            name: self.name,
            default_agent,
            access,
            thread_policy: self.shape.thread_policy,
            reply_prefix: self.shape.reply_prefix,
            custom_names: self.custom_names,
            mention_people: self.shape.mention_people,
            answers_in_threads: self.answers_in_threads,
            commands: self.commands,
            max_trigger_age_ms: minutes.saturating_mul(60_000),
            on_unknown: self.shape.on_unknown.unwrap_or(inherited.on_unknown),
            on_undecided: self.on_undecided.unwrap_or(inherited.on_undecided),
            live: self.shape.live.unwrap_or(inherited.live),
            limits: Limits {
                max_runs_per_hour_person: self
                    .shape
                    .max_runs_per_hour_person
                    .unwrap_or(inherited.limits.max_runs_per_hour_person),
                max_runs_per_hour_chat: self
                    .shape
                    .max_runs_per_hour_chat
                    .unwrap_or(inherited.limits.max_runs_per_hour_chat),
                tokens_per_day: self
                    .shape
                    .tokens_per_day
                    .unwrap_or(inherited.limits.tokens_per_day),
                tokens_per_day_person: self
                    .shape
                    .tokens_per_day_person
                    .unwrap_or(inherited.limits.tokens_per_day_person),
                cost_micros_per_day: self
                    .shape
                    .cost_per_day
                    .map_or(inherited.limits.cost_micros_per_day, micros),
                cost_micros_per_day_person: self
                    .shape
                    .cost_per_day_person
                    .map_or(inherited.limits.cost_micros_per_day_person, micros),
            },
            chat_overlaps: self
                .shape
                .chats
                .iter()
                .filter_map(|(chat, shape)| Some((chat.clone(), shape.overlap?)))
                .collect(),
            chat_instructions,
            chat_tools: self
                .shape
                .chats
                .iter()
                .filter_map(|(chat, shape)| Some((chat.clone(), shape.tools.clone()?)))
                .collect(),
            chats: self
                .shape
                .chats
                .into_iter()
                .map(|(chat, shape)| (chat, overrides(&shape.prompt)))
                .collect(),
            retention_days: self.shape.retention_days,
            manners,
            agent_view: self.agent_view,
            platform,
        })
    }

    /// The quiet hours of chats that set their own.
    fn quiet_in(
        &self,
        table: &str,
        review: &mut Review<'_>,
    ) -> BTreeMap<String, Option<QuietHours>> {
        let mut found = BTreeMap::new();
        for (chat, shape) in &self.shape.chats {
            let Some(hours) = &shape.quiet_hours else {
                continue;
            };
            let quiet = QuietHours::read(hours, &self.shape.manners.time_zone);
            if quiet.is_none() && !hours.is_empty() {
                review.advise(
                    &format!("{table}.chats.{chat}.quiet_hours"),
                    format!("\"{hours}\" is no part of a day"),
                    Some(
                        "write \"22:00-07:00\": from and until; \"\" = always answered".to_owned(),
                    ),
                );
            }
            found.insert(chat.clone(), quiet);
        }
        found
    }

    /// The text behind the agents' instructions in single chats.
    fn chat_instructions(
        &self,
        table: &str,
        review: &mut Review<'_>,
    ) -> BTreeMap<String, Template> {
        let mut found = BTreeMap::new();
        for (chat, shape) in &self.shape.chats {
            match shape.instructions.as_deref().map(Template::parse) {
                None => {}
                Some(Ok(template)) => {
                    found.insert(chat.clone(), template);
                }
                Some(Err(what)) => {
                    review.problem(&format!("{table}.chats.{chat}.instructions"), what);
                }
            }
        }
        found
    }

    /// Checks that each table is named by an id that a chat can have, and that its settings fit those of the agents
    /// that serve the chat.
    fn check_chats(
        &self,
        table: &str,
        agents: &BTreeMap<AgentName, Agent>,
        review: &mut Review<'_>,
    ) {
        for (chat, shape) in &self.shape.chats {
            let key = format!("{table}.chats.{chat}");
            let hint = match chat.as_str() {
                "*" => Some("what holds in all chats is set in [agents.NAME.prompt]"),
                _ => self.platform.refuses_id(chat),
            };
            if let Some(hint) = hint {
                review.advise(
                    &key,
                    format!("\"{chat}\" is no id of a chat"),
                    Some(hint.to_owned()),
                );
            }
            let overrides = overrides(&shape.prompt);
            let serving = agents.values().filter(|a| a.channels.has(&self.name));
            for agent in serving {
                let own = &agent.prompt;
                let there = overrides.over(own);
                let is_worse = own.trigger_max_tokens <= own.token_budget
                    && there.trigger_max_tokens > there.token_budget;
                if is_worse && own.profile == Profile::Vocative {
                    review.warn(
                        &format!("{key}.prompt"),
                        format!(
                            "leaves {} trigger_max_tokens = {} over token_budget = {}, so a long \
                             message leaves no room for history",
                            agent.name, there.trigger_max_tokens, there.token_budget
                        ),
                    );
                }
            }
        }
    }

    fn default_agent(
        &self,
        table: &str,
        agents: &BTreeMap<AgentName, Agent>,
        review: &mut Review<'_>,
    ) -> Option<AgentName> {
        let key = format!("{table}.default_agent");
        let serving: Vec<&Agent> = agents
            .values()
            .filter(|agent| agent.channels.has(&self.name))
            .collect();
        let Some(named) = &self.shape.default_agent else {
            return match serving.as_slice() {
                [] => {
                    // An agent that was left out because of its own mistakes may serve it.
                    if !review.faulty.iter().any(|it| it.starts_with("agents.")) {
                        review.problem(
                            table,
                            "no agent serves this channel; name it in the channels of one, or take it out",
                        );
                    }
                    None
                }
                [only] => Some(only.name.clone()),
                several => {
                    let names: Vec<&str> =
                        several.iter().map(|agent| agent.name.as_str()).collect();
                    review.problem(
                        &key,
                        format!(
                            "is missing: {} serve this channel; say which one answers when no alias \
                             picks one",
                            names.join(", ")
                        ),
                    );
                    None
                }
            };
        };
        let name = AgentName::trusted(named.as_str());
        match agents.get(&name) {
            None => {
                let known: Vec<&str> = agents.keys().map(AgentName::as_str).collect();
                review.dangling(&key, "agents", named, &known);
                None
            }
            Some(agent) if !agent.channels.has(&self.name) => {
                review.advise(
                    &key,
                    format!("the agent {named} does not serve this channel"),
                    Some(format!("add \"{}\" to agents.{named}.channels", self.name)),
                );
                None
            }
            Some(_) => Some(name),
        }
    }

    fn access(&self, table: &str, review: &mut Review<'_>) -> Access {
        let shape = &self.shape;
        let lists = [
            ("allow_chats", &shape.allow_chats),
            ("allow_people", &shape.allow_people),
            ("admins", &shape.admins),
            ("allow_bots", &shape.allow_bots),
        ];
        let [allow_chats, allow_people, admins, allow_bots] = lists.map(|(setting, ids)| {
            let key = format!("{table}.{setting}");
            for (n, PlatformId(id)) in ids.iter().enumerate() {
                if id != "*"
                    && let Some(hint) = self.platform.refuses_id(id)
                {
                    review.advise(
                        &format!("{key}[{n}]"),
                        format!("\"{id}\" is no id"),
                        Some(hint.to_owned()),
                    );
                }
            }
            ids.iter()
                .map(|PlatformId(id)| id.clone())
                .collect::<Vec<String>>()
        });
        if admins.iter().any(|id| id == "*") {
            review.problem(
                &format!("{table}.admins"),
                "can't be everybody; list their ids",
            );
        }
        if shape.pairing && allow_people.iter().any(|id| id == "*") {
            review.problem(
                &format!("{table}.pairing"),
                "lets nobody in who is not let in already: allow_people is \"*\"; list people, or nobody",
            );
        }
        Access {
            allow_chats,
            allow_people,
            admins,
            allow_bots,
            has_pairing: shape.pairing,
            serves_strangers: self.serves_strangers,
            serves_guests: self.serves_guests,
        }
    }
}

fn overrides(shape: &ChatPromptShape) -> OptionOverrides {
    OptionOverrides {
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
    }
}

fn check_commands(table: &str, commands: &[String], review: &mut Review<'_>) {
    for command in commands {
        let is_command = (1..=32).contains(&command.len())
            && command
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        if !is_command {
            review.problem(
                &format!("{table}.commands"),
                format!(
                    "\"{command}\": a command has 1 to 32 of a-z, 0-9 and _, without the slash"
                ),
            );
        }
    }
}

/// Checks that no two channels have the same token: they would take messages from each other.
fn check_shared_tokens(drafts: &[(String, ChannelDraft)], review: &mut Review<'_>) {
    let mut seen: BTreeMap<&SecretRef, String> = BTreeMap::new();
    for (table, draft) in drafts {
        for (setting, token) in draft.platform.tokens() {
            let Some(token) = token else { continue };
            let key = format!("{table}.{setting}");
            if let Some(first) = seen.get(token) {
                review.problem(
                    &key,
                    format!("is the same as {first}; two connections with one token take messages from each other"),
                );
            } else {
                seen.insert(token, key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::path::Path;

    use crate::config::{Config, Environment};

    /// The warnings for this interval and these channels.
    fn warned(interval_ms: u64, channels: &str) -> Vec<String> {
        let text = format!("[delivery]\nlive_interval_ms = {interval_ms}\n{channels}");
        let environment = Environment::from([("HOME", "/home/ada")]);
        let file = Some((Path::new("vocative.toml"), text.as_str()));
        let (_, warnings) = Config::from_text(file, &environment).unwrap();
        let warnings = warnings.iter().map(ToString::to_string);
        warnings
            .filter(|it| it.contains("live_interval_ms"))
            .collect()
    }

    #[test]
    fn a_pace_that_a_platform_refuses_is_warned_of() {
        let slack = |more: &str| {
            format!("[channels.slack.acme]\napp_token = \"env:A\"\nbot_token = \"env:B\"\n{more}")
        };
        let telegram = |more: &str| format!("[channels.telegram.team]\ntoken = \"env:T\"\n{more}");
        let sandbox = "api_url = \"http://127.0.0.1:9/api\"";
        let table = [
            (2_999, slack(""), true),
            (3_000, slack(""), false),
            (0, slack(""), false),
            (500, slack("live = \"off\""), false),
            (500, slack(sandbox), false),
            (999, telegram(""), true),
            (1_000, telegram(""), false),
            (5_999, telegram("live = \"on\""), true),
            (500, telegram(sandbox), false),
        ];
        for (interval_ms, channels, is_warned) in table {
            let warned = warned(interval_ms, &channels);
            assert_eq!(!warned.is_empty(), is_warned, "{interval_ms} {channels}");
        }
        insta::assert_snapshot!(warned(1_000, &slack("")).join("\n"), @"delivery.live_interval_ms: is 1000, which is too fast for channels.slack.acme: Slack wants a message edited at most every 3000 ms. What comes faster is refused for its rate, and the finished answer waits for that, too; 0 = each platform's own pace");
    }
}
