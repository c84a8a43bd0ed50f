//! What agents that act cost: the time added per tool call, what calls that wait for people weigh, and when schedules
//! fire. The model is scripted and takes no time.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};
use serde_json::{Value, json};
use vocative_sandbox::mcp::McpWorld;
use vocative_sandbox::model::ModelReply;
use vocative_sandbox::orders::OrderServer;
use vocative_sandbox::telegram::TelegramPost;
use vocative_sandbox::wire::{WireKind, WirePeer};

use crate::Fail;
use crate::stage::{self, BenchDaemon, BenchStage, WireRecords, telegram_person};
use crate::stats::{Sample, ms};

/// Measured calls of each kind of tool.
const CALLS: usize = 200;
/// Calls that wait for people at once.
const WAITING: usize = 1_000;
/// Of these, how many are decided by a press.
const PRESSES: usize = 200;
/// Questions of other people beside them.
const BESIDE: usize = 100;
/// Schedules; and how many of them are due while they are watched.
const SCHEDULES: usize = 10_000;
const DUE: usize = 200;
/// What the due ones are spread over, and how long an idle minute is.
const WATCHED: Duration = Duration::from_secs(60);
/// Between two questions: Telegram takes 30 posts a second.
const PAUSE: Duration = Duration::from_millis(50);
const TOOLS: &str = r#"tools = ["conversation_search", "cat", "order", "files__*"]"#;
const PARAMETERS: &str =
    r#"parameters = '{"type": "object", "properties": {"text": {"type": "string"}}}'"#;

/// The time between a model's call and the request with its result, for each kind of tool.
pub(crate) async fn measure_tools() -> Result<(), Fail> {
    let stage = BenchStage::build_streaming(4 * (CALLS + 1), "live = \"off\"").await?;
    let mut people = 0..;
    let shop = OrderServer::start(([127, 0, 0, 1], 0).into()).await?;
    let world = server(&stage)?;
    stage.configure_agent(TOOLS)?;
    stage.configure(&tool_tables(shop.addr(), &world, "approval = \"never\""))?;
    let daemon = stage.spawn_connected().await?;
    for (kind, tool, arguments) in [
        (
            "in the process",
            "conversation_search",
            json!({"query": "tea"}),
        ),
        ("a program", "cat", json!({"text": "tea"})),
        (
            "a server of tools, stdio",
            "files__echo",
            json!({"text": "tea"}),
        ),
        ("a request", "order", json!({"text": "tea"})),
    ] {
        let mut sample = Sample::default();
        // The first call starts servers and fills caches.
        for n in 0..=CALLS {
            // One person each: summaries of long chats would ask the scripted model, too.
            let person = telegram_person(people.next().unwrap_or(0));
            let took = call(&stage, person, tool, &arguments).await?;
            if n > 0 {
                sample.push(took);
            }
            tokio::time::sleep(PAUSE).await;
        }
        println!(
            "tool call, {kind}: p50 {}, p99 {}, n = {}",
            ms(sample.median()),
            ms(sample.percentile(99)),
            sample.len()
        );
    }
    daemon.stop().await
}

/// Memory and the time to the next question's claim beside calls that wait, and the time from presses to their cards'
/// outcomes.
pub(crate) async fn measure_approvals() -> Result<(), Fail> {
    let stage = BenchStage::build_streaming(WAITING + 2 * BESIDE, "live = \"off\"").await?;
    let shop = OrderServer::start(([127, 0, 0, 1], 0).into()).await?;
    let world = server(&stage)?;
    let asks = "approvers = \"requester\"\napproval_expires_s = \"never\"";
    stage.configure_agent(TOOLS)?;
    stage.configure(&tool_tables(shop.addr(), &world, asks))?;
    let daemon = stage.spawn_connected().await?;
    let (before_kib, before) = beside(&stage, &daemon, WAITING).await?;
    for person in 0..WAITING {
        let order = json!({"text": format!("tea {person}")});
        stage
            .model()
            .enqueue(ModelReply::tool_call("call_1", "order", order));
        let chat = telegram_person(person);
        stage.telegram.say(chat, chat, "order tea");
        card(&stage, chat).await?;
        tokio::time::sleep(PAUSE).await;
    }
    let (after_kib, after) = beside(&stage, &daemon, WAITING + BESIDE).await?;
    println!(
        "approvals: {WAITING} calls wait; resident memory {:.1} MiB, before {:.1} MiB; from a question to the \
         model's request p50 {}, p99 {}, before p50 {}, p99 {}",
        mib(after_kib),
        mib(before_kib),
        ms(after.median()),
        ms(after.percentile(99)),
        ms(before.median()),
        ms(before.percentile(99)),
    );
    let mut presses = Sample::default();
    for person in 0..PRESSES {
        stage.model().enqueue(ModelReply::text("It is ordered."));
        presses.push(press(&stage, telegram_person(person)).await?);
        tokio::time::sleep(PAUSE).await;
    }
    println!(
        "approvals: from a press to the card that says so p50 {}, p99 {}, n = {}; {} calls were made",
        ms(presses.median()),
        ms(presses.percentile(99)),
        presses.len(),
        shop.orders().len()
    );
    daemon.stop().await
}

