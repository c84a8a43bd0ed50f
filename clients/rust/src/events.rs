//! What happens in a run, read from server-sent events.

use serde_json::Value;

use crate::{EVENT_MAX_BYTES, Error};

/// Something that happened in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// What to go on after; a snapshot may have none.
    pub id: Option<String>,
    /// `snapshot`, `text`, `tool_call`, `finished` …: docs/API.md.
    pub name: String,
    /// What it has.
    pub data: Value,
}

impl Event {
    /// Whether the run has ended with it.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        matches!(
            self.name.as_str(),
            "finished" | "failed" | "cancelled" | "interrupted"
        )
    }
}

/// Bytes of a stream that are not read yet.
#[derive(Debug, Default)]
pub(crate) struct Unread {
    bytes: Vec<u8>,
    /// How many bytes at the beginning were searched for the end of a block already.
    looked_at: usize,
}

impl Unread {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next event that is there as a whole. Comments are passed over.
    pub(crate) fn next(&mut self) -> Result<Option<Event>, Error> {
        loop {
            let unseen = &self.bytes[self.looked_at..];
            let Some(end) = unseen.windows(2).position(|it| it == b"\n\n") else {
                self.looked_at = self.bytes.len().saturating_sub(1);
                return match self.bytes.len() > EVENT_MAX_BYTES {
                    true => Err(not_understood("an event has no end")),
                    false => Ok(None),
                };
            };
            let block: Vec<u8> = self.bytes.drain(..self.looked_at + end + 2).collect();
            self.looked_at = 0;
            if let Some(event) = event(&String::from_utf8_lossy(&block))? {
                return Ok(Some(event));
            }
        }
    }
}

fn event(block: &str) -> Result<Option<Event>, Error> {
    let field = |name: &str| {
        let mut lines = block.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    };
    let (Some(name), Some(data)) = (field("event"), field("data")) else {
        return Ok(None);
    };
    let data = serde_json::from_str(data).map_err(|_| not_understood("an event is no JSON"))?;
    Ok(Some(Event {
        id: field("id").map(str::to_owned),
        name: name.to_owned(),
        data,
    }))
}

fn not_understood(what: &str) -> Error {
    Error::NotUnderstood {
        what: what.to_owned(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_are_read_whole_however_they_are_cut() {
        let sent = "id: 7\nevent: text\ndata: {\"text\":\"grüß\"}\n\n: still here\n\nevent: ready\ndata: {}\n\n";
        let expected = [
            Event {
                id: Some("7".to_owned()),
                name: "text".to_owned(),
                data: json!({"text": "grüß"}),
            },
            Event {
                id: None,
                name: "ready".to_owned(),
                data: json!({}),
            },
        ];
        for size in 1..sent.len() {
            let (mut unread, mut read) = (Unread::default(), Vec::new());
            for piece in sent.as_bytes().chunks(size) {
                unread.push(piece);
                read.extend(std::iter::from_fn(|| unread.next().unwrap()));
            }
            assert_eq!(read, expected, "{size}");
        }
    }

    #[test]
    fn what_is_no_event_of_ours_is_told() {
        let mut unread = Unread::default();
        unread.push(b"event: text\ndata: {\n\n");
        assert!(unread.next().is_err());
        let mut unread = Unread::default();
        unread.push(&vec![b'x'; EVENT_MAX_BYTES + 1]);
        assert!(unread.next().is_err());
    }
}
