//! The API over real sockets, on a store that the tests write as a run does: what readers are told,
//! in which order, how often, and what strangers are told.
#![allow(clippy::unwrap_used)]

#[path = "api/deciding.rs"]
mod deciding;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use vocative::admin::operations::Operations;
use vocative::agent::registry::Registry;
use vocative::config::{ApiAddress, ApiScope};
use vocative::delivery::rooms::Rooms;
use vocative::http::api::{self, ApiKey};
use vocative_contract::envelope::{ChatKind, Place, Sender, SenderKind};
use vocative_contract::identity::Platform;
use vocative_contract::outbound::Part;
use vocative_core::addressing::Verdict;
use vocative_core::ids::{AccountId, AgentName, ConversationId, OwnerId, RunId};
use vocative_core::run::{ClaimedRun, StopCause, Usage};
use vocative_core::turn::{ParticipantKind, TurnKind};
use vocative_store::NewId as _;
use vocative_store::contract::{
    AccountBinding, Captured, ClaimRequest, LeaseOutcome, NewMessage, NewRunEvent, ReplyCommit,
    RunEnding,
};
use vocative_store::{Store, StoreOptions};

/// Nothing on loopback takes longer.
const WAIT: Duration = Duration::from_secs(30);
const TOKEN: &str = "a-token-of-some-length";

/// A store behind an API.
struct House {
    store: Store,
    account: AccountId,
    address: SocketAddr,
    cancel: CancellationToken,
}

impl Drop for House {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

async fn open_store() -> (Store, AccountId) {
    let options = StoreOptions {
        path: None,
        readers: 2,
        page_cache_kib: 1_024,
    };
    let (store, _) = Store::open(&options, 0).unwrap();
    let binding = AccountBinding {
        channel: "acme".to_owned(),
        platform: Platform::Slack,
        account: "T1".to_owned(),
        name: "Acme".to_owned(),
    };
    let account = store.bind_account(binding, 0).await.unwrap();
    (store, account)
}

fn operations(store: &Store) -> Operations {
    Operations {
        store: store.clone(),
        registry: Registry::default(),
        skills: Default::default(),
        rooms: Rooms::default(),
        clock: Arc::new(|| 1_000),
        running: None,
    }
}

impl House {
    async fn open(token: Option<&str>) -> Self {
        let keys = token.map(|token| key("api.token", token, &[ApiScope::Read]));
        Self::with_keys(keys.into_iter().collect()).await
    }

    async fn with_keys(keys: Vec<ApiKey>) -> Self {
        let (store, account) = open_store().await;
        let anywhere = ApiAddress::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let listener = api::bind(&anywhere, None).await.unwrap();
        let address = listener.tcp_address().unwrap();
        let cancel = CancellationToken::new();
        tokio::spawn(api::serve(
            listener,
            keys,
            operations(&store),
            cancel.clone(),
        ));
        Self {
            store,
            account,
            address,
            cancel,
        }
    }

    /// Somebody asks, and an agent begins to work on it.
    async fn ask(&self, message: &str) -> ClaimedRun {
        self.capture("C1", message).await;
        self.claim(100).await
    }

    /// Somebody says something in another chat.
    async fn say_in(&self, chat: &str) {
        self.capture(chat, &format!("{chat}-1")).await;
    }

    async fn capture(&self, chat: &str, message: &str) {
        let asked = NewMessage {
            account: self.account,
            place: Place {
                chat: chat.to_owned(),
                kind: Some(ChatKind::Public),
                ..Place::default()
            },
            scope_override: None,
            message_id: message.to_owned(),
            sender: Sender {
                id: "U1".to_owned(),
                kind: SenderKind::Person,
                display_name: Some("Ada".to_owned()),
                username: None,
                is_stranger: false,
            },
            sender_kind: ParticipantKind::User,
            text: "where is it?".to_owned(),
            attachments: Vec::new(),
            reply_to: None,
            quote: None,
            album: None,
            sent_at_ms: 10,
            ordinal: 0,
            is_edit: false,
            edit_marker: None,
            received_at_ms: 10,
            tokens: None,
            keep_revisions: false,
            raw: None,
            judge: Box::new(|_| Verdict {
                is_admitted: true,
                addressed_to: vec![agent()],
                ..Verdict::default()
            }),
            judge_follow_up: None,
        };
        let captured = self.store.capture_message(asked).await.unwrap();
        assert!(matches!(captured, Captured::New(_)), "{captured:?}");
    }

