//! Finds the control socket of a running daemon, even if the configuration has mistakes.

use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use super::environment::Environment;
use super::locate::{self, Located};
use super::settings::Config;

/// The settings that decide where the socket is.
const PATHS: [&str; 3] = ["data_dir", "runtime_dir", "control_socket"];

/// The control socket, by the settings that can be read despite mistakes in others; `None` if these do not suffice.
#[must_use]
pub fn control_socket_despite_mistakes(
    asked: Option<&Path>,
    environment: &Environment,
) -> Option<PathBuf> {
    let file = match locate::locate(asked, environment).ok()? {
        Located::File(path) => {
            let text = std::fs::read_to_string(&path).ok()?;
            Some((path, paths_of(&text)))
        }
        Located::Nowhere(_) => None,
    };
    let others = environment.iter().filter(|(name, _)| is_about_paths(name));
    let others = Environment::from_pairs(others);
    let file = file
        .as_ref()
        .map(|(path, text)| (path.as_path(), text.as_str()));
    let (config, _) = Config::from_text(file, &others).ok()?;
    Some(config.daemon.control_socket)
}

/// Whether a variable is needed here. Other variables may have mistakes, and are left out.
fn is_about_paths(name: &str) -> bool {
    let is_path = |path: &str| name.strip_prefix("VOCATIVE_DAEMON__") == Some(&path.to_uppercase());
    !name.starts_with("VOCATIVE_") || PATHS.iter().any(|path| is_path(path))
}

/// A configuration with only these paths of another one, as far as its TOML can be read.
fn paths_of(text: &str) -> String {
    let (document, _) = DeTable::parse_recoverable(text);
    let daemon = document.get_ref().get("daemon").map(toml::Spanned::get_ref);
    let mut paths = toml::Table::new();
    if let Some(DeValue::Table(daemon)) = daemon {
        for name in PATHS {
            if let Some(DeValue::String(path)) = daemon.get(name).map(toml::Spanned::get_ref) {
                paths.insert(name.to_owned(), path.to_string().into());
            }
        }
    }
    let table = toml::Table::from_iter([("daemon".to_owned(), paths.into())]);
    table.to_string()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_socket_is_found_whatever_else_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vocative.toml");
        let environment = Environment::from([
            ("HOME", "/home/ada"),
            ("VOCATIVE_DAEMON__LOG_LEVEL", "loud"),
        ]);
        let found = |text: &str| {
            std::fs::write(&path, text).unwrap();
            control_socket_despite_mistakes(Some(&path), &environment)
        };
        let run = folder.path().join("here/vocative.sock");
        let table = [
            "[daemon]\nruntime_dir = \"here\"\n[models.default]\nmodel = 5\n",
            "[daemon]\nruntime_dir = \"here\"\nnonsense = true\n[channels.slack.acme\n",
            "[daemon]\nruntime_dir = \"here\"\n\n[x]\nlist = [",
            "[daemon]\ncontrol_socket = \"here/vocative.sock\"\nnonsense = true",
        ];
        for text in table {
            assert_eq!(found(text), Some(run.clone()), "{text}");
        }
        let data = found("[daemon]\ndata_dir = \"data\"\nlog_level = 3");
        assert_eq!(data, Some(folder.path().join("data/run/vocative.sock")));
        let nowhere = folder.path().join("nowhere.toml");
        assert_eq!(
            control_socket_despite_mistakes(Some(&nowhere), &environment),
            None
        );
    }
}
