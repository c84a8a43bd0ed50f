//! Fetches files: `files.info` says where, then one download with the bot's token.
//!
//! The token goes to Slack and to nobody else: a file's address counts only when its host is Slack's or that of
//! `api_url`, and a redirect to another one is followed without it, if that is of the internet. A client without a
//! right to a file gets a sign-in page with HTTP 200, so a page of HTML in place of something else is a refusal.

use std::sync::Arc;

use http::header::{CONTENT_TYPE, LOCATION};
use reqwest::{Response, Url};

use crate::download::{REDIRECTS_MAX, refused_status, take_body};
use crate::http::retry_after_ms;
use vocative_contract::channel::BoxFuture;
use vocative_contract::error::ChannelError;
use vocative_contract::file::{FileDescription, FileError, FileSink, FileSource};

use super::api::{SlackApi, Token, not_fetched_from};
use super::text;
use super::translate::{file_kind, file_name};
use super::wire::{File, FileInfo, FileInfoAnswer, Maybe};

/// What to do about a file that the token has no right to.
const ADD_SCOPE: &str =
    "Slack shows its sign-in page; add the scope files:read and reinstall the app";

/// The file half of a Slack channel.
#[derive(Debug)]
pub(super) struct SlackFiles {
    api: Arc<SlackApi>,
}

impl SlackFiles {
    pub(super) fn new(api: Arc<SlackApi>) -> Self {
        Self { api }
    }

    async fn fetch_into(
        &self,
        file: &str,
        bytes_max: u64,
        sink: &mut dyn FileSink,
    ) -> Result<(), FileError> {
        let info = self.info(file).await?;
        let address = wanted(&info, bytes_max)?;
        let address = Url::parse(&address).map_err(|_| no_address())?;
        if !self.api.is_own_host(&address) {
            return Err(FileError::Refused {
                reason: "its address is not one of Slack's".to_owned(),
            });
        }
        let response = self.download(address).await?;
        check_page(&info, &response)?;
        let taken = take_body(response, bytes_max, sink).await?;
        match info.size.filter(|size| *size != taken) {
            // Either a sign-in page came in place of a file that is HTML itself, or the transfer ended early without an
            // error.
            Some(size) => Err(FileError::Failed {
                reason: format!("{taken} bytes came of {size}"),
            }),
            None => Ok(()),
        }
    }

    async fn info(&self, file: &str) -> Result<FileInfo, FileError> {
        let arguments = [("file", file.to_owned())];
        let asked = self.api.read_as("files.info", Token::Bot, &arguments);
        let answer: FileInfoAnswer = asked.await.map_err(meaning)?;
        answer.file.0.ok_or_else(|| FileError::Failed {
            reason: "files.info names no file".to_owned(),
        })
    }

    async fn download(&self, address: Url) -> Result<Response, FileError> {
        let mut address = address;
        for _ in 0..=REDIRECTS_MAX {
            let response = self.api.download(address.clone()).await?;
            let status = response.status();
            if status.is_success() {
                return Ok(response);
            }
            if !status.is_redirection() {
                let wait_ms = retry_after_ms(response.headers());
                return Err(refused_status(status.as_u16(), wait_ms));
            }
            let to = response.headers().get(LOCATION);
            let to = to.and_then(|to| to.to_str().ok());
            address = to
                .and_then(|to| address.join(to).ok())
                .ok_or_else(no_address)?;
            if !self.api.may_lead_to(&address) {
                return Err(not_fetched_from());
            }
        }
        Err(FileError::Refused {
            reason: "it is redirected again and again".to_owned(),
        })
    }
}

impl FileSource for SlackFiles {
    fn describe<'a>(
        &'a self,
        file: &'a str,
    ) -> BoxFuture<'a, Result<Option<FileDescription>, FileError>> {
        Box::pin(async move { Ok(Some(description(&self.info(file).await?))) })
    }

    fn fetch<'a>(
        &'a self,
        file: &'a str,
        bytes_max: u64,
        sink: &'a mut dyn FileSink,
    ) -> BoxFuture<'a, Result<(), FileError>> {
        Box::pin(self.fetch_into(file, bytes_max, sink))
    }
}

/// What `files.info` says of a file, for a message that did not.
fn description(info: &FileInfo) -> FileDescription {
    let file = File {
        name: Maybe(info.name.0.clone()),
        title: Maybe(info.title.0.clone()),
        mimetype: Maybe(info.mimetype.0.clone()),
        subtype: Maybe(info.subtype.0.clone()),
        ..File::default()
    };
    FileDescription {
        kind: file_kind(&file).to_owned(),
        name: file_name(&file),
        mime_type: text::name(info.mimetype.as_deref()),
        size_bytes: *info.size,
    }
}

fn no_address() -> FileError {
    FileError::Refused {
        reason: "it has no address that can be used".to_owned(),
    }
}

/// Where a file can be fetched, if it can.
fn wanted(info: &FileInfo, bytes_max: u64) -> Result<String, FileError> {
    match info.mode.as_deref() {
        _ if *info.is_external == Some(true) => {
            return Err(FileError::Refused {
                reason: "it is kept outside Slack".to_owned(),
            });
        }
        Some("tombstone") => {
            return Err(FileError::Gone {
                reason: "it was deleted".to_owned(),
            });
        }
        Some("hidden_by_limit") => {
            return Err(FileError::Refused {
                reason: "the workspace's plan hides it".to_owned(),
            });
        }
        Some("post") => {
            return Err(FileError::Refused {
                reason: "it is a document of Slack's own, which has no file".to_owned(),
            });
        }
        Some("external") => {
            return Err(FileError::Refused {
                reason: "it is kept outside Slack".to_owned(),
            });
        }
        _ => {}
    }
    if let Some(size) = info.size.filter(|size| *size > bytes_max) {
        return Err(FileError::TooLarge {
            size_bytes: Some(size),
        });
    }
    let address = info.url_private_download.0.clone();
    address
        .or_else(|| info.url_private.0.clone())
        .ok_or_else(no_address)
}

/// Refuses a page that stands in place of something else.
fn check_page(info: &FileInfo, response: &Response) -> Result<(), FileError> {
    let is_page = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .is_some_and(|kind| kind.trim_start().starts_with("text/html"));
    let is_meant = info
        .mimetype
        .as_deref()
        .is_some_and(|kind| kind.contains("html"));
    match is_page && !is_meant {
        true => Err(FileError::Refused {
            reason: ADD_SCOPE.to_owned(),
        }),
        false => Ok(()),
    }
}

/// What a refusal of `files.info` means for the file.
fn meaning(error: ChannelError) -> FileError {
    match error {
        ChannelError::RetryAfter { wait_ms, .. } => FileError::RetryAfter { wait_ms },
        // Slack refuses the account, not the file: once a person has fixed the account, the file can be fetched.
        ChannelError::Unauthorized { reason, .. } if !reason.starts_with("missing_scope") => {
            FileError::Failed { reason }
        }
        ChannelError::Unauthorized { reason, .. } | ChannelError::ChatRefused { reason, .. } => {
            FileError::Refused { reason }
        }
        ChannelError::Rejected { reason, .. } => match reason.as_str() {
            "file_not_found" | "file_deleted" => FileError::Gone { reason },
            _ => FileError::Refused { reason },
        },
        other => FileError::Failed {
            reason: other.reason(),
        },
    }
}
