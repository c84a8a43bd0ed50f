//! What a decision does, given what is known when it comes. Of fifty presses at once, only one finds the approval open.

use crate::approving::{ApprovalChoice, Approvers, CHANGES_MAX, Decider, may_decide};
use crate::words::Language;

/// The most open approvals of one person. A further call is refused, so that cards can't flood a room.
pub const OPEN_MAX_PERSON: u32 = 5;
/// The most open approvals in one chat.
pub const OPEN_MAX_CHAT: u32 = 20;
/// How long a grant by button lasts, in milliseconds.
pub const GRANT_MS: i64 = 86_400_000;

/// How an approval stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ApprovalState {
    /// It waits for a person.
    Open,
    /// A person allowed the call.
    Approved,
    /// A person forbade it.
    Denied,
    /// Nobody decided in time.
    Expired,
    /// Its run ended, or what it was asked for is gone.
    Cancelled,
    /// A person changed the call's arguments: that call is asked for anew.
    Changed,
}

impl ApprovalState {
    /// What a card says of it.
    #[must_use]
    pub fn label(self, language: Language) -> String {
        match self {
            Self::Open => language.state_waits(),
            Self::Approved => language.state_approved(),
            Self::Denied => language.state_denied(),
            Self::Expired => language.state_expired(),
            Self::Cancelled => language.state_cancelled(),
            Self::Changed => language.state_changed(),
        }
    }

    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Open,
        Self::Approved,
        Self::Denied,
        Self::Expired,
        Self::Cancelled,
        Self::Changed,
    ];

    /// The stored and shown name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
            Self::Changed => "changed",
        }
    }

    /// The state of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// Whether people have consented to a call that is about to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent {
    /// It needs none.
    NotNeeded,
    /// It has it: this call was approved, or a grant covers it.
    Given,
    /// It is to be asked for.
    Missing,
    /// It was asked for, and nobody has decided.
    Open,
    /// It was asked for and not given.
    Refused(ApprovalState),
}

/// How long an approval is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApprovalDeadline {
    /// When it was asked for, in milliseconds since the Unix epoch.
    pub asked_at_ms: i64,
    /// When it ends, in milliseconds since the Unix epoch; `None` = never.
    pub expires_at_ms: Option<i64>,
}

impl ApprovalDeadline {
    /// Whether its time is over. A clock that jumped ahead ends it early; one that was put back by more than it
    /// lasts ends it, too, so that no approval is open for more than twice its time.
    #[must_use]
    pub fn is_over(self, now_ms: i64) -> bool {
        let Some(expires_at_ms) = self.expires_at_ms else {
            return false;
        };
        let lasts_ms = expires_at_ms.saturating_sub(self.asked_at_ms);
        now_ms >= expires_at_ms || now_ms < self.asked_at_ms.saturating_sub(lasts_ms)
    }
}

/// What is known of a press.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PressFacts<'a> {
    /// How the approval stands.
    pub state: ApprovalState,
    /// How long it is open.
    pub expiry: ApprovalDeadline,
    /// What was pressed.
    pub choice: ApprovalChoice,
    /// Whether it is known which message the card is: it is not while its post is on its way.
    pub is_card_known: bool,
    /// Whether it was pressed in the card's own message, in the card's own chat.
    pub is_in_card: bool,
    /// Whether the button is for what the call does.
    pub is_same_call: bool,
    /// Whether the card shows all of the call.
    pub is_whole: bool,
    /// Whether the person who pressed changed the call's arguments before.
    pub is_changer: bool,
    /// How often the call's arguments were changed before; `None` = they can't be.
    pub changes: Option<usize>,
    /// Whether one person alone asked for the run.
    pub has_one_requester: bool,
    /// Who may decide.
    pub approvers: &'a Approvers,
    /// Who pressed.
    pub decider: Decider<'a>,
    /// The time, in milliseconds since the Unix epoch.
    pub now_ms: i64,
}

/// What a press does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PressVerdict {
    /// The call may be made.
    Approve {
        /// Whether calls like it may be made for a day without asking.
        has_grant: bool,
    },
    /// The call is not made.
    Deny,
    /// All arguments are shown to the person who pressed.
    ShowAll,
    /// The person who pressed is asked for other arguments, or told how to say them.
    Change,
    /// Nothing is decided; the person who pressed is told why.
    Tell(NoDecision),
}

/// Why a press decides nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoDecision {
    /// It is not theirs to decide.
    NotTheirs,
    /// It was decided, or its time is over.
    Over(ApprovalState),
    /// The button is not the card's.
    NotThisCard,
    /// It is not known yet which message the card is.
    NotYet,
    /// The card does not show all of the call.
    NotWhole,
    /// They changed what it does, and two people are to agree.
    OwnChange,
    /// Its arguments were changed as often as they may be.
    ChangedTooOften,
    /// Its arguments can't be changed: it was asked for by an older version.
    Unchangeable,
}

