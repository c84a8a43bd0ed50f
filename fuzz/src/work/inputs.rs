//! Texts that make naive parsers slow: of any size, and the same ones each time.

/// A kind of text.
#[derive(Clone, Copy, Debug)]
pub struct Input {
    /// What it is.
    pub name: &'static str,
    make: Make,
}

#[derive(Clone, Copy, Debug)]
enum Make {
    /// The second piece, over and over, between the other two.
    Repeated(&'static str, &'static str, &'static str),
    /// One beginning for half of the text, then one end for each.
    Nested(&'static str, &'static str),
    /// Runs of a mark, each longer than the one before, with a letter between them.
    Growing(char),
    /// Lines that are set in ever deeper, each with a mark.
    Stairs(&'static str),
    /// A number in each piece, so that no two are the same.
    Numbered(&'static str, &'static str),
    /// A row of cells, the line under it, and rows like it.
    Table(usize),
}

impl Input {
    /// The text, of about `bytes` bytes and never more.
    #[must_use]
    pub fn text(&self, bytes: usize) -> String {
        let mut text = match self.make {
            Make::Repeated(first, piece, last) => {
                let room = bytes.saturating_sub(first.len() + last.len());
                format!("{first}{}{last}", piece.repeat(room / piece.len()))
            }
            Make::Nested(open, close) => {
                let times = bytes / (open.len() + close.len());
                format!("{}{}", open.repeat(times), close.repeat(times))
            }
            Make::Growing(mark) => growing(mark, bytes),
            Make::Stairs(mark) => stairs(mark, bytes),
            Make::Numbered(before, after) => numbered(before, after, bytes),
            Make::Table(columns) => table(columns, bytes),
        };
        let mut end = text.len().min(bytes);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text
    }
}

fn growing(mark: char, bytes: usize) -> String {
    let mut text = String::new();
    let mut length = 1;
    while text.len() < bytes {
        text.extend(std::iter::repeat_n(mark, length));
        text.push('a');
        length += 1;
    }
    text
}

fn stairs(mark: &str, bytes: usize) -> String {
    let mut text = String::new();
    let mut depth = 0;
    while text.len() < bytes {
        text.extend(std::iter::repeat_n(' ', 2 * depth));
        text.push_str(mark);
        text.push_str("x\n");
        depth += 1;
    }
    text
}

fn numbered(before: &str, after: &str, bytes: usize) -> String {
    let mut text = String::new();
    let mut number = 0_u32;
    while text.len() < bytes {
        text.push_str(&format!("{before}{number}{after}"));
        number += 1;
    }
    text
}

fn table(columns: usize, bytes: usize) -> String {
    let row = |cell: &str| format!("{}|\n", format!("|{cell}").repeat(columns));
    let mut text = row("head") + &row("-");
    while text.len() < bytes {
        text.push_str(&row("b"));
    }
    text
}

const fn times(name: &'static str, piece: &'static str) -> Input {
    between(name, "", piece, "")
}

const fn between(
    name: &'static str,
    first: &'static str,
    piece: &'static str,
    last: &'static str,
) -> Input {
    Input {
        name,
        make: Make::Repeated(first, piece, last),
    }
}

const fn nested(name: &'static str, open: &'static str, close: &'static str) -> Input {
    Input {
        name,
        make: Make::Nested(open, close),
    }
}

const fn made(name: &'static str, make: Make) -> Input {
    Input { name, make }
}

/// All of them.
pub const INPUTS: &[Input] = &[
    times("one word", "x"),
    times("words", "word "),
    times("blanks", " "),
    times("line ends", "\n"),
    times("stars", "*"),
    times("underscores", "_"),
    times("tildes", "~"),
    times("backticks", "`"),
    times("bars", "|"),
    times("dollars", "$"),
    times("at signs", "@"),
    times("slashes", "/"),
    times("hashes", "#"),
    times("backslashes", "\\"),
    times("quote marks", ">"),
    times("opening brackets", "["),
    times("closing brackets", "]"),
    times("opening angles", "<"),
    times("closing angles", ">"),
    times("ampersands", "&"),
    times("open stars", "*a "),
    times("open underscores", "_a "),
    times("open tildes", "~a "),
    times("open backticks", "`a "),
    times("closing stars", "a* "),
    times("pairs of backticks", "``a "),
    times("pairs of backticks alone", "`` "),
    times("backticks in pairs", "`a`` "),
    times("one and two backticks", "`a``b"),
    times("one to three backticks", "`a``b```c"),
    times("code", "`a` "),
    times("two stars", "**a "),
    times("three stars", "***a "),
    times("bold", "*a* "),
    times("alternating marks", "*_~"),
    times("alternating open marks", "*a _b ~c `d "),
    times("alternating words", "*a_b~c`d"),
    times("crossing marks", "*a _b* c_ "),
    times("emphasis of every kind", "*a **b _c ~~d "),
    times("closed emphasis", "**a** _b_ ~~c~~ "),
    between("one mark and the rest", "*", "a ", ""),
    between("bold of everything", "*", "a ", "a*"),
    between("code of everything", "`", "a ", "a`"),
    between(
        "inline code full of backticks",
        "```` ",
        "`` ` ``` ",
        " ````",
    ),
    nested("nested marks", "*_", "_*"),
    nested("nested marks of three kinds", "*_~", "~_*"),
    nested("nested strong", "**a ", " b**"),
    nested("nested emphasis", "*a _b ", " c_ d*"),
    made("growing backticks", Make::Growing('`')),
    made("growing stars", Make::Growing('*')),
    made("growing dollars", Make::Growing('$')),
    made("growing tildes", Make::Growing('~')),
    times("spoilers", "||a|| "),
    times("open spoilers", "||a "),
    nested("nested spoilers", "||a ", " b||"),
    times("images", "!["),
    times("links", "[a]("),
    times("links to nowhere", "[a](b)["),
    nested("links in links", "[a", "](https://e.org/x)"),
    nested("images in images", "![a", "](https://e.org/x)"),
    times("honest links", "[a](https://e.org/x) "),
    between(
        "a link of many styles",
        "[",
        "*a* **b** ",
        "](https://e.org/x)",
    ),
    times("addresses", "https://e.org/x "),
    times("almost addresses", "http://"),
    times("addresses in brackets", "(http://"),
    times("hosts in brackets", "(https://e.org/("),
    times("addresses after commas", "http://a,"),
    between("one address", "https://e.org/", "a", ""),
    between("one address of brackets", "https://e.org/", "(", ""),
    times("mail addresses", "mailto:a@b.org "),
    times("targets without labels", "](http://"),
    times("Telegram's addresses", "tg://a "),
    times("autolinks", "<https://e.org/x> "),
    times("references", "[a]: /u\n[a]\n"),
    between(
        "one reference, many uses",
        "[a]: https://e.org/x\n\n",
        "[a] ",
        "",
    ),
    made("definitions", Make::Numbered("[", "]: https://e.org/x\n")),
    made("notes", Make::Numbered("[^", "]: a\n")),
    times("notes of one name", "[^1]: a\n"),
    times("escapes", "\\*"),
    times("characters by name", "&amp;&lt;&#x41;"),
    times("characters by open name", "&amp"),
    times("angles", "<a "),
    times("comments", "<!-- "),
    times("instructions", "<? "),
    times("declarations", "<!A "),
    times("sections", "<![CDATA[ "),
    times("tags", "<b>a"),
    times("closing tags", "</b>a"),
    nested("nested tags", "<b>", "</b>"),
    nested("nested tags of two kinds", "<b><i>", "</i></b>"),
    times("blocks of tags", "<p>\na\n\n"),
    between("one tag of attributes", "<a ", "id=\"x\" ", ">"),
    times("open attributes", "<a id=\"x "),
    times("raised letters", "<sup>1</sup>"),
    times("quotes", "> > > > > > > > > > > > a\n"),
    times("one quote", "> a\n>\n"),
    times("lists on a line", "- "),
    times("numbers on a line", "1. "),
    made("list stairs", Make::Stairs("- ")),
    made("number stairs", Make::Stairs("1. ")),
    made("quote stairs", Make::Stairs("> ")),
    times("items", "- a\n"),
    times("loose items", "- a\n\n  b\n\n"),
    between("one item", "- a\n", "\n  b\n", ""),
    times("tasks", "- [ ] a\n"),
    times("rules", "---\n"),
    times("headings", "# a\n"),
    times("underlines", "a\n===\n"),
    times("half a heading", "a\n="),
    between("an open fence", "```rust\n", "let x = 1;\n", ""),
    between("one line of code", "```\n", "y", "\n```"),
    times("fences", "```\na\n```\n"),
    times("open fences", "```a\n"),
    times("fences of two kinds", "```\n~~~\n"),
    times("fences on a line", "``` a "),
    times("tabs", "\t- a\n"),
    made("a table of two columns", Make::Table(2)),
    made("a table of 25 columns", Make::Table(25)),
    made("a table of 200 columns", Make::Table(200)),
    between("a wide row", "|a", "|a", "\n|-"),
    between("short rows", "|a|b|c|d|\n|-|-|-|-|\n", "|\n", ""),
    between("one cell", "|a|\n|-|\n|", "w ", "|\n"),
    times("heads of tables", "|a|b|\n|-|-|\n"),
    times("inline formulas", "\\(a "),
    times("closed formulas", "\\(a_1\\) "),
    times("blocks of formulas", "\\[\na\n"),
    between("formulas before one end", "", "\\( ", "\\)"),
    times("formulas in dollars", "$$a"),
    times("prices", "$5 "),
    times("formulas of a letter", "$x$ "),
    between("dollars before one end", "", "$x ", "$"),
    times("names of programs", "__init__"),
    times("marks beside punctuation", "**注：**字"),
    times("mentions", "<@U1> "),
    made("mentions of many", Make::Numbered("<@U", "> ")),
    made("words of many", Make::Numbered("a", " ")),
    times("numbers with dots", "1.1."),
    times("dates of a year", "2026-01-02. "),
    times("styled words in links", "[*a* **b**](https://e.org/x)"),
    times(
        "italic links",
        "*[a](https://e.org/x) [**b**](https://e.org/y)* ",
    ),
    times("open mentions", "<@U1"),
    times("labelled groups", "<#C1|a> "),
    times("open groups", "<#C1|"),
    times("dates", "<!date^1^{d}|x> "),
    times("bars in a group", "<a|b|c"),
    times("loud words", "@channel @here <!here> "),
    times("names of people", "@ann @Ann Lee "),
    times("commands", "/forget@bot "),
    times("hashtags", "#a #b "),
    times("names of agents", "kael, "),
    times("called agents", "@kael @ops "),
    times("thoughts", "<think>a"),
    times("closed thoughts", "<think>a</think>"),
    times("ends of thoughts", "</think>"),
    times("ends of thoughts in code", "`</think>"),
    nested("nested thoughts", "<think>", "</think>"),
    times("labels", "[photo] "),
    times("token marks", "\u{FFF9}a"),
    times("token ends", "\u{FFFB}a"),
    between("one grapheme", "e", "\u{301}", ""),
    between("one grapheme of code", "```\ne", "\u{301}", "\n```"),
    times("families", "👨‍👩‍👧‍👦"),
    between("one family", "👨", "\u{200D}👩", ""),
    times("flags", "🇩🇪"),
    times("skin tones", "👍🏽"),
    times("variation selectors", "☎\u{FE0F}"),
    times("bidi", "\u{202E}a\u{202C}\u{2067}"),
    times("zero width", "\u{200B}\u{200D}\u{FEFF}"),
    times("nul and controls", "\0\u{1}\u{8}a"),
    times("ideographs", "日本語。"),
    times("long letters", "İß"),
    times("white space of other scripts", "\u{3000}\u{2003}\u{A0}"),
    times("carriage returns", "\r"),
    times("lines of two ends", "a\r\n"),
    times("quotes in words", "\"a b\" "),
    times("open quotes", "\"a “b "),
    times("stars behind words", "dep* "),
];
