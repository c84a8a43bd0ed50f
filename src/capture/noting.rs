//! The counters and log lines of the intake, and the wake hints that it gives.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tracing::{debug, info, warn};
use vocative_contract::envelope::{Belonging, Event, Place, Standing};

use crate::capture::inbound::{ChannelIntake, said_at_ms};
use crate::counters::CountedEvent;
use vocative_core::addressing::{Access, FollowUpJudge, MessageFacts, RunVerdict, Verdict};
use vocative_core::ids::RunId;
use vocative_core::judging::judge::judge;
use vocative_core::judging::origin::CaptureOrigin;
use vocative_core::judging::policy::ChannelPolicy;
use vocative_store::contract::{Captured, CapturedTurn};

/// What was already logged, or is to be logged.
#[derive(Default)]
pub(super) struct LoggedNotes {
    /// Unknown chats that were logged.
    refused_chats: HashSet<String>,
    /// The number of old triggers per chat since the last report.
    too_old: HashMap<String, u64>,
}

/// The most chats that are remembered for a log line; events in further chats are only counted.
const CHATS_NOTED_MAX: usize = 10_000;

impl ChannelIntake {
    /// Logs, one line per chat, how many triggers were too old to answer since the last call.
    pub fn report_old_triggers(&self) {
        let counts = {
            let mut seen = self.seen.lock().expect("no holder of this lock panics");
            std::mem::take(&mut seen.too_old)
        };
        let channel = self.policy().channel.clone();
        for (chat, count) in counts {
            info!(
                channel.id = %channel, chat.id = %chat, count,
                "messages older than max_trigger_age were captured and not answered"
            );
        }
    }

    /// Counts and logs the verdicts on follow-ups that were judged again.
    pub(super) fn note_follow_ups(&self, chat: &str, follow_ups: &[RunVerdict]) {
        for runs in follow_ups {
            match runs {
                RunVerdict::Run | RunVerdict::NotAsked => {}
                RunVerdict::TooOld => self.note_too_old(chat),
                RunVerdict::LimitMet => {
                    self.counters.count(CountedEvent::Limited);
                    self.wake.posts.notify_one();
                }
                RunVerdict::Stop { .. } => self.wake.posts.notify_one(),
            }
        }
    }

    /// Counts new runs, and wakes the agent worker.
    pub(super) fn note_runs(&self, new: &[RunId], cancelled: &[RunId]) {
        let count = new.len() as u64;
        self.counters.add(CountedEvent::RunsQueued, count);
        self.ask_to_stop(cancelled);
        // A run that one edit cancelled and another brought back must not stop any more.
        for run in new {
            self.wake.cancels.forget(*run);
        }
        if !new.is_empty() || !cancelled.is_empty() {
            self.wake.runs.notify_one();
        }
    }

    /// Counts and logs what became of a message, and wakes the workers that have work.
    pub(super) fn note(
        &self,
        chat: &str,
        captured: &Captured,
        noted: Option<NotedVerdict>,
        policy: &ChannelPolicy,
    ) {
        let counters = &self.counters;
        log_captured(chat, captured, noted.as_ref(), policy);
        match captured {
            Captured::New(turn) | Captured::Revised(turn) | Captured::Duplicate(turn) => {
                let is_new = matches!(captured, Captured::New(_));
                let is_duplicate = matches!(captured, Captured::Duplicate(_));
                counters.add(CountedEvent::Captured, u64::from(is_new));
                counters.add(CountedEvent::Duplicates, u64::from(is_duplicate));
                self.note_follow_ups(chat, &turn.follow_ups);
                self.note_runs(&turn.new_runs, &turn.cancelled_runs);
                let Some(noted) = noted else { return };
                if noted.is_command {
                    self.wake.jobs.notify_one();
                    self.wake.posts.notify_one();
                }
                // A duplicate may tell the kind of the chat, for which a run waited.
                if noted.is_addressed {
                    self.wake.runs.notify_one();
                }
                if noted.is_addressed && is_new {
                    self.note_verdict(chat, noted.runs, turn, policy);
                }
            }
            Captured::Tombstone => {
                counters.count(CountedEvent::Duplicates);
            }
            Captured::NotAdmitted { has_notice } => {
                counters.count(CountedEvent::NotAdmitted);
                let access = noted.map_or(Access::ChatNotAllowed, |noted| noted.access);
                self.note_refused(chat, access, policy);
                if *has_notice {
                    self.wake.posts.notify_one();
                }
            }
        }
    }

    /// Logs the verdict on the runs of a new message, and wakes their workers.
    fn note_verdict(
        &self,
        chat: &str,
        runs: RunVerdict,
        turn: &CapturedTurn,
        policy: &ChannelPolicy,
    ) {
        match runs {
            // A sign that the message was heard, or that the channel is quiet, may be posted now.
            RunVerdict::Run => self.wake.posts.notify_one(),
            RunVerdict::Stop { .. } => {
                let count = turn.cancelled_runs.len();
                info!(channel.id = %policy.channel, chat.id = %chat, count, "a person said stop");
                self.wake.posts.notify_one();
            }
            RunVerdict::NotAsked => {}
            RunVerdict::TooOld => self.note_too_old(chat),
            RunVerdict::LimitMet => {
                self.counters.count(CountedEvent::Limited);
                warn!(channel.id = %policy.channel, chat.id = %chat, "a limit is met; a message was captured and not answered");
                self.wake.posts.notify_one();
            }
        }
    }

    /// Tells the workers of these runs to stop.
    pub(super) fn ask_to_stop(&self, runs: &[RunId]) {
        for run in runs {
            self.wake.cancels.ask(*run);
        }
    }

