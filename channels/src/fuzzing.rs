//! What the fuzz targets call of this crate and other crates may not; each adapter has a module like it.
//!
//! Hidden and not part of the stable API. See `fuzz/README.md`.

use crate::json_stream::{JsonStream, Lifted, ScanError, mend};

/// The elements of a JSON list as the importers extract them, `None` for one over `max_bytes`; and whether the list was
/// read to its end.
#[must_use]
pub fn list_elements(json: &[u8], max_bytes: usize) -> (Vec<Option<Vec<u8>>>, bool) {
    let mut elements = Vec::new();
    let read = read_elements(json, max_bytes, &mut elements);
    (elements, read.is_ok())
}

fn read_elements(
    json: &[u8],
    max_bytes: usize,
    elements: &mut Vec<Option<Vec<u8>>>,
) -> Result<(), ScanError> {
    let mut stream = JsonStream::new(json)?;
    stream.enter(b'[', "a list")?;
    let (mut raw, mut is_first) = (Vec::new(), true);
    while stream.next_element(&mut is_first)? {
        let lifted = stream.lift(&mut raw, max_bytes)?;
        elements.push((lifted == Lifted::Whole).then(|| raw.clone()));
    }
    Ok(())
}

/// An extracted value, repaired so that a JSON parser takes it.
#[must_use]
pub fn mended(raw: &[u8]) -> String {
    mend(raw).into_owned()
}
