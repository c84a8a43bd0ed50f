//! The fence: which module may use which. Reads the `use` lines and paths of the source.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use vocative_contract::identity::Platform;
use vocative_core::command::CommandName;

/// A module of the daemon uses only those before it; `delivery` stands before `agent` because
/// an agent asks delivery's table of rooms who can be answered.
const LAYERS: [&str; 23] = [
    "counters",
    "confining",
    "llm",
    "embeddings",
    "tools",
    "hooks",
    "knowledge",
    "skills",
    "config",
    "capture",
    "catchup",
    "transcripts",
    "delivery",
    "files",
    "agent",
    "summary",
    "learning",
    "retention",
    "jobs",
    "admin",
    "http",
    "daemon",
    "cli",
];

/// The files of the store that know SQLite, and the laboratory's yardstick; the others speak to `store::sql`.
const ENGINE: [&str; 4] = [
    "lab/src/recall/yardsticks.rs",
    "store/src/engine",
    "store/src/acts/erasure/files.rs",
    "store/src/acts/erasure/work.rs",
];

/// What holds or opens the handle that posts.
const POSTERS: [&str; 4] = ["channels", "src/delivery", "src/daemon", "src/cli/live"];

/// A word, and the only places where it may stand.
const FENCES: [(&str, &[&str]); 5] = [
    ("rmcp::", &["src/tools/mcp"]),
    ("rusqlite", &ENGINE),
    ("tokio_tungstenite", &["channels/src/slack"]),
    ("Poster", &POSTERS),
    (".poster", &POSTERS),
];

/// Rooms that may name a platform: its settings, and what makes its adapter of them. A transcript is captured as if it
/// were one's.
const NAMES_PLATFORMS: [&str; 3] = [
    "src/config/platforms",
    "src/daemon/wiring.rs",
    "src/transcripts/transcript.rs",
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// All Rust files below a folder: path relative to the root, and text without comments and tests.
fn sources(folder: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") && !is_test(&path)
            {
                let name = path.strip_prefix(root()).unwrap().display().to_string();
                found.push((name, code_of(&path)));
            }
        }
    }
    assert!(!found.is_empty(), "{folder} has no source");
    found
}

fn is_test(path: &Path) -> bool {
    let name = path
        .file_stem()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    ["testing", "tests", "test_support"].contains(&name)
        || path.ends_with("store/src/scene.rs")
        || path.components().any(|part| part.as_os_str() == "tests")
}

