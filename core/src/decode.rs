//! The characters of a text file's bytes. Pure.
//!
//! UTF-8, UTF-16 with its byte order mark, and Windows-1252, which older Western programs write. No file names its
//! encoding: bytes that fit none of these are no text.

use encoding_rs::{Encoding, WINDOWS_1252};
use vocative_contract::work::looked_at;

/// The text of bytes, if they are one.
#[must_use]
pub fn decoded(bytes: Vec<u8>) -> Option<String> {
    looked_at(bytes.len());
    if let Some((marked, mark_bytes)) = Encoding::for_bom(&bytes)
        && marked != encoding_rs::UTF_8
    {
        return whole(marked, &bytes[mark_bytes..]);
    }
    match String::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) => whole(WINDOWS_1252, error.as_bytes()).filter(|text| !is_for_programs(text)),
    }
}

/// The characters, if every byte belongs to one.
fn whole(encoding: &'static Encoding, bytes: &[u8]) -> Option<String> {
    looked_at(bytes.len());
    let text = encoding.decode_without_bom_handling_and_without_replacement(bytes);
    text.map(std::borrow::Cow::into_owned)
}

/// Whether a text has control characters that do not occur in text for people.
fn is_for_programs(text: &str) -> bool {
    looked_at(text.len());
    text.chars()
        .any(|c| c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{c}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_in_the_encoding_that_it_can_be_in() {
        let table: [(&[u8], Option<&str>); 9] = [
            ("naïve 日本".as_bytes(), Some("naïve 日本")),
            (
                b"na\xefve \x93quoted\x94 \x80 5",
                Some("naïve “quoted” € 5"),
            ),
            (b"\xff\xfeh\0\xef\0\x3d\xd8\x00\xde", Some("hï😀")),
            (b"\xfe\xff\0h\0\xef", Some("hï")),
            (b"\xff\xfeh", None),
            (b"\xff\xfe\x00\xd8", None),
            (b"\xff\xd8\xff\xe0\x00\x10JFIF", None),
            (b"\x1f\x8b\x08\x00\xff", None),
            (b"", Some("")),
        ];
        for (bytes, expected) in table {
            assert_eq!(decoded(bytes.to_vec()).as_deref(), expected, "{bytes:?}");
        }
    }
}
