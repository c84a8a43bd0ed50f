//! Hooks: their settings as people write them, and the checks.

use std::collections::BTreeMap;

use reqwest::Method;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::SecretRef;
use super::resolve::Review;
use super::settings::{Agent, Hook, HookKind, Model};
use super::tools::Checking;
use crate::tools::http::{BodyTemplate, HttpToolSettings, UrlTemplate};
use vocative_core::hooking::{HookPoint, PATTERNS_MAX, Redactor, Removed};
use vocative_core::ids::AgentName;
use vocative_core::tool_call::CallRule;

/// The longest answer of a hook that is read if the settings set no limit, in bytes.
const ANSWER_BYTES_DEFAULT: usize = 256 << 10;
/// How long a hook may take for its answer if the settings set no limit, in milliseconds.
const TIMEOUT_MS_DEFAULT: u64 = 2_000;
/// How long a model may take for its answer if the settings set no limit, in milliseconds.
const INTENT_TIMEOUT_MS_DEFAULT: u64 = 5_000;

/// Who is asked at points of a run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct HookShape {
    /// What it is.
    pub kind: HookKindShape,
    /// The points at which it is asked.
    pub at: Vec<HookPointShape>,
    /// What a hook of kind "redact" takes out.
    #[serde(default)]
    pub remove: Vec<RemovedShape>,
    /// Regular expressions of what it takes out besides.
    #[serde(default)]
    pub patterns: Vec<String>,
    /// Where a hook of kind "http" is asked.
    pub url: Option<String>,
    /// Headers, a line each: "accept-language: en".
    #[serde(default)]
    pub headers: Vec<String>,
    /// A secret that is sent as "authorization: Bearer ...".
    pub bearer: Option<SecretRef>,
    /// A secret that is sent in the header `api_key_header`.
    pub api_key: Option<SecretRef>,
    /// The header of `api_key`.
    #[serde(default = "api_key_header")]
    pub api_key_header: String,
    /// Hosts of own networks that it may be at, with their ports.
    #[serde(default)]
    pub allow_private: Vec<String>,
    /// Whether it is sent what people, models and tools said, and arguments of calls.
    #[serde(default)]
    pub content: bool,
    /// The longest answer that is read, in bytes.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub answer_max_bytes: Option<usize>,
    /// The model that a hook of kind "intent" asks.
    pub model: Option<String>,
    /// Milliseconds that it has for its word.
    #[schemars(range(min = 50, max = 30_000))]
    pub timeout_ms: Option<u64>,
}

fn api_key_header() -> String {
    "x-api-key".to_owned()
}

/// What a hook is.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum HookKindShape {
    /// It takes words out by pattern.
    Redact,
    /// A server is asked.
    Http,
    /// A model is asked whether a message was meant for the agent.
    Intent,
}

/// A point of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum HookPointShape {
    /// Before the model sees a question.
    BeforeRun,
    /// Before each request to the model.
    BeforeModel,
    /// After each answer of the model, before it is stored.
    AfterModel,
    /// Before a call of a tool, and before people are asked about it.
    BeforeTool,
    /// After a call, before its result is stored and shown to the model.
    AfterTool,
    /// Before anything that the model said, or that a tool gave, is stored.
    BeforeSave,
    /// Before an answer is posted.
    BeforePost,
    /// After a run has ended: the hook is only told.
    RunEnded,
    /// After an approval was decided, expired or was cancelled: the hook is only told.
    ApprovalDecided,
}

impl From<HookPointShape> for HookPoint {
    fn from(shape: HookPointShape) -> Self {
        match shape {
            HookPointShape::BeforeRun => Self::BeforeRun,
            HookPointShape::BeforeModel => Self::BeforeModel,
            HookPointShape::AfterModel => Self::AfterModel,
            HookPointShape::BeforeTool => Self::BeforeTool,
            HookPointShape::AfterTool => Self::AfterTool,
            HookPointShape::BeforeSave => Self::BeforeSave,
            HookPointShape::BeforePost => Self::BeforePost,
            HookPointShape::RunEnded => Self::RunEnded,
            HookPointShape::ApprovalDecided => Self::ApprovalDecided,
        }
    }
}

/// What is taken out by pattern.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum RemovedShape {
    /// Keys and tokens of well-known services.
    Keys,
    /// E-mail addresses.
    Email,
    /// Numbers of payment cards.
    Cards,
}

