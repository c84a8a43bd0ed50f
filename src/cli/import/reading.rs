//! Reads an export on a thread of its own: admitted messages are gathered into batches, everything else is counted.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use tokio::sync::mpsc;
use vocative_channels::export::{Export, ExportSink, Exported, ExportedChat, ExportedMessage};
use vocative_contract::envelope::Sender;

use crate::admin::import::TopicLine;
use crate::capture::import::{ChatAdmission, admission, chat_admission};
use vocative_core::addressing::Access;
use vocative_core::judging::policy::ChannelPolicy;

/// The most messages and people in a batch.
const BATCH_MESSAGES: usize = 256;
/// The most bytes of text of a batch.
const BATCH_TEXT_BYTES: usize = 512 << 10;
/// The most items of the export that are read for a batch, whether they are stored or not.
const BATCH_THINGS: u64 = 20_000;
/// The most reasons, unserved chats and unreadable entries that are named; all are counted.
const NAMED_MAX: usize = 50;

/// A batch that is ready to be stored.
pub(super) struct Ready {
    pub(super) messages: Vec<ExportedMessage>,
    pub(super) people: Vec<Sender>,
    /// Items of the export read so far.
    pub(super) things: u64,
    pub(super) read_bytes: u64,
    /// Whether this is the last batch.
    pub(super) is_end: bool,
}

/// What became of the entries of an export, besides what was stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ImportTally {
    /// Chats that were read.
    pub(super) chats: u64,
    /// How many entries, messages and chats were skipped, by reason.
    pub(super) skipped: BTreeMap<String, u64>,
    /// Chats that `allow_chats` leaves out: id and title.
    pub(super) not_served: Vec<(String, Option<String>)>,
    /// Items that can't be read.
    pub(super) unreadable: u64,
    /// Where these items are, and why they can't be read.
    pub(super) problems: Vec<String>,
    /// Items that an earlier import had handled.
    pub(super) passed: u64,
    /// The chats that were asked for and found.
    pub(super) found: Vec<String>,
}

impl ImportTally {
    /// A chat that was asked for and is not in the export.
    pub(super) fn missing<'a>(&self, wanted: &'a [String]) -> Option<&'a str> {
        let missing = wanted.iter().find(|wanted| !self.found.contains(*wanted));
        missing.map(String::as_str)
    }
}

/// The reading thread's state.
pub(super) struct ImportReading {
    policy: Arc<ChannelPolicy>,
    wanted: Vec<String>,
    outcome: ImportTally,
    /// Topics that the store knows.
    topics: Vec<TopicLine>,
    things: u64,
    /// Items to skip, because an earlier import had handled them.
    pass: u64,
    batch: Vec<ExportedMessage>,
    people: Vec<Sender>,
    text_bytes: usize,
    handed_over: u64,
    tx: Option<mpsc::Sender<Ready>>,
}

impl ImportReading {
    /// Reads only the wanted chats, or all if none is named; skips the first `pass` items.
    pub(super) fn new(policy: Arc<ChannelPolicy>, wanted: Vec<String>, pass: u64) -> Self {
        Self {
            policy,
            wanted,
            outcome: ImportTally::default(),
            topics: Vec::new(),
            things: 0,
            pass,
            batch: Vec::new(),
            people: Vec::new(),
            text_bytes: 0,
            handed_over: 0,
            tx: None,
        }
    }

    /// Adds the topics that the store knows already.
    pub(super) fn with_topics(mut self, topics: Vec<TopicLine>) -> Self {
        self.topics = topics;
        self
    }

    /// Reads to the end, or until the receiver of batches is gone.
    pub(super) fn run(mut self, export: &mut dyn Export, tx: mpsc::Sender<Ready>) -> ImportTally {
        let total = export.files().iter().map(|file| file.bytes).sum();
        self.tx = Some(tx);
        export.read(&mut self);
        // If the receiver is gone, the storing side has reported why.
        let _ = self.hand_over(total, true);
        self.outcome.passed = self.pass.min(self.things);
        self.outcome
    }

