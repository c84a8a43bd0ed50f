//! What was deleted is in no byte of the database file, also where SQLite moved rows between pages before.

use std::path::Path;

use super::*;
use crate::PageWalk;
use crate::acts::erasure::{ErasureTarget, LedgerEntry};
use crate::contract::JobRow;
use vocative_core::job::{Job, JobKind, JobState};

const MARKER: &str = "zebra-7f3a9c";
const MESSAGES: i64 = 300;

async fn open(path: &Path) -> Fixture {
    let options = StoreOptions {
        path: Some(path.to_owned()),
        readers: 1,
        page_cache_kib: 1_024,
    };
    Fixture::with(Store::open(&options, NOW_MS).unwrap().0).await
}

/// How often the file holds the marker; what is committed is in it.
async fn copies(fixture: &Fixture, path: &Path) -> usize {
    fixture.store.write_and_scrub(|_| Ok(())).await.unwrap();
    fixture.store.write(|_| Ok(())).await.unwrap();
    let bytes = std::fs::read(path).unwrap();
    let found = bytes.windows(MARKER.len());
    found.filter(|it| *it == MARKER.as_bytes()).count()
}

/// Ada and Bob talk in turns, and what they said grows: rows move from page to page.
async fn talk(fixture: &Fixture) {
    for n in 0..MESSAGES {
        hear(fixture, n, None, 0).await;
    }
    for (marker, length) in [("10", 20), ("20", 90), ("30", 260)] {
        for n in (0..MESSAGES).rev().step_by(3).chain(0..MESSAGES) {
            hear(fixture, n, Some(marker), length).await;
        }
    }
}

/// A message, or an edit of it, of that length besides its first words.
async fn hear(fixture: &Fixture, n: i64, edit_marker: Option<&'static str>, length: usize) {
    let (by, first) = match n % 2 {
        0 => ("U1", MARKER),
        _ => ("U2", "good morning"),
    };
    let text: &'static str = format!("{first} {}", "and so on ".repeat(length / 10)).leak();
    let id: &'static str = n.to_string().leak();
    let said = Said {
        by,
        edit_marker,
        ..said(id, text)
    };
    fixture.hear(said).await;
}

async fn walk(fixture: &Fixture) -> PageWalk {
    let mut walk = PageWalk::default();
    while fixture.store.clean_pages(&mut walk).await.unwrap() {}
    walk
}

async fn is_whole(fixture: &Fixture) {
    let whole: String = fixture.value("PRAGMA integrity_check").await;
    assert_eq!(whole, "ok");
    fixture
        .execute("INSERT INTO turn_text (turn_text) VALUES ('integrity-check')")
        .await;
}

async fn cleaning(fixture: &Fixture) -> Option<JobRow> {
    let pending = fixture.store.jobs(100).await.unwrap();
    pending
        .into_iter()
        .find(|job| job.kind == JobKind::CleanPages.name())
}

#[tokio::test]
async fn copies_of_rows_that_were_moved_go_with_the_next_walk_and_every_row_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vocative.db");
    let fixture = open(&path).await;
    talk(&fixture).await;
    for n in (0..MESSAGES).step_by(2) {
        let (store, id) = (&fixture.store, n.to_string());
        let deleted = store.capture_delete(fixture.account, "C1", &id, NOW_MS + 1);
        deleted.await.unwrap();
    }
    // No row holds it any more; the file does.
    let held = fixture.contents().await;
    assert!(held.iter().all(|text| !text.contains(MARKER)));
    assert!(
        copies(&fixture, &path).await > 0,
        "SQLite left nothing behind"
    );
    let queued = cleaning(&fixture).await.unwrap();
    assert_eq!((queued.state, queued.key.as_str()), (JobState::Pending, ""));

    let walked = walk(&fixture).await;
    assert!(
        walked.cleaned > 0 && walked.cleaned <= walked.pages,
        "{walked:?}"
    );
    assert_eq!(copies(&fixture, &path).await, 0);
    assert_eq!(fixture.contents().await, held);
    is_whole(&fixture).await;
    let again = walk(&fixture).await;
    assert_eq!((again.pages, again.cleaned), (walked.pages, 0));
}

#[tokio::test]
async fn an_operators_erasure_leaves_nothing_in_the_file_and_no_walk_to_be_done() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vocative.db");
    let fixture = open(&path).await;
    talk(&fixture).await;
    let target = ErasureTarget::Person("acme/U1".to_owned());
    let plan = fixture
        .store
        .plan_erasure(target, NOW_MS + 1)
        .await
        .unwrap();
    let ids: Vec<_> = plan
        .entries
        .iter()
        .map(|entry: &LedgerEntry| entry.id)
        .collect();
    fixture.store.begin_erasure(plan.entries).await.unwrap();
    let done = fixture.store.carry_out_all(&ids, true, || NOW_MS + 2).await;
    assert_eq!(done.unwrap().verification.unwrap().hits, []);
    assert_eq!(copies(&fixture, &path).await, 0);
    assert_eq!(cleaning(&fixture).await, None);
    is_whole(&fixture).await;
}

#[tokio::test]
async fn a_walk_is_queued_by_what_deletes_and_by_nothing_else() {
    let fixture = Fixture::new().await;
    fixture.hear(said("1", "good morning")).await;
    assert_eq!(cleaning(&fixture).await, None);
    let (store, account) = (&fixture.store, fixture.account);
    store.write_and_clean(NOW_MS, |_| Ok(())).await.unwrap();
    assert_eq!(cleaning(&fixture).await, None);
    store
        .capture_delete(account, "C1", "1", NOW_MS + 5)
        .await
        .unwrap();
    let queued = cleaning(&fixture).await.unwrap();
    assert_eq!(queued.asked_at_ms, NOW_MS + 5);
    // A walk stands for the one that was queued before it began.
    store.clean_all_pages().await.unwrap();
    assert_eq!(cleaning(&fixture).await, None);
    assert_eq!(Job::CleanPages.key(), "");
}

#[tokio::test]
async fn a_file_whose_pages_can_t_be_told_apart_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vocative.db");
    let file = rusqlite::Connection::open(&path).unwrap();
    file.execute_batch("PRAGMA auto_vacuum = 1; CREATE TABLE gone (it); DROP TABLE gone")
        .unwrap();
    drop(file);
    let fixture = open(&path).await;
    fixture.hear(said("1", "good morning")).await;
    let refused = fixture.store.clean_pages(&mut PageWalk::default()).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("auto_vacuum = 0; VACUUM"), "{refused}");
    is_whole(&fixture).await;
}
