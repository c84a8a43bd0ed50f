//! A tree as Telegram text with entities. Pure.
//!
//! The text is what the server keeps: control characters and tabs become spaces, carriage returns and
//! direction marks vanish (source: tdlib, `clean_input_string`). Entities nest: a link is outside of
//! styles, a quotation outside of all, nothing is inside code.

use serde_json::{Value, json};

use crate::render::{
    Block, Container, Item, PostCost, PostMeasure, StyledRun, Styles, Surroundings, aligned,
    has_own_address,
};
use vocative_contract::capability::LengthUnit;
use vocative_contract::work::looked_at;

/// The most entities that Telegram keeps of one message; it drops the rest silently.
pub(super) const ENTITIES_MAX: usize = 100;
/// An invisible character that breaks a mention, so that it notifies nobody.
pub(super) const JOINER: char = '\u{2060}';

/// How Telegram counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct TelegramForm {
    /// The longest text, in UTF-16 units.
    pub(super) max: usize,
}

impl PostMeasure for TelegramForm {
    fn room(&self) -> PostCost {
        PostCost {
            length: self.max,
            count: ENTITIES_MAX,
        }
    }

    fn block_cost(&self, block: &Block, place: &Surroundings, room: PostCost) -> PostCost {
        let mut out = LayoutWriter {
            units_max: room.length,
            prefix: " ".repeat(place.prefix_length),
            is_quoted: place.is_quoted,
            ..LayoutWriter::default()
        };
        out.push_block(block, place.is_listed);
        PostCost {
            length: out.units,
            count: out.entities.len(),
        }
    }

    fn run_cost(&self, run: &StyledRun, _place: &Surroundings) -> PostCost {
        // A username may be longer than the name that it replaces.
        PostCost {
            length: run.mention.as_ref().map_or(0, |id| id.len()),
            count: run.styles.count()
                + usize::from(run.is_code)
                + usize::from(run.link.is_some())
                + usize::from(run.mention.is_some()),
        }
    }

    fn char_length(&self, c: char, place: &Surroundings) -> usize {
        match c {
            '\n' => 1 + place.prefix_length,
            // The joiner that may follow.
            '@' | '/' | '#' => 2,
            c => c.len_utf16(),
        }
    }

    fn code_length(&self, c: char, _place: &Surroundings) -> usize {
        c.len_utf16()
    }

    fn prefix_length(&self, container: Container) -> usize {
        match container {
            Container::Quote => QUOTE_MARK.len(),
            // As wide as a number of five digits; most are shorter.
            Container::Item => 8,
        }
    }

    fn separator_length(&self, place: &Surroundings) -> usize {
        2 + 2 * place.prefix_length
    }
}

/// Before each line of a quotation within a quotation.
const QUOTE_MARK: &str = "> ";
/// The indent of each level of a list.
const INDENT: &str = "  ";
/// A horizontal rule.
const RULE: &str = "———";

/// An entity, in UTF-16 units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entity {
    offset: usize,
    length: usize,
    kind: EntityKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum EntityKind {
    Bold,
    Italic,
    Strike,
    Spoiler,
    Code,
    Pre(String),
    Quote,
    Link(String),
    Person(i64),
}

impl Entity {
    fn as_json(&self) -> Value {
        let kind = match &self.kind {
            EntityKind::Bold => "bold",
            EntityKind::Italic => "italic",
            EntityKind::Strike => "strikethrough",
            EntityKind::Spoiler => "spoiler",
            EntityKind::Code => "code",
            EntityKind::Pre(_) => "pre",
            EntityKind::Quote => "blockquote",
            EntityKind::Link(_) => "text_link",
            EntityKind::Person(_) => "text_mention",
        };
        let mut entity = json!({"type": kind, "offset": self.offset, "length": self.length});
        match &self.kind {
            EntityKind::Pre(language) if !language.is_empty() => {
                entity["language"] = json!(language);
            }
            EntityKind::Link(url) => entity["url"] = json!(url),
            // The server needs the id only.
            EntityKind::Person(id) => {
                entity["user"] = json!({"id": id, "is_bot": false, "first_name": ""});
            }
            _ => {}
        }
        entity
    }
}

/// A text with its entities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Laid {
    /// The text.
    pub(super) text: String,
    /// Outer before inner.
    pub(super) entities: Vec<Entity>,
}

