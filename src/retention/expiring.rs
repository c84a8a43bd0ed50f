//! The job that deletes old data, and the look that queues it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;
use tracing::{error, info};

use crate::capture::clock::Clock;
use crate::config::{Config, RetentionDays};
use crate::retention::aging::{self, AgreedSince, Agreement, Evidence, TimeDoubt, share_of};
use vocative_core::ids::AccountId;
use vocative_core::job::Job;
use vocative_core::queueing::Outcome;
use vocative_store::{ChannelBinding, ExpiryBounds, Store, StoreError, Working};

/// How often old data is looked for.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// The wait after a start, so that the channels connect first.
const FIRST_WAIT: Duration = Duration::from_secs(2);
/// The wait after a start while no platform has told the time.
const UNTOLD_WAIT: Duration = Duration::from_secs(60);
/// The wait of a job that is claimed too soon after a start, in milliseconds.
const SOON_MS: i64 = 2_000;
/// How long an account rests after a whole share of its data was deleted, in milliseconds.
const REST_MS: i64 = 3_600_000;
/// The wait while all that is old belongs to chats with open runs or posts, in milliseconds.
const HELD_WAIT_MS: i64 = 900_000;
const DAY_MS: i64 = 86_400_000;

/// Deletes old data.
pub struct Retention {
    /// The store.
    pub store: Store<Working>,
    /// The configuration in force.
    pub config: Arc<dyn Fn() -> Arc<Config> + Send + Sync>,
    /// Whether the machine's clock and the platforms' agree.
    pub agreement: Arc<dyn Fn() -> Agreement + Send + Sync>,
    /// Why nothing is deleted, for `status`.
    pub time_doubt: TimeDoubt,
    /// The time.
    pub clock: Clock,
    /// How long raw events are kept for debugging, in milliseconds.
    pub raw_kept_ms: i64,
    /// What it remembers between looks.
    pub looks: Mutex<RetentionLooks>,
}

/// What retention remembers between looks.
#[derive(Debug)]
pub struct RetentionLooks {
    began: Instant,
    looked: Option<Instant>,
    agreed: AgreedSince,
}

impl Default for RetentionLooks {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            looked: None,
            agreed: AgreedSince::default(),
        }
    }
}

impl RetentionLooks {
    fn is_soon_after_start(&self, agreement: &Agreement) -> bool {
        let wait = match agreement {
            Agreement::Untold => UNTOLD_WAIT,
            Agreement::Agreed | Agreement::Disputed { .. } => FIRST_WAIT,
        };
        self.began.elapsed() < wait
    }

    /// Whether it is time to look; then that is noted.
    fn begin_look(&mut self, agreement: &Agreement) -> bool {
        let is_fresh = self.looked.is_some_and(|at| at.elapsed() < LOOK_EVERY);
        if is_fresh || self.is_soon_after_start(agreement) {
            return false;
        }
        self.looked = Some(Instant::now());
        true
    }
}

