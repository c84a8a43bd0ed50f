//! Disk space for files that are on their way: promised before a transfer starts, so that all of them together stay
//! within the limit.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use tracing::info;
use vocative_store::{Store, StoreError, Working};

use crate::capture::clock::Clock;
use crate::counters::{CountedEvent, Counters};

/// If there is no room, a twentieth of the whole limit is freed at once: finding out which files were read costs more
/// than one file is worth.
const EVICTED_SHARE: u64 = 20;
/// Files that were fetched or read within this time are not removed, in milliseconds.
const KEPT_FOR_MS: i64 = 3_600_000;

/// The promised disk space.
#[derive(Debug, Default)]
pub struct Space {
    promised: Mutex<u64>,
    /// One promise at a time: each reads how much is stored.
    turn: tokio::sync::Mutex<()>,
    freed: Notify,
}

/// A promise; dropping it ends it, which happens once the bytes are stored or given up.
#[derive(Debug)]
pub struct Promise<'a> {
    space: &'a Space,
    bytes: u64,
}

impl Promise<'_> {
    /// The number of bytes that are promised.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Promise<'_> {
    fn drop(&mut self) {
        let mut promised = lock(&self.space.promised);
        *promised = promised.saturating_sub(self.bytes);
        drop(promised);
        self.space.freed.notify_waiters();
    }
}

impl Space {
    /// Promises room for `bytes` in addition to what is `stored`. If transfers on their way may leave none, it waits
    /// until that is known; `None` = there is none.
    ///
    /// # Errors
    /// Whatever `stored` fails with.
    pub async fn promise<E, F: Future<Output = Result<u64, E>>>(
        &self,
        bytes: u64,
        bytes_max: u64,
        stored: impl Fn() -> F,
    ) -> Result<Option<Promise<'_>>, E> {
        loop {
            // Before the check, so that space freed after it is not missed.
            let freed = self.freed.notified();
            let turn = self.turn.lock().await;
            // Also before it: a promise that ends meanwhile may be for bytes that were not yet counted as stored.
            let promised = *lock(&self.promised);
            let wanted = stored().await?.saturating_add(bytes);
            if wanted > bytes_max {
                return Ok(None);
            }
            if promised <= bytes_max - wanted {
                *lock(&self.promised) += bytes;
                return Ok(Some(Promise { space: self, bytes }));
            }
            drop(turn);
            freed.await;
        }
    }
}

/// Disk space for contents, within the limit for all of them together. Contents that were read long ago are removed
/// to make room.
pub struct ContentRoom {
    store: Store<Working>,
    bytes_max: u64,
    counters: Arc<Counters>,
    clock: Clock,
    space: Space,
}

impl ContentRoom {
    /// Disk space with a limit of `bytes_max` in all.
    #[must_use]
    pub fn new(
        store: Store<Working>,
        bytes_max: u64,
        counters: Arc<Counters>,
        clock: Clock,
    ) -> Self {
        Self {
            store,
            bytes_max,
            counters,
            clock,
            space: Space::default(),
        }
    }

    /// Promises room for `bytes`; `None` = there is none.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn promise(&self, bytes: u64) -> Result<Option<Promise<'_>>, StoreError> {
        let bytes_max = self.bytes_max;
        let stored = || self.store.content_bytes();
        let promise = self.space.promise(bytes, bytes_max, stored).await?;
        if promise.is_some() || bytes > bytes_max {
            return Ok(promise);
        }
        let wanted = bytes.max(bytes_max / EVICTED_SHARE);
        let now_ms = (self.clock)();
        let evicted = self
            .store
            .evict_contents(wanted, now_ms - KEPT_FOR_MS, now_ms);
        let freed = evicted.await?;
        if freed == 0 {
            return Ok(None);
        }
        self.counters.add(CountedEvent::FileBytesEvicted, freed);
        info!(
            freed_bytes = freed,
            "files that were read long ago made room for newer ones"
        );
        self.store.remove_dropped().await?;
        self.space.promise(bytes, bytes_max, stored).await
    }
}

fn lock(promised: &Mutex<u64>) -> std::sync::MutexGuard<'_, u64> {
    promised.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[tokio::test]
    async fn what_is_on_its_way_never_passes_the_limit_and_nothing_is_refused_too_early() {
        const FILES: u64 = 40;
        let space = Arc::new(Space::default());
        let stored = Arc::new(AtomicU64::new(0));
        let mut coming = tokio::task::JoinSet::new();
        for _ in 0..FILES {
            let (space, stored) = (Arc::clone(&space), Arc::clone(&stored));
            coming.spawn(async move {
                let read = || async { Ok::<u64, ()>(stored.load(Ordering::SeqCst)) };
                // 30 bytes are announced; every other transfer brings 10 of them.
                let Some(promise) = space.promise(30, 100, read).await.unwrap() else {
                    return false;
                };
                tokio::task::yield_now().await;
                assert!(stored.fetch_add(10, Ordering::SeqCst) + 10 <= 100);
                drop(promise);
                true
            });
        }
        let done = coming.join_all().await;
        // 8 of 10 bytes: then 30 more could pass the limit.
        assert_eq!(done.iter().filter(|done| **done).count(), 8);
        assert_eq!(*lock(&space.promised), 0);
    }

    #[tokio::test]
    async fn what_is_stored_while_it_is_counted_is_not_missed() {
        let space = Space::default();
        let stored = AtomicU64::new(0);
        let first = space.promise(60, 100, || async { Ok::<u64, ()>(0) });
        let first = Mutex::new(first.await.unwrap());
        let read = || async {
            let counted = stored.load(Ordering::SeqCst);
            if let Some(promise) = first.lock().unwrap().take() {
                stored.fetch_add(promise.bytes(), Ordering::SeqCst);
            }
            Ok::<u64, ()>(counted)
        };
        assert!(space.promise(60, 100, read).await.unwrap().is_none());
    }
}
