//! Vocative's search in a drawn room: a store on the disk, filled as an import fills it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use chrono::{TimeZone as _, Utc};
use tempfile::TempDir;
use vocative::cli::CliError;
use vocative::embeddings::Embeddings;
use vocative::embeddings::client::EmbeddingClient;
use vocative_contract::envelope::{ChatKind, Place, Sender, SenderKind};
use vocative_contract::identity::Platform;
use vocative_core::addressing::Verdict;
use vocative_core::ids::{AccountId, ConversationId};
use vocative_core::queueing::Outcome;
use vocative_core::turn::ParticipantKind;
use vocative_store::contract::{
    AccountBinding, ImportBatch, ImportMessage, ImportProgress, NewMessage, SearchQuery,
};
use vocative_store::{Store, StoreError, StoreOptions};

use super::facts::{RecallQuestion, RecallRoom};
use super::unasked;
use super::{HITS, READ, RecallAnswer, failed, tokens};

/// Its name in the table.
pub(super) const NAME: &str = "Vocative";
/// Its name where it compares vectors, too.
pub(super) const NAME_WITH_VECTORS: &str = "Vocative, vectors";

const CHAT: &str = "C0GENERAL";
/// When the first line was said: 2026-01-05, 08:00 UTC.
const FIRST_MS: i64 = 1_767_600_000_000;
/// The pause between two lines.
const LINE_MS: i64 = 60_000;
/// How many hits the daemon compares with the threshold for what a prompt shows by itself.
const UNASKED_HITS: usize = 24;
/// Lines of one transaction.
const BATCH: usize = 1_000;

/// A store with a room in it.
pub(super) struct Product {
    store: Store,
    conversation: ConversationId,
    _folder: TempDir,
}

impl Product {
    pub(super) async fn of(room: &RecallRoom) -> Result<Self, CliError> {
        let folder = tempfile::tempdir()?;
        let options = StoreOptions {
            path: Some(folder.path().join("vocative.db")),
            readers: 2,
            page_cache_kib: 8_192,
        };
        let (store, _) = Store::open(&options, FIRST_MS).map_err(|cause| refused(&cause))?;
        let conversation = fill(&store, room).await.map_err(|cause| refused(&cause))?;
        while store.index_turns().await.map_err(|cause| refused(&cause))? {}
        Ok(Self {
            store,
            conversation,
            _folder: folder,
        })
    }

    /// Embeds the room as the daemon's job does.
    pub(super) async fn embed(&self, client: EmbeddingClient) -> Result<Embeddings, CliError> {
        let chosen = self.store.choose_embedding_model(client.model.clone());
        let embeddings = Embeddings {
            model: chosen.await.map_err(|cause| refused(&cause))?,
            client,
            store: self.store.only(),
            tokens_per_day: 0,
            clock: Arc::new(|| FIRST_MS),
        };
        match embeddings.fill().await.map_err(|cause| refused(&cause))? {
            Outcome::Failed { why, .. } | Outcome::Later { why, .. } => Err(failed(why)),
            _ => Ok(embeddings),
        }
    }

    /// Asks as the agents' tool asks; the time counts without the embedding server's.
    pub(super) async fn search(
        &self,
        room: &RecallRoom,
        question: &RecallQuestion,
        embeddings: Option<&Embeddings>,
    ) -> Result<RecallAnswer, CliError> {
        let vectors = match embeddings {
            None => Vec::new(),
            Some(embeddings) => embeddings
                .of_queries(&question.wordings)
                .await
                .ok_or_else(|| failed("the embedding server gives no vectors".to_owned()))?,
        };
        let query = SearchQuery {
            queries: question.wordings.clone(),
            vectors,
            limit: HITS.into(),
            token_cap: usize::MAX,
            ..SearchQuery::new(self.conversation, "")
        };
        let started = Instant::now();
        let found = self
            .store
            .search(query)
            .await
            .map_err(|cause| refused(&cause))?;
        let took = started.elapsed();
        let read = found.hits.iter().take(READ);
        let tokens = read.map(|hit| tokens(&hit.text)).sum();
        let places = found.hits.iter().map(|hit| hit.turn.position.sent_at_ms);
        let lines =
            places.filter_map(|sent_at_ms| usize::try_from((sent_at_ms - FIRST_MS) / LINE_MS).ok());
        let lines: Vec<usize> = lines.filter(|line| *line < room.lines.len()).collect();
        Ok(RecallAnswer {
            lines,
            tokens,
            took,
        })
    }
}