    async fn claim(&self, now_ms: i64) -> ClaimedRun {
        let request = ClaimRequest {
            owner: OwnerId::generate(),
            lease_ms: 60_000,
            now_ms,
            accounts: vec![self.account],
        };
        self.store
            .claim_run(request, Default::default())
            .await
            .unwrap()
            .unwrap()
    }

    async fn tell(&self, run: &ClaimedRun, texts: &[&str]) {
        let events = texts.iter().map(|text| NewRunEvent::Text {
            step: 1,
            text: (*text).to_owned(),
        });
        let (id, token) = (run.run.id, run.token);
        let told = self
            .store
            .record_run_events(id, token, events.collect(), 200);
        assert_eq!(told.await.unwrap(), LeaseOutcome::Written);
    }

    async fn answer(&self, run: &ClaimedRun, text: &str) {
        let reply = ReplyCommit {
            verdicts: Vec::new(),
            run: run.run.id,
            token: run.token,
            agent: agent(),
            speaker: agent(),
            speaker_display_name: "Helper".to_owned(),
            before: Vec::new(),
            values: None,
            text: text.to_owned(),
            kind: TurnKind::Message,
            ending: RunEnding::Done,
            parts: vec![Part::plain(text)],
            target: serde_json::from_value(json!({ "chat": "C1" })).unwrap(),
            tokens: None,
            usage: Usage::default(),
            now_ms: 300,
            live_settle_ms: 0,
        };
        self.store.commit_reply(reply).await.unwrap();
    }

    async fn get(&self, path: &str, headers: &[(&str, &str)]) -> reqwest::Response {
        let mut request = client().get(format!("http://{}{path}", self.address));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        timeout(WAIT, request.send()).await.unwrap().unwrap()
    }

    async fn json(&self, path: &str) -> Value {
        let answer = self.get(path, &[]).await;
        assert_eq!(answer.status().as_u16(), 200, "{path}");
        answer.json().await.unwrap()
    }

    async fn follow_run(&self, run: RunId, after: Option<u64>) -> Follower {
        self.follow(&format!("/v1/runs/{run}/events"), after).await
    }

    async fn follow_conversation(&self, id: ConversationId, after: Option<u64>) -> Follower {
        self.follow(&format!("/v1/conversations/{id}/events"), after)
            .await
    }

    async fn follow(&self, path: &str, after: Option<u64>) -> Follower {
        let after = after.map(|after| after.to_string());
        let header = after.as_deref().map(|after| ("last-event-id", after));
        let response = self.get(path, header.as_slice()).await;
        assert_eq!(response.status().as_u16(), 200, "{path}");
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Follower {
            response,
            text: String::new(),
            last: None,
        }
    }
}

fn key(name: &str, secret: &str, scopes: &[ApiScope]) -> ApiKey {
    ApiKey {
        name: name.to_owned(),
        secret: SecretString::from(secret),
        scopes: scopes.iter().copied().collect(),
        people: Vec::new(),
        asking: None,
    }
}

fn agent() -> AgentName {
    AgentName::trusted("helper")
}

fn client() -> &'static reqwest::Client {
    static CLIENT: std::sync::OnceLock<reqwest::Client> = std::sync::OnceLock::new();
    CLIENT.get_or_init(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
        reqwest::Client::builder()
            .retry(reqwest::retry::never())
            .pool_max_idle_per_host(0)
            .build()
            .unwrap()
    })
}

/// An event as a reader gets it: its name and its data.
type Told = (String, Value);

