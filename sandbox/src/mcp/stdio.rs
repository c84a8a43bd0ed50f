//! The server over standard streams: one message a line.

use std::io::{BufRead as _, Write as _};
use std::path::Path;

use super::world::{McpReply, McpSession, McpWorld};

/// Serves the world of a file until the input ends. The file is read again for each message, so that it can be changed.
///
/// # Errors
/// If a stream or the file can't be read.
pub fn serve_stdio(file: &Path) -> std::io::Result<()> {
    let mut session = McpSession::default();
    let mut out = std::io::stdout();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let mut world: McpWorld = serde_json::from_slice(&std::fs::read(file)?)?;
        let message = serde_json::from_str(&line)?;
        match world.answer(&message, &mut session) {
            McpReply::Message(message) | McpReply::Notify(message) | McpReply::Ask(message) => {
                writeln!(out, "{message}")?;
            }
            McpReply::Broken => writeln!(out, "this is no message")?,
            McpReply::Die => return Ok(()),
            McpReply::Nothing | McpReply::Hang => {}
        }
        out.flush()?;
        eprintln!("answered {}", message["method"]);
    }
    Ok(())
}