impl Product {
    /// The lines that a prompt of the question would show without being asked for.
    pub(super) async fn unasked(
        &self,
        room: &RecallRoom,
        question: &RecallQuestion,
    ) -> Result<Vec<usize>, CliError> {
        let Some(wording) = unasked::wording(question) else {
            return Ok(Vec::new());
        };
        let query = SearchQuery {
            limit: UNASKED_HITS,
            token_cap: usize::MAX,
            neighbours: 0,
            is_by_people: true,
            ..SearchQuery::new(self.conversation, wording)
        };
        let found = self.store.search(query).await;
        let found = found.map_err(|cause| refused(&cause))?;
        let hits = unasked::shown(&found).into_iter();
        let times = hits.map(|hit| found.hits[hit].turn.position.sent_at_ms);
        let lines = times.filter_map(|at_ms| usize::try_from((at_ms - FIRST_MS) / LINE_MS).ok());
        Ok(lines.filter(|line| *line < room.lines.len()).collect())
    }
}

async fn fill(store: &Store, room: &RecallRoom) -> Result<ConversationId, StoreError> {
    let now_ms = FIRST_MS + LINE_MS * i64::try_from(room.lines.len()).unwrap_or(i64::MAX / LINE_MS);
    let binding = AccountBinding {
        channel: "acme".to_owned(),
        platform: Platform::Slack,
        account: "T1".to_owned(),
        name: "Acme".to_owned(),
    };
    let account = store.bind_account(binding, now_ms).await?;
    let mut ids = HashMap::new();
    for line in &room.lines {
        let next = format!("U{}", ids.len());
        ids.entry(line.speaker.clone()).or_insert(next);
    }
    let lines: Vec<_> = room.lines.iter().zip(0_i64..).collect();
    for lines in lines.chunks(BATCH) {
        let messages = lines.iter().map(|(line, place)| {
            let sender = Sender {
                id: ids[&line.speaker].clone(),
                display_name: Some(line.speaker.clone()),
                username: None,
                kind: SenderKind::Person,
                is_stranger: false,
            };
            ImportMessage {
                message: message(account, sender, &line.text, FIRST_MS + place * LINE_MS),
                own_box: None,
                is_own: false,
            }
        });
        let batch = ImportBatch {
            account,
            messages: messages.collect(),
            people: Vec::new(),
            progress: ImportProgress {
                fingerprint: "recall".to_owned(),
                things: 0,
                is_finished: false,
            },
            now_ms,
        };
        store.import(batch).await?;
    }
    Ok(store.find_conversation("acme/#general").await?.id)
}

fn message(account: AccountId, sender: Sender, text: &str, sent_at_ms: i64) -> NewMessage {
    let at = Utc
        .timestamp_millis_opt(sent_at_ms)
        .single()
        .unwrap_or_default();
    NewMessage {
        account,
        place: Place {
            chat: CHAT.to_owned(),
            kind: Some(ChatKind::Public),
            title: Some("general".to_owned()),
            thread: None,
            topic: None,
            topic_title: None,
            is_shared: false,
        },
        scope_override: None,
        message_id: format!("{}.000000", at.timestamp()),
        sender,
        sender_kind: ParticipantKind::User,
        text: text.to_owned(),
        attachments: Vec::new(),
        reply_to: None,
        quote: None,
        album: None,
        sent_at_ms,
        ordinal: 0,
        is_edit: false,
        edit_marker: None,
        received_at_ms: sent_at_ms,
        tokens: None,
        keep_revisions: false,
        raw: None,
        judge: Box::new(|_| Verdict::default()),
        judge_follow_up: None,
    }
}

fn refused(cause: &StoreError) -> CliError {
    failed(format!("the store: {cause}"))
}
