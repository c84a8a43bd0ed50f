//! What people ask the daemon itself for, and the hours in which it keeps quiet.

use vocative_channels::telegram;
use vocative_contract::envelope::{ChatKind, Command, Event, Place, Sender, SenderKind};
use vocative_core::addressing::MessageFacts;
use vocative_core::command::{CommandFacts, CommandVerdict, Effect};
use vocative_core::judging::commands::{read_command, read_message};
use vocative_core::scheduling::read_order;
use vocative_core::title::{TITLE_MAX_CHARS, TitleOrder, clean_title};
use vocative_core::wall_clock::QuietHours;

use super::capturing::policies;
use super::speech::{NOW_MS, slack_bot, telegram_bot};

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;
const DAY_MINUTES: i64 = DAY_MS / 60_000;

/// A text behind a slash command, and the same as a message that may be a command.
pub(super) fn command(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    for mut policy in policies(&slack_bot()) {
        policy.manners.commands = true;
        for sender in ["U0HUMAN01", "U2"] {
            let command = behind(&text, sender);
            let kinds = [None, Some(ChatKind::Direct), Some(ChatKind::Public)];
            let everywhere = kinds
                .into_iter()
                .flat_map(|kind| [(kind, false), (kind, true)]);
            for (kind, is_in_room) in everywhere {
                let facts = CommandFacts {
                    kind,
                    is_in_room,
                    ..CommandFacts::default()
                };
                let ask = || read_command(&command, facts, &policy);
                let verdict = ask();
                assert_eq!(verdict, ask(), "another verdict the second time");
                let is_admin = policy.admins.iter().any(|admin| admin == sender);
                let verdict = verdict.expect("a person is answered");
                check(&verdict, is_admin, kind, text.len());
            }
        }
    }
    as_message(&text);
}

fn behind(text: &str, sender: &str) -> Command {
    Command {
        id: "1.2".to_owned(),
        place: Place {
            chat: "C1".to_owned(),
            ..Place::default()
        },
        sender: Sender {
            id: sender.to_owned(),
            display_name: None,
            username: None,
            kind: SenderKind::Person,
            is_stranger: false,
        },
        name: "/vocative".to_owned(),
        text: text.to_owned(),
    }
}

/// As Telegram tells it: the first word marked as a command.
fn as_message(text: &str) {
    if !text.starts_with('/') {
        return;
    }
    let length = text
        .split_whitespace()
        .next()
        .map_or(0, |word| word.encode_utf16().count());
    let update = serde_json::json!({"update_id": 1, "message": {
        "message_id": 1, "date": NOW_MS / 1_000, "text": text,
        "chat": {"id": -5, "type": "group", "title": "g"},
        "from": {"id": 5_001, "is_bot": false, "first_name": "A"},
        "entities": [{"type": "bot_command", "offset": 0, "length": length}],
    }});
    let bot = telegram_bot();
    let envelope = telegram::translate("home", &bot, &update.to_string(), NOW_MS);
    let Event::Posted(message) = envelope.event else {
        return;
    };
    for mut policy in policies(&bot) {
        policy.manners.commands = true;
        let verdict = read_message(&message, &MessageFacts::default(), &policy);
        if let Some(verdict) = verdict {
            check(&verdict, false, message.place.kind, text.len());
        }
    }
}

/// What only some may do is done for them alone, and what is answered is bounded.
fn check(verdict: &CommandVerdict, is_admin: bool, kind: Option<ChatKind>, length: usize) {
    let answer = verdict.answer.as_deref().unwrap_or_default();
    assert!(answer.len() < 2_000 + length * 4, "{}", answer.len());
    let effect = &verdict.effect;
    assert!(
        is_admin || !effect.is_by_admin(),
        "an administrator's right"
    );
    match effect {
        Effect::Nothing => assert!(!answer.is_empty(), "nothing is done and nothing said"),
        Effect::ForgetChat => {
            assert!(
                is_admin || kind == Some(ChatKind::Direct),
                "a chat of others"
            );
        }
        Effect::BeginAfresh { agents } => assert!(!agents.is_empty()),
        Effect::Schedule(command) => drop(read_order(&command.text, NOW_MS, command.zone)),
        Effect::Title(command) => {
            if let TitleOrder::Give { text } = &command.order {
                let title = clean_title(text).unwrap_or_default();
                assert!(title.chars().count() <= TITLE_MAX_CHARS);
                assert!(!title.contains('\n'));
            }
        }
        Effect::Link(_) => assert_eq!(kind, Some(ChatKind::Direct), "others would read the code"),
        // Whose rights they take is asked of every effect above.
        _ => {}
    }
    let does_something = verdict.effect != Effect::Nothing;
    assert!(
        verdict.is_admitted || !does_something,
        "done for nobody who is served"
    );
}

/// A part of a day, and a time zone in the next line.
pub(super) fn quiet_hours(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (hours, zone) = text.split_once('\n').unwrap_or((&text, "UTC"));
    let Some(quiet) = QuietHours::read(hours, zone.trim_end_matches('\n')) else {
        return;
    };
    let mut quiet_minutes = 0;
    for minute in 0..DAY_MINUTES {
        let now_ms = NOW_MS / DAY_MS * DAY_MS + minute * 60_000;
        if let Some(until_ms) = quiet.until_ms(now_ms) {
            quiet_minutes += 1;
            // Clocks may be put back meanwhile.
            assert!((now_ms + 1..=now_ms + DAY_MS + HOUR_MS).contains(&until_ms));
            assert_eq!(quiet.until_ms(until_ms), None, "it does not end");
        }
    }
    assert!(quiet_minutes < DAY_MINUTES, "a day without an end");
    for extreme in [i64::MIN, i64::MAX, 0] {
        let _ = quiet.until_ms(extreme);
    }
    let end = quiet.end();
    let clock = end.split(' ').next().unwrap_or_default();
    assert!(hours.contains(clock), "{end} is not in {hours:?}");
}
