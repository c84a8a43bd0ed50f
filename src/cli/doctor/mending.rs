//! What `--fix` does: only what can't harm. It changes no configuration and no stored row, and starts and stops
//! nothing.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use super::looking::open_secrets;
use super::unit::Unit;
use crate::config::{Config, Environment};

/// Takes access to files with secrets from everybody but the owner, and says to which. A file that can't be changed is
/// reported later.
pub(super) fn secrets(config: &Config, environment: &Environment) -> Vec<String> {
    let mut mended = Vec::new();
    for path in open_secrets(config, environment) {
        let Ok(found) = std::fs::metadata(&path) else {
            continue;
        };
        let mode = found.permissions().mode() & 0o700;
        if std::fs::set_permissions(&path, Permissions::from_mode(mode)).is_ok() {
            mended.push(format!("only its owner can read {}", path.display()));
        }
    }
    mended
}

/// Has systemd read changed unit files again.
pub(super) fn unit(unit: &Unit) -> Option<String> {
    let needs = unit.properties.get("NeedDaemonReload")? == "yes";
    let reload = || {
        let done = Command::new("systemctl")
            .arg("daemon-reload")
            .stdin(Stdio::null())
            .status();
        done.is_ok_and(|status| status.success())
    };
    (needs && reload()).then(|| "systemd has read the unit files again".to_owned())
}
