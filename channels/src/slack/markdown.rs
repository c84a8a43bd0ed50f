//! A tree as the Markdown of Slack's `markdown` blocks. Pure.
//!
//! Text is escaped so that it stays text: marks by a backslash, Slack's own references (`<!channel>`, `<@U1>`) and
//! `@channel` also by an invisible joiner, which works in code, too, and in whatever order Slack reads a text.

use crate::render::{
    Block, Container, Item, PostCost, PostMeasure, StyledRun, Styles, Surroundings, aligned,
    has_own_address,
};

use vocative_contract::work::looked_at;

use super::table;

/// Slack's limit is 12,000 characters over all `markdown` blocks of a post. The margin covers what they
/// count differently.
pub(super) const MARKDOWN_MAX_CHARS: usize = 11_400;
/// Slack's limit of blocks in one post.
pub(super) const BLOCKS_MAX: usize = 50;
/// An invisible character that breaks a reference, so that it notifies nobody.
const JOINER: char = '\u{2060}';
/// The words after `@` or `<!` that notify everybody.
const BROADCASTS: [&str; 3] = ["channel", "here", "everyone"];

/// How Slack counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlackForm {
    /// The most characters of one post.
    pub(super) max: usize,
}

impl PostMeasure for SlackForm {
    fn room(&self) -> PostCost {
        // A native table is a block, and so is what stands before and after it.
        PostCost {
            length: self.max,
            count: BLOCKS_MAX / 2 - 1,
        }
    }

    fn block_cost(&self, block: &Block, place: &Surroundings, room: PostCost) -> PostCost {
        let mut out = MarkdownWriter {
            chars_max: room.length,
            prefix: " ".repeat(place.prefix_length),
            ..MarkdownWriter::new(WrittenMarks::All)
        };
        out.push_block(block);
        let mut cost = PostCost {
            length: out.chars,
            count: 0,
        };
        if let Block::Table(table) = block {
            cost.count = 1;
            cost.length = cost.length.max(table::cells_length(table));
        }
        cost
    }

    fn run_cost(&self, run: &StyledRun, _place: &Surroundings) -> PostCost {
        let ticks = if run.is_code {
            2 * longest_ticks(&run.text) + 6
        } else {
            0
        };
        let link = run.link.as_ref().map_or(0, |url| 4 + address(url).len());
        let mention = run.mention.as_ref().map_or(0, |id| id.len() + 3);
        // Marks on both sides, and what makes them count next to punctuation.
        let styles = if run.styles == Styles::default() {
            0
        } else {
            12
        };
        PostCost {
            // Two for the escape that the line's first character may need.
            length: ticks + link + mention + styles + 2,
            count: 0,
        }
    }

    fn char_length(&self, c: char, place: &Surroundings) -> usize {
        match c {
            '\n' => 5 + place.prefix_length,
            '<' => 3,
            '@' => 2,
            c if c.is_ascii_punctuation()
                && !matches!(c, '.' | ',' | ';' | '?' | '/' | '\'' | '"') =>
            {
                2
            }
            _ => 1,
        }
    }

    fn code_length(&self, c: char, place: &Surroundings) -> usize {
        match c {
            '\n' => 1 + place.prefix_length,
            // The joiner that may follow.
            '<' | '@' => 2,
            _ => 1,
        }
    }

    fn prefix_length(&self, container: Container) -> usize {
        match container {
            Container::Quote => QUOTE_MARK.len(),
            // As wide as a number of six digits; most are shorter.
            Container::Item => 8,
        }
    }

    fn separator_length(&self, place: &Surroundings) -> usize {
        2 + 2 * place.prefix_length
    }
}

const QUOTE_MARK: &str = "> ";
const RULE: &str = "***";
/// A line end that every Markdown reader shows as one.
const LINE_END: &str = "  \n";

/// Which marks are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WrittenMarks {
    /// All of them.
    All,
    /// No marks of styles: text that every Markdown reader shows alike.
    NoStyles,
}

/// The blocks as Markdown.
pub(super) fn markdown(blocks: &[Block], marks: WrittenMarks) -> String {
    let mut out = MarkdownWriter::new(marks);
    out.push_blocks(blocks.iter());
    out.text
}

/// A text in which no reference of Slack's notifies anybody; for code and plain text, which have no escapes.
pub(super) fn harmless(text: &str) -> String {
    looked_at(text.len());
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['<', '@']) {
        let after = at + 1;
        out.push_str(&rest[..after]);
        let is_loud = match &rest[at..after] {
            "<" => is_reference(&rest[after..]),
            _ => is_broadcast(&rest[after..]),
        };
        if is_loud {
            out.push(JOINER);
        }
        rest = &rest[after..];
    }
    out + rest
}

