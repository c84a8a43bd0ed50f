//! Makes new inputs of known ones, the same for the same seed.
//!
//! Half of the work knows JSON: fields are dropped, get another type, are nested deep, repeated, swapped
//! with those of another input, numbers become huge, strings get what parsers stumble over (lone
//! surrogates too, which no JSON writer writes). The other half knows lines and bytes only.

use serde_json::{Map, Value};

use crate::corpus::Corpus;
use crate::random::Random;

/// No input is longer, in bytes.
pub const INPUT_MAX_BYTES: usize = 64 << 10;

/// JSON of more values is not changed further.
const VALUES_MAX: usize = 4_000;

/// Stands for a lone surrogate until the JSON is written.
const SURROGATE: char = '\u{e0d8}';
/// Stands for a number that does not fit any type.
const HUGE: &str = "\u{e0d9}";

/// What parsers of texts, marks, names and settings stumble over.
const TOKENS: &[&str] = &[
    "",
    " ",
    "\n",
    "\r\n",
    "\t",
    "\0",
    "\u{1b}[2J",
    "\u{202e}",
    "\u{2028}",
    "\u{feff}",
    "\u{fffd}",
    "\u{fff9}U1\u{fffb}",
    "\u{fff9}",
    "\u{fffb}",
    "e\u{301}\u{301}",
    "👍",
    "👨\u{200d}👩\u{200d}👧",
    "<@U1>",
    "<@UBOT>",
    "<@",
    "<!here>",
    "<!subteam^S1|@ops>",
    "<!date^99999999999999^{date}|>",
    "<#C1|general>",
    "<https://a.b|c>",
    "<mailto:a@b>",
    "<",
    ">",
    "&amp;",
    "&amp;lt;",
    "&",
    "|",
    "*",
    "**",
    "*a*",
    "_",
    "~",
    "`",
    "```",
    "```a```",
    "*a _b ~c",
    "[a](b)",
    "](",
    "> ",
    "# ",
    "- ",
    "/ask@team_bot",
    "/stop",
    "@kael",
    "kael, ",
    "hey ops: ",
    "@team_bot",
    "stop",
    "{{agent}}",
    "{{",
    "}}",
    "[photo] ",
    "\"",
    "'",
    "\\",
    "\\u0000",
    "\\ud800",
    "\"\"\"",
    "[[",
    "[a.b]",
    "= ",
    "#",
    "env:X",
    "credential:",
    "file:/x",
    "C:\\",
    "../",
    "*\"",
    "NEAR(a b)",
    "AND",
    "OR NOT",
    "a*",
    "-a",
    "a:b",
    "(",
    "^a",
    "null",
    "true",
    "0",
    "-1",
    "1e400",
    "NaN",
    "inf",
    "0x10",
    "1_000",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551616",
    "1763712000.000100",
    "99999999999999999999.999999",
    "2026-06-15T12:00:00Z",
    "+262143-12-31T23:59:59Z",
    "é",
    "ß",
    "日本",
];

/// A generator of inputs.
#[derive(Clone, Debug)]
pub struct Mutator {
    random: Random,
}

