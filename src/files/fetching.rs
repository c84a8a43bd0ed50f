//! Fetches files and transcribes voice notes: the work of their jobs.

use std::sync::Arc;

use tracing::{info, warn};
use vocative_contract::crash;
use vocative_contract::envelope::ChatKind;
use vocative_contract::file::{FileDescription, FileError};

use crate::capture::clock::Clock;
use crate::capture::wake::Wake;
use crate::counters::{CountedEvent, Counters};
use crate::delivery::rooms::Rooms;
use crate::files::given_up::GivenUpFiles;
use crate::files::policy::{AfterFetch, FilesPolicy, GivenUp};
use crate::files::space::{ContentRoom, Promise};
use crate::files::speech::{SpeechError, Transcriber, after_speech};
use vocative_core::file::{ContentId, FileFacts, FileKind, FileState, WantedFile};
use vocative_core::ids::{FileId, ParticipantId};
use vocative_core::job::WaitsFor;
use vocative_core::queueing::Outcome;
use vocative_core::run::Usage;
use vocative_store::origins::Origin;
use vocative_store::spending::{Purpose, Spending};
use vocative_store::{ContentWriter, Store, StoreError, Working};

/// At a start, files that were given up within this time are tried once more, in milliseconds.
const AGAIN_MS: i64 = 7 * 24 * 3_600_000;
/// The most files, and the most untranscribed voice notes, that are tried once more at a start.
const AGAIN_MAX: usize = 500;

/// Why a file whose chat or person the lists no longer let in is not fetched.
const UNSERVED: &str = "its chat or person is no longer served";

/// Fetches files and transcribes voice notes.
pub struct Fetcher {
    /// The store with the files.
    pub store: Store<Working>,
    /// The rooms, which fetch files.
    pub rooms: Rooms,
    /// Which files are fetched.
    pub policy: FilesPolicy,
    /// Transcribes voice notes; `None` = they are only named.
    pub transcriber: Option<Transcriber>,
    /// Wake hints.
    pub wake: Wake,
    /// The time.
    pub clock: Clock,
    /// What is counted.
    pub counters: Arc<Counters>,
    /// Counts the files that are given up.
    pub given_up: Arc<GivenUpFiles>,
    /// The space on the disk.
    pub room: Arc<ContentRoom>,
}

impl Fetcher {
    /// Tries once more, at a start, what was given up lately: with another limit, scope or server it may succeed. The
    /// same goes for voice notes for which there was no transcriber.
    pub async fn prepare(&self) {
        let tried = async {
            let count = self.try_again().await?;
            if self.transcriber.is_some() {
                let now_ms = (self.clock)();
                self.store
                    .wake_jobs(WaitsFor::Transcription, now_ms)
                    .await?;
            }
            Ok::<u64, StoreError>(count)
        };
        match tried.await {
            Ok(0) => {}
            Ok(count) => info!(count, "files that were given up lately are tried once more"),
            Err(cause) => warn!(error = %cause, "files that were given up can't be tried again"),
        }
        self.try_hearing().await;
    }

    async fn try_again(&self) -> Result<u64, StoreError> {
        let now_ms = (self.clock)();
        let since_ms = now_ms.saturating_sub(AGAIN_MS);
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
        Ok(count)
    }

    /// Fetches a file, unless it is not wanted.
    ///
    /// # Errors
    /// Storage refuses, or the file's row can't be decoded.
    pub async fn fetch(&self, id: FileId) -> Result<Outcome, StoreError> {
        let Some(file) = self.store.file_to_fetch(id).await? else {
            return Ok(Outcome::Done);
        };
        if !self.is_served(&file).await? {
            return self.give_up(&file, refused(UNSERVED)).await;
        }
        self.fetch_served(file).await
    }

    /// Transcribes a voice note.
    ///
    /// # Errors
    /// Storage refuses, or the file's row can't be decoded.
    pub async fn transcribe(&self, id: FileId) -> Result<Outcome, StoreError> {
        let Some(transcriber) = &self.transcriber else {
            let waits_for = WaitsFor::Transcription;
            return Ok(Outcome::Wait { waits_for });
        };
        let Some(file) = self.store.note_to_transcribe(id).await? else {
            return Ok(Outcome::Done);
        };
        if !self.is_served(&file).await? {
            self.store.give_speech_up(id, UNSERVED.to_owned()).await?;
            return Ok(Outcome::Done);
        }
        match file.content {
            Some(content) => self.hear(&file, content, transcriber).await,
            None => Ok(Outcome::Done),
        }
    }

    /// Whether the lists still admit the sender of a file. Files of a message that is gone are not fetched anyway.
    async fn is_served(&self, file: &WantedFile) -> Result<bool, StoreError> {
        let origin = self.store.file_origin(file.id).await?;
        let is_served = |origin: Origin| {
            // In a room, another bot may have sent the file, to which `allow_people` does not apply.
            let is_direct = origin.place.kind == Some(ChatKind::Direct);
            let person = origin.person.as_deref().filter(|_| is_direct);
            self.rooms.still_admits(file.account, &origin.place, person)
        };
        Ok(origin.is_none_or(is_served))
    }

    /// The sender of a file.
    async fn person_of(&self, file: &WantedFile) -> Result<Option<ParticipantId>, StoreError> {
        let origin = self.store.file_origin(file.id).await?;
        match origin.and_then(|origin| origin.person) {
            Some(person) => self.store.participant(file.account, person).await,
            None => Ok(None),
        }
    }

