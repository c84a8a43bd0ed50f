//! Which addresses become links, and bare addresses in text.
//!
//! Strict: an address that one platform refuses would cost the whole post its formatting.

use std::rc::Rc;

use vocative_contract::work::looked_at;

use super::tree::{StyledRun, push_run};

/// A longer address is shown as text.
const URL_MAX_BYTES: usize = 2_000;
/// The schemes that are linked.
const SCHEMES: [&str; 2] = ["https://", "http://"];

/// The host of a web address that every platform takes; `None` for any other.
pub(super) fn web_host(url: &str) -> Option<&str> {
    let scheme = SCHEMES
        .iter()
        .find(|scheme| starts_with_ignore_case(url, scheme))?;
    let rest = &url[scheme.len()..];
    let host_len = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (name, port) = rest[..host_len]
        .split_once(':')
        .unwrap_or((&rest[..host_len], "0"));
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
    };
    let is_port = !port.is_empty() && port.len() <= 5 && port.chars().all(|c| c.is_ascii_digit());
    let is_host = name.contains('.') && name.len() <= 253 && name.split('.').all(is_label);
    (url.len() <= URL_MAX_BYTES && is_host && is_port && url.chars().all(is_clean)).then_some(name)
}

fn starts_with_ignore_case(text: &str, prefix: &str) -> bool {
    text.get(..prefix.len())
        .is_some_and(|head| head.eq_ignore_ascii_case(prefix))
}

/// Endings of files that are also names of countries or domains. A label like `main.rs` may stand for an
/// address that ends in it.
const FILE_ENDINGS: [&str; 20] = [
    "cc", "css", "csv", "html", "ini", "js", "json", "lock", "md", "pl", "ps", "py", "rs", "sh",
    "toml", "ts", "tsx", "txt", "yaml", "yml",
];

/// Whether a label may stand for a web address: one that names another host anywhere in it may not.
pub(super) fn is_honest(label: &str, url: &str) -> bool {
    looked_at(label.len() + url.len());
    let Some(host) = web_host(url) else {
        return false;
    };
    let host = bare_host(host);
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let file = path.rsplit('/').next().unwrap_or_default();
    let shown = as_shown(label);
    let mut words = shown.split(|c: char| c.is_whitespace() || "<>()[]{}\"'`,;|".contains(c));
    words.all(|word| match named_host(word) {
        Some(named) => {
            let is_file = FILE_ENDINGS
                .iter()
                .any(|it| word.rsplit('.').next() == Some(it));
            bare_host(&named) == host || (is_file && word == file)
        }
        None => !word.contains("://"),
    })
}

/// A label as people see it: nothing that does not show, and letters of other widths as plain ones.
fn as_shown(label: &str) -> String {
    let hidden = |c: char| {
        matches!(c, '\u{AD}' | '\u{34F}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}')
    };
    let plain = |c: char| match c {
        '。' | '｡' => '.',
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(u32::from(c) - 0xFEE0).unwrap_or(c),
        c => c,
    };
    label.chars().filter(|c| !hidden(*c)).map(plain).collect()
}

/// The host that a word names: of an address, of a mail address, or by itself.
fn named_host(word: &str) -> Option<String> {
    let word = word.split_once("://").map_or(word, |(_, rest)| rest);
    let name = word.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let name = name.rsplit('@').next().unwrap_or_default();
    let name = name.split(':').next().unwrap_or_default();
    let name = name.trim_matches(|c: char| !c.is_alphanumeric());
    let (_, last) = name.rsplit_once('.')?;
    let is_domain = last.chars().count() >= 2 && last.chars().all(char::is_alphabetic);
    let is_coded = last.starts_with("xn--");
    let is_address = name.parse::<std::net::Ipv4Addr>().is_ok();
    (is_domain || is_coded || is_address).then(|| name.to_owned())
}

/// A host without `www.`, which tells nothing.
fn bare_host(host: &str) -> String {
    let host = host.to_lowercase();
    host.strip_prefix("www.")
        .map_or(host.clone(), str::to_owned)
}

/// Whether a run's text is the address that it links to.
pub(crate) fn has_own_address(run: &StyledRun) -> bool {
    run.link.as_deref() == Some(run.text.as_str())
}

/// Appends a run; the web addresses in its text become links.
pub(super) fn push_linked(runs: &mut Vec<StyledRun>, run: &StyledRun) {
    let text = run.text.as_str();
    let mut done = 0;
    let mut at = 0;
    looked_at(text.len());
    while let Some(found) = text[at..].find("http") {
        let start = at + found;
        let AddressStart { address, scanned } = seen(text, start, text.len());
        at = start + scanned.max("http".len());
        let Some(len) = address else {
            continue;
        };
        push_run(runs, run.with_text(&text[done..start]));
        let url = &text[start..start + len];
        push_run(
            runs,
            StyledRun {
                link: Some(Rc::from(url)),
                ..run.with_text(url)
            },
        );
        done = start + len;
        at = done;
    }
    push_run(runs, run.with_text(&text[done..]));
}

/// What the search for an address at one place found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AddressStart {
    /// The length of the web address that begins there.
    pub(super) address: Option<usize>,
    /// How far the search looked: no other address begins before that place.
    pub(super) scanned: usize,
}

