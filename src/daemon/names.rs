//! Looks up the names of people and chats that events did not carry. Never between an event and its
//! commit.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};
use vocative_channels::rate::Paces;
use vocative_contract::envelope::{Sender, SenderKind};
use vocative_contract::error::ChannelError;

use crate::capture::name_hints::NameHints;
use crate::delivery::rooms::{Room, Rooms};
use vocative_core::ids::AccountId;
use vocative_store::{Capturing, Store, StoreError};

/// The most names that are looked up at a time.
const NAMES_AT_ONCE: usize = 20;
/// How often names are looked up when no prompt asks for them and no new person was heard.
const EVERY: Duration = Duration::from_secs(30);
/// The wait before names of newly heard people are looked up: several may come together, and their commits have
/// priority.
const SOON: Duration = Duration::from_secs(1);
/// Between two look-ups of an account in the background, beyond the first [`NAMES_AT_ONCE`], in milliseconds.
/// Source: `conversations.info` and `users.info` are of Slack's third and fourth tier, 50 and 100 a minute.
const LOOK_UP_EVERY_MS: u64 = 1_500;
/// How long look-ups of people, or of chats, pause for an account after the platform refused them entirely.
const REFUSED_FOR: Duration = Duration::from_secs(600);

/// How long a look-up that found no name is not repeated.
const AGAIN_AFTER: Duration = Duration::from_secs(3_600);
/// The most look-ups without a name that are remembered; at this number all are forgotten.
const VAIN_MAX: usize = 10_000;

/// Looks names up, and remembers for a while what has none. Cloning shares it.
#[derive(Clone)]
pub struct NameFinder {
    store: Store<Capturing>,
    rooms: Rooms,
    vain: Arc<Mutex<HashMap<(AccountId, String), Instant>>>,
    refused: Arc<Mutex<HashMap<(AccountId, NamedKind), Instant>>>,
    paces: Arc<Paces>,
}

/// The kind of thing that has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum NamedKind {
    Person,
    Chat,
}

/// The result of a look-up.
enum LookedUp {
    /// A name, which is stored.
    Named,
    /// The person or chat has no name.
    Nameless,
    Failed(ChannelError),
}

/// The caller of a look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NamesAsker {
    /// A prompt that waits for it.
    Prompt,
    /// Background work: the pace is kept.
    Background,
}

impl NameFinder {
    /// A finder that has made no look-up yet.
    #[must_use]
    pub fn new(store: Store<Capturing>, rooms: Rooms) -> Self {
        Self {
            store,
            rooms,
            vain: Arc::default(),
            refused: Arc::default(),
            paces: Arc::new(Paces::new(NAMES_AT_ONCE as u32, LOOK_UP_EVERY_MS)),
        }
    }

    /// Looks up the names that an account's newest turns lack, for a prompt that waits for them.
    pub async fn learn(&self, account: AccountId) {
        self.learn_for(NamesAsker::Prompt, account).await;
    }

