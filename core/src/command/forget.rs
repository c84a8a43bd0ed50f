//! What goes for good: a message, all that a person said, or a whole chat.

use crate::command::{AskedCommand, CommandForm, CommandVerdict, Effect};
use crate::wall_clock::Zone;
use crate::words::texts;

/// The prefix of a sender's id where somebody writes as a chat.
const BEHIND_A_CHAT: &str = "chat:";

pub(super) fn is_order(rest: &str, _zone: Zone) -> bool {
    ForgottenWords::of(rest) != ForgottenWords::Other
}

pub(super) fn decide(asked: &AskedCommand<'_>) -> CommandVerdict {
    let language = asked.room.language;
    let told = |text| asked.told(text);
    use ForgottenWords::{Chat, Me, Nothing, Other};
    let confirming = |words: &str| match asked.form {
        CommandForm::Plain => format!("/forget {words} yes"),
        CommandForm::Behind | CommandForm::Mention => format!("forget {words} yes"),
    };
    match (ForgottenWords::of(asked.rest), asked.replied_to) {
        (Nothing, Some((message_id, is_own))) if is_own || asked.is_admin => {
            let effect = Effect::ForgetMessage {
                message_id: message_id.to_owned(),
            };
            asked.done(effect, language.forgets_message())
        }
        (Nothing, Some(_)) => told(language.forgets_own_messages()),
        // Several people share that name, so it is unknown which of them asks.
        (Me { .. }, _) if asked.sender.starts_with(BEHIND_A_CHAT) => {
            told(language.shared_name_forgets_nothing())
        }
        (Me { .. }, _) if asked.has_forgotten_lately => told(language.forgotten_lately()),
        (Me { is_sure: false }, _) => told(language.would_forget_person(confirming("me"))),
        (Me { is_sure: true }, _) => asked.done(Effect::ForgetPerson, language.forgets_person()),
        (Chat { .. }, _) if !(asked.is_admin || asked.is_direct) => {
            told(language.only_admins_forget_chat())
        }
        (Chat { is_sure: false }, _) => told(language.would_forget_chat(confirming("chat"))),
        (Chat { is_sure: true }, _) => asked.done(Effect::ForgetChat, language.forgets_chat()),
        (Nothing | Other, _) => told(match asked.form {
            CommandForm::Behind | CommandForm::Mention => language.forget_help(),
            CommandForm::Plain => language.forget_help_reply(),
        }),
    }
}

/// The words behind `forget`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ForgottenWords {
    Nothing,
    /// The person; done once they said yes.
    Me {
        is_sure: bool,
    },
    /// The chat; done once its person said yes.
    Chat {
        is_sure: bool,
    },
    Other,
}

impl ForgottenWords {
    fn of(rest: &str) -> Self {
        let words = rest.split_whitespace().take(3).map(str::to_lowercase);
        let words: Vec<String> = words.collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            [] => Self::Nothing,
            ["me"] => Self::Me { is_sure: false },
            ["me", "yes"] => Self::Me { is_sure: true },
            ["chat"] => Self::Chat { is_sure: false },
            ["chat", "yes"] => Self::Chat { is_sure: true },
            _ => Self::Other,
        }
    }
}

texts! {
    forgets_message();
    forgets_own_messages();
    shared_name_forgets_nothing();
    forgotten_lately();
    would_forget_person(words);
    would_forget_chat(words);
    forgets_person();
    forgets_chat();
    only_admins_forget_chat();
    forget_help();
    forget_help_reply();
}
