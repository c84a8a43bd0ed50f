//! The figures of README.md, each measured on the daemon as a separate process against the loopback
//! platforms: `cargo bench --profile dist --bench figures [-- NAME...] [--rounds N]`.
//!
//! Names: `size`, `idle`, `start`, `answers` (`--chats N`), `floods`; all of them without a name. `gaps`, `flood`
//! (`--messages N`), `soak` (`--minutes N`), `imports`, `live`, `readers`, `streams`, `tools`, `approvals`,
//! `schedules`, `networks`, `console` and `profile` are taken only by name: they take a while, or concern few. Prints
//! what it measures and judges nothing: what the figures mean is in benches/README.md.

mod acting;
mod answers;
mod console;
mod disk;
mod flood;
mod floods;
mod gaps;
mod imports;
mod live;
mod networks;
mod profile;
mod readers;
mod soak;
mod stage;
mod starts;
mod stats;
mod streams;

use std::process::ExitCode;

/// Why a figure could not be taken.
pub(crate) type Fail = Box<dyn std::error::Error + Send + Sync>;

const NAMES: [&str; 18] = [
    "size",
    "idle",
    "start",
    "answers",
    "floods",
    "gaps",
    "flood",
    "soak",
    "imports",
    "readers",
    "streams",
    "live",
    "tools",
    "approvals",
    "schedules",
    "networks",
    "console",
    "profile",
];
const ROUNDS: usize = 3;
/// Of a flood, on each platform.
const MESSAGES: usize = 100_000;
/// Of a soak.
const MINUTES: u64 = 60;

#[tokio::main]
async fn main() -> ExitCode {
    match run(std::env::args().skip(1)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(cause) => {
            eprintln!("no figure: {cause}");
            ExitCode::FAILURE
        }
    }
}

async fn run(mut args: impl Iterator<Item = String>) -> Result<(), Fail> {
    let (mut names, mut rounds) = (Vec::new(), ROUNDS);
    let (mut messages, mut minutes, mut chats) = (MESSAGES, MINUTES, answers::CHATS_MAX);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            // cargo adds it.
            "--bench" => {}
            "--rounds" => rounds = args.next().unwrap_or_default().parse()?,
            "--messages" => messages = args.next().unwrap_or_default().parse()?,
            "--chats" => chats = args.next().unwrap_or_default().parse()?,
            "--minutes" => minutes = args.next().unwrap_or_default().parse()?,
            name if NAMES.contains(&name) => names.push(arg),
            other => return Err(format!("no figure {other}; there are: {NAMES:?}").into()),
        }
    }
    let is_wanted = |name: &str| names.is_empty() || names.iter().any(|wanted| wanted == name);
    if is_wanted("size") {
        let bytes = std::fs::metadata(stage::program())?.len();
        println!("size: {:.1} MiB", bytes as f64 / f64::from(1 << 20));
    }
    if is_wanted("idle") {
        starts::measure_memory(rounds).await?;
    }
    if is_wanted("start") {
        starts::measure().await?;
    }
    if is_wanted("answers") {
        answers::measure(rounds, chats.clamp(1, answers::CHATS_MAX)).await?;
    }
    if is_wanted("floods") {
        floods::measure(rounds).await?;
    }
    let is_named = |wanted: &str| names.iter().any(|name| name == wanted);
    if is_named("live") {
        live::measure().await?;
    }
    if is_named("gaps") {
        gaps::measure().await?;
    }
    if is_named("flood") {
        flood::measure(messages).await?;
    }
    if is_named("soak") {
        soak::measure(minutes).await?;
    }
    if is_named("readers") {
        readers::measure().await?;
    }
    if is_named("imports") {
        imports::measure().await?;
    }
    if is_named("streams") {
        streams::measure(rounds).await?;
    }
    if is_named("tools") {
        acting::measure_tools().await?;
    }
    if is_named("approvals") {
        acting::measure_approvals().await?;
    }
    if is_named("schedules") {
        acting::measure_schedules().await?;
    }
    if is_named("networks") {
        networks::measure().await?;
    }
    if is_named("console") {
        console::measure().await?;
    }
    if is_named("profile") {
        profile::measure().await?;
    }
    Ok(())
}
