//! Checks of `[tools]`: what each tool is made of, and that no setting is understood as something else.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::Method;
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::Value;

use super::approvals::{Shapes, resolve_approval};
use super::programs::{ProgramShape, resolve_program};
use super::resolve::Review;
use super::settings::{McpServer, SecretHeader, Tool, ToolKind};
use super::shape::{MethodShape, ToolKindShape, ToolShape};
use crate::tools::command::CommandToolSettings;
use crate::tools::http::{ANSWER_BYTES_DEFAULT, BodyTemplate, HttpToolSettings, UrlTemplate};
use crate::tools::{BuiltIn, PersonName, ToolLimits, unknown_keywords};
use vocative_core::tool_call::CallRule;

/// The longest name of a tool that every provider accepts, in characters.
const NAME_MAX_CHARS: usize = 64;

/// Checks all tools. The result is to be used only if no problem was found.
pub(super) fn resolve_tools(
    shapes: BTreeMap<String, ToolShape>,
    channels: &[&str],
    review: &mut Review<'_>,
) -> BTreeMap<String, Tool> {
    let mut tools = BTreeMap::new();
    for (name, shape) in shapes {
        let mut checking = Checking {
            table: format!("tools.{name}"),
            name: &name,
            channels,
            review,
        };
        if let Some(tool) = checking.tool(shape) {
            tools.insert(name, tool);
        }
    }
    tools
}

/// The tools that agents may name, including the built-in ones.
pub(super) fn known_tools(
    tools: &BTreeMap<String, Tool>,
    servers: &BTreeMap<String, McpServer>,
) -> Vec<String> {
    let mut known: BTreeSet<String> = tools.keys().cloned().collect();
    known.extend(BuiltIn::ALL.into_iter().map(|tool| tool.name().to_owned()));
    known.extend(servers.keys().map(|server| format!("{server}__*")));
    known.into_iter().collect()
}

/// Whether a name is one of these, or a tool of one of their servers.
pub(super) fn is_known_tool(name: &str, known: &[&str]) -> bool {
    let is_of_server = |(server, _): (&str, &str)| {
        let all = format!("{server}__*");
        known.contains(&all.as_str())
    };
    known.contains(&name) || name.split_once("__").is_some_and(is_of_server)
}

/// People, as `CHANNEL/ID`.
pub(super) fn people(
    key: &str,
    people: &[String],
    channels: &[&str],
    review: &mut Review<'_>,
) -> Vec<PersonName> {
    let mut named = Vec::new();
    for person in people {
        match person.split_once('/') {
            Some((channel, id)) if channels.contains(&channel) && !id.is_empty() => {
                named.push(PersonName {
                    channel: channel.to_owned(),
                    id: id.to_owned(),
                });
            }
            Some((channel, _)) if !channels.contains(&channel) => {
                review.problem(key, format!("there is no channel \"{channel}\""));
            }
            _ => review.problem(
                key,
                format!("\"{person}\" is not CHANNEL/ID, as in \"acme/U012AB3CD\""),
            ),
        }
    }
    named
}

/// The checks of one tool, or of anything that is configured like one.
pub(super) struct Checking<'a, 'b> {
    /// The table that its settings are in.
    pub(super) table: String,
    pub(super) name: &'a str,
    pub(super) channels: &'a [&'a str],
    pub(super) review: &'a mut Review<'b>,
}

impl Checking<'_, '_> {
    pub(super) fn problem(&mut self, setting: &str, what: impl Into<String>) {
        let key = format!("{}.{setting}", self.table);
        self.review.problem(&key, what);
    }

