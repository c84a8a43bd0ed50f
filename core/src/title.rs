//! The title of a conversation without a name: the first words of what was said.

/// The longest title, in characters.
pub const TITLE_MAX_CHARS: usize = 60;

/// The first words of a text on one line, without markup: whole words, at most `max_chars`
/// characters; `None` if it says nothing. A first word that is longer is cut.
#[must_use]
pub fn first_words(text: &str, max_chars: usize) -> Option<String> {
    let bare = bare(text);
    let mut title = String::new();
    let mut chars = 0;
    for word in bare.split_whitespace() {
        let length = word.chars().count();
        let with_space = length + usize::from(!title.is_empty());
        // One character stays for the sign that there is more.
        if chars + with_space > max_chars.saturating_sub(1) {
            if title.is_empty() {
                title.extend(word.chars().take(max_chars.saturating_sub(1)));
            }
            title.push('…');
            return Some(title);
        }
        if !title.is_empty() {
            title.push(' ');
        }
        title.push_str(word);
        chars += with_space;
    }
    (!title.is_empty()).then_some(title)
}

/// The text without the marks of code, emphasis, headings, quotes and links, and without what does
/// not show.
fn bare(text: &str) -> String {
    text.lines()
        .map(|line| {
            let line = line.trim_start_matches(['#', '>', ' ', '\t', '-', '*']);
            let shown: String = without_link_targets(line)
                .chars()
                .filter(|c| !matches!(c, '`' | '*' | '~' | '|') && !is_invisible(*c))
                .collect();
            shown
        })
        .collect::<Vec<_>>()
        .join(" ")
}

/// `[words](target)` as `words`.
fn without_link_targets(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(open) = rest.find('[') {
        let (before, link) = rest.split_at(open);
        let target = link.find("](").and_then(|middle| {
            let end = link[middle..].find(')')?;
            Some((middle, middle + end))
        });
        out.push_str(before);
        let Some((middle, end)) = target else {
            out.push_str(link);
            return out;
        };
        out.push_str(&link[1..middle]);
        rest = &link[end + 1..];
    }
    out + rest
}

fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{AD}' | '\u{61C}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_whole_words_without_markup() {
        let cases = [
            ("When is the deploy?", Some("When is the deploy?")),
            ("  \n\t", None),
            ("```\n```", None),
            (
                "# **Plan** for `main`\nsecond line",
                Some("Plan for main second line"),
            ),
            ("> quoted", Some("quoted")),
            (
                "see [the docs](https://example.org/a) now",
                Some("see the docs now"),
            ),
            ("a [bracket and more", Some("a [bracket and more")),
            ("snake_case stays", Some("snake_case stays")),
            (
                "one two three four five six seven",
                Some("one two three four five six…"),
            ),
            (
                "Donaudampfschifffahrtsgesellschaftskapitän",
                Some("Donaudampfschifffahrtsgesells…"),
            ),
            ("hid\u{202E}den \u{0}x", Some("hidden x")),
        ];
        for (text, expected) in cases {
            assert_eq!(first_words(text, 30).as_deref(), expected, "{text:?}");
        }
        let exact = "x".repeat(29);
        assert_eq!(first_words(&exact, 30), Some(exact));
    }
}
