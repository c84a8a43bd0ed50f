//! Cuts a tree into parts that fit a post: between blocks and list items first; a long block into
//! blocks of its kind, so that each part is a whole tree again (code with its language, table rows
//! under their header).
//!
//! Greedy, front to back. What a block costs is asked of the platform's [`PostMeasure`] and only as far as the
//! room goes, so that the work grows with the length of the text.

use std::collections::VecDeque;

use vocative_contract::work::looked_at;

use super::inline::{Cutting, cut_runs};
use super::table::{row_length, widths_add};
use super::tree::{Block, Item, StyledRun, Table, push_run};

/// In less room than this no piece of a block is put.
const PIECE_MIN: usize = 64;
/// The most that surrounds a table shown as text: its fences.
const TABLE_MARKS: usize = 16;
/// How often a block is replaced by smaller ones before it is sent as it is. Containers nest less deep.
const REPLACED_MAX: usize = 40;

/// What something takes up in a post: its length in the platform's unit, and how many entities or blocks it needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PostCost {
    /// Length in the platform's unit.
    pub(crate) length: usize,
    /// How many entities or blocks.
    pub(crate) count: usize,
}

impl PostCost {
    /// The sum of both costs.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            length: self.length.saturating_add(other.length),
            count: self.count.saturating_add(other.count),
        }
    }

    /// What is left of this room after `other`; nothing if it does not fit.
    pub(super) fn minus(self, other: Self) -> Self {
        Self {
            length: self.length.saturating_sub(other.length),
            count: self.count.saturating_sub(other.count),
        }
    }

    /// Whether it fits.
    pub(crate) fn is_within(self, room: Self) -> bool {
        self.length <= room.length && self.count <= room.count
    }
}

/// Where a block stands: what is written before each of its lines, and what contains it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Surroundings {
    /// The length of what stands before each line.
    pub(crate) prefix_length: usize,
    /// Whether it is in a quotation.
    pub(crate) is_quoted: bool,
    /// Whether it is in a list.
    pub(crate) is_listed: bool,
}

/// How a platform counts. Every answer may be too high, never too low.
pub(crate) trait PostMeasure {
    /// What fits one post.
    fn room(&self) -> PostCost;
    /// What a block costs; once the cost passes `room`, counting stops and any larger value is returned.
    fn block_cost(&self, block: &Block, place: &Surroundings, room: PostCost) -> PostCost;
    /// What a run costs besides its characters.
    fn run_cost(&self, run: &StyledRun, place: &Surroundings) -> PostCost;
    /// The length of a character of text, however it must be written.
    fn char_length(&self, c: char, place: &Surroundings) -> usize;
    /// The length of a character of code.
    fn code_length(&self, c: char, place: &Surroundings) -> usize;
    /// What stands before each line of a quotation or a list's item, in length.
    fn prefix_length(&self, container: Container) -> usize;
    /// What stands between two blocks, in length.
    fn separator_length(&self, place: &Surroundings) -> usize;
}

/// What contains blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Container {
    /// A quotation.
    Quote,
    /// An item of a list.
    Item,
}

/// The parts of a tree, none of them empty.
pub(crate) fn parts_of(form: &dyn PostMeasure, blocks: Vec<Block>) -> Vec<Vec<Block>> {
    let splitter = Splitter { form };
    let mut queue = VecDeque::from(blocks);
    let mut parts = Vec::new();
    let place = Surroundings::default();
    while !queue.is_empty() {
        let full = form.room();
        let mut part = splitter.take(&mut queue, &place, full, full, true);
        // A heading stays with what it heads.
        if part.len() > 1
            && !queue.is_empty()
            && let Some(heading) = part.pop_if(|last| matches!(last, Block::Heading { .. }))
        {
            queue.push_front(heading);
        }
        if !part.is_empty() {
            parts.push(part);
        }
    }
    parts
}

struct Splitter<'a> {
    form: &'a dyn PostMeasure,
}

/// The pieces of a block: what fits now, and what comes later.
struct BlockHalves {
    head: Option<Block>,
    rest: VecDeque<Block>,
}

impl BlockHalves {
    fn none(block: Block) -> Self {
        Self {
            head: None,
            rest: VecDeque::from([block]),
        }
    }

    /// Pieces of which the first goes into this post.
    fn of(pieces: impl IntoIterator<Item = Option<Block>>) -> Self {
        let mut pieces = pieces.into_iter();
        Self {
            head: pieces.next().flatten(),
            rest: pieces.flatten().collect(),
        }
    }
}

