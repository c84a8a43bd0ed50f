//! The walls around every request, each of which holds without the others:
//!
//! 1. *Host*: only requests to this machine's names and those of the settings are answered, so that a page of another
//!    site can't reach the console under a name of its own (DNS rebinding).
//! 2. *Origin*: a request that changes something must come from a page of the console, as the browser reports
//!    (`Sec-Fetch-Site`, `Origin`). No other site's page may embed, fetch or post.
//! 3. *Content security policy*: no script but ours, nothing from elsewhere, no frames, no text that becomes HTML in
//!    the browser (Trusted Types, and no policy may be made).
//! 4. *Cookie*: `HttpOnly; SameSite=Strict`, and `__Host-` with `Secure` where the console is not reached on this
//!    machine.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};

/// What the browser may load and do.
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
    form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// Headers of every answer.
pub(crate) const HEADERS: [(HeaderName, &str); 9] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("permissions-policy"),
        "camera=(), microphone=(), geolocation=()",
    ),
    (header::X_DNS_PREFETCH_CONTROL, "off"),
];

/// Puts the headers on an answer. A header that is set already stays: cacheable answers set their own.
pub(crate) fn put_on(headers: &mut HeaderMap) {
    for (name, value) in HEADERS {
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
}

/// The name that a request was made to, without its port; `None` where the header is missing, repeated or unreadable.
pub(crate) fn host(headers: &HeaderMap) -> Option<&str> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = hosts.next()?.to_str().ok()?;
    if hosts.next().is_some() {
        return None;
    }
    Some(match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    })
}

/// Whether a name is this machine's own.
pub(crate) fn is_local(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Whether a request was made to a name that the console answers to.
pub(crate) fn is_known_host(headers: &HeaderMap, hosts: &[String]) -> bool {
    let Some(host) = host(headers) else {
        return false;
    };
    is_local(host) || hosts.iter().any(|known| known.eq_ignore_ascii_case(host))
}

/// Whether the browser says that a request comes from a page of the console, or from the person themselves.
///
/// A browser that says neither `Sec-Fetch-Site` nor `Origin` is too old for the console, and may change nothing.
pub(crate) fn is_own(method: &Method, headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let is_read = *method == Method::GET || *method == Method::HEAD;
    match text("sec-fetch-site") {
        Some("same-origin" | "none") => true,
        // A link on another page: it comes without the cookie, and only shows what the person asks for.
        Some(_) => is_read && text("sec-fetch-mode") == Some("navigate"),
        None => match (text("origin"), text("host")) {
            (None, _) => is_read,
            (Some(origin), Some(host)) => {
                let bare = origin
                    .strip_prefix("http://")
                    .or_else(|| origin.strip_prefix("https://"));
                bare.is_some_and(|bare| bare.eq_ignore_ascii_case(host))
            }
            (Some(_), None) => false,
        },
    }
}

/// The cookie of a session: its name and attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cookie {
    pub(crate) name: &'static str,
    flags: &'static str,
}

/// Which cookie an answer sets. Browsers don't accept `Secure` over plain HTTP on this machine.
pub(crate) fn cookie(headers: &HeaderMap) -> Cookie {
    match host(headers).is_some_and(is_local) {
        true => Cookie {
            name: "vocative",
            flags: "Path=/; HttpOnly; SameSite=Strict",
        },
        false => Cookie {
            name: "__Host-vocative",
            flags: "Path=/; HttpOnly; SameSite=Strict; Secure",
        },
    }
}

impl Cookie {
    /// The header that sets the cookie; an empty value deletes it.
    pub(crate) fn set(self, value: &str) -> Option<HeaderValue> {
        let Self { name, flags } = self;
        let over = if value.is_empty() { "; Max-Age=0" } else { "" };
        HeaderValue::from_str(&format!("{name}={value}; {flags}{over}")).ok()
    }

    /// The cookie's value in a request.
    pub(crate) fn borne(self, headers: &HeaderMap) -> Option<&str> {
        let lines = headers.get_all(header::COOKIE).iter();
        let pairs = lines.filter_map(|line| line.to_str().ok());
        let mut pairs = pairs.flat_map(|line| line.split(';'));
        pairs.find_map(|pair| {
            let (name, value) = pair.trim().split_once('=')?;
            (name == self.name).then_some(value)
        })
    }
}

