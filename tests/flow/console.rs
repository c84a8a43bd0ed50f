//! The web console over HTTP, of a daemon in a process of its own: who is let in, what pages show and to whom, what
//! people do in it and what the audit says of that, and each of the walls.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;

use futures_util::StreamExt as _;
use reqwest::{Method, RequestBuilder, StatusCode, header};
use serde_json::Value;
use vocative_sandbox::model::ModelReply;

use crate::approvals::refund;
use crate::harness::{Flow, FlowBuilder, WAIT};
use vocative_sandbox::orders::OrderServer;

const GENERAL: &str = "#general";
const DIRECT: &str = "D0ANN";

pub(crate) fn free_address() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap()
}

/// A console with somebody of each role, who are Ann, Bob and nobody in Slack.
pub(crate) fn settings(address: SocketAddr) -> String {
    format!(
        "[console]\nenabled = true\nlisten = \"{address}\"\n\
         [console.people.olga]\nrole = \"operator\"\npeople = [\"acme/U0BOB\"]\n\
         [console.people.vera]\nrole = \"viewer\"\n\
         [console.people.adam]\nrole = \"admin\"\n"
    )
}

/// A browser as far as these tests need one.
pub(crate) struct Browser {
    client: reqwest::Client,
    address: SocketAddr,
    cookie: Option<String>,
}

/// What a page answered.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) status: StatusCode,
    pub(crate) headers: header::HeaderMap,
    pub(crate) text: String,
}

