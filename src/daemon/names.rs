//! Looks up the names of people and chats that events did not carry. Never between an event and its
//! commit.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};
use vocative_channels::envelope::{Sender, SenderKind};
use vocative_channels::error::ChannelError;

use crate::delivery::rooms::{Room, Rooms};
use crate::domain::ids::AccountId;
use crate::store::{Store, StoreError};

/// At most so many names are looked up at a time.
const NAMES_AT_ONCE: usize = 20;
/// How often names are looked up when no prompt asks for them.
const EVERY: Duration = Duration::from_secs(30);

/// Who was asked for in vain is asked for again after this.
const AGAIN_AFTER: Duration = Duration::from_secs(3_600);
/// So many vain look-ups are remembered; more are forgotten together.
const VAIN_MAX: usize = 10_000;

/// Looks names up, and remembers for a while what has none. Cloning shares it.
#[derive(Clone)]
pub struct Names {
    store: Store,
    rooms: Rooms,
    vain: Arc<Mutex<HashMap<(AccountId, String), Instant>>>,
}

impl Names {
    /// Nothing was looked up yet.
    #[must_use]
    pub fn new(store: Store, rooms: Rooms) -> Self {
        Self {
            store,
            rooms,
            vain: Arc::default(),
        }
    }

    /// Looks up what an account's newest turns lack.
    pub async fn learn(&self, account: AccountId) {
        let Some(room) = self.rooms.get(account) else {
            return;
        };
        if let Err(cause) = self.learn_in(&room, account).await {
            warn!(error = %cause, channel.id = %room.channel, "names could not be stored");
        }
    }

    /// Looks up names of all accounts now and then, until cancelled.
    pub async fn keep_learning(self, cancel: CancellationToken) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(EVERY) => {}
                () = cancel.cancelled() => return,
            }
            for account in self.rooms.accounts() {
                self.learn(account).await;
            }
        }
    }

    async fn learn_in(&self, room: &Room, account: AccountId) -> Result<(), StoreError> {
        let limit = NAMES_AT_ONCE + self.vain_count(account);
        let (people, chats) = self.store.unnamed(account, limit).await?;
        for id in self.open(account, people) {
            match room.outbound.person_name(&id).await {
                Ok(Some(name)) => self.store.learn_person(account, person(id, name)).await?,
                Ok(None) => self.note_vain(account, id),
                Err(cause) if is_about_one(&cause) => self.note_vain(account, id),
                Err(cause) => {
                    note_failure(room, &cause);
                    return Ok(());
                }
            }
        }
        for chat in self.open(account, chats) {
            match room.outbound.chat_facts(&chat).await {
                Ok(place) => {
                    if place.title.is_none() {
                        self.note_vain(account, chat);
                    }
                    self.store.learn_place(account, place, 0).await?;
                }
                Err(cause) if is_about_one(&cause) => self.note_vain(account, chat),
                Err(cause) => {
                    note_failure(room, &cause);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Those of which nothing is known yet, not too many.
    fn open(&self, account: AccountId, ids: Vec<String>) -> Vec<String> {
        let vain = self.vain();
        let is_open = |id: &String| {
            let asked = vain.get(&(account, id.clone()));
            asked.is_none_or(|asked| asked.elapsed() >= AGAIN_AFTER)
        };
        ids.into_iter()
            .filter(is_open)
            .take(NAMES_AT_ONCE)
            .collect()
    }

    fn note_vain(&self, account: AccountId, id: String) {
        let mut vain = self.vain();
        if vain.len() >= VAIN_MAX {
            vain.clear();
        }
        vain.insert((account, id), Instant::now());
    }

    fn vain_count(&self, account: AccountId) -> usize {
        self.vain().keys().filter(|(of, _)| *of == account).count()
    }

    fn vain(&self) -> MutexGuard<'_, HashMap<(AccountId, String), Instant>> {
        self.vain.lock().expect("no holder of this lock panics")
    }
}

/// Whether a failure says something about this one only, not about the platform.
fn is_about_one(cause: &ChannelError) -> bool {
    matches!(
        cause,
        ChannelError::Rejected { .. }
            | ChannelError::ChatRefused { .. }
            | ChannelError::ChatMoved { .. }
    )
}

fn note_failure(room: &Room, cause: &ChannelError) {
    debug!(channel.id = %room.channel, error = %cause.reason(), "names could not be looked up");
}

fn person(id: String, name: String) -> Sender {
    Sender {
        id,
        display_name: Some(name),
        username: None,
        kind: SenderKind::Person,
        is_stranger: false,
    }
}