    fn note_too_old(&self, chat: &str) {
        self.counters.count(CountedEvent::TooOld);
        let mut seen = self.seen.lock().expect("no holder of this lock panics");
        if seen.too_old.len() < CHATS_NOTED_MAX || seen.too_old.contains_key(chat) {
            *seen.too_old.entry(chat.to_owned()).or_default() += 1;
        }
    }

    /// Logs one line per unknown chat, with its id and the setting that admits it.
    fn note_refused(&self, chat: &str, access: Access, policy: &ChannelPolicy) {
        let is_first = {
            let mut seen = self.seen.lock().expect("no holder of this lock panics");
            seen.refused_chats.len() < CHATS_NOTED_MAX && seen.refused_chats.insert(chat.to_owned())
        };
        if is_first {
            warn!(
                channel.id = %policy.channel, chat.id = %chat, setting = access.setting(),
                "a message from outside access was not stored; to serve this chat or person, add the id to that setting of the channel"
            );
        }
    }

    pub(super) fn note_membership(
        &self,
        place: &Place,
        standing: Standing,
        policy: &ChannelPolicy,
    ) {
        let chat = &place.chat;
        let what = match standing {
            Standing::Joined => "the bot was added to a chat",
            Standing::Back => "the bot can post in a chat",
            Standing::Gone => "the bot can no longer post in a chat",
        };
        info!(channel.id = %policy.channel, chat.id = %chat, "{what}");
        if standing.is_present() && !self.gate.is_open(chat, place.kind) {
            self.note_refused(chat, Access::ChatNotAllowed, policy);
        }
    }
}

/// Logs at debug level what became of a message, and why: the line that answers "why did the bot not answer?".
fn log_captured(
    chat: &str,
    captured: &Captured,
    noted: Option<&NotedVerdict>,
    policy: &ChannelPolicy,
) {
    let channel = &policy.channel;
    let rule = noted.map_or("", |noted| noted.rule);
    let (what, turn) = match captured {
        Captured::New(turn) => ("new", turn),
        Captured::Revised(turn) => ("edited", turn),
        Captured::Duplicate(turn) => ("known already", turn),
        Captured::Tombstone => {
            debug!(channel.id = %channel, chat.id = %chat, "a message was deleted or erased before; it is not stored again");
            return;
        }
        Captured::NotAdmitted { .. } => {
            let setting = noted.map_or("", |noted| noted.access.setting());
            debug!(channel.id = %channel, chat.id = %chat, setting, "a message from outside access is not stored");
            return;
        }
    };
    let origin = noted.map_or_else(CaptureOrigin::default, |noted| noted.origin);
    let is_addressed = noted.is_some_and(|noted| noted.is_addressed);
    let decided = noted.map_or("", |noted| match noted.runs {
        _ if noted.is_command => "command",
        _ if !noted.is_addressed => "",
        RunVerdict::Run => "run",
        RunVerdict::TooOld => "too old to answer",
        RunVerdict::LimitMet => "over a limit",
        RunVerdict::NotAsked => "not asked",
        RunVerdict::Stop { .. } => "stop",
    });
    debug!(
        channel.id = %channel, chat.id = %chat, conversation.id = %turn.conversation, turn.seq = turn.seq.0,
        what, origin = origin.name(), rule, is_addressed, decided, runs = turn.new_runs.len(), "a message was captured"
    );
}

/// An event's kind, for log lines.
pub(super) fn kind_of(event: &Event) -> &'static str {
    match event {
        Event::Posted(_) => "message",
        Event::Edited(_) => "edit",
        Event::Deleted { .. } => "delete",
        Event::OwnPost { .. } => "own post",
        Event::Command(_) => "command",
        Event::Interaction(_) => "interaction",
        Event::Thumb(_) => "thumb",
        Event::ChatMoved { .. } => "chat moved",
        Event::ChatChanged { .. } => "chat changed",
        Event::Membership { .. } => "membership",
        Event::Opened { .. } => "surface opened",
        Event::PersonChanged { .. } => "person changed",
        Event::Ignored { reason } => reason,
        Event::Untranslated { .. } => "unreadable",
        Event::OtherSender { .. } => "another sender",
        Event::AccountLost { .. } => "account lost",
    }
}

/// The verdict on a message, for counters and log lines.
pub(super) struct NotedVerdict {
    pub(super) access: Access,
    /// The rule that decided whether the message addresses an agent.
    pub(super) rule: &'static str,
    pub(super) origin: CaptureOrigin,
    pub(super) runs: RunVerdict,
    pub(super) is_addressed: bool,
    pub(super) is_command: bool,
}

impl NotedVerdict {
    pub(super) fn of(verdict: &Verdict, origin: CaptureOrigin) -> Self {
        Self {
            access: verdict.access,
            rule: verdict.rule.name(),
            origin,
            runs: verdict.runs,
            is_addressed: !verdict.addressed_to.is_empty(),
            is_command: verdict.command.is_some(),
        }
    }
}

/// Judges follow-ups again, for an event of that origin.
pub(super) fn judge_again(
    policy: &Arc<ChannelPolicy>,
    origin: CaptureOrigin,
    now_ms: i64,
) -> FollowUpJudge {
    let policy = Arc::clone(policy);
    Arc::new(move |message, facts| {
        let said_at_ms = said_at_ms(message, message.edit_marker.is_some());
        // Only messages of people who were served are judged again.
        let facts = &MessageFacts {
            belonging: Some(Belonging::Member),
            ..facts.clone()
        };
        let counted_ms = origin.counted_from_ms(said_at_ms, now_ms);
        let verdict = judge(message, facts, &policy, counted_ms, now_ms);
        origin.bounded(verdict, facts, message)
    })
}
