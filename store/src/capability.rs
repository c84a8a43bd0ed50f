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
//! Who writes may read: a store derefs to its [`Reader`].
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
    /// May write what is known of the history of chats.
    MayReadBack;
    /// May write what agents remember.
    MayRemember;
    /// May keep operators' documents and their index.
    MayIndex;
    /// May pin what servers of tools offer.
    MayPin;
    /// May approve skills, and take that back.
    MayApproveSkills;
    /// May let people in by a code that they were told, and take that back.
    MayAdmit;
    /// May note what calls of models cost, and which models rest; and want a file again.
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
    /// All of it: the daemon's wiring and operators.
    Everything: ;
    /// Of who hears the platforms.
    Capturing: MayCapture;
    /// Of agents.
    Replying: MayReply, MayUseModels;
    /// Of delivery.
    Delivering: MayDeliver;
    /// Of the background workers.
    Working: MayWork, MayUseModels;
    /// Of what makes summaries.
    Folding: MayFold, MayUseModels;
    /// Of the tools that remember.
    Remembering: MayRemember;
    /// Of who reads conversations for memory.
    Learning: MayRemember, MayUseModels;
    /// Of who reads operators' documents.
    Indexing: MayIndex;
    /// Of who keeps servers of tools.
    Pinning: MayPin;
    /// Of who reads back what was missed.
    ReadingBack: MayReadBack;
}
