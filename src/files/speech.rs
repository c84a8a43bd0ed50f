//! Transcribes voice notes: one request per note, to a server that speaks OpenAI's protocol for transcriptions. Off
//! unless it is configured.

use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use vocative_channels::http::{body_within, retry_after_ms, what_broke};
use vocative_channels::multipart::Multipart;

use crate::llm::account_refusal;
use vocative_core::file::FileFacts;
use vocative_core::queueing::Outcome;

/// The length to which transcripts are cut, in characters: some hours of speech.
const TRANSCRIPT_MAX_CHARS: usize = 32_000;
/// The longest answer that is read as a transcript, in bytes.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// The longest error whose text is read, in bytes; of a longer one only the status counts.
const ERROR_BYTES_MAX: usize = 64 << 10;

/// Transcribes voice notes.
pub struct Transcriber {
    /// Makes the requests.
    pub http: reqwest::Client,
    /// Address of the API, without a slash at its end.
    pub base_url: String,
    /// The provider's name of the model.
    pub model: String,
    /// The key, if one is needed.
    pub api_key: Option<SecretString>,
    /// How long one request may take.
    pub timeout: Duration,
}

/// Why there is no transcript. Never holds an address or a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpeechError {
    /// The next request may succeed.
    #[error("the transcription server can't answer: {what}")]
    Unavailable {
        /// What happened.
        what: String,
        /// The wait that it asks for.
        wait_ms: Option<u64>,
    },
    /// The account is refused, and with it every note, until somebody acts.
    #[error("the transcription server refuses the account: {what}")]
    AccountRefused {
        /// What it says, and what to check.
        what: String,
    },
    /// The note would be refused again.
    #[error("the transcription server refuses: {what}")]
    Refused {
        /// What it says.
        what: String,
    },
}

impl Transcriber {
    /// The text of a voice note; empty if nothing is said in it.
    ///
    /// # Errors
    /// [`SpeechError`].
    pub async fn transcribe(
        &self,
        facts: &FileFacts,
        bytes: &[u8],
    ) -> Result<SpokenText, SpeechError> {
        let mime_type = facts.mime_type.as_deref().unwrap_or("audio/ogg");
        let name = format!("voice.{}", ending_of(mime_type));
        let (kind, body) = Multipart::new(bytes)
            .field("model", &self.model)
            .field("response_format", "json")
            .file("file", &name, mime_type, bytes)
            .finish();
        let mut request = self
            .http
            .post(format!("{}/audio/transcriptions", self.base_url))
            .header("content-type", kind)
            .timeout(self.timeout)
            .body(body);
        if let Some(key) = &self.api_key {
            request = request.bearer_auth(key.expose_secret());
        }
        let response = request.send().await.map_err(|error| broken(&error))?;
        let status = response.status().as_u16();
        let wait_ms = retry_after_ms(response.headers());
        if status != 200 {
            let body = body_within(response, ERROR_BYTES_MAX).await;
            let body = body.ok().flatten().unwrap_or_default();
            return Err(refused_status(
                status,
                wait_ms,
                &String::from_utf8_lossy(&body),
            ));
        }
        let answer = body_within(response, ANSWER_BYTES_MAX).await;
        let answer = answer.map_err(|error| broken(&error))?;
        let answer = answer.ok_or_else(no_transcript)?;
        let text = text_of(&answer)?;
        Ok(SpokenText {
            tokens: tokens_of(&answer, &text, bytes.len()),
            text,
        })
    }
}

/// The text of a voice note, and the cost of transcribing it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpokenText {
    /// What is said.
    pub text: String,
    /// The cost in tokens: as the server reports it, else an estimate by the length of the note.
    pub tokens: u64,
}

/// Tokens of one second of speech. *Source:* a minute costs what about a thousand tokens do at the providers
/// that bill minutes.
const TOKENS_PER_SECOND: u64 = 17;
/// Bytes of one second of a voice note, if its length is unknown: 16 kbit/s, as phones record them.
const BYTES_PER_SECOND: u64 = 2_000;
/// The number of bytes of a transcript that are about one token.
const BYTES_PER_TOKEN: u64 = 4;

