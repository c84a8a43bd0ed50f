use super::*;
use Format::{Html, Markdown, Pages, Plain};

/// Each chunk in a line: where it stands, under what, and what it says.
fn shown(format: Format, text: &str) -> Vec<String> {
    let chunks = chunked(format, text).chunks;
    let one = |chunk: &Chunk| {
        let page = chunk.page.map(|page| format!("p{page}:"));
        format!(
            "{}{} [{}] {}",
            page.unwrap_or_default(),
            chunk.line,
            chunk.headings.join(" > "),
            chunk.text.replace('\n', "/")
        )
    };
    chunks.iter().map(one).collect()
}

const HANDBOOK: &str = "---
title: \"The handbook\"
tags: [a]
---
Read me first.

# Travel #
Book early.
Ask Ann.

***

Underlined
----------
```sh
# no heading
```
| City | Code |
|------|------|
| Oslo | 4711 |
### C#
#notatag
## Empty
## Contact: room 12
";

#[test]
fn markdown_is_cut_at_its_headings() {
    let expected = [
        "5 [] Read me first.",
        "8 [Travel] Book early./Ask Ann.",
        "15 [Travel > Underlined] ```sh/# no heading/```//| City | Code |/|------|------|/| Oslo | 4711 |",
        "22 [Travel > Underlined > C#] #notatag",
        "23 [Travel > Empty] Empty",
        "24 [Travel > Contact: room 12] Contact: room 12",
    ];
    assert_eq!(shown(Markdown, HANDBOOK), expected);
    let title = chunked(Markdown, HANDBOOK).title;
    assert_eq!(title.as_deref(), Some("The handbook"));
    let crlf = HANDBOOK.replace('\n', "\r\n");
    assert_eq!(chunked(Markdown, &crlf), chunked(Markdown, HANDBOOK));
}

#[test]
fn odd_markdown_is_still_text() {
    let cases: [(&str, &[&str]); 9] = [
        ("", &[]),
        ("\u{feff}# A\nb", &["2 [A] b"]),
        ("---\nnever closed", &["2 [] never closed"]),
        ("#\n\ntext", &["3 [] text"]),
        ("#tag and ####### seven", &["1 [] #tag and ####### seven"]),
        ("```\nnever closed\n# x", &["1 [] ```/never closed/# x"]),
        ("```a``` b\n# x\ny", &["1 [] ```a``` b", "3 [x] y"]),
        ("a\n===\nb\n-", &["3 [a] b/-"]),
        ("one\n\n\n\n# Two", &["1 [] one", "5 [Two] Two"]),
    ];
    for (text, expected) in cases {
        assert_eq!(shown(Markdown, text), expected, "{text:?}");
    }
}

#[test]
fn plain_text_and_pages_are_paragraphs() {
    assert_eq!(shown(Plain, "\n a\nb\n\n# c"), ["2 []  a/b//# c"]);
    let pages = "One\n\u{c}\u{c}Three\nmore";
    assert_eq!(shown(Pages, pages), ["p1:1 [] One", "p3:1 [] Three/more"]);
}

#[test]
fn html_becomes_text() {
    let page = "<!DOCTYPE html><html><head><title>The &amp; handbook</title>
<style>p { color: red }</style><script>if (a < b) '</p>'</script></head>
<body><nav><p>Home</p></nav>
<h1 class=\"a>b\">Travel</h1>
<p>Book <b>early</b>,
ask&nbsp;Ann &#8212; &auml;&unknown; &.</p>
<!-- <p>hidden</p> -->
<h2>Codes</h2>
<table><thead><tr><th>City</th><th>Code</th></tr></thead>
<tr><td><p>Oslo</p></td><td>4711</td></tr></table>
<ul><li>one<li>two</ul>
<pre>a  b
 c</pre>1 < 2</body></html>";
    let expected = [
        "5 [Travel] Book early, ask Ann — ä&unknown; &.",
        "9 [Travel > Codes] City | Code/Oslo | 4711//- one/- two//```/a  b/ c/```//1 < 2",
    ];
    assert_eq!(shown(Html, page), expected);
    let title = chunked(Html, page).title;
    assert_eq!(title.as_deref(), Some("The & handbook"));
}

#[test]
fn broken_html_ends_with_its_document() {
    let cases: [(&str, &[&str]); 7] = [
        ("a <!-- b", &["1 [] a"]),
        ("a <script>b", &["1 [] a"]),
        ("a <b title=\"c", &["1 [] a"]),
        ("a <p b> c </x", &["1 [] a//c"]),
        ("<<<a>", &["1 [] <<"]),
        ("</p></p><td>x", &["1 [] x"]),
        ("<title>T<p>x", &["1 [] x"]),
    ];
    for (text, expected) in cases {
        assert_eq!(shown(Html, text), expected, "{text:?}");
    }
}

#[test]
fn what_is_long_is_cut_where_it_ends() {
    let sentence = "All of this is one sentence of a handbook that nobody reads. ";
    let long = format!("# A\n{}", sentence.repeat(80));
    let found = chunked(Markdown, &long);
    assert!(found.chunks.len() >= 4 && !found.is_cut);
    for chunk in &found.chunks {
        assert!(chunk.text.chars().count() <= CHUNK_MAX_CHARS);
        assert!(chunk.text.ends_with('.'), "{}", chunk.text);
        assert_eq!(chunk.line, 2);
    }
    let code = format!("```rust\n{}```", "let x = 1;\n".repeat(400));
    let found = chunked(Markdown, &code).chunks;
    let (first, second) = (&found[0].text, &found[1]);
    assert!(first.starts_with("```rust\nlet") && first.ends_with("let x = 1;\n```"));
    let lines_of_first = first.lines().count() - 2;
    assert_eq!(second.line as usize, 2 + lines_of_first);
    let table = format!("| a | b |\n|---|---|\n{}", "| one | two |\n".repeat(400));
    for chunk in chunked(Markdown, &table).chunks {
        assert!(
            chunk.text.starts_with("| a | b |\n|---|---|\n| one"),
            "{}",
            chunk.text
        );
    }
}

#[test]
fn nothing_is_too_odd_or_too_long() {
    let odd = [
        "<", "&", "\"", "<a '", "<!--", "#", "```", "|-", "=\n", "<li>", "\u{c}", "东", "<pre>",
        "~~~\n",
    ];
    for piece in odd {
        let text = piece.repeat(200_000 / piece.len());
        for format in [Markdown, Plain, Html, Pages] {
            let found = chunked(format, &text);
            assert!(found.chunks.len() <= CHUNKS_MAX);
            let longest = found.chunks.iter().map(|it| it.text.chars().count()).max();
            assert!(
                longest <= Some(CHUNK_MAX_CHARS),
                "{format:?} {piece:?} {longest:?}"
            );
        }
    }
    let many = "# a\nb\n".repeat(CHUNKS_MAX + 1);
    let found = chunked(Markdown, &many);
    assert_eq!((found.chunks.len(), found.is_cut), (CHUNKS_MAX, true));
    let heading = format!("# {}\nb", "x".repeat(9_000));
    assert_eq!(
        chunked(Markdown, &heading).chunks[0].headings[0].len(),
        HEADING_MAX_CHARS
    );
}
