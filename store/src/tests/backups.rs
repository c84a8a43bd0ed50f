use crate::scene::by_hand;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::jobs::only_claimed;
use super::*;
use crate::scene::Scene;
use crate::{BackupOptions, BackupReport, CopyProgress, RestoreReport, backup, restore};
use vocative_core::job::Job;
use vocative_core::run::RunState;

const OPTIONS: BackupOptions = BackupOptions {
    replaces: false,
    keep: None,
    has_files: true,
    bytes_per_s: None,
    now_ms: NOW_MS,
};

/// A folder with a database in it.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn database(&self) -> PathBuf {
        self.folder.path().join("vocative.db")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    async fn scene(&self) -> Scene {
        Scene::open_at(Some(self.database())).await
    }

    fn back_up(&self, target: &Path) -> Result<BackupReport, StoreError> {
        backup(&self.database(), target, &OPTIONS, &|_| ())
    }

    fn restore(&self, from: &Path) -> Result<RestoreReport, StoreError> {
        restore(from, &self.database(), NOW_MS, &|_| ())
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort_unstable();
        names
    }
}

async fn close(scene: Scene) {
    scene.store.close().await.unwrap();
}

#[tokio::test]
async fn a_backup_of_an_open_database_holds_its_newest_commit_and_is_private() {
    let (place, elsewhere) = (Place::new(), Place::new());
    let scene = place.scene().await;
    let room = scene.room("C1").await;
    scene.say(&room, "hello", 10).await;
    let file = elsewhere.file("copy.db");
    let report = place.back_up(&file).unwrap();
    assert_eq!((report.turns, report.conversations), (1, 1));
    assert_eq!(elsewhere.names(), ["copy.db"]);
    let status = scene.store.status(NOW_MS).await.unwrap();
    assert_eq!(status.backup_last_ms, Some(NOW_MS));
    let meta = std::fs::metadata(&file).unwrap();
    assert_eq!(meta.permissions().mode() & 0o777, 0o600);
    assert_eq!(meta.len(), report.bytes);
    scene.say(&room, "after", 20).await;
    close(scene).await;

    let copied = Store::open_read_only(&file).unwrap();
    let status = copied.status(NOW_MS).await.unwrap();
    assert_eq!((status.turns, status.backup_last_ms), (1, None));
}

#[tokio::test]
async fn a_commit_in_the_middle_of_a_copy_is_not_in_it_and_not_kept_waiting() {
    let (place, elsewhere) = (Place::new(), Place::new());
    let scene = place.scene().await;
    let room = scene.room("C1").await;
    scene.say(&room, &"word ".repeat(400_000), 10).await;
    let handle = tokio::runtime::Handle::current();
    let store = scene.store.clone();
    let (database, file) = (place.database(), elsewhere.file("copy.db"));
    let copied = file.clone();
    let commits = tokio::task::spawn_blocking(move || {
        let commits = std::cell::Cell::new(0);
        let tell = |progress| {
            if matches!(progress, CopyProgress::Copied { .. }) {
                handle
                    .block_on(store.write(|connection| {
                        connection.execute("UPDATE chats SET last_heard_ms = 7", [])?;
                        Ok(())
                    }))
                    .unwrap();
                commits.set(commits.get() + 1);
            }
        };
        backup(&database, &copied, &OPTIONS, &tell).unwrap();
        commits.get()
    });
    assert!(commits.await.unwrap() > 0);
    let heard = "SELECT last_heard_ms FROM chats";
    assert_eq!(scene.value::<i64>(heard).await, 7);
    let copy = rusqlite::Connection::open(&file).unwrap();
    let in_copy: i64 = copy.query_row(heard, [], |row| row.get(0)).unwrap();
    assert_eq!(in_copy, 0);
    close(scene).await;
}

#[tokio::test]
async fn a_file_that_is_there_is_replaced_only_when_told_and_the_database_never() {
    let place = Place::new();
    close(place.scene().await).await;
    let file = place.file("copy.db");
    std::fs::write(&file, "precious").unwrap();
    let error = place.back_up(&file).unwrap_err().to_string();
    assert!(error.contains("--replace"), "{error}");
    assert_eq!(std::fs::read(&file).unwrap(), b"precious");
    let replacing = BackupOptions {
        replaces: true,
        ..OPTIONS
    };
    backup(&place.database(), &file, &replacing, &|_| ()).unwrap();
    let itself = backup(&place.database(), &place.database(), &replacing, &|_| ());
    let error = itself.unwrap_err().to_string();
    assert!(error.contains("the database itself"), "{error}");
}

#[tokio::test]
async fn a_folder_keeps_the_newest_backups_and_other_files() {
    let (place, folder) = (Place::new(), Place::new());
    close(place.scene().await).await;
    std::fs::write(folder.file("vocative-notes.db"), "mine").unwrap();
    for second in 0..3 {
        let options = BackupOptions {
            keep: Some(2),
            now_ms: NOW_MS + second * 1_000,
            ..OPTIONS
        };
        backup(&place.database(), folder.folder.path(), &options, &|_| ()).unwrap();
    }
    let kept = [
        "vocative-20231114T221321Z.db",
        "vocative-20231114T221322Z.db",
        "vocative-notes.db",
    ];
    assert_eq!(folder.names(), kept);
}

