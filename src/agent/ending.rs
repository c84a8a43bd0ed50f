//! How a run ends: the answer or notice is committed with the end; or the run is tried again.

use tracing::{error, info, warn};
use vocative_contract::outbound::PostSpeaker;
use vocative_contract::people::People;

use crate::agent::clocks::Age;
use crate::agent::failing::{
    AfterFailure, Again, AttemptFailure, GiveUpNotice, Misshapen, Tried, after,
};
use crate::agent::hooking::AnswerJudged;
use crate::agent::letting_go::requeue;
use crate::agent::registry::AgentSpec;
use crate::agent::step;
use crate::agent::worker::AgentWorker;
use crate::agent::working::{RunEnd, Working};
use crate::capture::reply::{Answering, Lead, Reply, commit_reply, render_files, render_reply};
use crate::delivery::live::SETTLE_MS;
use crate::delivery::rooms::Room;
use crate::llm::Answer;
use vocative_core::ids::RunId;
use vocative_core::judging::policy::{SpentUp, TooCostly};
use vocative_core::prompting::{ClassEstimate, content_count};
use vocative_core::run::{ClaimedRun, Finish, StopCause, Stopping, Usage};
use vocative_core::running::budget::RunUsedUp;
use vocative_core::turn::TurnKind;
use vocative_core::words::Language;
use vocative_store::StoreError;
use vocative_store::contract::{CommittedReply, ReplyRoute, RunEnding};

