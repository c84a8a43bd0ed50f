//! A data folder and a folder of backups: three messages, each with a file, one of which dropped its file
//! since the first backup, and one was heard since.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use vocative_contract::envelope::{Attachment, ChatKind, Place, Sender, SenderKind};
use vocative_contract::file::FileSink as _;
use vocative_contract::identity::Platform;
use vocative_core::addressing::Verdict;
use vocative_core::file::WantedFile;
use vocative_core::ids::{AccountId, FileId};
use vocative_core::turn::ParticipantKind;
use vocative_store::contract::{AccountBinding, Captured, NewMessage};
use vocative_store::{BackupOptions, Store, StoreOptions, backup, check_database, restore};

/// The stored files of the database, and of its first backup.
pub(crate) const OLD_FILES: [&str; 2] = ["in both", "since"];
pub(crate) const RESTORED_FILES: [&str; 2] = ["dropped", "in both"];
const DATABASE: &str = "vocative.db";
/// 2026-01-01T00:00:00Z; the first backup's time.
const FIRST_MS: i64 = 1_767_225_600_000;
const HOUR_MS: i64 = 3_600_000;

/// A world; its folder goes with it.
pub(crate) struct World {
    path: PathBuf,
    _folder: Option<TempDir>,
}

/// What is there after a start.
pub(crate) struct Opened {
    /// The bytes of the stored files.
    pub(crate) files: Vec<String>,
    /// Files that are to be fetched again.
    pub(crate) lost: usize,
}

impl World {
    /// One that is there.
    pub(crate) fn at(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            _folder: None,
        }
    }

    fn anew() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            path: folder.path().canonicalize().unwrap(),
            _folder: Some(folder),
        }
    }

    /// One with a past.
    pub(crate) fn template() -> Self {
        let world = Self::anew();
        std::fs::create_dir(world.backups()).unwrap();
        block_on(async {
            let (store, account) = world.opened().await;
            hear(&store, account, 1, "dropped").await;
            hear(&store, account, 2, "in both").await;
            world.back_up_at(FIRST_MS, None);
            // An edit takes the file away; a delete would be carried out on the backup, too.
            let edited = NewMessage {
                attachments: Vec::new(),
                is_edit: true,
                edit_marker: Some("2".to_owned()),
                ..message(account, 1)
            };
            store.capture_message(edited).await.unwrap();
            assert_eq!(store.remove_dropped().await.unwrap(), 1);
            hear(&store, account, 3, "since").await;
            store.close().await.unwrap();
        });
        world
    }

    /// The same in another folder.
    pub(crate) fn copied(&self) -> Self {
        let world = Self::anew();
        copy_below(&self.path, &world.path);
        world
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn database(&self) -> PathBuf {
        self.path.join("data").join(DATABASE)
    }

    fn backups(&self) -> PathBuf {
        self.path.join("backups")
    }

    /// The second backup, an hour after the first.
    pub(crate) fn back_up(&self) {
        self.back_up_at(FIRST_MS + HOUR_MS, Some(2));
    }

    /// One that takes the place of all others.
    pub(crate) fn back_up_again(&self) {
        self.back_up_at(FIRST_MS + 2 * HOUR_MS, Some(1));
    }

    fn back_up_at(&self, now_ms: i64, keep: Option<usize>) {
        let options = BackupOptions {
            replaces: false,
            keep,
            has_files: true,
            bytes_per_s: None,
            now_ms,
        };
        let report = backup(&self.database(), &self.backups(), &options, &|_| ()).unwrap();
        assert_eq!(report.copied_files.unwrap().lost, [""; 0]);
    }

    /// Puts the first backup in the database's place.
    pub(crate) fn restore(&self) {
        let first = self.backups().join("vocative-20260101T000000Z.db");
        let report = restore(&first, &self.database(), FIRST_MS + HOUR_MS, &|_| ()).unwrap();
        assert_eq!((report.files, report.files_missing), (2, 0));
    }

    /// Starts, looks and ends.
    pub(crate) fn open(&self) -> Opened {
        let lost = block_on(async {
            let (store, _) = self.opened().await;
            let due = wanted(&store).await.len();
            store.close().await.unwrap();
            due
        });
        let checked = check_database(&self.database()).unwrap();
        assert_eq!(checked.lost_files, [""; 0]);
        Opened {
            files: bytes_below(&self.database().with_file_name("files")),
            lost,
        }
    }

    async fn opened(&self) -> (Store, AccountId) {
        let path = self.database();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let options = StoreOptions {
            path: Some(path),
            readers: 1,
            page_cache_kib: 1_024,
        };
        let (store, _) = Store::open(&options, FIRST_MS).unwrap();
        let binding = AccountBinding {
            channel: "acme".to_owned(),
            platform: Platform::Slack,
            account: "T1".to_owned(),
            name: "Acme".to_owned(),
        };
        let account = store.bind_account(binding, FIRST_MS).await.unwrap();
        (store, account)
    }

    /// Restores every backup that has a name, elsewhere; how many there are.
    pub(crate) fn check_backups(&self) -> usize {
        let named = names(&self.backups());
        let named = named.iter().filter(|name| name.ends_with(".db"));
        let checked = named.map(|name| restores_elsewhere(&self.backups().join(name)));
        checked.count()
    }

    /// Restores every database that was replaced, elsewhere; how many there are.
    pub(crate) fn check_kept(&self) -> usize {
        let own = std::fs::metadata(self.database()).unwrap().ino();
        let names = self.names_of_data();
        let kept = names
            .iter()
            .filter(|name| name.contains(".before-restore-") && !name.ends_with(".files"));
        let checked = kept.map(|name| {
            let path = self.database().with_file_name(name);
            assert_ne!(std::fs::metadata(&path).unwrap().ino(), own, "{name}");
            restores_elsewhere(&path);
        });
        checked.count()
    }

    pub(crate) fn names_of_backups(&self) -> BTreeSet<String> {
        names(&self.backups())
    }

    pub(crate) fn names_of_data(&self) -> BTreeSet<String> {
        names(self.database().parent().unwrap())
    }
}

