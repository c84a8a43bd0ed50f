//! Socket Mode deliveries: from an envelope to its acknowledgement, its retries, or its loss.
//!
//! The life of a delivery: submitted -> (held by a fault) -> attempt 0 on one random live socket -> acknowledged, or
//! due again by the retry plan -> lost after the last attempt. Interactive payloads and slash commands have one
//! attempt. With request URLs, attempts go to `requests` instead of a socket, and their outcome decides. Owns the list
//! of open sockets, but no socket itself.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use rand::seq::IndexedRandom;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;
use uuid::Uuid;

use super::events::new_event_id;
use super::faults::{EventFault, RetryPlan};
use super::requests::{AttemptOutcome, DeliveryAttempt, Requests};

/// An envelope must be acknowledged within this time, in milliseconds (slack.md §1.4).
const ACK_WAIT_MS: u64 = 3_000;
/// The outcome of a request is known within this time, in milliseconds.
const OUTCOME_WAIT_MS: u64 = 60_000;
/// Most open sockets of one app (slack.md §1.6).
pub(super) const SOCKETS_MAX: usize = 10;

/// What a socket's task is told to do.
#[derive(Debug)]
pub(super) enum SocketCommand {
    Frame { name: String, text: String },
    Close,
    Abort,
    Stall,
}

/// What kind of envelope a payload travels in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EnvelopeKind {
    /// An Events API callback; sent again until it is acknowledged.
    EventsApi,
    /// A slash command.
    SlashCommands,
    /// A click.
    Interactive,
}

impl EnvelopeKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::EventsApi => "events_api",
            Self::SlashCommands => "slash_commands",
            Self::Interactive => "interactive",
        }
    }
}

/// An envelope that the client acknowledged.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AckedEnvelope {
    /// The id in the acknowledgement.
    pub envelope_id: String,
    /// What kind it was.
    pub kind: EnvelopeKind,
    /// Attempts made, at least 1.
    pub attempts: u32,
    /// Milliseconds between the first attempt and the acknowledgement.
    pub ack_ms: u64,
    /// Whether the acknowledgement came on a socket that had carried the envelope.
    pub on_same_socket: bool,
    /// What was delivered.
    pub payload: Value,
    /// The response payload in the acknowledgement, when it holds something.
    pub response: Option<Value>,
}

#[derive(Clone, Debug)]
struct EventDelivery {
    kind: EnvelopeKind,
    payload: Value,
    envelope_id: String,
    sockets: Vec<u64>,
    attempts: u32,
    first_sent: Option<Instant>,
    due: Instant,
    /// Why the last request failed.
    failure: String,
}

struct Socket {
    commands: UnboundedSender<SocketCommand>,
    /// Told to disconnect; gets new envelopes only when there is no other socket.
    draining: bool,
    /// Silent for good; gets new envelopes only when every other socket is silent, too.
    stalled: bool,
}

/// The deliveries and sockets of one app.
#[derive(Default)]
pub(super) struct Deliveries {
    sockets: BTreeMap<u64, Socket>,
    last_socket: u64,
    /// Since when there is no socket, after there was one, and how long there was none before.
    silent_since: Option<Instant>,
    silent: Duration,
    last_delivery: u64,
    pending: BTreeMap<u64, EventDelivery>,
    due: BTreeSet<(Instant, u64)>,
    held: Vec<u64>,
    hold_next: usize,
    acked: Vec<AckedEnvelope>,
    /// Acknowledgements whose answer is still to be shown.
    answered: Vec<AckedEnvelope>,
    /// Every envelope id ever sent, with its delivery.
    envelopes: HashMap<String, u64>,
    acked_deliveries: HashSet<u64>,
    lost: Vec<Value>,
    violations: Vec<String>,
    /// Where the app is called when Socket Mode is off.
    pub(super) requests: Requests,
}

impl Deliveries {
    /// Adds a socket, unless there are too many; gives its id and the number of open ones.
    pub(super) fn add_socket(
        &mut self,
        commands: UnboundedSender<SocketCommand>,
    ) -> Result<(u64, usize), usize> {
        if self.sockets.len() >= SOCKETS_MAX {
            return Err(self.sockets.len() + 1);
        }
        if let Some(since) = self.silent_since.take() {
            self.silent += since.elapsed();
        }
        self.last_socket += 1;
        let socket = Socket {
            commands,
            draining: false,
            stalled: false,
        };
        self.sockets.insert(self.last_socket, socket);
        Ok((self.last_socket, self.sockets.len()))
    }

    pub(super) fn remove_socket(&mut self, id: u64) {
        let was_open = self.sockets.remove(&id).is_some();
        if was_open && self.sockets.is_empty() {
            self.silent_since = Some(Instant::now());
        }
    }

