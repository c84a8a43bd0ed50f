//! Real-shaped Telegram updates and the envelopes they become.

#![cfg(feature = "telegram")]
#![allow(clippy::unwrap_used)]

use serde_json::{Map, Value, json};
use vocative_channels::telegram::translate;
use vocative_contract::envelope::{
    Attachment, ChatKind, CommandTarget, CommandWord, Envelope, Event, InboundMessage, Place,
    ReplyTo, Sender, SenderKind, Standing,
};
use vocative_contract::feedback::{Thumb, ThumbChange};
use vocative_contract::identity::{Identity, Platform};
use vocative_contract::interaction::{Control, Interaction, PressedAuthor, PressedMessage};
use vocative_contract::markup::mention_token;
use vocative_contract::probe::{Numbered, Sequence};

const RECEIVED_AT_MS: i64 = 1_795_299_999_123;

fn bot(username: &str) -> Identity {
    Identity {
        platform: Platform::Telegram,
        account: "777".to_owned(),
        account_name: username.to_owned(),
        user_id: "777".to_owned(),
        other_ids: Vec::new(),
        username: Some(username.to_owned()),
        display_name: "Team Bot".to_owned(),
        warnings: Vec::new(),
        organisation: None,
    }
}

/// One file of fixtures: updates by name.
fn fixtures(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap()
}

fn event_of(raw: &str) -> Event {
    translate("tg", &bot("team_bot"), raw, RECEIVED_AT_MS).event
}

struct Fixtures(Map<String, Value>);

impl Fixtures {
    fn event(&self, name: &str) -> Event {
        event_of(&self.0[name].to_string())
    }

    /// Asserts that a fixture is a new message.
    fn posts(&self, name: &str, expected: InboundMessage) {
        assert_eq!(self.event(name), Event::Posted(expected), "{name}");
    }
}

macro_rules! fixtures {
    ($name:literal) => {
        Fixtures(fixtures(include_str!(concat!(
            "fixtures/telegram/",
            $name,
            ".json"
        ))))
    };
}

fn team() -> Place {
    Place {
        chat: "-1001234567890".to_owned(),
        kind: Some(ChatKind::Private),
        title: Some("Platform team".to_owned()),
        ..Place::default()
    }
}

fn ann() -> Sender {
    Sender {
        id: "5001".to_owned(),
        display_name: Some("Ann".to_owned()),
        username: Some("ann_dev".to_owned()),
        kind: SenderKind::Person,
        is_stranger: false,
    }
}

fn chat_sender(id: &str, name: &str, username: Option<&str>, kind: SenderKind) -> Sender {
    Sender {
        id: format!("chat:{id}"),
        display_name: Some(name.to_owned()),
        username: username.map(str::to_owned),
        kind,
        is_stranger: false,
    }
}

/// What Ann writes in the team's group.
fn message(text: &str) -> InboundMessage {
    InboundMessage {
        place: team(),
        message_id: "412".to_owned(),
        sender: ann(),
        text: text.to_owned(),
        mentions: Vec::new(),
        mentions_bot: false,
        command: None,
        reply_to: None,
        attachments: Vec::new(),
        album: None,
        sent_at_ms: 1_795_290_000_000,
        ordinal: 412,
        edit_marker: None,
    }
}

fn reply(message_id: &str, is_own: bool, quote: Option<&str>) -> Option<ReplyTo> {
    Some(ReplyTo {
        message_id: message_id.to_owned(),
        is_own,
        quote: quote.map(str::to_owned),
        is_passed_on: false,
    })
}

#[test]
fn an_envelope_carries_its_account_delivery_and_raw_json() {
    let raw = fixtures!("messages").0["basic_group"].to_string();
    let got = translate("tg", &bot("team_bot"), &raw, RECEIVED_AT_MS);
    let expected = Envelope {
        channel: "tg".to_owned(),
        platform: Platform::Telegram,
        account: "777".to_owned(),
        delivery_id: "731845003".to_owned(),
        received_at_ms: RECEIVED_AT_MS,
        event: Event::Posted(InboundMessage {
            place: Place {
                chat: "-4518810793".to_owned(),
                title: Some("Small".to_owned()),
                ..team()
            },
            ..message("hello")
        }),
        numbered: Some(Numbered {
            sequence: Sequence {
                name: "account".to_owned(),
                is_of_one_chat: false,
            },
            chat: "-4518810793".to_owned(),
            number: Some(412),
            sent_at_ms: 1_795_290_000_000,
            own: Vec::new(),
        }),
        raw,
    };
    assert_eq!(got, expected);
}

