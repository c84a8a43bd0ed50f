//! Maps Telegram's UTF-16 offsets to byte ranges.
//!
//! Offsets come from outside: one that does not fall on a character of the text maps to nothing.

use std::ops::Range;

use vocative_contract::work::looked_at;

use super::wire::MessageEntity;

/// The most entities of a text that are read; further ones are ignored. Telegram sends 100. They may all be
/// nested.
const ENTITIES_MAX: usize = 500;

/// The deepest nesting of entities; deeper ones are not marked. Telegram has eight kinds that nest, and an entity is
/// written once for each that contains it.
const DEPTH_MAX: usize = 10;

/// Marks a UTF-16 offset inside a surrogate pair.
const INSIDE_PAIR: usize = usize::MAX;

/// The byte position of every UTF-16 offset of one text.
#[derive(Debug)]
pub(super) struct Utf16Map {
    byte_at: Vec<usize>,
}

impl Utf16Map {
    /// Builds the table.
    pub(super) fn new(text: &str) -> Self {
        looked_at(text.len());
        let mut byte_at = Vec::with_capacity(text.len() + 1);
        for (byte, c) in text.char_indices() {
            byte_at.push(byte);
            if c.len_utf16() == 2 {
                byte_at.push(INSIDE_PAIR);
            }
        }
        byte_at.push(text.len());
        Self { byte_at }
    }

    /// The byte position of an offset; `None` outside the text or inside a surrogate pair.
    pub(super) fn byte(&self, offset: i64) -> Option<usize> {
        let offset = usize::try_from(offset).ok()?;
        let byte = *self.byte_at.get(offset)?;
        (byte != INSIDE_PAIR).then_some(byte)
    }

    /// The byte range of a span; `None` if it is empty or does not map.
    pub(super) fn range(&self, offset: i64, length: i64) -> Option<Range<usize>> {
        let start = self.byte(offset)?;
        let end = self.byte(offset.checked_add(length)?)?;
        (start < end).then_some(start..end)
    }
}

/// An entity with the byte range it covers.
#[derive(Clone, Debug)]
pub(super) struct Span<'a> {
    pub(super) range: Range<usize>,
    pub(super) entity: &'a MessageEntity,
}

/// The entities that map to the text, outer before inner.
pub(super) fn spans<'a>(text: &str, entities: &'a [MessageEntity]) -> Vec<Span<'a>> {
    if entities.is_empty() {
        return Vec::new();
    }
    let map = Utf16Map::new(text);
    let mut spans: Vec<Span<'a>> = entities
        .iter()
        .take(ENTITIES_MAX)
        .filter_map(|entity| {
            let range = map.range(entity.offset, entity.length)?;
            Some(Span { range, entity })
        })
        .collect();
    // A stable sort: of two entities over the same range, the one named first is the outer one.
    spans.sort_by_key(|span| (span.range.start, std::cmp::Reverse(span.range.end)));
    let mut open: Vec<usize> = Vec::new();
    spans.retain(|span| {
        while open.pop_if(|end| *end <= span.range.start).is_some() {}
        let is_shallow = open.len() < DEPTH_MAX;
        open.push(span.range.end);
        is_shallow
    });
    spans
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn offsets_count_utf16_units() {
        let text = "👍 @team_bot what broke?";
        let map = Utf16Map::new(text);
        assert_eq!(&text[map.range(3, 9).unwrap()], "@team_bot");
        assert_eq!(&text[map.range(0, 2).unwrap()], "👍");
        for (offset, length) in [
            (1, 1),
            (0, 1),
            (-1, 2),
            (0, 0),
            (3, -1),
            (20, 90),
            (i64::MAX, 1),
            (1, i64::MAX),
            (i64::MIN, i64::MIN),
        ] {
            assert_eq!(map.range(offset, length), None, "{offset} {length}");
        }
    }

    proptest! {
        #[test]
        fn a_range_is_the_same_slice_in_both_units(
            text in "\\PC{0,40}|[a👍é\u{200d} ]{0,40}",
            offset in -3_i64..60,
            length in -3_i64..60,
        ) {
            let units: Vec<u16> = text.encode_utf16().collect();
            let expected = usize::try_from(offset).ok()
                .zip(usize::try_from(length).ok())
                .filter(|(_, length)| *length > 0)
                .and_then(|(offset, length)| units.get(offset..offset + length))
                .and_then(|slice| String::from_utf16(slice).ok());
            let got = Utf16Map::new(&text).range(offset, length).map(|range| text[range].to_owned());
            prop_assert_eq!(got, expected);
        }
    }
}
