//! Slack text and blocks as platform-neutral text.
//!
//! Mentions become tokens of [`vocative_contract::markup`], links become `[label](url)`, and the three escapes
//! are undone once, after the `<...>` groups were found. Blocks are not escaped; `text` is.

use std::collections::HashMap;
use std::ops::Range;

use vocative_contract::markup::{TEXT_MAX_BYTES, bounded, mention_token, neutral_text, one_line};
use vocative_contract::work::looked_at;

use super::mrkdwn;
use super::wire::{Element, IdOr, LayoutBlock, LegacyAttachment, Style, TextObject};

/// A name fit for one line; `None` if nothing is left.
pub(super) fn name(name: Option<&str>) -> Option<String> {
    one_line(name?)
}

/// The title of a channel as people write it, `#general`; that of a group message, whose name lists
/// its people, stays as it is.
pub(super) fn channel_title(channel: Option<&str>) -> Option<String> {
    let name = name(channel)?;
    let is_bare = !name.starts_with('#') && !name.starts_with("mpdm-");
    Some(if is_bare { format!("#{name}") } else { name })
}

/// The neutral form of Slack's escaped `text`, whose marks (`*bold*`) become CommonMark's.
pub(super) fn neutral(text: &str) -> String {
    let Undone { text, groups } = undone(text);
    mrkdwn::commonmark(&text, &groups)
}

/// The neutral form of an escaped text that has no marks.
pub(super) fn neutral_unmarked(text: &str) -> String {
    undone(text).text
}

/// A text whose groups and escapes are undone.
struct Undone {
    text: String,
    /// Where its groups are now: they hold no marks.
    groups: Vec<Range<usize>>,
}

fn undone(text: &str) -> Undone {
    let text = neutral_text(&bounded(text));
    looked_at(text.len());
    let mut out = String::with_capacity(text.len());
    let mut groups = Vec::new();
    let mut rest = text.as_str();
    while let Some(open) = rest.find('<') {
        out.push_str(&unescaped(&rest[..open]));
        let after = &rest[open + 1..];
        match after.find(['<', '>']) {
            Some(close) if after[close..].starts_with('>') => {
                let start = out.len();
                out.push_str(&group(&after[..close]));
                groups.push(start..out.len());
                rest = &after[close + 1..];
            }
            _ => {
                out.push('<');
                rest = after;
            }
        }
    }
    out.push_str(&unescaped(rest));
    Undone { text: out, groups }
}

/// Undoes `&lt;`, `&gt;` and `&amp;`, each once.
pub(super) fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}

/// The neutral form of what stands between `<` and `>`.
fn group(content: &str) -> String {
    looked_at(content.len());
    let (target, label) = match content.split_once('|') {
        Some((target, label)) => (target, Some(unescaped(label)).filter(|it| !it.is_empty())),
        None => (content, None),
    };
    let mut kinds = target.chars();
    match kinds.next() {
        Some('@') if is_id(kinds.as_str()) => mention_token(kinds.as_str()),
        Some('#') if is_id(kinds.as_str()) => {
            format!("#{}", label.unwrap_or_else(|| kinds.as_str().to_owned()))
        }
        Some('!') => special(kinds.as_str(), label),
        _ => link(&unescaped(target), label).unwrap_or_else(|| format!("<{}>", unescaped(content))),
    }
}

fn is_id(id: &str) -> bool {
    !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric())
}

/// `<!here>`, `<!subteam^S1|@oncall>`, `<!date^1763712000^{date}|fallback>` and the like.
fn special(target: &str, label: Option<String>) -> String {
    let mut parts = target.split('^');
    let kind = parts.next().unwrap_or_default();
    match kind {
        "here" | "channel" | "everyone" => format!("@{kind}"),
        "subteam" => {
            let group = label.unwrap_or_else(|| parts.next().unwrap_or_default().to_owned());
            format!("@{}", group.trim_start_matches('@'))
        }
        "date" => label.unwrap_or_else(|| {
            let seconds = parts.next().and_then(|it| it.parse().ok());
            date(seconds).unwrap_or_else(|| "a date".to_owned())
        }),
        _ => label.unwrap_or_else(|| format!("<!{}>", unescaped(target))),
    }
}

fn date(seconds: Option<i64>) -> Option<String> {
    let time = chrono::DateTime::from_timestamp(seconds?, 0)?;
    Some(time.format("%Y-%m-%d %H:%M UTC").to_string())
}

