//! Slack's text on the wire: what people type, what an app posts, and the `rich_text` mirror.
//!
//! Pure. Escapes are `&amp; &lt; &gt;` and nothing else; everything in `<…>` is a reference.

use serde_json::{Value, json};

use super::world::SlackWorld;

/// Escapes the three characters that Slack's text escapes.
#[must_use]
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn unescape(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}

/// Turns what a person types into wire text: `@name`, `#channel`, `@here` and links become
/// references, everything else is escaped.
#[must_use]
pub(super) fn typed_to_wire(world: &SlackWorld, typed: &str) -> String {
    let mut wire = String::new();
    let mut rest = typed;
    let mut at_word_start = true;
    while let Some(first) = rest.chars().next() {
        if at_word_start && let Some((reference, used)) = typed_reference(world, rest) {
            wire.push_str(&reference);
            rest = &rest[used..];
            at_word_start = false;
            continue;
        }
        wire.push_str(&escape(&rest[..first.len_utf8()]));
        rest = &rest[first.len_utf8()..];
        at_word_start = !first.is_alphanumeric() && first != '_';
    }
    wire
}

fn typed_reference(world: &SlackWorld, rest: &str) -> Option<(String, usize)> {
    if let Some(link_len) = link_len(rest) {
        return Some((format!("<{}>", escape(&rest[..link_len])), link_len));
    }
    let sigil = rest.chars().next().filter(|c| matches!(c, '@' | '#'))?;
    let name_len = rest[1..]
        .find(|c: char| !c.is_alphanumeric() && c != '_' && c != '-')
        .unwrap_or(rest.len() - 1);
    let name = &rest[1..=name_len];
    let reference = match (sigil, name) {
        ('@', "here" | "channel" | "everyone") => format!("<!{name}>"),
        ('@', _) if name.eq_ignore_ascii_case(&world.bot_name) => {
            format!("<@{}>", world.bot_user_id)
        }
        ('@', _) => format!("<@{}>", world.user(name)?.id),
        _ => {
            let channel = world.channel(name)?;
            format!("<#{}|{}>", channel.id, channel.name)
        }
    };
    Some((reference, 1 + name_len))
}

fn link_len(rest: &str) -> Option<usize> {
    if !(rest.starts_with("http://") || rest.starts_with("https://")) {
        return None;
    }
    let end = rest
        .find(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | '|' | '"'))
        .unwrap_or(rest.len());
    let link = rest[..end].trim_end_matches(['.', ',', ';', ':', '!', '?', ')']);
    (link.len() > "https://".len()).then_some(link.len())
}

/// What Slack stores for the text that an app posts: references stay, entities stay, bare links get
/// angle brackets, any other `&`, `<` or `>` is escaped.
#[must_use]
pub(super) fn posted_to_stored(posted: &str) -> String {
    let mut stored = String::new();
    let mut rest = posted;
    let mut at_word_start = true;
    while let Some(first) = rest.chars().next() {
        let kept = kept_len(rest);
        if kept > 0 {
            stored.push_str(&rest[..kept]);
            rest = &rest[kept..];
            at_word_start = true;
            continue;
        }
        if at_word_start && let Some(len) = link_len(rest) {
            stored.push_str(&format!("<{}>", &rest[..len]));
            rest = &rest[len..];
            continue;
        }
        // A quote sign at the start of a line is markup, not text.
        let is_quote = first == '>' && (stored.is_empty() || stored.ends_with('\n'));
        match first {
            '>' if is_quote => stored.push('>'),
            _ => stored.push_str(&escape(&rest[..first.len_utf8()])),
        }
        rest = &rest[first.len_utf8()..];
        at_word_start = !first.is_alphanumeric();
    }
    stored
}

/// How many bytes at the start of `rest` are an entity or a reference.
fn kept_len(rest: &str) -> usize {
    for entity in ["&amp;", "&lt;", "&gt;"] {
        if rest.starts_with(entity) {
            return entity.len();
        }
    }
    reference_len(rest).unwrap_or(0)
}

