//! Importers: what a platform exported, read from files.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;
use vocative_channels::export::{
    ExportSink, Exported, ExportedChat, ExportedIdentity, MESSAGE_MAX_BYTES, open_export,
};
use vocative_channels::fuzzing::{list_elements, mended};
use vocative_contract::identity::Identity;

use super::speech::{check_message, slack_bot, telegram_bot};

thread_local! {
    /// One folder for all inputs of a thread, in memory where there is such a place.
    static FOLDER: RefCell<TempDir> = RefCell::new({
        let shared = Path::new("/dev/shm");
        let made = if shared.is_dir() { TempDir::new_in(shared) } else { TempDir::new() };
        made.expect("a folder can be made")
    });
}

/// What an export held.
#[derive(Default, PartialEq, Debug)]
struct Taken {
    chats: Vec<ExportedChat>,
    things: Vec<Exported>,
    last_read_bytes: u64,
}

impl ExportSink for Taken {
    fn begin_chat(&mut self, chat: &ExportedChat) -> bool {
        assert!(!chat.chat.is_empty(), "a chat without an id");
        self.chats.push(chat.clone());
        true
    }

    fn take(&mut self, thing: Exported, read_bytes: u64) -> ControlFlow<()> {
        self.last_read_bytes = read_bytes;
        self.things.push(thing);
        ControlFlow::Continue(())
    }
}

/// Opens and reads an export.
fn check_export(path: &Path, bot: &Identity, bytes: usize) {
    let Ok(mut export) = open_export(path, bot) else {
        return;
    };
    let mut first = Taken::default();
    export.read(&mut first);
    // Every other input is read again: the same messages in the same order.
    if bytes.is_multiple_of(2) {
        let mut second = Taken::default();
        export.read(&mut second);
        assert!(
            messages(&first).eq(messages(&second)),
            "another reading, other messages"
        );
    }
    for thing in &first.things {
        match thing {
            Exported::Message(exported) => {
                check_message(&exported.message, bytes);
                if let ExportedIdentity::OwnBox { .. } = exported.identity {
                    let message = &exported.message;
                    assert!(
                        message.message_id.starts_with("import:"),
                        "{}",
                        message.message_id
                    );
                }
            }
            Exported::Unreadable { place, what } => {
                assert!(place.contains("line"), "{place}: {what}");
                assert!(what.len() < 2_000, "{}", what.len());
            }
            Exported::Person(_) | Exported::Skipped { .. } => {}
        }
    }
}

fn messages(taken: &Taken) -> impl Iterator<Item = &Exported> {
    let is_message = |thing: &&Exported| matches!(thing, Exported::Message(_));
    taken.things.iter().filter(is_message)
}

pub(super) fn telegram_file(input: &[u8]) {
    FOLDER.with_borrow(|folder| {
        let path = folder.path().join("result.json");
        std::fs::write(&path, input).expect("the folder can be written");
        check_export(&path, &telegram_bot(), input.len());
    });
}

pub(super) fn slack_zip(input: &[u8]) {
    FOLDER.with_borrow(|folder| {
        let path = folder.path().join("export.zip");
        std::fs::write(&path, input).expect("the folder can be written");
        // What a zip inflates to is longer than the zip.
        check_export(&path, &slack_bot(), input.len() * 1_100);
    });
}

/// The input names each file and what is in it: JSON, or in a string what is none.
pub(super) fn slack_folder(input: &[u8]) {
    let Ok(Value::Object(files)) = serde_json::from_slice::<Value>(input) else {
        return;
    };
    FOLDER.with_borrow(|folder| {
        let root = folder.path().join("export");
        let _ = std::fs::remove_dir_all(&root);
        for (name, content) in &files {
            let parts: Vec<&str> = name.split('/').collect();
            let is_plain = |part: &&str| {
                !part.is_empty()
                    && part.len() < 100
                    && !part.starts_with('.')
                    && !part.contains('\0')
            };
            if parts.len() > 2 || !parts.iter().all(is_plain) {
                continue;
            }
            let path = root.join(name);
            let content = match content {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            // A name may be that of a file and of a folder.
            let _ = std::fs::create_dir_all(path.parent().unwrap_or(&root));
            let _ = std::fs::write(path, content);
        }
        check_export(&root, &slack_bot(), input.len());
    });
}

/// The scanner finds in a list what a JSON parser finds; and whatever it lifts can be mended.
pub(super) fn json_list(input: &[u8]) {
    let (elements, is_whole) = list_elements(input, MESSAGE_MAX_BYTES);
    for element in elements.iter().flatten() {
        let text = mended(element);
        let strict = serde_json::from_slice::<Value>(element);
        if let Ok(strict) = strict {
            let read = serde_json::from_str::<Value>(&text);
            assert_eq!(read.ok(), Some(strict), "mending changed what was whole");
        }
    }
    let without_mark = input.strip_prefix(b"\xef\xbb\xbf").unwrap_or(input);
    if let Ok(Value::Array(items)) = serde_json::from_slice::<Value>(without_mark) {
        assert!(is_whole, "a list that is JSON was not read to its end");
        let read = elements
            .iter()
            .flatten()
            .map(|it| serde_json::from_slice::<Value>(it).ok());
        assert!(
            read.eq(items.into_iter().map(Some)),
            "other elements than JSON has"
        );
    }
    let (short, _) = list_elements(input, 4);
    let fits = |it: &Option<Vec<u8>>| it.as_ref().is_none_or(|it| it.len() <= 4);
    assert!(
        short.len() == elements.len() && short.iter().all(fits),
        "a limit is passed"
    );
}
