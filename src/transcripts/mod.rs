//! Conversations as files: what an export writes, and a recorded transcript that is run through a store and the
//! assembler.
//!
//! Reading order: `lines`, `transcript`.

pub mod lines;
pub mod transcript;
