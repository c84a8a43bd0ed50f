//! What people do in the console: a row of the audit is written before each action, and gets its outcome afterwards.

use serde_json::Value;
use tracing::{info, warn};
use vocative_console::{ConsoleUser, Deed, DeskError, Done, EraseChoice, Trace};

use super::reading::target_of;
use super::{DaemonDesk, refused};
use crate::admin::operations::{
    AdminOperation, AnsweredQuestion, ChangedSchedule, DecidedApproval, OperationError,
};
use vocative_store::audit::{AuditId, AuditOutcome, NewAudit};

impl DaemonDesk {
    /// Records an act that changes nothing.
    pub(super) async fn traced(&self, by: &ConsoleUser, trace: Trace) -> Result<(), DeskError> {
        let (act, target) = match trace {
            Trace::CameIn => ("login", String::new()),
            Trace::Went => ("logout", String::new()),
            Trace::Looked(room) => ("look", room),
            Trace::Planned => ("plan", String::new()),
        };
        let row = self.begin(by, act, target).await?;
        self.end(row, AuditOutcome::Done).await;
        Ok(())
    }

    /// Carries out an action; its row of the audit is written before, and the outcome afterwards.
    pub(super) async fn recorded(&self, by: &ConsoleUser, deed: Deed) -> Result<Done, DeskError> {
        let (act, target) = called(&deed);
        let row = self.begin(by, act, target).await?;
        let done = self.done(by, deed).await;
        let outcome = match done {
            Ok(_) => AuditOutcome::Done,
            Err(_) => AuditOutcome::Refused,
        };
        self.end(row, outcome).await;
        info!(person = %by.name, act, is_done = done.is_ok(), "somebody acted in the console");
        let told = done.map_err(refused)?;
        Ok(Done { told })
    }

    async fn begin(
        &self,
        by: &ConsoleUser,
        act: &'static str,
        target: String,
    ) -> Result<AuditId, DeskError> {
        let new = NewAudit {
            who: by.name.clone(),
            via: by.via.name(),
            act,
            target,
            at_ms: (self.operations.clock)(),
        };
        let begun = self.operations.store.begin_audit(new).await;
        begun.map_err(|cause| {
            DeskError::Unavailable(format!(
                "the audit can't be written, so nothing was done: {cause}"
            ))
        })
    }

    /// Records the outcome. If that fails, the action stays done and its row says that it was begun.
    async fn end(&self, row: AuditId, outcome: AuditOutcome) {
        if let Err(cause) = self.operations.store.end_audit(row, outcome).await {
            warn!(error = %cause, "a row of the audit goes on saying that something was begun");
        }
    }

    /// Carries an action out; the answer is a sentence for the person who did it.
    async fn done(&self, by: &ConsoleUser, deed: Deed) -> Result<String, OperationError> {
        let operator = self.operator(&by.name);
        let told = match deed {
            Deed::Approve {
                id,
                digest,
                grant,
                note,
            } => {
                let decided = decided(id, by, true, note);
                let decided = DecidedApproval {
                    grant,
                    digest: Some(digest),
                    ..decided
                };
                self.operations.decide_approval(decided, &operator).await?;
                "The call is allowed."
            }
            Deed::Deny { id, note } => {
                let decided = decided(id, by, false, note);
                self.operations.decide_approval(decided, &operator).await?;
                "The call is forbidden."
            }
            Deed::AnswerQuestion { id, text } => {
                let by = by.name.clone();
                let answered = AnsweredQuestion { id, text, by };
                self.operations.answer_question(answered, &operator).await?;
                "The question is answered."
            }
            Deed::CancelQuestion(id) => {
                self.operations.cancel_question(&id).await?;
                "The question is taken back."
            }
            Deed::RevokeGrant(id) => {
                self.operations.revoke_grant(&id, &operator).await?;
                "The consent is taken back."
            }
            Deed::ForgetMemory(id) => {
                self.operations.forget_memory(id).await?;
                "It is forgotten."
            }
            Deed::Erase(target) => {
                self.begin_erasure(target).await?;
                "The erasure has begun."
            }
            other => return self.executed(other).await,
        };
        Ok(told.to_owned())
    }