/// A reader of server-sent events, as the standard says.
struct Follower {
    response: reqwest::Response,
    text: String,
    /// The id it would come back with.
    last: Option<u64>,
}

impl Follower {
    /// The next event; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Told> {
        loop {
            while let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                if let Some(told) = self.event(&block) {
                    return Some(told);
                }
            }
            let chunk = timeout(WAIT, self.response.chunk()).await.unwrap();
            self.text
                .push_str(std::str::from_utf8(&chunk.ok()??).unwrap());
        }
    }

    fn event(&mut self, block: &str) -> Option<Told> {
        let (mut name, mut data) = (String::new(), None);
        for line in block.lines() {
            match line.split_once(": ").unwrap() {
                ("id", id) => {
                    let id = id.parse().unwrap();
                    assert!(self.last < Some(id), "{id} comes after {:?}", self.last);
                    self.last = Some(id);
                }
                ("event", event) => event.clone_into(&mut name),
                ("data", json) => data = Some(serde_json::from_str(json).unwrap()),
                ("", _) => {}
                other => panic!("{other:?} is no field"),
            }
        }
        Some((name, data?))
    }

    /// The names of the next events, and the text of those that have one.
    async fn take(&mut self, count: usize) -> Vec<String> {
        let mut taken = Vec::new();
        for _ in 0..count {
            let (name, data) = self.next().await.expect("the stream goes on");
            taken.push(shown(&name, &data));
        }
        taken
    }

    /// Everything up to the end of the stream.
    async fn rest(&mut self) -> Vec<String> {
        let mut taken = Vec::new();
        while let Some((name, data)) = self.next().await {
            taken.push(shown(&name, &data));
        }
        taken
    }
}

