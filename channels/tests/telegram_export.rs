//! Telegram Desktop exports as the sheet describes them: what is read, under which identity, and what
//! a broken one says.
#![cfg(feature = "telegram")]
#![allow(clippy::unwrap_used)]

use std::ops::ControlFlow;

use serde_json::{Value, json};
use vocative_channels::export::{
    ExportSink, Exported, ExportedChat, ExportedIdentity, ExportedMessage, open_export,
};
use vocative_contract::envelope::ChatKind;
use vocative_contract::identity::{Identity, Platform};
use vocative_contract::markup::mention_token;

/// The sheet's own example.
const SINGLE: &str = r#"{"name": "Platform team", "type": "private_supergroup", "id": 1234567890, "messages": [
 {"id": 1, "type": "service", "date": "2026-01-05T10:00:00", "date_unixtime": "1767607200", "actor": "Ann", "actor_id": "user5001", "action": "create_group", "title": "Platform team", "members": ["Ann", "Bob"], "text": "", "text_entities": []},
 {"id": 7, "type": "message", "date": "2026-01-05T10:01:00", "date_unixtime": "1767607260", "edited": "2026-01-05T10:02:00", "edited_unixtime": "1767607320",
  "from": "Ann", "from_id": "user5001", "reply_to_message_id": 5,
  "text": ["see ", {"type": "link", "text": "https://example.org"}, " and ", {"type": "bold", "text": "logs"}],
  "text_entities": [{"type": "plain", "text": "see "}, {"type": "link", "text": "https://example.org"}, {"type": "plain", "text": " and "}, {"type": "bold", "text": "logs"}]},
 {"id": 8, "type": "message", "date": "2026-01-05T10:03:00", "date_unixtime": "1767607380", "from": null, "from_id": "user5002", "text": "ok", "text_entities": [{"type": "plain", "text": "ok"}]}]}"#;

fn identity() -> Identity {
    Identity {
        platform: Platform::Telegram,
        account: "777".to_owned(),
        account_name: "team_bot".to_owned(),
        user_id: "777".to_owned(),
        other_ids: Vec::new(),
        username: Some("team_bot".to_owned()),
        display_name: "Team Bot".to_owned(),
        warnings: Vec::new(),
        organisation: None,
    }
}

#[derive(Default)]
struct Taken {
    known_topics: Vec<(String, Option<String>)>,
    chats: Vec<ExportedChat>,
    things: Vec<Exported>,
}

impl ExportSink for Taken {
    fn begin_chat(&mut self, chat: &ExportedChat) -> bool {
        self.chats.push(chat.clone());
        true
    }

    fn topics(&self, _: &ExportedChat) -> Vec<(String, Option<String>)> {
        self.known_topics.clone()
    }

    fn take(&mut self, thing: Exported, _: u64) -> ControlFlow<()> {
        self.things.push(thing);
        ControlFlow::Continue(())
    }
}

impl Taken {
    fn messages(&self) -> Vec<&ExportedMessage> {
        let found = self.things.iter().filter_map(|thing| match thing {
            Exported::Message(message) => Some(&**message),
            _ => None,
        });
        found.collect()
    }

    fn ids(&self) -> Vec<&str> {
        let messages = self.messages().into_iter();
        messages.map(|it| it.message.message_id.as_str()).collect()
    }

    fn texts(&self) -> Vec<&str> {
        let messages = self.messages().into_iter();
        messages.map(|it| it.message.text.as_str()).collect()
    }

    fn rest(&self) -> Vec<String> {
        let found = self.things.iter().filter_map(|thing| match thing {
            Exported::Skipped { reason } => Some(reason.clone().into_owned()),
            Exported::Unreadable { place, what } => Some(format!("{place}: {what}")),
            _ => None,
        });
        found.collect()
    }
}

fn read(json: &[u8]) -> Taken {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("result.json"), json).unwrap();
    let mut taken = Taken::default();
    open_export(folder.path(), &identity())
        .unwrap()
        .read(&mut taken);
    taken
}

