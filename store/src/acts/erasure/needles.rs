//! Finds many texts in one pass over bytes, ignoring ASCII case.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use vocative_contract::work::looked_at;

/// The shortest needle that is searched for, in bytes.
const KEY_BYTES: usize = 6;
/// The marker in place of erased words.
const CUT: &str = "[erased]";

/// A text to find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Needle {
    /// Lower case in ASCII.
    bytes: Vec<u8>,
    /// If set, the text is looked for only in these turns of ours.
    pub(super) only: Option<OursAfter>,
}

/// Our turns of a chat from a seq on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OursAfter {
    pub(super) chat: i64,
    pub(super) seq: i64,
}

/// Many texts to find.
#[derive(Clone, Debug, Default)]
pub(super) struct Needles {
    /// By their first bytes; each list in the order of their bytes.
    starts: HashMap<[u8; KEY_BYTES], Vec<Needle>>,
    /// One bit for each hash of a needle's first three bytes: most places are passed over here.
    first: Vec<u64>,
    longest: usize,
}

impl Needles {
    /// Needles for texts, with the forms that they take when stored escaped.
    pub(super) fn new(texts: impl IntoIterator<Item = (String, Option<OursAfter>)>) -> Self {
        let mut all = Self {
            first: vec![0; 1 << 10],
            ..Self::default()
        };
        let mut known = HashSet::new();
        for (text, only) in texts {
            for form in forms(&text) {
                let bytes = form.to_ascii_lowercase().into_bytes();
                if bytes.len() >= KEY_BYTES && known.insert(bytes.clone()) {
                    all.add(Needle { bytes, only });
                }
            }
        }
        for needles in all.starts.values_mut() {
            needles.sort_unstable_by(|one, other| one.bytes.cmp(&other.bytes));
        }
        all
    }

    fn add(&mut self, needle: Needle) {
        let key = needle.bytes[..KEY_BYTES]
            .try_into()
            .expect("a needle is longer than its key");
        let hash = first_hash(&needle.bytes);
        self.first[hash / 64] |= 1 << (hash % 64);
        self.longest = self.longest.max(needle.bytes.len());
        self.starts.entry(key).or_default().push(needle);
    }

    /// The length of the longest needle, in bytes.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    pub(super) fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Whether a text holds an accepted needle.
    pub(super) fn is_in(&self, text: &str, accept: impl Fn(&Needle) -> bool) -> bool {
        let lower = text.to_ascii_lowercase();
        self.next(lower.as_bytes(), 0, &accept).is_some()
    }

    /// How many needles the bytes hold; only those that begin in the first `within` bytes count.
    pub(super) fn count(&self, bytes: &[u8], within: usize) -> u64 {
        let lower = bytes.to_ascii_lowercase();
        let (mut at, mut count) = (0, 0);
        while let Some(found) = self.next(&lower, at, &|needle| needle.only.is_none()) {
            if found.start >= within {
                break;
            }
            count += 1;
            at = found.end;
        }
        count
    }

    /// The text without the needles that are looked for anywhere; `None` if it holds none.
    pub(super) fn cut(&self, text: &str) -> Option<String> {
        let lower = text.to_ascii_lowercase();
        let (mut at, mut out) = (0, String::new());
        while let Some(found) = self.next(lower.as_bytes(), at, &|needle| needle.only.is_none()) {
            out += &text[at..found.start];
            out += CUT;
            at = found.end;
        }
        (at > 0).then(|| out + &text[at..])
    }

    fn next(
        &self,
        lower: &[u8],
        from: usize,
        accept: &impl Fn(&Needle) -> bool,
    ) -> Option<Range<usize>> {
        if self.starts.is_empty() {
            return None;
        }
        let last = lower.len().checked_sub(KEY_BYTES)?;
        for at in from..=last {
            looked_at(1);
            let hash = first_hash(&lower[at..]);
            if self.first[hash / 64] & (1 << (hash % 64)) == 0 {
                continue;
            }
            let Some(here) = self.starts.get(&lower[at..at + KEY_BYTES]) else {
                continue;
            };
            let is_accepted = |needle: &&Needle| is_whole(needle, lower, at) && accept(needle);
            if let Some(needle) = those_at(here, &lower[at..]).filter(is_accepted).last() {
                return Some(at..at + needle.bytes.len());
            }
        }
        None
    }
}

