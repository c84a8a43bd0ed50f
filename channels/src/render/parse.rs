//! CommonMark with tables, task lists and strike-through, as a tree. The only parse there is.
//!
//! HTML becomes what people mean by it in Markdown, or is shown as it was written ([`super::html`]). Containers nest to
//! [`DEPTH_MAX`]; what lies deeper stands in the deepest one. A text that would cost the parser more than its length is
//! not parsed but shown as it was written.

use std::collections::VecDeque;
use std::rc::Rc;

use pulldown_cmark::{
    Alignment, BlockQuoteKind, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd,
};

use vocative_contract::markup::neutral_text;
use vocative_contract::people::People;
use vocative_contract::work::looked_at;

use super::html::{Meant, SPOILER, SPOILER_END};
use super::link::{is_honest, push_linked};
use super::source::{COVER, is_cover, prepared, without_seams};
use super::tree::{Align, Block, Item, StyledRun, Styles, Table, plain_text, push_run};

/// How many quotes, lists and items contain each other at most.
const DEPTH_MAX: usize = 12;
/// A line that opens more containers makes the parser look at all of them for every line to come.
const OPENED_MAX: usize = 64;
/// Cells beyond this many columns are joined to the last column.
const COLUMNS_MAX: usize = 50;
/// A table of more columns is shown as a list: Slack takes no more, and no screen shows them side by side.
const TABLE_COLUMNS_MAX: usize = 20;
/// How much of a column's head stands before each of its cells in such a list, in characters.
const LISTED_HEAD_MAX_CHARS: usize = 40;
/// A longer language name of a code block is ignored.
const LANGUAGE_MAX_CHARS: usize = 32;

/// The extensions to CommonMark that are read.
pub(super) const OPTIONS: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_FOOTNOTES)
    .union(Options::ENABLE_GFM)
    .union(Options::ENABLE_TASKLISTS);

/// The tree of a text that a person or a model wrote. A text that consists of marks only, like `#` or `---`, is shown
/// as it was written.
pub(crate) fn parsed(text: &str, people: &People) -> Vec<Block> {
    let text = neutral_text(text);
    let blocks = tree(&prepared(&text), people);
    if plain_text(&blocks).trim().is_empty() {
        return as_written(&text);
    }
    blocks
}

/// The tree of a text that a renderer wrote, read literally. It may hold no words.
pub(crate) fn reread(text: &str) -> Vec<Block> {
    tree(&neutral_text(text), &People::nobody())
}

fn tree(text: &str, people: &People) -> Vec<Block> {
    if !is_parsable(text) {
        return as_written(&without_seams(text));
    }
    let mut builder = Builder::new(people);
    looked_at(text.len());
    for event in Meant::of(Parser::new_ext(text, OPTIONS)) {
        looked_at(words_of(&event).len() + 1);
        builder.take(event);
    }
    builder.finish()
}

/// What an event says.
fn words_of<'e>(event: &'e Event<'_>) -> &'e str {
    match event {
        Event::Text(text) | Event::Code(text) | Event::Html(text) | Event::InlineHtml(text) => text,
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => dest_url,
        _ => "",
    }
}

/// One paragraph per run of lines, marks and all.
fn as_written(text: &str) -> Vec<Block> {
    let paragraphs = text.split("\n\n").map(str::trim);
    let paragraphs = paragraphs.filter(|paragraph| !paragraph.is_empty());
    paragraphs
        .map(|paragraph| Block::Paragraph(vec![StyledRun::plain(paragraph)]))
        .collect()
}

/// Whether the parser's work grows with the length of the text: it walks all open containers for each
/// line.
pub(super) fn is_parsable(text: &str) -> bool {
    looked_at(text.len());
    text.lines().all(|line| opened(line) <= OPENED_MAX)
}

/// How many containers a line may open: its marks, and two columns of indent each before the last.
fn opened(line: &str) -> usize {
    let (mut marks, mut indent) = (0, 0);
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let mark_len = match first {
            ' ' | '\t' => {
                indent += if first == '\t' { 4 } else { 1 };
                rest = &rest[1..];
                continue;
            }
            '>' | '-' | '+' | '*' => 1,
            '0'..='9' if digits <= 9 && rest[digits..].starts_with(['.', ')']) => digits + 1,
            _ => break,
        };
        marks += 1;
        if marks > OPENED_MAX {
            break;
        }
        rest = &rest[mark_len..];
        let is_item = first != '>';
        if is_item && !rest.is_empty() && !rest.starts_with([' ', '\t']) {
            break;
        }
    }
    if marks == 0 { 0 } else { marks + indent / 2 }
}

