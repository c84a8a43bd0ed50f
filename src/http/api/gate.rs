//! Who is let in, before anything else of a request is looked at.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};
use tokio::time::timeout;

use super::refusal::Refusal;
use crate::admin::health::ListenerHealth;

/// How long a request is worked on before its answer begins. Shorter than its connection waits for that.
const WORK: Duration = Duration::from_secs(10);

/// Who is let in.
#[derive(Clone)]
pub(super) struct ApiGate {
    /// The digest of the token; `None` = everybody who can reach the listener.
    token: Option<[u8; 32]>,
    health: Arc<ListenerHealth>,
}

impl ApiGate {
    pub(super) fn new(token: Option<&SecretString>, health: Arc<ListenerHealth>) -> Self {
        Self {
            token: token.map(|token| digest(token.expose_secret())),
            health,
        }
    }

    fn check(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        if self.token.is_some_and(|token| !bears(headers, &token)) {
            return Err(Refusal::new(
                StatusCode::UNAUTHORIZED,
                "the token is missing or wrong",
                "send the header Authorization: Bearer TOKEN with the secret that api.token names",
            ));
        }
        let has_body = headers.contains_key(header::TRANSFER_ENCODING)
            || headers
                .get(header::CONTENT_LENGTH)
                .is_some_and(|length| length != "0");
        if has_body {
            return Err(Refusal::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "a request has no body here",
                "send GET without one",
            ));
        }
        Ok(())
    }
}

/// Lets a request in, or answers it.
pub(super) async fn pass(State(gate): State<ApiGate>, request: Request, next: Next) -> Response {
    let answer = match gate.check(request.headers()) {
        Ok(()) => match timeout(WORK, next.run(request)).await {
            Ok(answer) => answer,
            Err(_) => Refusal::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "the store does not answer in time",
                "ask again later",
            )
            .into_response(),
        },
        Err(refusal) => refusal.into_response(),
    };
    if answer.status().is_client_error() {
        gate.health.refused();
    }
    answer
}

fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// Compares digests, and all of them: how long it takes tells nothing of the token.
fn bears(headers: &HeaderMap, token: &[u8; 32]) -> bool {
    let borne = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map_or("", |(_, borne)| borne.trim());
    let borne = digest(borne);
    let differing = borne.iter().zip(token).fold(0, |sum, (a, b)| sum | (a ^ b));
    differing == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(gate: &ApiGate, sent: &[(header::HeaderName, &'static str)]) -> Option<u16> {
        let sent = sent.iter();
        let headers = sent
            .map(|(name, value)| (name.clone(), header::HeaderValue::from_static(value)))
            .collect();
        let refused = gate.check(&headers).err();
        refused.map(|refusal| refusal.status.as_u16())
    }

    #[test]
    fn only_the_whole_token_is_let_in() {
        let gate = ApiGate::new(Some(&SecretString::from("s3cret-token")), Arc::default());
        let table = [
            ("Bearer s3cret-token", None),
            ("bearer  s3cret-token", None),
            ("Bearer s3cret-toke", Some(401)),
            ("Bearer s3cret-tokens", Some(401)),
            ("Basic s3cret-token", Some(401)),
            ("s3cret-token", Some(401)),
            ("Bearer ", Some(401)),
        ];
        for (borne, expected) in table {
            let answered = status(&gate, &[(header::AUTHORIZATION, borne)]);
            assert_eq!(answered, expected, "{borne}");
        }
        assert_eq!(status(&gate, &[]), Some(401));
    }

    #[test]
    fn a_request_with_a_body_is_refused() {
        let gate = ApiGate::new(None, Arc::default());
        assert_eq!(status(&gate, &[(header::HOST, "vocative")]), None);
        assert_eq!(status(&gate, &[(header::CONTENT_LENGTH, "10")]), Some(413));
    }
}
