//! The steps once a channel is identified: its account is bound, its room opened, its intake made.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tracing::{info, warn};
use vocative_channels::backoff::Backoff;
use vocative_contract::channel::{Announcement, Channel, Intake};
use vocative_contract::identity::Identity;

use crate::catchup::ChatReader;
use crate::catchup::keeper::CatchupKeeper;
use crate::daemon::shared::{Announcer, BoundAs, Shared};
use crate::daemon::supervise::{Bind, BindError, Bound, Lift};
use crate::daemon::wiring;
use vocative_store::contract::AccountBinding;

/// Binds a channel under its configured name, once it is identified.
pub(super) fn bind_with(shared: Arc<Shared>, channel: Arc<dyn Channel>, name: String) -> Bind {
    Arc::new(move |identity| {
        let (shared, channel, name) = (Arc::clone(&shared), Arc::clone(&channel), name.clone());
        Box::pin(bind(shared, channel, name, identity))
    })
}

async fn bind(
    shared: Arc<Shared>,
    channel: Arc<dyn Channel>,
    name: String,
    identity: Identity,
) -> Result<Bound, BindError> {
    shared.claim_account(&name, &identity)?;
    let binding = AccountBinding {
        channel: name.clone(),
        platform: identity.platform,
        account: identity.account.clone(),
        name: identity.account_name.clone(),
    };
    let now_ms = (shared.clock)();
    let taken = shared.accounts_of_others(&name);
    let bound = shared.store.bind_bot(binding, &identity, taken, now_ms);
    let (account, binding) = bound.await?;
    let refused = Arc::new(Notify::new());
    let history = channel.history(&identity);
    let bound_as = BoundAs {
        account,
        identity,
        paired: shared.store.paired(account).await?,
    };
    let intake = shared.open_room(&name, bound_as, &*channel, &refused)?;
    // People may have been let in before there was a gate.
    shared.rooms.admit_paired(&shared.store, account).await?;
    shared.announce(&name, announcer(name.clone(), channel));
    let keeper = history.map(|history| {
        let reader = ChatReader {
            channel: name.clone(),
            account,
            history,
            intake: Arc::clone(&intake),
            store: shared.store.only(),
            clock: shared.time.clock_of(&name),
        };
        let bounds = wiring::bounds(&shared.config());
        let jobs = Arc::clone(&shared.wake.jobs);
        Arc::new(CatchupKeeper::new(reader, bounds, jobs))
    });
    if let Some(keeper) = &keeper {
        keeper.begin().await?;
        shared.keepers.set(keeper);
    }
    let gate = Arc::clone(intake.gate());
    let heard: Arc<dyn Intake> = match &keeper {
        Some(keeper) => Arc::clone(keeper) as Arc<dyn Intake>,
        None => intake,
    };
    Ok(Bound {
        intake: shared.with_surface(&name, account, gate, heard),
        refused,
        lift: lift_with(shared, binding),
        keeper,
    })
}

/// Tells the platform in a task of its own.
fn announcer(name: String, channel: Arc<dyn Channel>) -> Announcer {
    Arc::new(move |announcement| {
        tokio::spawn(announce(name.clone(), Arc::clone(&channel), announcement));
    })
}

/// The most attempts to send the platform the list of commands; after them the next start tries again.
const ANNOUNCE_ATTEMPTS: u32 = 5;

/// Sends the platform the list of commands. Nothing waits for it.
async fn announce(name: String, channel: Arc<dyn Channel>, announcement: Announcement) {
    if announcement.commands.is_empty() {
        return;
    }
    let mut backoff = Backoff::new(1_000, 60_000);
    for _ in 0..ANNOUNCE_ATTEMPTS {
        match channel.announce(&announcement).await {
            Ok(true) => {
                let count = announcement.commands.len();
                info!(channel.id = %name, count, "the platform was told the commands");
                return;
            }
            Ok(false) => return,
            Err(cause) => {
                let reason = cause.reason();
                warn!(channel.id = %name, reason, "the platform could not be told the commands; they work all the same");
            }
        }
        tokio::time::sleep(Duration::from_millis(backoff.next_ms())).await;
    }
}

/// Binding an account again lifts its hold.
fn lift_with(shared: Arc<Shared>, binding: AccountBinding) -> Lift {
    Arc::new(move || {
        let (shared, binding) = (Arc::clone(&shared), binding.clone());
        Box::pin(async move {
            let bound = shared.store.bind_account(binding, (shared.clock)()).await;
            shared.wake.posts.notify_one();
            bound.map(|_| ())
        })
    })
}
