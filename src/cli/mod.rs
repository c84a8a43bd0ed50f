//! The command line: reads it, runs the command, and reports how that ended.
//!
//! Owns exit codes, the set-up of the log and the texts for people; decides nothing about messages. Results go to
//! stdout, the log to stderr. Reading order: `args`, `error`, then one command.

mod agents;
mod alive;
mod approvals;
pub mod args;
mod asking;
mod backup;
mod capacity;
mod check;
mod config;
mod console;
mod context;
mod conversation_stats;
mod conversations;
mod costs;
#[cfg(feature = "demo")]
mod demo;
mod doctor;
mod erase;
mod error;
mod events;
mod export;
mod export_files;
mod folders;
#[doc(hidden)]
pub mod fuzzing;
mod held;
mod import;
mod jobs;
mod knowledge;
mod live;
mod logging;
mod manifest;
mod markdown;
mod mcp;
mod memory;
mod messages;
mod pairing;
mod programs;
mod prompt;
mod quarantine;
mod questions;
mod queue;
mod reload;
mod run;
mod runs;
#[cfg(feature = "demo")]
mod sandbox;
mod schedules;
mod search_words;
mod service;
mod setup;
mod since;
mod skills;
mod spending;
mod states;
mod status;
mod summary;
pub mod table;
mod tools;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;

use self::args::{Cli, CliCommand, ConversationsCommand};
use self::context::CliContext;
use self::run::Prepared;
use crate::config::Environment;
use crate::confining::{self, KEEPER};

pub use self::error::{CliError, ErrorCause, Exit};

/// Threads that run tasks. The daemon mostly waits; storage and name resolution have threads of their own.
const WORKER_THREADS: usize = 2;

/// Runs the program with the arguments of the process.
#[must_use]
pub fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|command| command == KEEPER) {
        let order = arguments.next().unwrap_or_default();
        return confining::keep(&order.to_string_lossy());
    }
    main_of(std::env::args_os())
}

/// Runs the program with these arguments; the first one is its name.
#[must_use]
pub fn main_of(arguments: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    let arguments: Vec<std::ffi::OsString> = arguments.collect();
    // The option works without a command, which the parser requires.
    if arguments.get(1).is_some_and(|first| first == "--licenses") {
        return print_notices();
    }
    let cli = match Cli::try_parse_from(search_words::as_words(arguments.into_iter())) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version end up here, too, with code 0. If stdout or stderr is closed, they can't be printed.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(Exit::Usage as u8));
        }
    };
    let context = CliContext {
        global: cli.global,
        environment: Environment::of_process(),
    };
    match start(&cli.command, &context) {
        Ok(code) => code,
        Err(error) => {
            // If stderr is closed, only the exit code reports the error.
            let _ = writeln!(std::io::stderr(), "{}", error.report());
            error.exit().into()
        }
    }
}

/// Prints the notices of all libraries in the program. A closed pipe is no error.
fn print_notices() -> ExitCode {
    const NOTICES: &str = include_str!("../../THIRD-PARTY.txt");
    let written = std::io::stdout().lock().write_all(NOTICES.as_bytes());
    match written {
        Err(cause) if cause.kind() != std::io::ErrorKind::BrokenPipe => Exit::Failed.into(),
        _ => Exit::Ok.into(),
    }
}

fn start(command: &CliCommand, context: &CliContext) -> Result<ExitCode, CliError> {
    // Fails only if the process has a provider already, which serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let prepared = match command {
        CliCommand::Run(_) => Some(run::prepare(context)?),
        _ => None,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKER_THREADS)
        .enable_all()
        .build()
        .map_err(|error| CliError::failed("the runtime can't be started", error))?;
    std::panic::set_hook(Box::new(tell_panic));
    let result = runtime.block_on(dispatch(command, prepared, context));
    // Doesn't wait for threads: one may wait for a key that nobody will press. Every command has waited for what it
    // started.
    runtime.shutdown_background();
    result
}

/// Logs where a panic was. Its message is not logged: it may hold what somebody wrote.
fn tell_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let place = panic
        .location()
        .map_or_else(|| "?".to_owned(), ToString::to_string);
    tracing::error!(
        place,
        "a part of the program panicked, which is a bug; the rest goes on"
    );
}

