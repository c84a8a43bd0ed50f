//! A Slack export: who is in it, which chats, and every message through the same translation as its
//! live event.
//!
//! A message's identity is (chat, `ts`), the same as live. A record does not say its chat: that is
//! the folder's, by the lists of chats. Day files are read one at a time, whatever their names say
//! about time zones: a message's time is its `ts`.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::Path;

use crate::export::{
    Export, ExportError, ExportFile, ExportSink, Exported, ExportedChat, ExportedIdentity,
    ExportedMessage, MESSAGE_MAX_BYTES, mismatch,
};
use crate::json_object::read_object;
use crate::json_stream::{JsonStream, Lifted, ScanError, mend};
use vocative_contract::envelope::{ChatKind, InboundMessage, Sender, SenderKind};
use vocative_contract::identity::Identity;

use super::export_files::{ExportFiles, INDEXES};
use super::text;
use super::translate::{RecordedMessage, recorded};
use super::wire::{IdOr, List, Maybe, SlackEvent, UserObject};

/// Where people are listed; the second is an Enterprise organisation's.
pub(super) const USERS: [&str; 2] = ["users.json", "org_users.json"];

/// The most people and chats that are kept in memory.
const LISTED_MAX: usize = 1_000_000;

/// Opens an export for the workspace of that identity.
///
/// # Errors
/// [`ExportError`] if there is no export at `path`, or it is of another workspace.
pub fn open_export(path: &Path, identity: &Identity) -> Result<Box<dyn Export>, ExportError> {
    let mut export = SlackExport {
        files: ExportFiles::open(path)?,
        identity: identity.clone(),
        people: HashMap::new(),
        chats: HashMap::new(),
        named: HashSet::new(),
        problems: Vec::new(),
        read_bytes: 0,
    };
    export.read_people();
    export.check_workspace(path)?;
    export.read_chats();
    Ok(Box::new(export))
}

struct SlackExport {
    files: ExportFiles,
    identity: Identity,
    /// By user id.
    people: HashMap<String, ExportedUser>,
    /// By folder.
    chats: HashMap<String, ExportedChat>,
    /// Whose names were handed over.
    named: HashSet<String>,
    /// What was wrong with the lists.
    problems: Vec<Exported>,
    read_bytes: u64,
}

struct ExportedUser {
    display_name: Option<String>,
    username: Option<String>,
    is_bot: bool,
    team: Option<String>,
}

/// An entry of a list of chats.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct ListedChat {
    id: Maybe<String>,
    name: Maybe<String>,
    is_private: Maybe<bool>,
    members: List<String>,
}

impl Export for SlackExport {
    fn files(&self) -> &[ExportFile] {
        self.files.list()
    }

    fn read(&mut self, sink: &mut dyn ExportSink) {
        for problem in std::mem::take(&mut self.problems) {
            if sink.take(problem, 0).is_break() {
                return;
            }
        }
        self.read_bytes = 0;
        self.named.clear();
        let days = self.files.list().iter();
        let days: Vec<(String, u64)> = days
            .filter(|file| file.name.contains('/'))
            .map(|file| (file.name.clone(), file.bytes))
            .collect();
        let (mut folder, mut chat) = (String::new(), None);
        for (name, bytes) in days {
            let of = name.split('/').next().unwrap_or_default();
            if of != folder {
                of.clone_into(&mut folder);
                let known = self.chats.get(of).cloned();
                if known.is_none() && take_unknown(sink, self.read_bytes).is_break() {
                    return;
                }
                chat = known.filter(|chat| sink.begin_chat(chat));
            }
            if let Some(chat) = &chat
                && self.read_day(&name, chat, sink).is_break()
            {
                return;
            }
            self.read_bytes += bytes;
        }
    }
}

fn take_unknown(sink: &mut dyn ExportSink, read_bytes: u64) -> ControlFlow<()> {
    let reason = "folders of no listed chat".into();
    sink.take(Exported::Skipped { reason }, read_bytes)
}