impl Working<'_> {
    /// Commits the model's answer. An edit of its live view may be on its way for `live_settle_ms`.
    pub(super) async fn answer(
        &self,
        spec: &AgentSpec,
        answer: Answer,
        live_settle_ms: i64,
    ) -> Result<(), StoreError> {
        let (judged, verdicts) = match self.task {
            // The answer is not posted: the run that asked receives it, and that run's own answer is judged by hooks.
            Some(_) => (AnswerJudged::Said(answer.text), Vec::new()),
            None => {
                let hooking = self.hooking(spec).await?;
                let judging = hooking.before_post(answer.text, 0);
                self.keeping_lease(judging).await
            }
        };
        let reply = match judged {
            AnswerJudged::Said(text) => Reply {
                tokens: Some(content_count(&text, &ClassEstimate)),
                text,
                is_json: spec.agent.answer_form.is_some(),
                lead: self.lead(spec),
                note: note(answer.finish, self.room.language()),
                kind: TurnKind::Message,
                ending: RunEnding::Done,
                usage: answer.usage,
                live_settle_ms,
                verdicts,
                before: Vec::new(),
                values: None,
            },
            AnswerJudged::Withheld(why) => {
                warn!(run.id = %self.claimed.run.id, "an answer is not posted: a hook withholds it");
                Reply {
                    usage: answer.usage,
                    verdicts,
                    ..notice(why, RunEnding::Done)
                }
            }
        };
        self.end(spec, reply).await
    }

    /// Says that the steps are used up.
    pub(super) async fn end_used_up(
        &self,
        spec: &AgentSpec,
        usage: Usage,
    ) -> Result<(), StoreError> {
        warn!(run.id = %self.claimed.run.id, max_steps = spec.settings().max_steps, "a run used up its steps without an answer");
        let text = self
            .room
            .language()
            .steps_used_up(spec.settings().max_steps.into());
        let reply = Reply {
            usage,
            ..notice(text, RunEnding::Done)
        };
        self.end(spec, reply).await
    }

    /// Says that no answer had the required form.
    pub(super) async fn end_misshapen(
        &self,
        spec: &AgentSpec,
        misshapen: Misshapen,
    ) -> Result<(), StoreError> {
        let Misshapen { answers, usage } = misshapen;
        warn!(run.id = %self.claimed.run.id, agent = %spec.name, answers, "a run ended without an answer of the form that is set for it");
        let text = self.room.language().answer_misshapen(answers.into());
        let reply = Reply {
            usage,
            ..notice(text, RunEnding::Done)
        };
        self.end(spec, reply).await
    }

    /// Says that a hook does not let the question be answered.
    pub(super) async fn end_refused(
        &self,
        spec: &AgentSpec,
        why: String,
    ) -> Result<(), StoreError> {
        info!(run.id = %self.claimed.run.id, "a question is not answered: a hook does not allow it");
        let said = Reply {
            usage: self.recorded_usage().await?,
            ..notice(why, RunEnding::Done)
        };
        self.end(spec, said).await
    }

    /// Ends without a word: the message was meant for somebody else.
    pub(super) async fn end_not_meant(&self, spec: &AgentSpec) -> Result<(), StoreError> {
        info!(run.id = %self.claimed.run.id, "a message is not answered: it was said to somebody else");
        self.cancel(spec).await
    }

    /// Says which tool failed, since that failure leaves the run without an answer.
    pub(super) async fn end_tool_failed(
        &self,
        spec: &AgentSpec,
        tool: &str,
    ) -> Result<(), StoreError> {
        warn!(run.id = %self.claimed.run.id, agent = %spec.name, tool, "a question is not answered: a call failed without which there is no answer");
        let said = Reply {
            usage: self.recorded_usage().await?,
            ..notice(self.room.language().tool_failed(tool), RunEnding::Done)
        };
        self.end(spec, said).await
    }

    /// Says that the day's tokens are used up; no model is asked, or not asked again.
    pub(super) async fn end_spent_up(
        &self,
        spec: &AgentSpec,
        spent_up: SpentUp,
    ) -> Result<(), StoreError> {
        warn!(run.id = %self.claimed.run.id, ?spent_up, "a question is not answered: the day's tokens are used up");
        let said = Reply {
            usage: self.recorded_usage().await?,
            ..notice(spent_up.text(self.room.language()), RunEnding::Done)
        };
        self.end(spec, said).await
    }

    /// Says what the next request may cost, and that it is not sent.
    pub(super) async fn end_too_costly(
        &self,
        spec: &AgentSpec,
        too_costly: TooCostly,
    ) -> Result<(), StoreError> {
        warn!(run.id = %self.claimed.run.id, ?too_costly, "a question is not answered: it could pass a cap of the day");
        let text = too_costly.text(&spec.model_use.currency, self.room.language());
        let said = Reply {
            usage: self.recorded_usage().await?,
            ..notice(text, RunEnding::Done)
        };
        self.end(spec, said).await
    }

    /// Says which part of its budget the run has used up, and that it stopped for that reason.
    pub(super) async fn end_run_used_up(
        &self,
        spec: &AgentSpec,
        used_up: RunUsedUp,
    ) -> Result<(), StoreError> {
        warn!(run.id = %self.claimed.run.id, ?used_up, "a question is not answered: its run has used what it may");
        let text = used_up.text(&spec.model_use.currency, self.room.language());
        let said = Reply {
            usage: self.recorded_usage().await?,
            ..notice(text, RunEnding::Done)
        };
        self.end(spec, said).await
    }

    /// Gives a run up: the room is told so; the reason is only for operators.
    pub(super) async fn give_up(
        &self,
        spec: &AgentSpec,
        told: GiveUpNotice,
        reason: String,
    ) -> Result<(), StoreError> {
        error!(run.id = %self.claimed.run.id, agent = %spec.name, reason, "a run was given up");
        let reply = Reply {
            usage: self.recorded_usage().await?,
            ..notice(told.text(self.room.language()), RunEnding::Dead { reason })
        };
        self.end(spec, reply).await
    }

    /// Ends without a word a run whose trigger is gone or that a person stopped.
    pub(super) async fn cancel(&self, spec: &AgentSpec) -> Result<(), StoreError> {
        let silent = Reply {
            usage: self.recorded_usage().await?,
            ..notice(String::new(), RunEnding::Done)
        };
        self.room.signs.show_idle(&self.route.target).await;
        self.end(spec, silent).await
    }

    /// Ends or releases a run whose work was broken off for a reason other than its model.
    pub(super) async fn end_otherwise(
        &self,
        spec: &AgentSpec,
        work: RunEnd,
        age: Age,
    ) -> Result<(), StoreError> {
        match work {
            RunEnd::ToolFailed(tool) => self.end_tool_failed(spec, &tool).await,
            RunEnd::SpentUp(spent_up) => self.end_spent_up(spec, spent_up).await,
            RunEnd::TooCostly(too_costly) => self.end_too_costly(spec, too_costly).await,
            RunEnd::RunUsedUp(used_up) => self.end_run_used_up(spec, used_up).await,
            RunEnd::Refused(why) => self.end_refused(spec, why).await,
            RunEnd::NotMeant => self.end_not_meant(spec).await,
            RunEnd::Cancelled => self.cancel(spec).await,
            RunEnd::Waits => self.wait_for_people().await,
            RunEnd::LeaseLost => Ok(()),
            RunEnd::TooLong { longest } => {
                let reason = format!("it took longer than {} s", longest.0);
                self.fail(spec, age, AttemptFailure::Passing(reason)).await
            }
            RunEnd::Failed(failure) => self.fail(spec, age, failure).await,
            RunEnd::UsedUp(usage) => self.end_used_up(spec, usage).await,
            RunEnd::Misshapen(misshapen) => self.end_misshapen(spec, misshapen).await,
            RunEnd::Answered(answer) => self.answer(spec, answer, SETTLE_MS).await,
        }
    }

    /// Handles an attempt without an answer: another one follows, or the room is told.
    pub(super) async fn fail(
        &self,
        spec: &AgentSpec,
        age: Age,
        failure: AttemptFailure,
    ) -> Result<(), StoreError> {
        let tried = Tried {
            attempts: self.claimed.attempts_used(),
            max_attempts: spec.max_attempts,
            age_ms: age.now_ms(),
            answer_within_ms: spec.answer_within_ms,
        };
        let reason = failure.reason();
        match after(&failure, tried) {
            AfterFailure::GiveUp(notice) => self.give_up(spec, notice, reason).await,
            AfterFailure::Again(again) => requeue(self.worker, self.claimed, again, &reason).await,
        }
    }

    /// Ends the run with the words of an agent, or with a notice about it.
    pub(super) async fn end(&self, spec: &AgentSpec, reply: Reply) -> Result<(), StoreError> {
        let people = self.people().await?;
        let answering = Answering {
            claimed: self.claimed,
            route: self.route,
            speaker: &spec.name,
            speaker_display_name: &spec.agent.display_name,
        };
        commit(self.worker, self.room, &answering, reply, &people).await
    }

    /// How a post shows which agent speaks, where several answer or posts stand under their names.
    pub(super) fn lead(&self, spec: &AgentSpec) -> Lead {
        if spec.prefixed_channels.contains(&self.route.channel) {
            return Lead::Prefix(spec.agent.display_name.clone());
        }
        match spec.speaking_channels.contains(&self.route.channel) {
            true => Lead::Speaker(PostSpeaker {
                name: spec.agent.display_name.clone(),
                icon: Some(spec.settings().icon.clone()).filter(|it| !it.is_empty()),
            }),
            false => Lead::Nobody,
        }
    }

    /// Tokens of the recorded steps of a run without an answer.
    async fn recorded_usage(&self) -> Result<Usage, StoreError> {
        let run = self.claimed.run.id;
        let stored = self.worker.store.steps(run).await?;
        if self.is_of_network() {
            return Ok(step::usage_since(&stored, 0));
        }
        let calls = self.worker.store.tool_calls(run).await?;
        Ok(step::usage_of(&step::replay(&stored, &calls)))
    }

    /// The people whom the answer may mention with a notification.
    async fn people(&self) -> Result<People, StoreError> {
        if !self.room.delivery.mention_people {
            return Ok(People::nobody());
        }
        let conversation = self.claimed.run.conversation;
        let known = self.worker.store.mentionable(conversation).await?;
        Ok(People::known(known))
    }
}