/// The tokens of an answer: its `usage` counts tokens or seconds; without one they are estimated from the bytes.
fn tokens_of(answer: &[u8], text: &str, bytes: usize) -> u64 {
    let answer: Option<Value> = serde_json::from_slice(answer).ok();
    let usage = answer.as_ref().map(|answer| &answer["usage"]);
    let told = usage.and_then(|usage| usage["total_tokens"].as_u64());
    let seconds = usage.and_then(|usage| usage["seconds"].as_f64());
    let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
    let seconds = match seconds.filter(|seconds| (0.0..1e9).contains(seconds)) {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        Some(seconds) => seconds.ceil() as u64,
        None => bytes.div_ceil(BYTES_PER_SECOND),
    };
    let written = u64::try_from(text.len())
        .unwrap_or(u64::MAX)
        .div_ceil(BYTES_PER_TOKEN);
    let estimate = || {
        seconds
            .saturating_mul(TOKENS_PER_SECOND)
            .saturating_add(written)
    };
    told.unwrap_or_else(estimate)
}

fn no_transcript() -> SpeechError {
    SpeechError::Refused {
        what: "its answer is no transcript; check transcription.base_url".to_owned(),
    }
}

fn text_of(answer: &[u8]) -> Result<String, SpeechError> {
    let answer: Option<Value> = serde_json::from_slice(answer).ok();
    let text = answer.as_ref().and_then(|answer| answer["text"].as_str());
    let text = text.ok_or_else(no_transcript)?;
    let shown = text.chars().filter(|c| !c.is_control() || *c == '\n');
    let text: String = shown.take(TRANSCRIPT_MAX_CHARS).collect();
    Ok(text.trim().to_owned())
}

fn broken(error: &reqwest::Error) -> SpeechError {
    SpeechError::Unavailable {
        what: what_broke(error).to_owned(),
        wait_ms: None,
    }
}

fn refused_status(status: u16, wait_ms: u64, body: &str) -> SpeechError {
    if let Some(what) = account_refusal(status, body) {
        return SpeechError::AccountRefused { what };
    }
    let what = format!("HTTP {status}");
    match status {
        429 => SpeechError::Unavailable {
            what,
            wait_ms: Some(wait_ms),
        },
        408 | 500.. => SpeechError::Unavailable {
            what,
            wait_ms: None,
        },
        _ => SpeechError::Refused { what },
    }
}

/// The file extension by which the server recognises the format.
fn ending_of(mime_type: &str) -> &'static str {
    let kinds = [
        ("mpeg", "mp3"),
        ("mp4", "m4a"),
        ("m4a", "m4a"),
        ("aac", "m4a"),
        ("wav", "wav"),
        ("webm", "webm"),
        ("flac", "flac"),
    ];
    let found = kinds.iter().find(|(kind, _)| mime_type.contains(kind));
    found.map_or("ogg", |(_, ending)| ending)
}

