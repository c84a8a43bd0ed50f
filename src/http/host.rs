//! The name under which a listener is asked. A web page in a browser of this machine can make requests to a
//! loopback address under a name of the page's own (DNS rebinding) and read the answers; the header `Host` tells
//! it apart.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

/// Lets a request to a loopback address in if it names this machine, and refuses it with 403 if not. Who opens
/// an address of another kind has named machines of their own choice.
pub(super) async fn pass(
    State(address): State<SocketAddr>,
    request: Request,
    next: Next,
) -> Response {
    if address.ip().is_loopback() && !names_local_host(request.headers()) {
        let told =
            "only this machine's own names are answered to: ask for 127.0.0.1 or localhost\n";
        return (StatusCode::FORBIDDEN, told).into_response();
    }
    next.run(request).await
}

/// Whether a request names this machine, or nothing.
pub(super) fn names_local_host(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(header::HOST) else {
        return true;
    };
    let Ok(host) = host.to_str() else {
        return false;
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

    #[test]
    fn only_names_of_this_machine_are_local() {
        let table = [
            ("127.0.0.1:8087", true),
            ("localhost", true),
            ("LOCALHOST:8087", true),
            ("[::1]:8087", true),
            ("evil.example:8087", false),
            ("127.0.0.1.evil.example", false),
            ("localhost.evil.example", false),
            ("", false),
        ];
        for (host, expected) in table {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, header::HeaderValue::from_static(host));
            assert_eq!(names_local_host(&headers), expected, "{host}");
        }
    }
}
