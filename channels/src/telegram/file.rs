//! Fetches files: `getFile` says where, then one download. The token is part of the address, so none
//! leaves this module.

use std::sync::Arc;

use crate::download::{broken, refused_status, take_body};
use crate::http::retry_after_ms;
use vocative_contract::channel::BoxFuture;
use vocative_contract::error::ChannelError;
use vocative_contract::file::{FileError, FileSink, FileSource};

use super::api::{Parameters, TelegramApi};
use super::wire::StoredFile;

/// The file half of a Telegram channel.
#[derive(Debug)]
pub(super) struct TelegramFiles {
    api: Arc<TelegramApi>,
}

impl TelegramFiles {
    pub(super) fn new(api: Arc<TelegramApi>) -> Self {
        Self { api }
    }

    async fn fetch_into(
        &self,
        file: &str,
        bytes_max: u64,
        sink: &mut dyn FileSink,
    ) -> Result<(), FileError> {
        let mut parameters = Parameters::new();
        parameters.insert("file_id".to_owned(), file.into());
        let asked = self.api.call("getFile", &parameters).await;
        let stored: StoredFile = asked.map_err(|failure| meaning(failure.into_error("getFile")))?;
        if let Some(size) = stored.file_size.filter(|size| *size > bytes_max) {
            return Err(FileError::TooLarge {
                size_bytes: Some(size),
            });
        }
        let path = stored.file_path.as_deref().unwrap_or_default();
        if !is_remote_path(path) {
            return Err(FileError::Refused {
                reason: "the Bot API server names no path that can be downloaded; is it one with \
                         --local?"
                    .to_owned(),
            });
        }
        let response = self.api.download(path).await.map_err(|error| match error {
            Ok(error) => meaning(error),
            Err(error) => broken(&error),
        })?;
        let status = response.status();
        if !status.is_success() {
            let wait_ms = retry_after_ms(response.headers());
            return Err(match refused_status(status.as_u16(), wait_ms) {
                // The file exists, as getFile said; only its path has expired, and the next try asks for a new one.
                FileError::Gone { reason } => FileError::Failed { reason },
                error => error,
            });
        }
        let taken = take_body(response, bytes_max, sink).await?;
        match stored.file_size.filter(|size| *size != taken) {
            Some(size) => Err(FileError::Failed {
                reason: format!("{taken} bytes came of {size}"),
            }),
            None => Ok(()),
        }
    }
}

impl FileSource for TelegramFiles {
    fn fetch<'a>(
        &'a self,
        file: &'a str,
        bytes_max: u64,
        sink: &'a mut dyn FileSink,
    ) -> BoxFuture<'a, Result<(), FileError>> {
        Box::pin(self.fetch_into(file, bytes_max, sink))
    }
}

/// Whether a path lies below the download address. A local Bot API server names files of its own machine instead.
fn is_remote_path(path: &str) -> bool {
    // Other characters are escaped where needed: file name endings may be in any script.
    let is_plain = |c: char| !c.is_control() && !"?#%\\".contains(c);
    !path.is_empty()
        && !path.starts_with('/')
        && path.chars().all(is_plain)
        && path
            .split('/')
            .all(|part| !part.is_empty() && part != "." && part != "..")
}

/// What a refusal of `getFile` means for the file.
fn meaning(error: ChannelError) -> FileError {
    match error {
        ChannelError::RetryAfter { wait_ms, .. } => FileError::RetryAfter { wait_ms },
        // Telegram refuses the account, not the file: once a person has fixed the account, the file can be fetched.
        ChannelError::Unauthorized { reason, .. } => FileError::Failed { reason },
        ChannelError::ChatRefused { reason, .. } => FileError::Refused { reason },
        ChannelError::Rejected { reason, .. } => {
            let words = reason.to_ascii_lowercase();
            if words.contains("too big") {
                FileError::TooLarge { size_bytes: None }
            } else if words.contains("temporarily") {
                FileError::Failed { reason }
            } else if words.contains("file_id") || words.contains("file identifier") {
                FileError::Gone { reason }
            } else {
                FileError::Refused { reason }
            }
        }
        other => FileError::Failed {
            reason: other.reason(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_below_the_download_address_count() {
        for good in [
            "documents/file_1.md",
            "photos/a-b.jpg",
            "documents/file_2.тхт",
        ] {
            assert!(is_remote_path(good), "{good}");
        }
        for bad in [
            "",
            "/etc/passwd",
            "a/../b",
            "a//b",
            "a?b=c",
            "a/%2e%2e/b",
            "https://x/y",
            "../a",
        ] {
            assert!(!is_remote_path(bad), "{bad}");
        }
    }
}
