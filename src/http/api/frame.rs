//! Events as server-sent events: bytes that are made once and shared by all readers.

use axum::body::Bytes;
use serde_json::json;

use super::epoch::Epoch;
use crate::admin::told::{self, ToldEvent};
use vocative_core::ids::{ConversationId, EventId};
use vocative_core::run_event::{RunEvent, RunSnapshot};

/// A sign of life between events.
pub(super) const HEARTBEAT: Bytes = Bytes::from_static(b": still here\n\n");

/// An event.
pub(super) fn event(event: &RunEvent, epoch: Epoch) -> Bytes {
    let mut text = String::new();
    for told in told::event(event) {
        write(&mut text, &told, epoch);
    }
    text.into()
}

/// How a run stands, for a reader who comes late.
pub(super) fn snapshot(snapshot: &RunSnapshot, id: Option<EventId>, epoch: Epoch) -> Bytes {
    let mut text = String::new();
    write(&mut text, &told::snapshot(snapshot, id), epoch);
    text.into()
}

/// Says that a reader of a conversation has the present state, and after which id it may resume. It has data, because
/// readers differ in how they treat a block without data.
pub(super) fn ready(conversation: ConversationId, id: EventId, epoch: Epoch) -> Bytes {
    let mut text = String::new();
    let ready = ToldEvent {
        id: Some(id),
        name: "ready",
        data: json!({ "conversation": conversation.to_string() }),
    };
    write(&mut text, &ready, epoch);
    text.into()
}

/// JSON has no line breaks, so each event is three lines at most.
fn write(text: &mut String, told: &ToldEvent, epoch: Epoch) {
    use std::fmt::Write as _;
    if let Some(id) = told.id {
        let _ = writeln!(text, "id: {}", epoch.name(id));
    }
    let _ = write!(text, "event: {}\ndata: {}\n\n", told.name, told.data);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use uuid::Uuid;
    use vocative_core::ids::{AgentName, RunId, TurnId};
    use vocative_core::run_event::{Ending, EndingKind, Happening};

    fn told(what: Happening) -> String {
        let happened = RunEvent {
            id: Some(EventId(7)),
            run: RunId(Uuid::nil()),
            conversation: ConversationId(Uuid::max()),
            agent: AgentName::trusted("helper"),
            what,
            at_ms: 5,
        };
        String::from_utf8_lossy(&event(&happened, Epoch::default())).into_owned()
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