/// How late schedules fire, and what a minute without anything costs, with and without them.
pub(crate) async fn measure_schedules() -> Result<(), Fail> {
    let stage = BenchStage::build_streaming(1, "live = \"off\"").await?;
    let daemon = stage.spawn_connected().await?;
    stage.model().enqueue(ModelReply::text("Hello."));
    let mut wire = stage.wire();
    let chat = telegram_person(0);
    stage.telegram.say(chat, chat, "hello");
    stage::posted(&mut wire, WirePeer::Telegram, &chat.to_string()).await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let idle = idle_minute(&daemon).await?;
    daemon.stop().await?;
    let database = stage.folder().join("data/vocative.db");
    plan(&database)?;
    let daemon = stage.spawn_connected().await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let planned = idle_minute(&daemon).await?;
    println!(
        "schedules: a minute without anything takes {} of a processor with {SCHEDULES} schedules, {} with none",
        ms(planned),
        ms(idle)
    );
    daemon.stop().await?;
    make_due(&database)?;
    let daemon = stage.spawn_connected().await?;
    let lags = fired(&database).await?;
    println!(
        "schedules: {} of {SCHEDULES} fired p50 {} and p99 {} after their time",
        lags.len(),
        ms(lags.median()),
        ms(lags.percentile(99))
    );
    daemon.stop().await
}

/// The world of a server of tools, in a folder that the server may read.
fn server(stage: &BenchStage) -> Result<PathBuf, Fail> {
    let folder = stage.folder().join("server");
    std::fs::create_dir(&folder)?;
    let world = folder.join("world.json");
    std::fs::write(&world, serde_json::to_string(&McpWorld::default())?)?;
    Ok(world)
}

fn tool_tables(shop: std::net::SocketAddr, world: &std::path::Path, approval: &str) -> String {
    let (program, world) = (stage::program(), world.display());
    let (program, folder) = (program.display(), world.to_string());
    let folder = folder.trim_end_matches("world.json");
    format!(
        "\n[tools.cat]\nkind = \"command\"\ndescription = \"Repeats.\"\nargv = [\"/bin/cat\"]\nrepeatable = true\n\
         approval = \"never\"\n{PARAMETERS}\n\
         [tools.order]\nkind = \"http\"\ndescription = \"Orders.\"\nmethod = \"POST\"\nurl = \"http://{shop}/orders\"\n\
         allow_private = [\"{shop}\"]\n{approval}\n{PARAMETERS}\n\
         [mcp.files]\nargv = [\"{program}\", \"sandbox\", \"--mcp-stdio\", \"{world}\"]\nread = [\"{folder}\"]\n\
         trusted = true\nmemory_max_mib = 512\napproval = \"never\"\ntools = [\"echo\"]\n"
    )
}

/// Asks something that makes the model call a tool; how long the daemon took between its two requests.
async fn call(
    stage: &BenchStage,
    chat: i64,
    tool: &str,
    arguments: &Value,
) -> Result<Duration, Fail> {
    let model = stage.model();
    model.enqueue(ModelReply::tool_call("call_1", tool, arguments.clone()));
    model.enqueue(ModelReply::text("Done."));
    let mut wire = stage.wire();
    stage.telegram.say(chat, chat, "tea");
    asked(&mut wire, WireKind::Request).await?;
    let called = asked(&mut wire, WireKind::Response).await?;
    let told = asked(&mut wire, WireKind::Request).await?;
    stage::posted(&mut wire, WirePeer::Telegram, &chat.to_string()).await?;
    Ok(told - called)
}

/// Waits for the model's next request or answer.
async fn asked(wire: &mut WireRecords, kind: WireKind) -> Result<Instant, Fail> {
    let until = Instant::now() + WATCHED;
    loop {
        let (record, at) = stage::next(wire).await?;
        if at > until {
            return Err("the model was not asked within a minute".into());
        }
        if record.peer == WirePeer::Model && record.kind == kind {
            return Ok(at);
        }
    }
}