/// A container that is open.
enum OpenContainer {
    Quote(Vec<Block>),
    List {
        start: Option<u64>,
        items: Vec<Item>,
    },
    Item {
        task: Option<bool>,
        blocks: Vec<Block>,
    },
    /// A container that is nested too deep and not kept. The number is the one shown before its item.
    Flat,
}

struct Builder<'a> {
    people: &'a People,
    blocks: Vec<Block>,
    open: Vec<OpenContainer>,
    depth: usize,
    /// The next numbers of the lists that are not kept.
    flat_numbers: Vec<Option<u64>>,
    runs: Vec<StyledRun>,
    bold: usize,
    italic: usize,
    strike: usize,
    spoiler: usize,
    /// Where the label of the open link or image starts, and where it leads; only the outermost.
    link: Option<(usize, String)>,
    link_depth: usize,
    heading: Option<u8>,
    code: Option<(String, String)>,
    table: Option<Table>,
    row: Vec<Vec<StyledRun>>,
}

impl<'a> Builder<'a> {
    fn new(people: &'a People) -> Self {
        Self {
            people,
            blocks: Vec::new(),
            open: Vec::new(),
            depth: 0,
            flat_numbers: Vec::new(),
            runs: Vec::new(),
            bold: 0,
            italic: 0,
            strike: 0,
            spoiler: 0,
            link: None,
            link_depth: 0,
            heading: None,
            code: None,
            table: None,
            row: Vec::new(),
        }
    }

    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&without_seams(&text)),
                None => self.push_text(&without_seams(&text)),
            },
            Event::Code(code) => self.push_code(&without_seams(&code)),
            Event::Html(html) => self.push_text(&html),
            // A spoiler tag without a partner is shown as the marks it was written with.
            Event::InlineHtml(html) if is_cover(&html) => self.push_text(COVER),
            Event::InlineHtml(html) => self.push_text(&html),
            Event::SoftBreak | Event::HardBreak => self.push_text("\n"),
            Event::Rule => {
                self.flush_paragraph();
                self.push_block(Block::Rule);
            }
            Event::TaskListMarker(is_done) => self.mark_task(is_done),
            Event::FootnoteReference(label) => self.push_text(&format!("[{label}]")),
            // The option is not enabled, so the parser never sends this.
            Event::InlineMath(text) | Event::DisplayMath(text) => self.push_text(&text),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Emphasis => self.italic += 1,
            Tag::Strong => self.bold += 1,
            Tag::Strikethrough => self.strike += 1,
            SPOILER => self.spoiler += 1,
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.link_depth += 1;
                if self.link.is_none() {
                    let url = without_seams(dest_url.trim()).replace(' ', "%20");
                    self.link = Some((self.runs.len(), url));
                }
            }
            // What stands before the text of an item or a note is part of it.
            Tag::Paragraph => {}
            Tag::TableHead | Tag::TableRow => self.row.clear(),
            Tag::TableCell => {}
            block => {
                self.flush_paragraph();
                self.start_block(block);
            }
        }
    }

    fn start_block(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => self.heading = Some(level_of(level)),
            Tag::CodeBlock(kind) => self.code = Some((language(&kind), String::new())),
            Tag::Table(aligns) => {
                self.table = Some(Table {
                    aligns: aligns.iter().take(COLUMNS_MAX).map(align).collect(),
                    ..Table::default()
                });
            }
            Tag::BlockQuote(kind) => {
                self.open(OpenContainer::Quote(Vec::new()));
                if let Some(kind) = kind {
                    self.push_block(Block::Paragraph(vec![title_of(kind)]));
                }
            }
            Tag::FootnoteDefinition(label) => self.push_text(&format!("[{label}] ")),
            Tag::List(start) => {
                self.flat_numbers.push(start);
                self.open(OpenContainer::List {
                    start,
                    items: Vec::new(),
                });
            }
            Tag::Item => {
                self.open(OpenContainer::Item {
                    task: None,
                    blocks: Vec::new(),
                });
                if matches!(self.open.last(), Some(OpenContainer::Flat)) {
                    self.push_flat_mark();
                }
            }
            _ => {}
        }
    }

    /// Opens a container, if it is not too deep. An item stands only in a list that is kept.
    fn open(&mut self, container: OpenContainer) {
        let is_orphan = matches!(container, OpenContainer::Item { .. })
            && !matches!(self.open.last(), Some(OpenContainer::List { .. }));
        // A list is kept only where its items can be, too.
        let needs = if matches!(container, OpenContainer::List { .. }) {
            2
        } else {
            1
        };
        if is_orphan
            || (self.depth + needs > DEPTH_MAX && !matches!(container, OpenContainer::Item { .. }))
        {
            self.open.push(OpenContainer::Flat);
        } else {
            self.depth += 1;
            self.open.push(container);
        }
    }

    fn push_flat_mark(&mut self) {
        let mark = match self.flat_numbers.last_mut() {
            Some(Some(number)) => {
                let mark = format!("{number}. ");
                *number = number.saturating_add(1);
                mark
            }
            _ => "• ".to_owned(),
        };
        self.push_text(&mark);
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Emphasis => self.italic = self.italic.saturating_sub(1),
            TagEnd::Strong => self.bold = self.bold.saturating_sub(1),
            TagEnd::Strikethrough => self.strike = self.strike.saturating_sub(1),
            SPOILER_END => self.spoiler = self.spoiler.saturating_sub(1),
            TagEnd::Link | TagEnd::Image => {
                self.link_depth = self.link_depth.saturating_sub(1);
                if self.link_depth == 0 {
                    self.end_link();
                }
            }
            TagEnd::TableCell => {
                let cell = self.inline();
                let is_full = self.row.len() >= COLUMNS_MAX;
                match self.row.last_mut() {
                    Some(last) if is_full => {
                        push_run(last, StyledRun::plain(" "));
                        last.extend(cell);
                    }
                    _ => self.row.push(cell),
                }
            }
            TagEnd::TableHead => {
                if let Some(table) = &mut self.table {
                    table.head = std::mem::take(&mut self.row);
                }
            }
            TagEnd::TableRow => {
                while self.row.last().is_some_and(Vec::is_empty) {
                    self.row.pop();
                }
                if let Some(table) = &mut self.table {
                    table.rows.push_back(std::mem::take(&mut self.row));
                }
            }
            block => self.end_block(block),
        }
    }

    fn end_block(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => {
                let level = self.heading.take().unwrap_or(1);
                let mut content = self.inline();
                for run in &mut content {
                    run.text = run.text.replace('\n', " ");
                }
                if !content.is_empty() {
                    self.push_block(Block::Heading { level, content });
                }
            }
            TagEnd::CodeBlock => {
                let (language, text) = self.code.take().unwrap_or_default();
                let text = text.strip_suffix('\n').unwrap_or(&text).to_owned();
                if !text.trim().is_empty() {
                    self.push_block(Block::Code { language, text });
                }
            }
            TagEnd::Table => {
                let table = self.table.take().unwrap_or_default();
                if table.head.len() > TABLE_COLUMNS_MAX
                    && table.rows.iter().any(|row| !row.is_empty())
                {
                    self.push_block(listed(table));
                } else if !table.head.is_empty() || !table.rows.is_empty() {
                    self.push_block(Block::Table(table));
                }
            }
            TagEnd::List(_) => {
                self.flush_paragraph();
                self.flat_numbers.pop();
                self.close();
            }
            TagEnd::BlockQuote(_) | TagEnd::Item => {
                self.flush_paragraph();
                self.close();
            }
            _ => self.flush_paragraph(),
        }
    }

    fn close(&mut self) {
        let Some(closed) = self.open.pop() else {
            return;
        };
        if !matches!(closed, OpenContainer::Flat) {
            self.depth = self.depth.saturating_sub(1);
        }
        match closed {
            OpenContainer::Quote(blocks) if !blocks.is_empty() => {
                self.push_block(Block::Quote(blocks.into()));
            }
            OpenContainer::List { start, items } if !items.is_empty() => {
                self.push_block(Block::List {
                    start,
                    items: items.into(),
                });
            }
            OpenContainer::Item { task, blocks } => {
                let item = Item {
                    task,
                    blocks: blocks.into(),
                };
                if let Some(OpenContainer::List { items, .. }) = self.open.last_mut() {
                    items.push(item);
                }
            }
            _ => {}
        }
    }

    fn push_block(&mut self, block: Block) {
        let innermost = self.open.iter_mut().rev().find_map(|open| match open {
            OpenContainer::Quote(blocks) | OpenContainer::Item { blocks, .. } => Some(blocks),
            OpenContainer::List { .. } | OpenContainer::Flat => None,
        });
        innermost.unwrap_or(&mut self.blocks).push(block);
    }

    fn mark_task(&mut self, is_done: bool) {
        match self.open.last_mut() {
            Some(OpenContainer::Item { task, .. }) => *task = Some(is_done),
            _ => self.push_text(if is_done { "☑ " } else { "☐ " }),
        }
    }

    fn style(&self) -> Styles {
        Styles {
            bold: self.bold > 0,
            italic: self.italic > 0,
            strike: self.strike > 0,
            spoiler: self.spoiler > 0,
        }
    }

    fn push_text(&mut self, text: &str) {
        let styles = self.style();
        let run = StyledRun {
            styles,
            ..StyledRun::plain(text)
        };
        self.push(run);
    }

    fn push_code(&mut self, code: &str) {
        let run = StyledRun {
            is_code: true,
            ..StyledRun::plain(code.replace('\n', " "))
        };
        self.push(run);
    }

    /// Appends a run. The runs of a link's label are not joined with the text before it.
    fn push(&mut self, run: StyledRun) {
        match &self.link {
            Some((start, _)) if self.runs.len() == *start => self.runs.push(run),
            _ => push_run(&mut self.runs, run),
        }
    }

    /// A label becomes a link, or text with the address behind it.
    fn end_link(&mut self) {
        let Some((start, url)) = self.link.take() else {
            return;
        };
        let start = start.min(self.runs.len());
        let label: String = self.runs[start..]
            .iter()
            .map(|run| run.text.as_str())
            .collect();
        looked_at(label.len() + url.len());
        let shown = if label.trim().is_empty() {
            &url
        } else {
            &label
        };
        let is_link = is_honest(shown, &url);
        if is_link {
            if label.trim().is_empty() {
                self.runs.truncate(start);
                let styles = self.style();
                self.runs.push(StyledRun {
                    styles,
                    ..StyledRun::plain(url.as_str())
                });
            }
            let url: Rc<str> = Rc::from(url.as_str());
            for run in &mut self.runs[start..] {
                run.link = Some(Rc::clone(&url));
            }
        } else if !url.is_empty() {
            let address = url.strip_prefix("mailto:").unwrap_or(&url);
            let tail = match () {
                () if label.contains(address) => String::new(),
                () if label.trim().is_empty() => address.to_owned(),
                () => format!(" ({address})"),
            };
            self.runs.push(StyledRun::plain(tail));
        }
    }

    /// The open runs as the content of a block.
    fn inline(&mut self) -> Vec<StyledRun> {
        if let Some((start, _)) = &mut self.link {
            *start = 0;
        }
        let mut runs = Vec::new();
        for run in std::mem::take(&mut self.runs) {
            if run.is_code || run.link.is_some() {
                push_run(&mut runs, run);
            } else {
                push_linked(&mut runs, &run);
            }
        }
        let mut named = Vec::with_capacity(runs.len());
        for run in runs {
            push_mentioned(self.people, &mut named, &run);
        }
        trimmed(named)
    }

    fn flush_paragraph(&mut self) {
        let runs = self.inline();
        if !runs.is_empty() {
            self.push_block(Block::Paragraph(runs));
        }
    }

    fn finish(mut self) -> Vec<Block> {
        self.flush_paragraph();
        while !self.open.is_empty() {
            self.close();
        }
        self.blocks
    }
}

