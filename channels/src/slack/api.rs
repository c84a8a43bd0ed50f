//! Web API calls, and what their answers mean.
//!
//! Every call is form-encoded with the token in a header, is made once, and is judged by what the caller should do
//! next. A method that Slack refused for its rate is not called again before its time: the caller is told at once how
//! long that takes. Posts have a pace of their own, because their limit is the room's. Source of the error names:
//! `chat.postMessage` and the Web API pages.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use reqwest::{Response, Url};
use secrecy::{ExposeSecret as _, SecretString};
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::download::{DOWNLOAD_MAX, broken};
use crate::http::{self as transport, HttpTimeouts};
use crate::internet;
use crate::json_object::read_object;
use crate::rate::Rests;
use vocative_contract::clock::PlatformClock;
use vocative_contract::crash;
use vocative_contract::error::{ChannelError, Fallback, ServerFailed};
use vocative_contract::file::FileError;

use super::wire::{HistoryAnswer, SlackAnswer};

/// The longest platform word that is kept in an error, in characters.
const REASON_MAX_CHARS: usize = 120;

/// Makes posts. Source: Slack's rate limit page counts it by channel, every other method by workspace.
pub(super) const POST_MESSAGE: &str = "chat.postMessage";

/// Calls the Web API.
#[derive(Debug)]
pub(super) struct SlackApi {
    client: reqwest::Client,
    timeouts: HttpTimeouts,
    base: String,
    app_token: SecretString,
    bot_token: SecretString,
    rests: Rests,
    clock: Arc<PlatformClock>,
}

/// Which token a method wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// `xapp-`: opens sockets, nothing else.
    App,
    /// `xoxb-`: everything else.
    Bot,
}

/// An answer that says `ok`, and the scopes its token has.
#[derive(Debug)]
pub(super) struct Granted {
    pub(super) answer: SlackAnswer,
    pub(super) scopes: Option<Vec<String>>,
}

impl SlackApi {
    pub(super) fn new(settings: &super::SlackSettings) -> Result<Self, ChannelError> {
        Ok(Self {
            client: transport::client(settings.http)?,
            timeouts: settings.http,
            base: settings.api_url.trim_end_matches('/').to_owned(),
            app_token: settings.app_token.clone(),
            bot_token: settings.bot_token.clone(),
            rests: Rests::default(),
            clock: Arc::default(),
        })
    }

    /// Slack's time, as its answers tell it.
    pub(super) fn clock(&self) -> &Arc<PlatformClock> {
        &self.clock
    }

    /// Makes one call.
    pub(super) async fn call(
        &self,
        method: &'static str,
        token: Token,
        arguments: &[(&str, String)],
    ) -> Result<Granted, ChannelError> {
        let (granted, _) = self.exchange(method, token, arguments).await?;
        Ok(granted)
    }

    /// Makes one call that reads rooms, and keeps their messages as they were sent.
    pub(super) async fn read(
        &self,
        method: &'static str,
        token: Token,
        arguments: &[(&str, String)],
    ) -> Result<HistoryAnswer, ChannelError> {
        self.read_as(method, token, arguments).await
    }

    /// Makes one call and reads its answer as what the caller wants to know.
    pub(super) async fn read_as<T: DeserializeOwned>(
        &self,
        method: &'static str,
        token: Token,
        arguments: &[(&str, String)],
    ) -> Result<T, ChannelError> {
        let (_, body) = self.exchange(method, token, arguments).await?;
        serde_json::from_slice(&body).map_err(|error| ChannelError::OutcomeUnknown {
            operation: method,
            cause: Box::new(error),
        })
    }

    /// Asks for a file. The token goes along only where the host is Slack's; any other one must be of the
    /// internet.
    pub(super) async fn download(&self, address: Url) -> Result<Response, FileError> {
        let is_own = self.is_own_host(&address);
        let client = match is_own || is_stand_in(&self.base) {
            true => self.client.clone(),
            false => {
                let made = internet::client(self.timeouts, &address);
                made.map_err(|error| FileError::Failed {
                    reason: error.reason(),
                })?
            }
        };
        // Without compression: the size is compared with what Slack says.
        let mut request = client
            .get(address)
            .timeout(DOWNLOAD_MAX)
            .header(http::header::ACCEPT_ENCODING, "identity");
        if is_own {
            request = request.bearer_auth(self.bot_token.expose_secret());
        }
        request
            .send()
            .await
            .map_err(|error| match internet::leads_elsewhere(&error) {
                true => not_fetched_from(),
                false => broken(&error),
            })
    }

