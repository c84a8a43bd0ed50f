//! A recorded step: what a resumed run replays instead of asking the model again. The results of its tools are in the
//! rows of its calls.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::llm::{Answer, ToolCall, ToolResult};
use crate::tools::{for_people, names};
use vocative_core::run::{Finish, Usage};
use vocative_core::tool_call::{CallState, Refusal, StoredCall};

/// The version this build writes. Version 1 had no tools and one step to a run, version 2 the results of its calls; a
/// step of any other version is not replayed.
const VERSION: u32 = 3;

/// One model call of a run, and what the calls it asked for gave.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ModelStep {
    /// From 1.
    pub(super) number: u32,
    /// The configured name of the model that answered; empty = of a version that did not note it.
    pub(super) model: String,
    pub(super) answer: Answer,
    /// The results, one for each call, in order; `None` until all of them ended.
    pub(super) results: Option<Vec<ToolResult>>,
    /// Whether a call was refused for good: the model must answer next.
    pub(super) ends_calls: bool,
}

impl ModelStep {
    /// The step in which the model of that name gave this answer, before any of its calls.
    pub(super) fn said(number: u32, model: &str, answer: Answer) -> Self {
        Self {
            number,
            model: model.to_owned(),
            answer,
            results: None,
            ends_calls: false,
        }
    }

    /// Whether some of its calls are not over.
    pub(super) fn has_open_calls(&self) -> bool {
        self.results.is_none() && !self.answer.tool_calls.is_empty()
    }

    /// Takes the results from the rows of the step's calls, if all of them are over.
    pub(super) fn take_results(&mut self, calls: &[StoredCall]) {
        self.results = results_of(calls);
        self.ends_calls = calls
            .iter()
            .any(|call| call.refusal.is_some_and(Refusal::ends_calls));
    }
}

#[derive(Serialize, Deserialize)]
struct StepRecord {
    version: u32,
    #[serde(default = "first")]
    number: u32,
    /// The configured name of the model that answered.
    #[serde(default)]
    model: String,
    text: String,
    finish: String,
    prompt_tokens: u64,
    #[serde(default)]
    cache_read_tokens: u64,
    #[serde(default)]
    cache_write_tokens: u64,
    completion_tokens: u64,
    /// The provider's own message, opaque.
    message: String,
    #[serde(default)]
    calls: Vec<RecordedCall>,
    /// Only in version 2.
    #[serde(default, skip_serializing)]
    results: Option<Vec<RecordedResult>>,
}

#[derive(Serialize, Deserialize)]
struct RecordedCall {
    id: String,
    name: String,
    arguments: Value,
}

#[derive(Deserialize)]
struct RecordedResult {
    call_id: String,
    content: String,
    is_error: bool,
}

fn first() -> u32 {
    1
}

/// A step as it is stored.
#[must_use]
pub(super) fn record(step: &ModelStep) -> String {
    let answer = &step.answer;
    let call = |call: &ToolCall| RecordedCall {
        id: call.id.clone(),
        name: call.name.clone(),
        arguments: call.arguments.clone(),
    };
    let recorded = StepRecord {
        version: VERSION,
        number: step.number,
        model: step.model.clone(),
        text: answer.text.clone(),
        finish: finish_name(answer.finish).to_owned(),
        prompt_tokens: answer.usage.prompt_tokens,
        cache_read_tokens: answer.usage.cache_read_tokens,
        cache_write_tokens: answer.usage.cache_write_tokens,
        completion_tokens: answer.usage.completion_tokens,
        message: answer.raw_message.clone(),
        calls: answer.tool_calls.iter().map(call).collect(),
        results: None,
    };
    serde_json::to_string(&recorded).expect("plain data with string keys")
}

/// The stored steps of a run with the results of its calls, as far as they can be replayed: up to the first that is
/// missing, that another version wrote, or whose calls were cut off.
#[must_use]
pub(super) fn replay(stored: &[String], calls: &[StoredCall]) -> Vec<ModelStep> {
    replay_behind(0, stored, calls)
}