/// A link in CommonMark; `None` if the target is no address.
fn link(target: &str, label: Option<String>) -> Option<String> {
    for scheme in ["mailto:", "tel:"] {
        if let Some(address) = target.strip_prefix(scheme) {
            return Some(label.unwrap_or_else(|| address.to_owned()));
        }
    }
    if !target.contains("://") && !target.contains(':') {
        return None;
    }
    let Some(label) = label.filter(|label| label != target) else {
        return Some(target.to_owned());
    };
    let label = label.replace('[', "\\[").replace(']', "\\]");
    if target.contains(['(', ')', ' ']) {
        return Some(format!("[{label}](<{target}>)"));
    }
    Some(format!("[{label}]({target})"))
}

/// The text of what a person composed; `None` if there are no such blocks, or also others.
///
/// It mirrors the `text` beside it, but says exactly what is bold, code or a list. Only the labels
/// of channels and user groups are in `text` alone.
pub(super) fn from_rich_text(blocks: &[LayoutBlock], text: &str) -> Option<String> {
    let is_rich_text = |block: &LayoutBlock| block.kind.as_deref() == Some("rich_text");
    let composed = || labelled(blocks, &labels(text));
    let composed = blocks.iter().all(is_rich_text).then(composed);
    composed.filter(|composed| !composed.trim().is_empty())
}

/// The labels of channels (`#C1`) and user groups (`@S1`), by what blocks show for them.
type Labels = HashMap<String, String>;

/// The labels that a text has.
fn labels(text: &str) -> Labels {
    let text = bounded(text);
    looked_at(text.len());
    let groups = text.split('<').filter_map(|part| part.split_once('>'));
    let labelled = groups.filter_map(|(content, _)| content.split_once('|'));
    let pairs = labelled.filter_map(|(target, label)| {
        let id = target
            .strip_prefix('#')
            .map(|id| format!("#{id}"))
            .or_else(|| Some(format!("@{}", target.strip_prefix("!subteam^")?)))?;
        let shown = neutral_unmarked(&format!("<{target}|{label}>"));
        Some((id, shown))
    });
    pairs.collect()
}

/// The text of blocks of any kind.
pub(super) fn from_blocks(blocks: &[LayoutBlock]) -> String {
    labelled(blocks, &Labels::new())
}

fn labelled(blocks: &[LayoutBlock], labels: &Labels) -> String {
    let texts = blocks.iter().map(|it| block(it, labels));
    let texts = texts.filter(|text| !text.is_empty());
    bounded(joined(texts, "\n").trim()).into_owned()
}

/// Texts with a separator between them, up to the limit of what is read.
fn joined(texts: impl Iterator<Item = String>, between: &str) -> String {
    let mut out = String::new();
    for (n, text) in texts.enumerate() {
        if out.len() > TEXT_MAX_BYTES {
            break;
        }
        if n > 0 {
            out.push_str(between);
        }
        looked_at(text.len());
        out.push_str(&text);
    }
    out
}

/// The users that blocks mention, in order.
pub(super) fn block_mentions(blocks: &[LayoutBlock]) -> Vec<String> {
    fn walk(elements: &[Element], users: &mut Vec<String>) {
        for element in elements {
            users.extend(element.user_id.iter().filter(|id| is_id(id)).cloned());
            walk(&element.elements, users);
        }
    }
    let mut users = Vec::new();
    for block in blocks {
        walk(&block.elements, &mut users);
    }
    users
}

fn block(block: &LayoutBlock, labels: &Labels) -> String {
    match block.kind.as_deref() {
        Some("rich_text") => {
            let parts = block.elements.iter().map(|it| container(it, labels));
            joined(parts, "\n").trim().to_owned()
        }
        Some("markdown") => match block.text.as_ref() {
            Some(IdOr::Id(text)) => neutral_text(&bounded(text)),
            _ => String::new(),
        },
        _ => {
            let own = match block.text.as_ref() {
                Some(IdOr::Object(text)) => text_object(text),
                _ => String::new(),
            };
            let fields = block.fields.iter().map(text_object);
            let elements = block.elements.iter().filter_map(context_element);
            let texts = std::iter::once(own).chain(fields).chain(elements);
            joined(texts.filter(|it| !it.is_empty()), "\n")
        }
    }
}

fn text_object(object: &TextObject) -> String {
    let text = object.text.as_deref().unwrap_or_default();
    match object.kind.as_deref() {
        Some("plain_text") => neutral_text(&bounded(text)),
        _ => neutral(text),
    }
}

