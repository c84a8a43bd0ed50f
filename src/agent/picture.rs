//! Detects what a picture is by its first bytes: its message may describe it wrongly, and a provider refuses a whole
//! question for one picture that it does not accept. Pure.

/// The longest edge that models take, in pixels. Source: Anthropic's vision page, 2025: larger pictures
/// are refused; OpenAI scales them.
const EDGE_MAX: u32 = 8_000;

/// A picture's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Picture {
    pub(super) mime_type: &'static str,
    width: u32,
    height: u32,
}

impl Picture {
    /// The picture in these bytes, if it is of a type that models take and states its size.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let (mime_type, (width, height)) = match bytes {
            [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, rest @ ..] => {
                ("image/png", png_size(rest)?)
            }
            [0xff, 0xd8, rest @ ..] => ("image/jpeg", jpeg_size(rest)?),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', rest @ ..] => {
                ("image/gif", gif_size(rest)?)
            }
            [
                b'R',
                b'I',
                b'F',
                b'F',
                _,
                _,
                _,
                _,
                b'W',
                b'E',
                b'B',
                b'P',
                rest @ ..,
            ] => ("image/webp", webp_size(rest)?),
            _ => return None,
        };
        let is_shown = width > 0 && height > 0;
        is_shown.then_some(Self {
            mime_type,
            width,
            height,
        })
    }

    /// Whether models take pictures of this size.
    pub(super) fn is_taken(self) -> bool {
        self.width.max(self.height) <= EDGE_MAX
    }
}

type Size = (u32, u32);

/// Source: PNG (Third Edition), 11.2.1: `IHDR` comes first.
fn png_size(bytes: &[u8]) -> Option<Size> {
    let head = bytes.strip_prefix(&[0, 0, 0, 13, b'I', b'H', b'D', b'R'])?;
    let edge = |at: usize| Some(u32::from_be_bytes(*head.get(at..)?.first_chunk()?));
    Some((edge(0)?, edge(4)?))
}

/// Source: GIF89a specification, 18.
fn gif_size(bytes: &[u8]) -> Option<Size> {
    Some((little(bytes, 0)?, little(bytes, 2)?))
}

/// Source: ITU-T T.81, B.2.2: the size stands in the frame header, behind other segments.
fn jpeg_size(mut bytes: &[u8]) -> Option<Size> {
    loop {
        bytes = bytes.strip_prefix(&[0xff])?;
        let (marker, rest) = bytes.split_first()?;
        let length = || Some(usize::from(u16::from_be_bytes(*rest.first_chunk()?)));
        match marker {
            // A fill byte, which may be repeated.
            0xff => {}
            // These markers have no length.
            0x01 | 0xd0..=0xd8 => bytes = rest,
            0xc4 | 0xc8 | 0xcc => bytes = rest.get(length()?..)?,
            0xc0..=0xcf => {
                let edge = |at: usize| {
                    let edge: &[u8; 2] = rest.get(at..)?.first_chunk()?;
                    Some(u32::from(u16::from_be_bytes(*edge)))
                };
                return Some((edge(5)?, edge(3)?));
            }
            // The picture itself, or its end.
            0xda | 0xd9 => return None,
            _ => bytes = rest.get(length()?.max(2)..)?,
        }
    }
}

/// Source: RFC 9649 (WebP), 2.5 to 2.7; RFC 6386 (VP8), 9.1.
fn webp_size(bytes: &[u8]) -> Option<Size> {
    let (kind, rest) = bytes.split_first_chunk::<4>()?;
    let data = rest.get(4..)?;
    match kind {
        b"VP8 " => {
            let head = data.get(3..)?.strip_prefix(&[0x9d, 0x01, 0x2a])?;
            Some((little(head, 0)? & 0x3fff, little(head, 2)? & 0x3fff))
        }
        b"VP8L" => {
            let head = data.strip_prefix(&[0x2f])?;
            let bits = u32::from_le_bytes(*head.first_chunk()?);
            Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
        }
        b"VP8X" => {
            let edge =
                |at: usize| Some((little(data, at)? | u32::from(*data.get(at + 2)?) << 16) + 1);
            Some((edge(4)?, edge(7)?))
        }
        _ => None,
    }
}

fn little(bytes: &[u8], at: usize) -> Option<u32> {
    let two: &[u8; 2] = bytes.get(at..)?.first_chunk()?;
    Some(u32::from(u16::from_le_bytes(*two)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Type, width, height, and whether models take it.
    type Shown = Option<(&'static str, u32, u32, bool)>;

    fn shown(bytes: &[u8]) -> Shown {
        let picture = Picture::of(bytes)?;
        let Picture {
            mime_type,
            width,
            height,
        } = picture;
        Some((mime_type, width, height, picture.is_taken()))
    }

    /// Heads as common programs write them.
    #[test]
    fn a_picture_is_what_its_first_bytes_say() {
        let png = |width: u32, height: u32| {
            let head = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
            [
                head,
                width.to_be_bytes().into(),
                height.to_be_bytes().into(),
            ]
            .concat()
        };
        let jpeg = b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0\xff\xff\xdb\0\x03\x08\
            \xff\xc2\0\x11\x08\x01\x02\x03\x04\x03";
        let table: [(&[u8], Shown); 16] = [
            (&png(640, 480), Some(("image/png", 640, 480, true))),
            (&png(8_000, 1), Some(("image/png", 8_000, 1, true))),
            (&png(1, 8_001), Some(("image/png", 1, 8_001, false))),
            (&png(0, 5), None),
            (&png(1, 1)[..20], None),
            (jpeg, Some(("image/jpeg", 0x304, 0x102, true))),
            (&jpeg[..25], None),
            (b"\xff\xd8\xff\xd9", None),
            (b"GIF89a\x40\x1f\x02\0", Some(("image/gif", 8_000, 2, true))),
            (
                b"RIFF....WEBPVP8 ....\0\0\0\x9d\x01\x2a\x80\x42\x02\x40",
                Some(("image/webp", 0x280, 2, true)),
            ),
            (
                b"RIFF....WEBPVP8L....\x2f\x3f\xc0\x01\0",
                Some(("image/webp", 64, 8, true)),
            ),
            (
                b"RIFF....WEBPVP8X....\x10\0\0\0\xff\x01\0\x40\x1f\0",
                Some(("image/webp", 512, 8_001, false)),
            ),
            (b"RIFF....WEBPJUNK....", None),
            (b"RIFF....WAVEfmt ", None),
            (b"<svg/>", None),
            (b"", None),
        ];
        for (bytes, expected) in table {
            assert_eq!(shown(bytes), expected, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_odd(
            head in prop::sample::select(vec![
                b"\xff\xd8\xff".as_slice(), b"RIFF....WEBPVP8 ", b"RIFF....WEBPVP8X", b"GIF89a",
                b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
            ]),
            rest in proptest::collection::vec(any::<u8>(), 0..60),
        ) {
            let _ = Picture::of(&[head, &rest].concat());
        }
    }
}
