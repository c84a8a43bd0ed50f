//! Real-shaped Slack payloads, and what they become.
#![cfg(feature = "slack")]
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use vocative_channels::slack::{SlackDelivery, translate};
use vocative_contract::envelope::{Envelope, Event, InboundMessage, Place, Sender};
use vocative_contract::identity::{Identity, Platform};
use vocative_contract::interaction::PressedMessage;
use vocative_contract::markup::replace_mentions;

fn identity(account: &str, user_id: &str, bot_id: &str) -> Identity {
    Identity {
        platform: Platform::Slack,
        account: account.to_owned(),
        account_name: "Acme".to_owned(),
        user_id: user_id.to_owned(),
        other_ids: vec![bot_id.to_owned()],
        username: Some("vocative".to_owned()),
        display_name: "vocative".to_owned(),
        warnings: vec![],
        organisation: None,
    }
}

fn translated(kind: &str, payload: &str, identity: &Identity) -> Envelope {
    let delivery = SlackDelivery {
        channel: "slack_acme",
        kind,
        envelope_id: "e-1",
        payload,
        received_at_ms: 1_763_712_345_678,
    };
    translate(&delivery, identity)
}

/// One line per event: every field that is not empty.
fn shown(event: &Event) -> String {
    match event {
        Event::Posted(message) => format!("Posted {}", shown_message(message)),
        Event::Edited(message) => format!("Edited {}", shown_message(message)),
        Event::Deleted { place, message_id } => {
            format!("Deleted {message_id} in {}", shown_place(place))
        }
        Event::OwnPost {
            place,
            message_id,
            marker,
        } => {
            format!(
                "OwnPost {message_id} marker={marker:?} in {}",
                shown_place(place)
            )
        }
        Event::Command(command) => format!(
            "Command {} {} {:?} by {} in {}",
            command.id,
            command.name,
            braced(&command.text),
            shown_sender(&command.sender),
            shown_place(&command.place)
        ),
        Event::Interaction(press) => format!(
            "Interaction {} {:?} {:?} by {} of {} in {} {}",
            press.id,
            press.control,
            press.data,
            shown_sender(&press.sender),
            press.team.as_deref().unwrap_or("no team"),
            press
                .place
                .as_ref()
                .map_or("nowhere".to_owned(), shown_place),
            shown_pressed(press.message.as_ref())
        ),
        Event::ChatChanged { place } => format!("ChatChanged {}", shown_place(place)),
        Event::Membership { place, standing } => {
            format!("Membership {standing:?} in {}", shown_place(place))
        }
        Event::PersonChanged { sender } => format!("PersonChanged {}", shown_sender(sender)),
        other => format!("{other:?}"),
    }
}

fn shown_pressed(message: Option<&PressedMessage>) -> String {
    let Some(message) = message else {
        return "(no message)".to_owned();
    };
    let flags = [
        (message.is_ephemeral, " ephemeral"),
        (message.is_forwarded, " forwarded"),
    ];
    let flags = flags.into_iter().filter(|(is_set, _)| *is_set);
    let flags: String = flags.map(|(_, flag)| flag).collect();
    format!("({} of {:?}{flags})", message.id, message.author)
}

fn braced(text: &str) -> String {
    replace_mentions(text, |id| format!("{{{id}}}"))
}

fn shown_message(message: &InboundMessage) -> String {
    let mut shown = format!(
        "{} at {}+{} by {} in {}: {:?}",
        message.message_id,
        message.sent_at_ms,
        message.ordinal,
        shown_sender(&message.sender),
        shown_place(&message.place),
        braced(&message.text)
    );
    if !message.mentions.is_empty() {
        shown += &format!(" mentions={:?}", message.mentions);
    }
    if message.mentions_bot {
        shown += " mentions_bot";
    }
    if let Some(marker) = &message.edit_marker {
        shown += &format!(" edit={marker}");
    }
    for file in &message.attachments {
        shown += &format!(
            "\n    {} {:?} {:?} {:?} {:?}",
            file.kind, file.file_id, file.name, file.mime_type, file.size_bytes
        );
    }
    let never = (&message.command, &message.reply_to, &message.album);
    assert_eq!(never, (&None, &None, &None));
    shown
}

fn shown_place(place: &Place) -> String {
    let mut shown = format!("{} {:?}", place.chat, place.kind);
    if let Some(title) = &place.title {
        shown += &format!(" {title}");
    }
    if let Some(thread) = &place.thread {
        shown += &format!(" thread={thread}");
    }
    if place.is_shared {
        shown += " shared";
    }
    assert_eq!((&place.topic, &place.topic_title), (&None, &None));
    shown
}

