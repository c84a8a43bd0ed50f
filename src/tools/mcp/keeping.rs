//! Keeps one server running: starts it, pins its tools, and starts it again after a failure.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;
use tracing::{info, warn};
use vocative_store::contract::PinnedTool;
use vocative_store::{Pinning, Store};

use super::connection::{McpConnection, START_LIMIT, connect};
use super::definition::{self, Definition};
use super::{McpClock, McpServer, ServerState};

/// Failures within `FAILURES_WITHIN` after which a server is parked.
const FAILURES_MAX: usize = 5;
const FAILURES_WITHIN: Duration = Duration::from_secs(600);
/// The longest wait before a server is started again.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// How often a server is asked for its tools, in case it does not report changes.
const LIST_EVERY: Duration = Duration::from_secs(600);

/// Keeps a server running until it is parked.
pub(super) async fn keep(server: Arc<McpServer>, pins: Store<Pinning>, now: McpClock) {
    let name = server.settings().name.clone();
    // Tools that were listed and approved before are offered until the server lists its tools again.
    match pins.pinned_tools(Some(&name)).await {
        Ok(pinned) => offer(&server, &pinned),
        Err(error) => warn!(%error, server = name, "what a server of tools offered is not known"),
    }
    let mut failures: Vec<Instant> = Vec::new();
    loop {
        server.state.send_replace(ServerState::Starting);
        let why = serve(&server, &pins, &now).await;
        server.has_failed.store(true, Ordering::Relaxed);
        failures.push(Instant::now());
        failures.retain(|failure| failure.elapsed() < FAILURES_WITHIN);
        if failures.len() >= FAILURES_MAX {
            warn!(
                server = name,
                "a server of tools failed too often and is left alone until a reload: {why}"
            );
            server.state.send_replace(ServerState::Parked(why));
            return;
        }
        let wait = wait_after(failures.len());
        warn!(
            server = name,
            wait_ms = wait.as_millis(),
            "a server of tools failed and is started again: {why}"
        );
        server.state.send_replace(ServerState::Waiting(why));
        tokio::time::sleep(wait).await;
    }
}

/// How long to wait after a number of failures in a row: 1, 2, 4 seconds and so on, with a random part that differs
/// from server to server.
fn wait_after(failures: usize) -> Duration {
    let doubled = Duration::from_secs(1 << failures.saturating_sub(1).min(6));
    let jitter = Duration::from_millis(u64::from(uuid::Uuid::new_v4().as_bytes()[0]));
    doubled.min(WAIT_MAX) + jitter
}

/// Serves calls until the server is gone, and returns why.
async fn serve(server: &Arc<McpServer>, pins: &Store<Pinning>, now: &McpClock) -> String {
    let starting = async {
        let connection = connect(&server.configured, Some(server)).await?;
        take_list(server, &connection, pins, now).await?;
        Ok::<_, String>(connection)
    };
    let mut connection = match tokio::time::timeout(START_LIMIT, starting).await {
        Ok(Ok(connection)) => connection,
        Ok(Err(why)) => return why,
        Err(_) => return "it did not start in time".to_owned(),
    };
    let (line, changed) = (connection.line.clone(), Arc::clone(&connection.changed));
    info!(
        server = server.settings().name,
        tools = server.definitions().len(),
        "a server of tools is ready"
    );
    server.state.send_replace(ServerState::Ready(line));
    let excess = connection.excess();
    tokio::pin!(excess);
    loop {
        tokio::select! {
            why = connection.gone() => return why,
            excess = &mut excess => return excess.to_string(),
            () = server.restart.notified() => return "its calls took too long".to_owned(),
            () = changed.notified() => {}
            () = server.relist.notified() => {}
            () = tokio::time::sleep(LIST_EVERY) => {}
        }
        let listing = take_list(server, &connection, pins, now);
        match tokio::time::timeout(START_LIMIT, listing).await {
            Ok(Ok(())) => {}
            Ok(Err(why)) => return why,
            Err(_) => return "it did not list its tools in time".to_owned(),
        }
    }
}

/// Lists the server's tools, and pins them.
async fn take_list(
    server: &Arc<McpServer>,
    connection: &McpConnection,
    pins: &Store<Pinning>,
    now: &McpClock,
) -> Result<(), String> {
    let settings = server.settings();
    let tools = connection.list().await?;
    let is_wanted = |name: &str| {
        let wanted = settings.tools.as_ref();
        wanted.is_none_or(|names| names.iter().any(|it| it == name))
    };
    let listed: Vec<(String, String)> = tools
        .iter()
        .filter(|tool| is_wanted(&tool.name))
        .map(|tool| (tool.name.to_string(), definition::pinned_text(tool)))
        .collect();
    let noted = pins.pin_tools(&settings.name, listed, settings.trusts_first, (now)());
    let pinned = noted
        .await
        .map_err(|error| format!("its tools can't be pinned: {error}"))?;
    let waiting = pinned.iter().filter(|tool| tool.waiting.is_some()).count();
    if waiting > 0 {
        warn!(
            server = settings.name,
            waiting, "tools of a server are new or changed and wait for `vocative mcp approve`"
        );
    }
    offer(server, &pinned);
    Ok(())
}

/// Offers the tools that are listed and approved.
fn offer(server: &McpServer, pinned: &[PinnedTool]) {
    let name = &server.settings().name;
    let mut definitions: Vec<Arc<Definition>> = Vec::new();
    for tool in pinned
        .iter()
        .filter(|tool| tool.is_listed && tool.waiting.is_none())
    {
        let Some(approved) = &tool.approved else {
            continue;
        };
        match Definition::of_text(name, approved) {
            Ok(definition) => definitions.push(Arc::new(definition)),
            Err((tool, why)) => {
                warn!(
                    server = name,
                    tool, "a tool of a server can't be offered: {why}"
                );
            }
        }
    }
    definition::name_apart(name, &mut definitions);
    server.offer(definitions);
}
