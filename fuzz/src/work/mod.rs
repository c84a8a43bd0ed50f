//! The work of every parser of inbound and outbound text on texts that make naive ones slow, counted as
//! characters looked at per character of the text ([`vocative_contract::work`]).
//!
//! `cargo run --release -p vocative-fuzz -- work` prints the table; `tests/work.rs` holds the bound.

pub mod inputs;
pub mod parsers;

use vocative_contract::work::counted;

use self::inputs::{INPUTS, Input};
use self::parsers::Parser;

/// What a parser did with the worst of the inputs of a size.
#[derive(Clone, Copy, Debug)]
pub struct Worst {
    /// Bytes looked at per byte of the input.
    pub per_byte: f64,
    /// Which input.
    pub input: &'static str,
}

/// What a parser looks at for each byte of one input.
#[must_use]
#[allow(clippy::cast_precision_loss, reason = "a ratio for people")]
pub fn per_byte(parser: &Parser, input: &Input, bytes: usize) -> f64 {
    let text = input.text(bytes);
    let prepared = (parser.prepare)(&text);
    let ((), looked_at) = counted(|| (parser.parse)(&prepared));
    looked_at as f64 / prepared.len().max(bytes) as f64
}

/// What a parser looks at for each byte of the worst input of that size. Of large ones only those are tried
/// that are the worst at `ALL_TRIED_BYTES`.
#[must_use]
pub fn worst(parser: &Parser, bytes: usize) -> Worst {
    let inputs: Vec<&Input> = if bytes > ALL_TRIED_BYTES {
        by_work(parser, INPUTS.iter().collect(), ALL_TRIED_BYTES)
            .into_iter()
            .map(|(input, _)| input)
            .take(LARGE_TRIED)
            .collect()
    } else {
        INPUTS.iter().collect()
    };
    let first = by_work(parser, inputs, bytes).into_iter().next();
    first.map_or(
        Worst {
            per_byte: 0.0,
            input: "",
        },
        |(input, per_byte)| Worst {
            per_byte,
            input: input.name,
        },
    )
}

/// Up to this size all inputs are tried.
const ALL_TRIED_BYTES: usize = 10_000;
/// Inputs of a larger size that are tried.
const LARGE_TRIED: usize = 10;

/// Inputs of a size with the work that they make, the worst first.
fn by_work<'i>(parser: &Parser, inputs: Vec<&'i Input>, bytes: usize) -> Vec<(&'i Input, f64)> {
    let inputs = inputs.into_iter();
    let mut all: Vec<(&Input, f64)> = inputs
        .map(|input| (input, per_byte(parser, input, bytes)))
        .collect();
    all.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    all
}
