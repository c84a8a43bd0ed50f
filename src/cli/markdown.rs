//! A conversation as Markdown for people to read: pure, a message at a time.
//!
//! The text of a message can't affect what follows it: code fences are closed, and headings, rules, quotes, HTML and
//! remote images are escaped.

use std::fmt::Write as _;

use chrono::{DateTime, FixedOffset, Local, Offset as _, Utc};
use vocative_contract::work::looked_at;

use crate::admin::view::{ConversationView, ExportMessageView, ParticipantsView};
use vocative_core::counted::counted;
use vocative_core::prompting::clean_name;

/// Characters of a message that are quoted above a reply to it.
const REPLY_CHARS: usize = 120;

/// The time zone of days and times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownZone {
    /// UTC.
    Utc,
    /// The time zone of this machine.
    Local,
    /// A fixed offset east of UTC.
    Fixed(FixedOffset),
}

impl std::str::FromStr for ShownZone {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "utc" | "UTC" => Ok(Self::Utc),
            "local" => Ok(Self::Local),
            offset => offset
                .parse()
                .map(Self::Fixed)
                .map_err(|_| "expected utc, local, or an offset like +02:00".to_owned()),
        }
    }
}

impl ShownZone {
    fn name(self) -> String {
        match self {
            Self::Utc => "UTC".to_owned(),
            Self::Local => "local time".to_owned(),
            Self::Fixed(offset) => format!("UTC{offset}"),
        }
    }

    fn at(self, at_ms: i64) -> DateTime<FixedOffset> {
        let at = DateTime::<Utc>::from_timestamp_millis(at_ms).unwrap_or_default();
        match self {
            Self::Utc => at.with_timezone(&Utc.fix()),
            Self::Local => {
                let at = at.with_timezone(&Local);
                at.with_timezone(at.offset())
            }
            Self::Fixed(offset) => at.with_timezone(&offset),
        }
    }
}

/// The text above the messages: title, source, participants and times.
pub(super) fn header(
    view: &ConversationView,
    participants: &ParticipantsView,
    zone: ShownZone,
) -> String {
    let source = &view.source;
    let chat = source.chat_title.as_deref().unwrap_or(&view.chat);
    let kind = source.kind.as_deref().unwrap_or("kind not known");
    let mut out = format!("# {}\n\n", inline(&view.title));
    let _ = writeln!(
        out,
        "- Source: {} ({}), {}, {}, {}",
        inline(&source.channel),
        source.platform,
        inline(chat),
        kind.replace('_', " "),
        view.scope
    );
    let mut names: Vec<String> = participants
        .shown
        .iter()
        .map(|one| format!("{} ({})", inline(&one.name), one.turns))
        .collect();
    if participants.more > 0 {
        names.push(format!("and {} more", participants.more));
    }
    let _ = writeln!(out, "- Participants: {}", names.join(", "));
    let last = zone.at(view.last_activity_ms).format("%Y-%m-%d %H:%M");
    let _ = writeln!(
        out,
        "- {}, the last at {last}",
        counted(view.turns, "turn", "turns")
    );
    let _ = writeln!(out, "- Times: {}", zone.name());
    let _ = writeln!(out, "- Conversation: `{}`", view.id);
    out
}

/// Writes messages one after the other, with a heading for each day.
pub(super) struct Messages {
    zone: ShownZone,
    day: String,
}

impl Messages {
    pub(super) fn new(zone: ShownZone) -> Self {
        Self {
            zone,
            day: String::new(),
        }
    }

    /// One message, below a heading if it is the first of its day.
    pub(super) fn message(&mut self, message: &ExportMessageView) -> String {
        let at = self.zone.at(message.sent_at_ms);
        let day = at.format("%A, %Y-%m-%d").to_string();
        let mut out = String::new();
        if day != self.day {
            let _ = write!(out, "\n## {day}\n");
            self.day = day;
        }
        let line = &message.line;
        let speaker = &line.participant;
        let name = speaker.display_name.as_deref().unwrap_or(&speaker.id);
        let agent = if speaker.kind == "agent" {
            " (agent)"
        } else {
            ""
        };
        let edited = if line.edited { " *(edited)*" } else { "" };
        let _ = write!(
            out,
            "\n**{}**{agent} {}{edited}\n\n",
            inline(name),
            at.format("%H:%M:%S")
        );
        if line.deleted {
            out.push_str("*(deleted)*\n");
            return out;
        }
        if let Some(reply) = &message.reply {
            let quote = message.quote.as_deref().unwrap_or(&reply.text);
            let _ = write!(
                out,
                "> {}: {}\n\n",
                inline(&reply.speaker),
                inline(&shortened(quote))
            );
        }
        if !message.text.trim().is_empty() {
            out.push_str(&block(&message.text));
        }
        for attached in &line.attachments {
            let name = attached.name.as_deref().unwrap_or_default();
            let stored = attached.path.as_deref().map(inline);
            let stored = stored.map_or_else(String::new, |path| format!(", stored as {path}"));
            let _ = writeln!(
                out,
                "\n*attached: {} {}{stored}*",
                inline(&attached.kind),
                inline(name)
            );
        }
        out
    }
}

