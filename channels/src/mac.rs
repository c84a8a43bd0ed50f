//! Keyed hashes (HMAC-SHA256): checked in constant time, or written in hexadecimal.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

fn over(key: &[u8], parts: &[&[u8]]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    for part in parts {
        mac.update(part);
    }
    mac
}

/// The hash of some parts in a row, in lower-case hexadecimal.
pub(crate) fn hex(key: &[u8], parts: &[&[u8]]) -> String {
    let bytes = over(key, parts).finalize().into_bytes();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether `claimed` is the hash as [`hex`] writes it: 64 lower-case hexadecimal digits. Takes the same time whichever
/// digits differ.
pub(crate) fn is_hex_of(key: &[u8], parts: &[&[u8]], claimed: &str) -> bool {
    unhex(claimed).is_some_and(|claimed| over(key, parts).verify_slice(&claimed).is_ok())
}

/// Whether two secrets are the same. Takes the same time wherever they differ.
pub(crate) fn is_same(secret: &[u8], claimed: &[u8]) -> bool {
    // Under one key, equal hashes are equal texts; the comparison reveals nothing about the texts.
    let known = over(secret, &[secret]).finalize().into_bytes();
    over(secret, &[claimed]).verify_slice(&known).is_ok()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let is_digit = |digit: &u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
    if !digits.len().is_multiple_of(2) || !digits.iter().all(is_digit) {
        return None;
    }
    let pairs = (0..digits.len()).step_by(2);
    pairs
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_known_again() {
        // RFC 4231, test case 2.
        let wanted = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        let text: &[&[u8]] = &[b"what do ya want ", b"for nothing?"];
        assert_eq!(hex(b"Jefe", text), wanted);
        assert!(is_hex_of(b"Jefe", text, wanted));
        for wrong in [
            "",
            "5b",
            "zz",
            &wanted[2..],
            &wanted.replace('5', "6"),
            &wanted.to_uppercase(),
            &format!(" {wanted}"),
            &format!("{wanted}00"),
        ] {
            assert!(!is_hex_of(b"Jefe", text, wrong), "{wrong}");
        }
    }

    #[test]
    fn secrets_are_the_same_or_not() {
        assert!(is_same(b"secret", b"secret"));
        for other in ["", "secre", "secret ", "Secret"] {
            assert!(!is_same(b"secret", other.as_bytes()), "{other}");
        }
    }
}
