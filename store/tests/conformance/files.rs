//! Attached files: fetched once, kept while a message refers to them, and gone with it.

use std::ops::Deref;
use std::path::{Path, PathBuf};

use vocative_contract::file::FileSink as _;
use vocative_core::file::{FileFacts, FileState, WantedFile};
use vocative_core::ids::{FileId, TurnId};
use vocative_core::job::JobState;
use vocative_core::queueing::JobChange;
use vocative_store::erasure::ErasureTarget;
use vocative_store::{ExpiryBounds, OpenReport, Store, StoreOptions, check_database};

use crate::jobs::only_claimed;
use crate::said::{NOW_MS, Said, said, turn_of};
use crate::scene::Scene;

/// A store in a folder of its own: what lies in it is looked at.
struct Shelf {
    scene: Scene,
    folder: tempfile::TempDir,
}

impl Shelf {
    async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let scene = Scene::open_at(Some(folder.path().join("store.db"))).await;
        Self { scene, folder }
    }

    fn files(&self) -> PathBuf {
        self.folder.path().join("files")
    }

    /// Everything below the folder of files.
    fn stored(&self) -> Vec<PathBuf> {
        paths_below(&self.files())
    }
}

impl Deref for Shelf {
    type Target = Scene;

    fn deref(&self) -> &Scene {
        &self.scene
    }
}

pub(crate) fn attached(id: &'static str, file: &'static str) -> Said {
    Said {
        file: Some(file),
        ..said(id, "see this")
    }
}

/// The files that jobs of a kind are about, in the order in which they come due.
async fn queued(scene: &Scene, kind: &str) -> Vec<FileId> {
    let jobs = scene.store.jobs(100).await.unwrap().into_iter();
    let jobs = jobs.filter(|job| job.kind == kind && job.state == JobState::Pending);
    jobs.map(|job| FileId(job.key.parse().unwrap())).collect()
}

/// The files that are still to be fetched.
pub(crate) async fn due(scene: &Scene) -> Vec<WantedFile> {
    let mut due = Vec::new();
    for file in queued(scene, "fetch-file").await {
        due.extend(scene.store.file_to_fetch(file).await.unwrap());
    }
    due
}

/// Fetches everything that is due; each file has these bytes.
pub(crate) async fn fetch_all(scene: &Scene, bytes: &[u8]) {
    for file in due(scene).await {
        let mut content = scene.store.new_content().unwrap();
        content.take(bytes).unwrap();
        let kept = scene
            .store
            .keep_content(file.id, content, false, NOW_MS + 900_000)
            .await;
        assert!(kept.unwrap());
    }
}

async fn states(scene: &Scene, turn: TurnId) -> Vec<(String, FileState)> {
    let files = scene.store.files_of(vec![turn]).await.unwrap();
    let state =
        |file: vocative_core::file::TurnFile| (file.facts.shown_name().to_owned(), file.state);
    files.into_iter().map(state).collect()
}

/// Every file in a folder and those below it.
pub(crate) fn paths_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(paths_below(&path)),
            false => found.push(path),
        }
    }
    found
}

pub(crate) fn open(path: &Path) -> (Store, OpenReport) {
    let options = StoreOptions {
        path: Some(path.to_owned()),
        readers: 1,
        page_cache_kib: 1_024,
    };
    Store::open(&options, NOW_MS + 900_000).unwrap()
}

