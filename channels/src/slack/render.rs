//! Renders an answer into posts: Markdown blocks, native tables, and a text beside them. Pure; never
//! fails.
//!
//! What is only text goes out as text: `&`, `<` and `>` are escaped, so that nothing in it can mention
//! anybody, ping a channel or make a link that shows another address. What has marks goes out as blocks;
//! the text beside them is what notifications and screen readers say. Each part is read back as
//! Markdown: if the words are not the same, it goes out without styles, then as text.

use serde_json::{Value, json};

use crate::render::{Block, parsed, parts_of, plain_text, readable_text, reread};
use vocative_contract::capability::LengthUnit;
use vocative_contract::card::{Card, CardMisfit};
use vocative_contract::error::Fallback;
use vocative_contract::handles::Renderer;
use vocative_contract::identity::Platform;
use vocative_contract::markup::neutral_text;
use vocative_contract::outbound::Part;
use vocative_contract::people::People;
use vocative_contract::split::split_text;
use vocative_contract::work::looked_at;

use super::markdown::{MARKDOWN_MAX_CHARS, SlackForm, WrittenMarks, harmless, is_person, markdown};
use super::table;
use super::text::unescaped;

/// The longest text of one post, in characters as they go over the wire.
///
/// Slack takes 40,000 and cuts longer ones silently, but recommends this; an update takes no more.
/// Source: `chat.postMessage`, `chat.update`.
pub const TEXT_MAX_CHARS: usize = 4_000;

/// What is posted for a text of which nothing can be shown.
const NOTHING_TO_SHOW: &str = "(nothing to show)";
/// Characters that may begin a mark in Slack's text.
const MARKS: [char; 4] = ['*', '_', '~', '`'];

/// Makes posts for Slack.
#[derive(Debug)]
pub(super) struct SlackRenderer;

impl Renderer for SlackRenderer {
    fn render(&self, text: &str, people: &People) -> Vec<Part> {
        render(text, people)
    }

    fn render_fallback(&self, part: &Part, fallback: Fallback) -> Vec<Part> {
        match (&part.file, fallback) {
            // A part that can't be sent as a file is sent as posts.
            (Some(file), Fallback::Plain | Fallback::Resplit) => {
                let (text, people) = file.instead();
                render(text, &people)
            }
            _ => render_fallback(part, fallback),
        }
    }

    fn render_card(&self, card: &Card) -> Result<Part, CardMisfit> {
        super::card::render_card(card)
    }
}

/// Renders a text into posts within the limits.
#[must_use]
pub fn render(text: &str, people: &People) -> Vec<Part> {
    render_within(text, people, MARKDOWN_MAX_CHARS)
}

fn render_within(text: &str, people: &People, max: usize) -> Vec<Part> {
    let blocks = parsed(text, people);
    let mut parts = Vec::new();
    if is_only_text(&blocks) {
        parts = text_parts(&plain_paragraphs(&blocks), max.min(TEXT_MAX_CHARS));
    } else {
        for blocks in parts_of(&SlackForm { max }, blocks) {
            push_part(&mut parts, &blocks, max);
        }
    }
    if parts.is_empty() && !text.trim().is_empty() {
        return vec![Part::plain(NOTHING_TO_SHOW)];
    }
    parts
}

/// Whether it is paragraphs of text in which Slack reads no mark.
fn is_only_text(blocks: &[Block]) -> bool {
    blocks.iter().all(|block| match block {
        Block::Paragraph(runs) => runs.iter().all(|run| {
            let is_bare = run.count_marks() == 0 && !run.is_code && run.mention.is_none();
            let starts_quote = run
                .text
                .split('\n')
                .any(|line| line.trim_start().starts_with('>'));
            is_bare && !starts_quote && !run.text.contains(MARKS) && harmless(&run.text) == run.text
        }),
        _ => false,
    })
}

fn plain_paragraphs(blocks: &[Block]) -> String {
    let paragraphs: Vec<String> = blocks.iter().map(|block| plain_text([block])).collect();
    paragraphs.join("\n\n")
}