#[test]
fn messages_become_posts_and_edits() {
    let fixtures = fixtures!("messages");
    fixtures.posts(
        "mention",
        InboundMessage {
            mentions: vec!["777".to_owned()],
            mentions_bot: true,
            ..message(&format!("👍 {} what broke?", mention_token("777")))
        },
    );
    let public = Place {
        kind: Some(ChatKind::Public),
        ..team()
    };
    fixtures.posts(
        "public_group",
        InboundMessage {
            place: public,
            ..message("hello")
        },
    );
    let direct = Place {
        chat: "5001".to_owned(),
        kind: Some(ChatKind::Direct),
        title: Some("Ann Lee".to_owned()),
        ..Place::default()
    };
    fixtures.posts(
        "private",
        InboundMessage {
            place: direct,
            ..message("hello")
        },
    );
    assert_eq!(
        fixtures.event("edited"),
        Event::Edited(InboundMessage {
            edit_marker: Some("1795290060".to_owned()),
            ..message("what broke today?")
        })
    );
    fixtures.posts("nulls", message("x"));
    fixtures.posts("odd_entities", message("👍 hi"));
    fixtures.posts("foreign_inline", message("gif"));
    fixtures.posts(
        "no_date",
        InboundMessage {
            sent_at_ms: RECEIVED_AT_MS,
            ..message("x")
        },
    );
}

#[test]
fn channel_posts_are_broadcasts_of_the_channel() {
    let fixtures = fixtures!("messages");
    let news = Place {
        chat: "-1005".to_owned(),
        kind: Some(ChatKind::Broadcast),
        title: Some("News".to_owned()),
        ..Place::default()
    };
    let post = InboundMessage {
        place: news,
        message_id: "9".to_owned(),
        ordinal: 9,
        sender: chat_sender("-1005", "News", Some("news"), SenderKind::System),
        ..message("released")
    };
    fixtures.posts("channel_post", post.clone());
    assert_eq!(
        fixtures.event("edited_channel_post"),
        Event::Edited(InboundMessage {
            sender: chat_sender("-1005", "News", None, SenderKind::System),
            text: "released!".to_owned(),
            edit_marker: Some("1795290010".to_owned()),
            ..post
        })
    );
}

#[test]
fn commands_albums_and_replies_are_told() {
    let fixtures = fixtures!("messages");
    fixtures.posts(
        "command_other",
        InboundMessage {
            mentions: vec!["777".to_owned()],
            mentions_bot: true,
            command: Some(CommandWord {
                name: "ask".to_owned(),
                target: CommandTarget::AnotherBot,
                opens_chat: false,
            }),
            ..message(&format!("/ask@other_bot now {}", mention_token("777")))
        },
    );
    fixtures.posts(
        "album_item",
        InboundMessage {
            album: Some("13371337".to_owned()),
            attachments: vec![Attachment {
                kind: "photo".to_owned(),
                file_id: Some("L".to_owned()),
                name: None,
                mime_type: None,
                size_bytes: Some(91_000),
            }],
            ..message("[photo] the graphs")
        },
    );
    // Outside topics the thread id is that of the root, here the bot's message: a genuine reply.
    fixtures.posts(
        "reply_to_bot",
        InboundMessage {
            reply_to: reply("400", true, Some("Build 42 failed")),
            ..message("why?")
        },
    );
    fixtures.posts(
        "reply_to_person",
        InboundMessage {
            reply_to: reply("401", false, None),
            ..message("yes")
        },
    );
    fixtures.posts("external_reply", message("look"));
}

