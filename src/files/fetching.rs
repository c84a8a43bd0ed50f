//! The worker: fetches what is due, a few files at once, and removes what nothing refers to any more.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};
use vocative_contract::crash;
use vocative_contract::envelope::ChatKind;
use vocative_contract::file::{FileDescription, FileError, FileSource};

use crate::capture::wake::Wake;
use crate::delivery::rooms::Rooms;
use crate::delivery::worker::{Clock, pause_until};
use crate::files::counters::FileCounters;
use crate::files::policy::FilesPolicy;
use crate::files::space::{Promise, Space};
use crate::files::speech::{SpeechError, Transcriber, after_speech};
use vocative_core::file::{ContentId, DueFile, FileFacts, FileKind, FileOutcome, FileState};
use vocative_core::ids::{AccountId, FileId, ParticipantId};
use vocative_store::origins::Origin;
use vocative_store::spending::{Purpose, Spending};
use vocative_store::{ContentWriter, Store, StoreError};

/// Files of one channel on their way at once: a slow platform keeps no other one waiting.
pub const FILES_IN_FLIGHT_MAX: usize = 4;
/// Voice notes that are being written down at once: a slow server keeps no file waiting.
pub const SPEECH_IN_FLIGHT_MAX: usize = 2;
/// How often due files, and contents to be removed, are looked for without a wake hint.
const POLL: Duration = Duration::from_millis(1_000);
/// The longest transfer; one that takes longer is given up and tried again.
const FETCH_MAX: Duration = Duration::from_secs(300);
/// How long nothing is written after the disk refused a write.
const DISK_WAIT: Duration = Duration::from_secs(30);

/// Where there is no room, a twentieth of all of it is made at once: finding out what was read when costs more than
/// one file is worth.
const EVICTED_SHARE: u64 = 20;
/// Files that were fetched or read within this time make no room, in milliseconds.
const KEPT_FOR_MS: i64 = 3_600_000;
/// At a start, files that were given up within this time are tried once more, so many of them.
const AGAIN_MS: i64 = 7 * 24 * 3_600_000;
const AGAIN_MAX: usize = 500;

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
    /// What became of files.
    pub counters: Arc<FileCounters>,
    /// Room on the disk.
    pub space: Space,
}

/// On whose account something is done: each has so many hands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hands {
    Of(AccountId),
    Hearing,
}

type FilesTaken = HashMap<FileId, Hands>;

