//! Says in text what a message was, whatever kind it is.

use vocative_contract::envelope::Attachment;
use vocative_contract::identity::Identity;
use vocative_contract::markup::one_line as label;

use super::rich;
use super::text::{NeutralText, neutral};
use super::wire::{Chat, Labelled, Media, Message, MessageOrigin, User};

/// What a message says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TelegramContent {
    /// Text and mentions.
    pub(super) words: NeutralText,
    /// What is attached.
    pub(super) attachments: Vec<Attachment>,
}

/// Describes a message.
pub(super) fn describe(message: &Message, bot: &Identity) -> TelegramContent {
    let thing = thing(message);
    let mut words = written_words(message, bot);
    words.text = join_description(thing.as_ref(), &words.text);
    if thing.is_none() && words.text.is_empty() {
        words.text = "[unsupported message]".to_owned();
    }
    if let Some(origin) = message.forward_origin.as_ref()
        && !message.is_automatic_forward
    {
        let from = origin_name(origin).unwrap_or_else(|| "somebody".to_owned());
        words.text = format!("forwarded from {from}: {}", words.text);
    }
    TelegramContent {
        words,
        attachments: thing.map(|thing| thing.attachment).into_iter().collect(),
    }
}

/// A person's name as people see it.
pub(super) fn user_name(user: &User) -> Option<String> {
    full_name(user.first_name.as_deref(), user.last_name.as_deref())
        .or_else(|| user.username.as_deref().and_then(label))
}

/// A chat's title; of a private chat, the person's name.
pub(super) fn chat_title(chat: &Chat) -> Option<String> {
    chat.title
        .as_deref()
        .and_then(label)
        .or_else(|| full_name(chat.first_name.as_deref(), chat.last_name.as_deref()))
        .or_else(|| chat.username.as_deref().and_then(label))
}

fn full_name(first: Option<&str>, last: Option<&str>) -> Option<String> {
    label(&format!("{} {}", first.unwrap_or(""), last.unwrap_or("")))
}

/// The text or caption a person wrote.
fn written_words(message: &Message, bot: &Identity) -> NeutralText {
    if let Some(text) = &message.text {
        return neutral(text, &message.entities, bot);
    }
    if let Some(caption) = &message.caption {
        return neutral(caption, &message.caption_entities, bot);
    }
    match &message.rich_message {
        Some(rich_message) => rich::flatten(rich_message, bot),
        None => NeutralText::default(),
    }
}

/// Something that is not text: how it is described, and the attachment it makes.
struct Thing {
    attachment: Attachment,
    /// What follows the kind inside the brackets.
    detail: String,
    /// What follows the brackets.
    head: Option<String>,
    /// Lines that follow.
    lines: Vec<String>,
}

impl Thing {
    fn new(kind: &str, detail: impl Into<String>) -> Self {
        Self {
            attachment: Attachment {
                kind: kind.to_owned(),
                file_id: None,
                name: None,
                mime_type: None,
                size_bytes: None,
            },
            detail: detail.into(),
            head: None,
            lines: Vec::new(),
        }
    }

    fn file(kind: &str, media: &Media, detail: impl Into<String>) -> Self {
        let mut thing = Self::new(kind, detail);
        thing.attachment.file_id = media.file_id.clone();
        thing.attachment.name = media.file_name.as_deref().and_then(label);
        thing.attachment.mime_type = media.mime_type.as_deref().and_then(label);
        thing.attachment.size_bytes = media.file_size;
        thing
    }

    /// A head beside the brackets and a list below: `[poll] question`, `- option`.
    fn listed(kind: &str, head: Option<&String>, lines: Vec<String>) -> Self {
        let mut thing = Self::new(kind, "");
        thing.attachment.name = head.and_then(|head| label(head));
        thing.head = thing.attachment.name.clone();
        thing.lines = lines;
        thing
    }

    fn titled(kind: &str, title: Option<&String>) -> Self {
        let title = title.and_then(|title| label(title));
        let mut thing = Self::new(kind, title.clone().unwrap_or_default());
        thing.attachment.name = title;
        thing
    }
}

