//! Another account of the same person.

use crate::code::Code;
use crate::command::{AskedCommand, CommandVerdict, Effect};
use crate::linking::{LinkCommand, LinkOrder};
use crate::wall_clock::Zone;
use crate::words::texts;

/// `@Vocative link releases` is a question: a code is shown with a dash.
pub(super) fn is_order(rest: &str, _zone: Zone) -> bool {
    Code::is_as_shown(rest) || LinkOrder::read(rest) == LinkOrder::TakeAway
}

/// In a room others would read the code, and could use it.
pub(super) fn decide(asked: &AskedCommand<'_>) -> CommandVerdict {
    let language = asked.room.language;
    match asked.is_direct {
        true => asked.told_later(Effect::Link(LinkCommand {
            order: LinkOrder::read(asked.rest),
            language,
        })),
        false => asked.told(language.link_is_private()),
    }
}

texts! {
    link_code(code);
    link_accounts(accounts);
    link_done(account);
    link_was_said(account);
    link_code_wrong();
    link_code_is_own();
    link_tries_used_up();
    link_is_there(account);
    link_full(count);
    link_taken_away();
    link_not_there();
    link_is_private();
}
