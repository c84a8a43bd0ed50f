//! The files of a question, loaded for its prompt. The prompt itself is a pure function of the loaded files.

use std::collections::HashSet;
use std::sync::Arc;

use tracing::warn;

use crate::agent::picture::Picture;
use crate::files::space::ContentRoom;
use crate::llm::Exchange;
use vocative_core::decode::decoded;
use vocative_core::file::{ContentId, FileKind, FileState, TurnFile};
use vocative_core::history::{History, HistoryRole};
use vocative_core::ids::{RunId, TurnId};
use vocative_core::prompting::files::{FileContent, FileLimits, PromptFile, PromptImage};
use vocative_core::turn::Turn;
use vocative_store::{Replying, Store, StoreError};

/// How much of an attached text is loaded, in bytes; the prompt's own limit is far below.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// A run waits for a file of an earlier turn only if that turn was sent within this time before the question,
/// in milliseconds.
const FRESH_MS: i64 = 15_000;
/// Files larger than this, in bytes, are not loaded.
const LOADED_BYTES_MAX: u64 = 64 << 20;
/// The most files of one prompt; a further one is only named in its message.
const FILES_MAX: usize = 20;

/// How an agent's prompts show files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilesInPrompts {
    /// Whether the agent's model takes pictures.
    pub takes_images: bool,
    /// The limits of files in one prompt.
    pub limits: FileLimits,
    /// How many turns before the question also have their files read.
    pub recent_turns: usize,
    /// The largest picture that is shown, in bytes.
    pub image_bytes_max: u64,
    /// How long a run waits for files, in milliseconds.
    pub wait_ms: u64,
}

/// The files of a prompt.
#[derive(Clone, Debug, Default)]
pub(super) struct LoadedFiles {
    /// The files that go into the prompt, the most important first: those of the question, then those sent shortly
    /// before it, the newest first.
    pub(super) files: Vec<PromptFile>,
    /// The turns whose files were read.
    pub(super) read: Vec<TurnId>,
    /// Turns shortly before the question whose files are still on their way.
    pub(super) awaited: Vec<TurnId>,
}

/// Loads the files of the triggers, of what they reply to, and of a thread's first message, and those of
/// the turns shortly before them; `in_prompt` says which of these the prompt shows.
///
/// # Errors
/// Storage refuses.
pub(super) async fn load_files(
    store: &Store<Replying>,
    shows: &FilesInPrompts,
    history: &History,
    as_of_ms: i64,
    in_prompt: impl FnOnce() -> Vec<TurnId>,
) -> Result<LoadedFiles, StoreError> {
    let asked = turns_with_files(history);
    let mut earlier = earlier_turns(history, shows.recent_turns);
    earlier.retain(|turn| !asked.contains(turn));
    if !earlier.is_empty() {
        let shown = in_prompt();
        earlier.retain(|turn| shown.contains(turn));
    }
    let is_fresh = |turn: &Turn| turn.position.sent_at_ms >= as_of_ms.saturating_sub(FRESH_MS);
    let fresh: HashSet<TurnId> = history
        .turns
        .iter()
        .filter(|it| is_fresh(&it.turn))
        .map(|it| it.turn.id)
        .collect();
    let mut loaded = LoadedFiles::default();
    let mut seen = HashSet::new();
    for (turn, is_earlier) in asked
        .into_iter()
        .map(|turn| (turn, false))
        .chain(earlier.into_iter().map(|turn| (turn, true)))
    {
        for file in store.files_of(vec![turn]).await? {
            let is_again = file.content.is_some_and(|(id, _)| !seen.insert(id));
            if loaded.files.len() >= FILES_MAX || (is_earlier && is_again) {
                continue;
            }
            let Some(content) = load_content(store, shows, &file).await? else {
                continue;
            };
            if is_earlier && file.state == FileState::Pending {
                loaded.awaited.extend(fresh.contains(&turn).then_some(turn));
            } else if is_earlier && matches!(content, FileContent::NotLoaded(_)) {
                // The file is named by its own message.
                continue;
            }
            if !matches!(content, FileContent::NotLoaded(_)) {
                loaded.read.push(turn);
            }
            loaded.files.push(PromptFile {
                name: file.facts.shown_name().to_owned(),
                is_earlier,
                content,
            });
        }
    }
    Ok(loaded)
}