/// The text up to the tests, without comment lines.
fn code_of(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let code = text.split("\nmod tests {").next().unwrap_or_default();
    let lines = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

fn layer_of(file: &str) -> Option<usize> {
    let rest = file.strip_prefix("src/")?;
    let room = rest.split(['/', '.']).next()?;
    LAYERS.iter().position(|layer| *layer == room)
}

/// Back-pressure ends where a queue does.
#[test]
fn no_queue_is_without_a_bound() {
    for folder in ["src", "core/src", "store/src", "channels/src"] {
        for (file, code) in sources(folder) {
            for word in [
                "unbounded_channel",
                "UnboundedSender",
                "sync::mpsc::channel()",
            ] {
                assert!(
                    !code.contains(word),
                    "{file} uses {word}: give the queue a bound"
                );
            }
        }
    }
}

#[test]
fn a_module_uses_only_modules_before_it() {
    let mut wrong = Vec::new();
    for (file, code) in sources("src") {
        let Some(own) = layer_of(&file) else { continue };
        for layer in &LAYERS[own + 1..] {
            if code.contains(&format!("crate::{layer}::")) {
                wrong.push(format!(
                    "{file} uses {layer}, which comes after {}",
                    LAYERS[own]
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_module_is_in_the_order() {
    let unknown: Vec<String> = sources("src")
        .into_iter()
        .map(|(file, _)| file)
        .filter(|file| layer_of(file).is_none() && file != "src/lib.rs" && file != "src/main.rs")
        .collect();
    assert!(
        unknown.is_empty(),
        "modules without a place in the order: {unknown:?}"
    );
}

#[test]
fn libraries_stay_in_their_modules() {
    let mut wrong = Vec::new();
    for (file, code) in ["src", "core/src", "store/src", "channels/src"]
        .into_iter()
        .flat_map(sources)
    {
        for (word, places) in FENCES {
            if code.contains(word) && !places.iter().any(|place| file.starts_with(place)) {
                wrong.push(format!("{file} names {word}; it belongs in {places:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Where the whole store may be held, and others be handed a part of it.
const HOLDS_ALL: [&str; 6] = [
    "src/daemon",
    "src/admin",
    "src/cli",
    "src/transcripts",
    "src/capture/import.rs",
    // Its own settings of the store.
    "src/config",
];

/// A module writes what its type of `Store` says; what the compiler then refuses is shown in `store/src/capability.rs`.
#[test]
fn a_worker_holds_only_its_part_of_the_store() {
    let mut wrong = Vec::new();
    for (file, code) in sources("src") {
        let is_whole = [
            "store: Store,",
            "store: &Store,",
            "store: &'a Store,",
            ".only()",
        ];
        let holds = is_whole.iter().find(|word| code.contains(**word));
        if let Some(word) = holds
            && !HOLDS_ALL.iter().any(|place| file.starts_with(place))
        {
            wrong.push(format!("{file}: {word}"));
        }
    }
    assert_eq!(wrong, [""; 0]);
}

/// A layer of the store uses only those before it, and none is excepted. `lib.rs` stands above all: it only names what
/// others may use.
const STORE_LAYERS: [&str; 11] = [
    "new_id",
    "contract",
    "registry",
    "engine",
    "capability",
    "handle",
    "rows",
    "views",
    "acts",
    "opening",
    "fuzzing",
];

fn store_layer(name: &str) -> Option<usize> {
    STORE_LAYERS.iter().position(|layer| *layer == name)
}

/// The layer of a file of the store; `None` = `lib.rs`, or a file without a place in the order.
fn store_layer_of(file: &str) -> Option<usize> {
    let path = file.strip_prefix("store/src/")?;
    store_layer(path.split(['/', '.']).next()?)
}

#[test]
fn a_layer_of_the_store_uses_only_those_before_it() {
    let uses = Uses::of("store/src");
    assert!(
        uses.edges.len() > 150,
        "{} files use another",
        uses.edges.len()
    );
    let mut wrong = Vec::new();
    for (file, others) in &uses.edges {
        let own = store_layer_of(file);
        if own.is_none() && file != "store/src/lib.rs" {
            wrong.push(format!("{file} has no place in the order"));
        }
        let later = others.iter().filter(|other| store_layer_of(other) > own);
        wrong.extend(
            later
                .filter(|_| own.is_some())
                .map(|other| format!("{file} uses {other}")),
        );
    }
    assert_eq!(wrong, [""; 0]);
}

/// Methods of the handles are paths that no `use` names.
#[test]
fn a_layer_of_the_store_calls_no_method_of_a_later_one() {
    let mut defined: Vec<(String, usize)> = Vec::new();
    let all = sources("store/src");
    for (file, code) in &all {
        let Some(layer) = store_layer_of(file) else {
            continue;
        };
        for block in code.split("\nimpl").skip(1) {
            let head = block.lines().next().unwrap_or_default();
            if !head.contains(" Reader {") && !head.contains(" Store") {
                continue;
            }
            let body = block.split("\n}").next().unwrap_or_default();
            let names = body.split("fn ").skip(1);
            let names = names.filter_map(|rest| rest.split(['(', '<']).next());
            defined.extend(names.map(|name| (name.to_owned(), layer)));
        }
    }
    assert!(defined.iter().any(|(name, _)| name == "write_and_clean"));
    let mut wrong = Vec::new();
    for (file, code) in &all {
        let own = store_layer_of(file).filter(|own| Some(*own) > store_layer("handle"));
        let Some(own) = own else { continue };
        for call in code.split("self.").skip(1) {
            let name = call.split(['(', ':']).next().unwrap_or_default();
            let mut layers = defined.iter().filter(|(known, _)| known == name);
            if layers.clone().count() > 0 && layers.all(|(_, layer)| *layer > own) {
                wrong.push(format!("{file} calls {name}"));
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
}

/// What ends a run takes back what shows of it; so one module does.
#[test]
fn one_module_ends_runs() {
    let ended = [
        "'done'",
        "'failed'",
        "'cancelled'",
        "'superseded'",
        "'dead'",
        "state = ?",
    ];
    let mut wrong = Vec::new();
    for (file, code) in sources("store/src") {
        let statements = code.split("UPDATE runs").skip(1);
        let sets = statements.filter_map(|rest| rest.split(['"', ';']).next());
        let sets = sets.map(|statement| statement.split("WHERE").next().unwrap_or_default());
        for set in sets.filter(|set| ended.iter().any(|state| set.contains(state))) {
            wrong.push(format!("{file}: UPDATE runs{set}"));
        }
    }
    assert!(!wrong.is_empty(), "nothing ends a run");
    wrong.retain(|set| !set.starts_with("store/src/acts/ending.rs"));
    assert_eq!(wrong, [""; 0]);
}

/// A column that is read by its name can't be another one when a statement changes.
#[test]
fn rows_are_read_by_column_name() {
    let reads_by_place = |code: &str| {
        code.split(".get").skip(1).any(|rest| {
            let rest = rest.strip_prefix("_ref").unwrap_or(rest);
            let rest = match rest.strip_prefix("::<") {
                Some(generic) => generic.split_once(">(").map_or("", |(_, rest)| rest),
                None => rest.strip_prefix('(').unwrap_or_default(),
            };
            let place: String = rest.chars().take_while(char::is_ascii_digit).collect();
            !place.is_empty() && rest[place.len()..].starts_with(')')
        })
    };
    let found: Vec<String> = sources("store/src")
        .into_iter()
        .filter(|(file, code)| !file.starts_with("store/src/engine") && reads_by_place(code))
        .map(|(file, _)| file)
        .collect();
    assert_eq!(found, [""; 0], "read columns by name: row.get(\"name\")");
}

/// What holds one engine holds another.
#[test]
fn the_conformance_suite_knows_no_engine() {
    let files = fs::read_dir(root().join("store/tests/conformance")).unwrap();
    let mut count = 0;
    for file in files {
        let path = file.unwrap().path();
        let code = code_of(&path);
        for word in [
            "rusqlite", "SELECT ", "UPDATE ", "INSERT ", "DELETE ", "PRAGMA ",
        ] {
            assert!(!code.contains(word), "{} has {word}", path.display());
        }
        count += 1;
    }
    assert!(count > 5);
}

#[test]
fn every_text_for_rooms_is_said() {
    let catalogue = fs::read_to_string(root().join("core/src/words/en.toml")).unwrap();
    let names = catalogue
        .lines()
        .filter_map(|line| line.split_once(" = "))
        .map(|(name, _)| name.split('.').next().unwrap_or(name));
    let code: String = ["src", "core/src", "store/src"]
        .into_iter()
        .flat_map(sources)
        .filter(|(file, _)| !file.starts_with("core/src/words/"))
        .map(|(_, code)| code)
        .collect();
    let is_said = |name: &&str| {
        let word = name.strip_prefix("command_");
        let is_of_command = word.and_then(CommandName::from_name).is_some();
        is_of_command
            || code.contains(&format!(".{name}("))
            || code.contains(&format!("Language::{name}"))
    };
    let unsaid: Vec<&str> = names.filter(|name| !is_said(name)).collect();
    assert!(unsaid.is_empty(), "nobody says {unsaid:?}");
}

/// Time is an argument of every decision, so that a table can test it and a simulation replay it.
#[test]
fn core_knows_no_clock() {
    for (file, code) in sources("core/src") {
        for word in [
            "now_v7",
            "SystemTime",
            "Instant::now",
            "Utc::now",
            "Local::now",
        ] {
            assert!(!code.contains(word), "{file} reads a clock: {word}");
        }
    }
}

/// The platforms that people are on.
fn platforms() -> impl Iterator<Item = Platform> {
    let all = Platform::ALL.iter().copied();
    all.filter(|platform| *platform != Platform::Api)
}

#[test]
fn nothing_outside_channels_decides_by_platform() {
    let words: Vec<String> = platforms()
        .flat_map(|it| ["Platform", "PlatformSettings"].map(|of| format!("{of}::{it:?}")))
        .collect();
    let mut wrong = Vec::new();
    let rooms = ["src", "core/src", "store/src"]
        .into_iter()
        .flat_map(sources);
    for (file, code) in rooms {
        let may = NAMES_PLATFORMS.iter().any(|place| file.starts_with(place));
        // `SetupPlatform` is another type.
        let names = |word: &String| code.replace("SetupPlatform", "").contains(word);
        if !may && words.iter().any(names) {
            wrong.push(file);
        }
    }
    assert!(wrong.is_empty(), "platforms are named in {wrong:?}");
}

/// What the configuration knows of a platform is in the platform's file.
#[test]
fn settings_of_a_platform_are_in_its_file() {
    let mut wrong = Vec::new();
    for (file, code) in sources("src/config") {
        let code = code.to_lowercase();
        let names = platforms().any(|platform| code.contains(platform.name()));
        if names && !file.starts_with("src/config/platforms/") {
            wrong.push(file);
        }
    }
    assert!(wrong.is_empty(), "platforms are named in {wrong:?}");
}

#[test]
fn channels_know_no_store_no_model_and_no_agent() {
    for (file, code) in sources("channels/src") {
        for word in ["vocative::", "rusqlite", "vocative_sandbox"] {
            assert!(!code.contains(word), "{file} names {word}");
        }
    }
}

#[test]
fn the_sandbox_shares_no_code_with_the_adapters() {
    for (file, code) in sources("sandbox/src") {
        assert!(
            !code.contains("vocative_channels"),
            "{file} uses the adapters' crate"
        );
    }
}

// Words.

/// Where types are declared.
const DECLARE: [&str; 9] = [
    "benches", "channels", "clients", "console", "core", "lab", "sandbox", "src", "store",
];

/// The type that a line declares. A `type` that is indented belongs to a trait, or to an implementation of one.
fn declared(line: &str) -> Option<&str> {
    let is_indented = line.starts_with(' ');
    let line = line.trim_start();
    let line = match line.strip_prefix("pub(") {
        Some(rest) => rest.split_once(") ")?.1,
        None => line.strip_prefix("pub ").unwrap_or(line),
    };
    let (keyword, rest) = line.split_once(' ')?;
    let is_type = ["struct", "enum", "trait", "union"].contains(&keyword)
        || (keyword == "type" && !is_indented);
    let name = rest
        .split(|letter: char| !letter.is_alphanumeric())
        .next()?;
    (is_type && name.starts_with(|letter: char| letter.is_ascii_uppercase())).then_some(name)
}

/// The names that the glossary lets several types have, each with a reason.
fn shared_names(glossary: &str) -> BTreeSet<&str> {
    let (_, section) = glossary
        .split_once("\n## Words with several types\n")
        .unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.filter_map(|row| row.split('|').nth(1));
    cells
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .collect()
}

/// A reader who knows a word knows its type, whatever the file.
#[test]
fn a_word_has_one_type() {
    let glossary = fs::read_to_string(root().join("docs/GLOSSARY.md")).unwrap();
    let shared = shared_names(&glossary);
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (file, code) in DECLARE.into_iter().flat_map(sources) {
        for name in code.lines().filter_map(declared) {
            places
                .entry(name.to_owned())
                .or_default()
                .push(file.clone());
        }
    }
    assert!(places.len() > 1_500, "{} types", places.len());
    places.retain(|_, files| files.len() > 1);
    let several: BTreeSet<&str> = places.keys().map(String::as_str).collect();
    let stale: Vec<&&str> = shared.difference(&several).collect();
    assert!(
        stale.is_empty(),
        "one type each, so not for docs/GLOSSARY.md: {stale:?}"
    );
    places.retain(|name, _| !shared.contains(name.as_str()));
    assert!(
        places.is_empty(),
        "say in the name what it is (docs/GLOSSARY.md, \"Words with several types\"): {places:#?}"
    );
}

// Circles of files.

/// Rooms whose files use each other in one direction only. Elsewhere the files of one noun may form a circle.
const ONE_WAY: [&str; 1] = ["src/agent"];

/// Which file of a crate uses which.
struct Uses {
    /// The file of each module.
    files: BTreeMap<Vec<String>, String>,
    /// What a module calls by a name, because its `use` lines say so.
    names: BTreeMap<(Vec<String>, String), Vec<String>>,
    /// The files that each file uses.
    edges: BTreeMap<String, BTreeSet<String>>,
}

impl Uses {
    fn of(folder: &str) -> Self {
        let sources = sources(folder);
        let module = |file: &str| -> Vec<String> {
            let path = file.trim_start_matches(folder).trim_end_matches(".rs");
            let parts = path
                .split('/')
                .filter(|it| !["", "mod", "lib"].contains(it));
            parts.map(str::to_owned).collect()
        };
        let files = sources.iter().map(|(file, _)| (module(file), file.clone()));
        let mut uses = Self {
            files: files.collect(),
            names: BTreeMap::new(),
            edges: BTreeMap::new(),
        };
        let mut used = Vec::new();
        for (file, code) in &sources {
            let (own, (trees, rest)) = (module(file), use_trees(code));
            for path in trees.iter().flat_map(|tree| expanded(tree)) {
                let (path, alias) = path.split_once(" as ").unwrap_or((&path, ""));
                let path = path.trim_end_matches("::self");
                let called = match alias {
                    "" => path.rsplit("::").next().unwrap_or_default(),
                    alias => alias,
                };
                if let Some(whole) = uses.whole(path, &own) {
                    let name = (own.clone(), called.to_owned());
                    uses.names.insert(name, whole.clone());
                    used.push((file, whole));
                }
            }
            let inline = paths_in(&rest);
            let inline = inline.filter_map(|path| uses.whole(path, &own));
            used.extend(inline.map(|whole| (file, whole)));
        }
        for (file, path) in used {
            if let Some(other) = uses.file_of(&path, 0).filter(|other| other != file) {
                uses.edges.entry(file.clone()).or_default().insert(other);
            }
        }
        uses
    }

    /// A path from the root of the crate, if it is one of the crate.
    fn whole(&self, path: &str, own: &[String]) -> Option<Vec<String>> {
        let mut at = own.to_vec();
        let mut parts = path.split("::").peekable();
        match *parts.peek()? {
            "crate" => at.clear(),
            "self" | "super" => {}
            child => {
                at.push(child.to_owned());
                self.files.get(&at)?;
                at.pop();
            }
        }
        for part in parts {
            match part {
                "crate" | "self" | "*" => {}
                "super" => drop(at.pop()),
                part => at.push(part.to_owned()),
            }
        }
        Some(at)
    }

    /// The file that a path leads to, behind the names by which other modules hand it on.
    fn file_of(&self, path: &[String], depth: usize) -> Option<String> {
        let is_module = |count: &usize| self.files.contains_key(&path[..*count]);
        let count = (0..=path.len()).take_while(is_module).last()?;
        let (module, rest) = path.split_at(count);
        let handed_on = rest.first().filter(|_| depth < 8).and_then(|name| {
            let whole = self.names.get(&(module.to_vec(), name.clone()))?;
            self.file_of(&[whole, &rest[1..]].concat(), depth + 1)
        });
        handed_on.or_else(|| self.files.get(module).cloned())
    }

    /// How a file leads to another one, if it does.
    fn way(&self, from: &str, to: &str) -> Option<Vec<String>> {
        let mut ways = vec![vec![from.to_owned()]];
        let mut seen = BTreeSet::from([from.to_owned()]);
        while !ways.is_empty() {
            let mut longer = Vec::new();
            for way in ways {
                if way.last().is_some_and(|last| last == to) {
                    return Some(way);
                }
                let next = way.last().and_then(|last| self.edges.get(last));
                for file in next.into_iter().flatten() {
                    if seen.insert(file.clone()) {
                        longer.push([&way[..], std::slice::from_ref(file)].concat());
                    }
                }
            }
            ways = longer;
        }
        None
    }
}

/// The trees of the `use` lines, and the code without them.
fn use_trees(code: &str) -> (Vec<String>, String) {
    let (mut trees, mut rest) = (Vec::new(), String::new());
    for statement in code.split_inclusive(';') {
        let begin = ["use ", "pub use ", "pub(super) use ", "pub(crate) use "]
            .iter()
            .find_map(|word| Some((statement.rfind(&format!("\n{word}"))?, word.len() + 1)));
        let begin = begin.or_else(|| statement.starts_with("use ").then_some((0, 4)));
        match begin {
            Some((at, length)) => {
                rest.push_str(&statement[..at]);
                trees.push(statement[at + length..].trim_end_matches(';').to_owned());
            }
            None => rest.push_str(statement),
        }
    }
    (trees, rest)
}

/// The paths of a `use` line: `a::{b, c::{d, e}}` has three.
fn expanded(tree: &str) -> Vec<String> {
    let Some((head, inner)) = tree.split_once('{') else {
        return vec![tree.trim().to_owned()];
    };
    let inner = inner.trim_end().trim_end_matches(',').trim_end();
    let inner = inner.strip_suffix('}').unwrap_or(inner);
    let (mut parts, mut depth) = (vec![String::new()], 0);
    for letter in inner.chars() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        match (letter, depth) {
            (',', 0) => parts.push(String::new()),
            _ => parts.last_mut().unwrap().push(letter),
        }
    }
    let parts = parts.iter().filter(|part| !part.trim().is_empty());
    let paths = parts.flat_map(|part| expanded(part));
    paths.map(|path| format!("{}{path}", head.trim())).collect()
}

/// The paths in code that begin with `crate` or `super`.
fn paths_in(code: &str) -> impl Iterator<Item = &str> {
    let words = code.split(|letter: char| !letter.is_alphanumeric() && !"_:".contains(letter));
    let words = words.filter(|word| word.starts_with("crate::") || word.starts_with("super::"));
    words.map(|word| word.trim_end_matches(':'))
}

/// What a file is about: the module at the root of its crate, in the store the one below its layer.
fn noun(file: &str) -> Vec<&str> {
    let (parts, path) = match file.strip_prefix("store/src/") {
        Some(path) if !path.starts_with("registry") => (2, path),
        Some(path) => (1, path),
        None => (
            1,
            file.trim_start_matches("core/").trim_start_matches("src/"),
        ),
    };
    path.split(['/', '.']).take(parts).collect()
}

/// What a circle of files holds can only be understood, moved and tested together.
#[test]
fn no_circle_of_files_leaves_its_noun() {
    let mut circles = Vec::new();
    for folder in ["core/src", "src", "store/src"] {
        let uses = Uses::of(folder);
        assert!(uses.edges.len() > 50, "the files of {folder} use nothing");
        for (file, others) in &uses.edges {
            let is_one_way = ONE_WAY.iter().any(|room| file.starts_with(room));
            let may_return = |other: &&String| !is_one_way && noun(file) == noun(other);
            for other in others.iter().filter(|other| !may_return(other)) {
                if let Some(way) = uses.way(other, file) {
                    circles.push(format!("{file} -> {}", way.join(" -> ")));
                }
            }
        }
    }
    assert!(circles.is_empty(), "circles:\n{}", circles.join("\n"));
}
