//! The agent surface: titles and suggested prompts (slack.md §9).

use serde_json::Value;

use super::super::faults::SlackKnobs;
use super::super::state::{SlackCore, SlackDressing};
use super::call::MethodCall;
use super::chat::allowed;
use super::conversations::required;
use super::{ApiError, MethodOutcome, MethodReply};

/// Most suggested prompts.
const PROMPTS_MAX: usize = 4;

pub(super) fn set_title(core: &mut SlackCore, call: &MethodCall, _: &SlackKnobs) -> MethodOutcome {
    let channel = allowed(core, &required(call, "channel_id")?)?.id;
    let thread_ts = required(call, "thread_ts")?;
    let title = required(call, "title")?;
    if core.post(&channel, &thread_ts).is_none() {
        return Err(ApiError::new("invalid_thread_ts"));
    }
    core.dressings.push(SlackDressing {
        channel,
        thread_ts: Some(thread_ts),
        title: Some(title),
        prompts: Vec::new(),
    });
    Ok(MethodReply::default())
}

pub(super) fn set_suggested_prompts(
    core: &mut SlackCore,
    call: &MethodCall,
    _: &SlackKnobs,
) -> MethodOutcome {
    let channel = allowed(core, &required(call, "channel_id")?)?.id;
    let wrong = || ApiError::new("invalid_arguments");
    let prompts = call.structure("prompts").map_err(|()| wrong())?;
    let prompts = prompts.ok_or_else(wrong)?;
    let list = prompts.as_array().ok_or_else(wrong)?;
    if list.is_empty() || list.len() > PROMPTS_MAX {
        return Err(wrong());
    }
    let text = |prompt: &Value, name: &str| -> Result<String, ApiError> {
        let text = prompt[name].as_str().filter(|text| !text.is_empty());
        text.map(str::to_owned).ok_or_else(wrong)
    };
    let mut shown = Vec::new();
    for prompt in list {
        shown.push((text(prompt, "title")?, text(prompt, "message")?));
    }
    core.dressings.push(SlackDressing {
        channel,
        thread_ts: call.given("thread_ts"),
        title: None,
        prompts: shown,
    });
    Ok(MethodReply::default())
}
