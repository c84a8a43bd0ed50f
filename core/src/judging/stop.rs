//! Whether a message says nothing but stop. Pure.

use vocative_contract::envelope::{CommandTarget, InboundMessage, SenderKind};
use vocative_contract::markup::{MENTION_CLOSE, MENTION_OPEN};
use vocative_contract::work::looked_at;

use crate::command::CommandName;
use crate::judging::addressees::names_bot;
use crate::judging::policy::ChannelPolicy;
use crate::judging::speech::strip_word;

/// The words that say stop when they stand alone.
const WORDS: [&str; 3] = ["stop", "cancel", "abort"];

/// Whether a person gives the command, or says stop and nothing else, besides whom they say it to.
#[must_use]
pub(super) fn says_stop(message: &InboundMessage, policy: &ChannelPolicy) -> bool {
    if message.sender.kind != SenderKind::Person {
        return false;
    }
    if let Some(command) = &message.command {
        if command.target == CommandTarget::AnotherBot {
            return false;
        }
        // The text behind the command does not matter: no model reads a command.
        if policy.manners.commands && command.name == CommandName::Stop.name() {
            return true;
        }
    }
    if !message.attachments.is_empty() {
        return false;
    }
    let text = without_mentions(&message.text, policy);
    let said = trimmed(without_name(trimmed(&text), policy));
    // `/stop@bot` names it behind the word.
    let said = said.split_once('@').map_or(said, |(word, name)| {
        if names_bot(&format!("@{name}"), policy) {
            word
        } else {
            said
        }
    });
    WORDS.iter().any(|word| said.eq_ignore_ascii_case(word))
}

fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || "/,:;.!-–—".contains(c))
}

/// The text without the tokens that mention the bot.
fn without_mentions(text: &str, policy: &ChannelPolicy) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    looked_at(text.len());
    while let Some((before, after)) = rest.split_once(MENTION_OPEN) {
        out.push_str(before);
        // Up to the next mark of either kind, so that nothing is looked at twice.
        let end = after.find([MENTION_OPEN, MENTION_CLOSE]);
        let token =
            end.and_then(|end| Some((&after[..end], after[end..].strip_prefix(MENTION_CLOSE)?)));
        match token {
            Some((id, behind)) if names_bot(id, policy) => rest = behind,
            _ => {
                out.push(MENTION_OPEN);
                rest = after;
            }
        }
    }
    out + rest
}

/// The text behind the name of an agent at its start.
fn without_name<'a>(text: &'a str, policy: &ChannelPolicy) -> &'a str {
    let opening = text.strip_prefix('@').unwrap_or(text);
    let mut names = policy.agents.iter().flat_map(|agent| &agent.aliases);
    names
        .find_map(|name| strip_word(opening, name))
        .unwrap_or(text)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use vocative_contract::envelope::CommandWord;
    use vocative_contract::markup::mention_token;

    use super::*;
    use crate::judging::testing::{message, policy};

    #[test]
    fn only_the_word_alone_says_stop() {
        let bot = mention_token("UBOT");
        let other = mention_token("UBOB");
        let table = [
            ("stop".to_owned(), true),
            ("Stop!".to_owned(), true),
            ("/stop".to_owned(), true),
            ("/stop@kael_bot".to_owned(), true),
            (format!("{bot} stop"), true),
            (format!("{bot}, please stop"), false),
            (format!("stop {bot}"), true),
            (format!("{other} stop"), false),
            ("kael, stop".to_owned(), true),
            ("@ops cancel.".to_owned(), true),
            ("ABORT".to_owned(), true),
            ("stop it".to_owned(), false),
            ("don't stop".to_owned(), false),
            ("stop?".to_owned(), false),
            ("kael".to_owned(), false),
            (String::new(), false),
        ];
        for (text, expected) in table {
            assert_eq!(says_stop(&message(&text), &policy()), expected, "{text}");
        }
        let mut typed = message("/stop, please");
        typed.command = Some(CommandWord {
            name: "stop".to_owned(),
            target: CommandTarget::Anyone,
            opens_chat: false,
        });
        assert!(says_stop(&typed, &policy()));
        let mut bots = message("stop");
        bots.sender.kind = SenderKind::Bot;
        assert!(!says_stop(&bots, &policy()));
    }
}
