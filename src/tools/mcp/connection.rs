//! One connection to a server: connecting, listing tools, closing.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResponse, CallToolResult,
    CancelledNotification, CancelledNotificationParam, ClientCapabilities, ClientConfig,
    ClientRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability,
    FormElicitationCapability, Implementation, ListToolsRequest, PaginatedRequestParams,
    ProgressNotificationParam, ProgressToken, ProtocolVersion, RequestId, ServerResult,
};
use rmcp::service::{
    ClientLifecycleMode, NotificationContext, PeerRequestOptions, RequestContext, RunningService,
    serve_client_with_lifecycle,
};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};
use rmcp::{ClientHandler, ErrorData as McpError, Peer, RoleClient, ServiceError};
use secrecy::ExposeSecret as _;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use vocative_channels::http::HttpTimeouts;
use vocative_channels::internet::direct_client;

use super::{LOG_LINES, McpConfigured, McpPlace, McpServer};
use crate::confining::{Excess, StartedProgram};
use crate::tools::Progress;
use crate::tools::program::{OwnFolder, RunningProgram};

/// How long connecting and listing may take together.
pub(super) const START_LIMIT: Duration = Duration::from_secs(30);
/// How long to wait for the end of a program's log after the program failed to start as a server.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// The longest message of a server, in bytes.
const MESSAGE_MAX_BYTES: usize = 4 << 20;
/// The most pages of a list that are read.
const PAGES_MAX: usize = 50;
/// The most tools of a server that are taken.
pub(super) const TOOLS_MAX: usize = 200;
/// The longest line of a log that is kept, in bytes.
const LOG_LINE_MAX_BYTES: u64 = 4 << 10;
/// The longest time for a request over HTTP, including a call and its stream of progress, in milliseconds.
const REQUEST_MAX_MS: u64 = 3_600_000;

/// A connection to a server. Dropping it closes the connection and ends the program.
pub(super) struct McpConnection {
    pub(super) line: CallSender,
    service: RunningService<RoleClient, Handler>,
    program: Option<(StartedProgram, Option<OwnFolder>)>,
    /// Signals that the server's tools changed.
    pub(super) changed: Arc<Notify>,
}

/// Listeners for the progress of calls on a connection, by the tokens of their requests.
#[derive(Default)]
struct ProgressListeners(Mutex<HashMap<ProgressToken, Progress>>);

impl ProgressListeners {
    fn lock(&self) -> MutexGuard<'_, HashMap<ProgressToken, Progress>> {
        self.0.lock().expect("no holder of this lock panics")
    }
}

/// Sends calls over a connection, and passes on the progress that the server reports.
#[derive(Clone)]
pub(super) struct CallSender {
    peer: Peer<RoleClient>,
    heard: Arc<ProgressListeners>,
}

/// A call that waits for its answer. If it is dropped before that, the server is told that the call is cancelled.
struct OpenCall<'a> {
    line: &'a CallSender,
    request: RequestId,
    token: ProgressToken,
    is_answered: bool,
}

impl CallSender {
    /// Makes a call. Progress that the server reports goes to `progress`.
    pub(super) async fn call(
        &self,
        params: CallToolRequestParams,
        progress: Progress,
    ) -> Result<CallToolResponse, ServiceError> {
        let request = CallToolRequest::new(params);
        let options = PeerRequestOptions::no_options();
        let sent = self
            .peer
            .send_cancellable_request(ClientRequest::CallToolRequest(request), options)
            .await?;
        let token = sent.progress_token.clone();
        self.heard.lock().insert(token.clone(), progress);
        let mut calling = OpenCall {
            line: self,
            request: sent.id.clone(),
            token,
            is_answered: false,
        };
        let answer = sent.await_response().await;
        calling.is_answered = true;
        match answer? {
            ServerResult::CallToolResult(result) => Ok(CallToolResponse::Complete(result)),
            ServerResult::InputRequiredResult(wanted) => {
                Ok(CallToolResponse::InputRequired(wanted))
            }
            ServerResult::CreateTaskResult(task) => Ok(CallToolResponse::Task(task)),
            // A result without content.
            ServerResult::EmptyResult(_) | ServerResult::TaskAckResult(_) => {
                Ok(CallToolResponse::Complete(CallToolResult::default()))
            }
            _ => Err(ServiceError::UnexpectedResponse),
        }
    }
}

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        self.line.heard.lock().remove(&self.token);
        if self.is_answered {
            return;
        }
        let request = Some(self.request.clone());
        let cancelled = CancelledNotification::new(CancelledNotificationParam::new(request, None));
        let peer = self.line.peer.clone();
        // While the daemon stops, there may be no runtime left to send the message.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { peer.send_notification(cancelled.into()).await });
        }
    }
}

