//! Slack exports as the sheet describes them: what is read, under which identity, and what a broken
//! one says.
#![cfg(feature = "slack")]
#![allow(clippy::unwrap_used)]

use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::Path;

use vocative_channels::export::{
    ExportSink, Exported, ExportedChat, ExportedIdentity, ExportedMessage, open_export,
};
use vocative_contract::envelope::{ChatKind, SenderKind};
use vocative_contract::identity::{Identity, Platform};
use vocative_contract::markup::mention_token;

const CHANNELS: &str = r#"[{"id": "C1", "name": "general", "created": 1736400000, "creator": "U0HUMAN01", "is_archived": false,
  "is_general": true, "members": ["U0HUMAN01", "UBOT"], "topic": {"value": "", "creator": "", "last_set": 0}}]"#;
const GROUPS: &str = r#"[{"id": "G1", "name": "private-talk", "members": ["U0HUMAN01"]}]"#;
const DMS: &str = r#"[{"id": "D1", "created": 1, "members": ["U0HUMAN01", "UBOT"]}, {"id": "D2", "members": ["U0HUMAN01", "U0HUMAN02"]}]"#;
const MPIMS: &str = r#"[{"id": "G2", "name": "mpdm-a--b--c-1", "members": ["UBOT"]}]"#;
const USERS: &str = r#"[
  {"id": "U0HUMAN01", "team_id": "T0AAAAAAA", "name": "bob", "deleted": false, "real_name": "Bob B", "profile": {"display_name": "bobby", "real_name": "Bob B"}},
  {"id": "U0HUMAN02", "team_id": "T0AAAAAAA", "name": "ann", "real_name": "Ann A", "profile": {"display_name": "", "real_name": "Ann A"}, "is_bot": false},
  {"id": "UOTHER", "team_id": "T0AAAAAAA", "name": "ci", "is_bot": true, "profile": {"real_name": "CI"}}]"#;
/// The sheet's own example, and its kin.
const DAY: &str = r#"[
  {"type": "message", "user": "U0HUMAN01", "text": "deploy *done*? <@U0HUMAN02> &amp; co", "ts": "1736478630.905399",
   "client_msg_id": "0c9d6a2e-7d3b-4c65-8a53-3b7f5f0a1c11", "team": "T0AAAAAAA", "user_team": "T0AAAAAAA", "source_team": "T0AAAAAAA",
   "user_profile": {"name": "bob", "real_name": "Bob B", "display_name": "bob", "first_name": "Bob", "team": "T0AAAAAAA",
                    "avatar_hash": "g0", "image_72": "https://example.com/72.png", "is_restricted": false, "is_ultra_restricted": false},
   "thread_ts": "1736478630.905399", "reply_count": 1, "reply_users_count": 1, "reply_users": ["U0HUMAN02"],
   "latest_reply": "1736478700.000100", "replies": [{"user": "U0HUMAN02", "ts": "1736478700.000100"}], "subscribed": false, "blocks": []},
  {"type": "message", "user": "U0HUMAN02", "text": "yes", "ts": "1736478700.000100", "thread_ts": "1736478630.905399", "parent_user_id": "U0HUMAN01",
   "edited": {"user": "U0HUMAN02", "ts": "1736478710.000000"}},
  {"type": "message", "subtype": "channel_join", "user": "U0HUMAN02", "text": "<@U0HUMAN02> has joined the channel", "ts": "1736470000.000100"},
  {"type": "message", "subtype": "bot_message", "bot_id": "B9", "username": "Build", "text": "green", "ts": "1736478800.000000"},
  {"type": "message", "user": "UBOT", "bot_id": "BBOT", "text": "I can help.", "ts": "1736478801.000000"},
  {"type": "message", "user": "U0HUMAN01", "text": "", "ts": "1736478802.000000",
   "files": [{"id": "F1", "name": "plan.pdf", "mimetype": "application/pdf", "size": 9, "url_private": "https://files/x?t=xoxe-1"}]}
]"#;

