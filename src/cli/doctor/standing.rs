//! Findings about the state of the running daemon, or of its store without one.

use super::finding::{DoctorFinding, Level};
use crate::admin::operations::AdminOperation;
use crate::admin::view::{ChannelView, StatusView};
use crate::cli::asking::Answerer;
use crate::cli::context::CliContext;
use crate::cli::table::span;
use crate::daemon::start::wall_clock;
use vocative_core::counted::counted;

/// Asks for the status and makes findings from it.
pub(super) async fn of(context: &CliContext) -> Vec<DoctorFinding> {
    let Ok(mut answerer) = Answerer::new(context) else {
        // The mistakes of the configuration are findings of their own.
        return vec![not_running(
            "without a valid configuration it can't be found",
        )];
    };
    let has_daemon = answerer.daemon().await.is_some();
    let has_database = answerer.database().is_ok_and(|path| path.exists());
    if !has_daemon && !has_database {
        return vec![not_running("nothing is stored yet")];
    }
    let view = answerer.ask::<StatusView>(AdminOperation::Status).await;
    let closed = answerer.close().await;
    match view.and_then(|view| closed.map(|()| view)) {
        Ok(view) => judged(&view, (wall_clock())()),
        Err(error) => vec![DoctorFinding::fix("daemon", error.report(), "")],
    }
}

fn not_running(why: &str) -> DoctorFinding {
    DoctorFinding::fix(
        "daemon",
        format!("no daemon runs; {why}"),
        "systemctl start vocative",
    )
}

/// The findings from a status.
pub(super) fn judged(view: &StatusView, now_ms: i64) -> Vec<DoctorFinding> {
    let mut findings = vec![running(view, now_ms)];
    findings.extend(view.channels.iter().filter_map(channel));
    let needs = view.needs_person.iter();
    findings.extend(needs.map(|what| DoctorFinding::of("person", Level::Fix, what)));
    findings.extend(waiting(view));
    if view.store.erasures_open > 0 {
        let count = counted(view.store.erasures_open, "erasure is", "erasures are");
        let (what, command) = match view.started_at_ms {
            Some(_) => ("the daemon goes on with it", "vocative jobs"),
            None => (
                "the daemon goes on with it once it runs",
                "systemctl start vocative",
            ),
        };
        findings.push(DoctorFinding::warn(
            "erasures",
            format!("{count} not finished; {what}"),
            command,
        ));
    }
    findings
}

fn running(view: &StatusView, now_ms: i64) -> DoctorFinding {
    const SUBJECT: &str = "daemon";
    let own = env!("CARGO_PKG_VERSION");
    match view.started_at_ms {
        None => not_running("this is what its store says"),
        Some(_) if view.version != own => DoctorFinding::warn(
            SUBJECT,
            format!("version {} runs, and {own} is installed", view.version),
            "systemctl restart vocative",
        ),
        Some(at_ms) => {
            DoctorFinding::fine(SUBJECT, format!("it serves for {}", span(now_ms - at_ms)))
        }
    }
}

/// A channel's connection: missing, or shared with another program. An alarm is among what needs a person instead.
fn channel(view: &ChannelView) -> Option<DoctorFinding> {
    if view.other_connections > 0 {
        let what = format!(
            "{} of the app not ours: another program with its token takes a part of the events; stop it, or \
             renew the token",
            counted(view.other_connections, "connection is", "connections are")
        );
        return Some(DoctorFinding::of(&view.name, Level::Fix, what));
    }
    match view.state.as_str() {
        "connecting" | "retrying" => Some(DoctorFinding::warn(
            &view.name,
            format!(
                "not connected: {}",
                view.reason.as_deref().unwrap_or("it is trying")
            ),
            "vocative status",
        )),
        "connected" => Some(DoctorFinding::fine(&view.name, "connected")),
        _ => None,
    }
}

/// What waits for a decision or was given up, without being a fault of the daemon.
fn waiting(view: &StatusView) -> Vec<DoctorFinding> {
    let given_up = view.jobs.iter().filter(|job| job.state == "dead");
    let servers = view.mcp.iter().filter(|server| server.state != "ready");
    let waits = |state: &str| ["new", "changed"].contains(&state);
    let (waiting, unusable): (Vec<_>, Vec<_>) =
        view.skills.iter().partition(|skill| waits(&skill.state));
    let open = [
        (
            waiting.len() as u64,
            ["skill waits for approval", "skills wait for approval"],
            "vocative skills list",
        ),
        (
            unusable.len() as u64,
            [
                "skill that an agent names is missing or broken",
                "skills that agents name are missing or broken",
            ],
            "vocative skills list",
        ),
        (
            view.runs.approvals_open,
            [
                "tool call waits for a decision",
                "tool calls wait for a decision",
            ],
            "vocative approvals list",
        ),
        (
            view.runs.questions_open,
            ["question waits for a person", "questions wait for a person"],
            "vocative questions list",
        ),
        (
            given_up.map(|job| job.count).sum(),
            [
                "background job was given up",
                "background jobs were given up",
            ],
            "vocative jobs",
        ),
        (
            servers.count() as u64,
            [
                "server of tools is not ready",
                "servers of tools are not ready",
            ],
            "vocative mcp list",
        ),
        (
            view.store.raw_stubs,
            [
                "event could not be read and is kept raw",
                "events could not be read and are kept raw",
            ],
            "vocative status",
        ),
    ];
    let open = open.into_iter().filter(|(count, ..)| *count > 0);
    let finding = |(count, [one, many], command): (u64, [&str; 2], &str)| {
        DoctorFinding::warn("waiting", counted(count, one, many), command)
    };
    open.map(finding).collect()
}
