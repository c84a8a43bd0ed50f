//! A program's question, on its way from a request to a run: its conversation, idempotency key and limits.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use sha2::{Digest as _, Sha256};

use super::ApiState;
use super::callers::ApiCaller;
use super::refusal::ApiRefusal;
use crate::capture::inbound::ChannelIntake;
use crate::capture::requests::{NotedMessage, ProgramMessage, QuestionTaken};
use crate::config::{ApiAsking, ApiOverride};
use vocative_contract::markup::neutral_text;
use vocative_core::given::Given;
use vocative_core::history::FORKS_DEEP_MAX;
use vocative_core::ids::{AgentName, ConversationId, Seq};
use vocative_core::place::Conversation;
use vocative_store::NewId as _;
use vocative_store::contract::{AskedRun, CapturedTurn, Forking, NewRequest, Sha256Digest};

/// The largest body of a question, in bytes.
pub(super) const QUESTION_MAX_BYTES: usize = 512 << 10;
/// The most earlier lines that a request may give.
pub(super) const LINES_MAX: usize = 256;
/// The longest text about the conversation, and the longest further instructions, in bytes.
const CONTEXT_MAX_BYTES: usize = 16 << 10;
/// The longest name of a program's user, in characters.
const USER_MAX_CHARS: usize = 256;
/// The most tools that a request may name.
const TOOLS_MAX: usize = 64;
/// The longest name of a conversation, in characters.
const NAME_MAX_CHARS: usize = 64;
/// The longest idempotency key, in characters.
const KEY_MAX_CHARS: usize = 255;

/// The header with a request's idempotency key.
const KEY_HEADER: &str = "idempotency-key";

/// What is asked.
#[derive(Debug, Default)]
pub(super) struct ProgramQuestion {
    /// The agent; if none is named, the first that the token may ask.
    pub(super) agent: Option<String>,
    /// The id or the name of the conversation; if none is named, a new one.
    pub(super) conversation: Option<String>,
    /// Which of the agent's models answers; if none is named, the agent's own.
    pub(super) model: Option<String>,
    /// The text of the question.
    pub(super) text: String,
    /// What the program gives with the question.
    pub(super) given: Given,
}

/// A question that is captured.
#[derive(Clone, Debug)]
pub(super) struct AskedQuestion {
    pub(super) run: AskedRun,
    pub(super) agent: AgentName,
    /// Whether it was asked before, with the same idempotency key.
    pub(super) is_known: bool,
}

/// Why a question is refused. Each form of the API words it differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotAsked {
    /// The agent is none that the token may ask.
    NoAgent,
    /// Something else was asked with the same idempotency key.
    OtherBody,
    /// The question was asked before, and erased since.
    Gone,
    /// A limit is met.
    Limit,
    /// Anything else.
    Other,
}