impl Mutator {
    /// A generator for that seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
        }
    }

    /// The next input.
    ///
    /// # Panics
    /// If the corpus is empty.
    pub fn input(&mut self, corpus: &Corpus) -> Vec<u8> {
        let seed = corpus.pick(&mut self.random);
        let mut bytes = match &seed.json {
            Some((at, value)) if !self.random.one_in(3) => {
                let mut value = value.clone();
                for _ in 0..=self.few() {
                    if size(&value) < VALUES_MAX {
                        self.change_json(&mut value, corpus);
                    }
                }
                let mut bytes = seed.bytes[..*at].to_vec();
                bytes.extend(self.written(&value));
                if !self.random.one_in(8) {
                    bytes.truncate(INPUT_MAX_BYTES);
                    return bytes;
                }
                bytes
            }
            _ => seed.bytes.clone(),
        };
        for _ in 0..=self.few() {
            if self.random.one_in(3) {
                self.change_lines(&mut bytes);
            } else {
                self.change_bytes(&mut bytes, corpus);
            }
        }
        bytes.truncate(INPUT_MAX_BYTES);
        bytes
    }

    /// Mostly none, seldom many.
    fn few(&mut self) -> usize {
        let most = *self.random.pick(&[1, 2, 4, 12]);
        self.random.below(most)
    }

    fn written(&mut self, value: &Value) -> Vec<u8> {
        let mut text = if self.random.one_in(4) {
            serde_json::to_string_pretty(value).unwrap_or_default()
        } else {
            value.to_string()
        };
        if text.contains(HUGE) {
            let huge =
                *self
                    .random
                    .pick(&["1e400", "-1e999", "123456789012345678901234567890", "-0"]);
            text = text.replace(&format!("\"{HUGE}\""), huge);
        }
        if text.contains(SURROGATE) {
            let lone =
                *self
                    .random
                    .pick(&["\\ud800", "\\udc00", "\\udfff\\ud83d", "\\ud83d\\ude00"]);
            text = text.replace(SURROGATE, lone);
        }
        text.into_bytes()
    }

    fn change_json(&mut self, root: &mut Value, corpus: &Corpus) {
        let other = self.other_json(corpus);
        let at = self.random.below(size(root));
        let random = &mut self.random;
        let mut at = at;
        visit(root, &mut at, &mut |value| {
            change_value(value, other.as_ref(), random);
        });
    }

    /// A value from somewhere in another input.
    fn other_json(&mut self, corpus: &Corpus) -> Option<Value> {
        let (_, root) = corpus.pick(&mut self.random).json.as_ref()?;
        let mut root = root.clone();
        let (mut at, mut found) = (self.random.below(size(&root)), None);
        visit(&mut root, &mut at, &mut |value| found = Some(value.take()));
        found
    }

    fn change_lines(&mut self, bytes: &mut Vec<u8>) {
        let mut lines: Vec<Vec<u8>> = bytes
            .split(|byte| *byte == b'\n')
            .map(<[u8]>::to_vec)
            .collect();
        let (at, to) = (
            self.random.below(lines.len()),
            self.random.below(lines.len()),
        );
        match self.random.below(6) {
            0 => drop(lines.remove(at)),
            1 => lines.swap(at, to),
            2 => lines.insert(to, lines[at].clone()),
            3 => lines.truncate(at + 1),
            4 => {
                // Another value behind a key.
                let keep = lines[at]
                    .iter()
                    .position(|byte| *byte == b'=')
                    .map_or(0, |at| at + 1);
                lines[at].truncate(keep);
                lines[at].extend(self.random.pick(TOKENS).as_bytes());
            }
            _ => lines.insert(at, self.random.pick(TOKENS).as_bytes().to_vec()),
        }
        *bytes = lines.join(&b'\n');
    }

    fn change_bytes(&mut self, bytes: &mut Vec<u8>, corpus: &Corpus) {
        let at = self.random.below(bytes.len() + 1);
        let end = (at + 1 + self.random.below(32)).min(bytes.len());
        match self.random.below(8) {
            0 if at < end => bytes[at] ^= 1 << self.random.below(8),
            1 if at < end => bytes[at] = *self.random.pick(b"\0\x7f\xff\"\\{}[],:<>&*_`0-9\n"),
            2 if at < end => drop(bytes.drain(at..end)),
            3 if at < end => {
                let times = 1 << self.random.below(9);
                let piece = bytes[at..end].repeat(times);
                bytes.splice(at..at, piece);
            }
            4 => {
                let other = &corpus.pick(&mut self.random).bytes;
                let from = self.random.below(other.len() + 1);
                bytes.truncate(at);
                bytes.extend(&other[from..]);
            }
            5 => bytes.truncate(at),
            6 => {
                let token = self.random.pick(TOKENS).repeat(1 << self.random.below(12));
                bytes.splice(at..at, token.into_bytes());
            }
            _ => {
                let token = self.random.pick(TOKENS).as_bytes();
                bytes.splice(at..at, token.iter().copied());
            }
        }
    }
}

/// How many values there are in a value, itself included.
fn size(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(fields) => fields.values().map(size).sum(),
        _ => 0,
    }
}

/// Shows the value at that place, counted from the root.
fn visit(value: &mut Value, at: &mut usize, show: &mut dyn FnMut(&mut Value)) -> bool {
    if *at == 0 {
        show(value);
        return true;
    }
    *at -= 1;
    match value {
        Value::Array(items) => items.iter_mut().any(|item| visit(item, at, show)),
        Value::Object(fields) => fields.values_mut().any(|item| visit(item, at, show)),
        _ => false,
    }
}

fn change_value(value: &mut Value, other: Option<&Value>, random: &mut Random) {
    match random.below(9) {
        0 => *value = Value::Null,
        1 => *value = plain(random),
        2 => *value = Value::String(HUGE.to_owned()),
        3 => {
            if let Some(other) = other {
                *value = other.clone();
            }
        }
        4 => *value = nested(value.take(), random),
        5 if size(value) < VALUES_MAX / 16 => {
            *value = Value::Array(vec![value.take(); 1 << random.below(5)]);
        }
        _ => change_inside(value, other, random),
    }
}

