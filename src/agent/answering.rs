//! When the steps of a run are over, and what its answer is: the model's last message, a tool's text, or none, if no
//! answer has the required form.

use crate::agent::failing::Misshapen;
use crate::agent::step::{ModelStep, answer_by_tool, answer_of, failed_tool, usage_of};
use crate::agent::stepping::{Stepping, StepsEnd};
use crate::config::AnswerForm;
use crate::llm::Answer;
use vocative_core::run::Finish;

/// How often an answer is requested again because it does not have the required form.
const REPAIRS_MAX: u32 = 2;

impl Stepping<'_> {
    /// How the steps ended, if the last one is the answer.
    pub(super) fn answered(&self, steps: &[ModelStep]) -> Option<StepsEnd> {
        if let Some(tool) = failed_tool(steps, self.stop_after_failed) {
            return Some(StepsEnd::ToolFailed(tool.to_owned()));
        }
        if let Some(answer) = answer_by_tool(steps, self.stop_after) {
            return Some(StepsEnd::Answered(answer));
        }
        let answer = answer_of(steps)?;
        let usage = answer.usage;
        match in_form(self.form, answer) {
            Ok(answer) => Some(StepsEnd::Answered(answer)),
            Err(_) if answers_in(steps) <= REPAIRS_MAX => None,
            Err(_) => Some(StepsEnd::Misshapen(Misshapen {
                answers: answers_in(steps),
                usage,
            })),
        }
    }

    /// Whether the model may not be asked again. Requests to repair an answer are not limited by the number of steps.
    pub(super) fn is_used_up(&self, steps: &[ModelStep]) -> bool {
        if answer_of(steps).is_some() {
            return false;
        }
        // An answer was requested, and the model made calls instead.
        let is_asked_in_vain = steps.iter().rev().skip(1).any(|step| step.ends_calls);
        steps.len() >= self.max_steps as usize || is_asked_in_vain || answers_in(steps) > 0
    }

    /// What the model is told of an answer that does not have the required form.
    pub(super) fn to_mend(&self, step: &ModelStep) -> String {
        let answer = &step.answer;
        let form = self.form.filter(|_| answer.tool_calls.is_empty());
        match form.map(|form| form.read(&answer.text)) {
            None => String::new(),
            // The form may have been changed meanwhile.
            Some(Ok(_)) => "Answer again.".to_owned(),
            Some(Err(_)) if answer.finish == Finish::Length => {
                "Your answer was cut because it was too long. Answer again, with less, as one JSON value of the schema \
                 and nothing else."
                    .to_owned()
            }
            Some(Err(wrong)) => format!(
                "Your answer is not what the schema says: {wrong}. Answer again, as one JSON value of the schema and \
                 nothing else."
            ),
        }
    }
}

/// Checks that an answer has the required form.
///
/// # Errors
/// What is wrong with it.
pub(super) fn in_form(form: Option<&AnswerForm>, answer: Answer) -> Result<Answer, String> {
    match form {
        None => Ok(answer),
        Some(form) => form
            .read(&answer.text)
            .map(|text| Answer { text, ..answer }),
    }
}

/// How often the model answered instead of calling tools.
fn answers_in(steps: &[ModelStep]) -> u32 {
    let answers = steps
        .iter()
        .filter(|step| step.answer.tool_calls.is_empty());
    u32::try_from(answers.count()).unwrap_or(u32::MAX)
}

/// Uses the last text of the model as the answer, if there is one; where answers must have a form, there is no
/// answer.
pub(super) fn used_up(steps: &[ModelStep], form: Option<&AnswerForm>) -> StepsEnd {
    let usage = usage_of(steps);
    let mut said = steps.iter().rev().filter(|_| form.is_none());
    let said = said.find(|step| !step.answer.text.trim().is_empty());
    match said {
        Some(step) => StepsEnd::Answered(Answer {
            tool_calls: Vec::new(),
            usage,
            ..step.answer.clone()
        }),
        None => StepsEnd::UsedUp(usage),
    }
}
