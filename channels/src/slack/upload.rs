//! Uploads a file in Slack's three steps: get an address, send the bytes there, share the file.
//!
//! The first two leave nothing in the room and may be made again; the outbox keeps their results in between
//! (`prepare`). Only the share is visible: whether it took place is read from the file itself.

use std::collections::HashMap;
use std::time::Duration;

use http::StatusCode;
use serde::{Deserialize, Serialize};

use crate::http as transport;
use vocative_contract::crash;
use vocative_contract::error::{ChannelError, Fallback};
use vocative_contract::outbound::{Delivered, PartFile, Post, ReadBack};

use super::api::{SlackApi, Token};
use super::outbound::delivered;
use super::posting;
use super::wire::{FileInfoAnswer, UploadAnswer};

/// Shares a file; the only call of an upload that people see.
pub(super) const COMPLETE: &str = "files.completeUploadExternal";
const GET_ADDRESS: &str = "files.getUploadURLExternal";
const SEND: &str = "file upload";

/// The waits before a share is looked for, right after it was made: Slack reports it late.
const LOOKS_MS: [u64; 3] = [0, 150, 600];

/// The progress of an upload, as the outbox keeps it.
#[derive(Debug, Serialize, Deserialize)]
struct UploadProgress {
    version: u32,
    file_id: String,
    /// Where to send the bytes; `None` once they are sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    address: Option<String>,
}

impl UploadProgress {
    const VERSION: u32 = 1;

    fn of(file: &PartFile) -> Option<Self> {
        serde_json::from_str(file.progress.as_deref()?).ok()
    }

    fn stored(&self) -> String {
        serde_json::to_string(self).expect("texts are always JSON")
    }
}

/// Makes the next call before the share, and returns the progress to be kept. `None` = the file may be shared.
pub(super) async fn prepare(
    api: &SlackApi,
    file: &PartFile,
) -> Result<Option<String>, ChannelError> {
    match UploadProgress::of(file) {
        None => get_address(api, file).await.map(Some),
        Some(UploadProgress {
            file_id,
            address: Some(address),
            ..
        }) => {
            let sent = send(api, file, &address).await?;
            let next = UploadProgress {
                version: UploadProgress::VERSION,
                file_id,
                address: None,
            };
            // Slack does not accept the address any more: start from the beginning.
            Ok(Some(if sent { next.stored() } else { String::new() }))
        }
        Some(_) => Ok(None),
    }
}

async fn get_address(api: &SlackApi, file: &PartFile) -> Result<String, ChannelError> {
    let arguments = [
        ("filename", file.name.clone()),
        ("length", file.bytes().len().to_string()),
    ];
    let answer: UploadAnswer = api
        .read_as(GET_ADDRESS, Token::Bot, &arguments)
        .await
        .map_err(refused)?;
    let (Some(file_id), Some(address)) = (answer.file_id.0, answer.upload_url.0) else {
        return Err(ChannelError::NotSent {
            operation: GET_ADDRESS,
            cause: "the answer names no address".into(),
        });
    };
    let progress = UploadProgress {
        version: UploadProgress::VERSION,
        file_id,
        address: Some(address),
    };
    Ok(progress.stored())
}

/// Sends the bytes, without the token; returns whether they were accepted.
async fn send(api: &SlackApi, file: &PartFile, address: &str) -> Result<bool, ChannelError> {
    let status = api.upload(SEND, address, file.bytes().to_vec()).await?;
    match status {
        status if status.is_success() => Ok(true),
        StatusCode::TOO_MANY_REQUESTS => Err(ChannelError::RetryAfter {
            operation: SEND,
            wait_ms: transport::RETRY_AFTER_DEFAULT_MS,
        }),
        status if status.is_client_error() => Ok(false),
        status => Err(ChannelError::NotSent {
            operation: SEND,
            cause: format!("HTTP {}", status.as_u16()).into(),
        }),
    }
}

/// Shares the file, and says which message shows it.
pub(super) async fn share(
    api: &SlackApi,
    post: &Post,
    file: &PartFile,
) -> Result<Delivered, ChannelError> {
    let file_id = prepared(file)?;
    let files = serde_json::json!([{"id": file_id, "title": file.name}]);
    let mut arguments = vec![
        ("files", files.to_string()),
        ("channel_id", post.target.chat.clone()),
    ];
    // A file always appears under the app's own name.
    let comment = posting::with_name_in_text(post).part.text;
    if !comment.is_empty() {
        arguments.push(("initial_comment", comment));
    }
    arguments.extend(
        post.target
            .thread
            .clone()
            .map(|thread| ("thread_ts", thread)),
    );
    api.call(COMPLETE, Token::Bot, &arguments)
        .await
        .map_err(refused)?;
    crash::point("send.response-read");
    for wait_ms in LOOKS_MS {
        tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        if let Ok(ReadBack::Found(delivered)) = find(api, post, file).await {
            return Ok(delivered);
        }
    }
    // The file is shared for certain; its message's id is not known yet, so the file's stands for it.
    Ok(Delivered {
        chat: post.target.chat.clone(),
        message_id: file_id,
        sent_at_ms: 0,
        shown: None,
    })
}

/// Looks up whether the file was shared in the post's chat.
pub(super) async fn find(
    api: &SlackApi,
    post: &Post,
    file: &PartFile,
) -> Result<ReadBack, ChannelError> {
    let Ok(file_id) = prepared(file) else {
        return Ok(ReadBack::NotFound);
    };
    let asked = api
        .read_as("files.info", Token::Bot, &[("file", file_id)])
        .await;
    let answer: FileInfoAnswer = match asked {
        Err(ChannelError::Rejected { reason, .. })
            if reason == "file_not_found" || reason == "file_deleted" =>
        {
            return Ok(ReadBack::NotFound);
        }
        answer => answer?,
    };
    let shares = answer
        .file
        .0
        .and_then(|file| file.shares.0)
        .unwrap_or_default();
    let of_chat = |side: &HashMap<String, Vec<super::wire::FileShare>>| {
        let share = side.get(&post.target.chat)?.first()?;
        share.ts.0.clone()
    };
    let ts = of_chat(&shares.public).or_else(|| of_chat(&shares.private));
    let found = ts.and_then(|ts| delivered(post.target.chat.clone(), ts));
    Ok(found.map_or(ReadBack::NotFound, ReadBack::Found))
}

fn prepared(file: &PartFile) -> Result<String, ChannelError> {
    let progress = UploadProgress::of(file).filter(|progress| progress.address.is_none());
    progress
        .map(|it| it.file_id)
        .ok_or_else(|| ChannelError::NotSent {
            operation: COMPLETE,
            cause: "the file is not uploaded yet".into(),
        })
}

/// An account that may not upload can still post: what is refused is the file, not the account.
fn refused(error: ChannelError) -> ChannelError {
    match error {
        ChannelError::Unauthorized { operation, reason }
            if reason.starts_with("missing_scope") || reason.starts_with("no_permission") =>
        {
            rejected(operation, reason)
        }
        ChannelError::Rejected {
            operation,
            reason,
            fallback: Fallback::None,
        } => rejected(operation, reason),
        other => other,
    }
}

fn rejected(operation: &'static str, reason: String) -> ChannelError {
    ChannelError::Rejected {
        operation,
        reason,
        fallback: Fallback::Plain,
    }
}
