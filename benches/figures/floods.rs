//! Unaddressed messages per second, each committed before it is acknowledged.

use std::time::{Duration, Instant};

use vocative_sandbox::slack::RetryPlan;
use vocative_sandbox::telegram::TelegramWorld;

use crate::Fail;
use crate::stage::{self, BenchStage};

const MESSAGES: usize = 20_000;
const ROOMS: usize = 20;
const PATIENCE: Duration = Duration::from_secs(300);

pub(crate) async fn measure(rounds: usize) -> Result<(), Fail> {
    for round in 0..rounds {
        let (took, cpu) = flood_slack().await?;
        print("Slack", round, took, cpu);
    }
    for round in 0..rounds {
        let (took, cpu) = flood_telegram().await?;
        print("Telegram", round, took, cpu);
    }
    Ok(())
}

/// From the first event to the last acknowledgement.
async fn flood_slack() -> Result<(Duration, Duration), Fail> {
    let stage = BenchStage::build(0, ROOMS).await?;
    // Nothing is sent twice while the flood waits for its turn.
    stage.slack.faults().set_retry_plan(RetryPlan {
        after_ms: vec![600_000],
        ..RetryPlan::default()
    });
    let daemon = stage.spawn_connected().await?;
    let cpu_before = daemon.cpu()?;
    let started = Instant::now();
    for n in 0..MESSAGES {
        let room = stage::slack_room(n % ROOMS);
        stage.slack.say(&room, "U0ANN", &text(n));
        if n % 64 == 0 {
            tokio::task::yield_now().await;
        }
    }
    if !stage.slack.wait_until_all_acked(PATIENCE).await {
        return Err("Slack's flood was not acknowledged in time".into());
    }
    let (took, cpu) = (started.elapsed(), daemon.cpu()? - cpu_before);
    daemon.stop().await?;
    let violations = stage.slack.violations();
    if let Some(violation) = violations.first() {
        return Err(format!("the daemon broke a rule of Slack: {violation}").into());
    }
    Ok((took, cpu))
}

/// All of it waits when the daemon starts: from its first poll to the poll that confirms the last.
async fn flood_telegram() -> Result<(Duration, Duration), Fail> {
    let stage = BenchStage::build(0, ROOMS).await?;
    for n in 0..MESSAGES {
        let room = stage::telegram_room(n % ROOMS);
        stage.telegram.say(room, TelegramWorld::ANN, &text(n));
    }
    let mut wire = stage.wire();
    let daemon = stage.spawn()?;
    let started = stage::polled(&mut wire).await?;
    let cpu_before = daemon.cpu()?;
    drop(wire);
    if !stage.telegram.wait_until_confirmed(PATIENCE).await {
        return Err("Telegram's flood was not confirmed in time".into());
    }
    let (took, cpu) = (started.elapsed(), daemon.cpu()? - cpu_before);
    daemon.stop().await?;
    Ok((took, cpu))
}

fn text(n: usize) -> String {
    format!("message {n}: the build of the release branch is green again, see the dashboard")
}

fn print(platform: &str, round: usize, took: Duration, cpu: Duration) {
    let per_second = MESSAGES as f64 / took.as_secs_f64();
    let cpu_us = cpu.as_secs_f64() * 1e6 / MESSAGES as f64;
    println!(
        "flood, {platform}, round {round}: {per_second:.0} messages a second ({MESSAGES} in {:.2} s); \
         the daemon's processor time is {cpu_us:.0} µs a message",
        took.as_secs_f64()
    );
}
