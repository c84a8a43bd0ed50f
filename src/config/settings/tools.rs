//! Tools by configuration.

use crate::config::SecretRef;
use crate::tools::command::CommandToolSettings;
use crate::tools::http::HttpToolSettings;
use crate::tools::mcp::McpSettings;
use crate::tools::{ApprovalSettings, BuiltIn, PersonName, ToolLimits};
use vocative_core::tool_call::CallRule;

/// A tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// Its kind, with the kind's settings.
    pub kind: ToolKind,
    /// How often it may be called, and how long a call may take.
    pub limits: ToolLimits,
    /// The people whose questions it may be called for; `None` = everybody.
    pub allow_people: Option<Vec<PersonName>>,
    /// When calls wait for a person.
    pub approval: ApprovalSettings,
}

impl Tool {
    /// Whether a call is made again if it is not known whether it acted.
    #[must_use]
    pub fn rule(&self) -> CallRule {
        match &self.kind {
            ToolKind::BuiltIn(tool) => tool.rule(),
            ToolKind::Http { settings, .. } => settings.rule,
            ToolKind::Command { settings, .. } => settings.rule,
        }
    }
}

/// The kind of a tool.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolKind {
    /// A built-in tool, with limits.
    BuiltIn(BuiltIn),
    /// An HTTP request.
    Http {
        /// The settings without secrets.
        settings: Box<HttpToolSettings>,
        /// Where its secrets are.
        secret_headers: Vec<SecretHeader>,
    },
    /// A program.
    Command {
        /// The settings without secrets.
        settings: Box<CommandToolSettings>,
        /// The variables that contain its secrets.
        secrets: Vec<SecretVariable>,
    },
}

/// An MCP server.
#[derive(Clone, Debug, PartialEq)]
pub struct McpServer {
    /// The settings without secrets.
    pub settings: McpSettings,
    /// The variables that contain its program's secrets.
    pub secrets: Vec<SecretVariable>,
    /// Where the token is that is sent to it.
    pub bearer: Option<SecretRef>,
    /// How often each of its tools may be called, and how long a call may take.
    pub limits: ToolLimits,
    /// The people whose questions its tools may be called for; `None` = everybody.
    pub allow_people: Option<Vec<PersonName>>,
    /// When calls wait for a person.
    pub approval: ApprovalSettings,
}

/// A variable that contains a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretVariable {
    /// Its name.
    pub name: String,
    /// Where the secret is.
    pub secret: SecretRef,
}

/// A header that contains a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretHeader {
    /// The setting with the reference to the secret.
    pub setting: &'static str,
    /// The header's name.
    pub name: String,
    /// The text before the secret.
    pub prefix: &'static str,
    /// Where the secret is.
    pub secret: SecretRef,
}
