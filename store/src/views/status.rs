//! Numbers for operators.
//!
//! Every count reads an index over what is open, stuck or recent; none grows with what is finished,
//! but for the two that are asked of everything (turns, conversations), which add up counters, and stored
//! files, which are counted along an index.

use std::path::Path;

use crate::engine::backup::last_backup_ms;
use crate::engine::disk::free_bytes;
use crate::engine::sql::{Connection, Row};
use crate::rows::open::{open_post, open_run};
use vocative_core::run::Usage;

use crate::contract::{AccountStatus, StoreStatus};
use crate::engine::kept_copies::copies_from_before;
use crate::rows::columns::{count_from, day_start_ms, platform};
use crate::rows::files::count_files;
use crate::rows::jobs::count_jobs;
use crate::rows::model_rests::{model_rests, queued_by_agent};
use crate::rows::reach::read_reach;
use crate::rows::summaries::count_summaries;
use crate::rows::token_ratios::token_ratios;
use crate::rows::tool_days::tool_counts;
use crate::rows::vectors::embedding_status;
use crate::views::knowledge::collection_status;
use crate::{Reader, StoreError};
use vocative_core::outbox::DeadCause;

/// How long a run that was given up counts as recent, in milliseconds.
const DAY_MS: i64 = 86_400_000;

impl Reader {
    /// Numbers for `status` and metrics. Dead posts that a person dropped are not counted.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn status(&self, now_ms: i64) -> Result<StoreStatus, StoreError> {
        let database = self.database_path().map(Path::to_owned);
        self.read(move |connection| {
            let mut status = status(connection, now_ms)?;
            if let Some(database) = database {
                let folder = database.parent().unwrap_or(Path::new("."));
                status.disk_free_bytes = free_bytes(folder).ok();
                status.backup_last_ms = last_backup_ms(&database);
                if let Some(at_ms) = last_asked_ms(connection)? {
                    status.copies_to_remove = copies_from_before(&database, at_ms);
                }
            }
            Ok(status)
        })
        .await
        .map(|status| StoreStatus {
            work: self.work(),
            ..status
        })
    }
}

fn status(connection: &Connection, now_ms: i64) -> Result<StoreStatus, StoreError> {
    let mut status = StoreStatus {
        accounts: accounts(connection, now_ms)?,
        summaries: count_summaries(connection)?,
        model_rests: model_rests(connection)?,
        queued_by_agent: queued_by_agent(connection)?,
        token_ratios: token_ratios(connection)?,
        files: count_files(connection)?,
        jobs: count_jobs(connection)?,
        tools: tool_counts(connection, now_ms)?,
        knowledge: collection_status(connection)?,
        embeddings: embedding_status(connection, now_ms)?,
        ..StoreStatus::default()
    };
    read_rooms(connection, &mut status)?;
    read_runs(connection, &mut status, now_ms)?;
    read_posts(connection, &mut status, now_ms)?;
    read_retention(connection, &mut status)?;
    Ok(status)
}

/// When a person last asked to have what they said forgotten.
fn last_asked_ms(connection: &Connection) -> Result<Option<i64>, StoreError> {
    Ok(connection
        .prepare_cached(
            "SELECT max(erased_at_ms) AS value FROM erasures INDEXED BY erasures_asked
             WHERE reach = 'own' AND kind <> 'message'",
        )?
        .query_row([], |row| row.get("value"))?)
}

fn read_rooms(connection: &Connection, status: &mut StoreStatus) -> Result<(), StoreError> {
    let counts = connection
        .prepare_cached(
            "SELECT (SELECT coalesce(sum(turn_count), 0) FROM conversations) AS turns,
                    (SELECT count(*) FROM conversations) AS conversations,
                    (SELECT count(*) FROM raw_envelopes WHERE reason IS NOT NULL) AS unread,
                    (SELECT page_count * page_size FROM pragma_page_count, pragma_page_size) AS bytes",
        )?
        .query_row([], counts(["turns", "conversations", "unread", "bytes"]))?;
    [
        status.turns,
        status.conversations,
        status.raw_stubs,
        status.database_bytes,
    ] = counts;
    Ok(())
}

