//! A tree as text alone, for places that know no marks: what notifications and screen readers say, and
//! what is posted where formatting is refused.
//!
//! Nothing that was said is lost: items keep their numbers, links their addresses, tables their columns.

use vocative_contract::work::looked_at;

use super::table::aligned;
use super::tree::{Block, Item, push_addressed};

/// Before each line of a quotation.
const QUOTE_MARK: &str = "> ";
/// A horizontal rule.
const RULE: &str = "———";

/// Blocks as text that reads well without marks; a blank line stands between two of them.
pub(crate) fn readable_text(blocks: &[Block]) -> String {
    let mut out = PlainWriter::default();
    out.push_blocks(blocks.iter(), "\n\n");
    out.text.truncate(out.text.trim_end().len());
    out.text
}

#[derive(Default)]
struct PlainWriter {
    text: String,
    /// What stands before each further line.
    prefix: String,
}

impl PlainWriter {
    fn push_lines(&mut self, text: &str) {
        looked_at(text.len());
        for (n, line) in text.split('\n').enumerate() {
            if n > 0 {
                self.break_line();
            }
            self.text.push_str(line);
        }
    }

    fn break_line(&mut self) {
        looked_at(self.prefix.len() + 1);
        self.text.push('\n');
        self.text.push_str(&self.prefix);
    }

    fn push_blocks<'a>(&mut self, blocks: impl Iterator<Item = &'a Block>, between: &str) {
        for (n, block) in blocks.enumerate() {
            if n > 0 {
                between.chars().for_each(|_| self.break_line());
            }
            self.push_block(block);
        }
    }

    fn push_block(&mut self, block: &Block) {
        match block {
            Block::Paragraph(runs) | Block::Heading { content: runs, .. } => {
                let mut words = String::new();
                push_addressed(&mut words, runs);
                self.push_lines(&words);
            }
            Block::Code { text, .. } => self.push_lines(text),
            Block::Quote(blocks) => self.within(QUOTE_MARK, QUOTE_MARK, |out| {
                out.push_blocks(blocks.iter(), "\n");
            }),
            Block::List { start, items } => {
                for (n, item) in items.iter().enumerate() {
                    if n > 0 {
                        self.break_line();
                    }
                    self.push_item(start.map(|start| start.saturating_add(n as u64)), item);
                }
            }
            Block::Table(table) => {
                let text = aligned(table, usize::MAX).unwrap_or_default();
                self.push_lines(&text);
            }
            Block::Rule => self.text.push_str(RULE),
        }
    }

    fn push_item(&mut self, number: Option<u64>, item: &Item) {
        let number = number.map(|number| format!("{number}. "));
        let task = item.task.map(|is_done| if is_done { "☑ " } else { "☐ " });
        let mark = match (&number, task) {
            (None, None) => "• ".to_owned(),
            _ => number.unwrap_or_default() + task.unwrap_or_default(),
        };
        self.within(&mark, "  ", |out| {
            out.push_blocks(item.blocks.iter(), "\n");
        });
    }

    /// Writes a container: its mark before the first line, and its further lines indented.
    fn within(&mut self, mark: &str, indent: &str, write: impl FnOnce(&mut Self)) {
        let outer = self.prefix.len();
        self.text.push_str(mark);
        self.prefix.push_str(indent);
        write(self);
        self.prefix.truncate(outer);
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse::parsed;
    use super::super::samples::{generated, pathological, seeds};
    use super::super::tree::plain_text;
    use super::*;
    use vocative_contract::people::People;

    fn readable(text: &str) -> String {
        readable_text(&parsed(text, &People::nobody()))
    }

    #[test]
    fn what_was_said_reads_without_marks() {
        insta::assert_snapshot!(
            readable("# Plan\n\nSee [the **docs**](https://e.org/a), https://e.org/b.\n\n7. seven\n8. eight\n   ```sh\n   ls\n   ```\n   - [x] done\n\n> said\n> > before\n\n| a | b |\n|---|--:|\n| 1 | [x](https://e.org) |\n\n---\n\n- end"),
            @r"
        Plan

        See the docs (https://e.org/a), https://e.org/b.

        7. seven
        8. eight
          ls
          ☑ done

        > said
        > > before

        a |                 b
        --|------------------
        1 | x (https://e.org)

        ———

        • end
        "
        );
    }

    #[test]
    fn no_word_is_lost_and_nothing_grows_much() {
        let letters = |text: &str| text.chars().filter(|c| c.is_alphabetic()).count();
        for seed in 0..seeds() {
            let blocks = parsed(&generated(seed), &People::nobody());
            let (bare, whole) = (plain_text(&blocks), readable_text(&blocks));
            assert!(letters(&whole) >= letters(&bare), "{bare}\n->\n{whole}");
        }
        for (name, text) in pathological(1 << 14) {
            let size = readable(&text).len();
            assert!(size <= 16 * text.len() + 100, "{name}: {size}");
        }
    }
}
