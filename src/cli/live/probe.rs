//! Posts a line into a chat and waits to hear it: the only way to prove with a bot's tokens that events arrive.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use vocative_contract::channel::{
    Accepted, BoxFuture, Channel, ConnectionState, Finding, FindingLevel, Intake, IntakeError,
    Reporter,
};
use vocative_contract::envelope::{Envelope, Event};
use vocative_contract::error::ChannelError;
use vocative_contract::identity::Identity;
use vocative_contract::outbound::{Delivered, Operation, Post, Target};
use vocative_contract::people::People;

use super::fine;
use super::first_words::FirstWords;
use crate::cli::CliError;
use crate::config::Config;

/// The line that the check posts.
const LINE: &str = "vocative check: this line tests that posts arrive; you can delete it.";
/// How long the line may take to come back, and how long a connection may take to open.
const WAIT: Duration = Duration::from_secs(15);
/// How long a connection may take to close.
const CLOSE_WAIT: Duration = Duration::from_secs(5);

/// The chat that the line is posted into.
pub(super) struct Probe {
    pub(super) channel: String,
    pub(super) chat: String,
}

impl Probe {
    /// Reads `CHANNEL/CHAT`.
    ///
    /// # Errors
    /// If there is no such channel, or the chat is not an id.
    pub(super) fn parse(name: &str, config: &Config) -> Result<Self, CliError> {
        let (channel, chat) = name.split_once('/').unwrap_or((name, ""));
        if !config.channels.contains_key(channel) {
            let known: Vec<&str> = config.channels.keys().map(String::as_str).collect();
            return Err(CliError::Usage(format!(
                "--probe {name}: there is no channel \"{channel}\"; there are: {}",
                known.join(", ")
            )));
        }
        if chat.is_empty() || chat.starts_with(['#', '@']) {
            return Err(CliError::Usage(format!(
                "--probe {name}: name the chat by its id, as in acme/C0123ABCD or \
                 home/-1001234567890; `vocative conversations list` and the platform's own details \
                 of the chat show it"
            )));
        }
        Ok(Self {
            channel: channel.to_owned(),
            chat: chat.to_owned(),
        })
    }

    /// Posts the line and waits for it to come back, where the platform sends posts back.
    ///
    /// While a daemon runs, nothing is waited for: the daemon receives the line instead of this command.
    pub(super) async fn run(&self, channel: &dyn Channel, is_served: bool) -> Vec<Finding> {
        let identity = match channel.identify().await {
            Ok(identity) => identity,
            Err(error) => return vec![failed(&error)],
        };
        if !channel.capabilities().echoes_posts {
            return match self.post(channel, &identity, "").await {
                Ok(post) => vec![
                    fine(format!(
                        "the line is posted, as message {}",
                        post.message_id
                    )),
                    fine(
                        "this platform does not send a bot its own posts, so its answer is the \
                         proof; whether people are heard shows when one of them writes",
                    ),
                ],
                Err(error) => vec![failed(&error)],
            };
        }
        let is_called = channel.receiver().is_some();
        if is_served || is_called {
            let heard_by_another = if is_served {
                "a daemon runs on this configuration and hears the line in place of this command; to see it \
                 come back, stop the daemon and probe again"
            } else {
                "events come over HTTP, where only a daemon that serves [webhooks] hears them: start it, probe \
                 again, and see `vocative status`"
            };
            return match self.post(channel, &identity, "").await {
                Ok(post) => vec![
                    fine(format!(
                        "the line is posted, as message {}",
                        post.message_id
                    )),
                    fine(heard_by_another),
                ],
                Err(error) => vec![failed(&error)],
            };
        }
        let listener = ProbeListener::start(channel, &identity);
        let findings = self.there_and_back(channel, &identity, &listener).await;
        listener.stop().await;
        findings
    }

