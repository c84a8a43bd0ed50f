//! Files: `files.info`, the upload flow in three steps, and where their bytes are served.
//!
//! A file is uploaded by people (`SlackServer::add_file`) or by the app; it is shared by the message that carries it.
//! Downloads want the bot's token in the header, as Slack does: a client without it gets the sign-in page with HTTP
//! 200, or a redirect to it.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{ConnectInfo, Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::super::cut::ConnectionCut;
use super::super::events::{self, EventObject, PostChange};
use super::super::faults::{CallFault, SlackKnobs};
use super::super::post::SlackPost;
use super::super::state::{SharedSlack, SlackCore};
use super::super::text::posted_to_stored;
use super::super::world::ChannelKind;
use super::call::MethodCall;
use super::chat::{checked_blocks, thread, writable};
use super::conversations::required;
use super::{ApiError, MethodOutcome, MethodReply, log};
use crate::parts;
use crate::wire::{WireKind, now_ms};

/// The names of downloads and uploads in the queue of faults.
const DOWNLOAD: &str = "files-pri";
const UPLOAD: &str = "upload";

/// What a browser without a session is shown.
const SIGN_IN: &str = "<!DOCTYPE html><html><head><title>Slack</title></head><body>Sign in to your \
                       workspace</body></html>";

/// A file of the workspace.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct WorkspaceFile {
    pub(in super::super) id: String,
    pub(in super::super) name: String,
    /// The title that people see; its name unless the app gave it another one.
    title: Option<String>,
    pub(in super::super) mime_type: String,
    /// `hosted`, `snippet`, `post`, `external`, `tombstone`, `hidden_by_limit`.
    pub(in super::super) mode: String,
    /// `None` until the bytes of an upload came.
    pub(in super::super) bytes: Option<Bytes>,
    /// The size that an upload announced.
    length: usize,
    /// The part of the upload URL that only the app knows.
    ticket: String,
    deleted: bool,
    shares: Vec<SharedFile>,
}

/// A message that shows a file.
#[derive(Clone, Debug)]
struct SharedFile {
    channel: String,
    is_public: bool,
    ts: String,
    /// When `files.info` starts to show it, in milliseconds since the Unix epoch.
    visible_at_ms: i64,
}

/// A file as a test puts it into the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlackFile {
    /// Name with extension.
    pub name: String,
    /// MIME type as Slack reports it.
    pub mime_type: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl WorkspaceFile {
    /// The file object of messages.
    pub(in super::super) fn to_json(&self, core: &SlackCore) -> Value {
        let base = format!(
            "http://{}/files-pri/{}-{}",
            core.addr, core.world.team_id, self.id
        );
        let name = url_name(&self.name);
        let size = self.bytes.as_ref().map_or(self.length, Bytes::len);
        let kind = self
            .name
            .rsplit_once('.')
            .map_or("binary", |(_, ending)| ending);
        json!({
            "id": self.id, "name": self.name, "title": self.title.as_ref().unwrap_or(&self.name), "mimetype": self.mime_type,
            "filetype": kind, "size": size, "mode": self.mode, "file_access": "visible",
            "is_external": self.mode == "external",
            "url_private": format!("{base}/{name}"),
            "url_private_download": format!("{base}/download/{name}"),
        })
    }
}

fn url_name(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
    let lower = name.to_ascii_lowercase();
    lower
        .chars()
        .map(|c| if plain(c) { c } else { '_' })
        .collect()
}

impl SlackCore {
    /// Adds a file that a person uploaded; gives its object.
    pub(in super::super) fn add_file(&mut self, file: SlackFile) -> Value {
        let stored = WorkspaceFile {
            id: self.next_file_id(),
            name: file.name,
            mime_type: file.mime_type,
            mode: "hosted".to_owned(),
            bytes: Some(file.bytes.into()),
            ..WorkspaceFile::default()
        };
        let object = stored.to_json(self);
        self.files.insert(stored.id.clone(), stored);
        object
    }

    pub(in super::super) fn set_file_mode(&mut self, id: &str, mode: &str) {
        if let Some(file) = self.files.get_mut(id) {
            mode.clone_into(&mut file.mode);
        }
    }

    /// Deletes a file for good; gives the changes of the messages that showed it.
    pub(in super::super) fn delete_file(&mut self, id: &str) -> Vec<EventObject> {
        if let Some(file) = self.files.get_mut(id) {
            file.deleted = true;
        }
        let is_it = |file: &Value| file["id"] == id;
        let shows = |post: &&SlackPost| !post.deleted && post.files.iter().any(is_it);
        let places: Vec<(String, String)> = self
            .posts
            .iter()
            .flat_map(|(channel, posts)| {
                posts
                    .iter()
                    .filter(shows)
                    .map(|post| (channel.clone(), post.ts.clone()))
            })
            .collect();
        let mut events = Vec::new();
        for (channel, ts) in places {
            let (change_ts, place) = (self.next_ts(), self.world.channel(&channel).cloned());
            let (Some(place), Some(post)) = (place, self.post_mut(&channel, &ts)) else {
                continue;
            };
            let before = post.clone();
            for file in post.files.iter_mut().filter(|file| is_it(file)) {
                *file = json!({"id": id, "mode": "tombstone"});
            }
            let after = post.clone();
            let change = PostChange {
                before: &before,
                after: &after,
                ts: change_ts,
                counters: Map::new(),
            };
            events.extend(events::of_change(&self.world, &place, &change, false));
        }
        events
    }

