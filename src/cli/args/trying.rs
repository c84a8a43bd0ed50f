//! What `vocative demo` and `sandbox` take.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// What `vocative demo` takes.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Which scene is played
    #[arg(
        long,
        value_name = "NAME",
        default_value = "rooms",
        conflicts_with = "fault"
    )]
    pub scene: Scene,
    /// End after the scene; exit 0 only if every expected answer was posted where it belongs
    #[arg(long)]
    pub once: bool,
    /// Break something on purpose, to see that it is noticed
    #[arg(long, value_name = "FAULT", requires = "once")]
    pub fault: Option<Fault>,
    /// Write every frame and request on the wire to this file
    #[arg(long, value_name = "FILE")]
    pub wire: Option<PathBuf>,
}

/// A scene of the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scene {
    /// People in two platforms, one agent, and a call that waits for a person
    Rooms,
    /// A help desk of several agents (config/examples/help-desk.toml), through a kill
    HelpDesk,
    /// An alert whose restart waits for who is on call (config/examples/on-call.toml), through a kill
    OnCall,
}

/// Something broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Fault {
    /// One answer is never posted
    DropAnswer,
    /// The loopback Telegram sends no updates
    MuteTelegram,
    /// One answer goes into another thread
    WrongThread,
    /// Anybody may allow the refund that waits
    OpenApproval,
}

/// What `vocative sandbox` takes.
#[derive(Debug, Args)]
pub struct SandboxArgs {
    /// Port of the loopback Slack; 0 = any free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub slack_port: u16,
    /// Port of the loopback Telegram; 0 = any free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub telegram_port: u16,
    /// Port of the scripted model server; 0 = any free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub model_port: u16,
    /// Print one line of JSON with addresses and tokens instead of instructions
    #[arg(long, conflicts_with = "self_check")]
    pub json: bool,
    /// Show what is refused, with the exact error of each, and end
    #[arg(long)]
    pub self_check: bool,
    /// Be a loopback server of tools over standard streams, as a file says, and nothing else
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "self_check"])]
    pub mcp_stdio: Option<PathBuf>,
}
