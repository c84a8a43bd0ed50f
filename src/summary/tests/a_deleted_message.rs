//! A deleted message, from its capture to its being in no prompt, no summary, and no later request to a model.

use super::*;
use vocative_store::contract::{SearchMode, SearchQuery};

/// Ann posts a secret by mistake, in a busy room, and deletes it.
const SECRET: &str = "the door code is pelican-42";

impl Stage {
    async fn is_found(&self) -> bool {
        let query = SearchQuery {
            reach: SearchReach::default(),
            mode: SearchMode::StrictNewest,
            ..SearchQuery::new(self.conversation.unwrap(), "pelican")
        };
        !self.store.search(query).await.unwrap().hits.is_empty()
    }

    async fn is_in_a_summary(&self) -> bool {
        let summaries = self.summaries().await;
        summaries
            .iter()
            .any(|summary| summary.text.contains("pelican"))
    }

    /// How many requests mentioned it so far.
    fn mentions(&self) -> usize {
        let requests = self.model.requests();
        requests
            .iter()
            .filter(|asked| asked.contains("pelican"))
            .count()
    }
}

#[tokio::test]
async fn the_story_of_a_deleted_message() {
    let mut stage = Stage::with(Scripted::default()).await;

    // It is captured among other lines. The next prompt shows it, and a search finds it.
    for number in 1..=12 {
        let text = if number == 7 {
            SECRET.to_owned()
        } else {
            format!("line {number}.")
        };
        stage.say(number, &text).await;
    }
    assert!(stage.shown().await.contains(SECRET));
    assert!(stage.is_found().await);

    // Weeks later it lies behind the newest turns: a model has read it for a summary, and the summary
    // tells it; a second one is made on top of that, and tells it as well.
    for number in 13..=120 {
        stage.say(number, &format!("line {number}.")).await;
        stage.worker.once().await.unwrap();
    }
    let told = stage.summaries().await;
    assert!(told.len() >= 2 && told.iter().all(|summary| summary.text.contains("pelican")));
    assert!(stage.shown().await.contains("pelican"));
    let mentions = stage.mentions();
    assert!(mentions >= 2);

    // She deletes it. From that commit on it is in no prompt, in no summary, and no search finds it,
    // before anything is made again.
    stage.delete("7").await;
    assert!(!stage.shown().await.contains("pelican"));
    assert!(!stage.is_in_a_summary().await);
    assert!(!stage.is_found().await);
    assert!(
        stage
            .summaries()
            .await
            .iter()
            .all(|it| it.state == SummaryState::Void)
    );

    // The platform tells of the message once more, and of an edit of it: it stays gone.
    for edit in [None, Some("9")] {
        let again = stage.message(7, SECRET, 7_000, edit);
        let captured = stage.store.capture_message(again).await.unwrap();
        assert_eq!(captured, Captured::Tombstone);
    }

    // Once it is quiet the summaries are made again, from the turns that are there. No request mentions
    // it, nor does what comes of them, nor any request of the weeks after.
    assert_eq!(stage.once_it_is_quiet().await, 1);
    for number in 121..=240 {
        stage.say(number, &format!("line {number}.")).await;
        stage.worker.once().await.unwrap();
    }
    assert_eq!(stage.mentions(), mentions);
    assert!(stage.summaries().await.len() >= 3);
    assert!(stage.prompt().await.has_summary);
    assert!(!stage.shown().await.contains("pelican"));
    assert!(!stage.is_in_a_summary().await);
    let requests = stage.model.requests();
    let together = requests.join("\n");
    assert!(together.contains("line 6.") && together.contains("line 200."));
}

/// The same for the one that is a summary's only memory: its turn went by its age.
#[tokio::test]
async fn the_story_of_a_message_that_is_deleted_after_its_age() {
    let mut stage = Stage::with(Scripted::default()).await;
    for number in 1..=60 {
        let text = if number == 7 {
            SECRET.to_owned()
        } else {
            format!("line {number}.")
        };
        stage.say(number, &text).await;
    }
    assert_eq!(stage.worker.once().await.unwrap(), 1);
    let bounds = ExpiryBounds {
        text_before_ms: Some(20_000),
        ..ExpiryBounds::default()
    };
    let expired = stage
        .store
        .expire(stage.account, bounds, u64::MAX, NOW_MS)
        .await;
    assert_eq!(expired.unwrap().text, 19);
    // The room remembers it, as it is meant to.
    assert!(!stage.is_found().await);
    assert!(stage.shown().await.contains("pelican"));

    stage.delete("7").await;
    assert!(!stage.shown().await.contains("pelican"));
    assert!(!stage.is_in_a_summary().await);
}
