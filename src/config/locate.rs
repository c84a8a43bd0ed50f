//! Finds the configuration file.

use std::path::{Path, PathBuf};

use super::environment::Environment;
use super::problem::{ConfigError, Problem};

/// The result of the search.
pub(super) enum Located {
    /// The file that was found.
    File(PathBuf),
    /// No file exists at any of these places.
    Nowhere(Vec<PathBuf>),
}

/// Finds the file: the one asked for, otherwise `$VOCATIVE_CONFIG`, otherwise the first of the usual places that
/// exists.
///
/// # Errors
/// One problem if the file asked for does not exist.
pub(super) fn locate(
    asked: Option<&Path>,
    environment: &Environment,
) -> Result<Located, ConfigError> {
    let named = asked.map(|path| (path.to_owned(), "--config")).or_else(|| {
        let path = environment.get_filled("VOCATIVE_CONFIG")?;
        Some((PathBuf::from(path), "$VOCATIVE_CONFIG"))
    });
    if let Some((path, by)) = named {
        // Everything except a folder may be read, a pipe too.
        return if path.exists() && !path.is_dir() {
            Ok(Located::File(path))
        } else {
            let why = if path.is_dir() {
                "which is a folder; name the file in it"
            } else {
                "which is not there"
            };
            let what = format!("{by} names {}, {why}", path.display());
            Err(Problem::new("", what)
                .suggest("`vocative config example > vocative.toml` makes one to start from")
                .into())
        };
    }
    let places = usual_places(environment);
    match places.iter().find(|path| path.is_file()) {
        Some(path) => Ok(Located::File(path.clone())),
        None => Ok(Located::Nowhere(places)),
    }
}

fn usual_places(environment: &Environment) -> Vec<PathBuf> {
    let user = environment
        .get_filled("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(Path::new(environment.get_filled("HOME")?).join(".config")));
    std::iter::once(PathBuf::from("vocative.toml"))
        .chain(user.map(|dir| dir.join("vocative/vocative.toml")))
        .chain(std::iter::once(PathBuf::from(
            "/etc/vocative/vocative.toml",
        )))
        .collect()
}
