//! What hooks decide at the points of a run, and what follows from it.
//!
//! A hook's verdict of an earlier attempt is read from its row; a hook is only asked if it has none yet. Verdicts are
//! written by the code that commits what they decide.

use serde_json::Value;

use crate::agent::intent::IntentAsking;
use crate::agent::registry::AgentSpec;
use crate::hooks::{AboutRun, At, Hook, HookKind, Hooks, Subject};
use crate::llm::{Answer, Exchange};
use crate::tools::{ToolOutcome, Toolbox};
use vocative_core::approving::ApprovalRule;
use vocative_core::hooking::{HookDecision, HookPoint, HookVerdict};
use vocative_core::prompting::{PromptMessage, PromptRole};
use vocative_core::run::ClaimedRun;
use vocative_core::tool_call::{CHANGED_DIGEST, CallState, StoredCall};
use vocative_core::words::Language;
use vocative_store::StoreError;
use vocative_store::contract::ReplyRoute;

/// The points at which words of an answer are removed before it is stored.
const HEARD: [HookPoint; 2] = [HookPoint::AfterModel, HookPoint::BeforeSave];
/// The points at which words of a result are removed.
const GIVEN: [HookPoint; 2] = [HookPoint::AfterTool, HookPoint::BeforeSave];

/// The hooks of an agent, with their verdicts from earlier in this run.
#[derive(Clone, Debug, Default)]
pub(super) struct Hooking {
    hooks: Hooks,
    about: AboutRun,
    said: Vec<HookVerdict>,
    /// The agent call of a network that they are asked in, from 1; 0 = the run is one agent's, or its routing agent is
    /// asked.
    call: u32,
    language: Language,
}

/// What hooks say of a call.
pub(super) struct CallJudged {
    /// The arguments that it is to be made with.
    pub(super) arguments: Value,
    /// Whether a person is to be asked whatever else is set.
    pub(super) asking: ApprovalRule,
    /// Why it is not made, worded for the model.
    pub(super) denied: Option<String>,
    /// The verdicts of this time.
    pub(super) verdicts: Vec<HookVerdict>,
}

/// What hooks say of an answer.
pub(super) enum AnswerJudged {
    /// It is posted with this text.
    Said(String),
    /// It is not posted; the text is the reason, worded for the room.
    Withheld(String),
}

/// What hooks say of a run that is about to begin.
pub(super) enum RunJudged {
    /// Its model is asked.
    Goes,
    /// Its model is not asked; the text is the reason, worded for the room.
    Refused(String),
}

/// What hooks say of a run before its model is asked at all.
pub(super) enum BeginJudged {
    /// The verdict, as for every request.
    Run(RunJudged),
    /// The message was meant for somebody else: the room is told nothing.
    NotMeant,
}

/// The messages for a model, with hooks' notes added and removed words left out.
pub(super) struct SentWithout {
    pub(super) messages: Vec<PromptMessage>,
    pub(super) exchanges: Vec<Exchange>,
}

impl Hooking {
    /// The hooks of an agent with the verdicts that they gave in this run; `call`: of a network, from 1.
    pub(super) fn of(
        spec: &AgentSpec,
        call: u32,
        claimed: &ClaimedRun,
        route: &ReplyRoute,
        said: Vec<HookVerdict>,
        language: Language,
    ) -> Self {
        Self {
            hooks: spec.hooks.clone(),
            about: AboutRun {
                agent: spec.name.to_string(),
                run: claimed.run.id.to_string(),
                conversation: claimed.run.conversation.to_string(),
                channel: route.channel.clone(),
                chat: route.target.chat.clone(),
                person: route.person.clone(),
            },
            said,
            call,
            language,
        }
    }