fn identity() -> Identity {
    Identity {
        platform: Platform::Slack,
        account: "T0AAAAAAA".to_owned(),
        account_name: "Acme".to_owned(),
        user_id: "UBOT".to_owned(),
        other_ids: vec!["BBOT".to_owned()],
        username: None,
        display_name: "Vocative".to_owned(),
        warnings: Vec::new(),
        organisation: None,
    }
}

fn files() -> Vec<(&'static str, Vec<u8>)> {
    [
        ("channels.json", CHANNELS),
        ("groups.json", GROUPS),
        ("dms.json", DMS),
        ("mpims.json", MPIMS),
        ("users.json", USERS),
        ("integration_logs.json", "[{"),
        ("general/2025-01-10.json", DAY),
        (
            "D2/2025-01-10.json",
            r#"[{"type":"message","user":"U0HUMAN01","text":"secret","ts":"1736478630.000000"}]"#,
        ),
    ]
    .map(|(name, text)| (name, text.as_bytes().to_vec()))
    .to_vec()
}

fn folder(files: &[(&str, Vec<u8>)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    folder
}

fn zip(files: &[(&str, Vec<u8>)]) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("export.zip");
    let mut zip = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
    for (name, bytes) in files {
        let options = zip::write::SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Deflated);
        zip.start_file(*name, options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap();
    (folder, path)
}

/// Everything an export holds, as far as chats are wanted.
#[derive(Default)]
struct Taken {
    chats: Vec<ExportedChat>,
    things: Vec<Exported>,
    stop_after: Option<usize>,
}

impl ExportSink for Taken {
    fn begin_chat(&mut self, chat: &ExportedChat) -> bool {
        self.chats.push(chat.clone());
        chat.has_bot != Some(false)
    }

    fn take(&mut self, thing: Exported, _: u64) -> ControlFlow<()> {
        self.things.push(thing);
        match self.stop_after {
            Some(count) if self.things.len() >= count => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

impl Taken {
    fn messages(&self) -> Vec<&ExportedMessage> {
        let message = |thing: &'_ Exported| matches!(thing, Exported::Message(_));
        let found = self.things.iter().filter(|thing| message(thing));
        found
            .map(|thing| match thing {
                Exported::Message(message) => &**message,
                _ => unreachable!("only messages were kept"),
            })
            .collect()
    }

    fn texts(&self) -> Vec<&str> {
        let messages = self.messages();
        messages
            .into_iter()
            .map(|it| it.message.text.as_str())
            .collect()
    }

    fn problems(&self) -> Vec<String> {
        let found = self.things.iter().filter_map(|thing| match thing {
            Exported::Unreadable { place, what } => Some(format!("{place}: {what}")),
            _ => None,
        });
        found.collect()
    }
}

fn read(path: &Path) -> Taken {
    let mut taken = Taken::default();
    open_export(path, &identity()).unwrap().read(&mut taken);
    taken
}

fn refusal(path: &Path) -> String {
    open_export(path, &identity()).err().unwrap().to_string()
}

#[test]
fn a_folder_and_its_zip_hold_the_same() {
    let from_folder = read(folder(&files()).path());
    let (_folder, path) = zip(&files());
    let from_zip = read(&path);
    assert_eq!(from_folder.things, from_zip.things);
    let packed: Vec<(String, Vec<u8>)> = files()
        .into_iter()
        .map(|(name, bytes)| (format!("Acme export/{name}"), bytes))
        .collect();
    let packed: Vec<(&str, Vec<u8>)> = packed
        .iter()
        .map(|(n, b)| (n.as_str(), b.clone()))
        .collect();
    let (_folder, path) = zip(&packed);
    assert_eq!(read(&path).things, from_folder.things);
}

#[test]
fn messages_are_what_their_live_events_would_be() {
    let taken = read(folder(&files()).path());
    let messages = taken.messages();
    let root = &messages[0].message;
    assert_eq!(root.place.chat, "C1");
    assert_eq!(root.place.kind, Some(ChatKind::Public));
    assert_eq!(root.place.title.as_deref(), Some("#general"));
    assert_eq!(root.message_id, "1736478630.905399");
    assert_eq!(
        (root.sent_at_ms, root.ordinal),
        (1_736_478_630_905, 905_399)
    );
    assert_eq!(
        root.text,
        format!("deploy **done**? {} & co", mention_token("U0HUMAN02"))
    );
    assert_eq!(root.sender.display_name.as_deref(), Some("bobby"));
    assert!(!root.sender.is_stranger);
    let reply = &messages[1].message;
    assert_eq!(reply.place.thread.as_deref(), Some("1736478630.905399"));
    assert_eq!(reply.edit_marker.as_deref(), Some("1736478710.000000"));
    assert_eq!(messages[2].message.sender.kind, SenderKind::Bot);
    assert_eq!(
        messages[2].message.sender.display_name.as_deref(),
        Some("Build")
    );
    let own: Vec<bool> = messages.iter().map(|message| message.is_own).collect();
    assert_eq!(own, [false, false, false, true, false]);
    assert_eq!(messages[4].message.text, "[file plan.pdf]");
    assert_eq!(messages[4].message.attachments.len(), 1);
    assert!(
        messages
            .iter()
            .all(|it| it.identity == ExportedIdentity::Shared)
    );
    // The mentioned one is named before who mentions her, and a join is passed over.
    assert!(
        matches!(&taken.things[0], Exported::Person(ann) if ann.id == "U0HUMAN02" && ann.display_name.as_deref() == Some("Ann A"))
    );
    let joins = Exported::Skipped {
        reason: "joins and other service messages".into(),
    };
    assert!(taken.things.contains(&joins));
}

#[test]
fn a_chat_says_whether_the_bot_is_in_it() {
    let taken = read(folder(&files()).path());
    let chats: Vec<_> = taken
        .chats
        .iter()
        .map(|chat| (chat.chat.as_str(), chat.kind.unwrap(), chat.has_bot))
        .collect();
    assert_eq!(
        chats,
        [
            ("D2", ChatKind::Direct, Some(false)),
            ("C1", ChatKind::Public, Some(true)),
        ]
    );
    assert!(!taken.texts().contains(&"secret"));
}

#[test]
fn what_is_no_export_or_another_workspaces_is_refused() {
    let empty = tempfile::tempdir().unwrap();
    assert!(refusal(empty.path()).contains("is no Slack export: it has none of channels.json"));
    assert!(refusal(&empty.path().join("none.zip")).contains("can't be read"));
    let json = empty.path().join("result.json");
    std::fs::write(&json, "{\"chats\": {}}").unwrap();
    assert!(refusal(&json).contains("is no readable zip"));
    let mut other = files();
    other[4].1 = USERS.replace("T0AAAAAAA", "T9").into_bytes();
    let refused = refusal(folder(&other).path());
    assert!(
        refused.contains("people are of T9, the channel is of T0AAAAAAA"),
        "{refused}"
    );
}

#[test]
fn a_zip_that_was_cut_is_told_and_paths_elsewhere_are_not_looked_at() {
    let (_folder, path) = zip(&files());
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    assert!(refusal(&path).contains("if the download was cut, get it again"));
    let mut files = files();
    files.push(("../general/2025-01-11.json", b"[]".to_vec()));
    files.push(("/general/2025-01-12.json", b"[]".to_vec()));
    let (_folder, path) = zip(&files);
    let export = open_export(&path, &identity()).unwrap();
    let days = export.files().iter().filter(|file| file.name.contains('/'));
    assert_eq!(days.count(), 2);
}

#[test]
fn a_broken_day_is_told_with_its_place_and_the_others_are_read() {
    let mut files = files();
    let day = |name, text: &str| (name, text.as_bytes().to_vec());
    files.push(day("general/2025-01-11.json", "[\n{\"type\":\"message\",\"user\":\"U1\",\"text\":\"before\",\"ts\":\"5.0\"},\n{\"type\":\"mess"));
    files.push(day("general/2025-01-12.json", "<html>"));
    files.push(day("general/2025-01-13.json", "[\n{\"type\":\"message\",\"user\":\"U1\",\"text\":\"no ts\"},\n{\"type\":}, 7,\n{\"type\":\"message\",\"user\":\"U1\",\"text\":\"after\",\"ts\":\"6.0\"}]"));
    let taken = read(folder(&files).path());
    assert_eq!(
        taken.texts().iter().rev().take(2).collect::<Vec<_>>(),
        [&"after", &"before"]
    );
    let problems = taken.problems();
    assert_eq!(problems.len(), 5, "{problems:#?}");
    assert_eq!(
        problems[0],
        "general/2025-01-11.json line 3: it ends in the middle, as if it was cut; nothing after it was read from this file"
    );
    assert!(problems[1].starts_with("general/2025-01-12.json line 1: it is not JSON here"));
    assert_eq!(
        problems[2],
        "general/2025-01-13.json line 2: a message without a readable ts"
    );
    assert!(problems[3].starts_with("general/2025-01-13.json line 3: "));
    assert!(problems[4].starts_with("general/2025-01-13.json line 3: "));
}

#[test]
fn hostile_text_is_kept_as_far_as_it_is_text() {
    let mut files = files();
    let mut bytes = br#"[{"type":"message","user":"U1","text":"a\ud800b\u0000c","ts":"5.0"},
        {"type":"message","user":"U1","text":"caf"#
        .to_vec();
    bytes.extend_from_slice(b"\xe9\x00!\",\"ts\":\"6.0\"},");
    let long = "x".repeat(1 << 20);
    bytes.extend_from_slice(
        format!(r#"{{"type":"message","user":"U1","text":"{long}","ts":"99999999999.0"}}]"#)
            .as_bytes(),
    );
    files.push(("general/2025-01-14.json", bytes));
    let taken = read(folder(&files).path());
    let texts = taken.texts();
    let last = &texts[texts.len() - 3..];
    assert_eq!(last[..2], ["a\u{fffd}bc", "caf\u{fffd}!"]);
    // Longer than any message: cut as one that is heard is.
    assert!((1 << 18..(1 << 18) + 64).contains(&last[2].len()));
    assert!(taken.problems().is_empty());
}

#[test]
fn whoever_takes_may_stop() {
    let folder = folder(&files());
    for count in 1..4 {
        let mut taken = Taken {
            stop_after: Some(count),
            ..Taken::default()
        };
        open_export(folder.path(), &identity())
            .unwrap()
            .read(&mut taken);
        assert_eq!(taken.things.len(), count);
    }
}

/// Slack has more subtypes than it documents, and no single one may end an import.
#[test]
fn what_somebody_said_in_an_unknown_subtype_is_a_message_and_the_rest_is_named() {
    let entries = [
        (
            r#""subtype": "slackbot_response", "user": "USLACKBOT", "text": "lunch is at 12""#,
            None,
        ),
        (
            r#""subtype": "app_post", "bot_id": "B9", "text": "green again""#,
            None,
        ),
        (
            r#""subtype": "sh_room_created", "user": "U0HUMAN01", "text": """#,
            Some("entries of the subtype sh_room_created"),
        ),
        (
            r#""subtype": "joiner_notification", "text": "somebody joined""#,
            Some("entries of the subtype joiner_notification"),
        ),
        (
            r#""subtype": "channel_join""#,
            Some("joins and other service messages"),
        ),
        (
            r#""subtype": "channel_name""#,
            Some("joins and other service messages"),
        ),
        (
            r#""subtype": "tombstone", "user": "USLACKBOT", "text": "This message was deleted.""#,
            Some("deleted messages"),
        ),
        (
            r#""subtype": "Bad \u001b[31m name""#,
            Some("entries of a subtype without a proper name"),
        ),
    ];
    for (entry, expected) in entries {
        let day = format!(r#"[{{"type": "message", {entry}, "ts": "1736478630.905399"}}]"#);
        let mut files = files();
        for (name, content) in &mut files {
            if name.contains('/') {
                *content = day.clone().into_bytes();
            }
        }
        let taken = read(folder(&files).path());
        assert_eq!(taken.problems(), [""; 0], "{entry}");
        let skipped = taken.things.iter().find_map(|thing| match thing {
            Exported::Skipped { reason } => Some(reason.clone().into_owned()),
            _ => None,
        });
        match expected {
            Some(reason) => assert_eq!(skipped.as_deref(), Some(reason), "{entry}"),
            None => assert!(!taken.messages().is_empty() && skipped.is_none(), "{entry}"),
        }
    }
}