    fn tool(&mut self, shape: ToolShape) -> Option<Tool> {
        if self.name.chars().count() > NAME_MAX_CHARS || self.name.contains("__") {
            let what = format!(
                "the name of a tool has at most {NAME_MAX_CHARS} characters, and no __ in it"
            );
            self.problem("kind", what);
        }
        let limits = ToolLimits {
            calls_per_run: shape.calls_per_run,
            calls_per_day: shape.calls_per_day,
            timeout_ms: shape.timeout_s.map(|seconds| seconds * 1_000),
        };
        let people = shape.allow_people.as_deref();
        let key = format!("{}.allow_people", self.table);
        let allow_people = people.map(|all| self::people(&key, all, self.channels, self.review));
        let shapes = Shapes {
            approval: shape.approval.as_ref(),
            approvers: shape.approvers.as_ref(),
            expires_s: shape.approval_expires_s.as_ref(),
            after_untrusted: shape.after_untrusted,
        };
        let approval = resolve_approval(&self.table, &shapes, self.channels, self.review);
        let kind = match shape.kind {
            ToolKindShape::Builtin => self.built_in(&shape)?,
            ToolKindShape::Http => self.http(shape)?,
            ToolKindShape::Command => self.command(shape)?,
        };
        let approval = match &kind {
            ToolKind::BuiltIn(tool) => tool.approval(approval),
            ToolKind::Http { .. } | ToolKind::Command { .. } => approval,
        };
        Some(Tool {
            kind,
            limits,
            allow_people,
            approval,
        })
    }

    fn built_in(&mut self, shape: &ToolShape) -> Option<ToolKind> {
        let Some(tool) = BuiltIn::from_name(self.name) else {
            let known: Vec<&str> = BuiltIn::ALL.into_iter().map(BuiltIn::name).collect();
            let what = format!(
                "\"builtin\" sets limits of built-in tools: {}",
                known.join(", ")
            );
            self.problem("kind", what);
            return None;
        };
        for (setting, is_set) in [
            ("url", shape.url.is_some()),
            ("description", shape.description.is_some()),
            ("parameters", shape.parameters.is_some()),
            ("body", shape.body.is_some()),
            ("argv", !shape.argv.is_empty()),
        ] {
            if is_set {
                self.problem(setting, "a built-in tool has its own");
            }
        }
        Some(ToolKind::BuiltIn(tool))
    }

    /// What the model is told of a configured tool: its description and the schema of its arguments.
    fn told(&mut self, shape: &ToolShape) -> Option<(String, Value)> {
        if BuiltIn::from_name(self.name).is_some() {
            self.problem(
                "kind",
                "is the name of a built-in tool: kind = \"builtin\", or another name",
            );
        }
        let schema = self.schema(shape.parameters.as_deref())?;
        let description = shape.description.clone();
        let Some(description) = description.filter(|text| !text.trim().is_empty()) else {
            self.problem(
                "description",
                "must say what the tool is for: the model reads it",
            );
            return None;
        };
        Some((description, schema))
    }

    /// Reports settings of another kind, which would silently do nothing.
    fn refuse_others(&mut self, kind: &str, settings: &[(&str, bool)]) {
        for (setting, _) in settings.iter().filter(|(_, is_set)| *is_set) {
            self.problem(setting, format!("is not for tools of kind \"{kind}\""));
        }
    }

    fn command(&mut self, shape: ToolShape) -> Option<ToolKind> {
        self.refuse_others(
            "command",
            &[
                ("url", shape.url.is_some()),
                ("body", shape.body.is_some()),
                ("headers", !shape.headers.is_empty()),
                ("bearer", shape.bearer.is_some()),
                ("api_key", shape.api_key.is_some()),
                ("idempotency_header", shape.idempotency_header.is_some()),
                ("allow_private", !shape.allow_private.is_empty()),
                ("result", !shape.result.is_empty()),
            ],
        );
        let (description, schema) = self.told(&shape)?;
        let rule = match (shape.repeatable, shape.keyed) {
            (Some(true), true) => {
                self.problem("repeatable", "is set and so is keyed; keep one of them");
                return None;
            }
            (_, true) => CallRule::Keyed,
            (Some(true), false) => CallRule::Repeatable,
            (Some(false) | None, false) => CallRule::Once,
        };
        let program = ProgramShape {
            argv: shape.argv,
            folder: shape.folder,
            environment: shape.environment,
            secrets: shape.secrets,
            read: shape.read,
            write: shape.write,
            connect_ports: shape.connect_ports,
            memory_max_mib: shape.memory_max_mib,
            processes_max: shape.processes_max,
            is_trusted: shape.trusted,
        };
        let (program, secrets) = resolve_program(&self.table, program, self.review)?;
        let settings = CommandToolSettings {
            name: self.name.to_owned(),
            description,
            schema,
            rule,
            program,
            answer_bytes_max: shape.answer_max_bytes.unwrap_or(ANSWER_BYTES_DEFAULT),
        };
        Some(ToolKind::Command {
            settings: Box::new(settings),
            secrets,
        })
    }