/// Looks for the web address that begins at a place and reaches no further than `end`.
pub(super) fn seen(text: &str, at: usize, end: usize) -> AddressStart {
    let before = text[..at].chars().next_back();
    // Letters of other scripts need no space before an address.
    let is_inside = |c: char| c.is_ascii_alphanumeric() || "_/:.@-=&?%#".contains(c);
    if before.is_some_and(is_inside) {
        return AddressStart::default();
    }
    let seen = bare(&text[at..end]);
    looked_at(seen.scanned);
    seen
}

/// The web address that a text starts with. A closing bracket that was not opened in the address ends it.
fn bare(text: &str) -> AddressStart {
    let Some(scheme) = SCHEMES.iter().find(|scheme| text.starts_with(*scheme)) else {
        return AddressStart::default();
    };
    // Inside a host's letters no other address can begin; behind them one could.
    let is_of_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    let rest = &text[scheme.len()..];
    let host_end = scheme.len() + rest.find(|c| !is_of_host(c)).unwrap_or(rest.len());
    if web_host(text[..host_end].trim_end_matches(AT_END)).is_none() {
        return AddressStart {
            address: None,
            scanned: host_end,
        };
    }
    let (mut round, mut square) = (0_usize, 0_usize);
    let mut end = host_end;
    for (at, c) in text[host_end..].char_indices() {
        let is_closed = match c {
            '(' => Some(round + 1).inspect(|depth| round = *depth),
            '[' => Some(square + 1).inspect(|depth| square = *depth),
            ')' => round.checked_sub(1).inspect(|depth| round = *depth),
            ']' => square.checked_sub(1).inspect(|depth| square = *depth),
            _ => Some(0),
        };
        if host_end + at > URL_MAX_BYTES || is_end(c) || is_closed.is_none() {
            break;
        }
        end = host_end + at + c.len_utf8();
    }
    let url = text[..end].trim_end_matches(AT_END);
    AddressStart {
        address: web_host(url).map(|_| url.len()),
        scanned: end,
    }
}

/// Characters behind an address that are no part of it.
const AT_END: [char; 14] = [
    '.', ',', ';', ':', '!', '?', '\'', '*', '_', '~', '}', '…', '(', '[',
];

/// Whether a character ends an address: marks, and the punctuation of scripts that write no spaces.
fn is_end(c: char) -> bool {
    !is_clean(c) || "`|\\，。、；：！？（）「」『』【】《》〈〉“”".contains(c)
}

/// Whether a character may stand in an address at all.
fn is_clean(c: char) -> bool {
    !c.is_whitespace() && !c.is_control() && !matches!(c, '<' | '>' | '"' | '\u{2028}'..='\u{202E}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_web_addresses_are_links() {
        for url in [
            "https://e.org",
            "http://a.b.org:8080/x?y=1#z",
            "HTTPS://E.org/ü(1)",
        ] {
            assert!(web_host(url).is_some(), "{url}");
        }
        for url in [
            "mailto:a@b.org",
            "javascript:x",
            "https://localhost/",
            "https://a b.org",
            "https://u@e.org",
            "https://e.org:x/",
            "//e.org",
            "./a.md",
            "",
            "https://-e.org",
            "https://e..org",
        ] {
            assert_eq!(web_host(url), None, "{url}");
        }
        assert_eq!(
            web_host(&format!("https://e.org/{}", "x".repeat(2_000))),
            None
        );
    }

    #[test]
    fn a_label_that_names_another_host_is_not_honest() {
        for label in [
            "docs",
            "https://e.org/other",
            "www.e.org",
            "e.org",
            "see this. Now",
            "v1.2",
            "main.rs",
            "see e.org, chapter 2",
            "https://www.E.org:443/x",
        ] {
            assert!(is_honest(label, "https://e.org/src/main.rs#L1"), "{label}");
        }
        for label in [
            "https://bank.org",
            "bank.org",
            "www.bank.org/login",
            "ftp://x",
            "lib.rs",
            "log in at bank.org now",
            "(bank.org)",
            "bank.org:443",
            "bank.org.",
            "help@bank.org",
            "ｂａｎｋ．ｏｒｇ",
            "bank。org",
            "ba\u{200B}nk.org",
            "bаnk.org",
            "xn--bnk-sra.xn--p1ai",
            "10.0.0.1",
            "e.org.bank.org",
            "e.org or bank.org",
            "https://e.org@bank.org/",
        ] {
            assert!(!is_honest(label, "https://e.org/src/main.rs#L1"), "{label}");
        }
        // A host at the end of the path is not a file name.
        assert!(!is_honest("bank.org", "https://e.org/bank.org"));
        assert!(!is_honest("bank.org", "https://e.org/?x=/bank.org"));
    }

    #[test]
    fn bare_addresses_are_found() {
        let found = |text: &str| -> Vec<String> {
            let mut runs = Vec::new();
            push_linked(&mut runs, &StyledRun::plain(text));
            assert_eq!(
                runs.iter().map(|run| run.text.as_str()).collect::<String>(),
                text
            );
            let links = runs.into_iter().filter(|run| run.link.is_some());
            links.map(|run| run.text).collect()
        };
        assert_eq!(
            found("see https://e.org/a_(b)_c. And (https://x.y/z), xhttps://no.org http://"),
            ["https://e.org/a_(b)_c", "https://x.y/z"]
        );
        assert_eq!(
            found(
                "见https://e.org/路径。谢谢（https://e.org/x）[https://e.org/a[1]] https://e.org/("
            ),
            [
                "https://e.org/路径",
                "https://e.org/x",
                "https://e.org/a[1]",
                "https://e.org/"
            ]
        );
        assert_eq!(found(&"http".repeat(1_000)), Vec::<String>::new());
    }
}
