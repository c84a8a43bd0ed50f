//! The hooks that are asked, or told, at the points of a run: patterns that remove words, and servers over HTTP.
//!
//! It knows no agent, no store and no platform: it receives what a hook may see, and returns a verdict that is valid
//! at its point. What follows from it is decided by `core/hooking` and the caller.
//!
//! Reading order: this page, `asking` (a question over HTTP), `telling` (an event over HTTP), `counts` (the verdicts
//! since the start).

mod asking;
mod counts;
mod telling;

use std::sync::Arc;

use serde_json::Value;

pub use counts::{HookCount, counts};

use crate::tools::HttpTool;
use vocative_core::hooking::{HookDecision, HookPoint, Judged, Redacted, Redactor, settle};

/// A configured hook.
#[derive(Debug)]
pub struct Hook {
    /// Its name.
    pub name: String,
    /// The points at which it is asked.
    pub points: Vec<HookPoint>,
    /// The kind of hook.
    pub kind: HookKind,
}

/// The kind of a hook.
#[derive(Debug)]
pub enum HookKind {
    /// Removes words by pattern.
    Redact(Redactor),
    /// A server that is asked.
    Http {
        /// The request.
        request: Arc<HttpTool>,
        /// Whether it is sent what people, models and tools said.
        has_content: bool,
    },
    /// A model that is asked whether a message was meant for the agent. The agent asks it.
    Intent {
        /// How long it may take, in milliseconds.
        timeout_ms: u64,
    },
}

/// An agent's hooks, in the order in which they are asked. Cloning shares them.
#[derive(Clone, Debug, Default)]
pub struct Hooks {
    hooks: Arc<[Arc<Hook>]>,
}

/// The run that a question is about.
#[derive(Clone, Debug, Default)]
pub struct AboutRun {
    /// The agent's name.
    pub agent: String,
    /// The run's id.
    pub run: String,
    /// The conversation's id.
    pub conversation: String,
    /// The channel's configured name.
    pub channel: String,
    /// The platform's id of the chat.
    pub chat: String,
    /// The platform's id of the person who asks, if there is one.
    pub person: Option<String>,
}

/// A point of a run, with its numbers.
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// The point.
    pub point: HookPoint,
    /// The step, from 1; 0 = the run or its answer.
    pub step: u32,
    /// The call's place in its step.
    pub n: u32,
}

/// An event that a hook is told about. It contains no messages.
#[derive(Clone, Debug)]
pub struct HookTelling {
    /// The same however often it is told.
    pub id: String,
    /// The point of the event.
    pub point: HookPoint,
    /// The hook's name.
    pub hook: String,
    /// The run.
    pub about: AboutRun,
    /// The state that the run or the approval ended in.
    pub outcome: String,
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// The approval, if the event is about one.
    pub approval: Option<AboutApproval>,
}

/// An approval that a hook is told of.
#[derive(Clone, Debug)]
pub struct AboutApproval {
    /// Its id.
    pub id: String,
    /// The tool that was asked about.
    pub tool: String,
    /// The platform's id of the person who decided in the room, or the name of who decided outside it.
    pub by: Option<String>,
    /// Where it was decided: `card`, `cli`, `api`, `console`.
    pub via: Option<String>,
}

/// What a hook is asked about.
#[derive(Clone, Copy, Debug)]
pub enum Subject<'a> {
    /// A question of people, or a request to the model.
    Going {
        /// What was asked.
        text: &'a str,
        /// The model that is to answer.
        model: &'a str,
    },
    /// An answer of the model.
    Text {
        /// The answer.
        text: &'a str,
    },
    /// A tool call.
    Call {
        /// The tool.
        tool: &'a str,
        /// Its arguments.
        arguments: &'a Value,
        /// Whether people changed them, and it is asked about anew.
        is_changed: bool,
    },
    /// The result of a call.
    Result {
        /// The tool.
        tool: &'a str,
        /// The text for the model.
        text: &'a str,
        /// Whether the call failed.
        is_error: bool,
    },
}

