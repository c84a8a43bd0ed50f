//! Conversations: listed, read, searched, named and taken out.

use vocative_contract::markup::one_line;

use super::{OperationError, OperationResult, Operations, json};
use crate::admin::view::{
    ConversationDetailView, ConversationStatsView, ConversationView, ExportMessageView,
    ExportPageView, ParticipantsView, SearchView, TurnView, timeline,
};
use crate::transcripts::lines::ThreadLine;
use vocative_core::place::Conversation;
use vocative_core::search::SearchReach;
use vocative_store::StoreError;
use vocative_store::contract::{
    ConversationFilter, ExportQuery, ExportTurn, PageQuery, SearchFilter, SearchQuery, Speakers,
    TurnDetail,
};

/// The most speakers of a conversation that are named.
const SPEAKERS_SHOWN: usize = 10;

/// The length to which a hit's text is cut around its match, in characters.
const SEARCH_TEXT_MAX_CHARS: usize = 300;

impl Operations {
    /// Conversations, newest activity first, as JSON.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn conversations(
        &self,
        filter: ConversationFilter,
    ) -> Result<serde_json::Value, OperationError> {
        let found = self.store.conversations(filter).await?;
        let mut views = Vec::with_capacity(found.len());
        for conversation in &found {
            views.push(self.conversation_view(conversation).await?);
        }
        Ok(json(&views))
    }

    pub(super) async fn conversation(&self, name: &str, query: PageQuery) -> OperationResult {
        let conversation = self.store.find_conversation(name).await?;
        let page = self.store.page(conversation.id, query).await?;
        let first = page.turns.first().map(|first| first.turn.seq().0);
        let turns = self.turn_views(&conversation, &page.turns).await?;
        let root = self.turn_views(&conversation, page.root.as_slice()).await?;
        let view = ConversationDetailView {
            conversation: self.conversation_view(&conversation).await?,
            participants: ParticipantsView::of(
                &self.store.speakers(conversation.id, SPEAKERS_SHOWN).await?,
            ),
            root: root.into_iter().next(),
            older_before: first.filter(|_| page.has_older),
            timeline: if query.is_timeline {
                timeline(&turns, &page)
            } else {
                Vec::new()
            },
            turns,
        };
        Ok(json(&view))
    }

    pub(super) async fn export(
        &self,
        name: &str,
        query: ExportQuery,
        is_shown: bool,
    ) -> OperationResult {
        let conversation = self.store.find_conversation(name).await?;
        let is_first = query.after.is_none();
        let page = self.store.export_page(conversation.id, query).await?;
        let speakers = if is_first && is_shown {
            self.store.speakers(conversation.id, SPEAKERS_SHOWN).await?
        } else {
            Speakers::default()
        };
        let thread = conversation.parent.zip(conversation.root);
        let thread = thread.map(|(parent, root)| ThreadLine {
            conversation_id: parent.to_string(),
            root: root.to_string(),
        });
        let message = |exported: &ExportTurn| {
            let is_own = exported.turn.conversation == conversation.id;
            ExportMessageView::of(exported, thread.as_ref().filter(|_| is_own), is_shown)
        };
        Ok(json(&ExportPageView {
            messages: page.turns.iter().map(message).collect(),
            as_of: page.as_of.0,
            next: page
                .next
                .map(|next| [next.sent_at_ms, next.ordinal, next.seq.0]),
            participants: ParticipantsView::of(&speakers),
            conversation: self.conversation_view(&conversation).await?,
        }))
    }

    /// Turns as they are shown, mentions as names.
    pub(super) async fn turn_views(
        &self,
        conversation: &Conversation,
        details: &[TurnDetail],
    ) -> Result<Vec<TurnView>, StoreError> {
        let texts = details.iter().map(|detail| detail.turn.content.clone());
        let texts = self
            .store
            .named(conversation.account, texts.collect())
            .await?;
        let shown = details.iter().zip(texts);
        Ok(shown
            .map(|(detail, text)| TurnView::of(detail, text))
            .collect())
    }

    pub(super) async fn set_title(&self, name: &str, title: Option<String>) -> OperationResult {
        let conversation = self.store.find_conversation(name).await?;
        let title = match title {
            Some(title) => Some(one_line(&title).ok_or_else(|| {
                OperationError::Wrong("a title needs a word; --clear takes it away".to_owned())
            })?),
            None => None,
        };
        self.store.set_title(conversation.id, title).await?;
        Ok(json(&self.conversation_view(&conversation).await?))
    }

    pub(super) async fn set_archived(&self, name: &str, is_archived: bool) -> OperationResult {
        let conversation = self.store.find_conversation(name).await?;
        let at_ms = is_archived.then(|| (self.clock)());
        self.store.set_archived(conversation.id, at_ms).await?;
        Ok(json(&self.conversation_view(&conversation).await?))
    }

    pub(super) async fn conversation_stats(&self, name: &str, since_ms: i64) -> OperationResult {
        let conversation = self.store.find_conversation(name).await?;
        let stats = self.store.conversation_stats(conversation.id, since_ms);
        let stats = stats.await?;
        let view = self.conversation_view(&conversation).await?;
        Ok(json(&ConversationStatsView::of(view, since_ms, stats)))
    }

    pub(super) async fn search(
        &self,
        name: &str,
        queries: Vec<String>,
        filter: SearchFilter,
        limit: usize,
        threads: bool,
    ) -> OperationResult {
        let conversation = self.store.find_conversation(name).await?;
        let embeddings = self.running.as_ref().and_then(|it| it.embeddings.as_ref());
        let vectors = match embeddings {
            Some(embeddings) => embeddings.of_queries(&queries).await.unwrap_or_default(),
            None => Vec::new(),
        };
        let query = SearchQuery {
            reach: match threads {
                true => SearchReach::Threads,
                false => SearchReach::Conversation,
            },
            queries,
            vectors,
            filter,
            limit,
            token_cap: usize::MAX,
            text_max_chars: SEARCH_TEXT_MAX_CHARS,
            ..SearchQuery::new(conversation.id, "")
        };
        let found = self.store.search(query).await?;
        let name = self.conversation_view(&conversation).await?.name;
        Ok(json(&SearchView::of(&found, name)))
    }

    /// A conversation without what was said in it.
    ///
    /// # Errors
    /// If there is none, or the store fails.
    pub async fn room_head(&self, name: &str) -> Result<ConversationView, OperationError> {
        let conversation = self.store.find_conversation(name).await?;
        Ok(self.conversation_view(&conversation).await?)
    }

    pub(super) async fn conversation_view(
        &self,
        conversation: &Conversation,
    ) -> Result<ConversationView, StoreError> {
        let overview = self.store.overview(conversation.id).await?;
        Ok(ConversationView::of(conversation, &overview))
    }
}