impl fmt::Debug for CallSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Line")
    }
}

/// The progress of a call, in one line.
fn progress_text(said: &ProgressNotificationParam) -> String {
    let number = |number: f64| match number.is_finite() {
        true => number.to_string(),
        false => "?".to_owned(),
    };
    let mut text = number(said.progress);
    if let Some(total) = said.total {
        text = format!("{text} of {}", number(total));
    }
    match said.message.as_deref().map(str::trim).unwrap_or_default() {
        "" => text,
        message => format!("{text}: {}", super::definition::shown(message, 200)),
    }
}

/// Answers the server's own requests with the protocol's refusals: it gets no model and no folder. People are asked
/// between two requests. A server of the older protocol, which asks people during a call, is told that nobody answers:
/// that wait would not survive a restart.
pub(super) struct Handler {
    changed: Arc<Notify>,
    heard: Arc<ProgressListeners>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let own = Implementation::new("vocative", env!("CARGO_PKG_VERSION"));
        let mut able = ClientCapabilities::default();
        able.elicitation =
            Some(ElicitationCapability::new().with_form(FormElicitationCapability::default()));
        ClientConfig::new(able, own)
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, McpError> {
        Ok(ElicitResult::new(ElicitationAction::Cancel))
    }

    async fn on_progress(
        &self,
        said: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        if let Some(progress) = self.heard.lock().get(&said.progress_token) {
            progress.say(&progress_text(&said));
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}

/// Connects to a server. `server` receives its log.
pub(super) async fn connect(
    configured: &McpConfigured,
    server: Option<&Arc<McpServer>>,
) -> Result<McpConnection, String> {
    let changed = Arc::new(Notify::new());
    let heard = Arc::new(ProgressListeners::default());
    let handler = Handler {
        changed: Arc::clone(&changed),
        heard: Arc::clone(&heard),
    };
    let lifecycle = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::LATEST],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    };
    let (service, program) = match (&configured.settings.place, &configured.program) {
        (McpPlace::Program(_), Some(program)) => {
            let started = program.start(&[]);
            let RunningProgram {
                program,
                streams,
                own_folder,
            } = started.map_err(|error| format!("the program can't be started: {error}"))?;
            let log = tokio::spawn(keep_log(streams.stderr, server.map(Arc::clone)));
            let transport = AsyncRwTransport::new_client(streams.stdout, streams.stdin)
                .with_max_line_length(MESSAGE_MAX_BYTES);
            let served = serve_client_with_lifecycle(handler, transport, lifecycle).await;
            if let Err(error) = served {
                drop((program, own_folder));
                return Err(with_last_words(&error.to_string(), log).await);
            }
            (served, Some((program, own_folder)))
        }
        (McpPlace::Socket(path), _) => {
            let reached = tokio::net::UnixStream::connect(path).await;
            let stream =
                reached.map_err(|error| format!("{} can't be opened: {error}", path.display()))?;
            let (from, to) = stream.into_split();
            let transport =
                AsyncRwTransport::new_client(from, to).with_max_line_length(MESSAGE_MAX_BYTES);
            let served = serve_client_with_lifecycle(handler, transport, lifecycle).await;
            (served, None)
        }
        (McpPlace::Http { url, .. }, _) => {
            let transport = http(configured, url)?;
            let served = serve_client_with_lifecycle(handler, transport, lifecycle).await;
            (served, None)
        }
        (McpPlace::Program(_), None) => return Err("it has no program".to_owned()),
    };
    let service = service.map_err(|error| super::definition::shown(&error.to_string(), 500))?;
    Ok(McpConnection {
        line: CallSender {
            peer: service.peer().clone(),
            heard,
        },
        service,
        program,
        changed,
    })
}

/// The transport to an address: checked like those of tools of kind `http`, without proxy and redirects.
fn http(
    configured: &McpConfigured,
    url: &Url,
) -> Result<StreamableHttpClientTransport<reqwest::Client>, String> {
    let McpPlace::Http {
        allow_private,
        headers,
        ..
    } = &configured.settings.place
    else {
        return Err("it has no address".to_owned());
    };
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or_default();
    let address = format!("{host}:{port}");
    let admits_own = allow_private
        .iter()
        .any(|it| it.eq_ignore_ascii_case(&address));
    let timeouts = HttpTimeouts {
        connect_ms: 10_000,
        read_ms: REQUEST_MAX_MS,
        total_ms: REQUEST_MAX_MS,
    };
    let client = direct_client(timeouts, url, admits_own)
        .map_err(|_| "its address is none of the internet, and not in allow_private")?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
        .max_sse_event_size(MESSAGE_MAX_BYTES)
        .max_json_response_size(MESSAGE_MAX_BYTES)
        .max_error_response_size(4 << 10);
    if let Some(bearer) = &configured.bearer {
        config = config.auth_header(bearer.expose_secret());
    }
    let header = |(name, value): &(String, String)| {
        let name: HeaderName = name.parse().ok()?;
        Some((name, HeaderValue::from_str(value).ok()?))
    };
    let headers: HashMap<HeaderName, HeaderValue> = headers.iter().filter_map(header).collect();
    Ok(StreamableHttpClientTransport::with_client(
        client,
        config.custom_headers(headers),
    ))
}