    /// A hook's verdict: the earlier one, or a new one, which is added to `verdicts`.
    async fn word(
        &self,
        hook: &Hook,
        at: At,
        subject: Subject<'_>,
        verdicts: &mut Vec<HookVerdict>,
    ) -> HookDecision {
        // A verdict from before people changed the arguments was about a different call.
        let is_anew = matches!(
            subject,
            Subject::Call {
                is_changed: true,
                ..
            }
        );
        if let Some(said) = self.said_before(hook, at).filter(|_| !is_anew) {
            return said.clone();
        }
        let verdict = hook.ask(&self.about, at, subject).await;
        verdicts.push(verdict_of(hook, at, verdict.clone()));
        verdict
    }

    /// Asks, in their order, whether a run's model is asked at all, in a network that of each agent call; the first
    /// that says no ends it. The new verdicts must be stored before the model is asked.
    ///
    /// # Errors
    /// Storage refuses.
    pub(super) async fn before_run(
        &mut self,
        text: &str,
        model: &str,
        intent: &IntentAsking<'_>,
    ) -> Result<(BeginJudged, Vec<HookVerdict>), StoreError> {
        let at = At {
            point: HookPoint::BeforeRun,
            step: 0,
            n: self.call,
        };
        let (mut verdicts, mut judged) = (Vec::new(), BeginJudged::Run(RunJudged::Goes));
        for hook in self.hooks.at(HookPoint::BeforeRun) {
            let subject = Subject::Going { text, model };
            let is_intent = matches!(hook.kind, HookKind::Intent { .. });
            let said = match (is_intent, self.said_before(hook, at)) {
                (true, None) => {
                    let said = hook.settled(&self.about, at, subject, intent.ask(hook).await?);
                    verdicts.push(verdict_of(hook, at, said.clone()));
                    said
                }
                _ => self.word(hook, at, subject, &mut verdicts).await,
            };
            if let HookDecision::Deny { reason } = said {
                judged = match is_intent {
                    true => BeginJudged::NotMeant,
                    false => BeginJudged::Run(RunJudged::Refused(refused(&reason, self.language))),
                };
                break;
            }
        }
        self.said.extend(verdicts.clone());
        Ok((judged, verdicts))
    }

    /// What a hook said at a point in an earlier attempt.
    fn said_before(&self, hook: &Hook, at: At) -> Option<&HookDecision> {
        let said = self.said.iter().find(|said| {
            (said.point, said.step, said.n) == (at.point, at.step, at.n) && said.hook == hook.name
        });
        said.map(|said| &said.verdict)
    }

    /// Asks, in their order, whether a request is sent to the model; the first that says no ends the run. `text` is
    /// the new part of the request.
    pub(super) async fn before_request(
        &self,
        step: u32,
        text: &str,
        model: &str,
    ) -> (RunJudged, Vec<HookVerdict>) {
        let at = At {
            point: HookPoint::BeforeModel,
            step,
            n: 0,
        };
        let mut verdicts = Vec::new();
        for hook in self.asked_at(HookPoint::BeforeModel) {
            let subject = Subject::Going { text, model };
            if let HookDecision::Deny { reason } = self.word(hook, at, subject, &mut verdicts).await
            {
                return (
                    RunJudged::Refused(refused(&reason, self.language)),
                    verdicts,
                );
            }
        }
        (RunJudged::Goes, verdicts)
    }

    /// Asks, in their order, what of an answer of the model is kept; the first that says no ends the run. Each
    /// attempt has another answer, so earlier verdicts don't hold.
    pub(super) async fn answered(
        &self,
        step: u32,
        answer: &mut Answer,
        verdicts: &mut Vec<HookVerdict>,
    ) -> RunJudged {
        let at = At {
            point: HookPoint::AfterModel,
            step,
            n: 0,
        };
        for hook in self.asked_at(HookPoint::AfterModel) {
            // An answer with calls only: hooks are asked before each of the calls instead.
            if answer.text.trim().is_empty() {
                break;
            }
            let subject = Subject::Text { text: &answer.text };
            let said = hook.ask(&self.about, at, subject).await;
            verdicts.push(verdict_of(hook, at, said.clone()));
            match said {
                HookDecision::Redact {
                    text: Some(text), ..
                } => {
                    answer.text = text;
                    answer.raw_message.clear();
                }
                HookDecision::Deny { reason } => {
                    return RunJudged::Refused(withheld(&reason, self.language));
                }
                HookDecision::Failed { .. } => return RunJudged::Refused(unchecked(self.language)),
                HookDecision::Pass
                | HookDecision::Ask { .. }
                | HookDecision::Narrow { .. }
                | HookDecision::Redact { text: None, .. }
                | HookDecision::Note { .. } => {}
            }
        }
        forget_texts(verdicts);
        RunJudged::Goes
    }