fn join_description(thing: Option<&Thing>, words: &str) -> String {
    let Some(thing) = thing else {
        return words.to_owned();
    };
    let kind = thing.attachment.kind.replace('_', " ");
    let mut text = if thing.detail.is_empty() {
        format!("[{kind}]")
    } else {
        format!("[{kind} {}]", thing.detail)
    };
    let head = thing.head.as_deref().unwrap_or_default();
    for words in [head, words].into_iter().filter(|words| !words.is_empty()) {
        text.push(' ');
        text.push_str(words);
    }
    for line in &thing.lines {
        text.push('\n');
        text.push_str(line);
    }
    text
}

/// The content of a message besides text. An animation also comes as a document and a venue also as a location, so the
/// special kinds are checked first.
fn thing(message: &Message) -> Option<Thing> {
    media_thing(message).or_else(|| other_thing(message))
}

fn media_thing(message: &Message) -> Option<Thing> {
    let timed = |kind: &str, media: &Media| Thing::file(kind, media, duration(media.duration));
    if let Some(media) = &message.animation {
        return Some(Thing::file("animation", media, ""));
    }
    if let Some(media) = &message.live_photo {
        return Some(Thing::file("live_photo", media, ""));
    }
    if let Some(sizes) = &message.photo {
        // `max_by_key` takes the last one where all are equal.
        let pixels = |size: &Media| {
            size.width
                .unwrap_or(0)
                .saturating_mul(size.height.unwrap_or(0))
        };
        let largest = sizes.iter().max_by_key(|size| pixels(size)).cloned();
        let largest = largest.unwrap_or_default();
        return Some(Thing::file("photo", &largest, ""));
    }
    if let Some(media) = &message.video {
        return Some(timed("video", media));
    }
    if let Some(media) = &message.video_note {
        return Some(timed("video_note", media));
    }
    if let Some(media) = &message.voice {
        return Some(timed("voice", media));
    }
    if let Some(media) = &message.audio {
        return Some(Thing::file("audio", media, audio_detail(media)));
    }
    if let Some(media) = &message.sticker {
        let emoji = media.emoji.as_deref().and_then(label);
        return Some(Thing::file("sticker", media, emoji.unwrap_or_default()));
    }
    if message.paid_media.is_some() {
        return Some(Thing::new("paid_media", ""));
    }
    let media = message.document.as_ref()?;
    let name = media.file_name.as_deref().and_then(label);
    Some(Thing::file("document", media, name.unwrap_or_default()))
}

fn other_thing(message: &Message) -> Option<Thing> {
    if let Some(poll) = &message.poll {
        let options = labelled(poll.options.as_deref(), |_| "- ");
        return Some(Thing::listed("poll", poll.question.as_ref(), options));
    }
    if let Some(checklist) = &message.checklist {
        let mark = |task: &Labelled| match task.completion_date {
            Some(date) if date > 0 => "- [x] ",
            _ => "- [ ] ",
        };
        let tasks = labelled(checklist.tasks.as_deref(), mark);
        return Some(Thing::listed("checklist", checklist.title.as_ref(), tasks));
    }
    if let Some(contact) = &message.contact {
        let name = full_name(contact.first_name.as_deref(), contact.last_name.as_deref());
        let phone = contact.phone_number.as_deref().and_then(label);
        let parts: Vec<String> = name.into_iter().chain(phone).collect();
        return Some(Thing::new("contact", parts.join(", ")));
    }
    if let Some(venue) = &message.venue {
        let parts = [&venue.title, &venue.address];
        let parts: Vec<String> = parts
            .into_iter()
            .filter_map(|part| part.as_deref().and_then(label))
            .collect();
        return Some(Thing::new("venue", parts.join(", ")));
    }
    if let Some(location) = &message.location {
        let detail = format!("{:.5}, {:.5}", location.latitude, location.longitude);
        return Some(Thing::new("location", detail));
    }
    if let Some(dice) = &message.dice {
        let emoji = dice.emoji.as_deref().and_then(label).unwrap_or_default();
        let value = dice.value.map(|value| value.to_string());
        let detail = format!("{emoji} {}", value.unwrap_or_default());
        return Some(Thing::new("dice", detail.trim()));
    }
    if let Some(game) = &message.game {
        return Some(Thing::titled("game", game.title.as_ref()));
    }
    if let Some(invoice) = &message.invoice {
        return Some(Thing::titled("invoice", invoice.title.as_ref()));
    }
    let bare = [
        ("story", &message.story),
        ("giveaway", &message.giveaway),
        ("giveaway_winners", &message.giveaway_winners),
    ];
    bare.into_iter()
        .find(|(_, value)| value.is_some())
        .map(|(kind, _)| Thing::new(kind, ""))
}

