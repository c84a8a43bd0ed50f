//! Who is let in, before anything else of a request is looked at.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};

use super::refusal::Refusal;
use crate::admin::health::ListenerHealth;

/// Who is let in.
#[derive(Clone)]
pub(super) struct Gate {
    /// The digest of the token; `None` = everybody who can reach the listener.
    token: Option<[u8; 32]>,
    /// Without a token, a page in a browser of this machine must not reach it under a name of its own.
    needs_local_host: bool,
    health: Arc<ListenerHealth>,
}

impl Gate {
    pub(super) fn new(
        token: Option<&SecretString>,
        is_tcp: bool,
        health: Arc<ListenerHealth>,
    ) -> Self {
        Self {
            needs_local_host: is_tcp && token.is_none(),
            token: token.map(|token| digest(token.expose_secret())),
            health,
        }
    }

    fn check(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        if self.needs_local_host && !names_local_host(headers) {
            return Err(Refusal::new(
                StatusCode::FORBIDDEN,
                "without a token only this machine's own names are answered to",
                "ask for 127.0.0.1 or localhost, or set api.token",
            ));
        }
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
pub(super) async fn pass(State(gate): State<Gate>, request: Request, next: Next) -> Response {
    let answer = match gate.check(request.headers()) {
        Ok(()) => next.run(request).await,
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

fn names_local_host(headers: &HeaderMap) -> bool {
    let Some(host) = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok())
    else {
        return true;
    };
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(gate: &Gate, sent: &[(header::HeaderName, &'static str)]) -> Option<u16> {
        let sent = sent.iter();
        let headers = sent
            .map(|(name, value)| (name.clone(), header::HeaderValue::from_static(value)))
            .collect();
        let refused = gate.check(&headers).err();
        refused.map(|refusal| refusal.status.as_u16())
    }

    #[test]
    fn only_the_whole_token_is_let_in() {
        let gate = Gate::new(
            Some(&SecretString::from("s3cret-token")),
            true,
            Arc::default(),
        );
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
    fn without_a_token_a_page_with_a_name_of_its_own_is_refused() {
        let gate = Gate::new(None, true, Arc::default());
        let table = [
            ("127.0.0.1:8087", None),
            ("localhost:8087", None),
            ("[::1]:8087", None),
            ("evil.example:8087", Some(403)),
            ("127.0.0.1.evil.example", Some(403)),
        ];
        for (host, expected) in table {
            assert_eq!(status(&gate, &[(header::HOST, host)]), expected, "{host}");
        }
        let on_a_socket = Gate::new(None, false, Arc::default());
        assert_eq!(status(&on_a_socket, &[(header::HOST, "vocative")]), None);
        let with_body = [(header::CONTENT_LENGTH, "10"), (header::HOST, "localhost")];
        assert_eq!(status(&gate, &with_body), Some(413));
    }
}
