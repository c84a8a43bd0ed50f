//! The skills of an agent: how its instructions list them, and which of them its tool may read.
//!
//! Skills are read and compared with their approvals once, when an attempt begins: even if the files change
//! meanwhile, the attempt keeps the approved texts.

use std::sync::Arc;

use crate::agent::registry::AgentSpec;
use crate::agent::working::Working;
use crate::tools::{READ_SKILL, names};
use vocative_core::place::ChatName;
use vocative_core::skills::{Skill, listed};
use vocative_store::StoreError;

impl Working<'_> {
    /// The agent's approved skills; empty if it may not read them here.
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
    /// Returns the agent with these skills listed in its instructions.
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
