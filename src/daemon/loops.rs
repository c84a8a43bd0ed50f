//! The essential loops of a daemon. If one ends without being stopped, the daemon ends too, so that its process
//! supervisor starts it again; otherwise the daemon would look healthy and leave part of its work undone.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};

use futures_util::FutureExt as _;
use tokio_util::sync::CancellationToken;
use tracing::error;

/// The first loop that ended by itself. Cloning shares it.
#[derive(Clone, Default)]
pub struct Loops {
    broken: Arc<OnceLock<String>>,
    is_broken: CancellationToken,
}

impl Loops {
    /// Runs a loop. Once it has returned or panicked before `stop`, it counts as broken.
    pub async fn keep(
        self,
        name: impl Into<String>,
        stop: CancellationToken,
        work: impl Future<Output = ()>,
    ) {
        let ended = AssertUnwindSafe(work).catch_unwind().await;
        if stop.is_cancelled() && ended.is_ok() {
            return;
        }
        let name = name.into();
        let how = if ended.is_ok() { "ended" } else { "panicked" };
        error!("the loop of {name} {how}, which is a bug; the daemon ends, to be started again");
        let _ = self.broken.set(name);
        self.is_broken.cancel();
    }

    /// Waits until a loop is broken, and names it.
    pub async fn broken(&self) -> String {
        self.is_broken.cancelled().await;
        self.broken.get().cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_loop_that_ends_by_itself_or_panics_is_named_and_one_that_is_stopped_is_not() {
        async fn panics() {
            panic!("a bug");
        }
        let stop = CancellationToken::new();
        let loops = Loops::default();
        let ending = loops.clone().keep("posts", stop.clone(), async {});
        ending.await;
        assert_eq!(loops.broken().await, "posts");

        let loops = Loops::default();
        let panicking = loops.clone().keep("answers", stop.clone(), panics());
        tokio::spawn(panicking)
            .await
            .expect("the panic ends in the loop");
        assert_eq!(loops.broken().await, "answers");

        let loops = Loops::default();
        stop.cancel();
        loops.clone().keep("posts", stop.clone(), async {}).await;
        assert_eq!(loops.broken().now_or_never(), None);
        loops.clone().keep("answers", stop, panics()).await;
        assert_eq!(loops.broken().await, "answers");
    }
}