    fn http(&mut self, shape: ToolShape) -> Option<ToolKind> {
        self.refuse_others(
            "http",
            &[
                ("argv", !shape.argv.is_empty()),
                ("folder", shape.folder.is_some()),
                ("environment", !shape.environment.is_empty()),
                ("secrets", !shape.secrets.is_empty()),
                ("keyed", shape.keyed),
            ],
        );
        let (description, schema) = self.told(&shape)?;
        let Some(url) = shape.url.as_deref().map(UrlTemplate::read) else {
            self.problem("url", "must be set");
            return None;
        };
        let url = self.read("url", url)?;
        let method = match shape.method {
            MethodShape::Get => Method::GET,
            MethodShape::Head => Method::HEAD,
            MethodShape::Post => Method::POST,
            MethodShape::Put => Method::PUT,
            MethodShape::Patch => Method::PATCH,
            MethodShape::Delete => Method::DELETE,
        };
        let body = match (&shape.body, &method) {
            (Some(body), _) => Some(self.read("body", BodyTemplate::read(body))?),
            (None, &Method::POST | &Method::PUT | &Method::PATCH) => {
                let taken: BTreeSet<&str> = url.arguments().collect();
                let properties = schema["properties"].as_object().into_iter().flatten();
                let rest = properties.map(|(name, _)| name.as_str());
                Some(BodyTemplate::of_arguments(
                    rest.filter(|name| !taken.contains(name)),
                ))
            }
            (None, _) => None,
        };
        self.check_arguments(&schema, &url, body.as_ref());
        self.check_addresses(&url, &shape.allow_private);
        if !shape.result.is_empty() && !shape.result.starts_with('/') {
            self.problem("result", "must be a JSON pointer, as /items/0/name");
        }
        let rule = self.rule(
            shape.repeatable,
            shape.idempotency_header.as_deref(),
            &method,
        );
        let secret_headers =
            self.secret_headers(shape.bearer, shape.api_key, &shape.api_key_header);
        let headers = shape.headers.iter().filter_map(|line| self.header(line));
        let settings = HttpToolSettings {
            headers: headers.collect(),
            name: self.name.to_owned(),
            description,
            schema,
            rule,
            method,
            url,
            body,
            idempotency_header: shape.idempotency_header,
            allow_private: shape.allow_private,
            result: shape.result,
            answer_bytes_max: shape.answer_max_bytes.unwrap_or(ANSWER_BYTES_DEFAULT),
            timeout_ms: shape
                .timeout_s
                .map_or(u64::from(u32::MAX), |seconds| seconds * 1_000),
        };
        Some(ToolKind::Http {
            settings: Box::new(settings),
            secret_headers,
        })
    }

    pub(super) fn read<T>(&mut self, setting: &str, read: Result<T, String>) -> Option<T> {
        read.map_err(|what| self.problem(setting, what)).ok()
    }

