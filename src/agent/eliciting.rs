//! A call whose tool server asks people before it goes on: each form is a question in the room, the run waits as it
//! does for any question, and the call goes on with the answers.

use serde_json::Value;
use vocative_contract::crash;
use vocative_core::eliciting::{AskedForm, FormEnded, InputRound, NextInput, ROUNDS_MAX};
use vocative_core::ids::TurnId;
use vocative_core::questioning::{QuestionState, StoredQuestion};
use vocative_core::tool_call::{CallRule, CallState, Refusal, StoredCall};
use vocative_store::StoreError;
use vocative_store::contract::{GoneOn, StepOutcome};

use crate::agent::calling::{CalledTool, Calls, over, refused};
use crate::agent::questioning::Questioned;
use crate::agent::stepping::Stepping;
use crate::llm::read_arguments;
use crate::tools::{InputGiven, QuestionTo, QuestionWish, ToolOutcome};

/// What is known of a round.
struct RoundFacts {
    round: InputRound,
    /// Its questions in their order: the index of the form, and how the question ended.
    questions: Vec<(usize, FormEnded)>,
    /// The turns that answer them.
    answers: Vec<TurnId>,
}

impl Stepping<'_> {
    /// The result of a call whose server asked people in an earlier attempt; `None` if it asked nobody.
    pub(super) async fn asked_by_server(
        &self,
        call: &StoredCall,
        is_behind_open: bool,
    ) -> Result<Option<Result<CalledTool, Calls>>, StoreError> {
        if call.attempts == 0 {
            return Ok(None);
        }
        let asked = self.store.forms_of_call(call.id).await?;
        let Some(asked) = RoundFacts::newest(&asked) else {
            return Ok(None);
        };
        // The call went on and was interrupted: its rule decides what follows.
        if call.state == CallState::Running && call.rule != CallRule::Repeatable {
            return Ok(None);
        }
        if is_behind_open && call.rule != CallRule::Repeatable {
            return Ok(Some(Err(Calls::Wait)));
        }
        Ok(Some(self.with_input(call, asked).await?))
    }

    /// Makes a call: returns its result, or waits for answers if its server asks people.
    pub(super) async fn made(
        &self,
        call: &StoredCall,
        arguments: Value,
    ) -> Result<Result<CalledTool, Calls>, StoreError> {
        let mut called = self.called(call, arguments, None).await;
        match called.outcome.input.take() {
            Some(round) => self.with_input(call, RoundFacts::nothing(*round)).await,
            None => Ok(Ok(called)),
        }
    }

    /// Asks the open questions of a round, or goes on with the call, until it waits or is over.
    async fn with_input(
        &self,
        call: &StoredCall,
        mut asked: RoundFacts,
    ) -> Result<Result<CalledTool, Calls>, StoreError> {
        let language = self.asked_in.language;
        loop {
            if asked.round.number > ROUNDS_MAX {
                return Ok(Ok(over(ToolOutcome::failed(format!(
                    "the server {} asked people {ROUNDS_MAX} times and does not go on",
                    asked.round.server
                )))));
            }
            let answers = match asked.round.next(&asked.questions, language) {
                NextInput::Wait => return Ok(Err(Calls::Wait)),
                NextInput::GoOn(answers) => answers,
                NextInput::Ask(form, problem) => {
                    match self
                        .ask_form(call, &asked, form, problem.as_deref())
                        .await?
                    {
                        Questioned::Waits => return Ok(Err(Calls::Wait)),
                        Questioned::Not(_) => asked.round.cancelled(),
                        Questioned::Stale => {
                            return Ok(Err(Calls::BrokenOff(StepOutcome::Stale)));
                        }
                        Questioned::SourceGone => {
                            return Ok(Err(Calls::BrokenOff(StepOutcome::SourceGone)));
                        }
                    }
                }
            };
            let arguments =
                read_arguments(&call.arguments).unwrap_or_else(|_| call.arguments.clone().into());
            // The tool has changed since the server asked.
            if self.toolbox.digest(&call.tool, &arguments) != call.digest {
                return Ok(Ok(refused(Refusal::ToolChanged, self)));
            }
            let (run, token) = (self.claimed.run.id, self.claimed.token);
            crash::point("input.before-go-on");
            match self.store.go_on_with_call(run, token, call.id).await? {
                GoneOn::Begun => crash::point("input.after-go-on"),
                GoneOn::Stale => return Ok(Err(Calls::BrokenOff(StepOutcome::Stale))),
                GoneOn::SourceGone => return Ok(Err(Calls::BrokenOff(StepOutcome::SourceGone))),
            }
            let given = InputGiven {
                round: asked.round.clone(),
                answers,
            };
            let mut called = self.called(call, arguments, Some(given)).await;
            match called.outcome.input.take() {
                // The result may repeat the answers, and is deleted with them.
                None => {
                    called.outcome.sources.append(&mut asked.answers);
                    return Ok(Ok(called));
                }
                Some(round) => {
                    asked.round = *round;
                    asked.questions.clear();
                }
            }
        }
    }

    /// Asks a form's question of the people who asked for the run.
    async fn ask_form(
        &self,
        call: &StoredCall,
        asked: &RoundFacts,
        form: usize,
        problem: Option<&str>,
    ) -> Result<Questioned, StoreError> {
        let language = self.asked_in.language;
        let text = match asked.round.question(form, problem, language) {
            Ok(text) => text,
            Err(refused) => return Ok(Questioned::Not(ToolOutcome::failed(refused.to_string()))),
        };
        let wish = QuestionWish {
            text,
            options: asked.round.forms[form].1.options(language),
            to: QuestionTo::Requester,
        };
        let asked_form = AskedForm {
            round: asked.round.clone(),
            form,
        };
        crash::point("input.before-ask");
        self.ask_person(call, wish, Some(asked_form)).await
    }
}

impl RoundFacts {
    /// A round that begins.
    fn nothing(round: InputRound) -> Self {
        Self {
            round,
            questions: Vec::new(),
            answers: Vec::new(),
        }
    }

    /// The newest round of a call, by the questions that it asked; `None` if it asked none.
    fn newest(asked: &[(StoredQuestion, AskedForm)]) -> Option<Self> {
        let round = asked.last()?.1.round.clone();
        let of_round = asked
            .iter()
            .filter(|(_, it)| it.round.number == round.number);
        let questions = of_round.map(|(question, asked)| (asked.form, ended(question)));
        let answers = asked.iter().filter_map(|(it, _)| it.answer.as_ref());
        Some(Self {
            questions: questions.collect(),
            answers: answers.map(|answer| answer.turn).collect(),
            round,
        })
    }
}

fn ended(question: &StoredQuestion) -> FormEnded {
    let answer = question.answer.as_ref().and_then(|it| it.text.clone());
    match (question.state, answer) {
        (QuestionState::Open, _) => FormEnded::Open,
        (QuestionState::Answered, Some(text)) => FormEnded::Said(text),
        _ => FormEnded::Unanswered,
    }
}
