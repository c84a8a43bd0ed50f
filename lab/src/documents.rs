//! Reading a folder of documents: what it takes, what it weighs, and what a changed file costs.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use vocative::cli::CliError;
use vocative::knowledge::{
    Collection, CollectionSettings, FILE_BYTES_MAX_DEFAULT, KnowledgeKeeper, REFRESH_MS_DEFAULT,
};
use vocative_store::contract::KnowledgeQuery;
use vocative_store::{Store, StoreError, StoreOptions};

use crate::args::DocumentsArgs;
use crate::dice::SeededDice;
use crate::print;

/// The time at which documents are written: 2026-01-05, 08:00 UTC. Long past for the files, so that their time stamps
/// are trusted.
const NOW_MS: i64 = 1_767_600_000_000;
/// How many different words the documents have.
const WORDS: u64 = 20_000;
/// Words of a section.
const SECTION_WORDS: usize = 60;
/// Searches that are timed.
const SEARCHES: usize = 200;
/// Files of one folder.
const FOLDER_FILES: u32 = 100;

/// Generates documents, reads them, changes some, searches, and prints the times.
///
/// # Errors
/// The store refuses, or files can't be written.
pub(crate) fn run(args: &DocumentsArgs) -> Result<ExitCode, CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let told = runtime.block_on(measured(args))?;
    print(&told)?;
    Ok(ExitCode::SUCCESS)
}

async fn measured(args: &DocumentsArgs) -> Result<String, CliError> {
    let home = tempfile::tempdir()?;
    let folder = home.path().join("documents");
    let mut dice = SeededDice::of(args.seed, "documents");
    let mut bytes = 0;
    for number in 0..args.documents {
        bytes += write(&folder, number, &document(number, args.sections, &mut dice))?;
    }
    let database = home.path().join("vocative.db");
    let options = StoreOptions {
        path: Some(database.clone()),
        readers: 2,
        page_cache_kib: 8_192,
    };
    let (store, _) = Store::open(&options, NOW_MS).map_err(|cause| refused(&cause))?;
    let empty = size(&database);
    let keeper = keeper(&store, &folder, args.documents as usize);
    let first = timed(&keeper).await?;
    let again = timed(&keeper).await?;
    write(
        &folder,
        7,
        &document(args.documents, args.sections, &mut dice),
    )?;
    let changed = timed(&keeper).await?;
    fs::remove_file(path_of(&folder, 8))?;
    let gone = timed(&keeper).await?;
    let mut searches = Vec::with_capacity(SEARCHES);
    for _ in 0..SEARCHES {
        searches.push(search(&store, &mut dice).await?);
    }
    searches.sort_unstable();
    let status = store
        .status(NOW_MS)
        .await
        .map_err(|cause| refused(&cause))?;
    let collection = &status.knowledge[0];
    let per_second = f64::from(args.documents) / first.as_secs_f64();
    let mut out = String::new();
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let ms = |it: Duration| it.as_secs_f64() * 1e3;
    let _ = writeln!(
        out,
        "documents          {} ({:.1} MiB), {} pieces; {} were expected to be left\n\
         first reading      {:.1} s, {per_second:.0} documents a second\n\
         database           {:.1} MiB, {:.2} times the files\n\
         nothing changed    {:.0} ms\n\
         one file changed   {:.0} ms in all, {:.0} ms more than none\n\
         one file gone      {:.0} ms in all\n\
         a search           {:.1} ms, 95 % within {:.1} ms ({SEARCHES} of three words)",
        collection.documents,
        mib(bytes),
        collection.chunks,
        args.documents - 1,
        first.as_secs_f64(),
        mib(size(&database) - empty),
        mib(size(&database) - empty) / mib(bytes),
        ms(again),
        ms(changed),
        ms(changed.saturating_sub(again)),
        ms(gone),
        ms(searches[SEARCHES / 2]),
        ms(searches[SEARCHES * 95 / 100]),
    );
    Ok(out)
}

fn keeper(store: &Store, folder: &Path, files: usize) -> KnowledgeKeeper {
    KnowledgeKeeper {
        store: store.only(),
        collections: vec![Collection {
            settings: CollectionSettings {
                name: "drawn".to_owned(),
                paths: vec![folder.to_owned()],
                chats: None,
                refresh_ms: REFRESH_MS_DEFAULT,
                files_max: files,
                file_bytes_max: FILE_BYTES_MAX_DEFAULT,
                pdf: None,
            },
            pdf: None,
        }],
        clock: Arc::new(|| NOW_MS),
    }
}

async fn timed(keeper: &KnowledgeKeeper) -> Result<Duration, CliError> {
    let started = Instant::now();
    keeper
        .read_through()
        .await
        .map_err(|cause| refused(&cause))?;
    Ok(started.elapsed())
}

async fn search(store: &Store, dice: &mut SeededDice) -> Result<Duration, CliError> {
    let words: Vec<String> = (0..3).map(|_| word(dice)).collect();
    let query = KnowledgeQuery {
        collections: vec!["drawn".to_owned()],
        queries: vec![words.join(" ")],
        limit: 5,
        token_cap: 2_000,
        text_max_chars: 1_200,
    };
    let started = Instant::now();
    let found = store.search_knowledge(query).await;
    found.map_err(|cause| refused(&cause))?;
    Ok(started.elapsed())
}

fn path_of(folder: &Path, number: u32) -> std::path::PathBuf {
    let (sub, name) = (number / FOLDER_FILES, number % FOLDER_FILES);
    folder.join(format!("{sub:04}/{name:03}.md"))
}

fn write(folder: &Path, number: u32, text: &str) -> Result<u64, CliError> {
    let path = path_of(folder, number);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)?;
    Ok(text.len() as u64)
}

fn document(number: u32, sections: u32, dice: &mut SeededDice) -> String {
    let mut text = format!("# Document {number}\n\n");
    for _ in 0..sections {
        let _ = writeln!(text, "## {} {}\n", word(dice), word(dice));
        for place in 1..=SECTION_WORDS {
            text.push_str(&word(dice));
            text.push_str(if place % 12 == 0 { ".\n" } else { " " });
        }
        text.push('\n');
    }
    text
}

/// A random word, some far more often than others.
fn word(dice: &mut SeededDice) -> String {
    const SYLLABLES: [&str; 20] = [
        "ba", "de", "fi", "go", "hu", "ka", "le", "mi", "no", "pu", "ra", "se", "ti", "vo", "wu",
        "xa", "ye", "zi", "cho", "sha",
    ];
    let many = dice.below(WORDS) + 1;
    let mut rank = dice.below(many);
    let mut word = String::new();
    while rank > 0 || word.len() < 4 {
        word.push_str(SYLLABLES[usize::try_from(rank % 20).unwrap_or(0)]);
        rank /= 20;
    }
    word
}

fn size(database: &Path) -> u64 {
    let with = |ending: &str| {
        let mut name = database.as_os_str().to_owned();
        name.push(ending);
        fs::metadata(name).map_or(0, |file| file.len())
    };
    with("") + with("-wal")
}

fn refused(cause: &StoreError) -> CliError {
    CliError::Failed {
        what: cause.to_string(),
        advice: None,
        cause: None,
    }
}
