//! Connections without a request under way: which of them goes first when others wait outside.
//!
//! Anybody may connect and say nothing. As long as there is room, that costs nothing; where there is
//! none, the connection that has been silent for the longest makes room, so that silence keeps
//! nobody out. A connection with a whole head is never sent away.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The silent connections of a listener.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    /// Grows with every silence that begins.
    newest: AtomicU64,
    /// By the beginning of their silence.
    silent: Mutex<BTreeMap<u64, Arc<Notify>>>,
}

impl Crowd {
    /// A connection that has just been opened.
    pub(super) fn enter(self: &Arc<Self>) -> CrowdMember {
        let visitor = CrowdMember {
            crowd: Arc::clone(self),
            leave: Arc::default(),
            since: AtomicU64::new(0),
            is_busy: AtomicBool::new(false),
        };
        visitor.become_silent();
        visitor
    }

    /// Asks the connection that has been silent for the longest to go; says whether there is one.
    pub(super) fn send_one_away(&self) -> bool {
        let first = self.silent().pop_first();
        first.map(|(_, leave)| leave.notify_one()).is_some()
    }

    fn silent(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Notify>>> {
        self.silent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One connection.
#[derive(Debug)]
pub(super) struct CrowdMember {
    crowd: Arc<Crowd>,
    leave: Arc<Notify>,
    since: AtomicU64,
    is_busy: AtomicBool,
}

impl CrowdMember {
    /// A request has come.
    pub(super) fn become_busy(&self) {
        self.is_busy.store(true, Ordering::Relaxed);
        let since = self.since.load(Ordering::Relaxed);
        self.crowd.silent().remove(&since);
    }

    /// Its request was answered, or none has come yet.
    pub(super) fn become_silent(&self) {
        self.is_busy.store(false, Ordering::Relaxed);
        let since = self.crowd.newest.fetch_add(1, Ordering::Relaxed);
        self.since.store(since, Ordering::Relaxed);
        let leave = Arc::clone(&self.leave);
        self.crowd.silent().insert(since, leave);
    }

    /// Waits until it is asked to go. If its request comes at the same moment, it stays.
    pub(super) async fn sent_away(&self) {
        loop {
            self.leave.notified().await;
            if !self.is_busy.load(Ordering::Relaxed) {
                return;
            }
        }
    }
}

impl Drop for CrowdMember {
    fn drop(&mut self) {
        self.become_busy();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    async fn is_asked_to_go(visitor: &CrowdMember) -> bool {
        let asked = timeout(Duration::from_millis(1), visitor.sent_away());
        asked.await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_silent_one_goes_first_and_a_busy_one_never() {
        let crowd = Arc::<Crowd>::default();
        let visitors: Vec<_> = (0..3).map(|_| crowd.enter()).collect();
        visitors[0].become_busy();
        assert!(crowd.send_one_away());
        assert!(is_asked_to_go(&visitors[1]).await);
        // Silent again, it is the youngest.
        visitors[0].become_silent();
        assert!(crowd.send_one_away());
        assert!(is_asked_to_go(&visitors[2]).await);
        assert!(!is_asked_to_go(&visitors[0]).await);
        visitors[0].become_busy();
        assert!(!crowd.send_one_away(), "nobody is silent");
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_asked_to_go_while_its_request_comes_is_answered_and_asked_again() {
        let crowd = Arc::<Crowd>::default();
        let visitor = crowd.enter();
        assert!(crowd.send_one_away());
        visitor.become_busy();
        assert!(!is_asked_to_go(&visitor).await);
        visitor.become_silent();
        assert!(!is_asked_to_go(&visitor).await);
        assert!(crowd.send_one_away());
        assert!(is_asked_to_go(&visitor).await);
    }

    #[test]
    fn who_has_gone_is_not_asked() {
        let crowd = Arc::<Crowd>::default();
        drop(crowd.enter());
        assert!(!crowd.send_one_away());
    }
}