async fn dispatch(
    command: &CliCommand,
    prepared: Option<Prepared>,
    context: &CliContext,
) -> Result<ExitCode, CliError> {
    match command {
        CliCommand::Run(_) => {
            let prepared = prepared.expect("`run` is prepared before there is a runtime");
            run::run(prepared, context).await
        }
        #[cfg(feature = "demo")]
        CliCommand::Demo(args) => demo::run(args, context).await,
        #[cfg(not(feature = "demo"))]
        CliCommand::Demo(_) | CliCommand::Sandbox(_) => Err(CliError::Usage(
            "this build holds no loopback platforms: build it with the feature `demo`".to_owned(),
        )),
        CliCommand::Check(args) => check::run(args, context).await,
        CliCommand::Setup(args) => Box::pin(setup::run(args, context)).await,
        CliCommand::Doctor(args) => doctor::run(args, context).await,
        CliCommand::Status(args) => status::run(args, context).await,
        CliCommand::Reload => reload::run(context).await,
        #[cfg(feature = "demo")]
        CliCommand::Sandbox(args) => sandbox::run(args, context).await,
        CliCommand::Conversations(ConversationsCommand::List(args)) => {
            conversations::list(args, context).await
        }
        CliCommand::Conversations(ConversationsCommand::Show(args)) => {
            conversations::show(args, context).await
        }
        CliCommand::Conversations(ConversationsCommand::Search(args)) => {
            conversations::search(args, context).await
        }
        CliCommand::Conversations(ConversationsCommand::Stats(args)) => {
            conversation_stats::run(args, context).await
        }
        CliCommand::Conversations(ConversationsCommand::Export(args)) => {
            export::run(args, context).await
        }
        CliCommand::Conversations(ConversationsCommand::Title(args)) => {
            conversations::title(args, context).await
        }
        CliCommand::Conversations(ConversationsCommand::Archive(args)) => {
            conversations::archive(args, true, context).await
        }
        CliCommand::Conversations(ConversationsCommand::Unarchive(args)) => {
            conversations::archive(args, false, context).await
        }
        CliCommand::Summary(command) => summary::run(command, context).await,
        CliCommand::Erase(args) => erase::run(args, context).await,
        CliCommand::Agents(args) => agents::run(args, context).await,
        CliCommand::Queue(args) => queue::queue(args, context).await,
        CliCommand::Events(args) => events::run(args, context).await,
        CliCommand::Dead(command) => queue::dead(command, context).await,
        CliCommand::Costs(args) => costs::run(args, context).await,
        CliCommand::Approvals(command) => approvals::run(command, context).await,
        CliCommand::Questions(command) => questions::run(command, context).await,
        CliCommand::Runs(command) => runs::run(command, context).await,
        CliCommand::Jobs(args) => jobs::run(args, context).await,
        CliCommand::Tools(command) => tools::run(command, context).await,
        CliCommand::Knowledge(command) => knowledge::run(command, context).await,
        CliCommand::Memory(command) => memory::run(command, context).await,
        CliCommand::State(command) => states::run(command, context).await,
        CliCommand::Schedules(command) => schedules::run(command, context).await,
        CliCommand::Pairing(command) => pairing::run(command, context).await,
        CliCommand::Skills(command) => skills::run(command, context).await,
        CliCommand::Mcp(command) => mcp::run(command, context).await,
        CliCommand::Quarantine(command) => quarantine::run(command, context).await,
        CliCommand::Held(command) => held::run(command, context).await,
        CliCommand::Import(args) => import::run(args, context).await,
        CliCommand::Backup(args) => backup::make(args, context).await,
        CliCommand::Restore(args) => backup::restore(args, context).await,
        CliCommand::Prompt(args) => prompt::run(args, context).await,
        CliCommand::Console(command) => console::run(command, context).await,
        CliCommand::Config(command) => config::run(command, context),
    }
}

/// A command's result as JSON text.
fn json_text(view: &impl serde::Serialize) -> Result<String, CliError> {
    serde_json::to_string_pretty(view)
        .map(|text| text + "\n")
        .map_err(|cause| CliError::failed("the result can't be written as JSON", cause))
}