impl From<RemovedShape> for Removed {
    fn from(shape: RemovedShape) -> Self {
        match shape {
            RemovedShape::Keys => Self::Keys,
            RemovedShape::Email => Self::Email,
            RemovedShape::Cards => Self::Cards,
        }
    }
}

/// Checks all hooks. The result is to be used only if no problem was found.
pub(super) fn resolve_hooks(
    shapes: BTreeMap<String, HookShape>,
    review: &mut Review<'_>,
) -> BTreeMap<String, Hook> {
    let mut hooks = BTreeMap::new();
    for (name, shape) in shapes {
        let mut checking = Checking {
            table: format!("hooks.{name}"),
            name: &name,
            channels: &[],
            review,
        };
        if let Some(hook) = resolve_hook(shape, &mut checking) {
            hooks.insert(name, hook);
        }
    }
    hooks
}

/// Checks that the hooks that agents name and the models that hooks name exist, and that each hook belongs to an agent.
pub(super) fn check_hooks(
    hooks: &BTreeMap<String, Hook>,
    agents: &BTreeMap<AgentName, Agent>,
    models: &BTreeMap<String, Model>,
    review: &mut Review<'_>,
) {
    let model_names: Vec<&str> = models.keys().map(String::as_str).collect();
    for (name, hook) in hooks {
        if let HookKind::Intent { model, .. } = &hook.kind
            && !models.contains_key(model)
        {
            review.dangling(
                &format!("hooks.{name}.model"),
                "models",
                model,
                &model_names,
            );
        }
    }
    let known: Vec<&str> = hooks.keys().map(String::as_str).collect();
    for agent in agents.values() {
        let key = format!("agents.{}.hooks", agent.name);
        for name in agent
            .settings
            .hooks
            .iter()
            .filter(|name| !hooks.contains_key(*name))
        {
            review.dangling(&key, "hooks", name, &known);
        }
    }
    for name in known {
        let is_used = |agent: &Agent| agent.settings.hooks.iter().any(|hook| hook == name);
        if !agents.values().any(is_used) {
            review.warn(
                &format!("hooks.{name}.at"),
                "no agent names this hook in its hooks, so it is never asked or told",
            );
        }
    }
}

fn resolve_hook(shape: HookShape, checking: &mut Checking<'_, '_>) -> Option<Hook> {
    let mut points: Vec<HookPoint> = Vec::new();
    for point in shape.at.iter().copied().map(HookPoint::from) {
        match points.contains(&point) {
            true => checking.problem("at", format!("\"{}\" is there twice", point.name())),
            false => points.push(point),
        }
    }
    if points.is_empty() {
        checking.problem("at", "names no point, so the hook would never be asked");
    }
    let kind = match shape.kind {
        HookKindShape::Redact => redact(&shape, &points, checking)?,
        HookKindShape::Http => http(shape, &points, checking)?,
        HookKindShape::Intent => intent(&shape, &points, checking)?,
    };
    Some(Hook { points, kind })
}

/// Reports settings of hooks of kind "http" in a hook of another kind.
fn of_servers(shape: &HookShape, checking: &mut Checking<'_, '_>) {
    let settings = [
        ("url", shape.url.is_some()),
        ("headers", !shape.headers.is_empty()),
        ("bearer", shape.bearer.is_some()),
        ("api_key", shape.api_key.is_some()),
        ("allow_private", !shape.allow_private.is_empty()),
        ("content", shape.content),
        ("answer_max_bytes", shape.answer_max_bytes.is_some()),
    ];
    for (setting, _) in settings.iter().filter(|(_, is_set)| *is_set) {
        checking.problem(setting, "is for hooks of kind \"http\"");
    }
}

/// Reports settings of hooks of kind "redact" in a hook of another kind.
fn of_patterns(shape: &HookShape, checking: &mut Checking<'_, '_>) {
    let settings = [
        ("remove", !shape.remove.is_empty()),
        ("patterns", !shape.patterns.is_empty()),
    ];
    for (setting, _) in settings.iter().filter(|(_, is_set)| *is_set) {
        checking.problem(setting, "is for hooks of kind \"redact\"");
    }
}

/// Reports settings of hooks of kind "intent" in a hook of another kind.
fn of_models(shape: &HookShape, checking: &mut Checking<'_, '_>) {
    if shape.model.is_some() {
        checking.problem("model", "is for hooks of kind \"intent\"");
    }
}