fn read_runs(
    connection: &Connection,
    status: &mut StoreStatus,
    now_ms: i64,
) -> Result<(), StoreError> {
    let counts = connection
        .prepare_cached(concat!(
            "SELECT count(*) FILTER (WHERE state = 'queued') AS queued,
                    count(*) FILTER (WHERE state = 'leased') AS leased,
                    (SELECT count(*) FROM runs WHERE state = 'dead') AS dead,
                    (SELECT count(*) FILTER (WHERE state = 'dead') FROM runs
                     WHERE finished_at_ms IS NOT NULL AND finished_at_ms > ?1) AS dead_today,
                    (SELECT count(*) FROM runs WHERE state = 'held') AS held,
                    count(*) FILTER (WHERE state = 'waiting') AS waiting,
                    (SELECT count(*) FROM approvals INDEXED BY approvals_open WHERE state = 'open') AS approvals,
                    (SELECT count(*) FROM questions INDEXED BY questions_open WHERE state = 'open') AS questions
             FROM runs WHERE ",
            open_run!()
        ))?
        .query_row(
            [now_ms - DAY_MS],
            counts([
                "queued",
                "leased",
                "dead",
                "dead_today",
                "held",
                "waiting",
                "approvals",
                "questions",
            ]),
        )?;
    [
        status.runs_queued,
        status.runs_leased,
        status.runs_dead,
        status.runs_dead_last_day,
        status.runs_held,
        status.runs_waiting,
        status.approvals_open,
        status.questions_open,
    ] = counts;
    status.oldest_waiting_run_ms = connection
        .prepare_cached(concat!(
            "SELECT ?1 - min(max(not_before_ms, created_at_ms)) AS value FROM runs
             WHERE ",
            open_run!(),
            " AND state = 'queued'
               AND not_before_ms <= ?1"
        ))?
        .query_row([now_ms], |row| row.get("value"))?;
    Ok(())
}

fn read_posts(
    connection: &Connection,
    status: &mut StoreStatus,
    now_ms: i64,
) -> Result<(), StoreError> {
    let open = connection
        .prepare_cached(concat!(
            "SELECT count(*) FILTER (WHERE state <> 'unknown') AS pending,
                    count(*) FILTER (WHERE state = 'unknown') AS unknown
             FROM outbox WHERE ",
            open_post!()
        ))?
        .query_row([], counts(["pending", "unknown"]))?;
    [status.posts_pending, status.posts_unknown] = open;
    let stuck = connection
        .prepare_cached(
            "SELECT count(*) FILTER (WHERE state = 'held') AS held, count(*) FILTER (WHERE state = 'dead') AS dead,
                    count(*) FILTER (WHERE state = 'held' AND is_undecided = 1) AS undecided,
                    (SELECT coalesce(sum(resent_undecided), 0) FROM accounts) AS resent
             FROM outbox WHERE state IN ('held', 'dead') AND dead_cause IS NOT ?1",
        )?
        .query_row(
            [DeadCause::Dropped],
            counts(["held", "dead", "undecided", "resent"]),
        )?;
    [
        status.posts_held,
        status.posts_dead,
        status.posts_undecided,
        status.posts_resent_undecided,
    ] = stuck;
    let quarantined = connection
        .prepare_cached("SELECT count(*) AS rows FROM quarantine")?
        .query_row([], counts(["rows"]))?;
    [status.quarantined] = quarantined;
    status.oldest_waiting_post_ms = connection
        .prepare_cached(concat!(
            "SELECT ?1 - min(max(o.not_before_ms, o.created_at_ms)) AS value FROM outbox o
             JOIN accounts a ON a.id = o.account_id JOIN chats c ON c.id = o.chat_id
             WHERE ",
            open_post!("o"),
            " AND o.state = 'pending'
               AND o.not_before_ms <= ?1 AND a.held_reason IS NULL
               AND coalesce(c.parked_until_ms, ?1) <= ?1
               AND coalesce(c.rests_until_ms, ?1) <= ?1"
        ))?
        .query_row([now_ms], |row| row.get("value"))?;
    Ok(())
}