/// A table as a list: an item for each row, in which each cell that says something stands behind the head
/// of its column.
fn listed(table: Table) -> Block {
    let heads: Vec<String> = table.head.iter().map(|head| words(head)).collect();
    let rows = table.rows.into_iter().map(|row| {
        let mut cells = row.into_iter().zip(&heads);
        let mut title = cells.next().map(|(cell, _)| cell).unwrap_or_default();
        title.iter_mut().for_each(|run| run.styles.bold = true);
        let cells = cells.filter(|(cell, _)| !cell.is_empty());
        let items: VecDeque<Item> = cells
            .map(|(cell, head)| {
                let mut runs = Vec::with_capacity(cell.len() + 1);
                if !head.is_empty() {
                    push_run(&mut runs, StyledRun::plain(format!("{head}: ")));
                }
                runs.extend(cell);
                of_blocks([Block::Paragraph(runs)])
            })
            .collect();
        let title = (!title.is_empty()).then_some(Block::Paragraph(title));
        let cells = (!items.is_empty()).then_some(Block::List { start: None, items });
        of_blocks(title.into_iter().chain(cells))
    });
    Block::List {
        start: None,
        items: rows.filter(|item| !item.blocks.is_empty()).collect(),
    }
}

fn of_blocks(blocks: impl IntoIterator<Item = Block>) -> Item {
    Item {
        task: None,
        blocks: blocks.into_iter().collect(),
    }
}

