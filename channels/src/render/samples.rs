//! Texts for tests: every construct and nesting, by seed, and what parsers and renderers stumble over.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};

const WORDS: [&str; 80] = [
    "the",
    "answer",
    "is",
    "42.",
    "Deploy",
    "failed",
    "at",
    "snake_case_name",
    "2*3*4",
    "a_b",
    "~/bin",
    "C++",
    "<b>",
    "</b>",
    "<br>",
    "&amp;",
    "&",
    "<",
    ">",
    "x<y",
    "日本語",
    "Ünïcödé",
    "👍",
    "👨‍👩‍👧",
    "🇩🇪🇫🇷",
    "e\u{301}",
    "\u{202E}abc\u{202C}",
    "\u{200B}",
    "\u{FEFF}",
    "مرحبا",
    "z\u{35C}\u{321}\u{489}",
    "@channel",
    "@here,",
    "<!channel>",
    "<@U123ABC>",
    "<!subteam^S1>",
    "<#C1|x>",
    "@ann_lee",
    "@Ann",
    "mail@example.org",
    "https://e.org/a_(b)?c=d&e=f",
    "http://localhost:3000/",
    "e.com",
    "1.",
    "2)",
    "-",
    "+",
    "#",
    "*",
    "**",
    "_",
    "`",
    "```",
    "|",
    "[",
    "]",
    "!",
    "\\",
    "\\(",
    "x_1 \\)",
    "\\[ y =",
    "\\]",
    "$$",
    "**注意：**内容",
    "**「引用」**",
    "~~（古い）~~新",
    "<sub>2</sub>",
    "x<sup>n</sup>",
    "<kbd>",
    "</kbd>",
    "<a href=\"https://e.org/h\">",
    "</a>",
    "<i>",
    "</i>",
    "<!-- x -->",
    "[^1]",
    "[r]",
    "https://e.org/__init__.py*",
    "__init__",
    "<li>",
];
const LANGUAGES: [&str; 6] = ["", "rust", "c++", "sh title=\"x\"", "`", "python3"];
const URLS: [&str; 9] = [
    "https://e.org",
    "https://e.org/a(b)",
    "<https://e.org/a b>",
    "mailto:a@b.org",
    "./x.md",
    "#top",
    "javascript:alert(1)",
    "https://user@e.org/",
    "http://[::1]/",
];

/// How many generated texts a test takes: `VOCATIVE_SEEDS`, or fewer, so that a test run stays short.
pub(crate) fn seeds() -> u64 {
    let wanted = std::env::var("VOCATIVE_SEEDS").ok();
    wanted.and_then(|seeds| seeds.parse().ok()).unwrap_or(500)
}

/// A text for a seed: always the same one.
pub(crate) fn generated(seed: u64) -> String {
    let mut generator = Generator {
        rng: StdRng::seed_from_u64(seed),
    };
    let blocks = generator.rng.random_range(1..5);
    generator.blocks(blocks, 0)
}

struct Generator {
    rng: StdRng,
}

impl Generator {
    fn blocks(&mut self, count: usize, depth: usize) -> String {
        let blocks: Vec<String> = (0..count).map(|_| self.block(depth)).collect();
        let separator = if self.rng.random_bool(0.9) {
            "\n\n"
        } else {
            "\n"
        };
        blocks.join(separator)
    }

    fn block(&mut self, depth: usize) -> String {
        let deepest = if depth > 3 { 6 } else { 10 };
        match self.rng.random_range(0..deepest) {
            0 | 1 => self.paragraph(),
            2 => format!(
                "{} {}",
                "#".repeat(self.rng.random_range(1..8)),
                self.inline(4, 0)
            ),
            3 => self.code(),
            4 => self.table(),
            5 => self.noise(),
            6 => {
                let count = self.rng.random_range(1..3);
                prefixed(&self.blocks(count, depth + 1), "> ", "> ")
            }
            7 => self.other(),
            _ => self.list(depth),
        }
    }

    fn other(&mut self) -> String {
        const OTHERS: [&str; 11] = [
            "---",
            "***",
            "===",
            "<details>\n<summary>x</summary>",
            "</details>",
            "<p>\n a <b>b</b>\n</p>",
            "<ul>\n <li>a</li>\n</ul>",
            "[^1]: a note",
            "[r]: https://e.org/r",
            "[s]: <https://e.org/s> 'S'",
            "$$\na_1 = b\n$$",
        ];
        (*OTHERS.choose(&mut self.rng).unwrap()).to_owned()
    }

