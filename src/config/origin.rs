//! Where a value came from: a line of the file, an environment variable, or neither.

use super::platforms::PLATFORMS;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// Where a setting is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WrittenAt {
    /// In a file, at a line from 1.
    Line {
        /// The file.
        file: PathBuf,
        /// The line.
        line: Option<usize>,
    },
    /// In an environment variable.
    Variable(String),
}

impl fmt::Display for WrittenAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line {
                file,
                line: Some(line),
            } => write!(f, "{}:{line}", file.display()),
            Self::Line { file, line: None } => write!(f, "{}", file.display()),
            Self::Variable(name) => write!(f, "${name}"),
        }
    }
}

/// Where all settings are written: dotted paths to places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Origins(BTreeMap<String, WrittenAt>);

impl Origins {
    /// Adds places; those added later win.
    pub(super) fn extend(&mut self, places: &BTreeMap<String, WrittenAt>) {
        for (key, place) in places {
            self.0.insert(key.clone(), place.clone());
        }
    }

    /// Whether a setting is written, itself, not only among the defaults of its kind.
    pub(super) fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// Where a setting is written, itself or among the defaults of its kind.
    pub(super) fn of(&self, key: &str) -> Option<&WrittenAt> {
        self.0.get(key).or_else(|| self.0.get(&default_key(key)?))
    }

    /// Where a setting is written, or else the table it would be in.
    pub(super) fn nearest(&self, key: &str) -> Option<&WrittenAt> {
        self.of(key).or_else(|| {
            let (table, _) = key.rsplit_once('.')?;
            self.nearest(table)
        })
    }
}

/// The key among the defaults that a setting of a named table falls back to.
fn default_key(key: &str) -> Option<String> {
    let platforms = PLATFORMS.map(|it| (it.name, format!("channels.{}.", it.name)));
    let kinds = [("model", "models."), ("agent", "agents.")];
    let kinds = kinds.map(|(kind, prefix)| (kind, prefix.to_owned()));
    let (kind, rest) = kinds
        .iter()
        .chain(&platforms)
        .find_map(|(kind, prefix)| Some((*kind, key.strip_prefix(prefix.as_str())?)))?;
    let (_, setting) = rest.split_once('.')?;
    Some(format!("defaults.{kind}.{setting}"))
}
