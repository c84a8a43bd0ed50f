//! Operators' documents: kept, exchanged, found, and gone.

use std::collections::BTreeSet;

use super::*;
use crate::contract::{KnowledgeHits, KnowledgeQuery, ReadDocument};
use crate::scene::Scene;
use vocative_core::knowledge::{Format, chunked};

async fn open(scene: &Scene, names: &[&str]) -> Vec<i64> {
    let names = names.iter().map(|it| (*it).to_owned()).collect();
    let open = scene.store.configure_collections(names).await.unwrap();
    open.into_iter().map(|it| it.id).collect()
}

/// A document as it is read of a file in Markdown.
fn read(collection: i64, path: &str, text: &str) -> ReadDocument {
    let document = chunked(Format::Markdown, text);
    ReadDocument {
        collection,
        root: "/srv".to_owned(),
        path: path.to_owned(),
        stamp: "1".to_owned(),
        hash: Some(text.as_bytes().to_vec()),
        title: document.title.unwrap_or_else(|| path.to_owned()),
        bytes: text.len() as u64,
        chunks: document.chunks,
        is_cut: document.is_cut,
        refused: None,
        read_at_ms: NOW_MS,
    }
}

async fn put(scene: &Scene, collection: i64, path: &str, text: &str) {
    scene
        .store
        .exchange_document(read(collection, path, text))
        .await
        .unwrap();
}

async fn search(scene: &Scene, collections: &[&str], queries: &[&str]) -> KnowledgeHits {
    let owned = |all: &[&str]| all.iter().map(|it| (*it).to_owned()).collect();
    let query = KnowledgeQuery {
        collections: owned(collections),
        queries: owned(queries),
        limit: 5,
        token_cap: 2_000,
        text_max_chars: 1_200,
    };
    scene.store.search_knowledge(query).await.unwrap()
}

/// Where the hits stand, the best first.
async fn places(scene: &Scene, collections: &[&str], query: &str) -> Vec<String> {
    let found = search(scene, collections, &[query]).await;
    let place = |hit: &crate::contract::KnowledgeHit| {
        format!(
            "{}/{}:{} {}",
            hit.collection,
            hit.path,
            hit.line,
            hit.headings.join(" > ")
        )
    };
    found.hits.iter().map(place).collect()
}

const TRAVEL: &str = "# Travel\n\n## Booking\nBook trains two weeks ahead with the card of the team.\n\n\
    ## Refunds\nSend receipts to Ann; the money comes back within ten days.\n";
const OFFICE: &str = "# Office\n\n## Wifi\nThe password of the guest network is blue-otter-77.\n\n\
    ## Keys\nThe keys of the cellar hang behind the door.\n";

#[tokio::test]
async fn a_changed_document_keeps_the_rows_of_what_stayed() {
    let scene = Scene::open().await;
    let handbook = open(&scene, &["handbook"]).await[0];
    put(&scene, handbook, "travel.md", TRAVEL).await;
    let rows = |scene: &Scene| {
        let store = scene.store.clone();
        async move {
            store
                .read(|connection| {
                    let mut statement = connection.prepare_cached(
                        "SELECT id, line, content FROM knowledge_chunks ORDER BY line",
                    )?;
                    let rows = statement.query_map([], |row| {
                        Ok((
                            row.get::<_, i64>(0)?,
                            row.get::<_, i64>(1)?,
                            row.get::<_, String>(2)?,
                        ))
                    })?;
                    Ok(rows.collect::<Result<Vec<_>, _>>()?)
                })
                .await
                .unwrap()
        }
    };
    let before = rows(&scene).await;
    let changed = TRAVEL.replace(
        "Book trains two weeks",
        "Planes are not wanted.\n\nBook trains one week",
    );
    put(&scene, handbook, "travel.md", &changed).await;
    let after = rows(&scene).await;
    assert_eq!(after.len(), before.len());
    assert_ne!(after[0].0, before[0].0);
    let (was, is) = (&before[1], &after[1]);
    assert_eq!((was.0, was.1 + 2, &was.2), (is.0, is.1, &is.2));
    assert!(places(&scene, &["handbook"], "planes").await.len() == 1);
    assert!(
        places(&scene, &["handbook"], "\"two weeks\"")
            .await
            .is_empty()
    );
    // Under another title, all of it is found by other words.
    put(
        &scene,
        handbook,
        "travel.md",
        &changed.replace("# Travel", "# Journeys"),
    )
    .await;
    assert!(places(&scene, &["handbook"], "+travel").await.is_empty());
    assert_eq!(
        places(&scene, &["handbook"], "journey receipts")
            .await
            .len(),
        2
    );
}