    fn next_file_id(&mut self) -> String {
        self.last_file += 1;
        format!("F0FILE{:04}", self.last_file)
    }
}

pub(super) fn info(core: &mut SlackCore, call: &MethodCall, _: &SlackKnobs) -> MethodOutcome {
    let id = required(call, "file")?;
    let file = core.files.get(&id);
    let file = file.ok_or_else(|| ApiError::new("file_not_found"))?;
    if file.deleted {
        return Err(ApiError::new("file_deleted"));
    }
    let mut object = file.to_json(core);
    let mut shares = json!({});
    let shown = file
        .shares
        .iter()
        .filter(|share| share.visible_at_ms <= now_ms());
    for SharedFile {
        channel,
        is_public,
        ts,
        ..
    } in shown
    {
        let side = if *is_public { "public" } else { "private" };
        if shares[side][channel].is_null() {
            shares[side][channel] = json!([]);
        }
        if let Some(list) = shares[side][channel].as_array_mut() {
            list.push(json!({"ts": ts}));
        }
    }
    object["shares"] = shares;
    Ok(MethodReply::of(json!({"file": object, "comments": []})))
}

pub(super) fn get_upload_url(
    core: &mut SlackCore,
    call: &MethodCall,
    _: &SlackKnobs,
) -> MethodOutcome {
    let name = required(call, "filename")?;
    let length = required(call, "length")?;
    let length = length.parse::<usize>().ok().filter(|length| *length > 0);
    let length = length.ok_or_else(|| ApiError::new("invalid_arguments"))?;
    let ticket = Uuid::new_v4().simple().to_string();
    let file = WorkspaceFile {
        id: core.next_file_id(),
        mime_type: mime_of(&name).to_owned(),
        name,
        mode: "hosted".to_owned(),
        length,
        ticket: ticket.clone(),
        ..WorkspaceFile::default()
    };
    let id = file.id.clone();
    core.files.insert(id.clone(), file);
    let url = format!("http://{}/upload/v1/{ticket}", core.addr);
    Ok(MethodReply::of(json!({"upload_url": url, "file_id": id})))
}

fn mime_of(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("md") => "text/markdown",
        Some("txt") => "text/plain",
        Some("png") => "image/png",
        _ => "application/octet-stream",
    }
}

pub(super) fn complete_upload(
    core: &mut SlackCore,
    call: &MethodCall,
    knobs: &SlackKnobs,
) -> MethodOutcome {
    let list = call.structure("files");
    let list = list.map_err(|()| ApiError::new("invalid_arguments"))?;
    let wanted: Vec<String> = list
        .as_ref()
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|file| file["id"].as_str().map(str::to_owned))
        .collect();
    if wanted.is_empty() {
        return Err(ApiError::new("invalid_arguments"));
    }
    for id in &wanted {
        let file = core.files.get(id);
        let file = file.ok_or_else(|| ApiError::new("file_not_found"))?;
        if file.bytes.is_none() {
            return Err(ApiError::new("file_not_found"));
        }
    }
    for file in list
        .as_ref()
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let stored = file["id"].as_str().and_then(|id| core.files.get_mut(id));
        if let (Some(stored), Some(title)) = (stored, file["title"].as_str()) {
            stored.title = Some(title.to_owned());
        }
    }
    let objects: Vec<Value> = wanted
        .iter()
        .map(|id| core.files[id].to_json(core))
        .collect();
    let brief: Vec<Value> = objects
        .iter()
        .map(|file| json!({"id": file["id"], "title": file["title"]}))
        .collect();
    // Without a channel the files stay private to the app.
    let places = call.given("channel_id").or_else(|| call.given("channels"));
    let mut events = Vec::new();
    for place in places.iter().flat_map(|it| it.split(',')) {
        events.extend(share(core, call, knobs, place.trim(), &wanted, &objects)?);
    }
    Ok(MethodReply::of(json!({"files": brief})).with_events(events))
}

fn share(
    core: &mut SlackCore,
    call: &MethodCall,
    knobs: &SlackKnobs,
    place: &str,
    ids: &[String],
    objects: &[Value],
) -> Result<Vec<EventObject>, ApiError> {
    let channel = writable(core, place)?;
    let blocks = checked_blocks(call)?;
    let thread_ts = thread(core, call, &channel)?;
    let post = SlackPost {
        thread_ts,
        subtype: Some("file_share".to_owned()),
        text: posted_to_stored(&call.given("initial_comment").unwrap_or_default()),
        blocks,
        files: objects.to_vec(),
        ..core.own_post(knobs)
    };
    let is_public = channel.kind == ChannelKind::Public;
    let delay_ms = i64::try_from(knobs.shares_delay_ms).unwrap_or(i64::MAX);
    let shown_at_ms = now_ms().saturating_add(delay_ms);
    for id in ids {
        if let Some(file) = core.files.get_mut(id) {
            file.shares.push(SharedFile {
                channel: channel.id.clone(),
                is_public,
                ts: post.ts.clone(),
                visible_at_ms: shown_at_ms,
            });
        }
    }
    Ok(core.insert(&channel, post))
}