#[tokio::test]
async fn nothing_is_removed_while_a_backup_carries_a_later_time_than_the_one_just_made() {
    let (place, folder) = (Place::new(), Place::new());
    close(place.scene().await).await;
    let back_up = |now_ms, keep| {
        let options = BackupOptions {
            keep,
            now_ms,
            ..OPTIONS
        };
        backup(&place.database(), folder.folder.path(), &options, &|_| ())
    };
    let year_ms = 365 * 86_400_000;
    for ahead_ms in [0, year_ms, year_ms + 1_000] {
        back_up(NOW_MS + ahead_ms, None).unwrap();
    }
    let told = back_up(NOW_MS + 1_000, Some(2)).unwrap_err().to_string();
    assert!(told.contains("is made"), "{told}");
    assert!(told.contains("20241113T221320Z.db"), "{told}");
    assert_eq!(folder.names().len(), 4);
    let report = back_up(NOW_MS + year_ms + 2_000, Some(2)).unwrap();
    assert_eq!((report.removed.len(), folder.names().len()), (3, 2));
}

#[tokio::test]
async fn what_was_open_in_a_backup_is_held_and_goes_on_when_a_person_says_so() {
    let place = Place::new();
    let scene = place.scene().await;
    let (one, two) = (scene.room("C1").await, scene.room("C2").await);
    scene.post(&one, &["first", "second"], 100).await;
    let (_, queued) = scene.ask(&one, "and now?", 200).await;
    let (_, leased) = scene.ask(&two, "here?", 150).await;
    assert_eq!(scene.claim(160).await.unwrap().run.id, leased);
    let claimed = scene.store.claim_posts(scene.request(300), 1).await;
    let claimed = claimed.unwrap().remove(0);
    let started = scene
        .store
        .mark_send_started(claimed.entry.id, claimed.token, None, 301);
    started.await.unwrap();
    // Somebody asks "context", and it is answered after the backup.
    let inquire = "INSERT INTO inquiries (kind, agent, conversation_id, target)
                   SELECT 'context', 'kael', min(id), '{}' FROM conversations";
    scene
        .write(move |connection| Ok(connection.execute(inquire, []).map(|_| ())?))
        .await;
    let (account, now_ms) = (Some(scene.account), 250);
    let inquiry = vocative_core::ids::InquiryId(1);
    let fetch = Job::FetchFile {
        file: vocative_core::ids::FileId(1),
    };
    for job in [Job::AnswerInquiry { inquiry }, fetch] {
        scene.store.enqueue_job(job, account, now_ms).await.unwrap();
    }
    let file = place.file("copy.db");
    place.back_up(&file).unwrap();
    close(scene).await;

    let report = place.restore(&file).unwrap();
    assert_eq!((report.posts_held, report.runs_held), (2, 2));
    let scene = place.scene().await;
    let inquiries: i64 = scene.value("SELECT count(*) FROM inquiries").await;
    assert_eq!(inquiries, 0, "they were answered since");
    let claimed = only_claimed(&scene.store, &[scene.account], 9_000).await;
    assert_eq!(claimed.job, fetch);
    let restored: i64 = scene.value("SELECT max(at_ms) FROM restores").await;
    assert_eq!(restored, NOW_MS);
    assert_eq!(scene.claim(9_000).await, None);
    let posts = scene.store.claim_posts(scene.request(9_000), 9).await;
    assert_eq!(posts.unwrap(), []);
    assert_eq!(scene.store.stuck_posts(9).await.unwrap().len(), 2);
    let held = scene.store.held_runs(9).await.unwrap();
    assert_eq!(held.len(), 2);
    assert!(
        held.iter()
            .all(|run| matches!(run.state, RunState::Held { .. }))
    );
    assert_eq!(scene.store.status(9_000).await.unwrap().runs_held, 2);

    // A new question is not kept waiting by them.
    let (_, new) = scene.ask(&one, "a new one", 9_100).await;
    assert_eq!(scene.claim(9_200).await.unwrap().run.id, new);
    assert!(
        scene
            .store
            .cancel_run(queued, by_hand("no"), 9_300)
            .await
            .unwrap()
    );
    scene.store.release_run(leased, 9_300).await.unwrap();
    assert_eq!(scene.claim(9_400).await.unwrap().run.id, leased);
    assert!(scene.store.release_run(queued, 9_500).await.is_err());
    close(scene).await;
}