/// Appends a part as blocks, or as text if Slack would not take it or not show it as it is meant. A part without words,
/// such as an empty list item, is left out.
fn push_part(parts: &mut Vec<Part>, blocks: &[Block], max: usize) {
    if plain_text(blocks).trim().is_empty() {
        return;
    }
    let words = readable_text(blocks);
    for marks in [WrittenMarks::All, WrittenMarks::NoStyles] {
        let posted = posted_blocks(blocks, marks);
        if markdown_chars(&posted) > max || posted.is_empty() {
            continue;
        }
        if posted.iter().all(reads_back)
            && squeezed(&shown(&posted)) == squeezed(&plain_shown(blocks))
        {
            parts.push(Part::rendered(
                beside(&words),
                None,
                Some(Value::Array(posted)),
            ));
            return;
        }
    }
    parts.extend(text_parts(&words, max.min(TEXT_MAX_CHARS)));
}

/// Markdown blocks, and the first table that Slack takes as a block of its own. Slack takes only one per post.
fn posted_blocks(blocks: &[Block], marks: WrittenMarks) -> Vec<Value> {
    let mut posted = Vec::new();
    let mut since = 0;
    let native = blocks
        .iter()
        .enumerate()
        .find_map(|(n, block)| match block {
            Block::Table(table) => Some((n, table::block(table)?)),
            _ => None,
        });
    if let Some((n, table)) = native {
        posted.extend(markdown_block(&blocks[..n], marks));
        posted.push(table);
        since = n + 1;
    }
    posted.extend(markdown_block(&blocks[since..], marks));
    posted
}

fn markdown_block(blocks: &[Block], marks: WrittenMarks) -> Option<Value> {
    let text = markdown(blocks, marks);
    (!text.trim().is_empty()).then(|| json!({"type": "markdown", "text": text}))
}

fn markdown_chars(posted: &[Value]) -> usize {
    let texts = posted.iter().filter_map(|block| block["text"].as_str());
    texts.map(|text| text.chars().count()).sum()
}

/// Whether a block shows something; an empty one is refused.
fn reads_back(block: &Value) -> bool {
    block["type"] != "markdown"
        || block["text"]
            .as_str()
            .is_some_and(|text| !text.trim().is_empty())
}

/// The words that posted blocks show.
fn shown(posted: &[Value]) -> String {
    let mut out = String::new();
    for block in posted {
        match block["text"].as_str() {
            Some(text) => out.push_str(&plain_text(&reread(text))),
            None => push_table_words(&mut out, block, "\n"),
        }
        out.push('\n');
    }
    out
}

fn push_table_words(out: &mut String, block: &Value, between: &str) {
    for row in block["rows"].as_array().into_iter().flatten() {
        for (n, cell) in row.as_array().into_iter().flatten().enumerate() {
            out.push_str(if n == 0 { "" } else { between });
            out.push_str(cell["text"].as_str().unwrap_or_default());
            let elements = cell["elements"][0]["elements"].as_array();
            push_element_words(out, elements.map_or(&[], Vec::as_slice));
        }
        out.push('\n');
    }
}

/// The words of a cell; an address stands behind its label.
fn push_element_words(out: &mut String, elements: &[Value]) {
    for (n, element) in elements.iter().enumerate() {
        if let Some(id) = element["user_id"].as_str() {
            out.push_str(&format!("<@{id}>"));
            continue;
        }
        let (text, url) = (element["text"].as_str(), element["url"].as_str());
        out.push_str(text.or(url).unwrap_or_default());
        let is_last = elements
            .get(n + 1)
            .is_none_or(|next| next["url"] != element["url"]);
        if let (Some(_), Some(url), true) = (text, url, is_last) {
            out.push_str(&format!(" ({url})"));
        }
    }
}

