//! The loop that keeps collections in step with their folders.
//!
//! A file is read when its stamp has changed, and its document replaced when its hash has. Each replacement is a
//! transaction of its own, so that a kill between two of them loses nothing: the next walk finds the rest. If a
//! folder is missing, or replaced by another, empty one (a disk that is not mounted), the known documents stay; if a
//! file is missing, its document is removed.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::task::spawn_blocking;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};
use vocative_store::contract::{CollectionReading, KnownDocument, OpenCollection};
use vocative_store::{Indexing, Store, StoreError};

use super::Collection;
use super::reading::{CandidateFile, Looked, look};
use super::walk::{FolderWalk, FoundFile, identity, stamp};

/// How often the loop checks whether a collection is due.
const POLL: Duration = Duration::from_millis(1_000);
/// The wait after the store refused something.
const STORE_WAIT: Duration = Duration::from_secs(5);
/// The most files that are read in parallel.
const AT_ONCE: usize = 4;
/// The most known files that are requested from the store at once.
const KNOWN_AT_ONCE: usize = 2_000;
/// The most problems of a reading that are reported, and their length in characters.
const PROBLEMS_MAX: usize = 20;
const PROBLEM_MAX_CHARS: usize = 300;

/// Keeps collections in step with their folders.
pub struct KnowledgeKeeper {
    /// The store with the collections.
    pub store: Store<Indexing>,
    /// The configured collections.
    pub collections: Vec<Collection>,
    /// The time.
    pub clock: Arc<dyn Fn() -> i64 + Send + Sync>,
}

/// The problems of a reading: the first 20 are reported, the others counted.
#[derive(Debug, Default)]
pub struct Problems {
    told: Vec<String>,
    more: usize,
}

impl Problems {
    fn add(&mut self, what: &str) {
        match self.told.len() < PROBLEMS_MAX {
            true => self
                .told
                .push(what.chars().take(PROBLEM_MAX_CHARS).collect()),
            false => self.more += 1,
        }
    }

    fn told(mut self) -> Vec<String> {
        if self.more > 0 {
            self.told.push(format!("and {} more", self.more));
        }
        self.told
    }
}

/// The known documents, by the configured path and the path below it.
type KnownDocuments = HashMap<(String, String), KnownDocument>;

/// The state of a configured path.
enum Root {
    /// It can't be read; the text says why.
    Lost(String),
    File(fs::Metadata),
    Folder(FolderWalk, String),
}

/// One reading of a collection.
struct CollectionPass<'a> {
    keeper: &'a KnowledgeKeeper,
    collection: &'a Arc<Collection>,
    row: i64,
    known: KnownDocuments,
    is_anew: bool,
    /// The number of files that exist, known or not.
    files: usize,
    left_out: usize,
    changed: usize,
    problems: Problems,
}

