//! What the tests of this adapter share.

use vocative_contract::identity::{Identity, Platform};

/// The bot of the tests.
pub(super) fn bot() -> Identity {
    Identity {
        platform: Platform::Telegram,
        account: "777".to_owned(),
        account_name: "team_bot".to_owned(),
        user_id: "777".to_owned(),
        other_ids: Vec::new(),
        username: Some("team_bot".to_owned()),
        display_name: "Team Bot".to_owned(),
        warnings: Vec::new(),
        organisation: None,
    }
}