impl SlackExport {
    fn read_people(&mut self) {
        for name in USERS {
            let mut people = std::mem::take(&mut self.people);
            self.each_listed(name, |user: UserObject| {
                if let Some(id) = user.id.clone()
                    && people.len() < LISTED_MAX
                {
                    let person = ExportedUser {
                        display_name: user.display_name(),
                        username: text::name(user.name.as_deref()),
                        is_bot: *user.is_bot == Some(true),
                        team: user.team_id.0,
                    };
                    people.insert(id, person);
                }
            });
            self.people = people;
        }
    }

    /// Messages of another workspace would take the identities of this one's.
    fn check_workspace(&self, path: &Path) -> Result<(), ExportError> {
        let teams: HashSet<&str> = self
            .people
            .values()
            .filter_map(|person| person.team.as_deref())
            .filter(|team| team.starts_with('T'))
            .collect();
        let own = self.identity.account.as_str();
        if teams.is_empty() || teams.contains(own) {
            return Ok(());
        }
        let mut teams: Vec<&str> = teams.into_iter().take(3).collect();
        teams.sort_unstable();
        Err(ExportError::NotAnExport {
            what: format!(
                "{} is an export of another workspace: its people are of {}, the channel is of {own} ({}); name the channel of that workspace with --channel",
                path.display(),
                teams.join(", "),
                self.identity.account_name
            ),
        })
    }

    fn read_chats(&mut self) {
        let kinds = [
            ChatKind::Public,
            ChatKind::Private,
            ChatKind::Direct,
            ChatKind::GroupDirect,
        ];
        for (index, kind) in INDEXES.into_iter().zip(kinds) {
            let mut chats = std::mem::take(&mut self.chats);
            let bot = self.identity.user_id.clone();
            self.each_listed(index, |listed: ListedChat| {
                let id = listed.id.0.filter(|id| !id.is_empty());
                let (Some(id), name) = (id, listed.name.0) else {
                    return;
                };
                let is_private = kind == ChatKind::Public && *listed.is_private == Some(true);
                let chat = ExportedChat {
                    title: text::channel_title(name.as_deref()),
                    kind: Some(if is_private { ChatKind::Private } else { kind }),
                    has_bot: Some(listed.members.contains(&bot)),
                    chat: id.clone(),
                };
                if chats.len() < LISTED_MAX {
                    let folder = name.filter(|_| kind != ChatKind::Direct);
                    chats.entry(folder.unwrap_or(id)).or_insert(chat);
                }
            });
            self.chats = chats;
        }
    }

    /// Reads a list, entry by entry. A missing list counts as empty; a broken one is noted.
    fn each_listed<T: serde::de::DeserializeOwned>(&mut self, name: &str, mut each: impl FnMut(T)) {
        let is_there = self.files.list().iter().any(|file| file.name == name);
        if !is_there {
            return;
        }
        let mut problems = Vec::new();
        let read = self.each_element(name, |raw, line| {
            match raw.and_then(|raw| read_object(&mend(raw)).map_err(|cause| mismatch(&cause))) {
                Ok(value) => each(value),
                Err(what) => problems.push(unreadable(name, line, &what)),
            }
            ControlFlow::Continue(())
        });
        problems.extend(read.err());
        self.problems.extend(problems);
    }

    /// Reads one day of a chat.
    fn read_day(
        &mut self,
        name: &str,
        chat: &ExportedChat,
        sink: &mut dyn ExportSink,
    ) -> ControlFlow<()> {
        let before = self.read_bytes;
        let identity = self.identity.clone();
        let people = std::mem::take(&mut self.people);
        let mut named = std::mem::take(&mut self.named);
        let mut flow = ControlFlow::Continue(());
        let read = self.each_element(name, |raw, line| {
            let thing = match raw {
                Ok(raw) => message_of(raw, chat, &identity)
                    .unwrap_or_else(|what| unreadable(name, line, &what)),
                Err(what) => unreadable(name, line, &what),
            };
            let mut things = Vec::new();
            match thing {
                Exported::Message(mut message) => {
                    name_sender(&mut message.message, &people, &identity);
                    things = mentioned(&message.message, &people, &mut named);
                    things.push(Exported::Message(message));
                }
                other => things.push(other),
            }
            for thing in things {
                flow = sink.take(thing, before);
                if flow.is_break() {
                    break;
                }
            }
            flow
        });
        self.people = people;
        self.named = named;
        flow?;
        match read {
            Ok(()) => flow,
            Err(broken) => sink.take(broken, before),
        }
    }

