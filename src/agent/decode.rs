//! Which characters the bytes of a text file are. Pure.
//!
//! UTF-8, UTF-16 with its mark, and what older programs of western languages write. There is nothing that
//! says it: what can't be one of them is no text.

/// The characters of Windows-1252 from 0x80 on that Latin-1 has not; five bytes mean nothing.
/// *Source:* <https://encoding.spec.whatwg.org/index-windows-1252.txt>, without the control characters.
const WINDOWS_1252: [Option<char>; 32] = [
    Some('€'),
    None,
    Some('‚'),
    Some('ƒ'),
    Some('„'),
    Some('…'),
    Some('†'),
    Some('‡'),
    Some('ˆ'),
    Some('‰'),
    Some('Š'),
    Some('‹'),
    Some('Œ'),
    None,
    Some('Ž'),
    None,
    None,
    Some('‘'),
    Some('’'),
    Some('“'),
    Some('”'),
    Some('•'),
    Some('–'),
    Some('—'),
    Some('˜'),
    Some('™'),
    Some('š'),
    Some('›'),
    Some('œ'),
    None,
    Some('ž'),
    Some('Ÿ'),
];

/// The text of bytes, if they are one.
pub(super) fn decoded(bytes: Vec<u8>) -> Option<String> {
    match bytes.as_slice() {
        [0xff, 0xfe, rest @ ..] => utf_16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf_16(rest, u16::from_be_bytes),
        _ => match String::from_utf8(bytes) {
            Ok(text) => Some(text),
            Err(error) => western(error.as_bytes()),
        },
    }
}

/// Whole units that are characters.
fn utf_16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<String> {
    let (pairs, left) = bytes.as_chunks::<2>();
    let units = pairs.iter().map(|pair| unit(*pair));
    let text: Result<String, _> = char::decode_utf16(units).collect();
    text.ok().filter(|_| left.is_empty())
}

/// One character a byte, and none that only programs read.
fn western(bytes: &[u8]) -> Option<String> {
    let character = |byte: &u8| match byte {
        b'\t' | b'\n' | b'\r' | 0x0c | 0x20..=0x7e | 0xa0.. => Some(char::from(*byte)),
        0x80..0xa0 => WINDOWS_1252[usize::from(byte - 0x80)],
        _ => None,
    };
    bytes.iter().map(character).collect()
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
