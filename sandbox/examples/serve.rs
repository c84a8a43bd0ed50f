//! Serves the loopback Slack, the loopback Telegram and the scripted model until it is told to end.
//!
//! ```text
//! cargo run -p vocative-sandbox --example serve -- --slack 4001 --telegram 4002 --model 4003
//! ```
//!
//! Prints one line of JSON with the addresses and tokens on stdout as soon as all three listen. Ends
//! when stdin closes (so that it dies with the script that started it) or on Ctrl-C.

use std::net::SocketAddr;
use std::process::ExitCode;

use tokio::io::{AsyncReadExt, Stdin};
use vocative_sandbox::addresses;
use vocative_sandbox::model::ModelServer;
use vocative_sandbox::slack::{SlackServer, SlackWorld};
use vocative_sandbox::telegram::{TelegramServer, TelegramWorld};
use vocative_sandbox::wire::WireLog;

const USAGE: &str = "usage: serve [--slack PORT] [--telegram PORT] [--model PORT]
Ports are on 127.0.0.1; 0, the default, takes a free one.";

/// Exit code of a wrong command line.
const EXIT_USAGE: u8 = 2;

/// On which ports to listen; 0 takes a free one.
#[derive(Debug, Default)]
struct Ports {
    slack: u16,
    telegram: u16,
    model: u16,
}

impl Ports {
    fn from_args(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut ports = Self::default();
        while let Some(name) = args.next() {
            let port = match name.as_str() {
                "--slack" => &mut ports.slack,
                "--telegram" => &mut ports.telegram,
                "--model" => &mut ports.model,
                _ => return Err(format!("no option {name}")),
            };
            let value = args.next().unwrap_or_default();
            *port = value
                .parse()
                .map_err(|_| format!("{name} takes a port, not \"{value}\""))?;
        }
        Ok(ports)
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let ports = match Ports::from_args(std::env::args().skip(1)) {
        Ok(ports) => ports,
        Err(why) => {
            eprintln!("{why}\n{USAGE}");
            return ExitCode::from(EXIT_USAGE);
        }
    };
    match serve(&ports).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the loopback platforms could not start: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(ports: &Ports) -> std::io::Result<()> {
    let on = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
    let wire = WireLog::new();
    let slack = SlackServer::start(SlackWorld::acme(), on(ports.slack), wire.clone()).await?;
    let team = TelegramWorld::team();
    let telegram = TelegramServer::start(team, on(ports.telegram), wire.clone()).await?;
    let model = ModelServer::start(on(ports.model), wire).await?;

    println!("{}", addresses(&slack, &telegram, &model));
    tokio::select! {
        () = end_of(tokio::io::stdin()) => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    slack.stop().await;
    telegram.stop().await;
    model.stop().await;
    Ok(())
}

/// Reads until stdin ends; what comes in is not looked at.
async fn end_of(mut stdin: Stdin) {
    let mut ignored = [0; 1024];
    while !matches!(stdin.read(&mut ignored).await, Ok(0) | Err(_)) {}
}