    /// How long there was no socket since the first one.
    pub(super) fn silent(&self) -> Duration {
        let now = self
            .silent_since
            .map_or(Duration::ZERO, |since| since.elapsed());
        self.silent + now
    }

    pub(super) fn open_sockets(&self) -> usize {
        self.sockets.len()
    }

    /// Sends a command to every open socket; returns the sockets that got it.
    pub(super) fn tell_all(&mut self, command: impl Fn() -> SocketCommand) -> Vec<u64> {
        for socket in self.sockets.values() {
            // A socket whose task has ended is about to be removed.
            let _ = socket.commands.send(command());
        }
        self.sockets.keys().copied().collect()
    }

    pub(super) fn tell(&self, id: u64, command: SocketCommand) {
        if let Some(socket) = self.sockets.get(&id) {
            let _ = socket.commands.send(command);
        }
    }

    pub(super) fn drain(&mut self, ids: &[u64]) {
        for id in ids {
            if let Some(socket) = self.sockets.get_mut(id) {
                socket.draining = true;
            }
        }
    }

    /// Every open socket goes silent.
    pub(super) fn stall_all(&mut self) {
        self.tell_all(|| SocketCommand::Stall);
        for socket in self.sockets.values_mut() {
            socket.stalled = true;
        }
    }

    /// Holds the next `count` events back and then sends them in reverse order.
    pub(super) fn reorder_next(&mut self, count: usize) {
        self.hold_next = count;
    }

    /// Takes a payload for delivery.
    pub(super) fn submit(
        &mut self,
        kind: EnvelopeKind,
        payload: Value,
        fault: Option<&EventFault>,
        plan: &RetryPlan,
    ) {
        match fault {
            Some(EventFault::Drop) => self.lost.push(payload),
            Some(EventFault::Delay(delay_ms)) => {
                let id = self.enlist(kind, payload);
                self.reschedule(id, *delay_ms);
            }
            Some(EventFault::Duplicate(copies)) => {
                let id = self.enlist(kind, payload);
                self.attempt(id, plan);
                for _ in 0..*copies {
                    self.send_frame(id, plan);
                }
            }
            Some(EventFault::DuplicateEvent(copies)) => {
                for copy in 0..=*copies {
                    let mut payload = payload.clone();
                    if copy > 0 {
                        payload["event_id"] = json!(new_event_id());
                    }
                    let id = self.enlist(kind, payload);
                    self.attempt(id, plan);
                }
            }
            None => {
                let id = self.enlist(kind, payload);
                self.send_or_hold(id, kind, plan);
            }
        }
    }

    fn send_or_hold(&mut self, id: u64, kind: EnvelopeKind, plan: &RetryPlan) {
        if self.hold_next == 0 || kind != EnvelopeKind::EventsApi {
            return self.attempt(id, plan);
        }
        self.held.push(id);
        self.hold_next -= 1;
        if self.hold_next == 0 {
            let held = std::mem::take(&mut self.held);
            for id in held.into_iter().rev() {
                self.attempt(id, plan);
            }
        }
    }

    fn enlist(&mut self, kind: EnvelopeKind, payload: Value) -> u64 {
        self.last_delivery += 1;
        let envelope_id = self.new_envelope_id(self.last_delivery);
        let delivery = EventDelivery {
            kind,
            payload,
            envelope_id,
            sockets: Vec::new(),
            attempts: 0,
            first_sent: None,
            due: Instant::now(),
            failure: String::new(),
        };
        self.pending.insert(self.last_delivery, delivery);
        self.last_delivery
    }

    fn new_envelope_id(&mut self, delivery: u64) -> String {
        let id = Uuid::new_v4().to_string();
        self.envelopes.insert(id.clone(), delivery);
        id
    }

    /// Sends a delivery to one random live socket and notes when it is due again.
    ///
    /// Without a socket the attempt counts as made: only a retry will bring the event.
    fn attempt(&mut self, id: u64, plan: &RetryPlan) {
        let fresh_id = self.new_envelope_id(id);
        let Some(delivery) = self.pending.get_mut(&id) else {
            return;
        };
        if delivery.attempts > 0 && !plan.same_envelope_id {
            delivery.envelope_id = fresh_id;
        }
        delivery.attempts += 1;
        delivery.first_sent.get_or_insert_with(Instant::now);
        let retries_made = delivery.attempts as usize - 1;
        if self.requests.is_on() {
            self.send_frame(id, plan);
            return self.reschedule(id, OUTCOME_WAIT_MS);
        }
        let wait_ms = match delivery.kind {
            EnvelopeKind::EventsApi => plan.after_ms.get(retries_made).copied(),
            EnvelopeKind::SlashCommands | EnvelopeKind::Interactive => None,
        };
        self.send_frame(id, plan);
        self.reschedule(id, wait_ms.unwrap_or(ACK_WAIT_MS));
    }

