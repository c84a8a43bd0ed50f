//! What was said, as a small tree: blocks of runs.
//!
//! Runs are flat: each carries all that holds for its text. So a paragraph can be cut anywhere and both
//! halves are whole. Containers nest to a bounded depth ([`super::parse`]).

use std::collections::VecDeque;
use std::rc::Rc;

use vocative_contract::work::looked_at;

/// A block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Block {
    /// Text.
    Paragraph(Vec<StyledRun>),
    /// A heading; 1 is the highest level.
    Heading {
        /// 1 to 6.
        level: u8,
        /// One line.
        content: Vec<StyledRun>,
    },
    /// Preformatted text.
    Code {
        /// The language it is written in; empty if none was given.
        language: String,
        /// Without a line end at its end.
        text: String,
    },
    /// A quotation.
    Quote(VecDeque<Block>),
    /// A list.
    List {
        /// The first number; `None` for bullets.
        start: Option<u64>,
        /// At least one.
        items: VecDeque<Item>,
    },
    /// A table.
    Table(Table),
    /// A horizontal rule.
    Rule,
}

impl Block {
    /// Calls `change` with every run.
    pub(crate) fn each_run(&mut self, change: &mut dyn FnMut(&mut StyledRun)) {
        match self {
            Self::Paragraph(runs) | Self::Heading { content: runs, .. } => {
                runs.iter_mut().for_each(change);
            }
            Self::Quote(blocks) => blocks.iter_mut().for_each(|block| block.each_run(change)),
            Self::List { items, .. } => {
                let blocks = items.iter_mut().flat_map(|item| &mut item.blocks);
                blocks.for_each(|block| block.each_run(change));
            }
            Self::Table(table) => {
                let rows = std::iter::once(&mut table.head).chain(&mut table.rows);
                rows.flatten().flatten().for_each(change);
            }
            Self::Code { .. } | Self::Rule => {}
        }
    }
}

/// An item of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Item {
    /// Whether it is done, where it is a task.
    pub(crate) task: Option<bool>,
    /// What it holds.
    pub(crate) blocks: VecDeque<Block>,
}

/// A table. Rows may hold fewer cells than the head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Table {
    /// How each column is aligned.
    pub(crate) aligns: Vec<Align>,
    /// The head's cells.
    pub(crate) head: Vec<Vec<StyledRun>>,
    /// The rows' cells.
    pub(crate) rows: VecDeque<Vec<Vec<StyledRun>>>,
}

/// How a column is aligned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Align {
    /// Left.
    #[default]
    Left,
    /// Centred.
    Center,
    /// Right.
    Right,
}

/// A piece of text with all that holds for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StyledRun {
    /// The text; a line break is `\n`.
    pub(crate) text: String,
    /// Its styles.
    pub(crate) styles: Styles,
    /// Whether it is code: then its styles are ignored.
    pub(crate) is_code: bool,
    /// The address it links to; neighbours with the same address are one link.
    pub(crate) link: Option<Rc<str>>,
    /// The platform id of the person it mentions.
    pub(crate) mention: Option<Rc<str>>,
}

impl StyledRun {
    /// A run of text without any marks.
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// Whether everything but the text is the same.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.styles == other.styles
            && self.is_code == other.is_code
            && self.link == other.link
            && self.mention == other.mention
    }

    /// The same run with another text.
    pub(crate) fn with_text(&self, text: &str) -> Self {
        // Not a clone of the whole run: that would copy a text once for each of its pieces.
        Self {
            text: text.to_owned(),
            styles: self.styles,
            is_code: self.is_code,
            link: self.link.clone(),
            mention: self.mention.clone(),
        }
    }

    /// How many marks it has besides code: its styles, and a link whose text is not its own address.
    pub(crate) fn count_marks(&self) -> usize {
        let is_hidden = self.link.as_deref().is_some_and(|url| url != self.text);
        self.shown_styles().count() + usize::from(is_hidden)
    }

    /// The styles that count: none in code or on white space.
    pub(crate) fn shown_styles(&self) -> Styles {
        if self.is_code || self.text.trim().is_empty() {
            Styles::default()
        } else {
            self.styles
        }
    }
}

