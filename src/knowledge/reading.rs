//! Turns a file into a document: reads it, compares it with the known version, decodes it, and cuts it into pieces.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use encoding_rs::{UTF_16BE, UTF_16LE};
use sha2::{Digest as _, Sha256};
use tokio::task::spawn_blocking;
use vocative_core::knowledge::{Chunked, Format, chunked};
use vocative_store::contract::{KnownDocument, ReadDocument};

use super::Collection;
use super::converting::converted;
use super::opening::{UnreadFile, bytes, too_large};

/// A file that is to be checked.
#[derive(Debug)]
pub(super) struct CandidateFile {
    /// The configured path that it is below, as stored, and the actual path.
    pub(super) root: (String, PathBuf),
    /// Its path below that, as it is stored.
    pub(super) path: String,
    /// The file below its root; `None` = the root is the file.
    pub(super) below: Option<PathBuf>,
    /// The format of the file.
    pub(super) format: Format,
    /// The file's metadata, or why it can't be read.
    pub(super) file: Result<Metadata, String>,
    /// Its stamp.
    pub(super) stamp: String,
    /// The known document.
    pub(super) known: Option<KnownDocument>,
}

/// The result of checking a file.
#[derive(Debug)]
pub(super) enum Looked {
    /// It is the same as the known document.
    Same(i64),
    /// Its new content, which replaces the known document.
    Read(Box<ReadDocument>),
    /// It disappeared meanwhile.
    Gone,
    /// It may be read later; the text says why it was not.
    Failed(String),
}

/// Checks a file. `is_anew` = an unchanged file is cut again.
pub(super) async fn look(
    collection: &Arc<Collection>,
    collection_row: i64,
    candidate: CandidateFile,
    is_anew: bool,
    now_ms: i64,
) -> Looked {
    let size = candidate.file.as_ref().map_or(0, Metadata::len);
    let refuse = |candidate: &CandidateFile, why: String| {
        Looked::Read(Box::new(ReadDocument {
            collection: collection_row,
            root: candidate.root.0.clone(),
            path: candidate.path.clone(),
            stamp: candidate.stamp.clone(),
            hash: None,
            title: candidate.path.clone(),
            bytes: size,
            chunks: Vec::new(),
            is_cut: false,
            refused: Some(why),
            read_at_ms: now_ms,
        }))
    };
    let unread = |candidate: &CandidateFile, unread: UnreadFile| match unread {
        UnreadFile::Refused(why) => refuse(candidate, why),
        UnreadFile::Gone => Looked::Gone,
        UnreadFile::Failed(why) => Looked::Failed(format!("{}: {why}", candidate.path)),
    };
    if let Err(why) = &candidate.file {
        return refuse(&candidate, why.clone());
    }
    let max = collection.settings.file_bytes_max;
    if size > max {
        return unread(&candidate, too_large(max));
    }
    let (root, below) = (candidate.root.1.clone(), candidate.below.clone());
    let read = spawn_blocking(move || {
        let bytes = bytes(&root, below.as_deref(), max)?;
        let hash = Sha256::digest(&bytes).to_vec();
        Ok((bytes, hash))
    });
    let (bytes, hash) = match joined(read.await) {
        Ok(read) => read,
        Err(why) => return unread(&candidate, why),
    };
    if let Some(known) = &candidate.known
        && known.hash.as_ref() == Some(&hash)
        && known.refused.is_none()
        && !is_anew
    {
        return Looked::Same(known.id);
    }
    let size = bytes.len() as u64;
    match document(collection, candidate.format, bytes).await {
        Err(why) => unread(&candidate, why),
        Ok(document) => {
            let name = Path::new(&candidate.path).file_stem();
            let name = name.map(|it| it.to_string_lossy().into_owned());
            Looked::Read(Box::new(ReadDocument {
                collection: collection_row,
                title: document.title.or(name).unwrap_or_default(),
                root: candidate.root.0,
                path: candidate.path,
                stamp: candidate.stamp,
                hash: Some(hash),
                bytes: size,
                chunks: document.chunks,
                is_cut: document.is_cut,
                refused: None,
                read_at_ms: now_ms,
            }))
        }
    }
}

async fn document(
    collection: &Collection,
    format: Format,
    bytes: Vec<u8>,
) -> Result<Chunked, UnreadFile> {
    let text = match (&collection.pdf, format) {
        (Some(program), Format::Pages) => converted(program, bytes).await?,
        _ => joined(spawn_blocking(move || decoded(bytes)).await)?,
    };
    joined(spawn_blocking(move || Ok(chunked(format, &text))).await)
}

/// A panic while reading a document is a bug, but the other documents are still read.
fn joined<T>(done: Result<Result<T, UnreadFile>, tokio::task::JoinError>) -> Result<T, UnreadFile> {
    done.unwrap_or_else(|_| {
        Err(UnreadFile::Refused(
            "reading it panicked, which is a bug".to_owned(),
        ))
    })
}

/// Decodes a text: UTF-8, or UTF-16 with a mark that says so.
fn decoded(bytes: Vec<u8>) -> Result<String, UnreadFile> {
    let utf_16 = match bytes.as_slice() {
        [0xff, 0xfe, ..] => Some(UTF_16LE),
        [0xfe, 0xff, ..] => Some(UTF_16BE),
        _ => None,
    };
    let text = match utf_16 {
        Some(encoding) => encoding
            .decode_without_bom_handling_and_without_replacement(&bytes[2..])
            .map(std::borrow::Cow::into_owned),
        None => String::from_utf8(bytes).ok(),
    };
    let text = text.ok_or_else(|| UnreadFile::Refused("it is no UTF-8 text".to_owned()))?;
    match text.contains('\0') {
        true => Err(UnreadFile::Refused("it is no text".to_owned())),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_is_read() {
        let refused = |why: &str| Err(UnreadFile::Refused(why.to_owned()));
        let cases: [(&[u8], Result<String, UnreadFile>); 6] = [
            (b"caf\xc3\xa9", Ok("café".to_owned())),
            (b"\xff\xfea\0\xe9\0", Ok("aé".to_owned())),
            (b"\xfe\xff\0a", Ok("a".to_owned())),
            (b"caf\xe9", refused("it is no UTF-8 text")),
            (b"\xff\xfe\0\xd8", refused("it is no UTF-8 text")),
            (b"a\0b", refused("it is no text")),
        ];
        for (bytes, expected) in cases {
            assert_eq!(decoded(bytes.to_vec()), expected);
        }
    }
}
