//! The work of every parser of inbound and outbound text on texts that make naive ones slow, counted as
//! characters looked at per character of the text ([`vocative_channels::work`]).
//!
//! `cargo run --release -p vocative-fuzz -- work` prints the table; `tests/work.rs` holds the bound.

pub mod inputs;
pub mod parsers;

use vocative_channels::work::counted;

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

/// What a parser looks at for each byte of the worst input of that size.
#[must_use]
pub fn worst(parser: &Parser, bytes: usize) -> Worst {
    let none = Worst {
        per_byte: 0.0,
        input: "",
    };
    INPUTS.iter().fold(none, |worst, input| {
        let per_byte = per_byte(parser, input, bytes);
        if per_byte > worst.per_byte {
            Worst {
                per_byte,
                input: input.name,
            }
        } else {
            worst
        }
    })
}