fn read_retention(connection: &Connection, status: &mut StoreStatus) -> Result<(), StoreError> {
    let went = connection
        .prepare_cached(
            "SELECT coalesce(sum(expired) FILTER (WHERE class = 'text'), 0) AS text,
                    coalesce(sum(expired) FILTER (WHERE class = 'raw'), 0) AS raw,
                    coalesce(sum(expired) FILTER (WHERE class = 'runs'), 0) AS runs,
                    (SELECT count(*) FROM erasures WHERE finished_at_ms IS NULL) AS erasures_open
             FROM retention",
        )?
        .query_row([], counts(["text", "raw", "runs", "erasures_open"]))?;
    [
        status.expired.text,
        status.expired.raw,
        status.expired.runs,
        status.erasures_open,
    ] = went;
    status.expired_last_ms = connection
        .prepare_cached("SELECT max(last_at_ms) AS value FROM retention")?
        .query_row([], |row| row.get("value"))?;
    Ok(())
}

/// Reads the counts of these columns.
fn counts<const N: usize>(
    columns: [&'static str; N],
) -> impl Fn(&Row<'_>) -> crate::engine::sql::Result<[u64; N]> {
    move |row| {
        let mut counts = [0; N];
        for (count, column) in counts.iter_mut().zip(columns) {
            *count = count_from(row.get(column)?);
        }
        Ok(counts)
    }
}

/// One entry per configured channel that was ever bound.
fn accounts(connection: &Connection, now_ms: i64) -> Result<Vec<AccountStatus>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT a.id, n.name AS channel, a.platform, a.name AS name, a.last_captured_ms,
                coalesce(u.tokens, 0) AS tokens_today,
                coalesce(u.prompt_tokens, 0) AS prompt_tokens,
                coalesce(u.cache_read_tokens, 0) AS cache_read_tokens,
                coalesce(u.cache_write_tokens, 0) AS cache_write_tokens,
                coalesce(u.completion_tokens, 0) AS completion_tokens,
                coalesce(u.cost_micros, 0) AS cost_micros,
                a.held_reason,
                (SELECT count(*) FROM chats h
                 WHERE h.account_id = a.id AND h.parked_until_ms > ?2) AS parked_chats
         FROM channels n JOIN accounts a ON a.id = n.account_id
         LEFT JOIN usage_days u ON u.account_id = a.id AND u.day_start_ms = ?1
         ORDER BY n.name",
    )?;
    let accounts = statement.query_map((day_start_ms(now_ms), now_ms), |row| {
        Ok(AccountStatus {
            account: row.get("id")?,
            channel: row.get("channel")?,
            platform: platform(row)?,
            name: row.get("name")?,
            last_captured_ms: row.get("last_captured_ms")?,
            tokens_today: count_from(row.get("tokens_today")?),
            usage_today: Usage {
                prompt_tokens: count_from(row.get("prompt_tokens")?),
                cache_read_tokens: count_from(row.get("cache_read_tokens")?),
                cache_write_tokens: count_from(row.get("cache_write_tokens")?),
                completion_tokens: count_from(row.get("completion_tokens")?),
            },
            cost_micros_today: count_from(row.get("cost_micros")?),
            held: row.get("held_reason")?,
            parked_chats: count_from(row.get("parked_chats")?),
            unread_from_ms: None,
            backfills: 0,
            history_gaps: 0,
            history_gap: None,
        })
    })?;
    let mut accounts: Vec<AccountStatus> = accounts.collect::<crate::engine::sql::Result<_>>()?;
    for account in &mut accounts {
        read_reach(connection, account)?;
    }
    Ok(accounts)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use vocative_contract::identity::Platform;

    use super::*;
    use crate::StoreWork;
    use crate::contract::RunEnding;
    use crate::rows::spending::{Purpose, Spending};
    use crate::scene::Scene;
    use vocative_core::outbox::OutboxUpdate;

    #[tokio::test]
    async fn status_counts_what_waits_and_what_needs_a_person() {
        let scene = Scene::open().await;
        let (one, two) = (scene.room("C1").await, scene.room("C2").await);
        scene.post(&one, &["a", "b"], DAY_MS + 100).await;
        scene.ask(&one, "waiting", DAY_MS + 200).await;
        scene.ask(&two, "leased", DAY_MS + 150).await;
        scene.claim(DAY_MS + 160).await.unwrap();
        let request = scene.request(DAY_MS + 300);
        let claimed = scene.store.claim_posts(request, 9).await.unwrap();
        let reason = "may be out".to_owned();
        let (entry, token) = (claimed[0].entry.id, claimed[0].token);
        let hold = OutboxUpdate::Hold { reason };
        let held = scene.store.update_post(entry, token, hold, DAY_MS + 301);
        held.await.unwrap();

        let usage = Usage {
            prompt_tokens: 8,
            cache_read_tokens: 5,
            cache_write_tokens: 1,
            completion_tokens: 2,
        };
        let spending = Spending {
            account: scene.account,
            person: None,
            purpose: Purpose::Answers,
            usage,
            cost_micros: 0,
            call: None,
            now_ms: DAY_MS + 302,
        };
        scene.store.spend(spending).await.unwrap();

        let mut status = scene.store.status(DAY_MS + 1_200).await.unwrap();
        assert!(status.database_bytes > 0);
        status.database_bytes = 0;
        assert!(status.work.statements > status.work.commits && status.work.reads > 0);
        status.work = StoreWork::default();
        let expected = StoreStatus {
            turns: 4,
            conversations: 2,
            runs_queued: 1,
            runs_leased: 1,
            queued_by_agent: vec![(crate::scene::agent(), 1)],
            oldest_waiting_run_ms: Some(1_000),
            posts_pending: 1,
            posts_held: 1,
            oldest_waiting_post_ms: Some(1_100),
            accounts: vec![AccountStatus {
                account: scene.account,
                channel: "acme".to_owned(),
                platform: Platform::Slack,
                name: "Acme".to_owned(),
                last_captured_ms: None,
                tokens_today: 10,
                usage_today: usage,
                cost_micros_today: 0,
                held: None,
                parked_chats: 0,
                unread_from_ms: None,
                backfills: 0,
                history_gaps: 0,
                history_gap: None,
            }],
            ..StoreStatus::default()
        };
        assert_eq!(status, expected);
        let tomorrow = scene.store.status(2 * DAY_MS).await.unwrap();
        assert_eq!(tomorrow.accounts[0].tokens_today, 0);
    }

    #[tokio::test]
    async fn a_run_given_up_counts_as_recent_for_a_day() {
        let scene = Scene::open().await;
        let room = scene.room("C1").await;
        scene.ask(&room, "hello?", 100).await;
        let claimed = scene.claim(150).await.unwrap();
        let reason = "refused".to_owned();
        let mut notice = scene.answer(&claimed, &room, "Sorry.");
        notice.ending = RunEnding::Dead { reason };
        let now_ms = notice.now_ms;
        scene.store.commit_reply(notice).await.unwrap();
        let dead = async |now_ms| {
            let status = scene.store.status(now_ms).await.unwrap();
            (status.runs_dead, status.runs_dead_last_day)
        };
        assert_eq!(dead(now_ms + DAY_MS - 1).await, (1, 1));
        assert_eq!(dead(now_ms + DAY_MS).await, (1, 0));
    }
}
