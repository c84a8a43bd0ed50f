use std::sync::mpsc;

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_that_wait_share_one_commit() {
    let fixture = Fixture::new().await;
    let (is_busy_tx, is_busy) = mpsc::channel();
    let (release, held) = mpsc::channel::<()>();
    let store = fixture.store.clone();
    let blocking = tokio::spawn(async move {
        store
            .write(move |_| {
                is_busy_tx.send(()).unwrap();
                held.recv().unwrap();
                Ok(())
            })
            .await
    });
    tokio::task::spawn_blocking(move || is_busy.recv().unwrap())
        .await
        .unwrap();
    let before = fixture.store.work().commits;
    let writes: Vec<_> = (0..100)
        .map(|_| {
            let store = fixture.store.clone();
            let queued = async move { store.write(|_| Ok(())).await };
            Box::pin(queued)
        })
        .collect();
    let mut writes = futures_util::future::join_all(writes);
    // The first poll queues all of them behind the one that holds the writer.
    assert!(futures_util::poll!(&mut writes).is_pending());
    release.send(()).unwrap();
    assert!(writes.await.into_iter().all(|result| result.is_ok()));
    blocking.await.unwrap().unwrap();

    assert_eq!(fixture.store.work().commits - before, 2);
}

#[tokio::test]
async fn a_riding_write_waits_for_no_disk_unless_it_shares_the_commit_of_one_that_does() {
    const NORMAL: i64 = 1;
    const FULL: i64 = 2;
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions {
        path: Some(folder.path().join("store.sqlite")),
        readers: 1,
        page_cache_kib: 1_024,
    };
    let store = &Store::open(&options, NOW_MS).unwrap().0;
    let level = |connection: &Connection| -> Result<i64, StoreError> {
        Ok(connection.query_row("PRAGMA synchronous", [], |row| row.get(0))?)
    };
    let before = (store.work().commits, store.work().syncs);
    assert_eq!(store.write_riding(level).await.unwrap(), NORMAL);
    assert_eq!(store.write(level).await.unwrap(), FULL);
    assert_eq!(store.write_riding(level).await.unwrap(), NORMAL);
    assert_eq!(
        (store.work().commits, store.work().syncs),
        (before.0 + 3, before.1 + 1)
    );

    // The one that holds the writer lets the other two gather.
    let (release, held) = mpsc::channel::<()>();
    let (is_busy_tx, is_busy) = mpsc::channel();
    let blocking = {
        let store = store.clone();
        tokio::spawn(async move {
            store
                .write_riding(move |_| {
                    is_busy_tx.send(()).unwrap();
                    held.recv().unwrap();
                    Ok(())
                })
                .await
        })
    };
    tokio::task::spawn_blocking(move || is_busy.recv().unwrap())
        .await
        .unwrap();
    let mut both = Box::pin(async { tokio::join!(store.write_riding(level), store.write(level)) });
    assert!(futures_util::poll!(&mut both).is_pending());
    release.send(()).unwrap();
    let (riding, waiting) = both.await;
    blocking.await.unwrap().unwrap();
    assert_eq!((riding.unwrap(), waiting.unwrap()), (FULL, FULL));
}

#[tokio::test]
async fn a_job_that_fails_or_panics_leaves_the_others_committed() {
    let fixture = Fixture::new().await;
    let insert = |name: &'static str, end: fn() -> Result<(), StoreError>| {
        fixture.store.write(move |connection| {
            connection.execute("INSERT INTO persons (name) VALUES (?1)", [name])?;
            end()
        })
    };
    let (first, failed, panicked, last) = tokio::join!(
        insert("first", || Ok(())),
        insert("failed", || Err(StoreError::Unavailable {
            what: "disk full".to_owned()
        })),
        insert("panicked", || panic!("a bug")),
        insert("last", || Ok(())),
    );

    first.unwrap();
    last.unwrap();
    assert_eq!(
        failed.unwrap_err().to_string(),
        "storage refuses: disk full"
    );
    assert_eq!(
        panicked.unwrap_err().to_string(),
        "storage refuses: a query panicked, which is a bug: a bug"
    );
    let names: Vec<String> = fixture.column("SELECT name FROM persons ORDER BY id").await;
    assert_eq!(names, ["first", "last"]);
}

#[tokio::test]
async fn a_full_disk_fails_the_write_and_the_next_one_after_space_came_succeeds() {
    let fixture = Fixture::new().await;
    let pages: i64 = fixture
        .store
        .write(|connection| {
            let pages = connection.query_row("PRAGMA page_count", [], |row| row.get(0))?;
            connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?;
            Ok(pages)
        })
        .await
        .unwrap();
    assert!(pages > 0);
    let big = "x".repeat(100_000);
    let fill = move |connection: &Connection| {
        connection.execute("INSERT INTO persons (name) VALUES (?1)", [&big])?;
        Ok(())
    };
    let refused = fixture.store.write(fill.clone()).await.unwrap_err();
    assert!(
        matches!(refused, StoreError::Unavailable { .. }),
        "{refused}"
    );
    fixture
        .store
        .write(|connection| {
            connection.query_row("PRAGMA max_page_count = 1000000", [], |_| Ok(()))?;
            Ok(())
        })
        .await
        .unwrap();
    fixture.store.write(fill).await.unwrap();

    assert_eq!(
        fixture.value::<i64>("SELECT count(*) FROM persons").await,
        1
    );
}