#[tokio::test]
async fn a_restore_keeps_the_old_database_with_its_log_and_leaves_other_files_alone() {
    let (place, work) = (Place::new(), Place::new());
    let scene = work.scene().await;
    let room = scene.room("C1").await;
    scene.say(&room, "in the backup", 10).await;
    let file = work.file("copy.db");
    work.back_up(&file).unwrap();
    scene.say(&room, "since", 20).await;
    // As a kill leaves it: what is newest is in the log only.
    for suffix in ["", "-wal"] {
        let from = format!("{}{suffix}", work.database().display());
        let to = format!("{}{suffix}", place.database().display());
        std::fs::copy(from, to).unwrap();
    }
    close(scene).await;
    std::fs::write(place.file("vocative.db.erased"), "ledger").unwrap();

    let report = place.restore(&file).unwrap();
    let kept = report.kept.unwrap();
    let turns = async |path: &Path| {
        let store = Store::open_read_only(path).unwrap();
        store.status(NOW_MS).await.unwrap().turns
    };
    assert_eq!(turns(&place.database()).await, 1);
    assert_eq!(turns(&kept).await, 2);
    let ledger = std::fs::read(place.file("vocative.db.erased")).unwrap();
    assert_eq!(ledger, b"ledger");
    let error = place.restore(&kept).map(|report| report.turns);
    assert_eq!(error.unwrap(), 2, "and back again");
}

#[tokio::test]
async fn what_is_no_whole_backup_is_refused_and_nothing_changes() {
    let (place, work) = (Place::new(), Place::new());
    let scene = work.scene().await;
    let room = scene.room("C1").await;
    for at_ms in 0..200 {
        scene
            .say(&room, &format!("turn {at_ms} {}", "x".repeat(400)), at_ms)
            .await;
    }
    let good = work.file("good.db");
    work.back_up(&good).unwrap();
    close(scene).await;
    close(place.scene().await).await;
    let before = (place.names(), std::fs::read(place.database()).unwrap());

    let bytes = std::fs::read(&good).unwrap();
    let mut damaged = bytes.clone();
    let at = bytes.len() / 2;
    damaged[at..at + 8_192].fill(0xA5);
    std::fs::write(work.file("damaged.db"), damaged).unwrap();
    std::fs::write(work.file("cut.db"), &bytes[..bytes.len() * 2 / 3]).unwrap();
    std::fs::write(work.file("short.db"), &bytes[..50]).unwrap();
    std::fs::write(work.file("text.db"), "no database at all").unwrap();
    std::fs::write(work.file("empty.db"), "").unwrap();
    let foreign = rusqlite::Connection::open(work.file("foreign.db")).unwrap();
    foreign.execute_batch("CREATE TABLE t (x)").unwrap();
    std::fs::write(work.file("newer.db"), &bytes).unwrap();
    let newer = rusqlite::Connection::open(work.file("newer.db")).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    let cases = [
        ("damaged.db", "damaged.db"),
        ("cut.db", "malformed"),
        ("short.db", "short.db"),
        ("text.db", "not a database"),
        ("empty.db", "it is empty"),
        ("foreign.db", "not a database of this program"),
        ("newer.db", "schema 99"),
        ("absent.db", "there is no file"),
    ];
    for (name, expected) in cases {
        let error = place.restore(&work.file(name)).unwrap_err().to_string();
        assert!(error.contains(expected), "{name}: {error}");
        let after = (place.names(), std::fs::read(place.database()).unwrap());
        assert!(after == before, "{name} changed something: {:?}", after.0);
    }
    place.restore(&good).unwrap();
}

#[tokio::test]
async fn a_restore_is_refused_while_a_daemon_has_the_database() {
    let place = Place::new();
    let scene = place.scene().await;
    let file = place.file("copy.db");
    place.back_up(&file).unwrap();
    let refused = place.restore(&file);
    assert!(
        matches!(refused, Err(StoreError::Locked { .. })),
        "{refused:?}"
    );
    close(scene).await;
}

#[tokio::test]
async fn a_backup_of_an_older_schema_is_migrated_at_the_next_start() {
    let place = Place::new();
    let file = place.file("older.db");
    let mut older = rusqlite::Connection::open(&file).unwrap();
    let known = crate::engine::schema::MIGRATIONS;
    let watch = crate::engine::watch::OpenWatch::default();
    crate::engine::upgrade::upgrade(&mut older, &file, &known[..1], NOW_MS, &watch).unwrap();
    drop(older);
    let report = place.restore(&file).unwrap();
    assert_eq!((report.kept, report.turns), (None, 0));
    close(place.scene().await).await;
}

#[tokio::test]
async fn two_backups_of_one_second_are_both_kept_and_count_as_two() {
    let (place, elsewhere) = (Place::new(), Place::new());
    let scene = place.scene().await;
    close(scene).await;
    let first = place.back_up(elsewhere.folder.path()).unwrap().path;
    let second = place.back_up(elsewhere.folder.path()).unwrap().path;
    assert!(first < second && first.exists() && second.exists());
    // Of three the newest two stay.
    let keep_two = BackupOptions {
        keep: Some(2),
        ..OPTIONS
    };
    let report = backup(
        &place.database(),
        elsewhere.folder.path(),
        &keep_two,
        &|_| (),
    )
    .unwrap();
    assert_eq!(report.removed, [first]);
    assert!(second < report.path && second.exists());
    for _ in 0..6 {
        place.back_up(elsewhere.folder.path()).unwrap();
    }
    place.back_up(elsewhere.folder.path()).unwrap();
    let refused = place.back_up(elsewhere.folder.path()).unwrap_err();
    assert!(refused.to_string().contains("of this second"), "{refused}");
}
