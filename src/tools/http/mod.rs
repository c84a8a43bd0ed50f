//! Tools of kind `http`: one request, made of a call's arguments.
//!
//! Arguments never choose scheme, host or port; these are the operator's. Every hop is checked by its address, and
//! connections go only to the addresses that were checked. The answer is data.
//!
//! Reading order: this page, `template` (arguments become a request), `sending` (hops, and what an outcome means).

mod sending;
mod template;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use reqwest::Method;
use secrecy::SecretString;
use serde_json::{Value, json};

pub use template::{BodyTemplate, UrlTemplate, WHOLE};

use super::{CallContext, Tool, ToolError, ToolOutput};
use vocative_core::tool_call::CallRule;

/// The longest answer that is read if the settings set no limit, in bytes.
pub const ANSWER_BYTES_DEFAULT: usize = 256 << 10;

/// A request that a model may make, with its secrets.
#[derive(Clone, Debug)]
pub struct HttpTool {
    /// Its settings.
    pub settings: HttpToolSettings,
    /// Headers whose values are secret.
    pub secret_headers: Vec<(String, SecretString)>,
}

/// The settings of a request that a model may make.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpToolSettings {
    /// The tool's name.
    pub name: String,
    /// What it is for, in words for the model.
    pub description: String,
    /// The JSON schema of its arguments.
    pub schema: Value,
    /// Whether a call is made again if it is not known whether it acted.
    pub rule: CallRule,
    /// The method.
    pub method: Method,
    /// The address.
    pub url: UrlTemplate,
    /// The body; `None` = no body.
    pub body: Option<BodyTemplate>,
    /// Headers without secrets.
    pub headers: Vec<(String, String)>,
    /// The header that carries the call's id.
    pub idempotency_header: Option<String>,
    /// Hosts of the operator's own networks that the tool may reach, with their ports: `10.0.0.7:8080`.
    pub allow_private: Vec<String>,
    /// Which part of a JSON answer is shown, as a JSON pointer; empty: all of it.
    pub result: String,
    /// The longest answer that is read, in bytes.
    pub answer_bytes_max: usize,
    /// How long a call may take, in milliseconds.
    pub timeout_ms: u64,
}

impl HttpTool {
    /// Makes the request with a body of [`BodyTemplate::whole`] and returns the JSON answer. For callers other than
    /// models.
    ///
    /// # Errors
    /// What went wrong, without addresses and without the answer.
    pub async fn ask(&self, event: &Value) -> Result<Value, String> {
        sending::ask_whole(self, event).await
    }

    /// Makes the request with a body of [`BodyTemplate::whole`]; any success status is enough. For callers other than
    /// models.
    ///
    /// # Errors
    /// What went wrong, without addresses and without the answer.
    pub async fn tell(&self, event: &Value) -> Result<(), String> {
        sending::tell_whole(self, event).await
    }
}

impl Tool for Arc<HttpTool> {
    fn name(&self) -> &str {
        &self.settings.name
    }

    fn description(&self) -> &str {
        &self.settings.description
    }

    fn schema(&self) -> Value {
        self.settings.schema.clone()
    }

    fn rule(&self) -> CallRule {
        self.settings.rule
    }

    fn definition(&self) -> Value {
        let secret: Vec<&str> = self.secret_headers.iter().map(|it| it.0.as_str()).collect();
        json!({
            "kind": "http",
            "method": self.settings.method.as_str(),
            "url": self.settings.url.text(),
            "body": self.settings.body.as_ref().map(BodyTemplate::value),
            "headers": self.settings.headers,
            "secret_headers": secret,
            "idempotency_header": self.settings.idempotency_header,
        })
    }

    fn target(&self) -> String {
        format!("{} {}", self.settings.method, self.settings.url.text())
    }

    fn call(
        &self,
        arguments: Value,
        context: CallContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let tool = Arc::clone(self);
        Box::pin(async move { sending::send(&tool, &arguments, &context).await })
    }
}