fn read_chat(kind: &str, id: i64, messages: &Value) -> Taken {
    let chat = json!({"name": "Team", "type": kind, "id": id, "messages": messages});
    read(ordered(&chat).as_bytes())
}

/// The fields in the order in which Telegram Desktop writes them.
fn ordered(chat: &Value) -> String {
    format!(
        r#"{{"name": {}, "type": {}, "id": {}, "messages": {}}}"#,
        chat["name"], chat["type"], chat["id"], chat["messages"]
    )
}

fn message(id: i64, from: &str, at: i64, text: &str) -> Value {
    json!({"id": id, "type": "message", "date": "2026-01-05T10:00:00", "date_unixtime": at.to_string(),
        "from": "Ann", "from_id": from, "text": text, "text_entities": [{"type": "plain", "text": text}]})
}

#[test]
fn a_supergroup_has_the_ids_of_live_capture() {
    let taken = read(SINGLE.as_bytes());
    assert_eq!(
        taken.chats,
        [ExportedChat {
            chat: "-1001234567890".to_owned(),
            title: Some("Platform team".to_owned()),
            kind: Some(ChatKind::Private),
            has_bot: None,
        }]
    );
    assert_eq!(taken.ids(), ["7", "8"]);
    assert_eq!(taken.rest(), ["joins and other service messages"]);
    let first = taken.messages()[0];
    assert_eq!(first.identity, ExportedIdentity::Shared);
    let message = &first.message;
    assert_eq!(message.text, "see https://example.org and **logs**");
    assert_eq!(message.sender.id, "5001");
    assert_eq!(message.sender.display_name.as_deref(), Some("Ann"));
    assert_eq!(
        (message.sent_at_ms, message.ordinal),
        (1_767_607_260_000, 7)
    );
    assert_eq!(message.edit_marker.as_deref(), Some("1767607320"));
    assert_eq!(message.reply_to.as_ref().unwrap().message_id, "5");
    assert_eq!(taken.messages()[1].message.sender.display_name, None);
}

#[test]
fn a_whole_accounts_export_gives_what_a_bot_can_be_in() {
    let one = [message(1, "user5001", 1_767_607_200, "hello")];
    let chat = |kind: &str, id: i64| {
        ordered(&json!({"name": "Team", "type": kind, "id": id, "messages": one}))
    };
    let chats = [
        chat("personal_chat", 5002),
        chat("bot_chat", 777),
        chat("bot_chat", 888),
        chat("private_group", 4_518),
        chat("public_supergroup", 12),
        chat("private_channel", 13),
        r#"{"type": "saved_messages", "id": 1, "messages": []}"#.to_owned(),
        chat("hologram", 14),
    ];
    let json = format!(
        r#"{{"about": "x", "personal_information": {{"user_id": 5001}}, "contacts": {{"list": [1]}},
            "chats": {{"about": "y", "list": [{}]}}, "left_chats": {{"list": [{}]}}}}"#,
        chats.join(","),
        chat("private_supergroup", 15)
    );
    let taken = read(json.as_bytes());
    let chats: Vec<_> = taken
        .chats
        .iter()
        .map(|it| (it.chat.as_str(), it.kind.unwrap()))
        .collect();
    assert_eq!(
        chats,
        [
            ("5001", ChatKind::Direct),
            ("-4518", ChatKind::Private),
            ("-1000000000012", ChatKind::Public),
            ("-1000000000013", ChatKind::Broadcast),
            ("-1000000000015", ChatKind::Private),
        ]
    );
    assert_eq!(
        taken.rest(),
        [
            "private chats without this bot",
            "chats with other bots",
            "private chats without this bot",
            "chats of an unknown type"
        ]
    );
}

