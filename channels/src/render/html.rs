//! The HTML that people write in Markdown: line breaks, styles, small and raised letters, keys, links,
//! folded sections. Its tags become what they mean there; comments show nothing.
//!
//! Everything else in angle brackets is shown as it was written, since it is most likely code or a
//! placeholder (`Vec<String>`, `<your-name>`): tags that are not known, that have no partner where they
//! need one, or that carry attributes for programs.

use std::collections::VecDeque;
use std::iter::Peekable;

use pulldown_cmark::{CowStr, Event, LinkType, Tag, TagEnd};

use vocative_contract::work::looked_at;

/// The tag of covered text (a spoiler). The parser has no such tag, and never sends this one: superscripts are not
/// enabled.
pub(super) const SPOILER: Tag<'static> = Tag::Superscript;
/// The end tag of covered text.
pub(super) const SPOILER_END: TagEnd = TagEnd::Superscript;

/// How many open tags are searched for the one that a closing tag closes.
const OPEN_MAX: usize = 16;
/// Longer text is not set small or raised.
const SCRIPT_MAX_CHARS: usize = 12;
/// The attributes a tag may have; any other (`class`, `onclick`) is meant for programs.
const ATTRIBUTES: [&str; 12] = [
    "align", "alt", "color", "height", "href", "id", "name", "open", "src", "start", "title",
    "width",
];

/// What a tag means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TagMeaning {
    Bold,
    Italic,
    Strike,
    Spoiler,
    /// Only the words count.
    Words,
    Code,
    Raised,
    Lowered,
    Link,
    Image,
    LineBreak,
    Rule,
    /// A block of its own.
    Paragraph,
    /// A block of its own that is the title of what follows.
    Title,
    Item,
}

impl TagMeaning {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "b" | "strong" => Self::Bold,
            "i" | "em" | "cite" | "var" | "dfn" => Self::Italic,
            "s" | "del" | "strike" => Self::Strike,
            "spoiler" => Self::Spoiler,
            "u" | "ins" | "mark" | "small" | "big" | "span" | "font" | "abbr" => Self::Words,
            "code" | "kbd" | "samp" | "tt" => Self::Code,
            "sup" => Self::Raised,
            "sub" => Self::Lowered,
            "a" => Self::Link,
            "img" => Self::Image,
            "br" => Self::LineBreak,
            "hr" => Self::Rule,
            "p" | "div" | "center" | "details" | "ul" | "ol" => Self::Paragraph,
            "summary" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => Self::Title,
            "li" => Self::Item,
            _ => return None,
        })
    }

    /// Whether the tag needs no closing tag.
    fn is_alone(self) -> bool {
        matches!(self, Self::Image | Self::LineBreak | Self::Rule)
    }
}

/// A tag whose meaning is known.
struct KnownTag<'a> {
    name: String,
    meaning: TagMeaning,
    is_closing: bool,
    attributes: Vec<(String, &'a str)>,
}

impl<'a> KnownTag<'a> {
    /// Reads `<name attribute="value">`; `None` for an unknown tag.
    fn read(tag: &'a str) -> Option<Self> {
        let inside = tag.strip_prefix('<')?.strip_suffix('>')?;
        let (is_closing, inside) = match inside.strip_prefix('/') {
            Some(inside) => (true, inside),
            None => (false, inside.strip_suffix('/').unwrap_or(inside)),
        };
        let name_len = inside
            .find(|c: char| !c.is_ascii_alphanumeric())
            .unwrap_or(inside.len());
        let name = inside[..name_len].to_ascii_lowercase();
        let meaning = TagMeaning::of(&name)?;
        let attributes = attributes(&inside[name_len..])?;
        Some(Self {
            name,
            meaning,
            is_closing,
            attributes,
        })
    }

    /// Whether the tag has its meaning here: blocks only inside a block of HTML, lists anywhere.
    fn counts(&self, is_block: bool) -> bool {
        let is_part = matches!(self.meaning, TagMeaning::Paragraph | TagMeaning::Title);
        is_block || !is_part || matches!(self.name.as_str(), "ul" | "ol")
    }

