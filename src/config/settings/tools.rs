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
    /// What it is.
    pub kind: ToolKind,
    /// How often it may be called, and how long a call may take.
    pub limits: ToolLimits,
    /// The people whose questions it may be called for; `None` = everybody's.
    pub allow_people: Option<Vec<PersonName>>,
    /// When calls wait for a person.
    pub approval: ApprovalSettings,
}

impl Tool {
    /// What follows when it is not known whether a call acted.
    #[must_use]
    pub fn rule(&self) -> CallRule {
        match &self.kind {
            ToolKind::BuiltIn(tool) => tool.rule(),
            ToolKind::Http { settings, .. } => settings.rule,
            ToolKind::Command { settings, .. } => settings.rule,
        }
    }
}

/// What a tool is.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolKind {
    /// One of ours, with limits.
    BuiltIn(BuiltIn),
    /// A request.
    Http {
        /// All but its secrets.
        settings: Box<HttpToolSettings>,
        /// Where its secrets are.
        secret_headers: Vec<SecretHeader>,
    },
    /// A program.
    Command {
        /// All but its secrets.
        settings: Box<CommandToolSettings>,
        /// Variables that hold its secrets.
        secrets: Vec<SecretVariable>,
    },
}

/// A server of tools.
#[derive(Clone, Debug, PartialEq)]
pub struct McpServer {
    /// All but its secrets.
    pub settings: McpSettings,
    /// Variables that hold secrets of its program.
    pub secrets: Vec<SecretVariable>,
    /// Where the token is that it is sent.
    pub bearer: Option<SecretRef>,
    /// How often its tools may be called, each, and how long a call may take.
    pub limits: ToolLimits,
    /// The people whose questions they may be called for; `None` = everybody's.
    pub allow_people: Option<Vec<PersonName>>,
    /// When calls wait for a person.
    pub approval: ApprovalSettings,
}

/// A variable with a secret in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretVariable {
    /// Its name.
    pub name: String,
    /// Where the secret is.
    pub secret: SecretRef,
}

/// A header with a secret in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretHeader {
    /// The setting that refers to it.
    pub setting: &'static str,
    /// The header.
    pub name: String,
    /// What stands before the secret.
    pub prefix: &'static str,
    /// Where the secret is.
    pub secret: SecretRef,
}