/// How a run's steps deal with the files that tools give.
#[derive(Clone, Copy)]
pub(super) struct ToolFiles<'a> {
    /// Room for them; `None` = they are not kept.
    pub(super) room: Option<&'a ContentRoom>,
    /// How prompts show files.
    pub(super) shows: FilesInPrompts,
}

impl<'a> ToolFiles<'a> {
    /// Files that tools give, kept in `room`, shown as prompts show files.
    pub(super) fn of(room: Option<&'a ContentRoom>, shows: FilesInPrompts) -> Self {
        Self { room, shows }
    }

    /// Attaches the pictures that tools gave to their results: the first ones, as many as a prompt may have. The
    /// choice stays the same from step to step, so that a provider's cache of the request stays valid.
    ///
    /// # Errors
    /// Storage refuses.
    pub(super) async fn show(
        &self,
        store: &Store<Replying>,
        run: RunId,
        exchanges: &mut [(u32, Exchange)],
    ) -> Result<(), StoreError> {
        let has_results = exchanges.iter().any(|(_, it)| !it.results.is_empty());
        if self.room.is_none() || !self.shows.takes_images || !has_results {
            return Ok(());
        }
        let mut left = self.shows.limits.images_max;
        for given in store.files_of_calls(run).await? {
            let of_step = exchanges.iter_mut().find(|(step, _)| *step == given.step);
            let results = of_step.map(|(_, exchange)| &mut exchange.results);
            let result =
                results.and_then(|all| all.iter_mut().find(|it| it.call_id == given.call_id));
            let Some(result) = result.filter(|_| left > 0) else {
                continue;
            };
            if given.file.facts.content_kind() == FileKind::Image
                && let FileContent::Image(image) =
                    load_image(store, &self.shows, &given.file).await?
            {
                result.images.push(image);
                left -= 1;
            }
        }
        Ok(())
    }
}

async fn load_content(
    store: &Store<Replying>,
    shows: &FilesInPrompts,
    file: &TurnFile,
) -> Result<Option<FileContent>, StoreError> {
    Ok(match file.facts.content_kind() {
        FileKind::Text => Some(load_text(store, shows, file).await?),
        FileKind::Image => Some(load_image(store, shows, file).await?),
        // The message itself says what such a file is, and what was said in a voice note.
        FileKind::Voice | FileKind::Other => None,
    })
}

/// The turns shortly before the question that carry files, the newest first. Only turns of the room or thread in
/// which it was asked: a thread's prompt also shows turns of the room around it.
fn earlier_turns(history: &History, recent_max: usize) -> Vec<TurnId> {
    let triggers = || {
        history
            .turns
            .iter()
            .filter(|it| it.role == HistoryRole::Trigger)
    };
    let asked_in: HashSet<_> = triggers().map(|it| it.turn.conversation).collect();
    let mut recent: Vec<_> = history
        .turns
        .iter()
        .filter(|it| {
            matches!(
                it.role,
                HistoryRole::Kept | HistoryRole::Parent | HistoryRole::Ambient
            )
        })
        .filter(|it| asked_in.contains(&it.turn.conversation))
        .map(|it| &it.turn)
        .collect();
    recent.sort_by_key(|turn| std::cmp::Reverse(turn.position));
    let mut seen = HashSet::new();
    recent.retain(|turn| seen.insert(turn.id));
    recent
        .into_iter()
        .take(recent_max)
        .filter(|turn| !turn.attachments.is_empty())
        .map(|turn| turn.id)
        .collect()
}

/// The turns whose files belong to the question, in the room's order, each once.
fn turns_with_files(history: &History) -> Vec<TurnId> {
    let triggers = history
        .turns
        .iter()
        .filter(|it| it.role == HistoryRole::Trigger);
    let replied_to: HashSet<TurnId> = triggers.filter_map(|it| it.turn.reply_to).collect();
    let mut seen = HashSet::new();
    let wanted = history.turns.iter().filter(|it| {
        let is_meant = matches!(it.role, HistoryRole::Trigger | HistoryRole::Root);
        is_meant || replied_to.contains(&it.turn.id)
    });
    wanted
        .filter(|it| !it.turn.attachments.is_empty() && seen.insert(it.turn.id))
        .map(|it| it.turn.id)
        .collect()
}

