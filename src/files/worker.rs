//! The worker: fetches what is due, a few files at once, and removes what nothing refers to any more.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};
use vocative_channels::crash;
use vocative_channels::file::{FileError, FileSource};

use crate::capture::inbound::Wake;
use crate::delivery::rooms::Rooms;
use crate::delivery::worker::{Clock, pause_until};
use crate::domain::file::{ContentId, DueFile, FileKind, FileOutcome, FileState};
use crate::domain::ids::{AccountId, FileId};
use crate::files::policy::FilesPolicy;
use crate::files::speech::{Transcriber, after_speech};
use crate::store::{Store, StoreError};

/// Files on their way at once.
pub const FILES_IN_FLIGHT_MAX: usize = 4;
/// With every wake hint lost, files are still looked for at this pace, and dropped ones removed.
const POLL: Duration = Duration::from_millis(1_000);
/// A transfer that takes longer is given up and tried again.
const FETCH_MAX: Duration = Duration::from_secs(300);

/// The files worker.
pub struct Worker {
    /// Where files are queued.
    pub store: Store,
    /// Who can fetch what.
    pub rooms: Rooms,
    /// What is fetched.
    pub policy: FilesPolicy,
    /// Writes voice notes down; `None` = they are only named.
    pub transcriber: Option<Transcriber>,
    /// Wake hints.
    pub wake: Wake,
    /// The time.
    pub clock: Clock,
}

