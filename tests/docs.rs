//! The documentation against the program: every command that it shows is one, every setting in its
//! samples is one, and every link leads somewhere.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Parser as _;
use vocative::cli::args::Cli;
use vocative::config::{Config, Environment};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The pages for people: README and docs, without the decisions, which tell of their day.
fn pages() -> Vec<(PathBuf, String)> {
    let mut paths = vec![root().join("README.md"), root().join("sandbox/README.md")];
    let docs = std::fs::read_dir(root().join("docs")).unwrap();
    paths.extend(docs.map(|entry| entry.unwrap().path()));
    paths.retain(|path| path.extension().is_some_and(|it| it == "md"));
    paths.sort();
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap();
        (path, text)
    };
    paths.into_iter().map(read).collect()
}

/// Blocks of code with the language that they say.
fn blocks(text: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in text.lines() {
        match (&mut open, line.trim().strip_prefix("```")) {
            (None, Some(language)) => open = Some((language.to_owned(), String::new())),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some((_, code)), None) => {
                code.push_str(line);
                code.push('\n');
            }
            (None, None) => {}
        }
    }
    blocks
}

/// What stands between two backticks in one line, outside of blocks.
fn quoted(text: &str) -> Vec<String> {
    let mut is_code = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            let parts = line.split('`').skip(1).step_by(2);
            found.extend(parts.map(str::to_owned));
        }
    }
    found
}

/// The words of a shell's line, up to what is not the command's own: a comment, a pipe, a redirection.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => word.get_or_insert_default().push(c),
            None if c == '\'' || c == '"' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    let is_end = |word: &String| ["#", "|", ">", "&&", "\\", "2>"].contains(&word.as_str());
    let end = words.iter().position(is_end).unwrap_or(words.len());
    words.truncate(end);
    words
}

/// The arguments of this program in a line, if it is called there.
fn arguments(line: &str) -> Option<Vec<String>> {
    let words = words(line.trim_start().trim_start_matches("$ "));
    let at = match words.first()?.as_str() {
        "cargo" if words.get(1).is_some_and(|word| word == "run") => {
            let is_ours = !words.iter().any(|word| word == "-p");
            words
                .iter()
                .position(|word| word == "--")
                .filter(|_| is_ours)?
        }
        "vocative" => 0,
        first if first.ends_with("/vocative") => 0,
        _ => return None,
    };
    Some(words[at + 1..].to_vec())
}

