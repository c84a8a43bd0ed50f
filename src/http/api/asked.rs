//! A request's path and query, read with error messages of our own.
//!
//! Unknown names in a query are ignored, as is usual on the web; a known one must have a valid value and appear once.

use std::convert::Infallible;
use std::str::FromStr;

use axum::body::Bytes;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::epoch::Epoch;
use super::refusal::ApiRefusal;
use vocative_core::ids::{ConversationId, EventId, RunId};

/// The most conversations or runs in one answer.
const LIMIT_MAX: usize = 500;
const LIMIT: usize = 50;

/// The id in a path; it may fail to decode.
pub(super) type IdInPath = Result<Path<String>, PathRejection>;

/// The id that a path names, as it is written.
pub(super) fn id_in(path: IdInPath) -> String {
    path.map(|Path(id)| id).unwrap_or_default()
}

/// The query of a request.
#[derive(Debug, Default)]
pub(super) struct RequestQuery {
    pairs: Vec<(String, String)>,
}

impl<S: Send + Sync> FromRequestParts<S> for RequestQuery {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Self::Rejection> {
        let pairs = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri);
        Ok(Self {
            pairs: pairs.map(|Query(pairs)| pairs).unwrap_or_default(),
        })
    }
}

impl RequestQuery {
    /// The value of a name, if it is there.
    pub(super) fn text(&self, name: &str) -> Result<Option<&str>, ApiRefusal> {
        let mut values = self.pairs.iter().filter(|(key, _)| key == name);
        let first = values.next().map(|(_, value)| value.as_str());
        match values.next() {
            None => Ok(first),
            Some(_) => Err(ApiRefusal::wrong(
                format!("{name} is there more than once"),
                "send it once",
            )),
        }
    }

    /// The most items that one answer may hold.
    pub(super) fn limit(&self) -> Result<usize, ApiRefusal> {
        let Some(text) = self.text("limit")? else {
            return Ok(LIMIT);
        };
        let limit = text.parse().ok();
        limit
            .filter(|limit| (1..=LIMIT_MAX).contains(limit))
            .ok_or_else(|| {
                ApiRefusal::wrong(
                    format!("limit must be a whole number from 1 to {LIMIT_MAX}"),
                    "ask for less, and page on",
                )
            })
    }

    /// Whether a name is set to `true`; an absent name counts as `false`.
    pub(super) fn is_set(&self, name: &str) -> Result<bool, ApiRefusal> {
        match self.text(name)? {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(ApiRefusal::wrong(
                format!("{name} must be true or false"),
                "send one of the two, or leave it out",
            )),
        }
    }

    /// The event after which a reader resumes, from the header `Last-Event-ID` or from the query's `after`. An id of
    /// another timeline counts as no id.
    pub(super) fn last_event(
        &self,
        headers: &HeaderMap,
        epoch: Epoch,
    ) -> Result<Option<EventId>, ApiRefusal> {
        let wrong = || {
            ApiRefusal::wrong(
                "this is no id of an event",
                "send the id of the last event you got, or none to begin anew",
            )
        };
        let last = match headers.get("last-event-id") {
            Some(last) => Some(last.to_str().map_err(|_| wrong())?),
            None => self.text("after")?,
        };
        let Some(last) = last.map(str::trim).filter(|last| !last.is_empty()) else {
            return Ok(None);
        };
        epoch.read(last).ok_or_else(wrong)
    }

    /// The id of something that is named.
    pub(super) fn id<T: FromStr>(&self, name: &str, of: &str) -> Result<Option<T>, ApiRefusal> {
        let id = self.text(name)?.map(str::parse);
        id.transpose().map_err(|_| {
            let what = format!("{name} must be the id of {of}, which is a UUID");
            ApiRefusal::wrong(what, "send what next_before said, or leave it out")
        })
    }

    /// The run that is named by `before`.
    pub(super) fn run_before(&self) -> Result<Option<RunId>, ApiRefusal> {
        self.text("before")?.map(read_run).transpose()
    }
}

