//! What the downloads of both platforms have in common: bounds, the body, what an answer means.

use vocative_contract::file::{FileError, FileSink};

use crate::http::what_broke;

/// How long a download may take as a whole: the largest file over a slow line.
pub(crate) const DOWNLOAD_MAX: std::time::Duration = std::time::Duration::from_secs(290);

/// How many redirects a download may take.
pub(crate) const REDIRECTS_MAX: usize = 3;

/// Reads an answer's body into a sink and returns its length in bytes.
pub(crate) async fn take_body(
    mut response: reqwest::Response,
    bytes_max: u64,
    sink: &mut dyn FileSink,
) -> Result<u64, FileError> {
    if let Some(size) = response.content_length().filter(|size| *size > bytes_max) {
        return Err(FileError::TooLarge {
            size_bytes: Some(size),
        });
    }
    let mut taken = 0;
    loop {
        let chunk = response.chunk().await.map_err(|error| broken(&error))?;
        let Some(chunk) = chunk else {
            return Ok(taken);
        };
        taken += chunk.len() as u64;
        if taken > bytes_max {
            return Err(FileError::TooLarge { size_bytes: None });
        }
        sink.take(&chunk).map_err(FileError::Sink)?;
    }
}

/// What happened to a request, without its address.
pub(crate) fn broken(error: &reqwest::Error) -> FileError {
    FileError::Failed {
        reason: what_broke(error).to_owned(),
    }
}

/// What an HTTP status other than success means for the file.
pub(crate) fn refused_status(status: u16, wait_ms: u64) -> FileError {
    let reason = format!("HTTP {status}");
    match status {
        429 => FileError::RetryAfter { wait_ms },
        404 | 410 => FileError::Gone { reason },
        401 | 403 => FileError::Refused { reason },
        _ => FileError::Failed { reason },
    }
}