fn shown_sender(sender: &Sender) -> String {
    let mut shown = format!("{} {:?}", sender.id, sender.kind);
    for (name, value) in [("name", &sender.display_name), ("handle", &sender.username)] {
        if let Some(value) = value {
            shown += &format!(" {name}={value:?}");
        }
    }
    if sender.is_stranger {
        shown += " stranger";
    }
    shown
}

#[test]
fn every_payload_becomes_the_event_it_is() {
    let cases: Vec<Value> =
        serde_json::from_str(include_str!("fixtures/slack/payloads.json")).unwrap();
    let identity = identity("T0AAAAAAA", "U0BOT0001", "B0BOT0001");
    let mut table = String::new();
    for case in &cases {
        let payload = case["payload"].to_string();
        let envelope = translated(case["type"].as_str().unwrap(), &payload, &identity);
        let line = format!(
            "{}\n  {}\n",
            case["name"].as_str().unwrap(),
            shown(&envelope.event)
        );
        table += &line;
        let expected = Envelope {
            channel: "slack_acme".to_owned(),
            platform: Platform::Slack,
            account: "T0AAAAAAA".to_owned(),
            delivery_id: "e-1".to_owned(),
            received_at_ms: 1_763_712_345_678,
            event: envelope.event.clone(),
            numbered: None,
            raw: payload,
        };
        assert_eq!(envelope, expected);
    }
    insta::assert_snapshot!("slack_payloads", table);
}

#[test]
fn the_golden_events_are_heard() {
    let cases: Vec<Value> =
        serde_json::from_str(include_str!("fixtures/slack/golden_events.json")).unwrap();
    let identity = identity("T1", "UBOT", "BBOT");
    let mut table = String::new();
    for case in &cases {
        let payload = json!({"type": "event_callback", "team_id": "T1", "event": case["event"]});
        let envelope = translated("events_api", &payload.to_string(), &identity);
        table += &format!(
            "{}\n  {}\n",
            case["name"].as_str().unwrap(),
            shown(&envelope.event)
        );
    }
    insta::assert_snapshot!("slack_golden_events", table);
}

#[test]
fn message_and_app_mention_of_one_post_have_one_identity() {
    let identity = identity("T1", "UBOT", "BBOT");
    let event = |kind: &str| {
        let event = json!({"type": kind, "user": "U1", "text": "<@UBOT> hi", "channel": "C1", "ts": "1763712000.000100"});
        let payload = json!({"type": "event_callback", "event": event}).to_string();
        match translated("events_api", &payload, &identity).event {
            Event::Posted(message) => message,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(event("message"), event("app_mention"));
}

/// Whatever stands where: no panic, and the envelope keeps its raw payload.
#[test]
fn any_value_in_any_place_is_survived() {
    let cases: Vec<Value> =
        serde_json::from_str(include_str!("fixtures/slack/payloads.json")).unwrap();
    let identity = identity("T0AAAAAAA", "U0BOT0001", "B0BOT0001");
    let oddities = [
        json!(null),
        json!(1),
        json!(-1.5),
        json!(""),
        json!("\u{FFF9}x<"),
        json!([]),
        json!({}),
        json!([[1]]),
        json!(true),
    ];
    let mut translated_count = 0;
    for case in &cases {
        let kind = case["type"].as_str().unwrap();
        for path in paths(&case["payload"]) {
            for oddity in &oddities {
                let mut payload = case["payload"].clone();
                *payload.pointer_mut(&path).unwrap() = oddity.clone();
                let payload = payload.to_string();
                assert_eq!(translated(kind, &payload, &identity).raw, payload);
                translated_count += 1;
            }
        }
    }
    assert!(translated_count > 5_000, "{translated_count}");
}

fn paths(value: &Value) -> Vec<String> {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), value))
            .collect(),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(n, value)| (n.to_string(), value))
            .collect(),
        _ => vec![],
    };
    let mut all = vec![String::new()];
    for (name, value) in inner {
        all.extend(
            paths(value)
                .into_iter()
                .map(|path| format!("/{name}{path}")),
        );
    }
    all
}

#[test]
fn the_button_that_stops_an_agent_is_a_command_in_its_thread() {
    let identity = identity("T0AAAAAAA", "U0BOT0001", "B0BOT0001");
    let event = json!({"type": "agent_session_stopped", "channel": "D0DM00001", "user": "U0HUMAN01",
        "thread_ts": "1763712800.001000", "streaming_message_ts": ["1763712801.001200"],
        "event_ts": "1763712810.001300"});
    let payload = |event: &Value| json!({"type": "event_callback", "event": event}).to_string();
    let told = translated("events_api", &payload(&event), &identity).event;
    let Event::Command(command) = &told else {
        panic!("{told:?}");
    };
    assert_eq!(
        command.id,
        "agent_session_stopped:D0DM00001:1763712800.001000:1763712810.001300"
    );
    assert_eq!(
        (command.sender.id.as_str(), command.text.as_str()),
        ("U0HUMAN01", "stop")
    );
    assert_eq!(command.place.thread.as_deref(), Some("1763712800.001000"));
    for field in ["channel", "user", "thread_ts", "event_ts"] {
        let mut without = event.clone();
        without.as_object_mut().unwrap().remove(field);
        let told = translated("events_api", &payload(&without), &identity).event;
        assert!(matches!(told, Event::Untranslated { .. }), "{field}");
    }
}

