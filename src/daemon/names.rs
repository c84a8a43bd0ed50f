//! Looks up the names of people and chats that events did not carry. Never between an event and its
//! commit.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};
use vocative_channels::envelope::{Sender, SenderKind};

use crate::delivery::rooms::{Room, Rooms};
use crate::domain::ids::AccountId;
use crate::store::{Store, StoreError};

/// At most so many names are looked up at a time.
const NAMES_AT_ONCE: usize = 20;
/// How often names are looked up when no prompt asks for them.
const EVERY: Duration = Duration::from_secs(30);

/// Looks up what an account's newest turns lack.
pub async fn learn_names(store: Store, rooms: Rooms, account: AccountId) {
    let Some(room) = rooms.get(account) else {
        return;
    };
    if let Err(cause) = learn(&store, &room, account).await {
        warn!(error = %cause, channel.id = %room.channel, "names could not be stored");
    }
}

async fn learn(store: &Store, room: &Room, account: AccountId) -> Result<(), StoreError> {
    let (people, chats) = store.unnamed(account, NAMES_AT_ONCE).await?;
    for id in people {
        match room.outbound.person_name(&id).await {
            Ok(Some(name)) => store.learn_person(account, person(id, name)).await?,
            Ok(None) => {}
            Err(cause) => {
                debug!(channel.id = %room.channel, error = %cause.reason(), "a name could not be looked up");
                return Ok(());
            }
        }
    }
    for chat in chats {
        match room.outbound.chat_facts(&chat).await {
            Ok(place) => store.learn_place(account, place, 0).await?,
            Err(cause) => {
                debug!(channel.id = %room.channel, error = %cause.reason(), "a chat could not be looked up");
                return Ok(());
            }
        }
    }
    Ok(())
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

/// Looks up names of all accounts now and then, until cancelled.
pub async fn keep_learning(store: Store, rooms: Rooms, cancel: CancellationToken) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            () = cancel.cancelled() => return,
        }
        for account in rooms.accounts() {
            learn_names(store.clone(), rooms.clone(), account).await;
        }
    }
}
