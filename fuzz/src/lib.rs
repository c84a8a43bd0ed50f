//! Fuzz targets: one function per parser, from bytes to what must hold.
//!
//! A target runs the real code on its input and panics where a promise breaks: something panics, an
//! answer differs the second time, a limit is passed, a token is forged, something is lost. Two users
//! call the same functions: the stable test and command of this package, whose inputs come from
//! [`mutate`], and the libFuzzer targets in `libfuzzer/`, whose inputs follow coverage.
//!
//! Reading order: [`targets`], then [`corpus`] (what is known to matter), [`mutate`] (what is made of
//! it), [`random`]; [`work`] counts what parsers look at.

pub mod corpus;
pub mod mutate;
pub mod random;
pub mod targets;
pub mod work;

/// Runs one target on an input.
///
/// # Panics
/// If there is no target of that name, or what it says does not hold.
pub fn run(target: &str, input: &[u8]) {
    let found = targets::find(target);
    let found = found.unwrap_or_else(|| panic!("there is no target {target}"));
    (found.run)(input);
}
