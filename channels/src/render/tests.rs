#![allow(clippy::unwrap_used)]

//! What holds for any input: no words are lost, and the work grows with the input.

use std::cell::Cell;
use vocative_contract::people::{People, Person};

use proptest::prelude::*;

use super::samples::{generated, pathological, seeds};
use super::tree::plain_text;
use super::*;

/// Counts a character as one, and what it is asked.
struct Narrow {
    max: usize,
    asked: Cell<usize>,
}

impl Narrow {
    fn new(max: usize) -> Self {
        Self {
            max,
            asked: Cell::new(0),
        }
    }

    fn cost(&self, block: &Block, room: PostCost) -> PostCost {
        // As a renderer does: no further than the room goes.
        let mut length = 0;
        match block {
            Block::Quote(blocks) => self.sum(&mut length, blocks.iter(), room),
            Block::List { items, .. } => {
                self.sum(
                    &mut length,
                    items.iter().flat_map(|item| &item.blocks),
                    room,
                );
                length = items.len().min(room.length).saturating_add(length);
            }
            Block::Table(table) => match aligned(table, room.length) {
                Some(text) => length = text.chars().count(),
                None => length = usize::MAX,
            },
            Block::Code { text, .. } => length = text.chars().take(room.length + 1).count(),
            Block::Paragraph(runs) | Block::Heading { content: runs, .. } => {
                let chars = runs.iter().flat_map(|run| run.text.chars());
                length = chars.take(room.length + 1).count();
            }
            Block::Rule => length = 1,
        }
        self.asked.set(self.asked.get() + length.min(room.length));
        PostCost { length, count: 0 }
    }

    fn sum<'a>(&self, length: &mut usize, blocks: impl Iterator<Item = &'a Block>, room: PostCost) {
        for block in blocks {
            if *length > room.length {
                break;
            }
            let left = PostCost {
                length: room.length - *length,
                count: room.count,
            };
            *length = length
                .saturating_add(self.cost(block, left).length)
                .saturating_add(1);
        }
    }
}

impl PostMeasure for Narrow {
    fn room(&self) -> PostCost {
        PostCost {
            length: self.max,
            count: 100,
        }
    }

    fn block_cost(&self, block: &Block, _place: &Surroundings, room: PostCost) -> PostCost {
        self.cost(block, room)
    }

    fn run_cost(&self, _run: &StyledRun, _place: &Surroundings) -> PostCost {
        PostCost::default()
    }

    fn char_length(&self, _c: char, _place: &Surroundings) -> usize {
        self.asked.set(self.asked.get() + 1);
        1
    }

    fn code_length(&self, c: char, place: &Surroundings) -> usize {
        self.char_length(c, place)
    }

    fn prefix_length(&self, _container: Container) -> usize {
        1
    }

    fn separator_length(&self, _place: &Surroundings) -> usize {
        1
    }
}

fn parts(text: &str, max: usize) -> Vec<Vec<Block>> {
    parts_of(&Narrow::new(max), parsed(text, &People::nobody()))
}

/// What is said, without the addresses of links, which only some places tell.
fn words<'a>(blocks: impl IntoIterator<Item = &'a Block>) -> String {
    let mut blocks: Vec<Block> = blocks.into_iter().cloned().collect();
    for block in &mut blocks {
        block.each_run(&mut |run| run.link = None);
    }
    let text = plain_text(&blocks);
    text.chars()
        .filter(|c| !c.is_whitespace() && *c != '|')
        .collect()
}

fn has_table(block: &Block) -> bool {
    match block {
        Block::Table(_) => true,
        Block::Quote(blocks) => blocks.iter().any(has_table),
        Block::List { items, .. } => items.iter().flat_map(|item| &item.blocks).any(has_table),
        _ => false,
    }
}

/// Whether all of `wanted` is in `text`, in order.
fn is_within(wanted: &str, text: &str) -> bool {
    let mut chars = text.chars();
    wanted.chars().all(|c| chars.any(|it| it == c))
}

fn check_words(text: &str, max: usize) {
    let whole = parsed(text, &People::nobody());
    let parts = parts(text, max);
    assert!(parts.iter().all(|part| !part.is_empty()));
    let (wanted, got) = (words(&whole), words(parts.iter().flatten()));
    if whole.iter().any(has_table) {
        assert!(is_within(&wanted, &got), "{text}");
    } else {
        assert_eq!(wanted, got, "{text}");
    }
}

#[test]
fn generated_texts_lose_no_word() {
    for seed in 0..seeds() {
        check_words(&generated(seed), 300);
    }
}