/// The needles that a text begins with, the shortest first. Each byte of the text is looked at once, however
/// many needles begin alike.
fn those_at<'n>(needles: &'n [Needle], text: &[u8]) -> impl Iterator<Item = &'n Needle> {
    let (mut left, mut depth) = (needles, KEY_BYTES);
    std::iter::from_fn(move || {
        loop {
            // All remaining needles begin with the same `depth` bytes; the shortest is the first.
            let (first, others) = left.split_first()?;
            if first.bytes.len() == depth {
                left = others;
                return Some(first);
            }
            looked_at(1);
            let byte = *text.get(depth)?;
            let from = left.partition_point(|needle| needle.bytes[depth] < byte);
            let to = left.partition_point(|needle| needle.bytes[depth] <= byte);
            left = &left[from..to];
            depth += 1;
        }
    })
}

/// Whether a needle that is a plain word stands there as a whole word.
fn is_whole(needle: &Needle, lower: &[u8], at: usize) -> bool {
    let end = at + needle.bytes.len();
    let is_letter = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric());
    needle.only.is_none()
        || !(is_letter(at.checked_sub(1).and_then(|before| lower.get(before)))
            || is_letter(lower.get(end)))
}

fn first_hash(bytes: &[u8]) -> usize {
    let [a, b, c] = [bytes[0], bytes[1], bytes[2]].map(usize::from);
    (a.wrapping_mul(0x9e37) ^ b.wrapping_mul(0x85eb) ^ c.wrapping_mul(0xc2b3)) & 0xffff
}

/// A text as it is, as JSON has it (with and without `\u` for what is not ASCII), as markup has it,
/// and as JSON of markup.
fn forms(text: &str) -> Vec<String> {
    let json = |text: &str| {
        let quoted = serde_json::to_string(text).expect("a string is always JSON");
        quoted[1..quoted.len() - 1].to_owned()
    };
    let markup = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let mut ascii = String::new();
    for c in json(text).chars() {
        if c.is_ascii() {
            ascii.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                ascii += &format!("\\u{unit:04x}");
            }
        }
    }
    vec![text.to_owned(), json(text), ascii, json(&markup), markup]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anywhere(texts: &[&str]) -> Needles {
        Needles::new(texts.iter().map(|text| ((*text).to_owned(), None)))
    }

    #[test]
    fn what_is_looked_for_is_cut_out_whatever_its_case() {
        let needles = anywhere(&["zebra-7f3a", "the code is zebra-7f3a"]);
        let cases = [
            ("so ZEBRA-7F3A it is", Some("so [erased] it is")),
            (
                "The code is zebra-7f3a. zebra-7f3a?",
                Some("[erased]. [erased]?"),
            ),
            ("zebra", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(needles.cut(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn the_longest_of_needles_that_begin_alike_is_cut_and_each_byte_looked_at_once() {
        let stairs = |n: usize| format!("{}-{n}", "a".repeat(n));
        let needles = Needles::new((6..400).map(|n| (stairs(n), None)));
        let text = format!("x{}", stairs(300));
        assert_eq!(needles.cut(&text).as_deref(), Some("x[erased]"));
        let text = "a".repeat(10_000);
        let (cut, looked_at) = vocative_contract::work::counted(|| needles.cut(&text));
        assert_eq!(cut, None);
        assert!(looked_at <= 410 * 10_000, "{looked_at}");
    }

    #[test]
    fn escaped_forms_are_found_too() {
        let needles = anywhere(&["\"größer\" <b>"]);
        for form in [
            r#"{"t":"\"größer\" <b>"}"#,
            r#"{"t":"\"gr\u00f6\u00dfer\" <b>"}"#,
            "a \"größer\" &lt;b&gt; z",
            r#"{"t":"\"größer\" &lt;b&gt;"}"#,
        ] {
            assert!(needles.is_in(form, |_| true), "{form}");
        }
    }

    #[test]
    fn a_plain_word_counts_as_a_whole_word_and_where_it_is_accepted() {
        let only = Some(OursAfter { chat: 1, seq: 5 });
        let needles = Needles::new([("eraser".to_owned(), only)]);
        assert!(needles.is_in("an Eraser, please", |_| true));
        assert!(!needles.is_in("erasers", |_| true));
        assert!(!needles.is_in("an eraser", |needle| needle.only.is_none()));
        assert_eq!(needles.cut("an eraser"), None);
    }

    #[test]
    fn what_begins_behind_the_window_is_left_to_the_next_one() {
        let needles = anywhere(&["zebra-7f3a"]);
        assert_eq!(needles.count(b"..zebra-7f3a..zebra-7f3a", 14), 1);
        assert_eq!(needles.count(b"..zebra-7f3a..zebra-7f3a", 24), 2);
    }
}
