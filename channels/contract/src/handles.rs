//! The outbound half of a channel, as four handles. A handle lets its holder do one kind of thing, so that the handles
//! of a part of the daemon show what it can do: only delivery holds a [`Poster`].

use std::sync::Arc;
use std::time::Duration;

use crate::card::{Card, CardMisfit};
use crate::channel::BoxFuture;
use crate::envelope::{Belonging, Place};
use crate::error::{ChannelError, Fallback};
use crate::form::Form;
use crate::live::LivePost;
use crate::outbound::{Delivered, Dressing, Part, Post, ReadBack, Target};
use crate::people::People;
use crate::probe::Prober;

/// All handles of one identity; the code that opens the channel gives each to the part of the daemon that needs it.
#[derive(Clone)]
pub struct Outbound {
    /// Makes posts of texts.
    pub renderer: Arc<dyn Renderer>,
    /// Shows that a run is working.
    pub signs: Arc<dyn Signs>,
    /// Asks the platform.
    pub look_ups: Arc<dyn LookUps>,
    /// Asks about single messages; present where a post of unknown outcome can be looked for in no other way.
    pub prober: Option<Arc<dyn Prober>>,
    /// Opens forms; present where a press of a button can open one.
    pub forms: Option<Arc<dyn Forms>>,
    /// Posts.
    pub poster: Arc<dyn Poster>,
}

impl Outbound {
    /// The handles of an adapter that implements all of them in one type; without a prober and forms.
    pub fn of<T: Renderer + Signs + LookUps + Poster>(adapter: &Arc<T>) -> Self {
        Self {
            renderer: Arc::clone(adapter) as _,
            signs: Arc::clone(adapter) as _,
            look_ups: Arc::clone(adapter) as _,
            prober: None,
            forms: None,
            poster: Arc::clone(adapter) as _,
        }
    }
}

/// Makes posts of texts. Pure: no network, no clock.
pub trait Renderer: Send + Sync + 'static {
    /// Renders a text (CommonMark) into parts within the platform's limits. `@Name` of one of `people`
    /// mentions them for real; every other mention is plain text and notifies no one. Never fails; never
    /// empty for a text that is not blank.
    fn render(&self, text: &str, people: &People) -> Vec<Part>;

    /// Replaces a refused part by smaller or plainer ones.
    fn render_fallback(&self, part: &Part, fallback: Fallback) -> Vec<Part>;

    /// Renders a card into one part, whole: every character of it is shown unchanged. A part with buttons is never
    /// replaced by another one with buttons ([`Self::render_fallback`]).
    ///
    /// # Errors
    /// A [`CardMisfit`] if one post can't show it unchanged.
    fn render_card(&self, card: &Card) -> Result<Part, CardMisfit> {
        let _ = card;
        Err(CardMisfit::NoButtons)
    }

    /// Renders the beginning of a text that goes on, cut to what every form of showing it takes; `None`
    /// while there is nothing to see.
    fn render_live(&self, text: &str) -> Option<Part> {
        let parts = self.render(&crate::live::so_far(text)?, &People::nobody());
        parts.into_iter().next()
    }
}

/// Shows people what is going on. Nothing of it is stored, and nothing is retried.
pub trait Signs: Send + Sync + 'static {
    /// Shows that a run is working (typing). A failure is not reported.
    fn show_working<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, ()>;

    /// Removes the sign of [`Self::show_working`], where no post will do that. A failure is not reported.
    fn show_idle<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, ()> {
        let _ = target;
        Box::pin(std::future::ready(()))
    }

    /// Shows a text that is being written as it is now. Posts and final edits take precedence: where one would have to
    /// wait, so does this.
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
                fallback: Fallback::None,
            })
        })
    }

    /// Shows something on the bot's own surface. A failure is not reported.
    fn dress<'a>(&'a self, target: &'a Target, dressing: &'a Dressing) -> BoxFuture<'a, ()> {
        let _ = (target, dressing);
        Box::pin(std::future::ready(()))
    }
}

/// Opens forms. Nothing of it is stored, and nothing is retried: a person who sees no form presses once more.
pub trait Forms: Send + Sync + 'static {
    /// Whether a form can show this text.
    fn fits(&self, text: &str) -> bool;

    /// Opens a form for the person who made that press ([`Interaction::id`](crate::interaction::Interaction::id)), at
    /// once: the platform accepts it for seconds only. The sent form arrives as an interaction.
    ///
    /// # Errors
    /// A [`ChannelError`]; the form is not open, or it is not known whether it is.
    fn open<'a>(
        &'a self,
        press: &'a str,
        form: &'a Form,
    ) -> BoxFuture<'a, Result<(), ChannelError>>;
}

/// Asks the platform, and changes nothing there.
pub trait LookUps: Send + Sync + 'static {
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
    /// A [`ChannelError`]; the caller treats the person as the least trusted kind.
    fn belonging<'a>(
        &'a self,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<Belonging>, ChannelError>> {
        let _ = id;
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Looks up whether a person is in a chat now; `None` where the platform does not say.
    ///
    /// # Errors
    /// A [`ChannelError`]; the caller treats the person as no member.
    fn is_member<'a>(
        &'a self,
        chat: &'a str,
        person: &'a str,
    ) -> BoxFuture<'a, Result<Option<bool>, ChannelError>> {
        let _ = (chat, person);
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Looks up a chat's title and kind.
    ///
    /// # Errors
    /// A [`ChannelError`]; the caller keeps what it knows.
    fn chat_facts<'a>(&'a self, chat: &'a str) -> BoxFuture<'a, Result<Place, ChannelError>>;

    /// Looks for a post of unknown outcome, which can't be older than `since_ms`: the platform's time, in
    /// milliseconds since the Unix epoch. [`Capabilities::can_read_back`] says whether it can find one.
    ///
    /// [`Capabilities::can_read_back`]: crate::capability::Capabilities::can_read_back
    ///
    /// # Errors
    /// A [`ChannelError`]; the caller looks again later.
    fn read_back<'a>(
        &'a self,
        post: &'a Post,
        since_ms: i64,
    ) -> BoxFuture<'a, Result<ReadBack, ChannelError>> {
        let _ = (post, since_ms);
        Box::pin(std::future::ready(Ok(ReadBack::Unsupported)))
    }
}

/// Posts. Never decides what to say and never retries.
pub trait Poster: Send + Sync + 'static {
    /// How long to wait before a post may go to that place, within the platform's rates for that place and for the
    /// account. Zero reserves the turn: the post is to be made now. Any other wait reserves nothing, and the caller
    /// asks again after it. Posts of one chat are also [`Capabilities::chat_interval_ms`] apart; the caller takes care
    /// of that.
    ///
    /// [`Capabilities::chat_interval_ms`]: crate::capability::Capabilities::chat_interval_ms
    fn wait_before(&self, target: &Target) -> Duration {
        let _ = target;
        Duration::ZERO
    }

    /// Makes the next call that must go before an upload shows in the room. Its result is kept and passed back in the
    /// part's file; `None` = nothing is left to prepare, the upload may be delivered. Repeating such a call does no
    /// harm.
    ///
    /// # Errors
    /// A [`ChannelError`]; after an unknown outcome the call is simply repeated.
    fn prepare<'a>(
        &'a self,
        post: &'a Post,
    ) -> BoxFuture<'a, Result<Option<String>, ChannelError>> {
        let _ = post;
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Makes one post with one request.
    ///
    /// # Errors
    /// A [`ChannelError`] by what the caller should do next.
    fn deliver<'a>(&'a self, post: &'a Post) -> BoxFuture<'a, Result<Delivered, ChannelError>>;
}
