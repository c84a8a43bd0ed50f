//! One run of a program, and what its end means.

use std::collections::VecDeque;
use std::process::ExitStatus;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};

use super::{CALL_ID, CommandTool};
use crate::confining::NOT_STARTED;
use crate::tools::outside::{fenced, without_secrets};
use crate::tools::program::RunningProgram;
use crate::tools::{CallContext, ToolError, ToolOutput};

/// How much of a failed program's log is shown, in characters, counted from its end.
const LOG_MAX_CHARS: usize = 4_000;
/// How much of a program's log is kept, in bytes.
const LOG_MAX_BYTES: usize = 4 * LOG_MAX_CHARS;
/// A program that writes this much to one stream is ended, in bytes. Output over the tool's own limit is left out.
const SAID_MAX_BYTES: usize = 16 << 20;

/// The output of a program.
#[derive(Debug, Default)]
struct ProgramOutput {
    answer: Vec<u8>,
    answer_bytes: usize,
    log: VecDeque<u8>,
}

/// A stream has more output than is read of any program.
#[derive(Debug)]
struct Endless;

/// Runs the program.
pub(super) async fn run(
    tool: &CommandTool,
    arguments: &Value,
    context: &CallContext,
) -> Result<ToolOutput, ToolError> {
    let call = context.call.to_string();
    let running = tool.program.start(&[(CALL_ID, &call)]);
    let running = running
        .map_err(|error| ToolError::Failed(format!("the program can't be started: {error}")))?;
    let RunningProgram {
        mut program,
        mut streams,
        own_folder,
    } = running;
    let input = format!("{arguments}\n");
    let feeding = async {
        // A write error is ignored: the program may end without reading its arguments.
        let _ = streams.stdin.write_all(input.as_bytes()).await;
        drop(streams.stdin);
        Ok(())
    };
    let answer_bytes_max = tool.settings.answer_bytes_max;
    let streaming = async {
        let answering = answer(streams.stdout, answer_bytes_max);
        let ((), (answer, answer_bytes), log) =
            tokio::try_join!(feeding, answering, log(streams.stderr))?;
        Ok::<_, Endless>(ProgramOutput {
            answer,
            answer_bytes,
            log,
        })
    };
    let excess = program.exceeds();
    tokio::pin!(streaming, excess);
    let mut said = None;
    let ended = loop {
        tokio::select! {
            ended = program.ended() => break ended,
            all = &mut streaming, if said.is_none() => said = Some(all.map_err(broken_off)?),
            excess = &mut excess => return Err(broken_off(excess)),
        }
    };
    let said = match said {
        Some(said) => said,
        None => streaming.await.map_err(broken_off)?,
    };
    drop(own_folder);
    let ended = ended.map_err(|error| broken_off(format!("its end was missed: {error}")))?;
    outcome(tool, ended, &said)
}

impl std::fmt::Display for Endless {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "it said more than {} MiB", SAID_MAX_BYTES >> 20)
    }
}

fn broken_off(why: impl std::fmt::Display) -> ToolError {
    ToolError::Unknown(format!("the program was ended: {why}"))
}

fn outcome(
    tool: &CommandTool,
    ended: ExitStatus,
    said: &ProgramOutput,
) -> Result<ToolOutput, ToolError> {
    let readable = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        without_secrets(&text, tool.program.secrets.iter().map(|it| &it.1))
    };
    let answer = readable(&said.answer);
    if !ended.success() {
        let log = readable(&said.log.iter().copied().collect::<Vec<u8>>());
        let skipped = log.chars().count().saturating_sub(LOG_MAX_CHARS);
        let log: String = log.chars().skip(skipped).collect();
        let Some(code) = ended.code() else {
            return Err(ToolError::Unknown(format!(
                "the program was ended: {ended}"
            )));
        };
        if code == i32::from(NOT_STARTED) && answer.is_empty() {
            return Err(ToolError::Failed(format!(
                "the program was not started: {}",
                log.trim()
            )));
        }
        let answer: String = answer.chars().take(LOG_MAX_CHARS).collect();
        return Err(ToolError::Failed(fenced([
            ("exit_code", code.into()),
            ("stderr", log.into()),
            ("data", answer.into()),
        ])));
    }
    let data = serde_json::from_str(&answer).unwrap_or(Value::String(answer));
    let content = match said.answer_bytes - said.answer.len() {
        0 => fenced([("exit_code", 0.into()), ("data", data)]),
        left_out => fenced([
            ("exit_code", 0.into()),
            ("data", data),
            ("left_out_bytes", left_out.into()),
        ]),
    };
    Ok(ToolOutput {
        content,
        sources: Vec::new(),
        files: Vec::new(),
    })
}

/// Keeps the first bytes of a stream, and counts all of them.
async fn answer(
    mut stream: impl AsyncRead + Unpin,
    kept_max: usize,
) -> Result<(Vec<u8>, usize), Endless> {
    let (mut kept, mut bytes) = (Vec::new(), 0);
    let mut buffer = vec![0; 16 << 10];
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        bytes += read;
        if bytes >= SAID_MAX_BYTES {
            return Err(Endless);
        }
        let room = kept_max.saturating_sub(kept.len()).min(read);
        kept.extend_from_slice(&buffer[..room]);
    }
    Ok((kept, bytes))
}

/// Keeps the last bytes of a stream.
async fn log(mut stream: impl AsyncRead + Unpin) -> Result<VecDeque<u8>, Endless> {
    let (mut kept, mut bytes) = (VecDeque::new(), 0);
    let mut buffer = vec![0; 4 << 10];
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        bytes += read;
        if bytes >= SAID_MAX_BYTES {
            return Err(Endless);
        }
        kept.extend(&buffer[..read]);
        kept.drain(..kept.len().saturating_sub(LOG_MAX_BYTES));
    }
    Ok(kept)
}