/// The same for the steps after `behind`: those of one agent call of a network.
#[must_use]
pub(super) fn replay_behind(
    behind: u32,
    stored: &[String],
    calls: &[StoredCall],
) -> Vec<ModelStep> {
    let mut steps: Vec<ModelStep> = Vec::new();
    for (number, stored) in (1..).zip(stored).skip(behind as usize) {
        let is_complete = steps.last().is_none_or(|step| !step.has_open_calls());
        let of_step: Vec<StoredCall> = calls
            .iter()
            .filter(|call| call.step == number)
            .cloned()
            .collect();
        let read = read(stored).map(|mut step| {
            let is_called = !of_step.is_empty() && of_step.len() == step.answer.tool_calls.len();
            if step.results.is_none() && is_called {
                step.take_results(&of_step);
            }
            step
        });
        match read {
            Some(step) if step.number == number && is_complete => steps.push(step),
            _ => break,
        }
    }
    steps
}

fn read(stored: &str) -> Option<ModelStep> {
    let recorded: StepRecord = serde_json::from_str(stored).ok()?;
    let is_known = (1..=VERSION).contains(&recorded.version);
    let call = |call: RecordedCall| ToolCall {
        id: call.id,
        name: call.name,
        arguments: call.arguments,
    };
    let result = |result: RecordedResult| ToolResult {
        call_id: result.call_id,
        content: result.content,
        is_error: result.is_error,
        images: Vec::new(),
    };
    is_known.then(|| ModelStep {
        number: recorded.number,
        model: recorded.model,
        answer: Answer {
            text: recorded.text,
            tool_calls: recorded.calls.into_iter().map(call).collect(),
            usage: Usage {
                prompt_tokens: recorded.prompt_tokens,
                cache_read_tokens: recorded.cache_read_tokens,
                cache_write_tokens: recorded.cache_write_tokens,
                completion_tokens: recorded.completion_tokens,
            },
            reported_prompt_tokens: None,
            raw_message: recorded.message,
            finish: finish_of(&recorded.finish),
        },
        results: recorded
            .results
            .map(|results| results.into_iter().map(result).collect()),
        ends_calls: false,
    })
}

/// Tokens of all steps together.
#[must_use]
pub(super) fn usage_of(steps: &[ModelStep]) -> Usage {
    steps
        .iter()
        .fold(Usage::default(), |sum, step| sum.plus(step.answer.usage))
}

/// The answers of the steps after `behind`, whatever they asked for: those of a routing agent.
#[must_use]
pub(super) fn answers_behind(behind: u32, stored: &[String]) -> Vec<Answer> {
    let steps = stored.iter().skip(behind as usize);
    steps
        .map_while(|stored| Some(read(stored)?.answer))
        .collect()
}

/// Tokens of the stored steps after `behind`, as far as they can be read.
#[must_use]
pub(super) fn usage_since(stored: &[String], behind: u32) -> Usage {
    let steps = stored
        .iter()
        .skip(behind as usize)
        .filter_map(|stored| read(stored));
    steps.fold(Usage::default(), |sum, step| sum.plus(step.answer.usage))
}

/// The answer that the steps end with, with the tokens of all of them; `None` while the last step is no answer.
#[must_use]
pub(super) fn answer_of(steps: &[ModelStep]) -> Option<Answer> {
    let last = steps.last()?;
    last.answer.tool_calls.is_empty().then(|| Answer {
        usage: usage_of(steps),
        ..last.answer.clone()
    })
}

/// The answer from tools of the last step whose result is the answer, with the tokens of all steps; `None` if no call
/// of such a tool was done, or none gave a complete text.
#[must_use]
pub(super) fn answer_by_tool(steps: &[ModelStep], stop_after: &[String]) -> Option<Answer> {
    let last = steps.last()?;
    let calls = last.answer.tool_calls.iter().zip(last.results.as_ref()?);
    let texts = calls
        .filter(|(call, result)| !result.is_error && is_among(stop_after, &call.name))
        .filter_map(|(_, result)| for_people(&result.content))
        .filter(|text| !text.trim().is_empty());
    let text = texts.collect::<Vec<_>>().join("\n\n");
    (!text.is_empty()).then(|| Answer {
        text,
        tool_calls: Vec::new(),
        usage: usage_of(steps),
        reported_prompt_tokens: None,
        raw_message: String::new(),
        finish: Finish::Stop,
    })
}