#[test]
fn messages_of_an_own_box_get_ids_unlike_live_ones() {
    let ann = "user5001";
    let mut reply = message(9, "user5002", 1_767_607_201, "ok");
    reply["reply_to_message_id"] = json!(7);
    let own = [
        message(7, ann, 1_767_607_200, "ok"),
        message(8, ann, 1_767_607_200, "ok"),
        reply,
    ];
    let taken = read_chat("private_group", 4_518, &json!(own));
    let occurrences: Vec<_> = taken.messages().iter().map(|it| it.identity).collect();
    let own_box = |occurrence| ExportedIdentity::OwnBox { occurrence };
    assert_eq!(occurrences, [own_box(0), own_box(1), own_box(0)]);
    let ids = taken.ids();
    assert!(ids.iter().all(|id| id.starts_with("import:")), "{ids:?}");
    let target = &taken.messages()[2].message.reply_to;
    assert_eq!(target.as_ref().unwrap().message_id, ids[0]);
    // Another account's box begins with another message.
    let other = read_chat(
        "private_group",
        4_518,
        &json!([message(107, ann, 1_767_607_200, "ok")]),
    );
    assert_ne!(other.ids()[0].split(':').nth(1), ids[0].split(':').nth(1));
}

#[test]
fn what_a_supergroup_keeps_from_a_basic_group_is_of_an_own_box() {
    let at = 1_767_607_200;
    let from_group = json!({"id": 1, "type": "service", "date_unixtime": "1767607203", "action": "migrate_from_group", "text": ""});
    let restarted = json!([
        message(5, "user1", at, "old"),
        message(6, "user1", at + 1, "old too"),
        from_group,
        message(5, "user1", at + 9, "new")
    ]);
    let shifted = json!([
        message(-999_999_995, "user1", at, "old"),
        message(2, "user1", at + 9, "new")
    ]);
    for (messages, expected) in [
        (restarted, vec![true, true, false]),
        (shifted, vec![true, false]),
    ] {
        let taken = read_chat("private_supergroup", 12, &messages);
        let own: Vec<bool> = taken
            .messages()
            .iter()
            .map(|it| it.identity != ExportedIdentity::Shared)
            .collect();
        assert_eq!(own, expected);
        assert_eq!(
            taken
                .ids()
                .iter()
                .filter(|id| id.starts_with("import:"))
                .count(),
            expected.len() - 1
        );
    }
}

#[test]
fn a_topic_is_known_by_what_is_replied_to() {
    let topic = json!({"id": 3, "type": "service", "date_unixtime": "1767607200", "action": "topic_created", "title": "Deploys", "text": ""});
    let reply = |id, to: i64| {
        let mut reply = message(id, "user1", 1_767_607_201, "x");
        reply["reply_to_message_id"] = json!(to);
        reply
    };
    let taken = read_chat(
        "private_supergroup",
        12,
        &json!([
            topic,
            reply(4, 3),
            reply(5, 4),
            message(6, "user1", 1_767_607_202, "general"),
            reply(7, 6)
        ]),
    );
    let places: Vec<_> = taken
        .messages()
        .iter()
        .map(|it| {
            (
                it.message.place.topic.clone(),
                it.message.reply_to.as_ref().map(|to| to.message_id.clone()),
            )
        })
        .collect();
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(
        places,
        [
            (text("3"), None),
            (text("3"), text("4")),
            (None, None),
            (None, text("6"))
        ]
    );
    assert_eq!(
        taken.messages()[0].message.place.topic_title.as_deref(),
        Some("Deploys")
    );
}

