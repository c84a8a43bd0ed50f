//! Questions and answers on a terminal. A secret is not shown while it is typed, and Ctrl-C leaves the terminal as it
//! was.

use std::io::{IsTerminal as _, Write as _};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use secrecy::SecretString;
use tokio::io::{AsyncBufReadExt as _, BufReader, Stdin};

use crate::cli::CliError;
use crate::cli::context::{CliContext, harmless};

/// The longest line that is read, in bytes.
const LINE_BYTES_MAX: usize = 8_192;

/// Asks the person at the terminal.
pub(super) struct Dialogue<'a> {
    context: &'a CliContext,
    input: BufReader<Stdin>,
    /// Whether questions are impossible, because of `--non-interactive`.
    is_mute: bool,
}

/// Keeps the echo of the terminal off until it is dropped.
struct Hidden(Option<Termios>);

impl Hidden {
    fn begin() -> Self {
        let stdin = std::io::stdin();
        if !stdin.is_terminal() {
            return Self(None);
        }
        let Ok(before) = tcgetattr(&stdin) else {
            return Self(None);
        };
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        silent.local_modes.insert(LocalModes::ECHONL);
        let is_set = tcsetattr(&stdin, OptionalActions::Now, &silent).is_ok();
        Self(is_set.then_some(before))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // If the terminal is gone, nothing has to be restored.
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, before);
        }
    }
}

impl<'a> Dialogue<'a> {
    /// A dialogue with the person at the terminal; with `is_mute` nobody is asked.
    pub(super) fn new(context: &'a CliContext, is_mute: bool) -> Self {
        Self {
            context,
            input: BufReader::new(tokio::io::stdin()),
            is_mute,
        }
    }

    /// Whether nobody may be asked.
    pub(super) fn is_mute(&self) -> bool {
        self.is_mute
    }

    /// Prints a line.
    pub(super) fn say(&self, text: &str) -> Result<(), CliError> {
        self.context.print(&format!("{text}\n"))
    }

    /// Asks for one line; an empty one means the default.
    pub(super) async fn ask(&mut self, question: &str, default: &str) -> Result<String, CliError> {
        let shown = match default {
            "" => format!("{question}: "),
            default => format!("{question} [{default}]: "),
        };
        self.prompt(&shown)?;
        let line = self.line().await?;
        Ok(match line.trim() {
            "" => default.to_owned(),
            typed => typed.to_owned(),
        })
    }

    /// Asks for a secret, which is not shown while it is typed.
    pub(super) async fn ask_secret(&mut self, question: &str) -> Result<SecretString, CliError> {
        let hidden = Hidden::begin();
        self.prompt(&format!("{question} (not shown): "))?;
        let line = self.line().await;
        drop(hidden);
        Ok(SecretString::from(line?.trim().to_owned()))
    }

    /// Asks for one of several choices, by number or by word; returns its index.
    pub(super) async fn choose(
        &mut self,
        question: &str,
        choices: &[(&str, String)],
        default: usize,
    ) -> Result<usize, CliError> {
        self.say(question)?;
        for (number, (word, what)) in choices.iter().enumerate() {
            self.say(&format!("  {}  {word:<9}  {what}", number + 1))?;
        }
        loop {
            let typed = self.ask("Which", choices[default].0).await?;
            let by_number = typed.parse::<usize>().ok();
            let chosen = match by_number.and_then(|number| number.checked_sub(1)) {
                Some(place) => (place < choices.len()).then_some(place),
                None => choices.iter().position(|(word, _)| *word == typed),
            };
            if let Some(place) = chosen {
                return Ok(place);
            }
            self.say(&format!("\"{}\" is none of them.", harmless(&typed)))?;
        }
    }

    fn prompt(&self, text: &str) -> Result<(), CliError> {
        self.context.print(text)
    }

    /// Reads the next line. Ctrl-C and the end of the input end the set-up.
    async fn line(&mut self) -> Result<String, CliError> {
        let mut line = Vec::new();
        let read = tokio::select! {
            read = self.input.read_until(b'\n', &mut line) => read,
            _ = tokio::signal::ctrl_c() => return Err(given_up("interrupted")),
        };
        let read = read.map_err(|cause| CliError::failed("the answer can't be read", cause))?;
        if read == 0 {
            return Err(given_up("the input ended"));
        }
        if line.len() > LINE_BYTES_MAX {
            return Err(given_up("a line is too long for an answer"));
        }
        let _ = std::io::stdout().flush();
        String::from_utf8(line).map_err(|_| given_up("an answer is no UTF-8"))
    }
}

/// The error for a set-up that ended before anything was written.
pub(super) fn given_up(why: &str) -> CliError {
    CliError::Failed {
        what: format!("{why}; the set-up was given up"),
        advice: Some(
            "begin again with `vocative setup`; answers can be given as options, too".to_owned(),
        ),
        cause: None,
    }
}