    /// Lifts the elements of a file's array, one at a time.
    fn each_element(
        &mut self,
        name: &str,
        mut each: impl FnMut(Result<&[u8], String>, u64) -> ControlFlow<()>,
    ) -> Result<(), Exported> {
        let reader = self.files.read(name);
        let reader = reader.map_err(|cause| broken(name, 1, &ScanError::Io(cause)))?;
        let mut stream = JsonStream::new(reader).map_err(|cause| broken(name, 1, &cause))?;
        let walked = walk(&mut stream, &mut each);
        walked.map_err(|cause| broken(name, stream.line(), &cause))
    }
}

fn walk<R: std::io::Read>(
    stream: &mut JsonStream<R>,
    each: &mut impl FnMut(Result<&[u8], String>, u64) -> ControlFlow<()>,
) -> Result<(), ScanError> {
    stream.enter(b'[', "a list")?;
    let (mut raw, mut is_first) = (Vec::new(), true);
    while stream.next_element(&mut is_first)? {
        let line = stream.line();
        let lifted = stream.lift(&mut raw, MESSAGE_MAX_BYTES)?;
        let element = match lifted {
            Lifted::Whole => Ok(raw.as_slice()),
            Lifted::TooLong => Err(format!("it is longer than {} MiB", MESSAGE_MAX_BYTES >> 20)),
        };
        if each(element, line).is_break() {
            return Ok(());
        }
    }
    Ok(())
}

fn unreadable(name: &str, line: u64, what: &str) -> Exported {
    Exported::Unreadable {
        place: format!("{name} line {line}"),
        what: what.to_owned(),
    }
}

fn broken(name: &str, line: u64, cause: &ScanError) -> Exported {
    Exported::Unreadable {
        place: format!("{name} line {line}"),
        what: format!("{cause}; nothing after it was read from this file"),
    }
}

fn message_of(raw: &[u8], chat: &ExportedChat, identity: &Identity) -> Result<Exported, String> {
    let mut event: SlackEvent = read_object(&mend(raw)).map_err(|cause| mismatch(&cause))?;
    event.channel = Maybe(Some(IdOr::Id(chat.chat.clone())));
    event.channel_type = Maybe(None);
    match recorded(&event, identity) {
        RecordedMessage::Message(mut message, is_own) => {
            message.place.kind = chat.kind;
            message.place.title.clone_from(&chat.title);
            Ok(Exported::Message(Box::new(ExportedMessage {
                message: *message,
                identity: ExportedIdentity::Shared,
                is_own,
            })))
        }
        RecordedMessage::Nothing(reason) => Ok(Exported::Skipped { reason }),
        RecordedMessage::Unreadable(what) => Err(what),
    }
}

/// Gives the sender the name and kind that the list of people has.
fn name_sender(
    message: &mut InboundMessage,
    people: &HashMap<String, ExportedUser>,
    own: &Identity,
) {
    let sender = &mut message.sender;
    let Some(person) = people.get(&sender.id) else {
        return;
    };
    // A bot may post under another name than its own, which is kept.
    if sender.kind != SenderKind::Bot || sender.display_name.is_none() {
        let listed = person.display_name.clone();
        sender.display_name = listed.or_else(|| sender.display_name.take());
    }
    sender.username = person.username.clone().or_else(|| sender.username.take());
    if person.is_bot {
        sender.kind = SenderKind::Bot;
    }
    if person.team.as_deref() == Some(own.account.as_str()) {
        sender.is_stranger = false;
    }
}

/// The names of people who are mentioned, each once.
fn mentioned(
    message: &InboundMessage,
    people: &HashMap<String, ExportedUser>,
    named: &mut HashSet<String>,
) -> Vec<Exported> {
    let mut found = Vec::new();
    for id in &message.mentions {
        let Some(person) = people.get(id) else {
            continue;
        };
        if named.insert(id.clone()) {
            found.push(Exported::Person(Sender {
                id: id.clone(),
                display_name: person.display_name.clone(),
                username: person.username.clone(),
                kind: if person.is_bot {
                    SenderKind::Bot
                } else {
                    SenderKind::Person
                },
                is_stranger: false,
            }));
        }
    }
    found
}
