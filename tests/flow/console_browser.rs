//! The console in a real Chromium: what the script does, the keyboard, what axe-core finds in light and dark, wide and
//! narrow, and a hostile room. `tests/console` has a browser and axe-core fetched and runs this; without them it says
//! so and ends.
//!
//! Speaks the W3C's WebDriver protocol itself: it is JSON over HTTP, and a dozen calls of it are needed.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::{Child, Command};
use vocative_sandbox::model::ModelReply;

use crate::approvals::refund;
use crate::console::{free_address, with_refunds};
use crate::harness::{Flow, WAIT};

const GENERAL: &str = "#general";
/// Between two looks at a page.
const LOOK: Duration = Duration::from_millis(50);
/// The widths at which pages are looked at: a desk and the narrowest telephone. *Source:* WCAG 2.2, 1.4.10 (320) and
/// docs/CONSOLE.md.
const WIDE: u32 = 1_280;
const NARROW: u32 = 360;
const TAB: &str = "\u{e004}";
const SHIFT: &str = "\u{e008}";
const ENTER: &str = "\u{e007}";

/// A browser with one page.
struct Chrome {
    client: reqwest::Client,
    session: String,
    base: String,
    _driver: Child,
}

impl Chrome {
    async fn start(driver: &str, base: String) -> Self {
        let port = free_address().port();
        let running = Command::new(driver)
            .arg(format!("--port={port}"))
            .kill_on_drop(true)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .timeout(2 * WAIT)
            .build()
            .unwrap();
        let at = format!("http://127.0.0.1:{port}");
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--lang=en",
        ];
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "goog:chromeOptions": { "args": arguments },
            "goog:loggingPrefs": { "browser": "ALL" },
        } } });
        let opened = async {
            loop {
                let asked = client.post(format!("{at}/session")).json(&wanted);
                if let Ok(answer) = asked.send().await {
                    let answer: Value = answer.json().await.unwrap();
                    let id = answer["value"]["sessionId"].as_str();
                    return id.unwrap_or_else(|| panic!("{answer}")).to_owned();
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        let id = tokio::time::timeout(4 * WAIT, opened).await.unwrap();
        Self {
            client,
            session: format!("{at}/session/{id}"),
            base,
            _driver: running,
        }
    }

    async fn call(&self, path: &str, body: Value) -> Value {
        let asked = self.client.post(format!("{}/{path}", self.session));
        let answer: Value = asked
            .json(&body)
            .send()
            .await
            .unwrap()
            .json()
            .await
            .unwrap();
        assert!(answer["value"]["error"].is_null(), "{path}: {answer}");
        answer["value"].clone()
    }

    /// A command of the browser's own protocol.
    async fn browser(&self, command: &str, params: Value) {
        self.call(
            "goog/cdp/execute",
            json!({ "cmd": command, "params": params }),
        )
        .await;
    }

    async fn go(&self, path: &str) {
        let url = format!("{}{path}", self.base);
        self.call("url", json!({ "url": url })).await;
    }

    async fn run(&self, script: &str) -> Value {
        self.call("execute/sync", json!({ "script": script, "args": [] }))
            .await
    }

    async fn wait_for(&self, condition: &str) {
        let holds = async {
            while self.run(&format!("return Boolean({condition})")).await != true {
                tokio::time::sleep(LOOK).await;
            }
        };
        if tokio::time::timeout(WAIT, holds).await.is_err() {
            let text = self.run("return document.body.innerText").await;
            panic!("{condition} does not come: {text}");
        }
    }

    /// Presses keys one after the other, the first ones held.
    async fn press(&self, held: &[&str], key: &str) {
        let step = |kind: &str, key: &str| json!({ "type": kind, "value": key });
        let down = held.iter().map(|key| step("keyDown", key));
        let up = held.iter().map(|key| step("keyUp", key));
        let actions = down
            .chain([step("keyDown", key), step("keyUp", key)])
            .chain(up);
        let actions: Vec<Value> = actions.collect();
        self.call(
            "actions",
            json!({ "actions": [{ "type": "key", "id": "keys", "actions": actions }] }),
        )
        .await;
    }

    /// Goes on by Tab until the focus is on something with these words.
    async fn tab_to(&self, words: &str) {
        for _ in 0..80 {
            self.press(&[], TAB).await;
            let at = self
                .run("return document.activeElement.textContent.trim()")
                .await;
            if at == words {
                return;
            }
        }
        panic!("{words:?} can't be reached by keyboard");
    }

    async fn look_like(&self, width: u32, theme: &str) {
        let size =
            json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        self.browser("Emulation.setDeviceMetricsOverride", size)
            .await;
        let feature = json!([{ "name": "prefers-color-scheme", "value": theme }]);
        self.browser("Emulation.setEmulatedMedia", json!({ "features": feature }))
            .await;
    }

    /// Keeps a picture of the page in the folder that is asked for.
    async fn picture(&self, name: &str) {
        let Some(folder) = std::env::var_os("VOCATIVE_PICTURES") else {
            return;
        };
        let asked = self.client.get(format!("{}/screenshot", self.session));
        let answer: Value = asked.send().await.unwrap().json().await.unwrap();
        let picture = from_base64(answer["value"].as_str().unwrap());
        std::fs::write(PathBuf::from(folder).join(format!("{name}.png")), picture).unwrap();
    }

    /// What the browser refused or complained about since the last time.
    async fn complaints(&self) -> Vec<String> {
        let log = self.call("se/log", json!({ "type": "browser" })).await;
        let log = log.as_array().cloned().unwrap_or_default();
        let lines = log
            .iter()
            .map(|line| line["message"].as_str().unwrap_or_default().to_owned());
        lines.collect()
    }

    /// What axe-core finds wrong on the page.
    async fn findings(&self, axe: &str) -> Vec<String> {
        self.run(axe).await;
        let script = "const done = arguments[0]; axe.run(document, { resultTypes: ['violations'] }).then(\
            found => done(found.violations.map(it => it.id + ': ' + it.nodes.map(node => node.html).join(' | '))), \
            wrong => done(['axe failed: ' + wrong]));";
        let found = self
            .call("execute/async", json!({ "script": script, "args": [] }))
            .await;
        serde_json::from_value(found).unwrap()
    }
}

/// What base64 stands for. The one text that comes so is the browser's, and whole.
fn from_base64(text: &str) -> Vec<u8> {
    let value = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let letters: Vec<u8> = text.bytes().filter(|c| *c != b'=').collect();
    for four in letters.chunks(4) {
        let bits = four
            .iter()
            .fold(0u32, |bits, c| bits << 6 | u32::from(value(*c)));
        let bits = bits << (6 * (4 - four.len()));
        bytes.extend(&bits.to_be_bytes()[1..four.len()]);
    }
    bytes
}

/// A room in which something is going on: talk that is overheard, an answer, a call that waits, a direct chat.
async fn scene() -> (Flow, SocketAddr, vocative_sandbox::orders::OrderServer) {
    let (flow, shop, address) = with_refunds("\"acme/U0BOB\"").await;
    let say = |who: &str, text: &str| flow.slack.say(GENERAL, who, text);
    say(
        "bob",
        "the supplier moved the delivery of the blue hats to Thursday",
    );
    say("ann", "then the shop window has to wait");
    let answers = [
        (
            "ann",
            "@vocative how many blue hats are on order?",
            "40 blue hats are on order, for 1 280 € in all. They come on Thursday.",
        ),
        (
            "bob",
            "@vocative and who told the shop?",
            "Ann did, this morning. She said the window has to wait.",
        ),
    ];
    for (who, question, answer) in answers {
        flow.model.enqueue(ModelReply::text(answer));
        let root = say(who, question);
        flow.slack_reply(GENERAL, &root).await;
    }
    flow.model.enqueue(ModelReply::text("I keep it to myself."));
    flow.slack.say("D0ANN", "ann", "please keep a secret");
    flow.slack_post("D0ANN", |post| post.text.contains("to myself"))
        .await;
    flow.model.enqueue(refund("blue hat", 32));
    flow.model.enqueue(ModelReply::text("The refund is made."));
    let root = say("ann", "@vocative refund Dora's hat, it came torn");
    flow.card(&root).await;
    flow.settle().await;
    (flow, address, shop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_console_in_a_browser() {
    let (Ok(driver), Ok(axe)) = (
        std::env::var("VOCATIVE_CHROMEDRIVER"),
        std::env::var("VOCATIVE_AXE"),
    ) else {
        eprintln!("no browser is named: tests/console fetches one and runs this");
        return;
    };
    let axe = std::fs::read_to_string(axe).unwrap();
    let (flow, address, shop) = scene().await;
    let chrome = Chrome::start(&driver, format!("http://{address}")).await;
    chrome.look_like(WIDE, "light").await;

    // The link's code leaves the address before it is posted.
    let link = flow.cli_json(&["console", "link", "--as", "olga"]).await;
    chrome.call("url", json!({ "url": link["url"] })).await;
    chrome
        .wait_for("document.querySelector('h1').textContent === 'Overview'")
        .await;
    assert_eq!(chrome.run("return location.hash").await, "");
    chrome
        .wait_for("document.getElementById('live-state').textContent.includes('Follows')")
        .await;

    let rooms = flow.conversations().await;
    let general = rooms
        .iter()
        .find(|it| it["name"] == "acme/#general")
        .unwrap();
    let room = format!("/rooms/{}", general["id"].as_str().unwrap());
    let approvals = flow.cli_json(&["approvals", "list"]).await;
    let approval = format!("/approvals/{}", approvals[0]["id"].as_str().unwrap());
    chrome.go("/runs").await;
    let answered = "return [...document.querySelectorAll('tbody tr')].find(row => row.textContent.includes('done') \
        && row.textContent.includes('general')).querySelector('a').getAttribute('href')";
    let run = chrome.run(answered).await.as_str().unwrap().to_owned();
    let xray = format!("{run}/prompt");

    pictures(&chrome, &xray, &run, &approval, &room).await;
    let pages = [
        "/",
        "/rooms",
        &room,
        &format!("{room}/prompt"),
        &format!("{room}/summaries"),
        "/runs",
        &run,
        &xray,
        "/approvals",
        &approval,
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
    ];
    assert_eq!(chrome.complaints().await, [""; 0]);
    look_at(&chrome, &axe, &pages).await;
    follow(&flow, &chrome, &room).await;
    decide(&chrome, &approval).await;
    flow.wait_until("the refund is made", || shop.orders().len() == 1)
        .await;
    assert_eq!(chrome.complaints().await, [""; 0]);
    break_walls(&flow, &chrome, &room).await;
}

/// Pictures for the documentation, of the same pages that are tested.
async fn pictures(chrome: &Chrome, xray: &str, run: &str, approval: &str, room: &str) {
    let wanted = [
        ("overview", "/", WIDE, "light"),
        ("xray", xray, WIDE, "light"),
        ("xray-dark", xray, WIDE, "dark"),
        ("xray-narrow", xray, NARROW, "light"),
        ("run", run, WIDE, "light"),
        ("approval", approval, WIDE, "dark"),
        ("room", room, WIDE, "light"),
    ];
    for (name, path, width, theme) in wanted {
        chrome.look_like(width, theme).await;
        chrome.go(path).await;
        chrome
            .wait_for("document.documentElement.dataset.script !== undefined")
            .await;
        chrome.picture(name).await;
    }
}

/// Each page in light and dark, wide and narrow: axe-core finds nothing, and nothing stands out to the side.
async fn look_at(chrome: &Chrome, axe: &str, pages: &[&str]) {
    // axe-core is a script from elsewhere, which the policy rightly refuses.
    chrome
        .browser("Page.setBypassCSP", json!({ "enabled": true }))
        .await;
    let mut wrong = Vec::new();
    for (width, theme) in [(WIDE, "light"), (NARROW, "dark")] {
        chrome.look_like(width, theme).await;
        for path in pages {
            chrome.go(path).await;
            chrome.wait_for("document.querySelector('h1')").await;
            let found = chrome.findings(axe).await;
            wrong.extend(
                found
                    .into_iter()
                    .map(|it| format!("{path} ({width}, {theme}): {it}")),
            );
            let wide = chrome
                .run("return document.documentElement.scrollWidth")
                .await;
            if wide.as_u64().unwrap() > u64::from(width) {
                wrong.push(format!("{path} is {wide} wide at {width}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    chrome
        .browser("Page.setBypassCSP", json!({ "enabled": false }))
        .await;
    chrome.look_like(WIDE, "light").await;
}

/// What is said in a room appears in its page, which keeps what somebody does there.
async fn follow(flow: &Flow, chrome: &Chrome, room: &str) {
    chrome.go(room).await;
    chrome
        .wait_for("document.getElementById('live-state').textContent.includes('Follows')")
        .await;
    chrome
        .run("window.same = true; document.querySelector('details.more').open = true")
        .await;
    flow.slack.say(GENERAL, "bob", "the window is done");
    chrome
        .wait_for("document.body.textContent.includes('the window is done')")
        .await;
    let kept = "return window.same && document.querySelector('details.more').open";
    assert_eq!(
        chrome.run(kept).await,
        true,
        "the page was not loaded again"
    );
}

/// By keyboard alone: to the button, a question before what can't be undone, and back with what became of it.
async fn decide(chrome: &Chrome, approval: &str) {
    chrome.go(approval).await;
    chrome.tab_to("Allow it").await;
    chrome.press(&[], ENTER).await;
    chrome
        .wait_for("document.querySelector('dialog[open]')")
        .await;
    let at = chrome
        .run("return document.activeElement.textContent")
        .await;
    assert_eq!(at, "Leave it", "what does no harm has the focus");
    chrome.press(&[SHIFT], TAB).await;
    chrome.press(&[], ENTER).await;
    chrome
        .wait_for("document.querySelector('p[role=status].note')")
        .await;
    let told = chrome
        .run("return document.querySelector('p[role=status].note').textContent")
        .await;
    assert_eq!(told, "The call is allowed.");
}

/// A room that wants more than to be read; then each wall of the browser is broken on purpose, and the next one holds.
async fn break_walls(flow: &Flow, chrome: &Chrome, room: &str) {
    let hostile = "<img src=x onerror=\"document.title='broken'\"><script>document.title='broken'</script>\
        <iframe src=https://evil.example></iframe><form action=/reload method=post><button>x</button></form>";
    flow.slack.say(GENERAL, "bob", hostile);
    flow.settle().await;
    chrome.go(room).await;
    chrome
        .wait_for("document.body.textContent.includes('onerror')")
        .await;
    let parsed = "return document.querySelectorAll('main img[src=x], main script, main iframe, main form[action=\"/reload\"]').length";
    assert_eq!(chrome.run(parsed).await, 0);
    assert_eq!(
        chrome.complaints().await,
        [""; 0],
        "nothing had to be refused"
    );

    // The first wall is gone: somebody has markup of theirs in the page. It does nothing.
    let inside = "const refused = []; \
        document.addEventListener('securitypolicyviolation', it => refused.push(it.effectiveDirective)); \
        const tried = []; \
        for (const sink of [() => { document.body.innerHTML = '<b>x</b>'; }, \
            () => trustedTypes.createPolicy('mine', { createHTML: it => it }), \
            () => document.write('x'), () => document.createElement('script').text = 'document.title = 1']) { \
          try { sink(); tried.push('done'); } catch { tried.push('refused'); } } \
        const image = new Image(); image.src = 'https://evil.example/x.png'; document.body.append(image); \
        const frame = document.createElement('iframe'); frame.src = 'https://evil.example/'; document.body.append(frame); \
        const handler = document.createElement('div'); \
        try { handler.setAttribute('onclick', 'document.title = 2'); } catch { } handler.click(); \
        const form = document.createElement('form'); form.action = 'https://evil.example/'; document.body.append(form); \
        form.submit(); \
        window.refused = refused; return tried;";
    let tried = chrome.run(inside).await;
    assert_eq!(tried, json!(vec!["refused"; 4]));
    for directive in ["img-src", "frame-src", "form-action"] {
        chrome
            .wait_for(&format!("window.refused.includes('{directive}')"))
            .await;
    }
    let title = chrome.run("return document.title").await;
    assert!(title.as_str().unwrap().contains("general"), "{title}");
}
