//! Tokens that were spent, counted at once, whatever becomes of what they were spent on: by account and UTC day, and
//! by person for the last days on which they spent any.
//!
//! A person's row holds numbers only and stays when what they said is forgotten, so that asking for that
//! resets no limit.

use crate::capability::MayUseModels;
use crate::engine::sql::{Connection, OptionalExtension, params};

pub use crate::contract::{ModelCall, Purpose, Spending, SpentToday};
use crate::registry::{STATE, StoreTable, account, text};
use crate::rows::columns::{count_from, day_start_ms, stored_count};
use crate::rows::costs::add_cost_txn;
use crate::{Reader, Store, StoreError};
use vocative_core::ids::{AccountId, ParticipantId};
use vocative_core::price::Spent;
use vocative_core::run::Usage;

/// The tables of this file, and what becomes of their rows.
pub(crate) const TABLES: &[StoreTable] = &[
    account("usage_days", text(&[], &[], &[]), STATE),
    account("usage_people", text(&[], &[], &[]), STATE),
];

/// The days of which a person's tokens are kept.
const PERSON_DAYS: u32 = 8;

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
                    "SELECT coalesce(sum(iif(of_person, 0, tokens)), 0) AS tokens,
                            coalesce(sum(iif(of_person, 0, cost_micros)), 0) AS cost_micros,
                            coalesce(sum(iif(of_person, tokens, 0)), 0) AS person_tokens,
                            coalesce(sum(iif(of_person, cost_micros, 0)), 0) AS person_cost_micros
                     FROM (SELECT 0 AS of_person, tokens, cost_micros FROM usage_days
                           WHERE account_id = ?1 AND day_start_ms = ?3
                           UNION ALL
                           SELECT 1, tokens, cost_micros FROM usage_people
                           WHERE day_start_ms = ?3 AND participant_id IN (
                               SELECT ?2 UNION SELECT id FROM participants WHERE person_id =
                                   (SELECT person_id FROM participants WHERE id = ?2)))",
                )?
                .query_row(params![account, person, day_start_ms(now_ms)], |row| {
                    Ok(SpentToday {
                        by_account: Spent {
                            tokens: count_from(row.get("tokens")?),
                            cost_micros: count_from(row.get("cost_micros")?),
                        },
                        by_person: Spent {
                            tokens: count_from(row.get("person_tokens")?),
                            cost_micros: count_from(row.get("person_cost_micros")?),
                        },
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
    /// Counts tokens that were spent. A power cut may lose some; then the day allows a little more.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn spend(&self, spending: Spending) -> Result<(), StoreError> {
        if spending.usage.total() == 0 && spending.cost_micros == 0 {
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
    // The tokens of a voice note belong to no prompt and no answer.
    let usage = match spending.purpose {
        Purpose::Answers | Purpose::Summaries | Purpose::Memory => spending.usage,
        Purpose::Speech => Usage::default(),
    };
    connection
        .prepare_cached(
            "INSERT INTO usage_days (account_id, day_start_ms, tokens, summary_tokens, speech_tokens,
                 prompt_tokens, cache_read_tokens, cache_write_tokens, completion_tokens, cost_micros, memory_tokens)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
             ON CONFLICT DO UPDATE SET tokens = tokens + excluded.tokens,
                 summary_tokens = summary_tokens + excluded.summary_tokens,
                 speech_tokens = speech_tokens + excluded.speech_tokens,
                 prompt_tokens = prompt_tokens + excluded.prompt_tokens,
                 cache_read_tokens = cache_read_tokens + excluded.cache_read_tokens,
                 cache_write_tokens = cache_write_tokens + excluded.cache_write_tokens,
                 completion_tokens = completion_tokens + excluded.completion_tokens,
                 cost_micros = cost_micros + excluded.cost_micros,
                 memory_tokens = memory_tokens + excluded.memory_tokens",
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
            stored_count(spending.cost_micros),
            of(Purpose::Memory),
        ])?;
    add_cost_txn(connection, spending)?;
    let Some(person) = spending.person else {
        return Ok(());
    };
    let is_first: Option<bool> = connection
        .prepare_cached(
            "INSERT INTO usage_people (participant_id, day_start_ms, tokens, cost_micros)
             SELECT id, ?2, ?3, ?4 FROM participants WHERE id = ?1
             ON CONFLICT DO UPDATE SET
                 tokens = tokens + excluded.tokens, cost_micros = cost_micros + excluded.cost_micros
             RETURNING tokens = ?3 AS is_first",
        )?
        .query_row(
            params![person, day, tokens, stored_count(spending.cost_micros)],
            |row| row.get("is_first"),
        )
        .optional()?;
    if is_first != Some(true) {
        return Ok(());
    }
    // The days nearest to now stay, so that a wrong clock displaces no day that is still to be counted.
    connection
        .prepare_cached(
            "DELETE FROM usage_people WHERE participant_id = ?1 AND day_start_ms NOT IN (
                 SELECT day_start_ms FROM usage_people WHERE participant_id = ?1
                 ORDER BY abs(day_start_ms - ?2) LIMIT ?3)",
        )?
        .execute((person, day, PERSON_DAYS))?;
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::costs::CostsBy;
    use crate::scene::Scene;

    const DAY_MS: i64 = 86_400_000;

    #[tokio::test]
    async fn tokens_are_counted_by_day_for_all_and_for_each() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        let (_, run) = scene.ask(&room, "when?", 1_000).await;
        let account = scene.account;
        let found = scene.store.participant(account, "U1".to_owned()).await;
        let person = found.unwrap().unwrap();
        let call = ModelCall {
            conversation: room.id,
            agent: crate::scene::agent(),
            model: "large".to_owned(),
            run: Some(run),
        };
        let spend = async |purpose, person, tokens: u64, now_ms| {
            let spending = Spending {
                account,
                person,
                purpose,
                cost_micros: tokens * 3,
                call: (purpose != Purpose::Speech).then(|| call.clone()),
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
        let of = |tokens| Spent {
            tokens,
            cost_micros: tokens * 3,
        };
        let spent = |by_account, by_person| SpentToday {
            by_account: of(by_account),
            by_person: of(by_person),
        };
        assert_eq!(today(4_000).await, spent(115, 15));
        // Voice notes are in no prompt.
        let prompts = "SELECT prompt_tokens * 1000 + cache_read_tokens FROM usage_days";
        assert_eq!(scene.value::<i64>(prompts).await, 110_022);
        assert_eq!(today(DAY_MS).await, spent(0, 0));
        spend(Purpose::Answers, Some(person), 7, DAY_MS + 1).await;
        assert_eq!(today(DAY_MS + 2).await, spent(7, 7));
        assert_eq!(today(4_000).await, spent(115, 15));
        let cost = "SELECT cost_micros FROM runs";
        assert_eq!(scene.value::<i64>(cost).await, 3 * (10 + 100 + 7));

        let told = async |by, since_ms| {
            let costs = scene.store.costs(by, since_ms, 9).await.unwrap();
            let costs = costs
                .into_iter()
                .map(|it| (it.of, it.calls, it.cost_micros));
            costs.collect::<Vec<_>>()
        };
        let of = |name: &str, calls, cost| (name.to_owned(), calls, cost);
        let both = [of("1970-01-02", 1, 21), of("1970-01-01", 2, 330)];
        assert_eq!(told(CostsBy::Day, 0).await, both);
        assert_eq!(told(CostsBy::Day, DAY_MS + 7).await, both[..1]);
        let people = [of("", 1, 300), of("Ada", 2, 51)];
        assert_eq!(told(CostsBy::Person, 0).await, people);
        for (by, name) in [
            (CostsBy::Agent, "helper"),
            (CostsBy::Model, "large"),
            (CostsBy::Channel, "acme"),
        ] {
            assert_eq!(told(by, 0).await, [of(name, 3, 351)]);
        }
        let rooms = told(CostsBy::Conversation, 0).await;
        assert_eq!((rooms.len(), rooms[0].2), (1, 351));
    }

    #[tokio::test]
    async fn a_wrong_clock_gives_nobody_another_day() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        scene.ask(&room, "when?", 1_000).await;
        let account = scene.account;
        let found = scene.store.participant(account, "U1".to_owned()).await;
        let person = found.unwrap().unwrap();
        let spend = async |now_ms| {
            let spending = Spending {
                account,
                person: Some(person),
                purpose: Purpose::Speech,
                cost_micros: 0,
                call: None,
                usage: Usage {
                    prompt_tokens: 10,
                    ..Usage::default()
                },
                now_ms,
            };
            scene.store.spend(spending).await.unwrap();
        };
        let today_ms = 400 * DAY_MS;
        spend(today_ms).await;
        for wrong_ms in [today_ms - DAY_MS, 0, today_ms + 365 * DAY_MS] {
            spend(wrong_ms).await;
            let spent = scene.store.spent_today(account, Some(person), today_ms);
            assert_eq!(spent.await.unwrap().by_person.tokens, 10, "{wrong_ms}");
        }
        for day in 1..40 {
            spend(today_ms + day * DAY_MS).await;
        }
        let rows = "SELECT count(*) FROM usage_people";
        assert_eq!(scene.value::<i64>(rows).await, i64::from(PERSON_DAYS));
        let dates = "SELECT min(day_start_ms) FROM usage_people";
        assert_eq!(scene.value::<i64>(dates).await, today_ms + 32 * DAY_MS);
    }
}