/// A text of a context block; images and buttons have none.
fn context_element(element: &Element) -> Option<String> {
    let text = element.text.as_deref()?;
    match element.kind.as_deref() {
        Some("plain_text") => Some(neutral_text(&bounded(text))),
        Some("mrkdwn") => Some(neutral(text)),
        _ => None,
    }
}

/// A section, list, quote or preformatted text.
fn container(element: &Element, labels: &Labels) -> String {
    let inner = || -> String {
        let leaves = element.elements.iter();
        joined(leaves.map(|it| leaf(it, labels)), "")
    };
    match element.kind.as_deref() {
        Some("rich_text_list") => list(element, labels),
        Some("rich_text_preformatted") => format!("```\n{}\n```", inner().trim_end_matches('\n')),
        Some("rich_text_quote") => {
            let quote = inner();
            let lines = quote.lines().map(|line| format!("> {line}"));
            lines.collect::<Vec<_>>().join("\n")
        }
        _ => inner(),
    }
}

fn list(element: &Element, labels: &Labels) -> String {
    let is_ordered = matches!(element.style.as_ref(), Some(IdOr::Id(style)) if style == "ordered");
    let indent = usize::try_from(element.indent.unwrap_or(0)).map_or(0, |indent| indent.min(8));
    let first = element.offset.unwrap_or(0).saturating_add(1);
    let items = element.elements.iter().zip(0..).map(|(item, n)| {
        let mark = if is_ordered {
            format!("{}.", first.saturating_add(n))
        } else {
            "-".to_owned()
        };
        format!("{}{mark} {}", "  ".repeat(indent), container(item, labels))
    });
    joined(items, "\n")
}

fn leaf(element: &Element, labels: &Labels) -> String {
    let labelled = |id: String| labels.get(&id).cloned().unwrap_or(id);
    let own = |text: &Option<String>| neutral_text(&bounded(text.as_deref().unwrap_or_default()));
    match element.kind.as_deref() {
        Some("text") => styled(own(&element.text), element),
        Some("link") => {
            let label = Some(own(&element.text)).filter(|label| !label.is_empty());
            let url = own(&element.url);
            link(&url, label).unwrap_or(url)
        }
        Some("user") => match element.user_id.as_deref() {
            Some(id) if is_id(id) => mention_token(id),
            _ => String::new(),
        },
        Some("usergroup") => labelled(format!("@{}", own(&element.usergroup_id))),
        Some("channel") => labelled(format!("#{}", own(&element.channel_id))),
        Some("broadcast") => format!("@{}", own(&element.range)),
        Some("emoji") => emoji(element).unwrap_or_else(|| format!(":{}:", own(&element.name))),
        Some("date") => name(element.fallback.as_deref())
            .or_else(|| date(*element.timestamp))
            .unwrap_or_else(|| "a date".to_owned()),
        Some("color") => own(&element.value),
        Some("team") => own(&element.team_id),
        _ if !element.elements.is_empty() => container(element, labels),
        _ => own(&element.text),
    }
}

/// The character of an emoji from its code points in hexadecimal, joined by `-`.
fn emoji(element: &Element) -> Option<String> {
    let codes = element.unicode.as_deref()?.split('-');
    codes
        .map(|code| u32::from_str_radix(code, 16).ok().and_then(char::from_u32))
        .collect::<Option<String>>()
        .map(|emoji| neutral_text(&emoji))
        .filter(|emoji| !emoji.is_empty())
}

fn styled(text: String, element: &Element) -> String {
    let Some(IdOr::Object(style)) = element.style.as_ref() else {
        return text;
    };
    let marks = marks(*style);
    let inner = text.trim();
    if marks.is_empty() || inner.is_empty() {
        return text;
    }
    let (before, after) = text.split_at(text.len() - text.trim_start().len());
    let closing: String = marks.chars().rev().collect();
    format!("{before}{marks}{inner}{closing}{}", &after[inner.len()..])
}

fn marks(style: Style) -> String {
    let marks = [
        (style.bold, "**"),
        (style.italic, "_"),
        (style.strike, "~~"),
        (style.code, "`"),
    ];
    marks
        .into_iter()
        .filter(|(is_on, _)| *is_on)
        .map(|(_, mark)| mark)
        .collect()
}

/// What legacy attachments say: shared messages always, the rest only where it is all there is.
pub(super) fn from_attachments(attachments: &[LegacyAttachment], has_own_text: bool) -> String {
    let texts = attachments
        .iter()
        .filter_map(|it| attachment(it, has_own_text));
    texts.collect::<Vec<_>>().join("\n")
}

