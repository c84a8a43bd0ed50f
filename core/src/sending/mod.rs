//! What becomes of a post: after an attempt, after a look, after a probe. Pure.
//!
//! Reading order: `policy`, `after`, `probe`, `placeholder`.

pub mod after;
pub mod placeholder;
pub mod policy;
pub mod probe;

use vocative_contract::outbound::Part;

use crate::words::Language;

/// Limits the parts of an answer. The last one then says how much is missing; the whole text is captured.
pub fn limit_parts(parts: &mut Vec<Part>, max_parts: usize, language: Language) {
    let max_parts = max_parts.max(1);
    if parts.len() > max_parts {
        let left_out = parts.len() - max_parts + 1;
        parts.truncate(max_parts - 1);
        parts.push(Part::plain(language.parts_left_out(left_out as u64)));
    }
}
