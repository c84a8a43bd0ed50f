use std::path::{Path, PathBuf};

use super::*;
use crate::OpenReport;
use crate::engine::schema::{MIGRATIONS, Migration};
use crate::engine::upgrade::upgrade;
use crate::engine::watch::{OpenPhase, OpenWatch};

fn options(path: &Path) -> StoreOptions {
    StoreOptions {
        path: Some(path.to_owned()),
        readers: 1,
        page_cache_kib: 1_024,
    }
}

fn open(path: &Path) -> (Store, OpenReport) {
    Store::open(&options(path), NOW_MS).unwrap()
}

#[tokio::test]
async fn a_new_database_is_made_without_a_copy_and_opened_again_without_a_migration() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("inner").join("vocative.sqlite");
    let (store, report) = open(&path);
    let [made] = report.migrations.as_slice() else {
        panic!("one sentence: {:?}", report.migrations);
    };
    assert!(made.starts_with("A new database was made, with schema "));
    store.close().await.unwrap();
    let (_store, report) = open(&path);
    assert_eq!(report, OpenReport::default());
}

#[tokio::test]
async fn what_was_committed_survives_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vocative.sqlite");
    let fixture = Fixture::with(open(&path).0).await;
    fixture.hear_for(&["helper"], said("1", "hello")).await;
    // What a kill leaves: the files as they are while the daemon still has them open.
    let left = folder.path().join("left.sqlite");
    for suffix in ["", "-wal"] {
        let name = |path: &Path| PathBuf::from(format!("{}{suffix}", path.display()));
        std::fs::copy(name(&path), name(&left)).unwrap();
    }
    let after = Fixture::with(open(&left).0).await;

    assert_eq!(after.turns().await, fixture.turns().await);
    assert_eq!(
        after.column::<String>("SELECT state FROM runs").await,
        ["queued"]
    );
    let again = after.hear_for(&["helper"], said("1", "hello")).await;
    assert!(matches!(again, Captured::Duplicate(turn) if turn.new_runs.is_empty()));
}

#[tokio::test]
async fn a_start_takes_back_the_leases_of_its_predecessor() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vocative.sqlite");
    let fixture = Fixture::with(open(&path).0).await;
    fixture.hear_for(&["a", "b", "c"], said("1", "hello")).await;
    fixture
        .execute(
            "UPDATE runs SET state = 'leased', owner = x'01', token = x'02' WHERE agent <> 'c';
             UPDATE runs SET stop_cause = 'deleted', reason = 'deleted' WHERE agent = 'b';
             INSERT INTO outbox (uuid, account_id, chat_id, part, sort_key, target, payload, state,
                                 not_before_ms, created_at_ms, send_started)
             VALUES (x'01', 1, 1, 0, 1, '{}', '{}', 'leased', 0, 0, 0),
                    (x'02', 1, 1, 1, 2, '{}', '{}', 'leased', 0, 0, 1)",
        )
        .await;
    fixture.store.close().await.unwrap();
    let (store, report) = open(&path);
    assert_eq!(report.leases_taken_back, 4);
    let after = Fixture::with(store).await;

    let runs: Vec<String> = after.column("SELECT state FROM runs ORDER BY agent").await;
    assert_eq!(runs, ["queued", "cancelled", "queued"]);
    let posts: Vec<String> = after.column("SELECT state FROM outbox ORDER BY id").await;
    assert_eq!(posts, ["pending", "unknown"]);
}

#[tokio::test]
async fn a_second_writer_is_refused_until_the_first_closes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vocative.sqlite");
    let (first, _) = open(&path);
    let refused = Store::open(&options(&path), NOW_MS).unwrap_err();
    assert!(matches!(refused, StoreError::Locked { .. }), "{refused}");
    first.close().await.unwrap();
    open(&path);
}

#[tokio::test]
async fn a_reader_opens_beside_a_writer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vocative.sqlite");
    let fixture = Fixture::with(open(&path).0).await;
    fixture.hear(said("1", "hello")).await;
    let store = Store::open_read_only(&path).unwrap();
    let beside = Fixture {
        store,
        account: fixture.account,
    };
    assert_eq!(beside.contents().await, ["hello"]);
    assert!(beside.store.write(|_| Ok(())).await.is_err());
}

#[tokio::test]
async fn a_newer_database_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vocative.sqlite");
    let (store, _) = open(&path);
    store
        .write(|connection| Ok(connection.raw().pragma_update(None, "user_version", 99)?))
        .await
        .unwrap();
    store.close().await.unwrap();
    for refused in [
        Store::open(&options(&path), NOW_MS).map(drop).unwrap_err(),
        Store::open_read_only(&path).map(drop).unwrap_err(),
    ] {
        assert!(matches!(refused, StoreError::Newer { found: 99, .. }));
    }
}

#[test]
fn a_file_that_is_not_ours_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.sqlite");
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE notes (text)").unwrap();
    drop(other);
    let refused = Store::open(&options(&path), NOW_MS).unwrap_err();
    assert!(
        refused.to_string().contains("not a database of this"),
        "{refused}"
    );
}

const SECOND: Migration = Migration {
    name: "second",
    sql: "ALTER TABLE persons ADD COLUMN note TEXT",
};
const BROKEN: Migration = Migration {
    name: "broken",
    sql: "ALTER TABLE persons ADD COLUMN half TEXT; SELECT no_such_function()",
};

