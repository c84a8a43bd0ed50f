//! Signing in with a link from the command line, and signing out.

use axum::Extension;
use axum::extract::{Form, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use maud::html;
use serde::Deserialize;

use crate::desk::Trace;
use crate::page::{PageRefusal, bare};
use crate::state::{ConsoleState, PeerAddress, Who};
use crate::walls;

/// The page for people who are not signed in.
pub(crate) async fn form() -> Response {
    page(StatusCode::OK, None)
}

fn page(status: StatusCode, wrong: Option<&str>) -> Response {
    let body = html! {
        h1 { "Vocative" }
        @if let Some(wrong) = wrong {
            p.note.bad role="alert" { (wrong) }
        }
        p { "On the machine of the daemon, type" }
        pre.command { "vocative console link --as NAME" }
        p { "and open the link that it prints. It lets one person in, once, within five minutes. \
             Where a link can't be opened, paste what stands behind its " code { "#" } " here:" }
        form #login method="post" action="/login" {
            label for="code" { "Code" }
            input #code name="code" type="password" autocomplete="off" required;
            button.primary type="submit" { "Come in" }
        }
    };
    (status, bare("Come in", &body)).into_response()
}

/// A sign-in code that a person submits.
#[derive(Deserialize)]
pub(crate) struct CodeForm {
    code: String,
}

/// Signs a person in.
pub(crate) async fn come_in(
    State(console): State<ConsoleState>,
    peer: Option<Extension<PeerAddress>>,
    headers: HeaderMap,
    Form(form): Form<CodeForm>,
) -> Result<Response, PageRefusal> {
    if !console.doors.may_try(peer.and_then(|peer| peer.0.0)) {
        return Err(PageRefusal::too_often());
    }
    // A person may also paste the whole link.
    let code = form.code.rsplit('#').next().unwrap_or_default();
    let Some((cookie, visitor)) = console.doors.come_in(code) else {
        let wrong =
            "This code was used, is older than five minutes, or is none. Ask for another one.";
        return Ok(page(StatusCode::FORBIDDEN, Some(wrong)));
    };
    if let Err(cause) = console.desk.note(&visitor.person, Trace::CameIn).await {
        console.doors.leave(&visitor.key);
        return Err(cause.into());
    }
    Ok(go(&headers, &cookie, "/"))
}

/// Ends a session.
pub(crate) async fn leave(
    State(console): State<ConsoleState>,
    who: Who,
    headers: HeaderMap,
) -> Result<Response, PageRefusal> {
    console.doors.leave(&who.key);
    console.desk.note(&who.person, Trace::Went).await?;
    Ok(go(&headers, "", "/login"))
}

fn go(headers: &HeaderMap, cookie: &str, to: &'static str) -> Response {
    let mut answer = (StatusCode::SEE_OTHER, [(header::LOCATION, to)]).into_response();
    if let Some(cookie) = walls::cookie(headers).set(cookie) {
        answer.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    answer
}