    /// Sends bytes to an address that Slack gave for them, without the token.
    pub(super) async fn upload(
        &self,
        operation: &'static str,
        address: &str,
        bytes: impl Into<reqwest::Body>,
    ) -> Result<StatusCode, ChannelError> {
        let request = self.client.post(address).body(bytes);
        let response = request
            .header(http::header::CONTENT_TYPE, "application/octet-stream")
            .send()
            .await
            .map_err(|error| transport::failed(operation, error))?;
        crash::point("upload.bytes-sent");
        Ok(response.status())
    }

    /// Whether a host may see the token: the one of `api_url`, or one of Slack's over TLS.
    pub(super) fn is_own_host(&self, address: &Url) -> bool {
        is_host_of(&self.base, address)
    }

    /// Whether a redirect to this address may be followed, without the token unless its host is Slack's: Slack's own
    /// hosts, and others over TLS, but no address of a machine or a network of ours.
    pub(super) fn may_lead_to(&self, address: &Url) -> bool {
        may_lead(&self.base, address)
    }

    /// Fails while Slack wants no call of a method, with the time that is left.
    pub(super) fn rest_left(&self, method: &'static str) -> Result<(), ChannelError> {
        match self.rests.left(method, Instant::now()) {
            None => Ok(()),
            Some(left) => Err(ChannelError::RetryAfter {
                operation: method,
                wait_ms: u64::try_from(left.as_millis()).unwrap_or(u64::MAX).max(1),
            }),
        }
    }

    async fn exchange(
        &self,
        method: &'static str,
        token: Token,
        arguments: &[(&str, String)],
    ) -> Result<(Granted, Vec<u8>), ChannelError> {
        self.rest_left(method)?;
        let answer = self.ask(method, token, arguments).await;
        if let Err(ChannelError::RetryAfter { wait_ms, .. }) = &answer
            && method != POST_MESSAGE
        {
            let wait = Duration::from_millis(*wait_ms);
            self.rests.note(method, Instant::now(), wait);
        }
        answer
    }

    async fn ask(
        &self,
        method: &'static str,
        token: Token,
        arguments: &[(&str, String)],
    ) -> Result<(Granted, Vec<u8>), ChannelError> {
        let token = match token {
            Token::App => &self.app_token,
            Token::Bot => &self.bot_token,
        };
        let asked = Instant::now();
        let response = self
            .client
            .post(format!("{}/{method}", self.base))
            .bearer_auth(token.expose_secret())
            .form(arguments)
            .send()
            .await
            .map_err(|error| transport::failed(method, error))?;
        crash::bytes_sent(method);
        let (status, headers) = (response.status(), response.headers().clone());
        if status.is_success() {
            self.clock.note_date(&headers, asked);
        }
        let body = transport::body(method, response).await?;
        let answer = judge(method, status, &headers, &body)?;
        if let Some(warning) = answer.warning.as_deref() {
            tracing::debug!(method, warning = %word(warning), "Slack answered with a warning");
        }
        let scopes = scopes(&headers);
        Ok((Granted { answer, scopes }, body))
    }
}

/// Slack's own domains.
const DOMAINS: [&str; 2] = ["slack.com", "slack-gov.com"];

/// The refusal of a redirect to a host that files are not fetched from.
pub(super) fn not_fetched_from() -> FileError {
    FileError::Refused {
        reason: "it is redirected to a place that files are not fetched from".to_owned(),
    }
}

/// Whether a redirect from a host of `base` may lead to an address, as far as the address says.
fn may_lead(base: &str, address: &Url) -> bool {
    is_stand_in(base)
        || is_host_of(base, address)
        || (address.scheme() == "https" && internet::may_be_of_it(address))
}

/// Whether `api_url` is a stand-in for Slack on this machine or in its network, whose files are there, too.
fn is_stand_in(base: &str) -> bool {
    Url::parse(base).is_ok_and(|base| !internet::may_be_of_it(&base))
}