#[test]
fn every_kind_of_message_says_what_it_was() {
    let run = |kind: &str, extra: Value| {
        let mut run = json!({"type": kind, "text": "x"});
        run.as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        json!({"text_entities": [{"type": "plain", "text": "\u{1f600} "}, run]})
    };
    let table = [
        (run("italic", json!({})), "\u{1f600} _x_".to_owned()),
        (
            run("pre", json!({"language": "rust"})),
            "\u{1f600} \n```rust\nx\n```".to_owned(),
        ),
        (
            run("text_link", json!({"href": "https://e.org"})),
            "\u{1f600} [x](https://e.org)".to_owned(),
        ),
        (
            run("mention_name", json!({"user_id": 42})),
            format!("\u{1f600} {}", mention_token("42")),
        ),
        (
            json!({"text_entities": [{"type": "mention", "text": "@Team_Bot"}]}),
            mention_token("777"),
        ),
        (
            json!({"text_entities": [], "text": ["old ", {"type": "bold", "text": "way"}]}),
            "old **way**".to_owned(),
        ),
        (
            json!({"photo": "(File not included. Change data exporting settings to download.)", "photo_file_size": 9, "text": "look", "text_entities": [{"type": "plain", "text": "look"}]}),
            "[photo] look".to_owned(),
        ),
        (
            json!({"file": "files/plan.pdf", "mime_type": "application/pdf"}),
            "[document plan.pdf]".to_owned(),
        ),
        (
            json!({"file": "v.ogg", "media_type": "voice_message", "duration_seconds": 12}),
            "[voice 0:12]".to_owned(),
        ),
        (
            json!({"file": "s.webp", "media_type": "sticker", "sticker_emoji": "\u{1f44d}"}),
            "[sticker \u{1f44d}]".to_owned(),
        ),
        (
            json!({"poll": {"question": "Lunch?", "answers": [{"text": "yes", "voters": 1}]}}),
            "[poll] Lunch?\n- yes".to_owned(),
        ),
        (
            json!({"location_information": {"latitude": 1.5, "longitude": 2.0}}),
            "[location 1.50000, 2.00000]".to_owned(),
        ),
        (
            json!({"contact_information": {"first_name": "Bob", "last_name": "", "phone_number": "+1"}}),
            "[contact Bob, +1]".to_owned(),
        ),
        (
            json!({"forwarded_from": "News", "text_entities": [{"type": "plain", "text": "hi"}]}),
            "forwarded from News: hi".to_owned(),
        ),
        (
            json!({"forwarded_from": null, "text_entities": [{"type": "plain", "text": "hi"}]}),
            "forwarded from somebody: hi".to_owned(),
        ),
    ];
    for (fields, expected) in table {
        let mut one = json!({"id": 1, "type": "message", "date_unixtime": "1767607200", "from_id": "user1", "text": ""});
        one.as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        let taken = read_chat("private_supergroup", 12, &json!([one]));
        assert_eq!(taken.texts(), [expected], "{fields}");
    }
}

#[test]
fn who_writes_as_a_chat_is_that_chat() {
    let mut anonymous = message(1, "channel12", 1_767_607_200, "by the admins");
    anonymous["author"] = json!("Ann");
    let bot = message(2, "user777", 1_767_607_200, "I am here");
    let taken = read_chat("private_supergroup", 12, &json!([anonymous, bot]));
    let senders: Vec<_> = taken
        .messages()
        .iter()
        .map(|it| (it.message.sender.id.as_str(), it.is_own))
        .collect();
    assert_eq!(senders, [("chat:-1000000000012", false), ("777", true)]);
}

#[test]
fn a_cut_file_gives_what_is_before_the_cut() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("team chat.json");
    for cut in 0..SINGLE.len() {
        std::fs::write(&path, &SINGLE.as_bytes()[..cut]).unwrap();
        let Ok(mut export) = open_export(&path, &identity()) else {
            assert!(cut < SINGLE.find("\"messages\": ").unwrap() + 12, "{cut}");
            continue;
        };
        let mut taken = Taken::default();
        export.read(&mut taken);
        let rest = taken.rest();
        assert!(
            rest.last().unwrap().contains("it ends in the middle"),
            "{cut}: {rest:?}"
        );
        let whole = SINGLE[..cut].matches("\n").count();
        assert!(
            rest.last()
                .unwrap()
                .starts_with(&format!("team chat.json line {}", whole + 1)),
            "{cut}: {rest:?}"
        );
    }
}

#[test]
fn what_is_no_export_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refusal = || {
        open_export(folder.path(), &identity())
            .err()
            .unwrap()
            .to_string()
    };
    assert!(refusal().contains("machine-readable JSON"));
    for text in ["", "[]", "{}", "<html>", "{\"chats\": 7}", "PK\u{3}\u{4}"] {
        std::fs::write(folder.path().join("result.json"), text).unwrap();
        assert!(
            refusal().contains("is no Telegram Desktop export"),
            "{text}"
        );
    }
}