async fn load_text(
    store: &Store<Replying>,
    shows: &FilesInPrompts,
    file: &TurnFile,
) -> Result<FileContent, StoreError> {
    if shows.limits.text_max_tokens == 0 {
        return Ok(not_loaded("the contents of files are not shown"));
    }
    let bytes = match load(store, file).await? {
        Ok(bytes) => bytes,
        Err(why) => return Ok(why),
    };
    Ok(text_of(bytes).map_or_else(|| not_loaded("it is no text"), FileContent::Text))
}

/// The bytes as text, if they are text.
fn text_of(bytes: Vec<u8>) -> Option<String> {
    let text = decoded(bytes).filter(|text| !text.contains('\0'))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let ends = (0..=text.len().min(TEXT_BYTES_MAX)).rev();
    let end = ends.into_iter().find(|end| text.is_char_boundary(*end))?;
    let is_shown = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    let shown: String = text[..end].chars().filter(is_shown).collect();
    Some(match text.len() - end {
        0 => shown,
        left_out => format!("{shown}\n… [{left_out} more bytes]"),
    })
}

async fn load_image(
    store: &Store<Replying>,
    shows: &FilesInPrompts,
    file: &TurnFile,
) -> Result<FileContent, StoreError> {
    if !shows.takes_images {
        return Ok(not_loaded("the model is shown no pictures"));
    }
    let is_large = file
        .content
        .is_some_and(|(_, size)| size > shows.image_bytes_max);
    if is_large {
        return Ok(not_loaded("it is too large to be shown"));
    }
    let bytes = match load(store, file).await? {
        Ok(bytes) => bytes,
        Err(why) => return Ok(why),
    };
    Ok(match Picture::of(&bytes) {
        Some(picture) if picture.is_taken() => FileContent::Image(PromptImage {
            name: file.facts.shown_name().to_owned(),
            mime_type: picture.mime_type,
            bytes: Arc::from(bytes),
        }),
        Some(_) => not_loaded("it is too large to be shown"),
        None => not_loaded("it is no picture that models take"),
    })
}

fn not_loaded(why: &str) -> FileContent {
    FileContent::NotLoaded(why.to_owned())
}

/// The bytes of a file, or why they are missing.
async fn load(
    store: &Store<Replying>,
    file: &TurnFile,
) -> Result<Result<Vec<u8>, FileContent>, StoreError> {
    let Some((content, size_bytes)) = file.content.filter(|_| file.state == FileState::Fetched)
    else {
        return Ok(Err(not_loaded(why_not(file.state))));
    };
    // A file that was stored under a larger limit is kept, but too large to be read.
    if size_bytes > LOADED_BYTES_MAX {
        return Ok(Err(not_loaded("it is too large")));
    }
    if let Some(bytes) = store.content(content, size_bytes).await? {
        return Ok(Ok(bytes));
    }
    fetch_again(store, content).await;
    Ok(Err(not_loaded("its content was lost; it is fetched again")))
}

/// Notes that lost content must be fetched from the platform again. A command that only reads can't note this; the
/// daemon will.
async fn fetch_again(store: &Store<Replying>, content: ContentId) {
    if let Err(cause) = store.fetch_again(content, 0).await {
        warn!(error = %cause, content.id = %content, "a stored file was lost, and that could not be noted");
    }
}

fn why_not(state: FileState) -> &'static str {
    match state {
        FileState::Pending => "it is still being fetched",
        FileState::Fetched | FileState::Failed => "it could not be fetched",
        FileState::Refused => "it is not fetched here",
        FileState::TooLarge => "it is too large",
        FileState::Gone => "it was deleted",
        FileState::Evicted => "it is old, and made room for newer files",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_of_a_bounded_length_and_without_what_no_text_holds() {
        let text = |bytes: &[u8]| text_of(bytes.to_vec());
        assert_eq!(text("\u{feff}héllo".as_bytes()).as_deref(), Some("héllo"));
        assert_eq!(text(b"a\0b"), None);
        assert_eq!(text(b"\x89PNG\r\n\x1a\n\x00"), None);
        assert_eq!(text(b"a\x1b[31m\r\n\tb").as_deref(), Some("a[31m\n\tb"));
        let long = text("é".repeat(TEXT_BYTES_MAX).as_bytes()).unwrap_or_default();
        assert!(long.ends_with("\n… [1048576 more bytes]"));
        assert!(long.len() < TEXT_BYTES_MAX + 40);
    }
}