fn attachment(attachment: &LegacyAttachment, has_own_text: bool) -> Option<String> {
    let is_share = *attachment.is_share == Some(true);
    let is_preview = attachment.from_url.is_some() || attachment.original_url.is_some();
    if !is_share && (is_preview || has_own_text) {
        return None;
    }
    let parts = [&attachment.pretext, &attachment.title, &attachment.text];
    let texts = parts.into_iter().filter_map(|part| part.as_deref());
    let mut text = texts
        .map(neutral)
        .filter(|it| !it.is_empty())
        .collect::<Vec<_>>()
        .join("\n");
    if text.is_empty() {
        text = neutral(attachment.fallback.as_deref().unwrap_or_default());
    }
    if is_share {
        let author = name(attachment.author_name.as_deref());
        text = format!(
            "forwarded from {}: {text}",
            author.as_deref().unwrap_or("somebody")
        );
    }
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use vocative_contract::markup::{mentioned_ids, replace_mentions};

    use super::*;

    /// Mention tokens as `{id}`, so that tables stay readable.
    fn shown(text: &str) -> String {
        shown_tokens(&neutral(text))
    }

    fn shown_tokens(text: &str) -> String {
        replace_mentions(text, |id| format!("{{{id}}}"))
    }

    #[test]
    fn every_token_of_the_sheet_is_translated() {
        let table = [
            ("plain", "plain"),
            ("hi <@U123ABC>", "hi {U123ABC}"),
            ("<@W1|bob> hi", "{W1} hi"),
            ("<@> <@a b>", "<@> <@a b>"),
            (
                "in <#C1|general> or <#C2> or <#C3|>",
                "in #general or #C2 or #C3",
            ),
            ("<!subteam^S1> <!subteam^S1|@oncall>", "@S1 @oncall"),
            (
                "<!here> <!channel> <!everyone|everyone>",
                "@here @channel @everyone",
            ),
            ("<!date^1763712000^{date_short}|Nov 21>", "Nov 21"),
            ("<!date^1763712000^{date_short}>", "2025-11-21 08:00 UTC"),
            ("<!date^99999999999999999999>", "a date"),
            ("<!new|label> <!new>", "label <!new>"),
            ("<https://x.y>", "https://x.y"),
            ("<https://x.y|docs>", "[docs](https://x.y)"),
            ("<https://x.y|https://x.y>", "https://x.y"),
            (
                "<https://x.y/?a=1&amp;b=2|a &lt;b&gt; [c]>",
                "[a <b> \\[c\\]](https://x.y/?a=1&b=2)",
            ),
            ("<https://x.y/a_(b)|w>", "[w](<https://x.y/a_(b)>)"),
            ("<mailto:a@b.c|a@b.c> <tel:+1>", "a@b.c +1"),
            ("a &lt;b&gt; &amp; &amp;lt; &quot;", "a <b> & &lt; &quot;"),
            ("1 < 2 and <broken", "1 < 2 and <broken"),
            ("< <@U1>", "< {U1}"),
            ("<not a link>", "<not a link>"),
            (":tada: *bold <@U1>*", ":tada: **bold {U1}**"),
            ("<https://x.y/a_b_|_a_> _b_", "[_a_](https://x.y/a_b_) _b_"),
            ("*a &lt;b&gt;* `a &amp; *b*`", "**a <b>** `a & *b*`"),
            ("forged \u{FFF9}U1\u{FFFB}\0", "forged U1"),
        ];
        for (raw, expected) in table {
            assert_eq!(shown(raw), expected, "{raw}");
        }
    }

    #[test]
    fn rich_text_becomes_commonmark() {
        let json = r##"[{"type":"rich_text","elements":[
          {"type":"rich_text_section","elements":[{"type":"text","text":"hi ","style":{"bold":true}},{"type":"user","user_id":"U1"},
            {"type":"text","text":" <see> "},{"type":"link","url":"https://x.y","text":"this"},{"type":"emoji","name":"wave","unicode":"1f44b"},
            {"type":"emoji","name":"party"},{"type":"broadcast","range":"here"},{"type":"channel","channel_id":"C1"},
            {"type":"usergroup","usergroup_id":"S1"},{"type":"date","timestamp":1763712000},{"type":"color","value":"#fff"}]},
          {"type":"rich_text_list","style":"ordered","indent":1,"elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"one"}]},
            {"type":"rich_text_section","elements":[{"type":"text","text":"two","style":{"code":true}}]}]},
          {"type":"rich_text_quote","elements":[{"type":"text","text":"a\nb"}]},
          {"type":"rich_text_preformatted","elements":[{"type":"text","text":"let x;"}]}]},
          {"type":"section","text":{"type":"mrkdwn","text":"see <https://x.y|docs>"}}]"##;
        let blocks: Vec<LayoutBlock> = serde_json::from_str(json).unwrap();
        insta::assert_snapshot!(replace_mentions(&from_blocks(&blocks), |id| format!("{{{id}}}")), @r"
        **hi** {U1} <see> [this](https://x.y)👋:party:@here#C1@S12025-11-21 08:00 UTC#fff
          1. one
          2. `two`
        > a
        > b
        ```
        let x;
        ```
        see [docs](https://x.y)
        ");
        assert_eq!(block_mentions(&blocks), ["U1"]);
    }

    #[test]
    fn composed_text_comes_from_its_blocks_and_labels_from_the_text() {
        let json = r#"[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[
          {"type":"text","text":"see "},{"type":"channel","channel_id":"C1"},{"type":"text","text":" "},
          {"type":"usergroup","usergroup_id":"S1"},{"type":"text","text":" 2*3*4 "},
          {"type":"text","text":"now","style":{"bold":true}},{"type":"text","text":" "},{"type":"user","user_id":"U1"}]}]}]"#;
        let blocks: Vec<LayoutBlock> = serde_json::from_str(json).unwrap();
        let text = "see <#C1|general> <!subteam^S1|@oncall> 2*3*4 *now* <@U1>";
        let composed = from_rich_text(&blocks, text).map(|it| shown_tokens(&it));
        assert_eq!(
            composed.as_deref(),
            Some("see #general @oncall 2*3*4 **now** {U1}")
        );
        let bare = from_rich_text(&blocks, "").map(|it| shown_tokens(&it));
        assert_eq!(bare.as_deref(), Some("see #C1 @S1 2*3*4 **now** {U1}"));
        let mixed = r#"[{"type":"rich_text","elements":[]},{"type":"image"}]"#;
        let mixed: Vec<LayoutBlock> = serde_json::from_str(mixed).unwrap();
        assert_eq!(from_rich_text(&mixed, "text"), None);
        assert_eq!(from_rich_text(&[], "text"), None);
    }

    #[test]
    fn channels_have_titles_as_people_write_them() {
        let table = [
            (Some("general"), Some("#general")),
            (Some("#general"), Some("#general")),
            (Some("mpdm-ann--bob-1"), Some("mpdm-ann--bob-1")),
            (Some(" "), None),
            (None, None),
        ];
        for (name, expected) in table {
            assert_eq!(channel_title(name).as_deref(), expected);
        }
    }

    #[test]
    fn attachments_speak_where_nothing_else_does() {
        let read = |json: &str, has_text| {
            from_attachments(
                &serde_json::from_str::<Vec<LegacyAttachment>>(json).unwrap(),
                has_text,
            )
        };
        let build =
            r##"[{"pretext":"Build","title":"#7","text":"failed &amp; red","fallback":"f"}]"##;
        assert_eq!(read(build, false), "Build\n#7\nfailed & red");
        assert_eq!(read(build, true), "");
        let preview = r#"[{"from_url":"https://x.y","text":"preview"}]"#;
        assert_eq!(read(preview, false), "");
        let shared =
            r#"[{"is_share":true,"from_url":"https://x.y","author_name":"Ann","text":"look"}]"#;
        assert_eq!(read(shared, true), "forwarded from Ann: look");
    }

    proptest! {
        #[test]
        fn any_text_is_translated_and_nothing_is_forged(text in "[<>@#!|^&;a-zU1:/\u{FFF9}\u{FFFB} ]{0,80}|\\PC{0,60}") {
            let neutral = neutral(&text);
            for id in mentioned_ids(&neutral) {
                let is_there = text.contains(&format!("<@{id}"));
                let has_marks = text.contains(['\u{FFF9}', '\u{FFFB}', '\0']);
                prop_assert!(is_there || has_marks);
                prop_assert!(is_id(&id));
            }
        }

        #[test]
        fn what_we_escape_comes_back_as_it_was(text in "[<>@!&;a-z|]{0,60}|\\PC{0,60}") {
            let escaped = super::super::render::escaped(&text);
            prop_assert_eq!(neutral_unmarked(&escaped), neutral_text(&text));
        }
    }
}
