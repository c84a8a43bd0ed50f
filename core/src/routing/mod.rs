//! Networks: several agents behind one name, and what decides which of them is called next.
//!
//! Pure. A network's rules are data; [`decide`] reads them with the facts of a moment and the uses that are left, and
//! says which agent is called, that the routing agent is asked, or that the run ends. Every network ends by
//! construction: a decision that leads to a call uses up one of finitely many uses, lists are finite, and `max_calls`
//! bounds the sum ([`bounds`] says beforehand how far it can go). What was decided is stored ([`Course`]) and never
//! decided again.
//!
//! Reading order: `network` (what is configured), `state` (its typed values), `facts`, `decide`, `course` (what
//! happened so far), `conclude` (what is said in the end), `bounds` (how far it can go), `conditions` and `reach`
//! (which rules never match), `router` (what a routing agent is asked, and which answers count).

pub mod bounds;
mod conclude;
mod conditions;
mod course;
mod decide;
mod facts;
mod network;
mod reach;
pub mod router;
pub mod state;
#[cfg(test)]
mod tests;

pub use conclude::{Conclusion, SaidBy, conclude};
pub use course::{CallOutcome, Course, MemberCall, RoutedBy, StopReason, StoredDecision};
pub use decide::{Decided, RoutingDecision, decide, on_routed};
pub use facts::{AskerKind, Facts, LastCall};
pub use network::{
    AnswerFrom, CALLS_DEFAULT, CALLS_MAX, CountRange, MEMBERS_MAX, Network, PATTERN_MAX_CHARS,
    RULES_MAX, RoutingRule, RuleAction, RuleTerm, SUBJECT_MAX_BYTES, StateTest, TextTest, When,
};