/// The tool of the last step whose failed call ends the run.
#[must_use]
pub(super) fn failed_tool<'a>(steps: &'a [ModelStep], stop_after: &[String]) -> Option<&'a str> {
    let last = steps.last()?;
    let mut calls = last.answer.tool_calls.iter().zip(last.results.as_ref()?);
    let failed = calls.find(|(call, result)| result.is_error && is_among(stop_after, &call.name));
    failed.map(|(call, _)| call.name.as_str())
}

/// Whether a tool is one of these.
pub(super) fn is_among(tools: &[String], tool: &str) -> bool {
    tools.iter().any(|named| names(named, tool))
}

/// The calls of a step as results for the model; `None` until all are over.
pub(super) fn results_of(calls: &[StoredCall]) -> Option<Vec<ToolResult>> {
    let result = |call: &StoredCall| {
        call.state.is_over().then(|| ToolResult {
            call_id: call.call_id.clone(),
            content: call.result.clone().unwrap_or_default(),
            is_error: call.state != CallState::Done,
            images: Vec::new(),
        })
    };
    calls.iter().map(result).collect()
}

fn finish_name(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::Length => "length",
        Finish::ContentFilter => "content_filter",
        Finish::Other => "other",
    }
}

fn finish_of(name: &str) -> Finish {
    let all = [Finish::Stop, Finish::Length, Finish::ContentFilter];
    all.into_iter()
        .find(|finish| finish_name(*finish) == name)
        .unwrap_or(Finish::Other)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;
    use vocative_core::ids::ToolCallId;
    use vocative_core::tool_call::{CallRule, CallState};
    use vocative_store::NewId as _;

    fn asked(number: u32) -> ModelStep {
        ModelStep {
            number,
            model: "main".to_owned(),
            answer: Answer {
                text: String::new(),
                tool_calls: vec![ToolCall {
                    id: "call_1".to_owned(),
                    name: "search".to_owned(),
                    arguments: json!({"query": "x"}),
                }],
                usage: Usage {
                    prompt_tokens: 7,
                    cache_read_tokens: 4,
                    cache_write_tokens: 1,
                    completion_tokens: 2,
                },
                reported_prompt_tokens: None,
                raw_message: "{}".to_owned(),
                finish: Finish::Length,
            },
            results: None,
            ends_calls: false,
        }
    }

    fn complete(number: u32) -> ModelStep {
        ModelStep {
            results: Some(vec![ToolResult {
                call_id: "call_1".to_owned(),
                content: "found".to_owned(),
                is_error: false,
                images: Vec::new(),
            }]),
            ..asked(number)
        }
    }

    fn answered(number: u32) -> ModelStep {
        let mut step = asked(number);
        step.answer.tool_calls.clear();
        step.answer.text = "hello".to_owned();
        step
    }

    /// The row of a step's call.
    fn called(step: u32, state: CallState) -> StoredCall {
        StoredCall {
            id: ToolCallId::generate(),
            step,
            n: 0,
            call_id: "call_1".to_owned(),
            tool: "search".to_owned(),
            arguments: r#"{"query":"x"}"#.to_owned(),
            digest: [0; 32],
            rule: CallRule::Repeatable,
            state,
            refusal: None,
            attempts: 1,
            result: state.is_over().then(|| "found".to_owned()),
            started_at_ms: None,
            finished_at_ms: None,
        }
    }

    #[test]
    fn recorded_steps_are_replayed_whole_up_to_the_first_that_can_not_be() {
        let (first, second, third) = (complete(1), complete(2), answered(3));
        let cases: [(&[ModelStep], &[ModelStep]); 7] = [
            (
                &[first.clone(), second.clone(), third.clone()],
                &[first.clone(), second.clone(), third.clone()],
            ),
            (&[first.clone(), asked(2)], &[first.clone(), asked(2)]),
            (&[asked(1), answered(2)], &[asked(1)]),
            (&[second.clone(), third], &[]),
            // The first answer was to be repaired.
            (&[answered(1), answered(2)], &[answered(1), answered(2)]),
            (&[first.clone(), answered(3)], &[first]),
            (&[], &[]),
        ];
        for (steps, expected) in cases {
            let stored: Vec<String> = steps.iter().map(record).collect();
            let done = steps.iter().filter(|step| step.results.is_some());
            let calls: Vec<StoredCall> = done
                .map(|step| called(step.number, CallState::Done))
                .collect();
            assert_eq!(replay(&stored, &calls), expected);
        }
    }

    #[test]
    fn a_step_is_complete_when_all_its_calls_are_over() {
        let stored = [record(&asked(1))];
        for state in CallState::ALL {
            let replayed = replay(&stored, &[called(1, state)]);
            assert_eq!(replayed[0].results.is_some(), state.is_over(), "{state:?}");
        }
        let refused = StoredCall {
            refusal: Some(Refusal::Circling),
            ..called(1, CallState::Denied)
        };
        let replayed = replay(&stored, &[refused]);
        assert!(replayed[0].ends_calls);
        let result = &replayed[0].results.as_ref().unwrap()[0];
        assert!(result.is_error);
    }

    #[test]
    fn version_2_has_its_results_itself() {
        let second = r#"{"version":2,"number":1,"text":"","finish":"length","prompt_tokens":7,"cache_read_tokens":4,
            "cache_write_tokens":1,"completion_tokens":2,"message":"{}",
            "calls":[{"id":"call_1","name":"search","arguments":{"query":"x"}}],
            "results":[{"call_id":"call_1","content":"found","is_error":false}]}"#;
        let mut expected = complete(1);
        expected.model.clear();
        assert_eq!(replay(&[second.to_owned()], &[]), [expected]);
    }

    #[test]
    fn version_1_is_an_answer_and_an_unknown_version_is_not_replayed() {
        let first = r#"{"version":1,"text":"hello","finish":"length","prompt_tokens":7,
                        "completion_tokens":2,"message":"{}"}"#;
        let mut expected = answered(1);
        expected.model.clear();
        expected.answer.usage.cache_read_tokens = 0;
        expected.answer.usage.cache_write_tokens = 0;
        assert_eq!(replay(&[first.to_owned()], &[]), [expected]);
        let fourth = record(&answered(1)).replace("\"version\":3", "\"version\":4");
        for stored in [fourth, "not json".to_owned()] {
            assert_eq!(replay(&[stored], &[]), []);
        }
    }

    #[test]
    fn a_tool_whose_text_is_the_answer_ends_the_steps() {
        let with = |content: &str, is_error| {
            let mut step = complete(1);
            let result = &mut step.results.as_mut().unwrap()[0];
            (result.content, result.is_error) = (content.to_owned(), is_error);
            step
        };
        let stop = ["search".to_owned()];
        let text = |step: &ModelStep, stop: &[String]| {
            answer_by_tool(std::slice::from_ref(step), stop).map(|answer| answer.text)
        };
        assert_eq!(text(&with("found", false), &stop).as_deref(), Some("found"));
        assert_eq!(text(&with("found", false), &["sea__*".to_owned()]), None);
        for silent in [with("found", true), with(" \n", false), asked(1)] {
            assert_eq!(text(&silent, &stop), None);
        }
        let answer = answer_by_tool(&[complete(1), complete(2)], &stop).unwrap();
        assert_eq!(answer.usage.prompt_tokens, 14);
        assert_eq!(answer.tool_calls, []);
    }

    #[test]
    fn the_answer_carries_the_tokens_of_all_steps() {
        let answer = answer_of(&[complete(1), complete(2), answered(3)]);
        let expected = Usage {
            prompt_tokens: 21,
            cache_read_tokens: 12,
            cache_write_tokens: 3,
            completion_tokens: 6,
        };
        assert_eq!(answer.map(|answer| answer.usage), Some(expected));
        assert_eq!(answer_of(&[complete(1)]), None);
        assert_eq!(answer_of(&[]), None);
    }
}
