//! The answer of a run as one store write: reply turn, one outbox row per part, end of the run.
//!
//! Nothing is posted before this is committed.

use vocative_channels::channel::Outbound;

use crate::domain::ids::LeaseToken;
use crate::domain::run::{Run, Usage};
use crate::domain::turn::{TokenCount, TurnKind};
use crate::store::contract::{CommittedReply, ReplyCommit, ReplyRoute, RunEnding};
use crate::store::{Store, StoreError};

/// An answer, or a notice in its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// What is said, platform-neutral.
    pub text: String,
    /// Said before it in the room but not captured (the agent's name, where several answer).
    pub prefix: String,
    /// Whether it is an answer or a notice.
    pub kind: TurnKind,
    /// How the run ends.
    pub ending: RunEnding,
    /// What the text costs.
    pub tokens: Option<TokenCount>,
    /// Tokens used.
    pub usage: Usage,
}

/// Renders and commits a reply. The only place where turns of ours are made.
///
/// # Errors
/// [`StoreError`] if nothing was written; the run is still leased.
pub async fn commit_reply(
    store: &Store,
    outbound: &dyn Outbound,
    run: &Run,
    token: LeaseToken,
    route: &ReplyRoute,
    agent_display_name: &str,
    reply: Reply,
    now_ms: i64,
) -> Result<CommittedReply, StoreError> {
    let parts = outbound.render(&format!("{}{}", reply.prefix, reply.text));
    store
        .commit_reply(ReplyCommit {
            run: run.id,
            token,
            agent: run.agent.clone(),
            agent_display_name: agent_display_name.to_owned(),
            text: reply.text,
            kind: reply.kind,
            ending: reply.ending,
            parts,
            target: route.target.clone(),
            tokens: reply.tokens,
            usage: reply.usage,
            now_ms,
        })
        .await
}
