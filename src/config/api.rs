//! Checks of `[api]`: the address it listens on, and what each token may be used for.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::Deserialize;

use super::resolve::{Review, check_group};
use super::secret::SecretRef;
use super::settings::{Agent, Api, ApiAddress, Daemon, RetentionDays};
use super::tools::people;
use crate::tools::PersonName;
use vocative_core::ids::AgentName;

/// The API's socket in the runtime directory.
const API_SOCKET_NAME: &str = "vocative-api.sock";

/// The API for programs: conversations, runs and their events, and what waits for people.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ApiShape {
    /// Whether the server runs.
    pub enabled: bool,
    /// Address and port, or unix:PATH. Not set: the socket vocative-api.sock in `runtime_dir`.
    pub listen: Option<String>,
    /// Group that may use the API's socket.
    pub socket_group: Option<String>,
    /// A token that may read. With this or another token, every request must bear one.
    pub token: Option<SecretRef>,
    /// Tokens by the names under which what they do is recorded.
    #[serde(default)]
    pub tokens: BTreeMap<String, ApiTokenShape>,
    /// How long what is asked over the API is kept.
    pub retention_days: RetentionDays,
}

/// A token of the API.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ApiTokenShape {
    /// Where the token is. Required.
    pub token: Option<SecretRef>,
    /// What it may be used for; at least one of read (see everything), ask (see and answer questions), act (see and decide about calls,
    /// questions and schedules), admin (all of it).
    #[serde(default)]
    pub scopes: Vec<ApiScope>,
    /// Whose token it is, as CHANNEL/ID: where calls need a second person, these are no second person for what they
    /// asked for themselves.
    #[serde(default)]
    pub people: Vec<String>,
    /// Whom it may ask, with the scope ask: agents by name. With some, it sees its person's own conversations and
    /// questions with them; without read and admin nothing else.
    #[serde(default)]
    pub agents: Vec<String>,
    /// As whom it asks: 1 to 64 of a-z, 0-9, _ and -. Tokens of one person share their conversations. Not set: the token's
    /// own name.
    pub person: Option<String>,
    /// What it may give with a question besides: instructions (words behind those of the agent).
    #[serde(default)]
    pub overrides: Vec<ApiOverride>,
}

/// What a token may give with a question besides what everybody may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApiOverride {
    /// Words behind the agent's instructions, for one run.
    Instructions,
}

/// What a token may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApiScope {
    /// Everything is seen.
    Read,
    /// Questions are seen and answered.
    Ask,
    /// Calls that wait, questions and schedules are seen and decided about.
    Act,
    /// All of it, and grants are taken back.
    Admin,
}

impl ApiScope {
    /// The name in settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Ask => "ask",
            Self::Act => "act",
            Self::Admin => "admin",
        }
    }
}

/// A token that may be used for more than reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiToken {
    /// The name under which its acts are recorded.
    pub name: String,
    /// Where the secret is.
    pub token: SecretRef,
    /// What it may be used for; never empty.
    pub scopes: BTreeSet<ApiScope>,
    /// The people that it belongs to.
    pub people: Vec<PersonName>,
    /// The agents that it may ask and the person it asks for, if it may ask agents.
    pub asking: Option<ApiAsking>,
}

/// What a token may ask: for which person, which agents, and with which overrides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiAsking {
    /// The person that it asks for.
    pub person: String,
    /// The agents; never empty.
    pub agents: Vec<AgentName>,
    /// What else it may set in a request.
    pub overrides: BTreeSet<ApiOverride>,
}

/// The longest name of a person of the API, in characters.
const PERSON_MAX_CHARS: usize = 64;

