//! Converts PDF to text with a program of the operator's: it is confined like a tool's, gets the file on its standard
//! input and writes the text, with a form feed between two pages. A program that reads a hostile file has none of our
//! files, no network, and a time limit.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};

use super::opening::UnreadFile;
use crate::confining::NOT_STARTED;
use crate::tools::program::{Program, RunningProgram};

/// How long a file may take.
const TIME_MAX: Duration = Duration::from_secs(60);
/// The longest text that is accepted, in bytes; a program that writes more is ended.
const TEXT_MAX_BYTES: u64 = 8 << 20;
/// How much of a program's error output is kept, in bytes.
const LOG_MAX_BYTES: u64 = 2_000;

/// The text of a file.
pub(super) async fn converted(program: &Program, bytes: Vec<u8>) -> Result<String, UnreadFile> {
    let refused =
        |what: String| UnreadFile::Refused(format!("no text could be made of it: {what}"));
    match tokio::time::timeout(TIME_MAX, run(program, bytes)).await {
        Err(_) => Err(refused(format!(
            "the program took longer than {} s",
            TIME_MAX.as_secs()
        ))),
        Ok(Err(ConverterEnd::NotStarted(what))) => Err(UnreadFile::Failed(format!(
            "the program for PDF was not started: {what}"
        ))),
        Ok(Err(ConverterEnd::Badly(what))) => Err(refused(what)),
        Ok(Ok(text)) => String::from_utf8(text)
            .map_err(|_| refused("what the program said is not UTF-8".to_owned())),
    }
}

enum ConverterEnd {
    NotStarted(String),
    Badly(String),
}

async fn run(program: &Program, bytes: Vec<u8>) -> Result<Vec<u8>, ConverterEnd> {
    let running = program.start(&[]);
    let RunningProgram {
        mut program,
        mut streams,
        own_folder,
    } = running.map_err(|error| ConverterEnd::NotStarted(error.to_string()))?;
    let feeding = async {
        // A program that ends early did not want the rest.
        let _ = streams.stdin.write_all(&bytes).await;
        drop(streams.stdin);
    };
    let streaming = async {
        let text = said(streams.stdout, TEXT_MAX_BYTES);
        let log = said(streams.stderr, LOG_MAX_BYTES);
        tokio::join!(feeding, text, log)
    };
    let excess = program.exceeds();
    tokio::pin!(streaming, excess);
    let mut all = None;
    let ended = loop {
        tokio::select! {
            ended = program.ended() => break ended,
            said = &mut streaming, if all.is_none() => {
                let (_, text, _) = &said;
                if text.is_long {
                    return Err(ConverterEnd::Badly(format!("the program said more than {} MiB", TEXT_MAX_BYTES >> 20)));
                }
                all = Some(said);
            }
            excess = &mut excess => return Err(ConverterEnd::Badly(excess.to_string())),
        }
    };
    let (_, text, log) = match all {
        Some(all) => all,
        None => streaming.await,
    };
    drop(own_folder);
    let log = String::from_utf8_lossy(&log.kept).trim().to_owned();
    match ended {
        Err(error) => Err(ConverterEnd::Badly(error.to_string())),
        Ok(status) if status.success() => match text.is_long {
            true => Err(ConverterEnd::Badly(format!(
                "the program said more than {} MiB",
                TEXT_MAX_BYTES >> 20
            ))),
            false => Ok(text.kept),
        },
        Ok(status) if status.code() == Some(i32::from(NOT_STARTED)) => {
            Err(ConverterEnd::NotStarted(log))
        }
        Ok(status) => Err(ConverterEnd::Badly(format!(
            "the program ended with {status}: {log}"
        ))),
    }
}

struct ConverterOutput {
    kept: Vec<u8>,
    is_long: bool,
}

/// The output of a stream, up to a limit; a little of the rest is read and dropped.
async fn said(stream: impl AsyncRead + Unpin, max: u64) -> ConverterOutput {
    let mut stream = stream.take(TEXT_MAX_BYTES * 2);
    let mut kept = Vec::new();
    let _ = (&mut stream).take(max).read_to_end(&mut kept).await;
    let rest = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    ConverterOutput {
        kept,
        is_long: rest.is_ok_and(|rest| rest > 0),
    }
}