/// The styles of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Styles {
    /// Strong.
    pub(crate) bold: bool,
    /// Emphasised.
    pub(crate) italic: bool,
    /// Struck through.
    pub(crate) strike: bool,
    /// Covered until the reader reveals it.
    pub(crate) spoiler: bool,
}

impl Styles {
    /// The styles that both have.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            bold: self.bold && other.bold,
            italic: self.italic && other.italic,
            strike: self.strike && other.strike,
            spoiler: self.spoiler && other.spoiler,
        }
    }

    /// How many of the styles are set.
    pub(crate) fn count(self) -> usize {
        [self.bold, self.italic, self.strike, self.spoiler]
            .into_iter()
            .map(usize::from)
            .sum()
    }
}

/// Appends a run, or only its text to the last run if that has the same marks.
pub(crate) fn push_run(runs: &mut Vec<StyledRun>, run: StyledRun) {
    looked_at(run.text.len());
    match runs.last_mut() {
        Some(last) if last.is_like(&run) && run.mention.is_none() => last.text.push_str(&run.text),
        _ if run.text.is_empty() => {}
        _ => runs.push(run),
    }
}

/// The words of blocks, without marks, one block a line.
pub(crate) fn plain_text<'a>(blocks: impl IntoIterator<Item = &'a Block>) -> String {
    let mut out = String::new();
    for block in blocks {
        push_plain(&mut out, block);
    }
    out.truncate(out.trim_end_matches('\n').len());
    out
}

fn push_plain(out: &mut String, block: &Block) {
    match block {
        Block::Paragraph(runs) | Block::Heading { content: runs, .. } => push_line(out, runs),
        Block::Code { text, .. } => {
            looked_at(text.len());
            out.push_str(text);
            out.push('\n');
        }
        Block::Quote(blocks) => blocks.iter().for_each(|block| push_plain(out, block)),
        Block::List { items, .. } => {
            let blocks = items.iter().flat_map(|item| &item.blocks);
            blocks.for_each(|block| push_plain(out, block));
        }
        Block::Table(table) => {
            for row in std::iter::once(&table.head).chain(&table.rows) {
                for (n, cell) in row.iter().enumerate() {
                    out.push_str(if n == 0 { "" } else { " | " });
                    push_addressed(out, cell);
                }
                out.push('\n');
            }
        }
        Block::Rule => {}
    }
}

fn push_line(out: &mut String, runs: &[StyledRun]) {
    for run in runs {
        looked_at(run.text.len() + 1);
        out.push_str(&run.text);
    }
    out.push('\n');
}

/// Appends the words of runs; the address of a link stands behind its label, unless the label is the address.
pub(super) fn push_addressed(out: &mut String, runs: &[StyledRun]) {
    let mut label = out.len();
    for (n, run) in runs.iter().enumerate() {
        looked_at(run.text.len() + 1);
        let is_first = n == 0 || runs[n - 1].link != run.link;
        let is_last = runs.get(n + 1).is_none_or(|next| next.link != run.link);
        if is_first {
            label = out.len();
        }
        let is_covered = |run: Option<&StyledRun>| run.is_some_and(|run| run.styles.spoiler);
        let before = n.checked_sub(1).and_then(|n| runs.get(n));
        let cover = |other| {
            if is_covered(Some(run)) && !is_covered(other) {
                "||"
            } else {
                ""
            }
        };
        out.push_str(cover(before));
        out.push_str(&run.text);
        out.push_str(cover(runs.get(n + 1)));
        if let Some(url) = run.link.as_deref().filter(|_| is_last)
            && out[label..].trim() != url
        {
            out.push_str(&format!(" ({url})"));
        }
    }
}
