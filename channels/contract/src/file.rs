//! The file half of a channel: fetches the bytes of what was attached to a message.
//!
//! A file is known by the platform's id of it, which envelopes carry; addresses are asked for when they are needed,
//! because they expire. Bytes go to a sink piece by piece, so that no file is in memory as a whole, and never more
//! bytes than the caller wants.

use crate::channel::BoxFuture;

/// Takes the bytes of a file in order.
pub trait FileSink: Send {
    /// Takes the next bytes.
    ///
    /// # Errors
    /// When they can't be kept; the transfer ends then.
    fn take(&mut self, bytes: &[u8]) -> std::io::Result<()>;
}

impl FileSink for Vec<u8> {
    fn take(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.extend_from_slice(bytes);
        Ok(())
    }
}

/// What a platform says of a file when it is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileDescription {
    /// The kind of attachment (`photo`, `file`, ...).
    pub kind: String,
    /// Its name.
    pub name: Option<String>,
    /// Its MIME type.
    pub mime_type: Option<String>,
    /// Its size.
    pub size_bytes: Option<u64>,
}

/// Fetches files; implemented by the adapters.
pub trait FileSource: Send + Sync + 'static {
    /// Asks for the description of a file whose message gave none; `None` = the platform can't be asked.
    ///
    /// # Errors
    /// A [`FileError`] by what the caller should do next.
    fn describe<'a>(
        &'a self,
        _file: &'a str,
    ) -> BoxFuture<'a, Result<Option<FileDescription>, FileError>> {
        Box::pin(async { Ok(None) })
    }

    /// Fetches a file of at most `bytes_max` bytes into a sink. The bytes in the sink are valid only after `Ok`.
    ///
    /// # Errors
    /// A [`FileError`] by what the caller should do next.
    fn fetch<'a>(
        &'a self,
        file: &'a str,
        bytes_max: u64,
        sink: &'a mut dyn FileSink,
    ) -> BoxFuture<'a, Result<(), FileError>>;
}

/// Why a file was not fetched.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file is larger than was wanted, or than the platform gives to bots.
    #[error("the file is too large{}", shown_size(*size_bytes))]
    TooLarge {
        /// Its size, where the platform tells it.
        size_bytes: Option<u64>,
    },
    /// The platform does not have the file any more.
    #[error("the file is gone: {reason}")]
    Gone {
        /// The platform's word for it.
        reason: String,
    },
    /// The platform refuses us the file; asking again does not help, only a person's change does.
    #[error("the file is refused: {reason}")]
    Refused {
        /// Why, and what to do where that is known.
        reason: String,
    },
    /// The platform asks to wait.
    #[error("the platform asks to wait {wait_ms} ms")]
    RetryAfter {
        /// How long, in milliseconds.
        wait_ms: u64,
    },
    /// The download failed this time.
    #[error("the file could not be fetched: {reason}")]
    Failed {
        /// What happened, without any address.
        reason: String,
    },
    /// The bytes arrived but could not be kept.
    #[error("the file could not be kept")]
    Sink(#[source] std::io::Error),
}

fn shown_size(size_bytes: Option<u64>) -> String {
    size_bytes.map_or_else(String::new, |size| format!(": {size} bytes"))
}