fn shown(name: &str, data: &Value) -> String {
    match data["text"].as_str() {
        Some(text) => format!("{name} {text}"),
        None => name.to_owned(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_comes_back_gets_every_event_once_and_then_the_end() {
    let house = House::open(None).await;
    let run = house.ask("1").await;
    let id = run.run.id;
    house.tell(&run, &["one "]).await;
    let mut first = house.follow_run(id, None).await;
    assert_eq!(first.take(1).await, ["snapshot one "]);
    house.tell(&run, &["two "]).await;
    assert_eq!(first.take(1).await, ["text two "]);
    let last = first.last;
    drop(first);

    house.tell(&run, &["three ", "four "]).await;
    let mut second = house.follow_run(id, last).await;
    assert_eq!(second.take(2).await, ["text three ", "text four "]);
    house.tell(&run, &["five"]).await;
    assert_eq!(second.take(1).await, ["text five"]);
    house.answer(&run, "one two three four five").await;
    let end = ["snapshot one two three four five", "finished"];
    assert_eq!(second.rest().await, end);

    // Whoever missed the end gets what stands, not the pieces; whoever had it need not come again.
    let mut third = house.follow_run(id, last).await;
    assert_eq!(third.rest().await, end);
    assert_eq!(third.last, second.last);
    let mut late = house.follow_run(id, None).await;
    assert_eq!(late.rest().await, end);
    let mut whole = house.follow_run(id, Some(0)).await;
    assert_eq!(whole.rest().await, [&["started"][..], &end].concat());
    let path = format!("/v1/runs/{id}/events?after={}", second.last.unwrap());
    assert_eq!(house.get(&path, &[]).await.status().as_u16(), 204);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_attempt_is_told_and_what_was_heard_is_void() {
    let house = House::open(None).await;
    let run = house.ask("1").await;
    let id = run.run.id;
    let mut follower = house.follow_run(id, Some(0)).await;
    house.tell(&run, &["wrong"]).await;
    assert_eq!(follower.take(2).await, ["started", "text wrong"]);
    let back = house.store.return_run(id, run.token, "shutdown", 250).await;
    assert_eq!(back.unwrap(), LeaseOutcome::Written);
    let again = house.claim(300).await;
    house.tell(&again, &["right"]).await;
    assert_eq!(follower.take(2).await, ["restarted", "text right"]);
    // From another database, or from before an older copy was put back: it begins anew.
    let mut stranger = house.follow_run(id, Some(1 << 50)).await;
    assert_eq!(stranger.take(1).await, ["snapshot right"]);
    house
        .store
        .cancel_run(id, StopCause::Operator.into(), 400)
        .await
        .unwrap();
    house.answer(&again, "right").await;
    assert_eq!(follower.rest().await, ["cancelled"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_is_followed_over_its_runs() {
    let house = House::open(None).await;
    let first = house.ask("1").await;
    let conversation = first.run.conversation;
    house.tell(&first, &["one"]).await;
    let mut follower = house.follow_conversation(conversation, None).await;
    assert_eq!(follower.take(2).await, ["snapshot one", "ready"]);
    house.answer(&first, "one").await;
    let second = house.ask("2").await;
    house.tell(&second, &["two"]).await;
    let expected = ["snapshot one", "finished", "started", "text two"];
    assert_eq!(follower.take(4).await, expected);
    let last = follower.last;
    house.answer(&second, "two").await;
    let mut back = house.follow_conversation(conversation, last).await;
    assert_eq!(back.take(2).await, ["snapshot two", "finished"]);
    assert_eq!(follower.take(2).await, ["snapshot two", "finished"]);
    // With nothing going on there is still an id to come back with.
    let mut idle = house.follow_conversation(conversation, None).await;
    let third = house.ask("3").await;
    assert_eq!(idle.take(2).await, ["ready", "started"]);

    let listed = house.json("/v1/conversations?limit=1").await;
    assert_eq!(listed["conversations"][0]["id"], conversation.to_string());
    let path = format!("/v1/conversations/{conversation}/runs");
    let page = house.json(&format!("{path}?limit=2")).await;
    assert_eq!(page["runs"][0]["id"], third.run.id.to_string());
    assert_eq!(page["next_before"], second.run.id.to_string());
    let next = format!("{path}?limit=2&before={}", second.run.id);
    let page = house.json(&next).await;
    assert_eq!(page["runs"].as_array().unwrap().len(), 1);
    assert_eq!(page["next_before"], Value::Null);
    let run = house.json(&format!("/v1/runs/{}", first.run.id)).await;
    assert_eq!(
        (&run["run"]["state"], &run["conversation"]),
        (&"done".into(), &conversation.to_string().into())
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conversations_are_read_page_by_page() {
    let house = House::open(None).await;
    for chat in ["C1", "C2", "C3"] {
        house.say_in(chat).await;
    }
    let whole = house.json("/v1/conversations").await;
    assert_eq!(whole["next_before"], Value::Null);
    let (mut pages, mut path) = (Vec::new(), "/v1/conversations?limit=2".to_owned());
    loop {
        let page = house.json(&path).await;
        pages.extend(page["conversations"].as_array().unwrap().clone());
        let Some(next) = page["next_before"].as_str() else {
            break;
        };
        path = format!("/v1/conversations?limit=2&before={next}");
    }
    assert_eq!(pages.len(), 3);
    assert_eq!(Value::Array(pages), whole["conversations"]);
    for wrong in ["x", "1", "1.x", "x.00000000-0000-0000-0000-000000000000"] {
        let path = format!("/v1/conversations?before={wrong}");
        assert_eq!(status(&house, &path, &[]).await, 400, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_readers_hear_the_same() {
    let house = House::open(None).await;
    let run = house.ask("1").await;
    let mut followers = Vec::new();
    for _ in 0..1_000 {
        followers.push(house.follow_run(run.run.id, Some(0)).await);
    }
    let speaking = async {
        for n in 0..20 {
            house.tell(&run, &[&format!("{n} ")]).await;
        }
    };
    let readers = followers.iter_mut().map(|follower| follower.take(21));
    let (heard, ()) = tokio::join!(futures_util::future::join_all(readers), speaking);
    let mut expected = vec!["started".to_owned()];
    expected.extend((0..20).map(|n| format!("text {n} ")));
    for heard in heard {
        assert_eq!(heard, expected);
    }
    house.answer(&run, "counted").await;
    for follower in &mut followers {
        assert_eq!(follower.rest().await, ["snapshot counted", "finished"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_is_too_slow_is_cut_off_and_loses_nothing() {
    let house = House::open(None).await;
    let run = house.ask("1").await;
    let mut slow = house.follow_run(run.run.id, Some(0)).await;
    let mut quick = house.follow_run(run.run.id, Some(0)).await;
    let piece = "x".repeat(4_000);
    let pieces: Vec<&str> = vec![&piece; 100];
    assert_eq!(quick.take(1).await, ["started"]);
    // More than the sockets hold.
    for _ in 0..60 {
        house.tell(&run, &pieces).await;
        quick.take(100).await;
    }
    house.answer(&run, "all").await;
    assert_eq!(quick.rest().await, ["snapshot all", "finished"]);

    let heard = slow.rest().await;
    assert!(
        heard.len() < 6_001 && heard.last().unwrap() != "finished",
        "{}",
        heard.len()
    );
    let mut back = house.follow_run(run.run.id, slow.last).await;
    assert_eq!(back.rest().await, ["snapshot all", "finished"]);
}

async fn status(house: &House, path: &str, headers: &[(&str, &str)]) -> u16 {
    let answer = house.get(path, headers).await;
    let status = answer.status().as_u16();
    let body: Value = answer.json().await.unwrap();
    assert!(
        body["error"].is_string() && body["advice"].is_string(),
        "{path} says what to do: {body}"
    );
    status
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_are_told_what_is_wrong_and_get_nothing() {
    let house = House::open(Some(TOKEN)).await;
    let run = house.ask("1").await.run.id;
    let bearer = format!("Bearer {TOKEN}");
    let known = [("authorization", bearer.as_str())];
    let events = format!("/v1/runs/{run}/events");
    for headers in [&[][..], &[("authorization", "Bearer wrong")]] {
        for path in ["/", "/v1/conversations", "/nowhere", &events] {
            assert_eq!(status(&house, path, headers).await, 401, "{path}");
        }
    }
    let nobody = uuid::Uuid::nil();
    for (path, expected) in [
        ("/v1/runs/1/events".to_owned(), 400),
        ("/v1/conversations/acme/runs".to_owned(), 400),
        ("/v1/conversations?limit=0".to_owned(), 400),
        ("/v1/conversations?limit=x".to_owned(), 400),
        (format!("/v1/runs/{run}/events?after=-1"), 400),
        (format!("/v1/runs/{nobody}"), 404),
        (format!("/v1/runs/{nobody}/events"), 404),
        (format!("/v1/conversations/{nobody}/events"), 404),
        (format!("/v1/conversations/{nobody}/runs"), 404),
        ("/nowhere".to_owned(), 404),
    ] {
        assert_eq!(status(&house, &path, &known).await, expected, "{path}");
    }
    let twisted = [known[0], ("last-event-id", "' OR 1=1")];
    assert_eq!(status(&house, &events, &twisted).await, 400);
    let posted = client()
        .post(format!("http://{}/v1/conversations", house.address))
        .bearer_auth(TOKEN);
    assert_eq!(posted.send().await.unwrap().status().as_u16(), 405);
    let open = house.get(&events, &known).await;
    assert_eq!(open.status().as_u16(), 200);
}

/// What a raw connection is answered, until it is closed.
async fn answered(address: SocketAddr, sent: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // It may be closed before everything is taken.
    let _ = stream.write_all(sent).await;
    let mut answer = Vec::new();
    let _ = timeout(WAIT, stream.read_to_end(&mut answer))
        .await
        .unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_wastes_a_connection_loses_it_and_others_are_served() {
    let house = House::open(None).await;
    let huge = format!(
        "GET / HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n",
        "x".repeat(4 << 20)
    );
    let body = "GET / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9000000000\r\n\r\n";
    let (huge, garbage, body, half) = tokio::join!(
        answered(house.address, huge.as_bytes()),
        answered(house.address, b"\x16\x03\x01 hello\r\n\r\n"),
        answered(house.address, body.as_bytes()),
        // Never a whole request.
        answered(
            house.address,
            b"GET /v1/conversations HTTP/1.1\r\nhost: loc"
        ),
    );
    assert!(
        huge.is_empty() || huge.starts_with("HTTP/1.1 431"),
        "{huge}"
    );
    assert!(
        garbage.is_empty() || garbage.starts_with("HTTP/1.1 400"),
        "{garbage}"
    );
    assert!(body.starts_with("HTTP/1.1 413"), "{body}");
    assert_eq!(half, "");
    assert_eq!(
        house.json("/v1/conversations").await["conversations"],
        Value::Array(Vec::new())
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_asked_wrongly_is_told_in_our_words() {
    let house = House::open(None).await;
    let claimed = house.ask("1").await;
    let run = claimed.run.id.to_string();
    let conversation = claimed.run.conversation.to_string();
    let wrong = [
        "/v1/conversations?limit=abc".to_owned(),
        "/v1/conversations?limit=".to_owned(),
        "/v1/conversations?limit=0".to_owned(),
        "/v1/conversations?limit=99999999999999999999999".to_owned(),
        "/v1/conversations?limit=1&limit=2".to_owned(),
        "/v1/conversations?archived=yes".to_owned(),
        "/v1/conversations?before=%ff".to_owned(),
        "/v1/conversations/%ff/runs".to_owned(),
        "/v1/conversations/%00/events".to_owned(),
        "/v1/runs/%ff".to_owned(),
        format!("/v1/runs/{conversation}%20"),
        format!("/v1/conversations/{conversation}/runs?before=x"),
        format!("/v1/runs/{run}/events?after=%ff"),
        format!("/v1/runs/{run}/events?after=1&after=2"),
    ];
    for path in wrong {
        let answer = house.get(&path, &[]).await;
        let (status, text) = (answer.status().as_u16(), answer.text().await.unwrap());
        let told: Value = serde_json::from_str(&text).unwrap_or_default();
        assert_eq!(status, 400, "{path}: {text}");
        let is_ours = told["error"].is_string() && told["advice"].is_string();
        assert!(is_ours && !text.contains("eserializ"), "{path}: {text}");
    }
    // An id is the same however it is written, and what is not known is passed over.
    let written: String = run.bytes().map(|b| format!("%{b:02x}")).collect();
    for path in [
        format!("/v1/runs/{written}"),
        format!("/v1/runs/{}?_=7", run.to_uppercase()),
    ] {
        assert_eq!(house.json(&path).await["run"]["id"], run, "{path}");
    }
    let head = client().head(format!("http://{}/v1/runs/{run}/events", house.address));
    let head = timeout(WAIT, head.send()).await.unwrap().unwrap();
    assert_eq!(head.status().as_u16(), 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_socket_serves_its_owner_and_ends_its_streams_at_the_stop() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("api.sock");
    let (store, _) = open_store().await;
    let listener = api::bind(&ApiAddress::Unix(path.clone()), None)
        .await
        .unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let cancel = CancellationToken::new();
    let serving = tokio::spawn(api::serve(
        listener,
        Vec::new(),
        operations(&store),
        cancel.clone(),
    ));
    let mut stream = UnixStream::connect(&path).await.unwrap();
    let request = "GET /v1/conversations HTTP/1.1\r\nhost: vocative\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(WAIT, stream.read_to_string(&mut answer))
        .await
        .unwrap()
        .unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200")
            && answer.ends_with(r#"{"conversations":[],"next_before":null}"#),
        "{answer}"
    );
    cancel.cancel();
    timeout(WAIT, serving).await.unwrap().unwrap();
}