    fn attribute(&self, name: &str) -> Option<&'a str> {
        let found = self.attributes.iter().find(|(it, _)| it == name);
        found.map(|(_, value)| *value)
    }
}

/// The attributes of a tag; `None` if one of them is meant for programs.
fn attributes(text: &str) -> Option<Vec<(String, &str)>> {
    let mut attributes = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let len = rest
            .find(|c: char| c == '=' || c.is_whitespace())
            .unwrap_or(rest.len());
        let name = rest[..len].to_ascii_lowercase();
        if !ATTRIBUTES.contains(&name.as_str()) {
            return None;
        }
        rest = rest[len..].trim_start();
        let mut value = "";
        if let Some(after) = rest.strip_prefix('=') {
            let after = after.trim_start();
            let quote = after.chars().next().filter(|c| matches!(c, '"' | '\''));
            let (found, left) = match quote {
                Some(quote) => after[1..].split_once(quote)?,
                None => after.split_at(after.find(char::is_whitespace).unwrap_or(after.len())),
            };
            (value, rest) = (found, left.trim_start());
        }
        attributes.push((name, value));
    }
    Some(attributes)
}

/// The events of a parser, with HTML tags replaced by what they mean.
pub(super) struct Meant<'a, I: Iterator<Item = Event<'a>>> {
    events: Peekable<I>,
    ready: VecDeque<Event<'a>>,
}

impl<'a, I: Iterator<Item = Event<'a>>> Meant<'a, I> {
    /// What these events mean.
    pub(super) fn of(events: I) -> Self {
        Self {
            events: events.peekable(),
            ready: VecDeque::new(),
        }
    }

    /// The block of HTML that has begun, and its end.
    fn block(&mut self) -> VecDeque<Event<'a>> {
        let mut html = String::new();
        let is_html = |event: &Event<'_>| matches!(event, Event::Html(_) | Event::Text(_));
        while let Some(Event::Html(line) | Event::Text(line)) = self.events.next_if(is_html) {
            html.push_str(&line);
        }
        let events = block(&html);
        events.map_or_else(|| [Event::Html(html.into())].into(), VecDeque::from)
    }
}

impl<'a, I: Iterator<Item = Event<'a>>> Iterator for Meant<'a, I> {
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        if let Some(event) = self.ready.pop_front() {
            return Some(event);
        }
        let event = self.events.next()?;
        if event == Event::Start(Tag::HtmlBlock) {
            self.ready = self.block();
        } else if is_inline(&event) {
            let mut stretch = vec![event];
            while let Some(event) = self.events.next_if(is_inline) {
                stretch.push(event);
            }
            self.ready = resolved(stretch, false).into();
            return self.next();
        }
        Some(event)
    }
}

/// Whether an event stands within a line.
fn is_inline(event: &Event<'_>) -> bool {
    use {Tag as T, TagEnd as E};
    match event {
        Event::Start(tag) => matches!(
            tag,
            T::Emphasis | T::Strong | T::Strikethrough | T::Link { .. } | T::Image { .. }
        ),
        Event::End(tag) => matches!(
            tag,
            E::Emphasis | E::Strong | E::Strikethrough | E::Link | E::Image
        ),
        Event::Html(_) | Event::Rule => false,
        _ => true,
    }
}

/// The events of one stretch of text, with HTML tags replaced by what they mean. In a `block` of HTML block tags make
/// paragraphs; elsewhere only items of lists do.
fn resolved<'a>(events: Vec<Event<'a>>, is_block: bool) -> Vec<Event<'a>> {
    looked_at(events.len());
    if !events
        .iter()
        .any(|event| matches!(event, Event::InlineHtml(_)))
    {
        return events;
    }
    let roles = roles(&events, is_block);
    let mut out = Vec::with_capacity(events.len());
    let mut at = 0;
    while at < events.len() {
        let is_break = events[at] == Event::SoftBreak;
        at = match &roles[at] {
            // A line end beside something that breaks the line by itself adds no second break.
            TagRole::AsItIs if is_break && is_beside_part(&roles, at) => at + 1,
            TagRole::AsItIs => {
                out.push(events[at].clone());
                at + 1
            }
            TagRole::Comment => at + 1,
            TagRole::Mark(known) => {
                push_meaning(&mut out, known, is_block);
                at + 1
            }
            TagRole::Around(meaning, close) => {
                push_around(&mut out, *meaning, &events[at + 1..*close]);
                close + 1
            }
        };
    }
    out
}