    async fn fetch_served(&self, mut file: WantedFile) -> Result<Outcome, StoreError> {
        let Some(room) = self.rooms.get(file.account) else {
            return Ok(Outcome::failed("its channel is gone"));
        };
        let Some(source) = room.files else {
            return self
                .give_up(&file, refused("this channel fetches no files"))
                .await;
        };
        if file.facts.is_unknown() && self.policy.is_on {
            match source.describe(&file.platform_id).await {
                Ok(told) => self.describe(&mut file, told).await?,
                Err(error) => return self.after(&file, &error).await,
            }
        }
        if let Some(given_up) = self.policy.refusal(&file) {
            return self.give_up(&file, given_up).await;
        }
        let Some(promise) = self.room.promise(self.policy.bytes_of(&file)).await? else {
            return self.give_up(&file, FilesPolicy::no_room()).await;
        };
        let mut content = self.store.new_content()?;
        let bytes_max = self.policy.bytes_max;
        match source
            .fetch(&file.platform_id, bytes_max, &mut content)
            .await
        {
            Ok(()) => self.keep(&file, content, promise).await,
            // Free the received bytes first: there may be room then.
            Err(error) => {
                drop(content);
                self.after(&file, &error).await
            }
        }
    }

    /// Stores the received bytes.
    async fn keep(
        &self,
        file: &WantedFile,
        content: ContentWriter,
        promise: Promise<'_>,
    ) -> Result<Outcome, StoreError> {
        crash::point("file.fetched");
        let (size_bytes, now_ms) = (content.size_bytes(), (self.clock)());
        let mut promise = Some(promise);
        // More bytes came than were announced.
        if promise.as_ref().is_some_and(|it| it.bytes() < size_bytes) {
            drop(promise.take());
            promise = self.room.promise(size_bytes).await?;
            if promise.is_none() {
                return self.give_up(file, FilesPolicy::no_room()).await;
            }
        }
        let hears = self.transcriber.is_some() && file.facts.content_kind() == FileKind::Voice;
        let keeping = self.store.keep_content(file.id, content, hears, now_ms);
        if keeping.await? {
            self.counters.count(CountedEvent::FilesFetched);
            info!(file.id = %file.id, size_bytes, "a file was fetched");
            self.wake.jobs.notify_one();
        }
        drop(promise);
        Ok(Outcome::Done)
    }

    /// Stores the platform's description of a file that its message did not describe.
    async fn describe(
        &self,
        file: &mut WantedFile,
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

    async fn after(&self, file: &WantedFile, error: &FileError) -> Result<Outcome, StoreError> {
        match self.policy.after(error, (self.clock)()) {
            AfterFetch::GivenUp(given_up) => self.give_up(file, given_up).await,
            AfterFetch::Again(outcome) => Ok(outcome),
        }
    }

    /// Notes a file that is only named.
    async fn give_up(&self, file: &WantedFile, given_up: GivenUp) -> Result<Outcome, StoreError> {
        let GivenUp { state, reason } = given_up;
        self.given_up.note(state, &reason);
        info!(file.id = %file.id, state = state.name(), reason, "a file is not fetched; it is only named");
        let now_ms = (self.clock)();
        self.store
            .give_file_up(file.id, state, reason, now_ms)
            .await?;
        Ok(Outcome::Done)
    }

    async fn hear(
        &self,
        file: &WantedFile,
        content: ContentId,
        transcriber: &Transcriber,
    ) -> Result<Outcome, StoreError> {
        // A file that was stored under a larger limit stays.
        let Some(bytes) = self.store.content(content, u64::MAX).await? else {
            self.store.fetch_again(content, (self.clock)()).await?;
            return Ok(Outcome::Done);
        };
        let person = self.person_of(file).await?;
        let (account, now_ms) = (file.account, (self.clock)());
        let spent_up = self.rooms.spent_up(&self.store, account, person, now_ms);
        if spent_up.await?.is_some() {
            return Ok(tomorrow(now_ms));
        }
        match transcriber.transcribe(&file.facts, &bytes).await {
            Ok(heard) => {
                let spending = Spending {
                    account,
                    person,
                    purpose: Purpose::Speech,
                    usage: Usage {
                        prompt_tokens: heard.tokens,
                        ..Usage::default()
                    },
                    cost_micros: 0,
                    call: None,
                    now_ms: (self.clock)(),
                };
                self.store.spend(spending).await?;
                self.store
                    .keep_transcript(file.id, heard.text, (self.clock)())
                    .await?;
                self.counters.count(CountedEvent::VoiceNotesHeard);
                info!(file.id = %file.id, "a voice note was written down");
                self.resume_hearing().await?;
                Ok(Outcome::Done)
            }
            Err(cause) => self.not_heard(file, &cause).await,
        }
    }

    async fn not_heard(
        &self,
        file: &WantedFile,
        cause: &SpeechError,
    ) -> Result<Outcome, StoreError> {
        match cause {
            SpeechError::AccountRefused { what } => self.hold_hearing(what).await?,
            SpeechError::Refused { .. } => self.resume_hearing().await?,
            SpeechError::Unavailable { .. } => {}
        }
        if let Some(outcome) = after_speech(cause, (self.clock)()) {
            return Ok(outcome);
        }
        let reason = cause.to_string();
        warn!(file.id = %file.id, reason, "a voice note is never written down");
        self.given_up.note_unheard(&reason);
        self.store.give_speech_up(file.id, reason).await?;
        Ok(Outcome::Done)
    }
}

/// The job is due again once there are tokens: on the next UTC day.
fn tomorrow(now_ms: i64) -> Outcome {
    const DAY_MS: i64 = 86_400_000;
    let today_ms = now_ms.div_euclid(DAY_MS).saturating_mul(DAY_MS);
    Outcome::Later {
        not_before_ms: today_ms.saturating_add(DAY_MS),
        why: "the day's tokens are used up".to_owned(),
    }
}

fn refused(reason: &str) -> GivenUp {
    GivenUp {
        state: FileState::Refused,
        reason: reason.to_owned(),
    }
}