/// Whether what follows a `<` makes it a reference of Slack's.
fn is_reference(after: &str) -> bool {
    let id = |sigil: char| {
        let id = after.strip_prefix(sigil);
        id.is_some_and(|id| id.starts_with(|c: char| c.is_ascii_uppercase() || c.is_ascii_digit()))
    };
    let special = after.strip_prefix('!').is_some_and(|word| {
        is_broadcast(word)
            || word.starts_with("subteam")
            || word.starts_with("date")
            || word.starts_with("group")
    });
    id('@') || id('#') || special
}

fn is_broadcast(word: &str) -> bool {
    BROADCASTS.iter().any(|it| {
        let rest = word
            .get(..it.len())
            .filter(|head| head.eq_ignore_ascii_case(it));
        rest.is_some() && !word[it.len()..].starts_with(|c: char| c.is_alphanumeric())
    })
}

/// An address that can stand in `(…)`.
fn address(url: &str) -> String {
    looked_at(url.len());
    let mut out = String::with_capacity(url.len());
    for (at, c) in url.char_indices() {
        match c {
            '@' if is_broadcast(&url[at + 1..]) => out.push_str("%40"),
            '(' => out.push_str("%28"),
            ')' => out.push_str("%29"),
            '|' => out.push_str("%7C"),
            '\\' => out.push_str("%5C"),
            '`' => out.push_str("%60"),
            '*' => out.push_str("%2A"),
            '[' => out.push_str("%5B"),
            ']' => out.push_str("%5D"),
            c => out.push(c),
        }
    }
    out
}

/// Whether an id is a person's.
pub(super) fn is_person(id: &str) -> bool {
    id.starts_with(['U', 'W'])
        && id
            .chars()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
}

