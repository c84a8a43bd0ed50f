//! Run events in the form in which programs get them: from the API and from `vocative events`.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use vocative_core::ids::EventId;
use vocative_core::run_event::{Ending, Happening, RunEvent, RunSnapshot};

/// One thing that is told.
#[derive(Clone, Debug, PartialEq)]
pub struct ToldEvent {
    /// Its id; `None` if it is no event of the store.
    pub id: Option<EventId>,
    /// The event's name.
    pub name: &'static str,
    /// What there is to say of it.
    pub data: Value,
}

/// An event as programs get it. If a run has said something, its end comes after a snapshot of the whole text: that
/// text holds, whatever pieces a reader got before.
#[must_use]
pub fn event(event: &RunEvent) -> Vec<ToldEvent> {
    let mut told = Vec::with_capacity(1);
    if let Happening::Ended(ending) = &event.what
        && !ending.text.is_empty()
    {
        told.push(ToldEvent {
            id: None,
            name: "snapshot",
            data: said(event, ending),
        });
    }
    told.push(ToldEvent {
        id: event.id,
        name: event.what.name(),
        data: data(event),
    });
    told
}

/// How a run stands, for a reader who comes late.
#[must_use]
pub fn snapshot(snapshot: &RunSnapshot, id: Option<EventId>) -> ToldEvent {
    let data = json!({
        "run": snapshot.run.to_string(),
        "conversation": snapshot.conversation.to_string(),
        "agent": snapshot.agent.as_str(),
        "state": snapshot.state,
        "attempt": snapshot.attempt,
        "step": snapshot.step,
        "text": snapshot.text,
    });
    ToldEvent {
        id,
        name: "snapshot",
        data,
    }
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
        Happening::ToolProgress {
            step,
            call_id,
            tool,
            text,
        } => {
            data["step"] = json!(step);
            data["call"] = json!(call_id);
            data["tool"] = json!(tool);
            data["text"] = json!(text);
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
        Happening::Usage { step, usage } => {
            data["step"] = json!(step);
            data["prompt_tokens"] = json!(usage.prompt_tokens);
            data["cache_read_tokens"] = json!(usage.cache_read_tokens);
            data["cache_write_tokens"] = json!(usage.cache_write_tokens);
            data["completion_tokens"] = json!(usage.completion_tokens);
        }
        Happening::Ended(ending) => {
            data["turn"] = json!(ending.turn.map(|turn| turn.to_string()));
            data["reason"] = json!(ending.reason);
        }
    }
    data
}

/// A page of what happened.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct EventsView {
    /// In order.
    pub events: Vec<EventView>,
    /// After which id the next page begins.
    pub next_after: i64,
    /// Whether there is no more at present.
    pub is_newest: bool,
    /// Whether there will be no more: the run has ended.
    pub is_over: bool,
    /// Whether it is of a conversation, not of one run.
    pub is_conversation: bool,
}

/// One thing that happened, with the words of the API.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EventView {
    /// Its id; absent for a snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<i64>,
    /// What it is.
    pub event: String,
    /// What there is to say of it.
    pub data: Value,
}

impl From<ToldEvent> for EventView {
    fn from(told: ToldEvent) -> Self {
        Self {
            id: told.id.map(|id| id.0),
            event: told.name.to_owned(),
            data: told.data,
        }
    }
}
