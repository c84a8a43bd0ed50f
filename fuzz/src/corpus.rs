//! Inputs that are known to matter: `corpus/TARGET/`, one file each.
//!
//! They come from the protocol sheets, the golden vectors and the fixtures of the tests; and every input
//! that broke a promise stays here, named `found-...`.

use std::io;
use std::path::PathBuf;

use serde_json::Value;

use crate::random::Random;

/// An input of the corpus.
#[derive(Clone, Debug)]
pub struct Seed {
    /// Its file name.
    pub name: String,
    /// What it holds.
    pub bytes: Vec<u8>,
    /// Where its JSON begins, and that JSON, if it has any.
    pub json: Option<(usize, Value)>,
}

/// The inputs of one target.
#[derive(Clone, Debug, Default)]
pub struct Corpus {
    /// In the order of their names.
    pub seeds: Vec<Seed>,
}

impl Corpus {
    /// Reads the inputs of a target.
    ///
    /// # Errors
    /// If its folder can't be read.
    pub fn read(target: &str) -> io::Result<Self> {
        let mut seeds = Vec::new();
        for entry in std::fs::read_dir(folder(target))? {
            let path = entry?.path();
            let name = path.file_name().map(|name| name.to_string_lossy());
            let name = name.unwrap_or_default().into_owned();
            seeds.push(Seed::new(name, std::fs::read(&path)?));
        }
        seeds.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self { seeds })
    }

    /// One of them.
    ///
    /// # Panics
    /// If there is none.
    pub(crate) fn pick(&self, random: &mut Random) -> &Seed {
        random.pick(&self.seeds)
    }
}

impl Seed {
    fn new(name: String, bytes: Vec<u8>) -> Self {
        let json = json_in(&bytes);
        Self { name, bytes, json }
    }
}

/// The folder of a target's inputs.
#[must_use]
pub fn folder(target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target)
}

/// JSON that begins at the start, or behind a first line.
fn json_in(bytes: &[u8]) -> Option<(usize, Value)> {
    let behind_line = bytes
        .iter()
        .position(|byte| *byte == b'\n')
        .map(|at| at + 1);
    [Some(0), behind_line].into_iter().flatten().find_map(|at| {
        let value = serde_json::from_slice::<Value>(&bytes[at..]).ok()?;
        (value.is_object() || value.is_array()).then_some((at, value))
    })
}