fn longest_ticks(text: &str) -> usize {
    looked_at(text.len());
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// A mark that is open at a place in a paragraph.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MarkdownLayer<'a> {
    Link(&'a str),
    Bold,
    Strike,
    /// Slack has no spoilers: the marks are shown.
    Spoiler,
    /// Holds the mark that opened it.
    Italic,
}

/// The text under construction.
struct MarkdownWriter {
    text: String,
    chars: usize,
    /// Nothing is added once the text is longer.
    chars_max: usize,
    /// What stands before each further line.
    prefix: String,
    marks: WrittenMarks,
    is_line_start: bool,
}

impl MarkdownWriter {
    fn new(marks: WrittenMarks) -> Self {
        Self {
            text: String::new(),
            chars: 0,
            chars_max: usize::MAX,
            prefix: String::new(),
            marks,
            is_line_start: true,
        }
    }

    fn is_full(&self) -> bool {
        self.chars > self.chars_max
    }

    fn push(&mut self, text: &str) {
        if !self.is_full() {
            looked_at(text.len());
            self.chars += text.chars().count();
            self.text.push_str(text);
            self.is_line_start = false;
        }
    }

    /// Ends the line with `end`.
    fn break_line(&mut self, end: &str) {
        self.push(end);
        let prefix = std::mem::take(&mut self.prefix);
        self.push(&prefix);
        self.prefix = prefix;
        self.is_line_start = true;
    }

    fn push_blocks<'a>(&mut self, blocks: impl Iterator<Item = &'a Block>) {
        for (n, block) in blocks.enumerate() {
            if self.is_full() {
                return;
            }
            // A list may follow its text without a blank line if every Markdown reader takes it for a list.
            let is_close = self.is_listed()
                && matches!(
                    block,
                    Block::List {
                        start: None | Some(1),
                        ..
                    }
                );
            if n > 0 && !is_close {
                let bare = self.prefix.trim_end().to_owned();
                self.push("\n");
                self.push(&bare);
            }
            if n > 0 {
                self.break_line("\n");
            }
            self.push_block(block);
        }
    }

    fn is_listed(&self) -> bool {
        self.prefix.ends_with("  ")
    }

    fn push_block(&mut self, block: &Block) {
        match block {
            Block::Paragraph(runs) => self.push_runs(runs),
            Block::Heading { level, content } => {
                self.push(&"#".repeat(usize::from(*level)));
                self.push(" ");
                self.push_runs(content);
            }
            Block::Code { language, text } => self.push_code(text, language),
            Block::Quote(blocks) => {
                let outer = self.prefix.len();
                self.push(QUOTE_MARK);
                self.prefix.push_str(QUOTE_MARK);
                self.is_line_start = true;
                self.push_blocks(blocks.iter());
                self.prefix.truncate(outer);
            }
            Block::List { start, items } => self.push_list(*start, items.iter()),
            Block::Table(table) => {
                let room = self.chars_max.saturating_sub(self.chars);
                match aligned(table, room) {
                    Some(text) => self.push_code(&text, ""),
                    None => self.chars = self.chars_max.saturating_add(1),
                }
            }
            Block::Rule => self.push(RULE),
        }
    }

    fn push_list<'a>(&mut self, start: Option<u64>, items: impl Iterator<Item = &'a Item>) {
        for (n, item) in items.enumerate() {
            if self.is_full() {
                return;
            }
            if n > 0 {
                self.break_line("\n");
            }
            let mark = match start {
                // CommonMark reads nine digits.
                Some(start) => format!("{}. ", start.saturating_add(n as u64).min(999_999_999)),
                None => "- ".to_owned(),
            };
            self.push(&mark);
            let outer = self.prefix.len();
            self.prefix.push_str(&" ".repeat(mark.len()));
            if let Some(is_done) = item.task {
                self.push(if is_done { "[x] " } else { "[ ] " });
            }
            self.is_line_start = true;
            self.push_blocks(item.blocks.iter());
            self.prefix.truncate(outer);
        }
    }

    fn push_code(&mut self, text: &str, language: &str) {
        let fence = "`".repeat((longest_ticks(text) + 1).max(3));
        self.push(&fence);
        self.push(language);
        for line in harmless(text).split('\n') {
            if self.is_full() {
                return;
            }
            self.break_line("\n");
            self.push(line);
        }
        self.break_line("\n");
        self.push(&fence);
    }

    fn push_runs(&mut self, runs: &[StyledRun]) {
        let mut open: Vec<(MarkdownLayer<'_>, &'static str)> = Vec::new();
        for (n, piece) in runs.iter().enumerate().flat_map(|(n, _)| pieces(runs, n)) {
            if self.is_full() {
                return;
            }
            let wanted = self.layers(&piece);
            let kept = open.iter().take_while(|(layer, _)| wanted.contains(layer));
            let kept = kept.count();
            let mut new: Vec<MarkdownLayer<'_>> = wanted;
            new.retain(|layer| !open[..kept].iter().any(|(it, _)| it == layer));
            let is_bare = new.is_empty() && !piece.run.is_code;
            let next = piece.text.chars().next().filter(|_| is_bare);
            self.close_layers(&mut open, kept, next);
            // Styles that last longest are opened first, so that none is closed and opened again in the middle.
            new.sort_by_key(|layer| std::cmp::Reverse(extent(*layer, &runs[n..])));
            for (at, layer) in new.iter().enumerate() {
                let before = self.text.chars().next_back();
                let mark = opening(*layer, &self.text, runs, n);
                self.push(mark);
                open.push((*layer, mark));
                let next = match new.get(at + 1) {
                    Some(_) => Some('*'),
                    None => piece.text.chars().next(),
                };
                if !matches!(layer, MarkdownLayer::Link(_)) && is_seam(next, before) {
                    self.push(JOINER.encode_utf8(&mut [0; 4]));
                }
            }
            let is_before_link = runs.get(n + 1).is_some_and(|next| next.link.is_some());
            self.push_run(piece.run, piece.text, is_before_link);
        }
        self.close_layers(&mut open, 0, None);
    }

    /// The layers of a piece, in a fixed order, outermost first, for those that last equally long.
    fn layers<'r>(&self, piece: &StyledPiece<'r>) -> Vec<MarkdownLayer<'r>> {
        let run = piece.run;
        let link = run.link.as_deref().filter(|_| !is_autolink(run));
        let mut layers: Vec<MarkdownLayer<'_>> =
            link.map(MarkdownLayer::Link).into_iter().collect();
        if self.marks == WrittenMarks::All {
            let wanted = [
                (piece.styles.spoiler, MarkdownLayer::Spoiler),
                (piece.styles.strike, MarkdownLayer::Strike),
                (piece.styles.bold, MarkdownLayer::Bold),
                (piece.styles.italic, MarkdownLayer::Italic),
            ];
            let wanted = wanted.into_iter().filter(|(is_on, _)| *is_on);
            layers.extend(wanted.map(|(_, layer)| layer));
        }
        layers
    }

    /// Closes all layers but the first ones; `next` is the letter that follows.
    fn close_layers(
        &mut self,
        open: &mut Vec<(MarkdownLayer<'_>, &'static str)>,
        keep: usize,
        next: Option<char>,
    ) {
        while open.len() > keep
            && let Some((layer, mark)) = open.pop()
        {
            match layer {
                MarkdownLayer::Link(url) => {
                    let target = format!("]({})", address(url));
                    self.push(&target);
                }
                MarkdownLayer::Bold
                | MarkdownLayer::Italic
                | MarkdownLayer::Spoiler
                | MarkdownLayer::Strike => {
                    let next = next.filter(|_| open.len() == keep);
                    if is_seam(self.text.chars().next_back(), next) {
                        self.push(JOINER.encode_utf8(&mut [0; 4]));
                    }
                    self.push(mark);
                }
            }
        }
    }

    fn push_run(&mut self, run: &StyledRun, text: &str, is_before_link: bool) {
        if run.is_code {
            return self.push_inline_code(text);
        }
        if let Some(id) = run.mention.as_deref().filter(|id| is_person(id)) {
            return self.push(&format!("<@{id}>"));
        }
        if is_autolink(run) {
            return self.push(&format!("<{text}>"));
        }
        for (n, line) in text.split('\n').enumerate() {
            if self.is_full() {
                return;
            }
            if n > 0 {
                self.break_line(LINE_END);
            }
            // White space at a line's start would be its indent.
            let line = if self.is_line_start {
                line.trim_start()
            } else {
                line
            };
            self.push_escaped(line, is_before_link);
        }
    }

    fn push_inline_code(&mut self, code: &str) {
        let code = harmless(code);
        let ticks = "`".repeat(longest_ticks(&code) + 1);
        let is_blank = code.trim().is_empty();
        let needs_space = !is_blank && (code.starts_with(['`', ' ']) || code.ends_with(['`', ' ']));
        let space = if needs_space { " " } else { "" };
        self.push(&format!("{ticks}{space}{code}{space}{ticks}"));
    }

    /// Appends text escaped so that it stays text.
    fn push_escaped(&mut self, text: &str, is_before_link: bool) {
        let mut before = self.text.chars().next_back();
        for (at, c) in text.char_indices() {
            if self.is_full() {
                return;
            }
            let after = &text[at + c.len_utf8()..];
            let next = after.chars().next();
            let needs = match c {
                '\\' | '`' | '[' | '<' | '~' | '|' => true,
                '*' => !is_between_spaces(before, next) || self.is_line_start,
                '_' => !is_between(before, next, char::is_alphanumeric),
                ']' => true,
                '&' => is_entity(after),
                '!' => next.is_none() && is_before_link,
                '#' | '>' | '-' | '+' | '=' => {
                    self.is_line_start || (c == '#' && next.is_none_or(|c| c == ' '))
                }
                // The line under a table's head; any other colon may begin the name of an emoji.
                ':' => self.is_line_start && next == Some('-'),
                '.' | ')' => self.is_number(before) && next.is_none_or(char::is_whitespace),
                _ => false,
            };
            let is_line_start = self.is_line_start;
            if needs {
                self.push("\\");
            }
            let mut buffer = [0; 4];
            self.push(c.encode_utf8(&mut buffer));
            let is_loud = (c == '<' && is_reference(after)) || (c == '@' && is_broadcast(after));
            if is_loud {
                self.push(JOINER.encode_utf8(&mut [0; 4]));
            }
            self.is_line_start = is_line_start && c.is_whitespace();
            before = Some(c);
        }
    }

    /// Whether the line so far is a number, which a dot would make an item of a list.
    fn is_number(&self, before: Option<char>) -> bool {
        if !before.is_some_and(|c| c.is_ascii_digit()) {
            return false;
        }
        let digits = self.text.len()
            - self
                .text
                .trim_end_matches(|c: char| c.is_ascii_digit())
                .len();
        looked_at(digits);
        let before_word = &self.text[..self.text.len() - digits];
        let mut before = before_word.chars().rev().take(PREFIX_LOOKED_AT_MAX);
        let is_prefix = |c: char| matches!(c, '>' | ' ' | '-');
        let is_first = before_word.is_empty()
            || before_word.ends_with([' ', '\n'])
            || before.find(|c| !is_prefix(*c)) == Some('\n');
        digits <= 9 && is_first
    }
}

