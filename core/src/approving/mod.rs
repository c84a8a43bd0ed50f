//! Whether a tool call needs a person, who may decide, and what follows. Pure: the facts that the store read in the
//! transaction, and what becomes of them.
//!
//! Reading order: `policy` (does a call ask?), `taint` (and after what its run has read?), `approvers` (who may
//! decide?), `visible` (characters that can be told apart), `showing` (a call's arguments on a card), `buttons` (what a
//! press says), `card` (what people see), `deciding` (what a press does), `changing` (other arguments for a call that
//! waits), `listing` (what waits in a chat), `telling` (what people and the model are told), `stored` (approvals and
//! grants as they stand).

mod approvers;
mod buttons;
mod card;
mod changing;
mod deciding;
mod listing;
mod policy;
mod showing;
mod stored;
mod taint;
mod telling;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod visible;

pub use approvers::{Approver, Approvers, Decider, may_decide};
pub use buttons::{ApprovalButton, ApprovalChoice};
pub use card::{CardFacts, CardOutcome, outcome_card, waiting_card};
pub use changing::{
    CHANGE_MAX_BYTES, CHANGES_MAX, CallChangeFacts, arguments_to_change, change_refused,
    changed_arguments, changed_text, reads_as_change,
};
pub use deciding::{
    ApprovalDeadline, ApprovalState, Consent, GRANT_MS, NoDecision, OPEN_MAX_CHAT, OPEN_MAX_PERSON,
    PressFacts, PressVerdict, press,
};
pub use listing::{ApprovalsCommand, ApprovalsOrder, ApprovalsSeen, denied_outcome, other_list};
pub use policy::{ApprovalPolicy, ApprovalRule, ArgumentRule, ArgumentTest, ask};
pub use showing::{CardButtons, FittedCard, fitted_card, shown_arguments, shown_value};
pub use stored::{Changer, Requester, StoredApproval, StoredGrant};
pub use taint::{AfterUntrusted, OutsideSource, Taint, ask_after, read_words};
pub use telling::{DecidedBy, DecidedVia, decided_line, denied_text, told_text, utc};
pub use visible::visible_line;