/// `POST /upload/v1/<ticket>`: raw bytes, or a form with one file; no token.
pub(in super::super) async fn upload(
    State(shared): State<Arc<SharedSlack>>,
    ConnectInfo(cut): ConnectInfo<ConnectionCut>,
    Path(ticket): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let Some(bytes) = uploaded(&headers, body).await else {
        return (StatusCode::BAD_REQUEST, "invalid upload").into_response();
    };
    let size = bytes.len();
    log(
        &shared,
        WireKind::Request,
        UPLOAD,
        None,
        json!({"bytes": size}),
    );
    let fault = shared.faults.take(UPLOAD);
    if let Some(response) = struck(&cut, fault.as_ref()).await {
        return response;
    }
    let is_known = shared.change(|core| {
        let file = core
            .files
            .values_mut()
            .find(|file| file.ticket == ticket && !ticket.is_empty());
        let Some(file) = file.filter(|file| file.length == size) else {
            return false;
        };
        file.bytes = Some(bytes);
        true
    });
    if fault == Some(CallFault::ResetAfter) {
        cut.cut();
        return StatusCode::OK.into_response();
    }
    match is_known {
        true => format!("OK - {size}").into_response(),
        false => (StatusCode::BAD_REQUEST, "invalid upload").into_response(),
    }
}

/// The bytes of an upload: the body as it is, or the file of a multipart form.
async fn uploaded(headers: &HeaderMap, body: Bytes) -> Option<Bytes> {
    if !parts::announced(headers) {
        return Some(body);
    }
    let parts = parts::read(headers, body).await?;
    let is_file = |part: &parts::FormPart| part.file_name.is_some();
    let at = parts.iter().position(is_file).unwrap_or(0);
    parts.into_iter().nth(at).map(|part| part.bytes)
}

/// `GET /files-pri/<team>-<file>/…`.
pub(in super::super) async fn download(
    State(shared): State<Arc<SharedSlack>>,
    ConnectInfo(cut): ConnectInfo<ConnectionCut>,
    Path(path): Path<String>,
    headers: HeaderMap,
) -> Response {
    let bearer = headers.get(header::AUTHORIZATION);
    let bearer = bearer
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let said = json!({"path": path, "has_token": !bearer.is_empty()});
    log(&shared, WireKind::Request, DOWNLOAD, None, said);
    let fault = shared.faults.take(DOWNLOAD);
    if let Some(response) = struck(&cut, fault.as_ref()).await {
        return response;
    }
    let may = shared.read(|core| {
        bearer == format!("Bearer {}", core.world.bot_token) && core.world.has_scope("files:read")
    });
    if !may {
        return sign_in(&shared);
    }
    let found = shared.read(|core| {
        let (name, _) = path.split_once('/').unwrap_or((&path, ""));
        let id = name.rsplit('-').next().unwrap_or_default();
        let file = core.files.get(id).filter(|file| !file.deleted)?;
        Some((file.bytes.clone()?, file.mime_type.clone()))
    });
    match found {
        Some((bytes, mime_type)) => ([(header::CONTENT_TYPE, mime_type)], bytes).into_response(),
        None => (StatusCode::NOT_FOUND, "not found").into_response(),
    }
}

/// The sign-in page for clients without a session, or a redirect to it.
fn sign_in(shared: &SharedSlack) -> Response {
    if shared.faults.knobs().sign_in_redirects {
        let to = shared.read(|core| format!("http://{}/signin", core.addr));
        return (StatusCode::FOUND, [(header::LOCATION, to)]).into_response();
    }
    page()
}

/// `GET /signin`.
pub(in super::super) async fn sign_in_page() -> Response {
    page()
}

fn page() -> Response {
    (
        [(header::CONTENT_TYPE, "text/html; charset=utf-8")],
        SIGN_IN,
    )
        .into_response()
}

/// The answer of a fault that prevents a transfer, if there is one.
async fn struck(cut: &ConnectionCut, fault: Option<&CallFault>) -> Option<Response> {
    match fault? {
        CallFault::Status(status) => Some(
            StatusCode::from_u16(*status)
                .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
                .into_response(),
        ),
        CallFault::RateLimited(seconds) => {
            let retry = [(header::RETRY_AFTER, seconds.to_string())];
            Some((StatusCode::TOO_MANY_REQUESTS, retry).into_response())
        }
        CallFault::ResetBefore => {
            cut.cut();
            Some(StatusCode::OK.into_response())
        }
        CallFault::Html => Some(page()),
        CallFault::Redirect(elsewhere) => {
            let to = [(header::LOCATION, elsewhere.clone())];
            Some((StatusCode::FOUND, to).into_response())
        }
        CallFault::Latency(latency_ms) => {
            tokio::time::sleep(Duration::from_millis(*latency_ms)).await;
            None
        }
        _ => None,
    }
}