fn is_between(before: Option<char>, next: Option<char>, is: impl Fn(char) -> bool) -> bool {
    before.is_some_and(&is) && next.is_some_and(&is)
}

fn is_between_spaces(before: Option<char>, next: Option<char>) -> bool {
    is_between(before, next, char::is_whitespace)
}

/// Whether what follows an `&` makes it an entity.
fn is_entity(after: &str) -> bool {
    let name: usize = after
        .chars()
        .take(33)
        .take_while(|c| c.is_ascii_alphanumeric() || *c == '#')
        .map(char::len_utf8)
        .sum();
    name > 0 && after[name..].starts_with(';')
}

/// A run's text, or the white space at one end of it.
struct StyledPiece<'r> {
    run: &'r StyledRun,
    text: &'r str,
    styles: Styles,
}

/// The pieces of one run. White space gets only the styles that both of its neighbours have: a mark next to white space
/// does not count.
fn pieces(runs: &[StyledRun], n: usize) -> impl Iterator<Item = (usize, StyledPiece<'_>)> {
    let run = &runs[n];
    let of = |n: Option<usize>| n.and_then(|n| runs.get(n)).map_or(Styles::default(), set);
    let (before, own, after) = (of(n.checked_sub(1)), set(run), of(Some(n + 1)));
    let text = run.text.as_str();
    let is_whole = run.is_code || run.mention.is_some() || is_autolink(run);
    let (start, end) = match text.trim() {
        _ if is_whole => (0, text.len()),
        // A run of white space is all leading white space.
        "" => (text.len(), text.len()),
        core => {
            let start = text.len() - text.trim_start().len();
            (start, start + core.len())
        }
    };
    let lead = if end == start { after } else { own };
    let pieces = [
        (&text[..start], before.and(lead)),
        (&text[start..end], own),
        (&text[end..], own.and(after)),
    ];
    pieces
        .into_iter()
        .filter(|(text, _)| !text.is_empty())
        .map(move |(text, styles)| (n, StyledPiece { run, text, styles }))
}

