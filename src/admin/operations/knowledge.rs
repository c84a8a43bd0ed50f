//! Collections of documents: listing, searching and refreshing them.

use super::{OperationError, OperationResult, Operations, json};
use crate::admin::view::{CollectionView, DocumentView, KnowledgeView};
use vocative_store::contract::KnowledgeQuery;

/// The most files that are listed.
const LISTED_MAX: usize = 100_000;
/// The longest text of a hit, in characters, and the most tokens of all of them.
const HIT_MAX_CHARS: usize = 1_200;
const HITS_MAX_TOKENS: usize = 50_000;

impl Operations {
    pub(super) async fn collections(&self) -> OperationResult {
        let status = self.store.status((self.clock)()).await?;
        let views: Vec<CollectionView> = status.knowledge.iter().map(Into::into).collect();
        Ok(json(&views))
    }

    pub(super) async fn documents(&self, collection: &str) -> OperationResult {
        let listed = self.store.listed_documents(collection, LISTED_MAX).await?;
        let Some(listed) = listed else {
            return Err(self.no_collection(collection).await?);
        };
        let views: Vec<DocumentView> = listed.iter().map(Into::into).collect();
        Ok(json(&views))
    }

    pub(super) async fn search_knowledge(
        &self,
        queries: Vec<String>,
        collection: Option<String>,
        limit: usize,
    ) -> OperationResult {
        let known = self.collection_names().await?;
        let collections = match collection {
            None => known,
            Some(name) if known.contains(&name) => vec![name],
            Some(name) => return Err(self.no_collection(&name).await?),
        };
        let query = KnowledgeQuery {
            collections,
            queries,
            limit,
            token_cap: HITS_MAX_TOKENS,
            text_max_chars: HIT_MAX_CHARS,
        };
        let found = self.store.search_knowledge(query).await?;
        Ok(json(&KnowledgeView::from(&found)))
    }

    pub(super) async fn refresh_knowledge(&self, collection: Option<String>) -> OperationResult {
        let now_ms = (self.clock)();
        let asked = self
            .store
            .ask_for_reading(collection.clone(), now_ms)
            .await?;
        match collection {
            Some(name) if asked.is_empty() => Err(self.no_collection(&name).await?),
            _ => Ok(json(&asked)),
        }
    }

    async fn collection_names(&self) -> Result<Vec<String>, OperationError> {
        let open = self.store.open_collections().await?;
        Ok(open.into_iter().map(|it| it.name).collect())
    }

    async fn no_collection(&self, name: &str) -> Result<OperationError, OperationError> {
        let known = self.collection_names().await?;
        let known = match known.is_empty() {
            true => "none was read yet".to_owned(),
            false => format!("there are: {}", known.join(", ")),
        };
        let what = format!("there is no collection {name:?}; {known}");
        Ok(OperationError::Wrong(what))
    }
}
