//! Room on the disk for files that are on their way: promised before a transfer starts, so that all of
//! them together stay within the limit.

use std::future::Future;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

/// What is promised of the disk.
#[derive(Debug, Default)]
pub struct Space {
    promised: Mutex<u64>,
    /// One promise at a time: what is stored is read for each.
    turn: tokio::sync::Mutex<()>,
    freed: Notify,
}

/// A promise; it ends when this is dropped, which is once the bytes are stored or given up.
#[derive(Debug)]
pub struct Promise<'a> {
    space: &'a Space,
    bytes: u64,
}

impl Promise<'_> {
    /// For how many bytes it is.
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
    /// Promises room for so many bytes beside what is `stored`. Where what is on its way may leave none, it
    /// waits until that is known; `None` = there is none.
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
            // Before the look: what is freed after it is not missed.
            let freed = self.freed.notified();
            let turn = self.turn.lock().await;
            // Also before it: a promise that ends meanwhile may be of bytes that were not counted as stored yet.
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
                // Told are 30 bytes; every other one brings 10 of them.
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