    /// Whether hooks check the results of tools or the words of agents.
    pub(super) fn look_at_what_is_told(&self) -> bool {
        self.hooks.look_at_what_is_told()
    }

    /// The hooks that are asked at a point.
    fn asked_at(&self, point: HookPoint) -> impl Iterator<Item = &Hook> {
        let hooks = self.hooks.at(point).map(|hook| &**hook);
        hooks.filter(|hook| hook.is_asked())
    }

    /// A prompt with the notes of hooks for the model, before the message that is answered; `None` = no notes.
    fn noted(&self, messages: &[PromptMessage]) -> Option<Vec<PromptMessage>> {
        let of_call = self.said.iter().filter(|said| said.n == self.call);
        let notes = of_call.filter_map(|said| match &said.verdict {
            HookDecision::Note { text } if said.point == HookPoint::BeforeRun => {
                Some(text.as_str())
            }
            _ => None,
        });
        let notes: Vec<&str> = notes.filter(|text| !text.trim().is_empty()).collect();
        if notes.is_empty() {
            return None;
        }
        let note = PromptMessage {
            role: PromptRole::System,
            content: notes.join("\n\n"),
        };
        let mut noted = messages.to_vec();
        noted.insert(messages.len().saturating_sub(1), note);
        Some(noted)
    }

    /// Asks, in their order, whether a call is made and with which arguments; the first that says no ends it.
    pub(super) async fn before_tool(
        &self,
        toolbox: &Toolbox,
        call: &StoredCall,
        arguments: Value,
    ) -> CallJudged {
        let at = At {
            point: HookPoint::BeforeTool,
            step: call.step,
            n: call.n,
        };
        let mut judged = CallJudged {
            arguments,
            asking: ApprovalRule::Free,
            denied: None,
            verdicts: Vec::new(),
        };
        for hook in self.hooks.at(HookPoint::BeforeTool) {
            let arguments = judged.arguments.clone();
            let subject = Subject::Call {
                tool: &call.tool,
                arguments: &arguments,
                is_changed: call.digest == CHANGED_DIGEST,
            };
            let word = self.word(hook, at, subject, &mut judged.verdicts);
            match word.await {
                HookDecision::Pass | HookDecision::Redact { .. } | HookDecision::Note { .. } => {}
                HookDecision::Ask { .. } => judged.asking = ApprovalRule::Always,
                HookDecision::Narrow { arguments } => {
                    let narrowed: Value = serde_json::from_str(&arguments).unwrap_or(Value::Null);
                    if toolbox.check(&call.tool, &narrowed).is_err() {
                        judged.denied = Some(denied(hook, "", true));
                        return judged;
                    }
                    judged.arguments = narrowed;
                }
                HookDecision::Deny { reason } => {
                    judged.denied = Some(denied(hook, &reason, false));
                    return judged;
                }
                HookDecision::Failed { .. } => {
                    judged.denied = Some(denied(hook, "", true));
                    return judged;
                }
            }
        }
        judged
    }

