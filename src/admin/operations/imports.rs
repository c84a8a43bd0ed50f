//! History that is brought in.

use std::sync::Arc;

use super::{OperationError, OperationResult, Operations, json};
use crate::admin::import::{ImportBatchView, ImportBeginView, ImportCountsView, TopicLine};
use crate::capture::import::import;
use crate::capture::inbound::Counter;
use vocative_core::prompting::{ClassEstimate, content_count};
use vocative_store::contract::ImportAccount;

impl Operations {
    pub(super) async fn import_begin(
        &self,
        channel: &str,
        fingerprint: Option<&str>,
    ) -> OperationResult {
        let account = self.import_account(channel).await?;
        let things = match fingerprint {
            Some(fingerprint) => {
                let progress = self.store.import_progress(account.account, fingerprint);
                progress.await?
            }
            None => 0,
        };
        let topics = self.store.topics_of(account.account).await?;
        Ok(json(&ImportBeginView {
            platform: account.platform.name().to_owned(),
            account: account.platform_id,
            name: account.name,
            own_ids: account.own_ids,
            paired: self.store.paired(account.account).await?,
            things,
            topics: topics
                .into_iter()
                .map(|(chat, topic, title)| TopicLine { chat, topic, title })
                .collect(),
        }))
    }

    pub(super) async fn import(&self, channel: &str, batch: ImportBatchView) -> OperationResult {
        let account = self.import_account(channel).await?.account;
        let keeps_revisions = batch.keeps_revisions;
        let counter: Counter = Arc::new(|text| content_count(text, &ClassEstimate));
        let batch = batch.batch(account);
        let now_ms = (self.clock)();
        let counts = import(&self.store, batch, &counter, keeps_revisions, now_ms).await?;
        if let Some(running) = &self.running {
            running.wake.summaries.notify_one();
        }
        Ok(json(&ImportCountsView::of(&counts)))
    }

    pub(super) async fn import_account(
        &self,
        channel: &str,
    ) -> Result<ImportAccount, OperationError> {
        let account = self.store.import_account(channel).await?;
        account.ok_or_else(|| {
            OperationError::Wrong(format!(
                "channel {channel} has not connected yet, so it is not known whose messages these are; let `vocative run` connect it once (`vocative status` shows it), then import"
            ))
        })
    }
}
