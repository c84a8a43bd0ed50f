//! A hook of kind "intent": a model is asked whether a message was meant for the agent or for somebody else. Unless
//! it clearly says no, the agent answers.

use std::time::Duration;

use crate::agent::background::{BackgroundAsking, CostMeter, NoAnswer};
use crate::agent::registry::AgentSpec;
use crate::agent::working::Working;
use crate::hooks::{Hook, HookKind};
use vocative_core::hooking::HookDecision;
use vocative_core::intent::{intent_request, read_intent};
use vocative_core::prompting::PromptMessage;
use vocative_store::StoreError;
use vocative_store::spending::Purpose;

/// The reason of a run that ends without a word.
pub(super) const NOT_MEANT: &str = "said to somebody else";

/// The question about a run whose message may be meant for somebody else.
pub(super) struct IntentAsking<'a> {
    /// The run.
    pub(super) working: &'a Working<'a>,
    /// Its agent.
    pub(super) spec: &'a AgentSpec,
    /// Its prompt, which ends with the message.
    pub(super) prompt: &'a [PromptMessage],
}

impl IntentAsking<'_> {
    /// Asks the model of a hook about the message.
    ///
    /// # Errors
    /// Storage refuses.
    pub(super) async fn ask(&self, hook: &Hook) -> Result<HookDecision, StoreError> {
        let Self {
            working,
            spec,
            prompt,
        } = *self;
        let (HookKind::Intent { timeout_ms }, Some(model)) =
            (&hook.kind, spec.intent_models.get(&hook.name))
        else {
            return Ok(HookDecision::Pass);
        };
        let run = working.claimed.run.id;
        if !working.worker.store.is_unsurely_addressed(run).await? {
            return Ok(HookDecision::Pass);
        }
        let place = working.worker.models.begin(&model.model_use, run);
        let whose = (
            working.claimed.asker.account,
            working.claimed.run.conversation,
            &spec.name,
        );
        let now_ms = (working.worker.clock)();
        let store = &working.worker.store;
        let mut meter = CostMeter::new(store, Purpose::Answers, whose, Some(model), now_ms);
        meter.person = working.claimed.asker.person;
        meter.call.run = Some(run);
        let asking = BackgroundAsking {
            model,
            hooks: &spec.hooks,
            deadline: Duration::from_millis(*timeout_ms),
            place: Some(&place),
            meter: &meter,
        };
        let name = spec.agent.display_name.as_str();
        let failed = |reason: String| HookDecision::Failed { reason };
        Ok(match asking.ask(&intent_request(name, prompt)).await {
            Ok(answer) => match read_intent(&answer.text) {
                Some(true) => HookDecision::Pass,
                Some(false) => HookDecision::Deny {
                    reason: NOT_MEANT.to_owned(),
                },
                None => failed("its model said neither yes nor no".to_owned()),
            },
            Err(NoAnswer::Busy) => failed("its model rests".to_owned()),
            Err(NoAnswer::Failed(cause)) => failed(format!("its model failed: {cause}")),
        })
    }
}