impl KnowledgeKeeper {
    /// Works until `stop`. Work in progress is then dropped: each replacement is a transaction of its own.
    pub async fn run(self, stop: CancellationToken) {
        let collections = self.collections.iter().cloned();
        let collections: Vec<Arc<Collection>> = collections.map(Arc::new).collect();
        let mut due: BTreeMap<String, Instant> = BTreeMap::new();
        let mut is_configured = false;
        loop {
            let turn = async {
                match self.turn(&collections, &mut due, &mut is_configured).await {
                    Ok(()) => POLL,
                    Err(cause) => {
                        warn!(error = %cause, "documents could not be kept; trying again");
                        STORE_WAIT
                    }
                }
            };
            let pause = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                pause = turn => pause,
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Reads every collection completely, once.
    ///
    /// # Errors
    /// Storage refuses.
    pub async fn read_through(&self) -> Result<(), StoreError> {
        let collections = self.collections.iter().cloned();
        let collections: Vec<Arc<Collection>> = collections.map(Arc::new).collect();
        self.turn(&collections, &mut BTreeMap::new(), &mut false)
            .await
    }

    /// Reads the collections that are due.
    async fn turn(
        &self,
        collections: &[Arc<Collection>],
        due: &mut BTreeMap<String, Instant>,
        is_configured: &mut bool,
    ) -> Result<(), StoreError> {
        let names: Vec<String> = collections
            .iter()
            .map(|it| it.settings.name.clone())
            .collect();
        let is_in_use = !names.is_empty() || !self.store.open_collections().await?.is_empty();
        if !*is_configured && is_in_use {
            self.store.configure_collections(names.clone()).await?;
            while self.store.forget_unconfigured(names.clone()).await? {}
        }
        *is_configured = true;
        if names.is_empty() {
            return Ok(());
        }
        for open in self.store.open_collections().await? {
            let collection = collections.iter().find(|it| it.settings.name == open.name);
            let Some(collection) = collection else {
                continue;
            };
            let is_due = due.get(&open.name).is_none_or(|at| *at <= Instant::now());
            if is_due || open.asked_at_ms.is_some() {
                self.read(collection, &open).await?;
                let wait = Duration::from_millis(collection.settings.refresh_ms);
                due.insert(open.name.clone(), Instant::now() + wait);
            }
        }
        Ok(())
    }

    async fn read(
        &self,
        collection: &Arc<Collection>,
        open: &OpenCollection,
    ) -> Result<(), StoreError> {
        let mut reading = CollectionPass {
            keeper: self,
            collection,
            row: open.id,
            known: self.known(open.id).await?,
            is_anew: open.asked_at_ms.is_some(),
            files: 0,
            left_out: 0,
            changed: 0,
            problems: Problems::default(),
        };
        let mut roots: BTreeMap<String, String> =
            serde_json::from_str(&open.roots).unwrap_or_default();
        let configured: Vec<PathBuf> = collection.settings.paths.clone();
        for path in &configured {
            reading.root(path, &mut roots).await?;
        }
        let is_configured =
            |root: &str| configured.iter().any(|it| it.display().to_string() == root);
        roots.retain(|root, _| is_configured(root));
        let others = reading
            .known
            .extract_if(|(root, _), _| !is_configured(root));
        for document in others.map(|(_, it)| it.id).collect::<Vec<_>>() {
            reading.forget(document).await?;
        }
        if reading.left_out > 0 {
            let what = format!(
                "there are {} files more than files_max ({}): nothing of them is known",
                reading.left_out, collection.settings.files_max
            );
            reading.problems.add(&what);
        }
        let problems = reading.problems.told();
        let (name, changed) = (&open.name, reading.changed);
        match changed {
            0 => debug!(knowledge.collection = name, "documents are as they were"),
            _ => info!(
                knowledge.collection = name,
                changed,
                problems = problems.len(),
                "documents were read"
            ),
        }
        self.store
            .note_reading(CollectionReading {
                collection: open.id,
                roots: serde_json::to_string(&roots).expect("strings are JSON"),
                problems,
                answers: open.asked_at_ms,
                now_ms: (self.clock)(),
            })
            .await
    }

    async fn known(&self, collection: i64) -> Result<KnownDocuments, StoreError> {
        let (mut known, mut after) = (KnownDocuments::new(), 0);
        loop {
            let some = self
                .store
                .known_documents(collection, after, KNOWN_AT_ONCE)
                .await?;
            let Some(last) = some.last() else {
                return Ok(known);
            };
            after = last.id;
            known.extend(
                some.into_iter()
                    .map(|it| ((it.root.clone(), it.path.clone()), it)),
            );
        }
    }
}

impl CollectionPass<'_> {
    /// Reads a configured path.
    async fn root(
        &mut self,
        path: &Path,
        roots: &mut BTreeMap<String, String>,
    ) -> Result<(), StoreError> {
        let name = path.display().to_string();
        let before = self.files;
        let opened = spawn_blocking({
            let path = path.to_owned();
            move || open_root(&path)
        });
        let opened = opened
            .await
            .unwrap_or_else(|_| Root::Lost("looking at it panicked".to_owned()));
        let now = match opened {
            Root::Lost(why) => {
                self.lose(&name, &why);
                return Ok(());
            }
            Root::File(file) => {
                let format = self.collection.format_of(path);
                if format.is_none() {
                    self.problems
                        .add(&format!("{name} is no file that documents are read from"));
                }
                let below = path.file_name().map(PathBuf::from).unwrap_or_default();
                let found = FoundFile {
                    path: below,
                    file: Ok(file),
                };
                let found = format.map(|_| found);
                self.files_of(path, found.into_iter().collect(), true)
                    .await?;
                String::new()
            }
            Root::Folder(walk, identity) => {
                self.folder(path, walk).await?;
                identity
            }
        };
        let is_empty = self.files == before;
        let is_another = roots.get(&name).is_some_and(|it| *it != now);
        let has_known = self.known.keys().any(|(root, _)| *root == name);
        if is_empty && is_another && has_known {
            self.lose(&name, "another folder is in its place, and it is empty");
            return Ok(());
        }
        roots.insert(name.clone(), now);
        self.forget_missing(path, &name).await
    }

    /// Reports a missing path; its known documents are kept.
    fn lose(&mut self, name: &str, why: &str) {
        let kept = self.known.extract_if(|(root, _), _| root == name).count();
        self.files += kept;
        self.problems.add(&format!(
            "{name}: {why}; what was known of it is kept ({kept} files)"
        ));
    }

    async fn folder(&mut self, root: &Path, walk: FolderWalk) -> Result<(), StoreError> {
        let mut walk = Some(walk);
        while let Some(mut going) = walk.take() {
            let collection = Arc::clone(self.collection);
            let step = spawn_blocking(move || {
                let step = going.step(|path| collection.format_of(path).is_some());
                (going, step)
            });
            let Ok((mut going, step)) = step.await else {
                self.problems.add(&format!(
                    "{}: looking through it panicked, which is a bug",
                    root.display()
                ));
                return Ok(());
            };
            for problem in going.problems.drain(..) {
                self.problems.add(&problem);
            }
            self.files_of(root, step.found, false).await?;
            walk = (!step.is_over).then_some(going);
        }
        Ok(())
    }

    /// Checks files, and reads those that may have changed.
    async fn files_of(
        &mut self,
        root: &Path,
        found: Vec<FoundFile>,
        is_root: bool,
    ) -> Result<(), StoreError> {
        let name = root.display().to_string();
        let mut changed = Vec::new();
        for FoundFile { path, file } in found {
            let Some(format) = self.collection.format_of(&path) else {
                continue;
            };
            let shown = path.to_string_lossy().into_owned();
            let file = match path.to_str() {
                Some(_) => file,
                None => Err("its name is not UTF-8".to_owned()),
            };
            let known = self.known.remove(&(name.clone(), shown.clone()));
            if known.is_none() && self.files + self.unseen() >= self.collection.settings.files_max {
                self.left_out += 1;
                continue;
            }
            self.files += 1;
            let now_ms = (self.keeper.clock)();
            let stamp = match &file {
                Ok(file) => stamp(file, now_ms),
                Err(why) => why.clone(),
            };
            let is_same = known
                .as_ref()
                .is_some_and(|it| it.stamp == stamp && !stamp.is_empty());
            if !is_same || self.is_anew {
                changed.push(CandidateFile {
                    root: (name.clone(), root.to_owned()),
                    path: shown,
                    below: (!is_root).then_some(path),
                    format,
                    file,
                    stamp,
                    known,
                });
            }
        }
        while !changed.is_empty() {
            let some: Vec<CandidateFile> = changed.drain(..changed.len().min(AT_ONCE)).collect();
            self.read_all(some).await?;
        }
        Ok(())
    }

    /// The known files that this reading has not reached yet: they count towards the limit.
    fn unseen(&self) -> usize {
        self.known.len()
    }

    async fn read_all(&mut self, candidates: Vec<CandidateFile>) -> Result<(), StoreError> {
        let now_ms = (self.keeper.clock)();
        let known: Vec<(Option<i64>, String)> = candidates
            .iter()
            .map(|it| (it.known.as_ref().map(|it| it.id), it.stamp.clone()))
            .collect();
        let looking = candidates.into_iter();
        let looking = looking.map(|it| look(self.collection, self.row, it, self.is_anew, now_ms));
        let mut writing = Vec::new();
        for (looked, (id, stamp)) in join_all(looking).await.into_iter().zip(known) {
            match looked {
                Looked::Same(document) => self.keeper.store.stamp_document(document, stamp).await?,
                Looked::Read(read) => writing.push(self.keeper.store.exchange_document(*read)),
                Looked::Gone => {
                    if let Some(document) = id {
                        self.keeper.store.forget_document(document).await?;
                    }
                }
                Looked::Failed(why) => self.problems.add(&why),
            }
        }
        self.changed += writing.len();
        for written in join_all(writing).await {
            written?;
        }
        Ok(())
    }

    /// Removes known files below a path that no longer exist.
    async fn forget_missing(&mut self, root: &Path, name: &str) -> Result<(), StoreError> {
        let unseen: Vec<KnownDocument> = self
            .known
            .extract_if(|(of, _), _| of == name)
            .map(|(_, it)| it)
            .collect();
        let (collection, root) = (Arc::clone(self.collection), root.to_owned());
        let missing = spawn_blocking(move || {
            let is_missing = |it: &KnownDocument| {
                let path = Path::new(&it.path);
                let file = match root.is_dir() {
                    true => root.join(path),
                    false => root.clone(),
                };
                let is_gone = match fs::symlink_metadata(&file) {
                    Ok(_) => root.is_file() && root.file_name() != path.file_name(),
                    Err(error) => {
                        matches!(
                            error.kind(),
                            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                        )
                    }
                };
                is_gone || collection.format_of(path).is_none()
            };
            unseen
                .into_iter()
                .filter(is_missing)
                .map(|it| it.id)
                .collect::<Vec<_>>()
        });
        for document in missing.await.unwrap_or_default() {
            self.forget(document).await?;
        }
        Ok(())
    }

    async fn forget(&mut self, document: i64) -> Result<(), StoreError> {
        self.keeper.store.forget_document(document).await?;
        self.changed += 1;
        Ok(())
    }
}

fn open_root(path: &Path) -> Root {
    let lost = |error: io::Error| {
        match error.kind() {
        io::ErrorKind::NotFound => Root::Lost("it is not there".to_owned()),
        io::ErrorKind::PermissionDenied => Root::Lost(
            "the daemon may not read it (if it was made after the daemon's start, restart the daemon)".to_owned(),
        ),
        _ => Root::Lost(error.to_string()),
    }
    };
    match fs::metadata(path) {
        Err(error) => lost(error),
        Ok(about) if about.is_dir() => match FolderWalk::begin(path) {
            Ok(walk) => Root::Folder(walk, identity(&about)),
            Err(error) => lost(error),
        },
        Ok(about) if about.is_file() => Root::File(about),
        Ok(_) => Root::Lost("it is neither a folder nor an ordinary file".to_owned()),
    }
}