/// The styles of a run.
fn set(run: &StyledRun) -> Styles {
    if run.mention.is_some() {
        Styles::default()
    } else {
        run.shown_styles()
    }
}

/// How many runs are looked at to find where a style ends.
const LOOKED_AT_MAX: usize = 64;
/// How many characters before a number are looked at to find whether it begins its line.
const PREFIX_LOOKED_AT_MAX: usize = 64;

/// How many runs a layer lasts for, as far as it is worth looking.
fn extent(layer: MarkdownLayer<'_>, runs: &[StyledRun]) -> usize {
    let holds = |run: &StyledRun| match layer {
        MarkdownLayer::Link(url) => run.link.as_deref() == Some(url),
        _ if run.text.trim().is_empty() => true,
        MarkdownLayer::Bold => set(run).bold,
        MarkdownLayer::Italic => set(run).italic,
        MarkdownLayer::Strike => set(run).strike,
        MarkdownLayer::Spoiler => set(run).spoiler,
    };
    let held = runs.iter().take(LOOKED_AT_MAX).take_while(|run| holds(run));
    let held = held.count();
    looked_at(held);
    held
}

/// Whether a mark between the two would not count: punctuation inside of it, a letter outside.
fn is_seam(inside: Option<char>, outside: Option<char>) -> bool {
    let is_punctuation = |c: char| !c.is_alphanumeric() && !c.is_whitespace() && c != JOINER;
    inside.is_some_and(is_punctuation) && outside.is_some_and(char::is_alphanumeric)
}

/// Whether a run is an address that can stand in angle brackets.
fn is_autolink(run: &StyledRun) -> bool {
    has_own_address(run) && address(&run.text) == run.text
}

/// The mark that opens a layer.
fn opening(layer: MarkdownLayer<'_>, text: &str, runs: &[StyledRun], n: usize) -> &'static str {
    match layer {
        MarkdownLayer::Link(_) => "[",
        MarkdownLayer::Bold => "**",
        MarkdownLayer::Strike => "~~",
        MarkdownLayer::Spoiler => "\\|\\|",
        MarkdownLayer::Italic => {
            // `_` reads better, but not inside a word.
            let mut ahead = runs[n..].iter().take(LOOKED_AT_MAX);
            let end = ahead.position(|run| !run.shown_styles().italic);
            let behind = end.and_then(|end| runs[n + end].text.chars().next());
            let is_far = end.is_none() && runs.len() - n > LOOKED_AT_MAX;
            looked_at(end.unwrap_or(LOOKED_AT_MAX));
            let before = text.chars().next_back();
            let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
            if is_word(before) || is_word(behind) || is_far || before == Some('_') {
                "*"
            } else {
                "_"
            }
        }
    }
}
