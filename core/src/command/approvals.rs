//! What waits for a person's decision.

use crate::approving::{ApprovalsCommand, ApprovalsOrder};
use crate::command::{AskedCommand, CommandVerdict, Effect};
use crate::wall_clock::Zone;
use crate::words::texts;

pub(super) fn is_order(rest: &str, _zone: Zone) -> bool {
    ApprovalsOrder::read(rest) != ApprovalsOrder::Other
}

pub(super) fn decide(asked: &AskedCommand<'_>) -> CommandVerdict {
    asked.told_later(Effect::Approvals(ApprovalsCommand {
        order: ApprovalsOrder::read(asked.rest),
        channel: asked.room.channel.to_owned(),
        is_admin: asked.is_admin,
        language: asked.room.language,
    }))
}

texts! {
    approvals_none();
    approvals_theirs();
    approvals_deny_all(code);
    approvals_asked();
    approvals_line(tool, arguments, name);
    approvals_line_until(tool, arguments, name, until);
    approvals_help();
    approvals_other_list();
    approvals_denied[count]();
}