/// The words that blocks should show, mentions as they are posted.
fn plain_shown(blocks: &[Block]) -> String {
    let mut blocks = blocks.to_vec();
    for block in &mut blocks {
        block.each_run(&mut |run| {
            if let Some(id) = run.mention.as_deref().filter(|id| is_person(id)) {
                run.text = format!("<@{id}>");
            }
        });
    }
    plain_text(&blocks)
}

/// The letters of a text that people see: no white space, no joiners, no table rules.
fn squeezed(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_whitespace() && !matches!(c, '\u{2060}' | '|' | '-' | '\u{0}'))
        .collect()
}

/// What posted blocks say, to be posted without marks.
fn said(posted: &[Value]) -> String {
    let texts = posted.iter().map(|block| match block["text"].as_str() {
        Some(text) => readable_text(&reread(text)),
        None => {
            let mut words = String::new();
            push_table_words(&mut words, block, " | ");
            words
        }
    });
    let texts: Vec<String> = texts.map(|text| text.trim().to_owned()).collect();
    texts.join("\n\n")
}

/// The text beside blocks: their words as far as the limit goes.
fn beside(text: &str) -> String {
    let wire = text_parts(text, TEXT_MAX_CHARS - 1);
    let first = wire
        .first()
        .map(|part| part.text.clone())
        .unwrap_or_default();
    if wire.len() > 1 {
        format!("{first}…")
    } else {
        first
    }
}

/// Replaces a refused part by smaller or plainer ones.
#[must_use]
pub(super) fn render_fallback(part: &Part, fallback: Fallback) -> Vec<Part> {
    let words = || match part.blocks.as_ref().and_then(Value::as_array) {
        // The text beside the blocks was cut, so the words come from the blocks; otherwise the text is used, which has
        // people's names.
        Some(blocks) if part.text.ends_with('…') => said(blocks),
        _ => unescaped(&part.text),
    };
    match fallback {
        Fallback::Resplit => {
            let text = words();
            let half = escaped(&text)
                .chars()
                .count()
                .div_ceil(2)
                .min(TEXT_MAX_CHARS);
            let parts = text_parts(&text, half);
            if parts.is_empty() {
                vec![part.clone()]
            } else {
                parts
            }
        }
        Fallback::Plain if part.blocks.is_some() => {
            let parts = text_parts(&words(), TEXT_MAX_CHARS);
            if parts.is_empty() {
                vec![Part::plain(part.text.clone())]
            } else {
                parts
            }
        }
        Fallback::Plain => vec![Part::plain(part.text.clone())],
        Fallback::None | Fallback::WithoutThread | Fallback::WithoutReply | Fallback::NewPost => {
            vec![part.clone()]
        }
    }
}

/// Escapes what Slack reads as control characters.
pub(super) fn escaped(text: &str) -> String {
    Platform::Slack.as_text(text)
}

/// Parts of text alone, of at most `max` characters each after escaping, unless a single character is longer.
fn text_parts(text: &str, max: usize) -> Vec<Part> {
    let text = neutral_text(text);
    let mut parts = Vec::new();
    for piece in split_text(&text, max, LengthUnit::Chars) {
        push_within(&mut parts, &piece, max);
    }
    parts
}

