//! What happens in a run or a conversation, page by page, for `vocative events`.

use super::{OperationError, Operations};
use crate::admin::told::{self, EventsView};
use vocative_core::ids::{ConversationId, EventId, RunId};
use vocative_core::run_event::Happening;
use vocative_store::StoreError;
use vocative_store::contract::EventScope;

/// Events of one page.
const PAGE: usize = 256;

impl Operations {
    /// The next page of events after an id; without an id, a snapshot.
    ///
    /// # Errors
    /// If there is no such run and no such conversation.
    pub(super) async fn events(
        &self,
        target: &str,
        after: Option<i64>,
    ) -> Result<EventsView, OperationError> {
        if let Ok(run) = target.parse::<RunId>() {
            match self.events_of_run(run, after).await {
                Err(OperationError::Store(StoreError::NotFound { .. })) => {}
                answered => return answered,
            }
        }
        let found = self.store.find_conversation(target).await;
        let conversation = found.map_err(|cause| match cause {
            StoreError::NotFound { what } => OperationError::Wrong(format!(
                "there is neither a run of this id nor {what}; `vocative conversations show CONVERSATION \
                 --timeline` names the runs of one"
            )),
            other => other.into(),
        })?;
        self.events_of_conversation(conversation.id, after).await
    }

    async fn events_of_run(
        &self,
        run: RunId,
        after: Option<i64>,
    ) -> Result<EventsView, OperationError> {
        let (snapshot, newest) = self.store.run_snapshot(run).await?;
        let Some(after) = after.map(EventId) else {
            let first = told::snapshot(&snapshot, None);
            return Ok(EventsView {
                events: vec![first.into()],
                next_after: newest.0,
                is_newest: true,
                is_over: snapshot.end.is_some(),
                is_conversation: false,
            });
        };
        let mut view = self.page(EventScope::Run(run), after).await?;
        // If a run's events have expired, only its end can be told.
        if let Some(end) = snapshot.end.filter(|_| view.is_newest) {
            view.is_over = true;
            if end.id.is_none() {
                view.events
                    .extend(told::event(&end).into_iter().map(Into::into));
            }
        }
        Ok(view)
    }

    async fn events_of_conversation(
        &self,
        conversation: ConversationId,
        after: Option<i64>,
    ) -> Result<EventsView, OperationError> {
        let mut view = if let Some(after) = after.map(EventId) {
            let scope = EventScope::Conversation(conversation);
            self.page(scope, after).await?
        } else {
            let (open, newest) = self.store.conversation_snapshot(conversation).await?;
            let open = open.iter().map(|run| told::snapshot(run, None).into());
            EventsView {
                events: open.collect(),
                next_after: newest.0,
                is_newest: true,
                ..EventsView::default()
            }
        };
        view.is_conversation = true;
        Ok(view)
    }

    async fn page(&self, scope: EventScope, after: EventId) -> Result<EventsView, OperationError> {
        let page = self.store.run_events_after(scope, after, PAGE).await?;
        let last = page.last();
        Ok(EventsView {
            next_after: last.and_then(|last| last.id).unwrap_or(after).0,
            is_newest: page.len() < PAGE,
            is_over: last.is_some_and(|last| {
                matches!(
                    (scope, &last.what),
                    (EventScope::Run(_), Happening::Ended(_))
                )
            }),
            is_conversation: false,
            events: page.iter().flat_map(told::event).map(Into::into).collect(),
        })
    }
}