    /// The messages for a model, if notes are added or words removed; `None` = unchanged. The same words are removed
    /// from the same message every time, so that a provider's cache holds.
    pub(super) fn before_model(
        &self,
        messages: &[PromptMessage],
        exchanges: &[Exchange],
    ) -> Option<SentWithout> {
        const POINT: [HookPoint; 1] = [HookPoint::BeforeModel];
        let noted = self.noted(messages);
        if self.hooks.redactors(&POINT).next().is_none() {
            return noted.map(|messages| SentWithout {
                messages,
                exchanges: exchanges.to_vec(),
            });
        }
        let messages = noted.as_deref().unwrap_or(messages);
        let without = |text: &str| {
            let changed = self.hooks.without_words(&POINT, text);
            changed.unwrap_or_else(|| text.to_owned())
        };
        let messages = messages.iter().map(|message| PromptMessage {
            role: message.role,
            content: without(&message.content),
        });
        let exchanges = exchanges.iter().map(|exchange| {
            let mut sent = exchange.clone();
            sent.text = without(&exchange.text);
            for result in &mut sent.results {
                result.content = without(&result.content);
            }
            for (_, redactor) in self.hooks.redactors(&POINT) {
                for call in &mut sent.calls {
                    if let Some((arguments, _)) = redactor.redact_value(&call.arguments) {
                        call.arguments = arguments;
                    }
                }
            }
            // The provider's own message contains the removed words.
            if (&sent.text, &sent.calls) != (&exchange.text, &exchange.calls) {
                sent.raw_message.clear();
            }
            sent
        });
        Some(SentWithout {
            messages: messages.collect(),
            exchanges: exchanges.collect(),
        })
    }

    /// Removes words from a model's answer, before any of it is stored or called.
    pub(super) fn heard(&self, step: u32, answer: &mut Answer) -> Vec<HookVerdict> {
        let mut verdicts = Vec::new();
        for (hook, redactor) in self.hooks.redactors(&HEARD) {
            let redacted = redactor.redact(&answer.text);
            let mut count = redacted.count;
            if count > 0 {
                answer.text = redacted.text.into_owned();
            }
            for call in &mut answer.tool_calls {
                if let Some((arguments, found)) = redactor.redact_value(&call.arguments) {
                    call.arguments = arguments;
                    count = count.saturating_add(found);
                }
            }
            if redactor.redact(&answer.raw_message).count > 0 || count > 0 {
                answer.raw_message.clear();
            }
            if count > 0 {
                let at = At {
                    point: HookPoint::AfterModel,
                    step,
                    n: 0,
                };
                verdicts.push(taken_out(hook, at, count));
            }
        }
        verdicts
    }

    /// Removes words from a call's result and asks, in their order, how the rest is told, before it is stored or
    /// shown to the model. The call's effect stays, whatever is told of it.
    pub(super) async fn given(
        &self,
        call: &StoredCall,
        outcome: ToolOutcome,
    ) -> (ToolOutcome, Vec<HookVerdict>) {
        let (mut outcome, mut verdicts) = (outcome, Vec::new());
        let at = At {
            point: HookPoint::AfterTool,
            step: call.step,
            n: call.n,
        };
        for (hook, redactor) in self.hooks.redactors(&GIVEN) {
            let redacted = redactor.redact(&outcome.content);
            let count = redacted.count;
            if count > 0 {
                outcome.content = redacted.text.into_owned();
                verdicts.push(taken_out(hook, at, count));
            }
        }
        for hook in self.asked_at(HookPoint::AfterTool) {
            let subject = Subject::Result {
                tool: &call.tool,
                text: &outcome.content,
                is_error: outcome.state != CallState::Done,
            };
            let withheld = match self.word(hook, at, subject, &mut verdicts).await {
                HookDecision::Redact {
                    text: Some(text), ..
                } => {
                    outcome.content = text;
                    continue;
                }
                HookDecision::Deny { reason } => not_told(hook, &reason, false),
                HookDecision::Failed { .. } => not_told(hook, "", true),
                HookDecision::Pass
                | HookDecision::Ask { .. }
                | HookDecision::Narrow { .. }
                | HookDecision::Redact { text: None, .. }
                | HookDecision::Note { .. } => continue,
            };
            (outcome.content, outcome.sources) = (withheld, Vec::new());
            break;
        }
        forget_texts(&mut verdicts);
        (outcome, verdicts)
    }

