//! What becomes of stored files in backups and restores.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use vocative_store::erasure::ErasureTarget;
use vocative_store::{
    BackupOptions, BackupReport, CopyProgress, OpenReport, RestoreReport, backup, check_database,
    restore,
};

use crate::files::{attached, due, fetch_all, open, paths_below};
use crate::said::{NOW_MS, Said};
use crate::scene::Scene;

const OPTIONS: BackupOptions = BackupOptions {
    replaces: false,
    keep: None,
    has_files: true,
    bytes_per_s: None,
    now_ms: NOW_MS,
};

/// A data folder, and one for backups.
struct Place {
    data: tempfile::TempDir,
    backups: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self {
            data: tempfile::tempdir().unwrap(),
            backups: tempfile::tempdir().unwrap(),
        }
    }

    fn database(&self) -> PathBuf {
        self.data.path().join("store.db")
    }

    async fn open(&self) -> (Scene, OpenReport) {
        let (store, report) = open(&self.database());
        (Scene::with(store).await, report)
    }

    /// A message with a file that has these bytes.
    async fn scene_with(&self, bytes: &[u8]) -> Scene {
        let (scene, _) = self.open().await;
        scene.hear(attached("1", "a.md")).await;
        fetch_all(&scene, bytes).await;
        scene
    }

    /// The backup made that many seconds later.
    fn back_up(&self, second: i64) -> BackupReport {
        let options = BackupOptions {
            keep: Some(2),
            now_ms: NOW_MS + second * 1_000,
            ..OPTIONS
        };
        backup(&self.database(), self.backups.path(), &options, &|_| ()).unwrap()
    }

    fn restore(&self, from: &Path) -> RestoreReport {
        restore(from, &self.database(), NOW_MS, &|_| ()).unwrap()
    }

    /// Every stored file.
    fn stored(&self) -> Vec<PathBuf> {
        paths_below(&self.data.path().join("files"))
    }

    /// The bytes of every stored file.
    fn bytes(&self) -> Vec<String> {
        bytes_below(&self.data.path().join("files"))
    }
}

fn bytes_below(folder: &Path) -> Vec<String> {
    let bytes = |path: PathBuf| String::from_utf8(std::fs::read(path).unwrap()).unwrap();
    let mut found: Vec<String> = paths_below(folder).into_iter().map(bytes).collect();
    found.sort_unstable();
    found
}

fn folder_of(report: &BackupReport) -> PathBuf {
    report.copied_files.clone().unwrap().folder
}

#[tokio::test]
async fn a_backup_holds_the_stored_files_and_a_restore_elsewhere_brings_them_without_a_platform() {
    let (place, elsewhere) = (Place::new(), Place::new());
    let scene = place.scene_with(b"one zebra").await;
    scene.hear(attached("2", "b.md")).await;
    fetch_all(&scene, b"two zebras").await;
    let report = place.back_up(0);
    let files = report.copied_files.clone().unwrap();
    assert_eq!((report.files, files.files, files.bytes), (2, 2, 19));
    assert_eq!(files.lost, [""; 0]);
    scene.store.close().await.unwrap();

    let told = elsewhere.restore(&report.path);
    assert_eq!((told.files, told.files_missing), (2, 0));
    assert_eq!(elsewhere.bytes(), ["one zebra", "two zebras"]);
    let (scene, opened) = elsewhere.open().await;
    assert_eq!(opened.files, [""; 0], "nothing is to be settled");
    assert!(due(&scene).await.is_empty());
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let path = &elsewhere.stored()[0];
    assert_eq!((mode(path), mode(path.parent().unwrap())), (0o600, 0o700));
    assert_eq!(mode(&files.folder), 0o700);
}

#[tokio::test]
async fn backups_in_a_folder_share_what_they_have_in_common_and_go_with_their_files() {
    let place = Place::new();
    let _scene = place.scene_with(b"one").await;
    let inode = |report: &BackupReport| {
        let paths = paths_below(&folder_of(report));
        assert_eq!(paths.len(), 1);
        std::fs::metadata(&paths[0]).unwrap().ino()
    };
    let (first, second) = (place.back_up(0), place.back_up(1));
    assert_eq!(inode(&first), inode(&second), "on the disk once");
    let own = std::fs::metadata(&place.stored()[0]).unwrap().ino();
    assert_ne!(own, inode(&first), "and not the daemon's own");
    // What is altered in a backup is not taken on.
    std::fs::write(&paths_below(&folder_of(&second))[0], b"0ne").unwrap();
    let third = place.back_up(2);
    assert_eq!(bytes_below(&folder_of(&third)), ["one"]);
    let names = |folder: &Path| {
        let entries = std::fs::read_dir(folder).unwrap();
        entries.count()
    };
    assert_eq!(
        names(place.backups.path()),
        4,
        "two backups, each with its files"
    );
    // A backup without files has no folder, and takes away that of what it replaces.
    let replacing = BackupOptions {
        replaces: true,
        has_files: false,
        ..OPTIONS
    };
    let report = backup(&place.database(), &third.path, &replacing, &|_| ()).unwrap();
    assert_eq!((report.files, report.copied_files), (1, None));
    assert!(!folder_of(&third).exists());
}

