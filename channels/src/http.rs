//! The HTTP client of the adapters, and what its failures mean.
//!
//! The client never retries and never follows a redirect: whether to send again is decided elsewhere, in one place.
//! Errors lose their URL, because Telegram's holds the token.

use std::sync::OnceLock;
use std::time::Duration;

use ::http::HeaderMap;
use reqwest::{Client, ClientBuilder, Response};
use rustls::ClientConfig;
use rustls_platform_verifier::ConfigVerifierExt as _;

use vocative_contract::error::{Cause, ChannelError};

/// The longest answer that is read, in bytes. Longer ones count as unreadable.
pub const RESPONSE_MAX_BYTES: usize = 32 * 1024 * 1024;

/// The shortest wait of a rate limit, in milliseconds; a shorter one is not believed.
pub const RETRY_AFTER_MIN_MS: u64 = 1_000;

/// The wait after a rate limit without a stated wait, in milliseconds.
pub const RETRY_AFTER_DEFAULT_MS: u64 = 30_000;

/// How long a request may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpTimeouts {
    /// Until the connection stands (DNS, TCP, TLS), in milliseconds.
    pub connect_ms: u64,
    /// Between two reads of the answer, in milliseconds.
    pub read_ms: u64,
    /// For the whole request, in milliseconds.
    pub total_ms: u64,
}

impl Default for HttpTimeouts {
    fn default() -> Self {
        Self {
            connect_ms: 10_000,
            read_ms: 35_000,
            total_ms: 60_000,
        }
    }
}

/// What all connections of the process trust: the platform's root certificates. They are hundreds
/// of files, so they are read once, and new ones count from the next start. Offers no protocol
/// above TLS.
///
/// # Errors
/// If the platform has no roots that can be read.
///
/// # Panics
/// If no rustls crypto provider is installed; the program's `main` installs one.
pub fn tls() -> Result<ClientConfig, rustls::Error> {
    static TLS: OnceLock<ClientConfig> = OnceLock::new();
    if let Some(known) = TLS.get() {
        return Ok(known.clone());
    }
    let read = ClientConfig::with_platform_verifier()?;
    Ok(TLS.get_or_init(|| read).clone())
}

/// The same for a client that speaks HTTP.
///
/// # Errors
/// As [`tls`].
///
/// # Panics
/// As [`tls`].
pub fn http_tls() -> Result<ClientConfig, rustls::Error> {
    let mut config = tls()?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// Builds the client.
///
/// # Errors
/// [`ChannelError::NotSent`] if TLS cannot be set up.
///
/// # Panics
/// If no rustls crypto provider is installed; the program's `main` installs one.
pub fn client(timeouts: HttpTimeouts) -> Result<Client, ChannelError> {
    build(builder(timeouts)?)
}

/// As [`client`], but without a proxy, and with a resolver of its own to look up names.
///
/// # Errors
/// As [`client`].
pub(crate) fn direct_client_resolving(
    timeouts: HttpTimeouts,
    names: impl reqwest::dns::Resolve + 'static,
) -> Result<Client, ChannelError> {
    build(builder(timeouts)?.no_proxy().dns_resolver(names))
}

/// As [`client`], but with a resolver of its own to look up names.
pub(crate) fn client_resolving(
    timeouts: HttpTimeouts,
    names: impl reqwest::dns::Resolve + 'static,
) -> Result<Client, ChannelError> {
    build(builder(timeouts)?.dns_resolver(names))
}

/// The operation that every failure to build a client names.
const BUILDING: &str = "http client";

fn builder(timeouts: HttpTimeouts) -> Result<ClientBuilder, ChannelError> {
    let tls = http_tls().map_err(|error| ChannelError::NotSent {
        operation: BUILDING,
        cause: Box::new(error),
    })?;
    Ok(Client::builder()
        .tls_backend_preconfigured(tls)
        .connect_timeout(Duration::from_millis(timeouts.connect_ms))
        .read_timeout(Duration::from_millis(timeouts.read_ms))
        .timeout(Duration::from_millis(timeouts.total_ms))
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .user_agent(concat!("vocative/", env!("CARGO_PKG_VERSION"))))
}

fn build(builder: ClientBuilder) -> Result<Client, ChannelError> {
    builder.build().map_err(|error| failed(BUILDING, error))
}

/// What a failed request means: not sent as long as no connection stood, unknown afterwards.
#[must_use]
pub fn failed(operation: &'static str, error: reqwest::Error) -> ChannelError {
    let not_sent = error.is_connect() || error.is_builder();
    let cause: Cause = Box::new(error.without_url());
    if not_sent {
        ChannelError::NotSent { operation, cause }
    } else {
        ChannelError::OutcomeUnknown { operation, cause }
    }
}

/// What happened to a request, without its address.
#[must_use]
pub fn what_broke(error: &reqwest::Error) -> &'static str {
    if error.is_timeout() {
        "it took too long"
    } else if error.is_connect() {
        "no connection"
    } else {
        "the connection broke"
    }
}

/// Reads a whole answer of at most [`RESPONSE_MAX_BYTES`].
///
/// # Errors
/// [`ChannelError::OutcomeUnknown`]: the request was sent, and its answer cannot be read.
pub async fn body(operation: &'static str, response: Response) -> Result<Vec<u8>, ChannelError> {
    let unknown = |cause: Cause| ChannelError::OutcomeUnknown { operation, cause };
    let read = body_within(response, RESPONSE_MAX_BYTES).await;
    let read = read.map_err(|error| unknown(Box::new(error.without_url())))?;
    read.ok_or_else(|| unknown("the answer is too long".into()))
}

