//! A thousand readers of one conversation's events: how long after the first of them the last one
//! knows that a run has ended, and what that takes.

use std::path::Path;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::sync::mpsc;

use crate::Fail;
use crate::stage::{self, BenchStage};
use crate::stats::{Sample, ms};

const READERS: usize = 1_000;
const QUESTIONS: usize = 100;
const PATIENCE: Duration = Duration::from_secs(60);
/// In its pace the platform takes one post a second and chat; what is measured ends before the post.
const PAUSE: Duration = Duration::from_millis(100);

pub(crate) async fn measure() -> Result<(), Fail> {
    let stage = BenchStage::build(1, 0).await?;
    stage.configure("[api]\nenabled = true\n")?;
    let daemon = stage.spawn_connected().await?;
    let socket = stage.folder().join("run/vocative-api.sock");
    let mut wire = stage.wire();
    ask(&stage, 0);
    let peer = vocative_sandbox::wire::WirePeer::Slack;
    stage::posted(&mut wire, peer, &stage::slack_direct(0)).await?;
    let conversation = conversation(&socket).await?;

    let before_kib = daemon.status("VmRSS")?;
    let (told, mut heard) = mpsc::channel(READERS);
    for _ in 0..READERS {
        let stream = follow(&socket, &conversation).await?;
        tokio::spawn(read(stream, told.clone()));
    }
    let with_kib = daemon.status("VmRSS")?;
    let (mut first, mut spread) = (Sample::default(), Sample::default());
    let mut cpu = Duration::ZERO;
    for question in 1..=QUESTIONS {
        let (asked, cpu_before) = (Instant::now(), daemon.cpu()?);
        ask(&stage, question);
        let mut ends = Vec::with_capacity(READERS);
        for _ in 0..READERS {
            let end = tokio::time::timeout(PATIENCE, heard.recv()).await?;
            ends.push(end.ok_or("a reader was cut off")?);
        }
        cpu += daemon.cpu()? - cpu_before;
        let (Some(earliest), Some(latest)) = (ends.iter().min(), ends.iter().max()) else {
            continue;
        };
        first.push(*earliest - asked);
        spread.push(*latest - *earliest);
        tokio::time::sleep(PAUSE).await;
    }
    println!(
        "readers: {READERS} of one conversation, {QUESTIONS} runs: question to the first reader's \
         ending p50 {}, p99 {}; first to last reader p50 {}, p99 {}",
        ms(first.median()),
        ms(first.percentile(99)),
        ms(spread.median()),
        ms(spread.percentile(99)),
    );
    println!(
        "readers: {:.1} µs of the daemon's processor time a reader and run; resident {:.1} MiB \
         without readers, {:.1} with, {:.1} at most",
        cpu.as_secs_f64() * 1e6 / (READERS * QUESTIONS) as f64,
        before_kib as f64 / 1_024.0,
        with_kib as f64 / 1_024.0,
        daemon.status("VmHWM")? as f64 / 1_024.0,
    );
    daemon.stop().await
}

fn ask(stage: &BenchStage, question: usize) {
    let (chat, person) = (stage::slack_direct(0), stage::slack_person(0));
    let text = format!("question {question}: is it up?");
    stage.slack.say(&chat, &person, &text);
}

async fn request(socket: &Path, path: &str) -> Result<UnixStream, Fail> {
    let mut stream = UnixStream::connect(socket).await?;
    let request = format!("GET {path} HTTP/1.0\r\nhost: vocative\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    Ok(stream)
}

/// The only conversation there is.
async fn conversation(socket: &Path) -> Result<String, Fail> {
    let mut answer = String::new();
    let mut stream = request(socket, "/v1/conversations").await?;
    stream.read_to_string(&mut answer).await?;
    let (_, body) = answer.split_once("\r\n\r\n").ok_or("no answer")?;
    let listed: serde_json::Value = serde_json::from_str(body)?;
    let id = listed["conversations"][0]["id"].as_str();
    Ok(id.ok_or("there is no conversation")?.to_owned())
}

/// A stream that is under way: it has told the id to come back with.
async fn follow(socket: &Path, conversation: &str) -> Result<UnixStream, Fail> {
    let path = format!("/v1/conversations/{conversation}/events");
    let mut stream = request(socket, &path).await?;
    let mut text = String::new();
    let mut bytes = [0; 1_024];
    while !text.contains("\nid: ") {
        let length = tokio::time::timeout(PATIENCE, stream.read(&mut bytes)).await??;
        if length == 0 {
            return Err(format!("no stream: {text}").into());
        }
        text.push_str(std::str::from_utf8(&bytes[..length])?);
    }
    Ok(stream)
}

/// Tells when each run has ended, as this reader hears it.
async fn read(mut stream: UnixStream, told: mpsc::Sender<Instant>) {
    const ENDING: &[u8] = b"\nevent: finished\n";
    let (mut heard, mut bytes) = (Vec::new(), [0; 8_192]);
    while let Ok(length @ 1..) = stream.read(&mut bytes).await {
        heard.extend_from_slice(&bytes[..length]);
        let found = heard.windows(ENDING.len()).position(|part| part == ENDING);
        if let Some(at) = found {
            heard.drain(..at + ENDING.len());
            if told.send(Instant::now()).await.is_err() {
                return;
            }
        }
    }
}