impl Worker {
    /// Fetches until `stop`; what is on its way then is fetched again after the next start.
    pub async fn run(self, stop: CancellationToken) {
        let worker = Arc::new(self);
        worker.try_again().await;
        worker.try_hearing().await;
        let mut in_flight: JoinSet<FileId> = JoinSet::new();
        let mut taken = FilesTaken::new();
        loop {
            let notified = worker.wake.files.notified();
            let now_ms = (worker.clock)();
            for (file, hands) in worker.due(&taken, now_ms).await {
                taken.insert(file.id, hands);
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

    /// What was given up lately is looked at once more at a start: with another limit, scope or server it may
    /// be had. The same goes for voice notes that nobody was there to write down.
    async fn try_again(&self) {
        let now_ms = (self.clock)();
        let since_ms = now_ms.saturating_sub(AGAIN_MS);
        let tried = async {
            let mut files = self.store.given_up_files(since_ms, AGAIN_MAX).await?;
            files.retain(|file| file.facts.is_unknown() || self.policy.refusal(file).is_none());
            let files = files.into_iter().map(|file| file.id).collect();
            let hears_since_ms = self.transcriber.as_ref().map(|_| since_ms);
            let again = self.store.try_files_again(files, hears_since_ms, now_ms);
            let mut count = again.await?;
            if hears_since_ms.is_some() {
                let notes = self.store.unheard_notes(since_ms, AGAIN_MAX).await?;
                count += self.store.queue_speech(notes, now_ms).await?;
            }
            Ok::<u64, StoreError>(count)
        };
        match tried.await {
            Ok(0) => {}
            Ok(count) => info!(count, "files that were given up lately are tried once more"),
            Err(cause) => warn!(error = %cause, "files that were given up can't be tried again"),
        }
    }

    /// What is to be fetched and written down, as far as hands are free.
    async fn due(&self, taken: &FilesTaken, now_ms: i64) -> Vec<(DueFile, Hands)> {
        let accounts = self.rooms.accounts();
        let mut due = Vec::new();
        for account in &accounts {
            let hands = Hands::Of(*account);
            let look = async |limit| self.store.due_files(&[*account], now_ms, limit).await;
            due.extend(free(taken, hands, FILES_IN_FLIGHT_MAX, look).await);
        }
        if self.transcriber.is_some() && !accounts.is_empty() {
            let hands_max = self.hearing_hands(now_ms).await;
            let look = async |limit| self.store.due_speech(&accounts, now_ms, limit).await;
            due.extend(free(taken, Hands::Hearing, hands_max, look).await);
        }
        due
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
        let done = async {
            let is_served = self.is_served(&file).await?;
            match (file.content, &self.transcriber) {
                (Some(_), Some(_)) if !is_served => {
                    self.store.note_speech(file.id, unserved()).await
                }
                (Some(content), Some(transcriber)) => self.hear(&file, content, transcriber).await,
                _ if !is_served => self.note(&file, unserved()).await,
                _ => self.fetch(file).await,
            }
        };
        let done = done.await;
        if let Err(cause) = done {
            warn!(error = %cause, "storage refuses what becomes of a file; trying again");
            // Not at once, or a full disk would be asked again and again.
            tokio::time::sleep(DISK_WAIT).await;
        }
    }

    /// Whether the lists still let in whoever sent it. Of a message that is gone nothing is fetched anyway.
    async fn is_served(&self, file: &DueFile) -> Result<bool, StoreError> {
        let origin = self.store.file_origin(file.id).await?;
        let is_served = |origin: Origin| {
            // In a room another bot may have sent it, of which `allow_people` says nothing.
            let is_direct = origin.place.kind == Some(ChatKind::Direct);
            let person = origin.person.as_deref().filter(|_| is_direct);
            self.rooms.still_admits(file.account, &origin.place, person)
        };
        Ok(origin.is_none_or(is_served))
    }

    /// Who sent a file.
    async fn person_of(&self, file: &DueFile) -> Result<Option<ParticipantId>, StoreError> {
        let origin = self.store.file_origin(file.id).await?;
        match origin.and_then(|origin| origin.person) {
            Some(person) => self.store.participant(file.account, person).await,
            None => Ok(None),
        }
    }

    async fn fetch(&self, mut file: DueFile) -> Result<(), StoreError> {
        let Some(room) = self.rooms.get(file.account) else {
            return Ok(());
        };
        let Some(source) = room.files else {
            let outcome = FileOutcome::GivenUp {
                state: FileState::Refused,
                reason: "this channel fetches no files".to_owned(),
            };
            return self.note(&file, outcome).await;
        };
        if file.facts.is_unknown() && self.policy.is_on {
            match source.describe(&file.platform_id).await {
                Ok(told) => self.describe(&mut file, told).await?,
                Err(error) => return self.note_failure(&file, &error).await,
            }
        }
        if let Some(outcome) = self.policy.refusal(&file) {
            return self.note(&file, outcome).await;
        }
        let Some(promise) = self.room_for(self.policy.bytes_of(&file)).await? else {
            return self.note(&file, FilesPolicy::no_room()).await;
        };
        let mut content = self.store.new_content()?;
        let bytes_max = self.policy.bytes_max;
        match fetch_in_time(&*source, &file.platform_id, bytes_max, &mut content).await {
            Ok(()) => self.keep(&file, content, promise).await,
            // The bytes that came go first: there may be room then.
            Err(error) => {
                drop(content);
                self.note_failure(&file, &error).await
            }
        }
    }

    /// Keeps what came.
    async fn keep(
        &self,
        file: &DueFile,
        content: ContentWriter,
        promise: Promise<'_>,
    ) -> Result<(), StoreError> {
        crash::point("file.fetched");
        let (size_bytes, now_ms) = (content.size_bytes(), (self.clock)());
        let mut promise = Some(promise);
        // More came than was told.
        if promise.as_ref().is_some_and(|it| it.bytes() < size_bytes) {
            drop(promise.take());
            promise = self.room_for(size_bytes).await?;
            if promise.is_none() {
                return self.note(file, FilesPolicy::no_room()).await;
            }
        }
        let hears = self.transcriber.is_some() && file.facts.content_kind() == FileKind::Voice;
        let keeping = self.store.keep_content(file.id, content, hears, now_ms);
        if keeping.await? {
            self.counters.fetched.fetch_add(1, Ordering::Relaxed);
            info!(file.id = %file.id, size_bytes, "a file was fetched");
        }
        drop(promise);
        Ok(())
    }

    /// Room for a file; where there is none, contents that were read long ago make it.
    async fn room_for(&self, bytes: u64) -> Result<Option<Promise<'_>>, StoreError> {
        let bytes_max = self.policy.total_bytes_max;
        let stored = || self.store.content_bytes();
        let promise = self.space.promise(bytes, bytes_max, stored).await?;
        if promise.is_some() || bytes > bytes_max {
            return Ok(promise);
        }
        let wanted = bytes.max(bytes_max / EVICTED_SHARE);
        let now_ms = (self.clock)();
        let evicted = self
            .store
            .evict_contents(wanted, now_ms - KEPT_FOR_MS, now_ms);
        let freed = evicted.await?;
        if freed == 0 {
            return Ok(None);
        }
        self.counters
            .evicted_bytes
            .fetch_add(freed, Ordering::Relaxed);
        info!(
            freed_bytes = freed,
            "files that were read long ago made room for newer ones"
        );
        self.store.remove_dropped().await?;
        self.space.promise(bytes, bytes_max, stored).await
    }

    /// Notes what the platform says of a file that its message said nothing of.
    async fn describe(
        &self,
        file: &mut DueFile,
        told: Option<FileDescription>,
    ) -> Result<(), StoreError> {
        let Some(told) = told else {
            return Ok(());
        };
        file.facts = FileFacts {
            kind: told.kind,
            name: told.name,
            mime_type: told.mime_type,
            size_bytes: told.size_bytes,
        };
        let facts = file.facts.clone();
        self.store
            .describe_file(file.id, facts, (self.clock)())
            .await
    }

    async fn note_failure(&self, file: &DueFile, error: &FileError) -> Result<(), StoreError> {
        let now_ms = (self.clock)();
        let outcome = match error {
            // It is the disk, and not the file: it stays wanted.
            FileError::Sink(error) => FileOutcome::Again {
                not_before_ms: now_ms.saturating_add(millis(DISK_WAIT)),
                counts: false,
                reason: format!("it can't be written to the disk: {error}"),
            },
            error => self.policy.after(error, file.attempts, now_ms),
        };
        self.note(file, outcome).await
    }

    /// Writes a voice note down.
    async fn hear(
        &self,
        file: &DueFile,
        content: ContentId,
        transcriber: &Transcriber,
    ) -> Result<(), StoreError> {
        // A file that was stored under a larger limit stays.
        let Some(bytes) = self.store.content(content, u64::MAX).await? else {
            return self.store.fetch_again(content, (self.clock)()).await;
        };
        let person = self.person_of(file).await?;
        let (account, now_ms) = (file.account, (self.clock)());
        let spent_up = self.rooms.spent_up(&self.store, account, person, now_ms);
        if spent_up.await?.is_some() {
            warn!(file.id = %file.id, "a voice note waits: the day's tokens are used up");
            return self.store.note_speech(file.id, tomorrow(now_ms)).await;
        }
        match transcriber.transcribe(&file.facts, &bytes).await {
            Ok(heard) => {
                let spending = Spending {
                    account,
                    person,
                    purpose: Purpose::Speech,
                    tokens: heard.tokens,
                    now_ms: (self.clock)(),
                };
                self.store.spend(spending).await?;
                self.store
                    .keep_transcript(file.id, heard.text, (self.clock)())
                    .await?;
                self.counters.heard.fetch_add(1, Ordering::Relaxed);
                info!(file.id = %file.id, "a voice note was written down");
                self.resume_hearing().await
            }
            Err(cause) => {
                warn!(error = %cause, file.id = %file.id, "a voice note was not written down");
                let outcome = after_speech(&cause, file.attempts, (self.clock)());
                if let FileOutcome::GivenUp { reason, .. } = &outcome {
                    self.counters.note_unheard(reason);
                }
                self.store.note_speech(file.id, outcome).await?;
                match cause {
                    SpeechError::AccountRefused { what } => self.hold_hearing(&what).await,
                    SpeechError::Refused { .. } => self.resume_hearing().await,
                    SpeechError::Unavailable { .. } => Ok(()),
                }
            }
        }
    }

    async fn note(&self, file: &DueFile, outcome: FileOutcome) -> Result<(), StoreError> {
        match &outcome {
            FileOutcome::Again { reason, .. } => {
                warn!(file.id = %file.id, reason, "a file could not be fetched; trying again");
            }
            FileOutcome::GivenUp { state, reason } => {
                self.counters.note(*state, reason);
                info!(file.id = %file.id, state = state.name(), reason, "a file is not fetched; it is only named");
            }
        }
        self.store.note_file(file.id, outcome, (self.clock)()).await
    }
}

/// A note that may be written down once there are tokens again: on the next UTC day.
fn tomorrow(now_ms: i64) -> FileOutcome {
    const DAY_MS: i64 = 86_400_000;
    let today_ms = now_ms.div_euclid(DAY_MS).saturating_mul(DAY_MS);
    FileOutcome::Again {
        not_before_ms: today_ms.saturating_add(DAY_MS),
        counts: false,
        reason: "the day's tokens are used up".to_owned(),
    }
}

/// What becomes of a file whose chat or person the lists no longer let in.
fn unserved() -> FileOutcome {
    FileOutcome::GivenUp {
        state: FileState::Refused,
        reason: "its chat or person is no longer served".to_owned(),
    }
}

/// What is due for these hands, as far as they are free.
async fn free(
    taken: &FilesTaken,
    hands: Hands,
    hands_max: usize,
    look: impl AsyncFnOnce(usize) -> Result<Vec<DueFile>, StoreError>,
) -> Vec<(DueFile, Hands)> {
    let busy = taken.values().filter(|it| **it == hands).count();
    let free = hands_max.saturating_sub(busy);
    if free == 0 {
        return Vec::new();
    }
    // What is taken is still due in the store.
    let due = look(free + taken.len()).await.unwrap_or_else(|cause| {
        warn!(error = %cause, "files could not be looked for; trying again");
        Vec::new()
    });
    let is_free = |file: &DueFile| !taken.contains_key(&file.id);
    let due = due.into_iter().filter(is_free).take(free);
    due.map(|file| (file, hands)).collect()
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

async fn fetch_in_time(
    source: &dyn FileSource,
    id: &str,
    bytes_max: u64,
    content: &mut ContentWriter,
) -> Result<(), FileError> {
    let fetching = source.fetch(id, bytes_max, content);
    let in_time = tokio::time::timeout(FETCH_MAX, fetching).await;
    in_time.unwrap_or_else(|_| {
        Err(FileError::Failed {
            reason: "it took too long".to_owned(),
        })
    })
}
