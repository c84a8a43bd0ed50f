//! Operators' documents: kept, exchanged, found, and gone.

use vocative_core::knowledge::{Format, chunked};
use vocative_store::contract::{
    CollectionReading, KnowledgeHit, KnowledgeHits, KnowledgeQuery, ReadDocument,
};

use crate::said::NOW_MS;
use crate::scene::Scene;

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
    let place = |hit: &KnowledgeHit| {
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
async fn the_best_piece_is_found_with_its_place() {
    let scene = Scene::open().await;
    let handbook = open(&scene, &["handbook"]).await[0];
    put(&scene, handbook, "travel.md", TRAVEL).await;
    put(&scene, handbook, "office.md", OFFICE).await;
    let cases: [(&str, &[&str]); 9] = [
        (
            "guest wifi password",
            &["handbook/office.md:4 Office > Wifi"],
        ),
        (
            "how do I get refunded?",
            &["handbook/travel.md:7 Travel > Refunds"],
        ),
        ("wifi", &["handbook/office.md:4 Office > Wifi"]),
        ("pasword", &["handbook/office.md:4 Office > Wifi"]),
        (
            "\"behind the door\"",
            &["handbook/office.md:7 Office > Keys"],
        ),
        ("receip*", &["handbook/travel.md:7 Travel > Refunds"]),
        ("+cellar wifi", &["handbook/office.md:7 Office > Keys"]),
        ("unicorn", &[]),
        ("who are you", &[]),
    ];
    for (query, expected) in cases {
        let found = places(&scene, &["handbook"], query).await;
        assert_eq!(
            found.first().map(String::as_str),
            expected.first().copied(),
            "{query}"
        );
    }
    let hit = search(&scene, &["handbook"], &["guest network"])
        .await
        .hits
        .remove(0);
    assert_eq!((hit.title.as_str(), hit.read_at_ms), ("Office", NOW_MS));
    assert!(hit.text.contains("blue-otter-77"));
    let taken = search(&scene, &["handbook"], &["pasword"]).await.taken_for;
    assert_eq!(taken, [("pasword".to_owned(), vec!["password".to_owned()])]);
    let none = search(&scene, &[], &["wifi"]).await;
    assert_eq!(none, KnowledgeHits::default());
    for text in ["", "'); DROP TABLE turns; --", "\"", "*", "\0 OR c1"] {
        search(&scene, &["handbook"], &[text]).await;
    }
}

#[tokio::test]
async fn nothing_of_another_collection_is_found() {
    let scene = Scene::open().await;
    let ids = open(&scene, &["board", "handbook"]).await;
    put(
        &scene,
        ids[0],
        "secret.md",
        "# Plans\nThe merger is called zebra.",
    )
    .await;
    put(
        &scene,
        ids[1],
        "animals.md",
        "# Animals\nThe horse is no zebra.",
    )
    .await;
    assert_eq!(
        places(&scene, &["handbook"], "zebra").await,
        ["handbook/animals.md:2 Animals"]
    );
    assert_eq!(
        places(&scene, &["board"], "zebra").await,
        ["board/secret.md:2 Plans"]
    );
    assert_eq!(
        places(&scene, &["board", "handbook"], "zebra").await.len(),
        2
    );
    // A word of another collection is no near miss.
    assert!(
        search(&scene, &["handbook"], &["mergre"])
            .await
            .taken_for
            .is_empty()
    );
    assert!(places(&scene, &["nowhere"], "zebra").await.is_empty());
}

#[tokio::test]
async fn a_request_counts_until_it_is_answered() {
    let scene = Scene::open().await;
    let handbook = open(&scene, &["handbook"]).await[0];
    let asked = scene.store.ask_for_reading(None, 7).await.unwrap();
    assert_eq!(asked, ["handbook"]);
    let nobody = scene
        .store
        .ask_for_reading(Some("board".to_owned()), 7)
        .await
        .unwrap();
    assert!(nobody.is_empty());
    let read = |answers| CollectionReading {
        collection: handbook,
        roots: "{}".to_owned(),
        problems: vec!["/srv is not there".to_owned()],
        answers,
        now_ms: 9,
    };
    // One that began before the request is no answer to it.
    for (answers, is_asked) in [(None, true), (Some(6), true), (Some(7), false)] {
        scene.store.note_reading(read(answers)).await.unwrap();
        let status = scene
            .store
            .status(NOW_MS)
            .await
            .unwrap()
            .knowledge
            .remove(0);
        assert_eq!((status.is_asked, status.read_at_ms), (is_asked, Some(9)));
        assert_eq!(status.problems, ["/srv is not there"]);
    }
}