fn intent(
    shape: &HookShape,
    points: &[HookPoint],
    checking: &mut Checking<'_, '_>,
) -> Option<HookKind> {
    of_servers(shape, checking);
    of_patterns(shape, checking);
    if points.iter().any(|point| *point != HookPoint::BeforeRun) {
        let what = "a hook of kind \"intent\" is asked at \"before_run\" only";
        checking.problem("at", what);
    }
    let Some(model) = shape.model.clone() else {
        checking.problem("model", "must name the model that is asked");
        return None;
    };
    Some(HookKind::Intent {
        model,
        timeout_ms: shape.timeout_ms.unwrap_or(INTENT_TIMEOUT_MS_DEFAULT),
    })
}

fn redact(
    shape: &HookShape,
    points: &[HookPoint],
    checking: &mut Checking<'_, '_>,
) -> Option<HookKind> {
    of_servers(shape, checking);
    of_models(shape, checking);
    if shape.timeout_ms.is_some() {
        checking.problem("timeout_ms", "is for hooks of kind \"http\" or \"intent\"");
    }
    for point in points.iter().filter(|point| !point.takes_words_out()) {
        let instead = match point {
            HookPoint::BeforeTool => "; after_model takes them out of what a model asks for",
            _ => "",
        };
        let what = format!("no words can be taken out at \"{}\"{instead}", point.name());
        checking.problem("at", what);
    }
    if shape.remove.is_empty() && shape.patterns.is_empty() {
        checking.problem(
            "remove",
            "is empty and so is patterns: nothing would be taken out",
        );
    }
    if shape.patterns.len() > PATTERNS_MAX {
        checking.problem("patterns", format!("has more than {PATTERNS_MAX} patterns"));
        return None;
    }
    let removed: Vec<Removed> = shape.remove.iter().copied().map(Removed::from).collect();
    match Redactor::new(&removed, &shape.patterns) {
        Ok(redactor) => Some(HookKind::Redact(redactor)),
        Err((n, wrong)) => {
            let pattern = &shape.patterns[n];
            checking.problem("patterns", format!("\"{pattern}\" {wrong}"));
            None
        }
    }
}

fn http(
    shape: HookShape,
    points: &[HookPoint],
    checking: &mut Checking<'_, '_>,
) -> Option<HookKind> {
    of_patterns(&shape, checking);
    of_models(&shape, checking);
    let offered = [
        HookPoint::BeforeRun,
        HookPoint::BeforeModel,
        HookPoint::AfterModel,
        HookPoint::BeforeTool,
        HookPoint::AfterTool,
        HookPoint::BeforePost,
        HookPoint::RunEnded,
        HookPoint::ApprovalDecided,
    ];
    for point in points.iter().filter(|point| !offered.contains(point)) {
        let what = format!(
            "a hook of kind \"http\" is not asked at \"{}\"",
            point.name()
        );
        checking.problem("at", what);
    }
    if shape.content && !points.iter().any(|point| point.decides()) {
        let what = "is for points where a hook is asked; what it is told holds no texts";
        checking.problem("content", what);
    }
    let Some(url) = shape.url.as_deref().map(UrlTemplate::read) else {
        checking.problem("url", "must be set");
        return None;
    };
    let url = checking.read("url", url)?;
    if url.arguments().next().is_some() {
        checking.problem(
            "url",
            "has a place for an argument, and a hook is sent all in its body",
        );
    }
    checking.check_addresses(&url, &shape.allow_private);
    let headers = shape
        .headers
        .iter()
        .filter_map(|line| checking.header(line))
        .collect();
    let secret_headers =
        checking.secret_headers(shape.bearer, shape.api_key, &shape.api_key_header);
    let settings = HttpToolSettings {
        name: checking.name.to_owned(),
        description: String::new(),
        schema: Value::Null,
        // A hook's answer changes nothing by itself, so a hook may be asked twice.
        rule: CallRule::Repeatable,
        method: Method::POST,
        url,
        body: BodyTemplate::whole(),
        headers,
        idempotency_header: None,
        allow_private: shape.allow_private,
        result: String::new(),
        answer_bytes_max: shape.answer_max_bytes.unwrap_or(ANSWER_BYTES_DEFAULT),
        timeout_ms: shape.timeout_ms.unwrap_or(TIMEOUT_MS_DEFAULT),
    };
    Some(HookKind::Http {
        settings: Box::new(settings),
        secret_headers,
        has_content: shape.content,
    })
}