    fn send_frame(&mut self, id: u64, plan: &RetryPlan) {
        if self.requests.is_on() {
            return self.send_request(id);
        }
        let Some(socket_id) = self.random_socket() else {
            return;
        };
        let Some(delivery) = self.pending.get_mut(&id) else {
            return;
        };
        delivery.sockets.push(socket_id);
        let frame = SocketCommand::Frame {
            name: delivery.kind.name().to_owned(),
            text: envelope(delivery, plan).to_string(),
        };
        self.tell(socket_id, frame);
    }

    fn send_request(&mut self, id: u64) {
        let Some(delivery) = self.pending.get(&id) else {
            return;
        };
        let retry = (
            delivery.attempts.saturating_sub(1),
            delivery.failure.clone(),
        );
        let payload = delivery.payload.clone();
        if !self.requests.push((id, delivery.kind), payload, retry) {
            self.lose(id);
        }
    }

    fn lose(&mut self, id: u64) {
        if let Some(delivery) = self.pending.remove(&id) {
            self.due.remove(&(delivery.due, id));
            self.lost.push(delivery.payload);
        }
    }

    /// Notes the outcome of a request.
    pub(super) fn note_outcome(
        &mut self,
        attempt: &DeliveryAttempt,
        outcome: AttemptOutcome,
        plan: &RetryPlan,
    ) {
        let id = attempt.delivery;
        let is_acknowledged = matches!(outcome, AttemptOutcome::Acknowledged(_));
        if attempt.kind == EnvelopeKind::EventsApi {
            self.requests.note(is_acknowledged, plan.disable_from);
        }
        match outcome {
            AttemptOutcome::Acknowledged(response) => {
                // A retry and its first attempt may both be acknowledged.
                let Some(delivery) = self.pending.remove(&id) else {
                    return;
                };
                self.due.remove(&(delivery.due, id));
                self.acked_deliveries.insert(id);
                let envelope_id = delivery.envelope_id.clone();
                self.note_ack(
                    None,
                    &envelope_id,
                    delivery,
                    response.filter(holds_something),
                );
            }
            AttemptOutcome::Failed { reason, no_retry } => {
                let Some(delivery) = self.pending.get_mut(&id) else {
                    return;
                };
                reason.clone_into(&mut delivery.failure);
                let made = delivery.attempts as usize;
                let wait_ms = match attempt.kind {
                    EnvelopeKind::EventsApi if !no_retry => plan.http_after_ms.get(made - 1),
                    _ => None,
                };
                match wait_ms {
                    // Another attempt may be on its way already; its outcome decides.
                    Some(wait_ms) => self.reschedule(id, *wait_ms),
                    None => self.lose(id),
                }
            }
        }
    }

    fn random_socket(&self) -> Option<u64> {
        let rank = |socket: &Socket| (socket.stalled, socket.draining);
        let best = self.sockets.values().map(rank).min()?;
        let among = self.sockets.iter().filter(|(_, it)| rank(it) == best);
        let ids: Vec<u64> = among.map(|(id, _)| *id).collect();
        ids.choose(&mut rand::rng()).copied()
    }

    fn reschedule(&mut self, id: u64, wait_ms: u64) {
        if let Some(delivery) = self.pending.get_mut(&id) {
            self.due.remove(&(delivery.due, id));
            delivery.due = Instant::now() + Duration::from_millis(wait_ms);
            self.due.insert((delivery.due, id));
        }
    }

    /// When `run_due` has something to do.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Sends what is due, and gives up what had its last attempt.
    pub(super) fn run_due(&mut self, plan: &RetryPlan) {
        let now = Instant::now();
        while let Some(&(due, id)) = self.due.first()
            && due <= now
        {
            self.due.remove(&(due, id));
            let Some(delivery) = self.pending.get(&id) else {
                continue;
            };
            let attempts_max = match delivery.kind {
                EnvelopeKind::EventsApi if self.requests.is_on() => plan.http_after_ms.len() + 1,
                EnvelopeKind::EventsApi => plan.after_ms.len() + 1,
                EnvelopeKind::SlashCommands | EnvelopeKind::Interactive => 1,
            };
            if (delivery.attempts as usize) < attempts_max {
                self.attempt(id, plan);
            } else if let Some(delivery) = self.pending.remove(&id) {
                self.lost.push(delivery.payload);
            }
        }
    }