#[test]
fn what_can_not_be_read_is_told_and_the_rest_is_read() {
    let json = "{\"name\": \"T\", \"type\": \"public_supergroup\", \"id\": 12, \"messages\": [
        {\"id\": 1, \"type\": \"message\", \"date_unixtime\": \"1767607200\", \"from_id\": \"user1\", \"text\": \"a\\ud800\\u0000b\"},
        {\"id\": 2, \"type\": \"message\", \"date\": \"2019-01-01T00:00:00\", \"from_id\": \"user1\", \"text\": \"no zone\"},
        {\"id\": 3, \"type\": \"unsupported\"}, 7, {\"id\": \"x\"},
        {\"id\": 4, \"type\": \"message\", \"date_unixtime\": \"99999999999999999999\", \"text\": \"absurd\"},
        {\"id\": 5, \"type\": \"message\", \"date_unixtime\": \"1767607100\", \"from_id\": \"user1\", \"text\": \"out of order\"},
        {\"id\": 5, \"type\": \"message\", \"date_unixtime\": \"1767607100\", \"from_id\": \"user1\", \"text\": \"twice\"}]}";
    let taken = read(json.as_bytes());
    assert_eq!(taken.texts(), ["a\u{fffd}b", "out of order", "twice"]);
    let rest = taken.rest();
    assert_eq!(rest.len(), 5, "{rest:#?}");
    assert!(rest[0].starts_with("result.json line 3: a message without date_unixtime"));
    assert_eq!(rest[1], "messages that Telegram Desktop can't export");
    assert_eq!(
        rest[2..4],
        [
            "result.json line 4: it is no message: invalid type: integer `7`, expected an object",
            "result.json line 4: it is no message: invalid type: string \"x\", expected a whole number",
        ]
    );
    assert!(rest[4].starts_with("result.json line 5: a message without date_unixtime"));
}

/// An export of some days does not tell in which topic a message is that replies to an earlier one.
#[test]
fn a_part_of_a_forum_is_seated_by_the_topics_that_are_known_and_the_rest_is_told() {
    let reply = |id: i64, target: Option<i64>, text: &str| {
        let mut message = message(id, "user5001", 1_767_607_200 + id, text);
        if let Some(target) = target {
            message["reply_to_message_id"] = json!(target);
        }
        message
    };
    let messages = json!([
        reply(100, None, "in General"),
        reply(101, Some(7), "in a topic of the store"),
        reply(102, Some(101), "a reply there"),
        reply(103, Some(8), "in a topic that nobody knows"),
        reply(104, Some(103), "a reply to that"),
        reply(105, Some(100), "a reply in General"),
    ]);
    let chat =
        json!({"name": "Team", "type": "private_supergroup", "id": 12, "messages": messages});
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("result.json"), ordered(&chat)).unwrap();
    let mut taken = Taken {
        known_topics: vec![("7".to_owned(), Some("Deploys".to_owned()))],
        ..Taken::default()
    };
    open_export(folder.path(), &identity())
        .unwrap()
        .read(&mut taken);
    let places: Vec<_> = taken
        .messages()
        .iter()
        .map(|it| {
            let place = &it.message.place;
            (
                it.message.message_id.as_str(),
                place.topic.as_deref(),
                place.topic_title.as_deref(),
            )
        })
        .collect();
    let deploys = (Some("7"), Some("Deploys"));
    assert_eq!(
        places,
        [
            ("100", None, None),
            ("101", deploys.0, deploys.1),
            ("102", deploys.0, deploys.1),
            ("105", None, None),
        ]
    );
    let rest = taken.rest();
    assert_eq!(rest.len(), 2);
    assert!(
        rest.iter()
            .all(|reason| reason.contains("topic that is not known")),
        "{rest:?}"
    );
    // Where nothing says that it is a forum, an old target is an old target.
    let plain = read_chat("private_supergroup", 12, &messages);
    assert_eq!(plain.ids().len(), 6);
}
