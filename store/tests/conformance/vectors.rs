//! Vectors of what was said: each turn once, by the present model, and gone with its text.

use vocative_core::vector::Vector;
use vocative_store::vectors::{EmbeddingBatch, EmbeddingModelId};

use crate::said::{NOW_MS, Said, said};
use crate::scene::Scene;

/// A vector that points to where the first letter stands in the alphabet.
fn vector_of(text: &str) -> Vector {
    let letter = f32::from(text.bytes().next().unwrap_or(0)) / 8.0;
    Vector::of(&[letter.cos(), letter.sin()]).unwrap()
}

impl Scene {
    async fn model(&self, name: &str) -> EmbeddingModelId {
        let chosen = self.store.choose_embedding_model(name.to_owned());
        chosen.await.unwrap()
    }

    async fn batch(&self, model: EmbeddingModelId, turns: usize) -> Option<EmbeddingBatch> {
        self.store.embedding_batch(model, turns).await.unwrap()
    }

    async fn store_batch(&self, model: EmbeddingModelId, batch: EmbeddingBatch) {
        let vectors = batch.turns.iter().map(|(_, text)| vector_of(text));
        let vectors = vectors.collect();
        let stored = self.store.store_vectors(model, batch, vectors, 10, NOW_MS);
        stored.await.unwrap();
    }

    /// Embeds until nothing is left; the texts in the order in which they came.
    async fn embed_all(&self, model: EmbeddingModelId, turns: usize) -> Vec<String> {
        let mut texts = Vec::new();
        while let Some(batch) = self.batch(model, turns).await {
            texts.extend(batch.turns.iter().map(|(_, text)| text.clone()));
            self.store_batch(model, batch).await;
        }
        texts
    }

    async fn is_due(&self, model: EmbeddingModelId) -> bool {
        self.store.is_embedding_due(model).await.unwrap()
    }

    /// How many turns have a vector of the present model.
    async fn embedded(&self) -> u64 {
        let status = self.store.status(NOW_MS).await.unwrap();
        status.embeddings.unwrap().embedded
    }

    /// Somebody says "one" and "two".
    async fn one_and_two(&self) {
        self.hear(said("1", "one")).await;
        self.hear(said("2", "two")).await;
    }

    /// "one" becomes "eleven".
    async fn edit_one(&self) {
        let edit = Said {
            edit_marker: Some("5"),
            ..said("1", "eleven")
        };
        self.hear(edit).await;
    }

    async fn delete_two(&self) {
        let deleted = self.store.capture_delete(self.account, "C1", "2", NOW_MS);
        deleted.await.unwrap();
    }
}

#[tokio::test]
async fn new_turns_are_embedded_first_and_older_ones_backwards() {
    let scene = Scene::open().await;
    scene.one_and_two().await;
    scene.hear(said("3", "three")).await;
    let model = scene.model("m").await;
    assert!(scene.is_due(model).await);
    let first = scene.batch(model, 2).await.unwrap();
    let texts: Vec<&str> = first.turns.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(texts, ["three", "two"]);
    scene.store_batch(model, first).await;
    scene.hear(said("4", "four")).await;
    assert_eq!(scene.embed_all(model, 2).await, ["four", "one"]);
    assert!(!scene.is_due(model).await);
    assert_eq!(scene.embedded().await, 4);
    let status = scene.store.status(NOW_MS).await.unwrap();
    assert_eq!(status.embeddings.unwrap().remaining_max, 0);
}

#[tokio::test]
async fn a_vector_goes_with_its_text_and_comes_back_with_the_new_one() {
    let scene = Scene::open().await;
    let model = scene.model("m").await;
    scene.one_and_two().await;
    scene.embed_all(model, 9).await;
    scene.edit_one().await;
    assert_eq!(scene.embedded().await, 1);
    assert!(scene.is_due(model).await);
    assert_eq!(scene.embed_all(model, 9).await, ["eleven"]);
    assert!(!scene.is_due(model).await);
    assert_eq!(scene.embedded().await, 2);
    scene.delete_two().await;
    assert_eq!(scene.embedded().await, 1);
    assert!(!scene.is_due(model).await);
}

#[tokio::test]
async fn a_vector_of_a_text_that_changed_meanwhile_is_not_stored() {
    let scene = Scene::open().await;
    let model = scene.model("m").await;
    scene.one_and_two().await;
    let read = scene.batch(model, 9).await.unwrap();
    scene.edit_one().await;
    scene.delete_two().await;
    scene.store_batch(model, read).await;
    assert_eq!(scene.embedded().await, 0);
    assert_eq!(scene.embed_all(model, 9).await, ["eleven"]);
}

#[tokio::test]
async fn another_model_begins_anew() {
    let scene = Scene::open().await;
    scene.one_and_two().await;
    let first = scene.model("m").await;
    scene.embed_all(first, 9).await;
    let second = scene.model("n").await;
    assert!(scene.is_due(second).await);
    assert_eq!(scene.embedded().await, 0);
    assert_eq!(scene.embed_all(second, 9).await.len(), 2);
    // What the earlier one made is still to be taken away.
    assert!(scene.is_due(second).await);
    assert!(!scene.store.remove_old_vectors().await.unwrap());
    assert_eq!(scene.embedded().await, 2);
    assert!(!scene.is_due(second).await);
    assert_eq!(scene.model("n").await, second);
}

#[tokio::test]
async fn tokens_count_for_their_utc_day() {
    let scene = Scene::open().await;
    let model = scene.model("m").await;
    let store = &scene.store;
    const DAY_MS: i64 = 86_400_000;
    for (tokens, day, expected) in [(5, 0, 5), (7, 0, 12), (3, 1, 3)] {
        let now_ms = NOW_MS + day * DAY_MS;
        let spent = store.spend_on_embedding(model, tokens, now_ms);
        spent.await.unwrap();
        let spent = store.embedding_tokens(model, now_ms).await.unwrap();
        assert_eq!(spent, expected);
    }
    assert_eq!(store.embedding_tokens(model, NOW_MS).await.unwrap(), 0);
}