#[test]
fn a_sender_is_who_people_see() {
    let senders = fixtures!("senders");
    let team_chat = "-1001234567890";
    let with = |sender, text: &str| InboundMessage {
        sender,
        ..message(text)
    };
    senders.posts(
        "anonymous_admin",
        with(
            chat_sender(team_chat, "lead", None, SenderKind::Person),
            "deploy is frozen",
        ),
    );
    senders.posts(
        "anonymous_admin_untitled",
        with(
            chat_sender(team_chat, "Platform team", None, SenderKind::Person),
            "deploy is frozen",
        ),
    );
    senders.posts(
        "person_as_channel",
        with(
            chat_sender(
                "-1007",
                "Ann's notes",
                Some("anns_notes"),
                SenderKind::Person,
            ),
            "hello",
        ),
    );
    // The copy of a channel post mentions the bot, and addresses nobody.
    senders.posts(
        "automatic_forward",
        InboundMessage {
            mentions: vec!["777".to_owned()],
            ..with(
                chat_sender("-1005", "News", None, SenderKind::System),
                &format!("released, thanks {}", mention_token("777")),
            )
        },
    );
    let ci = Sender {
        id: "888".to_owned(),
        display_name: Some("CI".to_owned()),
        username: Some("ci_bot".to_owned()),
        kind: SenderKind::Bot,
        is_stranger: false,
    };
    fixtures!("messages").posts("other_bot", with(ci, "build done"));
}

#[test]
fn topics_are_rooms_and_their_root_is_no_reply() {
    let topics = fixtures!("topics");
    let in_topic = |id: &str, ordinal, text: &str| InboundMessage {
        place: Place {
            topic: Some("163".to_owned()),
            ..team()
        },
        message_id: id.to_owned(),
        ordinal,
        ..message(text)
    };
    // A bot that came after the topic was made knows its name by this alone.
    let told = in_topic("187", 187, "any news?");
    topics.posts(
        "implicit_reply",
        InboundMessage {
            place: Place {
                topic_title: Some("Incident 42".to_owned()),
                ..told.place
            },
            ..told
        },
    );
    topics.posts(
        "real_reply",
        InboundMessage {
            reply_to: reply("187", true, None),
            ..in_topic("188", 188, "and now?")
        },
    );
    topics.posts("general", message("hello all"));
    topics.posts(
        "thread_that_is_no_topic",
        InboundMessage {
            reply_to: reply("405", false, None),
            ..message("me too")
        },
    );
    let named = |title: &str| Event::ChatChanged {
        place: Place {
            topic: Some("163".to_owned()),
            topic_title: Some(title.to_owned()),
            ..team()
        },
    };
    assert_eq!(topics.event("created"), named("Incident 42"));
    assert_eq!(topics.event("renamed"), named("Incident 42 (solved)"));
    let service = Event::Ignored { reason: "service" };
    assert_eq!(topics.event("icon_changed"), service);
    assert_eq!(topics.event("closed"), service);
}

#[test]
fn service_messages_change_chats_and_make_no_turn() {
    let events = fixtures!("events");
    let moved = Event::ChatMoved {
        from_chat: "-4518810793".to_owned(),
        to_chat: "-1002471352452".to_owned(),
    };
    assert_eq!(events.event("migrated_to"), moved);
    assert_eq!(events.event("migrated_from"), moved);
    let renamed = Place {
        title: Some("Platform crew".to_owned()),
        ..team()
    };
    assert_eq!(
        events.event("new_title"),
        Event::ChatChanged { place: renamed }
    );
    let service = Event::Ignored { reason: "service" };
    assert_eq!(events.event("joined"), service);
    assert_eq!(events.event("pinned"), service);
}

#[test]
fn membership_says_whether_the_bot_can_post() {
    let events = fixtures!("events");
    let membership = |place: Place, standing| Event::Membership { place, standing };
    for (name, standing) in [
        ("member", Standing::Joined),
        ("administrator", Standing::Joined),
        ("restricted", Standing::Gone),
        ("kicked", Standing::Gone),
    ] {
        assert_eq!(events.event(name), membership(team(), standing), "{name}");
    }
    let direct = Place {
        chat: "5001".to_owned(),
        kind: Some(ChatKind::Direct),
        title: Some("Ann".to_owned()),
        ..Place::default()
    };
    assert_eq!(events.event("blocked"), membership(direct, Standing::Gone));
    let news = Place {
        chat: "-1005".to_owned(),
        kind: Some(ChatKind::Broadcast),
        title: Some("News".to_owned()),
        ..Place::default()
    };
    assert_eq!(
        events.event("channel_reader"),
        membership(news, Standing::Gone)
    );
}