impl ApiState {
    /// The intake of the API's channel.
    pub(super) fn questions(&self) -> Result<Arc<ChannelIntake>, ApiRefusal> {
        let running = self.operations.running.as_ref();
        running.and_then(|it| (it.questions)()).ok_or_else(|| {
            ApiRefusal::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "questions can't be taken yet",
                "ask again in a moment",
            )
        })
    }

    /// Captures a question. `body` is the request as it came.
    pub(super) async fn ask(
        &self,
        caller: &ApiCaller,
        headers: &HeaderMap,
        body: &[u8],
        wish: ProgramQuestion,
    ) -> Result<AskedQuestion, (NotAsked, ApiRefusal)> {
        let other = |refusal| (NotAsked::Other, refusal);
        let asking = caller.asking().map_err(other)?;
        let agent = chosen(asking, wish.agent.as_deref())
            .map_err(|refusal| (NotAsked::NoAgent, refusal))?;
        let key = key_of(headers).map_err(other)?;
        let intake = self.questions().map_err(other)?;
        let text_max_bytes = intake.policy().limits.inbound_text_max_bytes;
        let (text, given) =
            checked(&wish.text, wish.given, asking, text_max_bytes).map_err(other)?;
        let place = self.place(caller, asking, wish.conversation.as_deref());
        let (chat, fork) = place.await.map_err(other)?;
        let question = ProgramMessage {
            person: asking.person.clone(),
            chat,
            fork,
            message_id: ConversationId::generate().to_string(),
            text,
        };
        let request = NewRequest {
            key,
            body: Sha256::digest(body).into(),
            agent: agent.clone(),
            model: wish.model,
            given,
        };
        let now_ms = (self.operations.clock)();
        let taken = intake.take_question(&question, request, now_ms).await;
        let asked = |run, is_known| AskedQuestion {
            run,
            agent,
            is_known,
        };
        match taken.map_err(|cause| other(cause.into()))? {
            QuestionTaken::Asked(run) => Ok(asked(run, false)),
            QuestionTaken::Known(run) => Ok(asked(run, true)),
            refused => Err(refusal_of(&refused)),
        }
    }

    /// Captures something that is said to an agent without asking it. Returns its turn, and whether it was known.
    pub(super) async fn note(
        &self,
        caller: &ApiCaller,
        headers: &HeaderMap,
        wish: ProgramQuestion,
    ) -> Result<(CapturedTurn, bool), ApiRefusal> {
        let asking = caller.asking()?;
        let agent = chosen(asking, wish.agent.as_deref())?;
        let key = key_of(headers)?;
        let intake = self.questions()?;
        let text_max_bytes = intake.policy().limits.inbound_text_max_bytes;
        let (text, _) = checked(&wish.text, wish.given, asking, text_max_bytes)?;
        let place = self.place(caller, asking, wish.conversation.as_deref());
        let (chat, fork) = place.await?;
        let note = ProgramMessage {
            person: asking.person.clone(),
            chat,
            fork,
            message_id: note_id(key),
            text,
        };
        let now_ms = (self.operations.clock)();
        let refused = match intake.take_note(&note, agent, now_ms).await? {
            NotedMessage::Kept(turn) => return Ok((turn, false)),
            NotedMessage::Known(turn) => return Ok((turn, true)),
            NotedMessage::Gone => QuestionTaken::Gone,
            NotedMessage::NotServed => QuestionTaken::NotServed,
            NotedMessage::OtherWords => QuestionTaken::OtherBody,
        };
        Err(refusal_of(&refused).1)
    }

    /// Begins a conversation that goes on from a message of another one. Returns whether it was begun before.
    pub(super) async fn fork(
        &self,
        caller: &ApiCaller,
        headers: &HeaderMap,
        (of, at): (ConversationId, Seq),
    ) -> Result<(ConversationId, bool), ApiRefusal> {
        let asking = caller.asking()?;
        let of = self.own_conversation(caller, asking, of).await?;
        let key = format!("fork-{}", note_id(key_of(headers)?));
        let now_ms = (self.operations.clock)();
        let intake = self.questions()?;
        match intake.fork(of.id, at, key, now_ms).await? {
            Forking::Made(fork) => Ok((fork, false)),
            Forking::Known(fork) => Ok((fork, true)),
            Forking::Other => Err(refusal_of(&QuestionTaken::OtherBody).1),
            Forking::Open => Err(ApiRefusal::new(
                StatusCode::CONFLICT,
                "a question up to this message is not answered yet",
                "wait for the end of its run, or stop it; then fork",
            )),
            Forking::TooDeep => Err(ApiRefusal::new(
                StatusCode::CONFLICT,
                format!("more than {FORKS_DEEP_MAX} forks would be behind it"),
                "fork from an earlier course, or begin a conversation with history",
            )),
        }
    }

    /// Notes that the token's person has read a conversation up to a turn; up to where it is read.
    pub(super) async fn mark_read(
        &self,
        caller: &ApiCaller,
        (conversation, up_to): (ConversationId, Seq),
    ) -> Result<Seq, ApiRefusal> {
        let asking = caller.asking()?;
        let own = self.own_conversation(caller, asking, conversation).await?;
        Ok(self.questions()?.mark_read(own.id, up_to).await?)
    }

    /// A conversation in which the token's person may speak. To see everything is not to be allowed to speak
    /// everywhere.
    async fn own_conversation(
        &self,
        caller: &ApiCaller,
        asking: &ApiAsking,
        id: ConversationId,
    ) -> Result<Conversation, ApiRefusal> {
        let found = self.conversation_for(caller, id).await?;
        let of = found.platform_chat.split_once('/');
        if of.is_some_and(|(of, _)| of == asking.person) && self.is_of_api(&found) {
            return Ok(found);
        }
        Err(ApiRefusal::new(
            StatusCode::FORBIDDEN,
            "this conversation is not one of the token's person",
            "ask in a conversation of your own, or name none to begin one",
        ))
    }

    /// The chat of a conversation that is named, or of a new one, and which fork of it.
    async fn place(
        &self,
        caller: &ApiCaller,
        asking: &ApiAsking,
        named: Option<&str>,
    ) -> Result<(String, Option<String>), ApiRefusal> {
        let person = &asking.person;
        let Some(name) = named else {
            return Ok((format!("{person}/{}", ConversationId::generate()), None));
        };
        if let Ok(id) = name.parse::<ConversationId>() {
            let found = self.own_conversation(caller, asking, id).await?;
            return Ok((found.platform_chat, found.key.thread_or_topic));
        }
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let is_name = (1..=NAME_MAX_CHARS).contains(&name.len()) && name.chars().all(is_part);
        match is_name {
            true => Ok((format!("{person}/{name}"), None)),
            false => Err(ApiRefusal::wrong(
                format!(
                    "a conversation's name is 1 to {NAME_MAX_CHARS} of letters, digits, - _ and ."
                ),
                "name it so, send the id of one, or leave it out to begin a new one",
            )),
        }
    }
}