fn change_inside(value: &mut Value, other: Option<&Value>, random: &mut Random) {
    match value {
        Value::String(text) => change_text(text, random),
        Value::Number(_) => *value = number(random),
        Value::Array(items) if !items.is_empty() => {
            let at = random.below(items.len());
            match random.below(4) {
                0 => drop(items.remove(at)),
                1 => items.push(other.cloned().unwrap_or_default()),
                2 if size(&items[at]) < VALUES_MAX / 128 => {
                    let again = vec![items[at].clone(); 1 << random.below(8)];
                    items.splice(at..at, again);
                }
                _ => items.reverse(),
            }
        }
        Value::Object(fields) => change_fields(fields, other, random),
        _ => *value = plain(random),
    }
}

fn change_fields(fields: &mut Map<String, Value>, other: Option<&Value>, random: &mut Random) {
    let keys: Vec<String> = fields.keys().cloned().collect();
    if keys.is_empty() {
        fields.insert((*random.pick(TOKENS)).to_owned(), plain(random));
        return;
    }
    let (key, second) = (random.pick(&keys).clone(), random.pick(&keys).clone());
    match random.below(4) {
        0 => drop(fields.remove(&key)),
        1 => {
            let (one, two) = (fields[&key].clone(), fields[&second].clone());
            fields.insert(key, two);
            fields.insert(second, one);
        }
        2 => {
            let renamed = fields.remove(&key).unwrap_or_default();
            fields.insert((*random.pick(TOKENS)).to_owned(), renamed);
        }
        _ => {
            if let Some(Value::Object(more)) = other {
                fields.extend(more.clone());
            }
        }
    }
}

fn change_text(text: &mut String, random: &mut Random) {
    let places: Vec<usize> = text
        .char_indices()
        .map(|(at, _)| at)
        .chain([text.len()])
        .collect();
    let (at, to) = (*random.pick(&places), *random.pick(&places));
    match random.below(6) {
        _ if text.len() > INPUT_MAX_BYTES / 2 => text.truncate(at),
        0 => text.insert(at, SURROGATE),
        1 => drop(text.drain(at.min(to)..at.max(to))),
        2 => text.insert_str(at, &random.pick(TOKENS).repeat(1 << random.below(11))),
        3 => *text = (*random.pick(TOKENS)).to_owned(),
        4 => {
            let piece = text[at.min(to)..at.max(to)].repeat(1 << random.below(6));
            text.insert_str(to, &piece);
        }
        _ => {
            let token: &&str = random.pick(TOKENS);
            text.insert_str(at, token);
        }
    }
}

/// A value inside many others.
fn nested(mut value: Value, random: &mut Random) -> Value {
    let key = match &value {
        Value::Object(fields) => fields.keys().next().cloned(),
        _ => None,
    };
    let keys = [
        "elements",
        "message",
        "text",
        "blocks",
        "items",
        "reply_to_message",
    ];
    let key = key.unwrap_or_else(|| (*random.pick(&keys)).to_owned());
    let kind = random.below(3);
    for depth in 0..1 << random.below(8) {
        value = match (kind, depth % 2) {
            (0, _) | (2, 0) => Value::Array(vec![value]),
            _ => Value::Object(Map::from_iter([(key.clone(), value)])),
        };
    }
    value
}

fn plain(random: &mut Random) -> Value {
    match random.below(6) {
        0 => Value::Null,
        1 => Value::Bool(random.one_in(2)),
        2 => Value::Array(Vec::new()),
        3 => Value::Object(Map::new()),
        4 => number(random),
        _ => Value::from(*random.pick(TOKENS)),
    }
}

fn number(random: &mut Random) -> Value {
    let whole = [
        0,
        1,
        -1,
        4_096,
        i64::MAX,
        i64::MIN,
        i64::from(i32::MAX),
        i64::from(u32::MAX),
        1_763_712_000,
    ];
    match random.below(4) {
        0 => Value::from(u64::MAX),
        1 => Value::from(*random.pick(&[0.5, -0.0, 1e308, 1e-320, 9e15, -1.5e9])),
        2 => Value::from(random.number().cast_signed()),
        _ => Value::from(*random.pick(&whole)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_inputs_and_they_differ() {
        let corpus = Corpus::read("slack_event").unwrap();
        let inputs = |seed| -> Vec<Vec<u8>> {
            let mut mutator = Mutator::new(seed);
            (0..200).map(|_| mutator.input(&corpus)).collect()
        };
        assert_eq!(inputs(1), inputs(1));
        let mut different = inputs(1);
        different.sort();
        different.dedup();
        assert!(different.len() > 150, "{}", different.len());
        let is_json = |bytes: &&Vec<u8>| serde_json::from_slice::<Value>(bytes).is_ok();
        assert!(different.iter().filter(is_json).count() > 50);
        assert!(different.iter().all(|input| input.len() <= INPUT_MAX_BYTES));
    }
}