fn labelled(items: Option<&[Labelled]>, mark: impl Fn(&Labelled) -> &'static str) -> Vec<String> {
    items
        .unwrap_or_default()
        .iter()
        .map(|item| {
            let text = item.text.as_deref().and_then(label).unwrap_or_default();
            format!("{}{text}", mark(item))
        })
        .collect()
}

fn audio_detail(media: &Media) -> String {
    let performer = media.performer.as_deref().and_then(label);
    let title = media.title.as_deref().and_then(label);
    let name = match (performer, title) {
        (Some(performer), Some(title)) => Some(format!("{performer} - {title}")),
        (performer, title) => title
            .or(performer)
            .or_else(|| media.file_name.as_deref().and_then(label)),
    };
    let parts = [name.unwrap_or_default(), duration(media.duration)];
    parts.join(" ").trim().to_owned()
}

/// `0:12`, `1:03:09`; empty if unknown.
fn duration(seconds: Option<u64>) -> String {
    let Some(seconds) = seconds else {
        return String::new();
    };
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes}:{seconds:02}")
    }
}

fn origin_name(origin: &MessageOrigin) -> Option<String> {
    let user = origin.sender_user.as_ref().and_then(user_name);
    let hidden = origin.sender_user_name.as_deref().and_then(label);
    let chat = origin.sender_chat.as_ref().or(origin.chat.as_ref());
    user.or(hidden).or_else(|| chat.and_then(chat_title))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::{Value, json};

    use super::super::test_support::bot;
    use super::*;

    fn describe_fields(fields: &Value) -> TelegramContent {
        let mut message = json!({"message_id": 1, "chat": {"id": 9, "type": "private"}});
        for (name, value) in fields.as_object().unwrap() {
            message[name] = value.clone();
        }
        describe(&serde_json::from_value(message).unwrap(), &bot())
    }

    #[allow(clippy::too_many_lines, reason = "one table")]
    #[test]
    fn every_kind_says_what_it_was() {
        let table = [
            (json!({"text": "hi"}), "hi"),
            (
                json!({"photo": [{"file_id": "s"}, {"file_id": "l"}], "caption": "look"}),
                "[photo] look",
            ),
            (json!({"photo": [{}]}), "[photo]"),
            (
                json!({"live_photo": {"file_id": "x"}, "photo": [{}]}),
                "[live photo]",
            ),
            (
                json!({"voice": {"file_id": "v", "duration": 12}}),
                "[voice 0:12]",
            ),
            (
                json!({"video": {"duration": 63}, "caption": "demo"}),
                "[video 1:03] demo",
            ),
            (json!({"video": {"duration": 3789}}), "[video 1:03:09]"),
            (json!({"video_note": {"duration": 5}}), "[video note 0:05]"),
            (
                json!({"audio": {"performer": "Ann", "title": "Song", "duration": 200}}),
                "[audio Ann - Song 3:20]",
            ),
            (json!({"audio": {"file_name": "a.mp3"}}), "[audio a.mp3]"),
            (json!({"sticker": {"emoji": "😀"}}), "[sticker 😀]"),
            (json!({"sticker": {}}), "[sticker]"),
            (
                json!({"document": {"file_name": "plan\n.pdf"}, "caption": "v2"}),
                "[document plan .pdf] v2",
            ),
            (
                json!({"animation": {"file_id": "g"}, "document": {"file_name": "g.mp4"}}),
                "[animation]",
            ),
            (
                json!({"paid_media": {"star_count": 5}, "caption": "buy"}),
                "[paid media] buy",
            ),
            (json!({"story": {"id": 4}}), "[story]"),
            (
                json!({"poll": {"question": "Lunch?", "options": [{"text": "yes"}, {"text": "no"}]}}),
                "[poll] Lunch?\n- yes\n- no",
            ),
            (
                json!({"checklist": {"title": "Release", "tasks": [
                    {"id": 1, "text": "tag", "completion_date": 1_795_290_000}, {"id": 2, "text": "announce"}]}}),
                "[checklist] Release\n- [x] tag\n- [ ] announce",
            ),
            (
                json!({"contact": {"phone_number": "+49 1", "first_name": "Ann", "last_name": "Lee"}}),
                "[contact Ann Lee, +49 1]",
            ),
            (
                json!({"location": {"latitude": 52.5, "longitude": 13.4}}),
                "[location 52.50000, 13.40000]",
            ),
            (
                json!({"venue": {"title": "Bar", "address": "Street 1", "location": {"latitude": 1.0, "longitude": 2.0}},
                       "location": {"latitude": 1.0, "longitude": 2.0}}),
                "[venue Bar, Street 1]",
            ),
            (json!({"dice": {"emoji": "🎲", "value": 4}}), "[dice 🎲 4]"),
            (json!({"game": {"title": "Chess"}}), "[game Chess]"),
            (json!({"invoice": {"title": "Tea"}}), "[invoice Tea]"),
            (json!({"giveaway": {"winner_count": 1}}), "[giveaway]"),
            (
                json!({"giveaway_winners": {"winner_count": 1}}),
                "[giveaway winners]",
            ),
            (
                json!({"rich_message": {"blocks": [{"type": "paragraph", "text": "rich"}]}}),
                "rich",
            ),
            (
                json!({"hologram": {"file_id": "h"}}),
                "[unsupported message]",
            ),
            (
                json!({"text": null, "photo": null}),
                "[unsupported message]",
            ),
        ];
        for (fields, expected) in table {
            assert_eq!(describe_fields(&fields).words.text, expected, "{fields}");
        }
    }

    #[test]
    fn a_forwarded_message_names_its_origin() {
        let table = [
            (
                json!({"text": "news", "forward_origin": {"type": "user", "date": 1, "sender_user": {"id": 3, "first_name": "Bob"}}}),
                "forwarded from Bob: news",
            ),
            (
                json!({"photo": [{}], "forward_origin": {"type": "hidden_user", "date": 1, "sender_user_name": "Eve"}}),
                "forwarded from Eve: [photo]",
            ),
            (
                json!({"text": "x", "forward_origin": {"type": "channel", "date": 1, "chat": {"id": -5, "title": "News"}}}),
                "forwarded from News: x",
            ),
            (
                json!({"text": "x", "forward_origin": {"type": "future"}}),
                "forwarded from somebody: x",
            ),
        ];
        for (fields, expected) in table {
            assert_eq!(describe_fields(&fields).words.text, expected, "{fields}");
        }
    }

    #[test]
    fn of_a_photo_the_largest_size_counts_in_whatever_order_they_come() {
        let size = |id: &str, side: u64| json!({"file_id": id, "width": side, "height": side});
        for sizes in [
            json!([size("s", 90), size("l", 1_280), size("m", 320)]),
            json!([size("l", 1_280), size("m", 320)]),
            json!([{"file_id": "s"}, {"file_id": "l"}]),
        ] {
            let content = describe_fields(&json!({"photo": sizes}));
            assert_eq!(content.attachments[0].file_id.as_deref(), Some("l"));
        }
    }

    #[test]
    fn files_are_described() {
        let content = describe_fields(&json!({"document": {
            "file_id": "F1", "file_name": "a.pdf", "mime_type": "application/pdf", "file_size": 900,
        }}));
        assert_eq!(
            content.attachments,
            [Attachment {
                kind: "document".to_owned(),
                file_id: Some("F1".to_owned()),
                name: Some("a.pdf".to_owned()),
                mime_type: Some("application/pdf".to_owned()),
                size_bytes: Some(900),
            }]
        );
    }

    #[test]
    fn a_caption_mentions_too() {
        let content = describe_fields(&json!({
            "photo": [{}], "caption": "look @team_bot",
            "caption_entities": [{"type": "mention", "offset": 5, "length": 9}],
        }));
        assert_eq!(content.words.mentions, ["777"]);
    }
}
