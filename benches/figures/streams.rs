//! What a long answer costs that the model streams: memory while it is written and kept, and
//! processor time for each piece.
//!
//! The same megabyte of text comes in few and in many pieces; the difference in processor time is the
//! price of a piece. The rest is what such an answer costs however it comes.

use std::time::Duration;

use vocative_sandbox::model::{ModelReply, ModelServer};
use vocative_sandbox::wire::{WireLog, WirePeer};

use crate::Fail;
use crate::stage::{self, BenchStage};
use crate::stats::ms;

const TEXT_BYTES: usize = 1 << 20;
const FEW: usize = 1 << 8;
const MANY: usize = 1 << 16;
/// The daemon rests so long before its memory is read.
const REST: Duration = Duration::from_secs(2);

pub(crate) async fn measure(rounds: usize) -> Result<(), Fail> {
    for round in 0..rounds {
        let few = stream(FEW).await?;
        let many = stream(MANY).await?;
        let pieces = u32::try_from(MANY - FEW)?;
        let each = many.cpu.saturating_sub(few.cpu) / pieces;
        println!(
            "streams, round {round}: 1 MiB in {MANY} pieces: resident {} KiB before, at most {} KiB, \
             {} KiB afterwards; processor time {} (in {FEW} pieces: {}, at most {} KiB), {:.2} µs a \
             piece",
            many.before_kib,
            many.peak_kib,
            many.after_kib,
            ms(many.cpu),
            ms(few.cpu),
            few.peak_kib,
            each.as_secs_f64() * 1e6,
        );
    }
    Ok(())
}

struct StreamsCost {
    before_kib: u64,
    peak_kib: u64,
    after_kib: u64,
    cpu: Duration,
}

/// One answer of a megabyte, to a daemon that has answered before.
async fn stream(pieces: usize) -> Result<StreamsCost, Fail> {
    let stage = BenchStage::build(2, 0).await?;
    let model = ModelServer::start(([127, 0, 0, 1], 0).into(), WireLog::new()).await?;
    stage.ask_model_at(&model.openai_url())?;
    let daemon = stage.spawn_connected().await?;
    ask(&stage, 0).await?;
    tokio::time::sleep(REST).await;
    let (before_kib, cpu) = (daemon.status("VmRSS")?, daemon.cpu()?);
    let line = "Once upon a time there was a ledge, and then there was another one.\n";
    let text: String = line.chars().cycle().take(TEXT_BYTES).collect();
    model.enqueue(ModelReply::text(&text).paced(pieces, Duration::ZERO));
    ask(&stage, 1).await?;
    let cpu = daemon.cpu()?.saturating_sub(cpu);
    let peak_kib = daemon.status("VmHWM")?;
    tokio::time::sleep(REST).await;
    let after_kib = daemon.status("VmRSS")?;
    daemon.kill().await?;
    model.stop().await;
    Ok(StreamsCost {
        before_kib,
        peak_kib,
        after_kib,
        cpu,
    })
}

/// Asks in a person's direct chat, and waits for the first post of the answer.
async fn ask(stage: &BenchStage, person: usize) -> Result<(), Fail> {
    let mut wire = stage.wire();
    let chat = stage::slack_direct(person);
    stage
        .slack
        .say(&chat, &stage::slack_person(person), "tell me");
    stage::posted(&mut wire, WirePeer::Slack, &chat).await?;
    Ok(())
}