impl Browser {
    pub(crate) fn new(address: SocketAddr) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .timeout(WAIT)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .unwrap();
        Self {
            client,
            address,
            cookie: None,
        }
    }

    /// Somebody comes in by a link of the command line.
    pub(crate) async fn of(flow: &Flow, address: SocketAddr, name: &str) -> Self {
        let link = flow.cli_json(&["console", "link", "--as", name]).await;
        let url = link["url"].as_str().unwrap();
        let mut browser = Self::new(address);
        let code = url.rsplit('#').next().unwrap();
        let page = browser.post("/login", &[("code", code)]).await;
        assert_eq!(page.status, StatusCode::SEE_OTHER, "{}", page.text);
        let set = page.headers[header::SET_COOKIE].to_str().unwrap();
        let (cookie, flags) = set.split_once(';').unwrap();
        assert_eq!(flags, " Path=/; HttpOnly; SameSite=Strict");
        browser.cookie = Some(cookie.to_owned());
        browser
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let url = format!("http://{}{path}", self.address);
        let request = self.client.request(method, url);
        match &self.cookie {
            Some(cookie) => request.header(header::COOKIE, cookie),
            None => request,
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Page {
        patiently(|| self.request(Method::GET, path)).await
    }

    /// A page that must be there.
    pub(crate) async fn page(&self, path: &str) -> String {
        let page = self.get(path).await;
        assert_eq!(page.status, StatusCode::OK, "{path}: {}", page.text);
        page.text
    }

    /// A form of a page of the console.
    pub(crate) async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Page {
        let request = || {
            let request = self.request(Method::POST, path);
            request.header("sec-fetch-site", "same-origin").form(fields)
        };
        match path {
            "/login" => sent(request()).await,
            _ => patiently(request).await,
        }
    }

    /// A form that must be taken.
    async fn done(&self, path: &str, fields: &[(&str, &str)]) {
        let page = self.post(path, fields).await;
        assert_eq!(page.status, StatusCode::SEE_OTHER, "{path}: {}", page.text);
    }

    /// The audit as (who, what, outcome), the oldest first.
    async fn audit(flow: &Flow) -> Vec<(String, String, String)> {
        let rows = flow.cli_json(&["console", "audit"]).await;
        let rows = rows.as_array().unwrap().iter().rev();
        let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
        rows.map(|row| (text(row, "who"), text(row, "act"), text(row, "outcome")))
            .collect()
    }
}

/// Asks again while it is too often: these tests are quicker than people.
async fn patiently(request: impl Fn() -> RequestBuilder) -> Page {
    loop {
        let page = sent(request()).await;
        if page.status != StatusCode::TOO_MANY_REQUESTS {
            return page;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn sent(request: RequestBuilder) -> Page {
    let answer = request.send().await.unwrap();
    Page {
        status: answer.status(),
        headers: answer.headers().clone(),
        text: answer.text().await.unwrap(),
    }
}

fn row(who: &str, act: &str, outcome: &str) -> (String, String, String) {
    (who.to_owned(), act.to_owned(), outcome.to_owned())
}

async fn with_console(further: &str) -> (Flow, SocketAddr) {
    let address = free_address();
    let flow = FlowBuilder::default()
        .config(&settings(address))
        .config(further)
        .start()
        .await;
    (flow, address)
}

/// The run of the newest question, once it is done.
async fn newest_run(flow: &Flow, browser: &Browser) -> String {
    flow.settle().await;
    let page = browser.page("/runs").await;
    let link = page.split("href=\"/runs/").nth(1).unwrap();
    link.split('"').next().unwrap().to_owned()
}

async fn general_of(flow: &Flow) -> String {
    let rooms = flow.conversations().await;
    let room = rooms
        .iter()
        .find(|it| it["chat"] == "C0GENERAL" && it["scope"] == "channel");
    let room = room.unwrap_or_else(|| panic!("{rooms:?}"));
    room["id"].as_str().unwrap().to_owned()
}

/// Every path that shows something.
const PAGES: [&str; 17] = [
    "/",
    "/rooms",
    "/runs",
    "/approvals",
    "/questions",
    "/queue",
    "/held",
    "/dead",
    "/schedules",
    "/search",
    "/costs",
    "/mcp",
    "/skills",
    "/memory",
    "/settings",
    "/audit",
    "/erase",
];

/// Forms, each with who may send it.
const FORMS: [(&str, &str); 16] = [
    ("/rooms/x/look", "operator"),
    ("/rooms/x/title", "operator"),
    ("/rooms/x/archive", "operator"),
    ("/rooms/x/rebuild", "operator"),
    ("/runs/x/stop", "operator"),
    ("/approvals/x/approve", "operator"),
    ("/approvals/x/deny", "operator"),
    ("/grants/x/revoke", "operator"),
    ("/questions/x/answer", "operator"),
    ("/questions/x/cancel", "operator"),
    ("/held/x/send", "operator"),
    ("/dead/x/retry", "operator"),
    ("/schedules/1/run", "operator"),
    ("/memory/1/forget", "operator"),
    ("/reload", "admin"),
    ("/erase/plan", "admin"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_not_in_sees_and_does_nothing_and_roles_hold() {
    let (flow, address) = with_console("").await;
    let nobody = Browser::new(address);
    for path in PAGES {
        let page = nobody.get(path).await;
        assert_eq!(page.status, StatusCode::SEE_OTHER, "{path}");
        assert_eq!(page.headers[header::LOCATION], "/login");
        assert_eq!(page.text, "", "{path}");
    }
    assert_eq!(nobody.get("/live").await.status, StatusCode::UNAUTHORIZED);
    for (path, _) in FORMS {
        let page = nobody.post(path, &[]).await;
        assert_eq!(page.status, StatusCode::UNAUTHORIZED, "{path}");
    }
    let vera = Browser::of(&flow, address, "vera").await;
    let olga = Browser::of(&flow, address, "olga").await;
    let adam = Browser::of(&flow, address, "adam").await;
    for path in PAGES {
        let hidden = ["/memory", "/settings", "/audit", "/erase"].contains(&path);
        let expected = if hidden { 403 } else { 200 };
        assert_eq!(vera.get(path).await.status.as_u16(), expected, "{path}");
        let expected = if path == "/erase" { 403 } else { 200 };
        assert_eq!(olga.get(path).await.status.as_u16(), expected, "{path}");
        adam.page(path).await;
    }
    for (path, role) in FORMS {
        let page = vera.post(path, &[]).await;
        assert_eq!(page.status, StatusCode::FORBIDDEN, "{path}");
        let refused = olga.post(path, &[]).await.status == StatusCode::FORBIDDEN;
        assert_eq!(refused, role == "admin", "{path}");
    }
    // A code lets one in once; whoever is not in the settings gets none.
    let told = flow.cli(&["console", "link", "--as", "eve"]).await;
    assert_eq!(told.status, Some(1));
    assert!(told.stderr.contains("adam, olga, vera"), "{}", told.stderr);
    adam.done("/logout", &[]).await;
    assert_eq!(adam.get("/").await.status, StatusCode::SEE_OTHER);
    let audit = Browser::audit(&flow).await;
    assert_eq!(audit[0], row("vera", "login", "done"));
    assert_eq!(audit[1], row("olga", "login", "done"));
    assert!(audit.contains(&row("olga", "stop", "refused")), "{audit:?}");
    assert!(audit.contains(&row("adam", "logout", "done")), "{audit:?}");
    assert!(
        !audit
            .iter()
            .any(|(who, act, _)| who == "vera" && act != "login")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_wall_holds_alone() {
    let (flow, address) = with_console("").await;
    let olga = Browser::of(&flow, address, "olga").await;

    // Host: a page of another site that has its own name lead here.
    for host in ["evil.example", "10.1.2.3", "localhost.evil.example"] {
        let asked = olga.request(Method::GET, "/").header(header::HOST, host);
        let page = sent(asked).await;
        assert_eq!(page.status, StatusCode::MISDIRECTED_REQUEST, "{host}");
    }
    // Origin: a page of another site, with the cookie on purpose.
    let path = "/runs/00000000-0000-0000-0000-000000000000/stop";
    let forged: [&[(&str, &str)]; 5] = [
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site")],
        &[
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "navigate"),
        ],
        &[("origin", "http://evil.example")],
        &[],
    ];
    for headers in forged {
        let mut asked = olga.request(Method::POST, path);
        for (name, value) in headers {
            asked = asked.header(*name, *value);
        }
        let page = sent(asked).await;
        assert_eq!(page.status, StatusCode::FORBIDDEN, "{headers:?}");
    }
    let embedded = olga.request(Method::GET, "/live");
    let embedded = sent(embedded.header("sec-fetch-site", "cross-site")).await;
    assert_eq!(embedded.status, StatusCode::FORBIDDEN);
    let stops = |audit: &[(String, String, String)]| audit.iter().any(|it| it.1 == "stop");
    assert!(!stops(&Browser::audit(&flow).await), "nothing was done");

    // The policy, and that nobody frames or keeps a page; on refusals, too.
    let refused = olga.get("/nowhere").await;
    for page in [
        olga.get("/").await,
        Browser::new(address).get("/login").await,
        refused,
    ] {
        let policy = page.headers["content-security-policy"].to_str().unwrap();
        for rule in [
            "default-src 'none'",
            "script-src 'self';",
            "style-src 'self';",
            "form-action 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        ] {
            assert!(policy.contains(rule), "{rule}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(page.headers["x-frame-options"], "DENY");
        assert_eq!(page.headers["cache-control"], "no-store");
        assert_eq!(page.headers["cross-origin-opener-policy"], "same-origin");
        // No page needs what the policy forbids.
        for inline in ["<style", " style=", " onclick=", "javascript:"] {
            assert!(!page.text.contains(inline), "{inline}");
        }
        let scripts = page.text.matches("<script").count();
        assert_eq!(scripts, page.text.matches("<script src=\"/assets/").count());
    }
    // The header of a proxy, from an address that is none.
    let claimed = olga
        .request(Method::GET, "/")
        .header("x-forwarded-user", "adam@example.org");
    assert_eq!(sent(claimed).await.status, StatusCode::BAD_REQUEST);
    // A form that is too large.
    let large = "x".repeat(100_000);
    let page = olga
        .post("/search", &[("room", "x"), ("words", &large)])
        .await;
    assert_eq!(page.status, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn codes_are_tried_a_few_times_only() {
    let (flow, address) = with_console("").await;
    let browser = Browser::new(address);
    for _ in 0..5 {
        let page = browser.post("/login", &[("code", "0000")]).await;
        assert_eq!(page.status, StatusCode::FORBIDDEN);
    }
    let page = browser.post("/login", &[("code", "0000")]).await;
    assert_eq!(page.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(Browser::audit(&flow).await, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proxy_says_who_somebody_is_and_nobody_else_does() {
    let address = free_address();
    let console = settings(address).replace(
        "enabled = true\n",
        "enabled = true\ntrusted_proxy = [\"127.0.0.1\"]\nhosts = [\"console.example.org\"]\n",
    );
    let console = console.replace(
        "role = \"viewer\"\n",
        "role = \"viewer\"\nlogin = \"vera@example.org\"\n",
    );
    let flow = FlowBuilder::default().config(&console).start().await;
    let browser = Browser::new(address);
    let asked = |login: &'static str| {
        let request = browser.request(Method::GET, "/");
        let request = request.header(header::HOST, "console.example.org");
        sent(request.header("X-Forwarded-User", login))
    };
    let page = asked("vera@example.org").await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.text.contains("<bdi>vera</bdi> · viewer"));
    assert_eq!(asked("eve@example.org").await.status, StatusCode::FORBIDDEN);
    assert_eq!(asked("adam").await.status, StatusCode::FORBIDDEN);
    asked("vera@example.org").await;
    let audit = Browser::audit(&flow).await;
    assert_eq!(audit, [row("vera", "login", "done")], "once a session");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_x_ray_shows_exactly_what_the_model_was_sent() {
    let (flow, address) = with_console("").await;
    flow.slack.say(GENERAL, "bob", "the cellar is flooded");
    flow.model.enqueue(ModelReply::text("On Friday."));
    let root = flow
        .slack
        .say(GENERAL, "ann", "@vocative when is the <deploy>?");
    flow.slack_reply(GENERAL, &root).await;
    let vera = Browser::of(&flow, address, "vera").await;
    let run = newest_run(&flow, &vera).await;
    let page = vera.page(&format!("/runs/{run}/prompt")).await;
    assert!(page.contains("Byte for byte what"), "{page}");
    // What the model was sent in truth stands there, escaped.
    for (_, text) in flow.model_prompt(0) {
        let escaped = text
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;")
            .replace('"', "&quot;");
        assert!(page.contains(&escaped), "{text} is not in {page}");
    }
    assert!(page.contains("The question"));
    assert!(page.contains("to be answered: it always stays"));
    assert!(page.contains("On Friday."));

    let story = vera.page(&format!("/runs/{run}")).await;
    assert!(
        story.contains("Step 1") && story.contains("On Friday."),
        "{story}"
    );

    // An edit afterwards: what is shown is not what was sent, and the page says so.
    flow.slack.edit(GENERAL, &root, "@vocative when is it?");
    flow.settle().await;
    let page = vera.page(&format!("/runs/{run}/prompt")).await;
    assert!(page.contains("it is not what"), "{page}");

    // What would be sent now, with what is overheard left out and why.
    let room = general_of(&flow).await;
    let page = vera.page(&format!("/rooms/{room}")).await;
    assert!(page.contains("the cellar is flooded") && page.contains("overheard"));
    let found = vera
        .post(
            "/search",
            &[("room", &room), ("words", "cellar"), ("threads", "true")],
        )
        .await;
    assert!(
        found.text.contains("the cellar is flooded"),
        "{}",
        found.text
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_of_a_networks_run_says_who_was_called_and_by_whose_word() {
    let (address, mut builder) = (free_address(), FlowBuilder::default());
    for name in ["sorter", "writer"] {
        builder = builder.agent(name, "channels = []");
    }
    let rules = "[networks.support]\nagents = [\"sorter\", \"writer\"]\n\
                 [[networks.support.rules]]\nwhen = { calls = 0 }\ncall = \"sorter\"\n\
                 [[networks.support.rules]]\nwhen = { calls = 1 }\ncall = \"writer\"\n";
    let flow = builder
        .config(&format!("{rules}{}", settings(address)))
        .start()
        .await;
    flow.model
        .enqueue(ModelReply::text("It is about <billing>."));
    flow.model.enqueue(ModelReply::text("Paid on Friday."));
    let asked = flow.slack.say(GENERAL, "ann", "@vocative was it paid?");
    flow.slack_reply(GENERAL, &asked).await;
    let vera = Browser::of(&flow, address, "vera").await;
    let run = newest_run(&flow, &vera).await;
    let page = vera.page(&format!("/runs/{run}")).await;
    for words in [
        "Who was called, and why",
        "<b>sorter</b> is next · by rule 1",
        "It is about &lt;billing&gt;.",
        "<b>writer</b> is next · by rule 2",
        "<b>The end</b>",
    ] {
        assert!(page.contains(words), "{words} is not in {page}");
    }
}

/// What people write who want more than to be read.
const HOSTILE: [&str; 6] = [
    "<img src=x onerror=\"document.title='broken'\">",
    "</div></main><script>document.title='broken'</script>",
    "<form action=\"/erase/begin\" method=\"post\"><button autofocus>click</button></form>",
    "<a href=\"javascript:alert(1)\" hx-post=\"/reload\" hx-trigger=\"load\">x</a>",
    "\" onmouseover=\"alert(1)\" data-sure=\"\" data-live=\"1\" id=\"main",
    "\u{202e}txt.exe\u{2066} and \u{0}\u{7} <iframe srcdoc='<script>1</script>'>",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hostile_room_is_shown_as_data() {
    let (flow, address) = with_console("").await;
    for text in HOSTILE {
        flow.slack.say(GENERAL, "bob", text);
    }
    let evil = HOSTILE.join("\n");
    flow.model.enqueue(ModelReply::text(&evil));
    let root = flow.slack.say(GENERAL, "bob", &format!("@vocative {evil}"));
    flow.slack_reply(GENERAL, &root).await;
    let adam = Browser::of(&flow, address, "adam").await;
    let run = newest_run(&flow, &adam).await;
    let room = general_of(&flow).await;
    adam.done(&format!("/rooms/{room}/title"), &[("title", HOSTILE[1])])
        .await;
    let search = adam
        .post(
            "/search",
            &[("room", &room), ("words", "script"), ("threads", "true")],
        )
        .await;
    let mut pages = vec![search.text];
    for path in [
        format!("/rooms/{room}"),
        format!("/rooms/{room}/prompt"),
        format!("/rooms/{room}/summaries"),
        format!("/runs/{run}"),
        format!("/runs/{run}/prompt"),
        "/rooms".to_owned(),
        "/runs".to_owned(),
        "/".to_owned(),
        "/costs?by=room".to_owned(),
    ] {
        let page = adam.get(&path).await;
        assert!(page.status.is_success(), "{path}: {}", page.text);
        pages.push(page.text);
    }
    assert!(
        pages
            .iter()
            .any(|page| page.contains("&lt;img src=x onerror="))
    );
    assert!(pages.iter().any(|page| page.contains(">U+202E</span>")));
    for page in pages {
        for broken in [
            "<img src=x",
            "<script>",
            "<form action=\"/erase/begin\"",
            "<a href=\"javascript:",
            "<iframe",
            "\" onmouseover",
            "\u{202e}",
            "\u{2066}",
            "\u{0}",
        ] {
            assert!(!page.contains(broken), "{broken:?} in {page}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_direct_chat_is_shown_after_a_look_that_is_recorded() {
    let (flow, address) = with_console("").await;
    flow.model
        .enqueue(ModelReply::text("It is a secret answer."));
    flow.slack.say(DIRECT, "ann", "my secret plan");
    flow.slack_post(DIRECT, |post| post.text.contains("secret answer"))
        .await;
    let rooms = flow.conversations().await;
    let direct = rooms.iter().find(|room| room["scope"] == "dm").unwrap();
    let id = direct["id"].as_str().unwrap();
    let olga = Browser::of(&flow, address, "olga").await;
    let vera = Browser::of(&flow, address, "vera").await;
    let run = newest_run(&flow, &olga).await;
    let room = format!("/rooms/{id}");
    let paths = [
        room.clone(),
        format!("{room}/prompt"),
        format!("{room}/summaries"),
        format!("/runs/{run}"),
        format!("/runs/{run}/prompt"),
        "/rooms".to_owned(),
        "/runs".to_owned(),
        "/queue".to_owned(),
        "/".to_owned(),
    ];
    let search = [("room", id), ("words", "secret"), ("threads", "true")];
    for browser in [&olga, &vera] {
        for path in &paths {
            let page = browser.page(path).await;
            assert!(!page.contains("secret"), "{path}: {page}");
        }
        let found = browser.post("/search", &search).await;
        assert!(!found.text.contains("secret plan"), "{}", found.text);
    }
    let refused = vera.post(&format!("{room}/look"), &[("back", "/")]).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    let looks = |audit: Vec<(String, String, String)>| {
        audit.into_iter().filter(|it| it.1 == "look").count()
    };
    assert_eq!(looks(Browser::audit(&flow).await), 0);

    // A form leads back to pages of the console only.
    let away = olga
        .post(&format!("{room}/look"), &[("back", "//evil.example")])
        .await;
    assert_eq!(away.headers[header::LOCATION], room.as_str());
    for path in &paths[..1] {
        assert!(olga.page(path).await.contains("my secret plan"), "{path}");
    }
    for path in [format!("/runs/{run}"), format!("/runs/{run}/prompt")] {
        assert!(olga.page(&path).await.contains("secret answer"), "{path}");
    }
    let found = olga.post("/search", &search).await;
    assert!(found.text.contains("secret plan"), "{}", found.text);
    let audit = Browser::audit(&flow).await;
    assert!(audit.contains(&row("olga", "look", "done")), "{audit:?}");
    assert_eq!(looks(audit), 1);
    // Others see nothing more, and neither does she in another session.
    let again = Browser::of(&flow, address, "olga").await;
    for browser in [&vera, &again] {
        assert!(!browser.page(&room).await.contains("secret plan"));
    }
}

/// A flow whose agent may refund something if somebody allows it, with a console.
pub(crate) async fn with_refunds(approvers: &str) -> (Flow, OrderServer, SocketAddr) {
    let shop = OrderServer::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let shop = shop.await.unwrap();
    let (host, address) = (shop.addr(), free_address());
    let tool = format!(
        "[tools.refund]\nkind = \"http\"\ndescription = \"Refunds something.\"\nmethod = \"POST\"\n\
         url = \"http://{host}/orders\"\nallow_private = [\"{host}\"]\napproval = \"always\"\napprovers = [{approvers}]\n\
         parameters = '{{\"type\": \"object\", \"required\": [\"what\"], \"properties\": {{\"what\": {{\"type\": \"string\"}}, \
         \"amount\": {{\"type\": \"number\"}}}}}}'\n"
    );
    let flow = FlowBuilder::default()
        .agent("vocative", "tools = [\"refund\"]")
        .config(&settings(address))
        .config(&tool)
        .start()
        .await;
    (flow, shop, address)
}

/// Has a refund asked for, and says the id of its approval and the digest of what is shown.
async fn asked(flow: &Flow, browser: &Browser) -> (String, String) {
    flow.model.enqueue(refund("hat", 20));
    flow.model.enqueue(ModelReply::text("So it is."));
    let root = flow.slack.say(GENERAL, "ann", "@vocative refund the hat");
    flow.card(&root).await;
    let list = browser.page("/approvals").await;
    let id = list.split("href=\"/approvals/").nth(1).unwrap();
    let id = id.split('"').next().unwrap().to_owned();
    let open = flow.cli_json(&["approvals", "show", &id]).await;
    (id, open["digest"].as_str().unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_allow_what_the_settings_let_them_and_forbid_the_rest() {
    // Olga is Bob in Slack, and Bob is named; Adam is nobody there.
    let (flow, shop, address) = with_refunds("\"acme/U0BOB\"").await;
    let olga = Browser::of(&flow, address, "olga").await;
    let adam = Browser::of(&flow, address, "adam").await;
    let (id, digest) = asked(&flow, &adam).await;
    let path = format!("/approvals/{id}");
    let page = adam.page(&path).await;
    assert!(
        page.contains("You may forbid it, and not allow it"),
        "{page}"
    );
    let refused = adam
        .post(&format!("{path}/approve"), &[("digest", &digest)])
        .await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text);
    // What was looked at is what is allowed.
    let other = olga
        .post(&format!("{path}/approve"), &[("digest", "00")])
        .await;
    assert_eq!(other.status, StatusCode::CONFLICT, "{}", other.text);
    assert_eq!(shop.orders().len(), 0);
    let page = olga.page(&path).await;
    assert!(
        page.contains(&digest) && page.contains("Allow it"),
        "{page}"
    );
    assert!(
        page.contains("{&quot;what&quot;:&quot;hat&quot;,&quot;amount&quot;:20}"),
        "{page}"
    );
    olga.done(
        &format!("{path}/approve"),
        &[("digest", &digest), ("note", "fine")],
    )
    .await;
    flow.wait_until("the refund is made", || shop.orders().len() == 1)
        .await;
    let decided = flow.cli_json(&["approvals", "show", &id]).await;
    assert_eq!(
        (&decided["via"], &decided["decided_by"]),
        (&"console".into(), &"olga".into())
    );

    // Fifty clicks are one decision; forbidding is open to every operator.
    let (id, _) = asked(&flow, &adam).await;
    let path = format!("/approvals/{id}/deny");
    let clicks = (0..10).map(|_| adam.post(&path, &[("note", "no")]));
    let clicks = futures_util::future::join_all(clicks).await;
    let taken = clicks
        .iter()
        .filter(|it| it.status == StatusCode::SEE_OTHER)
        .count();
    assert_eq!(taken, 1);
    flow.settle().await;
    assert_eq!(shop.orders().len(), 1);
    let audit = Browser::audit(&flow).await;
    for expected in [
        row("adam", "approve", "refused"),
        row("olga", "approve", "refused"),
        row("olga", "approve", "done"),
        row("adam", "deny", "done"),
    ] {
        assert!(audit.contains(&expected), "{expected:?} in {audit:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erasure_is_planned_then_confirmed_by_the_name_and_verified() {
    let (flow, address) = with_console("").await;
    flow.slack.say(GENERAL, "bob", "the cellar is flooded");
    flow.settle().await;
    let adam = Browser::of(&flow, address, "adam").await;
    let target = [("kind", "person"), ("name", "acme/U0BOB")];
    let plan = adam.post("/erase/plan", &target).await;
    assert!(plan.text.contains("1 turns in 1 rooms"), "{}", plan.text);
    let mistyped = [target[0], target[1], ("again", "acme/U0BO")];
    let refused = adam.post("/erase/begin", &mistyped).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    adam.done(
        "/erase/begin",
        &[target[0], target[1], ("again", "acme/U0BOB")],
    )
    .await;
    let erased = async {
        loop {
            let page = adam.page("/erase").await;
            if page.contains("Verified: none of") {
                return page;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let page = tokio::time::timeout(WAIT, erased).await.unwrap();
    assert!(page.contains("1 turns blanked"), "{page}");
    let room = general_of(&flow).await;
    assert!(
        !adam
            .page(&format!("/rooms/{room}"))
            .await
            .contains("cellar")
    );
    let audit = Browser::audit(&flow).await;
    assert!(audit.contains(&row("adam", "plan", "done")));
    assert!(audit.contains(&row("adam", "erase", "done")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_is_told_when_something_changes() {
    let (flow, address) = with_console("").await;
    let vera = Browser::of(&flow, address, "vera").await;
    let live = vera
        .request(Method::GET, "/live")
        .header("sec-fetch-site", "same-origin");
    let live = live.send().await.unwrap();
    assert_eq!(live.headers()[header::CONTENT_TYPE], "text/event-stream");
    let mut frames = live.bytes_stream();
    let first = frames.next().await.unwrap().unwrap();
    assert_eq!(&first[..], b": alive\n\n");
    flow.slack.say(GENERAL, "bob", "the cellar is flooded");
    let hint = tokio::time::timeout(WAIT, frames.next()).await.unwrap();
    assert_eq!(&hint.unwrap().unwrap()[..], b"event: changed\ndata:\n\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_say_where_they_come_from_and_hold_no_secret() {
    let (flow, address) = with_console("").await;
    let adam = Browser::of(&flow, address, "adam").await;
    let page = adam.page("/settings").await;
    assert!(
        page.contains("<code>console.people.adam.role</code>"),
        "{page}"
    );
    assert!(page.contains("vocative.toml:"));
    for (_, secret) in flow.secrets() {
        assert!(!page.contains(&secret));
    }
    adam.done("/reload", &[]).await;
    assert!(adam.page("/settings").await.contains("role=\"status\""));
}