fn shortened(text: &str) -> String {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match flat.char_indices().nth(REPLY_CHARS) {
        Some((end, _)) => format!("{}…", &flat[..end]),
        None => flat,
    }
}

/// A text on one line, with all Markdown escaped.
pub(super) fn inline(text: &str) -> String {
    looked_at(text.len());
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = match line.chars().count() {
        0..=64 => clean_name(&line),
        _ => line.chars().filter(|c| !c.is_control()).collect(),
    };
    let mut out = String::with_capacity(line.len());
    for c in line.chars() {
        if matches!(
            c,
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '~' | '!'
        ) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// A message's text: its code blocks, emphasis and links stay, everything else is escaped or closed.
pub(super) fn block(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut fence: Option<(char, usize)> = None;
    let lines: Vec<String> = text.lines().map(visible).collect();
    for (index, line) in lines.iter().enumerate() {
        let mark = fence_of(line);
        match (fence, mark) {
            (None, Some(_)) => {
                fence = mark;
                out.push_str(line.trim_end());
            }
            (Some((open, length)), Some((close, longer)))
                if open == close && longer >= length && is_bare_fence(line) =>
            {
                fence = None;
                out.push_str(line.trim_end());
            }
            (Some(_), _) => out.push_str(line),
            (None, None) => {
                out.push_str(&plain_line(line));
                let next = lines.get(index + 1);
                // Two spaces at the end keep the line break.
                if next.is_some_and(|next| !next.trim().is_empty()) && !line.trim().is_empty() {
                    out.push_str("  ");
                }
            }
        }
        out.push('\n');
    }
    if let Some((mark, length)) = fence {
        out.extend(std::iter::repeat_n(mark, length));
        out.push('\n');
    }
    out
}

/// A line without control characters, except tabs.
fn visible(line: &str) -> String {
    looked_at(line.len());
    line.chars()
        .filter(|c| *c == '\t' || !c.is_control())
        .collect()
}

/// The mark and length of a code fence that a line opens or closes.
fn fence_of(line: &str) -> Option<(char, usize)> {
    let indent = line.chars().take_while(|c| *c == ' ').count();
    let rest = line.get(indent..)?;
    looked_at(line.len());
    let mark = rest.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = rest.chars().take_while(|c| *c == mark).count();
    // A line such as ```a``` opens no fence.
    let is_fence = indent <= 3 && length >= 3 && (mark == '~' || !rest[length..].contains('`'));
    is_fence.then_some((mark, length))
}

fn is_bare_fence(line: &str) -> bool {
    looked_at(line.len());
    line.trim().chars().all(|c| matches!(c, '`' | '~'))
}

/// A line outside of code blocks, escaped so that it is no heading, rule, quote, HTML or picture.
fn plain_line(line: &str) -> String {
    looked_at(2 * line.len());
    let safe = line.replace('<', "\\<").replace("![", "!\\[");
    let start = safe.trim_start();
    let indent = safe.len() - start.len();
    let is_rule = start
        .chars()
        .all(|c| matches!(c, '-' | '=' | '*' | '_' | ' ' | '\t'));
    if !start.is_empty() && (is_rule || start.starts_with(['#', '>'])) {
        return format!("{}\\{start}", &safe[..indent.min(3)]);
    }
    safe
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn nothing_reaches_out_of_its_message() {
        let cases = [
            ("plain\nlines", "plain  \nlines\n"),
            (
                "# no heading\n> no quote",
                "\\# no heading  \n\\> no quote\n",
            ),
            ("title\n=====\n---", "title  \n\\=====  \n\\---\n"),
            ("<script>x</script>", "\\<script>x\\</script>\n"),
            ("![x](http://t/1.png)", "!\\[x](http://t/1.png)\n"),
            ("```rust\n# a\n```\nafter", "```rust\n# a\n```\nafter\n"),
            ("```\nopen\n# inside", "```\nopen\n# inside\n```\n"),
            ("~~~~\n~~~\n```", "~~~~\n~~~\n```\n~~~~\n"),
            ("```a``` is no fence", "```a``` is no fence\n"),
            ("bell\u{7} \u{1b}[2J", "bell [2J\n"),
        ];
        for (text, expected) in cases {
            assert_eq!(block(text), expected, "{text:?}");
        }
    }

    #[test]
    fn names_are_nothing_but_text() {
        assert_eq!(inline("A *b*\n# <c>"), "A \\*b\\* \\# \\<c\\>");
        assert_eq!(inline("[x](y) `z`"), "\\[x\\](y) \\`z\\`");
    }

    #[test]
    fn a_zone_is_utc_local_or_an_offset() {
        let east: ShownZone = "+02:00".parse().unwrap();
        assert_eq!(east.at(0).format("%H:%M").to_string(), "02:00");
        assert_eq!("utc".parse(), Ok(ShownZone::Utc));
        assert_eq!("local".parse(), Ok(ShownZone::Local));
        assert!("Europe/Berlin".parse::<ShownZone>().is_err());
    }
}
