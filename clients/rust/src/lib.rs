//! Asks agents of a Vocative daemon over its API (docs/API.md), and follows their runs in order.
//!
//! Reading order: [`Vocative`], [`Question`], [`Run`] (what happens in one), [`Error`].

mod events;

use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;
use uuid::Uuid;

pub use self::events::Event;
use self::events::Unread;

/// A connection that can't be made in this time is tried anew.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// The daemon gives a sign every 15 s while nothing happens: a connection without any for so long is dead.
const SILENCE_MAX: Duration = Duration::from_secs(45);
/// The most bytes of an event.
const EVENT_MAX_BYTES: usize = 8 << 20;
const WAIT_FIRST: Duration = Duration::from_millis(250);
const WAIT_MAX: Duration = Duration::from_secs(10);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API refuses.
    #[error("{what}; {advice} ({status})")]
    Refused {
        /// The status of its answer.
        status: StatusCode,
        /// What is wrong.
        what: String,
        /// What to do.
        advice: String,
    },
    /// The daemon can't be reached, or broke off.
    #[error("the daemon can't be reached")]
    Unreachable(#[from] reqwest::Error),
    /// Its answer is none that this client knows: it is of another version, or another program answers.
    #[error("the answer is not one of this API: {what}")]
    NotUnderstood {
        /// What is wrong with it.
        what: String,
    },
    /// A run ended without an answer.
    #[error("the run {run} ended without an answer: {ending}")]
    NoAnswer {
        /// Which.
        run: String,
        /// How: `failed`, `cancelled` or `interrupted`.
        ending: String,
    },
}

impl Error {
    /// Whether trying again may help: the daemon is not reached, or not ready.
    fn is_passing(&self) -> bool {
        match self {
            Self::Refused { status, .. } => matches!(status.as_u16(), 502..=504),
            Self::Unreachable(cause) => !cause.is_builder(),
            Self::NotUnderstood { .. } | Self::NoAnswer { .. } => false,
        }
    }
}

/// A question to an agent. Each has a key of its own, under which it is asked once however often it is sent.
#[derive(Clone, Debug, Serialize)]
pub struct Question {
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<String>,
    #[serde(skip)]
    key: String,
}

impl Question {
    /// To the token's first agent, in a new conversation.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            agent: None,
            conversation: None,
            model: None,
            context: None,
            key: Uuid::new_v4().to_string(),
        }
    }

    /// To that agent.
    #[must_use]
    pub fn to(self, agent: impl Into<String>) -> Self {
        let agent = Some(agent.into());
        Self { agent, ..self }
    }

    /// In that conversation: its id, or a name of your own.
    #[must_use]
    pub fn in_conversation(self, conversation: impl Into<String>) -> Self {
        let conversation = Some(conversation.into());
        Self {
            conversation,
            ..self
        }
    }

    /// With that one of the agent's models.
    #[must_use]
    pub fn with_model(self, model: impl Into<String>) -> Self {
        let model = Some(model.into());
        Self { model, ..self }
    }

    /// With what you say of the conversation: information for the model.
    #[must_use]
    pub fn with_context(self, context: impl Into<String>) -> Self {
        let context = Some(context.into());
        Self { context, ..self }
    }

    /// Under that key, for a program that asks the same again after a restart of its own.
    #[must_use]
    pub fn under_key(self, key: impl Into<String>) -> Self {
        let key = key.into();
        Self { key, ..self }
    }
}

/// A question that is on the daemon's disk.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Asked {
    /// The run that answers it.
    pub run: String,
    /// Its conversation.
    pub conversation: String,
    /// The turn that asks.
    pub turn: String,
    /// Who answers.
    pub agent: String,
    /// Whether it was asked before, under the same key.
    pub is_known: bool,
}

/// A message that is kept.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Said {
    /// Its turn.
    pub turn: String,
    /// Its conversation.
    pub conversation: String,
}

/// A daemon, as a token sees it. Cloning shares its connections.
#[derive(Clone, Debug)]
pub struct Vocative {
    url: String,
    token: String,
    http: reqwest::Client,
}