#[tokio::test]
async fn an_attachment_is_queued_with_its_turn_and_the_same_bytes_are_stored_once() {
    let scene = Shelf::open().await;
    let first = turn_of(scene.hear(attached("1", "a.md")).await).turn;
    scene.hear(attached("1", "a.md")).await;
    scene.hear(attached("2", "b.md")).await;
    let names: Vec<_> = due(&scene)
        .await
        .into_iter()
        .map(|file| file.platform_id)
        .collect();
    assert_eq!(names, ["file-a.md", "file-b.md"]);
    assert_eq!(
        states(&scene, first).await,
        [("a.md".to_owned(), FileState::Pending)]
    );
    fetch_all(&scene, b"# Hello").await;
    assert_eq!(
        states(&scene, first).await,
        [("a.md".to_owned(), FileState::Fetched)]
    );
    assert!(due(&scene).await.is_empty());
    let paths = scene.stored();
    assert_eq!(paths.len(), 1);
    let shelf = paths[0].parent().unwrap();
    let folder = shelf.parent().unwrap();
    assert_eq!(folder, scene.files());
    assert_eq!(shelf.file_name().unwrap().len(), 2);
    assert_eq!(scene.store.content_bytes().await.unwrap(), 7);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&paths[0]), mode(folder)), (0o600, 0o700));
    }
    let files = scene.store.files_of(vec![first]).await.unwrap();
    let (content, _) = files[0].content.unwrap();
    let bytes = scene.store.content(content, 7).await.unwrap();
    assert_eq!(bytes.as_deref(), Some(b"# Hello".as_slice()));
    assert_eq!(scene.store.content(content, 6).await.unwrap(), None);
    // Bytes that changed on the disk are not those that were stored.
    std::fs::write(&paths[0], b"# Other").unwrap();
    assert_eq!(scene.store.content(content, 7).await.unwrap(), None);
}

#[tokio::test]
async fn the_bytes_go_with_the_last_message_that_refers_to_them() {
    let scene = Shelf::open().await;
    scene.hear(attached("1", "a.md")).await;
    scene.hear(attached("2", "b.md")).await;
    fetch_all(&scene, b"secret zebra").await;
    let delete = |id: &'static str| {
        let store = scene.store.clone();
        let (account, chat) = (scene.account, "C1".to_owned());
        async move {
            store
                .capture_delete(account, &chat, id, NOW_MS + 900_001)
                .await
                .unwrap()
        }
    };
    delete("1").await;
    scene.store.remove_dropped().await.unwrap();
    assert_eq!(scene.stored().len(), 1);
    delete("2").await;
    assert_eq!(scene.store.remove_dropped().await.unwrap(), 1);
    assert!(scene.stored().is_empty());
    let turns = scene.turns().await.into_iter().map(|turn| turn.id);
    let left = scene.store.files_of(turns.collect()).await.unwrap();
    assert_eq!(
        (left, scene.store.content_bytes().await.unwrap()),
        (vec![], 0)
    );
}

#[tokio::test]
async fn an_edit_that_takes_a_file_away_takes_its_bytes_away() {
    let scene = Shelf::open().await;
    let turn = turn_of(scene.hear(attached("1", "a.md")).await).turn;
    fetch_all(&scene, b"old").await;
    let edit = Said {
        edit_marker: Some("5"),
        ..attached("1", "b.md")
    };
    scene.hear(edit).await;
    assert_eq!(
        states(&scene, turn).await,
        [("b.md".to_owned(), FileState::Pending)]
    );
    scene.store.remove_dropped().await.unwrap();
    assert!(scene.stored().is_empty());
}

#[tokio::test]
async fn an_album_has_the_files_of_all_its_items() {
    let scene = Shelf::open().await;
    let item = |id, file| Said {
        album: Some("g1"),
        ..attached(id, file)
    };
    let turn = turn_of(scene.hear(item("1", "a.png")).await).turn;
    fetch_all(&scene, b"png").await;
    scene.hear(item("2", "b.png")).await;
    let expected = [
        ("a.png".to_owned(), FileState::Fetched),
        ("b.png".to_owned(), FileState::Pending),
    ];
    assert_eq!(states(&scene, turn).await, expected);
}

#[tokio::test]
async fn an_edit_that_replaces_a_picture_of_an_album_replaces_its_bytes_alone() {
    let scene = Shelf::open().await;
    let item = |id, file| Said {
        album: Some("g1"),
        ..attached(id, file)
    };
    let turn = turn_of(scene.hear(item("1", "a.png")).await).turn;
    scene.hear(item("2", "b.png")).await;
    fetch_all(&scene, b"png").await;
    let edit = Said {
        edit_marker: Some("5"),
        ..item("1", "c.png")
    };
    scene.hear(edit).await;
    let expected = [
        ("b.png".to_owned(), FileState::Fetched),
        ("c.png".to_owned(), FileState::Pending),
    ];
    assert_eq!(states(&scene, turn).await, expected);
}