#[test]
fn every_command_that_is_shown_is_one() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (path, text) in pages() {
        let code = blocks(&text)
            .into_iter()
            .filter(|(language, _)| ["sh", "console", "bash"].contains(&language.as_str()))
            .flat_map(|(_, code)| code.lines().map(str::to_owned).collect::<Vec<_>>());
        // In running text an ellipsis or another dash stands for the rest.
        let spoken = quoted(&text)
            .into_iter()
            .filter(|it| it.starts_with("vocative ") || it.starts_with("cargo run "));
        for line in code.chain(spoken) {
            let Some(arguments) = arguments(&line) else {
                continue;
            };
            count += 1;
            let name = "vocative".to_owned();
            let parsed = Cli::try_parse_from(std::iter::once(&name).chain(&arguments));
            if let Err(error) = parsed {
                // A group of commands that is spoken of prints its help.
                let is_group = error.kind()
                    == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
                    || arguments.iter().any(|argument| argument == "--help")
                    || is_spoken_of(&arguments);
                if !is_group {
                    let error = error.to_string();
                    let reason = error.lines().next().unwrap_or_default();
                    wrong.push(format!("{}: {line}\n    {reason}", path.display()));
                }
            }
        }
    }
    assert!(count > 60, "commands were found: {count}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A command named without what it needs (`vocative erase`): it is one if its help is there.
fn is_spoken_of(arguments: &[String]) -> bool {
    let is_plain = arguments.iter().all(|word| !word.starts_with('-'));
    let name = "vocative".to_owned();
    let help = "--help".to_owned();
    let asked = std::iter::once(&name)
        .chain(arguments)
        .chain(std::iter::once(&help));
    let is_help = Cli::try_parse_from(asked)
        .is_err_and(|error| error.kind() == clap::error::ErrorKind::DisplayHelp);
    is_plain && arguments.len() <= 2 && is_help
}

#[test]
fn every_setting_in_a_sample_is_one() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (path, text) in pages() {
        for (_, code) in blocks(&text)
            .into_iter()
            .filter(|(language, _)| language == "toml")
        {
            count += 1;
            let file = Path::new("sample.toml");
            let Err(error) = Config::from_text(Some((file, &code)), &Environment::default()) else {
                continue;
            };
            // A sample is a part of a configuration: what it leaves out is no mistake.
            let is_partial = |what: &str| {
                what.starts_with("is missing")
                    || what.starts_with("there is no [")
                    || what.contains("can't be read: No such file")
            };
            let problems = error
                .problems
                .iter()
                .filter(|problem| !is_partial(&problem.what));
            // Without an environment there is no place for the database.
            let problems = problems.filter(|problem| !problem.key.starts_with("daemon."));
            wrong.extend(problems.map(|problem| format!("{}: {problem}", path.display())));
        }
    }
    assert!(count > 10, "samples were found: {count}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_samples_of_several_agents_are_whole_but_for_a_model_and_a_channel() {
    let rest = "
[models.default]
provider = \"openai\"
model = \"gpt-5-mini\"
api_key = \"env:ONE\"

[channels.slack.acme]
app_token = \"env:ONE\"
bot_token = \"env:TWO\"
";
    let pairs = [("HOME", "/home/vocative"), ("ONE", "one"), ("TWO", "two")];
    let environment = Environment::from_pairs(pairs);
    for page in ["docs/NETWORKS.md", "docs/AGENTS.md"] {
        let text = std::fs::read_to_string(root().join(page)).unwrap();
        let samples = blocks(&text).into_iter();
        let samples: Vec<String> = samples
            .filter(|(language, _)| language == "toml")
            .map(|(_, code)| code + rest)
            .collect();
        assert!(!samples.is_empty(), "{page} has no sample");
        for sample in samples {
            let file = Path::new("/etc/vocative/sample.toml");
            let read = Config::from_text(Some((file, &sample)), &environment);
            let (_, warnings) = read.unwrap_or_else(|error| panic!("{page}: {error}\n{sample}"));
            let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
            assert_eq!(warnings, [""; 0], "{page}\n{sample}");
        }
    }
}

/// The anchor of a heading, as it is made on the project's page.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn anchors(path: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings.map(anchor).collect()
}

/// The decisions, and the pages beside the README.
fn further_pages() -> Vec<(PathBuf, String)> {
    let decisions = std::fs::read_dir(root().join("docs/adr")).unwrap();
    let mut paths: Vec<PathBuf> = decisions.map(|entry| entry.unwrap().path()).collect();
    for page in [
        "SECURITY.md",
        "CONTRIBUTING.md",
        "benches/README.md",
        "fuzz/README.md",
    ] {
        paths.push(root().join(page));
    }
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap();
        (path, text)
    };
    paths.into_iter().map(read).collect()
}

/// Where links in a text lead, other sites left out.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .filter(|target| !target.contains("://"))
}

/// The site (.ci/site) has the pages that the summary names, and no others.
#[test]
fn every_page_is_in_the_summary_once() {
    let docs = root().join("docs");
    let summary = std::fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let mut named: Vec<String> = targets(&summary).map(str::to_owned).collect();
    named.sort();
    let mut pages: Vec<String> = Vec::new();
    for folder in ["", "adr/"] {
        for entry in std::fs::read_dir(docs.join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".md") && name != "SUMMARY.md" {
                pages.push(format!("{folder}{name}"));
            }
        }
    }
    pages.sort();
    let inside: Vec<String> = named
        .iter()
        .filter(|target| !target.starts_with("../"))
        .cloned()
        .collect();
    assert_eq!(inside, pages);
    named.dedup();
    let count = targets(&summary).count();
    assert_eq!(named.len(), count, "a page is named twice");
}