/// Checks the whole table. The result is to be used only if no problem was found.
pub(super) fn resolve_api(
    shape: ApiShape,
    daemon: &Daemon,
    channels: &[&str],
    agents: &BTreeMap<AgentName, Agent>,
    review: &mut Review<'_>,
) -> Api {
    let listen = match shape.listen.as_deref() {
        None => ApiAddress::Unix(daemon.runtime_dir.join(API_SOCKET_NAME)),
        Some(text) => api_address(text, review),
    };
    if let ApiAddress::Tcp(address) = &listen
        && shape.enabled
        && shape.token.is_none()
        && shape.tokens.is_empty()
    {
        review.advise(
            "api.listen",
            format!("{address} can be reached by every user of this machine at least, so the API needs a token there"),
            Some(
                "set api.token (token = \"env:VOCATIVE_API_TOKEN\"), or listen on unix:PATH"
                    .to_owned(),
            ),
        );
    }
    check_group("api.socket_group", shape.socket_group.as_deref(), review);
    let mut tokens: Vec<ApiToken> = Vec::new();
    for (name, token) in shape.tokens {
        let table = format!("api.tokens.{name}");
        if token.scopes.is_empty() {
            let key = format!("{table}.scopes");
            review.problem(&key, "must name at least one of read, ask, act, admin");
        }
        let Some(secret) = token.token else {
            let key = format!("{table}.token");
            review.problem(
                &key,
                "must say where the token is, as \"env:NAME\" or \"file:PATH\"",
            );
            continue;
        };
        let mut known = tokens.iter().map(|it| &it.token).chain(&shape.token);
        if known.any(|it| *it == secret) {
            let key = format!("{table}.token");
            review.problem(
                &key,
                "is another token's, too; each needs a secret of its own",
            );
        }
        let asking = TokenScopes {
            table: &table,
            name: &name,
            scopes: &token.scopes,
        };
        tokens.push(ApiToken {
            asking: asking.resolve(
                (token.agents, token.person, token.overrides),
                agents,
                review,
            ),
            people: people(&format!("{table}.people"), &token.people, channels, review),
            name,
            token: secret,
            scopes: token.scopes.into_iter().collect(),
        });
    }
    Api {
        enabled: shape.enabled,
        listen,
        socket_group: shape.socket_group,
        token: shape.token,
        tokens,
        retention_days: shape.retention_days,
    }
}

/// The settings of a token that are about asking.
struct TokenScopes<'a> {
    table: &'a str,
    name: &'a str,
    scopes: &'a [ApiScope],
}

impl TokenScopes<'_> {
    fn resolve(
        &self,
        (named, person, overrides): (Vec<String>, Option<String>, Vec<ApiOverride>),
        agents: &BTreeMap<AgentName, Agent>,
        review: &mut Review<'_>,
    ) -> Option<ApiAsking> {
        let key = |setting: &str| format!("{}.{setting}", self.table);
        if named.is_empty() {
            if person.is_some() || !overrides.is_empty() {
                let what = "is missing: person and overrides are of a token that may ask agents";
                review.problem(&key("agents"), what);
            }
            return None;
        }
        let may_ask = |scope: &ApiScope| matches!(scope, ApiScope::Ask | ApiScope::Admin);
        if !self.scopes.iter().any(may_ask) {
            review.problem(&key("scopes"), "must have ask: the token is to ask agents");
        }
        let known: Vec<&str> = agents.keys().map(AgentName::as_str).collect();
        for agent in &named {
            if !known.contains(&agent.as_str()) {
                review.dangling(&key("agents"), "agents", agent, &known);
            }
        }
        let person = person.unwrap_or_else(|| self.name.to_owned());
        if !is_person(&person) {
            let what = format!("\"{person}\" is not 1 to {PERSON_MAX_CHARS} of a-z, 0-9, _ and -");
            review.problem(&key("person"), what);
        }
        Some(ApiAsking {
            person,
            agents: named.into_iter().map(AgentName::trusted).collect(),
            overrides: overrides.into_iter().collect(),
        })
    }
}

fn is_person(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    (1..=PERSON_MAX_CHARS).contains(&name.len()) && name.chars().all(is_part)
}

fn api_address(text: &str, review: &mut Review<'_>) -> ApiAddress {
    if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
        return ApiAddress::Unix(review.base_dir.join(path));
    }
    if let Ok(address) = text.parse() {
        return ApiAddress::Tcp(address);
    }
    review.problem(
        "api.listen",
        "must be an address and a port, like 127.0.0.1:8087, or unix:PATH",
    );
    ApiAddress::Tcp(SocketAddr::from(([127, 0, 0, 1], 0)))
}
