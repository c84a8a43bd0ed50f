//! What the holder of a store may write. A [`Store`] of a capability is made from the whole one by [`Store::only`];
//! its methods stand in `impl` blocks that ask for that capability:
//!
//! ```
//! # use vocative_store::contract::{ClaimRequest, NewMessage};
//! # use vocative_store::{Capturing, Replying, Store};
//! # async fn both(store: &Store, request: ClaimRequest, message: NewMessage) {
//! store.only::<Capturing>().capture_message(message).await;
//! store.only::<Replying>().claim_run(request, Default::default()).await;
//! # }
//! ```
//!
//! Any other call does not compile:
//!
//! ```compile_fail,E0599
//! # use vocative_store::{Capturing, Store};
//! # async fn claim(store: &Store, request: vocative_store::contract::ClaimRequest) {
//! store.only::<Capturing>().claim_run(request, Default::default()).await;
//! # }
//! ```
//!
//! ```compile_fail,E0599
//! # use vocative_store::{Delivering, Store};
//! # async fn capture(store: &Store, message: vocative_store::contract::NewMessage) {
//! store.only::<Delivering>().capture_message(message).await;
//! # }
//! ```
//!
//! ```compile_fail,E0599
//! # use vocative_store::Reader;
//! # async fn capture(reader: &Reader, message: vocative_store::contract::NewMessage) {
//! reader.capture_message(message).await;
//! # }
//! ```
//!
//! A store of any capability may also read: it derefs to its [`Reader`].
//!
//! [`Store`]: crate::Store
//! [`Store::only`]: crate::Store::only
//! [`Reader`]: crate::Reader

/// What a [`Store`](crate::Store) may write.
pub trait Capability: Send + Sync + 'static {}

macro_rules! permissions {
    ($($(#[$doc:meta])* $may:ident;)*) => {$(
        $(#[$doc])*
        pub trait $may: Capability {}
        impl $may for Everything {}
    )*};
}

permissions! {
    /// May capture what people say, edit and delete, the commands they give, and what is learnt of rooms and people.
    MayCapture;
    /// May claim runs, work on them and commit their replies, and answer inquiries.
    MayReply;
    /// May claim posts and write what becomes of them.
    MayDeliver;
    /// May claim background jobs and write what they do: files, erasures, merges.
    MayWork;
    /// May add summaries.
    MayFold;
    /// May write how far the history of chats has been read back.
    MayReadBack;
    /// May write what agents remember.
    MayRemember;
    /// May keep operators' documents and their index.
    MayIndex;
    /// May pin the tools that tool servers offer.
    MayPin;
    /// May approve skills, and withdraw an approval.
    MayApproveSkills;
    /// May admit people by a code that they were told, and withdraw that.
    MayAdmit;
    /// May note what model calls cost and which models are paused; may ask for a file to be fetched again.
    MayUseModels;
}

macro_rules! capabilities {
    ($($(#[$doc:meta])* $name:ident: $($may:ident),*;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub enum $name {}
        impl Capability for $name {}
        $(impl $may for $name {})*
    )*};
}

capabilities! {
    /// May write everything: for the daemon's wiring and for operators.
    Everything: ;
    /// For the code that receives events from the platforms.
    Capturing: MayCapture;
    /// For agents.
    Replying: MayReply, MayUseModels;
    /// For delivery.
    Delivering: MayDeliver;
    /// For the background workers.
    Working: MayWork, MayUseModels;
    /// For the code that makes summaries.
    Folding: MayFold, MayUseModels;
    /// For the memory tools.
    Remembering: MayRemember;
    /// For the code that reads conversations to learn memories.
    Learning: MayRemember, MayUseModels;
    /// For the code that reads operators' documents.
    Indexing: MayIndex;
    /// For the code that manages tool servers.
    Pinning: MayPin;
    /// For the code that reads back missed messages.
    ReadingBack: MayReadBack;
}