#[test]
fn what_is_no_message_is_an_interaction_or_ignored() {
    let events = fixtures!("events");
    let pressed = |id: &str, data: &str, author| {
        Event::Interaction(Interaction {
            id: id.to_owned(),
            control: Control::Button,
            place: Some(team()),
            message: Some(PressedMessage {
                id: "420".to_owned(),
                author,
                is_forwarded: false,
                is_via_bot: false,
                is_ephemeral: false,
            }),
            sender: ann(),
            team: None,
            is_anonymous: false,
            data: data.to_owned(),
            written: None,
        })
    };
    assert_eq!(
        events.event("callback"),
        pressed("4382bfdwdsb323b2d9", "retry:8f3a", PressedAuthor::Us)
    );
    assert_eq!(
        events.event("callback_inaccessible"),
        pressed("99", "", PressedAuthor::Untold)
    );
    let messages = fixtures!("messages");
    let reacted = |change: &dyn Fn(&mut Value)| {
        let mut update = events.0["reaction"].clone();
        change(&mut update["message_reaction"]);
        event_of(&update.to_string())
    };
    let thumbs = |up, down| {
        Event::Thumb(ThumbChange {
            place: team(),
            message_id: "420".to_owned(),
            sender: ann(),
            thumbs: vec![(Thumb::Up, up), (Thumb::Down, down)],
            at_ms: 1_795_290_300_000,
        })
    };
    let down = json!([{"type": "emoji", "emoji": "❤"}, {"type": "emoji", "emoji": "👎"}]);
    assert_eq!(events.event("reaction"), thumbs(true, false));
    let turned = reacted(&|it| {
        it["old_reaction"] = it["new_reaction"].take();
        it["new_reaction"] = down.clone();
    });
    assert_eq!(turned, thumbs(false, true));
    let taken_away = reacted(&|it| {
        it["old_reaction"] = down.clone();
        it["new_reaction"] = json!([]);
    });
    assert_eq!(taken_away, thumbs(false, false));
    let other_reaction = reacted(&|it| it["new_reaction"][0]["emoji"] = "🎉".into());
    let anonymous_reaction = reacted(&|it| it["user"] = Value::Null);
    for (event, reason) in [
        (other_reaction, "reaction"),
        (anonymous_reaction, "reaction"),
        (events.event("business_message"), "business"),
        (messages.event("business_connection"), "business"),
        (messages.event("own_inline"), "own_inline"),
        (messages.event("message_id_zero"), "no_id"),
        (
            messages.event("channel_direct_messages"),
            "channel_direct_messages",
        ),
        (messages.event("live_location_moves"), "live_location"),
    ] {
        assert_eq!(event, Event::Ignored { reason });
    }
    assert_eq!(
        messages.event("own_post"),
        Event::OwnPost {
            place: team(),
            message_id: "412".to_owned(),
            marker: None,
        }
    );
}

#[test]
fn what_cannot_be_read_is_kept_raw_and_says_nothing_of_its_content() {
    let events = fixtures!("events");
    let mut raws: Vec<String> = [
        "unknown_kind",
        "no_kind",
        "message_is_a_list",
        "text_is_a_list",
        "chat_without_id",
    ]
    .iter()
    .map(|name| events.0[*name].to_string())
    .collect();
    let lone_surrogate =
        r#"{"update_id":7,"message":{"message_id":1,"chat":{"id":1},"text":"SECRET \ud83d"}}"#;
    let deep = format!(
        r#"{{"update_id":8,"message":{{"message_id":1,"chat":{{"id":1}},"rich_message":{}1{}}}}}"#,
        "[".repeat(5_000),
        "]".repeat(5_000)
    );
    raws.extend([
        lone_surrogate.to_owned(),
        deep,
        "null".to_owned(),
        "[]".to_owned(),
        "\"SECRET\"".to_owned(),
        "{\"update_id\":9,\"message\"".to_owned(),
    ]);
    for raw in raws {
        let envelope = translate("tg", &bot("team_bot"), &raw, RECEIVED_AT_MS);
        assert_eq!(envelope.raw, raw);
        let Event::Untranslated { reason } = envelope.event else {
            panic!("translated: {raw}");
        };
        assert!(!reason.contains("SECRET"));
    }
    // The id of an update survives what its content does not.
    let envelope = translate("tg", &bot("team_bot"), lone_surrogate, RECEIVED_AT_MS);
    assert_eq!(envelope.delivery_id, "7");
}

