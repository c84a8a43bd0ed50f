//! Tells a hook of kind `http` about an event: sends JSON, and reads from the answer only whether it is a success.

use std::sync::Arc;

use serde_json::{Value, json};

use super::asking::VERSION;
use super::{AboutApproval, HookTelling};
use crate::tools::HttpTool;

/// Sends an event to a hook.
pub(super) async fn tell(request: &Arc<HttpTool>, telling: &HookTelling) -> Result<(), String> {
    request.tell(&event(telling)).await
}

fn event(telling: &HookTelling) -> Value {
    let about = &telling.about;
    let mut event = json!({
        "version": VERSION,
        "id": telling.id,
        "hook": telling.hook,
        "point": telling.point.name(),
        "agent": about.agent,
        "run": about.run,
        "conversation": about.conversation,
        "channel": about.channel,
        "chat": about.chat,
        "person": about.person,
        "outcome": telling.outcome,
        "at_ms": telling.at_ms,
    });
    if let Some(AboutApproval { id, tool, by, via }) = &telling.approval {
        event["approval"] = json!(id);
        event["tool"] = json!(tool);
        event["by"] = json!(by);
        event["via"] = json!(via);
    }
    event
}
