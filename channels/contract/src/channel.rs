//! The channel contract: a channel with its inbound half, and the intake between adapter and daemon. The
//! outbound half is in `handles`.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::capability::Capabilities;
use crate::clock::PlatformClock;
use crate::envelope::Envelope;
use crate::error::ChannelError;
use crate::file::FileSource;
use crate::handles::Outbound;
use crate::history::HistoryReader;
use crate::identity::Identity;
use crate::webhook::Receiver;

/// A boxed future, so that the traits stay object-safe.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Takes envelopes; implemented by the daemon.
pub trait Intake: Send + Sync + 'static {
    /// Makes the envelope durable.
    ///
    /// Returns only after the commit, and the caller acknowledges only after `Ok`. Many calls run
    /// at once. A duplicate is a success.
    ///
    /// # Errors
    /// [`IntakeError`] if storage failed. Nothing in an envelope's content can make it fail. The
    /// caller must not acknowledge; the platform sends again.
    fn accept(&self, envelope: Envelope) -> BoxFuture<'_, Result<Accepted, IntakeError>>;
}

/// What the acknowledgement of an envelope may say to the person.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    /// What is wrong with what a person wrote into a form, in words for that person: nothing was done. `None` = nothing
    /// is wrong, or the envelope was no form.
    pub form_problem: Option<String>,
}

/// Storage failed; nothing was made durable.
#[derive(Debug, thiserror::Error)]
#[error("the envelope could not be stored")]
pub struct IntakeError(#[source] pub crate::error::Cause);

/// How a channel is doing, for status and metrics; implemented by the daemon.
///
/// Calls are cheap and never block.
pub trait Reporter: Send + Sync + 'static {
    /// The state of the connection changed.
    fn state(&self, state: ConnectionState);
    /// Something was heard from the platform (any frame, any completed poll).
    fn heard(&self);
    /// An event was acknowledged `lag_ms` after it was received.
    fn acknowledged(&self, lag_ms: u64);
    /// A frame or update could not be read at all.
    fn malformed(&self);
    /// A webhook request did not come from the platform, or was incomplete; nothing of it was stored.
    fn refused(&self) {}
    /// A webhook request was not committed in the time the platform waits; it comes again.
    fn late(&self) {}
    /// The connection was open but delivered nothing although events waited; the channel has reopened it.
    fn deaf(&self) {}
    /// The platform says how many connections of the same bot there are besides ours: each takes a
    /// part of the events. One that just ended may still be among them.
    fn other_connections(&self, count: u64) {
        let _ = count;
    }
}

/// The state of a channel's connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionState {
    /// Not connected yet, or connecting again.
    Connecting,
    /// Hears the platform.
    Connected {
        /// Open connections (sockets; 1 for polling).
        connections: usize,
    },
    /// Will try again by itself.
    Retrying {
        /// Why, without secrets or content.
        reason: String,
        /// In how many milliseconds.
        wait_ms: u64,
    },
    /// Keeps trying slowly, but a person must act.
    Alarm {
        /// What to do, in plain words.
        reason: String,
    },
}

/// A configured connection to a platform.
pub trait Channel: Send + Sync + 'static {
    /// Asks the platform who we are.
    ///
    /// # Errors
    /// Any [`ChannelError`]; the caller retries unless it is `Unauthorized`.
    fn identify(&self) -> BoxFuture<'_, Result<Identity, ChannelError>>;

    /// The inbound half for that identity.
    fn inbound(&self, identity: &Identity) -> Box<dyn Inbound>;

    /// The outbound half for that identity, as handles.
    fn outbound(&self, identity: &Identity) -> Outbound;

    /// The history half for that identity; `None` on a platform that lets no bot read a room.
    fn history(&self, identity: &Identity) -> Option<Arc<dyn HistoryReader>> {
        let _ = identity;
        None
    }

    /// Takes what the platform sends over HTTP; `None` for a channel that connects by itself.
    fn receiver(&self) -> Option<Arc<dyn Receiver>> {
        None
    }

    /// Sets the list of commands that the platform shows, where it has one and the list differs. Returns whether it
    /// differed.
    ///
    /// # Errors
    /// Any [`ChannelError`]; commands work all the same.
    fn announce<'a>(
        &'a self,
        announcement: &'a Announcement,
    ) -> BoxFuture<'a, Result<bool, ChannelError>> {
        let _ = announcement;
        Box::pin(std::future::ready(Ok(false)))
    }

    /// The file half for that identity; `None` where attachments are only named.
    fn files(&self, identity: &Identity) -> Option<Arc<dyn FileSource>> {
        let _ = identity;
        None
    }

    /// The platform's time; `None` where its answers carry none.
    fn clock(&self) -> Option<Arc<PlatformClock>> {
        None
    }

    /// What the platform can do.
    fn capabilities(&self) -> Capabilities;

    /// A live check for `vocative check --live`: one line per finding.
    fn check(&self, reach: CheckReach) -> BoxFuture<'_, Vec<Finding>>;
}

/// The commands of a channel, and who administers the bot there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Announcement {
    /// The commands, in the order in which people see them.
    pub commands: Vec<Announced>,
    /// The administrators, by the platform's ids.
    pub admins: Vec<String>,
}

/// A command that people can give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announced {
    /// Its word: 1 to 32 of a-z, 0-9 and _.
    pub name: String,
    /// What it does, in up to 256 characters.
    pub description: String,
    /// Whom it is shown to, where the platform can tell people apart.
    pub audience: Audience,
}

/// Who can use a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Everybody.
    Everybody,
    /// People in a direct chat with the bot; in other chats administrators only.
    WhoeverIsAlone,
    /// Administrators.
    Admins,
}

/// How far a live check goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckReach {
    /// Only calls that a daemon at work with the same tokens does not notice.
    Calls,
    /// Opens a connection, too, where that loses nothing: events that arrive there are not acknowledged and come again.
    Connection,
}

/// One finding of a live check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether the bot can work like this.
    pub level: FindingLevel,
    /// What was found and, if not fine, what to do, in plain words.
    pub text: String,
}

/// How grave a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingLevel {
    /// Fine.
    Fine,
    /// Works, but not everything.
    Warning,
    /// Does not work until somebody acts.
    Problem,
    /// The platform can't be reached, or does not answer as it should.
    Unreachable,
    /// The platform refuses a token.
    Refused,
}

impl FindingLevel {
    /// How grave it is that a call failed like this.
    #[must_use]
    pub fn of(error: &ChannelError) -> Self {
        match error {
            ChannelError::Unauthorized { .. } => Self::Refused,
            ChannelError::NotSent { .. }
            | ChannelError::RetryAfter { .. }
            | ChannelError::OutcomeUnknown { .. } => Self::Unreachable,
            ChannelError::ChatRefused { .. }
            | ChannelError::ChatMoved { .. }
            | ChannelError::Rejected { .. } => Self::Problem,
        }
    }
}

/// The inbound half: hears the platform and hands envelopes in.
pub trait Inbound: Send {
    /// Runs until cancelled.
    ///
    /// Reconnects by itself; returns early only with an error that another attempt after a back-off
    /// may cure. Cancelled, it takes in nothing new, waits for accepted envelopes to be
    /// acknowledged, and returns `Ok`.
    ///
    /// # Errors
    /// A [`ChannelError`] that the supervisor logs before it starts the half again.
    fn run<'a>(
        &'a mut self,
        intake: Arc<dyn Intake>,
        reporter: Arc<dyn Reporter>,
        cancel: CancellationToken,
    ) -> BoxFuture<'a, Result<(), ChannelError>>;
}