#[test]
fn the_work_grows_with_the_text() {
    let size = 1 << 17;
    for (name, text) in pathological(size) {
        let form = Narrow::new(4_000);
        let blocks = parsed(&text, &People::nobody());
        let parts = parts_of(&form, blocks);
        let work = form.asked.get();
        // Containers are walked once for each level.
        assert!(
            work <= 60 * (text.len() + 4_000),
            "{name}: {work} for {}",
            text.len()
        );
        assert!(
            parts.len() <= text.len() / 500 + 20,
            "{name}: {} parts",
            parts.len()
        );
        let bytes: usize = parts.iter().map(|part| plain_text(part).len()).sum();
        assert!(bytes <= 6 * text.len() + 1_000, "{name}: {bytes} bytes");
    }
}

/// Many pieces of one paragraph: each is made from its own text, not from all of it. Linear work takes a
/// second or so, quadratic work many minutes.
#[test]
fn many_addresses_and_mentions_in_one_paragraph_take_no_time() {
    let people = People::known((0..200).map(|n| Person {
        name: if n == 0 {
            "Ann".to_owned()
        } else {
            format!("Ann {n}")
        },
        id: format!("U{n}"),
    }));
    let begun = std::time::Instant::now();
    for unit in ["https://e.org/x ", "@Ann "] {
        let blocks = parsed(&unit.repeat((1 << 20) / unit.len()), &people);
        let [Block::Paragraph(runs)] = blocks.as_slice() else {
            panic!("{unit}");
        };
        assert!(runs.len() > 100_000, "{}", runs.len());
    }
    let took = begun.elapsed();
    assert!(took.as_secs() < 60, "{took:?}");
}

/// Many pieces of many runs: what comes after a piece is not put together for each of them.
#[test]
fn a_paragraph_of_many_styles_is_cut_in_no_time() {
    let begun = std::time::Instant::now();
    let unit = "**a `b` c** ";
    let parts = parts(&unit.repeat((1 << 20) / unit.len()), 300);
    assert!(parts.len() > 1_500, "{}", parts.len());
    let took = begun.elapsed();
    assert!(took.as_secs() < 60, "{took:?}");
}

#[test]
fn long_blocks_are_cut_into_blocks_of_their_kind() {
    let rows = "| one | two |\n".repeat(20);
    let text = format!(
        "# Head\n\n```rust\n{}```\n\n| a | b |\n|---|---|\n{rows}\n5. first\n6. {}\n7. last\n",
        "let line = 1;\n".repeat(12),
        "word ".repeat(30),
    );
    let parts = parts(&text, 120);
    let kinds: Vec<String> = parts
        .iter()
        .map(|part| {
            let kinds: Vec<String> = part
                .iter()
                .map(|block| match block {
                    Block::Code { language, text } => {
                        format!("{language} of {} lines", text.lines().count())
                    }
                    Block::Table(table) => format!(
                        "{} over {} rows",
                        plain_text([&Block::Paragraph(table.head[0].clone())]),
                        table.rows.len()
                    ),
                    Block::List { start, items } => {
                        format!("list from {start:?} of {}", items.len())
                    }
                    Block::Heading { .. } => "heading".to_owned(),
                    _ => "text".to_owned(),
                })
                .collect();
            kinds.join(", ")
        })
        .collect();
    insta::assert_snapshot!(kinds.join("\n"), @r"
    heading, rust of 8 lines
    rust of 4 lines, a over 1 rows
    a over 6 rows
    a over 6 rows
    a over 7 rows
    list from Some(5) of 2
    text, list from Some(7) of 1
    ");
}

#[test]
fn a_paragraph_is_cut_at_lines_sentences_and_words() {
    let cut =
        |text: &str, max| -> Vec<String> { parts(text, max).iter().map(plain_text).collect() };
    assert_eq!(
        cut("One two. Three four five six seven", 20),
        ["One two. Three four", "five six seven"]
    );
    assert_eq!(
        cut("One two three. Four five six seven", 20),
        ["One two three.", "Four five six seven"]
    );
    assert_eq!(
        cut("One two three\nfour. Five six seven", 20),
        ["One two three", "four. Five six seven"]
    );
    assert_eq!(
        cut("see [the long label](https://e.org) here", 17),
        ["see", "the long label", "here"]
    );
    assert_eq!(
        cut("ab `code with words` b", 16),
        ["ab", "code with words", "b"]
    );
    let family = "👨‍👩‍👧";
    let families = cut(&family.repeat(30), 64);
    assert!(
        families.len() > 1 && families.iter().all(|part| part.chars().count() % 5 == 0),
        "{families:?}"
    );
}

proptest! {
    #[test]
    fn no_input_loses_a_word(text in "(\\PC|[\n\t *_`~>|#<@.-]){0,400}", max in 64_usize..400) {
        check_words(&text, max);
    }
}
