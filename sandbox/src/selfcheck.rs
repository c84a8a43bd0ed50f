//! The self-check: refusals of the loopback platforms, each provoked over a real connection.
//!
//! Owns the shape of one refusal, which both platforms' lists use. Knows no platform's rules; those
//! are in `slack::slack_refusals` and `telegram::telegram_refusals`.

use crate::wire::WirePeer;

/// One thing that the real platform refuses, and what the loopback platform answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlatformRefusal {
    /// Which loopback server was asked.
    pub peer: WirePeer,
    /// Where the protocol sheet says so, for example `slack.md §6.2`.
    pub section: &'static str,
    /// What was tried, as a short phrase.
    pub what: &'static str,
    /// The exact error name or HTTP status that the sheet asks for.
    pub expected: &'static str,
    /// What came back.
    pub got: String,
    /// Whether `got` is what was expected.
    pub ok: bool,
}

impl PlatformRefusal {
    /// Compares what came back with what the sheet asks for.
    #[must_use]
    pub fn judge(
        peer: WirePeer,
        section: &'static str,
        what: &'static str,
        expected: &'static str,
        got: String,
    ) -> Self {
        let ok = got == expected;
        Self {
            peer,
            section,
            what,
            expected,
            got,
            ok,
        }
    }
}