impl Splitter<'_> {
    /// Takes from the front what fits `room`. If `is_fresh`, the room is a whole post's (`full`, less
    /// what the containers take) and something is taken.
    fn take(
        &self,
        queue: &mut VecDeque<Block>,
        place: &Surroundings,
        room: PostCost,
        full: PostCost,
        is_fresh: bool,
    ) -> Vec<Block> {
        let mut taken: Vec<Block> = Vec::new();
        let mut left = room;
        let mut replaced = 0;
        while let Some(block) = queue.pop_front() {
            let separator = PostCost {
                length: if taken.is_empty() {
                    0
                } else {
                    self.form.separator_length(place)
                },
                count: 0,
            };
            let space = left.minus(separator);
            let cost = self.form.block_cost(&block, place, space);
            if separator.length <= left.length && cost.is_within(space) {
                left = space.minus(cost);
                taken.push(block);
                continue;
            }
            let must = is_fresh && taken.is_empty();
            let is_half_full = left.length * 2 <= full.length || left.count * 2 <= full.count;
            if !must && (is_half_full || space.length < PIECE_MIN) {
                queue.push_front(block);
                break;
            }
            let BlockHalves { head, rest } = self.split(block, place, space, full, must);
            // The block was replaced by smaller ones: they are tried next.
            let is_replaced = head.is_none() && must;
            put_before(queue, rest);
            taken.extend(head);
            replaced += 1;
            if is_replaced && replaced > REPLACED_MAX {
                // The platform's own last resort cuts it.
                taken.extend(queue.pop_front());
            } else if is_replaced {
                continue;
            }
            break;
        }
        taken
    }

    fn split(
        &self,
        block: Block,
        place: &Surroundings,
        space: PostCost,
        full: PostCost,
        must: bool,
    ) -> BlockHalves {
        match block {
            Block::Paragraph(runs) => {
                let block = Block::Paragraph;
                let pieces = cut_runs(&self.cutting(place, &runs, &block), space, full);
                BlockHalves::of(pieces.into_iter().map(|runs| filled(runs, block)))
            }
            Block::Heading { level, content } => {
                // Room for the marks that make it a heading.
                let marks = self.form.block_cost(
                    &Block::Heading {
                        level,
                        content: vec![StyledRun::plain("x")],
                    },
                    place,
                    full,
                );
                // The platform may count each run of a heading as an entity.
                let half = |room: PostCost| PostCost {
                    count: room.count / 2,
                    ..room.minus(marks)
                };
                let heading = |content| Block::Heading { level, content };
                let cutting = self.cutting(place, &content, &heading);
                let pieces = cut_runs(&cutting, half(space), half(full));
                BlockHalves::of(pieces.into_iter().map(|runs| filled(runs, heading)))
            }
            Block::Code { language, text } => self.split_code(&language, &text, place, space, full),
            Block::Quote(blocks) => self.split_quote(blocks, place, space, full, must),
            Block::List { start, items } => self.split_list(start, items, place, space, full, must),
            Block::Table(table) => self.split_table(table, place, space, must),
            Block::Rule => BlockHalves::none(Block::Rule),
        }
    }

    fn cutting<'c>(
        &'c self,
        place: &'c Surroundings,
        runs: &'c [StyledRun],
        block: &'c dyn Fn(Vec<StyledRun>) -> Block,
    ) -> Cutting<'c> {
        Cutting {
            form: self.form,
            place,
            runs,
            block,
        }
    }

    /// Pieces of whole lines, where those fit.
    fn split_code(
        &self,
        language: &str,
        text: &str,
        place: &Surroundings,
        space: PostCost,
        full: PostCost,
    ) -> BlockHalves {
        let code = |text: &str| Block::Code {
            language: language.to_owned(),
            text: text.to_owned(),
        };
        looked_at(text.len());
        let longest_ticks = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
        // The fences, which must be longer than any in the text.
        let marks = self.form.block_cost(&code("x"), place, full);
        let fences = PostCost {
            length: marks.length + 2 * longest_ticks.min(full.length / 8),
            count: marks.count,
        };
        let (first, others) = (space.minus(fences), full.minus(fences));
        let mut pieces = Vec::new();
        let mut room = first.length;
        if first.count < 1 || room < PIECE_MIN.min(others.length) {
            pieces.push(None);
            room = others.length;
        }
        let mut start = 0;
        while start < text.len() {
            let end = start + self.code_cut(&text[start..], place, room.max(1));
            let piece = text[start..end].trim_end_matches('\n');
            if !piece.trim().is_empty() {
                pieces.push(Some(code(piece)));
            }
            start = end;
            room = others.length;
        }
        BlockHalves::of(pieces)
    }

    /// Where to cut code so that the first piece is within `room`: behind a line, else a grapheme.
    fn code_cut(&self, text: &str, place: &Surroundings, room: usize) -> usize {
        use unicode_segmentation::UnicodeSegmentation as _;
        let mut length = 0;
        let mut window = text.len();
        let mut line_end = 0;
        for (at, c) in text.char_indices() {
            looked_at(1);
            length += self.form.code_length(c, place);
            if length > room {
                window = at;
                break;
            }
            if c == '\n' {
                line_end = at + 1;
            }
        }
        if window == text.len() || line_end * 4 > window {
            return if window == text.len() {
                window
            } else {
                line_end
            };
        }
        // One character further, so that a grapheme that reaches across the window is seen; not to the end of a
        // grapheme that may be the whole text.
        let next = text[window..].chars().next().map_or(0, char::len_utf8);
        let boundaries = text[..window + next]
            .grapheme_indices(true)
            .map(|(at, _)| at);
        let whole = boundaries
            .take_while(|at| *at <= window)
            .last()
            .unwrap_or(0);
        let first = text.chars().next().map_or(text.len(), char::len_utf8);
        if whole > 0 { whole } else { window.max(first) }
    }

    /// The room that containers leave, and the surroundings inside them.
    fn inside(
        &self,
        container: Container,
        place: &Surroundings,
        lines: usize,
    ) -> (Surroundings, PostCost) {
        let prefix = self.form.prefix_length(container);
        let inner = Surroundings {
            prefix_length: place.prefix_length + prefix,
            is_quoted: place.is_quoted || container == Container::Quote,
            is_listed: place.is_listed || container == Container::Item,
        };
        let overhead = PostCost {
            length: prefix * lines + self.form.separator_length(place),
            count: usize::from(container == Container::Quote),
        };
        (inner, overhead)
    }

    fn split_quote(
        &self,
        mut blocks: VecDeque<Block>,
        place: &Surroundings,
        space: PostCost,
        full: PostCost,
        must: bool,
    ) -> BlockHalves {
        let (inner, overhead) = self.inside(Container::Quote, place, 2);
        let inner_full = full.minus(overhead);
        if inner_full.length < PIECE_MIN || inner_full.count == 0 {
            // Too narrow for a quotation: its content is shown without it.
            return BlockHalves {
                head: None,
                rest: blocks,
            };
        }
        let head = self.take(&mut blocks, &inner, space.minus(overhead), inner_full, must);
        let rest = (!blocks.is_empty()).then_some(Block::Quote(blocks));
        let head = (!head.is_empty()).then(|| Block::Quote(head.into()));
        BlockHalves {
            head,
            rest: rest.into_iter().collect(),
        }
    }

    fn split_list(
        &self,
        start: Option<u64>,
        mut items: VecDeque<Item>,
        place: &Surroundings,
        space: PostCost,
        full: PostCost,
        must: bool,
    ) -> BlockHalves {
        let mut head: VecDeque<Item> = VecDeque::new();
        let mut left = space;
        let mut hoisted = VecDeque::new();
        while let Some(item) = items.pop_front() {
            let number = start.map(|start| start.saturating_add(head.len() as u64));
            let alone = Block::List {
                start: number,
                items: VecDeque::from([item]),
            };
            let separator = PostCost {
                length: self.form.separator_length(place),
                count: 0,
            };
            let room = left.minus(separator);
            let cost = self.form.block_cost(&alone, place, room);
            let Block::List { items: mut one, .. } = alone else {
                break;
            };
            let Some(item) = one.pop_front() else { break };
            if cost.is_within(room) && separator.length <= left.length {
                left = room.minus(cost);
                head.push_back(item);
                continue;
            }
            let is_good_end = left.length * 2 <= full.length || left.count * 2 <= full.count;
            if !head.is_empty() && (is_good_end || room.length < PIECE_MIN) {
                items.push_front(item);
                break;
            }
            let must = must && head.is_empty();
            match self.split_item(item, place, room, full, must) {
                Ok((first, rest)) => {
                    head.push_back(first);
                    hoisted = rest;
                }
                Err(item) if must => {
                    // Too narrow for a list: its content is shown without it.
                    hoisted = item.blocks;
                }
                Err(item) => items.push_front(item),
            }
            break;
        }
        let next = start.map(|start| start.saturating_add(head.len() as u64));
        let mut rest = hoisted;
        if !items.is_empty() {
            rest.push_back(Block::List { start: next, items });
        }
        let head = (!head.is_empty()).then_some(Block::List { start, items: head });
        BlockHalves { head, rest }
    }

    /// The beginning of an item that fits, and its blocks that don't; the item if nothing fits.
    fn split_item(
        &self,
        item: Item,
        place: &Surroundings,
        room: PostCost,
        full: PostCost,
        must: bool,
    ) -> Result<(Item, VecDeque<Block>), Item> {
        let (inner, overhead) = self.inside(Container::Item, place, 3);
        let inner_full = full.minus(overhead);
        if inner_full.length < PIECE_MIN {
            return Err(item);
        }
        let Item { task, mut blocks } = item;
        let head = self.take(&mut blocks, &inner, room.minus(overhead), inner_full, must);
        if head.is_empty() {
            return Err(Item { task, blocks });
        }
        let first = Item {
            task,
            blocks: head.into(),
        };
        Ok((first, blocks))
    }

    /// The table, and whether it fits.
    fn fitting(&self, table: Table, place: &Surroundings, space: PostCost) -> (Table, bool) {
        let block = Block::Table(table);
        let fits = self.form.block_cost(&block, place, space).is_within(space);
        match block {
            Block::Table(table) => (table, fits),
            _ => (Table::default(), false),
        }
    }

    fn split_table(
        &self,
        mut table: Table,
        place: &Surroundings,
        space: PostCost,
        must: bool,
    ) -> BlockHalves {
        let head = Table {
            aligns: table.aligns.clone(),
            head: table.head.clone(),
            rows: VecDeque::new(),
        };
        let (mut now, head_fits) = self.fitting(head, place, space);
        let mut widths = Vec::new();
        widths_add(&mut widths, &now.head);
        while head_fits && let Some(row) = table.rows.pop_front() {
            looked_at(widths.len());
            let mut wider = widths.clone();
            widths_add(&mut wider, &row);
            // The head, the line under it, the row itself, and the fences.
            let bound = row_length(&wider) * (now.rows.len() + 3) + TABLE_MARKS;
            if bound > space.length && !now.rows.is_empty() {
                table.rows.push_front(row);
                break;
            }
            now.rows.push_back(row);
            if bound > space.length {
                // It is the only row, so its exact length decides: the bound may be too high.
                let fits;
                (now, fits) = self.fitting(now, place, space);
                if !fits {
                    table.rows.extend(now.rows.pop_back());
                    table.rows.rotate_right(1);
                }
                break;
            }
            widths = wider;
        }
        if now.rows.is_empty() {
            if !must {
                return BlockHalves::none(Block::Table(table));
            }
            return BlockHalves {
                head: None,
                rest: rows_as_text(table),
            };
        }
        let rest = (!table.rows.is_empty()).then_some(Block::Table(table));
        BlockHalves {
            head: Some(Block::Table(now)),
            rest: rest.into_iter().collect(),
        }
    }
}

