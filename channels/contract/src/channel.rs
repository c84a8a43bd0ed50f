//! The channel contract: an inbound half, an outbound half, and the intake between adapter and
//! daemon.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::capability::Capabilities;
use crate::clock::PlatformClock;
use crate::envelope::{Belonging, Envelope};
use crate::error::ChannelError;
use crate::file::FileSource;
use crate::history::History;
use crate::identity::Identity;
use crate::live::LivePost;
use crate::outbound::{Delivered, Dressing, Part, Post, ReadBack, Target};
use crate::people::People;
use crate::probe::Prober;
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
    fn accept(&self, envelope: Envelope) -> BoxFuture<'_, Result<(), IntakeError>>;
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
    /// A webhook request did not come from the platform, or not whole; nothing of it was stored.
    fn refused(&self) {}
    /// A webhook request was not committed in the time the platform waits; it comes again.
    fn late(&self) {}
    /// The connection was there and heard nothing of what waited; the channel has made it anew.
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
    /// Not connected yet, or again.
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
    /// Keeps trying slowly, but somebody must act.
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

    /// The outbound half for that identity.
    fn outbound(&self, identity: &Identity) -> Arc<dyn Outbound>;

    /// The history half for that identity; `None` on a platform that lets no bot read a room.
    fn history(&self, identity: &Identity) -> Option<Arc<dyn History>> {
        let _ = identity;
        None
    }

    /// Takes what the platform sends over HTTP; `None` for a channel that connects by itself.
    fn receiver(&self) -> Option<Arc<dyn Receiver>> {
        None
    }

    /// Tells the platform which commands people can give, where it can be told and knows others. Returns
    /// whether it had to be told.
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

    /// The platform's time; `None` where it tells none.
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

/// Whom a command is of use to.
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
    /// Opens a connection, too, where that takes nothing for good: what the platform sends there is
    /// not acknowledged and comes again.
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

/// The outbound half: renders and sends. It never decides what to say and never retries.
pub trait Outbound: Send + Sync + 'static {
    /// Renders a text (CommonMark) into parts within the platform's limits. `@Name` of one of `people`
    /// mentions them for real; every other mention is plain text and notifies no one. Pure; never fails; never
    /// empty for a text that is not blank.
    fn render(&self, text: &str, people: &People) -> Vec<Part>;

    /// Replaces a refused part by smaller or plainer ones. Pure.
    fn render_fallback(&self, part: &Part, fallback: crate::error::Fallback) -> Vec<Part>;

    /// How long to wait before a post may go to that place, within what the platform takes there and
    /// altogether. Zero takes the place: the post is to be made now. Anything else takes none, and
    /// the caller asks again then. Posts of one chat are also [`Capabilities::chat_interval_ms`]
    /// apart; that is the caller's to keep.
    ///
    /// [`Capabilities::chat_interval_ms`]: crate::capability::Capabilities::chat_interval_ms
    fn wait_before(&self, target: &Target) -> std::time::Duration {
        let _ = target;
        std::time::Duration::ZERO
    }

    /// Makes one post with one request.
    ///
    /// # Errors
    /// A [`ChannelError`] by what the caller should do next.
    fn deliver<'a>(&'a self, post: &'a Post) -> BoxFuture<'a, Result<Delivered, ChannelError>>;

    /// Whether files can be uploaded.
    fn uploads(&self) -> bool {
        false
    }

    /// Makes the next call that must go before an upload shows in the room. What it gives is kept and
    /// comes back in the part's file; `None` = nothing is left to be prepared, it may be delivered. Made
    /// again, such a call does no harm.
    ///
    /// # Errors
    /// A [`ChannelError`]; an unknown outcome is simply tried again.
    fn prepare<'a>(
        &'a self,
        post: &'a Post,
    ) -> BoxFuture<'a, Result<Option<String>, ChannelError>> {
        let _ = post;
        Box::pin(async { Ok(None) })
    }

    /// Looks for a post of unknown outcome, which can't be older than `since_ms`: the platform's time, in
    /// milliseconds since the Unix epoch.
    ///
    /// # Errors
    /// A [`ChannelError`]; the caller looks again later.
    fn read_back<'a>(
        &'a self,
        post: &'a Post,
        since_ms: i64,
    ) -> BoxFuture<'a, Result<ReadBack, ChannelError>>;

    /// Asks about single messages, where a post of unknown outcome can be looked for in no other way.
    fn prober(&self) -> Option<&dyn Prober> {
        None
    }

    /// Shows people that a run is working (typing). Failures don't matter and are not told.
    fn show_working<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, ()>;

    /// Takes back what [`Self::show_working`] showed, where nothing will be posted that does. Failures
    /// don't matter and are not told.
    fn show_idle<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, ()> {
        let _ = target;
        Box::pin(std::future::ready(()))
    }

    /// Renders the beginning of a text that goes on, cut to what every form of showing it takes. Pure;
    /// `None` while there is nothing to see.
    fn render_live(&self, text: &str) -> Option<Part> {
        let parts = self.render(&crate::live::so_far(text)?, &People::nobody());
        parts.into_iter().next()
    }

    /// Shows a text that is being written as it is now. Posts and final edits go before: where one would
    /// have to wait, this one does.
    ///
    /// # Errors
    /// A [`ChannelError`]; the same state is not tried again. After [`ChannelError::RetryAfter`] and after an
    /// unknown outcome a later state may be shown; after any other error none is.
    fn show_live<'a>(&'a self, live: &'a LivePost) -> BoxFuture<'a, Result<(), ChannelError>> {
        let _ = live;
        Box::pin(async {
            Err(ChannelError::Rejected {
                operation: "show live",
                reason: "not possible on this platform".to_owned(),
                fallback: crate::error::Fallback::None,
            })
        })
    }

    /// Puts something up on the bot's own surface. Failures don't matter and are not told.
    fn dress<'a>(&'a self, target: &'a Target, dressing: &'a Dressing) -> BoxFuture<'a, ()> {
        let _ = (target, dressing);
        Box::pin(std::future::ready(()))
    }

    /// Looks up a person's display name.
    ///
    /// # Errors
    /// A [`ChannelError`]; the caller keeps the id as name.
    fn person_name<'a>(
        &'a self,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, ChannelError>>;

    /// Looks up how a person belongs to our organisation; `None` where the platform has no organisations or
    /// does not know the person.
    ///
    /// # Errors
    /// A [`ChannelError`]; the caller takes the person for what is let in least.
    fn belonging<'a>(
        &'a self,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<Belonging>, ChannelError>> {
        let _ = id;
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Looks up a chat's title and kind.
    ///
    /// # Errors
    /// A [`ChannelError`]; the caller keeps what it knows.
    fn chat_facts<'a>(
        &'a self,
        chat: &'a str,
    ) -> BoxFuture<'a, Result<crate::envelope::Place, ChannelError>>;
}