    async fn there_and_back(
        &self,
        channel: &dyn Channel,
        identity: &Identity,
        listener: &ProbeListener,
    ) -> Vec<Finding> {
        if let Err(reason) = listener.connected().await {
            let text = format!("no connection to hear the line with: {reason}");
            return vec![finding(FindingLevel::Unreachable, text)];
        }
        let marker = uuid::Uuid::now_v7().to_string();
        let post = match self.post(channel, identity, &marker).await {
            Ok(post) => post,
            Err(error) => return vec![failed(&error)],
        };
        let posted = fine(format!(
            "the line is posted, as message {}",
            post.message_id
        ));
        if listener.has_heard(&marker, &post.message_id).await {
            return vec![posted, fine("and it came back: this chat's events arrive")];
        }
        let text = format!(
            "it was not heard back within {} seconds: either the app is not subscribed to the messages \
             of this kind of chat (compare its event subscriptions with `vocative config slack-manifest` and \
             reinstall it), or another process with the same app_token took it",
            WAIT.as_secs()
        );
        vec![posted, finding(FindingLevel::Problem, text)]
    }

    /// Posts another line than the check's.
    ///
    /// # Errors
    /// A finding that says why not.
    pub(super) async fn say(
        &self,
        channel: &dyn Channel,
        identity: &Identity,
        line: &str,
        marker: &str,
    ) -> Result<Delivered, Finding> {
        let posted = self.post_line(channel, identity, line, marker).await;
        posted.map_err(|error| failed(&error))
    }

    async fn post(
        &self,
        channel: &dyn Channel,
        identity: &Identity,
        marker: &str,
    ) -> Result<Delivered, ChannelError> {
        self.post_line(channel, identity, LINE, marker).await
    }

    async fn post_line(
        &self,
        channel: &dyn Channel,
        identity: &Identity,
        line: &str,
        marker: &str,
    ) -> Result<Delivered, ChannelError> {
        let outbound = channel.outbound(identity);
        let part = outbound
            .renderer
            .render(line, &People::nobody())
            .swap_remove(0);
        let post = Post {
            marker: marker.to_owned(),
            target: Target {
                chat: self.chat.clone(),
                thread: None,
                topic: None,
                reply_to: None,
            },
            operation: Operation::Post,
            part,
        };
        outbound.poster.deliver(&post).await
    }
}

fn failed(error: &ChannelError) -> Finding {
    let advice = match error {
        ChannelError::Unauthorized { .. } => "; the findings above say what to do about the token",
        ChannelError::ChatRefused { .. } | ChannelError::Rejected { .. } => {
            "; check the chat's id, and add the bot to the chat (on Slack: /invite it there)"
        }
        ChannelError::ChatMoved { .. } => "; use its new id",
        ChannelError::NotSent { .. } => "; check the network and api_url",
        ChannelError::RetryAfter { .. } => "; try again later",
        ChannelError::OutcomeUnknown { .. } => "; look into the chat whether the line is there",
    };
    let text = format!("the line is not posted: {}{advice}", error.reason());
    finding(FindingLevel::of(error), text)
}

fn finding(level: FindingLevel, text: impl Into<String>) -> Finding {
    Finding {
        level,
        text: text.into(),
    }
}

/// A channel's inbound half, which listens for a line of the bot or for a person's code.
pub(super) struct ProbeListener {
    heard: Arc<ProbeIntake>,
    stop: CancellationToken,
    task: JoinHandle<Result<(), ChannelError>>,
}

impl ProbeListener {
    /// Listens for a line that the bot posts.
    fn start(channel: &dyn Channel, identity: &Identity) -> Self {
        Self::hearing(channel, identity, ProbeIntake::default())
    }

    /// Listens for a message of a person that contains this code.
    pub(super) fn for_words(channel: &dyn Channel, identity: &Identity, code: &str) -> Self {
        let heard = ProbeIntake {
            code: Some(code.to_owned()),
            ..ProbeIntake::default()
        };
        Self::hearing(channel, identity, heard)
    }

