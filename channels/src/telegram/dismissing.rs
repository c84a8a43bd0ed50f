//! Ends the wait of people who press a button that no post of ours has: a button in a message that a person had the bot
//! write (inline mode) in a chat that the bot is not in. Such a press happened in no chat, so nothing else can answer
//! it.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use vocative_contract::channel::{Accepted, BoxFuture, Inbound, Intake, IntakeError, Reporter};
use vocative_contract::envelope::{Envelope, Event};
use vocative_contract::error::ChannelError;

use super::api::{Parameters, TelegramApi};
use super::posting::ANSWER;

/// The most answers in flight at once. A press beyond them is not answered; its waiting sign ends by itself.
const IN_FLIGHT_MAX: usize = 4;

/// An intake that also answers such presses, once they are committed.
struct Dismissing {
    api: Arc<TelegramApi>,
    intake: Arc<dyn Intake>,
    in_flight: Arc<Semaphore>,
}

/// An inbound half whose intake is [`Dismissing`].
pub(super) struct DismissingInbound {
    pub(super) api: Arc<TelegramApi>,
    pub(super) inbound: Box<dyn Inbound>,
}

impl Inbound for DismissingInbound {
    fn run<'a>(
        &'a mut self,
        intake: Arc<dyn Intake>,
        reporter: Arc<dyn Reporter>,
        cancel: CancellationToken,
    ) -> BoxFuture<'a, Result<(), ChannelError>> {
        let intake = Arc::new(Dismissing {
            api: Arc::clone(&self.api),
            intake,
            in_flight: Arc::new(Semaphore::new(IN_FLIGHT_MAX)),
        });
        self.inbound.run(intake, reporter, cancel)
    }
}

impl Dismissing {
    fn dismiss(&self, press: String) {
        let Ok(permit) = Arc::clone(&self.in_flight).try_acquire_owned() else {
            return;
        };
        let api = Arc::clone(&self.api);
        tokio::spawn(async move {
            let parameters =
                Parameters::from_iter([("callback_query_id".to_owned(), json!(press))]);
            if let Err(failure) = api.call_raw(ANSWER, &parameters).await {
                let reason = failure.into_error(ANSWER).reason();
                tracing::debug!(reason, "A press outside of chats was not answered");
            }
            drop(permit);
        });
    }
}

impl Intake for Dismissing {
    fn accept(&self, envelope: Envelope) -> BoxFuture<'_, Result<Accepted, IntakeError>> {
        let press = match &envelope.event {
            Event::Interaction(press) if press.place.is_none() => Some(press.id.clone()),
            _ => None,
        };
        Box::pin(async move {
            let accepted = self.intake.accept(envelope).await?;
            press.into_iter().for_each(|press| self.dismiss(press));
            Ok(accepted)
        })
    }
}
