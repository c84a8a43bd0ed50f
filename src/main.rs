//! The `vocative` program; `vocative::cli` is all of it.

use std::process::ExitCode;

fn main() -> ExitCode {
    vocative::cli::main()
}
