//! Who asks: the holder of a token, and what it may be used for.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::{Extension, Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use secrecy::SecretString;

use super::refusal::ApiRefusal;
use crate::admin::operations::Operator;
use crate::config::{ApiAsking, ApiScope};
use crate::tools::PersonName;

/// A token of the API.
#[derive(Clone)]
pub struct ApiKey {
    /// The name under which its actions are recorded.
    pub name: String,
    /// The secret that requests must carry.
    pub secret: SecretString,
    /// What it may be used for.
    pub scopes: BTreeSet<ApiScope>,
    /// The people whom it belongs to.
    pub people: Vec<PersonName>,
    /// The person that it asks as, and the agents that it may ask.
    pub asking: Option<ApiAsking>,
}

/// Who asks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ApiCaller {
    pub(super) name: String,
    pub(super) scopes: BTreeSet<ApiScope>,
    pub(super) people: Vec<PersonName>,
    pub(super) asking: Option<ApiAsking>,
}

/// Which conversations and runs a caller sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    /// All of them.
    Everything,
    /// Only those of its person with agents, on the API's channel.
    Own(ApiOwner),
}

/// The person whose conversations of the API's channel are somebody's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ApiOwner(String);

impl ApiOwner {
    /// The prefix of the person's chats. It is unambiguous, because a person's name has no slash.
    pub(super) fn chats(&self) -> String {
        format!("{}/", self.0)
    }

    /// Whether a chat of the API's channel is one of its own.
    pub(super) fn has(&self, chat: &str) -> bool {
        chat.strip_prefix(self.0.as_str())
            .is_some_and(|rest| rest.starts_with('/'))
    }
}

impl ApiCaller {
    /// The caller on a listener that has no tokens: everybody may read.
    pub(super) fn anybody() -> Self {
        Self {
            name: "anybody".to_owned(),
            scopes: BTreeSet::from([ApiScope::Read]),
            people: Vec::new(),
            asking: None,
        }
    }

    pub(super) fn of(key: &ApiKey) -> Self {
        Self {
            name: key.name.clone(),
            scopes: key.scopes.clone(),
            people: key.people.clone(),
            asking: key.asking.clone(),
        }
    }

    /// Which conversations and runs it sees.
    pub(super) fn sight(&self) -> Result<Sight, ApiRefusal> {
        if self.has_one_of(&[ApiScope::Read]) {
            return Ok(Sight::Everything);
        }
        self.own().map(Sight::Own)
    }

    /// Which questions it sees.
    pub(super) fn sight_of_questions(&self) -> Sight {
        match self.own() {
            Ok(owner) if !self.has_one_of(&[ApiScope::Read, ApiScope::Act]) => Sight::Own(owner),
            _ => Sight::Everything,
        }
    }

    fn own(&self) -> Result<ApiOwner, ApiRefusal> {
        self.asking().map(|asking| ApiOwner(asking.person.clone()))
    }

    /// Whether it acts for everybody.
    pub(super) fn may_act(&self) -> bool {
        self.has_one_of(&[ApiScope::Act])
    }

    /// The person that it asks as, and the agents that it may ask.
    pub(super) fn asking(&self) -> Result<&ApiAsking, ApiRefusal> {
        let asking = self.asking.as_ref();
        let asking = asking.filter(|_| self.has_one_of(&[ApiScope::Ask]));
        asking.ok_or_else(|| {
            ApiRefusal::new(
                StatusCode::FORBIDDEN,
                format!("{} may not do this: it asks no agent", self.name),
                "use a token of [api.tokens] with the scope ask, and agents that it may ask",
            )
        })
    }

    /// The operator as whom it decides.
    pub(super) fn operator(&self) -> Operator {
        Operator::by_api(&self.name, &self.people)
    }

    /// Whether it has one of these scopes, or `admin`.
    fn has_one_of(&self, scopes: &[ApiScope]) -> bool {
        let mut scopes = scopes.iter();
        self.scopes.contains(&ApiScope::Admin) || scopes.any(|scope| self.scopes.contains(scope))
    }
}

/// The caller of a request that was let in.
pub(super) type Caller = Extension<Arc<ApiCaller>>;

/// The scopes of which a path needs one.
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
    ApiRefusal::new(
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
