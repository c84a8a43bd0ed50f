//! Shows in Slack that a run is working, and an answer while it is written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use vocative_contract::channel::BoxFuture;
use vocative_contract::error::ChannelError;
use vocative_contract::handles::Signs;
use vocative_contract::live::{LiveForm, LivePost};
use vocative_contract::outbound::{Dressing, Operation, Target};

use super::agent_view;
use super::api::{SlackApi, Token};
use super::outbound::{SlackRates, UPDATE, update};
use super::stream::{self, is_for_others};

const APPEND: &str = "chat.appendStream";
const SET_STATUS: &str = "assistant.threads.setStatus";
/// The status that stands behind the app's name while it works.
const WORKING: &str = "is thinking…";

/// Shows progress in one workspace.
#[derive(Debug)]
pub(super) struct SlackSigns {
    api: Arc<SlackApi>,
    rates: Arc<SlackRates>,
    /// Whether Slack refused the app a status line; then none is tried again.
    lacks_status: AtomicBool,
}

impl SlackSigns {
    pub(super) fn new(api: Arc<SlackApi>, rates: Arc<SlackRates>) -> Self {
        Self {
            api,
            rates,
            lacks_status: AtomicBool::new(false),
        }
    }

    async fn set_status(&self, target: &Target, status: &str) {
        let Some(thread) = &target.thread else {
            return;
        };
        if self.lacks_status.load(Ordering::Relaxed) {
            return;
        }
        let arguments = [
            ("channel_id", target.chat.clone()),
            ("thread_ts", thread.clone()),
            ("status", status.to_owned()),
        ];
        let Err(error) = self.api.call(SET_STATUS, Token::Bot, &arguments).await else {
            return;
        };
        let reason = error.reason();
        tracing::debug!(reason, "The status line was not shown");
        if is_for_others(&error) {
            self.lacks_status.store(true, Ordering::Relaxed);
        }
    }
}

impl Signs for SlackSigns {
    /// The status line of a thread, where Slack allows the app one: a bot has no typing sign. It disappears with the
    /// app's next message there.
    fn show_working<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, ()> {
        Box::pin(self.set_status(target, WORKING))
    }

    fn show_idle<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, ()> {
        Box::pin(self.set_status(target, ""))
    }

    fn show_live<'a>(&'a self, live: &'a LivePost) -> BoxFuture<'a, Result<(), ChannelError>> {
        Box::pin(async move {
            let chat = &live.target.chat;
            match &live.form {
                LiveForm::Preview { .. } => Err(ChannelError::unsupported(&Operation::Post)),
                LiveForm::Post { message_id } => {
                    self.rates.take_live_turn(chat, UPDATE, &self.rates.live)?;
                    let shown = update(&self.api, chat, message_id, &live.part).await;
                    shown
                        .inspect_err(|error| self.rates.learn_live(error))
                        .map(drop)
                }
                LiveForm::Stream { message_id, added } => {
                    self.rates
                        .take_live_turn(chat, APPEND, &self.rates.adding)?;
                    stream::append(&self.api, chat, message_id, added).await
                }
            }
        })
    }

    fn dress<'a>(&'a self, target: &'a Target, dressing: &'a Dressing) -> BoxFuture<'a, ()> {
        Box::pin(agent_view::dress(&self.api, target, dressing))
    }
}
