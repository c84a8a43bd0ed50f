use super::*;
use crate::vectors::EmbeddingModelId;
use crate::views::nearest::nearest;
use vocative_core::ids::Seq;
use vocative_core::vector::Vector;

async fn model(fixture: &Fixture, name: &str) -> EmbeddingModelId {
    let store = &fixture.store;
    store.choose_embedding_model(name.to_owned()).await.unwrap()
}

/// Embeds until nothing is left.
async fn embed_all(fixture: &Fixture, model: EmbeddingModelId) {
    let store = &fixture.store;
    while let Some(batch) = store.embedding_batch(model, 9).await.unwrap() {
        let vectors = batch.turns.iter().map(|(_, text)| vector_of(text));
        let vectors = vectors.collect();
        let stored = store.store_vectors(model, batch, vectors, 10, NOW_MS);
        stored.await.unwrap();
    }
}

/// A vector that points to where the first letter stands in the alphabet.
fn vector_of(text: &str) -> Vector {
    let letter = f32::from(text.bytes().next().unwrap_or(0)) / 8.0;
    Vector::of(&[letter.cos(), letter.sin()]).unwrap()
}

#[tokio::test]
async fn the_vectors_of_an_earlier_model_go() {
    let fixture = Fixture::new().await;
    fixture.hear(said("1", "one")).await;
    let first = model(&fixture, "m").await;
    embed_all(&fixture, first).await;
    let vectors = async || {
        let count = "SELECT count(*) FROM turn_vectors";
        fixture.value::<i64>(count).await
    };
    assert_eq!(vectors().await, 1);
    model(&fixture, "n").await;
    assert!(!fixture.store.remove_old_vectors().await.unwrap());
    assert_eq!(vectors().await, 0);
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
    embed_all(&fixture, model).await;
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
