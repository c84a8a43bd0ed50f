//! Percent-encoded paths.

/// A path with its escapes decoded; invalid escapes stay as they are.
pub(crate) fn decoded(path: &str) -> String {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let escape = (first == b'%').then(|| after.get(..2)).flatten();
        let byte = escape.and_then(|digits| {
            let digits = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(digits, 16).ok()
        });
        match byte {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn escapes_are_undone_and_other_signs_stay() {
        let cases = [
            ("/bot1%3Aa/getMe", "/bot1:a/getMe"),
            ("/a+b", "/a+b"),
            ("/100%", "/100%"),
            ("/%zz%41", "/%zzA"),
            ("/%C3%A9", "/é"),
        ];
        for (path, plain) in cases {
            assert_eq!(decoded(path), plain, "{path}");
        }
    }
}