/// What Ann writes in the recorded group.
fn recorded() -> InboundMessage {
    InboundMessage {
        place: Place {
            chat: "-100".to_owned(),
            title: Some("Ops".to_owned()),
            ..team()
        },
        message_id: "5".to_owned(),
        sender: recorded_sender(Some("Ann"), Some("ann")),
        sent_at_ms: 1_700_000_000_000,
        ordinal: 5,
        ..message("hi")
    }
}

fn recorded_sender(display_name: Option<&str>, username: Option<&str>) -> Sender {
    Sender {
        id: "9".to_owned(),
        display_name: display_name.map(str::to_owned),
        username: username.map(str::to_owned),
        kind: SenderKind::Person,
        is_stranger: false,
    }
}

fn recorded_event(name: &str) -> Event {
    let raw = fixtures!("golden").0[name].to_string();
    translate("tg", &bot("kael_bot"), &raw, RECEIVED_AT_MS).event
}

#[test]
fn recorded_senders_and_places_are_read() {
    let from = |sender| InboundMessage {
        sender,
        ..recorded()
    };
    let at = |place| InboundMessage {
        place,
        ..recorded()
    };
    let direct = Place {
        chat: "9".to_owned(),
        kind: Some(ChatKind::Direct),
        title: Some("Ann".to_owned()),
        ..Place::default()
    };
    let topic = Place {
        topic: Some("33".to_owned()),
        ..recorded().place
    };
    let news = Place {
        chat: "-5".to_owned(),
        kind: Some(ChatKind::Broadcast),
        title: Some("News".to_owned()),
        ..Place::default()
    };
    let channel_post = InboundMessage {
        message_id: "1".to_owned(),
        sender: chat_sender("-5", "News", None, SenderKind::System),
        text: "p".to_owned(),
        sent_at_ms: RECEIVED_AT_MS,
        ordinal: 1,
        ..at(news)
    };
    let nobody = chat_sender("-100", "Ops", None, SenderKind::System);
    for (name, expected) in [
        ("group", recorded()),
        ("private", at(direct)),
        ("topic", at(topic)),
        ("channel_post", channel_post),
        (
            "username_only",
            from(recorded_sender(Some("ann"), Some("ann"))),
        ),
        ("no_names", from(recorded_sender(None, None))),
        ("no_from", from(nobody)),
    ] {
        assert_eq!(recorded_event(name), Event::Posted(expected), "{name}");
    }
}

#[test]
fn recorded_addressing_is_read() {
    let text = |text: &str| InboundMessage {
        text: text.to_owned(),
        ..recorded()
    };
    let mention = InboundMessage {
        mentions: vec!["777".to_owned()],
        mentions_bot: true,
        ..text(&format!("{} hi", mention_token("777")))
    };
    let command = InboundMessage {
        command: Some(CommandWord {
            name: "help".to_owned(),
            target: CommandTarget::ThisBot,
            opens_chat: false,
        }),
        ..text("/help@kael_bot")
    };
    let replied = InboundMessage {
        reply_to: reply("4", true, None),
        ..recorded()
    };
    let caption = InboundMessage {
        attachments: vec![Attachment {
            kind: "photo".to_owned(),
            file_id: None,
            name: None,
            mime_type: None,
            size_bytes: None,
        }],
        ..text("[photo] look @kael_bot")
    };
    for (name, expected) in [
        ("mention_username", mention.clone()),
        ("text_mention", mention),
        ("bot_command", command),
        ("reply_to_bot", replied),
        ("caption", caption),
    ] {
        assert_eq!(recorded_event(name), Event::Posted(expected), "{name}");
    }
    assert_eq!(
        fixtures!("golden").0.len(),
        12,
        "every recorded update is tested"
    );
}

