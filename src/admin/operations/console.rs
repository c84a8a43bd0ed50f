//! The way into the console, and what people looked at and did in it.

use std::net::SocketAddr;
use std::sync::Arc;

use vocative_console::{ConsoleDoors, ConsoleUser, LINK_LIVES};
use vocative_store::audit::{AuditId, StoredAudit};

use super::{OperationError, OperationResult, Operations, json};
use crate::admin::view::{AuditView, ConsoleLinkView};

/// The most rows of the audit that are listed at once.
const AUDIT_MAX: usize = 1_000;

/// The way into the console of a running daemon.
#[derive(Clone, Debug)]
pub struct ConsoleDoor {
    /// Links and sessions.
    pub doors: Arc<ConsoleDoors>,
    /// Who may come in.
    pub people: Vec<ConsoleUser>,
    /// Where it listens.
    pub address: SocketAddr,
    /// The name under which it is reached from elsewhere.
    pub host: Option<String>,
}

impl Operations {
    pub(super) fn console_link(&self, name: &str) -> OperationResult {
        let Some(running) = &self.running else {
            let what =
                "there is no running daemon, so there is no console; start it with `vocative run`";
            return Err(OperationError::Wrong(what.to_owned()));
        };
        let Some(door) = &running.console else {
            let what =
                "the console is off: set enabled = true in [console], and restart the daemon";
            return Err(OperationError::Wrong(what.to_owned()));
        };
        let Some(person) = door.people.iter().find(|person| person.name == name) else {
            let known: Vec<&str> = door.people.iter().map(|it| it.name.as_str()).collect();
            return Err(OperationError::Missing(format!(
                "nobody of console.people is called {name:?}; there are: {}. Add [console.people.NAME] with a role, and restart \
                 the daemon",
                known.join(", ")
            )));
        };
        let code = door.doors.link(person.clone());
        let base = match &door.host {
            Some(host) => format!("https://{host}"),
            None => format!("http://{}", door.address),
        };
        Ok(json(&ConsoleLinkView {
            url: format!("{base}/login#{code}"),
            name: person.name.clone(),
            role: person.role.name().to_owned(),
            expires_in_s: LINK_LIVES.as_secs(),
            port: door.address.port(),
            is_local: door.host.is_none(),
        }))
    }

    pub(super) async fn console_audit(&self, before: Option<i64>, limit: usize) -> OperationResult {
        let before = before.map(AuditId);
        let rows = self.store.audit(before, limit.min(AUDIT_MAX)).await?;
        Ok(json(&rows.into_iter().map(view).collect::<Vec<_>>()))
    }
}

fn view(row: StoredAudit) -> AuditView {
    AuditView {
        id: row.id.0,
        at_ms: row.at_ms,
        who: row.who,
        via: row.via,
        act: row.act,
        target: row.target,
        outcome: row.outcome,
    }
}
