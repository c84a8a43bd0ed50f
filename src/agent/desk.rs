//! Answers inquiries: questions to the daemon itself whose answer takes longer than a transaction.
//!
//! An inquiry and its job are rows until its answer is committed, in the transaction that removes them; so a
//! kill at any instant neither loses nor doubles an answer. No model is asked.

use chrono::DateTime;
use vocative_contract::markup::{neutral_text, one_line};
use vocative_contract::people::People;

use crate::agent::prompting::{BuiltPrompt, PromptError, PromptRequest, build_prompt};
use crate::agent::recall::RecallFrom;
use crate::agent::registry::{AgentSpec, Registry};
use crate::agent::remembered::MemoryFrom;
use crate::capture::clock::Clock;
use crate::delivery::rooms::{Room, Rooms};
use vocative_core::command::{ChatStanding, Inquiry, OpenInquiry};
use vocative_core::given::Given;
use vocative_core::ids::InquiryId;
use vocative_core::job::ClaimedJob;
use vocative_core::prompting::{PromptPart, RunView};
use vocative_core::queueing::Outcome;
use vocative_core::words::Language;
use vocative_store::{Replying, Store, StoreError};

/// The most lines of a prompt that are shown, the newest.
const LINES_MAX: usize = 20;
/// The length to which each line is cut, in characters.
const LINE_MAX_CHARS: usize = 100;

/// Answers inquiries.
pub struct InquiryDesk {
    /// The store with the inquiries.
    pub store: Store<Replying>,
    /// Who answers where.
    pub rooms: Rooms,
    /// The agents.
    pub registry: Registry,
    /// Wakes the delivery worker.
    pub posts: std::sync::Arc<tokio::sync::Notify>,
    /// The time.
    pub clock: Clock,
}

impl InquiryDesk {
    /// Answers an inquiry; its job ends in the commit that answers it.
    ///
    /// # Errors
    /// Storage refuses, or its row can't be decoded.
    pub async fn answer(
        &self,
        claimed: &ClaimedJob,
        inquiry: InquiryId,
    ) -> Result<Outcome, StoreError> {
        let Some(inquiry) = self.store.inquiry(inquiry).await? else {
            return Ok(Outcome::Done);
        };
        let Some(room) = self.rooms.get(inquiry.account) else {
            return Ok(Outcome::failed("its channel is gone"));
        };
        let place = self.store.place_of(inquiry.chat).await?;
        let person = inquiry.person.as_deref();
        let parts = match self.rooms.still_admits(inquiry.account, &place, person) {
            true => {
                let text = self.text(&inquiry, &room).await?;
                room.renderer.render(&text, &People::nobody())
            }
            // The lists have changed since the question was asked.
            false => Vec::new(),
        };
        let lease = (claimed.id, claimed.token);
        let now_ms = (self.clock)();
        self.store
            .answer_inquiry(lease, inquiry, parts, now_ms)
            .await?;
        self.posts.notify_one();
        Ok(Outcome::Done)
    }

    async fn text(&self, inquiry: &OpenInquiry, room: &Room) -> Result<String, StoreError> {
        let language = room.language();
        let Some(spec) = self.registry.get(&inquiry.agent) else {
            return Ok(language.agent_gone(&inquiry.agent));
        };
        let agent = &spec.agent.display_name;
        let tell = match inquiry.inquiry {
            Inquiry::Status => {
                let (place, name) = (inquiry.conversation, spec.name.clone());
                let standing = self.store.chat_standing(place, name, (self.clock)());
                return Ok(status_text(agent, &standing.await?, language));
            }
            Inquiry::Context => context_text,
            Inquiry::Summary => summary_text,
        };
        match self.prompt(inquiry, &spec, room).await {
            Ok(built) => Ok(tell(agent, &built, language)),
            Err(PromptError::Store(cause)) => Err(cause),
            Err(cause) => Ok(language.no_prompt(cause)),
        }
    }

    async fn prompt(
        &self,
        inquiry: &OpenInquiry,
        spec: &AgentSpec,
        room: &Room,
    ) -> Result<BuiltPrompt, PromptError> {
        let request = PromptRequest {
            given: Given::default(),
            network: None,
            task: None,
            conversation: inquiry.conversation,
            run: RunView::default(),
            as_of_ms: (self.clock)(),
            ratio: spec.present_ratio(&self.store).await?,
            recall: RecallFrom::Nothing,
            memory: Some(MemoryFrom {
                rooms: Some(self.rooms.clone()),
                these: None,
            }),
        };
        build_prompt(&self.store, spec, Some(&room.identity), request).await
    }
}