/// The id of a note: with an idempotency key, the same for the same request.
fn note_id(key: Option<Sha256Digest>) -> String {
    match key {
        None => ConversationId::generate().to_string(),
        Some(key) => key.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

/// The agent that is asked.
pub(super) fn chosen(asking: &ApiAsking, named: Option<&str>) -> Result<AgentName, ApiRefusal> {
    let mut agents = asking.agents.iter();
    let found = match named {
        None => agents.next(),
        Some(name) => agents.find(|agent| agent.as_str() == name),
    };
    found.cloned().ok_or_else(|| {
        let known: Vec<&str> = asking.agents.iter().map(AgentName::as_str).collect();
        ApiRefusal::new(
            StatusCode::NOT_FOUND,
            format!(
                "the token may not ask this agent; it may ask {}",
                known.join(", ")
            ),
            "name one of these, or add the agent to the token's agents",
        )
    })
}

fn key_of(headers: &HeaderMap) -> Result<Option<Sha256Digest>, ApiRefusal> {
    let Some(key) = headers.get(KEY_HEADER) else {
        return Ok(None);
    };
    let is_name = |key: &&str| (1..=KEY_MAX_CHARS).contains(&key.chars().count());
    match key.to_str().ok().map(str::trim).filter(is_name) {
        Some(key) => Ok(Some(Sha256::digest(key.as_bytes()).into())),
        None => Err(ApiRefusal::wrong(
            format!("the header Idempotency-Key is 1 to {KEY_MAX_CHARS} printable characters"),
            "send a name that is this request's alone, like a UUID",
        )),
    }
}

/// Checks a question against the limits, and against what the token may give.
fn checked(
    text: &str,
    given: Given,
    asking: &ApiAsking,
    text_max_bytes: usize,
) -> Result<(String, Given), ApiRefusal> {
    let text = neutral_text(text);
    let too_long = |what: &str, max: usize| {
        let what = format!("{what} has more than {max} bytes");
        Err(ApiRefusal::wrong(what, "send less at once"))
    };
    if text.trim().is_empty() {
        let advice = "send what is asked as text";
        return Err(ApiRefusal::wrong("the question is empty", advice));
    }
    if text.len() > text_max_bytes {
        return too_long("the question", text_max_bytes);
    }
    if given.earlier.len() > LINES_MAX {
        let what = format!("more than {LINES_MAX} messages came before the question");
        let advice = "send the newest, or name a conversation, whose history is kept here";
        return Err(ApiRefusal::wrong(what, advice));
    }
    let is_long = |it: &Option<String>| it.as_ref().is_some_and(|it| it.len() > CONTEXT_MAX_BYTES);
    if is_long(&given.context) {
        return too_long("what is said about the conversation", CONTEXT_MAX_BYTES);
    }
    if is_long(&given.instructions) {
        return too_long("instructions", CONTEXT_MAX_BYTES);
    }
    let may_instruct = asking.overrides.contains(&ApiOverride::Instructions);
    if given.instructions.is_some() && !may_instruct {
        return Err(ApiRefusal::new(
            StatusCode::FORBIDDEN,
            "the token may not give instructions",
            "send them as context, or add \"instructions\" to the token's overrides",
        ));
    }
    let has_long_user = given
        .user
        .as_ref()
        .is_some_and(|it| it.chars().count() > USER_MAX_CHARS);
    if has_long_user {
        let what = format!("user has more than {USER_MAX_CHARS} characters");
        return Err(ApiRefusal::wrong(what, "send a shorter name"));
    }
    if given
        .tools
        .as_ref()
        .is_some_and(|tools| tools.len() > TOOLS_MAX)
    {
        let what = format!("more than {TOOLS_MAX} tools are named");
        return Err(ApiRefusal::wrong(what, "name those that may be used"));
    }
    let mut given = given;
    for line in &mut given.earlier {
        line.text = neutral_text(&line.text);
    }
    let texts = [&mut given.context, &mut given.user, &mut given.instructions];
    for text in texts.into_iter().flatten() {
        *text = neutral_text(text);
    }
    Ok((text, given))
}

fn refusal_of(taken: &QuestionTaken) -> (NotAsked, ApiRefusal) {
    match taken {
        QuestionTaken::OtherBody => (
            NotAsked::OtherBody,
            ApiRefusal::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "another request came under this Idempotency-Key",
                "send each request under a key of its own, and the same request again byte for byte",
            ),
        ),
        QuestionTaken::Gone => (
            NotAsked::Gone,
            ApiRefusal::new(
                StatusCode::GONE,
                "what was asked under this Idempotency-Key was erased",
                "ask again under another key",
            ),
        ),
        QuestionTaken::NoSuchModel(text) => (
            NotAsked::Other,
            ApiRefusal::wrong(
                text.clone(),
                "leave model out, or add it to the agent's models",
            ),
        ),
        QuestionTaken::LimitMet(text) => (
            NotAsked::Limit,
            ApiRefusal::new(
                StatusCode::TOO_MANY_REQUESTS,
                text.clone(),
                "ask again later",
            ),
        ),
        QuestionTaken::NotServed | QuestionTaken::Asked(_) | QuestionTaken::Known(_) => (
            NotAsked::NoAgent,
            ApiRefusal::new(
                StatusCode::FORBIDDEN,
                "the token's person is no longer served",
                "look at api.tokens in the configuration",
            ),
        ),
    }
}
