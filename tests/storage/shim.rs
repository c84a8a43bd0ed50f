//! Builds a preloaded shim of this folder, with the C compiler that SQLite's build needs anyway.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the shim of that source into a folder and gives its path, for `LD_PRELOAD`.
pub(crate) fn build(source: &str, folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/storage")
        .join(source);
    let library = folder.join("shim.so");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"])
        .arg("-o")
        .arg(&library)
        .arg(&source)
        .arg("-ldl")
        .output()
        .unwrap();
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    library
}
