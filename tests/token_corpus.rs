//! Token counters on texts of many scripts: the bias of the estimate, and the counts it is compared with.

#![allow(clippy::unwrap_used, clippy::cast_precision_loss)]

use std::collections::BTreeMap;
use std::path::PathBuf;

use vocative_core::prompting::{ClassEstimate, TokenCounter};

#[derive(serde::Deserialize)]
struct Corpus {
    text: Vec<Text>,
}

#[derive(serde::Deserialize)]
struct Text {
    script: String,
    o200k: u32,
    text: String,
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tokens/corpus.toml")
}

fn corpus() -> Vec<Text> {
    let text = std::fs::read_to_string(path()).unwrap();
    toml::from_str::<Corpus>(&text).unwrap().text
}

/// Scripts that the estimate's weights were measured on..
const MEASURED: [&str; 8] = [
    "english", "code", "german", "russian", "arabic", "japanese", "korean", "chinese",
];

/// (counted − real) / real over all texts of each script.
fn bias_by_script(counter: &dyn TokenCounter) -> BTreeMap<String, f64> {
    let mut sums: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    for text in corpus() {
        let sum = sums.entry(text.script).or_default();
        sum.0 += counter.count(&text.text);
        sum.1 += text.o200k;
    }
    let bias =
        |(counted, real): (u32, u32)| (f64::from(counted) - f64::from(real)) / f64::from(real);
    sums.into_iter()
        .map(|(script, sum)| (script, bias(sum)))
        .collect()
}

#[test]
fn the_class_estimate_is_within_ten_percent_in_every_measured_script() {
    let biases = bias_by_script(&ClassEstimate);
    for script in MEASURED {
        let bias = biases[script];
        assert!(
            bias.abs() < 0.10,
            "{script}: {:+.1} % of {biases:#.3?}",
            bias * 100.0
        );
    }
}

#[test]
fn every_measured_script_has_enough_text() {
    let texts = corpus();
    for script in MEASURED {
        let of_script: Vec<&Text> = texts.iter().filter(|text| text.script == script).collect();
        let tokens: u32 = of_script.iter().map(|text| text.o200k).sum();
        assert!(
            of_script.len() >= 10 && tokens >= 500,
            "{script}: {} texts, {tokens} tokens",
            of_script.len()
        );
    }
}

/// With `VOCATIVE_BLESS=1` the counts are written, else compared.
#[cfg(feature = "tiktoken")]
#[test]
fn the_fixture_holds_the_real_counts() {
    use vocative_core::prompting::O200k;
    let mut counts = corpus().into_iter().map(|text| O200k.count(&text.text));
    let written = std::fs::read_to_string(path()).unwrap();
    let mut right: Vec<String> = written
        .lines()
        .map(|line| match line.strip_prefix("o200k = ") {
            Some(_) => format!("o200k = {}", counts.next().unwrap()),
            None => line.to_owned(),
        })
        .collect();
    right.push(String::new());
    let right = right.join("\n");
    if std::env::var_os("VOCATIVE_BLESS").is_some() {
        std::fs::write(path(), &right).unwrap();
    }
    assert!(
        written == right || std::env::var_os("VOCATIVE_BLESS").is_some(),
        "the fixture is out of date; its header says how to write it anew"
    );
}
