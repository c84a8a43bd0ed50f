//! What each kind of job does.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;
use tracing::{info, warn};

use crate::agent::desk::InquiryDesk;
use crate::agent::registry::Registry;
use crate::capture::clock::Clock;
use crate::catchup::keeper::Keepers;
use crate::embeddings::Embeddings;
use crate::files::fetching::Fetcher;
use crate::hooks::{AboutApproval, AboutRun, HookTelling};
use crate::jobs::worker::JobHandler;
use crate::learning::Learner;
use crate::retention::expiring::Retention;
use crate::summary::summarizer::Summarizer;
use crate::summary::titling::Titler;
use vocative_core::file::FileState;
use vocative_core::ids::{AccountId, ErasureId, TellingId};
use vocative_core::job::{ClaimedJob, Job, JobKind, JobSubject};
use vocative_core::queueing::Outcome;
use vocative_store::{PageWalk, Store, StoreError, Working, contract};

/// The pause between two steps of a long job, in which the writer serves others.
const BETWEEN_STEPS: Duration = Duration::from_millis(20);
/// The shortest time between two walks through the database file.
const BETWEEN_WALKS: Duration = Duration::from_secs(3_600);

/// Those who do the work.
pub struct Handlers {
    /// The store.
    pub store: Store<Working>,
    /// Answers inquiries.
    pub desk: InquiryDesk,
    /// Fetches files and writes voice notes down.
    pub files: Fetcher,
    /// Makes vectors of turns, where a server is configured.
    pub embeddings: Option<Arc<Embeddings>>,
    /// Reads conversations for memory.
    pub learner: Learner,
    /// Makes summaries.
    pub summarizer: Summarizer,
    /// Has conversations titled.
    pub titler: Titler,
    /// Read back what was missed.
    pub keepers: Keepers,
    /// Deletes old data.
    pub retention: Retention,
    /// The agents, whose hooks are told.
    pub registry: Registry,
    /// The time.
    pub clock: Clock,
    /// When the database file was last walked through.
    pub walked: WalkedAt,
}

/// When the database file was last walked through, if this process did.
#[derive(Debug, Default)]
pub struct WalkedAt(Mutex<Option<Instant>>);

impl WalkedAt {
    /// How long the next walk is to wait.
    fn rest(&self) -> Duration {
        let walked = *self.0.lock().expect("no holder of this lock panics");
        walked.map_or(Duration::ZERO, |at| {
            BETWEEN_WALKS.saturating_sub(at.elapsed())
        })
    }

    fn note(&self) {
        *self.0.lock().expect("no holder of this lock panics") = Some(Instant::now());
    }
}

impl JobHandler for Handlers {
    async fn prepare(&self) {
        self.files.prepare().await;
    }

    async fn look(&self) {
        if let Err(cause) = self.want_vectors().await {
            warn!(error = %cause, "whether turns need vectors could not be read");
        }
        if let Err(cause) = self.want_memories().await {
            warn!(error = %cause, "which conversations have settled could not be read");
        }
        if let Err(cause) = self.want_summaries().await {
            warn!(error = %cause, "which conversations are to be summarised could not be read");
        }
        if let Err(cause) = self.want_expiry().await {
            warn!(error = %cause, "whether data is older than it is kept could not be read");
        }
        if let Err(cause) = self.want_titles().await {
            warn!(error = %cause, "which conversations want a title could not be read");
        }
    }

    async fn slots(&self, kind: JobKind, now_ms: i64) -> usize {
        match kind {
            JobKind::TranscribeFile if self.files.transcriber.is_some() => {
                self.files.speech_slots(now_ms).await
            }
            _ => kind.limits().slots,
        }
    }

