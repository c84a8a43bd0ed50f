//! The simulated model: answers its run's questions, late, wrongly or after a look into the past. A prompt does not say
//! which of its questions are the run's own, so the store is asked; and the prompt is read for what is missing and for
//! what does not belong there.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::life::Life;
use super::networks::{ModelRole, faults_of_request, word};
use super::plans::task_of;
use super::words::{SimWord, answer, said as said_in, words};
use super::world::World;
use vocative::llm::{Answer, Listener, Model, ModelError, Request, ToolCall, ToolChoice};
use vocative_core::ids::RunId;
use vocative_core::prompting::PromptRole;
use vocative_core::run::{Finish, RunState, Usage};
use vocative_store::Store;
use vocative_store::contract::WaitingFor;

/// More runs than any simulation has at once.
const RUNS_MAX: usize = 1_000;
/// The most pieces of a streamed answer.
const PIECES_MAX: u64 = 8;

/// The model.
pub(super) struct SimModel {
    pub(super) life: Arc<Life>,
    pub(super) store: Store,
    pub(super) role: ModelRole,
}

impl Model for SimModel {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn complete<'a>(
        &'a self,
        request: &'a Request<'a>,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        Box::pin(async move {
            let life = &self.life;
            let own = self.own_run(request).await;
            if let Some((run, _)) = own {
                self.judge(run).await;
            }
            let own = own.map(|(_, asked)| asked);
            life.step("before the model is asked").await;
            let think_ms = life.world(|world| match world.dice.below(20) {
                0 if world.has_faults() => world.dice.ms(8_000, 90_000),
                _ => world.dice.ms(100, 3_000),
            });
            life.sleep(think_ms).await;
            let answer = life.world(|world| respond(world, request, own, &self.role));
            let answer = match (answer, request.listener) {
                (Ok(answer), Some(listener)) => self.write(answer, listener).await,
                (answer, _) => answer,
            };
            life.step("after the model answered").await;
            life.tire();
            answer
        })
    }
}

impl SimModel {
    /// Writes an answer piece by piece; may break off in the middle.
    async fn write(&self, answer: Answer, listener: &dyn Listener) -> Result<Answer, ModelError> {
        let life = &self.life;
        let chars: Vec<char> = answer.text.chars().collect();
        let pieces = 1 + life.world(|world| world.dice.below(PIECES_MAX));
        let length = chars.len().div_ceil(usize::try_from(pieces).unwrap_or(1));
        for piece in chars.chunks(length.max(1)) {
            listener.text(&piece.iter().collect::<String>());
            life.linger(50, 1_500).await;
            life.step("while the model writes").await;
            if life.world(|world| world.fails(15)) {
                life.world(|world| world.note(format_args!("the model breaks off")));
                listener.restart();
                let cause = "the stream broke".to_owned();
                return Err(ModelError::Unavailable { cause });
            }
        }
        Ok(answer)
    }

    /// Judges a request in a run of a network.
    async fn judge(&self, run: RunId) {
        let Some(team) = self.role.team() else { return };
        let course = self.store.network_course(run).await;
        let steps = self.store.steps(run).await;
        let (Ok(course), Ok(steps)) = (course, steps) else {
            return;
        };
        let faults = self
            .life
            .world(|world| faults_of_request(world, &self.role, team, &course, steps.len()));
        if faults.is_empty() {
            return;
        }
        // Between the looks, an edit may have replaced the run by another one.
        let queued = self.store.queued_runs(RUNS_MAX, self.life.now_ms()).await;
        let now = queued.unwrap_or_default().into_iter();
        let is_stopped = now
            .filter(|it| it.run.id == run)
            .any(|it| it.waiting_for == WaitingFor::Stop);
        let state = self.store.run(run).await.map(|run| run.state);
        if !is_stopped && !matches!(state, Ok(RunState::Cancelled)) {
            self.life.world(|world| {
                for fault in faults {
                    complain(world, fault);
                }
            });
        }
    }

