//! Sets of arguments that are hard to show, and a reader of shown arguments, independent of the code that shows them.

use serde_json::{Map, Number, Value};
use vocative_contract::card::CardText;

/// Pieces of strings: invisible characters, look-alikes, and what ends lines, quotations and cards.
const PIECES: [&str; 56] = [
    "refund",
    "120.00",
    "Ann",
    " ",
    "  ",
    "         ",
    "\n",
    "\n\n",
    "\n\n\n\n",
    "\r\n",
    "\t",
    "\0",
    "\u{7}",
    "\"",
    "\\",
    "\\u{41}",
    "\\n{2}",
    "\\s{3}",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "```",
    "`",
    "*bold*",
    "_",
    "~",
    "<!channel>",
    "<@U0ANN>",
    "@here",
    "@ann_dev",
    "/start",
    "#tag",
    "https://example.org/a?b=c&d",
    "\u{200B}",
    "\u{202E}",
    "\u{2066}",
    "\u{FEFF}",
    "\u{E0041}",
    "\u{A0}",
    "\u{3164}",
    "\u{2028}",
    "p\u{430}ypal",
    "\u{441}\u{43E}\u{441}\u{43E}",
    "Привет",
    "e\u{301}",
    "é",
    "\u{5D0}\u{5D1}\u{5D2}",
    "退款",
    "👩\u{200D}💻",
    "\u{FE0F}",
    "\u{FFF9}U1\u{FFFB}",
    "\u{10FFFF}",
    "…",
];

/// Random numbers, the same on every machine for one seed.
#[derive(Clone, Debug)]
struct Dice(u64);

impl Dice {
    /// A number below `max`.
    fn below(&mut self, max: u64) -> u64 {
        // Splitmix64.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % max
    }

    fn text(&mut self, pieces_max: u64) -> String {
        let pieces = self.below(pieces_max + 1);
        let text = (0..pieces).map(|_| match self.below(4) {
            0 => char::from_u32(u32::try_from(self.below(0x11_0000)).unwrap_or_default())
                .map_or_else(String::new, String::from),
            _ => {
                let piece = self.below(PIECES.len() as u64);
                PIECES[usize::try_from(piece).unwrap_or_default()].to_owned()
            }
        });
        text.collect()
    }

    fn number(&mut self) -> Number {
        match self.below(3) {
            0 => Number::from(self.below(u64::MAX)),
            1 => Number::from(-(i64::try_from(self.below(1 << 62)).unwrap_or_default())),
            _ => {
                let tenths = self.below(1 << 40) as f64 / 10.0;
                Number::from_f64(tenths).unwrap_or_else(|| Number::from(0))
            }
        }
    }

    fn value(&mut self, level: u64) -> Value {
        match self.below(if level > 2 { 6 } else { 9 }) {
            0 => Value::Null,
            1 => Value::Bool(self.below(2) == 0),
            2 => Value::Number(self.number()),
            3..=5 => Value::String(self.text(12)),
            6 => {
                let items = self.below(4);
                (0..items).map(|_| self.value(level + 1)).collect()
            }
            _ => Value::Object(self.map(4, level + 1)),
        }
    }

    fn map(&mut self, entries_max: u64, level: u64) -> Map<String, Value> {
        let entries = self.below(entries_max + 1);
        let names = ["amount", "to", "note", "path", "argv"];
        let entry = |dice: &mut Self| {
            let name = match dice.below(3) {
                0 => dice.text(3),
                _ => names[usize::try_from(dice.below(5)).unwrap_or_default()].to_owned(),
            };
            (name, dice.value(level))
        };
        (0..entries).map(|_| entry(self)).collect()
    }
}

/// `count` sets of arguments, the same on every machine for one seed. One in ten is long, one in fifty empty.
#[must_use]
pub fn argument_sets(count: usize, seed: u64) -> Vec<Value> {
    let mut dice = Dice(seed);
    let set = |n: usize| {
        let mut map = dice.map(6, 0);
        if n.is_multiple_of(50) {
            map.clear();
        } else if map.is_empty() {
            map.insert("note".to_owned(), Value::String(dice.text(12)));
        }
        if n % 10 == 9 {
            let words = dice
                .text(12)
                .repeat(1 + usize::try_from(dice.below(200)).unwrap_or_default());
            map.insert("long".to_owned(), Value::String(words));
        }
        Value::Object(map)
    };
    (0..count).map(set).collect()
}

/// The arguments that the texts of a card show; `None` if they show none for certain.
#[must_use]
pub fn read_back(texts: &[CardText]) -> Option<Value> {
    if let [text] = texts
        && text.title == "all arguments"
    {
        return read_whole(&text.text);
    }
    let values = texts.iter().map(|text| {
        let name = match text.title.starts_with('"') {
            true => read_whole(&text.title)?.as_str()?.to_owned(),
            false => text.title.clone(),
        };
        Some((name, read_whole(&text.text)?))
    });
    let values: Option<Map<String, Value>> = values.collect();
    Some(Value::Object(values?))
}

fn read_whole(text: &str) -> Option<Value> {
    let mut reader = Reader { rest: text };
    let value = reader.value()?;
    reader.rest.is_empty().then_some(value)
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn take(&mut self, word: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(word)?;
        Some(())
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\n']);
    }

    fn value(&mut self) -> Option<Value> {
        match self.rest.chars().next()? {
            '"' => self.string().map(Value::String),
            '[' => {
                let mut list = Vec::new();
                self.items("[", "]", |reader| {
                    list.push(reader.value()?);
                    Some(())
                })?;
                Some(Value::Array(list))
            }
            '{' => {
                let mut map = Map::new();
                self.items("{", "}", |reader| {
                    let name = reader.string()?;
                    reader.take(": ")?;
                    map.insert(name, reader.value()?);
                    Some(())
                })?;
                Some(Value::Object(map))
            }
            _ => {
                let end = self.rest.find([',', ' ', '\n', ']', '}']);
                let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
                self.rest = rest;
                serde_json::from_str(word).ok()
            }
        }
    }

    fn items(
        &mut self,
        open: &str,
        close: &str,
        mut item: impl FnMut(&mut Self) -> Option<()>,
    ) -> Option<()> {
        self.take(open)?;
        self.skip_blanks();
        while self.take(close).is_none() {
            item(self)?;
            if self.take(",").is_some() {
                self.skip_blanks();
            } else {
                self.skip_blanks();
                return self.take(close);
            }
        }
        Some(())
    }

    fn string(&mut self) -> Option<String> {
        self.take("\"")?;
        let mut out = String::new();
        loop {
            let c = self.rest.chars().next()?;
            self.rest = &self.rest[c.len_utf8()..];
            match c {
                '"' => return Some(out),
                '\\' => self.written(&mut out)?,
                c => out.push(c),
            }
        }
    }

    fn written(&mut self, out: &mut String) -> Option<()> {
        let kind = self.rest.chars().next()?;
        self.rest = &self.rest[kind.len_utf8()..];
        match kind {
            '\\' | '"' => out.push(kind),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            'u' => out.push(char::from_u32(
                u32::from_str_radix(self.braced()?, 16).ok()?,
            )?),
            's' => out.push_str(&" ".repeat(self.braced()?.parse().ok()?)),
            'n' => out.push_str(&"\n".repeat(self.braced()?.parse().ok()?)),
            _ => return None,
        }
        Some(())
    }

    fn braced(&mut self) -> Option<&str> {
        self.take("{")?;
        let (inside, rest) = self.rest.split_once('}')?;
        self.rest = rest;
        Some(inside)
    }
}
