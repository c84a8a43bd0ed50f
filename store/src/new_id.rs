//! Makes ids: `core` knows no clock, so what writes the rows numbers them, and makes
//! codes.

use uuid::Uuid;
use vocative_core::code::Code;

/// An id that can be made.
pub trait NewId: From<Uuid> {
    /// A new id, ordered by time of creation (UUID version 7).
    #[must_use]
    fn generate() -> Self {
        Self::from(Uuid::now_v7())
    }
}

impl<T: From<Uuid>> NewId for T {}

/// A code that nobody can guess.
pub(crate) fn random_code() -> Code {
    // Bytes 6 and 8 say which kind of id it is.
    let [a, b, c, d, e, f, _, g, _, h, ..] = Uuid::new_v4().into_bytes();
    Code::from_random([a, b, c, d, e, f, g, h])
}