#[tokio::test]
async fn retention_and_erasure_remove_the_bytes() {
    let scene = Shelf::open().await;
    scene.hear(attached("1", "a.md")).await;
    fetch_all(&scene, b"of Ada, zebra-7f3a9c").await;
    let theirs = Said {
        by: "U2",
        name: Some("Bob"),
        ..attached("2", "b.md")
    };
    scene.hear(theirs).await;
    fetch_all(&scene, b"of Bob").await;
    assert_eq!(scene.stored().len(), 2);
    let target = ErasureTarget::Person("U1".to_owned());
    let plan = scene
        .store
        .plan_erasure(target, NOW_MS + 600_000)
        .await
        .unwrap();
    let ids: Vec<_> = plan.entries.iter().map(|entry| entry.id).collect();
    scene.store.begin_erasure(plan.entries).await.unwrap();
    let done = scene
        .store
        .carry_out_all(&ids, true, || NOW_MS + 600_001)
        .await
        .unwrap();
    assert_eq!(done.verification.unwrap().hits, []);
    assert_eq!(scene.stored().len(), 1);
    let bounds = ExpiryBounds {
        text_before_ms: Some(NOW_MS + 800_000),
        ..ExpiryBounds::default()
    };
    scene
        .store
        .expire(scene.account, bounds, u64::MAX, NOW_MS + 900_000)
        .await
        .unwrap();
    scene.store.remove_dropped().await.unwrap();
    assert!(scene.stored().is_empty());
}

#[tokio::test]
async fn a_file_that_nobody_wants_any_more_is_not_kept() {
    let scene = Shelf::open().await;
    scene.hear(attached("1", "a.md")).await;
    let file = due(&scene).await.remove(0);
    let mut content = scene.store.new_content().unwrap();
    content.take(b"bytes").unwrap();
    scene
        .store
        .capture_delete(scene.account, "C1", "1", NOW_MS + 900_001)
        .await
        .unwrap();
    let kept = scene
        .store
        .keep_content(file.id, content, false, NOW_MS + 900_002)
        .await;
    assert!(!kept.unwrap());
    assert!(scene.stored().is_empty());
    // A transfer that ended early leaves nothing either.
    let mut content = scene.store.new_content().unwrap();
    content.take(b"half").unwrap();
    drop(content);
    assert!(scene.stored().is_empty());
}

#[tokio::test]
async fn a_file_that_was_given_up_says_why_and_a_retry_wants_it_again() {
    let scene = Shelf::open().await;
    let turn = turn_of(scene.hear(attached("1", "a.md")).await).turn;
    let now_ms = NOW_MS + 900_000;
    let claimed = only_claimed(&scene.store, &[scene.account], now_ms).await;
    let dead = JobChange::Dead {
        cause: "HTTP 503".to_owned(),
    };
    let finished = scene
        .store
        .finish_job(claimed.id, claimed.token, dead, now_ms);
    assert!(finished.await.unwrap());
    let told = || async {
        let files = scene.store.files_of(vec![turn]).await.unwrap();
        (files[0].state, files[0].reason.clone())
    };
    let reason = Some("HTTP 503".to_owned());
    assert_eq!(told().await, (FileState::Failed, reason.clone()));
    scene.store.retry_job(claimed.id, now_ms).await.unwrap();
    assert_eq!(told().await, (FileState::Pending, reason));
    assert_eq!(due(&scene).await.len(), 1);
    scene.store.cancel_job(claimed.id, now_ms).await.unwrap();
    let cancelled = Some("an operator cancelled it".to_owned());
    assert_eq!(told().await, (FileState::Refused, cancelled));
    assert!(due(&scene).await.is_empty());
}

