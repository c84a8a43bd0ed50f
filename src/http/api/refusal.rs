//! The answer to a request that can't be served: what is wrong, and what to do.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::admin::operations::OperationError;
use vocative_store::StoreError;

/// A request that is not served.
#[derive(Clone, Debug)]
pub(super) struct ApiRefusal {
    pub(super) status: StatusCode,
    pub(super) what: String,
    pub(super) advice: &'static str,
}

impl ApiRefusal {
    pub(super) fn new(status: StatusCode, what: impl Into<String>, advice: &'static str) -> Self {
        Self {
            status,
            what: what.into(),
            advice,
        }
    }

    /// The path does not exist.
    pub(super) fn no_path() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "there is no such path",
            "begin with GET /v1/conversations",
        )
    }

    /// Something in the request is wrong.
    pub(super) fn wrong(what: impl Into<String>, advice: &'static str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, what, advice)
    }
}

impl From<StoreError> for ApiRefusal {
    fn from(cause: StoreError) -> Self {
        match cause {
            StoreError::NotFound { what } => Self::new(
                StatusCode::NOT_FOUND,
                format!("there is no {what}"),
                "find ids with GET /v1/conversations",
            ),
            _ => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "the store does not answer",
                "try again; vocative status says more",
            ),
        }
    }
}

impl From<OperationError> for ApiRefusal {
    fn from(cause: OperationError) -> Self {
        match cause {
            OperationError::Store(cause) => cause.into(),
            OperationError::Missing(what) => Self::new(
                StatusCode::NOT_FOUND,
                what,
                "find ids with GET on the path above it",
            ),
            OperationError::Over(what) => Self::new(
                StatusCode::CONFLICT,
                what,
                "nothing was changed; look at it again",
            ),
            OperationError::NotTheirs(what) => Self::new(
                StatusCode::FORBIDDEN,
                what,
                "nothing was changed; have somebody else decide",
            ),
            other => Self::wrong(
                other.to_string(),
                "see docs/API.md for what each path takes",
            ),
        }
    }
}

impl IntoResponse for ApiRefusal {
    fn into_response(self) -> Response {
        let body = json!({ "error": self.what, "advice": self.advice });
        let mut response = (self.status, axum::Json(body)).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            let how = header::HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, how);
        }
        // For layers that send the refusal in another form.
        response.extensions_mut().insert(self);
        response
    }
}
