//! What a conversation is called.

use crate::command::{AskedCommand, CommandVerdict, Effect};
use crate::title::{TitleCommand, TitleOrder};
use crate::wall_clock::Zone;
use crate::words::texts;

/// `@Vocative title of the book?` is a question; a title stands behind a colon.
pub(super) fn is_order(_rest: &str, _zone: Zone) -> bool {
    false
}

pub(super) fn decide(asked: &AskedCommand<'_>) -> CommandVerdict {
    asked.told_later(Effect::Title(TitleCommand {
        order: TitleOrder::read(asked.rest),
        is_admin: asked.is_admin,
        language: asked.room.language,
    }))
}

texts! {
    title_is(title);
    title_is_none(title);
    title_given();
    title_taken_away();
    title_not_there();
    title_says_nothing();
    title_is_operators();
}
