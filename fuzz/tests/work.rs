//! The work of every parser grows with the length of the text and no faster, whatever the text.

#![allow(clippy::unwrap_used)]

use vocative_fuzz::work::inputs::INPUTS;
use vocative_fuzz::work::parsers::{PARSERS, Parser};
use vocative_fuzz::work::{per_byte, worst};

/// Bytes looked at per byte of a text, at most.
const PER_BYTE_MAX: f64 = 300.0;
/// By how much that may grow where a text is ten times as long. A quadratic parser's grows by ten; what is
/// done only for answers of several posts makes it grow, too, up to five times.
const GROWTH_MAX: f64 = 6.0;
/// Below it, growth says nothing: what a parser does once counts more.
const SMALL: f64 = 12.0;

#[test]
fn every_parser_looks_at_a_bounded_number_of_bytes_for_each_byte() {
    let halves = PARSERS.chunks(PARSERS.len().div_ceil(2));
    let broken: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = halves
            .map(|parsers| scope.spawn(|| parsers.iter().flat_map(broken).collect::<Vec<_>>()))
            .collect();
        let found = threads.into_iter().flat_map(|it| it.join().unwrap());
        found.collect()
    });
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// The inputs for which a parser does too much.
fn broken(parser: &Parser) -> Vec<String> {
    let mut broken = Vec::new();
    for input in INPUTS {
        let [least, short, long] =
            [1_000, 2_000, 20_000].map(|bytes| per_byte(parser, input, bytes));
        let most = least.max(short).max(long);
        if most > PER_BYTE_MAX || long > SMALL.max(GROWTH_MAX * short) {
            let (parser, input) = (parser.name, input.name);
            broken.push(format!(
                "{parser} of {input}: {least:.1}, {short:.1}, then {long:.1}"
            ));
        }
    }
    broken
}

#[test]
fn every_parser_is_counted() {
    for parser in PARSERS {
        assert!(
            worst(parser, 1_000).per_byte >= 1.0,
            "{} counts nothing",
            parser.name
        );
    }
}
