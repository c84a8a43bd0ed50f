//! Tokens that were spent: counted when they are, whatever becomes of what they were spent on; by account
//! and UTC day for everybody, and on the newest such day for each person.
//!
//! A person's row holds numbers only and outlives what they had forgotten: asking for that buys no further day.

use crate::capability::MayUseModels;
use crate::engine::sql::{Connection, OptionalExtension, params};

use crate::rows::columns::{count_from, day_start_ms, stored_count};
use crate::{Reader, Store, StoreError};
use vocative_core::ids::{AccountId, ParticipantId};
use vocative_core::run::Usage;

/// What tokens were spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Answers, with all steps to them.
    Answers,
    /// Summaries of older turns.
    Summaries,
    /// Writing voice notes down.
    Speech,
}

/// Tokens that were spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spending {
    /// The channel's account that spent them.
    pub account: AccountId,
    /// The person whose question or voice note it was; `None` for summaries.
    pub person: Option<ParticipantId>,
    /// On what.
    pub purpose: Purpose,
    /// How many; of a voice note the tokens of its prompt only.
    pub usage: Usage,
    /// When, in milliseconds since the Unix epoch.
    pub now_ms: i64,
}

/// What was spent since the start of the UTC day, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpentToday {
    /// By everybody of an account.
    pub by_account: u64,
    /// By one person of it.
    pub by_person: u64,
}

impl Reader {
    /// What was spent today.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn spent_today(
        &self,
        account: AccountId,
        person: Option<ParticipantId>,
        now_ms: i64,
    ) -> Result<SpentToday, StoreError> {
        self.read(move |connection| {
            let spent = connection
                .prepare_cached(
                    "SELECT coalesce((SELECT tokens FROM usage_days
                                      WHERE account_id = ?1 AND day_start_ms = ?3), 0) AS by_account,
                            coalesce((SELECT tokens FROM usage_people
                                      WHERE participant_id = ?2 AND day_start_ms = ?3), 0) AS by_person",
                )?
                .query_row(params![account, person, day_start_ms(now_ms)], |row| {
                    Ok(SpentToday {
                        by_account: count_from(row.get("by_account")?),
                        by_person: count_from(row.get("by_person")?),
                    })
                })?;
            Ok(spent)
        })
        .await
    }

    /// The participant that a person is.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn participant(
        &self,
        account: AccountId,
        person: String,
    ) -> Result<Option<ParticipantId>, StoreError> {
        self.read(move |connection| {
            let found = connection
                .prepare_cached(
                    "SELECT id FROM participants
                     WHERE account_id = ?1 AND kind = 'user' AND platform_id = ?2",
                )?
                .query_row(params![account, person], |row| row.get("id"))
                .optional()?;
            Ok(found)
        })
        .await
    }
}

impl<C: MayUseModels> Store<C> {
    /// Counts tokens that were spent. Lost with a power cut, a day allows a little more.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn spend(&self, spending: Spending) -> Result<(), StoreError> {
        if spending.usage.total() == 0 {
            return Ok(());
        }
        self.write_riding(move |connection| spend_txn(connection, &spending))
            .await
    }
}

fn spend_txn(connection: &Connection, spending: &Spending) -> Result<(), StoreError> {
    let (tokens, day) = (
        stored_count(spending.usage.total()),
        day_start_ms(spending.now_ms),
    );
    let of = |purpose| {
        if spending.purpose == purpose {
            tokens
        } else {
            0
        }
    };
    // What a voice note cost is no prompt's and no answer's.
    let usage = match spending.purpose {
        Purpose::Answers | Purpose::Summaries => spending.usage,
        Purpose::Speech => Usage::default(),
    };
    connection
        .prepare_cached(
            "INSERT INTO usage_days (account_id, day_start_ms, tokens, summary_tokens, speech_tokens,
                 prompt_tokens, cache_read_tokens, cache_write_tokens, completion_tokens)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
             ON CONFLICT DO UPDATE SET tokens = tokens + excluded.tokens,
                 summary_tokens = summary_tokens + excluded.summary_tokens,
                 speech_tokens = speech_tokens + excluded.speech_tokens,
                 prompt_tokens = prompt_tokens + excluded.prompt_tokens,
                 cache_read_tokens = cache_read_tokens + excluded.cache_read_tokens,
                 cache_write_tokens = cache_write_tokens + excluded.cache_write_tokens,
                 completion_tokens = completion_tokens + excluded.completion_tokens",
        )?
        .execute(params![
            spending.account,
            day,
            tokens,
            of(Purpose::Summaries),
            of(Purpose::Speech),
            stored_count(usage.prompt_tokens),
            stored_count(usage.cache_read_tokens),
            stored_count(usage.cache_write_tokens),
            stored_count(usage.completion_tokens),
        ])?;
    let Some(person) = spending.person else {
        return Ok(());
    };
    connection
        .prepare_cached(
            "INSERT INTO usage_people (participant_id, day_start_ms, tokens)
             SELECT id, ?2, ?3 FROM participants WHERE id = ?1
             ON CONFLICT DO UPDATE SET
                 tokens = excluded.tokens + iif(day_start_ms = excluded.day_start_ms, tokens, 0),
                 day_start_ms = excluded.day_start_ms",
        )?
        .execute(params![person, day, tokens])?;
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::scene::Scene;

    const DAY_MS: i64 = 86_400_000;

    #[tokio::test]
    async fn tokens_are_counted_by_day_for_all_and_for_each() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        scene.ask(&room, "when?", 1_000).await;
        let account = scene.account;
        let found = scene.store.participant(account, "U1".to_owned()).await;
        let person = found.unwrap().unwrap();
        let spend = async |purpose, person, tokens, now_ms| {
            let spending = Spending {
                account,
                person,
                purpose,
                usage: Usage {
                    prompt_tokens: tokens,
                    cache_read_tokens: tokens / 5,
                    ..Usage::default()
                },
                now_ms,
            };
            scene.store.spend(spending).await.unwrap();
        };
        spend(Purpose::Answers, Some(person), 10, 1_000).await;
        spend(Purpose::Speech, Some(person), 5, 2_000).await;
        spend(Purpose::Summaries, None, 100, 3_000).await;
        spend(Purpose::Answers, Some(person), 0, 3_000).await;
        let today = async |now_ms| {
            let spent = scene.store.spent_today(account, Some(person), now_ms);
            spent.await.unwrap()
        };
        let spent = |by_account, by_person| SpentToday {
            by_account,
            by_person,
        };
        assert_eq!(today(4_000).await, spent(115, 15));
        // Voice notes are in no prompt.
        let prompts = "SELECT prompt_tokens * 1000 + cache_read_tokens FROM usage_days";
        assert_eq!(scene.value::<i64>(prompts).await, 110_022);
        assert_eq!(today(DAY_MS).await, spent(0, 0));
        spend(Purpose::Answers, Some(person), 7, DAY_MS + 1).await;
        assert_eq!(today(DAY_MS + 2).await, spent(7, 7));
        // One row a person: the day before is known of the account only.
        assert_eq!(today(4_000).await, spent(115, 0));
    }
}