/// What happens to the job of a note that was not transcribed; `None` = the note never will be. Pure.
#[must_use]
pub fn after_speech(error: &SpeechError, now_ms: i64) -> Option<Outcome> {
    let why = error.to_string();
    match error {
        // Whether the server is asked at all is decided elsewhere (`held`).
        SpeechError::AccountRefused { .. } => Some(Outcome::Later {
            not_before_ms: now_ms,
            why,
        }),
        SpeechError::Unavailable { wait_ms, .. } => Some(Outcome::Failed {
            why,
            asked_wait_ms: *wait_ms,
        }),
        SpeechError::Refused { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_transcript_is_a_text_of_a_bounded_length() {
        assert_eq!(
            text_of(br#"{"text":" hello\u0007 there "}"#).unwrap(),
            "hello there"
        );
        assert_eq!(text_of(br#"{"text":""}"#).unwrap(), "");
        for bad in [b"<html>".as_slice(), b"{}", br#"{"text":7}"#] {
            assert!(matches!(text_of(bad), Err(SpeechError::Refused { .. })));
        }
        let long = format!("{{\"text\":\"{}\"}}", "a".repeat(40_000));
        assert_eq!(
            text_of(long.as_bytes()).unwrap().len(),
            TRANSCRIPT_MAX_CHARS
        );
    }

    #[test]
    fn what_a_note_cost_says_the_server_or_its_length() {
        let table: [(&[u8], u64); 8] = [
            (br#"{"usage":{"type":"tokens","total_tokens":321}}"#, 321),
            (
                br#"{"usage":{"type":"duration","seconds":2.2}}"#,
                3 * 17 + 2,
            ),
            (br#"{"usage":{"seconds":-1}}"#, 5 * 17 + 2),
            (br#"{"usage":{"seconds":1e300}}"#, 5 * 17 + 2),
            (br#"{"usage":{"total_tokens":"7"}}"#, 5 * 17 + 2),
            (br#"{"usage":7}"#, 5 * 17 + 2),
            (br#"{"text":"hello you"}"#, 5 * 17 + 2),
            (b"<html>", 5 * 17 + 2),
        ];
        for (answer, expected) in table {
            let told = tokens_of(answer, "hello me", 9_001);
            assert_eq!(told, expected, "{}", String::from_utf8_lossy(answer));
        }
    }

    #[tokio::test]
    async fn an_answer_that_never_ends_is_no_transcript() {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}", listener.local_addr().unwrap());
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = [0_u8; 64];
            stream.read_exact(&mut head).await.unwrap();
            let answer = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"text\":\"";
            stream.write_all(answer.as_bytes()).await.unwrap();
            // Until the reader is gone.
            while stream.write_all(&[b'a'; 1 << 16]).await.is_ok() {}
        });
        let transcriber = Transcriber {
            http: vocative_channels::http::client(vocative_channels::http::HttpTimeouts::default())
                .unwrap(),
            base_url,
            model: "ear".to_owned(),
            api_key: None,
            timeout: Duration::from_secs(30),
        };
        let facts = FileFacts {
            kind: "voice".to_owned(),
            name: None,
            mime_type: None,
            size_bytes: None,
        };
        let heard = transcriber.transcribe(&facts, b"OggS").await;
        assert_eq!(heard, Err(no_transcript()));
        server.await.unwrap();
    }

    #[test]
    fn a_server_that_is_away_is_asked_again_and_one_that_refuses_is_not() {
        let asked_wait_ms =
            |status, wait_ms| match after_speech(&refused_status(status, wait_ms, ""), 7) {
                Some(Outcome::Failed { asked_wait_ms, .. }) => Some(asked_wait_ms),
                _ => None,
            };
        assert_eq!(asked_wait_ms(503, 9), Some(None));
        assert_eq!(asked_wait_ms(429, 9_000), Some(Some(9_000)));
        assert_eq!(asked_wait_ms(400, 9), None);
    }

    #[test]
    fn a_note_waits_for_an_account_however_often_it_is_refused() {
        let quota = r#"{"error":{"code":"insufficient_quota","message":"You exceeded"}}"#;
        let billing = r#"{"error":{"message":"x","type":"billing_not_active","code":null}}"#;
        for (status, body) in [
            (401, ""),
            (402, ""),
            (403, "{}"),
            (429, quota),
            (429, billing),
        ] {
            let refused = refused_status(status, 9, body);
            assert!(
                matches!(refused, SpeechError::AccountRefused { .. }),
                "{status} {body}: {refused:?}"
            );
            let later = after_speech(&refused, 7);
            assert!(
                matches!(
                    later,
                    Some(Outcome::Later {
                        not_before_ms: 7,
                        ..
                    })
                ),
                "{later:?}"
            );
        }
    }
}