/// Resident memory, in KiB, and how long questions of other people take to the model.
async fn beside(
    stage: &BenchStage,
    daemon: &BenchDaemon,
    first: usize,
) -> Result<(u64, Sample), Fail> {
    let mut claims = Sample::default();
    for chat in (first..first + BESIDE).map(telegram_person) {
        stage.model().enqueue(ModelReply::text("Yes."));
        let mut wire = stage.wire();
        let started = Instant::now();
        stage.telegram.say(chat, chat, "is it up?");
        claims.push(asked(&mut wire, WireKind::Request).await? - started);
        stage::posted(&mut wire, WirePeer::Telegram, &chat.to_string()).await?;
        tokio::time::sleep(PAUSE).await;
    }
    Ok((daemon.status("VmRSS")?, claims))
}

fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}

async fn card(stage: &BenchStage, chat: i64) -> Result<TelegramPost, Fail> {
    let is_card = |post: &TelegramPost| post.by_bot && post.keyboard.is_some();
    let found = stage
        .telegram
        .wait_for_post(chat, is_card, Duration::from_secs(60));
    found.await.ok_or_else(|| "no card came".into())
}

/// Allows the call that waits in a chat; how long its card took to say so.
async fn press(stage: &BenchStage, chat: i64) -> Result<Duration, Fail> {
    let card = card(stage, chat).await?;
    let keyboard = card.keyboard.unwrap_or_default();
    let buttons = keyboard["inline_keyboard"].as_array().into_iter().flatten();
    let mut buttons = buttons.flat_map(|row| row.as_array().into_iter().flatten());
    let approve = buttons.find(|button| button["text"] == "Approve");
    let data = approve.and_then(|button| button["callback_data"].as_str());
    let mut wire = stage.wire();
    let started = Instant::now();
    stage
        .telegram
        .callback(chat, chat, card.message_id, data.ok_or("no button")?);
    loop {
        let (record, at) = stage::next(&mut wire).await?;
        let is_edit = record.kind == WireKind::Request && record.name == "editMessageText";
        if is_edit
            && record.body["message_id"].to_string().trim_matches('"')
                == card.message_id.to_string()
        {
            return Ok(at - started);
        }
    }
}

async fn idle_minute(daemon: &BenchDaemon) -> Result<Duration, Fail> {
    let before = daemon.cpu()?;
    tokio::time::sleep(WATCHED).await;
    Ok(daemon.cpu()? - before)
}

fn now_ms() -> i64 {
    chrono::Utc::now().timestamp_millis()
}

/// Plans reminders of the only chat for a day in which nobody watches.
fn plan(database: &std::path::Path) -> Result<(), Fail> {
    let mut connection = Connection::open(database)?;
    let transaction = connection.transaction()?;
    for n in 0..SCHEDULES {
        let at_ms = now_ms() + 86_400_000 + i64::try_from(n)? * 1_000;
        transaction.execute(
            "INSERT INTO schedules (chat_id, conversation_id, participant_id, timing, zone, jitter_ms, missed_rule,
                                    task, state, at_ms, due_ms, set_at_ms, created_at_ms)
             SELECT c.chat_id, c.id, t.participant_id, ?1, 'UTC', 0, 'once', 'tea', 'active', ?2, ?2, ?3, ?3
             FROM conversations c JOIN turns t ON t.conversation_id = c.id
             WHERE t.is_inbound = 1 AND t.kind = 'message' LIMIT 1",
            params!["@yearly", at_ms, now_ms()],
        )?;
    }
    Ok(transaction.commit()?)
}

/// Has some of them due, spread over the time in which they are watched.
fn make_due(database: &std::path::Path) -> Result<(), Fail> {
    let first_ms = now_ms() + 5_000;
    let every_ms = i64::try_from(WATCHED.as_millis())? / i64::try_from(DUE)?;
    Connection::open(database)?.execute(
        "UPDATE schedules SET at_ms = ?1 + id * ?2, due_ms = ?1 + id * ?2 WHERE id <= ?3",
        params![first_ms, every_ms, i64::try_from(DUE)?],
    )?;
    Ok(())
}

/// How late each due one was decided about, once all are.
async fn fired(database: &std::path::Path) -> Result<Sample, Fail> {
    let until = Instant::now() + 4 * WATCHED;
    let connection = Connection::open(database)?;
    loop {
        let mut statement = connection.prepare(
            "SELECT decided_at_ms - at_ms AS lag_ms FROM firings WHERE outcome = 'fired'",
        )?;
        let lags = statement.query_map([], |row| row.get::<_, i64>("lag_ms"))?;
        let lags: Vec<i64> = lags.collect::<Result<_, _>>()?;
        if lags.len() >= DUE || Instant::now() > until {
            let mut sample = Sample::default();
            for lag_ms in lags {
                sample.push(Duration::from_millis(u64::try_from(lag_ms)?));
            }
            return Ok(sample);
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
