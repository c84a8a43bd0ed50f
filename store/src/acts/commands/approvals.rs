//! Commands of a person about the calls that wait in a chat: to list them, or to deny all at once, in the transaction
//! that captures the command. `core/approving/listing.rs` decides who sees what and what an order covers.

use crate::StoreError;
use crate::acts::command_giver::CommandGiver;
use crate::acts::deciding::{ApprovalDecision, decide_txn, known_name, show_outcome_txn};
use crate::engine::sql::Connection;
use crate::rows::approvals::open_in_chat;
use vocative_contract::outbound::Part;
use vocative_core::approving::{
    ApprovalState, ApprovalsCommand, ApprovalsOrder, ApprovalsSeen, DecidedBy, DecidedVia,
    StoredApproval, denied_outcome, other_list,
};

/// The most open approvals of a chat that are read; there are never more.
const LOOKED_AT_MAX: usize = 50;

/// Carries out what a person asks for in a chat about calls that wait there. Returns what they are told.
pub(crate) fn order_approvals_txn(
    connection: &Connection,
    asker: &CommandGiver<'_>,
    command: &ApprovalsCommand,
) -> Result<String, StoreError> {
    let open = open_in_chat(connection, asker.chat, LOOKED_AT_MAX)?;
    let approvals: Vec<StoredApproval> = open.iter().map(|it| it.approval.clone()).collect();
    let seen = ApprovalsSeen::of(&approvals, command, asker.sender, asker.now_ms);
    let language = command.language;
    let code = match &command.order {
        ApprovalsOrder::List => return Ok(seen.text(language)),
        ApprovalsOrder::Other => return Ok(language.approvals_help()),
        ApprovalsOrder::DenyAll { code } => code,
    };
    let Some(covered) = seen.covered(code.as_deref()) else {
        return Ok(other_list(&seen, language));
    };
    let name = known_name(connection, asker.account, asker.sender)?;
    let by = DecidedBy {
        name: Some(name.unwrap_or_else(|| asker.sender.to_owned())),
        at_ms: asker.now_ms,
        note: None,
    };
    let mut count = 0;
    for approval in covered {
        let Some(found) = open.iter().find(|it| it.approval.id == approval.id) else {
            continue;
        };
        let decision = ApprovalDecision {
            state: ApprovalState::Denied,
            by: Some(asker.person),
            operator: None,
            people: Vec::new(),
            via: Some(DecidedVia::Command),
            note: None,
            has_grant: false,
            now_ms: asker.now_ms,
        };
        if decide_txn(connection, found, &decision)? {
            let denied = StoredApproval {
                decided: by.clone(),
                via: Some(DecidedVia::Command),
                ..found.approval.clone()
            };
            let outcome = denied_outcome(&denied, language);
            show_outcome_txn(connection, found.row, &Part::plain(outcome), asker.now_ms)?;
            count += 1;
        }
    }
    Ok(language.approvals_denied(count))
}
