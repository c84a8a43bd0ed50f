//! What waits for an answer ends: all of it for an administrator, what they asked themselves for others.

use crate::command::{AskedCommand, CommandVerdict, Effect};
use crate::words::{Language, texts};

pub(super) fn decide(asked: &AskedCommand<'_>) -> CommandVerdict {
    let of_everybody = asked.is_admin;
    let text = stopped(of_everybody, asked.room.language);
    asked.told_to_all(Effect::Stop { of_everybody }, text)
}

/// The reply to a stop.
pub(crate) fn stopped(of_everybody: bool, language: Language) -> String {
    match of_everybody {
        true => language.stopped_all(),
        false => language.stopped_own(),
    }
}

texts! {
    stopped_all();
    stopped_own();
}
