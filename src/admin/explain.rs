//! A prompt with what was left out of it and why, turn by turn and for the rest of its conversation.

use crate::admin::view::{MessageCostView, OmittedView, PromptMessageView, PromptView};
use crate::agent::prompting::BuiltPrompt;
use vocative_core::history::HistoryTurn;
use vocative_core::ids::AgentName;
use vocative_core::options::Profile;
use vocative_core::prompting::{Omission, OmissionReason};
use vocative_core::turn::{ParticipantKind, Turn};

/// A prompt to explain.
pub(super) struct Explained<'a> {
    /// The conversation's name.
    pub(super) conversation: String,
    pub(super) agent: &'a AgentName,
    pub(super) built: &'a BuiltPrompt,
    /// Turns that its summary stands for.
    pub(super) summarized: u64,
    /// The capture order up to which turns are read, if one was given (`--at`).
    pub(super) at: Option<i64>,
    /// The newest message to the agent, if the agent has spoken since.
    pub(super) answered: Option<i64>,
    pub(super) has_identity: bool,
}

impl Explained<'_> {
    pub(super) fn view(self) -> PromptView {
        let BuiltPrompt {
            prompt,
            history,
            options,
            ..
        } = self.built;
        let turns_not_read = self.not_read();
        PromptView {
            agent: self.agent.to_string(),
            answered_seq: self.answered,
            messages: prompt
                .messages
                .iter()
                .map(|message| PromptMessageView {
                    role: message.role.name().to_owned(),
                    content: message.content.clone(),
                })
                .collect(),
            tokens: prompt.tokens,
            instruction_tokens: prompt.instruction_tokens,
            recalled_tokens: prompt.recalled_tokens,
            token_budget: options.token_budget,
            tokens_left: options.token_budget.saturating_sub(prompt.tokens),
            has_chat_options: self.built.has_chat_options,
            costs: prompt
                .costs
                .iter()
                .map(|cost| MessageCostView {
                    part: cost.part.name().to_owned(),
                    seq: cost.seq.map(|seq| seq.0),
                    tokens: cost.tokens,
                })
                .collect(),
            overhead_per_message: prompt.overhead_per_message,
            turns_loaded: prompt.turns_loaded,
            turns_in_prompt: prompt.turns.len(),
            turns_of_conversation: history.conversation.turns,
            turns_summarized: self.summarized,
            turns_not_read,
            not_read_because: if turns_not_read > 0 {
                self.reasons()
            } else {
                Vec::new()
            },
            rows_read: history.cost.rows,
            scan_steps: history.cost.scan_steps,
            sorts: history.cost.sorts,
            vm_steps: history.cost.vm_steps,
            has_summary: prompt.has_summary,
            has_older: prompt.has_older,
            omitted: prompt.omitted.iter().map(omitted).collect(),
            answered_run: None,
            as_sent: None,
            counter: prompt.counter.clone(),
            has_identity: self.has_identity,
            conversation: self.conversation,
        }
    }

    /// Turns of the conversation that were neither read nor folded, from the store's count of turns.
    fn not_read(&self) -> u64 {
        let history = &self.built.history;
        let here = |read: &&HistoryTurn| read.turn.conversation == history.conversation.id;
        let is_folded = |turn: &Turn| {
            let through = history.summary.as_ref().map(|summary| summary.through);
            through.is_some_and(|through| turn.position <= through) && self.is_kept(turn)
        };
        let read = history.turns.iter().filter(here);
        let read = read.filter(|read| !is_folded(&read.turn)).count() as u64;
        let accounted = self.summarized.saturating_add(read);
        history.conversation.turns.saturating_sub(accounted)
    }

    /// Whether the options keep a turn: with `addressed_only`, only turns to or of the agent.
    fn is_kept(&self, turn: &Turn) -> bool {
        !self.built.options.addressed_only
            || turn.addressed_to.contains(self.agent)
            || (turn.participant.kind == ParticipantKind::Agent
                && turn.participant.platform_id == self.agent.as_str())
    }

    /// Why turns were not read.
    fn reasons(&self) -> Vec<String> {
        let options = &self.built.options;
        let mut reasons = Vec::new();
        if options.addressed_only && options.profile == Profile::Vocative {
            reasons.push(format!("do not concern {} (addressed_only)", self.agent));
        }
        if self.built.history.has_older {
            let max = options.max_turns_to_load;
            reasons.push(format!(
                "are older than the newest {max} kept turns (max_turns_to_load)"
            ));
        }
        if self.built.history.began_afresh {
            reasons.push("came before the fresh start (`new`)".to_owned());
        }
        if let Some(minutes) = options.time_window_minutes {
            reasons.push(format!(
                "are older than {minutes} minutes (time_window_minutes)"
            ));
        }
        if let Some(scope) = options.scope {
            reasons.push(format!("are not of the scope {} (scope)", scope.name()));
        }
        if let Some(at) = self.at {
            reasons.push(format!("came after seq {at} (--at)"));
        }
        if reasons.is_empty() {
            reasons.push("are not in the room: deleted, or steps of a run".to_owned());
        }
        reasons
    }
}

fn omitted(omission: &Omission) -> OmittedView {
    OmittedView {
        seq: omission.position.seq.0,
        speaker: omission.speaker.clone(),
        why: omission.why.name().to_owned(),
        meaning: omission.why.meaning().to_owned(),
        tokens_left_out: match omission.why {
            OmissionReason::Cut { tokens } => Some(tokens),
            _ => None,
        },
    }
}
