//! MCP servers: their settings as people write them, and the checks.

use std::collections::BTreeMap;
use std::path::PathBuf;

use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::approvals::{Shapes, resolve_approval};
use super::programs::{ProgramShape, resolve_program};
use super::resolve::Review;
use super::secret::SecretRef;
use super::settings::{McpServer, SecretVariable};
use super::shape::forms;
use super::tools::people;
use crate::tools::ToolLimits;
use crate::tools::mcp::{McpPlace, McpSettings, PostFiles};
use vocative_core::approving::AfterUntrusted;

/// The longest name of a server, in characters; it is put in front of the names of its tools.
const NAME_MAX_CHARS: usize = 32;

/// A server of tools: a program that speaks over its standard streams, a Unix socket, or an address.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct McpShape {
    /// The program and its arguments, without a shell.
    #[serde(default)]
    pub argv: Vec<String>,
    /// Where the program runs; not set: in an empty folder for each start.
    pub folder: Option<PathBuf>,
    /// The program's variables, each NAME=VALUE; it has no others.
    #[serde(default)]
    pub environment: Vec<String>,
    /// Variables that hold secrets, each NAME=REFERENCE: "TOKEN=env:FILES_TOKEN".
    #[serde(default)]
    pub secrets: Vec<String>,
    /// Files and folders that the program may read and execute, beside the system's programs.
    #[serde(default)]
    pub read: Vec<PathBuf>,
    /// Files and folders that the program may change.
    #[serde(default)]
    pub write: Vec<PathBuf>,
    /// TCP ports that the program may connect to; none: it has no network.
    #[serde(default)]
    pub connect_ports: Vec<u16>,
    /// Memory of all processes of the program together, in MiB.
    #[schemars(range(min = 16, max = 1_048_576))]
    pub memory_max_mib: Option<u64>,
    /// Processes of the program.
    #[schemars(range(min = 1, max = 10_000))]
    pub processes_max: Option<u32>,
    /// Whether the program is run where the machine can't keep it from the archive.
    #[serde(default)]
    pub trusted: bool,
    /// The address of a server that speaks HTTP.
    pub url: Option<String>,
    /// A Unix socket on which a server speaks as a program does on its standard streams, as of vocative-mcp@NAME.socket.
    pub socket: Option<PathBuf>,
    /// A secret that an address is sent as "authorization: Bearer ...".
    pub bearer: Option<SecretRef>,
    /// Headers that an address is sent, a line each.
    #[serde(default)]
    pub headers: Vec<String>,
    /// Hosts of own networks that it may be at, with their ports.
    #[serde(default)]
    pub allow_private: Vec<String>,
    /// Which of its tools may be offered, by its names for them; not set: all.
    pub tools: Option<Vec<String>>,
    /// Its tools that do no harm when they are called again, by its names for them.
    #[serde(default)]
    pub repeatable: Vec<String>,
    /// What becomes of the tools that it offers at first sight; not set: an address's wait, others are taken.
    pub pin: Option<PinShape>,
    /// Which of the files that its tools give are posted with the answer; not set: those that it says are for the user.
    pub post_files: Option<PostFilesShape>,
    /// Seconds that one call may take; not set: as the agent has it.
    #[schemars(range(min = 1, max = 3600))]
    pub timeout_s: Option<u64>,
    /// The people whose questions its tools may be called for, as CHANNEL/ID; not set: everybody's.
    pub allow_people: Option<Vec<String>>,
    /// When its calls wait for a person: "never", "always", "first" or a table of rules.
    #[schemars(schema_with = "forms")]
    pub approval: Option<Value>,
    /// Who may decide about them.
    #[schemars(schema_with = "forms")]
    pub approvers: Option<Value>,
    /// Seconds that they wait; "never" = until somebody decides.
    #[schemars(schema_with = "forms")]
    pub approval_expires_s: Option<Value>,
    /// What becomes of its calls once their run has read what its asker did not write; not set: as the agent has it.
    pub after_untrusted: Option<AfterUntrusted>,
    /// Calls of each of its tools in one run.
    #[schemars(range(min = 1, max = 1000))]
    pub calls_per_run: Option<u32>,
    /// Calls of each of its tools in one UTC day for one person.
    #[schemars(range(min = 1))]
    pub calls_per_day: Option<u32>,
}

/// What becomes of the tools that a server offers at first sight. New and changed ones always wait for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum PinShape {
    /// They are taken.
    Trust,
    /// They wait for a person.
    Review,
}

/// Which of the files that a server gives are posted with the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum PostFilesShape {
    /// Those that the server says are for the user.
    Marked,
    /// All of them.
    All,
    /// None.
    Never,
}

/// Checks all servers. The result is to be used only if no problem was found.
pub(super) fn resolve_servers(
    shapes: BTreeMap<String, McpShape>,
    channels: &[&str],
    review: &mut Review<'_>,
) -> BTreeMap<String, McpServer> {
    let mut servers = BTreeMap::new();
    for (name, shape) in shapes {
        if let Some(server) = server(&name, shape, channels, review) {
            servers.insert(name, server);
        }
    }
    servers
}

