//! A model without a network: deterministic, so that everything runs without a key.
//!
//! It says what it was asked and what context it saw, which shows at a glance whether addressing,
//! history and threads work.

use futures_util::future::BoxFuture;

use super::{Answer, Finish, Model, ModelError, Request};
use crate::domain::run::Usage;
use crate::prompt::{ClassEstimate, PromptMessage, PromptRole, TokenCounter};

/// It repeats at most so many characters of a question.
pub const ECHO_MAX_CHARS: usize = 200;

/// The built-in model.
#[derive(Clone, Copy, Debug, Default)]
pub struct Offline;

impl Model for Offline {
    fn name(&self) -> &'static str {
        "offline"
    }

    fn complete<'a>(
        &'a self,
        request: &'a Request<'a>,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        Box::pin(std::future::ready(answer(request.messages)))
    }
}

fn answer(messages: &[PromptMessage]) -> Result<Answer, ModelError> {
    let Some((question, earlier)) = messages.split_last() else {
        return Err(ModelError::Refused {
            reason: "there is no message to answer".to_owned(),
        });
    };
    let text = format!(
        "You asked: \"{}\". I am the offline model; I saw {} in this conversation.",
        asked(question),
        seen(earlier)
    );
    let prompt_tokens: usize = messages
        .iter()
        .map(|message| ClassEstimate.cost(&message.content))
        .sum();
    Ok(Answer {
        usage: Usage {
            prompt_tokens: prompt_tokens as u64,
            completion_tokens: u64::from(ClassEstimate.count(&text)),
        },
        raw_message: serde_json::json!({"version": 1, "provider": "offline", "message": text})
            .to_string(),
        text,
        finish: Finish::Stop,
    })
}

/// The question on one line, without its speaker's label and quoted lines.
fn asked(question: &PromptMessage) -> String {
    let said = match question.role {
        PromptRole::User => question
            .content
            .split_once(": ")
            .map_or(question.content.as_str(), |(_, said)| said),
        PromptRole::System | PromptRole::Assistant => &question.content,
    };
    let lines = said.lines().map(str::trim);
    let words: Vec<&str> = lines
        .filter(|line| !line.starts_with('>'))
        .flat_map(str::split_whitespace)
        .collect();
    let said = words.join(" ").replace('"', "'");
    if said.chars().count() <= ECHO_MAX_CHARS {
        return said;
    }
    said.chars().take(ECHO_MAX_CHARS).collect::<String>() + "…"
}

fn seen(earlier: &[PromptMessage]) -> String {
    let count = |is_wanted: &dyn Fn(&PromptMessage) -> bool| {
        earlier.iter().filter(|message| is_wanted(message)).count()
    };
    let own = count(&|message| message.role == PromptRole::Assistant);
    let agents = count(&|message| message.role == PromptRole::User && is_by_agent(message));
    let people = count(&|message| message.role == PromptRole::User) - agents;
    let total = own + agents + people;
    if total == 0 {
        return "no earlier messages".to_owned();
    }
    let agents = match agents {
        0 => String::new(),
        agents => format!(", {agents} from other agents"),
    };
    let plural = if total == 1 { "" } else { "s" };
    format!("{total} earlier message{plural} ({people} from people{agents}, {own} of mine)")
}

fn is_by_agent(message: &PromptMessage) -> bool {
    let label = message.content.split_once(": ").map(|(label, _)| label);
    label.is_some_and(|label| label.ends_with(" (agent)"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn message(role: PromptRole, content: &str) -> PromptMessage {
        PromptMessage {
            role,
            content: content.to_owned(),
        }
    }

    #[test]
    fn it_says_what_it_was_asked_and_what_it_saw() {
        let messages = [
            message(PromptRole::System, "You are Vocative."),
            message(PromptRole::User, "Alice: one"),
            message(PromptRole::Assistant, "two"),
            message(PromptRole::User, "Atlas (agent): three"),
            message(PromptRole::User, "(overheard) Bob: four"),
            message(
                PromptRole::User,
                "Alice: > three\n  say \"hello\":\n  twice",
            ),
        ];
        let answer = answer(&messages).unwrap();
        insta::assert_snapshot!(answer.text, @r#"You asked: "say 'hello': twice". I am the offline model; I saw 4 earlier messages (2 from people, 1 from other agents, 1 of mine) in this conversation."#);
        let prompt_tokens: usize = messages
            .iter()
            .map(|m| ClassEstimate.cost(&m.content))
            .sum();
        assert_eq!(answer.usage.prompt_tokens, prompt_tokens as u64);
        assert!(answer.usage.completion_tokens > 0);
    }

    #[test]
    fn the_example_of_the_readme() {
        let three = [
            message(PromptRole::User, "Alice: hi"),
            message(PromptRole::Assistant, "hi"),
            message(PromptRole::User, "Bob: hi"),
            message(PromptRole::User, "Alice: hello"),
        ];
        insta::assert_snapshot!(answer(&three).unwrap().text, @r#"You asked: "hello". I am the offline model; I saw 3 earlier messages (2 from people, 1 of mine) in this conversation."#);
        insta::assert_snapshot!(answer(&three[3..]).unwrap().text, @r#"You asked: "hello". I am the offline model; I saw no earlier messages in this conversation."#);
        assert!(matches!(answer(&[]), Err(ModelError::Refused { .. })));
    }

    #[test]
    fn it_never_repeats_more_than_its_limit() {
        let long = message(PromptRole::User, &format!("Alice: {}", "ä".repeat(5_000)));
        let text = answer(&[long]).unwrap().text;
        assert_eq!(text.matches('ä').count(), ECHO_MAX_CHARS);
        assert!(text.contains("ä…\""));
    }
}
