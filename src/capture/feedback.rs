//! Thumbs that people give to answers, stored with the runs of the answers.

use std::sync::Arc;

use vocative_contract::envelope::SenderKind;
use vocative_contract::feedback::ThumbChange;

use crate::capture::gate::Haste;
use crate::capture::inbound::ChannelIntake;
use vocative_core::addressing::Access;
use vocative_core::judging::access::access;
use vocative_core::judging::policy::ChannelPolicy;
use vocative_store::StoreError;

impl ChannelIntake {
    /// Takes a thumb of a person who is served; other thumbs are not stored.
    pub(super) async fn take_thumb(
        &self,
        change: ThumbChange,
        now_ms: i64,
        policy: &Arc<ChannelPolicy>,
    ) -> Result<(), StoreError> {
        let (place, sender) = (&change.place, &change.sender);
        let is_known = self.store().is_captured(
            policy.account,
            place.chat.clone(),
            change.message_id.clone(),
        );
        // The directory is asked about a person only for a thumb on a message that is stored.
        if sender.kind != SenderKind::Person || !is_known.await? {
            return Ok(());
        }
        let belonging = self.gate.belonging(place, sender, Haste::Live).await;
        if access(place, place.kind, sender, belonging, policy) != Access::Served {
            return Ok(());
        }
        self.store()
            .capture_thumb(policy.account, change, now_ms)
            .await?;
        Ok(())
    }
}