impl Laid {
    /// The entities as the platform takes them; `None` without any.
    pub(super) fn entities_json(&self) -> Option<Value> {
        let list: Vec<Value> = self.entities.iter().map(Entity::as_json).collect();
        (!list.is_empty()).then_some(Value::Array(list))
    }
}

/// The blocks as a text, trimmed as the server trims.
pub(super) fn laid(blocks: &[Block]) -> Laid {
    let mut out = LayoutWriter {
        units_max: usize::MAX,
        ..LayoutWriter::default()
    };
    out.push_blocks(blocks.iter(), false);
    let LayoutWriter {
        mut text,
        mut entities,
        ..
    } = out;
    entities.sort_by_key(|entity| (entity.offset, std::cmp::Reverse(entity.length)));
    let blank = [' ', '\n'];
    text.truncate(text.trim_end_matches(blank).len());
    let first = entities.first().map_or(usize::MAX, |entity| entity.offset);
    // White space of these two kinds is one unit and one byte each.
    let cut = (text.len() - text.trim_start_matches(blank).len()).min(first);
    text.drain(..cut);
    let end = LengthUnit::Utf16.len(&text);
    for entity in &mut entities {
        entity.offset = (entity.offset - cut).min(end);
        entity.length = entity.length.min(end - entity.offset);
    }
    entities.retain(|entity| entity.length > 0);
    Laid { text, entities }
}

/// A character as the server keeps it; `None` if it drops it.
pub(super) fn kept(c: char) -> Option<char> {
    match c {
        '\n' => Some(c),
        '\r' | '\u{2028}'..='\u{202E}' => None,
        c if c.is_control() => Some(' '),
        c => Some(c),
    }
}

/// An entity that is open at a place in a paragraph.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EntityLayer<'a> {
    Link(&'a str),
    Bold,
    Italic,
    Strike,
    Spoiler,
}

/// The text under construction.
#[derive(Default)]
struct LayoutWriter {
    text: String,
    units: usize,
    entities: Vec<Entity>,
    /// Nothing is added once the text is longer.
    units_max: usize,
    /// What stands before each further line.
    prefix: String,
    is_quoted: bool,
    /// The last character, for what follows an `@`.
    before: Option<char>,
    /// The end of the text, if it ends with a sign that becomes tappable when a letter follows.
    sign_open_at: Option<usize>,
}

impl LayoutWriter {
    fn is_full(&self) -> bool {
        self.units > self.units_max
    }

    fn push(&mut self, c: char) {
        looked_at(1);
        self.text.push(c);
        self.units += c.len_utf16();
        self.before = Some(c);
    }

    /// Appends text, with the prefix of this place before each further line.
    fn push_str(&mut self, text: &str) {
        for c in text.chars().filter_map(kept) {
            if self.is_full() {
                return;
            }
            self.push(c);
            if c == '\n' {
                self.push_prefix();
            }
        }
    }

    fn push_prefix(&mut self) {
        let prefix = std::mem::take(&mut self.prefix);
        prefix.chars().for_each(|c| self.push(c));
        self.prefix = prefix;
    }

    /// Appends text in which nobody is mentioned and nothing can be tapped: a joiner stands between `@`, `/` or `#` and
    /// what the server would take for a name, a command or a tag.
    fn push_words(&mut self, text: &str) {
        let mut rest = text;
        let mut has_open_sign = false;
        while let Some(at) = rest.find(SIGNS) {
            self.push_str(&rest[..at]);
            let before = self.before;
            let sign = &rest[at..=at];
            self.push_str(sign);
            rest = &rest[at + 1..];
            if self.is_full() {
                return;
            }
            match tap(before, sign, rest) {
                Tap::Is => self.push(JOINER),
                Tap::MayBecome => has_open_sign = true,
                Tap::None => has_open_sign = false,
            }
        }
        self.push_str(rest);
        self.sign_open_at = has_open_sign.then_some(self.units);
    }

    /// Adds an entity from `offset` to here.
    fn close(&mut self, kind: EntityKind, offset: usize) {
        if self.units > offset {
            self.entities.push(Entity {
                offset,
                length: self.units - offset,
                kind,
            });
        }
    }

