//! Words of a search that begin with a dash, like `-deploy` or `-Werror`.

use std::ffi::OsString;

/// Moves such words of `conversations search` behind `--`, so that they are not read as options. Real options stay:
/// those with two dashes, and the short ones `-c`, `-v`, `-q`, `-h` and `-V`.
pub(super) fn as_words(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let args: Vec<OsString> = args.collect();
    let of_search = args
        .windows(2)
        .position(|pair| pair[0] == "conversations" && pair[1] == "search");
    let Some(at) = of_search.filter(|_| !args.iter().any(|arg| arg == "--")) else {
        return args;
    };
    let (before, of_search) = args.split_at(at + 2);
    let (words, rest): (Vec<&OsString>, Vec<&OsString>) =
        of_search.iter().partition(|arg| is_word(arg));
    let mut args = before.to_vec();
    args.extend(rest.into_iter().cloned());
    if !words.is_empty() {
        args.push("--".into());
        args.extend(words.into_iter().cloned());
    }
    args
}

fn is_word(arg: &OsString) -> bool {
    let Some(name) = arg.to_str().and_then(|arg| arg.strip_prefix('-')) else {
        return false;
    };
    let is_flags = name
        .chars()
        .all(|flag| matches!(flag, 'v' | 'q' | 'h' | 'V'));
    !name.is_empty() && !name.starts_with('-') && name != "c" && !is_flags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_a_dash_stand_behind_the_options() {
        let cases = [
            (
                "vocative conversations search acme/#general -deploy",
                "vocative conversations search acme/#general -- -deploy",
            ),
            (
                "vocative -v conversations search acme -1 gcc -Werror --limit 5 -c file",
                "vocative -v conversations search acme gcc --limit 5 -c file -- -1 -Werror",
            ),
            (
                "vocative conversations search acme -- -deploy",
                "vocative conversations search acme -- -deploy",
            ),
            (
                "vocative conversations search -h",
                "vocative conversations search -h",
            ),
            (
                "vocative conversations list -deploy",
                "vocative conversations list -deploy",
            ),
        ];
        for (given, expected) in cases {
            let words = as_words(given.split(' ').map(OsString::from));
            let expected: Vec<OsString> = expected.split(' ').map(OsString::from).collect();
            assert_eq!(words, expected, "{given}");
        }
    }
}
