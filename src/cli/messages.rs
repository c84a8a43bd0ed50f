//! A conversation as the messages of a provider's API: what agents said is the assistant's, everything else that was
//! said is the user's, with the speaker's name. One message at a time, so that memory does not grow with the length.

use serde_json::json;

use crate::admin::view::ExportMessageView;
use vocative_core::prompting::clean_name;

/// The API whose form the messages have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageForm {
    /// OpenAI's Chat Completions.
    OpenAi,
    /// Anthropic's Messages: the user begins, and the two roles alternate.
    Anthropic,
}

/// The user's message that is put before a conversation that begins with an answer, where the user has to begin.
const BEGINNING: &str = "(The conversation begins with an answer.)";

/// Writes the messages, one by one.
#[derive(Debug)]
pub(super) struct ProviderMessages {
    provider: MessageForm,
    /// The agent whose answers are the assistant's; `None` = every agent's.
    agent: Option<String>,
    /// The newest message, which is not written yet because the next line may belong to it.
    pending: Option<(MessageRole, String)>,
    has_written: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MessageRole {
    User,
    Assistant,
}

impl MessageRole {
    fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

impl ProviderMessages {
    pub(super) fn new(provider: MessageForm, agent: Option<String>) -> Self {
        Self {
            provider,
            agent,
            pending: None,
            has_written: false,
        }
    }

    /// The text before the first message.
    pub(super) fn begin() -> &'static str {
        "{\"messages\": ["
    }

    /// Takes a message; returns the text of those that are complete by it.
    pub(super) fn message(&mut self, message: &ExportMessageView) -> String {
        let line = &message.line;
        let is_said = line.kind.is_none() && !line.deleted && !message.text.trim().is_empty();
        if !is_said {
            return String::new();
        }
        let speaker = &line.participant;
        let name = clean_name(speaker.display_name.as_deref().unwrap_or(&speaker.id));
        let is_agent = speaker.kind == "agent";
        let is_own = is_agent && self.agent.as_ref().is_none_or(|agent| *agent == speaker.id);
        let (role, text) = match (is_own, is_agent) {
            (true, _) => (MessageRole::Assistant, message.text.clone()),
            (false, true) => (
                MessageRole::User,
                format!("{name} (agent): {}", message.text),
            ),
            (false, false) => (MessageRole::User, format!("{name}: {}", message.text)),
        };
        let takes_turns = self.provider == MessageForm::Anthropic;
        match &mut self.pending {
            Some((pending, before)) if takes_turns && *pending == role => {
                before.push_str("\n\n");
                before.push_str(&text);
                String::new()
            }
            None if takes_turns && role == MessageRole::Assistant => {
                self.pending = Some((role, text));
                self.written(MessageRole::User, BEGINNING)
            }
            _ => {
                let whole = self.pending.replace((role, text));
                whole.map_or_else(String::new, |(role, text)| self.written(role, &text))
            }
        }
    }

    /// The last message, and the text after it.
    pub(super) fn end(&mut self) -> String {
        let last = self.pending.take();
        let last = last.map_or_else(String::new, |(role, text)| self.written(role, &text));
        format!("{last}\n]}}\n")
    }

    fn written(&mut self, role: MessageRole, text: &str) -> String {
        let gap = if self.has_written { "," } else { "" };
        self.has_written = true;
        format!("{gap}\n{}", json!({ "role": role.name(), "content": text }))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn said(kind: &str, id: &str, text: &str) -> ExportMessageView {
        let line = json!({
            "id": "1", "conversationId": "2", "timestamp": "", "ordinal": 0, "content": text, "scope": "channel",
            "participant": {"kind": kind, "id": id, "displayName": if kind == "user" { Some("Ann") } else { None }},
            "metadata": {},
        });
        ExportMessageView {
            line: serde_json::from_value(line).unwrap(),
            sent_at_ms: 0,
            text: text.to_owned(),
            quote: None,
            reply: None,
        }
    }

    fn conversation() -> Vec<ExportMessageView> {
        let mut notice = said("system", "vocative", "A limit is met.");
        notice.line.kind = Some("notice".to_owned());
        let mut deleted = said("user", "U1", "");
        deleted.line.deleted = true;
        vec![
            said("agent", "helper", "Good morning."),
            said("user", "U1", "Hello \"you\""),
            notice,
            deleted,
            said("user", "U1", "When is it?"),
            said("agent", "helper", "At three."),
            said("agent", "ops", "Indeed."),
        ]
    }

    fn written(provider: MessageForm, agent: Option<&str>) -> Vec<(String, String)> {
        let mut messages = ProviderMessages::new(provider, agent.map(str::to_owned));
        let mut text = ProviderMessages::begin().to_owned();
        for message in conversation() {
            text.push_str(&messages.message(&message));
        }
        text.push_str(&messages.end());
        let read: Value = serde_json::from_str(&text).unwrap();
        let field = |it: &Value, name: &str| it[name].as_str().unwrap().to_owned();
        let all = read["messages"].as_array().unwrap().iter();
        all.map(|it| (field(it, "role"), field(it, "content")))
            .collect()
    }

    fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
        let of = of.iter();
        of.map(|(role, text)| ((*role).to_owned(), (*text).to_owned()))
            .collect()
    }

    #[test]
    fn for_openai_each_line_is_a_message() {
        let expected = pairs(&[
            ("assistant", "Good morning."),
            ("user", "Ann: Hello \"you\""),
            ("user", "Ann: When is it?"),
            ("assistant", "At three."),
            ("assistant", "Indeed."),
        ]);
        assert_eq!(written(MessageForm::OpenAi, None), expected);
    }

    #[test]
    fn for_anthropic_the_user_begins_and_the_two_take_turns() {
        let expected = pairs(&[
            ("user", BEGINNING),
            ("assistant", "Good morning."),
            ("user", "Ann: Hello \"you\"\n\nAnn: When is it?"),
            ("assistant", "At three."),
            ("user", "ops (agent): Indeed."),
        ]);
        assert_eq!(written(MessageForm::Anthropic, Some("helper")), expected);
    }

    #[test]
    fn an_empty_conversation_is_an_empty_list() {
        let mut messages = ProviderMessages::new(MessageForm::Anthropic, None);
        let text = format!("{}{}", ProviderMessages::begin(), messages.end());
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read, json!({ "messages": [] }));
    }
}