#[tokio::test]
async fn at_open_what_nobody_refers_to_goes_and_what_is_lost_is_fetched_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let (store, _) = open(&path);
    let scene = Scene::with(store).await;
    scene.hear(attached("1", "a.md")).await;
    fetch_all(&scene, b"one").await;
    scene.hear(attached("2", "b.md")).await;
    fetch_all(&scene, b"two").await;
    scene.store.close().await.unwrap();
    assert_eq!(check_database(&path).unwrap().lost_files, [""; 0]);
    let files = folder.path().join("files");
    let paths = paths_below(&files);
    drop(scene);
    // A kill between writing and committing leaves a file; somebody else loses one.
    std::fs::write(files.join("left.part"), b"half").unwrap();
    std::fs::write(files.join("0".repeat(64)), b"stray").unwrap();
    std::fs::remove_file(&paths[0]).unwrap();
    let lost = check_database(&path).unwrap().lost_files;
    assert!(
        lost.len() == 1 && lost[0].contains("is not there"),
        "{lost:?}"
    );
    std::fs::write(&paths[1], b"2wo").unwrap();
    assert!(check_database(&path).unwrap().lost_files[1].contains("other bytes"));
    let (store, report) = open(&path);
    assert_eq!(report.files.len(), 2, "{:?}", report.files);
    let scene = Scene::with(store).await;
    assert_eq!(due(&scene).await.len(), 1);
    assert_eq!(paths_below(&files), [paths[1].clone()]);
}

#[tokio::test]
async fn what_the_platform_says_of_a_stub_joins_its_turn_and_stays_through_an_edit() {
    let scene = Shelf::open().await;
    let stub = Said {
        text: "[file] see this",
        ..attached("1", "")
    };
    let turn = turn_of(scene.hear(stub.clone()).await).turn;
    let file = due(&scene).await.remove(0);
    assert!(file.facts.is_unknown(), "{:?}", file.facts);
    let facts = FileFacts {
        kind: "photo".to_owned(),
        name: Some("shot.png".to_owned()),
        mime_type: Some("image/png".to_owned()),
        size_bytes: Some(5),
    };
    scene
        .store
        .describe_file(file.id, facts.clone(), NOW_MS + 900_000)
        .await
        .unwrap();
    assert_eq!(due(&scene).await.remove(0).facts, facts);
    assert_eq!(scene.contents().await, ["[photo] see this"]);
    let edit = Said {
        text: "[file] see that",
        edit_marker: Some("5"),
        ..stub
    };
    scene.hear(edit).await;
    let files = scene.store.files_of(vec![turn]).await.unwrap();
    assert_eq!(files[0].facts, facts);
}

#[tokio::test]
async fn what_was_given_up_lately_is_tried_once_more_the_newest_first() {
    let scene = Shelf::open().await;
    let given_up = [
        ("1", "a.md", FileState::Refused, 10),
        ("2", "b.md", FileState::TooLarge, 20),
        ("3", "c.md", FileState::Gone, 20),
        ("4", "d.md", FileState::Failed, 20),
        ("5", "e.md", FileState::Refused, 20),
    ];
    for (id, name, state, at_ms) in given_up {
        scene.hear(attached(id, name)).await;
        let file = due(&scene).await.remove(0);
        let reason = "as it was".to_owned();
        let noted = scene
            .store
            .give_file_up(file.id, state, reason, NOW_MS + at_ms);
        noted.await.unwrap();
    }
    let files = scene.store.given_up_files(NOW_MS + 15, 2).await.unwrap();
    let names: Vec<&str> = files.iter().map(|file| file.platform_id.as_str()).collect();
    assert_eq!(names, ["file-e.md", "file-d.md"]);
    let ids = files.iter().map(|file| file.id).collect();
    let tried = scene.store.try_files_again(ids, Some(NOW_MS), NOW_MS + 30);
    assert_eq!(tried.await.unwrap(), 2);
    let waiting = due(&scene).await.into_iter();
    let waiting: Vec<String> = waiting.map(|file| file.platform_id).collect();
    assert_eq!(waiting, ["file-d.md", "file-e.md"]);
}

