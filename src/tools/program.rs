//! Programs that tools are made of, and the folders in which they run.

use std::io;
use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::confining::{ProgramBounds, ProgramOrder, ProgramReach, StartedProgram, Streams, start};

/// A program's memory if the settings do not limit it, in bytes.
pub const MEMORY_BYTES_DEFAULT: u64 = 256 << 20;
/// The number of a program's processes if the settings do not limit it.
pub const PROCESSES_DEFAULT: u32 = 32;

/// The settings of a program, without its secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramSettings {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The folder it runs in; `None` = an empty folder of its own.
    pub folder: Option<PathBuf>,
    /// Its environment variables.
    pub variables: Vec<(String, String)>,
    /// The files and networks that it may reach.
    pub reach: ProgramReach,
    /// The resources that it may use.
    pub bounds: ProgramBounds,
    /// Whether it is started even if the machine can't confine it.
    pub is_trusted: bool,
}

/// A program with its secrets.
#[derive(Clone, Debug)]
pub struct Program {
    /// The settings without secrets.
    pub settings: ProgramSettings,
    /// Variables whose values are secret.
    pub secrets: Vec<(String, SecretString)>,
    /// The folder in which empty folders are made for it.
    pub folders: PathBuf,
}

/// A program that was started.
#[derive(Debug)]
pub(crate) struct RunningProgram {
    /// The program. Dropping it ends the program.
    pub(crate) program: StartedProgram,
    /// Its streams.
    pub(crate) streams: Streams,
    /// The folder it runs in, if that was made for it. Dropping it removes the folder.
    pub(crate) own_folder: Option<OwnFolder>,
}

/// A folder that is removed with all that is in it.
#[derive(Debug)]
pub(crate) struct OwnFolder(PathBuf);

impl Drop for OwnFolder {
    fn drop(&mut self) {
        // A folder that could not be removed is removed at the next start.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl ProgramSettings {
    /// What decides what the program does, besides its arguments and secrets.
    #[must_use]
    pub fn definition(&self) -> Value {
        json!({
            "argv": self.argv,
            "folder": self.folder,
            "variables": self.variables,
            "read": self.reach.read,
            "write": self.reach.write,
            "connect_ports": self.reach.connect_ports,
        })
    }
}

impl Program {
    /// Starts the program, with these variables in addition to its own.
    ///
    /// # Errors
    /// If its folder can't be made, or our own executable can't be started again.
    pub(crate) fn start(&self, variables: &[(&str, &str)]) -> io::Result<RunningProgram> {
        let settings = &self.settings;
        let own_folder = match &settings.folder {
            Some(_) => None,
            None => Some(own_folder(&self.folders)?),
        };
        let own = own_folder.as_ref().map(|own| &own.0);
        let order = ProgramOrder {
            argv: settings.argv.clone(),
            folder: settings
                .folder
                .as_ref()
                .or(own)
                .cloned()
                .unwrap_or_default(),
            reach: settings.reach.clone(),
            bounds: settings.bounds,
            is_trusted: settings.is_trusted,
            parent: 0,
        };
        let named = settings.variables.iter();
        let named = named.map(|(name, value)| (name.as_str(), value.as_str()));
        let secrets = self.secrets.iter();
        let secrets = secrets.map(|(name, value)| (name.as_str(), value.expose_secret()));
        let all = named.chain(secrets).chain(variables.iter().copied());
        let (program, streams) = start(&order, all)?;
        Ok(RunningProgram {
            program,
            streams,
            own_folder,
        })
    }
}

/// Makes an empty folder that only this user may enter.
fn own_folder(folders: &Path) -> io::Result<OwnFolder> {
    let path = folders.join(Uuid::now_v7().to_string());
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(&path)?;
    Ok(OwnFolder(path))
}

/// Removes the folders that an earlier daemon left behind.
pub fn sweep(folders: &Path) {
    match std::fs::remove_dir_all(folders) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => {
            tracing::warn!(%error, folder = %folders.display(), "folders of tools could not be removed");
        }
    }
}
