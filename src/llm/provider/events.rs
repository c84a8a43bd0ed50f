//! Splits a body into server-sent events, piece by piece and within limits.
//!
//! Pure. *Source:* HTML standard, "Server-sent events": lines end with LF, CR or both; a byte order mark at the start
//! is skipped. Unlike in the standard, a last event without its empty line counts, because some servers leave that line
//! out.

/// The longest event, in bytes.
pub(super) const EVENT_BYTES_MAX: usize = 4 << 20;
/// The longest stream, in bytes, comments included.
pub(super) const STREAM_BYTES_MAX: usize = 64 << 20;

/// One event. A comment has neither name nor data.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SseEvent {
    pub(super) name: Option<String>,
    pub(super) data: String,
}

/// Why a stream can't be read any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// An event, or the stream, is longer than its limit.
    Endless,
    /// The stream is not UTF-8.
    NoText,
}

/// Reads a stream piece by piece.
#[derive(Debug, Default)]
pub(super) struct SseReader {
    line: Vec<u8>,
    event: SseEvent,
    has_data: bool,
    event_bytes: usize,
    stream_bytes: usize,
    /// Whether the last byte was a CR, which an LF may follow.
    is_after_cr: bool,
    has_begun: bool,
    /// The first byte that is no white space.
    first: Option<u8>,
}

impl SseReader {
    /// Reads a piece; passes every event that it completes to `sink`, until `sink` returns false.
    pub(super) fn read(
        &mut self,
        piece: &[u8],
        mut sink: impl FnMut(SseEvent) -> bool,
    ) -> Result<(), Unreadable> {
        self.stream_bytes = self.stream_bytes.saturating_add(piece.len());
        let mut rest = piece;
        while !rest.is_empty() {
            if std::mem::take(&mut self.is_after_cr) && rest[0] == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let taken = end.unwrap_or(rest.len());
            self.event_bytes = self.event_bytes.saturating_add(taken);
            if self.event_bytes > EVENT_BYTES_MAX || self.stream_bytes > STREAM_BYTES_MAX {
                return Err(Unreadable::Endless);
            }
            self.line.extend_from_slice(&rest[..taken]);
            let first = rest[..taken].iter().find(|it| !it.is_ascii_whitespace());
            self.first = self.first.or(first.copied());
            let Some(end) = end else { return Ok(()) };
            self.is_after_cr = rest[end] == b'\r';
            rest = &rest[end + 1..];
            if let Some(event) = self.end_line()?
                && !sink(event)
            {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Ends the stream: a last event without an empty line counts, too.
    pub(super) fn close(&mut self) -> Result<Option<SseEvent>, Unreadable> {
        self.end_line()?;
        Ok(self.has_data.then(|| std::mem::take(&mut self.event)))
    }

    /// Whether the body can't be a stream: it is JSON or HTML.
    pub(super) fn is_document(&self) -> bool {
        matches!(self.first, Some(b'{' | b'[' | b'<'))
    }

    fn end_line(&mut self) -> Result<Option<SseEvent>, Unreadable> {
        let line = std::mem::take(&mut self.line);
        let line = std::str::from_utf8(&line).map_err(|_| Unreadable::NoText)?;
        let line = match std::mem::replace(&mut self.has_begun, true) {
            true => line,
            false => line.trim_start_matches('\u{feff}'),
        };
        if line.is_empty() {
            self.event_bytes = 0;
            let event = std::mem::take(&mut self.event);
            return Ok(std::mem::take(&mut self.has_data).then_some(event));
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            // A comment shows that the server is alive.
            "" => {
                self.event_bytes = self.event.data.len();
                return Ok(Some(SseEvent::default()));
            }
            "event" => self.event.name = Some(value.to_owned()),
            "data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
                self.has_data = true;
            }
            _ => {}
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<(Option<String>, String)> {
        let (mut events, mut found) = (SseReader::default(), Vec::new());
        for piece in pieces {
            let taken = events.read(piece, |event| {
                found.push((event.name, event.data));
                true
            });
            assert_eq!(taken, Ok(()));
        }
        let last = events.close().expect("it is text");
        found.extend(last.map(|event| (event.name, event.data)));
        found
    }

    fn named(name: &str, data: &str) -> (Option<String>, String) {
        (Some(name.to_owned()), data.to_owned())
    }

    fn plain(data: &str) -> (Option<String>, String) {
        (None, data.to_owned())
    }

    #[test]
    fn events_are_read_wherever_they_are_cut() {
        let body = "\u{feff}event: a\r\ndata: 1\r\ndata:  2\r\n\r\n: ping\n\nid: 7\ndata:ä\rdata\r\rdata: last";
        let expected = [named("a", "1\n 2"), plain(""), plain("ä\n"), plain("last")];
        for step in 1..body.len() {
            let pieces: Vec<&[u8]> = body.as_bytes().chunks(step).collect();
            assert_eq!(read(&pieces), expected, "{step} at a time");
        }
        assert_eq!(read(&[b"\n\nretry: 5\n\n"]), []);
    }

    #[test]
    fn what_has_no_end_and_what_is_no_text_is_given_up() {
        let mut events = SseReader::default();
        let piece = [b'x'; 1 << 16];
        let mut taken = 0;
        let outcome = loop {
            match events.read(&piece, |_| true) {
                Ok(()) => taken += piece.len(),
                Err(unreadable) => break unreadable,
            }
        };
        assert_eq!((outcome, taken), (Unreadable::Endless, EVENT_BYTES_MAX));
        let mut events = SseReader::default();
        assert_eq!(
            events.read(b"data: \xff\n", |_| true),
            Err(Unreadable::NoText)
        );
        let mut events = SseReader::default();
        let mut comments = 0;
        while events.read(b": so\n\n", |_| true).is_ok() {
            comments += 1;
        }
        assert_eq!(comments, STREAM_BYTES_MAX / 6);
    }

    #[test]
    fn documents_are_told_from_streams() {
        for (body, is_document) in [
            (" \n{\"a\"", true),
            ("<html>", true),
            ("data: {", false),
            ("", false),
        ] {
            let mut events = SseReader::default();
            assert_eq!(events.read(body.as_bytes(), |_| true), Ok(()));
            assert_eq!(events.is_document(), is_document, "{body}");
        }
    }
}
