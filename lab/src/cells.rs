//! Many idle daemons on one machine: how long each takes to start beside the others, and how much memory and processor
//! time all of them take.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};

use tokio::process::{Child, Command};
use vocative::cli::CliError;
use vocative_sandbox::telegram::{TelegramServer, TelegramWorld};
use vocative_sandbox::wire::WireLog;

use crate::args::CellsArgs;
use crate::process::{LOOK, WAIT, late};
use crate::{AS_DAEMON, print};

/// How long all of them idle while their processor time is counted.
const IDLE: Duration = Duration::from_secs(60);
/// Clock ticks in a second, as /proc counts them. *Source:* proc_pid_stat(5); 100 on Linux wherever Rust runs on it.
const TICKS_A_SECOND: u64 = 100;

/// A tenant's platform, and the daemon that serves it.
struct Cell {
    /// Kept because the platform stops when it is dropped.
    _platform: TelegramServer,
    daemon: Child,
    id: u32,
    up_after: Duration,
}

/// Starts the daemons one after the other, lets them idle, and prints the time and memory they take.
///
/// # Errors
/// If a daemon can't be started, or is not up in time.
pub(crate) fn run(args: &CellsArgs) -> Result<ExitCode, CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let told = runtime.block_on(measured(args.count))?;
    print(&told)?;
    Ok(ExitCode::SUCCESS)
}

async fn measured(count: usize) -> Result<String, CliError> {
    let home = tempfile::tempdir()?;
    let mut cells = Vec::with_capacity(count);
    for n in 0..count {
        cells.push(started(home.path(), n).await?);
    }
    let before: u64 = cells.iter().map(|cell| ticks(cell.id)).sum();
    tokio::time::sleep(IDLE).await;
    let idle: u64 = cells.iter().map(|cell| ticks(cell.id)).sum::<u64>() - before;
    let shares: u64 = cells.iter().map(|cell| share_kib(cell.id)).sum();
    for cell in &mut cells {
        if let Some(ended) = cell.daemon.try_wait()? {
            let what = format!("a daemon ended while it idled ({ended})");
            return Err(CliError::Failed {
                what,
                advice: None,
                cause: None,
            });
        }
    }
    let mut up: Vec<u128> = cells.iter().map(|cell| cell.up_after.as_millis()).collect();
    up.sort_unstable();
    let mut told = String::new();
    let (first, last) = (cells[0].up_after, cells[count - 1].up_after);
    let _ = writeln!(
        told,
        "{count} daemons, each with a database and a platform of its own, idle"
    );
    let _ = writeln!(
        told,
        "from start to the first poll   median {} ms, slowest {} ms; the first {} ms, the last {} ms",
        up[count / 2],
        up[count - 1],
        first.as_millis(),
        last.as_millis()
    );
    let _ = writeln!(
        told,
        "memory (proportional share)    {:.1} MiB each, {:.0} MiB together",
        mib(shares) / count as f64,
        mib(shares)
    );
    let each = idle as f64 * 1_000.0 / TICKS_A_SECOND as f64 / count as f64;
    let _ = writeln!(told, "a processor in an idle minute  {each:.0} ms each");
    Ok(told)
}

/// Starts one daemon, and waits until it polls its platform.
async fn started(home: &std::path::Path, n: usize) -> Result<Cell, CliError> {
    let folder = home.join(n.to_string());
    std::fs::create_dir(&folder)?;
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let platform = TelegramServer::start(TelegramWorld::team(), anywhere, WireLog::new()).await?;
    let config = folder.join("vocative.toml");
    let text = format!(
        "[daemon]\ndata_dir = \"{data}\"\nruntime_dir = \"{data}\"\n[models.default]\nprovider = \"offline\"\n\
         [agents.vocative]\nmodel = \"default\"\n[channels.telegram.team]\ntoken = \"env:LAB_TELEGRAM_TOKEN\"\n\
         api_url = \"{}\"\nallow_chats = [\"*\"]\nallow_people = [\"*\"]\n",
        platform.api_url(),
        data = folder.display(),
    );
    std::fs::write(&config, text)?;
    let log = std::fs::File::create(folder.join("daemon.log"))?;
    let begun = Instant::now();
    let daemon = Command::new(std::env::current_exe()?)
        .args([AS_DAEMON, "run", "--config"])
        .arg(&config)
        .env_clear()
        .env("HOME", &folder)
        .env("LAB_TELEGRAM_TOKEN", platform.token())
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .kill_on_drop(true)
        .spawn()?;
    while platform.polls_waiting() == 0 {
        if begun.elapsed() > WAIT {
            return Err(late("a daemon was not up", &folder));
        }
        tokio::time::sleep(LOOK / 10).await;
    }
    Ok(Cell {
        _platform: platform,
        id: daemon.id().unwrap_or_default(),
        daemon,
        up_after: begun.elapsed(),
    })
}

/// The processor time that a process used, in ticks.
fn ticks(id: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    // The process's name, in parentheses, may hold spaces.
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields = fields.split_whitespace().skip(11).take(2);
    fields.filter_map(|field| field.parse::<u64>().ok()).sum()
}

/// The memory of a process in KiB, with its part of the memory shared with others.
fn share_kib(id: u32) -> u64 {
    let rollup = std::fs::read_to_string(format!("/proc/{id}/smaps_rollup")).unwrap_or_default();
    let share = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
    let share = share.and_then(|share| share.split_whitespace().next());
    share.and_then(|kib| kib.parse().ok()).unwrap_or(0)
}

fn mib(kib: u64) -> f64 {
    kib as f64 / 1_024.0
}