#[tokio::test]
async fn what_is_lost_or_altered_is_named_and_what_is_deleted_meanwhile_is_not_lost() {
    let place = Place::new();
    let scene = place.scene_with(b"one").await;
    scene.hear(attached("2", "b.md")).await;
    fetch_all(&scene, b"two").await;
    let file = place.backups.path().join("copy.db");
    let (handle, store) = (tokio::runtime::Handle::current(), scene.store.clone());
    let (account, database, target) = (scene.account, place.database(), file.clone());
    let made = tokio::task::spawn_blocking(move || {
        let tell = |progress| {
            if progress == CopyProgress::Verifying {
                handle.block_on(async {
                    let deleted = store.capture_delete(account, "C1", "2", NOW_MS + 900_001);
                    deleted.await.unwrap();
                    assert_eq!(store.remove_dropped().await.unwrap(), 1);
                });
            }
        };
        backup(&database, &target, &OPTIONS, &tell).unwrap()
    });
    let report = made.await.unwrap();
    let files = report.copied_files.unwrap();
    assert_eq!((report.files, files.files, files.lost), (2, 1, Vec::new()));

    let path = place.stored().remove(0);
    std::fs::write(&path, b"0ne").unwrap();
    let replacing = BackupOptions {
        replaces: true,
        ..OPTIONS
    };
    // The folder of the backup that is replaced has it as it was.
    let again = || backup(&place.database(), &file, &replacing, &|_| ()).unwrap();
    assert_eq!(again().copied_files.unwrap().lost, [""; 0]);
    std::fs::remove_dir_all(folder_of(&again())).unwrap();
    let lost = again().copied_files.unwrap().lost;
    assert_eq!(lost.len(), 1, "{lost:?}");
    assert!(
        lost[0].ends_with("holds other bytes than were stored"),
        "{lost:?}"
    );
    assert_eq!(check_database(&place.database()).unwrap().lost_files, lost);
}

#[tokio::test]
async fn a_restore_puts_right_what_is_altered_and_names_what_the_backup_has_not() {
    let place = Place::new();
    let scene = place.scene_with(b"one").await;
    let report = place.back_up(0);
    let path = place.stored().remove(0);
    scene.store.close().await.unwrap();
    std::fs::write(&path, b"0ne").unwrap();
    assert_eq!(place.restore(&report.path).files, 1);
    assert_eq!(place.bytes(), ["one"]);
    // Altered there, it is worth nothing, and does not take the place of what is here.
    std::fs::write(&paths_below(&folder_of(&report))[0], b"0ne").unwrap();
    assert_eq!(place.restore(&report.path).files_missing, 0);
    std::fs::remove_file(&path).unwrap();
    let told = place.restore(&report.path);
    assert_eq!((told.files, told.files_missing), (0, 1));
    let (scene, _) = place.open().await;
    assert_eq!(due(&scene).await.len(), 1, "it is fetched again");
}

#[tokio::test]
async fn the_database_that_a_restore_replaced_keeps_its_files_until_it_goes() {
    let place = Place::new();
    let scene = place.scene_with(b"one").await;
    let report = place.back_up(0);
    scene.hear(attached("2", "b.md")).await;
    fetch_all(&scene, b"since").await;
    scene.store.close().await.unwrap();
    let kept = place.restore(&report.path).kept.unwrap();
    let (scene, _) = place.open().await;
    assert_eq!(place.bytes(), ["one"], "nothing refers to the other");
    scene.store.close().await.unwrap();
    assert_eq!(place.restore(&kept).files, 2);
    assert_eq!(place.bytes(), ["one", "since"], "and back again");
    // An erasure removes the copies with their files.
    let (scene, _) = place.open().await;
    erase_ann(&scene).await;
    let mut names: Vec<_> = std::fs::read_dir(place.data.path()).unwrap().collect();
    names.retain(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().contains(".before-")
    });
    assert!(names.is_empty(), "{names:?}");
    assert_eq!(place.bytes(), [""; 0]);
}

async fn erase_ann(scene: &Scene) {
    let target = ErasureTarget::Person("U1".to_owned());
    let now_ms = NOW_MS + 901_000;
    let plan = scene.store.plan_erasure(target, now_ms).await.unwrap();
    let ids: Vec<_> = plan.entries.iter().map(|entry| entry.id).collect();
    scene.store.begin_erasure(plan.entries).await.unwrap();
    scene
        .store
        .carry_out_all(&ids, false, || now_ms)
        .await
        .unwrap();
}

#[tokio::test]
async fn what_was_erased_or_deleted_after_a_backup_does_not_come_back_with_its_files() {
    let place = Place::new();
    let scene = place.scene_with(b"of Ada").await;
    for (id, bytes) in [("2", b"of Bob".as_slice()), ("3", b"of Bob, too")] {
        let theirs = Said {
            by: "U2",
            name: Some("Bob"),
            ..attached(id, "b.md")
        };
        scene.hear(theirs).await;
        fetch_all(&scene, bytes).await;
    }
    let report = place.back_up(0);
    erase_ann(&scene).await;
    let deleted = scene
        .store
        .capture_delete(scene.account, "C1", "3", NOW_MS + 902_000);
    deleted.await.unwrap();
    scene.store.remove_dropped().await.unwrap();
    assert_eq!(place.bytes(), ["of Bob"]);
    scene.store.close().await.unwrap();
    assert_eq!(place.restore(&report.path).files, 3);
    let (_fixture, _) = place.open().await;
    assert_eq!(place.bytes(), ["of Bob"]);
}
