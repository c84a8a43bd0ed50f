//! Whether a request comes from Slack: its signature over the raw bytes, and its age. Pure.
//!
//! Source: Slack, "Verifying requests from Slack".

use http::HeaderMap;

use crate::door::only;
use crate::mac;

/// How far the time of a request may be from ours, before or after, in seconds.
const AGE_MAX_S: i64 = 300;

/// Why a request is refused; holds nothing from the request itself.
pub(super) type SignatureRefusal = &'static str;

/// What the headers of a request claim.
#[derive(Clone, Copy, Debug)]
pub(super) struct SignatureClaim<'h> {
    timestamp: &'h str,
    /// In hexadecimal.
    hash: &'h str,
}

/// Reads the headers of a request at an instant, in seconds since the Unix epoch. A request with a timestamp too far
/// away, or without a signature, is refused before its body is read.
pub(super) fn claim(
    headers: &HeaderMap,
    now_s: i64,
) -> Result<SignatureClaim<'_>, SignatureRefusal> {
    let header = |name: &str| only(headers, name)?.to_str().ok();
    let timestamp = header("x-slack-request-timestamp").ok_or("it has no timestamp, or several")?;
    let signature = header("x-slack-signature").ok_or("it has no signature, or several")?;
    let at_s: i64 = timestamp.parse().map_err(|_| "its timestamp is none")?;
    if now_s.abs_diff(at_s) > AGE_MAX_S.unsigned_abs() {
        return Err("its timestamp is more than 5 minutes away; is the clock right?");
    }
    let hash = signature
        .strip_prefix("v0=")
        .ok_or("its signature is of an unknown version")?;
    Ok(SignatureClaim { timestamp, hash })
}

/// Checks a request at an instant, in seconds since the Unix epoch.
pub(super) fn check(
    signing_secret: &str,
    headers: &HeaderMap,
    body: &[u8],
    now_s: i64,
) -> Result<(), SignatureRefusal> {
    let SignatureClaim { timestamp, hash } = claim(headers, now_s)?;
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

    /// Slack's documented example: a slash command with its secret, time and signature.
    #[test]
    fn slacks_documented_example_is_known() {
        let secret = "8f742231b10e8888abcd99yyyzzz85a5";
        let body = b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow\
            &channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner\
            &command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands\
            %2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121\
            .803a0bc887a14d10d2c447fce8b6703c";
        let at_s = 1_531_420_618;
        let hash = "a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503";
        let signed = headers(&format!("v0={hash}"), &at_s.to_string());
        assert_eq!(check(secret, &signed, body, at_s), Ok(()));
        for other in [
            format!("v0={}", hash.to_uppercase()),
            format!("V0={hash}"),
            format!("v0={hash},v0={hash}"),
            hash.to_owned(),
        ] {
            let other = headers(&other, &at_s.to_string());
            assert!(check(secret, &other, body, at_s).is_err(), "{other:?}");
        }
    }

    #[test]
    fn of_two_signatures_or_times_none_is_chosen() {
        for name in ["x-slack-signature", "x-slack-request-timestamp"] {
            let mut twice = headers(SIGNATURE, &AT_S.to_string());
            let value = twice[name].clone();
            twice.append(name, value);
            assert!(check(SECRET, &twice, BODY, AT_S).is_err(), "{name}");
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
