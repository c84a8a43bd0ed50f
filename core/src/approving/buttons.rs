//! What a button of a card carries, and what a press says. Nothing of it is trusted beyond an id: which card it stands
//! on, and what the call does, is compared with the row.

use uuid::Uuid;

use crate::ids::ApprovalId;
use crate::tool_call::CallDigest;

/// The prefix of our buttons' data: `a` and the version.
const PREFIX: &str = "a1";
/// Characters of the digest that stand in a button.
const DIGEST_CHARS: usize = 8;
/// Characters of the id that stand in a button.
const ID_CHARS: usize = 32;

/// What a button decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalChoice {
    /// The call is made.
    Approve,
    /// The call is made, and those like it for a day.
    Grant,
    /// The call is not made.
    Deny,
    /// All arguments are shown to the person who presses.
    ShowAll,
    /// The person who presses is asked for other arguments, or told how to say them.
    Change,
}

impl ApprovalChoice {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Approve,
        Self::Grant,
        Self::Deny,
        Self::ShowAll,
        Self::Change,
    ];

    fn letter(self) -> char {
        match self {
            Self::Approve => 'y',
            Self::Grant => 'g',
            Self::Deny => 'n',
            Self::ShowAll => 's',
            Self::Change => 'c',
        }
    }
}

/// A button of a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalButton {
    /// Which approval.
    pub approval: ApprovalId,
    /// What it decides.
    pub choice: ApprovalChoice,
    /// The beginning of the call's digest, in hexadecimal.
    pub digest: String,
}

impl ApprovalButton {
    /// A button for a call.
    #[must_use]
    pub fn new(approval: ApprovalId, choice: ApprovalChoice, digest: &CallDigest) -> Self {
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Self {
            approval,
            choice,
            digest: hex[..DIGEST_CHARS].to_owned(),
        }
    }

    /// What the button carries.
    #[must_use]
    pub fn data(&self) -> String {
        let (id, letter) = (self.approval.0.simple(), self.choice.letter());
        format!("{PREFIX}{id}{letter}{}", self.digest)
    }

    /// Reads a button's data; `None` if the button is not ours.
    #[must_use]
    pub fn read(data: &str) -> Option<Self> {
        let rest = data.strip_prefix(PREFIX)?;
        if !rest.is_ascii() || rest.len() != ID_CHARS + 1 + DIGEST_CHARS {
            return None;
        }
        let (id, rest) = rest.split_at(ID_CHARS);
        let (letter, digest) = rest.split_at(1);
        let choice = ApprovalChoice::ALL
            .into_iter()
            .find(|choice| letter.starts_with(choice.letter()))?;
        Some(Self {
            approval: ApprovalId(Uuid::try_parse(id).ok()?),
            choice,
            digest: digest.to_owned(),
        })
    }

    /// Whether the button is for a call with this digest.
    #[must_use]
    pub fn is_for(&self, digest: &CallDigest) -> bool {
        Self::new(self.approval, self.choice, digest) == *self
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_button_is_read_back_and_stands_for_one_call() {
        let approval: ApprovalId = "0198c5de-1234-7abc-8def-0123456789ab".parse().unwrap();
        for choice in ApprovalChoice::ALL {
            let button = ApprovalButton::new(approval, choice, &[7; 32]);
            let data = button.data();
            assert!(data.len() <= 64, "{data}");
            let read = ApprovalButton::read(&data).unwrap();
            assert_eq!(read, button);
            assert!(read.is_for(&[7; 32]));
            assert!(!read.is_for(&[8; 32]));
        }
        let data = ApprovalButton::new(approval, ApprovalChoice::Approve, &[7; 32]).data();
        for wrong in [
            String::new(),
            "approve".to_owned(),
            data.replacen("a1", "a2", 1),
            data.replace('y', "x"),
            format!("{data}0"),
            "a1".to_owned() + &"é".repeat(20) + "x",
        ] {
            assert_eq!(ApprovalButton::read(&wrong), None, "{wrong}");
        }
    }
}