/// Says that a run's agent is no longer configured.
pub(super) async fn end_without_agent(
    worker: &AgentWorker,
    claimed: &ClaimedRun,
    room: &Room,
    route: &ReplyRoute,
) -> Result<(), StoreError> {
    let agent = &claimed.run.agent;
    let text = room.language().agent_no_longer_here(agent);
    let answering = Answering {
        claimed,
        route,
        speaker: agent,
        speaker_display_name: agent.as_str(),
    };
    let reply = notice(text, RunEnding::Cancelled);
    commit(worker, room, &answering, reply, &People::nobody()).await
}

/// Ends without a word a run whose chat or person is no longer admitted by the lists.
pub(super) async fn end_unserved(
    worker: &AgentWorker,
    claimed: &ClaimedRun,
    room: &Room,
    route: &ReplyRoute,
) -> Result<(), StoreError> {
    let (run, agent) = (claimed.run.id, claimed.run.agent.as_str());
    info!(run.id = %run, agent, "a question is not answered: its chat or person is no longer served");
    let stopping = Stopping {
        cause: StopCause::Unserved,
        detail: "its chat or person is no longer served".to_owned(),
    };
    worker
        .store
        .cancel_run(run, stopping, (worker.clock)())
        .await?;
    let answering = Answering {
        claimed,
        route,
        speaker: &claimed.run.agent,
        speaker_display_name: agent,
    };
    let silent = notice(String::new(), RunEnding::Cancelled);
    commit(worker, room, &answering, silent, &People::nobody()).await
}

