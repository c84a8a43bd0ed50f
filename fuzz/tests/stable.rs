//! Every target on its corpus and on 10,000 generated inputs, without a fuzzer.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use vocative_fuzz::corpus::{Corpus, folder};
use vocative_fuzz::mutate::Mutator;
use vocative_fuzz::targets::{TARGETS, Target, find};

/// Generated inputs per target.
const INPUTS: u64 = 10_000;
/// Where one costs milliseconds.
const DEAR_INPUTS: u64 = 1_000;
/// Which ones.
const SEED: u64 = 20_261_122;
/// One input takes no longer, on a busy machine and not optimised.
const SLOW: Duration = Duration::from_secs(10);

fn holds_for_everything(name: &str) {
    let target = find(name).unwrap();
    let corpus = Corpus::read(name).unwrap();
    assert!(!corpus.seeds.is_empty(), "{name} has no corpus");
    for seed in &corpus.seeds {
        hold(target, &seed.bytes, &format!("corpus/{name}/{}", seed.name));
    }
    let mut mutator = Mutator::new(SEED);
    let inputs = if target.is_dear { DEAR_INPUTS } else { INPUTS };
    for number in 0..inputs {
        hold(
            target,
            &mutator.input(&corpus),
            &format!("generated input {number}"),
        );
    }
}

/// Runs an input; keeps it where it can be taken into the corpus from if it breaks something.
fn hold(target: &Target, input: &[u8], what: &str) {
    let started = Instant::now();
    let ran = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    let took = started.elapsed();
    if ran.is_ok() && took < SLOW {
        return;
    }
    let kept = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{}", target.name));
    std::fs::write(&kept, input).unwrap();
    panic!(
        "{}: {what} breaks it (in {took:?}); the input is {}: fix the bug and take it into {}",
        target.name,
        kept.display(),
        folder(target.name).display()
    );
}

macro_rules! stable {
    ($($name:ident)*) => {
        $(#[test] fn $name() { holds_for_everything(stringify!($name)); })*

        /// What is run here, by name.
        const RUN_HERE: &[&str] = &[$(stringify!($name)),*];
    };
}

stable! {
    capture card command config config_env document event_id form_file judging json_list model_answer prompt quiet_hours
    search slack_answer slack_event slack_export slack_frame slack_history slack_request slack_text
    slack_zip split telegram_answer telegram_export telegram_text telegram_update texts
}

fn names_in(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries
        .map(|entry| {
            entry
                .unwrap()
                .path()
                .file_stem()
                .unwrap()
                .to_string_lossy()
                .into_owned()
        })
        .collect()
}

#[test]
fn every_target_is_run_here_and_by_libfuzzer_and_has_a_corpus() {
    let all: BTreeSet<String> = TARGETS
        .iter()
        .map(|target| target.name.to_owned())
        .collect();
    assert_eq!(
        all,
        RUN_HERE.iter().map(|name| (*name).to_owned()).collect()
    );
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    assert_eq!(all, names_in(&root.join("corpus")));
    assert_eq!(all, names_in(&root.join("libfuzzer/fuzz_targets")));
}
