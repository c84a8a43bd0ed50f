//! Who is let in, before anything else of a request is looked at.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use secrecy::ExposeSecret as _;
use sha2::{Digest as _, Sha256};
use tokio::time::timeout;

use super::callers::{ApiCaller, ApiKey};
use super::refusal::ApiRefusal;
use crate::admin::health::ListenerHealth;
use crate::http::host;

/// The largest body that is read, in bytes.
pub(super) const BODY_MAX_BYTES: usize = 64 << 10;
/// The longest work on a request before its answer begins. Shorter than its connection waits for the answer.
const WORK: Duration = Duration::from_secs(10);

/// Who is let in.
#[derive(Clone)]
pub(super) struct ApiGate {
    /// Digests of the tokens and who bears them; empty = everybody who can reach the listener reads.
    keys: Arc<[(TokenDigest, Arc<ApiCaller>)]>,
    health: Arc<ListenerHealth>,
}

impl ApiGate {
    pub(super) fn new(keys: &[ApiKey], health: Arc<ListenerHealth>) -> Self {
        let key = |key: &ApiKey| {
            let caller = Arc::new(ApiCaller::of(key));
            (digest(key.secret.expose_secret()), caller)
        };
        Self {
            keys: keys.iter().map(key).collect(),
            health,
        }
    }

    fn check(&self, method: &Method, headers: &HeaderMap) -> Result<Arc<ApiCaller>, ApiRefusal> {
        let caller = self.caller(headers)?;
        if *method == Method::GET || *method == Method::HEAD {
            refuse_body(headers)?;
        }
        Ok(caller)
    }

    /// The caller whose token it is. A token under two names is refused: its actions could be recorded under the wrong
    /// one.
    fn caller(&self, headers: &HeaderMap) -> Result<Arc<ApiCaller>, ApiRefusal> {
        if self.keys.is_empty() {
            return Ok(Arc::new(ApiCaller::anybody()));
        }
        let borne = borne(headers);
        let keys = self.keys.iter();
        let found: Vec<_> = keys.filter(|(token, _)| is_same(&borne, token)).collect();
        match found.as_slice() {
            [(_, caller)] => Ok(Arc::clone(caller)),
            [] => Err(ApiRefusal::new(
                StatusCode::UNAUTHORIZED,
                "the token is missing or wrong",
                "send the header Authorization: Bearer TOKEN with a secret that api.token or api.tokens name",
            )),
            _ => Err(ApiRefusal::new(
                StatusCode::UNAUTHORIZED,
                "several tokens of api.tokens have this same secret",
                "give each a secret of its own",
            )),
        }
    }
}

/// Refuses a body on a request that only reads.
fn refuse_body(headers: &HeaderMap) -> Result<(), ApiRefusal> {
    let has_body = headers.contains_key(header::TRANSFER_ENCODING)
        || headers
            .get(header::CONTENT_LENGTH)
            .is_some_and(|length| length != "0");
    match has_body {
        true => Err(ApiRefusal::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "a request has no body here",
            "send GET without one",
        )),
        false => Ok(()),
    }
}

/// Lets a request in, or answers it.
pub(super) async fn pass(
    State(gate): State<ApiGate>,
    mut request: Request,
    next: Next,
) -> Response {
    let answer = match gate.check(request.method(), request.headers()) {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(refusal) => refusal.into_response(),
    };
    if answer.status().is_client_error() {
        gate.health.refused();
    }
    answer
}

/// Refuses a request that the store does not answer in time.
pub(super) async fn in_time(request: Request, next: Next) -> Response {
    match timeout(WORK, next.run(request)).await {
        Ok(answer) => answer,
        Err(_) => ApiRefusal::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "the store does not answer in time",
            "ask again later; look first whether what was to be changed is",
        )
        .into_response(),
    }
}

/// Lets requests of programs in, but not those of web pages: a page in a browser may reach an address that only the
/// browser's user can. `address` = the listener's, where it has one.
pub(super) async fn from_program(
    State(address): State<Option<SocketAddr>>,
    request: Request,
    next: Next,
) -> Response {
    let headers = request.headers();
    let is_local = address.is_some_and(|it| it.ip().is_loopback());
    let refused = if headers.contains_key(header::ORIGIN) {
        Some((
            "it comes from a web page (the header Origin)",
            "ask from a program of yours",
        ))
    } else if is_local && !host::names_local_host(headers) {
        Some((
            "it names another machine (the header Host)",
            "ask for 127.0.0.1 or localhost; a proxy sets the header so",
        ))
    } else {
        None
    };
    match refused {
        Some((what, advice)) => {
            let what = format!("the request is not taken: {what}");
            ApiRefusal::new(StatusCode::FORBIDDEN, what, advice).into_response()
        }
        None => next.run(request).await,
    }
}

/// A token, as its hash.
type TokenDigest = [u8; 32];

fn digest(text: &str) -> TokenDigest {
    Sha256::digest(text.as_bytes()).into()
}

/// The digest of the token that a request carries.
fn borne(headers: &HeaderMap) -> TokenDigest {
    let borne = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map_or("", |(_, borne)| borne.trim());
    digest(borne)
}

/// Compares all bytes of two digests, so that the time it takes reveals nothing of the token.
fn is_same(borne: &TokenDigest, token: &TokenDigest) -> bool {
    let differing = borne.iter().zip(token).fold(0, |sum, (a, b)| sum | (a ^ b));
    differing == 0
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use secrecy::SecretString;

    use super::*;

    fn key(name: &str, secret: &str) -> ApiKey {
        ApiKey {
            name: name.to_owned(),
            secret: SecretString::from(secret),
            scopes: BTreeSet::new(),
            people: Vec::new(),
            asking: None,
        }
    }

    fn status(gate: &ApiGate, sent: &[(header::HeaderName, &'static str)]) -> Option<u16> {
        let sent = sent.iter();
        let headers = sent
            .map(|(name, value)| (name.clone(), header::HeaderValue::from_static(value)))
            .collect();
        let refused = gate.check(&Method::GET, &headers).err();
        refused.map(|refusal| refusal.status.as_u16())
    }

    #[test]
    fn only_the_whole_token_is_let_in() {
        let gate = ApiGate::new(&[key("desk", "s3cret-token")], Arc::default());
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
    fn a_token_that_two_have_is_nobodys() {
        let keys = [key("desk", "one"), key("shop", "two"), key("till", "two")];
        let gate = ApiGate::new(&keys, Arc::default());
        assert_eq!(
            status(&gate, &[(header::AUTHORIZATION, "Bearer one")]),
            None
        );
        let twice = status(&gate, &[(header::AUTHORIZATION, "Bearer two")]);
        assert_eq!(twice, Some(401));
    }

    #[test]
    fn a_request_with_a_body_is_refused() {
        let gate = ApiGate::new(&[], Arc::default());
        assert_eq!(status(&gate, &[(header::HOST, "vocative")]), None);
        assert_eq!(status(&gate, &[(header::CONTENT_LENGTH, "10")]), Some(413));
    }
}
