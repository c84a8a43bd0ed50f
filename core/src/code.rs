//! Codes that people read in one place and write in another, to show that they can read the first. Pure.

use sha2::{Digest as _, Sha256};

/// Letters and digits that can't be taken for one another.
const SIGNS: &[u8; 32] = b"23456789ABCDEFGHJKLMNPQRSTUVWXYZ";
/// The characters between the halves of a code, as phones and keyboards write them.
const DASHES: [char; 5] = ['-', '\u{2010}', '\u{2011}', '–', '—'];
/// The length of a code, in signs of five bits each.
const LENGTH: usize = 8;

/// A code, as it is compared: capital letters and digits alone.
#[derive(Clone, PartialEq, Eq)]
pub struct Code(String);

impl Code {
    /// A code made of random bytes.
    #[must_use]
    pub fn from_random(bytes: [u8; LENGTH]) -> Self {
        let sign = |byte: u8| char::from(SIGNS[usize::from(byte) % SIGNS.len()]);
        Self(bytes.map(sign).iter().collect())
    }

    /// The code that somebody typed; `None` if it is none.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let typed = text
            .chars()
            .filter(|c| !c.is_whitespace() && !DASHES.contains(c))
            .take(LENGTH + 1);
        let code: String = typed.map(|c| c.to_ascii_uppercase()).collect();
        let is_code = code.len() == LENGTH && code.bytes().all(|byte| SIGNS.contains(&byte));
        is_code.then_some(Self(code))
    }

    /// Whether a text is a code as it is shown: with something between its halves.
    #[must_use]
    pub fn is_as_shown(text: &str) -> bool {
        text.contains(DASHES) && Self::read(text).is_some()
    }

    /// The code for people: `K7QM-2F9X`.
    #[must_use]
    pub fn shown(&self) -> String {
        let (first, second) = self.0.split_at(LENGTH / 2);
        format!("{first}-{second}")
    }

    /// The digest that is stored in place of the code, in hexadecimal digits.
    #[must_use]
    pub fn digest(&self) -> String {
        let digest = Sha256::digest(self.0.as_bytes());
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl std::fmt::Debug for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Code(…)")
    }
}

/// Whether something made at `made_at_ms` is still within its life. It is not if a clock was set back or ahead by more
/// than that.
#[must_use]
pub fn is_alive(made_at_ms: i64, now_ms: i64, life_ms: i64) -> bool {
    (-life_ms..life_ms).contains(&now_ms.saturating_sub(made_at_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_read_however_it_is_typed() {
        let code = Code::from_random([0, 31, 32, 255, 8, 9, 10, 100]);
        let shown = code.shown();
        assert_eq!(shown.len(), 9, "{shown}");
        for typed in [
            shown.clone(),
            shown.to_lowercase(),
            shown.replace('-', ""),
            shown.replace('-', "–"),
            format!("  {} ", shown.replace('-', " ")),
        ] {
            assert!(Code::read(&typed) == Some(code.clone()), "{typed}");
        }
        for typed in [
            "",
            "K7QM-2F9",
            "K7QM-2F9XA",
            "K7QM-2F9O",
            "K7QM-2F9é",
            "my account",
        ] {
            assert!(Code::read(typed).is_none(), "{typed}");
        }
        assert!(Code::read(&"-".repeat(400_000)).is_none());
    }

    #[test]
    fn a_stored_code_is_not_the_code() {
        let code = Code::from_random([1; 8]);
        assert_eq!(code.digest().len(), 64);
        assert!(!code.digest().to_uppercase().contains(&code.0));
        assert_ne!(code.digest(), Code::from_random([2; 8]).digest());
    }

    #[test]
    fn a_life_is_no_longer_under_a_wrong_clock() {
        let table = [
            (0, true),
            (59, true),
            (60, false),
            (-60, true),
            (-61, false),
            (i64::MAX, false),
        ];
        for (later_ms, expected) in table {
            assert_eq!(
                is_alive(1_000, 1_000_i64.saturating_add(later_ms), 60),
                expected,
                "{later_ms}"
            );
        }
    }
}