#[tokio::test]
async fn a_voice_note_that_nobody_was_there_to_hear_is_queued_later_and_once() {
    let scene = Shelf::open().await;
    for (id, name) in [("1", "old.oga"), ("2", "voice.png"), ("3", "new.oga")] {
        scene.hear(attached(id, name)).await;
        let file = due(&scene).await.remove(0);
        let mut content = scene.store.new_content().unwrap();
        content.take(name.as_bytes()).unwrap();
        let kept = scene
            .store
            .keep_content(file.id, content, false, file.sent_at_ms);
        assert!(kept.await.unwrap());
    }
    let unheard = || async {
        let notes = scene.store.unheard_notes(NOW_MS + 2_000, 10).await;
        notes.unwrap()
    };
    let notes = unheard().await;
    assert_eq!(
        notes.len(),
        1,
        "a picture is no note, and the other one is old"
    );
    assert_eq!(scene.store.queue_speech(notes, NOW_MS).await.unwrap(), 1);
    assert_eq!(unheard().await, []);
    let [note] = queued(&scene, "transcribe-file").await[..] else {
        panic!("one note is queued");
    };
    let note = scene.store.note_to_transcribe(note).await.unwrap();
    assert_eq!(note.unwrap().platform_id, "file-new.oga");
}

/// Fetches a file of its own bytes at a time.
async fn fetch_at(scene: &Scene, id: &'static str, file: &'static str, now_ms: i64) -> TurnId {
    let turn = turn_of(scene.hear(attached(id, file)).await).turn;
    let due = due(scene).await.pop().unwrap();
    let mut content = scene.store.new_content().unwrap();
    content.take(file.repeat(100).as_bytes()).unwrap();
    let kept = scene.store.keep_content(due.id, content, false, now_ms);
    assert!(kept.await.unwrap());
    turn
}

#[tokio::test]
async fn contents_that_were_read_longest_ago_make_room_and_recent_ones_do_not() {
    let scene = Shelf::open().await;
    let first = fetch_at(&scene, "1", "a.md", NOW_MS).await;
    let second = fetch_at(&scene, "2", "b.md", NOW_MS + 1_000).await;
    let third = fetch_at(&scene, "3", "c.md", NOW_MS + 5_000).await;
    // A clock that was ahead wrote this one.
    let fourth = fetch_at(&scene, "4", "d.md", NOW_MS + 900_000_000).await;
    let evict = |bytes| {
        let (kept_since_ms, now_ms) = (NOW_MS + 2_000, NOW_MS + 10_000);
        scene.store.evict_contents(bytes, kept_since_ms, now_ms)
    };
    let is_evicted = async |turn| {
        let file = scene.store.files_of(vec![turn]).await.unwrap().remove(0);
        (file.state == FileState::Evicted, file.content.is_none())
    };
    assert_eq!(evict(1).await.unwrap(), 400);
    assert_eq!(is_evicted(fourth).await, (true, true));
    assert_eq!(is_evicted(first).await, (false, false));
    assert_eq!(evict(401).await.unwrap(), 800);
    for turn in [first, second] {
        assert_eq!(is_evicted(turn).await, (true, true));
    }
    // What is left was fetched lately.
    assert_eq!(evict(1).await.unwrap(), 0);
    assert_eq!(is_evicted(third).await, (false, false));
    assert_eq!(scene.store.remove_dropped().await.unwrap(), 3);
    assert_eq!(scene.stored().len(), 1);
}

fn item(id: &'static str, text: &'static str) -> Said {
    Said {
        album: Some("A"),
        file: Some(id),
        ..said(id, text)
    }
}

#[tokio::test]
async fn a_deleted_item_takes_its_own_file_along_and_an_edit_knows_its_own_after_that() {
    let scene = Shelf::open().await;
    for id in ["1", "2", "3"] {
        scene.hear(item(id, id)).await;
    }
    let files = || async {
        let turn = scene.only_turn().await;
        let named = turn.attachments.iter().map(|it| it.name.clone().unwrap());
        let mut due: Vec<String> = due(&scene)
            .await
            .into_iter()
            .map(|file| file.platform_id)
            .collect();
        due.sort_unstable();
        (turn.content, named.collect::<Vec<_>>(), due)
    };
    let expected = |text: &str, names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let ids = names.iter().map(|name| format!("file-{name}")).collect();
        (text.to_owned(), names, ids)
    };
    let deleted = scene.store.capture_delete(scene.account, "C1", "2", NOW_MS);
    deleted.await.unwrap();
    assert_eq!(files().await, expected("1\n3", &["1", "3"]));
    let edited = Said {
        edit_marker: Some("9"),
        file: Some("4"),
        ..item("3", "three")
    };
    scene.hear(edited).await;
    assert_eq!(files().await, expected("1\nthree", &["1", "4"]));
}