    async fn work(&self, claimed: &ClaimedJob) -> Result<Outcome, StoreError> {
        match claimed.job {
            Job::AnswerInquiry { inquiry } => self.desk.answer(claimed, inquiry).await,
            Job::FetchFile { file } => self.files.fetch(file).await,
            Job::TranscribeFile { file } => self.files.transcribe(file).await,
            Job::Erase { order } => self.erase(order).await,
            Job::MergeChats => self.merge_chats().await,
            Job::RemoveContents => self.remove_contents().await,
            Job::EmbedTurns => self.embed_turns().await,
            Job::IndexTurns => self.index_turns().await,
            Job::CleanPages => self.clean_pages().await,
            Job::ExtractMemories { conversation } => self.learner.learn(conversation).await,
            Job::SummarizeConversation { conversation } => {
                self.summarizer.summarize(conversation).await
            }
            Job::TitleConversation { conversation } => {
                self.titler.title(conversation, claimed.attempts).await
            }
            Job::TellHook { telling } => self.tell_hook(telling).await,
            Job::ReadBack { account } => match self.keepers.get(account) {
                Some(keeper) => Ok(backed_off(keeper.read_back().await)),
                None => Ok(Outcome::Done),
            },
            Job::ExpireData { account } => Ok(backed_off(self.retention.expire(account).await)),
        }
    }

    fn note_dead(&self, job: &Job, cause: &str) {
        match job.subject() {
            JobSubject::File(_) => self.files.given_up.note(FileState::Failed, cause),
            JobSubject::VoiceNote(_) => self.files.given_up.note_unheard(cause),
            JobSubject::Inquiry(_) | JobSubject::Telling(_) | JobSubject::Nothing => {}
        }
    }
}

impl Handlers {
    async fn erase(&self, order: ErasureId) -> Result<Outcome, StoreError> {
        let carried_out = self
            .store
            .carry_out_all(&[order], false, || (self.clock)())
            .await?;
        info!("what somebody wanted forgotten is gone");
        for copy in carried_out.kept_copies {
            warn!(path = %copy.display(), "an old copy of the database still holds what people wanted forgotten; remove it once it is not needed");
        }
        Ok(Outcome::Done)
    }

    async fn merge_chats(&self) -> Result<Outcome, StoreError> {
        info!("two chats are becoming one, in steps");
        while self.store.continue_merges().await? {
            tokio::time::sleep(BETWEEN_STEPS).await;
        }
        info!("no chats are becoming one any more");
        Ok(Outcome::Done)
    }

    /// Looks for turns without vectors: capturing a turn queues no job for them.
    async fn want_vectors(&self) -> Result<(), StoreError> {
        let Some(embeddings) = &self.embeddings else {
            return Ok(());
        };
        if self.store.is_embedding_due(embeddings.model).await? {
            let now_ms = (self.clock)();
            self.store
                .enqueue_job(Job::EmbedTurns, None, now_ms)
                .await?;
        }
        Ok(())
    }

    /// Looks for settled conversations: settling triggers no event.
    async fn want_memories(&self) -> Result<(), StoreError> {
        for due in self.learner.due().await? {
            let job = Job::ExtractMemories {
                conversation: due.conversation,
            };
            self.enqueue(job, due.account).await?;
        }
        Ok(())
    }

    /// Looks for conversations with turns to fold: capturing a turn does not show that there are too many.
    async fn want_summaries(&self) -> Result<(), StoreError> {
        for due in self.summarizer.due().await? {
            let job = Job::SummarizeConversation {
                conversation: due.conversation,
            };
            self.enqueue(job, due.account).await?;
        }
        Ok(())
    }

    /// Looks for conversations that want a title: an answer does not say so.
    async fn want_titles(&self) -> Result<(), StoreError> {
        for due in self.titler.due().await? {
            let job = Job::TitleConversation {
                conversation: due.conversation,
            };
            self.enqueue(job, due.account).await?;
        }
        Ok(())
    }

    /// Looks for data that is older than its channel keeps it: growing old triggers no event.
    async fn want_expiry(&self) -> Result<(), StoreError> {
        for account in self.retention.due().await? {
            let (job, now_ms) = (Job::ExpireData { account }, (self.clock)());
            self.store.enqueue_job(job, account, now_ms).await?;
        }
        Ok(())
    }

    async fn enqueue(&self, job: Job, account: AccountId) -> Result<(), StoreError> {
        let now_ms = (self.clock)();
        self.store.enqueue_job(job, Some(account), now_ms).await
    }

    async fn embed_turns(&self) -> Result<Outcome, StoreError> {
        match &self.embeddings {
            Some(embeddings) => embeddings.fill().await,
            // It is queued again once a server is configured.
            None => Ok(Outcome::Done),
        }
    }

