//! Names for the mentions in what was read.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use vocative_contract::markup::mentioned_ids;

use super::HistoryReading;
use super::statements::{NAME_BY_ID_SQL, NAME_BY_USERNAME_SQL};
use crate::StoreError;
use vocative_core::history::{HistoryTurn, Role};
use vocative_core::ids::AccountId;

/// The most mentioned people whose names are looked up, the triggers' first, then the newest turns'.
const NAMES_MAX: usize = 200;

impl HistoryReading<'_> {
    /// Names for the mention tokens in what was read; one that is not known is left out.
    pub(super) fn read_names(&mut self) -> Result<HashMap<String, String>, StoreError> {
        let mut names = HashMap::new();
        for id in mentioned(&self.turns) {
            if let Some(name) = self.name(self.conversation.account, &id)? {
                names.insert(id, name);
            }
        }
        Ok(names)
    }

    fn name(&mut self, account: AccountId, id: &str) -> Result<Option<String>, StoreError> {
        let (sql, key) = match id.strip_prefix('@') {
            Some(username) => (NAME_BY_USERNAME_SQL, username),
            None => (NAME_BY_ID_SQL, id),
        };
        let name = self.one(sql, (account, key), |row| row.get("name"))?;
        Ok(name.flatten())
    }
}

/// Who is mentioned, each once: by the triggers, then by the newest turns.
pub(crate) fn mentioned(read: &[HistoryTurn]) -> Vec<String> {
    let mut turns: Vec<&HistoryTurn> = read.iter().collect();
    turns.sort_by_key(|read| {
        let is_trigger = read.role == Role::Trigger;
        (Reverse(is_trigger), Reverse(read.turn.position))
    });
    let mut ids = Vec::new();
    let mut seen = HashSet::new();
    for id in turns
        .into_iter()
        .flat_map(|read| mentioned_ids(&read.turn.content))
    {
        if ids.len() == NAMES_MAX {
            break;
        }
        if seen.insert(id.clone()) {
            ids.push(id);
        }
    }
    ids
}
