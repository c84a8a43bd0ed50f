//! `vocative demo`: the daemon against the loopback platforms, with the built-in model.
//!
//! Plays a short scene, shows it as it happens (from the frames on the wire, not from the store),
//! then what was captured and why, then an approval through a kill, then hands the keyboard over.
//! Reading order: `scene` (what is said and what must come back), `stage` (the loopback platforms and
//! the daemon), `transcript` (frames to lines), `report` (what the store has), `approval` (a call that
//! waits for a person), `verdict`; apart from these `help_desk` and
//! `on_call`, scenes of their own on an example's configuration (`stand`).

mod approval;
mod help_desk;
mod on_call;
mod report;
mod scene;
mod stage;
mod stand;
mod transcript;
mod verdict;

use std::io::Write as _;
use std::process::ExitCode;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

use crate::cli::args::{DemoArgs, Fault, Scene};
use crate::cli::context::CliContext;
use crate::cli::{CliError, Exit};
use scene::SceneChat;
use stage::DemoStage;

/// Plays the demo.
///
/// # Errors
/// If the platforms or the daemon can't be started, or the wire file can't be written.
pub(super) async fn run(args: &DemoArgs, context: &CliContext) -> Result<ExitCode, CliError> {
    context.start_log_at("error")?;
    match args.scene {
        Scene::Rooms => {}
        Scene::HelpDesk => return help_desk::run().await,
        Scene::OnCall => return on_call::run().await,
    }
    if let Some(path) = &args.wire {
        // A path that can't be written is reported before the scene is played.
        std::fs::File::create(path).map_err(|cause| {
            CliError::failed(format!("{} can't be written", path.display()), cause)
        })?;
    }
    let stage = DemoStage::build(args.fault).await?;
    let printing = transcript::print(&stage);
    let scene = scene::scene();
    say_line("The scene, as it is on the wire:");
    say_line("");
    let outcomes = tokio::select! {
        outcomes = scene::play(&scene, &stage) => outcomes,
        () = interruption() => return Ok(stop_early(stage, &printing).await),
    };
    transcript::settle(&stage.wire).await;
    report::print(&stage, &outcomes).await?;
    let steps = if args.fault.is_none_or(|fault| fault == Fault::OpenApproval) {
        tokio::select! {
            steps = Box::pin(approval::play(&stage.wire, args.fault)) => steps?,
            () = interruption() => return Ok(stop_early(stage, &printing).await),
        }
    } else {
        Vec::new()
    };
    let is_fine = verdict::print(&outcomes, &steps);
    if !args.once && is_fine {
        converse(&stage).await;
    }
    printing.abort();
    if let Some(path) = &args.wire {
        write_wire(&stage, path)?;
    }
    stage.strike().await;
    let exit = if is_fine { Exit::Ok } else { Exit::Failed };
    Ok(exit.into())
}

async fn stop_early(stage: DemoStage, printing: &JoinHandle<()>) -> ExitCode {
    printing.abort();
    stage.strike().await;
    say_line("Stopped before the scene was over.");
    Exit::Failed.into()
}

/// Waits for Ctrl-C or SIGTERM. Either ends the demo in an orderly way, so that its second daemon ends, too.
async fn interruption() {
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        let _ = tokio::signal::ctrl_c().await;
        return;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}

/// Prints one line on stdout; errors are ignored, because a closed pipe ends the demo elsewhere.
pub(super) fn say_line(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// Lets the person type into the chats, until Ctrl-C or the end of the input.
async fn converse(stage: &DemoStage) {
    say_line("");
    say_line("Now you: type into a chat as a person. Ctrl-C or Ctrl-D ends the demo.");
    for place in SceneChat::ALL {
        say_line(&format!("  {:<10} {}", place.handle(), place.describe()));
    }
    say_line("For example:  #general hello      or:  #general @vocative hello");
    say_line("");
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut has_said = false;
    loop {
        tokio::select! {
            line = lines.next_line() => match line {
                Ok(Some(line)) => {
                    take_line(stage, &line);
                    has_said = true;
                }
                _ => break,
            },
            () = interruption() => return,
        }
    }
    // Lines that were piped in may still wait for their answers.
    if has_said {
        tokio::select! {
            () = stage.wait_until_answered() => transcript::settle(&stage.wire).await,
            () = interruption() => {}
        }
    }
}

fn take_line(stage: &DemoStage, line: &str) {
    let line = line.trim();
    if line.is_empty() {
        return;
    }
    let (handle, text) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    match (SceneChat::from_handle(handle), text.trim()) {
        (Some(place), text) if !text.is_empty() => {
            stage.say(place, scene::SceneSpeaker::Ann, text);
        }
        (Some(_), _) => say_line("Say something behind the chat's name."),
        (None, _) => {
            let handles = SceneChat::ALL.map(SceneChat::handle).join(", ");
            say_line(&format!("There is no chat {handle}; there are: {handles}"));
        }
    }
}

fn write_wire(stage: &DemoStage, path: &std::path::Path) -> Result<(), CliError> {
    let mut text = String::new();
    for record in stage.wire.records() {
        let line = serde_json::to_string(&record).map_err(std::io::Error::other)?;
        text.push_str(&line);
        text.push('\n');
    }
    std::fs::write(path, text)?;
    say_line(&format!(
        "Every frame and request is in {}.",
        path.display()
    ));
    Ok(())
}

impl Fault {
    /// What the fault does, as the demo prints it.
    fn describe(self) -> &'static str {
        match self {
            Self::DropAnswer => "Slack refuses one answer",
            Self::MuteTelegram => "Telegram does not answer polls",
            Self::WrongThread => "the daemon is set to answer outside threads",
            Self::OpenApproval => "anybody may allow the refund, not only who asked for it",
        }
    }
}
