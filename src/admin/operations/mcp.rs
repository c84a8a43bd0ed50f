//! Servers of tools: what they offer, and what people decide about it.

use super::{OperationError, OperationResult, Operations, json};
use crate::admin::view::McpToolView;
use crate::tools::mcp::pin_digest;

impl Operations {
    pub(super) async fn mcp_tools(&self, server: Option<&str>) -> OperationResult {
        let tools = self.store.pinned_tools(server).await?;
        let views: Vec<McpToolView> = tools.iter().map(Into::into).collect();
        Ok(json(&views))
    }

    pub(super) async fn approve_mcp_tools(
        &self,
        server: &str,
        tool: Option<&str>,
        digest: Option<&str>,
    ) -> OperationResult {
        let tools = self.store.pinned_tools(Some(server)).await?;
        let is_meant = |name: &str| tool.is_none_or(|tool| tool == name);
        let waiting = tools.iter().filter(|it| is_meant(&it.tool));
        let waiting: Vec<&String> = waiting.filter_map(|it| it.waiting.as_ref()).collect();
        if waiting.is_empty() {
            return Err(OperationError::Wrong(format!(
                "nothing of {server} waits; `vocative mcp tools` shows what does"
            )));
        }
        let is_another = |digest: &str| waiting.iter().any(|it| pin_digest(it) != digest);
        if digest.is_some_and(is_another) {
            return Err(OperationError::Wrong(
                "the server says something else meanwhile; look at it again".to_owned(),
            ));
        }
        let now_ms = (self.clock)();
        let approved = self.store.approve_tools(server, tool, now_ms).await?;
        if let Some(running) = &self.running {
            running.servers.relist(server);
        }
        Ok(approved.into())
    }
}
