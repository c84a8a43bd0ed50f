//! Walks through JSON of any size and extracts single values, byte for byte.
//!
//! A serde visitor over the whole document would stop at the first value it dislikes, and a document
//! that is cut would say little about where. This scanner only finds where values begin and end;
//! each is then parsed on its own, after [`mend`] has made the text readable. It is not recursive, and
//! what it keeps of a value is bounded by the caller.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Read};

const BUFFER_BYTES: usize = 64 << 10;

/// Why the walk can't continue.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ScanError {
    /// The text ends inside a value.
    #[error("it ends in the middle, as if it was cut")]
    Cut,
    /// The text is no JSON here.
    #[error("it is not JSON here: {0} was expected")]
    NotJson(&'static str),
    /// The file can't be read.
    #[error("it can't be read: {0}")]
    Io(#[from] io::Error),
}

/// Whether a value was extracted whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lifted {
    Whole,
    /// Longer than allowed; what was extracted is of no use.
    TooLong,
}

/// A walk through one document.
pub(crate) struct JsonStream<R> {
    reader: BufReader<R>,
    line: u64,
    read_bytes: u64,
}

impl<R: Read> JsonStream<R> {
    /// Starts before the first value; a byte order mark is passed over.
    pub(crate) fn new(reader: R) -> Result<Self, ScanError> {
        let mut stream = Self {
            reader: BufReader::with_capacity(BUFFER_BYTES, reader),
            line: 1,
            read_bytes: 0,
        };
        if let Some(0xfe | 0xff) = stream.reader.fill_buf()?.first() {
            return Err(ScanError::NotJson("UTF-8, not UTF-16,"));
        }
        for mark in b"\xef\xbb\xbf" {
            if stream.reader.fill_buf()?.first() == Some(mark) {
                stream.consume(1);
            }
        }
        Ok(stream)
    }

    /// The line that comes next, from 1.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// Bytes read so far.
    pub(crate) fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    /// Whether the next value begins with `byte`.
    pub(crate) fn is_next(&mut self, byte: u8) -> Result<bool, ScanError> {
        Ok(self.next_byte()? == Some(byte))
    }

    /// Goes into the array or object that begins with `byte`.
    pub(crate) fn enter(&mut self, byte: u8, what: &'static str) -> Result<(), ScanError> {
        match self.next_byte()? {
            Some(found) if found == byte => {
                self.consume(1);
                Ok(())
            }
            Some(_) => Err(ScanError::NotJson(what)),
            None => Err(ScanError::Cut),
        }
    }

    /// Goes to the next value of an array, or out of it; `is_first` says that none was read.
    pub(crate) fn next_element(&mut self, is_first: &mut bool) -> Result<bool, ScanError> {
        self.next_of(b']', is_first)
    }

    /// The next key of an object, with its value coming next; `None` leaves the object.
    pub(crate) fn next_key(&mut self, is_first: &mut bool) -> Result<Option<String>, ScanError> {
        const KEY_MAX_BYTES: usize = 4_096;
        if !self.next_of(b'}', is_first)? {
            return Ok(None);
        }
        if !self.is_next(b'"')? {
            return Err(ScanError::NotJson("a key"));
        }
        let mut key = Vec::new();
        let lifted = self.lift(&mut key, KEY_MAX_BYTES)?;
        self.enter(b':', "a colon")?;
        let key = serde_json::from_str(&mend(&key));
        Ok(Some(match (lifted, key) {
            (Lifted::Whole, Ok(key)) => key,
            // A key that nobody looks for.
            _ => String::new(),
        }))
    }

    fn next_of(&mut self, close: u8, is_first: &mut bool) -> Result<bool, ScanError> {
        let was_first = std::mem::replace(is_first, false);
        match self.next_byte()? {
            None => Err(ScanError::Cut),
            Some(byte) if byte == close => {
                self.consume(1);
                Ok(false)
            }
            Some(b',') if !was_first => {
                self.consume(1);
                // Up to the value's first byte, so that its line is known.
                self.next_byte().map(|_| true)
            }
            Some(_) if was_first => Ok(true),
            Some(_) => Err(ScanError::NotJson("a comma or the end of a list")),
        }
    }

    /// Passes over the next value.
    pub(crate) fn skip(&mut self) -> Result<(), ScanError> {
        self.lift(&mut Vec::new(), 0).map(|_| ())
    }

