//! The console beside a million turns: how long its pages take and what they weigh, and what the console costs an idle
//! daemon.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::Stdio;
use std::time::{Duration, Instant};

use reqwest::{Client, header, redirect};
use rusqlite::Connection;
use serde_json::Value;
use vocative_sandbox::wire::WirePeer;

use crate::Fail;
use crate::stage::{self, BenchStage};
use crate::stats::{Sample, ms};

const TURNS: i64 = 1_000_000;
/// How often each page is asked for.
const TIMES: usize = 100;
/// Slower than the console lets one address ask.
const PAUSE: Duration = Duration::from_millis(60);
const PAGES: [&str; 8] = [
    "/",
    "/rooms",
    "/runs",
    "/queue",
    "/approvals",
    "/memory",
    "/costs",
    "/settings",
];

pub(crate) async fn measure() -> Result<(), Fail> {
    // It fails only if another part of the process has chosen a provider, which then serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let stage = BenchStage::build(1, 1).await?;
    let mut wire = stage.wire();
    let daemon = stage.spawn_connected().await?;
    let (chat, person) = (stage::slack_direct(0), stage::slack_person(0));
    stage.slack.say(&chat, &person, "is it up?");
    stage::posted(&mut wire, WirePeer::Slack, &chat).await?;
    daemon.stop().await?;
    fill(&stage)?;

    let daemon = stage.spawn_connected().await?;
    let off_kib = daemon.status("VmRSS")?;
    daemon.stop().await?;
    let address = free_address()?;
    stage.configure(&format!(
        "[console]\nenabled = true\nlisten = \"{address}\"\n[console.people.vera]\nrole = \"admin\"\n"
    ))?;
    let daemon = stage.spawn_connected().await?;
    let on_kib = daemon.status("VmRSS")?;
    println!(
        "console: resident {:.1} MiB without, {:.1} MiB with it, before anybody looks",
        off_kib as f64 / 1_024.0,
        on_kib as f64 / 1_024.0
    );
    let client = Client::builder()
        .redirect(redirect::Policy::none())
        .build()?;
    let cookie = came_in(&stage, &client, address).await?;
    for path in PAGES {
        let (mut sample, mut bytes) = (Sample::default(), 0);
        for _ in 0..TIMES {
            let asked = Instant::now();
            let request = client.get(format!("http://{address}{path}"));
            let answer = request.header(header::COOKIE, &cookie).send().await?;
            if !answer.status().is_success() {
                return Err(format!("{path} answers {}", answer.status()).into());
            }
            bytes = answer.bytes().await?.len();
            sample.push(asked.elapsed());
            tokio::time::sleep(PAUSE).await;
        }
        println!(
            "console: {path} beside {TURNS} turns p50 {}, p99 {}; {:.1} KiB",
            ms(sample.median()),
            ms(sample.percentile(99)),
            bytes as f64 / 1_024.0
        );
    }
    daemon.stop().await
}

/// Repeats the newest turn until there are a million, a second apart.
fn fill(stage: &BenchStage) -> Result<(), Fail> {
    let connection = Connection::open(stage.folder().join("data/vocative.db"))?;
    connection.pragma_update(None, "synchronous", "OFF")?;
    let mut statement = connection.prepare("SELECT name FROM pragma_table_info('turns')")?;
    let names = statement.query_map([], |row| row.get::<_, String>(0))?;
    let names: Vec<String> = names.collect::<Result<_, _>>()?;
    let own = ["seq", "uuid", "sent_at_ms", "run_id"];
    let copied = names.iter().filter(|name| !own.contains(&name.as_str()));
    let copied = copied.cloned().collect::<Vec<_>>().join(", ");
    connection.execute_batch(&format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {TURNS})
         INSERT INTO turns (uuid, sent_at_ms, {copied})
         SELECT randomblob(16), t.sent_at_ms - 1000 * n.i, {copied} FROM n
         CROSS JOIN (SELECT * FROM turns WHERE kind = 'message' AND is_inbound ORDER BY seq DESC LIMIT 1) t;"
    ))?;
    Ok(())
}

/// A session of the viewer, by a link of the command line.
async fn came_in(stage: &BenchStage, client: &Client, address: SocketAddr) -> Result<String, Fail> {
    let mut command = stage.command(&["console", "link", "--as", "vera", "--format", "json"]);
    let told = command.stdout(Stdio::piped()).output().await?;
    let told: Value = serde_json::from_slice(&told.stdout)?;
    let code = told["url"].as_str().and_then(|url| url.rsplit('#').next());
    let form = [("code", code.ok_or("there is no link")?)];
    let request = client.post(format!("http://{address}/login")).form(&form);
    let answer = request
        .header("sec-fetch-site", "same-origin")
        .send()
        .await?;
    let set = answer.headers().get(header::SET_COOKIE);
    let set = set.ok_or("nobody came in")?.to_str()?;
    Ok(set.split(';').next().unwrap_or_default().to_owned())
}

fn free_address() -> Result<SocketAddr, Fail> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}
