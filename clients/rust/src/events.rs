//! What happens in a run, read from server-sent events.

use serde_json::Value;

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
pub(crate) struct Unread(Vec<u8>);

impl Unread {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// The next event that is there as a whole. Comments, and blocks that are none, are passed over.
    pub(crate) fn next(&mut self) -> Option<Event> {
        loop {
            let end = self.0.windows(2).position(|it| it == b"\n\n")?;
            let block: Vec<u8> = self.0.drain(..end + 2).collect();
            if let Some(event) = event(&String::from_utf8_lossy(&block)) {
                return Some(event);
            }
        }
    }
}

fn event(block: &str) -> Option<Event> {
    let field = |name: &str| {
        let mut lines = block.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    };
    Some(Event {
        id: field("id").map(str::to_owned),
        name: field("event")?.to_owned(),
        data: serde_json::from_str(field("data")?).ok()?,
    })
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
                read.extend(std::iter::from_fn(|| unread.next()));
            }
            assert_eq!(read, expected, "{size}");
        }
    }
}