fn is_host_of(base: &str, address: &Url) -> bool {
    let place = |url: &Url| {
        let host = url.host_str().map(str::to_owned);
        (url.scheme().to_owned(), host, url.port_or_known_default())
    };
    if Url::parse(base).is_ok_and(|base| place(&base) == place(address)) {
        return true;
    }
    let host = address.host_str().unwrap_or_default();
    let is_slack = |domain: &str| {
        host == domain
            || host
                .strip_suffix(domain)
                .is_some_and(|rest| rest.ends_with('.'))
    };
    address.scheme() == "https" && DOMAINS.iter().any(|domain| is_slack(domain))
}

/// The granted scopes that Slack names with every answer.
fn scopes(headers: &HeaderMap) -> Option<Vec<String>> {
    let list = headers.get("x-oauth-scopes")?.to_str().ok()?;
    let scopes = list.split(',').map(str::trim).filter(|it| !it.is_empty());
    Some(scopes.map(str::to_owned).collect())
}

/// Judges an answer by what the caller should do next.
pub(super) fn judge(
    operation: &'static str,
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<SlackAnswer, ChannelError> {
    if status == StatusCode::TOO_MANY_REQUESTS {
        let wait_ms = transport::retry_after_ms(headers);
        return Err(ChannelError::RetryAfter { operation, wait_ms });
    }
    if status.as_u16() >= 500 || status == StatusCode::REQUEST_TIMEOUT {
        let status = status.as_u16();
        let cause = match status {
            500.. => ServerFailed { status }.into(),
            _ => format!("HTTP {status}").into(),
        };
        return Err(ChannelError::OutcomeUnknown { operation, cause });
    }
    let answer = read_object::<SlackAnswer>(&String::from_utf8_lossy(body)).ok();
    match answer {
        Some(answer) if *answer.ok == Some(true) && status.is_success() => Ok(answer),
        Some(answer) if answer.error.is_some() => Err(refusal(operation, headers, &answer)),
        _ if status.is_success() => Err(ChannelError::OutcomeUnknown {
            operation,
            cause: "the answer is not one of Slack's".into(),
        }),
        _ => Err(http_refusal(operation, status)),
    }
}

/// An HTTP error that Slack itself does not give: something else answers under that URL.
fn http_refusal(operation: &'static str, status: StatusCode) -> ChannelError {
    let code = status.as_u16();
    match code {
        413 => ChannelError::Rejected {
            operation,
            reason: "HTTP 413".to_owned(),
            fallback: Fallback::Resplit,
        },
        300..=399 | 401 | 403 | 404 | 405 | 407 => ChannelError::Unauthorized {
            operation,
            reason: format!("HTTP {code}; is api_url right?"),
        },
        _ => ChannelError::Rejected {
            operation,
            reason: format!("HTTP {code}"),
            fallback: Fallback::None,
        },
    }
}

/// What an `ok: false` means.
fn refusal(operation: &'static str, headers: &HeaderMap, answer: &SlackAnswer) -> ChannelError {
    let error = answer.error.as_deref().unwrap_or_default();
    let mut reason = word(error);
    match error {
        "ratelimited"
        | "rate_limited"
        | "service_unavailable"
        | "team_added_to_org"
        | "external_channel_migrating"
        | "org_login_required" => ChannelError::RetryAfter {
            operation,
            wait_ms: transport::retry_after_ms(headers),
        },
        "internal_error" | "fatal_error" | "request_timeout" => ChannelError::OutcomeUnknown {
            operation,
            cause: reason.into(),
        },
        _ if is_account_error(error) => {
            if let Some(needed) = answer.needed.as_deref() {
                reason = format!(
                    "{reason}: add the scope {} and reinstall the app",
                    word(needed)
                );
            }
            ChannelError::Unauthorized { operation, reason }
        }
        _ if is_chat_error(error) => ChannelError::ChatRefused { operation, reason },
        _ => ChannelError::Rejected {
            operation,
            reason,
            fallback: fallback(error),
        },
    }
}

/// Whether an error asks a person to act on the account or its settings.
fn is_account_error(error: &str) -> bool {
    matches!(
        error,
        "invalid_auth"
            | "not_authed"
            | "account_inactive"
            | "token_revoked"
            | "token_expired"
            | "app_uninstalled"
            | "two_factor_setup_required"
            | "access_denied"
            | "accesslimited"
            | "enterprise_is_restricted"
            | "team_access_not_granted"
            | "team_disabled"
            | "user_removed_from_team"
            | "not_allowed_token_type"
            | "missing_scope"
            | "no_permission"
    )
}

/// Whether an error says that the chat takes no posts at present.
fn is_chat_error(error: &str) -> bool {
    let is_named = matches!(
        error,
        "channel_not_found"
            | "not_in_channel"
            | "is_archived"
            | "is_inactive"
            | "restricted_action"
            | "restricted_action_read_only_channel"
            | "ekm_access_denied"
            | "message_limit_exceeded"
            | "messages_tab_disabled"
            | "user_not_in_channel"
    );
    is_named || (error.starts_with("slack_connect_") && error.ends_with("_blocked"))
}

/// What may still work after the refusal of one message.
fn fallback(error: &str) -> Fallback {
    match error {
        "msg_too_long" | "msg_blocks_too_long" => Fallback::Resplit,
        "invalid_arguments"
        | "invalid_blocks"
        | "invalid_blocks_format"
        | "only_one_table_allowed"
        | "no_text"
        | "markdown_text_conflict"
        | "too_many_attachments"
        | "attachment_payload_limit_exceeded" => Fallback::Plain,
        "cannot_reply_to_message"
        | "invalid_thread_ts"
        | "thread_not_found"
        | "restricted_action_non_threadable_channel" => Fallback::WithoutThread,
        "message_not_found"
        | "cant_update_message"
        | "edit_window_closed"
        | "update_failed"
        | "block_mismatch"
        | "streaming_state_conflict" => Fallback::NewPost,
        _ => Fallback::None,
    }
}

/// A word of the platform, made safe for a log line.
fn word(text: &str) -> String {
    text.chars()
        .filter(|c| c.is_ascii_graphic() || *c == ' ')
        .take(REASON_MAX_CHARS)
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use http::HeaderValue;

    use super::*;

    fn judged(status: u16, body: &str) -> Result<SlackAnswer, ChannelError> {
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", HeaderValue::from_static("7"));
        let status = StatusCode::from_u16(status).unwrap();
        judge("chat.postMessage", status, &headers, body.as_bytes())
    }

    fn shown(status: u16, body: &str) -> String {
        match judged(status, body) {
            Ok(_) => "ok".to_owned(),
            Err(ChannelError::NotSent { .. }) => "not sent".to_owned(),
            Err(ChannelError::RetryAfter { wait_ms, .. }) => format!("wait {wait_ms}"),
            Err(ChannelError::Unauthorized { reason, .. }) => format!("account: {reason}"),
            Err(ChannelError::ChatRefused { reason, .. }) => format!("chat: {reason}"),
            Err(ChannelError::ChatMoved { .. }) => "moved".to_owned(),
            Err(ChannelError::Rejected { fallback, .. }) => format!("rejected: {fallback:?}"),
            Err(ChannelError::OutcomeUnknown { cause, .. }) => format!("unknown: {cause}"),
        }
    }

    #[test]
    fn a_redirect_leads_to_no_machine_or_network_of_ours_and_never_out_of_tls() {
        let leads = |base: &str, to: &str| may_lead(base, &Url::parse(to).unwrap());
        for good in [
            "https://files.slack.com/x",
            "https://cdn.example.org/x",
            "https://93.184.216.34/x",
        ] {
            assert!(leads("https://slack.com/api", good), "{good}");
        }
        for bad in [
            "http://files.slack.com/x",
            "http://cdn.example.org/x",
            "https://localhost/x",
            "https://metadata.google.internal/x",
            "https://127.0.0.1/x",
            "https://0x7f.1/x",
            "https://10.1.2.3/x",
            "https://169.254.169.254/latest",
            "https://100.64.0.1/x",
            "https://[::1]/x",
            "https://[::ffff:10.0.0.1]/x",
            "https://[fe80::1]/x",
            "https://[fd00::1]/x",
            "ftp://cdn.example.org/x",
            "file:///etc/passwd",
        ] {
            assert!(!leads("https://slack.com/api", bad), "{bad}");
        }
        // A stand-in on this machine.
        assert!(leads("http://127.0.0.1:1/api", "http://127.0.0.1:2/x"));
    }

    #[test]
    fn http_statuses_say_what_to_do_next() {
        let table = [
            (200, r#"{"ok":true}"#, "ok"),
            (200, "<html>", "unknown: the answer is not one of Slack's"),
            (
                200,
                r#"{"ok":false}"#,
                "unknown: the answer is not one of Slack's",
            ),
            (429, "", "wait 7000"),
            (500, r#"{"ok":true}"#, "unknown: HTTP 500"),
            (503, "", "unknown: HTTP 503"),
            (408, "", "unknown: HTTP 408"),
            (302, "", "account: HTTP 302; is api_url right?"),
            (404, "nothing here", "account: HTTP 404; is api_url right?"),
            (413, "", "rejected: Resplit"),
            (400, "", "rejected: None"),
        ];
        for (status, body, expected) in table {
            assert_eq!(shown(status, body), expected, "{status} {body}");
        }
    }

    #[test]
    fn the_token_goes_to_slack_and_to_nobody_else() {
        let base = "https://slack.com/api";
        let table = [
            ("https://files.slack.com/files-pri/T1-F1/a.txt", true),
            ("https://slack.com/x", true),
            ("https://acme.slack-gov.com/x", true),
            ("http://files.slack.com/x", false),
            ("https://files.slack.com.evil.example/x", false),
            ("https://evilslack.com/x", false),
            ("https://slack.com@evil.example/x", false),
            ("http://127.0.0.1:4000/x", false),
        ];
        for (address, is_own) in table {
            let address = Url::parse(address).unwrap();
            assert_eq!(is_host_of(base, &address), is_own, "{address}");
        }
        let loopback = "http://127.0.0.1:4000/api";
        let address = |text| Url::parse(text).unwrap();
        assert!(is_host_of(
            loopback,
            &address("http://127.0.0.1:4000/files-pri/x")
        ));
        assert!(!is_host_of(
            loopback,
            &address("http://127.0.0.1:4001/files-pri/x")
        ));
        assert!(!is_host_of(
            loopback,
            &address("http://localhost:4000/files-pri/x")
        ));
    }

    #[test]
    fn a_server_that_failed_is_told_from_a_broken_answer() {
        let table = [
            (500, true),
            (502, true),
            (503, true),
            (408, false),
            (200, false),
        ];
        for (status, expected) in table {
            let judged = judged(status, "<html>").unwrap_err();
            assert_eq!(judged.is_server_failure(), expected, "{status}");
        }
    }

    #[test]
    fn what_is_no_object_says_nothing() {
        for body in [
            "[true,true]",
            "true",
            r#"{"ok":"true"}"#,
            r#"{"ok":[true]}"#,
        ] {
            let expected = "unknown: the answer is not one of Slack's";
            assert_eq!(shown(200, body), expected, "{body}");
        }
    }

    #[test]
    fn error_codes_say_what_to_do_next() {
        let table = [
            ("ratelimited", "wait 7000"),
            ("service_unavailable", "wait 7000"),
            ("internal_error", "unknown: internal_error"),
            ("fatal_error", "unknown: fatal_error"),
            ("invalid_auth", "account: invalid_auth"),
            ("token_revoked", "account: token_revoked"),
            ("channel_not_found", "chat: channel_not_found"),
            ("is_archived", "chat: is_archived"),
            (
                "slack_connect_file_link_sharing_blocked",
                "chat: slack_connect_file_link_sharing_blocked",
            ),
            ("msg_too_long", "rejected: Resplit"),
            ("invalid_blocks", "rejected: Plain"),
            ("cannot_reply_to_message", "rejected: WithoutThread"),
            // Slack names it beside `invalid_blocks` where it refuses blocks.
            ("invalid_arguments", "rejected: Plain"),
            ("no_text", "rejected: Plain"),
            ("message_not_found", "rejected: NewPost"),
            ("cant_update_message", "rejected: NewPost"),
            ("edit_window_closed", "rejected: NewPost"),
            ("something_new", "rejected: None"),
        ];
        for (error, expected) in table {
            let body = format!(r#"{{"ok":false,"error":"{error}"}}"#);
            assert_eq!(shown(200, &body), expected, "{error}");
        }
        let body = r#"{"ok":false,"error":"missing_scope","needed":"chat:write"}"#;
        assert_eq!(
            shown(200, body),
            "account: missing_scope: add the scope chat:write and reinstall the app"
        );
    }
}
