//! The order for a keeper: which program it starts, and what the program may have. Secrets are not part of it: they
//! are passed as variables.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A program and what it may have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct ProgramOrder {
    /// The program and its arguments; empty = only test whether it could be confined.
    pub argv: Vec<String>,
    /// The folder in which it runs; it may write there.
    pub folder: PathBuf,
    /// What it may reach.
    pub reach: ProgramReach,
    /// What it may use.
    pub bounds: ProgramBounds,
    /// Whether it is started where the machine can't confine it.
    pub is_trusted: bool,
    /// The process with which it must end.
    pub parent: u32,
}

/// What a program may reach beside the system's programs and its own folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct ProgramReach {
    /// Files and folders that it may read and execute.
    pub read: Vec<PathBuf>,
    /// Files and folders that it may also change.
    pub write: Vec<PathBuf>,
    /// TCP ports that it may connect to; empty = it has no network.
    pub connect_ports: Vec<u16>,
}

/// What a program may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct ProgramBounds {
    /// The most memory of all its processes together, in bytes.
    pub memory_bytes: u64,
    /// The most processes.
    pub processes: u32,
}

impl ProgramOrder {
    /// The order as one command-line argument.
    ///
    /// # Panics
    /// Never: an order is made of texts and numbers.
    #[must_use]
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).expect("an order is made of texts and numbers")
    }

    /// Reads an order from an argument.
    ///
    /// # Errors
    /// What is wrong with the argument.
    pub fn read(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| format!("this is no order: {error}"))
    }
}
