//! How single things are shown: texts of people, times, states, figures.

use chrono::DateTime;
use maud::{Markup, html};

use crate::views::Room;

/// The most characters of one text that a page shows.
pub(crate) const TEXT_MAX_CHARS: usize = 20_000;

/// Whether a character would change how a text reads, so that it is written out instead: control characters, and those
/// that turn the direction of what follows. Marks that single words of Arabic, Hebrew or Persian need stay as they are.
fn is_odd(c: char) -> bool {
    let is_control = c.is_control() && c != '\n' && c != '\t';
    is_control || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// A text that somebody typed: as data, in its own direction, with invisible characters written out.
pub(crate) fn said(text: &str) -> Markup {
    html! { div.said dir="auto" { (plain(text)) } }
}

/// The same within a line.
pub(crate) fn word(text: &str) -> Markup {
    html! { bdi { (plain(text)) } }
}

/// Text that a program takes, in a block.
pub(crate) fn code(text: &str) -> Markup {
    html! { pre.code tabindex="0" { (plain(text)) } }
}

/// The same, however long: nobody allows what they have not seen.
pub(crate) fn whole_code(text: &str) -> Markup {
    html! { pre.code tabindex="0" { (marked(text)) } }
}

fn plain(text: &str) -> Markup {
    let shown: &str = match text.char_indices().nth(TEXT_MAX_CHARS) {
        Some((at, _)) => &text[..at],
        None => text,
    };
    let more = text[shown.len()..].chars().count();
    html! {
        (marked(shown))
        @if more > 0 { span.quiet { " … and " (grouped(more as u64)) " characters more" } }
    }
}

/// A text with invisible characters written out.
fn marked(text: &str) -> Markup {
    html! {
        @for piece in pieces(text) {
            @match piece {
                ShownPiece::Plain(text) => (text),
                ShownPiece::Odd(c) => span.odd title="a character that can't be seen" { (format!("U+{:04X}", u32::from(c))) },
            }
        }
    }
}

enum ShownPiece<'a> {
    Plain(&'a str),
    Odd(char),
}

fn pieces(text: &str) -> Vec<ShownPiece<'_>> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    while let Some((at, odd)) = rest.char_indices().find(|(_, c)| is_odd(*c)) {
        if at > 0 {
            pieces.push(ShownPiece::Plain(&rest[..at]));
        }
        pieces.push(ShownPiece::Odd(odd));
        rest = &rest[at + odd.len_utf8()..];
    }
    if !rest.is_empty() {
        pieces.push(ShownPiece::Plain(rest));
    }
    pieces
}

/// The beginning of a text, in one line.
pub(crate) fn beginning(text: &str, chars: usize) -> String {
    let mut line: String = text
        .chars()
        .take(chars)
        .map(|c| if c == '\n' || c == '\t' { ' ' } else { c })
        .collect();
    if text.chars().nth(chars).is_some() {
        line.push('…');
    }
    line
}

/// A time. The browser shows it in its own time zone; without a script it is UTC.
pub(crate) fn time(at_ms: i64) -> Markup {
    let at = DateTime::from_timestamp_millis(at_ms);
    match at {
        Some(at) => html! {
            time datetime=(at.format("%Y-%m-%dT%H:%M:%S%.3fZ")) { (at.format("%Y-%m-%d %H:%M:%S")) " UTC" }
        },
        None => html! { "?" },
    }
}

/// How long something takes or took.
pub(crate) fn span(ms: i64) -> String {
    let seconds = ms.max(0) / 1_000;
    match seconds {
        0 => format!("{} ms", ms.max(0)),
        1..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// A count with separated thousands.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push('\u{202f}');
        }
        shown.push(digit);
    }
    shown
}

/// A number of bytes in a readable unit.
pub(crate) fn bytes(bytes: u64) -> String {
    match bytes {
        0..10_240 => format!("{bytes} B"),
        10_240..10_485_760 => format!("{} KiB", bytes >> 10),
        10_485_760..10_737_418_240 => format!("{} MiB", bytes >> 20),
        _ => format!("{} GiB", bytes >> 30),
    }
}

/// Money, from millionths.
pub(crate) fn money(micros: u64) -> String {
    format!("{}.{:04}", micros / 1_000_000, micros % 1_000_000 / 100)
}

/// A state in a word, with a color for good or bad.
pub(crate) fn state(state: &str) -> Markup {
    let kind = match state {
        "connected" | "done" | "approved" | "answered" | "sent" | "active" | "current"
        | "ready" | "fired" => "good",
        "dead" | "failed" | "denied" | "alarm" | "unknown" | "refused" | "void" | "parked"
        | "quarantined" | "broken" | "missing" => "bad",
        "held" | "waiting" | "open" | "retrying" | "changed" | "new" | "paused" | "stale"
        | "missed" => "warn",
        "leased" | "running" | "queued" | "pending" | "connecting" | "starting" | "begun" => "info",
        _ => "plain",
    };
    let word = match state {
        "leased" => "at work",
        other => other,
    };
    html! { span class={ "chip " (kind) } { (word) } }
}

/// A link to a room, by its name.
pub(crate) fn room(room: &Room) -> Markup {
    html! {
        a href={ "/rooms/" (room.id) } { (word(&room.name)) }
        @if room.is_direct { " " span.chip.plain { "direct" } }
    }
}

/// Shown in place of a hidden text.
pub(crate) fn hidden(room: &Room) -> Markup {
    html! {
        p.quiet { "Said in a direct chat. " a href={ "/rooms/" (room.id) } { "Look into it" } }
    }
}

/// A link to a run, by the end of its id: ids of runs of the same time begin alike.
pub(crate) fn run(id: &str) -> Markup {
    html! { a.id href={ "/runs/" (id) } { (short(id)) } }
}

/// The end of an id.
pub(crate) fn short(id: &str) -> &str {
    id.rsplit('-').next().unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_data_and_nothing_in_it_is_unseen() {
        let table = [
            (
                "<img src=x onerror=alert(1)>",
                "&lt;img src=x onerror=alert(1)&gt;",
            ),
            (
                "a\u{202e}b",
                "a<span class=\"odd\" title=\"a character that can't be seen\">U+202E</span>b",
            ),
            (
                "\0",
                "<span class=\"odd\" title=\"a character that can't be seen\">U+0000</span>",
            ),
            ("two\nlines", "two\nlines"),
            ("سلام\u{200c}", "سلام\u{200c}"),
        ];
        for (text, expected) in table {
            assert_eq!(word(text).into_string(), format!("<bdi>{expected}</bdi>"));
        }
        let quoted = html! { input value=(r#""><script>x</script>"#); }.into_string();
        assert_eq!(
            quoted,
            r#"<input value="&quot;&gt;&lt;script&gt;x&lt;/script&gt;">"#
        );
    }

    #[test]
    fn a_long_text_is_cut_and_says_so() {
        let long = "é".repeat(TEXT_MAX_CHARS + 1_234);
        let shown = word(&long).into_string();
        assert!(shown.contains("… and 1\u{202f}234 characters more"));
        assert!(shown.len() < long.len());
        assert_eq!(beginning("a\nbc", 2), "a …");
    }

    #[test]
    fn figures_are_shown_as_people_say_them() {
        assert_eq!(grouped(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(grouped(12), "12");
        assert_eq!(money(1_234_500), "1.2345");
        assert_eq!(span(90_000), "90 s");
        assert_eq!(span(3 * 86_400_000), "3 days");
        assert_eq!(bytes(3 << 20), "3072 KiB");
    }
}