fn server(
    name: &str,
    shape: McpShape,
    channels: &[&str],
    review: &mut Review<'_>,
) -> Option<McpServer> {
    let table = format!("mcp.{name}");
    if name.chars().count() > NAME_MAX_CHARS || name.contains("__") {
        let what = format!(
            "the name of a server has at most {NAME_MAX_CHARS} characters, and no __ in it"
        );
        review.problem(&table, what);
    }
    let key = format!("{table}.allow_people");
    let allow_people = shape.allow_people.as_deref();
    let allow_people = allow_people.map(|all| people(&key, all, channels, review));
    let shapes = Shapes {
        approval: shape.approval.as_ref(),
        approvers: shape.approvers.as_ref(),
        expires_s: shape.approval_expires_s.as_ref(),
        after_untrusted: shape.after_untrusted,
    };
    let approval = resolve_approval(&table, &shapes, channels, review);
    let limits = ToolLimits {
        calls_per_run: shape.calls_per_run,
        calls_per_day: shape.calls_per_day,
        timeout_ms: shape.timeout_s.map(|seconds| seconds * 1_000),
    };
    let (tools, repeatable, pin) = (shape.tools.clone(), shape.repeatable.clone(), shape.pin);
    let bearer = shape.bearer.clone();
    let post_files = match shape.post_files {
        None | Some(PostFilesShape::Marked) => PostFiles::Marked,
        Some(PostFilesShape::All) => PostFiles::All,
        Some(PostFilesShape::Never) => PostFiles::Never,
    };
    let (place, secrets) = place(&table, shape, review)?;
    let is_own = !matches!(place, McpPlace::Http { .. });
    Some(McpServer {
        settings: McpSettings {
            name: name.to_owned(),
            place,
            tools,
            repeatable,
            trusts_first: pin.map_or(is_own, |pin| pin == PinShape::Trust),
            post_files,
        },
        secrets,
        bearer,
        limits,
        allow_people,
        approval,
    })
}

fn place(
    table: &str,
    shape: McpShape,
    review: &mut Review<'_>,
) -> Option<(McpPlace, Vec<SecretVariable>)> {
    let key = |setting: &str| format!("{table}.{setting}");
    if let Some(socket) = &shape.socket {
        let foreign = [of_program(&shape), of_address(&shape)].concat();
        if !foreign.is_empty() {
            let foreign = foreign.join(", ");
            let what = format!("is set and so is {foreign}: who listens there starts the server");
            review.problem(&key("socket"), what);
            return None;
        }
        return Some((McpPlace::Socket(review.base_dir.join(socket)), Vec::new()));
    }
    let foreign = of_program(&shape);
    let Some(url) = shape.url.clone() else {
        let foreign = of_address(&shape);
        if !foreign.is_empty() {
            let what = format!("must be set where {} is", foreign.join(", "));
            review.problem(&key("url"), what);
        }
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
        let (program, secrets) = resolve_program(table, program, review)?;
        return Some((McpPlace::Program(Box::new(program)), secrets));
    };
    if !foreign.is_empty() {
        let foreign = foreign.join(", ");
        let what = format!("is set and so is {foreign}: a server is a program or an address");
        review.problem(&key("url"), what);
        return None;
    }
    let url = address(&key("url"), &url, &shape.allow_private, review)?;
    let mut headers = Vec::new();
    for line in &shape.headers {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let (name, value) = (name.trim(), value.trim());
        if name.parse::<HeaderName>().is_err() || HeaderValue::from_str(value).is_err() {
            review.problem(&key("headers"), "a line is not NAME: VALUE");
        }
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let place = McpPlace::Http {
        url,
        allow_private: shape.allow_private,
        headers,
    };
    Some((place, Vec::new()))
}

/// The names of those settings of a program that are set.
fn of_program(shape: &McpShape) -> Vec<&'static str> {
    let all = [
        ("argv", !shape.argv.is_empty()),
        ("folder", shape.folder.is_some()),
        ("environment", !shape.environment.is_empty()),
        ("secrets", !shape.secrets.is_empty()),
        ("read", !shape.read.is_empty()),
        ("write", !shape.write.is_empty()),
        ("connect_ports", !shape.connect_ports.is_empty()),
        ("memory_max_mib", shape.memory_max_mib.is_some()),
        ("processes_max", shape.processes_max.is_some()),
        ("trusted", shape.trusted),
    ];
    let set = all.into_iter().filter(|(_, is_set)| *is_set);
    set.map(|(name, _)| name).collect()
}

/// The names of those settings of an address that are set.
fn of_address(shape: &McpShape) -> Vec<&'static str> {
    let all = [
        ("url", shape.url.is_some()),
        ("bearer", shape.bearer.is_some()),
        ("headers", !shape.headers.is_empty()),
        ("allow_private", !shape.allow_private.is_empty()),
    ];
    let set = all.into_iter().filter(|(_, is_set)| *is_set);
    set.map(|(name, _)| name).collect()
}

fn address(key: &str, url: &str, allow_private: &[String], review: &mut Review<'_>) -> Option<Url> {
    let Ok(url) = Url::parse(url) else {
        review.problem(key, "is no address");
        return None;
    };
    let host = url.host_str().unwrap_or_default();
    let address = format!("{host}:{}", url.port_or_known_default().unwrap_or_default());
    let is_own = allow_private
        .iter()
        .any(|it| it.eq_ignore_ascii_case(&address));
    if url.scheme() != "https" && !(url.scheme() == "http" && is_own) {
        let what = format!(
            "must begin with https://, or with http:// and \"{address}\" be in allow_private"
        );
        review.problem(key, what);
    }
    if !url.username().is_empty() || url.password().is_some() {
        review.problem(
            key,
            "has a user or password in it, which would show in logs",
        );
    }
    Some(url)
}
