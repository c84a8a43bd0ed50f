//! Multipart forms: the parts of a body that was read whole.
//!
//! Knows no platform; both the Web API and uploads take such bodies.

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest as _, Multipart, Request};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;

/// One part of a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FormPart {
    /// Its name; empty when it has none.
    pub(crate) name: String,
    /// Set on parts that are files.
    pub(crate) file_name: Option<String>,
    /// Its content.
    pub(crate) bytes: Bytes,
}

/// Whether the headers announce a multipart form.
pub(crate) fn announced(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    kind.is_some_and(|kind| kind.to_ascii_lowercase().starts_with("multipart/form-data"))
}

/// The parts of a body; `None` when it is no complete form.
pub(crate) async fn read(headers: &HeaderMap, body: Bytes) -> Option<Vec<FormPart>> {
    let mut request = Request::new(Body::from(body));
    *request.headers_mut() = headers.clone();
    let mut form = Multipart::from_request(request, &()).await.ok()?;
    let mut parts = Vec::new();
    while let Some(field) = form.next_field().await.ok()? {
        parts.push(FormPart {
            name: field.name().unwrap_or_default().to_owned(),
            file_name: field.file_name().map(str::to_owned),
            bytes: field.bytes().await.ok()?,
        });
    }
    Some(parts)
}
