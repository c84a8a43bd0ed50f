//! Names for the mentions in what was read.

use std::collections::HashMap;

use super::HistoryReading;
use crate::StoreError;
use crate::rows::names::mentioned;
use crate::rows::participants::{NAME_BY_ID_SQL, NAME_BY_USERNAME_SQL};
use vocative_core::ids::AccountId;

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
