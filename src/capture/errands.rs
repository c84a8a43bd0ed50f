//! What people asked the daemon itself for and is still to be done. A hint only: inquiries are rows, and
//! orders to erase that nobody carried out are carried out at the next start.

use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use vocative_core::ids::ErasureId;

/// The most orders to erase that wait in memory; the next start carries out the rest from the ledger.
const ERASURES_MAX: usize = 1_000;

/// What is to be done. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub struct Errands {
    bell: Arc<Notify>,
    erasures: Arc<Mutex<Vec<ErasureId>>>,
}

impl Errands {
    /// Says that there is something to do, with orders to erase that were committed.
    pub fn ring(&self, erasures: &[ErasureId]) {
        let mut waiting = self.waiting();
        let free = ERASURES_MAX.saturating_sub(waiting.len());
        waiting.extend(erasures.iter().take(free));
        drop(waiting);
        self.bell.notify_one();
    }

    /// Waits until there is something to do.
    pub async fn rung(&self) {
        self.bell.notified().await;
    }

    /// Takes the orders to erase that wait.
    #[must_use]
    pub fn take_erasures(&self) -> Vec<ErasureId> {
        std::mem::take(&mut *self.waiting())
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Vec<ErasureId>> {
        self.erasures.lock().expect("no holder of this lock panics")
    }
}