    /// Sends every unacknowledged event again at once.
    pub(super) fn redeliver_all(&mut self, plan: &RetryPlan) {
        let ids: Vec<u64> = self
            .pending
            .iter()
            .filter(|(_, delivery)| delivery.kind == EnvelopeKind::EventsApi)
            .map(|(id, _)| *id)
            .collect();
        for id in ids {
            self.attempt(id, plan);
        }
    }

    /// Takes a text frame of the client: an acknowledgement, from whichever socket.
    pub(super) fn take_frame(&mut self, socket_id: u64, text: &str) {
        let Ok(frame) = serde_json::from_str::<Value>(text) else {
            self.violations.push(format!("not JSON: {text}"));
            return;
        };
        let Some(envelope_id) = frame["envelope_id"].as_str() else {
            self.violations.push(format!("no envelope_id: {text}"));
            return;
        };
        let id = self.envelopes.get(envelope_id).copied().unwrap_or(0);
        match self.pending.remove(&id) {
            Some(delivery) => {
                self.due.remove(&(delivery.due, id));
                self.acked_deliveries.insert(id);
                let response = Some(frame["payload"].clone()).filter(holds_something);
                self.note_ack(Some(socket_id), envelope_id, delivery, response);
            }
            // A retry and its first attempt may both be acknowledged.
            None if self.acked_deliveries.contains(&id) => {}
            None => self.violations.push(format!(
                "acknowledged too late or never sent: {envelope_id}"
            )),
        }
    }

    fn note_ack(
        &mut self,
        socket_id: Option<u64>,
        envelope_id: &str,
        delivery: EventDelivery,
        response: Option<Value>,
    ) {
        if response.is_some() && delivery.kind == EnvelopeKind::EventsApi {
            let complaint = format!("a response payload for an event: {envelope_id}");
            self.violations.push(complaint);
        }
        let waited = delivery.first_sent.map(|sent| sent.elapsed().as_millis());
        let acked = AckedEnvelope {
            envelope_id: envelope_id.to_owned(),
            kind: delivery.kind,
            attempts: delivery.attempts,
            ack_ms: u64::try_from(waited.unwrap_or(0)).unwrap_or(u64::MAX),
            on_same_socket: socket_id.is_none_or(|id| delivery.sockets.contains(&id)),
            payload: delivery.payload,
            response,
        };
        if acked.kind != EnvelopeKind::EventsApi {
            self.answered.push(acked.clone());
        }
        self.acked.push(acked);
    }

    /// Takes the acknowledgements of commands and clicks that came since the last call.
    pub(super) fn take_answered(&mut self) -> Vec<AckedEnvelope> {
        std::mem::take(&mut self.answered)
    }

    /// Forgets what was delivered; sockets stay open, and request URLs stay set.
    pub(super) fn reset(&mut self) {
        let old = std::mem::take(self);
        self.sockets = old.sockets;
        self.last_socket = old.last_socket;
        self.last_delivery = old.last_delivery;
        self.requests = old.requests;
        // Acknowledging after the reset what was sent before it is no violation.
        self.acked_deliveries = old.envelopes.values().copied().collect();
        self.envelopes = old.envelopes;
    }

    /// Envelopes that are neither acknowledged nor lost.
    pub(super) fn unacked(&self) -> usize {
        self.pending.len()
    }

    /// The same envelopes, oldest first, as JSON.
    pub(super) fn waiting(&self) -> Vec<Value> {
        let waiting = self.pending.values().map(|delivery| {
            json!({"envelope_id": delivery.envelope_id, "kind": delivery.kind,
                   "attempts": delivery.attempts, "payload": delivery.payload})
        });
        waiting.collect()
    }

    pub(super) fn acked(&self) -> &[AckedEnvelope] {
        &self.acked
    }

    pub(super) fn lost(&self) -> &[Value] {
        &self.lost
    }

    /// Notes something that the app should not have sent.
    pub(super) fn complain(&mut self, complaint: String) {
        self.violations.push(complaint);
    }

    pub(super) fn violations(&self) -> &[String] {
        &self.violations
    }
}

fn envelope(delivery: &EventDelivery, plan: &RetryPlan) -> Value {
    let mut envelope = json!({
        "envelope_id": delivery.envelope_id,
        "type": delivery.kind.name(),
        "accepts_response_payload": delivery.kind != EnvelopeKind::EventsApi,
        "payload": delivery.payload,
    });
    if delivery.kind == EnvelopeKind::EventsApi {
        let retry = delivery.attempts.saturating_sub(1);
        envelope["retry_attempt"] = json!(retry);
        envelope["retry_reason"] = json!(if retry == 0 { "" } else { &plan.reason });
    }
    envelope
}

fn holds_something(payload: &Value) -> bool {
    match payload {
        Value::Null => false,
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    }
}