    async fn index_turns(&self) -> Result<Outcome, StoreError> {
        while self.store.index_turns().await? {
            tokio::time::sleep(BETWEEN_STEPS).await;
        }
        Ok(Outcome::Done)
    }

    /// Tells a hook about an ended run or approval. If the process was killed after the commit, the event is told
    /// after the next start; if it was told but not yet forgotten, it is told again with the same id.
    async fn tell_hook(&self, id: TellingId) -> Result<Outcome, StoreError> {
        let Some(stored) = self.store.telling(id).await? else {
            return Ok(Outcome::Done);
        };
        let spec = self.registry.get(&stored.agent);
        let hook = spec.and_then(|spec| {
            let mut hooks = spec.hooks.at(stored.point);
            hooks.find(|hook| hook.name == stored.hook).cloned()
        });
        let Some(hook) = hook else {
            let why = format!(
                "the agent {} has no hook {} at {} any more",
                stored.agent,
                stored.hook,
                stored.point.name()
            );
            return Ok(Outcome::Dead { why });
        };
        if let Err(why) = hook.tell(&told(stored)).await {
            return Ok(Outcome::failed(why));
        }
        self.store.forget_telling(id).await?;
        Ok(Outcome::Done)
    }

    async fn clean_pages(&self) -> Result<Outcome, StoreError> {
        let rest = self.walked.rest();
        if !rest.is_zero() {
            let rest_ms = i64::try_from(rest.as_millis()).unwrap_or(i64::MAX);
            return Ok(Outcome::Later {
                not_before_ms: (self.clock)().saturating_add(rest_ms),
                why: "the database file was walked through less than an hour ago".to_owned(),
            });
        }
        let mut walk = PageWalk::default();
        while self.store.clean_pages(&mut walk).await? {
            tokio::time::sleep(BETWEEN_STEPS).await;
        }
        self.walked.note();
        let PageWalk { pages, cleaned } = walk;
        info!(
            pages,
            cleaned, "what was deleted is in no unused byte of the database file"
        );
        Ok(Outcome::Done)
    }

    async fn remove_contents(&self) -> Result<Outcome, StoreError> {
        let count = self.store.remove_dropped().await?;
        if count > 0 {
            info!(
                count,
                "stored files were removed: nothing refers to them any more"
            );
        }
        Ok(Outcome::Done)
    }
}

/// The outcome of a job of an account that is queued again and again under one key: whatever the store refused, it has
/// failed and is tried again after its kind's wait. If it were set aside, none of that account would be queued again.
fn backed_off(worked: Result<Outcome, StoreError>) -> Outcome {
    worked.unwrap_or_else(|cause| Outcome::failed(cause.to_string()))
}

/// A stored event, in the form in which its hook is told.
fn told(stored: contract::Telling) -> HookTelling {
    let contract::Telling {
        operator,
        decided_by,
        via,
        tool,
        ..
    } = stored;
    let approval = stored.approval.map(|id| AboutApproval {
        id: id.to_string(),
        tool: tool.unwrap_or_default(),
        by: operator.or(decided_by),
        via,
    });
    HookTelling {
        id: stored.id.to_string(),
        point: stored.point,
        hook: stored.hook,
        about: AboutRun {
            agent: stored.agent.to_string(),
            run: stored.run.to_string(),
            conversation: stored.conversation.to_string(),
            channel: stored.channel,
            chat: stored.chat,
            person: stored.person,
        },
        outcome: stored.outcome,
        at_ms: stored.at_ms,
        approval,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_the_store_refused_the_job_of_an_account_is_tried_again() {
        assert_eq!(backed_off(Ok(Outcome::Done)), Outcome::Done);
        let what = || "a row".to_owned();
        for cause in [
            StoreError::Undecodable { what: what() },
            StoreError::Unavailable { what: what() },
        ] {
            let why = cause.to_string();
            assert_eq!(backed_off(Err(cause)), Outcome::failed(why));
        }
        for kind in [JobKind::ReadBack, JobKind::ExpireData] {
            assert_eq!(kind.limits().attempts_max, None, "{kind:?}");
        }
    }
}
