//! People who are let in to direct chats by a code.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tracing::info;

use super::{OperationError, Operations, Operator, json};
use crate::admin::view::PairingView;
use vocative_core::code::Code;
use vocative_core::ids::AccountId;
use vocative_core::pairing::PAIRED_MAX;
use vocative_store::contract::{LetIn, Pairing, SaidCode};

/// What is asked or decided about people who are let in.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "pairing", rename_all = "snake_case")]
pub enum PairingOperation {
    /// Who waits, and who was let in.
    List,
    /// Lets the person of a code in.
    Approve {
        /// The configured channel that told them the code.
        channel: String,
        /// The code.
        code: String,
        /// Who approves.
        by: String,
    },
    /// Revokes a person's access.
    Revoke {
        /// The configured channel.
        channel: String,
        /// The platform's id of the person.
        person: String,
        /// Who revokes it.
        by: String,
    },
}

impl Operations {
    pub(super) async fn pairing_operation(
        &self,
        operation: PairingOperation,
    ) -> Result<Value, OperationError> {
        Ok(match operation {
            PairingOperation::List => json(&self.pairings().await?),
            PairingOperation::Approve { channel, code, by } => {
                let by = Operator::by_cli(&by)?;
                json(&self.approve_pairing(&channel, &code, &by).await?)
            }
            PairingOperation::Revoke {
                channel,
                person,
                by,
            } => {
                let by = Operator::by_cli(&by)?;
                self.revoke_pairing(&channel, &person, &by).await?;
                Value::Bool(true)
            }
        })
    }

    async fn pairings(&self) -> Result<Vec<PairingView>, OperationError> {
        let found = self.store.pairings((self.clock)()).await?;
        let bindings = self.store.bindings().await?;
        let channel = |account| {
            let binding = bindings.iter().find(|it| it.account == account);
            binding.map_or_else(String::new, |it| it.channel.clone())
        };
        let views = found.into_iter().map(|it| view(channel(it.account), it));
        Ok(views.collect())
    }

    async fn approve_pairing(
        &self,
        channel: &str,
        code: &str,
        by: &Operator,
    ) -> Result<PairingView, OperationError> {
        let account = self.account_of(channel).await?;
        let read = Code::read(code).ok_or_else(|| {
            OperationError::Wrong("a code has eight letters and digits, as in K7QM-2F9X".to_owned())
        })?;
        let said = SaidCode {
            account,
            code: read,
            by: by.name().to_owned(),
            now_ms: (self.clock)(),
        };
        let pairing = match self.store.approve_pairing(said).await? {
            LetIn::Now(pairing) => pairing,
            LetIn::NoSuchCode => {
                return Err(OperationError::Missing(format!(
                    "{channel} told nobody that code within the last hour, or it was used; `vocative pairing list` shows \
                     who was let in, and people are told a code when they write to the bot"
                )));
            }
            LetIn::Full => {
                return Err(OperationError::Wrong(format!(
                    "{PAIRED_MAX} people were let in to {channel} by codes, and no more can be; list people in its allow_people"
                )));
            }
        };
        self.rooms.admit_paired(&self.store, account).await?;
        self.wake_work();
        info!(
            channel.id = channel,
            person = pairing.person,
            by = by.name(),
            "somebody was let in by a code"
        );
        Ok(view(channel.to_owned(), pairing))
    }

    async fn revoke_pairing(
        &self,
        channel: &str,
        person: &str,
        by: &Operator,
    ) -> Result<(), OperationError> {
        let account = self.account_of(channel).await?;
        if !self
            .store
            .revoke_pairing(account, person.to_owned())
            .await?
        {
            return Err(OperationError::Missing(format!(
                "{person} was not let in to {channel} by a code, and does not wait; `vocative pairing list` shows who"
            )));
        }
        self.rooms.admit_paired(&self.store, account).await?;
        info!(
            channel.id = channel,
            person,
            by = by.name(),
            "somebody is let in no more"
        );
        Ok(())
    }

    async fn account_of(&self, channel: &str) -> Result<AccountId, OperationError> {
        let bindings = self.store.bindings().await?;
        let found = bindings.iter().find(|it| it.channel == channel);
        found.map(|it| it.account).ok_or_else(|| {
            OperationError::Missing(format!(
                "no channel {channel} has ever connected; `vocative status` lists channels"
            ))
        })
    }
}

fn view(channel: String, pairing: Pairing) -> PairingView {
    let (approved_at_ms, approved_by) = pairing.approved.unzip();
    PairingView {
        channel,
        person: pairing.person,
        name: pairing.name,
        offered_at_ms: pairing.offered_at_ms,
        approved_at_ms,
        approved_by,
    }
}