    /// Looks up names of all accounts now and then, and soon after a person or room without a name was heard, until
    /// cancelled.
    pub async fn keep_learning(self, hints: NameHints, cancel: CancellationToken) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(EVERY) => {}
                () = hints.rung() => tokio::time::sleep(SOON).await,
                () = cancel.cancelled() => return,
            }
            for account in self.rooms.accounts() {
                let learning = self.learn_for(NamesAsker::Background, account);
                if cancel.run_until_cancelled(learning).await.is_none() {
                    return;
                }
            }
        }
    }

    async fn learn_for(&self, asker: NamesAsker, account: AccountId) {
        let Some(room) = self.rooms.get(account) else {
            return;
        };
        if let Err(cause) = self.learn_in(&room, account, asker).await {
            warn!(error = %cause, channel.id = %room.channel, "names could not be stored");
        }
    }

    /// Looks up chats first: the list and the address of a room use its name. If people can't be looked up, chats
    /// still may be.
    async fn learn_in(
        &self,
        room: &Room,
        account: AccountId,
        asker: NamesAsker,
    ) -> Result<(), StoreError> {
        let limit = NAMES_AT_ONCE + self.vain_count(account);
        let (people, chats) = self.store.unnamed(account, limit).await?;
        for (kind, ids) in [(NamedKind::Chat, chats), (NamedKind::Person, people)] {
            for id in self.open(account, ids) {
                if self.is_refused(account, kind) || !self.may_ask(account, asker) {
                    break;
                }
                match self.look_up(room, account, kind, &id).await? {
                    LookedUp::Named => {}
                    LookedUp::Nameless => self.note_vain(account, id),
                    LookedUp::Failed(cause) if is_about_one(&cause) => self.note_vain(account, id),
                    LookedUp::Failed(cause) => {
                        self.note_failure(room, account, kind, &cause);
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Looks up one name and stores it.
    async fn look_up(
        &self,
        room: &Room,
        account: AccountId,
        kind: NamedKind,
        id: &str,
    ) -> Result<LookedUp, StoreError> {
        let is_named = match kind {
            NamedKind::Person => match room.look_ups.person_name(id).await {
                Ok(Some(name)) => {
                    let named = person(id.to_owned(), name);
                    self.store.learn_person(account, named).await?;
                    true
                }
                Ok(None) => false,
                Err(cause) => return Ok(LookedUp::Failed(cause)),
            },
            NamedKind::Chat => match room.look_ups.chat_facts(id).await {
                Ok(place) => {
                    let is_named = place.title.is_some();
                    self.store.learn_place(account, place, 0).await?;
                    is_named
                }
                Err(cause) => return Ok(LookedUp::Failed(cause)),
            },
        };
        Ok(match is_named {
            true => LookedUp::Named,
            false => LookedUp::Nameless,
        })
    }

    fn may_ask(&self, account: AccountId, asker: NamesAsker) -> bool {
        let pace = self.paces.of(&account.0.to_string());
        pace.try_turn(Instant::now()).is_ok() || asker == NamesAsker::Prompt
    }

    fn is_refused(&self, account: AccountId, kind: NamedKind) -> bool {
        let refused = self.refused.lock().expect("no holder of this lock panics");
        let until = refused.get(&(account, kind));
        until.is_some_and(|until| *until > Instant::now())
    }

    /// Pauses look-ups after a lasting refusal of the account, such as a missing scope; anything else is tried again
    /// at the next pass.
    fn note_failure(&self, room: &Room, account: AccountId, kind: NamedKind, cause: &ChannelError) {
        let reason = cause.reason();
        debug!(channel.id = %room.channel, ?kind, error = %reason, "names could not be looked up");
        if matches!(cause, ChannelError::Unauthorized { .. }) {
            let mut refused = self.refused.lock().expect("no holder of this lock panics");
            refused.insert((account, kind), Instant::now() + REFUSED_FOR);
        }
    }

    /// The ids that were not looked up yet, limited in number.
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

/// Whether a failure concerns this person or chat only, not the platform.
fn is_about_one(cause: &ChannelError) -> bool {
    matches!(
        cause,
        ChannelError::Rejected { .. }
            | ChannelError::ChatRefused { .. }
            | ChannelError::ChatMoved { .. }
    )
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use vocative_store::StoreOptions;

    fn names() -> NameFinder {
        let options = StoreOptions {
            path: None,
            readers: 1,
            page_cache_kib: 1_024,
        };
        let (store, _) = Store::open(&options, 0).unwrap();
        NameFinder::new(store.only(), Rooms::default())
    }

    #[tokio::test(start_paused = true)]
    async fn the_background_keeps_a_pace_and_a_prompt_does_not_wait_for_it() {
        let names = names();
        let (first, second) = (AccountId(1), AccountId(2));
        let asks = |account| {
            let asked = (0..100).filter(|_| names.may_ask(account, NamesAsker::Background));
            asked.count()
        };
        assert_eq!([asks(first), asks(second)], [NAMES_AT_ONCE; 2]);
        assert!(names.may_ask(first, NamesAsker::Prompt));
        tokio::time::advance(Duration::from_secs(15)).await;
        assert_eq!(asks(first), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_asked_in_vain_rests() {
        let names = names();
        let account = AccountId(1);
        let open = || names.open(account, vec!["C1".to_owned(), "C2".to_owned()]);
        names.note_vain(account, "C1".to_owned());
        assert_eq!(open(), ["C2"]);
        tokio::time::advance(AGAIN_AFTER).await;
        assert_eq!(open(), ["C1", "C2"]);
        for n in 0..VAIN_MAX + 10 {
            names.note_vain(account, n.to_string());
        }
        assert!(names.vain_count(account) <= VAIN_MAX);
    }
}
