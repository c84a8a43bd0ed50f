//! Renders an answer into posts: text with entities. Pure; never fails.
//!
//! The text is normalised here as the server would do it, so that what is stored is what people see. A
//! part that would not be taken, whatever the reason, goes out as plain text.

use serde_json::{Value, json};

use crate::render::{Block, StyledRun, parsed, parts_of, readable_text};
use vocative_contract::capability::LengthUnit;
use vocative_contract::card::{Card, CardMisfit};
use vocative_contract::error::Fallback;
use vocative_contract::handles::Renderer;
use vocative_contract::outbound::Part;
use vocative_contract::people::People;
use vocative_contract::split::split_text;

use super::layout::{ENTITIES_MAX, Laid, TelegramForm, laid};

/// The longest text of one post, in UTF-16 units.
///
/// Telegram takes 4,096 characters; the margin covers what counts differently on their side.
pub const TEXT_MAX_UTF16: usize = 4_000;

/// Posted in place of a text of which the server would keep nothing visible.
const NOTHING_VISIBLE: &str = "…";

/// Makes posts for Telegram.
#[derive(Debug)]
pub(super) struct TelegramRenderer;

impl Renderer for TelegramRenderer {
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

/// Renders a text into parts.
#[must_use]
pub fn render(text: &str, people: &People) -> Vec<Part> {
    render_within(text, people, TEXT_MAX_UTF16)
}

fn render_within(text: &str, people: &People, max: usize) -> Vec<Part> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    let form = TelegramForm { max };
    let mut parts = Vec::new();
    for blocks in with_fewest_posts(&form, &parsed(text, people)) {
        let laid = laid(&blocks);
        if !has_visible(&laid.text) {
            continue;
        }
        if LengthUnit::Utf16.len(&laid.text) <= max && laid.entities.len() <= ENTITIES_MAX {
            parts.push(part(&laid));
        } else {
            parts.extend(plain_parts(&readable_text(&blocks), max));
        }
    }
    if parts.is_empty() {
        parts.push(Part::plain(NOTHING_VISIBLE));
    }
    parts
}

/// The parts of an answer. An answer with so many entities that it would take more posts for them than for its length
/// loses styles first: those of emphasis, then bold, then code. Links, mentions and blocks stay.
fn with_fewest_posts(form: &TelegramForm, blocks: &[Block]) -> Vec<Vec<Block>> {
    let mut best = parts_of(form, blocks.to_vec());
    if !best
        .iter()
        .any(|part| laid(part).entities.len() > ENTITIES_DENSE)
    {
        return best;
    }
    let fewest = parts_of(form, thinned(blocks, THINNEST)).len();
    for level in 1..=THINNEST {
        if best.len() <= fewest {
            break;
        }
        let parts = parts_of(form, thinned(blocks, level));
        if parts.len() < best.len() {
            best = parts;
        }
    }
    best
}

/// A part with more entities than this may have been split because of them.
const ENTITIES_DENSE: usize = ENTITIES_MAX / 2;
/// The last level of [`thinned`].
const THINNEST: u8 = 3;

/// The blocks with fewer styles, the fewer the higher the level.
fn thinned(blocks: &[Block], level: u8) -> Vec<Block> {
    let mut blocks = blocks.to_vec();
    for block in &mut blocks {
        block.each_run(&mut |run| {
            run.styles.italic = false;
            run.styles.strike = false;
            run.styles.bold &= level < 2;
            run.is_code &= level < THINNEST;
        });
    }
    blocks
}

fn part(laid: &Laid) -> Part {
    let entities = laid.entities_json();
    Part::rendered(laid.text.clone(), entities, None)
}

/// Parts without formatting.
fn plain_parts(text: &str, max: usize) -> Vec<Part> {
    let text = laid(&[Block::Paragraph(vec![StyledRun::plain(text)])]).text;
    let pieces = split(&text, max);
    pieces.into_iter().map(Part::plain).collect()
}