/// Reads a whole answer within a number of bytes; `None` = it is longer; reading stops there.
///
/// # Errors
/// The connection broke. The error may show the address.
pub async fn body_within(
    mut response: Response,
    bytes_max: usize,
) -> Result<Option<Vec<u8>>, reqwest::Error> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if bytes.len() + chunk.len() > bytes_max {
            return Ok(None);
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(Some(bytes))
}

/// How long a `Retry-After` header of whole seconds asks to wait, in milliseconds.
///
/// At least [`RETRY_AFTER_MIN_MS`]; [`RETRY_AFTER_DEFAULT_MS`] without a readable header.
#[must_use]
pub fn retry_after_ms(headers: &HeaderMap) -> u64 {
    headers
        .get(::http::header::RETRY_AFTER)
        .and_then(|value| value.to_str().ok())
        .and_then(|seconds| seconds.trim().parse::<u64>().ok())
        .map_or(RETRY_AFTER_DEFAULT_MS, |seconds| {
            seconds.saturating_mul(1_000)
        })
        .max(RETRY_AFTER_MIN_MS)
}

/// The time of an answer by its `Date` header, which counts whole seconds, in milliseconds since the Unix
/// epoch.
#[must_use]
pub fn date_ms(headers: &HeaderMap) -> Option<i64> {
    let date = headers.get(::http::header::DATE)?.to_str().ok()?;
    let date = chrono::DateTime::parse_from_rfc2822(date).ok()?;
    Some(date.timestamp_millis())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use ::http::HeaderValue;
    use tokio::io::AsyncReadExt as _;
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn retry_after_is_read_leniently() {
        let wait = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(::http::header::RETRY_AFTER, HeaderValue::from_static(value));
            retry_after_ms(&headers)
        };
        assert_eq!(wait("7"), 7_000);
        assert_eq!(wait("0"), RETRY_AFTER_MIN_MS);
        assert_eq!(wait("soon"), RETRY_AFTER_DEFAULT_MS);
        assert_eq!(retry_after_ms(&HeaderMap::new()), RETRY_AFTER_DEFAULT_MS);
    }

    #[test]
    fn an_answers_time_is_read() {
        let told = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(::http::header::DATE, HeaderValue::from_static(value));
            date_ms(&headers)
        };
        assert_eq!(
            told("Sun, 22 Nov 2026 20:00:01 GMT"),
            Some(1_795_377_601_000)
        );
        assert_eq!(told("yesterday"), None);
        assert_eq!(date_ms(&HeaderMap::new()), None);
    }

    #[test]
    fn roots_are_read_once_and_only_http_offers_its_protocols() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let plain = tls().unwrap();
        // Every configuration is made with a key log of its own, which its clones share.
        assert!(std::sync::Arc::ptr_eq(
            &plain.key_log,
            &http_tls().unwrap().key_log
        ));
        assert!(plain.alpn_protocols.is_empty());
        assert_eq!(http_tls().unwrap().alpn_protocols.len(), 2);
    }

    #[tokio::test]
    async fn a_refused_connection_is_not_sent_and_a_cut_one_is_unknown() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = client(HttpTimeouts::default()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!(
            "http://{}/bot1:SECRET/getMe",
            listener.local_addr().unwrap()
        );

        let cut = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = [0_u8; 16];
            stream.read_exact(&mut head).await.unwrap();
        });
        let error = failed("getMe", client.post(&url).send().await.unwrap_err());
        cut.await.unwrap();
        assert!(
            matches!(error, ChannelError::OutcomeUnknown { .. }),
            "{error:?}"
        );
        assert!(!format!("{error:?} {}", error.reason()).contains("SECRET"));

        let error = failed("getMe", client.post(&url).send().await.unwrap_err());
        assert!(matches!(error, ChannelError::NotSent { .. }), "{error:?}");
        assert!(!format!("{error:?} {}", error.reason()).contains("SECRET"));
    }

    /// Answers the first request and reads the second one, on which the connection ends; counts both,
    /// and connections.
    async fn answers_once(
        listener: TcpListener,
        heard: std::sync::Arc<[std::sync::atomic::AtomicUsize; 2]>,
    ) {
        use std::sync::atomic::Ordering;
        use tokio::io::AsyncWriteExt as _;
        const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            heard[0].fetch_add(1, Ordering::SeqCst);
            let mut request = Vec::new();
            while stream.read_buf(&mut request).await.unwrap_or(0) > 0 {
                if !request.ends_with(b"\r\n\r\nbody") {
                    continue;
                }
                request.clear();
                if heard[1].fetch_add(1, Ordering::SeqCst) > 0 {
                    break;
                }
                stream.write_all(ANSWER).await.unwrap();
            }
        }
    }

    #[tokio::test]
    async fn a_request_on_a_kept_connection_that_breaks_is_made_once() {
        use std::sync::atomic::Ordering;
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = client(HttpTimeouts::default()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/chat.postMessage", listener.local_addr().unwrap());
        let heard = std::sync::Arc::default();
        let server = tokio::spawn(answers_once(listener, std::sync::Arc::clone(&heard)));

        let first = client.post(&url).body("body").send().await.unwrap();
        body("chat.postMessage", first).await.unwrap();
        let broken = client.post(&url).body("body").send().await.unwrap_err();
        let error = failed("chat.postMessage", broken);
        assert!(
            matches!(error, ChannelError::OutcomeUnknown { .. }),
            "{error:?}"
        );
        let counts = heard.each_ref().map(|count| count.load(Ordering::SeqCst));
        assert_eq!(counts, [1, 2], "connections, requests");
        server.abort();
    }
}
