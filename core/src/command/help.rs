//! What there is.

use crate::command::{AskedCommand, CommandForm, CommandName, CommandRoom, CommandVerdict};
use crate::words::texts;

pub(super) fn decide(asked: &AskedCommand<'_>) -> CommandVerdict {
    asked.told(help(asked.form, &asked.room))
}

/// Every command and what it does, for people.
pub(crate) fn help(form: CommandForm, room: &CommandRoom<'_>) -> String {
    let start = match form {
        CommandForm::Behind | CommandForm::Mention => "",
        CommandForm::Plain => "/",
    };
    let language = room.language;
    let mut lines = vec![language.help_head()];
    for name in CommandName::ALL {
        let who = match room.admins_only.contains(name) {
            true => format!(" {}", language.help_admins()),
            false => String::new(),
        };
        lines.push(format!(
            "{start}{}: {}{who}",
            name.name(),
            name.description(language)
        ));
    }
    if let Some(bot) = room.mentioned_as {
        lines.push(language.help_mentioned(bot));
    }
    lines.join("\n")
}

texts! {
    help_head();
    help_admins();
    help_mentioned(name);
}
