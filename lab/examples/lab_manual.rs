//! Writes the man pages of the laboratory's commands: `cargo run -p vocative-lab --example lab_manual -- FOLDER`.

#[path = "../src/args.rs"]
#[allow(dead_code, reason = "only the definition is read")]
mod args;

use std::path::Path;

use clap::CommandFactory as _;

fn main() -> std::io::Result<()> {
    let Some(folder) = std::env::args_os().nth(1) else {
        return Err(std::io::Error::other("name the folder to write into"));
    };
    let man = Path::new(&folder).join("man");
    std::fs::create_dir_all(&man)?;
    clap_mangen::generate_to(args::LabCli::command().disable_help_subcommand(true), man)
}