fn migrate(
    connection: &mut rusqlite::Connection,
    path: &Path,
    migrations: &[Migration],
) -> Result<Vec<String>, StoreError> {
    upgrade(connection, path, migrations, NOW_MS, &OpenWatch::default())
}

fn names_beside(path: &Path) -> Vec<String> {
    let folder = std::fs::read_dir(path.parent().unwrap()).unwrap();
    let names = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.contains("before")).collect();
    names.sort_unstable();
    names
}

fn two_migrations(second: Migration) -> Vec<Migration> {
    vec![MIGRATIONS[0], second]
}

#[test]
fn a_migration_keeps_a_copy_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vocative.sqlite");
    let mut connection = rusqlite::Connection::open(&path).unwrap();
    migrate(&mut connection, &path, &two_migrations(SECOND)[..1]).unwrap();
    connection
        .execute("INSERT INTO persons (name) VALUES ('Ada')", [])
        .unwrap();
    let report = migrate(&mut connection, &path, &two_migrations(SECOND)).unwrap();

    let copy = folder.path().join("vocative.sqlite.before-0002");
    let sentence = format!(
        "Migrated from schema 1 to 2; the database as it was is kept at {}.",
        copy.display()
    );
    assert_eq!(report, [sentence]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = copy.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "nobody else reads the copy");
    }
    let kept = rusqlite::Connection::open(&copy).unwrap();
    let version: u32 = kept
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap();
    let name: String = kept
        .query_row("SELECT name FROM persons", [], |row| row.get(0))
        .unwrap();
    assert_eq!((version, name.as_str()), (1, "Ada"));
    connection
        .execute("UPDATE persons SET note = 'x'", [])
        .unwrap();
}

#[test]
fn a_migration_that_fails_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vocative.sqlite");
    let mut connection = rusqlite::Connection::open(&path).unwrap();
    migrate(&mut connection, &path, &MIGRATIONS[..1]).unwrap();
    for _ in 0..2 {
        let failed = migrate(&mut connection, &path, &two_migrations(BROKEN)).unwrap_err();
        assert!(failed.to_string().contains("changed nothing"), "{failed}");
    }
    assert!(
        connection
            .prepare_cached("SELECT half FROM persons")
            .is_err()
    );
    migrate(&mut connection, &path, &two_migrations(SECOND)).unwrap();
}

#[test]
fn a_migration_applied_from_another_text_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vocative.sqlite");
    let mut connection = rusqlite::Connection::open(&path).unwrap();
    migrate(&mut connection, &path, &two_migrations(SECOND)).unwrap();
    let refused = migrate(&mut connection, &path, &two_migrations(BROKEN)).unwrap_err();
    assert!(refused.to_string().contains("another text"), "{refused}");
}

#[test]
fn an_upgrade_of_several_steps_keeps_one_copy_and_is_made_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vocative.sqlite");
    let mut connection = rusqlite::Connection::open(&path).unwrap();
    migrate(&mut connection, &path, &MIGRATIONS[..1]).unwrap();
    let version = |connection: &rusqlite::Connection| -> u32 {
        connection
            .pragma_query_value(None, "user_version", |row| row.get(0))
            .unwrap()
    };
    let third = Migration {
        name: "third",
        sql: "ALTER TABLE persons ADD COLUMN other TEXT",
    };
    let broken = [MIGRATIONS[0], SECOND, BROKEN];
    migrate(&mut connection, &path, &broken).unwrap_err();
    assert_eq!(version(&connection), 1);
    assert!(
        connection
            .prepare_cached("SELECT note FROM persons")
            .is_err()
    );

    migrate(&mut connection, &path, &[MIGRATIONS[0], SECOND, third]).unwrap();
    assert_eq!(version(&connection), 3);
    assert_eq!(names_beside(&path), ["vocative.sqlite.before-0002"]);
}

#[test]
fn an_upgrade_that_is_stopped_leaves_the_database_as_it_was() {
    const ENDLESS: Migration = Migration {
        name: "endless",
        sql: "ALTER TABLE persons ADD COLUMN note TEXT;
              WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
              SELECT count(*) FROM n",
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vocative.sqlite");
    let mut connection = rusqlite::Connection::open(&path).unwrap();
    migrate(&mut connection, &path, &MIGRATIONS[..1]).unwrap();
    let watch = OpenWatch::default();
    let stopped = std::thread::scope(|scope| {
        let upgrading = scope.spawn(|| {
            let steps = two_migrations(ENDLESS);
            upgrade(&mut connection, &path, &steps, NOW_MS, &watch)
        });
        let migrating = OpenPhase::Migrating {
            number: 2,
            through: 2,
        };
        while watch.phase() != migrating && !upgrading.is_finished() {
            std::thread::yield_now();
        }
        while !upgrading.is_finished() {
            watch.stop();
            std::thread::yield_now();
        }
        upgrading.join().unwrap().unwrap_err()
    });
    assert!(matches!(stopped, StoreError::Stopped), "{stopped}");

    let stopped = upgrade(
        &mut connection,
        &path,
        &two_migrations(SECOND),
        NOW_MS,
        &watch,
    );
    assert!(matches!(stopped, Err(StoreError::Stopped)), "before a copy");
    assert_eq!(names_beside(&path), ["vocative.sqlite.before-0002"]);
    migrate(&mut connection, &path, &two_migrations(SECOND)).unwrap();
    connection
        .prepare_cached("SELECT note FROM persons")
        .unwrap();
}