impl Retention {
    /// The accounts with old data for which no job is queued; `None` stands for raw events that are kept for debugging.
    /// Reads only now and then.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn due(&self) -> Result<Vec<Option<AccountId>>, StoreError> {
        let mut due = Vec::new();
        let is_time = self.looks().begin_look(&(self.agreement)());
        if !is_time || self.share_that_may_go().await?.is_none() {
            return Ok(due);
        }
        let now_ms = (self.clock)();
        for kept in self.kept().await? {
            let job = Job::ExpireData {
                account: Some(kept.account),
            };
            let bounds = expiry(kept.days, now_ms);
            if !self.store.is_queued(job).await?
                && self
                    .store
                    .is_anything_old(kept.account, bounds, now_ms)
                    .await?
            {
                due.push(Some(kept.account));
            }
        }
        let raw = Job::ExpireData { account: None };
        if !self.store.is_queued(raw).await?
            && self.store.is_raw_old(now_ms - self.raw_kept_ms).await?
        {
            due.push(None);
        }
        Ok(due)
    }

    /// Deletes old data, at most a share of each class, also of a channel that has not signed in since the start.
    ///
    /// # Errors
    /// Storage refuses; what is deleted by then stays so.
    pub async fn expire(&self, account: Option<AccountId>) -> Result<Outcome, StoreError> {
        if self.looks().is_soon_after_start(&(self.agreement)()) {
            return Ok(LeftOver::JustStarted.outcome((self.clock)()));
        }
        // While the time is doubtful the job goes; the look queues it again.
        let Some(share) = self.share_that_may_go().await? else {
            return Ok(Outcome::Done);
        };
        let Some(account) = account else {
            let older_than_ms = (self.clock)() - self.raw_kept_ms;
            // The next look queues what is left: these events come faster than turns.
            self.store.expire_raw(older_than_ms, share).await?;
            return Ok(Outcome::Done);
        };
        let kept = self.kept().await?;
        let Some(kept) = kept.into_iter().find(|kept| kept.account == account) else {
            return Ok(Outcome::Done);
        };
        let now_ms = (self.clock)();
        let bounds = expiry(kept.days, now_ms);
        let gone = self.store.expire(account, bounds, share, now_ms).await?;
        if !gone.is_nothing() {
            info!(
                channel.id = %kept.channel,
                turns = gone.text,
                raw = gone.raw,
                runs = gone.runs,
                "old data was let go"
            );
        }
        let left = match gone.is_whole_share(share) {
            true => LeftOver::Share,
            false if self.store.is_anything_old(account, bounds, now_ms).await? => LeftOver::AtWork,
            false => LeftOver::Nothing,
        };
        Ok(left.outcome((self.clock)()))
    }

    fn looks(&self) -> std::sync::MutexGuard<'_, RetentionLooks> {
        self.looks.lock().expect("no holder of this lock panics")
    }

    /// Whether any data is deleted by age, as configured.
    fn lets_go(&self) -> bool {
        let config = (self.config)();
        let mut kept = config
            .channels
            .values()
            .map(|channel| channel.retention_days);
        self.raw_kept_ms > 0 || kept.any(|days| expiry(days, 0) != ExpiryBounds::default())
    }

    /// How many rows of a class may be deleted at once; `None` while the time is doubtful, which `status` and the log
    /// report.
    async fn share_that_may_go(&self) -> Result<Option<u64>, StoreError> {
        let agreement = (self.agreement)();
        let kept = self.store.kept_turns().await?;
        let agreed_for = self.looks().agreed.note(&agreement, Instant::now());
        let evidence = Evidence {
            now_ms: (self.clock)(),
            newest_ms: kept.newest_ms,
            agreed_for,
            agreement,
        };
        let doubt = aging::doubt(&evidence);
        let is_disputed = matches!(evidence.agreement, Agreement::Disputed { .. });
        let told = doubt.clone().filter(|_| is_disputed || self.lets_go());
        match &told {
            Some(why) if self.time_doubt.set(told.clone()) => {
                error!(why, "the time is doubtful: nothing is deleted for its age");
            }
            None if self.time_doubt.set(None) => {
                info!("the time is plausible again: old data goes as configured");
            }
            _ => {}
        }
        Ok(doubt.is_none().then(|| share_of(kept.turns)))
    }

    async fn kept(&self) -> Result<Vec<KeptAccount>, StoreError> {
        let config = (self.config)();
        let bindings = self.store.bindings().await?;
        let days_of = |channel: &str| Some(config.channels.get(channel)?.retention_days);
        Ok(kept_by(&bindings, days_of))
    }
}

/// What a job leaves for later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeftOver {
    Nothing,
    /// The daemon has just started.
    JustStarted,
    /// More is old than may go at once.
    Share,
    /// The rest belongs to chats with open runs or posts.
    AtWork,
}