impl Vocative {
    /// The daemon at an address like `http://127.0.0.1:8087`. No proxy of the environment and no redirect is followed:
    /// the token is for the daemon alone.
    ///
    /// # Errors
    /// `Unreachable` if this machine can't make connections.
    pub fn new(url: &str, token: &str) -> Result<Self, Error> {
        // Where the program has chosen another one, that stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_MAX)
            .read_timeout(SILENCE_MAX)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build()?;
        Ok(Self {
            url: url.trim_end_matches('/').to_owned(),
            token: token.to_owned(),
            http,
        })
    }

    /// Asks an agent, and tries until the daemon answers: it is asked once. Whoever has no such patience drops it.
    ///
    /// # Errors
    /// `Refused`: [`Error`].
    pub async fn ask(&self, question: &Question) -> Result<Asked, Error> {
        let body = serde_json::to_value(question).unwrap_or_default();
        self.persist("/v1/runs", &question.key, &body).await
    }

    /// Says something without asking; it is kept once under its key.
    ///
    /// # Errors
    /// `Refused`: [`Error`].
    pub async fn say(&self, conversation: &str, text: &str, key: &str) -> Result<Said, Error> {
        let path = format!("/v1/conversations/{conversation}/messages");
        self.persist(&path, key, &json!({ "text": text })).await
    }

    /// Begins another course of a conversation, from one of its messages on (the `seq` of a turn); the id to ask in.
    ///
    /// # Errors
    /// `Refused`: [`Error`].
    pub async fn fork(&self, conversation: &str, at: i64, key: &str) -> Result<String, Error> {
        #[derive(Deserialize)]
        struct Forked {
            conversation: String,
        }
        let path = format!("/v1/conversations/{conversation}/fork");
        let forked: Forked = self.persist(&path, key, &json!({ "at": at })).await?;
        Ok(forked.conversation)
    }

    /// Stops a run; whether it was open.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn stop(&self, run: &str) -> Result<bool, Error> {
        let request = self.request(Method::POST, &format!("/v1/runs/{run}/stop"));
        let told: Value = read(request.json(&json!({})).send().await?).await?;
        Ok(told["stopped"] == true)
    }

    /// The newest turns of a conversation, oldest first, as the API tells them.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn turns(&self, conversation: &str, limit: u32) -> Result<Vec<Value>, Error> {
        #[derive(Deserialize)]
        struct Turns {
            turns: Vec<Value>,
        }
        let path = format!("/v1/conversations/{conversation}/turns?limit={limit}");
        let told: Turns = read(self.request(Method::GET, &path).send().await?).await?;
        Ok(told.turns)
    }

    /// Follows a run from its beginning, or from behind an event that was read before.
    #[must_use]
    pub fn follow(&self, run: &str, after: Option<String>) -> Run {
        Run {
            vocative: self.clone(),
            path: format!("/v1/runs/{run}/events"),
            last: after,
            wait: WAIT_FIRST,
            next_try: Instant::now(),
            stream: None,
            unread: Unread::default(),
            is_over: false,
        }
    }

    /// Asks, and waits for the answer. `on_text` hears all of the text so far whenever it grows or begins anew.
    ///
    /// # Errors
    /// `NoAnswer` if the run ends otherwise, `Refused`: [`Error`].
    pub async fn answer(
        &self,
        question: &Question,
        mut on_text: impl FnMut(&str),
    ) -> Result<String, Error> {
        let asked = self.ask(question).await?;
        let mut run = self.follow(&asked.run, None);
        let (mut said, mut step) = (String::new(), Value::Null);
        while let Some(event) = run.next().await? {
            let text = event.data["text"].as_str().unwrap_or_default();
            match event.name.as_str() {
                "snapshot" => {
                    text.clone_into(&mut said);
                    step = event.data["step"].clone();
                }
                "restarted" => said.clear(),
                "text" => {
                    if event.data["step"] != step {
                        said.clear();
                        step = event.data["step"].clone();
                    }
                    said.push_str(text);
                }
                "finished" => return Ok(said),
                _ if event.is_ending() => {
                    let (run, ending) = (asked.run, event.name);
                    return Err(Error::NoAnswer { run, ending });
                }
                _ => continue,
            }
            on_text(&said);
        }
        // A client that comes back after the run's end is told nothing more; the conversation has the answer.
        let turns = self.turns(&asked.conversation, 1).await?;
        let text = turns.last().and_then(|turn| turn["text"].as_str());
        Ok(text.unwrap_or_default().to_owned())
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let url = format!("{}{path}", self.url);
        self.http.request(method, url).bearer_auth(&self.token)
    }

    /// Sends something under its key until the daemon answers for good.
    async fn persist<T: for<'de> Deserialize<'de>>(
        &self,
        path: &str,
        key: &str,
        body: &Value,
    ) -> Result<T, Error> {
        let send = async || {
            let request = self.request(Method::POST, path);
            let request = request.header("Idempotency-Key", key).json(body);
            read(request.send().await?).await
        };
        let mut wait = WAIT_FIRST;
        loop {
            match send().await {
                Err(cause) if cause.is_passing() => tokio::time::sleep(wait).await,
                done => return done,
            }
            wait = (wait * 2).min(WAIT_MAX);
        }
    }
}