/// Decides what a press does.
#[must_use]
pub fn press(facts: &PressFacts<'_>) -> PressVerdict {
    if !facts.is_card_known {
        return PressVerdict::Tell(NoDecision::NotYet);
    }
    if !facts.is_in_card || !facts.is_same_call {
        return PressVerdict::Tell(NoDecision::NotThisCard);
    }
    if !may_decide(facts.approvers, &facts.decider) {
        return PressVerdict::Tell(NoDecision::NotTheirs);
    }
    if facts.state != ApprovalState::Open {
        return PressVerdict::Tell(NoDecision::Over(facts.state));
    }
    if facts.expiry.is_over(facts.now_ms) {
        return PressVerdict::Tell(NoDecision::Over(ApprovalState::Expired));
    }
    match facts.choice {
        ApprovalChoice::Deny => PressVerdict::Deny,
        ApprovalChoice::ShowAll => PressVerdict::ShowAll,
        ApprovalChoice::Change => match facts.changes {
            None => PressVerdict::Tell(NoDecision::Unchangeable),
            Some(CHANGES_MAX..) => PressVerdict::Tell(NoDecision::ChangedTooOften),
            Some(_) => PressVerdict::Change,
        },
        ApprovalChoice::Approve | ApprovalChoice::Grant if !facts.is_whole => {
            PressVerdict::Tell(NoDecision::NotWhole)
        }
        ApprovalChoice::Approve | ApprovalChoice::Grant
            if facts.is_changer && facts.approvers.are_four_eyes() =>
        {
            PressVerdict::Tell(NoDecision::OwnChange)
        }
        ApprovalChoice::Approve => PressVerdict::Approve { has_grant: false },
        ApprovalChoice::Grant => PressVerdict::Approve {
            has_grant: facts.has_one_requester,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approving::Approver;

    const ASKED_AT_MS: i64 = 1_000_000;
    const EXPIRY: ApprovalDeadline = ApprovalDeadline {
        asked_at_ms: ASKED_AT_MS,
        expires_at_ms: Some(ASKED_AT_MS + 300_000),
    };

    #[test]
    fn an_approval_ends_in_time_whatever_the_clock_does() {
        let table = [
            (0, false),
            (299_999, false),
            (300_000, true),
            (86_400_000, true),
            // A clock that was put back by less than the approval lasts, and by more.
            (-300_000, false),
            (-300_001, true),
        ];
        for (after_ms, expected) in table {
            assert_eq!(
                EXPIRY.is_over(ASKED_AT_MS + after_ms),
                expected,
                "{after_ms}"
            );
        }
        let never = ApprovalDeadline {
            expires_at_ms: None,
            ..EXPIRY
        };
        assert!(!never.is_over(i64::MAX));
        assert!(!never.is_over(i64::MIN));
    }

    fn pressed_in_time(approvers: &Approvers) -> PressFacts<'_> {
        PressFacts {
            state: ApprovalState::Open,
            expiry: EXPIRY,
            choice: ApprovalChoice::Approve,
            is_card_known: true,
            is_in_card: true,
            is_same_call: true,
            is_whole: true,
            is_changer: false,
            changes: Some(0),
            has_one_requester: true,
            approvers,
            decider: Decider {
                channel: "acme",
                id: "U1",
                is_requester: true,
                is_admin: false,
                is_served: true,
                is_member: true,
            },
            now_ms: ASKED_AT_MS + 1,
        }
    }

    #[test]
    fn a_press_decides_only_on_the_cards_own_terms() {
        use PressVerdict::{Approve, Deny, ShowAll, Tell};
        let approvers = Approvers(vec![vec![Approver::Requester]]);
        let fresh = pressed_in_time(&approvers);
        type Change = fn(&mut PressFacts<'_>);
        let table: [(Change, PressVerdict); 20] = [
            (|_| {}, Approve { has_grant: false }),
            (
                |it| it.choice = ApprovalChoice::Grant,
                Approve { has_grant: true },
            ),
            (
                |it| (it.choice, it.has_one_requester) = (ApprovalChoice::Grant, false),
                Approve { has_grant: false },
            ),
            (|it| it.choice = ApprovalChoice::Deny, Deny),
            (|it| it.choice = ApprovalChoice::ShowAll, ShowAll),
            (
                |it| it.choice = ApprovalChoice::Change,
                PressVerdict::Change,
            ),
            (
                |it| (it.choice, it.changes) = (ApprovalChoice::Change, Some(CHANGES_MAX)),
                Tell(NoDecision::ChangedTooOften),
            ),
            (
                |it| (it.choice, it.changes) = (ApprovalChoice::Change, None),
                Tell(NoDecision::Unchangeable),
            ),
            (|it| it.is_whole = false, Tell(NoDecision::NotWhole)),
            (
                |it| (it.is_whole, it.choice) = (false, ApprovalChoice::Grant),
                Tell(NoDecision::NotWhole),
            ),
            (
                |it| (it.is_whole, it.choice) = (false, ApprovalChoice::Deny),
                Deny,
            ),
            (
                |it| (it.is_whole, it.choice) = (false, ApprovalChoice::ShowAll),
                ShowAll,
            ),
            (|it| it.is_card_known = false, Tell(NoDecision::NotYet)),
            (|it| it.is_in_card = false, Tell(NoDecision::NotThisCard)),
            (|it| it.is_same_call = false, Tell(NoDecision::NotThisCard)),
            (
                |it| it.decider.is_requester = false,
                Tell(NoDecision::NotTheirs),
            ),
            (
                |it| it.decider.is_served = false,
                Tell(NoDecision::NotTheirs),
            ),
            (
                |it| it.state = ApprovalState::Denied,
                Tell(NoDecision::Over(ApprovalState::Denied)),
            ),
            (
                |it| it.now_ms += 300_000,
                Tell(NoDecision::Over(ApprovalState::Expired)),
            ),
            // Those who may decide are told that the approval is over; others are told that they may not decide.
            (
                |it| {
                    it.state = ApprovalState::Approved;
                    it.decider.is_requester = false;
                },
                Tell(NoDecision::NotTheirs),
            ),
        ];
        for (change, expected) in table {
            let mut facts = fresh;
            change(&mut facts);
            assert_eq!(press(&facts), expected, "{facts:?}");
        }
    }

    #[test]
    fn states_are_read_back() {
        for state in ApprovalState::ALL {
            assert_eq!(ApprovalState::from_name(state.name()), Some(state));
        }
    }
}