    /// Extracts the next value, at most `max_bytes` of it.
    pub(crate) fn lift(
        &mut self,
        into: &mut Vec<u8>,
        max_bytes: usize,
    ) -> Result<Lifted, ScanError> {
        into.clear();
        let first = self.next_byte()?.ok_or(ScanError::Cut)?;
        if matches!(first, b',' | b':' | b']' | b'}') {
            return Err(ScanError::NotJson("a value"));
        }
        let mut shape = JsonShape::default();
        let mut is_whole = true;
        loop {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                return shape.at_end().map(|()| lifted(is_whole));
            }
            let (length, is_over) = shape.take(buffer);
            is_whole &= into.len() + length <= max_bytes;
            if is_whole {
                into.extend_from_slice(&buffer[..length]);
            }
            self.consume(length);
            if is_over {
                return Ok(lifted(is_whole));
            }
        }
    }

    fn next_byte(&mut self) -> Result<Option<u8>, ScanError> {
        loop {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                return Ok(None);
            }
            let blank = buffer.iter().take_while(|byte| byte.is_ascii_whitespace());
            let blank = blank.count();
            let found = buffer.get(blank).copied();
            self.consume(blank);
            if found.is_some() {
                return Ok(found);
            }
        }
    }

    fn consume(&mut self, length: usize) {
        let passed = self.reader.buffer().iter().take(length);
        self.line += passed.filter(|byte| **byte == b'\n').count() as u64;
        self.read_bytes += length as u64;
        self.reader.consume(length);
    }
}

fn lifted(is_whole: bool) -> Lifted {
    if is_whole {
        Lifted::Whole
    } else {
        Lifted::TooLong
    }
}

/// Where in a value the scanner is.
#[derive(Default)]
struct JsonShape {
    depth: u64,
    is_string: bool,
    is_escaped: bool,
    /// Inside a number or a word, which end only where something else begins.
    is_bare: bool,
}

impl JsonShape {
    /// How many bytes belong to the value, and whether it is over after them.
    fn take(&mut self, buffer: &[u8]) -> (usize, bool) {
        for (at, byte) in buffer.iter().enumerate() {
            if self.is_string {
                match byte {
                    _ if self.is_escaped => self.is_escaped = false,
                    b'\\' => self.is_escaped = true,
                    b'"' => {
                        self.is_string = false;
                        if self.depth == 0 {
                            return (at + 1, true);
                        }
                    }
                    _ => {}
                }
                continue;
            }
            let ends_bare = matches!(byte, b',' | b':' | b']' | b'}') || byte.is_ascii_whitespace();
            if self.is_bare && self.depth == 0 && ends_bare {
                return (at, true);
            }
            match byte {
                b'"' => self.is_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return (at + 1, true);
                    }
                }
                _ => self.is_bare = self.depth == 0,
            }
        }
        (buffer.len(), false)
    }

    /// Succeeds where the text may end: only a number or a word may end with it.
    fn at_end(&self) -> Result<(), ScanError> {
        if self.is_bare && !self.is_string && self.depth == 0 {
            Ok(())
        } else {
            Err(ScanError::Cut)
        }
    }
}

/// An extracted value as text that a JSON parser takes: bytes of another encoding and lone surrogates become U+FFFD,
/// control characters inside strings are escaped.
pub(crate) fn mend(raw: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(raw);
    let has_control = text.bytes().any(|byte| byte < 0x20 && !is_space(byte));
    let has_break = text.contains(['\n', '\t', '\r']);
    if !text.contains("\\u") && !has_control && !has_break {
        return text;
    }
    Cow::Owned(mended(&text))
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r' | b'\t')
}

fn mended(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut is_string = false;
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => {
                is_string = !is_string;
                out.push(c);
            }
            '\\' if is_string => {
                let length = push_escape(&mut out, &text[at..]);
                // The first character of the escape is passed already.
                let passed = text[at..at + length].chars().count();
                for _ in 1..passed {
                    chars.next();
                }
            }
            c if is_string && (c as u32) < 0x20 => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out
}

/// Appends the escape that `rest` begins with, and returns its length in bytes.
fn push_escape(out: &mut String, rest: &str) -> usize {
    const LONE: &str = "\\ufffd";
    match unit(rest) {
        Some(0xd800..=0xdbff) => match rest.get(6..).and_then(unit) {
            Some(0xdc00..=0xdfff) => {
                out.push_str(&rest[..12]);
                12
            }
            _ => {
                out.push_str(LONE);
                6
            }
        },
        Some(0xdc00..=0xdfff) => {
            out.push_str(LONE);
            6
        }
        Some(_) => {
            out.push_str(&rest[..6]);
            6
        }
        None => {
            let length = rest.chars().take(2).map(char::len_utf8).sum();
            out.push_str(&rest[..length]);
            length
        }
    }
}