#[test]
fn every_link_leads_somewhere() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (path, text) in pages().into_iter().chain(further_pages()) {
        for target in targets(&text) {
            count += 1;
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let there = match file {
                "" => path.clone(),
                file => path.parent().unwrap().join(file),
            };
            let is_there =
                there.exists() && (heading.is_empty() || anchors(&there).contains(heading));
            if !is_there {
                wrong.push(format!("{}: {target}", path.display()));
            }
        }
    }
    assert!(count > 20, "links were found: {count}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What a decision's page says below its title: its date, and whether it holds.
fn date_and_status(text: &str) -> Option<(&str, &str)> {
    let line = text.lines().nth(2)?;
    let said = line.strip_prefix('*')?.strip_suffix(".*")?;
    let (date, status) = said.split_once(". ")?;
    chrono::NaiveDate::parse_from_str(date, "%Y-%m-%d").ok()?;
    let is_link = |text: &str| text.starts_with('[') && text.ends_with(".md)");
    let is_one = match status.split_once(" by ") {
        None => status == "In force",
        Some((held, by)) => {
            ["In force, changed", "Replaced"].contains(&held) && by.split(" and ").all(is_link)
        }
    };
    is_one.then_some((date, status))
}

#[test]
fn every_decision_has_a_date_a_status_and_what_was_rejected() {
    let folder = root().join("docs/adr");
    let index = std::fs::read_to_string(folder.join("README.md")).unwrap();
    let mut wrong = Vec::new();
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let number = name.split('-').next().unwrap();
        if name == "README.md" {
            continue;
        }
        count += 1;
        let text = std::fs::read_to_string(folder.join(&name)).unwrap();
        let last = text.trim_end().rsplit("\n\n").next().unwrap();
        if !last.starts_with("*Rejected.* ") {
            wrong.push(format!(
                "{name}: its last paragraph is not what was rejected"
            ));
        }
        let Some((date, status)) = date_and_status(&text) else {
            wrong.push(format!("{name}: its third line is not a date and a status"));
            continue;
        };
        let row = format!(
            "| [{number}]({name}) | {date} | {} | ",
            status.to_lowercase()
        );
        if index.lines().filter(|line| line.starts_with(&row)).count() != 1 {
            wrong.push(format!("{name}: README.md has no row {row}"));
        }
    }
    assert!(count > 60, "decisions were found: {count}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `a/{b,c}.rs` is two files, and `<platform>` stands for each.
fn expanded(path: &str) -> Vec<String> {
    let several = |path: String, open: &str, close: &str| {
        let Some((before, rest)) = path.split_once(open) else {
            return vec![path];
        };
        let (inner, after) = rest.split_once(close).unwrap_or((rest, ""));
        let inner = if inner == "platform" {
            "slack,telegram"
        } else {
            inner
        };
        inner
            .split(',')
            .map(|it| format!("{before}{it}{after}"))
            .collect()
    };
    let paths = several(path.to_owned(), "{", "}");
    paths
        .into_iter()
        .flat_map(|path| several(path, "<", ">"))
        .collect()
}

/// The pages about the source, and how many files each names at least.
const SOURCE_PAGES: [(&str, usize); 5] = [
    ("ARCHITECTURE", 45),
    ("BOUNDS", 12),
    ("DECISIONS", 60),
    ("GLOSSARY", 40),
    ("PROMISES", 60),
];

/// The file or folder of that name: files of `src` and of a crate may be named without `src`.
fn found(path: &str) -> Option<PathBuf> {
    let bases = ["", "src", "channels/src"].map(|base| root().join(base).join(path));
    let in_crates = ["channels", "core", "store"]
        .map(|it| root().join(path.replacen(&format!("{it}/"), &format!("{it}/src/"), 1)));
    bases.into_iter().chain(in_crates).find(|it| it.exists())
}

/// The folders of the project: what begins with one is a path, whatever it ends with.
const FOLDERS: [&str; 7] = [
    "channels/",
    "core/",
    "fuzz/",
    "lab/",
    "src/",
    "store/",
    "tests/",
];

fn is_path(text: &str) -> bool {
    let is_file = text.ends_with(".rs") || text.ends_with(".md") || text.ends_with('/');
    let is_ours = FOLDERS.iter().any(|folder| text.starts_with(folder));
    let is_sample = text.contains("discord") || text.contains("<noun>") || text.contains(' ');
    (is_file || is_ours) && text.contains('/') && !is_sample
}

#[test]
fn every_file_that_the_architecture_names_is_there() {
    for (page, at_least) in SOURCE_PAGES {
        let text = std::fs::read_to_string(root().join(format!("docs/{page}.md"))).unwrap();
        let named = quoted(&text).into_iter().filter(|it| is_path(it));
        let paths: Vec<String> = named.flat_map(|path| expanded(&path)).collect();
        let missing: Vec<&String> = paths.iter().filter(|it| found(it).is_none()).collect();
        assert!(missing.is_empty(), "{page} names {missing:?}");
        let count = paths.len();
        assert!(count >= at_least, "{page}: {count} files were found");
    }
}

/// Where a page says "`name` in `file`", the file holds that name.
#[test]
fn every_name_that_a_page_places_is_in_its_file() {
    for (page, at_least) in [("ARCHITECTURE", 12), ("GLOSSARY", 40)] {
        let text = std::fs::read_to_string(root().join(format!("docs/{page}.md"))).unwrap();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut wrong = Vec::new();
        let mut count = 0;
        for (at, between) in text.match_indices("` in `") {
            let name = text[..at].rsplit('`').next().unwrap_or_default();
            let name = name.rsplit("::").next().unwrap_or_default();
            let after = &text[at + between.len()..];
            let path = after.split('`').next().unwrap_or_default();
            let Some(file) = found(path).filter(|_| is_path(path)) else {
                continue;
            };
            count += 1;
            let source = std::fs::read_to_string(file).unwrap();
            let mut words = source.split(|c: char| !c.is_alphanumeric() && c != '_');
            if !words.any(|word| word == name) {
                wrong.push(format!("{name} in {path}"));
            }
        }
        assert!(count >= at_least, "{page}: places were found: {count}");
        assert!(wrong.is_empty(), "{page}: {wrong:?}");
    }
}

/// What the daemon's channel needs is in the manifest that people paste.
#[test]
fn the_manifest_has_every_scope_that_is_needed() {
    let manifest = std::fs::read_to_string(root().join("config/slack-manifest.yaml")).unwrap();
    for scope in vocative_channels::slack::REQUIRED_SCOPES {
        assert!(manifest.contains(&format!("      - {scope}\n")), "{scope}");
    }
}

#[test]
fn the_page_of_evidence_is_what_the_runs_printed() {
    let page = std::fs::read_to_string(root().join("docs/EVIDENCE.md")).unwrap();
    let kept = std::fs::read_dir(root().join("evidence")).unwrap();
    let kept: Vec<PathBuf> = kept.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(page.matches("\n## ").count(), kept.len());
    for path in kept {
        let text = std::fs::read_to_string(&path).unwrap();
        let mut lines = text.splitn(4, '\n');
        let (shows, command) = (lines.next().unwrap(), lines.next().unwrap());
        let (commit, printed) = (lines.next().unwrap(), lines.next().unwrap());
        let section = format!("## {shows}\n\n{commit}\n\n```console\n{command}\n{printed}```\n");
        assert!(
            page.contains(&section),
            "docs/EVIDENCE.md lacks what {} holds; write it anew with lab/record",
            path.display()
        );
    }
}