    /// Asks, in their order, whether an answer is posted and with which text. `n`: which of several, from 1; 0: the
    /// only one.
    pub(super) async fn before_post(
        &self,
        text: String,
        n: u32,
    ) -> (AnswerJudged, Vec<HookVerdict>) {
        let (mut text, mut verdicts) = (text, Vec::new());
        let at = At {
            point: HookPoint::BeforePost,
            step: 0,
            n,
        };
        for hook in self.hooks.at(HookPoint::BeforePost) {
            let subject = Subject::Text { text: &text };
            let said = self.word(hook, at, subject, &mut verdicts).await;
            match said {
                HookDecision::Redact {
                    text: Some(redacted),
                    ..
                } => text = redacted,
                HookDecision::Deny { reason } => {
                    return (
                        AnswerJudged::Withheld(withheld(&reason, self.language)),
                        verdicts,
                    );
                }
                HookDecision::Failed { .. } => {
                    return (AnswerJudged::Withheld(unchecked(self.language)), verdicts);
                }
                HookDecision::Pass
                | HookDecision::Ask { .. }
                | HookDecision::Narrow { .. }
                | HookDecision::Redact { text: None, .. }
                | HookDecision::Note { .. } => {}
            }
        }
        forget_texts(&mut verdicts);
        (AnswerJudged::Said(text), verdicts)
    }
}

/// Drops the texts from verdicts: the turn holds the same text, and it is not stored twice.
fn forget_texts(verdicts: &mut [HookVerdict]) {
    for of in verdicts {
        if let HookDecision::Redact { text, .. } = &mut of.verdict {
            *text = None;
        }
    }
}

fn verdict_of(hook: &Hook, at: At, verdict: HookDecision) -> HookVerdict {
    HookVerdict {
        point: at.point,
        step: at.step,
        n: at.n,
        hook: hook.name.clone(),
        verdict,
    }
}

fn taken_out(hook: &Hook, at: At, count: u32) -> HookVerdict {
    let verdict = HookDecision::Redact { count, text: None };
    hook.note(&verdict);
    verdict_of(hook, at, verdict)
}

/// Why a call is not made, worded for the model.
fn denied(hook: &Hook, reason: &str, has_failed: bool) -> String {
    let name = &hook.name;
    match (has_failed, reason) {
        (true, _) => format!(
            "not called: the check {name} gave no word that holds, and nothing is called without it"
        ),
        (false, "") => format!("not called: the check {name} does not allow it"),
        (false, reason) => format!("not called: the check {name} does not allow it: {reason}"),
    }
}

/// The text in place of a call's result, worded for the model.
fn not_told(hook: &Hook, reason: &str, has_failed: bool) -> String {
    let name = &hook.name;
    match (has_failed, reason) {
        (true, _) => format!(
            "what the call gave is withheld: the check {name} gave no word that holds, and nothing is shown without it"
        ),
        (false, "") => format!("what the call gave is withheld by the check {name}"),
        (false, reason) => format!("what the call gave is withheld by the check {name}: {reason}"),
    }
}

/// Why a question is not answered, worded for the room.
fn refused(reason: &str, language: Language) -> String {
    match reason {
        "" => language.may_not_answer(),
        reason => language.may_not_answer_because(reason),
    }
}

/// Why an answer is not posted, worded for the room.
fn withheld(reason: &str, language: Language) -> String {
    match reason {
        "" => language.may_not_post(),
        reason => language.may_not_post_because(reason),
    }
}

/// The notice if a hook gave no verdict.
fn unchecked(language: Language) -> String {
    language.may_not_post_because(language.answers_unchecked())
}