    /// The run whose trigger is last in the prompt, and what it asks; `None` where no active run asks anything in it.
    async fn own_run(&self, request: &Request<'_>) -> Option<(RunId, Vec<SimWord>)> {
        let last = request.messages.last()?;
        let last = words(&last.content).last()?;
        let now_ms = self.life.now_ms();
        for queued in self.store.queued_runs(RUNS_MAX, now_ms).await.ok()? {
            let mut asked = Vec::new();
            for trigger in &queued.run.triggers {
                let turn = self.store.turn(*trigger).await.ok()?;
                asked.extend(words(&turn.content).filter(|word| word.is_question));
            }
            let is_at_work = matches!(queued.waiting_for, WaitingFor::Answer { .. });
            if is_at_work && asked.contains(&last) {
                return Some((queued.run.id, asked));
            }
        }
        None
    }
}

fn respond(
    world: &mut World,
    request: &Request<'_>,
    own: Option<Vec<SimWord>>,
    role: &ModelRole,
) -> Result<Answer, ModelError> {
    note_strangers(world, request);
    if world.fails(120) {
        world.note(format_args!("the model fails"));
        return Err(match world.dice.below(3) {
            0 => ModelError::RetryAfter { wait_ms: None },
            1 => ModelError::Empty,
            _ => ModelError::Unavailable {
                cause: "503".to_owned(),
            },
        });
    }
    if let Some(said) = word(world, request, role) {
        return said;
    }
    let is_alone = role.team().is_none();
    let may_call = is_alone && request.tool_choice == ToolChoice::Auto && !request.tools.is_empty();
    if may_call && request.exchanges.is_empty() && world.dice.hits(150) {
        world.note(format_args!("the model wants to search"));
        for word in own.unwrap_or_else(|| last_questions(request)) {
            let edits = edits_in(request, word);
            world.searched.insert((word, edits));
        }
        let call = ToolCall {
            id: "call_1".to_owned(),
            name: "conversation_search".to_owned(),
            arguments: json!({"query": ""}),
        };
        return Ok(said(String::new(), vec![call]));
    }
    let planned = plans_of(world, request, own.as_deref().unwrap_or_default());
    if may_call && !planned.is_empty() {
        world.note(format_args!(
            "the model wants to plan {} reminders",
            planned.len()
        ));
        return Ok(said(String::new(), planned));
    }
    // Another worker has the run by now: this answer must not be written.
    let asked = own.unwrap_or_else(|| last_questions(request));
    let prompt: Vec<SimWord> = asked_in(request).collect();
    if let Some(missing) = asked.iter().find(|word| !prompt.contains(word)) {
        complain(world, format!("{missing} is not in the prompt of its run"));
    }
    if let Some(old) = older_than_afresh(world, &asked, &prompt) {
        complain(world, format!("{old} was in a prompt after a fresh start"));
    }
    if asked.is_empty() {
        complain(world, "the model was asked nothing".to_owned());
    }
    let found: Vec<SimWord> = found_in(request).collect();
    let mut answers = String::new();
    for word in &asked {
        let edits = edits_in(request, *word);
        answers.push_str(&answer_to(world, *word, edits));
        let found = found.iter().map(|found| (*word, edits, *found));
        world.found.extend(found);
    }
    let names: Vec<String> = asked.iter().map(ToString::to_string).collect();
    world.note(format_args!("the model answers {}", names.join(" ")));
    Ok(said(answers, Vec::new()))
}

/// The calls that plan the reminders its questions ask for, without those made already.
fn plans_of(world: &World, request: &Request<'_>, own: &[SimWord]) -> Vec<ToolCall> {
    let exchanges = request.exchanges.iter();
    let called = exchanges.flat_map(|exchange| &exchange.calls);
    let called: Vec<String> = called.map(|call| call.arguments.to_string()).collect();
    let is_open = |word: &&SimWord| {
        let task = task_of(**word);
        world.plans.is_one(**word) && !called.iter().any(|arguments| arguments.contains(&task))
    };
    let call = |(n, word): (usize, &SimWord)| ToolCall {
        id: format!("plan_{n}"),
        name: "schedule".to_owned(),
        arguments: json!({"when": "in 1m", "task": task_of(*word)}),
    };
    own.iter().filter(is_open).enumerate().map(call).collect()
}