/// Replaces a refused part. An empty result means that nothing else can be tried.
pub(super) fn render_fallback(part: &Part, fallback: Fallback) -> Vec<Part> {
    match fallback {
        Fallback::None => Vec::new(),
        Fallback::Plain => {
            let parts = split(&addressed(part), TEXT_MAX_UTF16);
            if parts.is_empty() {
                vec![Part::plain(part.text.clone())]
            } else {
                parts.into_iter().map(Part::plain).collect()
            }
        }
        Fallback::Resplit => {
            let half = LengthUnit::Utf16.len(&part.text) / 2;
            if half < 2 {
                Vec::new()
            } else {
                halves(part, half)
            }
        }
        Fallback::WithoutThread | Fallback::WithoutReply | Fallback::NewPost => vec![part.clone()],
    }
}

fn entities(part: &Part) -> &[Value] {
    let entities = part.entities.as_ref().and_then(Value::as_array);
    entities.map_or(&[], Vec::as_slice)
}

/// The text of a part with the addresses of its links behind their labels.
fn addressed(part: &Part) -> String {
    let links = entities(part).iter().filter_map(|entity| {
        let end = entity["offset"]
            .as_u64()?
            .checked_add(entity["length"].as_u64()?)?;
        Some((usize::try_from(end).ok()?, entity["url"].as_str()?))
    });
    let mut links: Vec<(usize, &str)> = links.collect();
    links.sort_unstable();
    let mut links = links.into_iter().peekable();
    let mut out = String::with_capacity(part.text.len());
    let mut units = 0;
    for c in part.text.chars() {
        while let Some((_, url)) = links.next_if(|(end, _)| *end <= units) {
            out.push_str(&format!(" ({url})"));
        }
        out.push(c);
        units += c.len_utf16();
    }
    links.for_each(|(_, url)| out.push_str(&format!(" ({url})")));
    out
}

/// Smaller parts, each with its share of the entities.
fn halves(part: &Part, max: usize) -> Vec<Part> {
    let entities = entities(part);
    let mut done = 0;
    let mut parts = Vec::new();
    for piece in split(&part.text, max) {
        let at = part.text[done..].find(&piece).unwrap_or(0) + done;
        let start = LengthUnit::Utf16.len(&part.text[..at]);
        let end = start + LengthUnit::Utf16.len(&piece);
        done = at + piece.len();
        let own: Vec<Value> = entities
            .iter()
            .filter_map(|entity| within(entity, start, end))
            .collect();
        let own = (!own.is_empty()).then_some(Value::Array(own));
        parts.push(Part::rendered(piece, own, None));
    }
    parts
}

/// The part of an entity between two offsets, relative to the first.
fn within(entity: &Value, start: usize, end: usize) -> Option<Value> {
    let number = |name: &str| usize::try_from(entity[name].as_u64()?).ok();
    let offset = number("offset")?;
    let until = offset.saturating_add(number("length")?).min(end);
    let from = offset.max(start);
    (from < until).then(|| {
        let mut own = entity.clone();
        own["offset"] = json!(from - start);
        own["length"] = json!(until - from);
        own
    })
}

fn split(text: &str, max: usize) -> Vec<String> {
    split_text(text, max, LengthUnit::Utf16)
        .into_iter()
        .map(|piece| piece.trim_matches([' ', '\n']).to_owned())
        .filter(|piece| has_visible(piece))
        .collect()
}

/// Whether people see any character of a text.
fn has_visible(text: &str) -> bool {
    text.chars().any(is_visible)
}

