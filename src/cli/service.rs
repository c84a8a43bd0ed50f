//! The systemd units of a daemon: the plain ones, or those of a cell.

use std::path::{Path, PathBuf};

/// The path of the program in the shipped units.
pub(super) const SHIPPED_PROGRAM: &str = "/usr/local/bin/vocative";
/// The folder with the cells' folders.
const CELLS_FOLDER: &str = "/etc/vocative/cells";
/// The longest name of a cell: user names are made from it, and a longer one would not fit.
const CELL_MAX_CHARS: usize = 14;

/// The units that belong to a daemon.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Service {
    cell: Option<String>,
}

impl Service {
    /// The units of the daemon with this configuration file.
    pub(super) fn of(file: Option<&Path>) -> Self {
        let below = file.and_then(|file| file.parent()?.strip_prefix(CELLS_FOLDER).ok());
        let name = below.and_then(Path::to_str);
        Self {
            cell: name.filter(|name| is_cell(name)).map(str::to_owned),
        }
    }

    /// The unit's name, as systemctl takes it.
    pub(super) fn unit(&self) -> String {
        match &self.cell {
            Some(cell) => format!("vocative@{cell}"),
            None => "vocative".to_owned(),
        }
    }

    /// The name of the unit's file.
    pub(super) fn file_name(&self) -> &'static str {
        match self.cell {
            Some(_) => "vocative@.service",
            None => "vocative.service",
        }
    }

    /// The text of the unit as this version ships it.
    pub(super) fn shipped(&self) -> &'static str {
        match self.cell {
            Some(_) => include_str!("../../systemd/vocative@.service"),
            None => include_str!("../../systemd/vocative.service"),
        }
    }

    /// The folder of the daemon's secrets.
    pub(super) fn credentials(&self) -> PathBuf {
        match &self.cell {
            Some(cell) => Path::new(CELLS_FOLDER).join(cell).join("credentials"),
            None => "/etc/vocative/credentials".into(),
        }
    }

    /// The folder into which the backup timer puts the backups.
    pub(super) fn backups(&self) -> PathBuf {
        match &self.cell {
            Some(cell) => Path::new("/var/lib/vocative-cells-backup").join(cell),
            None => "/var/lib/vocative-backup".into(),
        }
    }

    /// Rewrites a command that names the plain units so that it names these.
    pub(super) fn spelled(&self, command: &str) -> String {
        let Some(cell) = &self.cell else {
            return command.to_owned();
        };
        let words = command.split(' ').enumerate().map(|(n, word)| match word {
            "vocative" if n > 0 => self.unit(),
            "--unit=vocative" => format!("--unit={}", self.unit()),
            "vocative-backup.timer" => format!("vocative-backup@{cell}.timer"),
            "vocative-backup.service" => format!("vocative-backup@{cell}.service"),
            word => word.to_owned(),
        });
        let spelled = words.collect::<Vec<_>>().join(" ");
        match spelled.starts_with("vocative ") {
            true => format!("{spelled} --config {CELLS_FOLDER}/{cell}/vocative.toml"),
            false => spelled,
        }
    }
}

/// The folder of the configuration of a cell.
///
/// # Errors
/// What is wrong with the name.
pub(super) fn cell_folder(name: &str) -> Result<PathBuf, String> {
    if !is_cell(name) {
        return Err(format!(
            "a cell's name has up to {CELL_MAX_CHARS} lower-case letters, digits and -, and begins with a letter"
        ));
    }
    Ok(Path::new(CELLS_FOLDER).join(name))
}

fn is_cell(name: &str) -> bool {
    let is_fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    name.len() <= CELL_MAX_CHARS
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(is_fit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_has_units_of_its_own_and_its_commands_name_it() {
        let cell = Service::of(Some(Path::new("/etc/vocative/cells/acme/vocative.toml")));
        assert_eq!(cell.unit(), "vocative@acme");
        assert!(cell.shipped().contains("vocative-cell-%i"));
        assert_eq!(
            cell.backups(),
            Path::new("/var/lib/vocative-cells-backup/acme")
        );
        assert_eq!(
            cell.credentials(),
            Path::new("/etc/vocative/cells/acme/credentials")
        );
        for (plain, spelled) in [
            ("systemctl start vocative", "systemctl start vocative@acme"),
            (
                "systemctl enable --now vocative-backup.timer",
                "systemctl enable --now vocative-backup@acme.timer",
            ),
            (
                "journalctl --unit=vocative --lines=20",
                "journalctl --unit=vocative@acme --lines=20",
            ),
            (
                "vocative check",
                "vocative check --config /etc/vocative/cells/acme/vocative.toml",
            ),
            ("chmod go= /a/vocative", "chmod go= /a/vocative"),
        ] {
            assert_eq!(cell.spelled(plain), spelled);
            assert_eq!(Service::default().spelled(plain), plain);
        }
    }

    #[test]
    fn only_the_folders_of_cells_are_cells() {
        for file in [
            "/etc/vocative/vocative.toml",
            "/etc/vocative/cells/vocative.toml",
            "/etc/vocative/cells/a/b/vocative.toml",
            "/etc/vocative/cells/Acme/vocative.toml",
            "/srv/cells/acme/vocative.toml",
        ] {
            assert_eq!(Service::of(Some(Path::new(file))), Service::default());
        }
        assert!(cell_folder("acme-2").is_ok());
        for name in ["", "-a", "2a", "a.b", "../a", "a-name-too-long"] {
            assert!(cell_folder(name).is_err(), "{name}");
        }
    }
}