    fn paragraph(&mut self) -> String {
        let lines = self.rng.random_range(1..4);
        let lines: Vec<String> = (0..lines)
            .map(|_| {
                let words = self.rng.random_range(1..9);
                self.inline(words, 0)
            })
            .collect();
        let end = ["\n", "  \n", "\\\n"].choose(&mut self.rng).unwrap();
        lines.join(end)
    }

    fn inline(&mut self, count: usize, depth: usize) -> String {
        let pieces: Vec<String> = (0..count).map(|_| self.piece(depth)).collect();
        let separator = if self.rng.random_bool(0.9) { " " } else { "" };
        pieces.join(separator)
    }

    fn piece(&mut self, depth: usize) -> String {
        let kinds = if depth > 3 { 6 } else { 13 };
        match self.rng.random_range(0..kinds) {
            6 => self.wrapped("**", depth),
            7 => self.wrapped("*", depth),
            8 => self.wrapped("_", depth),
            9 => self.wrapped("~~", depth),
            10 => format!("`{}`", self.word()),
            11 => {
                let url = URLS.choose(&mut self.rng).unwrap();
                let bang = if self.rng.random_bool(0.2) { "!" } else { "" };
                let count = self.rng.random_range(0..3);
                format!("{bang}[{}]({url})", self.inline(count, depth + 1))
            }
            12 => "`` a`b ``".to_owned(),
            _ => self.word(),
        }
    }

    fn wrapped(&mut self, mark: &str, depth: usize) -> String {
        let count = self.rng.random_range(1..4);
        format!("{mark}{}{mark}", self.inline(count, depth + 1))
    }

    fn word(&mut self) -> String {
        match self.rng.random_range(0..120) {
            0 => "x".repeat(self.rng.random_range(1..700)),
            1 => "👨‍👩‍👧".repeat(self.rng.random_range(1..60)),
            2 => "e\u{301}".repeat(self.rng.random_range(1..60)),
            _ => (*WORDS.choose(&mut self.rng).unwrap()).to_owned(),
        }
    }

    fn code(&mut self) -> String {
        let lines = self.rng.random_range(0..12);
        let lines: Vec<String> = (0..lines)
            .map(|_| {
                let words = self.rng.random_range(0..5);
                let words: Vec<String> = (0..words).map(|_| self.word()).collect();
                format!(
                    "{}{}",
                    "    ".repeat(self.rng.random_range(0..3)),
                    words.join(" ")
                )
            })
            .collect();
        let fence = ["```", "~~~", "````"].choose(&mut self.rng).unwrap();
        let language = LANGUAGES.choose(&mut self.rng).unwrap();
        let close = if self.rng.random_bool(0.9) {
            fence
        } else {
            &""
        };
        format!("{fence}{language}\n{}\n{close}", lines.join("\n"))
    }

    fn table(&mut self) -> String {
        let columns = self.rng.random_range(1..5);
        let rows = self.rng.random_range(0..10);
        let mut row = |columns: usize| {
            let cells: Vec<String> = (0..columns)
                .map(|_| {
                    let words = self.rng.random_range(0..3);
                    self.inline(words, 3).replace(['\n', '|'], " ")
                })
                .collect();
            format!("| {} |", cells.join(" | "))
        };
        let head = row(columns);
        let rows: Vec<String> = (0..rows).map(|n| row(columns + n % 2)).collect();
        format!("{head}\n|{}\n{}", ":-:|".repeat(columns), rows.join("\n"))
    }

    fn list(&mut self, depth: usize) -> String {
        let items = self.rng.random_range(1..6);
        let mark = ["- ", "* ", "1. ", "7) ", "- [ ] ", "- [x] ", "999999999. "]
            .choose(&mut self.rng)
            .unwrap();
        let indent = " ".repeat(mark.len().min(4));
        let items: Vec<String> = (0..items)
            .map(|_| {
                let blocks = self.rng.random_range(0..3);
                prefixed(&self.blocks(blocks, depth + 1), mark, &indent)
            })
            .collect();
        items.join("\n")
    }