    fn hand_over(&mut self, read_bytes: u64, is_end: bool) -> ControlFlow<()> {
        let ready = Ready {
            messages: std::mem::take(&mut self.batch),
            people: std::mem::take(&mut self.people),
            things: self.things,
            read_bytes,
            is_end,
        };
        self.text_bytes = 0;
        self.handed_over = self.things;
        match self.tx.as_ref().map(|tx| tx.blocking_send(ready)) {
            Some(Ok(())) => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    }

    fn is_wanted(&mut self, chat: &ExportedChat) -> bool {
        let bare = |name: &str| name.trim_start_matches('#').to_lowercase();
        let title = chat.title.as_deref().map(bare);
        let is_it = |wanted: &str| wanted == chat.chat || Some(bare(wanted)) == title;
        let found: Vec<String> = self.wanted.iter().filter(|it| is_it(it)).cloned().collect();
        let is_found = !found.is_empty();
        self.outcome.found.extend(found);
        is_found
    }

    fn skip(&mut self, reason: &str) {
        let is_new = !self.outcome.skipped.contains_key(reason);
        let is_full = is_new && self.outcome.skipped.len() >= NAMED_MAX;
        let reason = if is_full {
            "entries of further kinds"
        } else {
            reason
        };
        *self.outcome.skipped.entry(reason.to_owned()).or_default() += 1;
    }

    fn take_message(&mut self, mut message: ExportedMessage) {
        match admission(&mut message, &self.policy) {
            Access::Served => {
                self.text_bytes += message.message.text.len();
                self.batch.push(message);
            }
            refused => {
                let setting = refused.setting();
                self.skip(&format!("messages that {setting} leaves out"));
            }
        }
    }
}

impl ExportSink for ImportReading {
    fn begin_chat(&mut self, chat: &ExportedChat) -> bool {
        let is_named = self.is_wanted(chat);
        if !is_named && !self.wanted.is_empty() {
            return false;
        }
        match chat_admission(chat, is_named, &self.policy) {
            ChatAdmission::Read => {
                self.outcome.chats += 1;
                true
            }
            ChatAdmission::Foreign => {
                self.skip("private chats without this bot");
                false
            }
            ChatAdmission::NotServed => {
                if self.outcome.not_served.len() < NAMED_MAX {
                    let chat = (chat.chat.clone(), chat.title.clone());
                    self.outcome.not_served.push(chat);
                }
                self.skip("chats that allow_chats leaves out");
                false
            }
        }
    }

    fn topics(&self, chat: &ExportedChat) -> Vec<(String, Option<String>)> {
        let of_chat = self.topics.iter().filter(|known| known.chat == chat.chat);
        of_chat
            .map(|known| (known.topic.clone(), known.title.clone()))
            .collect()
    }

    fn take(&mut self, thing: Exported, read_bytes: u64) -> ControlFlow<()> {
        self.things += 1;
        if self.things <= self.pass {
            return ControlFlow::Continue(());
        }
        match thing {
            Exported::Message(message) => self.take_message(*message),
            Exported::Person(person) => self.people.push(person),
            Exported::Skipped { reason } => self.skip(&reason),
            Exported::Unreadable { place, what } => {
                self.outcome.unreadable += 1;
                if self.outcome.problems.len() < NAMED_MAX {
                    self.outcome.problems.push(format!("{place}: {what}"));
                }
            }
        }
        let is_full = self.batch.len() + self.people.len() >= BATCH_MESSAGES
            || self.text_bytes >= BATCH_TEXT_BYTES
            || self.things - self.handed_over >= BATCH_THINGS;
        if is_full {
            self.hand_over(read_bytes, false)
        } else {
            ControlFlow::Continue(())
        }
    }
}
