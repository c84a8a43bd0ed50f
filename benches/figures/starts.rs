//! From the start of the process to the first poll and the first hello, and what it holds when idle.

use std::time::{Duration, Instant};

use crate::Fail;
use crate::stage::{BenchStage, connected};
use crate::stats::Sample;

const STARTS: usize = 20;
const IDLE: Duration = Duration::from_secs(2);

pub(crate) async fn measure() -> Result<(), Fail> {
    let stage = BenchStage::build(0, 0).await?;
    for is_first in [true, false] {
        let (mut polls, mut hellos) = (Sample::default(), Sample::default());
        for n in 0..STARTS {
            if is_first && n > 0 {
                stage.forget()?;
            }
            let mut wire = stage.wire();
            let since = Instant::now();
            let daemon = stage.spawn()?;
            let (poll, hello) = connected(&mut wire, since).await?;
            daemon.stop().await?;
            polls.push(poll);
            hellos.push(hello);
        }
        let database = if is_first { "new" } else { "existing" };
        println!("start, {database} database, first poll: {}", polls.spread());
        println!(
            "start, {database} database, first hello: {}",
            hellos.spread()
        );
    }
    Ok(())
}

pub(crate) async fn measure_memory(rounds: usize) -> Result<(), Fail> {
    for round in 0..rounds {
        let stage = BenchStage::build(0, 0).await?;
        let daemon = stage.spawn_connected().await?;
        tokio::time::sleep(IDLE).await;
        let mib = |field: &str| -> Result<f64, Fail> { Ok(daemon.status(field)? as f64 / 1_024.0) };
        println!(
            "idle, round {round}: resident {:.1} MiB (anonymous {:.1}, files {:.1}), {} threads",
            mib("VmRSS")?,
            mib("RssAnon")?,
            mib("RssFile")?,
            daemon.status("Threads")?
        );
        daemon.stop().await?;
    }
    Ok(())
}
