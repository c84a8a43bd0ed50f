//! Hints that an event came from a person or room without giving a name. A hint only: the rows say who has none, and
//! a slow poll backs it up.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;
use vocative_contract::envelope::InboundMessage;

use vocative_core::ids::AccountId;

/// The most names that are remembered as hinted at; at this number all are forgotten, and hinted at again.
const TOLD_MAX: usize = 10_000;

/// The people and rooms whose names are wanted. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub struct NameHints {
    bell: Arc<Notify>,
    told: Arc<Mutex<HashSet<(AccountId, String)>>>,
}

impl NameHints {
    /// Notes the ids that a captured message does not name; notifies only for new ones.
    pub fn note(&self, account: AccountId, unnamed: Vec<String>) {
        let mut told = self.told.lock().expect("no holder of this lock panics");
        if told.len() >= TOLD_MAX {
            told.clear();
        }
        let mut is_news = false;
        for id in unnamed {
            is_news |= told.insert((account, id));
        }
        drop(told);
        if is_news {
            self.bell.notify_one();
        }
    }

    /// Waits until an unnamed person or room was heard for the first time.
    pub async fn rung(&self) {
        self.bell.notified().await;
    }
}

/// The ids of a message's chat and sender, if it gives no name for them.
#[must_use]
pub fn unnamed(message: &InboundMessage) -> Vec<String> {
    let (place, sender) = (&message.place, &message.sender);
    let chat = place.title.is_none().then(|| place.chat.clone());
    let person = sender.display_name.is_none().then(|| sender.id.clone());
    chat.into_iter().chain(person).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_is_told_once_and_what_is_remembered_is_bounded() {
        let hints = NameHints::default();
        let is_rung = async |hints: &NameHints| {
            let wait = std::time::Duration::ZERO;
            tokio::time::timeout(wait, hints.rung()).await.is_ok()
        };
        let account = AccountId(1);
        hints.note(account, vec!["C1".to_owned(), "U1".to_owned()]);
        assert!(is_rung(&hints).await);
        hints.note(account, vec!["C1".to_owned()]);
        hints.note(account, Vec::new());
        assert!(!is_rung(&hints).await);
        hints.note(AccountId(2), vec!["C1".to_owned()]);
        assert!(is_rung(&hints).await);
        for n in 0..TOLD_MAX + 10 {
            hints.note(account, vec![n.to_string()]);
        }
        assert!(hints.told.lock().is_ok_and(|told| told.len() <= TOLD_MAX));
    }
}