impl Worker {
    /// Fetches until `stop`; what is on its way then is fetched again after the next start.
    pub async fn run(self, stop: CancellationToken) {
        let worker = Arc::new(self);
        let mut in_flight: JoinSet<FileId> = JoinSet::new();
        let mut taken: HashSet<FileId> = HashSet::new();
        loop {
            let notified = worker.wake.files.notified();
            let now_ms = (worker.clock)();
            for file in worker.due(&taken, now_ms).await {
                taken.insert(file.id);
                let worker = Arc::clone(&worker);
                in_flight.spawn(async move {
                    let id = file.id;
                    worker.handle(file).await;
                    id
                });
            }
            worker.remove_dropped().await;
            let due_ms = worker.store.next_file_due_ms().await.unwrap_or(None);
            let due_ms = due_ms.filter(|due_ms| *due_ms > now_ms);
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(ended) = in_flight.join_next(), if !in_flight.is_empty() => match ended {
                    Ok(id) => { taken.remove(&id); }
                    Err(cause) => {
                        // Which one it was is not known; a file that is fetched twice is kept once.
                        taken.clear();
                        error!(error = %cause, "fetching a file panicked; it is tried again");
                    }
                },
                () = notified => {}
                () = tokio::time::sleep(pause_until(due_ms, now_ms, POLL)) => {}
            }
        }
        in_flight.shutdown().await;
    }

    async fn due(&self, taken: &HashSet<FileId>, now_ms: i64) -> Vec<DueFile> {
        let free = FILES_IN_FLIGHT_MAX.saturating_sub(taken.len());
        let accounts = self.rooms.accounts();
        if free == 0 || accounts.is_empty() {
            return Vec::new();
        }
        let mut due = self.look(&accounts, now_ms, free + taken.len()).await;
        due.retain(|file| !taken.contains(&file.id));
        due.truncate(free);
        due
    }

    /// What is to be fetched, and then what is to be written down.
    async fn look(&self, accounts: &[AccountId], now_ms: i64, limit: usize) -> Vec<DueFile> {
        let mut due = self.store.due_files(accounts, now_ms, limit).await;
        if let Ok(due) = &mut due
            && self.transcriber.is_some()
        {
            match self.store.due_speech(accounts, now_ms, limit).await {
                Ok(speech) => due.extend(speech),
                Err(cause) => {
                    warn!(error = %cause, "voice notes could not be looked for; trying again");
                }
            }
        }
        due.unwrap_or_else(|cause| {
            warn!(error = %cause, "files could not be looked for; trying again");
            Vec::new()
        })
    }

    async fn remove_dropped(&self) {
        match self.store.remove_dropped().await {
            Ok(0) => {}
            Ok(count) => info!(
                count,
                "stored files were removed: nothing refers to them any more"
            ),
            Err(cause) => warn!(error = %cause, "stored files could not be removed; trying again"),
        }
    }

    async fn handle(&self, file: DueFile) {
        let done = match (file.content, &self.transcriber) {
            (Some(content), Some(transcriber)) => self.hear(&file, content, transcriber).await,
            _ => self.fetch(&file).await,
        };
        if let Err(cause) = done {
            warn!(error = %cause, "storage refuses what becomes of a file; trying again");
            // Not at once, or a full disk would be asked again and again.
            tokio::time::sleep(POLL).await;
        }
    }

    async fn fetch(&self, file: &DueFile) -> Result<(), StoreError> {
        let Some(room) = self.rooms.get(file.account) else {
            return Ok(());
        };
        let total_bytes = self.store.content_bytes().await?;
        if let Some(outcome) = self.policy.refusal(file, total_bytes) {
            return self.note(file, outcome).await;
        }
        let Some(source) = room.files else {
            let outcome = FileOutcome::GivenUp {
                state: FileState::Refused,
                reason: "this channel fetches no files".to_owned(),
            };
            return self.note(file, outcome).await;
        };
        let mut content = self.store.new_content()?;
        let bytes_max = self.policy.bytes_max;
        let fetching = fetch_in_time(&*source, &file.platform_id, bytes_max, &mut content);
        match fetching.await {
            Ok(()) => {
                crash::point("file.fetched");
                let (size_bytes, now_ms) = (content.size_bytes(), (self.clock)());
                let hears =
                    self.transcriber.is_some() && file.facts.content_kind() == FileKind::Voice;
                if self
                    .store
                    .keep_content(file.id, content, hears, now_ms)
                    .await?
                {
                    info!(file.id = %file.id, size_bytes, "a file was fetched");
                }
                Ok(())
            }
            Err(FileError::Sink(error)) => Err(StoreError::Unavailable {
                what: error.to_string(),
            }),
            Err(error) => {
                let outcome = self.policy.after(&error, file.attempts, (self.clock)());
                self.note(file, outcome).await
            }
        }
    }

    /// Writes a voice note down.
    async fn hear(
        &self,
        file: &DueFile,
        content: ContentId,
        transcriber: &Transcriber,
    ) -> Result<(), StoreError> {
        let Some(bytes) = self.store.content(content, self.policy.bytes_max).await? else {
            return self.store.fetch_again(content, (self.clock)()).await;
        };
        match transcriber.transcribe(&file.facts, &bytes).await {
            Ok(text) => {
                self.store
                    .keep_transcript(file.id, text, (self.clock)())
                    .await?;
                info!(file.id = %file.id, "a voice note was written down");
                Ok(())
            }
            Err(cause) => {
                warn!(error = %cause, file.id = %file.id, "a voice note was not written down");
                let outcome = after_speech(&cause, file.attempts, (self.clock)());
                self.store.note_speech(file.id, outcome).await
            }
        }
    }

    async fn note(&self, file: &DueFile, outcome: FileOutcome) -> Result<(), StoreError> {
        match &outcome {
            FileOutcome::Again { reason, .. } => {
                warn!(file.id = %file.id, reason, "a file could not be fetched; trying again");
            }
            FileOutcome::GivenUp { state, reason } => {
                info!(file.id = %file.id, state = state.name(), reason, "a file is not fetched; it is only named");
            }
        }
        self.store.note_file(file.id, outcome, (self.clock)()).await
    }
}

async fn fetch_in_time(
    source: &dyn FileSource,
    id: &str,
    bytes_max: u64,
    content: &mut crate::store::ContentWriter,
) -> Result<(), FileError> {
    let fetching = source.fetch(id, bytes_max, content);
    let in_time = tokio::time::timeout(FETCH_MAX, fetching).await;
    in_time.unwrap_or_else(|_| {
        Err(FileError::Failed {
            reason: "it took too long".to_owned(),
        })
    })
}