/// The UTF-16 unit of a `\uXXXX` at the start.
fn unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex
        .then(|| u32::from_str_radix(digits, 16).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    /// A reader that gives a few bytes at a time, so that every boundary is met.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = self.1.min(self.0.len()).min(buffer.len());
            buffer[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }

    fn elements(json: &[u8], step: usize, max: usize) -> Result<Vec<String>, ScanError> {
        let mut stream = JsonStream::new(Slow(json, step))?;
        stream.enter(b'[', "an array")?;
        let (mut found, mut raw, mut is_first) = (Vec::new(), Vec::new(), true);
        while stream.next_element(&mut is_first)? {
            found.push(match stream.lift(&mut raw, max)? {
                Lifted::Whole => mend(&raw).into_owned(),
                Lifted::TooLong => "too long".to_owned(),
            });
        }
        Ok(found)
    }

    #[test]
    fn values_are_lifted_as_they_are() {
        let json = b"\xef\xbb\xbf [ {\"a\":[1,{\"b\":\"]}\\\"\"}]} ,12, \"x,\", null,[[]] ]";
        for step in 1..9 {
            assert_eq!(
                elements(json, step, 99).unwrap(),
                [
                    "{\"a\":[1,{\"b\":\"]}\\\"\"}]}",
                    "12",
                    "\"x,\"",
                    "null",
                    "[[]]"
                ]
            );
        }
        assert_eq!(
            elements(b"[\"12345\", 7]", 3, 5).unwrap(),
            ["too long", "7"]
        );
        assert_eq!(elements(b"[]", 1, 5).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_cut_or_foreign_text_is_told() {
        for cut in [&b"[{\"a\":1"[..], b"[1", b"[\"x", b"[1,", b"[", b""] {
            assert!(
                matches!(elements(cut, 2, 99), Err(ScanError::Cut)),
                "{cut:?}"
            );
        }
        for foreign in [
            &b"{}"[..],
            b"[1 2]",
            b"[,]",
            b"[1,]",
            b"PK\x03\x04",
            b"\xff\xfe[",
        ] {
            let found = elements(foreign, 2, 99);
            assert!(matches!(found, Err(ScanError::NotJson(_))), "{foreign:?}");
        }
    }

    #[test]
    fn lines_and_keys_are_known() {
        let mut stream =
            JsonStream::new(&b"{\n\"a\": {\"x\": [1]},\n\n \"b\\u0063\": 2}"[..]).unwrap();
        stream.enter(b'{', "an object").unwrap();
        let mut is_first = true;
        assert_eq!(stream.next_key(&mut is_first).unwrap().unwrap(), "a");
        stream.skip().unwrap();
        assert_eq!(stream.next_key(&mut is_first).unwrap().unwrap(), "bc");
        assert_eq!(stream.line(), 4);
        stream.skip().unwrap();
        assert_eq!(stream.next_key(&mut is_first).unwrap(), None);
    }

    #[test]
    fn what_no_parser_takes_is_mended() {
        let table: [(&[u8], &str); 6] = [
            (br#""a\ud800b""#, "a\u{fffd}b"),
            (br#""\udc00\ud83d\ude00""#, "\u{fffd}\u{1f600}"),
            (br#""\ud83d\u0041""#, "\u{fffd}A"),
            (b"\"caf\xe9\"", "caf\u{fffd}"),
            (b"\"a\x00b\nc\"", "a\0b\nc"),
            (br#""\\ud800 \" \u0000""#, "\\ud800 \" \0"),
        ];
        for (raw, expected) in table {
            let text: String = serde_json::from_str(&mend(raw)).unwrap();
            assert_eq!(text, expected);
        }
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), step in 1_usize..9) {
            let _ = elements(&bytes, step, 20);
            let _ = mend(&bytes);
        }

        #[test]
        fn any_json_string_keeps_its_meaning(text in "\\PC{0,40}|[\\\\\"u0-9\n\t]{0,20}") {
            let json = serde_json::to_string(&text).unwrap();
            let back: String = serde_json::from_str(&mend(json.as_bytes())).unwrap();
            prop_assert_eq!(back, text);
        }
    }
}