#[test]
fn who_gives_a_command_in_a_sibling_workspace_is_no_stranger_and_a_press_says_only_its_persons_team()
 {
    let ours = Identity {
        organisation: Some("E0ACME".to_owned()),
        ..identity("T0AAAAAAA", "U0BOT0001", "B0BOT0001")
    };
    let alone = identity("T0AAAAAAA", "U0BOT0001", "B0BOT0001");
    let command = |team: &str, enterprise: Value| {
        json!({"team_id": team, "enterprise_id": enterprise, "channel_id": "C0CHAN001",
            "channel_name": "general", "user_id": "U0HUMAN01", "command": "/ask", "text": "why",
            "trigger_id": "1.2.3"})
        .to_string()
    };
    let click = |team: &str, enterprise: Value| {
        json!({"type": "block_actions", "trigger_id": "1.2.3", "enterprise": enterprise,
            "user": {"id": "U0HUMAN01", "team_id": team}, "channel": {"id": "C0CHAN001"},
            "actions": [{"action_id": "a", "value": "b"}]})
        .to_string()
    };
    let is_stranger =
        |kind: &str, payload: &str, identity: &Identity| match translated(kind, payload, identity)
            .event
        {
            Event::Command(command) => command.sender.is_stranger,
            Event::Interaction(press) => press.sender.is_stranger,
            other => panic!("{other:?}"),
        };
    let table = [
        (&ours, "T0AAAAAAA", json!("E0ACME"), false),
        (&ours, "T0SIBLING", json!("E0ACME"), false),
        (&ours, "T0FOREIGN", json!("E0OTHER"), true),
        (&ours, "T0FOREIGN", Value::Null, true),
        (&alone, "T0AAAAAAA", Value::Null, false),
        (&alone, "T0FOREIGN", json!("E0OTHER"), true),
        (&alone, "T0FOREIGN", Value::Null, true),
    ];
    for (identity, team, enterprise, expected) in table {
        let payload = command(team, enterprise.clone());
        let told = is_stranger("slash_commands", &payload, identity);
        assert_eq!(told, expected, "command: {team} {enterprise}");
        let enterprise = enterprise
            .as_str()
            .map_or(Value::Null, |id| json!({"id": id}));
        // The organisation of a press may be that of the channel's host.
        let told = is_stranger("interactive", &click(team, enterprise.clone()), identity);
        assert_eq!(told, team != "T0AAAAAAA", "click: {team} {enterprise}");
    }
}

