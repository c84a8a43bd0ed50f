//! What people see of posts, and the worker that sends them.

use std::collections::BTreeMap;

use vocative_contract::outbound::{Delivered, Operation, Part};
use vocative_core::ids::OutboxId;
use vocative_core::outbox::{ClaimedEntry, OutboxUpdate};
use vocative_core::run::ClaimedRun;
use vocative_store::contract::{CommittedReply, ReplyCommit};

use crate::scene::{LEASE_MS, Scene};

/// A room on a platform.
pub(crate) struct World {
    pub(crate) scene: Scene,
    /// Texts by message id, in the order in which they came: p0, p1 and so on.
    pub(crate) shown: BTreeMap<String, String>,
    /// The messages that posts became: those that a look finds.
    pub(crate) marked: BTreeMap<OutboxId, String>,
    pub(crate) posted: usize,
    /// What the platform finds too long; its words are the parts that it takes.
    pub(crate) too_long: Option<&'static str>,
    pub(crate) now_ms: i64,
}

impl World {
    pub(crate) async fn at(now_ms: i64) -> Self {
        Self {
            scene: Scene::open().await,
            shown: BTreeMap::new(),
            marked: BTreeMap::new(),
            posted: 0,
            too_long: None,
            now_ms,
        }
    }

    /// A reply of these parts, to be committed.
    pub(crate) async fn answer(&self, run: &ClaimedRun, parts: &[&str]) -> ReplyCommit {
        ReplyCommit {
            parts: parts.iter().map(|part| Part::plain(*part)).collect(),
            now_ms: self.now_ms,
            ..self.scene.answer(run, &parts.join(" ")).await
        }
    }

    pub(crate) async fn commit(&self, run: &ClaimedRun, parts: &[&str]) -> CommittedReply {
        let answer = self.answer(run, parts).await;
        self.scene.store.commit_reply(answer).await.unwrap()
    }

    pub(crate) async fn claim_posts(&mut self) -> Vec<ClaimedEntry> {
        self.now_ms += 1;
        self.scene.claim_posts(self.now_ms).await
    }

    pub(crate) async fn claim_post(&mut self) -> ClaimedEntry {
        self.claim_posts().await.pop().expect("a post that may go")
    }

    pub(crate) async fn start(&self, claim: &ClaimedEntry) {
        self.scene.start(claim, self.now_ms).await;
    }

    pub(crate) async fn update(&self, claim: &ClaimedEntry, update: OutboxUpdate) {
        self.scene.update(claim, update, self.now_ms).await;
    }

    /// What the platform does with a request.
    pub(crate) fn apply(&mut self, claim: &ClaimedEntry) -> OutboxUpdate {
        let entry = &claim.entry;
        let text = entry.part.text.clone();
        let instead = |parts, operation, reason: &str| OutboxUpdate::Replace {
            parts,
            target: entry.target.clone(),
            operation,
            reason: reason.to_owned(),
        };
        if self.too_long == Some(&text) {
            let parts = text.split(' ').map(Part::plain).collect();
            return instead(parts, entry.operation.clone(), "msg_too_long");
        }
        let message_id = match &entry.operation {
            Operation::Delete { message_id } => {
                self.shown.remove(message_id);
                message_id.clone()
            }
            Operation::Edit { message_id } => {
                let Some(shown) = self.shown.get_mut(message_id) else {
                    let part = vec![entry.part.clone()];
                    return instead(part, Operation::Post, "message_not_found");
                };
                *shown = text;
                message_id.clone()
            }
            _ => {
                let message_id = format!("p{}", self.posted);
                self.posted += 1;
                self.shown.insert(message_id.clone(), text);
                self.marked.insert(entry.id, message_id.clone());
                message_id
            }
        };
        self.sent(claim, message_id)
    }

    fn sent(&self, claim: &ClaimedEntry, message_id: String) -> OutboxUpdate {
        OutboxUpdate::Sent(Delivered {
            chat: claim.entry.target.chat.clone(),
            message_id,
            sent_at_ms: self.now_ms,
            shown: None,
        })
    }

    /// A request gets there, and its answer back.
    pub(crate) async fn send(&mut self, claim: &ClaimedEntry) {
        self.start(claim).await;
        self.arrive(claim).await;
    }

    /// The same of one that is on its way.
    pub(crate) async fn arrive(&mut self, claim: &ClaimedEntry) {
        let update = self.apply(claim);
        self.update(claim, update).await;
    }

    /// What was lost is looked for.
    async fn look(&self, claim: &ClaimedEntry) {
        let update = match self.marked.get(&claim.entry.id) {
            Some(message_id) => self.sent(claim, message_id.clone()),
            None => OutboxUpdate::Resend {
                reason: "not there".to_owned(),
            },
        };
        self.update(claim, update).await;
    }

    /// Does all there is to do, as the delivery worker does.
    pub(crate) async fn drain(&mut self) {
        for _ in 0..30 {
            if self.scene.store.next_post_due_ms().await.unwrap().is_none() {
                return;
            }
            for claim in self.claim_posts().await {
                if claim.is_unknown && !claim.entry.operation.is_repeatable() {
                    self.look(&claim).await;
                } else {
                    self.send(&claim).await;
                }
            }
            self.now_ms += LEASE_MS;
        }
        panic!("something waits for ever");
    }

    pub(crate) fn texts(&self) -> Vec<&str> {
        self.shown.values().map(String::as_str).collect()
    }
}