/// Puts blocks before those of a queue, moving the fewer of the two.
fn put_before(queue: &mut VecDeque<Block>, mut blocks: VecDeque<Block>) {
    if blocks.len() > queue.len() {
        blocks.append(queue);
        *queue = blocks;
    } else {
        while let Some(block) = blocks.pop_back() {
            queue.push_front(block);
        }
    }
}

fn filled(runs: Vec<StyledRun>, block: impl Fn(Vec<StyledRun>) -> Block) -> Option<Block> {
    (!runs.is_empty()).then(|| block(runs))
}

/// A table of which not even one row fits a post, as lines: the head and one row, then the table of the
/// other rows again.
fn rows_as_text(mut table: Table) -> VecDeque<Block> {
    let mut rest = VecDeque::new();
    let first = table.rows.pop_front();
    for row in std::iter::once(table.head.clone()).chain(first) {
        let mut line = Vec::new();
        for (n, cell) in row.into_iter().enumerate() {
            push_run(&mut line, StyledRun::plain(if n == 0 { "" } else { " | " }));
            line.extend(cell);
        }
        let line = super::parse::trimmed(line);
        rest.extend(filled(line, Block::Paragraph));
    }
    if !table.rows.is_empty() {
        rest.push_back(Block::Table(table));
    }
    rest
}
