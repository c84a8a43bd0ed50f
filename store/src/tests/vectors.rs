use super::*;
use crate::vectors::{EmbeddingBatch, EmbeddingModelId};
use crate::views::nearest::nearest;
use vocative_core::ids::Seq;
use vocative_core::vector::Vector;

const VECTORS_SQL: &str = "SELECT seq FROM turn_vectors ORDER BY seq";

async fn model(fixture: &Fixture, name: &str) -> EmbeddingModelId {
    let store = &fixture.store;
    store.choose_embedding_model(name.to_owned()).await.unwrap()
}

async fn batch(fixture: &Fixture, model: EmbeddingModelId, turns: usize) -> Option<EmbeddingBatch> {
    fixture.store.embedding_batch(model, turns).await.unwrap()
}

async fn store_batch(fixture: &Fixture, model: EmbeddingModelId, batch: EmbeddingBatch) {
    let vectors = batch.turns.iter().map(|(_, text)| vector_of(text));
    let vectors = vectors.collect();
    let stored = fixture
        .store
        .store_vectors(model, batch, vectors, 10, NOW_MS);
    stored.await.unwrap();
}

/// Embeds until nothing is left; the texts in the order in which they came.
async fn embed_all(fixture: &Fixture, model: EmbeddingModelId, turns: usize) -> Vec<String> {
    let mut texts = Vec::new();
    while let Some(batch) = batch(fixture, model, turns).await {
        texts.extend(batch.turns.iter().map(|(_, text)| text.clone()));
        store_batch(fixture, model, batch).await;
    }
    texts
}

/// A vector that points to where the first letter stands in the alphabet.
fn vector_of(text: &str) -> Vector {
    let letter = f32::from(text.bytes().next().unwrap_or(0)) / 8.0;
    Vector::of(&[letter.cos(), letter.sin()]).unwrap()
}

async fn is_due(fixture: &Fixture, model: EmbeddingModelId) -> bool {
    fixture.store.is_embedding_due(model).await.unwrap()
}

#[tokio::test]
async fn new_turns_are_embedded_first_and_older_ones_backwards() {
    let fixture = Fixture::new().await;
    for (id, text) in [("1", "one"), ("2", "two"), ("3", "three")] {
        fixture.hear(said(id, text)).await;
    }
    let model = model(&fixture, "m").await;
    assert!(is_due(&fixture, model).await);
    let first = batch(&fixture, model, 2).await.unwrap();
    store_batch(&fixture, model, first.clone()).await;
    fixture.hear(said("4", "four")).await;
    let rest = embed_all(&fixture, model, 2).await;

    let texts: Vec<&str> = first.turns.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(
        (texts.as_slice(), rest.as_slice()),
        (
            ["three", "two"].as_slice(),
            ["four".to_owned(), "one".to_owned()].as_slice()
        )
    );
    assert_eq!(fixture.column::<i64>(VECTORS_SQL).await, [1, 2, 3, 4]);
    assert!(!is_due(&fixture, model).await);
    let status = fixture
        .store
        .status(NOW_MS)
        .await
        .unwrap()
        .embeddings
        .unwrap();
    assert_eq!((status.embedded, status.remaining_max), (4, 0));
}

#[tokio::test]
async fn a_vector_goes_with_its_text_and_comes_back_with_the_new_one() {
    let fixture = Fixture::new().await;
    let model = model(&fixture, "m").await;
    for (id, text) in [("1", "one"), ("2", "two")] {
        fixture.hear(said(id, text)).await;
    }
    embed_all(&fixture, model, 9).await;
    let edit = Said {
        edit_marker: Some("5"),
        ..said("1", "eleven")
    };
    fixture.hear(edit).await;
    assert_eq!(fixture.column::<i64>(VECTORS_SQL).await, [2]);
    assert!(is_due(&fixture, model).await);
    assert_eq!(embed_all(&fixture, model, 9).await, ["eleven"]);
    assert!(!is_due(&fixture, model).await);

    let deleted = fixture
        .store
        .capture_delete(fixture.account, "C1", "2", NOW_MS);
    deleted.await.unwrap();
    assert_eq!(fixture.column::<i64>(VECTORS_SQL).await, [1]);
    assert!(!is_due(&fixture, model).await);
}

