//! What comes over HTTP: requests that Slack signs, forms with files, where a reader goes on.

use vocative_channels::multipart::Multipart;
use vocative_channels::slack::{SlackDelivery, fuzzing, translate};
use vocative_core::ids::EventId;

use super::speech::{NOW_MS, check_envelope, slack_bot};

const SECRET: &str = "0123456789abcdef0123456789abcdef";
const NOW_S: i64 = NOW_MS / 1_000;
/// How old a request may be, in seconds.
const AGE_MAX_S: u64 = 300;

/// A first line with the path, the timestamp and the signature; then the body.
pub(super) fn slack(input: &[u8]) {
    let end = input.iter().position(|byte| *byte == b'\n');
    let (head, body) = input.split_at(end.unwrap_or(0));
    let body = body.strip_prefix(b"\n").unwrap_or(body);
    let head = String::from_utf8_lossy(head);
    let mut words = head.split(' ');
    let mut word = || words.next().unwrap_or_default();
    let (path, timestamp, claimed) = (word(), word(), word());
    check_signature(timestamp, claimed, body);
    match fuzzing::request(path, body) {
        Some(Err((kind, payload))) => {
            let delivery = SlackDelivery {
                channel: "acme",
                kind,
                envelope_id: "e1",
                payload: &payload,
                received_at_ms: NOW_MS,
            };
            check_envelope(&translate(&delivery, &slack_bot()), &payload);
            // A form's escapes only get shorter, but for what is no UTF-8 and JSON's own.
            assert!(payload.len() <= body.len() * 8 + 100, "a body that grows");
        }
        Some(Ok(challenge)) => {
            let said = String::from_utf8_lossy(body);
            let is_asked = said.contains("url_verification") || said.contains("\\u");
            assert!(is_asked, "nobody asked for {challenge:?}");
        }
        None => assert!(!body.is_empty(), "an empty body is no look"),
    }
}

fn check_signature(timestamp: &str, claimed: &str, body: &[u8]) {
    let right = fuzzing::signature(SECRET, timestamp, body);
    let is_taken = |signature: &str| fuzzing::is_signed(SECRET, timestamp, signature, body, NOW_S);
    let at_s = timestamp.parse::<i64>();
    let is_young = at_s.is_ok_and(|at_s| NOW_S.abs_diff(at_s) <= AGE_MAX_S);
    assert_eq!(
        is_taken(&right),
        is_young,
        "a right signature at {timestamp:?}"
    );
    let is_right = claimed.eq_ignore_ascii_case(&right) && claimed.starts_with("v0=");
    assert!(
        is_right || !is_taken(claimed),
        "{claimed:?} is taken for a signature"
    );
    let other = [body, b"x"].concat();
    assert!(
        !fuzzing::is_signed(SECRET, timestamp, &right, &other, NOW_S),
        "another body is taken for the signed one"
    );
}

/// The names of a field and a file, and its type; then the bytes of the file.
pub(super) fn form(input: &[u8]) {
    let mut lines = input.splitn(4, |byte| *byte == b'|');
    let mut next = || lines.next().unwrap_or_default();
    let [name, file_name, mime_type] = [next(), next(), next()].map(String::from_utf8_lossy);
    let bytes = next();
    let (kind, body) = Multipart::new(bytes)
        .field("model", "ear")
        .file(&name, &file_name, &mime_type, bytes)
        .finish();
    let boundary = kind
        .split_once("boundary=")
        .map(|(_, it)| format!("\r\n--{it}"));
    let boundary = boundary.expect("a form names its boundary");
    let parts = split(&[b"\r\n", body.as_slice()].concat(), boundary.as_bytes());
    assert_eq!(parts.len(), 4, "what is before, a field, a file, the end");
    let head_end = parts[2].windows(4).position(|part| part == b"\r\n\r\n");
    let (head, content) = parts[2].split_at(head_end.expect("a head has an end") + 4);
    let head = String::from_utf8_lossy(head);
    assert_eq!(
        head.matches('\n').count(),
        4,
        "a line that nobody wrote: {head:?}"
    );
    let disposition = head.lines().nth(1).unwrap_or_default();
    assert_eq!(
        disposition.matches('"').count(),
        4,
        "a name that ends its quotes: {head:?}"
    );
    assert_eq!(content, bytes, "not the file");
}

/// What is between boundaries, which stand at the beginning of a line.
fn split(mut body: &[u8], boundary: &[u8]) -> Vec<Vec<u8>> {
    let mut parts = Vec::new();
    while let Some(at) = body.windows(boundary.len()).position(|it| it == boundary) {
        parts.push(body[..at].to_vec());
        body = &body[at + boundary.len()..];
    }
    parts.push(body.to_vec());
    parts
}

/// What a reader of events says that it has had.
pub(super) fn event_id(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    match EventId::read(&text) {
        Some(EventId(id)) => {
            assert!(id >= 0, "events begin with 0");
            let digits = text.trim().trim_start_matches('+').trim_start_matches('0');
            let shown = id.to_string();
            assert!(
                digits == shown || (id == 0 && digits.is_empty()),
                "{text:?} is no {id}"
            );
        }
        None => assert!(
            text.trim().parse::<u32>().is_err(),
            "{text:?} is a whole number"
        ),
    }
}