#[test]
#[allow(clippy::too_many_lines, reason = "one table")]
fn who_is_ours_says_auth_test_and_our_authorization_and_never_the_host_of_the_channel() {
    let grid = Identity {
        organisation: Some("E0ACME".to_owned()),
        ..identity("T0AAAAAAA", "U0BOT0001", "B0BOT0001")
    };
    let alone = identity("T0AAAAAAA", "U0BOT0001", "B0BOT0001");
    let told = |identity: &Identity, shared: Value, outer: Value, inner: Value| {
        let mut event = json!({"type": "message", "channel": "C1", "channel_type": "channel",
            "user": "U0SOMEONE", "text": "hi", "ts": "1763712000.000100"});
        event
            .as_object_mut()
            .unwrap()
            .extend(inner.as_object().unwrap().clone());
        let mut payload = json!({"type": "event_callback", "is_ext_shared_channel": shared,
            "event": event});
        payload
            .as_object_mut()
            .unwrap()
            .extend(outer.as_object().unwrap().clone());
        match translated("events_api", &payload.to_string(), identity).event {
            Event::Posted(message) => message.sender.is_stranger,
            other => panic!("{other:?}"),
        }
    };
    let ours = json!({"authorizations": [{"team_id": "T0TWIN", "enterprise_id": "E0TWIN",
        "user_id": "U0BOT0001", "is_bot": true}]});
    let others = json!({"authorizations": [{"team_id": "T0TWIN", "user_id": "U0OTHERBOT"}]});
    let (yes, no) = (json!(true), json!(false));
    let file_share = json!({"subtype": "file_share"});
    let table = [
        // The case that let everybody in: no team at all.
        (&alone, &yes, json!({}), file_share.clone(), true),
        (
            &alone,
            &yes,
            json!({}),
            json!({"user_team": null, "team": ""}),
            true,
        ),
        (&alone, &no, json!({}), file_share, false),
        // The organisation of the payload is the host's.
        (
            &alone,
            &yes,
            json!({"enterprise_id": "E0HOST"}),
            json!({"user_team": "E0HOST"}),
            true,
        ),
        (
            &alone,
            &yes,
            json!({"team_id": "T0HOST"}),
            json!({"user_team": "T0HOST"}),
            true,
        ),
        (
            &grid,
            &yes,
            json!({"enterprise_id": "E0HOST"}),
            json!({"user_team": "E0HOST"}),
            true,
        ),
        // In a shared channel `team` may be the host's, whoever that is.
        (&alone, &yes, json!({}), json!({"team": "T0AAAAAAA"}), true),
        (
            &alone,
            &yes,
            json!({}),
            json!({"team": "T0HOST", "user_team": "T0AAAAAAA"}),
            false,
        ),
        (
            &alone,
            &yes,
            json!({}),
            json!({"team": "T0AAAAAAA", "user_team": "T0HOST"}),
            true,
        ),
        (
            &alone,
            &yes,
            json!({}),
            json!({"source_team": "T0AAAAAAA"}),
            false,
        ),
        (
            &alone,
            &yes,
            json!({}),
            json!({"user_profile": {"team": "T0AAAAAAA"}}),
            false,
        ),
        (
            &alone,
            &yes,
            json!({}),
            json!({"user_profile": {"team": "T0HOST"}}),
            true,
        ),
        (
            &alone,
            &yes,
            json!({}),
            json!({"bot_id": "B1", "bot_profile": {"team_id": "T0AAAAAAA"}}),
            false,
        ),
        (&alone, &yes, json!({}), json!({"bot_id": "B1"}), true),
        (
            &grid,
            &yes,
            json!({}),
            json!({"user_team": "E0ACME"}),
            false,
        ),
        (
            &grid,
            &yes,
            json!({}),
            json!({"user_team": "T0SIBLING"}),
            true,
        ),
        (
            &grid,
            &no,
            json!({}),
            json!({"user_team": "T0SIBLING"}),
            false,
        ),
        (
            &alone,
            &no,
            json!({}),
            json!({"user_team": "T0OTHER"}),
            true,
        ),
        (
            &alone,
            &yes,
            ours.clone(),
            json!({"user_team": "T0TWIN"}),
            false,
        ),
        (&alone, &yes, ours, json!({"user_team": "E0TWIN"}), false),
        (&alone, &yes, others, json!({"user_team": "T0TWIN"}), true),
    ];
    for (identity, shared, outer, inner, expected) in table {
        let said = format!("{shared} {outer} {inner}");
        assert_eq!(
            told(identity, shared.clone(), outer, inner),
            expected,
            "{said}"
        );
    }
}

#[test]
fn what_happens_in_another_workspace_that_has_the_app_is_not_heard() {
    let alone = identity("T0AAAAAAA", "U0BOT0001", "B0BOT0001");
    let grid = Identity {
        organisation: Some("E0ACME".to_owned()),
        ..alone.clone()
    };
    let is_heard = |identity: &Identity, shared: bool, authorization: Value| {
        let payload = json!({"type": "event_callback", "is_ext_shared_channel": shared,
            "authorizations": [authorization],
            "event": {"type": "message", "channel": "C1", "channel_type": "channel",
                "user": "U0SOMEONE", "text": "<@U0BOT0001> hi", "ts": "1763712000.000100"}});
        let event = translated("events_api", &payload.to_string(), identity).event;
        matches!(event, Event::Posted(_))
    };
    let elsewhere = json!({"team_id": "T0EVIL", "enterprise_id": null, "user_id": "U0EVILBOT"});
    let sibling = json!({"team_id": "T0TWIN", "enterprise_id": "E0ACME", "user_id": "U0TWINBOT"});
    let table = [
        (&alone, false, &elsewhere, false),
        (&grid, false, &elsewhere, false),
        (&alone, false, &sibling, false),
        // Of a shared chat Slack may name the other installation.
        (&alone, true, &elsewhere, true),
        (&grid, false, &sibling, true),
        (
            &alone,
            false,
            &json!({"team_id": "T0EVIL", "user_id": "U0BOT0001"}),
            true,
        ),
        (
            &alone,
            false,
            &json!({"team_id": "T0AAAAAAA", "user_id": "U0OLDBOT"}),
            true,
        ),
        (&alone, false, &json!({}), true),
    ];
    for (identity, shared, authorization, expected) in table {
        let heard = is_heard(identity, shared, authorization.clone());
        assert_eq!(heard, expected, "{shared} {authorization}");
    }
}
