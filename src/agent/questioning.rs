//! A call that asks a person: its post is made and committed with the row that says that the call waits, and the
//! answer is its result.

use vocative_contract::card::Card;
use vocative_contract::outbound::Target;

use crate::agent::stepping::Stepping;
use crate::tools::{QuestionTo, QuestionWish, ToolOutcome};
use vocative_core::approving::Requester;
use vocative_core::eliciting::AskedForm;
use vocative_core::ids::{ParticipantId, QuestionId};
use vocative_core::questioning::{
    QUESTIONS_MAX_RUN, QuestionCard, StoredQuestion, answered_card, cancelled_card, expired_card,
    fitted_question, question_card, result_text,
};
use vocative_core::tool_call::{CallState, StoredCall};
use vocative_store::contract::{NewQuestion, QuestionAsked};
use vocative_store::{NewId as _, StoreError};

/// The most names that a model is given.
const NAMES_MAX: usize = 10;

/// What became of a question that is to be asked.
pub(super) enum Questioned {
    /// The run waits for its answer.
    Waits,
    /// It is not asked; the model is told why.
    Not(ToolOutcome),
    /// The lease is no longer held.
    Stale,
    /// Its step was forgotten.
    SourceGone,
}

/// Whom a question is for.
struct QuestionedPerson {
    /// `None` = everybody who asked for the run, or the experts.
    id: Option<ParticipantId>,
    /// Their name as people see it.
    name: String,
    /// Where they are asked.
    place: Target,
    is_for_experts: bool,
}

impl Stepping<'_> {
    /// Asks a person the question of a call.
    pub(super) async fn ask_person(
        &self,
        call: &StoredCall,
        wish: QuestionWish,
        form: Option<AskedForm>,
    ) -> Result<Questioned, StoreError> {
        let asked = match self.whom_to_ask(&wish).await? {
            Ok(asked) => asked,
            Err(why) => return Ok(Questioned::Not(ToolOutcome::failed(why))),
        };
        let now_ms = (self.clock)();
        let expires_at_ms = now_ms.saturating_add(self.asked_in.question_expires_ms);
        let id = QuestionId::generate();
        let card = QuestionCard {
            id,
            text: &wish.text,
            options: &wish.options,
            asked: &asked.name,
            expires_at_ms,
            language: self.asked_in.language,
        };
        let part =
            |card: &Card| fitted_question(card, &|card| self.asked_in.renderer.render_card(card));
        let new = NewQuestion {
            id,
            run: self.claimed.run.id,
            token: self.claimed.token,
            call: call.id,
            person: self.claimed.asker.person,
            asked: asked.id,
            place: asked.place.clone(),
            is_for_experts: asked.is_for_experts,
            card: part(&question_card(&card)),
            expired: part(&expired_card(&card)),
            cancelled: part(&cancelled_card(&card)),
            replied: part(&answered_card(&card, None, None)),
            text: wish.text.clone(),
            options: wish.options.clone(),
            form,
            expires_at_ms,
            now_ms,
        };
        Ok(match self.store.ask_question(new).await? {
            QuestionAsked::Waits => Questioned::Waits,
            QuestionAsked::Stale => Questioned::Stale,
            QuestionAsked::SourceGone => Questioned::SourceGone,
            QuestionAsked::RunLimit => Questioned::Not(ToolOutcome::denied(format!(
                "not asked: at most {QUESTIONS_MAX_RUN} questions are asked for one request; answer with what you have"
            ))),
            QuestionAsked::TooManyOpen => Questioned::Not(ToolOutcome::denied(
                "not asked: too many questions wait here for an answer; say so",
            )),
        })
    }

    /// Whom a question is for and where, or why it can't be asked.
    async fn whom_to_ask(
        &self,
        wish: &QuestionWish,
    ) -> Result<Result<QuestionedPerson, String>, StoreError> {
        let here = |id, name| QuestionedPerson {
            id,
            name,
            place: self.asked_in.place.clone(),
            is_for_experts: false,
        };
        let name = match &wish.to {
            QuestionTo::Experts => {
                return Ok(match self.asked_in.experts {
                    Some(place) => Ok(QuestionedPerson {
                        id: None,
                        name: self.asked_in.language.question_experts(),
                        place: place.clone(),
                        is_for_experts: true,
                    }),
                    None => Err("not asked: there is no room of experts here".to_owned()),
                });
            }
            QuestionTo::Requester => {
                let requesters = self.store.run_requesters(self.claimed.run.id).await?;
                let names: Vec<&str> = requesters.iter().map(Requester::name).collect();
                return Ok(Ok(here(None, names.join(", "))));
            }
            QuestionTo::Person(name) => name,
        };
        let conversation = self.claimed.run.conversation;
        let found = self.store.people_called(conversation, name.clone()).await?;
        Ok(match found.as_slice() {
            [one] => Ok(here(Some(one.id), one.name.clone())),
            [] => Err(format!(
                "not asked: nobody who has said something here is called {name}; without `person` the one who asked you is asked"
            )),
            several => {
                let names = several.iter().take(NAMES_MAX).map(|it| it.name.as_str());
                let names = names.collect::<Vec<_>>().join(", ");
                Err(format!(
                    "not asked: several people here are called {name}: {names}"
                ))
            }
        })
    }
}

/// The result of a call that asked a question; `None` while the question is open.
pub(super) fn outcome_of(question: &StoredQuestion) -> Option<ToolOutcome> {
    let content = result_text(question)?;
    let answer = question.answer.iter();
    Some(ToolOutcome {
        state: CallState::Done,
        content,
        sources: answer
            .filter(|answer| answer.text.is_some())
            .map(|answer| answer.turn)
            .collect(),
        files: Vec::new(),
        input: None,
    })
}