/// Commits the end of a run together with what is said at it.
async fn commit(
    worker: &AgentWorker,
    room: &Room,
    answering: &Answering<'_>,
    mut reply: Reply,
    people: &People,
) -> Result<(), StoreError> {
    let before = std::mem::take(&mut reply.before).into_iter();
    let before = before.map(|words| words.rendered(room.form(), people));
    let mut parts = render_reply(room.form(), &reply, people);
    if reply.kind == TurnKind::Message {
        let files = worker.store.files_of_calls(answering.claimed.run.id);
        parts.extend(render_files(room.form(), files.await?));
    }
    let rendered = (parts, before.collect());
    let now_ms = (worker.clock)();
    let committed = commit_reply(&worker.store, answering, reply, rendered, now_ms).await?;
    if committed == CommittedReply::SourceGone {
        let again = Again::counted(answering.claimed.attempts_used());
        let reason = "something that it read was deleted meanwhile";
        return requeue(worker, answering.claimed, again, reason).await;
    }
    note_end(answering.claimed.run.id, &committed);
    worker.wake.posts.notify_one();
    worker.wake.summaries.notify_one();
    Ok(())
}

pub(super) fn notice(text: String, ending: RunEnding) -> Reply {
    Reply {
        tokens: Some(content_count(&text, &ClassEstimate)),
        text,
        is_json: false,
        lead: Lead::Nobody,
        note: None,
        kind: TurnKind::Notice,
        ending,
        usage: Usage::default(),
        live_settle_ms: SETTLE_MS,
        verdicts: Vec::new(),
        before: Vec::new(),
        values: None,
    }
}

/// The room's note about an answer that is incomplete.
pub(super) fn note(finish: Finish, language: Language) -> Option<String> {
    match finish {
        Finish::Length => Some(language.cut_off_length()),
        Finish::ContentFilter => Some(language.cut_off_filter()),
        Finish::Stop | Finish::Other => None,
    }
}

fn note_end(run: RunId, committed: &CommittedReply) {
    match committed {
        CommittedReply::Written { turn, posts } => {
            info!(run.id = %run, turn.id = %turn, posts = posts.len(), "answered");
        }
        CommittedReply::SourceGone => {}
        CommittedReply::Stale => {
            warn!(run.id = %run, "the lease was lost; the answer was not written");
        }
        CommittedReply::Cancelled => info!(run.id = %run, "cancelled; nothing was said"),
        CommittedReply::Reported => info!(run.id = %run, "answered the run that asked"),
    }
}