/// The status of a chat, for people.
fn status_text(agent: &str, standing: &ChatStanding, language: Language) -> String {
    let working = language.status_working(standing.runs_working);
    let posts = language.status_posts(standing.posts_waiting);
    let mut lines = vec![
        language.status_answers(standing.runs_last_hour, agent),
        language.status_now(working, standing.runs_waiting, posts),
        language.status_kept(standing.turns),
    ];
    if let Some(at) = standing
        .afresh_since_ms
        .and_then(DateTime::from_timestamp_millis)
    {
        lines.push(language.status_afresh(at.format("%Y-%m-%d %H:%M")));
    }
    lines.join("\n\n")
}

/// The prompt that an agent would be sent, as a short list.
fn context_text(agent: &str, built: &BuiltPrompt, language: Language) -> String {
    let prompt = &built.prompt;
    let said = prompt.messages.iter().zip(&prompt.costs);
    let said: Vec<_> = said
        .filter(|(_, cost)| cost.part != PromptPart::Instructions)
        .collect();
    if said.is_empty() {
        return language.context_nothing(agent);
    }
    let older = said.len().saturating_sub(LINES_MAX);
    let budget = built.options.token_budget;
    let head = language.context_head(agent, prompt.tokens, budget, prompt.instruction_tokens);
    let mut lines = vec![head + "\n"];
    if older > 0 {
        lines.push(format!("- ({})", language.context_older(older as u64)));
    }
    for (message, cost) in &said[older..] {
        let is_own = message.role == vocative_core::prompting::PromptRole::Assistant;
        let who = if is_own {
            format!("{agent}: ")
        } else {
            String::new()
        };
        let line = shortened(&message.content);
        lines.push(format!("- {who}{line} ({})", cost.tokens));
    }
    let left_out = prompt.omitted.len();
    if left_out > 0 {
        let left_out = language.context_left_out(left_out as u64);
        lines.push(format!("\n{left_out}"));
    }
    lines.join("\n")
}

/// The summary that an agent has of the older part of a conversation.
fn summary_text(agent: &str, built: &BuiltPrompt, language: Language) -> String {
    match &built.history.summary {
        Some(summary) => format!("{}\n\n{}", language.summary_head(agent), summary.text),
        None => language.no_summary(built.prompt.turns.len() as u64, agent),
    }
}

/// A message as one line within the length, escaped so that it is shown as plain text.
fn shortened(text: &str) -> String {
    let line = one_line(text).unwrap_or_default();
    let line = neutral_text(&line);
    let mut short: String = line.chars().take(LINE_MAX_CHARS).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    let mut out = String::with_capacity(short.len());
    for c in short.chars() {
        if c.is_ascii_punctuation() && !",.:;!?'\"-()/".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standing_is_told_in_words() {
        let standing = ChatStanding {
            runs_waiting: 2,
            runs_working: 1,
            posts_waiting: 0,
            turns: 120,
            runs_last_hour: 1,
            afresh_since_ms: Some(1_700_000_000_000),
        };
        let expected = "Kael answers here. 1 answer was asked for in the last hour.\n\n\
            Now: 1 question being answered, 2 waiting, 0 posts to be sent.\n\n\
            120 entries of this chat are kept.\n\n\
            Nothing from before 2023-11-14 22:13 (UTC) is read: somebody started afresh.";
        let told = |language| status_text("Kael", &standing, language);
        assert_eq!(told(Language::English), expected);
        let expected = "Kael antwortet hier. In der letzten Stunde wurde 1 Antwort verlangt.\n\n\
            Jetzt: 1 Frage in Arbeit, 2 in der Warteschlange, 0 Beiträge zu senden.\n\n\
            Von diesem Chat sind 120 Einträge aufbewahrt.\n\n\
            Was vor 2023-11-14 22:13 (UTC) war, wird nicht gelesen: Es wurde neu angefangen.";
        assert_eq!(told(Language::German), expected);
    }

    #[test]
    fn a_line_is_short_and_plain() {
        assert_eq!(shortened("Ann: a *b*\n`c`"), "Ann: a \\*b\\* \\`c\\`");
        let long = shortened(&"é".repeat(300));
        assert_eq!(long.chars().count(), LINE_MAX_CHARS + 1);
    }
}