    /// The message with the code, once it is heard.
    pub(super) fn words(&self) -> watch::Receiver<Option<FirstWords>> {
        self.heard.words.subscribe()
    }

    fn hearing(channel: &dyn Channel, identity: &Identity, heard: ProbeIntake) -> Self {
        let heard = Arc::new(heard);
        let stop = CancellationToken::new();
        let mut inbound = channel.inbound(identity);
        let (intake, cancel) = (Arc::clone(&heard), stop.clone());
        let reporter = Arc::clone(&heard);
        let task = tokio::spawn(async move { inbound.run(intake, reporter, cancel).await });
        Self { heard, stop, task }
    }

    /// Waits until the connection is open; otherwise says why it is not.
    async fn connected(&self) -> Result<(), String> {
        let mut states = self.heard.state.subscribe();
        let connected = states.wait_for(|state| {
            matches!(
                state,
                ConnectionState::Connected { .. } | ConnectionState::Alarm { .. }
            )
        });
        let _ = timeout(WAIT, connected).await;
        match &*self.heard.state.borrow() {
            ConnectionState::Connected { .. } => Ok(()),
            ConnectionState::Connecting => Err("it takes too long".to_owned()),
            ConnectionState::Retrying { reason, .. } | ConnectionState::Alarm { reason } => {
                Err(reason.clone())
            }
        }
    }

    /// Whether a post of the bot comes back in time.
    pub(super) async fn has_heard(&self, marker: &str, message_id: &str) -> bool {
        let mut echoes = self.heard.echoes.subscribe();
        let is_there = |echoes: &Vec<Echo>| {
            echoes
                .iter()
                .any(|echo| echo.marker.as_deref() == Some(marker) || echo.message_id == message_id)
        };
        matches!(timeout(WAIT, echoes.wait_for(is_there)).await, Ok(Ok(_)))
    }

    /// Stops listening.
    pub(super) async fn stop(self) {
        self.stop.cancel();
        // How the task ended does not matter; one that takes too long ends with the process.
        let _ = timeout(CLOSE_WAIT, self.task).await;
    }
}

/// A post of the bot that came back.
struct Echo {
    message_id: String,
    marker: Option<String>,
}

/// Collects what is heard. It stores nothing, so it acknowledges nothing but the bot's own posts: the platform sends
/// the rest again, to a daemon.
struct ProbeIntake {
    state: watch::Sender<ConnectionState>,
    echoes: watch::Sender<Vec<Echo>>,
    /// The code that a person's message must contain.
    code: Option<String>,
    words: watch::Sender<Option<FirstWords>>,
}

impl Default for ProbeIntake {
    fn default() -> Self {
        Self {
            state: watch::Sender::new(ConnectionState::Connecting),
            echoes: watch::Sender::new(Vec::new()),
            code: None,
            words: watch::Sender::new(None),
        }
    }
}

impl Intake for ProbeIntake {
    fn accept(&self, envelope: Envelope) -> BoxFuture<'_, Result<Accepted, IntakeError>> {
        Box::pin(async move {
            if let (Event::Posted(message), Some(code)) = (&envelope.event, &self.code)
                && let Some(words) = FirstWords::of(message, code)
            {
                self.words.send_replace(Some(words));
            }
            let Event::OwnPost {
                message_id, marker, ..
            } = envelope.event
            else {
                return Err(IntakeError("a check stores nothing".into()));
            };
            self.echoes
                .send_modify(|echoes| echoes.push(Echo { message_id, marker }));
            Ok(Accepted::default())
        })
    }
}

impl Reporter for ProbeIntake {
    fn state(&self, state: ConnectionState) {
        self.state.send_replace(state);
    }

    fn heard(&self) {}

    fn acknowledged(&self, _lag_ms: u64) {}

    fn malformed(&self) {}
}