/// What is left of documents in the tables and in the index.
async fn left(scene: &Scene) -> (i64, i64, BTreeSet<String>) {
    scene
        .store
        .read(|connection| {
            let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
            let mut statement = connection.prepare_cached("SELECT stem FROM knowledge_words")?;
            let words = statement.query_map([], |row| row.get(0))?;
            Ok((
                count("SELECT count(*) FROM knowledge_documents")?,
                count("SELECT count(*) FROM knowledge_chunks")?,
                words.collect::<Result<_, _>>()?,
            ))
        })
        .await
        .unwrap()
}

#[tokio::test]
async fn what_is_gone_leaves_nothing() {
    let scene = Scene::open().await;
    let handbook = open(&scene, &["handbook"]).await[0];
    put(&scene, handbook, "travel.md", TRAVEL).await;
    let without = left(&scene).await;
    put(&scene, handbook, "office.md", OFFICE).await;
    let known = scene.store.known_documents(handbook, 0, 10).await.unwrap();
    let office = known.iter().find(|it| it.path == "office.md").unwrap().id;
    for _ in 0..2 {
        scene.store.forget_document(office).await.unwrap();
    }
    assert_eq!(left(&scene).await, without);
    assert!(places(&scene, &["handbook"], "wifi").await.is_empty());
    // A refused file is a row without pieces.
    let refused = ReadDocument {
        refused: Some("it is too large".to_owned()),
        hash: None,
        chunks: Vec::new(),
        ..read(handbook, "travel.md", "")
    };
    scene.store.exchange_document(refused).await.unwrap();
    assert_eq!(left(&scene).await, (1, 0, BTreeSet::new()));
    let status = scene.store.status(NOW_MS).await.unwrap().knowledge;
    assert_eq!(
        (status[0].documents, status[0].refused, status[0].chunks),
        (0, 1, 0)
    );
    let names = vec!["other".to_owned()];
    scene
        .store
        .configure_collections(names.clone())
        .await
        .unwrap();
    while scene
        .store
        .forget_unconfigured(names.clone())
        .await
        .unwrap()
    {}
    assert_eq!(left(&scene).await.0, 0);
    let open = scene.store.open_collections().await.unwrap();
    assert_eq!(
        open.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(),
        ["other"]
    );
}

#[tokio::test]
async fn what_other_rules_made_is_made_anew() {
    let scene = Scene::open().await;
    let handbook = open(&scene, &["handbook"]).await[0];
    put(&scene, handbook, "travel.md", TRAVEL).await;
    scene
        .write(|connection| {
            connection.execute("UPDATE knowledge_collections SET version = 1", [])?;
            Ok(())
        })
        .await;
    open(&scene, &["handbook"]).await;
    let known = scene.store.known_documents(handbook, 0, 10).await.unwrap();
    assert_eq!((known[0].stamp.as_str(), &known[0].hash), ("", &None));
    assert_eq!(left(&scene).await.1, 0);
    put(&scene, handbook, "travel.md", TRAVEL).await;
    assert_eq!(places(&scene, &["handbook"], "receipts").await.len(), 1);
}

#[tokio::test]
async fn a_row_that_is_damaged_hides_nothing_else() {
    let scene = Scene::open().await;
    let handbook = open(&scene, &["handbook"]).await[0];
    put(&scene, handbook, "travel.md", TRAVEL).await;
    scene
        .write(|connection| {
            connection.execute("UPDATE knowledge_chunks SET headings = 'x'", [])?;
            connection.execute(
                "UPDATE knowledge_collections SET problems = 'x', roots = 'x'",
                [],
            )?;
            Ok(())
        })
        .await;
    assert_eq!(
        places(&scene, &["handbook"], "receipts").await,
        ["handbook/travel.md:7 "]
    );
    assert_eq!(
        scene.store.status(NOW_MS).await.unwrap().knowledge[0].chunks,
        2
    );
}