    /// The schema of the arguments; arguments that it does not name are refused.
    fn schema(&mut self, text: Option<&str>) -> Option<Value> {
        let text = text.unwrap_or(r#"{"type": "object", "properties": {}}"#);
        let read = serde_json::from_str(text).map_err(|error| format!("is no JSON: {error}"));
        let mut schema: Value = self.read("parameters", read)?;
        if schema["type"] != "object" || !schema["properties"].is_object() {
            self.problem(
                "parameters",
                "must be a JSON schema of type \"object\" with \"properties\"",
            );
            return None;
        }
        let unknown = unknown_keywords(&schema);
        if !unknown.is_empty() {
            let what = format!("has what is not checked here: {}", unknown.join(", "));
            self.problem("parameters", what);
            return None;
        }
        if schema["additionalProperties"] == true {
            self.problem(
                "parameters",
                "must not take arguments that it does not name",
            );
        }
        schema["additionalProperties"] = Value::Bool(false);
        Some(schema)
    }

    /// Checks that every placeholder has its argument, and every argument a placeholder.
    fn check_arguments(&mut self, schema: &Value, url: &UrlTemplate, body: Option<&BodyTemplate>) {
        let properties = schema["properties"].as_object();
        let has = |name: &str| properties.is_some_and(|properties| properties.contains_key(name));
        let in_body = body.map(BodyTemplate::arguments).unwrap_or_default();
        for name in url.arguments().filter(|name| !has(name)) {
            self.problem(
                "url",
                format!("{{{name}}} is not among the properties of parameters"),
            );
        }
        for name in in_body.iter().filter(|name| !has(name)) {
            self.problem(
                "body",
                format!("{{{name}}} is not among the properties of parameters"),
            );
        }
        let required = schema["required"].as_array();
        let is_required = |name: &&str| {
            required.is_some_and(|required| required.iter().any(|one| one.as_str() == Some(*name)))
        };
        for name in url.path_arguments().filter(|name| !is_required(name)) {
            self.problem(
                "parameters",
                format!("\"{name}\" stands in the path, so it must be required"),
            );
        }
        let used: Vec<&str> = url
            .arguments()
            .chain(in_body.iter().map(String::as_str))
            .collect();
        let names = properties
            .into_iter()
            .flatten()
            .map(|(name, _)| name.as_str());
        let unused: Vec<&str> = names.filter(|name| !used.contains(name)).collect();
        if !unused.is_empty() {
            let what = format!("nothing of the request holds {}", unused.join(", "));
            self.problem("parameters", what);
        }
    }

    pub(super) fn check_addresses(&mut self, url: &UrlTemplate, allow_private: &[String]) {
        for allowed in allow_private {
            let port = allowed
                .rsplit_once(':')
                .map(|(_, port)| port.parse::<u16>());
            if !matches!(port, Some(Ok(_))) {
                self.problem(
                    "allow_private",
                    format!("\"{allowed}\" is not HOST:PORT, as in \"10.0.0.7:8080\""),
                );
            }
        }
        let base = url.base();
        let host = base.host_str().unwrap_or_default();
        let port = base.port_or_known_default().unwrap_or_default();
        let address = format!("{host}:{port}");
        if base.scheme() == "http"
            && !allow_private
                .iter()
                .any(|it| it.eq_ignore_ascii_case(&address))
        {
            let what =
                format!("must begin with https://, or \"{address}\" must be in allow_private");
            self.problem("url", what);
        }
    }

    fn rule(
        &mut self,
        repeatable: Option<bool>,
        idempotency_header: Option<&str>,
        method: &Method,
    ) -> CallRule {
        if let Some(header) = idempotency_header {
            if header.parse::<HeaderName>().is_err() {
                self.problem("idempotency_header", "is no name of a header");
            }
            if repeatable == Some(true) {
                self.problem(
                    "repeatable",
                    "is set and so is idempotency_header; keep one of them",
                );
            }
        }
        let is_reading = matches!(*method, Method::GET | Method::HEAD);
        match (repeatable, idempotency_header) {
            (_, Some(_)) => CallRule::Keyed,
            (Some(true), None) => CallRule::Repeatable,
            (None, None) if is_reading => CallRule::Repeatable,
            (Some(false) | None, None) => CallRule::Once,
        }
    }

    pub(super) fn header(&mut self, line: &str) -> Option<(String, String)> {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let (name, value) = (name.trim(), value.trim());
        if name.parse::<HeaderName>().is_err() || HeaderValue::from_str(value).is_err() {
            self.problem("headers", "a line is not NAME: VALUE");
            return None;
        }
        Some((name.to_ascii_lowercase(), value.to_owned()))
    }

    pub(super) fn secret_headers(
        &mut self,
        bearer: Option<super::SecretRef>,
        api_key: Option<super::SecretRef>,
        api_key_header: &str,
    ) -> Vec<SecretHeader> {
        if api_key_header.parse::<HeaderName>().is_err() {
            self.problem("api_key_header", "is no name of a header");
        }
        let bearer = bearer.map(|secret| SecretHeader {
            setting: "bearer",
            name: "authorization".to_owned(),
            prefix: "Bearer ",
            secret,
        });
        let api_key = api_key.map(|secret| SecretHeader {
            setting: "api_key",
            name: api_key_header.to_ascii_lowercase(),
            prefix: "",
            secret,
        });
        bearer.into_iter().chain(api_key).collect()
    }
}