/// The length of `<…>` at the start of `rest`, when it is a reference.
fn reference_len(rest: &str) -> Option<usize> {
    let inner = rest.strip_prefix('<')?;
    let end = inner.find('>')?;
    let body = &inner[..end];
    let is_reference = body.starts_with(['@', '#', '!'])
        || ["http://", "https://", "mailto:", "tel:"]
            .iter()
            .any(|scheme| body.starts_with(scheme));
    (is_reference && !body.contains('\n')).then_some(end + 2)
}

/// The `rich_text` block that Slack's clients send beside a person's text.
#[must_use]
pub(super) fn rich_text(wire: &str) -> Value {
    let mut elements = Vec::new();
    let mut plain = String::new();
    let mut rest = wire;
    while let Some(first) = rest.chars().next() {
        if let Some(len) = reference_len(rest) {
            flush_plain(&mut plain, &mut elements);
            elements.push(rich_reference(&rest[1..len - 1]));
            rest = &rest[len..];
        } else {
            plain.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    flush_plain(&mut plain, &mut elements);
    json!({
        "type": "rich_text",
        "block_id": "rt1",
        "elements": [{"type": "rich_text_section", "elements": elements}],
    })
}

fn flush_plain(plain: &mut String, elements: &mut Vec<Value>) {
    if !plain.is_empty() {
        elements.push(json!({"type": "text", "text": unescape(plain)}));
        plain.clear();
    }
}

fn rich_reference(body: &str) -> Value {
    let (target, label) = body.split_once('|').unwrap_or((body, ""));
    if let Some(user) = target.strip_prefix('@') {
        return json!({"type": "user", "user_id": user});
    }
    if let Some(channel) = target.strip_prefix('#') {
        return json!({"type": "channel", "channel_id": channel});
    }
    if let Some(group) = target.strip_prefix("!subteam^") {
        return json!({"type": "usergroup", "usergroup_id": group});
    }
    if let Some(range) = target.strip_prefix('!') {
        return json!({"type": "broadcast", "range": range});
    }
    let mut link = json!({"type": "link", "url": unescape(target)});
    if !label.is_empty() {
        link["text"] = json!(unescape(label));
    }
    link
}

/// Whether wire text mentions this user.
#[must_use]
pub(super) fn mentions(wire: &str, user_id: &str) -> bool {
    let start = format!("<@{user_id}");
    wire.match_indices(&start)
        .any(|(at, _)| wire[at + start.len()..].starts_with(['>', '|']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_text_becomes_wire_text() {
        let world = SlackWorld::acme();
        let cases = [
            ("@vocative hi", "<@U0VOCATIVE> hi"),
            ("hey @Ann & @nobody", "hey <@U0ANN> &amp; @nobody"),
            ("see #ops, a<b", "see <#C0OPS|ops>, a&lt;b"),
            (
                "@here https://x.y/?a=1&b=2.",
                "<!here> <https://x.y/?a=1&amp;b=2>.",
            ),
            ("me@vocative.example", "me@vocative.example"),
        ];
        for (typed, wire) in cases {
            assert_eq!(typed_to_wire(&world, typed), wire);
        }
    }

    #[test]
    fn posted_text_is_stored_like_slack_does() {
        let cases = [
            ("a < b & c", "a &lt; b &amp; c"),
            ("a &lt; b <@U1> <!here>", "a &lt; b <@U1> <!here>"),
            ("see https://x.y.", "see <https://x.y>."),
            ("> quote\na > b", "> quote\na &gt; b"),
            ("<b>", "&lt;b&gt;"),
        ];
        for (posted, stored) in cases {
            assert_eq!(posted_to_stored(posted), stored);
        }
    }

    #[test]
    fn a_mention_needs_the_whole_id() {
        assert!(mentions("x <@U1> y", "U1"));
        assert!(mentions("<@U1|bob>", "U1"));
        assert!(!mentions("<@U12>", "U1"));
        assert!(!mentions("@U1", "U1"));
    }
}