impl Hooks {
    /// These hooks.
    #[must_use]
    pub fn new(hooks: Vec<Arc<Hook>>) -> Self {
        Self {
            hooks: hooks.into(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hooks.is_empty()
    }

    /// The hooks of a point.
    pub fn at(&self, point: HookPoint) -> impl Iterator<Item = &Arc<Hook>> {
        let is_there = move |hook: &&Arc<Hook>| hook.points.contains(&point);
        self.hooks.iter().filter(is_there)
    }

    /// Whether hooks may change an answer after the model gave it.
    #[must_use]
    pub fn hold_answers_back(&self) -> bool {
        let mut points = self.hooks.iter().flat_map(|hook| &hook.points);
        points.any(|point| point.holds_answers_back())
    }

    /// Whether the results of tools or the words of agents are checked before they are stored or posted. No hook can
    /// check a file.
    #[must_use]
    pub fn look_at_what_is_told(&self) -> bool {
        let mut points = self.hooks.iter().flat_map(|hook| &hook.points);
        points.any(|point| point.holds_answers_back() || *point == HookPoint::AfterTool)
    }

    /// The hooks that remove words at one of these points, each once.
    pub fn redactors<'a>(
        &'a self,
        points: &'a [HookPoint],
    ) -> impl Iterator<Item = (&'a Hook, &'a Redactor)> {
        self.hooks.iter().filter_map(|hook| {
            let is_there = points.iter().any(|point| hook.points.contains(point));
            match &hook.kind {
                HookKind::Redact(redactor) if is_there => Some((&**hook, redactor)),
                HookKind::Redact(_) | HookKind::Http { .. } | HookKind::Intent { .. } => None,
            }
        })
    }

    /// A text without the words that patterns remove at these points; `None` = nothing is removed.
    #[must_use]
    pub fn without_words(&self, points: &[HookPoint], text: &str) -> Option<String> {
        let mut changed = None;
        for (_, redactor) in self.redactors(points) {
            let Redacted { text, count } = redactor.redact(changed.as_deref().unwrap_or(text));
            if count > 0 {
                changed = Some(text.into_owned());
            }
        }
        changed
    }
}

impl Hook {
    /// Whether it is a server that is asked.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        matches!(self.kind, HookKind::Http { .. })
    }

    /// The hook's verdict on a subject, as far as it is valid. For a pattern, the subject is a text.
    pub async fn ask(&self, about: &AboutRun, at: At, subject: Subject<'_>) -> HookDecision {
        let verdict = match &self.kind {
            HookKind::Redact(redactor) => taken_out(redactor, subject),
            HookKind::Http {
                request,
                has_content,
            } => asking::ask(&self.name, request, *has_content, about, at, subject).await,
            HookKind::Intent { .. } => HookDecision::Pass,
        };
        self.settled(about, at, subject, verdict)
    }

    /// The valid part of a verdict on a subject. It is counted.
    pub fn settled(
        &self,
        about: &AboutRun,
        at: At,
        subject: Subject<'_>,
        verdict: HookDecision,
    ) -> HookDecision {
        let verdict = settle(at.point, judged(subject), verdict);
        self.note(&verdict);
        if let HookDecision::Failed { reason } = &verdict {
            tracing::warn!(
                hook = self.name,
                point = at.point.name(),
                run.id = about.run,
                reason,
                "a hook gave no word that holds"
            );
        }
        verdict
    }

    /// Tells the hook about an event.
    ///
    /// # Errors
    /// Why it was not told, without addresses.
    pub async fn tell(&self, telling: &HookTelling) -> Result<(), String> {
        let HookKind::Http { request, .. } = &self.kind else {
            return Err("it is no server any more".to_owned());
        };
        telling::tell(request, telling).await?;
        counts::note_told(&self.name);
        Ok(())
    }

    /// Counts a verdict.
    pub fn note(&self, verdict: &HookDecision) {
        counts::note(&self.name, verdict);
    }
}

fn judged<'a>(subject: Subject<'a>) -> Judged<'a> {
    match subject {
        Subject::Going { .. } => Judged::Going,
        Subject::Text { .. } | Subject::Result { .. } => Judged::Text,
        Subject::Call { arguments, .. } => Judged::Call(arguments),
    }
}

fn taken_out(redactor: &Redactor, subject: Subject<'_>) -> HookDecision {
    let (Subject::Text { text } | Subject::Result { text, .. }) = subject else {
        return HookDecision::Pass;
    };
    match redactor.redact(text) {
        Redacted { count: 0, .. } => HookDecision::Pass,
        Redacted { text, count } => HookDecision::Redact {
            count,
            text: Some(text.into_owned()),
        },
    }
}