#[tokio::test]
async fn an_idle_writer_has_no_lag() {
    let fixture = Fixture::new().await;
    fixture.store.write(|_| Ok(())).await.unwrap();
    fixture.store.close().await.unwrap();
    assert_eq!(fixture.store.writer_lag_ms(), 0);
}

#[tokio::test]
async fn a_closed_store_says_so() {
    let fixture = Fixture::new().await;
    fixture.store.close().await.unwrap();
    let write = fixture.store.write(|_| Ok(())).await.unwrap_err();
    let read = fixture.store.read(|_| Ok(())).await.unwrap_err();
    assert!(matches!(write, StoreError::Closed));
    assert!(matches!(read, StoreError::Closed));
}

#[tokio::test]
async fn a_reader_sees_one_snapshot_and_cannot_write() {
    let fixture = Fixture::new().await;
    let store = fixture.store.clone();
    let runtime = tokio::runtime::Handle::current();
    let counts = tokio::task::spawn_blocking(move || {
        let inner = store.clone();
        let handle = runtime.clone();
        runtime.block_on(store.read(move |connection| {
            let count = |connection: &Connection| {
                connection.query_row("SELECT count(*) FROM persons", [], |row| row.get(0))
            };
            let before: i64 = count(connection)?;
            handle.block_on(inner.write(|connection| {
                connection.execute("INSERT INTO persons (name) VALUES ('new')", [])?;
                Ok(())
            }))?;
            let refused = connection.execute("DELETE FROM persons", []).is_err();
            Ok((before, count(connection)?, refused))
        }))
    })
    .await
    .unwrap()
    .unwrap();
    assert_eq!(counts, (0, 0, true));
    assert_eq!(
        fixture.value::<i64>("SELECT count(*) FROM persons").await,
        1
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_changes_within_one_commit_is_indexed_as_it_ends() {
    let fixture = Fixture::new().await;
    let edited = Said {
        edit_marker: Some("10"),
        ..said("2", "lion")
    };
    let before = fixture.store.work().commits;
    let (release, held) = mpsc::channel::<()>();
    let blocking = fixture.store.write(move |_| {
        held.recv().unwrap();
        Ok(())
    });
    let mut all = Box::pin(futures_util::future::join5(
        blocking,
        fixture.hear(said("1", "horse")),
        fixture.hear(said("2", "zebra")),
        fixture.hear(edited),
        fixture
            .store
            .capture_delete(fixture.account, "C1", "1", NOW_MS),
    ));
    assert!(futures_util::poll!(&mut all).is_pending());
    release.send(()).unwrap();
    let (blocked, ..) = all.await;
    blocked.unwrap();

    assert!(fixture.store.work().commits - before <= 2);
    assert_eq!(fixture.contents().await, ["", "lion"]);
    assert_eq!(fixture.found("content:lion").await, [2]);
    assert_eq!(
        fixture.found("content:(horse OR zebra)").await,
        [] as [i64; 0]
    );
    // The next commit has nothing left to index.
    fixture.hear(said("3", "lion")).await;
    assert_eq!(fixture.found("content:lion").await, [2, 3]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shared_write_that_fails_takes_its_commit_with_it_and_the_next_time_only_itself() {
    let fixture = Fixture::new().await;
    let insert = |name: &'static str, is_ok: bool| {
        fixture.store.write_shared(move |connection| {
            connection.execute("INSERT INTO persons (name) VALUES (?1)", [name])?;
            assert!(is_ok, "a bug");
            Ok(())
        })
    };
    for expected in [&[] as &[&str], &["first", "last"]] {
        // One that holds the writer lets the others gather.
        let (is_busy_tx, is_busy) = mpsc::channel();
        let (release, held) = mpsc::channel::<()>();
        let mut blocking = Box::pin(fixture.store.write(move |_| {
            is_busy_tx.send(()).unwrap();
            held.recv().unwrap();
            Ok(())
        }));
        assert!(futures_util::poll!(&mut blocking).is_pending());
        is_busy.recv().unwrap();
        let mut all = Box::pin(futures_util::future::join4(
            blocking,
            insert("first", true),
            insert("failed", false),
            insert("last", true),
        ));
        assert!(futures_util::poll!(&mut all).is_pending());
        release.send(()).unwrap();
        let (_, first, failed, last) = all.await;
        let is_kept = !expected.is_empty();
        assert_eq!(
            (first.is_ok(), failed.is_ok(), last.is_ok()),
            (is_kept, false, is_kept)
        );
        let names: Vec<String> = fixture.column("SELECT name FROM persons ORDER BY id").await;
        assert_eq!(names, expected);
    }
}

#[tokio::test]
async fn a_cached_statement_is_planned_once() {
    const SQL: &str = "SELECT count(*) FROM participants p
         JOIN runs r ON r.person_participant_id = p.id WHERE p.account_id = ?1 AND p.kind = ?2";
    fn count_plans(connection: &Connection) -> Result<i32, StoreError> {
        for account in 0..3 {
            let mut statement = connection.prepare_cached(SQL)?;
            statement.query_row((account, "user"), |row| row.get::<_, i64>(0))?;
        }
        let statement = connection.prepare_cached(SQL)?;
        Ok(statement.get_status(crate::engine::sql::StatementStatus::RePrepare))
    }
    let fixture = Fixture::new().await;
    assert_eq!(fixture.store.write(count_plans).await.unwrap(), 0);
    assert_eq!(fixture.read(count_plans).await, 0);
}