    /// Marks without any order.
    fn noise(&mut self) -> String {
        const MARKS: [&str; 22] = [
            "*", "**", "_", "`", "```", "~~", "[", "](", ")", "<", ">", "!", "\n", "\n\n", " ",
            "> ", "- ", "|", "\\", "a", "#", "\t",
        ];
        let count = self.rng.random_range(1..40);
        (0..count)
            .map(|_| *MARKS.choose(&mut self.rng).unwrap())
            .collect()
    }
}

fn prefixed(text: &str, first: &str, others: &str) -> String {
    let lines = text.lines().enumerate();
    let lines: Vec<String> = lines
        .map(|(n, line)| format!("{}{line}", if n == 0 { first } else { others }))
        .collect();
    if lines.is_empty() {
        first.to_owned()
    } else {
        lines.join("\n")
    }
}

/// Long texts of `size` bytes, about, that make naive code slow or big.
pub(crate) fn pathological(size: usize) -> Vec<(&'static str, String)> {
    let times = |text: &str| text.repeat((size / text.len()).max(1));
    let stairs = |mark: &str| -> String {
        let depth = size.isqrt();
        (0..depth)
            .map(|n| format!("{}{mark}x\n", "  ".repeat(n)))
            .collect()
    };
    vec![
        ("one word", times("x")),
        ("one line", times("word ")),
        ("brackets", times("[")),
        ("images", times("![")),
        ("links", times("[a](")),
        ("nested links", times("[a](b)[")),
        ("stars", times("*")),
        ("open emphasis", times("*a **b _c ")),
        ("closed emphasis", times("**a** _b_ ~~c~~ ")),
        ("backticks", times("`a``b```c")),
        ("code", times("`a` ")),
        ("tildes", times("~~a")),
        ("angles", times("<a ")),
        ("comments", times("<!-- ")),
        ("quotes on a line", times(">")),
        ("lists on a line", times("- ")),
        ("numbers on a line", times("1. ")),
        ("quotes", times("> > > > > > > > > > > > > > > > a\n")),
        ("list stairs", stairs("- ")),
        ("number stairs", stairs("1. ")),
        ("items", times("- a\n")),
        ("loose items", times("- a\n\n  b\n\n")),
        ("one item", format!("- a\n{}", times("\n  b\n"))),
        ("one quote", times("> a\n>\n")),
        ("rules", times("---\n")),
        ("headings", times("# a\n")),
        ("open fence", format!("```rust\n{}", times("let x = 1;\n"))),
        ("one line of code", format!("```\n{}\n```", times("y"))),
        ("fences", times("```\na\n```\n")),
        ("table", format!("|a|b|\n|-|-|\n{}", times("|1|2|\n"))),
        ("wide table", format!("{}\n{}\n", times("|a"), times("|-"))),
        (
            "short rows",
            format!("|a|b|c|d|\n|-|-|-|-|\n{}", times("|\n")),
        ),
        ("one cell", format!("|a|\n|-|\n|{}|\n", times("w "))),
        ("definitions", times("[a]: /u\n[a]\n")),
        ("entities", times("&amp;&lt;&#x41;")),
        ("one grapheme", format!("e{}", times("\u{301}"))),
        (
            "one grapheme of code",
            format!("```\ne{}\n```", times("\u{301}")),
        ),
        ("families", times("👨‍👩‍👧‍👦")),
        ("flags", times("🇩🇪")),
        ("bidi", times("\u{202E}a\u{202C}\u{2067}")),
        ("zero width", times("\u{200B}\u{200D}\u{FEFF}")),
        ("nul and controls", times("\0\u{1}\u{8}a")),
        ("addresses", times("https://e.org/x ")),
        ("almost addresses", times("http://")),
        ("one address", format!("https://e.org/{}", times("a"))),
        ("mentions", times("@channel <!here> @ann ")),
        ("blank lines", times("\n")),
        ("escapes", times("\\*")),
        ("tabs", times("\t- a\n")),
        ("formulas", times("\\(a ")),
        ("formulas of two lines", times("\\[\na\n")),
        ("dollars", times("$$a")),
        ("marks beside punctuation", times("**注：**字")),
        ("tags", times("<b>a")),
        ("closing tags", times("</b>a")),
        ("nested tags", times("<b><i>x</i>")),
        ("blocks of tags", times("<p>\na\n\n")),
        ("notes", times("[^1]: a\n")),
        (
            "sources",
            (0..size / 10).map(|n| format!("[{n}]: /u\n")).collect(),
        ),
        ("marks in addresses", times("https://e.org/_a_*b ")),
        ("names of programs", times("__init__")),
    ]
}
