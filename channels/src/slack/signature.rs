//! Whether a request comes from Slack: its signature over the raw bytes, and its age. Pure.
//!
//! Source: Slack, "Verifying requests from Slack".

use http::HeaderMap;

use crate::mac;

/// How far the time of a request may be from ours, before or after, in seconds.
const AGE_MAX_S: i64 = 300;

/// Why a request is refused; never with anything of it.
pub(super) type Refusal = &'static str;

/// Checks a request at an instant, in seconds since the Unix epoch.
pub(super) fn check(
    signing_secret: &str,
    headers: &HeaderMap,
    body: &[u8],
    now_s: i64,
) -> Result<(), Refusal> {
    let header = |name: &str| headers.get(name)?.to_str().ok();
    let timestamp = header("x-slack-request-timestamp").ok_or("it has no timestamp")?;
    let signature = header("x-slack-signature").ok_or("it has no signature")?;
    let at_s: i64 = timestamp.parse().map_err(|_| "its timestamp is none")?;
    if now_s.abs_diff(at_s) > AGE_MAX_S.unsigned_abs() {
        return Err("its timestamp is more than 5 minutes away; is the clock right?");
    }
    let hash = signature
        .strip_prefix("v0=")
        .ok_or("its signature is of an unknown version")?;
    let parts: [&[u8]; 4] = [b"v0:", timestamp.as_bytes(), b":", body];
    if mac::is_hex_of(signing_secret.as_bytes(), &parts, hash) {
        Ok(())
    } else {
        Err("its signature is wrong; is signing_secret that of the app?")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "0123456789abcdef0123456789abcdef";
    const BODY: &[u8] = br#"{"type":"url_verification","challenge":"abc"}"#;
    const AT_S: i64 = 1_763_712_000;
    /// Computed with Slack's own verifier.
    const SIGNATURE: &str = "v0=cab6e9435282db55b6e5a0339a34e4219e640997efef39afc372195269d322eb";

    fn headers(signature: &str, timestamp: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("x-slack-signature", signature),
            ("x-slack-request-timestamp", timestamp),
        ] {
            headers.insert(name, value.parse().expect("it is a header's value"));
        }
        headers
    }

    #[test]
    fn slacks_own_signature_is_known() {
        let signed = headers(SIGNATURE, &AT_S.to_string());
        for now_s in [AT_S, AT_S - 300, AT_S + 300] {
            assert_eq!(check(SECRET, &signed, BODY, now_s), Ok(()));
        }
    }

    #[test]
    fn whatever_differs_is_refused() {
        let at = AT_S.to_string();
        let signed = headers(SIGNATURE, &at);
        let is_refused = |headers: &HeaderMap, secret: &str, body: &[u8], now_s| {
            check(secret, headers, body, now_s).is_err()
        };
        for now_s in [AT_S - 301, AT_S + 301, 0, i64::MAX, i64::MIN] {
            assert!(is_refused(&signed, SECRET, BODY, now_s), "{now_s}");
        }
        assert!(is_refused(&signed, "another", BODY, AT_S));
        assert!(is_refused(&signed, SECRET, b"{}", AT_S));
        assert!(is_refused(&signed, SECRET, &[BODY, b"\n"].concat(), AT_S));
        for (signature, timestamp) in [
            ("", at.as_str()),
            ("v0=", &at),
            (&SIGNATURE[3..], &at),
            (&SIGNATURE.replace("v0=", "v1="), &at),
            (SIGNATURE, "1763712001"),
            (SIGNATURE, "soon"),
            (SIGNATURE, ""),
        ] {
            let headers = headers(signature, timestamp);
            assert!(
                is_refused(&headers, SECRET, BODY, AT_S),
                "{signature} {timestamp}"
            );
        }
        assert!(is_refused(&HeaderMap::new(), SECRET, BODY, AT_S));
    }
}