/// A body without anything in it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EmptyBody {}

/// A request's body as JSON; an empty body counts as an empty object.
pub(super) struct InBody<T>(pub(super) Result<T, ApiRefusal>);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for InBody<T> {
    type Rejection = Infallible;

    async fn from_request(request: Request, state: &S) -> Result<Self, Self::Rejection> {
        let Ok(bytes) = Bytes::from_request(request, state).await else {
            return Ok(Self(Err(ApiRefusal::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "the body is too large, or did not come whole",
                "send a small JSON object",
            ))));
        };
        let text: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
        Ok(Self(read_object(text)))
    }
}

/// Reads a body that is a JSON object.
pub(super) fn read_object<T: DeserializeOwned>(text: &[u8]) -> Result<T, ApiRefusal> {
    let wrong = |what: String| ApiRefusal::wrong(what, "see docs/API.md for what each path takes");
    // A list would be read as the fields in their order.
    if !text.trim_ascii_start().starts_with(b"{") {
        return Err(wrong("the body is no JSON object".to_owned()));
    }
    let read = serde_json::from_slice(text);
    read.map_err(|cause| wrong(format!("the body is not what this path takes: {cause}")))
}

/// The run that a path names.
pub(super) fn run_id(path: IdInPath) -> Result<RunId, ApiRefusal> {
    read_run(&id_in(path))
}

fn read_run(id: &str) -> Result<RunId, ApiRefusal> {
    let advice = "find it with GET /v1/conversations/ID/runs";
    id.parse()
        .map_err(|_| ApiRefusal::wrong("the id of a run is a UUID", advice))
}

/// The conversation that a path names.
pub(super) fn conversation_id(path: IdInPath) -> Result<ConversationId, ApiRefusal> {
    let advice = "find it with GET /v1/conversations";
    id_in(path)
        .parse()
        .map_err(|_| ApiRefusal::wrong("the id of a conversation is a UUID", advice))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn asked(pairs: &[(&str, &str)]) -> RequestQuery {
        let pairs = pairs.iter();
        RequestQuery {
            pairs: pairs.map(|(a, b)| ((*a).into(), (*b).into())).collect(),
        }
    }

    #[test]
    fn the_last_event_is_named_by_the_header_or_the_query_and_nothing_else_is_taken_for_one() {
        let of = |last: Option<&'static str>, after: Option<&str>| {
            let mut headers = HeaderMap::new();
            if let Some(last) = last {
                headers.insert("last-event-id", HeaderValue::from_static(last));
            }
            let query = asked(after.map(|after| ("after", after)).as_slice());
            let event = query.last_event(&headers, Epoch::default());
            event.map_err(|refusal| refusal.status.as_u16())
        };
        assert_eq!(of(None, None), Ok(None));
        assert_eq!(of(Some("7"), Some("3")), Ok(Some(EventId(7))));
        assert_eq!(of(None, Some("3")), Ok(Some(EventId(3))));
        assert_eq!(of(Some(""), None), Ok(None));
        for wrong in ["x", "-1", "1.5", "99999999999999999999", "0x10"] {
            assert_eq!(of(None, Some(wrong)), Err(400), "{wrong}");
        }
    }

    #[test]
    fn a_limit_is_a_number_that_is_said_once() {
        let limit = |pairs: &[(&str, &str)]| asked(pairs).limit().ok();
        assert_eq!(limit(&[]), Some(LIMIT));
        assert_eq!(limit(&[("limit", "500"), ("other", "x")]), Some(500));
        for wrong in [
            "",
            "0",
            "501",
            "-1",
            "1.0",
            "abc",
            "99999999999999999999999",
        ] {
            assert_eq!(limit(&[("limit", wrong)]), None, "{wrong}");
        }
        assert_eq!(limit(&[("limit", "1"), ("limit", "2")]), None);
    }
}
