//! `vocative conversations export`: page by page, so that memory does not grow with the length.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, ErrorKind, IsTerminal as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::args::{ExportArgs, ExportFormat};
use super::asking::Answerer;
use super::context::{CliContext, harmless};
use super::error::{CliError, Exit};
use super::export_files::FileCopies;
use super::markdown::{Messages, header};
use super::messages::{MessageForm, ProviderMessages};
use crate::admin::operations::AdminOperation;
use crate::admin::view::ExportPageView;

/// Writes a conversation to a file or to stdout.
pub(super) async fn run(args: &ExportArgs, context: &CliContext) -> Result<ExitCode, CliError> {
    let mut answerer = Answerer::new(context)?;
    let written = write(args, &mut answerer).await;
    answerer.close().await?;
    written?;
    Ok(Exit::Ok.into())
}

async fn write(args: &ExportArgs, answerer: &mut Answerer) -> Result<(), CliError> {
    let is_markdown = args.format == ExportFormat::Markdown;
    let provider = match args.format {
        ExportFormat::Openai => Some(MessageForm::OpenAi),
        ExportFormat::Anthropic => Some(MessageForm::Anthropic),
        ExportFormat::Jsonl | ExportFormat::Markdown => None,
    };
    if args.agent.is_some() && provider.is_none() {
        let told = "--agent says whose answers are the assistant's: give it with --format openai or anthropic";
        return Err(CliError::Usage(told.to_owned()));
    }
    let is_shown = is_markdown || provider.is_some();
    let mut of_provider = provider.map(|it| ProviderMessages::new(it, args.agent.clone()));
    let mut page: ExportPageView = answerer
        .ask(AdminOperation::Export {
            name: args.conversation.clone(),
            after: None,
            as_of: None,
            shown: is_shown,
        })
        .await?;
    let mut copies = match &args.files {
        Some(folder) => Some(FileCopies::new(answerer.database()?, folder.clone())),
        None => None,
    };
    let mut out = ExportTarget::open(args.output.as_deref())?;
    let mut messages = Messages::new(args.timezone);
    if is_markdown
        && !out.write(&header(
            &page.conversation,
            &page.participants,
            args.timezone,
        ))?
    {
        return Ok(());
    }
    if of_provider.is_some() && !out.write(ProviderMessages::begin())? {
        return Ok(());
    }
    loop {
        let mut text = String::new();
        if let Some(copies) = &mut copies {
            copies.take(&mut page.messages)?;
        }
        for message in &page.messages {
            if let Some(of_provider) = &mut of_provider {
                text.push_str(&of_provider.message(message));
            } else if is_markdown {
                text.push_str(&messages.message(message));
            } else {
                let line = serde_json::to_string(&message.line);
                text.push_str(&line.map_err(|cause| {
                    CliError::failed("a message can't be written as JSON", cause)
                })?);
                text.push('\n');
            }
        }
        if !out.write(&text)? {
            return Ok(());
        }
        let Some(next) = page.next else {
            if let Some(of_provider) = &mut of_provider
                && !out.write(&of_provider.end())?
            {
                return Ok(());
            }
            out.finish()?;
            return copies.map_or(Ok(()), FileCopies::finish);
        };
        page = answerer
            .ask(AdminOperation::Export {
                // By id, because the conversation may get another title meanwhile.
                name: page.conversation.id.clone(),
                after: Some(next),
                as_of: Some(page.as_of),
                shown: is_shown,
            })
            .await?;
    }
}

/// Where an export is written. A file gets its name only once it is whole.
enum ExportTarget {
    Stdout,
    File {
        file: BufWriter<File>,
        partial: PathBuf,
        path: PathBuf,
    },
}

impl ExportTarget {
    fn open(path: Option<&Path>) -> Result<Self, CliError> {
        let Some(path) = path.filter(|path| path.as_os_str() != "-") else {
            return Ok(Self::Stdout);
        };
        if path.symlink_metadata().is_ok() {
            return Err(there_already(path, "name another file with --output"));
        }
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&partial)
            .map_err(|cause| match cause.kind() {
                ErrorKind::AlreadyExists => there_already(
                    &partial,
                    "an export that was cut off left it, or another one is writing it: remove it, or name \
                     another file with --output",
                ),
                _ => unwritable(&partial, cause),
            })?;
        Ok(Self::File {
            file: BufWriter::new(file),
            partial,
            path: path.to_owned(),
        })
    }

    /// Writes the text; returns whether there is still a reader.
    fn write(&mut self, text: &str) -> Result<bool, CliError> {
        match self {
            Self::Stdout => {
                let stdout = std::io::stdout();
                // On a terminal, typed text must not steer it. A file or a program gets the text unchanged.
                let shown = if stdout.is_terminal() {
                    harmless(text)
                } else {
                    text.into()
                };
                match stdout.lock().write_all(shown.as_bytes()) {
                    Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
                    Err(error) => Err(CliError::failed("stdout can't be written", error)),
                    Ok(()) => Ok(true),
                }
            }
            Self::File { file, partial, .. } => file
                .write_all(text.as_bytes())
                .map(|()| true)
                .map_err(|cause| unwritable(partial, cause)),
        }
    }

    fn finish(self) -> Result<(), CliError> {
        match self {
            Self::Stdout => match std::io::stdout().flush() {
                Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                    Err(CliError::failed("stdout can't be written", error))
                }
                _ => Ok(()),
            },
            Self::File {
                mut file,
                partial,
                path,
            } => file
                .flush()
                .and_then(|()| file.get_ref().sync_all())
                .and_then(|()| rename_to_new(&partial, &path))
                .map_err(|cause| unwritable(&path, cause)),
        }
    }
}

/// Renames a file to a name that is free. If a file took that name meanwhile, it is kept where the file system can
/// rename without replacing.
fn rename_to_new(from: &Path, to: &Path) -> std::io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS) => std::fs::rename(from, to),
        renamed => Ok(renamed?),
    }
}

fn there_already(path: &Path, advice: &str) -> CliError {
    CliError::Failed {
        what: format!("{} is there already", path.display()),
        advice: Some(advice.to_owned()),
        cause: None,
    }
}

fn unwritable(path: &Path, cause: std::io::Error) -> CliError {
    CliError::failed(format!("{} can't be written", path.display()), cause)
}
