use std::path::{Path, PathBuf};

use super::*;
use crate::check_database;

fn open(path: &Path) -> Store {
    let options = StoreOptions {
        path: Some(path.to_owned()),
        readers: 1,
        page_cache_kib: 1_024,
    };
    Store::open(&options, NOW_MS).unwrap().0
}

fn files(path: &Path) -> Vec<Vec<u8>> {
    let names = ["", "-wal"].map(|suffix| PathBuf::from(format!("{}{suffix}", path.display())));
    names.map(|name| std::fs::read(name).unwrap()).to_vec()
}

fn sign() -> StoreError {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT_INDEX);
    crate::engine::sql::Error::SqliteFailure(code, None).into()
}

#[tokio::test]
async fn after_a_sign_of_damage_nothing_is_written_not_even_at_the_close() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vocative.db");
    let fixture = Fixture::with(open(&path)).await;
    fixture.hear(said("1", "hello")).await;
    let before = files(&path);
    let store = fixture.store.clone();
    let sign: Result<(), _> = store.write(|_| Err(sign())).await;
    assert!(
        matches!(&sign, Err(StoreError::Damaged { database: Some(it), .. }) if *it == path),
        "{sign:?}"
    );
    for refused in [store.write(|_| Ok(())).await, store.close().await] {
        assert!(matches!(refused, Err(StoreError::Damaged { .. })));
    }
    store.damaged().await;
    drop((fixture, store));
    let after = files(&path);
    assert!(after[1].starts_with(&before[1]), "no checkpoint");
    assert!(after[0] == before[0], "the database is as it was");
}

#[tokio::test]
async fn a_reader_that_meets_damage_ends_writing() {
    let fixture = Fixture::new().await;
    let read: Result<(), _> = fixture.store.read(|_| Err(sign())).await;
    assert!(matches!(read, Err(StoreError::Damaged { .. })), "{read:?}");
    let written = fixture.store.write(|_| Ok(())).await;
    assert!(
        matches!(written, Err(StoreError::Damaged { .. })),
        "{written:?}"
    );
}

#[tokio::test]
async fn a_sign_that_a_second_look_does_not_confirm_is_no_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vocative.db");
    let fixture = Fixture::with(open(&path)).await;
    fixture.hear(said("1", "hello")).await;
    let signed: Result<(), _> = fixture.store.read(|_| Err(sign())).await;
    let found = fixture.store.examine(signed.unwrap_err()).await;
    assert!(matches!(found, StoreError::Unusable { .. }), "{found}");
    assert!(
        found.to_string().contains("nothing in it is damaged"),
        "{found}"
    );
}

#[tokio::test]
async fn an_empty_file_is_a_new_database_only_where_there_was_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vocative.db");
    std::fs::write(&path, "").unwrap();
    let fixture = Fixture::with(open(&path)).await;
    fixture.hear(said("1", "hello")).await;
    fixture.store.close().await.unwrap();
    assert_eq!(check_database(&path).unwrap().turns, 1);
    std::fs::write(&path, "").unwrap();
    for refused in [
        check_database(&path).map(drop),
        Store::open_read_only(&path).map(drop),
    ] {
        let said = refused.unwrap_err().to_string();
        assert!(said.ends_with("is damaged: the file is empty"), "{said}");
    }
}