#[test]
fn no_shape_of_an_update_panics() {
    // Every field of every fixture is replaced by values of other shapes, one at a time.
    let odd = [
        json!(null),
        json!(-1),
        json!("x"),
        json!([]),
        json!({}),
        json!(true),
        json!(1e300),
    ];
    let files = [
        fixtures!("messages"),
        fixtures!("senders"),
        fixtures!("topics"),
        fixtures!("events"),
    ];
    let mut tried = 0;
    for update in files.iter().flat_map(|file| file.0.values()) {
        for pointer in pointers(update) {
            for value in &odd {
                let mut changed = update.clone();
                *changed.pointer_mut(&pointer).unwrap() = value.clone();
                let raw = changed.to_string();
                let envelope = translate("tg", &bot("team_bot"), &raw, RECEIVED_AT_MS);
                assert_eq!(envelope.raw, raw);
                tried += 1;
            }
        }
    }
    assert!(tried > 3_000, "{tried}");
}

/// JSON pointers to everything inside a value.
fn pointers(value: &Value) -> Vec<String> {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(name, it)| (name.clone(), it)).collect(),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(n, it)| (n.to_string(), it))
            .collect(),
        _ => Vec::new(),
    };
    let mut found = Vec::new();
    for (name, child) in children {
        found.push(format!("/{name}"));
        found.extend(
            pointers(child)
                .into_iter()
                .map(|deeper| format!("/{name}{deeper}")),
        );
    }
    found
}

#[test]
fn who_is_made_an_administrator_did_not_join() {
    let standing = |old: Value, new: Value| {
        let update = json!({"update_id": 1, "my_chat_member": {
            "chat": {"id": -1001, "type": "supergroup", "title": "Team"}, "from": {"id": 5, "is_bot": false,
            "first_name": "Ann"}, "date": 1, "old_chat_member": old, "new_chat_member": new,
        }});
        match event_of(&update.to_string()) {
            Event::Membership { standing, .. } => standing,
            other => panic!("{other:?}"),
        }
    };
    let status = |status: &str| json!({"status": status});
    let muted = json!({"status": "restricted", "is_member": true, "can_send_messages": false});
    for (old, new, expected) in [
        (status("left"), status("member"), Standing::Joined),
        (status("kicked"), status("administrator"), Standing::Joined),
        (Value::Null, status("member"), Standing::Joined),
        (status("member"), status("administrator"), Standing::Back),
        (muted.clone(), status("member"), Standing::Back),
        (status("member"), muted, Standing::Gone),
        (status("administrator"), status("left"), Standing::Gone),
    ] {
        assert_eq!(standing(old.clone(), new.clone()), expected, "{old} {new}");
    }
}

#[test]
fn a_command_that_its_sender_did_not_type_is_none() {
    let command = |extra: Value| {
        let mut message = json!({"message_id": 7, "date": 1_763_712_000, "text": "/forget me",
            "chat": {"id": -1001, "type": "supergroup", "title": "Team"},
            "from": {"id": 5, "is_bot": false, "first_name": "Ann"},
            "entities": [{"type": "bot_command", "offset": 0, "length": 7}]});
        for (name, value) in extra.as_object().unwrap() {
            message[name.as_str()] = value.clone();
        }
        let update = json!({"update_id": 1, "message": message}).to_string();
        match event_of(&update) {
            Event::Posted(message) => message.command.map(|word| word.name),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(command(json!({})).as_deref(), Some("forget"));
    let quoted = |kind: &str| {
        json!({"entities": [{"type": kind, "offset": 0, "length": 10},
                            {"type": "bot_command", "offset": 0, "length": 7}]})
    };
    for extra in [
        json!({"forward_origin": {"type": "hidden_user", "date": 1, "sender_user_name": "Eve"}}),
        json!({"via_bot": {"id": 9, "is_bot": true, "first_name": "Inline"}}),
        quoted("blockquote"),
        quoted("expandable_blockquote"),
    ] {
        assert_eq!(command(extra.clone()), None, "{extra}");
    }
}