fn restores_elsewhere(copy: &Path) {
    let world = World::anew();
    let report = restore(copy, &world.database(), FIRST_MS, &|_| ()).unwrap();
    assert_eq!(
        (report.files, report.files_missing),
        (2, 0),
        "{}",
        copy.display()
    );
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(work)
}

/// The files that are still to be fetched.
async fn wanted(store: &Store) -> Vec<WantedFile> {
    let mut wanted = Vec::new();
    for job in store.jobs(100).await.unwrap() {
        if job.kind == "fetch-file" {
            let file = FileId(job.key.parse().unwrap());
            wanted.extend(store.file_to_fetch(file).await.unwrap());
        }
    }
    wanted
}

async fn hear(store: &Store, account: AccountId, number: i64, file: &str) {
    let captured = store.capture_message(message(account, number)).await;
    assert!(matches!(captured.unwrap(), Captured::New(_)));
    for due in wanted(store).await {
        let mut content = store.new_content().unwrap();
        content.take(file.as_bytes()).unwrap();
        let kept = store.keep_content(due.id, content, false, FIRST_MS).await;
        assert!(kept.unwrap());
    }
}

fn message(account: AccountId, number: i64) -> NewMessage {
    NewMessage {
        account,
        place: Place {
            chat: "C1".to_owned(),
            kind: Some(ChatKind::Public),
            ..Place::default()
        },
        scope_override: None,
        message_id: format!("m{number}"),
        sender: Sender {
            id: "U1".to_owned(),
            display_name: Some("Ann".to_owned()),
            username: None,
            kind: SenderKind::Person,
            is_stranger: false,
        },
        sender_kind: ParticipantKind::User,
        text: "see this".to_owned(),
        attachments: vec![Attachment {
            kind: "file".to_owned(),
            name: Some("notes.md".to_owned()),
            mime_type: None,
            size_bytes: None,
            file_id: Some(format!("F{number}")),
        }],
        reply_to: None,
        quote: None,
        album: None,
        sent_at_ms: number,
        ordinal: 0,
        is_edit: false,
        edit_marker: None,
        received_at_ms: number,
        tokens: None,
        keep_revisions: false,
        raw: None,
        judge_follow_up: None,
        judge: Box::new(|_| Verdict {
            is_admitted: true,
            ..Verdict::default()
        }),
    }
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
    entries
        .map(|entry| name(entry).into_string().unwrap())
        .collect()
}

fn copy_below(from: &Path, to: &Path) {
    for name in names(from) {
        let (from, to) = (from.join(&name), to.join(&name));
        if from.is_dir() {
            std::fs::create_dir(&to).unwrap();
            copy_below(&from, &to);
        } else {
            std::fs::copy(&from, &to).unwrap();
        }
    }
}

fn bytes_below(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for shelf in names(folder) {
        for file in names(&folder.join(&shelf)) {
            let bytes = std::fs::read(folder.join(&shelf).join(file)).unwrap();
            found.push(String::from_utf8(bytes).unwrap());
        }
    }
    found.sort_unstable();
    found
}
