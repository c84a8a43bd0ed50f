//! Which of an agent's models a question asks for: `@Vocative --model deep Why …`. Pure.

use vocative_contract::envelope::{InboundMessage, SenderKind};

use crate::command::CommandVerdict;
use crate::ids::AgentName;
use crate::judging::addressees::{names_bot, without_labels};
use crate::judging::policy::{AgentPolicy, ChannelPolicy};
use crate::judging::speech::{strip_word, without_leading_mentions};

/// The word before the model's name; phones make one dash of two.
const WORDS: [&str; 3] = ["--model", "\u{2014}model", "\u{2013}model"];
/// What may stand behind a name.
const PUNCTUATION: [char; 5] = [',', ':', ';', '!', '?'];

/// The model that a message asks for, by its configured name; `None` if it asks for none, or none of the agents that it
/// addresses has models to choose from: then the words are part of the question.
///
/// # Errors
/// What its person is told: none of these agents can be asked with that model.
pub(super) fn asked_model(
    message: &InboundMessage,
    addressed_to: &[AgentName],
    policy: &ChannelPolicy,
) -> Result<Option<String>, CommandVerdict> {
    let agents = || addressed_to.iter().filter_map(|name| policy.agent(name));
    let offered = || agents().flat_map(|agent| &agent.models);
    if message.sender.kind != SenderKind::Person || offered().next().is_none() {
        return Ok(None);
    }
    let Some(wished) = wished(message, agents(), policy) else {
        return Ok(None);
    };
    if let Some(model) = offered().find(|model| model.eq_ignore_ascii_case(wished)) {
        return Ok(Some(model.clone()));
    }
    let mut models: Vec<&str> = offered().map(String::as_str).collect();
    models.sort_unstable();
    models.dedup();
    let language = policy.manners.language;
    Err(CommandVerdict::told(
        language.no_such_model(models.join(", ")),
    ))
}

/// The name behind `--model`, where that word opens the text behind mentions, a command and the agent's name.
fn wished<'a>(
    message: &'a InboundMessage,
    agents: impl Iterator<Item = &'a AgentPolicy>,
    policy: &ChannelPolicy,
) -> Option<&'a str> {
    let is_bot = |id: &str| names_bot(id, policy);
    let whole = without_labels(message);
    let mentions = whole.len() - without_leading_mentions(whole, &is_bot).len();
    // Dashes behind a mention are taken for punctuation there.
    let mut text = &whole[whole[..mentions].trim_end_matches('-').len()..];
    if text.starts_with('/') {
        text = text.split_once(char::is_whitespace)?.1;
    }
    let text = text.trim_start();
    let called =
        strip_word(text, "hey").map_or(text, |behind| behind.trim_start_matches([' ', ',', '\t']));
    let called = called.strip_prefix('@').unwrap_or(called);
    let names = agents.flat_map(|agent| &agent.aliases);
    let behind = names.filter_map(|alias| strip_word(called, alias));
    // Of several matching names the longest is meant: it leaves the shortest rest.
    let named = behind.min_by_key(|behind| behind.len());
    let said = named.map_or(text, |behind| behind.trim_start_matches(PUNCTUATION));
    let said = said.trim_start();
    let behind = WORDS.iter().find_map(|word| said.strip_prefix(word))?;
    let name = behind
        .starts_with(char::is_whitespace)
        .then(|| behind.split_whitespace().next());
    name.flatten()
        .map(|name| name.trim_end_matches(PUNCTUATION))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use vocative_contract::markup::mention_token;

    use super::*;
    use crate::judging::testing::{message, policy};

    #[test]
    fn a_model_is_asked_for_where_its_word_opens_the_question() {
        let mut policy = policy();
        policy.agents[0].models = vec!["deep".to_owned(), "cheap".to_owned()];
        let agent = policy.agents[0].name.clone();
        let bot = mention_token("UBOT");
        let asked = |text: &str, of: &AgentName| {
            let asked = asked_model(&message(text), std::slice::from_ref(of), &policy);
            asked.map_err(|told| told.answer.unwrap())
        };
        let deep = Ok(Some("deep".to_owned()));
        for text in [
            format!("{bot} --model deep why?"),
            format!("{bot} {bot}  --model  Deep\nwhy?"),
            format!("{agent}, --model deep why?"),
            "/ask --model deep why?".to_owned(),
            "--model deep".to_owned(),
            format!("hey {agent}, --model deep why?"),
            "\u{2014}model deep, why?".to_owned(),
        ] {
            assert_eq!(asked(&text, &agent), deep, "{text:?}");
        }
        for text in [
            "why?",
            "what does --model deep do?",
            "--models deep why?",
            "--model=deep why?",
            "--model",
            "/ask",
        ] {
            assert_eq!(asked(text, &agent), Ok(None), "{text:?}");
        }
        let told = asked("--model <b>huge why?", &agent).unwrap_err();
        assert!(
            told.contains("cheap, deep") && !told.contains("huge"),
            "{told}"
        );
        let without = &policy.agents[1].name;
        assert_eq!(asked("--model huge why?", without), Ok(None));
    }
}