fn is_beside_part(roles: &[TagRole<'_>], at: usize) -> bool {
    let breaks = |known: &KnownTag<'_>| {
        use TagMeaning::{Item, LineBreak, Paragraph, Rule, Title};
        matches!(known.meaning, LineBreak | Rule | Paragraph | Title | Item)
    };
    let before = roles.get(at.wrapping_sub(1));
    let beside = before.into_iter().chain(roles.get(at + 1));
    let mut marks = beside.filter_map(|role| match role {
        TagRole::Mark(known) => Some(known),
        _ => None,
    });
    marks.any(breaks)
}

/// What becomes of an event.
enum TagRole<'a> {
    AsItIs,
    Comment,
    Mark(KnownTag<'a>),
    /// Together with everything up to the tag that closes it, whose place it holds.
    Around(TagMeaning, usize),
}

fn roles<'e>(events: &'e [Event<'_>], is_block: bool) -> Vec<TagRole<'e>> {
    let mut roles: Vec<TagRole<'e>> = events.iter().map(|_| TagRole::AsItIs).collect();
    // Tags that are open, and a `None` for each of Markdown's own marks: no pair of tags may span one.
    let mut open: Vec<Option<(usize, KnownTag<'e>)>> = Vec::new();
    let mut single = Vec::new();
    for (n, event) in events.iter().enumerate() {
        let html = match event {
            Event::Start(_) => {
                open.push(None);
                continue;
            }
            Event::End(_) => {
                while open.pop().is_some_and(|it| it.is_some()) {}
                continue;
            }
            Event::InlineHtml(html) => html,
            _ => continue,
        };
        if html.starts_with("<!--") {
            roles[n] = TagRole::Comment;
            continue;
        }
        let Some(known) = KnownTag::read(html).filter(|known| known.counts(is_block)) else {
            continue;
        };
        let partner = partner(&open, &known.name).filter(|_| known.is_closing);
        match partner.and_then(|at| open.drain(at..).next().flatten()) {
            Some(opening) => pair(&mut roles, events, opening, (n, known)),
            _ if known.meaning.is_alone() => roles[n] = TagRole::Mark(known),
            _ if known.is_closing => single.push((n, known)),
            _ => open.push(Some((n, known))),
        }
    }
    // A block's closing tag may stand in another block of HTML, so these tags count alone.
    for (n, known) in open.into_iter().flatten().chain(single) {
        if matches!(known.meaning, TagMeaning::Paragraph | TagMeaning::Item) {
            roles[n] = TagRole::Mark(known);
        }
    }
    roles
}

/// Where in `open` the tag is that a closing tag of this name closes.
fn partner(open: &[Option<(usize, KnownTag<'_>)>], name: &str) -> Option<usize> {
    let within = open.iter().enumerate().rev().take(OPEN_MAX);
    let mut within = within.map_while(|(at, it)| it.as_ref().map(|(_, known)| (at, known)));
    within
        .find(|(_, known)| known.name == name)
        .map(|(at, _)| at)
}

fn pair<'e>(
    roles: &mut [TagRole<'e>],
    events: &[Event<'_>],
    (from, opening): (usize, KnownTag<'e>),
    (to, closing): (usize, KnownTag<'e>),
) {
    let is_text = |event: &Event<'_>| matches!(event, Event::Text(_) | Event::SoftBreak);
    let inside = events[from + 1..to].iter();
    let count = inside.clone().take_while(|event| is_text(event)).count();
    looked_at(count);
    let is_words = count == inside.len();
    match opening.meaning {
        TagMeaning::Code | TagMeaning::Raised | TagMeaning::Lowered if is_words => {
            roles[from] = TagRole::Around(opening.meaning, to);
        }
        _ => {
            roles[from] = TagRole::Mark(opening);
            roles[to] = TagRole::Mark(closing);
        }
    }
}

fn push_meaning<'a>(out: &mut Vec<Event<'a>>, known: &KnownTag<'_>, is_block: bool) {
    let part = if is_block {
        Event::End(TagEnd::Paragraph)
    } else {
        Event::HardBreak
    };
    let styled = |tag: Tag<'a>| {
        if known.is_closing {
            Event::End(tag.to_end())
        } else {
            Event::Start(tag)
        }
    };
    match known.meaning {
        TagMeaning::Bold => out.push(styled(Tag::Strong)),
        TagMeaning::Italic => out.push(styled(Tag::Emphasis)),
        TagMeaning::Strike => out.push(styled(Tag::Strikethrough)),
        TagMeaning::Spoiler => out.push(styled(SPOILER)),
        TagMeaning::Link => out.push(styled(link(known.attribute("href").unwrap_or_default()))),
        TagMeaning::Image => {
            let tag = link(known.attribute("src").unwrap_or_default());
            let end = tag.to_end();
            let label = decoded(known.attribute("alt").unwrap_or_default());
            out.extend([
                Event::Start(tag),
                Event::Text(label.into()),
                Event::End(end),
            ]);
        }
        TagMeaning::LineBreak => out.push(Event::HardBreak),
        TagMeaning::Rule if is_block => out.push(Event::Rule),
        TagMeaning::Rule | TagMeaning::Paragraph => out.push(part),
        TagMeaning::Title if known.is_closing => out.extend([Event::End(TagEnd::Strong), part]),
        TagMeaning::Title => out.extend([part, Event::Start(Tag::Strong)]),
        TagMeaning::Item if known.is_closing => {}
        TagMeaning::Item => out.extend([Event::HardBreak, Event::Text("• ".into())]),
        TagMeaning::Words | TagMeaning::Code | TagMeaning::Raised | TagMeaning::Lowered => {}
    }
}

fn link<'a>(url: &str) -> Tag<'a> {
    Tag::Link {
        link_type: LinkType::Inline,
        dest_url: decoded(url).into(),
        title: CowStr::Borrowed(""),
        id: CowStr::Borrowed(""),
    }
}

fn push_around<'a>(out: &mut Vec<Event<'a>>, meaning: TagMeaning, inside: &[Event<'a>]) {
    let words: String = inside
        .iter()
        .map(|event| match event {
            Event::Text(text) => text.as_ref(),
            _ => " ",
        })
        .collect();
    let is_attached = match out.last() {
        Some(Event::Text(before)) => !before.ends_with(char::is_whitespace),
        before => before.is_some_and(|it| !matches!(it, Event::SoftBreak | Event::HardBreak)),
    };
    out.push(match meaning {
        TagMeaning::Code => Event::Code(words.into()),
        // By itself it is small print.
        _ if !is_attached => Event::Text(words.into()),
        meaning => Event::Text(script(&words, meaning == TagMeaning::Raised).into()),
    });
}

/// Words as raised or lowered letters, where Unicode has them.
fn script(words: &str, is_raised: bool) -> String {
    let is_short = words.chars().count() <= SCRIPT_MAX_CHARS && !words.contains(' ');
    if !is_short || words.is_empty() {
        return words.to_owned();
    }
    let (letters, mark) = if is_raised {
        (RAISED, '^')
    } else {
        (LOWERED, '_')
    };
    let letter = |c: char| letters.chars().nth(PLAIN.chars().position(|it| it == c)?);
    let found: Option<String> = words
        .chars()
        .map(|c| letter(c).filter(|it| *it != '·'))
        .collect();
    found.unwrap_or_else(|| match words.chars().count() {
        1 => format!("{mark}{words}"),
        _ => format!("{mark}({words})"),
    })
}

const PLAIN: &str = "0123456789+-−=()abcdefghijklmnoprstuvwxyz";
const RAISED: &str = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ";
const LOWERED: &str = "₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎ₐ···ₑ··ₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥ·ₓ··";

/// The events of a block of HTML; `None` if something in it is not known.
fn block(html: &str) -> Option<Vec<Event<'static>>> {
    let mut events = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        push_lines(&mut events, &rest[..at]);
        let tag = &rest[at..tag_end(rest, at)?];
        if !tag.starts_with("<!--") {
            KnownTag::read(tag)?;
        }
        events.push(Event::InlineHtml(tag.to_owned().into()));
        rest = &rest[at + tag.len()..];
    }
    push_lines(&mut events, rest);
    Some(resolved(events, true))
}

/// Where the tag or the comment ends that begins at a place.
fn tag_end(html: &str, at: usize) -> Option<usize> {
    let mark = if html[at..].starts_with("<!--") {
        "-->"
    } else {
        ">"
    };
    let length = html[at..].find(mark);
    looked_at(length.unwrap_or(html.len() - at));
    length.map(|len| at + len + mark.len())
}

fn push_lines(events: &mut Vec<Event<'static>>, text: &str) {
    for (n, line) in text.split('\n').enumerate() {
        if n > 0 {
            events.push(Event::SoftBreak);
        }
        let line = if n > 0 { line.trim_start() } else { line };
        if !line.is_empty() {
            events.push(Event::Text(decoded(line).into()));
        }
    }
}

/// A text with its character references replaced, of those that HTML itself needs.
fn decoded(text: &str) -> String {
    const REFERENCES: [(&str, &str); 6] = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&nbsp;", "\u{A0}"),
        ("&amp;", "&"),
    ];
    if !text.contains('&') {
        return text.to_owned();
    }
    let decode = |text: String, (name, c): &(&str, &str)| text.replace(name, c);
    REFERENCES.iter().fold(text.to_owned(), decode)
}

#[cfg(test)]
mod tests {
    use super::super::parse::parsed;
    use super::super::plain::readable_text;
    use vocative_contract::people::People;

    fn shown(text: &str) -> String {
        readable_text(&parsed(text, &People::nobody()))
    }

    #[test]
    fn known_tags_are_what_they_mean() {
        let table = [
            ("H<sub>2</sub>O, x<sup>n+1</sup>", "H₂O, xⁿ⁺¹"),
            ("a<sup>α</sup> and b<sub>αβ</sub>", "a^α and b_(αβ)"),
            ("<sub>all of this is small</sub>", "all of this is small"),
            ("so <sub>small</sub>", "so small"),
            ("<kbd>Ctrl</kbd>+<kbd>C</kbd>", "Ctrl+C"),
            ("a<br>b<BR />\nc", "a\nb\nc"),
            ("so <!-- not --> so", "so  so"),
            (
                "<a href=\"https://e.org/x\">here</a>",
                "here (https://e.org/x)",
            ),
            (
                "see <img src='https://e.org/i.png' alt='a &amp; b'>",
                "see a & b (https://e.org/i.png)",
            ),
            ("<ul><li>one</li><li>two &lt;</li></ul>", "• one\n• two <"),
            (
                "<ul>\n  <li>one</li>\n  <li>two</li>\n</ul>",
                "• one\n• two",
            ),
            (
                "<details>\n<summary>More</summary>\n\n**x**\n\n</details>\n\nend",
                "More\n\nx\n\nend",
            ),
            (
                "<p align=\"center\">\n  <b>in</b>\n</p>\n<hr>\nout",
                "in\n\n———\n\nout",
            ),
            ("| a |\n|---|\n| x<br>y |", "a\n---\nx y"),
        ];
        for (text, expected) in table {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn other_tags_are_text() {
        for text in [
            "Vec<String> and <your-name>",
            "an <b> alone, and </i>",
            "<b>**x</b>**",
            "<span class=\"x\">y</span>",
            "<div onclick='x'>y</div>",
            "<script>\nlet x;\n</script>",
            "use <details> for it",
        ] {
            assert_eq!(shown(text).replace("**", ""), text.replace("**", ""));
        }
    }

    #[test]
    fn styles_of_tags_are_styles() {
        let of = |text: &str| parsed(text, &People::nobody());
        assert_eq!(
            of("<b>a <i>b</i></b> <s>c</s> <code>d_e</code>"),
            of("**a *b*** ~~c~~ `d_e`")
        );
        assert_eq!(of("**<u>a</u>**"), of("**a**"));
    }
}
