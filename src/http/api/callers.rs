//! Who asks: the holder of a token, and what it may be used for.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::{Extension, Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use secrecy::SecretString;

use super::refusal::Refusal;
use crate::admin::operations::Operator;
use crate::config::ApiScope;
use crate::tools::PersonName;

/// A token of the API.
#[derive(Clone)]
pub struct ApiKey {
    /// Under which what it does is recorded.
    pub name: String,
    /// What requests must bear.
    pub secret: SecretString,
    /// What it may be used for.
    pub scopes: BTreeSet<ApiScope>,
    /// Whose it is.
    pub people: Vec<PersonName>,
}

/// Who asks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ApiCaller {
    pub(super) name: String,
    pub(super) scopes: BTreeSet<ApiScope>,
    pub(super) people: Vec<PersonName>,
}

impl ApiCaller {
    /// Whoever reaches a listener that has no tokens: they read.
    pub(super) fn anybody() -> Self {
        Self {
            name: "anybody".to_owned(),
            scopes: BTreeSet::from([ApiScope::Read]),
            people: Vec::new(),
        }
    }

    pub(super) fn of(key: &ApiKey) -> Self {
        Self {
            name: key.name.clone(),
            scopes: key.scopes.clone(),
            people: key.people.clone(),
        }
    }

    /// As whom it decides.
    pub(super) fn operator(&self) -> Operator {
        Operator::by_api(&self.name, &self.people)
    }

    /// Whether one of these scopes is its own, or it may do all.
    fn has_one_of(&self, scopes: &[ApiScope]) -> bool {
        let mut scopes = scopes.iter();
        self.scopes.contains(&ApiScope::Admin) || scopes.any(|scope| self.scopes.contains(scope))
    }
}

/// The caller of a request that was let in.
pub(super) type Caller = Extension<Arc<ApiCaller>>;

/// One of these is needed.
pub(super) type Needed = &'static [ApiScope];

/// Lets a request through to paths that need one of these scopes, or answers it.
pub(super) async fn need(
    State(needed): State<Needed>,
    Extension(caller): Caller,
    request: Request,
    next: Next,
) -> Response {
    if caller.has_one_of(needed) {
        return next.run(request).await;
    }
    let names: Vec<&str> = needed.iter().map(|scope| scope.name()).collect();
    Refusal::new(
        StatusCode::FORBIDDEN,
        format!(
            "{} may not do this: it needs the scope {}",
            caller.name,
            names.join(" or ")
        ),
        "use a token of [api.tokens] that has it in its scopes",
    )
    .into_response()
}
