//! Secrets: the configuration says only where they are, and never contains them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use secrecy::SecretString;
use serde::{Deserialize, Deserializer};

use super::environment::Environment;

/// The JSON schema format of a reference to a secret.
pub(super) const FORMAT: &str = "secret-reference";

/// The folder next to the configuration with a file for each secret.
pub const CREDENTIALS_FOLDER: &str = "credentials";

/// Where a secret is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecretRef {
    /// In an environment variable.
    Env(String),
    /// In a file.
    File(PathBuf),
    /// In a systemd credential: `$CREDENTIALS_DIRECTORY/NAME`. Outside of a unit `secret_NAME` is the file
    /// `credentials/NAME` next to the configuration, from which the shipped unit takes it.
    Credential(String),
}

impl SecretRef {
    /// Reads a reference; `None` if the text is none. The text may be the secret itself, so callers must not show it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, name) = text.split_once(':')?;
        match kind {
            _ if name.trim().is_empty() => None,
            "env" => Some(Self::Env(name.to_owned())),
            "file" => Some(Self::File(PathBuf::from(name))),
            "credential" if !name.contains('/') => Some(Self::Credential(name.to_owned())),
            _ => None,
        }
    }

    /// The file that the secret is in; `None` for a variable, and for a credential that does not exist.
    pub(super) fn file(&self, environment: &Environment, base_dir: &Path) -> Option<PathBuf> {
        match self {
            Self::Env(_) => None,
            Self::File(path) => Some(base_dir.join(path)),
            Self::Credential(name) => match environment.get("CREDENTIALS_DIRECTORY") {
                Some(folder) => Some(Path::new(folder).join(name)),
                None => unit_source(name, base_dir),
            },
        }
    }

    /// Reads the secret.
    ///
    /// # Errors
    /// What is wrong and what to do; never contains the secret.
    pub(super) fn read(
        &self,
        environment: &Environment,
        base_dir: &Path,
    ) -> Result<FoundSecret, String> {
        match self {
            Self::Env(name) => environment
                .get(name)
                .ok_or_else(|| format!("the environment variable {name} is not set"))
                .and_then(|value| {
                    FoundSecret::of_text(value, &format!("the environment variable {name}"))
                }),
            Self::File(path) => read_file(&base_dir.join(path)),
            Self::Credential(name) => {
                let is_in_unit = environment.get("CREDENTIALS_DIRECTORY").is_some();
                if let Some(path) = unit_source(name, base_dir).filter(|_| !is_in_unit) {
                    return read_file(&path);
                }
                let dir = environment.get("CREDENTIALS_DIRECTORY").ok_or_else(|| {
                    format!(
                        "there is no credential {name}: $CREDENTIALS_DIRECTORY is not set, so this \
                         was not started by systemd with LoadCredential={name}:FILE"
                    )
                })?;
                // systemd owns these files and sets their permissions.
                read_file(&Path::new(dir).join(name)).map(|found| FoundSecret {
                    warning: None,
                    ..found
                })
            }
        }
    }
}

impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "env:{name}"),
            Self::File(path) => write!(f, "file:{}", path.display()),
            Self::Credential(name) => write!(f, "credential:{name}"),
        }
    }
}

impl<'de> Deserialize<'de> for SecretRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text)
            .ok_or_else(|| serde::de::Error::custom("not a reference to a secret (not shown)"))
    }
}

impl JsonSchema for SecretRef {
    fn schema_name() -> Cow<'static, str> {
        "SecretRef".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Where a secret is: env:NAME, file:PATH or credential:NAME.",
            "type": "string",
            "format": FORMAT,
            "pattern": "^(env|file|credential):.+$",
        })
    }
}

/// The file from which the shipped unit takes a credential, if that file exists. Only an administrator can read it, so
/// their commands see the same secrets as the unit.
///
/// *Source:* `LoadCredential=secret:/etc/vocative/credentials` in `systemd/vocative.service`.
fn unit_source(name: &str, base_dir: &Path) -> Option<PathBuf> {
    let name = name.strip_prefix("secret_")?;
    let path = base_dir.join(CREDENTIALS_FOLDER).join(name);
    path.is_file().then_some(path)
}

/// A secret that was found.
pub(super) struct FoundSecret {
    /// The secret.
    pub secret: SecretString,
    /// What should be corrected although it works.
    pub warning: Option<String>,
}

impl FoundSecret {
    fn of_text(text: &str, place: &str) -> Result<Self, String> {
        let text = text.trim_end_matches(['\r', '\n']);
        if text.trim().is_empty() {
            return Err(format!("{place} is empty"));
        }
        Ok(Self {
            secret: SecretString::from(text),
            warning: None,
        })
    }
}

fn read_file(path: &Path) -> Result<FoundSecret, String> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("the file {shown} can't be read: {error}"))?;
    let found = FoundSecret::of_text(&text, &format!("the file {shown}"))?;
    Ok(FoundSecret {
        warning: is_world_readable(path).then(|| {
            format!("every user of this machine can read {shown}; run: chmod 600 {shown}")
        }),
        ..found
    })
}

#[cfg(unix)]
fn is_world_readable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o004 != 0)
}

#[cfg(not(unix))]
fn is_world_readable(_: &Path) -> bool {
    false
}

/// The secrets of one configuration, after they were read.
#[derive(Clone, Debug, Default)]
pub struct Secrets(pub(super) BTreeMap<SecretRef, SecretString>);

impl Secrets {
    /// The secret that a reference is about.
    ///
    /// # Panics
    /// If the reference is from another configuration.
    #[must_use]
    pub fn get(&self, reference: &SecretRef) -> &SecretString {
        self.0
            .get(reference)
            .expect("every reference of a configuration is read with it")
    }
}
