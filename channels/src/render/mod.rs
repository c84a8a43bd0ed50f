//! From what an agent says (CommonMark) to posts: one parse, then per platform.
//!
//! Owns the tree, how it is cut into parts, and what both platforms share (tables as aligned text, which
//! addresses are links, who is mentioned). Pure, total and bounded: no input makes it fail, and its work
//! grows with the input's length. It must not know a platform: those give a `PostMeasure` that says what a
//! block costs, and write the parts (`telegram::layout`, `slack::markdown`).
//!
//! Reading order: `tree`, `source`, `parse` (with `html` and `link`), `split`, `inline`, `table`, `plain`; `around`
//! puts the program's own words beside an answer.

mod around;
mod html;
mod inline;
mod link;
mod parse;
mod plain;
mod source;
mod split;
mod table;
mod tree;

pub use around::{continued, noted, prefixed};

#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod tests;

pub(crate) use {
    link::has_own_address,
    parse::{parsed, reread},
    plain::readable_text,
    split::{Container, PostCost, PostMeasure, Surroundings, parts_of},
    table::aligned,
    tree::{Align, Block, Item, StyledRun, Styles, Table, plain_text},
};