/// The words of a column's head.
fn words(head: &[StyledRun]) -> String {
    let words = head.iter().flat_map(|run| run.text.chars());
    let words: String = words.take(LISTED_HEAD_MAX_CHARS).collect();
    words.trim().to_owned()
}

/// Runs without white space at both ends; none if nothing is left.
pub(super) fn trimmed(mut runs: Vec<StyledRun>) -> Vec<StyledRun> {
    looked_at(runs.len());
    while let Some(last) = runs.last_mut() {
        last.text.truncate(last.text.trim_end().len());
        if !last.text.is_empty() {
            break;
        }
        runs.pop();
    }
    let blank = runs.iter().take_while(|run| run.text.trim().is_empty());
    let blank = blank.count();
    runs.drain(..blank);
    if let Some(first) = runs.first_mut() {
        first.text = first.text.trim_start().to_owned();
    }
    runs
}

/// The title over a quotation of one of GitHub's alert kinds.
fn title_of(kind: BlockQuoteKind) -> StyledRun {
    let title = match kind {
        BlockQuoteKind::Note => "Note",
        BlockQuoteKind::Tip => "Tip",
        BlockQuoteKind::Important => "Important",
        BlockQuoteKind::Warning => "Warning",
        BlockQuoteKind::Caution => "Caution",
    };
    let styles = Styles {
        bold: true,
        ..Styles::default()
    };
    StyledRun {
        styles,
        ..StyledRun::plain(title)
    }
}