    /// Carries out an action that is an operation of the admin socket.
    async fn executed(&self, deed: Deed) -> Result<String, OperationError> {
        let (operation, told) = match deed {
            Deed::StopRun(id) => (
                AdminOperation::CancelRun { id },
                "The run was asked to stop.",
            ),
            Deed::Release { id, send } => (
                AdminOperation::Release { id, send },
                if send {
                    "It is sent."
                } else {
                    "It is dropped."
                },
            ),
            Deed::DecideDead { id, retry } => (
                AdminOperation::DecideDead { id, retry },
                if retry {
                    "It is tried again."
                } else {
                    "It is dropped."
                },
            ),
            Deed::ChangeSchedule { id, change } => {
                let (change, told) = change_of(&change)?;
                (AdminOperation::ChangeSchedule { id, change }, told)
            }
            Deed::Title { room, title } => (
                AdminOperation::TitleConversation { name: room, title },
                "The room has its title.",
            ),
            Deed::Archive { room, archived } => (
                AdminOperation::ArchiveConversation {
                    name: room,
                    archived,
                },
                if archived {
                    "The room is put away."
                } else {
                    "The room is back."
                },
            ),
            Deed::RebuildSummaries(name) => (
                AdminOperation::RebuildSummaries {
                    name,
                    agent: None,
                    forget_expired: false,
                },
                "The summaries are set aside; they are made again.",
            ),
            Deed::ApproveTool {
                server,
                tool,
                digest,
            } => (
                AdminOperation::ApproveMcpTools {
                    server,
                    tool: Some(tool),
                    digest: Some(digest),
                },
                "The tool is approved.",
            ),
            Deed::Reload => {
                let told = self.operations.execute(AdminOperation::Reload).await?;
                return Ok(told.as_str().unwrap_or_default().to_owned());
            }
            _ => return Err(OperationError::Wrong("this is not done here".to_owned())),
        };
        let answered = self.operations.execute(operation).await?;
        // A run that had ended before could not be stopped.
        Ok(match answered {
            Value::Bool(false) => "There was nothing to do any more.".to_owned(),
            _ => told.to_owned(),
        })
    }
}

/// A change of a schedule, and what is told when it is made.
fn change_of(change: &str) -> Result<(ChangedSchedule, &'static str), OperationError> {
    Ok(match change {
        "pause" => (ChangedSchedule::Pause, "The schedule is paused."),
        "resume" => (ChangedSchedule::Resume, "The schedule goes on."),
        "run" => (ChangedSchedule::Run, "The schedule is started."),
        "cancel" => (ChangedSchedule::Cancel, "The schedule has ended."),
        _ => {
            let what = "a schedule is not changed so";
            return Err(OperationError::Wrong(what.to_owned()));
        }
    })
}

fn decided(id: String, by: &ConsoleUser, approve: bool, note: Option<String>) -> DecidedApproval {
    DecidedApproval {
        id,
        approve,
        grant: false,
        arguments: None,
        by: by.name.clone(),
        note,
        digest: None,
    }
}

/// What the audit calls a deed, and the id of what it is about. The name of a person to erase is not recorded.
fn called(deed: &Deed) -> (&'static str, String) {
    match deed {
        Deed::StopRun(id) => ("stop", id.clone()),
        Deed::Approve { id, .. } => ("approve", id.clone()),
        Deed::Deny { id, .. } => ("deny", id.clone()),
        Deed::AnswerQuestion { id, .. } => ("answer", id.clone()),
        Deed::CancelQuestion(id) => ("take_back", id.clone()),
        Deed::RevokeGrant(id) => ("revoke", id.clone()),
        Deed::Release { id, send: true } => ("send", id.clone()),
        Deed::Release { id, send: false } | Deed::DecideDead { id, retry: false } => {
            ("drop", id.clone())
        }
        Deed::DecideDead { id, retry: true } => ("retry", id.clone()),
        Deed::ChangeSchedule { id, .. } => ("schedule", id.to_string()),
        Deed::Title { room, .. } => ("title", room.clone()),
        Deed::Archive { room, .. } => ("archive", room.clone()),
        Deed::RebuildSummaries(room) => ("rebuild", room.clone()),
        Deed::ForgetMemory(id) => ("forget", id.to_string()),
        Deed::ApproveTool { server, tool, .. } => ("approve_tool", format!("{server}/{tool}")),
        Deed::Reload => ("reload", String::new()),
        Deed::Erase(EraseChoice::Person(_)) => ("erase", "a person".to_owned()),
        Deed::Erase(EraseChoice::Room(_)) => ("erase", "a room".to_owned()),
    }
}

impl DaemonDesk {
    async fn begin_erasure(&self, target: EraseChoice) -> Result<(), OperationError> {
        let target = target_of(target);
        // A target that can't be found is reported at once.
        let plan = AdminOperation::ErasePlan {
            target: target.clone(),
        };
        let plan = self.operations.execute(plan).await?;
        let what = plan["what"].as_str().unwrap_or_default().to_owned();
        let begun = self
            .erasures
            .begin(what, (self.operations.clock)())
            .ok_or_else(|| {
                OperationError::Over(
                    "another erasure is under way; wait until it is over".to_owned(),
                )
            })?;
        let (operations, erasures) = (self.operations.clone(), self.erasures.clone());
        tokio::spawn(async move {
            let verify = true;
            let erase = AdminOperation::Erase { target, verify };
            let outcome = operations.execute(erase).await;
            erasures.end(begun, outcome.map_err(|cause| cause.to_string()));
        });
        Ok(())
    }
}
