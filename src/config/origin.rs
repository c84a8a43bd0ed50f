//! Where a value comes from: a line of the file, an environment variable, or neither.

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

/// The places where settings are written, by dotted paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Origins(BTreeMap<String, WrittenAt>);

impl Origins {
    /// Adds places; a later place replaces an earlier one.
    pub(super) fn extend(&mut self, places: &BTreeMap<String, WrittenAt>) {
        for (key, place) in places {
            self.0.insert(key.clone(), place.clone());
        }
    }

    /// Whether the setting itself is written; the defaults of its kind do not count.
    pub(super) fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// Where a setting is written: the setting itself, or the defaults of its kind.
    pub(super) fn of(&self, key: &str) -> Option<&WrittenAt> {
        self.0.get(key).or_else(|| self.0.get(&default_key(key)?))
    }

    /// Where a setting is written; if it is not, where the table is written that it would be in.
    pub(super) fn nearest(&self, key: &str) -> Option<&WrittenAt> {
        self.of(key).or_else(|| {
            let (table, _) = key.rsplit_once('.')?;
            self.nearest(table)
        })
    }
}

/// The key of the default that applies to a setting of a named table.
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