    fn push_blocks<'a>(&mut self, blocks: impl Iterator<Item = &'a Block>, is_listed: bool) {
        let start = self.units;
        for block in blocks {
            if self.is_full() {
                return;
            }
            if self.units > start {
                let between = if is_listed { "\n" } else { "\n\n" };
                self.break_before(block, between);
            }
            self.push_block(block, is_listed);
        }
    }

    /// Ends the line. A block that is shown as a box begins at the very start of the next line, since anything before
    /// it would become a line of its own.
    fn break_before(&mut self, block: &Block, between: &str) {
        if is_box(block, self.is_quoted) {
            let prefix = std::mem::take(&mut self.prefix);
            self.push_str(between);
            self.prefix = prefix;
        } else {
            self.push_str(between);
        }
    }

    fn push_block(&mut self, block: &Block, is_listed: bool) {
        match block {
            Block::Paragraph(runs) => self.push_runs(runs, Styles::default()),
            Block::Heading { content, .. } => {
                let bold = Styles {
                    bold: true,
                    ..Styles::default()
                };
                self.push_runs(content, bold);
            }
            Block::Code { language, text } => self.push_pre(text, language),
            Block::Table(table) => {
                let room = self.units_max.saturating_sub(self.units);
                match aligned(table, room) {
                    Some(text) => self.push_pre(&text, ""),
                    None => self.units = self.units_max.saturating_add(1),
                }
            }
            Block::Quote(blocks) if self.is_quoted => {
                let outer = self.prefix.len();
                self.push_str(QUOTE_MARK);
                self.prefix.push_str(QUOTE_MARK);
                self.push_blocks(blocks.iter(), is_listed);
                self.prefix.truncate(outer);
            }
            Block::Quote(blocks) => {
                let offset = self.units;
                let outer = std::mem::take(&mut self.prefix);
                self.is_quoted = true;
                self.push_blocks(blocks.iter(), false);
                self.is_quoted = false;
                self.prefix = outer;
                self.close(EntityKind::Quote, offset);
            }
            Block::List { start, items } => self.push_list(*start, items.iter()),
            Block::Rule => self.push_str(RULE),
        }
    }

    fn push_list<'a>(&mut self, start: Option<u64>, items: impl Iterator<Item = &'a Item>) {
        for (n, item) in items.enumerate() {
            if self.is_full() {
                return;
            }
            if n > 0 {
                self.push_str("\n");
            }
            if let Some(start) = start {
                self.push_str(&format!("{}. ", start.saturating_add(n as u64)));
            }
            match item.task {
                Some(true) => self.push_str("☑ "),
                Some(false) => self.push_str("☐ "),
                None if start.is_none() => self.push_str("• "),
                None => {}
            }
            let outer = self.prefix.len();
            self.prefix.push_str(INDENT);
            if let Some(first) = item.blocks.front()
                && (matches!(first, Block::List { .. }) || is_box(first, self.is_quoted))
            {
                self.break_before(first, "\n");
            }
            self.push_blocks(item.blocks.iter(), true);
            self.prefix.truncate(outer);
        }
    }

    /// Appends preformatted text. Its lines are not indented, because people copy them.
    fn push_pre(&mut self, text: &str, language: &str) {
        let prefix = std::mem::take(&mut self.prefix);
        let offset = self.units;
        self.push_str(text);
        self.close(EntityKind::Pre(language.to_owned()), offset);
        self.prefix = prefix;
    }

    fn push_runs(&mut self, runs: &[StyledRun], all: Styles) {
        let mut open: Vec<(EntityLayer<'_>, usize)> = Vec::new();
        for run in runs {
            if self.is_full() {
                break;
            }
            let layers = layers(run, all);
            let same = open
                .iter()
                .zip(&layers)
                .take_while(|((layer, _), wanted)| layer == *wanted)
                .count();
            self.close_layers(&mut open, same);
            let from = self.units;
            open.extend(layers[same..].iter().map(|layer| (*layer, from)));
            self.push_run(run);
        }
        self.close_layers(&mut open, 0);
    }

    fn close_layers(&mut self, open: &mut Vec<(EntityLayer<'_>, usize)>, keep: usize) {
        while open.len() > keep
            && let Some((layer, offset)) = open.pop()
        {
            let kind = match layer {
                EntityLayer::Link(url) => EntityKind::Link(url.to_owned()),
                EntityLayer::Bold => EntityKind::Bold,
                EntityLayer::Italic => EntityKind::Italic,
                EntityLayer::Strike => EntityKind::Strike,
                EntityLayer::Spoiler => EntityKind::Spoiler,
            };
            self.close(kind, offset);
        }
    }

    fn push_run(&mut self, run: &StyledRun) {
        let is_behind_sign = self.sign_open_at.take() == Some(self.units);
        if is_behind_sign && run.text.chars().find_map(kept).is_some_and(is_word) {
            self.push(JOINER);
        }
        let offset = self.units;
        if run.is_code {
            // Nothing may be inside code, and code may not be inside a link.
            self.push_str(&run.text);
            if run.link.is_none() && !run.text.trim().is_empty() {
                self.close(EntityKind::Code, offset);
            }
        } else if let Some(id) = &run.mention {
            match id.parse() {
                Ok(id) => {
                    self.push_str(&run.text);
                    self.close(EntityKind::Person(id), offset);
                }
                // A username: the server finds it by itself.
                Err(_) if id.starts_with('@') => self.push_str(id),
                Err(_) => self.push_words(&run.text),
            }
        } else if run.link.is_some() {
            self.push_str(&run.text);
        } else {
            self.push_words(&run.text);
        }
    }
}

/// Signs that make the word behind them a name, a command or a tag.
const SIGNS: [char; 3] = ['@', '/', '#'];

/// Whether the server makes the text behind a sign tappable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tap {
    Is,
    /// It does if a letter follows the text.
    MayBecome,
    None,
}

