//! The inbound half: a socket that is acknowledged event by event, or polls whose offset confirms.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use tokio_util::sync::CancellationToken;
use vocative_contract::channel::{BoxFuture, ConnectionState, Inbound, Intake, Reporter};
use vocative_contract::crash::{self, Sabotage};
use vocative_contract::envelope::Envelope;
use vocative_contract::error::ChannelError;
use vocative_contract::identity::Identity;

use super::life::Life;
use super::past::{envelope, told};
use super::wire::EventNumber;

/// How long a poll waits for an update.
const POLL: Duration = Duration::from_secs(25);

/// The inbound half.
pub(super) struct Hearing {
    life: Arc<Life>,
    identity: Identity,
}

/// What is needed to take in events.
struct Ears<'a> {
    life: &'a Life,
    identity: &'a Identity,
    intake: &'a dyn Intake,
    reporter: &'a dyn Reporter,
    cancel: &'a CancellationToken,
}

impl Hearing {
    pub(super) fn new(life: Arc<Life>, identity: Identity) -> Self {
        Self { life, identity }
    }
}

impl Inbound for Hearing {
    fn run<'a>(
        &'a mut self,
        intake: Arc<dyn Intake>,
        reporter: Arc<dyn Reporter>,
        cancel: CancellationToken,
    ) -> BoxFuture<'a, Result<(), ChannelError>> {
        Box::pin(async move {
            let ears = Ears {
                life: &self.life,
                identity: &self.identity,
                intake: &*intake,
                reporter: &*reporter,
                cancel: &cancel,
            };
            if self.life.world(|world| world.is_slack()) {
                ears.keep_connected().await;
            } else {
                ears.keep_polling().await;
            }
            Ok(())
        })
    }
}

impl Ears<'_> {
    /// Waits, unless it is told to stop.
    async fn pause(&self, wait_ms: u64) {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => {}
            () = tokio::time::sleep(Duration::from_millis(wait_ms)) => {}
        }
    }

    async fn retry(&self, reason: &str) {
        let wait_ms = self.life.world(|world| 100 + world.dice.below(3_000));
        let reason = reason.to_owned();
        self.reporter
            .state(ConnectionState::Retrying { reason, wait_ms });
        self.pause(wait_ms).await;
    }

    fn envelope(&self, event: EventNumber, delivery: i64) -> Envelope {
        self.life.world(|world| {
            let mut told = told(world, event);
            if world.sabotage == Some(Sabotage::NoDedupe) && !crash::is_built_in() {
                forge_identity(&mut told, delivery);
            }
            let clock = &self.life.platform;
            envelope(world, clock, self.identity, told, delivery.to_string()).heard_by(clock)
        })
    }

    fn acknowledges_first(&self) -> bool {
        let sabotage = self.life.world(|world| world.sabotage);
        sabotage == Some(Sabotage::AckBeforeCommit)
    }

    async fn keep_connected(&self) {
        let mut taken = FuturesUnordered::new();
        let mut deliveries = 0;
        while !self.cancel.is_cancelled() {
            self.reporter.state(ConnectionState::Connecting);
            self.life.step("before a connection").await;
            self.life.linger(20, 600).await;
            if self.life.world(|world| world.is_out() || world.fails(150)) {
                self.retry("connection refused").await;
                continue;
            }
            self.life.hear_date();
            let socket = self.life.world(|world| {
                world.note(format_args!("a socket is open"));
                world.wire.open_socket()
            });
            self.reporter
                .state(ConnectionState::Connected { connections: 1 });
            while self.life.world(|world| world.wire.has_socket(socket)) {
                if let Some(event) = self.life.world(|world| world.wire.take()) {
                    deliveries += 1;
                    taken.push(self.take(socket, event, deliveries));
                    continue;
                }
                tokio::select! {
                    biased;
                    () = self.cancel.cancelled() => {
                        self.life.world(|world| world.wire.close_socket());
                    }
                    Some(()) = taken.next(), if !taken.is_empty() => {}
                    () = self.life.heard.notified() => {}
                }
            }
            self.retry("the connection broke").await;
        }
        while taken.next().await.is_some() {}
    }

    /// Takes an event in and acknowledges it, if its socket is still there then.
    async fn take(&self, socket: u64, event: EventNumber, delivery: i64) {
        self.reporter.heard();
        self.life.step("received").await;
        if self.acknowledges_first() {
            self.acknowledge(socket, event);
        }
        let envelope = self.envelope(event, delivery);
        let accepted = self.intake.accept(envelope).await;
        self.life.step("before an acknowledgement").await;
        if accepted.is_ok() {
            self.acknowledge(socket, event);
            self.reporter.acknowledged(1);
        }
    }

    fn acknowledge(&self, socket: u64, event: EventNumber) {
        self.life.world(|world| {
            if !world.wire.has_socket(socket) {
                return;
            }
            let name = world.name_of(event);
            if world.fails(30) {
                world.note(format_args!(
                    "the acknowledgement of {name} breaks the connection"
                ));
                world.wire.close_socket();
                return;
            }
            world.note(format_args!("{name} is acknowledged"));
            world.wire.acknowledge(event);
        });
    }

    async fn keep_polling(&self) {
        let mut offset = 0;
        self.reporter.state(ConnectionState::Connecting);
        while !self.cancel.is_cancelled() {
            self.life.step("before a poll").await;
            if self.life.world(|world| world.is_out() || world.fails(80)) {
                self.retry("the poll failed").await;
                continue;
            }
            let updates = self.life.world(|world| world.wire.updates(offset));
            self.reporter
                .state(ConnectionState::Connected { connections: 1 });
            if updates.is_empty() {
                tokio::select! {
                    biased;
                    () = self.cancel.cancelled() => {}
                    () = self.life.heard.notified() => {}
                    () = tokio::time::sleep(POLL) => {}
                }
                continue;
            }
            self.life.linger(10, 200).await;
            if self.life.world(|world| world.fails(50)) {
                self.retry("the answer to a poll was lost").await;
                continue;
            }
            self.life.hear_date();
            offset = self.take_batch(updates, offset).await;
        }
    }

    /// Takes in a batch; returns the offset after the last update that was committed.
    async fn take_batch(&self, updates: Vec<(i64, EventNumber)>, offset: i64) -> i64 {
        self.reporter.heard();
        let after = |id: i64| id + 1;
        let end = updates.last().map_or(offset, |(id, _)| after(*id));
        if self.acknowledges_first() {
            self.life.world(|world| world.wire.confirm(end));
        }
        let taken = updates.iter().map(|(id, event)| async move {
            self.life.step("received").await;
            let envelope = self.envelope(*event, *id);
            self.intake.accept(envelope).await
        });
        let taken = join_all(taken).await;
        let refused = taken.iter().position(Result::is_err);
        self.life.world(|world| {
            let count = refused.unwrap_or(updates.len());
            world.note(format_args!(
                "{count} of {} updates are taken in",
                updates.len()
            ));
        });
        match refused {
            Some(refused) => {
                self.pause(1_000).await;
                updates[refused].0
            }
            None => end,
        }
    }
}

/// Gives a message its delivery id as identity, as a faulty adapter would.
fn forge_identity(event: &mut vocative_contract::envelope::Event, delivery: i64) {
    use vocative_contract::envelope::Event;
    if let Event::Posted(message) = event {
        message.message_id = format!("{}{delivery:03}", message.message_id);
    }
}
