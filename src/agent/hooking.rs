//! What hooks say at the points of a run, and what becomes of it there.
//!
//! A hook's word of an earlier attempt is read from its row; only what was not said yet is asked. Verdicts are
//! written by whoever commits what they decide.

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

/// Where words of an answer are taken out before it is stored.
const HEARD: [HookPoint; 2] = [HookPoint::AfterModel, HookPoint::BeforeSave];
/// Where words of a result are.
const GIVEN: [HookPoint; 2] = [HookPoint::AfterTool, HookPoint::BeforeSave];

/// The hooks of an agent, with what they said earlier in this run.
#[derive(Clone, Debug, Default)]
pub(super) struct Hooking {
    hooks: Hooks,
    about: AboutRun,
    said: Vec<HookVerdict>,
    /// The agent call of a network that they are asked in, from 1; 0 = the run is one agent's, or its routing agent is asked.
    call: u32,
    language: Language,
}

/// What hooks say of a call.
pub(super) struct CallJudged {
    /// The arguments that it is to be made with.
    pub(super) arguments: Value,
    /// Whether a person is to be asked whatever else is set.
    pub(super) asking: ApprovalRule,
    /// Why it is not made, in words for the model.
    pub(super) denied: Option<String>,
    /// What was said this time.
    pub(super) verdicts: Vec<HookVerdict>,
}

/// What hooks say of an answer.
pub(super) enum AnswerJudged {
    /// It is said like this.
    Said(String),
    /// It is not said, and why: words for the room.
    Withheld(String),
}

/// What hooks say of a run that is about to begin.
pub(super) enum RunJudged {
    /// Its model is asked.
    Goes,
    /// It is not, and why: words for the room.
    Refused(String),
}

/// What hooks say of a run before its model is asked at all.
pub(super) enum BeginJudged {
    /// As of every request.
    Run(RunJudged),
    /// What it is to answer was said to somebody else: the room is told nothing.
    NotMeant,
}

/// What a run's model is sent, with what is noted and without what is taken out of it.
pub(super) struct SentWithout {
    pub(super) messages: Vec<PromptMessage>,
    pub(super) exchanges: Vec<Exchange>,
}

impl Hooking {
    /// Those of an agent, for a run of which they said this before; `call`: of a network, from 1.
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

    /// What a hook says: what it said before, or what it says this time, which is added.
    async fn word(
        &self,
        hook: &Hook,
        at: At,
        subject: Subject<'_>,
        verdicts: &mut Vec<HookVerdict>,
    ) -> HookDecision {
        // What was said of a call before people changed its arguments was said of another one.
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

    /// Asks, in their order, whether a run's model is asked at all, in a network that of each agent call; the first who says
    /// no ends it. What was said this time is to be kept before the model is asked.
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

    /// Asks, in their order, whether a request is sent to the model; the first who says no ends its run. `text` is what
    /// is new in it.
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

    /// Asks, in their order, what of an answer of the model is kept; the first who says no ends its run. Another
    /// attempt's answer is another one, so nothing that was said before holds.
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
            // Calls alone are asked about before each of them.
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

    /// Whether hooks look at what tools give or agents say.
    pub(super) fn look_at_what_is_told(&self) -> bool {
        self.hooks.look_at_what_is_told()
    }

    /// The servers that are asked at a point.
    fn asked_at(&self, point: HookPoint) -> impl Iterator<Item = &Hook> {
        let hooks = self.hooks.at(point).map(|hook| &**hook);
        hooks.filter(|hook| hook.is_asked())
    }

    /// A prompt with what hooks want its model to know, before the message that is answered; `None` = nothing.
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

    /// Asks, in their order, whether a call is made and with which arguments; the first who says no ends it.
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

    /// What a model is sent, where something is noted in it or words are taken out of it; `None` = as it is. The same words are taken out of the
    /// same message every time, so that a provider's cache holds.
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
            // The provider's own message holds what was taken out.
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

    /// Takes words out of what a model said, before anything of it is stored or called.
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

    /// Takes words out of what a call gave, and asks, in their order, how the rest is told, before it is stored or
    /// shown to the model. What was done stays done, whatever is told of it.
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

    /// Asks, in their order, how an answer is said, and whether. `n`: which of several, from 1; 0: the only one.
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

/// The text of a row is that of the turn; it is not kept twice.
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

/// Why a call is not made, in words for the model.
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

/// What is told in place of what a call gave, in words for the model.
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

/// Why a question is not answered, in words for the room.
fn refused(reason: &str, language: Language) -> String {
    match reason {
        "" => language.may_not_answer(),
        reason => language.may_not_answer_because(reason),
    }
}

/// Why an answer is not said, in words for the room.
fn withheld(reason: &str, language: Language) -> String {
    match reason {
        "" => language.may_not_post(),
        reason => language.may_not_post_because(reason),
    }
}

/// The same where a check gave no word.
fn unchecked(language: Language) -> String {
    language.may_not_post_because(language.answers_unchecked())
}