#[tokio::test]
async fn a_vector_of_a_text_that_changed_meanwhile_is_not_stored() {
    let fixture = Fixture::new().await;
    let model = model(&fixture, "m").await;
    for (id, text) in [("1", "one"), ("2", "two")] {
        fixture.hear(said(id, text)).await;
    }
    let read = batch(&fixture, model, 9).await.unwrap();
    let edit = Said {
        edit_marker: Some("5"),
        ..said("1", "eleven")
    };
    fixture.hear(edit).await;
    let deleted = fixture
        .store
        .capture_delete(fixture.account, "C1", "2", NOW_MS);
    deleted.await.unwrap();
    store_batch(&fixture, model, read).await;
    assert_eq!(fixture.column::<i64>(VECTORS_SQL).await, [] as [i64; 0]);
    assert_eq!(embed_all(&fixture, model, 9).await, ["eleven"]);
}

#[tokio::test]
async fn another_model_begins_anew_and_the_vectors_of_the_earlier_one_go() {
    let fixture = Fixture::new().await;
    fixture.hear(said("1", "one")).await;
    fixture.hear(said("2", "two")).await;
    let first = model(&fixture, "m").await;
    embed_all(&fixture, first, 9).await;
    let second = model(&fixture, "n").await;
    assert!(is_due(&fixture, second).await);
    assert!(!fixture.store.remove_old_vectors().await.unwrap());
    assert_eq!(
        fixture
            .value::<i64>("SELECT count(*) FROM turn_vectors")
            .await,
        0
    );
    embed_all(&fixture, second, 9).await;
    assert_eq!(
        fixture
            .value::<i64>("SELECT count(*) FROM turn_vectors")
            .await,
        2
    );
    assert!(!is_due(&fixture, second).await);
    assert_eq!(model(&fixture, "n").await, second);
}

#[tokio::test]
async fn tokens_count_for_their_utc_day() {
    let fixture = Fixture::new().await;
    let model = model(&fixture, "m").await;
    let store = &fixture.store;
    const DAY_MS: i64 = 86_400_000;
    for (tokens, day, expected) in [(5, 0, 5), (7, 0, 12), (3, 1, 3)] {
        let now_ms = NOW_MS + day * DAY_MS;
        store
            .spend_on_embedding(model, tokens, now_ms)
            .await
            .unwrap();
        let spent = store.embedding_tokens(model, now_ms).await.unwrap();
        assert_eq!(spent, expected);
    }
    assert_eq!(store.embedding_tokens(model, NOW_MS).await.unwrap(), 0);
}

#[tokio::test]
async fn the_most_alike_turns_of_their_own_conversations_are_found() {
    let fixture = Fixture::new().await;
    let model = model(&fixture, "m").await;
    for (id, text) in [("1", "abel"), ("2", "zoe"), ("3", "cain")] {
        fixture.hear(said(id, text)).await;
    }
    let elsewhere = Said {
        chat: "C2",
        ..said("4", "bob")
    };
    fixture.hear(elsewhere).await;
    embed_all(&fixture, model, 9).await;
    let rows: Vec<i64> = fixture
        .column("SELECT conversation_id FROM turns WHERE seq IN (1, 4) ORDER BY seq")
        .await;
    let found = move |rows: Vec<i64>, query: Vector, limit: usize| {
        move |connection: &Connection| {
            nearest(connection, &rows, &[Seq(1), Seq(4)], &[query], limit)
        }
    };
    let cases = [
        (&rows[..1], vector_of("a"), 3, vec![1, 3, 2]),
        (&rows[..], vector_of("a"), 2, vec![1, 4]),
        (&rows[..1], Vector::of(&[1.0, 2.0, 3.0]).unwrap(), 2, vec![]),
        (&rows[..1], vector_of("b"), 0, vec![]),
    ];
    for (rows, query, limit, expected) in cases {
        let near = fixture.read(found(rows.to_vec(), query, limit)).await;
        let near: Vec<i64> = near.lists[0].turns.iter().map(|it| it.seq.0).collect();
        assert_eq!(near, expected);
    }
}