fn language(kind: &CodeBlockKind<'_>) -> String {
    let CodeBlockKind::Fenced(info) = kind else {
        return String::new();
    };
    let word = info.split([' ', '\t', ',', '{']).next().unwrap_or_default();
    let is_name = |c: char| c.is_ascii_alphanumeric() || "+-#._".contains(c);
    let is_fit = word.len() <= LANGUAGE_MAX_CHARS && word.chars().all(is_name);
    if is_fit {
        word.to_owned()
    } else {
        String::new()
    }
}

fn level_of(level: HeadingLevel) -> u8 {
    match level {
        HeadingLevel::H1 => 1,
        HeadingLevel::H2 => 2,
        HeadingLevel::H3 => 3,
        HeadingLevel::H4 => 4,
        HeadingLevel::H5 => 5,
        HeadingLevel::H6 => 6,
    }
}

fn align(alignment: &Alignment) -> Align {
    match alignment {
        Alignment::None | Alignment::Left => Align::Left,
        Alignment::Center => Align::Center,
        Alignment::Right => Align::Right,
    }
}

/// Appends a run; where it mentions somebody by `@Name`, that becomes a mention.
fn push_mentioned(people: &People, runs: &mut Vec<StyledRun>, run: &StyledRun) {
    if run.is_code || run.link.is_some() {
        return push_run(runs, run.clone());
    }
    let text = run.text.as_str();
    let mut done = 0;
    for (bytes, person) in people.mentions_in(text) {
        push_run(runs, run.with_text(&text[done..bytes.start]));
        done = bytes.end;
        runs.push(StyledRun {
            mention: Some(Rc::from(person.id.as_str())),
            ..run.with_text(&text[bytes])
        });
    }
    push_run(runs, run.with_text(&text[done..]));
}