/// The error for a program that failed to start as a server, with the last line of its log: a program that ends at once
/// says why there.
async fn with_last_words(error: &str, log: JoinHandle<Option<String>>) -> String {
    let error = super::definition::shown(error, 500);
    let said = tokio::time::timeout(LAST_WORDS, log).await;
    match said.ok().and_then(Result::ok).flatten() {
        Some(said) => format!("{error}; its log ends with: {said}"),
        None => error,
    }
}

/// Reads a log to its end, so that the server never blocks on writing; its last lines are kept. Returns the last one.
async fn keep_log(log: impl AsyncRead + Unpin, server: Option<Arc<McpServer>>) -> Option<String> {
    let mut log = BufReader::new(log);
    let mut line = Vec::new();
    let mut last = None;
    loop {
        line.clear();
        match (&mut log)
            .take(LOG_LINE_MAX_BYTES)
            .read_until(b'\n', &mut line)
            .await
        {
            Ok(1..) => {}
            Ok(0) | Err(_) => return last,
        }
        let text = String::from_utf8_lossy(&line);
        let text = super::definition::shown(&text, 500);
        if !text.trim().is_empty() {
            last = Some(text.trim().to_owned());
        }
        let Some(server) = &server else { continue };
        tracing::debug!(
            server = server.settings().name,
            "a server of tools logs: {text}"
        );
        let mut kept = server.log.lock().expect("no holder of this lock panics");
        kept.push_back(text);
        while kept.len() > LOG_LINES {
            kept.pop_front();
        }
    }
}

impl McpConnection {
    /// All tools that the server offers.
    pub(super) async fn list(&self) -> Result<Vec<rmcp::model::Tool>, String> {
        let mut tools = Vec::new();
        let mut cursors: Vec<String> = Vec::new();
        for _ in 0..PAGES_MAX {
            let mut params = PaginatedRequestParams::default();
            params.cursor = cursors.last().cloned();
            let request = ListToolsRequest {
                method: Default::default(),
                params: params.cursor.is_some().then_some(params),
                extensions: Default::default(),
            };
            // Without the library's cache: the pins must match what the server offers now.
            let answer = self
                .line
                .peer
                .send_request(ClientRequest::ListToolsRequest(request));
            let answer = answer.await;
            let answer =
                answer.map_err(|error| super::definition::shown(&error.to_string(), 500))?;
            let ServerResult::ListToolsResult(page) = answer else {
                return Err("it answers with something else than a list of tools".to_owned());
            };
            tools.extend(page.tools);
            if tools.len() > TOOLS_MAX {
                return Err(format!("it offers more than {TOOLS_MAX} tools"));
            }
            match page.next_cursor {
                None => return Ok(tools),
                Some(next) if cursors.contains(&next) => {
                    return Err("its list of tools goes in circles".to_owned());
                }
                Some(next) => cursors.push(next),
            }
        }
        Err(format!("its list of tools has more than {PAGES_MAX} pages"))
    }

    /// Waits until the server's program exceeds its limits; never ends for a server that is no program.
    pub(super) fn excess(&self) -> impl Future<Output = Excess> + use<> {
        let exceeds = self.program.as_ref().map(|(program, _)| program.exceeds());
        async move {
            match exceeds {
                Some(exceeds) => exceeds.await,
                None => std::future::pending().await,
            }
        }
    }

    /// Waits until the connection is gone, and returns why.
    pub(super) async fn gone(&mut self) -> String {
        let closed = async {
            loop {
                tokio::time::sleep(Duration::from_millis(200)).await;
                if self.service.is_closed() || self.line.peer.is_transport_closed() {
                    return "it closed the connection".to_owned();
                }
            }
        };
        match &mut self.program {
            None => closed.await,
            Some((program, _)) => tokio::select! {
                why = closed => why,
                ended = program.ended() => match ended {
                    Ok(status) => format!("its program ended: {status}"),
                    Err(error) => format!("its program is lost: {error}"),
                },
            },
        }
    }
}