/// Whether the server would make the text behind a sign tappable, given the texts around it. Source: tdlib,
/// `match_mentions`, `match_bot_commands`, `match_hashtags`. A path (`/etc/hosts`) is no command, and a number (`#12`)
/// no tag.
fn tap(before: Option<char>, sign: &str, after: &str) -> Tap {
    let is_path = |c: char| matches!(c, '/' | '<' | '>');
    if before.is_some_and(|c| is_word(c) || (sign == "/" && is_path(c))) {
        return Tap::None;
    }
    let mut shown = after.chars().filter_map(kept).take(NAME_LOOKED_AT_MAX);
    let is_of_name = |c: char| match sign {
        "#" => is_word(c),
        _ => c.is_ascii_alphanumeric() || c == '_',
    };
    let (mut length, mut has_letter) = (0, false);
    let next = loop {
        match shown.next() {
            Some(c) if is_of_name(c) => {
                length += 1;
                has_letter |= sign != "#" || c.is_alphabetic() || !c.is_numeric();
            }
            next => break next,
        }
    };
    looked_at(length);
    match next {
        Some(c) if sign == "/" && is_path(c) => Tap::None,
        _ if has_letter => Tap::Is,
        None => Tap::MayBecome,
        Some(_) => Tap::None,
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// How many characters behind a sign are looked at. The longest name is a tag of 256.
const NAME_LOOKED_AT_MAX: usize = 257;

/// Whether a block is shown as a box: preformatted text, and a quotation that is in no other.
fn is_box(block: &Block, is_quoted: bool) -> bool {
    match block {
        Block::Code { .. } | Block::Table(_) => true,
        Block::Quote(_) => !is_quoted,
        _ => false,
    }
}

/// The layers of a run, outermost first.
fn layers(run: &StyledRun, all: Styles) -> Vec<EntityLayer<'_>> {
    let styles = run.shown_styles();
    let is_bare = run.is_code || run.text.trim().is_empty();
    // The server finds a bare address by itself, and a name in it where it does not.
    let is_found = has_own_address(run) && !run.text.contains('@');
    let link = run.link.as_deref().filter(|_| !is_found);
    let mut layers: Vec<EntityLayer<'_>> = link.map(EntityLayer::Link).into_iter().collect();
    if run.mention.is_some() {
        return Vec::new();
    }
    let wanted = [
        (styles.bold || (all.bold && !is_bare), EntityLayer::Bold),
        (styles.italic, EntityLayer::Italic),
        (styles.strike, EntityLayer::Strike),
        (styles.spoiler, EntityLayer::Spoiler),
    ];
    layers.extend(
        wanted
            .into_iter()
            .filter(|(is_on, _)| *is_on)
            .map(|(_, layer)| layer),
    );
    layers
}