/// Whether a path leads to a page of the console, so that a form may lead back to it.
pub(crate) fn is_own_path(path: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/-_.?=&%".contains(c);
    path.starts_with('/') && !path.starts_with("//") && path.chars().all(is_plain)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// The headers of a request.
    type Sent = &'static [(&'static str, &'static str)];

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn only_names_of_this_machine_and_of_the_settings_are_answered_to() {
        let hosts = ["console.example.org".to_owned()];
        let table = [
            ("127.0.0.1:8089", true),
            ("localhost", true),
            ("[::1]:8089", true),
            ("console.example.org", true),
            ("Console.Example.Org:443", true),
            ("evil.example", false),
            ("console.example.org.evil.example", false),
            ("127.0.0.1.evil.example:8089", false),
            ("10.0.0.1:8089", false),
            ("", false),
        ];
        for (host, expected) in table {
            let known = is_known_host(&headers(&[("host", host)]), &hosts);
            assert_eq!(known, expected, "{host}");
        }
        assert!(!is_known_host(&headers(&[]), &hosts));
        let twice = [("host", "localhost"), ("host", "evil.example")];
        assert!(!is_known_host(&headers(&twice), &hosts));
    }

    #[test]
    fn what_changes_something_comes_from_a_page_of_the_console() {
        const HOST: (&str, &str) = ("host", "127.0.0.1:8089");
        // The headers, whether a GET passes, and whether a POST passes.
        let table: [(Sent, bool, bool); 11] = [
            (&[("sec-fetch-site", "same-origin")], true, true),
            (&[("sec-fetch-site", "none")], true, true),
            (&[("sec-fetch-site", "cross-site")], false, false),
            (&[("sec-fetch-site", "same-site")], false, false),
            (
                &[
                    ("sec-fetch-site", "cross-site"),
                    ("sec-fetch-mode", "navigate"),
                ],
                true,
                false,
            ),
            (
                &[
                    ("sec-fetch-site", "cross-site"),
                    ("origin", "http://127.0.0.1:8089"),
                    HOST,
                ],
                false,
                false,
            ),
            (&[("origin", "http://127.0.0.1:8089"), HOST], true, true),
            (&[("origin", "http://evil.example"), HOST], false, false),
            (&[("origin", "http://127.0.0.1:8090"), HOST], false, false),
            (&[("origin", "null"), HOST], false, false),
            (&[], true, false),
        ];
        for (sent, get, post) in table {
            let sent = headers(sent);
            let passes = [Method::GET, Method::POST].map(|method| is_own(&method, &sent));
            assert_eq!(passes, [get, post], "{sent:?}");
        }
    }

    #[test]
    fn a_cookie_can_be_read_by_no_script_and_is_sent_by_no_other_site() {
        let here = cookie(&headers(&[("host", "localhost:8089")]));
        let set = here.set("abc").unwrap();
        assert_eq!(set, "vocative=abc; Path=/; HttpOnly; SameSite=Strict");
        let there = cookie(&headers(&[("host", "console.example.org")]));
        let set = there.set("abc").unwrap();
        let expected = "__Host-vocative=abc; Path=/; HttpOnly; SameSite=Strict; Secure";
        assert_eq!(set, expected);
        let sent = headers(&[("cookie", "a=b; vocative=abc"), ("cookie", "c=d")]);
        assert_eq!(here.borne(&sent), Some("abc"));
        assert_eq!(there.borne(&sent), None);
    }

    #[test]
    fn a_form_leads_back_to_pages_of_the_console_only() {
        for path in ["/", "/runs/0198-af?before=3&all=1"] {
            assert!(is_own_path(path), "{path}");
        }
        for path in [
            "//evil.example",
            "https://evil.example",
            "/\\evil",
            "",
            "/a\nb",
            "javascript:x",
        ] {
            assert!(!is_own_path(path), "{path}");
        }
    }
}
