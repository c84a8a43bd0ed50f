//! Writes the man pages and the completions of all commands, from the definition of the command line itself:
//! `cargo run --example manual -- FOLDER`.

use std::io;
use std::path::Path;

use clap::CommandFactory as _;
use clap_complete::Shell;
use vocative::cli::args::Cli;

/// Shells that completions are made for.
const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

/// Writes `man/vocative*.1` and `completions/` into a folder.
///
/// # Errors
/// If a file can't be written.
pub(crate) fn write(folder: &Path) -> io::Result<()> {
    let (man, completions) = (folder.join("man"), folder.join("completions"));
    std::fs::create_dir_all(&man)?;
    std::fs::create_dir_all(&completions)?;
    let command = || Cli::command().disable_help_subcommand(true);
    clap_mangen::generate_to(command(), &man)?;
    for shell in SHELLS {
        clap_complete::generate_to(shell, &mut command(), "vocative", &completions)?;
    }
    Ok(())
}

#[allow(dead_code, reason = "a test takes `write` alone")]
fn main() -> io::Result<()> {
    match std::env::args_os().nth(1) {
        Some(folder) => write(Path::new(&folder)),
        None => Err(io::Error::other("name the folder to write into")),
    }
}
