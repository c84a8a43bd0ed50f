//! An agent with its skills: what its instructions say of them, and which its tool may read.
//!
//! They are read and held against their approvals once, when an attempt begins: whatever becomes of the files meanwhile,
//! the attempt has the texts that were approved.

use std::sync::Arc;

use crate::agent::registry::AgentSpec;
use crate::agent::working::Working;
use crate::tools::{READ_SKILL, names};
use vocative_core::place::ChatName;
use vocative_core::skills::{Skill, listed};
use vocative_store::StoreError;

impl Working<'_> {
    /// The agent's approved skills, where it may read them.
    pub(super) async fn skills(&self, spec: &AgentSpec) -> Result<Vec<Arc<Skill>>, StoreError> {
        let may_read = |allowed: Option<&[String]>| {
            allowed.is_none_or(|all| all.iter().any(|it| names(it, READ_SKILL)))
        };
        let chat = ChatName {
            channel: self.route.channel.clone(),
            chat: self.route.target.chat.clone(),
        };
        let of_chat = spec.chat_tools.get(&chat).map(Vec::as_slice);
        if spec.settings().max_steps < 2
            || !may_read(of_chat)
            || !may_read(self.given.tools.as_deref())
        {
            return Ok(Vec::new());
        }
        let reader = self.worker.store.reader();
        self.worker
            .skills
            .approved(&spec.settings().skills, &reader)
            .await
    }
}

impl AgentSpec {
    /// The same agent, whose instructions list these skills.
    pub(super) fn listing(self, skills: &[Arc<Skill>]) -> Self {
        let list = listed(skills.iter().map(Arc::as_ref), READ_SKILL);
        match list.is_empty() {
            true => self,
            false => Self {
                instructions: self.instructions.followed_by(&list),
                ..self
            },
        }
    }
}