/// Splits a piece smaller until it fits although escaping makes it longer. Each
/// step makes it shorter by what escaping adds, and by one character at least.
fn push_within(parts: &mut Vec<Part>, piece: &str, max: usize) {
    let wire = escaped(piece);
    let (piece_chars, wire_chars) = (piece.chars().count(), wire.chars().count());
    looked_at(piece.len() + wire.len());
    if wire_chars <= max || piece_chars <= 1 {
        parts.push(Part::plain(wire));
        return;
    }
    let smaller = (piece_chars * max / wire_chars).clamp(1, piece_chars - 1);
    for piece in split_text(piece, smaller, LengthUnit::Chars) {
        push_within(parts, &piece, max);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use vocative_sandbox::slack::check_blocks;

    use super::*;
    use crate::render::samples::{generated, pathological, seeds};
    use vocative_contract::people::Person;

    fn parts(text: &str) -> Vec<Part> {
        render(text, &People::nobody())
    }

    fn texts(text: &str) -> Vec<String> {
        parts(text).into_iter().map(|part| part.text).collect()
    }

    /// The blocks of a text's parts: Markdown as it is, others as JSON.
    fn posted(text: &str) -> String {
        let blocks = parts(text).into_iter().flat_map(|part| match part.blocks {
            Some(Value::Array(blocks)) => blocks,
            _ => vec![json!({"text": format!("TEXT {}", part.text)})],
        });
        let shown = blocks.map(|block| match block["text"].as_str() {
            Some(text) => text.to_owned(),
            None => sorted(&block),
        });
        shown.collect::<Vec<_>>().join("\n=====\n")
    }

    /// JSON with sorted keys, whatever map features other crates switch on.
    fn sorted(value: &Value) -> String {
        match value {
            Value::Object(fields) => {
                let fields: BTreeMap<_, _> = fields.iter().collect();
                let fields = fields
                    .iter()
                    .map(|(name, value)| format!("{name:?}:{}", sorted(value)));
                format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
            }
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(sorted).collect();
                format!("[{}]", items.join(","))
            }
            other => other.to_string(),
        }
    }

    /// Whether a text notifies nobody: no reference of Slack's stands in it.
    fn is_harmless(text: &str) -> bool {
        !["<!", "<@U", "<@W", "<#C", "@channel", "@here", "@everyone"]
            .iter()
            .any(|it| {
                text.match_indices(it).any(|(at, _)| {
                    let after = &text[at + it.len()..];
                    match *it {
                        "<!" => ["channel", "here", "everyone", "subteam"]
                            .iter()
                            .any(|it| after.starts_with(it)),
                        word if word.starts_with('@') => {
                            !after.starts_with(|c: char| c.is_alphanumeric())
                        }
                        _ => after
                            .starts_with(|c: char| c.is_ascii_digit() || c.is_ascii_uppercase()),
                    }
                })
            })
    }

    fn check(text: &str, max: usize) {
        for part in render_within(text, &People::nobody(), max) {
            assert!(part.text.chars().count() <= TEXT_MAX_CHARS, "{text}");
            assert!(!part.text.contains(['<', '>']), "{text}");
            let Some(blocks) = &part.blocks else {
                assert!(!part.text.trim().is_empty(), "{text}");
                continue;
            };
            assert_eq!(check_blocks(blocks), Ok(()), "{text}");
            for block in blocks.as_array().unwrap() {
                let text = block["text"].as_str().unwrap_or_default();
                assert!(text.chars().count() <= max && is_harmless(text), "{text}");
            }
        }
    }

    #[test]
    fn a_text_that_escaping_makes_a_little_too_long_is_split_at_once() {
        for text in [">".repeat(1_000), "<a ".repeat(3_333), "&".repeat(4_000)] {
            let (parts, looked_at) = vocative_contract::work::counted(|| parts(&text));
            assert!(looked_at < 100 * text.len() as u64, "{looked_at}");
            assert!(
                parts
                    .iter()
                    .all(|part| part.text.chars().count() <= TEXT_MAX_CHARS)
            );
        }
    }

    #[test]
    fn generated_texts_are_taken() {
        for seed in 0..seeds() {
            check(&generated(seed), MARKDOWN_MAX_CHARS);
        }
    }

    #[test]
    fn almost_all_generated_texts_keep_their_styles() {
        let (mut all, mut styled) = (0, 0);
        for seed in 0..500 {
            for part in parts(&generated(seed)) {
                all += 1;
                styled += usize::from(part.blocks.is_some());
            }
        }
        assert!(styled * 100 > all * 97, "{styled} of {all}");
    }

    #[test]
    fn pathological_texts_are_taken() {
        for (name, text) in pathological(1 << 14) {
            check(&text, MARKDOWN_MAX_CHARS);
            let size: usize = parts(&text)
                .iter()
                .map(|part| {
                    part.text.len() + part.blocks.as_ref().map_or(0, |it| it.to_string().len())
                })
                .sum();
            assert!(size <= 16 * text.len() + 100, "{name}: {size}");
        }
    }

    #[test]
    fn marks_become_markdown_and_tables_native_ones() {
        insta::assert_snapshot!(posted("# Title\n\n👍 **bold _both_** in*side* and `co``de`, [docs](https://e.org/a(b)) ~~gone~~ https://e.org/a_b"), @r###"
        # Title

        👍 **bold _both_** in*side* and ```co``de```, [docs](https://e.org/a%28b%29) ~~gone~~ <https://e.org/a_b>
        "###);
        insta::assert_snapshot!(posted("```rust\nlet x = 1;\n```\n> quoted **text**\n> > deeper\n\n- one\n  - two\n- [x] done\n1. first\n\n   more"), @r###"
        ```rust
        let x = 1;
        ```

        > quoted **text**
        >
        > > deeper

        - one
          - two
        - [x] done

        1. first

           more
        "###);
        insta::assert_snapshot!(posted("Before\n\n| a | **b** |\n|---|--:|\n| 1 | [x](https://e.org) |\n| | |\n\nAfter\n\n|c|\n|-|\n|2|"), @r###"
        Before
        =====
        {"column_settings":[{"align":"left","is_wrapped":true},{"align":"right","is_wrapped":true}],"rows":[[{"text":"a","type":"raw_text"},{"elements":[{"elements":[{"style":{"bold":true},"text":"b","type":"text"}],"type":"rich_text_section"}],"type":"rich_text"}],[{"text":"1","type":"raw_text"},{"elements":[{"elements":[{"text":"x","type":"link","url":"https://e.org"}],"type":"rich_text_section"}],"type":"rich_text"}],[{"text":" ","type":"raw_text"},{"text":" ","type":"raw_text"}]],"type":"table"}
        =====
        After

        ```
        c
        -
        2
        ```
        "###);
        insta::assert_snapshot!(posted("1\\. no item\n\\# no head *but* this & a < b, snake_case 2 * 3 \\*x\\* &amp;amp; :tada:"), @r###"
        1\. no item  
        \# no head _but_ this & a \< b, snake_case 2 * 3 \*x\* \&amp; :tada:
        "###);
    }

    /// A mark that does not count would be read back as text, and the whole part would lose its styles.
    #[test]
    fn marks_stand_where_any_reader_takes_them() {
        let table = [
            ("**Run `x` first**", "**Run** `x` **first**"),
            (
                "**see [x](https://e.org) now**",
                "**see [x](https://e.org) now**",
            ),
            ("~~old **bold** text~~", "~~old **bold** text~~"),
            ("_it **b** it_", "_it **b** it_"),
            ("<b> spaced </b>word", "**spaced** word"),
            ("**（斜）**字", "**（斜）\u{2060}**字"),
            ("字**（斜）**", "字**\u{2060}（斜）**"),
        ];
        for (text, expected) in table {
            assert_eq!(posted(text), expected, "{text}");
        }
    }

    #[test]
    fn a_model_cannot_mention_or_ping_anybody() {
        assert_eq!(
            texts("hi <!channel> <https://evil|bank> & a < b &amp;amp;lt;"),
            ["hi &lt;!channel&gt; https://evil|bank &amp; a &lt; b &amp;amp;lt;"]
        );
        insta::assert_snapshot!(posted("hi <!channel> <@U1> @channel `<!here>`\n\n```html\n<!DOCTYPE html> <!here|x>\n```").replace('\u{2060}', "{joiner}"), @r"
        hi \<{joiner}!channel> \<{joiner}@U1> @{joiner}channel `<{joiner}!here>`

        ```html
        <!DOCTYPE html> <{joiner}!here|x>
        ```
        ");
        assert_eq!(texts(" \n "), Vec::<String>::new());
        assert_eq!(texts("\u{FFF9}"), [NOTHING_TO_SHOW]);
    }

    #[test]
    fn only_known_people_are_mentioned() {
        let people = People::known([Person {
            name: "Ann".to_owned(),
            id: "U0ANN".to_owned(),
        }]);
        let part = render("hi @Ann and @Bob", &people).remove(0);
        assert_eq!(
            part.blocks,
            Some(json!([{"type": "markdown", "text": "hi <@U0ANN> and @Bob"}]))
        );
        assert_eq!(part.text, "hi @Ann and @Bob");
    }

    #[test]
    fn long_texts_are_split_after_escaping() {
        let parts = texts(&"<<<< ".repeat(2_000));
        assert!(
            parts
                .iter()
                .all(|part| part.chars().count() <= TEXT_MAX_CHARS)
        );
        assert_eq!(texts(&"word ".repeat(700)).len(), 1);
        assert_eq!(texts(&"word ".repeat(3_000)).len(), 4);
        assert_eq!(texts(&"**a** word ".repeat(1_500)).len(), 2);
    }

    /// Estimates of a piece's cost are too high; without filling the room they leave, a post could hold two pieces with
    /// a visible cut between them.
    #[test]
    fn a_post_holds_no_cut() {
        let all = "**Tell** more of it. ".repeat(900);
        let texts: Vec<String> = posted(all.trim_end())
            .split("\n=====\n")
            .map(str::to_owned)
            .collect();
        assert_eq!(texts.len(), 2);
        assert_eq!(texts.join(" "), all.trim_end());
        let line = "{\"a\": [\"<b>\", (1), {}], '*': `x`, \"c\": [[1], {2}], !}\n";
        let code = posted(&format!("```json\n{}```", line.repeat(400)));
        let posts: Vec<&str> = code.split("\n=====\n").collect();
        assert_eq!(posts.len(), 2);
        for post in posts {
            assert_eq!(post.matches("```").count(), 2, "{}", post.len());
        }
    }

    #[test]
    fn fallbacks_are_smaller_or_plainer() {
        let part = Part::plain("one two &lt;three&gt; four");
        let resplit = render_fallback(&part, Fallback::Resplit);
        assert!(resplit.len() > 1 && resplit.iter().all(|it| it.text.len() < part.text.len()));
        assert_eq!(render_fallback(&part, Fallback::WithoutThread), vec![part]);
        let escaped = Part::plain("&amp;&amp;");
        assert_eq!(
            render_fallback(&escaped, Fallback::Resplit),
            [Part::plain("&amp;"), Part::plain("&amp;")]
        );
        let tiny = Part::plain("x");
        assert_eq!(render_fallback(&tiny, Fallback::Resplit), vec![tiny]);
        let marked = parts("**one** <two>\n\n- three").remove(0);
        assert_eq!(
            render_fallback(&marked, Fallback::Plain),
            [Part::plain("one &lt;two&gt;\n\n• three")]
        );
        let table =
            "3. see [docs](https://e.org)\n\n| a | b |\n|---|---|\n| 1 | [x](https://e.org/x) |";
        let mut marked = parts(table).remove(0);
        let words = "3. see docs (https://e.org)\n\na | b\n--|--------------------\n1 | x (https://e.org/x)";
        assert_eq!(
            render_fallback(&marked, Fallback::Plain),
            [Part::plain(words)]
        );
        marked.text = "3. see…".to_owned();
        assert_eq!(
            render_fallback(&marked, Fallback::Plain),
            [Part::plain(
                "3. see docs (https://e.org)\n\na | b\n1 | x (https://e.org/x)"
            )]
        );
        let people = People::known([Person {
            name: "Ann".to_owned(),
            id: "U0ANN".to_owned(),
        }]);
        let named = render("**hi** @Ann", &people).remove(0);
        assert_eq!(
            render_fallback(&named, Fallback::Plain),
            [Part::plain("hi @Ann")]
        );
    }

    proptest! {
        #[test]
        fn any_text_is_taken(text in "(\\PC|[\n\t\r *_`~>|#<@!&👍-]){0,600}", max in 200_usize..1_000) {
            prop_assert_eq!(parts(&text).is_empty(), text.trim().is_empty());
            check(&text, max);
        }
    }
}