/// What happens in a run, in order and each event once, through broken connections and restarts.
#[derive(Debug)]
pub struct Run {
    vocative: Vocative,
    path: String,
    last: Option<String>,
    wait: Duration,
    /// Not before then a connection is made.
    next_try: Instant,
    stream: Option<Response>,
    unread: Unread,
    is_over: bool,
}

impl Run {
    /// The next event; `None` once the run has ended. It may be dropped while it waits, and called again.
    ///
    /// # Errors
    /// `Refused`: [`Error`].
    pub async fn next(&mut self) -> Result<Option<Event>, Error> {
        while !self.is_over {
            if let Some(event) = self.unread.next()? {
                self.wait = WAIT_FIRST;
                self.is_over = event.is_ending();
                if event.id.is_some() {
                    self.last.clone_from(&event.id);
                }
                return Ok(Some(event));
            }
            tokio::time::sleep_until(self.next_try).await;
            match self.read().await {
                Ok(true) => {}
                Err(cause) if !cause.is_passing() => return Err(cause),
                Ok(false) | Err(_) => {
                    self.next_try = Instant::now() + self.wait;
                    self.wait = (self.wait * 2).min(WAIT_MAX);
                }
            }
        }
        Ok(None)
    }

    /// The id of the newest event that was read: what to go on after.
    #[must_use]
    pub fn last(&self) -> Option<&str> {
        self.last.as_deref()
    }

    /// Reads a piece of the stream, from a new connection where there is none; `false` if the stream broke.
    async fn read(&mut self) -> Result<bool, Error> {
        if self.stream.is_none() {
            let mut request = self.vocative.request(Method::GET, &self.path);
            if let Some(last) = &self.last {
                request = request.header("Last-Event-ID", last);
            }
            let response = checked(request.send().await?).await?;
            if response.status() == StatusCode::NO_CONTENT {
                self.is_over = true;
                return Ok(true);
            }
            let kind = response.headers().get(CONTENT_TYPE);
            if !kind.is_some_and(|it| it.as_bytes().starts_with(b"text/event-stream")) {
                let what = "events were asked for, and something else came".to_owned();
                return Err(Error::NotUnderstood { what });
            }
            self.unread = Unread::default();
            self.stream = Some(response);
        }
        let Some(stream) = &mut self.stream else {
            return Ok(false);
        };
        if let Ok(Some(bytes)) = stream.chunk().await {
            self.unread.push(&bytes);
            return Ok(true);
        }
        self.stream = None;
        Ok(false)
    }
}

/// What an answer says.
async fn read<T: for<'de> Deserialize<'de>>(response: Response) -> Result<T, Error> {
    let body = checked(response).await?.bytes().await?;
    serde_json::from_slice(&body).map_err(|cause| Error::NotUnderstood {
        what: cause.to_string(),
    })
}

/// The answer, unless it is a refusal.
async fn checked(response: Response) -> Result<Response, Error> {
    #[derive(Default, Deserialize)]
    struct ErrorBody {
        #[serde(default)]
        error: String,
        #[serde(default)]
        advice: String,
    }
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let mut refusal: ErrorBody = response.json().await.unwrap_or_default();
    if refusal.error.is_empty() {
        "it is refused".clone_into(&mut refusal.error);
        "look at what answers under this address".clone_into(&mut refusal.advice);
    }
    Err(Error::Refused {
        status,
        what: refusal.error,
        advice: refusal.advice,
    })
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeBlocks;
