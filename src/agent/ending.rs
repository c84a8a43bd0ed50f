//! How a run ends: what is said in its room, in one commit with the end; or when it is tried again.

use std::pin::pin;
use std::time::Duration;

use tokio::time::Instant;
use tracing::{debug, error, info, warn};
use vocative_contract::outbound::PostSpeaker;
use vocative_contract::people::People;

use crate::agent::answering::Misshapen;
use crate::agent::failing::{Again, GiveUpNotice};
use crate::agent::hooking::AnswerJudged;
use crate::agent::registry::AgentSpec;
use crate::agent::run::{HEARTBEAT, LEASE_MS, Working};
use crate::agent::step;
use crate::agent::worker::AgentWorker;
use crate::capture::reply::{Answering, Lead, Reply, commit_reply, render_files, render_reply};
use crate::delivery::live::SETTLE_MS;
use crate::delivery::rooms::Room;
use crate::llm::Answer;
use vocative_core::ids::{LeaseToken, RunId};
use vocative_core::judging::policy::{SpentUp, TooCostly};
use vocative_core::prompting::{ClassEstimate, content_count};
use vocative_core::run::{ClaimedRun, Finish, StopCause, Stopping, Usage};
use vocative_core::running::budget::RunUsedUp;
use vocative_core::turn::TurnKind;
use vocative_core::words::Language;
use vocative_store::StoreError;
use vocative_store::contract::{CommittedReply, ReplyRoute, RunEnding};

/// How long a run is put off when storage failed while it was worked on.
pub(super) const STORAGE_WAIT_MS: i64 = 2_000;
/// The wait between attempts to give a run back while storage refuses it.
const GIVE_BACK_AGAIN: Duration = Duration::from_millis(500);

impl Working<'_> {
    /// Commits the model's answer. An edit of what was shown of it may be on its way for `live_settle_ms`.
    pub(super) async fn answer(
        &self,
        spec: &AgentSpec,
        answer: Answer,
        live_settle_ms: i64,
    ) -> Result<(), StoreError> {
        let (judged, verdicts) = match self.task {
            // It is not posted: the run that asked has it, and its own answer is judged.
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
                is_json: spec.answer_form.is_some(),
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
        warn!(run.id = %self.claimed.run.id, max_steps = spec.max_steps, "a run used up its steps without an answer");
        let text = self.room.language().steps_used_up(spec.max_steps.into());
        let reply = Reply {
            usage,
            ..notice(text, RunEnding::Done)
        };
        self.end(spec, reply).await
    }

    /// Says that no answer came out in the form that answers must have.
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

    /// Says nothing: what was asked was said to somebody else.
    pub(super) async fn end_not_meant(&self, spec: &AgentSpec) -> Result<(), StoreError> {
        info!(run.id = %self.claimed.run.id, "a message is not answered: it was said to somebody else");
        self.cancel(spec).await
    }

    /// Says which tool failed, without which there is no answer.
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

    /// Says what the next request may cost, and that it is not made.
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

    /// Says what of its budget the run has used up, and that it stopped for it.
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

    /// Gives a run up: the room is told, the reason stays with the operators.
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

    /// Ends a run whose trigger is gone or that a person stopped: nothing is said.
    pub(super) async fn cancel(&self, spec: &AgentSpec) -> Result<(), StoreError> {
        let silent = Reply {
            usage: self.recorded_usage().await?,
            ..notice(String::new(), RunEnding::Done)
        };
        self.room.signs.show_idle(&self.route.target).await;
        self.end(spec, silent).await
    }

    /// Does something for a run whose model has answered, and keeps its lease meanwhile.
    pub(super) async fn keeping_lease<T>(&self, work: impl Future<Output = T>) -> T {
        let mut beat = tokio::time::interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                _ = beat.tick() => {
                    let (run, token) = (self.claimed.run.id, self.claimed.token);
                    let until_ms = (self.worker.clock)() + LEASE_MS;
                    // A lease that is lost is noticed by the commit.
                    if let Err(cause) = self.worker.store.extend_run(run, token, until_ms).await {
                        warn!(error = %cause, run.id = %run, "a lease could not be extended");
                    }
                }
            }
        }
    }

    /// Ends the run with what an agent says, or with a notice about it.
    pub(super) async fn end(&self, spec: &AgentSpec, reply: Reply) -> Result<(), StoreError> {
        let people = self.people().await?;
        let answering = Answering {
            claimed: self.claimed,
            route: self.route,
            speaker: &spec.name,
            speaker_display_name: &spec.display_name,
        };
        commit(self.worker, self.room, &answering, reply, &people).await
    }

    /// How the room sees that this agent speaks: where several answer, or posts stand under their names.
    pub(super) fn lead(&self, spec: &AgentSpec) -> Lead {
        if spec.prefixed_channels.contains(&self.route.channel) {
            return Lead::Prefix(spec.display_name.clone());
        }
        match spec.speaking_channels.contains(&self.route.channel) {
            true => Lead::Speaker(PostSpeaker {
                name: spec.display_name.clone(),
                icon: spec.icon.clone(),
            }),
            false => Lead::Nobody,
        }
    }

    /// Tokens of the steps that a run without an answer took.
    async fn recorded_usage(&self) -> Result<Usage, StoreError> {
        let run = self.claimed.run.id;
        let stored = self.worker.store.steps(run).await?;
        if self.is_of_network() {
            return Ok(step::usage_since(&stored, 0));
        }
        let calls = self.worker.store.tool_calls(run).await?;
        Ok(step::usage_of(&step::replay(&stored, &calls)))
    }

    /// Whom the answer may mention for real.
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

/// Ends a run whose chat or person the lists no longer let in: nothing is said.
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

/// Commits what is said at a run's end, with the end.
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

/// What the room is told of an answer that is not all that the model meant to say.
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

/// Has a run that gave no answer tried again.
pub(super) async fn requeue(
    worker: &AgentWorker,
    claimed: &ClaimedRun,
    again: Again,
    reason: &str,
) -> Result<(), StoreError> {
    let (store, now_ms) = (&worker.store, (worker.clock)());
    let (run, token) = (claimed.run.id, claimed.token);
    let Again { wait_ms, counts } = again;
    let not_before_ms = now_ms + wait_ms;
    let written = if counts {
        let attempt = claimed.attempts_used();
        warn!(run.id = %run, attempt, wait_ms, reason, "a run failed; another attempt follows");
        let requeued = store.requeue_run(run, token, not_before_ms, reason, now_ms);
        requeued.await
    } else {
        info!(run.id = %run, wait_ms, reason, "the model can't answer; the run is put off");
        let put_off = store.put_run_off(run, token, not_before_ms, reason, now_ms);
        put_off.await
    };
    // Without the lease, the worker that holds it decides.
    written.map(drop)
}

/// Gives a run back as a failed attempt, and tries again while storage refuses: nothing else gives it back.
pub(super) async fn give_back(
    worker: &AgentWorker,
    run: RunId,
    token: LeaseToken,
    wait_ms: i64,
    reason: &str,
) {
    loop {
        let now_ms = (worker.clock)();
        let not_before_ms = now_ms + wait_ms;
        let given_back = worker
            .store
            .requeue_run(run, token, not_before_ms, reason, now_ms);
        match given_back.await {
            Ok(_) => return,
            Err(cause) => {
                debug!(error = %cause, run.id = %run, "a run could not be given back; trying again");
                tokio::time::sleep(GIVE_BACK_AGAIN).await;
            }
        }
    }
}
