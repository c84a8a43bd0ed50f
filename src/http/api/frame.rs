//! Events as server-sent events: bytes that are made once and shared by all readers.

use axum::body::Bytes;
use serde_json::{Value, json};

use crate::domain::ids::EventId;
use crate::domain::run_event::{Ending, Happening, RunEvent, RunSnapshot};

/// A sign of life between events.
pub(super) const HEARTBEAT: Bytes = Bytes::from_static(b": still here\n\n");

/// An event. The end of a run that said something is told with all that it said, as a snapshot before
/// it: whatever was heard of the text, this is what stands.
pub(super) fn event(event: &RunEvent) -> Bytes {
    let mut text = String::new();
    if let Happening::Ended(ending) = &event.what
        && !ending.text.is_empty()
    {
        write(&mut text, None, "snapshot", &said(event, ending));
    }
    write(&mut text, event.id, event.what.name(), &data(event));
    text.into()
}

/// How a run stands, for a reader who comes late.
pub(super) fn snapshot(snapshot: &RunSnapshot, id: Option<EventId>) -> Bytes {
    let mut text = String::new();
    let data = json!({
        "run": snapshot.run.to_string(),
        "conversation": snapshot.conversation.to_string(),
        "agent": snapshot.agent.as_str(),
        "state": snapshot.state,
        "attempt": snapshot.attempt,
        "step": snapshot.step,
        "text": snapshot.text,
    });
    write(&mut text, id, "snapshot", &data);
    text.into()
}

/// Tells an id without an event: from here on a reader who comes back goes on.
pub(super) fn mark(id: EventId) -> Bytes {
    format!("id: {id}\n\n").into()
}

/// JSON has no line breaks, so each event is three lines at most.
fn write(text: &mut String, id: Option<EventId>, name: &str, data: &Value) {
    use std::fmt::Write as _;
    if let Some(id) = id {
        let _ = writeln!(text, "id: {id}");
    }
    let _ = write!(text, "event: {name}\ndata: {data}\n\n");
}

fn said(event: &RunEvent, ending: &Ending) -> Value {
    json!({
        "run": event.run.to_string(),
        "conversation": event.conversation.to_string(),
        "agent": event.agent.as_str(),
        "state": ending.kind.name(),
        "text": ending.text,
    })
}

fn data(event: &RunEvent) -> Value {
    let mut data = json!({
        "run": event.run.to_string(),
        "conversation": event.conversation.to_string(),
        "agent": event.agent.as_str(),
        "at_ms": event.at_ms,
    });
    match &event.what {
        Happening::Started | Happening::Restarted => {}
        Happening::Text { step, text } => {
            data["step"] = json!(step);
            data["text"] = json!(text);
        }
        Happening::ToolCall {
            step,
            call_id,
            tool,
            arguments,
        } => {
            data["step"] = json!(step);
            data["call"] = json!(call_id);
            data["tool"] = json!(tool);
            data["arguments"] = json!(arguments);
        }
        Happening::ToolResult {
            step,
            call_id,
            tool,
            turn,
            text,
        } => {
            data["step"] = json!(step);
            data["call"] = json!(call_id);
            data["tool"] = json!(tool);
            data["turn"] = json!(turn.map(|turn| turn.to_string()));
            data["text"] = json!(text);
        }
        Happening::Usage {
            step,
            prompt_tokens,
            completion_tokens,
        } => {
            data["step"] = json!(step);
            data["prompt_tokens"] = json!(prompt_tokens);
            data["completion_tokens"] = json!(completion_tokens);
        }
        Happening::Ended(ending) => {
            data["turn"] = json!(ending.turn.map(|turn| turn.to_string()));
            data["reason"] = json!(ending.reason);
        }
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::{AgentName, ConversationId, RunId, TurnId};
    use crate::domain::run_event::EndingKind;
    use uuid::Uuid;

    fn told(what: Happening) -> String {
        let happened = RunEvent {
            id: Some(EventId(7)),
            run: RunId(Uuid::nil()),
            conversation: ConversationId(Uuid::max()),
            agent: AgentName::trusted("helper"),
            what,
            at_ms: 5,
        };
        String::from_utf8_lossy(&event(&happened)).into_owned()
    }

    #[test]
    fn a_text_is_one_event_whatever_is_in_it() {
        let frame = told(Happening::Text {
            step: 1,
            text: "one\n\ndata: two\r\u{2028}".to_owned(),
        });
        let lines: Vec<&str> = frame.split('\n').collect();
        assert_eq!(
            (lines[0], lines[1], lines.len()),
            ("id: 7", "event: text", 5)
        );
        let data: Value =
            serde_json::from_str(lines[2].trim_start_matches("data: ")).unwrap_or_default();
        assert_eq!(data["text"], "one\n\ndata: two\r\u{2028}");
        assert!(!frame.contains('\r'));
    }

    #[test]
    fn an_end_brings_what_stands_before_it_and_only_the_end_has_the_id() {
        let ending = Ending {
            kind: EndingKind::Finished,
            turn: Some(TurnId(Uuid::nil())),
            text: "all of it".to_owned(),
            reason: None,
        };
        let frame = told(Happening::Ended(ending.clone()));
        let events: Vec<&str> = frame.split_terminator("\n\n").collect();
        assert_eq!(events.len(), 2);
        assert!(events[0].starts_with("event: snapshot\n") && events[0].contains("all of it"));
        assert!(events[1].starts_with("id: 7\nevent: finished\n"));
        let silent = Ending {
            kind: EndingKind::Cancelled,
            turn: None,
            text: String::new(),
            ..ending
        };
        assert!(told(Happening::Ended(silent)).starts_with("id: 7\nevent: cancelled\n"));
    }
}
