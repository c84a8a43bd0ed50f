//! Makes ids: `core` knows no clock, so what writes the rows numbers them.

use uuid::Uuid;

/// An id that can be made.
pub trait NewId: From<Uuid> {
    /// A new id, ordered by time of creation (UUID version 7).
    #[must_use]
    fn generate() -> Self {
        Self::from(Uuid::now_v7())
    }
}

impl<T: From<Uuid>> NewId for T {}