/// Whether people see a character: no white space, no mark that only directs how others look.
pub(super) fn is_visible(c: char) -> bool {
    !c.is_whitespace()
        && !c.is_control()
        && !matches!(c,
            '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
            | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}' | '\u{2800}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}'
            | '\u{FEFF}' | '\u{FFA0}' | '\u{E0000}'..='\u{E0FFF}')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;
    use vocative_sandbox::telegram::stored_text;

    use super::super::layout::kept;
    use super::*;
    use crate::render::samples::{generated, pathological, seeds};
    use vocative_contract::markup::mention_token;
    use vocative_contract::people::Person;

    fn parts(text: &str) -> Vec<Part> {
        render(text, &People::nobody())
    }

    fn texts(text: &str) -> Vec<String> {
        parts(text).into_iter().map(|part| part.text).collect()
    }

    /// The styles, code, links and quotations that apply to each unit of a text; without `url` and others that the
    /// server finds by itself.
    fn coverage(text: &str, entities: &Value) -> Vec<Vec<String>> {
        let mut units = vec![Vec::new(); LengthUnit::Utf16.len(text)];
        for entity in entities.as_array().into_iter().flatten() {
            let kind = entity["type"].as_str().unwrap();
            if [
                "url",
                "mention",
                "hashtag",
                "cashtag",
                "bot_command",
                "email",
            ]
            .contains(&kind)
            {
                continue;
            }
            let at = |name: &str| usize::try_from(entity[name].as_u64().unwrap()).unwrap();
            let url = entity["url"]
                .as_str()
                .unwrap_or_default()
                .trim_end_matches('/')
                .to_ascii_lowercase();
            for unit in &mut units[at("offset")..at("offset") + at("length")] {
                unit.push(format!("{kind} {url}"));
                unit.sort();
            }
        }
        units
    }

    /// Whether entities nest and none is inside code or a quotation in a quotation.
    fn nests(entities: &[Value]) -> bool {
        let range = |entity: &Value| {
            let at = |name: &str| entity[name].as_u64().unwrap();
            (
                at("offset"),
                at("offset") + at("length"),
                entity["type"].as_str().unwrap().to_owned(),
            )
        };
        let ranges: Vec<_> = entities.iter().map(range).collect();
        ranges.iter().enumerate().all(|(n, (from, to, kind))| {
            ranges[n + 1..].iter().all(|(start, end, inner)| {
                let is_apart = start >= to || end <= from;
                let is_around = start <= from && end >= to;
                let is_inside = start >= from && end <= to;
                let is_code = |kind: &str| kind == "code" || kind == "pre";
                let is_same = kind == inner
                    || (is_code(kind) && inner != "blockquote")
                    || (is_code(inner) && kind != "blockquote");
                is_apart || ((is_around || is_inside) && !is_same)
            })
        })
    }

    fn check(text: &str, max: usize) {
        for part in render_within(text, &People::nobody(), max) {
            assert!(LengthUnit::Utf16.len(&part.text) <= max, "{text}");
            assert!(has_visible(&part.text), "{text}");
            let none = Vec::new();
            let entities = part
                .entities
                .as_ref()
                .and_then(Value::as_array)
                .unwrap_or(&none);
            assert!(
                entities.len() <= ENTITIES_MAX && nests(entities),
                "{entities:?} of {text}"
            );
            let (stored, found) = stored_text(&part.text, part.entities.as_ref()).unwrap();
            assert_eq!(stored, part.text, "{text}");
            let sent = part.entities.clone().unwrap_or_default();
            assert_eq!(
                coverage(&stored, &found),
                coverage(&part.text, &sent),
                "{text}"
            );
            let is_tappable = |entity: &&Value| {
                matches!(
                    entity["type"].as_str(),
                    Some("mention" | "bot_command" | "hashtag")
                )
            };
            let tappable = found.as_array().unwrap().iter().filter(is_tappable).count();
            assert_eq!(tappable, 0, "{text}");
        }
    }

    #[test]
    fn generated_texts_are_taken_as_they_are() {
        for seed in 0..seeds() {
            check(&generated(seed), TEXT_MAX_UTF16);
        }
    }

    #[test]
    fn pathological_texts_are_taken_as_they_are() {
        for (name, text) in pathological(1 << 14) {
            check(&text, TEXT_MAX_UTF16);
            let size: usize = parts(&text).iter().map(|part| part.text.len()).sum();
            assert!(size <= 4 * text.len() + 100, "{name}: {size}");
        }
    }

    #[test]
    fn formatting_becomes_entities() {
        let shown = |text: &str| {
            let part = parts(text).remove(0);
            let entities = part.entities.unwrap_or_default();
            let list: Vec<String> = entities
                .as_array()
                .into_iter()
                .flatten()
                .map(|it| {
                    let more = it["url"]
                        .as_str()
                        .or(it["language"].as_str())
                        .unwrap_or_default();
                    format!(
                        "{} {}+{} {more}",
                        it["type"].as_str().unwrap(),
                        it["offset"],
                        it["length"]
                    )
                })
                .collect();
            format!("{}\n[{}]", part.text, list.join("; "))
        };
        insta::assert_snapshot!(shown("# Title\n\n👍 **bold _both_** and `code`, [docs](https://e.org) ~~gone~~"), @r###"
        Title

        👍 bold both and code, docs gone
        [bold 0+5 ; bold 10+9 ; italic 15+4 ; code 24+4 ; text_link 30+4 https://e.org; strikethrough 35+4 ]
        "###);
        insta::assert_snapshot!(shown("```rust\nlet x = 1;\n```\n> quoted **text**\n> > deeper\n\n- one\n  - two\n- [x] done\n1. first\n\n   more"), @r###"
        let x = 1;

        quoted text

        > deeper

        • one
          • two
        ☑ done

        1. first
          more
        [pre 0+10 rust; blockquote 12+21 ; bold 19+4 ]
        "###);
        insta::assert_snapshot!(shown("| a | b |\n|---|--:|\n| 1 | 2 |\n\n[bank.org](https://e.org) [m](mailto:a@b.org) ![pic](https://e.org/x.png)"), @r###"
        a | b
        --|--
        1 | 2

        bank.org (https://e.org) m (a@b.org) pic
        [pre 0+17 ; text_link 56+3 https://e.org/x.png]
        "###);
    }

    #[test]
    fn only_known_people_are_mentioned() {
        let people = People::known([
            Person {
                name: "Ann Lee".to_owned(),
                id: "42".to_owned(),
            },
            Person {
                name: "Bob".to_owned(),
                id: "@bob_b".to_owned(),
            },
        ]);
        let part = render("hi @Ann Lee, @Bob, @carla_c", &people).remove(0);
        assert_eq!(part.text, "hi @Ann Lee, @bob_b, @\u{2060}carla_c");
        let user = json!({"id": 42, "is_bot": false, "first_name": ""});
        assert_eq!(
            part.entities,
            Some(json!([{"type": "text_mention", "offset": 3, "length": 8, "user": user}]))
        );
        assert_eq!(
            texts(&format!("hi {}", mention_token("@bob_b"))),
            ["hi @\u{2060}bob_b"]
        );
    }

    #[test]
    fn commands_and_tags_of_a_model_can_not_be_tapped() {
        let table = [
            (
                "say /forget@bot or /new",
                "say /\u{2060}forget@bot or /\u{2060}new",
            ),
            ("/stop", "/\u{2060}stop"),
            ("**/stop**, (/stop)", "/\u{2060}stop, (/\u{2060}stop)"),
            ("#deploy and #naïve", "#\u{2060}deploy and #\u{2060}naïve"),
            (
                "/etc/hosts, a/b, 1/2, //x, C#, #12, # x",
                "/etc/hosts, a/b, 1/2, //x, C#, #12, # x",
            ),
            (
                "see #**deploy** and #1**a**",
                "see #\u{2060}deploy and #1\u{2060}a",
            ),
            ("`/stop` https://e.org/#a", "/stop https://e.org/#a"),
        ];
        for (text, expected) in table {
            assert_eq!(texts(text), [expected], "{text}");
        }
    }

    #[test]
    fn short_text_is_one_trimmed_part() {
        assert_eq!(texts("\n hello\tworld\r\n\n"), ["hello world"]);
        assert_eq!(texts(" \n "), Vec::<String>::new());
        assert_eq!(texts("\u{202A}\u{202C}"), ["…"]);
        assert_eq!(
            texts("2 * 3 snake_case <c> & d"),
            ["2 * 3 snake_case <c> & d"]
        );
        assert_eq!(texts("#"), ["#"]);
    }

    #[test]
    fn long_text_is_cut_by_utf16_units() {
        let parts = texts(&"👍".repeat(2_001));
        let lengths: Vec<usize> = parts
            .iter()
            .map(|part| LengthUnit::Utf16.len(part))
            .collect();
        assert_eq!(lengths, [4_000, 2]);
    }

    #[test]
    fn a_post_holds_no_cut() {
        let all = "**Tell** @more of [it](https://e.org). ".repeat(300);
        let texts = texts(all.trim_end());
        let expected = "Tell @\u{2060}more of it. ".repeat(300);
        assert_eq!(texts.join(" "), expected.trim_end());
        assert!(texts.iter().all(|text| !text.contains('\n')));
    }

    #[test]
    fn an_answer_dense_in_entities_gives_up_styles_before_it_takes_more_posts() {
        let shown = |text: &str| -> Vec<(usize, String)> {
            let entities = |part: &Part| {
                part.entities
                    .as_ref()
                    .map_or(0, |it| it.as_array().unwrap().len())
            };
            let parts = parts(text).into_iter();
            parts.map(|part| (entities(&part), part.text)).collect()
        };
        // Emphasis goes first, and where that is enough, bold and code stay.
        let text = "*a* **b** `c` ".repeat(45);
        assert_eq!(
            shown(&text),
            [(90, "a b c ".repeat(45).trim_end().to_owned())]
        );
        let text = "**b** `c` ".repeat(90);
        assert_eq!(
            shown(&text),
            [(90, "b c ".repeat(90).trim_end().to_owned())]
        );
        let text = "`a` ".repeat(150);
        assert_eq!(shown(&text), [(0, "a ".repeat(150).trim_end().to_owned())]);
        // Links are not styles, so they stay.
        let text = "[a](https://e.org/x) ".repeat(150);
        let counts: Vec<usize> = shown(&text).into_iter().map(|(count, _)| count).collect();
        assert_eq!((counts.len(), counts.iter().sum::<usize>()), (2, 150));
        // A long answer takes only the posts that its length needs, and keeps all styles.
        let text = format!("{} ", "word ".repeat(20) + "**b**").repeat(100);
        let all: usize = shown(&text).into_iter().map(|(count, _)| count).sum();
        assert_eq!(all, 100);
    }

    #[test]
    fn boxes_in_a_list_begin_at_a_line_of_their_own() {
        let text = "8. eight\n   ```sh\n   ls\n   pwd\n   ```\n   after\n   > said\n   > so\n- ```\n  x\n  ```";
        let part = parts(text).remove(0);
        assert_eq!(part.text, "8. eight\nls\npwd\n  after\nsaid\nso\n\n• \nx");
        for entity in part.entities.unwrap().as_array().unwrap() {
            let units: Vec<u16> = part.text.encode_utf16().collect();
            let start = usize::try_from(entity["offset"].as_u64().unwrap()).unwrap();
            assert_eq!(units[start - 1], u16::from(b'\n'), "{entity}");
        }
    }

    #[test]
    fn a_plain_part_tells_the_addresses_that_its_links_led_to() {
        let part =
            parts("👍 see [the docs](https://e.org/a) and [**b**](https://e.org/b)").remove(0);
        assert_eq!(
            render_fallback(&part, Fallback::Plain),
            [Part::plain(
                "👍 see the docs (https://e.org/a) and b (https://e.org/b)"
            )]
        );
        let table = "|a|\n|-|\n|[docs](https://e.org/a)|\n";
        assert_eq!(
            texts(table),
            ["a\n----------------------\ndocs (https://e.org/a)"]
        );
    }

    #[test]
    fn fallbacks_are_smaller_or_plainer() {
        let bold = |text: &str, offset: usize, length: usize| {
            Part::rendered(
                text,
                Some(json!([{"type": "bold", "offset": offset, "length": length}])),
                None,
            )
        };
        let part = bold("one two", 2, 4);
        assert_eq!(
            render_fallback(&part, Fallback::Plain),
            [Part::plain("one two")]
        );
        assert_eq!(
            render_fallback(&part, Fallback::Resplit),
            [bold("one", 2, 1), bold("two", 0, 2)]
        );
        assert_eq!(
            render_fallback(&part, Fallback::WithoutReply),
            std::slice::from_ref(&part)
        );
        assert_eq!(render_fallback(&part, Fallback::None), []);
        assert_eq!(render_fallback(&Part::plain("x"), Fallback::Resplit), []);
    }

    proptest! {
        #[test]
        fn any_text_is_taken_as_it_is(text in "(\\PC|[\n\t\r *_`~>|#<@👍-]){0,600}", max in 200_usize..1_000) {
            prop_assert_eq!(parts(&text).is_empty(), text.trim().is_empty());
            check(&text, max);
            prop_assert!(parts(&text).iter().all(|part| part.text.chars().all(|c| kept(c) == Some(c))));
        }
    }
}
