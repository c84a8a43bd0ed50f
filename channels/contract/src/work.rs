//! How much of a text parsers look at, counted so that a test can bound it. Times depend on the
//! machine; a count does not.
//!
//! A parser calls [`looked_at`] wherever it reads bytes, once for each time that it reads them. Counting is on in debug
//! builds and with the feature `count-work`; elsewhere it costs nothing.

#[cfg(any(debug_assertions, feature = "count-work"))]
use std::cell::Cell;

#[cfg(any(debug_assertions, feature = "count-work"))]
thread_local! {
    static LOOKED_AT: Cell<u64> = const { Cell::new(0) };
}

/// Counts bytes of a text that were looked at.
#[inline]
pub fn looked_at(bytes: usize) {
    #[cfg(any(debug_assertions, feature = "count-work"))]
    LOOKED_AT.with(|all| all.set(all.get().saturating_add(bytes as u64)));
    #[cfg(not(any(debug_assertions, feature = "count-work")))]
    let _ = bytes;
}

/// Runs something; returns how many bytes its parsers looked at on this thread. 0 where counting is off.
pub fn counted<R>(run: impl FnOnce() -> R) -> (R, u64) {
    #[cfg(any(debug_assertions, feature = "count-work"))]
    {
        let before = LOOKED_AT.with(Cell::get);
        let result = run();
        (result, LOOKED_AT.with(Cell::get) - before)
    }
    #[cfg(not(any(debug_assertions, feature = "count-work")))]
    {
        (run(), 0)
    }
}