impl LeftOver {
    fn outcome(self, now_ms: i64) -> Outcome {
        let (wait_ms, why) = match self {
            Self::Nothing => return Outcome::Done,
            Self::JustStarted => (SOON_MS, "the daemon has just started"),
            Self::Share => (REST_MS, "more is old than may go at once"),
            Self::AtWork => (
                HELD_WAIT_MS,
                "the rest belongs to chats with open runs or posts",
            ),
        };
        Outcome::Later {
            not_before_ms: now_ms.saturating_add(wait_ms),
            why: why.to_owned(),
        }
    }
}

/// The times before which data of an account is deleted.
fn expiry(days: RetentionDays, now_ms: i64) -> ExpiryBounds {
    let before_ms = |days: u32| (days > 0).then(|| now_ms - i64::from(days) * DAY_MS);
    ExpiryBounds {
        text_before_ms: before_ms(days.text),
        raw_before_ms: before_ms(days.raw),
        runs_before_ms: before_ms(days.runs),
    }
}

/// For how long an account's data is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
struct KeptAccount {
    channel: String,
    account: AccountId,
    days: RetentionDays,
}

/// The channel whose settings say how long an account's data is kept: of the configured ones, the channel that signed
/// in last. Data of removed channels stays until a person decides; `status` names it.
fn kept_by(
    bindings: &[ChannelBinding],
    days_of: impl Fn(&str) -> Option<RetentionDays>,
) -> Vec<KeptAccount> {
    let mut kept: Vec<KeptAccount> = Vec::new();
    for binding in bindings {
        let is_known = kept.iter().any(|it| it.account == binding.account);
        if let Some(days) = days_of(&binding.channel).filter(|_| !is_known) {
            kept.push(KeptAccount {
                channel: binding.channel.clone(),
                account: binding.account,
                days,
            });
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_waits_as_long_as_a_job_of_its_kind_may() {
        use vocative_core::job::JobKind;
        let limits = JobKind::ExpireData.limits();
        assert_eq!(LeftOver::Nothing.outcome(5), Outcome::Done);
        for (left, wait_ms) in [
            (LeftOver::JustStarted, 2_000),
            (LeftOver::Share, 3_600_000),
            (LeftOver::AtWork, 900_000),
        ] {
            let Outcome::Later { not_before_ms, .. } = left.outcome(5) else {
                panic!("{left:?} waits");
            };
            assert_eq!(not_before_ms, 5 + wait_ms);
            assert!(wait_ms < limits.later_max_ms, "{left:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_looked_for_right_after_a_start_and_then_seldom() {
        let (mut looks, agreed) = (RetentionLooks::default(), &Agreement::Agreed);
        assert!(looks.is_soon_after_start(agreed) && !looks.begin_look(agreed));
        tokio::time::advance(FIRST_WAIT).await;
        assert!(!looks.begin_look(&Agreement::Untold));
        assert!(!looks.is_soon_after_start(agreed) && looks.begin_look(agreed));
        assert!(!looks.begin_look(agreed));
        tokio::time::advance(LOOK_EVERY).await;
        assert!(looks.begin_look(agreed));
        tokio::time::advance(UNTOLD_WAIT).await;
        assert!(looks.begin_look(&Agreement::Untold));
    }

    #[test]
    fn an_account_is_kept_by_the_configured_channel_that_signed_in_last() {
        let binding = |channel: &str, account| ChannelBinding {
            channel: channel.to_owned(),
            account: AccountId(account),
            account_name: String::new(),
        };
        let bindings = [
            binding("renamed", 1),
            binding("old", 1),
            binding("removed", 2),
            binding("removed-too", 3),
            binding("other", 3),
        ];
        let days = RetentionDays::default();
        let kept = kept_by(&bindings, |name| {
            (!name.starts_with("removed")).then_some(days)
        });
        let expected = [("renamed", 1), ("other", 3)].map(|(channel, account)| KeptAccount {
            channel: channel.to_owned(),
            account: AccountId(account),
            days,
        });
        assert_eq!(kept, expected);
    }
}