/// A question in a prompt that is older than a fresh start which came before the prompt's own questions.
fn older_than_afresh(world: &World, asked: &[SimWord], prompt: &[SimWord]) -> Option<SimWord> {
    let since = |word: &SimWord| {
        let question = world.questions.iter().find(|it| it.word == *word)?;
        question.afresh_since
    };
    // Its own questions are always read; the oldest of them decides what else may be.
    let all: Option<Vec<usize>> = asked.iter().map(since).collect();
    let since = all?.into_iter().min()?;
    let is_old = |word: &&SimWord| word.number < since && !asked.contains(word);
    prompt.iter().find(is_old).copied()
}

pub(super) fn said(text: String, tool_calls: Vec<ToolCall>) -> Answer {
    let finish = if tool_calls.is_empty() {
        Finish::Stop
    } else {
        Finish::Other
    };
    Answer {
        raw_message: json!({"text": text, "version": 1}).to_string(),
        text,
        tool_calls,
        usage: Usage::default(),
        reported_prompt_tokens: None,
        finish,
    }
}

/// How often a question was edited by the time of its prompt.
fn edits_in(request: &Request<'_>, word: SimWord) -> usize {
    let texts = request.messages.iter().map(|message| &message.content);
    let asked = texts.flat_map(|text| said_in(text));
    let asked = asked.filter(|said| said.word == word && said.line.is_none());
    asked.last().map_or(0, |said| said.edits)
}

/// The answer to a question as its prompt has it, which may differ from its present text.
fn answer_to(world: &World, word: SimWord, edits: usize) -> String {
    let question = world.questions.iter().find(|asked| asked.word == word);
    let lines = question.map_or(1, |question| question.lines_after(edits));
    answer(word, edits, lines)
}

pub(super) fn complain(world: &mut World, what: String) {
    world.note(format_args!("WRONG  {what}"));
    world.wrong.push(what);
}

/// The questions that people ask in the prompt. Another agent's answers are in the prompt as a person's words, too.
fn asked_in(request: &Request<'_>) -> impl Iterator<Item = SimWord> {
    let messages = request.messages.iter();
    let people = messages.filter(|message| message.role == PromptRole::User);
    let asked = people.flat_map(|message| said_in(&message.content));
    let asked = asked.filter(|said| said.word.is_question && said.line.is_none());
    asked.map(|said| said.word)
}

fn last_questions(request: &Request<'_>) -> Vec<SimWord> {
    asked_in(request).last().into_iter().collect()
}

/// What the tools found: the words of all texts in their results.
fn found_in(request: &Request<'_>) -> impl Iterator<Item = SimWord> {
    let exchanges = request.exchanges.iter();
    let results = exchanges.flat_map(|exchange| &exchange.results);
    let texts = results.flat_map(|result| match serde_json::from_str(&result.content) {
        Ok(found) => texts_of(&found),
        Err(_) => vec![result.content.clone()],
    });
    texts.flat_map(|text| words(&text).collect::<Vec<_>>())
}

fn texts_of(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(values) => values.iter().flat_map(texts_of).collect(),
        Value::Object(fields) => fields.values().flat_map(texts_of).collect(),
        _ => Vec::new(),
    }
}

/// Notes words of another room in a request: what was said in one room must not come up in another.
fn note_strangers(world: &mut World, request: &Request<'_>) {
    let said = request.messages.iter().map(|message| &message.content);
    let said = said.flat_map(|text| words(text));
    let all: Vec<SimWord> = said.chain(found_in(request)).collect();
    let last = request.messages.last();
    let own = last.and_then(|message| words(&message.content).last());
    let Some(own) = own else { return };
    if let Some(stranger) = all.iter().find(|word| word.room != own.room) {
        complain(
            world,
            format!("{stranger} was in a prompt of room {}", own.room),
        );
    }
}
