//! A question to a hook of kind `http`: JSON there, JSON back, within its time and size.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{AboutRun, At, Subject};
use crate::tools::HttpTool;
use vocative_core::hooking::HookDecision;

/// The version of the JSON that is sent.
pub(super) const VERSION: u32 = 1;

/// Asks. Whatever happens, there is a verdict.
pub(super) async fn ask(
    hook: &str,
    request: &Arc<HttpTool>,
    has_content: bool,
    about: &AboutRun,
    at: At,
    subject: Subject<'_>,
) -> HookDecision {
    let event = event(hook, has_content, about, at, subject);
    match request.ask(&event).await {
        Ok(answer) => verdict_of(&answer),
        Err(reason) => HookDecision::Failed { reason },
    }
}

/// The JSON that a hook is sent. The id is the same however often the same question is asked.
fn event(hook: &str, has_content: bool, about: &AboutRun, at: At, subject: Subject<'_>) -> Value {
    let At { point, step, n } = at;
    let id = format!("{}/{}/{step}/{n}/{hook}", about.run, point.name());
    let mut event = json!({
        "version": VERSION,
        "id": id,
        "hook": hook,
        "point": point.name(),
        "agent": about.agent,
        "run": about.run,
        "conversation": about.conversation,
        "channel": about.channel,
        "chat": about.chat,
        "person": about.person,
    });
    let Some(fields) = event.as_object_mut() else {
        return event;
    };
    if step > 0 {
        fields.insert("step".to_owned(), step.into());
    }
    describe(fields, has_content, subject);
    event
}

fn describe(fields: &mut Map<String, Value>, has_content: bool, subject: Subject<'_>) {
    let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    let text = match subject {
        Subject::Going { text, model } => {
            put("model", model.into());
            text
        }
        Subject::Text { text } => text,
        Subject::Call {
            tool, arguments, ..
        } => {
            put("tool", tool.into());
            if has_content {
                put("arguments", arguments.clone());
            }
            return;
        }
        Subject::Result {
            tool,
            text,
            is_error,
        } => {
            put("tool", tool.into());
            put("is_error", is_error.into());
            text
        }
    };
    put("text_bytes", text.len().into());
    if has_content {
        put("text", text.into());
    }
}

/// The verdict in an answer.
fn verdict_of(answer: &Value) -> HookDecision {
    let text = |name: &str| answer[name].as_str().map(str::to_owned);
    let reason = text("reason").unwrap_or_default();
    let missing = |what: &str| HookDecision::Failed {
        reason: format!("its answer holds no {what}"),
    };
    match answer["verdict"].as_str() {
        Some("pass") => HookDecision::Pass,
        Some("deny") => HookDecision::Deny { reason },
        Some("ask") => HookDecision::Ask { reason },
        Some("narrow") => match &answer["arguments"] {
            Value::Null => missing("arguments"),
            arguments => HookDecision::Narrow {
                arguments: arguments.to_string(),
            },
        },
        Some("redact") => match text("text") {
            Some(text) => HookDecision::Redact {
                count: 0,
                text: Some(text),
            },
            None => missing("text"),
        },
        Some("note") => {
            text("text").map_or_else(|| missing("text"), |text| HookDecision::Note { text })
        }
        _ => missing("verdict that is known here"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocative_core::hooking::HookPoint;

    fn about() -> AboutRun {
        AboutRun {
            agent: "vocative".to_owned(),
            run: "r1".to_owned(),
            conversation: "c1".to_owned(),
            channel: "acme".to_owned(),
            chat: "C0GENERAL".to_owned(),
            person: Some("U0ANN".to_owned()),
        }
    }

    #[test]
    fn a_hook_sees_content_only_where_it_may() {
        let at = At {
            point: HookPoint::BeforeTool,
            step: 2,
            n: 1,
        };
        let arguments = json!({"amount": 120});
        let call = Subject::Call {
            tool: "refund",
            arguments: &arguments,
            is_changed: false,
        };
        let sent = event("guard", true, &about(), at, call);
        assert_eq!(
            sent,
            json!({"version": 1, "id": "r1/before_tool/2/1/guard", "hook": "guard", "point": "before_tool",
                "agent": "vocative", "run": "r1", "conversation": "c1", "channel": "acme", "chat": "C0GENERAL",
                "person": "U0ANN", "step": 2, "tool": "refund", "arguments": {"amount": 120}})
        );
        let sent = event("guard", false, &about(), at, call);
        assert_eq!(sent.get("arguments"), None);
        let at = At {
            point: HookPoint::BeforePost,
            step: 0,
            n: 0,
        };
        let sent = event(
            "guard",
            false,
            &about(),
            at,
            Subject::Text { text: "zebra" },
        );
        assert_eq!(sent["text_bytes"], 5);
        assert!(!sent.to_string().contains("zebra"));
    }

    #[test]
    fn an_answer_that_can_not_be_read_is_no_verdict() {
        let table = [
            (json!({"verdict": "pass"}), "pass", ""),
            (json!({"verdict": "deny", "reason": "no"}), "deny", "no"),
            (json!({"verdict": "ask"}), "ask", ""),
            (json!({"verdict": "narrow", "arguments": {}}), "narrow", ""),
            (
                json!({"verdict": "narrow"}),
                "failed",
                "its answer holds no arguments",
            ),
            (json!({"verdict": "redact", "text": ""}), "redact", ""),
            (
                json!({"verdict": "redact", "text": 1}),
                "failed",
                "its answer holds no text",
            ),
            (json!({"verdict": "note", "text": "x"}), "note", ""),
            (
                json!({"verdict": "allow"}),
                "failed",
                "its answer holds no verdict that is known here",
            ),
            (
                json!("pass"),
                "failed",
                "its answer holds no verdict that is known here",
            ),
        ];
        for (answer, name, reason) in table {
            let verdict = verdict_of(&answer);
            assert_eq!(
                (verdict.name(), verdict.reason()),
                (name, reason),
                "{answer}"
            );
        }
    }
}
