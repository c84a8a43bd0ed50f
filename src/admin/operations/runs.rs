//! Everything about one run.

use super::{OperationError, OperationResult, Operations, json};
use crate::admin::view::RunStoryView;
use vocative_core::ids::RunId;
use vocative_store::StoreError;
use vocative_store::contract::StoryLine;

impl Operations {
    pub(super) async fn run_story(&self, id: &str) -> OperationResult {
        let none = || OperationError::Missing(format!("there is no run {id}"));
        let run: RunId = id.parse().map_err(|_| none())?;
        let mut story = match self.store.run_story(run).await {
            Ok(story) => story,
            Err(StoreError::NotFound { .. }) => return Err(none()),
            Err(other) => return Err(other.into()),
        };
        let lines = story.asked.iter_mut().chain(&mut story.said);
        let lines: Vec<&mut StoryLine> = lines.collect();
        let texts = lines.iter().map(|line| line.text.clone()).collect();
        let named = self.store.named(story.account, texts).await?;
        for (line, text) in lines.into_iter().zip(named) {
            line.text = text;
        }
        let channel = self.channel_of(story.account).await?;
        Ok(json(&RunStoryView::of(story, channel)))
    }
}
