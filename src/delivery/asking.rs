//! Asks the platform about the numbers that a post of unknown outcome may have, one per claim: what was learnt is
//! stored before and after each question, so that a kill costs only one question, and no lease lasts longer than one.

use tracing::debug;
use vocative_contract::crash::{self, Sabotage};
use vocative_contract::error::ChannelError;
use vocative_contract::outbound::Delivered;
use vocative_contract::probe::Prober;

use crate::delivery::rooms::Room;
use crate::delivery::worker::{DeliveryWorker, persist};
use vocative_core::outbox::ClaimedEntry;
use vocative_core::outbox::OutboxUpdate;
use vocative_core::probing::{ProbeFacts, Probing};
use vocative_core::sending::after::{after_not_found, after_undecided, look_wait_ms};
use vocative_core::sending::probe::{ProbeStep, Terms, learn, step};
use vocative_store::contract::LeaseOutcome;

/// The messages that a post or an upload creates: no operation creates an album.
const MESSAGES_OF_POST: usize = 1;
/// The shortest time between two questions about one chat, in milliseconds.
const ASK_EVERY_MS: i64 = 1_000;

impl DeliveryWorker {
    /// Puts the next question about a post, or decides without one. `None` if the lease was lost.
    pub(super) async fn probe(
        &self,
        claimed: &ClaimedEntry,
        room: &Room,
        prober: &dyn Prober,
    ) -> Option<OutboxUpdate> {
        let entry = &claimed.entry;
        let known = match self.store.probing(entry.id).await {
            Ok(known) => known,
            Err(cause) => return Some(self.later(claimed, room, cause.to_string())),
        };
        let undecided = |reason: &str| Some(after_undecided(entry, &room.delivery, reason));
        let Some((mut probing, facts)) = known else {
            return undecided("the platform can't be asked about this chat");
        };
        let sequence = prober.sequence(&entry.target.chat);
        if sequence.is_none_or(|sequence| sequence.name != facts.sequence) {
            return undecided("the chat has moved, or others may post as this bot");
        }
        let terms = Terms {
            wanted: MESSAGES_OF_POST,
            look_back_ms: room.delivery.look_back_ms,
            give_up_ms: room.delivery.undecided_after_ms(),
            takes_empty_for_proof: crash::is_sabotaged(Sabotage::EmptyIsProof),
        };
        match step(&mut probing, &facts, &terms) {
            ProbeStep::Ask(number) => {
                let asked = ProbeQuestion {
                    facts: &facts,
                    terms: &terms,
                    number,
                };
                self.ask(claimed, room, prober, probing, &asked).await
            }
            step => self.conclude(claimed, room, probing, step).await,
        }
    }

    async fn ask(
        &self,
        claimed: &ClaimedEntry,
        room: &Room,
        prober: &dyn Prober,
        mut probing: Probing,
        asked: &ProbeQuestion<'_>,
    ) -> Option<OutboxUpdate> {
        let entry = &claimed.entry;
        let chat = &entry.target.chat;
        let wait = prober.wait_before_probe(chat);
        if !wait.is_zero() {
            let wait_ms = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX / 2);
            let reason = "the platform is asked only so often".to_owned();
            return Some(self.look_in(wait_ms.max(1), reason));
        }
        crash::point("look.before");
        probing.asked += 1;
        self.keep(claimed, &probing).await?;
        let answered = prober.probe(chat, asked.number).await;
        crash::point("look.after");
        debug!(
            channel.id = %room.channel, post.id = %entry.id, number = asked.number, ?answered,
            "the platform was asked about a message"
        );
        match answered {
            Ok(probed) => {
                let end = learn(
                    &mut probing,
                    asked.facts,
                    asked.terms,
                    asked.number,
                    &probed,
                );
                match end {
                    Some(step) => self.conclude(claimed, room, probing, step).await,
                    None => {
                        self.keep(claimed, &probing).await?;
                        Some(self.look_in(ASK_EVERY_MS, "being looked for".to_owned()))
                    }
                }
            }
            Err(ChannelError::Unauthorized { reason, .. }) => {
                Some(OutboxUpdate::HoldAccount { reason })
            }
            Err(
                error @ (ChannelError::NotSent { .. }
                | ChannelError::OutcomeUnknown { .. }
                | ChannelError::RetryAfter { .. }),
            ) => {
                // Nothing was learnt, so the question does not count.
                probing.asked -= 1;
                self.keep(claimed, &probing).await?;
                Some(match error {
                    ChannelError::RetryAfter { wait_ms, .. } => {
                        let wait_ms = i64::try_from(wait_ms).unwrap_or(i64::MAX / 2);
                        self.look_in(wait_ms, error.reason())
                    }
                    _ => self.later(claimed, room, error.reason()),
                })
            }
            Err(error) => Some(after_undecided(entry, &room.delivery, &error.reason())),
        }
    }

    async fn conclude(
        &self,
        claimed: &ClaimedEntry,
        room: &Room,
        probing: Probing,
        step: ProbeStep,
    ) -> Option<OutboxUpdate> {
        let entry = &claimed.entry;
        Some(match step {
            ProbeStep::Ask(_) => self.look_in(ASK_EVERY_MS, "being looked for".to_owned()),
            ProbeStep::Wait(wait_ms) => {
                self.keep(claimed, &probing).await?;
                self.look_in(wait_ms, "not found yet".to_owned())
            }
            ProbeStep::Sent(ids) => OutboxUpdate::Sent(Delivered {
                chat: entry.target.chat.clone(),
                message_id: ids.first().map(ToString::to_string).unwrap_or_default(),
                sent_at_ms: (self.clock)(),
                shown: None,
            }),
            ProbeStep::Absent => after_not_found(entry),
            ProbeStep::Undecided(reason) => after_undecided(entry, &room.delivery, reason),
        })
    }

    async fn keep(&self, claimed: &ClaimedEntry, probing: &Probing) -> Option<()> {
        let keep = || {
            self.store
                .keep_probing(claimed.entry.id, claimed.token, probing.clone())
        };
        match persist(claimed.entry.id, keep).await {
            LeaseOutcome::Written => Some(()),
            LeaseOutcome::Stale => None,
        }
    }

    fn later(&self, claimed: &ClaimedEntry, room: &Room, reason: String) -> OutboxUpdate {
        self.look_in(look_wait_ms(&claimed.entry, &room.delivery), reason)
    }

    fn look_in(&self, wait_ms: i64, reason: String) -> OutboxUpdate {
        OutboxUpdate::Look {
            not_before_ms: (self.clock)().saturating_add(wait_ms),
            reason,
        }
    }
}

/// A question.
struct ProbeQuestion<'a> {
    facts: &'a ProbeFacts,
    terms: &'a Terms,
    number: i64,
}
